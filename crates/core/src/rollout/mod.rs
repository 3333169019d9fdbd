//! Deciding about a Rollout: from what was seen to what is wanted.
//!
//! ```text
//! Seen ──▶ View ──▶ Situation ──▶ decide ──▶ Verdict { target, status, wake, events, reasons } ──▶ diff ──▶ [Action]
//! ```
//!
//! Pure: never reads, writes, asks the time or fails. [`view`] makes sense of what was read, [`decide()`] says what should
//! be, [`diff()`] makes the writes of it, [`check`] refuses what must never happen. [`rest`] recognises a Rollout that needs
//! nothing, without an allocation. A Rollout that needs a step plugin, or a router without a leaf in [`crate::route`], waits and
//! says so.
//!
//! The decision works on the wire types where the design has exact ones: Argo Rollouts gives meaning to specifications
//! that its validation never saw (sizes below zero, an index that a person wrote), and the same functions answer its
//! recorded answers. What people and passes tell each other through status is not read from its fields but decoded into
//! [`crate::model::memory`]; a test names whoever touches those fields.

mod approval;
mod blue_green;
mod bounds;
mod canary;
mod decide;
pub mod diff;
mod duration;
mod experiments;
pub mod history;
pub mod intent;
pub mod invariant;
#[cfg(test)]
mod laws;
pub mod malformed;
mod pass;
pub mod replicas;
pub mod rest;
pub mod restart;
pub mod runs;
pub mod services;
mod sets;
pub mod start;
mod status;
pub mod step;
pub mod target;
pub mod templates;
mod traffic;
pub mod view;
pub mod wait;
pub mod workload;

pub use decide::{Situation, decide, deliberate, refused};
pub use diff::{Action, diff};
pub use invariant::{Broken, check};
pub use target::{Event, Target, Verdict};
pub use view::{Conditions, Crowd, Seen, View};
