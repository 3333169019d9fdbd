//! What a plain scalar means, to each of kustomize's two YAML libraries, and how Go writes numbers. Never sees structure.
//!
//! Resources and strategic merge patches are read by [`resolve`]: YAML 1.2 with leftovers of 1.1. Kustomizations,
//! configurations and JSON patches are read by [`resolve_v1`]: YAML 1.1, where `y` and `on` are booleans.

use crate::node::Tag;

/// What a scalar says.
#[derive(Clone, PartialEq, Debug)]
pub enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    /// A point in time, as Go's JSON encoder writes it.
    Time(String),
    /// `<<`
    Merge,
    Text,
}

impl Scalar {
    pub fn tag(&self) -> Tag {
        match self {
            Scalar::Null => Tag::Null,
            Scalar::Bool(_) => Tag::Bool,
            Scalar::Int(_) | Scalar::Uint(_) => Tag::Int,
            Scalar::Float(_) => Tag::Float,
            Scalar::Time(_) => Tag::Time,
            Scalar::Merge => Tag::Merge,
            Scalar::Text => Tag::Str,
        }
    }
}

/// A plain scalar of a resource.
pub fn resolve(text: &str) -> Scalar {
    match text.as_bytes().first() {
        None => Scalar::Null,
        Some(b'+' | b'-' | b'0'..=b'9') => {
            infinite(text).or_else(|| timestamp(text)).or_else(|| number(text)).unwrap_or(Scalar::Text)
        }
        Some(b'.') => infinite(text).or_else(|| dotted(text)).unwrap_or(Scalar::Text),
        Some(_) => match text {
            "true" | "True" | "TRUE" => Scalar::Bool(true),
            "false" | "False" | "FALSE" => Scalar::Bool(false),
            "~" | "null" | "Null" | "NULL" => Scalar::Null,
            "<<" => Scalar::Merge,
            _ => Scalar::Text,
        },
    }
}

/// A plain scalar of a kustomization. A point in time stays a text.
pub fn resolve_v1(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        _ => match resolve(text) {
            Scalar::Time(_) => number(text).unwrap_or(Scalar::Text),
            other => other,
        },
    }
}

/// Whether a text, written without quotes, would be read as something else by YAML 1.1. It is a whole document to that
/// reader, so a map or a list in it counts as well.
pub fn is_not_text(text: &str) -> bool {
    if text.is_empty() || text.contains('\n') {
        return false;
    }
    match resolve_v1(text) {
        Scalar::Text => looks_like_structure(text) && crate::read::is_structure(text),
        Scalar::Merge => false,
        _ => true,
    }
}

fn looks_like_structure(text: &str) -> bool {
    let first = text.trim_start().chars().next();
    first.is_none_or(|c| "[{-?#!&*|>%".contains(c))
        || text.contains(": ")
        || text.ends_with(':')
        || text.contains(":\t")
}

fn infinite(text: &str) -> Option<Scalar> {
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(Scalar::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => Some(Scalar::Float(f64::NEG_INFINITY)),
        ".nan" | ".NaN" | ".NAN" => Some(Scalar::Float(f64::NAN)),
        _ => None,
    }
}

/// What begins with a dot goes to Go's `ParseFloat` as it is.
fn dotted(text: &str) -> Option<Scalar> {
    looks_like_float(text)
        .then(|| text.parse().ok())
        .flatten()
        .filter(|float: &f64| float.is_finite())
        .map(Scalar::Float)
}

fn number(text: &str) -> Option<Scalar> {
    let plain = text.replace('_', "");
    let (negative, digits) = match plain.as_bytes().first() {
        Some(b'-') => (true, &plain[1..]),
        Some(b'+') => (false, &plain[1..]),
        _ => (false, plain.as_str()),
    };
    let signed = plain.starts_with('+');
    integer(digits, negative, signed).or_else(|| float(&plain)).or_else(|| late_prefix(&plain))
}

