//! Whether two values are the same to Kubernetes once they are held in Go: `equality.Semantic.DeepEqual`.

use std::cmp::Ordering;

use super::{
    Field, Shape, Struct, Type, fields_of,
    write::{canonical_time, int64},
};
use crate::kubernetes::{
    schema::{gotime::Read, quantity::Quantity},
    value::{Map, Text, Value},
};

impl Type {
    /// Whether two values are the same: absent is zero, empty lists and maps are none, amounts and moments count and not
    /// their texts, fields that the type does not have are not looked at.
    pub fn same(self, a: &Value, b: &Value) -> bool {
        same(self.0, a, b)
    }

    /// The same of two structs of this type, leaving some fields out.
    pub fn same_but(self, a: &Value, b: &Value, left_out: &[&str]) -> bool {
        match self.0 {
            Shape::Struct(index) => fields(fields_of(*index), a.as_map(), b.as_map(), left_out, is_equal),
            shape => same(shape, a, b),
        }
    }
}

fn same(shape: &Shape, a: &Value, b: &Value) -> bool {
    if is_alike(a, b) {
        return true;
    }
    match shape {
        Shape::Bool => truth(a) == truth(b),
        Shape::Int32 | Shape::Int64 => int64(a).unwrap_or_default() == int64(b).unwrap_or_default(),
        Shape::Str => a.as_str().unwrap_or_default() == b.as_str().unwrap_or_default(),
        Shape::Quantity => amount(a).partial_cmp(&amount(b)) == Some(Ordering::Equal),
        Shape::Time => moment(a) == moment(b),
        Shape::IntOrString => match (a.as_str(), b.as_str()) {
            (Some(a), Some(b)) => a == b,
            (None, None) => int64(a).unwrap_or_default() == int64(b).unwrap_or_default(),
            (Some(_), None) | (None, Some(_)) => false,
        },
        Shape::Raw => a == b,
        Shape::Struct(index) => fields(fields_of(*index), a.as_map(), b.as_map(), &[], is_alike),
        Shape::List(items) => {
            let (a, b) = (a.as_list().unwrap_or_default(), b.as_list().unwrap_or_default());
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(items, a, b))
        }
        Shape::Map(values) => {
            let empty = Map::default();
            let (a, b) = (a.as_map().unwrap_or(&empty), b.as_map().unwrap_or(&empty));
            let alike = |((key, value), (other, against)): ((&Text, &Value), (&Text, &Value))| {
                is_key(key, other) && same(values, value, against)
            };
            a.len() == b.len() && a.iter().zip(b.iter()).all(alike)
        }
        // A pointer to nothing is not a pointer to zero.
        Shape::Optional(inner) => !a.is_null() && !b.is_null() && same(inner, a, b),
    }
}

/// The same at first sight, without knowing the type; `false` says nothing.
fn is_alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => is_key(a, b),
        (a, b) => a.is(b),
    }
}

/// The same all the way down, without knowing the types; `false` says nothing. Of a template that did not change this is
/// all there is to do, so it must cost little more than reading both.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Map(a), Value::Map(b)) => {
            let same =
                |((key, a), (other, b)): ((&Text, &Value), (&Text, &Value))| is_key(key, other) && is_equal(a, b);
            a.is(b) || a.len() == b.len() && a.iter().zip(b.iter()).all(same)
        }
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| is_equal(a, b)),
        (Value::Float(a), Value::Float(b)) => a == b,
        (a, b) => is_alike(a, b),
    }
}

fn is_key(a: &Text, b: &Text) -> bool {
    Text::ptr_eq(a, b) || a.as_bytes() == b.as_bytes()
}

/// The fields of two structs, walked together: both are sorted. The type is asked only about what `glance` finds different.
fn fields(
    layout: &Struct,
    a: Option<&Map>,
    b: Option<&Map>,
    left_out: &[&str],
    glance: fn(&Value, &Value) -> bool,
) -> bool {
    let empty = Map::default();
    let mut left = a.unwrap_or(&empty).iter().peekable();
    let mut right = b.unwrap_or(&empty).iter().peekable();
    let field_same = |key: &Text, a: &Value, b: &Value| {
        left_out.contains(&key.as_str()) || layout.field(key).is_none_or(|Field { shape, .. }| same(shape, a, b))
    };
    loop {
        let order = match (left.peek(), right.peek()) {
            (Some((a, _)), Some((b, _))) if Text::ptr_eq(a, b) => Ordering::Equal,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return true,
        };
        let is_same = match order {
            Ordering::Equal => match (left.next(), right.next()) {
                (Some((key, a)), Some((_, b))) => glance(a, b) || field_same(key, a, b),
                _ => true,
            },
            Ordering::Less => left.next().is_none_or(|(key, a)| a.is_null() || field_same(key, a, &Value::Null)),
            Ordering::Greater => right.next().is_none_or(|(key, b)| b.is_null() || field_same(key, &Value::Null, b)),
        };
        if !is_same {
            return false;
        }
    }
}

fn truth(value: &Value) -> bool {
    *value == Value::Bool(true)
}

/// An amount; nothing is zero, and so is what cannot be read.
fn amount(value: &Value) -> Quantity {
    let read = match value {
        Value::Str(text) => Quantity::parse(text.trim()).ok(),
        Value::Int(n) => Some(Quantity::from_int(*n)),
        Value::Float(f) => Quantity::parse(&f.to_string()).ok(),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    };
    read.unwrap_or_else(|| Quantity::from_int(0))
}

/// A time as it is written; `None` is Go's zero.
fn moment(value: &Value) -> Option<Text> {
    match canonical_time(value) {
        Ok(Some(Read::Same)) => value.as_text().cloned(),
        Ok(Some(Read::Written(text))) => Some(text),
        Ok(Some(Read::Zero) | None) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::go_json::pod_template, value};

    #[test]
    fn what_is_the_same_to_kubernetes() {
        #[track_caller]
        fn check(a: Value, b: Value, expected: bool) {
            let template = |spec: &Value| {
                let mut template = Value::object();
                template.set_at(&["spec"], spec.clone());
                template
            };
            assert_eq!(pod_template().same(&template(&a), &template(&b)), expected, "{a} {b}");
            assert_eq!(pod_template().same(&template(&b), &template(&a)), expected, "{b} {a}");
        }
        check(value!({}), value!({"volumes": [], "nodeSelector": {}, "hostname": "", "hostPID": false}), true);
        check(value!({"later": 1}), value!({}), true);
        check(value!({"priority": 0}), value!({}), false);
        check(value!({"securityContext": {}}), value!({}), false);
        check(value!({"overhead": {"cpu": "1000m"}}), value!({"overhead": {"cpu": 1}}), true);
        check(value!({"overhead": {"cpu": "1"}}), value!({"overhead": {"memory": "1"}}), false);
        check(value!({"containers": [{}]}), value!({"containers": [{"resources": {}}]}), true);
        check(value!({"containers": [{}]}), value!({"containers": []}), false);
        let port = |port: Value| value!({"containers": [{"livenessProbe": {"tcpSocket": {"port": serde_json::Value::from(&port)}}}]});
        check(port(value!(80)), port(value!("80")), false);
        check(port(value!(80)), port(value!(80)), true);
    }
}
