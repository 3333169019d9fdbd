//! Kubernetes objects and arguments, from JSON to what Argo Rollouts sends of them.
//!
//! The types are those of Argo Rollouts v1.10.1 and its Kubernetes libraries, found by reflection: `tests/plugins/go/types`
//! prints `types.json`, and `tests/plugins/run` compares the two. What Go loses on the wire is lost here as well, because
//! plugins have never seen it: a pointer to zero arrives as nil (`replicas: 0`, `setWeight: 0`), and of a quantity only
//! its notation does.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::gob::{
    Schema, Value,
    schema::{Form, Of, Shape, Type},
};

/// JSON that is not of the type it should have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: not {expected}")]
pub struct ObjectError {
    /// Where: `Rollout.spec.replicas`.
    pub path: String,
    /// What should stand there.
    pub expected: &'static str,
}

/// The types of Argo Rollouts' RPC.
#[derive(Debug, Deserialize)]
pub struct Table {
    roots: HashMap<String, usize>,
    #[serde(flatten)]
    schema: Arc<Schema>,
}

/// One field of an argument.
#[derive(Debug, Clone)]
pub enum Part<'a> {
    /// An object in its JSON form.
    Json(&'a Json),
    /// A Rollout.
    Rollout(&'a Rollout<'a>),
    /// A value of its own.
    Plain(Value),
    /// Nil.
    Nil,
}

/// A Rollout, and what Argo notes about it beside its JSON.
#[derive(Debug, Clone, Copy)]
pub struct Rollout<'a> {
    /// The object, with the template and the selector that its workloadRef led to.
    pub object: &'a Json,
    /// Where they come from.
    pub template: Template,
}

/// Where a Rollout's template and selector come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// They are its own.
    Own,
    /// Its workloadRef led to them.
    Referenced,
}

/// The types of Argo Rollouts' RPC.
pub fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        // The file is part of the program and a test reads it; without it every call would fail with `NoType`.
        serde_json::from_str(include_str!("types.json"))
            .unwrap_or_else(|_| Table { roots: HashMap::new(), schema: Arc::new(Schema { types: Vec::new() }) })
    })
}

