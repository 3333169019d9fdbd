//! Everything that a step shows of a plan, made where the plan is: on the runner, or by a daemon that hands it over as JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{
    Annotation, FailOn, annotations, comment_text, fails,
    report::{exit_code, outputs},
};
use crate::plan::{Plan, output};

/// The most bytes of a job summary; runners drop one of more than 1 MiB.
const SUMMARY: usize = 1_000_000;
/// The room that a comment keeps for its marker.
const MARKER: usize = 1000;

/// What a step shows of a plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepReport {
    /// The plan, as `docs/plan.md` describes it.
    pub plan: Json,
    /// The plan for the log.
    pub text: String,
    /// The plan for the job summary, in Markdown.
    pub summary: String,
    /// The plan for the comment, in Markdown.
    pub comment: String,
    /// What is wrong with it, at the lines of its files.
    pub annotations: Vec<Annotation>,
    /// Whether the step fails on errors, on warnings, on changes.
    pub fails: [bool; 3],
}

impl StepReport {
    /// What a step shows of this plan.
    pub fn of(plan: &Plan) -> StepReport {
        StepReport {
            plan: serde_json::from_str(&output::json(plan)).unwrap_or_default(),
            text: output::text(plan),
            summary: output::markdown(plan, SUMMARY, &|_| None),
            comment: comment_text(plan, &plan.to.commit, MARKER),
            annotations: annotations(plan),
            fails: [FailOn::Error, FailOn::Warning, FailOn::Changes].map(|on| fails(plan, on)),
        }
    }

    /// Whether the step fails.
    pub fn fails(&self, on: FailOn) -> bool {
        let [error, warning, changes] = self.fails;
        match on {
            FailOn::Never => false,
            FailOn::Error => error,
            FailOn::Warning => warning,
            FailOn::Changes => changes,
        }
    }

    /// Whether a pull request without a comment gets one.
    pub fn is_worth_a_comment(&self) -> bool {
        exit_code(&self.plan) != 0
    }

    /// The outputs of the step, as lines for its file of outputs.
    pub fn outputs(&self, file: &str) -> String {
        outputs(&self.plan, file)
    }

    /// The plan's JSON as a file holds it.
    pub fn json(&self) -> String {
        format!("{:#}\n", self.plan)
    }
}
