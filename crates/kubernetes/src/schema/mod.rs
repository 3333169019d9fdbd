//! The types of the API: what a value may look like, how its lists merge, what becomes of empty fields.
//!
//! One graph serves built-in kinds (loaded from [`facts`](super::facts)) and custom ones (read from a CRD by [`crd`]).
//! Everything that walks an object walks it along a [`Schema`]: decoding, pruning, defaulting, validation, strategic
//! merge, server-side apply, OpenAPI. The graph is plain data; it never changes once built.

pub mod cel;
mod clause;
pub mod crd;
pub mod default;
pub mod embedded;
pub mod formats;
pub mod gotime;
mod path;
pub mod prune;
pub mod quantity;
#[cfg(test)]
mod recorded;
pub mod regexp;
pub mod rules;
pub mod typed;
pub mod validate;

use std::sync::Arc;

use super::value::{Text, Value};

/// A type.
#[derive(Debug, Default, Clone)]
pub struct Schema {
    /// What values of it look like.
    pub shape: Shape,
    /// Its OpenAPI name, of built-in types: `io.k8s.api.core.v1.Container`. The part after the last dot is the Go type.
    pub name: Option<Text>,
    /// The Go type as its errors print it (`v1.Protocol`), where shape and name do not tell.
    pub go: Option<Text>,
    /// Whether `null` is a value (custom resources only; in built-in types `null` means absent).
    pub nullable: bool,
    /// The value of an absent field, where the schema itself says so (custom resources, and keys of associative lists).
    pub default: Option<Value>,
    /// The only values allowed, if any are listed.
    pub allowed: Vec<Value>,
    /// Further rules of a custom resource's schema.
    pub rules: Option<Box<rules::Rules>>,
}

/// What values of a type look like.
#[derive(Debug, Default, Clone)]
pub enum Shape {
    /// Anything, and nothing in it is pruned (`RawExtension`, `x-kubernetes-preserve-unknown-fields` without a type).
    #[default]
    Any,
    /// A boolean.
    Bool,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// Any number.
    Number,
    /// A string.
    Str,
    /// An integer or a string.
    IntOrString,
    /// A resource quantity: a string or number, kept in canonical form.
    Quantity,
    /// RFC 3339 to the second.
    Time,
    /// RFC 3339 to the microsecond.
    MicroTime,
    /// A Go duration such as `1m30s`.
    Duration,
    /// Base64.
    Bytes,
    /// An object with known fields.
    Struct(Struct),
    /// An object whose keys are data.
    Map {
        /// The type of its values.
        values: Arc<Schema>,
        /// Owned and replaced as one (`x-kubernetes-map-type: atomic`).
        atomic: bool,
    },
    /// A list.
    List {
        /// The type of its items.
        items: Arc<Schema>,
        /// How server-side apply sees it.
        topology: Topology,
        /// How strategic merge patch sees it.
        merge: Merge,
    },
}

/// An object with known fields.
#[derive(Debug, Default, Clone)]
pub struct Struct {
    /// The fields, sorted by name.
    pub fields: Vec<(Text, Field)>,
    /// Unknown fields are kept (`x-kubernetes-preserve-unknown-fields`).
    pub open: bool,
    /// Owned and replaced as one (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// A whole Kubernetes object with apiVersion, kind and metadata of its own (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
    /// Strategic merge drops fields the patch does not name (`patchStrategy: retainKeys`).
    pub retain_keys: bool,
}

/// A field of a [`Struct`].
#[derive(Debug, Clone)]
pub struct Field {
    /// Its type.
    pub schema: Arc<Schema>,
    /// It must be given.
    pub required: bool,
    /// What Go's encoder does with an empty one.
    pub empty: Empty,
    /// What the built-in defaulters put here when it is absent (data from the real server's code).
    pub default: Option<Value>,
    /// Strategic merge of this field drops what the patch does not name (`patchStrategy: retainKeys` on the field).
    pub retain_keys: bool,
    /// Strategic merge replaces this object instead of merging it (`patchStrategy: replace`).
    pub replace: bool,
}

/// What decoding into Go's type and encoding again does with an empty or absent field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Empty {
    /// A pointer: absent stays absent, an explicit zero stays. Custom resources behave like this.
    #[default]
    Keep,
    /// A plain value with `omitempty`: an explicit zero disappears.
    Omit,
    /// A plain value without `omitempty` (or a struct, for which it does nothing): an absent one shows as its zero.
    Show,
    /// A pointer, list or map without `omitempty`: an absent or empty one shows as `null`.
    Null,
}

/// How server-side apply sees a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Topology {
    /// One value, owned as a whole.
    #[default]
    Atomic,
    /// A set of scalars, each owned by itself.
    Set,
    /// Items identified by these fields.
    Map(Vec<Text>),
}

/// How strategic merge patch sees a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Merge {
    /// The patch's list replaces the old one.
    #[default]
    Replace,
    /// Scalars are united.
    Union,
    /// Items are merged by this key.
    Key(Text),
}

impl Schema {
    /// A type of this shape, without a name or rules.
    pub fn of(shape: Shape) -> Schema {
        Schema { shape, ..Schema::default() }
    }

    /// The struct, if it is one.
    pub fn as_struct(&self) -> Option<&Struct> {
        match &self.shape {
            Shape::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    /// The type of a field of a struct or of the values of a map.
    pub fn child(&self, key: &str) -> Option<&Arc<Schema>> {
        match &self.shape {
            Shape::Struct(fields) => fields.field(key).map(|field| &field.schema),
            Shape::Map { values, .. } => Some(values),
            _ => None,
        }
    }

    /// The Go type's bare name: `Container`.
    pub fn go_type(&self) -> &str {
        let name = self.name.as_deref().unwrap_or_default();
        name.rsplit('.').next().unwrap_or_default()
    }
}

impl Struct {
    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by(|(key, _)| key.as_str().cmp(name)).ok()?;
        Some(&self.fields[at].1)
    }
}

impl Field {
    /// An optional field of this type, without a default.
    pub fn of(schema: impl Into<Arc<Schema>>) -> Field {
        let schema = schema.into();
        Field { schema, required: false, empty: Empty::Keep, default: None, retain_keys: false, replace: false }
    }
}
