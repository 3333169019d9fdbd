//! References to names: at the very end of a build, what names an object that was renamed gets its new name.

use std::{
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use crate::{
    config::{self, Config, FieldSpec},
    fault::{At, Fault, Res},
    ident::{Gvk, NO_NAMESPACE, Name},
    node::{Arena, Id, Kind, Node, Style, Tag},
    object::{Object, PREFIXES, SUFFIXES, World},
};

/// What there is to know about an object that may be named.
struct Candidate {
    name: Rc<str>,
    namespace: Rc<str>,
    current: Name,
    previous: Vec<Name>,
    original_namespace: Rc<str>,
    prefixes: Vec<Rc<str>>,
    suffixes: Vec<Rc<str>>,
    is_account: bool,
}

struct Candidates {
    all: Vec<Candidate>,
    by_previous_name: HashMap<Rc<str>, Vec<usize>>,
    original_namespaces: HashMap<Rc<str>, Vec<usize>>,
}

/// Fixes all references in a set of objects.
pub fn fix(world: &mut World, objects: &[Object], config: &Config) -> Res<()> {
    let mut all = Vec::with_capacity(objects.len());
    let mut by_previous_name: HashMap<Rc<str>, Vec<usize>> = HashMap::new();
    let mut original_namespaces: HashMap<Rc<str>, Vec<usize>> = HashMap::new();
    let mut originals = Vec::with_capacity(objects.len());
    for (index, object) in objects.iter().enumerate() {
        let previous = object.previous(world)?;
        let current = object.current(world);
        let original = previous.first().cloned().unwrap_or_else(|| current.clone());
        let names: BTreeSet<Rc<str>> = previous.iter().map(|name| name.name.clone()).collect();
        for name in names {
            by_previous_name.entry(name).or_default().push(index);
        }
        let original_namespace: Rc<str> = original.effective_namespace().into();
        if &*original_namespace != NO_NAMESPACE {
            original_namespaces.entry(original_namespace.clone()).or_default().push(index);
        }
        originals.push(original.gvk);
        all.push(Candidate {
            name: object.name(world),
            namespace: object.namespace(world),
            is_account: &*current.gvk.kind == "ServiceAccount",
            previous,
            original_namespace,
            prefixes: object.notes(world, PREFIXES),
            suffixes: object.notes(world, SUFFIXES),
            current,
        });
    }
    if by_previous_name.is_empty() {
        return Ok(());
    }
    let candidates = Candidates { all, by_previous_name, original_namespaces };
    let mut rows: HashMap<Gvk, Vec<(&Gvk, &FieldSpec)>> = HashMap::new();
    for (index, object) in objects.iter().enumerate() {
        let Some(root) = object.root else { continue };
        let rows = rows.entry(originals[index].clone()).or_insert_with(|| {
            let rows = config.names.iter().flat_map(|row| row.fields.iter().map(move |field| (&row.target, field)));
            rows.filter(|(_, field)| originals[index].is_selected_by(&field.gvk)).collect()
        });
        if rows.is_empty() {
            continue;
        }
        let subject_namespaces = subject_namespaces(world, object)?;
        let referrer = Referrer { candidates: &candidates, index, subject_namespaces, role: role(world, root) };
        for (target, field) in rows.iter() {
            let any = FieldSpec {
                gvk: Gvk::default(),
                path: field.path.clone(),
                create: false,
                at: field.at,
                create_at: field.at,
            };
            let reference = Reference { referrer: &referrer, target, path: &field.path };
            config::walk(&mut world.arena, root, &any, None, &mut |arena, node| reference.set(arena, node))?;
        }
    }
    Ok(())
}

/// The namespaces of the accounts that a role binding names.
fn subject_namespaces(world: &World, object: &Object) -> Res<BTreeSet<Rc<str>>> {
    let mut found = BTreeSet::new();
    let Some(root) = object.root else { return Ok(found) };
    if &*object.kind(world) != "RoleBinding" {
        return Ok(found);
    }
    let arena = &world.arena;
    let Some(list) = arena.filled(root, "subjects").filter(|list| arena.get(*list).kind == Kind::List) else {
        return Ok(found);
    };
    for subject in &arena.get(list).content {
        let kind = arena.field(*subject, "kind").map(|(_, kind)| arena.text(kind));
        let Some((_, namespace)) = arena.field(*subject, "namespace") else { continue };
        if kind.as_deref() == Some("ServiceAccount") {
            if arena.is_null(namespace) {
                return Err(Fault::new("the namespace of this subject is blank")
                    .at(arena.at(namespace))
                    .remedy("fill it in, or remove it"));
            }
            found.insert(arena.text(namespace));
        }
    }
    Ok(found)
}

/// Group and kind of the role that a binding names.
fn role(world: &World, root: Id) -> Option<Gvk> {
    let arena = &world.arena;
    let (_, role) = arena.field(root, "roleRef")?;
    let (_, group) = arena.field(role, "apiGroup")?;
    let (_, kind) = arena.field(role, "kind")?;
    Some(Gvk { group: arena.text(group), version: "".into(), kind: arena.text(kind) })
}

struct Referrer<'a> {
    candidates: &'a Candidates,
    index: usize,
    subject_namespaces: BTreeSet<Rc<str>>,
    role: Option<Gvk>,
}

struct Reference<'a> {
    referrer: &'a Referrer<'a>,
    target: &'a Gvk,
    path: &'a str,
}

impl Referrer<'_> {
    fn me(&self) -> &Candidate {
        &self.candidates.all[self.index]
    }

    /// Whether an object could be meant at all.
    fn can_see(&self, other: &Candidate) -> bool {
        self.me().current.cluster
            || other.current.cluster
            || other.current.effective_namespace() == self.me().current.effective_namespace()
            || self.subject_namespaces.contains(&other.namespace)
    }
}

