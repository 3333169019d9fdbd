//! GitHub, and GitHub Enterprise Server: commit statuses, and check runs for Apps.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header::HeaderValue};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    Credential, Outcome, Place, Post, State,
    outcome::{plain, reset, retry_after, said},
    place::json,
    text::cut,
};
use crate::model::remote::{Remote, Scheme};

/// The longest description; one more character is refused.
const DESCRIPTION: usize = 140;

/// Where the API of a repository's host is.
pub fn api(remote: &Remote) -> String {
    let port =
        remote.port.filter(|_| remote.scheme == Scheme::Https).map(|port| format!(":{port}")).unwrap_or_default();
    match remote.host.as_str() {
        "github.com" | "ssh.github.com" => "https://api.github.com".to_owned(),
        host if host.ends_with(".ghe.com") => format!("https://api.{host}{port}"),
        host => format!("https://{host}{port}/api/v3"),
    }
}

#[derive(Serialize)]
struct StatusBody<'a> {
    state: &'a str,
    description: String,
    context: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_url: Option<&'a str>,
}

/// A status.
pub fn status(place: &Place, credential: &Credential, post: &Post<'_>) -> Result<Request<Bytes>, String> {
    let state = match post.status.state {
        State::Pending => "pending",
        State::Success => "success",
        State::Failure => "failure",
        // There is no word for a commit that was overtaken; an error asks nobody to mend the commit.
        State::Error | State::Superseded => "error",
    };
    let body = StatusBody {
        state,
        description: cut(&post.status.description, DESCRIPTION),
        context: cut(post.context, 255),
        target_url: post.status.target.as_deref(),
    };
    let url = format!("{}/repos/{}/{}/statuses/{}", place.api, place.part(0), place.part(1), post.sha);
    versioned(json(Method::POST, url, ("authorization", credential.bearer()), &body)?)
}

#[derive(Serialize)]
struct CheckBody<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    head_sha: Option<&'a str>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    conclusion: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details_url: Option<&'a str>,
    output: Output,
}

#[derive(Serialize)]
struct Output {
    title: String,
    summary: String,
}

/// A check run: made once for a commit and context, then changed.
pub fn check(place: &Place, credential: &Credential, post: &Post<'_>) -> Result<Request<Bytes>, String> {
    let conclusion = match post.status.state {
        State::Pending => None,
        State::Success => Some("success"),
        State::Failure | State::Error => Some("failure"),
        State::Superseded => Some("cancelled"),
    };
    let body = CheckBody {
        name: post.context,
        head_sha: post.earlier.is_none().then_some(post.sha),
        status: if conclusion.is_some() { "completed" } else { "in_progress" },
        conclusion,
        details_url: post.status.target.as_deref(),
        output: Output { title: cut(&post.status.description, 255), summary: cut(&post.status.description, 65_535) },
    };
    let runs = format!("{}/repos/{}/{}/check-runs", place.api, place.part(0), place.part(1));
    let proof = ("authorization", credential.bearer());
    match post.earlier {
        Some(id) => versioned(json(Method::PATCH, format!("{runs}/{id}"), proof, &body)?),
        None => versioned(json(Method::POST, runs, proof, &body)?),
    }
}

fn versioned(mut request: Request<Bytes>) -> Result<Request<Bytes>, String> {
    let headers = request.headers_mut();
    headers.insert("accept", HeaderValue::from_static("application/vnd.github+json"));
    headers.insert("x-github-api-version", HeaderValue::from_static("2022-11-28"));
    Ok(request)
}

/// What an answer means. 403 has two meanings: too many requests, or not allowed.
pub fn outcome(answer: &Response<Bytes>, now: Timestamp) -> Outcome {
    let headers = answer.headers();
    let spent = headers.get("x-ratelimit-remaining").is_some_and(|left| left == "0");
    match answer.status() {
        StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => {
            let secondary = said(answer).contains("rate limit");
            let reset = if spent { reset(headers, "x-ratelimit-reset", now) } else { None };
            match retry_after(headers, now).or(reset) {
                Some(at) => Outcome::Retry(Some(at), "the host wants fewer requests".to_owned()),
                None if secondary || answer.status() == StatusCode::TOO_MANY_REQUESTS => {
                    let at = now + SignedDuration::from_mins(1);
                    Outcome::Retry(Some(at), "the host wants fewer requests".to_owned())
                }
                None => plain(answer, now),
            }
        }
        _ => plain(answer, now),
    }
}

#[derive(Deserialize)]
struct Made {
    id: u64,
}

