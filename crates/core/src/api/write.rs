//! From a type to its object.
//!
//! Whoever writes an object that differs little from one that is there names that one: what both have in common is then
//! the other's own, found again by its address and not allocated. Never changes what is written, only who shares it.

use serde::{
    Serialize, Serializer,
    ser::{Error as _, Impossible, SerializeMap, SerializeSeq, SerializeStruct},
};
use serde_json::Error;

use crate::kubernetes::value::{Map, Text, Value, intern};

/// The object of a wire type, with the fields that Go would write.
pub fn write<T: Serialize>(object: &T) -> Value {
    write_like(object, &Value::Null)
}

/// The same, sharing with another object what they have in common.
pub fn write_like<T: Serialize>(object: &T, like: &Value) -> Value {
    // Cannot fail: every key is a string, and no type has variants with fields.
    object.serialize(Writer { like: Some(like), ..Writer::default() }).unwrap_or_default()
}

/// The same, of some of its fields only.
pub fn write_fields<T: Serialize>(object: &T, is_wanted: &dyn Fn(&str) -> bool) -> Value {
    object.serialize(Writer { is_wanted: Some(is_wanted), ..Writer::default() }).unwrap_or_default()
}

/// Writes one value.
#[derive(Default)]
struct Writer<'a> {
    /// What stands in this place in the other object.
    like: Option<&'a Value>,
    /// What else stands in the list that this is an item of.
    among: &'a [Value],
    /// Which fields are written, if not all.
    is_wanted: Option<&'a dyn Fn(&str) -> bool>,
}

macro_rules! integers {
    ($($method:ident $type:ty),* $(,)?) => {
        $(fn $method(self, number: $type) -> Result<Value, Error> {
            Ok(Value::Int(number.into()))
        })*
    };
}

impl<'a> Serializer for Writer<'a> {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = Items<'a>;
    type SerializeMap = Fields<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeTuple = Impossible<Value, Error>;
    type SerializeTupleStruct = Impossible<Value, Error>;
    type SerializeTupleVariant = Impossible<Value, Error>;
    type SerializeStructVariant = Impossible<Value, Error>;

    integers! {
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32,
    }

    fn serialize_u64(self, number: u64) -> Result<Value, Error> {
        Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int))
    }

    fn serialize_bool(self, b: bool) -> Result<Value, Error> {
        Ok(Value::Bool(b))
    }

    fn serialize_f32(self, number: f32) -> Result<Value, Error> {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Result<Value, Error> {
        // JSON has no word for infinity.
        Ok(if number.is_finite() { Value::Float(number) } else { Value::Null })
    }

    fn serialize_char(self, character: char) -> Result<Value, Error> {
        self.serialize_str(character.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<Value, Error> {
        match self.like {
            Some(Value::Str(like)) if like.as_str() == text => Ok(Value::Str(like.clone())),
            Some(_) | None => Ok(Value::Str(text.into())),
        }
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, Error> {
        Ok(Value::list(bytes.iter().map(|byte| Value::Int((*byte).into()))))
    }

    fn serialize_none(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Value, Error> {
        Err(unwritable(name))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'a>, Error> {
        let items = self.like.and_then(Value::as_list).unwrap_or_default();
        Ok(Items { like: self.like, items, same: 0, other: Vec::new() })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields<'a>, Error> {
        let Writer { like, among, is_wanted } = self;
        Ok(Fields { among, is_wanted, ..Fields::like(like.and_then(Value::as_map)) })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields<'a>, Error> {
        self.serialize_map(None)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        Err(unwritable("tuple"))
    }

    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Error> {
        Err(unwritable(name))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(unwritable(name))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        Err(unwritable(name))
    }
}

fn unwritable(name: &str) -> Error {
    Error::custom(format_args!("no wire type is made like {name}"))
}

/// An object in the making.
struct Fields<'a> {
    like: Option<&'a Map>,
    /// Where another one may be found that it is more like.
    among: &'a [Value],
    is_wanted: Option<&'a dyn Fn(&str) -> bool>,
    /// The object, which begins as the other: most stay as they were, and need no memory.
    new: Map,
    /// Which of the other's fields are written.
    written: u64,
    /// The key whose value comes next.
    key: Text,
}

impl<'a> Fields<'a> {
    fn like(like: Option<&'a Map>) -> Fields<'a> {
        // One of more fields than can be noted is written without looking at the other.
        let like = like.filter(|like| like.len() <= 64);
        let new = like.cloned().unwrap_or_default();
        Fields { like, among: &[], is_wanted: None, new, written: 0, key: Text::default() }
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        if self.is_wanted.is_some_and(|is_wanted| !is_wanted(key)) {
            return Ok(());
        }
        let mut old = self.old(key);
        let mut new = value.serialize(Writer { like: old.map(|(_, old)| old), ..Writer::default() })?;
        // Items of a list move: the first field of each, such as the type of a condition, tells which one it was.
        let among = std::mem::take(&mut self.among);
        if !among.is_empty() && old.is_none_or(|(_, old)| *old != new) {
            let mut items = among.iter().filter_map(Value::as_map);
            *self = Fields::like(items.find(|item| item.get(key) == Some(&new)));
            old = self.old(key);
            new = old.map_or(new, |(_, old)| old.clone());
        }
        match old {
            Some((at, old)) => {
                self.written |= 1 << at;
                if !new.is(old) {
                    *self.new.entry(key) = new;
                }
            }
            None => drop(self.new.insert(intern(key), new)),
        }
        Ok(())
    }

    /// The other's field, and its place.
    fn old(&self, key: &str) -> Option<(usize, &'a Value)> {
        let like = self.like?;
        let at = like.position(key)?;
        Some((at, &like.entries()[at].1))
    }

    fn close(mut self) -> Value {
        for (at, key) in self.like.into_iter().flat_map(Map::keys).enumerate() {
            if self.written & (1 << at) == 0 {
                self.new.remove(key);
            }
        }
        Value::Map(self.new)
    }
}

impl SerializeStruct for Fields<'_> {
    type Ok = Value;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.field(key, value)
    }

    fn end(self) -> Result<Value, Error> {
        Ok(self.close())
    }
}

impl SerializeMap for Fields<'_> {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        match key.serialize(Writer::default())? {
            Value::Str(key) => self.key = key,
            other => return Err(unwritable(other.type_name())),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = std::mem::take(&mut self.key);
        self.field(&key, value)
    }

    fn end(self) -> Result<Value, Error> {
        Ok(self.close())
    }
}

