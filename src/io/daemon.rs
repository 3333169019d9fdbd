//! The daemon: watches, the one cache, the queue, and passes that run beside each other.
//!
//! One task owns all state: it hears what the watches deliver, starts passes on what it knows and learns what they wrote.
//! Passes only carry out what was decided here. Never polls: it wakes for news, for a pass that ended, or for a moment that
//! a verdict named.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use tokio::{
    io::AsyncWriteExt,
    sync::mpsc::{self, Receiver, Sender},
    task::{AbortHandle, Id, JoinError, JoinSet},
};

use super::{
    api::{Api, Error},
    clock::Clock,
    lease::Gate,
    outbound::Outbound,
    pass,
    serve::Question,
    watch::{self, Scope},
    web::Web,
};
use crate::{
    api::{
        self, Rollout,
        constants::{annotation, label, message, reason},
    },
    engine::{
        cache::{News, place_of},
        compare,
        key::{Key, Machine, ObjectKey, Place, Resource},
        measure,
        metrics::{Ending, Gauges, Objects},
        observe::{self, LiveAnswer, LiveCheck, resource},
        queue::Outcome,
        state::State,
        words::Words,
        write::Written,
    },
    io,
    kubernetes::{
        apply::Managers,
        value::{Part, Text, Value},
    },
    metric,
    model::template,
    rollout::{Conditions, Event, Seen, Verdict, View, check, decide, diff, services},
    route::{self, Apis, RouteScope},
};

/// How the daemon is to work.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Only this namespace; all if not given.
    pub namespace: Option<String>,
    /// Only Rollouts with this instance id; those without any if not given.
    pub instance: Option<String>,
    /// How many passes may run at once.
    pub workers: usize,
    /// Where each decision is written to, as a file that can be replayed.
    pub record: Option<PathBuf>,
    /// What the operator says about measuring.
    pub measuring: metric::Settings,
    /// Which conditions Rollouts have.
    pub conditions: Conditions,
    /// Where the objects may be that Rollouts route with.
    pub route_scope: RouteScope,
    /// The versions in which the routers' APIs are spoken.
    pub apis: Apis,
    /// Where metrics may be measured.
    pub outbound: Outbound,
    /// What time it is.
    pub clock: Clock,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            namespace: None,
            instance: None,
            workers: 16,
            record: None,
            measuring: metric::Settings::default(),
            conditions: Conditions::default(),
            route_scope: RouteScope::default(),
            apis: Apis::default(),
            outbound: Outbound::default(),
            clock: Clock::Wall,
        }
    }
}

/// How many deliveries may wait.
const BACKLOG: usize = 1024;
/// How often watches that nobody needs any more are ended.
const SWEEP: Duration = Duration::from_secs(60);
/// How often fences are looked at that stand too long.
const OVERDUE_CHECK: Duration = Duration::from_secs(5);
/// How long passes under way may take to end when the daemon is told to.
const FAREWELL: Duration = Duration::from_secs(10);

/// Works until it is told to stop.
pub async fn run(api: Api, settings: Settings, stop: impl Future<Output = ()>) {
    // Nobody asks.
    let (_, questions) = mpsc::channel(1);
    answer(api, settings, questions, stop).await;
}

/// Works until it is told to stop, and answers questions about itself meanwhile.
pub async fn answer(api: Api, settings: Settings, questions: Receiver<Question>, stop: impl Future<Output = ()>) {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    let api = api.briefly();
    let mut daemon = Daemon {
        gate: api.gate().cloned(),
        leads: false,
        api,
        state: State::speaking(settings.apis.clone()),
        web: Web::new(settings.outbound.clone())
            .inspect_err(|error| tracing::warn!(%error, "metrics on the network cannot be measured"))
            .ok(),
        settings,
        sender,
        receiver,
        watches: HashMap::new(),
        known: HashSet::new(),
        passes: JoinSet::new(),
        under_way: HashMap::new(),
        unsaid: HashMap::new(),
    };
    daemon.work(questions, stop).await;
}

