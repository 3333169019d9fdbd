//! What is worth an event on the GitSource: what was done that nobody asked for by hand, what was not done, how it ended.

use std::collections::BTreeSet;

use super::{
    decide::{DENIED, Verdict},
    id::{Id, cut},
    reason::{Doubt, Reason, short},
    view::View,
};
use crate::{
    api::{GitRevision, GitSourceStatus, constants::condition},
    rollout::Event,
};

/// How many objects an event names.
const NAMED: usize = 3;
/// The longest message that the API server takes.
const LONGEST: usize = 1024;

/// Which objects the actions of a verdict were carried out on: a server may refuse one, and a connection may break.
#[derive(Debug, Clone, Default)]
pub struct Acted {
    /// The objects that were written, deleted or handed over.
    pub done: BTreeSet<Id>,
}

/// The events of a verdict, one of each kind. What was to be done and was not is none.
pub fn announcements(view: &View, verdict: &Verdict, acted: &Acted) -> Vec<Event> {
    let mut events = Vec::new();
    let reasons = || verdict.reasons.iter().filter(|reason| target(reason).is_none_or(|id| acted.done.contains(id)));
    let seen = verdict.status.seen.as_ref().map(|seen| short(&seen.commit)).unwrap_or_default();
    let applied: Vec<String> = reasons()
        .filter_map(|reason| match reason {
            Reason::Creates(id) => Some(id.to_string()),
            Reason::Changes(id, fields) if !fields.is_empty() => Some(id.to_string()),
            _ => None,
        })
        .collect();
    if !applied.is_empty() {
        events.push(Event {
            warning: false,
            reason: "Applied",
            message: format!("commit {seen}: {}", named(&applied)),
        });
    }
    let ending = ending(&view.status, &verdict.status);
    for (reason, warning) in KINDS {
        let of: Vec<String> = reasons().filter(|told| kind(told) == Some(reason)).map(ToString::to_string).collect();
        // The commit that ends with this says it below.
        let is_ending = ending.as_ref().is_some_and(|ending| ending.reason == reason);
        if !of.is_empty() && !is_ending {
            events.push(Event { warning, reason, message: named(&of) });
        }
    }
    events.extend(ending);
    for event in &mut events {
        event.message = cut(&event.message, LONGEST);
    }
    events
}

/// What is told of reasons, and whether it warns.
const KINDS: [(&str, bool); 14] = [
    ("HookStarted", false),
    ("HookFailed", true),
    ("AnnotationIgnored", true),
    ("TakenOver", false),
    ("HandedOver", false),
    ("DriftHealed", false),
    ("DriftLeft", true),
    ("Replaced", true),
    ("Pruned", false),
    ("PruneDeferred", false),
    ("PruneRefused", true),
    ("Kept", false),
    ("Held", true),
    ("MovedBack", true),
];

/// The object that something is done to.
fn target(reason: &Reason) -> Option<&Id> {
    match reason {
        Reason::Creates(id)
        | Reason::Adopts(id)
        | Reason::Changes(id, _)
        | Reason::Heals(id, _)
        | Reason::Prunes(id)
        | Reason::PrunesFirst(id, _)
        | Reason::Replaces(id)
        | Reason::RunsHook(id, _)
        | Reason::HandsOver { service: id, .. } => Some(id),
        _ => None,
    }
}

fn kind(reason: &Reason) -> Option<&'static str> {
    match reason {
        Reason::Adopts(_) => Some("TakenOver"),
        // Without a field it only gets its marks back.
        Reason::Heals(_, fields) if !fields.is_empty() => Some("DriftHealed"),
        Reason::DriftLeft(..) => Some("DriftLeft"),
        Reason::Prunes(_) | Reason::PrunesFirst(..) => Some("Pruned"),
        Reason::HandsOver { .. } => Some("HandedOver"),
        Reason::RunsHook(..) => Some("HookStarted"),
        Reason::HookFailed(..) => Some("HookFailed"),
        Reason::NotHonoured(..) => Some("AnnotationIgnored"),
        Reason::Replaces(_) => Some("Replaced"),
        Reason::PrunesLater { .. } => Some("PruneDeferred"),
        Reason::NoPruning(Doubt::TooMany { .. } | Doubt::Empty | Doubt::Unlisted(_)) => Some("PruneRefused"),
        Reason::ObjectSuspended(_)
        | Reason::StillReferenced(..)
        | Reason::KeptByPolicy(_)
        | Reason::NotOurs(_)
        | Reason::NoPruning(Doubt::Off) => Some("Kept"),
        Reason::Held { .. } => Some("Held"),
        Reason::MovedBack { .. } => Some("MovedBack"),
        _ => None,
    }
}

/// How a commit ended, if that is new.
fn ending(before: &GitSourceStatus, now: &GitSourceStatus) -> Option<Event> {
    let commit = |revision: &Option<GitRevision>| revision.as_ref().map(|revision| revision.commit.clone());
    let ready = |status: &GitSourceStatus| {
        let told = status.conditions.iter().find(|told| told.r#type == condition::READY);
        told.map(|told| (told.status.clone(), told.reason.clone(), told.message.clone()))
    };
    let (status, reason, message) = ready(now)?;
    if status == "True" {
        let is_new = commit(&before.rolled_out) != commit(&now.rolled_out);
        let name = now.rolled_out.as_ref().map(|done| short(&done.commit)).unwrap_or_default();
        return is_new.then(|| Event {
            warning: false,
            reason: "RolledOut",
            message: format!("commit {name}: {message}"),
        });
    }
    let reason = ENDINGS.into_iter().find(|ending| *ending == reason)?;
    let is_new = ready(before).is_none_or(|before| (before.1.as_str(), before.2) != (reason, message.clone()));
    let name = now.seen.as_ref().map(|seen| format!("commit {}: ", short(&seen.commit))).unwrap_or_default();
    is_new.then(|| Event { warning: true, reason, message: format!("{name}{message}") })
}

/// The reasons of the condition Ready that somebody has to do something about.
const ENDINGS: [&str; 11] = [
    DENIED,
    "HookFailed",
    "Invalid",
    "FetchFailed",
    "Unreadable",
    "ApplyFailed",
    "RolloutFailed",
    "PruneRefused",
    "Restored",
    "Lost",
    "DeletionRefused",
];

/// Whether an event says of a commit what its status says.
pub fn is_of_commit(reason: &str) -> bool {
    reason == "Held" || ENDINGS.contains(&reason)
}

/// The first few, and how many more.
fn named(words: &[String]) -> String {
    let shown = words.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    match words.len().checked_sub(NAMED) {
        Some(more @ 1..) => format!("{shown} (and {more} more)"),
        Some(0) | None => shown,
    }
}
