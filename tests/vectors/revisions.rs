//! Revisions on annotations.

use serde_json::{Map, Value as Json, json};
use tidegate::{
    api::constants::annotation::REVISION,
    model::revision::{self, Annotations, Update},
};

fn annotations(object: &Json) -> Annotations {
    serde_json::from_value(object["metadata"]["annotations"].clone()).unwrap_or_default()
}

#[test]
fn vectors_revisions() {
    super::check("revisions", |input, expect| match input["kind"].as_str() {
        Some("set-annotations") => {
            let mut set = annotations(&input["replicaSet"]);
            let size = input["rollout"]["spec"]["replicas"].as_i64().unwrap_or(1) as i32;
            let created_for = (!input["exists"].as_bool().unwrap()).then_some(size);
            let revision = input["newRevision"].as_str().unwrap();
            let update = revision::update(&mut set, &annotations(&input["rollout"]), revision, created_for);
            Some(json!({"annotations": set, "changed": update == Update::Changed}))
        }
        _ => Some(highest(input, expect)),
    });
}

fn highest(input: &Json, expect: &Json) -> Json {
    let sets = input["replicaSets"].as_array().unwrap();
    let notes: Vec<Annotations> = sets.iter().map(annotations).collect();
    let mut each = Map::new();
    for (set, notes) in sets.iter().zip(&notes) {
        let (number, error) = match revision::of(notes) {
            Ok(number) => (number, None),
            Err(error) => (0, Some(error.to_string())),
        };
        let name = set["metadata"]["name"].as_str().unwrap().to_owned();
        each.insert(
            name,
            json!({"revision": number, "error": error, "replicaSetRevision": revision::noted(notes).unwrap_or(-1)}),
        );
    }
    let noted = notes.iter().filter_map(|notes| notes.get(REVISION)).map(String::as_str);
    let mut answer = json!({"max": revision::highest(noted), "each": each});
    if !expect["sorted"].is_null() {
        let mut order: Vec<(Option<i64>, &str, &str)> = sets
            .iter()
            .zip(&notes)
            .map(|(set, notes)| {
                let text = |key: &str| set["metadata"][key].as_str().unwrap_or_default();
                (revision::noted(notes), text("creationTimestamp"), text("name"))
            })
            .collect();
        order.sort();
        answer["sorted"] = order.into_iter().map(|(_, _, name)| name).collect();
    }
    answer
}
