//! A metric that is a Job: it succeeds if the Job does.
//!
//! The Job is named after the run, the metric and the number of the measurement, so that beginning a measurement twice
//! begins it once. Never creates, reads or deletes anything: the answers of the cluster are given.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{confined::confine, failed};
use crate::{
    analysis::Phase,
    api::{
        AnalysisRun, JobMetric, Measurement, Metric, Time,
        constants::{API_VERSION, annotation, kind, label},
    },
    kubernetes::{object, selector::Labels, status::Status, value::Value},
    value,
};

/// The measurement's note of the Job.
const JOB_NAME: &str = "job-name";
/// The measurement's note of where the Job is.
const JOB_NAMESPACE: &str = "job-namespace";
/// The longest name of a Job: it becomes a label of its pods.
const LONGEST: usize = 63;
/// Why a container of a Job will never run, whatever happens.
const HOPELESS: [&str; 3] = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"];

/// Where Jobs run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Their namespace; the run's if not given.
    pub namespace: Option<String>,
    /// Whether that is in another cluster.
    pub elsewhere: bool,
    /// Whether they may have what their runs say also where that is not the run's namespace.
    pub is_trusted: bool,
    /// The ServiceAccount of those in a namespace that is not the run's; that namespace's own if not given.
    pub account: Option<String>,
}

/// The Job of a new measurement; the error says what it must not have where it is to run.
pub fn build(run: &AnalysisRun, metric: &Metric, job: &JobMetric, place: &Place) -> Result<Value, String> {
    let metadata = &run.metadata;
    let namespace = place.namespace.as_deref().unwrap_or(&metadata.namespace);
    let mut built = value!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name(run, &metric.name), "namespace": namespace},
    });
    for part in ["labels", "annotations"] {
        if let Some(entries) = job.metadata.at(&[part]).filter(|entries| !entries.is_null()) {
            built.set_at(&["metadata", part], entries.clone());
        }
    }
    built.set_at(&["metadata", "labels", label::ANALYSIS_RUN_UID], metadata.uid.as_str());
    let notes = [
        (annotation::ANALYSIS_RUN_NAME, metadata.name.as_str()),
        (annotation::ANALYSIS_RUN_NAMESPACE, &metadata.namespace),
        (annotation::ANALYSIS_RUN_METRIC, &metric.name),
    ];
    for (key, text) in notes {
        built.set_at(&["metadata", "annotations", key], text);
    }
    if namespace == metadata.namespace && !place.elsewhere {
        let owner = value!({
            "apiVersion": API_VERSION,
            "kind": kind::ANALYSIS_RUN,
            "name": metadata.name.as_str(),
            "uid": metadata.uid.as_str(),
            "controller": true,
            "blockOwnerDeletion": true,
        });
        built.set_at(&["metadata", "ownerReferences"], Value::list([owner]));
    }
    let mut spec = job.spec.clone();
    if (namespace != metadata.namespace || place.elsewhere) && !place.is_trusted {
        confine(&mut spec, place.account.as_deref().unwrap_or("default"))?;
    }
    built.set_at(&["spec"], spec);
    // By this the pods of Jobs are told from all others.
    built.set_at(&["spec", "template", "metadata", "labels", label::ANALYSIS_RUN_UID], metadata.uid.as_str());
    Ok(built)
}

/// The name of the next Job of a metric, cut to what a label can hold.
fn name(run: &AnalysisRun, metric: &str) -> String {
    let known = run.status.metric_results.iter().find(|result| result.name == metric);
    let number = known.map_or(1, |known| i64::from(known.count) + i64::from(known.error) + 1);
    let (uid, number) = (&run.metadata.uid, number.to_string());
    let room = LONGEST.saturating_sub(uid.len() + number.len() + 2);
    let mut end = metric.len().min(room);
    while !metric.is_char_boundary(end) {
        end -= 1;
    }
    format!("{uid}.{}.{number}", &metric[..end])
}

/// What the cluster said when the Job was to be created.
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// It is there.
    Yes,
    /// There was one of that name; this one.
    Already(Box<Value>),
    /// It said no, in these words.
    No(String),
}

