//! The functions rules may call, with the meanings and complaints of the real server's.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use jiff::{Timestamp, Zoned, tz};
use regex::Regex;

use super::{
    format::format,
    opaque::{self, FORMATS, Opaque, Semver, Url},
    plan::Meter,
    value::{Fault, Key, Outcome, Val, double_text, fault, list, text},
};
use crate::embedded::{
    schema::{Shape, Topology, formats, quantity::Quantity, regexp},
    value::Text,
};

/// A function: what it costs beyond the call is told to the meter.
pub(super) type Function = for<'a> fn(&mut Meter, &[Val<'a>]) -> Outcome<'a>;

/// The function of this name; a method takes its target as the first argument.
pub(super) fn function(name: &str, method: bool) -> Option<Function> {
    Some(match (name, method) {
        ("!_", _) => |_, args| Ok(Val::Bool(!one(args)?.truth()?)),
        ("-_", _) => |_, args| negate(one(args)?),
        ("_==_", _) => |meter, args| {
            meter.traverse(size_of_both(args))?;
            let (a, b) = two(args)?;
            a.equal(b).map(Val::Bool)
        },
        ("_!=_", _) => |meter, args| {
            meter.traverse(size_of_both(args))?;
            let (a, b) = two(args)?;
            a.equal(b).map(|equal| Val::Bool(!equal))
        },
        ("_<_", _) => |meter, args| compare(meter, args, Ordering::is_lt),
        ("_<=_", _) => |meter, args| compare(meter, args, Ordering::is_le),
        ("_>_", _) => |meter, args| compare(meter, args, Ordering::is_gt),
        ("_>=_", _) => |meter, args| compare(meter, args, Ordering::is_ge),
        ("_+_", _) => add,
        ("_-_", _) => subtract,
        ("_*_", _) => multiply,
        ("_/_", _) => divide,
        ("_%_", _) => modulo,
        ("@in", _) => is_in,
        ("size", _) => |_, args| size(one(args)?),
        ("type", false) => |_, args| Ok(Val::Type(one(args)?.type_name())),
        ("dyn", false) => |_, args| Ok(one(args)?.clone()),
        ("bool", false) => to_bool,
        ("bytes", false) => to_bytes,
        ("double", false) => to_double,
        ("duration", false) => to_duration,
        ("int", false) => to_int,
        ("string", false) => to_text,
        ("timestamp", false) => to_timestamp,
        ("uint", false) => to_uint,
        ("cel.@mapInsert", false) => map_insert,
        _ => {
            return strings(name, method)
                .or_else(|| lists(name, method))
                .or_else(|| times(name, method))
                .or_else(|| optionals(name, method))
                .or_else(|| libraries(name, method));
        }
    })
}

fn one<'v, 'a>(args: &'v [Val<'a>]) -> Result<&'v Val<'a>, Fault> {
    args.first().ok_or(Fault::Overload)
}

fn two<'v, 'a>(args: &'v [Val<'a>]) -> Result<(&'v Val<'a>, &'v Val<'a>), Fault> {
    match args {
        [a, b, ..] => Ok((a, b)),
        _ => Err(Fault::Overload),
    }
}

/// The text at a place among the arguments.
fn string<'v>(args: &'v [Val<'_>], at: usize) -> Result<&'v Text, Fault> {
    match args.get(at) {
        Some(Val::Str(text)) => Ok(text),
        _ => Err(Fault::Overload),
    }
}

fn int(args: &[Val<'_>], at: usize) -> Result<i64, Fault> {
    match args.get(at) {
        Some(Val::Int(n)) => Ok(*n),
        _ => Err(Fault::Overload),
    }
}

/// About how much there is to look at in both arguments.
fn size_of_both(args: &[Val<'_>]) -> usize {
    let size = |value: &Val<'_>| match value {
        Val::Str(text) => text.len(),
        Val::Bytes(bytes) => bytes.len(),
        other => other.len().unwrap_or(1),
    };
    args.iter().map(size).min().unwrap_or(0)
}

fn compare<'a>(meter: &mut Meter, args: &[Val<'a>], holds: fn(Ordering) -> bool) -> Outcome<'a> {
    meter.traverse(size_of_both(args))?;
    let (a, b) = two(args)?;
    a.order(b).map(|order| Val::Bool(holds(order)))
}

const INT_OVERFLOW: &str = "integer overflow";
const UINT_OVERFLOW: &str = "unsigned integer overflow";
const DURATION_OVERFLOW: &str = "duration overflow";
const TIME_OVERFLOW: &str = "timestamp overflow";

fn or_fault<'a, T>(value: Option<T>, make: fn(T) -> Val<'a>, words: &str) -> Outcome<'a> {
    value.map(make).map_or_else(|| fault(words), Ok)
}

fn negate<'a>(value: &Val<'a>) -> Outcome<'a> {
    match value {
        Val::Int(n) => or_fault(n.checked_neg(), Val::Int, INT_OVERFLOW),
        Val::Double(f) => Ok(Val::Double(-f)),
        Val::Duration(n) => or_fault(n.checked_neg(), Val::Duration, DURATION_OVERFLOW),
        _ => Err(Fault::Overload),
    }
}

fn add<'a>(meter: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    let (a, b) = two(args)?;
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => or_fault(a.checked_add(*b), Val::Int, INT_OVERFLOW),
        (Val::Uint(a), Val::Uint(b)) => or_fault(a.checked_add(*b), Val::Uint, UINT_OVERFLOW),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::Str(a), Val::Str(b)) => {
            meter.traverse(a.len() + b.len())?;
            Ok(text(format!("{a}{b}")))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            meter.traverse(a.len() + b.len())?;
            Ok(Val::Bytes(a.iter().chain(b.iter()).copied().collect()))
        }
        (Val::Duration(a), Val::Duration(b)) => or_fault(a.checked_add(*b), Val::Duration, DURATION_OVERFLOW),
        (Val::Timestamp(time), Val::Duration(nanos)) | (Val::Duration(nanos), Val::Timestamp(time)) => {
            shifted(*time, *nanos)
        }
        (Val::List(_) | Val::Items(..), Val::List(_) | Val::Items(..)) => joined(meter, a, b),
        _ => Err(Fault::Overload),
    }
}

