//! kyaml's strategic merge: a patch onto a place, step by step as kustomize does it.
//!
//! Not the strategic merge of kubectl: fields in sorted order, elements of the patch in front, its own directives only.

use std::{collections::BTreeSet, rc::Rc};

use crate::{
    fault::{Fault, Res},
    node::{Arena, Id, Kind, Node, Style, Tag},
    schema::{Schema, Schemas},
};

/// Merges `patch` into `place`; `None` if nothing is left of it.
pub fn merge(arena: &mut Arena, schemas: &Schemas, place: Id, patch: Id) -> Res<Option<Id>> {
    Merge { arena, schemas }.walk(None, Some(place), Some(patch), 0)
}

struct Merge<'a> {
    arena: &'a mut Arena,
    schemas: &'a Schemas,
}

enum Directive {
    Merge,
    Replace,
    Delete,
}

impl Merge<'_> {
    fn walk(&mut self, schema: Option<Schema>, dest: Option<Id>, patch: Option<Id>, depth: usize) -> Res<Option<Id>> {
        self.arena.check()?;
        self.arena.spend(1)?;
        if depth > crate::node::DEPTH {
            return Err(Fault::budget("values lie too deep to be merged"));
        }
        let schema = schema.or_else(|| self.schema_of(dest)).or_else(|| self.schema_of(patch));
        let first = [dest, patch].into_iter().flatten().find(|node| !self.arena.is_null(*node));
        let kind = first.map(|node| self.arena.get(node).kind);
        if let Some(kind) = kind {
            for node in [dest, patch].into_iter().flatten() {
                self.arena.expect(node, kind).map_err(|fault| match dest {
                    Some(dest) => fault.also(self.arena.at(dest), "what it is merged into"),
                    None => fault,
                })?;
            }
        }
        match kind {
            None | Some(Kind::Map) => self.map(schema, dest, patch, depth),
            Some(Kind::Scalar) => Ok(patch.or(dest)),
            Some(Kind::List) => {
                self.take_style(dest, patch);
                let keys = schema.as_ref().and_then(|schema| self.schemas.merge_keys(schema));
                match keys {
                    Some(keys) => self.list(schema.as_ref(), &keys.0, dest, patch, depth),
                    None => Ok(patch.or(dest)),
                }
            }
        }
    }

    /// An object in an object brings its own schema.
    fn schema_of(&self, node: Option<Id>) -> Option<Schema> {
        let node = node.filter(|node| self.arena.get(*node).kind == Kind::Map)?;
        let text =
            |name| self.arena.filled(node, name).map(|value| self.arena.text(value)).filter(|text| !text.is_empty());
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        self.schemas.of_type(&api_version, &kind)
    }

    /// A place without content takes the style of the patch.
    fn take_style(&mut self, dest: Option<Id>, patch: Option<Id>) {
        if let (Some(dest), Some(patch)) = (dest, patch)
            && self.arena.get(dest).kind != Kind::Scalar
            && self.arena.get(dest).content.is_empty()
        {
            self.arena.get_mut(dest).style = self.arena.get(patch).style;
        }
    }

    fn map(&mut self, schema: Option<Schema>, dest: Option<Id>, patch: Option<Id>, depth: usize) -> Res<Option<Id>> {
        self.take_style(dest, patch);
        let Some(dest) = self.map_dest(dest, patch)? else { return Ok(None) };
        let mut names: BTreeSet<Rc<str>> = self.arena.names(dest).into_iter().collect();
        if let Some(patch) = patch {
            names.extend(self.arena.names(patch));
        }
        for name in names {
            let inner = schema.as_ref().and_then(|schema| self.schemas.field(schema, &name));
            let old = self.arena.field(dest, &name);
            let new = patch.and_then(|patch| self.arena.field(patch, &name));
            let value = self.walk(inner, old.map(|(_, value)| value), new.map(|(_, value)| value), depth + 1)?;
            let style = |field: Option<(Id, Id)>| {
                field.filter(|(_, v)| Some(*v) == value).map(|(key, _)| self.arena.get(key).style)
            };
            let key_style = style(new).or(style(old)).unwrap_or(Style::PLAIN);
            self.arena.set_field(dest, &name, value, key_style)?;
        }
        Ok(Some(dest))
    }

    fn map_dest(&mut self, dest: Option<Id>, patch: Option<Id>) -> Res<Option<Id>> {
        let Some(dest) = dest.filter(|dest| !self.arena.is_null(*dest)) else {
            if let Some(patch) = patch {
                // An unknown directive is let pass here.
                if let Ok(Directive::Delete) = self.directive(patch) {
                    return Ok(None);
                }
                return Ok(Some(patch));
            }
            let Some(null) = dest.filter(|dest| !self.arena.get(*dest).text.is_empty()) else { return Ok(None) };
            // Somebody wrote this null.
            let node = Node { keep: true, ..Node::scalar(&self.arena.text(null), Tag::Null, self.arena.at(null)) };
            return Ok(Some(self.arena.add(node)));
        };
        let Some(patch) = patch else { return Ok(Some(dest)) };
        if self.arena.is_null(patch) {
            return Ok(None);
        }
        Ok(match self.directive(patch)? {
            Directive::Delete => None,
            Directive::Replace => Some(patch),
            Directive::Merge => Some(dest),
        })
    }

    /// The directive of a patch, which is taken out of it.
    fn directive(&mut self, patch: Id) -> Res<Directive> {
        let node = self.arena.get(patch);
        let word = match node.kind {
            Kind::Map => self.arena.field(patch, "$patch").map(|(_, value)| value),
            Kind::List => {
                let element =
                    node.content.iter().copied().find(|element| self.arena.field(*element, "$patch").is_some());
                // An element that says more is about itself.
                element
                    .filter(|element| self.arena.get(*element).content.len() <= 2)
                    .and_then(|element| self.arena.field(element, "$patch").map(|(_, value)| value))
            }
            Kind::Scalar => None,
        };
        let Some(word) = word else { return Ok(Directive::Merge) };
        let text = self.arena.text(word);
        let directive = match &*text {
            "delete" => Directive::Delete,
            "replace" => Directive::Replace,
            "merge" => Directive::Merge,
            _ => {
                return Err(Fault::new(format!("unknown directive $patch: {text}"))
                    .at(self.arena.at(word))
                    .remedy("write delete, replace or merge"));
            }
        };
        match self.arena.get(patch).kind {
            Kind::Map => self.arena.clear(patch, "$patch")?,
            Kind::List => self.set_element(patch, None, &["$patch".into()], &[text])?,
            Kind::Scalar => {}
        }
        Ok(directive)
    }

    fn list(
        &mut self,
        schema: Option<&Schema>,
        keys: &[Rc<str>],
        dest: Option<Id>,
        patch: Option<Id>,
        depth: usize,
    ) -> Res<Option<Id>> {
        let dest = match (dest.filter(|dest| !self.arena.is_null(*dest)), patch) {
            (None, patch) => patch,
            (Some(dest), None) => Some(dest),
            (Some(_), Some(patch)) if self.arena.is_null(patch) => None,
            (Some(dest), Some(patch)) => match self.directive(patch)? {
                Directive::Delete => None,
                Directive::Replace => Some(patch),
                Directive::Merge => Some(dest),
            },
        };
        let Some(dest) = dest else { return Ok(None) };
        let primitive: [Rc<str>; 1] = ["".into()];
        let mut tuples: Vec<Vec<Rc<str>>> = Vec::new();
        let mut seen: BTreeSet<Vec<Rc<str>>> = BTreeSet::new();
        for source in [patch, Some(dest)].into_iter().flatten() {
            for element in self.arena.get(source).content.clone() {
                let tuple = if keys.is_empty() {
                    vec![self.arena.text(element)]
                } else {
                    let value = |key: &Rc<str>| {
                        self.arena.filled(element, key).map_or_else(|| "".into(), |value| self.arena.text(value))
                    };
                    keys.iter().map(value).collect()
                };
                if seen.insert(tuple.clone()) {
                    tuples.push(tuple);
                }
            }
        }
        let keys = if keys.is_empty() { &primitive[..] } else { keys };
        self.elements(schema, &mut tuples, keys, dest, patch, depth)
    }

    fn elements(
        &mut self,
        schema: Option<&Schema>,
        tuples: &mut [Vec<Rc<str>>],
        keys: &[Rc<str>],
        dest: Id,
        patch: Option<Id>,
        depth: usize,
    ) -> Res<Option<Id>> {
        let inner = schema.and_then(|schema| self.schemas.elements(schema));
        if keys.len() > 1 {
            if tuples.len() > 2000 {
                return Err(
                    Fault::budget("a list with several merge keys has more than 2000 elements").at(self.arena.at(dest))
                );
            }
            unite(tuples);
        }
        let at = self.arena.at(dest);
        let added = self.arena.add(Node::list(at));
        let mut last_keys: Vec<Rc<str>> = Vec::new();
        let used = used(tuples, keys.len());
        for tuple in tuples.iter() {
            let (valid_keys, valid_values) = valid(&used, tuple, keys);
            let (own_keys, own_values) = {
                let used = self::used(std::slice::from_ref(&valid_values), valid_keys.len());
                valid(&used, &valid_values, &valid_keys)
            };
            let old = self.find_element(Some(dest), &own_keys, &own_values);
            let new = self.find_element(patch, &own_keys, &own_values);
            let value = self.walk(inner.clone(), old, new, depth + 1)?;
            last_keys.clone_from(&valid_keys);
            let empty = value.is_none_or(|value| self.arena.is_empty_map(value));
            let Some(value) = value.filter(|_| !empty) else {
                self.set_element(dest, None, &valid_keys, &valid_values)?;
                continue;
            };
            for (key, text) in valid_keys.iter().zip(&valid_values) {
                if self.arena.field(value, key).is_none() && !text.is_empty() {
                    let at = self.arena.at(value);
                    let scalar = self.arena.add(Node::scalar(text, Tag::None, at));
                    if key.is_empty() {
                        self.arena.set_scalar(value, scalar)?;
                    } else {
                        self.arena.set_field(value, key, Some(scalar), Style::PLAIN)?;
                    }
                }
            }
            self.set_element(added, Some(value), &valid_keys, &valid_values)?;
        }
        if tuples.is_empty() {
            return Ok(Some(dest));
        }
        self.append_list(added, dest, &last_keys)?;
        Ok(Some(added))
    }

    /// The first element that has these values; for plain values the first that is the value.
    fn find_element(&self, list: Option<Id>, keys: &[Rc<str>], values: &[Rc<str>]) -> Option<Id> {
        let list = list.filter(|list| self.arena.get(*list).kind == Kind::List)?;
        let content = &self.arena.get(list).content;
        let (Some(first), Some(value)) = (keys.first(), values.first()) else {
            return content.iter().copied().find(|element| self.arena.get(*element).text.is_empty());
        };
        if first.is_empty() {
            return content.iter().copied().find(|element| self.arena.get(*element).text == *value);
        }
        content.iter().copied().find(|element| {
            self.arena.get(*element).kind == Kind::Map
                && keys.iter().zip(values).all(|(key, value)| {
                    self.arena.field(*element, key).is_some_and(|(_, found)| self.arena.get(found).text == *value)
                })
        })
    }

    /// Replaces every element with these values by `element`, or appends it; without one removes them.
    fn set_element(&mut self, list: Id, element: Option<Id>, keys: &[Rc<str>], values: &[Rc<str>]) -> Res<()> {
        self.arena.spend(1 + self.arena.get(list).content.len())?;
        let for_maps =
            keys.first().is_some_and(|key| !key.is_empty()) && values.first().is_some_and(|value| !value.is_empty());
        let mut content = Vec::with_capacity(self.arena.get(list).content.len() + 1);
        let mut found_one = false;
        for old in self.arena.get(list).content.clone() {
            if self.arena.is_empty_map(old) {
                continue;
            }
            if self.arena.get(old).kind != Kind::Map && for_maps {
                content.push(old);
                continue;
            }
            let mut found = true;
            // A key without a value asks what the key before it asked.
            let mut last = None;
            for (index, key) in keys.iter().enumerate() {
                if let Some(value) = values.get(index) {
                    last = self.match_field(old, key, value)?;
                }
                if last.is_none() {
                    found = false;
                    break;
                }
            }
            if keys.is_empty() {
                found = match values.first() {
                    Some(value) => self.match_field(old, "", value)?.is_some(),
                    None => false,
                };
            }
            if !found {
                if !values.is_empty() {
                    content.push(old);
                }
                continue;
            }
            found_one = true;
            content.extend(element);
        }
        let element = element.filter(|element| !self.arena.is_null(*element));
        if !found_one {
            content.extend(element);
        }
        self.arena.get_mut(list).content = content;
        Ok(())
    }

    fn match_field(&self, node: Id, key: &str, value: &str) -> Res<Option<Id>> {
        if self.arena.is_null(node) {
            return Ok(None);
        }
        if key.is_empty() {
            self.arena.expect(node, Kind::Scalar)?;
            return Ok((&*self.arena.get(node).text == value).then_some(node));
        }
        let found = self.arena.lookup_field(node, key)?;
        // An empty value asks for the key alone.
        Ok(found.filter(|found| value.is_empty() || &*self.arena.get(*found).text == value))
    }

    fn append_list(&mut self, list: Id, rest: Id, keys: &[Rc<str>]) -> Res<()> {
        for element in self.arena.get(rest).content.clone() {
            if keys.first().is_none_or(|key| key.is_empty()) {
                let text = self.arena.text(element);
                self.set_element(list, Some(element), &["".into()], &[text])?;
                continue;
            }
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                match self.arena.lookup_field(element, key)? {
                    Some(value) => values.push(self.arena.text(value)),
                    // Once for every key that it lacks.
                    None => self.arena.append(list, element)?,
                }
            }
            if keys.len() > 1 {
                self.set_element(list, None, keys, &values)?;
            }
            self.set_element(list, Some(element), keys, &values)?;
        }
        Ok(())
    }
}

