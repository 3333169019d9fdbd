//! Whether a custom resource keeps the rules of its schema, in the words of the real server.
//!
//! Three passes as upstream has them: the OpenAPI rules, embedded resources, and lists that are sets or maps; then
//! [`cel`](super::cel). An update tolerates what was wrong before and did not change (ratcheting). Problems are named in
//! the order of the document, where upstream shuffles them. Never changes a value.

use std::collections::HashSet;

use super::{
    Schema, Shape, Topology, cel, clause, embedded,
    path::Path,
    rules::{Below, Bound, Rules},
};
use crate::{
    kind::{Kind, Scale},
    names,
    status::{FieldError, Rule, go_float, go_quoted},
    value::{Map, Text, Value},
};

/// What is wrong with a custom resource that is created, or updated from `old`.
pub fn validate(kind: &Kind, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    judge(kind, new, old, Vec::new()).problems
}

/// What is wrong with an object, and what is only worth a warning.
#[derive(Debug, Default)]
pub struct Judgement {
    /// What forbids the write.
    pub problems: Vec<FieldError>,
    /// Texts for `Warning` headers: CEL rules that are broken by what did not change.
    pub warnings: Vec<String>,
}

/// As [`validate`], after the store found `problems` with the metadata: CEL rules are not tried on an object that lacks
/// what they may rely on.
pub fn judge(kind: &Kind, new: &Value, old: Option<&Value>, mut problems: Vec<FieldError>) -> Judgement {
    let schema = &kind.schema;
    problems.extend(openapi(schema, new, old, None));
    if let Some(scale) = kind.custom().and_then(|custom| custom.scale.as_ref()) {
        replicas(&scale.spec_replicas, new, &mut problems);
        scale_status(scale, new, &mut problems);
    }
    embedded::validate(schema, new, &mut problems);
    sets(schema, new, old, &mut problems);
    let mut judgement = expressions(schema, new, old, problems);
    finalizers(new, old, &mut judgement.warnings);
    judgement
}

/// Warns of finalizers that are new and belong to no domain.
fn finalizers(new: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    const PATH: [&str; 2] = ["metadata", "finalizers"];
    let known = old.map(|old| old.list_at(&PATH)).unwrap_or_default();
    let mut added: Vec<&str> =
        new.list_at(&PATH).iter().filter(|name| !known.contains(name)).filter_map(Value::as_str).collect();
    added.sort_unstable();
    added.dedup();
    for name in added {
        let mut warn = |words: &str| warnings.push(format!("metadata.finalizers: {}: {words}", go_quoted(name)));
        names::label_key(name).iter().for_each(|words| warn(words));
        if !name.contains('/') && !["orphan", "foregroundDeletion", "kubernetes"].contains(&name) {
            warn(match name.contains('.') {
                true => {
                    "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with \
                     other finalizer writers"
                }
                false => {
                    "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
                }
            });
        }
    }
}

/// As [`judge`], of a custom resource whose status is written.
pub fn judge_status(kind: &Kind, new: &Value, old: &Value, mut problems: Vec<FieldError>) -> Judgement {
    let schema = &kind.schema;
    if let (Some(status), Some(field)) = (new.get("status"), schema.child("status")) {
        problems.extend(openapi(field, status, old.get("status"), Some("status")));
    }
    if let Some(scale) = kind.custom().and_then(|custom| custom.scale.as_ref()) {
        scale_status(scale, new, &mut problems);
    }
    sets(schema, new, Some(old), &mut problems);
    expressions(schema, new, Some(old), problems)
}

