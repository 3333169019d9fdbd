//! Blue-green: the new version beside the old one, then a switch.
//!
//! Never switches before the new version can carry everything.

use jiff::SignedDuration;

use super::{
    pass::{Pass, end},
    replicas,
    runs::Slot,
    target::Verdict,
};
use crate::{
    api::{BlueGreenStrategy, RolloutStatus},
    model::memory::{Hold, PauseReason},
};

impl<'v> Pass<'v> {
    /// One pass of blue-green.
    pub(super) fn blue_green(mut self) -> Verdict {
        self.preview_service();
        if self.view.is_other_template() {
            return self.blue_green_status();
        }
        self.restart();
        self.blue_green_sets();
        self.blue_green_pause();
        self.active_service();
        if let Err(problem) = self.analysis_runs() {
            return self.invalid(&problem);
        }
        self.sync_metadata();
        self.blue_green_status()
    }

    fn strategy(&self) -> Option<&'v BlueGreenStrategy> {
        self.view.rollout.spec.strategy.blue_green.as_ref()
    }

    /// Begins the pause before the switch, or ends it.
    fn blue_green_pause(&mut self) {
        let view = self.view;
        let (Some(strategy), Some(new)) = (self.strategy(), view.new_set()) else { return };
        let Some(active) = view.services.get(strategy.active_service.as_str()) else { return };
        let status = &view.rollout.status;
        let is_ready = replicas::is_blue_green_ready(&view.rollout, &new.info, self.active_info());
        if view.memory.abort.is_on() || !is_ready || self.is_halted() {
            return;
        }
        let needs_pause = strategy.auto_promotion_enabled == Some(false) || strategy.auto_promotion_seconds > 0;
        if self.is_fast_tracked(active) || status.blue_green.scale_up_preview_check_point || !needs_pause {
            return self.resume(&PauseReason::BlueGreen);
        }
        if !self.is_pre_promotion_done() {
            return self.because("waits for the analysis before the switch");
        }
        match view.memory.hold.since(&PauseReason::BlueGreen) {
            Some(_) if self.is_blue_green_pause_over() => self.resume(&PauseReason::BlueGreen),
            Some(since) if strategy.auto_promotion_seconds > 0 => {
                self.wake_at(end(since, seconds(strategy.auto_promotion_seconds)));
            }
            Some(_) => {}
            None if !view.memory.hold.is_begun_here() => self.pause(PauseReason::BlueGreen),
            None => {}
        }
    }

    /// Whether a person resumed it, or its time is over.
    pub(super) fn is_blue_green_pause_over(&self) -> bool {
        let Some(strategy) = self.strategy() else { return false };
        let status = &self.view.rollout.status;
        if self.has_begun_pause() {
            return false;
        }
        if status.blue_green.scale_up_preview_check_point {
            return true;
        }
        if !strategy.auto_promotion_enabled.unwrap_or(true) {
            return self.view.memory.hold.is_released(&PauseReason::BlueGreen);
        }
        let since = self.view.memory.hold.since(&PauseReason::BlueGreen);
        strategy.auto_promotion_seconds == 0
            // A person need not wait for the time to run out.
            || self.view.memory.hold == Hold::Released
            || since.is_some_and(|since| end(since, seconds(strategy.auto_promotion_seconds)) <= self.view.now)
    }

    /// What status says at the end of a pass.
    fn blue_green_status(mut self) -> Verdict {
        let view = self.view;
        let old = &view.rollout.status;
        let mut next = self.base();
        next.stable_rs = old.stable_rs.clone();
        if view.is_other_template() {
            self.reset(&mut next);
        }
        if view.memory.promotion.is_full() || self.is_rollback_within_window() && !self.is_aborted() {
            self.end_waits();
        }
        let strategy = self.strategy();
        // Services are read as this pass leaves them: what was switched is in effect once it is written.
        next.blue_green.preview_selector = self.leads_to(strategy.map(|strategy| strategy.preview_service.as_str()));
        if next.blue_green.active_selector.is_empty() {
            // No pass has led it anywhere new: what somebody else wrote into the Service is not recorded, and approves nothing.
            let recorded = &old.blue_green.active_selector;
            let found = || self.leads_to(strategy.map(|strategy| strategy.active_service.as_str()));
            next.blue_green.active_selector = if recorded.is_empty() { found() } else { recorded.clone() };
        }
        if let Some(why) = self.blue_green_promotion(&next) {
            self.promote(&mut next, why);
        } else {
            next.blue_green.scale_up_preview_check_point = self.preview_may_grow();
        }
        match view.set_of(&next.blue_green.active_selector) {
            Some(active) => {
                next.hpa_replicas = active.info.current;
                next.selector = active.selector.to_string();
                next.available_replicas = active.info.available;
                next.ready_replicas = active.info.ready;
            }
            None => {
                next.hpa_replicas = view.sets.iter().map(|set| set.info.current).sum();
                next.selector = view.selector.to_string();
                next.available_replicas = view.sets.iter().map(|set| set.info.available).sum();
            }
        }
        self.persist(next)
    }

    /// The version that a Service leads to once this pass is done.
    fn leads_to(&self, service: Option<&str>) -> String {
        let label = crate::api::constants::label::POD_TEMPLATE_HASH;
        let object = service.and_then(|name| self.target.services.get(name));
        object.and_then(|object| object.str_at(&["spec", "selector", label])).unwrap_or_default().to_owned()
    }

    /// Why the new version becomes the stable one now, if it does.
    fn blue_green_promotion(&self, next: &RolloutStatus) -> Option<&'static str> {
        let view = self.view;
        let strategy = self.strategy()?;
        if view.rollout.status.stable_rs.is_empty()
            || next.blue_green.active_selector.is_empty() && self.is_first_switch()
        {
            return Some("Initial deploy");
        }
        if next.blue_green.active_selector != next.current_pod_hash {
            return None;
        }
        if view.memory.promotion.is_full() {
            return Some("Full promotion requested");
        }
        if let Some(why) = self.fast_rollback() {
            return Some(why);
        }
        let waits = self.is_aborted() || strategy.post_promotion_analysis.is_some() && !self.went_well(Slot::Post);
        (!waits).then_some("Completed blue-green update")
    }

    /// Whether the preview, which was kept small, may grow to full size for the switch.
    fn preview_may_grow(&self) -> bool {
        let Some(preview) = self.strategy().and_then(|strategy| strategy.preview_replica_count) else { return false };
        if self.view.rollout.status.blue_green.scale_up_preview_check_point {
            return true;
        }
        self.is_pre_promotion_done()
            && self.is_blue_green_pause_over()
            && self.view.new_set().is_some_and(|new| new.info.available == preview)
    }
}

fn seconds(count: i32) -> SignedDuration {
    SignedDuration::from_secs(count.into())
}
