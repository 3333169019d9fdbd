//! What decoding a value into a built-in kind's Go type, and encoding it again, makes of it.
//!
//! The real server never stores what it was sent, but what its structs hold: unknown fields vanish, zeros vanish or
//! appear as `omitempty` says, quantities and times become canonical, and a value of the wrong type is refused in the
//! words of Go's JSON package. A subtree that comes out as it went in is the same shared subtree afterwards.
//!
//! Never fills defaults and never judges values: that is [`builtin`](crate::builtin).

use std::{borrow::Cow, fmt::Write};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    Empty, Field, Schema, Shape, Struct,
    gotime::{Precision, Read, reread},
    quantity,
};
use crate::{
    facts,
    kind::Kind,
    value::{Map, Text, Value},
};

/// A value as the Go type holds it.
#[derive(Debug)]
pub struct Decoded {
    /// The value.
    pub value: Value,
    /// The fields the type does not have, as the strict decoder names them: `spec.containers[0].foo`. At most 100.
    pub unknown: Vec<String>,
}

/// Decodes a whole object. The error is Go's message, such as `json: cannot unmarshal string into Go struct field
/// DeploymentSpec.spec.replicas of type int32`.
pub fn decode(kind: &Kind, schema: &Schema, value: &Value) -> Result<Decoded, String> {
    decode_since(kind, schema, value, &Value::Null)
}

/// Decodes an object that shares subtrees with one that was decoded before: these need no second look.
pub fn decode_since(kind: &Kind, schema: &Schema, value: &Value, known: &Value) -> Result<Decoded, String> {
    // CRDs are stored as JSON, which tells an empty list from none; all else as protobuf, which does not.
    let protobuf = kind.group != "apiextensions.k8s.io";
    let mut walk = Walk { unknown: Vec::new(), wrong: None, protobuf, silent: false };
    let new = walk.value(schema, value, Some(known), &At::Root).map_err(|Fatal(message)| message)?;
    match walk.wrong {
        Some(message) => Err(message),
        None => Ok(Decoded { value: new.unwrap_or_else(|| value.clone()), unknown: walk.unknown }),
    }
}

/// An error that ends decoding at once. Type errors do not: Go notes the first and reads on.
struct Fatal(String);

/// Where the walk is: a chain on the stack, rendered only when there is something to say.
enum At<'a> {
    Root,
    Field {
        parent: &'a At<'a>,
        owner: &'a Schema,
        name: &'a Text,
    },
    Key {
        parent: &'a At<'a>,
        key: &'a Text,
    },
    Index {
        parent: &'a At<'a>,
        index: usize,
    },
    /// A type that decodes itself: errors below name the struct above.
    Own {
        parent: &'a At<'a>,
    },
}

/// The state of one decoding.
struct Walk {
    unknown: Vec<String>,
    /// The first type error.
    wrong: Option<String>,
    protobuf: bool,
    /// Inside a type with a decoder of its own, which does not report unknown fields.
    silent: bool,
}

/// `None`: the value stays as it is.
type Change = Result<Option<Value>, Fatal>;

