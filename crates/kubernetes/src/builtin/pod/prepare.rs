//! What the server makes of a pod before it stores it: status, priority, tolerations, binding, eviction.

use jiff::Timestamp;

use crate::{
    builtin::{Context, admission, keep, resource},
    clock,
    status::Status,
    value::{Map, Value},
};

/// A new pod.
pub fn prepare_create(pod: &mut Value, context: &mut Context<'_>) -> Result<(), Status> {
    admission::prioritise(pod, context)?;
    admission::runtime_class(pod, context)?;
    tolerate_node_loss(pod);
    drop_unserved(pod, &["spec"]);
    let class = match pod.str_at(&["status", "qosClass"]) {
        Some(class) if !class.is_empty() => class.to_owned(),
        _ => quality_of_service(pod).to_owned(),
    };
    let mut status = Value::object();
    status.set_at(&["phase"], "Pending");
    status.set_at(&["qosClass"], class);
    pod.set_at(&["status"], status);
    if !pod.list_at(&["spec", "schedulingGates"]).is_empty() {
        let message = "Scheduling is blocked due to non-empty scheduling gates";
        set_condition(pod, "PodScheduled", "False", Some(("SchedulingGated", message)), context.now);
    }
    match_label_keys(pod);
    if pod.int_at(&["spec", "terminationGracePeriodSeconds"]).is_some_and(|seconds| seconds < 0) {
        pod.set_at(&["spec", "terminationGracePeriodSeconds"], 1);
    }
    Ok(())
}

/// A changed pod.
pub fn prepare_update(pod: &mut Value, old: &Value, context: &mut Context<'_>) {
    match context.subresource {
        "" => {
            keep(pod, old, &["status"]);
            if pod.get("spec").zip(old.get("spec")).is_some_and(|(new, old)| new.is(old)) {
                return;
            }
            for field in ["priority", "preemptionPolicy"] {
                if pod.at(&["spec", field]).is_none() {
                    keep(pod, old, &["spec", field]);
                }
            }
            tolerate_node_loss(pod);
            drop_unserved(pod, &["spec"]);
        }
        "status" => {
            keep(pod, old, &["spec"]);
            keep(pod, old, &["metadata", "deletionTimestamp"]);
            keep(pod, old, &["metadata", "ownerReferences"]);
            if pod.str_at(&["status", "qosClass"]).unwrap_or_default().is_empty() {
                keep(pod, old, &["status", "qosClass"]);
            }
            keep_observed_generations(pod, old);
        }
        "ephemeralcontainers" => keep_all_but(pod, old, |new, spec| {
            let containers = new.at(&["spec", "ephemeralContainers"]);
            set_or_remove(spec, "ephemeralContainers", containers);
        }),
        "resize" => keep_all_but(pod, old, resized),
        _ => {}
    }
}

/// Takes over only what `change` puts into the old pod's spec; labels, annotations and the rest stay as they were.
fn keep_all_but(pod: &mut Value, old: &Value, change: impl FnOnce(&Value, &mut Value)) {
    let mut spec = old.get("spec").cloned().unwrap_or_default();
    change(pod, &mut spec);
    let metadata = pod.get("metadata").cloned();
    *pod = old.clone();
    pod.set_at(&["spec"], spec);
    // The precondition of the request is still to be checked.
    if let Some(version) = metadata.as_ref().and_then(|metadata| metadata.get("resourceVersion")) {
        pod.set_at(&["metadata", "resourceVersion"], version);
    }
}

fn resized(new: &Value, spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        let wanted = new.list_at(&["spec", list]);
        let Some(containers) = spec.as_map_mut().and_then(|map| map.get_mut(list)).and_then(Value::as_list_mut) else {
            continue;
        };
        for (container, wanted) in containers.iter_mut().zip(wanted) {
            for field in ["resources", "resizePolicy"] {
                set_or_remove(container, field, wanted.get(field));
            }
        }
    }
}

fn set_or_remove(object: &mut Value, field: &str, value: Option<&Value>) {
    match value {
        Some(value) => object.set_at(&[field], value),
        None => _ = object.remove_at(&[field]),
    }
}

