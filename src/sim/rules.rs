//! The rules of the [`checker`](super::checker), each a function of an object before and after a change.
//!
//! Never looks at anything else, so that each has a table of its own.

use std::fmt;

use jiff::Timestamp;

use crate::{
    api::constants::{annotation, label},
    kubernetes::{
        object,
        value::{Map, Value},
    },
    route::{self, Apis, Kind as Routed},
};

/// What a role put on a ReplicaSet.
const EPHEMERAL: &str = "rollout.argoproj.io/ephemeral-metadata";

/// What the engine writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A Rollout.
    Rollout,
    /// A ReplicaSet.
    Set,
    /// A Service.
    Service,
    /// A pod.
    Pod,
    /// A workload that a Rollout refers to.
    Workload,
    /// What a router reads.
    Route(Routed),
    /// An AnalysisRun.
    Run,
}

impl Kind {
    /// The kind of this name, if the engine has business with it.
    pub fn of(group: &str, kind: &str) -> Option<Kind> {
        Some(match (group, kind) {
            (_, "Rollout") => Kind::Rollout,
            (_, "ReplicaSet") => Kind::Set,
            ("", "Service") => Kind::Service,
            (_, "Pod") => Kind::Pod,
            (_, "Deployment") => Kind::Workload,
            (_, "AnalysisRun") => Kind::Run,
            (group, kind) => {
                let apis = Apis::default();
                let is_it = |known: &Routed| known.group(&apis) == group && known.word() == kind;
                Kind::Route(route::kinds().into_iter().find(is_it)?)
            }
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Rollout => "of the rollout",
            Kind::Set => "of the replica set",
            Kind::Service => "of the service",
            Kind::Pod => "of the pod",
            Kind::Workload => "of the workload",
            Kind::Route(kind) => return write!(f, "of the {}", kind.word()),
            Kind::Run => "of the analysis run",
        })
    }
}

/// The fields that a write of the engine changed and that are not its own (S5), the size of a Rollout that has one among
/// them (S48).
pub fn foreign(kind: Kind, old: &Value, new: &Value) -> Vec<String> {
    let mut changed = Vec::new();
    differences(String::new(), old, new, &mut changed);
    changed.retain(|path| !is_own(kind, path, old));
    changed
}

fn is_own(kind: Kind, path: &str, old: &Value) -> bool {
    let server = ["metadata.resourceVersion", "metadata.generation", "metadata.managedFields", "metadata.deletion"];
    if server.iter().any(|prefix| path.starts_with(prefix)) {
        return true;
    }
    let note = |key: &str| path == format!("metadata.annotations.{key}") || path == "metadata.annotations";
    match kind {
        Kind::Rollout => {
            path.starts_with("status")
                // A template with values that no pod can have is written back as far as it can be read.
                || path.starts_with("spec.template")
                || note(annotation::REVISION)
                || note(annotation::WORKLOAD_GENERATION)
                || path == "spec.replicas" && old.at(&["spec", "replicas"]).is_none()
        }
        Kind::Set => ["spec.replicas", "spec.minReadySeconds", "spec.template.spec.affinity", "spec.template.metadata"]
            .into_iter()
            .chain(["metadata.annotations", "metadata.labels", "metadata.ownerReferences", "status"])
            .any(|prefix| path.starts_with(prefix)),
        Kind::Service => path == format!("spec.selector.{}", label::POD_TEMPLATE_HASH) || note(annotation::MANAGED_BY),
        Kind::Pod => {
            path.starts_with("metadata.labels")
                || path.starts_with("metadata.annotations")
                || path.starts_with("status")
        }
        Kind::Workload => path == "spec.replicas",
        Kind::Route(kind) => is_own_route(kind, path, old),
        Kind::Run if path == "metadata.ownerReferences" => object::controller(old).is_none(),
        Kind::Run => path.starts_with("status") || path == "spec.terminate",
    }
}

