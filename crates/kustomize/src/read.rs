//! YAML texts into trees: resources and strategic patches as nodes, everything else as located values.
//!
//! Two readers share one event parser and differ in what plain scalars mean. Never looks at what a document means.

use std::{borrow::Cow, collections::HashSet, rc::Rc};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, StructureStyle};

use crate::{
    fault::{At, Fault, Res},
    located::{Entry, Located, Yaml},
    node::{Arena, DEPTH, Id, Kind, Node, Style, Tag},
    scalar::{self, Scalar},
};

/// A text and where it comes from.
#[derive(Clone, Debug)]
pub struct Text {
    /// Where it is written, as a whole.
    pub at: At,
    pub text: Rc<str>,
    /// The line and the column at which its first line begins in the file, if its lines stand there as they are.
    pub lines: Option<(u32, u32)>,
}

impl Text {
    /// The content of a file.
    pub fn file(file: u32, text: &str) -> Text {
        Text { at: At { file, line: 0, column: 0 }, text: text.into(), lines: Some((1, 1)) }
    }

    /// Where a byte of it stands.
    fn place(&self, lines: &Lines, byte: usize) -> At {
        let (line, column) = lines.position(&self.text, byte);
        match self.lines {
            Some((first, margin)) => At { file: self.at.file, line: first + line, column: margin + column },
            None => self.at,
        }
    }
}

/// Where the lines of a text begin.
struct Lines(Vec<u32>);

impl Lines {
    fn of(text: &str) -> Lines {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1);
        Lines(std::iter::once(0).chain(starts).collect())
    }

    /// Line and column of a byte, both from 0.
    fn position(&self, text: &str, byte: usize) -> (u32, u32) {
        let line = self.0.partition_point(|start| *start as usize <= byte).saturating_sub(1);
        let start = self.0[line] as usize;
        // Characters of very long lines are not counted: their columns help nobody.
        let near = byte.saturating_sub(start) < 1000;
        let column = if near {
            text.get(start..byte.min(text.len())).map_or(0, |before| before.chars().count())
        } else {
            byte - start
        };
        (line as u32, column as u32)
    }
}

/// What the events of one document build.
trait Build {
    type Out: Clone;

    fn scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle, tag: Tag, at: At) -> Res<Self::Out>;
    fn list(&mut self, elements: Vec<Self::Out>, tag: Tag, flow: bool, at: At) -> Res<Self::Out>;
    fn map(&mut self, pairs: Vec<(Self::Out, Self::Out)>, tag: Tag, flow: bool, at: At) -> Res<Self::Out>;
    /// The value of an anchor, once more.
    fn alias(&mut self, value: &Self::Out, at: At) -> Res<Self::Out>;
}

enum Open<T> {
    List { elements: Vec<T>, tag: Tag, flow: bool, anchor: usize, at: At },
    Map { pairs: Vec<(T, T)>, key: Option<T>, tag: Tag, flow: bool, anchor: usize, at: At },
}

/// Runs the first document of `text` through `build`. `None` if there is none.
fn document<B: Build>(source: &Text, text: &str, offset: usize, build: &mut B) -> Res<Option<B::Out>> {
    let lines = Lines::of(&source.text);
    let mut text = Cow::Borrowed(text);
    // Each line that begins with a tab where a blank is wanted costs another reading.
    let readings = ((32 << 20) / text.len().max(1)).clamp(4, 1000);
    for _ in 0..readings {
        match attempt(source, &lines, &text, offset, build) {
            Ok(out) => return Ok(out),
            Err(Stop::Fault(fault)) => return Err(fault),
            Err(Stop::Tab(at)) => text = Cow::Owned(without_tabs(&text, at)),
            Err(Stop::Indent(fault)) => {
                let indented = indent_quoted(&text).ok_or(fault)?;
                text = Cow::Owned(indented);
            }
        }
    }
    Err(Fault::budget("too many lines begin with a tab").at(source.at).remedy("indent with spaces"))
}

enum Stop {
    Fault(Box<Fault>),
    /// In brackets and in quoted texts Go's library takes tabs for blanks; the parser here does not.
    Tab(usize),
    /// A quoted text goes on too far left, which Go's library takes.
    Indent(Box<Fault>),
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Stop {
        Stop::Fault(fault)
    }
}

