//! Services: their addresses, and the rules for what they expose.

use super::{
    Context,
    addresses::Refusal,
    field::{Field, judge},
    gostruct, keep, meta, net, pod,
};
use crate::embedded::{
    names,
    status::{FieldError, Status},
    value::Value,
};

const CLUSTER_IP: [&str; 2] = ["spec", "clusterIP"];
const CLUSTER_IPS: [&str; 2] = ["spec", "clusterIPs"];
const FAMILIES: [&str; 2] = ["spec", "ipFamilies"];
const POLICY: [&str; 2] = ["spec", "ipFamilyPolicy"];
const HEALTH_PORT: [&str; 2] = ["spec", "healthCheckNodePort"];

fn text<'v>(service: &'v Value, field: &str) -> &'v str {
    service.str_at(&["spec", field]).unwrap_or_default()
}

fn is_external_name(service: &Value) -> bool {
    text(service, "type") == "ExternalName"
}

fn is_balanced(service: &Value) -> bool {
    text(service, "type") == "LoadBalancer"
}

fn has_node_ports(service: &Value) -> bool {
    matches!(text(service, "type"), "NodePort" | "LoadBalancer")
}

fn is_headless(service: &Value) -> bool {
    matches!(service.list_at(&CLUSTER_IPS), [ip] if ip.as_str() == Some("None"))
}

fn has_health_port(service: &Value) -> bool {
    is_balanced(service) && text(service, "externalTrafficPolicy") == "Local"
}

fn is_exposed(service: &Value) -> bool {
    let named = !service.list_at(&["spec", "externalIPs"]).is_empty();
    has_node_ports(service) || (text(service, "type") == "ClusterIP" && named)
}

fn refuse(service: &Value, problems: &[FieldError]) -> Status {
    Status::invalid("", "Service", service.str_at(&["metadata", "name"]).unwrap_or_default(), problems)
}

/// A new Service gets its addresses.
pub fn prepare_create(service: &mut Value, context: &Context<'_>) -> Result<(), Status> {
    let ip = text(service, "clusterIP").to_owned();
    if !ip.is_empty() && service.list_at(&CLUSTER_IPS).is_empty() {
        service.set_at(&CLUSTER_IPS, Value::list([ip.into()]));
    }
    choose_families(service, None)?;
    choose_ip(service, context)?;
    choose_ports(service, context)?;
    service.set_at(&["status"], crate::value!({"loadBalancer": {}}));
    drop_internal_policy(service);
    Ok(())
}

/// An alias has no traffic of its own.
fn drop_internal_policy(service: &mut Value) {
    if is_external_name(service) {
        service.remove_at(&["spec", "internalTrafficPolicy"]);
    }
}

/// A changed Service keeps its addresses, or gets and gives up those that go with its type.
pub fn prepare_update(service: &mut Value, old: &Value, context: &Context<'_>) -> Result<(), Status> {
    if context.subresource == "status" {
        keep(service, old, &["spec"]);
        return Ok(());
    }
    keep(service, old, &["status"]);
    if service.get("spec").zip(old.get("spec")).is_some_and(|(new, old)| new.is(old)) {
        return Ok(());
    }
    patch_addresses(service, old);
    follow_cluster_ip(service, old);
    choose_families(service, Some(old))?;
    if is_external_name(old) {
        choose_ip(service, context)?;
    }
    if has_node_ports(service) {
        update_ports(service, old, context)?;
    }
    if has_health_port(service) && !has_health_port(old) {
        choose_health_port(service, context, &[])?;
    }
    drop_what_went_with_the_type(service, old);
    drop_internal_policy(service);
    Ok(())
}

/// Takes over what a client that writes a whole Service cannot know.
fn patch_addresses(service: &mut Value, old: &Value) {
    if !is_external_name(old) && !is_external_name(service) {
        if text(service, "clusterIP").is_empty() {
            keep(service, old, &CLUSTER_IP);
        }
        if service.list_at(&CLUSTER_IPS).is_empty() {
            keep(service, old, &CLUSTER_IPS);
        }
    }
    if has_node_ports(old) && has_node_ports(service) {
        let (before, now) = (old.list_at(&["spec", "ports"]), service.list_at(&["spec", "ports"]));
        let held = |ports: &[Value], number: i64| ports.iter().any(|port| node_port(port) == number);
        let mut ports = now.to_vec();
        for port in ports.iter_mut().filter(|port| node_port(port) == 0) {
            let same = before.iter().rfind(|old| old.str_at(&["name"]) == port.str_at(&["name"]));
            let number = same.map_or(0, node_port);
            if number != 0 && !held(now, number) {
                port.set_at(&["nodePort"], number);
            }
        }
        if !ports.is_empty() {
            service.set_at(&["spec", "ports"], ports);
        }
    }
    if has_health_port(old) && has_health_port(service) && service.int_at(&HEALTH_PORT).unwrap_or(0) == 0 {
        keep(service, old, &HEALTH_PORT);
    }
}

