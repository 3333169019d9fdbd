//! `docs/metrics.md`, from a page that Prometheus would read on which every family has a sample.

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use jiff::Timestamp;
use tidegate::{
    api::{GitSourceStatus, RolloutStatus},
    engine::{
        key::{Key, Machine, Place},
        metrics::{Ending, Gauges, Metrics, Objects, Request},
    },
    forge::Outcome,
    install::alerts,
    io,
    kubernetes::value::Value,
    value,
};

use super::{cell, check};

/// A family: its name, what is measured, its type, its labels.
struct Family {
    name: String,
    help: String,
    r#type: String,
    labels: Vec<String>,
}

#[test]
fn the_page_of_metrics_is_what_prometheus_reads() {
    let families = families(&counted());
    let (own, others): (Vec<&Family>, Vec<&Family>) =
        families.iter().partition(|family| family.name.starts_with("tidegate_"));
    let process = self::families(&io::metrics::process());
    let mut out = String::from("# Metrics\n\n`tidegate run` serves them at `--metrics-port`, path `/metrics`.\n");
    table(
        "Those of Argo Rollouts",
        "Names, labels and help are those of Argo Rollouts 1.10.1, so that its dashboards work.",
        &others,
        &mut out,
    );
    table("Our own", "What only Tidegate counts.", &own, &mut out);
    table(
        "The process",
        "As every program that Prometheus reads; on Linux.",
        &process.iter().collect::<Vec<_>>(),
        &mut out,
    );
    let _ = writeln!(
        out,
        "\n## Alerts\n\nFor the Prometheus operator: `tidegate install --alerts`.\n\n{}",
        alerts::markdown()
    );
    check("metrics.md", &out);
}

/// What the page above is made of has a sample of everything that the code names.
#[test]
fn no_family_is_missing_on_the_page_of_metrics() {
    let page = counted();
    let families = families(&page);
    let known: BTreeSet<&str> = families
        .iter()
        .flat_map(|family| family.labels.iter().map(String::as_str).chain([family.name.as_str()]))
        .chain(page.split('"').skip(1).step_by(2)) // the values of labels
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/core/src/engine/metrics");
    for entry in
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("tests.rs"))
    {
        let text = fs::read_to_string(&entry).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        for word in text.split('"').skip(1).step_by(2).filter(|word| is_name(word)) {
            assert!(known.contains(word), "{word} of {} has no sample in this test", entry.display());
        }
    }
}

/// `rollout_info`
fn is_name(word: &str) -> bool {
    word.contains('_')
        && !word.starts_with('_')
        && word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

/// A page on which everything has been counted once.
fn counted() -> String {
    let mut metrics = Metrics::default();
    let web = Place::new("shop", "web");
    for machine in [Machine::Rollout, Machine::Analysis, Machine::Experiment] {
        metrics.passed(&Key { machine, place: web.clone() }, 0.1, Ending::Failed);
    }
    metrics.decided(0.001);
    metrics.refused(Machine::Rollout);
    metrics.fenced(Machine::Rollout);
    metrics.watched_anew("rollouts");
    metrics.announced(web.clone(), "Normal", "RolloutCompleted");
    let one = || value!({"commit": "1", "at": "1970-01-01T00:00:00Z"});
    let done = value!({
        "seen": one(), "applied": one(), "rolledOut": one(),
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}],
    });
    metrics.synced(&web, &GitSourceStatus::default(), &tidegate::api::read(&done).object);
    let why = String::new;
    for outcome in
        [Outcome::Posted(None), Outcome::Retry(None, why()), Outcome::GiveUp(why()), Outcome::Forbidden(why())]
    {
        metrics.reported(&web, &outcome);
    }
    metrics.asked(Request::of("PATCH", "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web/status", 200));
    let status = |duration: Value| tidegate::api::read::<RolloutStatus>(&value!({"duration": duration})).object;
    let began = status(value!({"rolloutStartedAt": "1970-01-01T00:00:00Z"}));
    let ended = status(value!({
        "rolloutStartedAt": "1970-01-01T00:00:00Z", "finishedAt": "1970-01-01T00:02:00Z", "completionStatus": "Promoted",
    }));
    metrics.recorded(&began, &ended, Timestamp::UNIX_EPOCH);
    let rollout = value!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"strategy": {"canary": {}}}});
    let run = value!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"metrics": [{"name": "rate", "provider": {"web": {}}}]},
        "status": {"phase": "Running"},
    });
    let objects =
        Objects { rollouts: vec![&rollout], runs: vec![&run], experiments: vec![&run], templates: vec![&run] };
    let gauges = Gauges { objects: vec![("rollouts".to_owned(), 1)], ..Gauges::default() };
    metrics.page(&objects, &gauges, Timestamp::UNIX_EPOCH)
}

fn families(page: &str) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for line in page.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            let (name, help) = (name.to_owned(), help.to_owned());
            families.push(Family { name, help, r#type: String::new(), labels: Vec::new() });
            continue;
        }
        let family = families.last_mut().unwrap();
        if line.starts_with("# TYPE ") {
            family.r#type = line.rsplit(' ').next().unwrap().to_owned();
            continue;
        }
        let labels = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}')).map_or("", |(labels, _)| labels);
        for label in labels.split("\",").filter_map(|pair| pair.split('=').next()).filter(|name| !name.is_empty()) {
            if label != "le" && !family.labels.iter().any(|known| known == label) {
                family.labels.push(label.to_owned());
            }
        }
    }
    families
}

fn table(title: &str, text: &str, families: &[&Family], out: &mut String) {
    let _ = writeln!(out, "\n## {title}\n\n{text}\n\n| name | type | labels | |\n|---|---|---|---|");
    for Family { name, help, r#type, labels } in families {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let _ = writeln!(out, "| `{name}` | {kind} | {} | {} |", labels.join(", "), cell(help), kind = r#type);
    }
}