/// The measurement that begins with a Job.
pub fn begun(run: &AnalysisRun, job: &Value, created: &Created, now: Timestamp) -> Measurement {
    let text = |key: &str| job.str_at(&["metadata", key]).unwrap_or_default();
    let begun = Measurement {
        phase: Phase::Running.as_str().to_owned(),
        started_at: Some(Time::from(now)),
        ..Measurement::default()
    };
    let problem = match created {
        Created::Yes => None,
        Created::Already(existing) => {
            // A Job without an owner is somewhere else, where its name tells enough.
            let is_ours = job.list_at(&["metadata", "ownerReferences"]).is_empty()
                || object::controller(existing).as_deref() == Some(run.metadata.uid.as_str());
            (!is_ours).then(|| Status::already_exists("batch", "jobs", text("name")).message)
        }
        Created::No(words) => Some(words.clone()),
    };
    if let Some(problem) = problem {
        return failed(begun, problem, now);
    }
    let metadata = [(JOB_NAME, text("name")), (JOB_NAMESPACE, text("namespace"))];
    let metadata: BTreeMap<String, String> =
        metadata.into_iter().map(|(key, text)| (key.to_owned(), text.to_owned())).collect();
    // A Job may be over before anybody looks again.
    Measurement { metadata, resume_at: Some(Time::from(now)), ..begun }
}

/// The Job of a measurement of a run, if what its status says can be true: whoever may write a run may write its status.
/// Only a Job that the engine itself would have created is looked at or deleted.
pub fn own(
    run: &AnalysisRun,
    metric: &str,
    measurement: &Measurement,
    place: &Place,
) -> Result<(String, String), String> {
    let (namespace, name) = of(run, measurement)?;
    let is_allowed = namespace == run.metadata.namespace || place.namespace.as_ref() == Some(&namespace);
    let wanted = self::name(run, metric);
    if is_allowed && name == wanted {
        return Ok((namespace, name));
    }
    let shown: String = format!("{namespace}/{name}").chars().take(200).collect();
    Err(format!(
        "status names the Job {shown:?}, which is not the Job of this measurement ({wanted:?}): it is left alone"
    ))
}

/// Whether a Job carries the uid of a run, where the Jobs of that run are.
pub fn is_of(run: &AnalysisRun, job: &Value, place: &Place) -> bool {
    let namespace = job.str_at(&["metadata", "namespace"]).unwrap_or_default();
    let is_there = namespace == run.metadata.namespace || place.namespace.as_deref() == Some(namespace);
    is_there && job.str_at(&["metadata", "labels", label::ANALYSIS_RUN_UID]) == Some(run.metadata.uid.as_str())
}

/// The Job that the status of a measurement names: its namespace and name. The error is Argo Rollouts'.
pub fn of(run: &AnalysisRun, measurement: &Measurement) -> Result<(String, String), String> {
    let note = |key: &str| measurement.metadata.get(key).filter(|text| !text.is_empty());
    let name = note(JOB_NAME).ok_or_else(|| "job metadata reference missing".to_owned())?;
    Ok((note(JOB_NAMESPACE).unwrap_or(&run.metadata.namespace).clone(), name.clone()))
}

/// Whether a Job is over: well, or not. The last of its conditions that says so counts, as in Argo Rollouts.
pub fn outcome(job: &Value) -> Option<Phase> {
    let conditions = job.list_at(&["status", "conditions"]).iter().rev();
    conditions.filter_map(|condition| condition.str_at(&["type"])).find_map(|r#type| match r#type {
        "Complete" => Some(Phase::Successful),
        "Failed" => Some(Phase::Failed),
        _ => None,
    })
}

/// The measurement after another look at its Job, if that was found, and at its pods.
pub fn resumed(name: &str, before: &Measurement, job: Option<&Value>, pods: &[Value], now: Timestamp) -> Measurement {
    let Some(job) = job else {
        return failed(before.clone(), format!("job.batch \"{name}\" not found"), now);
    };
    let over = |phase: Phase, message: String| Measurement {
        phase: phase.as_str().to_owned(),
        message,
        finished_at: Some(Time::from(now)),
        ..before.clone()
    };
    if let Some(phase) = outcome(job) {
        return over(phase, before.message.clone());
    }
    let selector = job.at(&["spec", "selector"]).and_then(|selector| Labels::of(selector).ok());
    let is_its = |pod: &&Value| {
        let labels = pod.at(&["metadata", "labels"]).and_then(Value::as_map);
        selector.as_ref().is_some_and(|selector| selector.matches(labels))
    };
    if let Some(why) = pods.iter().filter(is_its).find_map(hopeless) {
        return over(Phase::Inconclusive, why);
    }
    let started = before.started_at.map_or(now, Timestamp::from);
    // The longer it has run, the longer it may run on.
    let wait = (2.0 * now.duration_since(started).as_secs_f64().max(0.0)).sqrt();
    let wait = SignedDuration::try_from_secs_f64(wait).unwrap_or_default();
    let resume_at = Time::from(now.saturating_add(wait).unwrap_or(Timestamp::MAX));
    Measurement { resume_at: Some(resume_at), ..before.clone() }
}

