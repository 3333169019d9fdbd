//! The machine of AnalysisRuns: samples to a phase.
//!
//! What is due is read first, metric by metric and round by round: Secrets, tokens, answers, Jobs and their pods. A Job is an
//! action: the verdict takes for granted that it can be made, and is put right if the server refuses.

use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};

use super::{create_job, delete_job, delete_run, jobs, needs, record, wake};
use crate::{
    analysis::{self, Look, Plan, Sample, Work, unresolved},
    api::{
        self, AnalysisRun, AnalysisRunStatus, Measurement, Metric, SecretKeyRef,
        constants::{annotation, kind, label},
    },
    engine::{
        cache::place_of,
        key::{self, ObjectKey, Place, Resource},
        machine::{Begin, Done, Known, Machine, Observation, Refused, Then},
        resource,
        world::{Announcement, Found, Live, Read, Refusal},
        write::Write,
    },
    kubernetes::value::Value,
    metric::{
        self, Ask, Heard, Settings, Talk,
        job::{self, Created},
    },
    model::event::Event,
    sync::bond::Bond,
};

/// The machine of AnalysisRuns.
#[derive(Debug)]
pub struct AnalysisMachine;

/// How measurements end in a forecast, in which no provider is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlook {
    /// All succeed.
    Succeeds,
    /// Those of this AnalysisRun fail.
    Fails(String),
}

/// All that was read for one decision about an AnalysisRun. What may be secret is left out of the record.
#[derive(Debug, Clone, Serialize)]
pub struct Case {
    /// When.
    pub now: Timestamp,
    /// The run.
    pub run: Value,
    /// Its Jobs.
    pub jobs: Vec<Value>,
    #[serde(skip)]
    parsed: AnalysisRun,
    #[serde(skip)]
    look: Look,
    #[serde(skip)]
    settings: Settings,
    #[serde(skip)]
    outlook: Option<Outlook>,
    /// The values of the Secrets that arguments ask for, in the order of the plan; or why one has none.
    #[serde(skip)]
    secrets: Vec<Result<Argument, String>>,
    /// What was heard for each task of the plan.
    #[serde(skip)]
    talks: Vec<Conversation>,
    /// What is being read, and for which task; for none if it is a Secret of an argument.
    #[serde(skip)]
    asked: Vec<(Option<usize>, Want)>,
}

/// The value of a Secret that an argument asks for.
#[derive(Debug, Clone, Default)]
struct Argument {
    value: String,
    /// The hosts that it may be sent to, as the Secret names them.
    hosts: Option<String>,
}

/// What was heard for one measurement.
#[derive(Debug, Clone, Default)]
struct Conversation {
    heard: Heard,
    /// The Job as the server has it; or its words.
    job: Option<Result<Live, Absent>>,
    pods: Option<Vec<Value>>,
}

/// A Job that was not read.
#[derive(Debug, Clone)]
struct Absent {
    words: String,
}

/// What a read is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Secret,
    Token,
    Answer,
    Job,
    Pods,
}

/// A read that is due, what it is for, and for which task; for none if it is a Secret of an argument.
type Due = (Option<usize>, Want, Read);

/// What was seen, and what it means.
#[derive(Debug)]
pub struct View {
    now: Timestamp,
    object: Value,
    run: AnalysisRun,
    jobs: Vec<Value>,
    standing: Standing,
}

/// What the run is in.
#[derive(Debug)]
enum Standing {
    /// It is over, and to be deleted then, if ever.
    Over(Option<Timestamp>),
    /// It can never be measured, for this reason.
    Broken(String),
    /// It is under way: what each task of the plan came to.
    Open { plan: Plan, taken: Vec<Taken>, secrets: Vec<String> },
}

/// What a task came to.
#[derive(Debug, Clone)]
enum Taken {
    /// A sample.
    Sample(Sample),
    /// A measurement that begins with this Job.
    Begins(Value),
    /// A measurement that ends with the deletion of this Job.
    Ends(Value, Measurement),
}