fn shifted<'a>(time: Timestamp, nanos: i64) -> Outcome<'a> {
    let moved = time.checked_add(jiff::SignedDuration::from_nanos(nanos)).ok();
    or_fault(moved.filter(|time| in_range(*time)), Val::Timestamp, TIME_OVERFLOW)
}

/// Years 1 to 9999.
fn in_range(time: Timestamp) -> bool {
    (-62_135_596_800..=253_402_300_799).contains(&time.as_second())
}

/// Two lists as one: a union of sets, a merge of maps, as their schemas say.
fn joined<'a>(meter: &mut Meter, a: &Val<'a>, b: &Val<'a>) -> Outcome<'a> {
    let mut items = a.items()?;
    let more = b.items()?;
    meter.spend((items.len() + more.len()) as u64)?;
    let topology = match a {
        Val::Items(_, schema) => match &schema.shape {
            Shape::List { topology, .. } => topology.clone(),
            _ => Topology::Atomic,
        },
        _ => Topology::Atomic,
    };
    for item in more {
        let place = match &topology {
            Topology::Atomic => None,
            Topology::Set => position(&items, |other| other.equal(&item))?,
            Topology::Map(keys) => position(&items, |other| {
                for key in keys {
                    let key = Val::Str(key.clone());
                    match (other.find(&key)?, item.find(&key)?) {
                        (Some(a), Some(b)) if a.equal(&b)? => {}
                        (None, None) => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            })?,
        };
        match (place, &topology) {
            (Some(i), Topology::Map(_)) => items[i] = item,
            (Some(_), _) => {}
            (None, _) => items.push(item),
        }
    }
    Ok(list(items))
}

fn position<'a>(items: &[Val<'a>], is: impl Fn(&Val<'a>) -> Result<bool, Fault>) -> Result<Option<usize>, Fault> {
    for (i, item) in items.iter().enumerate() {
        if is(item)? {
            return Ok(Some(i));
        }
    }
    Ok(None)
}

fn subtract<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    match two(args)? {
        (Val::Int(a), Val::Int(b)) => or_fault(a.checked_sub(*b), Val::Int, INT_OVERFLOW),
        (Val::Uint(a), Val::Uint(b)) => or_fault(a.checked_sub(*b), Val::Uint, UINT_OVERFLOW),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a - b)),
        (Val::Duration(a), Val::Duration(b)) => or_fault(a.checked_sub(*b), Val::Duration, DURATION_OVERFLOW),
        (Val::Timestamp(time), Val::Duration(nanos)) => match nanos.checked_neg() {
            Some(nanos) => shifted(*time, nanos),
            None => fault(TIME_OVERFLOW),
        },
        (Val::Timestamp(a), Val::Timestamp(b)) => {
            let nanos = i64::try_from(a.duration_since(*b).as_nanos()).ok();
            or_fault(nanos, Val::Duration, DURATION_OVERFLOW)
        }
        _ => Err(Fault::Overload),
    }
}

fn multiply<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    match two(args)? {
        (Val::Int(a), Val::Int(b)) => or_fault(a.checked_mul(*b), Val::Int, INT_OVERFLOW),
        (Val::Uint(a), Val::Uint(b)) => or_fault(a.checked_mul(*b), Val::Uint, UINT_OVERFLOW),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a * b)),
        _ => Err(Fault::Overload),
    }
}

fn divide<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    match two(args)? {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => fault("division by zero"),
        (Val::Int(a), Val::Int(b)) => or_fault(a.checked_div(*b), Val::Int, INT_OVERFLOW),
        (Val::Uint(a), Val::Uint(b)) => Ok(Val::Uint(a / b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a / b)),
        _ => Err(Fault::Overload),
    }
}

fn modulo<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    match two(args)? {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => fault("modulus by zero"),
        (Val::Int(a), Val::Int(b)) => or_fault(a.checked_rem(*b), Val::Int, INT_OVERFLOW),
        (Val::Uint(a), Val::Uint(b)) => Ok(Val::Uint(a % b)),
        _ => Err(Fault::Overload),
    }
}

fn is_in<'a>(meter: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    let (value, range) = two(args)?;
    match range {
        Val::List(_) | Val::Items(..) => {
            meter.spend(range.len().unwrap_or(0) as u64)?;
            contains(range, value).map(Val::Bool)
        }
        Val::Map(_) | Val::Object(..) => range.find(value).map(|found| Val::Bool(found.is_some())),
        _ => Err(Fault::Overload),
    }
}

/// Whether a list has an item. A comparison that fails matters only if no other succeeds.
fn contains<'a>(range: &Val<'a>, value: &Val<'a>) -> Result<bool, Fault> {
    let mut first = None;
    for i in 0..range.len().unwrap_or(0) {
        let equal = range.item(i).unwrap_or(Err(Fault::Overload)).and_then(|item| item.equal(value));
        match equal {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(fault) => drop(first.get_or_insert(fault)),
        }
    }
    first.map_or(Ok(false), Err)
}

fn size<'a>(value: &Val<'a>) -> Outcome<'a> {
    match value {
        Val::Str(text) => Ok(Val::Int(text.chars().count() as i64)),
        Val::Bytes(bytes) => Ok(Val::Int(bytes.len() as i64)),
        other => match other.len() {
            Some(n) => Ok(Val::Int(n as i64)),
            None => fault("no such overload: size"),
        },
    }
}

fn no_conversion<'a>(value: &Val<'a>, to: &str) -> Outcome<'a> {
    match value {
        Val::Null | Val::List(_) | Val::Map(_) | Val::Items(..) | Val::Object(..) | Val::Optional(_) => {
            Err(Fault::Overload)
        }
        other => fault(format!("type conversion error from '{}' to '{to}'", other.type_name())),
    }
}

