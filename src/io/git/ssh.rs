//! Git through a secure shell, in process.
//!
//! The host must have one of the keys in the given `known_hosts`; there is no other way to trust one. Never reads the
//! user's files, never asks an agent, never runs a program.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use russh::{
    Channel, ChannelMsg, Preferred,
    client::{self, Handle},
    keys::{
        Algorithm, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate, decode_secret_key,
        ssh_key::known_hosts::{Entry, HostPatterns, KnownHosts, Marker},
    },
};

use super::{Error, wire::Service};
use crate::{
    io::http::{self, Proxy},
    kubernetes::foreign,
    model::{glob, remote::Remote, secret::Secret},
};

/// A shell on a host that runs one of git's programs.
pub struct Shell {
    /// Kept: the connection ends with it.
    _handle: Handle<Check>,
    channel: Channel<client::Msg>,
    /// What the program says beside its data, for a message if there is no data.
    said: String,
}

/// How a connection is proven.
pub struct Proof<'a> {
    /// The private key.
    pub identity: &'a Secret,
    /// Its password.
    pub password: Option<&'a Secret>,
    /// The keys that hosts may have.
    pub known_hosts: &'a str,
}

impl Shell {
    /// Connects, checks the host, proves who we are, and starts the program.
    pub async fn open(
        remote: &Remote,
        service: Service,
        proof: &Proof<'_>,
        proxy: Option<&Proxy>,
        silence: Duration,
    ) -> Result<Shell, Error> {
        let name = remote.to_string();
        let origin = remote.origin();
        let key = identity(proof).map_err(|cause| Error::Credentials { remote: name.clone(), cause })?;
        let known = known(proof.known_hosts, &origin.host, origin.port)
            .map_err(|cause| Error::Credentials { remote: name.clone(), cause })?;
        if known.keys.is_empty() {
            let cause = format!(
                "known_hosts names no key of {}; add the line that `ssh-keyscan` prints",
                shown(&origin.host, origin.port)
            );
            return Err(Error::Untrusted { remote: name, cause });
        }
        let mut config = client::Config { inactivity_timeout: Some(silence), ..client::Config::default() };
        // Only kinds of keys that are known: a host with several shows one that can be compared.
        config.preferred = Preferred { key: Cow::Owned(kinds(&known.keys)), ..Preferred::default() };
        let stream = http::connect(&origin.host, origin.port, proxy)
            .await
            .map_err(|error| Error::Unreachable { remote: name.clone(), cause: error.to_string() })?;
        let doubt = Arc::new(Mutex::new(None));
        let check = Check { known, host: shown(&origin.host, origin.port), doubt: doubt.clone() };
        let connected = client::connect_stream(Arc::new(config), stream, check).await;
        let mut handle =
            connected.map_err(|error| match (doubt.lock().unwrap_or_else(PoisonError::into_inner).take(), error) {
                (Some(cause), _) => Error::Untrusted { remote: name.clone(), cause },
                (None, russh::Error::NoCommonAlgo { kind: russh::AlgorithmKind::Key, theirs, .. }) => {
                    let cause =
                        format!("known_hosts has no key of a kind that the host offers ({})", theirs.join(", "));
                    Error::Untrusted { remote: name.clone(), cause }
                }
                (None, error) => Error::Unreachable { remote: name.clone(), cause: error.to_string() },
            })?;
        let broken = |error: russh::Error| Error::Unreachable { remote: name.clone(), cause: error.to_string() };
        let hash = match key.algorithm().is_rsa() {
            // Never SHA-1.
            true => handle.best_supported_rsa_hash().await.map_err(broken)?.flatten().or(Some(HashAlg::Sha256)),
            false => None,
        };
        let user = remote.user.clone().unwrap_or_else(|| "git".to_owned());
        let accepted = handle
            .authenticate_publickey(user.clone(), PrivateKeyWithHashAlg::new(Arc::new(key), hash))
            .await
            .map_err(broken)?;
        if !accepted.success() {
            let cause = format!("the host does not accept the key for the user {user}; add its public half there");
            return Err(Error::Denied { remote: name, cause });
        }
        let channel = handle.channel_open_session().await.map_err(broken)?;
        // A host may pass over this; then it speaks the older version.
        channel.set_env(false, "GIT_PROTOCOL", "version=2").await.map_err(broken)?;
        channel.exec(true, command(remote, service)).await.map_err(broken)?;
        Ok(Shell { _handle: handle, channel, said: String::new() })
    }

