//! What people and passes tell each other through status, with the meaning in the types.
//!
//! Status hides protocols in pairs of fields: a pause that was begun and whose condition is gone was ended by a person; an
//! abort that is no longer asked for but still has its time is to be tried again. [`codec`](super::codec) reads and writes
//! them; nothing else has to know. Counts, hashes and conditions are not here: they say what they mean. Never looks at a
//! ReplicaSet.

use std::fmt;

use crate::api::{RolloutSpec, Time, constants::pause};

/// What people asked for and passes have begun.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// What it waits for.
    pub hold: Hold,
    /// Whether the update is to be undone.
    pub abort: Abort,
    /// How far promotion is to go without looking left or right.
    pub promotion: Promotion,
    /// The `restartAt` that was carried out last.
    pub restarted_at: Option<Time>,
}

impl Memory {
    /// The restart that is asked for and not yet carried out.
    pub fn restart(&self, spec: &RolloutSpec) -> Option<Time> {
        spec.restart_at.filter(|asked| self.restarted_at != Some(*asked))
    }

    /// As a pass leaves it behind: what people asked for is noted or acted upon, and an abort ends every wait.
    pub fn acted_upon(self, now: Time) -> Memory {
        let abort = match self.abort {
            Abort::No | Abort::Retry(_) => Abort::No,
            Abort::Asked => Abort::Since(now),
            Abort::Since(at) => Abort::Since(at),
        };
        let hold = match self.hold {
            Hold::Waiting { .. } if abort == Abort::No => self.hold,
            Hold::Waiting { .. } | Hold::Free | Hold::Released => Hold::Free,
        };
        Memory { hold, abort, ..self }
    }
}

/// What a Rollout waits for.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Hold {
    /// For nothing.
    #[default]
    Free,
    /// It waited, and a person has taken the reason away: go on.
    Released,
    /// For these, the first of which is the one to show.
    Waiting {
        /// The first reason.
        first: Pause,
        /// Further reasons.
        more: Vec<Pause>,
        /// Who began it.
        by: Begun,
    },
}

/// Who began a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// We did, so that its end will be seen.
    Here,
    /// Somebody wrote the reason into status; taking it away again means nothing.
    Elsewhere,
}

impl Hold {
    /// The reasons, the first one first.
    pub fn pauses(&self) -> impl Iterator<Item = &Pause> {
        let (first, more) = match self {
            Hold::Free | Hold::Released => (None, [].as_slice()),
            Hold::Waiting { first, more, .. } => (Some(first), more.as_slice()),
        };
        first.into_iter().chain(more)
    }

    /// The reason to show, if it waits.
    pub fn first(&self) -> Option<&Pause> {
        self.pauses().next()
    }

    /// Since when it waits for this reason.
    pub fn since(&self, reason: &PauseReason) -> Option<Time> {
        self.pauses().find(|pause| pause.reason == *reason).map(|pause| pause.since)
    }

    /// Whether a pause was begun here whose end has not been acted upon.
    pub fn is_begun_here(&self) -> bool {
        match self {
            Hold::Free | Hold::Waiting { by: Begun::Elsewhere, .. } => false,
            Hold::Released | Hold::Waiting { by: Begun::Here, .. } => true,
        }
    }

    /// Whether a person ended the wait for this reason, be it that another one is left.
    pub fn is_released(&self, reason: &PauseReason) -> bool {
        self.is_begun_here() && self.since(reason).is_none()
    }

    /// Waits for one reason more; for a second time for the same one it does not.
    pub fn and(self, reason: PauseReason, now: Time) -> Hold {
        let pause = Pause { reason, since: now };
        match self {
            Hold::Free | Hold::Released => Hold::Waiting { first: pause, more: Vec::new(), by: Begun::Here },
            Hold::Waiting { first, mut more, by } => {
                let known = first.reason == pause.reason || more.iter().any(|other| other.reason == pause.reason);
                if !known {
                    more.push(pause);
                }
                Hold::Waiting { first, more, by: if known { by } else { Begun::Here } }
            }
        }
    }

    /// Waits for one reason less. Waiting for none is being free: the end was ours, so it means nothing more.
    pub fn without(self, reason: &PauseReason) -> Hold {
        match self {
            Hold::Free | Hold::Released => Hold::Free,
            Hold::Waiting { first, more, by } => {
                let mut left = std::iter::once(first).chain(more).filter(|pause| pause.reason != *reason);
                match left.next() {
                    Some(first) => Hold::Waiting { first, more: left.collect(), by },
                    None => Hold::Free,
                }
            }
        }
    }
}

/// A reason to wait.
#[derive(Debug, Clone, PartialEq)]
pub struct Pause {
    /// Which.
    pub reason: PauseReason,
    /// Since when.
    pub since: Time,
}

