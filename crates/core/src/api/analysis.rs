//! `AnalysisTemplate`, `ClusterAnalysisTemplate` and `AnalysisRun`. What a metric asks is in `provider`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FieldRef, IntOrString, MetricProvider, ObjectMeta, Time, crd, is_zero};

/// What to measure, and what counts as success, for use in a namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AnalysisTemplate {
    /// `argoproj.io/v1alpha1`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `AnalysisTemplate`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name, namespace, labels, annotations.
    #[schemars(schema_with = "crd::object_meta")]
    pub metadata: ObjectMeta,
    /// What to measure.
    #[schemars(extend("x-required" = true))]
    pub spec: AnalysisTemplateSpec,
}

/// What to measure, and what counts as success, for use in every namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterAnalysisTemplate {
    /// `argoproj.io/v1alpha1`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `ClusterAnalysisTemplate`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name, labels, annotations.
    #[schemars(schema_with = "crd::object_meta")]
    pub metadata: ObjectMeta,
    /// What to measure.
    #[schemars(extend("x-required" = true))]
    pub spec: AnalysisTemplateSpec,
}

/// What to measure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AnalysisTemplateSpec {
    /// The measurements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// What may, or must, be given from outside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Argument>,
    /// Metrics that are measured but do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<DryRun>,
    /// How many measurements to keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measurement_retention: Vec<MeasurementRetention>,
    /// Templates whose metrics to add.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<AnalysisTemplateRef>,
}

/// A template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AnalysisTemplateRef {
    /// Its name.
    pub template_name: String,
    /// Whether it is a ClusterAnalysisTemplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_scope: Option<bool>,
}

/// A measurement and what it must show.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Metric {
    /// Its name, unique in the analysis.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// How long to wait between measurements, such as `5m`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interval: String,
    /// How long to wait before the first.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub initial_delay: String,
    /// How often to measure. Once if not given; without end if only an interval is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<IntOrString>,
    /// An expression over `result` that is true for a success.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub success_condition: String,
    /// An expression over `result` that is true for a failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failure_condition: String,
    /// How many failures are tolerated; 0 if not given, -1 switches this off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_limit: Option<IntOrString>,
    /// How many inconclusive measurements are tolerated; 0 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inconclusive_limit: Option<IntOrString>,
    /// How many errors in a row are tolerated; 4 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_error_limit: Option<IntOrString>,
    /// Whom to ask.
    #[schemars(extend("x-required" = true))]
    pub provider: MetricProvider,
    /// How many successes in a row are enough; 0, which switches this off, if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_success_limit: Option<IntOrString>,
}

/// Metrics that are measured but do not count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DryRun {
    /// A regular expression that finds them by name.
    #[schemars(extend("x-required" = true))]
    pub metric_name: String,
}

/// How many measurements to keep.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MeasurementRetention {
    /// A regular expression that finds the metrics by name.
    #[schemars(extend("x-required" = true))]
    pub metric_name: String,
    /// How many; 10 where nothing is said.
    #[schemars(extend("x-required" = true))]
    pub limit: i32,
}

/// Something to be given from outside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Argument {
    /// Its name, used as `{{args.name}}`.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// Its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where to take it from instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ValueFrom>,
}

/// Where to take a value from: one of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ValueFrom {
    /// A Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,
    /// A field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<FieldRef>,
}

/// A key of a Secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// The Secret.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// The key.
    #[schemars(extend("x-required" = true))]
    pub key: String,
}

/// An analysis under way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AnalysisRun {
    /// `argoproj.io/v1alpha1`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `AnalysisRun`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name, namespace, labels, annotations.
    #[schemars(schema_with = "crd::object_meta")]
    pub metadata: ObjectMeta,
    /// What to measure.
    #[schemars(extend("x-required" = true))]
    pub spec: AnalysisRunSpec,
    /// What was measured.
    pub status: AnalysisRunStatus,
}

/// What to measure, all templates put together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AnalysisRunSpec {
    /// The measurements.
    #[schemars(extend("x-required" = true))]
    pub metrics: Vec<Metric>,
    /// The values of arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Argument>,
    /// Ends the run.
    #[serde(skip_serializing_if = "is_zero")]
    pub terminate: bool,
    /// Metrics that are measured but do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<DryRun>,
    /// How many measurements to keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measurement_retention: Vec<MeasurementRetention>,
    /// When to delete the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_strategy: Option<TtlStrategy>,
}

/// When to delete a finished run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TtlStrategy {
    /// However it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_after_completion: Option<i32>,
    /// If it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_after_failure: Option<i32>,
    /// If it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_after_success: Option<i32>,
}

/// What was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AnalysisRunStatus {
    /// Pending, Running, Successful, Failed, Error or Inconclusive.
    #[schemars(extend("x-required" = true))]
    pub phase: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Each metric's measurements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metric_results: Vec<MetricResult>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// How many metrics ended how.
    pub run_summary: RunSummary,
    /// The same, for those that do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run_summary: Option<RunSummary>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
}

/// How many metrics ended how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RunSummary {
    /// All of them.
    #[serde(skip_serializing_if = "is_zero")]
    pub count: i32,
    /// The successful.
    #[serde(skip_serializing_if = "is_zero")]
    pub successful: i32,
    /// The failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: i32,
    /// The inconclusive.
    #[serde(skip_serializing_if = "is_zero")]
    pub inconclusive: i32,
    /// The errored.
    #[serde(skip_serializing_if = "is_zero")]
    pub error: i32,
}

/// What a metric has shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MetricResult {
    /// The metric.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// What follows from it.
    #[schemars(extend("x-required" = true))]
    pub phase: String,
    /// The latest measurements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measurements: Vec<Measurement>,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How many measurements counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub count: i32,
    /// How many succeeded.
    #[serde(skip_serializing_if = "is_zero")]
    pub successful: i32,
    /// How many failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: i32,
    /// How many were inconclusive.
    #[serde(skip_serializing_if = "is_zero")]
    pub inconclusive: i32,
    /// How many could not be made.
    #[serde(skip_serializing_if = "is_zero")]
    pub error: i32,
    /// How many in a row could not be made.
    #[serde(skip_serializing_if = "is_zero")]
    pub consecutive_error: i32,
    /// It does not count.
    #[serde(skip_serializing_if = "is_zero")]
    pub dry_run: bool,
    /// What the provider adds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// How many in a row succeeded.
    #[serde(skip_serializing_if = "is_zero")]
    pub consecutive_success: i32,
}

/// One measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Measurement {
    /// What it shows.
    #[schemars(extend("x-required" = true))]
    pub phase: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// What was measured.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What the provider adds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// When to ask again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_at: Option<Time>,
}
