//! GitLab: external statuses, which are a state machine. A state that is said twice is refused, so progress cannot be told
//! anew; the first word creates an external pipeline.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use serde::Serialize;

use super::{
    Credential, Outcome, Place, Post, State,
    outcome::{plain, reset, said},
    place::json,
    text::{cut, key},
};

/// The longest name, description and link.
const LONGEST: usize = 255;

#[derive(Serialize)]
struct Body<'a> {
    state: &'static str,
    name: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_url: Option<&'a str>,
}

fn word(state: State) -> &'static str {
    match state {
        State::Pending => "running",
        State::Success => "success",
        State::Failure | State::Error => "failed",
        State::Superseded => "canceled",
    }
}

/// A status.
pub fn request(place: &Place, credential: &Credential, post: &Post<'_>) -> Result<Request<Bytes>, String> {
    let body = Body {
        state: word(post.status.state),
        name: key(post.context, LONGEST),
        description: cut(&post.status.description, LONGEST),
        target_url: post.status.target.as_deref().filter(|target| target.len() <= LONGEST),
    };
    let url = format!("{}/projects/{}/statuses/{}", place.api, place.path.join("%2F"), post.sha);
    json(Method::POST, url, ("private-token", credential.token.expose().to_owned()), &body)
}

/// What an answer means. `Cannot transition status via :run from :running` means that it stands there already.
pub fn outcome(state: State, answer: &Response<Bytes>, now: Timestamp) -> Outcome {
    match answer.status() {
        StatusCode::BAD_REQUEST => {
            let words = said(answer);
            let from = words
                .split_once("from :")
                .map(|(_, from)| from.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '_').collect::<String>());
            match from {
                Some(from) if words.contains("annot transition") && from == word(state) => Outcome::Posted(None),
                // Waiting to be run is on its way, too.
                Some(from) if from == "pending" && state == State::Pending => Outcome::Posted(None),
                Some(_) | None => plain(answer, now),
            }
        }
        StatusCode::TOO_MANY_REQUESTS => match (plain(answer, now), reset(answer.headers(), "ratelimit-reset", now)) {
            (Outcome::Retry(_, why), Some(at)) => Outcome::Retry(Some(at), why),
            (other, _) => other,
        },
        _ => plain(answer, now),
    }
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
        let path = ["a", "b", "c"].map(str::to_owned).to_vec();
        let place = Place { forge: Forge::GitLab, api: "https://gitlab.com/api/v4".into(), path, page: String::new() };
        let credential = Credential { username: None, token: Secret::new("canary-secret") };
        let status = Status { state: State::Superseded, description: "x".repeat(300), target: Some("u".repeat(256)) };
        let post = Post { sha: "abc", context: "tidegate/web", status: &status, earlier: None };
        let request = request(&place, &credential, &post).unwrap();
        assert_eq!(request.uri(), "https://gitlab.com/api/v4/projects/a%2Fb%2Fc/statuses/abc");
        assert_eq!(request.headers()["private-token"], "canary-secret");
        assert!(!format!("{request:?}").contains("canary"));
        let body = std::str::from_utf8(request.body()).unwrap();
        assert!(body.starts_with(r#"{"state":"canceled","name":"tidegate/web","description":"xxx"#), "{body}");
        assert_eq!(body.matches('x').count(), 254);
        assert!(!body.contains("target_url"), "a link that is too long is left out");
    }

    #[test]
    fn a_state_that_stands_already_is_told() {
        #[track_caller]
        fn check(state: State, code: u16, message: &str, expected: Outcome) {
            let body = format!(r#"{{"message":"{message}"}}"#);
            let answer =
                Response::builder().status(code).header("ratelimit-reset", "1500").body(Bytes::from(body)).unwrap();
            assert_eq!(outcome(state, &answer, Timestamp::from_second(1_000).unwrap()), expected);
        }
        let running =
            "Cannot transition status via :run from :running (Reason(s): Status cannot transition via \\\"run\\\")";
        check(State::Pending, 400, running, Outcome::Posted(None));
        check(State::Pending, 400, "Cannot transition status via :enqueue from :pending", Outcome::Posted(None));
        check(State::Success, 400, "Cannot transition status via :success from :success", Outcome::Posted(None));
        let other = "Cannot transition status via :drop from :success";
        check(State::Failure, 400, other, Outcome::GiveUp(format!("the host answers 400 Bad Request, {other}")));
        check(State::Success, 201, "", Outcome::Posted(None));
        let at = Timestamp::from_second(1_500).unwrap();
        check(State::Success, 429, "", Outcome::Retry(Some(at), "the host wants fewer requests (429)".into()));
        let refused = "the token may not set statuses (403, insufficient_scope)";
        check(State::Success, 403, "insufficient_scope", Outcome::Forbidden(refused.into()));
    }
}
