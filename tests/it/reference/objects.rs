//! `docs/crds.md`, from the schemas of the CustomResourceDefinitions.

use std::fmt::Write;

use tidegate::{api::crd, kubernetes::value::Value};

use super::{cell, check};

/// How many rows a part must have to be shown once and referred to from elsewhere.
const SHARED: usize = 8;

/// A part that was shown: what it says, the kind and the path.
type Shown = Vec<(Vec<Row>, String, String)>;

/// A field: its path below the part, its type, what it is.
#[derive(Clone, PartialEq, Eq)]
struct Row {
    path: String,
    r#type: String,
    text: String,
}

#[test]
fn the_page_of_objects_is_what_the_schemas_say() {
    let definitions = crd::all();
    let mut out = String::from(
        "# Objects\n\n`kubectl explain` says the same on a terminal. The definitions are in the folder `crds` of the repository, \
         `tidegate crds` prints them. What belongs to Kubernetes itself, such as a pod template, is one row here.\n\n\
         | kind | group | short | |\n|---|---|---|---|\n",
    );
    for definition in &definitions {
        let name = |key: &str| definition.str_at(&["spec", "names", key]).unwrap_or_default();
        let kind = name("kind");
        let short =
            definition.list_at(&["spec", "names", "shortNames"]).iter().find_map(Value::as_str).unwrap_or_default();
        let group = definition.str_at(&["spec", "group"]).unwrap_or_default();
        let text = cell(schema(definition).str_at(&["description"]).unwrap_or_default());
        let _ = writeln!(out, "| [{kind}](#{}) | `{group}` | `{short}` | {text} |", kind.to_lowercase());
    }
    let mut shown = Shown::new();
    for definition in &definitions {
        describe(definition, &mut shown, &mut out);
    }
    check("crds.md", &out);
}

fn schema(definition: &Value) -> &Value {
    definition.list_at(&["spec", "versions"])[0].at(&["schema", "openAPIV3Schema"]).unwrap()
}

fn describe(definition: &Value, shown: &mut Shown, out: &mut String) {
    let kind = definition.str_at(&["spec", "names", "kind"]).unwrap_or_default();
    let _ = writeln!(out, "\n## {kind}\n\n{}", schema(definition).str_at(&["description"]).unwrap_or_default());
    for part in ["spec", "status"] {
        let Some(node) = schema(definition).at(&["properties", part]) else { continue };
        let mut rows = Vec::new();
        below(node, part, kind, shown, &mut rows);
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n### {kind} {part}\n\n| field | type | |\n|---|---|---|");
        for Row { path, r#type, text } in rows {
            let _ = writeln!(out, "| `{path}` | {type} | {text} |", r#type = r#type);
        }
    }
}

/// The rows of the fields below a node, each with its whole path.
fn below(node: &Value, path: &str, kind: &str, shown: &mut Shown, rows: &mut Vec<Row>) {
    let own = all(node, "");
    if own.len() >= SHARED {
        if let Some((_, kind, at)) = shown.iter().find(|(known, _, _)| *known == own) {
            let text = format!("As `{at}` of [{kind}](#{}).", kind.to_lowercase());
            rows.push(Row { path: format!("{path}.…"), r#type: String::new(), text });
            return;
        }
        shown.push((own, kind.to_owned(), path.to_owned()));
    }
    for (name, field) in fields(node) {
        let path = format!("{path}.{name}");
        let (inner, path) = unwrapped(field, path);
        rows.push(row(field, &path));
        if is_described(inner) {
            below(inner, &path, kind, shown, rows);
        }
    }
}

/// The rows below a node as they are, to compare.
fn all(node: &Value, path: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, field) in fields(node) {
        let (inner, path) = unwrapped(field, format!("{path}.{name}"));
        rows.push(row(field, &path));
        if is_described(inner) {
            rows.extend(all(inner, &path));
        }
    }
    rows
}

fn fields(node: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let properties = node.at(&["properties"]).and_then(Value::as_map);
    properties.into_iter().flat_map(|map| map.iter()).map(|(name, field)| (name.as_str(), field))
}

/// What a list or a map holds, and how its path is written.
fn unwrapped(field: &Value, path: String) -> (&Value, String) {
    if let Some(items) = field.at(&["items"]) {
        return unwrapped(items, format!("{path}[]"));
    }
    match field.at(&["additionalProperties"]).filter(|inner| inner.as_map().is_some()) {
        Some(inner) => unwrapped(inner, format!("{path}.*")),
        None => (field, path),
    }
}

/// Whether something below it has a description: parts of Kubernetes have none.
fn is_described(node: &Value) -> bool {
    fields(node).any(|(_, field)| field.str_at(&["description"]).is_some())
}

fn row(field: &Value, path: &str) -> Row {
    let mut text = cell(field.str_at(&["description"]).unwrap_or_default());
    let words: Vec<String> =
        field.list_at(&["enum"]).iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
    if !words.is_empty() {
        let _ = write!(text, " One of {}.", words.join(", "));
    }
    if let Some(default) = field.at(&["default"]) {
        let _ = write!(text, " Default: `{}`.", cell(&default.to_string()));
    }
    Row { path: path.to_owned(), r#type: type_of(field), text: text.trim().to_owned() }
}

fn type_of(field: &Value) -> String {
    if field.at(&["x-kubernetes-int-or-string"]).is_some() {
        return "integer or string".to_owned();
    }
    match field.str_at(&["type"]) {
        Some("array") => format!("list of {}", field.at(&["items"]).map(type_of).unwrap_or_default()),
        Some("object") => match field.at(&["additionalProperties"]).filter(|inner| inner.as_map().is_some()) {
            Some(inner) => format!("map of {}", type_of(inner)),
            None => "object".to_owned(),
        },
        Some(word) => match field.str_at(&["format"]) {
            Some("date-time") => "time".to_owned(),
            _ => word.to_owned(),
        },
        None => "any".to_owned(),
    }
}
