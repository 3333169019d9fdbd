//! Objects along their types: which fields one has, what changed between two, what merging and removing makes.
//!
//! Everything skips what two objects share, and results share what did not change. Never fails on a value that does not
//! fit its type; [`validate`] is for saying so.

use super::{
    fieldpath::{Entry, PathElement, Set},
    types::{Atom, Keys, ListType, MapType, Type},
};
use crate::embedded::value::{Map, Value};

/// The fields of an object.
pub fn fields(ty: Type<'_>, value: &Value) -> Set {
    collect(ty, value).1
}

/// Whether the path to the value is a member itself, and the paths below it.
fn collect(ty: Type<'_>, value: &Value) -> (bool, Set) {
    match ty.atom(Some(value)) {
        Atom::Scalar(_) => (true, Set::default()),
        Atom::Map(map) if map.atomic => (true, Set::default()),
        Atom::List(list) if list.is_atomic() => (true, Set::default()),
        Atom::Map(map) => {
            let Value::Map(fields) = value else { return (false, Set::default()) };
            let mut entries = Vec::with_capacity(fields.len());
            for (key, value) in fields.iter() {
                let (leaf, children) = collect(map.value(key).unwrap_or(Type::Deduced), value);
                let empty = value.is_null() || value.as_map().is_some_and(Map::is_empty);
                let member = leaf || empty || map.field(key).is_none();
                if member || !children.is_empty() {
                    entries.push(Entry { element: PathElement::Field(key.clone()), member, children });
                }
            }
            (false, Set::from_entries(entries))
        }
        Atom::List(list) => {
            let Value::List(items) = value else { return (false, Set::default()) };
            let keys = list.keys(items);
            let mut entries = Vec::with_capacity(items.len());
            for (i, item) in items.iter().enumerate() {
                let Ok(element) = list.element(item) else { continue };
                // Items that occur twice are owned together, as one.
                let twice = keys.count(keys.at(i)) > 1;
                let children = if twice { Set::default() } else { collect(list.items, item).1 };
                entries.push(Entry { element, member: true, children });
            }
            (false, Set::from_entries(entries))
        }
    }
}

/// What a write did to the fields of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Fields that are gone.
    pub removed: Set,
    /// Fields with another value.
    pub modified: Set,
    /// Fields that are new.
    pub added: Set,
}

impl Changes {
    /// The same changes as far as `keep` leaves them.
    pub fn map(self, keep: impl Fn(&Set) -> Set) -> Changes {
        Changes { removed: keep(&self.removed), modified: keep(&self.modified), added: keep(&self.added) }
    }
}

/// What changed from `old` to `new`.
pub fn compare(ty: Type<'_>, old: &Value, new: &Value) -> Changes {
    let mut found = Found::default();
    found.compare(ty, Some(old), Some(new));
    found.into_changes()
}

/// The changes below some path, while they are being found; and at the path itself.
#[derive(Default)]
struct Found {
    removed: Vec<Entry>,
    modified: Vec<Entry>,
    added: Vec<Entry>,
    gone: bool,
    differs: bool,
    fresh: bool,
}

impl Found {
    fn into_changes(self) -> Changes {
        let [removed, modified, added] = [self.removed, self.modified, self.added].map(Set::from_entries);
        Changes { removed, modified, added }
    }

    fn compare(&mut self, ty: Type<'_>, old: Option<&Value>, new: Option<&Value>) {
        if let (Some(old), Some(new)) = (old, new)
            && old.is(new)
        {
            return;
        }
        let leaf = match (old, new) {
            (None, new) => self.compare_as(ty.atom(new), old, new),
            (old, None) => self.compare_as(ty.atom(old), old, new),
            (Some(_), Some(_)) => {
                let (before, after) = (ty.atom(old), ty.atom(new));
                // A value that turned from one sort into another goes as the one and comes as the other.
                if std::mem::discriminant(&before) != std::mem::discriminant(&after) {
                    self.compare_as(before, old, new);
                }
                self.compare_as(after, old, new)
            }
        };
        if !leaf {
            self.fresh |= old.is_none();
            self.gone |= new.is_none();
        }
    }

