//! A metric that Prometheus answers.
//!
//! Never sends anything.

use std::{collections::BTreeMap, time::Duration};

use base64::Engine;
use jiff::Timestamp;

use super::{
    Ask, Request, Response, Talk,
    aws::{Region, credentials, sign},
    digits, failed, judged, listed, started,
};
use crate::{
    analysis::{
        Phase,
        expression::{Env, Val, evaluate},
    },
    api::{Measurement, Metric, PrometheusMetric},
    kubernetes::{duration, value::Value},
};

/// How long an answer may take if nothing is said.
const TIMEOUT: i64 = 30;

/// The name of Amazon's Prometheus, for signatures.
const SERVICE: &str = "aps";

/// What the hosts of Amazon's Prometheus are called.
const ENDPOINT: &str = "aps-workspaces";

/// What to do next. Requests to Amazon's Prometheus are signed if the metric names a region.
pub fn next(talk: &Talk<'_>, prometheus: &PrometheusMetric) -> Ask {
    let mut request = match ask(talk, prometheus) {
        Ok(request) => request,
        Err(end) => return end,
    };
    let sigv4 = &prometheus.authentication.sigv4;
    let mut answers = talk.heard.answers.as_slice();
    if request.url.contains(ENDPOINT) && !sigv4.region.is_empty() {
        if !sigv4.profile.is_empty() {
            return talk.refused("profiles of AWS (sigv4.profile) are not part of this version".to_owned());
        }
        let region = match Region::parse(&sigv4.region) {
            Ok(region) => region,
            Err(problem) => return talk.refused(format!("sigv4.region: {problem}")),
        };
        // Before anything that proves who we are is sent anywhere.
        if let Err(problem) = talk.settings.aws.check_signing(&request.url, ENDPOINT, &region) {
            return talk.refused(problem);
        }
        let who;
        (who, answers) = match credentials(talk, Some(&sigv4.role_arn), &region) {
            Ok(found) => found,
            Err(next) => return next,
        };
        sign(&mut request, &who, &region, SERVICE, talk.now);
        if let Some(other) = &mut request.otherwise {
            sign(other, &who, &region, SERVICE, talk.now);
        }
    }
    match answers {
        [] => Ask::Send(Box::new(request)),
        [Err(problem), ..] => talk.failed(problem.clone()),
        [Ok(answer), ..] => talk.known(read(talk.metric, answer, talk.now)),
    }
}

