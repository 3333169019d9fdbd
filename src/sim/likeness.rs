//! What a cluster looks like, without what is accidental: two runs that came to the same have the same likeness.
//!
//! Left out are uids, versions, names of pods and moments in time. Never compares itself.

use super::story::NAMESPACE;
use crate::{
    api::constants::GROUP,
    embedded::store::Store,
    kubernetes::value::{Map, Value},
};

/// The likeness of everything that Rollouts are about: one line for each object.
pub fn of(store: &Store) -> Vec<String> {
    let mut lines = Vec::new();
    let own = [(GROUP, "rollouts"), (GROUP, "analysisruns"), (GROUP, "experiments")];
    let kinds = own.into_iter().chain([("apps", "replicasets"), ("apps", "deployments"), ("", "services")]);
    for (group, plural) in kinds {
        for object in store.list(group, plural, NAMESPACE) {
            let generation = object.value.int_at(&["metadata", "generation"]).unwrap_or_default();
            let observed = object.value.at(&["status", "observedGeneration"]);
            let observed = observed.map(|observed| observed.as_str().map_or_else(|| observed.to_json(), str::to_owned));
            let is_observed = observed == Some(generation.to_string());
            let plain = plain(&object.value, "");
            lines.push(format!("{plural} {} observed={is_observed} {}", object.name(), plain.to_json()));
        }
    }
    lines
}

/// What is not told: it differs between runs that came to the same.
const ACCIDENTAL: [&str; 13] = [
    // It holds a uid.
    "job-name",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "observedGeneration",
    "workloadObservedGeneration",
    "lastUpdateTime",
    "lastTransitionTime",
    "totalManualPauseDurationSeconds",
    "clusterIP",
    "clusterIPs",
];

fn plain(value: &Value, key: &str) -> Value {
    match value {
        Value::Map(map) => {
            let kept = map
                .iter()
                .filter(|(key, _)| !ACCIDENTAL.contains(&key.as_str()) && !key.ends_with("workload-generation"));
            Value::Map(kept.map(|(key, value)| (key.clone(), plain(value, key))).collect::<Map>())
        }
        Value::List(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| plain(item, key)).collect();
            if key == "conditions" {
                items.sort_by_key(|item| item.str_at(&["type"]).unwrap_or_default().to_owned());
            }
            Value::list(items)
        }
        Value::Str(text) if is_moment(text) => Value::from("<time>"),
        Value::Str(text) if text.contains("Pod ") => Value::from(without_pod(text)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => value.clone(),
    }
}

/// A message about a pod without its name, the end of which is chance.
fn without_pod(text: &str) -> String {
    let Some((before, after)) = text.split_once("Pod ") else { return text.to_owned() };
    format!("{before}Pod <name>{}", after.split_once(',').map_or("", |(_, rest)| rest))
}

fn is_moment(text: &str) -> bool {
    text.len() == 20 && text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn what_is_accidental_is_not_told() {
        let a = value!({"metadata": {"uid": "1", "name": "web"}, "status": {"conditions": [
            {"type": "B", "lastUpdateTime": "2026-01-01T00:00:00Z"}, {"type": "A"}], "at": "2026-01-01T00:00:00Z"}});
        let b = value!({"metadata": {"uid": "2", "name": "web"}, "status": {"conditions": [
            {"type": "A"}, {"type": "B"}], "at": "2026-01-01T00:00:09Z"}});
        assert_eq!(plain(&a, ""), plain(&b, ""));
        assert_ne!(plain(&a, ""), plain(&value!({"metadata": {"name": "api"}}), ""));
    }
}
