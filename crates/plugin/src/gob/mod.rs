//! Go's gob format: self-describing values on a stream, each type announced once before its first value.
//!
//! Never reads or writes a socket: the decoder is fed bytes and the encoder returns them. Both keep the types of one
//! stream, so every stream needs a pair of its own.

mod decode;
mod encode;
mod number;
pub mod schema;

pub use decode::{DecodeError, Decoder, Limits};
pub use encode::{EncodeError, Encoder};
pub use schema::Schema;

use std::sync::Arc;

/// A value as it stands on the wire: pointers and names of types are gone, and a struct has only the fields that were sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `bool`
    Bool(bool),
    /// Signed integers of any size.
    Int(i64),
    /// Unsigned integers of any size.
    Uint(u64),
    /// Floating-point numbers of either size.
    Float(f64),
    /// A complex number: real, imaginary.
    Complex(f64, f64),
    /// `[]byte` and its named forms.
    Bytes(Vec<u8>),
    /// `string`; bytes that are no UTF-8 are replaced, as Go's JSON encoder does.
    Text(String),
    /// A struct's fields by name, in the order of the type.
    Struct(Vec<(Arc<str>, Value)>),
    /// A slice or an array.
    List(Vec<Value>),
    /// A map, in the order of the wire.
    Map(Vec<(Value, Value)>),
    /// What a type wrote about itself: GobEncoder, BinaryMarshaler, TextMarshaler.
    Opaque(Vec<u8>),
    /// An interface: nothing, or a registered name and a value.
    Interface(Option<Box<Named>>),
}

/// A value in an interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// The name under which both sides registered the type.
    pub name: String,
    /// The value.
    pub value: Value,
}

impl Value {
    /// The field of a struct, if it was sent.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Struct(fields) => fields.iter().find(|(of, _)| &**of == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text of a text field; empty if it was not sent.
    pub fn text(&self, name: &str) -> &str {
        match self.field(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// The number of a signed field; zero if it was not sent.
    pub fn int(&self, name: &str) -> i64 {
        match self.field(name) {
            Some(Value::Int(number)) => *number,
            _ => 0,
        }
    }
}