/// A client that changes only `clusterIP` means the first of `clusterIPs`.
fn follow_cluster_ip(service: &mut Value, old: &Value) {
    let (before, now) = (text(old, "clusterIP"), text(service, "clusterIP").to_owned());
    if before == now || service.list_at(&CLUSTER_IPS) != old.list_at(&CLUSTER_IPS) {
        return;
    }
    if now.is_empty() {
        service.remove_at(&CLUSTER_IPS);
    } else {
        service.set_at(&CLUSTER_IPS, Value::list([now.into()]));
    }
}

/// `ipFamilies` and `ipFamilyPolicy` of a cluster that has IPv4 only.
fn choose_families(service: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    if is_external_name(service) {
        return Ok(());
    }
    let selectorless = service.at(&["spec", "selector"]).and_then(Value::as_map).is_none_or(|map| map.is_empty());
    let both = text(service, "clusterIP") == "None" && selectorless;
    if service.at(&POLICY).is_none() {
        match old.and_then(|old| old.at(&POLICY)) {
            Some(policy) => service.set_at(&POLICY, policy),
            None => service.set_at(&POLICY, if both { "RequireDualStack" } else { "SingleStack" }),
        }
    }
    let problems = judge(service, |service| cluster_ips(service, old));
    if !problems.is_empty() {
        return Err(refuse(service, &problems));
    }
    let policy = text(service, "ipFamilyPolicy").to_owned();
    let (ips, families) = (service.list_at(&CLUSTER_IPS), service.list_at(&FAMILIES));
    let mut problems = Vec::new();
    if policy == "SingleStack" {
        for (count, what) in [(ips.len(), "cluster IPs"), (families.len(), "IP families")] {
            if count == 2 {
                let why = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
                problems.push(FieldError::invalid("spec.ipFamilyPolicy", policy.as_str(), why));
            }
        }
    }
    let mut families = families.to_vec();
    for (i, ip) in ips.iter().enumerate().skip(families.len()) {
        let ip = ip.as_str().unwrap_or_default();
        if ip == "None" {
            break;
        }
        if ip.contains(':') {
            let at = format!("spec.clusterIPs[{i}]");
            problems.push(FieldError::invalid(at, ips.to_vec(), "IPv6 is not configured on this cluster"));
        } else {
            families.push("IPv4".into());
        }
    }
    if !problems.is_empty() {
        return Err(refuse(service, &problems));
    }
    if both {
        if families.is_empty() {
            families.push("IPv4".into());
        }
        if families.len() < 2 && policy != "SingleStack" {
            families.push(if families[0].as_str() == Some("IPv4") { "IPv6" } else { "IPv4" }.into());
        }
        service.set_at(&FAMILIES, families);
        return Ok(());
    }
    if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        problems.push(FieldError::invalid("spec.ipFamilyPolicy", policy.as_str(), why));
    }
    for (i, family) in families.iter().enumerate().filter(|(_, family)| family.as_str() != Some("IPv4")) {
        problems.push(FieldError::invalid(format!("spec.ipFamilies[{i}]"), family, "not configured on this cluster"));
    }
    if !problems.is_empty() {
        return Err(refuse(service, &problems));
    }
    if families.is_empty() {
        families.push("IPv4".into());
    }
    if service.list_at(&FAMILIES) != families {
        service.set_at(&FAMILIES, families);
    }
    Ok(())
}

