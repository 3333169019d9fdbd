//! What splits the traffic between the versions.
//!
//! Never reads or writes a router's objects: that is `route`'s.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{strategy::AfterAbort, weight::MaxWeight};
use crate::{api::GatewayTrafficRouting, kubernetes::value::Value};

/// How traffic is split, and what follows from it for the pods.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// The routers, in the order in which they are told. Usually one.
    pub routers: Vec<Router>,
    /// The routes that steps may make, the first having precedence.
    pub managed_routes: Vec<String>,
    /// What counts as all of the traffic.
    pub max_weight: MaxWeight,
    /// What becomes of the old version's pods.
    pub old_pods: OldPods,
    /// What becomes of the new version's pods after an abort.
    pub after_abort: AfterAbort,
}

/// What becomes of the old version's pods as traffic moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldPods {
    /// They stay until all traffic has moved, and for this time after it.
    StayFor(SignedDuration),
    /// They go with the traffic.
    FollowTraffic,
}

/// One router.
#[derive(Debug, Clone, PartialEq)]
pub enum Router {
    /// Istio.
    Istio(Istio),
    /// The nginx ingress controller.
    Nginx(Nginx),
    /// The AWS load balancer controller.
    Alb(Alb),
    /// The Service Mesh Interface.
    Smi(Smi),
    /// Ambassador.
    Ambassador(Ambassador),
    /// AWS App Mesh.
    AppMesh(AppMesh),
    /// Traefik.
    Traefik(Traefik),
    /// Apache APISIX.
    Apisix(Apisix),
    /// The Gateway API, as it was given: which routes there are is known once they are seen.
    Gateway(Box<GatewayTrafficRouting>),
    /// A plugin.
    Plugin(Plugin),
}

/// Istio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Istio {
    /// The VirtualServices with the weights.
    pub virtual_services: Vec<VirtualService>,
    /// The DestinationRule with the subsets. Without it, the versions are told apart by host.
    pub destination_rule: Option<DestinationRule>,
}

/// A VirtualService and the routes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualService {
    /// As it was given: `name` or `name.namespace`.
    pub given: String,
    /// Which HTTP routes; if it has only one, that one.
    pub http: Vec<String>,
    /// Which TLS routes.
    pub tls: Vec<TlsRoute>,
    /// Which TCP routes, by port.
    pub tcp: Vec<i64>,
}

/// A TLS route, by what it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsRoute {
    /// Its port; 0 for any.
    pub port: i64,
    /// Its hosts.
    pub sni_hosts: Vec<String>,
}

/// A DestinationRule and the subsets in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationRule {
    /// Its name.
    pub name: String,
    /// The subset of the new version.
    pub canary_subset: String,
    /// The subset of the stable version.
    pub stable_subset: String,
    /// Subsets of an experiment's versions.
    pub additional_subsets: Vec<String>,
}

/// The nginx ingress controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nginx {
    /// What the controller's annotations begin with.
    pub annotation_prefix: String,
    /// The Ingresses of the stable Service.
    pub ingresses: Ingresses,
    /// What else to write into the canary's Ingress, behind the prefix.
    pub additional_annotations: BTreeMap<String, String>,
    /// What else to write into the canary's Ingress, as it is.
    pub canary_annotations: BTreeMap<String, String>,
}

/// The Ingresses a router works with. One or several matters for the names of what is made from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ingresses {
    /// One.
    One(String),
    /// A list.
    Many(Vec<String>),
}

impl Ingresses {
    /// Their names.
    pub fn names(&self) -> &[String] {
        match self {
            Ingresses::One(name) => std::slice::from_ref(name),
            Ingresses::Many(names) => names,
        }
    }
}

/// The AWS load balancer controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alb {
    /// The Ingresses.
    pub ingresses: Ingresses,
    /// The port of the Services.
    pub service_port: i32,
    /// The Service that the Ingress names as its backend; the stable one if not said.
    pub root_service: Option<String>,
    /// What the controller's annotations begin with.
    pub annotation_prefix: String,
    /// How long a client stays with the version it met first.
    pub stickiness: Option<SignedDuration>,
}

/// The Service Mesh Interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Smi {
    /// The Service that clients use; the stable one if not said.
    pub root_service: Option<String>,
    /// What to call the TrafficSplit; as the Rollout if not said.
    pub traffic_split: Option<String>,
}

/// Ambassador.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambassador {
    /// The Mappings of the stable Service.
    pub mappings: Vec<String>,
}

/// AWS App Mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppMesh {
    /// The VirtualService whose VirtualRouter has the weights.
    pub virtual_service: String,
    /// Which routes of that router; all if there is none here.
    pub routes: Vec<String>,
    /// The VirtualNodes of the versions.
    pub nodes: Option<VirtualNodes>,
}

/// The VirtualNodes of the versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualNodes {
    /// Of the new version.
    pub canary: String,
    /// Of the stable version.
    pub stable: String,
}

/// Traefik.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traefik {
    /// The TraefikService with the weights.
    pub service: String,
}

/// Apache APISIX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apisix {
    /// The ApisixRoute.
    pub route: String,
    /// Which of its rules; if it has only one, that one.
    pub rules: Vec<String>,
}

/// A router by plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Plugin {
    /// The plugin.
    pub name: String,
    /// What to tell it.
    pub config: Value,
}
