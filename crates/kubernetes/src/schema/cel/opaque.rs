//! The values of the Kubernetes libraries: quantities, addresses, networks, URLs, versions and named formats.

use std::{
    cmp::Ordering,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::value::{Fault, fault};
use crate::{
    names,
    schema::{formats, quantity::Quantity},
    status::go_quoted,
};

/// A value of a library.
#[derive(Debug, Clone)]
pub(super) enum Opaque {
    /// A quantity, and whether it is a sum or difference.
    Quantity(Quantity, bool),
    Ip(IpAddr),
    Cidr(IpAddr, u8),
    Url(Url),
    Semver(Semver),
    Format(&'static NamedFormat),
}

impl Opaque {
    /// The name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Opaque::Quantity(..) => "kubernetes.Quantity",
            Opaque::Ip(_) => "net.IP",
            Opaque::Cidr(..) => "net.CIDR",
            Opaque::Url(_) => "kubernetes.URL",
            Opaque::Semver(_) => "kubernetes.Semver",
            Opaque::Format(_) => "kubernetes.NamedFormat",
        }
    }

    /// Whether both are equal; only like can be compared with like.
    pub(super) fn equal(&self, other: &Opaque) -> Result<bool, Fault> {
        match (self, other) {
            // Upstream cannot compare anything with what it added up itself.
            (Opaque::Quantity(..), Opaque::Quantity(_, true)) => Err(Fault::Overload),
            (Opaque::Quantity(a, _), Opaque::Quantity(b, false)) => Ok(order(a, b) == Ordering::Equal),
            (Opaque::Ip(a), Opaque::Ip(b)) => Ok(a == b),
            (Opaque::Cidr(a, n), Opaque::Cidr(b, m)) => Ok(a == b && n == m),
            (Opaque::Url(a), Opaque::Url(b)) => Ok(a.text == b.text),
            (Opaque::Semver(a), Opaque::Semver(b)) => Ok(a.order(b) == Ordering::Equal),
            (Opaque::Format(a), Opaque::Format(b)) => Ok(a.name == b.name),
            _ => Err(Fault::Overload),
        }
    }
}

/// The order of two quantities.
pub(super) fn order(a: &Quantity, b: &Quantity) -> Ordering {
    a.partial_cmp(b).unwrap_or(Ordering::Equal)
}

/// The number a quantity is, if it is whole and fits.
pub(super) fn as_int(quantity: &Quantity) -> Option<i64> {
    let value = quantity.value();
    (order(quantity, &Quantity::from_int(value)) == Ordering::Equal).then_some(value)
}

/// Reads an address as the libraries take it: no zone, no IPv4 in IPv6.
pub(super) fn parse_ip(text: &str) -> Result<IpAddr, Fault> {
    let quoted = go_quoted(text);
    if let Some((address, zone)) = text.split_once('%')
        && !zone.is_empty()
        && address.parse::<Ipv6Addr>().is_ok()
    {
        return fault(format!("IP address {quoted} with zone value is not allowed"));
    }
    let parsed: Result<IpAddr, _> = text.parse();
    match parsed {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            fault(format!("IPv4-mapped IPv6 address {quoted} is not allowed"))
        }
        Ok(address) => Ok(address),
        Err(_) => fault(format!(
            "IP Address {quoted} parse error during conversion from string: ParseAddr({quoted}): {}",
            why_no_ip(text)
        )),
    }
}

/// Why a text is no address, in the words of Go's library.
fn why_no_ip(text: &str) -> String {
    match text.find(['.', ':', '%']).map(|i| text.as_bytes()[i]) {
        Some(b'.') => why_no_ipv4(text),
        Some(b':') => why_no_ipv6(text),
        Some(_) => "missing IPv6 address".to_owned(),
        None => "unable to parse IP".to_owned(),
    }
}

fn at(words: &str, rest: &str) -> String {
    if rest.is_empty() { words.to_owned() } else { format!("{words} (at {})", go_quoted(rest)) }
}

