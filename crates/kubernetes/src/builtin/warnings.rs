//! What is allowed but seldom meant: the warnings that the real server sends along.

use std::cell::RefCell;

use super::{
    field::{Field, judge},
    resource,
};
use crate::{kind::Kind, names, value::Value};

/// The warnings about a new object or, with `old`, about a change to it.
pub fn warnings(kind: &Kind, value: &Value, old: Option<&Value>) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    judge(value, |object| {
        let warn = |warning: String| found.borrow_mut().push(warning);
        match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Pod") if old.is_none() => {
                name(object, "the Pod's hostname", &warn);
                pod(object, &warn);
            }
            ("apps", "ReplicaSet" | "Deployment") | ("batch", "Job") | ("", "ReplicationController") => {
                workload(object, old, &["spec"], &warn);
            }
            ("batch", "CronJob") => workload(object, old, &["spec", "jobTemplate", "spec"], &warn),
            ("apps", "StatefulSet" | "DaemonSet") => {
                template_of(object, old, &["spec"], &warn);
                if object.value.int_at(&["spec", "revisionHistoryLimit"]).is_some_and(|limit| limit < 0) {
                    let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
                    warn(format!("spec.revisionHistoryLimit: {why}"));
                }
            }
            ("", "PodTemplate") => template_of(object, old, &[], &warn),
            ("", "Service") => service(value, &warn),
            ("networking.k8s.io", "Ingress") if old.is_none() => {
                let annotation = "kubernetes.io/ingress.class";
                let annotated = value.at(&["metadata", "annotations", annotation]).is_some();
                if annotated && value.at(&["spec", "ingressClassName"]).is_none() {
                    warn(format!(
                        "annotation {annotation:?} is deprecated, please use 'spec.ingressClassName' instead"
                    ));
                }
            }
            ("discovery.k8s.io", "EndpointSlice")
                if old.is_none() && value.str_at(&["addressType"]) == Some("FQDN") =>
            {
                warn("spec.addressType: FQDN endpoints are deprecated".into());
            }
            ("", "PersistentVolumeClaim") => {
                let spec = object.child("spec");
                let resources = spec.child("resources");
                for list in ["requests", "limits"] {
                    fractional(&resources.child(list), &["storage"], &warn);
                }
            }
            ("", "Node") => {
                if object.value.at(&["spec", "configSource"]).is_some() {
                    warn("spec.configSource: the feature is removed".into());
                }
                if object.value.str_at(&["spec", "externalID"]).is_some_and(|id| !id.is_empty()) {
                    warn("spec.externalID: this field is deprecated, and is unused by Kubernetes".into());
                }
            }
            _ => {}
        }
    });
    found.into_inner()
}

type Warn<'w> = &'w dyn Fn(String);

fn name(object: &Field, used_in: &str, warn: Warn) {
    let problems = names::dns_label(object.value.str_at(&["metadata", "name"]).unwrap_or_default());
    if !problems.is_empty() {
        let why = "which can result in surprising behavior; a DNS label is recommended";
        warn(format!("metadata.name: this is used in {used_in}, {why}: [{}]", problems.join(" ")));
    }
}

fn workload(object: &Field, old: Option<&Value>, spec: &[&str], warn: Warn) {
    if old.is_none() {
        name(object, "Pod names and hostnames", warn);
    }
    template_of(object, old, spec, warn);
}

/// The template below `spec`, if it is new or the spec around it changed.
fn template_of(object: &Field, old: Option<&Value>, spec: &[&str], warn: Warn) {
    let part = if spec.is_empty() { &["template"][..] } else { &spec[..1] };
    let same = |new: &Value, old: &Value| new.is(old) || new == old;
    if old.is_some_and(|old| matches!((object.value.at(part), old.at(part)), (Some(a), Some(b)) if same(a, b))) {
        return;
    }
    match spec {
        [] => pod(&object.child("template"), warn),
        [first] => pod(&object.child(first).child("template"), warn),
        [first, second, third, ..] => pod(&object.child(first).child(second).child(third).child("template"), warn),
        [..] => {}
    }
}

