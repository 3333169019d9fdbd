//! What a Rollout waits for, for how long, and who can end it.
//!
//! Read off what is recorded, so that it is true whichever controller is at work. Never decides anything, and never asks the
//! time: a wait has an end, and who prints it says what time it is.

use jiff::{SignedDuration, Timestamp};

use super::{
    intent, pass,
    step::{self, Position},
};
use crate::{
    api::{Rollout, constants::reason},
    kubernetes::shown::human,
    model::{
        codec,
        health::Health,
        limits,
        memory::{Pause, PauseReason},
        names::StepText,
        parse,
        replica_set::ReplicaSet,
    },
};

/// What a Rollout waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// A controller that takes up what was written.
    Controller,
    /// A specification that makes sense.
    Specification,
    /// A person, after the update was aborted.
    Retry,
    /// Pods that do not come: the progress deadline has passed.
    Overdue,
    /// A person who had paused it.
    Resume {
        /// What follows then.
        then: Resumed,
    },
    /// The end of a pause step: by itself, or by a person if no time is given.
    Pause {
        /// The step, from 1.
        step: i32,
        /// Of how many.
        steps: usize,
        /// Since when.
        since: Timestamp,
        /// Until when.
        until: Option<Timestamp>,
    },
    /// The switch to a new version that is ready: by itself, or by a person if no time is given.
    Switch {
        /// Since when.
        since: Timestamp,
        /// Until when.
        until: Option<Timestamp>,
    },
    /// A person's judgement about what was inconclusive.
    Judgement {
        /// `analysis` or `experiment`
        what: &'static str,
    },
    /// New pods for a restart; from this moment on if it is still to come.
    Restart {
        /// When it is to begin.
        from: Timestamp,
    },
    /// Pods of the new version.
    Pods {
        /// Its ReplicaSet.
        set: String,
        /// How many are available.
        available: i32,
        /// Of how many.
        wanted: i32,
    },
    /// A step that takes its time.
    Step {
        /// The step, from 1.
        step: i32,
        /// Of how many.
        steps: usize,
        /// What it is.
        what: String,
    },
    /// An analysis after the switch.
    Analysis,
    /// Old pods that go, at the latest then.
    OldPods {
        /// Their ReplicaSet.
        set: String,
        /// Until when.
        until: Option<Timestamp>,
    },
}

/// What follows when a pause by hand ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumed {
    /// It goes on.
    GoesOn,
    /// It begins the pause anew in which it was.
    WaitsAgain,
}

impl Wait {
    /// What this Rollout waits for; `None` if it is where it should be, or on its way.
    pub fn of(rollout: &Rollout, sets: &[ReplicaSet]) -> Option<Wait> {
        let (spec, status) = (&rollout.spec, &rollout.status);
        let shown = Health::shown(rollout, spec.workload_ref.is_some());
        let health = if matches!(shown, Health::Recorded { .. }) { Health::of(spec, status) } else { shown };
        match health {
            Health::SpecNotObserved | Health::Unpausing | Health::WorkloadNotObserved => Some(Wait::Controller),
            Health::Invalid { .. } => Some(Wait::Specification),
            Health::Failed { reason, .. } if reason == reason::ROLLOUT_ABORTED => Some(Wait::Retry),
            Health::Failed { .. } => Some(Wait::Overdue),
            Health::PausedByHand => {
                let then = if intent::is_held_twice(rollout) { Resumed::WaitsAgain } else { Resumed::GoesOn };
                Some(Wait::Resume { then })
            }
            Health::Waiting { .. } => paused(rollout),
            Health::Restarting => Some(Wait::Restart { from: (*spec.restart_at.as_ref()?).into() }),
            Health::AwaitingAnalysis => Some(Wait::Analysis),
            Health::Updating
            | Health::BecomingAvailable
            | Health::CutoverPending
            | Health::AwaitingVerification
            | Health::OldReplicasPending
            | Health::AwaitingSteps => moving(rollout, sets),
            Health::Healthy | Health::Recorded { .. } => None,
        }
    }