struct Daemon {
    api: Api,
    settings: Settings,
    /// What says whether this daemon leads; without one it is alone.
    gate: Option<Gate>,
    /// Whether it began to work.
    leads: bool,
    sender: Sender<(Resource, News)>,
    receiver: Receiver<(Resource, News)>,
    state: State,
    watches: HashMap<Resource, AbortHandle>,
    /// The Rollouts that were met, by uid.
    known: HashSet<Text>,
    passes: JoinSet<Done>,
    /// What each pass is about, for one that panics.
    under_way: HashMap<Id, Key>,
    /// What is still to be said about Rollouts.
    unsaid: HashMap<Key, Words>,
    /// The way to those who measure.
    web: Option<Web>,
}

/// A pass that has ended.
struct Done {
    written: Vec<Written>,
    /// What it left to be said later.
    unsaid: Words,
    outcome: Outcome,
    took: Duration,
}

impl Daemon {
    async fn work(&mut self, mut questions: Receiver<Question>, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut sweep = tokio::time::interval(SWEEP);
        let mut overdue = tokio::time::interval(OVERDUE_CHECK);
        loop {
            self.take_or_leave();
            self.start_passes();
            let now = self.settings.clock.now();
            let wait = match self.state.queue.wake(now) {
                // Due, but all workers are busy: the end of a pass brings us back.
                Some(wake) if wake <= now => SWEEP,
                Some(wake) => wake.duration_since(now).try_into().unwrap_or(SWEEP),
                None => SWEEP,
            };
            tokio::select! {
                () = &mut stop => break,
                Some((resource, news)) = self.receiver.recv() => self.hear(&resource, news),
                () = turn(&mut self.gate) => {}
                Some(done) = self.passes.join_next_with_id(), if !self.passes.is_empty() => self.finish(done),
                Some(question) = questions.recv() => self.tell(question),
                () = tokio::time::sleep(wait) => {}
                _ = sweep.tick() => self.end_idle_watches(),
                _ = overdue.tick() => self.list_overdue(),
            }
        }
        self.watches.values().for_each(AbortHandle::abort);
        let farewell = async { while self.passes.join_next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
            tracing::warn!("passes were still under way and are abandoned; the next start continues from what is");
        }
        let now = self.settings.clock.now();
        for (key, mut words) in self.unsaid.drain() {
            let Some(rollout) = self.state.cache.get(&resource::rollouts(), &key.place) else { continue };
            announce_all(&self.api, rollout, words.take(), now).await;
        }
    }

    /// Begins to work when leadership begins, and leaves everything as it is when it ends. What was known in an earlier
    /// term is forgotten: another one may have written since, and only a list made now shows all of it.
    fn take_or_leave(&mut self) {
        let leads = self.may_write();
        if leads && !self.leads {
            (self.sender, self.receiver) = mpsc::channel(BACKLOG);
            let state = State::speaking(self.settings.apis.clone());
            (self.state, self.passes) = (state, JoinSet::new());
            self.under_way.clear();
            self.unsaid.clear();
            resource::always().into_iter().for_each(|resource| self.watch(resource));
        } else if !leads && self.leads {
            self.watches.drain().for_each(|(_, watch)| watch.abort());
        }
        self.leads = leads;
    }

    /// Whether what is decided now may be carried out.
    fn may_write(&self) -> bool {
        self.gate.as_ref().is_none_or(Gate::is_open)
    }

    /// Answers a question; who no longer waits for the answer does without.
    fn tell(&self, question: Question) {
        match question {
            Question::Ready(answer) => drop(answer.send(self.is_ready())),
            Question::Metrics(answer) => drop(answer.send(self.page())),
        }
    }

