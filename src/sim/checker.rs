//! What must never happen over time, whatever was decided: a judge of the history of a cluster.
//!
//! Looks at every committed change, at what each pass saw and at what the engine was told of its writes. Shares no function
//! with the decision, so that one mistake cannot hide in both. Never repairs and never interferes: it remembers what was
//! broken. Rules carry their names (S5, S41 …); those about one decision alone are in [`crate::rollout::invariant`].

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::rules::{self, Kind};
use crate::{
    api::constants::{annotation, label},
    embedded::store::{Store, history::Change},
    engine::write::Written,
    kubernetes::{
        object,
        value::{Text, Value},
    },
    rollout::Seen,
    route::Apis,
};

/// How late an old version may go.
const LATE: SignedDuration = SignedDuration::from_secs(10);

/// What was seen so far, and what was broken.
#[derive(Debug, Clone, Default)]
pub struct Checker {
    broken: Vec<String>,
    cursor: u64,
    /// The versions that the engine made.
    own: BTreeSet<u64>,
    /// The newest version of each object that the engine was told it wrote, by plural, namespace and name.
    acknowledged: BTreeMap<(Text, Text, Text), u64>,
    /// The newest version of each object that a pass saw, by uid.
    seen: BTreeMap<Text, u64>,
    /// Each Rollout as a pass last saw it, by uid: that is what it decided on.
    rollouts: BTreeMap<Text, Value>,
    /// What each field that the engine owns has been since something last happened to its Rollout.
    values: BTreeMap<(Text, Text), Vec<String>>,
    /// The versions at which something happened to a Rollout or a ReplicaSet that no pass has seen yet, by uid.
    news: BTreeMap<Text, u64>,
    /// The pauses that were begun: by uid, attempt and step.
    pauses: BTreeSet<(Text, u64, i64)>,
    /// Which attempt each Rollout is in.
    attempts: BTreeMap<Text, u64>,
    /// The ReplicaSets whose pods somebody else altered, as they were before, by uid.
    altered: BTreeMap<Text, Value>,
    /// When old versions must have gone, by uid.
    deadlines: BTreeMap<Text, (Timestamp, Text)>,
}

impl Checker {
    /// What was broken, oldest first.
    pub fn broken(&self) -> Vec<String> {
        self.broken.clone()
    }

    /// Something that somebody else noticed.
    pub fn complain(&mut self, what: String) {
        self.broken.push(what);
    }

    /// The engine died: it no longer knows what it wrote or saw.
    pub fn died(&mut self) {
        self.acknowledged.clear();
        self.seen.clear();
        // Nobody can be on time who is not there.
        self.deadlines.clear();
    }

    /// The engine stands still; it knows what it knew.
    pub fn stopped(&mut self) {
        self.deadlines.clear();
    }

    /// A pass looks at this (S1, S2).
    pub fn sees(&mut self, seen: &Seen) {
        if let Some(uid) = seen.rollout.at(&["metadata", "uid"]).and_then(Value::as_text) {
            let before = self.rollouts.insert(uid.clone(), seen.rollout.clone());
            let generation = |rollout: &Value| rollout.int_at(&["metadata", "generation"]);
            // Of several wishes in a row each one is news to the pass that sees it, though the last one is older by then.
            if before.is_some_and(|before| generation(&before) != generation(&seen.rollout)) {
                self.forget_values(uid);
            }
        }
        let rollouts = [("rollouts", &seen.rollout)].into_iter();
        let sets = seen.sets.iter().map(|set| ("replicasets", set));
        let services = seen.services.iter().map(|service| ("services", service));
        let pods = seen.pods.iter().map(|pod| ("pods", pod));
        let routes = seen.routes.iter().map(|routed| (routed.kind.plural(&Apis::default()), &routed.object));
        let runs = seen.runs.iter().map(|run| ("analysisruns", run));
        let experiments = seen.experiments.iter().map(|experiment| ("experiments", experiment));
        let runs = runs.chain(experiments);
        for (plural, object) in rollouts.chain(sets).chain(services).chain(pods).chain(routes).chain(runs) {
            let text = |key: &str| object.at(&["metadata", key]).and_then(Value::as_text).cloned().unwrap_or_default();
            let version: u64 = text("resourceVersion").parse().unwrap_or_default();
            let name = text("name");
            let wrote = self.acknowledged.get(&(plural.into(), text("namespace"), name.clone()));
            if let Some(wrote) = wrote.filter(|wrote| version < **wrote) {
                self.broken.push(format!("S1: a pass saw {plural} {name} at {version}, but {wrote} was written"));
            }
            let last = self.seen.entry(text("uid")).or_default();
            if version < *last {
                self.broken.push(format!("S2: a pass saw {plural} {name} at {version} after {last}"));
            }
            *last = version;
            // What was decided before this was seen was decided without it.
            if self.news.get(&text("uid")).is_some_and(|news| *news <= version) {
                self.news.remove(&text("uid"));
                let owner = seen.rollout.at(&["metadata", "uid"]).and_then(Value::as_text).cloned();
                self.forget_values(&owner.unwrap_or_default());
            }
        }
    }

