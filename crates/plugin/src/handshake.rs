//! The first line that a plugin prints: `1|1|unix|/tmp/plugin1234567|netrpc|`.
//!
//! The texts of errors are go-plugin's, as far as they say something; what they quote is made printable.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use crate::output::printable;

/// Bytes that the line may have.
pub const LINE_LIMIT: usize = 4096;

/// Where a plugin listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port of this machine, on Windows.
    Tcp(SocketAddr),
}

/// Why a line is no handshake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// Something else.
    #[error("Unrecognized remote plugin message: {0}")]
    Unrecognized(String),
    /// Another go-plugin.
    #[error("incompatible core API version with plugin. Plugin version: {0}, Core version: 1")]
    Core(String),
    /// Another protocol of Argo Rollouts.
    #[error("incompatible API version with plugin. Plugin version: {0}, Client versions: [1]")]
    Version(String),
    /// Neither `unix` nor `tcp`.
    #[error("Unknown address type: {0}")]
    Network(String),
    /// A relative path, or an address of another machine.
    #[error(
        "the plugin listens on {0}, where it must not: an absolute path or a port of the loopback address is needed"
    )]
    Address(String),
    /// gRPC.
    #[error("unsupported plugin protocol \"{0}\". Supported: [netrpc]")]
    Protocol(String),
    /// TLS, which was not asked for.
    #[error("the plugin wants TLS, which Argo Rollouts' plugins do without")]
    Tls,
}

/// Reads the line.
pub fn parse(line: &str) -> Result<Address, HandshakeError> {
    let line = line.trim();
    let parts: Vec<&str> = line.split('|').collect();
    let [core, version, network, address, rest @ ..] = parts.as_slice() else {
        return Err(HandshakeError::Unrecognized(printable(line)));
    };
    if *core != "1" {
        return Err(HandshakeError::Core(printable(core)));
    }
    if *version != "1" {
        return Err(HandshakeError::Version(printable(version)));
    }
    let protocol = rest.first().copied().unwrap_or("netrpc");
    if protocol != "netrpc" {
        return Err(HandshakeError::Protocol(printable(protocol)));
    }
    // go-plugin tells a certificate from older plugins' remarks by its length.
    if rest.get(1).is_some_and(|certificate| certificate.len() > 50) {
        return Err(HandshakeError::Tls);
    }
    let refused = || HandshakeError::Address(printable(address));
    match *network {
        "unix" if Path::new(address).is_absolute() => Ok(Address::Unix(PathBuf::from(address))),
        "unix" => Err(refused()),
        "tcp" => {
            let address: SocketAddr = address.parse().map_err(|_| refused())?;
            if address.ip().is_loopback() { Ok(Address::Tcp(address)) } else { Err(refused()) }
        }
        other => Err(HandshakeError::Network(printable(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, wanted: Result<&str, &str>) {
        let shown = parse(line).map(|address| match address {
            Address::Unix(path) => path.display().to_string(),
            Address::Tcp(address) => address.to_string(),
        });
        assert_eq!(shown.map_err(|error| error.to_string()), wanted.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn a_plugin_of_argo_rollouts_says_where_it_listens() {
        check("1|1|unix|/tmp/plugin1234567|netrpc|\n", Ok("/tmp/plugin1234567"));
        check("1|1|unix|/tmp/p", Ok("/tmp/p"));
        check("1|1|tcp|127.0.0.1:10000|netrpc||false", Ok("127.0.0.1:10000"));
        check("1|1|tcp|[::1]:10000|netrpc", Ok("[::1]:10000"));
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        check("hello, I am no plugin", Err("Unrecognized remote plugin message: hello, I am no plugin"));
        check("\u{1b}[2J", Err("Unrecognized remote plugin message: \\u{1b}[2J"));
        check("", Err("Unrecognized remote plugin message: "));
        check("2|1|unix|/p", Err("incompatible core API version with plugin. Plugin version: 2, Core version: 1"));
        check("1|2|unix|/p", Err("incompatible API version with plugin. Plugin version: 2, Client versions: [1]"));
        check("1|1|unix|/p|grpc|", Err("unsupported plugin protocol \"grpc\". Supported: [netrpc]"));
        check("1|1|pipe|/p|netrpc|", Err("Unknown address type: pipe"));
        let elsewhere = "where it must not: an absolute path or a port of the loopback address is needed";
        for address in ["unix|plugin", "unix|@abstract", "tcp|10.0.0.1:80", "tcp|localhost:80", "tcp|0.0.0.0:80"] {
            let (_, at) = address.split_once('|').expect("a network and an address");
            check(&format!("1|1|{address}"), Err(&format!("the plugin listens on {at}, {elsewhere}")));
        }
        let certificate = "A".repeat(51);
        check(
            &format!("1|1|unix|/p|netrpc|{certificate}"),
            Err("the plugin wants TLS, which Argo Rollouts' plugins do without"),
        );
    }
}
