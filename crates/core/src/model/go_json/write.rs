//! Writing a value as Go's encoder writes the struct that holds it.

use std::fmt::Write as _;

use super::{Emit, Field, MOST_FIELDS, Shape, Struct, Type, fields_of};
use crate::kubernetes::{
    schema::{
        gotime::{Precision, Read, reread},
        quantity,
    },
    value::{Text, Value},
};

/// Where bytes go: a buffer or a hash.
pub trait Sink {
    /// Takes the next bytes.
    fn put(&mut self, bytes: &[u8]);

    /// Takes the bytes before the first that [cannot stand in a string as it is](is_special), and says how many.
    fn put_plain(&mut self, bytes: &[u8]) -> usize {
        let end = bytes.iter().position(|byte| is_special(*byte)).unwrap_or(bytes.len());
        self.put(&bytes[..end]);
        end
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A quantity, time or int-or-string was met that its decoder refuses: what Go would hold is only known to
/// [`Type::decode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

impl Type {
    /// Writes a value as Go holds it after decoding: unknown fields dropped, values of the wrong type as zeros.
    ///
    /// # Errors
    /// If a part of it ends decoding; then what was put so far is of no use.
    pub fn write(self, value: &Value, out: &mut impl Sink) -> Result<(), Stopped> {
        any(self.0, value, out)
    }

    /// The text of any value, well-formed or not.
    pub fn text(self, value: &Value) -> String {
        let mut out = Vec::new();
        if self.write(value, &mut out).is_err() {
            out.clear();
            // What decoding leaves has no such part.
            let _ = self.write(&self.decode(value).value, &mut out);
        }
        String::from_utf8(out).unwrap_or_default()
    }
}

/// A value of this shape, `null` as its zero.
fn any(shape: &Shape, value: &Value, out: &mut impl Sink) -> Result<(), Stopped> {
    match (shape, value) {
        (Shape::Bool, Value::Bool(true)) => out.put(b"true"),
        (Shape::Bool, _) => out.put(b"false"),
        (Shape::Int32, _) => integer(int32(value).unwrap_or_default().into(), out),
        (Shape::Int64, _) => integer(int64(value).unwrap_or_default(), out),
        (Shape::Str, Value::Str(text)) => string(text, out),
        (Shape::Str, _) => out.put(b"\"\""),
        (Shape::Quantity, _) => return amount(value, out),
        (Shape::Time, _) => return time(value, out),
        (Shape::IntOrString, Value::Str(text)) => string(text, out),
        (Shape::IntOrString, Value::Null) => out.put(b"0"),
        (Shape::IntOrString, _) => integer(int32(value).ok_or(Stopped)?.into(), out),
        (Shape::Raw, _) => raw(value, out),
        (Shape::Struct(index), Value::Map(map)) => return fields(fields_of(*index), map.iter(), out),
        (Shape::Struct(index), _) => return fields(fields_of(*index), std::iter::empty(), out),
        (Shape::List(items), Value::List(list)) => return list_of(items, list, out),
        (Shape::Map(values), Value::Map(map)) => {
            out.put(b"{");
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    out.put(b",");
                }
                string(key, out);
                out.put(b":");
                any(values, value, out)?;
            }
            out.put(b"}");
        }
        (Shape::Optional(inner), value) if !value.is_null() => return any(inner, value, out),
        (Shape::List(_) | Shape::Map(_) | Shape::Optional(_), _) => out.put(b"null"),
    }
    Ok(())
}

fn list_of(items: &Shape, list: &[Value], out: &mut impl Sink) -> Result<(), Stopped> {
    out.put(b"[");
    for (i, item) in list.iter().enumerate() {
        if i > 0 {
            out.put(b",");
        }
        any(items, item, out)?;
    }
    out.put(b"]");
    Ok(())
}

/// The fields in Go's order, whatever order they come in. Most structs are small, and clearing the stack for a large one
/// would cost more than writing them.
fn fields<'v>(
    layout: &Struct,
    given: impl Iterator<Item = (&'v Text, &'v Value)>,
    out: &mut impl Sink,
) -> Result<(), Stopped> {
    match layout.fields.len() {
        0..=8 => laid_out::<8>(layout, given, out),
        _ => laid_out::<MOST_FIELDS>(layout, given, out),
    }
}

