//! The JSON value everything works on: compact, shared, ordered.
//!
//! A stored object is a tree of [`Value`]s. Maps and lists are reference-counted, so that a patch copies only the path it
//! changes and the watch history, the store and every reader share the rest; two equal subtrees of one lineage are
//! recognised by address ([`Value::is`]), which makes comparing, defaulting and ownership tracking cost what changed.
//! Keys are interned. Never holds an I/O handle, never mutates what another holder can see.

use std::{cell::RefCell, cmp::Ordering, fmt, iter, sync::Arc};

use arcstr::ArcStr;
use foldhash::{HashSet, HashSetExt};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
    ser::{SerializeMap, SerializeSeq},
};

/// A shared, immutable string: one word, cloned without copying.
pub type Text = ArcStr;

/// Any JSON value.
#[derive(Clone, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number written without fraction or exponent that fits 64 bits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    Str(Text),
    /// An array.
    List(Arc<Vec<Value>>),
    /// An object.
    Map(Map),
}

/// A JSON object: its fields sorted by key, shared until written to.
#[derive(Clone, Default)]
pub struct Map(Arc<Vec<(Text, Value)>>);

/// Up to so many fields are looked through from the first to the last.
const FEW: usize = 24;

impl Value {
    /// Reads JSON. A key given twice keeps its last value, as Go does; use [`parse`] to be told of it.
    pub fn from_json(bytes: &[u8]) -> Result<Value, serde_json::Error> {
        Value::part_of_json(bytes, Part::Whole)
    }

    /// Reads this part of an object, or of what holds objects, and passes over the rest without making values of it.
    pub fn part_of_json(bytes: &[u8], part: Part) -> Result<Value, serde_json::Error> {
        read(bytes, part, &mut Scratch::default())
    }

    /// Writes compact JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// An empty object.
    pub fn object() -> Value {
        Value::Map(Map::default())
    }

    /// A list of these items.
    pub fn list(items: impl IntoIterator<Item = Value>) -> Value {
        Value::List(Arc::new(items.into_iter().collect()))
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        self.as_text().map(Text::as_str)
    }

    /// The shared string, if it is one.
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if it is one (an integral float counts, as `1e3` does in Go).
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(*n),
            Value::Float(f) if f.fract() == 0.0 && f.abs() < 9.0e15 => Some(*f as i64),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(f) => Some(*f),
            _ => None,
        }
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The object, to be changed, if it is one.
    pub fn as_map_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The items, if it is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The items, to be changed, if it is a list. Copies the list's spine if it is shared.
    pub fn as_list_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::List(items) => Some(Arc::make_mut(items)),
            _ => None,
        }
    }

    /// The field of an object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map()?.get(key)
    }

    /// The value at a path of object fields: `at(&["metadata", "name"])`.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The string at a path of object fields.
    pub fn str_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// The integer at a path of object fields.
    pub fn int_at(&self, path: &[&str]) -> Option<i64> {
        self.at(path)?.as_int()
    }

    /// The items of the list at a path of object fields; none if there is no list.
    pub fn list_at(&self, path: &[&str]) -> &[Value] {
        self.at(path).and_then(Value::as_list).unwrap_or_default()
    }

    /// Sets the value at a path of object fields, making objects on the way where there are none.
    pub fn set_at(&mut self, path: &[&str], value: impl Into<Value>) {
        let Some((first, rest)) = path.split_first() else {
            *self = value.into();
            return;
        };
        if !matches!(self, Value::Map(_)) {
            *self = Value::object();
        }
        let Value::Map(map) = self else { return };
        map.entry(first).set_at(rest, value);
    }

    /// Removes the value at a path of object fields and returns it.
    pub fn remove_at(&mut self, path: &[&str]) -> Option<Value> {
        let (last, parents) = path.split_last()?;
        self.at(path)?;
        let parent = parents.iter().try_fold(self, |value, key| value.as_map_mut()?.get_mut(key))?;
        parent.as_map_mut()?.remove(last)
    }

    /// Whether both are the very same shared value. `true` implies equality; `false` says nothing.
    pub fn is(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Map(a), Value::Map(b)) => Arc::ptr_eq(&a.0, &b.0),
            (Value::List(a), Value::List(b)) => Arc::ptr_eq(a, b),
            (Value::Str(a), Value::Str(b)) => Text::ptr_eq(a, b),
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            _ => false,
        }
    }

    /// Holds what it has in common with another value only once: equal parts become the other's own. Answers whether all
    /// of it is.
    pub fn share(&mut self, with: &Value) -> bool {
        if self.is(with) {
            return true;
        }
        let same = match (&mut *self, with) {
            (Value::Map(ours), Value::Map(theirs)) => {
                let mut same = ours.len() == theirs.len();
                for (key, value) in Arc::make_mut(&mut ours.0) {
                    same &= theirs.get(key).is_some_and(|theirs| value.share(theirs));
                }
                same
            }
            (Value::List(ours), Value::List(theirs)) => {
                let mut same = ours.len() == theirs.len();
                for (value, theirs) in Arc::make_mut(ours).iter_mut().zip(theirs.iter()) {
                    same &= value.share(theirs);
                }
                same
            }
            (ours, theirs) => *ours == *theirs,
        };
        if same {
            *self = with.clone();
        }
        same
    }

    /// The JSON name of this value's type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Int(_) => "integer",
            Value::Float(_) => "number",
            Value::Str(_) => "string",
            Value::List(_) => "array",
            Value::Map(_) => "object",
        }
    }
}

