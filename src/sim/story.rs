//! Stories: a Rollout and what people and the world do to it, as data; and who plays them.
//!
//! ```yaml
//! - story: canary-pause-promote
//!   title: Two steps with an indefinite pause, promoted by hand
//!   objects: [{service: active}]
//!   rollout: {replicas: 2, strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}]}}}
//!   acts: [{wait: {phase: Healthy}}, {set-image: "app:v2"}, {wait: {phase: Paused, step: 1}}, {promote: }]
//! ```
//! Each act is what `kubectl` and its plugin would write. Never waits in real time, and never reads a file: that is
//! whoever has the story.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use jiff::SignedDuration;

use super::{
    act,
    faults::Fault,
    likeness,
    local::Local,
    objects::{self, kind_of},
    trace::Trace,
    web::WEB,
};
use crate::{
    embedded::store::request::{PatchType, Request, Verb},
    engine::key::Resource,
    kubernetes::value::{Text, Value},
    value,
};

/// The namespace that stories play in.
pub const NAMESPACE: &str = "default";

/// A story.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    /// Its name.
    pub name: String,
    /// What it is about, in a sentence.
    pub title: String,
    /// What is there when it begins, in short forms or as manifests; the story's own Rollout comes last.
    pub objects: Vec<Value>,
    /// What happens, in order.
    pub acts: Vec<Value>,
    /// What the web answers to metrics.
    pub web: Value,
    /// Whether everything comes to rest at its end.
    pub settles: bool,
}

impl Story {
    /// The story that an entry of a file tells; `None` if it tells none, but holds what others share.
    pub fn of(entry: &Value) -> Option<Story> {
        let entry = &served(entry);
        let name = entry.str_at(&["story"])?.to_owned();
        let listed = entry.list_at(&["objects"]).iter();
        let mut objects: Vec<Value> = listed.flat_map(|object| several(object).to_vec()).collect();
        if let Some(rollout) = entry.get("rollout") {
            objects.push(value!({"rollout": rollout.clone()}));
        }
        Some(Story {
            name,
            title: entry.str_at(&["title"]).unwrap_or_default().to_owned(),
            objects,
            acts: entry.list_at(&["acts"]).to_vec(),
            web: entry.get("web").cloned().unwrap_or_default(),
            settles: entry.get("settle").and_then(Value::as_bool) != Some(false),
        })
    }
}

/// A story in which `%WEB%` is where the web is.
fn served(value: &Value) -> Value {
    match value {
        Value::Str(text) if text.contains("%WEB%") => text.replace("%WEB%", WEB).into(),
        Value::List(items) => Value::list(items.iter().map(served)),
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (key.clone(), served(value))).collect()),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => value.clone(),
    }
}

/// The items of a list, or the one thing that is none.
pub(super) fn several(value: &Value) -> &[Value] {
    value.as_list().unwrap_or(std::slice::from_ref(value))
}

/// Plays a story on a cluster, act by act.
#[derive(Debug, Clone)]
pub struct Player {
    /// The cluster.
    pub local: Local,
    /// The name of the story's own Rollout.
    pub main: Text,
    /// The changes that were looked at so far, by the version of the last one.
    cursor: u64,
    /// What was seen, in order: kind, name, and the object unless it is gone.
    pub seen: Vec<(Text, Text, Option<Value>)>,
    /// What happened, in lines; `None` if nobody reads them.
    pub trace: Option<Trace>,
    /// How many pods must be available from now on, if any must.
    pub floor: Option<usize>,
    /// What is done whenever nothing is due.
    pub rests: Rests,
    rested: u64,
}

/// What is done with the states in which nothing was due.
#[derive(Debug, Clone, Default)]
pub enum Rests {
    /// Nothing.
    #[default]
    Ignored,
    /// Their likenesses are noted.
    Noted(Vec<u64>),
    /// Once every fault is over, the first that is among these ends the play: from there on it is known.
    Sought(Arc<HashSet<u64>>),
    /// It was met.
    Met,
}

/// What is looked at.
const LOOKED_AT: [&str; 11] = [
    "Rollout",
    "ReplicaSet",
    "Service",
    "Deployment",
    "Ingress",
    "TrafficSplit",
    "VirtualService",
    "DestinationRule",
    "AnalysisRun",
    "Job",
    "Experiment",
];

impl Player {
    /// A player on a cluster.
    pub fn new(local: Local) -> Player {
        Player {
            cursor: local.store().version(),
            local,
            main: Text::default(),
            seen: Vec::new(),
            trace: None,
            floor: None,
            rests: Rests::Ignored,
            rested: 0,
        }
    }

