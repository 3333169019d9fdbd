//! Commit statuses and webhooks: one module per git host.
//!
//! A leaf is a pair: build a request, read its answer. Requests are performed elsewhere, by one client; when and how often
//! is [`reporter`]'s. What a webhook says is only ever a hint ([`webhook`]). Never sends a request itself, never waits.

pub mod azure;
pub mod bitbucket;
pub mod bitbucket_data_center;
pub mod comment;
pub mod gitea;
pub mod github;
pub mod gitlab;
pub mod notes;
pub mod oidc;
mod outcome;
mod place;
pub mod reporter;
pub mod text;
pub mod webhook;

use bytes::Bytes;
use http::{Request, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::{
    outcome::Outcome,
    place::{Credential, Forge, Place},
};

/// How far a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// On its way.
    Pending,
    /// Fully rolled out.
    Success,
    /// Aborted, degraded or refused.
    Failure,
    /// Could not be tried: it cannot be read, or is not accepted.
    Error,
    /// A later commit took its place before it was rolled out.
    Superseded,
}

impl State {
    /// Whether this is the last word.
    pub fn ends(self) -> bool {
        match self {
            State::Pending => false,
            State::Success | State::Failure | State::Error | State::Superseded => true,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Success => "success",
            State::Failure => "failure",
            State::Error => "error",
            State::Superseded => "superseded",
        }
    }
}

/// Whether a state may be said after another. What was rolled out stays so, and a commit that failed was not overtaken.
pub fn follows(before: State, after: State) -> bool {
    match (before, after) {
        (State::Success, State::Pending | State::Superseded) => false,
        (State::Failure | State::Error, State::Superseded) => false,
        (State::Success, State::Success | State::Failure | State::Error) => true,
        (State::Failure | State::Error, State::Pending | State::Success | State::Failure | State::Error) => true,
        (State::Pending | State::Superseded, _) => true,
    }
}

/// What a commit is told.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// How far it is.
    pub state: State,
    /// The same for people, in one line. Cut where a host wants it shorter.
    pub description: String,
    /// Where there is more to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// What is to be told to whom.
#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    /// The commit.
    pub sha: &'a str,
    /// What the status is called.
    pub context: &'a str,
    /// What it says.
    pub status: &'a Status,
    /// What the host called an earlier one of the same commit and context, if it has names for them.
    pub earlier: Option<&'a str>,
}

/// The request that tells a commit.
pub fn request(place: &Place, credential: &Credential, post: &Post<'_>) -> Result<Request<Bytes>, String> {
    match place.forge {
        Forge::GitHub => github::status(place, credential, post),
        Forge::GitHubChecks => github::check(place, credential, post),
        Forge::GitLab => gitlab::request(place, credential, post),
        Forge::Gitea => gitea::request(place, credential, post),
        Forge::Bitbucket => bitbucket::request(place, credential, post),
        Forge::BitbucketDataCenter => bitbucket_data_center::request(place, credential, post),
        Forge::AzureDevOps => azure::request(place, credential, post),
    }
}

/// What the answer means.
pub fn outcome(place: &Place, state: State, answer: &Response<Bytes>, now: Timestamp) -> Outcome {
    match place.forge {
        Forge::GitHub => github::outcome(answer, now),
        Forge::GitHubChecks => github::check_outcome(answer, now),
        Forge::GitLab => gitlab::outcome(state, answer, now),
        Forge::Gitea | Forge::Bitbucket | Forge::BitbucketDataCenter => outcome::plain(answer, now),
        Forge::AzureDevOps => azure::outcome(answer, now),
    }
}
