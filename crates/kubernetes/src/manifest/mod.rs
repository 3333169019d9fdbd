//! Bytes of a file to Kubernetes objects, each node with its place: YAML and JSON exactly as kubectl reads them.
//!
//! A file that is wrong says so once per document, and its other documents are read all the same. Where kubectl is silent
//! about a loss (a key given twice, text after the end of a document, bytes that are no text) this module is not. Never
//! opens a file, never judges what an object says.

pub mod place;
mod quotes;
pub mod rendered;
pub mod scalar;
pub mod snippet;
pub mod yaml;

use std::sync::Arc;

use self::{
    place::{Place, Places, Position, Source, Span, Step},
    rendered::Origins,
};
use crate::value::Value;

/// The largest file that is read.
const LARGEST: usize = 256 << 20;
/// The largest document of a file; an API server takes objects of 1.5 MiB, written without blanks.
const LARGEST_DOCUMENT: usize = 2 << 20;
/// How many documents a file may have.
const DOCUMENTS: usize = 10_000;

/// What a file holds.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name and text.
    pub source: Arc<Source>,
    /// Its objects in order; lists are unfolded.
    pub objects: Vec<Object>,
    /// What is wrong with the text itself, in file order.
    pub mistakes: Vec<Mistake>,
}

/// An object and where it stands.
#[derive(Debug, Clone)]
pub struct Object {
    /// What it says.
    pub value: Value,
    /// The file it stands in; of a rendered one, that in which it was first written.
    pub source: Arc<Source>,
    layout: Layout,
}

/// Where the nodes of an object stand.
#[derive(Debug, Clone)]
enum Layout {
    /// In the text of its file.
    Text { places: Arc<Places>, root: Place },
    /// Each in one of several files.
    Rendered(Arc<Origins>),
}

/// Something that is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// What sort of thing.
    pub kind: MistakeKind,
    /// Where.
    pub span: Span,
    /// What.
    pub what: String,
    /// A second place that has to do with it, and how.
    pub also: Option<Box<(Span, String)>>,
    /// What to do about it.
    pub remedy: String,
    /// What the parser said, word for word, and in which line, if it was the one to complain.
    pub parser: Option<Box<(String, usize)>>,
}

/// The sorts of mistakes in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MistakeKind {
    /// It is not UTF-8.
    Encoding,
    /// It is not YAML.
    Syntax,
    /// A key is given twice in one map.
    Repeated,
    /// A scalar is no value.
    Scalar,
    /// A key is no text.
    Key,
    /// `<<` with something other than maps.
    Merge,
    /// It is too large, too deep, or a bomb.
    Budget,
    /// A document is no Kubernetes object.
    Shape,
    /// A plain key is not read as it is spelt: `on` is `"true"`.
    KeyReadOtherwise,
    /// `<<` replaces a key that stands before it.
    MergeReplaces,
    /// Text after the end of a document, which kubectl ignores.
    Ignored,
}

impl MistakeKind {
    /// Whether kubectl would refuse the document, or lose part of it, rather than read it in a surprising way.
    pub fn is_fatal(self) -> bool {
        match self {
            MistakeKind::Encoding
            | MistakeKind::Syntax
            | MistakeKind::Repeated
            | MistakeKind::Scalar
            | MistakeKind::Key
            | MistakeKind::Merge
            | MistakeKind::Budget
            | MistakeKind::Shape => true,
            MistakeKind::KeyReadOtherwise | MistakeKind::MergeReplaces | MistakeKind::Ignored => false,
        }
    }
}

impl Mistake {
    pub(crate) fn new(kind: MistakeKind, span: Span, what: String) -> Mistake {
        Mistake { kind, span, what, also: None, remedy: String::new(), parser: None }
    }

    fn remedy(self, remedy: String) -> Mistake {
        Mistake { remedy, ..self }
    }

    fn also(self, span: Span, what: String) -> Mistake {
        Mistake { also: Some(Box::new((span, what))), ..self }
    }
}

