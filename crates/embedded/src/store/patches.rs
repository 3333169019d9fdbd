//! The patches that were recorded from the real server, put to the store.

use std::collections::HashMap;

use jiff::Timestamp;

use super::{
    Config, Store,
    request::{Options, PatchType, Request, Verb},
};
use crate::{
    kubernetes::value::{Map, Text, Value, intern},
    value,
};

/// The same patches, put to the store: decoded, defaulted, validated, or refused, as by the real server.
#[test]
fn patches_are_answered_by_the_store_as_by_the_real_server() {
    let mut store = Store::new(Config::new(Timestamp::UNIX_EPOCH, 1));
    let ask = |verb: Verb, group: &str, plural: &str, name: &str, body: &Value| Request {
        verb,
        group: group.into(),
        version: "v1".into(),
        resource: plural.into(),
        namespace: if plural.contains("definitions") || plural == "namespaces" { "" } else { "patch-rec" }.into(),
        name: name.into(),
        body: Some(body.clone()),
        options: Options { dry_run: verb != Verb::Create, ..Options::default() },
        ..Request::default()
    };
    let definition = value!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.patch.test"},
        "spec": {
            "group": "patch.test", "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let namespace = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "patch-rec"}});
    let definitions = ("apiextensions.k8s.io", "customresourcedefinitions");
    store.apply(ask(Verb::Create, definitions.0, definitions.1, "", &definition)).unwrap();
    store.apply(ask(Verb::Create, "", "namespaces", "", &namespace)).unwrap();
    let mut bases: HashMap<String, (Text, Text, Value)> = HashMap::new();
    let (mut compared, mut misses) = (0, Vec::new());
    for line in include_str!("../../../kubernetes/src/patch/testdata/patches.jsonl").lines() {
        let row = Value::from_json(line.as_bytes()).unwrap();
        let name = row.str_at(&["base"]).unwrap().to_owned();
        if let Some(object) = row.get("object") {
            let group = row.str_at(&["group"]).unwrap();
            let plural = format!("{}s", row.str_at(&["kind"]).unwrap().to_lowercase());
            store.apply(ask(Verb::Create, group, &plural, "", object)).unwrap();
            bases.insert(name, (group.into(), plural.into(), object.clone()));
            continue;
        }
        let (group, plural, base) = &bases[&name];
        let body = row.get("patch").unwrap_or(&Value::Null);
        let how = how(&row);
        let ours = store.apply(ask(Verb::Patch(how), group, plural, &name, body));
        let ours = ours.map(|response| recorded_part(&response.object().unwrap().value)).map_err(|no| no.message);
        let theirs = match row.get("changes") {
            Some(changes) => Ok(changed(base, changes)),
            None => Err(row.str_at(&["refusal", "message"]).unwrap().to_owned()),
        };
        // Such a refusal shows the whole object with its uid and times.
        if theirs.as_ref().is_err_and(|message| message.contains("creationTimestamp")) {
            assert_eq!(ours.map_err(|message| message.contains("creationTimestamp")), Err(true));
            continue;
        }
        compared += 1;
        if ours != theirs {
            misses.push(format!("{how:?} {name} {body}\n  we   {ours:?}\n  they {theirs:?}"));
        }
    }
    assert!(misses.is_empty(), "{} of {compared} differ:\n{}", misses.len(), misses.join("\n"));
}

/// What `record.py` keeps of an object.
fn recorded_part(object: &Value) -> Value {
    let mut out = object.clone();
    for key in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        out.remove_at(&["metadata", key]);
    }
    if out.str_at(&["kind"]) != Some("Gadget") {
        out.remove_at(&["status"]);
    }
    out
}

fn how(row: &Value) -> PatchType {
    match row.str_at(&["type"]).unwrap() {
        "strategic" => PatchType::Strategic,
        "merge" => PatchType::Merge,
        _ => PatchType::Json,
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
