//! The kinds of objects that routers read, and the versions in which they are spoken.

use serde::{Deserialize, Serialize};

use crate::{
    api::Rollout,
    kubernetes::value::{Text, Value},
};

/// A kind of object that a router reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// An Ingress.
    Ingress,
    /// A TrafficSplit of the Service Mesh Interface.
    TrafficSplit,
    /// A TraefikService.
    TraefikService,
    /// A VirtualService of Istio.
    VirtualService,
    /// A DestinationRule of Istio.
    DestinationRule,
    /// A Mapping of Ambassador.
    Mapping,
    /// A route of Apache APISIX.
    ApisixRoute,
    /// A VirtualService of App Mesh.
    MeshService,
    /// A VirtualRouter of App Mesh.
    MeshRouter,
    /// A VirtualNode of App Mesh.
    MeshNode,
    /// An HTTPRoute of the Gateway API.
    HttpRoute,
    /// A GRPCRoute of the Gateway API.
    GrpcRoute,
    /// A TCPRoute of the Gateway API.
    TcpRoute,
    /// A TLSRoute of the Gateway API.
    TlsRoute,
    /// A Service, whose ports are read.
    Service,
}

/// The group of Istio.
const ISTIO: &str = "networking.istio.io";
/// The group of App Mesh.
const APP_MESH: &str = "appmesh.k8s.aws";
/// The group of the Gateway API.
const GATEWAY: &str = "gateway.networking.k8s.io";
/// The group of Ambassador before version 3.
const AMBASSADOR_X: &str = "x.getambassador.io";

impl Kind {
    /// Its API group.
    pub fn group(self, apis: &Apis) -> &str {
        match self {
            Kind::Ingress => "networking.k8s.io",
            Kind::TrafficSplit => "split.smi-spec.io",
            Kind::TraefikService => &apis.traefik.group,
            Kind::VirtualService | Kind::DestinationRule => ISTIO,
            Kind::Mapping => &apis.ambassador.group,
            Kind::ApisixRoute => "apisix.apache.org",
            Kind::MeshService | Kind::MeshRouter | Kind::MeshNode => APP_MESH,
            Kind::HttpRoute | Kind::GrpcRoute | Kind::TcpRoute | Kind::TlsRoute => GATEWAY,
            Kind::Service => "",
        }
    }

    /// The version that is read and written.
    pub fn version(self, apis: &Apis) -> &str {
        match self {
            Kind::Ingress | Kind::HttpRoute | Kind::GrpcRoute | Kind::Service => "v1",
            Kind::TrafficSplit => apis.smi.as_str(),
            Kind::TraefikService => &apis.traefik.version,
            Kind::VirtualService | Kind::DestinationRule => &apis.istio,
            Kind::Mapping => &apis.ambassador.version,
            Kind::ApisixRoute => "v2",
            Kind::MeshService | Kind::MeshRouter | Kind::MeshNode => &apis.app_mesh,
            Kind::TcpRoute => apis.tcp_route.as_str(),
            Kind::TlsRoute => apis.tls_route.as_str(),
        }
    }

    /// The versions in which a server may have it, the best first; several only where the kind has moved.
    pub fn versions(self, apis: &Apis) -> Vec<&str> {
        match self {
            Kind::TcpRoute => vec!["v1", "v1alpha2"],
            Kind::TlsRoute => vec!["v1", "v1alpha3", "v1alpha2"],
            Kind::Ingress
            | Kind::TrafficSplit
            | Kind::TraefikService
            | Kind::VirtualService
            | Kind::DestinationRule
            | Kind::Mapping
            | Kind::ApisixRoute
            | Kind::MeshService
            | Kind::MeshRouter
            | Kind::MeshNode
            | Kind::HttpRoute
            | Kind::GrpcRoute
            | Kind::Service => vec![self.version(apis)],
        }
    }