fn why_no_ipv4(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut value, mut fields, mut digits) = (0u32, 0, 0);
    for (i, b) in bytes.iter().enumerate() {
        match b {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return "IPv4 field has octet with leading zero".to_owned();
                }
                value = value * 10 + u32::from(b - b'0');
                digits += 1;
                if value > 255 {
                    return "IPv4 field has value >255".to_owned();
                }
            }
            b'.' => {
                if i == 0 || i == bytes.len() - 1 || bytes[i - 1] == b'.' {
                    return at("IPv4 field must have at least one digit", &text[i..]);
                }
                if fields == 3 {
                    return "IPv4 address too long".to_owned();
                }
                (value, digits, fields) = (0, 0, fields + 1);
            }
            _ => return at("unexpected character", text.get(i..).unwrap_or_default()),
        }
    }
    "IPv4 address too short".to_owned()
}

fn why_no_ipv6(text: &str) -> String {
    let mut rest = match text.split_once('%') {
        Some((_, "")) => return "zone must be a non-empty string".to_owned(),
        Some((address, _)) => address,
        None => text,
    };
    let (mut ellipsis, mut groups) = (false, 0);
    if let Some(after) = rest.strip_prefix("::") {
        (ellipsis, rest) = (true, after);
    }
    while groups < 8 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return at("each group must have 4 or less digits", rest);
        }
        if digits == 0 {
            return at("each colon-separated field must have at least one digit", rest);
        }
        if rest[digits..].starts_with('.') {
            if !ellipsis && groups != 6 {
                return at("embedded IPv4 address must replace the final 2 fields of the address", rest);
            }
            if groups > 6 {
                return at("too many hex fields to fit an embedded IPv4 at the end of the address", rest);
            }
            return why_no_ipv4(rest);
        }
        groups += 1;
        rest = &rest[digits..];
        let Some(after) = rest.strip_prefix(':') else {
            match rest {
                "" => break,
                rest => return at("unexpected character, want colon", rest),
            }
        };
        if after.is_empty() {
            return at("colon must be followed by more characters", rest);
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis {
                return at("multiple :: in address", rest);
            }
            (ellipsis, rest) = (true, after);
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return at("trailing garbage after address", rest);
    }
    match ellipsis {
        true => "the :: must expand to at least one field of zeros".to_owned(),
        false => "address string too short".to_owned(),
    }
}

/// Reads a network.
pub(super) fn parse_cidr(text: &str) -> Result<(IpAddr, u8), Fault> {
    let quoted = go_quoted(text);
    const WHERE: &str = "network address parse error during conversion from string";
    let bad = |why: &str| fault(format!("{WHERE}: {WHERE}: netip.ParsePrefix({quoted}): {why}"));
    let Some((address, bits)) = text.rsplit_once('/') else { return bad("no '/'") };
    let Ok(address) = address.parse::<IpAddr>() else {
        return bad(&format!("ParseAddr({}): {}", go_quoted(address), why_no_ip(address)));
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let digits =
        !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit()) && (bits.len() == 1 || !bits.starts_with('0'));
    if !digits {
        return bad(&format!("bad bits after slash: {}", go_quoted(bits)));
    }
    match bits.parse::<u8>() {
        Ok(bits) if bits <= most => match address {
            IpAddr::V6(inner) if inner.to_ipv4_mapped().is_some() => {
                fault(format!("{WHERE}: IPv4-mapped IPv6 address {quoted} is not allowed"))
            }
            address => Ok((address, bits)),
        },
        _ => bad("prefix length out of range"),
    }
}

/// The address with the bits beyond the prefix cleared.
pub(super) fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(a) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(a) & mask))
        }
        IpAddr::V6(a) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(a) & mask))
        }
    }
}

/// Whether an address is in a network.
pub(super) fn contains(network: (IpAddr, u8), address: IpAddr) -> bool {
    network.0.is_ipv4() == address.is_ipv4() && masked(network.0, network.1) == masked(address, network.1)
}

/// What rules may ask of an address.
pub(super) fn is_of_kind(address: IpAddr, question: &str) -> bool {
    let link_local_unicast = match address {
        IpAddr::V4(a) => a.is_link_local(),
        IpAddr::V6(a) => a.segments()[0] & 0xffc0 == 0xfe80,
    };
    match question {
        "isUnspecified" => address.is_unspecified(),
        "isLoopback" => address.is_loopback(),
        "isLinkLocalMulticast" => match address {
            IpAddr::V4(a) => a.octets()[..3] == [224, 0, 0],
            IpAddr::V6(a) => a.segments()[0] & 0xff0f == 0xff02,
        },
        "isLinkLocalUnicast" => link_local_unicast,
        _ => {
            let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
            !(broadcast
                || address.is_unspecified()
                || address.is_loopback()
                || address.is_multicast()
                || link_local_unicast)
        }
    }
}