fn expressions(schema: &Schema, new: &Value, old: Option<&Value>, mut problems: Vec<FieldError>) -> Judgement {
    if !below(schema).cel {
        return Judgement { problems, warnings: Vec::new() };
    }
    let blocking = |problem: &FieldError| {
        matches!(
            problem.rule,
            Rule::NotSupported(..) | Rule::Required | Rule::TooLong(_) | Rule::TooMany(..) | Rule::TypeInvalid(_)
        )
    };
    if problems.iter().any(blocking) {
        let words = "some validation rules were not checked because the object was invalid; correct the existing errors \
                     to complete validation";
        problems.push(FieldError::invalid("<nil>", Value::Null, words));
        return Judgement { problems, warnings: Vec::new() };
    }
    let mut judgement = cel::validate(schema, new, old, true);
    problems.append(&mut judgement.problems);
    Judgement { problems, ..judgement }
}

/// The rules of the OpenAPI schema. `base` is the field the value stands in, if it is not the whole object.
pub(super) fn openapi(schema: &Schema, new: &Value, old: Option<&Value>, base: Option<&str>) -> Vec<FieldError> {
    let mut walk = Walk { problems: Vec::new(), base };
    walk.node(schema, new, old, &Path::ROOT);
    let mut problems = walk.problems;
    if problems.len() > 1 {
        // The same sentence may come from a rule and from an alternative beside it; upstream says it once.
        let mut seen = HashSet::new();
        problems.retain(|problem| seen.insert(problem.to_string()));
    }
    problems
}

/// A walk along a schema that collects what is wrong.
pub(super) struct Walk<'a> {
    /// What was found.
    pub problems: Vec<FieldError>,
    /// The field the whole value stands in.
    pub base: Option<&'a str>,
}