/// Reads a file. Never fails as a whole: what cannot be read is a mistake.
pub fn read(name: impl Into<String>, bytes: &[u8]) -> File {
    let mut reading = Reading::default();
    let text = match decode(bytes) {
        Ok(text) => text,
        Err((text, mistake)) => {
            let source = Arc::new(Source::new(name, text));
            return File { source, objects: Vec::new(), mistakes: vec![mistake] };
        }
    };
    if let Some(mistake) = control_character(text) {
        reading.mistakes.push(mistake);
    } else {
        let documents = documents(text, &mut reading.mistakes);
        for (number, (offset, document)) in documents.into_iter().enumerate() {
            if let Some((what, remedy)) = over_budget(number, document) {
                let mistake = Mistake::new(MistakeKind::Budget, Span::new(offset, offset), what);
                reading.mistakes.push(mistake.remedy(remedy.to_owned()));
                if number >= DOCUMENTS {
                    break;
                }
                continue;
            }
            reading.document(text, offset, document);
        }
    }
    reading.mistakes.sort_by_key(|mistake| mistake.span);
    let Reading { places, roots, mistakes } = reading;
    let (source, places) = (Arc::new(Source::new(name, text)), Arc::new(places));
    let layout = |root| Layout::Text { places: places.clone(), root };
    let object = |(value, root)| Object { value, source: source.clone(), layout: layout(root) };
    File { objects: roots.into_iter().map(object).collect(), source: source.clone(), mistakes }
}

/// The places of all nodes of a text, whatever else is wrong with it.
fn nodes(text: &str) -> Vec<Place> {
    let mut reading = Reading::default();
    for (number, (offset, document)) in documents(text, &mut Vec::new()).into_iter().enumerate() {
        if over_budget(number, document).is_none() {
            reading.document(text, offset, document);
        }
    }
    reading.places.0
}

/// The text of a file, or what stands before the first byte that is none.
fn decode(bytes: &[u8]) -> Result<&str, (&str, Mistake)> {
    let refuse = |text, at: usize, what: String, remedy: &str| {
        let mistake = Mistake::new(MistakeKind::Encoding, Span::new(at, at), what);
        Err((text, mistake.remedy(remedy.into())))
    };
    if bytes.len() > LARGEST {
        let what = format!("the file is larger than {} MiB", LARGEST >> 20);
        let mistake = Mistake::new(MistakeKind::Budget, Span::default(), what);
        return Err(("", mistake.remedy("no set of manifests needs that; split it".into())));
    }
    if matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return refuse("", 0, "the file is UTF-16".into(), "save it as UTF-8");
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).or_else(|error| {
        let at = error.valid_up_to();
        let text = std::str::from_utf8(&bytes[..at]).unwrap_or_default();
        let what = format!("the byte 0x{:02x} is no part of UTF-8 text", bytes[at]);
        refuse(text, at, what, "save the file as UTF-8; kubectl would put a replacement character there")
    })
}

/// Why a document is not read, although others are.
fn over_budget(number: usize, document: &str) -> Option<(String, &'static str)> {
    if number >= DOCUMENTS {
        return Some((format!("the file has more than {DOCUMENTS} documents"), "split it into several files"));
    }
    let what = || format!("the document is larger than {} MiB", LARGEST_DOCUMENT >> 20);
    (document.len() > LARGEST_DOCUMENT).then(|| (what(), "no API server takes that; split a list into documents"))
}

/// The first character that no YAML may hold.
fn control_character(text: &str) -> Option<Mistake> {
    let bytes = text.as_bytes();
    let at = bytes.iter().enumerate().position(|(at, byte)| match byte {
        b'\t' | b'\n' | b'\r' => false,
        0..0x20 | 0x7f => true,
        // The second set of control characters; and line breaks of YAML 1.1 that no editor shows: U+0085, U+2028, U+2029.
        0xc2 => matches!(bytes.get(at + 1), Some(0x80..=0x9f)),
        0xe2 => matches!(bytes.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])),
        _ => false,
    })?;
    let character = text[at..].chars().next().unwrap_or_default();
    let what = format!("the control character U+{:04X} is not allowed", u32::from(character));
    Some(
        Mistake::new(MistakeKind::Syntax, Span::new(at, at + character.len_utf8()), what)
            .remedy("remove it, or escape it in double quotes".into()),
    )
}

