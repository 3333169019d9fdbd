//! Server-side apply: who owns which field, and what an apply changes.

use serde::{Serialize, Serializer};

use super::value::Value;

/// `metadata.managedFields`, decoded: one entry per manager, operation, version and subresource.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Managers;

impl Managers {
    /// Whether nobody owns anything.
    pub fn is_empty(&self) -> bool {
        true
    }

    /// As on the wire.
    pub fn to_value(&self) -> Value {
        Value::list([])
    }
}

impl Serialize for Managers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}
