//! The functions on texts.

use regex::Regex;

use super::{Function, int, string, two};
use crate::schema::{
    cel::{
        format::format,
        plan::Meter,
        value::{Fault, Outcome, Val, fault, list, text},
    },
    regexp,
};

/// The characters of a text.
pub(super) fn chars(args: &[Val<'_>], at: usize) -> Result<Vec<char>, Fault> {
    Ok(string(args, at)?.chars().collect())
}

/// The function of this name.
pub(super) fn function(name: &str, method: bool) -> Option<Function> {
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
pub(in crate::schema::cel) fn matches<'a>(meter: &mut Meter, args: &[Val<'a>], regex: &Regex) -> Outcome<'a> {
    search_cost(meter, args)?;
    Ok(Val::Bool(regex.is_match(string(args, 0)?)))
}

/// The first match; empty if there is none.
pub(in crate::schema::cel) fn find<'a>(meter: &mut Meter, args: &[Val<'a>], regex: &Regex) -> Outcome<'a> {
    search_cost(meter, args)?;
    Ok(text(regex.find(string(args, 0)?).map_or("", |found| found.as_str())))
}

/// All matches, or so many.
pub(in crate::schema::cel) fn find_all<'a>(meter: &mut Meter, args: &[Val<'a>], regex: &Regex) -> Outcome<'a> {
    search_cost(meter, args)?;
    let most = match args.get(2) {
        None => usize::MAX,
        Some(Val::Int(n)) => usize::try_from(*n).unwrap_or(usize::MAX),
        Some(_) => return Err(Fault::Overload),
    };
    Ok(list(regex.find_iter(string(args, 0)?).take(most).map(|found| text(found.as_str()))))
}
