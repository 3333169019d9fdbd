//! The simple transformers: namespace, prefix and suffix, labels, annotations, images, replicas, and added values.

use std::{collections::HashMap, rc::Rc};

use crate::{
    config::{self, Create, FieldSpec},
    fault::{At, Fault, Res},
    ident::{Gvk, Name},
    kustomization::{Image, Replica},
    located::Pairs,
    node::{Arena, Id, Kind, Node, Style, Tag},
    object::{HELM, Object, PREFIXES, SUFFIXES, Set, World},
    path, selector,
};

const SCALAR: Option<Create> = Some(Create { kind: Kind::Scalar, tag: || Tag::Str });
const UNTAGGED: Option<Create> = Some(Create { kind: Kind::Scalar, tag: || Tag::None });
const INTEGER: Option<Create> = Some(Create { kind: Kind::Scalar, tag: || Tag::Int });
const MAP: Option<Create> = Some(Create { kind: Kind::Map, tag: || Tag::Map });

/// Which subjects of a role binding get the namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subjects {
    NamedDefault,
    Accounts,
    None,
}

/// Moves objects into a namespace.
#[derive(Debug)]
pub struct Namespace {
    pub at: At,
    pub namespace: Rc<str>,
    pub fields: Vec<FieldSpec>,
    pub subjects: Subjects,
    /// Only where none is set.
    pub unset_only: bool,
}

impl Namespace {
    pub fn apply(&self, world: &mut World, set: &mut Set) -> Res<()> {
        if self.namespace.is_empty() {
            return Ok(());
        }
        let mut counts: HashMap<(Gvk, Rc<str>, Rc<str>), usize> = HashMap::new();
        let key = |name: &Name| (name.gvk.clone(), name.name.clone(), Rc::from(name.effective_namespace()));
        for object in &set.list {
            *counts.entry(key(&object.current(world))).or_default() += 1;
        }
        for object in set.change().iter() {
            let [helm] = [object.annotations(world).get(HELM).cloned()];
            if object.is_gone(world) || helm.as_deref() == Some("true") {
                continue;
            }
            world.arena.check()?;
            let before = key(&object.current(world));
            object.store_previous(world)?;
            self.object(world, object)?;
            let current = object.current(world);
            if let Some(count) = counts.get_mut(&before) {
                *count -= 1;
            }
            let count = counts.entry(key(&current)).or_default();
            *count += 1;
            if *count > 1 {
                return Err(Fault::new(format!(
                    "two objects are {} once they are in namespace {}",
                    current.show(),
                    self.namespace
                ))
                .at(self.at)
                .also(object.at, "one of them")
                .remedy("give them different names, or render them separately"));
            }
        }
        Ok(())
    }

    fn object(&self, world: &mut World, object: &Object) -> Res<()> {
        let Some(root) = object.root else { return Ok(()) };
        let current = object.current(world);
        if !current.cluster {
            let spec = FieldSpec {
                gvk: Gvk::default(),
                path: "metadata/namespace".into(),
                create: true,
                at: self.at,
                create_at: self.at,
            };
            self.walk(&mut world.arena, root, &spec, UNTAGGED)?;
        }
        let kind = &*current.gvk.kind;
        let is_binding = |kind: &str| matches!(kind, "RoleBinding" | "ClusterRoleBinding");
        if is_binding(kind) {
            self.subjects(&mut world.arena, root)?;
        }
        let is_core = &*object.api_version(world) == "v1";
        for spec in &self.fields {
            let skip = &*spec.path == "metadata/namespace"
                || (!is_core && &*spec.path == "metadata/name")
                || (is_binding(kind) && is_binding(&spec.gvk.kind) && &*spec.path == "subjects/namespace");
            if !skip {
                self.walk(&mut world.arena, root, spec, SCALAR)?;
            }
        }
        Ok(())
    }

    fn walk(&self, arena: &mut Arena, root: Id, spec: &FieldSpec, create: Option<Create>) -> Res<()> {
        config::walk(arena, root, spec, create, &mut |arena, node| self.set(arena, node))
    }

