//! Rules for changing a pod.

use super::{annotations, placement, whole};
use crate::{
    builtin::{diff, field::Field, gostruct, keep, net},
    names,
    value::Value,
};

/// A write to the pod itself or, by `subresource`, to some of its containers.
pub fn validate_update(pod: &Field, old: &Value, subresource: &str) {
    let spec = pod.child("spec");
    let old_spec = old.get("spec").unwrap_or(&Value::Null);
    let metadata = pod.child("metadata");
    let annotated = metadata.child("annotations");
    if spec.value.is(old_spec) {
        annotations(&annotated, &spec);
    } else {
        whole(pod);
    }
    annotation_changes(&annotated, old.at(&["metadata", "annotations"]));
    annotations(&annotated, &spec);
    match subresource {
        "ephemeralcontainers" => ephemeral_containers(&spec, old_spec),
        "" if !spec.value.is(old_spec) => spec_changes(&spec, old_spec),
        _ => {}
    }
}

fn annotation_changes(at: &Field, old: Option<&Value>) {
    let old = old.unwrap_or(&Value::Null);
    if at.value.is(old) {
        return;
    }
    let guarded = |key: &str| match key {
        "kubernetes.io/config.mirror" => Some("mirror pod annotation"),
        key if key.starts_with("container.apparmor.security.beta.kubernetes.io/") => Some("AppArmor annotations"),
        _ => None,
    };
    for (key, value) in old.as_map().map(|map| map.iter()).into_iter().flatten() {
        if let Some(what) = guarded(key).filter(|_| at.value.get(key) != Some(value)) {
            at.key(key).forbidden(format!("may not remove or update {what}"));
        }
    }
    for (key, value) in at.entries() {
        if let Some(what) = guarded(key).filter(|_| old.get(key).is_none()) {
            value.forbidden(format!("may not add {what}"));
        }
    }
}

