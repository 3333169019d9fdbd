//! What a Rollout remembers from one pass to the next, with the meaning in the types.
//!
//! Status hides protocols in pairs of fields: a pause that was begun and whose condition is gone was ended by a person; an
//! abort that is no longer asked for but still has its time is to be tried again. [`codec`](super::codec) reads and writes
//! them; nothing else has to know. Phase and message are not remembered: they follow from the rest.

use std::fmt;

use crate::api::{
    AlbStatus, RolloutCondition, RolloutSpec, StepPluginStatus, Time,
    constants::{analysis_phase, pause},
};

/// What a Rollout remembers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// The generation of the specification that this is about; unknown at first.
    pub generation: Option<i64>,
    /// The generation of the referenced workload that this is about.
    pub workload_generation: Option<i64>,
    /// The version that the specification asks for, by its pod template hash.
    pub current: Option<Hash>,
    /// The version that was promoted last. None until the first one is.
    pub stable: Option<Hash>,
    /// The steps that `step` counts in, by their hash.
    pub steps: Option<Hash>,
    /// The step it is at, counted from 0; the number of steps when all are done; none without steps.
    pub step: Option<u32>,
    /// What it waits for.
    pub hold: Hold,
    /// Whether the update is to be undone.
    pub abort: Abort,
    /// How far promotion is to go without looking left or right.
    pub promotion: Promotion,
    /// The `restartAt` that was carried out last.
    pub restarted_at: Option<Time>,
    /// How often a ReplicaSet's name was already taken; absent until it first happens, which hashes differently from 0.
    pub collisions: Option<i32>,
    /// How many pods there are.
    pub pods: Pods,
    /// What only a canary remembers.
    pub canary: CanaryMemory,
    /// What only blue-green remembers.
    pub blue_green: BlueGreenMemory,
    /// What holds, in the words of conditions.
    pub conditions: Vec<RolloutCondition>,
    /// The attempt under way, or the last one.
    pub attempt: Option<Attempt>,
    /// The AWS resources behind the Ingress.
    pub alb: Option<AlbStatus>,
    /// The AWS resources behind each of several Ingresses.
    pub albs: Vec<AlbStatus>,
}

/// A hash of a pod template or of steps. Never empty: no hash is `None`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(String);

impl Hash {
    /// The hash of this text, if there is one.
    pub fn new(text: impl Into<String>) -> Option<Hash> {
        Some(text.into()).filter(|text| !text.is_empty()).map(Hash)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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

    /// Since when it waits for this reason.
    pub fn since(&self, reason: &PauseReason) -> Option<Time> {
        self.pauses().find(|pause| pause.reason == *reason).map(|pause| pause.since)
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

/// Words that status keeps, with those that nobody here has heard of.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:expr,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A word of which nobody here has heard; made by `from` only, which knows the others.
            Other(Box<str>),
        }

        impl $name {
            /// Its word.
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $word,)*
                    $name::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> $name {
                match word {
                    $(known if known == $word => $name::$variant,)*
                    other => $name::Other(other.into()),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Why a Rollout waits.
    PauseReason {
        /// A pause step.
        CanaryStep = pause::CANARY_PAUSE_STEP,
        /// Before the switch of blue-green.
        BlueGreen = pause::BLUE_GREEN_PAUSE,
        /// An analysis was inconclusive.
        InconclusiveAnalysis = pause::INCONCLUSIVE_ANALYSIS,
        /// An experiment was inconclusive.
        InconclusiveExperiment = pause::INCONCLUSIVE_EXPERIMENT,
    }
}

words! {
    /// How far an analysis is.
    RunPhase {
        /// Not looked at yet.
        New = "",
        /// Not begun.
        Pending = analysis_phase::PENDING,
        /// Under way.
        Running = analysis_phase::RUNNING,
        /// As hoped.
        Successful = analysis_phase::SUCCESSFUL,
        /// Not as hoped.
        Failed = analysis_phase::FAILED,
        /// It could not be done.
        Error = analysis_phase::ERROR,
        /// Neither success nor failure.
        Inconclusive = analysis_phase::INCONCLUSIVE,
    }
}

words! {
    /// How an attempt ended.
    Completion {
        /// Step by step.
        Promoted = "Promoted",
        /// By a person who skipped the rest.
        FastPromoted = "FastPromoted",
        /// It was undone.
        Aborted = "Aborted",
        /// A newer version came.
        Superseded = "Superseded",
        /// Back to the stable version.
        RolledBack = "RolledBack",
        /// Back to a version of the rollback window.
        FastRolledBack = "FastRolledBack",
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

/// How promotion goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Promotion {
    /// As the steps say.
    #[default]
    BySteps,
    /// At once, as a person asked: without steps, pauses and analyses.
    Full,
}

/// How many pods there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pods {
    /// All of them.
    pub all: i32,
    /// Of the newest version.
    pub updated: i32,
    /// That are ready.
    pub ready: i32,
    /// That are available.
    pub available: i32,
    /// That an autoscaler should count.
    pub scaled: i32,
    /// Which pods an autoscaler should look at.
    pub selector: String,
}

/// What only a canary remembers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CanaryMemory {
    /// Where the traffic goes, with a router.
    pub weights: Option<Weights>,
    /// The analysis of the step it is at.
    pub step_run: Option<Run>,
    /// The analysis beside the steps.
    pub background_run: Option<Run>,
    /// The experiment of the step it is at.
    pub experiment: Option<Name>,
    /// Which of two Services has the stable role.
    pub stable_service: Option<PingPong>,
    /// How far step plugins are.
    pub plugins: Vec<StepPluginStatus>,
}

/// What only blue-green remembers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlueGreenMemory {
    /// The version that the active Service leads to.
    pub active: Option<Hash>,
    /// The version that the preview Service leads to.
    pub preview: Option<Hash>,
    /// Whether the new version has been let out of its preview size.
    pub size: PreviewSize,
    /// The analysis before the switch.
    pub before_run: Option<Run>,
    /// The analysis after the switch.
    pub after_run: Option<Run>,
}

/// How large the new version of blue-green is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PreviewSize {
    /// As a preview.
    #[default]
    Preview,
    /// As it will be when active; there is no way back within an update.
    Full,
}

