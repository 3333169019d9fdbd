//! Where a repository is, exactly.
//!
//! One grammar for every URL that is ever contacted: `https://host[:port]/path`, `ssh://[user@]host[:port]/path`, or
//! `user@host:path` as hosts show it, which is the second without a port. There is no room for options, other protocols, credentials, queries or escapes. Never talks to anybody.

use std::fmt;

/// Where a repository is. Two that are equal are one repository, however they were written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Remote {
    /// How it is reached.
    pub scheme: Scheme,
    /// Who asks; only with ssh.
    pub user: Option<String>,
    /// The host, in lower case.
    pub host: String,
    /// The port, if it is not the scheme's own.
    pub port: Option<u16>,
    /// The path, without slashes at its ends.
    pub path: String,
}

/// How a repository is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// Git's smart protocol over HTTPS.
    Https,
    /// The same through a secure shell.
    Ssh,
}

impl Scheme {
    /// The port if none is said.
    pub fn port(self) -> u16 {
        match self {
            Scheme::Https => 443,
            Scheme::Ssh => 22,
        }
    }
}

/// The longest URL.
const LONGEST: usize = 2048;

impl Remote {
    /// Reads a URL, or says what is wrong with it.
    pub fn parse(url: &str) -> Result<Remote, &'static str> {
        if url.len() > LONGEST {
            return Err("is longer than 2048 bytes");
        }
        let (scheme, rest) = if let Some(rest) = url.strip_prefix("https://") {
            (Scheme::Https, rest)
        } else if let Some(rest) = url.strip_prefix("ssh://") {
            (Scheme::Ssh, rest)
        } else if let Some((authority, path)) = short(url) {
            return Remote::parts(Scheme::Ssh, authority, path);
        } else {
            return Err("is neither https://, ssh:// nor user@host:path");
        };
        let (authority, path) = rest.split_once('/').ok_or("names no repository")?;
        Remote::parts(scheme, authority, path)
    }

    fn parts(scheme: Scheme, authority: &str, path: &str) -> Result<Remote, &'static str> {
        let (user, address) = match authority.rsplit_once('@') {
            Some(_) if scheme == Scheme::Https => return Err("is no place for credentials"),
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        if user.is_some_and(|user| !word(user, "._-")) {
            return Err("names a user with characters other than letters, digits, `.`, `_` and `-`");
        }
        let (host, port) = match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        };
        if !word(host, ".-") {
            return Err("names a host with characters other than letters, digits, `.` and `-`");
        }
        let port = match port {
            Some(port) if !port.starts_with('+') => Some(port.parse::<u16>().map_err(|_| "names no port of a host")?),
            Some(_) => return Err("names no port of a host"),
            None => None,
        };
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Err("names no repository");
        }
        if !path.split('/').all(segment) {
            return Err("has a path with characters other than letters, digits, `~`, `_`, `.`, `+` and `-`");
        }
        Ok(Remote {
            scheme,
            user: user.map(str::to_owned),
            host: host.to_ascii_lowercase(),
            port: port.filter(|port| *port != scheme.port()),
            path: path.to_owned(),
        })
    }

    /// Whom credentials are meant for: nobody else ever gets them.
    pub fn origin(&self) -> Origin {
        Origin { scheme: self.scheme, host: self.host.clone(), port: self.port.unwrap_or(self.scheme.port()) }
    }

    /// The parts of the path, without the `.git` that hosts add.
    pub fn segments(&self) -> Vec<&str> {
        self.path.strip_suffix(".git").unwrap_or(&self.path).split('/').collect()
    }

    /// Whether both are the same repository as hosts see it: over either protocol, with or without `.git`.
    pub fn same_repository(&self, other: &Remote) -> bool {
        self.host == other.host
            && self.segments().iter().zip(other.segments()).all(|(one, other)| one.eq_ignore_ascii_case(other))
            && self.segments().len() == other.segments().len()
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.scheme {
            Scheme::Https => "https://",
            Scheme::Ssh => "ssh://",
        })?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(&self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        write!(f, "/{}", self.path)
    }
}

/// Scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// How it is reached.
    pub scheme: Scheme,
    /// The host, in lower case.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Https => "https",
            Scheme::Ssh => "ssh",
        };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port == self.scheme.port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// The two parts of `user@host:path`, as `git clone` takes it: everything after the colon is the path.
fn short(url: &str) -> Option<(&str, &str)> {
    let (authority, path) = url.split_once(':')?;
    let is_host = authority.contains('@') && !authority.contains('/') && !path.starts_with("//");
    is_host.then(|| (authority, path.strip_prefix('/').unwrap_or(path)))
}

/// A letter or digit, then more of them and some others.
fn word(text: &str, others: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

fn segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
        && !text.starts_with(['+', '-'])
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "~_.+-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_one_name() {
        #[track_caller]
        fn check(url: &str, expected: &str) {
            assert_eq!(Remote::parse(url).unwrap().to_string(), expected);
        }
        check("https://Host.Example/a/b.git/", "https://host.example/a/b.git");
        check("https://host:443/a", "https://host/a");
        check("https://host:8443/~a/_b.c+d-e", "https://host:8443/~a/_b.c+d-e");
        check("ssh://git@host:22/a", "ssh://git@host/a");
        check("ssh://host/a/b", "ssh://host/a/b");
        check("git@Host.Example:team/shop.git", "ssh://git@host.example/team/shop.git");
        check("git@host:repo", "ssh://git@host/repo");
        check("git@host:/srv/shop.git/", "ssh://git@host/srv/shop.git");
        // Git takes this for a path, too, and not for a port.
        check("git@host:22/a", "ssh://git@host/22/a");
    }

    /// SR3: nothing but the two protocols, and no character that any program could take for something else.
    #[test]
    fn odd_urls_are_refused() {
        for url in [
            "",
            "host:repo",
            "git@host:",
            "git@host:/",
            "git@host:a b",
            "git@host:../a",
            "git@host:-a",
            "-oProxyCommand=id@host:a",
            "git@-host:a",
            "git@host:a//b",
            "git:secret@host:a",
            "http://host/a",
            "git://host/a",
            "file:///etc/passwd",
            "/etc/passwd",
            "ext::sh -c id",
            "https://",
            "https://host",
            "https://host/",
            "https://host//a",
            "https://host/a//b",
            "https://user:secret@host/a",
            "https://user@host/a",
            "https://-host/a",
            "ssh://-oProxyCommand=id/a",
            "ssh://-o@host/a",
            "ssh://git@-host/a",
            "ssh://a:b@host/x",
            "ssh://host/-a",
            "https://host/../a",
            "https://host/a/..",
            "https://host/./a",
            "https://host/a?x=y",
            "https://host/a#b",
            "https://host/a%0ab",
            "https://host/a b",
            "https://host/a\nb",
            "https://host/a\\b",
            "https://host:/a",
            "https://host:+1/a",
            "https://host:99999/a",
            "https://[::1]/a",
            "https://hos\u{442}/a",
            "HTTPS://host/a",
        ] {
            assert!(Remote::parse(url).is_err(), "{url}");
        }
        assert!(Remote::parse(&format!("https://host/{}", "a".repeat(3000))).is_err());
    }

    #[test]
    fn a_repository_is_the_same_over_both_protocols() {
        let parse = |url| Remote::parse(url).unwrap();
        let https = parse("https://host/Team/web.git");
        assert!(https.same_repository(&parse("ssh://git@host/team/web")));
        assert!(!https.same_repository(&parse("https://host/team/web/api")));
        assert!(!https.same_repository(&parse("https://other/team/web")));
    }
}
