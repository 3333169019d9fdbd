//! One pass over an AnalysisRun on a cluster: what is due is measured, and what it came to is written down.
//!
//! Never decides: what is due, and what follows, is for [`crate::analysis`] to say.

use futures::future::join_all;
use jiff::Timestamp;

use super::{
    api::{Api, Error},
    pass::{announce_about, send},
    web::Web,
};
use crate::{
    analysis::{self, Look, Plan, Sample, Verdict, Work, unresolved},
    api::{
        self, AnalysisRun, Measurement, Metric,
        constants::{annotation, kind},
    },
    engine::{
        key::{Place, Resource},
        measure,
        observe::resource,
        write::Written,
    },
    kubernetes::value::Value,
    metric::{
        self, Ask, Heard, Settings, Talk,
        job::{self, Created},
    },
    model::secret::Secret,
    sync::bond::Bond,
};

/// What a pass over an AnalysisRun sees.
#[derive(Clone)]
pub struct Seen {
    /// When.
    pub now: Timestamp,
    /// The run.
    pub run: Value,
    /// Its Jobs.
    pub jobs: Vec<Value>,
    /// What the operator says about measuring.
    pub settings: Settings,
    /// The way to the network.
    pub web: Option<Web>,
}

/// Measures what is due, decides and writes it down; answers when to look again.
pub async fn pass(api: &Api, seen: &Seen, written: &mut Vec<Written>) -> Result<Option<Timestamp>, Error> {
    let run: AnalysisRun = api::read(&seen.run).object;
    let verdict = match analysis::look(&run, seen.now) {
        Look::Over(Some(end)) if end <= seen.now => {
            written.extend(send(api, &measure::delete_run(&seen.run)).await?);
            return Ok(None);
        }
        Look::Over(end) => return Ok(end),
        Look::Broken(problem) => analysis::broken(&run, problem),
        Look::Open(plan) => measured(api, seen, &run, &plan, written).await?,
    };
    forget_jobs(api, seen, &run, &verdict, written).await;
    if let Some(write) = measure::record(&seen.run, &run.status, &verdict.status) {
        written.extend(send(api, &write).await?);
    }
    for event in &verdict.events {
        announce_about(api, kind::ANALYSIS_RUN, &seen.run, event, seen.now).await;
    }
    Ok(measure::wake(&verdict, seen.now))
}

async fn measured(
    api: &Api,
    seen: &Seen,
    run: &AnalysisRun,
    plan: &Plan,
    written: &mut Vec<Written>,
) -> Result<Verdict, Error> {
    let (secrets, hosts) = match secrets(api, run, plan).await? {
        Ok(found) => found,
        Err(problem) => return Ok(analysis::broken(run, unresolved(problem))),
    };
    let wanted = plan.secrets(run);
    let bond = |index: &usize| {
        let (_, wanted) = wanted.get(*index)?;
        let hosts = hosts.get(*index)?.as_deref();
        Some(Bond { namespace: &run.metadata.namespace, name: &wanted.name, hosts })
    };
    let carried = plan.carried(run);
    let bonds: Vec<Vec<Bond<'_>>> = carried.iter().map(|indices| indices.iter().filter_map(bond).collect()).collect();
    let metrics = match plan.ready(run, &secrets) {
        Ok(metrics) => metrics,
        Err(problem) => return Ok(analysis::broken(run, problem)),
    };
    let tasks = plan.tasks.iter().zip(&metrics).zip(&bonds);
    let samples =
        join_all(tasks.map(|((task, metric), bonds)| sample(api, seen, run, metric, &task.work, bonds))).await;
    let mut taken = Vec::new();
    for outcome in samples {
        let (sample, write) = outcome?;
        written.extend(write);
        taken.push(sample);
    }
    Ok(analysis::decide(run, plan, taken, &secrets, seen.now))
}

/// Values of Secrets, and the hosts that each may be sent to.
type Values = (Vec<String>, Vec<Option<String>>);

/// The values of the Secrets that arguments ask for; or why one has none.
async fn secrets(api: &Api, run: &AnalysisRun, plan: &Plan) -> Result<Result<Values, String>, Error> {
    let (mut values, mut hosts) = Values::default();
    for (_, wanted) in plan.secrets(run) {
        let found = secret(api, &run.metadata.namespace, &wanted.name).await?;
        let named = |secret: &Value| secret.str_at(&["metadata", "annotations", annotation::HOSTS]).map(str::to_owned);
        match found.and_then(|secret| Ok((metric::secret_value(&secret, wanted)?, named(&secret)))) {
            Ok((value, named)) => {
                values.push(value);
                hosts.push(named);
            }
            Err(problem) => return Ok(Err(problem)),
        }
    }
    Ok(Ok((values, hosts)))
}

