//! An embedded cluster with the engine in it, in virtual time: one thread, one seed, no sockets.
//!
//! The engine hears of changes, decides and writes by the same functions as in a real cluster; only the transport is
//! missing, and [`faults`](super::faults) takes its place. The [`checker`](super::checker) watches everything that happens.
//! Never waits: time jumps to the next moment at which something is due.

use std::{
    collections::HashSet,
    sync::{Mutex, OnceLock, PoisonError},
    time::Instant,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    checker::Checker,
    faults::{Delivery, Fault, Faults, Streams},
    measure::{Outlook, Web},
};
use crate::{
    api::{self, Rollout, constants},
    embedded::{
        controllers::{Settings, World},
        store::{
            Config, Store,
            request::{Answer, Outcome, PatchType, Request, Verb},
        },
    },
    engine::{
        cache::News,
        compare,
        key::{Key, Machine, ObjectKey, Place, Resource},
        observe::{LiveAnswer, LiveCheck, resource},
        queue,
        state::{State, subject},
        write::{self, Write, Written},
    },
    kubernetes::{
        kind::Kind,
        object::Object,
        status::Status,
        value::{Text, Value},
    },
    model::template,
    rollout::{
        Broken, Event, Seen, Verdict, View, check, decide, deliberate, diff, refused, rest::is_at_rest, services,
    },
    route::{self, Apis},
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
    pub(super) state: State,
    streams: Streams,
    /// The last version whose change the watches took in.
    cursor: u64,
    /// The Rollouts that were met, by uid.
    known: HashSet<Text>,
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
    /// How measurements end, if nobody is asked.
    pub outlook: Option<Outlook>,
    /// What was announced about AnalysisRuns, oldest first.
    pub told: Vec<(Place, Event)>,
    /// What was announced about Experiments, oldest first.
    pub compared: Vec<(Place, Event)>,
    /// What was refused, because it would have broken a rule.
    pub refused: Vec<(Place, Broken)>,
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

/// Why a pass did not end.
pub(super) enum Stop {
    /// A write failed: try again, not before this moment if one is given.
    Failed(Option<Timestamp>),
    /// The server does not take a new object, for this reason.
    Impossible(String),
    /// The engine died.
    Died,
}

impl Local {
    /// A cluster with our custom resources and nothing else in it.
    pub fn new(start: Timestamp, settings: Settings) -> Local {
        let mut local = Local {
            store: furnished(start, settings.seed),
            world: World::new(settings),
            state: State::default(),
            streams: Streams::default(),
            cursor: 0,
            known: HashSet::new(),
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
            outlook: None,
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
        self.state = State::default();
        self.streams = Streams::default();
        self.known.clear();
        self.checker.died();
    }

    /// The engine comes back and looks at everything.
    pub fn start(&mut self) {
        self.engine = Engine::Running;
        self.cursor = self.store.version();
        for resource in watched() {
            self.list(resource);
        }
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
        self.state.fence.wake().is_some()
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
        let experiments = experiments.map(|object| compare::subject(&place(object)));
        let keys: Vec<Key> = rollouts.chain(experiments).collect();
        keys.iter().for_each(|key| self.state.queue.add(key));
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
            if let Some(key) = self.state.next(now, |_| {}) {
                match key.machine {
                    Machine::Service => self.release(&key, resource::services()),
                    Machine::Subsets => {
                        self.release(&key, resource::route(route::Kind::DestinationRule, &Apis::default()));
                    }
                    Machine::Rollout | Machine::Analysis | Machine::Experiment => self.pass(&key),
                    Machine::Sync => {
                        self.state.queue.done(&key, queue::Outcome::Settled(None), now);
                    }
                }
                self.checker.watch(&self.store);
                return true;
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
        let engine = self.state.queue.wake(self.store.now());
        let fence = self.state.fence.wake();
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
            let Some(resource) = resource_of(&change.kind) else { continue };
            let object = change.object.value.clone();
            let news = if change.deleted { News::Gone(object) } else { News::Object(object) };
            self.streams.push(&resource, news, now, &mut self.faults);
        }
        self.cursor = self.store.version();
        for resource in self.state.fence.overdue(now) {
            self.streams.begin_anew(&resource, now);
        }
        while let Some((resource, delivery)) = self.streams.next(now) {
            match delivery {
                Delivery::News(news) => self.hear(&resource, news),
                Delivery::List => self.list(&resource),
            }
        }
    }

    fn list(&mut self, resource: &Resource) {
        let objects = self.store.list(&resource.group, &resource.plural, "");
        let objects: Vec<Value> = objects.map(|object| object.value.clone()).collect();
        let version = self.store.version();
        self.hear(resource, News::List(objects, version));
    }

    fn hear(&mut self, resource: &Resource, news: News) {
        let now = self.store.now();
        let heard = self.state.hear(resource, news, now);
        for (key, _) in heard.gone {
            let message = constants::message::rollout_deleted(&key.place.name, &key.place.namespace);
            let event = Event { warning: false, reason: constants::reason::ROLLOUT_DELETED, message };
            self.events.push((key.place, event));
        }
        heard.again.iter().for_each(|key| self.state.queue.add_again(key));
        for key in heard.keys {
            if self.latency.is_zero() {
                self.state.queue.add(&key);
            } else {
                self.state.queue.add_at(&key, now.saturating_add(self.latency).unwrap_or(Timestamp::MAX));
            }
        }
    }

    /// One pass over a Rollout, an AnalysisRun or an Experiment: see, decide, act, record, announce.
    fn pass(&mut self, key: &Key) {
        let now = self.store.now();
        let mut written = Vec::new();
        let ended = match key.machine {
            Machine::Analysis => self.measure(key, &mut written),
            Machine::Experiment => self.compare(key, &mut written),
            Machine::Rollout | Machine::Service | Machine::Subsets | Machine::Sync => self.decide(key, &mut written),
        };
        let outcome = match ended {
            Ok(wake) => queue::Outcome::Settled(wake),
            Err(Stop::Failed(after)) => queue::Outcome::Failed(after),
            Err(Stop::Impossible(_)) => queue::Outcome::Failed(None),
            Err(Stop::Died) => return,
        };
        // What an analysis recorded of its run is news to the Rollout, as the write of any other controller is.
        if key.machine == Machine::Rollout {
            self.checker.acknowledged(&written);
        }
        self.state.finish(key, written, outcome, now, |resource| watched().contains(resource));
    }

    /// Gives a Service or a DestinationRule back to its owner, if no Rollout leads it any more.
    fn release(&mut self, key: &Key, resource: Resource) {
        let rollouts = self.state.cache.list(&resource::rollouts(), &key.place.namespace);
        let rollouts: Vec<Rollout> = rollouts.map(|rollout| api::read(rollout).object).collect();
        let led = self.state.cache.get(&resource, &key.place);
        let patch = led.and_then(|led| match key.machine {
            Machine::Subsets => route::release(led, &rollouts),
            Machine::Service | Machine::Rollout | Machine::Analysis | Machine::Experiment | Machine::Sync => {
                services::release(led, &rollouts)
            }
        });
        let object = ObjectKey { resource, place: key.place.clone() };
        let write = |body| Write { object, subresource: "", verb: write::Verb::Patch, body };
        let done = patch.map(write).map_or(Ok(None), |write| self.send(&write));
        let now = self.store.now();
        let (written, outcome) = match done {
            Ok(done) => (done.into_iter().collect(), queue::Outcome::Settled(None)),
            Err(Stop::Failed(after)) => (Vec::new(), queue::Outcome::Failed(after)),
            Err(Stop::Impossible(_)) => (Vec::new(), queue::Outcome::Failed(None)),
            Err(Stop::Died) => return,
        };
        self.state.finish(key, written, outcome, now, |resource| watched().contains(resource));
    }

    /// Everything that a decision about a Rollout may know; `None` if there is none of that name.
    pub fn see(&self, place: &Place) -> Option<Seen> {
        self.state.see(place, &self.state.rollout(place)?, self.store.now())
    }

    /// Makes sense of what was seen, with the answers of the server to what must be known for certain; `None` if the watches
    /// are behind.
    fn view(&self, mut seen: Seen) -> Option<View> {
        let mut view = View::of(&seen);
        let mut made = Vec::new();
        while let Some(check) = LiveCheck::next(&view, &made) {
            let ObjectKey { resource, place } = check.object();
            let live = self.store.get(&resource.group, &resource.plural, &place.namespace, &place.name);
            let live = live.map(|live| (&live.value, template::is_altered(&live.managers)));
            match check.absorb(&mut seen, live) {
                LiveAnswer::Confirmed => {}
                LiveAnswer::Changed => view = View::of(&seen),
                LiveAnswer::Stale => return None,
            }
            made.push(check);
        }
        Some(view)
    }

    fn decide(&mut self, key: &Key, written: &mut Vec<Written>) -> Result<Option<Timestamp>, Stop> {
        let place = &key.place;
        let Some(seen) = self.see(place) else { return Ok(None) };
        self.checker.sees(&seen);
        let Some(view) = self.view(seen) else { return Ok(None) };
        if self.known.insert(view.rollout.metadata.uid.as_str().into()) {
            let message = constants::message::added_to_informer(&place.namespace, &place.name);
            let event = Event { warning: false, reason: constants::reason::ADDED_TO_INFORMER, message };
            self.events.push((place.clone(), event));
        }
        let verdict = decide(&view);
        debug_assert!(
            !is_at_rest(&view) || deliberate(&view).is_quiet(&view),
            "{place} is not at rest: {:?}",
            deliberate(&view)
        );
        let actions = diff(&view, &verdict);
        let broken = check(&view, &verdict, &actions);
        if !broken.is_empty() {
            self.refused.extend(broken.into_iter().map(|broken| (place.clone(), broken)));
            return Err(Stop::Failed(None));
        }
        for action in &actions {
            match self.send(&Write::of(&view, action)) {
                Ok(done) => written.extend(done),
                Err(Stop::Impossible(why)) => {
                    let Some(verdict) = refused(&view, action, &why) else { return Err(Stop::Impossible(why)) };
                    if let Some(write) = Write::status(&view, &verdict, None) {
                        written.extend(self.send(&write)?);
                    }
                    self.events.extend(verdict.events.into_iter().map(|event| (place.clone(), event)));
                    return Err(Stop::Failed(None));
                }
                Err(stop) => return Err(stop),
            }
        }
        let own = written.iter().filter_map(Written::rollout_version).next_back();
        if let Some(write) = Write::status(&view, &verdict, own) {
            written.extend(self.send(&write)?);
        }
        let Verdict { events, wake, .. } = verdict;
        self.events.extend(events.into_iter().map(|event| (place.clone(), event)));
        Ok(wake)
    }

    /// Sends a write of the engine, as far as nothing goes wrong.
    pub(super) fn send(&mut self, write: &Write) -> Result<Option<Written>, Stop> {
        let now = self.store.now();
        let fault = self.faults.of_write(self.writes);
        self.writes += 1;
        if let Some(requests) = &mut self.requests {
            requests.push(write.to_string());
        }
        match &fault {
            Some(Fault::Conflict | Fault::Error) => return Err(Stop::Failed(None)),
            Some(Fault::Busy(after)) => {
                return Err(Stop::Failed(Some(now.saturating_add(*after).unwrap_or(Timestamp::MAX))));
            }
            Some(Fault::Meanwhile(request)) => drop(self.store.apply(Request::clone(request))),
            Some(Fault::Lost | Fault::Crash(_)) | None => {}
        }
        let before = self.store.version();
        let outcome = self.store.apply(asked(write));
        self.checker.wrote(&self.store, before);
        match fault {
            Some(Fault::Lost) => return Err(Stop::Failed(None)),
            Some(Fault::Crash(away)) => {
                self.kill();
                self.engine = Engine::Back(now.saturating_add(away).unwrap_or(Timestamp::MAX));
                return Err(Stop::Died);
            }
            Some(Fault::Conflict | Fault::Busy(_) | Fault::Error | Fault::Meanwhile(_)) | None => {}
        }
        match outcome {
            Ok(response) => Ok(write.done(&match response.answer {
                Answer::Object(_, object) => object.value.clone(),
                _ => Value::Null,
            })),
            Err(status) if write.tolerates(status.code) => Ok(None),
            Err(status) if write.is_refused(status.code) => Err(Stop::Impossible(status.message)),
            Err(_) => Err(Stop::Failed(None)),
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

/// What the engine follows.
fn watched() -> &'static [Resource] {
    static WATCHED: OnceLock<Vec<Resource>> = OnceLock::new();
    WATCHED.get_or_init(all_watched)
}

fn all_watched() -> Vec<Resource> {
    let [own, clusters] = [resource::templates(), resource::cluster_templates()];
    let [pods, deployments, pod_templates] = [resource::pods(), resource::deployments(), resource::pod_templates()];
    let rest = [pods, deployments, pod_templates, own, clusters, resource::jobs()];
    let apis = Apis::default();
    let routes = route::kinds().into_iter().map(|kind| resource::route(kind, &apis));
    let routes = routes.filter(|resource| *resource != resource::services());
    resource::always().into_iter().chain(rest).chain(routes).collect()
}

/// The watched resource of a kind.
fn resource_of(kind: &Kind) -> Option<Resource> {
    let is = |resource: &Resource| kind.group == resource.group && kind.plural == resource.plural;
    watched().iter().find(|resource| is(resource)).cloned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_router_is_watched() {
        let apis = Apis::default();
        for row in &route::ROUTERS {
            for kind in row.kinds {
                let resource = resource::route(*kind, &apis);
                assert!(watched().contains(&resource), "{} reads {resource}, which is not watched", row.name);
            }
        }
    }
}
