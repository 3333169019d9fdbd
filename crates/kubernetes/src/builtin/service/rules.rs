//! Rules for what Services expose and how.

use super::{CLUSTER_IPS, HEALTH_PORT, has_health_port, is_balanced, is_exposed, is_external_name, is_headless, text};
use crate::{
    builtin::{field::Field, gostruct, meta, net, pod},
    names,
    status::FieldError,
    value::Value,
};

/// A Service, new or changed.
pub(crate) fn validate(service: &Field, old: Option<&Value>) {
    let spec = service.child("spec");
    if let Some(old) = old {
        if old.get("spec").is_some_and(|old| old.is(spec.value)) {
            return;
        }
        changes(&spec, service.value, old);
    }
    kind_of_service(&spec, service.value);
    ports(&spec);
    meta::labels(&spec.child("selector"));
    affinity(&spec);
    cluster_ips(service, old);
    let external = old.map_or(&[][..], |old| old.list_at(&["spec", "externalIPs"]));
    for ip in spec.child("externalIPs").items() {
        let before = ip.noted();
        net::ip(&ip, external);
        if ip.noted() == before {
            net::endpoint_ip(&ip);
        }
    }
    spec.child("type").one_of_required(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    node_ports(&spec);
    source_ranges(service, &spec, old);
    let allocate = spec.child("allocateLoadBalancerNodePorts");
    if allocate.is_set() && !is_balanced(service.value) {
        allocate.forbidden("may only be used when `type` is 'LoadBalancer'");
    }
    balancer_class(&spec, service.value);
    traffic(&spec, service.value);
}

fn kind_of_service(spec: &Field, service: &Value) {
    let headless = is_headless(service);
    let external = is_external_name(service);
    if spec.child("ports").len() == 0 && !headless && !external {
        spec.child("ports").required("");
    }
    match text(service, "type") {
        kind @ ("LoadBalancer" | "NodePort") if headless => {
            spec.child("clusterIPs").index(0).invalid(format!("may not be set to 'None' for {kind} services"));
        }
        "ExternalName" => {
            for field in [spec.child("clusterIPs"), spec.child("ipFamilies"), spec.child("ipFamilyPolicy")] {
                if field.len() > 0 || !field.text().is_empty() {
                    field.forbidden("may not be set for ExternalName services");
                }
            }
            let name = spec.child("externalName");
            match name.text().strip_suffix('.').unwrap_or(name.text()) {
                "" => name.required(""),
                host => names::dns_subdomain(host).into_iter().for_each(|message| name.refuse(host, message)),
            }
        }
        _ => {}
    }
}

fn ports(spec: &Field) {
    let at = spec.child("ports");
    let mut seen: Vec<&str> = Vec::new();
    for port in at.items() {
        let name = port.child("name");
        if name.text().is_empty() {
            if at.len() > 1 {
                name.required("");
            }
        } else {
            name.check(names::dns_label);
            if seen.contains(&name.text()) {
                name.duplicate();
            } else {
                seen.push(name.text());
            }
        }
        port.child("port").check_int(names::port_number);
        port.child("protocol").one_of_required(&["SCTP", "TCP", "UDP"]);
        pod::port_or_name(&port.child("targetPort"));
        let protocol = port.child("appProtocol");
        if protocol.is_set() {
            protocol.check(names::label_key);
        }
    }
}

fn affinity(spec: &Field) {
    let (affinity, config) = (spec.child("sessionAffinity"), spec.child("sessionAffinityConfig"));
    affinity.one_of_required(&["ClientIP", "None"]);
    match affinity.text() {
        "ClientIP" => {
            let client = config.child("clientIP");
            let timeout = client.child("timeoutSeconds");
            let missing = [&config, &client, &timeout].into_iter().find(|field| !field.is_set());
            if let Some(missing) = missing {
                missing.required("when session affinity type is ClientIP");
            } else if !(1..=86400).contains(&timeout.int()) {
                timeout.invalid("must be greater than 0 and less than 86400");
            }
        }
        "None" if config.is_set() => config.forbidden("must not be set when session affinity is None"),
        _ => {}
    }
}

/// `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` together.
pub(super) fn cluster_ips(service: &Field, old: Option<&Value>) {
    if is_external_name(service.value) {
        return;
    }
    let spec = service.child("spec");
    let (ip, ips) = (spec.child("clusterIP"), spec.child("clusterIPs"));
    if ip.text().is_empty() {
        if ips.len() > 0 {
            ips.invalid("must be empty when `clusterIP` is not specified");
        }
    } else if ips.len() == 0 {
        ips.required("");
    } else if ips.list()[0].as_str() != Some(ip.text()) {
        ips.invalid("first value must match `clusterIP`");
    }
    let families = spec.child("ipFamilies");
    for (i, family) in families.items().enumerate() {
        family.one_of(&["IPv4", "IPv6"]);
        if families.list()[..i].contains(family.value) {
            family.duplicate();
        }
    }
    spec.child("ipFamilyPolicy").one_of_given(&["PreferDualStack", "RequireDualStack", "SingleStack"]);
    let before = old.map_or(&[][..], |old| old.list_at(&CLUSTER_IPS));
    let noted = ips.noted();
    for (i, ip) in ips.items().enumerate() {
        if i == 0 && ip.text() == "None" {
            if ips.len() > 1 {
                ips.invalid("'None' must be the first and only value");
            }
            continue;
        }
        net::ip(&ip, before);
    }
    let bad = ips.noted() > noted;
    if ips.len() > 2 {
        ips.invalid("may only hold up to 2 values");
    }
    if bad {
        return;
    }
    let sixth = |ip: &Value| ip.as_str().unwrap_or_default().contains(':');
    if ips.len() > 1 && ips.list().iter().all(sixth) == ips.list().iter().any(sixth) {
        ips.invalid("may specify no more than one IP for each IP family");
    }
    if is_headless(service.value) {
        return;
    }
    for ((i, ip), family) in ips.items().enumerate().zip(families.list()) {
        match (family.as_str(), sixth(ip.value)) {
            (Some("IPv4"), true) => {
                ip.invalid(format!("expected an IPv4 value as indicated by `ipFamilies[{i}]`"));
            }
            (Some("IPv6"), false) => {
                ip.invalid(format!("expected an IPv6 value as indicated by `ipFamilies[{i}]`"));
            }
            _ => {}
        }
    }
}

fn node_ports(spec: &Field) {
    let at = spec.child("ports");
    if spec.child("type").text() == "ClusterIP" {
        for node in at.items() {
            if node.child("nodePort").int() != 0 {
                node.child("nodePort").forbidden("may not be used when `type` is 'ClusterIP'");
            }
        }
    }
    let key = |port: &Value, number: &str| {
        (port.str_at(&["protocol"]).unwrap_or_default().to_owned(), port.int_at(&[number]).unwrap_or(0))
    };
    for (i, port) in at.items().enumerate() {
        let this = key(port.value, "nodePort");
        if this.1 != 0 && at.list()[..i].iter().any(|other| key(other, "nodePort") == this) {
            port.child("nodePort").duplicate();
        }
    }
    for (i, port) in at.items().enumerate() {
        let this = key(port.value, "port");
        if at.list()[..i].iter().any(|other| key(other, "port") == this) {
            let shown = crate::value!({"protocol": this.0, "port": this.1});
            let problem = FieldError::duplicate(port.to_string(), Value::Null);
            port.note(problem.printed(gostruct::print("ServicePort", &shown)));
        }
    }
}

fn source_ranges(service: &Field, spec: &Field, old: Option<&Value>) {
    let ranges = spec.child("loadBalancerSourceRanges");
    let balanced = is_balanced(service.value);
    if ranges.len() > 0 {
        let at = spec.child("LoadBalancerSourceRanges").with(ranges.value);
        if !balanced {
            at.forbidden("may only be used when `type` is 'LoadBalancer'");
        }
        let before = old.map_or(&[][..], |old| old.list_at(&["spec", "loadBalancerSourceRanges"]));
        for range in at.items().filter(|range| !before.contains(range.value)) {
            net::cidr_text(&range, range.text().trim());
        }
        return;
    }
    let metadata = service.child("metadata");
    let annotations = metadata.child("annotations");
    let ranges = annotations.key("service.beta.kubernetes.io/load-balancer-source-ranges");
    if ranges.is_set() {
        if !balanced {
            ranges.forbidden("may only be used when `type` is 'LoadBalancer'");
        }
        let text = ranges.text().trim();
        text.split(',').filter(|_| !text.is_empty()).for_each(|range| net::cidr_text(&ranges, range.trim()));
    }
}

fn balancer_class(spec: &Field, service: &Value) {
    let class = spec.child("loadBalancerClass");
    if !class.is_set() {
        return;
    }
    if is_balanced(service) {
        class.check(names::label_key);
    } else {
        class.forbidden("may only be used when `type` is 'LoadBalancer'");
    }
}

fn traffic(spec: &Field, service: &Value) {
    let external = spec.child("externalTrafficPolicy");
    if is_exposed(service) {
        external.one_of_required(&["Cluster", "Local"]);
    } else if !external.text().is_empty() {
        external.invalid("may only be set for externally-accessible services");
    }
    let health = spec.child("healthCheckNodePort");
    if has_health_port(service) {
        if health.int() == 0 { health.required("") } else { health.check_int(names::port_number) }
    } else if health.int() != 0 {
        health.invalid("may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
    }
    let internal = spec.child("internalTrafficPolicy");
    if !internal.is_set() && matches!(text(service, "type"), "NodePort" | "LoadBalancer" | "ClusterIP") {
        internal.required("");
    }
    internal.one_of_given(&["Cluster", "Local"]);
    spec.child("trafficDistribution").one_of_given(&["PreferClose", "PreferSameZone", "PreferSameNode"]);
}

fn changes(spec: &Field, service: &Value, old: &Value) {
    let alias = is_external_name(service) || is_external_name(old);
    let headless = is_headless(old) && is_headless(service);
    if !alias && !headless {
        let (at, before) = (spec.child("clusterIPs"), old.list_at(&CLUSTER_IPS));
        let first_changed = matches!((before.first(), at.list().first()), (Some(old), Some(new)) if old != new);
        if at.len() == 0 && !before.is_empty() {
            at.index(0).refuse(at.value, "primary clusterIP can not be unset");
        } else if at.len() == before.len() {
            for (i, _) in before.iter().enumerate().filter(|(i, old)| **old != at.list()[*i]) {
                at.index(i).refuse(at.value, "may not change once set");
            }
        } else if first_changed {
            at.index(0).refuse(at.value, "may not change once set");
        }
    }
    let class = spec.child("loadBalancerClass");
    if is_balanced(old)
        && is_balanced(service)
        && service.at(&["spec", "loadBalancerClass"]) != old.at(&["spec", "loadBalancerClass"])
    {
        class.invalid("may not change once set");
    }
    if has_health_port(old) && has_health_port(service) && service.at(&HEALTH_PORT) != old.at(&HEALTH_PORT) {
        spec.child("healthCheckNodePort").forbidden("field is immutable");
    }
}

/// A write to `services/status`.
pub(crate) fn validate_status(service: &Field, old: &Value) {
    let (spec, status) = (service.child("spec"), service.child("status"));
    let balancer = status.child("loadBalancer");
    let at = balancer.child("ingress");
    if spec.child("type").text() != "LoadBalancer" {
        if at.len() > 0 {
            at.forbidden("may only be used when `spec.type` is 'LoadBalancer'");
        }
        return;
    }
    ingress_points(&at, old, |point| {
        let (ip, mode) = (point.child("ip"), point.child("ipMode"));
        match (ip.text().is_empty(), mode.is_set()) {
            (false, false) => mode.required("must be specified when `ip` is set"),
            (true, true) => mode.forbidden("may not be specified when `ip` is not set"),
            (false, true) => mode.one_of(&["Proxy", "VIP"]),
            (true, false) => {}
        }
    });
}

/// Where a load balancer listens; `mode` judges what goes with its address.
pub(crate) fn ingress_points(at: &Field, old: &Value, mode: impl Fn(&Field)) {
    let before: Vec<Value> = old
        .list_at(&["status", "loadBalancer", "ingress"])
        .iter()
        .filter_map(|point| point.get("ip").cloned())
        .collect();
    for point in at.items() {
        let (ip, host) = (point.child("ip"), point.child("hostname"));
        if !ip.text().is_empty() {
            net::ip(&ip, &before);
        }
        mode(&point);
        if !host.text().is_empty() {
            host.check(names::dns_subdomain);
            if net::parse_ip(host.text()).is_some() {
                host.invalid("must be a DNS name, not an IP address");
            }
        }
    }
}