fn spec_changes(spec: &Field, old: &Value) {
    for list in ["containers", "initContainers"] {
        let at = spec.child(list);
        if at.len() != old.list_at(&[list]).len() {
            return at.forbidden("pod updates may not add or remove containers");
        }
        for container in at.items() {
            let image = container.child("image");
            if image.text().is_empty() {
                image.required("");
            }
            if image.text().trim() != image.text() {
                image.invalid("must not have leading or trailing whitespace");
            }
        }
    }
    let deadline = spec.child("activeDeadlineSeconds");
    let old_deadline = old.int_at(&["activeDeadlineSeconds"]);
    if deadline.is_set() {
        let problems = names::in_range(deadline.int(), 0, i64::from(i32::MAX));
        if !problems.is_empty() {
            return problems.into_iter().for_each(|message| deadline.invalid(message));
        }
        if old_deadline.is_some_and(|old| old < deadline.int()) {
            return deadline.invalid("must be less than or equal to previous value");
        }
    } else if old_deadline.is_some() {
        deadline.invalid("must not update from a positive integer to nil value");
    }
    added_tolerations(&spec.child("tolerations"), old.list_at(&["tolerations"]));
    deleted_gates(&spec.child("schedulingGates"), old.list_at(&["schedulingGates"]));
    let allowed = with_free_fields_of(spec.value, old);
    if allowed != *old {
        let fields = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                      `spec.tolerations` (only additions to existing tolerations),\
                      `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        let diff = spec_diff("PodSpec", old, &allowed);
        spec.forbidden(format!("pod updates may not change fields other than {fields}\n{diff}"));
    }
}

fn added_tolerations(at: &Field, old: &[Value]) {
    let but_for_time = |a: &Value, b: &Value| {
        ["key", "operator", "value", "effect"]
            .iter()
            .all(|field| a.str_at(&[field]).unwrap_or_default() == b.str_at(&[field]).unwrap_or_default())
    };
    if !old.iter().all(|old| at.list().iter().any(|new| but_for_time(old, new))) {
        return at.forbidden("existing toleration can not be modified except its tolerationSeconds");
    }
    placement::tolerations(at);
}

fn deleted_gates(at: &Field, old: &[Value]) {
    for gate in at.items() {
        let name = gate.child("name");
        if !old.iter().any(|old| old.str_at(&["name"]).unwrap_or_default() == name.text()) {
            name.forbidden(format!("only deletion is allowed, but found new scheduling gate '{}'", name.text()));
        }
    }
}

/// The new spec with every field that may change set back: what is left of the change is forbidden.
fn with_free_fields_of(new: &Value, old: &Value) -> Value {
    let mut set_back = new.clone();
    for list in ["containers", "initContainers"] {
        let mut containers = new.list_at(&[list]).to_vec();
        for (container, old) in containers.iter_mut().zip(old.list_at(&[list])) {
            keep(container, old, &["image"]);
        }
        if !containers.is_empty() {
            set_back.set_at(&[list], containers);
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(&mut set_back, old, &[field]);
    }
    let grace = "terminationGracePeriodSeconds";
    if old.int_at(&[grace]).is_some_and(|old| old < 0) && new.int_at(&[grace]) == Some(1) {
        keep(&mut set_back, old, &[grace]);
    }
    if !old.list_at(&["schedulingGates"]).is_empty() {
        keep(&mut set_back, old, &["nodeSelector"]);
        keep(&mut set_back, old, &["affinity", "nodeAffinity"]);
    }
    set_back
}

/// The change from one value to another, as Go prints them.
fn spec_diff(name: &str, old: &Value, new: &Value) -> String {
    diff::unified(&gostruct::pretty(name, old), &gostruct::pretty(name, new))
}

fn ephemeral_containers(spec: &Field, old: &Value) {
    let at = spec.child("ephemeralContainers");
    for old in old.list_at(&["ephemeralContainers"]) {
        let name = old.str_at(&["name"]).unwrap_or_default();
        match at.list().iter().find(|new| new.str_at(&["name"]).unwrap_or_default() == name) {
            None => at.forbidden(format!("existing ephemeral containers {name:?} may not be removed\n")),
            Some(new) if new != old => {
                let diff = spec_diff("EphemeralContainer", old, new);
                at.forbidden(format!("existing ephemeral containers {name:?} may not be changed\n{diff}"));
            }
            Some(_) => {}
        }
    }
}

/// A write to `pods/status`.
pub fn validate_status(pod: &Field, old: &Value) {
    let (metadata, spec, status) = (pod.child("metadata"), pod.child("spec"), pod.child("status"));
    let annotated = metadata.child("annotations");
    annotation_changes(&annotated, old.at(&["metadata", "annotations"]));
    annotations(&annotated, &spec);
    for condition in status.child("conditions").items() {
        let generation = condition.child("observedGeneration");
        if generation.int() < 0 {
            generation.invalid("must be a non-negative integer");
        }
        let kind = condition.child("type").text();
        if !["PodScheduled", "Ready", "Initialized"].contains(&kind) {
            names::label_key(kind).into_iter().for_each(|message| condition.child("Type").refuse(kind, message));
        }
    }
    let nominated = status.child("nominatedNodeName");
    let old_nominated = old.str_at(&["status", "nominatedNodeName"]).unwrap_or_default();
    if nominated.text() != old_nominated && !nominated.text().is_empty() {
        nominated.check(names::dns_subdomain);
        if !old.str_at(&["spec", "nodeName"]).unwrap_or_default().is_empty() {
            nominated.forbidden("may not be set on pods that are already bound to a node");
        }
    }
    let generation = status.child("observedGeneration");
    if generation.int() < 0 {
        generation.invalid("must be a non-negative integer");
    }
    status.child("qosClass").immutable(old.at(&["status", "qosClass"]));
    for list in ["containerStatuses", "initContainerStatuses"] {
        restarts(&status.child(list), old, list);
    }
    addresses(&status, old, "podIPs", "podIP");
    addresses(&status, old, "hostIPs", "hostIP");
}

/// A container that ended stays ended, unless its restart policy says otherwise.
fn restarts(at: &Field, old: &Value, list: &str) {
    let specs = old.list_at(&["spec", if list == "containerStatuses" { "containers" } else { "initContainers" }]);
    for (i, before) in old.list_at(&["status", list]).iter().enumerate() {
        let Some(ended) = before.at(&["state", "terminated"]) else { continue };
        let name = before.str_at(&["name"]);
        let Some(now) = at.list().iter().find(|now| now.str_at(&["name"]) == name) else { continue };
        if now.at(&["state", "terminated"]).is_some() {
            continue;
        }
        let spec = specs.iter().find(|spec| spec.str_at(&["name"]) == name);
        let code = ended.int_at(&["exitCode"]).unwrap_or(0);
        if !spec.is_some_and(|spec| may_restart(spec, old, code)) {
            at.index(i).child("state").forbidden("may not be transitioned to non-terminated state");
        }
    }
}

fn may_restart(container: &Value, pod: &Value, code: i64) -> bool {
    for rule in container.list_at(&["restartPolicyRules"]) {
        let listed = rule.list_at(&["exitCodes", "values"]).contains(&Value::Int(code));
        let wanted = rule.str_at(&["exitCodes", "operator"]) == Some("In");
        if listed == wanted && rule.str_at(&["action"]) == Some("Restart") {
            return true;
        }
    }
    match container.str_at(&["restartPolicy"]).or(pod.str_at(&["spec", "restartPolicy"])) {
        Some("Never") => false,
        Some("OnFailure") => code != 0,
        _ => true,
    }
}

fn addresses(status: &Field, old: &Value, list: &str, single: &str) {
    let at = status.child(list);
    if at.len() == 0 {
        return;
    }
    let first = at.index(0);
    let first = first.child("ip");
    if list == "hostIPs" && status.child(single).text() != first.text() {
        first.invalid("must be equal to `hostIP`");
    }
    let before: Vec<Value> = old.list_at(&["status", list]).iter().filter_map(|ip| ip.get("ip").cloned()).collect();
    for ip in at.items() {
        let text = ip.child("ip").value;
        net::ip(&ip.with(text), &before);
    }
    let families: Vec<bool> = at.list().iter().map(|ip| ip.str_at(&["ip"]).unwrap_or_default().contains(':')).collect();
    if families.len() > 2 || (families.len() == 2 && families[0] == families[1]) {
        at.invalid("may specify no more than one IP for each IP family");
    }
}
