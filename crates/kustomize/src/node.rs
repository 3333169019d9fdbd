//! The tree that objects are worked on in: nodes that keep the text, the tag and the style of what was written.
//!
//! Nodes live in one arena and refer to each other by index, because the order of work in kustomize lets two places of
//! an object share one node, and what is later written through one place is then seen at the other. Never decides what a
//! field means.

use std::{cell::Cell, rc::Rc};

use crate::{
    fault::{At, Fault, Res},
    scalar,
};

/// One node of an [`Arena`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Id(u32);

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Map,
    List,
    Scalar,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Map => "a map",
            Kind::List => "a list",
            Kind::Scalar => "a single value",
        }
    }
}

/// The type of a node as its reader or writer knows it; `None` is decided by the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tag {
    None,
    Str,
    Null,
    Bool,
    Int,
    Float,
    Time,
    Map,
    List,
    Binary,
    Merge,
    Other(Rc<str>),
}

/// How a node was written. More than one bit can be set: a tag may stand before a quoted text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Style(pub u8);

impl Style {
    pub const PLAIN: Style = Style(0);
    pub const TAGGED: Style = Style(1);
    pub const DOUBLE: Style = Style(2);
    pub const SINGLE: Style = Style(4);
    pub const LITERAL: Style = Style(8);
    pub const FOLDED: Style = Style(16);
    pub const FLOW: Style = Style(32);

    pub fn has(self, other: Style) -> bool {
        self.0 & other.0 != 0
    }

    pub fn with(self, other: Style) -> Style {
        Style(self.0 | other.0)
    }

    /// Quoted or a block: text whatever it says.
    pub fn is_text(self) -> bool {
        self.has(Style(Style::DOUBLE.0 | Style::SINGLE.0 | Style::LITERAL.0 | Style::FOLDED.0))
    }
}

#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    pub tag: Tag,
    pub style: Style,
    pub text: Rc<str>,
    /// Elements of a list; keys and values of a map in turn.
    pub content: Vec<Id>,
    pub at: At,
    /// A null that a merge must not drop, because somebody wrote it.
    pub keep: bool,
}

impl Node {
    pub fn scalar(text: &str, tag: Tag, at: At) -> Node {
        Node { kind: Kind::Scalar, tag, style: Style::PLAIN, text: text.into(), content: Vec::new(), at, keep: false }
    }

    pub fn map(at: At) -> Node {
        Node { kind: Kind::Map, tag: Tag::None, ..Node::scalar("", Tag::None, at) }
    }

    pub fn list(at: At) -> Node {
        Node { kind: Kind::List, tag: Tag::None, ..Node::scalar("", Tag::None, at) }
    }

    pub fn of_kind(kind: Kind, at: At) -> Node {
        Node { kind, ..Node::scalar("", Tag::None, at) }
    }

    /// A text; one that has several lines is a literal block.
    pub fn string(text: &str, at: At) -> Node {
        let style = if text.contains('\n') { Style::LITERAL } else { Style::PLAIN };
        Node { style, ..Node::scalar(text, Tag::Str, at) }
    }

    pub fn is_string(&self) -> bool {
        self.kind == Kind::Scalar && matches!(self.tag, Tag::Str | Tag::None)
    }
}

/// How deep nodes may lie in each other. Everything after reading walks them on the stack.
pub const DEPTH: usize = 200;

/// All nodes of one build.
#[derive(Debug)]
pub struct Arena {
    nodes: Vec<Node>,
    limit: usize,
    steps: Cell<u64>,
    /// Bytes of text that nodes were made with, and that were written into values.
    text: Cell<u64>,
    text_limit: u64,
}

impl Arena {
    pub fn new(limit: usize, steps: u64, text_limit: u64) -> Arena {
        Arena { nodes: Vec::with_capacity(1024), limit, steps: Cell::new(steps), text: Cell::new(0), text_limit }
    }

    /// Counts work whose amount input decides; an error when the build has done enough.
    pub fn spend(&self, steps: usize) -> Res<()> {
        match self.steps.get().checked_sub(steps as u64) {
            Some(left) => {
                self.steps.set(left);
                self.check()
            }
            None => Err(Fault::budget("the build takes more steps than it may")),
        }
    }

    pub fn add(&mut self, node: Node) -> Id {
        self.text.set(self.text.get() + node.text.len() as u64);
        self.push(node)
    }

    /// Counts text that is made from what is there.
    pub fn write(&self, bytes: usize) -> Res<()> {
        self.text.set(self.text.get() + bytes as u64);
        self.check()
    }

    fn push(&mut self, node: Node) -> Id {
        let id = Id(self.nodes.len() as u32);
        self.nodes.push(node);
        id
    }

    /// Whether there is room for more; asked wherever input decides how many nodes there will be.
    pub fn check(&self) -> Res<()> {
        if self.nodes.len() > self.limit {
            return Err(Fault::budget(format!("the build needs more than {} values", self.limit)));
        }
        if self.text.get() > self.text_limit {
            return Err(Fault::budget(format!("the build makes more than {} bytes of text", self.text_limit)));
        }
        Ok(())
    }

