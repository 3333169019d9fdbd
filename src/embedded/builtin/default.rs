//! Defaults of built-in kinds.

use crate::embedded::{kind::Kind, value::Value};

/// Fills in what the built-in defaulters do.
pub fn default(_kind: &Kind, _value: &mut Value) {}
