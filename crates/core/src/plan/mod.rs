//! What a commit will do, before it is merged: what changes, what that starts, how it would go, what is wrong with it.
//!
//! ```text
//! old Set, new Set ──▶ changes ──▶ starts ──▶ forecast (run by `sim`) ──▶ Plan ──▶ text, Markdown, JSON, HTML
//! ```
//!
//! Pure: never reads a file, a repository or a cluster, and never asks the time. Decides nothing by itself: what a change
//! starts is asked of [`crate::rollout`], how it goes is what the engine does on the embedded cluster. Everything that is
//! printed went through [`escape`]: names and texts come from a pull request.

pub mod change;
pub mod escape;
pub mod forecast;
pub mod hash;
pub mod hook;
pub mod kinds;
pub mod live;
pub mod output;
pub mod recorder;
pub mod review;
pub mod start;
pub mod warning;

use crate::{lint::rule::Severity, sync::set::Problem};

pub use change::{Change, What, changes};
pub use hook::PlannedHook;
pub use live::Live;
pub use start::{RolloutPlan, Starts};
pub use warning::Warning;

/// One side of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Side {
    /// What it was asked for by: `main`, `HEAD`, a folder.
    pub name: String,
    /// The commit; empty if it is none.
    pub commit: String,
}

/// What a commit will do.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// What it is compared with.
    pub from: Side,
    /// What is planned.
    pub to: Side,
    /// The folder in the repository.
    pub path: String,
    /// The GitSource whose rules apply: `shop/web`; empty if none.
    pub source: String,
    /// The name of the content: see [`hash`].
    pub hash: String,
    /// Why nothing of it would be applied.
    pub problems: Vec<Problem>,
    /// The objects that change, the most important first.
    pub objects: Vec<Change>,
    /// How many objects do not change.
    pub unchanged: usize,
    /// The Rollouts that it concerns.
    pub rollouts: Vec<RolloutPlan>,
    /// The hooks that it runs, in their order.
    pub hooks: Vec<PlannedHook>,
    /// What is wrong with it, the worst first.
    pub warnings: Vec<Warning>,
    /// How it compares with a cluster, if that was asked.
    pub live: Option<Live>,
}

impl Plan {
    /// How many objects are treated like this.
    pub fn count(&self, what: What) -> usize {
        self.objects.iter().filter(|change| change.what == what).count()
    }

    /// How many warnings are of this severity.
    pub fn warned(&self, severity: Severity) -> usize {
        self.warnings.iter().filter(|warning| warning.severity == severity).count()
    }

    /// Whether anything changes. What stays although it left git is no change to a cluster, but one to git.
    pub fn has_changes(&self) -> bool {
        !self.objects.is_empty()
    }
}
