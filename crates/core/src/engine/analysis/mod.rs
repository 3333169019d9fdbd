//! The machine of AnalysisRuns; here what a pass needs out of what is known, and the requests that follow.
//!
//! What it decides is [`crate::analysis`]'s. Never sends anything.

mod machine;

use jiff::{SignedDuration, Timestamp};

pub use self::machine::{AnalysisMachine, Outlook};

use super::{
    cache::{Cache, place_of, version_of},
    key::{Key, Machine, ObjectKey, Place, Resource},
    resource,
    write::{Verb, Write},
};
use crate::{
    analysis::{Phase, Verdict},
    api::{self, AnalysisRun, AnalysisRunStatus, RunSummary},
    kubernetes::{
        patch,
        value::{Text, Value},
    },
    metric::job,
    rollout::diff::merge_patch,
    value,
};

/// How soon a measurement that is under way is looked at again, if nothing is heard of it.
const AGAIN: SignedDuration = SignedDuration::from_secs(1);
/// What is due at a moment is due right after it.
const MOMENT: SignedDuration = SignedDuration::from_millis(1);

/// The key of the AnalysisRun at a place.
pub fn subject(place: &Place) -> Key {
    Key { machine: Machine::Analysis, place: place.clone() }
}

/// Whether a run is over.
pub fn is_over(run: &Value) -> bool {
    Phase::of(run.str_at(&["status", "phase"]).unwrap_or_default()).is_over()
}

/// What a run needs to be watched while it is under way: Jobs, if it has such metrics.
pub fn needs(run: &Value) -> Option<Resource> {
    let mut metrics = run.list_at(&["spec", "metrics"]).iter();
    let has_job = metrics.any(|metric| metric.at(&["provider", "job"]).is_some_and(|job| !job.is_null()));
    (has_job && !is_over(run)).then(resource::jobs)
}

/// The Jobs of a run.
pub fn jobs(cache: &Cache, run: &Value, place: &job::Place) -> Vec<Value> {
    let run: AnalysisRun = api::read(run).object;
    // An owner and a label are soon written, by somebody in another namespace as well.
    let is_its = |job: &&Value| job::is_of(&run, job, place);
    let own: Vec<Value> = cache.children(&resource::jobs(), &run.metadata.uid).filter(is_its).cloned().collect();
    // Those in a namespace of their own have no owner.
    if own.is_empty() { cache.all(&resource::jobs()).filter(is_its).cloned().collect() } else { own }
}

/// Whom a change of a run concerns beside itself: whether the one who waits for it would decide otherwise.
pub fn is_news(before: Option<&Value>, after: Option<&Value>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return true };
    let paths: [&[&str]; 4] =
        [&["status", "phase"], &["status", "message"], &["spec", "terminate"], &["metadata", "deletionTimestamp"]];
    paths.iter().any(|path| before.at(path) != after.at(path))
}

/// When to look again: never at a moment that has passed, or time would stand still.
pub fn wake(verdict: &Verdict, now: Timestamp) -> Option<Timestamp> {
    let is_open = verdict.status.metric_results.iter().any(|result| {
        let last = result.measurements.last();
        !Phase::of(&result.phase).is_over() && last.is_some_and(|last| last.finished_at.is_none())
    });
    // What is under way tells when it is over; it is only asked in case that was not heard.
    let least = if is_open { AGAIN } else { MOMENT };
    verdict.wake.map(|wake| wake.max(now.saturating_add(least).unwrap_or(Timestamp::MAX)))
}

fn key(run: &Value) -> ObjectKey {
    ObjectKey { resource: resource::runs(), place: place_of(run) }
}

fn uid(object: &Value) -> Text {
    object.at(&["metadata", "uid"]).and_then(Value::as_text).cloned().unwrap_or_default()
}

