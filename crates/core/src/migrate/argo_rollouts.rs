//! What differs where Tidegate takes the place of Argo Rollouts' controller in a cluster: its flags, environment, plugins,
//! notifications and instance ids, what Rollouts ask for that is not there, and whether pods were made or lost meanwhile.
//!
//! Never reads the values of Secrets or of the environment, only their names.

use std::collections::{BTreeMap, BTreeSet};

use super::{Note, Weight};
use crate::{
    api::constants::label,
    kubernetes::value::{Map, Value},
    lint, manifest, value,
};

/// The name and the label of the controller's Deployment.
pub const NAME: &str = "argo-rollouts";
/// How Argo's manifests and chart label its pods.
pub const SELECTOR: &str = "app.kubernetes.io/name=argo-rollouts";
/// The ConfigMap with plugins.
pub const CONFIG: &str = "argo-rollouts-config";
/// The ConfigMap of notifications.
pub const NOTIFICATIONS: &str = "argo-rollouts-notification-configmap";
/// The Lease that both controllers take.
pub const LEASE: &str = "argo-rollouts-controller-lock";
/// How many replicas a controller had before it was scaled down.
pub const REPLICAS_BEFORE: &str = "tidegate.dev/replicas-before";

/// What is there, before anything is changed.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The controller's Deployment.
    pub controller: Value,
    /// Its ConfigMaps, by name.
    pub config_maps: BTreeMap<String, Value>,
    /// All Rollouts, AnalysisTemplates, ClusterAnalysisTemplates and Experiments.
    pub objects: Vec<Value>,
    /// The flags of our own daemon, if it is installed.
    pub ours: Option<Vec<String>>,
}

/// Flags of Argo's controller that the daemon takes under the same name and that must be given to it, too.
const SAME: &[&str] = &[
    "instance-id",
    "leader-election-lease-duration",
    "leader-election-renew-deadline",
    "leader-election-retry-period",
    "traffic-split-api-version",
    "istio-api-version",
    "ambassador-api-version",
    "traefik-api-group",
    "traefik-api-version",
    "appmesh-crd-version",
];

/// Those that mean nothing here: how Argo's controller works inside, or what is so anyway.
const INNER: &[&str] = &[
    "loglevel",
    "logformat",
    "kloglevel",
    "rollout-threads",
    "analysis-threads",
    "experiment-threads",
    "service-threads",
    "ingress-threads",
    "ephemeral-metadata-threads",
    "ephemeral-metadata-update-pod-retries",
    "rollout-resync",
    "qps",
    "burst",
    "leader-elect",
    "metricsport",
    "metricsPort",
    "healthzPort",
    "enable-pprof-address",
    "kubeconfig",
    // Only of use with --aws-verify-target-group.
    "aws-target-group-binding-api-version",
    "alb-tag-key-resource-id",
];

/// What will differ.
pub fn review(found: &Found) -> Vec<Note> {
    let mut notes = vec![version(&found.controller)];
    notes.extend(flags(found));
    notes.extend(environment(found));
    notes.extend(plugins(found));
    notes.extend(notifications(found));
    notes.extend(instances(found));
    notes.extend(unsupported(&found.objects));
    notes.retain(|note| !note.what.is_empty());
    notes
}