    /// The engine was told of these writes.
    pub fn acknowledged(&mut self, written: &[Written]) {
        for write in written {
            if let Written::Version(key, version) = write {
                let place = &key.place;
                let key = (key.resource.plural.clone(), place.namespace.clone(), place.name.clone());
                self.acknowledged.insert(key, *version);
            }
        }
    }

    /// The engine's own request made every change after this version (S5, S48).
    pub fn wrote(&mut self, store: &Store, before: u64) {
        for change in store.changes_since(before) {
            self.own.insert(change.version);
            let (Some(kind), Some(old)) = (Kind::of(&change.kind.group, &change.kind.kind), &change.old) else {
                continue;
            };
            for field in rules::foreign(kind, &old.value, &change.object.value) {
                self.broken.push(format!("S5: {} {} was not the engine's to change in {}", field, kind, old.name()));
            }
        }
    }

    /// Looks at everything that happened since the last look, and at the time.
    pub fn watch(&mut self, store: &Store) {
        for change in store.changes_since(self.cursor) {
            match Kind::of(&change.kind.group, &change.kind.kind) {
                Some(Kind::Rollout) => self.rollout_changed(store, change),
                Some(Kind::Set) => self.set_changed(store, change),
                Some(Kind::Service) => self.service_changed(change),
                Some(Kind::Run) => self.run_changed(store, change),
                Some(Kind::Pod | Kind::Workload | Kind::Route(_)) | None => {}
            }
        }
        self.cursor = store.version();
        self.watch_deadlines(store);
    }

    fn run_changed(&mut self, store: &Store, change: &Change) {
        let run = &change.object.value;
        if change.deleted || !self.own.contains(&change.version) {
            return;
        }
        match &change.old {
            Some(old) => self.broken.extend(rules::run(&old.value, run)),
            None => {
                let Some(owner) = object::controller(run) else { return };
                let namespace = change.object.namespace();
                let others = store.list(crate::api::constants::GROUP, "analysisruns", &namespace);
                let is_rival =
                    |other: &Value| object::controller(other).as_ref() == Some(&owner) && rules::are_rivals(run, other);
                if let Some(rival) = others.into_iter().find(|other| is_rival(&other.value)) {
                    self.broken.push(format!("S42: {} beside {}", change.object.name(), rival.name()));
                }
            }
        }
    }

    /// A step with an analysis is passed: its own run must have gone well (S43).
    fn watch_gate(&mut self, store: &Store, change: &Change, old: &Value) {
        let Some(step) = rules::passed_analysis(old, &change.object.value) else { return };
        let (uid, namespace) = (change.object.uid(), change.object.namespace());
        let hash = old.str_at(&["status", "currentPodHash"]);
        let mut runs = store.list(crate::api::constants::GROUP, "analysisruns", &namespace);
        let went_well = runs.any(|run| {
            let label = |key: &str| run.value.str_at(&["metadata", "labels", key]);
            object::controller(&run.value).as_ref() == Some(&uid)
                && label(label::STEP_INDEX) == Some(step.to_string().as_str())
                && label(label::POD_TEMPLATE_HASH) == hash
                && run.value.str_at(&["status", "phase"]) == Some("Successful")
        });
        if !went_well && !is_rollback(store, change, old) {
            self.broken.push(format!("S43: {} passed step {step} without a run that succeeded", change.object.name()));
        }
    }