    /// Plays a whole story; answers how each object was received and how each act ended.
    pub fn play(&mut self, story: &Story) -> Vec<String> {
        let mut results = self.set_up(story);
        results.extend(story.acts.iter().map(|act| self.act(act)));
        if story.settles {
            results.push(self.act(&value!({"quiet": {"for": 2.5, "timeout": 20}})));
        }
        results
    }

    /// Brings in what is there when the story begins.
    pub fn set_up(&mut self, story: &Story) -> Vec<String> {
        self.local.web.set(&story.web);
        let mut results = Vec::new();
        for object in &story.objects {
            let object = objects::expand(object);
            if object.str_at(&["kind"]) == Some("Rollout") {
                self.main = object.at(&["metadata", "name"]).and_then(Value::as_text).cloned().unwrap_or_default();
            }
            let text = |path: &[&str]| object.str_at(path).unwrap_or_default().to_owned();
            self.note(|trace| trace.act(&format!("apply {} {}", text(&["kind"]), text(&["metadata", "name"]))));
            let result = self.apply(&object);
            self.note(|trace| trace.result(&result));
            results.push(result);
            self.pass_time(400);
        }
        results
    }

    /// Does one act; answers how it ended.
    pub fn act(&mut self, act: &Value) -> String {
        let entry = act.as_map().and_then(|map| map.iter().next());
        let Some((what, arguments)) = entry else { return "no act".into() };
        let told = if arguments.is_null() { what.to_string() } else { format!("{what} {}", objects::text(arguments)) };
        self.note(|trace| trace.act(&told));
        let result = act::perform(self, what, arguments);
        self.look();
        self.note(|trace| trace.result(&result));
        result
    }

    fn note(&mut self, line: impl FnOnce(&mut Trace)) {
        if let Some(trace) = &mut self.trace {
            line(trace);
        }
    }

    /// Takes in what changed since the last look.
    fn look(&mut self) {
        for change in self.local.store().changes_since(self.cursor) {
            let (kind, name) = (&change.kind.kind, change.object.name());
            if LOOKED_AT.contains(&kind.as_str()) && change.object.namespace() == NAMESPACE && name != "kubernetes" {
                self.seen.push((kind.clone(), name, (!change.deleted).then(|| change.object.value.clone())));
            }
        }
        if self.floor.is_some() && self.cursor != self.local.store().version() {
            self.count_pods();
        }
        self.cursor = self.local.store().version();
        if let Some(trace) = &mut self.trace {
            trace.look(&self.local);
        }
    }

    /// Fewer pods than were promised are available (S20).
    fn count_pods(&mut self) {
        let is_available = |pod: &&Value| {
            let conditions = pod.list_at(&["status", "conditions"]);
            let is = |condition: &Value, key: &str, text: &str| condition.str_at(&[key]) == Some(text);
            pod.at(&["metadata", "deletionTimestamp"]).is_none_or(Value::is_null)
                && conditions.iter().any(|condition| is(condition, "type", "Ready") && is(condition, "status", "True"))
        };
        let available = self.all("Pod").iter().filter(is_available).count();
        if let Some(least) = self.floor.take_if(|least| available < *least) {
            self.local.checker.complain(format!("S20: {available} pods are available, {least} were promised"));
        }
    }

    /// Lets time pass.
    pub fn pass_time(&mut self, millis: i64) {
        self.until(millis, |_| false);
    }

    /// Lets time pass until this holds; `false` if it does not in time.
    pub fn until(&mut self, millis: i64, mut holds: impl FnMut(&Player) -> bool) -> bool {
        let end = self.local.now().saturating_add(SignedDuration::from_millis(millis)).unwrap_or(jiff::Timestamp::MAX);
        let mut version = None;
        loop {
            if matches!(self.rests, Rests::Met) {
                return true;
            }
            self.look();
            // Only a change can change the answer.
            if version != Some(self.local.store().version()) {
                version = Some(self.local.store().version());
                if holds(self) {
                    return true;
                }
            }
            if self.local.step() {
                continue;
            }
            self.rest();
            let next = self.local.next_wake().filter(|wake| *wake <= end);
            let left = next.unwrap_or(end).duration_since(self.local.now());
            self.local.wait(left);
            if next.is_none() {
                self.local.settle();
                self.look();
                return holds(self);
            }
        }
    }

    /// Nothing is due.
    fn rest(&mut self) {
        let is_over = self.local.faults.writes.is_empty() && self.local.is_running();
        let version = self.local.store().version();
        if matches!(self.rests, Rests::Ignored | Rests::Met) || version == self.rested || !is_over {
            return;
        }
        self.rested = version;
        let mut hasher = DefaultHasher::new();
        likeness::of(self.local.store()).hash(&mut hasher);
        let state = hasher.finish();
        match &mut self.rests {
            Rests::Noted(states) => states.push(state),
            Rests::Sought(known) if known.contains(&state) => self.rests = Rests::Met,
            Rests::Sought(_) | Rests::Ignored | Rests::Met => {}
        }
    }