impl Walk<'_> {
    fn node(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, path: &Path<'_>) {
        if old.is_some_and(|old| value.is(old)) {
            if below(schema).unsettled {
                self.settled(schema, value, path);
            }
            return;
        }
        let before = self.problems.len();
        self.shape(schema, value, path);
        let rules = schema.rules.as_deref();
        if let Some(rules) = rules {
            self.first(rules, value, path);
        }
        if let Value::List(items) = value {
            self.list(schema, items, old.and_then(Value::as_list), path);
            rules.inspect(|rules| self.items(rules, items, path));
        }
        self.allowed(&schema.allowed, value, path);
        if let Value::Map(map) = value {
            rules.inspect(|rules| self.size(rules, map, path));
            self.object(schema, map, old.and_then(Value::as_map), path);
            rules.inspect(|rules| self.required(rules, map, path));
        }
        if self.problems.len() > before && old.is_some_and(|old| unchanged(schema, value, old)) {
            self.problems.truncate(before);
        }
    }

    /// What is wrong with a value that did not change: upstream cannot tell that where a field is that the schema does
    /// not name, and judges the objects around it again. Returns whether there is one.
    fn settled(&mut self, schema: &Schema, value: &Value, path: &Path<'_>) -> bool {
        if !below(schema).open && !matches!(schema.shape, Shape::Any) {
            return false;
        }
        let mut unknown = false;
        match (value, &schema.shape) {
            (Value::Map(map), Shape::Struct(fields)) => {
                for (key, value) in map.iter() {
                    unknown |= match fields.field(key) {
                        Some(field) => self.settled(&field.schema, value, &path.field(key)),
                        None => true,
                    };
                }
            }
            (Value::Map(map), Shape::Map { values, .. }) => {
                for (key, value) in map.iter() {
                    unknown |= self.settled(values, value, &path.key(key));
                }
            }
            (Value::List(list), Shape::List { items, topology, .. }) => {
                // Items of other lists are compared as they are, whatever is in them.
                if matches!(topology, Topology::Map(_)) {
                    for (i, item) in list.iter().enumerate() {
                        unknown |= self.settled(items, item, &path.index(i));
                    }
                }
            }
            (Value::Map(map), _) => unknown = !map.is_empty(),
            _ => {}
        }
        if let Some(rules) = schema.rules.as_deref().filter(|rules| unknown && rules.demands_of_whole()) {
            self.first(rules, value, path);
            match value {
                Value::List(items) => self.items(rules, items, path),
                Value::Map(map) => {
                    self.size(rules, map, path);
                    self.required(rules, map, path);
                }
                _ => {}
            }
        }
        unknown
    }

    /// The type.
    fn shape(&mut self, schema: &Schema, value: &Value, path: &Path<'_>) {
        let untyped = schema.rules.as_ref().is_some_and(|rules| rules.untyped);
        if untyped || (value.is_null() && schema.nullable) {
            return;
        }
        let fits = match (&schema.shape, value) {
            (Shape::Any, _) => true,
            (Shape::Bool, Value::Bool(_)) => true,
            (Shape::Int32 | Shape::Int64, Value::Int(_)) => true,
            (Shape::Int32 | Shape::Int64, Value::Float(f)) => is_integral(*f),
            (Shape::Number, Value::Int(_) | Value::Float(_)) => true,
            (Shape::IntOrString, Value::Int(_) | Value::Str(_)) => true,
            (Shape::IntOrString, Value::Float(f)) => is_integral(*f),
            (Shape::Str | Shape::Quantity | Shape::Bytes, Value::Str(_)) => true,
            (Shape::Time | Shape::MicroTime | Shape::Duration, Value::Str(_)) => true,
            (Shape::Struct(_) | Shape::Map { .. }, Value::Map(_)) => true,
            (Shape::List { .. }, Value::List(_)) => true,
            _ => false,
        };
        if fits {
            return;
        }
        let wanted = match &schema.shape {
            Shape::Bool => "boolean",
            Shape::Int32 | Shape::Int64 => "integer",
            Shape::Number => "number",
            Shape::IntOrString => "integer,string",
            Shape::Struct(_) | Shape::Map { .. } => "object",
            Shape::List { .. } => "array",
            _ => "string",
        };
        let format = schema.rules.as_ref().and_then(|rules| rules.format.as_ref());
        let numeric = matches!(schema.shape, Shape::Int32 | Shape::Int64 | Shape::Number | Shape::IntOrString);
        match (format, value) {
            // Upstream asks a text with a format nothing more, and takes a list for one.
            (Some(_), Value::Str(_) | Value::List(_)) if !numeric => {}
            (Some(format), Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Map(_)) => {
                let given = match value {
                    Value::Int(_) => "int64",
                    Value::Float(_) => "float64",
                    _ => "",
                };
                self.wrong_type(path, &format.name, given);
            }
            _ => self.wrong_type(path, wanted, value.type_name()),
        }
    }

    /// Says that a value has the wrong type.
    pub(super) fn wrong_type(&mut self, path: &Path<'_>, wanted: &str, given: &str) {
        let name = path.dotted();
        let words = format!("{name} in body must be of type {wanted}: \"{given}\"");
        self.push(name, Rule::TypeInvalid(given.into()), words);
    }

    /// The rules upstream looks at first: alternatives, texts and numbers.
    pub(super) fn first(&mut self, rules: &Rules, value: &Value, path: &Path<'_>) {
        if rules.has_clauses() && !value.is_null() {
            clause::check(self, rules, value, path);
        }
        self.scalar(rules, value, path);
    }

    /// The rules on texts and numbers.
    pub(super) fn scalar(&mut self, rules: &Rules, value: &Value, path: &Path<'_>) {
        match value {
            Value::Str(text) => self.text(rules, text, path),
            Value::Int(_) | Value::Float(_) => self.number(rules, value, path),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => {}
        }
    }

    fn text(&mut self, rules: &Rules, text: &Text, path: &Path<'_>) {
        let length = || text.chars().count() as i64;
        if let Some(most) = rules.max_length.filter(|most| text.len() as i64 > *most && length() > *most) {
            self.push(path.dotted(), Rule::TooLong(usize::try_from(most).unwrap_or(0)), String::new());
        } else if let Some(least) = rules.min_length.filter(|least| length() < *least) {
            self.invalid(path, text, format_args!("should be at least {least} chars long"));
        } else if let Some(pattern) = &rules.pattern
            && !pattern.regex.as_ref().is_some_and(|regex| regex.is_match(text))
        {
            self.invalid(path, text, format_args!("should match '{}'", pattern.text));
        }
        if let Some(format) = &rules.format
            && !format.fits(text)
        {
            let name = path.dotted();
            let words = format!("{name} in body must be of type {}: {}", format.name, go_quoted(text));
            self.push(name, Rule::TypeInvalid(text.into()), words);
        }
    }

    fn number(&mut self, rules: &Rules, value: &Value, path: &Path<'_>) {
        if let Some(factor) = rules.multiple_of {
            let (factor, positive, fits) = match value {
                Value::Int(n) => {
                    let factor = factor as i64;
                    (Value::Int(factor), factor > 0, factor != 0 && n % factor == 0)
                }
                _ => {
                    let number = value.as_float().unwrap_or_default();
                    let times = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
                    (Value::Float(factor), factor > 0.0, is_integral(times))
                }
            };
            let shown = go_value(&factor);
            if !positive {
                let name = path.dotted();
                let words = format!("factor MultipleOf declared for {name} must be positive: {shown}");
                self.push(name, Rule::Invalid(factor), words);
            } else if !fits {
                self.invalid(path, value, format_args!("should be a multiple of {shown}"));
            }
        }
        if let Some(bound) = rules.minimum
            && is_beyond(value, bound, |value, end| value < end)
        {
            let words = if bound.exclusive { "should be greater than" } else { "should be greater than or equal to" };
            self.invalid(path, value, format_args!("{words} {}", shown_bound(value, bound)));
        }
        if let Some(bound) = rules.maximum
            && is_beyond(value, bound, |value, end| value > end)
        {
            let words = if bound.exclusive { "should be less than" } else { "should be less than or equal to" };
            self.invalid(path, value, format_args!("{words} {}", shown_bound(value, bound)));
        }
    }

    /// The rules on a list as a whole.
    pub(super) fn items(&mut self, rules: &Rules, items: &[Value], path: &Path<'_>) {
        let size = items.len() as i64;
        if let Some(least) = rules.min_items.filter(|least| size < *least) {
            self.invalid(path, size, format_args!("should have at least {least} items"));
        }
        if let Some(most) = rules.max_items.filter(|most| size > *most) {
            self.push(path.dotted(), Rule::TooMany(items.len(), usize::try_from(most).unwrap_or(0)), String::new());
        }
        if rules.unique_items && (1..items.len()).any(|i| items[..i].contains(&items[i])) {
            self.invalid(path, "", format_args!("shouldn't contain duplicates"));
        }
    }

    /// The rules on how many fields an object has, and which it may not have.
    pub(super) fn size(&mut self, rules: &Rules, map: &Map, path: &Path<'_>) {
        let size = map.len() as i64;
        if let Some(least) = rules.min_properties.filter(|least| size < *least) {
            self.invalid(path, size, format_args!("should have at least {least} properties"));
        }
        if let Some(most) = rules.max_properties.filter(|most| size > *most) {
            self.push(path.dotted(), Rule::TooMany(map.len(), usize::try_from(most).unwrap_or(0)), String::new());
        }
        if rules.closed {
            for key in map.keys() {
                let name = path.dotted();
                let words = format!("{name}.{key} in body is a forbidden property");
                self.push(name, Rule::Invalid(key.into()), words);
            }
        }
    }

    /// The fields that must be there.
    pub(super) fn required(&mut self, rules: &Rules, map: &Map, path: &Path<'_>) {
        for key in &rules.required {
            if !map.contains_key(key) {
                self.push(path.field(key).dotted(), Rule::Required, String::new());
            }
        }
    }

    /// The list of allowed values.
    pub(super) fn allowed(&mut self, allowed: &[Value], value: &Value, path: &Path<'_>) {
        if !allowed.is_empty() && !allowed.iter().any(|choice| is_choice(value, choice)) {
            let shown = allowed.iter().map(|choice| match choice {
                Value::Str(text) => text.to_string(),
                other => other.to_json(),
            });
            self.push(path.dotted(), Rule::NotSupported(value.clone(), shown.collect()), String::new());
        }
    }

    fn object(&mut self, schema: &Schema, map: &Map, old: Option<&Map>, path: &Path<'_>) {
        match &schema.shape {
            Shape::Struct(fields) => {
                for (key, value) in map.iter() {
                    let Some(field) = fields.field(key) else { continue };
                    // The version and kind of the old object were converted to the new one's, so they tell nothing.
                    let before =
                        match path.is_root() && self.base.is_none() && matches!(key.as_str(), "apiVersion" | "kind") {
                            true => None,
                            false => old.and_then(|old| old.get(key)),
                        };
                    self.node(&field.schema, value, before, &path.field(key));
                }
            }
            Shape::Map { values, .. } => {
                for (key, value) in map.iter() {
                    self.node(values, value, old.and_then(|old| old.get(key)), &path.key(key));
                }
            }
            _ => {}
        }
    }

    fn list(&mut self, schema: &Schema, items: &[Value], old: Option<&[Value]>, path: &Path<'_>) {
        let Shape::List { items: schema, topology, .. } = &schema.shape else { return };
        for (i, item) in items.iter().enumerate() {
            let before = match topology {
                Topology::Map(keys) => old.and_then(|old| correlated(keys, item, old)),
                Topology::Atomic | Topology::Set => None,
            };
            self.node(schema, item, before, &path.index(i));
        }
    }

    fn invalid(&mut self, path: &Path<'_>, value: impl Into<Value>, words: std::fmt::Arguments<'_>) {
        let name = path.dotted();
        let words = format!("{name} in body {words}");
        self.push(name, Rule::Invalid(value.into()), words);
    }

    /// Says that an alternative as a whole failed; upstream names the place in the sentence only.
    pub(super) fn composite(&mut self, words: String) {
        self.push(String::new(), Rule::Invalid("".into()), words);
    }

    fn push(&mut self, name: String, rule: Rule, detail: String) {
        let field = match (self.base, name.is_empty()) {
            (None, true) => "<nil>".to_owned(),
            (None, false) => name,
            (Some(base), true) => base.to_owned(),
            (Some(base), false) => format!("{base}.{name}"),
        };
        self.problems.push(FieldError { field, rule, detail });
    }
}

