//! The commit statuses to report: one for all that a commit brought, and one for each Rollout where the source asks for that.
//!
//! Never says of a Rollout what is not seen: it succeeds when nothing is left to write to it and it is fully promoted.

use super::{
    hold,
    id::Id,
    plan::Plan,
    policy::Apply,
    reason::short,
    view::{Commit, Pair, View},
};
use crate::{
    api::{HeldObject, constants},
    kubernetes::value::Text,
    model::{git_source::GitSource, health::Standing},
};

pub use crate::forge::State;

/// What a commit is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The commit.
    pub commit: Text,
    /// The Rollout that it is about; the whole commit if none is named.
    pub rollout: Option<Text>,
    /// In one word.
    pub state: State,
    /// In a sentence.
    pub words: String,
}

impl Report {
    /// About a whole commit.
    pub fn new(commit: &str, state: State, words: String) -> Report {
        Report { commit: commit.into(), rollout: None, state, words }
    }
}

/// Whether a status stands for each Rollout.
fn wants_each(spec: &GitSource) -> bool {
    spec.report.as_ref().is_some_and(|report| report.per_rollout)
}

fn is_rollout(id: &Id) -> bool {
    id.is(constants::GROUP, constants::kind::ROLLOUT)
}

/// What a Rollout is called: with its namespace, unless that is where the source's objects go anyway.
fn called(view: &View, spec: &GitSource, id: &Id) -> Text {
    let target = spec.target_namespace.as_deref().unwrap_or(&view.namespace);
    if id.namespace == target { id.name.clone() } else { format!("{}/{}", id.namespace, id.name).into() }
}

/// How each Rollout of a commit is doing.
pub fn rollouts(view: &View, spec: &GitSource, commit: &str, pairs: &[Pair<'_>], plan: &Plan) -> Vec<Report> {
    let of = |pair: &Pair<'_>| {
        let id = &pair.desired.id;
        let (state, words) = match (plan.failed.get(id), &pair.doing) {
            (Some(why), _) => (State::Failure, why.clone()),
            (None, Some(doing)) if !plan.open.contains(id) => match doing.standing {
                Standing::Current => (State::Success, "fully promoted".to_owned()),
                Standing::InProgress => (State::Pending, doing.words.clone()),
                Standing::Stalled => (State::Failure, doing.words.clone()),
            },
            (None, Some(_) | None) => (State::Pending, "is not applied yet".to_owned()),
        };
        Report { commit: commit.into(), rollout: Some(called(view, spec, id)), state, words }
    };
    let each = pairs.iter().filter(|_| wants_each(spec));
    each.filter(|pair| is_rollout(&pair.desired.id) && pair.desired.policy.apply != Apply::Never).map(of).collect()
}

/// What the Rollouts of a commit are told that was given up as a whole, on one of the commits that want the same.
pub fn given_back(
    view: &View,
    spec: &GitSource,
    commit: &Commit,
    on: &str,
    held: &[HeldObject],
    to: &str,
) -> Vec<Report> {
    let of = |id: &Id| {
        let why = held.iter().find(|held| hold::is_about(held, id)).map(|held| held.reason.clone());
        let words = why.unwrap_or_else(|| format!("back at commit {}", short(to)));
        let rollout = Some(called(view, spec, id));
        Report { commit: on.into(), rollout, state: State::Failure, words }
    };
    let each = commit.set.objects.iter().filter(|_| wants_each(spec)).map(|desired| &desired.id);
    each.filter(|id| is_rollout(id)).map(of).collect()
}

/// The last word of a commit that was not over, and of each of its Rollouts.
pub fn overtaken(view: &View, commit: &str, words: &str) -> Vec<Report> {
    let mut reports = vec![Report::new(commit, State::Superseded, words.to_owned())];
    let Ok(spec) = &view.spec else { return reports };
    let entries = view.status.inventory.iter().filter(|_| wants_each(spec)).map(Id::of_entry);
    reports.extend(entries.filter(is_rollout).map(|id| Report {
        commit: commit.into(),
        rollout: Some(called(view, spec, &id)),
        state: State::Superseded,
        words: words.to_owned(),
    }));
    reports
}
