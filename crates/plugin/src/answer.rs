//! Reads what a plugin answers, field by field, and refuses what is of another kind.
//!
//! A field that was not sent is zero; fields that we do not know are ignored. Both happen with plugins built against other
//! versions of Argo Rollouts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value as Json;

use crate::{gob::Value, object};

/// An answer that is not what the method returns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the plugin's answer has {field}, which is {problem}")]
pub struct AnswerError {
    /// Where: `Measurement.Phase`.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

fn wrong(field: &'static str, problem: impl Into<String>) -> AnswerError {
    AnswerError { field, problem: problem.into() }
}

/// A struct.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(Option<&'a Value>);

impl<'a> Fields<'a> {
    /// The fields of an answer.
    pub fn of(value: &'a Value, name: &'static str) -> Result<Self, AnswerError> {
        Fields::read(Some(value), name)
    }

    fn read(value: Option<&'a Value>, name: &'static str) -> Result<Self, AnswerError> {
        match value {
            None | Some(Value::Struct(_)) => Ok(Fields(value)),
            Some(_) => Err(wrong(name, "not a struct")),
        }
    }

    fn field(&self, name: &'static str) -> Option<&'a Value> {
        self.0.and_then(|fields| fields.field(name))
    }

    /// A struct in it.
    pub fn inner(&self, name: &'static str) -> Result<Fields<'a>, AnswerError> {
        Fields::read(self.field(name), name)
    }

    /// A text.
    pub fn text(&self, name: &'static str) -> Result<String, AnswerError> {
        match self.field(name) {
            None => Ok(String::new()),
            Some(Value::Text(text)) => Ok(text.clone()),
            Some(_) => Err(wrong(name, "not a string")),
        }
    }

    /// A number.
    pub fn int(&self, name: &'static str) -> Result<i64, AnswerError> {
        match self.field(name) {
            None => Ok(0),
            Some(Value::Int(number)) => Ok(*number),
            Some(_) => Err(wrong(name, "not a whole number")),
        }
    }

    /// A moment.
    pub fn time(&self, name: &'static str) -> Result<Option<Timestamp>, AnswerError> {
        match self.field(name) {
            None => Ok(None),
            Some(Value::Opaque(bytes)) => object::read_time(bytes).map_err(|problem| wrong(name, problem)),
            Some(_) => Err(wrong(name, "not a time")),
        }
    }

    /// Texts by texts.
    pub fn texts(&self, name: &'static str) -> Result<BTreeMap<String, String>, AnswerError> {
        self.field(name).map_or_else(|| Ok(BTreeMap::new()), |value| texts(value, name))
    }

    /// JSON as text.
    pub fn json(&self, name: &'static str) -> Result<Option<Json>, AnswerError> {
        match self.field(name) {
            None => Ok(None),
            Some(Value::Bytes(bytes)) if bytes.is_empty() => Ok(None),
            Some(Value::Bytes(bytes)) => {
                serde_json::from_slice(bytes).map(Some).map_err(|error| wrong(name, format!("not JSON: {error}")))
            }
            Some(_) => Err(wrong(name, "not JSON in bytes")),
        }
    }
}

/// A map of texts.
pub fn texts(value: &Value, name: &'static str) -> Result<BTreeMap<String, String>, AnswerError> {
    let Value::Map(map) = value else { return Err(wrong(name, "not a map")) };
    let pairs = map.iter().map(|pair| match pair {
        (Value::Text(key), Value::Text(text)) => Ok((key.clone(), text.clone())),
        _ => Err(wrong(name, "not a map of strings")),
    });
    pairs.collect()
}

/// A text that is the whole answer.
pub fn text(value: &Value, name: &'static str) -> Result<String, AnswerError> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        _ => Err(wrong(name, "not a string")),
    }
}

/// The text of an `RpcError` that is the whole answer; empty if there is none.
pub fn rpc_error(value: &Value) -> Result<String, AnswerError> {
    Fields::of(value, "RpcError")?.text("ErrorString")
}
