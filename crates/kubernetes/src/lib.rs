//! What every Kubernetes API server knows: kinds, schemas, defaults, validation, patches, server-side apply, selectors,
//! names.
//!
//! The embedded cluster answers with it, `model` reads manifests with it, `sync` compares objects with it: one
//! knowledge, so that a lint, a forecast and a cluster cannot disagree. Never does I/O, never reads a clock.

#![warn(unreachable_pub)]

pub mod apply;
pub mod builtin;
pub mod clock;
pub mod convert;
pub mod decode;
pub mod duration;
pub mod facts;
pub mod foreign;
pub mod jsonpath;
pub mod kind;
pub mod manifest;
pub mod names;
pub mod object;
pub mod patch;
pub mod schema;
pub mod selector;
pub mod shown;
pub mod status;
pub mod value;
