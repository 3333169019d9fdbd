//! One YAML document as kubectl reads it: events in, a value and the place of each of its nodes out.
//!
//! One pass, no recursion. Aliases share what they name, so they cost nothing here; what they would cost everyone after us
//! is counted and limited. Never looks at what the document means.

use std::borrow::Cow;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError};

use super::{
    Mistake, MistakeKind,
    place::{Place, Places, Span},
    quotes::Indents,
    scalar::{self, Refusal, Tag},
};
use crate::value::{Map, Text, Value, intern};

/// How much the aliases of one document may repeat, in bytes: far more than a server takes, far less than a bomb makes.
const EXPANSION: u64 = 16 << 20;
/// How deep values may nest, also through aliases: what comes after us walks them on the stack.
const DEPTH: u32 = 64;
/// How many lines in brackets may begin with a tab; each costs another reading.
const TAB_LINES: usize = 1000;

/// A document that was read.
#[derive(Debug, Clone)]
pub struct Document {
    /// What it says; of a key given twice, the last.
    pub value: Value,
    /// Where it stands.
    pub place: Place,
    /// Whether something stands after its end.
    pub followed: bool,
}

/// Reads the first document of `text`, which stands at `offset` of the file. Places are added to `places`.
///
/// `None` without a document, or if a mistake makes it unreadable. Mistakes that leave a document readable are noted too.
pub fn read(text: &str, offset: usize, places: &mut Places, mistakes: &mut Vec<Mistake>) -> Option<Document> {
    let known = (places.0.len(), mistakes.len());
    let mut text = Cow::Borrowed(text);
    for _ in 0..TAB_LINES {
        match attempt(&text, offset, places, mistakes, &mut Vec::new()) {
            Ok(document) => return document,
            Err(Stop::Mistake(mistake)) => {
                mistakes.push(*mistake);
                return None;
            }
            Err(Stop::Tab(at)) => {
                forget(places, mistakes, known);
                text = Cow::Owned(without_tabs(&text, at));
            }
            Err(Stop::QuoteIndent(mistake)) => {
                forget(places, mistakes, known);
                let document = indented(&text, offset, places, mistakes, known);
                return document.unwrap_or_else(|| {
                    forget(places, mistakes, known);
                    mistakes.push(*mistake);
                    None
                });
            }
        }
    }
    let what = "too many lines in brackets begin with a tab".into();
    mistakes
        .push(Mistake::new(MistakeKind::Budget, Span::new(offset, offset), what).remedy("indent with spaces".into()));
    None
}

fn forget(places: &mut Places, mistakes: &mut Vec<Mistake>, known: (usize, usize)) {
    places.0.truncate(known.0);
    mistakes.truncate(known.1);
}

/// Reads a document after its quoted texts were indented; `None` if that was not what was wrong.
fn indented(
    text: &str,
    offset: usize,
    places: &mut Places,
    mistakes: &mut Vec<Mistake>,
    known: (usize, usize),
) -> Option<Option<Document>> {
    let indents = Indents::of(text);
    if indents.is_empty() {
        return None;
    }
    let mut quoted = Vec::new();
    let document = match attempt(&indents.apply(text), 0, places, mistakes, &mut quoted) {
        Ok(document) => document,
        Err(Stop::Mistake(mistake)) => {
            mistakes.push(*mistake);
            None
        }
        Err(Stop::Tab(_) | Stop::QuoteIndent(_)) => return None,
    };
    // An unfinished document has not shown all its quoted texts; what is known of it is wrong enough.
    if document.is_some() && !indents.lie_in(&quoted) {
        return None;
    }
    let back = |span: Span| indents.original(span).moved(offset);
    for place in &mut places.0[known.0..] {
        (place.key, place.value) = (back(place.key), back(place.value));
    }
    for mistake in &mut mistakes[known.1..] {
        mistake.span = back(mistake.span);
        if let Some(also) = &mut mistake.also {
            also.0 = back(also.0);
        }
    }
    Some(document.map(|mut document| {
        document.place.value = back(document.place.value);
        document
    }))
}

/// Why a document was not read.
enum Stop {
    Mistake(Box<Mistake>),
    /// In brackets, and between the lines of a quoted text, kubectl takes tabs for blanks; the parser below, which reads
    /// YAML 1.2, does not.
    Tab(usize),
    /// A quoted text goes on too far left.
    QuoteIndent(Box<Mistake>),
}

