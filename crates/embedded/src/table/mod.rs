//! What `kubectl get` shows: the cells of every kind, as the real server computes them.
//!
//! Built-in kinds are printed by code ([`workload`], [`cluster`]), custom resources by the paths of their CRD's columns
//! ([`crate::kubernetes::jsonpath`]). The wire form of a table, and which part of each object goes along, is the front's business.

use std::sync::Arc;

use jiff::Timestamp;

use crate::kubernetes::jsonpath::Path;
use crate::kubernetes::{
    kind::{Column, Kind, Origin},
    object::Object,
    patch::go_print,
    shown::{age, human},
    value::{Text, Value},
};

mod cluster;
mod workload;

/// Columns, and a row for each object.
#[derive(Debug, Clone, PartialEq)]
pub struct Table<'a> {
    /// The columns that have cells.
    pub columns: &'a [Column],
    /// One row per object, in the order given.
    pub rows: Vec<Row>,
}

/// One object's row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// A string, number, boolean or null per column.
    pub cells: Vec<Value>,
    /// `TableRowCondition`s: whether the object has run its course.
    pub conditions: Vec<Value>,
}

/// The table of these objects, with ages as of `now`.
pub fn table<'a>(kind: &'a Kind, objects: &[Arc<Object>], now: Timestamp) -> Table<'a> {
    match &kind.origin {
        Origin::Custom(_) => custom_table(kind, objects, now),
        Origin::BuiltIn => {
            let rows = objects.iter().map(|object| row(kind, &object.value, now)).collect();
            Table { columns: &kind.columns, rows }
        }
    }
}

/// The row of a built-in object.
fn row(kind: &Kind, object: &Value, now: Timestamp) -> Row {
    let of = Printed { object, now };
    if let ("", "Pod") = (kind.group.as_str(), kind.kind.as_str()) {
        return workload::pod(of);
    }
    let cells = workload::cells(kind, of).or_else(|| cluster::cells(kind, of)).unwrap_or_else(|| of.plain());
    Row { cells, conditions: Vec::new() }
}

fn custom_table<'a>(kind: &'a Kind, objects: &[Arc<Object>], now: Timestamp) -> Table<'a> {
    // A path that cannot be read ends the table there, as upstream's does.
    let paths: Vec<Path> = kind.columns.iter().map_while(|column| Path::parse(&column.json_path)).collect();
    let columns = &kind.columns[..paths.len()];
    let rows = objects.iter().map(|object| {
        let cell = |(column, path): (&Column, &Path)| {
            let found = path.find(&object.value).and_then(|results| results.into_iter().next());
            found.map_or(Value::Null, |value| custom_cell(&column.kind, value, now))
        };
        Row { cells: columns.iter().zip(&paths).map(cell).collect(), conditions: Vec::new() }
    });
    Table { columns, rows: rows.collect() }
}

/// What a column of this type shows of a value; null where the value is of another type.
fn custom_cell(column: &str, value: Value, now: Timestamp) -> Value {
    match (column, value) {
        ("string", Value::Null) => "<no value>".into(),
        ("string", value @ (Value::Map(_) | Value::List(_))) => go_json(&value).into(),
        ("string", value) => go_print(&value).into(),
        ("integer", Value::Float(f)) => Value::Int(f as i64),
        ("integer" | "number", value @ (Value::Int(_) | Value::Float(_))) => value,
        ("boolean", value @ Value::Bool(_)) => value,
        ("date", Value::Str(text)) => match text.as_str() {
            "" | "null" => "<unknown>".into(),
            text => text.parse::<Timestamp>().map_or("<invalid>".into(), |time| human(now.duration_since(time)).into()),
        },
        _ => Value::Null,
    }
}

/// JSON as Go writes it: safe to stand in a web page.
fn go_json(value: &Value) -> String {
    value.to_json().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// An object about to be printed.
#[derive(Clone, Copy)]
struct Printed<'a> {
    object: &'a Value,
    now: Timestamp,
}

