//! One object of a build, and sets of them: names and earlier names, labels and annotations, appending and selecting.
//!
//! kustomize keeps what it notes about an object in annotations of the object, where patches meet them; so do we, and
//! take them out at the end.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
};

use crate::{
    fault::{At, Fault, Res},
    ident::{Gvk, Name},
    node::{Arena, Id, Kind, Node, Style},
    path,
    schema::Schemas,
    selector::{Matcher, Selector},
};

/// The nodes and the schemas of a build, which everything works with.
pub struct World {
    pub arena: Arena,
    pub schemas: Schemas,
}

/// Labels or annotations.
pub type Texts = BTreeMap<Rc<str>, Rc<str>>;

const NOTES: &str = "internal.config.kubernetes.io/";
pub const PREVIOUS_KINDS: &str = "internal.config.kubernetes.io/previousKinds";
pub const PREVIOUS_NAMES: &str = "internal.config.kubernetes.io/previousNames";
pub const PREVIOUS_NAMESPACES: &str = "internal.config.kubernetes.io/previousNamespaces";
pub const PREFIXES: &str = "internal.config.kubernetes.io/prefixes";
pub const SUFFIXES: &str = "internal.config.kubernetes.io/suffixes";
pub const ALLOW_NAME: &str = "internal.config.kubernetes.io/allowNameChange";
pub const ALLOW_KIND: &str = "internal.config.kubernetes.io/allowKindChange";
pub const BEHAVIOR: &str = "internal.config.kubernetes.io/generatorBehavior";
pub const NEEDS_HASH: &str = "internal.config.kubernetes.io/needsHashSuffix";
pub const HELM: &str = "internal.config.kubernetes.io/helm-generated";
pub const ORIGIN: &str = "config.kubernetes.io/origin";
pub const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";
pub const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";
pub const FUNCTION: &str = "config.kubernetes.io/function";

/// What is taken out of every object at the end.
const BUILD_ANNOTATIONS: [&str; 19] = [
    PREVIOUS_KINDS,
    PREVIOUS_NAMES,
    PREFIXES,
    SUFFIXES,
    PREVIOUS_NAMESPACES,
    ALLOW_NAME,
    ALLOW_KIND,
    "internal.config.kubernetes.io/refBy",
    BEHAVIOR,
    NEEDS_HASH,
    "internal.config.kubernetes.io/path",
    "internal.config.kubernetes.io/index",
    "internal.config.kubernetes.io/seqindent",
    "internal.config.kubernetes.io/id",
    "internal.config.kubernetes.io/annotations-migration-resource-id",
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
    HELM,
];

/// One object.
#[derive(Clone, Debug)]
pub struct Object {
    /// `None` once it was deleted.
    pub root: Option<Id>,
    /// Where it was first written: a file, or the generator that makes it.
    pub at: At,
    /// The instructions that patched it, in order.
    pub patched: Vec<At>,
    /// The names of the variables that take a field of it.
    pub vars: Vec<Rc<str>>,
}

impl Object {
    pub fn new(root: Id, at: At) -> Object {
        Object { root: Some(root), at, patched: Vec::new(), vars: Vec::new() }
    }

    pub fn is_gone(&self, world: &World) -> bool {
        self.root.is_none_or(|root| world.arena.is_empty(root))
    }

    fn text(&self, world: &World, field: &str) -> Rc<str> {
        let field = self.root.and_then(|root| world.arena.field(root, field));
        field.map_or_else(|| "".into(), |(_, value)| world.arena.text(value))
    }

    fn metadata(&self, world: &World) -> Option<Id> {
        self.root.and_then(|root| world.arena.filled(root, "metadata"))
    }

    fn meta_text(&self, world: &World, field: &str) -> Rc<str> {
        let value = self.metadata(world).and_then(|metadata| world.arena.filled(metadata, field));
        value.map_or_else(|| "".into(), |value| world.arena.text(value))
    }

    pub fn kind(&self, world: &World) -> Rc<str> {
        self.text(world, "kind")
    }

    pub fn api_version(&self, world: &World) -> Rc<str> {
        self.text(world, "apiVersion")
    }

    pub fn name(&self, world: &World) -> Rc<str> {
        self.meta_text(world, "name")
    }

    pub fn namespace(&self, world: &World) -> Rc<str> {
        self.meta_text(world, "namespace")
    }

    pub fn gvk(&self, world: &World) -> Gvk {
        Gvk::parse(&self.api_version(world), &self.kind(world))
    }

