//! `Rollout` status: what was reached, and what people asked for by writing into it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Time, crd, is_zero};
use crate::kubernetes::value::{Text, Value};

/// What a Rollout has reached. People ask for things by writing `abort`, `promoteFull`, `pauseConditions` and
/// `currentStepIndex`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutStatus {
    /// The update is to be undone: set by a person or by a failed analysis.
    #[serde(skip_serializing_if = "is_zero")]
    pub abort: bool,
    /// What it waits for. Taking one away resumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pause_conditions: Vec<PauseCondition>,
    /// A pause was begun and its end not yet acted upon.
    #[serde(skip_serializing_if = "is_zero")]
    pub controller_pause: bool,
    /// When the update was aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted_at: Option<Time>,
    /// The pod template hash that the specification asks for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub current_pod_hash: String,
    /// The hash of the steps.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub current_step_hash: String,
    /// How many pods there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub replicas: i32,
    /// How many of them are of the new version.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated_replicas: i32,
    /// How many of them are ready.
    #[serde(skip_serializing_if = "is_zero")]
    pub ready_replicas: i32,
    /// How many of them are available.
    #[serde(skip_serializing_if = "is_zero")]
    pub available_replicas: i32,
    /// The step it is at, counted from 0; the number of steps when all are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_step_index: Option<i32>,
    /// How often a ReplicaSet's name was already taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// The generation of the specification that this is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub observed_generation: String,
    /// What holds, in the words of conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<RolloutCondition>,
    /// What only a canary has.
    pub canary: CanaryStatus,
    /// What only blue-green has.
    pub blue_green: BlueGreenStatus,
    /// How many pods an autoscaler should see.
    #[serde(rename = "HPAReplicas", skip_serializing_if = "is_zero")]
    pub hpa_replicas: i32,
    /// Which pods an autoscaler should look at.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selector: String,
    /// The pod template hash that was promoted last.
    #[serde(rename = "stableRS", skip_serializing_if = "String::is_empty")]
    pub stable_rs: String,
    /// The `restartAt` that was carried out last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarted_at: Option<Time>,
    /// All steps, pauses and analyses of this update are to be skipped.
    #[serde(skip_serializing_if = "is_zero")]
    pub promote_full: bool,
    /// Healthy, Progressing, Paused or Degraded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The generation of the referenced workload that this is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workload_observed_generation: String,
    /// The AWS resources behind the Ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alb: Option<AlbStatus>,
    /// The AWS resources behind each of several Ingresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub albs: Vec<AlbStatus>,
    /// How long this update has taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<RolloutDurationStatus>,
}

/// A reason to wait.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PauseCondition {
    /// CanaryPauseStep, BlueGreenPause, InconclusiveAnalysisRun or InconclusiveExperiment.
    #[schemars(extend("x-required" = true))]
    pub reason: String,
    /// Since when.
    #[schemars(extend("x-required" = true))]
    pub start_time: Time,
}

/// Something that holds or does not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutCondition {
    /// What.
    #[schemars(with = "String", extend("x-required" = true))]
    pub r#type: Text,
    /// True, False or Unknown.
    #[schemars(with = "String", extend("x-required" = true))]
    pub status: Text,
    /// When it was last said.
    #[schemars(extend("x-required" = true))]
    pub last_update_time: Time,
    /// When it began to hold, or ceased to.
    #[schemars(extend("x-required" = true))]
    pub last_transition_time: Time,
    /// Why, in one word.
    #[schemars(with = "String", extend("x-required" = true))]
    pub reason: Text,
    /// Why, in a sentence.
    #[schemars(with = "String", extend("x-required" = true))]
    pub message: Text,
}

/// What only a canary has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CanaryStatus {
    /// The analysis of the current step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_step_analysis_run_status: Option<RolloutAnalysisRunStatus>,
    /// The analysis beside the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_background_analysis_run_status: Option<RolloutAnalysisRunStatus>,
    /// The experiment of the current step.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub current_experiment: String,
    /// Where the traffic goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<TrafficWeights>,
    /// Which of the two Services has the stable role: `ping` or `pong`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stable_ping_pong: String,
    /// How far step plugins are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub step_plugin_statuses: Vec<StepPluginStatus>,
}

/// What only blue-green has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BlueGreenStatus {
    /// The version that the preview Service leads to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preview_selector: String,
    /// The version that the active Service leads to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub active_selector: String,
    /// The new version is being scaled up for the switch.
    #[serde(skip_serializing_if = "is_zero")]
    pub scale_up_preview_check_point: bool,
    /// The analysis before the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_promotion_analysis_run_status: Option<RolloutAnalysisRunStatus>,
    /// The analysis after the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_promotion_analysis_run_status: Option<RolloutAnalysisRunStatus>,
}

/// How far an analysis is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutAnalysisRunStatus {
    /// The AnalysisRun.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// Its phase.
    #[schemars(extend("x-required" = true))]
    pub status: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Where the traffic goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TrafficWeights {
    /// To the new version.
    #[schemars(extend("x-required" = true))]
    pub canary: WeightDestination,
    /// To the stable version.
    #[schemars(extend("x-required" = true))]
    pub stable: WeightDestination,
    /// To an experiment's versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional: Vec<WeightDestination>,
    /// Whether the load balancer was asked and agrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
}

/// A share of the traffic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WeightDestination {
    /// How much.
    #[schemars(extend("x-required" = true))]
    pub weight: i32,
    /// Through this Service.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_name: String,
    /// To this version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod_template_hash: String,
}

/// How far a step plugin is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct StepPluginStatus {
    /// The step, counted from 0.
    #[schemars(extend("x-required" = true))]
    pub index: i32,
    /// The plugin.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// What it was asked to do: Run, Terminate or Abort.
    #[schemars(extend("x-required" = true))]
    pub operation: String,
    /// Running, Successful, Failed or Error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it last answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// How long to wait before asking it again.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub backoff: String,
    /// How often it was asked.
    #[serde(skip_serializing_if = "is_zero")]
    pub executions: i32,
    /// It is switched off.
    #[serde(skip_serializing_if = "is_zero")]
    pub disabled: bool,
    /// What it wants to be told next time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object")]
    pub status: Option<Value>,
}

/// The AWS resources behind an Ingress.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AlbStatus {
    /// The load balancer.
    pub load_balancer: AwsResourceRef,
    /// The target group of the new version.
    pub canary_target_group: AwsResourceRef,
    /// The target group of the stable version.
    pub stable_target_group: AwsResourceRef,
    /// The Ingress.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ingress: String,
}

/// An AWS resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AwsResourceRef {
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// Its ARN.
    #[schemars(extend("x-required" = true))]
    pub arn: String,
    /// Its name as metrics call it.
    pub full_name: String,
}

/// How long an update has taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutDurationStatus {
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_started_at: Option<Time>,
    /// Since when it waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manual_pause_started_at: Option<Time>,
    /// How long it has waited for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_manual_pause_duration_seconds: Option<i64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// How: Promoted, FastPromoted, Aborted, Superseded, RolledBack or FastRolledBack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_status: Option<String>,
}
