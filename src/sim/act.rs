//! The acts of a story: what people do, what the world does, what goes wrong, and what is waited for.
//!
//! | act | what happens |
//! |---|---|
//! | `apply`, `patch`, `delete`, `scale` | as with `kubectl` |
//! | `orphan` (`patch`) | the Rollout is deleted, its objects are orphaned, and it is created again with the same labels and specification |
//! | `recreate` (`policy`) | the Rollout is deleted by this policy and created again as soon as it is gone |
//! | `reset` (`object`, `after`) | an object is deleted and created again as its manifest has it |
//! | `delete-runs` | every AnalysisRun is deleted |
//! | `reset-service`, `unhash-service`, `edit-service` (`revision`) | a Service is deleted and created again as its manifest has it; its hash is taken out, or set to that of a revision |
//! | `set-image`, `promote` (`full`, `skip: step` or `all`), `pause`, `resume`, `abort`, `retry`, `undo` (`to`), `restart` (`in`), `terminate` | as with the plugin |
//! | `delete-pod`, `unready-pod` | `count` pods of a `revision` go, or lose their readiness (or, with `ready: true`, regain it) |
//! | `web: {path: answer}` | what the web answers to metrics from now on; of a list one after the other |
//! | `controller: kill`, `start` or `restart` | the engine dies, is started, or both |
//! | `controller: stop` or `continue` | the engine stands still and goes on, with all it knew |
//! | `edit-route: [100, 0]` | the weights of the VirtualService are changed by hand |
//! | `meanwhile: {write: 2, patch: …}` | a person's patch arrives just before the engine's next write but 2 |
//! | `weather: {lag: 0.5, breaks: 100, writes: 100}`, `weather: fair` | watches lag and break off, writes fail, by chance in a thousand |
//! | `fail: conflict`, `busy`, `error`, `lost` or `crash` | the engine's next write (or `times`) goes wrong |
//! | `sleep`, `quiet`, `resync` | time passes; nothing changed for so long; every Rollout is looked at again |
//! | `wait`, `expect` | something becomes so in time, or is so now |
//! | `floor: 3` | from now on so many pods of the namespace must be available; `floor: 0` ends it |
//! | `sizes: {"1": 3}` | the ReplicaSet of a revision wants so many pods now |
//!
//! Never judges: what an act came to is for whoever plays it.

use jiff::SignedDuration;

use super::{
    faults::{Dice, Fault, Weather},
    objects::{self, REVISION, dig, glob, matches, text},
    story::{self, Player, several},
};
use crate::{
    api::constants::label::POD_TEMPLATE_HASH as HASH,
    embedded::store::request::{PatchType, Verb},
    kubernetes::{
        clock::rfc3339,
        patch,
        value::{Map, Value},
    },
    value,
};

