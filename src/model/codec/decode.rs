//! From status to memory.

use crate::{
    api::{
        BlueGreenStatus, CanaryStatus, PauseCondition, RolloutAnalysisRunStatus, RolloutDurationStatus, RolloutStatus,
        Time, TrafficWeights, WeightDestination,
    },
    model::memory::{
        Abort, Attempt, Begun, BlueGreenMemory, CanaryMemory, Ended, Hash, Hold, Memory, Name, Pause, PingPong, Pods,
        PreviewSize, Promotion, Run, Share, Verification, Weights,
    },
};

/// What a status remembers.
pub fn decode(status: &RolloutStatus) -> Memory {
    Memory {
        generation: number(&status.observed_generation),
        workload_generation: number(&status.workload_observed_generation),
        current: Hash::new(&status.current_pod_hash),
        stable: Hash::new(&status.stable_rs),
        steps: Hash::new(&status.current_step_hash),
        // A negative step, which only a person can have written, is the first one.
        step: status.current_step_index.map(|index| u32::try_from(index).unwrap_or_default()),
        hold: hold(status.controller_pause, &status.pause_conditions),
        abort: abort(status.abort, moment(status.aborted_at)),
        promotion: if status.promote_full { Promotion::Full } else { Promotion::BySteps },
        restarted_at: moment(status.restarted_at),
        collisions: status.collision_count,
        pods: pods(status),
        canary: canary(&status.canary),
        blue_green: blue_green(&status.blue_green),
        conditions: status.conditions.clone(),
        attempt: status.duration.as_ref().and_then(attempt),
        alb: status.alb.clone(),
        albs: status.albs.clone(),
    }
}

/// Three states in two fields: what was begun here and has no reason any more was ended by a person.
fn hold(controller_pause: bool, conditions: &[PauseCondition]) -> Hold {
    let mut pauses = conditions
        .iter()
        .map(|condition| Pause { reason: condition.reason.as_str().into(), since: condition.start_time });
    match (pauses.next(), controller_pause) {
        (Some(first), controller_pause) => {
            let by = if controller_pause { Begun::Here } else { Begun::Elsewhere };
            Hold::Waiting { first, more: pauses.collect(), by }
        }
        (None, true) => Hold::Released,
        (None, false) => Hold::Free,
    }
}

/// Four states in two fields: an abort that is taken back leaves its time behind.
fn abort(asked: bool, at: Option<Time>) -> Abort {
    match (asked, at) {
        (false, None) => Abort::No,
        (true, None) => Abort::Asked,
        (true, Some(at)) => Abort::Since(at),
        (false, Some(at)) => Abort::Retry(at),
    }
}

/// What is no number was written by a version that kept a hash there, or by nobody.
fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Go's zero time is no time.
fn moment(time: Option<Time>) -> Option<Time> {
    time.filter(|time| !time.is_zero())
}

fn pods(status: &RolloutStatus) -> Pods {
    Pods {
        all: status.replicas,
        updated: status.updated_replicas,
        ready: status.ready_replicas,
        available: status.available_replicas,
        scaled: status.hpa_replicas,
        selector: status.selector.clone(),
    }
}

fn canary(status: &CanaryStatus) -> CanaryMemory {
    CanaryMemory {
        weights: status.weights.as_ref().map(weights),
        step_run: status.current_step_analysis_run_status.as_ref().map(run),
        background_run: status.current_background_analysis_run_status.as_ref().map(run),
        experiment: Name::new(&status.current_experiment),
        stable_service: match status.stable_ping_pong.as_str() {
            "ping" => Some(PingPong::Ping),
            "pong" => Some(PingPong::Pong),
            // At first neither has a role; any other word has always been read in the same way.
            _ => None,
        },
        plugins: status.step_plugin_statuses.clone(),
    }
}

fn blue_green(status: &BlueGreenStatus) -> BlueGreenMemory {
    BlueGreenMemory {
        active: Hash::new(&status.active_selector),
        preview: Hash::new(&status.preview_selector),
        size: if status.scale_up_preview_check_point { PreviewSize::Full } else { PreviewSize::Preview },
        before_run: status.pre_promotion_analysis_run_status.as_ref().map(run),
        after_run: status.post_promotion_analysis_run_status.as_ref().map(run),
    }
}

fn run(status: &RolloutAnalysisRunStatus) -> Run {
    Run { name: status.name.clone(), phase: status.status.as_str().into(), message: status.message.clone() }
}

fn weights(status: &TrafficWeights) -> Weights {
    Weights {
        canary: share(&status.canary),
        stable: share(&status.stable),
        additional: status.additional.iter().map(share).collect(),
        verification: match status.verified {
            None => Verification::NotAsked,
            Some(false) => Verification::Pending,
            Some(true) => Verification::Confirmed,
        },
    }
}

fn share(status: &WeightDestination) -> Share {
    Share { weight: status.weight, service: status.service_name.clone(), version: Hash::new(&status.pod_template_hash) }
}

/// An attempt without a beginning is none: older versions did not note it.
fn attempt(status: &RolloutDurationStatus) -> Option<Attempt> {
    Some(Attempt {
        began: moment(status.rollout_started_at)?,
        waits_since: moment(status.manual_pause_started_at),
        waited: status.total_manual_pause_duration_seconds.unwrap_or_default(),
        ended: moment(status.finished_at)
            .map(|at| Ended { at, how: status.completion_status.as_deref().map(Into::into) }),
    })
}
