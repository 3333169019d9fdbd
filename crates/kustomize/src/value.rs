//! Between nodes and JSON values: what kustomize does whenever it writes an object as JSON or reads one back.

use std::rc::Rc;

use serde_json::{Map, Number, Value};

use crate::{
    emit::{self, Version},
    fault::{At, Fault, Res},
    node::{Arena, DEPTH, Id, Kind, Node, Style, Tag},
    scalar::{self, Scalar},
};

/// A float as a JSON number; one without a fraction is an integer if it fits. `None` for what JSON cannot write.
pub fn number(float: f64) -> Option<Number> {
    if !float.is_finite() {
        return None;
    }
    let text = scalar::go_json(float);
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    if let Ok(integer) = text.parse::<u64>() {
        return Some(integer.into());
    }
    Number::from_f64(float)
}

/// The places of a value's parts, in the order of the value's own parts: elements of a list, values of a map by key.
#[derive(Clone, Debug, Default)]
pub struct Spots {
    pub at: At,
    pub parts: Vec<Spots>,
}

/// An object or a part of it as JSON.
pub fn of(arena: &Arena, id: Id) -> Res<Value> {
    convert(arena, id, Nesting { depth: 0, flow: false, written: true }).map(|(value, _)| value)
}

/// The same with places.
pub fn with_spots(arena: &Arena, id: Id) -> Res<(Value, Spots)> {
    convert(arena, id, Nesting { depth: 0, flow: false, written: true })
}

/// An object as JSON without the detour through text.
pub fn decoded(arena: &Arena, id: Id) -> Res<Value> {
    convert(arena, id, Nesting { depth: 0, flow: false, written: false }).map(|(value, _)| value)
}

#[derive(Clone, Copy)]
struct Nesting {
    depth: usize,
    flow: bool,
    /// Written as YAML and read again, which changes what some scalars say.
    written: bool,
}

fn convert(arena: &Arena, id: Id, nesting: Nesting) -> Res<(Value, Spots)> {
    let node = arena.get(id);
    if nesting.depth > DEPTH {
        return Err(Fault::budget(format!("values lie more than {DEPTH} levels deep")).at(node.at));
    }
    let flow = nesting.flow || node.style.has(Style::FLOW);
    let inner = Nesting { depth: nesting.depth + 1, flow, ..nesting };
    match node.kind {
        Kind::Scalar => {
            arena.write(node.text.len())?;
            Ok((scalar_value(node, nesting)?, Spots { at: node.at, parts: Vec::new() }))
        }
        Kind::List => {
            let mut parts = Vec::with_capacity(node.content.len());
            let mut list = Vec::with_capacity(node.content.len());
            for element in &node.content {
                let (value, spots) = convert(arena, *element, inner)?;
                list.push(value);
                parts.push(spots);
            }
            Ok((Value::Array(list), Spots { at: node.at, parts }))
        }
        Kind::Map => {
            let mut fields: Vec<(Rc<str>, Id, Id)> = Vec::with_capacity(node.content.len() / 2);
            for (key, value) in arena.pairs(id) {
                match key_of(arena.get(key), nesting)? {
                    Some(name) => fields.push((name, key, value)),
                    None => continue,
                }
            }
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            if let Some(twice) = fields.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                let (first, second) = (arena.at(twice[0].1), arena.at(twice[1].1));
                let fault = Fault::new(format!("the key {:?} stands twice in one map", &*twice[0].0));
                return Err(fault
                    .at(second.max(first))
                    .also(first.min(second), "first here")
                    .remedy("remove one of them"));
            }
            let mut map = Map::new();
            let mut parts = Vec::with_capacity(fields.len());
            for (name, _, value) in fields {
                let (value, spots) = convert(arena, value, inner)?;
                map.insert(name.to_string(), value);
                parts.push(spots);
            }
            Ok((Value::Object(map), Spots { at: node.at, parts }))
        }
    }
}

