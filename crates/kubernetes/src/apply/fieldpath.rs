//! Sets of field paths: what a manager owns.
//!
//! A [`Set`] is a tree of sorted entries, shared node by node, so that a write copies only the branch whose ownership
//! changed. Order and JSON form are those of `FieldsV1`. Never looks at an object; see [`typed`](super::typed) for that.

use std::{cmp::Ordering, fmt, sync::Arc};

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    status::go_quoted,
    value::{Map, Text, Value, intern},
};

/// One step of a path.
#[derive(Clone, PartialEq)]
pub enum PathElement {
    /// A field of an object: `f:`.
    Field(Text),
    /// The list item with these key fields, sorted by name: `k:`.
    Key(Arc<Vec<(Text, Value)>>),
    /// The item of a set: `v:`.
    Value(Value),
    /// The item at this place: `i:`.
    Index(i64),
}

/// A path from the object's root.
pub type Path = Vec<PathElement>;

impl PathElement {
    /// A field.
    pub fn field(name: &str) -> PathElement {
        PathElement::Field(intern(name))
    }

    /// The item with these keys.
    pub fn key(mut fields: Vec<(Text, Value)>) -> PathElement {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        PathElement::Key(Arc::new(fields))
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }

    /// Reads the key of a `FieldsV1` object; `None` for a kind of element nobody knows yet, which is dropped.
    fn parse(text: &str) -> Result<Option<PathElement>, String> {
        let (kind, rest) = match text.as_bytes() {
            [kind, b':', ..] => (*kind, &text[2..]),
            [_, _, ..] => return Err(format!("missing colon: {text}")),
            _ => return Err("key must be 2 characters long:".into()),
        };
        let json = |text: &str| Value::from_json(text.as_bytes()).map_err(|e| e.to_string());
        Ok(Some(match kind {
            b'f' => PathElement::Field(intern(rest)),
            b'v' => PathElement::Value(json(rest)?),
            b'k' => match json(rest)? {
                Value::Map(map) => {
                    PathElement::Key(Arc::new(map.iter().map(|(k, v)| (k.clone(), v.clone())).collect()))
                }
                _ => return Err(format!("expected the key fields of an item: {text}")),
            },
            b'i' => PathElement::Index(rest.parse().map_err(|_| format!("expected an index: {text}"))?),
            _ => return Ok(None),
        }))
    }

    /// The key of a `FieldsV1` object.
    fn wire(&self) -> Wire<'_> {
        Wire(self)
    }
}

/// Prints the key of a `FieldsV1` object.
struct Wire<'a>(&'a PathElement);

impl fmt::Display for Wire<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            PathElement::Field(name) => {
                f.write_str("f:")?;
                f.write_str(name)
            }
            PathElement::Key(fields) => {
                f.write_str("k:{")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    f.write_str(if i > 0 { ",\"" } else { "\"" })?;
                    f.write_str(name)?;
                    f.write_str("\":")?;
                    write_json(value, f)?;
                }
                f.write_str("}")
            }
            PathElement::Value(value) => {
                f.write_str("v:")?;
                write_json(value, f)
            }
            PathElement::Index(i) => write!(f, "i:{i}"),
        }
    }
}

impl Serialize for Wire<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// JSON as Go writes it by default: `<`, `>` and `&` are escaped, which matters here because the text is itself a key.
pub(super) fn write_json(value: &Value, out: &mut impl fmt::Write) -> fmt::Result {
    let plain = |c: char| c >= ' ' && !matches!(c, '"' | '\\' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{7f}');
    match value {
        Value::Str(text) if text.chars().all(plain) => {
            out.write_char('"')?;
            out.write_str(text)?;
            out.write_char('"')
        }
        Value::Int(n) => write!(out, "{n}"),
        other => other.to_json().chars().try_for_each(|c| match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => write!(out, "\\u{:04x}", c as u32),
            c => out.write_char(c),
        }),
    }
}