/// The name of an object. Never empty.
pub type Name = Hash;

/// An analysis of a Rollout.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The AnalysisRun.
    pub name: String,
    /// How far it is.
    pub phase: RunPhase,
    /// Why.
    pub message: String,
}

/// Where the traffic goes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Weights {
    /// To the new version.
    pub canary: Share,
    /// To the stable version.
    pub stable: Share,
    /// To an experiment's versions.
    pub additional: Vec<Share>,
    /// What the load balancer says.
    pub verification: Verification,
}

/// A share of the traffic.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Share {
    /// How much.
    pub weight: i32,
    /// Through this Service.
    pub service: String,
    /// To this version.
    pub version: Option<Hash>,
}

/// What the load balancer says about the weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verification {
    /// It was not asked.
    #[default]
    NotAsked,
    /// It does not agree yet: no step may be left.
    Pending,
    /// It agrees.
    Confirmed,
}

/// One of two Services that swap roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PingPong {
    Ping,
    Pong,
}

/// An update, from its beginning to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// When it began.
    pub began: Time,
    /// Since when it waits for a person.
    pub waits_since: Option<Time>,
    /// How many seconds it has waited for people before.
    pub waited: i64,
    /// Its end.
    pub ended: Option<Ended>,
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// When.
    pub at: Time,
    /// How, if it was noted.
    pub how: Option<Completion>,
}

/// What people have asked for and nobody has acted upon, read from where their tools write it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Intents {
    /// `spec.paused`: stand still.
    pub stand_still: bool,
    /// The pause was taken away: go on.
    pub go_on: bool,
    /// Undo the update.
    pub abort: bool,
    /// Try an aborted update again.
    pub retry: bool,
    /// Skip steps, pauses and analyses.
    pub promote_fully: bool,
    /// Replace pods that are older than this.
    pub restart: Option<Time>,
}

impl Intents {
    /// What is asked for.
    pub fn of(spec: &RolloutSpec, memory: &Memory) -> Intents {
        Intents {
            stand_still: spec.paused,
            go_on: memory.hold == Hold::Released,
            abort: memory.abort == Abort::Asked,
            retry: matches!(memory.abort, Abort::Retry(_)),
            promote_fully: memory.promotion == Promotion::Full,
            restart: spec.restart_at.filter(|asked| memory.restarted_at != Some(*asked)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_come_and_go() {
        let (then, now) = (Time::parse("2024-01-01T00:00:00Z").unwrap(), Time::parse("2024-01-02T00:00:00Z").unwrap());
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
    fn known_words_are_never_other_words() {
        assert_eq!(PauseReason::from("BlueGreenPause"), PauseReason::BlueGreen);
        assert_eq!(RunPhase::from("Odd").as_str(), "Odd");
        assert_eq!(RunPhase::from(""), RunPhase::New);
        assert_eq!(Completion::from("Superseded").to_string(), "Superseded");
    }
}
