//! What the wire types mean, exactly: everything after parsing is total.
//!
//! Never does I/O, never reads a clock; problems are values.

pub mod analysis;
pub mod code;
pub mod experiment;
pub mod go_json;
pub mod hash;
pub mod parse;
pub mod path;
pub mod problem;
pub mod rollout;
pub mod step;
pub mod strategy;
pub mod traffic;
pub mod weight;
