//! Azure DevOps: statuses by genre and name. A token it does not like is answered with a page to sign in.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use serde::Serialize;

use super::{Credential, Outcome, Place, Post, State, outcome::plain, place::json, text::cut};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    state: &'static str,
    description: String,
    context: Context<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_url: Option<&'a str>,
}

#[derive(Serialize)]
struct Context<'a> {
    genre: &'a str,
    name: &'a str,
}

/// A status.
pub fn request(place: &Place, credential: &Credential, post: &Post<'_>) -> Result<Request<Bytes>, String> {
    let state = match post.status.state {
        State::Pending => "pending",
        State::Success => "succeeded",
        State::Failure => "failed",
        State::Error => "error",
        State::Superseded => "notApplicable",
    };
    let (genre, name) = post.context.split_once('/').unwrap_or(("tidegate", post.context));
    let body = Body {
        state,
        description: cut(&post.status.description, 255),
        context: Context { genre, name },
        target_url: post.status.target.as_deref(),
    };
    let [org, project, repository] = [place.part(0), place.part(1), place.part(2)];
    let url = format!(
        "{}/{org}/{project}/_apis/git/repositories/{repository}/commits/{}/statuses?api-version=7.1",
        place.api, post.sha
    );
    json(Method::POST, url, ("authorization", credential.basic()), &body)
}

/// What an answer means.
pub fn outcome(answer: &Response<Bytes>, now: Timestamp) -> Outcome {
    match answer.status() {
        StatusCode::NON_AUTHORITATIVE_INFORMATION | StatusCode::FOUND => {
            Outcome::Forbidden("the host does not accept the token; it asks to sign in".to_owned())
        }
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
        let path = ["org", "web", "api"].map(str::to_owned).to_vec();
        let api = "https://dev.azure.com".to_owned();
        let place = Place { forge: Forge::AzureDevOps, api, path, page: String::new() };
        let credential = Credential { username: None, token: Secret::new("canary-secret") };
        let status = Status { state: State::Success, description: "d".into(), target: Some("https://t".into()) };
        let post = Post { sha: "abc", context: "tidegate/shop/web", status: &status, earlier: None };
        let request = request(&place, &credential, &post).unwrap();
        let path = "org/web/_apis/git/repositories/api/commits/abc/statuses?api-version=7.1";
        assert_eq!(request.uri().to_string(), format!("https://dev.azure.com/{path}"));
        assert_eq!(request.headers()["authorization"], "Basic OmNhbmFyeS1zZWNyZXQ=");
        let context = r#""context":{"genre":"tidegate","name":"shop/web"}"#;
        let expected = format!(r#"{{"state":"succeeded","description":"d",{context},"targetUrl":"https://t"}}"#);
        assert_eq!(std::str::from_utf8(request.body()).unwrap(), expected);
    }

    #[test]
    fn a_page_to_sign_in_is_a_refusal() {
        for code in [203, 302] {
            let answer = Response::builder().status(code).body(Bytes::from("<html>")).unwrap();
            assert!(matches!(outcome(&answer, Timestamp::UNIX_EPOCH), Outcome::Forbidden(_)));
        }
        let answer = Response::builder().status(201).body(Bytes::new()).unwrap();
        assert_eq!(outcome(&answer, Timestamp::UNIX_EPOCH), Outcome::Posted(None));
    }
}
