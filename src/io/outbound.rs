//! Where metrics may be measured: whoever writes an AnalysisTemplate names the host, and must not reach what only this
//! machine or its node can.
//!
//! An address is judged after its name was resolved, and the connection goes to that very address: a name that leads
//! elsewhere a moment later leads nowhere new. Never resolves anything itself.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

/// Addresses at which clouds give out what a machine may do, outside of the link-local ranges.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Where requests may go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outbound {
    /// What the operator lets through in any case.
    pub allow: Vec<Destination>,
    /// What else is refused.
    pub deny: Vec<Destination>,
    /// Where the API server of the cluster is.
    pub api_server: Vec<SocketAddr>,
    /// Whether everything is let through: on a machine whose only user is the one who writes the metrics.
    pub anywhere: bool,
}

/// Hosts or addresses, and at which port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    place: Place,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Any,
    /// A name as a metric writes it.
    Name(String),
    /// All names that end so; it begins with a dot.
    Below(String),
    /// Addresses: so many leading bits are these.
    Range(IpAddr, u8),
}

/// Why a request is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    host: String,
    port: u16,
    address: IpAddr,
    why: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { host, port, address, why } = self;
        let at = if address.to_string() == *host { String::new() } else { format!(" ({address})") };
        write!(
            f,
            "metrics are not measured at {host}:{port}{at}: {why}; the operator can allow it: tidegate run --metrics-allow {host}:{port}"
        )
    }
}

impl Outbound {
    /// Everything may be reached.
    pub fn anywhere() -> Outbound {
        Outbound { anywhere: true, ..Outbound::default() }
    }

    /// Whether a host that resolves to this address may be asked at a port.
    pub fn check(&self, host: &str, address: IpAddr, port: u16) -> Result<(), Refusal> {
        let canonical = canonical(address);
        let named = |all: &[Destination]| all.iter().any(|one| one.covers(host, canonical, port));
        if self.anywhere || named(&self.allow) {
            return Ok(());
        }
        let why = if named(&self.deny) {
            Some("the operator does not want it")
        } else if self.api_server.contains(&SocketAddr::new(canonical, port)) {
            Some("it is the API server of the cluster")
        } else {
            reserved(canonical)
        };
        why.map_or(Ok(()), |why| Err(Refusal { host: host.to_owned(), port, address: canonical, why }))
    }
}

/// The host and port of an address that the operator names elsewhere, such as that of the Prometheus for all metrics.
pub fn named(url: Option<&str>) -> Option<Destination> {
    let uri: http::Uri = url?.parse().ok()?;
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    let host = uri.host()?;
    let written = if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    written.parse().ok()
}

impl Destination {
    fn covers(&self, host: &str, address: IpAddr, port: u16) -> bool {
        let host = host.trim_end_matches('.');
        let is_place = match &self.place {
            Place::Any => true,
            Place::Name(name) => host.eq_ignore_ascii_case(name),
            Place::Below(ending) => {
                let start = host.len().checked_sub(ending.len()).filter(|start| *start > 0);
                start.and_then(|start| host.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
            }
            Place::Range(first, bits) => is_in(address, *first, *bits),
        };
        is_place && self.port.is_none_or(|own| own == port)
    }
}

impl FromStr for Destination {
    type Err = &'static str;

    /// Reads `NAME`, `.ENDING`, `ADDRESS`, `ADDRESS/BITS` or `*`, each with or without `:PORT`; an IPv6 address with a port
    /// stands in brackets.
    fn from_str(text: &str) -> Result<Destination, &'static str> {
        let wrong = "give a name, an ending such as .example, an address, a range such as 10.0.0.0/8, or *; with :PORT for one port";
        let range = |text: &str| -> Option<Place> {
            let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
            let address: IpAddr = address.parse().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
            (bits <= most).then_some(Place::Range(address, bits))
        };
        if let Some(place) = range(text) {
            return Ok(Destination { place, port: None });
        }
        let (place, port) = match text.rsplit_once(':') {
            Some((place, port)) => (place, Some(port.parse().map_err(|_| wrong)?)),
            None => (text, None),
        };
        let inner = place.strip_prefix('[').and_then(|place| place.strip_suffix(']')).unwrap_or(place);
        if let Some(place) = range(inner) {
            return Ok(Destination { place, port });
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let place = match place.strip_prefix('.') {
            _ if place == "*" => Place::Any,
            Some(rest) if !rest.is_empty() && rest.chars().all(plain) => Place::Below(place.to_owned()),
            None if !place.is_empty() && place.chars().all(plain) => {
                Place::Name(place.trim_end_matches('.').to_owned())
            }
            Some(_) | None => return Err(wrong),
        };
        Ok(Destination { place, port })
    }
}

/// An address as it is meant: IPv4 in IPv6 is IPv4.
fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    let segments = six.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Mapped, translated (RFC 6052), and what is left of `::a.b.c.d`.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0, 0, 0, 0, 0, 0, high, low] if high > 0 => embedded(high, low),
        // 6to4 (RFC 3056).
        [0x2002, high, low, ..] => embedded(high, low),
        _ => address,
    }
}

