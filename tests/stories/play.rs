//! Plays a story on the embedded cluster: each act as `kubectl` and its plugin would write it.

use std::{collections::BTreeMap, fs, path::Path};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tidegate::{
    embedded::{
        controllers::Settings,
        store::request::{PatchType, Request, Verb},
    },
    kubernetes::{object::Object, value::Value as Tree},
    sim::local::Local,
};

use crate::trace::{self, Seen};

const NAMESPACE: &str = "default";

pub struct Story {
    pub name: String,
    pub objects: Vec<Value>,
    pub acts: Vec<Value>,
    /// What it needs that is not there yet.
    pub needs: Option<&'static str>,
    settles: bool,
}

/// All stories of the folder.
pub fn stories(folder: &Path) -> Vec<Story> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml") && !file.ends_with("known.yaml"));
    files.sort();
    // Stories share much of what they say.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { enforce_alias_anchor_ratio: false }
    };
    let read = |file: &std::path::PathBuf| -> Vec<Value> {
        serde_saphyr::from_str_with_options(&fs::read_to_string(file).unwrap(), options.clone()).unwrap()
    };
    files.iter().flat_map(read).filter(|entry| entry.get("story").is_some()).map(story).collect()
}

fn story(entry: Value) -> Story {
    let mut objects: Vec<Value> = Vec::new();
    let listed = entry["objects"].as_array().cloned().unwrap_or_default();
    for object in listed {
        match object {
            Value::Array(several) => objects.extend(several),
            one => objects.push(one),
        }
    }
    if let Some(rollout) = entry.get("rollout") {
        objects.push(json!({"rollout": rollout}));
    }
    let acts = entry["acts"].as_array().cloned().unwrap_or_default();
    let text = entry.to_string();
    let needs = [
        ("\"analysis", "analysis"),
        ("PromotionAnalysis", "analysis"),
        ("\"experiment", "experiments"),
        ("trafficRouting", "traffic routing"),
    ];
    let needs = needs.iter().find(|(word, _)| text.contains(word)).map(|(_, what)| *what);
    let settles = entry["settle"] != false;
    Story { name: entry["story"].as_str().unwrap().to_owned(), objects, acts, needs, settles }
}

/// How fast things go in a play.
#[derive(Clone, Copy)]
pub struct Pace {
    /// How far apart pods of one ReplicaSet become ready, at most.
    jitter: i64,
    /// How long it takes until the engine hears of a change.
    latency: i64,
}

/// Pods that become ready together, one after the other, and so slowly that every state in between is acted upon.
pub const PACES: [Pace; 4] = [
    Pace { jitter: 0, latency: 40 },
    Pace { jitter: 30, latency: 5 },
    Pace { jitter: 60, latency: 40 },
    Pace { jitter: 100, latency: 0 },
];

/// How each act ended, and the sequences of what was seen.
pub fn play(story: &Story, pace: Pace) -> (Vec<String>, BTreeMap<String, Value>) {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let jitter = SignedDuration::from_millis(pace.jitter);
    let mut local = Local::new(start, Settings { seed: 1, jitter, ..Settings::default() });
    local.latency = SignedDuration::from_millis(pace.latency);
    let mut player = Player { cursor: local.store().version(), local, seen: Vec::new(), main: String::new() };
    let mut results = Vec::new();
    for object in &story.objects {
        let object = expand(object);
        // The story's own Rollout comes last.
        if object["kind"] == "Rollout" {
            player.main = object["metadata"]["name"].as_str().unwrap().to_owned();
        }
        results.push(player.apply(&object));
        player.pass_time(400);
    }
    for act in &story.acts {
        let (what, arguments) = act.as_object().unwrap().iter().next().unwrap();
        results.push(player.act(what, arguments));
    }
    if story.settles {
        results.push(player.act("quiet", &json!({"for": 2.5, "timeout": 20})));
    }
    assert_eq!(player.local.refused, [], "{}: rules would have been broken", story.name);
    let told = player.local.events.iter().map(|(place, event)| {
        let kind = if event.warning { "Warning" } else { "Normal" };
        (place.name.to_string(), format!("{kind} {}: {}", event.reason, event.message))
    });
    let events: Vec<(String, String)> = told.collect();
    (results, trace::build(&player.seen, &events))
}

