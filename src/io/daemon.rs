//! The daemon: watches, the one cache, the queue, and passes that run beside each other.
//!
//! One task owns all state: it hears what the watches deliver, starts passes on what it knows and learns what they wrote.
//! Passes only carry out what was decided here. Never polls: it wakes for news, for a pass that ended, or for a moment that
//! a verdict named.

use std::{
    collections::HashMap,
    future::Future,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    task::{AbortHandle, Id, JoinError, JoinSet},
};

use super::{
    api::Api,
    clock::Clock,
    errand::Errands,
    lease::Gate,
    outbound::Outbound,
    serve::Question,
    watch::{self, Scope},
    web::Web,
    world::Cluster,
};
use crate::{
    api::constants::label,
    engine::{
        cache::News,
        driver::{Case, Driver, Next, Pass, Watch},
        key::{Key, Machine, Resource},
        machine,
        metrics::{Ending, Gauges, Objects},
        outbox::Outbox,
        quarantine,
        queue::Outcome,
        resource,
        world::{Announcement, World},
        write::Written,
    },
    kubernetes::value::{Part, Value},
    metric,
    rollout::Conditions,
    route::{Apis, RouteScope},
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
/// How many requests for metrics may be under way.
const MOST_REQUESTS: usize = 64;
/// How many passes there may be, those among them that wait for other servers.
const MOST_PASSES: usize = 4096;
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
    let driver = Driver::new(machine::Settings {
        namespace: settings.namespace.clone(),
        measuring: settings.measuring.clone(),
        conditions: settings.conditions,
        route_scope: settings.route_scope,
        apis: settings.apis.clone(),
        outlook: None,
    });
    let mut daemon = Daemon {
        gate: api.gate().cloned(),
        leads: false,
        api,
        web: Web::new(settings.outbound.clone())
            .inspect_err(|error| tracing::warn!(%error, "metrics on the network cannot be measured"))
            .ok(),
        settings,
        sender,
        receiver,
        driver,
        watches: HashMap::new(),
        passes: JoinSet::new(),
        under_way: HashMap::new(),
        errands: Errands::new(MOST_REQUESTS),
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
    sender: Sender<(Watch, News)>,
    receiver: Receiver<(Watch, News)>,
    driver: Driver,
    watches: HashMap<Resource, AbortHandle>,
    passes: JoinSet<Done>,
    under_way: HashMap<Id, UnderWay>,
    /// The way to those who measure.
    web: Option<Web>,
    errands: Errands,
}

/// A pass that was begun.
struct UnderWay {
    key: Key,
    /// What it had to announce, for one that panics.
    outbox: Outbox,
    /// The AnalysisRun that it measures for, if it does.
    run: Option<Value>,
    /// Whether it waits for other servers.
    is_away: Arc<AtomicBool>,
    handle: AbortHandle,
}

/// A pass that has ended.
struct Done {
    written: Vec<Written>,
    /// What it left to be announced later.
    outbox: Outbox,
    /// How; `None` if this daemon leads no more.
    outcome: Option<Outcome>,
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
            let now = self.now();
            let wait = match self.driver.state.queue.wake(now) {
                // Due, but all workers are busy: the end of a pass brings us back.
                Some(wake) if wake <= now => SWEEP,
                Some(wake) => wake.duration_since(now).try_into().unwrap_or(SWEEP),
                None => SWEEP,
            };
            tokio::select! {
                () = &mut stop => break,
                Some((watch, news)) = self.receiver.recv() => self.hear(&watch, news),
                () = turn(&mut self.gate) => {}
                Some(done) = self.passes.join_next_with_id(), if !self.passes.is_empty() => self.finish(done),
                () = self.errands.left() => {}
                Some(question) = questions.recv() => self.tell(question),
                () = tokio::time::sleep(wait) => {}
                _ = sweep.tick() => self.end_idle_watches(),
                _ = overdue.tick() => self.list_overdue(),
            }
        }
        self.watches.values().for_each(AbortHandle::abort);
        // They have written nothing, and the next start measures anew.
        let away = self.under_way.values().filter(|pass| pass.is_away.swap(false, Ordering::Relaxed));
        away.for_each(|pass| pass.handle.abort());
        let farewell = async {
            while let Some(done) = self.passes.join_next_with_id().await {
                self.finish(done);
            }
        };
        if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
            tracing::warn!("passes were still under way and are abandoned; the next start continues from what is");
        }
        let left = self.driver.drain();
        announce(self.api.clone(), self.settings.clock, left).await;
    }

    fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    /// Begins to work when leadership begins, and leaves everything as it is when it ends.
    fn take_or_leave(&mut self) {
        let leads = self.may_write();
        if leads && !self.leads {
            (self.sender, self.receiver) = mpsc::channel(BACKLOG);
            self.passes = JoinSet::new();
            self.under_way.clear();
            self.driver.start().into_iter().for_each(|watch| self.watch(watch));
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
        let state = &self.driver.state;
        let (queued, running) = state.queue.depth();
        let mut objects: Vec<(String, usize)> =
            state.cache.counts().map(|(resource, count)| (resource.plural.to_string(), count)).collect();
        objects.sort();
        let gauges = Gauges {
            queued,
            running,
            fenced: state.fence.count(),
            objects,
            version: env!("CARGO_PKG_VERSION"),
            architecture: std::env::consts::ARCH,
        };
        let cache = &state.cache;
        let templates = cache.all(&resource::templates()).chain(cache.all(&resource::cluster_templates()));
        let objects = Objects {
            rollouts: cache.all(&resource::rollouts()).collect(),
            runs: cache.all(&resource::runs()).collect(),
            experiments: cache.all(&resource::experiments()).collect(),
            templates: templates.collect(),
        };
        self.api.metrics().with(|metrics| metrics.page(&objects, &gauges, self.now()))
    }

    /// Whether what is always watched has been listed, or another one does the work.
    fn is_ready(&self) -> bool {
        !self.leads || self.driver.is_ready()
    }

    /// Begins a watch; an older one of its resource ends.
    fn watch(&mut self, watch: Watch) {
        let resource = &watch.resource;
        let selector = match &self.settings.instance {
            _ if *resource == resource::jobs() => label::ANALYSIS_RUN_UID.to_owned(),
            _ if ![resource::rollouts(), resource::runs(), resource::experiments()].contains(resource) => String::new(),
            Some(instance) => format!("{}={instance}", label::INSTANCE_ID),
            None => format!("!{}", label::INSTANCE_ID),
        };
        // What belongs to no namespace is in none.
        let namespace = self.settings.namespace.clone().filter(|_| !resource::is_of_cluster(resource));
        let scope = Scope { namespace, selector, part: Part::WithoutOwners, ..Scope::of(resource) };
        let follow = watch::follow_as(self.api.clone(), scope, watch.clone(), self.sender.clone());
        let handle = tokio::spawn(follow).abort_handle();
        if let Some(older) = self.watches.insert(watch.resource, handle) {
            older.abort();
        }
    }

    /// Ends the watches that no object needs.
    fn end_idle_watches(&mut self) {
        for resource in self.driver.unfollow(self.now()) {
            tracing::info!(%resource, "watch ended: no object needs it");
            if let Some(watch) = self.watches.remove(&resource) {
                watch.abort();
            }
        }
    }

    /// Lists a resource anew if a fence has waited too long for one of its objects.
    fn list_overdue(&mut self) {
        for watch in self.driver.overdue(self.now()) {
            tracing::warn!(resource = %watch.resource, "a write was not seen in time; listing anew");
            self.api.metrics().with(|metrics| metrics.watched_anew(&watch.resource.plural));
            self.watch(watch);
        }
    }

    /// Takes in what a watch delivered.
    fn hear(&mut self, watch: &Watch, news: News) {
        let now = self.now();
        let heard = self.driver.hear(watch, news, now, now);
        for place in &heard.gone {
            self.api.metrics().with(|metrics| metrics.forget(&watch.resource.plural, place, now));
        }
        if watch.resource == resource::runs() {
            self.cancel_outdated();
        }
        if !heard.announcements.is_empty() {
            tokio::spawn(announce(self.api.clone(), self.settings.clock, heard.announcements));
        }
    }

    /// Ends the passes that wait for other servers on behalf of an AnalysisRun that is gone or wants something else now. They
    /// have written nothing yet; what happened begins another pass.
    fn cancel_outdated(&self) {
        let cache = &self.driver.state.cache;
        for pass in self.under_way.values() {
            let Some(before) = &pass.run else { continue };
            let now = cache.get(&resource::runs(), &pass.key.place);
            let same = |path: &[&str]| now.is_some_and(|now| now.at(path) == before.at(path));
            let is_same = same(&["metadata", "uid"]) && same(&["metadata", "deletionTimestamp"]) && same(&["spec"]);
            // Whoever clears the flag has the say: this, or the pass that goes on.
            if !is_same && pass.is_away.swap(false, Ordering::Relaxed) {
                pass.handle.abort();
            }
        }
    }

    /// Starts passes while there are workers and keys that are due. Who waits for other servers needs no worker.
    fn start_passes(&mut self) {
        if !self.leads || !self.is_ready() {
            return;
        }
        while self.passes.len() < self.settings.workers.saturating_add(self.errands.away()).min(MOST_PASSES) {
            let metrics = self.api.metrics();
            let fenced = |key: &Key| metrics.with(|metrics| metrics.fenced(key.machine));
            match self.driver.next(self.now(), fenced) {
                Some(Next::Pass(pass)) => self.start(*pass),
                Some(Next::Follow(watches)) => watches.into_iter().for_each(|watch| self.watch(watch)),
                None => return,
            }
        }
    }

    fn start(&mut self, pass: Pass) {
        let Pass { key, mut outbox, case } = pass;
        let is_away = Arc::new(AtomicBool::new(false));
        let run = match &case {
            Case::Analysis(case) => Some(case.run.clone()),
            Case::Rollout(_) | Case::Experiment(_) | Case::Service(_) | Case::Subsets(_) => None,
        };
        let (subject, announced) = (key.clone(), outbox.clone());
        let mut world = Cluster {
            api: self.api.clone(),
            web: self.web.clone(),
            errands: self.errands.clone(),
            is_away: is_away.clone(),
            key,
            record: self.settings.record.clone(),
            clock: self.settings.clock,
            deciding: Instant::now(),
        };
        let handle = self.passes.spawn(async move {
            let begun = Instant::now();
            let mut written = Vec::new();
            let outcome = case.pass(&mut world, &mut outbox, &mut written).await;
            Done { written, outbox, outcome, took: begun.elapsed() }
        });
        let pass = UnderWay { key: subject, outbox: announced, run, is_away, handle: handle.clone() };
        self.under_way.insert(handle.id(), pass);
    }

    /// A pass has ended.
    fn finish(&mut self, done: Result<(Id, Done), JoinError>) {
        let nothing = |outcome, outbox| Done { written: Vec::new(), outbox, outcome, took: Duration::ZERO };
        let (id, done) = match done {
            Ok((id, done)) => (id, Ok(done)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some(UnderWay { key, outbox, .. }) = self.under_way.remove(&id) else { return };
        let done = match done {
            Ok(done) => done,
            // What it was cancelled for begins another pass.
            Err(error) if error.is_cancelled() => nothing(Some(Outcome::Settled(None)), outbox),
            Err(_) => return self.set_aside(&key, outbox),
        };
        let Done { written, outbox, outcome, took } = done;
        let outcome = outcome.unwrap_or(Outcome::Failed(None));
        let ending = match outcome {
            Outcome::Settled(_) => Ending::Settled,
            Outcome::Failed(_) => Ending::Failed,
        };
        self.api.metrics().with(|metrics| {
            metrics.passed(&key, took.as_secs_f64(), ending);
            metrics.released(&key);
        });
        self.driver.finish(&key, written, outcome, outbox, self.now());
    }
}

impl Daemon {
    /// A pass ended in a panic: its object is left alone for a while, and whoever looks at it sees why.
    fn set_aside(&mut self, key: &Key, outbox: Outbox) {
        let now = self.now();
        tracing::error!(kind = key.machine.name(), object = %key.place, "object set aside: its pass ended in a panic");
        self.api.metrics().with(|metrics| metrics.panicked(key));
        let Some(announcement) = self.driver.panicked(key, outbox, now) else { return };
        let (api, clock, key) = (self.api.clone(), self.settings.clock, key.clone());
        tokio::spawn(async move {
            // Of the others the event says it: their status has no conditions.
            if key.machine == Machine::Rollout {
                let patch = quarantine::conditions(&announcement.object, &announcement.event.message, now);
                if let Err(error) = api.patch(&resource::rollouts(), &key.place, "status", &patch).await {
                    tracing::warn!(object = %key.place, %error, "that it is set aside is not in its status");
                }
            }
            announce(api, clock, vec![announcement]).await;
        });
    }
}

/// Resolves when leadership begins, is renewed or ends; never for who is alone.
async fn turn(gate: &mut Option<Gate>) {
    match gate {
        Some(gate) => gate.changed().await,
        None => std::future::pending().await,
    }
}

/// Announces outside of any pass.
async fn announce(api: Api, clock: Clock, announcements: Vec<Announcement>) {
    Cluster::announcing(api, clock).announce(announcements).await;
}
