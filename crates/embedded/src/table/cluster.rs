//! Everything that is not about running pods: network, configuration, storage, access, nodes, events.

use jiff::SignedDuration;

use super::{Printed, first_few, quantity};
use crate::kubernetes::{
    kind::Kind,
    selector::Labels,
    shown::{age, condition, human},
    value::Value,
};

/// The cells of the kinds in this file; none for any other.
pub(super) fn cells(kind: &Kind, of: Printed<'_>) -> Option<Vec<Value>> {
    let (name, age) = (of.name(), of.age());
    Some(match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => service(of),
        ("", "Endpoints") => vec![name, endpoints(of).into(), age],
        ("discovery.k8s.io", "EndpointSlice") => endpoint_slice(of),
        ("networking.k8s.io", "Ingress") => ingress(of),
        ("networking.k8s.io", "IngressClass") => ingress_class(of),
        ("networking.k8s.io", "NetworkPolicy") => vec![name, network_policy(of), age],
        ("networking.k8s.io", "ServiceCIDR") => vec![name, of.joined(&["spec", "cidrs"], ",").into(), age],
        ("networking.k8s.io", "IPAddress") => vec![name, ip_address(of).into(), age],
        ("", "ConfigMap") => vec![name, (of.count(&["data"]) + of.count(&["binaryData"])).into(), age],
        ("", "Secret") => vec![name, of.cell(&["type"]), of.count(&["data"]).into(), age],
        ("", "ServiceAccount") => vec![name, age],
        ("", "Namespace") => vec![name, of.cell(&["status", "phase"]), age],
        ("", "Node") => node(of),
        ("" | "events.k8s.io", "Event") => event(of),
        ("", "ResourceQuota") => resource_quota(of),
        ("", "ComponentStatus") => component_status(of),
        ("", "PersistentVolume") => persistent_volume(of),
        ("", "PersistentVolumeClaim") => persistent_volume_claim(of),
        ("coordination.k8s.io", "Lease") => vec![name, of.cell(&["spec", "holderIdentity"]), age],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => role_binding(of),
        ("storage.k8s.io", kind) => return storage(kind, of),
        ("scheduling.k8s.io", "PriorityClass") => {
            vec![name, of.int(&["value"]).into(), of.is(&["globalDefault"]).into(), age, of.cell(&["preemptionPolicy"])]
        }
        ("node.k8s.io", "RuntimeClass") => vec![name, of.cell(&["handler"]), age],
        ("certificates.k8s.io", "CertificateSigningRequest") => signing_request(of),
        ("apiregistration.k8s.io", "APIService") => api_service(of),
        ("admissionregistration.k8s.io", kind) => return admission(kind, of),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => flow_schema(of),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => priority_level(of),
        ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => vec![name, age],
        ("resource.k8s.io", "ResourceClaim") => vec![name, resource_claim(of).into(), age],
        ("resource.k8s.io", "ResourceSlice") => {
            vec![
                name,
                of.cell(&["spec", "nodeName"]),
                of.cell(&["spec", "driver"]),
                of.cell(&["spec", "pool", "name"]),
                age,
            ]
        }
        _ => return None,
    })
}

fn service(of: Printed<'_>) -> Vec<Value> {
    let address = of.list(&["spec", "clusterIPs"]).first().cloned().unwrap_or_else(|| "<none>".into());
    let ports: Vec<String> = of.list(&["spec", "ports"]).iter().map(service_port).collect();
    vec![
        of.name(),
        of.cell(&["spec", "type"]),
        address,
        external_address(of).into(),
        if ports.is_empty() { "<none>".into() } else { ports.join(",").into() },
        of.age(),
        of.labels(&["spec", "selector"]),
    ]
}

