//! What is measured: references from a Rollout, templates, and the metrics of a run.
//!
//! Never measures, never fills arguments in.

use jiff::SignedDuration;

use super::strategy::Metadata;
use crate::{
    api::{
        CloudWatchMetric, DatadogMetric, GraphiteMetric, InfluxdbMetric, JobMetric, KayentaMetric, NewRelicMetric,
        PrometheusMetric, SkyWalkingMetric, WavefrontMetric, WebMetric,
    },
    kubernetes::value::Value,
};

/// An analysis that a Rollout starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// What to measure.
    pub templates: Vec<TemplateRef>,
    /// The values of arguments.
    pub arguments: Vec<(String, ArgumentValue)>,
    /// Metrics that are measured but do not count, by regular expression.
    pub dry_run: Vec<String>,
    /// How many measurements to keep.
    pub retention: Vec<Retention>,
    /// What the AnalysisRun carries.
    pub metadata: Metadata,
}

/// An analysis that runs beside the steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundAnalysis {
    /// What to measure.
    pub analysis: Analysis,
    /// The step it starts with.
    pub starting_step: u32,
}

/// A template by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateRef {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub scope: Scope,
}

/// Where a template is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// An AnalysisTemplate, in the namespace.
    Namespace,
    /// A ClusterAnalysisTemplate.
    Cluster,
}

/// Where the value of an argument comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentValue {
    /// It is given.
    Literal(String),
    /// The hash of the stable ReplicaSet.
    StableHash,
    /// The hash of the new ReplicaSet.
    LatestHash,
    /// A field of the Rollout, by path.
    Field(String),
}

/// How many measurements to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Of the metrics that this regular expression finds.
    pub pattern: String,
    /// So many; below one, the usual number.
    pub limit: i32,
}

/// A template that makes sense. Its metrics may hold arguments that are not filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// What may, or must, be given from outside.
    pub parameters: Vec<Parameter>,
    /// The measurements, arguments not filled in.
    pub metrics: Vec<crate::api::Metric>,
    /// Metrics that are measured but do not count, by regular expression.
    pub dry_run: Vec<String>,
    /// How many measurements to keep.
    pub retention: Vec<Retention>,
    /// Templates whose metrics to add.
    pub templates: Vec<TemplateRef>,
}

/// Something to be given from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, used as `{{args.name}}`.
    pub name: String,
    /// Its value if none is given.
    pub default: ParameterDefault,
}

/// The value of a parameter if none is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterDefault {
    /// There is none: it must be given.
    None,
    /// This.
    Literal(String),
    /// A key of a Secret.
    Secret {
        /// The Secret.
        name: String,
        /// The key.
        key: String,
    },
    /// A field, by path. Accepted by Argo Rollouts and never filled in.
    Field(String),
}

/// A run that makes sense: every argument is filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The measurements.
    pub metrics: Vec<Metric>,
    /// A person or a Rollout wants it to end.
    pub terminate: bool,
    /// When to delete it once it has ended.
    pub time_to_live: TimeToLive,
}

/// When to delete a run that has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeToLive {
    /// However it ended.
    pub after_completion: Option<SignedDuration>,
    /// If it failed.
    pub after_failure: Option<SignedDuration>,
    /// If it succeeded.
    pub after_success: Option<SignedDuration>,
}

/// A measurement and what it must show.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// The pause between the end of a measurement and the start of the next.
    pub interval: Option<SignedDuration>,
    /// The pause before the first.
    pub initial_delay: Option<SignedDuration>,
    /// How often to measure.
    pub times: Times,
    /// True for a success.
    pub success_condition: Option<String>,
    /// True for a failure.
    pub failure_condition: Option<String>,
    /// How many failures are tolerated; any number if there is no limit.
    pub failure_limit: Option<u32>,
    /// How many inconclusive measurements are tolerated.
    pub inconclusive_limit: u32,
    /// How many errors in a row are tolerated.
    pub consecutive_error_limit: u32,
    /// How many successes in a row are enough.
    pub consecutive_success_limit: Option<u32>,
    /// It is measured but does not count.
    pub dry_run: bool,
    /// How many measurements to keep.
    pub kept: u32,
    /// Whom to ask.
    pub provider: Provider,
}

/// How often to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// So often.
    Count(u32),
    /// Until somebody ends it.
    Endless,
}

/// Whom to ask.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // each is named after what it asks
pub enum Provider {
    Prometheus(PrometheusMetric),
    Kayenta(KayentaMetric),
    Web(WebMetric),
    Datadog(DatadogMetric),
    Wavefront(WavefrontMetric),
    NewRelic(NewRelicMetric),
    Job(JobMetric),
    CloudWatch(CloudWatchMetric),
    Graphite(GraphiteMetric),
    Influxdb(InfluxdbMetric),
    SkyWalking(SkyWalkingMetric),
    Plugin { name: String, config: Value },
}
