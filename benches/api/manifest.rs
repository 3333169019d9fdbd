//! Reading and judging manifests: five thousand of them, as in the repository of a large company.

use std::hint::black_box;

use serde::de::IgnoredAny;
use tidegate::{
    api,
    lint::lint,
    manifest::{self, File},
    model::parse::{self, PodsFrom},
};

use crate::table::{Row, time};

const COUNT: usize = 5_000;

/// The rows.
pub fn rows() -> Vec<Row> {
    let texts: Vec<String> = (0..COUNT).map(text).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let floor = time(1, || texts.iter().for_each(|text| plain(text)));
    let reading = time(1, || drop(black_box(read(&texts))));
    let judged = time(1, || {
        for file in read(&texts) {
            for object in &file.objects {
                let rollout = api::read::<api::Rollout>(&object.value);
                black_box(parse::rollout(&rollout.object, PodsFrom::Manifest).problems);
            }
        }
    });
    let linted = time(1, || drop(black_box(lint(&read(&texts)))));
    let size = format!("{COUNT} manifests, {:.1} MB", bytes as f64 / 1e6);
    let row = |name: &str, measured: std::time::Duration, wanted| Row {
        name: format!("{name}: {size}"),
        measured: format!("{:.3} s", measured.as_secs_f64()),
        wanted,
        peer: format!("{:.3} s, YAML parsed and thrown away", floor.as_secs_f64()),
    };
    vec![
        row("read with places", reading, ""),
        row("read and validate", judged, "≤ 0.6 s"),
        row("read and lint", linted, ""),
    ]
}

fn read(texts: &[String]) -> Vec<File> {
    texts.iter().enumerate().map(|(i, text)| manifest::read(format!("{i}.yaml"), text.as_bytes())).collect()
}

/// What any reader must do at least.
fn plain(text: &str) {
    let options = serde_saphyr::options! { with_snippet: false };
    let parsed: Result<IgnoredAny, _> = serde_saphyr::from_str_with_options(text, options);
    black_box(parsed.is_ok());
}

/// A manifest like those people write, of about 800 bytes.
fn text(number: usize) -> String {
    format!(
        "\
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata:
  name: web-{number}
  namespace: team-{}
  labels: {{app: web-{number}, tier: front}}
  annotations:
    example.com/runbook: https://runbooks.example.com/web-{number}
spec:
  replicas: {}
  selector:
    matchLabels:
      app: web-{number}
  template:
    metadata:
      labels:
        app: web-{number}
    spec:
      containers:
      - name: web
        image: registry.example.com/shop/web:1.{number}
        ports:
        - name: http
          containerPort: 8080
        env:
        - name: MODE
          value: \"production\"
        resources:
          requests: {{cpu: 100m, memory: 128Mi}}
  strategy:
    canary:
      maxSurge: 25%
      steps:
      - setWeight: 10
      - pause: {{duration: 10m}}
      - setWeight: 50
      - pause: {{}}
# {number} of many
",
        number % 40,
        10 + number % 7,
    )
}
