//! Rules for IP addresses, CIDR blocks and domain names.
//!
//! Like the real server, this reads IPv4 addresses with leading zeros, for the sake of objects written long ago.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::field::Field;
use crate::{names, value::Value};

/// An address as Go's lax parser reads it.
pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let parts: Vec<u8> = text.split('.').map(decimal).collect::<Option<_>>()?;
    let bytes: [u8; 4] = parts.try_into().ok()?;
    Some(IpAddr::V4(Ipv4Addr::from(bytes)))
}

fn decimal(digits: &str) -> Option<u8> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// A block of addresses: its first address and how many leading bits are fixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Block {
    network: u128,
    width: u8,
    /// The length of the prefix.
    pub prefix: u8,
}

/// A CIDR block as Go's lax parser reads it.
pub(super) fn parse_block(text: &str) -> Option<Block> {
    let (address, prefix) = text.split_once('/')?;
    let (bits, width) = match parse_ip(address)? {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)), 32),
        IpAddr::V6(ip) => (u128::from(ip), 128),
    };
    let prefix = decimal(prefix).filter(|prefix| *prefix <= width)?;
    let free = u32::from(width - prefix);
    let network = bits.checked_shr(free).map_or(0, |fixed| fixed.checked_shl(free).unwrap_or(0));
    Some(Block { network, width, prefix })
}

impl Block {
    /// Whether every address of `other` is in this block and some are not.
    pub(super) fn strictly_contains(&self, other: &Block) -> bool {
        let free = u32::from(self.width - self.prefix);
        self.width == other.width
            && self.prefix < other.prefix
            && self.network.checked_shr(free) == other.network.checked_shr(free)
    }
}

/// An address, unless it was there already.
pub(super) fn ip(at: &Field, before: &[Value]) {
    if !before.contains(at.value) && parse_ip(at.text()).is_none() {
        at.refuse(at.text(), "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
}

/// A CIDR block, unless it was there already.
pub(super) fn cidr(at: &Field, before: &[Value]) {
    if !before.contains(at.value) {
        cidr_text(at, at.text());
    }
}

/// This text must be a CIDR block.
pub(super) fn cidr_text(at: &Field, text: &str) {
    if parse_block(text).is_none() {
        at.refuse(text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    }
}

/// An address that traffic can be sent to.
pub(super) fn endpoint_ip(at: &Field) {
    let Some(ip) = parse_ip(at.text()) else {
        at.refuse(at.text(), "must be a valid IP address");
        return;
    };
    let (link_local, link_local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if ip.is_unspecified() {
        at.refuse(at.text(), format!("may not be unspecified ({})", at.text()));
    }
    if ip.is_loopback() {
        at.refuse(at.text(), "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    if link_local {
        at.refuse(at.text(), "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if link_local_multicast {
        at.refuse(at.text(), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// A domain name of at least two labels.
pub(super) fn qualified_domain(at: &Field) {
    let name = at.text().strip_suffix('.').unwrap_or(at.text());
    if at.text().is_empty() {
        return at.required("");
    }
    let problems = names::dns_subdomain(name);
    if !problems.is_empty() {
        return at.refuse(name, problems.join(","));
    }
    if !name.contains('.') {
        return at.refuse(name, "should be a domain with at least two segments separated by dots");
    }
    for label in name.split('.') {
        let problems = names::dns_label(label);
        if !problems.is_empty() {
            return at.refuse(label, problems.join(","));
        }
    }
}

/// `example.com/some/path`
pub(super) fn domain_prefixed_path(at: &Field) {
    let whole = at.text();
    if whole.is_empty() {
        return at.required("");
    }
    let Some((host, path)) = whole.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty()) else {
        return at.refuse(whole, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    };
    names::dns_subdomain(host).into_iter().for_each(|message| at.refuse(host, message));
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b);
    if !path.bytes().all(allowed) {
        at.refuse(path, r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        let rows = [
            ("10.0.0.1", Some("10.0.0.1")),
            ("010.000.0.01", Some("10.0.0.1")),
            ("10.0.0", None),
            ("10.0.0.256", None),
            ("10.0.0.+1", None),
            ("2001:db8::1", Some("2001:db8::1")),
            ("fe80::1%eth0", None),
            ("", None),
        ];
        for (text, ip) in rows {
            assert_eq!(parse_ip(text).map(|ip| ip.to_string()).as_deref(), ip, "{text}");
        }
    }

    #[test]
    fn a_block_contains_smaller_blocks_of_its_kind() {
        let rows = [
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.0.0.0/8", "11.0.0.0/16", false),
            ("10.0.0.0/8", "10.0.0.0/8", false),
            ("0.0.0.0/0", "11.0.0.0/16", true),
            ("::/0", "11.0.0.0/16", false),
            ("10.1.2.3/8", "10.1.0.0/16", true),
        ];
        for (outer, inner, contained) in rows {
            let (outer, inner) = (parse_block(outer).unwrap(), parse_block(inner).unwrap());
            assert_eq!(outer.strictly_contains(&inner), contained, "{outer:?} {inner:?}");
        }
        assert_eq!(parse_block("10.0.0.0/33"), None);
        assert_eq!(parse_block("10.0.0.0"), None);
    }
}