/// What to look for inside this type.
pub(super) fn below(schema: &Schema) -> Below {
    schema.rules.as_ref().map_or(Below::default(), |rules| rules.below)
}

/// Whether upstream sees that the value did not change. It follows the schema, so that it takes an object with a field
/// the schema does not name for changed, and does not mind the order of a list that is a map.
pub(super) fn unchanged(schema: &Schema, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Map(new), Value::Map(old)) => {
            new.len() == old.len()
                && new.iter().all(|(key, value)| match (schema.child(key), old.get(key)) {
                    (Some(child), Some(before)) => unchanged(child, value, before),
                    _ => false,
                })
        }
        (Value::List(new), Value::List(old)) => match &schema.shape {
            Shape::List { items, topology: Topology::Map(keys), .. } => {
                new.len() == old.len()
                    && new
                        .iter()
                        .all(|item| correlated(keys, item, old).is_some_and(|before| unchanged(items, item, before)))
            }
            _ => new == old,
        },
        _ => new == old,
    }
}

/// The item of `old` with the same keys as `item`.
pub(super) fn correlated<'a>(keys: &[Text], item: &Value, old: &'a [Value]) -> Option<&'a Value> {
    let scalar = |value: &&Value| matches!(value, Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_));
    let wanted: Vec<&Value> = keys.iter().map(|key| item.get(key).filter(scalar)).collect::<Option<_>>()?;
    old.iter().find(|other| keys.iter().zip(&wanted).all(|(key, value)| other.get(key) == Some(*value)))
}

