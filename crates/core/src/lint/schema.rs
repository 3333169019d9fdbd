//! Whether an object has the fields and types that its definition knows. Never asks what the values mean.

use std::sync::OnceLock;

use jiff::Timestamp;

use super::{
    Notes,
    rule::{Code, Own},
    similar, steps_of,
};
use crate::{
    api,
    kubernetes::{
        builtin::{self, Addresses, Context},
        decode, facts,
        kind::Kind,
        schema::{Schema, Shape, crd, quantity::Quantity, validate},
        status::{FieldError, Rule},
        value::Value,
    },
    manifest::{Object, place::Step},
    model::path::{Path, Segment},
};

use Step::Key;

/// The kinds that are looked at.
pub fn kinds() -> &'static [Kind] {
    static KINDS: OnceLock<Vec<Kind>> = OnceLock::new();
    KINDS.get_or_init(|| api::crd::all().iter().flat_map(crd::kinds).collect())
}

/// Names fields that do not exist, values of the wrong type, and what else the definition forbids.
pub fn check(object: &Object, kind: &Kind, notes: &mut Notes) {
    let mut walk = Walk::new(object, Reader::Engine, notes);
    walk.fields(&object.value, &kind.schema);
    walk.quantities();
    let wrong = walk.wrong;
    field_errors(object, validate::validate(kind, &object.value, None), &wrong, notes);
}

/// The same for a kind that every cluster has, which the server judges in code of its own.
pub fn check_built_in(object: &Object, kind: &Kind, notes: &mut Notes) {
    let mut walk = Walk::new(object, Reader::Server, notes);
    walk.fields(&object.value, &kind.schema);
    // What cannot be decoded is judged no further.
    let Ok(decoded) = decode::decode(kind, &object.value, None, &[]) else { return };
    if !walk.wrong.is_empty() {
        return;
    }
    let mut stored = decoded.value;
    decode::default(kind, &mut stored, None);
    stored.set_at(&["metadata", "uid"], UID);
    // A server fills in more before it judges: the selector of a Job, the addresses of a Service. What it refuses there
    // depends on what else is in the cluster.
    let mut context = Context {
        now: Timestamp::UNIX_EPOCH,
        uid: UID.into(),
        subresource: "",
        seed: 1,
        addresses: &Addresses::default(),
        look: &|_, _| Vec::new(),
    };
    if builtin::prepare_create(kind, &mut stored, &mut context).is_ok() {
        field_errors(object, builtin::validate_create(kind, &stored), &[], notes);
    }
}

/// What the server would give the object; the selector of a Job is made from it.
const UID: &str = "uid";

/// Names fields of a patch that do not exist, and values of the wrong type.
pub fn check_patch(patch: &Object, kind: &Kind, notes: &mut Notes) {
    Walk::new(patch, Reader::Patch, notes).fields(&patch.value, &kind.schema);
}

fn field_errors(object: &Object, errors: Vec<FieldError>, wrong: &[String], notes: &mut Notes) {
    for error in errors {
        let field = error.field.trim_start_matches('.');
        // What is said about the whole object only repeats that something in it is wrong.
        let path = Path::of_field(field);
        let whole = field.is_empty() || field.starts_with('<');
        let null = path.find(&object.value).is_some_and(Value::is_null);
        if !whole && !null && !wrong.iter().any(|known: &String| field.starts_with(known.as_str())) {
            field_error(object, &path, &error, notes);
        }
    }
}

/// Who reads the object, and so what becomes of a value of the wrong type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Argo Rollouts and Tidegate, which leave it out.
    Engine,
    /// An API server, which refuses the object.
    Server,
    /// Kustomize, which merges it into an object first. Keys with a dollar are orders to it.
    Patch,
}

struct Walk<'a, 'n> {
    object: &'a Object,
    reader: Reader,
    notes: &'n mut Notes,
    path: Vec<Step<'a>>,
    /// The paths of values of the wrong type.
    wrong: Vec<String>,
}

impl<'a, 'n> Walk<'a, 'n> {
    fn new(object: &'a Object, reader: Reader, notes: &'n mut Notes) -> Walk<'a, 'n> {
        Walk { object, reader, notes, path: Vec::new(), wrong: Vec::new() }
    }

