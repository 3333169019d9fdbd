//! A metric that Datadog answers, by its old API (v1) or its new one (v2).
//!
//! Never sends anything.

use std::{cmp::Ordering, time::Duration};

use jiff::Timestamp;

use super::{
    Ask, Request, Response, Talk,
    address::{Address, Query},
    digits, entry, failed, length, listed, started,
};
use crate::{
    analysis::expression::Val,
    api::{DatadogMetric, Measurement},
    kubernetes::value::Value,
    model::{go_json, secret::Secret},
    value,
};

/// Where Datadog is if nothing is said.
const ADDRESS: &str = "https://api.datadoghq.com";
/// The Secret with the keys if none is named.
const SECRET: &str = "datadog";
/// How long an answer may take if nothing is said.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How many groups are noted beside a measurement.
const GROUPS: usize = 100;
/// What Argo Rollouts says when there are no keys, whatever the reason.
const NO_KEYS: &str = "failed to find the credentials for datadog metrics provider";

/// How to log in, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    api: Secret,
    app: Secret,
    address: String,
}

impl Keys {
    /// The keys that variables hold, if all of them are there.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Keys> {
        let (api, app) = (Secret::new(variable("DD_API_KEY")?), Secret::new(variable("DD_APP_KEY")?));
        Some(Keys { api, app, address: variable("DD_ADDRESS")? })
    }

    /// What must not be told.
    pub(super) fn secrets(&self) -> [&Secret; 2] {
        [&self.api, &self.app]
    }

    fn in_secret(secret: &Value) -> Option<Keys> {
        let given = |key: &str| entry(secret, key).filter(|text| !text.is_empty());
        let address = given("address").unwrap_or_else(|| ADDRESS.to_owned());
        Some(Keys { api: Secret::new(given("api-key")?), app: Secret::new(given("app-key")?), address })
    }
}

/// What to do next.
pub fn next(talk: &Talk<'_>, datadog: &DatadogMetric) -> Ask {
    let request = keys(talk, datadog).and_then(|keys| {
        valid(datadog).map_err(|problem| talk.refused(problem))?;
        ask(datadog, &keys, talk.now).map_err(|problem| talk.failed(problem))
    });
    talk.once(request, |answer| read(talk, datadog, answer))
}

/// The keys: those of the Secret in the namespace of the run, of the environment, or of the Secret beside the engine.
fn keys(talk: &Talk<'_>, datadog: &DatadogMetric) -> Result<Keys, Ask> {
    let named = &datadog.secret_ref;
    if named.namespaced && named.name.is_empty() {
        return Err(talk.refused("secret name is required for namespaced credentials".to_owned()));
    }
    if let Some(keys) = talk.settings.datadog.as_ref().filter(|_| !named.namespaced) {
        return Ok(keys.clone());
    }
    let namespace = if named.namespaced { &talk.run.metadata.namespace } else { &talk.settings.namespace };
    let name = if named.name.is_empty() { SECRET } else { &named.name };
    match &talk.heard.secret {
        None => Err(Ask::ReadSecret { namespace: namespace.clone(), name: name.to_owned() }),
        Some(secret) => {
            let keys = secret.as_ref().ok().and_then(Keys::in_secret);
            keys.ok_or_else(|| talk.refused(NO_KEYS.to_owned()))
        }
    }
}

/// Whether a metric makes sense; the error is Argo Rollouts'.
fn valid(datadog: &DatadogMetric) -> Result<Duration, String> {
    let (one, many) = (!datadog.query.is_empty(), datadog.queries.len());
    let problem = match datadog.api_version.as_str() {
        "v1" if !one => {
            Some("Query is empty. API Version v1 only supports using the query parameter in your Analysis Template.")
        }
        "v1" if !datadog.aggregator.is_empty() => {
            Some("Aggregator is not supported in v1. Please review the Analysis Template.")
        }
        _ if !one && many == 0 => Some("Must have either a query or queries. Please review the Analysis Template."),
        _ if one && many > 0 => Some("Cannot have both a query and queries. Please review the Analysis Template."),
        _ if one && !datadog.formula.is_empty() => {
            Some("Formula are only valid when queries are set. Please review the Analysis Template.")
        }
        _ if many > 1 && datadog.formula.is_empty() => {
            Some("When multiple queries are provided you must include a formula.")
        }
        _ => None,
    };
    match problem {
        Some(problem) => Err(problem.to_owned()),
        None => timeout(datadog),
    }
}

