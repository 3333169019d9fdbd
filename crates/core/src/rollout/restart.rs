//! Replacing pods because a person asked for a restart.
//!
//! As many at once as may be missing, at least one; evicted, so that disruption budgets are respected. Never while that
//! would leave fewer pods available than the Rollout promises.

use jiff::{SignedDuration, Timestamp};

use super::{pass::Pass, view::Set};
use crate::{
    api::{Rollout, Time},
    kubernetes::{
        object,
        value::{Text, Value},
    },
    model::{codec, limits},
};

/// How soon to look again whether more pods can be replaced: a pod that comes as fast as another goes changes no count.
const AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// What a restart did in this pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Restart {
    /// Nothing.
    Idle,
    /// Pods are on their way out, and counts no longer say how many are available.
    Evicted,
}

/// Whether a restart is due: asked for, the moment has passed, and not yet carried out.
pub fn is_due(rollout: &Rollout, now: Timestamp) -> bool {
    codec::decode(&rollout.status).restart(&rollout.spec).is_some_and(|at| now > *at)
}

impl<'v> Pass<'v> {
    /// Evicts pods that are older than the restart, as many as can be spared.
    pub(super) fn restart(&mut self) -> Restart {
        let view = self.view;
        let rollout = &view.rollout;
        let Some(at) = rollout.spec.restart_at else { return Restart::Idle };
        if !is_due(rollout, view.now) {
            if Timestamp::from(at) >= view.now {
                // Strictly after the moment.
                self.wake_at(Timestamp::from(at) + SignedDuration::from_millis(1));
            }
            return Restart::Idle;
        }
        let pods = self.pods_by_priority();
        let available = pods.iter().filter(|pod| is_available(pod, rollout.spec.min_ready_seconds, view.now)).count();
        let total: i64 = view.sets.iter().map(|set| i64::from(set.info.desired)).sum();
        let at_once = i64::from(limits::max_unavailable(rollout).max(1));
        let least = i64::from(self.replicas()).max(total) - at_once;
        let mut spare = i64::try_from(available).unwrap_or(i64::MAX) - least;
        let old: Vec<&&Value> = pods.iter().filter(|pod| created(pod).is_none_or(|created| created < at)).collect();
        let mut evicted = Vec::new();
        for pod in &old {
            let is_leaving = pod.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
            if spare > 0 && !is_leaving {
                evicted.push(pod.at(&["metadata", "name"]).and_then(Value::as_text).cloned().unwrap_or_default());
                spare -= 1;
            }
        }
        if old.len() > evicted.len() {
            self.wake_at(view.now.saturating_add(AGAIN).unwrap_or(Timestamp::MAX));
        } else {
            self.memory.restarted_at = Some(at);
        }
        self.because(format!(
            "{} of {} pods are older than the restart; {} go now",
            old.len(),
            pods.len(),
            evicted.len()
        ));
        self.evict(evicted)
    }

    fn evict(&mut self, pods: Vec<Text>) -> Restart {
        let outcome = if pods.is_empty() { Restart::Idle } else { Restart::Evicted };
        self.target.evictions = pods;
        outcome
    }

    /// The Rollout's pods: those of the stable version, then of the new one, then the others by the age of theirs.
    fn pods_by_priority(&self) -> Vec<&'v Value> {
        let view = self.view;
        let sets = view.stable_set().into_iter().chain(view.new_set().filter(|_| view.new != view.stable));
        let order: Vec<&Set> = sets.chain(view.others()).collect();
        let uid = |set: &&Set| set.object.str_at(&["metadata", "uid"]).unwrap_or_default().to_owned();
        let of = |owner: String| {
            view.pods.iter().filter(move |pod| object::controller(pod).as_deref() == Some(owner.as_str()))
        };
        order.iter().map(uid).flat_map(of).collect()
    }
}

fn created(pod: &Value) -> Option<Time> {
    Time::parse(pod.str_at(&["metadata", "creationTimestamp"])?).ok()
}

/// Whether a pod serves: ready for long enough, and not leaving.
fn is_available(pod: &Value, min_ready_seconds: i32, now: Timestamp) -> bool {
    if pod.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null()) {
        return false;
    }
    let conditions = pod.list_at(&["status", "conditions"]);
    let ready = conditions.iter().find(|condition| condition.str_at(&["type"]) == Some("Ready"));
    let Some(ready) = ready.filter(|ready| ready.str_at(&["status"]) == Some("True")) else { return false };
    let since = ready.str_at(&["lastTransitionTime"]).and_then(|time| Time::parse(time).ok());
    let wait = SignedDuration::from_secs(min_ready_seconds.into());
    min_ready_seconds == 0 || since.is_some_and(|since| Timestamp::from(since) + wait < now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_due_after_its_moment_until_it_is_done() {
        let moment = |second: i64| Timestamp::from_second(second).unwrap();
        let check = |asked: Option<i64>, done: Option<i64>, now: i64| {
            let mut rollout = Rollout::default();
            rollout.spec.restart_at = asked.map(|second| moment(second).into());
            rollout.status.restarted_at = done.map(|second| moment(second).into());
            is_due(&rollout, moment(now))
        };
        assert!(check(Some(5), None, 6) && check(Some(5), Some(4), 6));
        assert!(!check(None, None, 6) && !check(None, Some(5), 6));
        assert!(!check(Some(5), None, 5) && !check(Some(5), None, 4) && !check(Some(5), Some(5), 6));
    }
}
