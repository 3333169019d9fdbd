//! From what was seen to sequences that can be compared: per object and field the values in their order, and the events.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

const HASH: &str = "rollouts-pod-template-hash";
const REVISION: &str = "rollout.argoproj.io/revision";
const COUNTS: [&str; 5] = ["replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "HPAReplicas"];

/// One change of an object; `None` if it is gone.
pub struct Seen {
    pub kind: String,
    pub name: String,
    pub object: Option<Value>,
}

/// Where two sequences part, if they do. Of the Rollout's counts, which depend on the speed of pods, only the first and
/// the last are compared, of other sequences the first `limit`.
pub fn difference(field: &str, argo: &Value, ours: &Value, limit: usize) -> Option<String> {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (mut argo, mut ours) = (items(argo), items(ours));
    if field.starts_with("Rollout/") && field.ends_with("~turns") {
        let ends = |items: &[Value]| items.first().into_iter().chain(items.last()).cloned().collect::<Vec<_>>();
        (argo, ours) = (ends(&argo), ends(&ours));
    }
    argo.truncate(limit);
    ours.truncate(limit);
    if argo.len() == ours.len() && argo.iter().zip(&ours).all(|(argo, ours)| is_same(argo, ours)) {
        return None;
    }
    let at = argo.iter().zip(&ours).take_while(|(argo, ours)| is_same(argo, ours)).count();
    let show = |items: &[Value]| {
        let shown: Vec<String> = items.iter().skip(at.saturating_sub(1)).take(4).map(Value::to_string).collect();
        format!("… {}", shown.join(" → "))
    };
    Some(format!("at {at} of {}\n    argo {}\n    ours {}", argo.len(), show(&argo), show(&ours)))
}

/// Whether two values mean the same. Where Argo Rollouts names the first problem of a specification, we name all.
fn is_same(argo: &Value, ours: &Value) -> bool {
    let goes_on = match (argo.as_str(), ours.as_str()) {
        (Some(argo), Some(ours)) => argo.contains("InvalidSpec: ") && ours.starts_with(&format!("{argo}; ")),
        _ => false,
    };
    argo == ours || goes_on
}

/// How many events the reference has for the Rollout.
pub fn event_count(stable: &BTreeMap<String, Value>) -> usize {
    let events = stable.iter().filter(|(field, _)| field.starts_with("events Rollout/"));
    events.map(|(_, events)| events.as_array().map_or(0, Vec::len)).sum()
}

/// The sequences of a play.
pub fn build(
    seen: &[Seen],
    events: &[(String, String)],
    told_of_runs: &[(String, String)],
    told_of_experiments: &[(String, String)],
) -> BTreeMap<String, Value> {
    let names = Names::of(seen);
    let mut sequences: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
    let mut last: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    let (mut progress, mut scale, mut sizes) = (Vec::new(), Vec::new(), BTreeMap::new());
    let (mut traffic, mut both, mut selectors) = (Vec::new(), Vec::new(), serde_json::Map::new());
    for change in seen {
        let name = format!("{}/{}", change.kind, names.text(&change.name));
        let before = last.get(&name).cloned().unwrap_or_default();
        let mut now = match &change.object {
            Some(object) => fields(&names, &change.kind, object),
            None => before.clone(),
        };
        now.insert("exists".into(), change.object.is_some().into());
        let keys: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
        for key in keys {
            let first = if before.is_empty() || key == "exists" { Vec::new() } else { vec![Value::Null] };
            let values = sequences.entry((name.clone(), key.clone())).or_insert(first);
            values.push(now.get(key).cloned().unwrap_or(Value::Null));
        }
        if let (Some(object), "Rollout") = (&change.object, change.kind.as_str()) {
            progress.push(Value::String(progress_line(&names, &name, object)));
        }
        if change.kind == "ReplicaSet" {
            match &change.object {
                Some(object) => drop(sizes.insert(names.text(&change.name), object["spec"]["replicas"].clone())),
                None => drop(sizes.remove(&names.text(&change.name))),
            }
        }
        if ["ReplicaSet", "Service", "Ingress", "TrafficSplit", "VirtualService"].contains(&change.kind.as_str()) {
            let line: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
            let line = Value::String(line.join(" "));
            if change.kind == "Service" {
                let selector = change.object.as_ref().map(|object| names.value(&object["spec"]["selector"]));
                selectors.insert(name.clone(), selector.unwrap_or_default());
            }
            if ["Ingress", "TrafficSplit", "VirtualService"].contains(&change.kind.as_str()) {
                let told = now.iter().filter(|(key, _)| *key == "spec" || key.starts_with("annotation"));
                let told: serde_json::Map<_, _> = told.map(|(key, value)| (key.clone(), value.clone())).collect();
                selectors.insert(name.clone(), told.into());
            }
            traffic.push(Value::Object(selectors.clone()));
            both.push(json!([line, selectors]));
            scale.push(line);
        }
        last.insert(name, now);
    }
    let mut out = BTreeMap::new();
    for ((name, key), values) in sequences {
        let values = if key.ends_with("~turns") { turns(&values) } else { collapse(values) };
        let values = if key == "condition Progressing" { calm(values) } else { values };
        out.insert(format!("{name} {key}"), Value::Array(values));
    }
    for (kind, events) in [("Rollout", events), ("Experiment", told_of_experiments)] {
        let told: BTreeSet<&String> = events.iter().map(|(name, _)| name).collect();
        for name in told {
            let own: Vec<&String> = events.iter().filter(|(of, _)| of == name).map(|(_, event)| event).collect();
            add_events(&names, &format!("{kind}/{}", names.text(name)), &own, &mut out);
        }
    }
    for (run, event) in told_of_runs {
        let events = out.entry(format!("events AnalysisRun/{}", names.text(run))).or_insert_with(|| json!([]));
        if let Some(events) = events.as_array_mut() {
            events.push(names.text(event).into());
        }
    }
    out.insert("line progress".into(), Value::Array(collapse(progress)));
    if !scale.is_empty() {
        out.insert("line scale".into(), Value::Array(collapse(scale)));
    }
    if !selectors.is_empty() {
        out.insert("line traffic".into(), Value::Array(collapse(traffic)));
        out.insert("line scale+traffic".into(), Value::Array(collapse(both)));
    }
    out
}

fn progress_line(names: &Names, name: &str, object: &Value) -> String {
    let status = &object["status"];
    let text = |key: &str| names.text(status[key].as_str().unwrap_or_default());
    let word = |value: &Value| match value {
        Value::Null => "None".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut line = format!(
        "{name} {} step={} current={} stable={}",
        word(&status["phase"]),
        word(&status["currentStepIndex"]),
        text("currentPodHash"),
        text("stableRS")
    );
    if status["abort"] == true {
        line.push_str(" abort");
    }
    if status["promoteFull"] == true {
        line.push_str(" full");
    }
    for pause in status["pauseConditions"].as_array().into_iter().flatten() {
        line.push_str(&format!(" {}", pause["reason"].as_str().unwrap_or_default()));
    }
    line
}

fn add_events(names: &Names, whom: &str, events: &[&String], out: &mut BTreeMap<String, Value>) {
    let (mut rest, mut scaled): (Vec<Value>, BTreeMap<String, Vec<[String; 3]>>) = Default::default();
    for event in events {
        let event = names.text(event);
        let Some(told) = event.strip_prefix("Normal ScalingReplicaSet: Scaled ") else {
            rest.push(event.into());
            continue;
        };
        let words: Vec<&str> = told.split_whitespace().collect();
        let way = words[0].to_owned();
        let (from, to) = (words[words.len() - 3].to_owned(), words[words.len() - 1].to_owned());
        let chain = scaled.entry(words[2].to_owned()).or_default();
        match chain.last_mut() {
            Some(step) if step[0] == way && step[2] == from => step[2] = to,
            _ => chain.push([way, from, to]),
        }
    }
    out.insert(format!("events {whom}"), Value::Array(rest));
    for (set, chain) in scaled {
        let chain = chain.iter().map(|[way, from, to]| Value::String(format!("{way} from {from} to {to}"))).collect();
        out.insert(format!("events {whom} scaling {set}"), Value::Array(chain));
    }
}

/// What is accidental, by names that mean the same in every play.
struct Names(Vec<(String, String)>);

impl Names {
    fn of(seen: &[Seen]) -> Names {
        let mut names: Vec<(String, String)> = Vec::new();
        let rollouts: BTreeSet<&String> =
            seen.iter().filter(|change| change.kind == "Rollout").map(|change| &change.name).collect();
        for change in seen.iter().filter(|change| change.kind == "ReplicaSet") {
            let Some(object) = &change.object else { continue };
            let owner = &object["metadata"]["ownerReferences"][0]["kind"];
            let hash = object["metadata"]["labels"][HASH].as_str().unwrap_or_default();
            let revision = object["metadata"]["annotations"][REVISION].as_str();
            if let (true, false, Some(revision)) = (owner == "Rollout", hash.is_empty(), revision)
                && !names.iter().any(|(known, _)| known == hash)
            {
                let owner = object["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default();
                let prefix = if rollouts.len() > 1 { format!("{owner}/") } else { String::new() };
                let mut name = format!("rev:{prefix}{revision}");
                while names.iter().any(|(_, known)| *known == name) {
                    name.push('b');
                }
                names.push((hash.to_owned(), name));
            }
        }
        for change in seen.iter().filter(|change| change.kind == "ReplicaSet") {
            let Some(object) = &change.object else { continue };
            let hash = object["metadata"]["labels"]["pod-template-hash"].as_str().unwrap_or_default();
            if !hash.is_empty() && !names.iter().any(|(known, _)| known == hash) {
                let count = names.iter().filter(|(_, name)| name.starts_with("dep:")).count();
                names.push((hash.to_owned(), format!("dep:{}", count + 1)));
            }
        }
        for change in seen.iter().filter(|change| change.kind == "ReplicaSet") {
            let Some(object) = &change.object else { continue };
            let hash = object["metadata"]["labels"][HASH].as_str().unwrap_or_default();
            if !hash.is_empty() && !names.iter().any(|(known, _)| known == hash) {
                let name = names.iter().fold(change.name.clone(), |text, (from, to)| text.replace(from, to));
                names.push((hash.to_owned(), format!("hash:{name}")));
            }
        }
        let mut runs = BTreeMap::new();
        for change in seen.iter().filter(|change| change.kind == "AnalysisRun") {
            let uid = change.object.as_ref().and_then(|object| object["metadata"]["uid"].as_str());
            runs.extend(uid.map(|uid| (uid.to_owned(), change.name.clone())));
        }
        for (uid, run) in runs {
            let run = names.iter().fold(run, |text, (from, to)| text.replace(from, to));
            names.push((uid, format!("uid:AnalysisRun/{run}")));
        }
        names.push(("default".into(), "NS".into()));
        Names(names)
    }

    fn text(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if text.starts_with(['{', '[']) && text.len() > 2 => {
                let parsed = serde_json::from_str::<Value>(text);
                parsed.map_or_else(|_| self.text(text).into(), |parsed| json!({"(json)": self.value(&parsed)}))
            }
            Value::String(text) if is_time(text) => "<time>".into(),
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => map.iter().map(|(key, item)| (self.text(key), self.value(item))).collect(),
            other => other.clone(),
        }
    }
}

fn is_time(text: &str) -> bool {
    text.len() == 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T'
}

/// The fields of an object whose changes are recorded.
fn fields(names: &Names, kind: &str, object: &Value) -> BTreeMap<String, Value> {
    let mut fields = BTreeMap::new();
    let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    if let Some(owner) = metadata["ownerReferences"].as_array().and_then(|owners| owners.first()) {
        let text = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
        fields.insert("owner".into(), format!("{}/{}", text("kind"), names.text(&text("name"))).into());
    }
    if !metadata["deletionTimestamp"].is_null() {
        fields.insert("deleting".into(), true.into());
    }
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        if key.ends_with("scale-down-deadline") {
            fields.insert(format!("annotation {key}"), "<time>".into());
        } else if !key.ends_with("workload-generation")
            && (kind != "Deployment" || !key.contains("deployment.kubernetes.io"))
        {
            fields.insert(format!("annotation {key}"), names.value(value));
        }
    }
    if !["Rollout", "Deployment"].contains(&kind) || !metadata["labels"].is_null() {
        let labels = if metadata["labels"].is_null() { json!({}) } else { names.value(&metadata["labels"]) };
        fields.insert("labels".into(), labels);
    }
    match kind {
        "Rollout" => rollout_fields(names, spec, status, &mut fields),
        "ReplicaSet" => {
            fields.insert("spec.replicas".into(), spec["replicas"].clone());
            fields.insert("spec.replicas~turns".into(), spec["replicas"].clone());
            let template = &spec["template"]["metadata"];
            let kept = ["labels", "annotations"].into_iter().filter(|key| !template[*key].is_null());
            let kept: serde_json::Map<_, _> = kept.map(|key| (key.to_owned(), names.value(&template[key]))).collect();
            fields.insert("template.metadata".into(), kept.into());
            fields.insert("minReadySeconds".into(), spec["minReadySeconds"].clone());
        }
        "Deployment" => drop(fields.insert("spec.replicas~turns".into(), spec["replicas"].clone())),
        "TrafficSplit" | "VirtualService" => drop(fields.insert("spec".into(), names.value(spec))),
        "Ingress" => {
            fields.insert("spec".into(), names.value(spec));
            fields.insert("class".into(), spec["ingressClassName"].clone());
        }
        "AnalysisRun" => {
            fields.insert("spec.args".into(), names.value(&spec["args"]));
            fields.insert("spec.terminate".into(), spec["terminate"].clone());
            fields.insert("status.phase".into(), status["phase"].clone());
            let message = names.text(status["message"].as_str().unwrap_or_default());
            fields.insert("status.message".into(), message.into());
            for result in status["metricResults"].as_array().into_iter().flatten() {
                let name = result["name"].as_str().unwrap_or_default();
                fields.insert(format!("metric {name}.phase"), result["phase"].clone());
                fields.insert(format!("metric {name}.dryRun"), result["dryRun"].clone());
            }
        }
        "Experiment" => experiment_fields(names, spec, status, &mut fields),
        "Job" => drop(fields.insert("created".into(), true.into())),
        _ => drop(fields.insert("spec.selector".into(), names.value(&spec["selector"]))),
    }
    fields
}

fn experiment_fields(names: &Names, spec: &Value, status: &Value, fields: &mut BTreeMap<String, Value>) {
    let text = |object: &Value, key: &str| names.text(object[key].as_str().unwrap_or_default());
    fields.insert("spec.terminate".into(), spec["terminate"].clone());
    fields.insert("status.phase".into(), status["phase"].clone());
    fields.insert("status.message".into(), text(status, "message").into());
    fields.insert("status.availableAt".into(), (!status["availableAt"].is_null()).into());
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let told =
            format!("{} {}: {}", text(condition, "status"), text(condition, "reason"), text(condition, "message"));
        fields.insert(format!("condition {}", text(condition, "type")), told.into());
    }
    for version in status["templateStatuses"].as_array().into_iter().flatten() {
        let name = text(version, "name");
        fields.insert(format!("template {name}.status"), version["status"].clone());
        fields.insert(format!("template {name}.serviceName"), text(version, "serviceName").into());
        fields.insert(format!("template {name}.replicas~turns"), version["replicas"].clone());
    }
    for analysis in status["analysisRuns"].as_array().into_iter().flatten() {
        let told = format!("{} {}", text(analysis, "analysisRun"), text(analysis, "phase"));
        fields.insert(format!("analysis {}", text(analysis, "name")), told.into());
    }
}

