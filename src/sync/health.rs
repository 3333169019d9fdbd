//! How an object that was applied is doing, as kstatus would see it, and in a few words for the commit.
//!
//! A Rollout is done only when it is fully promoted; what has no status to speak of is done when it is there. Never asks
//! for more than the object itself.

use std::fmt;

use crate::{
    api::{
        self, Rollout,
        constants::{self, annotation, condition, reason},
    },
    kubernetes::value::Value,
    model::{
        codec,
        health::{Health, Phase, Standing},
    },
    rollout::step,
};

/// How an object is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doing {
    /// In one word.
    pub standing: Standing,
    /// In a few; empty if there is nothing to say.
    pub words: String,
    /// It was given up, for this pod template.
    pub aborted: Option<String>,
}

impl Doing {
    fn new(standing: Standing, words: impl Into<String>) -> Doing {
        Doing { standing, words: words.into(), aborted: None }
    }

    /// How an object is doing.
    pub fn of(object: &Value) -> Doing {
        if object.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null()) {
            return Doing::new(Standing::InProgress, "is being deleted");
        }
        let group = object.str_at(&["apiVersion"]).unwrap_or_default().split_once('/').map_or("", |(group, _)| group);
        match (group, object.str_at(&["kind"]).unwrap_or_default()) {
            (constants::GROUP, constants::kind::ROLLOUT) => rollout(object),
            ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") => workload(object),
            ("batch", "Job") => job(object),
            ("", "Pod") => pod(object),
            ("", "PersistentVolumeClaim") => claim(object),
            ("", "Namespace" | "Service") => Doing::new(Standing::Current, ""),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                named_condition(object, "Established", "is not established yet")
            }
            ("apiregistration.k8s.io", "APIService") => named_condition(object, "Available", "is not available yet"),
            _ => generic(object),
        }
    }
}

fn rollout(object: &Value) -> Doing {
    let rollout: Rollout = api::read(object).object;
    let health = Health::shown(&rollout, rollout.spec.workload_ref.is_some());
    let status = &rollout.status;
    let standing = Standing::of(&health);
    // An update that begins in this very moment has a status that is about the one before.
    let words = match standing {
        Standing::Current => String::new(),
        Standing::InProgress => Progress::of(&rollout, &health).to_string(),
        Standing::Stalled => why_degraded(&rollout, &health),
    };
    // Whatever else is new about it: this template was given up, until somebody takes that back.
    let aborted = Some(status.current_pod_hash.clone()).filter(|hash| is_aborted(&rollout) && !hash.is_empty());
    Doing { standing, words, aborted }
}

fn is_aborted(rollout: &Rollout) -> bool {
    codec::decode(&rollout.status).abort.is_on()
}

/// Why a Rollout is degraded: what its message says, without the name that the reader knows.
fn why_degraded(rollout: &Rollout, health: &Health) -> String {
    let message = match health {
        Health::Recorded { message, .. } if !message.is_empty() => message.clone(),
        other => other.to_string(),
    };
    if is_aborted(rollout) || message.starts_with(reason::ROLLOUT_ABORTED) {
        let why = message.strip_prefix("RolloutAborted: ").unwrap_or(&message);
        return format!("aborted: {why}");
    }
    message
}

/// How far an update is: `step 3/7, 20 %, 2 of 5 pods`.
struct Progress {
    step: Option<(i32, usize)>,
    weight: Option<i32>,
    updated: i32,
    replicas: i32,
    waits: Option<String>,
}

