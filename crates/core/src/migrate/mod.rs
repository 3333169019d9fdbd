//! What other tools keep in a cluster, as objects of ours: Argo CD's Applications and Flux's Kustomizations as GitSources, a
//! Deployment as a Rollout and back, and what differs where Argo Rollouts' controller is replaced.
//!
//! Never guesses: a field is carried over, or it is what a GitSource does anyway, or a [`Note`] names it with its place and with
//! what to do about it. The tables of fields ([`fields`]) are complete: what they do not list is named, too.

pub mod argo_rollouts;
pub mod argocd;
pub mod deployment;
pub mod expand;
pub mod fields;
pub mod fight;
pub mod flux;
pub mod report;
mod tool;
mod url;

pub use tool::Tool;

use crate::{
    api::{self, GitSource, constants},
    kubernetes::{names, value::Value},
    manifest::{
        Object,
        place::{Position, Step},
    },
    model::parse,
    value,
};

/// Where an object comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A file: notes name lines of it.
    File,
    /// A cluster: notes name the object alone.
    Cluster,
}

/// What is chosen for all GitSources.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// The ServiceAccount in whose name objects are written, where the other tool names none.
    pub service_account: String,
    /// The namespace of the GitSources; by default that in which the other tool writes.
    pub namespace: Option<String>,
    /// What the other tool calls the cluster that the GitSources are for, beside its own.
    pub destinations: Vec<String>,
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Both tools write the same objects.
    Conflict,
    /// A GitSource does not do this.
    NoEquivalent,
    /// Something is needed that a migration cannot write.
    ToDo,
    /// It is done, but in another way.
    Differs,
}

/// Something that a person must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// How much it matters.
    pub weight: Weight,
    /// The file and the position in it, unless the object is from a cluster.
    pub at: Option<(String, Position)>,
    /// The object, as people call it: `Application argocd/shop`.
    pub object: String,
    /// The field; empty if the whole object is meant.
    pub field: String,
    /// What is so.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// An object of another tool as it is migrated, and where it ends up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The GitSources that take its place, by namespace and name.
    pub sources: Vec<(String, String)>,
}

/// What a migration comes to.
#[derive(Debug, Clone, Default)]
pub struct Migration {
    /// The GitSources.
    pub sources: Vec<Value>,
    /// What must be known, in the order of the objects.
    pub notes: Vec<Note>,
    /// What they take the place of.
    pub taken: Vec<Taken>,
    /// How many objects of the other tool were read.
    pub read: usize,
}

impl Migration {
    /// How many notes are of this weight.
    pub fn count(&self, weight: Weight) -> usize {
        self.notes.iter().filter(|note| note.weight == weight).count()
    }
}

/// An object of another tool: what it says, and where that stands.
#[derive(Debug, Clone)]
pub struct Subject<'o> {
    /// What it says. It can be made from a template, so that it says more than the file.
    pub value: Value,
    /// The object that was read.
    pub object: &'o Object,
    /// Below which path of that object this one stands.
    pub prefix: Vec<Step<'static>>,
    /// Where the object was read.
    pub origin: Origin,
}

