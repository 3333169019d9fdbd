//! Arguments of an analysis: which values they get, and how they are put into metrics.
//!
//! Everything between double braces in a metric is an argument, wherever it stands. Never reads a Secret, never
//! evaluates anything.

use std::collections::BTreeMap;

use super::go_json;
use crate::{
    api::{self, AnalysisRunArgument, Argument, Metric, ObjectMeta, Rollout},
    kubernetes::{
        names,
        status::{go_float, go_quoted},
        value::Value,
    },
};

/// The arguments of a run: those that the templates declare, with the values that were given. Values for others are
/// ignored. The error is Argo Rollouts'.
pub fn merge(given: &[Argument], declared: &[Argument]) -> Result<Vec<Argument>, String> {
    let mut merged = declared.to_vec();
    for argument in given {
        let Some(known) = merged.iter_mut().find(|known| known.name == argument.name) else { continue };
        if argument.value.is_some() {
            known.value.clone_from(&argument.value);
        } else if argument.value_from.is_some() {
            known.value_from.clone_from(&argument.value_from);
        }
    }
    match merged.iter().find(|argument| argument.value.is_none() && argument.value_from.is_none()) {
        Some(open) => Err(format!("args.{} was not resolved", open.name)),
        None => Ok(merged),
    }
}

/// The versions that arguments may ask for, by the hash that their ReplicaSets carry; empty where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Versions<'v> {
    /// The one that was promoted last.
    pub stable: &'v str,
    /// The one that the specification asks for.
    pub latest: &'v str,
}

/// The arguments that a Rollout gives, and what is wrong with them. A field of metadata that does not exist leaves none;
/// of other fields only the last one that is asked for can be wrong. The error is Argo Rollouts'.
pub fn given(
    arguments: &[AnalysisRunArgument],
    versions: Versions<'_>,
    rollout: &Rollout,
) -> (Option<Vec<Argument>>, Option<String>) {
    let written = api::write(rollout);
    let (mut given, mut wrong) = (Vec::new(), None);
    for argument in arguments {
        let from = argument.value_from.as_ref();
        let hash = from.and_then(|from| from.pod_template_hash_value.as_deref());
        let field = from.and_then(|from| from.field_ref.as_ref()).map(|field| field.field_path.as_str());
        let value = match (hash, field) {
            (Some("Latest"), _) => versions.latest.to_owned(),
            (Some("Stable"), _) => versions.stable.to_owned(),
            (Some(_), _) | (None, None) => argument.value.clone(),
            (None, Some(path)) if path.starts_with("metadata") => match metadata(&rollout.metadata, path) {
                Ok(value) => value,
                Err(error) => return (None, Some(error)),
            },
            (None, Some(path)) => {
                let found = field_of(&written, path);
                wrong = found.as_ref().err().cloned();
                found.unwrap_or_default()
            }
        };
        given.push(Argument { name: argument.name.clone(), value: Some(value), value_from: None });
    }
    (Some(given), wrong)
}

/// A field of metadata, as the downward API has it.
fn metadata(metadata: &ObjectMeta, path: &str) -> Result<String, String> {
    let subscripted =
        path.strip_suffix("']").and_then(|path| path.split_once("['")).filter(|(base, _)| !base.is_empty());
    if let Some((base, key)) = subscripted {
        let (entries, key) = match base {
            "metadata.annotations" => (&metadata.annotations, key.to_lowercase()),
            "metadata.labels" => (&metadata.labels, key.to_owned()),
            _ => return Err(format!("fieldPath {} does not support subscript", go_quoted(path))),
        };
        let wrong = names::label_key(&key);
        if !wrong.is_empty() {
            return Err(format!("invalid key subscript in {path}: {}", wrong.join(";")));
        }
        let key = path.split_once("['").and_then(|(_, key)| key.strip_suffix("']")).unwrap_or_default();
        return Ok(entries.get(key).cloned().unwrap_or_default());
    }
    let lines = |entries: &BTreeMap<String, String>| {
        let lines: Vec<String> = entries.iter().map(|(key, text)| format!("{key}={}", go_quoted(text))).collect();
        lines.join("\n")
    };
    match path {
        "metadata.annotations" => Ok(lines(&metadata.annotations)),
        "metadata.labels" => Ok(lines(&metadata.labels)),
        "metadata.name" => Ok(metadata.name.clone()),
        "metadata.namespace" => Ok(metadata.namespace.clone()),
        "metadata.uid" => Ok(metadata.uid.clone()),
        _ => Err(format!("unsupported fieldPath: {path}")),
    }
}

/// Any other field of a Rollout, by a path of names and indices; it must be a plain value.
fn field_of(rollout: &Value, path: &str) -> Result<String, String> {
    let nowhere = || format!("invalid path {path} in rollout");
    let mut found = rollout;
    for part in path.split(['.', '[', ']']).filter(|part| !part.is_empty()) {
        found = match (found.as_list(), found.as_map()) {
            (Some(items), _) => {
                let index: i64 = part.parse().map_err(|_| format!("invalid index '{part}'"))?;
                // Argo Rollouts crashes on one below zero.
                let item = usize::try_from(index).ok().and_then(|index| items.get(index));
                item.ok_or_else(|| format!("index {index} out of range"))?
            }
            (None, Some(map)) => map.get(part).unwrap_or(&Value::Null),
            (None, None) => return Err(nowhere()),
        };
    }
    match found {
        Value::Null => Err(nowhere()),
        Value::List(_) | Value::Map(_) => Err(format!("path {path} in rollout must terminate in a primitive value")),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Int(number) => Ok(go_float(*number as f64)),
        Value::Float(number) => Ok(go_float(*number)),
        Value::Str(text) => Ok(text.to_string()),
    }
}

