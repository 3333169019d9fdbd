//! The functions of the language.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use base64::Engine;
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use super::{
    eval::{Machine, Outcome, arithmetic, member},
    value::{Element, Val},
};
use crate::{
    kubernetes::{duration, value::Value},
    model::go_number,
};

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Calls a function that takes no predicate.
pub(super) fn call(machine: &mut Machine<'_>, name: &str, arguments: Vec<Val>) -> Outcome {
    let first = arguments.first().cloned().unwrap_or(Val::Nil);
    let second = arguments.get(1).cloned().unwrap_or(Val::Nil);
    match name {
        "len" => length(&first).map(|length| Val::Int(i64::try_from(length).unwrap_or(i64::MAX))),
        "type" => Ok(Val::text(kind(&first))),
        "string" => Ok(Val::text(first.print())),
        "int" => int(&first),
        "float" => float(&first).map(Val::Float),
        "abs" | "ceil" | "floor" | "round" => rounded(name, &first),
        "sum" => match &first {
            Val::List(items, _) => sum(items),
            other => Err(format!("builtin sum takes only array (got {})", other.type_name())),
        },
        "max" | "min" | "mean" | "median" => numbers(name, &arguments),
        "first" | "last" | "take" | "reverse" | "uniq" | "sort" | "flatten" | "concat" | "count" => {
            lists(machine, name, &arguments)
        }
        "get" => Ok(member(&first, &second).unwrap_or(Val::Nil)),
        "keys" | "values" | "toPairs" | "fromPairs" => maps(name, &first),
        "now" => Ok(Val::Moment(machine.env.now)),
        "duration" => {
            let Val::Text(text) = &first else { return Err(wrong(name, &first)) };
            duration::parse(text).map(Val::Span)
        }
        "date" => date(&arguments),
        "timezone" => Ok(first),
        "toJSON" => serde_json::to_string_pretty(&first.to_json()).map(Val::text).map_err(|error| error.to_string()),
        "fromJSON" => {
            let Val::Text(text) = &first else { return Err(wrong(name, &first)) };
            Value::from_json(text.as_bytes()).map(|value| Val::of_json(&value)).map_err(|error| error.to_string())
        }
        "bitand" | "bitor" | "bitxor" | "bitnand" | "bitshl" | "bitshr" | "bitushr" | "bitnot" => {
            bits(name, &first, &second)
        }
        _ => texts(machine, name, &arguments),
    }
}

fn wrong(name: &str, value: &Val) -> String {
    format!("invalid argument for {name} (type {})", value.type_name())
}

fn length(value: &Val) -> Result<usize, String> {
    match value {
        Val::Text(text) => Ok(text.chars().count()),
        Val::List(items, _) => Ok(items.len()),
        Val::Map(map) => Ok(map.len()),
        other => Err(format!("invalid argument for len (type {})", other.type_name())),
    }
}

fn kind(value: &Val) -> &'static str {
    match value {
        Val::Nil => "nil",
        Val::Bool(_) => "bool",
        Val::Int(_) => "int",
        Val::Float(_) => "float",
        Val::Text(_) => "string",
        Val::List(..) => "array",
        Val::Map(_) => "map",
        Val::Span(_) => "time.Duration",
        Val::Moment(_) => "time.Time",
        Val::Named(..) => "time.Month",
    }
}

fn int(value: &Val) -> Outcome {
    match value {
        Val::Int(number) => Ok(Val::Int(*number)),
        Val::Float(number) => Ok(Val::Int(whole(*number))),
        Val::Text(text) => go_number::int(text).map(Val::Int).map_err(|_| format!("invalid operation: int({text})")),
        other => Err(format!("invalid operation: int({})", other.type_name())),
    }
}

/// A number without its fraction. What does not fit becomes the least there is, as with Go on the usual machines.
pub(super) fn whole(number: f64) -> i64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number);
    if fits { number as i64 } else { i64::MIN }
}

fn float(value: &Val) -> Result<f64, String> {
    match value {
        Val::Text(text) => go_number::float(text).map_err(|_| format!("invalid operation: float({text})")),
        other => other.number().ok_or_else(|| format!("invalid operation: float({})", other.print())),
    }
}

