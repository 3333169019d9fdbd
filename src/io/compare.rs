//! One pass over an Experiment on a cluster: act, record, announce, in this order.
//!
//! Never decides: what is wanted is for [`crate::experiment`] to say. An error ends the pass: the next one starts from
//! what is.

use jiff::Timestamp;

use super::{
    api::{Api, Error},
    pass::{announce, announce_about, send},
};
use crate::{
    api::constants::kind,
    engine::{compare, write::Written},
    experiment::{Seen, Verdict, View, decide, diff, refused},
    kubernetes::value::Value,
};

/// Decides and carries it out; answers when to look again. `rollout` is the one whose step this is.
pub async fn pass(
    api: &Api,
    seen: &Seen,
    rollout: Option<&Value>,
    written: &mut Vec<Written>,
) -> Result<Option<Timestamp>, Error> {
    let view = View::of(seen);
    let verdict = decide(&view);
    let actions = diff(&view, &verdict);
    tracing::info!(
        experiment = %view.experiment.metadata.name,
        namespace = %view.experiment.metadata.namespace,
        actions = actions.len(),
        "decided"
    );
    for action in &actions {
        let write = compare::write(&view, action);
        match send(api, &write).await {
            Err(error) if error.code().is_some_and(|code| write.is_refused(code)) => {
                let verdict = refused(&view, action, error.words());
                return conclude(api, &view, verdict, rollout, written).await;
            }
            done => written.extend(done?),
        }
    }
    conclude(api, &view, verdict, rollout, written).await
}

/// Records and announces.
async fn conclude(
    api: &Api,
    view: &View,
    verdict: Verdict,
    rollout: Option<&Value>,
    written: &mut Vec<Written>,
) -> Result<Option<Timestamp>, Error> {
    if let Some(write) = verdict.status.as_ref().and_then(|status| compare::record(view, status)) {
        written.extend(send(api, &write).await?);
    }
    for event in &verdict.events {
        announce_about(api, kind::EXPERIMENT, &view.object, event, view.now).await;
    }
    for event in &verdict.for_rollout {
        if let Some(rollout) = rollout {
            announce(api, rollout, event, view.now).await;
        }
    }
    Ok(verdict.wake)
}
