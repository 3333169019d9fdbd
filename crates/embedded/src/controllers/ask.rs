//! Questions about stored objects that several controllers ask: who controls it, is the pod active, ready, available.
//!
//! Answers only; never writes, never reads the store.

use jiff::{SignedDuration, Timestamp};

use crate::kubernetes::{
    clock::rfc3339,
    object::Object,
    value::{Map, Text, Value},
};

/// The owner that controls an object: the one owner reference with `controller: true`.
pub fn controller_of(object: &Value) -> Option<&Value> {
    object
        .list_at(&["metadata", "ownerReferences"])
        .iter()
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))
}

/// The uid of the owner that controls an object.
pub fn controller_uid(object: &Value) -> Option<&Text> {
    controller_of(object)?.get("uid")?.as_text()
}

/// Whether `owner` controls `object`.
pub fn is_controlled_by(object: &Value, owner: &Object) -> bool {
    controller_uid(object).is_some_and(|uid| *uid == owner.uid())
}

/// A time field of an object's metadata or status; `None` if absent or malformed.
pub fn time(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

/// `metadata.creationTimestamp`
pub fn created_at(object: &Value) -> Option<Timestamp> {
    time(object.at(&["metadata", "creationTimestamp"]))
}

/// A condition of an object's status by its type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    find_condition(object.list_at(&["status", "conditions"]), kind)
}

/// A condition of a list by its type.
pub fn find_condition<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| condition.str_at(&["type"]) == Some(kind))
}

/// Whether an object's condition of this type has the status `True`.
pub fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition.str_at(&["status"]) == Some("True"))
}

/// `status.phase` of a pod or namespace; empty if there is none.
pub fn phase(object: &Value) -> &str {
    object.str_at(&["status", "phase"]).unwrap_or_default()
}

/// Whether the object is being deleted.
pub fn is_terminating(object: &Value) -> bool {
    object.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null())
}

/// Whether a pod has ended for good: `Succeeded` or `Failed`.
pub fn has_ended(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether a pod counts as a replica: neither ended nor being deleted.
pub fn is_active(pod: &Value) -> bool {
    !has_ended(pod) && !is_terminating(pod)
}

/// Whether a pod is being deleted and still runs.
pub fn is_stopping(pod: &Value) -> bool {
    !has_ended(pod) && is_terminating(pod)
}

/// Whether a pod's condition `Ready` holds.
pub fn is_ready(pod: &Value) -> bool {
    is_true(pod, "Ready")
}

/// When a pod became ready, if it is.
pub fn ready_since(pod: &Value) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready.str_at(&["status"]) == Some("True"))?;
    time(ready.get("lastTransitionTime"))
}

/// When a ready pod has been ready for `min_ready_seconds`, and so counts as available. `None` if it is not ready.
pub fn available_at(pod: &Value, min_ready_seconds: i64) -> Option<Timestamp> {
    if !is_ready(pod) {
        return None;
    }
    if min_ready_seconds <= 0 {
        return Some(Timestamp::MIN);
    }
    // Upstream never calls a pod available whose condition carries no time.
    ready_since(pod)?.checked_add(SignedDuration::from_secs(min_ready_seconds)).ok()
}

/// Whether a pod has been ready for `min_ready_seconds` at `now`.
pub fn is_available(pod: &Value, min_ready_seconds: i64, now: Timestamp) -> bool {
    available_at(pod, min_ready_seconds).is_some_and(|at| at <= now)
}

/// The labels of a pod template or other tree with `metadata`.
pub fn labels(tree: &Value) -> Option<&Map> {
    tree.at(&["metadata", "labels"])?.as_map()
}

/// One of an object's annotations.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.at(&["metadata", "annotations"])?.get(key)?.as_str()
}

/// Whether `labels` has every pair of `wanted`.
pub fn has_labels(labels: Option<&Map>, wanted: Option<&Map>) -> bool {
    wanted
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value)))
}

/// The most restarts of any of a pod's containers, and of any of its sidecars (init containers that always restart).
pub fn restarts(pod: &Value) -> (i64, i64) {
    let count = |status: &Value| status.int_at(&["restartCount"]).unwrap_or(0);
    let regular = pod.list_at(&["status", "containerStatuses"]).iter().map(count).max().unwrap_or(0);
    let sidecars = pod.list_at(&["spec", "initContainers"]);
    let is_sidecar = |status: &&Value| {
        sidecars.iter().any(|container| {
            container.get("name") == status.get("name") && container.str_at(&["restartPolicy"]) == Some("Always")
        })
    };
    let sidecar = pod.list_at(&["status", "initContainerStatuses"]).iter().filter(is_sidecar).map(count).max();
    (regular, sidecar.unwrap_or(0))
}

