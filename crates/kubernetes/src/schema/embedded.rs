//! Embedded resources: whole Kubernetes objects inside a custom resource (`x-kubernetes-embedded-resource`).
//!
//! Their type and metadata are decoded and judged as those of an object of its own; the rest is the custom resource's.

use super::{Schema, Shape, path::Path, typed, validate::below};
use crate::{
    facts,
    kind::Kind,
    names,
    status::FieldError,
    value::{Map, Value},
};

/// The type of metadata.
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Decodes the type and metadata of embedded resources: returns the paths of metadata fields that are unknown and were
/// dropped, or what has the wrong type.
pub fn coerce(kind: &Kind, value: &mut Value) -> Result<Vec<String>, String> {
    let mut unknown = Vec::new();
    if let Some(changed) =
        coerced(&kind.schema, value, &Path::ROOT, &mut unknown).map_err(|problem| problem.to_string())?
    {
        *value = changed;
    }
    unknown.sort();
    Ok(unknown)
}

/// What becomes of a value; `None` if it stays as it is.
fn coerced(
    schema: &Schema,
    value: &Value,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<Option<Value>, FieldError> {
    if !below(schema).embedded {
        return Ok(None);
    }
    match (value, &schema.shape) {
        (Value::Map(map), Shape::Struct(fields)) => {
            let mut result: Option<Map> = None;
            for (key, value) in map.iter() {
                let at = path.field(key);
                let changed = match (key.as_str(), fields.field(key)) {
                    ("apiVersion" | "kind", _) if fields.embedded => {
                        if value.as_str().is_none() {
                            return Err(FieldError::invalid(at.to_string(), value, "must be a string"));
                        }
                        None
                    }
                    ("metadata", _) if fields.embedded => metadata(value, &at, unknown)?,
                    (_, Some(field)) => coerced(&field.schema, value, &at, unknown)?,
                    (_, None) => None,
                };
                if let Some(changed) = changed {
                    result.get_or_insert_with(|| map.clone()).insert(key.clone(), changed);
                }
            }
            Ok(result.map(Value::Map))
        }
        (Value::Map(map), Shape::Map { values, .. }) => {
            let mut result: Option<Map> = None;
            for (key, value) in map.iter() {
                if let Some(changed) = coerced(values, value, &path.key(key), unknown)? {
                    result.get_or_insert_with(|| map.clone()).insert(key.clone(), changed);
                }
            }
            Ok(result.map(Value::Map))
        }
        (Value::List(items), Shape::List { items: schema, .. }) => {
            let mut result: Option<Vec<Value>> = None;
            for (i, item) in items.iter().enumerate() {
                if let Some(changed) = coerced(schema, item, &path.index(i), unknown)? {
                    result.get_or_insert_with(|| items.to_vec())[i] = changed;
                }
            }
            Ok(result.map(Value::from))
        }
        _ => Ok(None),
    }
}

fn metadata(value: &Value, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<Option<Value>, FieldError> {
    // Metadata is the same in every kind.
    let (Some(kind), Some(schema)) = (facts::kinds().first(), facts::named(OBJECT_META)) else { return Ok(None) };
    let decoded =
        typed::decode(kind, schema, value).map_err(|words| FieldError::invalid(path.to_string(), value, words))?;
    unknown.extend(decoded.unknown.iter().map(|field| format!("{path}.{field}")));
    let mut changed = decoded.value;
    // Go writes a time that was never set as null; here it is dropped.
    if changed.get("creationTimestamp").is_some_and(Value::is_null) {
        changed.remove_at(&["creationTimestamp"]);
    }
    Ok((!changed.is(value)).then_some(changed))
}

/// What is wrong with the type and metadata of embedded resources in a value that was not decoded; `Err` if it could not
/// be.
pub(super) fn check(schema: &Schema, value: &Value) -> Result<Vec<FieldError>, FieldError> {
    let coerced = coerced(schema, value, &Path::ROOT, &mut Vec::new())?;
    let mut problems = Vec::new();
    validate(schema, coerced.as_ref().unwrap_or(value), &mut problems);
    Ok(problems)
}

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
        let at = path.field(key);
        match (key.as_str(), value) {
            ("apiVersion" | "kind", Value::Str(text)) if text.is_empty() => {
                problems.push(FieldError::invalid(at.to_string(), "", "must not be empty"));
            }
            ("apiVersion", Value::Str(text)) if text.matches('/').count() > 1 => {
                let words = format!("unexpected GroupVersion string: {text}");
                problems.push(FieldError::invalid(at.to_string(), text, words));
            }
            ("kind", Value::Str(text)) => {
                let found = names::dns1035_label(&text.to_lowercase());
                if !found.is_empty() {
                    let words = format!("may have mixed case, but should otherwise match: {}", found.join(","));
                    problems.push(FieldError::invalid(at.to_string(), text, words));
                }
            }
            ("metadata", Value::Map(meta)) => object_meta(meta, &at, problems),
            _ => {}
        }
    }
}

/// The rules on the metadata of any object, without those on a name of its own kind.
fn object_meta(meta: &Map, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    let text = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut report = |key: &str, value: &str, found: Vec<String>| {
        let field = path.field(key).to_string();
        problems.extend(found.into_iter().map(|words| FieldError::invalid(field.clone(), value, words)));
    };
    for key in ["generateName", "name"] {
        if !text(key).is_empty() {
            report(key, text(key), names::path_segment(text(key)));
        }
    }
    if !text("namespace").is_empty() {
        report("namespace", text("namespace"), names::dns_label(text("namespace")));
    }
    if let Some(generation) = meta.get("generation").and_then(Value::as_int).filter(|n| *n < 0) {
        let words = "must be greater than or equal to 0";
        problems.push(FieldError::invalid(path.field("generation").to_string(), generation, words));
    }
    let mut report = |key: &str, value: &str, found: Vec<String>| {
        let field = path.field(key).to_string();
        problems.extend(found.into_iter().map(|words| FieldError::invalid(field.clone(), value, words)));
    };
    let entries = |key: &str| meta.get(key).and_then(Value::as_map).cloned().unwrap_or_default();
    for (key, value) in entries("labels").iter() {
        report("labels", key, names::label_key(key));
        let value = value.as_str().unwrap_or_default();
        report("labels", value, names::label_value(value));
    }
    for key in entries("annotations").keys() {
        report("annotations", key, names::label_key(&key.to_lowercase()));
    }
    for owner in meta.get("ownerReferences").and_then(Value::as_list).unwrap_or_default() {
        owner_reference(owner, &path.field("ownerReferences"), problems);
    }
    let field = path.field("finalizers").to_string();
    for finalizer in meta.get("finalizers").and_then(Value::as_list).unwrap_or_default() {
        let name = finalizer.as_str().unwrap_or_default();
        problems
            .extend(names::label_key(name).into_iter().map(|words| FieldError::invalid(field.clone(), name, words)));
    }
}

fn owner_reference(owner: &Value, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    let text = |key: &str| owner.str_at(&[key]).unwrap_or_default();
    let version = text("apiVersion").rsplit('/').next().unwrap_or_default();
    if version.is_empty() {
        let words = "version must not be empty";
        problems.push(FieldError::invalid(path.field("apiVersion").to_string(), text("apiVersion"), words));
    }
    for key in ["kind", "name", "uid"] {
        if text(key).is_empty() {
            problems.push(FieldError::invalid(path.field(key).to_string(), "", "must not be empty"));
        }
    }
}
