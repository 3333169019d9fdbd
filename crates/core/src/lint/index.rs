//! The given objects by what they are called, so that a name in one can be looked up among the others. Never judges.

use std::collections::BTreeMap;

use super::similar;
use crate::manifest::Object;

/// The namespace of an object that names none: whatever it is applied to, it is the same for all of them.
pub const UNSAID: &str = "";

/// A kind of object, whatever its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sort<'a> {
    /// The API group; `""` for the core.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
}

impl<'a> Sort<'a> {
    /// A kind of a group.
    pub const fn new(group: &'a str, kind: &'a str) -> Sort<'a> {
        Sort { group, kind }
    }
}

/// The objects of all files.
#[derive(Debug, Default)]
pub struct Index<'a> {
    objects: Vec<&'a Object>,
    /// Positions among the objects.
    by_name: BTreeMap<(Sort<'a>, &'a str), Vec<usize>>,
    by_sort: BTreeMap<Sort<'a>, Vec<&'a Object>>,
    /// Objects that have the kind, namespace and name of an earlier one, with that one.
    pub twice: Vec<(&'a Object, &'a Object)>,
}

/// What became of a name.
pub enum Found<'a> {
    /// It is there.
    Here(&'a Object),
    /// It is not, but others of its kind are; perhaps one of them is meant: its name, or its namespace.
    Missing(Option<String>),
    /// No object of its kind was given.
    NotGiven,
}

impl<'a> Index<'a> {
    /// All objects that have a name.
    pub fn new(objects: impl IntoIterator<Item = &'a Object>) -> Index<'a> {
        let mut index = Index::default();
        for object in objects {
            let sort = Sort::new(object.group(), object.kind());
            index.by_sort.entry(sort).or_default().push(object);
            if object.name().is_empty() {
                continue;
            }
            let namesakes = index.by_name.entry((sort, object.name())).or_default();
            let same = |at: &&usize| index.objects[**at].namespace() == object.namespace();
            match namesakes.iter().find(same) {
                Some(first) => index.twice.push((object, index.objects[*first])),
                None => {
                    namesakes.push(index.objects.len());
                    index.objects.push(object);
                }
            }
        }
        index
    }

    /// Every object of a kind, in file order.
    pub fn of(&self, sort: Sort<'_>) -> &[&'a Object] {
        // Shorter lifetimes of the key are fine, of the answer they are not: the map's values are looked at, not taken.
        let found = self.by_sort.iter().find(|(known, _)| known.group == sort.group && known.kind == sort.kind);
        found.map_or(&[], |(_, objects)| objects.as_slice())
    }

    /// Looks up a name in a namespace.
    pub fn find(&self, sort: Sort<'_>, namespace: &str, name: &str) -> Found<'a> {
        let namesakes = self.by_name.get(&(sort, name)).map(Vec::as_slice).unwrap_or_default();
        let fits = |exactly: bool| {
            let mut objects = namesakes.iter().map(|at| self.objects[*at]);
            objects.find(|object| match exactly {
                true => object.namespace() == namespace,
                // An object without a namespace may well be applied to the one that is meant.
                false => object.namespace() == UNSAID || namespace == UNSAID,
            })
        };
        if let Some(object) = fits(true).or_else(|| fits(false)) {
            return Found::Here(object);
        }
        let all = self.of(sort);
        if all.is_empty() {
            return Found::NotGiven;
        }
        if let Some(at) = namesakes.first() {
            return Found::Missing(Some(format!("there is one in namespace {}", self.objects[*at].namespace())));
        }
        let near = similar::nearest(name, all.iter().map(|object| object.name()));
        Found::Missing(near.map(|near| format!("did you mean {near}?")))
    }
}