    /// Waits until nothing changed for so long; `false` if something always does.
    pub fn quiet(&mut self, millis: i64, limit: i64) -> bool {
        let limit = SignedDuration::from_millis(limit);
        let end = self.local.now().saturating_add(limit).unwrap_or(jiff::Timestamp::MAX);
        while self.local.now() < end {
            let before = self.local.store().version();
            self.pass_time(millis);
            if self.local.store().version() == before {
                return true;
            }
        }
        false
    }

    /// An object, as it is in the cluster.
    pub fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let resource = kind_of(kind)?;
        let object = self.local.store().get(&resource.group, &resource.plural, NAMESPACE, name)?;
        Some(object.value.clone())
    }

    /// All objects of a kind.
    pub fn all(&self, kind: &str) -> Vec<Value> {
        let Some(resource) = kind_of(kind) else { return Vec::new() };
        let objects = self.local.store().list(&resource.group, &resource.plural, NAMESPACE);
        objects.map(|object| object.value.clone()).collect()
    }

    /// The story's own Rollout.
    pub fn rollout(&self) -> Value {
        self.get("Rollout", &self.main).unwrap_or_default()
    }

    /// The ReplicaSet of a revision of the story's own Rollout.
    pub fn revision(&self, revision: &Value) -> Option<Value> {
        let wanted = objects::text(revision);
        let rollout = self.rollout();
        let uid = rollout.str_at(&["metadata", "uid"]);
        self.all("ReplicaSet").into_iter().find(|set| {
            let noted = set.str_at(&["metadata", "annotations", objects::REVISION]);
            let owner = set.list_at(&["metadata", "ownerReferences"]).first();
            noted == Some(wanted.as_str()) && owner.and_then(|owner| owner.str_at(&["uid"])) == uid
        })
    }

    /// Asks the API server in a person's name; answers `ok`, or what it said.
    pub fn ask(&mut self, verb: Verb, kind: &str, name: &str, subresource: &str, body: Option<Value>) -> String {
        let Some(request) = request(verb, kind, name, subresource, body) else { return format!("no kind {kind}") };
        match self.local.ask(request) {
            Ok(_) => "ok".into(),
            Err(status) => format!("error {}", status.message),
        }
    }

    /// Creates an object, or changes the one that is there.
    pub fn apply(&mut self, object: &Value) -> String {
        let object = &self.owned(object);
        let text = |path: &[&str]| object.str_at(path).unwrap_or_default().to_owned();
        let (kind, name) = (text(&["kind"]), text(&["metadata", "name"]));
        if self.get(&kind, &name).is_some() {
            return self.ask(Verb::Patch(PatchType::Merge), &kind, &name, "", Some(object.clone()));
        }
        self.ask(Verb::Create, &kind, "", "", Some(object.clone()))
    }

    /// An object whose owner is told by name alone: the story's own Rollout, as it is now.
    fn owned(&self, object: &Value) -> Value {
        let mut owners = object.list_at(&["metadata", "ownerReferences"]).to_vec();
        if owners.is_empty() {
            return object.clone();
        }
        for owner in owners.iter_mut().filter(|owner| owner.get("uid").is_none()) {
            let named = owner.str_at(&["name"]).and_then(|name| self.get("Rollout", name)).unwrap_or_default();
            let uid = named.at(&["metadata", "uid"]).cloned().unwrap_or_default();
            owner.set_at(&["uid"], uid);
        }
        let mut object = object.clone();
        object.set_at(&["metadata", "ownerReferences"], owners);
        object
    }

    /// Changes the story's own Rollout.
    pub fn patch(&mut self, patch: Value, subresource: &str) -> String {
        let main = self.main.clone();
        self.ask(Verb::Patch(PatchType::Merge), "Rollout", &main, subresource, Some(patch))
    }

    /// The next so many writes of the engine go wrong like this.
    pub(super) fn spoil(&mut self, fault: &Fault, times: u64) {
        let next = self.local.writes();
        self.local.faults.writes.extend((next..next + times).map(|number| (number, fault.clone())));
    }
}

/// A person's request.
pub(super) fn request(verb: Verb, kind: &str, name: &str, subresource: &str, body: Option<Value>) -> Option<Request> {
    let Resource { group, version, plural } = kind_of(kind)?;
    Some(Request {
        verb,
        group,
        version,
        resource: plural,
        namespace: NAMESPACE.into(),
        name: name.into(),
        subresource: subresource.into(),
        body,
        agent: "story".into(),
        ..Request::default()
    })
}