/// Does an act; answers how it ended.
pub(super) fn perform(player: &mut Player, what: &str, arguments: &Value) -> String {
    match what {
        "apply" => {
            let objects = several(arguments).iter().flat_map(|object| several(object).to_vec());
            let results = objects.map(|object| player.apply(&objects::expand(&object)));
            results.last().unwrap_or_default()
        }
        "patch" => player.patch_any(arguments),
        "delete" => {
            let kind = arguments.str_at(&["kind"]).unwrap_or("Rollout");
            let Some(name) = player.named(arguments) else { return "cannot".into() };
            let options = arguments.str_at(&["propagation"]).map(|policy| value!({"propagationPolicy": policy}));
            player.ask(Verb::Delete, kind, &name, "", options)
        }
        "orphan" => player.recreate("Orphan", arguments.get("patch")),
        "recreate" => player.recreate(arguments.str_at(&["policy"]).unwrap_or("Background"), arguments.get("patch")),
        "reset" => player.reset(arguments.get("object").unwrap_or(&Value::Null), arguments.get("after")),
        "reset-service" => {
            let name = arguments.as_str().or(arguments.str_at(&["name"])).unwrap_or_default();
            player.reset(&value!({"service": name}), arguments.get("after"))
        }
        "delete-runs" => {
            let runs = player.all("AnalysisRun");
            let names = runs.iter().filter_map(|run| run.str_at(&["metadata", "name"]));
            names.for_each(|run| drop(player.ask(Verb::Delete, "AnalysisRun", run, "", None)));
            format!("ok {}", runs.len())
        }
        "unhash-service" => {
            let patch = value!({"spec": {"selector": {HASH: null}}});
            player.ask(
                Verb::Patch(PatchType::Merge),
                "Service",
                arguments.as_str().unwrap_or_default(),
                "",
                Some(patch),
            )
        }
        "edit-service" => player.edit_service(arguments),
        "edit-route" => player.edit_route(arguments),
        "set-image" => player.set_image(arguments),
        "promote" | "resume" => player.promote(arguments),
        "pause" => player.patch(value!({"spec": {"paused": true}}), ""),
        "abort" => player.patch(value!({"status": {"abort": true}}), "status"),
        "retry" => match arguments.str_at(&["experiment"]).map(str::to_owned) {
            Some(name) => {
                let patch = Some(value!({"status": null}));
                player.ask(Verb::Patch(PatchType::Merge), "Experiment", &name, "", patch)
            }
            None => player.patch(value!({"status": {"abort": false}}), "status"),
        },
        "restart" => {
            let after = SignedDuration::from_secs(arguments.int_at(&["in"]).unwrap_or_default());
            let at = player.local.now().saturating_add(after).unwrap_or(jiff::Timestamp::MAX);
            player.patch(value!({"spec": {"restartAt": rfc3339(at).as_str()}}), "")
        }
        "terminate" => {
            let kind = arguments.str_at(&["kind"]).unwrap_or("AnalysisRun");
            let name = arguments.str_at(&["name"]).unwrap_or_default();
            let patch = Some(value!({"spec": {"terminate": true}}));
            player.ask(Verb::Patch(PatchType::Merge), kind, name, "", patch)
        }
        "undo" => player.undo(arguments),
        "scale" => player.scale(arguments),
        "delete-pod" => {
            let pods = player.pods(arguments);
            pods.iter().for_each(|pod| drop(player.ask(Verb::Delete, "Pod", pod, "", None)));
            format!("ok {}", pods.len())
        }
        "unready-pod" => player.unready(arguments),
        "web" => {
            player.local.web.set(arguments);
            "ok".into()
        }
        "fail" => player.fail(arguments),
        "meanwhile" => player.meanwhile(arguments),
        "weather" => player.weather(arguments),
        "controller" => player.controller(arguments.as_str().unwrap_or("restart")),
        "resync" => {
            player.local.resync();
            player.pass_time(0);
            "ok".into()
        }
        "sleep" => {
            player.pass_time(millis(arguments));
            "ok".into()
        }
        "quiet" => {
            let span = arguments.get("for").unwrap_or(arguments);
            let limit = arguments.int_at(&["timeout"]).unwrap_or(30) * 1000;
            if player.quiet(millis(span), limit) { "ok".into() } else { "timeout".into() }
        }
        "floor" => {
            player.floor = arguments.as_int().and_then(|least| usize::try_from(least).ok()).filter(|least| *least > 0);
            "ok".into()
        }
        "wait" => player.wait(arguments),
        "sizes" => {
            let mut wanted = arguments.as_map().into_iter().flat_map(Map::iter);
            let is_so = |(revision, size): (&crate::kubernetes::value::Text, &Value)| {
                let set = player.revision(&Value::from(revision));
                set.is_some_and(|set| set.at(&["spec", "replicas"]) == Some(size))
            };
            if wanted.all(is_so) { "ok" } else { "not so" }.into()
        }
        "expect" => if player.holds(arguments) { "ok" } else { "not so" }.into(),
        other => format!("no act {other}"),
    }
}

fn millis(seconds: &Value) -> i64 {
    let seconds = seconds.as_float().or(seconds.as_int().map(|whole| whole as f64)).unwrap_or_default();
    (seconds * 1000.0) as i64
}

impl Player {
    fn named(&self, arguments: &Value) -> Option<String> {
        if let Some(revision) = arguments.get("revision") {
            return Some(self.revision(revision)?.str_at(&["metadata", "name"])?.to_owned());
        }
        Some(arguments.str_at(&["name"]).unwrap_or(&self.main).to_owned())
    }

