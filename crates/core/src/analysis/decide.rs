//! One pass over an AnalysisRun: [`look`] says what is due, somebody measures, [`decide`] says what it comes to.
//!
//! Never measures, and never sees a secret but to take it out of what people read.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{
    assess,
    phase::Phase,
    schedule::{self, Task, Work},
};
use crate::{
    api::{AnalysisRun, AnalysisRunStatus, Argument, Measurement, Metric, MetricResult, SecretKeyRef, Time},
    kubernetes::schema::regexp,
    model::{arguments, event::Event, parse},
};

/// How many measurements are kept if nothing is said.
const KEPT: usize = 10;
/// The most bytes of a value, a message or a note that are kept. It is judged before it is cut.
const TEXT: usize = 4096;
/// The most bytes of all of them in a run: an API server takes objects of 1.5 MiB.
const TEXTS: usize = 384 << 10;
/// What stands for the value of a Secret where nobody needs it.
const PLACEHOLDER: &str = "temp-for-secret";
/// Another one, by which a metric that holds the value is told from one that does not.
const MARK: &str = "mark-for-secret";
/// What people read in place of a secret.
pub const HIDDEN: &str = "*****";

/// What a run is in.
#[derive(Debug, Clone, PartialEq)]
pub enum Look {
    /// It is over. It is to be deleted then, if ever.
    Over(Option<Timestamp>),
    /// It can never be measured, for this reason.
    Broken(String),
    /// It is under way.
    Open(Plan),
}

/// What is to be measured, and how it will count.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The metrics, arguments filled in; secrets are not.
    pub metrics: Vec<Metric>,
    /// Those that do not count.
    pub dry_run: BTreeSet<String>,
    /// How many measurements are kept, where something is said.
    pub kept: BTreeMap<String, i32>,
    /// What is due.
    pub tasks: Vec<Task>,
}

/// Looks at a run: what is due.
pub fn look(run: &AnalysisRun, now: Timestamp) -> Look {
    if Phase::of(&run.status.phase).is_over() {
        return Look::Over(assess::end_of_life(run));
    }
    match plan(run, now) {
        Ok(plan) => Look::Open(plan),
        Err(problem) => Look::Broken(problem),
    }
}

fn plan(run: &AnalysisRun, now: Timestamp) -> Result<Plan, String> {
    let stand_in = |argument: &Argument| {
        if secret(argument).is_some() {
            return Argument { name: argument.name.clone(), value: Some(PLACEHOLDER.to_owned()), value_from: None };
        }
        argument.clone()
    };
    let given: Vec<Argument> = run.spec.args.iter().map(stand_in).collect();
    let metrics = resolve(&run.spec.metrics, &given)?;
    let invalid = |problem: String| format!("Analysis spec invalid: {problem}");
    let (dry_run, wrong_dry_run) = dry_run(run, &metrics);
    let (kept, wrong_kept) = kept(run, &metrics);
    let problem = parse::metrics_error(&metrics).or(wrong_dry_run).or(wrong_kept);
    problem.map_or(Ok(()), |problem| Err(invalid(problem)))?;
    let tasks = schedule::due(run, &metrics, now);
    Ok(Plan { metrics, dry_run, kept, tasks })
}

fn resolve(metrics: &[Metric], given: &[Argument]) -> Result<Vec<Metric>, String> {
    let resolved: Result<Vec<Metric>, String> =
        metrics.iter().map(|metric| arguments::resolve_metric(metric, given)).collect();
    resolved.map_err(unresolved)
}

/// What is said of arguments that cannot be filled in.
pub fn unresolved(problem: String) -> String {
    format!("Unable to resolve metric arguments: {problem}")
}

fn secret(argument: &Argument) -> Option<&SecretKeyRef> {
    argument.value_from.as_ref()?.secret_key_ref.as_ref()
}

/// The metrics that are measured but do not count; and what is wrong with the rules.
pub fn dry_run(run: &AnalysisRun, metrics: &[Metric]) -> (BTreeSet<String>, Option<String>) {
    let mut found = BTreeSet::new();
    for (index, rule) in run.spec.dry_run.iter().enumerate() {
        let names = matching(&rule.metric_name, metrics);
        if names.is_empty() {
            return (found, Some(format!("dryRun[{index}]: Rule didn't match any metric name(s)")));
        }
        found.extend(names);
    }
    (found, None)
}