impl<'o> Subject<'o> {
    /// An object as it was read.
    pub fn of(object: &'o Object, origin: Origin) -> Subject<'o> {
        Subject { value: object.value.clone(), object, prefix: Vec::new(), origin }
    }

    fn text(&self, path: &[&str]) -> &str {
        self.value.str_at(path).unwrap_or_default()
    }

    fn is_set(&self, path: &[&str]) -> bool {
        self.value.at(path) == Some(&Value::Bool(true))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.text(&["metadata", "name"])
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        self.text(&["metadata", "namespace"])
    }

    /// As people call it.
    pub fn called(&self) -> String {
        let kind = self.value.str_at(&["kind"]).unwrap_or_else(|| self.object.kind());
        match self.namespace() {
            "" => format!("{kind} {}", self.name()),
            namespace => format!("{kind} {namespace}/{}", self.name()),
        }
    }

    /// A note about all of it.
    pub fn said(&self, weight: Weight, what: impl Into<String>, remedy: impl Into<String>) -> Note {
        self.note(weight, &[], what, remedy)
    }

    /// A note about one of its fields.
    fn note(&self, weight: Weight, steps: &[Step<'_>], what: impl Into<String>, remedy: impl Into<String>) -> Note {
        let whole = [Step::Key("metadata"), Step::Key("name")];
        let place = if steps.is_empty() { &whole[..] } else { steps };
        let at = (self.origin == Origin::File).then(|| {
            let steps = self.prefix.iter().copied().chain(place.iter().copied());
            (self.object.source.name.clone(), self.object.position(steps))
        });
        let field = crate::lint::path_of(steps).to_string();
        Note { weight, at, object: self.called(), field, what: what.into(), remedy: remedy.into() }
    }
}

/// A GitSource while it is put together.
struct Draft {
    spec: Value,
    namespace: String,
    name: String,
}

impl Draft {
    fn new(namespace: &str, name: &str) -> Draft {
        Draft { spec: Value::object(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    fn set(&mut self, path: &[&str], value: impl Into<Value>) {
        self.spec.set_at(path, value);
    }

    /// Sets the folder as a GitSource has it.
    fn path(&mut self, given: &str) {
        let path = plain_path(given);
        if !path.is_empty() {
            self.set(&["path"], path);
        }
    }

    /// The object, if a GitSource can be like this; what stands against it is noted.
    fn close(self, subject: &Subject<'_>, notes: &mut Vec<Note>) -> Option<Value> {
        let mut wrong: Vec<(String, String)> = Vec::new();
        let checked = [
            ("name", &self.name, names::dns_subdomain(&self.name)),
            ("namespace", &self.namespace, names::dns_label(&self.namespace)),
        ];
        for (what, name, why) in checked {
            if let Some(why) = why.first() {
                wrong
                    .push((format!("{what} {name:?}: {why}"), "rename it, or write this GitSource by hand".to_owned()));
            }
        }
        let mut object = value!({
            "apiVersion": format!("{}/v1alpha1", constants::TIDEGATE_GROUP), "kind": constants::kind::GIT_SOURCE,
            "metadata": {},
        });
        object.set_at(&["metadata", "name"], self.name.as_str());
        object.set_at(&["metadata", "namespace"], self.namespace.as_str());
        object.set_at(&["spec"], self.spec);
        let read = api::read::<GitSource>(&object);
        let parsed = parse::git_source(&read.object);
        wrong.extend(
            parsed.problems.into_iter().map(|problem| (format!("{}: {}", problem.path, problem.what), problem.remedy)),
        );
        for (what, remedy) in &wrong {
            let what = format!("no GitSource is written for it, because it would not be valid: {what}");
            notes.push(subject.note(Weight::NoEquivalent, &[], what, remedy));
        }
        wrong.is_empty().then_some(object)
    }
}

/// A folder without `./` before it and slashes around it; nothing for the root.
fn plain_path(given: &str) -> String {
    let parts = given.split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.collect::<Vec<_>>().join("/")
}

/// The kinds and namespaces that a source must be allowed beyond what it may bring anyway, from what the other tool has in its
/// inventory.
fn allowance(draft: &mut Draft, target: &str, inventory: &[Entry]) {
    let kinds: std::collections::BTreeSet<String> = inventory.iter().map(Entry::pattern).collect();
    let must_be_named = inventory.iter().any(Entry::must_be_named);
    if must_be_named {
        draft.set(&["allow", "kinds"], Value::list(kinds.into_iter().map(Value::from)));
    }
    let own = [draft.namespace.clone(), target.to_owned()];
    let others = inventory.iter().map(|entry| &entry.namespace).filter(|name| !name.is_empty() && !own.contains(name));
    let others: std::collections::BTreeSet<String> = others.cloned().collect();
    if !others.is_empty() {
        let all = own.into_iter().filter(|name| !name.is_empty()).chain(others);
        let all: std::collections::BTreeSet<String> = all.collect();
        draft.set(&["allow", "namespaces"], Value::list(all.into_iter().map(Value::from)));
    }
}

/// An object that the other tool says it has written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Entry {
    /// As `spec.allow.kinds` has it.
    fn pattern(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// Whether a source brings it only if its kind is named.
    fn must_be_named(&self) -> bool {
        self.namespace.is_empty() || crate::sync::allow::grants(&self.group, &self.kind)
    }
}

#[cfg(test)]
mod tests;
