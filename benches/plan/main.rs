//! `tidegate plan` as a table: one changed Rollout among 5,000 manifests, as a process of its own, the forecast of a long
//! canary in this one, and `kubectl diff` on a real control plane beside it.

mod peer;

#[path = "../sync/repository.rs"]
#[allow(dead_code)]
mod repository;
#[path = "../table/mod.rs"]
mod table;

use std::{
    process::Child,
    time::{Duration, Instant},
};

use repository::{OBJECTS, Repository};
use table::{Row, kilobytes, thousands, tidegate, time};
use tidegate::{
    manifest,
    plan::Side,
    sim::plan::{Reading, Rules, Sides, make},
    sync::{allow::Allowance, set::Scope},
};

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut repository = Repository::new(&folder.path().join("shop.git"));
    repository.change(1);
    let plan = || {
        let mut command = tidegate();
        command.args(["plan", "--from", "HEAD~1", "-o", "json"]).current_dir(repository.path());
        command
    };
    let run = || {
        let begin = Instant::now();
        let status = plan().status().expect("it runs");
        assert_eq!(status.code(), Some(1), "one object changes");
        begin.elapsed()
    };
    let best = (0..5).map(|_| run()).min().unwrap_or(Duration::MAX);
    let memory = memory(plan().spawn().expect("it runs"));
    let side = |image: &str| {
        let files = vec![manifest::read("web.yaml", canary(image).as_bytes())];
        Reading::of(Side::default(), files)
    };
    let sides = Sides { old: side("web:1"), new: side("web:2") };
    let allowance = Allowance { kinds: vec!["*".into()], namespaces: vec!["*".into()] };
    let scope = Scope { namespace: "shop".into(), allowance };
    let rules = Rules { scope, path: String::new(), source: String::new(), spec: None, deadline: None };
    assert_eq!(make(&sides, &rules).rollouts[0].forecast.as_ref().map(|forecast| forecast.peak.pods), Some(100));
    let forecast = time(1, || drop(make(&sides, &rules)));
    let mut rows = vec![
        Row {
            name: format!(
                "plan of one changed Rollout in {} manifests, process start included",
                thousands(OBJECTS as u64)
            ),
            measured: format!("{:.2} s", best.as_secs_f64()),
            wanted: "≤ 1 s",
            peer: String::new(),
        },
        Row {
            name: "its memory".to_owned(),
            measured: format!("{} MB", memory / 1000),
            wanted: "≤ 300 MB",
            peer: String::new(),
        },
        Row {
            name: "plan and forecast of a canary with 10 steps and 100 replicas".to_owned(),
            measured: format!("{:.0} ms", forecast.as_secs_f64() * 1000.0),
            wanted: "≤ 50 ms",
            peer: String::new(),
        },
    ];
    rows.extend(peer::rows(&repository));
    table::print(&rows);
}

/// The most kilobytes that a process has had, as it says itself until it ends.
fn memory(mut process: Child) -> u64 {
    let mut most = 0;
    while let Ok(None) = process.try_wait() {
        most = most.max(kilobytes(process.id(), "VmHWM:"));
        std::thread::sleep(Duration::from_millis(1));
    }
    most
}

fn canary(image: &str) -> String {
    let steps: String =
        (1..=5).map(|n| format!("      - setWeight: {}\n      - pause: {{duration: 60}}\n", n * 15)).collect();
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  replicas: 100\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
         spec: {{containers: [{{name: app, image: '{image}'}}]}}\n  strategy:\n    canary:\n      steps:\n{steps}"
    )
}
