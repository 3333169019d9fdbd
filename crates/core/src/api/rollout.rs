//! `Rollout`: what is wanted. Steps are in `step`, routers in `traffic`, what was reached in `status`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AnalysisRunMetadata, AnalysisTemplateRef, CanaryStep, DryRun, FieldRef, IntOrString, MeasurementRetention,
    ObjectMeta, PodTemplateMetadata, RolloutStatus, RolloutTrafficRouting, Time, crd, is_null, is_zero,
};
use crate::kubernetes::value::Value;

/// Keeps a number of pods of one template running and moves them to a new template step by step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Rollout {
    /// `argoproj.io/v1alpha1`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `Rollout`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name, namespace, labels, annotations.
    #[schemars(schema_with = "crd::object_meta")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[schemars(extend("x-required" = true))]
    pub spec: RolloutSpec,
    /// What was reached, and what people asked for.
    pub status: RolloutStatus,
}

/// What a Rollout is to keep running, and how it gets to a new version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutSpec {
    /// How many pods to run; 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Which pods are its own. Must match the template's labels; cannot be changed.
    #[schemars(schema_with = "crd::immutable_selector")]
    pub selector: Option<Value>,
    /// The pods to run. Give this or workloadRef.
    #[serde(skip_serializing_if = "is_null")]
    #[schemars(schema_with = "crd::pod_template")]
    pub template: Value,
    /// A Deployment, ReplicaSet or PodTemplate whose pod template and selector to use instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_ref: Option<ObjectRef>,
    /// How long a new pod must be ready, without a crash, to count as available.
    #[serde(skip_serializing_if = "is_zero")]
    pub min_ready_seconds: i32,
    /// Which earlier versions may be returned to without steps and analysis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_window: Option<RollbackWindowSpec>,
    /// How a new version replaces the old one.
    pub strategy: RolloutStrategy,
    /// How many old ReplicaSets to keep; 10 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// Stops every movement until it is unset.
    #[serde(skip_serializing_if = "is_zero")]
    pub paused: bool,
    /// After how long without progress an update counts as failed; 600 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<i32>,
    /// Aborts the update when that happens.
    #[serde(skip_serializing_if = "is_zero")]
    pub progress_deadline_abort: bool,
    /// Replaces every pod that was created before this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_at: Option<Time>,
    /// How many finished AnalysisRuns and Experiments to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<AnalysisRunStrategy>,
}

/// The workload whose pod template to use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectRef {
    /// Its group and version, such as `apps/v1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Its kind: Deployment, ReplicaSet or PodTemplate.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// When to scale the workload itself down: `never`, `onsuccess` or `progressively`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scale_down: String,
}

/// Which earlier versions may be returned to at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RollbackWindowSpec {
    /// How many revisions back.
    #[serde(skip_serializing_if = "is_zero")]
    pub revisions: i32,
}

/// How a new version replaces the old one: one of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// Run both in full, then switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blue_green: Option<BlueGreenStrategy>,
    /// Move in steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryStrategy>,
}

/// Runs the new version beside the old one, then switches a Service over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BlueGreenStrategy {
    /// The Service that people use.
    #[schemars(extend("x-required" = true))]
    pub active_service: String,
    /// A Service that leads to the new version before the switch.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preview_service: String,
    /// How many pods the new version gets before the switch; all if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview_replica_count: Option<i32>,
    /// Whether to switch without being asked; true if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_promotion_enabled: Option<bool>,
    /// How long the new version must have been available before the switch.
    #[serde(skip_serializing_if = "is_zero")]
    pub auto_promotion_seconds: i32,
    /// How many pods may be away while restarting, as a number or a percentage; 25% if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// How long the old version stays up after the switch; 30 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down_delay_seconds: Option<i32>,
    /// How many old versions may stay up at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down_delay_revision_limit: Option<i32>,
    /// What must succeed before the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_promotion_analysis: Option<RolloutAnalysis>,
    /// Keeps pods of the two versions off each other's nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<AntiAffinity>,
    /// What must succeed after the switch; it is undone otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_promotion_analysis: Option<RolloutAnalysis>,
    /// What pods carry while they are the preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview_metadata: Option<PodTemplateMetadata>,
    /// What pods carry while they are active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_metadata: Option<PodTemplateMetadata>,
    /// How long the new version stays up after an abort; 30 if not given, 0 is for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort_scale_down_delay_seconds: Option<i32>,
}