fn rollout_fields(names: &Names, spec: &Value, status: &Value, fields: &mut BTreeMap<String, Value>) {
    fields.insert("spec.replicas".into(), spec["replicas"].clone());
    fields.insert("spec.paused".into(), spec["paused"].clone());
    fields.insert("spec.restartAt".into(), (!spec["restartAt"].is_null()).into());
    let skipped = ["observedGeneration", "workloadObservedGeneration", "conditions", "message", "pauseConditions"];
    for (key, value) in status.as_object().into_iter().flatten() {
        if !skipped.contains(&key.as_str()) && !COUNTS.contains(&key.as_str()) {
            flatten(&format!("status.{key}"), &names.value(value), fields);
        }
    }
    for key in COUNTS {
        let count = if status[key].is_null() { json!(0) } else { status[key].clone() };
        fields.insert(format!("status.{key}~turns"), count);
    }
    let pauses = status["pauseConditions"].as_array().into_iter().flatten().map(|pause| pause["reason"].clone());
    fields.insert("status.pauseConditions".into(), pauses.collect());
    for condition in status["conditions"].as_array().into_iter().flatten() {
        // The words of kstatus, which Argo Rollouts does not say; docs/differences.md has them.
        if ["Ready", "Reconciling", "Stalled"].iter().any(|ours| condition["type"] == *ours) {
            continue;
        }
        let text = |key: &str| condition[key].as_str().unwrap_or_default();
        let told = format!("{} {}: {}", text("status"), text("reason"), text("message"));
        fields.insert(format!("condition {}", text("type")), names.text(&told).into());
    }
    let phase = status["phase"].as_str().unwrap_or_default();
    if ["Paused", "Degraded", "Healthy"].contains(&phase) {
        let message = names.text(status["message"].as_str().unwrap_or_default());
        fields.insert("status.message (not progressing)".into(), format!("{phase}: {message}").into());
    }
}