/// Whether an update, or a new object, breaks the promise of a list that is a set or a map. If the old object broke one
/// somewhere, nothing is said.
fn sets(schema: &Schema, new: &Value, old: Option<&Value>, problems: &mut Vec<FieldError>) {
    if !below(schema).sets {
        return;
    }
    let mut found = Vec::new();
    sets_in(schema, new, old, &Path::ROOT, &mut found);
    if found.is_empty() {
        return;
    }
    if let Some(old) = old {
        let mut before = Vec::new();
        sets_in(schema, old, None, &Path::ROOT, &mut before);
        if !before.is_empty() {
            return;
        }
    }
    problems.extend(found);
}

fn sets_in(schema: &Schema, new: &Value, old: Option<&Value>, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    if !below(schema).sets || old.is_some_and(|old| new.is(old)) {
        return;
    }
    match (new, &schema.shape) {
        (Value::Map(map), Shape::Struct(fields)) => {
            for (key, value) in map.iter() {
                if let Some(field) = fields.field(key) {
                    sets_in(&field.schema, value, old.and_then(|old| old.get(key)), &path.field(key), problems);
                }
            }
        }
        (Value::Map(map), Shape::Map { values, .. }) => {
            for (key, value) in map.iter() {
                sets_in(values, value, old.and_then(|old| old.get(key)), &path.key(key), problems);
            }
        }
        (Value::List(items), Shape::List { items: schema, topology, .. }) => {
            match topology {
                Topology::Atomic => {}
                Topology::Set => {
                    for i in repeated(items.iter().map(identity)) {
                        problems.push(FieldError::duplicate(path.index(i).to_string(), &items[i]));
                    }
                }
                Topology::Map(keys) => list_map(keys, items, path, problems),
            }
            for (i, item) in items.iter().enumerate() {
                sets_in(schema, item, None, &path.index(i), problems);
            }
        }
        _ => {}
    }
}