/// Why a Rollout waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PauseReason {
    /// A pause step.
    CanaryStep,
    /// Before the switch of blue-green.
    BlueGreen,
    /// An analysis was inconclusive.
    InconclusiveAnalysis,
    /// An experiment was inconclusive.
    InconclusiveExperiment,
    /// A word of which nobody here has heard; made by `from` only, which knows the others.
    Other(Box<str>),
}

impl PauseReason {
    /// Its word.
    pub fn as_str(&self) -> &str {
        match self {
            PauseReason::CanaryStep => pause::CANARY_PAUSE_STEP,
            PauseReason::BlueGreen => pause::BLUE_GREEN_PAUSE,
            PauseReason::InconclusiveAnalysis => pause::INCONCLUSIVE_ANALYSIS,
            PauseReason::InconclusiveExperiment => pause::INCONCLUSIVE_EXPERIMENT,
            PauseReason::Other(word) => word,
        }
    }
}

impl From<&str> for PauseReason {
    fn from(word: &str) -> PauseReason {
        match word {
            pause::CANARY_PAUSE_STEP => PauseReason::CanaryStep,
            pause::BLUE_GREEN_PAUSE => PauseReason::BlueGreen,
            pause::INCONCLUSIVE_ANALYSIS => PauseReason::InconclusiveAnalysis,
            pause::INCONCLUSIVE_EXPERIMENT => PauseReason::InconclusiveExperiment,
            other => PauseReason::Other(other.into()),
        }
    }
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether an update is to be undone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Abort {
    /// It is not.
    #[default]
    No,
    /// It is, and nobody has noted when: a person has just asked for it.
    Asked,
    /// It has been since.
    Since(Time),
    /// It was, since then, and a person has taken that back: try again.
    Retry(Time),
}

impl Abort {
    /// Whether the update is being undone, or has been.
    pub fn is_on(self) -> bool {
        match self {
            Abort::No | Abort::Retry(_) => false,
            Abort::Asked | Abort::Since(_) => true,
        }
    }
}

/// How promotion goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Promotion {
    /// As the steps say.
    #[default]
    BySteps,
    /// At once, as a person asked: without steps, pauses and analyses.
    Full,
}

impl Promotion {
    /// Whether steps, pauses and analyses are skipped.
    pub fn is_full(self) -> bool {
        self == Promotion::Full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: u8) -> Time {
        Time::parse(&format!("2024-01-0{day}T00:00:00Z")).unwrap()
    }

    #[test]
    fn pauses_come_and_go() {
        let (then, now) = (at(1), at(2));
        let step = Hold::Free.and(PauseReason::CanaryStep, then);
        assert_eq!(step.clone().and(PauseReason::CanaryStep, now), step);
        let both = step.clone().and(PauseReason::InconclusiveAnalysis, now);
        assert_eq!(both.since(&PauseReason::CanaryStep), Some(then));
        assert_eq!(both.since(&PauseReason::InconclusiveAnalysis), Some(now));
        assert_eq!(both.clone().without(&PauseReason::InconclusiveAnalysis), step);
        assert_eq!(both.pauses().count(), 2);
        assert_eq!(step.without(&PauseReason::CanaryStep), Hold::Free);
        let foreign = Hold::Waiting {
            first: Pause { reason: "Sunday".into(), since: then },
            more: Vec::new(),
            by: Begun::Elsewhere,
        };
        assert!(matches!(foreign.and(PauseReason::BlueGreen, now), Hold::Waiting { by: Begun::Here, .. }));
    }

    #[test]
    fn a_person_who_takes_a_reason_away_has_released_that_one() {
        let step = Hold::Free.and(PauseReason::CanaryStep, at(1));
        let analysis = Hold::Free.and(PauseReason::InconclusiveAnalysis, at(1));
        for (hold, released) in [(Hold::Free, false), (Hold::Released, true), (step, false), (analysis, true)] {
            assert_eq!(hold.is_released(&PauseReason::CanaryStep), released, "{hold:?}");
        }
    }

    #[test]
    fn what_people_ask_for_is_acted_upon_once() {
        let waiting = Hold::Free.and(PauseReason::CanaryStep, at(1));
        for (hold, abort, after) in [
            (Hold::Released, Abort::No, (Hold::Free, Abort::No)),
            (waiting.clone(), Abort::No, (waiting.clone(), Abort::No)),
            (waiting.clone(), Abort::Asked, (Hold::Free, Abort::Since(at(3)))),
            (waiting.clone(), Abort::Since(at(2)), (Hold::Free, Abort::Since(at(2)))),
            (waiting.clone(), Abort::Retry(at(2)), (waiting, Abort::No)),
        ] {
            let memory = Memory { hold, abort, ..Memory::default() }.acted_upon(at(3));
            assert_eq!((memory.hold, memory.abort), after);
        }
    }

    #[test]
    fn known_words_are_never_other_words() {
        assert_eq!(PauseReason::from("BlueGreenPause"), PauseReason::BlueGreen);
        assert_eq!(PauseReason::from("Odd").to_string(), "Odd");
    }
}
