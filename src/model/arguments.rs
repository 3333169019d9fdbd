//! Arguments of an analysis: which values they get, and how they are put into metrics.
//!
//! Everything between double braces in a metric is an argument, wherever it stands. Never reads a Secret, never
//! evaluates anything.

use std::collections::BTreeMap;

use super::go_json;
use crate::{
    api::{self, Argument, Metric},
    kubernetes::{status::go_quoted, value::Value},
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
    let mut out = String::with_capacity(text.len());
    let mut unresolved = None;
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Tag(tag) => match values.get(go_trimmed(tag)) {
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