fn rounded(name: &str, value: &Val) -> Outcome {
    match (name, value) {
        ("abs", Val::Int(number)) => Ok(Val::Int(number.wrapping_abs())),
        (name, value) => {
            let number = value.number().ok_or_else(|| wrong(name, value))?;
            Ok(Val::Float(match name {
                "abs" => number.abs(),
                "ceil" => number.ceil(),
                "floor" => number.floor(),
                _ => number.round(),
            }))
        }
    }
}

/// Every number of these, lists taken apart.
fn flat_numbers(name: &str, values: &[Val], out: &mut Vec<Val>) -> Result<(), String> {
    for value in values {
        match value {
            Val::List(items, _) => flat_numbers(name, items, out)?,
            Val::Int(_) | Val::Float(_) => out.push(value.clone()),
            other => return Err(format!("invalid argument for {name} (type {})", other.type_name())),
        }
    }
    Ok(())
}

fn numbers(name: &str, arguments: &[Val]) -> Outcome {
    let mut numbers = Vec::new();
    flat_numbers(name, arguments, &mut numbers)?;
    let as_float = |value: &Val| value.number().unwrap_or_default();
    let count = numbers.len() as f64;
    match name {
        "max" | "min" => {
            let wanted = if name == "max" { Ordering::Greater } else { Ordering::Less };
            let pick = |best: Val, next: &Val| {
                if next.order(&best) == Ok(Some(wanted)) { next.clone() } else { best }
            };
            let first = numbers.first().cloned().unwrap_or(Val::Nil);
            Ok(numbers.iter().fold(first, pick))
        }
        _ if numbers.is_empty() => Ok(Val::Float(0.0)),
        "mean" => Ok(Val::Float(numbers.iter().map(as_float).sum::<f64>() / count)),
        _ => {
            let mut sorted: Vec<f64> = numbers.iter().map(as_float).collect();
            // What is no number stands first, as with Go.
            sorted.sort_by(|a, b| b.is_nan().cmp(&a.is_nan()).then(a.total_cmp(b)));
            let middle = sorted.len() / 2;
            let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
            let is_odd = sorted.len() % 2 == 1;
            Ok(Val::Float(if is_odd { at(middle) } else { f64::midpoint(at(middle.saturating_sub(1)), at(middle)) }))
        }
    }
}

/// Everything added up, each to what there was before, beginning with a whole zero.
fn sum(items: &[Val]) -> Outcome {
    items.iter().try_fold(Val::Int(0), |so_far, item| {
        let problem = || format!("invalid operation: {} + {}", item.type_name(), so_far.type_name());
        arithmetic("+", item, &so_far).ok_or_else(problem)
    })
}

fn lists(machine: &mut Machine<'_>, name: &str, arguments: &[Val]) -> Outcome {
    let first = arguments.first().cloned().unwrap_or(Val::Nil);
    if name == "concat" {
        let mut all = Vec::new();
        for list in arguments {
            let Val::List(items, _) = list else { return Err(format!("cannot concat {}", list.type_name())) };
            all.extend(items.iter().cloned());
        }
        machine.spend(all.len())?;
        return Ok(Val::list(all));
    }
    let Val::List(items, element) = &first else {
        return match (name, &first) {
            ("first" | "last", Val::Nil) => Ok(Val::Nil),
            ("first" | "last", other) => Err(format!("cannot get {name} element from {}", other.type_name())),
            ("take", Val::Nil) => Err("cannot take from invalid".to_owned()),
            (name, other) => Err(format!("cannot {name} {}", other.type_name())),
        };
    };
    let listed = |items: Vec<Val>| Val::List(Arc::new(items), *element);
    match name {
        "first" => Ok(items.first().cloned().unwrap_or(Val::Nil)),
        "last" => Ok(items.last().cloned().unwrap_or(Val::Nil)),
        "count" => {
            let count = items.iter().filter(|item| matches!(item, Val::Bool(true))).count();
            Ok(Val::Int(i64::try_from(count).unwrap_or(i64::MAX)))
        }
        "take" => {
            let Some(Val::Int(count)) = arguments.get(1) else { return Err("cannot take so many".to_owned()) };
            let count = usize::try_from(*count).unwrap_or_default();
            Ok(listed(items.iter().take(count).cloned().collect()))
        }
        "reverse" => Ok(listed(items.iter().rev().cloned().collect())),
        "uniq" => {
            let mut once: Vec<Val> = Vec::new();
            for item in items.iter() {
                // A list is as long as the budget allows; comparing each with each must be, too.
                machine.spend(once.len() / 64)?;
                if !once.iter().any(|known| known.same(item)) {
                    once.push(item.clone());
                }
            }
            Ok(Val::list(once))
        }
        "sort" => {
            let mut sorted = items.to_vec();
            let descends = arguments.get(1).is_some_and(|order| order.print() == "desc");
            for pair in sorted.windows(2) {
                if let [one, other] = pair
                    && one.order(other).is_err()
                {
                    return Err(format!("invalid operation: {} < {}", other.type_name(), one.type_name()));
                }
            }
            sort_by(&mut sorted, |item| item.clone(), descends);
            Ok(Val::list(sorted))
        }
        _ => {
            let mut flat = Vec::new();
            flatten(items, &mut flat);
            machine.spend(flat.len())?;
            Ok(Val::list(flat))
        }
    }
}

