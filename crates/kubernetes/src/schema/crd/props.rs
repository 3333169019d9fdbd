//! A JSON schema as a CRD holds it (`JSONSchemaProps`), read in place.

use crate::value::{Map, Text, Value};

/// A schema inside a CRD. What is null, empty or false counts as not given, as in the Go type.
#[derive(Clone, Copy)]
pub(super) struct Props<'a>(pub &'a Value);

/// What `additionalProperties` or `additionalItems` holds.
pub(super) enum Additional<'a> {
    /// `true` or `false`
    Bool(bool),
    /// A schema.
    Schema(Props<'a>),
}

impl<'a> Props<'a> {
    /// A field that is given and not null.
    pub(super) fn get(self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// A text; empty if there is none.
    pub(super) fn text(self, key: &str) -> &'a str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The type; empty if there is none.
    pub(super) fn kind(self) -> &'a str {
        self.text("type")
    }

    /// A flag.
    pub(super) fn is(self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A list of texts.
    pub(super) fn texts(self, key: &str) -> Vec<&'a str> {
        self.list(key).iter().filter_map(Value::as_str).collect()
    }

    /// A list; empty if there is none.
    pub(super) fn list(self, key: &str) -> &'a [Value] {
        self.get(key).and_then(Value::as_list).unwrap_or_default()
    }

    /// A map; `None` if there is none or nothing in it.
    pub(super) fn map(self, key: &str) -> Option<&'a Map> {
        self.get(key).and_then(Value::as_map).filter(|map| !map.is_empty())
    }

    /// The fields and their schemas.
    pub(super) fn properties(self) -> impl Iterator<Item = (&'a Text, Props<'a>)> {
        self.map("properties").into_iter().flat_map(|map| map.iter().map(|(name, json)| (name, Props(json))))
    }

    /// The schema of a field.
    pub(super) fn property(self, name: &str) -> Option<Props<'a>> {
        self.map("properties")?.get(name).map(Props)
    }

    /// The schema of items, if it is one and not a list of them.
    pub(super) fn items(self) -> Option<Props<'a>> {
        self.get("items").filter(|items| items.as_map().is_some()).map(Props)
    }

    /// What `additionalProperties` holds.
    pub(super) fn additional(self, key: &str) -> Option<Additional<'a>> {
        match self.get(key)? {
            Value::Bool(allowed) => Some(Additional::Bool(*allowed)),
            json @ Value::Map(_) => Some(Additional::Schema(Props(json))),
            _ => None,
        }
    }

    /// The schema in `additionalProperties`.
    pub(super) fn values(self) -> Option<Props<'a>> {
        match self.additional("additionalProperties")? {
            Additional::Schema(schema) => Some(schema),
            Additional::Bool(_) => None,
        }
    }

    /// The schemas in `allOf`, `anyOf` or `oneOf`.
    pub(super) fn clauses(self, key: &str) -> impl Iterator<Item = Props<'a>> {
        self.list(key).iter().map(Props)
    }

    /// The schema in `not`.
    pub(super) fn not(self) -> Option<Props<'a>> {
        self.get("not").map(Props)
    }

    /// Whether this schema or one inside it, anywhere, is as asked.
    pub(super) fn any(self, asked: &dyn Fn(Props<'a>) -> bool) -> bool {
        if asked(self) {
            return true;
        }
        let schemas = |key: &str| -> &'a [Value] { self.list(key) };
        let maps = ["properties", "patternProperties", "definitions", "dependencies"];
        self.items().is_some_and(|schema| schema.any(asked))
            || ["items", "allOf", "anyOf", "oneOf"]
                .iter()
                .any(|key| schemas(key).iter().any(|schema| Props(schema).any(asked)))
            || self.not().is_some_and(|schema| schema.any(asked))
            || maps.iter().any(|key| {
                self.map(key).is_some_and(|map| map.values().any(|s| s.as_map().is_some() && Props(s).any(asked)))
            })
            || ["additionalProperties", "additionalItems"].iter().any(|key| match self.additional(key) {
                Some(Additional::Schema(schema)) => schema.any(asked),
                Some(Additional::Bool(_)) | None => false,
            })
    }
}