impl Table {
    /// The types as gob needs them.
    pub fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }

    /// The place of an argument's or a header's type; one that does not exist leads to no type.
    pub fn root(&self, name: &str) -> usize {
        self.roots.get(name).copied().unwrap_or(usize::MAX)
    }

    /// An argument: its fields by their names in Go. Those that are not given are zero.
    pub fn argument(&self, name: &str, parts: &[(&str, Part<'_>)]) -> Result<Value, ObjectError> {
        let Some(Type { shape: Shape::Struct(fields), .. }) = self.schema.at(self.root(name)) else {
            return Err(ObjectError { path: name.to_owned(), expected: "a known argument" });
        };
        let mut out = Vec::new();
        for field in fields {
            let part = parts.iter().find(|(name, _)| *name == &*field.name).map(|(_, part)| part);
            let value = match part {
                Some(Part::Plain(value)) => Some(value.clone()),
                Some(Part::Rollout(rollout)) => {
                    let path = Path { up: None, name: &field.name };
                    let mut value = self.value(field.of, field.pointer, Some(rollout.object), &path)?;
                    if rollout.template == Template::Referenced {
                        value.as_mut().map(note_reference);
                    }
                    value
                }
                Some(Part::Json(json)) => {
                    self.value(field.of, field.pointer, Some(json), &Path { up: None, name: &field.name })?
                }
                Some(Part::Nil) | None => {
                    self.value(field.of, field.pointer, None, &Path { up: None, name: &field.name })?
                }
            };
            out.extend(value.map(|value| (Arc::clone(&field.name), value)));
        }
        Ok(Value::Struct(out))
    }

    /// What is sent of a JSON value; `None` if nothing is.
    fn value(&self, of: Of, pointer: bool, json: Option<&Json>, path: &Path<'_>) -> Result<Option<Value>, ObjectError> {
        let place = match of {
            // An explicit null is kept by Go as the four bytes that it is.
            Of::Bytes => return Ok(json.map(|json| Value::Bytes(compact(json).into_bytes()))),
            Of::Type(place) => place,
            _ => return basic(of, json, path),
        };
        let Some(declared) = self.schema.at(place) else { return Err(path.error("a known type")) };
        let json = json.filter(|json| !json.is_null());
        if let Form::Time = declared.form {
            return time(pointer, json, path);
        }
        let Some(json) = json else {
            // A struct is always sent; behind a pointer it may be nil.
            return match &declared.shape {
                Shape::Struct(_) if !pointer => Ok(Some(self.nothing(declared, path)?)),
                _ => Ok(None),
            };
        };
        match (declared.form, &declared.shape, json) {
            (Form::IntOrString, _, Json::String(text)) => {
                Ok(Some(fields([("Type", Value::Int(1)), ("StrVal", Value::Text(text.clone()))])))
            }
            (Form::IntOrString, ..) => {
                let number = basic(Of::Int32, Some(json), path)?;
                Ok(Some(Value::Struct(number.map(|number| (Arc::from("IntVal"), number)).into_iter().collect())))
            }
            (Form::Quantity, _, Json::String(text)) => Ok(Some(quantity(text))),
            (Form::Quantity, _, Json::Number(number)) => Ok(Some(quantity(&number.to_string()))),
            (Form::Raw, ..) => Ok(Some(fields([("Raw", Value::Bytes(compact(json).into_bytes()))]))),
            (Form::Plain, Shape::Slice(element), Json::Array(list)) => {
                let list = list.iter().enumerate().map(|(index, json)| {
                    self.element(*element, json, &Path { up: Some(path), name: &index.to_string() })
                });
                Ok(Some(Value::List(list.collect::<Result<_, _>>()?)))
            }
            (Form::Plain, Shape::Map(_, element), Json::Object(map)) => {
                let map = map.iter().map(|(key, json)| {
                    let value = self.element(*element, json, &Path { up: Some(path), name: key })?;
                    Ok((Value::Text(key.clone()), value))
                });
                Ok(Some(Value::Map(map.collect::<Result<_, _>>()?)))
            }
            (Form::Plain, Shape::Struct(_), Json::Object(_)) => Ok(Some(self.read_struct(declared, json, path)?)),
            (Form::Quantity, ..) => Err(path.error("a quantity")),
            (_, Shape::Slice(_) | Shape::Array(..), _) => Err(path.error("a list")),
            (..) => Err(path.error("an object")),
        }
    }

    fn nothing(&self, of: &Type, path: &Path<'_>) -> Result<Value, ObjectError> {
        self.read_struct(of, &Json::Null, path)
    }

    fn read_struct(&self, of: &Type, json: &Json, path: &Path<'_>) -> Result<Value, ObjectError> {
        let Shape::Struct(fields) = &of.shape else { return Err(path.error("an object")) };
        let mut out = Vec::new();
        for field in fields {
            let value = match &field.json {
                Some(name) => self.value(field.of, field.pointer, json.get(name), &Path { up: Some(path), name })?,
                None if field.inline => self.value(field.of, field.pointer, Some(json), path)?,
                None => None,
            };
            out.extend(value.map(|value| (Arc::clone(&field.name), value)));
        }
        Ok(Value::Struct(out))
    }

    /// An element of a list or a map: zeros are sent there.
    fn element(&self, of: Of, json: &Json, path: &Path<'_>) -> Result<Value, ObjectError> {
        if let Some(value) = self.value(of, false, Some(json), path)? {
            return Ok(value);
        }
        Ok(match of {
            Of::Bool => Value::Bool(false),
            Of::Int | Of::Int32 => Value::Int(0),
            Of::Uint => Value::Uint(0),
            Of::Text => Value::Text(String::new()),
            Of::Bytes => Value::Bytes(Vec::new()),
            Of::Type(place) => match self.schema.at(place).map(|of| &of.shape) {
                Some(Shape::Slice(_) | Shape::Array(..)) => Value::List(Vec::new()),
                Some(Shape::Map(..)) => Value::Map(Vec::new()),
                Some(Shape::Opaque { .. }) => Value::Opaque(Vec::new()),
                Some(Shape::Struct(_)) | None => Value::Struct(Vec::new()),
            },
            Of::Float | Of::Complex | Of::Interface => return Err(path.error("a known type")),
        })
    }
}

/// Where a value stands.
struct Path<'a> {
    up: Option<&'a Path<'a>>,
    name: &'a str,
}

