//! Reads gob values off a stream whose other end may lie.
//!
//! Bounded in every direction: bytes of a message, memory of a value, depth, and what all announced types take together.
//! Values are read by the types that the stream announces, never by a layout that we expect: plugins built against other
//! versions of Argo Rollouts have other fields.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{Named, Value, number::Reader};

/// Why a stream cannot be read on. All but nothing of it is lost then: what follows cannot be told from the middle of a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A message is shorter than what it should hold.
    #[error("a message ends in the middle of a value")]
    Truncated,
    /// Something that gob does not have.
    #[error("not a gob stream: {0}")]
    Malformed(&'static str),
    /// A value of a type that was not announced.
    #[error("type {0} was not announced")]
    UnknownType(i64),
    /// A type that was announced before, or one of gob's own.
    #[error("type {0} is announced twice")]
    DuplicateType(i64),
    /// More than a stream may hold.
    #[error("{what} exceeds the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it may be.
        limit: usize,
    },
}

/// What a stream may ask of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message.
    pub message: usize,
    /// Bytes of all type definitions together.
    pub definitions: usize,
    /// Bytes of memory that one value may take, roughly.
    pub memory: usize,
    /// How deep values may be nested.
    pub depth: usize,
}

impl Default for Limits {
    /// Room for whatever fits into a Kubernetes object, which is where answers go, several times over.
    fn default() -> Self {
        Limits { message: 4 << 20, definitions: 256 << 10, memory: 16 << 20, depth: 64 }
    }
}

/// Reads one stream.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    buffer: Vec<u8>,
    /// How much of the buffer has been read. It is cleared away once per arrival, not once per value.
    read: usize,
    types: HashMap<i64, Arc<Definition>>,
    defined: usize,
    /// Memory that reading the value at the front has taken so far, over all attempts: a value that comes in several
    /// messages is read again from its start when the next one arrives.
    spent: usize,
}

#[derive(Debug)]
enum Definition {
    Struct(Vec<(Arc<str>, i64)>),
    List(i64),
    Map { key: i64, element: i64 },
    Opaque,
}

/// Why an attempt to read a value ended.
enum Stop {
    NeedsMore,
    Bad(DecodeError),
}

impl From<DecodeError> for Stop {
    fn from(error: DecodeError) -> Self {
        Stop::Bad(error)
    }
}

impl Decoder {
    /// A decoder for a new stream.
    pub fn new(limits: Limits) -> Self {
        Decoder { limits, buffer: Vec::new(), read: 0, types: HashMap::new(), defined: 0, spent: 0 }
    }

    /// Adds what has arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.read);
        self.read = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that have arrived and belong to no complete value.
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.read
    }

    /// The next value, if all of it has arrived.
    pub fn next_value(&mut self) -> Result<Option<Value>, DecodeError> {
        loop {
            let unread = self.buffer.get(self.read..).unwrap_or_default();
            let Some((message, end)) = message(unread, self.limits.message)? else { return Ok(None) };
            let mut reader = Reader(message);
            let id = reader.int()?;
            if id < 0 {
                let size = message.len();
                if size > self.limits.definitions {
                    return Err(DecodeError::TooLarge { what: "type definitions", limit: self.limits.definitions });
                }
                let (id, definition) = read_definition(id, &mut reader, self.limits)?;
                if !reader.0.is_empty() {
                    return Err(DecodeError::Malformed("bytes after a type definition"));
                }
                self.define(HashMap::from([(id, definition)]), size)?;
                self.read += end;
                continue;
            }
            let rest = unread.get(end..).unwrap_or_default();
            let mut attempt =
                Attempt { decoder: self, rest, found: HashMap::new(), found_size: 0, spent: self.spent, depth: 0 };
            let outcome = attempt.top(id, &mut reader);
            let Attempt { rest, found, found_size, spent, .. } = attempt;
            let left = rest.len();
            match outcome {
                Ok(value) => {
                    self.define(found, found_size)?;
                    self.read = self.buffer.len() - left;
                    self.spent = 0;
                    return Ok(Some(value));
                }
                Err(Stop::NeedsMore) => {
                    self.spent = spent;
                    let limit = self.limits.message;
                    let is_too_long = self.pending() > limit.saturating_add(self.limits.definitions);
                    return if is_too_long { Err(DecodeError::TooLarge { what: "a value", limit }) } else { Ok(None) };
                }
                Err(Stop::Bad(error)) => return Err(error),
            }
        }
    }

    fn define(&mut self, found: HashMap<i64, Definition>, size: usize) -> Result<(), DecodeError> {
        self.defined += size;
        if self.defined > self.limits.definitions {
            return Err(DecodeError::TooLarge { what: "type definitions", limit: self.limits.definitions });
        }
        for (id, definition) in found {
            if self.types.insert(id, Arc::new(definition)).is_some() {
                return Err(DecodeError::DuplicateType(id));
            }
        }
        Ok(())
    }
}

