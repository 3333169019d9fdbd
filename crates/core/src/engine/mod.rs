//! The loop that the machines share, without its I/O: what is looked at next, what must be seen before it is, and what is
//! known of the cluster.
//!
//! Never sleeps, never reads a clock, never talks to a server: `io` drives it and hands it the time.

pub mod cache;
pub mod compare;
pub mod fence;
pub mod key;
pub mod lease;
pub mod measure;
pub mod metrics;
pub mod observe;
pub mod queue;
pub mod references;
pub mod state;
pub mod words;
pub mod write;