    /// Returns whether the value was compared as one.
    fn compare_as(&mut self, atom: Atom<'_>, old: Option<&Value>, new: Option<&Value>) -> bool {
        match atom {
            Atom::Scalar(_) => self.leaf(old, new),
            Atom::Map(map) => {
                let (before, after) = (old.and_then(Value::as_map), new.and_then(Value::as_map));
                let empty = before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty);
                if map.atomic || empty {
                    return self.leaf(old, new);
                }
                self.maps(map, before, after);
                false
            }
            Atom::List(list) => {
                let before = old.and_then(Value::as_list).unwrap_or_default();
                let after = new.and_then(Value::as_list).unwrap_or_default();
                if list.is_atomic() || (before.is_empty() && after.is_empty()) {
                    return self.leaf(old, new);
                }
                self.lists(list, before, after);
                false
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) -> bool {
        match (old, new) {
            (None, _) => self.fresh = true,
            (_, None) => self.gone = true,
            (Some(old), Some(new)) => self.differs |= old != new,
        }
        true
    }

    fn maps(&mut self, map: MapType<'_>, old: Option<&Map>, new: Option<&Map>) {
        let (mut old, mut new) =
            (old.into_iter().flat_map(Map::iter).peekable(), new.into_iter().flat_map(Map::iter).peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(old), Some(new)) => old.0.cmp(new.0),
            };
            let before = if order.is_le() { old.next() } else { None };
            let after = if order.is_ge() { new.next() } else { None };
            let Some((key, _)) = before.or(after) else { return };
            let (before, after) = (before.map(|field| field.1), after.map(|field| field.1));
            if let (Some(before), Some(after)) = (before, after)
                && before.is(after)
            {
                continue;
            }
            let ty = map.value(key).unwrap_or(Type::Deduced);
            self.child(ty, before, after, || PathElement::Field(key.clone()));
        }
    }

    fn child(&mut self, ty: Type<'_>, old: Option<&Value>, new: Option<&Value>, element: impl FnOnce() -> PathElement) {
        let mut below = Found::default();
        below.compare(ty, old, new);
        self.take(below, element);
    }

    /// Hangs the changes below a child into this branch.
    fn take(&mut self, below: Found, element: impl FnOnce() -> PathElement) {
        let Found { removed, modified, added, gone, differs, fresh } = below;
        let sets = [(removed, gone), (modified, differs), (added, fresh)];
        if sets.iter().all(|(entries, member)| entries.is_empty() && !member) {
            return;
        }
        let element = element();
        for ((entries, member), out) in sets.into_iter().zip([&mut self.removed, &mut self.modified, &mut self.added]) {
            if member || !entries.is_empty() {
                out.push(Entry { element: element.clone(), member, children: Set::from_entries(entries) });
            }
        }
    }

    fn lists(&mut self, list: ListType<'_>, old: &[Value], new: &[Value]) {
        let (before, after) = (Items::of(list, old), Items::of(list, new));
        for (i, item) in old.iter().enumerate() {
            let key = before.keys.at(i);
            if before.keys.find(key) == Some(i) {
                self.items(list, item, &before, &after, key);
            }
        }
        for (i, item) in new.iter().enumerate() {
            let key = after.keys.at(i);
            if before.keys.find(key).is_none() && after.keys.find(key) == Some(i) {
                self.items(list, item, &before, &after, key);
            }
        }
    }

    /// Compares the items with one key. Several items of one key are compared as one value.
    fn items(&mut self, list: ListType<'_>, item: &Value, old: &Items<'_>, new: &Items<'_>, key: &[Option<&Value>]) {
        let mut below = Found::default();
        let (before, after) = (old.first(key), new.first(key));
        match (old.keys.count(key) > 1, new.keys.count(key) > 1) {
            (false, false) => below.compare(list.items, before, after),
            (true, true) => below.differs = !old.all(key).eq(new.all(key)),
            (true, false) => {
                if after.is_some() {
                    below.compare(list.items, None, after);
                }
                below.gone = true;
            }
            (false, true) => {
                if before.is_some() {
                    below.compare(list.items, before, None);
                }
                below.fresh = true;
            }
        }
        if let Ok(element) = list.element(item) {
            self.take(below, || element);
        }
    }
}

/// A list and what identifies its items.
struct Items<'a> {
    keys: Keys<'a>,
    list: &'a [Value],
}

