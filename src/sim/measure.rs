//! One pass over an AnalysisRun on the embedded cluster, by the functions that the daemon uses.
//!
//! Never decides, and never asks anybody outside: whoever plays says what the world answers.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::local::{Local, Stop};
use crate::{
    analysis::{self, Look, Plan, Sample, Verdict, Work, unresolved},
    api::{self, AnalysisRun, Measurement, Metric, constants::label},
    engine::{cache::place_of, key::Key, measure, observe::resource, write::Written},
    kubernetes::{
        status::Status,
        value::{Map, Value},
    },
    metric::{
        self, Ask, Heard, Response, Settings, Talk,
        job::{self, Created},
    },
};

/// Where stories find those who measure.
pub const WEB: &str = "http://web.test";

/// The namespace of the engine in stories.
pub const OWN: &str = "argo-rollouts";

/// What the web answers in a story: by the first word of the path, one answer after the other, the last for ever.
#[derive(Debug, Clone, Default)]
pub struct Web(BTreeMap<String, Vec<Value>>);

impl Web {
    /// Lets a path be answered anew.
    pub fn set(&mut self, answers: &Value) {
        for (path, answer) in answers.as_map().into_iter().flat_map(Map::iter) {
            let answers = answer.as_list().map_or_else(|| vec![answer.clone()], <[Value]>::to_vec);
            self.0.insert(path.to_string(), answers);
        }
    }

    fn answer(&mut self, url: &str) -> Result<Response, String> {
        let path = url.strip_prefix(WEB).unwrap_or_default().trim_start_matches('/');
        let word = path.split(['?', '/']).next().unwrap_or_default();
        let answers = self.0.get_mut(word).ok_or_else(|| format!("nobody listens at {url}"))?;
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers.first().cloned().unwrap_or_default() };
        let code = answer.int_at(&["status"]).and_then(|code| u16::try_from(code).ok());
        let body = answer.get("body").filter(|_| code.is_some()).unwrap_or(&answer);
        let body = body.as_str().map_or_else(|| body.to_json(), str::to_owned);
        Ok(Response { code: code.unwrap_or(200), body: body.into_bytes() })
    }
}

/// How measurements end in a forecast, in which nobody is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlook {
    /// All succeed.
    Succeeds,
    /// Those of this AnalysisRun fail.
    Fails(String),
}

impl Outlook {
    /// The measurement of a metric; `None` if a Job is to be run for it.
    fn sample(&self, run: &AnalysisRun, metric: &Metric, now: Timestamp) -> Option<Sample> {
        let fails = matches!(self, Outlook::Fails(name) if *name == run.metadata.name);
        if !fails && metric.provider.job.is_some() {
            return None;
        }
        let (phase, value) = if fails { ("Failed", "assumed to fail") } else { ("Successful", "assumed to succeed") };
        let measurement = Measurement {
            phase: phase.to_owned(),
            value: value.to_owned(),
            started_at: Some(now.into()),
            finished_at: Some(now.into()),
            ..Measurement::default()
        };
        Some(Sample { measurement, ..Sample::default() })
    }
}

impl Local {
    /// Measures what is due, decides and writes it down; answers when to look again.
    pub(super) fn measure(&mut self, key: &Key, written: &mut Vec<Written>) -> Result<Option<Timestamp>, Stop> {
        let now = self.now();
        let run = self.state.cache.get(&resource::runs(), &key.place).cloned();
        let is_leaving = |run: &Value| run.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
        let Some(seen) = run.filter(|run| !is_leaving(run)) else { return Ok(None) };
        let run: AnalysisRun = api::read(&seen).object;
        let verdict = match analysis::look(&run, now) {
            Look::Over(Some(end)) if end <= now => {
                written.extend(self.send(&measure::delete_run(&seen))?);
                return Ok(None);
            }
            Look::Over(end) => return Ok(end),
            Look::Broken(problem) => analysis::broken(&run, problem),
            Look::Open(plan) => self.measured(&seen, &run, &plan, written)?,
        };
        self.forget_jobs(&seen, &run, &verdict, written)?;
        if let Some(write) = measure::record(&seen, &run.status, &verdict.status) {
            written.extend(self.send(&write)?);
        }
        self.told.extend(verdict.events.iter().map(|event| (key.place.clone(), event.clone())));
        Ok(measure::wake(&verdict, now))
    }

    fn measured(
        &mut self,
        seen: &Value,
        run: &AnalysisRun,
        plan: &Plan,
        written: &mut Vec<Written>,
    ) -> Result<Verdict, Stop> {
        let secrets = match self.secrets(run, plan) {
            Ok(secrets) => secrets,
            Err(problem) => return Ok(analysis::broken(run, unresolved(problem))),
        };
        let metrics = match plan.ready(run, &secrets) {
            Ok(metrics) => metrics,
            Err(problem) => return Ok(analysis::broken(run, problem)),
        };
        let mut samples = Vec::new();
        for (task, metric) in plan.tasks.iter().zip(&metrics) {
            samples.push(self.sample(seen, run, metric, &task.work, written)?);
        }
        Ok(analysis::decide(run, plan, samples, &secrets, self.now()))
    }