/// A URL, taken apart.
#[derive(Debug, Clone)]
pub(super) struct Url {
    pub text: String,
    pub scheme: String,
    /// With its port.
    pub host: String,
    /// As written.
    pub path: String,
    pub query: String,
}

impl Url {
    /// Reads an absolute URL or a path.
    pub(super) fn parse(text: &str) -> Result<Url, Fault> {
        let bad = |why: &str| {
            fault(format!("URL parse error during conversion from string: parse {}: {why}", go_quoted(text)))
        };
        if !formats::is_uri(text) {
            return match text {
                "" => bad("empty url"),
                _ => bad("invalid URI for request"),
            };
        }
        let rest = text.split('#').next().unwrap_or_default();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let colon =
            rest.find(':').filter(|i| rest[..*i].bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)));
        let (scheme, rest) = colon.map_or(("", rest), |i| (&rest[..i], &rest[i + 1..]));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(after) => after.split_at(after.find('/').unwrap_or(after.len())),
            None => ("", rest),
        };
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        // What has a scheme and no slash after it is opaque: it has no path.
        let opaque = !scheme.is_empty() && !rest.starts_with('/');
        Ok(Url {
            text: text.to_owned(),
            scheme: scheme.to_lowercase(),
            host: host.to_owned(),
            path: if opaque { String::new() } else { path.to_owned() },
            query: query.to_owned(),
        })
    }

    pub(super) fn hostname(&self) -> &str {
        match self.host.strip_prefix('[') {
            Some(inner) => inner.split(']').next().unwrap_or_default(),
            None => self.host.split(':').next().unwrap_or_default(),
        }
    }

    pub(super) fn port(&self) -> &str {
        let after = self.host.rfind(']').map_or(self.host.as_str(), |i| &self.host[i..]);
        after.rsplit_once(':').map_or("", |(_, port)| port)
    }

    /// The parameters and their values, in order of name.
    pub(super) fn parameters(&self) -> Vec<(String, Vec<String>)> {
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(key), Some(value)) = (unescaped(key), unescaped(value)) else { continue };
            match all.iter_mut().find(|(name, _)| *name == key) {
                Some((_, values)) => values.push(value),
                None => all.push((key, vec![value])),
            }
        }
        all.sort();
        all
    }
}

/// Percent signs and plus signs read.
fn unescaped(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        out.push(match b {
            b'+' => b' ',
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            b => b,
        });
    }
    String::from_utf8(out).ok()
}

/// A semantic version.
#[derive(Debug, Clone)]
pub(super) struct Semver {
    /// Major, minor, patch.
    pub numbers: [u64; 3],
    pre: Vec<String>,
}