fn without_tabs(text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..];
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    format!("{}{}{}", &text[..start], " ".repeat(indent), &line[indent..])
}

/// The same text with further lines of quoted texts indented; their blanks fold away. `None` if there is no such line.
/// Columns in those lines are off afterwards, lines are not.
fn indent_quoted(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 64);
    let mut open: Option<(char, usize)> = None;
    let mut changed = false;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        if let Some((quote, needed)) = open {
            if indent < needed && !line.trim().is_empty() {
                out.push_str(&" ".repeat(needed - indent));
                changed = true;
            }
            if closes(line, quote) {
                open = None;
            }
        } else if !line.trim_start().starts_with('#') {
            let content = line.trim_start_matches([' ', '-']);
            let column = line.len() - content.len();
            let value = content.find(": ").map_or(content, |colon| content[colon + 2..].trim_start());
            if let Some(quote @ ('"' | '\'')) = value.chars().next()
                && !closes(&value[1..], quote)
            {
                open = Some((quote, column + 1));
            }
        }
        out.push_str(line);
    }
    changed.then_some(out)
}

fn closes(line: &str, quote: char) -> bool {
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\\' && quote == '"' {
            characters.next();
        } else if c == quote {
            if quote == '\'' && characters.peek() == Some(&'\'') {
                characters.next();
            } else {
                return true;
            }
        }
    }
    false
}

fn attempt<B: Build>(
    source: &Text,
    lines: &Lines,
    text: &str,
    offset: usize,
    build: &mut B,
) -> Result<Option<B::Out>, Stop> {
    let json = text.trim_start().starts_with('{') && serde_json::from_str::<serde_json::Value>(text).is_ok();
    let options = granit_parser::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        simple_key_max_lookahead: if json { usize::MAX } else { 1024 },
    };
    let mut open: Vec<Open<B::Out>> = Vec::new();
    let mut anchors: Vec<Option<B::Out>> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => return Err(stop(&error, source, lines, text, offset, &open)),
        };
        let at = source.place(lines, offset + span.start.byte_offset().unwrap_or(0));
        let tagged = |tag: Option<&granit_parser::Tag>| tag.map_or(Tag::None, tag_of);
        let finished = match event {
            Event::Scalar(value, style, anchor, tag) => {
                let in_brackets =
                    matches!(open.last(), Some(Open::List { flow: true, .. } | Open::Map { flow: true, .. }));
                if in_brackets && style == ScalarStyle::Plain && value.contains('?') {
                    let what = "a plain text in brackets holds a question mark, which ends it there".to_owned();
                    return Err(Fault::new(what).at(at).remedy("quote it").into());
                }
                let value = build.scalar(as_go_reads(value, style, text, &span), style, tagged(tag.as_deref()), at)?;
                remember(&mut anchors, anchor, Some(value.clone()));
                value
            }
            Event::SequenceStart(style, anchor, tag) => {
                remember(&mut anchors, anchor, None);
                let flow = style == StructureStyle::Flow;
                open.push(Open::List { elements: Vec::new(), tag: tagged(tag.as_deref()), flow, anchor, at });
                deep(open.len(), at)?;
                continue;
            }
            Event::MappingStart(style, anchor, tag) => {
                remember(&mut anchors, anchor, None);
                let flow = style == StructureStyle::Flow;
                open.push(Open::Map { pairs: Vec::new(), key: None, tag: tagged(tag.as_deref()), flow, anchor, at });
                deep(open.len(), at)?;
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List { elements, tag, flow, anchor, at }) => {
                    let value = build.list(elements, tag, flow, at)?;
                    remember(&mut anchors, anchor, Some(value.clone()));
                    value
                }
                Some(Open::Map { pairs, tag, flow, anchor, at, .. }) => {
                    let value = build.map(pairs, tag, flow, at)?;
                    remember(&mut anchors, anchor, Some(value.clone()));
                    value
                }
                None => continue,
            },
            Event::Alias(anchor) => match anchors.get(anchor) {
                Some(Some(value)) => build.alias(value, at)?,
                _ => return Err(Fault::new("an alias stands inside the value that it names").at(at).into()),
            },
            Event::UnresolvedAlias(name) => {
                let what =
                    format!("the alias *{name} names nothing: no anchor &{name} stands before it in this document");
                let remedy = format!("quote the text if the asterisk is meant, or define the anchor with &{name}");
                return Err(Fault::new(what).at(at).remedy(remedy).into());
            }
            // What follows the first document is not read by kustomize either.
            Event::DocumentEnd => break,
            _ => continue,
        };
        match open.last_mut() {
            None => root = Some(finished),
            Some(Open::List { elements, .. }) => elements.push(finished),
            Some(Open::Map { pairs, key, .. }) => match key.take() {
                None => *key = Some(finished),
                Some(name) => pairs.push((name, finished)),
            },
        }
    }
    Ok(root)
}

