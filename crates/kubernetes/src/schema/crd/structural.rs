//! Reading the OpenAPI schema of a CRD into the type graph.

use std::sync::Arc;

use super::{fields, props::Props};
use crate::{
    facts,
    schema::{
        Field, Merge, Schema, Shape, Struct, Topology, cel,
        embedded::OBJECT_META,
        formats::Format,
        regexp,
        rules::{Below, Bound, Clause, Pattern, Rules},
    },
    value::{Text, Value, intern},
};

/// The type of a custom resource: what the CRD says, and the fields every object has.
pub fn resource(json: &Value) -> Schema {
    let mut schema = node(json, true);
    with_meta(&mut schema, json);
    schema
}

/// The type a JSON schema describes. What is not structural is read as far as it makes sense; [`validate`](super::validate)
/// has refused it before.
pub(crate) fn schema(json: &Value) -> Schema {
    node(json, is_true(json, "x-kubernetes-embedded-resource"))
}

/// As [`schema`]; `resource` if values are whole objects.
fn node(json: &Value, resource: bool) -> Schema {
    let mut rules = rules(json);
    let kind = json.str_at(&["type"]).unwrap_or_default();
    let preserve = is_true(json, "x-kubernetes-preserve-unknown-fields");
    let int_or_string = is_true(json, "x-kubernetes-int-or-string");
    rules.untyped = kind.is_empty() && !int_or_string;
    let shape = match kind {
        _ if int_or_string => Shape::IntOrString,
        "boolean" => Shape::Bool,
        "integer" => Shape::Int64,
        "number" => Shape::Number,
        "string" => Shape::Str,
        "array" => list(json, preserve, &mut rules),
        "object" => object(json, preserve, &mut rules),
        _ if has_entries(json, "properties") || json.get("additionalProperties").is_some() => {
            object(json, preserve, &mut rules)
        }
        _ if json.get("items").is_some() => list(json, preserve, &mut rules),
        _ => Shape::Any,
    };
    rules.below = below(&shape, &rules);
    let mut schema = Schema {
        shape,
        name: None,
        go: None,
        nullable: is_true(json, "nullable"),
        default: json.get("default").filter(|default| !default.is_null()).cloned(),
        allowed: json.list_at(&["enum"]).to_vec(),
        rules: Some(Box::new(rules)),
    };
    let mut cel = schema.rules.as_mut().map(|rules| std::mem::take(&mut rules.cel)).unwrap_or_default();
    cel.iter_mut().for_each(|rule| rule.compile(&schema, resource));
    if let Some(rules) = &mut schema.rules {
        rules.cel = cel;
    }
    if schema.rules.as_deref().is_some_and(is_empty) {
        schema.rules = None;
    }
    if is_true(json, "x-kubernetes-embedded-resource") {
        with_meta(&mut schema, json);
    }
    schema
}

fn is_empty(rules: &Rules) -> bool {
    !rules.untyped
        && !rules.keep
        && rules.format.is_none()
        && rules.minimum.is_none()
        && rules.maximum.is_none()
        && rules.multiple_of.is_none()
        && rules.min_length.is_none()
        && rules.max_length.is_none()
        && rules.pattern.is_none()
        && rules.cel.is_empty()
        && rules.below == Below::default()
        && !rules.demands_of_whole()
}

fn list(json: &Value, preserve: bool, rules: &mut Rules) -> Shape {
    let items = json.get("items").map_or_else(|| Schema::of(Shape::Any), schema);
    rules.keep = preserve;
    let topology = match json.str_at(&["x-kubernetes-list-type"]) {
        Some("set") => Topology::Set,
        Some("map") => Topology::Map(texts(json, "x-kubernetes-list-map-keys")),
        _ => Topology::Atomic,
    };
    Shape::List { items: Arc::new(items), topology, merge: Merge::Replace }
}

fn object(json: &Value, preserve: bool, rules: &mut Rules) -> Shape {
    let atomic = json.str_at(&["x-kubernetes-map-type"]) == Some("atomic");
    let additional = json.get("additionalProperties");
    if !has_entries(json, "properties") {
        match additional {
            Some(Value::Map(_)) if !preserve || additional.is_some() => {
                let values = additional.map(schema).unwrap_or_default();
                return Shape::Map { values: Arc::new(values), atomic };
            }
            // Any key, any type, but objects among the values lose all their fields.
            Some(Value::Bool(allowed)) => {
                rules.closed = !allowed;
                let mut values = Schema::of(Shape::Struct(Struct::default()));
                values.rules = Some(Box::new(Rules { untyped: true, ..Rules::default() }));
                return Shape::Map { values: Arc::new(values), atomic };
            }
            _ => {}
        }
    }
    let mut fields = Vec::new();
    if let Some(properties) = json.get("properties").and_then(Value::as_map) {
        for (name, property) in properties.iter() {
            let mut field = Field::of(schema(property));
            field.required = rules.required.contains(name);
            fields.push((name.clone(), field));
        }
    }
    let open = preserve || matches!(additional, Some(Value::Bool(true)));
    let embedded = is_true(json, "x-kubernetes-embedded-resource");
    Shape::Struct(Struct { fields, open, atomic, embedded, retain_keys: false })
}