fn note(weight: Weight, object: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Note {
    Note { weight, at: None, object: object.into(), field: String::new(), what: what.into(), remedy: remedy.into() }
}

fn containers(controller: &Value) -> &[Value] {
    controller.list_at(&["spec", "template", "spec", "containers"])
}

fn place(object: &Value) -> String {
    let text = |key: &str| object.str_at(&["metadata", key]).unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}

fn called(object: &Value) -> String {
    format!("{} {}", object.str_at(&["kind"]).unwrap_or("object"), place(object))
}

/// The version that is replaced, from its image.
fn version(controller: &Value) -> Note {
    let image = containers(controller).iter().find_map(|one| one.str_at(&["image"])).unwrap_or_default();
    let tag = image.rsplit_once(':').map_or("", |(_, tag)| tag).split('@').next().unwrap_or_default();
    let number: Vec<u32> = tag.trim_start_matches('v').split('.').map_while(|part| part.parse().ok()).collect();
    let (what, remedy) = match number[..] {
        [1, minor @ 6..=10, ..] => {
            (format!("version 1.{minor} is replaced"), "what differs from 1.10 is in docs/differences.md")
        }
        _ if tag.is_empty() => {
            ("its image names no version".to_owned(), "1.10 is what Tidegate is compared with; see docs/differences.md")
        }
        _ => (
            format!("version {tag} is replaced"),
            "1.10 is what Tidegate is compared with; see what changed between the two",
        ),
    };
    note(Weight::Differs, called(controller), what, remedy)
}

/// The arguments of a Deployment's containers as pairs of a flag and its value.
pub fn arguments(deployment: &Value) -> Vec<(String, String)> {
    let words: Vec<&str> = containers(deployment)
        .iter()
        .flat_map(|one| one.list_at(&["command"]).iter().chain(one.list_at(&["args"])))
        .filter_map(Value::as_str)
        .collect();
    let mut found = Vec::new();
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => {
                let value = rest.next_if(|next| !next.starts_with('-')).map_or("true", |value| value);
                (flag.to_owned(), value.to_owned())
            }
        };
        found.push((name, value));
    }
    found
}

fn flags(found: &Found) -> Vec<Note> {
    let object = called(&found.controller);
    let is_given = |flag: &str, value: &str| {
        found.ours.as_ref().is_some_and(|ours| ours.iter().any(|one| *one == format!("--{flag}={value}")))
    };
    let mut notes = Vec::new();
    for (flag, value) in arguments(&found.controller) {
        if INNER.contains(&flag.as_str()) {
            continue;
        }
        let written = format!("--{flag}={value}");
        if SAME.contains(&flag.as_str()) {
            if !is_given(&flag, &value) {
                notes.push(note(
                    Weight::ToDo,
                    &object,
                    format!("it runs with {written}"),
                    "give the same flag to `tidegate run` (for --instance-id, to `tidegate install`)",
                ));
            }
            continue;
        }
        notes.push(match flag.as_str() {
            "namespaced" | "namespace" => {
                let namespace = found.controller.str_at(&["metadata", "namespace"]).unwrap_or_default();
                let watched = if flag == "namespace" { value.as_str() } else { namespace };
                if value == "false" || is_given("namespace", watched) {
                    continue;
                }
                note(
                    Weight::ToDo,
                    &object,
                    format!("it works in the namespace {watched} only"),
                    format!("`tidegate install --watch-namespace {watched}`"),
                )
            }
            "aws-verify-target-group" | "alb-verify-weight" => note(
                Weight::NoEquivalent,
                &object,
                format!("{written}: target groups of AWS are not asked whether they have taken a weight"),
                "go on without, or leave Rollouts with ALB to Argo Rollouts (by an instance id)",
            ),
            "self-service-notification-enabled" => continue,
            "alb-ingress-classes" | "nginx-ingress-classes" => note(
                Weight::Differs,
                &object,
                format!("{written}: every Ingress that a Rollout names is handled, whatever its class"),
                "nothing to do",
            ),
            _ => note(
                Weight::NoEquivalent,
                &object,
                format!("{written} is not known, and has no effect"),
                "see what it does, and whether you need that",
            ),
        });
    }
    notes
}

/// Variables that the daemon reads as well.
const ENVIRONMENT: &[&str] = &[
    "ARGO_ROLLOUTS_PROMETHEUS_ADDRESS",
    "ARGO_ROLLOUTS_ANALYSIS_JOB_NAMESPACE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_REGION",
];

fn environment(found: &Found) -> Vec<Note> {
    let all = containers(&found.controller).iter().flat_map(|one| one.list_at(&["env"]));
    let names = all.filter_map(|one| one.str_at(&["name"]));
    names
        .filter(|name| ENVIRONMENT.contains(name))
        .map(|name| {
            note(
                Weight::ToDo,
                called(&found.controller),
                format!("it has {name} in its environment"),
                "give the daemon's Deployment the same",
            )
        })
        .collect()
}

/// The plugin that is built in.
const BUILT_IN: &str = "argoproj-labs/gatewayAPI";

