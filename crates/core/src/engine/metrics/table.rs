//! Every metric, as a table: what documentation, dashboard and alerts are made from or checked against.
//!
//! The tests compare it with the page that is served, in both directions.

use super::text::Kind;

/// A metric that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// `rollout_info`
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// Its labels, besides `le`.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

const OBJECT: &[&str] = &["namespace", "name"];

const fn metric(name: &'static str, kind: Kind, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind, labels, help }
}

/// All of them, by name: first those of Argo Rollouts, then our own.
pub const TABLE: &[Metric] = &[
    metric("analysis_run_info", Kind::Gauge, &["namespace", "name", "phase"], "Information about analysis run."),
    metric(
        "analysis_run_metric_phase",
        Kind::Gauge,
        &["namespace", "name", "metric", "type", "dry_run", "phase"],
        "Information on the duration of a specific metric in the Analysis Run",
    ),
    metric(
        "analysis_run_metric_type",
        Kind::Gauge,
        &["namespace", "name", "metric", "type"],
        "Information on the type of a specific metric in the Analysis Runs",
    ),
    metric(
        "analysis_run_phase",
        Kind::Gauge,
        &["namespace", "name", "phase"],
        "Information on the state of the Analysis Run (DEPRECATED - use analysis_run_info)",
    ),
    metric("analysis_run_reconcile", Kind::Histogram, OBJECT, "Analysis Run reconciliation performance."),
    metric("analysis_run_reconcile_error", Kind::Counter, OBJECT, "Error occurring during the analysis run"),
    metric("analysis_template_info", Kind::Gauge, OBJECT, "Information about analysis templates."),
    metric(
        "analysis_template_metric_info",
        Kind::Gauge,
        &["namespace", "name", "type", "metric"],
        "Information on metrics in analysis templates.",
    ),
    metric("argo_rollouts_controller_info", Kind::Gauge, &["version"], "Running Argo-rollouts version"),
    metric(
        "build_info",
        Kind::Gauge,
        &["version", "goversion", "goarch", "commit"],
        "A metric with a constant '1' value labeled by version from which Argo-Rollouts was built.",
    ),
    metric(
        "controller_clientset_k8s_request_total",
        Kind::Counter,
        &["kind", "namespace", "name", "verb", "status_code"],
        "Number of kubernetes requests executed during application reconciliation.",
    ),
    metric("experiment_info", Kind::Gauge, &["namespace", "name", "phase"], "Information about Experiment."),
    metric(
        "experiment_phase",
        Kind::Gauge,
        &["namespace", "name", "phase"],
        "Information on the state of the experiment (DEPRECATED - use experiment_info)",
    ),
    metric("experiment_reconcile", Kind::Histogram, OBJECT, "Experiments reconciliation performance."),
    metric("experiment_reconcile_error", Kind::Counter, OBJECT, "Error occurring during the experiment"),
    metric(
        "rollout_duration_seconds",
        Kind::Histogram,
        &["status"],
        "Total wall-clock time for a rollout from start to completion/abort/supersede",
    ),
    metric("rollout_events_total", Kind::Counter, &["namespace", "name", "type", "reason"], "Count of rollout events"),
    metric(
        "rollout_info",
        Kind::Gauge,
        &["namespace", "name", "strategy", "traffic_router", "phase"],
        "Information about rollout.",
    ),
    metric("rollout_info_replicas_available", Kind::Gauge, OBJECT, "The number of available replicas per rollout."),
    metric("rollout_info_replicas_desired", Kind::Gauge, OBJECT, "The number of desired replicas per rollout."),
    metric("rollout_info_replicas_unavailable", Kind::Gauge, OBJECT, "The number of unavailable replicas per rollout."),
    metric("rollout_info_replicas_updated", Kind::Gauge, OBJECT, "The number of updated replicas per rollout."),
    metric(
        "rollout_manual_pause_duration_seconds",
        Kind::Histogram,
        &["status"],
        "Time spent in manual pause waiting for human intervention",
    ),
    metric(
        "rollout_phase",
        Kind::Gauge,
        &["namespace", "name", "strategy", "phase"],
        "Information on the state of the rollout (DEPRECATED - use rollout_info)",
    ),
    metric(
        "rollout_progression_duration_seconds",
        Kind::Histogram,
        &["status"],
        "Active progression time for a rollout (excluding manual pause time)",
    ),
    metric("rollout_reconcile", Kind::Histogram, OBJECT, "Rollout reconciliation performance."),
    metric("rollout_reconcile_error", Kind::Counter, OBJECT, "Error occurring during the rollout"),
    metric("workqueue_depth", Kind::Gauge, &["name"], "Current depth of workqueue"),
    metric("tidegate_cache_objects", Kind::Gauge, &["kind"], "Objects that are known."),
    metric("tidegate_decision_seconds", Kind::Histogram, &["machine"], "How long a decision takes, without any I/O."),
    metric(
        "tidegate_fence_waits_total",
        Kind::Counter,
        &["machine"],
        "Times a pass was due before its last writes were seen.",
    ),
    metric("tidegate_fenced", Kind::Gauge, &[], "Objects that wait until they see what their last pass wrote."),
    metric("tidegate_panics_total", Kind::Counter, &["machine"], "Passes that ended in a panic."),
    metric("tidegate_passes_running", Kind::Gauge, &[], "Passes that are under way."),
    metric("tidegate_passes_total", Kind::Counter, &["machine", "outcome"], "Passes that have ended, by how."),
    metric(
        "tidegate_quarantined",
        Kind::Gauge,
        &["machine"],
        "Objects that are set aside because a pass about them ended in a panic.",
    ),
    metric("tidegate_queue_depth", Kind::Gauge, &[], "Objects that are due for a pass."),
    metric(
        "tidegate_refused_total",
        Kind::Counter,
        &["machine"],
        "Verdicts that would have broken a rule and were refused.",
    ),
    metric(
        "tidegate_source_behind_seconds",
        Kind::Gauge,
        &["namespace", "name", "stage"],
        "How long ago the newest commit was seen, if it is not applied, or not rolled out; else 0.",
    ),
    metric(
        "tidegate_source_condition",
        Kind::Gauge,
        &["namespace", "name", "type"],
        "The conditions of GitSources: 1 if true.",
    ),
    metric(
        "tidegate_source_held",
        Kind::Gauge,
        OBJECT,
        "Objects that are held back because their version was aborted.",
    ),
    metric(
        "tidegate_source_lag_seconds",
        Kind::Histogram,
        &["namespace", "name", "stage"],
        "From when a commit was seen to when all of it was applied, or rolled out.",
    ),
    metric("tidegate_source_objects", Kind::Gauge, OBJECT, "Objects that a GitSource applied and would prune."),
    metric(
        "tidegate_source_reports_total",
        Kind::Counter,
        &["namespace", "name", "outcome"],
        "Commit statuses that were sent to the git host, by what it answered.",
    ),
    metric("tidegate_watch_restarts_total", Kind::Counter, &["kind"], "Watches that had to begin anew."),
    metric("tidegate_writes_total", Kind::Counter, &["kind", "verb"], "Writes that the API server took."),
];

impl Metric {
    /// The metric of this name; series of histograms are named after theirs.
    pub fn of(series: &str) -> Option<&'static Metric> {
        TABLE.iter().find(|metric| {
            let suffix = series.strip_prefix(metric.name);
            match metric.kind {
                Kind::Histogram => matches!(suffix, Some("_bucket" | "_sum" | "_count")),
                Kind::Counter | Kind::Gauge => suffix == Some(""),
            }
        })
    }
}
