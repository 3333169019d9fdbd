//! The string formats a custom resource's schema may demand, as the OpenAPI library of the real server checks them.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::LazyLock,
};

use regex::Regex;

use crate::value::Text;

/// A format the server knows. Others are ignored.
#[derive(Debug, Clone)]
pub struct Format {
    /// As the schema spells it: `date-time`.
    pub name: Text,
    fits: fn(&str) -> bool,
}

impl Format {
    /// The format of this name, if the server knows it. Dashes in the name do not matter.
    pub fn named(name: &Text) -> Option<Format> {
        let fits = match name.replace('-', "").as_str() {
            "bsonobjectid" => |s: &str| s.len() == 24 && s.bytes().all(|b| b.is_ascii_hexdigit()),
            "uri" => is_uri,
            "email" => is_email,
            "hostname" => is_hostname,
            "ipv4" => |s: &str| s.contains('.') && is_sloppy_ip(s),
            "ipv6" => |s: &str| s.contains(':') && s.parse::<Ipv6Addr>().is_ok(),
            "cidr" => is_sloppy_cidr,
            "mac" => is_mac,
            "uuid" => is_uuid,
            "uuid3" => |s: &str| UUID3.is_match(s),
            "uuid4" => |s: &str| UUID4.is_match(s),
            "uuid5" => |s: &str| UUID5.is_match(s),
            "isbn" => |s: &str| is_isbn10(s) || is_isbn13(s),
            "isbn10" => is_isbn10,
            "isbn13" => is_isbn13,
            "creditcard" => is_credit_card,
            "ssn" => |s: &str| s.len() == 11 && SSN.is_match(s),
            "hexcolor" => |s: &str| HEX_COLOUR.is_match(s),
            "rgbcolor" => |s: &str| RGB_COLOUR.is_match(s),
            "byte" => is_base64,
            "password" => |_: &str| true,
            "date" => is_date,
            "duration" => is_duration,
            "datetime" => is_date_time,
            "k8sshortname" => |s: &str| s.len() <= 63 && crate::names::dns_label(s).is_empty(),
            "k8slongname" => |s: &str| s.len() <= 253 && crate::names::dns_subdomain(s).is_empty(),
            _ => return None,
        };
        Some(Format { name: name.clone(), fits })
    }

    /// Whether the text has this format.
    pub fn fits(&self, text: &str) -> bool {
        (self.fits)(text)
    }
}

fn regex(pattern: &str) -> Regex {
    #[allow(clippy::unwrap_used)] // the patterns below are constants, and a test uses each
    Regex::new(pattern).unwrap()
}

macro_rules! patterns {
    ($($name:ident = $pattern:expr;)*) => { $(static $name: LazyLock<Regex> = LazyLock::new(|| regex($pattern));)* };
}
patterns! {
    UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    SSN = "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    HEX_COLOUR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOUR = concat!(
        r"^rgb\([ \t\n\f\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \t\n\f\r]*,",
        r"[ \t\n\f\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \t\n\f\r]*,",
        r"[ \t\n\f\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \t\n\f\r]*\)$"
    );
    BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
    CARD = concat!(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}",
        "|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
    );
    HOSTNAME = concat!(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)",
        r"|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
    );
    TIME = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    LOOSE_DURATION = r"([0-9]+)[ \t\n\f\r]*([A-Za-zµ]+)";
    EMAIL_PLAIN = r#"^(?:[^<>"]*<)?("(?:[^"\\\r\n]|\\.)*"|[^\s<>()\[\],;:@".\\]+(?:\.[^\s<>()\[\],;:@".\\]+)*)@([^\s<>()\[\],;:@"\\]+|\[[^\]\[]*\])>?$"#;
}

fn is_hostname(s: &str) -> bool {
    s.len() <= 255 && s.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(s)
}