/// The text of a scalar: the parser gives an empty one as `~`, and ends a block at the end of a file with a line break
/// that is not there.
fn as_go_reads<'t>(value: Cow<'t, str>, style: ScalarStyle, text: &str, span: &granit_parser::Span) -> Cow<'t, str> {
    let offset = |marker: &granit_parser::Marker| marker.byte_offset().unwrap_or(0);
    let (start, end) = (offset(&span.start), offset(&span.end));
    match style {
        ScalarStyle::Plain if value == "~" && text.as_bytes().get(start) != Some(&b'~') => Cow::Borrowed(""),
        ScalarStyle::Literal | ScalarStyle::Folded
            if !text.ends_with('\n')
                && value.ends_with('\n')
                && text.get(end..).is_none_or(|rest| rest.trim().is_empty()) =>
        {
            Cow::Owned(value[..value.len() - 1].to_owned())
        }
        _ => value,
    }
}

fn deep(depth: usize, at: At) -> Res<()> {
    if depth > DEPTH / 2 {
        return Err(Fault::new(format!("values lie more than {} levels deep", DEPTH / 2))
            .at(at)
            .remedy("no Kubernetes object needs that"));
    }
    Ok(())
}

fn remember<T>(anchors: &mut Vec<Option<T>>, anchor: usize, value: Option<T>) {
    if anchor > 0 {
        if anchors.len() <= anchor {
            anchors.resize_with(anchor + 1, || None);
        }
        anchors[anchor] = value;
    }
}

fn tag_of(tag: &granit_parser::Tag) -> Tag {
    match tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() {
        Some("str") => Tag::Str,
        Some("int") => Tag::Int,
        Some("float") => Tag::Float,
        Some("bool") => Tag::Bool,
        Some("null") => Tag::Null,
        Some("timestamp") => Tag::Time,
        Some("binary") => Tag::Binary,
        Some("map") => Tag::Map,
        Some("seq") => Tag::List,
        Some("merge") => Tag::Merge,
        Some(other) => Tag::Other(format!("!!{other}").into()),
        None => {
            let (handle, suffix) = tag.parts();
            let name = format!("{handle}{suffix}");
            if name == "!" { Tag::None } else { Tag::Other(name.into()) }
        }
    }
}

fn stop<T>(error: &ScanError, source: &Text, lines: &Lines, text: &str, offset: usize, open: &[Open<T>]) -> Stop {
    let at = error.marker().byte_offset().unwrap_or(0).min(text.len());
    let place = source.place(lines, offset + at);
    let (what, remedy) = match error.kind() {
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation => {
            ("a tab cannot indent".to_owned(), "indent with spaces")
        }
        ErrorKind::RecursionLimitExceeded => {
            (format!("values lie more than {} levels deep", DEPTH / 2), "no Kubernetes object needs that")
        }
        ErrorKind::InvalidIndentation => {
            ("the indentation is wrong here".to_owned(), "indent it deeper than the key it belongs to")
        }
        _ => (format!("this is not YAML: {error}"), "correct the text; `kustomize build` refuses it as well"),
    };
    let fault = Fault::new(what).at(place).remedy(remedy);
    let (tab, quoted) = match error.kind() {
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation => (true, false),
        ErrorKind::TabInIndentation => (true, true),
        ErrorKind::InvalidQuotedScalarIndent => return Stop::Indent(fault),
        _ => (false, false),
    };
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let in_brackets =
        open.iter().any(|open| matches!(open, Open::List { flow: true, .. } | Open::Map { flow: true, .. }));
    if tab && (in_brackets || quoted) && text[line..].trim_start_matches(' ').starts_with('\t') {
        return Stop::Tab(at);
    }
    Stop::Fault(fault)
}