impl Eq for PathElement {}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &PathElement) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &PathElement) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => {
                compare_lists(a.iter(), b.iter(), |a, b| a.0.cmp(&b.0).then_with(|| compare_values(&a.1, &b.1)))
            }
            (PathElement::Value(a), PathElement::Value(b)) => compare_values(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

/// A total order of values: numbers, strings, booleans, lists, maps, null.
pub(super) fn compare_values(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Int(_) | Value::Float(_) => 0,
        Value::Str(_) => 1,
        Value::Bool(_) => 2,
        Value::List(_) => 3,
        Value::Map(_) => 4,
        Value::Null => 5,
    };
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            let number = |value: &Value| value.as_float().unwrap_or_default();
            number(a).partial_cmp(&number(b)).unwrap_or(Ordering::Equal)
        }
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::List(a), Value::List(b)) => compare_lists(a.iter(), b.iter(), compare_values),
        (Value::Map(a), Value::Map(b)) => {
            compare_lists(a.iter(), b.iter(), |a, b| a.0.cmp(b.0).then_with(|| compare_values(a.1, b.1)))
        }
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

/// Lexical order; the shorter of two lists that agree comes first.
fn compare_lists<T>(
    mut a: impl Iterator<Item = T>,
    mut b: impl Iterator<Item = T>,
    compare: impl Fn(T, T) -> Ordering,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match compare(a, b) {
                Ordering::Equal => {}
                unequal => return unequal,
            },
        }
    }
}

impl fmt::Display for PathElement {
    /// As upstream prints a path: `.spec`, `[name="web"]`, `[="a"]`, `[0]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
                write!(f, "[{}]", fields.join(","))
            }
            PathElement::Value(value) => write!(f, "[={}]", shown(value)),
            PathElement::Index(i) => write!(f, "[{i}]"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Str(text) => go_quoted(text),
        Value::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Value::Map(map) => map.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => value.to_json(),
    }
}

impl fmt::Debug for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A set of paths. Cloning shares.
#[derive(Clone, Default)]
pub struct Set(Option<Arc<[Entry]>>);

/// A branch of a [`Set`].
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// The step from the parent.
    pub element: PathElement,
    /// Whether the path that ends here is in the set.
    pub member: bool,
    /// The paths that go on from here.
    pub children: Set,
}

impl Set {
    /// The set of these paths.
    pub fn of(paths: impl IntoIterator<Item = Path>) -> Set {
        let mut set = Set::default();
        paths.into_iter().for_each(|path| set.insert(&path));
        set
    }

    /// The set of these paths of fields, written `metadata.name`.
    pub fn of_fields(paths: &[&str]) -> Set {
        Set::of(paths.iter().map(|path| path.split('.').map(PathElement::field).collect()))
    }

    /// A set of these entries, in any order. Entries that are no member and lead nowhere must not be among them.
    pub(super) fn from_entries(mut entries: Vec<Entry>) -> Set {
        if entries.is_empty() {
            return Set(None);
        }
        if !entries.is_sorted_by(|a, b| a.element < b.element) {
            entries.sort_by(|a, b| a.element.cmp(&b.element));
            entries.dedup_by(|later, first| {
                let same = later.element == first.element;
                if same {
                    first.member |= later.member;
                    first.children = first.children.union(&later.children);
                }
                same
            });
        }
        Set(Some(entries.into()))
    }

    /// Takes what was pushed to a stack since it was this long, as [`from_entries`](Set::from_entries) does. One
    /// allocation for each set of a tree.
    pub(super) fn from_tail(stack: &mut Vec<Entry>, start: usize) -> Set {
        match &stack[start..] {
            [] => Set(None),
            tail if tail.is_sorted_by(|a, b| a.element < b.element) => Set(Some(stack.drain(start..).collect())),
            _ => Set::from_entries(stack.split_off(start)),
        }
    }

    /// The branches in order.
    pub(super) fn entries(&self) -> &[Entry] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// How many paths are in the set.
    pub fn len(&self) -> usize {
        self.entries().iter().map(|entry| usize::from(entry.member) + entry.children.len()).sum()
    }

