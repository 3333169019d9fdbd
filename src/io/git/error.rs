//! What can go wrong with a repository, and when it is worth another try.
//!
//! No error carries a credential: causes are made of names, codes and the words of libraries that never saw one.

use std::{path::PathBuf, time::Duration};

use thiserror::Error;

/// What was not done, and why.
#[derive(Debug, Error)]
pub enum Error {
    /// The URL is not one.
    #[error("{url:?} {reason}")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The host was not reached, or hung up.
    #[error("{remote} cannot be reached: {cause}")]
    Unreachable {
        /// Which repository.
        remote: String,
        /// What went wrong.
        cause: String,
    },
    /// The host did not prove to be who it should be.
    #[error("{remote} is not trusted: {cause}")]
    Untrusted {
        /// Which repository.
        remote: String,
        /// What does not fit, and what to do.
        cause: String,
    },
    /// The host does not let us in.
    #[error("{remote} refuses access: {cause}")]
    Denied {
        /// Which repository.
        remote: String,
        /// Its words, and what to do.
        cause: String,
    },
    /// The host sends us elsewhere.
    #[error("{remote} redirects to {to}, which is not followed: name the new URL in the source")]
    Redirected {
        /// Which repository.
        remote: String,
        /// Where to.
        to: String,
    },
    /// There is no such thing in the repository.
    #[error("{remote} has no {what}")]
    Missing {
        /// Which repository.
        remote: String,
        /// What was looked for.
        what: String,
    },
    /// Something is larger than allowed.
    #[error("{what} is more than the {allowed} allowed")]
    Limit {
        /// What is too large, as it begins a sentence.
        what: String,
        /// The most that is allowed, with its unit.
        allowed: String,
    },
    /// It took too long.
    #[error("{remote} took longer than {} s", .allowed.as_secs())]
    Slow {
        /// Which repository.
        remote: String,
        /// How long it may take.
        allowed: Duration,
    },
    /// The host, or the repository itself, does not speak git.
    #[error("{remote} sent something unexpected: {cause}")]
    Malformed {
        /// Which repository.
        remote: String,
        /// What.
        cause: String,
    },
    /// The keys or names to connect with cannot be used.
    #[error("the credentials for {remote} cannot be used: {cause}")]
    Credentials {
        /// Which repository.
        remote: String,
        /// What is wrong with them. Never what they are.
        cause: String,
    },
    /// The signature policy is not met.
    #[error("{what} is not accepted: {reason}")]
    Unsigned {
        /// The commit or tag.
        what: String,
        /// Why.
        reason: String,
    },
    /// Our own copy cannot be read or written.
    #[error("the git store {}: {cause}", .path.display())]
    Store {
        /// Where it is.
        path: PathBuf,
        /// What went wrong.
        cause: String,
    },
}

/// When it is worth another try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Soon, with a growing delay: it may pass by itself.
    Soon,
    /// At the source's interval: a person must do something at the host.
    Later,
    /// When the source changes: the same would happen again.
    WhenChanged,
}

impl Error {
    /// When it is worth another try.
    pub fn retry(&self) -> Retry {
        match self {
            Error::Unreachable { .. } | Error::Slow { .. } | Error::Store { .. } => Retry::Soon,
            Error::Untrusted { .. }
            | Error::Denied { .. }
            | Error::Redirected { .. }
            | Error::Missing { .. }
            | Error::Limit { .. }
            | Error::Malformed { .. }
            | Error::Unsigned { .. } => Retry::Later,
            Error::Address { .. } | Error::Credentials { .. } => Retry::WhenChanged,
        }
    }

    /// One word for conditions and events.
    pub fn reason(&self) -> &'static str {
        match self {
            Error::Address { .. } => "InvalidURL",
            Error::Unreachable { .. } => "HostUnreachable",
            Error::Untrusted { .. } => "HostNotTrusted",
            Error::Denied { .. } => "AccessDenied",
            Error::Redirected { .. } => "Redirected",
            Error::Missing { .. } => "NotFound",
            Error::Limit { .. } => "LimitExceeded",
            Error::Slow { .. } => "Timeout",
            Error::Malformed { .. } => "ProtocolError",
            Error::Credentials { .. } => "InvalidCredentials",
            Error::Unsigned { .. } => "SignatureRefused",
            Error::Store { .. } => "StoreFailed",
        }
    }
}
