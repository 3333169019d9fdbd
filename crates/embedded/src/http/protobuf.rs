//! Request bodies in protobuf, which typed clients of Kubernetes send for built-in kinds unless told otherwise.
//!
//! The message of a kind is read along its schema; field numbers come from `facts/wire.txt`, written by
//! `tests/control-plane/wire`. Answers are never sent in protobuf: such clients take JSON, too.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;

use crate::kubernetes::{
    clock::{rfc3339, rfc3339_micro},
    facts,
    schema::{Empty, Schema, Shape, Struct},
    value::{Map, Text, Value, intern},
};

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// How deeply messages may nest.
const DEPTH: usize = 200;

/// Reads an object. Of a kind that is not known, only apiVersion and kind are read.
pub fn decode(bytes: &[u8]) -> Result<Value, String> {
    let Some(envelope) = bytes.strip_prefix(MAGIC) else {
        return Err("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]".into());
    };
    let (mut meta, mut raw): (&[u8], &[u8]) = (&[], &[]);
    for field in Message(envelope) {
        match field? {
            (1, Wire::Bytes(bytes)) => meta = bytes,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    for field in Message(meta) {
        match field? {
            (1, Wire::Bytes(bytes)) => api_version = text(bytes),
            (2, Wire::Bytes(bytes)) => kind = text(bytes),
            _ => {}
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let mut value = match facts::schema(group, version, &kind) {
        Some(schema) => message(schema, raw, DEPTH)?,
        None => Value::object(),
    };
    value.set_at(&["apiVersion"], api_version);
    value.set_at(&["kind"], kind);
    Ok(value)
}

/// Field numbers of the built-in structs, by OpenAPI name.
static NUMBERS: LazyLock<HashMap<&'static str, HashMap<u64, &'static str>>> = LazyLock::new(|| {
    let lines = facts::WIRE.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split('\t');
            let name = words.next()?;
            let fields = words.filter_map(|word| {
                let (number, field) = word.split_once('=')?;
                Some((number.parse().ok()?, field))
            });
            Some((name, fields.collect()))
        })
        .collect()
});

/// A message of this type.
fn message(schema: &Schema, bytes: &[u8], depth: usize) -> Result<Value, String> {
    if depth == 0 {
        return Err("proto: message nested too deeply".into());
    }
    let name = schema.name.as_deref().unwrap_or_default();
    match &schema.shape {
        Shape::Struct(fields) => {
            let mut value = Map::default();
            read_fields(name, fields, bytes, depth, &mut value)?;
            Ok(Value::Map(value))
        }
        Shape::Quantity => Ok(first(bytes)?.map_or_else(|| Value::from("0"), |bytes| text(bytes).into())),
        Shape::Time => Ok(time(bytes)?.map_or(Value::Null, |time| rfc3339(time).into())),
        Shape::MicroTime => Ok(time(bytes)?.map_or(Value::Null, |time| rfc3339_micro(time).into())),
        Shape::Duration => Ok(format!("{}ns", varint_at(bytes, 1)?).into()),
        Shape::IntOrString => int_or_string(bytes),
        Shape::Any => any(schema, name, bytes, depth),
        // A list or map in a place of its own (`ExtraValue`): its items are the message's only field.
        Shape::List { items, .. } => {
            let mut list = Vec::new();
            for field in Message(bytes) {
                if let (1, wire) = field? {
                    list.push(scalar(items, wire, depth.saturating_sub(1))?);
                }
            }
            Ok(list.into())
        }
        _ => Err(format!("proto: {name} is not a message")),
    }
}

fn read_fields(name: &str, fields: &Struct, bytes: &[u8], depth: usize, into: &mut Map) -> Result<(), String> {
    if depth == 0 {
        return Err("proto: message nested too deeply".into());
    }
    let numbers = NUMBERS.get(name).ok_or_else(|| format!("proto: {name} is not known"))?;
    for field in Message(bytes) {
        let (number, wire) = field?;
        // Unknown numbers are fields of a newer client: Go drops them, too.
        let Some(json) = numbers.get(&number) else { continue };
        if let Some(embedded) = json.strip_prefix('+') {
            if let Wire::Bytes(bytes) = wire {
                read_fields(embedded, fields, bytes, depth.saturating_sub(1), into)?;
            }
            continue;
        }
        let Some(field) = fields.field(json) else { continue };
        let inner = recurring(name, json);
        read_field(&field.schema, inner.as_deref(), intern(json), wire, depth, into)?;
        // Go writes plain fields that are not set; as JSON they would not be there.
        if field.empty == Empty::Omit && into.get(json).is_some_and(is_zero) {
            into.remove(json);
        }
    }
    Ok(())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::Float(number) => *number == 0.0,
        Value::Str(text) => text.is_empty(),
        Value::Bool(true) | Value::Int(_) | Value::List(_) | Value::Map(_) => false,
    }
}

/// What the lists and maps of a JSON schema hold. The facts do not say: it is the type they are in.
fn recurring(name: &str, json: &str) -> Option<Arc<Schema>> {
    name.ends_with(".JSONSchemaProps").then_some(())?;
    match json {
        "allOf" | "anyOf" | "oneOf" | "definitions" | "patternProperties" | "properties" => facts::named(name).cloned(),
        "dependencies" => {
            let name = format!("{name}OrStringArray");
            Some(Arc::new(Schema { name: Some(name.into()), ..Schema::default() }))
        }
        _ => None,
    }
}

/// Reads one field. `inner` is the type of a list's or map's items, if the schema does not say.
fn read_field(
    schema: &Schema,
    inner: Option<&Schema>,
    json: Text,
    wire: Wire<'_>,
    depth: usize,
    into: &mut Map,
) -> Result<(), String> {
    match &schema.shape {
        Shape::List { items, .. } => {
            let items = inner.unwrap_or(items);
            let slot = into.entry(&json);
            if slot.is_null() {
                *slot = Value::list([]);
            }
            let Some(list) = slot.as_list_mut() else { return Ok(()) };
            match (wire, &items.shape) {
                (Wire::Bytes(mut packed), Shape::Int32 | Shape::Int64 | Shape::Bool) => {
                    while !packed.is_empty() {
                        list.push(scalar(items, Wire::Int(varint(&mut packed)?), depth)?);
                    }
                }
                (wire, _) => list.push(scalar(items, wire, depth)?),
            }
        }
        Shape::Map { values, .. } => {
            let values = inner.unwrap_or(values);
            let Wire::Bytes(entry) = wire else { return Ok(()) };
            let (mut key, mut value) = (String::new(), None);
            for field in Message(entry) {
                match field? {
                    (1, Wire::Bytes(bytes)) => key = text(bytes),
                    (2, wire) => value = Some(scalar(values, wire, depth)?),
                    _ => {}
                }
            }
            let value = value.map_or_else(|| empty(values), Ok)?;
            let slot = into.entry(&json);
            if slot.is_null() {
                *slot = Value::object();
            }
            if let Some(map) = slot.as_map_mut() {
                map.insert(Text::from(key), value);
            }
        }
        _ => {
            let value = scalar(schema, wire, depth)?;
            into.insert(json, value);
        }
    }
    Ok(())
}

/// The value of a map entry that has none: Go writes no zeros there.
fn empty(schema: &Schema) -> Result<Value, String> {
    match &schema.shape {
        Shape::Str | Shape::Bytes => Ok("".into()),
        Shape::Bool => Ok(false.into()),
        Shape::Int32 | Shape::Int64 | Shape::Number => Ok(0.into()),
        _ => message(schema, &[], DEPTH),
    }
}

fn scalar(schema: &Schema, wire: Wire<'_>, depth: usize) -> Result<Value, String> {
    match (&schema.shape, wire) {
        (Shape::Bool, Wire::Int(number)) => Ok((number != 0).into()),
        (Shape::Int32 | Shape::Int64, Wire::Int(number)) => Ok((number as i64).into()),
        (Shape::Number, Wire::Eight(bits)) => Ok(f64::from_bits(bits).into()),
        (Shape::Number, Wire::Int(number)) => Ok((number as i64).into()),
        (Shape::Str, Wire::Bytes(bytes)) => Ok(text(bytes).into()),
        (Shape::Bytes, Wire::Bytes(bytes)) => Ok(STANDARD.encode(bytes).into()),
        (_, Wire::Bytes(bytes)) => message(schema, bytes, depth.saturating_sub(1)),
        (_, Wire::Int(_) | Wire::Eight(_)) => Err("proto: illegal wireType".into()),
    }
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut words) = (false, 0, String::new());
    for field in Message(bytes) {
        match field? {
            (1, Wire::Int(kind)) => is_text = kind == 1,
            (2, Wire::Int(value)) => number = value as i64,
            (3, Wire::Bytes(bytes)) => words = text(bytes),
            _ => {}
        }
    }
    Ok(if is_text { words.into() } else { number.into() })
}