fn timeout(datadog: &DatadogMetric) -> Result<Duration, String> {
    if datadog.request_timeout.is_empty() {
        return Ok(TIMEOUT);
    }
    let given = length(&datadog.request_timeout).map_err(|problem| {
        format!("Could not parse the request timeout: {problem}. Please review the Analysis Template.")
    })?;
    let given = Duration::try_from(given).ok().filter(|given| !given.is_zero());
    given.ok_or_else(|| {
        "Request timeout must be a positive duration (e.g. 30s). Please review the Analysis Template.".to_owned()
    })
}

/// What to ask.
fn ask(datadog: &DatadogMetric, keys: &Keys, now: Timestamp) -> Result<Request, String> {
    // Whole seconds, also where milliseconds are asked for.
    let now = now.as_second();
    let from = now.saturating_sub(length(&datadog.interval)?.as_secs());
    // Without a version the API server would have said v1: such a request goes there, as in Argo Rollouts.
    let path = if datadog.api_version == "v2" { "/api/v2/query/scalar" } else { "/api/v1/query" };
    let (address, timeout) = (format!("{}{path}", keys.address), timeout(datadog)?);
    let address = Address::of(&address);
    let request = if datadog.api_version == "v1" {
        let mut pairs = Query::of(address.query.unwrap_or_default());
        pairs.set("query", &datadog.query);
        pairs.set("from", &from.to_string());
        pairs.set("to", &now.to_string());
        Request::get(address.with(&pairs), timeout).with("Content-Type", "application/json")
    } else {
        let body = scalar_request(datadog, from, now).to_json();
        Request::post(address.requested(), "application/json", body, timeout)
    };
    Ok(request.with("Dd-Api-Key", keys.api.expose()).with("Dd-Application-Key", keys.app.expose()))
}

fn scalar_request(datadog: &DatadogMetric, from: i64, to: i64) -> Value {
    let aggregator = if datadog.aggregator.is_empty() { "last" } else { &datadog.aggregator };
    let one = |name: &str, query: &str| value!({"aggregator": aggregator, "data_source": "metrics", "name": name, "query": query});
    let queries = if datadog.query.is_empty() {
        Value::list(datadog.queries.iter().map(|(name, query)| one(name, query)))
    } else {
        Value::list([one("query", &datadog.query)])
    };
    let formulas = match datadog.formula.as_str() {
        "" => Value::list([]),
        formula => Value::list([value!({"formula": formula})]),
    };
    let attributes = value!({
        "formulas": formulas,
        "from": from.saturating_mul(1000),
        "queries": queries,
        "to": to.saturating_mul(1000),
    });
    value!({"data": {"type": "scalar_request", "attributes": attributes}})
}

/// What an answer means.
fn read(talk: &Talk<'_>, datadog: &DatadogMetric, response: &Response) -> Measurement {
    let measured = body(response)
        .and_then(|body| if datadog.api_version == "v1" { points(&body) } else { columns(&body) })
        .map(|found| found.measurement(talk));
    measured.unwrap_or_else(|problem| failed(started(talk.now), problem, talk.now))
}

fn body(response: &Response) -> Result<Value, String> {
    match response.code {
        200 => response.json().map_err(|problem| format!("Could not parse JSON body: {problem}")),
        code @ (401 | 403) => Err(format!("received authentication error response code: {code} {}", response.text())),
        code => Err(format!("received non 2xx response code: {code} {}", response.text())),
    }
}