/// Why nobody but this machine, its node or its network has business at an address; nothing if it is an ordinary one.
/// Private ranges are ordinary: that is where Prometheus is.
fn reserved(address: IpAddr) -> Option<&'static str> {
    if METADATA.contains(&address) {
        return Some("it is a metadata service of a cloud");
    }
    let (is_link_local, is_odd) = match address {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[0] == 0 || four.is_multicast() || four.is_broadcast()),
        IpAddr::V6(six) => (six.is_unicast_link_local(), six.is_multicast()),
    };
    if address.is_loopback() || address.is_unspecified() {
        return Some("it is the machine of the engine itself");
    }
    if is_link_local {
        return Some("it is link-local, where metadata services of clouds are");
    }
    is_odd.then_some("it is no address of one host")
}

fn is_in(address: IpAddr, first: IpAddr, bits: u8) -> bool {
    let (address, first, most) = match (address, first) {
        (IpAddr::V4(address), IpAddr::V4(first)) => (u128::from(address.to_bits()), u128::from(first.to_bits()), 32),
        (IpAddr::V6(address), IpAddr::V6(first)) => (address.to_bits(), first.to_bits(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    let rest = most - u32::from(bits);
    address.checked_shr(rest).unwrap_or_default() == first.checked_shr(rest).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Vec<Destination> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn sr18_only_ordinary_addresses_are_reached_by_default() {
        let policy = Outbound { api_server: vec!["10.96.0.1:443".parse().unwrap()], ..Outbound::default() };
        for (address, port, is_reached) in [
            ("10.1.2.3", 9090, true),
            ("192.168.1.9", 80, true),
            ("172.16.0.1", 443, true),
            ("fd12:3456::1", 9090, true),
            ("93.184.216.34", 443, true),
            ("2606:2800::1", 443, true),
            ("127.0.0.1", 8090, false),
            ("127.9.9.9", 80, false),
            ("::1", 80, false),
            ("0.0.0.0", 80, false),
            ("0.1.2.3", 80, false),
            ("::", 80, false),
            ("169.254.169.254", 80, false),
            ("169.254.170.2", 80, false),
            ("fe80::1", 80, false),
            ("fd00:ec2::254", 80, false),
            ("100.100.100.200", 80, false),
            ("168.63.129.16", 80, false),
            ("::ffff:127.0.0.1", 80, false),
            ("::ffff:169.254.169.254", 80, false),
            ("::127.0.0.1", 80, false),
            ("64:ff9b::a9fe:a9fe", 80, false),
            ("2002:7f00:1::", 80, false),
            ("224.0.0.1", 80, false),
            ("255.255.255.255", 80, false),
            ("ff02::1", 80, false),
            ("10.96.0.1", 443, false),
            ("::ffff:10.96.0.1", 443, false),
            ("10.96.0.1", 9090, true),
        ] {
            let answer = policy.check("name.example", address.parse().unwrap(), port);
            assert_eq!(answer.is_ok(), is_reached, "{address}:{port} {answer:?}");
        }
        let refusal = policy.check("localhost", "127.0.0.1".parse().unwrap(), 9090).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "metrics are not measured at localhost:9090 (127.0.0.1): it is the machine of the engine itself; the operator can \
             allow it: tidegate run --metrics-allow localhost:9090"
        );
        assert!(Outbound::anywhere().check("x", "127.0.0.1".parse().unwrap(), 1).is_ok());
    }

    #[test]
    fn sr18_the_operator_has_the_last_word() {
        let policy = Outbound {
            allow: list(&["127.0.0.1:9090", "localhost:8005", "prometheus.monitoring", "[::1]:80", "fd00:ec2::/32"]),
            deny: list(&["10.0.0.0/8", ".internal", "*:22"]),
            ..Outbound::default()
        };
        for (host, address, port, is_reached) in [
            ("127.0.0.1", "127.0.0.1", 9090, true),
            ("any.example", "127.0.0.1", 9090, true),
            ("127.0.0.1", "127.0.0.1", 9091, false),
            ("localhost", "127.0.0.1", 8005, true),
            ("LOCALHOST.", "127.0.0.1", 8005, true),
            ("localhost.evil.example", "127.0.0.1", 8005, false),
            ("prometheus.monitoring", "10.1.2.3", 9090, true),
            ("::1", "::1", 80, true),
            ("::1", "::1", 81, false),
            ("x", "fd00:ec2::254", 80, true),
            ("x", "10.1.2.3", 9090, false),
            ("x", "::ffff:10.1.2.3", 9090, false),
            ("x", "11.1.2.3", 9090, true),
            ("vault.internal", "11.1.2.3", 443, false),
            ("internal", "11.1.2.3", 443, true),
            ("x.internal.example", "11.1.2.3", 443, true),
            ("x", "11.1.2.3", 22, false),
        ] {
            let answer = policy.check(host, address.parse().unwrap(), port);
            assert_eq!(answer.is_ok(), is_reached, "{host} {address}:{port} {answer:?}");
        }
        for wrong in ["", ":80", "a:b", "10.0.0.0/33", "http://x", "a/b", ".", "[::1", "a b", "x:99999"] {
            assert!(wrong.parse::<Destination>().is_err(), "{wrong}");
        }
    }
}
