//! What the wire types mean, exactly: everything after parsing is total.
//!
//! Never does I/O, never reads a clock; problems are values.

pub mod code;
pub mod go_json;
pub mod hash;
pub mod path;
pub mod problem;