fn plugins(found: &Found) -> Vec<Note> {
    let Some(config) = found.config_maps.get(CONFIG) else { return Vec::new() };
    let used = found.objects.iter().map(Value::to_json).collect::<Vec<_>>();
    let mut notes = Vec::new();
    for kind in ["trafficRouterPlugins", "metricProviderPlugins", "stepPlugins"] {
        let Some(text) = config.str_at(&["data", kind]) else { continue };
        // It is a list of its own, in a text: the object around it is what reading needs.
        let indented: String = text.lines().map(|line| format!("  {line}\n")).collect();
        let file = manifest::read(CONFIG, format!("apiVersion: v1\nkind: x\nplugins:\n{indented}").as_bytes());
        let Some(list) = file.objects.first() else {
            notes.push(note(
                Weight::NoEquivalent,
                called(config),
                format!("{kind} cannot be read"),
                "see which plugins it names",
            ));
            continue;
        };
        for name in list.value.list_at(&["plugins"]).iter().filter_map(|plugin| plugin.str_at(&["name"])) {
            let is_used = used.iter().any(|object| object.contains(&format!("\"{name}\"")));
            notes.push(match (name == BUILT_IN, is_used) {
                (true, _) => note(
                    Weight::Differs,
                    called(config),
                    format!("{name} is built in: nothing is downloaded"),
                    "its settings in Rollouts stay as they are",
                ),
                (false, true) => note(
                    Weight::NoEquivalent,
                    called(config),
                    format!("the plugin {name} ({kind}) is in use, and is not run"),
                    "leave the Rollouts that use it to Argo Rollouts (by an instance id), or do without",
                ),
                (false, false) => note(
                    Weight::Differs,
                    called(config),
                    format!("the plugin {name} ({kind}) is not run; no Rollout or template names it"),
                    "nothing to do",
                ),
            });
        }
    }
    notes
}

fn notifications(found: &Found) -> Vec<Note> {
    let subscribed = |object: &&Value| {
        let notes = object.at(&["metadata", "annotations"]).and_then(Value::as_map);
        notes.into_iter().flat_map(Map::keys).any(|key| key.starts_with("notifications.argoproj.io/subscribe"))
    };
    let count = found.objects.iter().filter(subscribed).count();
    let defaults =
        found.config_maps.get(NOTIFICATIONS).is_some_and(|config| config.str_at(&["data", "subscriptions"]).is_some());
    if count == 0 && !defaults {
        return Vec::new();
    }
    let what = match defaults {
        true => "notifications are not sent, also those to the subscriptions of the ConfigMap".to_owned(),
        false => format!("notifications are not sent; {count} objects subscribe to some"),
    };
    vec![note(
        Weight::NoEquivalent,
        format!("ConfigMap {NOTIFICATIONS}"),
        what,
        "alert on events or metrics meanwhile (docs/metrics.md); the annotations do no harm",
    )]
}

/// Rollouts that the controller does not reconcile, because of their instance id.
fn instances(found: &Found) -> Vec<Note> {
    let own = arguments(&found.controller)
        .into_iter()
        .find(|(flag, _)| flag == "instance-id")
        .map(|(_, id)| id)
        .unwrap_or_default();
    let mut others: BTreeMap<&str, usize> = BTreeMap::new();
    for object in found.objects.iter().filter(|object| object.str_at(&["kind"]) == Some("Rollout")) {
        let id = object.str_at(&["metadata", "labels", label::INSTANCE_ID]).unwrap_or_default();
        if id != own {
            *others.entry(id).or_default() += 1;
        }
    }
    let said = others.into_iter().map(|(id, count)| {
        let id = if id.is_empty() { "no instance id".to_owned() } else { format!("the instance id {id}") };
        note(
            Weight::Differs,
            called(&found.controller),
            format!("{count} Rollouts have {id}, and belong to another controller"),
            "they are left alone, as they were",
        )
    });
    said.collect()
}