/// What to ask; the errors are Argo Rollouts'.
fn ask(talk: &Talk<'_>, prometheus: &PrometheusMetric) -> Result<Request, Ask> {
    let refused = |problem: &str| talk.refused(problem.to_owned());
    let default = talk.settings.prometheus.as_deref().unwrap_or_default();
    let address = if prometheus.address.is_empty() { default } else { &prometheus.address };
    if address.is_empty() {
        return Err(refused("prometheus address is not configured"));
    }
    let has_host = address.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    if !has_host {
        return Err(refused("prometheus address is not is url format"));
    }
    let seconds = u64::try_from(prometheus.timeout.unwrap_or(TIMEOUT));
    let seconds = seconds.map_err(|_| refused("prometheus timeout should not be negative"))?;
    let oauth2 = super::oauth2(&prometheus.authentication).map_err(|problem| talk.refused(problem))?;
    let (end, parameters) = parameters(prometheus, talk.now).map_err(|problem| talk.failed(problem))?;
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(&parameters).finish();
    let url = format!("{}/api/v1/{end}", address.trim_end_matches('/'));
    let mut headers: Vec<(String, String)> =
        prometheus.headers.iter().map(|header| (header.key.clone(), header.value.clone())).collect();
    let basic = &prometheus.authentication.basic_auth;
    if !basic.username.is_empty() || !basic.password.is_empty() {
        let pair = format!("{}:{}", basic.username, basic.password);
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        headers.push(("Authorization".to_owned(), format!("Basic {encoded}")));
    }
    let get = Request {
        headers: headers.clone(),
        insecure: prometheus.insecure,
        oauth2,
        ..Request::get(format!("{url}?{form}"), Duration::from_secs(seconds))
    };
    headers.push(("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
    let post = Request { method: "POST".to_owned(), url, headers, body: form.into_bytes(), ..get.clone() };
    Ok(Request { otherwise: Some(Box::new(get)), ..post })
}

type Parameters = Vec<(&'static str, String)>;

fn parameters(prometheus: &PrometheusMetric, now: Timestamp) -> Result<(&'static str, Parameters), String> {
    let query = ("query", prometheus.query.clone());
    let Some(range) = &prometheus.range_query else {
        return Ok(("query", vec![query, ("time", seconds(now))]));
    };
    let moment = |name: &str, text: &str| {
        let env = Env { result: Val::Nil, now };
        let problem = match evaluate(text, &env) {
            Ok(Val::Moment(moment)) => return Ok(seconds(moment)),
            Ok(other) => format!("expected time.Time, but got {}", other.type_name()),
            Err(problem) => problem,
        };
        Err(format!("failed to parse rangeQuery.{name} as time: {problem}"))
    };
    let (start, end) = (moment("start", &range.start)?, moment("end", &range.end)?);
    let step = duration::parse(&range.step)
        .map_err(|problem| format!("failed to parse rangeQuery.step as duration: {problem}"))?;
    Ok(("query_range", vec![query, ("start", start), ("end", end), ("step", digits(step.as_secs_f64()))]))
}

/// A moment in seconds, with as much of a fraction as it has.
fn seconds(moment: Timestamp) -> String {
    let millis = moment.as_millisecond();
    if millis % 1000 == 0 { moment.as_second().to_string() } else { format!("{}", millis as f64 / 1000.0) }
}

/// What goes beside the measurements: the query with its arguments filled in.
pub fn metadata(prometheus: &PrometheusMetric) -> BTreeMap<String, String> {
    let query = prometheus.query.clone();
    if query.is_empty() { BTreeMap::new() } else { [("ResolvedPrometheusQuery".to_owned(), query)].into() }
}

/// What an answer means.
pub fn read(metric: &Metric, response: &Response, now: Timestamp) -> Measurement {
    let begun = started(now);
    let data = match data(response) {
        Ok(data) => data,
        Err(problem) => return failed(begun, problem, now),
    };
    let warnings: Vec<&str> = data.list_at(&["warnings"]).iter().filter_map(Value::as_str).collect();
    let mut measured = match values(&data) {
        Err(problem) => failed(begun, problem, now),
        Ok(Values::One(number)) => judged(metric, begun, &Val::Float(number), digits(number), now),
        Ok(Values::Many(numbers)) => {
            let text = listed(numbers.iter().copied().map(digits));
            judged(metric, begun, &Val::floats(&numbers), text, now)
        }
    };
    if !warnings.is_empty() && Phase::of(&measured.phase) != Phase::Error {
        let quoted: Vec<String> = warnings.iter().map(|warning| format!("\"{warning}\"")).collect();
        measured.metadata.insert("warnings".to_owned(), quoted.join(", "));
    }
    measured
}

/// The answer, if it is one; or what went wrong, as the client of Prometheus says it.
fn data(response: &Response) -> Result<Value, String> {
    let code = response.code;
    let is_answer = (200..300).contains(&code) || [400, 422, 503].contains(&code);
    let body = Value::from_json(&response.body).ok().filter(|body| body.as_map().is_some());
    match body {
        _ if !is_answer && (400..500).contains(&code) => Err(format!("client_error: client error: {code}")),
        _ if !is_answer && (500..600).contains(&code) => Err(format!("server_error: server error: {code}")),
        _ if !is_answer => Err(format!("bad_response: bad response code {code}")),
        _ if code == 503 => Err(format!("server_error: server error: {code}")),
        None => Err("bad_response: the answer is no JSON that Prometheus would give".to_owned()),
        Some(body) if body.str_at(&["status"]) == Some("error") => {
            let text = |key: &str| body.str_at(&[key]).unwrap_or_default();
            Err(format!("{}: {}", text("errorType"), text("error")))
        }
        Some(body) if (200..300).contains(&code) => Ok(body),
        Some(_) => Err("bad_response: inconsistent body for response code".to_owned()),
    }
}

enum Values {
    One(f64),
    Many(Vec<f64>),
}

fn values(body: &Value) -> Result<Values, String> {
    let result = body.at(&["data", "result"]).cloned().unwrap_or_default();
    let items = result.as_list().unwrap_or_default();
    let number = |pair: &Value| -> Result<f64, String> {
        let text = pair.as_list().and_then(|pair| pair.get(1)).and_then(Value::as_str);
        text.and_then(go_number).ok_or_else(|| format!("{pair} holds no number"))
    };
    match body.str_at(&["data", "resultType"]).unwrap_or_default() {
        "scalar" => number(&result).map(Values::One),
        "vector" => {
            let numbers: Result<Vec<f64>, String> =
                items.iter().map(|item| number(item.get("value").unwrap_or(&Value::Null))).collect();
            numbers.map(Values::Many)
        }
        "matrix" => {
            let points = items.iter().flat_map(|item| item.list_at(&["values"]));
            points.map(number).collect::<Result<Vec<f64>, String>>().map(Values::Many)
        }
        other => Err(format!("Prometheus metric type not supported: {other}")),
    }
}

/// A number as Prometheus writes it.
fn go_number(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        text => text.parse().ok(),
    }
}
