//! The queue of everything that is to be looked at, and the timers of what is to be looked at later.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    ask, deployment, disruption, endpointslice,
    event::Recorder,
    gc,
    hands::{Agent, EVENTS, Hands, Key},
    hpa,
    index::Index,
    job, kubelet, namespace, node, pdb, quota, replicaset,
    roster::Controller,
};
use crate::kubernetes::{
    object::Object,
    selector::Labels,
    value::{Text, Value},
};
use crate::store::{ObjectRef, Store, history::Change, quota::counts};

/// How a world behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Decides what is left to chance: which task comes first, how long pods take, which node is drawn.
    pub seed: u64,
    /// How long a pod takes to become ready, beyond what its spec implies.
    pub ready_delay: SignedDuration,
    /// How much longer some pods take, by the seed.
    pub jitter: SignedDuration,
    /// The nodes that register when the cluster has none.
    pub nodes: Vec<Text>,
    /// Who works; the others leave everything as it is.
    pub controllers: Vec<Controller>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            seed: 0,
            ready_delay: SignedDuration::from_millis(300),
            jitter: SignedDuration::from_millis(100),
            nodes: vec![arcstr::literal!("fake-0")],
            controllers: Controller::ALL.to_vec(),
        }
    }
}

impl Settings {
    /// A number that only the seed and the key decide.
    pub fn hash(&self, key: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, key).hash(&mut hasher);
        hasher.finish()
    }
}

/// When a task wants to be looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// When something changes.
    Idle,
    /// At this time, too.
    At(Timestamp),
    /// Soon, because something failed; ever later if it keeps failing.
    Retry,
}

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Task {
    ReplicaSet(Key),
    Deployment(Key),
    Job(Key),
    JobTtl(Key),
    JobOrphan(Key),
    Service(Key),
    Budget(Key),
    Quota(Key),
    Autoscaler(Key),
    Node(Key),
    Namespace(Key),
    Garbage(ObjectRef),
    Pod(Key),
    Expiry,
}

impl Task {
    /// Who looks at it; `None` if it is the server itself.
    fn controller(&self) -> Option<Controller> {
        Some(match self {
            Task::ReplicaSet(_) => Controller::ReplicaSet,
            Task::Deployment(_) => Controller::Deployment,
            Task::Job(_) | Task::JobOrphan(_) => Controller::Job,
            Task::JobTtl(_) => Controller::TtlAfterFinished,
            Task::Service(_) => Controller::EndpointSlice,
            Task::Budget(_) => Controller::Disruption,
            Task::Quota(_) => Controller::ResourceQuota,
            Task::Autoscaler(_) => Controller::HorizontalPodAutoscaler,
            Task::Node(_) => Controller::NodeLifecycle,
            Task::Namespace(_) => Controller::Namespace,
            Task::Garbage(_) => Controller::GarbageCollector,
            Task::Pod(_) => Controller::Kubelet,
            Task::Expiry => return None,
        })
    }
}

/// How many tasks at the head of the queue a seed may choose from.
const CHOICE: u64 = 8;
/// The first wait of a task that failed; it doubles up to the limit.
const RETRY: SignedDuration = SignedDuration::from_millis(5);
const RETRY_LIMIT: SignedDuration = SignedDuration::from_secs(1000);
/// How long the server keeps an event after its last change.
const EVENT_TTL: SignedDuration = SignedDuration::from_secs(3600);
/// Jobs look at changes of their pods once a second.
const JOB_BATCH: SignedDuration = SignedDuration::from_secs(1);

/// Everything around the store.
#[derive(Debug, Clone)]
pub struct World {
    settings: Settings,
    /// The last version whose change was noticed; `None` before the first look at all objects.
    cursor: Option<u64>,
    queue: VecDeque<Task>,
    queued: HashSet<Task>,
    timers: BTreeSet<(Timestamp, Task)>,
    due: HashMap<Task, Timestamp>,
    failures: HashMap<Task, u32>,
    chance: u64,
    index: Index,
    recorder: Recorder,
    kubelet: kubelet::Memory,
    jobs: job::Memory,
    slices: endpointslice::Memory,
    autoscalers: hpa::Memory,
    nodes: node::Memory,
    /// Namespaces on their way out: what leaves them brings them back.
    leaving: HashSet<Text>,
    /// When events go, by their last version, first to go first.
    expiries: VecDeque<(Timestamp, Key, u64)>,
}