    fn patch_any(&mut self, arguments: &Value) -> String {
        let kind = arguments.str_at(&["kind"]).unwrap_or("Rollout");
        let Some(name) = self.named(arguments) else { return "cannot".into() };
        let patch = match arguments.str_at(&["type"]) {
            Some("json") => PatchType::Json,
            Some("strategic-merge") => PatchType::Strategic,
            _ => PatchType::Merge,
        };
        let subresource = arguments.str_at(&["subresource"]).unwrap_or_default();
        self.ask(Verb::Patch(patch), kind, &name, subresource, arguments.get("patch").cloned())
    }

    fn set_image(&mut self, arguments: &Value) -> String {
        let image = arguments.as_str().or(arguments.str_at(&["image"])).unwrap_or_default();
        let name = arguments.str_at(&["rollout"]).unwrap_or(&self.main);
        let rollout = self.get("Rollout", name).unwrap_or_default();
        let (kind, mut object) = match rollout.str_at(&["spec", "workloadRef", "name"]) {
            Some(name) => ("Deployment", self.get("Deployment", name).unwrap_or_default()),
            None => ("Rollout", rollout),
        };
        for list in ["initContainers", "containers"] {
            let path = ["spec", "template", "spec", list];
            let mut containers = object.list_at(&path).to_vec();
            if !containers.is_empty() {
                containers.iter_mut().for_each(|container| container.set_at(&["image"], image));
                object.set_at(&path, containers);
            }
        }
        let name = object.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
        self.ask(Verb::Update, kind, &name, "", Some(object))
    }

    /// Deletes the story's own Rollout and creates it again once it is gone.
    fn recreate(&mut self, policy: &str, patch: Option<&Value>) -> String {
        let (before, name) = (self.rollout(), self.main.clone());
        if before.is_null() {
            return "cannot".into();
        }
        let mut again = Value::object();
        for key in ["apiVersion", "kind", "spec"] {
            again.set_at(&[key], before.get(key).cloned().unwrap_or_default());
        }
        again.set_at(&["metadata", "name"], name.as_str());
        if let Some(labels) = before.at(&["metadata", "labels"]) {
            again.set_at(&["metadata", "labels"], labels.clone());
        }
        if let Some(patch) = patch {
            again = patch::merge(&again, patch);
        }
        let deleted = self.ask(Verb::Delete, "Rollout", &name, "", Some(value!({"propagationPolicy": policy})));
        if deleted != "ok" || !self.until(90_000, |player| player.rollout().is_null()) {
            return deleted;
        }
        self.ask(Verb::Create, "Rollout", "", "", Some(again))
    }

    fn reset(&mut self, short: &Value, after: Option<&Value>) -> String {
        let object = objects::expand(short);
        let (kind, name) = (object.str_at(&["kind"]), object.str_at(&["metadata", "name"]));
        let deleted = self.ask(Verb::Delete, kind.unwrap_or_default(), name.unwrap_or_default(), "", None);
        self.pass_time(after.map(millis).unwrap_or_default());
        let created = self.apply(&object);
        if deleted == "ok" { created } else { deleted }
    }

    fn edit_service(&mut self, arguments: &Value) -> String {
        let name = arguments.str_at(&["name"]).unwrap_or_default().to_owned();
        let set = arguments.get("revision").and_then(|revision| self.revision(revision));
        let hash = set.as_ref().and_then(|set| set.str_at(&["metadata", "labels", HASH]));
        let Some(hash) = hash else { return "cannot".into() };
        let patch = value!({"spec": {"selector": {HASH: hash}}});
        self.ask(Verb::Patch(PatchType::Merge), "Service", &name, "", Some(patch))
    }

    fn edit_route(&mut self, weights: &Value) -> String {
        let Some(mut object) = self.get("VirtualService", "vs") else { return "cannot".into() };
        let mut http = object.list_at(&["spec", "http"]).to_vec();
        let mut route = http.first().map(|rule| rule.list_at(&["route"]).to_vec()).unwrap_or_default();
        for (destination, weight) in route.iter_mut().zip(weights.as_list().unwrap_or_default()) {
            destination.set_at(&["weight"], weight.clone());
        }
        if let Some(rule) = http.first_mut() {
            rule.set_at(&["route"], route);
        }
        object.set_at(&["spec", "http"], http);
        self.ask(Verb::Update, "VirtualService", "vs", "", Some(object))
    }