/// Whether a text is a document that is not a text: a map, a list, or nothing.
pub fn is_structure(text: &str) -> bool {
    for event in Parser::new_from_str(text) {
        match event {
            Ok((Event::MappingStart(..) | Event::SequenceStart(..) | Event::StreamEnd, _)) => {
                return Parser::new_from_str(text).all(|event| event.is_ok());
            }
            Ok((Event::Scalar(..), _)) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    false
}

/// The documents of a text of resources, unread, with the byte at which each begins.
///
/// They are cut on the text, before any YAML is read.
pub fn split(text: &Text) -> Res<Vec<(usize, &str)>> {
    let whole: &str = &text.text;
    let mut documents = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(found) = whole[from..].find("\n---") {
        let line = from + found + 1;
        let Some(end) = whole[line..].find('\n').map(|end| line + end) else { break };
        let rest = whole[line + 3..end].trim();
        if !rest.is_empty() && !rest.starts_with('#') {
            let at = text.place(&Lines::of(whole), line);
            return Err(Fault::new(format!("after --- stands {rest:?}")).at(at).remedy(
                "only blanks or a comment may stand after --- between documents; begin the object on the next line",
            ));
        }
        documents.push((start, &whole[start..line]));
        start = end + 1;
        // Two separators in a row share no line break.
        from = end + 1;
    }
    documents.push((start, &whole[start.min(whole.len())..]));
    Ok(documents)
}

/// Reads one document of resources; `None` if there is nothing in it.
pub fn resource(arena: &mut Arena, text: &Text, offset: usize, part: &str) -> Res<Option<Id>> {
    let aliases = HashSet::new();
    let mut build = Resources { arena, aliases };
    let root = document(text, part, offset, &mut build)?;
    Ok(root.filter(|root| arena.get(*root).tag != Tag::Null))
}

/// Reads a text inside a text, as a replacement that goes on inside a string does.
pub fn embedded(arena: &mut Arena, text: &str, at: At) -> Res<Option<Id>> {
    let source = Text { at, text: text.into(), lines: None };
    let mut build = Resources { arena, aliases: HashSet::new() };
    document(&source, text, 0, &mut build)
}

/// Reads a kustomization, a configuration or a JSON patch; `None` if there is nothing in it.
pub fn located(text: &Text) -> Res<Option<Located>> {
    document(text, &text.text, 0, &mut Values { weight: 0 })
}

struct Resources<'a> {
    arena: &'a mut Arena,
    /// Nodes that came in through an alias: `<<` looks at what they are copies of.
    aliases: HashSet<Id>,
}

impl Build for Resources<'_> {
    type Out = Id;

    fn scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle, tag: Tag, at: At) -> Res<Id> {
        self.arena.check()?;
        let style = match style {
            ScalarStyle::Plain => Style::PLAIN,
            ScalarStyle::SingleQuoted => Style::SINGLE,
            ScalarStyle::DoubleQuoted => Style::DOUBLE,
            ScalarStyle::Literal => Style::LITERAL,
            ScalarStyle::Folded => Style::FOLDED,
        };
        let (tag, style) = match tag {
            Tag::None if style == Style::PLAIN => (scalar::resolve(&text).tag(), style),
            Tag::None => (Tag::Str, style),
            tag => (tag, style.with(Style::TAGGED)),
        };
        Ok(self.arena.add(Node { style, ..Node::scalar(&text, tag, at) }))
    }

    fn list(&mut self, elements: Vec<Id>, tag: Tag, flow: bool, at: At) -> Res<Id> {
        let (tag, style) = structure(tag, Tag::List, flow);
        Ok(self.arena.add(Node { tag, style, content: elements, ..Node::list(at) }))
    }

    fn map(&mut self, pairs: Vec<(Id, Id)>, tag: Tag, flow: bool, at: At) -> Res<Id> {
        let (tag, style) = structure(tag, Tag::Map, flow);
        let merges = pairs.iter().filter(|(key, _)| self.arena.get(*key).tag == Tag::Merge).count();
        let content = pairs.into_iter().flat_map(|(key, value)| [key, value]).collect();
        let map = self.arena.add(Node { tag, style, content, ..Node::map(at) });
        match merges {
            0 => {}
            1 => self.merge(map)?,
            _ => return Err(Fault::new("a map has two keys <<").at(at).remedy("give one << a list of aliases")),
        }
        Ok(map)
    }

    fn alias(&mut self, value: &Id, _: At) -> Res<Id> {
        let copy = self.arena.copy(*value)?;
        self.aliases.insert(copy);
        Ok(copy)
    }
}

