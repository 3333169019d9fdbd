//! What there is to say about a kustomization itself: why it cannot be rendered, what it leaves out, and what kustomize without
//! configuration makes otherwise of Rollouts.

use std::sync::Arc;

use super::{
    Finding, Spot, name_of, plain,
    rule::{Own, Rule},
    spot,
};
use crate::{
    api::constants::GROUP,
    kubernetes::value::Value,
    kustomize::{Located, Rendered},
    manifest::{
        Object,
        place::{Position, Source, Span, Step},
    },
};

/// How many fields of an object that come out otherwise are named.
const NAMED: usize = 8;

/// What there is to say about a kustomization: `plain` is the same without knowledge of Rollouts, `unused` are manifests beside it
/// that nothing uses.
pub fn findings(rendered: &Rendered, plain: &Rendered, unused: &[Arc<Source>]) -> Vec<Finding> {
    let fault = rendered.fault.iter().map(|fault| finding(Own::KustomizationInvalid, fault));
    let warnings = rendered.warnings.iter().map(|warning| finding(Own::KustomizationDoubtful, warning));
    let mut found: Vec<Finding> = fault.chain(warnings).collect();
    found.extend(unused.iter().map(|source| {
        let what = format!("{} does not use this file", rendered.file.source.name);
        let remedy = "add it to resources, or remove it".to_owned();
        Finding { remedy, ..bare(Own::FileUnused, Spot { source: source.clone(), span: first_line(source) }, what) }
    }));
    if rendered.fault.is_none() {
        found.extend(differences(rendered, plain));
    }
    found
}

fn bare(rule: Own, at: Spot, what: String) -> Finding {
    let (object, field) = (String::new(), String::new());
    Finding { rule: Rule::Own(rule), at, what, remedy: String::new(), also: Vec::new(), object, field }
}

fn finding(rule: Own, located: &Located) -> Finding {
    let at = |source: &Arc<Source>, position: Option<Position>| {
        let offset = position.map_or(0, |position| source.offset(position));
        let span = source.node_at(offset).map_or(Span::default(), |place| source.first_line(place.value));
        let line = source.first_line(Span::new(offset as usize, source.text.len()));
        Spot { source: source.clone(), span: if span.is_empty() { line } else { span } }
    };
    let also = located.also.iter().map(|(source, position, what)| (at(source, Some(*position)), what.clone()));
    let spot = at(&located.source, located.position);
    Finding { remedy: located.remedy.clone(), also: also.collect(), ..bare(rule, spot, located.what.clone()) }
}

/// The first line that says something.
fn first_line(source: &Source) -> Span {
    let mut at = 0;
    for line in source.text.split_inclusive('\n') {
        let text = line.trim_end();
        if !text.is_empty() && !text.starts_with('#') && text != "---" {
            return Span::new(at, at + text.len());
        }
        at += line.len();
    }
    Span::default()
}

/// What kustomize without configuration would make otherwise.
fn differences(rendered: &Rendered, plain: &Rendered) -> Vec<Finding> {
    let own = || rendered.file.objects.iter().filter(|object| object.group() == GROUP);
    if let Some(fault) = &plain.fault {
        let Some(first) = own().next() else { return Vec::new() };
        let what = format!("kustomize without configuration for Rollouts refuses this kustomization: {}", fault.what);
        let at = finding(Own::PlainKustomize, fault).at;
        return vec![Finding {
            object: name_of(first),
            remedy: REMEDY.to_owned(),
            ..bare(Own::PlainKustomize, at, what)
        }];
    }
    let mut found = Vec::new();
    for object in own() {
        let is_it = |other: &&Object| {
            (other.kind(), other.name(), other.namespace()) == (object.kind(), object.name(), object.namespace())
        };
        let Some(other) = plain.file.objects.iter().find(is_it) else { continue };
        let mut all = Vec::new();
        compare(&object.value, &other.value, &mut Vec::new(), &mut all);
        for (steps, what) in all.into_iter().take(NAMED) {
            let steps: Vec<Step<'_>> = steps.into_iter().collect();
            let field = super::path_of(&steps).to_string();
            let at = spot(object, &steps);
            let (name, remedy) = (name_of(object), REMEDY.to_owned());
            found.push(Finding { object: name, field, remedy, ..bare(Own::PlainKustomize, at, what) });
        }
    }
    found
}

const REMEDY: &str = "whoever runs `kustomize build` needs the transformer configuration and schema of Argo Rollouts";

/// The fields that differ, with what kustomize without configuration makes of each.
fn compare<'v>(own: &'v Value, other: &Value, path: &mut Vec<Step<'v>>, found: &mut Vec<(Vec<Step<'v>>, String)>) {
    match (own, other) {
        (Value::Map(fields), Value::Map(others)) => {
            for (key, value) in fields.iter() {
                path.push(Step::Key(key));
                match others.get(key) {
                    Some(other) => compare(value, other, path, found),
                    None => {
                        let field = super::path_of(path);
                        found.push((path.clone(), format!("kustomize without configuration gives no {field}")));
                    }
                }
                path.pop();
            }
        }
        (Value::List(items), Value::List(others)) if items.len() == others.len() => {
            for (index, (item, other)) in items.iter().zip(others.iter()).enumerate() {
                path.push(Step::Index(index));
                compare(item, other, path, found);
                path.pop();
            }
        }
        (Value::List(items), Value::List(others)) => {
            let (here, there) = (items.len(), others.len());
            let what = format!("kustomize without configuration replaces this list: it gets {there} items, not {here}");
            found.push((path.clone(), what));
        }
        (own, other) if own != other => {
            let what = match other {
                Value::Map(_) | Value::List(_) => {
                    "kustomize without configuration makes something else of this".to_owned()
                }
                Value::Str(_) if own.as_str().is_some() => {
                    let (own, other) = (plain(own), plain(other));
                    format!("kustomize without configuration leaves {other} here, where it is {own}")
                }
                Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {
                    format!("kustomize without configuration leaves {} here", plain(other))
                }
            };
            found.push((path.clone(), what));
        }
        _ => {}
    }
}
