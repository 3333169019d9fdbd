//! A Deployment as a Rollout, and back.
//!
//! Either the Rollout refers to the Deployment (`workloadRef`) and brings pods of its own before the Deployment loses its, or it
//! takes the pods over: they stay, and only the ReplicaSet that owns them is another. Decides what is written; never in which
//! order, which is the command's.

use std::collections::BTreeSet;

use super::{
    Note, Subject, Weight,
    fields::{self, Fate, Table},
};
use crate::{
    api::{
        self, Rollout,
        constants::{self, annotation, label},
    },
    kubernetes::value::{Map, Text, Value},
    manifest::place::Step,
    model::{hash, names},
    rollout::services,
    value,
};

use Fate::{Missing, Same, Taken as Carried, Within};
use Step::Key;

/// Where a Rollout has its pods from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pods {
    /// It takes those of the Deployment over.
    Taken,
    /// It brings its own, from the template of the Deployment, which is scaled down in this way.
    Referred(ScaleDown),
}

/// When the Deployment that a Rollout refers to loses its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleDown {
    /// A person does it.
    Never,
    /// When the Rollout has all of its own.
    OnSuccess,
    /// As the Rollout's become ready.
    Progressively,
}

impl ScaleDown {
    /// As the API spells it.
    pub fn word(self) -> &'static str {
        match self {
            ScaleDown::Never => "never",
            ScaleDown::OnSuccess => "onsuccess",
            ScaleDown::Progressively => "progressively",
        }
    }
}

/// The label of the pods of a Deployment's ReplicaSet.
pub const DEPLOYMENT_HASH: &str = "pod-template-hash";
/// The instance id of a Rollout that no controller acts upon, because it is being migrated.
pub const PARKED: &str = "tidegate-migration";
/// What a migration has to remember, on the object that it makes.
pub const MEMORY: &str = "tidegate.dev/migration";

/// What becomes of the fields of a Deployment.
pub const FIELDS: Table = &[
    ("spec.replicas", Carried),
    ("spec.selector", Carried),
    ("spec.template", Carried),
    ("spec.minReadySeconds", Carried),
    ("spec.revisionHistoryLimit", Carried),
    ("spec.progressDeadlineSeconds", Carried),
    ("spec.paused", Carried),
    ("spec.strategy", Within),
    ("spec.strategy.type", Carried),
    ("spec.strategy.rollingUpdate", Carried),
];

/// What becomes of the fields of a Rollout that is to be a Deployment.
pub const BACK: Table = &[
    ("spec.replicas", Carried),
    ("spec.selector", Carried),
    ("spec.template", Carried),
    ("spec.workloadRef", Carried),
    ("spec.minReadySeconds", Carried),
    ("spec.revisionHistoryLimit", Carried),
    ("spec.progressDeadlineSeconds", Carried),
    ("spec.paused", Same),
    ("spec.restartAt", Same),
    (
        "spec.progressDeadlineAbort",
        Missing(
            "a Deployment never goes back by itself",
            "watch its condition Progressing, and use `kubectl rollout undo`",
        ),
    ),
    (
        "spec.rollbackWindow",
        Missing("a Deployment has no fast way back", "nothing to do; `kubectl rollout undo` replaces the pods"),
    ),
    ("spec.analysis", Same),
    ("spec.strategy", Within),
    ("spec.strategy.canary", Within),
    ("spec.strategy.canary.maxSurge", Carried),
    ("spec.strategy.canary.maxUnavailable", Carried),
    ("spec.strategy.canary.steps", Missing("a Deployment has no steps", "nothing to do, if that is meant")),
    ("spec.strategy.canary.analysis", Missing("a Deployment is not analysed", "nothing to do, if that is meant")),
    (
        "spec.strategy.canary.trafficRouting",
        Missing("a Deployment moves no traffic", "point the routes at one Service with all of the weight"),
    ),
    (
        "spec.strategy.canary.canaryService",
        Missing("the Service goes on, and selects all pods", "delete it when nothing refers to it"),
    ),
    (
        "spec.strategy.canary.stableService",
        Missing("the Service goes on, and selects all pods", "delete it when nothing refers to it"),
    ),
    (
        "spec.strategy.canary.pingPong",
        Missing("both Services go on, and select all pods", "delete what nothing refers to"),
    ),
    ("spec.strategy.canary.antiAffinity", Missing("versions are not kept apart", "say it in the pod template")),
    (
        "spec.strategy.canary.canaryMetadata",
        Missing("pods have the same metadata in every version", "nothing to do, if that is meant"),
    ),
    (
        "spec.strategy.canary.stableMetadata",
        Missing("pods have the same metadata in every version", "nothing to do, if that is meant"),
    ),
    ("spec.strategy.canary.scaleDownDelaySeconds", Same),
    ("spec.strategy.canary.scaleDownDelayRevisionLimit", Same),
    ("spec.strategy.canary.abortScaleDownDelaySeconds", Same),
    ("spec.strategy.canary.dynamicStableScale", Same),
    ("spec.strategy.canary.minPodsPerReplicaSet", Same),
    ("spec.strategy.canary.replicaProgressThreshold", Same),
    (
        "spec.strategy.blueGreen",
        Missing(
            "a Deployment replaces its pods gradually, without a preview",
            "the Services go on and select all pods; delete the preview's",
        ),
    ),
];