fn structure(tag: Tag, default: Tag, flow: bool) -> (Tag, Style) {
    let style = if flow { Style::FLOW } else { Style::PLAIN };
    match tag {
        Tag::None => (default, style),
        tag => (tag, style.with(Style::TAGGED)),
    }
}

impl Resources<'_> {
    /// Takes the fields of what `<<` names into a map that does not have them.
    fn merge(&mut self, map: Id) -> Res<()> {
        let merge = self.arena.pairs(map).find(|(key, _)| self.arena.get(*key).tag == Tag::Merge);
        let Some((_, value)) = merge else { return Ok(()) };
        let sources = self.merge_sources(value, true)?;
        let own: Vec<(Id, Id)> =
            self.arena.pairs(map).filter(|(key, _)| self.arena.get(*key).tag != Tag::Merge).collect();
        let mut fields: Vec<(Id, Id)> = own.clone();
        for source in sources {
            let copy = self.arena.copy(source)?;
            let pairs: Vec<(Id, Id)> = self.arena.pairs(copy).collect();
            for (key, value) in pairs {
                self.set(&mut fields, key, value);
            }
        }
        for (key, value) in own {
            self.set(&mut fields, key, value);
        }
        self.arena.get_mut(map).content = fields.into_iter().flat_map(|(key, value)| [key, value]).collect();
        Ok(())
    }

    fn set(&self, fields: &mut Vec<(Id, Id)>, key: Id, value: Id) {
        let same = |(other, _): &&mut (Id, Id)| self.arena.get(*other).text == self.arena.get(key).text;
        match fields.iter_mut().find(same) {
            Some(field) => *field = (key, value),
            None => fields.push((key, value)),
        }
    }

    fn merge_sources(&self, value: Id, list: bool) -> Res<Vec<Id>> {
        let node = self.arena.get(value);
        match node.kind {
            Kind::Map => Ok(vec![value]),
            Kind::List if list && !self.aliases.contains(&value) => {
                let mut all = Vec::new();
                for element in &node.content {
                    all.splice(0..0, self.merge_sources(*element, false)?);
                }
                Ok(all)
            }
            Kind::List | Kind::Scalar => {
                Err(Fault::new("<< takes a map, an alias of a map, or a list of these").at(node.at))
            }
        }
    }
}

struct Values {
    /// How much was repeated by aliases, in nodes.
    weight: usize,
}

impl Build for Values {
    type Out = Located;