fn flatten(items: &[Val], out: &mut Vec<Val>) {
    for item in items {
        match item {
            Val::List(inner, _) => flatten(inner, out),
            other => out.push(other.clone()),
        }
    }
}

fn sort_by<T>(items: &mut [T], key: impl Fn(&T) -> Val, descends: bool) {
    items.sort_by(|a, b| {
        let order = key(a).order(&key(b)).ok().flatten().unwrap_or(Ordering::Equal);
        if descends { order.reverse() } else { order }
    });
}

fn maps(name: &str, first: &Val) -> Outcome {
    match (name, first) {
        ("keys", Val::Map(map)) => Ok(Val::list(map.keys().map(Val::text).collect())),
        ("values", Val::Map(map)) => Ok(Val::list(map.values().cloned().collect())),
        ("toPairs", Val::Map(map)) => {
            Ok(Val::list(map.iter().map(|(key, value)| Val::list(vec![Val::text(key), value.clone()])).collect()))
        }
        ("fromPairs", Val::List(pairs, _)) => {
            let mut map = BTreeMap::new();
            for pair in pairs.iter() {
                let Val::List(pair, _) = pair else { return Err(format!("invalid pair {}", pair.print())) };
                let [key, value] = pair.as_slice() else {
                    return Err(format!("invalid pair length {}", pair.len()));
                };
                map.insert(key.print(), value.clone());
            }
            Ok(Val::Map(Arc::new(map)))
        }
        (name, other) => Err(format!("cannot get {name} from {}", other.type_name())),
    }
}

fn bits(name: &str, left: &Val, right: &Val) -> Outcome {
    let number = |value: &Val| match value {
        Val::Int(number) => Ok(*number),
        other => Err(format!("invalid operation: {name} ({})", other.type_name())),
    };
    let left = number(left)?;
    if name == "bitnot" {
        return Ok(Val::Int(!left));
    }
    let right = number(right)?;
    let by = u32::try_from(right).unwrap_or(u32::MAX);
    if name.contains("sh") && right < 0 {
        return Err(format!("invalid operation: negative shift count {right} (type int)"));
    }
    Ok(Val::Int(match name {
        "bitand" => left & right,
        "bitor" => left | right,
        "bitxor" => left ^ right,
        "bitnand" => left & !right,
        "bitshl" => left.checked_shl(by).unwrap_or_default(),
        "bitshr" => left.checked_shr(by).unwrap_or(if left < 0 { -1 } else { 0 }),
        _ => i64::from_ne_bytes(
            (u64::from_ne_bytes(left.to_ne_bytes()).checked_shr(by).unwrap_or_default()).to_ne_bytes(),
        ),
    }))
}

