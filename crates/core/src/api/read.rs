//! From an object to its type, whatever the object holds.
//!
//! Argo Rollouts meets objects that its types cannot hold: somebody's schema let `setWeight: "twenty"` through, or was
//! never installed. It takes such a value for absent and reads on, and so do we: a plain field gets its zero, an optional
//! one a zero that is present. Each such value is named, so that nobody has to guess why it has no effect.
//!
//! Never fails as a whole, never panics, never keeps quiet.
//!
//! One thing is done otherwise: in Argo Rollouts a time or an int-or-string that cannot be read ends reading, and
//! everything that follows it (`status`, with the name of the stable ReplicaSet, for one) is lost. Here it is not.

use std::{cell::RefCell, fmt};

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::{BorrowedStrDeserializer, Error},
    },
    forward_to_deserialize_any,
};

use super::{IntOrString, Time};
use crate::kubernetes::value::{self, Map, Text, Value};

/// What was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Read<T> {
    /// The object.
    pub object: T,
    /// The values that its type cannot hold.
    pub malformed: Vec<Malformed>,
    /// The fields that its type does not have, such as `spec.replica`.
    pub unknown: Vec<String>,
}

/// A value that a type cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Where it is, as Kubernetes writes paths: `spec.strategy.canary.steps[0].setWeight`.
    pub path: String,
    /// What is wrong: `expected a number, found the string "twenty"`.
    pub what: String,
}

/// Reads an object.
pub fn read<T: DeserializeOwned + Default>(object: &Value) -> Read<T> {
    let notes = RefCell::new(Notes::default());
    let reader = Reader { value: object, at: &At::Root, notes: &notes };
    let read = T::deserialize(reader);
    let notes = notes.into_inner();
    // The reader itself never fails; what can is a type with opinions of its own, and none of ours has any.
    let object = read.unwrap_or_default();
    Read { object, malformed: notes.malformed, unknown: notes.unknown }
}

#[derive(Default)]
struct Notes {
    malformed: Vec<Malformed>,
    unknown: Vec<String>,
}

/// Where the reader is: a chain on the stack, rendered only when there is something to say.
enum At<'a> {
    Root,
    Field(&'a At<'a>, &'a str),
    Key(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Root => Ok(()),
            At::Field(At::Root, name) => f.write_str(name),
            At::Field(parent, name) => write!(f, "{parent}.{name}"),
            At::Key(parent, key) => write!(f, "{parent}[{key}]"),
            At::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Asks a value for what a type wants to hold. `'a` is how long the value lives, `'s` how long this step of the walk
/// does.
#[derive(Clone, Copy)]
struct Reader<'a, 's> {
    value: &'a Value,
    at: &'s At<'s>,
    notes: &'s RefCell<Notes>,
}

impl<'a, 's> Reader<'a, 's> {
    /// Notes that the value is not what it should be; `null` never is wrong, it is absent.
    fn expected(&self, what: &str) {
        if !self.value.is_null() {
            self.malformed(format!("expected {what}, found {}", shown(self.value)));
        }
    }

    fn malformed(&self, what: String) {
        let path = self.at.to_string();
        self.notes.borrow_mut().malformed.push(Malformed { path, what });
    }

    /// The integer between these bounds, or zero.
    fn integer(&self, low: i64, high: i64) -> i64 {
        match self.value.as_int() {
            Some(number) if (low..=high).contains(&number) => number,
            Some(number) => {
                self.malformed(format!("expected a number from {low} to {high}, found {number}"));
                0
            }
            None if matches!(self.value, Value::Float(_)) => {
                self.expected("a whole number");
                0
            }
            None => {
                self.expected("a number");
                0
            }
        }
    }

    fn list(&self) -> &'a [Value] {
        self.value.as_list().unwrap_or_else(|| {
            self.expected("a list");
            &[]
        })
    }

    fn map(&self) -> Option<&'a Map> {
        let map = self.value.as_map();
        if map.is_none() {
            self.expected("an object");
        }
        map
    }

    fn entries(&self, fields: bool) -> Entries<'a, 's> {
        let entries = self.map().map(Map::entries).unwrap_or_default();
        Entries { reader: *self, entries: entries.iter(), value: None, fields }
    }
}

