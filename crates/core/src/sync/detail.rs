//! What stands behind an object that is not done: its pods and its running analysis.
//!
//! [`Ask`] says what has to be read of an object, [`Detail`] what that means. What was found out is remembered in the status
//! of the source, because it is gone when an update is aborted and its pods with it.

use jiff::{SignedDuration, Timestamp};

use super::{
    id::Id,
    pods::{self, Pods},
    rights::MissingRights,
};
use crate::{
    api::{
        self, AnalysisRun, GitSourceStatus, Rollout, UnreadyObject,
        constants::{self, analysis_phase, label},
    },
    kubernetes::{object::controller, value::Value},
};

/// The most objects that are looked behind in one pass.
pub const MOST: usize = 10;

/// The annotation in which a Deployment and its ReplicaSets count versions.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// The label and the annotation in which the pods of a DaemonSet and it count versions.
const GENERATION: (&str, &str) = ("pod-template-generation", "deprecated.daemonset.template.generation");

/// What has to be read to know more about an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// The labels of its ReplicaSets and pods, as a selector.
    pub selector: String,
    /// Whether its pods belong to ReplicaSets.
    pub sets: bool,
    /// The AnalysisRuns that are under way.
    pub runs: Vec<String>,
    /// The Experiment of the step that is under way: its runs measure, too.
    pub experiment: Option<String>,
    /// Whether what its controller could not create is known from events only.
    pub events: bool,
}

