//! Whether pods are to be replaced because a person asked for a restart.

use jiff::Timestamp;

use crate::api::Rollout;

/// Whether a restart is due: asked for, the moment has passed, and not yet carried out.
pub fn is_due(rollout: &Rollout, now: Timestamp) -> bool {
    let asked = rollout.spec.restart_at;
    asked != rollout.status.restarted_at && asked.is_some_and(|at| now > *at)
}
