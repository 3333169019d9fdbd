//! The rules on every schema of a CRD, structural or not: supported constructs, defaults, list types, CEL.

use std::cell::RefCell;

use super::{
    defaults, printed,
    props::{Additional, Props},
    structure,
};
use crate::{
    schema::{cel, path::Path},
    status::{FieldError, Rule},
    value::{Text, Value},
};

/// What is wrong with the schema of a version, or of all versions. `path` is the field that holds `openAPIV3Schema`.
pub(super) fn validate(holder: &Value, path: &str, status: bool, problems: &mut Vec<FieldError>) {
    let Some(json) = Props(holder).get("openAPIV3Schema") else { return };
    let schema = Props(json);
    let path = Path::ROOT.field(path);
    let path = &path.field("openAPIV3Schema");
    let mut found = Vec::new();
    if status {
        root_with_status(schema, path, &mut found);
    }
    if schema.is("nullable") {
        found.push(FieldError::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    let mut typed = false;
    let mut unreadable = None;
    match structure::validate(path, schema) {
        Err(words) => unreadable = Some(FieldError::invalid(path.to_string(), "", words)),
        Ok(structural) if !structural.is_empty() => found.extend(structural),
        Ok(_) => {
            let before = found.len();
            defaults::validate(schema, path, &mut found);
            typed = found.len() == before;
        }
    }
    let mut walk = Walk::default();
    let context = typed.then(|| cel::Scope::root(schema.0));
    walk.schema(schema, path, &Place::default(), true, context.as_ref());
    found.append(&mut walk.schema_problems);
    found.append(&mut walk.cel_problems);
    if found.is_empty() {
        found.extend(unreadable);
    }
    found.append(&mut walk.total.borrow().problems(&path.to_string()));
    problems.append(&mut found);
}

/// What the root may say if the status is validated on its own.
fn root_with_status(schema: Props<'_>, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    const ALLOWED: [(&str, &str); 22] = [
        ("Description", "description"),
        ("Type", "type"),
        ("Format", "format"),
        ("Title", "title"),
        ("Maximum", "maximum"),
        ("ExclusiveMaximum", "exclusiveMaximum"),
        ("Minimum", "minimum"),
        ("ExclusiveMinimum", "exclusiveMinimum"),
        ("MaxLength", "maxLength"),
        ("MinLength", "minLength"),
        ("Pattern", "pattern"),
        ("MaxItems", "maxItems"),
        ("MinItems", "minItems"),
        ("UniqueItems", "uniqueItems"),
        ("MultipleOf", "multipleOf"),
        ("Required", "required"),
        ("Items", "items"),
        ("Properties", "properties"),
        ("ExternalDocs", "externalDocs"),
        ("Example", "example"),
        ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
        ("XValidations", "x-kubernetes-validations"),
    ];
    if !schema.kind().is_empty() && schema.kind() != "object" {
        let words =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        problems.push(FieldError::invalid(format!("{path}.type"), schema.kind(), words));
        return;
    }
    let given = |key: &Text| {
        let zero =
            matches!(schema.get(key), None | Some(Value::Bool(false))) && key != "x-kubernetes-preserve-unknown-fields";
        !zero && schema.get(key).is_none_or(|value| value.as_str() != Some(""))
    };
    let allowed = |key: &Text| ALLOWED.iter().any(|(_, name)| key == name);
    if schema.0.as_map().is_some_and(|map| map.keys().any(|key| given(key) && !allowed(key))) {
        let names: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
        let words = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            names.join(" ")
        );
        problems.push(FieldError::invalid(path.to_string(), Value::Null, words).printed(printed::props(schema)));
    }
}

/// What holds for a part of a schema because of where it stands.
#[derive(Clone, Default)]
struct Place {
    /// Why there may be no defaults, if there may be none.
    no_defaults: Option<String>,
    /// Inside the type or metadata of an object.
    in_meta: bool,
    /// The list above that hides which item was which, so that `oldSelf` means nothing.
    uncorrelated: Option<String>,
}

#[derive(Default)]
struct Walk {
    schema_problems: Vec<FieldError>,
    cel_problems: Vec<FieldError>,
    total: RefCell<cel::Total>,
}

