//! What Argo Rollouts' decoder makes of a value, malformed ones included.
//!
//! A value of the wrong type becomes its type's zero and decoding goes on. A quantity, time or int-or-string that its own
//! decoder refuses ends decoding: what comes later, the keys of every object in alphabetical order, is lost.

use super::{
    Shape, Type, fields_of,
    write::{canonical_time, int32, int64, number_text},
};
use crate::kubernetes::{
    schema::quantity,
    value::{Map, Text, Value},
};

/// A value as Go holds it.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// What is left: known fields of the right type, and zeros where a pointer was set to something else.
    pub value: Value,
    /// What was wrong, in the order in which it was met. If the last of it ended decoding, the rest is lost.
    pub wrong: Vec<Wrong>,
}

/// A value that Go cannot decode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Where: `spec.containers[0].ports[1].containerPort`.
    pub path: String,
    /// What was found: `string`.
    pub found: &'static str,
    /// What it should be: `integer`.
    pub expected: &'static str,
    /// Whether Go loses all that follows it.
    pub ends: bool,
}

impl Type {
    /// What Argo Rollouts makes of a value.
    pub fn decode(self, value: &Value) -> Decoded {
        self.walk(value, Absent::Left)
    }

    /// The same with the structs that Go always has, though nothing is in them: `resources` of a container, `metadata` of a
    /// template. A defaulter looks into these too.
    pub fn decode_whole(self, value: &Value) -> Decoded {
        self.walk(value, Absent::Filled)
    }

    fn walk(self, value: &Value, absent: Absent) -> Decoded {
        let mut walk = Walk { path: Vec::new(), wrong: Vec::new(), ended: false, absent };
        let value = walk.value(self.0, value).unwrap_or_else(|| walk.zero(self.0));
        Decoded { value, wrong: walk.wrong }
    }
}

/// What becomes of structs that are not given but always there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    Left,
    Filled,
}

enum Step<'a> {
    Key(&'a Text),
    Index(usize),
}

struct Walk<'a> {
    path: Vec<Step<'a>>,
    wrong: Vec<Wrong>,
    ended: bool,
    absent: Absent,
}

impl<'a> Walk<'a> {
    /// What is held of a value; `None` is the zero of its type.
    fn value(&mut self, shape: &Shape, value: &'a Value) -> Option<Value> {
        if value.is_null() {
            return None;
        }
        match (shape, value) {
            (Shape::Optional(inner), value) => Some(self.value(inner, value).unwrap_or_else(|| self.zero(inner))),
            (Shape::Struct(index), Value::Map(map)) => Some(self.fields(*index, map)),
            (Shape::Map(values), Value::Map(map)) => Some(self.map(values, map)),
            (Shape::List(items), Value::List(list)) => Some(self.list(items, list)),
            (Shape::Raw, _) | (Shape::Bool, Value::Bool(_)) | (Shape::Str, Value::Str(_)) => Some(value.clone()),
            (Shape::Int32, _) => self.or_wrong(int32(value).map(Value::from), shape, value),
            (Shape::Int64, _) => self.or_wrong(int64(value).map(Value::from), shape, value),
            (Shape::Quantity, _) => self.or_end(canonical_quantity(value), shape, value),
            (Shape::Time, _) => self.or_end(canonical_time(value).is_ok().then(|| value.clone()), shape, value),
            (Shape::IntOrString, Value::Str(_)) => Some(value.clone()),
            (Shape::IntOrString, _) => self.or_end(int32(value).map(Value::from), shape, value),
            (Shape::Bool | Shape::Str | Shape::Struct(_) | Shape::Map(_) | Shape::List(_), _) => {
                self.or_wrong(None, shape, value)
            }
        }
    }

    fn or_wrong(&mut self, held: Option<Value>, shape: &Shape, value: &Value) -> Option<Value> {
        if held.is_none() {
            self.note(shape, value, false);
        }
        held
    }

    fn or_end(&mut self, held: Option<Value>, shape: &Shape, value: &Value) -> Option<Value> {
        if held.is_none() {
            self.note(shape, value, true);
            self.ended = true;
        }
        held
    }

    fn note(&mut self, shape: &Shape, value: &Value, ends: bool) {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        self.wrong.push(Wrong { path, found: value.type_name(), expected: expected(shape), ends });
    }

    fn fields(&mut self, index: usize, map: &'a Map) -> Value {
        let layout = fields_of(index);
        let mut out: Vec<(Text, Value)> = Vec::with_capacity(map.len());
        for (key, value) in map.iter() {
            let Some(field) = layout.field(key) else { continue };
            self.path.push(Step::Key(key));
            let held = self.value(&field.shape, value);
            self.path.pop();
            out.extend(held.map(|held| (key.clone(), held)));
            if self.ended {
                break;
            }
        }
        if self.absent == Absent::Filled {
            let given: Map = out.into_iter().collect();
            return Value::Map(filled(index, given));
        }
        Value::Map(out.into_iter().collect())
    }