impl Path<'_> {
    fn error(&self, expected: &'static str) -> ObjectError {
        let (mut path, mut at) = (self.name.to_owned(), self.up);
        while let Some(Path { up, name }) = at {
            path = format!("{name}.{path}");
            at = *up;
        }
        ObjectError { path, expected }
    }
}

/// Argo notes in fields that are not part of the JSON that a template and a selector were found through workloadRef.
fn note_reference(rollout: &mut Value) {
    let Value::Struct(fields) = rollout else { return };
    let spec = fields.iter_mut().find(|(name, _)| &**name == "Spec").map(|(_, spec)| spec);
    if let Some(Value::Struct(spec)) = spec {
        let names = ["TemplateResolvedFromRef", "SelectorResolvedFromRef"];
        spec.extend(names.map(|name| (Arc::from(name), Value::Bool(true))));
    }
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Struct(fields.into_iter().map(|(name, value)| (Arc::from(name), value)).collect())
}

fn basic(of: Of, json: Option<&Json>, path: &Path<'_>) -> Result<Option<Value>, ObjectError> {
    let Some(json) = json.filter(|json| !json.is_null()) else { return Ok(None) };
    let value = match (of, json) {
        (Of::Bool, Json::Bool(is)) => Some(Value::Bool(*is)),
        (Of::Text, Json::String(text)) => Some(Value::Text(text.clone())),
        (Of::Int, Json::Number(number)) => number.as_i64().map(Value::Int),
        (Of::Int32, Json::Number(number)) => {
            number.as_i64().filter(|number| i32::try_from(*number).is_ok()).map(Value::Int)
        }
        (Of::Uint, Json::Number(number)) => number.as_u64().map(Value::Uint),
        _ => None,
    };
    let expected = match of {
        Of::Bool => "true or false",
        Of::Text => "a string",
        Of::Int | Of::Uint => "a whole number",
        Of::Int32 => "a whole number of 32 bits",
        _ => "a known type",
    };
    value.map(Some).ok_or_else(|| path.error(expected))
}

/// Seconds from the year 1, which is Go's zero, to 1970.
const YEAR_ONE: i64 = 62_135_596_800;

/// `metav1.Time`: a version, seconds, nanoseconds, and the zone's offset in minutes. JSON has whole seconds, and Argo's
/// process moves them to its own zone, which is UTC with offset 0 in a container.
fn time(pointer: bool, json: Option<&Json>, path: &Path<'_>) -> Result<Option<Value>, ObjectError> {
    let Some(json) = json else { return Ok(None) };
    let moment = json.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let moment = moment.ok_or_else(|| path.error("a time as in RFC 3339"))?;
    let seconds = moment.duration_since(Timestamp::UNIX_EPOCH).as_secs() + YEAR_ONE;
    if seconds == 0 && !pointer {
        return Ok(None);
    }
    let mut out = vec![1];
    out.extend(seconds.to_be_bytes());
    out.extend([0; 6]);
    Ok(Some(Value::Opaque(out)))
}

/// A moment that a plugin sent; `None` for Go's zero time, which JSON has as null. One after the year 9999 or before -9999 is
/// taken for the last or the first that there is.
///
/// An offset with odd seconds has a version and a byte of its own, which Go misreads for negative offsets; the moment is
/// right in any case, and an offset is nothing that we keep.
pub fn read_time(bytes: &[u8]) -> Result<Option<Timestamp>, &'static str> {
    let (version, rest) = bytes.split_first().ok_or("an empty time")?;
    let length = match version {
        1 => 14,
        2 => 15,
        _ => return Err("a time of an unknown version"),
    };
    if rest.len() != length {
        return Err("a time of a wrong length");
    }
    let (seconds, rest) = rest.split_first_chunk::<8>().ok_or("a time of a wrong length")?;
    let (nanos, _) = rest.split_first_chunk::<4>().ok_or("a time of a wrong length")?;
    let (seconds, nanos) = (i64::from_be_bytes(*seconds), i32::from_be_bytes(*nanos));
    if (seconds, nanos) == (0, 0) {
        return Ok(None);
    }
    if !(0..1_000_000_000).contains(&nanos) {
        return Err("a time with more nanoseconds than a second has");
    }
    let seconds = seconds.saturating_sub(YEAR_ONE);
    let limit = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Ok(Some(Timestamp::new(seconds, nanos).unwrap_or(limit)))
}