fn choose_ip(service: &mut Value, context: &Context<'_>) -> Result<(), Status> {
    if is_external_name(service) || is_headless(service) {
        return Ok(());
    }
    if let Some(wanted) = service.list_at(&CLUSTER_IPS).first().and_then(Value::as_str) {
        let ip = match net::parse_ip(wanted) {
            Some(std::net::IpAddr::V4(ip)) => ip,
            _ => return Ok(()), // refused already
        };
        let why = match context.addresses.ask_ip(ip) {
            Ok(()) => return Ok(()),
            Err(Refusal::Taken) => "provided IP is already allocated".to_owned(),
            Err(Refusal::OutOfRange) => {
                format!("the provided IP ({ip}) is not in the valid range. The range of valid IPs is 10.96.0.0/16")
            }
        };
        let ips = service.list_at(&CLUSTER_IPS).to_vec();
        let problem = FieldError::invalid("spec.clusterIPs", ips, format!("failed to allocate IP {wanted}: {why}"));
        return Err(refuse(service, &[problem]));
    }
    let Some(ip) = context.addresses.choose_ip(context.seed) else {
        return Err(Status::internal("failed to allocate a serviceIP: range is full"));
    };
    let ip = Value::from(ip.to_string());
    service.set_at(&CLUSTER_IP, &ip);
    service.set_at(&CLUSTER_IPS, Value::list([ip]));
    Ok(())
}

fn node_port(port: &Value) -> i64 {
    port.int_at(&["nodePort"]).unwrap_or(0)
}

fn allocates_ports(service: &Value) -> bool {
    !is_balanced(service) || service.at(&["spec", "allocateLoadBalancerNodePorts"]) != Some(&Value::Bool(false))
}

fn port_refused(service: &Value, i: usize, port: i64, refusal: Refusal) -> Status {
    refuse(service, &[FieldError::invalid(format!("spec.ports[{i}].nodePort"), port, port_words(refusal))])
}

fn port_words(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Taken => "provided port is already allocated",
        Refusal::OutOfRange => "provided port is not in the valid range. The range of valid ports is 30000-32767",
    }
}

fn full() -> Status {
    Status::internal("failed to allocate a nodePort: range is full")
}

/// The node ports of a new Service: the same port over another protocol shares one.
fn choose_ports(service: &mut Value, context: &Context<'_>) -> Result<(), Status> {
    let mut taken: Vec<i64> = Vec::new();
    if has_node_ports(service) {
        let mut ports = service.list_at(&["spec", "ports"]).to_vec();
        let asked: Vec<(i64, i64)> =
            ports.iter().map(|port| (port.int_at(&["port"]).unwrap_or(0), node_port(port))).collect();
        let mut chosen: Vec<(i64, i64)> = Vec::new();
        for (i, port) in ports.iter_mut().enumerate() {
            let (number, wanted) = asked[i];
            if wanted == 0 && !allocates_ports(service) {
                continue;
            }
            let shared = chosen.iter().find(|(port, _)| *port == number).map(|(_, node)| *node);
            let sibling = asked.iter().find(|(port, node)| *port == number && *node != 0).map(|(_, node)| *node);
            let node = match (shared, sibling) {
                (Some(shared), _) if wanted == 0 || wanted == shared => shared,
                (Some(_), _) => claim(service, context, i, wanted, &mut taken)?,
                (None, Some(wanted)) => claim(service, context, i, wanted, &mut taken)?,
                (None, None) => {
                    let seed = context.seed.wrapping_add(i as u64);
                    i64::from(context.addresses.choose_port(seed, &taken).ok_or_else(full)?)
                }
            };
            taken.push(node);
            if shared.is_none() {
                chosen.push((number, node));
            }
            port.set_at(&["nodePort"], node);
        }
        if !ports.is_empty() {
            service.set_at(&["spec", "ports"], ports);
        }
    }
    if has_health_port(service) {
        choose_health_port(service, context, &taken)?;
    }
    Ok(())
}

fn claim(service: &Value, context: &Context<'_>, i: usize, port: i64, taken: &mut Vec<i64>) -> Result<i64, Status> {
    let free = if taken.contains(&port) { Err(Refusal::Taken) } else { context.addresses.ask_port(port) };
    free.map(|()| port).map_err(|refusal| port_refused(service, i, port, refusal))
}

fn choose_health_port(service: &mut Value, context: &Context<'_>, taken: &[i64]) -> Result<(), Status> {
    let wanted = service.int_at(&HEALTH_PORT).unwrap_or(0);
    if wanted == 0 {
        let seed = context.seed.rotate_left(32);
        let port = context.addresses.choose_port(seed, taken).ok_or_else(full)?;
        service.set_at(&HEALTH_PORT, i64::from(port));
        return Ok(());
    }
    context.addresses.ask_port(wanted).map_err(|refusal| {
        let why = port_words(refusal);
        Status::internal(format!("failed to allocate requested HealthCheck NodePort {wanted}: {why}"))
    })
}

