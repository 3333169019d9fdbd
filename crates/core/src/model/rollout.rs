//! A Rollout, exactly: what to run, how many, and how to get from one version to the next.
//!
//! Never says how far it has come: that is in its status.

use jiff::{SignedDuration, Timestamp};

use super::strategy::Strategy;
use crate::kubernetes::{selector::Labels, value::Value};

/// A Rollout that makes sense. Defaults are filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollout {
    /// How many pods.
    pub replicas: Replicas,
    /// Which pods.
    pub pods: Pods,
    /// How long a pod must be ready to count as available.
    pub min_ready: SignedDuration,
    /// Within how many revisions a rollback skips its steps.
    pub rollback_window: Option<u32>,
    /// How to get from one version to the next.
    pub strategy: Strategy,
    /// How many old ReplicaSets to keep.
    pub revision_history_limit: u32,
    /// A person wants it to stand still.
    pub paused: bool,
    /// When to give up.
    pub deadline: Deadline,
    /// Pods older than this are replaced.
    pub restart_at: Option<Timestamp>,
    /// How many finished runs to keep.
    pub run_history: RunHistory,
}

/// How many pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicas {
    /// The manifest says so.
    Given(u32),
    /// Nothing is said: one, to be written into the object, since an autoscaler needs a number there.
    Unsaid,
}

impl Replicas {
    /// The number.
    pub fn count(self) -> u32 {
        match self {
            Replicas::Given(count) => count,
            Replicas::Unsaid => 1,
        }
    }
}

/// Where the description of the pods is.
#[derive(Debug, Clone, PartialEq)]
pub enum Pods {
    /// In the Rollout.
    Own(PodTemplate),
    /// In a workload that has not been looked up.
    Elsewhere(WorkloadRef),
    /// In a workload that has been looked up.
    Found(WorkloadRef, PodTemplate),
}

/// How pods are made and found again.
#[derive(Debug, Clone, PartialEq)]
pub struct PodTemplate {
    /// Which pods are its own.
    pub selector: Selector,
    /// `PodTemplateSpec`, as it was given.
    pub template: Value,
}

/// A label selector that is valid and says something.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    /// As it was given.
    pub given: Value,
    /// What it asks for.
    pub labels: Labels,
}

/// A workload whose pod template a Rollout takes over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadRef {
    /// Its group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its name.
    pub name: String,
    /// What happens to its own pods.
    pub scale_down: ScaleDown,
}

/// The kinds that have a pod template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadKind {
    /// `Deployment` of `apps`
    Deployment,
    /// `ReplicaSet` of `apps`
    ReplicaSet,
    /// `PodTemplate` of the core group
    PodTemplate,
}

impl WorkloadKind {
    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            WorkloadKind::Deployment => "Deployment",
            WorkloadKind::ReplicaSet => "ReplicaSet",
            WorkloadKind::PodTemplate => "PodTemplate",
        }
    }
}

/// What happens to the pods of the referenced workload itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleDown {
    /// Nothing.
    Never,
    /// They go when the Rollout is healthy.
    OnSuccess,
    /// They go as the Rollout's become ready.
    Progressively,
}

/// When an update that does not progress has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// After so long without progress.
    pub after: SignedDuration,
    /// What then.
    pub then: DeadlineAction,
}

/// What happens when the deadline passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineAction {
    /// It is said.
    Report,
    /// The update is aborted.
    Abort,
}

/// How many finished AnalysisRuns and Experiments to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunHistory {
    /// Of the successful.
    pub successful: u32,
    /// Of the others.
    pub unsuccessful: u32,
}