fn texts(machine: &mut Machine<'_>, name: &str, arguments: &[Val]) -> Outcome {
    if name == "join" {
        let Some(Val::List(items, _)) = arguments.first() else {
            return Err(wrong(name, arguments.first().unwrap_or(&Val::Nil)));
        };
        let glue = arguments.get(1).map(Val::print).unwrap_or_default();
        return Ok(Val::text(items.iter().map(Val::print).collect::<Vec<_>>().join(&glue)));
    }
    let text = |index: usize| match arguments.get(index) {
        Some(Val::Text(text)) => Ok(text.clone()),
        Some(other) => Err(wrong(name, other)),
        None => Err(format!("not enough arguments to call {name}")),
    };
    let first = text(0)?;
    let place = |found: Option<usize>| Val::Int(found.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1));
    let list = |parts: Vec<Val>| Val::List(Arc::new(parts), Element::Text);
    Ok(match name {
        "upper" => Val::text(first.chars().map(|c| single(c, c.to_uppercase())).collect::<String>()),
        "lower" => Val::text(first.chars().map(|c| single(c, c.to_lowercase())).collect::<String>()),
        "trim" => match arguments.len() {
            1 => Val::text(first.trim()),
            _ => {
                let cut = text(1)?;
                Val::text(first.trim_matches(|c| cut.contains(c)))
            }
        },
        "trimPrefix" => {
            let prefix = if arguments.len() > 1 { text(1)? } else { " ".into() };
            Val::text(first.strip_prefix(prefix.as_ref()).unwrap_or(&first))
        }
        "trimSuffix" => {
            let suffix = if arguments.len() > 1 { text(1)? } else { " ".into() };
            Val::text(first.strip_suffix(suffix.as_ref()).unwrap_or(&first))
        }
        "split" => {
            let most = match arguments.get(2) {
                Some(Val::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
                Some(_) | None => usize::MAX,
            };
            list(first.splitn(most, text(1)?.as_ref()).map(Val::text).collect())
        }
        "splitAfter" => list(first.split_inclusive(text(1)?.as_ref()).map(Val::text).collect()),
        "replace" => Val::text(first.replace(text(1)?.as_ref(), &text(2)?)),
        "repeat" => {
            let Some(Val::Int(times)) = arguments.get(1) else { return Err(wrong(name, &Val::Nil)) };
            let times = usize::try_from(*times).map_err(|_| "cannot repeat a negative number of times".to_owned())?;
            machine.spend(first.len().saturating_mul(times))?;
            Val::text(first.repeat(times))
        }
        "indexOf" => place(first.find(text(1)?.as_ref())),
        "lastIndexOf" => place(first.rfind(text(1)?.as_ref())),
        "hasPrefix" => Val::Bool(first.starts_with(text(1)?.as_ref())),
        "hasSuffix" => Val::Bool(first.ends_with(text(1)?.as_ref())),
        "toBase64" => Val::text(base64::engine::general_purpose::STANDARD.encode(first.as_bytes())),
        "fromBase64" => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(first.as_bytes());
            Val::text(String::from_utf8_lossy(&bytes.map_err(|error| error.to_string())?))
        }
        _ => return Err(format!("the function {name} is not known here")),
    })
}

/// A letter in another case, if that is one letter, too.
fn single(letter: char, mut other: impl ExactSizeIterator<Item = char>) -> char {
    if other.len() == 1 { other.next().unwrap_or(letter) } else { letter }
}

/// What became of a predicate asked of each element of a list, as far as it was asked.
pub(super) fn predicate(name: &str, items: &[Val], answers: Vec<Val>, descends: bool) -> Outcome {
    let is_yes = |answer: &Val| matches!(answer, Val::Bool(true));
    let count = || answers.iter().filter(|answer| is_yes(answer)).count();
    let place = |found: Option<usize>| Val::Int(found.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1));
    if !["map", "sum", "groupBy", "sortBy"].contains(&name)
        && let Some(odd) = answers.iter().find(|answer| !matches!(answer, Val::Bool(_)))
    {
        let kind = if matches!(odd, Val::Nil) { "nil" } else { odd.type_name() };
        return Err(format!("interface conversion: interface {{}} is {kind}, not bool"));
    }
    let found = || answers.iter().position(is_yes);
    let found_last = || answers.iter().rposition(is_yes);
    let at = |place: Option<usize>| place.and_then(|place| items.get(place)).cloned().unwrap_or(Val::Nil);
    Ok(match name {
        "all" => Val::Bool(count() == items.len()),
        "none" => Val::Bool(count() == 0),
        "any" => Val::Bool(count() > 0),
        "one" => Val::Bool(count() == 1),
        "count" => Val::Int(i64::try_from(count()).unwrap_or(i64::MAX)),
        "filter" => {
            let kept = items.iter().zip(&answers).filter(|(_, answer)| is_yes(answer));
            Val::list(kept.map(|(item, _)| item.clone()).collect())
        }
        "map" => Val::list(answers),
        "find" => at(found()),
        "findIndex" => place(found()),
        "findLast" => at(found_last()),
        "findLastIndex" => place(found_last()),
        "sum" => return sum(&answers),
        "sortBy" => {
            let mut pairs: Vec<(Val, Val)> = items.iter().cloned().zip(answers).collect();
            sort_by(&mut pairs, |(_, key)| key.clone(), descends);
            Val::list(pairs.into_iter().map(|(item, _)| item).collect())
        }
        _ => {
            let mut groups: BTreeMap<String, Vec<Val>> = BTreeMap::new();
            for (item, key) in items.iter().zip(answers) {
                // Keys are what they are: a number is not found under its text.
                let key = if matches!(key, Val::Text(_)) { key.print() } else { format!("\0{}", key.print()) };
                groups.entry(key).or_default().push(item.clone());
            }
            Val::Map(Arc::new(groups.into_iter().map(|(key, items)| (key, Val::list(items))).collect()))
        }
    })
}

