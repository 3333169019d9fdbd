//! Ingresses, their classes, NetworkPolicies, EndpointSlices and Endpoints.

use super::{field::Field, meta, net};
use crate::{names, value::Value};

/// An Ingress, new or changed.
pub(super) fn validate_ingress(ingress: &Field, old: Option<&Value>) {
    let spec = ingress.child("spec");
    if old.and_then(|old| old.get("spec")).is_none_or(|old| !old.is(spec.value)) {
        ingress_spec(&spec);
    }
    let class = spec.child("ingressClassName");
    let annotated = ingress.value.at(&["metadata", "annotations", "kubernetes.io/ingress.class"]);
    if let Some(annotated) = annotated.filter(|annotated| old.is_none() && class.is_set() && *annotated != class.value)
    {
        let annotations = ingress.child("annotations");
        let at = annotations.child("kubernetes.io/ingress.class");
        at.refuse(annotated, "must match `ingressClassName` when both are specified");
    }
}

fn ingress_spec(spec: &Field) {
    let (rules, fallback) = (spec.child("rules"), spec.child("defaultBackend"));
    if rules.len() == 0 && !fallback.is_set() {
        spec.refuse(rules.value, "either `defaultBackend` or `rules` must be specified");
    }
    if fallback.is_set() {
        backend(&fallback);
    }
    for rule in rules.items() {
        host(&rule.child("host"));
        let http = rule.child("http");
        if !http.is_set() {
            continue;
        }
        let paths = http.child("paths");
        if paths.len() == 0 {
            paths.required("");
        }
        paths.items().for_each(|path| http_path(&path));
    }
    for tls in spec.child("tls").items() {
        for host in tls.child("hosts").items() {
            let rule = if host.text().contains('*') { names::wildcard_dns_subdomain } else { names::dns_subdomain };
            host.check(rule);
        }
        tls.child("secretName").check_given(names::dns_subdomain);
    }
    let class = spec.child("ingressClassName");
    if class.is_set() {
        class.check(names::dns_subdomain);
    }
}

fn host(at: &Field) {
    if at.text().is_empty() {
        return;
    }
    if net::parse_ip(at.text()).is_some() {
        at.invalid("must be a DNS name, not an IP address");
    }
    at.check(if at.text().contains('*') { names::wildcard_dns_subdomain } else { names::dns_subdomain });
}

fn http_path(at: &Field) {
    let (kind, path) = (at.child("pathType"), at.child("path"));
    if !kind.is_set() {
        return kind.required("pathType must be specified");
    }
    let relative = !path.text().starts_with('/');
    match kind.text() {
        "Exact" | "Prefix" => {
            if relative {
                path.refuse(path.text(), "must be an absolute path");
            }
            for bad in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|bad| path.text().contains(bad)) {
                path.invalid(format!("must not contain '{bad}'"));
            }
            for bad in ["/..", "/."].into_iter().filter(|bad| path.text().ends_with(bad)) {
                path.invalid(format!("cannot end with '{bad}'"));
            }
        }
        "ImplementationSpecific" => {
            if relative && !path.text().is_empty() {
                path.invalid("must be an absolute path");
            }
        }
        _ => kind.not_supported(&["Exact", "ImplementationSpecific", "Prefix"]),
    }
    backend(&at.child("backend"));
}

fn backend(at: &Field) {
    let (service, resource) = (at.child("service"), at.child("resource"));
    match (service.is_set(), resource.is_set()) {
        (true, true) => at.refuse("", "cannot set both resource and service backends"),
        (false, true) => reference(&resource),
        (false, false) => at.refuse("", "resource or service backend is required"),
        (true, false) => {
            service.child("name").check_required(names::dns1035_label);
            let port = service.child("port");
            let (name, number) = (port.child("name"), port.child("number"));
            match (name.text().is_empty(), number.int() == 0) {
                (false, false) => at.refuse("", "cannot set both port name & port number"),
                (false, true) => name.check(names::port_name),
                (true, false) => number.check_int(names::port_number),
                (true, true) => at.required("port name or number is required"),
            }
        }
    }
}

/// A reference to an object of the same namespace or of the cluster.
fn reference(at: &Field) {
    let group = at.child("apiGroup");
    if group.is_set() {
        group.check(names::dns_subdomain);
    }
    at.child("kind").check_required(names::path_segment);
    at.child("name").check_required(names::path_segment);
}

