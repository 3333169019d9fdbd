//! The quick tests as one binary, because every binary links the whole program: `cargo test --test it`, or one module of it,
//! `cargo test --test it vectors::`. Tests with a folder of data or commands of their own are modules of that folder.
//! What is slow, or needs a process of its own, is a binary beside this one.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../api/mod.rs"]
mod api;
mod client;
#[path = "../conformance/mod.rs"]
mod conformance;
mod examples;
#[path = "../git/mod.rs"]
mod git;
mod hostile;
mod laws;
mod lease;
mod links;
#[path = "../lint/mod.rs"]
mod lint;
mod map;
mod modules;
mod reference;
mod run;
mod security;
#[path = "../vectors/mod.rs"]
mod vectors;
