//! A metric that Wavefront answers.
//!
//! Never sends anything.

use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;

use super::{Ask, Request, Response, Talk, entry, failed, listed, query, started};
use crate::{
    analysis::{Phase, expression::Val},
    api::{Measurement, WavefrontMetric},
    kubernetes::value::Value,
};

/// The Secret with a token for each address.
const SECRET: &str = "wavefront-api-tokens";
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What to do next.
pub fn next(talk: &Talk<'_>, wavefront: &WavefrontMetric) -> Ask {
    let request = talk.own_secret(SECRET).and_then(|secret| {
        let token = entry(secret, &wavefront.address);
        let token = token.ok_or_else(|| talk.refused("API token not found".to_owned()))?;
        Ok(ask(wavefront, &token, talk.now))
    });
    talk.once(request, |answer| read(talk, answer))
}

/// What to ask.
fn ask(wavefront: &WavefrontMetric, token: &str, now: Timestamp) -> Request {
    // Whole seconds.
    let moment = now.as_second().saturating_mul(1000).to_string();
    let pairs = query([
        ("q", wavefront.query.as_str()),
        ("s", &moment),
        ("e", &moment),
        ("g", "s"),
        ("p", "1"),
        ("i", "true"),
        ("autoEvents", "false"),
        ("includeObsoleteMetrics", "false"),
        ("listmode", "false"),
        ("strict", "false"),
    ]);
    let url = format!("https://{}/api/v2/chart/api?{pairs}", wavefront.address);
    Request::get(url, TIMEOUT).with("Accept", "application/json").with("Authorization", &format!("Bearer {token}"))
}

/// What an answer means.
fn read(talk: &Talk<'_>, response: &Response) -> Measurement {
    let problem = |problem: String| failed(started(talk.now), problem, talk.now);
    let body = match body(response) {
        Ok(body) => body,
        Err(said) => return problem(said),
    };
    let nearest: Vec<Point> = body.list_at(&["timeseries"]).iter().map(|series| nearest(series, talk.now)).collect();
    let mut measured = match nearest.as_slice() {
        [] => problem("No TimeSeries found in response from Wavefront".to_owned()),
        [point] => talk.judged(&Val::Float(point.value), format!("{:.2}", point.value)),
        points => {
            let values: Vec<f64> = points.iter().map(|point| point.value).collect();
            talk.judged(&Val::floats(&values), listed(values.iter().map(|value| format!("{value:.2}"))))
        }
    };
    if Phase::of(&measured.phase) != Phase::Error {
        let note = |texts: Vec<String>| match texts.as_slice() {
            [one] => one.clone(),
            _ => listed(texts),
        };
        let times = nearest.iter().map(|point| point.time.to_string()).collect();
        measured.metadata.insert("timestamps".to_owned(), note(times));
        let drifts = nearest.iter().map(|point| point.drift.to_string()).collect();
        measured.metadata.insert("drift".to_owned(), note(drifts));
    }
    if let Some(warnings) = body.str_at(&["warnings"]).filter(|warnings| !warnings.is_empty()) {
        measured.metadata.insert("warnings".to_owned(), warnings.to_owned());
    }
    measured
}

fn body(response: &Response) -> Result<Value, String> {
    if response.code == 200 {
        return response.json();
    }
    let reason = StatusCode::from_u16(response.code).ok().and_then(|code| code.canonical_reason());
    Err(format!("server returned {} {}\n{}\n", response.code, reason.unwrap_or_default(), response.text()))
}

/// A point of a series.
struct Point {
    value: f64,
    time: i64,
    /// How far from now.
    drift: i64,
}

/// The point of a series that is nearest to now, the first of several. A series without points is 0, infinitely long ago.
fn nearest(series: &Value, now: Timestamp) -> Point {
    let now = now.as_second() as f64;
    let mut found = Point { value: 0.0, time: 0, drift: i64::MIN };
    let mut least = f64::INFINITY;
    for point in series.list_at(&["data"]) {
        let Some([Some(time), Some(value)]) = point.as_list().and_then(|pair| {
            let [time, value] = pair else { return None };
            Some([time.as_float(), value.as_float()])
        }) else {
            continue;
        };
        if (time - now).abs() < least {
            least = (time - now).abs();
            found = Point { value, time: time as i64, drift: (time - now) as i64 };
        }
    }
    found
}