/// Types that hold JSON, or contain themselves.
fn any(schema: &Schema, name: &str, bytes: &[u8], depth: usize) -> Result<Value, String> {
    let kind = name.rsplit('.').next().unwrap_or_default();
    let part =
        |suffix: &str| facts::named(&name.replace(kind, suffix)).ok_or_else(|| format!("proto: {name} is not known"));
    match kind {
        "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray" => {
            let (mut one, mut many) = (None, Vec::new());
            for field in Message(bytes) {
                match (field?, kind) {
                    ((1, Wire::Int(allowed)), _) => one = one.or(Some(Value::from(allowed != 0))),
                    ((2, Wire::Bytes(bytes)), "JSONSchemaPropsOrStringArray") => many.push(text(bytes).into()),
                    ((2, Wire::Bytes(bytes)), "JSONSchemaPropsOrArray") => {
                        many.push(message(part("JSONSchemaProps")?, bytes, depth.saturating_sub(1))?);
                    }
                    ((1 | 2, Wire::Bytes(bytes)), _) => {
                        one = Some(message(part("JSONSchemaProps")?, bytes, depth.saturating_sub(1))?)
                    }
                    _ => {}
                }
            }
            Ok(one.unwrap_or_else(|| many.into()))
        }
        _ => match facts::named(name).filter(|whole| !matches!(whole.shape, Shape::Any)) {
            Some(whole) if !std::ptr::eq(&**whole, schema) => message(whole, bytes, depth.saturating_sub(1)),
            _ => match first(bytes)? {
                Some(json) if !json.is_empty() => Value::from_json(json).map_err(|error| error.to_string()),
                _ => Ok(Value::Null),
            },
        },
    }
}