/// A writer that knows nothing of generations does not erase what others observed.
fn keep_observed_generations(pod: &mut Value, old: &Value) {
    let of = |value: &Value| value.int_at(&["observedGeneration"]).unwrap_or(0);
    let (Some(new_status), Some(old_status)) = (pod.get("status"), old.get("status")) else { return };
    if of(new_status) == 0 && of(old_status) != 0 {
        keep(pod, old, &["status", "observedGeneration"]);
    }
    let before = old.list_at(&["status", "conditions"]);
    if before.iter().all(|condition| of(condition) == 0) {
        return;
    }
    let mut conditions = pod.list_at(&["status", "conditions"]).to_vec();
    for condition in conditions.iter_mut().filter(|condition| of(condition) == 0) {
        let same = |old: &&Value| old.str_at(&["type"]) == condition.str_at(&["type"]);
        if let Some(generation) = before.iter().find(same).map(of).filter(|generation| *generation != 0) {
            condition.set_at(&["observedGeneration"], generation);
        }
    }
    if !conditions.is_empty() {
        pod.set_at(&["status", "conditions"], conditions);
    }
}

/// Takes away the fields of a pod spec that the real server knows but does not serve, their features being off.
pub fn drop_unserved(object: &mut Value, spec: &[&str]) {
    let Some(pod) = object.at(spec) else { return };
    let mut changed = None;
    if pod.get("workloadRef").is_some() {
        changed.get_or_insert_with(|| pod.clone()).remove_at(&["workloadRef"]);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let signals = |container: &Value| container.at(&["lifecycle", "stopSignal"]).is_some();
        if !pod.list_at(&[list]).iter().any(signals) {
            continue;
        }
        let mut containers = pod.list_at(&[list]).to_vec();
        for container in &mut containers {
            container.remove_at(&["lifecycle", "stopSignal"]);
            if container.get("lifecycle").and_then(Value::as_map).is_some_and(Map::is_empty) {
                container.remove_at(&["lifecycle"]);
            }
        }
        changed.get_or_insert_with(|| pod.clone()).set_at(&[list], containers);
    }
    let unserved = ["clusterTrustBundle", "podCertificate"];
    let projects = |volume: &Value| {
        let sources = volume.list_at(&["projected", "sources"]);
        sources.iter().any(|source| unserved.iter().any(|kind| source.get(kind).is_some()))
    };
    if pod.list_at(&["volumes"]).iter().any(projects) {
        let mut volumes = pod.list_at(&["volumes"]).to_vec();
        for volume in volumes.iter_mut().filter(|volume| projects(volume)) {
            let mut sources = volume.list_at(&["projected", "sources"]).to_vec();
            for source in &mut sources {
                unserved.iter().for_each(|kind| _ = source.remove_at(&[kind]));
            }
            volume.set_at(&["projected", "sources"], sources);
        }
        changed.get_or_insert_with(|| pod.clone()).set_at(&["volumes"], volumes);
    }
    if let Some(changed) = changed {
        object.set_at(spec, changed);
    }
}

