//! Dropping what a custom resource's schema does not know.

use std::sync::Arc;

use super::{Schema, Shape, path::Path};
use crate::value::{Map, Value};

/// Removes fields the schema does not know and returns their paths, sorted. The fields every object has (`apiVersion`,
/// `kind`, `metadata`) are not looked at. Copies only what changes.
pub fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    prune_since(schema, value, None)
}

/// As [`prune`], but leaves alone what is shared with `old`, a value that was pruned by this schema before.
pub fn prune_since(schema: &Schema, value: &mut Value, old: Option<&Value>) -> Vec<String> {
    let mut dropped = Vec::new();
    if let Some(map) = value.as_map()
        && let Some(pruned) = object(schema, map, old.and_then(Value::as_map), &Path::ROOT, &mut dropped)
    {
        *value = Value::Map(pruned);
    }
    dropped.sort();
    dropped
}

/// As [`prune`], of a value inside an object.
pub(super) fn prune_part(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    // Any step will do: only at the top of an object are its type and metadata passed by.
    let path = Path::ROOT.field("");
    if let Some(pruned) = prune_value(schema, value, None, &path, &mut dropped) {
        *value = pruned;
    }
    dropped
}

/// Whether every object has this field at its top.
pub(super) fn is_meta(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

/// What becomes of a value; `None` if it stays as it is.
fn prune_value(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    dropped: &mut Vec<String>,
) -> Option<Value> {
    if old.is_some_and(|old| value.is(old)) {
        return None;
    }
    match value {
        Value::Map(map) => object(schema, map, old.and_then(Value::as_map), path, dropped).map(Value::Map),
        Value::List(items) => list(schema, items, path, dropped),
        _ => None,
    }
}

fn object(schema: &Schema, map: &Map, old: Option<&Map>, path: &Path<'_>, dropped: &mut Vec<String>) -> Option<Map> {
    let (fields, values, open, embedded) = match &schema.shape {
        Shape::Any => return None,
        Shape::Struct(s) => (Some(s), None, s.open, s.embedded),
        Shape::Map { values, .. } => (None, Some(values), false, false),
        // An object where the schema has a scalar or a list: everything in it is unknown; the type is complained about later.
        _ => (None, None, schema.rules.as_ref().is_some_and(|rules| rules.keep), false),
    };
    let mut result: Option<Map> = None;
    for (key, value) in map.iter() {
        if (embedded || path.is_root()) && is_meta(key) {
            continue;
        }
        let (child, step) = match (fields.and_then(|fields| fields.field(key)), values) {
            (Some(field), _) => (&field.schema, path.field(key)),
            (None, Some(values)) => (values, path.key(key)),
            (None, None) => {
                if !open {
                    dropped.push(path.field(key).dotted());
                    result.get_or_insert_with(|| map.clone()).remove(key);
                }
                continue;
            }
        };
        let before = old.and_then(|old| old.get(key));
        if let Some(changed) = prune_value(child, value, before, &step, dropped) {
            result.get_or_insert_with(|| map.clone()).insert(key.clone(), changed);
        }
    }
    result
}

fn list(schema: &Schema, items: &Arc<Vec<Value>>, path: &Path<'_>, dropped: &mut Vec<String>) -> Option<Value> {
    let keep = schema.rules.as_ref().is_some_and(|rules| rules.keep);
    let item_schema = match &schema.shape {
        Shape::Any => return None,
        Shape::List { items, .. } => Some(items),
        Shape::Struct(s) if s.open => return None,
        _ => None,
    };
    let empty = Schema::of(Shape::Struct(super::Struct { open: keep, ..Default::default() }));
    let item_schema = item_schema.map_or(&empty, |schema| schema);
    let mut result: Option<Vec<Value>> = None;
    for (i, item) in items.iter().enumerate() {
        let changed = match (item, &item_schema.shape) {
            // Unknown fields of the items are kept, while known ones are still looked into.
            (Value::Map(map), Shape::Struct(s)) if keep && !s.open => {
                let open = Schema::of(Shape::Struct(super::Struct { open: true, ..s.clone() }));
                object(&open, map, None, &path.index(i), dropped).map(Value::Map)
            }
            _ => prune_value(item_schema, item, None, &path.index(i), dropped),
        };
        if let Some(changed) = changed {
            result.get_or_insert_with(|| items.to_vec())[i] = changed;
        }
    }
    result.map(Value::from)
}
