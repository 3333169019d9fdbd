//! The values rules compute with. Data of an object is looked at in place, typed by its schema as it is touched.

use std::{cmp::Ordering, collections::BTreeMap, fmt, sync::Arc};

use base64::Engine;
use jiff::Timestamp;

use super::{
    opaque::Opaque,
    types::{Part, escape, unescape},
};
use crate::{
    schema::{Schema, Shape, Topology, formats, validate::go_type},
    status::go_float,
    value::{Map, Text, Value, intern},
};

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Str(Text),
    Bytes(Arc<[u8]>),
    /// In nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    /// A list the rule made.
    List(Arc<Vec<Val<'a>>>),
    /// A map the rule made.
    Map(Arc<BTreeMap<Key, Val<'a>>>),
    /// A list of the object, with its schema.
    Items(&'a [Value], &'a Schema),
    /// An object of the object, with its schema: fields by name, or the entries of a map.
    Object(&'a Map, &'a Schema, Part),
    /// Data the schema says nothing about: it can be compared, nothing else.
    Raw(&'a Value),
    Optional(Option<Arc<Val<'a>>>),
    /// A type, by name.
    Type(&'static str),
    Opaque(Arc<Opaque>),
}

/// A key of a map.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Str(Text),
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fault {
    /// An operation on values it is not made for.
    Overload,
    /// The rule cost too much.
    Limit,
    /// Anything else, in the words of the real server.
    Words(String),
}

/// A value, or why there is none.
pub(super) type Outcome<'a> = Result<Val<'a>, Fault>;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Overload => f.write_str("no such overload"),
            Fault::Limit => f.write_str("operation cancelled: actual cost limit exceeded"),
            Fault::Words(words) => f.write_str(words),
        }
    }
}

/// A fault in these words.
pub(super) fn fault<T>(words: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Words(words.into()))
}

