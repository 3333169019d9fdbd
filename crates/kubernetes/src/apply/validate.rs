//! What is wrong with a value of some type, in the words of the real server's merge library.

use super::types::{Atom, ListType, MapType, Scalar, Type};
use crate::{
    schema::validate::{go_type, go_value},
    status::{go_float, go_quoted},
    value::{Map, Value},
};

/// Whether items of a list may share a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// They may, in objects that are stored already or written whole.
    Allowed,
    /// They may not, in what is applied.
    Refused,
}

/// Checks that a value fits its type. What is shared with `known`, a value that fits, is not looked at again.
pub fn validate(ty: Type<'_>, value: &Value, known: Option<&Value>, duplicates: Duplicates) -> Result<(), String> {
    let mut check = Check { duplicates, problems: Vec::new() };
    check.value(ty, value, known, None);
    match check.problems.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

/// Where the walk is: a chain on the stack, printed only when there is a problem.
#[derive(Clone, Copy)]
struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item(ListType<'a>, &'a Value),
    Index(usize),
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.parent.map_or(Ok(()), |parent| parent.fmt(f))?;
        self.step.fmt(f)
    }
}

impl std::fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Field(name) => write!(f, ".{name}"),
            Step::Item(list, item) => list.element(item).map_or(Ok(()), |element| element.fmt(f)),
            Step::Index(i) => write!(f, "[{i}]"),
        }
    }
}

struct Check {
    duplicates: Duplicates,
    problems: Vec<String>,
}

impl Check {
    fn report(&mut self, place: Option<&Place<'_>>, problem: String) {
        self.problems.push(place.map_or_else(|| problem.clone(), |place| format!("{place}: {problem}")));
    }

    fn value(&mut self, ty: Type<'_>, value: &Value, known: Option<&Value>, place: Option<&Place<'_>>) {
        if value.is_null() || known.is_some_and(|known| known.is(value)) {
            return;
        }
        match ty.atom(Some(value)) {
            Atom::Scalar(scalar) => {
                if let Some(problem) = scalar_problem(scalar, value) {
                    self.report(place, problem);
                }
            }
            Atom::Map(map) => match value {
                Value::Map(fields) => self.map(map, fields, known.and_then(Value::as_map), place),
                other => self.report(place, format!("expected map, got {}", go_pointer(other))),
            },
            Atom::List(list) => match value {
                Value::List(items) => self.list(list, items, known.and_then(Value::as_list), place),
                other => self.report(place, format!("expected list, got {}", go_pointer(other))),
            },
        }
    }

    fn map(&mut self, ty: MapType<'_>, fields: &Map, known: Option<&Map>, parent: Option<&Place<'_>>) {
        let mut types = ty.in_order();
        for (key, value) in fields.iter() {
            let place = Place { parent, step: Step::Field(key) };
            let Some(ty) = types.find(key).1 else {
                // Upstream stops here too, though in Go's order of fields, which is any.
                return self.report(Some(&place), "field not declared in schema".into());
            };
            self.value(ty, value, known.and_then(|known| known.get(key)), Some(&place));
        }
    }

    fn list(&mut self, ty: ListType<'_>, items: &[Value], known: Option<&[Value]>, parent: Option<&Place<'_>>) {
        let known = |i: usize| known.and_then(|known| known.get(i));
        if ty.is_atomic() {
            for (i, item) in items.iter().enumerate() {
                self.value(ty.items, item, known(i), Some(&Place { parent, step: Step::Index(i) }));
            }
            return;
        }
        let keys = ty.keys(items);
        for (i, item) in items.iter().enumerate() {
            if let Some(problem) = ty.unidentified(item) {
                return self.report(parent, format!("element {i}: {problem}"));
            }
            let place = Place { parent, step: Step::Item(ty, item) };
            if self.duplicates == Duplicates::Refused && keys.find(keys.at(i)) != Some(i) {
                self.report(parent, format!("duplicate entries for key {}", place.step));
            }
            self.value(ty.items, item, known(i), Some(&place));
        }
    }
}

fn scalar_problem(scalar: Scalar, value: &Value) -> Option<String> {
    let fits = match (scalar, value) {
        (Scalar::Untyped, Value::List(_) | Value::Map(_)) => false,
        (Scalar::Untyped, _) => true,
        (Scalar::Number, value) => matches!(value, Value::Int(_) | Value::Float(_)),
        (Scalar::Str, value) => matches!(value, Value::Str(_)),
        (Scalar::Bool, value) => matches!(value, Value::Bool(_)),
    };
    if fits {
        return None;
    }
    Some(match scalar {
        Scalar::Untyped => format!("expected any scalar, got {}", go_pointer(value)),
        Scalar::Number => format!("expected numeric (int or float), got {}", go_type(value)),
        Scalar::Str => format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value)),
        Scalar::Bool => format!("expected boolean, got {}", go_pointer(value)),
    })
}

/// Go's `%v` of the merge library's pointer to a value.
fn go_pointer(value: &Value) -> String {
    format!("&{{{}}}", go_value(value))
}

/// Go's `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(f) => go_float(*f),
        Value::Str(s) => go_quoted(s),
        Value::List(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Map(map) => {
            let fields = map.iter().map(|(key, value)| format!("{}:{}", go_quoted(key), go_syntax(value)));
            format!("map[string]interface {{}}{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}