    fn page(&self) -> String {
        let (queued, running) = self.state.queue.depth();
        let mut objects: Vec<(String, usize)> =
            self.state.cache.counts().map(|(resource, count)| (resource.plural.to_string(), count)).collect();
        objects.sort();
        let gauges = Gauges {
            queued,
            running,
            fenced: self.state.fence.count(),
            objects,
            version: env!("CARGO_PKG_VERSION"),
            architecture: std::env::consts::ARCH,
        };
        let cache = &self.state.cache;
        let templates = cache.all(&resource::templates()).chain(cache.all(&resource::cluster_templates()));
        let objects = Objects {
            rollouts: cache.all(&resource::rollouts()).collect(),
            runs: cache.all(&resource::runs()).collect(),
            experiments: cache.all(&resource::experiments()).collect(),
            templates: templates.collect(),
        };
        self.api.metrics().with(|metrics| metrics.page(&objects, &gauges, self.settings.clock.now()))
    }

    /// Whether what is always watched has been listed, or another one does the work.
    fn is_ready(&self) -> bool {
        !self.leads || resource::always().iter().all(|resource| self.state.cache.is_listed(resource))
    }

    fn watch(&mut self, resource: Resource) {
        if self.watches.contains_key(&resource) {
            return;
        }
        let selector = match &self.settings.instance {
            _ if resource == resource::jobs() => label::ANALYSIS_RUN_UID.to_owned(),
            _ if ![resource::rollouts(), resource::runs(), resource::experiments()].contains(&resource) => {
                String::new()
            }
            Some(instance) => format!("{}={instance}", label::INSTANCE_ID),
            None => format!("!{}", label::INSTANCE_ID),
        };
        let namespace = self.settings.namespace.clone();
        let scope = Scope { namespace, selector, part: Part::WithoutOwners, ..Scope::of(&resource) };
        let handle = tokio::spawn(watch::follow(self.api.clone(), scope, self.sender.clone())).abort_handle();
        self.watches.insert(resource, handle);
    }

    /// Ends the watches that no Rollout needs.
    fn end_idle_watches(&mut self) {
        let now = self.settings.clock.now();
        let rollouts = self.state.cache.all(&resource::rollouts()).map(|rollout| api::read::<Rollout>(rollout).object);
        let mut needed: HashSet<Resource> = rollouts
            .flat_map(|rollout| observe::needs(&rollout, &self.state.apis_for(&rollout), now))
            .chain(resource::always())
            .collect();
        needed.extend(self.state.cache.all(&resource::runs()).filter_map(measure::needs));
        needed.extend(self.state.cache.all(&resource::experiments()).filter_map(compare::needs));
        // Any template may name one of the cluster's.
        if needed.contains(&resource::templates()) {
            needed.insert(resource::cluster_templates());
        }
        let idle: Vec<Resource> = self.watches.keys().filter(|resource| !needed.contains(resource)).cloned().collect();
        for resource in idle {
            tracing::info!(%resource, "nobody needs this watch any more");
            if let Some(watch) = self.watches.remove(&resource) {
                watch.abort();
            }
            self.state.unwatch(&resource).iter().for_each(|key| self.state.queue.add(key));
        }
    }

    /// Lists a resource anew if a fence has waited too long for one of its objects: an event was lost, or never to come.
    fn list_overdue(&mut self) {
        for resource in self.state.fence.overdue(self.settings.clock.now()) {
            tracing::warn!(%resource, "a write was not seen in time; listing anew");
            self.api.metrics().with(|metrics| metrics.watched_anew(&resource.plural));
            if let Some(watch) = self.watches.remove(&resource) {
                watch.abort();
                self.watch(resource);
            }
        }
    }

    /// Takes in what a watch delivered: the fence is lowered, and who is concerned is queued.
    fn hear(&mut self, resource: &Resource, news: News) {
        // A watch that was ended may still have something under way.
        if !self.watches.contains_key(resource) {
            return;
        }
        let heard = self.state.hear(resource, news, self.settings.clock.now());
        for (key, rollout) in heard.gone {
            self.forget(&key, rollout);
        }
        let now = self.settings.clock.now();
        for place in &heard.removed {
            self.api.metrics().with(|metrics| metrics.forget(&resource.plural, place, now));
        }
        heard.keys.iter().for_each(|key| self.state.queue.add(key));
        heard.again.iter().for_each(|key| self.state.queue.add_again(key));
    }

