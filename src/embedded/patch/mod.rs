//! Patches.

use super::{schema::Schema, status::Status, value::Value};

/// RFC 6902.
pub fn json(target: &Value, _patch: &Value) -> Result<Value, Status> {
    Ok(target.clone())
}

/// RFC 7386.
pub fn merge(target: &Value, patch: &Value) -> Value {
    let Some(fields) = patch.as_map() else { return patch.clone() };
    let mut out = if target.as_map().is_some() { target.clone() } else { Value::object() };
    for (key, value) in fields.iter() {
        if value.is_null() {
            out.remove_at(&[key]);
        } else {
            let merged = merge(target.get(key).unwrap_or(&Value::Null), value);
            out.set_at(&[key], merged);
        }
    }
    out
}

/// Kubernetes' own.
pub fn strategic(_schema: &Schema, target: &Value, patch: &Value) -> Result<Value, Status> {
    Ok(merge(target, patch))
}
