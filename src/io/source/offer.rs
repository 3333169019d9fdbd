//! Offers a revert of a commit that failed, on a branch of its own: in the repository on this machine, or on its host.
//!
//! An offer that cannot be made never holds a sync up. Never touches the branch that is followed, and is never made for a
//! verdict that was not checked.

use jiff::SignedDuration;

use super::{
    fetch::{self, Fetching},
    pass::State,
};
use crate::{
    io::git::{self, FetchLimits, Revert, Store},
    model::remote::Remote,
    sync::Offer,
};

/// How long to wait after a push that did not work.
const RETRY_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// The branch on which a revert of a commit is offered, if it is known to be.
pub fn offered(state: &State, commit: &str) -> Option<String> {
    let (_, _, branch) = state.offered.as_ref().filter(|(of, _, _)| of == commit)?;
    branch.clone()
}

/// Offers a revert; answers with the branch, once there is one.
pub async fn offer(state: &mut State, of: Fetching<'_>, offer: &Offer) -> Option<String> {
    let now = of.settings.clock.now();
    if let Some((commit, at, branch)) = &state.offered
        && *commit == offer.from
        && (branch.is_some() || now.duration_since(*at) < RETRY_AFTER)
    {
        return branch.clone();
    }
    let (_, store) = state.store.clone()?;
    let branch = git::branch(&offer.from);
    let made = make(of, &store, offer, &branch).await;
    let branch = match made {
        Ok(true) => Some(branch),
        Ok(false) => None,
        Err(error) => {
            tracing::warn!(source = %of.subject.place, commit = %offer.from, %error, "a revert was not offered");
            None
        }
    };
    state.offered = Some((offer.from.clone(), now, branch.clone()));
    branch
}

/// Makes the branch; false if there is nothing to take back.
async fn make(source: Fetching<'_>, store: &Store, offer: &Offer, branch: &str) -> Result<bool, git::Error> {
    let Fetching { subject, spec, settings, shared, .. } = source;
    let (own, path, of) = (store.clone(), spec.path.clone(), offer.clone());
    let made = fetch::blocking(move || {
        own.revert(&Revert { from: &of.from, to: &of.to, path: &path, why: &of.why, at: of.at })
    });
    let Some(commit) = made.await? else { return Ok(false) };
    if fetch::folder_of(subject, spec, settings).is_some() {
        let (own, branch) = (store.clone(), branch.to_owned());
        fetch::blocking(move || own.make_branch(&branch, &commit)).await?;
        return Ok(true);
    }
    let remote = Remote::parse(&spec.url)
        .map_err(|reason| git::Error::Address { url: spec.url.clone(), reason: reason.to_owned() })?;
    let Some(network) = &settings.network else { return Ok(false) };
    let access = fetch::access(subject, spec, shared, &remote).await?;
    let reference = format!("refs/heads/{branch}");
    let _away = shared.errands.leave();
    let _place = shared.errands.turn(&subject.place.namespace).await;
    git::push(store, &remote, &reference, &commit, &access, network, &FetchLimits::default()).await?;
    Ok(true)
}