impl Map {
    /// An object of these fields, which stand in the order of their keys, each once.
    pub fn sorted(fields: Vec<(Text, Value)>) -> Map {
        debug_assert!(fields.is_sorted_by(|a, b| a.0 < b.0));
        Map(Arc::new(fields))
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields in key order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Text, &Value)> + DoubleEndedIterator + Clone {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// The fields in key order, as they are kept.
    pub fn entries(&self) -> &[(Text, Value)] {
        &self.0
    }

    /// The keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Text> {
        self.0.iter().map(|(key, _)| key)
    }

    /// The values in key order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.0.iter().map(|(_, value)| value)
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(k, _)| k.as_str().cmp(key))
    }

    /// Which field, in key order, is named `key`.
    pub fn position(&self, key: &str) -> Option<usize> {
        // The keys of a small object seldom have one length, which is seen without reading them.
        if self.0.len() <= FEW {
            self.0.iter().position(|(name, _)| name.len() == key.len() && name.as_str() == key)
        } else {
            self.find(key).ok()
        }
    }

    /// The field named `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position(key).map(|i| &self.0[i].1)
    }

    /// Whether there is a field named `key`.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// The field named `key`, to be changed. Copies the map's spine if it is shared: ask `get` first where most calls
    /// change nothing.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.position(key).map(|i| &mut Arc::make_mut(&mut self.0)[i].1)
    }

    /// Sets a field and returns what it held before.
    pub fn insert(&mut self, key: impl Into<Text>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.find(&key) {
            Ok(i) => Some(std::mem::replace(&mut Arc::make_mut(&mut self.0)[i].1, value)),
            Err(i) => {
                Arc::make_mut(&mut self.0).insert(i, (key, value));
                None
            }
        }
    }

    /// The field named `key`, made `null` first if there is none.
    pub fn entry(&mut self, key: &str) -> &mut Value {
        let at = self.position(key).unwrap_or_else(|| {
            let at = self.find(key).unwrap_or_else(|at| at);
            Arc::make_mut(&mut self.0).insert(at, (intern(key), Value::Null));
            at
        });
        &mut Arc::make_mut(&mut self.0)[at].1
    }

    /// Removes a field and returns it.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let i = self.position(key)?;
        Some(Arc::make_mut(&mut self.0).remove(i).1)
    }

    /// Keeps the fields for which `keep` holds. Copies nothing when all are kept.
    pub fn retain(&mut self, mut keep: impl FnMut(&Text, &Value) -> bool) {
        if self.0.iter().any(|(key, value)| !keep(key, value)) {
            Arc::make_mut(&mut self.0).retain(|(key, value)| keep(key, value));
        }
    }

    /// Whether both are the very same shared map.
    pub fn is(&self, other: &Map) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The keys of both maps in order, each with its value here and its value there. A walk through maps of one lineage,
    /// whose keys are the same by address, compares no texts.
    pub fn beside<'a>(
        &'a self,
        other: &'a Map,
    ) -> impl Iterator<Item = (&'a Text, Option<&'a Value>, Option<&'a Value>)> {
        let (mut here, mut there) = (self.0.iter().peekable(), other.0.iter().peekable());
        iter::from_fn(move || {
            let order = match (here.peek(), there.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) if Text::ptr_eq(a, b) => Ordering::Equal,
                (Some((a, _)), Some((b, _))) => a.as_str().cmp(b.as_str()),
            };
            let here = here.next_if(|_| order.is_le());
            let there = there.next_if(|_| order.is_ge());
            let key = here.or(there).map(|(key, _)| key)?;
            Some((key, here.map(|(_, value)| value), there.map(|(_, value)| value)))
        })
    }
}

