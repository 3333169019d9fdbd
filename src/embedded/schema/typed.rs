//! Decoding as Go does.

use super::Schema;
use crate::embedded::{kind::Kind, value::Value};

/// What decoding made of a value.
pub struct Decoded {
    /// The value as Go would encode it again.
    pub value: Value,
    /// The paths of fields nobody knows.
    pub unknown: Vec<String>,
}

/// Reads a value as this type.
pub fn decode(_kind: &Kind, _schema: &Schema, value: &Value) -> Result<Decoded, String> {
    Ok(Decoded { value: value.clone(), unknown: Vec::new() })
}
