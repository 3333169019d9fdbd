//! The program itself, from its command line: on a cluster of its own, with a repository, a daemon and people's commands.

#[path = "../git/authority.rs"]
mod authority;
mod diff;
#[cfg(target_os = "linux")]
mod harm;
#[cfg(target_os = "linux")]
mod memory;
mod plan;
mod plan_flags;
#[allow(dead_code)]
mod scene;
mod secrets;
#[path = "../git/server.rs"]
#[allow(dead_code)]
mod server;
mod workflow;
