//! Where the engine meets a cluster: reading, watching, writing. The only module beside `cmd`, `sim` and the embedded
//! front that may.

pub mod api;
pub mod clock;
pub mod comment;
pub mod daemon;
mod errand;
#[cfg(test)]
#[path = "../../crates/embedded/src/listen/failing.rs"]
mod failing;
pub mod follow;
pub mod forge;
pub mod git;
pub mod http;
pub mod kinds;
pub mod lease;
pub mod metrics;
pub mod oidc;
pub mod outage;
pub mod outbound;
pub mod query;
pub mod serve;
pub mod source;
pub mod watch;
pub mod web;
pub mod webhook;
pub mod world;