/// An `intstr.IntOrString`: a count, or a percentage of `total` rounded up or down. `None` if it is neither.
pub fn scaled(value: &Value, total: i64, round: Round) -> Option<i64> {
    if let Some(count) = value.as_int() {
        return Some(count);
    }
    let percent: i64 = value.as_str()?.strip_suffix('%')?.parse::<i32>().ok()?.into();
    let product = percent.saturating_mul(total);
    Some(match round {
        Round::Up => product.div_euclid(100) + i64::from(product.rem_euclid(100) > 0),
        Round::Down => product.div_euclid(100),
    })
}

/// Which way a fraction of a pod goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// To the next whole pod.
    Up,
    /// To the last whole pod.
    Down,
}

/// `metav1.SetStatusCondition`: sets a condition of a list by type. Its time changes only with its status, and nothing is
/// copied if it says all this already.
pub fn set_condition(conditions: &mut Vec<Value>, new: Condition, now: Timestamp) {
    let shown = conditions.iter().position(|old| old.str_at(&["type"]) == Some(new.kind));
    let old = shown.map(|at| &conditions[at]);
    let since = old
        .filter(|old| old.str_at(&["status"]) == Some(new.status))
        .and_then(|old| old.get("lastTransitionTime").cloned())
        .unwrap_or_else(|| rfc3339(now).into());
    let mut condition = map! {
        "type": new.kind, "status": new.status, "reason": new.reason, "message": new.message.as_str(),
        "lastTransitionTime": since,
    };
    if let Some(generation) = new.observed_generation {
        condition.set_at(&["observedGeneration"], generation);
    }
    match shown {
        Some(at) if conditions[at] == condition => {}
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
}

/// What a condition says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Condition<'a> {
    /// Its type.
    pub kind: &'a str,
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// Why, in one word.
    pub reason: &'a str,
    /// Why, in a sentence.
    pub message: String,
    /// The generation it was found for, where that is shown.
    pub observed_generation: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn a_pod_is_available_once_it_was_ready_long_enough() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let ready = |status: &str, since: &str| value!({"status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": since}]}});
        for (pod, min_ready_seconds, available) in [
            (ready("True", "2026-01-01T00:00:50Z"), 10, true),
            (ready("True", "2026-01-01T00:00:51Z"), 10, false),
            (ready("True", "2026-01-01T00:01:00Z"), 0, true),
            (ready("False", "2026-01-01T00:00:00Z"), 0, false),
            (value!({}), 0, false),
        ] {
            assert_eq!(is_available(&pod, min_ready_seconds, now), available, "{pod}");
        }
    }

    #[test]
    fn percentages_are_rounded_as_told() {
        for (value, total, up, down) in [
            (value!(3), 10, Some(3), Some(3)),
            (value!("25%"), 10, Some(3), Some(2)),
            (value!("100%"), 7, Some(7), Some(7)),
            (value!("0%"), 7, Some(0), Some(0)),
            (value!("25"), 10, None, None),
            (value!("x%"), 10, None, None),
            (value!(null), 10, None, None),
        ] {
            assert_eq!((scaled(&value, total, Round::Up), scaled(&value, total, Round::Down)), (up, down), "{value}");
        }
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut conditions = Vec::new();
        let ready = |status, reason| Condition { kind: "Ready", status, reason, ..Condition::default() };
        set_condition(&mut conditions, ready("True", "A"), at(0));
        set_condition(&mut conditions, ready("True", "B"), at(5));
        let expected = |status: &str, reason: &str, time: &str| value!([{"type": "Ready", "status": status, "reason": reason, "message": "", "lastTransitionTime": time}]);
        assert_eq!(Value::list(conditions.clone()), expected("True", "B", "1970-01-01T00:00:00Z"));
        set_condition(&mut conditions, ready("False", "C"), at(9));
        assert_eq!(Value::list(conditions), expected("False", "C", "1970-01-01T00:00:09Z"));
    }

    #[test]
    fn only_the_controlling_owner_counts() {
        let pod = value!({"metadata": {"ownerReferences": [{"uid": "a"}, {"uid": "b", "controller": true}]}});
        assert_eq!(controller_uid(&pod).map(Text::as_str), Some("b"));
        assert_eq!(controller_uid(&value!({"metadata": {"ownerReferences": [{"uid": "a"}]}})), None);
    }

    #[test]
    fn restarts_of_sidecars_count_apart() {
        let pod = value!({
            "spec": {"initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "once"}]},
            "status": {
                "containerStatuses": [{"name": "a", "restartCount": 2}, {"name": "b", "restartCount": 1}],
                "initContainerStatuses": [{"name": "side", "restartCount": 3}, {"name": "once", "restartCount": 9}],
            },
        });
        assert_eq!(restarts(&pod), (2, 3));
    }
}