fn to_bool<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    match one(args)? {
        Val::Bool(b) => Ok(Val::Bool(*b)),
        Val::Str(text) if ["true", "TRUE", "True", "t", "T", "1"].contains(&text.as_str()) => Ok(Val::Bool(true)),
        Val::Str(text) if ["false", "FALSE", "False", "f", "F", "0"].contains(&text.as_str()) => Ok(Val::Bool(false)),
        other => no_conversion(other, "bool"),
    }
}

fn to_bytes<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    match one(args)? {
        Val::Bytes(bytes) => Ok(Val::Bytes(bytes.clone())),
        Val::Str(text) => Ok(Val::Bytes(text.as_bytes().into())),
        other => no_conversion(other, "bytes"),
    }
}

fn to_double<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    match one(args)? {
        Val::Double(f) => Ok(Val::Double(*f)),
        Val::Int(n) => Ok(Val::Double(*n as f64)),
        Val::Uint(n) => Ok(Val::Double(*n as f64)),
        Val::Str(text) => match text.parse() {
            Ok(f) => Ok(Val::Double(f)),
            Err(_) => no_conversion(&args[0], "double"),
        },
        other => no_conversion(other, "double"),
    }
}

fn to_int<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    match one(args)? {
        Val::Int(n) => Ok(Val::Int(*n)),
        Val::Uint(n) => or_fault(i64::try_from(*n).ok(), Val::Int, INT_OVERFLOW),
        Val::Double(f) if *f > -9.223372036854775e18 && *f < 9.223372036854775e18 => Ok(Val::Int(*f as i64)),
        Val::Double(_) => fault(INT_OVERFLOW),
        Val::Str(text) => match text.parse() {
            Ok(n) => Ok(Val::Int(n)),
            Err(_) => no_conversion(&args[0], "int"),
        },
        Val::Timestamp(time) => Ok(Val::Int(time.as_second())),
        Val::Duration(nanos) => Ok(Val::Int(*nanos)),
        other => no_conversion(other, "int"),
    }
}

fn to_uint<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    match one(args)? {
        Val::Uint(n) => Ok(Val::Uint(*n)),
        Val::Int(n) => or_fault(u64::try_from(*n).ok(), Val::Uint, UINT_OVERFLOW),
        Val::Double(f) if *f >= 0.0 && *f < 1.8446744073709552e19 => Ok(Val::Uint(*f as u64)),
        Val::Double(_) => fault(UINT_OVERFLOW),
        Val::Str(text) => match text.parse() {
            Ok(n) => Ok(Val::Uint(n)),
            Err(_) => no_conversion(&args[0], "uint"),
        },
        other => no_conversion(other, "uint"),
    }
}

/// The seconds of a duration as `string` writes them: `5400s`, `0.5s`.
pub(super) fn duration_text(nanos: i64) -> String {
    format!("{}s", shortest(nanos as f64 / 1e9))
}

/// Digits without an exponent.
fn shortest(f: f64) -> String {
    format!("{f}")
}

/// RFC 3339 with as many digits of the second as matter.
pub(super) fn time_text(time: Timestamp) -> String {
    time.to_string()
}

fn to_text<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    Ok(match one(args)? {
        Val::Str(value) => Val::Str(value.clone()),
        Val::Bool(b) => text(b.to_string()),
        Val::Int(n) => text(n.to_string()),
        Val::Uint(n) => text(n.to_string()),
        Val::Double(f) => text(double_text(*f)),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(value) => text(value),
            Err(_) => return fault("invalid UTF-8 in bytes, cannot convert to string"),
        },
        Val::Duration(nanos) => text(duration_text(*nanos)),
        Val::Timestamp(time) => text(time_text(*time)),
        Val::Type(name) => text(name),
        Val::Opaque(value) => match value.as_ref() {
            Opaque::Ip(address) => text(address.to_string()),
            Opaque::Cidr(address, bits) => text(format!("{address}/{bits}")),
            _ => return Err(Fault::Overload),
        },
        other => return no_conversion(other, "string"),
    })
}

fn to_duration<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    match one(args)? {
        Val::Duration(nanos) => Ok(Val::Duration(*nanos)),
        Val::Str(text) => match formats::go_duration(text) {
            Some(nanos) => Ok(Val::Duration(nanos)),
            None => no_conversion(&args[0], "google.protobuf.Duration"),
        },
        other => no_conversion(other, "google.protobuf.Duration"),
    }
}

fn to_timestamp<'a>(_: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    match one(args)? {
        Val::Timestamp(time) => Ok(Val::Timestamp(*time)),
        Val::Int(seconds) => {
            let time = Timestamp::from_second(*seconds).ok().filter(|time| in_range(*time));
            or_fault(time, Val::Timestamp, TIME_OVERFLOW)
        }
        Val::Str(text) => match text.parse() {
            Ok(time) if text.contains('T') => Ok(Val::Timestamp(time)),
            _ => no_conversion(&args[0], "google.protobuf.Timestamp"),
        },
        other => no_conversion(other, "google.protobuf.Timestamp"),
    }
}

fn map_insert<'a>(meter: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    let Some(Val::Map(map)) = args.first() else { return Err(Fault::Overload) };
    meter.spend(map.len() as u64 / 10)?;
    let mut map: BTreeMap<Key, Val<'a>> = (**map).clone();
    let more: Vec<(Key, Val<'a>)> = match &args[1..] {
        [key, value] => vec![(key.clone().into_key()?, value.clone())],
        [Val::Map(more)] => more.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        _ => return Err(Fault::Overload),
    };
    for (key, value) in more {
        if map.contains_key(&key) {
            return fault(format!("insert failed: key {} already exists", shown(&key.to_val())));
        }
        map.insert(key, value);
    }
    Ok(Val::Map(Arc::new(map)))
}

/// A value as complaints show it.
pub(super) fn shown(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".to_owned(),
        Val::Bool(b) => b.to_string(),
        Val::Int(n) => n.to_string(),
        Val::Uint(n) => n.to_string(),
        Val::Double(f) => double_text(*f),
        Val::Str(text) => text.to_string(),
        other => other.type_name().to_owned(),
    }
}

