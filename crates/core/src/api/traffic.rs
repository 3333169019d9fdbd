//! The routers a canary can move traffic with.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{crd, is_zero};
use crate::kubernetes::value::Value;

/// What splits the traffic. Several may be given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutTrafficRouting {
    /// Istio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub istio: Option<IstioTrafficRouting>,
    /// The nginx ingress controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nginx: Option<NginxTrafficRouting>,
    /// The AWS load balancer controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alb: Option<AlbTrafficRouting>,
    /// The Service Mesh Interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smi: Option<SmiTrafficRouting>,
    /// Ambassador.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ambassador: Option<AmbassadorTrafficRouting>,
    /// AWS App Mesh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_mesh: Option<AppMeshTrafficRouting>,
    /// Traefik.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traefik: Option<TraefikTrafficRouting>,
    /// The routes that steps may make, the first having precedence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_routes: Vec<ManagedRoute>,
    /// Apache APISIX.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apisix: Option<ApisixTrafficRouting>,
    /// The Gateway API; the same settings as those of the plugin `argoproj-labs/gatewayAPI`, which are taken as well.
    #[serde(rename = "gatewayAPI", skip_serializing_if = "Option::is_none")]
    pub gateway_api: Option<GatewayTrafficRouting>,
    /// Routers by plugin, each with its own settings.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crd::any_object")]
    pub plugins: BTreeMap<String, Value>,
    /// What counts as all of the traffic; 100 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_traffic_weight: Option<i32>,
}

impl RolloutTrafficRouting {
    /// Whether a plugin routes, or the Gateway API, which is one to Argo Rollouts.
    pub fn has_plugin(&self) -> bool {
        !self.plugins.is_empty() || self.gateway_api.is_some()
    }
}

/// A route that steps may make.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedRoute {
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub name: String,
}

/// The AWS load balancer controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AlbTrafficRouting {
    /// The Ingress.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ingress: String,
    /// The port of the Services that the Ingress routes to.
    #[schemars(extend("x-required" = true))]
    pub service_port: i32,
    /// The Service that the Ingress names as its backend; the stable one if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub root_service: String,
    /// What the controller's annotations begin with; `alb.ingress.kubernetes.io` if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub annotation_prefix: String,
    /// Whether a client stays with the version it met first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stickiness_config: Option<StickinessConfig>,
    /// Several Ingresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ingresses: Vec<String>,
}

/// Whether a client stays with the version it met first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct StickinessConfig {
    /// It does.
    #[schemars(extend("x-required" = true))]
    pub enabled: bool,
    /// For how long.
    #[schemars(extend("x-required" = true))]
    pub duration_seconds: i64,
}

/// Traefik.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TraefikTrafficRouting {
    /// The TraefikService with the weights.
    #[schemars(extend("x-required" = true))]
    pub weighted_traefik_service_name: String,
}

/// Apache APISIX.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ApisixTrafficRouting {
    /// The route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<ApisixRoute>,
}

/// A route of Apache APISIX.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ApisixRoute {
    /// The ApisixRoute.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// Which of its rules; if it has only one, that one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

/// Routes of the Gateway API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GatewayTrafficRouting {
    /// An HTTPRoute; steps may add rules by header to it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub http_route: String,
    /// A GRPCRoute; steps may add rules by header to it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub grpc_route: String,
    /// A TCPRoute.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tcp_route: String,
    /// A TLSRoute.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tls_route: String,
    /// Several HTTPRoutes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http_routes: Vec<GatewayRoute>,
    /// Several GRPCRoutes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grpc_routes: Vec<GatewayRoute>,
    /// Several TCPRoutes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tcp_routes: Vec<GatewayRoute>,
    /// Several TLSRoutes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tls_routes: Vec<GatewayRoute>,
    /// All HTTPRoutes of the namespace with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object")]
    pub http_route_selector: Option<Value>,
    /// All GRPCRoutes of the namespace with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object")]
    pub grpc_route_selector: Option<Value>,
    /// All TCPRoutes of the namespace with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object")]
    pub tcp_route_selector: Option<Value>,
    /// All TLSRoutes of the namespace with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object")]
    pub tls_route_selector: Option<Value>,
    /// The namespace of the routes; the Rollout's if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Whether routes are left without the label that says that they carry weights for a canary.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disable_in_progress_label: bool,
    /// The key of that label; `rollouts.argoproj.io/gatewayapi-canary` if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub in_progress_label_key: String,
    /// Its value; `in-progress` if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub in_progress_label_value: String,
    /// Whether steps do not wait until the gateways have accepted the routes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skip_verification: bool,
}