/// Pods stay five minutes on a node that is not ready or out of reach, unless they say otherwise.
fn tolerate_node_loss(pod: &mut Value) {
    let missing = |taint: &&str| {
        !pod.list_at(&["spec", "tolerations"]).iter().any(|toleration| {
            let key = toleration.str_at(&["key"]).unwrap_or_default();
            let effect = toleration.str_at(&["effect"]).unwrap_or_default();
            (key == *taint || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        })
    };
    let taints = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let missing: Vec<&str> = taints.into_iter().filter(missing).collect();
    if missing.is_empty() {
        return;
    }
    let mut tolerations = pod.list_at(&["spec", "tolerations"]).to_vec();
    tolerations.extend(missing.into_iter().map(
        |taint| crate::value!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
    ));
    pod.set_at(&["spec", "tolerations"], tolerations);
}

/// `BestEffort`, `Burstable` or `Guaranteed`, by the requests and limits of cpu and memory.
fn quality_of_service(pod: &Value) -> &'static str {
    const COUNTED: [&str; 2] = ["cpu", "memory"];
    let (mut requests, mut limits) = ([0_i128; 2], [0_i128; 2]);
    let mut guaranteed = true;
    let mut add = |resources: Option<&Value>, every_limit: bool| {
        for (i, name) in COUNTED.into_iter().enumerate() {
            let of = |list: &str| resources.and_then(|r| r.at(&[list, name])).map_or(0, resource::amount).max(0);
            requests[i] += of("requests");
            limits[i] += of("limits");
            guaranteed &= of("limits") > 0 || !every_limit;
        }
    };
    match pod.at(&["spec", "resources"]) {
        Some(resources) => {
            let limited = resources.get("limits").and_then(Value::as_map).is_some_and(|limits| !limits.is_empty());
            add(Some(resources), limited);
        }
        None => {
            for list in ["containers", "initContainers"] {
                pod.list_at(&["spec", list]).iter().for_each(|container| add(container.get("resources"), true));
            }
        }
    }
    let nothing = [0, 0];
    if requests == nothing && limits == nothing {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Folds the pod's own labels into selectors that ask for them by key.
fn match_label_keys(pod: &mut Value) {
    let labels = pod.at(&["metadata", "labels"]).cloned().unwrap_or_default();
    let constraints = pod.list_at(&["spec", "topologySpreadConstraints"]);
    if constraints.iter().any(|constraint| !constraint.list_at(&["matchLabelKeys"]).is_empty()) {
        let mut constraints = constraints.to_vec();
        constraints.iter_mut().for_each(|constraint| fold_keys(constraint, &labels));
        pod.set_at(&["spec", "topologySpreadConstraints"], constraints);
    }
    for near in ["podAffinity", "podAntiAffinity"] {
        let required = ["spec", "affinity", near, "requiredDuringSchedulingIgnoredDuringExecution"];
        let mut terms = pod.list_at(&required).to_vec();
        if !terms.is_empty() {
            terms.iter_mut().for_each(|term| fold_keys(term, &labels));
            pod.set_at(&required, terms);
        }
        let preferred = ["spec", "affinity", near, "preferredDuringSchedulingIgnoredDuringExecution"];
        let mut terms = pod.list_at(&preferred).to_vec();
        if terms.is_empty() {
            continue;
        }
        for term in &mut terms {
            if let Some(term) = term.as_map_mut().and_then(|map| map.get_mut("podAffinityTerm")) {
                fold_keys(term, &labels);
            }
        }
        pod.set_at(&preferred, terms);
    }
}

fn fold_keys(term: &mut Value, labels: &Value) {
    if term.get("labelSelector").is_none() {
        return;
    }
    for (list, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term.list_at(&[list]).to_vec();
        for key in keys.iter().filter_map(Value::as_str) {
            let Some(held) = labels.get(key) else { continue };
            let mut requirements = term.list_at(&["labelSelector", "matchExpressions"]).to_vec();
            requirements.push(crate::value!({"key": key, "operator": operator, "values": [held.as_str()]}));
            term.set_at(&["labelSelector", "matchExpressions"], requirements);
        }
    }
}

/// Puts a pod on a node, as `pods/binding` does. The error is that of the real server.
pub fn bind(
    pod: &Value,
    node: &str,
    annotations: Option<&Map>,
    labels: Option<&Map>,
    now: Timestamp,
) -> Result<Value, Status> {
    let name = pod.str_at(&["metadata", "name"]).unwrap_or_default();
    let conflict = |why: String| Err(Status::conflict("", "pods/binding", name, &why));
    if pod.at(&["metadata", "deletionTimestamp"]).is_some() {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if let Some(node) = pod.str_at(&["spec", "nodeName"]).filter(|node| !node.is_empty()) {
        return conflict(format!("pod {name} is already assigned to node {node:?}"));
    }
    if !pod.list_at(&["spec", "schedulingGates"]).is_empty() {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let mut bound = pod.clone();
    bound.set_at(&["spec", "nodeName"], node);
    bound.remove_at(&["status", "nominatedNodeName"]);
    for (field, added) in [("annotations", annotations), ("labels", labels)] {
        for (key, value) in added.map(Map::iter).into_iter().flatten() {
            bound.set_at(&["metadata", field, key], value);
        }
    }
    set_condition(&mut bound, "PodScheduled", "True", None, now);
    Ok(bound)
}

/// Notes on a pod that it is about to be evicted, as `pods/eviction` does before it deletes the pod.
pub fn evict_condition(pod: &Value, now: Timestamp) -> Value {
    let mut noted = pod.clone();
    let why = ("EvictionByEvictionAPI", "Eviction API: evicting");
    set_condition(&mut noted, "DisruptionTarget", "True", Some(why), now);
    noted
}

/// Sets a condition of a pod; its transition time changes with its status only.
fn set_condition(pod: &mut Value, kind: &str, status: &str, why: Option<(&str, &str)>, now: Timestamp) {
    let mut conditions = pod.list_at(&["status", "conditions"]).to_vec();
    let mut condition = crate::value!({"type": kind, "status": status, "lastProbeTime": null});
    if let Some((reason, message)) = why {
        condition.set_at(&["reason"], reason);
        condition.set_at(&["message"], message);
    }
    let old = conditions.iter_mut().find(|condition| condition.str_at(&["type"]) == Some(kind));
    let since = old.as_ref().filter(|old| old.str_at(&["status"]) == Some(status));
    let since = since.and_then(|old| old.get("lastTransitionTime").cloned());
    condition.set_at(&["lastTransitionTime"], since.unwrap_or_else(|| Value::Str(clock::rfc3339(now))));
    match old {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
    pod.set_at(&["status", "conditions"], conditions);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    #[test]
    fn quality_of_service_follows_requests_and_limits() {
        let container = |resources: serde_json::Value| serde_json::json!({"name": "a", "resources": resources});
        let full =
            serde_json::json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1Gi"}});
        let rows = [
            (value!({"containers": [container(serde_json::json!({}))]}), "BestEffort"),
            (value!({"containers": [container(full.clone())]}), "Guaranteed"),
            (value!({"containers": [container(full.clone()), container(serde_json::json!({}))]}), "Burstable"),
            (value!({"containers": [container(serde_json::json!({"requests": {"cpu": "1"}}))]}), "Burstable"),
            (
                value!({"containers": [container(serde_json::json!({"requests": {"example.com/gpu": "1"}}))]}),
                "BestEffort",
            ),
            (value!({"containers": [container(serde_json::json!({}))], "resources": full}), "Guaranteed"),
        ];
        for (spec, class) in rows {
            let pod = Value::Map([("spec", spec)].into_iter().collect());
            assert_eq!(quality_of_service(&pod), class, "{pod}");
        }
    }

    #[test]
    fn a_pod_is_bound_once() {
        let pod = value!({"metadata": {"name": "a"}, "spec": {}, "status": {"nominatedNodeName": "m"}});
        let labels = value!({"zone": "z"});
        let bound = bind(&pod, "n", None, labels.as_map(), now()).unwrap();
        assert_eq!(
            bound,
            value!({
                "metadata": {"name": "a", "labels": {"zone": "z"}},
                "spec": {"nodeName": "n"},
                "status": {"conditions": [{"type": "PodScheduled", "status": "True", "lastProbeTime": null,
                           "lastTransitionTime": "2026-01-02T03:04:05Z"}]},
            })
        );
        let refusal = |pod: Value| bind(&pod, "m", None, None, now()).unwrap_err().message;
        let cannot = "Operation cannot be fulfilled on pods/binding \"a\":";
        assert_eq!(refusal(bound), format!("{cannot} pod a is already assigned to node \"n\""));
        assert_eq!(
            refusal(value!({"metadata": {"name": "a"}, "spec": {"schedulingGates": [{"name": "g"}]}})),
            format!("{cannot} pod a has non-empty .spec.schedulingGates")
        );
        assert_eq!(
            refusal(value!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}})),
            format!("{cannot} pod a is being deleted, cannot be assigned to a host")
        );
    }

    #[test]
    fn an_eviction_is_noted_once() {
        let pod = value!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let noted = evict_condition(&pod, now());
        assert_eq!(
            noted.list_at(&["status", "conditions"])[1],
            value!({"type": "DisruptionTarget", "status": "True", "lastProbeTime": null, "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting", "lastTransitionTime": "2026-01-02T03:04:05Z"})
        );
        let later = "2026-01-03T00:00:00Z".parse().unwrap();
        assert_eq!(evict_condition(&noted, later), noted, "the condition holds since it was first noted");
    }

    #[test]
    fn fields_of_features_that_are_off_are_dropped() {
        let mut pod = value!({"spec": {
            "workloadRef": {"name": "w"},
            "containers": [{"lifecycle": {"stopSignal": "SIGTERM"}}, {"lifecycle": {"stopSignal": "SIGTERM", "preStop": {}}}],
            "volumes": [{"projected": {"sources": [{"podCertificate": {}, "secret": {}}]}}],
        }});
        drop_unserved(&mut pod, &["spec"]);
        assert_eq!(
            pod,
            value!({"spec": {"containers": [{}, {"lifecycle": {"preStop": {}}}],
                    "volumes": [{"projected": {"sources": [{"secret": {}}]}}]}})
        );
        let before = pod.clone();
        drop_unserved(&mut pod, &["spec"]);
        assert!(pod.is(&before), "nothing to drop, nothing copied");
    }
}