    fn promote(&mut self, arguments: &Value) -> String {
        let rollout = self.rollout();
        let at = |path: &[&str]| rollout.at(path).cloned().unwrap_or_default();
        let steps = i64::try_from(rollout.list_at(&["spec", "strategy", "canary", "steps"]).len()).unwrap_or_default();
        let index = (steps > 0).then(|| rollout.int_at(&["status", "currentStepIndex"]).unwrap_or_default());
        let is_paused = !rollout.list_at(&["status", "pauseConditions"]).is_empty();
        let run = ["status", "canary", "currentStepAnalysisRunStatus", "status"];
        let is_inconclusive =
            rollout.str_at(&run) == Some("Inconclusive") && at(&["status", "controllerPause"]).as_bool() == Some(true);
        let skip = arguments.str_at(&["skip"]);
        let resumes = at(&["spec", "paused"]).as_bool() == Some(true) && skip.is_none();
        let change = if skip == Some("step") {
            index.map(|index| value!({"currentStepIndex": (index + 1).min(steps)}))
        } else if skip == Some("all") {
            Some(value!({"currentStepIndex": steps}))
        } else if arguments.get("full").and_then(Value::as_bool) == Some(true) {
            let differs = at(&["status", "currentPodHash"]) != at(&["status", "stableRS"]);
            differs.then(|| value!({"promoteFull": true}))
        } else if is_inconclusive && is_paused {
            let next = |index: i64| (index + 1).min(steps.max(index));
            index.map(
                |index| value!({"pauseConditions": null, "controllerPause": false, "currentStepIndex": next(index)}),
            )
        } else if is_paused {
            Some(value!({"pauseConditions": null}))
        } else {
            let next = |index: i64| if index < steps { index + 1 } else { index };
            index.map(|index| value!({"pauseConditions": null, "currentStepIndex": next(index)}))
        };
        let mut result = "ok".to_owned();
        if let Some(status) = change {
            result = self.patch(value!({"status": status}), "status");
        }
        if resumes {
            result = self.patch(value!({"spec": {"paused": false}}), "");
        }
        result
    }

    fn undo(&mut self, arguments: &Value) -> String {
        let rollout = self.rollout();
        let uid = rollout.str_at(&["metadata", "uid"]);
        let number = |set: &Value| {
            let text = set.str_at(&["metadata", "annotations", REVISION]).unwrap_or_default();
            text.parse::<i64>().unwrap_or_default()
        };
        let mut sets = self.all("ReplicaSet");
        sets.retain(|set| {
            let owner = set.list_at(&["metadata", "ownerReferences"]).first();
            owner.and_then(|owner| owner.str_at(&["uid"])) == uid
        });
        sets.sort_by_key(number);
        let wanted = match arguments.int_at(&["to"]) {
            Some(to) => sets.iter().find(|set| number(set) == to),
            None => sets.len().checked_sub(2).and_then(|index| sets.get(index)),
        };
        let Some(set) = wanted else { return "cannot: no such revision".into() };
        let mut template = set.at(&["spec", "template"]).cloned().unwrap_or_default();
        template.remove_at(&["metadata", "labels", "rollouts-pod-template-hash"]);
        let patch = value!([{"op": "replace", "path": "/spec/template", "value": template}]);
        let (kind, name) = match rollout.str_at(&["spec", "workloadRef", "name"]) {
            Some(name) => ("Deployment", name.to_owned()),
            None => ("Rollout", self.main.to_string()),
        };
        self.ask(Verb::Patch(PatchType::Json), kind, &name, "", Some(patch))
    }

    fn scale(&mut self, arguments: &Value) -> String {
        let replicas = arguments.as_int().or(arguments.int_at(&["replicas"])).unwrap_or_default();
        let kind = arguments.str_at(&["kind"]).unwrap_or("Rollout");
        let name = arguments.str_at(&["name"]).unwrap_or(&self.main).to_owned();
        self.ask(Verb::Patch(PatchType::Merge), kind, &name, "scale", Some(value!({"spec": {"replicas": replicas}})))
    }