/// Measures for one task. The error is one that the server, or the way to it, may get over.
async fn sample(
    api: &Api,
    seen: &Seen,
    run: &AnalysisRun,
    metric: &Metric,
    work: &Work,
    carried: &[Bond<'_>],
) -> Result<(Sample, Option<Written>), Error> {
    let now = seen.now;
    let before = match work {
        Work::Start => Measurement::default(),
        Work::Resume(before) | Work::Terminate(before) => before.clone(),
    };
    let plain = |measurement: Measurement| Sample { measurement, ..Sample::default() };
    let mut heard = Heard::default();
    loop {
        let talk = Talk { run, metric, work, settings: &seen.settings, heard: &heard, now };
        match metric::ask(&talk) {
            Ask::Known(sample) => return Ok((*sample, None)),
            Ask::ReadSecret { namespace, name } => heard.secret = Some(secret(api, &namespace, &name).await?),
            Ask::ReadToken(file) => heard.token = Some(token(&file).await),
            Ask::Send(request) => {
                let answer = match (&seen.web, metric::check_hosts(&request, carried, seen.settings.secret_hosts)) {
                    (_, Err(refused)) => Err(refused),
                    (Some(web), Ok(())) => web.fetch(&request).await.map_err(|error| error.to_string()),
                    (None, Ok(())) => Err("there is no way to the network".to_owned()),
                };
                heard.answers.push(answer);
            }
            Ask::CreateJob(job) => {
                let (created, write) = create(api, &job).await?;
                return Ok((plain(job::begun(run, &job, &created, now)), write));
            }
            Ask::LookAtJob { namespace, name } => {
                let found = find(&seen.jobs, &namespace, &name);
                let pods = match found {
                    Some(job) if job::outcome(job).is_none() => pods(api, run, &namespace).await?,
                    Some(_) | None => Vec::new(),
                };
                return Ok((plain(job::resumed(&name, &before, found, &pods, now)), None));
            }
            Ask::DeleteJob { namespace, name } => {
                let deleted = match find(&seen.jobs, &namespace, &name) {
                    Some(job) => delete(api, job).await,
                    None => match api.object(&resource::jobs(), &Place::new(&namespace, &name)).await {
                        Ok(job) if job::is_of(run, &job, &seen.settings.jobs) => delete(api, &job).await,
                        Ok(_) => {
                            let problem = format!("the Job {namespace}/{name} is not of this run: it is left alone");
                            return Ok((plain(job::terminated(&before, Err(problem), now)), None));
                        }
                        Err(error) => Err(error),
                    },
                };
                let (deleted, write) = match deleted {
                    Ok(write) => (Ok(()), write),
                    Err(error) if error.is_refusal() => (Err(error.words().to_owned()), None),
                    Err(error) => return Err(error),
                };
                return Ok((plain(job::terminated(&before, deleted, now)), write));
            }
        }
    }
}

/// A Secret; or the words with which the server refuses it.
async fn secret(api: &Api, namespace: &str, name: &str) -> Result<Result<Value, String>, Error> {
    match api.object(&Resource::new("", "v1", "secrets"), &Place::new(namespace, name)).await {
        Ok(secret) => Ok(Ok(secret)),
        Err(error) if error.is_refusal() => Ok(Err(error.words().to_owned())),
        Err(error) => Err(error),
    }
}

/// A token in a file, read anew each time: whoever gives it out changes it.
async fn token(file: &str) -> Result<Secret, String> {
    let read = tokio::fs::read_to_string(file).await;
    read.map(Secret::new).map_err(|error| format!("the token in {file} cannot be read: {error}"))
}

fn find<'j>(jobs: &'j [Value], namespace: &str, name: &str) -> Option<&'j Value> {
    let text = |job: &Value, key: &str, wanted: &str| job.str_at(&["metadata", key]) == Some(wanted);
    jobs.iter().find(|job| text(job, "name", name) && text(job, "namespace", namespace))
}

/// Deletes a Job that was seen, and none that has taken its name since.
async fn delete(api: &Api, job: &Value) -> Result<Option<Written>, Error> {
    let place = crate::engine::cache::place_of(job);
    send(api, &measure::delete_job(&place.namespace, &place.name, Some(job))).await
}

/// Creates a Job. One that is there already was created by a pass that did not live to say so.
async fn create(api: &Api, job: &Value) -> Result<(Created, Option<Written>), Error> {
    let write = measure::create_job(job);
    match send(api, &write).await {
        Ok(done) => Ok((Created::Yes, done)),
        Err(error) if error.code() == Some(409) => {
            let place = crate::engine::cache::place_of(job);
            let existing = api.object(&resource::jobs(), &place).await?;
            let done = write.done(&existing);
            Ok((Created::Already(Box::new(existing)), done))
        }
        Err(error) if error.is_refusal() => Ok((Created::No(error.words().to_owned()), None)),
        Err(error) => Err(error),
    }
}

/// The pods of a run's Jobs. Asked for when somebody looks at a Job, rather than watched: there are few, and seldom.
async fn pods(api: &Api, run: &AnalysisRun, namespace: &str) -> Result<Vec<Value>, Error> {
    let selector = format!("{}%3D{}", api::constants::label::ANALYSIS_RUN_UID.replace('/', "%2F"), run.metadata.uid);
    let path = format!("{}?labelSelector={selector}", resource::pods().path(Some(namespace))?);
    Ok(api.get(&path).await?.list_at(&["items"]).to_vec())
}

/// Deletes the Jobs of measurements that are forgotten. One that cannot be deleted goes with its run.
async fn forget_jobs(api: &Api, seen: &Seen, run: &AnalysisRun, verdict: &Verdict, written: &mut Vec<Written>) {
    for (name, kept) in &verdict.trimmed {
        let is_job = run.spec.metrics.iter().any(|metric| metric.name == *name && metric.provider.job.is_some());
        let outdated = if is_job { job::outdated(run, seen.jobs.iter(), *kept) } else { Vec::new() };
        for job in outdated {
            match delete(api, job).await {
                Ok(done) => written.extend(done),
                Err(error) => tracing::warn!(%error, "an old Job of an analysis was not deleted"),
            }
        }
    }
}