    /// What is called healthy was made from the template that is asked for, whatever its own became since (S12).
    fn watch_identity(&mut self, store: &Store, change: &Change) {
        let (rollout, uid, namespace) = (&change.object.value, change.object.uid(), change.object.namespace());
        let Some(hash) = rules::healthy_version(rollout) else { return };
        let mut sets = store.list("apps", "replicasets", &namespace);
        let current = sets.find(|set| {
            object::controller(&set.value).as_ref() == Some(&uid)
                && set.value.str_at(&["metadata", "labels", label::POD_TEMPLATE_HASH]) == Some(hash)
        });
        let Some(set) = current else { return };
        if self.altered.get(&set.uid()).is_some_and(|made| rules::images(made) != rules::images(rollout)) {
            self.broken.push(format!("S12: {} was made from another template", set.name()));
        }
    }

    fn rollout_changed(&mut self, store: &Store, change: &Change) {
        let (uid, name) = (change.object.uid(), change.object.name());
        let (Some(old), new) = (&change.old, &change.object.value) else { return };
        if change.deleted {
            return;
        }
        let is_own = self.own.contains(&change.version);
        // People may write anything into status, or remove it.
        if is_own {
            self.watch_gate(store, change, &old.value);
            self.watch_identity(store, change);
            let broken = rules::status(&old.value, new);
            self.broken.extend(broken.into_iter().map(|broken| format!("{broken} ({name})")));
        }
        if rules::is_news(&old.value, new, is_own) {
            self.forget_values(&uid);
            self.news.insert(uid.clone(), change.version);
        }
        let attempt = self.attempts.entry(uid.clone()).or_default();
        if rules::begins_attempt(&old.value, new) {
            *attempt += 1;
        }
        // A pause that a person covered by one by hand may begin anew when that ends.
        if rules::ends_pause_by_hand(&old.value, new) {
            self.pauses.retain(|(rollout, during, _)| *rollout != uid || during != attempt);
        }
        if let Some(step) = rules::begun_pause(&old.value, new)
            && !self.pauses.insert((uid, *attempt, step))
        {
            self.broken.push(format!("S36: {name} paused at step {step} twice in one attempt"));
        }
    }

    fn set_changed(&mut self, store: &Store, change: &Change) {
        let set = &change.object.value;
        let uid = change.object.uid();
        let Some(owner) = object::controller(set) else { return };
        self.deadlines.remove(&uid);
        if change.deleted {
            // Another one of its name begins anew.
            return self.forget_values(&owner);
        }
        let is_own = self.own.contains(&change.version);
        let before = change.old.as_ref().filter(|old| !is_own && rules::differ_in_template(&old.value, set));
        if let Some(before) = before {
            self.altered.entry(uid.clone()).or_insert_with(|| before.value.clone());
        }
        let siblings: Vec<&Value> = store
            .list("apps", "replicasets", &change.object.namespace())
            .map(|sibling| &sibling.value)
            .filter(|sibling| object::controller(sibling).as_ref() == Some(&owner))
            .filter(|sibling| sibling.at(&["metadata", "uid"]) != set.at(&["metadata", "uid"]))
            .filter(|sibling| self.is_known(sibling) && !self.is_altered(sibling))
            .collect();
        // Versions of an Experiment may have the same template: they are told apart by name.
        if is_own && set.at(&["metadata", "annotations", annotation::EXPERIMENT_NAME]).is_none() {
            self.broken.extend(rules::siblings(change.old.as_ref().map(|old| &old.value), set, &siblings));
        }
        let (Some(rollout), Some(old)) = (self.rollouts.get(&owner).cloned(), &change.old) else { return };
        let size = |set: &Value| set.int_at(&["spec", "replicas"]).unwrap_or(1);
        if is_own && size(&old.value) != size(set) {
            self.broken.extend(rules::scaled(&rollout, &old.value, set, store.now()));
            if rules::is_preview(&rollout, &old.value) {
                self.forget_values(&owner);
            }
            self.note(&owner, &change.object.name(), size(&old.value).to_string(), size(set).to_string());
        } else if size(&old.value) != size(set) || available(set) < available(&old.value) {
            self.forget_values(&owner);
            self.news.insert(uid.clone(), change.version);
        }
        if let Some(deadline) = deadline(set)
            && size(set) > 0
            && rules::must_go(&rollout, set)
        {
            self.deadlines.insert(uid, (deadline, change.object.name()));
        }
    }

    /// Whether somebody altered a ReplicaSet: what it looks like no longer says what it is.
    fn is_altered(&self, set: &Value) -> bool {
        set.at(&["metadata", "uid"]).and_then(Value::as_text).is_some_and(|uid| self.altered.contains_key(uid))
    }

