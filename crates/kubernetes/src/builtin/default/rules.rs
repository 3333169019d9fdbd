//! Defaults that depend on neighbouring fields, and what passing through the server's internal version changes.
//!
//! One function per Go type; each sees the struct as the client sent it and changes only what must change.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{Rule, image, pod};
use crate::{
    convert,
    schema::Schema,
    value,
    value::{Map, Value, intern},
};

/// The rule of a type, if it has one.
pub(super) fn of(schema: &Schema) -> Option<Rule> {
    let name = schema.name.as_deref()?.strip_prefix("io.k8s.api.")?;
    Some(match name {
        "core.v1.Container" | "core.v1.EphemeralContainer" => container,
        "core.v1.ImageVolumeSource" => image_volume,
        "core.v1.LimitRangeItem" => limit_range_item,
        "core.v1.Namespace" => namespace,
        "core.v1.NodeSpec" => node_spec,
        "core.v1.NodeStatus" => node_status,
        "core.v1.PersistentVolume" => persistent_volume,
        "core.v1.Pod" => |value| {
            drop_old_annotations(value);
            pod::pod(value);
        },
        "core.v1.PodSpec" => pod_spec,
        "core.v1.PodStatus" => pod_status,
        "core.v1.PodTemplateSpec" => drop_old_annotations,
        "core.v1.ReplicationController" => replication_controller,
        "core.v1.Secret" => secret,
        "core.v1.Service" => service,
        "core.v1.Volume" => volume,
        "apps.v1.DaemonSet" => daemon_set,
        "apps.v1.DaemonSetUpdateStrategy" => daemon_set_strategy,
        "apps.v1.DeploymentStrategy" => deployment_strategy,
        "apps.v1.StatefulSetSpec" => stateful_set_spec,
        "apps.v1.StatefulSetUpdateStrategy" => stateful_set_strategy,
        "autoscaling.v1.HorizontalPodAutoscaler" => convert::settle_autoscaler,
        "autoscaling.v2.HorizontalPodAutoscalerBehavior" => scaling_behavior,
        "batch.v1.Job" => job,
        "networking.v1.NetworkPolicySpec" => network_policy_spec,
        "rbac.v1.Subject" => subject,
        "resource.v1.DeviceSubRequest" | "resource.v1.ExactDeviceRequest" => device_request,
        _ => return None,
    })
}

/// The string in a field; empty if there is none.
pub(super) fn text<'a>(map: &'a Map, name: &str) -> &'a str {
    map.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Sets a field that is absent.
pub(super) fn default_to(map: &mut Map, name: &str, value: impl Into<Value>) {
    if !map.contains_key(name) {
        map.insert(intern(name), value);
    }
}

/// Changes the object in a field, if there is one.
pub(super) fn within(map: &mut Map, name: &str, change: impl FnOnce(&mut Map)) {
    let Some(Value::Map(old)) = map.get(name) else { return };
    let mut new = old.clone();
    change(&mut new);
    if !new.is(old) {
        map.insert(intern(name), new);
    }
}

/// Changes the objects of the list in a field.
pub(super) fn each(map: &mut Map, name: &str, change: impl Fn(&mut Map)) {
    let Some(Value::List(items)) = map.get(name) else { return };
    let mut new: Option<Vec<Value>> = None;
    for (i, item) in items.iter().enumerate() {
        let Value::Map(old) = item else { continue };
        let mut changed = old.clone();
        change(&mut changed);
        if !changed.is(old) {
            new.get_or_insert_with(|| items.to_vec())[i] = changed.into();
        }
    }
    if let Some(new) = new {
        map.insert(intern(name), new);
    }
}

/// The amounts in a field; none if it is absent.
fn amounts(map: &Map, name: &str) -> Map {
    map.get(name).and_then(Value::as_map).cloned().unwrap_or_default()
}

fn container(container: &mut Map) {
    if text(container, "imagePullPolicy").is_empty() {
        let policy = image::pull_policy(text(container, "image"));
        container.insert(intern("imagePullPolicy"), policy);
    }
}

