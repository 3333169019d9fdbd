//! The tree of an expression.

use std::{collections::BTreeSet, ops::Range};

/// A part of an expression and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Where, in characters from the start.
    pub at: Range<usize>,
    /// How many nodes lie below each other here.
    pub(super) depth: u32,
}

/// What a part of an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `nil`
    Nil,
    /// `true`, `false`
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A string.
    Text(String),
    /// A name: `result`.
    Name(String),
    /// The element a predicate looks at: `#`, or `#acc` and `#index` by name.
    Pointer(String),
    /// An operator before its operand.
    Unary(&'static str, Box<Node>),
    /// An operator between two operands.
    Binary(&'static str, Box<Node>, Box<Node>),
    /// Where a chain of optional members ends: nil anywhere in it makes it nil.
    Chain(Box<Node>),
    /// A member by name or index.
    Member {
        /// Of what.
        of: Box<Node>,
        /// Which.
        property: Box<Node>,
        /// Whether nil has it too.
        optional: bool,
    },
    /// A part of a list or string.
    Slice {
        /// Of what.
        of: Box<Node>,
        /// From this element on.
        from: Option<Box<Node>>,
        /// Up to this element.
        to: Option<Box<Node>>,
    },
    /// A call of something that an expression names.
    Call(Box<Node>, Vec<Node>),
    /// A call of a function of the language.
    Builtin(&'static str, Vec<Node>),
    /// What is asked of each element.
    Predicate(Box<Node>),
    /// `a ? b : c`, `if a { b } else { c }`
    Conditional(Box<Node>, Box<Node>, Box<Node>),
    /// `let a = b; c`
    Let(String, Box<Node>, Box<Node>),
    /// `a; b`
    Sequence(Vec<Node>),
    /// `[a, b]`
    List(Vec<Node>),
    /// `{a: b}`
    Map(Vec<(Node, Node)>),
}

impl Kind {
    /// The name, if it is one.
    fn name(&self) -> Option<&str> {
        if let Kind::Name(name) = self { Some(name) } else { None }
    }

    /// The name and the arguments, if it is a call by name.
    fn call(&self) -> Option<(&str, &[Node])> {
        if let Kind::Call(callee, arguments) = self {
            return callee.kind.name().map(|name| (name, arguments.as_slice()));
        }
        if let Kind::Builtin(name, arguments) = self { Some((name, arguments)) } else { None }
    }

    fn into_children(self) -> Vec<Node> {
        match self {
            Kind::Nil
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Float(_)
            | Kind::Text(_)
            | Kind::Name(_)
            | Kind::Pointer(_) => Vec::new(),
            Kind::Unary(_, one) | Kind::Chain(one) | Kind::Predicate(one) => vec![*one],
            Kind::Binary(_, one, two) | Kind::Let(_, one, two) => vec![*one, *two],
            Kind::Member { of, property, .. } => vec![*of, *property],
            Kind::Slice { of, from, to } => std::iter::once(of).chain(from).chain(to).map(|node| *node).collect(),
            Kind::Call(callee, mut arguments) => {
                arguments.push(*callee);
                arguments
            }
            Kind::Builtin(_, nodes) | Kind::Sequence(nodes) | Kind::List(nodes) => nodes,
            Kind::Conditional(one, two, three) => vec![*one, *two, *three],
            Kind::Map(pairs) => pairs.into_iter().flat_map(|(key, value)| [key, value]).collect(),
        }
    }

    fn children(&self) -> Vec<&Node> {
        match self {
            Kind::Nil
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Float(_)
            | Kind::Text(_)
            | Kind::Name(_)
            | Kind::Pointer(_) => Vec::new(),
            Kind::Unary(_, one) | Kind::Chain(one) | Kind::Predicate(one) => vec![one],
            Kind::Binary(_, one, two) | Kind::Let(_, one, two) => vec![one, two],
            Kind::Member { of, property, .. } => vec![of, property],
            Kind::Slice { of, from, to } => std::iter::once(of).chain(from).chain(to).map(AsRef::as_ref).collect(),
            Kind::Call(callee, arguments) => std::iter::once(callee.as_ref()).chain(arguments).collect(),
            Kind::Builtin(_, arguments) => arguments.iter().collect(),
            Kind::Conditional(one, two, three) => vec![one, two, three],
            Kind::Sequence(nodes) | Kind::List(nodes) => nodes.iter().collect(),
            Kind::Map(pairs) => pairs.iter().flat_map(|(key, value)| [key, value]).collect(),
        }
    }
}

/// Long chains such as `a || b || c …` are deep trees: they are taken apart without recursion.
impl Drop for Node {
    fn drop(&mut self) {
        let mut open = std::mem::replace(&mut self.kind, Kind::Nil).into_children();
        while let Some(mut node) = open.pop() {
            open.extend(std::mem::replace(&mut node.kind, Kind::Nil).into_children());
        }
    }
}

impl Node {
    pub(super) fn new(kind: Kind, at: Range<usize>) -> Node {
        let depth = 1 + kind.children().iter().map(|child| child.depth).max().unwrap_or(0);
        Node { kind, at, depth }
    }

    /// Every node of this tree.
    fn all(&self) -> Vec<&Node> {
        let mut all = vec![self];
        let mut next = 0;
        while let Some(node) = all.get(next).copied() {
            all.extend(node.kind.children());
            next += 1;
        }
        all.sort_by_key(|node| node.at.start);
        all
    }

    /// The names in this tree that it does not define itself, from left to right.
    pub fn names(&self) -> Vec<&str> {
        let all = self.all();
        let variable = |node: &&'_ Node| if let Kind::Let(name, _, _) = &node.kind { Some(name.clone()) } else { None };
        let defined: BTreeSet<String> = all.iter().filter_map(variable).collect();
        all.iter().filter_map(|node| node.kind.name()).filter(|name| !defined.contains(*name)).collect()
    }

    /// Every call by name in this tree, from left to right: the name and its arguments.
    pub fn calls(&self) -> Vec<(&str, &[Node])> {
        let all = self.all();
        all.iter().filter_map(|node| node.kind.call()).collect()
    }
}