impl Walk {
    fn schema(
        &mut self,
        schema: Props<'_>,
        path: &Path<'_>,
        place: &Place,
        root: bool,
        scope: Option<&cel::Scope<'_>>,
    ) {
        // Rules are compiled only if nothing else is wrong here or below.
        let before = self.schema_problems.len();
        self.supported(schema, path, place);
        if schema.is("uniqueItems") {
            let words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(format!("{path}.uniqueItems"), words);
        }
        self.fields(schema, path, place, root, scope);
        if let Some(clause) = schema.not() {
            self.schema(clause, &path.field("not"), place, false, None);
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            for (i, clause) in schema.clauses(key).enumerate() {
                self.schema(clause, &path.field(key).index(i), place, false, None);
            }
        }
        for key in ["definitions", "dependencies"] {
            for (name, json) in schema.map(key).into_iter().flat_map(|map| map.iter()) {
                if json.as_map().is_some() {
                    self.schema(Props(json), &path.field(key).key(name), place, false, None);
                }
            }
        }
        if schema.get("items").is_none() {
            return self.finish(schema, path, place, scope, before);
        }
        let mut below = place.clone();
        if schema.text("x-kubernetes-list-type") != "map" {
            below.uncorrelated.get_or_insert_with(|| path.to_string());
        }
        if let Some(items) = schema.items() {
            let inner = scope.map(|scope| scope.inside(items.0));
            self.schema(items, &path.field("items"), &below, false, inner.as_ref());
        }
        for (i, items) in schema.list("items").iter().enumerate() {
            self.schema(Props(items), &path.field("items").index(i), &below, false, None);
        }
        self.finish(schema, path, place, scope, before);
    }

    /// What is looked at after everything inside a schema. `before` tells how many problems were known then.
    fn finish(
        &mut self,
        schema: Props<'_>,
        path: &Path<'_>,
        place: &Place,
        scope: Option<&cel::Scope<'_>>,
        before: usize,
    ) {
        self.extensions(schema, path);
        let rules = schema.list("x-kubernetes-validations");
        for (i, rule) in rules.iter().enumerate() {
            self.rule(schema, Props(rule), &path.field("x-kubernetes-validations").index(i));
        }
        if let Some(scope) = scope.filter(|_| !rules.is_empty() && self.schema_problems.len() == before) {
            let at = format!("{path}.x-kubernetes-validations");
            let problems = scope.compile(&at, place.uncorrelated.as_deref(), &self.total);
            self.cel_problems.extend(problems);
        }
    }

