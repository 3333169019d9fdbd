//! Telling commits: performs what a forge's leaf builds.
//!
//! Never decides when or what: the reporter does. Whatever happens becomes an outcome; nothing here can fail a rollout.

use jiff::Timestamp;

use super::{
    git::{Access, Network},
    http::Http,
};
use crate::{
    forge::{self, Credential, Outcome, Place, Post, reporter::Work},
    model::secret::Secret,
};

/// Tells a commit, and what came of it.
pub async fn tell(http: &Http, place: &Place, credential: &Credential, work: &Work, now: Timestamp) -> Outcome {
    let post = Post { sha: &work.sha, context: &work.context, status: &work.status, earlier: work.earlier.as_deref() };
    let request = match forge::request(place, credential, &post) {
        Ok(request) => request,
        Err(why) => return Outcome::GiveUp(why),
    };
    match http.send(request).await {
        Ok(answer) => forge::outcome(place, work.status.state, &answer, now),
        Err(error) => Outcome::Retry(None, error.to_string()),
    }
}

/// The credential of a GitHub App at its API: a token that lives an hour.
pub async fn app_credential(
    http: &Http,
    network: &Network,
    place: &Place,
    access: &Access,
    now: Timestamp,
) -> Option<Result<Credential, String>> {
    let app = access.app()?;
    let token: Result<Secret, String> = network.tokens().get(http, &place.api, app, now).await;
    Some(token.map(|token| Credential { username: None, token }))
}