    /// A Rollout is gone.
    fn forget(&mut self, key: &Key, rollout: Value) {
        self.known.remove(rollout.str_at(&["metadata", "uid"]).unwrap_or_default());
        self.unsaid.remove(key);
        let told = message::rollout_deleted(&key.place.name, &key.place.namespace);
        let event = Event { warning: false, reason: reason::ROLLOUT_DELETED, message: told };
        let (api, now) = (self.api.clone(), self.settings.clock.now());
        tokio::spawn(async move { pass::announce(&api, &rollout, &event, now).await });
    }

    /// Starts passes while there are workers and keys that are due.
    fn start_passes(&mut self) {
        if !self.leads || !self.is_ready() {
            return;
        }
        while self.passes.len() < self.settings.workers {
            let now = self.settings.clock.now();
            let metrics = self.api.metrics();
            let fenced = |key: &Key| metrics.with(|metrics| metrics.fenced(key.machine));
            let Some(key) = self.state.next(now, fenced) else { return };
            match key.machine {
                Machine::Service => {
                    self.start_release(key, resource::services(), services::release, now);
                    continue;
                }
                Machine::Subsets => {
                    let rules = resource::route(route::Kind::DestinationRule, &self.settings.apis);
                    self.start_release(key, rules, route::release, now);
                    continue;
                }
                Machine::Analysis => {
                    self.start_analysis(key, now);
                    continue;
                }
                Machine::Experiment => {
                    self.start_experiment(key, now);
                    continue;
                }
                Machine::Rollout | Machine::Sync => {}
            }
            let Some((seen, missing)) = self.see(&key.place, now) else {
                self.state.queue.done(&key, Outcome::Settled(None), now);
                continue;
            };
            self.start_pass(key, seen, missing);
        }
    }

    fn start_pass(&mut self, key: Key, seen: Seen, missing: Vec<ObjectKey>) {
        let uid = seen.rollout.at(&["metadata", "uid"]).and_then(Value::as_text).cloned().unwrap_or_default();
        let is_new = self.known.insert(uid);
        let (api, record, subject) = (self.api.clone(), self.settings.record.clone(), key.clone());
        let mut unsaid = self.unsaid.remove(&key).unwrap_or_default();
        let handle = self.passes.spawn(async move {
            let begun = Instant::now();
            if is_new {
                let told = message::added_to_informer(&key.place.namespace, &key.place.name);
                let event = Event { warning: false, reason: reason::ADDED_TO_INFORMER, message: told };
                pass::announce(&api, &seen.rollout, &event, seen.now).await;
            }
            let mut written = Vec::new();
            let outcome = match is_there(&api, &key, &missing).await {
                true => Outcome::Failed(None),
                false => pass(&api, &key, seen, record.as_deref(), &mut written, &mut unsaid).await,
            };
            Done { written, unsaid, outcome, took: begun.elapsed() }
        });
        self.under_way.insert(handle.id(), subject);
    }

    /// Begins a pass over an AnalysisRun, unless it is on its way out or something is not known yet.
    fn start_analysis(&mut self, key: Key, now: Timestamp) {
        let run = self.state.cache.get(&resource::runs(), &key.place).cloned();
        let is_leaving = |run: &Value| run.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
        let Some(run) = run.filter(|run| !is_leaving(run)) else {
            return self.state.queue.done(&key, Outcome::Settled(None), now);
        };
        if let Some(needed) = measure::needs(&run) {
            self.watch(needed.clone());
            if !self.state.cache.is_listed(&needed) {
                return self.state.queue.done(&key, Outcome::Settled(None), now);
            }
        }
        let jobs = measure::jobs(&self.state.cache, &run, &self.settings.measuring.jobs);
        let seen =
            io::measure::Seen { now, run, jobs, settings: self.settings.measuring.clone(), web: self.web.clone() };
        let (api, subject) = (self.api.clone(), key.clone());
        let handle = self.passes.spawn(async move {
            let begun = Instant::now();
            let mut written = Vec::new();
            let outcome = match io::measure::pass(&api, &seen, &mut written).await {
                Ok(wake) => Outcome::Settled(wake),
                Err(error) => failed(&key, &error, now),
            };
            Done { written, unsaid: Words::default(), outcome, took: begun.elapsed() }
        });
        self.under_way.insert(handle.id(), subject);
    }

