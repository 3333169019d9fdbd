//! What a change starts, Rollout by Rollout: what a plan says about each.

use super::forecast::Forecast;
use crate::{kubernetes::value::Text, sync::id::Id};

/// What a change does to a Rollout.
#[derive(Debug, Clone, PartialEq)]
pub struct RolloutPlan {
    /// The Rollout.
    pub id: Id,
    /// Its file.
    pub file: Text,
    /// The line it begins in.
    pub line: usize,
    /// What starts.
    pub starts: Starts,
    /// Why, in a sentence.
    pub reason: String,
    /// The canary that runs now and is given up for this one: at which step of how many.
    pub supersedes: Option<(usize, usize)>,
    /// `canary`, `blue-green` or `none`.
    pub strategy: &'static str,
    /// How it goes; `None` if nothing moves.
    pub forecast: Option<Forecast>,
}

/// What starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Starts {
    /// The first version, without steps.
    FirstDeployment,
    /// A new version, step by step.
    NewRollout,
    /// The return to a version that was left before.
    Rollback {
        /// Its revision.
        revision: i64,
        /// Whether steps and pauses are left out.
        skips_steps: bool,
    },
    /// Only its size changes.
    Scale,
    /// All pods are replaced by new ones of the same version.
    Restart,
    /// Nothing that pods are made of changes.
    Configuration,
    /// Nothing.
    Nothing,
    /// Nothing, because this version was aborted before.
    Held,
    /// Nothing, because the specification makes no sense.
    Invalid,
    /// It is deleted, with its pods.
    Removed,
    /// It cannot be told.
    Unknown,
}

impl Starts {
    /// In one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Starts::FirstDeployment => "first-deployment",
            Starts::NewRollout => "new-rollout",
            Starts::Rollback { .. } => "rollback",
            Starts::Scale => "scale",
            Starts::Restart => "restart",
            Starts::Configuration => "configuration",
            Starts::Nothing => "nothing",
            Starts::Held => "held",
            Starts::Invalid => "invalid",
            Starts::Removed => "removed",
            Starts::Unknown => "unknown",
        }
    }

    /// For people.
    pub fn title(&self) -> String {
        match self {
            Starts::FirstDeployment => "first deployment".into(),
            Starts::NewRollout => "new rollout".into(),
            Starts::Rollback { revision, skips_steps: true } => {
                format!("rollback to revision {revision}, without steps")
            }
            Starts::Rollback { revision, skips_steps: false } => {
                format!("rollback to revision {revision}, step by step")
            }
            Starts::Scale => "scaling only".into(),
            Starts::Restart => "restart of all pods".into(),
            Starts::Configuration => "configuration only".into(),
            Starts::Nothing => "nothing starts".into(),
            Starts::Held => "held: this version was aborted".into(),
            Starts::Invalid => "invalid: nothing starts".into(),
            Starts::Removed => "removed, with its pods".into(),
            Starts::Unknown => "cannot be told".into(),
        }
    }

    /// Whether pods come or go.
    pub fn moves(&self) -> bool {
        match self {
            Starts::FirstDeployment
            | Starts::NewRollout
            | Starts::Rollback { .. }
            | Starts::Scale
            | Starts::Restart => true,
            Starts::Configuration
            | Starts::Nothing
            | Starts::Held
            | Starts::Invalid
            | Starts::Removed
            | Starts::Unknown => false,
        }
    }
}
