//! Rollouts and ReplicaSets as the files spell them.

use serde_json::Value as Json;
use tidegate::{
    api::{self, Rollout},
    model::replica_set::ReplicaSet,
};

pub fn rollout(input: &Json) -> Rollout {
    api::read::<Rollout>(&input.clone().into()).object
}

/// A ReplicaSet written short, or whole; `null` is none.
pub fn set(input: &Json) -> Option<ReplicaSet> {
    if input.is_null() {
        return None;
    }
    if input.get("metadata").is_some() {
        return Some(ReplicaSet::of(&input.clone().into()));
    }
    let count = |name: &str| input[name].as_i64().unwrap_or_default() as i32;
    let text = |name: &str| input[name].as_str().unwrap_or_default().into();
    Some(ReplicaSet {
        name: text("name"),
        hash: text("hash"),
        desired: count("replicas"),
        current: count("current"),
        ready: count("ready"),
        available: count("available"),
        ..ReplicaSet::default()
    })
}

pub fn sets(input: &Json) -> Vec<ReplicaSet> {
    input.as_array().into_iter().flatten().filter_map(set).collect()
}
