//! ApplicationSets unfolded: those whose generators are lists of elements. What asks a repository, a host or a list of clusters
//! is named.

use super::{Note, Origin, Subject, Weight};
use crate::{
    kubernetes::value::Value,
    manifest::{Object, place::Step},
};

use Step::{Index, Key};

/// The Applications that a set makes. From a cluster there are none: those that it has made are there.
pub fn application_set<'o>(
    subject: &Subject<'o>,
    all: &[(&'o Object, Origin)],
    notes: &mut Vec<Note>,
) -> Vec<Subject<'o>> {
    if let Some(patch) = subject.value.at(&["spec", "templatePatch"]).filter(|patch| !patch.is_null()) {
        let _ = patch;
        return refuse(subject, &[Key("spec"), Key("templatePatch")], "its template is patched", notes);
    }
    if subject.origin == Origin::Cluster {
        let made = all.iter().filter(|(object, _)| is_made_by(&object.value, subject.name())).count();
        let what = format!("it has made {made} Applications, which are migrated one by one; it would make them again");
        let remedy = "end it first: docs/migrate-argocd.md says how";
        notes.push(subject.note(Weight::ToDo, &[], what, remedy));
        return Vec::new();
    }
    let mut made = Vec::new();
    let is_go = subject.is_set(&["spec", "goTemplate"]);
    for (at, generator) in subject.value.list_at(&["spec", "generators"]).iter().enumerate() {
        let steps = [Key("spec"), Key("generators"), Index(at)];
        let kind =
            generator.as_map().and_then(|map| map.keys().find(|key| *key != "selector")).map(|key| key.to_string());
        let is_plain = kind.as_deref() == Some("list")
            && generator.get("selector").is_none()
            && generator.at(&["list", "template"]).is_none()
            && generator.at(&["list", "elementsYaml"]).is_none();
        if !is_plain {
            let what = match kind.as_deref() {
                Some("list") => "its list has a selector, a template or elementsYaml of its own".to_owned(),
                Some(kind) => format!("the generator {kind} asks what is not in the file"),
                None => "the generator is empty".to_owned(),
            };
            refuse(subject, &steps, &what, notes);
            continue;
        }
        for (number, element) in generator.list_at(&["list", "elements"]).iter().enumerate() {
            let steps = [Key("spec"), Key("generators"), Index(at), Key("list"), Key("elements"), Index(number)];
            match render(subject.value.at(&["spec", "template"]).unwrap_or(&Value::Null), element, is_go) {
                Ok(template) => made.push(application(subject, &template)),
                Err(why) => {
                    refuse(subject, &steps, &why, notes);
                }
            }
        }
    }
    made
}

fn refuse<'o>(subject: &Subject<'o>, steps: &[Step<'_>], what: &str, notes: &mut Vec<Note>) -> Vec<Subject<'o>> {
    let what = format!("{what}: no GitSource is written for what it makes");
    let remedy = "give the Applications themselves: `tidegate migrate argocd --live` reads them in the cluster";
    notes.push(subject.note(Weight::NoEquivalent, steps, what, remedy));
    Vec::new()
}

/// Whether an Application belongs to a set of this name.
fn is_made_by(application: &Value, set: &str) -> bool {
    application.str_at(&["kind"]) == Some("Application")
        && application
            .list_at(&["metadata", "ownerReferences"])
            .iter()
            .any(|owner| owner.str_at(&["kind"]) == Some("ApplicationSet") && owner.str_at(&["name"]) == Some(set))
}

fn application<'o>(set: &Subject<'o>, template: &Value) -> Subject<'o> {
    let mut value = template.clone();
    value.set_at(&["apiVersion"], "argoproj.io/v1alpha1");
    value.set_at(&["kind"], "Application");
    if value.str_at(&["metadata", "namespace"]).is_none() {
        value.set_at(&["metadata", "namespace"], set.namespace());
    }
    Subject { value, object: set.object, prefix: vec![Key("spec"), Key("template")], origin: set.origin }
}

/// A template with the values of an element in the place of its expressions.
fn render(template: &Value, element: &Value, is_go: bool) -> Result<Value, String> {
    Ok(match template {
        Value::Str(text) => Value::from(fill(text, element, is_go)?),
        Value::Map(map) => {
            let mut out = crate::kubernetes::value::Map::default();
            for (key, value) in map.iter() {
                out.insert(key.clone(), render(value, element, is_go)?);
            }
            Value::Map(out)
        }
        Value::List(items) => {
            let items: Result<Vec<Value>, String> = items.iter().map(|item| render(item, element, is_go)).collect();
            Value::list(items?)
        }
        other => other.clone(),
    })
}

/// A text with its expressions filled in: `{{name}}`, or `{{.name}}` of Go's templates. Nothing else is evaluated.
fn fill(text: &str, element: &Value, is_go: bool) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        let (expression, after) =
            after.split_once("}}").ok_or_else(|| format!("{text:?} does not end its expression"))?;
        let expression = expression.trim();
        let path = match (is_go, expression.strip_prefix('.')) {
            (true, Some(path)) => path,
            (false, None) => expression,
            (true, None) | (false, Some(_)) => {
                return Err(format!("the expression {{{{{expression}}}}} is not evaluated"));
            }
        };
        let is_path = !path.is_empty() && path.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        let parts: Vec<&str> = path.split('.').collect();
        let found = element.at(&parts).or_else(|| element.get(path)).filter(|_| is_path);
        let filled = match found {
            Some(Value::Str(text)) => text.to_string(),
            Some(value @ (Value::Int(_) | Value::Bool(_) | Value::Float(_))) => value.to_string(),
            Some(Value::Null | Value::Map(_) | Value::List(_)) | None => {
                return Err(format!("the expression {{{{{expression}}}}} is not evaluated"));
            }
        };
        out.extend([before, &filled]);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}
