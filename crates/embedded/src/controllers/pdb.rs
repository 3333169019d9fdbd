//! PodDisruptionBudgets: how many pods may be evicted, and whether one pod may be.
//!
//! [`may_evict`] is asked by the `eviction` subresource, [`status`] by the controller that keeps a budget's status. Both
//! count as upstream does: a pod that was evicted and not yet marked for deletion is no longer healthy, for at most two
//! minutes. Reads and writes nothing.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{ask, ask::Condition};
use crate::kubernetes::{
    clock::rfc3339,
    object::Object,
    selector::Labels,
    status::{Cause, Details, Reason, Status},
    value::{Map, Value},
};

/// How long a pod may take from its eviction to its deletion before it counts as healthy again.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_secs(120);
/// How many evictions may be on their way at once.
const DISRUPTED_LIMIT: usize = 2000;

/// Whether a pod may be evicted: the budget that pays for it with its new status, if one does.
///
/// `budgets` are those of the pod's namespace.
pub fn may_evict(
    pod: &Object,
    budgets: &[Arc<Object>],
    now: Timestamp,
) -> Result<Option<(Arc<Object>, Value)>, Status> {
    // A pod that ended, waits or goes already disrupts nobody.
    if matches!(ask::phase(&pod.value), "Succeeded" | "Failed" | "Pending") || pod.is_terminating() {
        return Ok(None);
    }
    let mut covering = budgets.iter().filter(|budget| selector(&budget.value).matches(pod.labels()));
    let Some(budget) = covering.next() else { return Ok(None) };
    if covering.next().is_some() {
        let message =
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Status::new(500, Reason::Unknown, message));
    }
    let count = |field: &str| budget.value.int_at(&["status", field]).unwrap_or(0);
    if !ask::is_ready(&pod.value) {
        let always = budget.value.str_at(&["spec", "unhealthyPodEvictionPolicy"]) == Some("AlwaysAllow");
        let healthy = count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0;
        if always || healthy {
            return Ok(None);
        }
    }
    if count("observedGeneration") < budget.value.int_at(&["metadata", "generation"]).unwrap_or(0) {
        let why = format!("The disruption budget {} is still being processed by the server.", budget.name());
        return Err(too_many(why, Some(10)));
    }
    let forbidden = |why| Err(Status::forbidden("policy", "poddisruptionbudget", &budget.name(), why));
    if count("disruptionsAllowed") < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    let disrupted = budget.value.at(&["status", "disruptedPods"]).and_then(Value::as_map);
    if disrupted.is_some_and(|pods| pods.len() > DISRUPTED_LIMIT) {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if count("disruptionsAllowed") == 0 {
        return Err(too_many(exhausted(&budget.value), None));
    }
    Ok(Some((budget.clone(), spent(&budget.value, &pod.name(), now))))
}

fn too_many(why: String, retry_after_seconds: Option<u32>) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut status = Status::new(429, Reason::TooManyRequests, message);
    let cause = Cause { reason: "DisruptionBudget".into(), message: why, field: String::new() };
    status.details = Some(Box::new(Details { causes: vec![cause], retry_after_seconds, ..Details::default() }));
    status
}

/// Why a budget allows nothing.
fn exhausted(budget: &Value) -> String {
    let name = budget.str_at(&["metadata", "name"]).unwrap_or_default();
    let count = |field: &str| budget.int_at(&["status", field]).unwrap_or(0);
    let refused = ask::condition(budget, "DisruptionAllowed").filter(|condition| {
        condition.str_at(&["status"]) == Some("False") && !condition.str_at(&["message"]).unwrap_or_default().is_empty()
    });
    let text = |field| refused.and_then(|condition| condition.str_at(&[field])).unwrap_or_default();
    if text("reason") == "SyncFailed" {
        let message = text("message");
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        );
    }
    let (desired, current) = (count("desiredHealthy"), count("currentHealthy"));
    if current <= desired {
        return format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently");
    }
    let base = format!("The disruption budget {name} does not allow evicting pods currently");
    match refused {
        Some(_) => format!("{base} ({}): {}", text("reason"), text("message")),
        None => base,
    }
}

/// A budget's status after one more pod was evicted.
fn spent(budget: &Value, pod: &str, now: Timestamp) -> Value {
    let mut status = budget.get("status").cloned().unwrap_or_else(Value::object);
    let allowed = status.int_at(&["disruptionsAllowed"]).unwrap_or(0) - 1;
    status.set_at(&["disruptionsAllowed"], allowed);
    if allowed == 0 {
        show_allowance(&mut status, now);
    }
    status.set_at(&["disruptedPods", pod], rfc3339(now));
    status
}

/// Which pods a budget covers.
pub fn selector(budget: &Value) -> Labels {
    let selector = budget.at(&["spec", "selector"]).unwrap_or(&Value::Null);
    Labels::of(selector).unwrap_or_else(|_| Labels::nothing())
}