fn laid_out<'v, const N: usize>(
    layout: &Struct,
    given: impl Iterator<Item = (&'v Text, &'v Value)>,
    out: &mut impl Sink,
) -> Result<(), Stopped> {
    let mut slots: [&Value; N] = [&Value::Null; N];
    for (key, value) in given {
        if let Some(slot) = layout.find(key).and_then(|at| slots.get_mut(at)) {
            *slot = value;
        }
    }
    out.put(b"{");
    let mut first = true;
    for (field, value) in layout.fields.iter().zip(slots) {
        if !is_written(field, value)? {
            continue;
        }
        if !first {
            out.put(b",");
        }
        first = false;
        out.put(field.key.as_bytes());
        any(&field.shape, value, out)?;
    }
    out.put(b"}");
    Ok(())
}

fn is_written(field: &Field, value: &Value) -> Result<bool, Stopped> {
    Ok(match (field.emit, &field.shape, value) {
        (Emit::Always, _, _) => true,
        (_, _, Value::Null) => false,
        (Emit::NotZero, Shape::Time, _) => canonical_time(value)? != Some(Read::Zero),
        (_, Shape::Bool, value) => *value == Value::Bool(true),
        (_, Shape::Int32, value) => int32(value).is_some_and(|n| n != 0),
        (_, Shape::Int64, value) => int64(value).is_some_and(|n| n != 0),
        (_, Shape::Str, value) => value.as_str().is_some_and(|text| !text.is_empty()),
        (_, Shape::List(_), value) => value.as_list().is_some_and(|items| !items.is_empty()),
        (_, Shape::Map(_), value) => value.as_map().is_some_and(|map| !map.is_empty()),
        // Go finds no struct empty.
        (
            _,
            Shape::Quantity | Shape::Time | Shape::IntOrString | Shape::Raw | Shape::Struct(_) | Shape::Optional(_),
            _,
        ) => true,
    })
}

/// An integer, or a number with nothing behind its point.
pub(super) fn int64(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(*n),
        // Beyond 2^53 a float may stand for another integer than was written; beyond 2^63 it is none.
        Value::Float(f) if f.fract() == 0.0 && *f >= -9.2e18 && *f <= 9.2e18 => Some(*f as i64),
        _ => None,
    }
}

pub(super) fn int32(value: &Value) -> Option<i32> {
    int64(value).and_then(|n| i32::try_from(n).ok())
}

fn integer(n: i64, out: &mut impl Sink) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = n.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        out.put(b"-");
    }
    out.put(&digits[at..]);
}

fn amount(value: &Value, out: &mut impl Sink) -> Result<(), Stopped> {
    match value {
        Value::Str(text) => match quantity::canonical(text).map_err(|_| Stopped)? {
            Some(written) => string(&written, out),
            None => string(text, out),
        },
        Value::Null => out.put(b"\"0\""),
        Value::Int(_) | Value::Float(_) => {
            let text = number_text(value);
            string(&quantity::canonical(&text).map_err(|_| Stopped)?.unwrap_or(text), out);
        }
        Value::Bool(_) | Value::List(_) | Value::Map(_) => return Err(Stopped),
    }
    Ok(())
}

/// What a time is read as; `None` if there is none.
pub(super) fn canonical_time(value: &Value) -> Result<Option<Read>, Stopped> {
    match value {
        Value::Null => Ok(None),
        Value::Str(text) => reread(text, Precision::Second).map(Some).map_err(|_| Stopped),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) | Value::Map(_) => Err(Stopped),
    }
}

fn time(value: &Value, out: &mut impl Sink) -> Result<(), Stopped> {
    match (canonical_time(value)?, value) {
        (Some(Read::Same), Value::Str(text)) => string(text, out),
        (Some(Read::Written(text)), _) => string(&text, out),
        (Some(Read::Zero | Read::Same) | None, _) => out.put(b"null"),
    }
    Ok(())
}

