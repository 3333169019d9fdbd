//! What to show to a host, bound to that host.
//!
//! Made from a Secret's keys for one repository's origin, and good for no other. Never shown: no type here can be printed.

use std::{collections::BTreeMap, fmt};

use super::Error;
use crate::model::{
    remote::{Origin, Remote, Scheme},
    secret::Secret,
};

/// What to show to a host.
#[derive(Clone)]
pub struct Access {
    /// Who it is meant for.
    origin: Origin,
    /// What to show.
    pub(super) proof: Proof,
    /// The authorities to trust instead of this machine's.
    pub(super) authorities: Option<Vec<u8>>,
}

/// How we prove who we are.
#[derive(Clone)]
pub(super) enum Proof {
    /// Not at all.
    None,
    /// A name and a password.
    Basic { username: String, password: Secret },
    /// A token.
    Bearer(Secret),
    /// A GitHub App.
    App(App),
    /// An ssh key, and the keys that the host may have.
    Key { identity: Secret, password: Option<Secret>, known_hosts: String },
}

/// A GitHub App and one of its installations.
#[derive(Clone, PartialEq, Eq)]
pub struct App {
    /// The App's id.
    pub id: String,
    /// The installation's id.
    pub installation: String,
    /// The App's private key.
    pub key: Secret,
}

/// The names of a Secret's keys.
mod key {
    pub const USERNAME: &str = "username";
    pub const PASSWORD: &str = "password";
    pub const BEARER: &str = "bearerToken";
    pub const APP: &str = "githubAppID";
    pub const INSTALLATION: &str = "githubAppInstallationID";
    pub const APP_KEY: &str = "githubAppPrivateKey";
    pub const IDENTITY: &str = "identity";
    pub const KNOWN_HOSTS: &str = "known_hosts";
    pub const AUTHORITIES: &str = "ca.crt";
}

impl Access {
    /// Shows nothing; enough for public repositories over https.
    pub fn anonymous(remote: &Remote) -> Access {
        Access { origin: remote.origin(), proof: Proof::None, authorities: None }
    }

    /// Takes what a Secret holds for a repository.
    pub fn from_secret(remote: &Remote, data: &BTreeMap<String, Vec<u8>>) -> Result<Access, Error> {
        let wrong = |cause: String| Error::Credentials { remote: remote.to_string(), cause };
        let text = |name: &str| match data.get(name) {
            Some(bytes) => match String::from_utf8(bytes.clone()) {
                Ok(text) if text.is_empty() => Ok(None),
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(wrong(format!("the key {name} is no text"))),
            },
            None => Ok(None),
        };
        let needed = |name: &str| text(name)?.ok_or_else(|| wrong(format!("the key {name} is missing")));
        let line = |text: String| text.trim_end_matches(['\r', '\n']).to_owned();
        let proof = match remote.scheme {
            Scheme::Ssh => Proof::Key {
                identity: Secret::new(needed(key::IDENTITY)?),
                password: text(key::PASSWORD)?.map(|text| Secret::new(line(text))),
                known_hosts: needed(key::KNOWN_HOSTS)?,
            },
            Scheme::Https if text(key::APP)?.is_some() => Proof::App(App {
                id: number(&line(needed(key::APP)?))
                    .ok_or_else(|| wrong(format!("the key {} is no number", key::APP)))?,
                installation: number(&line(needed(key::INSTALLATION)?))
                    .ok_or_else(|| wrong(format!("the key {} is no number", key::INSTALLATION)))?,
                key: Secret::new(needed(key::APP_KEY)?),
            }),
            Scheme::Https => match (text(key::BEARER)?, text(key::USERNAME)?, text(key::PASSWORD)?) {
                (Some(token), _, _) => Proof::Bearer(Secret::new(line(token))),
                (None, username, Some(password)) => Proof::Basic {
                    username: username.map(line).unwrap_or_else(|| "git".to_owned()),
                    password: Secret::new(line(password)),
                },
                (None, Some(_), None) => return Err(wrong(format!("the key {} is missing", key::PASSWORD))),
                (None, None, None) => Proof::None,
            },
        };
        Ok(Access { origin: remote.origin(), proof, authorities: data.get(key::AUTHORITIES).cloned() })
    }