impl From<Mistake> for Stop {
    fn from(mistake: Mistake) -> Stop {
        Stop::Mistake(Box::new(mistake))
    }
}

/// The same text, of the same length, with blanks for the tabs at the start of the line at `at`.
fn without_tabs(text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..];
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    format!("{}{}{}", &text[..start], " ".repeat(indent), &line[indent..])
}

fn attempt(
    text: &str,
    offset: usize,
    places: &mut Places,
    mistakes: &mut Vec<Mistake>,
    quoted: &mut Vec<Span>,
) -> Result<Option<Document>, Stop> {
    let json = is_json(text);
    let options = granit_parser::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        // JSON has no limit on the length of a key; ours is that of the file.
        simple_key_max_lookahead: if json { usize::MAX } else { 1024 },
    };
    let mut builder = Builder {
        text,
        offset,
        json,
        places,
        mistakes,
        frames: Vec::new(),
        built: Vec::new(),
        anchors: Vec::new(),
        expansion: 0,
        root: None,
        quoted,
    };
    let mut document = None;
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            // What follows the first document is not read by kubectl either.
            Err(_) | Ok((Event::DocumentStart(..), _)) if document.is_some() => {
                return Ok(document.map(|document| Document { followed: true, ..document }));
            }
            Ok((Event::DocumentEnd, _)) => {
                document = builder.root.take().map(|node| Document {
                    value: node.value,
                    place: Place { key: Span::default(), value: node.span, first: node.first },
                    followed: false,
                });
            }
            Ok((event, span)) => builder.take(event, bytes(&span).moved(offset))?,
            Err(error) => return Err(builder.stop(&error)),
        }
    }
    Ok(document)
}

/// Whether a text is JSON rather than YAML in braces.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn bytes(span: &granit_parser::Span) -> Span {
    let start = span.start.byte_offset().unwrap_or(0);
    Span::new(start, span.end.byte_offset().unwrap_or(start))
}

/// A finished node.
#[derive(Clone)]
struct Node {
    value: Value,
    span: Span,
    /// Where the places of its children begin.
    first: u32,
    /// Its size if every alias were written out.
    weight: u64,
    depth: u32,
}

/// A finished node below an open collection.
struct Child {
    key: Text,
    key_span: Span,
    node: Node,
    /// It came in through `<<`.
    merged: bool,
}

/// An open collection.
struct Frame {
    kind: FrameKind,
    start: u32,
    anchor: usize,
    /// Where its children begin among the built.
    base: usize,
}

enum FrameKind {
    List,
    /// With the key whose value comes next.
    Map(Option<Key>),
}

enum Key {
    Field(Text, Span),
    Merge(Span),
}

struct Builder<'a> {
    text: &'a str,
    offset: usize,
    json: bool,
    places: &'a mut Places,
    mistakes: &'a mut Vec<Mistake>,
    frames: Vec<Frame>,
    built: Vec<Child>,
    /// By the parser's number; open ones are there without a node.
    anchors: Vec<Option<Node>>,
    expansion: u64,
    root: Option<Node>,
    /// Where quoted texts stand.
    quoted: &'a mut Vec<Span>,
}