/// The characters of a text.
fn chars(args: &[Val<'_>], at: usize) -> Result<Vec<char>, Fault> {
    Ok(string(args, at)?.chars().collect())
}

fn strings(name: &str, method: bool) -> Option<Function> {
    if !method {
        return match name {
            "matches" => Some(matches_dynamic),
            "strings.quote" => Some(|_, args| Ok(text(quoted(string(args, 0)?)))),
            _ => None,
        };
    }
    Some(match name {
        "contains" => |meter, args| {
            meter.traverse(string(args, 0)?.len())?;
            Ok(Val::Bool(string(args, 0)?.contains(string(args, 1)?.as_str())))
        },
        "startsWith" => |_, args| Ok(Val::Bool(string(args, 0)?.starts_with(string(args, 1)?.as_str()))),
        "endsWith" => |_, args| Ok(Val::Bool(string(args, 0)?.ends_with(string(args, 1)?.as_str()))),
        "matches" => matches_dynamic,
        "find" => |meter, args| find(meter, args, &pattern(args)?),
        "findAll" => |meter, args| find_all(meter, args, &pattern(args)?),
        "charAt" => |_, args| {
            let (chars, at) = (chars(args, 0)?, int(args, 1)?);
            match usize::try_from(at) {
                Ok(i) if i < chars.len() => Ok(text(chars[i].to_string())),
                Ok(i) if i == chars.len() => Ok(text("")),
                _ => fault(format!("index out of range: {at}")),
            }
        },
        "lowerAscii" => |meter, args| {
            meter.traverse(string(args, 0)?.len())?;
            Ok(text(string(args, 0)?.to_ascii_lowercase()))
        },
        "upperAscii" => |meter, args| {
            meter.traverse(string(args, 0)?.len())?;
            Ok(text(string(args, 0)?.to_ascii_uppercase()))
        },
        "trim" => |meter, args| {
            meter.traverse(string(args, 0)?.len())?;
            Ok(text(string(args, 0)?.trim()))
        },
        "replace" => replace,
        "split" => split,
        "substring" => substring,
        "format" => |meter, args| {
            let (template, values) = two(args)?;
            let Val::Str(template) = template else { return Err(Fault::Overload) };
            meter.traverse(template.len())?;
            format(template, &values.items()?).map(text)
        },
        _ => return None,
    })
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn replace<'a>(meter: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    let (value, old, new) = (string(args, 0)?, string(args, 1)?.as_str(), string(args, 2)?.as_str());
    meter.traverse(value.len() * 2)?;
    let times = match args.get(3) {
        None => usize::MAX,
        Some(Val::Int(n)) => usize::try_from(*n).unwrap_or(usize::MAX),
        Some(_) => return Err(Fault::Overload),
    };
    // What grows is paid for before it is made.
    let most = value.len() / old.len().max(1) + 1;
    meter.traverse(most.min(times).saturating_mul(new.len()))?;
    Ok(text(value.replacen(old, new, times)))
}

fn split<'a>(meter: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    let (value, separator) = (string(args, 0)?, string(args, 1)?.as_str());
    meter.traverse(value.len() * 2)?;
    let limit = match args.get(2) {
        None => -1,
        Some(Val::Int(n)) => *n,
        Some(_) => return Err(Fault::Overload),
    };
    if limit == 0 {
        return Ok(list([]));
    }
    let count = usize::try_from(limit).unwrap_or(usize::MAX);
    if !separator.is_empty() {
        return Ok(list(value.splitn(count, separator).map(text)));
    }
    // Between all characters.
    let mut parts = Vec::new();
    let mut rest = value.as_str();
    while let Some(c) = rest.chars().next() {
        if parts.len() + 1 == count {
            parts.push(text(rest));
            break;
        }
        let (first, after) = rest.split_at(c.len_utf8());
        parts.push(text(first));
        rest = after;
    }
    Ok(list(parts))
}

fn substring<'a>(meter: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    let chars = chars(args, 0)?;
    meter.traverse(chars.len())?;
    let start = int(args, 1)?;
    let end = if args.len() > 2 { int(args, 2)? } else { chars.len() as i64 };
    if args.len() > 2 && start > end {
        return fault(format!("invalid substring range. start: {start}, end: {end}"));
    }
    let place = |n: i64| match usize::try_from(n) {
        Ok(i) if i <= chars.len() => Ok(i),
        _ => fault(format!("index out of range: {n}")),
    };
    let (start, end) = (place(start)?, place(end)?);
    Ok(text(chars[start..end].iter().collect::<String>()))
}

fn pattern(args: &[Val<'_>]) -> Result<Regex, Fault> {
    regexp::compile(string(args, 1)?).map_err(|words| Fault::Words(format!("Illegal regex: {words}")))
}

fn matches_dynamic<'a>(meter: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    let regex = regexp::compile(string(args, 1)?).map_err(Fault::Words)?;
    matches(meter, args, &regex)
}

/// What matching a text costs: its length times that of the pattern, more or less.
fn search_cost(meter: &mut Meter, args: &[Val<'_>]) -> Result<(), Fault> {
    let text = (string(args, 0)?.len() as u64 + 1).div_ceil(10);
    let pattern = (string(args, 1)?.len() as u64).div_ceil(4);
    meter.spend(text.saturating_mul(pattern))
}

/// Whether a text matches.
pub(super) fn matches<'a>(meter: &mut Meter, args: &[Val<'a>], regex: &Regex) -> Outcome<'a> {
    search_cost(meter, args)?;
    Ok(Val::Bool(regex.is_match(string(args, 0)?)))
}

/// The first match; empty if there is none.
pub(super) fn find<'a>(meter: &mut Meter, args: &[Val<'a>], regex: &Regex) -> Outcome<'a> {
    search_cost(meter, args)?;
    Ok(text(regex.find(string(args, 0)?).map_or("", |found| found.as_str())))
}