/// Why a pod will never run, if it will not.
fn hopeless(pod: &Value) -> Option<String> {
    let statuses = ["initContainerStatuses", "containerStatuses"];
    let containers = statuses.iter().flat_map(|statuses| pod.list_at(&["status", statuses]));
    containers.into_iter().find_map(|container| {
        let text = |path: &[&str]| container.str_at(path).unwrap_or_default();
        let reason = text(&["state", "waiting", "reason"]);
        HOPELESS.contains(&reason).then(|| {
            let (pod, name) = (pod.str_at(&["metadata", "name"]).unwrap_or_default(), text(&["name"]));
            let message = text(&["state", "waiting", "message"]);
            format!("Pod {pod}, container {name} has terminal error ({reason}): {message}\n")
        })
    })
}

/// The measurement whose Job was deleted, or was to be.
pub fn terminated(before: &Measurement, deleted: Result<(), String>, now: Timestamp) -> Measurement {
    match deleted {
        Err(problem) => failed(before.clone(), problem, now),
        Ok(()) => Measurement {
            phase: Phase::Inconclusive.as_str().to_owned(),
            finished_at: Some(Time::from(now)),
            ..before.clone()
        },
    }
}

/// The Jobs of a run that are no longer kept, oldest first. As in Argo Rollouts those of all metrics count together.
pub fn outdated<'j>(run: &AnalysisRun, jobs: impl Iterator<Item = &'j Value>, kept: usize) -> Vec<&'j Value> {
    let is_its =
        |job: &&Value| job.str_at(&["metadata", "labels", label::ANALYSIS_RUN_UID]) == Some(run.metadata.uid.as_str());
    let mut jobs: Vec<&Value> = jobs.filter(is_its).collect();
    jobs.sort_by_key(|job| job.str_at(&["metadata", "creationTimestamp"]).unwrap_or_default());
    jobs.truncate(jobs.len().saturating_sub(kept));
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, value};

    #[test]
    fn s46_the_same_measurement_has_the_same_job() {
        let metric: Metric = api::read(&value!({"name": "rate", "provider": {"job": {"spec": {}}}})).object;
        let job = metric.provider.job.clone().unwrap_or_default();
        let name = |count: i64| {
            let status = value!({"metricResults": [{"name": "rate", "count": count, "error": 1}]});
            let run = api::read(&value!({"metadata": {"uid": "u", "name": "r"}, "status": status})).object;
            let built = build(&run, &metric, &job, &Place::default()).unwrap();
            built.str_at(&["metadata", "name"]).unwrap().to_owned()
        };
        assert_eq!((name(0), name(0), name(1)), ("u.rate.2".into(), "u.rate.2".into(), "u.rate.3".into()));
    }

    #[test]
    fn s44_only_a_job_that_completed_is_a_success() {
        let now = Timestamp::from_second(1000).unwrap();
        let before = Measurement { started_at: Some(Time::from(now)), ..Measurement::default() };
        let job = |kind: &str| value!({"spec": {"selector": {"matchLabels": {"j": "1"}}}, "status": {"conditions": [{"type": kind}]}});
        let waiting = value!({"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ErrImagePull"}}}]});
        let pod = value!({"metadata": {"name": "p", "labels": {"j": "1"}}, "status": waiting});
        for (kind, pods, phase) in [
            ("Complete", vec![], "Successful"),
            ("Failed", vec![], "Failed"),
            ("Suspended", vec![pod.clone()], "Inconclusive"),
            ("Complete", vec![pod], "Successful"),
            ("Suspended", vec![], ""),
        ] {
            assert_eq!(resumed("j", &before, Some(&job(kind)), &pods, now).phase, phase, "{kind}");
        }
        assert_eq!(resumed("j", &before, None, &[], now).phase, "Error");
        assert_eq!(terminated(&before, Ok(()), now).phase, "Inconclusive");
    }

    #[test]
    fn sr13_only_a_job_in_its_runs_own_namespace_has_all_that_the_run_says() {
        let spec = value!({"template": {"spec": {"serviceAccountName": "tidegate", "hostNetwork": true,
            "containers": [{"name": "c", "securityContext": {"privileged": true}}]}}});
        let metric = value!({"name": "rate", "provider": {"job": {"spec": spec}}});
        let metric: Metric = api::read(&metric).object;
        let run = value!({"metadata": {"uid": "u", "name": "r", "namespace": "shop"}});
        let run: AnalysisRun = api::read(&run).object;
        let there = |namespace: &str| Place { namespace: Some(namespace.into()), ..Place::default() };
        for (place, is_made) in [
            (Place::default(), true),
            (there("shop"), true),
            (there("ops"), false),
            (Place { elsewhere: true, ..there("shop") }, false),
            (Place { is_trusted: true, ..there("ops") }, true),
        ] {
            let settings = crate::metric::Settings { jobs: place.clone(), ..crate::metric::Settings::default() };
            let (work, heard, now) =
                (crate::analysis::Work::Start, crate::metric::Heard::default(), Timestamp::UNIX_EPOCH);
            let talk = crate::metric::Talk {
                run: &run,
                metric: &metric,
                work: &work,
                settings: &settings,
                heard: &heard,
                now,
            };
            match crate::metric::ask(&talk) {
                crate::metric::Ask::CreateJob(job) => {
                    assert!(is_made, "{place:?}");
                    let pod = job.at(&["spec", "template", "spec"]).unwrap();
                    assert_eq!(pod.str_at(&["serviceAccountName"]), Some("tidegate"));
                }
                crate::metric::Ask::Known(sample) => {
                    assert!(!is_made, "{place:?}");
                    assert_eq!(sample.measurement.phase, "Error");
                    assert!(sample.measurement.message.contains("must not have spec.template.spec.hostNetwork"));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn sr13_a_status_names_no_job_but_that_of_its_measurement() {
        let metric: Metric = api::read(&value!({"name": "rate", "provider": {"job": {"spec": {}}}})).object;
        let run = value!({"metadata": {"uid": "u", "name": "r", "namespace": "attacker"}, "status": {"metricResults": [{"name": "rate"}]}});
        let run: AnalysisRun = api::read(&run).object;
        let shared = Place { namespace: Some("ops".into()), ..Place::default() };
        for (namespace, name, place, is_own) in [
            ("attacker", "u.rate.1", &Place::default(), true),
            ("", "u.rate.1", &Place::default(), true),
            ("ops", "u.rate.1", &shared, true),
            ("attacker", "u.rate.1", &shared, true),
            ("ops", "u.rate.1", &Place::default(), false),
            ("victim", "u.rate.1", &shared, false),
            ("victim", "payroll", &Place::default(), false),
            ("victim/jobs?a=", "x", &Place::default(), false),
            ("attacker", "payroll", &Place::default(), false),
            ("attacker", "u.rate.2", &Place::default(), false),
            ("attacker", "u.rate.1/../payroll", &Place::default(), false),
        ] {
            let metadata = value!({"job-name": name, "job-namespace": namespace});
            let measurement = api::read(&value!({"phase": "Running", "metadata": metadata})).object;
            assert_eq!(own(&run, &metric.name, &measurement, place).is_ok(), is_own, "{namespace}/{name}");
            let settings = crate::metric::Settings { jobs: place.clone(), ..crate::metric::Settings::default() };
            let (work, heard) = (crate::analysis::Work::Terminate(measurement), crate::metric::Heard::default());
            let now = Timestamp::UNIX_EPOCH;
            let talk = crate::metric::Talk {
                run: &run,
                metric: &metric,
                work: &work,
                settings: &settings,
                heard: &heard,
                now,
            };
            let deletes = matches!(crate::metric::ask(&talk), crate::metric::Ask::DeleteJob { .. });
            assert_eq!(deletes, is_own, "{namespace}/{name}");
        }
    }
}