impl Walk {
    /// A value that is not `null`, or one whose `null` means zero.
    fn value(&mut self, schema: &Schema, value: &Value, known: Option<&Value>, at: &At) -> Change {
        if known.is_some_and(|known| is_container(value) && value.is(known)) {
            return Ok(None);
        }
        if value.is_null() && !matches!(schema.shape, Shape::Any) {
            return Ok(Some(zero(schema)));
        }
        match (&schema.shape, value) {
            (Shape::Any, _) => self.any(schema, value, at),
            (Shape::Struct(fields), Value::Map(map)) => self.fields(schema, fields, map, known, at),
            (Shape::Map { values, .. }, Value::Map(map)) => self.map(values, map, known, at),
            (Shape::List { items, .. }, Value::List(list)) => self.list(items, list, known, at),
            (Shape::Bool, Value::Bool(_)) | (Shape::Str | Shape::Duration, Value::Str(_)) => Ok(None),
            (Shape::Int64, Value::Int(_)) | (Shape::Number, Value::Int(_) | Value::Float(_)) => Ok(None),
            (Shape::Int32, Value::Int(n)) if i32::try_from(*n).is_ok() => Ok(None),
            (Shape::IntOrString, Value::Str(_)) => Ok(None),
            (Shape::IntOrString, Value::Int(n)) if i32::try_from(*n).is_ok() => Ok(None),
            (Shape::Int32 | Shape::Int64, Value::Int(_) | Value::Float(_)) => {
                self.mismatch(&format!("number {}", number(value)), &go_name(schema), at)
            }
            (Shape::Quantity, _) => quantity(value),
            (Shape::Time, Value::Str(text)) => time(text, Precision::Second),
            (Shape::MicroTime, Value::Str(text)) => time(text, Precision::Micro),
            (Shape::Bytes, Value::Str(text)) => self.bytes(text),
            (Shape::Bytes, Value::List(items)) => self.byte_list(items, at),
            // These types decode themselves, and what they say ends decoding.
            (Shape::IntOrString, Value::Int(_) | Value::Float(_)) => {
                Err(Fatal(at.mismatch(&format!("number {}", number(value)), "int32")))
            }
            (Shape::IntOrString, _) => Err(Fatal(at.mismatch(go_kind(value), "int32"))),
            (Shape::Time | Shape::MicroTime | Shape::Duration, _) => Err(Fatal(at.mismatch(go_kind(value), "string"))),
            (
                Shape::Bool
                | Shape::Int32
                | Shape::Int64
                | Shape::Number
                | Shape::Str
                | Shape::Bytes
                | Shape::Struct(_)
                | Shape::Map { .. }
                | Shape::List { .. },
                _,
            ) => self.mismatch(go_kind(value), &go_name(schema), at),
        }
    }

    /// Notes a value of the wrong type.
    fn mismatch(&mut self, found: &str, go: &str, at: &At) -> Change {
        self.wrong.get_or_insert_with(|| at.mismatch(found, go));
        Ok(None)
    }

    fn note_unknown(&mut self, at: &At, key: &str) {
        if self.silent || self.unknown.len() >= 100 {
            return;
        }
        let mut path = String::new();
        at.write_path(&mut path);
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        self.unknown.push(path);
    }

    /// The fields of a struct, walked together with those of the value: both are sorted.
    fn fields(&mut self, schema: &Schema, fields: &Struct, map: &Map, known: Option<&Value>, at: &At) -> Change {
        let known = known.and_then(Value::as_map);
        let mut out = Copy { map, taken: 0, new: None };
        let mut declared = fields.fields.iter().peekable();
        for (key, value) in map.iter() {
            while let Some((name, field)) = declared.next_if(|(name, _)| !Text::ptr_eq(name, key) && name < key) {
                out.show_absent(name, field);
            }
            let Some((name, field)) = declared.next_if(|(name, _)| Text::ptr_eq(name, key) || name == key) else {
                self.note_unknown(at, key);
                out.skip();
                continue;
            };
            let known = known.filter(|_| is_container(value)).and_then(|known| known.get(key));
            let change = match value {
                Value::Null => None,
                value => self.value(&field.schema, value, known, &At::Field { parent: at, owner: schema, name })?,
            };
            match self.settle(field, change.as_ref().unwrap_or(value)) {
                Settled::Stay => match change {
                    Some(change) => out.replace(key, change),
                    None => out.keep(key, value),
                },
                Settled::Drop => out.skip(),
                Settled::Become(value) => out.replace(key, value),
            }
        }
        for (name, field) in declared {
            out.show_absent(name, field);
        }
        Ok(out.finish())
    }

    /// What Go's encoder does with a field that holds this.
    fn settle(&self, field: &Field, value: &Value) -> Settled {
        match field.empty {
            Empty::Keep if value.is_null() => Settled::Drop,
            Empty::Keep => Settled::Stay,
            Empty::Omit if is_zero(&field.schema, value) => Settled::Drop,
            Empty::Omit => Settled::Stay,
            Empty::Show if value.is_null() => Settled::Become(zero(&field.schema)),
            Empty::Show => Settled::Stay,
            Empty::Null if self.protobuf && is_empty_container(&field.schema, value) => Settled::Become(Value::Null),
            Empty::Null => Settled::Stay,
        }
    }