/// How many measurements of each metric are kept, where something is said; and what is wrong with the rules.
pub fn kept(run: &AnalysisRun, metrics: &[Metric]) -> (BTreeMap<String, i32>, Option<String>) {
    let mut found = BTreeMap::new();
    for (index, rule) in run.spec.measurement_retention.iter().enumerate() {
        let names = matching(&rule.metric_name, metrics);
        if names.is_empty() {
            return (found, Some(format!("measurementRetention[{index}]: Rule didn't match any metric name(s)")));
        }
        found.extend(names.into_iter().map(|name| (name, rule.limit)));
    }
    (found, None)
}

/// The metrics that a pattern finds; one that is no regular expression finds none.
fn matching(pattern: &str, metrics: &[Metric]) -> Vec<String> {
    let Ok(pattern) = regexp::compile(pattern) else { return Vec::new() };
    metrics.iter().map(|metric| &metric.name).filter(|name| pattern.is_match(name)).cloned().collect()
}

impl Plan {
    /// The Secrets that must be read before anything is measured, each by argument.
    pub fn secrets<'r>(&self, run: &'r AnalysisRun) -> Vec<(&'r str, &'r SecretKeyRef)> {
        if self.tasks.is_empty() {
            return Vec::new();
        }
        let args = run.spec.args.iter();
        args.filter_map(|argument| Some((argument.name.as_str(), secret(argument)?))).collect()
    }

    /// For each task which of those Secrets its metric sends along, by their places in [`Plan::secrets`].
    pub fn carried(&self, run: &AnalysisRun) -> Vec<Vec<usize>> {
        let count = self.secrets(run).len();
        let stand_ins = |other: Option<usize>| -> Vec<String> {
            let text = |index| if other == Some(index) { MARK } else { PLACEHOLDER };
            (0..count).map(|index| text(index).to_owned()).collect()
        };
        let usual = self.ready(run, &stand_ins(None)).unwrap_or_default();
        let mut carried = vec![Vec::new(); self.tasks.len()];
        for index in 0..count {
            // A metric that is another one with another value holds the value, wherever that stands.
            let changed = self.ready(run, &stand_ins(Some(index))).unwrap_or_default();
            for (task, found) in carried.iter_mut().enumerate() {
                if usual.get(task) != changed.get(task) || usual.get(task).is_none() {
                    found.push(index);
                }
            }
        }
        carried
    }

    /// The metrics of the tasks with everything filled in; `secrets` are the values of those that were asked for, in the
    /// same order.
    pub fn ready(&self, run: &AnalysisRun, secrets: &[String]) -> Result<Vec<Metric>, String> {
        let mut values = secrets.iter();
        let fill = |argument: &Argument| match secret(argument) {
            Some(_) => Argument { value: values.next().cloned(), ..argument.clone() },
            None => argument.clone(),
        };
        let given: Vec<Argument> = run.spec.args.iter().map(fill).collect();
        let wanted: Vec<Metric> =
            self.tasks.iter().filter_map(|task| run.spec.metrics.get(task.index)).cloned().collect();
        resolve(&wanted, &given)
    }
}

/// What was measured for a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// The measurement as it is now.
    pub measurement: Measurement,
    /// What the provider adds to the metric.
    pub metadata: BTreeMap<String, String>,
}

/// What a pass came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What status will say.
    pub status: AnalysisRunStatus,
    /// The earliest moment at which time alone would change the answer.
    pub wake: Option<Timestamp>,
    /// What to announce once it is done, in this order.
    pub events: Vec<Event>,
    /// The metrics of which old measurements are forgotten, and how many are kept.
    pub trimmed: Vec<(String, usize)>,
}

/// A run that can never be measured says so.
pub fn broken(run: &AnalysisRun, problem: String) -> Verdict {
    let mut status = run.status.clone();
    Phase::Error.as_str().clone_into(&mut status.phase);
    status.message = problem;
    Verdict { status, wake: None, events: vec![completed(Phase::Error)], trimmed: Vec::new() }
}

fn completed(phase: Phase) -> Event {
    let message = format!("Analysis Completed. Result: {phase}");
    Event { warning: phase.is_bad(), reason: phase.run_reason(), message }
}

