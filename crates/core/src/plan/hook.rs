//! The hooks that a commit runs: those of its whole set, whether the commit changes them or not.
//!
//! Never decides when a hook is due: [`crate::sync`] does.

use crate::{
    kubernetes::value::Text,
    sync::{id::Id, policy::Phase, set::Set},
};

/// A hook that a commit runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedHook {
    /// The object.
    pub id: Id,
    /// When it runs.
    pub phase: Phase,
    /// Its wave: hooks of one phase and wave run together.
    pub wave: i64,
    /// Its file.
    pub file: Text,
    /// The line it begins in.
    pub line: usize,
}

/// The hooks of a commit that changes something, in the order in which they run.
pub fn hooks(new: &Set) -> Vec<PlannedHook> {
    let mut hooks: Vec<PlannedHook> = new
        .hooks
        .iter()
        .filter_map(|desired| {
            let phase = desired.policy.hook.as_ref()?.phase;
            let (file, line) = (desired.file.clone(), desired.line);
            Some(PlannedHook { id: desired.id.clone(), phase, wave: desired.policy.wave, file, line })
        })
        .collect();
    // A set has them by wave already.
    hooks.sort_by_key(|hook| hook.phase);
    hooks
}

/// When a hook runs, in words.
pub fn moment(phase: Phase) -> &'static str {
    match phase {
        Phase::BeforeSync => "before anything is applied",
        Phase::Sync => "when everything is applied",
        Phase::AfterSync => "when everything is healthy",
        Phase::OnFailure => "only if the commit fails",
    }
}
