//! The two scalars of Kubernetes that JSON has no type for: a number or a string, and a moment.

use std::{borrow::Cow, fmt, ops::Deref};

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

use crate::kubernetes::{
    clock::with_rfc3339,
    schema::gotime::{self, Precision},
};

/// A number or a string, as it was given: `3`, `"25%"`, `"{{args.count}}"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IntOrString {
    /// A number.
    Int(i32),
    /// A string.
    String(String),
}

impl IntOrString {
    /// The name by which a deserializer can tell that this type is asked for.
    pub(crate) const NAME: &str = "IntOrString";
}

impl Default for IntOrString {
    fn default() -> IntOrString {
        IntOrString::Int(0)
    }
}

impl From<i32> for IntOrString {
    fn from(number: i32) -> IntOrString {
        IntOrString::Int(number)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> IntOrString {
        IntOrString::String(text.to_owned())
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntOrString::Int(number) => number.fmt(f),
            IntOrString::String(text) => text.fmt(f),
        }
    }
}

impl JsonSchema for IntOrString {
    fn schema_name() -> Cow<'static, str> {
        IntOrString::NAME.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]})
    }
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            IntOrString::Int(number) => serializer.serialize_i32(*number),
            IntOrString::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<IntOrString, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = IntOrString;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a 32-bit number or a string")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<IntOrString, D::Error> {
                deserializer.deserialize_any(self)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<IntOrString, E> {
                i32::try_from(number).map(IntOrString::Int).map_err(|_| E::custom("number out of range"))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<IntOrString, E> {
                i32::try_from(number).map(IntOrString::Int).map_err(|_| E::custom("number out of range"))
            }

            fn visit_str<E>(self, text: &str) -> Result<IntOrString, E> {
                Ok(IntOrString::String(text.to_owned()))
            }

            fn visit_unit<E>(self) -> Result<IntOrString, E> {
                Ok(IntOrString::default())
            }
        }
        deserializer.deserialize_newtype_struct(IntOrString::NAME, Either)
    }
}

/// A moment, to the second. Its default is Go's zero time, the first second of year 1, which is written as `null`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Timestamp);

impl Time {
    /// The name by which a deserializer can tell that this type is asked for.
    pub(crate) const NAME: &str = "Time";

    /// Reads a time as Go does; the error is Go's.
    pub fn parse(text: &str) -> Result<Time, String> {
        gotime::read(text, Precision::Second).map(Time::from)
    }

    /// Whether this is Go's zero time.
    pub fn is_zero(self) -> bool {
        self == Time::default()
    }
}

impl Default for Time {
    fn default() -> Time {
        Time(gotime::zero())
    }
}

impl From<Timestamp> for Time {
    /// Cuts the fraction of the second off, as Go's formatter does.
    fn from(moment: Timestamp) -> Time {
        let fraction = moment.subsec_nanosecond();
        // jiff counts fractions before 1970 downwards; the second that is written is the one before.
        let second = moment.as_second() - i64::from(fraction < 0);
        Time(Timestamp::from_second(second).unwrap_or(moment))
    }
}

impl From<Time> for Timestamp {
    fn from(time: Time) -> Timestamp {
        time.0
    }
}

impl Deref for Time {
    type Target = Timestamp;

    fn deref(&self) -> &Timestamp {
        &self.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_rfc3339(self.0, |text| f.write_str(text))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        Time::NAME.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_zero() {
            return serializer.serialize_unit();
        }
        with_rfc3339(self.0, |text| serializer.serialize_str(text))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        struct Moment;
        impl<'de> Visitor<'de> for Moment {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as 2006-01-02T15:04:05Z")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Time, D::Error> {
                deserializer.deserialize_any(self)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                Time::parse(text).map_err(E::custom)
            }

            fn visit_unit<E>(self) -> Result<Time, E> {
                Ok(Time::default())
            }
        }
        deserializer.deserialize_newtype_struct(Time::NAME, Moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_strings_stay_what_they_were() {
        #[track_caller]
        fn check(json: &str, expected: Option<IntOrString>) {
            let read = serde_json::from_str::<IntOrString>(json);
            assert_eq!(read.as_ref().ok(), expected.as_ref(), "{json}: {read:?}");
            if let Some(value) = expected {
                assert_eq!(serde_json::to_string(&value).unwrap(), json);
            }
        }
        check("3", Some(3.into()));
        check("-1", Some((-1).into()));
        check(r#""25%""#, Some("25%".into()));
        check(r#""3""#, Some("3".into()));
        check("2147483648", None);
        check("1.5", None);
        check("true", None);
        check("[]", None);
    }

    #[test]
    fn times_are_written_in_utc_to_the_second() {
        #[track_caller]
        fn check(json: &str, expected: &str) {
            let time: Time = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&time).unwrap(), expected);
        }
        check(r#""2024-02-29T12:30:15Z""#, r#""2024-02-29T12:30:15Z""#);
        check(r#""2024-02-29T12:30:15.987Z""#, r#""2024-02-29T12:30:15Z""#);
        check(r#""1969-12-31T23:59:58.5Z""#, r#""1969-12-31T23:59:58Z""#);
        check(r#""2024-02-29T14:30:15+02:00""#, r#""2024-02-29T12:30:15Z""#);
        check("null", "null");
        check(r#""0001-01-01T00:00:00Z""#, "null");
        assert!(serde_json::from_str::<Time>(r#""yesterday""#).is_err());
        assert!(serde_json::from_str::<Time>("5").is_err());
    }
}