/// An IngressClass, new or changed.
pub(super) fn validate_ingress_class(class: &Field, old: Option<&Value>) {
    let spec = class.child("spec");
    let controller = spec.child("controller");
    if let Some(old) = old {
        controller.immutable(old.at(&["spec", "controller"]));
    }
    if controller.text().len() > 250 {
        controller.too_long(250);
    }
    net::domain_prefixed_path(&controller);
    let parameters = spec.child("parameters");
    if !parameters.is_set() {
        return;
    }
    reference(&parameters);
    let (scope, namespace) = (parameters.child("scope"), parameters.child("namespace"));
    match scope.text() {
        "" if !scope.is_set() => scope.required(""),
        "Namespace" if !namespace.is_set() => namespace.required("`parameters.scope` is set to 'Namespace'"),
        "Namespace" => namespace.check(names::dns_label),
        "Cluster" if namespace.is_set() => namespace.forbidden("`parameters.scope` is set to 'Cluster'"),
        "Cluster" => {}
        _ => scope.not_supported(&["Cluster", "Namespace"]),
    }
}

/// A NetworkPolicy, new or changed.
pub(super) fn validate_network_policy(policy: &Field, old: Option<&Value>) {
    let spec = policy.child("spec");
    if old.and_then(|old| old.get("spec")).is_some_and(|old| old.is(spec.value)) {
        return;
    }
    policy_spec(&spec);
    if old.is_some() {
        policy_spec(&spec); // upstream judges a changed policy twice
    }
}

fn policy_spec(spec: &Field) {
    meta::selector(&spec.child("podSelector"));
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.child(direction).items() {
            rule.child("ports").items().for_each(|port| policy_port(&port));
            rule.child(peers).items().for_each(|peer| policy_peer(&peer));
        }
    }
    let types = spec.child("policyTypes");
    if types.len() > 2 {
        return types.invalid("may not specify more than two policyTypes");
    }
    types.items().for_each(|kind| kind.one_of(&["Ingress", "Egress"]));
}

fn policy_port(at: &Field) {
    at.child("protocol").one_of_given(&["TCP", "UDP", "SCTP"]);
    let (port, end) = (at.child("port"), at.child("endPort"));
    if !port.is_set() {
        if end.is_set() {
            end.invalid("may not be specified when `port` is not specified");
        }
        return;
    }
    if port.value.as_str().is_some() {
        if end.is_set() {
            end.invalid("may not be specified when `port` is non-numeric");
        }
        return port.check(names::port_name);
    }
    port.check_int(names::port_number);
    if end.is_set() {
        if end.int() < port.int() {
            end.refuse(port.int(), "must be greater than or equal to `port`");
        }
        end.check_int(names::port_number);
    }
}

fn policy_peer(at: &Field) {
    let (pods, namespaces, block) = (at.child("podSelector"), at.child("namespaceSelector"), at.child("ipBlock"));
    meta::selector(&pods);
    meta::selector(&namespaces);
    if block.is_set() {
        ip_block(&block);
    }
    let peers = [pods, namespaces, block].into_iter().filter(Field::is_set).count();
    if peers == 0 {
        at.required("must specify a peer");
    } else if peers > 1 && block.is_set() {
        at.forbidden("may not specify both ipBlock and another peer");
    }
}

fn ip_block(at: &Field) {
    let cidr = at.child("cidr");
    if cidr.text().is_empty() {
        return cidr.required("");
    }
    net::cidr(&cidr, &[]);
    let Some(outer) = net::parse_block(cidr.text()) else { return };
    for except in at.child("except").items() {
        net::cidr(&except, &[]);
        if net::parse_block(except.text()).is_some_and(|inner| !outer.strictly_contains(&inner)) {
            except.invalid("must be a strict subset of `cidr`");
        }
    }
}

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// An EndpointSlice, new or changed.
pub(super) fn validate_endpoint_slice(slice: &Field, old: Option<&Value>) {
    let kind = slice.child("addressType");
    kind.one_of_required(&["FQDN", "IPv4", "IPv6"]);
    slice_ports(&slice.child("ports"));
    let endpoints = slice.child("endpoints");
    if old.is_none_or(|old| old.get("endpoints").unwrap_or(&Value::Null) != endpoints.value) {
        slice_endpoints(&endpoints, kind.text());
    }
    if let Some(old) = old {
        kind.immutable(old.get("addressType"));
    }
}