    /// What a pointer to, or an item of, a type holds when its value cannot be read.
    fn zero(&self, shape: &Shape) -> Value {
        match (shape, self.absent) {
            (Shape::Struct(index), Absent::Filled) => Value::Map(filled(*index, Map::default())),
            (shape, Absent::Left | Absent::Filled) => zero(shape),
        }
    }

    fn map(&mut self, values: &Shape, map: &'a Map) -> Value {
        let mut out: Vec<(Text, Value)> = Vec::with_capacity(map.len());
        for (key, value) in map.iter() {
            self.path.push(Step::Key(key));
            let held = self.value(values, value);
            self.path.pop();
            // An entry is set once it is decoded, so the one that ends decoding is lost.
            if self.ended {
                break;
            }
            out.push((key.clone(), held.unwrap_or_else(|| self.zero(values))));
        }
        Value::Map(out.into_iter().collect())
    }

    fn list(&mut self, items: &Shape, list: &'a [Value]) -> Value {
        let mut out = Vec::with_capacity(list.len());
        for (index, item) in list.iter().enumerate() {
            self.path.push(Step::Index(index));
            let held = self.value(items, item);
            self.path.pop();
            out.push(held.unwrap_or_else(|| self.zero(items)));
            if self.ended {
                break;
            }
        }
        out.into()
    }
}

/// A quantity as it is written; `None` if it is none.
fn canonical_quantity(value: &Value) -> Option<Value> {
    match value {
        Value::Str(text) => {
            quantity::canonical(text).ok().map(|written| written.map_or_else(|| value.clone(), Value::from))
        }
        Value::Int(_) | Value::Float(_) => {
            let text = number_text(value);
            quantity::canonical(&text).ok().map(|written| written.unwrap_or(text).into())
        }
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    }
}

/// The fields of a struct with the structs that are always in it.
fn filled(index: usize, mut given: Map) -> Map {
    for field in &fields_of(index).fields {
        if let Shape::Struct(inner) = field.shape
            && !given.contains_key(&field.name)
        {
            given.insert(field.name.clone(), filled(inner, Map::default()));
        }
    }
    given
}

/// The zero of a type.
fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::IntOrString => Value::Int(0),
        Shape::Str => Value::Str(Text::default()),
        Shape::Quantity => Value::from("0"),
        Shape::Struct(_) => Value::object(),
        Shape::Time | Shape::Raw | Shape::List(_) | Shape::Map(_) | Shape::Optional(_) => Value::Null,
    }
}

fn expected(shape: &Shape) -> &'static str {
    match shape {
        Shape::Bool => "boolean",
        Shape::Int32 => "32-bit integer",
        Shape::Int64 => "integer",
        Shape::Str => "string",
        Shape::Quantity => "quantity",
        Shape::Time => "RFC 3339 time",
        Shape::IntOrString => "integer or string",
        Shape::Raw => "value",
        Shape::Struct(_) | Shape::Map(_) => "object",
        Shape::List(_) => "list",
        Shape::Optional(inner) => expected(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::go_json::pod_template, value};

    #[test]
    fn a_wrong_type_becomes_zero_and_the_rest_is_kept() {
        let given = value!({"spec": {"containers": [{"name": 5, "image": "i", "tty": "x"}], "hostname": "h", "priority": "high"}});
        let decoded = pod_template().decode(&given);
        assert_eq!(decoded.value, value!({"spec": {"containers": [{"image": "i"}], "hostname": "h", "priority": 0}}));
        let wrong: Vec<String> =
            decoded.wrong.iter().map(|w| format!("{}: {} for {}", w.path, w.found, w.expected)).collect();
        assert_eq!(
            wrong,
            [
                "spec.containers[0].name: integer for string",
                "spec.containers[0].tty: string for boolean",
                "spec.priority: string for 32-bit integer"
            ]
        );
    }

    #[test]
    fn what_go_always_has_can_be_shown() {
        let given = value!({"spec": {"containers": [{}], "volumes": [{"ephemeral": {"volumeClaimTemplate": {}}}]}});
        let whole = value!({"metadata": {}, "spec": {
            "containers": [{"resources": {}}],
            "volumes": [{"ephemeral": {"volumeClaimTemplate": {"metadata": {}, "spec": {"resources": {}}}}}],
        }});
        assert_eq!(pod_template().decode_whole(&given).value, whole);
        assert_eq!(pod_template().decode_whole(&Value::Null).value, value!({"metadata": {}, "spec": {}}));
    }

    #[test]
    fn a_refused_quantity_loses_what_follows() {
        let given = value!({"spec": {
            "containers": [{"image": "i", "name": "a", "resources": {"limits": {"a": "1", "cpu": "abc", "d": "1"}}}, {"name": "b"}],
            "hostname": "h",
        }});
        let decoded = pod_template().decode(&given);
        let kept = value!({"spec": {"containers": [{"image": "i", "name": "a", "resources": {"limits": {"a": "1"}}}]}});
        assert_eq!(decoded.value, kept);
        assert!(matches!(decoded.wrong.as_slice(), [Wrong { ends: true, .. }]));
    }
}