impl Ask {
    /// What has to be read of an object; nothing if its kind has no pods.
    pub fn of(object: &Value) -> Option<Ask> {
        match kind(object)? {
            Kind::Rollout => {
                let rollout: Rollout = api::read(object).object;
                let hash = &rollout.status.current_pod_hash;
                let selector = format!("{}={hash}", label::POD_TEMPLATE_HASH);
                let experiment = Some(rollout.status.canary.current_experiment.clone()).filter(|name| !name.is_empty());
                (!hash.is_empty()).then(|| Ask {
                    selector,
                    sets: true,
                    runs: runs(&rollout),
                    experiment,
                    events: false,
                })
            }
            Kind::Deployment => Some(Ask { selector: selector(object)?, sets: true, ..Ask::default() }),
            Kind::ReplicaSet => Some(Ask { selector: selector(object)?, ..Ask::default() }),
            Kind::StatefulSet | Kind::DaemonSet | Kind::Job => {
                Some(Ask { selector: selector(object)?, events: true, ..Ask::default() })
            }
            // It is its own pod.
            Kind::Pod => Some(Ask::default()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rollout,
    Deployment,
    StatefulSet,
    DaemonSet,
    Job,
    ReplicaSet,
    Pod,
}

/// Whether more can be known about an object of this kind.
pub fn is_known(id: &Id) -> bool {
    named(&id.group, &id.kind).is_some()
}

fn kind(object: &Value) -> Option<Kind> {
    let group = object.str_at(&["apiVersion"])?.split_once('/').map_or("", |(group, _)| group);
    named(group, object.str_at(&["kind"])?)
}

fn named(group: &str, kind: &str) -> Option<Kind> {
    match (group, kind) {
        (constants::GROUP, constants::kind::ROLLOUT) => Some(Kind::Rollout),
        ("apps", "Deployment") => Some(Kind::Deployment),
        ("apps", "StatefulSet") => Some(Kind::StatefulSet),
        ("apps", "DaemonSet") => Some(Kind::DaemonSet),
        ("batch", "Job") => Some(Kind::Job),
        ("apps", "ReplicaSet") => Some(Kind::ReplicaSet),
        ("", "Pod") => Some(Kind::Pod),
        _ => None,
    }
}

fn selector(object: &Value) -> Option<String> {
    let labels = object.at(&["spec", "selector", "matchLabels"])?.as_map()?;
    let pair = |(key, value): (_, &Value)| Some(format!("{key}={}", value.as_str()?));
    let pairs: Option<Vec<String>> = labels.iter().map(pair).collect();
    pairs.filter(|pairs| !pairs.is_empty()).map(|pairs| pairs.join(","))
}

/// The runs of a Rollout that are not over.
fn runs(rollout: &Rollout) -> Vec<String> {
    let (canary, blue_green) = (&rollout.status.canary, &rollout.status.blue_green);
    let all = [
        &canary.current_step_analysis_run_status,
        &canary.current_background_analysis_run_status,
        &blue_green.pre_promotion_analysis_run_status,
        &blue_green.post_promotion_analysis_run_status,
    ];
    let open = all.into_iter().flatten().filter(|run| is_open(&run.status));
    open.map(|run| run.name.clone()).filter(|name| !name.is_empty()).collect()
}

fn is_open(phase: &str) -> bool {
    ["", analysis_phase::PENDING, analysis_phase::RUNNING].contains(&phase)
}

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// ReplicaSets.
    pub sets: Vec<Value>,
    /// Pods.
    pub pods: Vec<Value>,
    /// AnalysisRuns.
    pub runs: Vec<Value>,
    /// Events about the object.
    pub events: Vec<Value>,
    /// The Experiment that was asked for.
    pub experiment: Option<Value>,
    /// What could not be read for want of a right.
    pub missing: Option<MissingRights>,
}

/// The runs of an Experiment that are under way.
pub fn runs_of(experiment: &Value) -> Vec<&str> {
    let runs = experiment.list_at(&["status", "analysisRuns"]).iter();
    let open = runs.filter(|run| is_open(run.str_at(&["phase"]).unwrap_or_default()));
    open.filter_map(|run| run.str_at(&["analysisRun"])).collect()
}

/// What stands behind an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detail {
    /// The version that this is about.
    pub version: String,
    /// Its pods.
    pub pods: Option<Pods>,
    /// What its analysis measures.
    pub analysis: Option<String>,
    /// Why not everything is known.
    pub missing: Option<MissingRights>,
}

impl Detail {
    /// What was found behind an object.
    pub fn of(object: &Value, found: &Found) -> Detail {
        let uid = object.str_at(&["metadata", "uid"]).unwrap_or_default();
        // Without a right to see them all, none is not none.
        let kind = kind(object).filter(|_| found.missing.is_none());
        let pods = kind.and_then(|kind| pods_of(object, kind, uid, found));
        let experiment = found.experiment.as_ref().filter(|experiment| controller(experiment).as_deref() == Some(uid));
        let experiment = experiment.and_then(|experiment| experiment.str_at(&["metadata", "uid"]));
        let is_its = |run: &&Value| controller(run).is_some_and(|owner| *owner == *uid || Some(&*owner) == experiment);
        let analysis = found.runs.iter().filter(is_its).find_map(measured);
        Detail { version: version(object), pods, analysis, missing: found.missing.clone() }
    }
}

/// The version of an object that something is remembered about; empty while its controller has not seen the newest one: what
/// stands behind it belongs to the one before.
pub fn version(object: &Value) -> String {
    let observed = object.at(&["status", "observedGeneration"]);
    let observed = observed.and_then(|observed| observed.as_int().or_else(|| observed.as_str()?.parse().ok()));
    if observed.is_some_and(|observed| Some(observed) != object.int_at(&["metadata", "generation"])) {
        return String::new();
    }
    let hash = object.str_at(&["status", "currentPodHash"]).unwrap_or_default();
    if hash.is_empty() {
        object.int_at(&["metadata", "generation"]).unwrap_or_default().to_string()
    } else {
        hash.to_owned()
    }
}

fn pods_of(object: &Value, kind: Kind, uid: &str, found: &Found) -> Option<Pods> {
    let owned = |of: &Value, owner: &str| controller(of).as_deref() == Some(owner);
    let count = |value: Option<i64>| usize::try_from(value.unwrap_or_default()).unwrap_or_default();
    let label = |pod: &Value, name: &str| pod.str_at(&["metadata", "labels", name]).map(str::to_owned);
    let failed = || uncreated(&found.events);
    match kind {
        Kind::Rollout | Kind::Deployment => {
            let is_newest = |set: &&Value| match kind {
                Kind::Rollout => {
                    label(set, label::POD_TEMPLATE_HASH).as_deref() == object.str_at(&["status", "currentPodHash"])
                }
                _ => {
                    let revision = |of: &Value| of.str_at(&["metadata", "annotations", REVISION]).map(str::to_owned);
                    revision(set) == revision(object)
                }
            };
            let set = found.sets.iter().filter(|set| owned(set, uid)).find(is_newest)?;
            let set_uid = set.str_at(&["metadata", "uid"]).unwrap_or_default();
            let pods = found.pods.iter().filter(|pod| owned(pod, set_uid));
            Some(Pods::of(pods, count(set.int_at(&["spec", "replicas"])), failure(set)))
        }
        Kind::ReplicaSet => {
            let pods = found.pods.iter().filter(|pod| owned(pod, uid));
            Some(Pods::of(pods, count(object.int_at(&["spec", "replicas"]).or(Some(1))), failure(object)))
        }
        Kind::Pod => Some(Pods::of([object].into_iter(), 1, None)),
        Kind::StatefulSet => {
            let newest = object.str_at(&["status", "updateRevision"]);
            let is_newest =
                |pod: &&Value| newest.is_none() || label(pod, "controller-revision-hash").as_deref() == newest;
            let pods = found.pods.iter().filter(|pod| owned(pod, uid)).filter(is_newest);
            Some(Pods::of(pods, count(object.int_at(&["spec", "replicas"]).or(Some(1))), failed()))
        }
        Kind::DaemonSet => {
            let newest = object.str_at(&["metadata", "annotations", GENERATION.1]);
            let is_newest = |pod: &&Value| newest.is_none() || label(pod, GENERATION.0).as_deref() == newest;
            let pods = found.pods.iter().filter(|pod| owned(pod, uid)).filter(is_newest);
            Some(Pods::of(pods, count(object.int_at(&["status", "desiredNumberScheduled"])), failed()))
        }
        Kind::Job => {
            let pods = found.pods.iter().filter(|pod| owned(pod, uid));
            Some(Pods::of(pods, count(object.int_at(&["spec", "parallelism"]).or(Some(1))), failed()))
        }
    }
}

/// Why a ReplicaSet could not create pods.
pub fn failure(set: &Value) -> Option<String> {
    let failure = set.list_at(&["status", "conditions"]).iter().find(|condition| {
        (condition.str_at(&["type"]), condition.str_at(&["status"])) == (Some("ReplicaFailure"), Some("True"))
    });
    failure.map(|failure| pods::uncreated(failure.str_at(&["message"]).unwrap_or_default()))
}

/// Why a controller could not create pods, from the newest of its events.
fn uncreated(events: &[Value]) -> Option<String> {
    let failed = events.iter().filter(|event| event.str_at(&["reason"]) == Some("FailedCreate"));
    let newest = failed.max_by_key(|event| event.str_at(&["lastTimestamp"]).unwrap_or_default().to_owned())?;
    Some(pods::uncreated(newest.str_at(&["message"]).unwrap_or_default()))
}

/// What a running analysis has measured last, and what it wants: `analysis error-rate: 0.02, wants result < 0.05`.
pub fn measured(run: &Value) -> Option<String> {
    let run: AnalysisRun = api::read(run).object;
    let status = run.status;
    if !is_open(&status.phase) {
        return None;
    }
    let counting = status.metric_results.iter().filter(|result| !result.dry_run);
    let result = counting.filter(|result| is_open(&result.phase)).find(|result| !result.measurements.is_empty())?;
    let last = result.measurements.last()?;
    let metric = run.spec.metrics.iter().find(|metric| metric.name == result.name);
    let wants = metric.and_then(|metric| match (&metric.success_condition, &metric.failure_condition) {
        (success, _) if !success.is_empty() => Some(format!(", wants {success}")),
        (_, failure) if !failure.is_empty() => Some(format!(", fails if {failure}")),
        _ => None,
    });
    let value = if last.value.is_empty() { last.phase.as_str() } else { last.value.as_str() };
    let words = format!("analysis {}: {value}{}", result.name, wants.unwrap_or_default());
    Some(super::id::cut(&words, 120))
}

/// How long what was found is believed, by how long the commit is under way: everything that is said becomes a status at
/// a host, and hosts take only so many.
pub fn lasts(age: SignedDuration) -> SignedDuration {
    match age.as_secs() {
        ..120 => SignedDuration::from_secs(5),
        120..1800 => SignedDuration::from_secs(30),
        _ => SignedDuration::from_secs(120),
    }
}

/// For how long the newest commit of a source is under way.
pub fn age(status: &GitSourceStatus, now: Timestamp) -> SignedDuration {
    let since = status.seen.as_ref().and_then(|seen| seen.at);
    since.map_or(SignedDuration::ZERO, |since| now.duration_since(since.into()))
}

/// What is remembered of an object's pods, for this version of it.
pub fn remembered<'s>(status: &'s GitSourceStatus, id: &Id, version: &str) -> Option<&'s str> {
    let about = |unready: &&UnreadyObject| {
        !version.is_empty()
            && *id == Id::new(&unready.group, &unready.kind, &unready.namespace, &unready.name)
            && unready.version == version
    };
    status.unready.iter().find(about).map(|unready| unready.reason.as_str())
}