impl World {
    /// A world that has not looked at anything yet.
    pub fn new(settings: Settings) -> World {
        World {
            chance: settings.hash("order"),
            settings,
            cursor: None,
            queue: VecDeque::new(),
            queued: HashSet::new(),
            timers: BTreeSet::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
            index: Index::default(),
            recorder: Recorder::default(),
            kubelet: kubelet::Memory::default(),
            jobs: job::Memory::default(),
            slices: endpointslice::Memory::default(),
            autoscalers: hpa::Memory::default(),
            nodes: node::Memory::default(),
            leaving: HashSet::new(),
            expiries: VecDeque::new(),
        }
    }

    /// Looks at one thing; `false` if there is nothing to do until something changes or [time passes](World::next_wake).
    pub fn step(&mut self, store: &mut Store) -> bool {
        self.notice_changes(store);
        self.wake_due(store.now());
        let Some(task) = self.next_task() else { return false };
        let next = self.run(store, &task);
        if next != Next::Retry {
            self.failures.remove(&task);
        }
        match next {
            Next::Idle => {}
            Next::At(time) => self.add_at(task, time),
            Next::Retry => {
                let failures = self.failures.entry(task.clone()).or_default();
                *failures += 1;
                let wait = RETRY.saturating_mul(1 << (*failures - 1).min(18)).min(RETRY_LIMIT);
                let time = store.now().saturating_add(wait).unwrap_or(Timestamp::MAX);
                self.add_at(task, time);
            }
        }
        true
    }

    /// Steps until there is nothing to do now.
    pub fn settle(&mut self, store: &mut Store) {
        while self.step(store) {}
    }

    /// Whether there is something to do now.
    pub fn has_work(&self, store: &Store) -> bool {
        !self.queue.is_empty()
            || self.cursor != Some(store.version())
            || self.next_wake().is_some_and(|time| time <= store.now())
    }

    /// When there is something to do, if nothing changes before.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Lets time pass on a virtual clock: everything that is due on the way happens at its time.
    pub fn advance(&mut self, store: &mut Store, by: SignedDuration) {
        let end = store.now().saturating_add(by).unwrap_or(Timestamp::MAX);
        self.settle(store);
        while let Some(time) = self.next_wake().filter(|time| *time <= end) {
            store.advance(time.duration_since(store.now()).max(SignedDuration::ZERO));
            self.settle(store);
        }
        store.advance(end.duration_since(store.now()).max(SignedDuration::ZERO));
    }

    fn add(&mut self, task: Task) {
        let works = task.controller().is_none_or(|controller| self.settings.controllers.contains(&controller));
        if works && self.queued.insert(task.clone()) {
            self.queue.push_back(task);
        }
    }

    /// Of several times of one task the first counts: whoever wants a later one says so again then.
    fn add_at(&mut self, task: Task, time: Timestamp) {
        if let Some(due) = self.due.get(&task) {
            if *due <= time {
                return;
            }
            self.timers.remove(&(*due, task.clone()));
        }
        self.due.insert(task.clone(), time);
        self.timers.insert((time, task));
    }

    fn wake_due(&mut self, now: Timestamp) {
        while let Some((time, _)) = self.timers.first()
            && *time <= now
            && let Some((_, task)) = self.timers.pop_first()
        {
            self.due.remove(&task);
            self.add(task);
        }
    }

    fn next_task(&mut self) -> Option<Task> {
        let choice = (self.queue.len() as u64).min(CHOICE);
        if choice == 0 {
            return None;
        }
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pick = if self.settings.seed == 0 { 0 } else { ((self.chance >> 33) % choice) as usize };
        let task = self.queue.remove(pick)?;
        self.queued.remove(&task);
        Some(task)
    }

