//! HorizontalPodAutoscalers.

use super::{field::Field, resource};
use crate::{names, value::Value};

/// An autoscaler, new or changed. Of autoscaling/v1 there is less to say.
pub(super) fn validate(autoscaler: &Field, old: Option<&Value>) {
    let spec = autoscaler.child("spec");
    let before = old.and_then(|old| old.get("spec"));
    if before.is_some_and(|before| before.is(spec.value)) {
        return;
    }
    let (least, most) = (spec.child("minReplicas"), spec.child("maxReplicas"));
    let floor = if before.and_then(|before| before.int_at(&["minReplicas"])) == Some(0) { 0 } else { 1 };
    if least.is_set() && least.int() < floor {
        least.invalid(format!("must be greater than or equal to {floor}"));
    }
    if most.int() < 1 {
        most.refuse(most.int(), "must be greater than 0");
    }
    if least.is_set() && most.int() < least.int() {
        most.refuse(most.int(), "must be greater than or equal to `minReplicas`");
    }
    let target = spec.child("scaleTargetRef");
    let same = |field| before.and_then(|before| before.at(&["scaleTargetRef", field])) == target.value.get(field);
    let version = match () {
        () if before.is_some() && same("apiVersion") && same("kind") => Version::Any,
        () if target.child("kind").text() == "ReplicationController" => Version::Valid,
        () => Version::WithGroup,
    };
    reference(&target, version);
    metrics(&spec.child("metrics"), least.value.as_int());
    // The one metric of autoscaling/v1, blamed where autoscaling/v2 would have it.
    let utilization = spec.child("targetCPUUtilizationPercentage");
    if utilization.is_set() && utilization.int() < 1 {
        let at = spec.child("metrics");
        let at = at.index(0);
        let at = at.child("resource");
        at.child("target").child("averageUtilization").refuse(utilization.value, "must be greater than 0");
    }
    for rules in ["scaleUp", "scaleDown"] {
        scaling_rules(&spec.child("behavior").child(rules));
    }
}

/// What the `apiVersion` of a reference may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Any,
    Valid,
    WithGroup,
}

fn reference(at: &Field, version: Version) {
    at.child("kind").check_required(names::path_segment);
    at.child("name").check_required(names::path_segment);
    let given = at.child("apiVersion");
    if version == Version::Any {
        return;
    }
    if given.text().matches('/').count() > 1 {
        given.invalid(format!("unexpected GroupVersion string: {}", given.text()));
    } else if version == Version::WithGroup && !given.text().contains('/') {
        given.refuse(given.text(), "apiVersion must specify API group");
    }
}

const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

fn metrics(at: &Field, least: Option<i64>) {
    at.items().for_each(|metric| one_metric(&metric));
    let scales_from_zero = |metric: &Value| matches!(metric.str_at(&["type"]), Some("Object" | "External"));
    if least == Some(0) && !at.list().iter().any(scales_from_zero) {
        at.forbidden("must specify at least one Object or External metric to support scaling to zero replicas");
    }
}

fn one_metric(at: &Field) {
    let kind = at.child("type");
    if kind.text().is_empty() {
        kind.required("must specify a metric source type");
    }
    kind.one_of(&TYPES);
    let present: Vec<&str> = SOURCES.iter().map(|(_, name)| *name).filter(|name| at.child(name).is_set()).collect();
    if let Some(first) = present.first() {
        source(&at.child(first), first);
    }
    let expected = SOURCES.iter().find(|(wanted, _)| *wanted == kind.text()).map(|(_, name)| *name);
    match expected {
        Some(name) if !at.child(name).is_set() => {
            at.child(name).required("must populate information for the given metric source");
        }
        Some(_) => {}
        None => kind.not_supported(&TYPES),
    }
    if present.len() != 1 {
        for name in present.into_iter().filter(|name| Some(*name) != expected) {
            at.child(name).forbidden("must populate the given metric source only");
        }
    }
}

fn source(at: &Field, kind: &str) {
    let at_target = at.child("target");
    let (value, average, utilization) =
        (at_target.child("value"), at_target.child("averageValue"), at_target.child("averageUtilization"));
    match kind {
        "object" => reference(&at.child("describedObject"), Version::Valid),
        "resource" | "containerResource" => {
            let name = at.child("name");
            if name.text().is_empty() {
                name.required("must specify a resource name");
            } else if kind == "containerResource" {
                resource::container_name(&name, name.text());
            }
        }
        _ => {}
    }
    if kind == "containerResource" {
        let container = at.child("container");
        if container.text().is_empty() {
            container.required("must specify a container");
        } else {
            container.check(names::dns_label);
        }
    }
    if matches!(kind, "object" | "external" | "pods") {
        let metric = at.child("metric");
        let name = metric.child("name");
        if name.text().is_empty() {
            name.required("must specify a metric name")
        } else {
            name.check(names::path_segment)
        }
    }
    target(&at_target);
    match kind {
        "object" if !value.is_set() && !average.is_set() => {
            average.required("must set either a target value or averageValue");
        }
        "external" if !value.is_set() && !average.is_set() => {
            average.required("must set either a target value for metric or a per-pod target");
        }
        "external" if value.is_set() && average.is_set() => {
            value.forbidden("may not set both a target value for metric and a per-pod target");
        }
        "pods" if !average.is_set() => average.required("must specify a positive target averageValue"),
        "resource" | "containerResource" => match (utilization.is_set(), average.is_set()) {
            (false, false) => utilization.required("must set either a target raw value or a target utilization"),
            (true, true) => average.forbidden("may not set both a target raw value and a target utilization"),
            (true, false) | (false, true) => {}
        },
        _ => {}
    }
}

fn target(at: &Field) {
    let kind = at.child("type");
    if kind.text().is_empty() {
        kind.required("must specify a metric target type");
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind.text()) {
        kind.refuse(kind.text(), "must be either Utilization, Value, or AverageValue");
    }
    for amount in [at.child("value"), at.child("averageValue")] {
        if amount.is_set() && resource::amount(amount.value) <= 0 {
            amount.invalid("must be positive");
        }
    }
    let utilization = at.child("averageUtilization");
    if utilization.is_set() && utilization.int() < 1 {
        utilization.invalid("must be greater than 0");
    }
}

fn scaling_rules(at: &Field) {
    if !at.is_set() {
        return;
    }
    let window = at.child("stabilizationWindowSeconds");
    if window.int() < 0 {
        window.invalid("must be greater than or equal to zero");
    }
    if window.int() > 3600 {
        window.invalid("must be less than or equal to 3600");
    }
    at.child("selectPolicy").one_of_given(&["Disabled", "Max", "Min"]);
    let policies = at.child("policies");
    if policies.len() == 0 {
        policies.required("must specify at least one Policy");
    }
    for policy in policies.items() {
        policy.child("type").one_of(&["Percent", "Pods"]);
        policy.child("value").positive();
        let period = policy.child("periodSeconds");
        period.positive();
        if period.int() > 1800 {
            period.invalid("must be less than or equal to 1800");
        }
    }
    let tolerance = at.child("tolerance");
    if resource::amount(tolerance.value) < 0 {
        tolerance.invalid("must be greater than or equal to 0");
    }
}

/// A write to `/status`.
pub(super) fn validate_status(autoscaler: &Field) {
    let status = autoscaler.child("status");
    status.child("currentReplicas").non_negative();
    status.child("desiredReplicas").non_negative();
}
