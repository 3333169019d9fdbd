//! A metric that Graphite answers.
//!
//! Never sends anything.

use std::time::Duration;

use super::{
    Ask, Request, Response, Talk,
    address::{Address, Query, joined},
    failed, listed, started,
};
use crate::{
    analysis::expression::Val,
    api::GraphiteMetric,
    kubernetes::{status::go_quoted, value::Value},
    model::go_number,
};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What to do next.
pub fn next(talk: &Talk<'_>, graphite: &GraphiteMetric) -> Ask {
    let request = ask(graphite).map_err(|problem| talk.refused(problem));
    talk.once(request, |answer| match values(answer) {
        Err(problem) => failed(started(talk.now), problem, talk.now),
        Ok(numbers) => {
            let text = listed(numbers.iter().copied().map(six_places));
            talk.judged_keeping(&Val::floats(&numbers), text)
        }
    })
}

/// What to ask; the error is Argo Rollouts'.
fn ask(graphite: &GraphiteMetric) -> Result<Request, String> {
    let address = &graphite.address;
    if address.is_empty() || address.starts_with(':') {
        return Err(format!("Graphite address {address} is not a valid URL"));
    }
    let wanted: String = graphite.query.split_whitespace().collect();
    let wanted = wanted.split_once('#').map_or(wanted.as_str(), |(before, _)| before);
    let mut pairs = Query::of(wanted);
    pairs.set("format", "json");
    let address = Address::of(address);
    let path = joined(address.path, "render");
    Ok(Request::get(Address { path: &path, query: None, ..address }.with(&pairs), TIMEOUT))
}

/// A number as Go prints it with `%f`.
fn six_places(number: f64) -> String {
    if number.is_finite() { format!("{number:.6}") } else { super::digits(number) }
}

/// The numbers of the first series, without those that are not there; the error is Argo Rollouts'.
fn values(response: &Response) -> Result<Vec<f64>, String> {
    if response.code >= 400 {
        return Err(format!("error response: {}", response.text()));
    }
    let body = response.json()?;
    let odd = || "the answer holds no series of points".to_owned();
    let series = if body.is_null() { &[] } else { body.as_list().ok_or_else(odd)? };
    let mut all = Vec::new();
    for one in series {
        let points = match one.get("datapoints") {
            None | Some(Value::Null) => &[],
            Some(points) => points.as_list().ok_or_else(odd)?,
        };
        all.push(points.iter().map(point).collect::<Result<Vec<Option<f64>>, String>>()?);
    }
    let first = all.into_iter().next().unwrap_or_default();
    if first.is_empty() {
        return Err("no values found".to_owned());
    }
    Ok(first.into_iter().flatten().collect())
}

/// The number of a point, if it has one.
fn point(point: &Value) -> Result<Option<f64>, String> {
    let print = |value: &Value| Val::of_json(value).print();
    let pair = point.as_list().ok_or_else(|| format!("{} is no data point", print(point)))?;
    let [value, time] = pair else { return Err(format!("error unmarshaling data point: {}", print(point))) };
    let number = match value {
        Value::Null => None,
        Value::Int(_) | Value::Float(_) => value.as_float(),
        Value::Str(text) => Some(
            go_number::float(text).map_err(|why| format!("strconv.ParseFloat: parsing {}: {why}", go_quoted(text)))?,
        ),
        Value::Bool(_) | Value::List(_) | Value::Map(_) => {
            return Err(format!("error unmarshaling value: {}", print(value)));
        }
    };
    match time {
        Value::Null | Value::Int(_) | Value::Float(_) => Ok(number),
        Value::Str(text) if text.as_str().parse::<i64>().is_ok() => Ok(number),
        Value::Str(text) => Err(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax")),
        // The value is named, not the time, as in Argo Rollouts.
        Value::Bool(_) | Value::List(_) | Value::Map(_) => {
            Err(format!("error unmarshaling timestamp: {}", print(value)))
        }
    }
}
