//! The Go types that we send, by reflection: what gob must announce, and how a field is called in JSON.
//!
//! Types refer to each other by their place in the table. Never hand-written for Argo's types: see [`crate::object`].

use std::sync::Arc;

use serde::Deserialize;

/// A table of types.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Schema {
    /// The types.
    pub types: Vec<Type>,
}

/// One type.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Type {
    /// Its name without the package; empty for an unnamed one, such as `[]string`.
    #[serde(default)]
    pub name: String,
    /// How Go prints it: `v1.ObjectMeta`.
    pub go: String,
    /// What it is made of.
    pub shape: Shape,
    /// How its JSON differs from what its fields say.
    #[serde(default)]
    pub form: Form,
}

/// What a type is made of.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Shape {
    /// Fields in declared order; those that gob does not send are left out.
    Struct(Vec<Field>),
    /// A slice of an element.
    Slice(Of),
    /// An array: element and length.
    Array(Of, i64),
    /// A map: key and element.
    Map(Of, Of),
    /// A type that writes itself.
    Opaque {
        /// By which interface.
        by: SelfMade,
        /// The types of its exported fields: they are announced as well.
        #[serde(default)]
        announces: Vec<Of>,
    },
}

/// The interface by which a type writes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SelfMade {
    /// `gob.GobEncoder`
    Gob,
    /// `encoding.BinaryMarshaler`
    Binary,
    /// `encoding.TextMarshaler`
    Text,
}

/// A field of a struct.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its name in Go, which is its name on the wire.
    pub name: Arc<str>,
    /// Its type.
    pub of: Of,
    /// Whether it is a pointer: nothing is then told apart from a zero.
    #[serde(default)]
    pub pointer: bool,
    /// Its name in JSON; none if it is not part of the JSON.
    #[serde(default)]
    pub json: Option<String>,
    /// Whether its own fields stand in the JSON of the struct around it.
    #[serde(default)]
    pub inline: bool,
}

/// A reference to a type: one of gob's own, or a place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Of {
    /// `bool`
    Bool,
    /// `int`, `int64` and their named forms.
    Int,
    /// `int32`
    Int32,
    /// Unsigned integers.
    Uint,
    /// Floating-point numbers.
    Float,
    /// Complex numbers.
    Complex,
    /// `[]byte`; in JSON, raw text of any kind.
    Bytes,
    /// `string`
    Text,
    /// `interface{}`
    Interface,
    /// A type of the table.
    #[serde(untagged)]
    Type(usize),
}

/// How a type's JSON differs from what its fields say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// Not at all.
    #[default]
    Plain,
    /// `metav1.Time`: RFC 3339 in JSON, fifteen bytes in gob.
    Time,
    /// `intstr.IntOrString`: a number or a text in JSON.
    IntOrString,
    /// `resource.Quantity`: a text in JSON, of which gob sends only the notation.
    Quantity,
    /// `metav1.FieldsV1`: any JSON.
    Raw,
}

impl Schema {
    /// The type at a place.
    pub fn at(&self, place: usize) -> Option<&Type> {
        self.types.get(place)
    }
}