/// A route of the Gateway API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GatewayRoute {
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// Whether steps may add rules by header to it; only those of HTTP and gRPC can have such.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub use_header_routes: bool,
}

/// Ambassador.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AmbassadorTrafficRouting {
    /// The Mappings of the stable Service.
    #[schemars(extend("x-required" = true))]
    pub mappings: Vec<String>,
}

/// The Service Mesh Interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SmiTrafficRouting {
    /// The Service that clients use; the stable one if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub root_service: String,
    /// What to call the TrafficSplit; as the Rollout if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub traffic_split_name: String,
}

/// The nginx ingress controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NginxTrafficRouting {
    /// What the controller's annotations begin with; `nginx.ingress.kubernetes.io` if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub annotation_prefix: String,
    /// The Ingress of the stable Service.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stable_ingress: String,
    /// What else to write into the canary's Ingress, behind the prefix.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub additional_ingress_annotations: BTreeMap<String, String>,
    /// Several Ingresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stable_ingresses: Vec<String>,
    /// What else to write into the canary's Ingress, as it is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub canary_ingress_annotations: BTreeMap<String, String>,
}

/// Istio.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct IstioTrafficRouting {
    /// The VirtualService with the weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_service: Option<IstioVirtualService>,
    /// The DestinationRule with the subsets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_rule: Option<IstioDestinationRule>,
    /// Several VirtualServices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub virtual_services: Vec<IstioVirtualService>,
}

/// A VirtualService and the routes in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct IstioVirtualService {
    /// Its name, with `.namespace` if it is elsewhere.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// Which HTTP routes; if it has only one, that one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<String>,
    /// Which TLS routes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tls_routes: Vec<TlsRoute>,
    /// Which TCP routes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tcp_routes: Vec<TcpRoute>,
}

/// A TLS route, by what it matches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TlsRoute {
    /// Its port.
    #[serde(skip_serializing_if = "is_zero")]
    pub port: i64,
    /// Its hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sni_hosts: Vec<String>,
}

/// A TCP route, by what it matches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TcpRoute {
    /// Its port.
    #[serde(skip_serializing_if = "is_zero")]
    pub port: i64,
}

/// A DestinationRule and the subsets in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct IstioDestinationRule {
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// The subset of the new version.
    #[schemars(extend("x-required" = true))]
    pub canary_subset_name: String,
    /// The subset of the stable version.
    #[schemars(extend("x-required" = true))]
    pub stable_subset_name: String,
    /// Subsets of an experiment's versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_subset_names: Vec<String>,
}

/// AWS App Mesh.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AppMeshTrafficRouting {
    /// The VirtualService whose VirtualRouter has the weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_service: Option<AppMeshVirtualService>,
    /// The VirtualNodes of the versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_node_group: Option<AppMeshVirtualNodeGroup>,
}

/// A VirtualService of App Mesh.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AppMeshVirtualService {
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// Which routes of its router; all if not given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<String>,
}

/// The VirtualNodes of the versions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AppMeshVirtualNodeGroup {
    /// Of the new version.
    #[schemars(extend("x-required" = true))]
    pub canary_virtual_node_ref: Option<AppMeshVirtualNodeReference>,
    /// Of the stable version.
    #[schemars(extend("x-required" = true))]
    pub stable_virtual_node_ref: Option<AppMeshVirtualNodeReference>,
}

/// A VirtualNode.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AppMeshVirtualNodeReference {
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub name: String,
}