    /// Its name as it is now.
    pub fn current(&self, world: &World) -> Name {
        let gvk = self.gvk(world);
        let cluster = world.schemas.is_cluster_scoped(&gvk.group, &gvk.version, &gvk.kind);
        Name { gvk, name: self.name(world), namespace: self.namespace(world), cluster }
    }

    /// The names it had, oldest first.
    pub fn previous(&self, world: &World) -> Res<Vec<Name>> {
        let Some(root) = self.root else { return Ok(Vec::new()) };
        let notes = annotation_texts(world, root, &[PREVIOUS_NAMES, PREVIOUS_NAMESPACES, PREVIOUS_KINDS]);
        let [Some(names), namespaces, kinds] = notes else { return Ok(Vec::new()) };
        let list = |text: &Option<Rc<str>>| -> Vec<Rc<str>> {
            text.as_deref().unwrap_or_default().split(',').map(Into::into).collect()
        };
        let (names, namespaces, kinds) = (list(&Some(names)), list(&namespaces), list(&kinds));
        if names.len() != namespaces.len() || names.len() != kinds.len() {
            return Err(Fault::new(format!("the annotations {NOTES}previous… do not fit each other"))
                .at(self.at)
                .remedy("remove them; they are kustomize's own notes"));
        }
        let gvk = self.gvk(world);
        let previous = names.into_iter().zip(namespaces).zip(kinds).map(|((name, namespace), kind)| Name {
            gvk: Gvk { kind, ..gvk.clone() },
            name,
            namespace,
            cluster: false,
        });
        Ok(previous.collect())
    }

    /// Its first name.
    pub fn original(&self, world: &World) -> Res<Name> {
        Ok(self.previous(world)?.into_iter().next().unwrap_or_else(|| self.current(world)))
    }

    /// Whether it has or had a name that fits.
    pub fn ever(&self, world: &World, fits: impl Fn(&Name) -> bool) -> Res<bool> {
        if self.is_gone(world) {
            return Ok(false);
        }
        Ok(fits(&self.current(world)) || self.previous(world)?.iter().any(fits))
    }

    /// Notes the present name as an earlier one.
    pub fn store_previous(&self, world: &mut World) -> Res<()> {
        let id = self.current(world);
        let namespace: Rc<str> = id.effective_namespace().into();
        self.add_note(world, PREVIOUS_NAMES, &id.name)?;
        self.add_note(world, PREVIOUS_NAMESPACES, &namespace)?;
        self.add_note(world, PREVIOUS_KINDS, &id.gvk.kind)
    }

    /// Appends to a list that is kept in an annotation.
    pub fn add_note(&self, world: &mut World, name: &str, value: &str) -> Res<()> {
        if value.is_empty() {
            return Ok(());
        }
        let Some(root) = self.root else { return Ok(()) };
        let [old] = annotation_texts(world, root, &[name]);
        let text = old.map_or_else(|| value.to_owned(), |old| format!("{old},{value}"));
        if text.len() > 1 << 16 {
            return Err(Fault::budget("an object is renamed too often").at(self.at));
        }
        set_annotation(world, root, name, &text)
    }

    pub fn notes(&self, world: &World, name: &str) -> Vec<Rc<str>> {
        let Some(root) = self.root else { return Vec::new() };
        let [text] = annotation_texts(world, root, &[name]);
        text.map_or_else(Vec::new, |text| text.split(',').map(Into::into).collect())
    }

    pub fn annotations(&self, world: &World) -> Texts {
        self.texts(world, "annotations")
    }

    pub fn labels(&self, world: &World) -> Texts {
        self.texts(world, "labels")
    }

    fn texts(&self, world: &World, field: &str) -> Texts {
        let Some(metadata) = self.metadata(world) else { return Texts::new() };
        let Some((_, value)) = world.arena.field(metadata, field) else { return Texts::new() };
        world.arena.pairs(value).map(|(key, value)| (world.arena.text(key), world.arena.text(value))).collect()
    }

    pub fn set_annotations(&self, world: &mut World, texts: &Texts) -> Res<()> {
        self.set_texts(world, "annotations", texts)
    }

    pub fn set_labels(&self, world: &mut World, texts: &Texts) -> Res<()> {
        self.set_texts(world, "labels", texts)
    }

