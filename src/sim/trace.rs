//! What happened in a play, state by state, as lines that people read and tests compare.
//!
//! ```text
//! > set-image app:v2
//!   1.300 web Progressing "more replicas need to be updated"  step 0/2  h1* 2/2  h2+ 0/0
//!         ScalingReplicaSet: Scaled up ReplicaSet web-h2 (revision 2) from 0 to 1
//! ```
//! `h1` is the hash of the first version that was met; `*` marks the stable one, `+` the wanted one; a version has as many
//! pods as it wants, and so many of them available. Never shows what is accidental: names of pods, uids, versions.

use std::{collections::BTreeMap, fmt::Write};

use jiff::Timestamp;

use super::{local::Local, story::NAMESPACE};
use crate::{
    api::constants::{
        GROUP, annotation,
        condition::{READY, RECONCILING, STALLED},
        label,
    },
    embedded::store::Store,
    kubernetes::value::{Text, Value},
};

/// The lines of a play.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    lines: Vec<String>,
    start: Option<Timestamp>,
    /// The hashes in the order in which they were met.
    hashes: Vec<Text>,
    last: BTreeMap<String, String>,
    events: usize,
    compared: usize,
    version: u64,
}

impl Trace {
    /// Somebody does something.
    pub fn act(&mut self, what: &str) {
        self.lines.push(format!("> {what}"));
    }

    /// How that ended, if it did not simply work.
    pub fn result(&mut self, result: &str) {
        if result != "ok" {
            let told = self.named(result);
            self.lines.push(format!("        = {told}"));
        }
    }

    /// Looks at a cluster: what is not as it was makes lines.
    pub fn look(&mut self, local: &Local) {
        let start = *self.start.get_or_insert_with(|| local.now());
        let store = local.store();
        if store.version() == self.version && local.events.len() == self.events && local.compared.len() == self.compared
        {
            return;
        }
        self.version = store.version();
        self.meet(store);
        let stamp = format!("{:7.3}", local.now().duration_since(start).as_secs_f64());
        let mut now: BTreeMap<String, String> = BTreeMap::new();
        for rollout in store.list(GROUP, "rollouts", NAMESPACE) {
            let name = rollout.name().to_string();
            now.insert(name.clone(), self.state(store, &rollout.value));
            now.insert(format!("{name} conditions"), conditions(&rollout.value));
            now.insert(format!("{name} duration"), duration(&rollout.value, start));
        }
        for experiment in store.list(GROUP, "experiments", NAMESPACE) {
            now.insert(format!("experiment {}", experiment.name()), self.experiment(store, &experiment.value));
        }
        for deployment in store.list("apps", "deployments", NAMESPACE) {
            let size = deployment.value.int_at(&["spec", "replicas"]).unwrap_or(1);
            now.insert(format!("deployment {}", deployment.name()), format!("{size} pods wanted"));
        }
        for ingress in store.list("networking.k8s.io", "ingresses", NAMESPACE) {
            now.insert(format!("ingress {}", ingress.name()), self.named(&told(&ingress.value)));
        }
        for (what, state) in &now {
            if self.last.get(what) != Some(state) && !state.is_empty() {
                self.lines.push(format!("{stamp} {what} {state}"));
            }
        }
        for gone in self.last.keys().filter(|what| !now.contains_key(*what) && !what.contains(' ')) {
            self.lines.push(format!("{stamp} {gone} is gone"));
        }
        self.last = now;
        for (_, event) in &local.events[self.events..] {
            let told = self.named(&event.message);
            let kind = if event.warning { "! " } else { "" };
            self.lines.push(format!("        {kind}{}: {told}", event.reason));
        }
        self.events = local.events.len();
        for (_, event) in &local.compared[self.compared..] {
            let told = self.named(&event.message);
            let kind = if event.warning { "! " } else { "" };
            self.lines.push(format!("        {kind}{}: {told}", event.reason));
        }
        self.compared = local.compared.len();
    }

