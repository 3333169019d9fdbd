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
mod render;
mod revert;
mod review;
mod signature;
mod ssh;
mod store;
mod stores;
mod tree;
mod watch;
mod wire;

/// What fuzz targets reach of the parts that read what a host sends.
#[cfg(fuzzing)]
pub mod fuzzing {
    use bytes::BytesMut;

    use super::{FetchLimits, pack, wire};

    /// Looks at bytes as at a pack.
    pub fn pack(bytes: &[u8]) {
        let limits = FetchLimits { unpacked_bytes: 16 << 20, object_bytes: 4 << 20, ..FetchLimits::default() };
        drop(pack::check(bytes, &limits));
    }

    /// Reads bytes as a host's greeting, list and answer.
    pub fn wire(bytes: &[u8]) {
        let mut buffer = BytesMut::from(bytes);
        let (mut greeter, mut answer) = (wire::Greeter::default(), wire::Answer::default());
        while let Ok(Some(packet)) = wire::take(&mut buffer) {
            if let wire::Packet::Data(data) = &packet
                && let Ok(text) = wire::text(data)
            {
                drop(wire::listed(text));
                drop(wire::refused(text));
            }
            drop(greeter.take(packet.clone(), 1000, 1 << 16));
            drop(answer.take(packet));
        }
    }
}

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
    render::{CommitTree, Content, KustomizationFolder, Kustomized},
    revert::{Revert, branch},
    signature::Policy,
    store::{Fetched, Reached, Store, Tag},
    stores::{Stores, Use},
    tree::{File, Files, Refusal, Refused},
    watch::Watch,
};
