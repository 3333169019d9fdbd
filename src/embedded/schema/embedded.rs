//! Embedded resources: whole Kubernetes objects inside a custom resource (`x-kubernetes-embedded-resource`).

use super::{Schema, Shape, path::Path, validate::below};
use crate::embedded::{
    names,
    status::FieldError,
    value::{Map, Value},
};

/// What is wrong with the type and metadata of embedded resources.
pub(super) fn validate(schema: &Schema, value: &Value, problems: &mut Vec<FieldError>) {
    walk(schema, value, &Path::ROOT, problems);
}

fn walk(schema: &Schema, value: &Value, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    if !below(schema).embedded {
        return;
    }
    match (value, &schema.shape) {
        (Value::Map(map), Shape::Struct(fields)) => {
            if fields.embedded {
                resource(map, path, problems);
            }
            for (key, value) in map.iter() {
                if let Some(field) = fields.field(key) {
                    walk(&field.schema, value, &path.field(key), problems);
                }
            }
        }
        (Value::Map(map), Shape::Map { values, .. }) => {
            map.iter().for_each(|(key, value)| walk(values, value, &path.key(key), problems));
        }
        (Value::List(items), Shape::List { items: schema, .. }) => {
            items.iter().enumerate().for_each(|(i, item)| walk(schema, item, &path.index(i), problems));
        }
        _ => {}
    }
}

fn resource(map: &Map, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    for key in ["apiVersion", "kind"] {
        if !map.contains_key(key) {
            problems.push(FieldError::required(path.field(key).to_string(), ""));
        }
    }
    for (key, value) in map.iter() {
        let field = || path.field(key).to_string();
        match (key.as_str(), value) {
            ("apiVersion" | "kind", Value::Str(text)) if text.is_empty() => {
                problems.push(FieldError::invalid(field(), "", "must not be empty"));
            }
            ("apiVersion", Value::Str(text)) if text.matches('/').count() > 1 => {
                problems.push(FieldError::invalid(field(), text, format!("unexpected GroupVersion string: {text}")));
            }
            ("kind", Value::Str(text)) => {
                let found = names::dns1035_label(&text.to_lowercase());
                if !found.is_empty() {
                    let words = format!("may have mixed case, but should otherwise match: {}", found.join(","));
                    problems.push(FieldError::invalid(field(), text, words));
                }
            }
            ("apiVersion", Value::Str(_)) => {}
            ("apiVersion" | "kind", other) => {
                problems.push(FieldError::invalid(field(), other, "must be a string"));
            }
            _ => {}
        }
    }
}