impl Reference<'_> {
    fn set(&self, arena: &mut Arena, node: Id) -> Res<()> {
        if arena.is_null(node) {
            return Ok(());
        }
        match arena.get(node).kind {
            Kind::Scalar => self.scalar(arena, node),
            Kind::Map => self.map(arena, node),
            Kind::List => {
                for element in arena.get(node).content.clone() {
                    if arena.is_null(element) {
                        continue;
                    }
                    match arena.get(element).kind {
                        Kind::Scalar => self.scalar(arena, element)?,
                        Kind::Map => self.map(arena, element)?,
                        Kind::List => return Err(Fault::new("a list cannot name an object").at(arena.at(element))),
                    }
                }
                Ok(())
            }
        }
    }

    fn scalar(&self, arena: &mut Arena, node: Id) -> Res<()> {
        let (old, at) = (arena.text(node), arena.at(node));
        let Some(found) = self.find(arena, &old, at, None)? else { return Ok(()) };
        if found.name == old || found.name.is_empty() {
            return Ok(());
        }
        let value = arena.add(Node::scalar(&found.name, Tag::None, at));
        arena.set_scalar(node, value)
    }

    fn map(&self, arena: &mut Arena, node: Id) -> Res<()> {
        let Some(name) = arena.lookup_field(node, "name")? else {
            return Err(Fault::new(format!("what stands at {} has no name", self.path))
                .at(arena.at(node))
                .remedy("correct the path of the name reference"));
        };
        let (old, at) = (arena.text(name), arena.at(name));
        let namespace = arena.lookup_field(node, "namespace")?.map(|namespace| arena.text(namespace));
        let Some(found) = self.find(arena, &old, at, Some(namespace))? else { return Ok(()) };
        if found.name == old && found.namespace.is_empty() {
            return Ok(());
        }
        for (field, text) in [("name", &found.name), ("namespace", &found.namespace)] {
            if !text.is_empty() {
                let value = arena.add(Node::scalar(text, Tag::None, at));
                arena.set_field(node, field, Some(value), Style::PLAIN)?;
            }
        }
        Ok(())
    }

    /// The object that a name means. In a map the namespace written there decides too.
    fn find(&self, arena: &Arena, old: &str, at: At, namespace: Option<Option<Rc<str>>>) -> Res<Option<&Candidate>> {
        let referrer = self.referrer;
        let Some(named) = referrer.candidates.by_previous_name.get(old) else { return Ok(None) };
        arena.spend(named.len())?;
        let in_map = namespace.is_some();
        let place = namespace.flatten().map(|namespace| self.place(namespace));
        let role = if self.path.ends_with("roleRef/name") { referrer.role.as_ref() } else { None };
        let me = referrer.me();
        let mut found: Vec<&Candidate> = named
            .iter()
            .map(|index| &referrer.candidates.all[*index])
            .filter(|other| referrer.can_see(other))
            .filter(|other| place.as_ref().is_none_or(|place| place.has(other)))
            .filter(|other| other.previous.iter().any(|id| id.gvk.is_selected_by(self.target)))
            .filter(|other| role.is_none_or(|role| other.previous.iter().any(|id| id.gvk.is_selected_by(role))))
            .filter(|other| {
                me.current.cluster
                    || other.current.cluster
                    || other.is_account
                    || other.current.effective_namespace() == me.current.effective_namespace()
            })
            .collect();
        if found.len() == 1 {
            return Ok(found.pop());
        }
        found.retain(|other| same_affixes(me, other, true));
        if found.len() > 1 {
            found.retain(|other| same_affixes(me, other, false));
        }
        let Some(first) = found.first().copied() else { return Ok(None) };
        let alike =
            found.iter().all(|other| other.name == first.name && (!in_map || other.namespace == first.namespace));
        if found.len() == 1 || alike {
            return Ok(Some(first));
        }
        let names: Vec<String> = found.iter().map(|other| other.current.show()).collect();
        Err(Fault::new(format!("{old} could name several objects: {}", names.join(", ")))
            .at(at)
            .remedy("give them different names in their bases"))
    }

    /// Objects that came from a namespace, if there are any, else those that are in it now.
    fn place(&self, namespace: Rc<str>) -> Place {
        let candidates = self.referrer.candidates;
        let original = candidates.original_namespaces.get(&namespace);
        let seen = original.is_some_and(|list| list.iter().any(|index| self.referrer.can_see(&candidates.all[*index])));
        if seen { Place::From(namespace) } else { Place::In(namespace) }
    }
}

enum Place {
    From(Rc<str>),
    In(Rc<str>),
}

impl Place {
    fn has(&self, other: &Candidate) -> bool {
        match self {
            Place::From(namespace) => other.original_namespace == *namespace,
            Place::In(namespace) => !other.current.cluster && other.current.effective_namespace() == &**namespace,
        }
    }
}

fn same_affixes(a: &Candidate, b: &Candidate, empty_fits: bool) -> bool {
    let fits = |a: &[Rc<str>], b: &[Rc<str>]| (empty_fits && (a.is_empty() || b.is_empty())) || same_end(a, b);
    fits(&a.prefixes, &b.prefixes) && fits(&a.suffixes, &b.suffixes)
}

/// Whether the shorter list is the end of the longer; an empty one only of an empty one.
fn same_end(a: &[Rc<str>], b: &[Rc<str>]) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    if short.is_empty() { long.is_empty() } else { long.ends_with(short) }
}
