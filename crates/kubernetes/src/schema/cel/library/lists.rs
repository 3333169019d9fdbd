//! The functions on lists and sets.

use std::{cmp::Ordering, sync::Arc};

use super::{Function, add, contains, int, one, position, shown, string, strings::chars, two};
use crate::schema::cel::{
    plan::Meter,
    value::{Fault, Outcome, Val, fault, list, text},
};

/// The function of this name.
pub(super) fn function(name: &str, method: bool) -> Option<Function> {
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
                if !is_list(b) {
                    return Err(Fault::Overload);
                }
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
pub(super) fn walked<'a>(meter: &mut Meter, args: &[Val<'a>]) -> Result<Vec<Val<'a>>, Fault> {
    let list = one(args)?;
    meter.spend(list.len().unwrap_or(0) as u64)?;
    list.items()
}

fn is_list(value: &Val<'_>) -> bool {
    matches!(value, Val::List(_) | Val::Items(..))
}

fn sets_contain<'a>(meter: &mut Meter, all: &Val<'a>, some: &Val<'a>) -> Result<bool, Fault> {
    meter.spend((all.len().unwrap_or(0) * some.len().unwrap_or(0)) as u64)?;
    if !is_list(all) {
        return Err(Fault::Overload);
    }
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