/// The fields of a router's object that are the engine's.
fn is_own_route(kind: Routed, path: &str, old: &Value) -> bool {
    let note = |key: &str| path == format!("metadata.annotations.{key}") || path == "metadata.annotations";
    match kind {
        // One that was orphaned with its Rollout is adopted.
        Routed::TrafficSplit | Routed::Ingress if path == "metadata.ownerReferences" => {
            object::controller(old).is_none()
        }
        Routed::TrafficSplit => path == "spec.service" || path == "spec.backends",
        Routed::VirtualService => ["spec.http", "spec.tls", "spec.tcp"].contains(&path),
        Routed::DestinationRule => path == "spec.subsets" || note(annotation::MANAGED_BY),
        // The canary's is made by the engine; of any other it writes actions, conditions, and paths for them.
        Routed::Ingress if object::controller(old).is_some() || is_canary_ingress(old) => {
            ["metadata.annotations", "metadata.labels", "spec"].iter().any(|prefix| path.starts_with(prefix))
        }
        Routed::Ingress => {
            let is_told = ["/actions.", "/conditions."].iter().any(|part| path.contains(part));
            path.starts_with("metadata.annotations.") && is_told
                || note(annotation::MANAGED_ALB_ANNOTATIONS)
                || path == "spec.rules"
        }
        Routed::TraefikService => path == "spec.weighted.services",
        Routed::Mapping => path == "spec.weight",
        Routed::ApisixRoute => path == "spec.http",
        Routed::MeshRouter => path == "spec.routes",
        Routed::MeshNode => path.starts_with("spec.podSelector"),
        Routed::HttpRoute | Routed::GrpcRoute | Routed::TcpRoute | Routed::TlsRoute => {
            path == "spec.rules" || path.starts_with("metadata.labels") || path.starts_with("metadata.annotations")
        }
        Routed::MeshService | Routed::Service => false,
    }
}

fn is_canary_ingress(ingress: &Value) -> bool {
    ingress.str_at(&["metadata", "annotations", "nginx.ingress.kubernetes.io/canary"]) == Some("true")
}

/// What must never happen to an AnalysisRun from one version to the next (S46, S47).
pub fn run(old: &Value, new: &Value) -> Vec<String> {
    let name = new.str_at(&["metadata", "name"]).unwrap_or_default();
    let results = |run: &'_ Value| run.list_at(&["status", "metricResults"]).to_vec();
    let number = |result: &Value, key: &str| result.int_at(&[key]).unwrap_or_default();
    let taken = |result: &Value| {
        let last = result.list_at(&["measurements"]).last().cloned().unwrap_or_default();
        let open = i64::from(!last.is_null() && last.get("finishedAt").is_none());
        number(result, "count") + number(result, "error") + open
    };
    let is_ending = old.at(&["spec", "terminate"]).and_then(Value::as_bool) == Some(true);
    let mut broken = Vec::new();
    for before in results(old) {
        let after = results(new).into_iter().find(|after| after.get("name") == before.get("name"));
        let after = after.unwrap_or_default();
        if taken(&after) < taken(&before) {
            broken.push(format!("S46: {name} lost a measurement"));
        }
        if taken(&after) > taken(&before) + 1 {
            broken.push(format!("S46: {name} counts more measurements than were taken"));
        }
        if is_ending && taken(&after) > taken(&before) {
            broken.push(format!("S47: {name} began a measurement after it was told to end"));
        }
    }
    broken
}

/// Whether two AnalysisRuns have the same purpose and both are at work (S42).
pub fn are_rivals(one: &Value, other: &Value) -> bool {
    let same = |path: &[&str]| one.at(path) == other.at(path);
    let label = |key: &'static str| ["metadata", "labels", key];
    let is_at_work = |run: &Value| {
        let phase = run.str_at(&["status", "phase"]).unwrap_or_default();
        let is_over = ["Successful", "Failed", "Error", "Inconclusive"].contains(&phase);
        !is_over && run.at(&["spec", "terminate"]).and_then(Value::as_bool) != Some(true)
    };
    // Those of an Experiment differ by the analysis, which is the name up to the number of the attempt.
    let analysis = |run: &Value| {
        let name = run.str_at(&["metadata", "name"]).unwrap_or_default();
        let owner = run.list_at(&["metadata", "ownerReferences"]).first();
        let is_compared = owner.is_some_and(|owner| owner.str_at(&["kind"]) == Some("Experiment"));
        is_compared.then(|| name.split('.').next().unwrap_or_default().to_owned())
    };
    !same(&["metadata", "name"])
        && analysis(one) == analysis(other)
        && same(&label(label::ROLLOUT_TYPE))
        && same(&label(label::STEP_INDEX))
        && same(&label(label::POD_TEMPLATE_HASH))
        && is_at_work(one)
        && is_at_work(other)
}