    fn scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle, tag: Tag, at: At) -> Res<Located> {
        let plain = style == ScalarStyle::Plain;
        let read = match tag {
            Tag::None if plain => scalar::resolve_v1(&text),
            Tag::None | Tag::Str | Tag::Binary | Tag::Other(_) | Tag::Map | Tag::List | Tag::Merge => Scalar::Text,
            tag => scalar::resolve_tagged(&tag, &text)
                .ok_or_else(|| Fault::new("the value is not of the type that its tag names").at(at))?,
        };
        let yaml = match read {
            Scalar::Null => Yaml::Null,
            Scalar::Bool(value) => Yaml::Bool(value),
            Scalar::Int(value) => Yaml::Number(value.into()),
            Scalar::Uint(value) => Yaml::Number(value.into()),
            Scalar::Float(value) => Yaml::Number(
                crate::value::number(value)
                    .ok_or_else(|| Fault::new("the value cannot be written in JSON").at(at).remedy("quote it"))?,
            ),
            Scalar::Merge if plain => Yaml::Merge,
            Scalar::Merge | Scalar::Time(_) | Scalar::Text => Yaml::Text(text.as_ref().into()),
        };
        Ok(Located { at, yaml, literal: style == ScalarStyle::Literal })
    }

    fn list(&mut self, elements: Vec<Located>, _: Tag, _: bool, at: At) -> Res<Located> {
        Ok(Located { at, yaml: Yaml::List(elements.into()), literal: false })
    }

    fn map(&mut self, pairs: Vec<(Located, Located)>, _: Tag, _: bool, at: At) -> Res<Located> {
        let mut fields: Vec<Entry> = Vec::with_capacity(pairs.len());
        let mut merged = Vec::new();
        for (key, value) in pairs {
            if matches!(key.yaml, Yaml::Merge) {
                merged.push(value);
                continue;
            }
            let name = key.yaml.as_key().ok_or_else(|| {
                Fault::new("a list, a map or null cannot be a key")
                    .at(key.at)
                    .remedy("use a text; quote it if it holds braces")
            })?;
            match fields.iter_mut().find(|field| field.name == name) {
                Some(field) => {
                    let first = field.first.unwrap_or(field.at);
                    *field = Entry { name, at: key.at, value, first: Some(first) };
                }
                None => fields.push(Entry { name, at: key.at, value, first: None }),
            }
        }
        for value in merged {
            let sources: Vec<Located> = match &value.yaml {
                Yaml::Map(_) => vec![value.clone()],
                Yaml::List(list) => list.to_vec(),
                _ => return Err(Fault::new("<< takes a map or a list of maps").at(value.at)),
            };
            for source in sources {
                let Yaml::Map(entries) = &source.yaml else {
                    return Err(Fault::new("<< takes a map or a list of maps").at(source.at));
                };
                for entry in entries.iter() {
                    if !fields.iter().any(|field| field.name == entry.name) {
                        fields.push(entry.clone());
                    }
                }
            }
        }
        Ok(Located { at, yaml: Yaml::Map(fields.into()), literal: false })
    }

    fn alias(&mut self, value: &Located, at: At) -> Res<Located> {
        self.weight += value.weight();
        if self.weight > 1_000_000 {
            return Err(Fault::budget("aliases repeat more than a million values")
                .at(at)
                .remedy("write the values out"));
        }
        Ok(Located { at, ..value.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::located::{Fields, STRICT};

    #[test]
    fn lines_of_a_text_in_a_file_are_lines_of_the_file() {
        #[track_caller]
        fn check(yaml: &str, line: u32, column: u32) {
            let root = located(&Text::file(0, yaml)).unwrap().unwrap();
            let text = Fields::of(STRICT, &root, "").unwrap().text("p").unwrap().unwrap();
            let inner = located(&text).unwrap().unwrap();
            let crate::located::Yaml::Map(entries) = &inner.yaml else { panic!("no map") };
            assert_eq!((entries[0].at.line, entries[0].at.column), (line, column), "{yaml:?}");
        }
        check("p: |\n  a: 1\n", 2, 3);
        check("p: |\n\n  a: 1\n", 3, 3);
        check("x:\n- y\np: |-\n  # c\n  a: 1", 5, 3);
        check("p: 'a: 1'\n", 1, 4);
    }

    #[test]
    fn the_end_of_a_file_ends_a_block_without_a_break() {
        let mut arena = Arena::new(1000, 1000, 1000);
        for (yaml, expected) in [
            ("a: |\n  x", "x"),
            ("a: |\n  x\n", "x\n"),
            ("a: |+\n  x\n\n", "x\n\n"),
            ("a: >-\n  x", "x"),
            ("a:", ""),
            ("a: ~", "~"),
        ] {
            let text = Text::file(0, yaml);
            let root = resource(&mut arena, &text, 0, yaml).unwrap().unwrap();
            let (_, value) = arena.field(root, "a").unwrap();
            assert_eq!(&*arena.text(value), expected, "{yaml:?}");
        }
    }
}
