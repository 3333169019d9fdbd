//! What changes between two sets: each object that is created, changed or removed, with its difference as text.
//!
//! Values of Secrets are replaced on both sides before anything is compared as text. Never looks at a cluster.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::hash;
use crate::{
    kubernetes::value::{Map, Text, Value},
    sync::{
        compare,
        id::Id,
        policy::Apply,
        set::{self, Desired, Set},
        stage::Stage,
        text,
    },
};

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// It is new.
    Create,
    /// It says something else.
    Change,
    /// It left git, and goes.
    Delete,
    /// It left git, and stays.
    Keep,
}

impl What {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            What::Create => "create",
            What::Change => "change",
            What::Delete => "delete",
            What::Keep => "keep",
        }
    }
}

/// What becomes of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The object.
    pub id: Id,
    /// What becomes of it.
    pub what: What,
    /// Its file: on the new side, or on the old one if it is removed.
    pub file: Text,
    /// The line it begins in.
    pub line: usize,
    /// Where overlays changed it, by file and line; none unless a kustomization rendered it.
    pub patched: Arc<[(Text, usize)]>,
    /// The fields that differ; none if its schema is not known, or if it is new or removed.
    pub fields: Vec<String>,
    /// A policy that applies to it; empty if none does.
    pub note: String,
    /// The difference, as `diff -u` prints it.
    pub diff: String,
}

impl Change {
    /// Where it stands, for people: its file and line, and where overlays changed it.
    pub fn place(&self) -> String {
        format!("{}:{}{}", self.file, self.line, set::patched(&self.patched))
    }
}

/// What changes between two sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The objects that differ, the most important first.
    pub objects: Vec<Change>,
    /// How many do not.
    pub unchanged: usize,
    /// The plan hash.
    pub hash: String,
}

/// Compares two sets. `namespace` is that of objects that name none.
pub fn changes(old: &Set, new: &Set, namespace: &str) -> Changes {
    let before: HashMap<&Id, &Desired> = old.with_hooks().map(|desired| (&desired.id, desired)).collect();
    let after: HashMap<&Id, &Desired> = new.with_hooks().map(|desired| (&desired.id, desired)).collect();
    let mut pairs: Vec<hash::Pair<'_>> = Vec::new();
    let mut unchanged = 0;
    for desired in new.with_hooks() {
        match before.get(&desired.id) {
            Some(old) if is_same(old, desired) => unchanged += 1,
            old => pairs.push((old.copied(), Some(desired))),
        }
    }
    pairs.extend(old.with_hooks().filter(|old| !after.contains_key(&old.id)).map(|old| (Some(old), None)));
    let hash = hash::of(pairs.iter().copied(), namespace);
    let mut objects: Vec<Change> = pairs.into_iter().filter_map(change).collect();
    objects.sort_by_cached_key(|change| (rank(change), change.id.clone()));
    Changes { objects, unchanged, hash }
}

fn is_same(old: &Desired, new: &Desired) -> bool {
    old.digest == new.digest && (old.object.is(&new.object) || old.object == new.object)
}

fn change((old, new): hash::Pair<'_>) -> Option<Change> {
    let of = new.or(old)?;
    let (one, other) = masked(old.map(|old| &old.object), new.map(|new| &new.object));
    let shown = |object: &Option<Value>| object.as_ref().map_or_else(String::new, yaml);
    let place = |side: Option<&Desired>, absent: &str| side.map_or_else(|| absent.to_owned(), Desired::place);
    let diff = text::unified(&shown(&one), &shown(&other), &place(old, "(absent)"), &place(new, "(removed)"));
    let what = match (old, new) {
        (None, _) => What::Create,
        (Some(_), Some(_)) => What::Change,
        (Some(old), None) if old.policy.keep => What::Keep,
        (Some(_), None) => What::Delete,
    };
    let fields = match (&of.sort.kind, &one, &other) {
        (Some(kind), Some(one), Some(other)) => compare::fields(kind, one, other),
        _ => Vec::new(),
    };
    let (file, line) = (of.file.clone(), of.line);
    let (note, patched) = (note(what, of), of.patched.clone());
    Some(Change { id: of.id.clone(), what, file, line, patched, fields, note, diff })
}

/// What is to be known about how the daemon treats it.
fn note(what: What, of: &Desired) -> String {
    let policy = &of.policy;
    match (what, policy.apply) {
        (What::Keep, _) => "stays: it is annotated with tidegate.dev/prune: disabled".to_owned(),
        (What::Create | What::Change | What::Delete, Apply::Never) => {
            "is not applied: it is annotated with tidegate.dev/apply: ignore".to_owned()
        }
        (What::Change, Apply::Once) => "is not applied: tidegate.dev/apply: once only creates it".to_owned(),
        (What::Create | What::Change, _) if policy.suspended => {
            "is not applied for now: it is annotated with tidegate.dev/suspend: true".to_owned()
        }
        (What::Create | What::Change | What::Delete, Apply::Always | Apply::Once) => {
            let phase = policy.hook.as_ref().map(|hook| hook.phase.name());
            phase.map_or_else(String::new, |phase| format!("a {phase} hook: it runs once for each commit"))
        }
    }
}

