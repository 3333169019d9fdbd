//! Deciding about a GitSource: from the objects of a commit and what is in the cluster to what is written, and to what
//! the commit is told.
//!
//! ```text
//! files ──▶ Set ──▶ View ──▶ Situation ──▶ decide ──▶ Verdict { actions, status, reports, wake, reasons } ──▶ check
//! ```
//!
//! Pure: never fetches, reads, writes, asks the time or fails. [`set`] makes objects of files, [`compare`] says what
//! applying one would change, [`ownership`] which of its fields are somebody else's, [`decide()`] what is done about it,
//! [`check`] refuses what must never happen.

pub mod allow;
pub mod announce;
pub mod bond;
pub mod by_hand;
pub mod compare;
mod decide;
pub mod detail;
pub mod expressions;
pub mod handover;
pub mod health;
pub mod hold;
pub mod hook;
pub mod id;
pub mod invariant;
mod leave;
pub mod ownership;
pub mod page;
mod plan;
pub mod pods;
pub mod policy;
pub mod prune;
pub mod reason;
pub mod refusal;
mod report;
pub mod rights;
pub mod set;
pub mod stage;
#[cfg(test)]
mod tests;
pub mod text;
pub mod view;

pub use announce::{Acted, announcements};
pub use decide::{Action, Guard, Offer, Situation, Verdict, Write, commit_to_follow, decide, is_over, refuse};
pub use invariant::{Broken, check};
pub use reason::Reason;
pub use report::{Report, State};
pub use view::{Life, View};