/// The Rollout that takes a Deployment's place.
pub fn rollout(subject: &Subject<'_>, pods: Pods, notes: &mut Vec<Note>) -> Value {
    fields::check(subject, "spec", FIELDS, notes);
    let mut made =
        value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": (metadata(&subject.value))});
    for field in
        ["replicas", "selector", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds", "paused"]
    {
        if let Some(value) = subject.value.at(&["spec", field]) {
            made.set_at(&["spec", field], value);
        }
    }
    match pods {
        Pods::Taken => {
            if let Some(template) = subject.value.at(&["spec", "template"]) {
                made.set_at(&["spec", "template"], template);
            }
        }
        Pods::Referred(scale_down) => {
            let name = subject.name();
            let reference =
                value!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "scaleDown": (scale_down.word())});
            made.set_at(&["spec", "workloadRef"], reference);
        }
    }
    let mut canary = Value::object();
    match subject.text(&["spec", "strategy", "type"]) {
        "Recreate" => {
            canary = value!({"maxSurge": 0, "maxUnavailable": "100%"});
            let what = "all pods are replaced at once, as far as a Rollout can: new ones need not wait until old ones have ended";
            let steps = [Key("spec"), Key("strategy"), Key("type")];
            notes.push(subject.note(
                Weight::Differs,
                &steps,
                what,
                "if two versions must never run beside each other, keep the Deployment",
            ));
        }
        _ => {
            for field in ["maxSurge", "maxUnavailable"] {
                if let Some(value) = subject.value.at(&["spec", "strategy", "rollingUpdate", field]) {
                    canary.set_at(&[field], value);
                }
            }
        }
    }
    made.set_at(&["spec", "strategy", "canary"], canary);
    made
}