/// What a reader should see first: what may destroy data, then what starts to move, then the rest.
fn rank(change: &Change) -> u8 {
    let (group, kind) = (change.id.group.as_str(), change.id.kind.as_str());
    let holds_others = matches!(
        (group, kind),
        ("", "Namespace" | "PersistentVolumeClaim" | "PersistentVolume")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
    );
    match (change.what, Stage::of(group, kind)) {
        (What::Delete, _) if holds_others => 0,
        _ if change.id.is("argoproj.io", "Rollout") => 1,
        (What::Delete, Stage::Workload) => 2,
        (_, Stage::Workload) => 3,
        (What::Delete, _) => 4,
        (_, Stage::Route) => 5,
        (_, Stage::Configuration | Stage::Foundation) => 6,
    }
}

/// An object as text.
pub fn yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap_or_default()
}

/// What of a Secret may be seen.
const OPEN: [&str; 5] = ["apiVersion", "immutable", "kind", "metadata", "type"];

/// Both sides without the values of a Secret: only whether they are the same is left. No digest stands for a value, because
/// a short password could be found from it.
pub fn masked(old: Option<&Value>, new: Option<&Value>) -> (Option<Value>, Option<Value>) {
    let is_secret = |object: &&Value| object.str_at(&["kind"]) == Some("Secret");
    if old.filter(is_secret).is_none() && new.filter(is_secret).is_none() {
        return (old.cloned(), new.cloned());
    }
    let (mut one, mut other) = (old.cloned(), new.cloned());
    let keys = |object: Option<&Value>| -> Vec<Text> {
        object.and_then(Value::as_map).into_iter().flat_map(Map::keys).cloned().collect()
    };
    // Whoever misspells `stringData` has written a secret all the same.
    let fields: BTreeSet<Text> = keys(old).into_iter().chain(keys(new)).collect();
    for field in fields.iter().map(Text::as_str).filter(|field| !OPEN.contains(field)) {
        let values = |object: Option<&Value>| object.and_then(|object| object.get(field)).cloned();
        let (before, after) = (values(old), values(new));
        // What is no map is no Secret that a server takes, and may be a secret all the same.
        let mask = |own: &Value, of: Option<&Value>, side: &str| match own.as_map() {
            Some(map) => Value::Map(mask(map, of.and_then(Value::as_map), side)),
            None => Value::from("(hidden)"),
        };
        if let (Some(object), Some(own)) = (&mut one, &before) {
            object.set_at(&[field], mask(own, after.as_ref(), "old"));
        }
        if let (Some(object), Some(own)) = (&mut other, &after) {
            object.set_at(&[field], mask(own, before.as_ref(), "new"));
        }
    }
    (one, other)
}

fn mask(own: &Map, other: Option<&Map>, side: &str) -> Map {
    let hidden = |(key, value): (&Text, &Value)| {
        let is_other = other.and_then(|other| other.get(key)).is_some_and(|other| other != value);
        let shown = if is_other { format!("(hidden, {side} value)") } else { "(hidden)".to_owned() };
        (key.clone(), Value::from(shown))
    };
    own.iter().map(hidden).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn secret(pairs: Value) -> Value {
        value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": pairs})
    }

    #[test]
    fn of_a_secret_only_whether_it_changes_is_shown() {
        let (old, new) = (
            secret(value!({"same": "aHVudGVy", "other": "aHVudGVyMg=="})),
            secret(value!({"same": "aHVudGVy", "other": "aHVudGVyMw==", "more": "aHVudGVyNA=="})),
        );
        let (one, other) = masked(Some(&old), Some(&new));
        let text = yaml(&one.clone().unwrap()) + &yaml(&other.clone().unwrap());
        assert!(!text.contains("aHVu"), "{text}");
        let at =
            |object: &Option<Value>, key: &str| object.as_ref().unwrap().str_at(&["data", key]).unwrap().to_owned();
        assert_eq!((at(&one, "same"), at(&other, "same")), ("(hidden)".into(), "(hidden)".into()));
        assert_eq!(
            (at(&one, "other"), at(&other, "other")),
            ("(hidden, old value)".into(), "(hidden, new value)".into())
        );
        assert_eq!(at(&other, "more"), "(hidden)");
        let misspelt = value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque",
            "stringDatta": {"a": "hunter2"}, "hunter": ["hunter2"]});
        let shown = masked(None, Some(&misspelt)).1.unwrap();
        assert_eq!(shown.str_at(&["stringDatta", "a"]), Some("(hidden)"));
        assert_eq!((shown.str_at(&["hunter"]), shown.str_at(&["type"])), (Some("(hidden)"), Some("Opaque")));
        let odd = secret(Value::from("hunter2"));
        assert_eq!(masked(None, Some(&odd)).1.unwrap().str_at(&["data"]), Some("(hidden)"));
    }
}
