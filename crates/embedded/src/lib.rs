//! A Kubernetes API server in memory.
//!
//! Its core is [`store`]: synchronous, deterministic, without I/O; what it knows of kinds, schemas and patches is
//! [`tidegate_kubernetes`]. `controllers` plays the rest of the world, `http` is a thin front for kubectl and for kube's
//! client.

#![warn(unreachable_pub)]

pub mod controllers;
pub mod discovery;
pub mod http;
pub mod listen;
pub mod openapi;
pub mod store;
pub mod table;

use tidegate_kubernetes::{self as kubernetes, manifest, value};