/// The analysis step that a Rollout passes with this change, which only a run of its own that succeeded allows (S43).
pub fn passed_analysis(old: &Value, new: &Value) -> Option<i64> {
    let (from, to) = (index(old)?, index(new)?);
    let steps = old.list_at(&["spec", "strategy", "canary", "steps"]);
    let step = usize::try_from(from).ok().and_then(|from| steps.get(from))?;
    let same = |key: &str| text(old, key) == text(new, key);
    let counts = to == from + 1
        && step.get("analysis").is_some_and(|analysis| !analysis.is_null())
        && same("currentPodHash")
        && same("stableRS")
        // Where all is promoted there are no steps to pass.
        && text(old, "currentPodHash") != text(old, "stableRS")
        && !flag(old, "promoteFull")
        && !flag(new, "abort");
    counts.then_some(from)
}

/// The paths at which two values differ, down to what is not an object in both.
fn differences(path: String, old: &Value, new: &Value, out: &mut Vec<String>) {
    if old.is(new) || old == new {
        return;
    }
    let (Some(before), Some(after)) = (old.as_map(), new.as_map()) else { return out.push(path) };
    let keys: std::collections::BTreeSet<&str> = before.keys().chain(after.keys()).map(|key| key.as_str()).collect();
    for key in keys {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let of = |map: &Map| map.get(key).cloned().unwrap_or_default();
        differences(path, &of(before), &of(after), out);
    }
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.str_at(&["status", key]).unwrap_or_default()
}

fn flag(object: &Value, key: &str) -> bool {
    object.at(&["status", key]).and_then(Value::as_bool) == Some(true)
}

fn index(object: &Value) -> Option<i64> {
    object.int_at(&["status", "currentStepIndex"])
}

/// What status must never do from one version of a Rollout to the next (S14, S36, S50).
pub fn status(old: &Value, new: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    for key in ["stableRS", "currentPodHash", "selector", "phase", "observedGeneration"] {
        if !text(old, key).is_empty() && text(new, key).is_empty() {
            broken.push(format!("S50: status.{key} was lost"));
        }
    }
    let has = |object: &Value, kind: &str| {
        object.list_at(&["status", "conditions"]).iter().any(|condition| condition.str_at(&["type"]) == Some(kind))
    };
    for kind in ["Available", "Completed", "Healthy", "Paused", "Progressing"] {
        if has(old, kind) && !has(new, kind) {
            broken.push(format!("S50: condition {kind} was lost"));
        }
    }
    // A person may write the one without the other.
    if old.at(&["status", "conditions"]) != new.at(&["status", "conditions"]) {
        broken.extend(standing(new));
    }
    let revision = |object: &Value| -> i64 {
        let text = object.str_at(&["metadata", "annotations", annotation::REVISION]).unwrap_or_default();
        text.parse().unwrap_or_default()
    };
    if revision(new) < revision(old) && revision(new) != 0 {
        broken.push(format!("S14: revision {} became {}", revision(old), revision(new)));
    }
    let same = |key: &str| text(old, key) == text(new, key);
    let same_attempt = same("currentPodHash") && same("currentStepHash") && !flag(old, "abort") && !flag(new, "abort");
    let steps = i64::try_from(new.list_at(&["spec", "strategy", "canary", "steps"]).len()).unwrap_or(i64::MAX);
    if let (true, Some(from), Some(to)) = (same_attempt, index(old), index(new))
        && to < from
        // Somebody took steps away: who stood beyond the last comes back to it.
        && (steps == 0 || from <= steps)
    {
        broken.push(format!("S36: step {from} became {to}"));
    }
    broken
}

