//! The functions of the Kubernetes libraries: quantities, versions, addresses, URLs, formats.

use std::{cmp::Ordering, sync::Arc};

use super::{Function, string};
use crate::schema::{
    cel::{
        opaque::{self, FORMATS, Opaque, Semver, Url},
        value::{Fault, Key, Outcome, Val, fault, list, text},
    },
    formats,
    quantity::Quantity,
};

/// The function of this name.
pub(super) fn function(name: &str, method: bool) -> Option<Function> {
    Some(match (name, method) {
        ("quantity", false) => |meter, args| {
            meter.traverse(string(args, 0)?.len())?;
            let parsed = Quantity::parse(string(args, 0)?).map_err(|problem| Fault::Words(problem.to_string()));
            wrapped(parsed.map(|quantity| Opaque::Quantity(quantity, false)))
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
            wrapped(Ok(Opaque::Quantity(sum, true)))
        },
        ("sub", true) => |_, args| {
            let mut rest = quantity(args, 0)?.clone();
            rest.sub(&quantity_or_int(args)?);
            wrapped(Ok(Opaque::Quantity(rest, true)))
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
        Opaque::Quantity(quantity, _) => Ok(quantity),
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
        (Opaque::Quantity(a, _), Opaque::Quantity(b, _)) => Ok(opaque::order(a, b)),
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
