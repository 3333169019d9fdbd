//! The steps of a canary.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AnalysisRunArgument, AnalysisRunMetadata, DryRun, IntOrString, PodTemplateMetadata, RolloutAnalysis,
    TemplateService, crd, is_zero,
};
use crate::kubernetes::value::Value;

/// One step: exactly one of its fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CanaryStep {
    /// How much of the traffic the new version gets, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_weight: Option<i32>,
    /// Waits, for a time or for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<RolloutPause>,
    /// Runs versions beside each other and compares them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<RolloutExperimentStep>,
    /// Waits for an analysis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<RolloutAnalysis>,
    /// Sets how many pods the new version has, apart from its traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_canary_scale: Option<SetCanaryScale>,
    /// Sends requests with certain headers to the new version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_header_route: Option<SetHeaderRoute>,
    /// Sends copies of requests to the new version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_mirror_route: Option<SetMirrorRoute>,
    /// Asks a plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginStep>,
}

/// A wait.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutPause {
    /// How long: seconds, or a duration such as `1h30m`. Until a person says so if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<IntOrString>,
}

/// An experiment within an update.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutExperimentStep {
    /// What to run.
    #[schemars(extend("x-required" = true))]
    pub templates: Option<Vec<RolloutExperimentTemplate>>,
    /// For how long, such as `1h`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub duration: String,
    /// What to measure meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub analyses: Vec<RolloutExperimentStepAnalysisTemplateRef>,
    /// Metrics that are measured but do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<DryRun>,
    /// What the AnalysisRuns carry.
    pub analysis_run_metadata: AnalysisRunMetadata,
    /// How long its pods stay up afterwards; 30 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down_delay_seconds: Option<i32>,
}

/// An analysis of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutExperimentStepAnalysisTemplateRef {
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
    pub args: Vec<AnalysisRunArgument>,
    /// Whether the experiment ends when this analysis does.
    #[serde(skip_serializing_if = "is_zero")]
    pub required_for_completion: bool,
}

/// One version to run in an experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutExperimentTemplate {
    /// What to call it.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// Whose pod template to use: `canary` or `stable`.
    #[schemars(extend("x-required" = true))]
    pub spec_ref: String,
    /// How many pods; 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// What its pods carry.
    pub metadata: PodTemplateMetadata,
    /// Which pods are its own; the Rollout's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::selector")]
    pub selector: Option<Value>,
    /// How much of the traffic it gets, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
    /// Makes a Service for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<TemplateService>,
}

/// How many pods the new version has: one of the three.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SetCanaryScale {
    /// A percentage of the Rollout's replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
    /// A number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// As its share of the traffic demands.
    #[serde(skip_serializing_if = "is_zero")]
    pub match_traffic_weight: bool,
}

/// Requests that go to the new version, whatever the weight.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SetHeaderRoute {
    /// The route, one of `managedRoutes`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which requests. Without any the route is removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub r#match: Vec<HeaderRoutingMatch>,
}

/// A header that must be there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct HeaderRoutingMatch {
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub header_name: String,
    /// What it must hold.
    #[schemars(extend("x-required" = true))]
    pub header_value: Option<StringMatch>,
}

/// Requests that are copied to the new version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SetMirrorRoute {
    /// The route, one of `managedRoutes`.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// Which requests. Without any the route is removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub r#match: Vec<RouteMatch>,
    /// How many of them, in percent; 100 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentage: Option<i32>,
}

/// What a request must look like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RouteMatch {
    /// Its method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<StringMatch>,
    /// Its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<StringMatch>,
    /// Its headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, StringMatch>,
}

/// What a text must be: one of the three.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct StringMatch {
    /// This.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub exact: String,
    /// Begin with this.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Match this regular expression.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub regex: String,
}

/// A step that a plugin takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PluginStep {
    /// The plugin.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// What to tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object")]
    pub config: Option<Value>,
}