/// Whether what follows may differ from what was: somebody changed the Rollout, or it came to another point.
pub fn is_news(old: &Value, new: &Value, is_own: bool) -> bool {
    let moved = ["currentPodHash", "stableRS", "currentStepHash"].iter().any(|key| text(old, key) != text(new, key));
    let flags = ["abort", "promoteFull", "controllerPause"].iter().any(|key| flag(old, key) != flag(new, key));
    let pauses = old.at(&["status", "pauseConditions"]) != new.at(&["status", "pauseConditions"]);
    !is_own || moved || flags || pauses || index(old) != index(new)
}

/// Whether an attempt begins: another version, other steps, or a retry.
pub fn begins_attempt(old: &Value, new: &Value) -> bool {
    let moved = ["currentPodHash", "currentStepHash"].iter().any(|key| text(old, key) != text(new, key));
    moved || flag(old, "abort") != flag(new, "abort") || old.at(&["spec", "strategy"]) != new.at(&["spec", "strategy"])
}

/// Whether `spec.paused` ends with this change.
pub fn ends_pause_by_hand(old: &Value, new: &Value) -> bool {
    let is_paused = |object: &Value| object.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true);
    is_paused(old) && !is_paused(new)
}

/// The step at which the pause of a pause step begins with this change.
pub fn begun_pause(old: &Value, new: &Value) -> Option<i64> {
    let pauses = |object: &Value| {
        let pauses = object.list_at(&["status", "pauseConditions"]);
        pauses.iter().any(|pause| pause.str_at(&["reason"]) == Some("CanaryPauseStep"))
    };
    if pauses(old) || !pauses(new) { None } else { index(new) }
}

/// What must never be so of a ReplicaSet beside its siblings (S9, S14).
pub fn siblings(old: Option<&Value>, set: &Value, siblings: &[&Value]) -> Vec<String> {
    let name = set.str_at(&["metadata", "name"]).unwrap_or_default();
    let mut broken = Vec::new();
    let revision =
        |set: &Value| set.str_at(&["metadata", "annotations", annotation::REVISION]).unwrap_or("").to_owned();
    let number = revision(set);
    if old.is_none_or(|old| revision(old) != number) && !number.is_empty() {
        let twins = siblings.iter().filter(|sibling| revision(sibling) == number);
        broken.extend(twins.map(|_| format!("S14: {name} is not the only one of revision {number}")));
    }
    // Metadata of a role that a person took over into the template makes another template.
    let is_dressed = |set: &Value| set.at(&["metadata", "annotations", EPHEMERAL]).is_some();
    if old.is_none() && !is_dressed(set) {
        let own = bare_template(set);
        let twins = siblings.iter().filter(|sibling| !is_dressed(sibling) && bare_template(sibling) == own);
        broken.extend(twins.map(|twin| {
            format!("S9: {name} has the template of {}", twin.str_at(&["metadata", "name"]).unwrap_or_default())
        }));
    }
    broken
}

/// Whether two states of a ReplicaSet make other pods.
pub fn differ_in_template(old: &Value, new: &Value) -> bool {
    bare_template(old).at(&["spec"]) != bare_template(new).at(&["spec"])
}

/// The version that status calls healthy, if it is about the newest specification and that holds its own template.
pub fn healthy_version(rollout: &Value) -> Option<&str> {
    let generation = rollout.int_at(&["metadata", "generation"]).unwrap_or_default().to_string();
    let is_told = text(rollout, "phase") == "Healthy"
        && text(rollout, "observedGeneration") == generation
        && rollout.at(&["spec", "workloadRef"]).is_none();
    is_told.then(|| text(rollout, "currentPodHash"))
}

/// The images of the pods that an object makes.
pub fn images(object: &Value) -> Vec<Option<&str>> {
    let containers = object.list_at(&["spec", "template", "spec", "containers"]);
    containers.iter().map(|container| container.str_at(&["image"])).collect()
}

/// A pod template without what a role or the engine puts in.
fn bare_template(set: &Value) -> Value {
    let mut template = set.at(&["spec", "template"]).cloned().unwrap_or_default();
    template.remove_at(&["metadata", "labels", label::POD_TEMPLATE_HASH]);
    template.remove_at(&["metadata", "creationTimestamp"]);
    template.remove_at(&["spec", "affinity"]);
    template
}