impl<'a> Items<'a> {
    fn of(ty: ListType<'a>, list: &'a [Value]) -> Items<'a> {
        Items { keys: ty.keys(list), list }
    }

    fn first(&self, key: &[Option<&Value>]) -> Option<&'a Value> {
        self.keys.find(key).map(|i| &self.list[i])
    }

    fn all(&self, key: &[Option<&Value>]) -> impl Iterator<Item = &'a Value> {
        self.keys.all(key).map(|i| &self.list[i])
    }
}

/// What applying `patch` makes of `live`, before fields given up are removed.
pub fn merge(ty: Type<'_>, live: &Value, patch: &Value) -> Value {
    merged(ty, live, patch).unwrap_or_else(|| live.clone())
}

/// `None` if the live value stays as it is.
fn merged(ty: Type<'_>, live: &Value, patch: &Value) -> Option<Value> {
    if live.is(patch) {
        return None;
    }
    let leaf = || (live != patch).then(|| patch.clone());
    match ty.atom(Some(patch)) {
        Atom::Scalar(_) => leaf(),
        Atom::Map(map) if map.atomic => leaf(),
        Atom::List(list) if list.is_atomic() => leaf(),
        Atom::Map(map) => match (live, patch) {
            (Value::Map(live), Value::Map(patch)) if !live.is_empty() => merged_map(map, live, patch),
            // `null` gives up nothing: who owns no field of the object says nothing of it.
            (Value::Map(fields), Value::Null) if !fields.is_empty() => None,
            _ => leaf(),
        },
        Atom::List(list) => match (live, patch) {
            (Value::List(live), Value::List(patch)) if !live.is_empty() => merged_list(list, live, patch),
            (Value::List(items), Value::Null) if !items.is_empty() => None,
            _ => leaf(),
        },
    }
}

fn merged_map(ty: MapType<'_>, live: &Map, patch: &Map) -> Option<Value> {
    let mut out: Option<Map> = None;
    for (key, patch) in patch.iter() {
        let value = match live.get(key) {
            None => Some(patch.clone()),
            Some(live) => merged(ty.value(key).unwrap_or(Type::Deduced), live, patch),
        };
        if let Some(value) = value {
            out.get_or_insert_with(|| live.clone()).insert(key.clone(), value);
        }
    }
    out.map(Value::Map)
}

/// Items of the patch stand in the patch's order, the others stay behind those they followed.
fn merged_list(ty: ListType<'_>, live: &[Value], patch: &[Value]) -> Option<Value> {
    let (left, right) = (ty.keys(live), ty.keys(patch));
    // Where each item of one list is in the other.
    let right_of: Vec<Option<usize>> = (0..live.len()).map(|i| right.find(left.at(i))).collect();
    let left_of: Vec<Option<usize>> = (0..patch.len()).map(|i| left.find(right.at(i))).collect();
    // Items that occur twice in the live list are replaced, not merged: it is unknown which of them is meant.
    let both = |l: usize, r: usize| match left.count(left.at(l)) {
        1 => merged(ty.items, &live[l], &patch[r]).unwrap_or_else(|| live[l].clone()),
        _ => patch[r].clone(),
    };
    let mut shared = left_of.iter().enumerate().filter(|(_, l)| l.is_some()).map(|(r, _)| r);
    let mut next_shared = shared.next();
    let mut done = vec![false; patch.len()];
    let mut out = Vec::with_capacity(live.len().max(patch.len()));
    let (mut l, mut r) = (0, 0);
    while l < live.len() || r < patch.len() {
        if l < live.len() && r < patch.len() {
            if right_of[l] == Some(r) {
                done[r] = true;
                out.push(both(left_of[r].unwrap_or(l), r));
                (l, r) = (l + 1, r + 1);
                next_shared = shared.next();
                continue;
            }
            if right_of[l].is_some() && next_shared.is_some() && next_shared != right_of[l] {
                l += 1; // in both lists, but its turn comes elsewhere
                continue;
            }
        }
        if l < live.len() {
            match right_of[l] {
                None => {
                    out.push(live[l].clone());
                    l += 1;
                    continue;
                }
                Some(r) if done[r] => l += 1,
                Some(_) => {}
            }
        }
        if r < patch.len() {
            done[r] = true;
            out.push(left_of[r].map_or_else(|| patch[r].clone(), |l| both(l, r)));
            if next_shared == Some(r) {
                next_shared = shared.next();
            }
            r += 1;
        }
    }
    let same = out.len() == live.len() && out.iter().zip(live).all(|(out, live)| out.is(live) || out == live);
    (!same).then(|| Value::from(out))
}