    fn map(&mut self, values: &Schema, map: &Map, known: Option<&Value>, at: &At) -> Change {
        let known = known.and_then(Value::as_map);
        let mut out = Copy { map, taken: 0, new: None };
        for (key, value) in map.iter() {
            let known = known.filter(|_| is_container(value)).and_then(|known| known.get(key));
            match self.value(values, value, known, &At::Key { parent: at, key })? {
                // A list within a map is a message of its own in protobuf: there, but empty.
                Some(Value::Null) if matches!(values.shape, Shape::List { .. }) => out.replace(key, Vec::new().into()),
                Some(value) => out.replace(key, value),
                None => out.keep(key, value),
            }
        }
        Ok(out.finish())
    }

    fn list(&mut self, items: &Schema, list: &[Value], known: Option<&Value>, at: &At) -> Change {
        let known = known.and_then(Value::as_list).unwrap_or_default();
        let mut new: Option<Vec<Value>> = None;
        for (index, item) in list.iter().enumerate() {
            let change = self.value(items, item, known.get(index), &At::Index { parent: at, index })?;
            match (&mut new, change) {
                (None, None) => {}
                (None, Some(change)) => {
                    let mut copy = Vec::with_capacity(list.len());
                    copy.extend_from_slice(&list[..index]);
                    copy.push(change);
                    new = Some(copy);
                }
                (Some(new), change) => new.push(change.unwrap_or_else(|| item.clone())),
            }
        }
        Ok(new.map(Value::from))
    }

    /// Raw JSON is kept; a type that recurs is looked up and walked.
    fn any(&mut self, schema: &Schema, value: &Value, at: &At) -> Change {
        let Some(props) = schema.name.as_deref().and_then(|name| name.split_once("JSONSchemaProps")) else {
            return Ok(None);
        };
        let name = format!("{}JSONSchemaProps", props.0);
        let Some(recurring) = facts::named(&name) else { return Ok(None) };
        match (props.1, value) {
            ("", Value::Null) => Ok(Some(zero(recurring))),
            ("", _) => self.value(recurring, value, None, at),
            ("OrBool", Value::Bool(_)) | ("OrStringArray", Value::List(_)) => Ok(None),
            (_, Value::Map(_)) => self.apart(|walk| walk.value(recurring, value, None, &At::Own { parent: at })),
            ("OrArray", Value::List(items)) => {
                self.apart(|walk| walk.list(recurring, items, None, &At::Own { parent: at }))
            }
            _ => Ok(None),
        }
    }

    /// Decodes as a type with a decoder of its own does: it reports no unknown fields, and its error ends the rest.
    fn apart(&mut self, walk: impl FnOnce(&mut Walk) -> Change) -> Change {
        let mut inner = Walk { unknown: Vec::new(), wrong: None, protobuf: self.protobuf, silent: true };
        let change = walk(&mut inner)?;
        inner.wrong.map_or(Ok(change), |message| Err(Fatal(message)))
    }

    fn bytes(&mut self, text: &Text) -> Change {
        match decode_base64(text.as_bytes()) {
            Ok(bytes) => {
                let written = STANDARD.encode(bytes);
                Ok((written != *text).then(|| written.into()))
            }
            Err(at) => {
                self.wrong.get_or_insert_with(|| format!("illegal base64 data at input byte {at}"));
                Ok(None)
            }
        }
    }

    /// Go takes a list of numbers for bytes.
    fn byte_list(&mut self, items: &[Value], at: &At) -> Change {
        let mut bytes = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::Int(n) if u8::try_from(*n).is_ok() => bytes.push(*n as u8),
                Value::Null => bytes.push(0),
                Value::Int(_) | Value::Float(_) => {
                    return self.mismatch(&format!("number {}", number(item)), "uint8", at);
                }
                _ => return self.mismatch(go_kind(item), "uint8", at),
            }
        }
        Ok(Some(STANDARD.encode(bytes).into()))
    }
}

enum Settled {
    Stay,
    Drop,
    Become(Value),
}

/// A map that is copied only once something in it changes.
struct Copy<'a> {
    map: &'a Map,
    /// How many fields of the map have been dealt with.
    taken: usize,
    new: Option<Vec<(Text, Value)>>,
}

