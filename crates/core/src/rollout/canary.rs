//! A canary: a growing share of the new version, step by step.
//!
//! At most one step is taken in a pass. Never takes one while the pods it waits for are missing.

use jiff::SignedDuration;

use super::{
    pass::{Pass, end},
    replicas,
    restart::Restart,
    runs::Slot,
    sets::Scaled,
    step::{self, Position},
    target::Verdict,
    view::{Set, View},
};
use crate::{
    api::{
        CanaryStep, RolloutPause, RolloutStatus,
        constants::{message, reason},
    },
    model::{memory::PauseReason, names::StepText, parse},
};

impl<'v> Pass<'v> {
    /// One pass of a canary.
    pub(super) fn canary(mut self) -> Verdict {
        if is_new_attempt(self.view) {
            return self.begin_canary();
        }
        if self.restart() == Restart::Evicted {
            self.because("pods were evicted; their absence must show before anything else moves");
            return self.close(None);
        }
        self.sync_metadata();
        self.trim_history();
        self.ping_pong_services();
        self.canary_services();
        if self.traffic().is_break() {
            return self.count_only();
        }
        if let Err(problem) = self.experiments() {
            return self.invalid(&problem);
        }
        if let Err(problem) = self.analysis_runs() {
            return self.invalid(&problem);
        }
        if self.has_begun_pause() {
            self.because("an analysis or an experiment was inconclusive: a person decides");
            return self.canary_status();
        }
        if self.canary_sets() == Scaled::No {
            self.pause_step();
        }
        self.canary_status()
    }

    /// A new template, or new steps: everything of the last attempt is forgotten, nothing moves yet.
    fn begin_canary(mut self) -> Verdict {
        let view = self.view;
        let mut next = self.canary_base();
        self.reset(&mut next);
        let steps = step_count(view);
        if let Some(new) = view.new_set().filter(|_| steps > 0) {
            if view.rollout.status.stable_rs == new.info.hash.as_str() {
                self.say(reason::SKIP_STEPS, "Rollback to stable ReplicaSets");
                next.current_step_index = Some(steps);
            } else if self.is_rollback_within_window() && new.info.desired > 0 {
                self.say(reason::SKIP_STEPS, "Rollback to active ReplicaSets within RollbackWindow");
                next.current_step_index = Some(steps);
            }
        }
        self.persist(next)
    }

    /// Traffic does not go where it should, and nothing may follow from where it is: status says how many pods there are, and
    /// else what it said.
    fn count_only(self) -> Verdict {
        let now = self.canary_base();
        let counted = RolloutStatus {
            replicas: now.replicas,
            updated_replicas: now.updated_replicas,
            ready_replicas: now.ready_replicas,
            available_replicas: now.available_replicas,
            hpa_replicas: now.hpa_replicas,
            ..self.view.rollout.status.clone()
        };
        self.close(Some(counted))
    }

    /// What status says of every canary.
    fn canary_base(&self) -> RolloutStatus {
        let view = self.view;
        let mut next = self.base();
        next.available_replicas = view.sets.iter().map(|set| set.info.available).sum();
        next.hpa_replicas = view.sets.iter().map(|set| set.info.current).sum();
        next.selector = view.selector.to_string();
        next.canary.stable_ping_pong = view.rollout.status.canary.stable_ping_pong.clone();
        next.canary.step_plugin_statuses = view.rollout.status.canary.step_plugin_statuses.clone();
        next.stable_rs = view.rollout.status.stable_rs.clone();
        next.current_step_hash = view.step_hash.to_string();
        next
    }

    /// Begins the pause of a pause step, or waits for its end.
    fn pause_step(&mut self) {
        let rollout = &self.view.rollout;
        if rollout.spec.paused || self.view.memory.promotion.is_full() {
            return;
        }
        let Some(Position { step: Some(CanaryStep { pause: Some(pause), .. }), .. }) = step::position(rollout) else {
            return;
        };
        let hold = &self.view.memory.hold;
        match hold.since(&PauseReason::CanaryStep) {
            None if !hold.is_begun_here() => self.pause(PauseReason::CanaryStep),
            None => {}
            Some(since) => {
                if let Some(length) = length(pause) {
                    self.wake_at(end(since, length));
                }
            }
        }
    }

    /// What status says at the end of a pass: promoted, aborted, or at which step.
    fn canary_status(mut self) -> Verdict {
        let view = self.view;
        let mut next = self.canary_base();
        let steps = step_count(view);
        let mut index = step::position(&view.rollout).map(|position| position.index);
        if view.memory.promotion.is_full() || self.is_rollback_within_window() && !self.is_aborted() {
            self.end_waits();
            index = if steps > 0 { Some(steps) } else { index };
        }
        if let Some(why) = self.canary_promotion() {
            self.promote(&mut next, &why);
            return self.persist(next);
        }
        if self.is_aborted() {
            if steps > 0 {
                let is_stable = next.stable_rs == next.current_pod_hash;
                next.current_step_index = Some(if is_stable { steps } else { 0 });
            }
            return self.persist(next);
        }
        let is_through = index.is_some_and(|index| index >= steps);
        if let Some(step) = if is_through { None } else { self.completed_step() } {
            let done = index.unwrap_or_default() + 1;
            index = Some(done);
            next.canary.current_step_analysis_run_status = None;
            next.canary.current_experiment.clear();
            let number = usize::try_from(done).unwrap_or_default();
            let count = usize::try_from(steps).unwrap_or_default();
            self.say(reason::STEP_COMPLETED, message::step_completed(number, count, &StepText(step).to_string()));
            self.resume(&PauseReason::CanaryStep);
        }
        next.current_step_index = index;
        self.persist(next)
    }

