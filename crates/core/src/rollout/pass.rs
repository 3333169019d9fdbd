//! One decision in the making: what has been decided so far in this pass.
//!
//! A pass is made, told what is wanted, and closed into a verdict. Never outlives its decision.

use std::mem;

use jiff::{SignedDuration, Timestamp};

use super::{
    runs::Currents,
    target::{Event, Target, Verdict},
    view::View,
};
use crate::{
    api::{CanaryStatus, RolloutStatus},
    model::memory::{Abort, Hold, Memory, PauseReason, Promotion},
};

/// What has been decided so far.
pub(super) struct Pass<'v> {
    /// What was seen.
    pub view: &'v View,
    /// What status will say, as far as it is known.
    pub next: RolloutStatus,
    /// What is begun and ended of pauses, the abort, a full promotion and a restart.
    pub memory: Memory,
    has_begun_pause: bool,
    why_aborted: Option<String>,
    /// The AnalysisRuns that are current, as this pass leaves them.
    pub currents: Currents,
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
            alb: old.alb.clone(),
            albs: old.albs.clone(),
            duration: old.duration.clone(),
            canary: CanaryStatus { weights: old.canary.weights.clone(), ..CanaryStatus::default() },
            ..RolloutStatus::default()
        };
        Pass {
            view,
            next,
            memory: view.memory.clone(),
            has_begun_pause: false,
            why_aborted: None,
            currents: Currents::new(),
            target: Target::of(view),
            events: Vec::new(),
            reasons: Vec::new(),
            wake: None,
        }
    }

    /// Begins a pause.
    pub(super) fn pause(&mut self, reason: PauseReason) {
        self.memory.hold = mem::take(&mut self.memory.hold).and(reason, self.now());
        self.has_begun_pause = true;
    }

    /// Ends a pause.
    pub(super) fn resume(&mut self, reason: &PauseReason) {
        self.memory.hold = mem::take(&mut self.memory.hold).without(reason);
    }

    /// Whether a pause was begun in this pass.
    pub(super) fn has_begun_pause(&self) -> bool {
        self.has_begun_pause
    }

    /// Ends all pauses and the abort: a new attempt begins, or the last one has ended.
    pub(super) fn end_waits(&mut self) {
        (self.memory.hold, self.memory.abort) = (Hold::Free, Abort::No);
    }

    /// Aborts the update.
    pub(super) fn abort(&mut self, why: String) {
        self.memory.abort = Abort::Since(self.now());
        // The abort is the later word: a full promotion would take it back, and the deadline would abort again, for ever.
        self.memory.promotion = Promotion::BySteps;
        self.why_aborted = Some(why);
    }

    /// Why this pass aborts, if it does.
    pub(super) fn why_aborted(&self) -> Option<&str> {
        self.why_aborted.as_deref()
    }

    /// Whether the update is aborted once this pass is done.
    pub(super) fn is_aborted(&self) -> bool {
        self.memory.abort.is_on()
    }

    /// Time alone changes the answer then, if not before. A moment that is not to come changes nothing any more: the same
    /// view has the same verdict.
    pub(super) fn wake_at(&mut self, time: Timestamp) {
        if time > self.view.now {
            self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
        }
    }

    /// Something to announce.
    pub(super) fn say(&mut self, reason: &'static str, message: impl Into<String>) {
        self.events.push(Event { warning: false, reason, message: message.into() });
    }

    /// How much is to be announced so far.
    pub(super) fn announced(&self) -> usize {
        self.events.len()
    }

    /// What was to be announced from there on did not happen; warnings stay.
    pub(super) fn take_back(&mut self, from: usize) {
        let news = self.events.split_off(from.min(self.events.len()));
        self.events.extend(news.into_iter().filter(|event| event.warning));
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
        Verdict { target: Some(self.target), status, wake: self.wake, events: self.events, reasons: self.reasons }
    }
}

/// When a wait that began then is over.
pub(super) fn end(since: impl Into<Timestamp>, length: SignedDuration) -> Timestamp {
    since.into().saturating_add(length).unwrap_or(Timestamp::MAX)
}