/// What an answer holds.
enum Found {
    /// No number; the text stands for what there was.
    Nothing(String),
    /// A number.
    One(f64),
    /// A number for each group, with the names of the groups.
    Grouped(Vec<(String, f64)>),
}

impl Found {
    fn measurement(self, talk: &Talk<'_>) -> Measurement {
        match self {
            Found::Nothing(text) => talk.judged(&Val::Nil, text),
            Found::One(number) => talk.judged(&Val::Float(number), digits(number)),
            Found::Grouped(groups) => {
                let numbers: Vec<f64> = groups.iter().map(|(_, number)| *number).collect();
                let text = listed(numbers.iter().copied().map(digits));
                let mut measured = talk.judged(&Val::floats(&numbers), text);
                let (noted, is_cut) = noted(groups);
                measured.metadata.insert("groups".to_owned(), noted);
                if is_cut {
                    measured.metadata.insert("groups_truncated".to_owned(), "true".to_owned());
                }
                measured
            }
        }
    }
}

/// The groups as they are noted beside a measurement. Of too many the smallest and the largest stay: whichever is bad,
/// it is seen.
fn noted(mut groups: Vec<(String, f64)>) -> (String, bool) {
    let is_cut = groups.len() > GROUPS;
    if is_cut {
        groups.sort_by(|(_, a), (_, b)| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        let end = groups.len() - GROUPS / 2;
        groups.drain(GROUPS / 2..end);
    }
    let noted = groups.iter().map(|(name, number)| value!({"name": name.as_str(), "value": *number}));
    (go_json::any_text(&Value::list(noted)), is_cut)
}

/// The last point of the first series.
fn points(body: &Value) -> Result<Found, String> {
    let odd = || "Could not parse JSON body: it holds no series of points".to_owned();
    let series = match body.get("series").filter(|series| !series.is_null()) {
        None => return Ok(Found::Nothing("null".to_owned())),
        Some(series) => series.as_list().ok_or_else(odd)?,
    };
    let list = |series: &Value| match series.get("pointlist") {
        None | Some(Value::Null) => Some(Value::Null),
        Some(points) => points.as_list().map(|_| points.clone()),
    };
    let lists: Vec<Value> = series.iter().map(list).collect::<Option<_>>().ok_or_else(odd)?;
    let Some(point) = lists.first().and_then(Value::as_list).and_then(<[Value]>::last) else {
        let text = Value::list(lists.into_iter().map(|points| value!({"pointlist": points})));
        return Ok(Found::Nothing(go_json::any_text(&text)));
    };
    match point.as_list() {
        Some([_, Value::Null]) => Ok(Found::One(0.0)),
        Some([_, number]) => number.as_float().map(Found::One).ok_or_else(odd),
        Some(_) => Err("Datapoint does not have 2 values".to_owned()),
        None => Err(odd()),
    }
}

/// The first number of the first column of numbers, or all of them if they belong to groups.
fn columns(body: &Value) -> Result<Found, String> {
    shaped(body).ok_or_else(|| "Could not parse JSON body: it has another shape".to_owned())?;
    let errors = body.at(&["data", "errors"]).and_then(Value::as_str).unwrap_or_default();
    if !errors.is_empty() {
        return Err(format!("There were errors in your query: {errors}"));
    }
    let all = body.at(&["data", "attributes", "columns"]).filter(|columns| !columns.is_null());
    let columns = all.and_then(Value::as_list).unwrap_or_default();
    let is = |column: &Value, kind: &str| column.str_at(&["type"]).unwrap_or("number") == kind;
    let groups: Vec<&Value> = columns.iter().filter(|column| is(column, "group")).collect();
    let numbers = columns.iter().find(|column| is(column, "number"));
    let numbers = numbers.map(|column| column.list_at(&["values"])).unwrap_or_default();
    let mut found = Vec::new();
    for (row, number) in numbers.iter().enumerate().filter(|(_, number)| !number.is_null()) {
        let number = number.as_float().ok_or_else(|| format!("could not parse numeric value {number}"))?;
        found.push((label(&groups, row)?, number));
    }
    Ok(match found.first() {
        None => Found::Nothing(nothing(all, columns)),
        Some((_, number)) if groups.is_empty() => Found::One(*number),
        Some(_) => Found::Grouped(found),
    })
}

/// Whether an answer has the shape that it must have to be read at all.
fn shaped(body: &Value) -> Option<()> {
    let object = |value: Option<&Value>| match value {
        None | Some(Value::Null | Value::Map(_)) => Some(()),
        Some(Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::List(_)) => None,
    };
    object(Some(body))?;
    object(body.get("data"))?;
    object(body.at(&["data", "attributes"]))?;
    match body.at(&["data", "errors"]) {
        None | Some(Value::Null | Value::Str(_)) => {}
        Some(Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) | Value::Map(_)) => return None,
    }
    let columns = match body.at(&["data", "attributes", "columns"]) {
        None | Some(Value::Null) => &[],
        Some(columns) => columns.as_list()?,
    };
    for column in columns {
        object(Some(column))?;
        match column.get("values") {
            None | Some(Value::Null | Value::List(_)) => {}
            Some(Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::Map(_)) => return None,
        }
    }
    Some(())
}