struct Player {
    local: Local,
    seen: Vec<Seen>,
    cursor: u64,
    main: String,
}

/// Group, version and plural of a kind.
fn resource(kind: &str) -> (&'static str, &'static str, &'static str) {
    match kind {
        "Rollout" => ("argoproj.io", "v1alpha1", "rollouts"),
        "AnalysisTemplate" => ("argoproj.io", "v1alpha1", "analysistemplates"),
        "ReplicaSet" => ("apps", "v1", "replicasets"),
        "Deployment" => ("apps", "v1", "deployments"),
        "Service" => ("", "v1", "services"),
        "Pod" => ("", "v1", "pods"),
        "PodTemplate" => ("", "v1", "podtemplates"),
        "PodDisruptionBudget" => ("policy", "v1", "poddisruptionbudgets"),
        "ConfigMap" => ("", "v1", "configmaps"),
        other => panic!("no resource for {other}"),
    }
}

fn tree(value: &Value) -> Tree {
    Tree::from_json(value.to_string().as_bytes()).unwrap()
}

impl Player {
    /// Takes in what changed since the last look.
    fn look(&mut self) {
        for change in self.local.store().changes_since(self.cursor) {
            let kind = change.kind.kind.to_string();
            if ["Rollout", "ReplicaSet", "Service", "Deployment"].contains(&kind.as_str())
                && change.object.namespace() == NAMESPACE
                && change.object.name() != "kubernetes"
            {
                let object = (!change.deleted).then(|| serde_json::to_value(&change.object.value).unwrap());
                self.seen.push(Seen { kind, name: change.object.name().to_string(), object });
            }
        }
        self.cursor = self.local.store().version();
    }

    fn pass_time(&mut self, millis: i64) {
        self.until(millis, |_| false);
    }

    /// Lets time pass until this holds; `false` if it does not in time.
    fn until(&mut self, millis: i64, holds: impl Fn(&Player) -> bool) -> bool {
        let end = self.local.now() + SignedDuration::from_millis(millis);
        loop {
            self.look();
            if holds(self) {
                return true;
            }
            if self.local.step() {
                continue;
            }
            let next = self.local.next_wake().filter(|wake| *wake <= end);
            let by = next.unwrap_or(end).duration_since(self.local.now());
            self.local.advance(by);
            if next.is_none() {
                self.look();
                return holds(self);
            }
        }
    }

    /// Waits until nothing changed for so long.
    fn quiet(&mut self, millis: i64, limit: i64) -> bool {
        let end = self.local.now() + SignedDuration::from_millis(limit);
        while self.local.now() < end {
            let before = self.local.store().version();
            self.pass_time(millis);
            if self.local.store().version() == before {
                return true;
            }
        }
        false
    }

    fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let (group, _, plural) = resource(kind);
        let object = self.local.store().get(group, plural, NAMESPACE, name)?;
        Some(serde_json::to_value(&object.value).unwrap())
    }

    fn all(&self, kind: &str) -> Vec<Value> {
        let (group, _, plural) = resource(kind);
        let value = |object: &std::sync::Arc<Object>| serde_json::to_value(&object.value).unwrap();
        self.local.store().list(group, plural, NAMESPACE).map(value).collect()
    }

    fn ask(&mut self, verb: Verb, kind: &str, name: &str, subresource: &str, body: Option<Value>) -> String {
        let (group, version, plural) = resource(kind);
        let request = Request {
            verb,
            group: group.into(),
            version: version.into(),
            resource: plural.into(),
            namespace: NAMESPACE.into(),
            name: name.into(),
            subresource: subresource.into(),
            body: body.as_ref().map(tree),
            agent: "story".into(),
            ..Request::default()
        };
        match self.local.ask(request) {
            Ok(_) => "ok".into(),
            Err(status) => format!("error {}", status.message),
        }
    }

    fn apply(&mut self, object: &Value) -> String {
        let (kind, name) = (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        if self.get(kind, name).is_some() {
            return self.ask(Verb::Patch(PatchType::Merge), kind, name, "", Some(object.clone()));
        }
        self.ask(Verb::Create, kind, "", "", Some(object.clone()))
    }

    fn patch(&mut self, patch: Value, subresource: &str) -> String {
        let main = self.main.clone();
        self.ask(Verb::Patch(PatchType::Merge), "Rollout", &main, subresource, Some(patch))
    }

    fn rollout(&self) -> Value {
        self.get("Rollout", &self.main).unwrap_or_default()
    }

    /// The Rollout that an act is about.
    fn meant(&self, arguments: &Value) -> Value {
        self.get("Rollout", arguments["rollout"].as_str().unwrap_or(&self.main)).unwrap_or_default()
    }

    fn revision(&self, revision: &Value) -> Option<Value> {
        let wanted = revision.to_string().replace('"', "");
        let uid = self.rollout()["metadata"]["uid"].clone();
        self.all("ReplicaSet").into_iter().find(|set| {
            set["metadata"]["annotations"]["rollout.argoproj.io/revision"] == wanted.as_str()
                && set["metadata"]["ownerReferences"][0]["uid"] == uid
        })
    }

    fn act(&mut self, what: &str, arguments: &Value) -> String {
        match what {
            "apply" => {
                let objects = arguments.as_array().cloned().unwrap_or_else(|| vec![arguments.clone()]);
                let flat = objects.into_iter().flat_map(|object| match object {
                    Value::Array(several) => several,
                    one => vec![one],
                });
                flat.map(|object| self.apply(&expand(&object))).next_back().unwrap_or_default()
            }
            "patch" => self.patch_any(arguments),
            "delete" => {
                let kind = arguments["kind"].as_str().unwrap_or("Rollout").to_owned();
                let Some(name) = self.named(arguments) else { return "cannot".into() };
                let options = arguments["propagation"].as_str().map(|policy| json!({"propagationPolicy": policy}));
                self.ask(Verb::Delete, &kind, &name, "", options)
            }
            "set-image" => self.set_image(arguments),
            "promote" | "resume" => self.promote(arguments),
            "pause" => self.patch(json!({"spec": {"paused": true}}), ""),
            "abort" => self.patch(json!({"status": {"abort": true}}), "status"),
            "retry" => self.patch(json!({"status": {"abort": false}}), "status"),
            "restart" => {
                let at = self.local.now() + SignedDuration::from_secs(arguments["in"].as_i64().unwrap_or_default());
                let at = format!("{}Z", &at.to_string()[..19]);
                self.patch(json!({"spec": {"restartAt": at}}), "")
            }
            "undo" => self.undo(arguments),
            "scale" => self.scale(arguments),
            "delete-pod" => {
                let pods = self.pods(arguments);
                pods.iter().for_each(|pod| drop(self.ask(Verb::Delete, "Pod", pod, "", None)));
                format!("ok {}", pods.len())
            }
            "unready-pod" => self.unready(arguments),
            "sleep" => {
                self.pass_time((arguments.as_f64().unwrap() * 1000.0) as i64);
                "ok".into()
            }
            "quiet" => {
                let seconds = arguments.as_f64().or(arguments["for"].as_f64()).unwrap();
                let limit = arguments["timeout"].as_i64().unwrap_or(30) * 1000;
                if self.quiet((seconds * 1000.0) as i64, limit) { "ok".into() } else { "timeout".into() }
            }
            "controller" => {
                if arguments != "start" {
                    self.local.kill();
                }
                if arguments == "restart" {
                    self.pass_time(500);
                }
                if arguments != "kill" {
                    self.local.start();
                }
                "ok".into()
            }
            "wait" => self.wait(arguments),
            other => panic!("no act {other}"),
        }
    }

    fn named(&self, arguments: &Value) -> Option<String> {
        if !arguments["revision"].is_null() {
            return Some(self.revision(&arguments["revision"])?["metadata"]["name"].as_str()?.to_owned());
        }
        Some(arguments["name"].as_str().unwrap_or(&self.main).to_owned())
    }

    fn patch_any(&mut self, arguments: &Value) -> String {
        let kind = arguments["kind"].as_str().unwrap_or("Rollout").to_owned();
        let Some(name) = self.named(arguments) else { return "cannot".into() };
        let patch = match arguments["type"].as_str() {
            Some("json") => PatchType::Json,
            Some("strategic-merge") => PatchType::Strategic,
            _ => PatchType::Merge,
        };
        let subresource = arguments["subresource"].as_str().unwrap_or_default().to_owned();
        self.ask(Verb::Patch(patch), &kind, &name, &subresource, Some(arguments["patch"].clone()))
    }

    fn set_image(&mut self, arguments: &Value) -> String {
        let image = arguments.as_str().or(arguments["image"].as_str()).unwrap();
        let rollout = self.meant(arguments);
        let reference = rollout["spec"]["workloadRef"]["name"].as_str();
        let (kind, mut object) = match reference {
            Some(name) => ("Deployment", self.get("Deployment", name).unwrap_or_default()),
            None => ("Rollout", rollout.clone()),
        };
        for list in ["initContainers", "containers"] {
            for container in object["spec"]["template"]["spec"][list].as_array_mut().into_iter().flatten() {
                container["image"] = image.into();
            }
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.ask(Verb::Update, kind, &name, "", Some(object))
    }

    fn promote(&mut self, arguments: &Value) -> String {
        let rollout = self.rollout();
        let (spec, status) = (&rollout["spec"], &rollout["status"]);
        let steps = spec["strategy"]["canary"]["steps"].as_array().map_or(0, Vec::len) as i64;
        let index = (steps > 0).then(|| status["currentStepIndex"].as_i64().unwrap_or_default());
        let is_paused = status["pauseConditions"].as_array().is_some_and(|pauses| !pauses.is_empty());
        let resumes = spec["paused"] == true && arguments["skip"].is_null();
        let change = if arguments["skip"] == "step" {
            index.map(|index| json!({"currentStepIndex": (index + 1).min(steps)}))
        } else if arguments["skip"] == "all" {
            Some(json!({"currentStepIndex": steps}))
        } else if arguments["full"] == true {
            (status["currentPodHash"] != status["stableRS"]).then(|| json!({"promoteFull": true}))
        } else if is_paused {
            Some(json!({"pauseConditions": null}))
        } else {
            let next = |index: i64| if index < steps { index + 1 } else { index };
            index.map(|index| json!({"pauseConditions": null, "currentStepIndex": next(index)}))
        };
        let mut result = "ok".to_owned();
        if let Some(status) = change {
            result = self.patch(json!({"status": status}), "status");
        }
        if resumes {
            result = self.patch(json!({"spec": {"paused": false}}), "");
        }
        result
    }

    fn undo(&mut self, arguments: &Value) -> String {
        let rollout = self.rollout();
        let uid = &rollout["metadata"]["uid"];
        let number = |set: &Value| {
            let text = set["metadata"]["annotations"]["rollout.argoproj.io/revision"].as_str().unwrap_or("0");
            text.parse::<i64>().unwrap_or_default()
        };
        let mut sets = self.all("ReplicaSet");
        sets.retain(|set| set["metadata"]["ownerReferences"][0]["uid"] == *uid);
        sets.sort_by_key(number);
        let wanted = match arguments["to"].as_i64() {
            Some(to) => sets.iter().find(|set| number(set) == to),
            None => sets.len().checked_sub(2).and_then(|index| sets.get(index)),
        };
        let Some(set) = wanted else { return "cannot: no such revision".into() };
        let mut template = set["spec"]["template"].clone();
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove("rollouts-pod-template-hash");
        }
        let patch = json!([{"op": "replace", "path": "/spec/template", "value": template}]);
        let main = self.main.clone();
        match rollout["spec"]["workloadRef"]["name"].as_str() {
            Some(name) => self.ask(Verb::Patch(PatchType::Json), "Deployment", name, "", Some(patch)),
            None => self.ask(Verb::Patch(PatchType::Json), "Rollout", &main, "", Some(patch)),
        }
    }

    fn scale(&mut self, arguments: &Value) -> String {
        let replicas = arguments.as_i64().or(arguments["replicas"].as_i64()).unwrap();
        let kind = arguments["kind"].as_str().unwrap_or("Rollout").to_owned();
        let name = arguments["name"].as_str().unwrap_or(&self.main).to_owned();
        let patch = json!({"spec": {"replicas": replicas}});
        self.ask(Verb::Patch(PatchType::Merge), &kind, &name, "scale", Some(patch))
    }

    fn pods(&self, arguments: &Value) -> Vec<String> {
        let Some(set) = self.revision(&arguments["revision"]) else { return Vec::new() };
        let mut pods: Vec<String> = self
            .all("Pod")
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .filter(|pod| pod["metadata"]["ownerReferences"][0]["name"] == set["metadata"]["name"])
            .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        pods.sort();
        pods.truncate(arguments["count"].as_u64().unwrap_or(1) as usize);
        pods
    }

    fn unready(&mut self, arguments: &Value) -> String {
        let pods = self.pods(arguments);
        let status = if arguments["ready"] == true { "True" } else { "False" };
        let now = format!("{}Z", &self.local.now().to_string()[..19]);
        let condition = json!({"type": "Ready", "status": status, "lastTransitionTime": now});
        let patch = json!({"status": {"conditions": [condition]}});
        for pod in &pods {
            self.ask(Verb::Patch(PatchType::Strategic), "Pod", pod, "status", Some(patch.clone()));
            // A person is not faster.
            self.pass_time(10);
        }
        format!("ok {}", pods.len())
    }

    fn wait(&mut self, arguments: &Value) -> String {
        let limit = arguments["timeout"].as_i64().unwrap_or(20) * 1000;
        if !self.until(limit, |player| player.holds(arguments)) {
            return "timeout".into();
        }
        if arguments["now"] != true {
            self.quiet(500, 4000);
        }
        "ok".into()
    }

    fn holds(&self, arguments: &Value) -> bool {
        let kind = arguments["kind"].as_str().unwrap_or("Rollout");
        let name = arguments["name"].as_str();
        let revision = &arguments["revision"];
        let is_meant = |object: &&Value| {
            let own = object["metadata"]["name"].as_str().unwrap_or_default();
            let named = name.map_or(kind != "Rollout" || own == self.main, |name| glob(name, own));
            let noted = object["metadata"]["annotations"]["rollout.argoproj.io/revision"].as_str();
            named && (revision.is_null() || noted == Some(revision.to_string().replace('"', "").as_str()))
        };
        let objects = self.all(kind);
        let meant: Vec<&Value> = objects.iter().filter(is_meant).collect();
        if arguments["gone"] == true {
            return meant.is_empty();
        }
        let fitting = meant.iter().filter(|object| self.fits(kind, arguments, object)).count();
        fitting as u64 >= arguments["count"].as_u64().unwrap_or(1)
    }

    fn fits(&self, kind: &str, arguments: &Value, object: &Value) -> bool {
        let status = &object["status"];
        if kind == "Rollout" && arguments["observed"] != false {
            let generation = object["metadata"]["generation"].to_string();
            if status["observedGeneration"].as_str() != Some(generation.as_str()) {
                return false;
            }
            if let Some(name) = object["spec"]["workloadRef"]["name"].as_str()
                && let Some(workload) = self.get("Deployment", name)
                && status["workloadObservedGeneration"].as_str()
                    != Some(workload["metadata"]["generation"].to_string().as_str())
            {
                return false;
            }
        }
        arguments.as_object().unwrap().iter().all(|(key, want)| match key.as_str() {
            "phase" => matches(want, &status["phase"]),
            "step" => matches(want, &status["currentStepIndex"]),
            "message" => status["message"].as_str().unwrap_or_default().contains(want.as_str().unwrap()),
            "abort" => (status["abort"] == true) == (*want == true),
            "stable" => {
                status["stableRS"].as_str().is_some_and(|hash| !hash.is_empty())
                    && status["stableRS"] == status["currentPodHash"]
            }
            "replicas" => matches(want, &status["replicas"]),
            "updated" => matches(want, &status["updatedReplicas"]),
            "ready" => matches(want, &status["readyReplicas"]),
            "available" => matches(want, &status["availableReplicas"]),
            "pause" => {
                let pauses = status["pauseConditions"].as_array().cloned().unwrap_or_default();
                if want.is_null() { pauses.is_empty() } else { pauses.iter().any(|pause| pause["reason"] == *want) }
            }
            "condition" => {
                let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
                let found =
                    conditions.into_iter().find(|condition| condition["type"] == want["type"]).unwrap_or_default();
                let same = |key: &str| want[key].is_null() || text(&want[key]) == text(&found[key]);
                same("status")
                    && same("reason")
                    && want["message"]
                        .as_str()
                        .is_none_or(|part| found["message"].as_str().unwrap_or_default().contains(part))
            }
            "where" => want.as_object().unwrap().iter().all(|(path, want)| matches(want, &dig(object, path))),
            _ => true,
        })
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        other => other.as_str().map_or_else(|| other.to_string(), str::to_owned),
    }
}

fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.starts_with(head) && text.ends_with(tail),
    }
}

fn dig(object: &Value, path: &str) -> Value {
    let path = path.replace('[', ".").replace(']', "");
    path.split('.').fold(object.clone(), |value, key| match key.parse::<usize>() {
        Ok(index) if value.is_array() => value[index].clone(),
        _ => value[key.replace('~', ".")].clone(),
    })
}

fn matches(want: &Value, got: &Value) -> bool {
    if let Some(map) = want.as_object() {
        return match map.iter().next() {
            Some((key, any)) if key == "in" => any.as_array().unwrap().contains(got),
            Some((key, least)) if key == "min" => got.as_i64().unwrap_or_default() >= least.as_i64().unwrap(),
            Some((key, part)) if key == "contains" => got.as_str().unwrap_or_default().contains(part.as_str().unwrap()),
            Some((key, exists)) if key == "exists" => got.is_null() != (*exists == true),
            _ => want == got,
        };
    }
    match (want, got) {
        (Value::Number(_), Value::Null) => want.as_i64() == Some(0),
        (Value::Bool(want), Value::Null) => !want,
        _ => want == got,
    }
}

/// The short forms of objects; a manifest is left as it is.
fn expand(entry: &Value) -> Value {
    if entry.get("kind").is_some() {
        return entry.clone();
    }
    let (what, given) = entry.as_object().unwrap().iter().next().unwrap();
    let given = if given.is_string() { json!({"name": given}) } else { given.clone() };
    let name = given["name"].as_str().unwrap_or("web");
    let mut metadata = json!({"name": name});
    merge(&mut metadata, &given["metadata"]);
    let app = given["app"].as_str().unwrap_or(name);
    match what.as_str() {
        "rollout" => {
            let replicas = given.get("replicas").cloned().unwrap_or(json!(2));
            let mut spec = json!({"replicas": replicas, "selector": {"matchLabels": {"app": app}},
                "template": template(&given, app), "strategy": given["strategy"]});
            for (key, value) in given["spec"].as_object().into_iter().flatten() {
                spec[key] = value.clone();
            }
            spec.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": metadata, "spec": spec})
        }
        "deployment" => json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
            "replicas": given.get("replicas").cloned().unwrap_or(json!(2)),
            "selector": {"matchLabels": {"app": app}}, "template": template(&given, app)}}),
        "service" => json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {
            "type": given.get("type").cloned().unwrap_or(json!("ClusterIP")),
            "selector": given.get("selector").cloned().unwrap_or(json!({"app": "web"})),
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}}),
        other => panic!("no short form {other}"),
    }
}

fn template(given: &Value, app: &str) -> Value {
    let mut container = json!({"name": "app", "image": given.get("image").cloned().unwrap_or(json!("app:v1"))});
    for key in ["command", "args", "readinessProbe", "lifecycle", "ports", "env"] {
        if let Some(value) = given.get(key) {
            container[key] = value.clone();
        }
    }
    let mut template = json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}});
    merge(&mut template["metadata"]["labels"], &given["podLabels"]);
    merge(&mut template["spec"], &given["podSpec"]);
    if let Some(annotations) = given.get("podAnnotations") {
        template["metadata"]["annotations"] = annotations.clone();
    }
    template
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}
