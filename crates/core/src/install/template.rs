//! Objects as text of a Helm template: what a choice adds stands in its condition, what people fill in is an expression.
//!
//! The conditions are found, not written down: the objects of an installation with everything are compared with those that it
//! has without each choice. Never knows what the objects mean.

use std::fmt::Write as _;

use super::Install;
use crate::kubernetes::value::Value;

/// Something that can be left out.
pub(super) struct Choice {
    /// What opens its block: `if .Values.webhooks`, `range .Values.reads`.
    pub block: &'static str,
    /// Leaves it out.
    pub without: fn(&mut Install),
}

/// A value that people fill in.
pub(super) struct Blank {
    /// How it is marked among the objects.
    pub mark: &'static str,
    /// The expression in its place.
    pub expression: &'static str,
}

/// Text that only a template can have, at a place of an object.
pub(super) struct Slot {
    /// The place, such as `Deployment.spec.template.spec`.
    pub path: &'static str,
    /// Whether the text is in place of what is there, or goes after it.
    pub position: Position,
    /// The lines; `@` stands for the indentation.
    pub text: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    Instead,
    After,
}

/// How objects become a template.
pub(super) struct Template {
    pub choices: Vec<Choice>,
    pub blanks: Vec<Blank>,
    pub slots: Vec<Slot>,
}

/// A value with the choices that it depends on.
struct Node {
    /// The choices without which it is not there, by number.
    needs: Vec<usize>,
    is: Is,
}

enum Is {
    Map(Vec<(String, Node)>),
    List(Vec<Node>),
    Scalar(Value),
    /// A scalar that is another one without a choice.
    Either(Value, usize, Value),
}

impl Template {
    /// These objects of the installation with everything, each under its kind.
    pub fn objects(&self, all: &Install, of: fn(&Install) -> Vec<Value>) -> Vec<(String, String)> {
        let variants: Vec<Vec<Value>> = self
            .choices
            .iter()
            .map(|choice| {
                let mut install = all.clone();
                (choice.without)(&mut install);
                of(&install)
            })
            .collect();
        let object = |value: &Value| {
            let kind = value.str_at(&["kind"]).unwrap_or_default().to_owned();
            let variants: Vec<(usize, Option<&Value>)> = variants
                .iter()
                .map(|objects| objects.iter().find(|other| is_same_object(value, other)))
                .enumerate()
                .collect();
            let node = node(value, &variants);
            let mut text = String::new();
            self.open(&node.needs, &mut text);
            text.push_str("---\n");
            self.block(&node.is, &kind, 0, &mut text);
            self.close(&node.needs, &mut text);
            (kind, text)
        };
        of(all).iter().map(object).collect()
    }

    fn open(&self, needs: &[usize], out: &mut String) {
        for need in needs {
            let _ = writeln!(out, "{{{{- {} }}}}", self.choices[*need].block);
        }
    }

    fn close(&self, needs: &[usize], out: &mut String) {
        out.push_str(&"{{- end }}\n".repeat(needs.len()));
    }

    /// The lines of a map or a list.
    fn block(&self, is: &Is, path: &str, indent: usize, out: &mut String) {
        let pad = " ".repeat(indent);
        match is {
            Is::Map(fields) => {
                for (key, node) in fields {
                    self.open(&node.needs, out);
                    let path = format!("{path}.{key}");
                    let slot = self.slots.iter().find(|slot| slot.path == path && slot.position == Position::Instead);
                    match (slot, &node.is) {
                        (Some(slot), _) => out.push_str(&slot.text.replace('@', &pad)),
                        (None, Is::Map(fields)) if !fields.is_empty() => {
                            let _ = writeln!(out, "{pad}{key}:");
                            self.block(&node.is, &path, indent + 2, out);
                        }
                        (None, Is::List(items)) if !items.is_empty() => {
                            let _ = writeln!(out, "{pad}{key}:");
                            self.block(&node.is, &path, indent, out);
                        }
                        (None, leaf) => {
                            let _ = writeln!(out, "{pad}{key}: {}", self.leaf(leaf));
                        }
                    }
                    self.close(&node.needs, out);
                }
            }
            Is::List(items) => {
                for item in items {
                    self.open(&item.needs, out);
                    match &item.is {
                        Is::Map(_) | Is::List(_) => {
                            let mut inner = String::new();
                            self.block(&item.is, path, indent + 2, &mut inner);
                            match inner.strip_prefix(&format!("{pad}  ")) {
                                Some(rest) => out.push_str(&format!("{pad}- {rest}")),
                                None => out.push_str(&format!("{pad}-\n{inner}")),
                            }
                        }
                        leaf => {
                            let _ = writeln!(out, "{pad}- {}", self.leaf(leaf));
                        }
                    }
                    self.close(&item.needs, out);
                }
            }
            leaf => {
                let _ = writeln!(out, "{pad}{}", self.leaf(leaf));
            }
        }
        for slot in self.slots.iter().filter(|slot| slot.path == path && slot.position == Position::After) {
            // Of a list's items only the list has the slot.
            if matches!(is, Is::Map(_)) {
                out.push_str(&slot.text.replace('@', &pad));
            }
        }
    }

