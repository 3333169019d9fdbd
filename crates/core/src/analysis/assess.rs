//! What measurements come to: the phase of a metric, and of the run.
//!
//! Never measures anything and never forgets a measurement.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::phase::Phase;
use crate::{
    api::{AnalysisRun, IntOrString, Metric, MetricResult, RunSummary, Time},
    model::{event::Event, weight::int_value},
};

/// How many errors in a row are tolerated if nothing is said.
const CONSECUTIVE_ERRORS: i64 = 4;

/// How often a metric is measured; `None` without end.
pub fn effective_count(metric: &Metric) -> Option<i64> {
    match metric.count.as_ref().map(int_value) {
        None | Some(0) => metric.interval.is_empty().then_some(1),
        Some(count) => Some(count),
    }
}

/// Whether a run comes to its end: it was told to, or a metric that counts has decided against it.
pub fn is_ending(run: &AnalysisRun) -> bool {
    let decides = |result: &MetricResult| {
        let phase = Phase::of(&result.phase);
        !result.dry_run && phase.is_over() && phase != Phase::Successful
    };
    run.spec.terminate || run.status.metric_results.iter().any(decides)
}

/// The limit that a metric has broken, with the phase that follows; of several, errors before what is inconclusive before
/// failures.
pub fn broken_limit(metric: &Metric, result: &MetricResult) -> Option<(Phase, String)> {
    let limit = |given: Option<&IntOrString>, otherwise| given.map_or(otherwise, int_value);
    let errors = limit(metric.consecutive_error_limit.as_ref(), CONSECUTIVE_ERRORS);
    if i64::from(result.consecutive_error) > errors {
        let count = result.consecutive_error;
        return Some((Phase::Error, format!("consecutiveErrors ({count}) > consecutiveErrorLimit ({errors})")));
    }
    let inconclusive = limit(metric.inconclusive_limit.as_ref(), 0);
    if i64::from(result.inconclusive) > inconclusive {
        let count = result.inconclusive;
        return Some((Phase::Inconclusive, format!("inconclusive ({count}) > inconclusiveLimit ({inconclusive})")));
    }
    let failures = limit(metric.failure_limit.as_ref(), 0);
    // Below zero there is no limit.
    (failures >= 0 && i64::from(result.failed) > failures)
        .then(|| (Phase::Failed, format!("failed ({}) > failureLimit ({failures})", result.failed)))
}

/// The phase of a metric.
pub fn metric(metric: &Metric, result: &MetricResult, is_ending: bool) -> Phase {
    let known = Phase::of(&result.phase);
    if known.is_over() {
        return known;
    }
    let Some(last) = result.measurements.last() else {
        return if is_ending { Phase::Successful } else { Phase::Pending };
    };
    if !Phase::of(&last.phase).is_over() {
        return Phase::Running;
    }
    if let Some((phase, _)) = broken_limit(metric, result) {
        return phase;
    }
    let wanted = metric.consecutive_success_limit.as_ref().map(int_value).filter(|wanted| *wanted > 0);
    if wanted.is_some_and(|wanted| i64::from(result.consecutive_success) >= wanted) {
        return Phase::Successful;
    }
    if effective_count(metric).is_some_and(|count| i64::from(result.count) >= count) {
        let may_fail = metric.failure_limit.as_ref().is_none_or(|limit| int_value(limit) >= 0);
        return match (wanted.is_some(), may_fail) {
            // Neither enough successes in a row nor too many failures.
            (true, true) => Phase::Inconclusive,
            (true, false) => Phase::Failed,
            (false, _) => Phase::Successful,
        };
    }
    if is_ending { Phase::Successful } else { Phase::Running }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// Its phase.
    pub phase: Phase,
    /// Why.
    pub message: String,
    /// Which metrics were decided.
    pub events: Vec<Event>,
}

