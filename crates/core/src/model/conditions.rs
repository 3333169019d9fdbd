//! The conditions of a Rollout: how one replaces another, and what they are about.
//!
//! A condition that says the same again is not written again, so that a watch stays quiet and `lastUpdateTime` keeps its
//! meaning: the last time there was something to say. Never makes up a time: `now` is given.

use jiff::{SignedDuration, Timestamp};

use super::health::replicas;
use crate::{
    api::{
        Rollout, RolloutCondition, RolloutStatus, Time,
        constants::{condition, reason},
    },
    kubernetes::value::Text,
};

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Truth::True => "True",
            Truth::False => "False",
            Truth::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Truth {
        if holds { Truth::True } else { Truth::False }
    }
}

/// A condition that begins to hold now.
pub fn new(r#type: &str, holds: Truth, reason: &str, message: impl Into<Text>, now: Time) -> RolloutCondition {
    RolloutCondition {
        r#type: r#type.into(),
        status: holds.as_str().into(),
        last_update_time: now,
        last_transition_time: now,
        reason: reason.into(),
        message: message.into(),
    }
}

/// The first condition of a type.
pub fn find<'a>(conditions: &'a [RolloutCondition], r#type: &str) -> Option<&'a RolloutCondition> {
    conditions.iter().find(|condition| condition.r#type == r#type)
}

/// What setting a condition did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// One of the same status and reason was there, and stays with its message and times.
    Same,
    /// It was put at the end of the list, in place of all of its type.
    Changed,
}

/// Says that a condition begins to hold now, if that is anything new.
pub fn say(
    conditions: &mut Vec<RolloutCondition>,
    r#type: &str,
    holds: Truth,
    reason: &str,
    message: impl Into<Text>,
    now: Time,
) -> Set {
    if is_said(conditions, r#type, holds.as_str(), reason) {
        return Set::Same;
    }
    set(conditions, new(r#type, holds, reason, message, now))
}

fn is_said(conditions: &[RolloutCondition], r#type: &str, status: &str, reason: &str) -> bool {
    find(conditions, r#type).is_some_and(|old| old.status == status && old.reason == reason)
}

/// Sets a condition, if it says anything new.
pub fn set(conditions: &mut Vec<RolloutCondition>, mut condition: RolloutCondition) -> Set {
    if is_said(conditions, &condition.r#type, &condition.status, &condition.reason) {
        return Set::Same;
    }
    if let Some(old) = find(conditions, &condition.r#type).filter(|old| old.status == condition.status) {
        condition.last_transition_time = old.last_transition_time;
    }
    remove(conditions, &condition.r#type);
    conditions.push(condition);
    Set::Changed
}

/// Removes every condition of a type.
pub fn remove(conditions: &mut Vec<RolloutCondition>, r#type: &str) {
    conditions.retain(|condition| condition.r#type != r#type);
}

/// Whether `next` is progress over the status that the Rollout has.
pub fn is_progress(rollout: &Rollout, next: &RolloutStatus) -> bool {
    let (old, strategy) = (&rollout.status, &rollout.spec.strategy);
    let switched = strategy.blue_green.is_some()
        && (old.blue_green.active_selector != next.blue_green.active_selector
            || old.blue_green.preview_selector != next.blue_green.preview_selector);
    let stepped = match (old.current_step_index, next.current_step_index) {
        (Some(old), Some(next)) => old != next,
        (None, _) | (_, None) => false,
    };
    let moved = old.stable_rs != next.stable_rs || stepped || old.current_step_hash != next.current_step_hash;
    // A canary's answer stands in for that of blue-green where a broken specification has both.
    let by_strategy = if strategy.canary.is_some() { moved } else { switched };
    let outdated = |status: &RolloutStatus| i64::from(status.replicas) - i64::from(status.updated_replicas);
    next.updated_replicas != old.updated_replicas
        || outdated(next) < outdated(old)
        || next.ready_replicas > old.ready_replicas
        || next.available_replicas > old.available_replicas
        || by_strategy
}

/// Whether all is as wanted once `next` is the status.
pub fn is_healthy(rollout: &Rollout, next: &RolloutStatus) -> bool {
    let wanted = replicas(&rollout.spec);
    let switched = rollout.spec.strategy.blue_green.as_ref().is_none_or(|strategy| {
        let leads_there = |selector: &str| selector == next.current_pod_hash;
        leads_there(&next.blue_green.active_selector)
            && (strategy.preview_service.is_empty() || leads_there(&next.blue_green.preview_selector))
    });
    let moved = rollout.spec.strategy.canary.as_ref().is_none_or(|strategy| {
        let last = strategy.steps.len();
        let at_the_end = |index: i32| usize::try_from(index) == Ok(last);
        (last == 0 || next.current_step_index.is_none_or(at_the_end)) && is_completed(next) && next.replicas == wanted
    });
    let by_strategy = if rollout.spec.strategy.canary.is_some() { moved } else { switched };
    next.updated_replicas == wanted
        && next.available_replicas == wanted
        && rollout.status.observed_generation == rollout.metadata.generation.to_string()
        && by_strategy
}

/// Whether the newest version is the stable one.
pub fn is_completed(status: &RolloutStatus) -> bool {
    !status.stable_rs.is_empty() && status.stable_rs == status.current_pod_hash
}

/// Whether an update has gone without progress for too long. Once it has, only progress ends it.
pub fn is_timed_out(rollout: &Rollout, next: &RolloutStatus, now: Timestamp) -> bool {
    let Some(progressing) = find(&next.conditions, condition::PROGRESSING) else { return false };
    match progressing.reason.as_str() {
        reason::ROLLOUT_ABORTED | reason::ROLLOUT_PAUSED => false,
        reason::TIMED_OUT => true,
        _ => {
            let allowed = SignedDuration::from_secs(rollout.spec.progress_deadline_seconds.unwrap_or(600).into());
            progressing.last_update_time.saturating_add(allowed).is_ok_and(|deadline| deadline < now)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_replaced_only_by_news() {
        let (then, now) = (Time::parse("2024-01-01T00:00:00Z").unwrap(), Time::parse("2024-01-02T00:00:00Z").unwrap());
        let first = new(condition::PROGRESSING, Truth::True, reason::NEW_REPLICA_SET, "one", then);
        let mut conditions = vec![first.clone(), new(condition::PAUSED, Truth::False, "x", "", then)];
        let same = new(condition::PROGRESSING, Truth::True, reason::NEW_REPLICA_SET, "two", now);
        assert_eq!(set(&mut conditions, same), Set::Same);
        assert_eq!(conditions[0], first);
        let other = new(condition::PROGRESSING, Truth::True, reason::REPLICA_SET_UPDATED, "two", now);
        assert_eq!(set(&mut conditions, other), Set::Changed);
        assert_eq!((conditions[1].last_update_time, conditions[1].last_transition_time), (now, then));
        let turned = new(condition::PROGRESSING, Truth::False, reason::ROLLOUT_ABORTED, "", now);
        assert_eq!(set(&mut conditions, turned), Set::Changed);
        assert_eq!(conditions[1].last_transition_time, now);
        assert_eq!(conditions.len(), 2);
    }
}