/// What tells an item of a set from others. An integer is not the float of the same value.
fn identity(value: &Value) -> String {
    match value {
        Value::Float(f) => format!("float {f}"),
        other => other.to_json(),
    }
}

fn list_map(keys: &[Text], items: &[Value], path: &Path<'_>, problems: &mut Vec<FieldError>) {
    if let Some(i) = items.iter().position(|item| !matches!(item, Value::Map(_) | Value::Null)) {
        let words = "must be an object for an array of list-type map";
        problems.push(FieldError::invalid(path.index(i).to_string(), &items[i], words));
        return;
    }
    let key_of = |item: &Value| -> Map {
        keys.iter().filter_map(|key| item.get(key).map(|value| (key.clone(), value.clone()))).collect()
    };
    for i in repeated(items.iter().map(|item| Value::Map(key_of(item)).to_json())) {
        problems.push(FieldError::duplicate(path.index(i).to_string(), key_of(&items[i])));
    }
}

/// Where something stands for the second time. The third and later times are not named.
fn repeated(items: impl ExactSizeIterator<Item = String>) -> Vec<usize> {
    if items.len() < 2 {
        return Vec::new();
    }
    let mut seen = std::collections::HashMap::new();
    let mut twice = Vec::new();
    for (i, item) in items.enumerate() {
        let times = seen.entry(item).or_insert(0);
        *times += 1;
        if *times == 2 {
            twice.push(i);
        }
    }
    twice
}

fn scale_status(scale: &Scale, object: &Value, problems: &mut Vec<FieldError>) {
    replicas(&scale.status_replicas, object, problems);
    if let Some(path) = &scale.selector
        && let Err(words) = nested(object, path, "string", |value| value.as_str().is_some())
    {
        problems.push(FieldError::invalid(dotted_path(path), "", words));
    }
}

fn replicas(path: &[Text], object: &Value, problems: &mut Vec<FieldError>) {
    let field = || dotted_path(path);
    match nested(object, path, "int64", |value| matches!(value, Value::Int(_))) {
        Err(words) => problems.push(FieldError::invalid(field(), 0, words)),
        Ok(value) => match value.and_then(Value::as_int).unwrap_or(0) {
            n if n < 0 => problems.push(FieldError::invalid(field(), n, "should be a non-negative integer")),
            n if n > i64::from(i32::MAX) => {
                problems.push(FieldError::invalid(field(), n, "should be less than or equal to 2147483647"));
            }
            _ => {}
        },
    }
}

