//! An embedded cluster with the engine in it, in virtual time: one thread, one seed, no sockets.
//!
//! The engine hears of changes, decides and writes by the same functions as in a real cluster; only the transport is
//! missing, and [`faults`](super::faults) takes its place. The [`checker`](super::checker) watches everything that happens.
//! Never waits: time jumps to the next moment at which something is due.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::Instant,
};

use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};

use super::{
    checker::Checker,
    faults::{Delivery, Fault, Faults, Streams},
    web::{OWN, Web},
    world::Embedded,
};
use crate::{
    api::{self, constants},
    embedded::{
        controllers::{Settings, World},
        store::{
            Config, Store,
            request::{Answer, Outcome, PatchType, Request, Verb},
        },
    },
    engine::{
        cache::News,
        driver::{Case, Driver, Next, Pass, Watch},
        experiment,
        key::{Key, Machine, Place, Resource},
        machine, observe,
        state::{State, subject},
        world::{Refusal, Trouble},
        write::{self, Write, Written},
    },
    kubernetes::{kind::Kind, object::Object, status::Status, value::Value},
    metric,
    model::event::Event,
    rollout::Seen,
};

/// Who writes.
const MANAGER: &str = "tidegate";

/// So many steps at one moment are no work but a loop.
const BUSY: u32 = 4000;
/// And so many more for each object: 2,000 pods that become ready at once are work.
const BUSY_PER_OBJECT: u32 = 32;

/// A cluster, the world around it, and the engine.
#[derive(Debug, Clone)]
pub struct Local {
    pub(super) store: Store,
    world: World,
    driver: Driver,
    /// The newest watch of each resource.
    watches: BTreeMap<Resource, Watch>,
    /// Those that the server does not know.
    unserved: BTreeSet<Resource>,
    streams: Streams,
    /// The last version whose change the watches took in.
    cursor: u64,
    /// When the watches were ended last that no object needs.
    swept: Timestamp,
    engine: Engine,
    writes: u64,
    /// How many steps were taken at which moment.
    steps: (Timestamp, u32),
    /// How many may be.
    allowed: u32,
    /// When whoever waits for this cluster stops waiting: from then on nothing is due any more.
    pub deadline: Option<Instant>,
    /// What goes wrong.
    pub faults: Faults,
    /// Who looks whether everything that happens may happen.
    pub checker: Checker,
    /// How long it takes until the engine acts upon a change that it sees.
    pub latency: SignedDuration,
    /// What was announced, oldest first.
    pub events: Vec<(Place, Event)>,
    /// What the web answers to those who measure.
    pub web: Web,
    /// What was announced about AnalysisRuns, oldest first.
    pub told: Vec<(Place, Event)>,
    /// What was announced about Experiments, oldest first.
    pub compared: Vec<(Place, Event)>,
    /// What was refused, because it would have broken a rule.
    pub refused: Vec<(Place, String)>,
    /// What the engine asked the server to change, in its order; `None` if nobody reads it.
    pub requests: Option<Vec<String>>,
}

/// Whether the engine is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    Running,
    /// It is there, but does nothing: what happens meanwhile it hears of later.
    Stopped,
    Dead,
    /// It is started again then.
    Back(Timestamp),
}

/// How often watches are ended that no object needs, if anything happens at all.
const SWEEP: SignedDuration = SignedDuration::from_secs(60);
/// How soon a definition that was installed is found.
const SERVED_AGAIN: SignedDuration = SignedDuration::from_secs(1);

impl Local {
    /// A cluster with our custom resources and nothing else in it.
    pub fn new(start: Timestamp, settings: Settings) -> Local {
        let mut local = Local {
            store: furnished(start, settings.seed),
            world: World::new(settings),
            driver: Driver::new(machine::Settings {
                measuring: metric::Settings { namespace: OWN.to_owned(), ..metric::Settings::default() },
                ..machine::Settings::default()
            }),
            watches: BTreeMap::new(),
            unserved: BTreeSet::new(),
            streams: Streams::default(),
            cursor: 0,
            swept: start,
            engine: Engine::Running,
            writes: 0,
            steps: (start, 0),
            allowed: BUSY,
            deadline: None,
            faults: Faults::default(),
            checker: Checker::default(),
            latency: SignedDuration::ZERO,
            events: Vec::new(),
            web: Web::default(),
            told: Vec::new(),
            compared: Vec::new(),
            refused: Vec::new(),
            requests: None,
        };
        local.start();
        local.settle();
        local
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.store.now()
    }

    /// The engine dies: nothing is decided, and all it knew is lost.
    pub fn kill(&mut self) {
        self.engine = Engine::Dead;
        self.driver = Driver::new(self.driver.settings.clone());
        self.watches.clear();
        self.unserved.clear();
        self.streams = Streams::default();
        self.checker.died();
    }

