//! What a Rollout's status says about it.

use serde_json::{Value, json};
use tidegate::{
    api::{self, Rollout, RolloutCondition, RolloutStatus, Time},
    kubernetes::value,
    model::{conditions, health, health::Health},
};

use super::check;

fn read<T: serde::de::DeserializeOwned + Default>(json: &Value) -> T {
    api::read(&value::Value::from(json.clone())).object
}

#[test]
fn vectors_phase() {
    check("phase", |input, _| {
        let rollout: Rollout = read(&input["rollout"]);
        let calculated = Health::of(&rollout.spec, &rollout.status);
        let shown = Health::shown(&rollout, input["templateResolvedFromRef"].as_bool().unwrap());
        Some(json!({
            "phase": shown.phase_word(),
            "message": shown.to_string(),
            "calculatedPhase": calculated.phase_word(),
            "calculatedMessage": calculated.to_string(),
            "fullyPromoted": health::is_fully_promoted(&rollout.status),
            "unpausing": health::is_unpausing(&rollout.status),
            "shouldVerifyWeightAt100": health::wants_verified_weight(&rollout, 100),
            "shouldVerifyWeightAt50": health::wants_verified_weight(&rollout, 50),
        }))
    });
}

#[test]
fn vectors_rollout_conditions() {
    check("rollout-conditions", |input, _| {
        let rollout: Rollout = read(&input["rollout"]);
        let mut next: RolloutStatus = read(&input["newStatus"]);
        let condition: RolloutCondition = read(&input["condition"]);
        let now = Time::parse(input["now"].as_str().unwrap()).unwrap();
        let (progressing, healthy) =
            (conditions::is_progress(&rollout, &next), conditions::is_healthy(&rollout, &next));
        let (completed, timed_out) =
            (conditions::is_completed(&next), conditions::is_timed_out(&rollout, &next, now.into()));
        let set = conditions::set(&mut next.conditions, condition);
        Some(json!({
            "progressing": progressing,
            "healthy": healthy,
            "completed": completed,
            "timedOut": timed_out,
            "setConditionChanged": set == conditions::Set::Changed,
            "conditionsAfter": next.conditions,
        }))
    });
}