    /// The same, if they are meant for this repository's host.
    pub(super) fn for_host_of(&self, remote: &Remote) -> Result<&Access, Error> {
        if self.origin == remote.origin() {
            return Ok(self);
        }
        let cause = format!("they are meant for {}; give them again for the new host", self.origin.host);
        Err(Error::Credentials { remote: remote.to_string(), cause })
    }

    /// Whether nothing is shown that anybody could use.
    pub fn is_anonymous(&self) -> bool {
        matches!(self.proof, Proof::None)
    }

    /// The authorities to trust instead of this machine's, if any are given.
    pub fn authorities(&self) -> Option<&[u8]> {
        self.authorities.as_deref()
    }

    /// The GitHub App, if that is how we prove who we are.
    pub fn app(&self) -> Option<&App> {
        match &self.proof {
            Proof::App(app) => Some(app),
            Proof::None | Proof::Basic { .. } | Proof::Bearer(_) | Proof::Key { .. } => None,
        }
    }
}

/// Digits, and nothing else: they become part of a path.
fn number(text: &str) -> Option<String> {
    (!text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.to_owned())
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.proof {
            Proof::None => "nothing",
            Proof::Basic { .. } => "a password",
            Proof::Bearer(_) => "a token",
            Proof::App(_) => "an app",
            Proof::Key { .. } => "a key",
        };
        write!(f, "{kind} for {}", self.origin.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(url: &str, keys: &[(&str, &str)]) -> Result<Access, String> {
        let data = keys.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        Access::from_secret(&Remote::parse(url).unwrap(), &data).map_err(|error| error.to_string())
    }

    #[test]
    fn a_secret_is_read_by_its_keys() {
        let shown = |url, keys: &[(&str, &str)]| access(url, keys).map(|access| format!("{access:?}"));
        let canary = "canary-secret";
        let https = "https://host/a";
        assert_eq!(shown(https, &[]), Ok("nothing for host".into()));
        assert_eq!(shown(https, &[("username", "a"), ("password", canary)]), Ok("a password for host".into()));
        assert_eq!(shown(https, &[("password", canary)]), Ok("a password for host".into()));
        assert_eq!(shown(https, &[("bearerToken", canary)]), Ok("a token for host".into()));
        let app = [("githubAppID", "1"), ("githubAppInstallationID", "2"), ("githubAppPrivateKey", canary)];
        assert_eq!(shown(https, &app), Ok("an app for host".into()));
        let key = [("identity", canary), ("known_hosts", "host ssh-ed25519 A")];
        assert_eq!(shown("ssh://git@host/a", &key), Ok("a key for host".into()));
        let wrong = |what: &str| Err(format!("the credentials for https://host/a cannot be used: {what}"));
        assert_eq!(shown(https, &[("username", "a")]), wrong("the key password is missing"));
        assert_eq!(shown(https, &app[..2]), wrong("the key githubAppPrivateKey is missing"));
        let odd = [("githubAppID", "1/../2"), app[1], app[2]];
        assert_eq!(shown(https, &odd), wrong("the key githubAppID is no number"));
        let error = shown("ssh://git@host/a", &key[..1]).unwrap_err();
        assert_eq!(error, "the credentials for ssh://git@host/a cannot be used: the key known_hosts is missing");
    }

    /// SR4: they are for one scheme, host and port.
    #[test]
    fn credentials_are_bound_to_their_origin() {
        let access = access("https://host/a", &[("bearerToken", "canary-secret")]).unwrap();
        let meant = |url: &str| access.for_host_of(&Remote::parse(url).unwrap()).is_ok();
        assert!(meant("https://host/a") && meant("https://HOST:443/b"));
        assert!(!meant("https://other/a") && !meant("https://host:444/a") && !meant("ssh://host/a"));
        let error = access.for_host_of(&Remote::parse("https://other/a").unwrap()).err().unwrap().to_string();
        assert!(!error.contains("canary"), "{error}");
    }
}