/// What was decided.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// What status will say; `None` leaves it as it is.
    pub status: Option<AnalysisRunStatus>,
    /// The earliest moment at which time alone would change the answer.
    pub wake: Option<Timestamp>,
    /// What to announce once it is done, in this order.
    pub events: Vec<Event>,
    /// The metrics of which old measurements are forgotten, and how many are kept.
    pub trimmed: Vec<(String, usize)>,
    /// The samples that this is about.
    #[serde(skip)]
    samples: Vec<Sample>,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Creates the Job of a task.
    CreateJob(usize, Value),
    /// Deletes a Job: the one of a task, or one of a measurement that is forgotten.
    DeleteJob(Option<usize>, Value),
    /// Deletes the run.
    DeleteRun,
}

impl Machine for AnalysisMachine {
    const KEY: key::Machine = key::Machine::Analysis;
    const KIND: &'static str = kind::ANALYSIS_RUN;
    type Case = Case;
    type View = View;
    type Verdict = Verdict;
    type Action = Action;

    fn begin(known: &Known<'_>, place: &Place) -> Begin<Case> {
        let is_leaving = |run: &&Value| run.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
        let run = known.state.cache.get(&resource::runs(), place).filter(|run| !is_leaving(run));
        let Some(run) = run.cloned() else { return Begin::Gone };
        let needed: Vec<Resource> = needs(&run).into_iter().collect();
        if !needed.iter().all(|needed| known.state.cache.is_listed(needed)) {
            return Begin::Follow(needed);
        }
        let settings = known.settings.measuring.clone();
        let parsed: AnalysisRun = api::read(&run).object;
        let look = analysis::look(&parsed, known.now);
        let tasks = match &look {
            Look::Open(plan) => plan.tasks.len(),
            Look::Over(_) | Look::Broken(_) => 0,
        };
        Begin::Case(Case {
            now: known.now,
            jobs: jobs(&known.state.cache, &run, &settings.jobs),
            run,
            parsed,
            look,
            settings,
            outlook: known.settings.outlook.clone(),
            secrets: Vec::new(),
            talks: vec![Conversation::default(); tasks],
            asked: Vec::new(),
        })
    }

    fn look(case: &mut Case) -> Observation<View> {
        let standing = match &case.look {
            Look::Over(end) => Standing::Over(*end),
            Look::Broken(problem) => Standing::Broken(problem.clone()),
            Look::Open(plan) => {
                let (standing, reads) = case.measured(plan);
                case.asked = reads.iter().map(|(task, want, _)| (*task, *want)).collect();
                match standing {
                    Some(standing) => standing,
                    None => return Observation::Missing(reads.into_iter().map(|(_, _, read)| read).collect()),
                }
            }
        };
        Observation::Complete(View {
            now: case.now,
            object: case.run.clone(),
            run: case.parsed.clone(),
            jobs: case.jobs.clone(),
            standing,
        })
    }

    fn absorb(case: &mut Case, found: Vec<Found>) {
        for ((task, want), found) in std::mem::take(&mut case.asked).into_iter().zip(found) {
            match task.and_then(|task| case.talks.get_mut(task)) {
                Some(talk) => talk.absorb(want, found),
                None => case.take_secret(found),
            }
        }
    }

    fn decide(view: &View) -> Verdict {
        match &view.standing {
            Standing::Over(end) => {
                let wake = end.filter(|end| *end > view.now);
                Verdict { status: None, wake, events: Vec::new(), trimmed: Vec::new(), samples: Vec::new() }
            }
            Standing::Broken(problem) => {
                let verdict = analysis::broken(&view.run, problem.clone());
                Verdict::of(verdict, Vec::new(), view.now)
            }
            Standing::Open { taken, .. } => {
                let sample = |taken: &Taken| match taken {
                    Taken::Sample(sample) => sample.clone(),
                    Taken::Begins(job) => plain(job::begun(&view.run, job, &Created::Yes, view.now)),
                    Taken::Ends(_, before) => plain(job::terminated(before, Ok(()), view.now)),
                };
                view.verdict(taken.iter().map(sample).collect())
            }
        }
    }

