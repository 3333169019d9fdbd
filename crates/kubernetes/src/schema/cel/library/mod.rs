//! The functions rules may call, with the meanings and complaints of the real server's.

mod kubernetes;
mod lists;
mod optionals;
mod strings;
mod times;

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
pub(super) use strings::{find, find_all, matches};

use super::{
    opaque::Opaque,
    plan::Meter,
    value::{Fault, Key, Outcome, Val, double_text, fault, list, text},
};
use crate::{
    schema::{Shape, Topology, formats},
    value::Text,
};

/// A function: what it costs beyond the call is told to the meter.
pub(super) type Function = for<'a> fn(&mut Meter, &[Val<'a>]) -> Outcome<'a>;

/// What is said of arguments a function does not take: upstream's ways of finding functions differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Refusal {
    /// That there is no such overload.
    Plain,
    /// Also the function's name, if the first argument can do nothing of the kind.
    Named,
    /// Also the types of all arguments.
    Typed,
}

/// How a function refuses arguments.
pub(super) fn refusal(name: &str) -> Refusal {
    match name {
        "_<_" | "_<=_" | "_>_" | "_>=_" | "_+_" | "_-_" | "_*_" | "_/_" | "_%_" | "-_" | "size" | "sort" => {
            Refusal::Named
        }
        "!_"
        | "_==_"
        | "_!=_"
        | "@in"
        | "type"
        | "dyn"
        | "contains"
        | "startsWith"
        | "endsWith"
        | "matches"
        | "@sortByAssociatedKeys" => Refusal::Plain,
        _ => Refusal::Typed,
    }
}

/// The words of a refusal.
pub(super) fn refused(name: &str, args: &[Val<'_>]) -> Fault {
    match refusal(name) {
        Refusal::Plain => Fault::Overload,
        Refusal::Named if args.first().is_some_and(|first| can(name, first)) => Fault::Overload,
        Refusal::Named => Fault::Words(format!("no such overload: {name}")),
        Refusal::Typed => {
            let types: Vec<&str> = args.iter().map(Val::type_name).collect();
            Fault::Words(format!("no such overload: {name}({})", types.join(", ")))
        }
    }
}

/// Whether values of this type can be ordered, added and so on, if not with every other.
fn can(name: &str, value: &Val<'_>) -> bool {
    let number = matches!(value, Val::Int(_) | Val::Uint(_) | Val::Double(_));
    let time = matches!(value, Val::Duration(_) | Val::Timestamp(_));
    let text = matches!(value, Val::Str(_) | Val::Bytes(_));
    let list = matches!(value, Val::List(_) | Val::Items(..));
    match name {
        "_+_" => number || time || text || list,
        "_-_" => number || time,
        "_*_" | "_/_" => number,
        "_%_" => matches!(value, Val::Int(_) | Val::Uint(_)),
        "-_" => matches!(value, Val::Int(_) | Val::Double(_) | Val::Bool(_) | Val::Duration(_)),
        "size" => text || list || matches!(value, Val::Map(_) | Val::Object(..)),
        "sort" => list,
        _ => number || time || text || matches!(value, Val::Bool(_)),
    }
}

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
            // What cannot be compared is not equal, so that this never fails.
            Ok(Val::Bool(a.equal(b) != Ok(true)))
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
            return strings::function(name, method)
                .or_else(|| lists::function(name, method))
                .or_else(|| times::function(name, method))
                .or_else(|| optionals::function(name, method))
                .or_else(|| kubernetes::function(name, method));
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
        other => other.len().map(|n| Val::Int(n as i64)).ok_or(Fault::Overload),
    }
}

/// A text or number that is of a type that can be converted, but cannot be itself.
fn no_conversion<'a>(value: &Val<'a>, to: &str) -> Outcome<'a> {
    match (value, to) {
        (Val::Str(_), _) | (Val::Int(_), "google.protobuf.Duration") => {
            fault(format!("type conversion error from '{}' to '{to}'", value.type_name()))
        }
        _ => Err(Fault::Overload),
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
