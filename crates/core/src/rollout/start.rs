//! What a specification starts, asked before anything is done: the classification that [`super::decide()`] acts upon, for plans.
//!
//! Answers from the same view and with the same questions as the decision itself. Never decides anything.

use super::{
    decide::Situation,
    pass::Pass,
    step,
    view::{Set, View},
};
use crate::model::limits;

/// What a specification starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// The first version: there is no stable one, so that there is nothing to go step by step from.
    First,
    /// A template that has no ReplicaSet yet.
    New,
    /// A template that has one.
    Rollback {
        /// Its revision.
        revision: i64,
        /// Why steps and pauses are left out, if they are.
        fast: Option<&'static str>,
    },
    /// The same template, another size.
    Scale {
        /// The size so far.
        from: i32,
        /// The size from now on.
        to: i32,
    },
    /// New pods of the same template.
    Restart,
    /// The same template and size, other steps. A canary that is under way begins them anew.
    Steps {
        /// Whether one is under way.
        restarts: bool,
    },
    /// Nothing that pods are made of.
    Nothing,
    /// Nothing: this template was aborted, and stays so until somebody retries.
    Held,
    /// Nothing, because of this.
    Invalid(String),
    /// Nothing, because this version of the engine cannot do it.
    Unsupported(String),
    /// Its end.
    Leaving,
}

/// What the specification of a view starts.
pub fn start(view: &View) -> Start {
    let status = &view.rollout.status;
    match Situation::of(view) {
        Situation::Leaving => return Start::Leaving,
        Situation::Invalid(problem) => return Start::Invalid(problem),
        Situation::Unsupported(what) => return Start::Unsupported(what),
        Situation::NewTemplate | Situation::NameTaken => {
            return if status.stable_rs.is_empty() { Start::First } else { Start::New };
        }
        Situation::Malformed
        | Situation::Unsized
        | Situation::Unsaid
        | Situation::FoundTemplate
        | Situation::Scaling
        | Situation::Moving => {}
    }
    if status.stable_rs.is_empty() {
        return Start::First;
    }
    if view.is_other_template() {
        let revision = view.new_set().map_or(0, Set::revision);
        return Start::Rollback { revision, fast: Pass::new(view).fast_rollback() };
    }
    if view.memory.abort.is_on() {
        return Start::Held;
    }
    let to = limits::replicas(&view.rollout);
    let noted = [view.new_set(), view.stable_set()].into_iter().flatten().filter(|set| set.info.desired > 0);
    if let Some(from) = noted.filter_map(|set| set.info.noted_replicas()).find(|noted| *noted != to) {
        return Start::Scale { from, to };
    }
    if view.memory.restart(&view.rollout.spec).is_some() {
        return Start::Restart;
    }
    if status.current_step_hash != view.step_hash.as_str() && view.rollout.spec.strategy.canary.is_some() {
        return Start::Steps { restarts: status.stable_rs != status.current_pod_hash };
    }
    Start::Nothing
}

/// The step, from 1, of how many, at which a canary stands that is under way and not aborted.
pub fn under_way(view: &View) -> Option<(usize, usize)> {
    let status = &view.rollout.status;
    let is_moving = !status.stable_rs.is_empty()
        && !status.current_pod_hash.is_empty()
        && status.stable_rs != status.current_pod_hash
        && !view.memory.abort.is_on();
    if !is_moving {
        return None;
    }
    let steps = view.rollout.spec.strategy.canary.as_ref().map_or(0, |canary| canary.steps.len());
    let at =
        step::position(&view.rollout).and_then(|position| usize::try_from(position.index).ok()).unwrap_or_default();
    Some(((at + 1).min(steps.max(1)), steps))
}
