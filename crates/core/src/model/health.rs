//! How a Rollout is doing: phase and message in Argo's words, and the three conditions of kstatus.
//!
//! Reads what status says; never decides what it should say next, never looks at a pod.

use std::fmt;

use super::{codec, memory::Hold};
use crate::api::{
    BlueGreenStrategy, CanaryStep, CanaryStrategy, Condition, Rollout, RolloutCondition, RolloutSpec, RolloutStatus,
    Time,
    constants::{analysis_phase, annotation, condition, message, phase, reason},
};

/// The phase of a Rollout, as `status.phase` and every client say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// All is as wanted.
    Healthy,
    /// It is on its way.
    Progressing,
    /// It waits for a person, or for time to pass.
    Paused,
    /// Something went wrong.
    Degraded,
}

impl Phase {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Healthy => phase::HEALTHY,
            Phase::Progressing => phase::PROGRESSING,
            Phase::Paused => phase::PAUSED,
            Phase::Degraded => phase::DEGRADED,
        }
    }

    /// The phase of this word; `None` for a word of which nobody has heard.
    pub fn named(word: &str) -> Option<Phase> {
        [Phase::Healthy, Phase::Progressing, Phase::Paused, Phase::Degraded]
            .into_iter()
            .find(|phase| phase.as_str() == word)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a Rollout is doing, and why. Its `Display` is the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// The specification is wrong.
    Invalid {
        /// The message of the condition.
        message: String,
    },
    /// The update was aborted, or does not get on.
    Failed {
        /// Which of the two, as the condition's reason says it.
        reason: String,
        /// The message of the condition.
        message: String,
    },
    /// A person set `spec.paused`.
    PausedByHand,
    /// A pause condition holds.
    Waiting {
        /// Its reason.
        reason: String,
    },
    /// Pods are being replaced because of `restartAt`.
    Restarting,
    /// Too few pods are of the newest version.
    Updating,
    /// Pods of the newest version are not available yet.
    BecomingAvailable,
    /// The active Service does not lead to the newest version yet.
    CutoverPending,
    /// The analysis after the switch is not over.
    AwaitingAnalysis,
    /// The load balancer does not agree yet.
    AwaitingVerification,
    /// Pods of older versions are still there.
    OldReplicasPending,
    /// There are steps left.
    AwaitingSteps,
    /// The controller has not seen the newest specification.
    SpecNotObserved,
    /// A person resumed, and the controller has not acted upon it.
    Unpausing,
    /// The controller has not seen the newest state of the referenced workload.
    WorkloadNotObserved,
    /// All is as wanted.
    Healthy,
    /// What the controller wrote into status.
    Recorded {
        /// The phase; a word that is none counts as on its way.
        phase: String,
        /// The message.
        message: String,
    },
}