impl Progress {
    fn of(rollout: &Rollout, health: &Health) -> Progress {
        let status = &rollout.status;
        let steps = rollout.spec.strategy.canary.as_ref().map_or(0, |canary| canary.steps.len());
        let updating = !status.stable_rs.is_empty() && status.stable_rs != status.current_pod_hash;
        let at = step::position(rollout).filter(|_| updating);
        let step = at.map(|at| (at.index.saturating_add(1).min(i32::try_from(steps).unwrap_or(i32::MAX)), steps));
        let waits = match health.phase() {
            Phase::Paused => {
                let by_hand = rollout.spec.paused
                    || at.and_then(|at| at.step?.pause.as_ref()).is_some_and(|pause| pause.duration.is_none());
                Some(if by_hand || at.is_none() { "waits for a person" } else { "pauses" }.to_owned())
            }
            Phase::Healthy | Phase::Progressing | Phase::Degraded => None,
        };
        Progress {
            weight: step.map(|_| step::set_weight(rollout)),
            step,
            updated: status.updated_replicas,
            replicas: rollout.spec.replicas.unwrap_or(1),
            waits,
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((step, of)) = self.step {
            write!(f, "step {step}/{of}, ")?;
        }
        if let Some(weight) = self.weight {
            write!(f, "{weight} %, ")?;
        }
        write!(f, "{} of {} pods", self.updated, self.replicas)?;
        match &self.waits {
            Some(waits) => write!(f, ", {waits}"),
            None => Ok(()),
        }
    }
}

/// Whether the controller has seen the newest specification.
fn is_observed(object: &Value) -> bool {
    let observed = object.int_at(&["status", "observedGeneration"]);
    observed.is_none_or(|observed| observed >= object.int_at(&["metadata", "generation"]).unwrap_or_default())
}

fn condition<'o>(object: &'o Value, name: &str) -> Option<&'o Value> {
    object.list_at(&["status", "conditions"]).iter().find(|condition| condition.str_at(&["type"]) == Some(name))
}

fn holds(object: &Value, name: &str) -> bool {
    condition(object, name).is_some_and(|condition| condition.str_at(&["status"]) == Some("True"))
}

fn message(condition: Option<&Value>) -> String {
    condition.and_then(|condition| condition.str_at(&["message"])).unwrap_or_default().to_owned()
}

fn named_condition(object: &Value, name: &str, otherwise: &str) -> Doing {
    if holds(object, name) { Doing::new(Standing::Current, "") } else { Doing::new(Standing::InProgress, otherwise) }
}

fn workload(object: &Value) -> Doing {
    if object.int_at(&["status", "observedGeneration"]).is_none() || !is_observed(object) {
        return Doing::new(Standing::InProgress, "was not looked at yet");
    }
    let progressing = condition(object, "Progressing");
    if progressing.is_some_and(|condition| condition.str_at(&["reason"]) == Some("ProgressDeadlineExceeded")) {
        return Doing::new(Standing::Stalled, message(progressing));
    }
    let count = |key: &str| object.int_at(&["status", key]).unwrap_or_default();
    let daemon_set = object.str_at(&["kind"]) == Some("DaemonSet");
    let (wanted, updated) = if daemon_set {
        (count("desiredNumberScheduled"), count("updatedNumberScheduled"))
    } else {
        (object.int_at(&["spec", "replicas"]).unwrap_or(1), count("updatedReplicas"))
    };
    let updated = if object.str_at(&["kind"]) == Some("ReplicaSet") { count("replicas") } else { updated };
    let available = if daemon_set { count("numberAvailable") } else { count("availableReplicas") };
    let ready = available.min(updated);
    let old = !daemon_set && count("replicas") > updated;
    if ready >= wanted && !old {
        return Doing::new(Standing::Current, "");
    }
    // A Deployment that a Rollout refers to may be held by it.
    if object.at(&["metadata", "annotations", annotation::REVISION]).is_some() && wanted == 0 {
        return Doing::new(Standing::Current, "");
    }
    Doing::new(Standing::InProgress, format!("{ready} of {wanted} pods"))
}

fn job(object: &Value) -> Doing {
    if holds(object, "Failed") {
        return Doing::new(Standing::Stalled, format!("failed: {}", message(condition(object, "Failed"))));
    }
    let suspended = object.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
    if holds(object, "Complete") || suspended {
        return Doing::new(Standing::Current, "");
    }
    Doing::new(Standing::InProgress, "is running")
}

fn pod(object: &Value) -> Doing {
    match object.str_at(&["status", "phase"]) {
        Some("Succeeded") => Doing::new(Standing::Current, ""),
        Some("Failed") => Doing::new(Standing::Stalled, "failed"),
        Some("Running") if holds(object, "Ready") => Doing::new(Standing::Current, ""),
        _ => Doing::new(Standing::InProgress, "is not ready yet"),
    }
}