    fn run(&mut self, store: &mut Store, task: &Task) -> Next {
        if *task == Task::Expiry {
            return self.expire(store);
        }
        let agent = match task {
            Task::Pod(_) => Agent::Kubelet,
            _ => Agent::ControllerManager,
        };
        let hands = &mut Hands { store, index: &self.index, recorder: &mut self.recorder, agent };
        match task {
            Task::ReplicaSet(key) => replicaset::sync(hands, key),
            Task::Deployment(key) => deployment::sync(hands, key),
            Task::Job(key) => job::sync(hands, &mut self.jobs, key),
            Task::JobTtl(key) => job::sync_ttl(hands, key),
            Task::JobOrphan(key) => job::sync_orphan(hands, key),
            Task::Service(key) => endpointslice::sync(hands, &mut self.slices, key),
            Task::Budget(key) => disruption::sync(hands, key),
            Task::Quota(key) => quota::sync(hands, key),
            Task::Autoscaler(key) => hpa::sync(hands, &mut self.autoscalers, key),
            Task::Node(key) => node::sync(hands, &mut self.nodes, key),
            Task::Namespace(key) => namespace::sync(hands, key),
            Task::Garbage(object) => gc::sync(hands, object),
            Task::Pod(key) => kubelet::sync(hands, &mut self.kubelet, &self.settings, key),
            Task::Expiry => Next::Idle,
        }
    }

    /// Deletes the events whose time is over.
    fn expire(&mut self, store: &mut Store) -> Next {
        let agent = Agent::Server;
        let hands = &mut Hands { store, index: &self.index, recorder: &mut self.recorder, agent };
        while let Some((time, key, version)) = self.expiries.front() {
            if *time > hands.now() {
                return Next::At(*time);
            }
            if let Some(event) = hands.get(&EVENTS, key).filter(|event| event.version() == *version) {
                let _ = hands.delete(&EVENTS, &event);
            }
            self.expiries.pop_front();
        }
        Next::Idle
    }

    /// An event is kept for an hour after its last change.
    fn notice_event(&mut self, event: &Object, changed: Timestamp) {
        let due = changed.saturating_add(EVENT_TTL).unwrap_or(Timestamp::MAX);
        if self.expiries.is_empty() {
            self.add_at(Task::Expiry, due);
        }
        self.expiries.push_back((due, Key::of(event), event.version()));
    }

    /// Reads what happened since the last time, and remembers what must be looked at.
    fn notice_changes(&mut self, store: &mut Store) {
        match self.cursor {
            Some(cursor) if cursor >= store.forgotten() => {
                if cursor == store.version() {
                    return;
                }
                for change in store.changes_since(cursor) {
                    self.notice(store, change);
                }
            }
            _ => {
                self.index = Index::default();
                self.expiries.clear();
                let mut events: Vec<_> = store.list("", "events", "").map(|event| (last_seen(event), event)).collect();
                events.sort_by_key(|(time, event)| (*time, event.version()));
                for (time, event) in events {
                    self.notice_event(event, time.unwrap_or(store.now()));
                }
                for object in store.everything() {
                    self.notice_object(store, None, Some(object), object);
                    self.notice_owners(store, None, Some(object), object);
                }
                if self.cursor.is_none() {
                    self.cursor = Some(store.version());
                    let hands =
                        &mut Hands { store, index: &self.index, recorder: &mut self.recorder, agent: Agent::Kubelet };
                    for node in kubelet::register(hands, &self.settings) {
                        node::sync(hands, &mut self.nodes, &node);
                    }
                    return self.notice_changes(store);
                }
            }
        }
        self.cursor = Some(store.version());
    }

    fn notice(&mut self, store: &Store, change: &Change) {
        let (group, plural) = &change.table;
        if plural == "events" && group.is_empty() {
            if let Some(event) = change.after() {
                self.notice_event(event, store.now());
            }
            return;
        }
        self.notice_object(store, change.old.as_ref(), change.after(), &change.object);
        self.notice_owners(store, change.old.as_ref(), change.after(), &change.object);
        let namespace = change.object.namespace();
        if change.deleted && self.leaving.contains(&namespace) {
            self.add(Task::Namespace(Key { namespace: Text::new(), name: namespace }));
        }
    }