/// Go's `url.ParseRequestURI`, in what it refuses: relative references, control characters, bad escapes, bad ports.
pub(super) fn is_uri(s: &str) -> bool {
    if s.is_empty() || s.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if s == "*" {
        return true;
    }
    let (scheme, rest) = match s.find(':') {
        Some(0) => return false,
        Some(i) if s[..i].bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')) => {
            match s.as_bytes()[0].is_ascii_alphabetic() {
                true => (&s[..i], &s[i + 1..]),
                false => return false,
            }
        }
        _ => ("", s),
    };
    let path = rest.split('?').next().unwrap_or_default();
    if !path.starts_with('/') {
        // An opaque URI such as `mailto:x` needs a scheme.
        return !scheme.is_empty();
    }
    let (authority, path) = match path.strip_prefix("//") {
        Some(after) if !scheme.is_empty() || !path.starts_with("///") => {
            after.split_at(after.find('/').unwrap_or(after.len()))
        }
        _ => ("", path),
    };
    is_escaped(path) && is_authority(authority)
}

fn is_authority(authority: &str) -> bool {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            if !user.chars().all(plain) || !is_escaped(user) {
                return false;
            }
            host
        }
        None => authority,
    };
    if let Some(inner) = host.strip_prefix('[') {
        let Some((_, port)) = inner.rsplit_once(']') else { return false };
        return is_port(port);
    }
    let (name, port) = match host.rfind(':') {
        Some(i) => host.split_at(i),
        None => (host, ""),
    };
    is_port(port) && is_escaped(name) && !name.chars().any(|c| c.is_ascii() && " \"<>\\^`{|}#".contains(c))
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

fn is_escaped(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(i, b)| {
        *b != b'%' || (bytes.len() > i + 2 && bytes[i + 1].is_ascii_hexdigit() && bytes[i + 2].is_ascii_hexdigit())
    })
}

fn is_email(s: &str) -> bool {
    EMAIL_PLAIN.is_match(s.trim()) && s.contains('<') == s.trim_end().ends_with('>')
}

/// An address in which numbers may have leading zeros, as Go took them before 1.17.
fn is_sloppy_ip(s: &str) -> bool {
    if s.contains(':') {
        return s.parse::<IpAddr>().is_ok();
    }
    let mut parts = 0;
    let octet = |part: &str| {
        let digits = part.trim_start_matches('0');
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && (digits.is_empty() || digits.parse::<u8>().is_ok())
    };
    s.split('.').all(|part| {
        parts += 1;
        octet(part)
    }) && parts == 4
}

fn is_sloppy_cidr(s: &str) -> bool {
    let Some((address, bits)) = s.split_once('/') else { return false };
    let most = if address.contains(':') { 128 } else { 32 };
    let number = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
    is_sloppy_ip(address)
        && number
        && bits.trim_start_matches('0').parse::<u32>().unwrap_or(0) <= most
        && bits.len() < 8
}

/// 6, 8 or 20 bytes, two or four hexadecimal digits between separators.
fn is_mac(s: &str) -> bool {
    let sizes = [6, 8, 20];
    let hex = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
    for separator in [':', '-'] {
        if s.contains(separator) {
            let parts: Vec<&str> = s.split(separator).collect();
            return sizes.contains(&parts.len()) && parts.iter().all(|part| hex(part, 2));
        }
    }
    let parts: Vec<&str> = s.split('.').collect();
    parts.len() > 1 && sizes.contains(&(parts.len() * 2)) && parts.iter().all(|part| hex(part, 4))
}

fn is_isbn10(s: &str) -> bool {
    let digits = without_separators(s);
    if digits.len() != 10 {
        return false;
    }
    let mut sum = 0;
    for (i, b) in digits.iter().enumerate() {
        sum += (i + 1)
            * match b {
                b'0'..=b'9' => usize::from(b - b'0'),
                b'X' if i == 9 => 10,
                _ => return false,
            };
    }
    sum % 11 == 0
}

