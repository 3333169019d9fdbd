//! How long an attempt takes: when it began, how long it waited for people, when and how it ended.
//!
//! Works by comparing the status that was with the one that will be; an attempt ends once. Never touches anything else.

use super::pass::Pass;
use crate::{
    api::{
        RolloutDurationStatus, RolloutStatus,
        constants::{completion, condition, reason},
    },
    model::conditions,
};

impl Pass<'_> {
    /// The duration that status will note.
    pub(super) fn duration(&self, next: &RolloutStatus) -> Option<RolloutDurationStatus> {
        if conditions::find(&next.conditions, condition::INVALID_SPEC).is_some() {
            return next.duration.clone();
        }
        let view = self.view;
        let old = &view.rollout.status;
        let is_promoted = next.stable_rs == next.current_pod_hash;
        let is_there = view.new_set().is_some_and(|new| new.info.available >= self.replicas());
        let is_completed = is_promoted && is_there;
        let mut duration = next.duration.clone();
        if is_running(old.duration.as_ref()) {
            let running = duration.get_or_insert_default();
            self.end(running, next, is_completed);
            if is_completed && running.finished_at.is_some() {
                return duration;
            }
        }
        let mut was_paused = old.duration.as_ref().is_some_and(|duration| duration.manual_pause_started_at.is_some());
        let is_over = duration.as_ref().is_none_or(|duration| duration.finished_at.is_some() && !is_completed);
        if is_over {
            was_paused = false;
            let begins = self.is_new_template(next) && !is_completed;
            if begins || self.is_retry() {
                let started = Some(self.now());
                duration = Some(RolloutDurationStatus { rollout_started_at: started, ..Default::default() });
            }
        }
        let running = duration.as_mut()?;
        if running.finished_at.is_none() {
            self.count_waiting(running, was_paused, self.waits_for_a_person());
        }
        duration
    }

    /// Ends a running attempt if it is superseded, completed or aborted.
    fn end(&self, running: &mut RolloutDurationStatus, next: &RolloutStatus, is_completed: bool) {
        let finish = |running: &mut RolloutDurationStatus, how: &str| {
            self.end_waiting(running);
            running.finished_at = Some(self.now());
            running.completion_status = Some(how.to_owned());
        };
        if self.is_new_template(next) {
            if self.is_rollback() {
                let how = if self.is_fast_rollback() { completion::FAST_ROLLED_BACK } else { completion::ROLLED_BACK };
                running.completion_status = Some(how.into());
            } else {
                finish(running, completion::SUPERSEDED);
            }
        }
        if running.finished_at.is_some() {
            return;
        }
        let known = running.completion_status.clone();
        if is_completed {
            finish(running, known.as_deref().unwrap_or(completion::PROMOTED));
        } else if self.is_aborted() {
            finish(running, known.as_deref().unwrap_or(completion::ABORTED));
        }
    }

    fn count_waiting(&self, running: &mut RolloutDurationStatus, was_paused: bool, is_paused: bool) {
        match (was_paused, is_paused) {
            (true, false) => self.end_waiting(running),
            (false, true) => drop(running.manual_pause_started_at.get_or_insert_with(|| self.now())),
            (true, true) | (false, false) => {}
        }
    }

    /// Adds a wait that is over to the sum.
    fn end_waiting(&self, running: &mut RolloutDurationStatus) {
        let Some(since) = running.manual_pause_started_at.take() else { return };
        let waited = self.view.now.duration_since(since.into()).as_secs();
        let before = running.total_manual_pause_duration_seconds.unwrap_or_default();
        running.total_manual_pause_duration_seconds = Some(before.saturating_add(waited));
    }

    /// Whether status begins to be about another template, or about other steps. A pass may leave that to a later one.
    fn is_new_template(&self, next: &RolloutStatus) -> bool {
        let old = &self.view.rollout.status;
        let has_steps = self.view.rollout.spec.strategy.canary.is_some();
        old.current_pod_hash != next.current_pod_hash || has_steps && old.current_step_hash != next.current_step_hash
    }

    fn is_retry(&self) -> bool {
        let status = &self.view.rollout.status;
        let progressing = conditions::find(&status.conditions, condition::PROGRESSING);
        let was_aborted = progressing.is_some_and(|condition| condition.reason == reason::ROLLOUT_ABORTED);
        was_aborted && !self.is_aborted()
    }
}

fn is_running(duration: Option<&RolloutDurationStatus>) -> bool {
    duration.is_some_and(|duration| duration.rollout_started_at.is_some() && duration.finished_at.is_none())
}