    /// Writes labels or annotations anew, all as strings.
    fn set_texts(&self, world: &mut World, field: &str, texts: &Texts) -> Res<()> {
        let Some(root) = self.root else { return Ok(()) };
        let arena = &mut world.arena;
        let Some(metadata) = path::lookup(arena, root, &["metadata".to_owned()], Some(Kind::Map))? else {
            return Ok(());
        };
        let places: BTreeMap<Rc<str>, At> = match arena.field(metadata, field) {
            Some((_, old)) => arena.pairs(old).map(|(key, value)| (arena.text(key), arena.at(value))).collect(),
            None => BTreeMap::new(),
        };
        arena.clear(metadata, field)?;
        if texts.is_empty() {
            return Ok(());
        }
        let Some(map) = path::lookup(arena, metadata, &[field.to_owned()], Some(Kind::Map))? else { return Ok(()) };
        for (key, text) in texts {
            let at = places.get(key).copied().unwrap_or(self.at);
            let value = arena.add(Node::string(text, at));
            arena.set_field(map, key, Some(value), Style::PLAIN)?;
        }
        Ok(())
    }

    pub fn has_note(&self, world: &World, name: &str) -> bool {
        let Some(root) = self.root else { return false };
        let [text] = annotation_texts(world, root, &[name]);
        text.as_deref() == Some("enabled")
    }

    /// Sets one annotation, and writes the others anew.
    pub fn note(&self, world: &mut World, name: &str, value: &str) -> Res<()> {
        let mut texts = self.annotations(world);
        texts.insert(name.into(), value.into());
        self.set_annotations(world, &texts)
    }

    /// Sets a field of the object itself.
    pub fn set_text(&self, world: &mut World, path: &[&str], text: &str, at: At) -> Res<()> {
        let Some((last, parents)) = path.split_last() else { return Ok(()) };
        let Some(root) = self.root else { return Ok(()) };
        let value = world.arena.add(Node::scalar(text, crate::node::Tag::None, at));
        let parents: Vec<String> = parents.iter().map(|part| (*part).to_owned()).collect();
        let Some(map) = path::lookup(&mut world.arena, root, &parents, Some(Kind::Map))? else { return Ok(()) };
        world.arena.set_field(map, last, Some(value), Style::PLAIN)
    }

    pub fn set_name(&self, world: &mut World, name: &str) -> Res<()> {
        let at = self.metadata(world).and_then(|metadata| world.arena.filled(metadata, "name"));
        let at = at.map_or(self.at, |name| world.arena.at(name));
        self.set_text(world, &["metadata", "name"], name, at)
    }

    /// Sets the namespace; an empty one is dropped.
    pub fn set_namespace(&self, world: &mut World, namespace: &str) -> Res<()> {
        if !namespace.is_empty() {
            return self.set_text(world, &["metadata", "namespace"], namespace, self.at);
        }
        let metadata = self.root.and_then(|root| world.arena.field(root, "metadata"));
        match metadata {
            Some((_, metadata)) => world.arena.clear(metadata, "namespace"),
            None => Ok(()),
        }
    }

    /// Takes name, namespace, labels and annotations of another; its own labels and annotations win.
    pub fn take_metadata(&mut self, world: &mut World, other: &Object) -> Res<()> {
        let mut labels = other.labels(world);
        labels.extend(self.labels(world));
        self.set_labels(world, &labels)?;
        let (own, others) = (self.annotations(world), other.annotations(world));
        let hash = own.contains_key(NEEDS_HASH);
        let mut annotations = others.clone();
        annotations.extend(own);
        // What kustomize noted about the other holds.
        for name in BUILD_ANNOTATIONS {
            match others.get(name) {
                Some(value) => _ = annotations.insert(name.into(), value.clone()),
                None => _ = annotations.remove(name),
            }
        }
        if !hash {
            annotations.remove(NEEDS_HASH);
        }
        self.set_annotations(world, &annotations)?;
        let (name, namespace) = (other.name(world), other.namespace(world));
        self.set_name(world, &name)?;
        self.set_namespace(world, &namespace)?;
        self.vars.clone_from(&other.vars);
        Ok(())
    }

    /// What kustomize noted, to be put back after a JSON patch.
    pub fn internal_annotations(&self, world: &World) -> Texts {
        let legacy = ["config.kubernetes.io/path", "config.kubernetes.io/index", "config.k8s.io/id"];
        let mut texts = self.annotations(world);
        texts.retain(|name, _| name.starts_with(NOTES) || legacy.contains(&&**name));
        texts
    }

