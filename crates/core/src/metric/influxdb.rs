//! A metric that InfluxDB answers, in annotated CSV.
//!
//! Never sends anything.

use std::time::Duration;

use base64::Engine;
use http::StatusCode;
use jiff::Timestamp;

use super::{Ask, Request, Response, Talk, entry, failed, length, query, started};
use crate::{analysis::expression::Val, api::InfluxdbMetric, kubernetes::value::Value, model::go_number, value};

/// The Secret with the settings if none is named.
const SECRET: &str = "influxdb";
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What to do next.
pub fn next(talk: &Talk<'_>, influxdb: &InfluxdbMetric) -> Ask {
    let profile = if influxdb.profile.is_empty() { SECRET } else { &influxdb.profile };
    let secret = talk.own_secret(profile);
    let request = secret.and_then(|secret| ask(influxdb, secret).map_err(|problem| talk.refused(problem)));
    talk.once(request, |answer| match values(answer) {
        Err(problem) => failed(started(talk.now), problem, talk.now),
        Ok(values) => {
            let result = Val::list(values);
            let text = result.print();
            talk.judged(&result, text)
        }
    })
}

/// What to ask; the error is Argo Rollouts'.
fn ask(influxdb: &InfluxdbMetric, secret: &Value) -> Result<Request, String> {
    let given = |key: &str| entry(secret, key).filter(|text| !text.is_empty());
    let (Some(address), Some(token), Some(org)) = (given("address"), given("authToken"), given("org")) else {
        return Err("authToken, org, or address not found".to_owned());
    };
    let url = format!("{}/api/v2/query?{}", address.trim_end_matches('/'), query([("org", org.as_str())]));
    let dialect = value!({"annotations": ["datatype", "group", "default"], "delimiter": ",", "header": true});
    let body = value!({"query": influxdb.query.as_str(), "type": "flux", "dialect": dialect}).to_json();
    Ok(Request::post(url, "application/json", body, TIMEOUT).with("Authorization", &format!("Token {token}")))
}

/// The values of all rows of all tables; the error is that of InfluxDB's own client.
fn values(response: &Response) -> Result<Vec<Val>, String> {
    let code = response.code;
    if !(200..300).contains(&code) {
        return Err(refused(response));
    }
    let values = rows(&response.text());
    if values.is_empty() {
        return Err("no results returned from flux query".to_owned());
    }
    Ok(values)
}

fn refused(response: &Response) -> String {
    let code = response.code;
    let body = response.json().unwrap_or_default();
    let said = |key: &str| body.str_at(&[key]).unwrap_or_default();
    if body.as_map().is_some() && !said("message").is_empty() {
        return format!("{}: {}", said("code"), said("message"));
    }
    if response.body.is_empty() {
        return format!("Unexpected status code {code}");
    }
    let reason = StatusCode::from_u16(code).ok().and_then(|code| code.canonical_reason());
    format!("{code} {}: {}", reason.unwrap_or_default(), response.text())
}

/// A column of a table.
#[derive(Default, Clone)]
struct Column {
    name: String,
    kind: String,
    default: String,
}

/// The values of the rows up to the first that makes no sense; that one is passed over in silence, as in Argo Rollouts.
fn rows(text: &str) -> Vec<Val> {
    let (mut columns, mut is_named, mut found): (Vec<Column>, bool, Vec<Val>) = (Vec::new(), false, Vec::new());
    for row in Csv(text).filter(|row| row.len() > 1 || row.iter().any(|field| !field.is_empty())) {
        let fields = row.get(1..).unwrap_or_default();
        match row.first().map(String::as_str) {
            Some("#datatype") => {
                let column = |kind: &String| Column { kind: kind.clone(), ..Column::default() };
                (columns, is_named) = (fields.iter().map(column).collect(), false);
            }
            _ if columns.is_empty() || fields.len() != columns.len() => return found,
            Some("#default") => {
                columns.iter_mut().zip(fields).for_each(|(column, default)| column.default.clone_from(default));
            }
            Some("#group") => {}
            _ if !is_named => {
                columns.iter_mut().zip(fields).for_each(|(column, name)| column.name.clone_from(name));
                is_named = true;
                if columns.first().is_some_and(|column| column.name == "error") {
                    return found;
                }
            }
            _ => match value(&columns, fields) {
                Some(value) => found.push(value),
                None => return found,
            },
        }
    }
    found
}

/// What a row says under `_value`; nothing if a field of it is not of its type.
fn value(columns: &[Column], fields: &[String]) -> Option<Val> {
    let mut found = Val::Nil;
    for (column, field) in columns.iter().zip(fields) {
        let text = if field.is_empty() { &column.default } else { field };
        let value = typed(&column.kind, text)?;
        if column.name == "_value" {
            found = value;
        }
    }
    Some(found)
}

/// A text as its type has it.
fn typed(kind: &str, text: &str) -> Option<Val> {
    if text.is_empty() {
        return Some(Val::Nil);
    }
    match kind {
        "string" => Some(Val::text(text)),
        "double" => go_number::float(text).ok().map(Val::Float),
        "long" => text.parse().ok().map(Val::Int),
        "unsignedLong" => {
            let number: u64 = text.parse().ok()?;
            Some(i64::try_from(number).map_or(Val::Float(number as f64), Val::Int))
        }
        "boolean" => Some(Val::Bool(!text.eq_ignore_ascii_case("false"))),
        "duration" => length(text).ok().map(Val::Span),
        "dateTime:RFC3339" | "dateTime:RFC3339Nano" => text.parse::<Timestamp>().ok().map(Val::Moment),
        "base64Binary" => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
            Some(Val::list(bytes.into_iter().map(|byte| Val::Int(byte.into())).collect()))
        }
        _ => None,
    }
}

/// The rows of a text: fields between commas; one in quotes may hold anything, and a quote twice.
struct Csv<'t>(&'t str);

impl Iterator for Csv<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        if self.0.is_empty() {
            return None;
        }
        let (mut row, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
        let mut rest = self.0.char_indices().peekable();
        let mut end = self.0.len();
        while let Some((at, character)) = rest.next() {
            match character {
                '"' if is_quoted && rest.peek().is_some_and(|(_, next)| *next == '"') => {
                    field.push('"');
                    rest.next();
                }
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => row.push(std::mem::take(&mut field)),
                '\r' if !is_quoted => {}
                '\n' if !is_quoted => {
                    end = at + 1;
                    break;
                }
                other => field.push(other),
            }
        }
        row.push(field);
        self.0 = &self.0[end..];
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_may_be_quoted() {
        let rows: Vec<Vec<String>> = Csv("a,\"b,\"\"c\"\"\nd\",e\r\n\r\nf,").collect();
        assert_eq!(rows, [vec!["a", "b,\"c\"\nd", "e"], vec![""], vec!["f", ""]]);
        assert_eq!(Csv("").count(), 0);
    }
}