    fn leaf(&self, is: &Is) -> String {
        match is {
            Is::Map(_) => "{}".to_owned(),
            Is::List(_) => "[]".to_owned(),
            Is::Scalar(value) => self.scalar(value),
            Is::Either(with, choice, without) => {
                let block = self.choices[*choice].block;
                format!("{{{{ {block} }}}}{}{{{{ else }}}}{}{{{{ end }}}}", self.scalar(with), self.scalar(without))
            }
        }
    }

    fn scalar(&self, value: &Value) -> String {
        let Some(text) = value.as_str() else {
            let json = value.to_json();
            let blank = self.blanks.iter().find(|blank| blank.mark == json);
            return blank.map_or(json, |blank| format!("{{{{ {} }}}}", blank.expression));
        };
        let mut format = text.replace('%', "%%");
        let mut filled: Vec<(usize, &str)> = Vec::new();
        for blank in &self.blanks {
            if let Some(at) = format.find(blank.mark) {
                format = format.replacen(blank.mark, "%s", 1);
                filled.push((at, blank.expression));
            }
        }
        filled.sort_unstable();
        match filled.as_slice() {
            [] if is_plain(text) => text.to_owned(),
            [] => Value::from(text).to_json().replace("{{", "{{ \"{{\" }}"),
            [(_, expression)] if format == "%s" => format!("{{{{ {expression} | quote }}}}"),
            filled => {
                let arguments: Vec<String> = filled.iter().map(|(_, expression)| format!("({expression})")).collect();
                format!("{{{{ printf {} {} | quote }}}}", Value::from(format.as_str()).to_json(), arguments.join(" "))
            }
        }
    }
}

/// Whether YAML reads it back as this very string.
fn is_plain(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-./_".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(is_word)
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str())
}

fn is_same_object(one: &Value, other: &Value) -> bool {
    [&["kind"][..], &["metadata", "name"], &["metadata", "namespace"]]
        .into_iter()
        .all(|path| one.str_at(path) == other.str_at(path))
}

/// A value beside what it is without each choice; `None` where it is not there.
fn node(value: &Value, variants: &[(usize, Option<&Value>)]) -> Node {
    let needs = variants.iter().filter(|(_, variant)| variant.is_none()).map(|(choice, _)| *choice).collect();
    let there: Vec<(usize, &Value)> =
        variants.iter().filter_map(|(choice, variant)| Some((*choice, (*variant)?))).collect();
    let is = match value {
        Value::Map(map) => Is::Map(
            map.iter()
                .map(|(key, field)| {
                    let variants: Vec<_> = there.iter().map(|(choice, other)| (*choice, other.get(key))).collect();
                    (key.to_string(), node(field, &variants))
                })
                .collect(),
        ),
        Value::List(items) => Is::List(
            (0..items.len())
                .map(|number| {
                    let in_list = |other| counterpart(items, number, Value::as_list(other).unwrap_or_default());
                    let variants: Vec<_> = there.iter().map(|(choice, other)| (*choice, in_list(other))).collect();
                    node(&items[number], &variants)
                })
                .collect(),
        ),
        scalar => match there.iter().find(|(_, other)| *other != scalar && scalar.as_str().is_some()) {
            Some((choice, other)) => Is::Either(scalar.clone(), *choice, (*other).clone()),
            None => Is::Scalar(scalar.clone()),
        },
    };
    Node { needs, is }
}

/// Which item of the other list stands for this one: the equal one, the one of that name or flag, or, in a list as long, the one
/// in its place.
fn counterpart<'a>(items: &[Value], number: usize, others: &'a [Value]) -> Option<&'a Value> {
    let name = |value: &Value| match value.as_str() {
        Some(text) => text.split_once('=').map(|(flag, _)| flag.to_owned()),
        None => value.str_at(&["name"]).map(str::to_owned),
    };
    let item = &items[number];
    let equal = others.iter().find(|other| *other == item);
    let named = || others.iter().find(|other| name(item).is_some() && name(other) == name(item));
    let placed = || (others.len() == items.len()).then(|| &others[number]);
    equal.or_else(named).or_else(placed)
}