impl Semver {
    /// Reads `1.2.3-rc.1+build`; in the words of the real server's library if it is none.
    pub(super) fn parse(text: &str) -> Result<Semver, Fault> {
        if text.is_empty() {
            return fault("Version string empty");
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts.as_slice() else { return fault("No Major.Minor.Patch elements found") };
        let (rest, build) = rest.split_once('+').map_or((*rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, pre) = rest.split_once('-').map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
        let number = |name: &str, text: &str| -> Result<u64, Fault> {
            if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
                return match name {
                    "" if text.is_empty() => fault("Invalid character(s) found in patch number \"\""),
                    _ => fault(format!("Invalid character(s) found in {name} number {}", go_quoted(text))),
                };
            }
            if text.len() > 1 && text.starts_with('0') {
                let upper = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
                return fault(format!("{upper} number must not contain leading zeroes {}", go_quoted(text)));
            }
            text.parse()
                .or_else(|_| fault(format!("strconv.ParseUint: parsing {}: value out of range", go_quoted(text))))
        };
        let numbers = [number("major", major)?, number("minor", minor)?, number("patch", patch)?];
        let valid = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let pre: Vec<String> = pre.map(|pre| pre.split('.').map(str::to_owned).collect()).unwrap_or_default();
        for part in &pre {
            if part.is_empty() {
                return fault("Prerelease is empty");
            }
            if !valid(part) {
                return fault(format!("Invalid character(s) found in prerelease {}", go_quoted(part)));
            }
            if part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()) {
                return fault(format!(
                    "Numeric PreRelease version must not contain leading zeroes {}",
                    go_quoted(part)
                ));
            }
        }
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return fault("Build meta data is empty");
            }
            if !valid(part) {
                return fault(format!("Invalid character(s) found in build meta data {}", go_quoted(part)));
            }
        }
        Ok(Semver { numbers, pre })
    }

    /// As [`Semver::parse`], after a leading `v` and zeros are dropped and missing numbers filled in.
    pub(super) fn parse_tolerant(text: &str) -> Result<Semver, Fault> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
        for part in parts.iter_mut().filter(|part| part.len() > 1) {
            let trimmed = part.trim_start_matches('0');
            *part = match trimmed.starts_with(|c: char| c.is_ascii_digit()) {
                true => trimmed.to_owned(),
                false => format!("0{trimmed}"),
            };
        }
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return fault("short version cannot contain PreRelease/Build meta data");
            }
            parts.resize(3, "0".to_owned());
        }
        Semver::parse(&parts.join("."))
    }

    pub(super) fn order(&self, other: &Semver) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        if numbers != Ordering::Equal || (self.pre.is_empty() && other.pre.is_empty()) {
            return numbers;
        }
        match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, _) => return Ordering::Greater,
            (_, true) => return Ordering::Less,
            _ => {}
        }
        for (a, b) in self.pre.iter().zip(&other.pre) {
            let order = match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        self.pre.len().cmp(&other.pre.len())
    }
}

/// A format rules can name.
#[derive(Debug)]
pub(super) struct NamedFormat {
    pub name: &'static str,
    /// What is wrong with a text; nothing if it has the format.
    pub check: fn(&str) -> Vec<String>,
    /// How long a pattern it costs as much as.
    pub pattern: u64,
}

fn one(fits: bool, words: &str) -> Vec<String> {
    if fits { Vec::new() } else { vec![words.to_owned()] }
}

/// The formats rules can name.
pub(super) static FORMATS: [NamedFormat; 13] = [
    NamedFormat { name: "dns1123Label", check: names::dns_label, pattern: 30 },
    NamedFormat { name: "dns1123Subdomain", check: names::dns_subdomain, pattern: 60 },
    NamedFormat { name: "dns1035Label", check: names::dns1035_label, pattern: 30 },
    NamedFormat { name: "qualifiedName", check: names::label_key, pattern: 60 },
    NamedFormat {
        name: "dns1123LabelPrefix",
        check: |text| names::dns_label(&names::mask_trailing_dash(text)),
        pattern: 30,
    },
    NamedFormat {
        name: "dns1123SubdomainPrefix",
        check: |text| names::dns_subdomain(&names::mask_trailing_dash(text)),
        pattern: 60,
    },
    NamedFormat {
        name: "dns1035LabelPrefix",
        check: |text| names::dns1035_label(&names::mask_trailing_dash(text)),
        pattern: 30,
    },
    NamedFormat { name: "labelValue", check: names::label_value, pattern: 40 },
    NamedFormat {
        name: "uri",
        check: |text| match text {
            "" => vec!["parse \"\": empty url".to_owned()],
            text => one(formats::is_uri(text), &format!("parse {}: invalid URI for request", go_quoted(text))),
        },
        pattern: 1103,
    },
    NamedFormat {
        name: "uuid",
        check: |text| one(formats::is_uuid(text), "does not match the UUID format"),
        pattern: 82,
    },
    NamedFormat { name: "byte", check: |text| one(formats::is_base64(text), "invalid base64"), pattern: 84 },
    NamedFormat { name: "date", check: |text| one(formats::is_date(text), "invalid date"), pattern: 78 },
    NamedFormat { name: "datetime", check: |text| one(formats::is_date_time(text), "invalid datetime"), pattern: 78 },
];
