//! A metric that any address on the web answers, with JSON.
//!
//! Never sends anything. Unlike Argo Rollouts it does not call an answer a success that is no JSON.

use std::time::Duration;

use jiff::Timestamp;

use super::{Request, Response, failed, judged, started};
use crate::{
    analysis::expression::Val,
    api::{Measurement, Metric, WebMetric},
    kubernetes::{jsonpath::Template, value::Value},
    model::go_json,
};

/// How long an answer may take if nothing is said.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The path of the whole answer.
const WHOLE: &str = "{$}";

/// What to ask; the error is Argo Rollouts'.
pub fn ask(web: &WebMetric) -> Result<Request, String> {
    path(web)?;
    let oauth2 = super::oauth2(&web.authentication)?;
    let method = if web.method.is_empty() { "GET" } else { web.method.as_str() };
    let json = web.json_body.as_ref().filter(|body| !body.is_null());
    if !web.body.is_empty() && json.is_some() {
        return Err("use either Body or JSONBody; both cannot exists for WebMetric payload".to_owned());
    }
    if method == "GET" && (!web.body.is_empty() || json.is_some()) {
        return Err("Body/JSONBody can only be used with POST or PUT WebMetric Method types".to_owned());
    }
    let mut headers: Vec<(String, String)> =
        web.headers.iter().map(|header| (header.key.clone(), header.value.clone())).collect();
    let body = match json {
        Some(json) => {
            headers.retain(|(key, _)| !key.eq_ignore_ascii_case("content-type"));
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            json.to_json()
        }
        None => web.body.clone(),
    };
    let timeout = match u64::try_from(web.timeout_seconds) {
        Ok(0) | Err(_) => TIMEOUT,
        Ok(seconds) => Duration::from_secs(seconds),
    };
    Ok(Request {
        method: method.to_owned(),
        headers,
        body: body.into_bytes(),
        insecure: web.insecure,
        oauth2,
        ..Request::get(web.url.clone(), timeout)
    })
}

/// The path into the answer; the error says that it makes no sense.
fn path(web: &WebMetric) -> Result<Template, String> {
    let text = if web.json_path.is_empty() { WHOLE } else { &web.json_path };
    Template::parse(text).ok_or_else(|| format!("{text} is no JSONPath"))
}

/// What an answer means.
pub fn read(metric: &Metric, web: &WebMetric, response: &Response, now: Timestamp) -> Measurement {
    let begun = started(now);
    if !(200..300).contains(&response.code) {
        return failed(begun, format!("received non 2xx response code: {}", response.code), now);
    }
    let path = match path(web) {
        Ok(path) => path,
        Err(problem) => return failed(begun, problem, now),
    };
    let Ok(body) = Value::from_json(&response.body) else {
        // Who asks for all of it may mean a text; who asks for a part of it does not.
        let text = String::from_utf8_lossy(&response.body);
        if text.is_empty() || !(web.json_path.is_empty() || web.json_path == WHOLE) {
            let what = if text.is_empty() { "empty" } else { "no JSON" };
            return failed(begun, format!("Could not find JSONPath in body: the body is {what}"), now);
        }
        return judged(metric, begun, &Val::text(&text), text.into_owned(), now);
    };
    let Some(found) = path.find(&fractional(&body)) else {
        let problem = format!("Could not find JSONPath in body: {} does not lead anywhere", web.json_path);
        return failed(begun, problem, now);
    };
    match found.first() {
        None => failed(begun, "result of web metric produced no value".to_owned(), now),
        Some(value) => {
            let result = match value {
                // A number in the path itself is a whole one.
                Value::Int(number) => Val::Int(*number),
                other => Val::of_json(other),
            };
            judged(metric, begun, &result, go_json::any_text(value), now)
        }
    }
}

/// A body as Go reads it: every number has a fraction.
pub(super) fn fractional(value: &Value) -> Value {
    match value {
        Value::Int(number) => Value::Float(*number as f64),
        Value::List(items) => Value::list(items.iter().map(fractional)),
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (key.clone(), fractional(value))).collect()),
        Value::Null | Value::Bool(_) | Value::Float(_) | Value::Str(_) => value.clone(),
    }
}
