//! The values of expressions, and what can be asked of any of them.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use crate::kubernetes::{duration, status::go_float, value::Value};

/// A value.
#[derive(Debug, Clone)]
pub enum Val {
    /// Nothing.
    Nil,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(Arc<str>),
    /// A list, and what its elements are said to be.
    List(Arc<Vec<Val>>, Element),
    /// A map.
    Map(Arc<BTreeMap<String, Val>>),
    /// A length of time.
    Span(SignedDuration),
    /// A moment.
    Moment(Timestamp),
    /// A day of the week or a month: its number and its name.
    Named(i64, &'static str),
}

/// There is no order between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incomparable;

/// What the elements of a list are said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Anything.
    Any,
    /// Whole numbers.
    Int,
    /// Numbers.
    Float,
    /// Texts.
    Text,
}

impl Val {
    /// A text.
    pub fn text(text: impl AsRef<str>) -> Val {
        Val::Text(Arc::from(text.as_ref()))
    }

    /// A list of anything.
    pub fn list(items: Vec<Val>) -> Val {
        Val::List(Arc::new(items), Element::Any)
    }

    /// What was decoded from JSON: every number is one with a fraction.
    pub fn of_json(value: &Value) -> Val {
        match value {
            Value::Null => Val::Nil,
            Value::Bool(flag) => Val::Bool(*flag),
            Value::Int(number) => Val::Float(*number as f64),
            Value::Float(number) => Val::Float(*number),
            Value::Str(text) => Val::text(text.as_str()),
            Value::List(items) => Val::list(items.iter().map(Val::of_json).collect()),
            Value::Map(map) => {
                Val::Map(Arc::new(map.iter().map(|(key, value)| (key.to_string(), Val::of_json(value))).collect()))
            }
        }
    }

    /// Numbers that a provider measured.
    pub fn floats(numbers: &[f64]) -> Val {
        Val::List(Arc::new(numbers.iter().copied().map(Val::Float).collect()), Element::Float)
    }

    /// Whether there is nothing in it that could be judged.
    pub fn is_no_data(&self) -> bool {
        match self {
            Val::Nil => true,
            Val::List(items, _) => items.is_empty(),
            Val::Bool(_)
            | Val::Int(_)
            | Val::Float(_)
            | Val::Text(_)
            | Val::Map(_)
            | Val::Span(_)
            | Val::Moment(_)
            | Val::Named(..) => false,
        }
    }

    /// The name of its type, as Go has it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Val::Nil => "<nil>",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Float(_) => "float64",
            Val::Text(_) => "string",
            Val::List(_, Element::Any) => "[]interface {}",
            Val::List(_, Element::Int) => "[]int",
            Val::List(_, Element::Float) => "[]float64",
            Val::List(_, Element::Text) => "[]string",
            Val::Map(_) => "map[string]interface {}",
            Val::Span(_) => "time.Duration",
            Val::Moment(_) => "time.Time",
            Val::Named(..) => "time.Month",
        }
    }

    /// As Go prints it.
    pub fn print(&self) -> String {
        match self {
            Val::Nil => "<nil>".to_owned(),
            Val::Bool(flag) => flag.to_string(),
            Val::Int(number) => number.to_string(),
            Val::Float(number) => go_float(*number),
            Val::Text(text) => text.to_string(),
            Val::List(items, _) => {
                format!("[{}]", items.iter().map(Val::print).collect::<Vec<_>>().join(" "))
            }
            Val::Map(map) => {
                let entries = map.iter().map(|(key, value)| format!("{key}:{}", value.print()));
                format!("map[{}]", entries.collect::<Vec<_>>().join(" "))
            }
            Val::Span(span) => duration::print(*span),
            Val::Moment(moment) => moment.strftime("%Y-%m-%d %H:%M:%S%.f +0000 UTC").to_string(),
            Val::Named(_, name) => (*name).to_owned(),
        }
    }

    /// The number it is, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Val::Int(number) => Some(*number as f64),
            Val::Float(number) => Some(*number),
            Val::Nil
            | Val::Bool(_)
            | Val::Text(_)
            | Val::List(..)
            | Val::Map(_)
            | Val::Span(_)
            | Val::Moment(_)
            | Val::Named(..) => None,
        }
    }

    /// Whether it is the same as another; whole numbers and others are compared by what they are worth.
    pub fn same(&self, other: &Val) -> bool {
        match (self, other) {
            (Val::Nil, Val::Nil) => true,
            (Val::Bool(a), Val::Bool(b)) => a == b,
            (Val::Int(a), Val::Int(b)) => a == b,
            (Val::Text(a), Val::Text(b)) => a == b,
            (Val::List(a, _), Val::List(b, _)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.same(b)),
            (Val::Map(a), Val::Map(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|((k, a), (l, b))| k == l && a.is_alike(b))
            }
            (Val::Span(a), Val::Span(b)) => a == b,
            (Val::Moment(a), Val::Moment(b)) => a == b,
            (Val::Named(a, _), Val::Named(b, _)) => a == b,
            (a, b) => matches!((a.number(), b.number()), (Some(a), Some(b)) if a == b),
        }
    }

    /// Whether it is the same in every respect, as elements of maps are compared: 1 is not 1.0.
    fn is_alike(&self, other: &Val) -> bool {
        let kind = std::mem::discriminant(self) == std::mem::discriminant(other);
        match (self, other) {
            (Val::List(a, _), Val::List(b, _)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.is_alike(b))
            }
            (one, other) => kind && one.same(other),
        }
    }

    /// Which of two comes first, if they can be compared. NaN comes nowhere.
    pub fn order(&self, other: &Val) -> Result<Option<Ordering>, Incomparable> {
        match (self, other) {
            (Val::Int(a), Val::Int(b)) => Ok(Some(a.cmp(b))),
            (Val::Text(a), Val::Text(b)) => Ok(Some(a.cmp(b))),
            (Val::Span(a), Val::Span(b)) => Ok(Some(a.cmp(b))),
            (Val::Moment(a), Val::Moment(b)) => Ok(Some(a.cmp(b))),
            (a, b) => match (a.number(), b.number()) {
                (Some(a), Some(b)) => Ok(a.partial_cmp(&b)),
                (_, _) => Err(Incomparable),
            },
        }
    }

    /// As JSON, for those that JSON has.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Val::Nil => serde_json::Value::Null,
            Val::Bool(flag) => (*flag).into(),
            Val::Int(number) => (*number).into(),
            Val::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => (*number as i64).into(),
            Val::Float(number) => (*number).into(),
            Val::Text(text) => text.as_ref().into(),
            Val::List(items, _) => items.iter().map(Val::to_json).collect(),
            Val::Map(map) => map.iter().map(|(key, value)| (key.clone(), value.to_json())).collect(),
            Val::Span(span) => i64::try_from(span.as_nanos()).unwrap_or(i64::MAX).into(),
            Val::Moment(moment) => moment.to_string().into(),
            Val::Named(number, _) => (*number).into(),
        }
    }
}