fn slice_ports(at: &Field) {
    if at.len() > 20_000 {
        return at.too_many(20_000);
    }
    let mut seen: Vec<&str> = Vec::new();
    for port in at.items() {
        let name = port.child("name");
        name.check_given(names::dns_label);
        if seen.contains(&name.text()) {
            name.duplicate_of(name.text());
        } else {
            seen.push(name.text());
        }
        let protocol = port.child("protocol");
        if protocol.is_set() {
            protocol.one_of(&PROTOCOLS)
        } else {
            protocol.required("")
        }
        let application = port.child("appProtocol");
        if application.is_set() {
            application.check(names::label_key);
        }
    }
}

fn slice_endpoints(at: &Field, kind: &str) {
    if at.len() > 1000 {
        return at.too_many(1000);
    }
    for endpoint in at.items() {
        let addresses = endpoint.child("addresses");
        match addresses.len() {
            0 => addresses.required("must contain at least 1 address"),
            1..=100 => {}
            _ => addresses.too_many(100),
        }
        for address in addresses.items() {
            slice_address(&addresses, &address, kind);
        }
        let node = endpoint.child("nodeName");
        if node.is_set() {
            node.check(names::dns_subdomain);
        }
        let topology = endpoint.child("deprecatedTopology");
        if topology.len() > 16 {
            topology.too_many(16);
        }
        meta::labels(&topology);
        let host = endpoint.child("hostname");
        if host.is_set() {
            host.check(names::dns_label);
        }
        hints(&endpoint.child("hints"));
    }
}

fn slice_address(at: &Field, address: &Field, kind: &str) {
    let wanted = match kind {
        "IPv4" => false,
        "IPv6" => true,
        "FQDN" => return net::qualified_domain(address),
        _ => return,
    };
    let before = address.noted();
    net::ip(address, &[]);
    if address.noted() > before {
        return;
    }
    if address.text().contains(':') != wanted {
        at.refuse(address.text(), format!("must be an {kind} address"));
    }
    net::endpoint_ip(address);
}

fn hints(at: &Field) {
    for list in [at.child("forZones"), at.child("forNodes")] {
        if list.len() > 8 {
            return list.too_many(8);
        }
        let mut seen: Vec<&str> = Vec::new();
        for hint in list.items() {
            let name = hint.child("name");
            if seen.contains(&name.text()) {
                name.duplicate_of(name.text());
            } else {
                seen.push(name.text());
            }
            name.check(if list.is("forZones") { names::label_value } else { names::dns_subdomain });
        }
    }
}

/// Endpoints, new or changed.
pub(super) fn validate_endpoints(endpoints: &Field, old: Option<&Value>) {
    let subsets = endpoints.child("subsets");
    if old.is_some_and(|old| old.get("subsets").unwrap_or(&Value::Null) == subsets.value) {
        return;
    }
    for subset in subsets.items() {
        let (ready, unready) = (subset.child("addresses"), subset.child("notReadyAddresses"));
        if ready.len() == 0 && unready.len() == 0 {
            subset.required("must specify `addresses` or `notReadyAddresses`");
        }
        for addresses in [ready, unready] {
            addresses.items().for_each(|address| endpoint_address(&address));
        }
        let ports = subset.child("ports");
        for port in ports.items() {
            let name = port.child("name");
            if name.text().is_empty() {
                if ports.len() > 1 {
                    name.required("");
                }
            } else {
                name.check(names::dns_label);
            }
            port.child("port").check_int(names::port_number);
            port.child("protocol").one_of_required(&PROTOCOLS);
            let application = port.child("appProtocol");
            if application.is_set() {
                application.check(names::label_key);
            }
        }
    }
}

fn endpoint_address(at: &Field) {
    let ip = at.child("ip");
    net::ip(&ip.with(&Value::from(ip.text())), &[]);
    at.child("hostname").check_given(names::dns_label);
    let node = at.child("nodeName");
    if node.is_set() {
        node.check(names::dns_subdomain);
    }
    net::endpoint_ip(&ip);
}