    /// Whether both are the very same shared set. `true` implies equality.
    pub fn is(&self, other: &Set) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.entries().binary_search_by(|entry| entry.element.cmp(element))
    }

    pub(super) fn entry(&self, element: &PathElement) -> Option<&Entry> {
        self.find(element).ok().map(|at| &self.entries()[at])
    }

    /// Whether the path is in the set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.entry(last).is_some_and(|entry| entry.member),
            [first, rest @ ..] => self.entry(first).is_some_and(|entry| entry.children.has(rest)),
        }
    }

    /// The paths that go on from the field at this path, from there; `None` if none does.
    pub fn below(&self, fields: &[&str]) -> Option<&Set> {
        let Some((first, rest)) = fields.split_first() else { return Some(self).filter(|set| !set.is_empty()) };
        self.entry(&PathElement::field(first))?.children.below(rest)
    }

    /// Adds a path. The empty path, the whole object, is owned by nobody.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let mut entries = self.entries().to_vec();
        let at = self.find(first).unwrap_or_else(|at| {
            entries.insert(at, Entry { element: first.clone(), member: false, children: Set::default() });
            at
        });
        match rest {
            [] => entries[at].member = true,
            rest => entries[at].children.insert(rest),
        }
        *self = Set(Some(entries.into()));
    }

    /// Calls `visit` with each path: the members of a branch first, then what lies deeper, as upstream walks.
    pub fn each(&self, visit: &mut impl FnMut(&[PathElement])) {
        self.each_below(&mut Vec::new(), visit);
    }

    fn each_below(&self, path: &mut Path, visit: &mut impl FnMut(&[PathElement])) {
        for entry in self.entries().iter().filter(|entry| entry.member) {
            path.push(entry.element.clone());
            visit(path);
            path.pop();
        }
        for entry in self.entries().iter().filter(|entry| !entry.children.is_empty()) {
            path.push(entry.element.clone());
            entry.children.each_below(path, visit);
            path.pop();
        }
    }

    /// The paths in either.
    pub fn union(&self, other: &Set) -> Set {
        if other.is_empty() || self.is(other) {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        let mut out = Vec::with_capacity(self.entries().len().max(other.entries().len()));
        // Whether the result is this very set so far: then it stays shared.
        let mut mine = true;
        zip(self.entries(), other.entries(), |pair| match pair {
            Pair::Left(a) => out.push(a.clone()),
            Pair::Right(b) => {
                mine = false;
                out.push(b.clone());
            }
            Pair::Both(a, b) => {
                let children = a.children.union(&b.children);
                mine &= children.is(&a.children) && (a.member || !b.member);
                out.push(Entry { element: a.element.clone(), member: a.member || b.member, children });
            }
        });
        if mine { self.clone() } else { Set(Some(out.into())) }
    }

    /// The paths in both.
    pub fn intersection(&self, other: &Set) -> Set {
        if self.is_empty() || other.is_empty() {
            return Set::default();
        }
        if self.is(other) {
            return self.clone();
        }
        let mut out = Vec::new();
        zip(self.entries(), other.entries(), |pair| {
            if let Pair::Both(a, b) = pair {
                let (member, children) = (a.member && b.member, a.children.intersection(&b.children));
                if member || !children.is_empty() {
                    out.push(Entry { element: a.element.clone(), member, children });
                }
            }
        });
        Set::from_entries(out)
    }

    /// The paths in this and not in `other`. A path of `other` does not take what lies below it along.
    pub fn difference(&self, other: &Set) -> Set {
        self.minus(other, |a, b| (a.member && !b.member, a.children.difference(&b.children)))
    }

    /// The paths in this that are neither in `other` nor below a path of `other`.
    pub fn recursive_difference(&self, other: &Set) -> Set {
        self.minus(other, |a, b| match b.member {
            true => (false, Set::default()),
            false => (a.member, a.children.recursive_difference(&b.children)),
        })
    }

    fn minus(&self, other: &Set, left: impl Fn(&Entry, &Entry) -> (bool, Set)) -> Set {
        if self.is_empty() || other.is_empty() {
            return self.clone();
        }
        let mut out: Option<Vec<Entry>> = None; // made at the first change; until then the set stays shared
        let mut kept = 0;
        zip(self.entries(), other.entries(), |pair| match pair {
            Pair::Left(a) => match &mut out {
                Some(out) => out.push(a.clone()),
                None => kept += 1,
            },
            Pair::Right(_) => {}
            Pair::Both(a, b) => {
                let (member, children) = left(a, b);
                if out.is_none() && member == a.member && children.is(&a.children) {
                    kept += 1;
                    return;
                }
                let out = out.get_or_insert_with(|| self.entries()[..kept].to_vec());
                if member || !children.is_empty() {
                    out.push(Entry { element: a.element.clone(), member, children });
                }
            }
        });
        out.map_or_else(|| self.clone(), Set::from_entries)
    }

    /// Reads `FieldsV1`. An error says what is wrong.
    pub fn parse(wire: &Value) -> Result<Set, String> {
        let map = match wire {
            Value::Map(map) => map,
            Value::Null => return Ok(Set::default()),
            other => return Err(format!("expected the fields of a set, found a {}", other.type_name())),
        };
        let mut entries = Vec::with_capacity(map.len());
        for (key, value) in map.iter().filter(|(key, _)| *key != ".") {
            let Some(element) = PathElement::parse(key)? else { continue };
            let children = Set::parse(value)?;
            let member = children.is_empty() || value.get(".").is_some();
            entries.push(Entry { element, member, children });
        }
        Ok(Set::from_entries(entries))
    }

    /// `FieldsV1`.
    pub fn to_value(&self) -> Value {
        Value::Map(self.to_map(false))
    }

    fn to_map(&self, member: bool) -> Map {
        let own = member.then(|| (Text::from("."), Value::object()));
        let children = self.entries().iter().map(|entry| {
            let key = Text::from(entry.element.wire().to_string());
            (key, Value::Map(entry.children.to_map(entry.member && !entry.children.is_empty())))
        });
        own.into_iter().chain(children).collect()
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Set) -> bool {
        self.is(other) || self.entries() == other.entries()
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).unwrap_or_default())
    }
}