fn image_volume(source: &mut Map) {
    if text(source, "pullPolicy").is_empty() {
        let policy = image::pull_policy(text(source, "reference"));
        source.insert(intern("pullPolicy"), policy);
    }
}

/// A volume without a source is an empty directory.
fn volume(volume: &mut Map) {
    if !volume.keys().any(|key| *key != "name") {
        volume.insert(intern("emptyDir"), Map::default());
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`: both are shown, the new one wins.
fn pod_spec(spec: &mut Map) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    let settled = ["serviceAccount", "serviceAccountName"].iter().all(|field| text(spec, field) == name);
    if !settled {
        let name = intern(name);
        spec.insert(intern("serviceAccount"), &name);
        spec.insert(intern("serviceAccountName"), &name);
    }
}

/// Init containers were annotations once.
fn drop_old_annotations(object: &mut Map) {
    const OLD: [&str; 4] = [
        "pod.beta.kubernetes.io/init-containers",
        "pod.alpha.kubernetes.io/init-containers",
        "pod.beta.kubernetes.io/init-container-statuses",
        "pod.alpha.kubernetes.io/init-container-statuses",
    ];
    let has_old = |annotations: &Map| OLD.iter().any(|key| annotations.contains_key(key));
    let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations")?.as_map());
    if annotations.is_some_and(has_old) {
        within(object, "metadata", |metadata| {
            within(metadata, "annotations", |annotations| annotations.retain(|key, _| !OLD.contains(&key.as_str())));
            if metadata.get("annotations").and_then(Value::as_map).is_some_and(Map::is_empty) {
                metadata.remove("annotations");
            }
        });
    }
}

/// One address and a list of addresses tell the same: a single one that differs from the list's first wins.
fn first_of_list(
    map: &mut Map,
    single: &str,
    list: &str,
    first: impl Fn(&Value) -> &str,
    item: impl Fn(&str) -> Value,
) {
    let one = text(map, single);
    let head = map.get(list).and_then(Value::as_list).and_then(|items| items.first()).map(first);
    match (one, head) {
        ("", Some(head)) if !head.is_empty() => {
            let head = intern(head);
            map.insert(intern(single), &head);
        }
        ("", _) => {}
        (one, Some(head)) if one == head => {}
        (one, _) => {
            let items = Value::list([item(one)]);
            map.insert(intern(list), items);
        }
    }
}

fn pod_status(status: &mut Map) {
    first_of_list(status, "podIP", "podIPs", |ip| ip.str_at(&["ip"]).unwrap_or_default(), |ip| value!({"ip": ip}));
}

fn node_spec(spec: &mut Map) {
    first_of_list(spec, "podCIDR", "podCIDRs", |range| range.as_str().unwrap_or_default(), |range| range.into());
}

fn node_status(status: &mut Map) {
    if let Some(capacity) = status.get("capacity").cloned() {
        default_to(status, "allocatable", capacity);
    }
}

/// Defaults of a container's limits follow from its bounds, those of its requests from both.
fn limit_range_item(item: &mut Map) {
    if text(item, "type") != "Container" {
        return;
    }
    let fill = |item: &mut Map, to: &str, from: &str| {
        let (mut new, old) = (amounts(item, to), amounts(item, to));
        for (name, amount) in amounts(item, from).iter() {
            default_to(&mut new, name, amount);
        }
        if !new.is(&old) {
            item.insert(intern(to), new);
        }
    };
    fill(item, "default", "max");
    fill(item, "defaultRequest", "default");
    fill(item, "defaultRequest", "min");
}

/// Every namespace is labelled with its name.
fn namespace(namespace: &mut Map) {
    const LABEL: &str = "kubernetes.io/metadata.name";
    within(namespace, "metadata", |metadata| {
        let name = text(metadata, "name");
        if !name.is_empty() && metadata.get("labels").and_then(|labels| labels.get(LABEL)?.as_str()) != Some(name) {
            let name = intern(name);
            let mut labels = amounts(metadata, "labels");
            labels.insert(intern(LABEL), &name);
            metadata.insert(intern("labels"), labels);
        }
    });
}

fn persistent_volume(volume: &mut Map) {
    within(volume, "spec", |spec| {
        if text(spec, "persistentVolumeReclaimPolicy").is_empty() {
            spec.insert(intern("persistentVolumeReclaimPolicy"), "Retain");
        }
        default_to(spec, "volumeMode", "Filesystem");
    });
}

/// The labels of the template are those of the controller, and what it selects by.
fn replication_controller(controller: &mut Map) {
    let spec = controller.get("spec");
    let labels = spec.and_then(|spec| spec.at(&["template", "metadata", "labels"])?.as_map()).cloned();
    let Some(labels) = labels.filter(|labels| !labels.is_empty()) else { return };
    within(controller, "spec", |spec| {
        if amounts(spec, "selector").is_empty() {
            spec.insert(intern("selector"), labels.clone());
        }
    });
    label_like(controller, labels);
}

/// Labels an object that has no labels.
fn label_like(object: &mut Map, labels: Map) {
    within(object, "metadata", |metadata| {
        if amounts(metadata, "labels").is_empty() {
            metadata.insert(intern("labels"), labels);
        }
    });
}

/// `stringData` is written and never read: it becomes `data`.
fn secret(secret: &mut Map) {
    let Some(Value::Map(plain)) = secret.remove("stringData") else { return };
    let mut data = amounts(secret, "data");
    for (key, value) in plain.iter() {
        data.insert(key.clone(), STANDARD.encode(value.as_str().unwrap_or_default()));
    }
    if !data.is_empty() {
        secret.insert(intern("data"), data);
    }
}

fn service(service: &mut Map) {
    let kind = match service.get("spec").and_then(|spec| spec.str_at(&["type"])).unwrap_or_default() {
        "" => "ClusterIP",
        kind => kind,
    };
    let (cluster, node, balanced) = (kind == "ClusterIP", kind == "NodePort", kind == "LoadBalancer");
    within(service, "spec", |spec| {
        match text(spec, "sessionAffinity") {
            "" | "None" if spec.contains_key("sessionAffinityConfig") => drop(spec.remove("sessionAffinityConfig")),
            "ClientIP" if timeout(spec).is_none() => {
                spec.insert(intern("sessionAffinityConfig"), value!({"clientIP": {"timeoutSeconds": 10800}}));
            }
            _ => {}
        }
        each(spec, "ports", |port| {
            let unset = match port.get("targetPort") {
                None | Some(Value::Null) => true,
                Some(Value::Int(n)) => *n == 0,
                Some(target) => *target == "",
            };
            if let Some(number) =
                port.get("port").filter(|number| unset && port.get("targetPort") != Some(number)).cloned()
            {
                port.insert(intern("targetPort"), number);
            }
        });
        let external = spec.get("externalIPs").and_then(Value::as_list).is_some_and(|ips| !ips.is_empty());
        if (node || balanced || cluster && external) && text(spec, "externalTrafficPolicy").is_empty() {
            spec.insert(intern("externalTrafficPolicy"), "Cluster");
        }
        if cluster || node || balanced {
            default_to(spec, "internalTrafficPolicy", "Cluster");
        }
        if balanced {
            default_to(spec, "allocateLoadBalancerNodePorts", true);
        }
    });
    if balanced {
        within(service, "status", |status| {
            within(status, "loadBalancer", |balancer| {
                each(balancer, "ingress", |ingress| {
                    if !text(ingress, "ip").is_empty() {
                        default_to(ingress, "ipMode", "VIP");
                    }
                });
            });
        });
    }
}

fn timeout(spec: &Map) -> Option<&Value> {
    spec.get("sessionAffinityConfig")?.at(&["clientIP", "timeoutSeconds"])
}

/// The type of a strategy, `RollingUpdate` if none is named.
fn strategy_type(strategy: &mut Map) -> bool {
    if text(strategy, "type").is_empty() {
        strategy.insert(intern("type"), "RollingUpdate");
    }
    text(strategy, "type") == "RollingUpdate"
}

fn rolling_update(strategy: &mut Map, unavailable: Value, surge: Value) {
    let rolling = strategy_type(strategy);
    if rolling {
        default_to(strategy, "rollingUpdate", Map::default());
    }
    // Parameters of another strategy are zero; validation refuses them.
    within(strategy, "rollingUpdate", |parameters| {
        default_to(parameters, "maxUnavailable", if rolling { unavailable } else { 0.into() });
        default_to(parameters, "maxSurge", if rolling { surge } else { 0.into() });
    });
}

fn deployment_strategy(strategy: &mut Map) {
    rolling_update(strategy, "25%".into(), "25%".into());
}

fn daemon_set_strategy(strategy: &mut Map) {
    rolling_update(strategy, 1.into(), 0.into());
}

/// Unlike the others: a type that is named without parameters gets none.
fn stateful_set_strategy(strategy: &mut Map) {
    let named = !text(strategy, "type").is_empty();
    strategy_type(strategy);
    if !named {
        default_to(strategy, "rollingUpdate", Map::default());
    }
    within(strategy, "rollingUpdate", |parameters| default_to(parameters, "partition", 0));
}

/// The internal version counts templates in a field, this one in an annotation that is always there.
fn daemon_set(set: &mut Map) {
    const COUNT: &str = "deprecated.daemonset.template.generation";
    within(set, "metadata", |metadata| {
        let mut annotations = amounts(metadata, "annotations");
        if !annotations.contains_key(COUNT) {
            annotations.insert(intern(COUNT), "0");
            metadata.insert(intern("annotations"), annotations);
        }
    });
}

/// Claim templates are shown with the version and kind of a claim.
fn stateful_set_spec(spec: &mut Map) {
    each(spec, "volumeClaimTemplates", |claim| {
        for (name, value) in [("apiVersion", "v1"), ("kind", "PersistentVolumeClaim")] {
            if text(claim, name) != value {
                claim.insert(intern(name), value);
            }
        }
    });
}

/// A behaviour that says anything says everything.
fn scaling_behavior(behavior: &mut Map) {
    let percent = value!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = value!({"type": "Pods", "value": 4, "periodSeconds": 15});
    for (name, policies) in [("scaleUp", vec![pods, percent.clone()]), ("scaleDown", vec![percent])] {
        default_to(behavior, name, Map::default());
        within(behavior, name, |rules| {
            default_to(rules, "policies", policies);
            default_to(rules, "selectPolicy", "Max");
            if name == "scaleUp" {
                default_to(rules, "stabilizationWindowSeconds", 0);
            }
        });
    }
}

fn job(job: &mut Map) {
    within(job, "spec", |spec| {
        if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
            spec.insert(intern("completions"), 1);
        }
        default_to(spec, "parallelism", 1);
        default_to(spec, "backoffLimit", if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 });
        default_to(spec, "completionMode", "NonIndexed");
        default_to(spec, "suspend", false);
        let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
        default_to(spec, "podReplacementPolicy", replacement);
        default_to(spec, "manualSelector", false);
    });
    let labels = job.get("spec").and_then(|spec| spec.at(&["template", "metadata", "labels"])?.as_map()).cloned();
    if let Some(labels) = labels {
        label_like(job, labels);
    }
}

/// A policy covers what comes in, and what goes out if it says something about it.
fn network_policy_spec(spec: &mut Map) {
    let has = |name: &str| spec.get(name).and_then(Value::as_list).is_some_and(|items| !items.is_empty());
    if !has("policyTypes") {
        let types = if has("egress") { value!(["Ingress", "Egress"]) } else { value!(["Ingress"]) };
        spec.insert(intern("policyTypes"), types);
    }
}

fn subject(subject: &mut Map) {
    if text(subject, "apiGroup").is_empty() && matches!(text(subject, "kind"), "User" | "Group") {
        subject.insert(intern("apiGroup"), "rbac.authorization.k8s.io");
    }
}

fn device_request(request: &mut Map) {
    if matches!(text(request, "allocationMode"), "" | "ExactCount") {
        default_to(request, "count", 1);
    }
}
