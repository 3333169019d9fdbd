//! The three patches that are computed from the object alone: JSON, merge and strategic merge.
//!
//! Each takes the object as it is and the patch as it was sent and returns the object as it shall be; what the patch does
//! not touch stays the very same shared value, and a patch that changes nothing returns the object itself. None of them
//! decodes, defaults or validates the outcome: that is the store's next step, as it is upstream.

use std::fmt::Write;

use super::{
    kind::Kind,
    schema::Schema,
    status::{FieldError, Reason, Status},
    value::Value,
};

pub mod convert;
pub mod json;
pub mod merge;
pub mod strategic;

pub use json::apply as json;
pub use merge::{apply as merge, without_nulls};
pub use strategic::apply as strategic;

/// The four kinds of patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own, by the type's merge keys.
    Strategic,
    /// Server-side apply.
    Apply,
}

/// Whether the body has the form its kind of patch needs; 400 in the words of the real server if not.
///
/// The real server looks at the body only once it has found the object.
pub fn check(kind: PatchType, body: &Value) -> Result<(), Status> {
    let object = "map[string]interface {}";
    let refused = match (kind, body) {
        (PatchType::Json, body) => return json::check(body),
        (PatchType::Merge, Value::Null) => "Invalid JSON Patch".to_owned(),
        (PatchType::Merge | PatchType::Strategic | PatchType::Apply, Value::Map(_)) => return Ok(()),
        (PatchType::Strategic | PatchType::Apply, Value::Null) => return Ok(()),
        (PatchType::Merge, body) => format!("error decoding patch: {}", cannot_unmarshal(body, object)),
        (PatchType::Strategic, body) => cannot_unmarshal(body, object),
        (PatchType::Apply, body) => format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: {}",
            cannot_unmarshal(body, object)
        ),
    };
    Err(Status::bad_request(refused))
}

/// What strict field validation says about the patch itself: members that no operation has, keys that stand twice.
pub fn strict(kind: PatchType, body: &Value, duplicates: &[String]) -> Vec<String> {
    let prefix = if kind == PatchType::Json { "json patch " } else { "" };
    let mut problems: Vec<String> = if kind == PatchType::Json { json::unknown_fields(body) } else { Vec::new() };
    problems.extend(duplicates.iter().map(|path| format!("{prefix}duplicate field \"{path}\"")));
    problems
}

/// 422: the outcome of a patch is no object of its type. `why` is what the decoder said.
pub fn undecodable(kind: PatchType, schema: &Schema, patch: &Value, patched: &Value, why: &str) -> Status {
    let problem = match kind {
        PatchType::Strategic => {
            let why = convert::mistyped(schema, patched).unwrap_or_else(|| why.to_owned());
            FieldError::invalid("patch", go_print(patch), why)
        }
        PatchType::Json | PatchType::Merge | PatchType::Apply => FieldError::invalid("patch", patched.to_json(), why),
    };
    Status::invalid("", "", "", &[problem])
}

/// Whether a patched custom resource still says it is what it is; a built-in one cannot say anything else.
pub fn check_type(kind: &Kind, patched: &Value, name: &str) -> Result<(), Status> {
    if kind.custom().is_none() {
        return Ok(());
    }
    let said = |key: &str| patched.str_at(&[key]).unwrap_or_default();
    if said("apiVersion").is_empty() {
        return Err(Status::internal("Object 'apiVersion' is missing in 'object has no apiVersion field'"));
    }
    let mut problems = Vec::new();
    if said("kind") != kind.kind {
        problems.push(FieldError::invalid("kind", said("kind"), format!("must be {}", kind.kind)));
    }
    if !kind.has_api_version(said("apiVersion")) {
        let why = format!("must be {}", kind.api_version());
        problems.push(FieldError::invalid("apiVersion", said("apiVersion"), why));
    }
    let group = said("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    if problems.is_empty() { Ok(()) } else { Err(Status::invalid(group, said("kind"), name, &problems)) }
}

/// What Go's decoder says of a value that does not fit the type.
fn cannot_unmarshal(value: &Value, go_type: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {go_type}", json_type(value))
}

/// What Go's JSON decoder calls the type of a value.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
    }
}

/// 422 without saying why: the real server keeps the reason to itself.
fn unprocessable() -> Status {
    let mut status =
        Status::new(422, Reason::Invalid, "the server rejected our request due to an error in our request");
    status.details = Some(Box::default());
    status
}

/// 500: an error upstream did not expect a client to cause.
fn unexpected(message: impl Into<String>) -> Status {
    Status::new(500, Reason::Unknown, message)
}

/// A value as Go's `%v` prints it: `map[a:1 b:[x <nil>]]`.
pub fn go_print(value: &Value) -> String {
    let mut out = String::new();
    print(value, &mut out);
    out
}

fn print(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(n) => {
            let _ = write!(out, "{n}");
        }
        Value::Float(f) => out.push_str(&go_float(*f)),
        Value::Str(text) => out.push_str(text),
        Value::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                print(item, out);
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push_str("map[");
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                print(value, out);
            }
            out.push(']');
        }
    }
}

/// A float as Go's `%v` prints it: plain below 1e21, else with an exponent of at least two digits.
fn go_float(f: f64) -> String {
    let magnitude = f.abs();
    if magnitude == 0.0 || (1e-4..1e21).contains(&magnitude) {
        return format!("{f}");
    }
    let text = format!("{f:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests;
