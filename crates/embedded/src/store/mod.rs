//! The store: every object of the cluster, its versions, and what happened to them.
//!
//! [`Store::apply`] is the whole API in one synchronous call; [`Store::watch`] and [`Store::poll`] follow it. The store
//! never blocks, sleeps or looks at a clock: time is a value it is told ([`Store::tell`], [`Store::advance`]), chance
//! comes from a seed. The same requests in the same order make the same cluster, byte for byte.
//!
//! | file | subject |
//! |---|---|
//! | [`request`] | what is asked and answered |
//! | [`registry`] | which resources are served |
//! | [`history`] | the last changes |
//! | [`journal`] | a cluster as bytes |
//! | `read` | get and list |
//! | [`watch`] | following changes |
//! | `write` | create, update, patch, apply |
//! | `strategy` | what differs between built-in and custom kinds |
//! | `meta` | metadata: what the server sets, keeps and refuses |
//! | `subresource` | scale, eviction, binding and the like |
//! | `delete` | deletion: grace, finalizers, collections |
//! | `definition` | the life of a CustomResourceDefinition |

mod definition;
mod delete;
pub mod history;
pub mod journal;
mod meta;
#[cfg(test)]
mod patches;
pub mod quota;
mod read;
pub mod registry;
pub mod request;
mod strategy;
mod subresource;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod versions;
pub mod watch;
mod write;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use self::{
    history::{Change, History},
    registry::{Registry, Resource, TableId},
    request::{Outcome, Request, Verb},
};
use crate::kubernetes::{
    builtin::Addresses,
    clock::Clock,
    kind::Kind,
    object::Object,
    schema::crd,
    status::Status,
    value::{Text, Value},
};

/// How to make a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Where time comes from.
    pub clock: Clock,
    /// Decides everything that is random on a real server: uids, generated names, addresses.
    pub seed: u64,
    /// How many changes are kept for watches and paged lists.
    pub window: usize,
}

impl Config {
    /// A virtual clock that stands at this time, this seed, and a window for ordinary use.
    pub fn new(now: Timestamp, seed: u64) -> Config {
        Config { clock: Clock::Virtual(now), seed, window: 32 * 1024 }
    }
}

/// A Kubernetes cluster's objects, and the API to them.
#[derive(Debug, Clone)]
pub struct Store {
    registry: Registry,
    /// By group, then plural, of the storage kind.
    tables: BTreeMap<Text, BTreeMap<Text, Table>>,
    history: History,
    version: u64,
    clock: Clock,
    chance: u64,
    owned: HashMap<Text, BTreeSet<ObjectRef>>,
    addresses: Addresses,
    /// What the request under way should be told beside its answer.
    warnings: Vec<String>,
}

/// The objects of one resource by namespace and name: the order of a list.
type Table = BTreeMap<Text, BTreeMap<Text, Arc<Object>>>;

/// Names one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// The group of its storage kind.
    pub group: Text,
    /// The plural of its storage kind.
    pub plural: Text,
    /// Its namespace; empty for a cluster-scoped object.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
}

