//! What the wire types mean, exactly: everything after parsing is total.
//!
//! Never does I/O, never reads a clock; problems are values.

pub mod affinity;
pub mod analysis;
pub mod arguments;
pub mod code;
pub mod codec;
pub mod compose;
pub mod conditions;
pub mod ephemeral;
pub mod event;
pub mod experiment;
pub mod git_source;
pub mod glob;
pub mod go_json;
pub mod go_number;
pub mod hash;
pub mod health;
pub mod int_or_string;
pub mod limits;
pub mod memory;
pub mod names;
pub mod parse;
pub mod path;
pub mod problem;
pub mod references;
pub mod refers;
pub mod remote;
pub mod replica_set;
pub mod revision;
pub mod rollout;
pub mod secret;
pub mod step;
pub mod strategy;
pub mod template;
pub mod traffic;
pub mod version_range;
pub mod weight;
