//! A metric that Apache SkyWalking answers, in GraphQL.
//!
//! Never sends anything. The times it asks about are UTC's, as those of a process in a container are.

use std::time::Duration;

use jiff::Timestamp;

use super::{Ask, Request, Response, Talk, ago, failed, length, started, web::fractional};
use crate::{analysis::expression::Val, api::SkyWalkingMetric, kubernetes::value::Value, model::go_json, value};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What to do next.
pub fn next(talk: &Talk<'_>, skywalking: &SkyWalkingMetric) -> Ask {
    let request = ask(skywalking, talk.now).map_err(|problem| talk.refused(problem));
    talk.once(request, |answer| match data(answer) {
        Ok(data) => talk.judged(&Val::of_json(&data), go_json::any_text(&fractional(&data))),
        Err(problem) => failed(started(talk.now), problem, talk.now),
    })
}

/// What to ask; the error says that the interval makes no sense.
fn ask(skywalking: &SkyWalkingMetric, now: Timestamp) -> Result<Request, String> {
    let start = ago(now, length(&skywalking.interval)?);
    let minute = |moment: Timestamp| moment.strftime("%Y-%m-%d %H%M").to_string();
    let duration = value!({"start": minute(start), "end": minute(now), "step": "MINUTE"});
    let body = value!({"query": skywalking.query.as_str(), "variables": {"duration": duration}}).to_json();
    let kind = "application/json; charset=utf-8";
    let url = format!("{}/graphql", skywalking.address);
    Ok(Request::post(url, kind, body, TIMEOUT).with("Accept", kind))
}

/// What was asked for; the code of the answer is not looked at, as in Argo Rollouts.
fn data(response: &Response) -> Result<Value, String> {
    let body = response.json().map_err(|problem| format!("decoding response: {problem}"))?;
    if let Some(error) = body.list_at(&["errors"]).first() {
        return Err(format!("graphql: {}", error.str_at(&["message"]).unwrap_or_default()));
    }
    let data = body.get("data").filter(|data| !data.is_null());
    data.cloned().ok_or_else(|| "no results returned from SkyWalking query".to_owned())
}
