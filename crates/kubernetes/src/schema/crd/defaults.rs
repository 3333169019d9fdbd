//! Whether the defaults in a schema are values the schema itself would take.

use super::{props::Props, structural};
use crate::{
    schema::{Schema, Shape, cel, embedded, path::Path, prune, validate},
    status::FieldError,
    value::{Value, intern},
};

/// What is wrong with the defaults of a structural schema.
pub(super) fn validate(schema: Props<'_>, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    walk(&At { schema, root: schema, steps: Vec::new(), in_meta: false, resource: true }, path, problems);
}

/// Where the walk is.
struct At<'a> {
    schema: Props<'a>,
    /// The nearest object with metadata of its own.
    root: Props<'a>,
    /// The way from there.
    steps: Vec<Step<'a>>,
    /// Inside its type or metadata.
    in_meta: bool,
    /// The whole custom resource.
    resource: bool,
}

#[derive(Clone)]
enum Step<'a> {
    Field(&'a str),
    Item,
}

fn walk(at: &At<'_>, path: &Path<'_>, problems: &mut Vec<FieldError>) {
    let schema = at.schema;
    let embedded = at.resource || schema.is("x-kubernetes-embedded-resource");
    let (root, steps, in_meta) = match embedded {
        true => (schema, Vec::new(), false),
        false => (at.root, at.steps.clone(), at.in_meta),
    };
    if let Some(default) = schema.get("default") {
        let mut typed = structural::schema(schema.0);
        if at.resource {
            as_resource(&mut typed);
        }
        let field = path.field("default").to_string();
        match in_meta {
            true => inside_metadata(root, &steps, default, &typed, &field, problems),
            false => plain(default, &typed, &field, problems),
        }
    }
    let mut step = |schema, step, in_meta, path: &Path<'_>| {
        let steps = steps.iter().cloned().chain([step]).collect();
        walk(&At { schema, root, steps, in_meta, resource: false }, path, problems);
    };
    if let Some(items) = schema.items() {
        step(items, Step::Item, in_meta, &path.field("items"));
    }
    for (name, property) in schema.properties() {
        let meta = in_meta || (embedded && prune::is_meta(name));
        step(property, Step::Field(name), meta, &path.field("properties").key(name));
    }
}

fn plain(default: &Value, typed: &Schema, field: &str, problems: &mut Vec<FieldError>) {
    let mut pruned = default.clone();
    if !prune::prune_part(typed, &mut pruned).is_empty() {
        problems.push(FieldError::invalid(field, default, "must not have unknown fields"));
    }
    let mut found = match embedded::check(typed, default) {
        Err(problem) => vec![problem],
        Ok(found) => found,
    };
    found.iter_mut().for_each(|problem| move_under(field, problem));
    if found.is_empty() {
        found = values(default, typed, field);
    }
    problems.append(&mut found);
}

/// A default of a part of metadata is judged in an object that has nothing else.
fn inside_metadata(
    root: Props<'_>,
    steps: &[Step<'_>],
    default: &Value,
    typed: &Schema,
    field: &str,
    problems: &mut Vec<FieldError>,
) {
    let mut object = default.clone();
    for step in steps.iter().rev() {
        object = match step {
            Step::Field(name) => Value::Map([(intern(name), object)].into_iter().collect()),
            Step::Item => Value::list([object]),
        };
    }
    for (key, text) in [("apiVersion", "validation/v1"), ("kind", "Validation")] {
        if object.get(key).is_none() {
            object.set_at(&[key], text);
        }
    }
    let mut whole = structural::schema(root.0);
    as_resource(&mut whole);
    let found = match embedded::check(&whole, &object) {
        Err(problem) => vec![problem],
        Ok(found) => found,
    };
    match found.as_slice() {
        [] => problems.extend(values(default, typed, field)),
        found => {
            let texts: Vec<String> = found.iter().map(FieldError::to_string).collect();
            let text = match texts.as_slice() {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            problems.push(FieldError::invalid(field, default, format!("must result in valid metadata: {text}")));
        }
    }
}

/// The rules of the schema, CEL included.
fn values(default: &Value, typed: &Schema, field: &str) -> Vec<FieldError> {
    let resource = typed.as_struct().is_some_and(|fields| fields.embedded);
    let mut found = validate::openapi(typed, default, None, Some(field));
    if found.is_empty() && validate::below(typed).cel {
        for old in [Some(default), None] {
            found = cel::validate(typed, default, old, resource).problems;
            found.iter_mut().for_each(|problem| move_under(field, problem));
            if !found.is_empty() {
                break;
            }
        }
    }
    found
}

/// Treats a struct as a whole object.
fn as_resource(schema: &mut Schema) {
    if let Shape::Struct(fields) = &mut schema.shape {
        fields.embedded = true;
    }
    schema.rules.get_or_insert_default().below.embedded = true;
}

/// Puts the path of a problem below a field.
fn move_under(field: &str, problem: &mut FieldError) {
    problem.field = match problem.field.as_str() {
        "<nil>" => field.to_owned(),
        inner if inner.starts_with('[') => format!("{field}{inner}"),
        inner => format!("{field}.{inner}"),
    };
}