/// The request that makes status say what a verdict wants it to, if it does not: on the version that was seen, so that a
/// measurement is never counted twice.
pub fn record(run: &Value, before: &AnalysisRunStatus, after: &AnalysisRunStatus) -> Option<Write> {
    let seen = run.get("status").cloned().unwrap_or_else(Value::object);
    let mut said = api::write(after);
    // Fields that are not ours stay as they are.
    let change = merge_patch(&api::write(before), &said).unwrap_or_else(Value::object);
    // Printed as Go prints it, but nothing to tell: no metric has ended.
    if after.run_summary == RunSummary::default() {
        said.remove_at(&["runSummary"]);
    }
    let wanted = patch::merge(&patch::merge(&seen, &change), &said);
    let change = merge_patch(&seen, &wanted)?;
    let mut body = value!({"metadata": {"uid": uid(run)}});
    if let Some(version) = run.at(&["metadata", "resourceVersion"]) {
        body.set_at(&["metadata", "resourceVersion"], version.clone());
    }
    body.set_at(&["status"], change);
    Some(Write { object: key(run), subresource: "", verb: Verb::Patch, body })
}

/// The request that deletes a run.
pub fn delete_run(run: &Value) -> Write {
    let uid = uid(run);
    let body = value!({"preconditions": {"uid": uid.clone()}, "propagationPolicy": "Background"});
    Write { object: key(run), subresource: "", verb: Verb::Delete(uid, version_of(run)), body }
}

/// The request that creates a Job.
pub fn create_job(job: &Value) -> Write {
    let object = ObjectKey { resource: resource::jobs(), place: place_of(job) };
    Write { object, subresource: "", verb: Verb::Create, body: job.clone() }
}

/// The request that deletes a Job and its pods.
pub fn delete_job(namespace: &str, name: &str, seen: Option<&Value>) -> Write {
    let mut body = value!({"propagationPolicy": "Foreground"});
    let known = seen.map(uid).unwrap_or_default();
    if !known.is_empty() {
        body.set_at(&["preconditions", "uid"], known.clone());
    }
    let object = ObjectKey { resource: resource::jobs(), place: Place::new(namespace, name) };
    Write { object, subresource: "", verb: Verb::Delete(known, seen.map_or(0, version_of)), body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Measurement, MetricResult, Time};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn time_never_stands_still() {
        let status = |finished: Option<i64>| AnalysisRunStatus {
            metric_results: vec![MetricResult {
                phase: "Running".into(),
                measurements: vec![Measurement {
                    finished_at: finished.map(|millis| Time::from(at(millis))),
                    ..Measurement::default()
                }],
                ..MetricResult::default()
            }],
            ..AnalysisRunStatus::default()
        };
        for (finished, wanted, expected) in [
            (None, Some(0), Some(6000)),
            (None, Some(9000), Some(9000)),
            (Some(1000), Some(5000), Some(5001)),
            (Some(1000), Some(7000), Some(7000)),
            (Some(1000), None, None),
        ] {
            let verdict =
                Verdict { status: status(finished), wake: wanted.map(at), events: Vec::new(), trimmed: Vec::new() };
            assert_eq!(wake(&verdict, at(5000)), expected.map(at));
        }
    }

    #[test]
    fn a_record_names_what_differs_and_leaves_what_is_not_ours() {
        let run = value!({"metadata": {"name": "r", "uid": "u", "resourceVersion": "7"}, "status": {"x": 1, "phase": "Running"}});
        let before: AnalysisRunStatus = api::read(run.get("status").unwrap()).object;
        let after = AnalysisRunStatus { phase: "Failed".into(), ..before.clone() };
        let write = record(&run, &before, &after).unwrap();
        let expected = value!({"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"phase": "Failed"}});
        assert_eq!(write.body, expected);
        let said = value!({"metadata": {}, "status": {"phase": "Failed", "x": 1}});
        assert_eq!(record(&said, &after, &after), None);
    }

    #[test]
    fn a_rollout_hears_of_what_would_change_its_mind() {
        let run = |phase: &str, count: i64| value!({"status": {"phase": phase, "runSummary": {"count": count}}});
        assert!(!is_news(Some(&run("Running", 1)), Some(&run("Running", 2))));
        assert!(is_news(Some(&run("Running", 1)), Some(&run("Failed", 1))));
        assert!(is_news(None, Some(&run("", 0))) && is_news(Some(&run("", 0)), None));
    }
}