    /// Queues what the garbage collector must look at after a change.
    fn notice_owners(
        &mut self,
        store: &Store,
        old: Option<&Arc<Object>>,
        new: Option<&Arc<Object>>,
        any: &Arc<Object>,
    ) {
        let references =
            |object: Option<&Arc<Object>>| object.and_then(|o| o.value.at(&["metadata", "ownerReferences"]).cloned());
        let (before, after) = (references(old), references(new));
        let moved = match (&before, &after) {
            (Some(before), Some(after)) => !before.is(after) && before != after,
            (None, None) => false,
            _ => true,
        };
        if moved {
            // An owner that waits for its dependents may have lost its last.
            for reference in before.iter().flat_map(|list| list.as_list().unwrap_or_default()) {
                if let gc::Owner::There(owner) = gc::owner(store, reference, &any.namespace())
                    && gc::waits(&owner.value)
                {
                    self.queue_garbage(store, &owner);
                }
            }
        }
        match new {
            None => {
                let dependents: Vec<ObjectRef> = store.owned_by(&any.uid()).cloned().collect();
                dependents.into_iter().for_each(|dependent| self.add(Task::Garbage(dependent)));
            }
            Some(object) => {
                if gc::waits(&object.value) || moved && gc::is_suspect(store, object) {
                    self.queue_garbage(store, object);
                }
            }
        }
    }

    fn queue_garbage(&mut self, store: &Store, object: &Object) {
        let text = |field| object.value.str_at(&[field]).unwrap_or_default();
        let Some((resource, _)) = store.registry().find_kind(text("apiVersion"), text("kind")) else { return };
        let (group, plural) = resource.table.clone();
        self.add(Task::Garbage(ObjectRef { group, plural, namespace: object.namespace(), name: object.name() }));
    }

    /// Queues everything that may have to act on a change of one object.
    fn notice_object(
        &mut self,
        store: &Store,
        old: Option<&Arc<Object>>,
        new: Option<&Arc<Object>>,
        any: &Arc<Object>,
    ) {
        let key = Key::of(any);
        let kind = any.value.str_at(&["kind"]).unwrap_or_default();
        let group =
            any.value.str_at(&["apiVersion"]).and_then(|version| version.split_once('/')).map_or("", |(g, _)| g);
        match (group, kind) {
            ("", "Pod") => self.notice_pod(store, key, old, new),
            ("", "Node") => self.notice_node(key),
            ("", "Service") => {
                if new.is_none() {
                    self.slices.forget(&any.uid());
                }
                self.add(Task::Service(key));
            }
            ("", "Namespace") => match new {
                Some(namespace) if namespace.is_terminating() => {
                    self.leaving.insert(key.name.clone());
                    self.add(Task::Namespace(key));
                }
                Some(_) => {}
                None => drop(self.leaving.remove(&key.name)),
            },
            ("discovery.k8s.io", "EndpointSlice") => self.notice_slice(any),
            ("autoscaling", "HorizontalPodAutoscaler") => {
                if new.is_none() {
                    self.autoscalers.forget(&any.uid());
                }
                self.add(Task::Autoscaler(key));
            }
            ("apps", "ReplicaSet") => {
                self.add(Task::ReplicaSet(key));
                self.notice_set(store, old, new);
            }
            ("apps", "Deployment") => self.add(Task::Deployment(key)),
            ("batch", "Job") => self.notice_job(store, key, old, new),
            ("policy", "PodDisruptionBudget") => self.add(Task::Budget(key)),
            ("", "ResourceQuota") => self.add(Task::Quota(key)),
            _ => {}
        }
        self.wake_autoscalers(store, kind, old, new, any);
        let is_counted = |object: Option<&Arc<Object>>| object.is_some_and(|object| counts(&object.value));
        if is_counted(old) != is_counted(new) {
            for quota in store.list("", "resourcequotas", &any.namespace()) {
                self.add(Task::Quota(Key::of(quota)));
            }
        }
    }

    /// Wakes the autoscalers whose target was scaled.
    fn wake_autoscalers(
        &mut self,
        store: &Store,
        kind: &str,
        old: Option<&Arc<Object>>,
        new: Option<&Arc<Object>>,
        any: &Arc<Object>,
    ) {
        let size = |object: Option<&Arc<Object>>| object.and_then(|object| object.value.int_at(&["spec", "replicas"]));
        if size(old) == size(new) {
            return;
        }
        for autoscaler in store.list("autoscaling", "horizontalpodautoscalers", &any.namespace()) {
            let target = |field| autoscaler.value.str_at(&["spec", "scaleTargetRef", field]).unwrap_or_default();
            if target("kind") == kind && target("name") == any.name() {
                self.add(Task::Autoscaler(Key::of(autoscaler)));
            }
        }
    }

    /// A slice that somebody changed or deleted is put right.
    fn notice_slice(&mut self, slice: &Object) {
        let Some(service) = slice.labels().and_then(|labels| labels.get("kubernetes.io/service-name")?.as_text())
        else {
            return;
        };
        self.add(Task::Service(Key { namespace: slice.namespace(), name: service.clone() }));
    }

