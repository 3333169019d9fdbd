//! The engine's figures, as a table: decisions per second and their allocations on one core, then a thousand Rollouts
//! updated at once by the real daemon on the embedded cluster. What Argo Rollouts 1.10 did on a real API server stands
//! beside it; that was measured elsewhere and says so.
//!
//! `TIDEGATE_ENGINE=noop` or `=action` only repeats that decision, `TIDEGATE_REPEAT` times, for `callgrind`: instructions
//! are the same on a busy machine. `benches/run` counts them.

mod burst;
mod decision;
#[path = "../table/mod.rs"]
mod table;

fn main() {
    if let Ok(which) = std::env::var("TIDEGATE_ENGINE") {
        let count = std::env::var("TIDEGATE_REPEAT").ok().and_then(|count| count.parse().ok());
        return decision::repeat(&which, count.unwrap_or(1_000));
    }
    let mut rows = decision::rows();
    rows.extend(burst::rows());
    table::print(&rows);
}

/// A Rollout of two pods without steps.
pub fn rollout(name: &str) -> tidegate::kubernetes::value::Value {
    tidegate::value!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": 2, "revisionHistoryLimit": 2,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"canary": {}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{
                    "name": "web", "image": "registry.example/web:1",
                    "ports": [{"name": "http", "containerPort": 8080}],
                    "env": [{"name": "MODE", "value": "production"}, {"name": "REGION", "value": "eu-west-1"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                }]},
            },
        },
    })
}
