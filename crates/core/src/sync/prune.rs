//! What is deleted: only what is stale, ours by uid, and no longer referred to by anything that runs. Never on doubt.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{
    id::Id,
    policy,
    reason::{Doubt, Reason},
    set::Set,
    stage::Stage,
    view::{Fetched, Pair, View},
};
use crate::{
    api::{self, InventoryEntry, Rollout, constants},
    kubernetes::value::{Text, Value},
    model::{
        git_source::{GitSource, OnImmutable, Prune},
        weight::Limit,
    },
};

/// An object to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// What.
    pub id: Id,
    /// At which version it is written.
    pub version: Text,
    /// Which one: a namesake is left alone.
    pub uid: Text,
}

/// The entries of an inventory that git no longer wants.
pub fn stale<'v>(view: &'v View, set: &Set) -> Vec<&'v InventoryEntry> {
    // Where an older set is put back, the hooks of the commit that failed are still its own.
    let hooks = match &view.fetched {
        Fetched::Commit(commit) => commit.set.hooks.as_slice(),
        Fetched::Nothing | Fetched::Failed(_) => &[],
    };
    let wanted: HashSet<&Id> = set.objects.iter().chain(&set.hooks).chain(hooks).map(|desired| &desired.id).collect();
    view.status.inventory.iter().filter(|entry| !wanted.contains(&Id::of_entry(entry))).collect()
}

/// The namespaces whose ReplicaSets must be seen before anything is deleted.
pub fn namespaces(view: &View, set: &Set) -> BTreeSet<Text> {
    let referable = |entry: &&&InventoryEntry| is_referable(&Id::of_entry(entry));
    stale(view, set).iter().filter(referable).map(|entry| Text::from(entry.namespace.as_str())).collect()
}

/// What pods and Rollouts refer to by name.
fn is_referable(id: &Id) -> bool {
    matches!(
        (id.group.as_str(), id.kind.as_str()),
        ("", "ConfigMap" | "Secret" | "ServiceAccount" | "PersistentVolumeClaim" | "Service")
            | (constants::GROUP, constants::kind::ANALYSIS_TEMPLATE)
    )
}

/// What is deleted, and why the rest is not.
pub fn decide(view: &View, spec: &GitSource, set: &Set, unread: bool) -> (Vec<Stale>, Vec<Reason>) {
    let stale = stale(view, set);
    if stale.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let limit = match &spec.prune {
        Prune::Never => return (Vec::new(), vec![Reason::NoPruning(Doubt::Off)]),
        Prune::UpTo(limit) => limit,
    };
    let doubt = if unread || !set.problems.is_empty() {
        Some(Doubt::Unread)
    } else if set.objects.is_empty() {
        Some(Doubt::Empty)
    } else if let Some(missing) = &view.unlisted {
        Some(Doubt::Unlisted(missing.clone()))
    } else {
        let of = view.status.inventory.len();
        let limit = most(limit, of);
        // What is gone by itself, or stays anyway, is no loss.
        let lost = stale.iter().filter(|entry| view.live.contains_key(&Id::of_entry(entry))).count();
        (lost > limit).then_some(Doubt::TooMany { stale: lost, of, limit })
    };
    if let Some(doubt) = doubt {
        return (Vec::new(), vec![Reason::NoPruning(doubt)]);
    }
    let references = References::of(view, set);
    let (mut prune, mut reasons) = (Vec::new(), Vec::new());
    for entry in stale {
        let id = Id::of_entry(entry);
        let Some(live) = view.live.get(&id) else { continue };
        if entry.uid.is_empty() || live.uid() != entry.uid.as_str() || !view.is_ours(&live.value) {
            reasons.push(Reason::NotOurs(id));
        } else if policy::is_kept(&live.value) {
            reasons.push(Reason::KeptByPolicy(id));
        } else if policy::is_suspended(&live.value) {
            reasons.push(Reason::ObjectSuspended(id));
        } else if let Some(by) = references.to(&id) {
            reasons.push(Reason::StillReferenced(id, by.to_owned()));
        } else if let Some(why) = view.refused_deletion(&id) {
            reasons.push(Reason::Refused(id, why.to_owned()));
        } else if !live.is_terminating() {
            reasons.push(Reason::Prunes(id.clone()));
            prune.push(Stale { id, version: entry.version.as_str().into(), uid: live.uid() });
        }
    }
    (prune, reasons)
}