impl Copy<'_> {
    /// What is copied so far; from now on everything is.
    fn copied(&mut self) -> &mut Vec<(Text, Value)> {
        let (map, taken) = (self.map, self.taken);
        self.new.get_or_insert_with(|| {
            let mut copy = Vec::with_capacity(map.len() + 2);
            copy.extend(map.iter().take(taken).map(|(key, value)| (key.clone(), value.clone())));
            copy
        })
    }

    fn keep(&mut self, key: &Text, value: &Value) {
        if let Some(new) = &mut self.new {
            new.push((key.clone(), value.clone()));
        }
        self.taken += 1;
    }

    fn replace(&mut self, key: &Text, value: Value) {
        self.copied().push((key.clone(), value));
        self.taken += 1;
    }

    fn skip(&mut self) {
        self.copied();
        self.taken += 1;
    }

    /// Shows a field that the value does not have, if Go's encoder would.
    fn show_absent(&mut self, name: &Text, field: &Field) {
        let value = match field.empty {
            Empty::Keep | Empty::Omit => return,
            Empty::Show => zero(&field.schema),
            Empty::Null => Value::Null,
        };
        self.copied().push((name.clone(), value));
    }

    fn finish(self) -> Option<Value> {
        self.new.map(|fields| Value::Map(fields.into_iter().collect()))
    }
}

impl<'a> At<'a> {
    /// The struct whose field is being decoded; `None` at the top.
    fn owner(&self) -> Option<&'a Schema> {
        let (mut at, mut found) = (self, None);
        loop {
            at = match at {
                At::Root => return found,
                At::Field { parent, owner, .. } => {
                    found.get_or_insert(*owner);
                    parent
                }
                At::Key { parent, .. } | At::Index { parent, .. } => parent,
                At::Own { parent } => {
                    found = None;
                    parent
                }
            }
        }
    }

    /// Go's words for a value of the wrong type.
    fn mismatch(&self, found: &str, go: &str) -> String {
        let mut message = format!("json: cannot unmarshal {found} into Go ");
        match self.owner() {
            Some(owner) => {
                let _ = write!(message, "struct field {}.", owner.go_type());
                self.write_fields(&mut message);
            }
            None => message.push_str("value"),
        }
        let _ = write!(message, " of type {go}");
        message
    }

    /// The path as type errors name it: fields only, and the embedded structs they are declared in.
    fn write_fields(&self, out: &mut String) {
        match self {
            At::Root => {}
            At::Field { parent, owner, name } => {
                let before = out.len();
                parent.write_fields(out);
                if out.len() > before {
                    out.push('.');
                }
                if let Some(embedded) = owner.name.as_deref().and_then(|owner| facts::embedded_in(owner, name)) {
                    let _ = write!(out, "{embedded}.");
                }
                out.push_str(name);
            }
            At::Key { parent, .. } | At::Index { parent, .. } | At::Own { parent } => parent.write_fields(out),
        }
    }

    /// The path as strict errors name it.
    fn write_path(&self, out: &mut String) {
        let (parent, name) = match self {
            At::Root => return,
            At::Own { parent } => return parent.write_path(out),
            At::Field { parent, name, .. } => (parent, name),
            At::Key { parent, key } => (parent, key),
            At::Index { parent, index } => {
                parent.write_path(out);
                let _ = write!(out, "[{index}]");
                return;
            }
        };
        parent.write_path(out);
        if !out.is_empty() {
            out.push('.');
        }
        out.push_str(name);
    }
}

/// The zero of a Go type as its encoder writes it. Pointers have none: ask for `Empty` first.
fn zero(schema: &Schema) -> Value {
    match &schema.shape {
        Shape::Bool => false.into(),
        Shape::Int32 | Shape::Int64 | Shape::Number | Shape::IntOrString => 0.into(),
        Shape::Str | Shape::Bytes => Text::default().into(),
        Shape::Quantity => Text::from("0").into(),
        Shape::Duration => Text::from("0s").into(),
        Shape::Any | Shape::Time | Shape::MicroTime | Shape::Map { .. } | Shape::List { .. } => Value::Null,
        Shape::Struct(fields) => {
            let shown = fields.fields.iter().filter_map(|(name, field)| match field.empty {
                Empty::Keep | Empty::Omit => None,
                Empty::Show => Some((name.clone(), zero(&field.schema))),
                Empty::Null => Some((name.clone(), Value::Null)),
            });
            Value::Map(shown.collect())
        }
    }
}

fn is_zero(schema: &Schema, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(n) => *n == 0,
        Value::Float(f) => *f == 0.0,
        Value::Str(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(map) => map.is_empty() || schema.as_struct().is_some() && *value == zero(schema),
    }
}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::List(_))
}