    fn diff(view: &View, verdict: &Verdict) -> Vec<Action> {
        let taken = match &view.standing {
            Standing::Over(Some(end)) if *end <= view.now => return vec![Action::DeleteRun],
            Standing::Over(_) | Standing::Broken(_) => return Vec::new(),
            Standing::Open { taken, .. } => taken.iter().enumerate(),
        };
        let tasks = taken.filter_map(|(task, taken)| match taken {
            Taken::Sample(_) => None,
            Taken::Begins(job) => Some(Action::CreateJob(task, job.clone())),
            Taken::Ends(job, _) => Some(Action::DeleteJob(Some(task), job.clone())),
        });
        let is_job = |name: &str| {
            let mut metrics = view.run.spec.metrics.iter();
            metrics.any(|metric| metric.name == name && metric.provider.job.is_some())
        };
        let trimmed = verdict.trimmed.iter().filter(|(name, _)| is_job(name));
        let outdated = trimmed.flat_map(|(_, kept)| job::outdated(&view.run, view.jobs.iter(), *kept));
        tasks.chain(outdated.map(|job| Action::DeleteJob(None, job.clone()))).collect()
    }

    fn check(view: &View, verdict: &Verdict, actions: &[Action]) -> Vec<String> {
        let status = verdict.status.iter().flat_map(|status| analysis::invariant::check(&view.run, status));
        // Whoever may write a run may write its status, and with it the name of any Job.
        let is_others = |job: &Value| {
            job.str_at(&["metadata", "labels", label::ANALYSIS_RUN_UID]) != Some(view.run.metadata.uid.as_str())
        };
        let jobs = actions.iter().filter_map(|action| match action {
            Action::CreateJob(_, job) if view.run.spec.terminate => {
                Some(format!("S47: {} would begin although the run is terminated", place_of(job)))
            }
            Action::CreateJob(_, job) | Action::DeleteJob(_, job) if is_others(job) => {
                Some(format!("S15: the Job {} is not of this run", place_of(job)))
            }
            Action::CreateJob(..) | Action::DeleteJob(..) | Action::DeleteRun => None,
        });
        status.chain(jobs).collect()
    }

    fn write(view: &View, action: &Action) -> Write {
        match action {
            Action::CreateJob(_, job) => create_job(job),
            Action::DeleteJob(_, job) => {
                let place = place_of(job);
                delete_job(&place.namespace, &place.name, Some(job))
            }
            Action::DeleteRun => delete_run(&view.object),
        }
    }

    fn record(view: &View, verdict: &Verdict, _: Option<u64>) -> Option<Write> {
        record(&view.object, &view.run.status, verdict.status.as_ref()?)
    }

    fn refused(
        view: &View,
        verdict: &Verdict,
        action: &Action,
        write: &Write,
        why: &Refusal,
    ) -> Option<Refused<Verdict>> {
        let mut samples = verdict.samples.clone();
        let (task, measurement) = match action {
            Action::CreateJob(task, job) if write.is_refused(why.code) => {
                (*task, job::begun(&view.run, job, &Created::No(why.message.clone()), view.now))
            }
            Action::DeleteJob(Some(task), _) if is_final(why.code) => {
                let Standing::Open { taken, .. } = &view.standing else { return None };
                let Some(Taken::Ends(_, before)) = taken.get(*task) else { return None };
                (*task, job::terminated(before, Err(why.message.clone()), view.now))
            }
            // One that cannot be deleted goes with its run.
            Action::DeleteJob(None, _) => {
                return Some(Refused { verdict: verdict.again(samples), then: Then::GoOn });
            }
            Action::CreateJob(..) | Action::DeleteJob(Some(_), _) | Action::DeleteRun => return None,
        };
        *samples.get_mut(task)? = plain(measurement);
        Some(Refused { verdict: view.verdict(samples), then: Then::GoOn })
    }

    fn announce(view: &View, verdict: &Verdict, done: &Done<'_, Action>) -> Vec<Announcement> {
        // All of it follows from status: what is not recorded is said by the next pass.
        let events = verdict.events.iter().filter(|_| done.is_recorded);
        events
            .map(|event| Announcement { kind: kind::ANALYSIS_RUN, object: view.object.clone(), event: event.clone() })
            .collect()
    }

