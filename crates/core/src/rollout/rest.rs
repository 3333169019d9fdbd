//! A Rollout at rest: everything is as its specification says, and status says so.
//!
//! Most passes meet this, so it is recognised without a single allocation. The reading is narrow: who is in doubt takes the
//! long way and comes to the same verdict. Never calls that rest where the long way would do or say something; the
//! simulator asks both ways at every pass, and a law asks them on Rollouts of any shape.

use std::fmt::{self, Write};

use super::{
    runs::Run,
    view::{self, Conditions, Set, View},
};
use crate::{
    api::{
        RolloutCondition, RolloutStatus,
        constants::{annotation, condition, phase, reason},
    },
    kubernetes::value::Value,
    model::{conditions::Truth, limits, memory::Abort, memory::Hold, revision, strategy::AntiAffinity},
};

/// Whether nothing is to be done or said.
pub fn is_at_rest(view: &View) -> bool {
    let (Some(new), true) = (view.new_set(), view.new == view.stable) else { return false };
    is_plain(view)
        && nothing_is_asked(view)
        && carries_everything(view, new)
        && is_noted(view, new)
        && others_are_gone(view)
        && services_lead_to(view, new)
        && status_says_so(view, new)
        && view.runs_are_at_rest()
        && view.experiments_are_at_rest()
}

/// Whether it has nothing that takes more than a look: pods to dress, nodes to keep off, a workload, a router.
fn is_plain(view: &View) -> bool {
    let strategy = &view.rollout.spec.strategy;
    let routes = strategy.canary.as_ref().is_some_and(|canary| {
        canary.traffic_routing.is_some() || canary.ping_pong.is_some() || canary.replica_progress_threshold.is_some()
    });
    let generation = ["metadata", "annotations", annotation::WORKLOAD_GENERATION];
    view.invalid.is_none()
        && view.reading.is_none()
        && view.rollout.spec.workload_ref.is_none()
        && view.object.at(&generation).is_none()
        && view.orphans.is_empty()
        && !view.runs.iter().chain(&view.experiments).any(Run::is_orphan)
        && view.strangers.is_empty()
        && !routes
        && !view::dresses(&view.rollout)
        && AntiAffinity::of(strategy).is_none()
}

fn nothing_is_asked(view: &View) -> bool {
    let (rollout, memory) = (&view.rollout, &view.memory);
    rollout.metadata.deletion_timestamp.is_none()
        && rollout.spec.replicas.is_some()
        && !rollout.spec.paused
        && memory.hold == Hold::Free
        && memory.abort == Abort::No
        && !memory.promotion.is_full()
        && memory.restart(&rollout.spec).is_none()
}

/// Whether the set is all the Rollout wants: of its size, told so, and available.
fn carries_everything(view: &View, set: &Set) -> bool {
    let (info, size) = (&set.info, limits::replicas(&view.rollout));
    size > 0
        && [info.desired, info.current, info.ready, info.available] == [size; 4]
        && prints_as(info.note(annotation::DESIRED_REPLICAS), size)
        && !info.deleting
        && !info.has_scale_down_deadline()
        && !set.is_failing()
        && set.object.int_at(&["spec", "minReadySeconds"]).unwrap_or_default()
            == i64::from(view.rollout.spec.min_ready_seconds)
}

/// Whether the set carries the Rollout's annotations and the highest revision, and the Rollout the same.
fn is_noted(view: &View, set: &Set) -> bool {
    let notes = &view.rollout.metadata.annotations;
    let older = view.others().filter_map(|set| set.info.revision()).max().unwrap_or_default().max(0);
    let is_copied = |(key, text): (&String, &String)| !revision::is_copied(key) || set.info.note(key) == text;
    set.info.revision().is_some_and(|number| number > older)
        && notes.get(annotation::REVISION).is_some_and(|text| text == set.info.note(annotation::REVISION))
        && notes.iter().all(is_copied)
}

fn others_are_gone(view: &View) -> bool {
    let limit = usize::try_from(view.rollout.spec.revision_history_limit.unwrap_or(10)).unwrap_or_default();
    let is_gone = |set: &Set| {
        let info = &set.info;
        [info.desired, info.current, info.ready, info.available] == [0; 4]
            && !info.has_scale_down_deadline()
            && !set.is_failing()
    };
    view.others().all(is_gone) && view.others().count() <= limit
}

fn services_lead_to(view: &View, set: &Set) -> bool {
    let strategy = &view.rollout.spec.strategy;
    let leads = |name: &str| view.services.get(name).is_some_and(|service| service.hash == set.info.hash);
    let is_ours = |name: &str| leads(name) && view.services.get(name).is_some_and(|service| service.managed);
    match (&strategy.blue_green, &strategy.canary) {
        (Some(strategy), _) => {
            let preview = strategy.preview_service.as_str();
            is_ours(&strategy.active_service) && (preview.is_empty() || is_ours(preview))
        }
        (None, Some(canary)) => {
            [canary.stable_service.as_str(), &canary.canary_service].iter().all(|name| name.is_empty() || leads(name))
        }
        (None, None) => false,
    }
}

