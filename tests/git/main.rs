//! Repositories as they come: read in place, fetched, rewritten, hostile.
#![allow(missing_docs, clippy::unwrap_used)]

mod authority;
mod fetching;
mod keys;
mod local;
mod openssh;
mod pushing;
mod reading;
mod repository;
mod server;
mod shell;
mod signatures;
mod ssh;
mod ways;