    /// The engine comes back and looks at everything.
    pub fn start(&mut self) {
        self.engine = Engine::Running;
        self.cursor = self.store.version();
        let watches = self.driver.start();
        self.follow(watches);
    }

    /// How the engine is set up.
    pub fn settings(&mut self) -> &mut machine::Settings {
        &mut self.driver.settings
    }

    /// The engine stops where it is, as a process does that is told to.
    pub fn stop(&mut self) {
        if self.is_running() {
            self.engine = Engine::Stopped;
            // Who stands still is not on time.
            self.checker.stopped();
        }
    }

    /// A stopped engine goes on.
    pub fn go_on(&mut self) {
        if self.engine == Engine::Stopped {
            self.engine = Engine::Running;
        }
    }

    /// Whether it waits for something that it wrote.
    pub fn is_fenced(&self) -> bool {
        self.driver.state.fence.wake().is_some()
    }

    /// Whether the engine is there.
    pub fn is_running(&self) -> bool {
        self.engine == Engine::Running
    }

    /// Looks at every Rollout and every Experiment again, as a resync does.
    pub fn resync(&mut self) {
        let place = |object: &Object| Place { namespace: object.namespace(), name: object.name() };
        let rollouts = self.store.list(constants::GROUP, "rollouts", "").map(|object| subject(&place(object)));
        let experiments = self.store.list(constants::GROUP, "experiments", "");
        let experiments = experiments.map(|object| experiment::subject(&place(object)));
        let keys: Vec<Key> = rollouts.chain(experiments).collect();
        keys.iter().for_each(|key| self.driver.state.queue.add(key));
    }

    /// What is in the cluster.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// How many writes the engine has sent.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Asks the API server.
    pub fn ask(&mut self, request: Request) -> Outcome {
        self.store.apply(request)
    }

    /// Does one thing that is due: a pass of the engine, or a look of a controller. `false` if nothing is due now.
    pub fn step(&mut self) -> bool {
        let now = self.store.now();
        self.steps = if self.steps.0 == now { (now, self.steps.1.saturating_add(1)) } else { (now, 0) };
        if self.is_late() {
            return false;
        }
        if self.steps.1 == self.allowed {
            // Objects are counted only now: nearly no moment has that many steps.
            let objects = u32::try_from(self.store.len()).unwrap_or(u32::MAX);
            let allowed = BUSY.saturating_add(objects.saturating_mul(BUSY_PER_OBJECT));
            self.allowed = self.allowed.max(allowed);
            if self.steps.1 == self.allowed {
                self.checker.complain(format!("S7: {} steps without time passing", self.allowed));
            }
        }
        if self.is_circling() {
            return false;
        }
        if let Engine::Back(at) = self.engine
            && at <= now
        {
            self.start();
        }
        self.checker.watch(&self.store);
        if self.is_running() {
            self.listen();
            match self.driver.next(now, |_| {}) {
                Some(Next::Pass(pass)) => {
                    self.pass(*pass);
                    self.checker.watch(&self.store);
                    return true;
                }
                Some(Next::Follow(watches)) => {
                    self.follow(watches);
                    return true;
                }
                None => {}
            }
        }
        self.world.step(&mut self.store)
    }

    /// Whether more happens at this moment than work explains.
    pub fn is_circling(&self) -> bool {
        self.steps.1 >= self.allowed && self.steps.0 == self.store.now()
    }

    /// Whether nobody waits for this cluster any more.
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Steps until nothing is due now.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    /// When something is due, if nothing happens before.
    pub fn next_wake(&self) -> Option<Timestamp> {
        // Who turns in circles is not waited for; the checker has said so.
        if self.is_circling() || self.is_late() {
            return None;
        }
        let back = match self.engine {
            Engine::Back(at) => Some(at),
            Engine::Stopped => return self.world.next_wake(),
            Engine::Running | Engine::Dead => None,
        };
        let engine = self.driver.state.queue.wake(self.store.now());
        let fence = self.driver.state.fence.wake();
        [self.world.next_wake(), engine, fence, self.streams.wake(), back].into_iter().flatten().min()
    }

    /// Lets time pass: everything that is due on the way happens at its time.
    pub fn advance(&mut self, by: SignedDuration) {
        let end = self.store.now().saturating_add(by).unwrap_or(Timestamp::MAX);
        self.settle();
        while let Some(wake) = self.next_wake().filter(|wake| *wake <= end) {
            self.store.advance(wake.duration_since(self.store.now()));
            self.settle();
        }
        self.store.advance(end.duration_since(self.store.now()));
    }

