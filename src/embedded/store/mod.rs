//! The store: objects, versions, history. Synchronous and deterministic; no I/O.

pub mod request;