    /// Says something to the program.
    pub async fn say(&mut self, words: Bytes) -> Result<(), String> {
        self.channel.data_bytes(words).await.map_err(|error| error.to_string())
    }

    /// The next bytes that the program sends; `None` at its end.
    pub async fn hear(&mut self) -> Option<Bytes> {
        loop {
            match self.channel.wait().await? {
                ChannelMsg::Data { data } => return Some(data),
                ChannelMsg::ExtendedData { data, .. } if self.said.len() < 500 => {
                    self.said.push_str(&String::from_utf8_lossy(&data));
                }
                ChannelMsg::Eof | ChannelMsg::Close | ChannelMsg::Failure => return None,
                _ => {}
            }
        }
    }

    /// What the program said beside its data.
    pub async fn last_words(&mut self) -> String {
        while let Some(message) = self.channel.wait().await {
            if let ChannelMsg::ExtendedData { data, .. } = message
                && self.said.len() < 500
            {
                self.said.push_str(&String::from_utf8_lossy(&data));
            }
        }
        foreign::line(self.said.trim()).chars().take(300).collect()
    }
}

/// What is run on the host. The path has no character that a shell would take for something else.
fn command(remote: &Remote, service: Service) -> String {
    let home = remote.path.starts_with('~');
    format!("{} '{}{}'", service.as_str(), if home { "" } else { "/" }, remote.path)
}

fn identity(proof: &Proof<'_>) -> Result<PrivateKey, String> {
    let password = proof.password.map(Secret::expose);
    // The library's words are about the format; it never shows what it read.
    decode_secret_key(proof.identity.expose(), password).map_err(|error| match error {
        russh::keys::Error::KeyIsEncrypted => "the key identity needs a password; add it as password".to_owned(),
        _ => "the key identity is no private ssh key that can be read".to_owned(),
    })
}

/// The keys that a host may have, and those it must not.
#[derive(Debug, Clone, Default)]
struct Known {
    keys: Vec<PublicKey>,
    revoked: Vec<PublicKey>,
}

/// The name under which a host stands in a file of known hosts.
fn shown(host: &str, port: u16) -> String {
    if port == 22 { host.to_owned() } else { format!("[{host}]:{port}") }
}

fn known(text: &str, host: &str, port: u16) -> Result<Known, String> {
    let name = shown(host, port);
    let mut known = Known::default();
    for (number, entry) in KnownHosts::new(text).enumerate() {
        let entry: Entry = entry.map_err(|_| format!("entry {} of known_hosts cannot be read", number + 1))?;
        if !names(entry.host_patterns(), &name) {
            continue;
        }
        match entry.marker() {
            None => known.keys.push(entry.public_key().clone()),
            Some(Marker::Revoked) => known.revoked.push(entry.public_key().clone()),
            // Certificates of hosts are not supported: the host's own key must be there.
            Some(Marker::CertAuthority) => {}
        }
    }
    Ok(known)
}

fn names(patterns: &HostPatterns, name: &str) -> bool {
    match patterns {
        HostPatterns::Patterns(patterns) => {
            let matches = |pattern: &str| glob::name_matches(&pattern.to_ascii_lowercase(), name);
            patterns.iter().any(|pattern| !pattern.starts_with('!') && matches(pattern))
                && !patterns.iter().filter_map(|pattern| pattern.strip_prefix('!')).any(matches)
        }
        HostPatterns::HashedName { salt, hash } => {
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, salt);
            ring::hmac::verify(&key, name.as_bytes(), hash).is_ok()
        }
    }
}