impl<K: Into<Text>, V: Into<Value>> FromIterator<(K, V)> for Map {
    /// The last of several equal keys wins.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(fields: I) -> Map {
        let mut all: Vec<(Text, Value)> = fields.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        sort_fields(&mut all);
        Map(Arc::new(all))
    }
}

/// Sorts by key; of equal keys the last one given stays.
fn sort_fields(fields: &mut Vec<(Text, Value)>) {
    if fields.is_sorted_by(|a, b| a.0 < b.0) {
        return;
    }
    fields.reverse();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields.dedup_by(|later, first| later.0 == first.0);
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => *a as f64 == *b,
            (Value::Str(a), Value::Str(b)) => Text::ptr_eq(a, b) || a == b,
            (Value::List(a), Value::List(b)) => Arc::ptr_eq(a, b) || a == b,
            (Value::Map(a), Value::Map(b)) => a == b,
            _ => false,
        }
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Map) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(other)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::Map(self.clone()).fmt(f)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

macro_rules! from {
    ($($type:ty => |$x:ident| $value:expr),* $(,)?) => {
        $(impl From<$type> for Value { fn from($x: $type) -> Value { $value } })*
    };
}
from! {
    bool => |b| Value::Bool(b),
    i32 => |n| Value::Int(n.into()),
    u32 => |n| Value::Int(n.into()),
    i64 => |n| Value::Int(n),
    usize => |n| Value::Int(n as i64),
    f64 => |n| Value::Float(n),
    &str => |s| Value::Str(s.into()),
    String => |s| Value::Str(s.into()),
    Text => |s| Value::Str(s),
    &Text => |s| Value::Str(s.clone()),
    Map => |m| Value::Map(m),
    Vec<Value> => |items| Value::List(Arc::new(items)),
    &Value => |value| value.clone(),
    serde_json::Value => |json| match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(b) => Value::Bool(b),
        serde_json::Value::Number(n) => n.as_i64().map_or_else(|| Value::Float(n.as_f64().unwrap_or(f64::MAX)), Value::Int),
        serde_json::Value::String(s) => Value::Str(s.into()),
        serde_json::Value::Array(items) => Value::list(items.into_iter().map(Value::from)),
        serde_json::Value::Object(fields) =>
            Value::Map(fields.into_iter().map(|(k, v)| (intern(&k), Value::from(v))).collect()),
    },
}

impl From<&Value> for serde_json::Value {
    fn from(value: &Value) -> serde_json::Value {
        match value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(b) => (*b).into(),
            Value::Int(n) => (*n).into(),
            Value::Float(f) => (*f).into(),
            Value::Str(s) => s.as_str().into(),
            Value::List(items) => items.iter().map(serde_json::Value::from).collect(),
            Value::Map(map) => map.iter().map(|(k, v)| (k.to_string(), serde_json::Value::from(v))).collect(),
        }
    }
}

