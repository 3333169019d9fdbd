//! The tests of this crate as one binary; `samples.rs` beside it needs plugins that have to be built first.

mod host;
mod properties;
#[path = "../vectors/mod.rs"]
mod vectors;