/// Absorbs what was measured, one sample for each task of the plan in the same order.
pub fn decide(run: &AnalysisRun, plan: &Plan, samples: Vec<Sample>, secrets: &[String], now: Timestamp) -> Verdict {
    let mut run = run.clone();
    // So that one measurement of each metric always fits.
    let room = TEXT.min(TEXTS / plan.metrics.len().max(1) / 4);
    for (task, mut sample) in plan.tasks.iter().zip(samples) {
        shorten(&mut sample, secrets, room);
        absorb(&mut run.status, task, sample, plan.dry_run.contains(&task.name), now);
    }
    let assessment = assess::run(&mut run, &plan.metrics, &plan.dry_run, now);
    let mut events = assessment.events;
    if Phase::of(&run.status.phase) != assessment.phase {
        assessment.phase.as_str().clone_into(&mut run.status.phase);
        run.status.message = assessment.message;
        if assessment.phase.is_over() {
            events.push(completed(assessment.phase));
            run.status.completed_at.get_or_insert(Time::from(now));
        }
    }
    let trimmed = trim(&mut run.status, plan);
    let wake = schedule::next(&run.status, &plan.metrics, now);
    Verdict { status: run.status, wake, events, trimmed }
}

fn absorb(status: &mut AnalysisRunStatus, task: &Task, sample: Sample, is_dry: bool, now: Timestamp) {
    let mut measurement = sample.measurement;
    let phase = Phase::of(&measurement.phase);
    if matches!(task.work, Work::Terminate(_)) && matches!(phase, Phase::Successful | Phase::Inconclusive) {
        "Metric Terminated".clone_into(&mut measurement.message);
    }
    let metadata = sample.metadata;
    if phase.is_over() {
        measurement.finished_at.get_or_insert(Time::from(now));
    }
    let place = status.metric_results.iter().position(|result| result.name == task.name);
    let place = place.unwrap_or_else(|| {
        status.metric_results.push(MetricResult {
            name: task.name.clone(),
            phase: Phase::Running.as_str().to_owned(),
            dry_run: is_dry,
            metadata,
            ..MetricResult::default()
        });
        status.metric_results.len() - 1
    });
    let Some(result) = status.metric_results.get_mut(place) else { return };
    count(result, phase);
    match (&task.work, result.measurements.last_mut()) {
        (Work::Resume(_) | Work::Terminate(_), Some(last)) => *last = measurement,
        (Work::Start, _) | (Work::Resume(_) | Work::Terminate(_), None) => result.measurements.push(measurement),
    }
}

fn count(result: &mut MetricResult, phase: Phase) {
    let (successes, errors) = (result.consecutive_success, result.consecutive_error);
    match phase {
        Phase::Unset | Phase::Pending | Phase::Running => return,
        Phase::Successful => result.successful += 1,
        Phase::Failed => result.failed += 1,
        Phase::Inconclusive => result.inconclusive += 1,
        Phase::Error => result.error += 1,
    }
    let is_error = phase == Phase::Error;
    if !is_error {
        result.count += 1;
    }
    result.consecutive_success = if phase == Phase::Successful { successes + 1 } else { 0 };
    result.consecutive_error = if is_error { errors + 1 } else { 0 };
}

/// Forgets old measurements; what was counted stays counted.
fn trim(status: &mut AnalysisRunStatus, plan: &Plan) -> Vec<(String, usize)> {
    let mut trimmed = Vec::new();
    for result in &mut status.metric_results {
        let given = plan.kept.get(&result.name).and_then(|limit| usize::try_from(*limit).ok());
        let limit = given.filter(|limit| *limit > 0).unwrap_or(KEPT);
        let surplus = result.measurements.len().saturating_sub(limit);
        if surplus > 0 && plan.metrics.iter().any(|metric| metric.name == result.name) {
            result.measurements.drain(..surplus);
            trimmed.push((result.name.clone(), limit));
        }
    }
    trimmed.extend(fit(status));
    trimmed
}

/// Forgets the oldest measurements of whoever has most, until all texts together fit: what an API server does not take any
/// more would be measured for ever.
fn fit(status: &mut AnalysisRunStatus) -> Vec<(String, usize)> {
    let length = |measurement: &Measurement| {
        let notes = measurement.metadata.iter().map(|(key, text)| key.len() + text.len()).sum::<usize>();
        measurement.value.len() + measurement.message.len() + notes
    };
    let of = |result: &MetricResult| result.measurements.iter().map(length).sum::<usize>();
    let mut sizes: Vec<usize> = status.metric_results.iter().map(of).collect();
    let mut forgot = BTreeSet::new();
    while sizes.iter().sum::<usize>() > TEXTS {
        let candidates =
            status.metric_results.iter_mut().enumerate().filter(|(_, result)| result.measurements.len() > 1);
        let largest = candidates.max_by_key(|(place, _)| sizes.get(*place).copied());
        let Some((place, result)) = largest else { break };
        let oldest = result.measurements.remove(0);
        if let Some(size) = sizes.get_mut(place) {
            *size = size.saturating_sub(length(&oldest));
        }
        forgot.insert(place);
    }
    let left = |place: usize| status.metric_results.get(place);
    forgot.into_iter().filter_map(|place| left(place).map(|of| (of.name.clone(), of.measurements.len()))).collect()
}

