//! Why something is done, or not done, as data: the same value becomes a log line, a condition, a commit's status.

use std::fmt;

use super::{id::Id, invariant::Broken, policy::Phase, rights::MissingRights};
use crate::kubernetes::value::Text;

/// Why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// An object is new.
    Creates(Id),
    /// An object is there and nobody's; it is taken over.
    Adopts(Id),
    /// Git says something else now.
    Changes(Id, Vec<String>),
    /// Somebody changed what git had said.
    Heals(Id, Vec<String>),
    /// Git no longer has it.
    Prunes(Id),
    /// Git no longer has it, and it stands in the way of what git has.
    PrunesFirst(Id, Id),
    /// A Service is given to the Rollout that git has in place of the one that managed it.
    HandsOver {
        /// The Service.
        service: Id,
        /// The Rollout that is no longer in git.
        from: Text,
        /// The one that git has.
        to: Text,
    },
    /// A hook begins.
    RunsHook(Id, Phase),
    /// A hook failed.
    HookFailed(Id, String),
    /// Annotations of other tools ask for something that is not done.
    NotHonoured(Id, Vec<String>),
    /// A field of it cannot change: it is deleted and created again.
    Replaces(Id),
    /// Git no longer has them; they go when everything that git has is healthy.
    PrunesLater {
        /// How many.
        count: usize,
        /// What is waited for.
        of: Id,
    },
    /// The whole source is suspended.
    Suspended,
    /// The object is suspended.
    ObjectSuspended(Id),
    /// The object asks to be left alone.
    Ignored(Id),
    /// The object was to be created only.
    AppliedOnce(Id),
    /// Its version was given up.
    Held {
        /// The Rollout.
        id: Id,
        /// The commit that brought it.
        commit: Text,
        /// Why it was given up.
        why: String,
    },
    /// The last promoted set is put back.
    Restores {
        /// Its commit.
        commit: Text,
    },
    /// Another source wrote it.
    OtherSource(Id, String),
    /// Another tool applies the same field.
    Conflict {
        /// The object.
        id: Id,
        /// Who.
        manager: String,
        /// What.
        field: String,
    },
    /// Somebody changed it, and the source is told to leave that.
    DriftLeft(Id, Vec<String>),
    /// An earlier wave is not done.
    WaitsForWave {
        /// The wave that waits.
        wave: i64,
        /// What it waits for.
        of: Id,
        /// How that is doing.
        words: String,
    },
    /// Its kind is not served yet.
    WaitsForDefinition(Id),
    /// Another source is not done.
    WaitsForSource(String),
    /// An earlier commit is not done.
    WaitsForCommit(Text),
    /// The server refuses it.
    Refused(Id, String),
    /// It stays because something that runs refers to it.
    StillReferenced(Id, String),
    /// It stays because it says so.
    KeptByPolicy(Id),
    /// It stays because it is not the one that was written.
    NotOurs(Id),
    /// It stays because others may live in it or by it.
    HoldsOthers(Id),
    /// A source that is deleted leaves everything as it is.
    LetsGo(&'static str),
    /// The source's account may not read what is needed to decide anything.
    MayNotRead(MissingRights),
    /// Nothing is deleted.
    NoPruning(Doubt),
    /// What was decided would break rules, and is refused.
    BreaksRules(Vec<Broken>),
    /// The branch was moved back, or its history rewritten.
    MovedBack {
        /// From where.
        from: Text,
        /// To where.
        to: Text,
    },
}

/// Why nothing is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The source says so.
    Off,
    /// There is nothing in the commit at all.
    Empty,
    /// One commit would delete more than the source allows.
    TooMany {
        /// How many it would delete.
        stale: usize,
        /// Of how many.
        of: usize,
        /// How many it may.
        limit: usize,
    },
    /// Something could not be read.
    Unread,
    /// What runs may still refer to it, and that may not be listed.
    Unlisted(MissingRights),
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Off => f.write_str("the source does not prune"),
            Doubt::Empty => f.write_str("there is no object in the path; remove the GitSource to let go of everything"),
            Doubt::TooMany { stale, of, limit } => write!(
                f,
                "{stale} of {of} objects are no longer in the path, and one commit may delete {limit}; raise spec.pruneLimit"
            ),
            Doubt::Unread => f.write_str("not everything in the path could be read"),
            Doubt::Unlisted(missing) => write!(f, "what runs may still need it, and {missing}"),
        }
    }
}

fn list(fields: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = fields.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match fields.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{shown} and {more} more"),
        Some(0) | None => shown,
    }
}

/// The first digits of a commit's hash.
pub fn short(commit: &str) -> &str {
    commit.get(..8).unwrap_or(commit)
}

