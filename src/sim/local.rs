//! An embedded cluster with the engine in it, in virtual time: one thread, one seed, no sockets.
//!
//! The engine decides with the same functions as in a real cluster and writes through the same requests; only the watch is
//! shorter: a pass looks at the store itself. Never waits: time jumps to the next moment at which something is due.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};

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
        key::{Key, Machine, Place},
        queue::{self, Queue},
    },
    kubernetes::{
        object::{self, Object},
        status::{Reason, Status},
        value::{Text, Value},
    },
    rollout::{
        Action, Broken, Event, Seen, Verdict, View, check, decide, deliberate, diff, diff::Subject, rest::is_at_rest,
        services, templates, view,
    },
    value,
};

/// Who writes.
const MANAGER: &str = "tidegate";

/// A cluster, the world around it, and the engine.
pub struct Local {
    store: Store,
    world: World,
    queue: Queue,
    /// The last version whose change was noticed.
    cursor: u64,
    /// The Rollouts that were met, by uid.
    known: HashSet<Text>,
    /// Whether the engine is there.
    running: bool,
    /// How long it takes until the engine hears of a change.
    pub latency: SignedDuration,
    /// What was announced, oldest first.
    pub events: Vec<(Place, Event)>,
    /// What was refused, because it would have broken a rule.
    pub refused: Vec<(Place, Broken)>,
    /// What was decided, oldest first.
    pub decisions: Vec<(Place, Verdict)>,
}

impl Local {
    /// A cluster with our custom resources and nothing else in it.
    pub fn new(start: Timestamp, settings: Settings) -> Local {
        let store = Store::new(Config::new(start, settings.seed));
        let mut local = Local {
            store,
            world: World::new(settings),
            queue: Queue::default(),
            cursor: 0,
            known: HashSet::new(),
            running: true,
            latency: SignedDuration::ZERO,
            events: Vec::new(),
            refused: Vec::new(),
            decisions: Vec::new(),
        };
        for definition in api::crd::all() {
            let request = request(Verb::Create, "apiextensions.k8s.io", "v1", "customresourcedefinitions");
            // Our own definitions are valid: a test installs them.
            let _ = local.ask(Request { body: Some(definition), ..request });
        }
        local.settle();
        local
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.store.now()
    }

    /// The engine dies: nothing is decided, and all it knew is lost.
    pub fn kill(&mut self) {
        self.running = false;
        self.queue = Queue::default();
        self.known.clear();
    }

    /// The engine comes back and looks at everything.
    pub fn start(&mut self) {
        self.running = true;
        self.cursor = self.store.version();
        let rollouts = self.store.list(constants::GROUP, "rollouts", "");
        let places = rollouts.map(|rollout| Place { namespace: rollout.namespace(), name: rollout.name() });
        for place in places.collect::<Vec<_>>() {
            self.queue.add(&Key { machine: Machine::Rollout, place });
        }
    }

    /// What is in the cluster.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Asks the API server.
    pub fn ask(&mut self, request: Request) -> Outcome {
        self.store.apply(request)
    }

    /// Does one thing that is due: a pass of the engine, or a look of a controller. `false` if nothing is due now.
    pub fn step(&mut self) -> bool {
        let now = self.store.now();
        if self.running {
            self.notice();
        }
        if let Some(key) = self.queue.next(now) {
            let outcome = match key.machine {
                Machine::Service => self.release(&key.place),
                Machine::Rollout => self.pass(&key.place),
                Machine::Analysis | Machine::Experiment | Machine::Sync => queue::Outcome::Settled(None),
            };
            self.queue.done(&key, outcome, now);
            return true;
        }
        self.world.step(&mut self.store)
    }

    /// Steps until nothing is due now.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    /// When something is due, if nothing happens before.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.world.next_wake().into_iter().chain(self.queue.wake(self.store.now())).min()
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

    /// Lets time pass until this holds; `false` if it does not within the given time.
    pub fn until(&mut self, limit: SignedDuration, holds: impl Fn(&Store) -> bool) -> bool {
        let end = self.store.now().saturating_add(limit).unwrap_or(Timestamp::MAX);
        loop {
            if holds(&self.store) {
                return true;
            }
            if self.step() {
                continue;
            }
            let Some(wake) = self.next_wake().filter(|wake| *wake <= end) else { return holds(&self.store) };
            self.store.advance(wake.duration_since(self.store.now()));
        }
    }