fn dotted_path(path: &[Text]) -> String {
    path.iter().fold(String::new(), |text, step| text + "." + step)
}

/// The value at a path, which must be of a type; in the words of upstream's accessor if it is not.
fn nested<'a>(
    object: &'a Value,
    path: &[Text],
    wanted: &str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let mut value = object;
    for (i, step) in path.iter().enumerate() {
        match value {
            Value::Map(map) => match map.get(step) {
                Some(child) => value = child,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => {
                let at = dotted_path(&path[..i + 1]);
                return Err(format!(
                    "{at} accessor error: {} is of the type {}, expected map[string]interface{{}}",
                    go_value(other),
                    go_type(other)
                ));
            }
        }
    }
    if fits(value) {
        return Ok(Some(value));
    }
    let at = dotted_path(path);
    Err(format!("{at} accessor error: {} is of the type {}, expected {wanted}", go_value(value), go_type(value)))
}

/// Go's `%T` of a decoded value.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::Str(_) => "string",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
    }
}

/// Go's `%v` of a decoded value.
pub(crate) fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(f) => go_float(*f),
        Value::Str(text) => text.to_string(),
        Value::List(items) => format!("[{}]", items.iter().map(go_value).collect::<Vec<_>>().join(" ")),
        Value::Map(map) => {
            let fields: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", go_value(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

fn shown_bound(value: &Value, bound: Bound) -> String {
    match value {
        Value::Int(_) => (bound.value as i64).to_string(),
        _ => go_float(bound.value),
    }
}

fn is_beyond(value: &Value, bound: Bound, beyond: impl Fn(f64, f64) -> bool) -> bool {
    match value {
        Value::Int(n) => {
            let end = bound.value as i64;
            (bound.exclusive && *n == end) || (*n != end && beyond(if *n < end { 0.0 } else { 1.0 }, 0.5))
        }
        _ => {
            let number = value.as_float().unwrap_or_default();
            (bound.exclusive && number == bound.value) || beyond(number, bound.value)
        }
    }
}

/// Whether a float stands for an integer, in the tolerant way of the OpenAPI library.
pub(super) fn is_integral(f: f64) -> bool {
    const MOST: f64 = (1i64 << 53) as f64 - 1.0;
    if !f.is_finite() || f.abs() > MOST {
        return false;
    }
    let whole = f.trunc();
    let off = (f - whole).abs();
    let size = whole.abs() + f.abs();
    f == whole || f == 0.0 || whole == 0.0 && off < f64::MIN_POSITIVE || off / size < 1e-9
}

/// Whether a value is one of those listed. Numbers are converted to the listed one's type first, as Go does.
fn is_choice(value: &Value, choice: &Value) -> bool {
    match (value, choice) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Float(f), Value::Int(n)) => *f as i64 == *n,
        _ => value == choice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{schema::crd, value};

    fn schema() -> Schema {
        crd::resource(&value!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "open": {"type": "object", "required": ["x"], "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"x": {"type": "integer"}}},
            "closed": {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}},
            "note": {"type": "string"},
        }}}}))
    }

    #[track_caller]
    fn check(old: Value, expected: &[&str]) {
        // The part that is wrong is shared with the old object, as after a patch of something else.
        let mut new = old.clone();
        new.set_at(&["spec", "note"], "new");
        let problems = openapi(&schema(), &new, Some(&old), None);
        assert_eq!(problems.iter().map(FieldError::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_did_not_change_is_tolerated_unless_upstream_cannot_tell() {
        check(value!({"spec": {"closed": {}}}), &[]);
        check(value!({"spec": {"open": {}}}), &[]);
        check(value!({"spec": {"open": {"unknown": 1}}}), &["spec.open.x: Required value"]);
    }
}
