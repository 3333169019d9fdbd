//! Limits, delays, and where a canary stands.

use serde_json::{Value as Json, json};
use tidegate::{
    api::Rollout,
    model::limits::{self, AbortDelay},
    rollout::{
        replicas,
        step::{self, Share},
    },
};

use super::rollouts::{rollout, set, sets};

#[test]
fn vectors_limits() {
    super::check("limits", |input, _| {
        let rollout = rollout(&input["rollout"]);
        Some(match input["kind"].as_str() {
            Some("surge-unavailable") => {
                json!({"maxSurge": limits::max_surge(&rollout), "maxUnavailable": limits::max_unavailable(&rollout)})
            }
            Some("canary-step") => canary_step(&rollout),
            _ => blue_green(&rollout, input),
        })
    });
}

fn with_delays(mut answer: Json, rollout: &Rollout) -> Json {
    let (delay, was_set) = match limits::abort_scale_down_delay(rollout) {
        AbortDelay::Never => (Json::Null, true),
        AbortDelay::After { delay, explicit } => (delay.as_secs().into(), explicit),
    };
    answer["abortScaleDownDelaySeconds"] = delay;
    answer["abortScaleDownDelayWasSet"] = was_set.into();
    answer["scaleDownDelaySeconds"] = limits::scale_down_delay(rollout).as_secs().into();
    answer
}

fn canary_step(rollout: &Rollout) -> Json {
    let position = step::position(rollout);
    let (replicas, weight) = match step::share(rollout, None, None) {
        Share::Replicas(replicas) => (Some(replicas), 0),
        Share::Weight(weight) => (None, weight),
    };
    let answer = json!({
        "step": position.and_then(|position| position.step),
        "index": position.map(|position| position.index),
        "setWeight": step::set_weight(rollout),
        "maxWeight": limits::max_weight(rollout),
        "canaryReplicas": replicas,
        "canaryWeight": weight,
        "setCanaryScale": step::canary_scale(rollout),
        "beforeStartingStep": step::is_before_background_analysis(rollout),
        "resetIndex": step::first_index(rollout),
    });
    with_delays(answer, rollout)
}

fn blue_green(rollout: &Rollout, input: &Json) -> Json {
    let (new, all) = (set(&input["newRS"]).unwrap(), sets(&input["allRSs"]));
    let selector = &rollout.status.blue_green.active_selector;
    let active = all.iter().rfind(|set| !selector.is_empty() && set.hash.as_str() == selector);
    let answer = json!({
        "newReplicas": replicas::blue_green_new(rollout, &new, active),
        "readyForPause": replicas::is_blue_green_ready(rollout, &new, active),
        "autoPromotionEnabled": limits::auto_promotes(rollout),
        "error": null,
    });
    with_delays(answer, rollout)
}
