//! What an answer means, where hosts agree.

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};

use crate::kubernetes::{foreign, value::Value};

/// What became of a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The commit was told; the host's name for it, if it has one.
    Posted(Option<String>),
    /// Not now. With a moment, the host named it; else the delay grows.
    Retry(Option<Timestamp>, String),
    /// Never: the same would happen again.
    GiveUp(String),
    /// The token does not suffice; a person must act, then it can be tried again.
    Forbidden(String),
}

impl Outcome {
    /// Why the commit was not told, if it was not.
    pub fn trouble(&self) -> Option<&str> {
        match self {
            Outcome::Posted(_) => None,
            Outcome::Retry(_, why) | Outcome::GiveUp(why) | Outcome::Forbidden(why) => Some(why),
        }
    }
}

/// The outcome for hosts that mean what they say.
pub fn plain(answer: &Response<Bytes>, now: Timestamp) -> Outcome {
    let words = || said(answer);
    match answer.status() {
        StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Outcome::Posted(None),
        StatusCode::UNAUTHORIZED => Outcome::Forbidden(format!("the host does not accept the token (401{})", words())),
        StatusCode::FORBIDDEN => Outcome::Forbidden(format!("the token may not set statuses (403{})", words())),
        StatusCode::NOT_FOUND => Outcome::Retry(
            None,
            format!("the host does not know the commit, or does not show it to the token (404{})", words()),
        ),
        StatusCode::TOO_MANY_REQUESTS => {
            let at = retry_after(answer.headers(), now).unwrap_or(now + SignedDuration::from_mins(1));
            Outcome::Retry(Some(at), "the host wants fewer requests (429)".to_owned())
        }
        StatusCode::CONFLICT | StatusCode::REQUEST_TIMEOUT => {
            Outcome::Retry(None, format!("the host answers {}", answer.status()))
        }
        status if status.is_server_error() => {
            Outcome::Retry(retry_after(answer.headers(), now), format!("the host answers {status}"))
        }
        status if status.is_redirection() => {
            Outcome::GiveUp(format!("the host answers {status}; name its new address in report.url"))
        }
        status => Outcome::GiveUp(format!("the host answers {status}{}", words())),
    }
}

/// The longest that a host may ask us to wait.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// The moment that a host names, in seconds from now.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let seconds: i64 = headers.get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
    let wait = SignedDuration::from_secs(seconds.clamp(0, LONGEST.as_secs()));
    now.checked_add(wait).ok()
}

/// The moment that a host names, in seconds since 1970.
pub fn reset(headers: &HeaderMap, name: &str, now: Timestamp) -> Option<Timestamp> {
    let at = Timestamp::from_second(headers.get(name)?.to_str().ok()?.trim().parse().ok()?).ok()?;
    Some(at.clamp(now, now.checked_add(LONGEST).ok()?))
}

/// What the host says in its own words, short; begins with a comma if there are any.
pub fn said(answer: &Response<Bytes>) -> String {
    let body = Value::from_json(answer.body()).unwrap_or(Value::Null);
    let words = ["message", "error"].iter().find_map(|name| body.at(&[name]).filter(|words| !words.is_null()));
    let words = words.map(|words| words.as_str().map_or_else(|| words.to_string(), str::to_owned));
    words.map(|words| format!(", {}", super::text::cut(&foreign::line(&words), 200))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, headers: &[(&'static str, &str)], body: &str) -> Response<Bytes> {
        let mut answer = Response::builder().status(code);
        for (name, value) in headers {
            answer = answer.header(*name, *value);
        }
        answer.body(Bytes::copy_from_slice(body.as_bytes())).unwrap()
    }

    #[test]
    fn answers_mean_what_they_say() {
        let now = Timestamp::from_second(1_000).unwrap();
        let check = |given: Response<Bytes>, expected: Outcome| assert_eq!(plain(&given, now), expected);
        let later = |seconds: i64| Some(Timestamp::from_second(1_000 + seconds).unwrap());
        check(answer(201, &[], "{}"), Outcome::Posted(None));
        check(answer(204, &[], ""), Outcome::Posted(None));
        let forbidden = "the host does not accept the token (401, bad\\u{7} credentials)";
        check(answer(401, &[], r#"{"message":"bad\u0007 credentials"}"#), Outcome::Forbidden(forbidden.into()));
        check(answer(403, &[], "<html>"), Outcome::Forbidden("the token may not set statuses (403)".into()));
        let missing = "the host does not know the commit, or does not show it to the token (404)";
        check(answer(404, &[], ""), Outcome::Retry(None, missing.into()));
        let fewer = "the host wants fewer requests (429)";
        check(answer(429, &[("retry-after", "7")], ""), Outcome::Retry(later(7), fewer.into()));
        check(answer(429, &[("retry-after", "soon")], ""), Outcome::Retry(later(60), fewer.into()));
        check(answer(429, &[("retry-after", "99999999999")], ""), Outcome::Retry(later(86_400), fewer.into()));
        check(answer(409, &[], ""), Outcome::Retry(None, "the host answers 409 Conflict".into()));
        check(answer(503, &[], ""), Outcome::Retry(None, "the host answers 503 Service Unavailable".into()));
        check(
            answer(400, &[], r#"{"error":{"a":1}}"#),
            Outcome::GiveUp("the host answers 400 Bad Request, {\"a\":1}".into()),
        );
        let moved = "the host answers 301 Moved Permanently; name its new address in report.url";
        check(answer(301, &[("location", "https://evil/")], ""), Outcome::GiveUp(moved.into()));
    }
}