/// Takes secrets out of what is told of a measurement, then cuts texts that are longer than anybody reads: half a secret would
/// not be found.
fn shorten(sample: &mut Sample, secrets: &[String], room: usize) {
    let Sample { measurement, metadata } = sample;
    let Measurement { message, value, metadata: notes, .. } = measurement;
    for text in [message, value].into_iter().chain(notes.values_mut()).chain(metadata.values_mut()) {
        for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
            *text = text.replace(secret.as_str(), HIDDEN);
        }
        cut(text, room);
    }
}

fn cut(text: &mut String, room: usize) {
    if text.len() > room {
        let (all, end) = (text.len(), text.floor_char_boundary(room));
        text.truncate(end);
        text.push_str(&format!("… (the first {end} of {all} bytes)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, kubernetes::value::Value, value};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn run(spec: Value, status: Value) -> AnalysisRun {
        api::read(&value!({"metadata": {"name": "r", "uid": "u"}, "spec": spec, "status": status})).object
    }

    fn sample(phase: &str, message: &str) -> Sample {
        let measurement = Measurement { phase: phase.into(), message: message.into(), ..Measurement::default() };
        Sample { measurement, ..Sample::default() }
    }

    /// Measures whenever something is due; answers when, and how the run ended.
    fn play(spec: Value, answers: &[&str], end: i64) -> (Vec<i64>, String) {
        let (mut run, mut times, mut next) = (run(spec, value!({})), Vec::new(), answers.iter());
        for second in 0..end {
            let Look::Open(plan) = look(&run, at(second)) else { break };
            let samples = plan.tasks.iter().map(|_| {
                times.push(second);
                sample(next.next().copied().unwrap_or("Successful"), "")
            });
            let samples = samples.collect();
            run.status = decide(&run, &plan, samples, &[], at(second)).status;
        }
        (times, run.status.phase)
    }

    #[test]
    fn s46_measurements_come_in_their_time_and_number() {
        let metric = |metric: Value| {
            let mut metric = metric;
            metric.set_at(&["name"], "m");
            metric.set_at(&["provider", "web", "url"], "u");
            value!({"metrics": [metric]})
        };
        let counted = || metric(value!({"count": 3, "interval": "5s"}));
        for (spec, answers, times, phase) in [
            (metric(value!({})), vec![], vec![0], "Successful"),
            (counted(), vec![], vec![0, 6, 12], "Successful"),
            (counted(), vec!["Successful", "Failed"], vec![0, 6], "Failed"),
            (counted(), vec!["Error", "Successful"], vec![0, 11, 17, 23], "Successful"),
            (metric(value!({"initialDelay": "4s"})), vec![], vec![4], "Successful"),
            (metric(value!({"interval": "20s"})), vec![], vec![0, 21, 42], "Running"),
            (metric(value!({"consecutiveErrorLimit": 0})), vec!["Error"], vec![0], "Error"),
        ] {
            assert_eq!(play(spec.clone(), &answers, 50), (times, phase.to_owned()), "{spec}");
        }
    }

    #[test]
    fn secrets_do_not_show_and_are_asked_for_only_when_something_is_due() {
        let secret = value!({"name": "token", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
        let metric = value!({"name": "m", "provider": {"web": {"url": "{{args.token}}"}}});
        let run = run(value!({"args": [secret], "metrics": [metric]}), value!({}));
        let Look::Open(mut plan) = look(&run, at(0)) else { panic!() };
        assert_eq!(plan.secrets(&run).len(), 1);
        let filled = plan.ready(&run, &["canary-secret".into()]).unwrap();
        assert_eq!(filled[0].provider.web.as_ref().unwrap().url, "canary-secret");
        let mut told = vec![sample("Error", "canary-secret is wrong")];
        told[0].metadata.insert("ResolvedPrometheusQuery".into(), "up{t=\"canary-secret\"}".into());
        let verdict = decide(&run, &plan, told, &["canary-secret".into()], at(0));
        let result = &verdict.status.metric_results[0];
        assert_eq!(result.measurements[0].message, "***** is wrong");
        assert_eq!(result.metadata["ResolvedPrometheusQuery"], "up{t=\"*****\"}");
        plan.tasks.clear();
        assert!(plan.secrets(&run).is_empty());
    }

    #[test]
    fn sr19_each_metric_is_known_to_carry_the_secrets_that_it_names() {
        let secret = |name: &str| value!({"name": name, "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}});
        let web = |name: &str, web: Value| value!({"name": name, "provider": {"web": web}});
        let header = |text: &str| value!([{"key": "x", "value": text}]);
        let spec = value!({
            "args": [secret("a"), value!({"name": "plain", "value": "temp-for-secret"}), secret("b")],
            "metrics": [
                web("none", value!({"url": "http://h/{{args.plain}}"})),
                web("one", value!({"url": "http://h/{{args.a}}"})),
                web("other", value!({"url": "http://h", "headers": header("Bearer {{ args.b }}")})),
                web("both", value!({"url": "http://h", "method": "POST", "jsonBody": {"x": {"y": "{{args.a}}{{args.b}}"}}})),
                value!({"name": "query", "provider": {"prometheus": {"address": "http://p", "query": "up{a='{{args.a}}'}"}}}),
            ],
        });
        let run = run(spec, value!({}));
        let Look::Open(plan) = look(&run, at(0)) else { panic!() };
        assert_eq!(plan.carried(&run), [vec![], vec![0], vec![1], vec![0, 1], vec![0]]);
    }

    #[test]
    fn sr14_what_a_host_answers_does_not_outgrow_a_run() {
        let metrics: Vec<Value> = (0..40)
            .map(|number| value!({"name": format!("m{number}"), "count": 100, "interval": "1s", "provider": {"web": {"url": "u"}}}))
            .collect();
        let retention = value!([{"metricName": ".*", "limit": 1000}]);
        let mut run = run(value!({"metrics": metrics, "measurementRetention": retention}), value!({}));
        for second in 0..200 {
            let Look::Open(plan) = look(&run, at(second)) else { break };
            let large = || Sample {
                measurement: Measurement {
                    phase: "Successful".into(),
                    value: "é".repeat(500_000),
                    message: "m".repeat(500_000),
                    metadata: [("note".to_owned(), "n".repeat(500_000))].into(),
                    ..Measurement::default()
                },
                metadata: [("query".to_owned(), "q".repeat(500_000))].into(),
            };
            let samples = plan.tasks.iter().map(|_| large()).collect();
            run.status = decide(&run, &plan, samples, &[], at(second)).status;
            let length = api::write(&run).to_json().len();
            assert!(length < 1 << 20, "{length} bytes after {second} s");
        }
        assert_eq!(run.status.phase, "Successful");
        let result = &run.status.metric_results[0];
        assert_eq!((result.count, result.successful), (100, 100), "what was counted stays counted");
        let value = &result.measurements.last().unwrap().value;
        assert!(value.ends_with("é… (the first 2456 of 1000000 bytes)"), "{value}");
    }

    #[test]
    fn sr15_a_secret_is_hidden_before_a_value_is_cut() {
        let metric = value!({"name": "m", "provider": {"web": {"url": "u"}}});
        let run = run(value!({"metrics": [metric]}), value!({}));
        let Look::Open(plan) = look(&run, at(0)) else { panic!() };
        let long = Sample {
            measurement: Measurement {
                phase: "Successful".into(),
                value: "x".repeat(4090) + "canary-secret",
                ..Measurement::default()
            },
            ..Sample::default()
        };
        let status = decide(&run, &plan, vec![long], &["canary-secret".into()], at(0)).status;
        let value = &status.metric_results[0].measurements[0].value;
        assert!(value.ends_with("x*****"), "{value}");
    }

    #[test]
    fn what_can_never_be_measured_says_why_and_ends() {
        for (spec, words) in [
            (value!({"metrics": []}), "Analysis spec invalid: no metrics specified"),
            (
                value!({"metrics": [{"name": "{{args.x}}"}]}),
                "Unable to resolve metric arguments: failed to resolve {{args.x}}",
            ),
        ] {
            let run = run(spec, value!({}));
            let Look::Broken(problem) = look(&run, at(0)) else { panic!() };
            assert_eq!(problem, words);
            let verdict = broken(&run, problem);
            assert_eq!((verdict.status.phase.as_str(), verdict.events[0].reason), ("Error", "AnalysisRunError"));
        }
    }
}