    /// Begins a pass over an Experiment, unless something is not known yet.
    fn start_experiment(&mut self, key: Key, now: Timestamp) {
        let Some(experiment) = self.state.cache.get(&resource::experiments(), &key.place).cloned() else {
            return self.state.queue.done(&key, Outcome::Settled(None), now);
        };
        let (_, _, of_cluster) = compare::templates(&self.state.cache, &experiment);
        let needed = compare::needs(&experiment).into_iter().chain(of_cluster.then(resource::cluster_templates));
        for resource in needed.collect::<Vec<_>>() {
            self.watch(resource.clone());
            if !self.state.cache.is_listed(&resource) {
                return self.state.queue.done(&key, Outcome::Settled(None), now);
            }
        }
        let Some((seen, missing)) = compare::see(&self.state.cache, &key.place, now) else {
            return self.state.queue.done(&key, Outcome::Settled(None), now);
        };
        let rollout = compare::rollout(&self.state.cache, &experiment).cloned();
        let (api, subject) = (self.api.clone(), key.clone());
        let handle = self.passes.spawn(async move {
            let begun = Instant::now();
            let mut written = Vec::new();
            let outcome = if is_there(&api, &key, &missing).await {
                Outcome::Failed(None)
            } else {
                match io::compare::pass(&api, &seen, rollout.as_ref(), &mut written).await {
                    Ok(wake) => Outcome::Settled(wake),
                    Err(error) => failed(&key, &error, now),
                }
            };
            Done { written, unsaid: Words::default(), outcome, took: begun.elapsed() }
        });
        self.under_way.insert(handle.id(), subject);
    }

    /// Gives a Service back to its owner, unless a Rollout that is known leads it.
    fn start_release(
        &mut self,
        key: Key,
        resource: Resource,
        released: fn(&Value, &[Rollout]) -> Option<Value>,
        now: Timestamp,
    ) {
        let service = self.state.cache.get(&resource, &key.place).cloned();
        let subject = ObjectKey { resource: resource.clone(), place: key.place.clone() };
        let leaders = self.state.references.to(&subject);
        let leaders = leaders.filter_map(|place| self.state.cache.get(&resource::rollouts(), place));
        let known: Vec<Rollout> = leaders.map(|rollout| api::read(rollout).object).collect();
        let Some(service) = service.filter(|service| released(service, &known).is_some()) else {
            return self.state.queue.done(&key, Outcome::Settled(None), now);
        };
        let (api, subject) = (self.api.clone(), key.clone());
        let handle = self.passes.spawn(async move {
            let begun = Instant::now();
            let mut written = Vec::new();
            let outcome = match pass::release(&api, resource, &service, &mut written).await {
                Ok(()) => Outcome::Settled(None),
                Err(error) => failed(&key, &error, now),
            };
            Done { written, unsaid: Words::default(), outcome, took: begun.elapsed() }
        });
        self.under_way.insert(handle.id(), subject);
    }

    /// A pass has ended: what it wrote must be seen before the next one.
    fn finish(&mut self, done: Result<(Id, Done), JoinError>) {
        let (id, done) = match done {
            Ok((id, done)) => (id, Some(done)),
            Err(error) => {
                tracing::error!(%error, "a pass did not end; trying again");
                (error.id(), None)
            }
        };
        let Some(key) = self.under_way.remove(&id) else { return };
        let Some(Done { written, unsaid, outcome, took }) = done else {
            self.api.metrics().with(|metrics| metrics.passed(&key, 0.0, Ending::Failed));
            return self.state.queue.done(&key, Outcome::Failed(None), self.settings.clock.now());
        };
        if !unsaid.is_empty() {
            self.unsaid.insert(key.clone(), unsaid);
        }
        let ending = match outcome {
            Outcome::Settled(_) => Ending::Settled,
            Outcome::Failed(_) => Ending::Failed,
        };
        self.api.metrics().with(|metrics| metrics.passed(&key, took.as_secs_f64(), ending));
        let (watches, now) = (&self.watches, self.settings.clock.now());
        self.state.finish(&key, written, outcome, now, |resource| watches.contains_key(resource));
    }

