//! Values as Go prints the structs behind them.
//!
//! Some of the real server's messages show a value in its internal form: Go's field names in Go's order, every empty
//! field spelled out. `gostruct.txt` lists those structs (made by `tests/control-plane/gostruct` from the real types);
//! this module lays a value of the served form out along it.

use std::{collections::HashMap, sync::LazyLock};

use crate::value::Value;

/// What is to be printed: a Go value.
enum Go {
    Scalar(String),
    List(Vec<Go>),
    Object(Vec<(String, Go)>),
}

struct Member {
    name: &'static str,
    json: &'static str,
    shape: &'static str,
    omitted_when_empty: bool,
}

static STRUCTS: LazyLock<HashMap<&str, Vec<Member>>> =
    LazyLock::new(|| include_str!("gostruct.txt").lines().filter_map(members).collect());

fn members(line: &'static str) -> Option<(&'static str, Vec<Member>)> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let mut members = Vec::new();
    while let (Some(name), Some(json), Some(shape)) = (words.next(), words.next(), words.next()) {
        let (shape, omitted_when_empty) = shape.strip_suffix('?').map_or((shape, false), |shape| (shape, true));
        members.push(Member { name, json, shape, omitted_when_empty });
    }
    Some((name, members))
}

/// `value` as Go prints the struct of this name, on one line.
pub(super) fn print(name: &str, value: &Value) -> String {
    let mut out = String::new();
    line(&mut out, &object(name, value, &Value::Null));
    out
}

/// `value` as Go prints the struct of this name, one field per line.
pub(super) fn pretty(name: &str, value: &Value) -> String {
    let mut out = String::new();
    indented(&mut out, &object(name, value, &Value::Null), 0);
    out
}

fn object(name: &str, value: &Value, parent: &Value) -> Go {
    let members = STRUCTS.get(name).map(Vec::as_slice).unwrap_or_default();
    let given = |member: &Member| match member.json.strip_prefix('^') {
        Some(field) => parent.get(field),
        None => member.json.split('.').try_fold(value, |value, field| value.get(field)),
    };
    let shown = members.iter().filter_map(|member| {
        let given = given(member);
        let empty = given.is_none_or(|given| given.is_null() || *given == "");
        let go = || shape(member.shape, given.unwrap_or(&Value::Null), value);
        (!(member.omitted_when_empty && empty)).then(|| (member.name.to_owned(), go()))
    });
    Go::Object(shown.collect())
}

fn shape(shape: &str, value: &Value, parent: &Value) -> Go {
    let (first, rest) = shape.split_at(1);
    let null = || Go::Scalar("null".into());
    match (first, value) {
        // A pod's security context exists as soon as the pod shares something with its host.
        ("*", Value::Null) if rest == "@PodSecurityContext" && parent.get("hostNetwork").is_some() => {
            object("PodSecurityContext", value, parent)
        }
        ("*" | "[" | "{", Value::Null) => null(),
        ("*", _) => self::shape(rest, value, parent),
        ("[", Value::List(items)) => Go::List(items.iter().map(|item| self::shape(rest, item, value)).collect()),
        ("{", Value::Map(map)) => {
            Go::Object(map.iter().map(|(key, item)| (key.to_string(), self::shape(rest, item, value))).collect())
        }
        ("@", _) => object(rest, value, parent),
        ("s", Value::Null) => Go::Scalar("\"\"".into()),
        ("i" | "o", Value::Null) => Go::Scalar("0".into()),
        ("b", Value::Null) => Go::Scalar("false".into()),
        ("q", Value::Null) => Go::Scalar("\"0\"".into()),
        _ => Go::Scalar(escaped(&value.to_json())),
    }
}

/// Go's encoder writes these three characters of a string as escapes.
fn escaped(json: &str) -> String {
    json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

fn key(name: &str) -> String {
    escaped(&Value::from(name).to_json())
}

fn line(out: &mut String, go: &Go) {
    match go {
        Go::Scalar(text) => out.push_str(text),
        Go::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                line(out, item);
            }
            out.push(']');
        }
        Go::Object(fields) => {
            out.push('{');
            for (i, (name, value)) in fields.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                out.push_str(&key(name));
                out.push(':');
                line(out, value);
            }
            out.push('}');
        }
    }
}

fn indented(out: &mut String, go: &Go, depth: usize) {
    let (open, close, count) = match go {
        Go::Scalar(text) => return out.push_str(text),
        Go::List(items) => ('[', ']', items.len()),
        Go::Object(fields) => ('{', '}', fields.len()),
    };
    out.push(open);
    for i in 0..count {
        out.push_str(if i > 0 { ",\n" } else { "\n" });
        out.extend(std::iter::repeat_n(' ', depth + 1));
        match go {
            Go::Scalar(_) => {}
            Go::List(items) => indented(out, &items[i], depth + 1),
            Go::Object(fields) => {
                out.push_str(&key(&fields[i].0));
                out.push_str(": ");
                indented(out, &fields[i].1, depth + 1);
            }
        }
    }
    if count > 0 {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth));
    }
    out.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn values_print_as_go_prints_its_structs() {
        let rows = [
            (
                "ServicePort",
                value!({"name": "a", "port": 80, "protocol": "TCP", "targetPort": "x<y"}),
                r#"{"Name":"a","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":"x\u003cy","NodePort":0}"#,
            ),
            (
                "LabelSelector",
                value!({"matchExpressions": [{"key": "a", "operator": "Exists"}], "matchLabels": {"b": "c"}}),
                r#"{"matchLabels":{"b":"c"},"matchExpressions":[{"key":"a","operator":"Exists"}]}"#,
            ),
            ("LabelSelector", value!({}), "{}"),
            (
                "DeploymentStrategy",
                value!({"type": "Foo", "rollingUpdate": {"maxSurge": "25%"}}),
                r#"{"Type":"Foo","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":"25%"}}"#,
            ),
        ];
        for (name, value, printed) in rows {
            assert_eq!(print(name, &value), printed);
        }
        assert_eq!(
            pretty("LabelSelector", &value!({"matchLabels": {"b": "c"}})),
            "{\n \"matchLabels\": {\n  \"b\": \"c\"\n }\n}"
        );
    }
}