impl<'a> Builder<'a> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Mistake> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_deref().map_or(Tag::None, |tag| {
                    tag.suffix_in_namespace("tag:yaml.org,2002:").map_or(Tag::Text, |name| Tag::core(&name))
                });
                self.scalar(&text, style, anchor, tag, span)
            }
            Event::SequenceStart(_, anchor, _) => self.open(FrameKind::List, anchor, span),
            Event::MappingStart(_, anchor, _) => self.open(FrameKind::Map(None), anchor, span),
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(id) => self.alias(id, span),
            Event::UnresolvedAlias(name) => Err(Mistake::new(
                MistakeKind::Syntax,
                span,
                format!("the alias *{name} names nothing: no anchor &{name} stands before it"),
            )
            .remedy(format!("quote the text if the asterisk is meant, or define the anchor with &{name}"))),
            _ => Ok(()),
        }
    }

    /// Why the parser stopped.
    fn stop(&self, error: &ScanError) -> Stop {
        let mistake = || Box::new(syntax(error, self.text, self.offset));
        let (tab, in_quotes) = match error.kind() {
            ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation => (true, false),
            ErrorKind::TabInIndentation => (true, true),
            ErrorKind::InvalidQuotedScalarIndent => return Stop::QuoteIndent(mistake()),
            _ => (false, false),
        };
        let at = error.marker().byte_offset().unwrap_or(0).min(self.text.len());
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let in_brackets = self.frames.iter().any(|frame| self.opens_with_bracket(frame));
        if tab && (in_brackets || in_quotes) && self.text[line..].trim_start_matches(' ').starts_with('\t') {
            return Stop::Tab(at);
        }
        Stop::Mistake(mistake())
    }

    fn opens_with_bracket(&self, frame: &Frame) -> bool {
        let first = self.text.as_bytes().get((frame.start as usize).saturating_sub(self.offset));
        matches!(first, Some(b'[' | b'{'))
    }

    fn wants_key(&self) -> bool {
        matches!(self.frames.last(), Some(Frame { kind: FrameKind::Map(None), .. }))
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, tag: Tag, span: Span) -> Result<(), Mistake> {
        let plain = style == ScalarStyle::Plain;
        if matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted) {
            self.quoted.push(span);
        }
        if style == ScalarStyle::DoubleQuoted && !self.json {
            self.check_escapes(span);
        }
        if self.wants_key() && anchor == 0 && tag == Tag::None {
            let key = self.key(text, plain, span)?;
            self.set_key(key);
            return Ok(());
        }
        let value = scalar::read(text, plain, tag).unwrap_or_else(|refusal| {
            self.mistakes.push(refused(&refusal, text, span));
            Value::Null
        });
        let node = Node { value, span, first: 0, weight: 16 + text.len() as u64, depth: 1 };
        self.finish(node, anchor)
    }

    /// The key that a scalar spells.
    fn key(&mut self, text: &str, plain: bool, span: Span) -> Result<Key, Mistake> {
        if self.frames.last().is_some_and(|frame| self.opens_with_bracket(frame)) && self.raw(span).contains('\n') {
            let what = "a key in brackets must stand on one line".into();
            return Err(Mistake::new(MistakeKind::Syntax, self.head(span), what).remedy("is a comma missing?".into()));
        }
        if !plain {
            return Ok(Key::Field(intern(text), span));
        }
        if text == "<<" {
            return Ok(Key::Merge(span));
        }
        let value = scalar::read(text, plain, Tag::None).unwrap_or_else(|refusal| {
            self.mistakes.push(refused(&refusal, text, span));
            text.into()
        });
        self.key_of(&value, span)
    }

    /// The key that a value makes, as Go's conversion to JSON prints it.
    fn key_of(&mut self, value: &Value, span: Span) -> Result<Key, Mistake> {
        let spelt = self.raw(span);
        let key = match value {
            Value::Str(text) => intern(text),
            Value::Bool(b) => {
                let read = if *b { "true" } else { "false" };
                if spelt != read && !spelt.starts_with('*') {
                    self.mistakes.push(
                        Mistake::new(
                            MistakeKind::KeyReadOtherwise,
                            span,
                            format!("the key {spelt} is a boolean in YAML 1.1: kubectl reads it as \"{read}\""),
                        )
                        .remedy(format!("quote it: \"{spelt}\"")),
                    );
                }
                intern(read)
            }
            Value::Int(n) => intern(&n.to_string()),
            Value::Float(f) => intern(&f.to_string()),
            Value::Null => {
                return Err(Mistake::new(MistakeKind::Key, span, "a key is null".into()).remedy("quote it".into()));
            }
            Value::List(_) | Value::Map(_) => {
                return Err(self.no_key(span));
            }
        };
        Ok(Key::Field(key, span))
    }

    /// A list or a map stands where a key should; mostly because somebody else's braces do.
    fn no_key(&self, span: Span) -> Mistake {
        let at = (span.start as usize).saturating_sub(self.offset);
        let braces = self.text[..at].ends_with('{') && self.text[at..].starts_with('{');
        let (what, remedy) = if braces {
            (
                "double braces are a map in a map to YAML",
                "quote them, or render the template (`helm template`) and lint the result",
            )
        } else {
            ("a list or a map cannot be a key", "use a text; quote it if it holds braces or brackets")
        };
        Mistake::new(MistakeKind::Key, span, what.into()).remedy(remedy.into())
    }

    fn set_key(&mut self, key: Key) {
        if let Some(Frame { kind: FrameKind::Map(slot), .. }) = self.frames.last_mut() {
            *slot = Some(key);
        }
    }

    fn open(&mut self, kind: FrameKind, anchor: usize, span: Span) -> Result<(), Mistake> {
        if self.wants_key() {
            return Err(self.no_key(span));
        }
        self.remember(anchor, None);
        self.frames.push(Frame { kind, start: span.start, anchor, base: self.built.len() });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), Mistake> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        if matches!(frame.kind, FrameKind::Map(_)) {
            self.settle(frame.base);
        }
        let children = &self.built[frame.base..];
        let weight = children.iter().map(|child| child.node.weight + child.key.len() as u64).sum::<u64>() + 16;
        let depth = children.iter().map(|child| child.node.depth).max().unwrap_or(0) + 1;
        let last = children.iter().map(|child| child.node.span.end.max(child.key_span.end)).max();
        // A block collection ends where its last child does, one in brackets at its bracket.
        let end = if self.opens_with_bracket(&frame) { span.end } else { last.unwrap_or(span.end) };
        let span = Span { start: frame.start, end: end.max(frame.start) };
        if depth > DEPTH {
            return Err(Mistake::new(MistakeKind::Budget, self.head(span), format!("values nest deeper than {DEPTH}"))
                .remedy("no Kubernetes object needs that; split the document or drop the aliases".into()));
        }
        let first = u32::try_from(self.places.0.len()).unwrap_or(u32::MAX);
        self.places.0.extend(children.iter().map(|child| Place {
            key: child.key_span,
            value: child.node.span,
            first: child.node.first,
        }));
        let children = self.built.drain(frame.base..);
        let value = match frame.kind {
            FrameKind::List => Value::list(children.map(|child| child.node.value)),
            FrameKind::Map(_) => Value::Map(children.map(|child| (child.key, child.node.value)).collect::<Map>()),
        };
        self.finish(Node { value, span, first, weight, depth }, frame.anchor)
    }

    /// Sorts the fields of the map whose children begin at `base`; of equal keys the last stays, as in Go.
    fn settle(&mut self, base: usize) {
        let fields = &mut self.built[base..];
        if fields.is_sorted_by(|a, b| a.key < b.key) {
            return;
        }
        fields.sort_by(|a, b| a.key.cmp(&b.key));
        let mut repeated = Vec::new();
        for pair in fields.windows(2).filter(|pair| pair[0].key == pair[1].key) {
            let (first, second) = (&pair[0], &pair[1]);
            if !first.merged && !second.merged {
                repeated.push((first.key.clone(), first.key_span, second.key_span));
            } else if second.merged && !first.merged {
                let what = format!("`<<` stands after the key {} and replaces its value", first.key);
                self.mistakes.push(
                    Mistake::new(MistakeKind::MergeReplaces, first.key_span, what)
                        .remedy("put `<<` before the keys that should win".into()),
                );
            }
        }
        for (key, first, second) in repeated {
            self.mistakes.push(
                Mistake::new(MistakeKind::Repeated, second, format!("the key {key} is given twice"))
                    .also(first, "it is given here first".into())
                    .remedy("keep one of them: kubectl would silently take the last".into()),
            );
        }
        let mut kept = base;
        for at in base..self.built.len() {
            let replaced = self.built.get(at + 1).is_some_and(|next| next.key == self.built[at].key);
            if !replaced {
                self.built.swap(kept, at);
                kept += 1;
            }
        }
        self.built.truncate(kept);
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<(), Mistake> {
        let Some(node) = self.anchors.get(id).cloned().flatten() else {
            return Err(Mistake::new(MistakeKind::Budget, span, "an anchor's value contains itself".into())
                .remedy("an object cannot be its own part".into()));
        };
        self.expansion = self.expansion.saturating_add(node.weight);
        if self.expansion > EXPANSION {
            let what = format!("the aliases of this document repeat more than {} MiB", EXPANSION >> 20);
            return Err(Mistake::new(MistakeKind::Budget, span, what)
                .remedy("write the document out, or generate it: no API server takes an object of this size".into()));
        }
        self.finish(Node { span, ..node }, 0)
    }

    fn remember(&mut self, anchor: usize, node: Option<Node>) {
        if anchor == 0 {
            return;
        }
        if self.anchors.len() <= anchor {
            self.anchors.resize_with(anchor + 1, || None);
        }
        self.anchors[anchor] = node;
    }

    /// Puts a finished node where it belongs.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Mistake> {
        self.remember(anchor, (anchor != 0).then(|| node.clone()));
        if self.wants_key() {
            let key = self.key_of(&node.value, node.span)?;
            self.set_key(key);
            return Ok(());
        }
        match self.frames.last_mut() {
            None => self.root = Some(node),
            Some(Frame { kind: FrameKind::List, .. }) => {
                self.built.push(Child { key: Text::new(), key_span: Span::default(), node, merged: false });
            }
            Some(Frame { kind: FrameKind::Map(slot), .. }) => match slot.take() {
                Some(Key::Field(key, key_span)) => self.built.push(Child { key, key_span, node, merged: false }),
                Some(Key::Merge(key_span)) => self.merge(&node, key_span)?,
                None => {}
            },
        }
        Ok(())
    }

    /// Takes over the fields of a map, or of several maps, of which the first wins.
    fn merge(&mut self, node: &Node, key: Span) -> Result<(), Mistake> {
        let refuse = || {
            Mistake::new(MistakeKind::Merge, key, "`<<` needs a map, or a list of maps".into())
                .remedy("name an anchor of a map: `<<: *defaults`".into())
        };
        match &node.value {
            Value::Map(map) => self.take_over(map, node.first),
            Value::List(items) => {
                for (index, item) in items.iter().enumerate().rev() {
                    let place = self.places.0.get(node.first as usize + index).copied().unwrap_or_default();
                    self.take_over(item.as_map().ok_or_else(refuse)?, place.first);
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => return Err(refuse()),
        }
        Ok(())
    }

    fn take_over(&mut self, map: &Map, first: u32) {
        for (index, (key, value)) in map.iter().enumerate() {
            let place = self.places.0.get(first as usize + index).copied().unwrap_or_default();
            // Weighed by the alias that brought it in.
            let depth = depth(value);
            let node = Node { value: value.clone(), span: place.value, first: place.first, weight: 16, depth };
            self.built.push(Child { key: key.clone(), key_span: place.key, node, merged: true });
        }
    }

    /// kubectl's YAML is 1.1: it refuses two escapes that JSON has and YAML 1.2 took over.
    fn check_escapes(&mut self, span: Span) {
        let raw = self.raw(span);
        let mut rest = raw;
        while let Some(at) = rest.find('\\') {
            let escape = &rest[at + 1..];
            let surrogate = escape.strip_prefix(['u', 'U']).is_some_and(|hex| {
                let code = hex.trim_start_matches('0').get(..2).unwrap_or_default().to_ascii_lowercase();
                hex.len() >= 4 && matches!(code.as_bytes(), [b'd', b'8'..=b'9' | b'a'..=b'f'])
            });
            if escape.starts_with('/') || surrogate {
                let start = span.start as usize + (raw.len() - rest.len()) + at;
                let (what, remedy) = if surrogate {
                    ("half a character is escaped", "write the character itself")
                } else {
                    ("the escape `\\/` is JSON, not YAML 1.1", "write a plain `/`")
                };
                let mistake = Mistake::new(MistakeKind::Syntax, Span::new(start, start + 2), what.into());
                self.mistakes.push(mistake.remedy(remedy.into()));
                return;
            }
            rest = rest.get(at + 2..).unwrap_or_default();
        }
    }

    /// What stands there.
    fn raw(&self, span: Span) -> &'a str {
        let range = span.range();
        self.text
            .get(range.start.saturating_sub(self.offset)..range.end.saturating_sub(self.offset))
            .unwrap_or_default()
    }

    /// The first line of a stretch.
    fn head(&self, span: Span) -> Span {
        let text = self.text.get(span.range().start - self.offset..).unwrap_or_default();
        let line = text.split('\n').next().unwrap_or_default().trim_end();
        Span::new(span.start as usize, (span.start as usize + line.len()).min(span.end as usize))
    }
}

