//! Which cluster IPs and node ports the Services of a cluster hold, and the choice of the next one.
//!
//! The store owns one [`Addresses`] and tells it of every Service that is written or gone; preparing a Service only
//! looks, so a dry run or a refused write leaves nothing behind.

use std::{collections::BTreeSet, net::Ipv4Addr};

use crate::value::Value;

/// The first address of the Services' range, 10.96.0.0/16.
const RANGE: u32 = u32::from_be_bytes([10, 96, 0, 0]);
const SIZE: u32 = 1 << 16;
/// Chosen addresses start here; those below are left to people who name one (the real server does the same).
const RESERVED_IPS: u32 = 256;
const PORTS: std::ops::RangeInclusive<u16> = 30000..=32767;
const RESERVED_PORTS: u16 = 86;

/// The cluster IPs and node ports in use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Addresses {
    ips: BTreeSet<u32>,
    ports: BTreeSet<u16>,
}

/// Why an address named by a client cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody else has it.
    Taken,
    /// It is not in the range.
    OutOfRange,
}

impl Addresses {
    /// Notes what a stored Service holds.
    pub fn take(&mut self, service: &Value) {
        self.ips.extend(ips(service));
        self.ports.extend(ports(service));
    }

    /// Frees what a Service held. On an update: first release the old one, then take the new one.
    pub fn release(&mut self, service: &Value) {
        ips(service).for_each(|ip| _ = self.ips.remove(&ip));
        ports(service).for_each(|port| _ = self.ports.remove(&port));
    }

    /// Whether a client may have this address.
    pub fn ask_ip(&self, ip: Ipv4Addr) -> Result<(), Refusal> {
        let bits = u32::from(ip);
        if !(RANGE + 1..RANGE + SIZE - 1).contains(&bits) {
            return Err(Refusal::OutOfRange);
        }
        if self.ips.contains(&bits) { Err(Refusal::Taken) } else { Ok(()) }
    }

    /// Whether a client may have this node port.
    pub fn ask_port(&self, port: i64) -> Result<(), Refusal> {
        let port = u16::try_from(port).ok().filter(|port| PORTS.contains(port)).ok_or(Refusal::OutOfRange)?;
        if self.ports.contains(&port) { Err(Refusal::Taken) } else { Ok(()) }
    }

    /// A free address: the first at or after the one the seed points at.
    pub fn choose_ip(&self, seed: u64) -> Option<Ipv4Addr> {
        let (first, count) = (RANGE + RESERVED_IPS, SIZE - RESERVED_IPS - 1);
        let start = (seed % u64::from(count)) as u32;
        let chosen = (0..count).map(|i| first + (start + i) % count).chain(RANGE + 1..first);
        chosen.into_iter().find(|ip| !self.ips.contains(ip)).map(Ipv4Addr::from)
    }

    /// A free node port that is not in `also_taken`: the first at or after the one the seed points at.
    pub fn choose_port(&self, seed: u64, also_taken: &[i64]) -> Option<u16> {
        let first = PORTS.start() + RESERVED_PORTS;
        let count = PORTS.end() - first + 1;
        let start = (seed % u64::from(count)) as u16;
        let chosen = (0..count).map(|i| first + (start + i) % count).chain(*PORTS.start()..first);
        chosen.into_iter().find(|port| !self.ports.contains(port) && !also_taken.contains(&i64::from(*port)))
    }
}

fn ips(service: &Value) -> impl Iterator<Item = u32> {
    let ips = service.list_at(&["spec", "clusterIPs"]).iter();
    ips.filter_map(|ip| ip.as_str()?.parse::<Ipv4Addr>().ok()).map(u32::from)
}

fn ports(service: &Value) -> impl Iterator<Item = u16> {
    let ports = service.list_at(&["spec", "ports"]).iter().filter_map(|port| port.int_at(&["nodePort"]));
    ports.chain(service.int_at(&["spec", "healthCheckNodePort"])).filter_map(|port| u16::try_from(port).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn a_choice_is_free_and_follows_the_seed() {
        let mut addresses = Addresses::default();
        assert_eq!(addresses.choose_ip(0), Some(Ipv4Addr::new(10, 96, 1, 0)));
        addresses.take(&value!({"spec": {"clusterIPs": ["10.96.1.0"], "ports": [{"nodePort": 30086}]}}));
        assert_eq!(addresses.choose_ip(0), Some(Ipv4Addr::new(10, 96, 1, 1)));
        assert_eq!(addresses.choose_port(0, &[30087]), Some(30088));
        assert_eq!(addresses.ask_ip(Ipv4Addr::new(10, 96, 1, 0)), Err(Refusal::Taken));
        assert_eq!(addresses.ask_ip(Ipv4Addr::new(10, 97, 0, 1)), Err(Refusal::OutOfRange));
        assert_eq!(addresses.ask_port(30086), Err(Refusal::Taken));
        assert_eq!(addresses.ask_port(80), Err(Refusal::OutOfRange));
    }

    #[test]
    fn released_addresses_are_free_again() {
        let service = value!({"spec": {"clusterIPs": ["10.96.1.0"], "ports": [{"nodePort": 30086}]}});
        let mut addresses = Addresses::default();
        addresses.take(&service);
        addresses.release(&service);
        assert_eq!(addresses, Addresses::default());
    }
}
