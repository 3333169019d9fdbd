//! Places in a text: byte spans, a line table, and one span per node of a document. Never reads YAML itself.

use std::sync::OnceLock;

use crate::value::{Text, Value};

/// A stretch of a text, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Where it begins.
    pub start: u32,
    /// Where it ends: the first byte after it.
    pub end: u32,
}

impl Span {
    /// The stretch between two offsets. Files are limited well below 4 GiB.
    pub fn new(start: usize, end: usize) -> Span {
        let clip = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { start: clip(start), end: clip(end.max(start)) }
    }

    /// Whether it holds nothing.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The stretch as a range.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(super) fn moved(self, by: usize) -> Span {
        Span::new(self.start as usize + by, self.end as usize + by)
    }
}

/// A line and a column, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A file's name and text, with its lines.
#[derive(Debug)]
pub struct Source {
    /// What people call it: a path, `stdin`, `main:deploy/web.yaml`.
    pub name: String,
    /// Its text, without a byte-order mark.
    pub text: String,
    /// The offsets at which lines begin.
    lines: Vec<u32>,
    /// The places of all nodes by the offset of their values; read when first asked for.
    nodes: OnceLock<Vec<Place>>,
}

impl Source {
    /// A text of that name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let (name, text) = (name.into(), text.into());
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at as u32 + 1)).collect();
        Source { name, text, lines, nodes: OnceLock::new() }
    }

    /// The line (from 0) that holds an offset.
    fn line_of(&self, offset: u32) -> usize {
        self.lines.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// The offsets between which lines `first` to `last` (from 0, both included) stand, without the last line break.
    fn stretch(&self, first: usize, last: usize) -> std::ops::Range<usize> {
        let start = self.lines.get(first).map_or(self.text.len(), |at| *at as usize);
        let end = self.lines.get(last + 1).map_or(self.text.len(), |at| *at as usize - 1);
        start..end.max(start)
    }

    /// Where an offset is.
    pub fn position(&self, offset: u32) -> Position {
        let line = self.line_of(offset);
        let start = self.lines.get(line).copied().unwrap_or(0) as usize;
        let end = floor(&self.text, offset as usize);
        Position { line: line + 1, column: self.text.get(start..end).unwrap_or_default().chars().count() + 1 }
    }

    /// The offset of a line and a column; the end of the line if it is shorter.
    pub fn offset(&self, position: Position) -> u32 {
        let line = position.line.saturating_sub(1);
        let range = self.stretch(line, line);
        let text = self.text.get(range.clone()).unwrap_or_default();
        let within = text.char_indices().nth(position.column.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
        u32::try_from(range.start + within).unwrap_or(u32::MAX)
    }

    /// The node whose value begins at an offset.
    pub fn node_at(&self, offset: u32) -> Option<Place> {
        let nodes = self.nodes.get_or_init(|| {
            let mut nodes = super::nodes(&self.text);
            // Of those that begin together the outermost: it has the key.
            nodes.sort_by_key(|place| (place.value.start, std::cmp::Reverse(place.value.end)));
            nodes
        });
        let first = nodes.partition_point(|place| place.value.start < offset);
        nodes.get(first).filter(|place| place.value.start == offset).copied()
    }

    /// What stands there.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// The part of a stretch that stands in its first line, without blanks at its end.
    pub fn first_line(&self, span: Span) -> Span {
        let text = self.slice(span);
        let line = text.split(['\n', '\r']).next().unwrap_or_default().trim_end();
        Span::new(span.start as usize, span.start as usize + line.len())
    }

    /// The lines from that of `first` to that of `last`, with the number of the first (from 1) and its offset.
    pub fn lines(&self, first: u32, last: u32) -> (usize, usize, &str) {
        let (from, to) = (self.line_of(first), self.line_of(last));
        let range = self.stretch(from, to.max(from));
        (from + 1, range.start, self.text.get(range).unwrap_or_default())
    }
}

/// The nearest boundary between characters at or before an offset.
pub(super) fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Where one node stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Its key; empty for a list's item and for a whole document.
    pub key: Span,
    /// Its value; an alias stands where it was used, what is below it where it was defined.
    pub value: Span,
    /// Where its children begin, in the order of its fields or items.
    pub(super) first: u32,
}