/// Of a quantity only the notation is sent: its numbers are unexported fields, which gob does not see. Every plugin reads 0.
fn quantity(text: &str) -> Value {
    let suffix =
        text.trim_start_matches(['+', '-']).trim_start_matches(|char: char| char.is_ascii_digit() || char == '.');
    let format = if suffix.ends_with('i') {
        "BinarySI"
    } else if suffix.len() > 1 && suffix.starts_with(['e', 'E']) {
        "DecimalExponent"
    } else {
        "DecimalSI"
    };
    fields([("Format", Value::Text(format.into()))])
}

/// JSON as an API server stores it and Argo passes it on: without spaces, keys in order, numbers as Go writes them.
pub fn compact(json: &Json) -> String {
    let mut out = String::new();
    write_compact(json, &mut out);
    out
}

fn write_compact(json: &Json, out: &mut String) {
    match json {
        Json::Null | Json::Bool(_) | Json::String(_) => out.push_str(&json.to_string()),
        Json::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => out.push_str(&go_float(float)),
            None => out.push_str(&number.to_string()),
        },
        Json::Array(list) => {
            out.push('[');
            for (index, json) in list.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_compact(json, out);
            }
            out.push(']');
        }
        Json::Object(map) => {
            // Sorted here as well: another crate may have switched serde_json's maps to the order of insertion.
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, json)) in pairs.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Json::from(key.as_str()).to_string());
                out.push(':');
                write_compact(json, out);
            }
            out.push('}');
        }
    }
}

/// A float as Go's encoding/json writes it: 1000000, 1e+21, 1e-7.
fn go_float(float: f64) -> String {
    if float == 0.0 || (1e-6..1e21).contains(&float.abs()) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    if text.contains("e-") { text } else { text.replace('e', "e+") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_table_is_that_of_argo_rollouts() {
        let table = table();
        assert_eq!(table.schema.types.len(), 316);
        assert_eq!(table.roots.len(), 19);
        assert!(table.roots.values().all(|place| table.schema.at(*place).is_some()));
    }

    #[track_caller]
    fn check_error(rollout: Json, message: &str) {
        let error = table().argument("RemoveManagedRoutesArgs", &[("Rollout", Part::Json(&rollout))]);
        assert_eq!(error.map_err(|error| error.to_string()), Err(message.to_owned()));
    }

    #[test]
    fn json_of_another_type_is_named_by_its_path() {
        check_error(json!({"spec": {"replicas": "3"}}), "Rollout.spec.replicas: not a whole number of 32 bits");
        check_error(
            json!({"spec": {"replicas": 4_294_967_296_i64}}),
            "Rollout.spec.replicas: not a whole number of 32 bits",
        );
        check_error(json!({"spec": []}), "Rollout.spec: not an object");
        check_error(
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": 1}]}}}}),
            "Rollout.spec.template.spec.containers.1.name: not a string",
        );
        check_error(
            json!({"metadata": {"creationTimestamp": "yesterday"}}),
            "Rollout.metadata.creationTimestamp: not a time as in RFC 3339",
        );
        check_error(json!([]), "Rollout: not an object");
    }

    #[track_caller]
    fn check_compact(json: &str, wanted: &str) {
        assert_eq!(compact(&serde_json::from_str(json).expect("valid JSON")), wanted);
    }

    #[test]
    fn raw_json_is_compact_sorted_and_has_the_numbers_of_go() {
        check_compact(r#" {"b": [1, 2.5, null], "a": "é<" } "#, r#"{"a":"é<","b":[1,2.5,null]}"#);
        check_compact("1.0", "1");
        check_compact("1e6", "1000000");
        check_compact("1e21", "1e+21");
        check_compact("0.0000001", "1e-7");
        check_compact("-12.5e-9", "-1.25e-8");
    }

    #[test]
    fn a_time_that_is_none_is_refused() {
        assert_eq!(read_time(&[]), Err("an empty time"));
        assert_eq!(read_time(&[1; 14]), Err("a time of a wrong length"));
        assert_eq!(read_time(&[3; 15]), Err("a time of an unknown version"));
        let time = |nanos: u8| read_time(&[1, 0x7f, 255, 255, 255, 255, 255, 255, 255, nanos, 0, 0, 0, 0, 0]);
        assert_eq!(time(0), Ok(Some(Timestamp::MAX)));
        assert_eq!(time(0x7f), Err("a time with more nanoseconds than a second has"));
    }
}