    fn secrets(&self, run: &AnalysisRun, plan: &Plan) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        for (_, wanted) in plan.secrets(run) {
            if self.outlook.is_some() {
                // Secrets are seldom in git, and nobody is asked.
                values.push(String::new());
                continue;
            }
            let secret = self.secret(&run.metadata.namespace, &wanted.name)?;
            values.push(metric::secret_value(&secret, wanted)?);
        }
        Ok(values)
    }

    fn secret(&self, namespace: &str, name: &str) -> Result<Value, String> {
        let secret = self.store.get("", "secrets", namespace, name);
        secret.map(|secret| secret.value.clone()).ok_or_else(|| Status::not_found("", "secrets", name).message)
    }

    fn sample(
        &mut self,
        seen: &Value,
        run: &AnalysisRun,
        metric: &Metric,
        work: &Work,
        written: &mut Vec<Written>,
    ) -> Result<Sample, Stop> {
        let now = self.now();
        if let Some(sample) = self.outlook.as_ref().and_then(|outlook| outlook.sample(run, metric, now)) {
            return Ok(sample);
        }
        let before = match work {
            Work::Start => Measurement::default(),
            Work::Resume(before) | Work::Terminate(before) => before.clone(),
        };
        let settings = Settings { namespace: OWN.to_owned(), ..Settings::default() };
        let mut heard = Heard::default();
        let ask = loop {
            match metric::ask(&Talk { run, metric, work, settings: &settings, heard: &heard, now }) {
                Ask::ReadSecret { namespace, name } => heard.secret = Some(self.secret(&namespace, &name)),
                Ask::ReadToken(file) => heard.token = Some(Err(format!("there is no file {file}"))),
                Ask::Send(request) => heard.answers.push(self.web.answer(&request.url)),
                other => break other,
            }
        };
        let measurement = match ask {
            Ask::Known(sample) => return Ok(*sample),
            Ask::ReadSecret { .. } | Ask::ReadToken(_) | Ask::Send(_) => Measurement::default(),
            Ask::CreateJob(job) => {
                let created = self.create_job(&job, written)?;
                job::begun(run, &job, &created, now)
            }
            Ask::LookAtJob { namespace, name } => {
                let jobs = measure::jobs(&self.state.cache, seen, &job::Place::default());
                let pods = self.store.list("", "pods", &namespace).map(|pod| pod.value.clone());
                let is_its = |pod: &Value| {
                    pod.str_at(&["metadata", "labels", label::ANALYSIS_RUN_UID]) == Some(run.metadata.uid.as_str())
                };
                let pods: Vec<Value> = pods.filter(is_its).collect();
                let found = jobs.iter().find(|job| place_of(job).name == name.as_str());
                job::resumed(&name, &before, found, &pods, now)
            }
            Ask::DeleteJob { namespace, name } => {
                let jobs = measure::jobs(&self.state.cache, seen, &job::Place::default());
                let found = jobs.iter().find(|job| place_of(job).name == name.as_str());
                written.extend(self.send(&measure::delete_job(&namespace, &name, found))?);
                job::terminated(&before, Ok(()), now)
            }
        };
        Ok(Sample { measurement, ..Sample::default() })
    }

    /// Creates a Job. One that is there already was created by a pass that did not live to say so.
    fn create_job(&mut self, job: &Value, written: &mut Vec<Written>) -> Result<Created, Stop> {
        let (place, write) = (place_of(job), measure::create_job(job));
        if let Some(existing) = self.store.get("batch", "jobs", &place.namespace, &place.name) {
            let existing = existing.value.clone();
            written.extend(write.done(&existing));
            return Ok(Created::Already(Box::new(existing)));
        }
        match self.send(&write) {
            Ok(done) => {
                written.extend(done);
                Ok(Created::Yes)
            }
            Err(Stop::Impossible(why)) => Ok(Created::No(why)),
            Err(stop) => Err(stop),
        }
    }

    fn forget_jobs(
        &mut self,
        seen: &Value,
        run: &AnalysisRun,
        verdict: &Verdict,
        written: &mut Vec<Written>,
    ) -> Result<(), Stop> {
        let jobs = measure::jobs(&self.state.cache, seen, &job::Place::default());
        for (name, kept) in &verdict.trimmed {
            let is_job = run.spec.metrics.iter().any(|metric| metric.name == *name && metric.provider.job.is_some());
            let outdated = if is_job { job::outdated(run, jobs.iter(), *kept) } else { Vec::new() };
            for job in outdated {
                let place = place_of(job);
                written.extend(self.send(&measure::delete_job(&place.namespace, &place.name, Some(job)))?);
            }
        }
        Ok(())
    }
}