    /// Moves the clock, and nothing else.
    pub fn wait(&mut self, by: SignedDuration) {
        self.store.advance(by);
    }

    /// Lets time pass until this holds; `false` if it does not within the given time.
    pub fn until(&mut self, limit: SignedDuration, mut holds: impl FnMut(&Local) -> bool) -> bool {
        let end = self.store.now().saturating_add(limit).unwrap_or(Timestamp::MAX);
        loop {
            if holds(self) {
                return true;
            }
            if self.step() {
                continue;
            }
            let wake = self.next_wake().filter(|wake| *wake <= end);
            self.store.advance(wake.unwrap_or(end).duration_since(self.store.now()));
            if wake.is_none() {
                return holds(self);
            }
        }
    }

    /// Takes in what the watches deliver, and decides nothing yet.
    pub fn take_in(&mut self) {
        self.listen();
    }

    /// Takes in what the watches deliver.
    fn listen(&mut self) {
        let now = self.store.now();
        for change in self.store.changes_since(self.cursor) {
            // A definition may be the one that was missed.
            if change.kind.plural == "customresourcedefinitions" {
                let later = now.saturating_add(SERVED_AGAIN).unwrap_or(Timestamp::MAX);
                self.unserved.iter().for_each(|resource| self.streams.begin_anew(resource, later));
            }
            let Some(watch) = watch_of(&self.watches, &change.kind) else { continue };
            let object = change.object.value.clone();
            let news = if change.deleted { News::Gone(object) } else { News::Object(object) };
            self.streams.push(&watch.resource, news, now, &mut self.faults);
        }
        self.cursor = self.store.version();
        for watch in self.driver.overdue(now) {
            self.streams.begin_anew(&watch.resource, now);
            self.watches.insert(watch.resource.clone(), watch);
        }
        while let Some((resource, delivery)) = self.streams.next(now) {
            match delivery {
                Delivery::News(news) => self.hear(&resource, news),
                Delivery::List => self.list(&resource),
            }
        }
        if self.swept.saturating_add(SWEEP).is_ok_and(|due| due <= now) {
            self.swept = now;
            for resource in self.driver.unfollow(now) {
                self.watches.remove(&resource);
                self.unserved.remove(&resource);
                self.streams.end(&resource);
            }
        }
    }

    /// Begins these watches.
    fn follow(&mut self, watches: Vec<Watch>) {
        for watch in watches {
            let resource = watch.resource.clone();
            self.watches.insert(resource.clone(), watch);
            self.list(&resource);
        }
    }

    fn list(&mut self, resource: &Resource) {
        if self.store.registry().find(&resource.group, &resource.version, &resource.plural).is_none() {
            self.unserved.insert(resource.clone());
            return self.hear(resource, News::Unserved);
        }
        self.unserved.remove(resource);
        let (objects, version) = (self.objects(resource), self.store.version());
        self.hear(resource, News::List(objects, version));
    }

    fn objects(&self, resource: &Resource) -> Vec<Value> {
        self.store.list(&resource.group, &resource.plural, "").map(|object| object.value.clone()).collect()
    }

    fn hear(&mut self, resource: &Resource, news: News) {
        let now = self.store.now();
        let Some(watch) = self.watches.get(resource) else { return };
        let due = now.saturating_add(self.latency).unwrap_or(Timestamp::MAX);
        let heard = self.driver.hear(watch, news, now, due);
        self.announce(heard.announcements);
    }

    /// Carries a pass out.
    fn pass(&mut self, pass: Pass) {
        let Pass { key, mut outbox, case } = pass;
        if let Case::Rollout(case) = &case {
            self.checker.sees(&case.seen);
        }
        let mut written = Vec::new();
        let mut world = Embedded { place: key.place.clone(), local: self };
        let Some(ended) = case.pass(&mut world, &mut outbox, &mut written).now_or_never() else {
            self.checker.complain(format!("a pass about {key} waited"));
            return;
        };
        // Who died knows nothing of it.
        let Some(outcome) = ended else { return };
        // What an analysis recorded of its run is news to the Rollout, as the write of any other controller is.
        if key.machine == Machine::Rollout {
            self.checker.acknowledged(&written);
        }
        self.driver.finish(&key, written, outcome, outbox, self.store.now());
    }

    /// Everything that a decision about a Rollout may know; `None` if there is none of that name.
    pub fn see(&self, place: &Place) -> Option<Seen> {
        let (state, now) = (&self.driver.state, self.store.now());
        let rollout = state.rollout(place)?;
        let mut needs = observe::needs(&rollout, &state.apis_for(&rollout), now);
        needs.retain(|resource| !state.cache.is_listed(resource));
        if needs.is_empty() {
            return state.see(place, &rollout, now);
        }
        // Nothing needed it so far.
        let mut state: State = state.clone();
        for resource in needs {
            state.cache.take(&resource, News::List(self.objects(&resource), self.store.version()));
        }
        state.see(place, &rollout, now)
    }