fn status_says_so(view: &View, set: &Set) -> bool {
    let (status, hash, size) = (&view.rollout.status, set.info.hash.as_str(), limits::replicas(&view.rollout));
    let is_over = status.duration.as_ref().is_none_or(|duration| duration.finished_at.is_some());
    let is_there = |part: &str| view.object.at(&["status", part]).is_some_and(|part| matches!(part, Value::Map(_)));
    !hash.is_empty()
        && status.current_pod_hash == hash
        && status.stable_rs == hash
        && [status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas] == [size; 4]
        && status.hpa_replicas == size
        && status.phase == phase::HEALTHY
        && status.message.is_empty()
        && status.workload_observed_generation.is_empty()
        && prints_as(&status.observed_generation, view.rollout.metadata.generation)
        && is_over
        && view.object.at(&["status", "promoteFull"]).is_none()
        && is_there("canary")
        && is_there("blueGreen")
        && strategy_says_so(view, set, status)
        && conditions_say_so(&status.conditions, view.conditions)
}

fn strategy_says_so(view: &View, set: &Set, status: &RolloutStatus) -> bool {
    let (hash, blue_green) = (set.info.hash.as_str(), &status.blue_green);
    if blue_green.scale_up_preview_check_point {
        return false;
    }
    match (&view.rollout.spec.strategy.blue_green, &view.rollout.spec.strategy.canary) {
        (Some(strategy), _) => {
            let preview = if strategy.preview_service.is_empty() { "" } else { hash };
            blue_green.active_selector == hash
                && blue_green.preview_selector == preview
                && status.selector == set.selector.as_str()
                && status.current_step_index.is_none()
                && status.current_step_hash.is_empty()
                && status.canary.stable_ping_pong.is_empty()
                && status.canary.step_plugin_statuses.is_empty()
        }
        (None, Some(canary)) => {
            let steps = i32::try_from(canary.steps.len()).ok().filter(|steps| *steps > 0);
            blue_green.active_selector.is_empty()
                && blue_green.preview_selector.is_empty()
                && status.selector == view.selector.as_str()
                && status.current_step_index == steps
                && status.current_step_hash == view.step_hash.as_str()
        }
        (None, None) => false,
    }
}

/// Whether conditions say that it is available, done and healthy, and nothing else.
fn conditions_say_so(conditions: &[RolloutCondition], which: Conditions) -> bool {
    let mut said = 0;
    for condition in conditions {
        let wanted = match condition.r#type.as_str() {
            condition::AVAILABLE => reason::AVAILABLE,
            condition::PROGRESSING => reason::NEW_REPLICA_SET_AVAILABLE,
            condition::HEALTHY => reason::ROLLOUT_HEALTHY,
            condition::COMPLETED => reason::ROLLOUT_COMPLETED,
            condition::READY if which == Conditions::Kstatus && condition.message.is_empty() => phase::HEALTHY,
            condition::READY | condition::RECONCILING | condition::STALLED => return false,
            condition::INVALID_SPEC | condition::REPLICA_FAILURE => return false,
            condition::PAUSED if condition.status == Truth::True.as_str() => return false,
            _ if [reason::ROLLOUT_ABORTED, reason::TIMED_OUT].contains(&condition.reason.as_str()) => return false,
            _ => continue,
        };
        if condition.reason != wanted || condition.status != Truth::True.as_str() {
            return false;
        }
        said += 1;
    }
    // One of each: who has two of a kind may lack another.
    use condition::{AVAILABLE, COMPLETED, HEALTHY, PROGRESSING, READY};
    let wanted: &[&str] = match which {
        Conditions::Kstatus => &[AVAILABLE, PROGRESSING, HEALTHY, COMPLETED, READY],
        Conditions::Argo => &[AVAILABLE, PROGRESSING, HEALTHY, COMPLETED],
    };
    said == wanted.len() && wanted.iter().all(|r#type| conditions.iter().any(|condition| condition.r#type == *r#type))
}

/// Whether a value prints as this text; the text is not made to find out.
fn prints_as(text: &str, value: impl fmt::Display) -> bool {
    struct Rest<'a>(&'a str);
    impl Write for Rest<'_> {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    let mut rest = Rest(text);
    write!(rest, "{value}").is_ok() && rest.0.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_a_value_prints() {
        assert!(prints_as("12", 12) && prints_as("", "") && prints_as("-3", -3));
        assert!(!prints_as("12", 1) && !prints_as("1", 12) && !prints_as("012", 12) && !prints_as("", 0));
    }
}
