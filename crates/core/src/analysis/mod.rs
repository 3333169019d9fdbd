//! Deciding how an analysis goes on: measurements in, phases out.
//!
//! ```text
//! AnalysisRun ──▶ look ──▶ Plan { what is due } ──▶ (somebody measures) ──▶ decide ──▶ Verdict { status, wake, events }
//! ```
//!
//! Works on the wire types, as [`crate::rollout`] does: limits may be texts, and counters anything that was once written.
//! Never measures: what a provider answered is given.

pub mod assess;
pub mod by_hand;
mod decide;
pub mod expression;
pub mod invariant;
mod judge;
pub mod phase;
pub mod schedule;

use crate::api::{AnalysisRunStatus, MetricResult};

pub use decide::{HIDDEN, Look, Plan, Sample, Verdict, broken, decide, dry_run, kept, look, unresolved};
pub use judge::{Judgement, judge};
pub use phase::Phase;
pub use schedule::{Task, Work};

/// What is known of a metric.
fn result<'r>(status: &'r AnalysisRunStatus, metric: &str) -> Option<&'r MetricResult> {
    status.metric_results.iter().find(|result| result.name == metric)
}