/// The Deployment that takes a Rollout's place; nothing for one that refers to a Deployment, which is there.
pub fn deployment(subject: &Subject<'_>, notes: &mut Vec<Note>) -> Option<Value> {
    fields::check(subject, "spec", BACK, notes);
    if subject.value.at(&["spec", "workloadRef"]).is_some_and(|reference| !reference.is_null()) {
        return None;
    }
    let mut made = value!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": (metadata(&subject.value))});
    for field in
        ["replicas", "selector", "template", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"]
    {
        if let Some(value) = subject.value.at(&["spec", field]) {
            made.set_at(&["spec", field], value);
        }
    }
    made.remove_at(&["spec", "template", "metadata", "labels", label::POD_TEMPLATE_HASH]);
    for field in ["maxSurge", "maxUnavailable"] {
        if let Some(value) = subject.value.at(&["spec", "strategy", "canary", field]) {
            made.set_at(&["spec", "strategy", "rollingUpdate", field], value);
        }
    }
    Some(made)
}

/// What a new object has of the old one's metadata: nothing that a server, an engine or a tool has written about it.
fn metadata(object: &Value) -> Value {
    let written = [
        "kubectl.kubernetes.io/",
        "deployment.kubernetes.io/",
        "rollout.argoproj.io/",
        "argocd.argoproj.io/",
        "tidegate.dev/",
        label::INSTANCE_ID,
    ];
    let mut kept = Value::object();
    for key in ["name", "namespace"] {
        if let Some(text) = object.str_at(&["metadata", key]) {
            kept.set_at(&[key], text);
        }
    }
    for key in ["labels", "annotations"] {
        let all = object.at(&["metadata", key]).and_then(Value::as_map);
        let own = all
            .into_iter()
            .flat_map(Map::iter)
            .filter(|(name, _)| !written.iter().any(|prefix| name.starts_with(prefix)));
        let own: Map = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !own.is_empty() {
            kept.set_at(&[key], Value::Map(own));
        }
    }
    kept
}

/// The hash of a Rollout's template: what its pods are labelled with.
pub fn rollout_hash(rollout: &Value) -> Text {
    hash::pod_template(rollout.at(&["spec", "template"]).unwrap_or(&Value::Null), None)
}

/// The ReplicaSet to which pods belong once they are labelled, with exactly as many as there are: it makes none and ends none.
/// Nobody owns it, so that whoever it is meant for adopts it.
pub fn replica_set(owner: &Value, key: &str, hash: &str, replicas: i64) -> Value {
    let name = names::replica_set(owner.str_at(&["metadata", "name"]).unwrap_or_default(), hash);
    let mut template = owner.at(&["spec", "template"]).cloned().unwrap_or_default();
    template.set_at(&["metadata", "labels", key], hash);
    let mut selector = owner.at(&["spec", "selector"]).cloned().unwrap_or_default();
    selector.set_at(&["matchLabels", key], hash);
    let mut set =
        value!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {}, "spec": {"replicas": replicas}});
    set.set_at(&["metadata", "name"], name.as_str());
    set.set_at(&["metadata", "labels"], template.at(&["metadata", "labels"]).cloned().unwrap_or_default());
    set.set_at(&["spec", "selector"], selector);
    set.set_at(&["spec", "template"], template);
    if let Some(seconds) = owner.at(&["spec", "minReadySeconds"]) {
        set.set_at(&["spec", "minReadySeconds"], seconds);
    }
    set
}

/// The patch (merge) that lets no controller act on a Rollout, or lets its own act again.
pub fn park(instance: Option<&str>) -> Value {
    let id = instance.map_or(Value::Null, Value::from);
    let mut patch = Value::object();
    patch.set_at(&["metadata", "labels", label::INSTANCE_ID], id);
    patch
}

/// Whether a migration has begun with this object, and not ended.
pub fn is_begun(object: &Value) -> bool {
    object.at(&["metadata", "annotations", MEMORY]).is_some()
}

/// The Services whose selectors a Rollout has set.
pub fn led_services(rollout: &Value) -> BTreeSet<String> {
    let read: Rollout = api::read(rollout).object;
    services::named(&read).into_iter().map(|(_, name)| name.to_owned()).collect()
}

/// The patch (merge) that lets a Service select the pods of every version.
pub fn unled() -> Value {
    let mut patch = Value::object();
    patch.set_at(&["spec", "selector", label::POD_TEMPLATE_HASH], Value::Null);
    patch.set_at(&["metadata", "annotations", annotation::MANAGED_BY], Value::Null);
    patch
}

/// What stands against taking a Deployment's pods now.
pub fn deployment_is_settled(deployment: &Value) -> Result<(), String> {
    let count = |path: &[&str]| deployment.int_at(path).unwrap_or(0);
    let wanted = deployment.int_at(&["spec", "replicas"]).unwrap_or(1);
    let is_observed = count(&["status", "observedGeneration"]) >= count(&["metadata", "generation"]);
    let all = ["replicas", "updatedReplicas", "availableReplicas"].map(|key| count(&["status", key]));
    if is_observed && all.iter().all(|count| *count == wanted) {
        return Ok(());
    }
    Err(format!("it is being rolled out: {} of {wanted} pods are new, {} are available", all[1], all[2]))
}