    /// An Experiment: each version with its stage and pods, each analysis with its phase.
    fn experiment(&self, store: &Store, experiment: &Value) -> String {
        let text = |object: &Value, key: &str| object.str_at(&[key]).unwrap_or("-").to_owned();
        let mut line = experiment.str_at(&["status", "phase"]).unwrap_or("-").to_owned();
        let message = self.named(experiment.str_at(&["status", "message"]).unwrap_or_default());
        if !message.is_empty() {
            let _ = write!(line, " \"{message}\"");
        }
        for version in experiment.list_at(&["status", "templateStatuses"]) {
            let name = format!("{}-{}", experiment.str_at(&["metadata", "name"]).unwrap_or("-"), text(version, "name"));
            let set = store.get("apps", "replicasets", NAMESPACE, &name);
            let wanted = set.and_then(|set| set.value.int_at(&["spec", "replicas"])).unwrap_or_default();
            let delayed = set.is_some_and(|set| set.annotation(annotation::SCALE_DOWN_DEADLINE).is_some());
            let (mark, available) =
                (if delayed { "~" } else { "" }, version.int_at(&["availableReplicas"]).unwrap_or(0));
            let _ = write!(line, "  {} {}{mark} {wanted}/{available}", text(version, "name"), text(version, "status"));
            if let Some(service) = version.str_at(&["serviceName"]) {
                let _ = write!(line, " →{}", self.named(service));
            }
        }
        for analysis in experiment.list_at(&["status", "analysisRuns"]) {
            let run = self.named(&text(analysis, "analysisRun"));
            let _ = write!(line, "  {} {run} {}", text(analysis, "name"), text(analysis, "phase"));
        }
        line
    }

    /// All lines.
    pub fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    fn meet(&mut self, store: &Store) {
        let mut sets: Vec<_> = store.list("apps", "replicasets", NAMESPACE).collect();
        sets.sort_by_key(|set| set.version());
        for set in sets {
            for key in [label::POD_TEMPLATE_HASH, "pod-template-hash"] {
                let hash = set.labels().and_then(|labels| labels.get(key)).and_then(Value::as_text);
                if let Some(hash) = hash.filter(|hash| !hash.is_empty() && !self.hashes.contains(hash)) {
                    self.hashes.push(hash.clone());
                }
            }
        }
    }

    fn named(&self, text: &str) -> String {
        let numbered = self.hashes.iter().enumerate();
        numbered.fold(text.to_owned(), |text, (index, hash)| text.replace(hash.as_str(), &format!("h{}", index + 1)))
    }

    fn state(&self, store: &Store, rollout: &Value) -> String {
        let text = |path: &[&str]| rollout.str_at(path).unwrap_or_default();
        let (stable, wanted) = (text(&["status", "stableRS"]), text(&["status", "currentPodHash"]));
        let mut line = text(&["status", "phase"]).to_owned();
        let message = self.named(text(&["status", "message"]));
        if !message.is_empty() {
            let _ = write!(line, " \"{message}\"");
        }
        let steps = rollout.list_at(&["spec", "strategy", "canary", "steps"]).len();
        if let Some(index) = rollout.int_at(&["status", "currentStepIndex"]) {
            let _ = write!(line, "  step {index}/{steps}");
        }
        for flag in ["abort", "promoteFull"] {
            if rollout.at(&["status", flag]).and_then(Value::as_bool) == Some(true) {
                let _ = write!(line, "  {flag}");
            }
        }
        let uid = text(&["metadata", "uid"]);
        for (index, hash) in self.hashes.iter().enumerate() {
            for set in store.list("apps", "replicasets", NAMESPACE) {
                let is_its = crate::kubernetes::object::controller(&set.value).as_deref() == Some(uid);
                if !is_its || set.value.str_at(&["metadata", "labels", label::POD_TEMPLATE_HASH]) != Some(hash) {
                    continue;
                }
                let number = |path: &[&str]| set.value.int_at(path).unwrap_or_default();
                let mut mark = String::new();
                mark.push_str(if hash == stable { "*" } else { "" });
                mark.push_str(if hash == wanted { "+" } else { "" });
                mark.push_str(if set.annotation(annotation::SCALE_DOWN_DEADLINE).is_some() { "~" } else { "" });
                let sizes = (number(&["spec", "replicas"]), number(&["status", "availableReplicas"]));
                let _ = write!(line, "  h{}{mark} {}/{}", index + 1, sizes.0, sizes.1);
            }
        }
        for service in store.list("", "services", NAMESPACE) {
            let path = ["spec", "selector", label::POD_TEMPLATE_HASH];
            let owner = service.annotation(annotation::MANAGED_BY);
            if let (Some(hash), Some(owner)) = (service.value.str_at(&path), owner)
                && owner == text(&["metadata", "name"])
            {
                let _ = write!(line, "  {}→{}", service.name(), self.named(hash));
            }
        }
        let weight = |of: &str| rollout.int_at(&["status", "canary", "weights", of, "weight"]);
        if let (Some(canary), Some(stable)) = (weight("canary"), weight("stable")) {
            let _ = write!(line, "  traffic {canary}:{stable}");
        }
        for run in store.list(crate::api::constants::GROUP, "analysisruns", NAMESPACE) {
            if crate::kubernetes::object::controller(&run.value).as_deref() == Some(uid) {
                let phase = run.value.str_at(&["status", "phase"]).filter(|phase| !phase.is_empty()).unwrap_or("-");
                let _ = write!(line, "  {} {phase}", self.named(&run.name()));
            }
        }
        line
    }
}