/// The name of a group: what every column of names says in its row.
fn label(columns: &[&Value], row: usize) -> Result<String, String> {
    let mut names = Vec::new();
    for column in columns {
        let parts = column.list_at(&["values"]).get(row).and_then(Value::as_list).unwrap_or_default();
        let parts: Option<Vec<&str>> = parts.iter().map(Value::as_str).collect();
        let parts = parts.filter(|parts| !parts.is_empty());
        names.extend(parts.ok_or_else(|| format!("could not parse group label at index {row}"))?);
    }
    Ok(names.join(","))
}

/// What stands for an answer without a number, as Argo Rollouts prints it.
fn nothing(all: Option<&Value>, columns: &[Value]) -> String {
    let values = |column: &Value| column.get("values").cloned().unwrap_or_default();
    let text = match (all, columns) {
        (_, [column]) => values(column),
        (None, _) => value!({"Columns": Value::Null}),
        (Some(_), columns) => {
            value!({"Columns": Value::list(columns.iter().map(|column| value!({"Values": values(column)})))})
        }
    };
    go_json::any_text(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(columns: Value, expected: &str) {
        let found = super::columns(&value!({"data": {"attributes": {"columns": columns}}}));
        let told = match found {
            Ok(Found::Nothing(text)) => format!("nothing {text}"),
            Ok(Found::One(number)) => format!("one {number}"),
            Ok(Found::Grouped(groups)) => noted(groups).0,
            Err(problem) => problem,
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn numbers_of_groups_are_told_with_their_names() {
        let numbers = value!({"type": "number", "values": [1.5, null, 3.0]});
        let hosts = value!({"type": "group", "values": [["a"], ["b"], ["c"]]});
        let zones = value!({"type": "group", "values": [["x"], ["y"], ["z"]]});
        check(Value::list([numbers.clone()]), "one 1.5");
        let named = r#"[{"name":"a","value":1.5},{"name":"c","value":3}]"#;
        check(Value::list([hosts.clone(), numbers.clone()]), named);
        let named = r#"[{"name":"x,a","value":1.5},{"name":"z,c","value":3}]"#;
        check(Value::list([zones, hosts, numbers.clone()]), named);
        let short = value!({"type": "group", "values": [["a"]]});
        check(Value::list([short, numbers]), "could not parse group label at index 2");
    }

    #[test]
    fn of_many_groups_the_extremes_are_noted() {
        let groups: Vec<(String, f64)> = (0..300).map(|number| (format!("g{number}"), f64::from(number))).collect();
        let (text, is_cut) = noted(groups);
        assert!(is_cut && text.contains("\"g0\"") && text.contains("\"g299\"") && !text.contains("\"g150\""));
        assert_eq!(text.matches("name").count(), GROUPS);
    }
}