    /// Queues every Rollout that a change is about.
    fn notice(&mut self) {
        let (mut keys, mut gone, mut led) = (Vec::<Place>::new(), Vec::<Place>::new(), Vec::<Place>::new());
        for change in self.store.changes_since(self.cursor) {
            let kind = (change.kind.group.as_str(), change.kind.plural.as_str());
            let object = &change.object;
            if kind == (constants::GROUP, "rollouts") {
                let before = change.old.as_ref().map(|old| &old.value);
                let abandoned = services::abandoned(before, change.after().map(|after| &after.value));
                led.extend(abandoned.into_iter().map(|name| Place { namespace: object.namespace(), name }));
            }
            if kind == ("", "services") && services::is_led(&object.value) {
                led.push(Place { namespace: object.namespace(), name: object.name() });
            }
            match kind {
                (constants::GROUP, "rollouts") if change.deleted => {
                    gone.push(Place { namespace: object.namespace(), name: object.name() });
                }
                (constants::GROUP, "rollouts") => {
                    keys.push(Place { namespace: object.namespace(), name: object.name() })
                }
                ("apps", "replicasets" | "deployments") | ("", "services" | "pods" | "podtemplates") => {
                    keys.extend(self.concerned(object, kind.1));
                }
                (constants::GROUP, "analysistemplates" | "clusteranalysistemplates") => {
                    keys.extend(self.measured(&object.namespace()));
                }
                _ => {}
            }
        }
        self.cursor = self.store.version();
        for place in gone {
            let message = constants::message::rollout_deleted(&place.name, &place.namespace);
            let event = Event { warning: false, reason: constants::reason::ROLLOUT_DELETED, message };
            self.queue.forget(&Key { machine: Machine::Rollout, place: place.clone() });
            self.events.push((place, event));
        }
        let heard = self.store.now().saturating_add(self.latency).unwrap_or(Timestamp::MAX);
        for place in keys {
            self.queue.add_at(&Key { machine: Machine::Rollout, place }, heard);
        }
        for place in led {
            self.queue.add_at(&Key { machine: Machine::Service, place }, heard);
        }
    }

    /// The Rollouts of its namespace that an object matters to.
    fn concerned(&self, object: &Object, plural: &str) -> Vec<Place> {
        let owner = object::controller(&object.value);
        let name = object.name();
        let matters = |rollout: &Rollout| match plural {
            "services" => services::named(rollout).iter().any(|(_, service)| *service == name),
            "pods" => view::needs_pods(rollout, self.store.now()),
            _ => {
                let refers = rollout.spec.workload_ref.as_ref().is_some_and(|workload| workload.name == name.as_str());
                refers || owner.as_deref() == Some(rollout.metadata.uid.as_str()) || owner.is_none()
            }
        };
        let namespace = object.namespace();
        let rollouts = self.store.list(constants::GROUP, "rollouts", &namespace);
        let concerned = rollouts.filter(|rollout| matters(&api::read::<Rollout>(&rollout.value).object));
        concerned.map(|rollout| Place { namespace: rollout.namespace(), name: rollout.name() }).collect()
    }

    /// The Rollouts that name analysis templates: those of a namespace, or all if it is empty.
    fn measured(&self, namespace: &str) -> Vec<Place> {
        let rollouts = self.store.list(constants::GROUP, "rollouts", namespace);
        let measured = rollouts.filter(|rollout| templates::are_named(&api::read::<Rollout>(&rollout.value).object));
        measured.map(|rollout| Place { namespace: rollout.namespace(), name: rollout.name() }).collect()
    }

    /// Everything that a decision about a Rollout may know; `None` if there is none of that name.
    pub fn see(&self, place: &Place) -> Option<Seen> {
        let store = &self.store;
        let object = store.get(constants::GROUP, "rollouts", &place.namespace, &place.name)?;
        let rollout: Rollout = api::read(&object.value).object;
        let all = |plural: &str| -> Vec<Value> {
            let group = if plural == "pods" { "" } else { "apps" };
            store.list(group, plural, &place.namespace).map(|object| object.value.clone()).collect()
        };
        let service = |name: &str| store.get("", "services", &place.namespace, name);
        let workload = rollout.spec.workload_ref.as_ref().and_then(|workload| {
            let (group, plural) = match workload.kind.as_str() {
                "Deployment" => ("apps", "deployments"),
                "ReplicaSet" => ("apps", "replicasets"),
                _ => ("", "podtemplates"),
            };
            store.get(group, plural, &place.namespace, &workload.name)
        });
        Some(Seen {
            now: store.now(),
            rollout: object.value.clone(),
            sets: all("replicasets"),
            services: services::named(&rollout)
                .iter()
                .filter_map(|(_, name)| service(name))
                .map(|service| service.value.clone())
                .collect(),
            workload: workload.map(|workload| workload.value.clone()),
            templates: templates::reach(&rollout, |scope, name| {
                let (plural, namespace) = match scope {
                    templates::Scope::Namespace => ("analysistemplates", place.namespace.as_str()),
                    templates::Scope::Cluster => ("clusteranalysistemplates", ""),
                };
                store.get(constants::GROUP, plural, namespace, name).map(|template| template.value.clone())
            })
            .0,
            pods: if view::needs_pods(&rollout, store.now()) { all("pods") } else { Vec::new() },
        })
    }