/// The first message and where it ends; `None` if it is not complete.
fn message(buffer: &[u8], limit: usize) -> Result<Option<(&[u8], usize)>, DecodeError> {
    let mut reader = Reader(buffer);
    let length = match reader.uint() {
        Ok(length) => length,
        Err(DecodeError::Truncated) => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > limit {
        return Err(DecodeError::TooLarge { what: "a message", limit });
    }
    let start = buffer.len() - reader.0.len();
    Ok(reader.take(length).ok().map(|message| (message, start + length)))
}

/// Reading one value: the types it brings along are kept only if it is complete.
struct Attempt<'d, 'a> {
    decoder: &'d Decoder,
    /// The messages after the one that is being read.
    rest: &'a [u8],
    found: HashMap<i64, Definition>,
    found_size: usize,
    spent: usize,
    depth: usize,
}

impl<'a> Attempt<'_, 'a> {
    /// A value at the start of a message: anything but a struct stands after a zero.
    fn top(&mut self, id: i64, reader: &mut Reader<'a>) -> Result<Value, Stop> {
        let is_struct = match own(id) {
            Some(definition) => matches!(definition, Definition::Struct(_)),
            None if id < FIRST_ID => false,
            None => matches!(self.definition(id)?, Kind::Struct),
        };
        if !is_struct && reader.uint()? != 0 {
            return Err(DecodeError::Malformed("no zero before a single value").into());
        }
        self.value(id, reader)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Stop> {
        self.spent = self.spent.saturating_add(bytes);
        let limit = self.decoder.limits.memory;
        if self.spent > limit { Err(DecodeError::TooLarge { what: "a value", limit }.into()) } else { Ok(()) }
    }

    fn definition(&self, id: i64) -> Result<Kind, DecodeError> {
        let known = self.found.get(&id).or_else(|| self.decoder.types.get(&id).map(|definition| &**definition));
        match known.ok_or(DecodeError::UnknownType(id))? {
            Definition::Struct(_) => Ok(Kind::Struct),
            Definition::List(element) => Ok(Kind::List(*element)),
            Definition::Map { key, element } => Ok(Kind::Map(*key, *element)),
            Definition::Opaque => Ok(Kind::Opaque),
        }
    }

    /// A field of a struct type, by its number.
    fn field(&self, id: i64, number: usize) -> Result<(Arc<str>, i64), DecodeError> {
        let known = own(id)
            .or_else(|| self.found.get(&id))
            .or_else(|| self.decoder.types.get(&id).map(|definition| &**definition));
        match known {
            Some(Definition::Struct(fields)) => fields
                .get(number)
                .map(|(name, id)| (Arc::clone(name), *id))
                .ok_or(DecodeError::Malformed("a field number beyond the type's fields")),
            Some(Definition::List(_) | Definition::Map { .. } | Definition::Opaque) | None => {
                Err(DecodeError::UnknownType(id))
            }
        }
    }

    fn value(&mut self, id: i64, reader: &mut Reader<'a>) -> Result<Value, Stop> {
        self.depth += 1;
        let limit = self.decoder.limits.depth;
        if self.depth > limit {
            return Err(DecodeError::TooLarge { what: "the depth of a value", limit }.into());
        }
        self.spend(size_of::<(Arc<str>, Value)>())?;
        let value = match id {
            BOOL => Value::Bool(reader.uint()? != 0),
            INT => Value::Int(reader.int()?),
            UINT => Value::Uint(reader.uint()?),
            FLOAT => Value::Float(reader.float()?),
            COMPLEX => Value::Complex(reader.float()?, reader.float()?),
            BYTES => Value::Bytes(self.bytes(reader)?.to_vec()),
            TEXT => Value::Text(String::from_utf8_lossy(self.bytes(reader)?).into_owned()),
            INTERFACE => self.interface(reader)?,
            _ if own(id).is_some() => self.read_struct(id, reader)?,
            _ => match self.definition(id)? {
                Kind::Struct => self.read_struct(id, reader)?,
                Kind::List(element) => {
                    let count = reader.count()?;
                    let mut list = Vec::new();
                    for _ in 0..count {
                        list.push(self.value(element, reader)?);
                    }
                    Value::List(list)
                }
                Kind::Map(key, element) => {
                    let count = reader.count()?;
                    let mut map = Vec::new();
                    for _ in 0..count {
                        map.push((self.value(key, reader)?, self.value(element, reader)?));
                    }
                    Value::Map(map)
                }
                Kind::Opaque => Value::Opaque(self.bytes(reader)?.to_vec()),
            },
        };
        self.depth -= 1;
        Ok(value)
    }

    fn bytes(&mut self, reader: &mut Reader<'a>) -> Result<&'a [u8], Stop> {
        let bytes = reader.bytes()?;
        // Text with broken UTF-8 grows threefold.
        self.spend(bytes.len().saturating_mul(3))?;
        Ok(bytes)
    }

    fn read_struct(&mut self, id: i64, reader: &mut Reader<'a>) -> Result<Value, Stop> {
        let mut fields = Vec::new();
        let mut next = 0_usize;
        loop {
            let step = usize::try_from(reader.uint()?).unwrap_or(usize::MAX);
            if step == 0 {
                return Ok(Value::Struct(fields));
            }
            let number = next.saturating_add(step - 1);
            let (name, of) = self.field(id, number)?;
            fields.push((name, self.value(of, reader)?));
            next = number.saturating_add(1);
        }
    }

    /// Definitions may stand between the name and the value: the first in this message, each further one, and then the
    /// value, in a message of its own. What comes after the value goes on in that last message.
    fn interface(&mut self, reader: &mut Reader<'a>) -> Result<Value, Stop> {
        let name = String::from_utf8_lossy(self.bytes(reader)?).into_owned();
        if name.is_empty() {
            return Ok(Value::Interface(None));
        }
        let id = loop {
            if reader.0.is_empty() {
                let Some((message, end)) = message(self.rest, self.decoder.limits.message)? else {
                    return Err(Stop::NeedsMore);
                };
                *reader = Reader(message);
                self.rest = self.rest.get(end..).unwrap_or_default();
            }
            let before = reader.0.len();
            let id = reader.int()?;
            if id >= 0 {
                break id;
            }
            let (id, definition) = read_definition(id, reader, self.decoder.limits)?;
            self.found_size += before - reader.0.len();
            self.spend(before - reader.0.len())?;
            if self.decoder.types.contains_key(&id) || self.found.insert(id, definition).is_some() {
                return Err(DecodeError::DuplicateType(id).into());
            }
            if !reader.0.is_empty() {
                reader.uint()?;
            }
        };
        // The length lets a receiver skip what it does not know; Go does not compare it either.
        reader.uint()?;
        Ok(Value::Interface(Some(Box::new(Named { name, value: self.top(id, reader)? }))))
    }
}

enum Kind {
    Struct,
    List(i64),
    Map(i64, i64),
    Opaque,
}

pub(super) const BOOL: i64 = 1;
pub(super) const INT: i64 = 2;
pub(super) const UINT: i64 = 3;
pub(super) const FLOAT: i64 = 4;
pub(super) const BYTES: i64 = 5;
pub(super) const TEXT: i64 = 6;
pub(super) const COMPLEX: i64 = 7;
pub(super) const INTERFACE: i64 = 8;
/// The first id of a type that is not gob's own.
pub(super) const FIRST_ID: i64 = 64;

/// The types of which a type definition consists: `wireType` and its parts. Our numbers for those within it are our own;
/// they never stand on the wire.
const WIRE: i64 = 16;
const ARRAY: i64 = 17;
const COMMON: i64 = 18;
const SLICE: i64 = 19;
const STRUCT: i64 = 20;
const FIELD: i64 = 21;
const FIELDS: i64 = 22;
const MAP: i64 = 23;
const SELF_MADE: i64 = 24;

/// The definition of one of gob's own struct types. `FIELDS` is the only list among them.
fn own(id: i64) -> Option<&'static Definition> {
    static OWN: OnceLock<HashMap<i64, Definition>> = OnceLock::new();
    let own = OWN.get_or_init(|| {
        let of = |fields: &[(&str, i64)]| {
            Definition::Struct(fields.iter().map(|(name, id)| (Arc::from(*name), *id)).collect())
        };
        HashMap::from([
            (
                WIRE,
                of(&[
                    ("ArrayT", ARRAY),
                    ("SliceT", SLICE),
                    ("StructT", STRUCT),
                    ("MapT", MAP),
                    ("GobEncoderT", SELF_MADE),
                    ("BinaryMarshalerT", SELF_MADE),
                    ("TextMarshalerT", SELF_MADE),
                ]),
            ),
            (ARRAY, of(&[("CommonType", COMMON), ("Elem", INT), ("Len", INT)])),
            (COMMON, of(&[("Name", TEXT), ("Id", INT)])),
            (SLICE, of(&[("CommonType", COMMON), ("Elem", INT)])),
            (STRUCT, of(&[("CommonType", COMMON), ("Field", FIELDS)])),
            (FIELD, of(&[("Name", TEXT), ("Id", INT)])),
            (MAP, of(&[("CommonType", COMMON), ("Key", INT), ("Elem", INT)])),
            (SELF_MADE, of(&[("CommonType", COMMON)])),
        ])
    });
    own.get(&id)
}

/// Reads the definition after its negative id. The id is the one at the head: for a type that Go met first behind a
/// pointer, the id within the definition is another one.
fn read_definition(head: i64, reader: &mut Reader<'_>, limits: Limits) -> Result<(i64, Definition), DecodeError> {
    let id = head.checked_neg().ok_or(DecodeError::Malformed("a type number out of range"))?;
    if id < FIRST_ID {
        return Err(DecodeError::DuplicateType(id));
    }
    let before = reader.0.len();
    let mut shell = Decoder::new(limits);
    // The only list in a definition.
    shell.types.insert(FIELDS, Arc::new(Definition::List(FIELD)));
    let mut attempt = Attempt { decoder: &shell, rest: &[], found: HashMap::new(), found_size: 0, spent: 0, depth: 0 };
    let wire = match attempt.value(WIRE, reader) {
        Ok(wire) => wire,
        Err(Stop::Bad(error)) => return Err(error),
        Err(Stop::NeedsMore) => return Err(DecodeError::Truncated),
    };
    if before - reader.0.len() > limits.definitions {
        return Err(DecodeError::TooLarge { what: "type definitions", limit: limits.definitions });
    }
    let Value::Struct(alternatives) = wire else { return Err(DecodeError::Malformed("a type definition")) };
    let [(which, body)] = alternatives.as_slice() else {
        return Err(DecodeError::Malformed("a type definition that is not of one kind"));
    };
    let definition = match &**which {
        "ArrayT" | "SliceT" => Definition::List(body.int("Elem")),
        "MapT" => Definition::Map { key: body.int("Key"), element: body.int("Elem") },
        "StructT" => {
            let fields = match body.field("Field") {
                Some(Value::List(fields)) => fields.as_slice(),
                _ => &[],
            };
            Definition::Struct(fields.iter().map(|field| (Arc::from(field.text("Name")), field.int("Id"))).collect())
        }
        _ => Definition::Opaque,
    };
    Ok((id, definition))
}