    /// In words, for this Rollout; `program` is what the person types.
    pub fn describe(&self, rollout: &str, program: &str, now: Timestamp) -> String {
        let promote = format!("`{program} promote {rollout}`");
        match self {
            Wait::Controller => "for a controller to take up the change (is `tidegate run` at work?)".to_owned(),
            Wait::Specification => "for a specification that is valid".to_owned(),
            Wait::Retry => {
                format!(
                    "after the abort: `{program} retry rollout {rollout}` tries again, `{program} undo {rollout}` gives up"
                )
            }
            Wait::Overdue => "for pods that should have been there long ago".to_owned(),
            Wait::Resume { then: Resumed::GoesOn } => format!("for {promote}: paused by hand"),
            Wait::Resume { then: Resumed::WaitsAgain } => {
                format!("for {promote}: paused by hand; it then starts its own pause again")
            }
            Wait::Pause { step, steps, until: Some(until), .. } => {
                format!("at step {step}/{steps} for {}; {promote} goes on at once", left(*until, now))
            }
            Wait::Pause { step, steps, since, until: None } => {
                format!("at step {step}/{steps} for {promote}, {} so far", human(now.duration_since(*since)))
            }
            Wait::Switch { until: Some(until), .. } => {
                format!("with the switch for {}; {promote} switches at once", left(*until, now))
            }
            Wait::Switch { since, until: None } => {
                format!("with the switch for {promote}, {} so far", human(now.duration_since(*since)))
            }
            Wait::Judgement { what } => {
                format!(
                    "for a person: the {what} was inconclusive; {promote} goes on, `{program} abort {rollout}` goes back"
                )
            }
            Wait::Restart { from } if *from > now => format!("for the restart in {}", left(*from, now)),
            Wait::Restart { .. } => "for the restart of its pods".to_owned(),
            Wait::Pods { set, available, wanted } => {
                format!("for pods: {available} of {wanted} of {set} are available")
            }
            Wait::Step { step, steps, what } => format!("at step {step}/{steps}: {what}; {promote} skips it"),
            Wait::Analysis => "for the analysis after the switch".to_owned(),
            Wait::OldPods { set, until: Some(until) } => {
                format!("for {set} to be scaled down in {}", left(*until, now))
            }
            Wait::OldPods { set, until: None } => format!("for the pods of {set} to end"),
        }
    }
}

/// How long it is until then; never less than nothing.
fn left(until: Timestamp, now: Timestamp) -> String {
    human(until.duration_since(now).max(SignedDuration::ZERO))
}

fn paused(rollout: &Rollout) -> Option<Wait> {
    let hold = codec::hold(&rollout.status);
    let Pause { reason, since } = hold.first()?;
    let since = (*since).into();
    match reason {
        PauseReason::InconclusiveAnalysis => Some(Wait::Judgement { what: "analysis" }),
        PauseReason::InconclusiveExperiment => Some(Wait::Judgement { what: "experiment" }),
        PauseReason::BlueGreen => {
            let strategy = rollout.spec.strategy.blue_green.as_ref()?;
            let seconds = limits::auto_promotes(rollout).then_some(strategy.auto_promotion_seconds);
            let until = seconds.filter(|seconds| *seconds > 0).map(|seconds| end(since, seconds));
            Some(Wait::Switch { since, until })
        }
        PauseReason::CanaryStep => {
            let (step, steps) = place(rollout)?;
            let given = step::position(rollout)?.step?.pause.as_ref()?.duration.as_ref();
            let until = given.map(|duration| end(since, parse::pause_seconds(duration)));
            Some(Wait::Pause { step, steps, since, until })
        }
        PauseReason::Other(_) => None,
    }
}

fn end(since: Timestamp, seconds: i32) -> Timestamp {
    pass::end(since, SignedDuration::from_secs(seconds.into()))
}

/// The current step, from 1, and how many there are.
fn place(rollout: &Rollout) -> Option<(i32, usize)> {
    let Position { index, step, .. } = step::position(rollout)?;
    step?;
    Some((index.saturating_add(1), rollout.spec.strategy.canary.as_ref()?.steps.len()))
}