    fn set(&self, arena: &mut Arena, node: Id) -> Res<()> {
        if self.unset_only
            && !arena.is_empty(node)
            && arena.get(node).kind == Kind::Scalar
            && !arena.get(node).text.is_empty()
        {
            return Ok(());
        }
        let value = arena.add(Node::scalar(&self.namespace, Tag::Str, self.at));
        arena.set_scalar(node, value)
    }

    fn subjects(&self, arena: &mut Arena, root: Id) -> Res<()> {
        let wanted = match self.subjects {
            Subjects::None => return Ok(()),
            Subjects::NamedDefault => ("name", "default"),
            Subjects::Accounts => ("kind", "ServiceAccount"),
        };
        let Some(list) = arena.lookup_field(root, "subjects")? else { return Ok(()) };
        for subject in arena.elements(list)? {
            let found = arena.lookup_field(subject, wanted.0)?.is_some_and(|value| &*arena.get(value).text == wanted.1);
            if !found {
                continue;
            }
            if let Some(place) = path::lookup(arena, subject, &["namespace".to_owned()], Some(Kind::Scalar))? {
                self.set(arena, place)?;
            }
        }
        Ok(())
    }
}

/// Which end of a name is added to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Prefix,
    Suffix,
}

/// Adds to the names of objects.
#[derive(Debug)]
pub struct Affix {
    pub at: At,
    pub end: End,
    pub text: Rc<str>,
    pub fields: Vec<FieldSpec>,
}

impl Affix {
    pub fn apply(&self, world: &mut World, set: &mut Set) -> Res<()> {
        for object in set.change().iter() {
            let Some(root) = object.root else { continue };
            let original = object.original(world)?.gvk;
            let kept = matches!(&*original.kind, "CustomResourceDefinition" | "Namespace")
                || (&*original.kind == "APIService" && &*original.group == "apiregistration.k8s.io");
            if kept {
                continue;
            }
            world.arena.check().map_err(|fault| fault.at(self.at))?;
            for spec in self.fields.iter().filter(|spec| original.is_selected_by(&spec.gvk)) {
                if &*spec.path == "metadata/name" && !self.text.is_empty() {
                    object.add_note(world, if self.end == End::Prefix { PREFIXES } else { SUFFIXES }, &self.text)?;
                    object.store_previous(world)?;
                }
                config::walk(&mut world.arena, root, spec, SCALAR, &mut |arena, node| {
                    let old = arena.text(node);
                    let text = match self.end {
                        End::Prefix => format!("{}{old}", self.text),
                        End::Suffix => format!("{old}{}", self.text),
                    };
                    let at = arena.at(node);
                    let value = arena.add(Node::scalar(&text, Tag::None, at));
                    arena.set_scalar(node, value)
                })?;
            }
        }
        Ok(())
    }
}

/// Sets labels or annotations.
#[derive(Debug)]
pub struct SetTexts {
    pub at: At,
    pub pairs: Pairs,
    pub fields: Vec<FieldSpec>,
}

impl SetTexts {
    pub fn apply(&self, world: &mut World, set: &mut Set) -> Res<()> {
        for object in set.change().iter() {
            let Some(root) = object.root else { continue };
            for (key, text) in &self.pairs {
                // One node for all fields of an object, as in kustomize: what is later written to one of them is
                // written to all.
                let value = world.arena.add(Node::scalar(text, Tag::Str, self.at));
                world.arena.check()?;
                for spec in &self.fields {
                    config::walk(&mut world.arena, root, spec, MAP, &mut |arena, node| {
                        if key.is_empty() {
                            return arena.set_scalar(node, value);
                        }
                        arena.set_field(node, key, Some(value), Style::PLAIN)
                    })
                    .map_err(|fault| fault.at(self.at))?;
                }
            }
        }
        Ok(())
    }
}

/// Replaces name, tag or digest of an image.
#[derive(Debug)]
pub struct Images {
    pub image: Image,
    pub fields: Vec<FieldSpec>,
}

