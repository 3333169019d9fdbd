//! The gauges of analyses, read off AnalysisRuns, Experiments and the templates that are known.

use super::text::{Family, Kind, Labels, Page};
use crate::{
    analysis::{self, Phase},
    api::{self, AnalysisRun, AnalysisTemplate, Experiment, Metric},
    kubernetes::value::Value,
    metric,
};

/// The phases that have a series each, in the order of Argo Rollouts.
const PHASES: [Phase; 6] =
    [Phase::Pending, Phase::Error, Phase::Failed, Phase::Successful, Phase::Running, Phase::Inconclusive];

/// The gauges of these runs.
pub(super) fn runs<'a>(runs: impl Iterator<Item = &'a Value>, page: &mut Page) {
    let (mut info, mut phases, mut types, mut metrics) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for object in runs {
        let run: AnalysisRun = api::read(object).object;
        let of = || named(&run.metadata);
        let mut labels = of();
        labels.push(("phase", run.status.phase.clone()));
        info.push((labels, 1.0));
        phases.extend(each(&of(), &run.status.phase));
        let (dry_run, _) = analysis::dry_run(&run, &run.spec.metrics);
        for metric in &run.spec.metrics {
            let mut labels = of();
            labels.extend([("metric", metric.name.clone()), ("type", metric::provider(metric).to_owned())]);
            types.push((labels.clone(), 1.0));
            labels.push(("dry_run", dry_run.contains(&metric.name).to_string()));
            let result = run.status.metric_results.iter().find(|result| result.name == metric.name);
            metrics.extend(each(&labels, result.map(|result| result.phase.as_str()).unwrap_or_default()));
        }
    }
    page.samples(Family::new("analysis_run_info", "Information about analysis run.", Kind::Gauge), info);
    let help = "Information on the state of the Analysis Run (DEPRECATED - use analysis_run_info)";
    page.samples(Family::new("analysis_run_phase", help, Kind::Gauge), phases);
    let help = "Information on the type of a specific metric in the Analysis Runs";
    page.samples(Family::new("analysis_run_metric_type", help, Kind::Gauge), types);
    let help = "Information on the duration of a specific metric in the Analysis Run";
    page.samples(Family::new("analysis_run_metric_phase", help, Kind::Gauge), metrics);
}

/// The gauges of these templates.
pub(super) fn templates<'a>(templates: impl Iterator<Item = &'a Value>, page: &mut Page) {
    let (mut info, mut metrics) = (Vec::new(), Vec::new());
    for object in templates {
        let template: AnalysisTemplate = api::read(object).object;
        info.push((named(&template.metadata), 1.0));
        metrics.extend(template.spec.metrics.iter().map(|metric: &Metric| {
            let mut labels = named(&template.metadata);
            labels.extend([("type", metric::provider(metric).to_owned()), ("metric", metric.name.clone())]);
            (labels, 1.0)
        }));
    }
    page.samples(Family::new("analysis_template_info", "Information about analysis templates.", Kind::Gauge), info);
    let help = "Information on metrics in analysis templates.";
    page.samples(Family::new("analysis_template_metric_info", help, Kind::Gauge), metrics);
}

/// The gauges of these Experiments. Argo Rollouts gives every phase of the deprecated one a series, except Failed.
pub(super) fn experiments<'a>(experiments: impl Iterator<Item = &'a Value>, page: &mut Page) {
    let (mut info, mut phases) = (Vec::new(), Vec::new());
    for object in experiments {
        let experiment: Experiment = api::read(object).object;
        let mut labels = named(&experiment.metadata);
        labels.push(("phase", experiment.status.phase.clone()));
        info.push((labels, 1.0));
        let series = each(&named(&experiment.metadata), &experiment.status.phase);
        let is_there = |labels: &Labels| labels.last().is_some_and(|(_, phase)| phase != Phase::Failed.as_str());
        phases.extend(series.into_iter().filter(|(labels, _)| is_there(labels)));
    }
    page.samples(Family::new("experiment_info", "Information about Experiment.", Kind::Gauge), info);
    let help = "Information on the state of the experiment (DEPRECATED - use experiment_info)";
    page.samples(Family::new("experiment_phase", help, Kind::Gauge), phases);
}

fn named(metadata: &api::ObjectMeta) -> Labels {
    vec![("namespace", metadata.namespace.clone()), ("name", metadata.name.clone())]
}

/// A series for each phase; what nobody looked at is pending.
fn each(labels: &Labels, phase: &str) -> Vec<(Labels, f64)> {
    let now = if phase.is_empty() { Phase::Pending } else { Phase::of(phase) };
    let series = PHASES.into_iter().map(|phase| {
        let mut labels = labels.clone();
        labels.push(("phase", phase.as_str().to_owned()));
        (labels, f64::from(u8::from(phase == now)))
    });
    series.collect()
}
