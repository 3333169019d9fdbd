//! The loop that the machines share, without its I/O: what is looked at next, what must be seen before it is, what is known
//! of the cluster, and the one loop body.
//!
//! Never sleeps, never reads a clock, never talks to a server: a [`world`] does, and hands it the time.

pub mod analysis;
pub mod cache;
pub mod driver;
pub mod errand;
pub mod experiment;
pub mod fence;
pub mod key;
pub mod lease;
pub mod machine;
pub mod metrics;
pub mod observe;
pub mod outbox;
pub mod pass;
pub mod quarantine;
pub mod queue;
pub mod references;
pub mod release;
pub mod replay;
pub mod resource;
pub mod rollout;
pub mod state;
pub mod world;
pub mod write;