impl<'a> Printed<'a> {
    fn at(&self, path: &[&str]) -> Option<&'a Value> {
        self.object.at(path).filter(|value| !value.is_null())
    }

    /// The string at a path; empty if there is none.
    fn text(&self, path: &[&str]) -> &'a str {
        self.object.str_at(path).unwrap_or_default()
    }

    /// The string at a path, or something in place of an absent one.
    fn text_or(&self, path: &[&str], absent: &'static str) -> Value {
        self.at(path).filter(|value| value.as_str().is_some()).cloned().unwrap_or_else(|| absent.into())
    }

    /// The string at a path, or something in place of an absent or empty one.
    fn filled_or(&self, path: &[&str], empty: &'static str) -> Value {
        match self.text(path) {
            "" => empty.into(),
            _ => self.cell(path),
        }
    }

    /// The string at a path as a cell.
    fn cell(&self, path: &[&str]) -> Value {
        self.object.at(path).and_then(Value::as_text).map_or_else(|| "".into(), Value::from)
    }

    /// The number at a path; 0 if there is none.
    fn int(&self, path: &[&str]) -> i64 {
        self.object.int_at(path).unwrap_or(0)
    }

    /// The boolean at a path; false if there is none.
    fn is(&self, path: &[&str]) -> bool {
        self.object.at(path).and_then(Value::as_bool).unwrap_or(false)
    }

    fn list(&self, path: &[&str]) -> &'a [Value] {
        self.object.list_at(path)
    }

    /// How many items or fields there are.
    fn count(&self, path: &[&str]) -> usize {
        match self.object.at(path) {
            Some(Value::List(items)) => items.len(),
            Some(Value::Map(map)) => map.len(),
            _ => 0,
        }
    }

    fn name(&self) -> Value {
        self.cell(&["metadata", "name"])
    }

    fn age(&self) -> Value {
        self.since(&["metadata", "creationTimestamp"])
    }

    /// How long ago the time at a path was.
    fn since(&self, path: &[&str]) -> Value {
        age(self.object.str_at(path), self.now).into()
    }

    fn time(&self, path: &[&str]) -> Option<Timestamp> {
        self.object.str_at(path)?.parse().ok()
    }

    fn is_terminating(&self) -> bool {
        self.at(&["metadata", "deletionTimestamp"]).is_some()
    }

    /// The labels at a path: `a=b,c=d`.
    fn labels(&self, path: &[&str]) -> Value {
        let labels = self.object.at(path).and_then(Value::as_map).into_iter().flat_map(|map| map.iter());
        let pairs: Vec<String> =
            labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
        if pairs.is_empty() { "<none>".into() } else { pairs.join(",").into() }
    }

    /// The texts of a list at a path, joined.
    fn joined(&self, path: &[&str], separator: &str) -> String {
        let texts: Vec<&str> = self.list(path).iter().filter_map(Value::as_str).collect();
        texts.join(separator)
    }

    /// What kinds without columns of their own show: their name and when they were made.
    fn plain(&self) -> Vec<Value> {
        vec![self.name(), self.text_or(&["metadata", "creationTimestamp"], "0001-01-01T00:00:00Z")]
    }
}

/// The first of these texts, and how many more there are.
fn first_few(mut texts: Vec<&str>, limit: usize, separator: &str, empty: &str) -> String {
    let count = texts.len();
    texts.truncate(limit);
    match texts.join(separator) {
        shown if count > limit => format!("{shown} + {} more...", count - limit),
        shown if shown.is_empty() => empty.to_owned(),
        shown => shown,
    }
}

/// A quantity as stored; an absent one is zero.
fn quantity(value: Option<&Value>) -> Text {
    match value {
        None | Some(Value::Null) => "0".into(),
        Some(Value::Str(text)) => text.clone(),
        Some(other) => other.to_json().into(),
    }
}

#[cfg(test)]
mod tests;
