//! `Experiment`: versions that run beside each other for a while.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnalysisRunMetadata, Argument, DryRun, MeasurementRetention, ObjectMeta, Time, crd, is_null, is_zero};
use crate::kubernetes::value::Value;

/// Runs versions beside each other for a while and compares them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Experiment {
    /// `argoproj.io/v1alpha1`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `Experiment`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name, namespace, labels, annotations.
    #[schemars(schema_with = "crd::object_meta")]
    pub metadata: ObjectMeta,
    /// What to run.
    #[schemars(extend("x-required" = true))]
    pub spec: ExperimentSpec,
    /// How far it is.
    pub status: ExperimentStatus,
}

/// What to run and to measure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ExperimentSpec {
    /// The versions.
    #[schemars(extend("x-required" = true))]
    pub templates: Vec<TemplateSpec>,
    /// For how long, once all are available; such as `1h`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub duration: String,
    /// After how long without progress a version counts as failed; 600 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<i32>,
    /// Ends the experiment.
    #[serde(skip_serializing_if = "is_zero")]
    pub terminate: bool,
    /// What to measure meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub analyses: Vec<ExperimentAnalysisTemplateRef>,
    /// How long pods stay up afterwards; 30 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down_delay_seconds: Option<i32>,
    /// Metrics that are measured but do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<DryRun>,
    /// How many measurements to keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measurement_retention: Vec<MeasurementRetention>,
    /// What the AnalysisRuns carry.
    pub analysis_run_metadata: AnalysisRunMetadata,
}

/// A version to run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TemplateSpec {
    /// What to call it.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// How many pods; 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// How long a pod must be ready, without a crash, to count as available.
    #[serde(skip_serializing_if = "is_zero")]
    pub min_ready_seconds: i32,
    /// Which pods are its own.
    #[schemars(schema_with = "crd::selector", extend("x-required" = true))]
    pub selector: Option<Value>,
    /// The pods.
    #[serde(skip_serializing_if = "is_null")]
    #[schemars(schema_with = "crd::pod_template", extend("x-required" = true))]
    pub template: Value,
    /// Makes a Service for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<TemplateService>,
}

/// A Service to make.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TemplateService {
    /// What to call it; as its ReplicaSet if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// An analysis of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ExperimentAnalysisTemplateRef {
    /// What to call it.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// The AnalysisTemplate.
    #[schemars(extend("x-required" = true))]
    pub template_name: String,
    /// Whether that is a ClusterAnalysisTemplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_scope: Option<bool>,
    /// Values for its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Argument>,
    /// Whether the experiment ends when this analysis does.
    #[serde(skip_serializing_if = "is_zero")]
    pub required_for_completion: bool,
}

/// How far an experiment is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ExperimentStatus {
    /// Pending, Running, Successful, Failed, Error or Inconclusive.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How far each version is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub template_statuses: Vec<TemplateStatus>,
    /// Since when all are available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_at: Option<Time>,
    /// What holds, in the words of conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ExperimentCondition>,
    /// How far each analysis is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub analysis_runs: Vec<ExperimentAnalysisRunStatus>,
}

/// How far a version is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TemplateStatus {
    /// The version.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// How many pods it has.
    #[schemars(extend("x-required" = true))]
    pub replicas: i32,
    /// How many of them are as wanted.
    #[schemars(extend("x-required" = true))]
    pub updated_replicas: i32,
    /// How many of them are ready.
    #[schemars(extend("x-required" = true))]
    pub ready_replicas: i32,
    /// How many of them are available.
    #[schemars(extend("x-required" = true))]
    pub available_replicas: i32,
    /// How often its ReplicaSet's name was already taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// Progressing, Running, Successful, Failed or Error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// The Service that leads to it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_name: String,
    /// Its pod template hash.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod_template_hash: String,
}

/// Something that holds or does not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ExperimentCondition {
    /// What.
    #[schemars(extend("x-required" = true))]
    pub r#type: String,
    /// True, False or Unknown.
    #[schemars(extend("x-required" = true))]
    pub status: String,
    /// When it was last said.
    #[schemars(extend("x-required" = true))]
    pub last_update_time: Time,
    /// When it began to hold, or ceased to.
    #[schemars(extend("x-required" = true))]
    pub last_transition_time: Time,
    /// Why, in one word.
    #[schemars(extend("x-required" = true))]
    pub reason: String,
    /// Why, in a sentence.
    #[schemars(extend("x-required" = true))]
    pub message: String,
}

/// How far an analysis is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ExperimentAnalysisRunStatus {
    /// Its name in the experiment.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// The AnalysisRun.
    #[schemars(extend("x-required" = true))]
    pub analysis_run: String,
    /// Its phase.
    #[schemars(extend("x-required" = true))]
    pub phase: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}