fn below(shape: &Shape, rules: &Rules) -> Below {
    let inside = match shape {
        Shape::Struct(fields) => {
            let own = Below { embedded: fields.embedded, open: fields.open, ..Below::default() };
            fields.fields.iter().fold(own, |all, (_, field)| all.and(of(&field.schema)))
        }
        Shape::Map { values, .. } => of(values),
        Shape::List { items, topology, .. } => {
            let sets = *topology != Topology::Atomic;
            Below { sets, ..Below::default() }.and(of(items))
        }
        Shape::Any => Below { open: true, ..Below::default() },
        _ => Below::default(),
    };
    Below {
        cel: inside.cel || !rules.cel.is_empty(),
        unsettled: inside.unsettled || (inside.open && rules.demands_of_whole()),
        ..inside
    }
}

fn of(schema: &Schema) -> Below {
    schema.rules.as_ref().map_or(Below { open: matches!(schema.shape, Shape::Any), ..Below::default() }, |r| r.below)
}

fn rules(json: &Value) -> Rules {
    let number = |key: &str| json.get(key).and_then(Value::as_float);
    let count = |key: &str| json.get(key).and_then(Value::as_int);
    let bound =
        |key: &str, exclusive: &str| number(key).map(|value| Bound { value, exclusive: is_true(json, exclusive) });
    let clauses = |key: &str| json.list_at(&[key]).iter().map(clause).collect();
    Rules {
        untyped: false,
        format: json.get("format").and_then(Value::as_text).and_then(Format::named),
        minimum: bound("minimum", "exclusiveMinimum"),
        maximum: bound("maximum", "exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: json.get("pattern").and_then(Value::as_text).filter(|text| !text.is_empty()).map(pattern),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: is_true(json, "uniqueItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        required: texts(json, "required"),
        closed: false,
        keep: false,
        all_of: clauses("allOf"),
        any_of: clauses("anyOf"),
        one_of: clauses("oneOf"),
        not: json.get("not").filter(|not| not.as_map().is_some()).map(|not| Box::new(clause(not))),
        cel: json.list_at(&["x-kubernetes-validations"]).iter().map(|rule| read_rule(rule, json)).collect(),
        below: Below::default(),
    }
}

fn pattern(text: &Text) -> Pattern {
    Pattern { text: text.clone(), regex: regexp::compile(text).ok() }
}

/// Reads a CEL rule that stands in a schema.
pub(crate) fn read_rule(rule: &Value, schema: &Value) -> cel::Rule {
    let text = |key: &str| rule.get(key).and_then(Value::as_text).cloned();
    let path = text("fieldPath").unwrap_or_default();
    let field = fields::find(&path, Props(schema), true).map(|(written, _)| written).unwrap_or_default();
    cel::Rule {
        rule: text("rule").unwrap_or_default(),
        message: text("message").unwrap_or_default(),
        message_expression: text("messageExpression").unwrap_or_default(),
        reason: text("reason"),
        field: field.into(),
        optional_old: is_true(rule, "optionalOldSelf"),
        ..cel::Rule::default()
    }
}

fn clause(json: &Value) -> Clause {
    let mut properties = Vec::new();
    if let Some(map) = json.get("properties").and_then(Value::as_map) {
        properties.extend(map.iter().map(|(name, property)| (name.clone(), clause(property))));
    }
    Clause {
        kind: json.get("type").and_then(Value::as_text).filter(|kind| !kind.is_empty()).cloned(),
        allowed: json.list_at(&["enum"]).to_vec(),
        rules: rules(json),
        properties,
        items: json.get("items").filter(|items| items.as_map().is_some()).map(|items| Box::new(clause(items))),
    }
}

fn is_true(json: &Value, key: &str) -> bool {
    json.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn has_entries(json: &Value, key: &str) -> bool {
    json.get(key).and_then(Value::as_map).is_some_and(|map| !map.is_empty())
}

fn texts(json: &Value, key: &str) -> Vec<Text> {
    json.list_at(&[key]).iter().filter_map(|item| item.as_str().map(intern)).collect()
}

/// Gives a struct the fields every object has. The CRD may restrict the name in `metadata`, nothing else.
fn with_meta(schema: &mut Schema, json: &Value) {
    let Shape::Struct(fields) = &mut schema.shape else { return };
    let mut metadata = facts::named(OBJECT_META).map(|schema| (**schema).clone()).unwrap_or_default();
    if let (Shape::Struct(meta), Some(own)) = (&mut metadata.shape, json.at(&["properties", "metadata"])) {
        let own = self::schema(own);
        metadata.rules = own.rules;
        if let Shape::Struct(own) = own.shape {
            for (name, field) in own.fields {
                set_field(meta, &name, field);
            }
        }
    }
    set_field(fields, "metadata", Field::of(metadata));
    for name in ["apiVersion", "kind"] {
        if fields.field(name).is_none() {
            set_field(fields, name, Field::of(Schema::of(Shape::Str)));
        }
    }
}

fn set_field(fields: &mut Struct, name: &str, field: Field) {
    match fields.fields.binary_search_by(|(key, _)| key.as_str().cmp(name)) {
        Ok(i) => fields.fields[i].1 = field,
        Err(i) => fields.fields.insert(i, (intern(name), field)),
    }
}