impl Health {
    /// What the controller is to write into `status.phase` and `status.message`.
    pub fn of(spec: &RolloutSpec, status: &RolloutStatus) -> Health {
        // Whatever its type and status: clients have relied on the first match in the list for years.
        for condition in &status.conditions {
            if condition.r#type == condition::INVALID_SPEC {
                return Health::Invalid { message: condition.message.to_string() };
            }
            if [reason::ROLLOUT_ABORTED, reason::TIMED_OUT].contains(&condition.reason.as_str()) {
                let (reason, message) = (condition.reason.to_string(), condition.message.to_string());
                return Health::Failed { reason, message };
            }
        }
        if spec.paused {
            return Health::PausedByHand;
        }
        let memory = codec::decode(status);
        if let Some(pause) = memory.hold.first() {
            return Health::Waiting { reason: pause.reason.to_string() };
        }
        if memory.restart(spec).is_some() {
            return Health::Restarting;
        }
        if status.updated_replicas < replicas(spec) {
            return Health::Updating;
        }
        if status.available_replicas < status.updated_replicas {
            return Health::BecomingAvailable;
        }
        match (&spec.strategy.blue_green, &spec.strategy.canary) {
            (Some(strategy), _) => blue_green(strategy, status),
            (None, Some(strategy)) => canary(strategy, status),
            (None, None) => Health::Healthy,
        }
    }

    /// What a client is to show: what is recorded, unless the record is older than what was asked for.
    pub fn shown(rollout: &Rollout, template_from_workload: bool) -> Health {
        if !is_generation_observed(rollout) {
            return Health::SpecNotObserved;
        }
        if is_unpausing(&rollout.status) {
            return Health::Unpausing;
        }
        if template_from_workload && !is_workload_observed(rollout) {
            return Health::WorkloadNotObserved;
        }
        let status = &rollout.status;
        if !status.phase.is_empty() {
            return Health::Recorded { phase: status.phase.clone(), message: status.message.clone() };
        }
        Health::of(&rollout.spec, status)
    }

    /// The phase, or the word in its place that somebody else recorded.
    pub fn phase_word(&self) -> &str {
        match self {
            Health::Recorded { phase, .. } => phase,
            _ => self.phase().as_str(),
        }
    }

    /// The phase.
    pub fn phase(&self) -> Phase {
        match self {
            Health::Invalid { .. } | Health::Failed { .. } => Phase::Degraded,
            Health::PausedByHand | Health::Waiting { .. } => Phase::Paused,
            Health::Restarting
            | Health::Updating
            | Health::BecomingAvailable
            | Health::CutoverPending
            | Health::AwaitingAnalysis
            | Health::AwaitingVerification
            | Health::OldReplicasPending
            | Health::AwaitingSteps
            | Health::SpecNotObserved
            | Health::Unpausing
            | Health::WorkloadNotObserved => Phase::Progressing,
            Health::Healthy => Phase::Healthy,
            Health::Recorded { phase, .. } => Phase::named(phase).unwrap_or(Phase::Progressing),
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Health::Invalid { message } => write!(f, "{}: {message}", condition::INVALID_SPEC),
            Health::Failed { reason, message } => write!(f, "{reason}: {message}"),
            Health::PausedByHand => f.write_str(message::PAUSED_BY_HAND),
            Health::Waiting { reason } => f.write_str(reason),
            Health::Restarting => f.write_str("rollout is restarting"),
            Health::Updating => f.write_str("more replicas need to be updated"),
            Health::BecomingAvailable => f.write_str("updated replicas are still becoming available"),
            Health::CutoverPending => f.write_str("active service cutover pending"),
            Health::AwaitingAnalysis => f.write_str("waiting for analysis to complete"),
            Health::AwaitingVerification => f.write_str("waiting for post-promotion verification to complete"),
            Health::OldReplicasPending => f.write_str("old replicas are pending termination"),
            Health::AwaitingSteps => f.write_str("waiting for all steps to complete"),
            Health::SpecNotObserved => f.write_str("waiting for rollout spec update to be observed"),
            Health::Unpausing => f.write_str("waiting for rollout to unpause"),
            Health::WorkloadNotObserved => {
                f.write_str("waiting for rollout spec update to be observed for the reference workload")
            }
            Health::Healthy => Ok(()),
            Health::Recorded { message, .. } => f.write_str(message),
        }
    }
}

fn blue_green(strategy: &BlueGreenStrategy, status: &RolloutStatus) -> Health {
    let active = &status.blue_green.active_selector;
    if active.is_empty() || *active != status.current_pod_hash {
        return Health::CutoverPending;
    }
    if is_promoted(status) {
        return Health::Healthy;
    }
    let run = status.blue_green.post_promotion_analysis_run_status.as_ref();
    let is_over = run.is_some_and(|run| is_over(&run.status));
    if strategy.post_promotion_analysis.is_some() && !is_over {
        return Health::AwaitingAnalysis;
    }
    Health::AwaitingVerification
}

