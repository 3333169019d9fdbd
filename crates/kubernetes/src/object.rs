//! A stored object: its tree, and who owns which of its fields.

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{
    apply::Managers,
    value::{Map, Text, Value},
};

/// An object as stored and as sent to clients. Immutable; a write makes a new one that shares what did not change.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// The whole object with apiVersion, kind and metadata, without `metadata.managedFields`.
    pub value: Value,
    /// `metadata.managedFields`, decoded.
    pub managers: Arc<Managers>,
}

impl Object {
    /// The metadata; empty if the object has none.
    pub fn metadata(&self) -> Option<&Map> {
        self.value.get("metadata")?.as_map()
    }

    fn meta(&self, key: &str) -> Option<&Value> {
        self.metadata()?.get(key)
    }

    /// `metadata.name`
    pub fn name(&self) -> Text {
        self.meta("name").and_then(Value::as_text).cloned().unwrap_or_default()
    }

    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub fn namespace(&self) -> Text {
        self.meta("namespace").and_then(Value::as_text).cloned().unwrap_or_default()
    }

    /// `metadata.uid`
    pub fn uid(&self) -> Text {
        self.meta("uid").and_then(Value::as_text).cloned().unwrap_or_default()
    }

    /// `metadata.resourceVersion`
    pub fn version(&self) -> u64 {
        self.meta("resourceVersion").and_then(Value::as_str).and_then(|rv| rv.parse().ok()).unwrap_or(0)
    }

    /// `metadata.labels`
    pub fn labels(&self) -> Option<&Map> {
        self.meta("labels")?.as_map()
    }

    /// One of `metadata.annotations`.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.meta("annotations")?.get(key)?.as_str()
    }

    /// Whether `metadata.deletionTimestamp` is set.
    pub fn is_terminating(&self) -> bool {
        self.meta("deletionTimestamp").is_some_and(|time| !time.is_null())
    }

    /// The tree with `metadata.managedFields` put back: what a client that edits and writes back must see.
    pub fn with_managed_fields(&self) -> Value {
        let mut value = self.value.clone();
        if !self.managers.is_empty() {
            value.set_at(&["metadata", "managedFields"], self.managers.to_value());
        }
        value
    }
}

/// The uid of the object that manages this one, if one does.
pub fn controller(object: &Value) -> Option<Text> {
    controlling(object)?.get("uid")?.as_text().cloned()
}

/// The name of the object that manages this one, if one does.
pub fn controller_name(object: &Value) -> Option<Text> {
    controlling(object)?.get("name")?.as_text().cloned()
}

fn controlling(object: &Value) -> Option<&Value> {
    let owners = object.list_at(&["metadata", "ownerReferences"]);
    owners.iter().find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))
}

impl Serialize for Object {
    /// Writes the tree with `metadata.managedFields` spliced in, without building it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(map) = self.value.as_map().filter(|_| !self.managers.is_empty()) else {
            return self.value.serialize(serializer);
        };
        let mut out = serializer.serialize_map(Some(map.len()))?;
        for (key, value) in map.iter() {
            match value.as_map().filter(|_| *key == "metadata") {
                Some(metadata) => out.serialize_entry(key.as_str(), &Metadata(metadata, &self.managers))?,
                None => out.serialize_entry(key.as_str(), value)?,
            }
        }
        out.end()
    }
}

struct Metadata<'a>(&'a Map, &'a Managers);

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(Some(self.0.len() + 1))?;
        self.0.iter().try_for_each(|(key, value)| out.serialize_entry(key.as_str(), value))?;
        out.serialize_entry("managedFields", self.1)?;
        out.end()
    }
}
