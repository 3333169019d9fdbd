//! Repositories: fetched into bare stores, read from their object databases.
//!
//! ```text
//! Remote ──▶ list (which commit?) ──▶ has it? ──no──▶ pack ──▶ budget ──▶ object database
//!                                        └────────yes────────────────────────┐
//!                              files(commit) · about · relation · changed_by ◀┘
//! ```
//!
//! The protocol is spoken here, over the TLS library that the cluster's client uses and over ssh in process, because git2's
//! own transports want a second TLS library, process-wide settings for authorities and time-outs, and the user's
//! `known_hosts`. Packs, deltas and hashes (with detection of SHA-1 collisions) are libgit2's. Never a work tree: nothing
//! from a repository is written to a path that the repository names, no hook, filter, attribute or configuration of it
//! is read, nothing is followed.

mod app;
mod credentials;
mod error;
mod fetch;
mod history;
mod host;
mod keep;
mod limits;
mod notes;
mod pack;
mod push;
mod revert;
mod review;
mod signature;
mod ssh;
mod store;
mod tree;
mod watch;
mod wire;

pub use self::{
    app::Tokens,
    credentials::{Access, App},
    error::{Error, Retry},
    fetch::fetch,
    history::{About, Relation},
    host::Network,
    limits::{FetchLimits, ReadLimits},
    notes::NOTES,
    push::{Pushed, push},
    revert::{Revert, branch},
    signature::Policy,
    store::{Fetched, Reached, Store, Tag},
    tree::{File, Files, Refusal, Refused},
    watch::Watch,
};
