//! What admission does to objects by looking at others: priorities, runtime and default classes.

use super::Context;
use crate::{status::Status, value::Value};

/// The classes every cluster has.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

fn name(object: &Value) -> &str {
    object.str_at(&["metadata", "name"]).unwrap_or_default()
}

fn forbidden(pod: &Value, why: &str) -> Status {
    Status::forbidden("", "pods", name(pod), why)
}

/// A new pod's priority is that of its class, or of the class for pods that name none.
pub(super) fn prioritise(pod: &mut Value, context: &Context<'_>) -> Result<(), Status> {
    let named = pod.str_at(&["spec", "priorityClassName"]).unwrap_or_default().to_owned();
    let classes = (context.look)("scheduling.k8s.io", "priorityclasses");
    let class = match named.as_str() {
        "" => default_priority(&classes),
        named => classes.iter().find(|class| name(class) == named),
    };
    let system = SYSTEM_CLASSES.iter().find(|(known, _)| *known == named).map(|(_, value)| *value);
    if class.is_none() && system.is_none() && !named.is_empty() {
        return Err(forbidden(pod, &format!("no PriorityClass with name {named} was found")));
    }
    let priority = class.map_or(system.unwrap_or(0), |class| class.int_at(&["value"]).unwrap_or(0));
    let policy = class.map_or(Some("PreemptLowerPriority"), |class| class.str_at(&["preemptionPolicy"]));
    if let Some(class) = class.filter(|_| named.is_empty()) {
        pod.set_at(&["spec", "priorityClassName"], name(class));
    }
    let given = pod.int_at(&["spec", "priority"]).filter(|given| *given != priority);
    if let Some(given) = given {
        return Err(overruled(pod, &format!("integer value of priority ({given})"), priority));
    }
    pod.set_at(&["spec", "priority"], priority);
    let Some(policy) = policy else { return Ok(()) };
    if let Some(given) = pod.str_at(&["spec", "preemptionPolicy"]).filter(|given| *given != policy) {
        return Err(overruled(pod, &format!("string value of PreemptionPolicy ({given})"), policy));
    }
    pod.set_at(&["spec", "preemptionPolicy"], policy);
    Ok(())
}

fn overruled(pod: &Value, given: &str, computed: impl std::fmt::Display) -> Status {
    let why = format!(
        "the {given} must not be provided in pod spec; \
         priority admission controller computed {computed} from the given PriorityClass name"
    );
    forbidden(pod, &why)
}

fn default_priority(classes: &[Value]) -> Option<&Value> {
    let defaults = classes.iter().filter(|class| class.get("globalDefault") == Some(&Value::Bool(true)));
    defaults.min_by_key(|class| class.int_at(&["value"]).unwrap_or(0))
}

/// There is one PriorityClass for pods that name none.
pub(super) fn only_default(class: &Value, context: &Context<'_>) -> Result<(), Status> {
    if class.get("globalDefault") != Some(&Value::Bool(true)) {
        return Ok(());
    }
    let classes = (context.look)("scheduling.k8s.io", "priorityclasses");
    match default_priority(&classes).map(name).filter(|other| *other != name(class)) {
        None => Ok(()),
        Some(other) => {
            let why = format!("PriorityClass {other} is already marked as default. Only one default can exist");
            Err(Status::forbidden("scheduling.k8s.io", "priorityclasses", name(class), &why))
        }
    }
}

/// A new pod with a runtime class runs where, and at the cost, its class says.
pub(super) fn runtime_class(pod: &mut Value, context: &Context<'_>) -> Result<(), Status> {
    let Some(named) = pod.str_at(&["spec", "runtimeClassName"]).map(str::to_owned) else { return Ok(()) };
    let classes = (context.look)("node.k8s.io", "runtimeclasses");
    let Some(class) = classes.iter().find(|class| name(class) == named) else {
        return Err(forbidden(pod, &format!("pod rejected: RuntimeClass {named:?} not found")));
    };
    if let Some(overhead) = class.at(&["overhead", "podFixed"]) {
        if pod.at(&["spec", "overhead"]).is_some_and(|given| given != overhead) {
            let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
            return Err(forbidden(pod, why));
        }
        pod.set_at(&["spec", "overhead"], overhead);
    }
    let scheduling = class.at(&["scheduling", "nodeSelector"]).and_then(Value::as_map);
    for (key, value) in scheduling.map(|map| map.iter()).into_iter().flatten() {
        let given = pod.at(&["spec", "nodeSelector", key]);
        if let Some(given) = given.filter(|given| *given != value) {
            let (given, value) = (given.as_str().unwrap_or_default(), value.as_str().unwrap_or_default());
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {given}"
            );
            return Err(forbidden(pod, &why));
        }
        pod.set_at(&["spec", "nodeSelector", key], value);
    }
    Ok(())
}