/// For each key, whether any tuple has a value for it.
fn used(all: &[Vec<Rc<str>>], keys: usize) -> Vec<bool> {
    (0..keys).map(|i| all.iter().any(|tuple| tuple.get(i).is_some_and(|value| !value.is_empty()))).collect()
}

/// The keys that are used, and the values of this tuple for them.
fn valid(used: &[bool], tuple: &[Rc<str>], keys: &[Rc<str>]) -> (Vec<Rc<str>>, Vec<Rc<str>>) {
    if !used.contains(&true) {
        return (keys.to_vec(), tuple.to_vec());
    }
    let valid_keys = keys.iter().zip(used).filter(|(_, used)| **used).map(|(key, _)| key.clone()).collect();
    let valid_values = tuple
        .iter()
        .enumerate()
        .filter(|(i, value)| !value.is_empty() || used.get(*i) == Some(&true))
        .map(|(_, value)| value.clone())
        .collect();
    (valid_keys, valid_values)
}

/// Makes every two tuples that agree the same.
fn unite(tuples: &mut [Vec<Rc<str>>]) {
    for i in 0..tuples.len() {
        // What is compared is the tuple as it was when its turn began.
        let first = tuples[i].clone();
        for j in 0..tuples.len() {
            if let Some(union) = union(&first, &tuples[j]) {
                tuples[i].clone_from(&union);
                tuples[j] = union;
            }
        }
    }
}

fn union(a: &[Rc<str>], b: &[Rc<str>]) -> Option<Vec<Rc<str>>> {
    let mut common = false;
    let mut union = Vec::with_capacity(a.len());
    for (x, y) in a.iter().zip(b) {
        if x == y {
            common = true;
        } else if !x.is_empty() && !y.is_empty() {
            return None;
        }
        union.push(if x.is_empty() { y.clone() } else { x.clone() });
    }
    (common && a.len() == b.len()).then_some(union)
}