fn service_port(port: &Value) -> String {
    let (number, protocol) = (port.int_at(&["port"]).unwrap_or(0), port.str_at(&["protocol"]).unwrap_or_default());
    match port.int_at(&["nodePort"]) {
        Some(node @ 1..) => format!("{number}:{node}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}

fn external_address(of: Printed<'_>) -> String {
    let own = of.joined(&["spec", "externalIPs"], ",");
    match of.text(&["spec", "type"]) {
        "ClusterIP" | "NodePort" if own.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => own,
        "LoadBalancer" => match (balancer(of), own) {
            (given, own) if given.is_empty() && own.is_empty() => "<pending>".to_owned(),
            (given, own) if own.is_empty() => given,
            (given, own) if given.is_empty() => own,
            (given, own) => format!("{given},{own}"),
        },
        "ExternalName" => of.text(&["spec", "externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses a load balancer was given, sorted.
fn balancer(of: Printed<'_>) -> String {
    let address = |point: &Value| {
        let text = |key: &str| point.str_at(&[key]).filter(|text| !text.is_empty()).map(str::to_owned);
        text("ip").or_else(|| text("hostname"))
    };
    let mut addresses: Vec<String> =
        of.list(&["status", "loadBalancer", "ingress"]).iter().filter_map(address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.join(",")
}

fn endpoints(of: Printed<'_>) -> String {
    let subsets = of.list(&["subsets"]);
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all: Vec<String> = Vec::new();
    for subset in subsets {
        let addresses: Vec<&str> =
            subset.list_at(&["addresses"]).iter().map(|address| address.str_at(&["ip"]).unwrap_or_default()).collect();
        let ports = subset.list_at(&["ports"]);
        if ports.is_empty() {
            all.extend(addresses.iter().map(|ip| ip.to_string()));
        }
        for port in ports.iter().map(|port| port.int_at(&["port"]).unwrap_or(0)) {
            let with_port =
                |ip: &&str| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") };
            all.extend(addresses.iter().map(with_port));
        }
    }
    first_few(all.iter().map(String::as_str).collect(), 3, ",", "")
}

fn endpoint_slice(of: Printed<'_>) -> Vec<Value> {
    let port = |port: &Value| match (port.int_at(&["port"]), port.str_at(&["name"])) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    };
    let ports: Vec<String> = of.list(&["ports"]).iter().map(port).collect();
    let addresses: Vec<&str> = of
        .list(&["endpoints"])
        .iter()
        .flat_map(|endpoint| endpoint.list_at(&["addresses"]))
        .filter_map(Value::as_str)
        .collect();
    vec![
        of.name(),
        of.cell(&["addressType"]),
        first_few(ports.iter().map(String::as_str).collect(), 3, ",", "<unset>").into(),
        first_few(addresses, 3, ",", "<unset>").into(),
        of.age(),
    ]
}

fn ingress(of: Printed<'_>) -> Vec<Value> {
    let rules = of.list(&["spec", "rules"]);
    let (mut hosts, mut more) = (Vec::new(), false);
    for host in rules.iter().map(|rule| rule.str_at(&["host"]).unwrap_or_default()) {
        more |= hosts.len() == 3;
        if !more && !host.is_empty() {
            hosts.push(host);
        }
    }
    let hosts = match (hosts.join(","), more) {
        (hosts, _) if hosts.is_empty() => "*".to_owned(),
        // Upstream counts the rules that are left, whether they have a host or not.
        (hosts, true) => format!("{hosts} + {} more...", rules.len() - 3),
        (hosts, false) => hosts,
    };
    vec![
        of.name(),
        of.text_or(&["spec", "ingressClassName"], "<none>"),
        hosts.into(),
        balancer(of).into(),
        if of.list(&["spec", "tls"]).is_empty() { "80".into() } else { "80, 443".into() },
        of.age(),
    ]
}

fn ingress_class(of: Printed<'_>) -> Vec<Value> {
    let parameters = match of.at(&["spec", "parameters"]) {
        None => "<none>".to_owned(),
        Some(parameters) => {
            let text = |key: &str| parameters.str_at(&[key]).unwrap_or_default();
            let group = parameters.str_at(&["apiGroup"]).map_or(String::new(), |group| format!(".{group}"));
            format!("{}{group}/{}", text("kind"), text("name"))
        }
    };
    vec![of.name(), of.cell(&["spec", "controller"]), parameters.into(), of.age()]
}

fn network_policy(of: Printed<'_>) -> Value {
    let everything = Value::object();
    match Labels::of(of.at(&["spec", "podSelector"]).unwrap_or(&everything)) {
        Err(_) => "<error>".into(),
        Ok(labels) if labels.is_empty() => "<none>".into(),
        Ok(labels) => labels.to_string().into(),
    }
}

fn ip_address(of: Printed<'_>) -> String {
    let text = |key: &str| of.text(&["spec", "parentRef", key]);
    if of.at(&["spec", "parentRef"]).is_none() {
        return "<none>".to_owned();
    }
    let group = if text("group").is_empty() { String::new() } else { format!(".{}", text("group")) };
    let namespace = if text("namespace").is_empty() { String::new() } else { format!("/{}", text("namespace")) };
    format!("{}{namespace}/{}", format!("{}{group}", text("resource")).to_lowercase(), text("name"))
}

fn node(of: Printed<'_>) -> Vec<Value> {
    // Of several conditions of one type, upstream believes the last.
    let ready = of.list(&["status", "conditions"]).iter().rev().find(|c| c.str_at(&["type"]) == Some("Ready"));
    let mut status = match ready.map(|ready| ready.str_at(&["status"]) == Some("True")) {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if of.is(&["spec", "unschedulable"]) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = of.object.at(&["metadata", "labels"]).and_then(Value::as_map);
    let role = |(key, value): (&'_ str, &'_ str)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None => (key == "kubernetes.io/role").then(|| value.to_owned()),
    };
    let labels = labels.into_iter().flat_map(|labels| labels.iter());
    let mut roles: Vec<String> = labels
        .filter_map(|(key, value)| role((key, value.as_str().unwrap_or_default())))
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    let address = |kind: &str| {
        let address = of.list(&["status", "addresses"]).iter().find(|a| a.str_at(&["type"]) == Some(kind));
        address.map_or_else(|| "<none>".into(), |a| Value::from(a.str_at(&["address"]).unwrap_or_default()))
    };
    let info = |key: &str| of.filled_or(&["status", "nodeInfo", key], "<unknown>");
    vec![
        of.name(),
        status.into(),
        if roles.is_empty() { "<none>".into() } else { roles.join(",").into() },
        of.age(),
        of.cell(&["status", "nodeInfo", "kubeletVersion"]),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

/// An event in either of its forms: the core one, or that of events.k8s.io, which has other names for the same fields.
fn event(of: Printed<'_>) -> Vec<Value> {
    let either = |core: &'static [&'static str], new: &'static [&'static str]| match of.text(core) {
        "" => of.text(new),
        text => text,
    };
    let since = |time: &str| age(Some(time).filter(|time| !time.is_empty()), of.now);
    let first = match either(&["firstTimestamp"], &["deprecatedFirstTimestamp"]) {
        "" => since(of.text(&["eventTime"])),
        first => since(first),
    };
    let mut last = match either(&["lastTimestamp"], &["deprecatedLastTimestamp"]) {
        "" => first.clone(),
        last => since(last),
    };
    let mut count = of.int(&["count"]).max(of.int(&["deprecatedCount"]));
    if of.at(&["series"]).is_some() {
        last = since(of.text(&["series", "lastObservedTime"]));
        count = of.int(&["series", "count"]);
    } else if count == 0 {
        count = 1;
    }
    let kind = either(&["involvedObject", "kind"], &["regarding", "kind"]).to_lowercase();
    let target = match either(&["involvedObject", "name"], &["regarding", "name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let component = match either(&["source", "component"], &["deprecatedSource", "component"]) {
        "" => either(&["reportingComponent"], &["reportingController"]),
        component => component,
    };
    let host = match either(&["source", "host"], &["deprecatedSource", "host"]) {
        "" => of.text(&["reportingInstance"]),
        host => host,
    };
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    vec![
        last.into(),
        of.cell(&["type"]),
        of.cell(&["reason"]),
        target.into(),
        either(&["involvedObject", "fieldPath"], &["regarding", "fieldPath"]).into(),
        source.into(),
        either(&["message"], &["note"]).trim().into(),
        first.into(),
        count.into(),
        of.name(),
    ]
}

fn resource_quota(of: Printed<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let hard = of.object.at(&["status", "hard"]).and_then(Value::as_map);
    for (resource, hard) in hard.into_iter().flat_map(|hard| hard.iter()) {
        let used = quantity(of.at(&["status", "used", resource]));
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{resource}: {used}/{}", quantity(Some(hard))));
    }
    vec![of.name(), requests.join(", ").into(), limits.join(", ").into(), of.age()]
}

fn component_status(of: Printed<'_>) -> Vec<Value> {
    let healthy = condition(of.list(&["conditions"]), "Healthy");
    let status = match healthy.map(|condition| condition.str_at(&["status"]) == Some("True")) {
        None => "Unknown",
        Some(true) => "Healthy",
        Some(false) => "Unhealthy",
    };
    let text = |key: &str| Value::from(healthy.and_then(|condition| condition.str_at(&[key])).unwrap_or_default());
    vec![of.name(), status.into(), text("message"), text("error")]
}

/// `RWO,RWX`: each mode once, in this order.
fn access_modes(of: Printed<'_>, path: &[&str]) -> Value {
    let given = of.list(path);
    let modes =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let short: Vec<&str> =
        modes.iter().filter(|(mode, _)| given.iter().any(|m| *m == *mode)).map(|(_, s)| *s).collect();
    short.join(",").into()
}

/// An annotation of old clusters says it louder than the field.
fn storage_class_name(of: Printed<'_>) -> Value {
    let annotation = &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"];
    of.at(annotation).cloned().unwrap_or_else(|| of.cell(&["spec", "storageClassName"]))
}

fn phase(of: Printed<'_>) -> Value {
    if of.is_terminating() { "Terminating".into() } else { of.cell(&["status", "phase"]) }
}

fn persistent_volume(of: Printed<'_>) -> Vec<Value> {
    let claim = of.at(&["spec", "claimRef"]).map_or(String::new(), |claim| {
        let text = |key: &str| claim.str_at(&[key]).unwrap_or_default();
        format!("{}/{}", text("namespace"), text("name"))
    });
    vec![
        of.name(),
        Value::Str(quantity(of.at(&["spec", "capacity", "storage"]))),
        access_modes(of, &["spec", "accessModes"]),
        of.cell(&["spec", "persistentVolumeReclaimPolicy"]),
        phase(of),
        claim.into(),
        storage_class_name(of),
        of.text_or(&["spec", "volumeAttributesClassName"], "<unset>"),
        of.cell(&["status", "reason"]),
        of.age(),
        of.text_or(&["spec", "volumeMode"], "<unset>"),
    ]
}

fn persistent_volume_claim(of: Printed<'_>) -> Vec<Value> {
    let bound = !of.text(&["spec", "volumeName"]).is_empty();
    let capacity = if bound { quantity(of.at(&["status", "capacity", "storage"])) } else { "".into() };
    vec![
        of.name(),
        phase(of),
        of.cell(&["spec", "volumeName"]),
        Value::Str(capacity),
        if bound { access_modes(of, &["status", "accessModes"]) } else { "".into() },
        storage_class_name(of),
        of.text_or(&["spec", "volumeAttributesClassName"], "<unset>"),
        of.age(),
        of.text_or(&["spec", "volumeMode"], "<unset>"),
    ]
}

fn storage(kind: &str, of: Printed<'_>) -> Option<Vec<Value>> {
    let (name, age) = (of.name(), of.age());
    Some(match kind {
        "StorageClass" => {
            let default = ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"]
                .iter()
                .any(|prefix| of.text(&["metadata", "annotations", &format!("{prefix}/is-default-class")]) == "true");
            let suffix = if default { " (default)" } else { "" };
            vec![
                format!("{}{suffix}", of.text(&["metadata", "name"])).into(),
                of.cell(&["provisioner"]),
                of.text_or(&["reclaimPolicy"], "Delete"),
                of.text_or(&["volumeBindingMode"], "Immediate"),
                of.is(&["allowVolumeExpansion"]).into(),
                age,
            ]
        }
        "VolumeAttributesClass" => vec![name, of.cell(&["driverName"]), age],
        "CSINode" => vec![name, of.count(&["spec", "drivers"]).into(), age],
        "CSIDriver" => csi_driver(of),
        "VolumeAttachment" => vec![
            name,
            of.cell(&["spec", "attacher"]),
            of.cell(&["spec", "source", "persistentVolumeName"]),
            of.cell(&["spec", "nodeName"]),
            of.is(&["status", "attached"]).into(),
            age,
        ],
        _ => return None,
    })
}

fn csi_driver(of: Printed<'_>) -> Vec<Value> {
    let attach = of.at(&["spec", "attachRequired"]).and_then(Value::as_bool).unwrap_or(true);
    let audiences =
        of.at(&["spec", "tokenRequests"]).and_then(Value::as_list).map_or("<unset>".to_owned(), |requests| {
            let audiences: Vec<&str> = requests.iter().map(|r| r.str_at(&["audience"]).unwrap_or_default()).collect();
            audiences.join(",")
        });
    let modes = of.joined(&["spec", "volumeLifecycleModes"], ",");
    vec![
        of.name(),
        attach.into(),
        of.is(&["spec", "podInfoOnMount"]).into(),
        of.is(&["spec", "storageCapacity"]).into(),
        audiences.into(),
        of.is(&["spec", "requiresRepublish"]).into(),
        if modes.is_empty() { "<none>".into() } else { modes.into() },
        of.age(),
    ]
}

fn role_binding(of: Printed<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let subjects = of.list(&["subjects"]).iter().filter(|subject| subject.str_at(&["kind"]) == Some(kind));
        let shown = subjects.map(|subject| {
            let text = |key: &str| subject.str_at(&[key]).unwrap_or_default();
            match kind {
                "ServiceAccount" => format!("{}/{}", text("namespace"), text("name")),
                _ => text("name").to_owned(),
            }
        });
        Value::from(shown.collect::<Vec<_>>().join(", "))
    };
    let role = format!("{}/{}", of.text(&["roleRef", "kind"]), of.text(&["roleRef", "name"]));
    vec![of.name(), role.into(), of.age(), subjects("User"), subjects("Group"), subjects("ServiceAccount")]
}

fn signing_request(of: Printed<'_>) -> Vec<Value> {
    let has = |kind: &str| condition(of.list(&["status", "conditions"]), kind).is_some();
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !of.text(&["status", "certificate"]).is_empty() {
        status.push_str(",Issued");
    }
    let lifetime = of.object.int_at(&["spec", "expirationSeconds"]);
    vec![
        of.name(),
        of.age(),
        of.filled_or(&["spec", "signerName"], "<none>"),
        of.cell(&["spec", "username"]),
        lifetime.map_or("<none>".into(), |seconds| human(SignedDuration::from_secs(seconds)).into()),
        status.into(),
    ]
}

fn api_service(of: Printed<'_>) -> Vec<Value> {
    let service = of.at(&["spec", "service"]).map_or("Local".to_owned(), |service| {
        let text = |key: &str| service.str_at(&[key]).unwrap_or_default();
        format!("{}/{}", text("namespace"), text("name"))
    });
    let available =
        condition(of.list(&["status", "conditions"]), "Available").map_or("Unknown".to_owned(), |available| {
            let text = |key: &str| available.str_at(&[key]).unwrap_or_default();
            match (text("status"), text("reason")) {
                ("True", _) => "True".to_owned(),
                (status, "") => status.to_owned(),
                (status, reason) => format!("{status} ({reason})"),
            }
        });
    vec![of.name(), service.into(), available.into(), of.age()]
}

fn admission(kind: &str, of: Printed<'_>) -> Option<Vec<Value>> {
    let (name, age) = (of.name(), of.age());
    let parameter_kind = || {
        let text = |key: &str| of.text(&["spec", "paramKind", key]);
        match of.at(&["spec", "paramKind"]) {
            None => "<unset>".to_owned(),
            Some(_) => format!("{}/{}", text("apiVersion"), text("kind")),
        }
    };
    Some(match kind {
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            vec![name, of.count(&["webhooks"]).into(), age]
        }
        "ValidatingAdmissionPolicy" => {
            vec![name, of.count(&["spec", "validations"]).into(), parameter_kind().into(), age]
        }
        "MutatingAdmissionPolicy" => vec![name, of.count(&["spec", "mutations"]).into(), parameter_kind().into(), age],
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            vec![name, of.cell(&["spec", "policyName"]), parameters(of).into(), age]
        }
        _ => return None,
    })
}

fn parameters(of: Printed<'_>) -> String {
    let text = |key: &str| of.text(&["spec", "paramRef", key]);
    match (text("namespace"), text("name")) {
        (_, "") => "<unset>".to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

fn flow_schema(of: Printed<'_>) -> Vec<Value> {
    let dangling = condition(of.list(&["status", "conditions"]), "Dangling");
    vec![
        of.name(),
        of.cell(&["spec", "priorityLevelConfiguration", "name"]),
        of.int(&["spec", "matchingPrecedence"]).into(),
        of.text_or(&["spec", "distinguisherMethod", "type"], "<none>"),
        of.age(),
        dangling.and_then(|condition| condition.str_at(&["status"])).unwrap_or("?").into(),
    ]
}

fn priority_level(of: Printed<'_>) -> Vec<Value> {
    let number = |path: &[&str], key: &str| match of.at(path) {
        None => Value::from("<none>"),
        Some(parent) => parent.int_at(&[key]).unwrap_or(0).into(),
    };
    let queuing: &[&str] = &["spec", "limited", "limitResponse", "queuing"];
    vec![
        of.name(),
        of.cell(&["spec", "type"]),
        number(&["spec", "limited"], "nominalConcurrencyShares"),
        number(queuing, "queues"),
        number(queuing, "handSize"),
        number(queuing, "queueLengthLimit"),
        of.age(),
    ]
}

fn resource_claim(of: Printed<'_>) -> String {
    let mut states = Vec::new();
    if of.is_terminating() {
        states.push("deleted");
    }
    if of.at(&["status", "allocation"]).is_some() {
        states.push("allocated");
        if !of.list(&["status", "reservedFor"]).is_empty() {
            states.push("reserved");
        }
    } else if !of.is_terminating() {
        states.push("pending");
    }
    states.join(",")
}
