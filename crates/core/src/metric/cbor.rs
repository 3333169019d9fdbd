//! CBOR as AWS speaks it: what JSON has, and moments in time.
//!
//! Never reads further than it is given, nor deeper than a message of AWS goes.

use crate::kubernetes::value::{Map, Value};

/// How deep lists and maps may lie in each other.
const DEPTH: usize = 32;
/// The tag of seconds since 1970.
const MOMENT: u64 = 1;

/// Writes a value; fields of these names are moments, in seconds.
pub fn write(value: &Value, moments: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, value, moments);
    out
}

fn put(out: &mut Vec<u8>, value: &Value, moments: &[&str]) {
    match value {
        Value::Null => out.push(0xf6),
        Value::Bool(flag) => out.push(if *flag { 0xf5 } else { 0xf4 }),
        Value::Int(number) if *number >= 0 => head(out, 0, number.unsigned_abs()),
        Value::Int(number) => head(out, 1, number.unsigned_abs() - 1),
        Value::Float(number) => float(out, *number),
        Value::Str(text) => put_text(out, text.as_str()),
        Value::List(items) => {
            head(out, 4, items.len() as u64);
            items.iter().for_each(|item| put(out, item, moments));
        }
        Value::Map(map) => {
            head(out, 5, map.len() as u64);
            for (key, value) in map.iter() {
                put_text(out, key.as_str());
                match value.as_float().filter(|_| moments.contains(&key.as_str())) {
                    Some(seconds) => {
                        head(out, 6, MOMENT);
                        float(out, seconds);
                    }
                    None => put(out, value, moments),
                }
            }
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    head(out, 3, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn float(out: &mut Vec<u8>, number: f64) {
    out.push(0xfb);
    out.extend_from_slice(&number.to_be_bytes());
}

/// The kind of what follows, and how much of it.
fn head(out: &mut Vec<u8>, major: u8, number: u64) {
    let bytes = number.to_be_bytes();
    let (short, rest) = match number {
        0..24 => (number as u8, 0),
        24..0x100 => (24, 1),
        0x100..0x1_0000 => (25, 2),
        0x1_0000..0x1_0000_0000 => (26, 4),
        0x1_0000_0000.. => (27, 8),
    };
    out.push(major << 5 | short);
    out.extend_from_slice(&bytes[8 - rest..]);
}

/// Reads a value, all of it; nothing if it is not CBOR. Tags are passed over, bytes are text.
pub fn read(bytes: &[u8]) -> Option<Value> {
    let mut reader = Reader { rest: bytes };
    let value = reader.value(DEPTH)?;
    reader.rest.is_empty().then_some(value)
}

struct Reader<'b> {
    rest: &'b [u8],
}

/// How much of something follows: so many, or up to a stop.
enum Length {
    Known(u64),
    Open,
}

impl Reader<'_> {
    fn take(&mut self, count: u64) -> Option<&[u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(count).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self, count: u64) -> Option<u64> {
        Some(self.take(count)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn length(&mut self, short: u8) -> Option<Length> {
        let count = match short {
            0..24 => return Some(Length::Known(short.into())),
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            31 => return Some(Length::Open),
            _ => return None,
        };
        self.number(count).map(Length::Known)
    }

    /// Whether the stop of an open length is next; it is taken.
    fn stops(&mut self) -> Option<bool> {
        let is_stop = *self.rest.first()? == 0xff;
        if is_stop {
            self.take(1)?;
        }
        Some(is_stop)
    }

    /// Whether there is one more of something.
    fn more(&mut self, length: &Length, had: u64) -> Option<bool> {
        match length {
            Length::Known(count) => Some(had < *count),
            Length::Open => self.stops().map(|stops| !stops),
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let first = *self.take(1)?.first()?;
        let (major, short) = (first >> 5, first & 0x1f);
        if major == 7 {
            return self.simple(short);
        }
        let length = self.length(short)?;
        match (major, length) {
            (0, Length::Known(number)) => Some(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int)),
            (1, Length::Known(number)) => {
                let below = i64::try_from(number).ok().and_then(|number| (-1_i64).checked_sub(number));
                Some(below.map_or(Value::Float(-1.0 - number as f64), Value::Int))
            }
            (2 | 3, length) => self.text(length, depth).map(|text| Value::from(text.as_str())),
            (4, length) => {
                let mut items = Vec::new();
                while self.more(&length, items.len() as u64)? {
                    items.push(self.value(depth)?);
                }
                Some(Value::list(items))
            }
            (5, length) => {
                let (mut map, mut had) = (Map::default(), 0);
                while self.more(&length, had)? {
                    let key = self.value(depth)?;
                    map.insert(key.as_str()?.to_owned(), self.value(depth)?);
                    had += 1;
                }
                Some(Value::Map(map))
            }
            (6, Length::Known(_)) => self.value(depth),
            _ => None,
        }
    }

    fn text(&mut self, length: Length, depth: usize) -> Option<String> {
        match length {
            Length::Known(count) => Some(String::from_utf8_lossy(self.take(count)?).into_owned()),
            Length::Open => {
                let mut all = String::new();
                while !self.stops()? {
                    all.push_str(self.value(depth)?.as_str()?);
                }
                Some(all)
            }
        }
    }

    fn simple(&mut self, short: u8) -> Option<Value> {
        match short {
            20 => Some(Value::Bool(false)),
            21 => Some(Value::Bool(true)),
            22 | 23 => Some(Value::Null),
            25 => self.number(2).map(|bits| Value::Float(half(bits as u16))),
            26 => self.number(4).map(|bits| Value::Float(f32::from_bits(bits as u32).into())),
            27 => self.number(8).map(|bits| Value::Float(f64::from_bits(bits))),
            _ => None,
        }
    }
}

/// A number of 16 bits: a sign, five bits of exponent and ten of fraction.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (fraction + 1024.0) * 2_f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn what_is_written_is_read() {
        let value = value!({
            "text": "grüße", "int": 1709288430, "below": (-70000), "small": 23, "float": 1.5, "yes": true, "no": false,
            "none": null, "list": [1, [2, {"a": "b"}]], "empty": {},
        });
        assert_eq!(read(&write(&value, &[])), Some(value));
    }

    #[test]
    fn a_moment_has_a_tag() {
        let written = write(&value!({"At": 2}), &["At"]);
        assert_eq!(written, [0xa1, 0x62, b'A', b't', 0xc1, 0xfb, 0x40, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(read(&written).unwrap().get("At").and_then(Value::as_float), Some(2.0));
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        for (bytes, expected) in [
            (vec![0xf9, 0x3c, 0x00], value!(1.0)),
            (vec![0xf9, 0x00, 0x01], value!(5.960464477539063e-8)),
            (vec![0xf9, 0xc4, 0x00], value!(-4.0)),
            (vec![0xfa, 0x47, 0xc3, 0x50, 0x00], value!(100000.0)),
            (vec![0x9f, 0x01, 0x82, 0x02, 0x03, 0xff], value!([1, [2, 3]])),
            (vec![0xbf, 0x61, 0x61, 0x01, 0xff], value!({"a": 1})),
            (vec![0x7f, 0x62, b'a', b'b', 0x61, b'c', 0xff], value!("abc")),
            (vec![0x38, 0x63], value!(-100)),
        ] {
            assert_eq!(read(&bytes), Some(expected), "{bytes:x?}");
        }
    }

    #[test]
    fn nonsense_is_nothing() {
        for bytes in [&[][..], &[0x82, 0x01], &[0x5a, 0xff, 0xff, 0xff, 0xff], &[0x1c], &[0x01, 0x02], &[0x9f, 0x01]] {
            assert_eq!(read(bytes), None, "{bytes:x?}");
        }
        assert_eq!(read(&[0x81; 1000]), None);
        assert_eq!(read(&[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