impl Images {
    pub fn apply(&self, world: &mut World, set: &mut Set) -> Res<()> {
        let pattern = format!(
            "^{}(:[a-zA-Z0-9_.{{}}-]*)?(@[a-zA-Z0-9]+([.+_-][a-zA-Z0-9]+)*:[a-zA-Z0-9_.{{}}-]*)?$",
            self.image.name
        );
        // A name that is no expression matches nothing.
        let Ok(expression) = selector::expression(&pattern) else { return Ok(()) };
        let update = |arena: &mut Arena, node: Id| self.update(arena, node, &expression);
        for object in set.change().iter() {
            let Some(root) = object.root else { continue };
            if &*object.kind(world) != "CustomResourceDefinition" {
                containers(&mut world.arena, root, &update)?;
            }
        }
        for object in set.list.iter() {
            let Some(root) = object.root else { continue };
            if &*object.kind(world) != "CustomResourceDefinition" {
                for spec in &self.fields {
                    config::walk(&mut world.arena, root, spec, None, &mut |arena, node| update(arena, node))?;
                }
            }
        }
        Ok(())
    }

    fn update(&self, arena: &mut Arena, node: Id, expression: &regex::Regex) -> Res<()> {
        arena.spend(1)?;
        arena.expect(node, Kind::Scalar)?;
        let old = arena.text(node);
        if !expression.is_match(&old) {
            return Ok(());
        }
        let image = &self.image;
        let (mut name, mut tag, mut digest) = split_image(&old);
        if !image.new_name.is_empty() {
            name = image.new_name.to_string();
        }
        match (image.new_tag.is_empty(), image.digest.is_empty(), image.tag_suffix.is_empty()) {
            (false, false, _) => (tag, digest) = (image.new_tag.to_string(), image.digest.to_string()),
            (false, true, _) => (tag, digest) = (image.new_tag.to_string(), String::new()),
            (true, false, _) => (tag, digest) = (String::new(), image.digest.to_string()),
            (true, true, false) => {
                tag.push_str(&image.tag_suffix);
                digest.clear();
            }
            (true, true, true) => {}
        }
        if !tag.is_empty() {
            name = format!("{name}:{tag}");
        }
        if !digest.is_empty() {
            name = format!("{name}@{digest}");
        }
        let value = arena.add(Node::scalar(&name, Tag::None, image.at));
        arena.set_scalar(node, value)
    }
}

/// Calls `update` with the image of every container in a list of containers, at any depth.
fn containers(arena: &mut Arena, node: Id, update: &dyn Fn(&mut Arena, Id) -> Res<()>) -> Res<()> {
    arena.spend(1)?;
    match arena.get(node).kind {
        Kind::Scalar => Ok(()),
        Kind::List => {
            arena.get(node).content.clone().into_iter().try_for_each(|element| containers(arena, element, update))
        }
        Kind::Map => {
            let pairs: Vec<(Id, Id)> = arena.pairs(node).collect();
            for (key, value) in pairs {
                containers(arena, value, update)?;
                if !matches!(&*arena.get(key).text, "containers" | "initContainers")
                    || arena.get(value).kind != Kind::List
                {
                    continue;
                }
                for container in arena.get(value).content.clone() {
                    if let Some(image) = arena.lookup_field(container, "image")? {
                        update(arena, image)?;
                    }
                }
            }
            Ok(())
        }
    }
}

/// Name, tag and digest; the latter are looked for after the first slash.
fn split_image(image: &str) -> (String, String, String) {
    let start = image.find('/').unwrap_or(0);
    let at = image[start..].find('@').map(|at| at + start);
    let colon = image[start..].find(':').map(|at| at + start);
    let cut = |from: usize| image[from + 1..].to_owned();
    match (colon, at) {
        (None, None) => (image.to_owned(), String::new(), String::new()),
        (Some(colon), Some(at)) if colon < at => (image[..colon].to_owned(), image[colon + 1..at].to_owned(), cut(at)),
        (_, Some(at)) => (image[..at].to_owned(), String::new(), cut(at)),
        (Some(colon), None) => (image[..colon].to_owned(), cut(colon), String::new()),
    }
}

/// Sets the replicas of the workloads of a name.
#[derive(Debug)]
pub struct Replicas {
    pub replica: Replica,
    pub fields: Vec<FieldSpec>,
}