    fn pods(&self, arguments: &Value) -> Vec<String> {
        let Some(set) = arguments.get("revision").and_then(|revision| self.revision(revision)) else {
            return Vec::new();
        };
        let set = set.str_at(&["metadata", "name"]);
        let is_its = |pod: &&Value| {
            let owner = pod.list_at(&["metadata", "ownerReferences"]).first();
            owner.and_then(|owner| owner.str_at(&["name"])) == set
                && pod.at(&["metadata", "deletionTimestamp"]).is_none_or(Value::is_null)
        };
        let pods = self.all("Pod");
        let names = pods.iter().filter(is_its).filter_map(|pod| pod.str_at(&["metadata", "name"]));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names.truncate(usize::try_from(arguments.int_at(&["count"]).unwrap_or(1)).unwrap_or_default());
        names
    }

    fn unready(&mut self, arguments: &Value) -> String {
        let pods = self.pods(arguments);
        let is_ready = arguments.get("ready").and_then(Value::as_bool) == Some(true);
        let status = if is_ready { "True" } else { "False" };
        let now = rfc3339(self.local.now());
        let condition = value!({"type": "Ready", "status": status, "lastTransitionTime": now.as_str()});
        let patch = value!({"status": {"conditions": [condition]}});
        for pod in &pods {
            self.ask(Verb::Patch(PatchType::Strategic), "Pod", pod, "status", Some(patch.clone()));
            // A person is not faster.
            self.pass_time(10);
        }
        format!("ok {}", pods.len())
    }

    fn fail(&mut self, arguments: &Value) -> String {
        let fault = match arguments.as_str().or(arguments.str_at(&["how"])) {
            Some("conflict") => Fault::Conflict,
            Some("busy") => Fault::Busy(SignedDuration::from_secs(arguments.int_at(&["after"]).unwrap_or(1))),
            Some("error") => Fault::Error,
            Some("lost") => Fault::Lost,
            Some("crash") => Fault::Crash(SignedDuration::from_secs(arguments.int_at(&["after"]).unwrap_or(1))),
            _ => return "no such failure".into(),
        };
        let times = u64::try_from(arguments.int_at(&["times"]).unwrap_or(1)).unwrap_or_default();
        self.spoil(&fault, times);
        "ok".into()
    }

    fn meanwhile(&mut self, arguments: &Value) -> String {
        let subresource = arguments.str_at(&["subresource"]).unwrap_or_default();
        let patch = arguments.get("patch").cloned();
        let verb = Verb::Patch(PatchType::Merge);
        let Some(request) = story::request(verb, "Rollout", &self.main, subresource, patch) else {
            return "cannot".into();
        };
        let number = self.local.writes() + u64::try_from(arguments.int_at(&["write"]).unwrap_or(0)).unwrap_or_default();
        self.local.faults.writes.insert(number, Fault::Meanwhile(Box::new(request)));
        "ok".into()
    }

    fn weather(&mut self, arguments: &Value) -> String {
        let number = |key: &str| u64::try_from(arguments.int_at(&[key]).unwrap_or_default()).unwrap_or_default();
        let lag = SignedDuration::from_millis(arguments.get("lag").map(millis).unwrap_or_default());
        let dice = Dice::new(number("seed"));
        let weather = Weather { dice, writes: number("writes"), lag, breaks: number("breaks") };
        self.local.faults.weather = arguments.as_map().map(|_| weather);
        "ok".into()
    }

    fn controller(&mut self, what: &str) -> String {
        match what {
            "stop" => self.local.stop(),
            "continue" => self.local.go_on(),
            _ => {}
        }
        if ["stop", "continue"].contains(&what) {
            return "ok".into();
        }
        if what != "start" {
            self.local.kill();
        }
        if what == "restart" {
            self.pass_time(500);
        }
        if what != "kill" {
            self.local.start();
        }
        "ok".into()
    }

    fn wait(&mut self, arguments: &Value) -> String {
        let limit = arguments.int_at(&["timeout"]).unwrap_or(20) * 1000;
        if !self.until(limit, |player| player.holds(arguments)) {
            return "timeout".into();
        }
        if arguments.get("now").and_then(Value::as_bool) != Some(true) {
            self.quiet(500, 4000);
        }
        "ok".into()
    }