/// The object without these paths and what lies below them.
pub fn remove(ty: Type<'_>, value: &Value, paths: &Set) -> Value {
    if paths.is_empty() {
        return value.clone();
    }
    match ty.atom(Some(value)) {
        Atom::Scalar(_) => value.clone(),
        Atom::Map(map) => match value {
            Value::Map(fields) if !map.atomic => {
                let kept = fields.iter().filter_map(|(key, value)| {
                    let value = match paths.entry(&PathElement::Field(key.clone())) {
                        None => value.clone(),
                        Some(entry) if entry.member => return None,
                        Some(entry) => remove(map.value(key).unwrap_or(Type::Deduced), value, &entry.children),
                    };
                    Some((key.clone(), value))
                });
                let kept: Map = kept.collect();
                if kept.is_empty() { Value::Null } else { Value::Map(kept) }
            }
            _ => Value::Null,
        },
        Atom::List(list) => match value {
            Value::List(items) if !list.is_atomic() => {
                let kept = items.iter().filter_map(|item| {
                    match list.element(item).ok().as_ref().and_then(|element| paths.entry(element)) {
                        None => Some(item.clone()),
                        Some(entry) if entry.member => None,
                        Some(entry) => Some(remove(list.items, item, &entry.children)),
                    }
                });
                let kept: Vec<Value> = kept.collect();
                if kept.is_empty() { Value::Null } else { kept.into() }
            }
            _ => Value::Null,
        },
    }
}

/// The set with every declared field that leads to a member made a member too.
pub fn with_named_fields(ty: Option<Type<'_>>, set: &Set) -> Set {
    let (map, list) = (ty.and_then(Type::map), ty.and_then(Type::list));
    let entries = set.entries().iter().map(|entry| {
        let (named, below) = match &entry.element {
            PathElement::Field(name) => {
                (map.is_some_and(|map| map.field(name).is_some()), map.and_then(|map| map.value(name)))
            }
            PathElement::Key(_) => (false, list.map(|list| list.items)),
            PathElement::Value(_) | PathElement::Index(_) => (false, None),
        };
        let member = entry.member || (named && !entry.children.is_empty());
        Entry { element: entry.element.clone(), member, children: with_named_fields(below, &entry.children) }
    });
    Set::from_entries(entries.collect())
}

/// The set as today's type would have it: who owned parts of what has become one value owns that value. `None` if the
/// set is fine as it is.
pub fn reconcile(ty: Type<'_>, set: &Set) -> Option<Set> {
    let (gone, fresh) = reconcile_below(ty, set)?;
    Some(set.recursive_difference(&gone).union(&fresh))
}

/// The paths to drop with everything below them, and the paths to own instead.
fn reconcile_below(ty: Type<'_>, set: &Set) -> Option<(Set, Set)> {
    let mut changed = Vec::new();
    let mut child = |entry: &Entry, ty: Type<'_>| {
        let whole = match ty.atom(None) {
            Atom::Map(map) if map.is_unknown() => return,
            Atom::Map(map) => map.atomic && !entry.children.is_empty(),
            Atom::List(list) => list.is_atomic() && !entry.children.is_empty(),
            Atom::Scalar(_) => return,
        };
        let branch = |member, children| Entry { element: entry.element.clone(), member, children };
        if whole {
            changed.push((branch(true, Set::default()), branch(true, Set::default())));
        } else if let Some((gone, fresh)) = reconcile_below(ty, &entry.children) {
            changed.push((branch(false, gone), branch(false, fresh)));
        }
    };
    match ty.atom(None) {
        Atom::Scalar(_) => {}
        Atom::Map(map) => {
            for entry in set.entries() {
                let PathElement::Field(name) = &entry.element else { continue };
                if let Some(ty) = map.value(name) {
                    child(entry, ty);
                }
            }
        }
        Atom::List(list) => set.entries().iter().for_each(|entry| child(entry, list.items)),
    }
    let (gone, fresh): (Vec<Entry>, Vec<Entry>) = changed.into_iter().unzip();
    (!gone.is_empty()).then(|| (Set::from_entries(gone), Set::from_entries(fresh)))
}