/// Writes a [`Value`] as in `serde_json::json!`.
#[macro_export]
macro_rules! value {
    ($($json:tt)+) => { $crate::value::Value::from(::serde_json::json!($($json)+)) };
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(b) => serializer.serialize_bool(*b),
            Value::Int(n) => serializer.serialize_i64(*n),
            // Go writes 1.0 as 1, but keeps the sign of zero.
            Value::Float(f) if f.fract() == 0.0 && f.abs() < 9.0e15 && f.to_bits() != (-0.0f64).to_bits() => {
                serializer.serialize_i64(*f as i64)
            }
            Value::Float(f) => serializer.serialize_f64(*f),
            Value::Str(s) => serializer.serialize_str(s),
            Value::List(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| seq.serialize_element(item))?;
                seq.end()
            }
            Value::Map(map) => map.serialize(serializer),
        }
    }
}

impl Serialize for Map {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(Some(self.len()))?;
        self.iter().try_for_each(|(key, value)| out.serialize_entry(key.as_str(), value))?;
        out.end()
    }
}

/// What [`parse`] read.
pub struct Parsed {
    /// The value; of a key given twice, the last.
    pub value: Value,
    /// The paths of keys given twice, as Go's strict decoder names them: `spec.replicas`, `spec.ports[0].name`.
    pub duplicates: Vec<String>,
}

/// How much of an object is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// All of it.
    Whole,
    /// What it is, without who wrote it: `metadata.managedFields` are often more than half of an object.
    WithoutOwners,
    /// Which object it is, and which version of it.
    Metadata,
}

impl Part {
    /// Whether what this key holds is passed over, in a map that is itself found here.
    fn leaves_out(self, key: &str, parent: Option<&Path<'_>>) -> bool {
        let is_owners = || key == "managedFields" && parent.is_some_and(|parent| parent.is_key("metadata"));
        match self {
            Part::Whole => false,
            Part::WithoutOwners => is_owners(),
            Part::Metadata => (parent.is_none() && key != "metadata") || is_owners(),
        }
    }
}

/// Reads JSON and notes keys that are given twice.
pub fn parse(bytes: &[u8]) -> Result<Parsed, serde_json::Error> {
    let mut scratch = Scratch { duplicates: Some(Vec::new()), ..Scratch::default() };
    let value = read(bytes, Part::Whole, &mut scratch)?;
    Ok(Parsed { value, duplicates: scratch.duplicates.unwrap_or_default() })
}

fn read(bytes: &[u8], part: Part, scratch: &mut Scratch) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Seed { path: None, part, scratch }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        let seed = Seed { path: None, part: Part::Whole, scratch: &mut Scratch::default() };
        deserializer.deserialize_newtype_struct(SHARED, seed)
    }
}

/// What a field that wants a [`Value`] says it wants. A deserializer that reads from values knows the word and
/// [hands over](hand_over) its own subtree; every other one makes a new tree.
#[doc(hidden)]
pub const SHARED: &str = "tidegate::Value";

thread_local! {
    static HANDED_OVER: RefCell<Option<Value>> = const { RefCell::new(None) };
}

/// Gives a value to the field that asked for it; to be called right before `visit_newtype_struct`.
pub fn hand_over(value: Value) {
    HANDED_OVER.replace(Some(value));
}

/// Where the parser is: a chain on the stack, rendered only when a duplicate is found.
#[derive(Clone, Copy)]
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl Path<'_> {
    fn is_key(&self, name: &str) -> bool {
        matches!(self.step, Step::Key(key) if key == name)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Key(key) if self.parent.is_some() => write!(f, ".{key}"),
            Step::Key(key) => f.write_str(key),
            Step::Index(i) => write!(f, "[{i}]"),
        }
    }
}