    fn wake(_: &View, verdict: &Verdict) -> Option<Timestamp> {
        verdict.wake
    }

    fn object(view: &View) -> &Value {
        &view.object
    }

    fn now(view: &View) -> Timestamp {
        view.now
    }
}

impl AnalysisMachine {
    /// What a record tells of what was seen: the measurements that the verdict came to stand for what providers said.
    pub(in crate::engine) fn recorded(record: &serde_json::Value) -> Result<View, String> {
        fn read<T: DeserializeOwned>(value: &serde_json::Value) -> Result<T, String> {
            serde_json::from_value(value.clone()).map_err(|error| error.to_string())
        }
        let (now, object): (Timestamp, Value) = (read(&record["now"])?, read(&record["run"])?);
        let run: AnalysisRun = api::read(&object).object;
        let standing = match analysis::look(&run, now) {
            Look::Over(end) => Standing::Over(end),
            Look::Broken(problem) => Standing::Broken(problem),
            Look::Open(plan) => {
                let status: AnalysisRunStatus = read(&record["verdict"]["status"])?;
                let taken = plan.tasks.iter().map(|task| {
                    let result = status.metric_results.iter().find(|result| result.name == task.name);
                    let measurement = result.and_then(|result| result.measurements.last()).cloned();
                    Taken::Sample(Sample {
                        measurement: measurement.unwrap_or_default(),
                        metadata: result.map(|result| result.metadata.clone()).unwrap_or_default(),
                    })
                });
                Standing::Open { taken: taken.collect(), plan, secrets: Vec::new() }
            }
        };
        Ok(View { now, object, run, jobs: read(&record["jobs"])?, standing })
    }
}

impl View {
    /// What these samples come to, one for each task.
    fn verdict(&self, samples: Vec<Sample>) -> Verdict {
        let Standing::Open { plan, secrets, .. } = &self.standing else {
            return Verdict { status: None, wake: None, events: Vec::new(), trimmed: Vec::new(), samples };
        };
        let verdict = analysis::decide(&self.run, plan, samples.clone(), secrets, self.now);
        Verdict::of(verdict, samples, self.now)
    }
}

impl Verdict {
    fn of(verdict: analysis::Verdict, samples: Vec<Sample>, now: Timestamp) -> Verdict {
        let wake = wake(&verdict, now);
        let analysis::Verdict { status, events, trimmed, .. } = verdict;
        Verdict { status: Some(status), wake, events, trimmed, samples }
    }

    fn again(&self, samples: Vec<Sample>) -> Verdict {
        let Verdict { status, wake, events, trimmed, .. } = self;
        let (status, events, trimmed) = (status.clone(), events.clone(), trimmed.clone());
        Verdict { status, wake: *wake, events, trimmed, samples }
    }
}

impl Case {
    /// What the tasks came to; or what is to be read for them first.
    fn measured(&self, plan: &Plan) -> (Option<Standing>, Vec<Due>) {
        let wanted = plan.secrets(&self.parsed);
        let arguments: Vec<Argument> = if self.outlook.is_some() {
            // Secrets are seldom in git, and no provider is asked.
            vec![Argument::default(); wanted.len()]
        } else if self.secrets.len() < wanted.len() {
            let namespace = &self.parsed.metadata.namespace;
            let read = |(_, wanted): &(&str, &SecretKeyRef)| (None, Want::Secret, secret(namespace, &wanted.name));
            return (None, wanted.iter().map(read).collect());
        } else {
            match self.secrets.iter().cloned().collect() {
                Ok(arguments) => arguments,
                Err(problem) => return (Some(Standing::Broken(unresolved(problem))), Vec::new()),
            }
        };
        let (secrets, hosts): (Vec<String>, Vec<Option<String>>) =
            arguments.into_iter().map(|argument| (argument.value, argument.hosts)).unzip();
        let bond = |index: &usize| {
            let (_, wanted) = wanted.get(*index)?;
            let hosts = hosts.get(*index)?.as_deref();
            Some(Bond { namespace: &self.parsed.metadata.namespace, name: &wanted.name, hosts })
        };
        let carried = plan.carried(&self.parsed);
        let bonds = carried.iter().map(|indices| indices.iter().filter_map(bond).collect::<Vec<_>>());
        let metrics = match plan.ready(&self.parsed, &secrets) {
            Ok(metrics) => metrics,
            Err(problem) => return (Some(Standing::Broken(problem)), Vec::new()),
        };
        let (mut taken, mut reads) = (Vec::new(), Vec::new());
        let tasks = plan.tasks.iter().zip(&metrics).zip(&self.talks).zip(bonds);
        for (number, (((task, metric), talk), bonds)) in tasks.enumerate() {
            match self.next(metric, &task.work, talk, &bonds) {
                Ok(end) => taken.push(end),
                Err((want, read)) => reads.push((Some(number), want, read)),
            }
        }
        let plan = plan.clone();
        (reads.is_empty().then_some(Standing::Open { plan, taken, secrets }), reads)
    }