/// All matches, or so many.
pub(super) fn find_all<'a>(meter: &mut Meter, args: &[Val<'a>], regex: &Regex) -> Outcome<'a> {
    search_cost(meter, args)?;
    let most = match args.get(2) {
        None => usize::MAX,
        Some(Val::Int(n)) => usize::try_from(*n).unwrap_or(usize::MAX),
        Some(_) => return Err(Fault::Overload),
    };
    Ok(list(regex.find_iter(string(args, 0)?).take(most).map(|found| text(found.as_str()))))
}

fn lists(name: &str, method: bool) -> Option<Function> {
    if !method {
        return match name {
            "lists.range" => Some(|meter, args| {
                let count = int(args, 0)?;
                meter.spend(u64::try_from(count).unwrap_or(0))?;
                Ok(list((0..count).map(Val::Int)))
            }),
            "sets.contains" => Some(|meter, args| sets_contain(meter, &args[0], &args[1]).map(Val::Bool)),
            "sets.equivalent" => Some(|meter, args| {
                let both = sets_contain(meter, &args[0], &args[1])? && sets_contain(meter, &args[1], &args[0])?;
                Ok(Val::Bool(both))
            }),
            "sets.intersects" => Some(|meter, args| {
                let (a, b) = two(args)?;
                meter.spend((a.len().unwrap_or(0) * b.len().unwrap_or(0)) as u64)?;
                let mut any = false;
                for item in a.items()? {
                    any |= contains(b, &item) == Ok(true);
                }
                Ok(Val::Bool(any))
            }),
            _ => None,
        };
    }
    Some(match name {
        "isSorted" => |meter, args| {
            let items = walked(meter, args)?;
            for pair in items.windows(2) {
                if pair[0].order(&pair[1])? == Ordering::Greater {
                    return Ok(Val::Bool(false));
                }
            }
            Ok(Val::Bool(true))
        },
        "sum" => |meter, args| {
            let mut total: Option<Val<'_>> = None;
            for item in walked(meter, args)? {
                total = Some(match total {
                    None => item,
                    Some(total) => add(meter, &[total, item])?,
                });
            }
            Ok(total.unwrap_or(Val::Int(0)))
        },
        "min" => |meter, args| extreme(meter, args, "min", Ordering::Greater),
        "max" => |meter, args| extreme(meter, args, "max", Ordering::Less),
        "indexOf" => |meter, args| match one(args)? {
            Val::Str(_) => index_of(meter, args, false),
            _ => item_place(meter, args, false),
        },
        "lastIndexOf" => |meter, args| match one(args)? {
            Val::Str(_) => index_of(meter, args, true),
            _ => item_place(meter, args, true),
        },
        "join" => |meter, args| {
            let separator = if args.len() > 1 { string(args, 1)?.as_str() } else { "" };
            let mut parts = Vec::new();
            for item in walked(meter, args)? {
                let Val::Str(part) = item else { return fault(format!("join: invalid input: {}", shown(&item))) };
                meter.traverse(part.len() + separator.len())?;
                parts.push(part);
            }
            Ok(text(parts.join(separator)))
        },
        "slice" => slice,
        "flatten" => |meter, args| {
            let depth = if args.len() > 1 { int(args, 1)? } else { 1 };
            if depth < 0 {
                return fault("level must be non-negative");
            }
            let mut out = Vec::new();
            flatten(meter, one(args)?, depth, &mut out)?;
            Ok(list(out))
        },
        "sort" => |meter, args| sort_by(meter, one(args)?, one(args)?),
        "@sortByAssociatedKeys" => |meter, args| sort_by(meter, &args[0], &args[1]),
        "reverse" => |meter, args| {
            let mut items = walked(meter, args)?;
            items.reverse();
            Ok(list(items))
        },
        "distinct" => |meter, args| {
            let mut out: Vec<Val<'_>> = Vec::new();
            for item in walked(meter, args)? {
                meter.spend(out.len() as u64)?;
                if position(&out, |other| Ok(item.equal(other) == Ok(true)))?.is_none() {
                    out.push(item);
                }
            }
            Ok(list(out))
        },
        "first" => |_, args| Ok(Val::Optional(one(args)?.item(0).transpose()?.map(Arc::new))),
        "last" => |_, args| {
            let last = one(args)?.len().and_then(|n| n.checked_sub(1)).and_then(|i| args[0].item(i));
            Ok(Val::Optional(last.transpose()?.map(Arc::new)))
        },
        _ => return None,
    })
}

/// The items of the first argument; each costs.
fn walked<'a>(meter: &mut Meter, args: &[Val<'a>]) -> Result<Vec<Val<'a>>, Fault> {
    let list = one(args)?;
    meter.spend(list.len().unwrap_or(0) as u64)?;
    list.items()
}

fn sets_contain<'a>(meter: &mut Meter, all: &Val<'a>, some: &Val<'a>) -> Result<bool, Fault> {
    meter.spend((all.len().unwrap_or(0) * some.len().unwrap_or(0)) as u64)?;
    for item in some.items()? {
        if !contains(all, &item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn extreme<'a>(meter: &mut Meter, args: &[Val<'a>], name: &str, better: Ordering) -> Outcome<'a> {
    let mut best: Option<Val<'a>> = None;
    for item in walked(meter, args)? {
        best = Some(match best {
            Some(best) if best.order(&item)? != better => best,
            _ => item,
        });
    }
    best.map_or_else(|| fault(format!("{name} called on empty list")), Ok)
}

fn item_place<'a>(meter: &mut Meter, args: &[Val<'a>], last: bool) -> Outcome<'a> {
    let items = walked(meter, args)?;
    let wanted = &two(args)?.1;
    let is = |item: &Val<'a>| item.equal(wanted) == Ok(true);
    let place = if last { items.iter().rposition(is) } else { items.iter().position(is) };
    Ok(Val::Int(place.map_or(-1, |i| i as i64)))
}

