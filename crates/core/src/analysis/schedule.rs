//! When to measure: which metrics are due, and when to look again.
//!
//! Never measures, and never asks the time.

use jiff::{SignedDuration, Timestamp};

use super::{assess, phase::Phase, result};
use crate::{
    api::{AnalysisRun, AnalysisRunStatus, Measurement, Metric},
    kubernetes::duration,
};

/// How long after an error it is tried again, and after anything else where no interval is given.
const RETRY: SignedDuration = SignedDuration::from_secs(10);

/// What is to be done about a metric now.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Which metric of the specification.
    pub index: usize,
    /// Its name, arguments filled in.
    pub name: String,
    /// What.
    pub work: Work,
}

/// What is to be done about a measurement.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Begin a new one.
    Start,
    /// Look how this one is getting on.
    Resume(Measurement),
    /// End this one.
    Terminate(Measurement),
}

/// What is due, in the order of the metrics. `metrics` are those of the run, arguments filled in.
pub fn due(run: &AnalysisRun, metrics: &[Metric], now: Timestamp) -> Vec<Task> {
    let is_ending = assess::is_ending(run);
    let works = metrics.iter().enumerate().filter_map(|(index, metric)| {
        let work = work(&run.status, metric, is_ending, now)?;
        Some(Task { index, name: metric.name.clone(), work })
    });
    works.collect()
}

fn work(status: &AnalysisRunStatus, metric: &Metric, is_ending: bool, now: Timestamp) -> Option<Work> {
    let known = result(status, &metric.name);
    if known.is_some_and(|known| Phase::of(&known.phase).is_over()) {
        return None;
    }
    let Some((known, last)) = known.and_then(|known| Some((known, known.measurements.last()?))) else {
        return (!is_ending && is_past_delay(status, metric, now)).then_some(Work::Start);
    };
    let Some(finished) = last.finished_at else {
        if is_ending {
            return Some(Work::Terminate(last.clone()));
        }
        let waits = last.resume_at.is_some_and(|resume| Timestamp::from(resume) > now);
        return (!waits).then(|| Work::Resume(last.clone()));
    };
    if is_ending || is_counted_out(metric, known.count) {
        return None;
    }
    let interval = if Phase::of(&last.phase) == Phase::Error || metric.interval.is_empty() {
        RETRY
    } else {
        duration::parse(&metric.interval).ok()?
    };
    (now > after(finished.into(), interval)).then_some(Work::Start)
}

/// Whether a metric that was never measured may begin. One with a delay never begins in the first pass, which notes when
/// the run began.
fn is_past_delay(status: &AnalysisRunStatus, metric: &Metric, now: Timestamp) -> bool {
    if metric.initial_delay.is_empty() {
        return true;
    }
    let (Some(started), Ok(delay)) = (status.started_at, duration::parse(&metric.initial_delay)) else { return false };
    after(started.into(), delay) <= now
}

fn is_counted_out(metric: &Metric, count: i32) -> bool {
    assess::effective_count(metric).is_some_and(|wanted| i64::from(count) >= wanted)
}

fn after(time: Timestamp, span: SignedDuration) -> Timestamp {
    time.saturating_add(span).unwrap_or(Timestamp::MAX)
}

/// When something is due next, if time alone brings it about; it may have passed already.
pub fn next(status: &AnalysisRunStatus, metrics: &[Metric], now: Timestamp) -> Option<Timestamp> {
    metrics.iter().filter_map(|metric| next_of(status, metric, now)).min()
}

fn next_of(status: &AnalysisRunStatus, metric: &Metric, now: Timestamp) -> Option<Timestamp> {
    let known = result(status, &metric.name);
    if known.is_some_and(|known| Phase::of(&known.phase).is_over()) {
        return None;
    }
    let Some((known, last)) = known.and_then(|known| Some((known, known.measurements.last()?))) else {
        if metric.initial_delay.is_empty() {
            return None;
        }
        let started = status.started_at.map_or(now, Timestamp::from);
        return Some(after(started, duration::parse(&metric.initial_delay).ok()?));
    };
    let Some(finished) = last.finished_at else { return last.resume_at.map(Timestamp::from) };
    if is_counted_out(metric, known.count) {
        return None;
    }
    let interval = if Phase::of(&last.phase) == Phase::Error {
        RETRY
    } else if metric.interval.is_empty() {
        return None;
    } else {
        duration::parse(&metric.interval).ok()?
    };
    Some(after(finished.into(), interval))
}