/// Whether an object that is to go is the reason why the server refuses a new one: it has what only one can have, and is
/// named by the server or has the same port.
pub fn blocks(view: &View, stale: &Stale, refused: &Id, message: &str) -> bool {
    let Some(live) = view.live.get(&stale.id) else { return false };
    let mut hooks = live.value.list_at(&["webhooks"]).iter().filter_map(|hook| hook.str_at(&["name"]));
    if hooks.any(|hook| message.contains(&format!("webhook \"{hook}\""))) {
        return true;
    }
    // What runs pods is never in the way of another object, whatever a message names: it may be what serves.
    if super::detail::is_known(&stale.id) || (&stale.id.group, &stale.id.kind) != (&refused.group, &refused.kind) {
        return false;
    }
    // Other refusals may name an object, too, and would not end with it.
    let is_conflict = CONFLICTS.iter().any(|words| message.contains(words));
    if !is_conflict {
        return false;
    }
    let names = |name: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let mut words = message.split(|c: char| !is_part(c)).map(|word| word.trim_end_matches('.'));
        words.any(|word| word == name)
    };
    let wanted = match &view.fetched {
        Fetched::Commit(commit) => commit.set.objects.iter().find(|desired| desired.id == *refused),
        Fetched::Nothing | Fetched::Failed(_) => None,
    };
    let ports = |object: &Value| -> BTreeSet<i64> {
        object.list_at(&["spec", "ports"]).iter().filter_map(|port| port.int_at(&["nodePort"])).collect()
    };
    let shares_port = wanted.is_some_and(|wanted| !ports(&wanted.object).is_disjoint(&ports(&live.value)));
    (stale.id.name != refused.name && names(&stale.id.name)) || shares_port
}

/// What a server says that refuses an object because another one has what only one can have.
const CONFLICTS: [&str; 4] = ["already allocated", "already exists", "already in use", "already defined in ingress"];

/// What is deleted so that it can be created again, if the object or its source wants that. Never what holds data or others'
/// objects: those would go with it.
pub fn replaces(spec: &GitSource, pair: &Pair<'_>) -> Option<Stale> {
    let id = &pair.desired.id;
    let wanted = pair.desired.policy.replace.unwrap_or(spec.on_immutable == OnImmutable::Replace);
    let uid = pair.ours.clone().filter(|_| wanted && !holds(id))?;
    Some(Stale { id: id.clone(), version: pair.desired.sort.version.clone(), uid })
}

/// Whether an object holds data or others' objects.
pub fn holds(id: &Id) -> bool {
    Stage::of(&id.group, &id.kind) == Stage::Foundation
        || id.is("", "PersistentVolumeClaim")
        || id.is("", "PersistentVolume")
}

/// What becomes of what an object owns: the pods of a StatefulSet that git has are adopted by the next one.
pub fn propagation(id: &Id, view: &View) -> &'static str {
    let stays = match &view.fetched {
        Fetched::Commit(commit) => commit.set.objects.iter().any(|desired| desired.id == *id),
        Fetched::Nothing | Fetched::Failed(_) => false,
    };
    if stays && id.is("apps", "StatefulSet") { "Orphan" } else { "Background" }
}

/// How many of so many one commit may delete.
fn most(limit: &Limit, of: usize) -> usize {
    match limit {
        Limit::Pods(count) => usize::try_from(*count).unwrap_or_default(),
        // Rounded up: half of one is one, or a source of a single object could never let it go.
        Limit::Percent(percent) => (of * usize::try_from(*percent).unwrap_or_default()).div_ceil(100),
        Limit::Unreadable(_) => 0,
    }
}

/// Who refers to what, among what runs.
struct References(BTreeMap<Id, String>);

