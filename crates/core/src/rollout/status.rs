//! What status says: counts, conditions, phase.
//!
//! Written once at the end of a pass, whole. Never says that something happened which the pass only hopes for.

use std::mem;

use jiff::{SignedDuration, Timestamp};

use super::{
    pass::{Pass, end},
    step,
    target::Verdict,
    view::{Crowd, Set},
};
use crate::{
    api::{
        RolloutCondition, RolloutStatus,
        constants::{completion, condition, message, phase, reason},
    },
    model::{
        codec,
        conditions::{self, Truth},
        memory::{Hold, PauseReason, Promotion},
    },
};

/// Counts of pods alone are throttled: they are written at most this often, so that many changes are coalesced into one write.
const COUNTED_EVERY: SignedDuration = SignedDuration::from_millis(250);
/// The throttle while many other Rollouts wait for a decision.
const COUNTED_IN_A_CROWD: SignedDuration = SignedDuration::from_secs(2);

/// Whether two statuses tell the same story with other counts of pods: the same phase, the same conditions.
fn is_counting(old: &RolloutStatus, next: &RolloutStatus) -> bool {
    let mut told = old.clone();
    told.replicas = next.replicas;
    told.updated_replicas = next.updated_replicas;
    told.ready_replicas = next.ready_replicas;
    told.available_replicas = next.available_replicas;
    told.hpa_replicas = next.hpa_replicas;
    // While it progresses, its message and the times of its conditions count pods in other words.
    let is_held = |condition: &RolloutCondition| {
        let same = conditions::find(&old.conditions, &condition.r#type);
        same.is_some_and(|same| same.status == condition.status && same.reason == condition.reason)
    };
    let are_held = old.conditions.len() == next.conditions.len() && next.conditions.iter().all(is_held);
    if next.phase == phase::PROGRESSING && are_held {
        told.message.clone_from(&next.message);
        told.conditions.clone_from(&next.conditions);
    }
    told == *next
}

impl Pass<'_> {
    /// What status says of every Rollout.
    pub(super) fn base(&self) -> RolloutStatus {
        let view = self.view;
        let old = &view.rollout.status;
        let mut next = self.next.clone();
        next.current_pod_hash = view.new_set().map_or(&view.hash, |new| &new.info.hash).to_string();
        next.replicas = view.sets.iter().map(|set| set.info.current).sum();
        next.updated_replicas = view.new_set().map_or(0, |new| new.info.current);
        next.ready_replicas = view.sets.iter().map(|set| set.info.ready).sum();
        next.collision_count = old.collision_count;
        next.conditions = old.conditions.clone();
        conditions::remove(&mut next.conditions, condition::INVALID_SPEC);
        next
    }

    /// As at the beginning of an update.
    pub(super) fn reset(&mut self, next: &mut RolloutStatus) {
        self.end_waits();
        self.memory.promotion = Promotion::BySteps;
        next.blue_green.pre_promotion_analysis_run_status = None;
        next.blue_green.post_promotion_analysis_run_status = None;
        next.blue_green.scale_up_preview_check_point = false;
        next.canary.current_step_analysis_run_status = None;
        next.canary.current_background_analysis_run_status = None;
        next.canary.step_plugin_statuses = Vec::new();
        next.current_step_index = step::first_index(&self.view.rollout);
    }

    /// The new version is the stable one.
    pub(super) fn promote(&mut self, next: &mut RolloutStatus, why: &str) {
        let rollout = &self.view.rollout;
        self.end_waits();
        self.memory.promotion = Promotion::BySteps;
        next.blue_green.scale_up_preview_check_point = false;
        if let Some(canary) = &rollout.spec.strategy.canary {
            let steps = i32::try_from(canary.steps.len()).unwrap_or(i32::MAX);
            next.current_step_index = (steps > 0).then_some(steps);
        }
        if next.stable_rs != next.current_pod_hash {
            if let Some(duration) = next.duration.as_mut().filter(|duration| duration.completion_status.is_none()) {
                let how =
                    if self.view.memory.promotion.is_full() { completion::FAST_PROMOTED } else { completion::PROMOTED };
                duration.completion_status = Some(how.into());
            }
            next.stable_rs = next.current_pod_hash.clone();
            if let Some(stable) = self.next_ping_pong() {
                next.canary.stable_ping_pong = stable.to_owned();
            }
            let told = message::rollout_completed(self.revision(), &next.current_pod_hash, why);
            self.say(reason::ROLLOUT_COMPLETED, told);
        }
        let goes = rollout.spec.workload_ref.as_ref().is_some_and(|workload| workload.scale_down == "onsuccess");
        if goes && self.revision() == 1 && rollout.status.phase == crate::api::constants::phase::HEALTHY {
            self.workload_to(0);
        }
    }

    /// The Rollout's revision, as this pass leaves it.
    pub(super) fn revision(&self) -> i64 {
        let path = ["metadata", "annotations", crate::api::constants::annotation::REVISION];
        self.target.rollout.str_at(&path).and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// Closes a pass that only followed a change of size: what a person has released goes on in the next one.
    pub(super) fn persist_sizes(self, next: RolloutStatus) -> Verdict {
        let hold = if self.view.memory.hold == Hold::Released { Hold::Released } else { Hold::Free };
        self.persist_with(next, hold)
    }

    /// Closes the pass: conditions, phase and duration follow from what is decided.
    pub(super) fn persist(self, next: RolloutStatus) -> Verdict {
        self.persist_with(next, Hold::Free)
    }

    /// Closes the pass; `idle` is what is left to say of waits when there are none.
    fn persist_with(mut self, mut next: RolloutStatus, idle: Hold) -> Verdict {
        let view = self.view;
        next.observed_generation = view.rollout.metadata.generation.to_string();
        next.workload_observed_generation =
            view.workload.as_ref().map(|workload| workload.generation.to_string()).unwrap_or_default();
        self.abort_at_deadline(&next);
        self.memory = mem::take(&mut self.memory).acted_upon(self.now());
        if self.memory.hold == Hold::Free && !self.is_aborted() {
            self.memory.hold = idle;
        }
        codec::encode(&self.memory, &mut next);
        self.conditions(&mut next);
        self.conclude(&mut next);
        next.duration = self.duration(&next);
        self.announce_pauses();
        self.wake_at_deadline(&next);
        if let Some(moment) = self.counts_wait(&next) {
            self.wake_at(moment);
            return self.close(None);
        }
        self.close(Some(next))
    }

    /// Until when status waits, if all it would say is how many pods there are: pods come and go one by one, and each would
    /// be a write. They are told with the next thing that matters, and otherwise once in a while.
    fn counts_wait(&self, next: &RolloutStatus) -> Option<Timestamp> {
        let (patience, is_told) = match self.view.crowd {
            Crowd::Few => (COUNTED_EVERY, self.has_reached_its_size(next)),
            Crowd::Many => (COUNTED_IN_A_CROWD, false),
        };
        let moment = end(self.view.written?, patience);
        let old = &self.view.rollout.status;
        let is_soon = moment > self.view.now && old != next;
        (is_soon && !is_told && is_counting(old, next)).then_some(moment)
    }

    /// Whether there are now as many pods as every version is to have, and were not when status was written. Who asked for
    /// a size waits to be told so, and no other count will follow until somebody wants another one; that pods become ready
    /// is another matter, and does.
    fn has_reached_its_size(&self, next: &RolloutStatus) -> bool {
        let old = &self.view.rollout.status;
        let is_news = (old.replicas, old.updated_replicas) != (next.replicas, next.updated_replicas);
        let has_all = |set: &Set| {
            let wanted = self.target.sets.get(&set.info.name).and_then(|wanted| wanted.int_at(&["spec", "replicas"]));
            wanted.unwrap_or_default() == i64::from(set.info.current)
        };
        is_news && self.view.sets.iter().all(has_all)
    }

    fn announce_pauses(&mut self) {
        let was_paused = self.view.memory.hold.first().is_some();
        match (was_paused, self.memory.hold.first()) {
            (false, Some(pause)) => {
                self.say(reason::ROLLOUT_PAUSED, format!("{} ({})", message::PAUSED, pause.reason));
            }
            // An abort ends pauses, too; nobody resumed then.
            (true, None) if !self.is_aborted() => self.say(reason::ROLLOUT_RESUMED, message::RESUMED),
            (true, None) | (true, Some(_)) | (false, None) => {}
        }
    }

    /// Aborts an update that made no progress for too long, if the Rollout asks for that.
    fn abort_at_deadline(&mut self, next: &RolloutStatus) {
        let view = self.view;
        let rollout = &view.rollout;
        let is_over = rollout.spec.progress_deadline_abort
            && !self.is_aborted()
            && !conditions::is_completed(next)
            && !conditions::is_progress(rollout, next)
            && !self.waits_by_design()
            && conditions::is_timed_out(rollout, &rollout.status, view.now);
        if is_over {
            let told = self.timed_out();
            self.warn(reason::ROLLOUT_ABORTED, told.clone());
            self.abort(told);
        }
    }

    fn timed_out(&self) -> String {
        match self.view.new_set() {
            Some(new) => message::replica_set_timed_out(&new.info.name),
            None => message::rollout_timed_out(&self.view.rollout.metadata.name),
        }
    }

    /// Whether a lack of progress is meant: at a step that takes its time, in a pause, or while old pods stay up.
    fn waits_by_design(&self) -> bool {
        self.is_indefinite() || self.view.others().any(|set| set.info.has_scale_down_deadline())
    }

    fn is_indefinite(&self) -> bool {
        let rollout = &self.view.rollout;
        let takes_its_time = step::position(rollout)
            .and_then(|position| position.step)
            .is_some_and(|step| step.experiment.is_some() || step.analysis.is_some() || step.pause.is_some());
        let paused = conditions::find(&rollout.status.conditions, condition::PAUSED);
        takes_its_time || paused.is_some_and(|condition| condition.status == Truth::True.as_str())
    }

    /// When a lack of progress would be noticed.
    fn wake_at_deadline(&mut self, next: &RolloutStatus) {
        let rollout = &self.view.rollout;
        let Some(progressing) = conditions::find(&next.conditions, condition::PROGRESSING) else { return };
        let is_paused = self.memory.hold.first().is_some() || rollout.spec.paused;
        if conditions::is_healthy(rollout, &self.judged(next))
            || progressing.reason == reason::TIMED_OUT
            || is_paused
            || self.is_aborted()
            // Nothing times out while old pods stay: their own deadline is looked at when it is over.
            || self.waits_by_design()
        {
            return;
        }
        let allowed = SignedDuration::from_secs(rollout.spec.progress_deadline_seconds.unwrap_or(600).into());
        let since: Timestamp = progressing.last_update_time.into();
        // One second more: the condition counts whole seconds, and must be older than the deadline.
        let moment = since.saturating_add(allowed + SignedDuration::from_secs(1)).unwrap_or(Timestamp::MAX);
        self.wake_at(moment.max(self.view.now));
    }

    fn conditions(&mut self, next: &mut RolloutStatus) {
        let became_unhealthy = self.healthy_condition(next);
        if self.is_aborted() {
            self.aborted_condition(next);
        } else {
            self.progressing_condition(next, became_unhealthy);
        }
        self.available_condition(next);
        let sets = &self.view.sets;
        let failure = self.view.new_set().and_then(|new| new.failure());
        match failure.or_else(|| sets.iter().find_map(|set| set.failure())) {
            Some(failure) => drop(conditions::set(&mut next.conditions, failure)),
            None => conditions::remove(&mut next.conditions, condition::REPLICA_FAILURE),
        }
        let is_completed = conditions::is_completed(next);
        let (kind, reason) = (condition::COMPLETED, reason::ROLLOUT_COMPLETED);
        let holds = Truth::from(is_completed);
        let said = conditions::say(&mut next.conditions, kind, holds, reason, message::COMPLETED, self.now());
        if said == conditions::Set::Changed && !is_completed {
            let told = message::rollout_not_completed(self.revision(), &next.current_pod_hash);
            self.say(reason::ROLLOUT_NOT_COMPLETED, told);
        }
    }

    /// Says whether it is healthy; answers whether it has just ceased to be.
    fn healthy_condition(&self, next: &mut RolloutStatus) -> bool {
        let rollout = &self.view.rollout;
        let is_paused = self.memory.hold.first().is_some() || rollout.spec.paused;
        let is_healthy = !is_paused && conditions::is_healthy(rollout, &self.judged(next));
        if !is_healthy && conditions::find(&rollout.status.conditions, condition::HEALTHY).is_none() {
            return false;
        }
        let told = if is_healthy { message::HEALTHY } else { message::NOT_HEALTHY };
        let (kind, reason) = (condition::HEALTHY, reason::ROLLOUT_HEALTHY);
        let said = conditions::say(&mut next.conditions, kind, Truth::from(is_healthy), reason, told, self.now());
        said == conditions::Set::Changed && !is_healthy
    }

    fn aborted_condition(&mut self, next: &mut RolloutStatus) {
        let mut told = message::rollout_aborted(self.revision());
        if let Some(why) = self.why_aborted() {
            told = format!("{told}: {why}");
        }
        let (kind, reason) = (condition::PROGRESSING, reason::ROLLOUT_ABORTED);
        let said = conditions::say(&mut next.conditions, kind, Truth::False, reason, told.as_str(), self.now());
        if said == conditions::Set::Changed {
            self.warn(reason::ROLLOUT_ABORTED, told);
        }
    }

    fn progressing_condition(&self, next: &mut RolloutStatus, became_unhealthy: bool) {
        let view = self.view;
        let rollout = &view.rollout;
        let name = view.new_set().map(|new| new.info.name.as_str());
        let new = |holds: Truth, reason: &str, told: String| {
            conditions::new(condition::PROGRESSING, holds, reason, told, self.now())
        };
        if conditions::is_healthy(rollout, &self.judged(next)) {
            let told = message::replica_set_completed(name.unwrap_or_default());
            conditions::set(&mut next.conditions, new(Truth::True, reason::NEW_REPLICA_SET_AVAILABLE, told));
        } else if conditions::is_progress(rollout, next) || became_unhealthy {
            let (why, told) = if next.stable_rs == next.current_pod_hash && became_unhealthy {
                (reason::REPLICA_SET_NOT_AVAILABLE, message::NOT_AVAILABLE.to_owned())
            } else {
                let told = name.map_or_else(
                    || message::rollout_progressing(&rollout.metadata.name),
                    message::replica_set_progressing,
                );
                (reason::REPLICA_SET_UPDATED, told)
            };
            let mut progressing = new(Truth::True, why, told);
            // Progress is news even if the words are the same: the deadline counts from here.
            if let Some(old) = conditions::find(&rollout.status.conditions, condition::PROGRESSING) {
                if old.status == Truth::True.as_str() {
                    progressing.last_transition_time = old.last_transition_time;
                }
                conditions::remove(&mut next.conditions, condition::PROGRESSING);
            }
            conditions::set(&mut next.conditions, progressing);
        } else if !self.waits_by_design() && conditions::is_timed_out(rollout, next, view.now) {
            conditions::set(&mut next.conditions, new(Truth::False, reason::TIMED_OUT, self.timed_out()));
        }
    }

    fn available_condition(&self, next: &mut RolloutStatus) {
        let view = self.view;
        let strategy = &view.rollout.spec.strategy;
        let active = view.set_of(&next.blue_green.active_selector);
        let total: i32 = view.sets.iter().map(|set| set.info.available).sum();
        let is_available = if strategy.blue_green.is_some() {
            active.is_some_and(|active| active.info.is_saturated(self.replicas()))
        } else {
            total >= self.replicas()
        };
        let told = if is_available { message::AVAILABLE } else { message::NOT_AVAILABLE };
        let (kind, holds) = (condition::AVAILABLE, Truth::from(is_available));
        conditions::say(&mut next.conditions, kind, holds, reason::AVAILABLE, told, self.now());
    }

    /// Whether the wanted version is one that was left before.
    pub(super) fn is_rollback(&self) -> bool {
        let (Some(new), Some(stable)) = (self.view.new_set(), self.view.stable_set()) else { return false };
        self.view.rollout.status.stable_rs == new.info.hash.as_str() || new.info.created < stable.info.created
    }

    /// Why a return to an earlier version skips steps and pauses, if it does.
    pub(super) fn fast_rollback(&self) -> Option<&'static str> {
        let view = self.view;
        let new = view.new_set().filter(|_| self.is_rollback())?;
        if self.is_rollback_within_window() {
            return Some("Rollback within window");
        }
        let is_in_delay = view.rollout.spec.strategy.blue_green.is_some()
            && new.info.time_to_scale_down(view.now).is_ok_and(|left| left.is_some());
        let is_stable = view.rollout.status.stable_rs == new.info.hash.as_str();
        (is_in_delay || is_stable).then_some("Fast rollback")
    }

    /// Whether a return to an earlier version skips steps and pauses.
    pub(super) fn is_fast_rollback(&self) -> bool {
        self.fast_rollback().is_some()
    }

    /// Whether so few versions lie between the wanted and the stable one that steps are skipped.
    pub(super) fn is_rollback_within_window(&self) -> bool {
        let view = self.view;
        let (Some(new), Some(stable)) = (view.new_set(), view.stable_set()) else { return false };
        let window = view.rollout.spec.rollback_window.as_ref().map_or(0, |window| window.revisions);
        let (from, to) = (new.info.created, stable.info.created);
        let between = view.sets.iter().filter(|set| {
            let is_experiment = !set.info.note(crate::api::constants::annotation::EXPERIMENT_NAME).is_empty();
            !is_experiment && from < set.info.created && set.info.created < to
        });
        from < to && i32::try_from(between.count()).unwrap_or(i32::MAX) < window
    }

    /// Whether one of these waits is a person's to end.
    pub(super) fn waits_for_a_person(&self) -> bool {
        let rollout = &self.view.rollout;
        let strategy = &rollout.spec.strategy;
        let is_manual = |reason: &PauseReason| match reason {
            PauseReason::InconclusiveAnalysis | PauseReason::InconclusiveExperiment => true,
            PauseReason::CanaryStep => step::position(rollout)
                .and_then(|position| position.step?.pause.as_ref())
                .is_some_and(|pause| pause.duration.is_none()),
            PauseReason::BlueGreen => {
                strategy.blue_green.as_ref().is_some_and(|strategy| strategy.auto_promotion_enabled == Some(false))
            }
            PauseReason::Other(_) => false,
        };
        rollout.spec.paused || self.memory.hold.pauses().any(|pause| is_manual(&pause.reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::{self, Rollout},
        kubernetes::value::Value,
        value,
    };

    #[test]
    fn only_counts_and_the_words_of_progress_wait() {
        let old = value!({
            "phase": "Progressing", "message": "more replicas need to be updated", "replicas": 3, "updatedReplicas": 1,
            "readyReplicas": 2, "availableReplicas": 2, "HPAReplicas": 3, "currentPodHash": "a", "stableRS": "b",
            "conditions": [
                {"type": "Available", "status": "True", "reason": "AvailableReason"},
                {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated",
                 "lastUpdateTime": "2026-01-01T00:00:00Z"},
            ],
        });
        let read = |status: &Value| api::read::<Rollout>(&value!({"status": status.clone()})).object.status;
        for (path, value, waits) in [
            (&["replicas"][..], value!(4), true),
            (&["updatedReplicas"], value!(2), true),
            (&["readyReplicas"], value!(3), true),
            (&["availableReplicas"], value!(3), true),
            (&["HPAReplicas"], value!(4), true),
            (&["message"], value!("old replicas are pending termination"), true),
            (&["phase"], value!("Healthy"), false),
            (&["stableRS"], value!("a"), false),
            (&["currentPodHash"], value!("c"), false),
            (&["currentStepIndex"], value!(1), false),
            (&["abort"], value!(true), false),
            (&["observedGeneration"], value!("2"), false),
        ] {
            let mut next = old.clone();
            next.set_at(path, value);
            assert_eq!(is_counting(&read(&old), &read(&next)), waits, "{path:?}");
        }
        for (index, key, value, waits) in [
            (1, "lastUpdateTime", "2026-01-01T00:00:09Z", true),
            (1, "message", "another one", true),
            (1, "reason", "NewReplicaSetAvailable", false),
            (0, "status", "False", false),
        ] {
            let mut next = read(&old);
            let mut condition = api::write(&next.conditions[index]);
            condition.set_at(&[key], value);
            let changed = value!({"conditions": [condition]});
            next.conditions[index] = read(&changed).conditions.remove(0);
            // A condition that is said again stands last.
            next.conditions.rotate_left(1);
            assert_eq!(is_counting(&read(&old), &next), waits, "{key}");
        }
    }
}
