//! From what `schemars` says about a type to what a CustomResourceDefinition may say.

use schemars::{JsonSchema, generate::SchemaSettings};

use super::builtin;
use crate::kubernetes::value::{Map, Value, intern};

/// The key by which a field says that it must be given. `schemars` takes every field for optional, because reading is
/// lenient.
const REQUIRED: &str = "x-required";

/// The structural schema of a type.
pub fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = structural(&Value::from(schema.to_value()));
    // The API server insists on describing metadata itself.
    schema.remove_at(&["properties", "metadata", "description"]);
    schema
}

/// Rewrites a schema and everything in it.
fn structural(schema: &Value) -> Value {
    let Some(map) = schema.as_map() else { return schema.clone() };
    let mut out = match map.get(builtin::MARK).and_then(Value::as_str) {
        Some(name) => builtin::schema(name).as_map().cloned().unwrap_or_default(),
        None => Map::default(),
    };
    for (key, value) in map.iter() {
        match key.as_str() {
            // `schemars` takes the zero of every field for a default that a server should fill in.
            "default" | "title" | "required" | REQUIRED | builtin::MARK => {}
            "x-default" => drop(out.insert(intern("default"), value)),
            "type" => drop(out.insert(key.clone(), without_null(value))),
            // Doc comments are wrapped for people who read code.
            "description" => drop(out.insert(key.clone(), value.as_str().unwrap_or_default().replace('\n', " "))),
            "properties" => {
                out.insert(key.clone(), each(value));
                let required = required(value);
                if !required.is_empty() {
                    out.insert(intern("required"), required);
                }
            }
            "items" | "additionalProperties" => drop(out.insert(key.clone(), structural(value))),
            _ => drop(out.insert(key.clone(), value)),
        }
    }
    // An optional struct is one of itself and null.
    if let Some([one, null]) = out.get("anyOf").and_then(Value::as_list)
        && null.get("type") == Some(&Value::from("null"))
    {
        let one = structural(one);
        out.remove("anyOf");
        for (key, value) in one.as_map().into_iter().flat_map(Map::iter) {
            if !out.contains_key(key) {
                out.insert(key.clone(), value);
            }
        }
    }
    Value::Map(out)
}

fn each(properties: &Value) -> Value {
    let fields = properties.as_map().into_iter().flat_map(Map::iter);
    Value::Map(fields.map(|(name, schema)| (name.clone(), structural(schema))).collect())
}

fn required(properties: &Value) -> Vec<Value> {
    let fields = properties.as_map().into_iter().flat_map(Map::iter);
    fields.filter(|(_, schema)| schema.get(REQUIRED).is_some()).map(|(name, _)| name.into()).collect()
}

/// `["integer", "null"]` is `integer`: in Kubernetes, null is absent.
fn without_null(r#type: &Value) -> Value {
    let first = r#type.as_list().and_then(|types| types.iter().find(|name| **name != "null"));
    first.unwrap_or(r#type).clone()
}