/// The places of all nodes of a file: children of a node stand side by side.
#[derive(Debug, Default)]
pub struct Places(pub(super) Vec<Place>);

/// One step from a node to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// The field of an object.
    Key(&'a str),
    /// The item of a list.
    Index(usize),
}

impl Step<'_> {
    /// The child of a value that it leads to, and which of its children that is.
    pub(super) fn child<'v>(&self, value: &'v Value) -> Option<(usize, &'v Value)> {
        match (value, *self) {
            (Value::Map(map), Step::Key(key)) => map.position(key).zip(map.get(key)),
            (Value::List(items), Step::Index(index)) => items.get(index).map(|item| (index, item)),
            _ => None,
        }
    }
}

impl Places {
    /// Follows steps from a node as far as they lead: the place reached, and how many steps were taken.
    pub fn follow<'a>(&self, root: Place, value: &Value, steps: impl Iterator<Item = Step<'a>>) -> (Place, usize) {
        let (mut place, mut value, mut taken) = (root, value, 0);
        for step in steps {
            let Some((index, below)) = step.child(value) else { break };
            let Some(next) = self.0.get(place.first as usize + index) else { break };
            (place, value, taken) = (*next, below, taken + 1);
        }
        (place, taken)
    }

    /// Every node from `root` on, with its path, its value and its place, parents first.
    pub fn walk(&self, root: Place, value: &Value, see: &mut dyn FnMut(&[Crumb], &Value, Place)) {
        let mut path = Vec::new();
        self.walk_below(root, value, &mut path, see);
    }

    fn walk_below(
        &self,
        place: Place,
        value: &Value,
        path: &mut Vec<Crumb>,
        see: &mut dyn FnMut(&[Crumb], &Value, Place),
    ) {
        see(path, value, place);
        let child = |index: usize| self.0.get(place.first as usize + index).copied().unwrap_or_default();
        match value {
            Value::Map(map) => {
                for (index, (key, below)) in map.iter().enumerate() {
                    path.push(Crumb::Key(key.clone()));
                    self.walk_below(child(index), below, path, see);
                    path.pop();
                }
            }
            Value::List(items) => {
                for (index, below) in items.iter().enumerate() {
                    path.push(Crumb::Index(index));
                    self.walk_below(child(index), below, path, see);
                    path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {}
        }
    }
}

/// A [`Step`] that owns its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Crumb {
    /// The field of an object.
    Key(Text),
    /// The item of a list.
    Index(usize),
}

impl Crumb {
    /// The same, borrowed.
    pub fn step(&self) -> Step<'_> {
        match self {
            Crumb::Key(key) => Step::Key(key),
            Crumb::Index(index) => Step::Index(*index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let source = Source::new("x", "ab\ncäd\r\n\nz");
        let rows =
            [(0, 1, 1), (2, 1, 3), (3, 2, 1), (6, 2, 3), (4, 2, 2), (5, 2, 2), (9, 3, 1), (10, 4, 1), (99, 4, 2)];
        for (offset, line, column) in rows {
            assert_eq!(source.position(offset), Position { line, column }, "{offset}");
        }
        assert_eq!(source.lines(3, 6), (2, 3, "cäd\r"));
        assert_eq!(source.lines(0, 99), (1, 0, "ab\ncäd\r\n\nz"));
        assert_eq!(source.slice(source.first_line(Span::new(3, 10))), "cäd");
        for (line, column, offset) in [(1, 1, 0), (2, 3, 6), (3, 1, 9), (4, 2, 11), (2, 99, 8), (9, 1, 11)] {
            assert_eq!(source.offset(Position { line, column }), offset, "{line}:{column}");
        }
    }

    #[test]
    fn a_node_is_found_by_the_offset_of_its_value() {
        let text = "kind: A\n---\nb: {c: [x, 'y z']} # note\n";
        let source = Source::new("x", text);
        let found = |value: &str| {
            let place = source.node_at(text.find(value).unwrap() as u32)?;
            Some((source.slice(place.key), source.slice(place.value)))
        };
        assert_eq!(found("A"), Some(("kind", "A")));
        assert_eq!(found("[x"), Some(("c", "[x, 'y z']")));
        assert_eq!(found("'y"), Some(("", "'y z'")));
        assert_eq!(found("note"), None);
    }
}