impl Replicas {
    pub fn apply(&self, world: &mut World, set: &mut Set) -> Res<()> {
        let mut found = false;
        for spec in &self.fields {
            world.arena.spend(10 * set.list.len())?;
            for object in set.change().iter() {
                let fits = object.ever(world, |id| id.name == self.replica.name && id.gvk.is_selected_by(&spec.gvk))?;
                let Some(root) = object.root.filter(|_| fits) else { continue };
                found = true;
                config::walk(&mut world.arena, root, spec, INTEGER, &mut |arena, node| {
                    let value = arena.add(Node::scalar(&self.replica.count.to_string(), Tag::Int, self.replica.at));
                    arena.set_scalar(node, value)
                })?;
            }
        }
        if found {
            return Ok(());
        }
        let kinds: Vec<&str> = self.fields.iter().map(|spec| &*spec.gvk.kind).collect();
        Err(Fault::new(format!("there is no {} named {:?}", kinds.join(", "), &*self.replica.name))
            .at(self.replica.at)
            .remedy("correct the name, or configure the replicas of its kind"))
    }
}

/// Writes a value to a field of some objects.
#[derive(Debug)]
pub struct ValueAdd {
    pub at: At,
    pub value: Rc<str>,
    pub targets: Vec<ValueTarget>,
}

#[derive(Debug)]
pub struct ValueTarget {
    pub selector: Option<selector::Selector>,
    pub path: Rc<str>,
    /// Where in a path of a file system it is inserted; 0 replaces the whole.
    pub position: usize,
}

impl ValueAdd {
    pub fn apply(&self, world: &mut World, set: &mut Set) -> Res<()> {
        for target in &self.targets {
            let selected = match &target.selector {
                None => (0..set.list.len()).collect(),
                Some(selector) => set.select(world, selector)?,
            };
            for index in selected {
                let object = set.change()[index].clone();
                let Some(root) = object.root else { continue };
                if &*target.path == "metadata/namespace" {
                    let namespace = Namespace {
                        at: self.at,
                        namespace: self.value.clone(),
                        fields: Vec::new(),
                        subjects: Subjects::NamedDefault,
                        unset_only: false,
                    };
                    namespace.object(world, &object)?;
                    continue;
                }
                let mut parts: Vec<String> = Vec::new();
                for part in target.path.split('/') {
                    match parts.last_mut() {
                        Some(last) if last.ends_with('\\') => {
                            last.pop();
                            last.push('/');
                            last.push_str(part);
                        }
                        _ => parts.push(part.to_owned()),
                    }
                }
                let arena = &mut world.arena;
                let Some(node) = path::lookup(arena, root, &parts, Some(Kind::Scalar))? else { continue };
                arena.expect(node, Kind::Scalar)?;
                let text = match target.position {
                    0 => self.value.to_string(),
                    position => insert_part(&arena.text(node), position - 1, &self.value),
                };
                if text.is_empty() {
                    continue;
                }
                let value = arena.add(Node::scalar(&text, Tag::None, self.at));
                arena.set_scalar(node, value)?;
            }
        }
        Ok(())
    }
}

/// Inserts a part into a path of a file system.
fn insert_part(path: &str, position: usize, part: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.insert(position.min(parts.len()), part);
    format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_split_as_in_kustomize() {
        #[track_caller]
        fn check(image: &str, expected: (&str, &str, &str)) {
            let (name, tag, digest) = split_image(image);
            assert_eq!((name.as_str(), tag.as_str(), digest.as_str()), expected);
        }
        check("a:1", ("a", "1", ""));
        check("host:5000/a", ("host:5000/a", "", ""));
        check("host:5000/a:1@sha256:2", ("host:5000/a", "1", "sha256:2"));
        check("a@sha256:2", ("a", "", "sha256:2"));
    }

    #[test]
    fn parts_are_inserted_into_paths() {
        assert_eq!(insert_part("/a/b", 0, "x"), "/x/a/b");
        assert_eq!(insert_part("a/b", 9, "x"), "a/b/x");
        assert_eq!(insert_part("", 3, "x"), "x");
    }
}