    /// Everything that a decision about a Rollout may know, and what it names and was not seen; `None` if it is gone, or if
    /// something is not known yet.
    fn see(&mut self, place: &Place, now: Timestamp) -> Option<(Seen, Vec<ObjectKey>)> {
        let rollout = self.state.rollout(place)?;
        let apis = self.state.apis_for(&rollout);
        for resource in observe::needs(&rollout, &apis, now) {
            self.watch(resource.clone());
            // What the server does not know is not waited for: the Rollout says so.
            if !self.state.cache.is_listed(&resource) && !self.state.cache.is_unserved(&resource) {
                return None;
            }
        }
        if observe::templates(&self.state.cache, &rollout).1 {
            self.watch(resource::cluster_templates());
            if !self.state.cache.is_listed(&resource::cluster_templates()) {
                return None;
            }
        }
        let (conditions, route_scope) = (self.settings.conditions, self.settings.route_scope);
        let seen = Seen { conditions, route_scope, ..self.state.see(place, &rollout, now)? };
        let missing = observe::missing(&rollout, &seen);
        Some((seen, missing))
    }
}

/// Resolves when leadership begins, is renewed or ends; never for who is alone.
async fn turn(gate: &mut Option<Gate>) {
    match gate {
        Some(gate) => gate.changed().await,
        None => std::future::pending().await,
    }
}

/// Whether something that was not seen is there all the same. That is never assumed: the server is asked, once, before
/// anybody is told that something is missing.
async fn is_there(api: &Api, key: &Key, missing: &[ObjectKey]) -> bool {
    for missing in missing {
        if api.object(&missing.resource, &missing.place).await.is_ok() {
            tracing::debug!(rollout = %key.place, %missing.resource, name = %missing.place.name, "is there, and not seen yet");
            return true;
        }
    }
    false
}

/// Announces what is to be said about a Rollout, in its order.
async fn announce_all(api: &Api, rollout: &Value, events: Vec<Event>, now: Timestamp) {
    for event in &events {
        pass::announce(api, rollout, event, now).await;
    }
}

/// One pass: decides on what was seen and carries it out. What is `unsaid` is said with what this one has to say, or with
/// what the next one has.
async fn pass(
    api: &Api,
    key: &Key,
    mut seen: Seen,
    record: Option<&Path>,
    written: &mut Vec<Written>,
    unsaid: &mut Words,
) -> Outcome {
    let mut begun = Instant::now();
    let mut view = View::of(&seen);
    if LiveCheck::next(&view, &[]).is_some() {
        view = match ask(api, &mut seen, view).await {
            Ok(Some(view)) => view,
            // What is not as it was seen is news, and the watch brings it.
            Ok(None) => return Outcome::Settled(None),
            Err(error) => return failed(key, &error, seen.now),
        };
        // How long the server took is not how long it takes to decide.
        begun = Instant::now();
    }
    let verdict = decide(&view);
    let actions = diff(&view, &verdict);
    let broken = check(&view, &verdict, &actions);
    api.metrics().with(|metrics| metrics.decided(begun.elapsed().as_secs_f64()));
    tracing::info!(
        rollout = %key.place,
        actions = actions.len(),
        reasons = verdict.reasons.join("; "),
        wake = verdict.wake.map(|wake| wake.to_string()),
        "decided"
    );
    if let Some(folder) = record {
        record_decision(folder, &key.place, &seen, &verdict).await;
    }
    if !broken.is_empty() {
        let words: Vec<String> = broken.iter().map(ToString::to_string).collect();
        let told = message::reconciliation_error(&words.join("; "));
        tracing::error!(rollout = %key.place, %told, "refused");
        api.metrics().with(|metrics| metrics.refused(Machine::Rollout));
        let event = Event { warning: true, reason: reason::RECONCILIATION_ERROR, message: told };
        pass::announce(api, &seen.rollout, &event, seen.now).await;
        return Outcome::Failed(None);
    }
    if let Err(error) = pass::carry_out(api, &view, &verdict, &actions, written).await {
        return failed(key, &error, seen.now);
    }
    unsaid.add(verdict.events, seen.now);
    if let Some(latest) = unsaid.wait(seen.crowd, seen.now) {
        return Outcome::Settled(verdict.wake.into_iter().chain([latest]).min());
    }
    announce_all(api, &seen.rollout, unsaid.take(), seen.now).await;
    Outcome::Settled(verdict.wake)
}

