//! How large the versions of a canary are, without and with a router.

use serde_json::{Value as Json, json};
use tidegate::{
    api::TrafficWeights,
    model::limits,
    rollout::replicas::{self, Sets},
};

use super::rollouts::{rollout, set, sets};

fn answer(input: &Json) -> Option<Json> {
    let rollout = rollout(&input["rollout"]);
    let (new, stable, others) = (set(&input["newRS"]), set(&input["stableRS"]), sets(&input["olderRSs"]));
    let sets = Sets { new: new.as_ref(), stable: stable.as_ref(), others: &others };
    let weights: Option<TrafficWeights> = serde_json::from_value(input["weights"].clone()).unwrap();
    let sizes = replicas::canary(&rollout, &sets, weights.as_ref());
    let mut answer = json!({"new": sizes.new, "stable": sizes.stable});
    if new.is_some() && stable.is_some() {
        answer["atDesired"] = replicas::is_canary_at_size(&rollout, &sets, weights.as_ref()).into();
    }
    Some(answer)
}

#[test]
fn vectors_basic_canary_replicas() {
    super::check("basic-canary-replicas", |input, _| answer(input));
}

#[test]
fn vectors_traffic_canary_replicas() {
    super::check("traffic-canary-replicas", |input, expect| {
        // An abort with a shrinking stable version and an explicit delay for the canary: 1.10.1 waits with the weight for
        // the canary to shrink, the canary for the stable version to be whole, and that for the weight. Later releases
        // look at the stable version alone, and so do we.
        let rollout = rollout(&input["rollout"]);
        let is_dynamic = rollout.spec.strategy.canary.as_ref().is_some_and(|canary| canary.dynamic_stable_scale);
        let waits = rollout.status.abort && is_dynamic && limits::abort_scale_down_delay(&rollout).is_explicit();
        answer(input).filter(|answer| !waits || answer == expect)
    });
}
