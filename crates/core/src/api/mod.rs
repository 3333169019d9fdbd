//! The five kinds of Argo Rollouts and our own `GitSource`, as they are on the wire.
//!
//! Plain data: no behaviour, no defaults that the API server does not fill in, no opinion about what makes sense. What it
//! means is `model`'s.
//!
//! A Go pointer is an `Option`; a Go value is a plain field whose zero means absent, and which is written or left out when
//! zero as Go's `omitempty` says; fields stand in Go's order. So the JSON that `serde_json` writes of these types is the
//! JSON that Go writes, byte for byte but for its escapes and for the free-form parts: pod templates, selectors and settings
//! of plugins are [`Value`]s, which share their memory with the object they were read from.
//!
//! [`read`] makes a type of an object, whatever the object holds; [`write()`] is the way back.

mod analysis;
pub mod constants;
pub mod crd;
mod experiment;
mod git_source;
mod meta;
mod provider;
mod read;
mod rollout;
mod scalar;
mod status;
mod step;
mod traffic;
mod write;

pub use analysis::*;
pub use experiment::*;
pub use git_source::*;
pub use meta::*;
pub use provider::*;
pub use read::{Malformed, Read, read};
pub use rollout::*;
pub use scalar::{IntOrString, Time};
pub use status::*;
pub use step::*;
pub use traffic::*;
pub use write::{write, write_fields, write_like};

use crate::kubernetes::value::Value;

/// Whether a field holds its zero, which Go's `omitempty` leaves out.
fn is_zero<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

/// Whether there is nothing in a free-form field.
fn is_null(field: &Value) -> bool {
    field.is_null()
}