/// How strictly the versions are kept apart: one of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AntiAffinity {
    /// If it can be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred_during_scheduling_ignored_during_execution: Option<PreferredDuringScheduling>,
    /// In any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_during_scheduling_ignored_during_execution: Option<RequiredDuringScheduling>,
}

/// A preference of the scheduler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PreferredDuringScheduling {
    /// How much it counts, from 1 to 100.
    #[schemars(extend("x-required" = true))]
    pub weight: i32,
}

/// A demand on the scheduler; there is nothing to say about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RequiredDuringScheduling {}

/// Moves pods, and traffic where there is a router, to the new version in steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CanaryStrategy {
    /// A Service that leads to the new version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub canary_service: String,
    /// A Service that leads to the stable version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stable_service: String,
    /// What to do, one after the other. Without steps pods are replaced as in a rolling update.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<CanaryStep>,
    /// The router that splits the traffic. Without one the split follows the number of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_routing: Option<RolloutTrafficRouting>,
    /// How many pods may be missing, as a number or a percentage; 25% if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// How many pods there may be beyond `replicas`, as a number or a percentage; 25% if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
    /// An analysis that runs all through the update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<RolloutAnalysisBackground>,
    /// Keeps pods of the two versions off each other's nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<AntiAffinity>,
    /// What pods carry while they are the canary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary_metadata: Option<PodTemplateMetadata>,
    /// What pods carry while they are stable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_metadata: Option<PodTemplateMetadata>,
    /// How long the old version stays up after promotion, with a router; 30 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down_delay_seconds: Option<i32>,
    /// How many old versions may stay up at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down_delay_revision_limit: Option<i32>,
    /// How long the canary stays up after an abort, with a router; 30 if not given, 0 is for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort_scale_down_delay_seconds: Option<i32>,
    /// Shrinks the stable version as its traffic shrinks.
    #[serde(skip_serializing_if = "is_zero")]
    pub dynamic_stable_scale: bool,
    /// Two Services that swap the roles of canary and stable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ping_pong: Option<PingPongSpec>,
    /// The fewest pods a version with traffic has, with a router.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_pods_per_replica_set: Option<i32>,
    /// How much of the new version must be available for a step to be done; all if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_progress_threshold: Option<ReplicaProgressThreshold>,
}

/// Two Services that swap roles at each update.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PingPongSpec {
    /// One of them.
    #[schemars(extend("x-required" = true))]
    pub ping_service: String,
    /// The other.
    #[schemars(extend("x-required" = true))]
    pub pong_service: String,
}

/// How much of what is wanted must be available.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicaProgressThreshold {
    /// What `value` counts: `Percent` or `Pods`.
    #[schemars(extend("x-required" = true))]
    pub r#type: String,
    /// How many.
    #[schemars(extend("x-required" = true))]
    pub value: i32,
}

/// How many finished runs to keep.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AnalysisRunStrategy {
    /// Of the successful; 5 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successful_run_history_limit: Option<i32>,
    /// Of the failed, errored and inconclusive; 5 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsuccessful_run_history_limit: Option<i32>,
}

/// An analysis, made of one or more templates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutAnalysis {
    /// The templates; their metrics are put together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<AnalysisTemplateRef>,
    /// Values for the templates' arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<AnalysisRunArgument>,
    /// Metrics that are measured but do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<DryRun>,
    /// How many measurements to keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measurement_retention: Vec<MeasurementRetention>,
    /// What the AnalysisRun carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis_run_metadata: Option<AnalysisRunMetadata>,
}

/// An analysis that runs beside the steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutAnalysisBackground {
    /// The templates; their metrics are put together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<AnalysisTemplateRef>,
    /// Values for the templates' arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<AnalysisRunArgument>,
    /// Metrics that are measured but do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<DryRun>,
    /// How many measurements to keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measurement_retention: Vec<MeasurementRetention>,
    /// What the AnalysisRun carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis_run_metadata: Option<AnalysisRunMetadata>,
    /// The step, counted from 0, at which to begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting_step: Option<i32>,
}

/// A value for an argument of a template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AnalysisRunArgument {
    /// The argument.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// The value itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Where to take it from instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ArgumentValueFrom>,
}

/// Where to take an argument's value from: one of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ArgumentValueFrom {
    /// The pod template hash of a version: `Stable` or `Latest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_hash_value: Option<String>,
    /// A field of the Rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<FieldRef>,
}