/// A list in the making.
struct Items<'a> {
    like: Option<&'a Value>,
    items: &'a [Value],
    /// How many items are the same from the beginning.
    same: usize,
    /// All that follow them.
    other: Vec<Value>,
}

impl SerializeSeq for Items<'_> {
    type Ok = Value;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
        let like = self.items.get(self.same + self.other.len());
        let new = item.serialize(Writer { like, among: self.items, is_wanted: None })?;
        if self.other.is_empty() && like.is_some_and(|like| new.is(like)) {
            self.same += 1;
        } else {
            self.other.push(new);
        }
        Ok(())
    }

    fn end(self) -> Result<Value, Error> {
        Ok(match self.like {
            Some(like @ Value::List(_)) if self.other.is_empty() && self.same == self.items.len() => like.clone(),
            Some(_) | None => Value::list(self.items[..self.same].iter().cloned().chain(self.other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::{RolloutStatus, read},
        value,
    };

    #[test]
    fn what_is_as_it_was_is_the_same_and_the_rest_is_new() {
        let condition = |r#type: &str, at: &str| value!({"type": r#type, "status": "True", "reason": "r", "message": "m", "lastUpdateTime": at, "lastTransitionTime": at});
        let (a, b, c) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z");
        let old = value!({"phase": "Healthy", "replicas": 2, "canary": {}, "blueGreen": {"activeSelector": "x"},
            "conditions": [condition("A", a), condition("B", b), condition("C", c)], "stableRS": "x"});
        let mut status = read::<RolloutStatus>(&old).object;
        assert!(write_like(&status, &old).is(&old), "nothing has changed");
        let last = status.conditions.len() - 1;
        status.conditions.rotate_left(1);
        status.conditions[last].message = "n".into();
        (status.stable_rs, status.current_pod_hash) = (String::new(), "y".into());
        let new = write_like(&status, &old);
        assert_eq!(new, write(&status));
        assert_eq!((new.str_at(&["currentPodHash"]), new.get("stableRS")), (Some("y"), None));
        for path in [["canary"], ["blueGreen"], ["phase"]] {
            assert!(new.at(&path).unwrap().is(old.at(&path).unwrap()), "{path:?}");
        }
        let (before, after) = (old.list_at(&["conditions"]), new.list_at(&["conditions"]));
        assert!(after[0].is(&before[1]) && after[1].is(&before[2]));
        assert_eq!(after[2].str_at(&["message"]), Some("n"));
    }

    #[test]
    fn only_the_fields_that_are_asked_for_are_written() {
        let status =
            read::<RolloutStatus>(&value!({"replicas": 1, "phase": "Healthy", "canary": {"stablePingPong": "ping"}}));
        let written = write_fields(&status.object, &|key| ["canary", "phase", "abort"].contains(&key));
        assert_eq!(written, value!({"phase": "Healthy", "canary": {"stablePingPong": "ping"}}));
    }

    #[test]
    fn what_stands_there_changes_nothing_of_what_is_written() {
        let status =
            read::<RolloutStatus>(&value!({"replicas": 1, "conditions": [{"type": "A"}, {"type": "B"}]})).object;
        let written = write(&status);
        for like in [
            value!({}),
            value!([1]),
            value!({"replicas": "1", "conditions": {"type": "A"}, "canary": null, "x": 1}),
            value!({"conditions": [{"type": "B"}, {"type": "A"}, {"type": "B"}, 5]}),
            value!({"conditions": [{"type": "A", "more": true}], "blueGreen": []}),
        ] {
            assert_eq!(write_like(&status, &like).to_json(), written.to_json(), "{like}");
        }
    }
}