fn canary(strategy: &CanaryStrategy, status: &RolloutStatus) -> Health {
    // With a router old pods stay on purpose, for their scale-down delay.
    if strategy.traffic_routing.is_none() && status.replicas > status.updated_replicas {
        return Health::OldReplicasPending;
    }
    if is_promoted(status) { Health::Healthy } else { Health::AwaitingSteps }
}

/// How many pods are wanted.
pub fn replicas(spec: &RolloutSpec) -> i32 {
    spec.replicas.unwrap_or(1)
}

/// Whether an analysis in this phase is over.
pub fn is_over(phase: &str) -> bool {
    use analysis_phase::{ERROR, FAILED, INCONCLUSIVE, SUCCESSFUL};
    [SUCCESSFUL, FAILED, ERROR, INCONCLUSIVE].contains(&phase)
}

/// Whether the version that the specification asks for is the stable one. Both are unknown at first, and alike.
pub fn is_fully_promoted(status: &RolloutStatus) -> bool {
    status.stable_rs == status.current_pod_hash
}

/// Whether there is a stable version and it is the one that the specification asks for.
fn is_promoted(status: &RolloutStatus) -> bool {
    !status.stable_rs.is_empty() && is_fully_promoted(status)
}

/// Whether a person took the pause away and the controller has not acted upon it.
pub fn is_unpausing(status: &RolloutStatus) -> bool {
    codec::hold(status) == Hold::Released
}

/// Whether the controller has seen the newest specification. What cannot be read as a number was written by a version that
/// recorded a hash there: nobody can tell.
pub fn is_generation_observed(rollout: &Rollout) -> bool {
    let observed = rollout.status.observed_generation.parse::<i64>();
    observed.map_or(true, |observed| observed >= rollout.metadata.generation)
}

fn is_workload_observed(rollout: &Rollout) -> bool {
    let generation = rollout.metadata.annotations.get(annotation::WORKLOAD_GENERATION);
    let generation = generation.and_then(|text| text.parse::<i32>().ok());
    let observed = rollout.status.workload_observed_generation.parse::<i32>().ok();
    match (generation, observed) {
        (Some(generation), Some(observed)) => generation == observed,
        (None, _) | (_, None) => true,
    }
}

/// Whether the load balancer is to be asked if it has taken over this weight: at a `setWeight` step and after the last one,
/// not at every pass, because the question costs money and quota.
pub fn wants_verified_weight(rollout: &Rollout, weight: i32) -> bool {
    if rollout.status.stable_rs.is_empty() || is_fully_promoted(&rollout.status) {
        return false;
    }
    match current_step(rollout) {
        Some(step) => step.set_weight.is_some(),
        None => weight == max_weight(rollout),
    }
}

fn current_step(rollout: &Rollout) -> Option<&CanaryStep> {
    let steps = &rollout.spec.strategy.canary.as_ref()?.steps;
    steps.get(usize::try_from(rollout.status.current_step_index.unwrap_or(0)).ok()?)
}

fn max_weight(rollout: &Rollout) -> i32 {
    let canary = rollout.spec.strategy.canary.as_ref();
    canary.and_then(|canary| canary.traffic_routing.as_ref()?.max_traffic_weight).unwrap_or(100)
}

/// What kstatus makes of an object: the word that `flux`, `kubectl wait` and every tool built on it act upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is as wanted.
    Current,
    /// It is on its way, or waits.
    InProgress,
    /// It will not get there without help.
    Stalled,
}

impl Standing {
    /// How a Rollout stands.
    pub fn of(health: &Health) -> Standing {
        match health.phase() {
            Phase::Healthy => Standing::Current,
            // Whoever waits for a person has not arrived, and has not failed either.
            Phase::Progressing | Phase::Paused => Standing::InProgress,
            Phase::Degraded => Standing::Stalled,
        }
    }