/// Assesses every metric and then the run. Notes in status when the run began, the phases of metrics, and the summaries.
pub fn run(run: &mut AnalysisRun, metrics: &[Metric], dry_run: &BTreeSet<String>, now: Timestamp) -> Assessment {
    let is_ending = is_ending(run);
    run.status.started_at.get_or_insert(Time::from(now));
    let mut tally = Tally {
        message: if run.spec.terminate { "Run Terminated".to_owned() } else { String::new() },
        ..Tally::default()
    };
    for metric in metrics {
        let is_dry = dry_run.contains(&metric.name);
        let summary = if is_dry { &mut tally.dry_summary } else { &mut tally.summary };
        summary.count += 1;
        let found = run.status.metric_results.iter_mut().find(|result| result.name == metric.name);
        match found {
            Some(result) => tally.add(metric, result, is_dry, is_ending),
            // It has not begun: one with a delay, say.
            None => tally.is_open = true,
        }
    }
    run.status.run_summary = tally.summary;
    run.status.dry_run_summary = Some(tally.dry_summary);
    let message = tally.message.trim().to_owned();
    let (phase, message) = if is_ending {
        (tally.worst.unwrap_or(Phase::Successful), message)
    } else {
        match tally.worst.filter(|_| !tally.is_open) {
            Some(worst) => (worst, message),
            None => (Phase::Running, String::new()),
        }
    };
    Assessment { phase, message, events: tally.events }
}

/// What the metrics so far came to.
#[derive(Default)]
struct Tally {
    worst: Option<Phase>,
    message: String,
    is_open: bool,
    summary: RunSummary,
    dry_summary: RunSummary,
    events: Vec<Event>,
}

impl Tally {
    fn add(&mut self, metric: &Metric, result: &mut MetricResult, is_dry: bool, is_ending: bool) {
        let phase = self::metric(metric, result, is_ending);
        if Phase::of(&result.phase) != phase {
            if phase.is_over() {
                let message = format!("Metric '{}' Completed. Result: {phase}", metric.name);
                self.events.push(Event { warning: phase.is_bad(), reason: phase.metric_reason(), message });
            }
            if let Some(last) = result.measurements.last() {
                result.message.clone_from(&last.message);
            }
            phase.as_str().clone_into(&mut result.phase);
        }
        if !phase.is_over() {
            self.is_open = true;
            return;
        }
        let broken = broken_limit(metric, result);
        let why = broken.as_ref().map(|(_, why)| why.as_str());
        if is_dry {
            self.worst.get_or_insert(Phase::Successful);
            if let Some(why) = why {
                result.message = format!("Metric assessed {phase} due to {why}");
            }
        } else if self.worst.is_none_or(|worst| phase.is_worse_than(worst)) {
            self.worst = Some(phase);
            if let Some(why) = why {
                self.message = format!("Metric \"{}\" assessed {phase} due to {why}", metric.name);
                if !result.message.is_empty() {
                    self.message.push_str(&format!(": \"Error Message: {}\"", result.message));
                }
            }
        }
        let summary = if is_dry { &mut self.dry_summary } else { &mut self.summary };
        match broken.map_or(Phase::Successful, |(phase, _)| phase) {
            Phase::Error => summary.error += 1,
            Phase::Failed => summary.failed += 1,
            Phase::Inconclusive => summary.inconclusive += 1,
            Phase::Unset | Phase::Pending | Phase::Running | Phase::Successful => summary.successful += 1,
        }
    }
}

/// When a run that is over is to be deleted, if ever: a second after its time to live, which is counted in whole ones.
pub fn end_of_life(run: &AnalysisRun) -> Option<Timestamp> {
    let (phase, ttl) = (Phase::of(&run.status.phase), run.spec.ttl_strategy.as_ref()?);
    let completed = run.status.completed_at.filter(|_| phase.is_over())?;
    let own = match phase {
        Phase::Successful => ttl.seconds_after_success,
        Phase::Failed => ttl.seconds_after_failure,
        Phase::Unset | Phase::Pending | Phase::Running | Phase::Error | Phase::Inconclusive => None,
    };
    let seconds = i64::from(own.or(ttl.seconds_after_completion)?);
    let span = jiff::SignedDuration::from_secs(seconds.saturating_add(1));
    Some(Timestamp::from(completed).saturating_add(span).unwrap_or(Timestamp::MAX))
}