/// Asks the server what must be known for certain before a view is believed; `None` if the watches are behind.
async fn ask(api: &Api, seen: &mut Seen, mut view: View) -> Result<Option<View>, Error> {
    let mut made = Vec::new();
    while let Some(check) = LiveCheck::next(&view, &made) {
        let ObjectKey { resource, place } = check.object();
        let live = match api.object(resource, place).await {
            Ok(live) => Some(live),
            Err(error) if error.code() == Some(404) => None,
            Err(error) => return Err(error),
        };
        let live = live.as_ref().map(|live| (live, is_altered(live)));
        let answer = check.absorb(seen, live);
        tracing::debug!(rollout = %place_of(&seen.rollout), ?check, ?answer, "read live");
        match answer {
            LiveAnswer::Confirmed => {}
            LiveAnswer::Changed => view = View::of(seen),
            LiveAnswer::Stale => return Ok(None),
        }
        made.push(check);
    }
    Ok(Some(view))
}

/// Whether somebody altered the pods of a ReplicaSet. Owners that cannot be read tell nothing.
fn is_altered(set: &Value) -> bool {
    let managers = set.at(&["metadata", "managedFields"]).and_then(|wire| Managers::parse(wire).ok());
    managers.is_some_and(|managers| template::is_altered(&managers))
}

fn failed(key: &Key, error: &Error, now: Timestamp) -> Outcome {
    // Somebody wrote in between: the next pass sees it.
    if error.code() == Some(409) {
        tracing::debug!(rollout = %key.place, %error, "the world moved on");
    } else {
        tracing::warn!(rollout = %key.place, %error, "a pass failed; trying again");
    }
    let after = error.after().and_then(|after| SignedDuration::try_from(after).ok());
    Outcome::Failed(after.map(|after| now.saturating_add(after).unwrap_or(Timestamp::MAX)))
}

/// Writes a file that nobody else on this machine reads: templates of pods may hold what is nobody else's business.
async fn own_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = tokio::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).await?;
    file.write_all(bytes).await?;
    file.flush().await
}

/// Writes what was seen and decided to a file of its own.
async fn record_decision(folder: &Path, place: &Place, seen: &Seen, verdict: &Verdict) {
    // The last applied configuration repeats the manifest, and more than once held what should not be in a file.
    let path = ["metadata", "annotations", annotation::LAST_APPLIED];
    let (mut seen, mut verdict) = (seen.clone(), verdict.clone());
    seen.rollout.remove_at(&path);
    if let Some(target) = &mut verdict.target {
        target.rollout.remove_at(&path);
    }
    let record = serde_json::json!({"seen": seen, "verdict": verdict});
    let name = format!("{}_{}_{}.json", place.namespace, place.name, seen.now.as_nanosecond());
    let written = match serde_json::to_vec_pretty(&record) {
        Ok(bytes) => own_file(&folder.join(name), &bytes).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = written {
        tracing::warn!(%error, folder = %folder.display(), "a decision was not recorded");
    }
}