    fn fields(
        &mut self,
        schema: Props<'_>,
        path: &Path<'_>,
        place: &Place,
        root: bool,
        scope: Option<&cel::Scope<'_>>,
    ) {
        if let Some(additional) = schema.additional("additionalProperties") {
            let at = path.field("additionalProperties");
            let plain = matches!(additional, Additional::Bool(true));
            if schema.map("properties").is_some() && !plain {
                self.forbid(at.to_string(), "additionalProperties and properties are mutual exclusive");
            }
            let mut below = place.clone();
            if place.in_meta {
                below.no_defaults = Some("inside additionalProperties applying to object metadata".to_owned());
            }
            if let Additional::Schema(values) = additional {
                let inner = scope.map(|scope| scope.inside(values.0));
                self.schema(values, &at, &below, false, inner.as_ref());
            }
        }
        for (name, property) in schema.properties() {
            let mut below = place.clone();
            let meta = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
            if meta && (root || schema.is("x-kubernetes-embedded-resource")) {
                below.in_meta = true;
                if root {
                    below.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            let inner = scope.map(|scope| scope.inside(property.0));
            self.schema(property, &path.field("properties").key(name), &below, false, inner.as_ref());
        }
    }

    fn supported(&mut self, schema: Props<'_>, path: &Path<'_>, place: &Place) {
        const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
        let kind = schema.kind();
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.schema_problems.push(FieldError::not_supported(format!("{path}.type"), kind, &TYPES));
        }
        if let Some(reason) = place.no_defaults.as_ref().filter(|_| schema.get("default").is_some()) {
            self.forbid(format!("{path}.default"), &format!("must not be set {reason}"));
        }
        for (key, given) in [
            ("id", !schema.text("id").is_empty()),
            ("additionalItems", schema.get("additionalItems").is_some()),
            ("patternProperties", schema.map("patternProperties").is_some()),
            ("definitions", schema.map("definitions").is_some()),
            ("dependencies", schema.get("dependencies").is_some()),
            ("$ref", schema.get("$ref").is_some()),
        ] {
            if given {
                self.forbid(format!("{path}.{key}"), &format!("{key} is not supported"));
            }
        }
        if kind == "null" {
            let words = "type cannot be set to null, use nullable as an alternative";
            self.forbid(format!("{path}.type"), words);
        }
        if !schema.list("items").is_empty() {
            self.forbid(format!("{path}.items"), "items must be a schema object and not an array");
        }
        if place.in_meta && schema.is("x-kubernetes-embedded-resource") {
            let words = "must not be used inside of resource meta";
            self.forbid(format!("{path}.x-kubernetes-embedded-resource"), words);
        }
    }

    fn extensions(&mut self, schema: Props<'_>, path: &Path<'_>) {
        let kind = schema.kind();
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            self.invalid(format!("{path}.x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined");
        }
        let map_type = schema.get("x-kubernetes-map-type").map(|_| schema.text("x-kubernetes-map-type"));
        if map_type.is_some() && kind != "object" {
            self.needs_type(path, kind, "must be object if x-kubernetes-map-type is specified");
        }
        if let Some(map_type) = map_type.filter(|name| !["atomic", "granular"].contains(name)) {
            let at = format!("{path}.x-kubernetes-map-type");
            self.schema_problems.push(FieldError::not_supported(at, map_type, &["atomic", "granular"]));
        }
        let list_type = schema.get("x-kubernetes-list-type").map(|_| schema.text("x-kubernetes-list-type"));
        if list_type.is_some() && kind != "array" {
            self.needs_type(path, kind, "must be array if x-kubernetes-list-type is specified");
        } else if list_type == Some("set") {
            self.set_items(schema, path);
        }
        if let Some(list_type) = list_type.filter(|name| !["atomic", "set", "map"].contains(name)) {
            let at = format!("{path}.x-kubernetes-list-type");
            self.schema_problems.push(FieldError::not_supported(at, list_type, &["atomic", "set", "map"]));
        }
        if !schema.list("x-kubernetes-list-map-keys").is_empty() {
            let (at, words) =
                (format!("{path}.x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty");
            match list_type {
                None => self.require(at, words),
                Some("map") => {}
                Some(other) => self.invalid(at, other, words),
            }
        }
        if list_type == Some("map") {
            self.map_items(schema, path);
        }
        if matches!(list_type, Some("map" | "set")) {
            self.keys(schema, list_type.unwrap_or_default(), path);
        }
    }

    fn set_items(&mut self, schema: Props<'_>, path: &Path<'_>) {
        let Some(items) = schema.items() else { return };
        let words = "must be atomic as item of a list with x-kubernetes-list-type=set";
        // Upstream prints the list type in both cases.
        let shown = items.get("x-kubernetes-list-type").cloned().unwrap_or_default();
        match items.kind() {
            "array" if !matches!(items.text("x-kubernetes-list-type"), "" | "atomic") => {
                self.invalid(format!("{path}.items.x-kubernetes-list-type"), shown, words);
            }
            "object" if items.text("x-kubernetes-map-type") != "atomic" => {
                self.invalid(format!("{path}.items.x-kubernetes-map-type"), shown, words);
            }
            _ => {}
        }
    }

    fn map_items(&mut self, schema: Props<'_>, path: &Path<'_>) {
        let keys = schema.texts("x-kubernetes-list-map-keys");
        if keys.is_empty() {
            let words = "must not be empty if x-kubernetes-list-type is map";
            self.require(format!("{path}.x-kubernetes-list-map-keys"), words);
        }
        let Some(items) = schema.items() else {
            if schema.get("items").is_none() {
                let words = "must have a schema if x-kubernetes-list-type is map";
                self.require(format!("{path}.items"), words);
            }
            return;
        };
        if items.kind() != "object" {
            let words = "must be object if parent array's x-kubernetes-list-type is map";
            self.invalid(format!("{path}.items.type"), items.kind(), words);
            return;
        }
        let at = format!("{path}.x-kubernetes-list-map-keys");
        for (i, key) in keys.iter().enumerate() {
            let shown = || Value::list(keys.iter().map(|key| Value::from(*key)));
            match items.property(key).map(Props::kind) {
                Some("array" | "object") => {
                    let words = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.invalid(format!("{path}.items.properties[{key}].type"), items.kind(), words);
                }
                Some(_) => {}
                None => self.invalid(at.clone(), shown(), "entries must all be names of item properties"),
            }
            if keys[..i].contains(key) {
                self.invalid(at.clone(), shown(), "must not contain duplicate entries");
            }
        }
    }

    fn keys(&mut self, schema: Props<'_>, list_type: &str, path: &Path<'_>) {
        let Some(items) = schema.items() else { return };
        if items.is("nullable") {
            let words = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbid(format!("{path}.items.nullable"), &words);
        }
        if list_type != "map" {
            return;
        }
        let required = items.texts("required");
        for key in schema.texts("x-kubernetes-list-map-keys") {
            let Some(property) = items.property(key) else { continue };
            let at = format!("{path}.items.properties[{key}]");
            if !required.contains(&key) && property.get("default").is_none() {
                let words = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                             required property";
                self.require(format!("{at}.default"), words);
            }
            if property.is("nullable") {
                let words = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbid(format!("{at}.nullable"), words);
            }
        }
    }

    /// The texts of a CEL rule; whether it compiles is asked later.
    fn rule(&mut self, schema: Props<'_>, rule: Props<'_>, path: &Path<'_>) {
        let (text, message, expression) = (rule.text("rule"), rule.text("message"), rule.text("messageExpression"));
        let breaks = |text: &str| text.contains(['\n', '\r']);
        if text.trim().is_empty() {
            self.require(format!("{path}.rule"), "rule is not specified");
        } else if !message.is_empty() && message.trim().is_empty() {
            self.invalid(format!("{path}.message"), message, "must be non-empty if specified");
        } else if breaks(message.trim()) {
            self.invalid(format!("{path}.message"), message, "must not contain line breaks");
        } else if breaks(text.trim()) && message.trim().is_empty() {
            self.require(format!("{path}.message"), "message must be specified if rule contains line breaks");
        }
        if !expression.is_empty() && expression.trim().is_empty() {
            let words = "messageExpression must be non-empty if specified";
            self.require(format!("{path}.messageExpression"), words);
        }
        const REASONS: [&str; 4] =
            ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        if let Some(reason) = rule.get("reason").filter(|_| !REASONS.contains(&rule.text("reason"))) {
            self.schema_problems.push(FieldError::not_supported(format!("{path}.reason"), reason, &REASONS));
        }
        let field = rule.text("fieldPath");
        let at = || format!("{path}.fieldPath");
        if !field.is_empty() && field.trim().is_empty() {
            self.invalid(at(), field, "must be non-empty if specified");
        }
        if breaks(field) {
            self.invalid(at(), field, "must not contain line breaks");
        }
        if !field.is_empty() && super::fields::find(field, schema, true).is_err() {
            self.invalid(at(), field, "must be a valid path");
        }
    }

    fn needs_type(&mut self, path: &Path<'_>, kind: &str, words: &str) {
        match kind {
            "" => self.require(format!("{path}.type"), words),
            kind => self.invalid(format!("{path}.type"), kind, words),
        }
    }

    fn forbid(&mut self, field: String, words: &str) {
        self.schema_problems.push(FieldError::forbidden(field, words));
    }

    fn require(&mut self, field: String, words: &str) {
        self.schema_problems.push(FieldError::required(field, words));
    }

    fn invalid(&mut self, field: String, value: impl Into<Value>, words: &str) {
        self.schema_problems.push(FieldError { field, rule: Rule::Invalid(value.into()), detail: words.to_owned() });
    }
}
