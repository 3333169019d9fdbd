//! An Experiment, exactly: versions that run beside each other for a while.
//!
//! Never says how far it has come.

use jiff::SignedDuration;

use super::{
    analysis::{Retention, TemplateRef},
    rollout::PodTemplate,
    strategy::Metadata,
};
use crate::api::Argument;

/// An Experiment that makes sense. Defaults are filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// The versions.
    pub templates: Vec<Version>,
    /// For how long, once all are available; until its required analyses have ended if not said.
    pub duration: Option<SignedDuration>,
    /// After how long without progress a version counts as failed.
    pub progress_deadline: SignedDuration,
    /// A person or a Rollout wants it to end.
    pub terminate: bool,
    /// What is measured meanwhile.
    pub analyses: Vec<Analysis>,
    /// How long pods stay up afterwards.
    pub scale_down_delay: SignedDuration,
    /// Metrics that are measured but do not count, by regular expression.
    pub dry_run: Vec<String>,
    /// How many measurements to keep.
    pub retention: Vec<Retention>,
    /// What the AnalysisRuns carry.
    pub run_metadata: Metadata,
}

/// A version in an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// What to call it; unique in the experiment.
    pub name: String,
    /// How many pods.
    pub replicas: u32,
    /// How long a pod must be ready to count as available.
    pub min_ready: SignedDuration,
    /// Its pods.
    pub pods: PodTemplate,
    /// A Service for it; an empty name stands for one that is made up.
    pub service: Option<String>,
}

/// A measurement in an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// What to call it; unique in the experiment.
    pub name: String,
    /// The template.
    pub template: TemplateRef,
    /// The values of its arguments.
    pub arguments: Vec<Argument>,
    /// The experiment ends when this has ended.
    pub required: bool,
}
