//! Services.

mod prepare;
mod rules;

pub(super) use prepare::{prepare_create, prepare_update};
pub(super) use rules::{ingress_points, validate, validate_status};

use crate::value::Value;

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
