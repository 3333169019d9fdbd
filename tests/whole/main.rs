//! The program itself, from its command line: on a cluster of its own, with a repository, a daemon and people's commands.
#![allow(missing_docs, clippy::unwrap_used)]

mod diff;
mod plan;
mod scene;
mod secrets;