/// A pod, or a template of one.
fn pod(at: &Field, warn: Warn) {
    let (spec, metadata) = (at.child("spec"), at.child("metadata"));
    let annotations = metadata.child("annotations");
    placement(&spec, warn);
    for (key, why) in ANNOTATIONS.iter().filter(|_| annotations.is_set()) {
        if annotations.key(key).is_set() {
            warn(format!("{}: {why}", annotations.key(key)));
        }
    }
    volumes(&spec.child("volumes"), warn);
    for (list, key, what) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
        repeated(&spec.child(list), key, what, warn);
    }
    for secret in spec.child("imagePullSecrets").items() {
        if secret.child("name").text().is_empty() {
            warn(format!("{}: invalid empty name \"\"", secret.child("name")));
        }
    }
    fractional(&spec.child("overhead"), &["memory", "ephemeral-storage"], warn);
    if annotations.is_set() && spec.value.at(&["securityContext", "seccompProfile"]).is_none() {
        let key = annotations.key("seccomp.security.alpha.kubernetes.io/pod");
        if key.is_set() {
            warn(format!("{key}: non-functional in v1.27+; use the \"seccompProfile\" field instead"));
        }
    }
    let mut count = 0;
    each_container(&spec, |container| {
        one_container(container, warn);
        count += container.child("ports").len();
    });
    if count > 1 {
        ports(&spec, warn);
    }
    let grace = spec.child("terminationGracePeriodSeconds");
    if grace.int() < 0 {
        warn(format!("{grace}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    affinity(&spec, warn);
}

const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];

/// Why a label of nodes is out of use, if it is.
fn outdated(label: &str) -> Option<String> {
    let (since, instead) = match label {
        "beta.kubernetes.io/arch" => ("1.14", "kubernetes.io/arch"),
        "beta.kubernetes.io/os" => ("1.14", "kubernetes.io/os"),
        "failure-domain.beta.kubernetes.io/region" => ("1.17", "topology.kubernetes.io/region"),
        "failure-domain.beta.kubernetes.io/zone" => ("1.17", "topology.kubernetes.io/zone"),
        "beta.kubernetes.io/instance-type" => ("1.17", "node.kubernetes.io/instance-type"),
        "node-role.kubernetes.io/master" => {
            return Some("use \"node-role.kubernetes.io/control-plane\" instead".into());
        }
        _ => return None,
    };
    Some(format!("deprecated since v{since}; use {instead:?} instead"))
}

fn placement(spec: &Field, warn: Warn) {
    for (key, chosen) in spec.child("nodeSelector").entries() {
        if let Some(why) = outdated(key) {
            warn(format!("{chosen}: {why}"));
        }
    }
    let affinity = spec.child("affinity");
    if affinity.is_set() {
        node_affinity(&affinity.child("nodeAffinity"), warn);
    }
    for constraint in spec.child("topologySpreadConstraints").items() {
        let (key, selector) = (constraint.child("topologyKey"), constraint.child("labelSelector"));
        if let Some(why) = outdated(key.text()) {
            warn(format!("{key}: {} is {why}", key.text()));
        }
        no_selector(&selector, warn);
    }
}

fn node_affinity(nodes: &Field, warn: Warn) {
    let expressions = |term: &Field| {
        for requirement in term.child("matchExpressions").items() {
            let key = requirement.child("key");
            if let Some(why) = outdated(key.text()) {
                warn(format!("{key}: {} is {why}", key.text()));
            }
        }
    };
    let required = nodes.child("requiredDuringSchedulingIgnoredDuringExecution");
    required.child("nodeSelectorTerms").items().for_each(|term| expressions(&term));
    for term in nodes.child("preferredDuringSchedulingIgnoredDuringExecution").items() {
        expressions(&term.child("preference"));
    }
}

fn no_selector(selector: &Field, warn: Warn) {
    if !selector.is_set() {
        warn(format!("{selector}: a null labelSelector results in matching no pod"));
    }
}

fn affinity(spec: &Field, warn: Warn) {
    let affinity = spec.child("affinity");
    if !affinity.is_set() {
        return;
    }
    for near in [affinity.child("podAffinity"), affinity.child("podAntiAffinity")] {
        for term in near.child("requiredDuringSchedulingIgnoredDuringExecution").items() {
            no_selector(&term.child("labelSelector"), warn);
        }
        for term in near.child("preferredDuringSchedulingIgnoredDuringExecution").items() {
            no_selector(&term.child("podAffinityTerm").child("labelSelector"), warn);
        }
    }
}

const VOLUMES: [(&str, &str); 8] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

fn volumes(at: &Field, warn: Warn) {
    for volume in at.items() {
        for (kind, why) in VOLUMES {
            if volume.child(kind).is_set() {
                warn(format!("{}: {why}", volume.child(kind)));
            }
        }
    }
}

fn repeated(at: &Field, key: &str, what: &str, warn: Warn) {
    for (i, item) in at.items().enumerate() {
        let text = item.child(key).text();
        if at.list()[..i].iter().any(|other| other.str_at(&[key]).unwrap_or_default() == text) {
            warn(format!("{}: duplicate {what} {text:?}", item.child(key)));
        }
    }
}

fn fractional(at: &Field, resources: &[&str], warn: Warn) {
    for resource in resources.iter().filter(|_| at.is_set()) {
        let amount = at.key(resource);
        if !resource::is_whole(amount.value) {
            warn(format!("{amount}: fractional byte value {:?} is invalid, must be an integer", amount.text()));
        }
    }
}

/// Every container of a pod, in upstream's order.
fn each_container<'v>(spec: &Field<'v, '_>, mut visit: impl FnMut(&Field<'v, '_>)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        spec.child(list).items().for_each(|container| visit(&container));
    }
}