/// A value as a message shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(_) | Value::Float(_) => format!("the number {value}"),
        Value::Str(text) if text.len() <= 64 => format!("the string {value}"),
        Value::Str(_) => "a string".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "an object".to_owned(),
    }
}

/// Integers: what does not fit is zero.
macro_rules! integers {
    ($($method:ident $visit:ident $type:ty),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let high = i64::try_from(<$type>::MAX).unwrap_or(i64::MAX);
            let number = self.integer(i64::try_from(<$type>::MIN).unwrap_or(i64::MIN), high);
            visitor.$visit(<$type>::try_from(number).unwrap_or_default())
        })*
    };
}

impl<'de> Deserializer<'de> for Reader<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(b) => visitor.visit_bool(*b),
            Value::Int(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Str(text) => visitor.visit_borrowed_str(text),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Map(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let given = self.value.as_bool();
        if given.is_none() {
            self.expected("true or false");
        }
        visitor.visit_bool(given.unwrap_or_default())
    }

    integers! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64,
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let given = self.value.as_float();
        if given.is_none() {
            self.expected("a number");
        }
        visitor.visit_f64(given.unwrap_or_default())
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let given = self.value.as_str();
        if given.is_none() {
            self.expected("a string");
        }
        visitor.visit_borrowed_str(given.unwrap_or_default())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        const ABSENT: Value = Value::Null;
        let absent = Reader { value: &ABSENT, ..self };
        match name {
            value::SHARED => {
                value::hand_over(self.value.clone());
                visitor.visit_newtype_struct(self)
            }
            IntOrString::NAME => match self.value {
                Value::Str(_) | Value::Null => visitor.visit_newtype_struct(self),
                Value::Int(_) | Value::Float(_) => visitor.visit_i64(self.integer(i32::MIN.into(), i32::MAX.into())),
                Value::Bool(_) | Value::List(_) | Value::Map(_) => {
                    self.expected("a number or a string");
                    visitor.visit_newtype_struct(absent)
                }
            },
            Time::NAME => match self.value {
                Value::Str(text) => match Time::parse(text) {
                    Ok(_) => visitor.visit_newtype_struct(self),
                    Err(_) => {
                        self.expected("a time such as 2006-01-02T15:04:05Z");
                        visitor.visit_newtype_struct(absent)
                    }
                },
                _ => {
                    self.expected("a time such as 2006-01-02T15:04:05Z");
                    visitor.visit_newtype_struct(absent)
                }
            },
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { reader: self, items: self.list().iter().enumerate() })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(self.entries(false))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(self.entries(true))
    }

    /// A field that the type does not have.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.notes.borrow_mut().unknown.push(self.at.to_string());
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier }
}

struct Items<'a, 's> {
    reader: Reader<'a, 's>,
    items: std::iter::Enumerate<std::slice::Iter<'a, Value>>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some((index, value)) = self.items.next() else { return Ok(None) };
        let at = At::Index(self.reader.at, index);
        seed.deserialize(Reader { value, at: &at, notes: self.reader.notes }).map(Some)
    }
}

