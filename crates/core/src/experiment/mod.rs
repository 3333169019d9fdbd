//! Deciding about an Experiment: versions that run beside each other for a while.
//!
//! ```text
//! Seen ──▶ View ──▶ decide ──▶ Verdict { target, status, wake, events } ──▶ diff ──▶ [Action]
//! ```
//!
//! Each version has a ReplicaSet, and a Service if it asks for one; each analysis has an AnalysisRun, begun once all
//! versions are available. What they come to is the Experiment's phase. Works on the wire types, as [`crate::rollout`]
//! does. Never reads, writes, asks the time or fails.

mod analyses;
mod decide;
pub mod diff;
pub mod invariant;
mod phase;
pub mod state;
mod versions;
pub mod view;

pub use decide::{Target, Verdict, decide, refused};
pub use diff::{Action, Kind, diff};
pub use state::Stage;
pub use view::{Seen, View};