impl Serialize for Set {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Node(self, false).serialize(serializer)
    }
}

/// A set as an object of `FieldsV1`, and whether the path that leads to it is a member too.
struct Node<'a>(&'a Set, bool);

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Node(set, member) = self;
        let own = *member && !set.is_empty();
        let mut out = serializer.serialize_map(Some(set.entries().len() + usize::from(own)))?;
        if own {
            out.serialize_entry(".", &Node(&Set::default(), false))?;
        }
        for entry in set.entries() {
            out.serialize_entry(&entry.element.wire(), &Node(&entry.children, entry.member))?;
        }
        out.end()
    }
}

enum Pair<'a> {
    Left(&'a Entry),
    Right(&'a Entry),
    Both(&'a Entry, &'a Entry),
}

/// Walks two sorted lists together.
fn zip<'a>(a: &'a [Entry], b: &'a [Entry], mut visit: impl FnMut(Pair<'a>)) {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        let order = match (a.peek(), b.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(x), Some(y)) => x.element.cmp(&y.element),
        };
        let left = if order.is_le() { a.next() } else { None };
        let right = if order.is_ge() { b.next() } else { None };
        match (left, right) {
            (Some(x), Some(y)) => visit(Pair::Both(x, y)),
            (Some(x), None) => visit(Pair::Left(x)),
            (None, Some(y)) => visit(Pair::Right(y)),
            (None, None) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn element() -> impl Strategy<Value = PathElement> {
        let scalar = || {
            prop_oneof![
                (-2i64..3).prop_map(Value::Int),
                "[ab<]{0,2}".prop_map(Value::from),
                any::<bool>().prop_map(Value::Bool),
                Just(Value::Float(1.5)),
            ]
        };
        prop_oneof![
            4 => "[abc]{1,2}".prop_map(|name| PathElement::field(&name)),
            2 => (scalar(), proptest::option::of(scalar())).prop_map(|(a, b)| {
                PathElement::key([(intern("a"), Some(a)), (intern("b"), b)].into_iter().filter_map(|(k, v)| Some((k, v?))).collect())
            }),
            1 => scalar().prop_map(PathElement::Value),
            1 => (0i64..3).prop_map(PathElement::Index),
        ]
    }

    fn set() -> impl Strategy<Value = Set> {
        proptest::collection::vec(proptest::collection::vec(element(), 1..4), 0..12).prop_map(Set::of)
    }

    fn paths(set: &Set) -> Vec<Path> {
        let mut out = Vec::new();
        set.each(&mut |path| out.push(path.to_vec()));
        out.sort();
        out
    }

    /// Paths of a set that satisfy `keep`, by brute force.
    fn filtered(set: &Set, keep: impl Fn(&[PathElement]) -> bool) -> Vec<Path> {
        paths(set).into_iter().filter(|path| keep(path)).collect()
    }

    proptest! {
        #[test]
        fn set_algebra_is_that_of_sets_of_paths(a in set(), b in set()) {
            let mut either = paths(&a);
            either.extend(paths(&b));
            either.sort();
            either.dedup();
            prop_assert_eq!(paths(&a.union(&b)), either);
            prop_assert_eq!(paths(&a.intersection(&b)), filtered(&a, |path| b.has(path)));
            prop_assert_eq!(paths(&a.difference(&b)), filtered(&a, |path| !b.has(path)));
            let outside = |path: &[PathElement]| (1..=path.len()).all(|n| !b.has(&path[..n]));
            prop_assert_eq!(paths(&a.recursive_difference(&b)), filtered(&a, outside));
            prop_assert_eq!(a.union(&b).len(), paths(&a.union(&b)).len());
        }

        #[test]
        fn sets_are_equal_however_they_were_made(a in set(), b in set()) {
            prop_assert_eq!(a.union(&b), b.union(&a));
            prop_assert_eq!(a.intersection(&b), b.intersection(&a));
            prop_assert_eq!(&a.difference(&b).union(&a.intersection(&b)), &a);
            prop_assert_eq!(Set::of(paths(&a)), a.clone());
            prop_assert!(a.difference(&a).is_empty());
            prop_assert!(a.union(&a.intersection(&b)).is(&a), "nothing new, so nothing copied");
        }

        #[test]
        fn fields_v1_round_trips(a in set()) {
            let wire = a.to_value();
            prop_assert_eq!(Set::parse(&wire).unwrap(), a.clone());
            prop_assert_eq!(serde_json::from_str::<Value>(&serde_json::to_string(&a).unwrap()).unwrap(), wire);
        }
    }

    #[test]
    fn fields_v1_reads_and_writes_as_upstream() {
        let rows = [
            (r#"{"f:a":{}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:b":{},"f:a":{"f:c":{},".":{}}}"#, r#"{"f:a":{".":{},"f:c":{}},"f:b":{}}"#),
            (
                r#"{"v:\"b\"":{},"i:1":{},"k:{\"port\":80,\"name\":\"x\"}":{},"v:1":{},"f:z":{}}"#,
                r#"{"f:z":{},"k:{\"name\":\"x\",\"port\":80}":{},"v:1":{},"v:\"b\"":{},"i:1":{}}"#,
            ),
            (r#"{"f:a":{"q:unknown":{}}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":null,".":{}}"#, r#"{"f:a":{}}"#),
            (r#"{"v:\"<\"":{}}"#, r#"{"v:\"\\u003c\"":{}}"#),
        ];
        for (wire, written) in rows {
            let set = Set::parse(&Value::from_json(wire.as_bytes()).unwrap()).unwrap();
            assert_eq!(serde_json::to_string(&set).unwrap(), written, "{wire}");
        }
        for wire in [r#"{"f":{}}"#, r#"{"f-a":{}}"#, r#"{"i:x":{}}"#, r#"{"v:{":{}}"#, r#"{"k:[]":{}}"#, r#"{"f:a":1}"#]
        {
            assert!(Set::parse(&Value::from_json(wire.as_bytes()).unwrap()).is_err(), "{wire}");
        }
    }

    #[test]
    fn paths_print_as_in_conflicts() {
        let wire =
            crate::value!({"f:a": {".": {}, "k:{\"n\":\"x\\\"y\",\"p\":1}": {"f:b": {}}, "v:true": {}, "i:3": {}}});
        let mut lines = Vec::new();
        Set::parse(&wire)
            .unwrap()
            .each(&mut |path| lines.push(path.iter().map(ToString::to_string).collect::<String>()));
        assert_eq!(lines, [".a", ".a[=true]", ".a[3]", ".a[n=\"x\\\"y\",p=1].b"]);
    }

    #[test]
    fn a_branch_is_small() {
        assert_eq!(size_of::<PathElement>(), 16);
        assert_eq!(size_of::<Entry>(), 40);
    }
}
