//! Secrets are bound to hosts: one that was shown to a host is shown to another only after it was written anew.
//!
//! Whoever may change the address in a GitSource need not be allowed to read its Secret, and must not be able to have it
//! sent elsewhere. Never sees what is in a Secret.

use crate::api::ShownSecret;

/// What a Secret is shown for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To fetch with.
    Fetch,
    /// To report with.
    Report,
}

impl Purpose {
    fn as_str(self) -> &'static str {
        match self {
            Purpose::Fetch => "fetch",
            Purpose::Report => "report",
        }
    }
}

/// A Secret, as it is now.
#[derive(Debug, Clone, Copy)]
pub struct Given<'s> {
    /// Its name.
    pub name: &'s str,
    /// What changes when it is written anew.
    pub version: &'s str,
}

/// Notes that a Secret is shown to a host, or says why it must not be.
pub fn bind(shown: &mut Vec<ShownSecret>, purpose: Purpose, secret: Given<'_>, host: &str) -> Result<(), String> {
    let same = |entry: &&mut ShownSecret| entry.purpose == purpose.as_str();
    let Some(entry) = shown.iter_mut().find(same) else {
        shown.push(ShownSecret {
            purpose: purpose.as_str().to_owned(),
            secret: secret.name.to_owned(),
            version: secret.version.to_owned(),
            host: host.to_owned(),
        });
        return Ok(());
    };
    if entry.host != host && entry.secret == secret.name && entry.version == secret.version {
        return Err(format!(
            "the Secret {} was given for {}; write it anew, with any change, to show it to {host}",
            entry.secret, entry.host
        ));
    }
    *entry = ShownSecret {
        purpose: purpose.as_str().to_owned(),
        secret: secret.name.to_owned(),
        version: secret.version.to_owned(),
        host: host.to_owned(),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sr4_a_secret_goes_to_another_host_only_after_it_was_written_anew() {
        let mut shown = Vec::new();
        let mut fetch =
            |name: &str, version: &str, host: &str| bind(&mut shown, Purpose::Fetch, Given { name, version }, host);
        assert_eq!(fetch("s", "1", "https://a"), Ok(()));
        assert_eq!(fetch("s", "2", "https://a"), Ok(()), "a new password for the same host");
        let refused = fetch("s", "2", "https://b").unwrap_err();
        assert_eq!(
            refused,
            "the Secret s was given for https://a; write it anew, with any change, to show it to https://b"
        );
        assert_eq!(fetch("s", "2", "https://a"), Ok(()), "back where it belongs");
        assert_eq!(fetch("s", "3", "https://b"), Ok(()));
        assert!(fetch("s", "3", "https://a").is_err());
        assert_eq!(fetch("t", "9", "https://a"), Ok(()), "another Secret was named");
        assert_eq!(bind(&mut shown, Purpose::Report, Given { name: "t", version: "9" }, "https://api"), Ok(()));
        assert_eq!(shown.len(), 2);
    }
}
