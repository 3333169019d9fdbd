//! Pauses and aborts: what a pass begins and ends of them.
//!
//! Status hides a small protocol. A pause is begun by adding a pause condition and setting `controllerPause`; a person ends
//! it by taking the condition away; `controllerPause` without a condition therefore means "a person resumed", until a pass
//! acts upon it and the flag goes with the empty list. Never decides whether to pause.

use jiff::{SignedDuration, Timestamp};

use crate::api::{PauseCondition, RolloutStatus, Time};

/// What this pass does to pauses and to the abort.
#[derive(Debug, Default)]
pub struct Pauses {
    add: Vec<&'static str>,
    remove: Vec<&'static str>,
    clear: bool,
    abort: Abort,
}

/// What this pass does to the abort.
#[derive(Debug, Default, PartialEq, Eq)]
enum Abort {
    /// Nothing.
    #[default]
    Keep,
    /// Begins one, for a reason.
    Begin(String),
    /// Ends it.
    End,
}

impl Pauses {
    /// Begins a pause.
    pub fn add(&mut self, reason: &'static str) {
        self.add.push(reason);
    }

    /// Ends a pause.
    pub fn remove(&mut self, reason: &'static str) {
        self.remove.push(reason);
    }

    /// Ends all pauses and the abort: a new attempt begins, or the last one has ended.
    pub fn clear(&mut self) {
        self.clear = true;
        self.abort = Abort::End;
    }

    /// Ends the abort.
    pub fn end_abort(&mut self) {
        self.abort = Abort::End;
    }

    /// Aborts the update.
    pub fn abort(&mut self, why: String) {
        self.abort = Abort::Begin(why);
    }

    /// Why this pass aborts, if it does.
    pub fn abort_message(&self) -> Option<&str> {
        match &self.abort {
            Abort::Begin(why) => Some(why),
            Abort::Keep | Abort::End => None,
        }
    }

    /// Whether a pause was begun in this pass.
    pub fn has_begun(&self) -> bool {
        !self.add.is_empty()
    }

    /// Whether the update is aborted once this pass is done.
    pub fn is_aborted(&self, status: &RolloutStatus) -> bool {
        match self.abort {
            Abort::End => false,
            Abort::Begin(_) => true,
            Abort::Keep => status.abort,
        }
    }

    /// Writes it down.
    pub fn record(&self, old: &RolloutStatus, next: &mut RolloutStatus, now: Timestamp) {
        next.abort = self.is_aborted(old);
        next.aborted_at = next.abort.then(|| old.aborted_at.unwrap_or_else(|| Time::from(now)));
        next.pause_conditions = Vec::new();
        next.controller_pause = false;
        if next.abort || self.clear {
            return;
        }
        let is_there = |reason: &str| old.pause_conditions.iter().any(|pause| pause.reason == reason);
        let kept = old.pause_conditions.iter().filter(|pause| !self.remove.contains(&pause.reason.as_str()));
        next.pause_conditions = kept.cloned().collect();
        let begun: Vec<_> = self.add.iter().filter(|reason| !is_there(reason)).collect();
        next.pause_conditions.extend(
            begun.iter().map(|reason| PauseCondition { reason: (**reason).to_string(), start_time: Time::from(now) }),
        );
        next.controller_pause = !next.pause_conditions.is_empty() && (old.controller_pause || !begun.is_empty());
    }
}

/// Since when it waits for this reason.
pub fn since(status: &RolloutStatus, reason: &str) -> Option<Timestamp> {
    let pause = status.pause_conditions.iter().find(|pause| pause.reason == reason)?;
    Some(pause.start_time.into())
}

/// Whether a person ended the pause that the controller began for this reason.
pub fn is_resumed(status: &RolloutStatus, reason: &str) -> bool {
    status.controller_pause && since(status, reason).is_none()
}

/// When a pause that began then is over.
pub fn end(since: Timestamp, length: SignedDuration) -> Timestamp {
    since.saturating_add(length).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::constants::pause::{BLUE_GREEN_PAUSE, CANARY_PAUSE_STEP};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn paused(reason: &str) -> RolloutStatus {
        RolloutStatus {
            controller_pause: true,
            pause_conditions: vec![PauseCondition { reason: reason.into(), start_time: at(5).into() }],
            ..RolloutStatus::default()
        }
    }

    /// What status says after a pass that did this.
    fn after(old: &RolloutStatus, act: impl Fn(&mut Pauses)) -> RolloutStatus {
        let (mut pauses, mut next) = (Pauses::default(), RolloutStatus::default());
        act(&mut pauses);
        pauses.record(old, &mut next, at(9));
        next
    }

    #[test]
    fn a_pause_begins_once_and_keeps_its_start() {
        let begun = after(&RolloutStatus::default(), |pauses| pauses.add(CANARY_PAUSE_STEP));
        assert_eq!((begun.controller_pause, since(&begun, CANARY_PAUSE_STEP)), (true, Some(at(9))));
        let again = after(&paused(CANARY_PAUSE_STEP), |pauses| pauses.add(CANARY_PAUSE_STEP));
        assert_eq!(again, paused(CANARY_PAUSE_STEP));
    }

    #[test]
    fn a_person_who_takes_the_condition_away_has_resumed() {
        let resumed = RolloutStatus { controller_pause: true, ..RolloutStatus::default() };
        assert!(is_resumed(&resumed, CANARY_PAUSE_STEP));
        assert!(!is_resumed(&paused(CANARY_PAUSE_STEP), CANARY_PAUSE_STEP));
        assert_eq!(after(&resumed, |_| {}), RolloutStatus::default(), "acted upon once");
        assert_eq!(
            after(&paused(BLUE_GREEN_PAUSE), |pauses| pauses.remove(BLUE_GREEN_PAUSE)),
            RolloutStatus::default()
        );
    }

    #[test]
    fn an_abort_ends_pauses_and_keeps_its_moment() {
        let aborted = after(&paused(CANARY_PAUSE_STEP), |pauses| pauses.abort("why".into()));
        assert_eq!((aborted.abort, aborted.aborted_at, aborted.pause_conditions.len()), (true, Some(at(9).into()), 0));
        let old = RolloutStatus { abort: true, aborted_at: Some(at(3).into()), ..RolloutStatus::default() };
        assert_eq!(after(&old, |_| {}).aborted_at, Some(at(3).into()));
        assert_eq!(after(&old, Pauses::clear), RolloutStatus::default());
    }
}
