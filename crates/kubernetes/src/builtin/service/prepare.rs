//! The addresses of Services: cluster IPs, families, node ports; what they get, keep and give up.

use super::{
    CLUSTER_IP, CLUSTER_IPS, FAMILIES, HEALTH_PORT, POLICY, has_health_port, has_node_ports, is_balanced, is_exposed,
    is_external_name, is_headless, rules, text,
};
use crate::{
    builtin::{Context, addresses::Refusal, field::judge, keep, net},
    status::{FieldError, Status},
    value::Value,
};

/// A new Service gets its addresses.
pub(crate) fn prepare_create(service: &mut Value, context: &Context<'_>) -> Result<(), Status> {
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
pub(crate) fn prepare_update(service: &mut Value, old: &Value, context: &Context<'_>) -> Result<(), Status> {
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
    let problems = judge(service, |service| rules::cluster_ips(service, old));
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
            Err(Refusal::Taken) => "provided IP is already allocated",
            Err(Refusal::OutOfRange) => "the provided network does not match the current range",
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
                (Some(_), _) => claim(service, context, i, wanted, &taken)?,
                (None, Some(wanted)) => claim(service, context, i, wanted, &taken)?,
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

fn claim(service: &Value, context: &Context<'_>, i: usize, port: i64, taken: &[i64]) -> Result<i64, Status> {
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
    let unbalanced = is_balanced(old) && !is_balanced(service);
    for (gone, field) in [
        (has_health_port(old) && !has_health_port(service), "healthCheckNodePort"),
        (unbalanced, "allocateLoadBalancerNodePorts"),
        (unbalanced, "loadBalancerClass"),
        (is_exposed(old) && !is_exposed(service), "externalTrafficPolicy"),
    ] {
        if gone && same(service, &["spec", field]) {
            service.remove_at(&["spec", field]);
        }
    }
    if !is_balanced(service) && service.at(&["status", "loadBalancer", "ingress"]).is_some() {
        service.set_at(&["status", "loadBalancer"], Value::object());
    }
}

fn refuse(service: &Value, problems: &[FieldError]) -> Status {
    Status::invalid("", "Service", service.str_at(&["metadata", "name"]).unwrap_or_default(), problems)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin::Addresses, value};

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