impl Store {
    /// A new cluster with the namespaces every cluster has.
    pub fn new(config: Config) -> Store {
        let mut store = Store::empty(config);
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = crate::value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let request = Request {
                verb: Verb::Create,
                version: "v1".into(),
                resource: "namespaces".into(),
                body: Some(namespace),
                agent: "kube-apiserver".into(),
                ..Request::default()
            };
            let _ = store.apply(request);
        }
        store
    }

    /// A cluster without a single object, to restore one into.
    pub fn empty(config: Config) -> Store {
        Store {
            registry: Registry::default(),
            tables: BTreeMap::new(),
            history: History::new(config.window.max(1), 0),
            version: 0,
            clock: config.clock,
            chance: config.seed,
            owned: HashMap::new(),
            addresses: Addresses::default(),
            warnings: Vec::new(),
        }
    }

    /// Does what a request asks. A refused or dry-run request leaves the store as it was.
    pub fn apply(&mut self, request: Request) -> Outcome {
        let before = std::mem::take(&mut self.warnings);
        let outcome = self.answer(request);
        let warnings = std::mem::replace(&mut self.warnings, before);
        outcome.map(|mut response| {
            response.warnings.extend(warnings);
            response
        })
    }

    fn answer(&mut self, request: Request) -> Outcome {
        let (resource, kind) = self.serving(&request)?;
        if kind.is("", "Endpoints") {
            let deprecated = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
            self.warnings.push(deprecated.into());
        }
        if !request.subresource.is_empty() && request.subresource != "status" {
            return self.subresource(&resource, &kind, request);
        }
        let may_free = resource.is_custom() && !matches!(request.verb, Verb::Get | Verb::List | Verb::Create);
        let outcome = match request.verb {
            Verb::Get => self.read(&resource, &kind, &request),
            Verb::List => self.list_request(&resource, &kind, &request),
            Verb::Create => self.create(&resource, &kind, request),
            Verb::Update => self.update(&resource, &kind, request),
            Verb::Patch(patch) => self.patch(&resource, &kind, patch, request),
            Verb::Delete => self.delete(&resource, &kind, &request),
            Verb::DeleteCollection => self.delete_collection(&resource, &kind, &request),
        };
        if may_free {
            self.finish_definitions();
        }
        outcome
    }

    fn serving(&self, request: &Request) -> Result<(Arc<Resource>, Arc<Kind>), Status> {
        let found = self.registry.find(&request.group, &request.version, &request.resource);
        let (resource, kind) = found.ok_or_else(no_such_resource)?;
        if !request.subresource.is_empty() && kind.subresource(&request.subresource).is_none() {
            return Err(no_such_resource());
        }
        Ok((resource.clone(), kind.clone()))
    }

    /// The newest version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Tells a wall clock the time.
    pub fn tell(&mut self, now: Timestamp) {
        self.clock.tell(now);
    }

    /// Moves the clock forward by hand.
    pub fn advance(&mut self, by: SignedDuration) {
        self.clock.advance(by);
    }

    /// What is served.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The changes after `version`, oldest first, as far as they are still kept.
    pub fn changes_since(&self, version: u64) -> impl DoubleEndedIterator<Item = &Arc<Change>> {
        self.history.since(version)
    }

    /// The newest version whose change is no longer kept.
    pub fn forgotten(&self) -> u64 {
        self.history.floor()
    }

    /// Forgets the history up to `version`: watches and pages that begin before it get 410 Gone.
    pub fn compact(&mut self, version: u64) {
        self.history.compact(version);
    }

    /// An object by the group and plural of its storage kind, without the cost of a request.
    pub fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.tables.get(group)?.get(plural)?.get(namespace)?.get(name)
    }

    /// The objects of a resource in a namespace (all of them if it is empty), in the order of a list.
    pub fn list(&self, group: &str, plural: &str, namespace: &str) -> impl Iterator<Item = &Arc<Object>> {
        let table = self.tables.get(group).and_then(|tables| tables.get(plural));
        let one = (!namespace.is_empty()).then(|| table.and_then(|t| t.get(namespace))).flatten();
        let all = namespace.is_empty().then_some(table).flatten();
        let mut all: Vec<_> = all.into_iter().flatten().collect();
        all.sort_by(|(a, _), (b, _)| read::key_order((a, ""), (b, "")));
        one.into_iter().chain(all.into_iter().map(|(_, objects)| objects)).flat_map(BTreeMap::values)
    }

    /// How many objects there are, of all resources.
    pub fn len(&self) -> usize {
        self.tables.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values).map(BTreeMap::len).sum()
    }

    /// Whether there is no object at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is owned by the object with this uid, by any of its owner references.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = &ObjectRef> {
        self.owned.get(uid).into_iter().flatten()
    }

    /// The owners anything refers to.
    pub fn owners(&self) -> impl Iterator<Item = &Text> {
        self.owned.keys()
    }

    /// Every object, by group, resource, namespace and name. For saving.
    pub fn everything(&self) -> impl Iterator<Item = &Arc<Object>> {
        let tables = self.tables.values().flat_map(BTreeMap::values);
        tables.flat_map(BTreeMap::values).flat_map(BTreeMap::values)
    }

    /// Puts back a saved object as it was. Definitions of custom resources must come before their objects.
    pub fn restore(&mut self, object: Object) -> Result<(), String> {
        let api_version = object.value.str_at(&["apiVersion"]).unwrap_or_default();
        let kind_name = object.value.str_at(&["kind"]).unwrap_or_default();
        let Some((resource, _)) = self.registry.find_kind(api_version, kind_name) else {
            return Err(format!("{api_version} {kind_name} is not served"));
        };
        let resource = resource.clone();
        self.version = self.version.max(object.version());
        self.place(&resource.table, &resource.storage, None, Some(Arc::new(object)));
        Ok(())
    }

    /// Says that the restored history ended at this version: the next change gets the one after it.
    pub fn resume(&mut self, version: u64) {
        self.version = self.version.max(version);
        self.history = History::new(self.history.window(), self.version);
    }

    /// A number nobody could have guessed who does not know the seed (splitmix64).
    pub fn chance(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.chance;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Lets another seed decide from here on: a cluster that was prepared once serves for many.
    pub fn reseed(&mut self, seed: u64) {
        self.chance = seed;
    }

    fn uid(&mut self) -> Text {
        let (a, b) = (self.chance(), self.chance());
        let (time_low, time_mid, time_high) = (a >> 32, (a >> 16) & 0xffff, a & 0xfff);
        let (clock, node) = (0x8000 | ((b >> 48) & 0x3fff), b & 0xffff_ffff_ffff);
        format!("{time_low:08x}-{time_mid:04x}-4{time_high:03x}-{clock:04x}-{node:012x}").into()
    }

    fn find(&self, (group, plural): &TableId, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.get(group, plural, namespace, name)
    }

    fn objects(&self, (group, plural): &TableId, namespace: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.list(group, plural, namespace)
    }

    /// Commits a change: `object` gets the next version. Without one, `old` is deleted, and its last state returned.
    fn commit(&mut self, resource: &Resource, old: Option<Arc<Object>>, object: Option<Object>) -> Arc<Object> {
        self.version += 1;
        let deleted = object.is_none();
        let last = object.or_else(|| old.as_deref().cloned());
        let mut last = last.unwrap_or_else(|| Object { value: Value::object(), managers: Arc::default() });
        last.value.set_at(&["metadata", "resourceVersion"], self.version.to_string());
        let last = Arc::new(last);
        let new = (!deleted).then(|| last.clone());
        self.place(&resource.table, &resource.storage, old.as_ref(), new);
        let table = resource.table.clone();
        self.history.push(self.version, table, resource.storage.clone(), old, last.clone(), deleted);
        last
    }

    /// Puts an object where it belongs (or takes it away) and keeps every index in step.
    fn place(&mut self, table: &TableId, kind: &Arc<Kind>, old: Option<&Arc<Object>>, new: Option<Arc<Object>>) {
        let Some(any) = new.as_ref().or(old) else { return };
        let (namespace, name) = (any.namespace(), any.name());
        self.index_owners(table, old, new.as_ref());
        if kind.is("", "Service") {
            if let Some(old) = old {
                self.addresses.release(&old.value);
            }
            if let Some(new) = &new {
                self.addresses.take(&new.value);
            }
        }
        if kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            match &new {
                Some(new) if crd::is_established(&new.value) => {
                    self.registry.define(&new.value);
                    self.refresh_instances(&new.value);
                }
                Some(_) => {}
                None => self.registry.forget(&any.value),
            }
        }
        let (group, plural) = table.clone();
        let objects = self.tables.entry(group).or_default().entry(plural).or_default();
        match new {
            Some(new) => {
                objects.entry(namespace).or_default().insert(name, new);
            }
            None => {
                if let Some(inside) = objects.get_mut(&namespace) {
                    inside.remove(&name);
                    if inside.is_empty() {
                        objects.remove(&namespace);
                    }
                }
            }
        }
    }

    /// Objects are read through the schema of today, whichever they were written under.
    fn refresh_instances(&mut self, definition: &Value) {
        let text = |path: &[&str]| definition.str_at(path).unwrap_or_default();
        let (group, plural) = (text(&["spec", "group"]), text(&["spec", "names", "plural"]));
        let Some(kind) = self.registry.resource(group, plural).map(|resource| resource.storage.clone()) else { return };
        let Some(table) = self.tables.get_mut(group).and_then(|tables| tables.get_mut(plural)) else { return };
        for object in table.values_mut().flat_map(BTreeMap::values_mut) {
            let value = strategy::refresh(&kind, &object.value);
            if !value.is(&object.value) {
                *object = Arc::new(Object { value, managers: object.managers.clone() });
            }
        }
    }

    fn index_owners(&mut self, table: &TableId, old: Option<&Arc<Object>>, new: Option<&Arc<Object>>) {
        let before = old.and_then(|object| object.metadata()?.get("ownerReferences"));
        let after = new.and_then(|object| object.metadata()?.get("ownerReferences"));
        match (before, after) {
            (None, None) => return,
            (Some(before), Some(after)) if before.is(after) => return,
            _ => {}
        }
        let uids = |refs: Option<&Value>| -> Vec<Text> {
            let refs = refs.and_then(Value::as_list).unwrap_or_default();
            refs.iter().filter_map(|owner| owner.get("uid")?.as_text().cloned()).collect()
        };
        let Some(any) = new.or(old) else { return };
        let (group, plural) = table.clone();
        let me = ObjectRef { group, plural, namespace: any.namespace(), name: any.name() };
        for uid in uids(before) {
            if let Some(dependents) = self.owned.get_mut(&uid) {
                dependents.remove(&me);
                if dependents.is_empty() {
                    self.owned.remove(&uid);
                }
            }
        }
        for uid in uids(after) {
            self.owned.entry(uid).or_default().insert(me.clone());
        }
    }
}

/// 404 as the server says it when nothing is served at a path below a group it does serve.
fn no_such_resource() -> Status {
    let mut status = Status::new(
        404,
        crate::kubernetes::status::Reason::NotFound,
        "the server could not find the requested resource",
    );
    status.details = Some(Box::default());
    status
}