/// Sets the condition that says whether anything is allowed.
fn show_allowance(status: &mut Value, now: Timestamp) {
    let allowed = status.int_at(&["disruptionsAllowed"]).unwrap_or(0) > 0;
    let condition = Condition {
        kind: "DisruptionAllowed",
        status: if allowed { "True" } else { "False" },
        reason: if allowed { "SufficientPods" } else { "InsufficientPods" },
        message: String::new(),
        observed_generation: Some(status.int_at(&["observedGeneration"]).unwrap_or(0)),
    };
    let mut conditions = status.list_at(&["conditions"]).to_vec();
    ask::set_condition(&mut conditions, condition, now);
    status.set_at(&["conditions"], conditions);
}

/// How many pods there should be, and how many of them healthy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// How many there should be.
    pub pods: i64,
    /// How many must be healthy.
    pub healthy: i64,
    /// Whether some have no controller that would say.
    pub unmanaged: bool,
}

/// A budget's status, and when an eviction that came to nothing must be looked at again.
pub fn status(budget: &Value, count: &Expected, pods: &[Arc<Object>], now: Timestamp) -> (Value, Option<Timestamp>) {
    let old = budget.at(&["status", "disruptedPods"]).and_then(Value::as_map);
    let mut disrupted = Map::default();
    let mut recheck: Option<Timestamp> = None;
    let mut healthy = 0;
    for pod in pods.iter().filter(|pod| !pod.is_terminating()) {
        let noted = old.and_then(|old| old.get(&pod.name()));
        let due = ask::time(noted).and_then(|time| time.checked_add(DELETION_TIMEOUT).ok());
        let expected_gone = match (noted, due) {
            (Some(noted), Some(due)) if due >= now => {
                disrupted.insert(pod.name(), noted.clone());
                recheck = Some(recheck.map_or(due, |first| first.min(due)));
                due > now
            }
            _ => false,
        };
        if !expected_gone && ask::is_ready(&pod.value) {
            healthy += 1;
        }
    }
    let allowed = if count.pods <= 0 { 0 } else { (healthy - count.healthy).max(0) };
    let mut status = map! {
        "currentHealthy": healthy, "desiredHealthy": count.healthy, "expectedPods": count.pods,
        "disruptionsAllowed": allowed,
        "observedGeneration": budget.int_at(&["metadata", "generation"]).unwrap_or(0),
        "conditions": budget.at(&["status", "conditions"]).cloned().unwrap_or_else(|| Value::list([])),
    };
    if !disrupted.is_empty() {
        status.set_at(&["disruptedPods"], disrupted);
    }
    show_allowance(&mut status, now);
    (status, recheck)
}

/// The status of a budget that cannot be worked out: nothing is allowed.
pub fn failed(budget: &Value, why: &str, now: Timestamp) -> Value {
    let mut status = budget.get("status").cloned().unwrap_or_else(Value::object);
    status.set_at(&["disruptionsAllowed"], 0);
    let condition = Condition {
        kind: "DisruptionAllowed",
        status: "False",
        reason: "SyncFailed",
        message: why.to_owned(),
        observed_generation: Some(status.int_at(&["observedGeneration"]).unwrap_or(0)),
    };
    let mut conditions = status.list_at(&["conditions"]).to_vec();
    ask::set_condition(&mut conditions, condition, now);
    status.set_at(&["conditions"], conditions);
    status
}