impl<'a> Val<'a> {
    /// The value of data, as its schema types it.
    pub(super) fn of(value: &'a Value, schema: &'a Schema, part: Part) -> Outcome<'a> {
        if value.is_null() {
            return match schema.nullable {
                true => Ok(Val::Null),
                false => fault("invalid data, got null for schema with nullable=false"),
            };
        }
        let rules = schema.rules.as_deref();
        if rules.is_some_and(|rules| rules.untyped) {
            return Ok(Val::Raw(value));
        }
        let expected = |what: &str| fault(format!("invalid data, expected {what}, got {}", go_type(value)));
        match (&schema.shape, value) {
            (Shape::IntOrString, Value::Str(text)) => Ok(Val::Str(text.clone())),
            (Shape::IntOrString, Value::Int(n)) => Ok(Val::Int(*n)),
            (Shape::IntOrString, _) => {
                fault("invalid data, expected XIntOrString value to be either a string or integer")
            }
            (Shape::Struct(_) | Shape::Map { .. }, Value::Map(map)) => Ok(Val::Object(map, schema, part)),
            (Shape::Struct(_) | Shape::Map { .. }, _) => {
                fault("invalid data, expected a map for the provided schema with type=object")
            }
            (Shape::List { .. }, Value::List(items)) => Ok(Val::Items(items, schema)),
            (Shape::List { .. }, _) => fault("invalid data, expected an array for the provided schema with type=array"),
            (Shape::Number, Value::Int(n)) => Ok(Val::Double(*n as f64)),
            (Shape::Number, Value::Float(f)) => Ok(Val::Double(*f)),
            (Shape::Number, _) => expected("float"),
            (Shape::Int32 | Shape::Int64, Value::Int(n)) => Ok(Val::Int(*n)),
            (Shape::Int32 | Shape::Int64, _) => expected("int"),
            (Shape::Bool, Value::Bool(b)) => Ok(Val::Bool(*b)),
            (Shape::Bool, _) => expected("bool"),
            (Shape::Any, _) => Ok(Val::Raw(value)),
            (_, Value::Str(text)) => formatted(text, rules.and_then(|rules| rules.format.as_ref())),
            _ => expected("string"),
        }
    }

    /// The name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Uint(_) => "uint",
            Val::Double(_) => "double",
            Val::Str(_) => "string",
            Val::Bytes(_) => "bytes",
            Val::Duration(_) => "google.protobuf.Duration",
            Val::Timestamp(_) => "google.protobuf.Timestamp",
            Val::List(_) | Val::Items(..) => "list",
            Val::Map(_) | Val::Object(..) => "map",
            Val::Raw(_) => "unknown",
            Val::Optional(_) => "optional_type",
            Val::Type(_) => "type",
            Val::Opaque(opaque) => opaque.type_name(),
        }
    }

    /// The truth, if it is one.
    pub(super) fn truth(&self) -> Result<bool, Fault> {
        match self {
            Val::Bool(b) => Ok(*b),
            _ => Err(Fault::Overload),
        }
    }

    /// How many items or entries it has.
    pub(super) fn len(&self) -> Option<usize> {
        match self {
            Val::List(items) => Some(items.len()),
            Val::Items(items, _) => Some(items.len()),
            Val::Map(map) => Some(map.len()),
            Val::Object(map, ..) => Some(map.len()),
            _ => None,
        }
    }

    /// The item of a list.
    pub(super) fn item(&self, index: usize) -> Option<Outcome<'a>> {
        match self {
            Val::List(items) => items.get(index).cloned().map(Ok),
            Val::Items(items, schema) => items.get(index).map(|item| typed_item(item, schema)),
            _ => None,
        }
    }

    /// The items of a list; a fault if it is none.
    pub(super) fn items(&self) -> Result<Vec<Val<'a>>, Fault> {
        match self {
            Val::List(items) => Ok(items.to_vec()),
            Val::Items(items, schema) => items.iter().map(|item| typed_item(item, schema)).collect(),
            _ => Err(Fault::Overload),
        }
    }

    /// The entry of a map or field of an object, by the name rules use.
    pub(super) fn find(&self, key: &Val<'a>) -> Result<Option<Val<'a>>, Fault> {
        match self {
            Val::Map(map) => {
                let keys = key.keys();
                Ok(keys.iter().flatten().find_map(|key| map.get(key)).cloned())
            }
            Val::Object(map, schema, part) => {
                let Val::Str(name) = key else { return Err(Fault::Overload) };
                match &schema.shape {
                    Shape::Struct(fields) => {
                        let raw = if name.contains("__") { unescape(name) } else { Some(name.clone()) };
                        let Some(raw) = raw else { return Ok(None) };
                        let Some(value) = map.get(&raw).filter(|value| !value.is_null()) else { return Ok(None) };
                        if *part == Part::Meta {
                            return Ok(value.as_text().cloned().map(Val::Str));
                        }
                        let Some(field) = fields.field(&raw) else {
                            // The type is there even where the schema is silent about it.
                            let known = *part == Part::Resource && matches!(raw.as_str(), "apiVersion" | "kind");
                            return Ok(value.as_text().filter(|_| known).cloned().map(Val::Str));
                        };
                        let inner = match (part, raw.as_str()) {
                            (Part::Resource, "metadata") => Part::Meta,
                            _ => part_of(&field.schema),
                        };
                        Val::of(value, &field.schema, inner).map(Some)
                    }
                    Shape::Map { values, .. } => {
                        map.get(name).map(|value| Val::of(value, values, part_of(values))).transpose()
                    }
                    _ => Ok(None),
                }
            }
            _ => Err(Fault::Overload),
        }
    }

    /// The keys of a map, in order; a fault if it is none.
    pub(super) fn key_list(&self) -> Result<Vec<Val<'a>>, Fault> {
        match self {
            Val::Map(map) => Ok(map.keys().map(Key::to_val).collect()),
            Val::Object(map, schema, _) => Ok(map
                .keys()
                .filter(|key| schema.child(key).is_some())
                .map(|key| match &schema.shape {
                    Shape::Struct(_) => Val::Str(escape(key).map_or_else(|| key.clone(), Text::from)),
                    _ => Val::Str(key.clone()),
                })
                .collect()),
            _ => Err(Fault::Overload),
        }
    }

    /// What it may be as a key: a number may be written as another kind of number. What is no key is in no map.
    fn keys(&self) -> [Option<Key>; 2] {
        match self {
            Val::Bool(b) => [Some(Key::Bool(*b)), None],
            Val::Str(text) => [Some(Key::Str(text.clone())), None],
            Val::Int(n) => [Some(Key::Int(*n)), u64::try_from(*n).ok().map(Key::Uint)],
            Val::Uint(n) => [Some(Key::Uint(*n)), i64::try_from(*n).ok().map(Key::Int)],
            Val::Double(f) if f.fract() == 0.0 && f.abs() < 9.0e15 => {
                [Some(Key::Int(*f as i64)), Some(Key::Uint(*f as u64))]
            }
            _ => [None, None],
        }
    }

    /// It as a key of a map the rule makes.
    pub(super) fn into_key(self) -> Result<Key, Fault> {
        match self {
            Val::Bool(b) => Ok(Key::Bool(b)),
            Val::Str(text) => Ok(Key::Str(text)),
            Val::Int(n) => Ok(Key::Int(n)),
            Val::Uint(n) => Ok(Key::Uint(n)),
            other => fault(format!("unsupported key type: {}", other.type_name())),
        }
    }

    /// Whether both are equal. Values of different types are not, but what the real server cannot compare is a fault.
    pub(super) fn equal(&self, other: &Val<'a>) -> Result<bool, Fault> {
        match (self, other) {
            (Val::Null, Val::Null) => Ok(true),
            (Val::Null, _) | (_, Val::Null) => Ok(false),
            (Val::Items(..), other) | (Val::List(_), other) => self.equal_lists(other),
            (Val::Object(..), Val::Object(..)) | (Val::Map(_), Val::Map(_) | Val::Object(..)) => self.equal_maps(other),
            (Val::Object(..), Val::Map(_)) => self.equal_maps(other),
            (Val::Object(..), _) => Err(Fault::Overload),
            (Val::Bool(a), Val::Bool(b)) => Ok(a == b),
            (Val::Str(a), Val::Str(b)) => Ok(a == b),
            (Val::Bytes(a), Val::Bytes(b)) => Ok(a == b),
            (Val::Duration(a), Val::Duration(b)) => Ok(a == b),
            (Val::Timestamp(a), Val::Timestamp(b)) => Ok(a == b),
            (Val::Type(a), Val::Type(b)) => Ok(a == b),
            (Val::Raw(a), Val::Raw(b)) => Ok(a == b),
            (Val::Optional(None), Val::Optional(None)) => Ok(true),
            (Val::Optional(Some(a)), Val::Optional(Some(b))) => a.equal(b),
            (Val::Opaque(a), Val::Opaque(b)) => a.equal(b),
            (Val::Opaque(_), _) => Err(Fault::Overload),
            _ => Ok(self.order_numbers(other) == Some(Ordering::Equal)),
        }
    }

    fn equal_lists(&self, other: &Val<'a>) -> Result<bool, Fault> {
        let (Some(length), true) = (self.len(), matches!(other, Val::List(_) | Val::Items(..))) else {
            return if matches!(self, Val::Items(..)) { Err(Fault::Overload) } else { Ok(false) };
        };
        if other.len() != Some(length) {
            return Ok(false);
        }
        let topology = match self {
            Val::Items(_, schema) => match &schema.shape {
                Shape::List { topology, .. } => topology.clone(),
                _ => Topology::Atomic,
            },
            _ => Topology::Atomic,
        };
        if topology == Topology::Atomic {
            for i in 0..length {
                if let (Some(a), Some(b)) = (self.item(i), other.item(i))
                    && !a?.equal(&b?)?
                {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        // The order of a set or a map does not matter.
        let (mine, theirs) = (self.items()?, other.items()?);
        for b in &theirs {
            let mut found = false;
            for a in &mine {
                found |= a.equal(b) == Ok(true);
            }
            if !found {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn equal_maps(&self, other: &Val<'a>) -> Result<bool, Fault> {
        if self.len() != other.len() {
            return Ok(false);
        }
        if let (Val::Object(a, schema, _), Val::Object(b, ..)) = (self, other) {
            // Fields the schema does not show count too.
            let hidden = |key: &Text| schema.child(key).is_none();
            if a.iter().any(|(key, value)| hidden(key) && b.get(key).is_some_and(|other| other != value)) {
                return Ok(false);
            }
        }
        for key in self.key_list()? {
            match (self.find(&key)?, other.find(&key)?) {
                (Some(a), Some(b)) if a.equal(&b)? => {}
                (None, None) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The order of two numbers of any kind; `None` if one is none or not a number.
    fn order_numbers(&self, other: &Val<'_>) -> Option<Ordering> {
        match (self, other) {
            (Val::Int(a), Val::Int(b)) => Some(a.cmp(b)),
            (Val::Uint(a), Val::Uint(b)) => Some(a.cmp(b)),
            (Val::Double(a), Val::Double(b)) => a.partial_cmp(b),
            (Val::Int(a), Val::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Val::Uint(a), Val::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Val::Int(a), Val::Double(b)) => order_int_double(i128::from(*a), *b),
            (Val::Uint(a), Val::Double(b)) => order_int_double(i128::from(*a), *b),
            (Val::Double(a), Val::Int(b)) => order_int_double(i128::from(*b), *a).map(Ordering::reverse),
            (Val::Double(a), Val::Uint(b)) => order_int_double(i128::from(*b), *a).map(Ordering::reverse),
            _ => None,
        }
    }

    /// The order of two values that have one.
    pub(super) fn order(&self, other: &Val<'_>) -> Result<Ordering, Fault> {
        match (self, other) {
            (Val::Bool(a), Val::Bool(b)) => Ok(a.cmp(b)),
            (Val::Str(a), Val::Str(b)) => Ok(a.as_str().cmp(b.as_str())),
            (Val::Bytes(a), Val::Bytes(b)) => Ok(a.cmp(b)),
            (Val::Duration(a), Val::Duration(b)) => Ok(a.cmp(b)),
            (Val::Timestamp(a), Val::Timestamp(b)) => Ok(a.cmp(b)),
            (Val::Int(_) | Val::Uint(_) | Val::Double(_), Val::Int(_) | Val::Uint(_) | Val::Double(_)) => {
                match self.order_numbers(other) {
                    Some(order) => Ok(order),
                    None => fault("NaN values cannot be ordered"),
                }
            }
            _ => Err(Fault::Overload),
        }
    }
}

fn order_int_double(n: i128, f: f64) -> Option<Ordering> {
    if f.is_nan() {
        return None;
    }
    (n as f64).partial_cmp(&f)
}

impl Key {
    /// The key as a value.
    pub(super) fn to_val<'a>(&self) -> Val<'a> {
        match self {
            Key::Bool(b) => Val::Bool(*b),
            Key::Int(n) => Val::Int(*n),
            Key::Uint(n) => Val::Uint(*n),
            Key::Str(text) => Val::Str(text.clone()),
        }
    }
}

/// Which fields an object of this schema shows to rules.
pub(super) fn part_of(schema: &Schema) -> Part {
    match schema.as_struct().is_some_and(|fields| fields.embedded) {
        true => Part::Resource,
        false => Part::Plain,
    }
}

fn typed_item<'a>(item: &'a Value, list: &'a Schema) -> Outcome<'a> {
    match &list.shape {
        Shape::List { items, .. } => Val::of(item, items, part_of(items)),
        _ => Ok(Val::Raw(item)),
    }
}

/// A text with the format its schema names.
fn formatted<'a>(text: &Text, format: Option<&formats::Format>) -> Outcome<'a> {
    match format.map(|format| format.name.as_str()) {
        Some("duration") => match formats::duration(text) {
            Some(nanos) => Ok(Val::Duration(nanos)),
            None => fault(format!("Invalid duration {text}: unable to parse {text} as duration")),
        },
        Some("date") => match format!("{text}T00:00:00Z").parse() {
            Ok(time) => Ok(Val::Timestamp(time)),
            Err(_) => fault(format!("Invalid date formatted string {text}")),
        },
        Some("date-time") => match parse_time(text) {
            Some(time) => Ok(Val::Timestamp(time)),
            None => fault(format!("Invalid date-time formatted string {text}")),
        },
        Some("byte") => match base64::engine::general_purpose::URL_SAFE.decode(text.as_str()) {
            Ok(bytes) => Ok(Val::Bytes(bytes.into())),
            Err(_) => fault(format!("Invalid byte formatted string {text}")),
        },
        _ => Ok(Val::Str(text.clone())),
    }
}

/// RFC 3339, or the same without a zone, which means UTC.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| format!("{text}Z").parse().ok())
}

/// The text of a float, as the `string` function writes it.
pub(super) fn double_text(f: f64) -> String {
    go_float(f)
}

/// A text as a value.
pub(super) fn text<'a>(text: impl AsRef<str>) -> Val<'a> {
    Val::Str(intern(text.as_ref()))
}

/// Items as a list.
pub(super) fn list<'a>(items: impl IntoIterator<Item = Val<'a>>) -> Val<'a> {
    Val::List(Arc::new(items.into_iter().collect()))
}