/// A moment from a text, by one of the usual layouts or by the one that is given.
fn date(arguments: &[Val]) -> Outcome {
    let text = |index: usize| match arguments.get(index) {
        Some(Val::Text(text)) => Some(text.clone()),
        Some(_) | None => None,
    };
    let first = text(0).ok_or_else(|| "date needs a text".to_owned())?;
    let read = |layout: &str| {
        let format = strftime(layout);
        let civil = DateTime::strptime(&format, first.as_ref())
            .or_else(|_| jiff::civil::Date::strptime(&format, first.as_ref()).map(|date| date.at(0, 0, 0, 0)));
        civil.ok().and_then(|civil| civil.to_zoned(TimeZone::UTC).ok()).map(|zoned| zoned.timestamp())
    };
    let found = match text(1) {
        Some(layout) => read(&layout),
        None => first.parse::<Timestamp>().ok().or_else(|| {
            let layouts = ["2006-01-02", "15:04:05", "2006-01-02 15:04:05", "02 Jan 06 15:04 MST"];
            layouts.iter().find_map(|layout| read(layout))
        }),
    };
    found.map(Val::Moment).ok_or_else(|| format!("invalid date {first}"))
}

/// Go's layout of a moment in the letters of `strftime`.
fn strftime(layout: &str) -> String {
    let words = [
        ("2006", "%Y"),
        ("January", "%B"),
        ("Monday", "%A"),
        ("Jan", "%b"),
        ("Mon", "%a"),
        ("01", "%m"),
        ("02", "%d"),
        ("15", "%H"),
        ("04", "%M"),
        ("05", "%S"),
        ("06", "%y"),
        ("MST", "%Z"),
        ("Z07:00", "%:z"),
    ];
    words.iter().fold(layout.replace('%', "%%"), |text, (word, letter)| text.replace(word, letter))
}

/// Calls a method of a moment, a length of time, a month or a day.
pub(super) fn method(of: &Val, name: &str, arguments: &[Val]) -> Outcome {
    let unknown = || format!("type {} has no method {name}", of.type_name());
    match of {
        Val::Span(span) => Ok(match name {
            "Hours" => Val::Float(span.as_secs_f64() / 3600.0),
            "Minutes" => Val::Float(span.as_secs_f64() / 60.0),
            "Seconds" => Val::Float(span.as_secs_f64()),
            "Milliseconds" => Val::Int(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
            "String" => Val::text(of.print()),
            _ => return Err(unknown()),
        }),
        Val::Moment(moment) => {
            let civil = moment.to_zoned(TimeZone::UTC);
            Ok(match name {
                "Year" => Val::Int(civil.year().into()),
                "Month" => {
                    let month = usize::try_from(civil.month()).unwrap_or(1);
                    Val::Named(civil.month().into(), MONTHS.get(month - 1).copied().unwrap_or_default())
                }
                "Day" => Val::Int(civil.day().into()),
                "YearDay" => Val::Int(civil.day_of_year().into()),
                "Weekday" => {
                    let day = civil.weekday().to_sunday_zero_offset();
                    let name = usize::try_from(day).ok().and_then(|day| WEEKDAYS.get(day).copied());
                    Val::Named(day.into(), name.unwrap_or_default())
                }
                "Hour" => Val::Int(civil.hour().into()),
                "Minute" => Val::Int(civil.minute().into()),
                "Second" => Val::Int(civil.second().into()),
                "Unix" => Val::Int(moment.as_second()),
                "String" => Val::text(of.print()),
                "Format" => {
                    let layout = arguments.first().map(Val::print).unwrap_or_default();
                    Val::text(civil.strftime(&strftime(&layout)).to_string())
                }
                _ => return Err(unknown()),
            })
        }
        Val::Named(..) if name == "String" => Ok(Val::text(of.print())),
        _ => Err(unknown()),
    }
}