fn index_of<'a>(meter: &mut Meter, args: &[Val<'a>], last: bool) -> Outcome<'a> {
    let (all, part) = (chars(args, 0)?, chars(args, 1)?);
    meter.traverse(all.len())?;
    let from = args.get(2).map(|_| int(args, 2)).transpose()?;
    let most = all.len() as i64;
    if part.is_empty() {
        return Ok(Val::Int(from.unwrap_or(if last { most } else { 0 })));
    }
    if let Some(from) = from.filter(|from| *from < 0) {
        return fault(format!("index out of range: {from}"));
    }
    let fits = |i: usize| all[i..].starts_with(&part);
    let ends = all.len() as i64 - part.len() as i64;
    let place = match last {
        false => (from.unwrap_or(0)..=ends).find(|i| fits(*i as usize)),
        true => {
            if from.is_some_and(|from| from >= most) {
                return Ok(Val::Int(-1));
            }
            (0..=from.unwrap_or(ends).min(ends)).rev().find(|i| fits(*i as usize))
        }
    };
    Ok(Val::Int(place.unwrap_or(-1)))
}

fn slice<'a>(meter: &mut Meter, args: &[Val<'a>]) -> Outcome<'a> {
    let (start, end) = (int(args, 1)?, int(args, 2)?);
    let length = one(args)?.len().ok_or(Fault::Overload)?;
    let bad = |why: &str| fault(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return bad("negative indexes not supported");
    };
    if from > to {
        return bad("start index must be less than or equal to end index");
    }
    if length < to {
        return bad(&format!("list is length {length}"));
    }
    meter.spend((to - from) as u64)?;
    let items = (from..to).filter_map(|i| args[0].item(i)).collect::<Result<Vec<_>, _>>()?;
    Ok(list(items))
}

fn flatten<'a>(meter: &mut Meter, value: &Val<'a>, depth: i64, out: &mut Vec<Val<'a>>) -> Result<(), Fault> {
    for item in value.items()? {
        meter.spend(1)?;
        match depth > 0 && matches!(item, Val::List(_) | Val::Items(..)) {
            true => flatten(meter, &item, depth - 1, out)?,
            false => out.push(item),
        }
    }
    Ok(())
}

fn sort_by<'a>(meter: &mut Meter, value: &Val<'a>, keys: &Val<'a>) -> Outcome<'a> {
    let (items, keys) = (value.items()?, keys.items()?);
    meter.spend((items.len() as u64).saturating_mul(8))?;
    if items.len() != keys.len() {
        return Err(Fault::Overload);
    }
    if keys.first().is_some_and(|first| keys.iter().any(|key| key.type_name() != first.type_name())) {
        return fault("list elements must have the same type");
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|a, b| keys[*a].order(&keys[*b]).unwrap_or(Ordering::Equal));
    Ok(list(order.into_iter().map(|i| items[i].clone())))
}

fn times(name: &str, method: bool) -> Option<Function> {
    if !method {
        return None;
    }
    Some(match name {
        "getFullYear" => |_, args| of_time(args, |time| i64::from(time.year())),
        "getMonth" => |_, args| of_time(args, |time| i64::from(time.month()) - 1),
        "getDate" => |_, args| of_time(args, |time| i64::from(time.day())),
        "getDayOfMonth" => |_, args| of_time(args, |time| i64::from(time.day()) - 1),
        "getDayOfWeek" => |_, args| of_time(args, |time| i64::from(time.weekday().to_sunday_zero_offset())),
        "getDayOfYear" => |_, args| of_time(args, |time| i64::from(time.day_of_year()) - 1),
        "getHours" => |_, args| match one(args)? {
            Val::Duration(nanos) => Ok(Val::Int(nanos / 3_600_000_000_000)),
            _ => of_time(args, |time| i64::from(time.hour())),
        },
        "getMinutes" => |_, args| match one(args)? {
            Val::Duration(nanos) => Ok(Val::Int(nanos / 60_000_000_000)),
            _ => of_time(args, |time| i64::from(time.minute())),
        },
        "getSeconds" => |_, args| match one(args)? {
            Val::Duration(nanos) => Ok(Val::Int(nanos / 1_000_000_000)),
            _ => of_time(args, |time| i64::from(time.second())),
        },
        "getMilliseconds" => |_, args| match one(args)? {
            Val::Duration(nanos) => Ok(Val::Int(nanos / 1_000_000)),
            _ => of_time(args, |time| i64::from(time.subsec_nanosecond()) / 1_000_000),
        },
        _ => return None,
    })
}

fn of_time<'a>(args: &[Val<'a>], part: impl Fn(&Zoned) -> i64) -> Outcome<'a> {
    let Some(Val::Timestamp(time)) = args.first() else { return Err(Fault::Overload) };
    let zone = match args.get(1) {
        None => tz::TimeZone::UTC,
        Some(Val::Str(name)) => zone(name)?,
        Some(_) => return Err(Fault::Overload),
    };
    Ok(Val::Int(part(&time.to_zoned(zone))))
}

/// `+02:30`, or the name of a place.
fn zone(name: &str) -> Result<tz::TimeZone, Fault> {
    if let Some((hours, minutes)) = name.split_once(':') {
        let negative = hours.starts_with('-');
        let number = |text: &str| {
            text.parse::<i32>().map_err(|_| {
                Fault::Words(format!(
                    "strconv.Atoi: parsing {}: invalid syntax",
                    crate::embedded::status::go_quoted(text)
                ))
            })
        };
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let seconds = (hours.abs() * 60 + minutes) * 60;
        let offset = tz::Offset::from_seconds(if negative { -seconds } else { seconds });
        return offset.map(tz::TimeZone::fixed).map_err(|_| Fault::Overload);
    }
    match name {
        "" | "UTC" => Ok(tz::TimeZone::UTC),
        name => tz::TimeZone::get(name).map_err(|_| Fault::Words(format!("unknown time zone {name}"))),
    }
}

