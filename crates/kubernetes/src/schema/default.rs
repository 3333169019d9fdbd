//! Filling in what a custom resource's schema says of absent fields.

use super::{Schema, Shape, Struct};
use crate::value::{Map, Value};

/// Removes nulls that are no values and puts defaults in the place of absent fields. Copies only what changes.
pub fn fill(schema: &Schema, value: &mut Value) {
    fill_since(schema, value, None);
}

/// As [`fill`], but leaves alone what is shared with `old`, a value that was filled by this schema before.
pub fn fill_since(schema: &Schema, value: &mut Value, old: Option<&Value>) {
    if let Some(filled) = filled(schema, value, old) {
        *value = filled;
    }
}

/// What becomes of a value; `None` if it stays as it is.
fn filled(schema: &Schema, value: &Value, old: Option<&Value>) -> Option<Value> {
    if old.is_some_and(|old| value.is(old)) {
        return None;
    }
    match (value, &schema.shape) {
        (Value::Map(map), Shape::Struct(fields)) => struct_filled(fields, map, old.and_then(Value::as_map)),
        (Value::Map(map), Shape::Map { values, .. }) => map_filled(values, map, old.and_then(Value::as_map)),
        (Value::List(items), Shape::List { items: schema, .. }) => {
            let mut result: Option<Vec<Value>> = None;
            for (i, item) in items.iter().enumerate() {
                let changed = match &schema.default {
                    Some(default) if item.is_null() && !schema.nullable => {
                        Some(filled(schema, default, None).unwrap_or_else(|| default.clone()))
                    }
                    _ => filled(schema, item, None),
                };
                if let Some(changed) = changed {
                    result.get_or_insert_with(|| items.to_vec())[i] = changed;
                }
            }
            result.map(Value::from)
        }
        _ => None,
    }
}

fn struct_filled(fields: &Struct, map: &Map, old: Option<&Map>) -> Option<Value> {
    let mut result: Option<Map> = None;
    for (key, value) in map.iter() {
        let Some(field) = fields.field(key) else { continue };
        if value.is_null() && !field.schema.nullable {
            // Not a value: as good as absent. Where there is a default, the loop below puts it here.
            if field.schema.default.is_none() {
                result.get_or_insert_with(|| map.clone()).remove(key);
            }
            continue;
        }
        if let Some(changed) = filled(&field.schema, value, old.and_then(|old| old.get(key))) {
            result.get_or_insert_with(|| map.clone()).insert(key.clone(), changed);
        }
    }
    for (key, field) in &fields.fields {
        let Some(default) = &field.schema.default else { continue };
        let given = map.get(key);
        if given.is_none() || (given.is_some_and(Value::is_null) && !field.schema.nullable) {
            // The default may itself lack fields that have defaults.
            let value = filled(&field.schema, default, None).unwrap_or_else(|| default.clone());
            result.get_or_insert_with(|| map.clone()).insert(key.clone(), value);
        }
    }
    result.map(Value::Map)
}

fn map_filled(schema: &Schema, map: &Map, old: Option<&Map>) -> Option<Value> {
    let mut result: Option<Map> = None;
    for (key, value) in map.iter() {
        if value.is_null() && !schema.nullable {
            let result = result.get_or_insert_with(|| map.clone());
            match &schema.default {
                Some(default) => {
                    let value = filled(schema, default, None).unwrap_or_else(|| default.clone());
                    result.insert(key.clone(), value);
                }
                None => {
                    result.remove(key);
                }
            }
        } else if let Some(changed) = filled(schema, value, old.and_then(|old| old.get(key))) {
            result.get_or_insert_with(|| map.clone()).insert(key.clone(), changed);
        }
    }
    result.map(Value::Map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        schema::{crd, prune::prune},
        value,
    };

    #[test]
    fn an_object_that_needs_nothing_is_not_copied() {
        let schema = crd::resource(
            &value!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "replicas": {"type": "integer", "default": 1},
                "items": {"type": "array", "items": {"type": "object", "properties": {"on": {"type": "boolean", "default": true}}}},
            }}}}),
        );
        let mut object = value!({"spec": {"items": [{}, {"on": false}], "unknown": 1}});
        assert_eq!(prune(&schema, &mut object), ["spec.unknown"]);
        fill(&schema, &mut object);
        assert_eq!(object, value!({"spec": {"replicas": 1, "items": [{"on": true}, {"on": false}]}}));
        let before = object.clone();
        assert!(prune(&schema, &mut object).is_empty());
        fill(&schema, &mut object);
        assert!(object.is(&before));
    }
}