    /// Its name in paths.
    pub fn plural(self, apis: &Apis) -> &'static str {
        match self {
            Kind::Ingress => "ingresses",
            Kind::TrafficSplit => "trafficsplits",
            Kind::TraefikService => "traefikservices",
            Kind::VirtualService | Kind::MeshService => "virtualservices",
            Kind::DestinationRule => "destinationrules",
            Kind::Mapping if apis.ambassador.group == AMBASSADOR_X => "ambassadormappings",
            Kind::Mapping => "mappings",
            Kind::ApisixRoute => "apisixroutes",
            Kind::MeshRouter => "virtualrouters",
            Kind::MeshNode => "virtualnodes",
            Kind::HttpRoute => "httproutes",
            Kind::GrpcRoute => "grpcroutes",
            Kind::TcpRoute => "tcproutes",
            Kind::TlsRoute => "tlsroutes",
            Kind::Service => "services",
        }
    }

    /// Its name in manifests.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Ingress => "Ingress",
            Kind::TrafficSplit => "TrafficSplit",
            Kind::TraefikService => "TraefikService",
            Kind::VirtualService | Kind::MeshService => "VirtualService",
            Kind::DestinationRule => "DestinationRule",
            Kind::Mapping => "Mapping",
            Kind::ApisixRoute => "ApisixRoute",
            Kind::MeshRouter => "VirtualRouter",
            Kind::MeshNode => "VirtualNode",
            Kind::HttpRoute => "HTTPRoute",
            Kind::GrpcRoute => "GRPCRoute",
            Kind::TcpRoute => "TCPRoute",
            Kind::TlsRoute => "TLSRoute",
            Kind::Service => "Service",
        }
    }

    /// What Argo Rollouts calls one that does not exist.
    pub fn not_found(self, apis: &Apis, name: &str) -> String {
        match (self, self.group(apis)) {
            // Read through a cache, which calls it by one.
            (Kind::Ingress, _) => format!("ingress.networking.k8s.io \"{name}\" not found"),
            (_, "") => format!("{} \"{name}\" not found", self.plural(apis)),
            (_, group) => format!("{}.{group} \"{name}\" not found", self.plural(apis)),
        }
    }
}

/// The versions of routers' APIs that are spoken; those of Argo Rollouts if nothing else is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Apis {
    /// Of TrafficSplits.
    pub smi: SmiVersion,
    /// Of Istio.
    pub istio: Text,
    /// Of Traefik.
    pub traefik: GroupVersion,
    /// Of Ambassador.
    pub ambassador: GroupVersion,
    /// Of App Mesh.
    pub app_mesh: Text,
    /// The newest version of TCPRoutes that the server has.
    pub tcp_route: RouteVersion,
    /// The newest version of TLSRoutes that the server has.
    pub tls_route: RouteVersion,
}

impl Default for Apis {
    fn default() -> Apis {
        Apis {
            smi: SmiVersion::default(),
            istio: "v1alpha3".into(),
            traefik: GroupVersion { group: "traefik.io".into(), version: "v1alpha1".into() },
            ambassador: GroupVersion { group: "getambassador.io".into(), version: "v2".into() },
            app_mesh: "v1beta2".into(),
            tcp_route: RouteVersion::default(),
            tls_route: RouteVersion::default(),
        }
    }
}

impl Apis {
    /// Whether they are what they are if the operator says nothing.
    pub fn are_usual(&self) -> bool {
        *self == Apis::default()
    }

    /// The same, with the versions of Gateway API routes that a server has.
    pub fn served(&self, is_served: impl Fn(Kind, RouteVersion) -> bool) -> Apis {
        let newest = |kind, versions: &[RouteVersion]| {
            versions.iter().copied().find(|version| is_served(kind, *version)).unwrap_or_default()
        };
        Apis {
            tcp_route: newest(Kind::TcpRoute, &[RouteVersion::V1, RouteVersion::V1Alpha2]),
            tls_route: newest(Kind::TlsRoute, &[RouteVersion::V1, RouteVersion::V1Alpha3, RouteVersion::V1Alpha2]),
            ..self.clone()
        }
    }
}

/// A group and a version of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupVersion {
    /// The group.
    pub group: Text,
    /// The version.
    pub version: Text,
}