/// The kinds of these keys, best first, without SHA-1.
fn kinds(keys: &[PublicKey]) -> Vec<Algorithm> {
    let mut kinds = Vec::new();
    for key in keys {
        let offered = match key.algorithm() {
            Algorithm::Rsa { .. } => {
                [HashAlg::Sha512, HashAlg::Sha256].map(|hash| Algorithm::Rsa { hash: Some(hash) }).to_vec()
            }
            other => vec![other],
        };
        kinds.extend(offered.into_iter().filter(|kind| !kinds.contains(kind)).collect::<Vec<_>>());
    }
    kinds
}

/// Compares the host's key.
pub struct Check {
    known: Known,
    host: String,
    doubt: Arc<Mutex<Option<String>>>,
}

impl client::Handler for Check {
    type Error = russh::Error;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        let doubt = match shown {
            PublicKeyOrCertificate::Certificate(_) => Some("the host shows a certificate instead of a key".to_owned()),
            PublicKeyOrCertificate::PublicKey { key, .. } => {
                let same = |known: &&PublicKey| known.key_data() == key.key_data();
                let print = key.fingerprint(HashAlg::Sha256);
                if self.known.revoked.iter().any(|known| same(&known)) {
                    Some(format!("the key {print} of {} is revoked in known_hosts", self.host))
                } else if self.known.keys.iter().any(|known| same(&known)) {
                    None
                } else {
                    Some(format!(
                        "{} shows the key {print}, which is not the one in known_hosts; somebody may be listening in, or \
                         the host has a new key: compare it with what the host publishes",
                        self.host
                    ))
                }
            }
        };
        let trusted = doubt.is_none();
        *self.doubt.lock().unwrap_or_else(PoisonError::into_inner) = doubt;
        Ok(trusted)
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};

    use super::*;

    const ED: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const EC: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHwf2HMM5TRXvo2SQJjsNkiDD5KqiiNjrGVv3UUh+mMT5RHxiRtOnlqvjhQtBq0VpmpCV/PwUdhOig4vkbqAcEc=";

    fn found(text: &str, host: &str, port: u16) -> (usize, usize) {
        let known = known(text, host, port).unwrap();
        (known.keys.len(), known.revoked.len())
    }

    #[test]
    fn hosts_are_found_by_name_pattern_and_hash() {
        assert_eq!(found(&format!("host {ED}\nother {EC}\n"), "host", 22), (1, 0));
        assert_eq!(found(&format!("host,other {ED}\n# x\n\nhost {EC}\n"), "host", 22), (2, 0));
        assert_eq!(found(&format!("host {ED}\n"), "host", 2222), (0, 0));
        assert_eq!(found(&format!("[host]:2222 {ED}\n"), "host", 2222), (1, 0));
        assert_eq!(found(&format!("*.example.org,!bad.example.org {ED}\n"), "git.example.org", 22), (1, 0));
        assert_eq!(found(&format!("*.example.org,!bad.example.org {ED}\n"), "bad.example.org", 22), (0, 0));
        assert_eq!(found(&format!("@revoked host {ED}\nhost {EC}\n"), "host", 22), (1, 1));
        assert_eq!(found(&format!("@cert-authority host {ED}\n"), "host", 22), (0, 0));
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, b"saltsaltsaltsaltsalt");
        let hash = STANDARD.encode(ring::hmac::sign(&key, b"host"));
        let hashed = format!("|1|{}|{hash} {ED}\n", STANDARD.encode(b"saltsaltsaltsaltsalt"));
        assert_eq!(found(&hashed, "host", 22), (1, 0));
        assert_eq!(found(&hashed, "other", 22), (0, 0));
        assert!(known("nonsense", "host", 22).is_err());
    }

    #[test]
    fn the_program_is_named_without_room_for_another() {
        let command = |url| command(&Remote::parse(url).unwrap(), Service::Fetch);
        assert_eq!(command("ssh://git@host/team/web.git"), "git-upload-pack '/team/web.git'");
        assert_eq!(command("ssh://git@host/~ada/web"), "git-upload-pack '~ada/web'");
    }

    #[test]
    fn a_key_that_is_none_is_not_shown() {
        let identity_of = |text: &str| {
            let secret = Secret::new(text);
            identity(&Proof { identity: &secret, password: None, known_hosts: "" }).err().unwrap()
        };
        assert_eq!(identity_of("canary-secret"), "the key identity is no private ssh key that can be read");
    }
}