    /// Sends a write of the engine, as far as nothing goes wrong.
    pub(super) fn send(&mut self, write: &Write) -> Result<Option<Written>, Trouble> {
        let refusal =
            |code, message: &str, after| Err(Trouble::Refused(Refusal { code, message: message.into(), after }));
        let now = self.store.now();
        let fault = self.faults.of_write(self.writes);
        self.writes += 1;
        if let Some(requests) = &mut self.requests {
            requests.push(write.to_string());
        }
        match &fault {
            Some(Fault::Conflict) => return refusal(409, "the object has been modified", None),
            Some(Fault::Error) => return refusal(500, "internal error", None),
            Some(Fault::Busy(after)) => {
                let after = now.saturating_add(*after).unwrap_or(Timestamp::MAX);
                return refusal(429, "too many requests", Some(after));
            }
            Some(Fault::Meanwhile(request)) => drop(self.store.apply(Request::clone(request))),
            Some(Fault::Lost | Fault::Crash(_)) | None => {}
        }
        let before = self.store.version();
        let outcome = self.store.apply(asked(write));
        self.checker.wrote(&self.store, before);
        match fault {
            Some(Fault::Lost) => return Err(Trouble::Unreachable("the answer was lost".to_owned())),
            Some(Fault::Crash(away)) => {
                self.kill();
                self.engine = Engine::Back(now.saturating_add(away).unwrap_or(Timestamp::MAX));
                return Err(Trouble::Over);
            }
            Some(Fault::Conflict | Fault::Busy(_) | Fault::Error | Fault::Meanwhile(_)) | None => {}
        }
        match outcome {
            Ok(response) => Ok(write.done(&match response.answer {
                Answer::Object(_, object) => object.value.clone(),
                _ => Value::Null,
            })),
            Err(status) if write.tolerates(status.code) => Ok(None),
            Err(status) => refusal(status.code, &status.message, None),
        }
    }

    /// Creates an object in a namespace.
    pub fn create(
        &mut self,
        group: &str,
        version: &str,
        plural: &str,
        namespace: &str,
        body: Value,
    ) -> Result<Value, Status> {
        let create = request(Verb::Create, group, version, plural);
        let response = self.ask(Request { namespace: namespace.into(), body: Some(body), ..create })?;
        Ok(match response.answer {
            Answer::Object(_, object) => object.value.clone(),
            _ => Value::Null,
        })
    }
}

/// A store with our custom resources in it. Reading their schemas takes longer than most stories do, so that it is done
/// once for each moment at which stories start.
fn furnished(start: Timestamp, seed: u64) -> Store {
    static MADE: Mutex<Option<(Timestamp, Store)>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut store = match &*made {
        Some((at, store)) if *at == start => store.clone(),
        Some(_) | None => {
            let mut store = Store::new(Config::new(start, 0));
            for definition in api::crd::all() {
                let create = request(Verb::Create, "apiextensions.k8s.io", "v1", "customresourcedefinitions");
                // Our own definitions are valid: a test installs them.
                let _ = store.apply(Request { body: Some(definition), ..create });
            }
            *made = Some((start, store.clone()));
            store
        }
    };
    store.reseed(seed);
    store
}

/// The watch of a kind, if it is followed.
fn watch_of<'w>(watches: &'w BTreeMap<Resource, Watch>, kind: &Kind) -> Option<&'w Watch> {
    watches.values().find(|watch| kind.group == watch.resource.group && kind.plural == watch.resource.plural)
}

/// A write of the engine as the store is asked.
fn asked(write: &Write) -> Request {
    let verb = match &write.verb {
        write::Verb::Create | write::Verb::Evict(..) => Verb::Create,
        write::Verb::Patch => Verb::Patch(PatchType::Merge),
        write::Verb::Delete(..) => Verb::Delete,
    };
    let Resource { group, version, plural } = &write.object.resource;
    Request {
        namespace: write.object.place.namespace.clone(),
        name: write.object.place.name.clone(),
        subresource: write.subresource.into(),
        body: Some(write.body.clone()),
        ..request(verb, group, version, plural)
    }
}

fn request(verb: Verb, group: &str, version: &str, plural: &str) -> Request {
    Request {
        verb,
        group: group.into(),
        version: version.into(),
        resource: plural.into(),
        agent: MANAGER.into(),
        ..Request::default()
    }
}