fn optionals(name: &str, method: bool) -> Option<Function> {
    Some(match (name, method) {
        ("optional.of", false) => |_, args| Ok(Val::Optional(Some(Arc::new(one(args)?.clone())))),
        ("optional.none", false) => |_, _| Ok(Val::Optional(None)),
        ("optional.ofNonZeroValue", false) => |_, args| {
            let value = one(args)?;
            Ok(Val::Optional((!is_zero(value)).then(|| Arc::new(value.clone()))))
        },
        ("optional.unwrap", false) | ("unwrapOpt", true) => |meter, args| {
            let mut out = Vec::new();
            for item in walked(meter, args)? {
                let Val::Optional(inner) = item else { return Err(Fault::Overload) };
                out.extend(inner.map(|value| (*value).clone()));
            }
            Ok(list(out))
        },
        ("hasValue", true) => |_, args| Ok(Val::Bool(optional(args)?.is_some())),
        ("value", true) => |_, args| match optional(args)? {
            Some(value) => Ok((**value).clone()),
            None => fault("optional.none() dereference"),
        },
        ("or", true) => |_, args| match optional(args)? {
            Some(_) => Ok(args[0].clone()),
            None => Ok(two(args)?.1.clone()),
        },
        ("orValue", true) => |_, args| match optional(args)? {
            Some(value) => Ok((**value).clone()),
            None => Ok(two(args)?.1.clone()),
        },
        _ => return None,
    })
}

fn optional<'v, 'a>(args: &'v [Val<'a>]) -> Result<&'v Option<Arc<Val<'a>>>, Fault> {
    match args.first() {
        Some(Val::Optional(inner)) => Ok(inner),
        _ => Err(Fault::Overload),
    }
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null => true,
        Val::Bool(b) => !b,
        Val::Int(n) | Val::Duration(n) => *n == 0,
        Val::Uint(n) => *n == 0,
        Val::Double(f) => *f == 0.0,
        Val::Str(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::Optional(inner) => inner.is_none(),
        other => other.len() == Some(0),
    }
}

fn libraries(name: &str, method: bool) -> Option<Function> {
    Some(match (name, method) {
        ("quantity", false) => |meter, args| {
            meter.traverse(string(args, 0)?.len())?;
            let parsed = Quantity::parse(string(args, 0)?).map_err(|problem| Fault::Words(problem.to_string()));
            wrapped(parsed.map(Opaque::Quantity))
        },
        ("isQuantity", false) => |_, args| Ok(Val::Bool(Quantity::parse(string(args, 0)?).is_ok())),
        ("sign", false) => |_, args| Ok(Val::Int(quantity(args, 0)?.sign().into())),
        ("asInteger", true) => |_, args| match opaque::as_int(quantity(args, 0)?) {
            Some(n) => Ok(Val::Int(n)),
            None => fault("cannot convert value to integer"),
        },
        ("isInteger", true) => |_, args| Ok(Val::Bool(opaque::as_int(quantity(args, 0)?).is_some())),
        ("asApproximateFloat", true) => |_, args| Ok(Val::Double(quantity(args, 0)?.to_f64())),
        ("add", true) => |_, args| {
            let mut sum = quantity(args, 0)?.clone();
            sum.add(&quantity_or_int(args)?);
            wrapped(Ok(Opaque::Quantity(sum)))
        },
        ("sub", true) => |_, args| {
            let mut rest = quantity(args, 0)?.clone();
            rest.sub(&quantity_or_int(args)?);
            wrapped(Ok(Opaque::Quantity(rest)))
        },
        ("isGreaterThan", true) => |_, args| Ok(Val::Bool(opaque_order(args)? == Ordering::Greater)),
        ("isLessThan", true) => |_, args| Ok(Val::Bool(opaque_order(args)? == Ordering::Less)),
        ("compareTo", true) => |_, args| Ok(Val::Int(opaque_order(args)? as i64)),
        ("semver", false) => |_, args| wrapped(semver_of(args).map(Opaque::Semver)),
        ("isSemver", false) => |_, args| match semver_of(args) {
            Err(Fault::Overload) => Err(Fault::Overload),
            outcome => Ok(Val::Bool(outcome.is_ok())),
        },
        ("major", true) => |_, args| semver_number(args, 0),
        ("minor", true) => |_, args| semver_number(args, 1),
        ("patch", true) => |_, args| semver_number(args, 2),
        _ => return networks(name, method).or_else(|| urls(name, method)).or_else(|| named_formats(name, method)),
    })
}

fn wrapped<'a>(value: Result<Opaque, Fault>) -> Outcome<'a> {
    value.map(|value| Val::Opaque(Arc::new(value)))
}

