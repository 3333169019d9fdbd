//! What a scalar means to kubectl: YAML 1.1 as Go's library reads it, on its way through JSON. Never sees structure.
//!
//! `yes`, `on` and `y` are booleans, `0644` is 420, `1_000` is 1000, `1e3` is the integer 1000, `2001-01-01` is text.

use base64::Engine;

use crate::value::{Value, intern};

/// Why a scalar cannot be a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// JSON has neither infinities nor not-a-number.
    NotFinite,
    /// The text is not of the type its tag names.
    Tag {
        /// The type.
        tag: &'static str,
    },
    /// `!!binary` without base64.
    Base64,
}

/// The tags that Go's library looks at; every other one makes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// There is none.
    None,
    /// `!!str`, the empty tag `!`, and every tag it does not know.
    Text,
    /// `!!int`
    Int,
    /// `!!float`
    Float,
    /// `!!bool`
    Bool,
    /// `!!null`
    Null,
    /// `!!binary`
    Binary,
}

impl Tag {
    /// The tag with this name in YAML's own name space.
    pub fn core(suffix: &str) -> Tag {
        match suffix {
            "int" => Tag::Int,
            "float" => Tag::Float,
            "bool" => Tag::Bool,
            "null" => Tag::Null,
            "binary" => Tag::Binary,
            _ => Tag::Text,
        }
    }
}

/// The value of a scalar.
pub fn read(text: &str, plain: bool, tag: Tag) -> Result<Value, Refusal> {
    let expected = match tag {
        Tag::None if plain => return finite(resolve(text)),
        Tag::None | Tag::Text => return Ok(text_value(text)),
        Tag::Binary => return binary(text),
        Tag::Int => "!!int",
        Tag::Float => "!!float",
        Tag::Bool => "!!bool",
        Tag::Null => "!!null",
    };
    let value = finite(resolve(text))?;
    let fits = match (&value, tag) {
        (Value::Int(_), Tag::Int | Tag::Float) | (Value::Bool(_), Tag::Bool) | (Value::Null, Tag::Null) => true,
        // An integral float has become an integer: look at how it is written.
        (Value::Float(_), Tag::Float) => true,
        _ => false,
    };
    if fits { Ok(value) } else { Err(Refusal::Tag { tag: expected }) }
}

fn text_value(text: &str) -> Value {
    // Short texts repeat: protocols, policies, names of ports.
    Value::Str(if text.len() <= 8 { intern(text) } else { text.into() })
}

fn finite(value: Value) -> Result<Value, Refusal> {
    match value {
        Value::Float(f) if !f.is_finite() => Err(Refusal::NotFinite),
        other => Ok(other),
    }
}

fn binary(text: &str) -> Result<Value, Refusal> {
    let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    let bytes = base64::engine::general_purpose::STANDARD.decode(compact).map_err(|_| Refusal::Base64)?;
    Ok(Value::Str(String::from_utf8_lossy(&bytes).as_ref().into()))
}

/// A plain scalar's value. The first character decides what it can be.
fn resolve(text: &str) -> Value {
    match text.as_bytes().first() {
        None => Value::Null,
        Some(b'+' | b'-' | b'0'..=b'9') => number(text).unwrap_or_else(|| text_value(text)),
        Some(b'.') => dotted(text).unwrap_or_else(|| text_value(text)),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => word(text),
        Some(_) => text_value(text),
    }
}

fn word(text: &str) -> Value {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Value::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Value::Bool(false),
        "~" | "null" | "Null" | "NULL" => Value::Null,
        _ => text_value(text),
    }
}

fn infinite(text: &str) -> Option<f64> {
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        _ => None,
    }
}

fn dotted(text: &str) -> Option<Value> {
    match infinite(text) {
        Some(float) => Some(Value::Float(float)),
        None => float(text),
    }
}

fn number(text: &str) -> Option<Value> {
    if let Some(float) = infinite(text) {
        return Some(Value::Float(float));
    }
    let bare;
    let plain = if text.contains('_') {
        bare = text.replace('_', "");
        bare.as_str()
    } else {
        text
    };
    let (negative, digits) = match plain.as_bytes().first() {
        Some(b'-') => (true, &plain[1..]),
        Some(b'+') => (false, &plain[1..]),
        _ => (false, plain),
    };
    integer(digits, negative).or_else(|| float(plain))
}

/// An integer as Go's `ParseInt` with base 0 reads it. One beyond 64 bits but within an unsigned word is a float in JSON.
fn integer(digits: &str, negative: bool) -> Option<Value> {
    let bytes = digits.as_bytes();
    let (radix, digits) = match bytes {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // from_str_radix takes a sign of its own.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let n = u64::from_str_radix(digits, radix).ok()?;
    match (negative, i64::try_from(n)) {
        (false, Ok(n)) => Some(Value::Int(n)),
        (true, Ok(n)) => Some(Value::Int(-n)),
        (true, Err(_)) if n == 1 << 63 => Some(Value::Int(i64::MIN)),
        (false, Err(_)) => Some(Value::Float(n as f64)),
        (true, Err(_)) => None,
    }
}

/// A float in YAML's notation; an integral one becomes the integer as which Go would print it.
fn float(text: &str) -> Option<Value> {
    if !looks_like_a_float(text) {
        return None;
    }
    let float: f64 = text.parse().ok()?;
    // Go refuses what does not fit, and the scalar stays a text.
    if !float.is_finite() {
        return None;
    }
    Some(integral(float))
}

/// The number as JSON would carry it: floats without a fraction are integers as long as they fit.
pub fn integral(float: f64) -> Value {
    // 2^63 is the first that does not fit; every float below is exact as an integer.
    if float.fract() == 0.0 && float.abs() < 9_223_372_036_854_775_808.0 {
        Value::Int(float as i64)
    } else {
        Value::Float(float)
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn looks_like_a_float(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let whole = digits(rest);
    rest = &rest[whole..];
    if let Some(after) = rest.strip_prefix('.') {
        let decimals = digits(after);
        if whole == 0 && decimals == 0 {
            return false;
        }
        rest = &after[decimals..];
    } else if whole == 0 {
        return false;
    }
    if let Some(after) = rest.strip_prefix(['e', 'E']) {
        let after = after.strip_prefix(['-', '+']).unwrap_or(after);
        let exponent = digits(after);
        return exponent > 0 && exponent == after.len();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn numbers_are_numbers_only_as_go_writes_them() {
        #[track_caller]
        fn check(text: &str, expected: Value) {
            assert_eq!(read(text, true, Tag::None), Ok(expected), "{text}");
        }
        check("0644", value!(420));
        check("0o17", value!(15));
        check("08", value!(8));
        check("1_000", value!(1000));
        check("1e3", value!(1000));
        check("+12e03", value!(12000));
        check("1e", value!("1e"));
        check("+", value!("+"));
        check("-+1", value!("-+1"));
        check("0x-1", value!("0x-1"));
        check(".", value!("."));
        check("-9223372036854775808", value!(i64::MIN));
        check("9223372036854775808", value!(9223372036854775808u64));
        check("1e400", value!("1e400"));
        assert_eq!(read(".inf", true, Tag::None), Err(Refusal::NotFinite));
        assert_eq!(read(".inf", false, Tag::None), Ok(value!(".inf")));
        assert_eq!(read("x", true, Tag::Int), Err(Refusal::Tag { tag: "!!int" }));
    }
}