/// What the next move waits for: pods first, then the step, then what is left of older versions.
fn moving(rollout: &Rollout, sets: &[ReplicaSet]) -> Option<Wait> {
    let current = rollout.status.current_pod_hash.as_str();
    if let Some(new) = sets.iter().find(|set| set.hash.as_str() == current && set.available < set.desired) {
        return Some(Wait::Pods { set: new.name.to_string(), available: new.available, wanted: new.desired });
    }
    let lasting = step::position(rollout)
        .and_then(|position| position.step)
        .filter(|step| step.analysis.is_some() || step.experiment.is_some() || step.plugin.is_some());
    if let (Some(step), Some((number, steps))) = (lasting, place(rollout)) {
        return Some(Wait::Step { step: number, steps, what: StepText(step).to_string() });
    }
    let old = sets.iter().filter(|set| set.hash.as_str() != current && set.hash.as_str() != rollout.status.stable_rs);
    let mut up = old.filter(|set| set.current > 0);
    up.next().map(|set| Wait::OldPods { set: set.name.to_string(), until: set.scale_down_deadline() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api,
        api::constants::{annotation, label},
        kubernetes::value::Value,
        value,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn set(hash: &str, desired: i32, available: i32, deadline: &str) -> ReplicaSet {
        ReplicaSet::of(&value!({
            "metadata": {
                "name": format!("web-{hash}"),
                "labels": {label::POD_TEMPLATE_HASH: hash},
                "annotations": {annotation::SCALE_DOWN_DEADLINE: deadline},
            },
            "spec": {"replicas": desired},
            "status": {"replicas": desired, "availableReplicas": available},
        }))
    }

    #[track_caller]
    fn check(rollout: Value, sets: &[ReplicaSet], expected: &str) {
        let rollout: Rollout = api::read(&rollout).object;
        let wait = Wait::of(&rollout, sets).map(|wait| wait.describe("web", "tidegate", at(100)));
        assert_eq!(wait.unwrap_or_default(), expected);
    }

    fn canary(step: Value, status: Value) -> Value {
        value!({"spec": {"replicas": 2, "strategy": {"canary": {"steps": [{"setWeight": 50}, step]}}}, "status": status})
    }

    #[test]
    fn a_wait_says_for_how_long_and_what_ends_it() {
        let pause = |reason: &str| {
            value!({
                "currentStepIndex": 1, "controllerPause": true, "currentPodHash": "new", "stableRS": "old",
                "pauseConditions": [{"reason": reason, "startTime": "1970-01-01T00:01:10Z"}],
            })
        };
        check(
            canary(value!({"pause": {"duration": "1m"}}), pause("CanaryPauseStep")),
            &[],
            "at step 2/2 for 30s; `tidegate promote web` goes on at once",
        );
        check(
            canary(value!({"pause": {"duration": 10}}), pause("CanaryPauseStep")),
            &[],
            "at step 2/2 for 0s; `tidegate promote web` goes on at once",
        );
        check(
            canary(value!({"pause": {}}), pause("CanaryPauseStep")),
            &[],
            "at step 2/2 for `tidegate promote web`, 30s so far",
        );
        let mut twice = canary(value!({"pause": {}}), pause("CanaryPauseStep"));
        twice.set_at(&["spec", "paused"], true);
        check(twice, &[], "for `tidegate promote web`: paused by hand; it then starts its own pause again");
        check(
            canary(value!({"analysis": {}}), pause("InconclusiveAnalysisRun")),
            &[],
            "for a person: the analysis was inconclusive; `tidegate promote web` goes on, `tidegate abort web` goes back",
        );
        let blue_green = |strategy: Value| value!({"spec": {"strategy": {"blueGreen": strategy}}, "status": pause("BlueGreenPause")});
        check(
            blue_green(value!({"autoPromotionSeconds": 60})),
            &[],
            "with the switch for 30s; `tidegate promote web` switches at once",
        );
        check(
            blue_green(value!({"autoPromotionSeconds": 60, "autoPromotionEnabled": false})),
            &[],
            "with the switch for `tidegate promote web`, 30s so far",
        );
    }

    #[test]
    fn pods_come_before_steps_and_steps_before_old_pods() {
        let status =
            || value!({"currentStepIndex": 1, "currentPodHash": "new", "stableRS": "old", "updatedReplicas": 1});
        let analysis = || value!({"analysis": {}});
        let late = [set("new", 2, 1, ""), set("older", 1, 1, "")];
        let (there, deadline) = ([set("new", 1, 1, ""), late[1].clone()], set("older", 1, 1, "1970-01-01T00:02:00Z"));
        check(canary(analysis(), status()), &late, "for pods: 1 of 2 of web-new are available");
        check(canary(analysis(), status()), &there, "at step 2/2: analysis; `tidegate promote web` skips it");
        check(canary(value!({"setWeight": 60}), status()), &there, "for the pods of web-older to end");
        let there = [there[0].clone(), deadline];
        check(canary(value!({"setWeight": 60}), status()), &there, "for web-older to be scaled down in 20s");
        check(canary(value!({"setWeight": 60}), status()), &there[..1], "");
    }

    #[test]
    fn whoever_can_end_it_is_named() {
        let failed = |reason: &str| value!({"status": {"conditions": [{"type": "Progressing", "reason": reason}]}});
        check(
            failed("RolloutAborted"),
            &[],
            "after the abort: `tidegate retry rollout web` tries again, `tidegate undo web` gives up",
        );
        check(failed("ProgressDeadlineExceeded"), &[], "for pods that should have been there long ago");
        check(value!({"spec": {"paused": true}}), &[], "for `tidegate promote web`: paused by hand");
        check(value!({"status": {"conditions": [{"type": "InvalidSpec"}]}}), &[], "for a specification that is valid");
        let unseen = value!({"metadata": {"generation": 2}, "status": {"observedGeneration": "1"}});
        check(unseen, &[], "for a controller to take up the change (is `tidegate run` at work?)");
        let restart = |at: &str| value!({"spec": {"restartAt": at}});
        check(restart("1970-01-01T00:02:00Z"), &[], "for the restart in 20s");
        check(restart("1970-01-01T00:01:00Z"), &[], "for the restart of its pods");
        check(value!({"spec": {"replicas": 0}}), &[], "");
    }
}