/// The name of a field. At the top of an object a number is a name and null is none; further in both are errors.
fn key_of(node: &Node, nesting: Nesting) -> Res<Option<Rc<str>>> {
    if node.kind != Kind::Scalar {
        return Err(Fault::new("a list or a map cannot be a key").at(node.at));
    }
    let read = if nesting.written {
        emit::read_back(node.style, &node.tag, &node.text, nesting.flow)
    } else {
        plain_read(node)
    };
    match read {
        Some(Scalar::Text) => Ok(Some(node.text.clone())),
        Some(Scalar::Null) if node.text.is_empty() && nesting.written => Ok(Some(node.text.clone())),
        Some(Scalar::Null) if nesting.depth == 0 => Ok(None),
        Some(_) if nesting.depth == 0 => Ok(Some(node.text.clone())),
        Some(_) => Err(Fault::new(format!("the key {} is not a string", node.text))
            .at(node.at)
            .remedy(format!("quote it: {:?}", &*node.text))),
        None => Err(Fault::new(format!("the key {} is not of the type that its tag names", node.text)).at(node.at)),
    }
}

fn plain_read(node: &Node) -> Option<Scalar> {
    if node.tag == Tag::Str || (node.tag == Tag::None && node.style.is_text()) {
        return Some(Scalar::Text);
    }
    match &node.tag {
        Tag::None => Some(scalar::resolve(&node.text)),
        Tag::Other(_) | Tag::Binary | Tag::Map | Tag::List | Tag::Merge => Some(Scalar::Text),
        tag => scalar::resolve_tagged(tag, &node.text),
    }
}

fn scalar_value(node: &Node, nesting: Nesting) -> Res<Value> {
    let read = if nesting.written {
        emit::read_back(node.style, &node.tag, &node.text, nesting.flow)
    } else {
        plain_read(node)
    };
    let unwritable = |what: String, remedy: &str| Fault::new(what).at(node.at).remedy(remedy);
    match read {
        Some(Scalar::Text) if node.tag == Tag::Binary => {
            use base64::Engine;
            let compact: String = node.text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(compact).map_err(|_| {
                unwritable("!!binary stands before a text that is not base64".to_owned(), "remove the tag")
            })?;
            Ok(String::from_utf8_lossy(&bytes).into_owned().into())
        }
        Some(Scalar::Text | Scalar::Merge) => Ok(node.text.as_ref().into()),
        Some(Scalar::Null) => Ok(Value::Null),
        Some(Scalar::Bool(value)) => Ok(value.into()),
        Some(Scalar::Int(value)) => Ok(value.into()),
        Some(Scalar::Uint(value)) => Ok(value.into()),
        Some(Scalar::Float(value)) => number(value).map(Value::Number).ok_or_else(|| {
            unwritable("an infinite value cannot be written in JSON".to_owned(), "quote it if a text is meant")
        }),
        Some(Scalar::Time(text)) => Ok(text.into()),
        None => Err(unwritable(
            "a value was put where one of another type stands".to_owned(),
            "give the field a value of the type that is put there, or quote the value there",
        )),
    }
}

