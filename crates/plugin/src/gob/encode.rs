//! Writes gob values as a fresh Go process does: the same type ids, the same order of definitions, the same zeros left out.
//!
//! A receiver would take other ids and orders as well. Writing the very bytes of Argo Rollouts means that they can be
//! compared, and that no plugin ever reads anything it has not read before.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{
    Schema, Value,
    decode::{BOOL, BYTES, COMPLEX, FIRST_ID, FLOAT, INT, INTERFACE, TEXT, UINT},
    number::{put_bytes, put_float, put_int, put_uint},
    schema::{Of, SelfMade, Shape},
};

/// A value that is not of the type it is to be written as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Another kind of value stands there.
    #[error("not a value of the Go type {0}")]
    WrongKind(String),
    /// A type that the table does not have.
    #[error("no type {0} in the table")]
    NoType(usize),
}

/// Writes one stream. After an error, definitions are missing on the stream: go on with a copy made before.
#[derive(Debug, Clone)]
pub struct Encoder {
    schema: Arc<Schema>,
    state: State,
}

/// What the other end knows by now.
#[derive(Debug, Clone, Default)]
struct State {
    /// The ids given out.
    ids: HashMap<usize, i64>,
    /// The names under which types are announced: where Go met them first decides.
    names: HashMap<usize, String>,
    /// The types announced.
    sent: HashSet<usize>,
}

impl Encoder {
    /// An encoder for a new stream.
    pub fn new(schema: Arc<Schema>) -> Self {
        Encoder { schema, state: State::default() }
    }

    /// An encoder for another stream of the same process: ids are kept, nothing is announced.
    pub fn next_stream(&self) -> Self {
        let State { ids, names, .. } = self.state.clone();
        Encoder { schema: Arc::clone(&self.schema), state: State { ids, names, sent: HashSet::new() } }
    }

    /// A struct, with the definitions that it needs before it.
    pub fn put_struct(&mut self, place: usize, value: &Value) -> Result<Vec<u8>, EncodeError> {
        self.put(|writer, out| {
            writer.announce(Of::Type(place), &mut Vec::new(), out)?;
            let mut message = Vec::new();
            put_int(&mut message, writer.id(Of::Type(place), "")?);
            writer.value(Of::Type(place), value, &mut message)?;
            put_bytes(out, &message);
            Ok(())
        })
    }

    /// Anything but a struct or an interface.
    pub fn put_single(&mut self, of: Of, value: &Value) -> Result<Vec<u8>, EncodeError> {
        self.put(|writer, out| {
            writer.announce(of, &mut Vec::new(), out)?;
            let mut message = Vec::new();
            put_int(&mut message, writer.id(of, "")?);
            message.push(0);
            writer.value(of, value, &mut message)?;
            put_bytes(out, &message);
            Ok(())
        })
    }

    /// An interface: nothing, or a struct under its registered name.
    pub fn put_interface(&mut self, value: Option<(&str, usize, &Value)>) -> Result<Vec<u8>, EncodeError> {
        self.put(|writer, out| {
            let mut message = Vec::new();
            put_int(&mut message, INTERFACE);
            message.push(0);
            match value {
                None => message.push(0),
                Some((name, place, value)) => {
                    put_bytes(&mut message, name.as_bytes());
                    // The first definition goes into this message, right after the name.
                    writer.announce(Of::Type(place), &mut message, out)?;
                    let mut body = Vec::new();
                    writer.value(Of::Type(place), value, &mut body)?;
                    put_int(&mut message, writer.id(Of::Type(place), "")?);
                    put_bytes(&mut message, &body);
                }
            }
            put_bytes(out, &message);
            Ok(())
        })
    }

    fn put(
        &mut self,
        write: impl FnOnce(&mut Writer<'_>, &mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        write(&mut Writer { schema: &self.schema, state: &mut self.state }, &mut out)?;
        Ok(out)
    }
}

struct Writer<'s> {
    schema: &'s Schema,
    state: &'s mut State,
}