/// The stretches between lines of three dashes, as kubectl cuts them before it reads YAML, each with its offset.
fn documents<'t>(text: &'t str, mistakes: &mut Vec<Mistake>) -> Vec<(usize, &'t str)> {
    if let Some(stream) = json_stream(text) {
        return stream;
    }
    let (mut found, mut start, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix("---") {
            found.push((start, &text[start..at]));
            start = at + line.len();
            let rest = rest.trim();
            if !rest.is_empty() && !rest.starts_with('#') {
                let span = Span::new(at, at + line.trim_end().len());
                let what = "kubectl takes nothing after the three dashes that separate documents".into();
                mistakes.push(Mistake::new(MistakeKind::Syntax, span, what).remedy("put it on the next line".into()));
            }
        }
        at += line.len();
    }
    found.push((start, &text[start..]));
    found
}

/// JSON values one after the other, which kubectl takes as well.
fn json_stream(text: &str) -> Option<Vec<(usize, &str)>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let (mut found, mut start) = (Vec::new(), 0);
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    while let Some(value) = values.next() {
        value.ok()?;
        let end = values.byte_offset();
        found.push((start, &text[start..end]));
        start = end;
    }
    (found.len() > 1).then_some(found)
}

#[derive(Default)]
struct Reading {
    places: Places,
    roots: Vec<(Value, Place)>,
    mistakes: Vec<Mistake>,
}

