//! Repositories as they come: read in place, fetched, rewritten, hostile.
#![allow(missing_docs, clippy::unwrap_used)]

mod reading;
mod repository;
