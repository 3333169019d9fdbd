//! The status of a Deployment: counts, conditions, progress.

use std::sync::Arc;

use jiff::Timestamp;

use super::maths::Goal;
use crate::controllers::{
    ask,
    replicaset::{after, replicas},
};
use crate::kubernetes::{
    clock::rfc3339,
    object::Object,
    value::{Text, Value},
};

/// `progressDeadlineSeconds`, unless it is absent or the largest number, which mean none.
pub fn progress_deadline(deployment: &Value) -> Option<i64> {
    deployment.int_at(&["spec", "progressDeadlineSeconds"]).filter(|seconds| *seconds != i64::from(i32::MAX))
}

/// `revisionHistoryLimit`, unless it is absent or the largest number, which mean none.
pub fn history_limit(deployment: &Value) -> Option<usize> {
    let limit = deployment.int_at(&["spec", "revisionHistoryLimit"]).filter(|limit| *limit != i64::from(i32::MAX))?;
    usize::try_from(limit).ok()
}

/// The counts and availability of a Deployment's ReplicaSets, on top of its old conditions.
pub fn counted(deployment: &Value, sets: &[Arc<Object>], newest: Option<&Object>, now: Timestamp) -> Value {
    let goal = Goal::of(deployment);
    let sum = |field: &str| -> i64 { sets.iter().map(|set| set.value.int_at(&["status", field]).unwrap_or(0)).sum() };
    let available = sum("availableReplicas");
    let wanted: i64 = sets.iter().map(|set| replicas(&set.value)).sum();
    let mut status = map! {
        "observedGeneration": deployment.int_at(&["metadata", "generation"]).unwrap_or(0),
    };
    let updated = newest.map_or(0, |set| set.value.int_at(&["status", "replicas"]).unwrap_or(0));
    for (field, count) in [
        ("replicas", sum("replicas")),
        ("updatedReplicas", updated),
        ("readyReplicas", sum("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", (wanted - available).max(0)),
    ] {
        if count != 0 {
            status.set_at(&[field], count);
        }
    }
    // Unknown while a set that its controller looked at has not told.
    let told = |set: &Object| {
        set.value.at(&["status", "terminatingReplicas"]).is_some()
            || set.value.int_at(&["status", "observedGeneration"]).unwrap_or(0) == 0
    };
    if sets.iter().all(|set| told(set)) {
        status.set_at(&["terminatingReplicas"], sum("terminatingReplicas"));
    }
    if let Some(count) = deployment.at(&["status", "collisionCount"]) {
        status.set_at(&["collisionCount"], count);
    }
    let mut conditions = deployment.list_at(&["status", "conditions"]).to_vec();
    let enough = available >= goal.replicas - goal.max_unavailable;
    let condition = match enough {
        true => condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now),
        false => condition(
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
            now,
        ),
    };
    set(&mut conditions, condition);
    status.set_at(&["conditions"], conditions);
    status
}

/// A condition that begins now.
pub fn condition(kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let time = rfc3339(now);
    map! {
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": &time, "lastTransitionTime": &time,
    }
}

/// Adds or replaces a condition, unless it has this status and reason already. It moves to the end.
pub fn set(conditions: &mut Vec<Value>, mut new: Value) {
    let kind = new.str_at(&["type"]).unwrap_or_default().to_owned();
    if let Some(old) = ask::find_condition(conditions, &kind) {
        let same = |field| old.get(field) == new.get(field);
        if same("status") && same("reason") {
            return;
        }
        if same("status")
            && let Some(since) = old.get("lastTransitionTime").cloned()
        {
            new.set_at(&["lastTransitionTime"], since);
        }
    }
    remove(conditions, &kind);
    conditions.push(new);
}

/// Removes a condition.
pub fn remove(conditions: &mut Vec<Value>, kind: &str) {
    conditions.retain(|condition| condition.str_at(&["type"]) != Some(kind));
}

/// Whether every replica is of the newest template and available.
pub fn is_complete(deployment: &Value, status: &Value) -> bool {
    let wanted = replicas(deployment);
    let count = |field| status.int_at(&[field]).unwrap_or(0);
    ["updatedReplicas", "replicas", "availableReplicas"].iter().all(|field| count(field) == wanted)
        && count("observedGeneration") >= deployment.int_at(&["metadata", "generation"]).unwrap_or(0)
}

fn has_progressed(old: &Value, new: &Value) -> bool {
    let count = |status: &Value, field| status.int_at(&[field]).unwrap_or(0);
    let stale = |status: &Value| count(status, "replicas") - count(status, "updatedReplicas");
    let grew = |field| count(new, field) > count(old, field);
    grew("updatedReplicas") || stale(new) < stale(old) || grew("readyReplicas") || grew("availableReplicas")
}

