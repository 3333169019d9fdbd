//! One decision in the making: what has been decided so far in this pass.
//!
//! A pass is made, told what is wanted, and closed into a verdict. Never outlives its decision.

use jiff::Timestamp;

use super::{
    pauses::Pauses,
    target::{Event, Target, Verdict},
    view::View,
};
use crate::api::{BlueGreenStatus, CanaryStatus, RolloutStatus};

/// What has been decided so far.
pub(super) struct Pass<'v> {
    /// What was seen.
    pub view: &'v View,
    /// What status will say, as far as it is known.
    pub next: RolloutStatus,
    /// What happens to pauses and the abort.
    pub pauses: Pauses,
    /// The wanted world.
    pub target: Target,
    events: Vec<Event>,
    reasons: Vec<String>,
    wake: Option<Timestamp>,
}

impl<'v> Pass<'v> {
    pub(super) fn new(view: &'v View) -> Pass<'v> {
        let old = &view.rollout.status;
        // Each part of status is computed anew, but for what other machines and people keep in it.
        let next = RolloutStatus {
            restarted_at: old.restarted_at,
            alb: old.alb.clone(),
            albs: old.albs.clone(),
            duration: old.duration.clone(),
            canary: CanaryStatus {
                weights: old.canary.weights.clone(),
                current_step_analysis_run_status: old.canary.current_step_analysis_run_status.clone(),
                current_background_analysis_run_status: old.canary.current_background_analysis_run_status.clone(),
                current_experiment: old.canary.current_experiment.clone(),
                ..CanaryStatus::default()
            },
            blue_green: BlueGreenStatus {
                pre_promotion_analysis_run_status: old.blue_green.pre_promotion_analysis_run_status.clone(),
                post_promotion_analysis_run_status: old.blue_green.post_promotion_analysis_run_status.clone(),
                ..BlueGreenStatus::default()
            },
            ..RolloutStatus::default()
        };
        let pauses = Pauses::default();
        Pass { view, next, pauses, target: Target::of(view), events: Vec::new(), reasons: Vec::new(), wake: None }
    }

    /// Time alone changes the answer then, if not before.
    pub(super) fn wake_at(&mut self, time: Timestamp) {
        self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
    }

    /// Something to announce.
    pub(super) fn say(&mut self, reason: &'static str, message: impl Into<String>) {
        self.events.push(Event { warning: false, reason, message: message.into() });
    }

    /// Bad news to announce.
    pub(super) fn warn(&mut self, reason: &'static str, message: impl Into<String>) {
        self.events.push(Event { warning: true, reason, message: message.into() });
    }

    /// Why.
    pub(super) fn because(&mut self, reason: impl Into<String>) {
        self.reasons.push(reason.into());
    }

    /// The verdict, with what status is to say.
    pub(super) fn close(self, status: Option<RolloutStatus>) -> Verdict {
        Verdict { target: self.target, status, wake: self.wake, events: self.events, reasons: self.reasons }
    }
}