/// Why a Rollout is held, since when, and what ends that. That it is held comes first: hosts cut what is long.
pub fn held(name: &str, commit: &str, why: &str) -> String {
    format!(
        "held since commit {}: {why}; a commit that changes its pod template, or `tidegate retry rollout {name}`, goes on",
        short(commit)
    )
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Creates(id) => write!(f, "{id} is new"),
            Reason::Adopts(id) => write!(f, "{id} is there already and is taken over"),
            Reason::Changes(id, fields) if fields.is_empty() => write!(f, "{id} gets its commit"),
            Reason::Changes(id, fields) => write!(f, "{id} changes at {}", list(fields)),
            Reason::Heals(id, fields) => write!(f, "{id} was changed by others at {} and is put right", list(fields)),
            Reason::Prunes(id) => write!(f, "{id} is no longer in git"),
            Reason::PrunesFirst(id, of) => {
                write!(f, "{id} is no longer in git and stands in the way of {of}: it is deleted before {of} is there")
            }
            Reason::HandsOver { service, from, to } => {
                write!(f, "{service} is handed over from Rollout {from}, which is no longer in git, to Rollout {to}")
            }
            Reason::RunsHook(id, phase) => write!(f, "{} hook {id} begins", phase.name()),
            Reason::HookFailed(_, words) => f.write_str(words),
            Reason::NotHonoured(id, asked) => write!(f, "{id} asks for what is not done: {}", list(asked)),
            Reason::Replaces(id) => write!(f, "{id} is deleted and created again: a field of it cannot change"),
            Reason::PrunesLater { count: 1, of } => {
                write!(f, "1 object that is no longer in git stays until {of} is healthy")
            }
            Reason::PrunesLater { count, of } => {
                write!(f, "{count} objects that are no longer in git stay until {of} is healthy")
            }
            Reason::Suspended => f.write_str("suspended: nothing is changed until spec.suspend is unset"),
            Reason::ObjectSuspended(id) => write!(f, "{id} is suspended"),
            Reason::Ignored(id) => write!(f, "{id} asks to be ignored"),
            Reason::AppliedOnce(id) => write!(f, "{id} was to be applied once"),
            Reason::Held { id, commit, why } => {
                write!(f, "{}: {}", id.name, held(&id.name, commit, why))
            }
            Reason::Restores { commit } => write!(f, "everything goes back to commit {}", short(commit)),
            Reason::OtherSource(id, source) => {
                write!(f, "{id} belongs to the source {source}; remove it from one of the two")
            }
            Reason::Conflict { id, manager, field } => {
                write!(f, "{id}: {manager} applies {field} as well; remove the field in one of the two places")
            }
            Reason::DriftLeft(id, fields) => write!(f, "{id} was changed by others at {}, which is left", list(fields)),
            Reason::WaitsForWave { wave, of, words } => write!(f, "wave {wave} waits for {of}: {words}"),
            Reason::WaitsForDefinition(id) => write!(f, "{id} waits until its kind is served"),
            Reason::WaitsForSource(name) => write!(f, "waits until the source {name} has rolled out"),
            Reason::WaitsForCommit(commit) => write!(f, "waits for commit {} to end", short(commit)),
            Reason::Refused(id, why) => write!(f, "{id}: {why}"),
            Reason::StillReferenced(id, by) => write!(f, "{id} is no longer in git and stays while {by} refers to it"),
            Reason::KeptByPolicy(id) => write!(f, "{id} is no longer in git and stays, as its annotation says"),
            Reason::NotOurs(id) => write!(f, "{id} is not the object that was written and stays"),
            Reason::HoldsOthers(id) => write!(f, "{id} stays: more than this source's objects may be in it"),
            Reason::LetsGo(why) => write!(f, "its objects stay as they are: {why}"),
            Reason::MayNotRead(missing) => write!(f, "{missing}"),
            Reason::NoPruning(doubt) => write!(f, "nothing is deleted: {doubt}"),
            Reason::BreaksRules(broken) => {
                let words: Vec<String> = broken.iter().map(ToString::to_string).collect();
                write!(f, "refused, nothing is written: {}", words.join("; "))
            }
            Reason::MovedBack { from, to } => {
                write!(f, "the reference moved from {} back to {}", short(from), short(to))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::text;

    #[test]
    fn a_hold_survives_the_cut_of_every_host() {
        let why = format!("aborted: metric \"error-rate\" assessed Failed due to failed ({})", "x".repeat(300));
        let words = format!("no change under deploy; same as 11111111: web: {}", held("web", &"2".repeat(40), &why));
        for most in [140, 255] {
            assert!(text::cut(&words, most).contains("held since commit 22222222"), "{words}");
        }
        assert_eq!(
            held("web", &"2".repeat(40), "it timed out"),
            "held since commit 22222222: it timed out; a commit that changes its pod template, or `tidegate retry rollout web`, goes on"
        );
    }
}
