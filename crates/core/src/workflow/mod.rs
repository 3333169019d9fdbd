//! A plan as a step of a workflow: what triggered it, what the step prints, and when it fails.
//!
//! GitHub Actions, and Gitea's and Forgejo's, which speak the same language. Pure: reads no environment and writes no file.
//! Everything that stands in a pull request is quoted: runners take lines that begin with `::` for commands.

pub mod command;
pub mod report;
pub mod step;
pub mod trigger;

pub use command::{Annotation, Level};
pub use report::{FailOn, annotations, comment_text, fails, failure_text};
pub use step::StepReport;
pub use trigger::Trigger;