    /// Takes kustomize's notes out; every other annotation becomes a string.
    pub fn remove_notes(&self, world: &mut World, origin: bool, transformations: bool) -> Res<()> {
        let mut texts = self.annotations(world);
        for name in BUILD_ANNOTATIONS {
            texts.remove(name);
        }
        if !origin {
            texts.remove(ORIGIN);
        }
        if !transformations {
            texts.remove(TRANSFORMATIONS);
        }
        self.set_annotations(world, &texts)
    }

    pub fn copy(&self, world: &mut World) -> Res<Object> {
        let root = self.root.map(|root| world.arena.copy(root)).transpose()?;
        Ok(Object { root, ..self.clone() })
    }

    /// Where a field stands, or else the object.
    pub fn place(&self, world: &World, path: &[&str]) -> At {
        let mut here = self.root;
        for part in path {
            here = here.and_then(|here| world.arena.field(here, part)).map(|(_, value)| value);
        }
        here.map_or(self.at, |node| world.arena.at(node))
    }
}

fn annotation_texts<const N: usize>(world: &World, root: Id, names: &[&str; N]) -> [Option<Rc<str>>; N] {
    let arena = &world.arena;
    let annotations = arena.filled(root, "metadata").and_then(|metadata| arena.field(metadata, "annotations"));
    names.map(|name| {
        let (_, map) = annotations?;
        arena.field(map, name).map(|(_, value)| arena.text(value))
    })
}

/// Sets one annotation and leaves the others as they are.
pub fn set_annotation(world: &mut World, root: Id, name: &str, value: &str) -> Res<()> {
    set_meta(world, root, "annotations", name, value, true)
}

/// Sets one label and leaves the others as they are.
pub fn set_label(world: &mut World, root: Id, name: &str, value: &str) -> Res<()> {
    set_meta(world, root, "labels", name, value, false)
}

fn set_meta(world: &mut World, root: Id, field: &str, name: &str, value: &str, tidy: bool) -> Res<()> {
    let arena = &mut world.arena;
    let at = arena.at(root);
    let node = Node::string(value, at);
    let node = arena.add(Node { style: Style::SINGLE, ..node });
    if tidy {
        if let Some((_, metadata)) = arena.field(root, "metadata") {
            let empty = arena.field(metadata, field).filter(|(_, value)| arena.get(*value).content.is_empty());
            if empty.is_some() {
                arena.clear(metadata, field)?;
            }
        }
        if arena.field(root, "metadata").is_some_and(|(_, value)| arena.get(value).content.is_empty()) {
            arena.clear(root, "metadata")?;
        }
    }
    let path = ["metadata".to_owned(), field.to_owned()];
    let Some(map) = path::lookup(arena, root, &path, Some(Kind::Map))? else { return Ok(()) };
    arena.set_field(map, name, Some(node), Style::PLAIN)
}

/// The names that an object has and had.
pub fn all_names(world: &World, object: &Object) -> Res<Vec<Name>> {
    let mut names = object.previous(world)?;
    names.push(object.current(world));
    Ok(names)
}

fn index_names(world: &World, ever: &mut HashMap<Key, Vec<usize>>, object: &Object, index: usize) -> Res<()> {
    if object.is_gone(world) {
        return Ok(());
    }
    let keys: HashSet<Key> = all_names(world, object)?.iter().map(key).collect();
    for key in keys {
        ever.entry(key).or_default().push(index);
    }
    Ok(())
}

/// Objects in the order in which they were gathered, no two with one name.
#[derive(Clone, Debug, Default)]
pub struct Set {
    pub list: Vec<Object>,
    /// The names of the objects, while nobody changes them.
    names: Option<HashSet<Key>>,
    /// The objects by every name they have or had, as long as that holds.
    ever: Option<HashMap<Key, Vec<usize>>>,
}

type Key = (Gvk, Rc<str>, Rc<str>);

fn key(name: &Name) -> Key {
    (name.gvk.clone(), name.name.clone(), name.effective_namespace().into())
}

impl Set {
    /// The objects, to be changed.
    pub fn change(&mut self) -> &mut Vec<Object> {
        self.names = None;
        self.ever = None;
        &mut self.list
    }

