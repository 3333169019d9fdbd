//! From the wire types to the exact ones: every default filled in, every problem named.
//!
//! The rules, their order and their words for Argo Rollouts are those of its own validation; what it does not notice is
//! noted beside them. One function per kind. Never stops at the first problem, never looks at other objects, never
//! panics.

mod analysis;
mod experiment;
mod git_source;
#[cfg(test)]
mod laws;
mod metric;
mod pods;
mod step;
mod strategy;
mod traffic;

use jiff::SignedDuration;

pub use analysis::{cluster_template, run, template};
pub use experiment::experiment;
pub use git_source::git_source;
pub use metric::argo_error as metrics_error;
pub use pods::{PodsFrom, is_empty_template};
pub use step::{is_metadata_field, pause_seconds};

use super::{
    path::At,
    problem::{Code, Notes, Parsed},
    rollout::{Deadline, DeadlineAction, Replicas, Rollout, RunHistory},
};
use crate::api;

/// What holds if a Rollout does not say otherwise.
mod default {
    pub const REVISION_HISTORY_LIMIT: i32 = 10;
    pub const PROGRESS_DEADLINE_SECONDS: i32 = 600;
    pub const RUN_HISTORY_LIMIT: i32 = 5;
    pub const SCALE_DOWN_DELAY_SECONDS: i32 = 30;
}

/// A Rollout.
pub fn rollout(wire: &api::Rollout, from: PodsFrom) -> Parsed<Rollout> {
    let mut notes = Notes::default();
    let spec = At::ROOT.key("spec");
    let exact = rollout_spec(&wire.spec, from, &spec, &mut notes);
    notes.close(exact)
}

fn rollout_spec(wire: &api::RolloutSpec, from: PodsFrom, at: &At, notes: &mut Notes) -> Option<Rollout> {
    let count = count(wire.replicas.unwrap_or(1), &at.key("replicas"), notes);
    let replicas = if wire.replicas.is_some() { Replicas::Given(count) } else { Replicas::Unsaid };
    let pods = pods::parse(wire, from, at, notes);
    let min_ready = count_of(wire.min_ready_seconds, &at.key("minReadySeconds"), notes);
    let history = wire.revision_history_limit.unwrap_or(default::REVISION_HISTORY_LIMIT);
    let revision_history_limit = self::count(history, &at.key("revisionHistoryLimit"), notes);
    let deadline = deadline(wire, at, notes);
    let rollback_window = rollback_window(wire, at, notes);
    let run_history = run_history(wire, at, notes);
    let strategy = strategy::parse(wire, &at.key("strategy"), notes);
    Some(Rollout {
        replicas,
        pods: pods?,
        min_ready: seconds(min_ready),
        rollback_window,
        strategy: strategy?,
        revision_history_limit,
        paused: wire.paused,
        deadline,
        restart_at: wire.restart_at.map(Into::into),
        run_history,
    })
}

/// A number that Argo Rollouts refuses below zero.
fn count(number: i32, at: &At, notes: &mut Notes) -> u32 {
    u32::try_from(number).unwrap_or_else(|_| {
        let words = at.invalid(number, "must be greater than or equal to 0");
        let remedy = "use zero or a number above it";
        notes.argo(at, Code::NegativeNumber, words, format!("{number} is below zero"), remedy);
        0
    })
}

fn count_of(number: i32, at: &At, notes: &mut Notes) -> i32 {
    count(number, at, notes) as i32
}

/// A number that Argo Rollouts accepts below zero, and then cannot use: the nearest that makes sense.
fn tolerated(number: i32, at: &At, notes: &mut Notes) -> u32 {
    u32::try_from(number).unwrap_or_else(|_| {
        let remedy = "use zero or a number above it, or leave it out";
        notes.ours(at, Code::NumberOutOfRange, format!("{number} is below zero and counts as 0"), remedy);
        0
    })
}

/// Seconds that Argo Rollouts accepts below zero.
fn tolerated_seconds(number: i32, at: &At, notes: &mut Notes) -> SignedDuration {
    SignedDuration::from_secs(tolerated(number, at, notes).into())
}

fn seconds(number: i32) -> SignedDuration {
    SignedDuration::from_secs(number.into())
}

/// A text that stands for nothing if it is empty.
fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn deadline(wire: &api::RolloutSpec, at: &At, notes: &mut Notes) -> Deadline {
    let at = at.key("progressDeadlineSeconds");
    let after = wire.progress_deadline_seconds.unwrap_or(default::PROGRESS_DEADLINE_SECONDS);
    count(after, &at, notes);
    if after <= wire.min_ready_seconds {
        notes.argo(
            &at,
            Code::ProgressDeadline,
            at.invalid(after, "must be greater than minReadySeconds"),
            format!("a pod must be ready for {} s, but has failed after {after} s", wire.min_ready_seconds),
            format!("set it above minReadySeconds ({})", wire.min_ready_seconds),
        );
    }
    let then = if wire.progress_deadline_abort { DeadlineAction::Abort } else { DeadlineAction::Report };
    Deadline { after: seconds(after), then }
}

fn rollback_window(wire: &api::RolloutSpec, at: &At, notes: &mut Notes) -> Option<u32> {
    let revisions = wire.rollback_window.as_ref()?.revisions;
    if revisions < 1 {
        let at = at.key("rollbackWindow");
        let what = format!("a window of {revisions} revisions never lets a rollback skip its steps");
        notes.ours(&at.key("revisions"), Code::RollbackWindow, what, "use 1 or more, or remove rollbackWindow");
        return None;
    }
    Some(revisions.unsigned_abs())
}

fn run_history(wire: &api::RolloutSpec, at: &At, notes: &mut Notes) -> RunHistory {
    let at = at.key("analysis");
    let given = wire.analysis.clone().unwrap_or_default();
    let limit = |limit: Option<i32>| limit.unwrap_or(default::RUN_HISTORY_LIMIT);
    RunHistory {
        successful: tolerated(limit(given.successful_run_history_limit), &at.key("successfulRunHistoryLimit"), notes),
        unsuccessful: tolerated(
            limit(given.unsuccessful_run_history_limit),
            &at.key("unsuccessfulRunHistoryLimit"),
            notes,
        ),
    }
}