/// Free JSON: keys sorted, numbers as Go's 64-bit types print them.
fn raw(value: &Value, out: &mut impl Sink) {
    match value {
        Value::Null => out.put(b"null"),
        Value::Bool(true) => out.put(b"true"),
        Value::Bool(false) => out.put(b"false"),
        Value::Int(n) => integer(*n, out),
        Value::Float(_) => out.put(number_text(value).as_bytes()),
        Value::Str(text) => string(text, out),
        Value::List(items) => {
            out.put(b"[");
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.put(b",");
                }
                raw(item, out);
            }
            out.put(b"]");
        }
        Value::Map(map) => {
            out.put(b"{");
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    out.put(b",");
                }
                string(key, out);
                out.put(b":");
                raw(value, out);
            }
            out.put(b"}");
        }
    }
}

/// Any value as Go writes it, its keys in their order.
pub fn any_text(value: &Value) -> String {
    let mut out = Vec::new();
    raw(value, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// A number as Go writes it: the shortest digits that read back the same, with an exponent below 1e-6 and from 1e21 on.
pub(super) fn number_text(value: &Value) -> String {
    let float = match value {
        Value::Int(n) => return n.to_string(),
        Value::Float(f) if f.is_finite() => *f,
        _ => return "0".into(),
    };
    if float == 0.0 {
        return if float.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let mut text = String::new();
    if (1e-6..1e21).contains(&float.abs()) {
        let _ = write!(text, "{float}");
    } else {
        let _ = write!(text, "{float:e}");
        // Go writes the sign of every exponent: 1e+21.
        if let Some(at) = text.find('e').filter(|at| text.as_bytes().get(at + 1) != Some(&b'-')) {
            text.insert(at + 1, '+');
        }
    }
    text
}

/// Whether a byte cannot stand in a string as it is. 0xE2 begins U+2028 and U+2029, and much else.
pub fn is_special(byte: u8) -> bool {
    SPECIAL[usize::from(byte)]
}

const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = true;
        byte += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special[b'<' as usize] = true;
    special[b'>' as usize] = true;
    special[b'&' as usize] = true;
    special[0xE2] = true;
    special
};

/// A string with Go's escapes, in quotes.
pub fn string(text: &str, out: &mut impl Sink) {
    let mut rest = text.as_bytes();
    out.put(b"\"");
    loop {
        rest = &rest[out.put_plain(rest)..];
        let taken = match rest {
            [] => break,
            [0xE2, 0x80, 0xA8, ..] => escape(b"\\u2028", 3, out),
            [0xE2, 0x80, 0xA9, ..] => escape(b"\\u2029", 3, out),
            [byte @ 0xE2, ..] => escape(&[*byte], 1, out),
            [b'"', ..] => escape(b"\\\"", 1, out),
            [b'\\', ..] => escape(b"\\\\", 1, out),
            [0x08, ..] => escape(b"\\b", 1, out),
            [0x0C, ..] => escape(b"\\f", 1, out),
            [b'\n', ..] => escape(b"\\n", 1, out),
            [b'\r', ..] => escape(b"\\r", 1, out),
            [b'\t', ..] => escape(b"\\t", 1, out),
            [byte, ..] => {
                let hex = |digit: u8| b"0123456789abcdef"[usize::from(digit & 15)];
                escape(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(*byte)], 1, out)
            }
        };
        rest = &rest[taken..];
    }
    out.put(b"\"");
}

/// Puts what stands for some bytes, and says how many they are.
fn escape(text: &[u8], bytes: usize, out: &mut impl Sink) -> usize {
    out.put(text);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        let rows = [
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (-1.5, "-1.5"),
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (0.1, "0.1"),
            (123456789.5, "123456789.5"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (3.0, "3"),
        ];
        for (number, text) in rows {
            assert_eq!(number_text(&Value::Float(number)), text);
        }
    }

    #[test]
    fn strings_are_escaped_as_go_escapes_them() {
        let mut out = Vec::new();
        string("a<b>&\"\\\u{8}\u{c}\n\r\t\u{1}\u{7f}é\u{2028}\u{2029}\u{2030}", &mut out);
        let expected = "\"a\\u003cb\\u003e\\u0026\\\"\\\\\\b\\f\\n\\r\\t\\u0001\u{7f}é\\u2028\\u2029\u{2030}\"";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
