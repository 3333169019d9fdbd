//! The engine's figures, as a table: decisions per second and their allocations on one core, then a thousand Rollouts
//! updated at once by the real daemon on the embedded cluster. What Argo Rollouts 1.10 did on a real API server stands
//! beside it; that was measured elsewhere and says so.
//!
//! `TIDEGATE_ENGINE=noop` or `=action` only repeats that decision, for `callgrind`: its instruction counts repeat exactly.

mod burst;
mod decision;

/// One line of the table.
pub struct Row {
    /// What was done.
    pub name: String,
    /// What it came to.
    pub measured: String,
    /// What the design asks for.
    pub wanted: &'static str,
    /// A peer or a floor.
    pub peer: String,
}

fn main() {
    if let Ok(which) = std::env::var("TIDEGATE_ENGINE") {
        return decision::repeat(&which);
    }
    let mut rows = decision::rows();
    rows.extend(burst::rows());
    print(&rows);
}

fn print(rows: &[Row]) {
    let width = |pick: &dyn Fn(&Row) -> &str, least: usize| {
        rows.iter().map(|row| pick(row).chars().count()).max().unwrap_or(0).max(least)
    };
    let (a, b, c) = (width(&|row| &row.name, 0), width(&|row| &row.measured, 8), width(&|row| row.wanted, 6));
    let line = |cells: [&str; 4]| println!("{:<a$}  {:>b$}  {:>c$}  {}", cells[0], cells[1], cells[2], cells[3]);
    line(["", "measured", "wanted", "peer or floor"]);
    for row in rows {
        line([&row.name, &row.measured, row.wanted, &row.peer]);
    }
}

/// `12,345`
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
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