    pub fn append(&mut self, world: &World, object: Object) -> Res<()> {
        let names =
            self.names.get_or_insert_with(|| self.list.iter().map(|object| key(&object.current(world))).collect());
        let name = object.current(world);
        if !names.insert(key(&name)) {
            let first = self.list.iter().find(|other| other.current(world).is_same(&name));
            let at = object.place(world, &["metadata", "name"]);
            let fault = Fault::new(format!("{} is there already", name.show())).at(at);
            let fault = match first {
                Some(first) => fault.also(first.place(world, &["metadata", "name"]), "first here"),
                None => fault,
            };
            return Err(fault.remedy("remove one of them, or give them different names or namespaces"));
        }
        if let Some(ever) = &mut self.ever {
            index_names(world, ever, &object, self.list.len())?;
        }
        self.list.push(object);
        Ok(())
    }

    pub fn append_all(&mut self, world: &World, other: Vec<Object>) -> Res<()> {
        other.into_iter().try_for_each(|object| self.append(world, object))
    }

    /// After objects were renamed or deleted: they must still have different names.
    pub fn recheck(&mut self, world: &World) -> Res<()> {
        let list: Vec<Object> =
            std::mem::take(&mut self.list).into_iter().filter(|object| !object.is_gone(world)).collect();
        self.names = None;
        self.ever = None;
        self.append_all(world, list)
    }

    pub fn drop_gone(&mut self, world: &World) {
        let before = self.list.len();
        self.list.retain(|object| !object.is_gone(world));
        if self.list.len() != before {
            self.names = None;
            self.ever = None;
        }
    }

    /// Puts a changed object back. What is known about names holds as long as its names are the same.
    pub fn put_back(&mut self, world: &World, index: usize, object: Object, before: &[Name]) -> Res<()> {
        if object.is_gone(world) || all_names(world, &object)? != before {
            self.names = None;
            self.ever = None;
        }
        self.list[index] = object;
        Ok(())
    }

    /// The objects that have or had this name.
    pub fn ever_named(&mut self, world: &World, name: &Name) -> Res<Vec<usize>> {
        world.arena.spend(1)?;
        let ever = match &mut self.ever {
            Some(ever) => ever,
            none => {
                // Reading the names of an object costs as much as some steps.
                world.arena.spend(10 * self.list.len())?;
                let mut ever = HashMap::new();
                for (index, object) in self.list.iter().enumerate() {
                    index_names(world, &mut ever, object, index)?;
                }
                none.insert(ever)
            }
        };
        Ok(ever.get(&key(name)).cloned().unwrap_or_default())
    }

    /// The objects that a target selects.
    pub fn select(&self, world: &World, selector: &Selector) -> Res<Vec<usize>> {
        let matcher = Matcher::new(selector)?;
        world.arena.spend(20 * self.list.len())?;
        let mut found = Vec::new();
        for (index, object) in self.list.iter().enumerate() {
            let (current, original) = (object.current(world), object.original(world)?);
            let fits = (matcher.has_namespace(original.effective_namespace())
                || matcher.has_namespace(current.effective_namespace()))
                && (matcher.has_name(&original.name) || matcher.has_name(&current.name))
                && matcher.has_kind(&current.gvk)
                && matcher.labels.matches(&object.labels(world))
                && matcher.annotations.matches(&object.annotations(world));
            if fits {
                found.push(index);
            }
        }
        Ok(found)
    }
}

/// Checks what every object must have.
pub fn check_object(world: &World, root: Id) -> Res<()> {
    let arena = &world.arena;
    let node = arena.get(root);
    let says_something = |name| arena.filled(root, name).is_some();
    let metadata = arena.filled(root, "metadata");
    let meta = metadata.is_some_and(|metadata| {
        ["name", "namespace", "labels", "annotations"].iter().any(|name| arena.filled(metadata, name).is_some())
    });
    if node.kind != Kind::Map || !(says_something("apiVersion") || says_something("kind") || meta) {
        return Err(Fault::new("this is no Kubernetes object: it has neither kind nor metadata")
            .at(node.at)
            .remedy("list only files with objects under resources"));
    }
    let kind = arena.filled(root, "kind").map(|kind| arena.text(kind)).unwrap_or_default();
    if kind.is_empty() {
        return Err(Fault::new("the object has no kind").at(node.at).remedy("add apiVersion and kind"));
    }
    let name =
        metadata.and_then(|metadata| arena.filled(metadata, "name")).map(|name| arena.text(name)).unwrap_or_default();
    if name.is_empty() && !kind.ends_with("List") {
        let at = arena.field(root, "metadata").map_or(node.at, |(key, _)| arena.at(key));
        return Err(Fault::new(format!("the {kind} has no metadata.name"))
            .at(at)
            .remedy("give it a name; kustomize does not know generateName"));
    }
    Ok(())
}