/// What has been read of the maps and lists that are still open, the innermost last: each gets exactly the room it needs
/// when it closes.
#[derive(Default)]
struct Scratch {
    fields: Vec<(Text, Value)>,
    items: Vec<Value>,
    /// The paths of keys given twice, if somebody wants to know.
    duplicates: Option<Vec<String>>,
}

struct Seed<'a> {
    path: Option<&'a Path<'a>>,
    part: Part,
    scratch: &'a mut Scratch,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        HANDED_OVER.take().map_or_else(|| self.deserialize(deserializer), Ok)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Int(n))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(i64::try_from(n).map_or(Value::Float(n as f64), Value::Int))
    }

    fn visit_f64<E>(self, f: f64) -> Result<Value, E> {
        Ok(Value::Float(f))
    }

    fn visit_str<E>(self, s: &str) -> Result<Value, E> {
        Ok(Value::Str(if s.len() <= 8 { intern(s) } else { s.into() }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let start = self.scratch.items.len();
        loop {
            let path = Path { parent: self.path, step: Step::Index(self.scratch.items.len() - start) };
            let seed = Seed { path: Some(&path), part: self.part, scratch: self.scratch };
            match seq.next_element_seed(seed)? {
                Some(item) => self.scratch.items.push(item),
                None => return Ok(Value::list(self.scratch.items.drain(start..))),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let start = self.scratch.fields.len();
        let mut seen: HashSet<Text> = HashSet::new();
        while let Some(Key(key)) = map.next_key()? {
            if self.part.leaves_out(&key, self.path) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let path = Path { parent: self.path, step: Step::Key(&key) };
            if let Some(duplicates) = &mut self.scratch.duplicates {
                let fields = &self.scratch.fields[start..];
                // Small objects are searched, large ones (of a hostile client, say) remembered.
                let twice = match fields.len() {
                    0..=32 => fields.iter().any(|(k, _)| *k == key),
                    33 => {
                        seen.extend(fields.iter().map(|(k, _)| k.clone()));
                        !seen.insert(key.clone())
                    }
                    _ => !seen.insert(key.clone()),
                };
                if twice {
                    let path = path.to_string();
                    if !duplicates.contains(&path) {
                        duplicates.push(path);
                    }
                }
            }
            let value = map.next_value_seed(Seed { path: Some(&path), part: self.part, scratch: self.scratch })?;
            self.scratch.fields.push((key, value));
        }
        let mut fields: Vec<(Text, Value)> = self.scratch.fields.drain(start..).collect();
        sort_fields(&mut fields);
        Ok(Value::Map(Map(Arc::new(fields))))
    }
}

/// An interned object key.
struct Key(Text);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object key")
            }
            fn visit_str<E: de::Error>(self, s: &str) -> Result<Key, E> {
                Ok(Key(intern(s)))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// How many distinct strings a thread interns before it stops adding: hostile keys must not grow the table for ever.
const INTERN_LIMIT: usize = 16 * 1024;

thread_local! {
    static INTERNED: RefCell<HashSet<Text>> = RefCell::new(HashSet::with_capacity(1024));
}

/// The shared copy of a short string that occurs often, such as a field name.
pub fn intern(s: &str) -> Text {
    if s.len() > 64 {
        return s.into();
    }
    INTERNED.with_borrow_mut(|table| {
        if let Some(text) = table.get(s) {
            return text.clone();
        }
        let text = Text::from(s);
        if table.len() < INTERN_LIMIT {
            table.insert(text.clone());
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_two_words() {
        assert_eq!(std::mem::size_of::<Value>(), 16);
    }

    #[test]
    fn json_survives_a_round_trip_sorted() {
        let text = r#"{"b":[1,2.5,"x",null,true],"a":{"z":-1,"y":{}}}"#;
        let value = Value::from_json(text.as_bytes()).unwrap();
        assert_eq!(value.to_json(), r#"{"a":{"y":{},"z":-1},"b":[1,2.5,"x",null,true]}"#);
    }

    #[test]
    fn integral_floats_print_as_go_prints_them() {
        assert_eq!(Value::from_json(b"[1.0,1e3,1.5]").unwrap().to_json(), "[1,1000,1.5]");
    }

    #[test]
    fn what_is_left_out_is_as_if_it_were_not_there() {
        let text = br#"{"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[{"f:spec":{}}]},"spec":{"managedFields":1}}}"#;
        let read = |bytes: &[u8], part| Value::part_of_json(bytes, part).unwrap().to_json();
        let without = r#"{"object":{"metadata":{"name":"a"},"spec":{"managedFields":1}},"type":"ADDED"}"#;
        assert_eq!(read(text, Part::WithoutOwners), without);
        let object = br#"{"kind":"Pod","metadata":{"name":"a","managedFields":[]},"spec":{"metadata":{}}}"#;
        assert_eq!(read(object, Part::Metadata), r#"{"metadata":{"name":"a"}}"#);
        assert!(Value::part_of_json(br#"{"kind":[}"#, Part::Metadata).is_err(), "it is still JSON");
    }

    #[test]
    fn duplicates_are_named_once_and_the_last_wins() {
        let parsed = parse(br#"{"spec":{"a":1,"a":2,"a":3,"l":[{"k":1,"k":2}]},"b":1,"b":0}"#).unwrap();
        assert_eq!(parsed.duplicates, ["spec.a", "spec.l[0].k", "b"]);
        assert_eq!(parsed.value.to_json(), r#"{"b":0,"spec":{"a":3,"l":[{"k":2}]}}"#);
    }

    #[test]
    fn a_change_copies_only_its_path() {
        let old = value!({"a": {"b": 1}, "c": {"d": 2}});
        let mut new = old.clone();
        new.set_at(&["a", "b"], 5);
        assert_eq!(old.int_at(&["a", "b"]), Some(1));
        assert_eq!(new.int_at(&["a", "b"]), Some(5));
        assert!(new.get("c").unwrap().is(old.get("c").unwrap()));
        assert!(!new.get("a").unwrap().is(old.get("a").unwrap()));
    }

    #[test]
    fn what_is_shared_stays_as_it_was() {
        let with = value!({"a": [{"x": 1}, {"y": 2.5}], "b": {"c": "a longer text"}, "d": null});
        for text in [
            r#"{"a":[{"x":1},{"y":2.5}],"b":{"c":"a longer text"},"d":null}"#,
            r#"{"a":[{"x":1}],"b":{"c":"a longer text","e":1}}"#,
            r#"{"a":{"x":1},"b":[]}"#,
            "5",
        ] {
            let mut value = Value::from_json(text.as_bytes()).unwrap();
            let same = value.share(&with);
            assert_eq!(value.to_json(), text);
            assert_eq!(same, value.is(&with), "{text}");
        }
        let mut part = value!({"b": {"c": "a longer text", "e": 1}});
        part.share(&with);
        assert!(part.at(&["b", "c"]).unwrap().is(with.at(&["b", "c"]).unwrap()));
    }

    #[test]
    fn two_maps_are_walked_key_by_key() {
        let (a, b) = (value!({"a": 1, "b": 2, "d": 4}), value!({"b": 3, "c": 5, "d": 4, "e": 6}));
        let (Value::Map(a), Value::Map(b)) = (a, b) else { panic!("two maps") };
        let int = |value: Option<&Value>| value.and_then(Value::as_int).unwrap_or_default();
        let walk: Vec<_> = a.beside(&b).map(|(key, a, b)| (key.as_str(), int(a), int(b))).collect();
        assert_eq!(walk, [("a", 1, 0), ("b", 2, 3), ("c", 0, 5), ("d", 4, 4), ("e", 0, 6)]);
    }

    #[test]
    fn removing_what_is_absent_copies_nothing() {
        let old = value!({"a": {"b": 1}});
        let mut new = old.clone();
        assert!(new.remove_at(&["a", "x"]).is_none());
        assert!(new.is(&old));
        assert_eq!(new.remove_at(&["a", "b"]), Some(Value::Int(1)));
        assert_eq!(new, value!({"a": {}}));
    }
}