impl References {
    fn of(view: &View, wanted: &Set) -> References {
        let mut references = References(BTreeMap::new());
        for set in &view.sets {
            let count = |path: &[&str]| set.int_at(path).unwrap_or_default();
            let runs = count(&["spec", "replicas"]) > 0 || count(&["status", "replicas"]) > 0;
            let name = set.str_at(&["metadata", "name"]).unwrap_or_default();
            let namespace = set.str_at(&["metadata", "namespace"]).unwrap_or_default();
            // A Rollout goes back to its stable version even from nothing.
            let stable = view.live.values().any(|live| {
                let owner = crate::kubernetes::object::controller(set);
                owner.as_ref() == Some(&live.uid())
                    && live.value.str_at(&["status", "stableRS"]).is_some_and(|hash| {
                        set.str_at(&["metadata", "labels", constants::label::POD_TEMPLATE_HASH]) == Some(hash)
                    })
            });
            if (runs || stable)
                && let Some(spec) = set.at(&["spec", "template", "spec"])
            {
                references.pods(namespace, spec, &format!("ReplicaSet {name}"));
            }
        }
        // What git wants to run refers to things, too, wherever those come from.
        for desired in wanted.objects.iter().chain(&wanted.hooks) {
            let by = desired.id.to_string();
            if let Some(spec) = desired.object.at(&["spec", "template", "spec"]) {
                references.pods(&desired.id.namespace, spec, &by);
            }
        }
        let rollouts = view.live.iter().filter(|(id, _)| id.kind == constants::kind::ROLLOUT);
        // Of several that refer to something, always the same one is named.
        for (_, live) in rollouts.collect::<BTreeMap<_, _>>() {
            references.rollout(&live.value);
        }
        references
    }

    fn to(&self, id: &Id) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }

    fn note(&mut self, kind: &str, namespace: &str, name: Option<&str>, by: &str) {
        if let Some(name) = name {
            self.0.entry(Id::new("", kind, namespace, name)).or_insert_with(|| by.to_owned());
        }
    }

    /// Everything that a pod's specification refers to, wherever in it.
    fn pods(&mut self, namespace: &str, spec: &Value, by: &str) {
        let account = spec.str_at(&["serviceAccountName"]).or_else(|| spec.str_at(&["serviceAccount"]));
        self.note("ServiceAccount", namespace, account, by);
        for secret in spec.list_at(&["imagePullSecrets"]) {
            self.note("Secret", namespace, secret.str_at(&["name"]), by);
        }
        self.below(namespace, spec, by);
    }

    fn below(&mut self, namespace: &str, value: &Value, by: &str) {
        match value {
            Value::Map(map) => {
                for (key, value) in map.iter() {
                    match key.as_str() {
                        "configMap" | "configMapRef" | "configMapKeyRef" => {
                            self.note("ConfigMap", namespace, value.str_at(&["name"]), by);
                        }
                        "secret" => {
                            let name = value.str_at(&["secretName"]).or_else(|| value.str_at(&["name"]));
                            self.note("Secret", namespace, name, by);
                        }
                        "secretRef" | "secretKeyRef" | "nodePublishSecretRef" => {
                            self.note("Secret", namespace, value.str_at(&["name"]), by);
                        }
                        "persistentVolumeClaim" => {
                            self.note("PersistentVolumeClaim", namespace, value.str_at(&["claimName"]), by);
                        }
                        _ => {}
                    }
                    self.below(namespace, value, by);
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.below(namespace, item, by)),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {}
        }
    }

    /// The Services and templates that a live Rollout names: it may not have heard of the new ones.
    fn rollout(&mut self, object: &Value) {
        let rollout: Rollout = api::read(object).object;
        let (namespace, name) = (&rollout.metadata.namespace, &rollout.metadata.name);
        let by = format!("Rollout {name}");
        for (_, service) in crate::rollout::services::named(&rollout) {
            self.note("Service", namespace, Some(service), &by);
        }
        self.templates(namespace, object.get("spec").unwrap_or(&Value::Null), &by);
    }

    fn templates(&mut self, namespace: &str, value: &Value, by: &str) {
        match value {
            Value::Map(map) => {
                for (_, value) in map.iter() {
                    self.templates(namespace, value, by);
                }
                if let Some(name) = map.get("templateName").and_then(Value::as_str) {
                    let id = Id::new(constants::GROUP, constants::kind::ANALYSIS_TEMPLATE, namespace, name);
                    self.0.entry(id).or_insert_with(|| by.to_owned());
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.templates(namespace, item, by)),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {}
        }
    }
}