fn is_isbn13(s: &str) -> bool {
    let digits = without_separators(s);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: usize =
        digits[..12].iter().enumerate().map(|(i, b)| usize::from(b - b'0') * if i % 2 == 0 { 1 } else { 3 }).sum();
    usize::from(digits[12] - b'0') == (10 - sum % 10) % 10
}

fn without_separators(s: &str) -> Vec<u8> {
    s.bytes().filter(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0c | b'-')).collect()
}

fn is_credit_card(s: &str) -> bool {
    let digits: String = s.chars().filter(char::is_ascii_digit).collect();
    let double = |d: u32| if d > 4 { d * 2 - 9 } else { d * 2 };
    let digit = |(i, b): (usize, u8)| {
        let d = u32::from(b - b'0');
        if i % 2 == 1 { double(d) } else { d }
    };
    CARD.is_match(&digits) && digits.bytes().rev().enumerate().map(digit).sum::<u32>() % 10 == 0
}

/// `2006-01-02`
pub(super) fn is_date(s: &str) -> bool {
    let bytes = s.as_bytes();
    let shape = bytes.len() == 10
        && bytes.iter().enumerate().all(|(i, b)| if i == 4 || i == 7 { *b == b'-' } else { b.is_ascii_digit() });
    let number = |range: std::ops::Range<usize>| s.get(range).and_then(|part| part.parse::<i16>().ok()).unwrap_or(-1);
    shape && jiff::civil::Date::new(number(0..4), number(5..7) as i8, number(8..10) as i8).is_ok()
}

pub(super) fn is_date_time(s: &str) -> bool {
    let lower = s.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(found) = TIME.captures(time).filter(|_| is_date(date)) else { return false };
    let part = |i: usize| found.get(i).map_or("", |m| m.as_str());
    part(1) <= "23" && part(2) <= "59" && part(3) <= "59"
}

pub(super) fn is_uuid(s: &str) -> bool {
    UUID.is_match(s)
}

pub(super) fn is_base64(s: &str) -> bool {
    BASE64.is_match(s)
}

fn is_duration(s: &str) -> bool {
    duration(s).is_some()
}

/// The nanoseconds of a Go duration, or of numbers with units in words (`3 days`).
pub(super) fn duration(s: &str) -> Option<i64> {
    if let Some(nanos) = go_duration(s) {
        return Some(nanos);
    }
    const UNITS: [(&[&str], &str, i64); 8] = [
        (&["ns"], "nano", 1),
        (&["us", "µs"], "micro", 1_000),
        (&["ms"], "milli", 1_000_000),
        (&["s"], "sec", 1_000_000_000),
        (&["m"], "min", 60_000_000_000),
        (&["h", "hr"], "hour", 3_600_000_000_000),
        (&["d"], "day", 86_400_000_000_000),
        (&["w", "wk"], "week", 604_800_000_000_000),
    ];
    let mut total = None;
    for found in LOOSE_DURATION.captures_iter(s) {
        let count: i64 = found[1].parse().ok()?;
        let unit = found[2].to_lowercase();
        for (short, long, size) in UNITS {
            if short.contains(&unit.as_str()) || unit.starts_with(long) {
                total = Some(total.unwrap_or(0i64).wrapping_add(count.wrapping_mul(size)));
            }
        }
    }
    total
}

/// The nanoseconds of a Go duration.
pub(super) fn go_duration(s: &str) -> Option<i64> {
    let (negative, mut rest) = match s.as_bytes().first()? {
        b'-' => (true, &s[1..]),
        b'+' => (false, &s[1..]),
        _ => (false, s),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (whole, after) = rest.split_at(end);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let size: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part: f64 = format!("0.{fraction}0").parse().ok()?;
        total += whole.checked_mul(size)? + (part * size as f64) as i128;
        rest = after;
    }
    let total = if negative { -total } else { total };
    i64::try_from(total).ok()
}
