//! JSON patches as kustomize's library applies them, which is not quite RFC 6902: `replace` adds a key that is missing,
//! `copy` copies one that is missing as null, positions count from the end if negative.

use serde_json::{Map, Value};

use crate::{
    fault::{At, Fault, Res},
    located::{Located, Yaml},
    read::{self, Text},
};

/// One operation.
#[derive(Clone, Debug)]
pub struct Operation {
    pub at: At,
    /// Where its path is written.
    path_at: At,
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    value: Option<Value>,
}

/// Reads a patch; an error if the text is no list of operations.
pub fn parse(text: &Text) -> Res<Vec<Operation>> {
    if text.text.is_empty() {
        return Err(Fault::new("the patch is empty").at(text.at));
    }
    if text.text.starts_with('[')
        && let Err(error) = serde_json::from_str::<Value>(&text.text)
    {
        return Err(Fault::new(format!("a patch that begins with [ must be JSON: {error}"))
            .at(text.at)
            .remedy("quote the keys and the texts, or write the operations with dashes"));
    }
    let Some(root) = read::located(text)? else { return Ok(Vec::new()) };
    let Yaml::List(list) = &root.yaml else {
        return Err(Fault::new("a JSON patch is a list of operations").at(root.at));
    };
    list.iter().map(operation).collect()
}

fn operation(value: &Located) -> Res<Operation> {
    let Yaml::Map(entries) = &value.yaml else {
        return Err(Fault::new("an operation of a JSON patch is a map")
            .at(value.at)
            .remedy("write op, path and value"));
    };
    let entry = |name: &str| entries.iter().find(|entry| &*entry.name == name);
    let text = |name: &str| match entry(name).map(|entry| &entry.value.yaml) {
        Some(Yaml::Text(text)) => Some(text.to_string()),
        _ => None,
    };
    Ok(Operation {
        at: value.at,
        path_at: entry("path").map_or(value.at, |entry| entry.at),
        op: text("op"),
        path: text("path"),
        from: text("from"),
        value: entry("value").map(|entry| entry.value.to_json()),
    })
}

/// Applies a patch to an object.
pub fn apply(operations: &[Operation], document: &mut Value) -> Res<()> {
    let mut copied = 0;
    for operation in operations {
        let about_path = matches!(operation.op.as_deref(), Some("add" | "remove" | "replace" | "move" | "copy"));
        let at = if about_path { operation.path_at } else { operation.at };
        step(operation, document, &mut copied).map_err(|fault| fault.at(at))?;
    }
    Ok(())
}

fn step(operation: &Operation, document: &mut Value, copied: &mut usize) -> Res<()> {
    let op = operation.op.as_deref().unwrap_or("unknown");
    let path = |name: &str, path: &Option<String>| {
        path.clone()
            .ok_or_else(|| Fault::new(format!("{op} needs a {name}")).remedy("write a path such as /spec/replicas"))
    };
    let value = || operation.value.clone().unwrap_or(Value::Null);
    match op {
        "add" => add(document, &path("path", &operation.path)?, value()),
        "remove" => {
            let path = path("path", &operation.path)?;
            take(document, &path).map(|_| ())
        }
        "replace" => {
            let path = path("path", &operation.path)?;
            if path.is_empty() {
                let value = value();
                if !value.is_object() {
                    return Err(Fault::new("the whole object can only be replaced by an object"));
                }
                *document = value;
                return Ok(());
            }
            let (parent, key) = parent(document, &path)?;
            match parent {
                Value::Array(list) => {
                    let index = index(&key, list.len())?;
                    list[index] = value();
                }
                Value::Object(map) => _ = map.insert(key, value()),
                _ => {}
            }
            Ok(())
        }
        "move" => {
            let from = path("from", &operation.from)?;
            let value = take(document, &from)?;
            add(document, &path("path", &operation.path)?, value)
        }
        "copy" => {
            let from = path("from", &operation.from)?;
            let value = get(document, &from)?.unwrap_or(Value::Null);
            *copied += weight(&value);
            if *copied > 1_000_000 {
                return Err(Fault::budget("the patch copies more than a million values"));
            }
            add(document, &path("path", &operation.path)?, value)
        }
        "test" => {
            let path = path("path", &operation.path)?;
            let found = if path.is_empty() { Some(document.clone()) } else { get(document, &path)? };
            let same = match (found, &operation.value) {
                (None | Some(Value::Null), None | Some(Value::Null)) => true,
                (Some(found), Some(wanted)) => found == *wanted,
                _ => false,
            };
            if same { Ok(()) } else { Err(Fault::new(format!("the test of {path} fails"))) }
        }
        other => Err(Fault::new(format!("{other:?} is no operation of a JSON patch"))
            .remedy("write add, remove, replace, move, copy or test")),
    }
}

fn weight(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(weight).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(weight).sum::<usize>(),
        _ => 1,
    }
}