/// What an Ingress says to its controller, and the Services of its paths.
fn told(ingress: &Value) -> String {
    let annotations = ingress.at(&["metadata", "annotations"]).and_then(Value::as_map);
    let notes = annotations.into_iter().flat_map(|annotations| annotations.iter());
    let is_told = |key: &str| ["/actions.", "/conditions.", "/canary"].iter().any(|part| key.contains(part));
    let mut told: Vec<String> = notes
        .filter(|(key, _)| is_told(key))
        .map(|(key, text)| {
            let name = key.rsplit_once('/').map_or(key.as_str(), |(_, name)| name);
            format!("{name}={}", text.as_str().unwrap_or_default())
        })
        .collect();
    let rules = ingress.list_at(&["spec", "rules"]).iter();
    let paths = rules.flat_map(|rule| rule.list_at(&["http", "paths"]));
    told.extend(paths.map(|path| format!("→{}", path.str_at(&["backend", "service", "name"]).unwrap_or_default())));
    told.join("  ")
}

/// Conditions: `+` true, `-` false, `?` unknown; why, where the reason says more than the type.
fn conditions(rollout: &Value) -> String {
    let mut told: Vec<String> = Vec::new();
    for condition in rollout.list_at(&["status", "conditions"]) {
        let text = |key: &str| condition.str_at(&[key]).unwrap_or_default();
        // They follow the phase, and a rule holds them to it.
        if [READY, RECONCILING, STALLED].contains(&text("type")) {
            continue;
        }
        let sign = match text("status") {
            "True" => '+',
            "False" => '-',
            _ => '?',
        };
        let reason = if text("type") == "Progressing" { format!(" {}", text("reason")) } else { String::new() };
        told.push(format!("{sign}{}{reason}", text("type")));
    }
    told.sort_by(|a, b| a[1..].cmp(&b[1..]));
    told.join("  ")
}

/// How long the attempt takes: seconds since the start of the story.
fn duration(rollout: &Value, start: Timestamp) -> String {
    let Some(duration) = rollout.at(&["status", "duration"]) else { return String::new() };
    let since = |key: &str| {
        let time: Option<Timestamp> = duration.str_at(&[key]).and_then(|text| text.parse().ok());
        time.map(|time| time.duration_since(start).as_secs())
    };
    let mut line = String::new();
    for (word, key) in
        [("started", "rolloutStartedAt"), ("waits since", "manualPauseStartedAt"), ("finished", "finishedAt")]
    {
        if let Some(second) = since(key) {
            let _ = write!(line, "{word} {second} s  ");
        }
    }
    if let Some(waited) = duration.int_at(&["totalManualPauseDurationSeconds"]) {
        let _ = write!(line, "waited {waited} s  ");
    }
    line.push_str(duration.str_at(&["completionStatus"]).unwrap_or_default());
    line.trim_end().to_owned()
}
