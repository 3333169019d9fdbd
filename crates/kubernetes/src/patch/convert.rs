//! What upstream says when the outcome of a strategic merge patch does not fit its type.
//!
//! A strategic merge is done on maps, not on JSON, and its outcome is converted field by field: in words that differ from
//! those of the JSON decoder, which judges the outcome of the other patches.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{
    schema::{Schema, Shape},
    value::Value,
};

use super::json_type;

/// The first value that does not fit its type, in upstream's words. Texts of quantities and times are not judged here.
pub fn mistyped(schema: &Schema, value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    match &schema.shape {
        Shape::Any | Shape::Quantity | Shape::Time | Shape::MicroTime | Shape::Duration => None,
        Shape::Bool => (!matches!(value, Value::Bool(_))).then(|| "unrecognized type: bool".to_owned()),
        Shape::Int32 => integer(value, "int32"),
        Shape::Int64 => integer(value, "int64"),
        Shape::Number => match value {
            Value::Int(_) | Value::Float(_) => None,
            _ => Some("unrecognized type: float64".to_owned()),
        },
        Shape::Str => match value {
            Value::Str(_) => None,
            // Go could turn an integer into a string (of one character), so this refusal is worded differently.
            Value::Int(_) => Some("cannot convert int64 to string".to_owned()),
            _ => Some("unrecognized type: string".to_owned()),
        },
        Shape::IntOrString => match value {
            Value::Str(_) => None,
            Value::Int(n) if i32::try_from(*n).is_ok() => None,
            Value::Int(_) | Value::Float(_) => {
                Some(format!("json: cannot unmarshal number {value} into Go value of type int32"))
            }
            _ => Some(format!("json: cannot unmarshal {} into Go value of type int32", json_type(value))),
        },
        Shape::Bytes => match value {
            Value::Str(text) => illegal_base64(text),
            other => Some(format!("cannot restore slice from {}", go_kind(other))),
        },
        Shape::Struct(fields) => match value {
            Value::Map(map) => fields.fields.iter().find_map(|(name, field)| mistyped(&field.schema, map.get(name)?)),
            other => Some(format!("cannot restore struct from: {}", go_kind(other))),
        },
        Shape::Map { values, .. } => match value {
            Value::Map(map) => map.values().find_map(|value| mistyped(values, value)),
            other => Some(format!("cannot restore map from {}", go_kind(other))),
        },
        Shape::List { items, .. } => match value {
            Value::List(list) => list.iter().find_map(|item| mistyped(items, item)),
            other => Some(format!("cannot restore slice from {}", go_kind(other))),
        },
    }
}

fn integer(value: &Value, go_type: &str) -> Option<String> {
    match value {
        Value::Int(_) => None,
        Value::Float(f) if f.fract() == 0.0 => None,
        Value::Float(_) => Some(format!("cannot convert float64 to {go_type}")),
        _ => Some(format!("unrecognized type: {go_type}")),
    }
}

/// Go names the byte at which its decoder gave up.
fn illegal_base64(text: &str) -> Option<String> {
    let clean: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    if STANDARD.decode(&clean).is_ok() {
        return None;
    }
    let bad = |b: u8| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
    let at = text.bytes().position(bad).unwrap_or_else(|| clean.len() / 4 * 4);
    Some(format!("error decoding from json: illegal base64 data at input byte {at}"))
}

/// What Go's reflection calls the kind of a decoded value.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::Str(_) => "string",
        Value::List(_) => "slice",
        Value::Map(_) => "map",
    }
}