/// How deep a value nests; bounded because every node was bounded when it was built.
fn depth(value: &Value) -> u32 {
    match value {
        Value::List(items) => items.iter().map(depth).max().unwrap_or(0) + 1,
        Value::Map(map) => map.values().map(depth).max().unwrap_or(0) + 1,
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => 1,
    }
}

fn refused(refusal: &Refusal, text: &str, span: Span) -> Mistake {
    let (what, remedy) = match refusal {
        Refusal::NotFinite => (format!("{text} is not a number that JSON can carry"), "quote it if text is meant"),
        Refusal::Tag { tag } => (format!("{text:?} cannot be a {tag}"), "drop the tag or mend the value"),
        Refusal::Base64 => ("the value of !!binary is not base64".to_owned(), "encode it, or drop the tag"),
    };
    Mistake::new(MistakeKind::Scalar, span, what).remedy(remedy.into())
}

/// A syntax error in words for people who do not know how a YAML parser works.
fn syntax(error: &ScanError, text: &str, offset: usize) -> Mistake {
    let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
    let (what, remedy) = explain(error.kind());
    let tab = remedy == TABS && text[..at].ends_with('\t');
    let at = if tab { at - 1 } else { at };
    // At the end of the text there is nothing to point at: the last thing that is there will do.
    let shown = if text[at..].trim().is_empty() { text.trim_end().len().saturating_sub(1) } else { at };
    let shown = (0..=shown).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let width = text[shown..].chars().next().map_or(0, char::len_utf8);
    let mistake = Mistake::new(
        MistakeKind::Syntax,
        Span::new(offset + shown, offset + shown + width),
        what.unwrap_or_else(|| error.info()),
    );
    Mistake { parser: Some(Box::new((error.info(), error.marker().line()))), ..mistake.remedy(remedy.into()) }
}