    fn notice_pod(&mut self, store: &Store, key: Key, old: Option<&Arc<Object>>, new: Option<&Arc<Object>>) {
        self.index.pod_changed(old, new);
        let before = old.and_then(|pod| ask::controller_of(&pod.value));
        let after = new.and_then(|pod| ask::controller_of(&pod.value));
        let moved = before != after;
        if moved && let Some(owner) = before {
            self.wake_pod_owner(store, &key.namespace, owner);
        }
        if let Some(owner) = after {
            self.wake_pod_owner(store, &key.namespace, owner);
        }
        match new {
            Some(pod) => {
                self.kubelet.notice(&pod.value);
                let relabelled = old.is_none_or(|old| old.labels() != pod.labels());
                if after.is_none() && (moved || relabelled) {
                    self.wake_adopters(store, pod);
                }
                if is_orphaned_job_pod(store, &key, &pod.value) {
                    self.add(Task::JobOrphan(key.clone()));
                }
                self.add(Task::Pod(key.clone()));
            }
            None => {
                if let Some(pod) = old {
                    self.kubelet.forget(&pod.uid());
                }
            }
        }
        self.wake_budgets(store, &key.namespace, old, new);
        self.wake_services(store, &key.namespace, old, new);
    }

    fn wake_services(&mut self, store: &Store, namespace: &str, old: Option<&Arc<Object>>, new: Option<&Arc<Object>>) {
        for service in store.list("", "services", namespace) {
            let Some(selector) = service.value.at(&["spec", "selector"]).and_then(Value::as_map) else { continue };
            if endpointslice::concerns(selector, old.map(|pod| &**pod), new.map(|pod| &**pod)) {
                self.add(Task::Service(Key::of(service)));
            }
        }
    }

    /// Wakes the controller behind an owner reference of a pod.
    fn wake_pod_owner(&mut self, store: &Store, namespace: &Text, owner: &Value) {
        let text = |field: &str| owner.get(field).and_then(Value::as_text).cloned().unwrap_or_default();
        let key = Key { namespace: namespace.clone(), name: text("name") };
        match text("kind").as_str() {
            "ReplicaSet" => {
                // A Recreate Deployment waits for the last pod of its old sets, which their status may not show.
                if let Some(set) = store.get("apps", "replicasets", namespace, &key.name)
                    && let Some(above) = ask::controller_of(&set.value)
                {
                    self.wake_recreating(store, namespace, above);
                }
                self.add(Task::ReplicaSet(key));
            }
            "Job" => {
                let due = store.now().saturating_add(JOB_BATCH).unwrap_or(Timestamp::MAX);
                self.add_at(Task::Job(key), due);
            }
            _ => {}
        }
    }

    fn wake_recreating(&mut self, store: &Store, namespace: &Text, owner: &Value) {
        let Some(name) = owner.get("name").and_then(Value::as_text) else { return };
        let deployment = store.get("apps", "deployments", namespace, name);
        let recreates = deployment
            .is_some_and(|deployment| deployment.value.str_at(&["spec", "strategy", "type"]) == Some("Recreate"));
        if recreates {
            self.add(Task::Deployment(Key { namespace: namespace.clone(), name: name.clone() }));
        }
    }

    /// Wakes the ReplicaSets and Jobs that would adopt an orphan.
    fn wake_adopters(&mut self, store: &Store, pod: &Object) {
        let namespace = pod.namespace();
        for (group, plural) in [("apps", "replicasets"), ("batch", "jobs")] {
            for owner in store.list(group, plural, &namespace).filter(|owner| selects(owner, pod)) {
                let key = Key::of(owner);
                self.add(if plural == "jobs" { Task::Job(key) } else { Task::ReplicaSet(key) });
            }
        }
    }

    fn wake_budgets(&mut self, store: &Store, namespace: &str, old: Option<&Arc<Object>>, new: Option<&Arc<Object>>) {
        for budget in store.list("policy", "poddisruptionbudgets", namespace) {
            let selector = pdb::selector(&budget.value);
            if [old, new].into_iter().flatten().any(|pod| selector.matches(pod.labels())) {
                self.add(Task::Budget(Key::of(budget)));
            }
        }
    }