fn is_empty_container(schema: &Schema, value: &Value) -> bool {
    match (&schema.shape, value) {
        (Shape::List { .. }, Value::List(items)) => items.is_empty(),
        (Shape::Map { .. }, Value::Map(map)) => map.is_empty(),
        _ => false,
    }
}

fn quantity(value: &Value) -> Change {
    let text: Cow<str> = match value {
        Value::Str(text) => Cow::Borrowed(text),
        Value::Int(n) => Cow::Owned(n.to_string()),
        Value::Float(_) => Cow::Owned(number(value)),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => Cow::Borrowed("{}"),
    };
    match quantity::canonical(&text) {
        Ok(Some(written)) => Ok(Some(written.into())),
        Ok(None) if matches!(value, Value::Str(_)) => Ok(None),
        Ok(None) => Ok(Some(text.into_owned().into())),
        Err(problem) => Err(Fatal(problem.to_string())),
    }
}

fn time(text: &str, precision: Precision) -> Change {
    match reread(text, precision).map_err(Fatal)? {
        Read::Same => Ok(None),
        Read::Written(text) => Ok(Some(text.into())),
        Read::Zero => Ok(Some(Value::Null)),
    }
}

/// The word for a JSON value in Go's type errors.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
    }
}

/// A number as it most likely was written.
fn number(value: &Value) -> String {
    match value {
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 1e15 => format!("{f:.1}"),
        Value::Float(f) => f.to_string(),
        other => other.to_json(),
    }
}

/// The Go type of a schema as `reflect` prints it: `v1.PodSpec`, `[]v1.Container`, `map[string]string`.
fn go_name(schema: &Schema) -> Cow<'_, str> {
    if let Some(go) = &schema.go {
        return Cow::Borrowed(go);
    }
    if let Some(name) = &schema.name {
        let bare = name.rmatch_indices('.').nth(1).map_or(name.as_str(), |(dot, _)| &name[dot + 1..]);
        return Cow::Borrowed(bare);
    }
    match &schema.shape {
        Shape::Any | Shape::Struct(_) => "interface {}".into(),
        Shape::Bool => "bool".into(),
        Shape::Int32 => "int32".into(),
        Shape::Int64 => "int64".into(),
        Shape::Number => "float64".into(),
        Shape::Str => "string".into(),
        Shape::Bytes => "[]uint8".into(),
        Shape::IntOrString => "intstr.IntOrString".into(),
        Shape::Quantity => "resource.Quantity".into(),
        Shape::Time => "v1.Time".into(),
        Shape::MicroTime => "v1.MicroTime".into(),
        Shape::Duration => "v1.Duration".into(),
        Shape::Map { values, .. } => format!("map[string]{}", go_name(values)).into(),
        Shape::List { items, .. } => format!("[]{}", go_name(items)).into(),
    }
}

