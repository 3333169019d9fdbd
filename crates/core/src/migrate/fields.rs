//! Fields of another tool's objects, and what becomes of each: tables, and the walk that names what they do not list.

use super::{Note, Subject, Weight};
use crate::{kubernetes::value::Value, manifest::place::Step};

/// What becomes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is carried over; what is to be said about it is said there.
    Taken,
    /// Its fields have fates of their own.
    Within,
    /// What it asks for is what a GitSource does anyway, or says nothing about what is done.
    Same,
    /// It has no equivalent: what is missing, and what to do.
    Missing(&'static str, &'static str),
}

/// The fields of a kind by their paths from the object; items of a list have that of the list.
pub type Table = &'static [(&'static str, Fate)];

/// Names what has no equivalent among the fields below a path.
pub fn check(subject: &Subject<'_>, root: &'static str, table: Table, notes: &mut Vec<Note>) {
    let mut walk = Walk { subject, table, notes };
    let Some(value) = subject.value.get(root) else { return };
    walk.below(value, root, &mut vec![Step::Key(root)]);
}

struct Walk<'w, 'o> {
    subject: &'w Subject<'o>,
    table: Table,
    notes: &'w mut Vec<Note>,
}

impl Walk<'_, '_> {
    fn below<'v>(&mut self, value: &'v Value, path: &str, steps: &mut Vec<Step<'v>>) {
        match value {
            Value::Map(map) => {
                for (key, value) in map.iter() {
                    steps.push(Step::Key(key));
                    self.field(value, &format!("{path}.{key}"), steps);
                    steps.pop();
                }
            }
            Value::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    steps.push(Step::Index(at));
                    self.below(item, path, steps);
                    steps.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {}
        }
    }

    fn field<'v>(&mut self, value: &'v Value, path: &str, steps: &mut Vec<Step<'v>>) {
        if says_nothing(value) {
            return;
        }
        // A list of what can also be given alone has the same fields.
        let looked_up = path.replacen("spec.sources", "spec.source", 1);
        match self.table.iter().find(|(known, _)| *known == looked_up).map(|(_, fate)| *fate) {
            Some(Fate::Taken | Fate::Same) => {}
            Some(Fate::Within) => self.below(value, path, steps),
            Some(Fate::Missing(what, remedy)) => {
                self.notes.push(self.subject.note(Weight::NoEquivalent, steps, what, remedy));
            }
            None => {
                let (what, remedy) = (
                    "this field is not known, and nothing is done about it",
                    "see what it does, and whether you need that",
                );
                self.notes.push(self.subject.note(Weight::NoEquivalent, steps, what, remedy));
            }
        }
    }
}

/// Whether a field is as if it were not there.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Str(text) => text.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Bool(true) | Value::Int(_) | Value::Float(_) => false,
    }
}
