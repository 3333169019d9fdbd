//! A Kubernetes API server in memory.
//!
//! Its core is [`store`]: synchronous, deterministic, without I/O. `controllers` plays the rest of the world, `http` is
//! a thin front for kubectl and for kube's client.

pub mod apply;
pub mod builtin;
pub mod clock;
pub mod controllers;
pub mod convert;
pub mod discovery;
pub mod facts;
pub mod http;
pub mod kind;
pub mod names;
pub mod object;
pub mod openapi;
pub mod patch;
pub mod schema;
pub mod selector;
pub mod status;
pub mod store;
pub mod table;
pub mod value;