    /// The conditions that say so: `Ready`, which is always said, then `Reconciling` or `Stalled`, which are only said while
    /// they hold. kstatus takes the very presence of a true one for the answer, and that of a false one for noise.
    fn held(self) -> (&'static str, Option<&'static str>) {
        match self {
            Standing::Current => ("True", None),
            Standing::InProgress => ("Unknown", Some(condition::RECONCILING)),
            Standing::Stalled => ("False", Some(condition::STALLED)),
        }
    }

    /// The conditions of an object of ours. `old` keeps the moments at which what still holds began to hold.
    pub fn conditions(
        self,
        reason: &str,
        message: &str,
        generation: i64,
        now: Time,
        old: &[Condition],
    ) -> Vec<Condition> {
        let (ready, other) = self.held();
        let since = |r#type: &str, status: &str| {
            let before = old.iter().find(|condition| condition.r#type == r#type && condition.status == status);
            before.map_or(now, |condition| condition.last_transition_time)
        };
        let held = [(condition::READY, ready)].into_iter().chain(other.map(|r#type| (r#type, "True")));
        let made = held.map(|(r#type, status)| Condition {
            r#type: r#type.to_owned(),
            status: status.to_owned(),
            observed_generation: generation,
            last_transition_time: since(r#type, status),
            reason: reason.to_owned(),
            message: message.to_owned(),
        });
        made.collect()
    }

    /// Takes back what [`Standing::say`] said.
    pub fn unsay(conditions: &mut Vec<RolloutCondition>) {
        let ours = [condition::READY, condition::RECONCILING, condition::STALLED];
        conditions.retain(|condition| !ours.contains(&condition.r#type.as_str()));
    }

    /// Says the same in a Rollout's conditions, behind Argo's own, for `kubectl wait --for=condition=Ready`. Their reason is
    /// the phase, a word that no client takes for one of Argo's reasons. What is said already is left as it is.
    pub fn say(health: &Health, conditions: &mut Vec<RolloutCondition>, now: Time) {
        let (ready, other) = Standing::of(health).held();
        for r#type in [condition::RECONCILING, condition::STALLED] {
            if other != Some(r#type) {
                conditions.retain(|condition| condition.r#type != r#type);
            }
        }
        let (reason, message) = (health.phase_word(), health.to_string());
        for (r#type, status) in [(condition::READY, ready)].into_iter().chain(other.map(|r#type| (r#type, "True"))) {
            let old = conditions.iter_mut().find(|condition| condition.r#type == r#type);
            let is_said = |old: &RolloutCondition| {
                old.status == status && old.reason == reason && old.message == message.as_str()
            };
            let since = |old: &RolloutCondition| if old.status == status { old.last_transition_time } else { now };
            let new = |last_transition_time| RolloutCondition {
                r#type: r#type.into(),
                status: status.into(),
                last_update_time: now,
                last_transition_time,
                reason: reason.into(),
                message: message.as_str().into(),
            };
            match old {
                None => conditions.push(new(now)),
                Some(old) if is_said(old) => {}
                Some(old) => *old = new(since(old)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, value};

    #[track_caller]
    fn check(rollout: crate::kubernetes::value::Value, phase: Phase, message: &str) {
        let rollout: Rollout = api::read(&rollout).object;
        let health = Health::shown(&rollout, false);
        assert_eq!((health.phase(), health.to_string().as_str()), (phase, message));
    }

    #[test]
    fn the_first_match_wins() {
        let aborted = value!({"type": "Progressing", "status": "False", "reason": "RolloutAborted", "message": "m"});
        let invalid = value!({"type": "InvalidSpec", "status": "True", "reason": "InvalidSpec", "message": "n"});
        check(
            value!({"status": {"conditions": [&aborted.to_json()]}}),
            Phase::Progressing,
            "more replicas need to be updated",
        );
        let both = |first: &_, second: &_| {
            let mut rollout = value!({"spec": {"paused": true}});
            rollout.set_at(
                &["status", "conditions"],
                crate::kubernetes::value::Value::list([first, second].map(Clone::clone)),
            );
            rollout
        };
        check(both(&aborted, &invalid), Phase::Degraded, "RolloutAborted: m");
        check(both(&invalid, &aborted), Phase::Degraded, "InvalidSpec: n");
        check(value!({"spec": {"paused": true}}), Phase::Paused, "manually paused");
        check(value!({"spec": {"replicas": 0}}), Phase::Healthy, "");
        check(
            value!({"metadata": {"generation": 2}, "status": {"observedGeneration": "1", "phase": "Healthy"}}),
            Phase::Progressing,
            "waiting for rollout spec update to be observed",
        );
        check(
            value!({"metadata": {"generation": 2}, "status": {"observedGeneration": "abc", "phase": "Healthy"}}),
            Phase::Healthy,
            "",
        );
        check(value!({"status": {"phase": "Odd", "message": "so"}}), Phase::Progressing, "so");
    }

    #[test]
    fn kstatus_sees_reconciling_and_stalled_only_while_they_hold() {
        let (then, now) = (Time::parse("2024-01-01T00:00:00Z").unwrap(), Time::parse("2024-01-02T00:00:00Z").unwrap());
        let words = |conditions: &[Condition]| -> Vec<(String, String, Time)> {
            let of = |c: &Condition| (c.r#type.clone(), c.status.clone(), c.last_transition_time);
            conditions.iter().map(of).collect()
        };
        let moving = Standing::InProgress.conditions("Progressing", "m", 1, then, &[]);
        let still = Standing::InProgress.conditions("Paused", "n", 2, now, &moving);
        let expected = [("Ready", "Unknown"), ("Reconciling", "True")].map(|(t, s)| (t.to_owned(), s.to_owned(), then));
        assert_eq!(words(&still), expected);
        assert_eq!((still[0].observed_generation, still[0].message.as_str()), (2, "n"));
        let done = Standing::Current.conditions("Healthy", "", 2, now, &still);
        assert_eq!(words(&done), [("Ready".to_owned(), "True".to_owned(), now)]);
        let failed = Standing::Stalled.conditions("Degraded", "", 2, now, &done);
        let expected = [("Ready", "False"), ("Stalled", "True")].map(|(t, s)| (t.to_owned(), s.to_owned(), now));
        assert_eq!(words(&failed), expected);
    }

    #[test]
    fn a_rollout_says_how_it_stands_without_misleading_argos_clients() {
        let (then, now) = (Time::parse("2024-01-01T00:00:00Z").unwrap(), Time::parse("2024-01-02T00:00:00Z").unwrap());
        let failed = Health::Failed { reason: reason::ROLLOUT_ABORTED.to_owned(), message: "m".to_owned() };
        let mut conditions = Vec::new();
        Standing::say(&failed, &mut conditions, then);
        let status = RolloutStatus { conditions: conditions.clone(), ..RolloutStatus::default() };
        assert_eq!(Health::of(&RolloutSpec::default(), &status), Health::Updating, "not taken for an abort");
        Standing::say(&failed, &mut conditions, now);
        assert_eq!(conditions, status.conditions, "nothing new, nothing written");
        Standing::say(&Health::Updating, &mut conditions, now);
        let words: Vec<_> =
            conditions.iter().map(|c| (c.r#type.as_str(), c.status.as_str(), c.reason.as_str())).collect();
        assert_eq!(words, [("Ready", "Unknown", "Progressing"), ("Reconciling", "True", "Progressing")]);
        Standing::say(&Health::PausedByHand, &mut conditions, now);
        assert_eq!((conditions[0].reason.as_str(), conditions[0].message.as_str()), ("Paused", "manually paused"));
        Standing::say(&Health::Healthy, &mut conditions, now);
        assert_eq!((conditions.len(), conditions[0].status.as_str()), (1, "True"));
    }
}
