//! From memory to status.

use crate::{
    api::{
        self, BlueGreenStatus, CanaryStatus, PauseCondition, RolloutAnalysisRunStatus, RolloutDurationStatus,
        RolloutSpec, RolloutStatus, Time, TrafficWeights, WeightDestination,
    },
    kubernetes::value::{Map, Value},
    model::{
        health::Health,
        memory::{
            Abort, Attempt, Begun, BlueGreenMemory, CanaryMemory, Hash, Hold, Memory, Pause, PingPong, PreviewSize,
            Promotion, Run, Share, Verification, Weights,
        },
    },
};

/// The status that remembers this, with everything in `old` that is not ours. Phase and message follow from the
/// specification and the rest.
///
/// If `old` says it all already, the answer is `old` itself ([`Value::is`]).
pub fn encode(memory: &Memory, spec: &RolloutSpec, old: &Value) -> Value {
    let said = api::read::<RolloutStatus>(old).object;
    let mut next = status_of(memory);
    let health = Health::of(spec, &next);
    next.phase = health.phase_word().to_owned();
    next.message = health.to_string();
    let mut status = old.clone();
    if !matches!(status, Value::Map(_)) {
        status = Value::object();
    }
    overlay(&mut status, &api::write(&said), &api::write(&next));
    status
}

/// The fields of status that remember this, without phase and message.
pub fn status_of(memory: &Memory) -> RolloutStatus {
    let (controller_pause, pause_conditions) = hold(&memory.hold);
    let (abort, aborted_at) = abort(memory.abort);
    let text = |hash: &Option<Hash>| hash.as_ref().map(Hash::to_string).unwrap_or_default();
    RolloutStatus {
        abort,
        pause_conditions,
        controller_pause,
        aborted_at,
        current_pod_hash: text(&memory.current),
        current_step_hash: text(&memory.steps),
        replicas: memory.pods.all,
        updated_replicas: memory.pods.updated,
        ready_replicas: memory.pods.ready,
        available_replicas: memory.pods.available,
        current_step_index: memory.step.map(|step| i32::try_from(step).unwrap_or(i32::MAX)),
        collision_count: memory.collisions,
        observed_generation: memory.generation.map(|generation| generation.to_string()).unwrap_or_default(),
        conditions: memory.conditions.clone(),
        canary: canary(&memory.canary),
        blue_green: blue_green(&memory.blue_green),
        hpa_replicas: memory.pods.scaled,
        selector: memory.pods.selector.clone(),
        stable_rs: text(&memory.stable),
        restarted_at: memory.restarted_at,
        promote_full: memory.promotion == Promotion::Full,
        phase: String::new(),
        message: String::new(),
        workload_observed_generation: memory
            .workload_generation
            .map(|generation| generation.to_string())
            .unwrap_or_default(),
        alb: memory.alb.clone(),
        albs: memory.albs.clone(),
        duration: memory.attempt.as_ref().map(attempt),
    }
}

fn hold(hold: &Hold) -> (bool, Vec<PauseCondition>) {
    let condition = |pause: &Pause| PauseCondition { reason: pause.reason.to_string(), start_time: pause.since };
    let conditions = hold.pauses().map(condition).collect();
    match hold {
        Hold::Free => (false, conditions),
        Hold::Released => (true, conditions),
        Hold::Waiting { by: Begun::Here, .. } => (true, conditions),
        Hold::Waiting { by: Begun::Elsewhere, .. } => (false, conditions),
    }
}

fn abort(abort: Abort) -> (bool, Option<Time>) {
    match abort {
        Abort::No => (false, None),
        Abort::Asked => (true, None),
        Abort::Since(at) => (true, Some(at)),
        Abort::Retry(at) => (false, Some(at)),
    }
}

fn canary(memory: &CanaryMemory) -> CanaryStatus {
    CanaryStatus {
        current_step_analysis_run_status: memory.step_run.as_ref().map(run),
        current_background_analysis_run_status: memory.background_run.as_ref().map(run),
        current_experiment: memory.experiment.as_ref().map(Hash::to_string).unwrap_or_default(),
        weights: memory.weights.as_ref().map(weights),
        stable_ping_pong: match memory.stable_service {
            None => String::new(),
            Some(PingPong::Ping) => "ping".to_owned(),
            Some(PingPong::Pong) => "pong".to_owned(),
        },
        step_plugin_statuses: memory.plugins.clone(),
    }
}

fn blue_green(memory: &BlueGreenMemory) -> BlueGreenStatus {
    let text = |hash: &Option<Hash>| hash.as_ref().map(Hash::to_string).unwrap_or_default();
    BlueGreenStatus {
        preview_selector: text(&memory.preview),
        active_selector: text(&memory.active),
        scale_up_preview_check_point: memory.size == PreviewSize::Full,
        pre_promotion_analysis_run_status: memory.before_run.as_ref().map(run),
        post_promotion_analysis_run_status: memory.after_run.as_ref().map(run),
    }
}

fn run(run: &Run) -> RolloutAnalysisRunStatus {
    let Run { name, phase, message } = run;
    RolloutAnalysisRunStatus { name: name.clone(), status: phase.to_string(), message: message.clone() }
}

fn weights(weights: &Weights) -> TrafficWeights {
    TrafficWeights {
        canary: share(&weights.canary),
        stable: share(&weights.stable),
        additional: weights.additional.iter().map(share).collect(),
        verified: match weights.verification {
            Verification::NotAsked => None,
            Verification::Pending => Some(false),
            Verification::Confirmed => Some(true),
        },
    }
}

fn share(share: &Share) -> WeightDestination {
    WeightDestination {
        weight: share.weight,
        service_name: share.service.clone(),
        pod_template_hash: share.version.as_ref().map(Hash::to_string).unwrap_or_default(),
    }
}

fn attempt(attempt: &Attempt) -> RolloutDurationStatus {
    let ended = attempt.ended.as_ref();
    RolloutDurationStatus {
        rollout_started_at: Some(attempt.began),
        manual_pause_started_at: attempt.waits_since,
        total_manual_pause_duration_seconds: Some(attempt.waited).filter(|seconds| *seconds != 0),
        finished_at: ended.map(|end| end.at),
        completion_status: ended.and_then(|end| end.how.as_ref()).map(ToString::to_string),
    }
}

/// Brings an object from what it says in known fields to what it is to say. What is unknown stays; a list is one thing.
fn overlay(object: &mut Value, said: &Value, next: &Value) {
    let nothing = Map::default();
    let (said, next) = (said.as_map().unwrap_or(&nothing), next.as_map().unwrap_or(&nothing));
    let gone = said.keys().filter(|key| !next.contains_key(key));
    for key in gone {
        remove(object, key);
    }
    for (key, value) in next.iter() {
        match (object.get(key), said.get(key)) {
            (Some(_), Some(before)) if before == value => {}
            (Some(Value::Map(_)), before) if matches!(value, Value::Map(_)) => {
                let Some(inner) = object.as_map_mut().and_then(|map| map.get_mut(key)) else { continue };
                overlay(inner, before.unwrap_or(&Value::Null), value);
            }
            // An empty object says nothing, and Go writes it all the same.
            (None, _) if value.as_map().is_some_and(Map::is_empty) => {}
            _ => object.set_at(&[key], value),
        }
    }
}

fn remove(object: &mut Value, key: &str) {
    if object.get(key).is_some() {
        object.remove_at(&[key]);
    }
}