    /// Whether the cluster is as `wait` and `expect` describe it.
    pub fn holds(&self, arguments: &Value) -> bool {
        let kind = arguments.str_at(&["kind"]).unwrap_or("Rollout");
        let (name, revision) = (arguments.str_at(&["name"]), arguments.get("revision").map(text));
        let is_meant = |object: &&Value| {
            let own = object.str_at(&["metadata", "name"]).unwrap_or_default();
            let named = name.map_or(kind != "Rollout" || own == self.main, |name| glob(name, own));
            let noted = object.str_at(&["metadata", "annotations", REVISION]);
            named && (revision.is_none() || noted == revision.as_deref())
        };
        let objects = self.all(kind);
        let mut meant = objects.iter().filter(is_meant);
        if arguments.get("gone").and_then(Value::as_bool) == Some(true) {
            return meant.next().is_none();
        }
        let fitting = i64::try_from(meant.filter(|object| self.fits(kind, arguments, object)).count());
        let fitting = fitting.unwrap_or(i64::MAX);
        match arguments.int_at(&["exactly"]) {
            Some(exactly) => fitting == exactly,
            None => fitting >= arguments.int_at(&["count"]).unwrap_or(1),
        }
    }

    /// Whether status is about the newest specification, and about the workload's.
    fn is_observed(&self, rollout: &Value) -> bool {
        let generation = |object: &Value| object.int_at(&["metadata", "generation"]).unwrap_or_default().to_string();
        if rollout.str_at(&["status", "observedGeneration"]) != Some(generation(rollout).as_str()) {
            return false;
        }
        let workload = rollout.str_at(&["spec", "workloadRef", "name"]).and_then(|name| self.get("Deployment", name));
        workload.is_none_or(|workload| {
            rollout.str_at(&["status", "workloadObservedGeneration"]) == Some(generation(&workload).as_str())
        })
    }

    fn fits(&self, kind: &str, arguments: &Value, object: &Value) -> bool {
        let wants_old = arguments.get("observed").and_then(Value::as_bool) == Some(false);
        if kind == "Rollout" && !wants_old && !self.is_observed(object) {
            return false;
        }
        let status = |key: &str| object.at(&["status", key]).cloned().unwrap_or_default();
        let wishes = arguments.as_map().into_iter().flat_map(Map::iter);
        wishes.into_iter().all(|(key, want)| match key.as_str() {
            "phase" => matches(want, &status("phase")),
            "step" => matches(want, &status("currentStepIndex")),
            "message" => status("message").as_str().unwrap_or_default().contains(want.as_str().unwrap_or_default()),
            "abort" => (status("abort").as_bool() == Some(true)) == (want.as_bool() == Some(true)),
            "stable" => {
                let stable = status("stableRS");
                stable.as_str().is_some_and(|hash| !hash.is_empty()) && stable == status("currentPodHash")
            }
            "replicas" => matches(want, &status("replicas")),
            "updated" => matches(want, &status("updatedReplicas")),
            "ready" => matches(want, &status("readyReplicas")),
            "available" => matches(want, &status("availableReplicas")),
            "pause" => {
                let pauses = object.list_at(&["status", "pauseConditions"]);
                let reason = |pause: &Value| pause.get("reason") == Some(want);
                if want.is_null() { pauses.is_empty() } else { pauses.iter().any(reason) }
            }
            "condition" => has_condition(object, want),
            "where" => {
                let paths = want.as_map().into_iter().flat_map(Map::iter);
                paths.into_iter().all(|(path, want)| matches(want, &dig(object, path)))
            }
            _ => true,
        })
    }
}

fn has_condition(object: &Value, want: &Value) -> bool {
    let conditions = object.list_at(&["status", "conditions"]);
    let found = conditions.iter().find(|condition| condition.get("type") == want.get("type"));
    let found = found.cloned().unwrap_or_default();
    let same =
        |key: &str| want.get(key).is_none_or(|wanted| text(wanted) == found.get(key).map(text).unwrap_or_default());
    let part = want.str_at(&["message"]).unwrap_or_default();
    same("status") && same("reason") && found.str_at(&["message"]).unwrap_or_default().contains(part)
}
