//! Whether a schema is structural: every field has a type outside of alternatives, and metadata is left alone.

use super::props::{Additional, Props};
use crate::{
    schema::{path::Path, regexp},
    status::FieldError,
    value::{Text, Value},
};

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps a schema from being structural, in the order of its texts as upstream sorts them. `Err` names a construct
/// that cannot even be asked.
pub(super) fn validate(path: &Path<'_>, schema: Props<'_>) -> Result<Vec<FieldError>, String> {
    unsupported(schema)?;
    let mut problems = Vec::new();
    invariants(schema, Level::Root, path, &mut problems);
    complete(schema, schema, path, path, &mut problems);
    problems.sort_by_cached_key(FieldError::to_string);
    Ok(problems)
}

/// The constructs structural schemas have no place for.
fn unsupported(schema: Props<'_>) -> Result<(), String> {
    for (key, given) in [
        ("id", !schema.text("id").is_empty()),
        ("$schema", !schema.text("$schema").is_empty()),
        ("$ref", !schema.text("$ref").is_empty()),
        ("patternProperties", schema.map("patternProperties").is_some()),
        ("dependencies", schema.map("dependencies").is_some()),
        ("additionalItems", schema.get("additionalItems").is_some()),
        ("definitions", schema.map("definitions").is_some()),
    ] {
        if given {
            return Err(format!(
                "OpenAPIV3Schema '{}' is not supported",
                if key == "$schema" { "schema" } else { key }
            ));
        }
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Err("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned());
    }
    if !schema.list("items").is_empty() {
        return Err("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    let inside = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| schema.clauses(key));
    let inside = inside.chain(schema.not()).chain(schema.items()).chain(schema.values());
    inside.chain(schema.properties().map(|(_, property)| property)).try_for_each(unsupported)
}

fn invariants(schema: Props<'_>, level: Level, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    let embedded = schema.is("x-kubernetes-embedded-resource");
    let preserve = schema.is("x-kubernetes-preserve-unknown-fields");
    let int_or_string = schema.is("x-kubernetes-int-or-string");
    let kind = schema.kind();
    match schema.items() {
        Some(items) => invariants(items, Level::Item, &path.field("items"), problems),
        None if kind == "array" => problems.push(FieldError::required(format!("{path}.items"), "must be specified")),
        None => {}
    }
    for (name, property) in schema.properties() {
        invariants(property, Level::Field, &path.field("properties").key(name), problems);
    }
    if let Some(additional) = schema.additional("additionalProperties") {
        let at = path.field("additionalProperties");
        if level == Level::Root {
            problems.push(FieldError::forbidden(at.to_string(), "must not be used at the root"));
        }
        if embedded {
            let words = "must not be used if x-kubernetes-embedded-resource is set";
            problems.push(FieldError::forbidden(at.to_string(), words));
        }
        if let Additional::Schema(values) = additional {
            invariants(values, Level::Field, &at, problems);
        }
    }
    for (key, given) in
        [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && given {
            let words = "must be false if x-kubernetes-int-or-string is true";
            problems.push(FieldError::invalid(format!("{path}.{key}"), true, words));
        }
    }
    let all_of = schema.clauses("allOf").next();
    value_rules(schema, is_int_or_string(schema), all_of.is_some_and(is_int_or_string), path, problems);
    types(schema, level, path, problems);
    if let Some(metadata) = schema.property("metadata") {
        metadata_rules(
            metadata,
            level == Level::Root || embedded,
            level,
            &path.field("properties").key("metadata"),
            problems,
        );
    }
    if embedded && !preserve && schema.map("properties").is_none() {
        let words = "must not be empty if x-kubernetes-embedded-resource is true without \
                     x-kubernetes-preserve-unknown-fields";
        problems.push(FieldError::required(format!("{path}.properties"), words));
    }
}

fn types(schema: Props<'_>, level: Level, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    let (kind, at) = (schema.kind(), || path.field("type").to_string());
    let embedded = schema.is("x-kubernetes-embedded-resource");
    let free = schema.is("x-kubernetes-int-or-string") || schema.is("x-kubernetes-preserve-unknown-fields");
    if embedded && kind != "object" {
        let words = "must be object if x-kubernetes-embedded-resource is true";
        problems.push(match kind {
            "" => FieldError::required(at(), words),
            kind => FieldError::invalid(at(), kind, words),
        });
    } else if kind.is_empty() && !free {
        let words = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        problems.push(FieldError::required(at(), words));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        problems.push(FieldError::invalid(at(), kind, "must be object at the root"));
    }
    if level == Level::Root || embedded {
        for name in ["kind", "apiVersion"] {
            if let Some(kind) = schema.property(name).map(Props::kind).filter(|kind| *kind != "string") {
                let at = format!("{path}.properties[{name}].type");
                problems.push(FieldError::invalid(at, kind, "must be string"));
            }
        }
    }
}

fn metadata_rules(schema: Props<'_>, checked: bool, level: Level, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    if checked && schema.kind() != "object" {
        problems.push(FieldError::invalid(format!("{path}.type"), schema.kind(), "must be object"));
    }
    if level != Level::Root {
        return;
    }
    let names_only = schema.properties().all(|(name, _)| name == "name" || name == "generateName");
    let allowed = |(key, value): (&Text, &Value)| {
        matches!(key.as_str(), "type" | "default" | "externalDocs" | "example")
            || (key == "properties" && names_only)
            || is_zero(value)
    };
    if !schema.0.as_map().is_some_and(|map| map.iter().all(allowed)) {
        let words = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        problems.push(FieldError::forbidden(path.to_string(), words));
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Str(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Bool(true) | Value::Int(_) | Value::Float(_) => false,
    }
}

/// Whether `anyOf` is the one spelling of int-or-string that may name types.
fn is_int_or_string(schema: Props<'_>) -> bool {
    let only = |json: &Value, kind: &str| {
        let map = json.as_map().filter(|map| map.iter().all(|(key, value)| key == "type" || is_zero(value)));
        map.and_then(|map| map.get("type")) == Some(&Value::from(kind))
    };
    matches!(schema.list("anyOf"), [first, second] if only(first, "integer") && only(second, "string"))
}

fn value_rules(
    schema: Props<'_>,
    skip_any: bool,
    skip_first_all: bool,
    path: &Path<'_>,
    problems: &mut Vec<FieldError>,
) {
    if !skip_any {
        for (i, clause) in schema.clauses("anyOf").enumerate() {
            nested(clause, false, &path.field("anyOf").index(i), problems);
        }
    }
    for (i, clause) in schema.clauses("allOf").enumerate() {
        nested(clause, skip_first_all && i == 0, &path.field("allOf").index(i), problems);
    }
    for (i, clause) in schema.clauses("oneOf").enumerate() {
        nested(clause, false, &path.field("oneOf").index(i), problems);
    }
    if let Some(clause) = schema.not() {
        nested(clause, false, &path.field("not"), problems);
    }
    let pattern = schema.text("pattern");
    if !pattern.is_empty()
        && let Err(words) = regexp::compile(pattern)
    {
        let words = format!("must be a valid regular expression, but isn't: {words}");
        problems.push(FieldError::invalid(format!("{path}.pattern"), pattern, words));
    }
}

/// What a clause of an alternative may not say.
fn nested(schema: Props<'_>, skip_any: bool, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    value_rules(schema, skip_any, false, path, problems);
    if let Some(items) = schema.items() {
        nested(items, false, &path.field("items"), problems);
    }
    for (name, property) in schema.properties() {
        nested(property, false, &path.field("properties").key(name), problems);
    }
    let additional = match schema.additional("additionalProperties") {
        Some(Additional::Bool(allowed)) => allowed,
        Some(Additional::Schema(_)) => true,
        None => false,
    };
    const EMPTY: &str = "must be empty to be structural";
    const FALSE: &str = "must be false to be structural";
    const UNDEFINED: &str = "must be undefined to be structural";
    for (key, given, words) in [
        ("type", !schema.kind().is_empty(), EMPTY),
        ("additionalProperties", additional, UNDEFINED),
        ("default", schema.get("default").is_some(), UNDEFINED),
        ("title", !schema.text("title").is_empty(), EMPTY),
        ("description", !schema.text("description").is_empty(), EMPTY),
        ("nullable", schema.is("nullable"), FALSE),
        ("x-kubernetes-preserve-unknown-fields", schema.is("x-kubernetes-preserve-unknown-fields"), FALSE),
        ("x-kubernetes-embedded-resource", schema.is("x-kubernetes-embedded-resource"), FALSE),
        ("x-kubernetes-int-or-string", schema.is("x-kubernetes-int-or-string"), FALSE),
        ("x-kubernetes-list-map-keys", !schema.list("x-kubernetes-list-map-keys").is_empty(), EMPTY),
        ("x-kubernetes-list-type", schema.get("x-kubernetes-list-type").is_some(), UNDEFINED),
        ("x-kubernetes-map-type", schema.get("x-kubernetes-map-type").is_some(), UNDEFINED),
        ("x-kubernetes-validations", !schema.list("x-kubernetes-validations").is_empty(), EMPTY),
    ] {
        if given {
            problems.push(FieldError::forbidden(format!("{path}.{key}"), words));
        }
    }
    if schema.property("metadata").is_some() {
        let words = "must not be specified in a nested context";
        problems.push(FieldError::forbidden(format!("{path}.properties[metadata]"), words));
    }
}

/// Whether the alternatives at the root speak only of fields that exist. Upstream does not look further than the root's.
fn complete(clause: Props<'_>, schema: Props<'_>, at: &Path<'_>, said: &Path<'_>, problems: &mut Vec<FieldError>) {
    if let Some(clause) = clause.not() {
        inside(clause, Some(schema), at, &said.field("not"), problems);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (i, clause) in clause.clauses(key).enumerate() {
            inside(clause, Some(schema), at, &said.field(key).index(i), problems);
        }
    }
}

fn inside(
    clause: Props<'_>,
    schema: Option<Props<'_>>,
    at: &Path<'_>,
    said: &Path<'_>,
    problems: &mut Vec<FieldError>,
) {
    let Some(schema) = schema else {
        problems.push(FieldError::required(at.to_string(), format!("because it is defined in {said}")));
        return;
    };
    complete(clause, schema, at, said, problems);
    if let Some(items) = clause.items() {
        inside(items, schema.items(), &at.field("items"), &said.field("items"), problems);
    }
    for (name, property) in clause.properties() {
        let (at, said) = (at.field("properties"), said.field("properties"));
        inside(property, schema.property(name), &at.key(name), &said.key(name), problems);
    }
}
