//! What Argo Rollouts 1.10.1 did, story by story, and whether we do the same.
//!
//! A story (`*.yaml`) is a Rollout and what people do to it. `argo/` holds what five plays of each with Argo Rollouts on a
//! real control plane had in common: the values of every field in their order, and the events. Here the same stories are
//! played on the embedded cluster in virtual time, at several paces. `TIDEGATE_STORIES=a,b` plays only some, `known.yaml` says what may
//! differ and why.
#![allow(missing_docs, clippy::unwrap_used)]

mod play;
mod trace;

use std::{collections::BTreeMap, env, fs, path::Path};

use serde_json::Value;

#[derive(serde::Deserialize)]
struct Reference {
    acts: Vec<Vec<String>>,
    stable: BTreeMap<String, Value>,
}

/// A difference that is meant.
#[derive(serde::Deserialize)]
struct Known {
    /// The story; `*` for all.
    story: String,
    /// The beginning of the field's name.
    field: String,
    /// Why.
    #[allow(dead_code)]
    reason: String,
}

/// A value without the instance id, with which the reference was played.
fn without_instance(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_instance).collect(),
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| *key != "argo-rollouts.argoproj.io/controller-instance-id")
            .map(|(key, value)| (key.clone(), without_instance(value)))
            .collect(),
        other => other.clone(),
    }
}

#[test]
fn stories_go_as_with_argo_rollouts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let known: Vec<Known> = serde_saphyr::from_str(&fs::read_to_string(folder.join("known.yaml")).unwrap()).unwrap();
    let only = env::var("TIDEGATE_STORIES").ok();
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|wanted| wanted == name));
    let (mut played, mut wrong) = (0, Vec::new());
    for story in play::stories(&folder) {
        let reference = folder.join(format!("argo/{}.json", story.name));
        let Ok(reference) = fs::read_to_string(reference) else { continue };
        if !is_wanted(&story.name) {
            continue;
        }
        let reference: Reference = serde_json::from_str(&reference).unwrap();
        let plays = play::PACES.map(|pace| play::play(&story, pace));
        played += 1;
        let mut differences = Vec::new();
        for (results, _) in &plays {
            for (number, (result, expected)) in results.iter().zip(&reference.acts).enumerate() {
                if !expected.contains(result) {
                    differences.push(format!("  act {number}: argo {expected:?}, ours {result}"));
                }
            }
        }
        for (field, expected) in &reference.stable {
            let expected = &without_instance(expected);
            let is_known = known
                .iter()
                .any(|known| (known.story == "*" || known.story == story.name) && field.starts_with(&known.field));
            // The reference was played with an instance id, which is a label.
            if is_known || field == "events *" || field.starts_with("Rollout/") && field.ends_with(" labels") {
                continue;
            }
            // Client libraries drop events beyond about 25 for an object: then only the first are known.
            let capped = field.starts_with("events ") && trace::event_count(&reference.stable) >= 20;
            if capped && field.contains(" scaling ") {
                continue;
            }
            let limit = if capped { 15 } else { usize::MAX };
            // How fast pods are is chance: a field that goes as with Argo Rollouts at one pace can go so.
            let found = plays.iter().map(|(_, ours)| {
                let ours = ours.get(field).cloned().unwrap_or(Value::Null);
                trace::difference(field, expected, &ours, limit)
            });
            if let Some(difference) = found.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().next()) {
                differences.push(format!("  {field}: {difference}"));
            }
        }
        if !differences.is_empty() {
            wrong.push(format!("{}:\n{}", story.name, differences.join("\n")));
        }
    }
    println!("{played} stories played, {} as with Argo Rollouts", played - wrong.len());
    assert!(wrong.is_empty(), "{} of {played} stories went otherwise:\n{}", wrong.len(), wrong.join("\n"));
}