struct Entries<'a, 's> {
    reader: Reader<'a, 's>,
    entries: std::slice::Iter<'a, (Text, Value)>,
    value: Option<&'a (Text, Value)>,
    /// Whether keys are the fields of a type, not data.
    fields: bool,
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.value = self.entries.next();
        let Some((key, _)) = self.value else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let Some((key, value)) = self.value.take() else { return seed.deserialize(().into_deserializer()) };
        let at = if self.fields { At::Field(self.reader.at, key) } else { At::Key(self.reader.at, key) };
        seed.deserialize(Reader { value, at: &at, notes: self.reader.notes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::{AnalysisTemplate, CanaryStep, Rollout},
        value,
    };

    #[test]
    fn what_a_type_cannot_hold_is_zero_and_named() {
        #[track_caller]
        fn check(step: Value, expected: Value, malformed: &[(&str, &str)]) {
            let read = read::<CanaryStep>(&step);
            assert_eq!(crate::api::write(&read.object), expected, "{step}");
            let named: Vec<_> = read.malformed.iter().map(|bad| (bad.path.as_str(), bad.what.as_str())).collect();
            assert_eq!(named, malformed, "{step}");
        }
        check(value!({"setWeight": 20}), value!({"setWeight": 20}), &[]);
        check(value!({"setWeight": 20.0}), value!({"setWeight": 20}), &[]);
        check(value!({"setWeight": null, "pause": {}}), value!({"pause": {}}), &[]);
        check(
            value!({"setWeight": "twenty"}),
            value!({"setWeight": 0}),
            &[("setWeight", r#"expected a number, found the string "twenty""#)],
        );
        check(
            value!({"setWeight": 1.5}),
            value!({"setWeight": 0}),
            &[("setWeight", "expected a whole number, found the number 1.5")],
        );
        check(
            value!({"setWeight": 3_000_000_000_u32}),
            value!({"setWeight": 0}),
            &[("setWeight", "expected a number from -2147483648 to 2147483647, found 3000000000")],
        );
        check(
            value!({"pause": "10s"}),
            value!({"pause": {}}),
            &[("pause", r#"expected an object, found the string "10s""#)],
        );
        check(
            value!({"pause": {"duration": true}, "setWeight": 5}),
            value!({"pause": {"duration": 0}, "setWeight": 5}),
            &[("pause.duration", "expected a number or a string, found true")],
        );
        check(
            value!({"setCanaryScale": {"matchTrafficWeight": "yes"}}),
            value!({"setCanaryScale": {}}),
            &[("setCanaryScale.matchTrafficWeight", r#"expected true or false, found the string "yes""#)],
        );
        check(
            value!({"setMirrorRoute": {"name": "a", "match": [{"headers": {"x.y/z": 5}}, null]}}),
            value!({"setMirrorRoute": {"name": "a", "match": [{"headers": {"x.y/z": {}}}, {}]}}),
            &[("setMirrorRoute.match[0].headers[x.y/z]", "expected an object, found the number 5")],
        );
    }

    #[test]
    fn a_bad_field_does_not_hurt_those_after_it() {
        let rollout = value!({"kind": "Rollout", "metadata": {"name": 7, "creationTimestamp": "never"},
            "spec": {"restartAt": "soon", "replicas": [], "strategy": {"canary": {"maxSurge": {}, "steps": 3}}},
            "status": {"stableRS": "abc"}});
        let read = read::<Rollout>(&rollout);
        assert_eq!(read.object.status.stable_rs, "abc");
        assert_eq!(read.object.spec.replicas, Some(0));
        assert_eq!(read.object.spec.restart_at, Some(Time::default()));
        let paths: Vec<_> = read.malformed.iter().map(|bad| bad.path.as_str()).collect();
        let canary = "spec.strategy.canary";
        let expected = [
            "metadata.creationTimestamp",
            "metadata.name",
            "spec.replicas",
            "spec.restartAt",
            &format!("{canary}.maxSurge"),
            &format!("{canary}.steps"),
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn what_is_not_an_object_at_all_reads_as_an_empty_one() {
        for nonsense in [value!(null), value!(5), value!("x"), value!([1]), value!({"spec": 5, "status": []})] {
            assert_eq!(read::<Rollout>(&nonsense).object, Rollout::default());
        }
    }

    #[test]
    fn unknown_fields_are_named() {
        let template = value!({"spec": {"metric": [], "metrics": [{"name": "a", "intervall": "1m", "provider": {}}]}});
        let read = read::<AnalysisTemplate>(&template);
        assert_eq!(read.unknown, ["spec.metric", "spec.metrics[0].intervall"]);
        assert_eq!(read.malformed, []);
    }

    #[test]
    fn free_form_parts_share_their_memory_with_the_object() {
        let rollout =
            value!({"spec": {"template": {"spec": {"containers": []}}, "selector": {"matchLabels": {"a": "b"}}}});
        let read = read::<Rollout>(&rollout).object;
        assert!(read.spec.template.is(rollout.at(&["spec", "template"]).unwrap()));
        assert!(read.spec.selector.unwrap().is(rollout.at(&["spec", "selector"]).unwrap()));
    }
}