    /// What a measurement came to; or what is to be read for it next. It carries the Secrets with these bonds.
    fn next(
        &self,
        metric: &Metric,
        work: &Work,
        talk: &Conversation,
        carried: &[Bond<'_>],
    ) -> Result<Taken, (Want, Read)> {
        let (run, now) = (&self.parsed, self.now);
        if let Some(sample) = self.outlook.as_ref().and_then(|outlook| outlook.sample(run, metric, now)) {
            return Ok(Taken::Sample(sample));
        }
        let before = match work {
            Work::Start => Measurement::default(),
            Work::Resume(before) | Work::Terminate(before) => before.clone(),
        };
        let job_at = |namespace: &str, name: &str| {
            let key = ObjectKey { resource: resource::jobs(), place: Place::new(namespace, name) };
            (Want::Job, Read::Object(key))
        };
        match metric::ask(&Talk { run, metric, work, settings: &self.settings, heard: &talk.heard, now }) {
            Ask::Known(sample) => Ok(Taken::Sample(*sample)),
            Ask::ReadSecret { namespace, name } => Err((Want::Secret, secret(&namespace, &name))),
            Ask::ReadToken(file) => Err((Want::Token, Read::Token(file))),
            Ask::Send(request) => match metric::check_hosts(&request, carried, self.settings.secret_hosts) {
                Ok(()) => Err((Want::Answer, Read::Send(request))),
                Err(refused) => {
                    let mut talk = talk.clone();
                    talk.heard.answers.push(Err(refused));
                    self.next(metric, work, &talk, carried)
                }
            },
            // One that is there already was created by a pass that did not live to say so.
            Ask::CreateJob(job) => {
                let place = place_of(&job);
                let there = match (self.job(&place.namespace, &place.name), &talk.job) {
                    (Some(seen), _) => seen,
                    (None, None) => return Err(job_at(&place.namespace, &place.name)),
                    (None, Some(Ok(live))) => &live.object,
                    (None, Some(Err(_))) => return Ok(Taken::Begins(job)),
                };
                let created = Created::Already(Box::new(there.clone()));
                Ok(Taken::Sample(plain(job::begun(run, &job, &created, now))))
            }
            Ask::LookAtJob { namespace, name } => {
                // The watch may be behind, or be none of this namespace.
                let found = match (self.job(&namespace, &name), &talk.job) {
                    (Some(seen), _) => Some(seen),
                    (None, None) => return Err(job_at(&namespace, &name)),
                    (None, Some(Ok(live))) => Some(&live.object).filter(|job| self.is_its(job)),
                    (None, Some(Err(_))) => None,
                };
                let is_open = found.is_some_and(|job| job::outcome(job).is_none());
                let pods = match &talk.pods {
                    None if is_open => {
                        let label = (label::ANALYSIS_RUN_UID, run.metadata.uid.clone());
                        return Err((Want::Pods, Read::List(resource::pods(), namespace, Some(label))));
                    }
                    None => &[],
                    Some(pods) => pods.as_slice(),
                };
                Ok(Taken::Sample(plain(job::resumed(&name, &before, found, pods, now))))
            }
            Ask::DeleteJob { namespace, name } => {
                let problem = match (self.job(&namespace, &name), &talk.job) {
                    (Some(seen), _) => return Ok(Taken::Ends(seen.clone(), before)),
                    (None, None) => return Err(job_at(&namespace, &name)),
                    (None, Some(Ok(live))) if self.is_its(&live.object) => {
                        return Ok(Taken::Ends(live.object.clone(), before));
                    }
                    (None, Some(Ok(_))) => {
                        format!("the Job {namespace}/{name} is not of this run: it is left alone")
                    }
                    (None, Some(Err(absent))) => absent.words.clone(),
                };
                Ok(Taken::Sample(plain(job::terminated(&before, Err(problem), now))))
            }
        }
    }

    /// A Job of this run, as the watch delivered it.
    fn job(&self, namespace: &str, name: &str) -> Option<&Value> {
        let text = |job: &Value, key: &str, wanted: &str| job.str_at(&["metadata", key]) == Some(wanted);
        self.jobs.iter().find(|job| text(job, "name", name) && text(job, "namespace", namespace))
    }

    fn is_its(&self, job: &Value) -> bool {
        job::is_of(&self.parsed, job, &self.settings.jobs)
    }

    /// Takes in a Secret of an argument, in the order of the plan.
    fn take_secret(&mut self, found: Found) {
        let Look::Open(plan) = &self.look else { return };
        let wanted = plan.secrets(&self.parsed);
        let Some((_, wanted)) = wanted.get(self.secrets.len()) else { return };
        let argument = object(found).and_then(|secret| {
            let hosts = secret.str_at(&["metadata", "annotations", annotation::HOSTS]).map(str::to_owned);
            Ok(Argument { value: metric::secret_value(&secret, wanted)?, hosts })
        });
        self.secrets.push(argument);
    }
}

impl Conversation {
    fn absorb(&mut self, want: Want, found: Found) {
        match want {
            Want::Secret => self.heard.secret = Some(object(found)),
            Want::Job => {
                self.job = match found {
                    Found::Object(live) => Some(Ok(live)),
                    Found::Missing(words) | Found::Refused(words) => Some(Err(Absent { words })),
                    Found::List(_) | Found::Token(_) | Found::Answer(_) => None,
                };
            }
            Want::Token | Want::Answer | Want::Pods => match found {
                Found::Token(token) => self.heard.token = Some(token),
                Found::Answer(answer) => self.heard.answers.push(answer),
                Found::List(pods) => self.pods = Some(pods),
                // The pods only say why a Job does not get on.
                Found::Object(_) | Found::Missing(_) | Found::Refused(_) => self.pods = Some(Vec::new()),
            },
        }
    }
}

impl Outlook {
    /// The measurement of a metric; `None` if a Job is to be run for it.
    fn sample(&self, run: &AnalysisRun, metric: &Metric, now: Timestamp) -> Option<Sample> {
        let fails = matches!(self, Outlook::Fails(name) if *name == run.metadata.name);
        if !fails && metric.provider.job.is_some() {
            return None;
        }
        let (phase, value) = if fails { ("Failed", "assumed to fail") } else { ("Successful", "assumed to succeed") };
        Some(plain(Measurement {
            phase: phase.to_owned(),
            value: value.to_owned(),
            started_at: Some(now.into()),
            finished_at: Some(now.into()),
            ..Measurement::default()
        }))
    }
}

fn plain(measurement: Measurement) -> Sample {
    Sample { measurement, ..Sample::default() }
}

fn secret(namespace: &str, name: &str) -> Read {
    Read::Object(ObjectKey { resource: Resource::new("", "v1", "secrets"), place: Place::new(namespace, name) })
}

/// An object; or why it could not be read.
fn object(found: Found) -> Result<Value, String> {
    match found {
        Found::Object(live) => Ok(live.object),
        Found::Missing(words) | Found::Refused(words) => Err(words),
        Found::List(_) | Found::Token(_) | Found::Answer(_) => Err("something else was read".to_owned()),
    }
}

/// Whether the same request would be refused again as long as nothing else changes.
fn is_final(code: u16) -> bool {
    matches!(code, 400 | 403 | 404 | 405 | 413 | 415 | 422)
}