/// A new claim that names no class gets the newest default one.
pub(super) fn default_storage_class(claim: &mut Value, context: &Context<'_>) {
    let annotation = ["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"];
    if claim.at(&["spec", "storageClassName"]).is_some() || claim.at(&annotation).is_some() {
        return;
    }
    let classes = (context.look)("storage.k8s.io", "storageclasses");
    if let Some(class) = newest_default(&classes, "storageclass.kubernetes.io/is-default-class") {
        claim.set_at(&["spec", "storageClassName"], class);
    }
}

/// A new Ingress that names no class gets the newest default one.
pub(super) fn default_ingress_class(ingress: &mut Value, context: &Context<'_>) {
    let annotation = ["metadata", "annotations", "kubernetes.io/ingress.class"];
    if ingress.at(&["spec", "ingressClassName"]).is_some() || ingress.at(&annotation).is_some() {
        return;
    }
    let classes = (context.look)("networking.k8s.io", "ingressclasses");
    if let Some(class) = newest_default(&classes, "ingressclass.kubernetes.io/is-default-class") {
        ingress.set_at(&["spec", "ingressClassName"], class);
    }
}

fn newest_default<'c>(classes: &'c [Value], annotation: &str) -> Option<&'c str> {
    let defaults =
        classes.iter().filter(|class| class.str_at(&["metadata", "annotations", annotation]) == Some("true"));
    let age = |class: &&Value| class.str_at(&["metadata", "creationTimestamp"]).unwrap_or_default().to_owned();
    let newest = defaults.max_by(|a, b| age(a).cmp(&age(b)).then_with(|| name(b).cmp(name(a))));
    newest.map(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin::Addresses, value};

    #[track_caller]
    fn check(objects: &[Value], act: impl Fn(&Context<'_>) -> Result<Value, Status>, outcome: Result<Value, &str>) {
        let (addresses, look) = (Addresses::default(), |_: &str, _: &str| objects.to_vec());
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let context = Context { now, uid: "u".into(), subresource: "", seed: 0, addresses: &addresses, look: &look };
        let ours = act(&context).map_err(|status| status.message);
        assert_eq!(ours, outcome.map_err(str::to_owned));
    }

    #[test]
    fn a_pod_takes_its_priority_from_a_class() {
        let class =
            value!({"metadata": {"name": "high"}, "value": 9, "globalDefault": true, "preemptionPolicy": "Never"});
        let judge = |pod: Value| {
            move |context: &Context<'_>| {
                let mut pod = pod.clone();
                prioritise(&mut pod, context).map(|()| pod.get("spec").cloned().unwrap_or_default())
            }
        };
        let pod = |spec: Value| value!({"metadata": {"name": "a"}, "spec": serde_json::Value::from(&spec)});
        check(&[], judge(pod(value!({}))), Ok(value!({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"})));
        check(
            std::slice::from_ref(&class),
            judge(pod(value!({}))),
            Ok(value!({"priority": 9, "preemptionPolicy": "Never", "priorityClassName": "high"})),
        );
        check(
            std::slice::from_ref(&class),
            judge(pod(value!({"priorityClassName": "high", "priority": 3}))),
            Err("pods \"a\" is forbidden: the integer value of priority (3) must not be provided in pod spec; \
                 priority admission controller computed 9 from the given PriorityClass name"),
        );
        check(
            &[],
            judge(pod(value!({"priorityClassName": "low"}))),
            Err("pods \"a\" is forbidden: no PriorityClass with name low was found"),
        );
    }

    #[test]
    fn the_newest_default_class_is_taken() {
        let class = |name: &str, age: &str, default: &str| {
            value!({"metadata": {"name": name, "creationTimestamp": age,
                    "annotations": {"storageclass.kubernetes.io/is-default-class": default}}})
        };
        let classes = [
            class("old", "2026-01-01T00:00:00Z", "true"),
            class("new", "2026-01-02T00:00:00Z", "true"),
            class("newer", "2026-01-03T00:00:00Z", "false"),
        ];
        let judge = |claim: Value| {
            move |context: &Context<'_>| {
                let mut claim = claim.clone();
                default_storage_class(&mut claim, context);
                Ok(claim)
            }
        };
        check(&classes, judge(value!({})), Ok(value!({"spec": {"storageClassName": "new"}})));
        check(&[], judge(value!({})), Ok(value!({})));
        let named = value!({"spec": {"storageClassName": ""}});
        check(&classes, judge(named.clone()), Ok(named));
    }
}