/// What stands against giving up a Rollout now.
pub fn rollout_is_settled(rollout: &Value) -> Result<(), String> {
    let text = |key: &str| rollout.str_at(&["status", key]).unwrap_or_default();
    let generation = rollout.int_at(&["metadata", "generation"]).unwrap_or(0).to_string();
    match text("phase") {
        "Healthy" if text("stableRS") == text("currentPodHash") && text("observedGeneration") == generation => Ok(()),
        "Healthy" => Err("its last change is not reconciled yet".to_owned()),
        phase => Err(format!("it is {phase}: {}", text("message"))),
    }
}

/// The tool that keeps an object in sync, if it says so: what is made by hand in its place, that tool would undo.
pub fn keeper(object: &Value) -> Option<String> {
    let at = |kind: &str, key: &str| object.str_at(&["metadata", kind, key]).filter(|text| !text.is_empty());
    if let Some(source) = at("labels", label::SOURCE) {
        return Some(format!("the GitSource {source}"));
    }
    if let Some(id) = at("annotations", "argocd.argoproj.io/tracking-id") {
        return Some(format!("Argo CD's Application {}", id.split(':').next().unwrap_or_default()));
    }
    if let Some(name) = at("labels", "kustomize.toolkit.fluxcd.io/name") {
        return Some(format!("Flux's Kustomization {name}"));
    }
    at("annotations", "meta.helm.sh/release-name").map(|name| format!("the Helm release {name}"))
}

/// The patch (merge) of an autoscaler that scales another kind under the same name.
pub fn rescaled(kind: &str) -> Value {
    let api_version = if kind == "Rollout" { "argoproj.io/v1alpha1" } else { "apps/v1" };
    value!({"spec": {"scaleTargetRef": {"apiVersion": api_version, "kind": kind}}})
}

/// Whether an autoscaler scales this object.
pub fn scales(autoscaler: &Value, kind: &str, name: &str) -> bool {
    let target = |key: &str| autoscaler.str_at(&["spec", "scaleTargetRef", key]);
    target("kind") == Some(kind) && target("name") == Some(name)
}