/// The node ports of a Service that had some already, or has now.
fn update_ports(service: &mut Value, old: &Value, context: &Context<'_>) -> Result<(), Status> {
    let held: Vec<i64> = old.list_at(&["spec", "ports"]).iter().map(node_port).filter(|port| *port != 0).collect();
    let mut ports = service.list_at(&["spec", "ports"]).to_vec();
    let mut taken: Vec<i64> = ports.iter().map(node_port).filter(|port| *port != 0).collect();
    let mut claimed: Vec<i64> = Vec::new();
    for (i, port) in ports.iter_mut().enumerate() {
        let wanted = node_port(port);
        if wanted == 0 && allocates_ports(service) {
            let seed = context.seed.wrapping_add(i as u64);
            let node = i64::from(context.addresses.choose_port(seed, &taken).ok_or_else(full)?);
            taken.push(node);
            port.set_at(&["nodePort"], node);
        } else if wanted != 0 && !held.contains(&wanted) && !claimed.contains(&wanted) {
            context.addresses.ask_port(wanted).map_err(|refusal| port_refused(service, i, wanted, refusal))?;
            claimed.push(wanted);
        }
    }
    if !ports.is_empty() {
        service.set_at(&["spec", "ports"], ports);
    }
    Ok(())
}

/// Fields that only the old type had go away, if the client did not touch them.
fn drop_what_went_with_the_type(service: &mut Value, old: &Value) {
    let same = |service: &Value, path: &[&str]| service.at(path) == old.at(path);
    if !is_external_name(old) && is_external_name(service) {
        if same(service, &CLUSTER_IP) && same(service, &CLUSTER_IPS) {
            service.remove_at(&CLUSTER_IP);
            service.remove_at(&CLUSTER_IPS);
        }
        for path in [FAMILIES, POLICY] {
            if same(service, &path) {
                service.remove_at(&path);
            }
        }
    }
    if has_node_ports(old) && !has_node_ports(service) {
        let held: Vec<i64> = old.list_at(&["spec", "ports"]).iter().map(node_port).collect();
        let mut ports = service.list_at(&["spec", "ports"]).to_vec();
        if !ports.is_empty() && ports.iter().all(|port| node_port(port) == 0 || held.contains(&node_port(port))) {
            ports.iter_mut().for_each(|port| _ = port.remove_at(&["nodePort"]));
            service.set_at(&["spec", "ports"], ports);
        }
    }
    let gone = |had: fn(&Value) -> bool, service: &Value| had(old) && !had(service);
    let fields: [(fn(&Value) -> bool, &str); 4] = [
        (has_health_port, "healthCheckNodePort"),
        (is_balanced, "allocateLoadBalancerNodePorts"),
        (is_balanced, "loadBalancerClass"),
        (is_exposed, "externalTrafficPolicy"),
    ];
    for (had, field) in fields {
        if gone(had, service) && same(service, &["spec", field]) {
            service.remove_at(&["spec", field]);
        }
    }
    if !is_balanced(service) && service.at(&["status", "loadBalancer", "ingress"]).is_some() {
        service.set_at(&["status", "loadBalancer"], Value::object());
    }
}

