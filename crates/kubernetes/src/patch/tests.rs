//! What the tests of all three patches share.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{PatchType, check, json, merge, strategic, undecodable};
use crate::{
    facts,
    kind::Kind,
    schema::typed,
    status::Status,
    value::{Map, Text, Value, intern},
};

struct Base {
    kind: Option<&'static Kind>,
    object: Value,
}

/// Every patch in the file was put to the real server; `record.py` beside it did so.
#[test]
fn patches_come_out_as_on_the_real_server() {
    let mut bases: HashMap<String, Base> = HashMap::new();
    let (mut compared, mut misses) = (0, Vec::new());
    for line in include_str!("testdata/patches.jsonl").lines() {
        let row = Value::from_json(line.as_bytes()).unwrap();
        let name = row.str_at(&["base"]).unwrap().to_owned();
        if let Some(object) = row.get("object") {
            let kind = |key: &str| row.str_at(&[key]).unwrap();
            let kind = facts::kind(kind("group"), "v1", kind("kind")).map(|kind| &**kind);
            bases.insert(name, Base { kind, object: object.clone() });
            continue;
        }
        match outcome(&bases[&name], &row) {
            None => {}
            Some(Ok(())) => compared += 1,
            Some(Err(miss)) => misses.push(format!(
                "{} {name} {}\n{miss}",
                row.str_at(&["type"]).unwrap(),
                row.get("patch").unwrap_or(&Value::Null)
            )),
        }
    }
    assert!(misses.is_empty(), "{} of {compared} differ:\n{}", misses.len(), misses.join("\n"));
    assert!(compared > 400, "only {compared} patches were compared");
}

fn how(row: &Value) -> PatchType {
    match row.str_at(&["type"]).unwrap() {
        "strategic" => PatchType::Strategic,
        "merge" => PatchType::Merge,
        _ => PatchType::Json,
    }
}

/// Whether we answer as the real server did; nothing if it refused for reasons that are not the patch's.
fn outcome(base: &Base, row: &Value) -> Option<Result<(), String>> {
    let body = row.get("patch").unwrap_or(&Value::Null);
    let how = how(row);
    let ours = patched(base, how, body);
    let differs = |ours: &dyn std::fmt::Debug, theirs: &Value| Some(Err(format!("  we   {ours:?}\n  they {theirs}")));
    match row.get("changes") {
        Some(changes) => {
            let theirs = changed(&base.object, changes);
            match ours {
                Ok(ours) if ours == theirs => Some(Ok(())),
                ours => differs(&ours, &theirs),
            }
        }
        None => {
            let refusal = row.get("refusal").unwrap();
            let message = refusal.str_at(&["message"]).unwrap();
            let of_patch = message.contains(" \"\" is invalid: patch: ") || !message.contains("is invalid");
            match ours {
                Err(ours) if ours.message == message && row.int_at(&["code"]) == Some(ours.code.into()) => Some(Ok(())),
                // The object as a whole is judged by others: its name, its kind, its rules.
                Ok(_) if !of_patch || message.starts_with("the name of") || message.starts_with("the namespace of") => {
                    None
                }
                Ok(_) if row.int_at(&["code"]) == Some(415) || message.contains("ObjectMeta.labels") => None,
                ours => differs(&ours, refusal),
            }
        }
    }
}

fn patched(base: &Base, how: PatchType, body: &Value) -> Result<Value, Status> {
    check(how, body)?;
    let patched = match (how, base.kind) {
        (PatchType::Json, _) => json(&base.object, body)?,
        (PatchType::Strategic, Some(kind)) => strategic(&kind.schema, &base.object, body)?,
        _ => merge(&base.object, body),
    };
    match base.kind {
        None => Ok(patched),
        Some(kind) => match typed::decode(kind, &kind.schema, &patched) {
            Err(why) => Err(undecodable(how, &kind.schema, body, &patched, &why)),
            Ok(decoded) => {
                // Decoding shows an empty status, which is recorded nowhere.
                let mut value = decoded.value;
                value.remove_at(&["status"]);
                Ok(value)
            }
        },
    }
}

/// The base with the recorded differences applied.
fn changed(base: &Value, changes: &Value) -> Value {
    let mut out = base.clone();
    for change in changes.as_list().unwrap() {
        let [path, new @ ..] = change.as_list().unwrap() else { panic!("{change}") };
        put(&mut out, path.as_list().unwrap(), new.first());
    }
    out
}

fn put(value: &mut Value, path: &[Value], new: Option<&Value>) {
    let Some((step, rest)) = path.split_first() else {
        *value = new.unwrap().clone();
        return;
    };
    match step.as_int() {
        Some(at) => put(&mut value.as_list_mut().unwrap()[at as usize], rest, new),
        None => {
            let (map, key): (&mut Map, Text) = (value.as_map_mut().unwrap(), intern(step.as_str().unwrap()));
            match (rest.is_empty(), new) {
                (true, None) => drop(map.remove(&key)),
                _ => put(map.entry(&key), rest, new),
            }
        }
    }
}

/// Any small value, with keys and texts that meet often, and those that mean something to a patch.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        Just(Value::Float(1.5)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..5).prop_map(|fields| Value::Map(fields.into_iter().collect())),
        ]
    })
}

/// Any small object.
pub(crate) fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::vec((text(), any_value()), 0..5).prop_map(|fields| Value::Map(fields.into_iter().collect()))
}

fn text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "b",
        "name",
        "args",
        "items",
        "finalizers",
        "op",
        "path",
        "from",
        "value",
        "/a",
        "/a/0",
        "delete",
        "replace",
        "$patch",
        "$retainKeys",
        "$setElementOrder/items",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
    ])
}