    fn value(&mut self, value: &'a Value, schema: &Schema) {
        let fits = match (&schema.shape, value) {
            (_, Value::Null) | (Shape::Any, _) => true,
            (Shape::Quantity, Value::Str(text)) => Quantity::parse(text).is_ok(),
            (Shape::Bool, Value::Bool(_)) | (Shape::IntOrString | Shape::Quantity, Value::Str(_) | Value::Int(_)) => {
                true
            }
            (Shape::Int32, Value::Int(n)) => i32::try_from(*n).is_ok(),
            (Shape::Int64, Value::Int(_)) | (Shape::Number | Shape::Quantity, Value::Int(_) | Value::Float(_)) => true,
            (Shape::Str | Shape::Time | Shape::MicroTime | Shape::Duration | Shape::Bytes, Value::Str(_)) => true,
            (Shape::Struct(_) | Shape::Map { .. }, Value::Map(_)) => {
                self.fields(value, schema);
                true
            }
            (Shape::List { items, .. }, Value::List(given)) => {
                for (index, item) in given.iter().enumerate() {
                    self.path.push(Step::Index(index));
                    self.value(item, items);
                    self.path.pop();
                }
                true
            }
            _ => false,
        };
        if !fits {
            self.wrong_type(value, schema);
        }
    }

    /// Amounts of resources, which the definition leaves open and a server reads all the same.
    fn quantities(&mut self) {
        for list in ["initContainers", "containers"] {
            for (i, container) in self.object.value.list_at(&["spec", "template", "spec", list]).iter().enumerate() {
                for kind in ["limits", "requests"] {
                    let amounts = container.at(&["resources", kind]).and_then(Value::as_map);
                    for (name, amount) in amounts.into_iter().flat_map(|map| map.iter()) {
                        if amount.as_str().is_some_and(|text| Quantity::parse(text).is_err()) {
                            let inner = [Key("spec"), Key("template"), Key("spec"), Key(list), Step::Index(i)];
                            self.path = [&inner[..], &[Key("resources"), Key(kind), Key(name)]].concat();
                            self.wrong_type(amount, &Schema::of(Shape::Quantity));
                        }
                    }
                }
            }
        }
    }

    fn wrong_type(&mut self, value: &Value, schema: &Schema) {
        self.wrong.push(super::path_of(&self.path).to_string());
        let what = format!("expected {}, found {}", wanted(&schema.shape), given(value));
        let rule: super::Rule = match self.reader {
            Reader::Engine => Code::Malformed.into(),
            Reader::Server | Reader::Patch => Own::FieldValue.into(),
        };
        let finding = self.notes.say(self.object, &self.path, rule, what);
        finding.remedy = match (&schema.shape, value) {
            (Shape::Str, Value::Bool(_) | Value::Int(_) | Value::Float(_)) => "quote it".into(),
            (Shape::Int32 | Shape::Int64 | Shape::Number, Value::Str(text)) if text.parse::<f64>().is_ok() => {
                "write it without quotes".into()
            }
            (Shape::Int32 | Shape::Int64, _) => "write a whole number".into(),
            (Shape::Bool, _) => "write true or false, without quotes".into(),
            (Shape::List { .. }, _) => "begin each item with a dash".into(),
            (Shape::Quantity, _) => "write a number, with a suffix such as m, k, Ki, Mi or Gi if need be".into(),
            _ if self.reader == Reader::Engine => "Argo Rollouts would read the field as if it were absent".into(),
            _ => "an API server refuses the object as it is".into(),
        };
    }