/// What an answer about a check run means; it has a name.
pub fn check_outcome(answer: &Response<Bytes>, now: Timestamp) -> Outcome {
    match outcome(answer, now) {
        Outcome::Posted(_) => {
            let made: Option<Made> = serde_json::from_slice(answer.body()).ok();
            Outcome::Posted(made.map(|made| made.id.to_string()))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::{Forge, Status};
    use crate::model::secret::Secret;

    fn place(forge: Forge) -> Place {
        let path = vec!["team".to_owned(), "web".to_owned()];
        Place { forge, api: "https://api.github.com".into(), path, page: String::new() }
    }

    fn credential() -> Credential {
        Credential { username: None, token: Secret::new("canary-secret") }
    }

    fn post(state: State, description: &str, earlier: Option<&str>) -> Request<Bytes> {
        let status = Status { state, description: description.into(), target: Some("https://t/x".into()) };
        let post = Post { sha: "abc", context: "tidegate/web", status: &status, earlier };
        let forge = if earlier.is_some() { Forge::GitHubChecks } else { Forge::GitHub };
        crate::forge::request(&place(forge), &credential(), &post).unwrap()
    }

    #[test]
    fn a_status_is_as_the_host_wants_it() {
        let request = post(State::Pending, "step 3/7", None);
        assert_eq!(request.method(), Method::POST);
        assert_eq!(request.uri(), "https://api.github.com/repos/team/web/statuses/abc");
        assert_eq!(request.headers()["accept"], "application/vnd.github+json");
        assert_eq!(request.headers()["authorization"], "Bearer canary-secret");
        assert_eq!(
            std::str::from_utf8(request.body()).unwrap(),
            r#"{"state":"pending","description":"step 3/7","context":"tidegate/web","target_url":"https://t/x"}"#
        );
        assert!(!format!("{request:?}").contains("canary"), "the token must not show");
        for (state, word) in [(State::Success, "success"), (State::Failure, "failure"), (State::Superseded, "error")] {
            assert!(
                std::str::from_utf8(post(state, "", None).body()).unwrap().contains(&format!(r#""state":"{word}""#))
            );
        }
        let long = post(State::Failure, &"é".repeat(200), None);
        let text = std::str::from_utf8(long.body()).unwrap();
        assert_eq!(text.matches('é').count(), 139);
    }

    #[test]
    fn a_check_run_is_made_once_and_then_changed() {
        let status = Status { state: State::Pending, description: "x".into(), target: None };
        let first = Post { sha: "abc", context: "c", status: &status, earlier: None };
        let first = check(&place(Forge::GitHubChecks), &credential(), &first).unwrap();
        assert_eq!(first.uri(), "https://api.github.com/repos/team/web/check-runs");
        let output = r#""output":{"title":"x","summary":"x"}"#;
        let expected = format!(r#"{{"name":"c","head_sha":"abc","status":"in_progress",{output}}}"#);
        assert_eq!(std::str::from_utf8(first.body()).unwrap(), expected);
        let second = post(State::Superseded, "x", Some("42"));
        assert_eq!((second.method(), second.uri().path()), (&Method::PATCH, "/repos/team/web/check-runs/42"));
        let body = std::str::from_utf8(second.body()).unwrap();
        assert!(body.contains(r#""status":"completed","conclusion":"cancelled""#), "{body}");
        assert!(!body.contains("head_sha"));
        let answer = Response::builder().status(201).body(Bytes::from(r#"{"id":42,"x":1}"#)).unwrap();
        assert_eq!(check_outcome(&answer, Timestamp::UNIX_EPOCH), Outcome::Posted(Some("42".into())));
    }

    #[test]
    fn a_refusal_is_told_from_a_limit() {
        #[track_caller]
        fn check(code: u16, headers: &[(&'static str, &str)], body: &str, expected: Outcome) {
            let now = Timestamp::from_second(1_000).unwrap();
            let mut answer = Response::builder().status(code);
            for (name, value) in headers {
                answer = answer.header(*name, *value);
            }
            let answer = answer.body(Bytes::copy_from_slice(body.as_bytes())).unwrap();
            assert_eq!(outcome(&answer, now), expected);
        }
        let later = |second: i64| {
            Outcome::Retry(Some(Timestamp::from_second(second).unwrap()), "the host wants fewer requests".into())
        };
        check(201, &[], "{}", Outcome::Posted(None));
        check(403, &[("retry-after", "30")], "", later(1_030));
        check(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1500")], "", later(1_500));
        check(
            403,
            &[("x-ratelimit-remaining", "9"), ("x-ratelimit-reset", "1500")],
            r#"{"message":"Resource not accessible"}"#,
            Outcome::Forbidden("the token may not set statuses (403, Resource not accessible)".into()),
        );
        check(403, &[], r#"{"message":"You have exceeded a secondary rate limit"}"#, later(1_060));
        check(429, &[], "", later(1_060));
        let full = r#"{"message":"Validation Failed","errors":["This SHA and context has reached the maximum number of statuses."]}"#;
        check(422, &[], full, Outcome::GiveUp("the host answers 422 Unprocessable Entity, Validation Failed".into()));
    }
}
