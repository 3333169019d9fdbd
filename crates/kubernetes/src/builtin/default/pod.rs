//! Defaults that a Pod has and a pod template has not.

use std::collections::BTreeMap;

use super::rules::{default_to, each, text, within};
use crate::{
    schema::quantity::Quantity,
    value::{Map, Text, Value, intern},
};

/// Requests follow limits, container ports of the host's network are host ports, service links are on.
pub(super) fn pod(pod: &mut Map) {
    within(pod, "spec", |spec| {
        each(spec, "containers", request_limits);
        each(spec, "initContainers", request_limits);
        pod_resources(spec);
        default_to(spec, "enableServiceLinks", true);
        if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
            each(spec, "containers", host_ports);
            each(spec, "initContainers", host_ports);
        }
        // A grace period cannot be negative; only Pods are corrected.
        if spec.get("terminationGracePeriodSeconds").and_then(Value::as_int).is_some_and(|seconds| seconds < 0) {
            spec.insert(intern("terminationGracePeriodSeconds"), 1);
        }
    });
}

/// A limit is also a request, unless there is one.
fn request_limits(container: &mut Map) {
    within(container, "resources", |resources| {
        if let Some(Value::Map(limits)) = resources.get("limits").cloned() {
            fill_amounts(resources, "requests", limits.iter().map(|(name, amount)| (name.clone(), amount.clone())));
        }
    });
}

/// Adds the amounts that are not there.
fn fill_amounts(resources: &mut Map, list: &str, amounts: impl Iterator<Item = (Text, Value)>) {
    let old = resources.get(list).and_then(Value::as_map).cloned().unwrap_or_default();
    let mut new = old.clone();
    for (name, amount) in amounts {
        if !new.contains_key(&name) {
            new.insert(name, amount);
        }
    }
    if !new.is(&old) {
        resources.insert(intern(list), new);
    }
}

fn host_ports(container: &mut Map) {
    each(container, "ports", |port| {
        if port.get("hostPort").and_then(Value::as_int).unwrap_or(0) == 0
            && let Some(number) = port.get("containerPort").cloned()
            && number.as_int() != Some(0)
        {
            port.insert(intern("hostPort"), number);
        }
    });
}

/// Pod-level requests and limits, of a pod that has some, follow from those of its containers.
fn pod_resources(spec: &mut Map) {
    let Some(Value::Map(resources)) = spec.get("resources") else { return };
    let mut new = resources.clone();
    let is_empty = |resources: &Map, list: &str| resources.get(list).and_then(Value::as_map).is_none_or(Map::is_empty);
    if !is_empty(&new, "limits") || !is_empty(&new, "requests") {
        let requests = new.get("requests").cloned().unwrap_or_default();
        let huge =
            aggregate(spec, "limits").into_iter().filter(|(name, _)| is_huge(name) && requests.get(name).is_none());
        fill_amounts(&mut new, "limits", huge);
    }
    if let Some(Value::Map(limits)) = new.get("limits").filter(|_| !is_empty(&new, "limits")).cloned() {
        let shared = |name: &str| matches!(name, "cpu" | "memory");
        let of_containers = aggregate(spec, "requests").into_iter().filter(|(name, _)| shared(name));
        fill_amounts(&mut new, "requests", of_containers);
        let of_limits = limits.iter().filter(|(name, _)| shared(name) || is_huge(name));
        fill_amounts(&mut new, "requests", of_limits.map(|(name, amount)| (name.clone(), amount.clone())));
    }
    if !new.is(resources) {
        spec.insert(intern("resources"), new);
    }
}

fn is_huge(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// What all containers need together: the sum of those that run side by side, or the most an init container needs while
/// the sidecars before it run, whichever is more.
fn aggregate(spec: &Map, list: &str) -> Vec<(Text, Value)> {
    type Amounts = BTreeMap<Text, Quantity>;
    let amounts = |container: &Value| -> Amounts {
        let map = container.at(&["resources", list]).and_then(Value::as_map).cloned().unwrap_or_default();
        map.iter().filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?).ok()?))).collect()
    };
    let add = |to: &mut Amounts, more: &Amounts| {
        for (name, amount) in more {
            match to.get_mut(name) {
                Some(sum) => sum.add(amount),
                None => drop(to.insert(name.clone(), amount.clone())),
            }
        }
    };
    let most = |to: &mut Amounts, other: &Amounts| {
        for (name, amount) in other {
            if to.get(name).is_none_or(|found| amount > found) {
                to.insert(name.clone(), amount.clone());
            }
        }
    };
    let containers = |name: &str| spec.get(name).and_then(Value::as_list).unwrap_or_default();

    let (mut total, mut sidecars, mut starting) = (Amounts::new(), Amounts::new(), Amounts::new());
    for container in containers("containers") {
        add(&mut total, &amounts(container));
    }
    for container in containers("initContainers") {
        let mut needed = amounts(container);
        if container.as_map().is_some_and(|container| text(container, "restartPolicy") == "Always") {
            add(&mut total, &needed);
            add(&mut sidecars, &needed);
            needed = sidecars.clone();
        } else {
            add(&mut needed, &sidecars);
        }
        most(&mut starting, &needed);
    }
    most(&mut total, &starting);
    total.into_iter().map(|(name, amount)| (name, amount.to_string().into())).collect()
}