/// What objects ask for that the engine does not have: what lint says of them.
fn unsupported(objects: &[Value]) -> Vec<Note> {
    let files: Vec<manifest::File> =
        objects.iter().map(|object| manifest::read("the cluster", object.to_json().as_bytes())).collect();
    let names: Vec<String> = objects.iter().map(called).collect();
    let mut notes = Vec::new();
    for (file, name) in files.iter().zip(names) {
        let report = lint::lint(std::slice::from_ref(file));
        for finding in report.findings.into_iter().filter(|finding| finding.rule.name() == "not-supported") {
            notes.push(Note {
                field: finding.field,
                ..note(Weight::NoEquivalent, name.clone(), finding.what, finding.remedy)
            });
        }
        let across = objects_across(file.objects.first().map(|object| &object.value));
        if let Some(route) = across {
            let what = format!("it changes the VirtualService {route} of another namespace, which is refused");
            notes.push(note(
                Weight::ToDo,
                name.clone(),
                what,
                "give the daemon --allow-cross-namespace-routes, if its author may change that",
            ));
        }
    }
    notes
}

/// A VirtualService of another namespace that a Rollout changes.
fn objects_across(rollout: Option<&Value>) -> Option<String> {
    let rollout = rollout?;
    let istio = rollout.at(&["spec", "strategy", "canary", "trafficRouting", "istio"])?;
    let one = istio.str_at(&["virtualService", "name"]);
    let several = istio.list_at(&["virtualServices"]).iter().filter_map(|one| one.str_at(&["name"]));
    let own = rollout.str_at(&["metadata", "namespace"]).unwrap_or_default();
    let mut all = one.into_iter().chain(several);
    all.find(|name| name.split_once('.').is_some_and(|(_, namespace)| namespace != own)).map(str::to_owned)
}

/// The pods of Rollouts, by Rollout: whoever makes or ends one is seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// The uids of the pods of each Rollout, and its phase.
    pub rollouts: BTreeMap<String, (String, BTreeSet<String>)>,
}

impl Census {
    /// The pods of Rollouts that are not being deleted.
    pub fn of(rollouts: &[Value], sets: &[Value], pods: &[Value]) -> Census {
        let owner = |object: &Value| {
            let owners = object.list_at(&["metadata", "ownerReferences"]).iter();
            let mut controllers = owners.filter(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
            controllers.next().and_then(|owner| owner.str_at(&["uid"])).map(str::to_owned)
        };
        let uid = |object: &Value| object.str_at(&["metadata", "uid"]).unwrap_or_default().to_owned();
        let owner_of_set: BTreeMap<String, String> =
            sets.iter().filter_map(|set| Some((uid(set), owner(set)?))).collect();
        let mut census = Census::default();
        let names: BTreeMap<String, String> = rollouts.iter().map(|rollout| (uid(rollout), place(rollout))).collect();
        for rollout in rollouts {
            let phase = rollout.str_at(&["status", "phase"]).unwrap_or_default().to_owned();
            census.rollouts.insert(place(rollout), (phase, BTreeSet::new()));
        }
        for pod in pods.iter().filter(|pod| pod.at(&["metadata", "deletionTimestamp"]).is_none()) {
            let name = owner(pod).and_then(|set| owner_of_set.get(&set)).and_then(|rollout| names.get(rollout));
            if let Some((_, pods)) = name.and_then(|name| census.rollouts.get_mut(name)) {
                pods.insert(uid(pod));
            }
        }
        census
    }

    /// How many pods there are.
    pub fn pods(&self) -> usize {
        self.rollouts.values().map(|(_, pods)| pods.len()).sum()
    }

    /// What has become of each Rollout since: pods made and lost. One that was moving may do so by itself.
    pub fn since(&self, before: &Census) -> Vec<Moved> {
        let mut moved = Vec::new();
        for (name, (phase, was)) in &before.rollouts {
            let empty = (String::new(), BTreeSet::new());
            let (now, is) = self.rollouts.get(name).unwrap_or(&empty);
            let (made, lost) = (is.difference(was).count(), was.difference(is).count());
            if made + lost > 0 || now != phase {
                let was_moving = phase == "Progressing";
                moved.push(Moved {
                    rollout: name.clone(),
                    phases: (phase.clone(), now.clone()),
                    made,
                    lost,
                    was_moving,
                });
            }
        }
        moved
    }
}

/// What has become of a Rollout meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Its namespace and name.
    pub rollout: String,
    /// Its phase before and now.
    pub phases: (String, String),
    /// Pods that were not there before.
    pub made: usize,
    /// Pods that are no longer there.
    pub lost: usize,
    /// Whether it was on its way before: then pods are made and ended by its own steps.
    pub was_moving: bool,
}