fn claim(object: &Value) -> Doing {
    match object.str_at(&["status", "phase"]) {
        Some("Bound") => Doing::new(Standing::Current, ""),
        Some("Lost") => Doing::new(Standing::Stalled, "lost its volume"),
        // It may wait for its first pod, which may be in a later stage.
        _ => Doing::new(Standing::Current, ""),
    }
}

/// What kstatus makes of any object: its generation and its conditions.
fn generic(object: &Value) -> Doing {
    if !is_observed(object) {
        return Doing::new(Standing::InProgress, "was not looked at yet");
    }
    if holds(object, condition::STALLED) {
        return Doing::new(Standing::Stalled, message(condition(object, condition::STALLED)));
    }
    if holds(object, condition::RECONCILING) {
        return Doing::new(Standing::InProgress, message(condition(object, condition::RECONCILING)));
    }
    let ready = condition(object, condition::READY);
    match ready.and_then(|ready| ready.str_at(&["status"])) {
        Some("True") | None => Doing::new(Standing::Current, ""),
        Some(_) => Doing::new(Standing::InProgress, message(ready)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[track_caller]
    fn check(object: Value, standing: Standing, words: &str) -> Doing {
        let doing = Doing::of(&object);
        assert_eq!((doing.standing, doing.words.as_str()), (standing, words), "{}", object.to_json());
        doing
    }

    fn canary(status: Value) -> Value {
        value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web", "generation": 3},
            "spec": {"replicas": 5, "strategy": {"canary": {"steps": [
                {"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {"duration": "10s"}}]}}},
            "status": serde_json::Value::from(&status)})
    }

    #[test]
    fn a_rollout_tells_how_far_it_is() {
        let mut status = value!({"observedGeneration": "3", "phase": "Progressing", "stableRS": "a", "currentPodHash": "b",
            "currentStepIndex": 0, "updatedReplicas": 1});
        check(canary(status.clone()), Standing::InProgress, "step 1/4, 20 %, 1 of 5 pods");
        status.set_at(&["phase"], "Paused");
        status.set_at(&["currentStepIndex"], 1);
        check(canary(status.clone()), Standing::InProgress, "step 2/4, 20 %, 1 of 5 pods, waits for a person");
        status.set_at(&["currentStepIndex"], 3);
        status.set_at(&["updatedReplicas"], 3);
        check(canary(status.clone()), Standing::InProgress, "step 4/4, 60 %, 3 of 5 pods, pauses");
        status.set_at(&["stableRS"], "b");
        status.set_at(&["phase"], "Healthy");
        check(canary(status.clone()), Standing::Current, "");
        status.set_at(&["observedGeneration"], "2");
        check(canary(status), Standing::InProgress, "3 of 5 pods");
    }

    #[test]
    fn an_abort_names_the_template_that_was_given_up() {
        let status = value!({"observedGeneration": "3", "phase": "Degraded", "abort": true, "stableRS": "a", "currentPodHash": "b",
            "message": "RolloutAborted: Rollout aborted update to revision 2"});
        let doing = check(canary(status), Standing::Stalled, "aborted: Rollout aborted update to revision 2");
        assert_eq!(doing.aborted.as_deref(), Some("b"));
    }

    #[test]
    fn other_kinds_are_read_as_kstatus_reads_them() {
        let deployment = |status: Value| {
            value!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 2},
                "status": serde_json::Value::from(&status)})
        };
        check(deployment(value!({})), Standing::InProgress, "was not looked at yet");
        let moving = value!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 1});
        check(deployment(moving), Standing::InProgress, "1 of 2 pods");
        let done = value!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
        check(deployment(done), Standing::Current, "");
        let job = |condition: &str| value!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": [{"type": condition, "status": "True", "message": "m"}]}});
        check(job("Complete"), Standing::Current, "");
        check(job("Failed"), Standing::Stalled, "failed: m");
        check(job("Other"), Standing::InProgress, "is running");
        check(value!({"apiVersion": "v1", "kind": "ConfigMap"}), Standing::Current, "");
        let widget = |r#type: &str, status: &str| value!({"apiVersion": "example.org/v1", "kind": "Widget", "status": {"conditions": [{"type": r#type, "status": status, "message": "m"}]}});
        check(widget("Ready", "True"), Standing::Current, "");
        check(widget("Ready", "False"), Standing::InProgress, "m");
        check(widget("Stalled", "True"), Standing::Stalled, "m");
    }
}