const TABS: &str = "indent with spaces";

fn explain(kind: &ErrorKind) -> (Option<String>, &'static str) {
    let said = |text: &str| Some(text.to_owned());
    match kind {
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            (said("a tab is used for indentation"), TABS)
        }
        ErrorKind::MappingValueNotAllowed => (
            said("a second `key: value` begins where a value is expected"),
            "quote the value if it holds `: `, or check the indentation",
        ),
        ErrorKind::ExpectedBlockMappingKey => {
            (said("a key was expected here"), "check the indentation: keys of one map stand in one column")
        }
        ErrorKind::ExpectedBlockSequenceEntry => {
            (said("a list item was expected here"), "check the indentation: the dashes of one list stand in one column")
        }
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            (said("a key without a colon"), "write `key: value`; the colon needs a blank after it")
        }
        ErrorKind::UnclosedQuotedScalar => (said("a quote is opened and never closed"), "close it"),
        ErrorKind::UnclosedFlowCollection { open } => {
            (Some(format!("the bracket {open} is opened and never closed")), "close it")
        }
        ErrorKind::ExpectedFlowMappingSeparator | ErrorKind::ExpectedFlowSequenceSeparator => (
            said("a comma or a closing bracket was expected here"),
            "separate items with commas, and close the bracket",
        ),
        ErrorKind::MisplacedFlowCollectionEnd | ErrorKind::MismatchedFlowCollectionEnd { .. } => {
            (said("this bracket closes nothing that is open"), "quote it if it is text")
        }
        ErrorKind::UnexpectedCharacter { character } => (
            Some(format!("no value can begin with {character}")),
            "quote the text: some characters mean something to YAML",
        ),
        ErrorKind::BlockSequenceEntryNotAllowed => {
            (said("a list cannot begin on the line of its key"), "put the first dash on the next line")
        }
        ErrorKind::RecursionLimitExceeded => {
            (Some(format!("values nest deeper than {DEPTH}")), "no Kubernetes object needs that")
        }
        ErrorKind::InvalidIndentation | ErrorKind::InvalidQuotedScalarIndent | ErrorKind::InvalidFlowScalarIndent => {
            (said("the indentation is wrong here"), "indent it deeper than the key it belongs to")
        }
        ErrorKind::UnknownQuotedScalarEscape => {
            (said("this escape is unknown"), "write two backslashes for one, or use single quotes")
        }
        _ => (None, "this is not YAML as kubectl reads it"),
    }
}