/// Nodes for a value as Go writes it and reads it back. Places come from `old` where it has the same path, else from
/// `at`.
pub fn to_node(arena: &mut Arena, value: &Value, old: Option<Id>, at: At) -> Res<Id> {
    arena.check()?;
    let here = old.map_or(at, |old| arena.at(old));
    let node = match value {
        Value::Null => Node::scalar("null", Tag::Null, here),
        Value::Bool(true) => Node::scalar("true", Tag::Bool, here),
        Value::Bool(false) => Node::scalar("false", Tag::Bool, here),
        Value::Number(number) => {
            // Every number has been a float on the way.
            let text = scalar::go_shortest(number.as_f64().unwrap_or_default());
            let tag = scalar::resolve(&text).tag();
            Node::scalar(&text, tag, here)
        }
        Value::String(text) => Node { style: emit::style_after_writing(text), ..Node::scalar(text, Tag::Str, here) },
        Value::Array(list) => {
            let olds =
                old.map(|old| arena.get(old)).filter(|old| old.kind == Kind::List).map(|old| old.content.clone());
            let mut content = Vec::with_capacity(list.len());
            for (index, element) in list.iter().enumerate() {
                let old = olds.as_ref().and_then(|olds| olds.get(index)).copied();
                content.push(to_node(arena, element, old, at)?);
            }
            let style = if list.is_empty() { Style::FLOW } else { Style::PLAIN };
            Node { content, tag: Tag::List, style, ..Node::list(here) }
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_by(|a, b| emit::compare_keys(a, b, Version::V3));
            let mut content = Vec::with_capacity(2 * keys.len());
            for key in keys {
                let field = old.and_then(|old| arena.field(old, key));
                let key_at = field.map_or(at, |(key, _)| arena.at(key));
                let style = emit::style_after_writing(key);
                let style = if style == Style::LITERAL { Style::DOUBLE } else { style };
                content.push(arena.add(Node { style, ..Node::scalar(key, Tag::Str, key_at) }));
                content.push(to_node(arena, &map[key], field.map(|(_, value)| value), at)?);
            }
            let style = if map.is_empty() { Style::FLOW } else { Style::PLAIN };
            Node { content, tag: Tag::Map, style, ..Node::map(here) }
        }
    };
    Ok(arena.add(node))
}

/// Nodes for a value as read from JSON text: everything in brackets and quotes.
pub fn from_json_text(arena: &mut Arena, value: &Value, old: Id) -> Res<Id> {
    arena.check()?;
    let at = arena.at(old);
    let node = match value {
        Value::Null => Node::scalar("null", Tag::Null, at),
        Value::Bool(true) => Node::scalar("true", Tag::Bool, at),
        Value::Bool(false) => Node::scalar("false", Tag::Bool, at),
        Value::Number(number) => {
            let text = go_number(number);
            let tag = scalar::resolve(&text).tag();
            Node::scalar(&text, tag, at)
        }
        Value::String(text) => Node { style: Style::DOUBLE, ..Node::scalar(text, Tag::Str, at) },
        Value::Array(list) => {
            let olds = arena.get(old).content.clone();
            let mut content = Vec::with_capacity(list.len());
            for (element, old) in list.iter().zip(olds) {
                content.push(from_json_text(arena, element, old)?);
            }
            Node { content, tag: Tag::List, style: Style::FLOW, ..Node::list(at) }
        }
        Value::Object(map) => {
            let mut content = Vec::with_capacity(2 * map.len());
            for (key, value) in map {
                let Some((old_key, old_value)) = arena.field(old, key) else { continue };
                let key_at = arena.at(old_key);
                content.push(arena.add(Node { style: Style::DOUBLE, ..Node::scalar(key, Tag::Str, key_at) }));
                content.push(from_json_text(arena, value, old_value)?);
            }
            Node { content, tag: Tag::Map, style: Style::FLOW, ..Node::map(at) }
        }
    };
    Ok(arena.add(node))
}

fn go_number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => scalar::go_json(float),
        _ => number.to_string(),
    }
}

/// JSON text as Go's encoder writes it: keys in order, no blanks, and `<`, `>`, `&` escaped.
pub fn go_json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out, None, 0);
    out
}

/// The same over several lines, two blanks deep.
pub fn go_json_pretty(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out, Some("  "), 0);
    out
}

fn write_json(value: &Value, out: &mut String, indent: Option<&str>, depth: usize) {
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = indent {
            out.push('\n');
            out.push_str(&indent.repeat(depth));
        }
    };
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&go_number(number)),
        Value::String(text) => write_string(text, out),
        Value::Array(list) if list.is_empty() => out.push_str("[]"),
        Value::Object(map) if map.is_empty() => out.push_str("{}"),
        Value::Array(list) => {
            for (index, element) in list.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                line(out, depth + 1);
                write_json(element, out, indent, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        Value::Object(map) => {
            for (index, (key, value)) in map.iter().enumerate() {
                out.push(if index == 0 { '{' } else { ',' });
                line(out, depth + 1);
                write_string(key, out);
                out.push_str(if indent.is_some() { ": " } else { ":" });
                write_json(value, out, indent, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
