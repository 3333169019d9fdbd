//! What must never be recorded of an AnalysisRun, whatever was decided: an independent judge.
//!
//! Runs on every verdict, in production too. Shares no function with the decision and reads only status before and after.
//! Never repairs: a verdict that breaks a rule is refused.

use crate::api::{AnalysisRun, AnalysisRunStatus, MetricResult};

/// The phases that end a run or a metric.
const ENDS: [&str; 4] = ["Successful", "Failed", "Error", "Inconclusive"];

/// The rules that the next status of a run would break, each in a sentence.
pub fn check(run: &AnalysisRun, next: &AnalysisRunStatus) -> Vec<String> {
    let mut broken = Vec::new();
    let before = &run.status;
    if ENDS.contains(&before.phase.as_str()) && next.phase != before.phase {
        broken.push(format!("S44: the run is {} and would become {:?}", before.phase, next.phase));
    }
    if next.phase == "Successful" && !run.spec.terminate {
        let counts = next.metric_results.iter().filter(|result| !result.dry_run);
        let others = counts.filter(|result| result.phase != "Successful");
        broken.extend(others.map(|result| format!("S44: Successful, although {} is {:?}", result.name, result.phase)));
    }
    for before in &before.metric_results {
        match next.metric_results.iter().find(|next| next.name == before.name) {
            Some(next) => broken.extend(check_metric(run, before, next)),
            None => broken.push(format!("S46: the measurements of {} would be lost", before.name)),
        }
    }
    broken
}

fn check_metric(run: &AnalysisRun, before: &MetricResult, next: &MetricResult) -> Option<String> {
    let name = &before.name;
    let (then, now) = (taken(before), taken(next));
    if now < then {
        return Some(format!("S46: {name} would lose a measurement"));
    }
    if now > then + 1 {
        return Some(format!("S46: {name} would count more measurements than were taken"));
    }
    if run.spec.terminate && now > then {
        return Some(format!("S47: {name} would be measured although its run is terminated"));
    }
    if ENDS.contains(&before.phase.as_str()) && (now > then || next.phase != before.phase) {
        return Some(format!("S46: {name} is {} and would go on", before.phase));
    }
    None
}

/// How many measurements were begun.
fn taken(result: &MetricResult) -> i64 {
    let is_open = result.measurements.last().is_some_and(|last| last.finished_at.is_none());
    i64::from(result.count) + i64::from(result.error) + i64::from(is_open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, kubernetes::value::Value, value};

    #[track_caller]
    fn check(terminate: bool, before: Value, next: Value, expected: &[&str]) {
        let run = value!({"spec": {"terminate": terminate}, "status": before});
        let next: AnalysisRunStatus = api::read(&next).object;
        assert_eq!(super::check(&api::read(&run).object, &next), expected);
    }

    fn status(phase: &str, metric: &str, counts: [i64; 2]) -> Value {
        value!({"phase": phase, "metricResults": [
            {"name": "m", "phase": metric, "count": counts[0], "error": counts[1]}]})
    }

    #[test]
    fn s44_only_success_is_success() {
        let running = || status("Running", "Running", [1, 0]);
        check(false, running(), status("Successful", "Successful", [2, 0]), &[]);
        check(false, running(), status("Successful", "Error", [1, 1]), &["S44: Successful, although m is \"Error\""]);
        check(true, running(), status("Successful", "Running", [1, 0]), &[]);
        let mut dry = status("Successful", "Failed", [2, 0]);
        dry.set_at(&["metricResults"], value!([{"name": "m", "phase": "Failed", "count": 2, "dryRun": true}]));
        check(false, running(), dry, &[]);
        let failed = || status("Failed", "Failed", [1, 0]);
        let again = "S44: the run is Failed and would become \"Successful\"";
        check(
            false,
            failed(),
            status("Successful", "Failed", [1, 0]),
            &[again, "S44: Successful, although m is \"Failed\""],
        );
    }

    #[test]
    fn s46_s47_each_measurement_counts_once_and_none_begins_after_the_end() {
        let running = || status("Running", "Running", [1, 1]);
        check(false, running(), status("Running", "Running", [2, 1]), &[]);
        check(false, running(), status("Running", "Running", [1, 0]), &["S46: m would lose a measurement"]);
        check(false, running(), value!({"phase": "Running"}), &["S46: the measurements of m would be lost"]);
        let more = "S46: m would count more measurements than were taken";
        check(false, running(), status("Running", "Running", [2, 2]), &[more]);
        let late = "S47: m would be measured although its run is terminated";
        check(true, running(), status("Running", "Running", [2, 1]), &[late]);
        let over = status("Running", "Failed", [1, 1]);
        check(false, over, status("Running", "Failed", [2, 1]), &["S46: m is Failed and would go on"]);
    }
}