/// The label that pods of a workload get when a Rollout or a Deployment takes them.
pub fn hash_label(kind: &str) -> &'static str {
    if kind == constants::kind::ROLLOUT { label::POD_TEMPLATE_HASH } else { DEPLOYMENT_HASH }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{manifest, migrate::Origin};

    fn of(text: &str, check: impl Fn(&Subject<'_>)) {
        let file = manifest::read("web.yaml", text.as_bytes());
        assert!(file.mistakes.is_empty(), "{:?}", file.mistakes);
        check(&Subject::of(&file.objects[0], Origin::File));
    }

    const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\n  labels: {team: a, tidegate.dev/source: x}\n  annotations: {deployment.kubernetes.io/revision: '3'}\nspec:\n  replicas: 4\n  selector: {matchLabels: {app: web}}\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web:1}]}}\n";

    #[test]
    fn a_deployment_becomes_a_rollout_that_replaces_pods_as_it_did() {
        of(DEPLOYMENT, |subject| {
            let mut notes = Vec::new();
            let made = rollout(subject, Pods::Taken, &mut notes);
            assert_eq!(notes, []);
            assert_eq!(
                made.at(&["metadata"]),
                Some(&value!({"name": "web", "namespace": "shop", "labels": {"team": "a"}}))
            );
            assert_eq!(made.at(&["spec", "strategy"]), Some(&value!({"canary": {"maxSurge": 1, "maxUnavailable": 0}})));
            assert_eq!(made.at(&["spec", "template"]), subject.value.at(&["spec", "template"]));
            let referred = rollout(subject, Pods::Referred(ScaleDown::OnSuccess), &mut notes);
            assert_eq!(referred.str_at(&["spec", "workloadRef", "scaleDown"]), Some("onsuccess"));
            assert_eq!(referred.at(&["spec", "template"]), None);
            for rollout in [made, referred] {
                let read: Rollout = api::read(&rollout).object;
                let parsed = crate::model::parse::rollout(&read, crate::model::parse::PodsFrom::Manifest);
                assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
            }
        });
        of(&DEPLOYMENT.replace("{rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", "{type: Recreate}"), |subject| {
            let mut notes = Vec::new();
            rollout(subject, Pods::Taken, &mut notes);
            assert_eq!(
                notes.iter().map(|note| (note.weight, note.field.as_str())).collect::<Vec<_>>(),
                [(Weight::Differs, "spec.strategy.type")]
            );
        });
    }

    #[test]
    fn a_rollout_becomes_a_deployment_and_what_it_loses_is_named() {
        let text =
            DEPLOYMENT.replace("apps/v1", "argoproj.io/v1alpha1").replace("kind: Deployment", "kind: Rollout").replace(
                "{rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
                "{canary: {maxSurge: 1, steps: [{setWeight: 20}], stableService: web}}",
            );
        of(&text, |subject| {
            let mut notes = Vec::new();
            let made = deployment(subject, &mut notes).unwrap();
            assert_eq!(made.at(&["spec", "strategy"]), Some(&value!({"rollingUpdate": {"maxSurge": 1}})));
            let fields: Vec<&str> = notes.iter().map(|note| note.field.as_str()).collect();
            assert_eq!(fields, ["spec.strategy.canary.stableService", "spec.strategy.canary.steps"]);
            assert_eq!(led_services(&subject.value), BTreeSet::from(["web".to_owned()]));
        });
    }

    /// A set that takes pods has exactly as many, selects them by the new label, and is what its owner looks for.
    #[test]
    fn a_set_that_takes_pods_is_found_by_its_owner() {
        of(DEPLOYMENT, |subject| {
            let made = rollout(subject, Pods::Taken, &mut Vec::new());
            let hash = rollout_hash(&made);
            let set = replica_set(&made, label::POD_TEMPLATE_HASH, &hash, 4);
            assert_eq!(set.int_at(&["spec", "replicas"]), Some(4));
            assert_eq!(set.str_at(&["metadata", "name"]), Some(&*format!("web-{hash}")));
            let wanted = crate::model::template::Wanted {
                template: made.at(&["spec", "template"]).unwrap(),
                hash: &hash,
                recorded: &[],
                anti_affinity: None,
                altered: &[],
            };
            assert!(crate::model::template::find(&wanted, std::slice::from_ref(&set)).is_some());
            let selected = set.at(&["spec", "selector", "matchLabels"]).unwrap();
            assert_eq!(selected.str_at(&[label::POD_TEMPLATE_HASH]), Some(&*hash));
        });
    }

    #[test]
    fn pods_are_taken_only_when_nothing_moves() {
        let status = |replicas: i64, updated: i64, available: i64| {
            let status = value!({"observedGeneration": 2, "replicas": replicas, "updatedReplicas": updated, "availableReplicas": available});
            deployment_is_settled(&value!({"metadata": {"generation": 2}, "spec": {"replicas": 4}, "status": status}))
        };
        assert_eq!(status(4, 4, 4), Ok(()));
        assert!(status(5, 4, 4).is_err() && status(4, 3, 4).is_err() && status(4, 4, 3).is_err());
        let rollout = |phase: &str, stable: &str| {
            let status = value!({"phase": phase, "stableRS": stable, "currentPodHash": "a", "observedGeneration": "1"});
            rollout_is_settled(&value!({"metadata": {"generation": 1}, "status": status}))
        };
        assert_eq!(rollout("Healthy", "a"), Ok(()));
        assert!(rollout("Paused", "a").is_err() && rollout("Healthy", "b").is_err());
    }

    #[test]
    fn who_keeps_an_object_is_seen() {
        let with = |kind: &str, key: &str, text: &str| {
            let mut object = Value::object();
            object.set_at(&["metadata", kind, key], text);
            keeper(&object)
        };
        assert_eq!(with("labels", label::SOURCE, "shop.web"), Some("the GitSource shop.web".to_owned()));
        assert_eq!(
            with("annotations", "argocd.argoproj.io/tracking-id", "shop:apps/Deployment:a/b"),
            Some("Argo CD's Application shop".to_owned())
        );
        assert_eq!(
            with("labels", "kustomize.toolkit.fluxcd.io/name", "web"),
            Some("Flux's Kustomization web".to_owned())
        );
        assert_eq!(with("labels", "team", "a"), None);
    }
}