    fn notice_node(&mut self, key: Key) {
        let affected: Vec<Key> = self.index.on_node(&key.name).chain(self.index.waiting()).cloned().collect();
        self.add(Task::Node(key));
        for pod in affected {
            self.add(Task::Pod(pod));
        }
    }

    fn notice_set(&mut self, store: &Store, old: Option<&Arc<Object>>, new: Option<&Arc<Object>>) {
        let owner = |set: Option<&Arc<Object>>| {
            let set = set?;
            let owner = ask::controller_of(&set.value).filter(|owner| owner.str_at(&["kind"]) == Some("Deployment"))?;
            Some(Key { namespace: set.namespace(), name: owner.get("name")?.as_text()?.clone() })
        };
        let (before, after) = (owner(old), owner(new));
        if before != after {
            self.queue_deployment(before.clone());
        }
        let Some(set) = new else { return self.queue_deployment(before) };
        if after.is_some() {
            return self.queue_deployment(after);
        }
        let relabelled = old.is_none_or(|old| old.labels() != set.labels()) || before.is_some();
        if relabelled && ask::controller_of(&set.value).is_none() {
            let namespace = set.namespace();
            let adopters: Vec<Key> = store
                .list("apps", "deployments", &namespace)
                .filter(|deployment| selects(deployment, set))
                .map(|deployment| Key::of(deployment))
                .collect();
            adopters.into_iter().for_each(|key| self.queue_deployment(Some(key)));
        }
    }

    fn queue_deployment(&mut self, key: Option<Key>) {
        if let Some(key) = key {
            self.add(Task::Deployment(key));
        }
    }

    fn notice_job(&mut self, store: &Store, key: Key, old: Option<&Arc<Object>>, new: Option<&Arc<Object>>) {
        let Some(job) = new else {
            if let Some(job) = old {
                self.jobs.forget(&job.uid());
                self.wake_orphaned(store, &job.uid());
            }
            return;
        };
        if job::is_finished(&job.value) {
            self.wake_orphaned(store, &job.uid());
            if job::expires_at(&job.value).is_some() {
                self.add(Task::JobTtl(key));
            }
            return;
        }
        let generation = |job: &Arc<Object>| job.value.int_at(&["metadata", "generation"]);
        if old.is_some_and(|old| generation(old) == generation(job)) {
            let due = store.now().saturating_add(JOB_BATCH).unwrap_or(Timestamp::MAX);
            self.add_at(Task::Job(key), due);
        } else {
            self.add(Task::Job(key));
        }
    }

    /// Wakes the pods that a Job may have left with its finalizer.
    fn wake_orphaned(&mut self, store: &Store, uid: &str) {
        for pod in store.owned_by(uid).filter(|object| object.plural == "pods" && object.group.is_empty()) {
            self.add(Task::JobOrphan(key_of(pod)));
        }
    }
}

/// When an event was last seen, as far as it says.
fn last_seen(event: &Object) -> Option<Timestamp> {
    let fields = ["lastTimestamp", "eventTime"].map(|field| ask::time(event.value.get(field)));
    fields.into_iter().flatten().next().or_else(|| ask::created_at(&event.value))
}

fn key_of(object: &ObjectRef) -> Key {
    Key { namespace: object.namespace.clone(), name: object.name.clone() }
}

/// Whether the selector of a ReplicaSet, Job or Deployment matches an object.
fn selects(owner: &Object, object: &Object) -> bool {
    let selector = owner.value.at(&["spec", "selector"]).unwrap_or(&Value::Null);
    Labels::of(selector).is_ok_and(|selector| selector.matches(object.labels()))
}

/// Whether a pod carries the finalizer of Jobs but no Job that is there would take it off.
fn is_orphaned_job_pod(store: &Store, key: &Key, pod: &Value) -> bool {
    let tracked = pod.list_at(&["metadata", "finalizers"]).iter().any(|finalizer| *finalizer == job::TRACKING);
    tracked
        && match ask::controller_of(pod) {
            None => true,
            Some(owner) => {
                let name = owner.str_at(&["name"]).unwrap_or_default();
                owner.str_at(&["kind"]) == Some("Job")
                    && store.get("batch", "jobs", &key.namespace, name).is_none_or(|job| {
                        Some(job.uid().as_str()) != owner.str_at(&["uid"]) || job::is_finished(&job.value)
                    })
            }
        }
}