/// What is to be remembered of an object that is not done.
pub fn unready(id: &Id, version: &str, reason: &str) -> UnreadyObject {
    UnreadyObject {
        group: id.group.to_string(),
        kind: id.kind.to_string(),
        namespace: id.namespace.to_string(),
        name: id.name.to_string(),
        version: version.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn bad(owner: &str, labels: Value) -> Value {
        value!({"metadata": {"name": format!("{owner}-1"), "labels": serde_json::Value::from(&labels),
            "ownerReferences": [{"uid": owner, "controller": true}]},
            "spec": {"containers": [{"name": "main", "image": "web:9"}]},
            "status": {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]}})
    }

    #[track_caller]
    fn check(object: &Value, found: &Found, ask: &str, words: &str) {
        assert_eq!(Ask::of(object).unwrap().selector, ask);
        assert_eq!(Detail::of(object, found).pods.unwrap().words(), words);
    }

    #[test]
    fn every_workload_knows_the_pods_of_its_newest_version() {
        const WHY: &str = "ErrImagePull: web:9 not found";
        let set = |uid: &str, hash: &str, revision: &str| {
            value!({"metadata": {"uid": uid, "labels": {"rollouts-pod-template-hash": hash}, "annotations": {"deployment.kubernetes.io/revision": revision},
                "ownerReferences": [{"uid": "u", "controller": true}]}, "spec": {"replicas": 2}})
        };
        let mut found = Found { sets: vec![set("old", "a", "1"), set("new", "b", "2")], ..Found::default() };
        found.pods = vec![bad("new", value!({})), bad("another", value!({}))];
        let rollout = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web", "uid": "u"},
            "status": {"currentPodHash": "b", "stableRS": "a"}});
        check(&rollout, &found, "rollouts-pod-template-hash=b", &format!("0 of 2 new pods ready: {WHY}"));
        let of = |kind: &str, more: Value| {
            let mut object = value!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", "uid": "u"},
                "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web", "tier": "a"}}}});
            for (key, value) in more.as_map().unwrap().iter() {
                object.set_at(&["metadata", "annotations", key], value.clone());
            }
            object
        };
        let deployment = of("Deployment", value!({"deployment.kubernetes.io/revision": "2"}));
        check(&deployment, &found, "app=web,tier=a", &format!("0 of 2 new pods ready: {WHY}"));
        found.pods = vec![bad("u", value!({"controller-revision-hash": "r2", "pod-template-generation": "7"}))];
        let mut stateful = of("StatefulSet", value!({}));
        stateful.set_at(&["status", "updateRevision"], "r2");
        check(&stateful, &found, "app=web,tier=a", &format!("0 of 3 new pods ready: {WHY}"));
        let mut daemon = of("DaemonSet", value!({"deprecated.daemonset.template.generation": "7"}));
        daemon.set_at(&["status", "desiredNumberScheduled"], 4);
        check(&daemon, &found, "app=web,tier=a", &format!("0 of 4 new pods ready: {WHY}"));
        let mut job = of("Job", value!({}));
        job.set_at(&["apiVersion"], "batch/v1");
        check(&job, &found, "app=web,tier=a", &format!("0 of 1 new pods ready: {WHY}"));
        found.pods.clear();
        found.events = vec![
            value!({"reason": "FailedCreate", "message": "pods \"x\" is forbidden: exceeded quota: q", "lastTimestamp": "2026-01-01T00:00:00Z"}),
        ];
        check(&job, &found, "app=web,tier=a", "0 of 1 new pods ready: exceeded quota: q");
        assert_eq!(Ask::of(&value!({"apiVersion": "v1", "kind": "ConfigMap"})), None);
    }

    #[test]
    fn a_running_analysis_says_what_it_measures_and_wants() {
        let rollout = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web", "uid": "u"},
            "status": {"currentPodHash": "b", "canary": {"currentStepAnalysisRunStatus": {"name": "web-b-2", "status": "Running"}}}});
        assert_eq!(Ask::of(&rollout).unwrap().runs, ["web-b-2"]);
        let run = |owner: &str| {
            value!({"metadata": {"name": "web-b-2", "ownerReferences": [{"uid": owner, "controller": true}]},
                "spec": {"metrics": [{"name": "rate", "successCondition": "result[0] >= 0.95", "provider": {}}]},
                "status": {"phase": "Running", "metricResults": [
                    {"name": "rate", "phase": "Running", "measurements": [{"value": "[0.99]", "phase": "Successful"}, {"value": "[0.97]", "phase": "Successful"}]}]}})
        };
        let of = |owner: &str| Detail::of(&rollout, &Found { runs: vec![run(owner)], ..Found::default() }).analysis;
        assert_eq!(of("u").as_deref(), Some("analysis rate: [0.97], wants result[0] >= 0.95"));
        assert_eq!(of("another"), None);
        let mut stepping = rollout.clone();
        stepping.set_at(&["status", "canary"], value!({"currentExperiment": "web-b-1"}));
        assert_eq!(Ask::of(&stepping).unwrap().experiment.as_deref(), Some("web-b-1"));
        let experiment = value!({"metadata": {"uid": "e", "ownerReferences": [{"uid": "u", "controller": true}]},
            "status": {"analysisRuns": [{"analysisRun": "old", "phase": "Successful"}, {"analysisRun": "web-b-2", "phase": "Running"}]}});
        assert_eq!(runs_of(&experiment), ["web-b-2"]);
        let found = Found { runs: vec![run("e")], experiment: Some(experiment), ..Found::default() };
        let words = Detail::of(&stepping, &found).analysis;
        assert_eq!(words.as_deref(), Some("analysis rate: [0.97], wants result[0] >= 0.95"));
    }
}
