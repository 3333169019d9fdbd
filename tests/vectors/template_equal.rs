//! Whether templates are the same, and which ReplicaSet is a template's.

use serde_json::{Value as Json, json};
use tidegate::{
    kubernetes::value::Value,
    model::{
        hash,
        strategy::AntiAffinity,
        template::{Found, Prepared, Wanted, find},
    },
};

#[test]
fn vectors_template_equal() {
    super::check("template-equal", |input, expect| match input["kind"].as_str() {
        Some("equal") => {
            let desired = Prepared::of(&input["desired"].clone().into());
            Some(json!({"equal": desired.equals(&input["live"].clone().into())}))
        }
        _ => found(input, expect),
    });
}

fn found(input: &Json, expect: &Json) -> Option<Json> {
    let rollout = Value::from(input["rollout"].clone());
    let sets: Vec<Value> = input["replicaSets"].as_array().unwrap().iter().cloned().map(Value::from).collect();
    let template = rollout.at(&["spec", "template"]).cloned().unwrap_or_default();
    let collisions = rollout.int_at(&["status", "collisionCount"]).map(|count| count as i32);
    let hash = hash::pod_template(&template, collisions);
    let recorded = [rollout.str_at(&["status", "stableRS"]).unwrap_or_default()];
    let wanted = Wanted {
        template: &template,
        hash: &hash,
        recorded: &recorded,
        anti_affinity: AntiAffinity::of(&super::rollouts::rollout(&input["rollout"]).spec.strategy),
        altered: &[],
    };
    let found = find(&wanted, &sets);
    let name = found.and_then(|found| sets[found.index()].str_at(&["metadata", "name"]));
    // A set labelled with the hash of Deployments, which Argo Rollouts still looks for: that hash is made of Go's print of
    // its structs and changes with every field added to them, so a label made by another release never matches. Such a set
    // is recognised by its template instead; one whose template differs was made from another.
    let by_old_hash = input["note"].as_str().is_some_and(|note| note.contains("old Kubernetes template hash"));
    if by_old_hash && !matches!(found, Some(Found::ByHash(_))) && json!(name) != expect["found"] {
        return None;
    }
    // A preferred anti-affinity term that stood alone: taking it out, Argo Rollouts leaves an empty `podAntiAffinity` behind
    // and no longer recognises the set. Ours does: not to would roll out a template that did not change.
    let preferred = matches!(wanted.anti_affinity, Some(AntiAffinity::Preferred(_)));
    if preferred && matches!(found, Some(Found::ByTemplate(_))) && expect["found"].is_null() {
        return None;
    }
    Some(json!({"found": name, "hash": hash.as_str()}))
}
