//! Whether pods are to be replaced because a person asked for a restart.
//!
//! Never says which pods, or how many at a time.

use jiff::Timestamp;

use crate::api::Rollout;

/// Whether a restart is due: asked for, the moment has passed, and not yet carried out.
pub fn is_due(rollout: &Rollout, now: Timestamp) -> bool {
    let asked = rollout.spec.restart_at;
    asked != rollout.status.restarted_at && asked.is_some_and(|at| now > *at)
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