/// A metric with its arguments filled in. The error is Argo Rollouts'.
pub fn resolve_metric(metric: &Metric, arguments: &[Argument]) -> Result<Metric, String> {
    let written = go_json::metric().text(&api::write(metric));
    let quoted: Vec<Argument> = arguments
        .iter()
        .map(|argument| Argument { value: argument.value.as_deref().map(quote), ..argument.clone() })
        .collect();
    let resolved = resolve_text(&written, &quoted)?;
    let value = Value::from_json(resolved.as_bytes()).map_err(|error| error.to_string())?;
    Ok(api::read(&value).object)
}

/// The inside of a Go string literal, which is how values are put into JSON.
fn quote(value: &str) -> String {
    let quoted = go_quoted(value);
    quoted[1..quoted.len() - 1].to_owned()
}

/// A text with its arguments filled in. The error is Argo Rollouts'.
pub fn resolve_text(text: &str, arguments: &[Argument]) -> Result<String, String> {
    let parts = split(text)?;
    let mut values = BTreeMap::new();
    for argument in arguments {
        let Some(value) = &argument.value else {
            return Err(format!("argument \"{}\" was not supplied", argument.name));
        };
        values.insert(format!("args.{}", argument.name), value.as_str());
    }
    fill(parts, |tag| values.get(tag).copied())
}

/// Pieces put together, with what is known of each tag. The error is Argo Rollouts'.
pub fn fill<'v>(parts: Vec<Part<'_>>, known: impl Fn(&str) -> Option<&'v str>) -> Result<String, String> {
    let mut out = String::new();
    let mut unresolved = None;
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Tag(tag) => match known(go_trimmed(tag)) {
                Some(value) => out.push_str(value),
                // Of several the last is named.
                None => unresolved = Some(format!("failed to resolve {{{{{tag}}}}}")),
            },
        }
    }
    unresolved.map_or(Ok(out), Err)
}

/// Go's idea of white space.
fn go_trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{85}' || c == '\u{a0}')
}

/// A piece of a text with arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'t> {
    /// As it is.
    Text(&'t str),
    /// What stands between braces.
    Tag(&'t str),
}

/// The pieces of a text with arguments. The error is that of the library that Argo Rollouts uses.
pub fn split(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((tag, behind)) = after.split_once("}}") else {
            return Err(format!(
                "Cannot find end tag=\"}}}}\" in the template={} starting from {}",
                go_quoted(text),
                go_quoted(after)
            ));
        };
        parts.extend([Part::Text(before), Part::Tag(tag)]);
        rest = behind;
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

/// Whether a text holds arguments that are not filled in.
pub fn is_open(text: &str) -> bool {
    text.contains("{{")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn argument(name: &str, value: Option<&str>) -> Argument {
        Argument { name: name.into(), value: value.map(Into::into), value_from: None }
    }

    #[test]
    fn values_replace_what_stands_between_braces() {
        let arguments = [argument("a", Some("1")), argument("b", Some("{{args.a}}"))];
        for (text, expected) in [
            ("x", Ok("x")),
            ("{{args.a}}-{{ args.a }}", Ok("1-1")),
            ("{{args.b}}", Ok("{{args.a}}")),
            ("{{args.c}}{{x}}", Err("failed to resolve {{x}}")),
            ("{{args.a", Err("Cannot find end tag=\"}}\" in the template=\"{{args.a\" starting from \"args.a\"")),
        ] {
            assert_eq!(resolve_text(text, &arguments), expected.map(str::to_owned).map_err(str::to_owned));
        }
        let open = [argument("a", None)];
        assert_eq!(resolve_text("x", &open), Err("argument \"a\" was not supplied".into()));
    }

    #[test]
    fn a_metric_is_filled_in_wherever_an_argument_stands() {
        let metric = Metric {
            name: "{{args.name}}".into(),
            count: Some("{{args.n}}".into()),
            success_condition: "result == \"{{args.name}}\"".into(),
            ..Metric::default()
        };
        let arguments = [argument("name", Some("a\"b")), argument("n", Some("3"))];
        let filled = resolve_metric(&metric, &arguments).unwrap();
        assert_eq!((filled.name.as_str(), filled.count), ("a\"b", Some("3".into())));
        assert_eq!(filled.success_condition, "result == \"a\"b\"");
    }

    #[test]
    fn declared_arguments_need_a_value() {
        let declared = [argument("a", None), argument("b", Some("1"))];
        assert_eq!(merge(&[], &declared), Err("args.a was not resolved".into()));
        let merged = merge(&[argument("a", Some("x")), argument("z", Some("y"))], &declared).unwrap();
        assert_eq!(merged, [argument("a", Some("x")), argument("b", Some("1"))]);
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_be_filled_in(text: String, name: String, value: String) {
            let arguments = [argument(&name, Some(&value))];
            let _ = resolve_text(&text, &arguments);
            let metric = Metric { name: text, ..Metric::default() };
            let _ = resolve_metric(&metric, &arguments);
        }
    }
}