    /// Why the new version becomes the stable one now, if it does.
    fn canary_promotion(&self) -> Option<String> {
        let view = self.view;
        if view.rollout.status.stable_rs.is_empty() {
            return Some("Initial deploy".into());
        }
        let new = view.new_set()?.counted();
        if self.is_aborted() {
            return None;
        }
        let threshold = view.rollout.spec.strategy.canary.as_ref()?.replica_progress_threshold.as_ref();
        let is_there = new.available >= self.replicas()
            || threshold.is_some() && replicas::is_ready(threshold, Some(&new), self.replicas());
        if !is_there {
            return None;
        }
        if view.has_lost_stable() && !self.has_gate_ahead() {
            return Some("The stable ReplicaSet was deleted".into());
        }
        if view.memory.promotion.is_full() {
            return Some("Full promotion requested".into());
        }
        if let Some(why) = self.fast_rollback() {
            return Some(why.into());
        }
        let steps = step_count(view);
        let is_done = steps == 0 || step::position(&view.rollout).is_some_and(|position| position.index == steps);
        is_done.then(|| format!("Completed all {steps} canary steps"))
    }

    /// Whether something is still to be approved, by a person or by an analysis, before all steps are done.
    fn has_gate_ahead(&self) -> bool {
        let Some(Position { index, .. }) = step::position(&self.view.rollout) else { return false };
        let Some(canary) = &self.view.rollout.spec.strategy.canary else { return false };
        let mut ahead = canary.steps.iter().skip(usize::try_from(index).unwrap_or_default());
        let is_measured = canary.analysis.is_some() && ahead.len() > 0;
        !self.view.memory.promotion.is_full() && (is_measured || ahead.any(is_gate))
    }

    /// The current step, if what it waits for has come.
    fn completed_step(&mut self) -> Option<&'v CanaryStep> {
        let view: &'v View = self.view;
        let rollout = &view.rollout;
        if rollout.spec.paused {
            return None;
        }
        let step = step::position(rollout)?.step?;
        let is_done = if let Some(pause) = &step.pause {
            self.is_pause_over(pause)
        } else if step.set_canary_scale.is_some() {
            self.is_at_size()
        } else if step.set_weight.is_some() {
            let verified = self.next.canary.weights.as_ref().and_then(|weights| weights.verified);
            self.is_at_size() && verified != Some(false)
        } else if step.experiment.is_some() {
            self.experiment_went_well()
        } else if step.analysis.is_some() {
            self.went_well(Slot::Step)
        } else if step.set_header_route.is_some() || step.set_mirror_route.is_some() {
            true
        } else {
            self.because(format!("waits at a step that needs more than this version has: {}", StepText(step)));
            false
        };
        is_done.then_some(step)
    }

    fn is_pause_over(&self, pause: &RolloutPause) -> bool {
        let hold = &self.view.memory.hold;
        let elapsed = hold
            .since(&PauseReason::CanaryStep)
            .zip(length(pause))
            .is_some_and(|(since, length)| end(since, length) <= self.view.now);
        hold.is_released(&PauseReason::CanaryStep) || elapsed
    }

    fn is_at_size(&self) -> bool {
        let rollout = &self.view.rollout;
        if self.view.has_lost_stable() {
            let threshold = rollout.spec.strategy.canary.as_ref();
            let threshold = threshold.and_then(|canary| canary.replica_progress_threshold.as_ref());
            return replicas::is_ready(threshold, self.view.new_set().map(|new| &new.info), self.replicas());
        }
        // Before that, pods that are available may be those that are on their way out.
        self.view.new_set().is_some_and(Set::is_observed)
            && self.with_sets(|sets| replicas::is_canary_at_size(rollout, sets, self.next.canary.weights.as_ref()))
    }
}

/// Whether the template or the steps are not those that status is about.
pub(super) fn is_new_attempt(view: &View) -> bool {
    view.rollout.status.current_step_hash != view.step_hash.as_str() || view.is_other_template()
}

fn step_count(view: &View) -> i32 {
    let steps = view.rollout.spec.strategy.canary.as_ref().map_or(0, |canary| canary.steps.len());
    i32::try_from(steps).unwrap_or(i32::MAX)
}

/// Whether a step is passed only if a person or an analysis says so.
fn is_gate(step: &CanaryStep) -> bool {
    step.pause.as_ref().is_some_and(|pause| length(pause).is_none())
        || step.analysis.is_some()
        || step.experiment.is_some()
}

/// How long a pause is; `None` until a person ends it.
fn length(pause: &RolloutPause) -> Option<SignedDuration> {
    let seconds = parse::pause_seconds(pause.duration.as_ref()?);
    Some(SignedDuration::from_secs(seconds.into()))
}
