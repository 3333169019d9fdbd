//! Which analyses and experiments are no longer kept.

use serde_json::{Value as Json, json};
use tidegate::rollout::history::{Limits, Outcome, Run, outdated};

#[test]
fn vectors_history_cleanup() {
    super::check("history-cleanup", |input, _| {
        let items: Vec<&Json> = input["items"].as_array().into_iter().flatten().collect();
        let runs: Vec<Run> = items.iter().copied().map(run).collect();
        let limit = |name: &str| input[name].as_i64().unwrap() as i32;
        let limits = Limits { successful: limit("successfulLimit"), unsuccessful: limit("unsuccessfulLimit") };
        let gone = outdated(&runs, &super::rollouts::sets(&input["replicaSets"]), limits);
        Some(json!({"delete": gone.iter().map(|index| &items[*index]["metadata"]["name"]).collect::<Vec<_>>()}))
    });
}

fn run(item: &Json) -> Run<'_> {
    Run {
        hash: item["metadata"]["labels"]["rollouts-pod-template-hash"].as_str(),
        created: item["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok()),
        outcome: Outcome::of(item["status"]["phase"].as_str().unwrap_or_default()),
    }
}
