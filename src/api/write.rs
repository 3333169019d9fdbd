//! From a type to its object.

use serde::Serialize;

use crate::kubernetes::value::Value;

/// The object of a wire type, with the fields that Go would write.
pub fn write<T: Serialize>(object: &T) -> Value {
    // Cannot fail: every key is a string and every number finite.
    serde_json::to_value(object).map(Value::from).unwrap_or_default()
}