/// An integer as Go's `ParseInt` reads it with base 0; without a sign also up to 64 bits.
fn integer(digits: &str, negative: bool, signed: bool) -> Option<Scalar> {
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    match (negative, i64::try_from(value)) {
        (false, Ok(value)) => Some(Scalar::Int(value)),
        (true, Ok(value)) => Some(Scalar::Int(-value)),
        (true, Err(_)) => (value == 1 << 63).then_some(Scalar::Int(i64::MIN)),
        (false, Err(_)) => (!signed).then_some(Scalar::Uint(value)),
    }
}

/// `0b-1` and `0o-7`, which the library reads after everything else.
fn late_prefix(text: &str) -> Option<Scalar> {
    for (prefix, radix) in [("0b", 2), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return i64::from_str_radix(digits, radix).ok().map(Scalar::Int);
        }
    }
    None
}

fn float(text: &str) -> Option<Scalar> {
    if !looks_like_float(text) {
        return None;
    }
    text.parse().ok().filter(|float: &f64| float.is_finite()).map(Scalar::Float)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn looks_like_float(text: &str) -> bool {
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
        return !after.is_empty() && digits(after) == after.len();
    }
    rest.is_empty()
}

/// A scalar with an explicit tag; `None` if the text is not of that type.
pub fn resolve_tagged(tag: &Tag, text: &str) -> Option<Scalar> {
    let is_time = timestamp(text);
    let read = match resolve(text) {
        // Only without a tag, or with its own, a text is a point in time.
        Scalar::Time(_) if *tag != Tag::Time => number(text).unwrap_or(Scalar::Text),
        other => other,
    };
    match (tag, &read) {
        (Tag::Str, _) => Some(Scalar::Text),
        (Tag::Time, _) => is_time,
        (Tag::Float, Scalar::Int(value)) => Some(Scalar::Float(*value as f64)),
        (Tag::Float, Scalar::Uint(_)) => None,
        (tag, read) if *tag == read.tag() => Some(read.clone()),
        _ => None,
    }
}

/// `Y-M-D`, `Y-M-D h:m:s[.f]`, and RFC 3339 with short fields; given back as RFC 3339.
fn timestamp(text: &str) -> Option<Scalar> {
    let mut scan = Scan(text);
    let year = scan.digits(4, 4)?;
    scan.literal('-')?;
    let month = scan.digits(1, 2)?;
    scan.literal('-')?;
    let day = scan.digits(1, 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    if day == 0 || day > days {
        return None;
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    if scan.0.is_empty() {
        return Some(Scalar::Time(format!("{date}T00:00:00Z")));
    }
    let zoned = scan.literal('T').or_else(|| scan.literal('t')).is_some();
    if !zoned {
        scan.literal(' ')?;
    }
    let hour = scan.digits(1, 2)?;
    scan.literal(':')?;
    let minute = scan.digits(1, 2)?;
    scan.literal(':')?;
    let second = scan.digits(1, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = scan.fraction();
    let zone = if zoned { scan.zone()? } else { "Z".to_owned() };
    scan.0.is_empty().then(|| Scalar::Time(format!("{date}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}")))
}

struct Scan<'a>(&'a str);

impl Scan<'_> {
    fn digits(&mut self, least: usize, most: usize) -> Option<u32> {
        let count = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        digits.parse().ok()
    }

    fn literal(&mut self, c: char) -> Option<()> {
        self.0 = self.0.strip_prefix(c)?;
        Some(())
    }

    /// A fraction of a second, without zeros at its end.
    fn fraction(&mut self) -> String {
        let Some(rest) = self.0.strip_prefix(['.', ',']) else { return String::new() };
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return String::new();
        }
        let digits = rest[..count.min(9)].trim_end_matches('0');
        self.0 = &rest[count..];
        if digits.is_empty() { String::new() } else { format!(".{digits}") }
    }

    fn zone(&mut self) -> Option<String> {
        if self.literal('Z').is_some() {
            return Some("Z".to_owned());
        }
        let sign = if self.literal('+').is_some() {
            '+'
        } else {
            self.literal('-')?;
            '-'
        };
        let hours = self.digits(2, 2)?;
        self.literal(':')?;
        let minutes = self.digits(2, 2)?;
        if hours > 23 || minutes > 59 {
            return None;
        }
        Some(if (hours, minutes) == (0, 0) { "Z".to_owned() } else { format!("{sign}{hours:02}:{minutes:02}") })
    }
}