impl GroupVersion {
    /// Reads `group/version`; a version alone is one of `group`.
    pub fn read(text: &str, group: &str) -> GroupVersion {
        let (group, version) = text.rsplit_once('/').unwrap_or((group, text));
        GroupVersion { group: group.into(), version: version.into() }
    }
}

/// A version of TrafficSplits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SmiVersion {
    /// Weights are quantities.
    #[default]
    V1Alpha1,
    /// Weights are numbers.
    V1Alpha2,
    /// The same, with more of what is not ours.
    V1Alpha3,
}

impl SmiVersion {
    /// As paths spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            SmiVersion::V1Alpha1 => "v1alpha1",
            SmiVersion::V1Alpha2 => "v1alpha2",
            SmiVersion::V1Alpha3 => "v1alpha3",
        }
    }

    /// Reads what paths spell.
    pub fn read(text: &str) -> Option<SmiVersion> {
        [SmiVersion::V1Alpha1, SmiVersion::V1Alpha2, SmiVersion::V1Alpha3].into_iter().find(|one| one.as_str() == text)
    }
}

/// A version of TCPRoutes and TLSRoutes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteVersion {
    /// Of the standard channel.
    #[default]
    V1,
    /// Of TLSRoutes only.
    V1Alpha3,
    /// Of the experimental channel.
    V1Alpha2,
}

impl RouteVersion {
    /// As paths spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            RouteVersion::V1 => "v1",
            RouteVersion::V1Alpha3 => "v1alpha3",
            RouteVersion::V1Alpha2 => "v1alpha2",
        }
    }
}

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Id {
    /// Of which kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: Text,
    /// Its name; empty for all of the namespace.
    pub name: Text,
}

impl Id {
    /// One in the namespace of a Rollout.
    pub(super) fn beside(rollout: &Rollout, kind: Kind, name: &str) -> Id {
        Id { kind, namespace: rollout.metadata.namespace.as_str().into(), name: name.into() }
    }

    /// Whether it stands for all objects of a namespace: which of them matters is not known before they are seen.
    pub fn is_every(&self) -> bool {
        self.name.is_empty()
    }
}

/// An object of a router, as it was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Routed {
    /// Of which kind; items of a list do not say so themselves.
    pub kind: Kind,
    /// The whole of it.
    pub object: Value,
}

impl Routed {
    pub(super) fn id(&self) -> Id {
        let text = |key: &str| self.object.at(&["metadata", key]).and_then(Value::as_text).cloned().unwrap_or_default();
        Id { kind: self.kind, namespace: text("namespace"), name: text("name") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_argo_rollouts_reads_its_flags() {
        for (text, group, version) in [
            ("getambassador.io/v3alpha1", "getambassador.io", "v3alpha1"),
            ("v2", "getambassador.io", "v2"),
            ("x.getambassador.io/v3alpha1", "x.getambassador.io", "v3alpha1"),
        ] {
            let expected = GroupVersion { group: group.into(), version: version.into() };
            assert_eq!(GroupVersion::read(text, "getambassador.io"), expected, "{text}");
        }
        assert_eq!(SmiVersion::read("v1alpha2"), Some(SmiVersion::V1Alpha2));
        assert_eq!(SmiVersion::read("v1alpha4"), None);
    }

    #[test]
    fn the_newest_served_version_of_a_route_is_spoken() {
        let versions = |served: &[RouteVersion]| {
            let apis = Apis::default().served(|_, version| served.contains(&version));
            (apis.tcp_route, apis.tls_route)
        };
        use RouteVersion::{V1, V1Alpha2, V1Alpha3};
        assert_eq!(versions(&[V1, V1Alpha2, V1Alpha3]), (V1, V1));
        assert_eq!(versions(&[V1Alpha2, V1Alpha3]), (V1Alpha2, V1Alpha3));
        assert_eq!(versions(&[V1Alpha2]), (V1Alpha2, V1Alpha2));
        assert_eq!(versions(&[]), (V1, V1));
    }
}