/// A label selector as Go's `%v` prints it in the event about unmanaged pods.
pub fn go_selector(selector: Option<&Value>) -> String {
    let pairs =
        |map: &Map| map.iter().map(|(k, v)| format!("{k}: {},", v.as_str().unwrap_or_default())).collect::<String>();
    let labels = selector.and_then(|s| s.get("matchLabels")).and_then(Value::as_map).map(pairs).unwrap_or_default();
    let requirement = |r: &Value| {
        let text = |field| r.str_at(&[field]).unwrap_or_default();
        let values: Vec<&str> = r.list_at(&["values"]).iter().filter_map(Value::as_str).collect();
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            text("key"),
            text("operator"),
            values.join(" ")
        )
    };
    let expressions: String =
        selector.map(|s| s.list_at(&["matchExpressions"]).iter().map(requirement).collect()).unwrap_or_default();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn object(value: Value) -> Arc<Object> {
        Arc::new(Object { value, managers: Default::default() })
    }

    fn pod(phase: &str, ready: &str) -> Arc<Object> {
        object(value!({
            "metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web"}},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
        }))
    }

    fn budget(name: &str, spec: Value, status: Value) -> Arc<Object> {
        let mut value = value!({"metadata": {"name": name, "generation": 1}, "spec": {"selector": {"matchLabels": {"app": "web"}}}});
        for (field, given) in spec.as_map().unwrap().iter() {
            value.set_at(&["spec", field], given);
        }
        value.set_at(&["status"], status);
        object(value)
    }

    fn now() -> Timestamp {
        "2026-01-01T00:01:00Z".parse().unwrap()
    }

    /// What an eviction is told: the cause of the refusal, what it costs, or nothing.
    #[track_caller]
    fn check(pod: Arc<Object>, budgets: &[Arc<Object>], told: Result<Option<&str>, (u16, &str)>) {
        let outcome = may_evict(&pod, budgets, now());
        let outcome = outcome.map(|cost| cost.map(|(_, status)| status.to_json())).map_err(|status| {
            let cause = status.details.map(|details| details.causes.into_iter().map(|c| c.message).collect::<String>());
            (status.code, cause.filter(|cause| !cause.is_empty()).unwrap_or(status.message))
        });
        let outcome = outcome.as_ref().map(Option::as_deref).map_err(|(code, why)| (*code, why.as_str()));
        assert_eq!(outcome, told);
    }

    #[test]
    fn a_budget_decides_about_an_eviction_in_the_real_words() {
        let counts = |allowed, current, desired, generation| {
            value!({"disruptionsAllowed": allowed, "currentHealthy": current, "desiredHealthy": desired,
                "observedGeneration": generation})
        };
        let simple = |status| budget("b", value!({}), status);
        check(pod("Running", "True"), &[], Ok(None));
        check(pod("Pending", "False"), &[simple(counts(0, 1, 1, 1))], Ok(None));
        check(
            pod("Running", "True"),
            &[simple(counts(0, 1, 1, 1))],
            Err((429, "The disruption budget b needs 1 healthy pods and has 1 currently")),
        );
        check(
            pod("Running", "True"),
            &[simple(counts(1, 2, 1, 0))],
            Err((429, "The disruption budget b is still being processed by the server.")),
        );
        check(
            pod("Running", "True"),
            &[simple(counts(1, 2, 1, 1)), budget("c", value!({}), counts(1, 2, 1, 1))],
            Err((
                500,
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )),
        );
        // Evicting a pod that is not ready costs nothing while enough others are.
        check(pod("Running", "False"), &[simple(counts(0, 1, 1, 1))], Ok(None));
        check(
            pod("Running", "False"),
            &[simple(counts(0, 0, 1, 1))],
            Err((429, "The disruption budget b needs 1 healthy pods and has 0 currently")),
        );
        let always = budget("b", value!({"unhealthyPodEvictionPolicy": "AlwaysAllow"}), counts(0, 0, 1, 1));
        check(pod("Running", "False"), &[always], Ok(None));
        check(
            pod("Running", "True"),
            &[simple(counts(2, 3, 1, 1))],
            Ok(Some(
                r#"{"currentHealthy":3,"desiredHealthy":1,"disruptedPods":{"web-1":"2026-01-01T00:01:00Z"},"disruptionsAllowed":1,"observedGeneration":1}"#,
            )),
        );
        check(
            pod("Running", "True"),
            &[simple(counts(1, 2, 1, 1))],
            Ok(Some(
                r#"{"conditions":[{"lastTransitionTime":"2026-01-01T00:01:00Z","message":"","observedGeneration":1,"reason":"InsufficientPods","status":"False","type":"DisruptionAllowed"}],"currentHealthy":2,"desiredHealthy":1,"disruptedPods":{"web-1":"2026-01-01T00:01:00Z"},"disruptionsAllowed":0,"observedGeneration":1}"#,
            )),
        );
        let failed = value!({"disruptionsAllowed": 0, "observedGeneration": 1, "conditions": [
            {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}]});
        check(
            pod("Running", "True"),
            &[simple(failed)],
            Err((
                429,
                "The disruption budget b does not allow evicting pods currently because it failed sync: no scale",
            )),
        );
    }

    #[test]
    fn an_evicted_pod_is_not_healthy_for_two_minutes() {
        let count = Expected { pods: 2, healthy: 1, unmanaged: false };
        let row = |noted: &str| {
            let budget = budget("b", value!({}), value!({"disruptedPods": {"web-1": noted}}));
            let other = object(
                value!({"metadata": {"name": "web-2"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
            );
            let (status, recheck) = status(&budget.value, &count, &[pod("Running", "True"), other], now());
            let numbers = (status.int_at(&["currentHealthy"]), status.int_at(&["disruptionsAllowed"]));
            (numbers, status.at(&["disruptedPods"]).is_some(), recheck.map(|time| time.to_string()))
        };
        assert_eq!(row("2026-01-01T00:00:30Z"), ((Some(1), Some(0)), true, Some("2026-01-01T00:02:30Z".into())));
        assert_eq!(row("2025-12-31T23:58:30Z"), ((Some(2), Some(1)), false, None));
    }

    #[test]
    fn a_selector_prints_as_go_prints_it() {
        let selector = value!({"matchLabels": {"app": "web", "x": "y"}, "matchExpressions": [
            {"key": "k", "operator": "In", "values": ["a", "b"]}]});
        assert_eq!(
            go_selector(Some(&selector)),
            "&LabelSelector{MatchLabels:map[string]string{app: web,x: y,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[a b],},},}"
        );
    }
}