    fn fields(&mut self, value: &'a Value, schema: &Schema) {
        for (key, below) in value.as_map().into_iter().flat_map(|map| map.iter()) {
            self.path.push(Step::Key(key));
            let at_top = self.path.len() == 1;
            match (&schema.shape, key.as_str()) {
                (_, "apiVersion" | "kind") if at_top => {}
                (_, "metadata") if at_top => {
                    if let Some(meta) = facts::named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") {
                        self.value(below, meta);
                    }
                }
                (Shape::Struct(known), _) => match known.field(key) {
                    Some(field) => self.value(below, &field.schema),
                    None if known.open => {}
                    None if self.reader == Reader::Patch && key.starts_with('$') => {}
                    // Every generator writes it; kubectl and the server drop it.
                    None if key == "creationTimestamp" && below.is_null() && self.is_metadata() => {}
                    None => {
                        let deeper = value.as_map().into_iter().flat_map(|map| map.iter()).find(|(name, given)| {
                            let schema = known.field(name).map(|field| &field.schema);
                            let has =
                                schema.and_then(|schema| schema.as_struct()).is_some_and(|s| s.field(key).is_some());
                            has && (given.is_null() || given.as_map().is_some())
                        });
                        let names = known.fields.iter().map(|(name, _)| name.as_str());
                        self.unknown(key, names, deeper.map(|(name, _)| name.as_str()));
                    }
                },
                (Shape::Map { values, .. }, _) => self.value(below, values),
                _ => {}
            }
            self.path.pop();
        }
    }

    /// Whether the key at hand is one of a `metadata`.
    fn is_metadata(&self) -> bool {
        let parent = self.path.len().checked_sub(2).and_then(|at| self.path.get(at));
        parent == Some(&Step::Key("metadata"))
    }

    /// `deeper` is a neighbour that has such a field.
    fn unknown<'k>(&mut self, key: &str, known: impl Iterator<Item = &'k str> + Clone, deeper: Option<&str>) {
        let parent = self.path.len().checked_sub(2).and_then(|at| self.path.get(at));
        let place = match parent {
            Some(Step::Key(parent)) => format!(" in {parent}"),
            Some(Step::Index(_)) => " in this item".to_owned(),
            None => " at the top of an object".to_owned(),
        };
        let near = similar::nearest(key, known.clone());
        let remedy = match (near, deeper) {
            (_, Some(sibling)) => format!("indent it deeper to make it part of {sibling}"),
            (Some(near), None) => format!("did you mean {near}?"),
            (None, None) => {
                let mut names: Vec<&str> = known.collect();
                let more = names.len().saturating_sub(8);
                names.truncate(8);
                match (names.is_empty(), more) {
                    (true, _) => "remove it".to_owned(),
                    (false, 0) => format!("there are: {}", names.join(", ")),
                    (false, _) => format!("there are: {} and {more} more; check the indentation", names.join(", ")),
                }
            }
        };
        let what = format!("there is no field {key}{place}");
        self.notes.say_key(self.object, &self.path, Own::UnknownField, what).remedy = remedy;
    }
}

fn wanted(shape: &Shape) -> &'static str {
    match shape {
        Shape::Any => "anything",
        Shape::Bool => "true or false",
        Shape::Int32 | Shape::Int64 => "a whole number",
        Shape::Number => "a number",
        Shape::Str => "text",
        Shape::IntOrString => "a whole number or text",
        Shape::Quantity => "a quantity such as 100m or 1Gi",
        Shape::Time | Shape::MicroTime => "a time such as 2026-01-02T15:04:05Z",
        Shape::Duration => "a duration such as 1m30s",
        Shape::Bytes => "base64 text",
        Shape::Struct(_) | Shape::Map { .. } => "an object",
        Shape::List { .. } => "a list",
    }
}

fn given(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(b) => format!("the boolean {b}"),
        Value::Int(n) => format!("the number {n}"),
        Value::Float(f) => format!("the number {f}"),
        Value::Str(text) if text.len() <= 40 => format!("the text {:?}", text.as_str()),
        Value::Str(_) => "a text".into(),
        Value::List(_) => "a list".into(),
        Value::Map(_) => "an object".into(),
    }
}

/// What an API server would say, in fewer words.
fn field_error(object: &Object, path: &Path, error: &FieldError, notes: &mut Notes) {
    let steps = steps_of(path);
    let last = match path.segments().last() {
        Some(Segment::Key(key)) => key.to_string(),
        Some(Segment::Index(index)) => format!("item {index}"),
        None => "the object".to_owned(),
    };
    let (rule, what, remedy): (_, String, String) = match &error.rule {
        Rule::Required => (Own::MissingField, format!("{last} is missing"), "add it".into()),
        Rule::NotSupported(value, allowed) => {
            (Own::FieldValue, format!("{last} cannot be {value}"), format!("use one of {}", allowed.join(", ")))
        }
        // Types were looked at above.
        Rule::TypeInvalid(_) => return,
        Rule::Invalid(_) | Rule::Duplicate(_) | Rule::Forbidden | Rule::TooLong(_) | Rule::TooMany(..) => {
            (Own::FieldValue, error.detail.clone(), "an API server refuses the object as it is".into())
        }
        _ => (Own::FieldValue, error.to_string(), "an API server refuses the object as it is".into()),
    };
    notes.say(object, &steps, rule, what).remedy = remedy;
}
