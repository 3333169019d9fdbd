//! Which finished analyses and experiments of a Rollout are no longer kept.
//!
//! Never gives up one that still runs, unless the version it belongs to is gone.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::model::replica_set::ReplicaSet;

/// How an analysis or experiment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It has not.
    Unfinished,
    /// Well.
    Successful,
    /// Failed, in error, or without a result.
    Unsuccessful,
}

impl Outcome {
    /// The outcome of a phase.
    pub fn of(phase: &str) -> Outcome {
        use crate::api::constants::analysis_phase::{ERROR, FAILED, INCONCLUSIVE, SUCCESSFUL};
        match phase {
            SUCCESSFUL => Outcome::Successful,
            FAILED | ERROR | INCONCLUSIVE => Outcome::Unsuccessful,
            _ => Outcome::Unfinished,
        }
    }
}

/// An analysis or experiment that is not the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run<'a> {
    /// The hash of the version it belongs to; `None` if it does not say.
    pub hash: Option<&'a str>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// How it ended.
    pub outcome: Outcome,
}

/// How many finished runs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of the successful.
    pub successful: i32,
    /// Of the others.
    pub unsuccessful: i32,
}

/// Which runs to delete, by their place in the list, newest first: those of no version, of a version that is gone or on
/// its way out, and the oldest beyond the limits.
pub fn outdated(runs: &[Run<'_>], sets: &[ReplicaSet], limits: Limits) -> Vec<usize> {
    let labelled = sets.iter().filter(|set| !set.hash.is_empty());
    let versions: HashMap<&str, bool> = labelled.map(|set| (set.hash.as_str(), set.deleting)).collect();
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|a, b| runs[*b].created.cmp(&runs[*a].created));
    let (mut successful, mut unsuccessful) = (limits.successful, limits.unsuccessful);
    let mut keep = |run: &Run<'_>| {
        if run.hash.and_then(|hash| versions.get(hash)) != Some(&false) {
            return false;
        }
        let left = match run.outcome {
            Outcome::Unfinished => return true,
            Outcome::Successful => &mut successful,
            Outcome::Unsuccessful => &mut unsuccessful,
        };
        let keeps = *left > 0;
        *left = left.saturating_sub(1);
        keeps
    };
    order.retain(|index| !keep(&runs[*index]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_those_of_no_version_are_not() {
        let run = |hash, second, outcome| Run { hash, created: Timestamp::from_second(second).ok(), outcome };
        let set = |hash: &str, deleting| ReplicaSet { hash: hash.into(), deleting, ..ReplicaSet::default() };
        let runs = [
            run(Some("a"), 1, Outcome::Successful),
            run(Some("a"), 3, Outcome::Successful),
            run(Some("a"), 2, Outcome::Unsuccessful),
            run(Some("a"), 0, Outcome::Unfinished),
            run(Some("going"), 9, Outcome::Unfinished),
            run(Some("gone"), 8, Outcome::Successful),
            run(None, 7, Outcome::Successful),
        ];
        let sets = [set("a", false), set("going", true)];
        assert_eq!(outdated(&runs, &sets, Limits { successful: 1, unsuccessful: 1 }), [4, 5, 6, 0]);
        assert_eq!(outdated(&runs, &sets, Limits { successful: -1, unsuccessful: 0 }), [4, 5, 6, 1, 2, 0]);
    }
}
