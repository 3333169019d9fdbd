//! The program as its users meet it: a process, its arguments, its output, its exit code. One binary, because every binary links
//! the whole program: `cargo test --test program`, or one module of it, `cargo test --test program verbs::`.
#![allow(missing_docs, clippy::unwrap_used)]

mod cluster;
#[path = "../demo/mod.rs"]
mod demo;
#[path = "../kustomize/mod.rs"]
mod kustomize;
#[path = "../verbs/mod.rs"]
mod verbs;
#[path = "../whole/mod.rs"]
mod whole;