/// When a Deployment that made its last progress as this condition says runs out of time.
fn times_out_at(deployment: &Value, progressing: &Value) -> Option<Timestamp> {
    Some(after(ask::time(progressing.get("lastUpdateTime"))?, progress_deadline(deployment)?))
}

/// The status during a rollout: the counts, how far it got, and failures of its ReplicaSets.
pub fn rollout(deployment: &Value, sets: &[Arc<Object>], newest: Option<&Object>, now: Timestamp) -> Value {
    let mut status = counted(deployment, sets, newest, now);
    let mut conditions = status.list_at(&["conditions"]).to_vec();
    let current = ask::condition(deployment, "Progressing").cloned();
    let reason = |condition: &Value| condition.str_at(&["reason"]).map(str::to_owned).unwrap_or_default();
    if progress_deadline(deployment).is_none() {
        remove(&mut conditions, "Progressing");
    }
    let settled = status.get("replicas") == status.get("updatedReplicas")
        && current.as_ref().is_some_and(|current| reason(current) == "NewReplicaSetAvailable");
    if progress_deadline(deployment).is_some() && !settled {
        let subject = match newest {
            Some(newest) => format!("ReplicaSet \"{}\"", newest.name()),
            None => format!("Deployment \"{}\"", deployment.str_at(&["metadata", "name"]).unwrap_or_default()),
        };
        let say =
            |status, reason, what: &str| condition("Progressing", status, reason, &format!("{subject} {what}"), now);
        let old = deployment.get("status").unwrap_or(&Value::Null);
        if is_complete(deployment, &status) {
            set(&mut conditions, say("True", "NewReplicaSetAvailable", "has successfully progressed."));
        } else if has_progressed(old, &status) {
            // Its time moves on with every step, though its reason stays.
            let mut progressing = say("True", "ReplicaSetUpdated", "is progressing.");
            let since = current.as_ref().filter(|current| current.str_at(&["status"]) == Some("True"));
            if let Some(since) = since.and_then(|current| current.get("lastTransitionTime")) {
                progressing.set_at(&["lastTransitionTime"], since);
            }
            remove(&mut conditions, "Progressing");
            conditions.push(progressing);
        } else if current.as_ref().is_some_and(|current| {
            reason(current) == "ProgressDeadlineExceeded"
                || reason(current) != "NewReplicaSetAvailable"
                    && times_out_at(deployment, current).is_some_and(|due| due < now)
        }) {
            set(&mut conditions, say("False", "ProgressDeadlineExceeded", "has timed out progressing."));
        }
    }
    match replica_failure(sets, newest) {
        Some(failure) => set(&mut conditions, failure),
        None => remove(&mut conditions, "ReplicaFailure"),
    }
    status.set_at(&["conditions"], conditions);
    status
}

/// The failure of the newest ReplicaSet, else of any.
fn replica_failure(sets: &[Arc<Object>], newest: Option<&Object>) -> Option<Value> {
    let of = |set: &Object| ask::condition(&set.value, "ReplicaFailure").cloned();
    let mut failure = newest.and_then(of).or_else(|| sets.iter().find_map(|set| of(set)))?;
    let time: Option<Text> = failure.get("lastTransitionTime").and_then(Value::as_text).cloned();
    if let Some(time) = time {
        failure.set_at(&["lastUpdateTime"], time);
    }
    Some(failure)
}

/// When a Deployment that waits must be looked at again to see whether it timed out.
pub fn next_check(deployment: &Value, now: Timestamp) -> Option<Timestamp> {
    let current = ask::condition(deployment, "Progressing")?;
    let status = deployment.get("status")?;
    if is_complete(deployment, status) || current.str_at(&["reason"]) == Some("ProgressDeadlineExceeded") {
        return None;
    }
    // One second more, because times are kept in whole seconds.
    let due = after(times_out_at(deployment, current)?, 1);
    Some(due.max(after(now, 1)))
}

/// The condition that a pause or its end asks for, if it is not shown.
pub fn pause_condition(deployment: &Value, now: Timestamp) -> Option<Value> {
    progress_deadline(deployment)?;
    let reason = ask::condition(deployment, "Progressing").and_then(|condition| condition.str_at(&["reason"]));
    let paused = deployment.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true);
    match (reason, paused) {
        (Some("ProgressDeadlineExceeded"), _) => None,
        (Some("DeploymentPaused"), true) => None,
        (_, true) => Some(condition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now)),
        (Some("DeploymentPaused"), false) => {
            Some(condition("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed", now))
        }
        (_, false) => None,
    }
}