/// A float as Go's `FormatFloat(f, 'g', -1, 64)` writes it.
pub fn go_shortest(float: f64) -> String {
    let (digits, exponent) = decimal(float);
    let sign = if float.is_sign_negative() { "-" } else { "" };
    if float == 0.0 {
        return format!("{sign}0");
    }
    // The shortest form turns to an exponent at a million.
    if !(-4..6).contains(&exponent) {
        return scientific(sign, &digits, exponent);
    }
    positional(float)
}

/// A float as Go's JSON encoder writes it.
pub fn go_json(float: f64) -> String {
    if float == 0.0 {
        return if float.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    let size = float.abs();
    if (1e-6..1e21).contains(&size) {
        return positional(float);
    }
    let (digits, exponent) = decimal(float);
    let text = scientific(if float.is_sign_negative() { "-" } else { "" }, &digits, exponent);
    match text.split_once("e-0") {
        Some((mantissa, exponent)) => format!("{mantissa}e-{exponent}"),
        None => text,
    }
}

/// The shortest digits that stand for a float, and the exponent of the first.
fn decimal(float: f64) -> (String, i32) {
    let text = format!("{:e}", float.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.replace('.', ""), exponent.parse().unwrap_or(0))
}

fn scientific(sign: &str, digits: &str, exponent: i32) -> String {
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let direction = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}{point}{rest}e{direction}{:02}", exponent.abs())
}

fn positional(float: f64) -> String {
    format!("{float}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_of_resources_are_read_as_go_reads_them() {
        #[track_caller]
        fn check(text: &str, expected: Scalar) {
            assert_eq!(resolve(text), expected, "{text}");
        }
        check("0644", Scalar::Int(420));
        check("0o17", Scalar::Int(15));
        check("08", Scalar::Float(8.0));
        check("1_000", Scalar::Int(1000));
        check("1e3", Scalar::Float(1000.0));
        check("18446744073709551615", Scalar::Uint(u64::MAX));
        check("+", Scalar::Text);
        check("yes", Scalar::Text);
        check("~", Scalar::Null);
        check("", Scalar::Null);
        check(".5", Scalar::Float(0.5));
        check("2024-02-29", Scalar::Time("2024-02-29T00:00:00Z".into()));
        check("2023-02-29", Scalar::Text);
        check("2024-1-2 3:4:5.60", Scalar::Time("2024-01-02T03:04:05.6Z".into()));
        check("2024-01-02t03:04:05+02:00", Scalar::Time("2024-01-02T03:04:05+02:00".into()));
        check("2024-01-02 03:04:05 -5", Scalar::Text);
        assert_eq!(resolve_v1("on"), Scalar::Bool(true));
        assert_eq!(resolve_v1("2024-02-29"), Scalar::Text);
    }

    #[test]
    fn floats_are_written_as_go_writes_them() {
        #[track_caller]
        fn check(float: f64, shortest: &str, json: &str) {
            assert_eq!((go_shortest(float).as_str(), go_json(float).as_str()), (shortest, json));
        }
        check(8080.0, "8080", "8080");
        check(100_000.0, "100000", "100000");
        check(1_000_000.0, "1e+06", "1000000");
        check(1_234_567.5, "1.2345675e+06", "1234567.5");
        check(0.0001, "0.0001", "0.0001");
        check(0.000_01, "1e-05", "0.00001");
        check(1e-7, "1e-07", "1e-7");
        check(1e21, "1e+21", "1e+21");
        check(-0.5, "-0.5", "-0.5");
    }
}