/// The first field, if it is text or bytes.
fn first(bytes: &[u8]) -> Result<Option<&[u8]>, String> {
    for field in Message(bytes) {
        if let (1, Wire::Bytes(bytes)) = field? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

fn varint_at(bytes: &[u8], wanted: u64) -> Result<i64, String> {
    for field in Message(bytes) {
        match field? {
            (number, Wire::Int(value)) if number == wanted => return Ok(value as i64),
            _ => {}
        }
    }
    Ok(0)
}

/// A point in time; none if the message is empty, as Go's zero time is.
fn time(bytes: &[u8]) -> Result<Option<Timestamp>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (seconds, nanos) = (varint_at(bytes, 1)?, varint_at(bytes, 2)?);
    let nanos = i32::try_from(nanos).map_err(|_| "proto: time out of range".to_owned())?;
    Timestamp::new(seconds, nanos).map(Some).map_err(|_| "proto: time out of range".into())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A field's value on the wire.
#[derive(Debug, Clone, Copy)]
enum Wire<'a> {
    Int(u64),
    Eight(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, as numbers and values.
struct Message<'a>(&'a [u8]);

impl<'a> Iterator for Message<'a> {
    type Item = Result<(u64, Wire<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = read(&mut self.0);
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn read<'a>(rest: &mut &'a [u8]) -> Result<(u64, Wire<'a>), String> {
    let key = varint(rest)?;
    let wire = match key & 7 {
        0 => Wire::Int(varint(rest)?),
        1 => Wire::Eight(u64::from_le_bytes(take(rest, 8)?.try_into().map_err(|_| "unexpected EOF".to_owned())?)),
        2 => {
            let length = varint(rest)?;
            Wire::Bytes(take(rest, usize::try_from(length).unwrap_or(usize::MAX))?)
        }
        5 => {
            let four = take(rest, 4)?.try_into().map_err(|_| "unexpected EOF".to_owned())?;
            Wire::Eight(u64::from(u32::from_le_bytes(four)))
        }
        other => return Err(format!("proto: illegal wireType {other}")),
    };
    Ok((key >> 3, wire))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, after) = rest.split_at_checked(length).ok_or("unexpected EOF")?;
    *rest = after;
    Ok(taken)
}

fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or("unexpected EOF")?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("proto: integer overflow".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn objects_are_what_go_wrote() {
        let lines: Vec<&str> =
            include_str!("testdata/protobuf.txt").lines().filter(|line| !line.starts_with('#')).collect();
        for pair in lines.chunks(2) {
            let read = decode(&STANDARD.decode(pair[0]).unwrap()).unwrap();
            // A list that is not there is not on the wire; Go's JSON shows some of them as null.
            let written = pair[1].replace("\"conditions\":null,", "").replace(",\"storedVersions\":null", "");
            assert_eq!(read, Value::from_json(written.as_bytes()).unwrap());
        }
        assert_eq!(lines.len(), 14);
    }

    #[test]
    fn a_zero_that_was_given_is_kept() {
        let lines: Vec<&str> = include_str!("testdata/protobuf.txt").lines().collect();
        let deployment = decode(&STANDARD.decode(lines[3]).unwrap()).unwrap();
        assert_eq!(deployment.int_at(&["spec", "replicas"]), Some(0));
        assert_eq!(deployment.at(&["metadata", "labels"]), Some(&value!({"app": "web", "empty": ""})));
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let sample = STANDARD.decode(include_str!("testdata/protobuf.txt").lines().nth(3).unwrap()).unwrap();
        for cut in 0..sample.len() {
            let _ = decode(&sample[..cut]);
            let mut broken = sample.clone();
            broken[cut] ^= 0xff;
            let _ = decode(&broken);
        }
        assert_eq!(
            decode(b"x").unwrap_err(),
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        );
        assert_eq!(decode(b"k8s\0\x0a\xff").unwrap_err(), "unexpected EOF");
    }
}