impl Writer<'_> {
    fn shape(&self, place: usize) -> Result<&super::schema::Type, EncodeError> {
        self.schema.at(place).ok_or(EncodeError::NoType(place))
    }

    /// The id of a type, given out depth first: to a struct before its fields, to anything else after its elements.
    fn id(&mut self, of: Of, name: &str) -> Result<i64, EncodeError> {
        let place = match of {
            Of::Bool => return Ok(BOOL),
            Of::Int | Of::Int32 => return Ok(INT),
            Of::Uint => return Ok(UINT),
            Of::Float => return Ok(FLOAT),
            Of::Complex => return Ok(COMPLEX),
            Of::Bytes => return Ok(BYTES),
            Of::Text => return Ok(TEXT),
            Of::Interface => return Ok(INTERFACE),
            Of::Type(place) => place,
        };
        if let Some(id) = self.state.ids.get(&place) {
            return Ok(*id);
        }
        let shape = self.shape(place)?.shape.clone();
        self.state.names.insert(place, name.to_owned());
        match shape {
            Shape::Opaque { .. } => {
                self.give(place);
            }
            Shape::Struct(fields) => {
                self.give(place);
                for field in &fields {
                    let name = match field.of {
                        Of::Type(place) => {
                            let of = self.shape(place)?;
                            if of.name.is_empty() { of.go.clone() } else { of.name.clone() }
                        }
                        _ => String::new(),
                    };
                    self.id(field.of, &name)?;
                }
            }
            Shape::Slice(element) | Shape::Array(element, _) => {
                let name = match element {
                    Of::Type(place) => self.shape(place)?.name.clone(),
                    _ => String::new(),
                };
                self.id(element, &name)?;
                self.give(place);
            }
            Shape::Map(key, element) => {
                self.id(key, "")?;
                self.id(element, "")?;
                self.give(place);
            }
        }
        Ok(self.give(place))
    }

    fn give(&mut self, place: usize) -> i64 {
        let next = FIRST_ID + self.state.ids.len() as i64;
        *self.state.ids.entry(place).or_insert(next)
    }

    /// Writes the definitions that the other end lacks: the type, then what it refers to. `head` is put before the first,
    /// in the same message.
    fn announce(&mut self, of: Of, head: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Of::Type(place) = of else { return Ok(()) };
        if self.state.sent.contains(&place) {
            return Ok(());
        }
        let of = self.shape(place)?.clone();
        let id = self.id(Of::Type(place), &of.name)?;
        self.state.sent.insert(place);
        let mut message = std::mem::take(head);
        put_int(&mut message, -id);
        let name = self.state.names.get(&place).cloned().unwrap_or_default();
        let common = |message: &mut Vec<u8>, which: u64| {
            put_uint(message, which);
            put_uint(message, 1);
            if name.is_empty() {
                put_uint(message, 2);
            } else {
                put_uint(message, 1);
                put_bytes(message, name.as_bytes());
                put_uint(message, 1);
            }
            put_int(message, id);
            put_uint(message, 0);
        };
        let mut needs = Vec::new();
        match of.shape {
            Shape::Array(element, length) => {
                common(&mut message, 1);
                self.reference(&mut message, element)?;
                put_uint(&mut message, 1);
                put_int(&mut message, length);
                needs.push(element);
            }
            Shape::Slice(element) => {
                common(&mut message, 2);
                self.reference(&mut message, element)?;
                needs.push(element);
            }
            Shape::Struct(fields) => {
                common(&mut message, 3);
                if !fields.is_empty() {
                    put_uint(&mut message, 1);
                    put_uint(&mut message, fields.len() as u64);
                }
                for field in &fields {
                    put_uint(&mut message, 1);
                    put_bytes(&mut message, field.name.as_bytes());
                    self.reference(&mut message, field.of)?;
                    put_uint(&mut message, 0);
                    needs.push(field.of);
                }
            }
            Shape::Map(key, element) => {
                common(&mut message, 4);
                self.reference(&mut message, key)?;
                self.reference(&mut message, element)?;
                needs.extend([key, element]);
            }
            Shape::Opaque { by, announces } => {
                let which = match by {
                    SelfMade::Gob => 5,
                    SelfMade::Binary => 6,
                    SelfMade::Text => 7,
                };
                common(&mut message, which);
                needs.extend(announces);
            }
        }
        message.extend([0, 0]);
        put_bytes(out, &message);
        for need in needs {
            self.announce(need, &mut Vec::new(), out)?;
        }
        Ok(())
    }

    fn reference(&mut self, message: &mut Vec<u8>, of: Of) -> Result<(), EncodeError> {
        put_uint(message, 1);
        put_int(message, self.id(of, "")?);
        Ok(())
    }

    fn value(&mut self, of: Of, value: &Value, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match (of, value) {
            (Of::Bool, Value::Bool(is)) => put_uint(out, u64::from(*is)),
            (Of::Int | Of::Int32, Value::Int(number)) => put_int(out, *number),
            (Of::Uint, Value::Uint(number)) => put_uint(out, *number),
            (Of::Float, Value::Float(number)) => put_float(out, *number),
            (Of::Complex, Value::Complex(real, imaginary)) => {
                put_float(out, *real);
                put_float(out, *imaginary);
            }
            (Of::Bytes, Value::Bytes(bytes)) => put_bytes(out, bytes),
            (Of::Text, Value::Text(text)) => put_bytes(out, text.as_bytes()),
            (Of::Interface, Value::Interface(None)) => put_uint(out, 0),
            (Of::Type(place), _) => return self.composite(place, value, out),
            _ => return Err(EncodeError::WrongKind(format!("{of:?}").to_lowercase())),
        }
        Ok(())
    }

    fn composite(&mut self, place: usize, value: &Value, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let of = self.schema.at(place).ok_or(EncodeError::NoType(place))?;
        match (&of.shape, value) {
            (Shape::Struct(fields), Value::Struct(values)) => {
                let mut step = 0;
                for field in fields {
                    step += 1;
                    let value = values.iter().find(|(name, _)| *name == field.name).map(|(_, value)| value);
                    let Some(value) = value.filter(|value| !self.is_left_out(field.of, value)) else { continue };
                    put_uint(out, step);
                    self.value(field.of, value, out)?;
                    step = 0;
                }
                put_uint(out, 0);
            }
            (Shape::Slice(element) | Shape::Array(element, _), Value::List(list)) => {
                put_uint(out, list.len() as u64);
                for value in list {
                    self.value(*element, value, out)?;
                }
            }
            (Shape::Map(key, element), Value::Map(map)) => {
                put_uint(out, map.len() as u64);
                for (of, value) in map {
                    self.value(*key, of, out)?;
                    self.value(*element, value, out)?;
                }
            }
            (Shape::Opaque { .. }, Value::Opaque(bytes)) => put_bytes(out, bytes),
            _ => return Err(EncodeError::WrongKind(of.go.clone())),
        }
        Ok(())
    }

    /// Whether a field is left out because it is zero. Structs, arrays, maps that are there and types that write themselves
    /// are always sent; whoever builds the value leaves those out that Go would.
    fn is_left_out(&self, of: Of, value: &Value) -> bool {
        match value {
            Value::Bool(is) => !is,
            Value::Int(number) => *number == 0,
            Value::Uint(number) => *number == 0,
            Value::Float(number) => *number == 0.0,
            Value::Complex(real, imaginary) => *real == 0.0 && *imaginary == 0.0,
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::Text(text) => text.is_empty(),
            Value::List(list) => {
                let of = if let Of::Type(place) = of { self.schema.at(place) } else { None };
                list.is_empty() && !matches!(of.map(|of| &of.shape), Some(Shape::Array(..)))
            }
            Value::Interface(named) => named.is_none(),
            Value::Struct(_) | Value::Map(_) | Value::Opaque(_) => false,
        }
    }
}