/// What the engine must never do to the size of a ReplicaSet, as its Rollout is now (S30, S41).
pub fn scaled(rollout: &Value, old: &Value, new: &Value, now: Timestamp) -> Vec<String> {
    let size = |set: &Value| set.int_at(&["spec", "replicas"]).unwrap_or(1);
    let name = new.str_at(&["metadata", "name"]).unwrap_or_default();
    let hash = new.str_at(&["metadata", "labels", label::POD_TEMPLATE_HASH]).unwrap_or_default();
    let mut broken = Vec::new();
    let strategy = rollout.at(&["spec", "strategy", "blueGreen"]);
    let generation = rollout.int_at(&["metadata", "generation"]).unwrap_or_default().to_string();
    let is_observed = text(rollout, "observedGeneration") == generation;
    // There is nothing to go back to from a first version: its abort is without effect.
    let is_aborted = flag(rollout, "abort")
        // The later word: it is promoted although it was aborted.
        && !flag(rollout, "promoteFull")
        && is_observed
        && !text(rollout, "stableRS").is_empty()
        && hash == text(rollout, "currentPodHash")
        // Without a stable version there is nothing to go back to.
        && !text(rollout, "stableRS").is_empty()
        && hash != text(rollout, "stableRS")
        && strategy.is_none_or(|strategy| strategy.int_at(&["abortScaleDownDelaySeconds"]) != Some(0));
    // A canary whose traffic cannot go back yet grows with its Rollout.
    let shares = rollout.at(&["spec", "strategy", "canary", "dynamicStableScale"]) == Some(&Value::Bool(true));
    if is_aborted && !shares && size(new) > size(old) {
        broken.push(format!("S30: {name} grew from {} to {} after an abort", size(old), size(new)));
    }
    let deadline = new.str_at(&["metadata", "annotations", annotation::SCALE_DOWN_DEADLINE]);
    let deadline: Option<Timestamp> = deadline.and_then(|text| text.parse().ok());
    let limited = strategy.and_then(|strategy| strategy.get("scaleDownDelayRevisionLimit")).is_some();
    if let Some(deadline) = deadline.filter(|deadline| *deadline > now)
        && strategy.is_some()
        && !limited
        && size(new) < size(old)
        && size(new) == 0
    {
        broken.push(format!("S41: {name} went before {deadline}"));
    }
    broken
}

/// Whether a ReplicaSet has the size of a preview, which a blue-green update leaves on its way to the Rollout's: also when
/// that is smaller.
pub fn is_preview(rollout: &Value, set: &Value) -> bool {
    let preview = rollout.int_at(&["spec", "strategy", "blueGreen", "previewReplicaCount"]);
    preview.is_some() && preview == set.int_at(&["spec", "replicas"])
}

/// What kstatus reads must be what the phase says.
fn standing(rollout: &Value) -> Option<String> {
    let (phase, conditions) = (text(rollout, "phase"), rollout.list_at(&["status", "conditions"]));
    let said = |kind: &str| {
        let condition = conditions.iter().find(|condition| condition.str_at(&["type"]) == Some(kind));
        condition.and_then(|condition| condition.str_at(&["status"])).unwrap_or("absent")
    };
    let wanted = match phase {
        "" => return None,
        "Healthy" => ["True", "absent", "absent"],
        "Degraded" => ["False", "absent", "True"],
        _ => ["Unknown", "True", "absent"],
    };
    let said = [said("Ready"), said("Reconciling"), said("Stalled")];
    (said != wanted).then(|| format!("kstatus: {phase} is {said:?}, not {wanted:?}"))
}