fn flatten(path: &str, value: &Value, out: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, item)| flatten(&format!("{path}.{key}"), item, out));
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            items.iter().enumerate().for_each(|(index, item)| flatten(&format!("{path}[{index}]"), item, out));
        }
        _ => drop(out.insert(path.to_owned(), value.clone())),
    }
}

fn collapse(values: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for value in values {
        if out.last() != Some(&value) {
            out.push(value);
        }
    }
    out
}

/// First, last and the turning points of a number's path.
fn turns(values: &[Value]) -> Vec<Value> {
    let mut out: Vec<i64> = Vec::new();
    for value in values.iter().map(|value| value.as_i64().unwrap_or_default()) {
        match out.as_slice() {
            [.., last] if *last == value => {}
            [.., before, last] if (last - before) * (value - last) > 0 => *out.last_mut().unwrap() = value,
            _ => out.push(value),
        }
    }
    out.into_iter().map(Value::from).collect()
}

/// While paused, each change of a pod swings the condition to ReplicaSetUpdated and back.
fn calm(values: Vec<Value>) -> Vec<Value> {
    let starts = |value: &Value, with: &str| value.as_str().is_some_and(|text| text.starts_with(with));
    let mut out: Vec<Value> = Vec::new();
    for value in values {
        match out.as_slice() {
            [.., before, last]
                if starts(&value, "Unknown RolloutPaused")
                    && starts(last, "True ReplicaSetUpdated")
                    && *before == value =>
            {
                out.pop();
            }
            _ => out.push(value),
        }
    }
    out
}
