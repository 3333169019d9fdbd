//! A parsed CEL expression, with the places its parts came from.

use std::sync::Arc;

use crate::value::Text;

/// An expression.
#[derive(Debug, Clone)]
pub(super) struct Expr {
    /// Its number within the rule: what a later pass knows of it is kept under it.
    pub id: usize,
    /// Where it stands, in characters from the start; an operator's is the operator's.
    pub at: usize,
    pub node: Node,
}

/// The kinds of expressions.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Literal(Literal),
    Ident(Text),
    /// `operand.field`, or whether it is there (`has(operand.field)`).
    Select {
        operand: Box<Expr>,
        field: Text,
        test: bool,
    },
    /// A function, operator or method; `_?._` is an optional selection with its field as a literal.
    Call {
        function: Text,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    /// `[a, ?b]`; which items are optional.
    List {
        items: Vec<Expr>,
        optional: Vec<bool>,
    },
    /// `{a: b}`
    Map(Vec<Entry>),
    /// `Name{field: value}`: nothing a rule can name may be built so, but the complaint must name it.
    Struct {
        name: Text,
        fields: Vec<(Text, Expr, usize)>,
    },
    /// What macros such as `all` become.
    Fold(Box<Fold>),
}

/// A literal.
#[derive(Debug, Clone)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Str(Text),
    Bytes(Arc<[u8]>),
}

/// An entry of a map.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub key: Expr,
    pub value: Expr,
    pub optional: bool,
}

/// A loop: `accu = init; for var in range { if !condition {break}; accu = step }; result`.
#[derive(Debug, Clone)]
pub(super) struct Fold {
    pub range: Expr,
    pub var: Text,
    /// Of two variables the first is the key or index.
    pub var2: Option<Text>,
    pub accu: Text,
    pub init: Expr,
    pub condition: Expr,
    pub step: Expr,
    pub result: Expr,
}

impl Expr {
    /// `a.b.c`, if it is nothing but names.
    pub(super) fn qualified_name(&self) -> Option<String> {
        match &self.node {
            Node::Ident(name) => Some(name.to_string()),
            Node::Select { operand, field, test: false } => Some(format!("{}.{field}", operand.qualified_name()?)),
            _ => None,
        }
    }
}

/// A problem of an expression: where, and what.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Issue {
    /// In characters from the start; `None` for the expression as a whole.
    pub at: Option<usize>,
    pub words: String,
}

impl Issue {
    pub(super) fn new(at: usize, words: impl Into<String>) -> Issue {
        Issue { at: Some(at), words: words.into() }
    }
}

/// Problems as cel-go prints them: in the order of the source, each with its line and a mark below it.
pub(super) fn show(source: &str, mut issues: Vec<Issue>) -> String {
    issues.sort_by_key(|issue| issue.at.map_or(-1, |at| at as i64));
    let texts: Vec<String> = issues.iter().map(|issue| show_one(source, issue)).collect();
    texts.join("\n")
}

fn show_one(source: &str, issue: &Issue) -> String {
    let Some(at) = issue.at else { return format!("ERROR: <input>:-1:0: {}", issue.words) };
    let (mut line, mut start) = (1, 0);
    for (i, c) in source.chars().enumerate().take(at) {
        if c == '\n' {
            (line, start) = (line + 1, i + 1);
        }
    }
    let text: String = source.chars().skip(start).take_while(|c| *c != '\n').collect();
    let text = text.replace('\t', " ");
    let mut marks = String::new();
    let mut chars = text.chars();
    for c in chars.by_ref().take(at - start) {
        marks.push(if c.is_ascii() { '.' } else { '\u{ff0e}' });
    }
    marks.push(if chars.next().is_none_or(|c| c.is_ascii()) { '^' } else { '\u{ff3e}' });
    format!("ERROR: <input>:{line}:{}: {}\n | {text}\n | {marks}", at - start + 1, issue.words)
}