impl Reading {
    fn document(&mut self, file: &str, offset: usize, text: &str) {
        // A mark at the start of a document is no part of it; kubectl takes it there too.
        let (offset, text) = match text.strip_prefix('\u{feff}') {
            Some(rest) => (offset + text.len() - rest.len(), rest),
            None => (offset, text),
        };
        let mut lines = text.split_inclusive('\n').scan(offset, |at, line| {
            *at += line.len();
            Some((*at - line.len(), line.trim_end()))
        });
        let first = lines.find(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        if let Some((at, line)) = first.filter(|(_, line)| line.starts_with('%')) {
            let what = "kubectl does not read YAML directives".into();
            let mistake = Mistake::new(MistakeKind::Syntax, Span::new(at, at + line.len()), what);
            return self
                .mistakes
                .push(mistake.remedy("remove the line: manifests are YAML 1.1 without directives".into()));
        }
        let Some(document) = yaml::read(text, offset, &mut self.places, &mut self.mistakes) else { return };
        if document.followed {
            let end = document.place.value.end as usize;
            let rest = &file[end..offset + text.len()];
            let remedy = "separate documents with `---`".into();
            self.mistakes.push(match rest.find("...") {
                Some(dots) => {
                    let span = Span::new(end + dots, end + dots + 3);
                    let what = "kubectl ignores everything between `...` and the next `---`".into();
                    Mistake::new(MistakeKind::Ignored, span, what).remedy(remedy)
                }
                None => {
                    let at = end + rest.len() - rest.trim_start().len();
                    let what = "something stands after the end of the document".into();
                    Mistake::new(MistakeKind::Syntax, Span::new(at, at + 1), what).remedy(remedy)
                }
            });
        }
        self.object(document.value, document.place);
    }

    /// Takes a document's value if it is an object, and the items of a list one by one.
    fn object(&mut self, value: Value, place: Place) {
        match &value {
            Value::Null => return,
            Value::Map(map) if map.contains_key("items") => return self.list(&value, place),
            Value::Map(_) => {}
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::List(_) => {
                let what = format!("a document is a Kubernetes object, not {}", article(value.type_name()));
                return self.refuse(place.value, what, "write `apiVersion:`, `kind:` and `metadata:`");
            }
        }
        for field in ["kind", "apiVersion"] {
            match value.get(field) {
                Some(Value::Str(text)) if !text.is_empty() => {}
                None | Some(Value::Null | Value::Str(_)) => {
                    return self.refuse(
                        place.value,
                        format!("the object has no {field}"),
                        "every Kubernetes object says its apiVersion and kind",
                    );
                }
                Some(_) => {
                    let (at, _) = self.places.follow(place, &value, [Step::Key(field)].into_iter());
                    return self.refuse(at.value, format!("{field} is not text"), "quote it");
                }
            }
        }
        self.roots.push((value, place));
    }

    /// Anything with `items` is a list; an item without a kind has that of the list.
    fn list(&mut self, list: &Value, place: Place) {
        let (items_place, _) = self.places.follow(place, list, [Step::Key("items")].into_iter());
        let Some(items) = list.get("items").and_then(Value::as_list) else {
            if !list.get("items").is_some_and(Value::is_null) {
                let what = "an object with `items` is a list, and its items must be one".into();
                self.refuse(items_place.key, what, "kubectl takes the field `items` for that of a List");
            }
            return;
        };
        for (index, item) in items.iter().enumerate() {
            let (at, _) =
                self.places.follow(items_place, list.get("items").unwrap_or(list), [Step::Index(index)].into_iter());
            let mut item = item.clone();
            if let (Value::Map(map), Some(kind)) =
                (&mut item, list.str_at(&["kind"]).and_then(|kind| kind.strip_suffix("List")))
                && !map.contains_key("kind")
                && !kind.is_empty()
            {
                // The places of the item keep their order, so what is added must not shift them: see `follow`.
                let inherited = Value::Map(map.clone());
                self.inherit(inherited, kind, list, at);
                continue;
            }
            if item.get("items").is_some() {
                self.refuse(
                    at.value,
                    "a list in a list".into(),
                    "kubectl does not unfold it; put its items into the outer list",
                );
                continue;
            }
            self.object(item, at);
        }
    }

    /// An item that takes its kind and version from its list: its places are laid out anew beside the two fields.
    fn inherit(&mut self, mut item: Value, kind: &str, list: &Value, at: Place) {
        let Some(map) = item.as_map_mut() else { return };
        let old: Vec<(String, usize)> = map.keys().enumerate().map(|(i, key)| (key.to_string(), i)).collect();
        map.insert("kind", kind);
        if !map.contains_key("apiVersion")
            && let Some(version) = list.get("apiVersion")
        {
            map.insert("apiVersion", version.clone());
        }
        let first = u32::try_from(self.places.0.len()).unwrap_or(u32::MAX);
        let laid: Vec<Place> = map
            .keys()
            .map(|key| {
                let known = old.iter().find(|(name, _)| name == key.as_str());
                known.and_then(|(_, i)| self.places.0.get(at.first as usize + i).copied()).unwrap_or(at)
            })
            .collect();
        self.places.0.extend(laid);
        self.object(item, Place { first, ..at });
    }

    fn refuse(&mut self, span: Span, what: String, remedy: &str) {
        self.mistakes.push(Mistake::new(MistakeKind::Shape, span, what).remedy(remedy.into()));
    }
}

fn article(noun: &str) -> String {
    let an = if noun.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{an} {noun}")
}

impl Object {
    /// Its `kind`.
    pub fn kind(&self) -> &str {
        self.value.str_at(&["kind"]).unwrap_or_default()
    }

    /// Its `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.value.str_at(&["apiVersion"]).unwrap_or_default()
    }

    /// The API group: what stands before the slash of the version.
    pub fn group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// Its name, or `""`.
    pub fn name(&self) -> &str {
        self.value.str_at(&["metadata", "name"]).unwrap_or_default()
    }

    /// Its namespace, or `""`.
    pub fn namespace(&self) -> &str {
        self.value.str_at(&["metadata", "namespace"]).unwrap_or_default()
    }

    /// One that was rendered from several files; `source` is that in which it was first written.
    pub fn rendered(value: Value, source: Arc<Source>, origins: Origins) -> Object {
        Object { value, source, layout: Layout::Rendered(Arc::new(origins)) }
    }