fn unescape(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let (text, skip) = match rest.as_bytes().get(at + 1) {
            Some(b'1') => ("/", 2),
            Some(b'0') => ("~", 2),
            _ => ("~", 1),
        };
        out.push_str(text);
        rest = &rest[at + skip..];
    }
    out.push_str(rest);
    out
}

/// The map or list that holds what a path names, and the last part of the path.
fn parent<'a>(document: &'a mut Value, path: &str) -> Res<(&'a mut Value, String)> {
    let missing = |at: &str| {
        Fault::new(format!("there is nothing at {at}")).remedy("add what is missing first, or correct the path")
    };
    let parts: Vec<&str> = path.split('/').collect();
    if parts.len() > 100 {
        return Err(Fault::budget("the path has more than 100 parts").remedy("no Kubernetes object needs that"));
    }
    let [_, middle @ .., last] = parts.as_slice() else {
        return Err(missing(&format!("{path:?}: a path begins with /")));
    };
    let mut here = document;
    let mut walked = String::new();
    for part in middle {
        walked.push('/');
        walked.push_str(part);
        let next = match here {
            Value::Object(map) => map.get_mut(&unescape(part)),
            Value::Array(list) => {
                let found = position(&unescape(part), list.len());
                found.and_then(|index| list.get_mut(index))
            }
            _ => None,
        };
        here = next.ok_or_else(|| missing(&walked))?;
        if !(here.is_object() || here.is_array()) {
            return Err(missing(&walked));
        }
    }
    Ok((here, unescape(last)))
}

fn position(key: &str, length: usize) -> Option<usize> {
    let index: i64 = key.strip_prefix('+').unwrap_or(key).parse().ok()?;
    let index = if index < 0 { index + length as i64 } else { index };
    usize::try_from(index).ok()
}

fn index(key: &str, length: usize) -> Res<usize> {
    let found = position(key, length).filter(|index| *index < length);
    found.ok_or_else(|| {
        Fault::new(format!("{key:?} is no position in a list of {length} elements"))
            .remedy("positions begin with 0; write - to append")
    })
}

fn get(document: &mut Value, path: &str) -> Res<Option<Value>> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(map) => Ok(map.get(&key).cloned()),
        Value::Array(list) => {
            let index = index(&key, list.len())?;
            Ok(list.get(index).cloned())
        }
        _ => Ok(None),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Res<()> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(map) => _ = map.insert(key, value),
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            let index = index(&key, list.len() + 1)?;
            list.insert(index, value);
        }
        _ => {}
    }
    Ok(())
}

fn take(document: &mut Value, path: &str) -> Res<Value> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(map) => remove_key(map, &key, path),
        Value::Array(list) => {
            let index = index(&key, list.len())?;
            Ok(list.remove(index))
        }
        _ => Ok(Value::Null),
    }
}

fn remove_key(map: &mut Map<String, Value>, key: &str, path: &str) -> Res<Value> {
    map.remove(key).ok_or_else(|| {
        Fault::new(format!("there is nothing at {path} to remove")).remedy("remove the operation, or correct the path")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patch: &str, document: &str, expected: Result<&str, &str>) {
        let operations = parse(&Text::file(0, patch)).unwrap();
        let mut document: Value = serde_json::from_str(document).unwrap();
        let outcome = apply(&operations, &mut document).map(|()| document.to_string()).map_err(|fault| fault.message);
        assert_eq!(outcome, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn operations_are_as_lenient_as_the_library_of_kustomize() {
        check("- {op: replace, path: /b, value: 1}", r#"{"a":1}"#, Ok(r#"{"a":1,"b":1}"#));
        check("- {op: copy, from: /x, path: /b}", r#"{"a":1}"#, Ok(r#"{"a":1,"b":null}"#));
        check("- {op: add, path: /a/-, value: 2}", r#"{"a":[1]}"#, Ok(r#"{"a":[1,2]}"#));
        check("- {op: add, path: /a/-1, value: 2}", r#"{"a":[1]}"#, Ok(r#"{"a":[1,2]}"#));
        check("- {op: remove, path: /a/-1}", r#"{"a":[1,2]}"#, Ok(r#"{"a":[1]}"#));
        check("- {op: test, path: /x}", r#"{"a":1}"#, Ok(r#"{"a":1}"#));
        check("- {op: move, from: /a~1b, path: /c}", r#"{"a/b":1}"#, Ok(r#"{"c":1}"#));
        check("- {op: remove, path: /b}", "{}", Err("there is nothing at /b to remove"));
        check("- {op: add, path: /a/2, value: 1}", r#"{"a":[1]}"#, Err("\"2\" is no position in a list of 2 elements"));
        check("- {op: test, path: /a, value: 2}", r#"{"a":1}"#, Err("the test of /a fails"));
        check("- {op: frob, path: /a}", "{}", Err("\"frob\" is no operation of a JSON patch"));
    }
}