    /// One pass: see, decide, act, record, announce.
    fn pass(&mut self, place: &Place) -> queue::Outcome {
        let Some(seen) = self.see(place) else { return queue::Outcome::Settled(None) };
        let view = View::of(&seen);
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
        let wake = verdict.wake;
        let actions = diff(&view, &verdict);
        let broken = check(&view, &verdict, &actions);
        if !broken.is_empty() {
            self.refused.extend(broken.into_iter().map(|broken| (place.clone(), broken)));
            return queue::Outcome::Settled(wake);
        }
        for action in &actions {
            if self.act(&view, place, action).is_err() {
                return queue::Outcome::Failed(None);
            }
        }
        if let Some(patch) = verdict.status.as_ref().and_then(|status| diff::status_patch(&view, status)) {
            // A pass that changed the Rollout itself has made its own observation old.
            let patch = self.on_newest(place, patch);
            if self.patch(constants::GROUP, constants::VERSION, "rollouts", "status", place, patch).is_err() {
                return queue::Outcome::Failed(None);
            }
        }
        self.events.extend(verdict.events.iter().map(|event| (place.clone(), event.clone())));
        self.decisions.push((place.clone(), verdict));
        queue::Outcome::Settled(wake)
    }

    /// Gives a Service back to its owner, if no Rollout leads it any more.
    fn release(&mut self, place: &Place) -> queue::Outcome {
        let rollouts = self.store.list(constants::GROUP, "rollouts", &place.namespace);
        let rollouts: Vec<Rollout> = rollouts.map(|rollout| api::read(&rollout.value).object).collect();
        let service = self.store.get("", "services", &place.namespace, &place.name);
        let Some(patch) = service.and_then(|service| services::release(&service.value, &rollouts)) else {
            return queue::Outcome::Settled(None);
        };
        match self.patch("", "v1", "services", "", place, patch) {
            Ok(()) => queue::Outcome::Settled(None),
            Err(_) => queue::Outcome::Failed(None),
        }
    }

    fn on_newest(&self, place: &Place, mut patch: Value) -> Value {
        let newest = self.store.get(constants::GROUP, "rollouts", &place.namespace, &place.name);
        if let Some(newest) = newest {
            patch.set_at(&["metadata", "resourceVersion"], newest.version().to_string());
        }
        patch
    }

    fn act(&mut self, view: &View, place: &Place, action: &Action) -> Result<(), Status> {
        let at = |name: &Text| Place { namespace: place.namespace.clone(), name: name.clone() };
        match action {
            Action::CreateSet { set } => {
                let create = request(Verb::Create, "apps", "v1", "replicasets");
                let body = Some(set.clone());
                self.ask(Request { namespace: place.namespace.clone(), body, ..create }).map(drop)
            }
            Action::Patch { object, name, patch } => {
                let patch = patch.clone();
                match object {
                    Subject::Rollout => self.patch(constants::GROUP, constants::VERSION, "rollouts", "", place, patch),
                    Subject::Set => self.patch("apps", "v1", "replicasets", "", &at(name), patch),
                    Subject::Service => self.patch("", "v1", "services", "", &at(name), patch),
                    Subject::Pod => self.patch("", "v1", "pods", "", &at(name), patch),
                    Subject::Workload => self.patch("apps", "v1", workload_resource(view), "", &at(name), patch),
                }
            }
            Action::DeleteSet { name, uid } => {
                let delete = request(Verb::Delete, "apps", "v1", "replicasets");
                let body = Some(value!({"preconditions": {"uid": uid}, "propagationPolicy": "Background"}));
                let (namespace, name) = (place.namespace.clone(), name.clone());
                self.ask(Request { namespace, name, body, ..delete }).map(drop)
            }
            Action::Evict { pod } => {
                let evict = request(Verb::Create, "", "v1", "pods");
                let body = Some(value!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}));
                let (namespace, name) = (place.namespace.clone(), pod.clone());
                let evict = Request { namespace, name, subresource: "eviction".into(), body, ..evict };
                match self.ask(evict) {
                    // A disruption budget says no; it is asked again later.
                    Err(status) if status.reason == Reason::TooManyRequests => Ok(()),
                    outcome => outcome.map(drop),
                }
            }
        }
    }

    /// Changes an object by a merge patch.
    pub fn patch(
        &mut self,
        group: &str,
        version: &str,
        plural: &str,
        subresource: &str,
        place: &Place,
        patch: Value,
    ) -> Result<(), Status> {
        let patched = Request {
            namespace: place.namespace.clone(),
            name: place.name.clone(),
            subresource: subresource.into(),
            body: Some(patch),
            ..request(Verb::Patch(PatchType::Merge), group, version, plural)
        };
        self.ask(patched).map(drop)
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

fn workload_resource(view: &View) -> &'static str {
    match view.rollout.spec.workload_ref.as_ref().map(|workload| workload.kind.as_str()) {
        Some("ReplicaSet") => "replicasets",
        _ => "deployments",
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