    /// The other files that wrote a part of it, each with the first place there; none unless it was rendered.
    pub fn patched(&self) -> impl Iterator<Item = (&Source, Position)> {
        let origins = match &self.layout {
            Layout::Text { .. } => None,
            Layout::Rendered(origins) => Some(origins),
        };
        let patched = origins.into_iter().flat_map(|origins| origins.patched.iter().map(move |at| (origins, at)));
        patched.filter_map(|(origins, (source, at))| Some((&**origins.sources.get(*source)?, *at)))
    }

    /// The stretches of text in which it stands: one of its file, or one of each file that it was rendered from.
    pub fn extents(&self) -> Vec<(&Source, Span)> {
        match &self.layout {
            Layout::Text { root, .. } => vec![(&*self.source, root.value)],
            Layout::Rendered(origins) => origins.extents(),
        }
    }

    fn stand<'a>(&self, steps: impl IntoIterator<Item = Step<'a>>) -> (&Arc<Source>, Place, bool) {
        let mut asked = 0;
        let steps = steps.into_iter().inspect(|_| asked += 1);
        let (source, place, taken) = match &self.layout {
            Layout::Text { places, root } => {
                let (place, taken) = places.follow(*root, &self.value, steps);
                (&self.source, place, taken)
            }
            Layout::Rendered(origins) => {
                let (origin, _, taken) = origins.follow(&self.value, steps);
                let (source, place) = origins.place(origin).unwrap_or((&self.source, Place::default()));
                (source, place, taken)
            }
        };
        (source, place, taken == asked)
    }

    /// Where a node stands in [`source_of`](Object::source_of) it, and whether it is there: an absent node stands where its
    /// nearest ancestor does.
    pub fn place<'a>(&self, steps: impl IntoIterator<Item = Step<'a>>) -> (Place, bool) {
        let (_, place, there) = self.stand(steps);
        (place, there)
    }

    /// The file that a node stands in.
    pub fn source_of<'a>(&self, steps: impl IntoIterator<Item = Step<'a>>) -> &Arc<Source> {
        match &self.layout {
            Layout::Text { .. } => &self.source,
            Layout::Rendered(origins) => {
                let (origin, _, _) = origins.follow(&self.value, steps.into_iter());
                origins.sources.get(origin.source).unwrap_or(&self.source)
            }
        }
    }

    /// What to point at in [`source_of`](Object::source_of) a node when something is to be said about it: a value that stands on
    /// one line, or else the key, or else the first line of the value.
    pub fn span<'a>(&self, steps: impl IntoIterator<Item = Step<'a>>) -> Span {
        let (source, place, there) = self.stand(steps);
        let line = source.first_line(place.value);
        if there && !line.is_empty() && (line == place.value || place.key.is_empty()) {
            return line;
        }
        if place.key.is_empty() { line } else { place.key }
    }

    /// The key of a node if it has one, or else what [`span`](Object::span) points at.
    pub fn key_span<'a>(&self, steps: impl IntoIterator<Item = Step<'a>> + Clone) -> Span {
        let (place, there) = self.place(steps.clone());
        if there && !place.key.is_empty() { place.key } else { self.span(steps) }
    }

    /// The line and column of what [`span`](Object::span) points at.
    pub fn position<'a>(&self, steps: impl IntoIterator<Item = Step<'a>> + Clone) -> Position {
        if let Layout::Rendered(origins) = &self.layout {
            let (origin, value, taken) = origins.follow(&self.value, steps.clone().into_iter());
            let is_scalar = !matches!(value, Value::Map(_) | Value::List(_));
            // Its place is known without reading the text.
            if let Some(source) = origins.sources.get(origin.source)
                && is_scalar
                && taken == steps.clone().into_iter().count()
            {
                return source.position(origin.at);
            }
        }
        self.source_of(steps.clone()).position(self.span(steps).start)
    }

    /// Calls `see` with the path, the value and the place of every node, parents first; with none of a rendered object.
    pub fn walk(&self, mut see: impl FnMut(&[place::Crumb], &Value, Place)) {
        if let Layout::Text { places, root } = &self.layout {
            places.walk(*root, &self.value, &mut see);
        }
    }
}

#[cfg(test)]
mod tests;