/// A Service, new or changed.
pub fn validate(service: &Field, old: Option<&Value>) {
    let spec = service.child("spec");
    if let Some(old) = old {
        if old.get("spec").is_some_and(|old| old.is(spec.value)) {
            return;
        }
        changes(&spec, service.value, old);
    }
    kind_of_service(&spec, service.value);
    ports(&spec, is_headless(service.value));
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

fn ports(spec: &Field, _headless: bool) {
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
fn cluster_ips(service: &Field, old: Option<&Value>) {
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
    if !is_external_name(service) && !is_external_name(old) && !(is_headless(old) && is_headless(service)) {
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
pub fn validate_status(service: &Field, old: &Value) {
    let (spec, status) = (service.child("spec"), service.child("status"));
    let balancer = status.child("loadBalancer");
    let at = balancer.child("ingress");
    if spec.child("type").text() != "LoadBalancer" {
        if at.len() > 0 {
            at.forbidden("may only be used when `spec.type` is 'LoadBalancer'");
        }
        return;
    }
    ingress_points(&at, old);
    for point in at.items() {
        let (ip, mode) = (point.child("ip"), point.child("ipMode"));
        match (ip.text().is_empty(), mode.is_set()) {
            (false, false) => mode.required("must be specified when `ip` is set"),
            (true, true) => mode.forbidden("may not be specified when `ip` is not set"),
            (false, true) => mode.one_of(&["Proxy", "VIP"]),
            (true, false) => {}
        }
    }
}

/// Where a load balancer listens.
pub fn ingress_points(at: &Field, old: &Value) {
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
        if !host.text().is_empty() {
            host.check(names::dns_subdomain);
            if net::parse_ip(host.text()).is_some() {
                host.invalid("must be a DNS name, not an IP address");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{embedded::builtin::Addresses, value};

    fn context<'a>(addresses: &'a Addresses, seed: u64) -> Context<'a> {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        Context { now, uid: "u".into(), subresource: "", seed, addresses, look: &|_, _| Vec::new() }
    }

    fn service(spec: serde_json::Value) -> Value {
        value!({"metadata": {"name": "a"}, "spec": spec})
    }

    /// What becomes of a new Service where `taken` exist, by seed 0.
    #[track_caller]
    fn check_create(taken: &[Value], spec: serde_json::Value, outcome: Result<serde_json::Value, &str>) {
        let mut addresses = Addresses::default();
        taken.iter().for_each(|service| addresses.take(service));
        let mut created = service(spec);
        let result = prepare_create(&mut created, &context(&addresses, 0));
        let ours = result.map(|()| created.get("spec").cloned().unwrap()).map_err(|status| status.message);
        assert_eq!(ours, outcome.map(Value::from).map_err(str::to_owned));
    }

    #[test]
    fn a_new_service_gets_free_addresses() {
        let first = service(serde_json::json!({"clusterIPs": ["10.96.1.0"], "ports": [{"nodePort": 30086}]}));
        let taken = std::slice::from_ref(&first);
        check_create(
            taken,
            serde_json::json!({"type": "ClusterIP"}),
            Ok(serde_json::json!({"type": "ClusterIP", "clusterIP": "10.96.1.1", "clusterIPs": ["10.96.1.1"],
                                  "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"})),
        );
        check_create(
            taken,
            serde_json::json!({"type": "NodePort", "clusterIP": "10.96.9.9",
                "ports": [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}, {"port": 81}]}),
            Ok(serde_json::json!({"type": "NodePort", "clusterIP": "10.96.9.9", "clusterIPs": ["10.96.9.9"],
                "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30087}, {"port": 80, "protocol": "UDP", "nodePort": 30087},
                          {"port": 81, "nodePort": 30088}]})),
        );
        check_create(
            taken,
            serde_json::json!({"clusterIP": "10.96.1.0"}),
            Err("Service \"a\" is invalid: spec.clusterIPs: Invalid value: [\"10.96.1.0\"]: \
                 failed to allocate IP 10.96.1.0: provided IP is already allocated"),
        );
        check_create(
            taken,
            serde_json::json!({"type": "NodePort", "ports": [{"port": 80}, {"port": 81, "nodePort": 30086}]}),
            Err("Service \"a\" is invalid: spec.ports[1].nodePort: Invalid value: 30086: \
                 provided port is already allocated"),
        );
        check_create(
            taken,
            serde_json::json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}),
            Err("Service \"a\" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the \
                 valid range. The range of valid ports is 30000-32767"),
        );
        check_create(
            taken,
            serde_json::json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30086}),
            Err("Internal error occurred: failed to allocate requested HealthCheck NodePort 30086: \
                 provided port is already allocated"),
        );
    }

    #[test]
    fn a_whole_write_keeps_the_addresses_it_does_not_name() {
        let old = service(
            serde_json::json!({"type": "NodePort", "clusterIP": "10.96.1.7", "clusterIPs": ["10.96.1.7"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "ports": [{"name": "a", "port": 80, "nodePort": 30100}]}),
        );
        let mut addresses = Addresses::default();
        addresses.take(&old);
        let mut new = service(serde_json::json!({"type": "NodePort",
            "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}));
        prepare_update(&mut new, &old, &context(&addresses, 14)).unwrap();
        let mut expected = old.clone();
        expected.set_at(
            &["spec", "ports"],
            value!([{"name": "a", "port": 80, "nodePort": 30100}, {"name": "b", "port": 81, "nodePort": 30101}]),
        );
        assert_eq!(new, expected);
    }
}