fn one_container(at: &Field, warn: Warn) {
    let resources = at.child("resources");
    if resources.len() > 0 {
        let (limits, requests) = (resources.child("limits"), resources.child("requests"));
        for resource in ["memory", "ephemeral-storage"] {
            fractional(&limits, &[resource], warn);
            fractional(&requests, &[resource], warn);
        }
    }
    let env = at.child("env");
    for (i, variable) in env.items().enumerate() {
        let (name, value) = (variable.child("name").text(), variable.child("value").text());
        if !env.list()[..i].iter().any(|other| other.str_at(&["name"]).unwrap_or_default() == name) {
            continue;
        }
        // A variable may build upon its own earlier value.
        let reference = format!("$({name})");
        let builds_on = value.contains(&reference) && value != reference && !variable.child("valueFrom").is_set();
        if !builds_on {
            warn(format!("{variable}: hides previous definition of {name:?}, which may be dropped when using apply"));
        }
    }
}

/// A port of any container, and where it stands.
struct Port<'v> {
    at: String,
    value: &'v Value,
}

impl<'v> Port<'v> {
    fn text(&self, key: &str) -> &'v str {
        self.value.str_at(&[key]).unwrap_or_default()
    }

    fn int(&self, key: &str) -> i64 {
        self.value.int_at(&[key]).unwrap_or(0)
    }
}

/// Ports that clash with each other, of which there are at least two.
fn ports(spec: &Field, warn: Warn) {
    let mut all: Vec<Port> = Vec::new();
    each_container(spec, |container| {
        for port in container.child("ports").items() {
            all.push(Port { at: port.to_string(), value: port.value });
        }
    });
    for (i, port) in all.iter().enumerate() {
        let same = |other: &&Port| {
            other.int("containerPort") == port.int("containerPort") && other.text("protocol") == port.text("protocol")
        };
        for other in all[..i].iter().filter(same) {
            let (host, other_host) = (port.int("hostPort"), other.int("hostPort"));
            let (ip, other_ip) = (port.text("hostIP"), other.text("hostIP"));
            let how = if ip == other_ip && host == other_host {
                "duplicate"
            } else if host == 0 || other_host == 0 {
                "overlapping"
            } else if host == other_host && ip.is_empty() != other_ip.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warn(format!("{}: {how} port definition with {}", port.at, other.at));
        }
    }
    for (i, port) in all.iter().enumerate().filter(|(_, port)| !port.text("name").is_empty()) {
        let name = port.text("name");
        if let Some(other) = all[..i].iter().find(|other| other.text("name") == name) {
            let other = &other.at;
            warn(format!(
                "{}: duplicate port name {name:?} with {other}, services and probes that select ports by name will use {other}",
                port.at
            ));
        }
    }
}

fn service(service: &Value, warn: Warn) {
    let Some(spec) = service.get("spec") else { return };
    let text = |field: &str| spec.str_at(&[field]).unwrap_or_default();
    let external = !spec.list_at(&["externalIPs"]).is_empty();
    let hints = "service.kubernetes.io/topology-aware-hints";
    if service.at(&["metadata", "annotations", hints]).is_some() {
        warn(format!("annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"));
    }
    let alias = text("type") == "ExternalName";
    if text("clusterIP") == "None" && text("type") == "ClusterIP" {
        for (ignored, field) in [
            (!text("loadBalancerIP").is_empty(), "loadBalancerIP"),
            (external, "externalIPs"),
            (text("sessionAffinity") != "None", "SessionAffinity"),
        ] {
            if ignored {
                warn(format!("spec.{field} is ignored for headless services"));
            }
        }
    }
    if alias && external {
        warn("spec.externalIPs is ignored when spec.type is \"ExternalName\"".into());
    }
    if !alias && !text("externalName").is_empty() {
        warn("spec.externalName is ignored when spec.type is not \"ExternalName\"".into());
    }
    if text("trafficDistribution") == "PreferClose" {
        warn("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".into());
    }
}