    pub fn get(&self, id: Id) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub fn get_mut(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    pub fn at(&self, id: Id) -> At {
        self.get(id).at
    }

    pub fn text(&self, id: Id) -> Rc<str> {
        self.get(id).text.clone()
    }

    /// A copy that shares nothing.
    pub fn copy(&mut self, id: Id) -> Res<Id> {
        self.copy_at(id, 0)
    }

    fn copy_at(&mut self, id: Id, depth: usize) -> Res<Id> {
        if depth > DEPTH {
            return Err(Fault::budget(format!("values lie more than {DEPTH} levels deep")).at(self.at(id)));
        }
        self.check()?;
        self.spend(1)?;
        let mut node = self.get(id).clone();
        for child in &mut node.content {
            *child = self.copy_at(*child, depth + 1)?;
        }
        // The copy shares its text.
        Ok(self.push(node))
    }

    /// Makes `place` what `value` is; whoever else refers to `place` sees it too.
    pub fn overwrite(&mut self, place: Id, value: Id) {
        if place != value {
            let node = self.get(value).clone();
            *self.get_mut(place) = Node { keep: false, ..node };
        }
    }

    pub fn is_null(&self, id: Id) -> bool {
        self.get(id).tag == Tag::Null
    }

    /// Null, or an empty map or list.
    pub fn is_empty(&self, id: Id) -> bool {
        let node = self.get(id);
        node.tag == Tag::Null || (node.kind != Kind::Scalar && node.content.is_empty())
    }

    pub fn is_empty_map(&self, id: Id) -> bool {
        let node = self.get(id);
        node.tag == Tag::Null || (node.kind == Kind::Map && node.content.is_empty())
    }

    /// An error unless the node is of this kind; null is of every kind.
    pub fn expect(&self, id: Id, kind: Kind) -> Res<()> {
        let node = self.get(id);
        if node.tag == Tag::Null || node.kind == kind {
            return Ok(());
        }
        Err(Fault::new(format!("this is {}, but {} is needed here", node.kind.name(), kind.name())).at(node.at))
    }

    pub fn pairs(&self, id: Id) -> impl Iterator<Item = (Id, Id)> + '_ {
        let node = self.get(id);
        let content: &[Id] = if node.kind == Kind::Map { &node.content } else { &[] };
        content.chunks_exact(2).map(|pair| (pair[0], pair[1]))
    }

    /// The key and the value of a field, if this is a map that has it.
    pub fn field(&self, id: Id, name: &str) -> Option<(Id, Id)> {
        self.pairs(id).find(|(key, _)| &*self.get(*key).text == name)
    }

    /// The value of a field that says something.
    pub fn filled(&self, id: Id, name: &str) -> Option<Id> {
        self.field(id, name).map(|(_, value)| value).filter(|value| !self.is_empty(*value))
    }

    /// The names of a map's fields.
    pub fn names(&self, id: Id) -> Vec<Rc<str>> {
        self.pairs(id).map(|(key, _)| self.text(key)).collect()
    }

    pub fn elements(&self, id: Id) -> Res<Vec<Id>> {
        self.expect(id, Kind::List)?;
        let node = self.get(id);
        Ok(if node.tag == Tag::Null { Vec::new() } else { node.content.clone() })
    }

    /// The value of a field; an error if this is no map.
    pub fn lookup_field(&self, id: Id, name: &str) -> Res<Option<Id>> {
        if self.is_null(id) {
            return Ok(None);
        }
        self.expect(id, Kind::Map)?;
        Ok(self.field(id, name).map(|(_, value)| value))
    }

    /// Removes a field.
    pub fn clear(&mut self, id: Id, name: &str) -> Res<()> {
        self.expect(id, Kind::Map)?;
        let index = self.pairs(id).position(|(key, _)| &*self.get(key).text == name);
        if let Some(index) = index {
            self.get_mut(id).content.drain(2 * index..2 * index + 2);
        }
        Ok(())
    }

    /// Sets a field: an existing place keeps its style, a null clears it.
    pub fn set_field(&mut self, id: Id, name: &str, value: Option<Id>, key_style: Style) -> Res<()> {
        if let Some(value) = value {
            self.quote(value);
        }
        let value = match value {
            Some(value) if !self.is_null(value) || self.get(value).keep => value,
            Some(_) | None => return self.clear(id, name),
        };
        if let Some(place) = self.lookup_field(id, name)? {
            self.get_mut(value).style = self.get(place).style;
            self.overwrite(place, value);
            return Ok(());
        }
        if self.is_null(id) {
            // kustomize adds to the content of a null, where nobody looks.
            return Ok(());
        }
        let at = self.at(value);
        let key = self.add(Node { style: key_style, ..Node::scalar(name, Tag::None, at) });
        self.get_mut(value).keep = false;
        self.get_mut(id).content.extend([key, value]);
        Ok(())
    }

    /// Sets a scalar: it keeps its style.
    pub fn set_scalar(&mut self, id: Id, value: Id) -> Res<()> {
        self.quote(value);
        self.expect(id, Kind::Scalar)?;
        if self.is_null(value) {
            return Ok(());
        }
        self.get_mut(value).style = self.get(id).style;
        self.overwrite(id, value);
        Ok(())
    }

    /// A text that would be read as something else is quoted.
    fn quote(&mut self, value: Id) {
        let node = self.get(value);
        if node.is_string() && node.style == Style::PLAIN && scalar::is_not_text(&node.text) {
            self.get_mut(value).style = Style::DOUBLE;
        }
    }

    pub fn append(&mut self, list: Id, element: Id) -> Res<()> {
        self.expect(list, Kind::List)?;
        self.get_mut(list).content.push(element);
        Ok(())
    }

    /// Whether two trees are the same, places aside.
    pub fn same(&self, a: Id, b: Id) -> bool {
        let (left, right) = (self.get(a), self.get(b));
        left.kind == right.kind
            && left.tag == right.tag
            && left.style == right.style
            && left.text == right.text
            && left.content.len() == right.content.len()
            && left.content.iter().zip(&right.content).all(|(a, b)| self.same(*a, *b))
    }
}