/// Whether the Lease is free at a moment, and if not, for how many more seconds its holder is believed in.
pub fn lease_holds(lease: Option<&Value>, now: jiff::Timestamp) -> Option<(String, i64)> {
    let lease = lease?;
    let holder = lease.str_at(&["spec", "holderIdentity"]).filter(|holder| !holder.is_empty())?;
    let seconds = lease.int_at(&["spec", "leaseDurationSeconds"]).unwrap_or(15);
    let renewed: jiff::Timestamp = lease.str_at(&["spec", "renewTime"])?.parse().ok()?;
    let left = seconds - now.duration_since(renewed).as_secs();
    (left > 0).then(|| (holder.to_owned(), left))
}

/// The patch (merge) that scales a controller down and remembers how many replicas it had.
pub fn scaled_down(deployment: &Value) -> Value {
    let replicas = deployment.int_at(&["spec", "replicas"]).unwrap_or(1);
    let mut patch = value!({"spec": {"replicas": 0}});
    if replicas > 0 {
        patch.set_at(&["metadata", "annotations", REPLICAS_BEFORE], replicas.to_string());
    }
    patch
}

/// The patch (merge) that gives a controller its replicas back, and how many they are.
pub fn scaled_up(deployment: &Value, default: i64) -> (Value, i64) {
    let noted = deployment.str_at(&["metadata", "annotations", REPLICAS_BEFORE]).and_then(|text| text.parse().ok());
    let replicas = noted.filter(|replicas| *replicas > 0).unwrap_or(default);
    let mut patch = value!({"spec": {"replicas": replicas}});
    patch.set_at(&["metadata", "annotations", REPLICAS_BEFORE], Value::Null);
    (patch, replicas)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller(args: &[&str]) -> Value {
        let args = Value::list(args.iter().map(|arg| Value::from(*arg)));
        value!({
            "kind": "Deployment", "metadata": {"name": "argo-rollouts", "namespace": "argo-rollouts"},
            "spec": {"replicas": 2, "template": {"spec": {"containers": [{
                "image": "quay.io/argoproj/argo-rollouts:v1.8.3", "args": args,
                "env": [{"name": "ARGO_ROLLOUTS_PROMETHEUS_ADDRESS", "value": "http://secret"}, {"name": "HOME", "value": "/"}],
            }]}}},
        })
    }

    fn rollout(name: &str, spec: Value) -> Value {
        value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
    }

    #[track_caller]
    fn check(found: &Found, expected: &[&str]) {
        let said: Vec<String> = review(found)
            .iter()
            .map(|note| format!("{} {}", super::super::report::word(note.weight), note.what))
            .collect();
        assert_eq!(said, expected);
    }

    #[test]
    fn flags_and_environment_are_named_if_they_matter() {
        let base = ["differs version 1.8 is replaced"];
        let environment = ["to do it has ARGO_ROLLOUTS_PROMETHEUS_ADDRESS in its environment"];
        for (args, ours, expected) in [
            (&["--loglevel", "debug", "--leader-elect"][..], None, &[][..]),
            (&["--instance-id", "blue"], None, &["to do it runs with --instance-id=blue"]),
            (&["--instance-id=blue"], Some(vec!["run".to_owned(), "--instance-id=blue".to_owned()]), &[]),
            (&["--namespaced"], None, &["to do it works in the namespace argo-rollouts only"]),
            (
                &["--aws-verify-target-group"],
                None,
                &[
                    "no equivalent --aws-verify-target-group=true: target groups of AWS are not asked whether they have taken a weight",
                ],
            ),
            (&["--brand-new=1"], None, &["no equivalent --brand-new=1 is not known, and has no effect"]),
        ] {
            let found = Found { controller: controller(args), ours, ..Found::default() };
            check(&found, &[&base[..], expected, &environment].concat());
        }
    }

    #[test]
    fn plugins_and_notifications_are_named_if_they_are_used() {
        let mut config = value!({"kind": "ConfigMap", "metadata": {"name": CONFIG, "namespace": "argo-rollouts"}});
        let routers =
            "- name: argoproj-labs/gatewayAPI\n  location: https://x\n- name: example/router\n  location: https://y\n";
        config.set_at(&["data", "trafficRouterPlugins"], routers);
        config.set_at(&["data", "stepPlugins"], "- name: example/step\n  location: file://z");
        let mut subscribed =
            rollout("web", value!({"strategy": {"canary": {"steps": [{"plugin": {"name": "example/step"}}]}}}));
        subscribed.set_at(
            &["metadata", "annotations", "notifications.argoproj.io/subscribe.on-rollout-completed.slack"],
            "a",
        );
        let found = Found {
            controller: controller(&[]),
            config_maps: BTreeMap::from([(CONFIG.to_owned(), config)]),
            objects: vec![subscribed],
            ours: None,
        };
        let said: Vec<String> = review(&found).iter().map(|note| note.what.clone()).collect();
        assert_eq!(
            said[2..6],
            [
                "argoproj-labs/gatewayAPI is built in: nothing is downloaded",
                "the plugin example/router (trafficRouterPlugins) is not run; no Rollout or template names it",
                "the plugin example/step (stepPlugins) is in use, and is not run",
                "notifications are not sent; 1 objects subscribe to some",
            ]
        );
        assert!(!review(&found).iter().any(|note| format!("{note:?}").contains("http://secret")));
    }

    #[test]
    fn rollouts_of_other_controllers_are_left_alone() {
        let mut other = rollout("api", value!({"strategy": {"canary": {}}}));
        other.set_at(&["metadata", "labels", label::INSTANCE_ID], "green");
        let found = Found { controller: controller(&[]), objects: vec![other], ..Found::default() };
        let said: Vec<String> = review(&found).iter().map(|note| note.what.clone()).collect();
        assert!(
            said.contains(&"1 Rollouts have the instance id green, and belong to another controller".to_owned()),
            "{said:?}"
        );
    }

    #[test]
    fn a_census_sees_every_pod_that_comes_or_goes() {
        let owned = |name: &str, uid: &str, owner: &str| value!({"metadata": {"name": name, "namespace": "shop", "uid": uid, "ownerReferences": [{"uid": owner, "controller": true}]}});
        let rollouts =
            [value!({"metadata": {"name": "web", "namespace": "shop", "uid": "r"}, "status": {"phase": "Paused"}})];
        let sets = [owned("web-1", "s", "r")];
        let before =
            Census::of(&rollouts, &sets, &[owned("a", "a", "s"), owned("b", "b", "s"), owned("c", "c", "other")]);
        assert_eq!(before.pods(), 2);
        assert_eq!(before.since(&before), []);
        let after = Census::of(&rollouts, &sets, &[owned("a", "a", "s"), owned("d", "d", "s")]);
        let moved = Moved {
            rollout: "shop/web".into(),
            phases: ("Paused".into(), "Paused".into()),
            made: 1,
            lost: 1,
            was_moving: false,
        };
        assert_eq!(after.since(&before), [moved]);
    }

    #[test]
    fn a_lease_holds_until_it_expires() {
        let now: jiff::Timestamp = "2026-01-01T10:00:10Z".parse().unwrap();
        let lease = |holder: &str, renewed: &str| value!({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}});
        assert_eq!(lease_holds(None, now), None);
        assert_eq!(lease_holds(Some(&lease("", "2026-01-01T10:00:09.000000Z")), now), None);
        assert_eq!(lease_holds(Some(&lease("a", "2026-01-01T09:59:50.000000Z")), now), None);
        assert_eq!(lease_holds(Some(&lease("a", "2026-01-01T10:00:05.000000Z")), now), Some(("a".to_owned(), 10)));
    }

    #[test]
    fn a_controller_gets_its_replicas_back() {
        let down = scaled_down(&controller(&[]));
        assert_eq!(down.str_at(&["metadata", "annotations", REPLICAS_BEFORE]), Some("2"));
        assert_eq!(scaled_up(&down, 1).1, 2);
        assert_eq!(scaled_up(&Value::object(), 1).1, 1);
        // Twice, and it is still remembered.
        assert_eq!(scaled_down(&value!({"spec": {"replicas": 0}})).at(&["metadata"]), None);
    }
}