fn opaque<'v>(args: &'v [Val<'_>], at: usize) -> Result<&'v Opaque, Fault> {
    match args.get(at) {
        Some(Val::Opaque(value)) => Ok(value),
        _ => Err(Fault::Overload),
    }
}

fn quantity<'v>(args: &'v [Val<'_>], at: usize) -> Result<&'v Quantity, Fault> {
    match opaque(args, at)? {
        Opaque::Quantity(quantity) => Ok(quantity),
        _ => Err(Fault::Overload),
    }
}

fn quantity_or_int(args: &[Val<'_>]) -> Result<Quantity, Fault> {
    match args.get(1) {
        Some(Val::Int(n)) => Ok(Quantity::from_int(*n)),
        _ => quantity(args, 1).cloned(),
    }
}

fn opaque_order(args: &[Val<'_>]) -> Result<Ordering, Fault> {
    match (opaque(args, 0)?, opaque(args, 1)?) {
        (Opaque::Quantity(a), Opaque::Quantity(b)) => Ok(opaque::order(a, b)),
        (Opaque::Semver(a), Opaque::Semver(b)) => Ok(a.order(b)),
        _ => Err(Fault::Overload),
    }
}

fn semver_of(args: &[Val<'_>]) -> Result<Semver, Fault> {
    let tolerant = match args.get(1) {
        None => false,
        Some(value) => value.truth()?,
    };
    if tolerant { Semver::parse_tolerant(string(args, 0)?) } else { Semver::parse(string(args, 0)?) }
}

fn semver_number<'a>(args: &[Val<'a>], place: usize) -> Outcome<'a> {
    match opaque(args, 0)? {
        Opaque::Semver(version) => Ok(Val::Int(version.numbers[place] as i64)),
        _ => Err(Fault::Overload),
    }
}

fn address(args: &[Val<'_>], at: usize) -> Result<std::net::IpAddr, Fault> {
    match args.get(at) {
        Some(Val::Str(text)) => opaque::parse_ip(text),
        Some(Val::Opaque(value)) => match value.as_ref() {
            Opaque::Ip(address) => Ok(*address),
            _ => Err(Fault::Overload),
        },
        _ => Err(Fault::Overload),
    }
}

fn network(args: &[Val<'_>], at: usize) -> Result<(std::net::IpAddr, u8), Fault> {
    match args.get(at) {
        Some(Val::Str(text)) => opaque::parse_cidr(text),
        Some(Val::Opaque(value)) => match value.as_ref() {
            Opaque::Cidr(address, bits) => Ok((*address, *bits)),
            _ => Err(Fault::Overload),
        },
        _ => Err(Fault::Overload),
    }
}

fn networks(name: &str, method: bool) -> Option<Function> {
    Some(match (name, method) {
        ("ip", false) => |_, args| wrapped(address(args, 0).map(Opaque::Ip)),
        ("ip", true) => |_, args| wrapped(network(args, 0).map(|(address, _)| Opaque::Ip(address))),
        ("isIP", false) => |_, args| Ok(Val::Bool(opaque::parse_ip(string(args, 0)?).is_ok())),
        ("ip.isCanonical", false) => {
            |_, args| Ok(Val::Bool(opaque::parse_ip(string(args, 0)?)?.to_string() == string(args, 0)?.as_str()))
        }
        ("family", true) => |_, args| Ok(Val::Int(if address(args, 0)?.is_ipv4() { 4 } else { 6 })),
        ("isUnspecified", true) => |_, args| Ok(Val::Bool(opaque::is_of_kind(address(args, 0)?, "isUnspecified"))),
        ("isLoopback", true) => |_, args| Ok(Val::Bool(opaque::is_of_kind(address(args, 0)?, "isLoopback"))),
        ("isLinkLocalMulticast", true) => {
            |_, args| Ok(Val::Bool(opaque::is_of_kind(address(args, 0)?, "isLinkLocalMulticast")))
        }
        ("isLinkLocalUnicast", true) => {
            |_, args| Ok(Val::Bool(opaque::is_of_kind(address(args, 0)?, "isLinkLocalUnicast")))
        }
        ("isGlobalUnicast", true) => |_, args| Ok(Val::Bool(opaque::is_of_kind(address(args, 0)?, "isGlobalUnicast"))),
        ("cidr", false) => |_, args| wrapped(network(args, 0).map(|(address, bits)| Opaque::Cidr(address, bits))),
        ("isCIDR", false) => |_, args| Ok(Val::Bool(opaque::parse_cidr(string(args, 0)?).is_ok())),
        ("containsIP", true) => |_, args| Ok(Val::Bool(opaque::contains(network(args, 0)?, address(args, 1)?))),
        ("containsCIDR", true) => |_, args| {
            let (outer, inner) = (network(args, 0)?, network(args, 1)?);
            Ok(Val::Bool(outer.1 <= inner.1 && opaque::contains(outer, inner.0)))
        },
        ("prefixLength", true) => |_, args| Ok(Val::Int(i64::from(network(args, 0)?.1))),
        ("masked", true) => |_, args| {
            let (address, bits) = network(args, 0)?;
            wrapped(Ok(Opaque::Cidr(opaque::masked(address, bits), bits)))
        },
        _ => return None,
    })
}

fn url<'v>(args: &'v [Val<'_>]) -> Result<&'v Url, Fault> {
    match opaque(args, 0)? {
        Opaque::Url(url) => Ok(url),
        _ => Err(Fault::Overload),
    }
}

fn urls(name: &str, method: bool) -> Option<Function> {
    Some(match (name, method) {
        ("url", false) => |meter, args| {
            meter.traverse(string(args, 0)?.len())?;
            wrapped(Url::parse(string(args, 0)?).map(Opaque::Url))
        },
        ("isURL", false) => |_, args| Ok(Val::Bool(formats::is_uri(string(args, 0)?))),
        ("getScheme", true) => |_, args| Ok(text(&url(args)?.scheme)),
        ("getHost", true) => |_, args| Ok(text(&url(args)?.host)),
        ("getHostname", true) => |_, args| Ok(text(url(args)?.hostname())),
        ("getPort", true) => |_, args| Ok(text(url(args)?.port())),
        ("getEscapedPath", true) => |_, args| Ok(text(&url(args)?.path)),
        ("getQuery", true) => |_, args| {
            let entries = url(args)?.parameters();
            let entry =
                |(key, values): (String, Vec<String>)| (Key::Str(key.into()), list(values.into_iter().map(text)));
            Ok(Val::Map(Arc::new(entries.into_iter().map(entry).collect())))
        },
        _ => return None,
    })
}

fn named_formats(name: &str, method: bool) -> Option<Function> {
    match (name, method) {
        ("format.named", false) => Some(|_, args| {
            let name = string(args, 0)?;
            let found = FORMATS.iter().find(|format| format.name == name.as_str());
            Ok(Val::Optional(found.map(|format| Arc::new(Val::Opaque(Arc::new(Opaque::Format(format)))))))
        }),
        ("validate", true) => Some(|meter, args| {
            let (Opaque::Format(format), value) = (opaque(args, 0)?, string(args, 1)?) else {
                return Err(Fault::Overload);
            };
            meter.spend((value.len() as u64 + 1).div_ceil(10) * format.pattern.div_ceil(4))?;
            let found = (format.check)(value);
            Ok(Val::Optional((!found.is_empty()).then(|| Arc::new(list(found.into_iter().map(text))))))
        }),
        _ => constant_format(name, method),
    }
}

/// `format.dns1123Label()` and the like: a function for each, since a function knows no more than its arguments.
fn constant_format(name: &str, method: bool) -> Option<Function> {
    macro_rules! each {
        ($($i:literal)*) => {
            match name.strip_prefix("format.").filter(|_| !method)? {
                $(short if short == FORMATS[$i].name => Some(|_, _| wrapped(Ok(Opaque::Format(&FORMATS[$i])))),)*
                _ => None,
            }
        };
    }
    each!(0 1 2 3 4 5 6 7 8 9 10 11 12)
}