/// Whether a ReplicaSet that has a deadline goes when it is over: nothing holds it.
pub fn must_go(rollout: &Value, set: &Value) -> bool {
    let hash = set.str_at(&["metadata", "labels", label::POD_TEMPLATE_HASH]).unwrap_or_default();
    let is_paused = rollout.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true);
    let conditions = rollout.list_at(&["status", "conditions"]);
    let is_invalid = conditions.iter().any(|condition| condition.str_at(&["type"]) == Some("InvalidSpec"));
    let has_role =
        hash == text(rollout, "stableRS") || hash == text(rollout, "currentPodHash") && !flag(rollout, "abort");
    let is_leaving = rollout.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
    !is_paused && !is_invalid && !has_role && !is_leaving
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn s5_the_engine_changes_only_what_is_its_own() {
        let rollout = |spec: Value, note: &str| value!({"metadata": {"annotations": {"rollout.argoproj.io/revision": note, "note": "x"}}, "spec": spec});
        let set = |replicas: i64, image: &str| value!({"spec": {"replicas": replicas, "template": {"spec": {"containers": [{"image": image}]}}}});
        let service = |hash: &str, port: i64| value!({"spec": {"selector": {"app": "web", label::POD_TEMPLATE_HASH: hash}, "ports": [{"port": port}]}});
        for (kind, old, new, expected) in [
            (Kind::Rollout, rollout(value!({}), "1"), rollout(value!({"replicas": 1}), "2"), &[][..]),
            (
                Kind::Rollout,
                rollout(value!({"replicas": 3}), "1"),
                rollout(value!({"replicas": 1}), "1"),
                &["spec.replicas"],
            ),
            (Kind::Set, set(1, "a"), set(2, "a"), &[]),
            (Kind::Set, set(1, "a"), set(1, "b"), &["spec.template.spec.containers"]),
            (Kind::Service, service("a", 80), service("b", 80), &[]),
            (Kind::Service, service("a", 80), service("b", 81), &["spec.ports"]),
        ] {
            assert_eq!(foreign(kind, &old, &new), expected, "{kind} {old} {new}");
        }
    }

    #[test]
    fn s14_s36_s50_status_never_forgets_and_never_goes_back() {
        let at = |status: Value| value!({"status": status});
        for (old, new, expected) in [
            (value!({"stableRS": "a"}), value!({"stableRS": "b"}), ""),
            (value!({"stableRS": "a"}), value!({}), "S50: status.stableRS was lost"),
            (value!({"currentStepIndex": 1}), value!({"currentStepIndex": 2}), ""),
            (value!({"currentStepIndex": 2}), value!({"currentStepIndex": 1}), "S36: step 2 became 1"),
            (value!({"currentStepIndex": 2}), value!({"currentStepIndex": 0, "abort": true}), ""),
            (value!({"currentStepIndex": 2}), value!({"currentStepIndex": 0, "currentPodHash": "b"}), ""),
            (
                value!({"conditions": [{"type": "Paused"}]}),
                value!({"conditions": []}),
                "S50: condition Paused was lost",
            ),
        ] {
            assert_eq!(status(&at(old.clone()), &at(new.clone())).join("; "), expected, "{old} → {new}");
        }
        let noted = |revision: &str| value!({"metadata": {"annotations": {annotation::REVISION: revision}}});
        assert_eq!(status(&noted("3"), &noted("4")), Vec::<String>::new());
        assert_eq!(status(&noted("3"), &noted("2")), ["S14: revision 3 became 2"]);
    }

    #[test]
    fn s30_s41_sizes_after_an_abort_and_before_a_deadline() {
        let rollout = value!({"metadata": {"generation": 2}, "spec": {"strategy": {"blueGreen": {}}},
            "status": {"abort": true, "currentPodHash": "b", "stableRS": "a", "observedGeneration": "2"}});
        let set = |hash: &str, replicas: i64, deadline: &str| {
            value!({"metadata": {"name": hash, "labels": {label::POD_TEMPLATE_HASH: hash},
                "annotations": {annotation::SCALE_DOWN_DEADLINE: deadline}}, "spec": {"replicas": replicas}})
        };
        let now: Timestamp = "2026-01-01T00:00:05Z".parse().unwrap();
        for (old, new, expected) in [
            (set("b", 1, ""), set("b", 2, ""), "S30: b grew from 1 to 2 after an abort"),
            (set("a", 1, ""), set("a", 2, ""), ""),
            (set("b", 2, ""), set("b", 0, ""), ""),
            (
                set("c", 2, "2026-01-01T00:00:09Z"),
                set("c", 0, "2026-01-01T00:00:09Z"),
                "S41: c went before 2026-01-01T00:00:09Z",
            ),
            (set("c", 2, "2026-01-01T00:00:05Z"), set("c", 0, "2026-01-01T00:00:05Z"), ""),
        ] {
            assert_eq!(scaled(&rollout, &old, &new, now).join("; "), expected, "{old} → {new}");
        }
    }

    #[test]
    fn s9_s14_siblings_differ_in_template_and_revision() {
        let set = |name: &str, revision: &str, image: &str| {
            value!({"metadata": {"name": name, "annotations": {annotation::REVISION: revision}},
                "spec": {"template": {"metadata": {"labels": {"app": "web", label::POD_TEMPLATE_HASH: name}},
                    "spec": {"containers": [{"image": image}]}}}})
        };
        let other = set("a", "1", "v1");
        assert_eq!(siblings(None, &set("b", "2", "v2"), &[&other]), Vec::<String>::new());
        assert_eq!(siblings(None, &set("b", "2", "v1"), &[&other]), ["S9: b has the template of a"]);
        assert_eq!(siblings(None, &set("b", "1", "v2"), &[&other]), ["S14: b is not the only one of revision 1"]);
        assert_eq!(siblings(Some(&set("b", "1", "v2")), &set("b", "1", "v2"), &[&other]), Vec::<String>::new());
    }

    #[test]
    fn s12_a_version_is_what_it_was_made_from() {
        let set = |image: &str, affinity: &str| value!({"spec": {"template": {"spec": {"containers": [{"image": image}], "affinity": affinity}}}});
        assert!(differ_in_template(&set("v1", ""), &set("v2", "")));
        assert!(!differ_in_template(&set("v1", ""), &set("v1", "x")));
        assert_eq!(images(&set("v1", "")), [Some("v1")]);
        let rollout = |phase: &str, observed: &str| {
            value!({"metadata": {"generation": 2},
                "status": {"phase": phase, "observedGeneration": observed, "currentPodHash": "a"}})
        };
        assert_eq!(healthy_version(&rollout("Healthy", "2")), Some("a"));
        assert_eq!(healthy_version(&rollout("Healthy", "1")), None);
        assert_eq!(healthy_version(&rollout("Paused", "2")), None);
    }

    #[test]
    fn s46_s47_measurements_are_neither_lost_nor_begun_after_the_end() {
        let run = |terminate: bool, count: i64, open: bool| {
            let last = if open { value!({"phase": "Running"}) } else { value!({"finishedAt": "x"}) };
            value!({
                "metadata": {"name": "r"},
                "spec": {"terminate": terminate},
                "status": {"metricResults": [{"name": "m", "count": count, "measurements": [last]}]},
            })
        };
        for (old, new, rules) in [
            (run(false, 1, false), run(false, 1, true), vec![]),
            (run(false, 1, true), run(false, 2, false), vec![]),
            (run(false, 2, false), run(false, 1, false), vec!["S46"]),
            (run(false, 1, false), run(false, 3, false), vec!["S46"]),
            (run(true, 1, true), run(true, 2, false), vec![]),
            (run(true, 1, false), run(true, 1, true), vec!["S47"]),
        ] {
            let broken = super::run(&old, &new);
            let named: Vec<&str> = broken.iter().filter_map(|broken| broken.split(':').next()).collect();
            assert_eq!(named, rules, "{old} → {new}");
        }
    }

    #[test]
    fn s42_s43_who_is_a_rival_and_what_passes_a_gate() {
        let run = |name: &str, step: &str, phase: &str| value!({"metadata": {"name": name, "labels": {"step-index": step}}, "status": {"phase": phase}});
        assert!(are_rivals(&run("a", "1", "Running"), &run("b", "1", "")));
        assert!(!are_rivals(&run("a", "1", "Running"), &run("b", "2", "")));
        assert!(!are_rivals(&run("a", "1", "Failed"), &run("b", "1", "")));
        let at = |index: i64, full: bool| {
            let steps = value!([{"setWeight": 1}, {"analysis": {}}]);
            value!({"spec": {"strategy": {"canary": {"steps": steps}}}, "status": {"currentPodHash": "b", "currentStepIndex": index, "promoteFull": full}})
        };
        assert_eq!(passed_analysis(&at(1, false), &at(2, false)), Some(1));
        assert_eq!(passed_analysis(&at(0, false), &at(1, false)), None);
        assert_eq!(passed_analysis(&at(1, true), &at(2, false)), None);
    }
}
