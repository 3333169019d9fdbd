//! Objects along their types: which fields one has, what changed between two, what merging and removing makes.
//!
//! Everything skips what two objects share, and results share what did not change. Never fails on a value that does not
//! fit its type; `validate` is for saying so.

use std::cmp::Ordering;

use super::{
    fieldpath::{Entry, PathElement, Set},
    types::{Atom, Keys, ListType, MapType, Type},
};
use crate::value::{Map, Value};

/// The fields of an object.
pub fn fields(ty: Type<'_>, value: &Value) -> Set {
    let mut stack = Vec::with_capacity(32);
    collect(ty, value, &mut stack);
    Set::from_tail(&mut stack, 0)
}

/// Pushes the branches below a value; returns whether the path to it is a member itself.
fn collect(ty: Type<'_>, value: &Value, stack: &mut Vec<Entry>) -> bool {
    match (ty.atom(Some(value)), value) {
        (Atom::Scalar(_), _) => return true,
        (Atom::Map(map), _) if map.atomic => return true,
        (Atom::List(list), _) if list.is_atomic() => return true,
        (Atom::Map(map), Value::Map(fields)) => {
            let mut types = map.in_order();
            for (key, value) in fields.iter() {
                let start = stack.len();
                let (declared, ty) = types.find(key);
                let leaf = collect(ty.unwrap_or(Type::Deduced), value, stack);
                let children = Set::from_tail(stack, start);
                let empty = value.is_null() || value.as_map().is_some_and(Map::is_empty);
                let member = leaf || empty || !declared;
                if member || !children.is_empty() {
                    stack.push(Entry { element: PathElement::Field(key.clone()), member, children });
                }
            }
        }
        (Atom::List(list), Value::List(items)) => {
            let keys = list.keys(items);
            for (i, item) in items.iter().enumerate() {
                let Ok(element) = list.element(item) else { continue };
                let start = stack.len();
                // Items that occur twice are owned together, as one.
                if keys.count(keys.at(i)) == 1 {
                    collect(list.items, item, stack);
                }
                let children = Set::from_tail(stack, start);
                stack.push(Entry { element, member: true, children });
            }
        }
        (Atom::Map(_) | Atom::List(_), _) => {}
    }
    false
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
    let [removed, modified, added] = found.0.each_mut().map(|stack| Set::from_tail(stack, 0));
    Changes { removed, modified, added }
}

/// The branches of what is removed, modified and added, while they are being found.
#[derive(Default)]
struct Found([Vec<Entry>; 3]);

/// Whether the path to a value is itself removed, modified and added.
#[derive(Default)]
struct Marks {
    gone: bool,
    differs: bool,
    fresh: bool,
}

impl Found {
    /// Pushes the changes below a value.
    fn compare(&mut self, ty: Type<'_>, old: Option<&Value>, new: Option<&Value>) -> Marks {
        let mut marks = Marks::default();
        if let (Some(old), Some(new)) = (old, new)
            && old.is(new)
        {
            return marks;
        }
        let leaf = match (old, new) {
            (None, new) => self.compare_as(ty.atom(new), old, new, &mut marks),
            (old, None) => self.compare_as(ty.atom(old), old, new, &mut marks),
            (Some(_), Some(_)) => {
                let (before, after) = (ty.atom(old), ty.atom(new));
                // A value that turned from one sort into another goes as the one and comes as the other.
                if std::mem::discriminant(&before) != std::mem::discriminant(&after) {
                    self.compare_as(before, old, new, &mut marks);
                }
                self.compare_as(after, old, new, &mut marks)
            }
        };
        if !leaf {
            marks.fresh |= old.is_none();
            marks.gone |= new.is_none();
        }
        marks
    }

    /// Returns whether the value was compared as one.
    fn compare_as(&mut self, atom: Atom<'_>, old: Option<&Value>, new: Option<&Value>, marks: &mut Marks) -> bool {
        match atom {
            Atom::Scalar(_) => {}
            Atom::Map(map) => {
                let (before, after) = (old.and_then(Value::as_map), new.and_then(Value::as_map));
                let empty = before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty);
                if !map.atomic && !empty {
                    self.maps(map, before, after);
                    return false;
                }
            }
            Atom::List(list) => {
                let before = old.and_then(Value::as_list).unwrap_or_default();
                let after = new.and_then(Value::as_list).unwrap_or_default();
                let empty = before.is_empty() && after.is_empty();
                if !list.is_atomic() && !empty {
                    self.lists(list, before, after);
                    return false;
                }
            }
        }
        match (old, new) {
            (None, _) => marks.fresh = true,
            (_, None) => marks.gone = true,
            (Some(old), Some(new)) => marks.differs |= old != new,
        }
        true
    }

    fn maps(&mut self, map: MapType<'_>, old: Option<&Map>, new: Option<&Map>) {
        let (mut old, mut new) =
            (old.into_iter().flat_map(Map::iter).peekable(), new.into_iter().flat_map(Map::iter).peekable());
        let mut types = map.in_order();
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
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
            let (ty, start) = (types.find(key).1.unwrap_or(Type::Deduced), self.lengths());
            let marks = self.compare(ty, before, after);
            self.close(start, marks, || Some(PathElement::Field(key.clone())));
        }
    }

    fn lengths(&self) -> [usize; 3] {
        self.0.each_ref().map(Vec::len)
    }

    /// Hangs what was pushed since `start`, the changes below a child, into the branch of that child. What nothing
    /// identifies is nobody's.
    fn close(&mut self, start: [usize; 3], marks: Marks, element: impl FnOnce() -> Option<PathElement>) {
        let members = [marks.gone, marks.differs, marks.fresh];
        if members == [false; 3] && self.lengths() == start {
            return;
        }
        let element = element();
        for ((stack, start), member) in self.0.iter_mut().zip(start).zip(members) {
            let children = Set::from_tail(stack, start);
            if let Some(element) = element.as_ref().filter(|_| member || !children.is_empty()) {
                stack.push(Entry { element: element.clone(), member, children });
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
        let start = self.lengths();
        let (before, after) = (old.first(key), new.first(key));
        let marks = match (old.keys.count(key) > 1, new.keys.count(key) > 1) {
            (false, false) => self.compare(list.items, before, after),
            (true, true) => Marks { differs: !old.all(key).eq(new.all(key)), ..Marks::default() },
            (true, false) => {
                let marks = if after.is_some() { self.compare(list.items, None, after) } else { Marks::default() };
                Marks { gone: true, ..marks }
            }
            (false, true) => {
                let marks = if before.is_some() { self.compare(list.items, before, None) } else { Marks::default() };
                Marks { fresh: true, ..marks }
            }
        };
        self.close(start, marks, || list.element(item).ok());
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
    let (mut out, mut types): (Option<Map>, _) = (None, ty.in_order());
    for (key, patch) in patch.iter() {
        let value = match live.get(key) {
            None => Some(patch.clone()),
            Some(live) if live.is(patch) => None,
            Some(live) => merged(types.find(key).1.unwrap_or(Type::Deduced), live, patch),
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
