//! Gitea and Forgejo: statuses that are only ever added; the latest of a context counts.

use bytes::Bytes;
use http::{Method, Request};
use serde::Serialize;

use super::{Credential, Place, Post, State, place::json, text::cut};

#[derive(Serialize)]
struct Body<'a> {
    state: &'static str,
    description: String,
    context: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_url: Option<&'a str>,
}

/// A status.
pub fn request(place: &Place, credential: &Credential, post: &Post<'_>) -> Result<Request<Bytes>, String> {
    let state = match post.status.state {
        State::Pending => "pending",
        State::Success => "success",
        State::Failure => "failure",
        State::Error => "error",
        State::Superseded => "warning",
    };
    let description = cut(&post.status.description, 255);
    let body = Body { state, description, context: post.context, target_url: post.status.target.as_deref() };
    let url = format!("{}/repos/{}/{}/statuses/{}", place.api, place.part(0), place.part(1), post.sha);
    json(Method::POST, url, ("authorization", format!("token {}", credential.token.expose())), &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        forge::{Forge, Status},
        model::secret::Secret,
    };

    #[test]
    fn a_status_is_as_the_host_wants_it() {
        let path = ["a", "b"].map(str::to_owned).to_vec();
        let place = Place { forge: Forge::Gitea, api: "https://git.corp/api/v1".into(), path, page: String::new() };
        let credential = Credential { username: None, token: Secret::new("canary-secret") };
        let states = [
            (State::Pending, "pending"),
            (State::Success, "success"),
            (State::Failure, "failure"),
            (State::Error, "error"),
            (State::Superseded, "warning"),
        ];
        for (state, word) in states {
            let status = Status { state, description: "d".into(), target: None };
            let post = Post { sha: "abc", context: "c", status: &status, earlier: None };
            let request = request(&place, &credential, &post).unwrap();
            assert_eq!(request.uri(), "https://git.corp/api/v1/repos/a/b/statuses/abc");
            assert_eq!(request.headers()["authorization"], "token canary-secret");
            assert!(!format!("{request:?}").contains("canary"));
            assert_eq!(request.body(), format!(r#"{{"state":"{word}","description":"d","context":"c"}}"#).as_bytes());
        }
    }
}
