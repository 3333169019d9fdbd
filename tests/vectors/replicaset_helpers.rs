//! What is asked of ReplicaSets.

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use tidegate::{
    model::limits,
    rollout::{replicas, restart, step},
};

use super::rollouts::{rollout, set};

#[test]
fn vectors_replicaset_helpers() {
    super::check("replicaset-helpers", |input, _| {
        let now = || input["now"].as_str().unwrap().parse::<Timestamp>().unwrap();
        Some(match input["kind"].as_str().unwrap() {
            "progress-threshold" => {
                let threshold: Option<_> = serde_json::from_value(input["threshold"].clone()).unwrap();
                let size = input["desired"].as_i64().unwrap() as i32;
                let set = set(&input["replicaSet"]);
                json!({"met": replicas::is_ready(threshold.as_ref(), set.as_ref(), size)})
            }
            "scale-down-deadline" => deadline(input, now()),
            "needs-restart" => json!({"needsRestart": restart::is_due(&rollout(&input["rollout"]), now())}),
            "saturated" => saturated(input),
            _ => {
                let (rollout, set) = (rollout(&input["rollout"]), set(&input["replicaSet"]));
                let from = set.as_ref().and_then(|set| step::returning_from(&rollout, set));
                json!({
                    "rollingBack": from.is_some(),
                    "previousHash": from.unwrap_or_default(),
                    "abortOrRollback": step::is_going_back(&rollout, set.as_slice()),
                })
            }
        })
    });
}

fn deadline(input: &Json, now: Timestamp) -> Json {
    let set = set(&input["replicaSet"]).unwrap_or_default();
    let (remaining, error) = match set.time_to_scale_down(now) {
        Ok(remaining) => (remaining, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let seconds = remaining.map(|left| match left.as_secs_f64() {
        whole if whole.fract() == 0.0 => json!(whole as i64),
        seconds => json!(seconds),
    });
    json!({"has": set.has_scale_down_deadline(), "error": error, "remainingSeconds": seconds})
}

fn saturated(input: &Json) -> Json {
    let set = set(&input["replicaSet"]).unwrap();
    let size = limits::replicas(&rollout(&input["rollout"]));
    json!({
        "desired": set.noted_replicas().unwrap_or_default(),
        "desiredFound": set.noted_replicas().is_some(),
        "saturated": set.is_saturated(size),
        "annotationsNeedUpdate": set.notes_are_outdated(size),
        "available": set.is_available(),
        "partiallyAvailable": set.is_partially_available(),
    })
}