/// Decodes as Go's `base64.StdEncoding` does: line breaks are skipped, padding is wanted; the error is the offset Go
/// complains about.
fn decode_base64(src: &[u8]) -> Result<Vec<u8>, usize> {
    let line_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let skip = |mut i: usize| {
        while src.get(i).is_some_and(line_break) {
            i += 1;
        }
        i
    };
    let mut out = Vec::with_capacity(src.len() / 4 * 3);
    let mut i = 0;
    loop {
        let (mut quantum, mut filled) = (0u32, 0);
        while filled < 4 {
            let Some(byte) = src.get(i) else {
                return if filled == 0 { Ok(out) } else { Err(i - filled) };
            };
            i += 1;
            let bits = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'\n' | b'\r' => continue,
                b'=' if filled >= 2 => break,
                _ => return Err(i - 1),
            };
            (quantum, filled) = (quantum << 6 | u32::from(bits), filled + 1);
        }
        if filled == 4 {
            out.extend_from_slice(&quantum.to_be_bytes()[1..]);
            continue;
        }
        if filled == 2 {
            i = skip(i);
            match src.get(i) {
                None => return Err(src.len()),
                Some(b'=') => i += 1,
                Some(_) => return Err(i - 1),
            }
        }
        i = skip(i);
        if i < src.len() {
            return Err(i);
        }
        let bytes = (quantum << (6 * (4 - filled))).to_be_bytes();
        out.extend_from_slice(&bytes[1..filled]);
        return Ok(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    /// Compares with what the real types made of random objects (`testdata/objects.py` tells how the rows were made);
    /// `TIDEGATE_OBJECTS` may name a folder with other rows.
    #[test]
    fn objects_come_out_as_from_the_real_types() {
        let rows = match std::env::var("TIDEGATE_OBJECTS") {
            Ok(folder) => std::fs::read_to_string(format!("{folder}/typed.jsonl")).unwrap(),
            Err(_) => include_str!("testdata/typed.jsonl").to_owned(),
        };
        for row in rows.lines() {
            let row = Value::from_json(row.as_bytes()).unwrap();
            let object = row.get("object").unwrap();
            let (version, name) = (object.str_at(&["apiVersion"]).unwrap(), object.str_at(&["kind"]).unwrap());
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let kind = facts::kind(group, version, name).unwrap();
            match (decode(kind, &kind.schema, object), row.get("answer")) {
                (Ok(decoded), Some(answer)) => {
                    assert_eq!(&decoded.value, answer, "\n{object}");
                    let strict = row.list_at(&["strict"]).iter().filter_map(Value::as_str).collect::<Vec<_>>();
                    let unknown =
                        decoded.unknown.iter().map(|path| format!("unknown field {path:?}")).collect::<Vec<_>>();
                    assert_eq!(unknown, strict, "\n{object}");
                    let again = decode(kind, &kind.schema, answer).unwrap();
                    assert!(again.value.is(answer), "decoding twice\n{answer}\n{}", again.value);
                }
                (Err(message), None) => assert_eq!(Some(message.as_str()), row.str_at(&["error"]), "\n{object}"),
                (found, expected) => panic!("{found:?} instead of {expected:?}, {:?}\n{object}", row.get("error")),
            }
        }
    }

    fn config_map() -> &'static Kind {
        facts::kind("", "v1", "ConfigMap").unwrap()
    }

    #[test]
    fn a_change_leaves_the_other_subtrees_shared() {
        let kind = facts::kind("apps", "v1", "Deployment").unwrap();
        let sent = value!({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"paused": false}});
        let decoded = decode(kind, &kind.schema, &sent).unwrap().value;
        assert_eq!(
            decoded,
            value!({
                "metadata": {"name": "a", "labels": {"x": "y"}},
                "spec": {"selector": null, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": null}}},
                "status": {}
            })
        );
        assert!(decoded.get("metadata").unwrap().is(sent.get("metadata").unwrap()));
    }

    #[test]
    fn what_is_known_is_not_looked_at_again() {
        let known = value!({"data": {"a": 5}, "metadata": {"name": "a"}});
        let mut sent = known.clone();
        sent.set_at(&["metadata", "name"], "b");
        assert!(decode(config_map(), &config_map().schema, &sent).is_err());
        assert!(decode_since(config_map(), &config_map().schema, &sent, &known).unwrap().value.is(&sent));
    }

    #[test]
    fn at_most_a_hundred_unknown_fields_are_named() {
        let many: Map = (0..150).map(|i| (format!("field{i}"), Value::Null)).collect();
        let decoded = decode(config_map(), &config_map().schema, &many.into()).unwrap();
        assert_eq!((decoded.unknown.len(), decoded.value), (100, value!({"metadata": {}})));
    }

    /// The offsets are the real server's.
    #[test]
    fn base64_is_read_as_go_reads_it() {
        for (text, expected) in [
            ("", Ok("")),
            ("YWJj", Ok("abc")),
            ("YWI=", Ok("ab")),
            ("YQ==", Ok("a")),
            ("YW\nJj\r\nYQ=\n=\n", Ok("abca")),
            ("YWI", Err(0)),
            ("YWJjYQ", Err(4)),
            ("YW Jj", Err(2)),
            ("Y", Err(0)),
            ("=", Err(0)),
            ("Y===", Err(1)),
            ("YQ=", Err(3)),
            ("YQ=a", Err(2)),
            ("YQ==YQ==", Err(4)),
            ("YWI=\na", Err(5)),
            ("YWé", Err(2)),
        ] {
            assert_eq!(decode_base64(text.as_bytes()), expected.map(|text| text.as_bytes().to_vec()), "{text:?}");
        }
    }
}