    /// Whether a pass could know of a ReplicaSet: it saw it, or was told of its creation. An answer may be lost, and a watch
    /// late.
    fn is_known(&self, set: &Value) -> bool {
        let text = |key: &str| set.at(&["metadata", key]).and_then(Value::as_text).cloned().unwrap_or_default();
        let place = ("replicasets".into(), text("namespace"), text("name"));
        self.seen.contains_key(&text("uid")) || self.acknowledged.contains_key(&place)
    }

    fn service_changed(&mut self, change: &Change) {
        let hash = |service: &Value| {
            service.str_at(&["spec", "selector", label::POD_TEMPLATE_HASH]).unwrap_or_default().to_owned()
        };
        if !self.own.contains(&change.version) || change.deleted {
            // Somebody else wrote it: what it was before says nothing about what may follow.
            let name = change.object.name();
            return self.values.retain(|(_, of), _| *of != name);
        }
        let Some(old) = change.old.as_ref() else { return };
        let (before, after) = (hash(&old.value), hash(&change.object.value));
        if before != after {
            let owner = change.object.annotation(annotation::MANAGED_BY).unwrap_or_default().into();
            self.note(&owner, &change.object.name(), before, after);
        }
    }

    /// A field that the engine owns took a value (S7).
    fn note(&mut self, owner: &Text, name: &Text, before: String, after: String) {
        let values = self.values.entry((owner.clone(), name.clone())).or_insert_with(|| vec![before]);
        if values.contains(&after) {
            self.broken.push(format!("S7: {name} went {} → {after} with nothing new", values.join(" → ")));
        }
        values.push(after);
    }

    /// Something happened to a Rollout: what was so before says nothing about what may follow.
    fn forget_values(&mut self, owner: &Text) {
        // Services are noted by their Rollout's name, which a uid does not tell.
        self.values.retain(|(of, _), _| of != owner && of.len() == 36);
    }

    /// Old versions go in time (S41).
    fn watch_deadlines(&mut self, store: &Store) {
        let now = store.now();
        let late = |deadline: &Timestamp| deadline.saturating_add(LATE).is_ok_and(|latest| latest < now);
        let late: Vec<Text> =
            self.deadlines.iter().filter(|(_, (deadline, _))| late(deadline)).map(|(uid, _)| uid.clone()).collect();
        for uid in late {
            let Some((deadline, name)) = self.deadlines.remove(&uid) else { continue };
            // A pause or a broken specification holds everything, and a role given back takes the deadline away.
            let set = store.list("apps", "replicasets", "").find(|set| set.uid() == uid);
            let owner = set.and_then(|set| object::controller(&set.value));
            let rollout = store.list(crate::api::constants::GROUP, "rollouts", "");
            let rollout = rollout.into_iter().find(|rollout| Some(rollout.uid()) == owner);
            if let (Some(set), Some(rollout)) = (set, rollout)
                && rules::must_go(&rollout.value, &set.value)
                && set.value.int_at(&["spec", "replicas"]).unwrap_or(1) > 0
            {
                self.broken.push(format!("S41: {name} was to go at {deadline} and is still there"));
            }
        }
    }
}

fn available(set: &Value) -> i64 {
    set.int_at(&["status", "availableReplicas"]).unwrap_or_default()
}

/// When a ReplicaSet is to go.
fn deadline(set: &Value) -> Option<Timestamp> {
    set.str_at(&["metadata", "annotations", annotation::SCALE_DOWN_DEADLINE])?.parse().ok()
}

/// Whether a Rollout with a window for rollbacks goes back to a version that is older than the stable one: its steps are
/// skipped.
fn is_rollback(store: &Store, change: &Change, old: &Value) -> bool {
    let window = old.at(&["spec", "rollbackWindow"]).is_some_and(|window| !window.is_null());
    let (uid, namespace) = (change.object.uid(), change.object.namespace());
    let made = |field: &str| {
        let hash = old.str_at(&["status", field])?;
        let mut sets = store.list("apps", "replicasets", &namespace);
        let set = sets.find(|set| {
            object::controller(&set.value).as_ref() == Some(&uid)
                && set.value.str_at(&["metadata", "labels", label::POD_TEMPLATE_HASH]) == Some(hash)
        })?;
        set.value.str_at(&["metadata", "creationTimestamp"]).map(str::to_owned)
    };
    window && made("currentPodHash").zip(made("stableRS")).is_some_and(|(wanted, stable)| wanted < stable)
}
