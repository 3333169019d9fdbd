//! Hashing and comparing pod templates.

use std::hint::black_box;

use serde_json::json;
use tidegate::{
    kubernetes::value::Value,
    model::{go_json, hash, template::Prepared},
};

use crate::table::{Row, time};

/// How many containers make ten kilobytes.
const TEN: usize = 7;

/// The rows.
pub fn rows() -> Vec<Row> {
    vec![hashing(&template(1), "≤ 15 µs"), hashing(&template(TEN), ""), comparing(), preparing()]
}

/// A template like those people write, with this many containers of about a kilobyte each.
fn template(containers: usize) -> Value {
    let container = |index: usize| {
        let probe =
            json!({"httpGet": {"path": "/healthz", "port": "http"}, "initialDelaySeconds": 5, "periodSeconds": 10});
        let env: Vec<_> = (0..8)
            .map(|i| json!({"name": format!("SETTING_{i}"), "value": format!("https://service-{i}.example.com/v1?a=b&c=d")}))
            .collect();
        json!({
            "name": format!("app-{index}"),
            "image": format!("registry.example.com/team/app-{index}:v1.2.3"),
            "args": ["--log-level=info", "--config=/etc/app/config.yaml", "--port=8080"],
            "env": env,
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}, {"name": "metrics", "containerPort": 9090}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
            "livenessProbe": probe,
            "readinessProbe": probe,
            "volumeMounts": [{"name": "config", "mountPath": "/etc/app", "readOnly": true}],
            "securityContext": {"runAsNonRoot": true, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}},
        })
    };
    let template = json!({
        "metadata": {"labels": {"app": "web", "team": "shop"}, "annotations": {"prometheus.io/scrape": "true"}},
        "spec": {
            "serviceAccountName": "web",
            "containers": (0..containers).map(container).collect::<Vec<_>>(),
            "volumes": [{"name": "config", "configMap": {"name": "web"}}],
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10,
                "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}}]}},
        },
    });
    read(&template.to_string())
}

/// A tree that shares nothing with another one, not even the texts of its keys: those are shared within a thread.
fn read(text: &str) -> Value {
    let text = text.to_owned();
    let read = std::thread::spawn(move || Value::from_json(text.as_bytes()).unwrap_or_default());
    read.join().unwrap_or_default()
}

fn kilobytes(bytes: usize) -> String {
    format!("{}.{} KB", bytes / 1000, bytes % 1000 / 100)
}

fn hashing(template: &Value, wanted: &'static str) -> Row {
    let bytes = go_json::pod_template().text(template).len();
    let taken = time(2_000, || {
        black_box(hash::pod_template(black_box(template), Some(0)));
    });
    let text = go_json::pod_template().text(template);
    let floor = time(2_000, || {
        let sum = black_box(&text).bytes().fold(1u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        black_box(sum);
    });
    let floor = format!("{floor:.1?} for FNV-1a over the same bytes");
    Row {
        name: format!("pod-template hash, {}", kilobytes(bytes)),
        measured: format!("{taken:.1?}"),
        wanted,
        peer: floor,
    }
}

fn comparing() -> Row {
    let desired = template(TEN);
    let bytes = desired.to_json().len();
    let prepared = Prepared::of(&desired);
    let mut live = read(&prepared.value().to_json());
    live.set_at(&["metadata", "labels", "rollouts-pod-template-hash"], "6bfdf7444");
    assert!(prepared.equals(&live), "nothing changed");
    let taken = time(2_000, || {
        black_box(prepared.equals(black_box(&live)));
    });
    let name = format!("no-op comparison of a template, {}", kilobytes(bytes));
    Row { name, measured: format!("{taken:.1?}"), wanted: "≤ 5 µs", peer: String::new() }
}

fn preparing() -> Row {
    let desired = template(TEN);
    let taken = time(500, || {
        black_box(Prepared::of(black_box(&desired)));
    });
    let name = "preparing it for comparison, once per change".into();
    Row { name, measured: format!("{taken:.1?}"), wanted: "", peer: String::new() }
}
