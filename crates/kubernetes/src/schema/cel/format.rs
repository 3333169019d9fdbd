//! `'%s'.format([…])`.

use super::{
    library::{duration_text, time_text},
    value::{Fault, Val, double_text},
};
use crate::status::go_quoted;

/// Digits after the point where none are asked for.
const PRECISION: usize = 6;

/// A clause of a template.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Clause {
    Text,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex { upper: bool },
    Octal,
}

/// Fills a template.
pub(super) fn format(template: &str, values: &[Val<'_>]) -> Result<String, Fault> {
    let mut out = String::new();
    walk(template, values.len(), &mut |part| match part {
        Part::Text(text) => {
            out.push_str(text);
            Ok(())
        }
        Part::Clause(clause, i) => {
            let text = fill(clause, &values[i]).map_err(|words| format!("error during formatting: {words}"))?;
            out.push_str(&text);
            Ok(())
        }
    })
    .map_err(Fault::Words)?;
    Ok(out)
}

/// A part of a template.
pub(super) enum Part<'t> {
    Text(&'t str),
    /// A clause and the number of its value.
    Clause(Clause, usize),
}

/// Goes through a template that is given `count` values. Returns how many it uses.
pub(super) fn walk(
    template: &str,
    count: usize,
    take: &mut dyn FnMut(Part<'_>) -> Result<(), String>,
) -> Result<usize, String> {
    let mut rest = template;
    let mut used = 0;
    while let Some(i) = rest.find('%') {
        take(Part::Text(&rest[..i]))?;
        rest = &rest[i + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            take(Part::Text("%"))?;
            rest = after;
            continue;
        }
        if used >= count {
            return Err(format!("index {used} out of range"));
        }
        if rest.is_empty() {
            return Err("unexpected end of string".to_owned());
        }
        let (clause, length) = read(rest).map_err(|words| format!("could not parse formatting clause: {words}"))?;
        take(Part::Clause(clause, used))?;
        used += 1;
        rest = &rest[length..];
    }
    take(Part::Text(rest))?;
    Ok(used)
}

/// Reads a clause after its percent sign; its length.
fn read(text: &str) -> Result<(Clause, usize), String> {
    let (precision, length) = match text.strip_prefix('.') {
        None => (PRECISION, 0),
        Some(after) => {
            let digits = after.find(|c: char| !c.is_ascii_digit());
            let Some(digits) = digits else {
                return Err("error while parsing precision: could not find end of precision specifier".to_owned());
            };
            let precision = after[..digits].parse().map_err(|_| {
                let text = go_quoted(&after[..digits]);
                format!("error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing {text}: invalid syntax")
            })?;
            (precision, digits + 1)
        }
    };
    let c = text[length..].chars().next().unwrap_or(' ');
    let clause = match c {
        's' => Clause::Text,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(precision.min(1000)),
        'e' => Clause::Scientific(precision.min(1000)),
        'b' => Clause::Binary,
        'x' | 'X' => Clause::Hex { upper: c == 'X' },
        'o' => Clause::Octal,
        other => return Err(format!("unrecognized formatting clause \"{other}\"")),
    };
    Ok((clause, length + c.len_utf8()))
}

/// What is said of a value of the wrong type.
pub(super) fn misfit(clause: Clause, given: &str) -> String {
    let words = match clause {
        Clause::Text => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
        Clause::Decimal => "decimal clause can only be used on integers",
        Clause::Fixed(_) => "fixed-point clause can only be used on doubles",
        Clause::Scientific(_) => "scientific clause can only be used on doubles",
        Clause::Binary => "only integers and bools can be formatted as binary",
        Clause::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
        Clause::Octal => "octal clause can only be used on integers",
    };
    format!("{words}, was given {given}")
}

fn fill(clause: Clause, value: &Val<'_>) -> Result<String, String> {
    let hex = |bytes: &[u8], upper: bool| -> String {
        bytes.iter().map(|b| if upper { format!("{b:02X}") } else { format!("{b:02x}") }).collect()
    };
    let signed = |n: i64, digits: String| if n < 0 { format!("-{digits}") } else { digits };
    match (clause, value) {
        (Clause::Text, value) => shown(value),
        (Clause::Decimal, Val::Int(n)) => Ok(n.to_string()),
        (Clause::Decimal, Val::Uint(n)) => Ok(n.to_string()),
        (Clause::Fixed(precision), Val::Double(f)) => Ok(odd(*f).unwrap_or_else(|| format!("{f:.precision$}"))),
        (Clause::Scientific(precision), Val::Double(f)) => Ok(odd(*f).unwrap_or_else(|| scientific(*f, precision))),
        (Clause::Fixed(_) | Clause::Scientific(_), Val::Str(text)) => match text.as_str() {
            "NaN" => Ok("NaN".to_owned()),
            "Infinity" => Ok("∞".to_owned()),
            "-Infinity" => Ok("-∞".to_owned()),
            _ => Err(misfit(clause, "string")),
        },
        (Clause::Binary, Val::Int(n)) => Ok(signed(*n, format!("{:b}", n.unsigned_abs()))),
        (Clause::Binary, Val::Uint(n)) => Ok(format!("{n:b}")),
        (Clause::Binary, Val::Bool(b)) => Ok(if *b { "1" } else { "0" }.to_owned()),
        (Clause::Hex { upper }, Val::Int(n)) => {
            let n_abs = n.unsigned_abs();
            Ok(signed(*n, if upper { format!("{n_abs:X}") } else { format!("{n_abs:x}") }))
        }
        (Clause::Hex { upper }, Val::Uint(n)) => Ok(if upper { format!("{n:X}") } else { format!("{n:x}") }),
        (Clause::Hex { upper }, Val::Str(text)) => Ok(hex(text.as_bytes(), upper)),
        (Clause::Hex { upper }, Val::Bytes(bytes)) => Ok(hex(bytes, upper)),
        (Clause::Octal, Val::Int(n)) => Ok(signed(*n, format!("{:o}", n.unsigned_abs()))),
        (Clause::Octal, Val::Uint(n)) => Ok(format!("{n:o}")),
        (clause, other) => Err(misfit(clause, other.type_name())),
    }
}

/// The signs of numbers that are none.
fn odd(f: f64) -> Option<String> {
    match f {
        f if f.is_nan() => Some("NaN".to_owned()),
        f if f.is_infinite() => Some(if f > 0.0 { "∞" } else { "-∞" }.to_owned()),
        _ => None,
    }
}

/// As upstream's printer for English writes it: `1.000000 × 10⁰³`.
fn scientific(f: f64, precision: usize) -> String {
    let text = format!("{f:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let raised: String = format!("{:02}", exponent.abs())
        .chars()
        .map(|c| match c {
            '0' => '⁰',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4' => '⁴',
            '5' => '⁵',
            '6' => '⁶',
            '7' => '⁷',
            '8' => '⁸',
            _ => '⁹',
        })
        .collect();
    format!("{digits}\u{202f}×\u{202f}10{}{raised}", if exponent < 0 { "⁻" } else { "" })
}

/// A value as `%s` shows it.
fn shown(value: &Val<'_>) -> Result<String, String> {
    Ok(match value {
        Val::Null => "null".to_owned(),
        Val::Bool(b) => b.to_string(),
        Val::Int(n) => n.to_string(),
        Val::Uint(n) => n.to_string(),
        Val::Double(f) => double_text(*f),
        Val::Str(text) => text.to_string(),
        Val::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Val::Duration(nanos) => duration_text(*nanos),
        Val::Timestamp(time) => time_text(*time),
        Val::Type(name) => (*name).to_owned(),
        Val::List(_) | Val::Items(..) => {
            let items = value.items().map_err(|fault| fault.to_string())?;
            let texts = items.iter().map(inside).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", texts.join(", "))
        }
        Val::Map(_) | Val::Object(..) => {
            let mut entries = Vec::new();
            for key in value.key_list().map_err(|fault| fault.to_string())? {
                let found = value.find(&key).map_err(|fault| fault.to_string())?;
                let Some(entry) = found else { continue };
                entries.push((inside(&key)?, inside(&entry)?));
            }
            entries.sort();
            let texts: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", texts.join(", "))
        }
        other => return Err(misfit(Clause::Text, other.type_name())),
    })
}

/// A value inside a list or map: as CEL would write it.
fn inside(value: &Val<'_>) -> Result<String, String> {
    match value {
        Val::Str(text) => Ok(go_quoted(text)),
        Val::Bytes(bytes) => Ok(format!("b{}", go_quoted(&String::from_utf8_lossy(bytes)))),
        Val::Double(f) => Ok(odd(*f).map_or_else(|| format!("{f:.PRECISION$}"), |text| go_quoted(&text))),
        Val::Duration(nanos) => Ok(format!("duration({})", go_quoted(&duration_text(*nanos)))),
        Val::Timestamp(time) => Ok(format!("timestamp({})", go_quoted(&time_text(*time)))),
        Val::Null | Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Type(_) => shown(value),
        Val::List(_) | Val::Items(..) | Val::Map(_) | Val::Object(..) => shown(value),
        other => Err(format!("no formatting function for {}", other.type_name())),
    }
}
