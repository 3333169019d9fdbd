//! The routers of a canary, each in its exact form.

use super::given;
use crate::{
    api,
    model::{
        path::At,
        problem::{Code, Notes},
        traffic::{
            Alb, Ambassador, Apisix, AppMesh, DestinationRule, Ingresses, Istio, Nginx, Plugin, Router, Smi, TlsRoute,
            Traefik, VirtualNodes, VirtualService,
        },
        weight::MaxWeight,
    },
};

const NGINX_PREFIX: &str = "nginx.ingress.kubernetes.io";
const ALB_PREFIX: &str = "alb.ingress.kubernetes.io";

/// What counts as all of the traffic, as Argo Rollouts' own checks of weights have it: even if it is zero.
pub fn argo_max_weight(wire: &api::CanaryStrategy) -> i32 {
    wire.traffic_routing.as_ref().and_then(|routing| routing.max_traffic_weight).unwrap_or(100)
}

/// What counts as all of the traffic.
pub fn max_weight(wire: &api::RolloutTrafficRouting, at: &At, notes: &mut Notes) -> Option<MaxWeight> {
    let Some(parts) = wire.max_traffic_weight else { return Some(MaxWeight::PERCENT) };
    let at = at.key("maxTrafficWeight");
    if wire.nginx.is_none() && !wire.has_plugin() {
        let words = at.invalid(parts, "Canary maxTrafficWeight in traffic routing only supported in Nginx and Plugins");
        let what = "this router counts traffic in hundredths";
        notes.argo(&at, Code::MaxTrafficWeight, words, what, "remove maxTrafficWeight");
        return None;
    }
    let max = MaxWeight::new(parts);
    if max.is_none() {
        let what = format!("{parts} parts cannot be divided");
        notes.ours(&at, Code::MaxTrafficWeightZero, what, "use a number above zero, or leave it out");
    }
    max
}

/// The names of routes that steps may make.
pub fn managed_routes(wire: &api::RolloutTrafficRouting, at: &At, notes: &mut Notes) -> Vec<String> {
    let at = at.key("managedRoutes");
    let mut names: Vec<String> = Vec::new();
    for (index, route) in wire.managed_routes.iter().enumerate() {
        if names.contains(&route.name) {
            let what = format!("{:?} is listed before", route.name);
            let item = at.index(index);
            notes.ours(&item.key("name"), Code::ManagedRouteTwice, what, "remove the second mention");
        } else {
            names.push(route.name.clone());
        }
    }
    names
}

/// Rules that Argo Rollouts checks only when it looks the routers' objects up.
pub fn check_objects(wire: &api::RolloutTrafficRouting, at: &At, notes: &mut Notes) {
    if notes.argo_reported() {
        notes.argo_stops();
    }
    if let Some(nginx) = &wire.nginx {
        let one = !nginx.stable_ingress.is_empty();
        let choice =
            Choice { one, many: !nginx.stable_ingresses.is_empty(), fields: ["stableIngress", "stableIngresses"] };
        check_ingresses(&choice, ["StableIngress", "StableIngresses"], &at.key("nginx"), notes);
    }
    if let Some(alb) = &wire.alb {
        let choice =
            Choice { one: !alb.ingress.is_empty(), many: !alb.ingresses.is_empty(), fields: ["ingress", "ingresses"] };
        check_ingresses(&choice, ["Ingress", "Ingresses"], &at.key("alb"), notes);
    }
    if let Some(istio) = &wire.istio
        && istio.virtual_services.is_empty() != istio.virtual_service.is_some()
    {
        let at = at.key("istio");
        let words = canary_field(&at).internal("either VirtualService or VirtualServices must be configured");
        let what = both_or_neither(istio.virtual_service.is_some(), ["virtualService", "virtualServices"]);
        let remedy = "keep one of virtualService and virtualServices";
        notes.argo(&at, Code::RouterVirtualService, words, what, remedy);
    }
    notes.argo_resumes();
}

/// Here, unlike in its other checks, Argo Rollouts does name `canary` in its paths.
struct CanaryField(String);

fn canary_field(at: &At) -> CanaryField {
    CanaryField(at.path().to_string())
}

impl CanaryField {
    fn internal(&self, detail: &str) -> crate::model::problem::Words {
        let error = crate::kubernetes::status::FieldError::internal(self.0.as_str(), detail);
        crate::model::problem::Words::Field(error)
    }
}

/// Which of a single and a plural field are given.
struct Choice {
    one: bool,
    many: bool,
    fields: [&'static str; 2],
}

fn both_or_neither(given: bool, [one, many]: [&str; 2]) -> String {
    if given { format!("{one} and {many} are both given") } else { format!("neither {one} nor {many} is given") }
}

fn check_ingresses(choice: &Choice, [one, many]: [&str; 2], at: &At, notes: &mut Notes) {
    if choice.one != choice.many {
        return;
    }
    let count = if choice.one { "Both" } else { "Neither" };
    let words =
        canary_field(at).internal(&format!("Either {one} or {many} must be configured. {count} are configured."));
    let what = both_or_neither(choice.one, choice.fields);
    let remedy = format!("keep one of {} and {}", choice.fields[0], choice.fields[1]);
    notes.argo(at, Code::RouterIngress, words, what, remedy);
}

/// The routers, in the order in which Argo Rollouts tells them. `None` if one of them cannot work.
pub fn routers(wire: &api::RolloutTrafficRouting, at: &At, notes: &mut Notes) -> Option<Vec<Router>> {
    let before = notes.len();
    let mut routers: Vec<Option<Router>> = Vec::new();
    routers.extend(wire.istio.as_ref().map(|istio| self::istio(istio, &at.key("istio"), notes)));
    routers.extend(wire.nginx.as_ref().map(nginx));
    routers.extend(wire.alb.as_ref().map(alb));
    routers.extend(wire.smi.as_ref().map(|smi| {
        Some(Router::Smi(Smi { root_service: given(&smi.root_service), traffic_split: given(&smi.traffic_split_name) }))
    }));
    routers.extend(wire.ambassador.as_ref().map(|mesh| ambassador(mesh, &at.key("ambassador"), notes)));
    routers.extend(wire.app_mesh.as_ref().map(|mesh| app_mesh(mesh, &at.key("appMesh"), notes)));
    routers.extend(wire.traefik.as_ref().map(|traefik| self::traefik(traefik, &at.key("traefik"), notes)));
    routers.extend(wire.apisix.as_ref().map(|apisix| self::apisix(apisix, &at.key("apisix"), notes)));
    routers.extend(wire.gateway_api.as_ref().map(|gateway| Some(Router::Gateway(Box::new(gateway.clone())))));
    routers.extend(
        wire.plugins
            .iter()
            .map(|(name, config)| Some(Router::Plugin(Plugin { name: name.clone(), config: config.clone() }))),
    );
    if routers.is_empty() {
        let what = "no router is named, so nothing moves the traffic";
        notes.ours(at, Code::RouterMissing, what, "name a router, or remove trafficRouting");
    } else if routers.len() > 1 && notes.len() == before {
        let what = format!("{} routers get the same weights", routers.len());
        notes.ours(at, Code::RoutersSeveral, what, "keep the one that carries the traffic, unless all do");
    }
    routers.into_iter().collect()
}

/// A router's object must have a name.
fn named(name: &str, at: &At, what: &str, notes: &mut Notes) -> Option<String> {
    if name.is_empty() {
        notes.ours(at, Code::RouterObject, format!("the {what} has no name"), format!("name the {what}"));
    }
    given(name)
}

fn istio(wire: &api::IstioTrafficRouting, at: &At, notes: &mut Notes) -> Option<Router> {
    let mut virtual_services = Vec::new();
    if let Some(one) = &wire.virtual_service {
        virtual_services.push(virtual_service(one, &at.key("virtualService"), notes));
    }
    let list_at = at.key("virtualServices");
    for (index, one) in wire.virtual_services.iter().enumerate() {
        virtual_services.push(virtual_service(one, &list_at.index(index), notes));
    }
    let destination_rule = wire.destination_rule.as_ref().map(|rule| DestinationRule {
        name: rule.name.clone(),
        canary_subset: rule.canary_subset_name.clone(),
        stable_subset: rule.stable_subset_name.clone(),
        additional_subsets: rule.additional_subset_names.clone(),
    });
    let virtual_services = virtual_services.into_iter().collect::<Option<_>>()?;
    Some(Router::Istio(Istio { virtual_services, destination_rule }))
}

fn virtual_service(wire: &api::IstioVirtualService, at: &At, notes: &mut Notes) -> Option<VirtualService> {
    let tls = |route: &api::TlsRoute| TlsRoute { port: route.port, sni_hosts: route.sni_hosts.clone() };
    Some(VirtualService {
        given: named(&wire.name, &at.key("name"), "VirtualService", notes)?,
        http: wire.routes.clone(),
        tls: wire.tls_routes.iter().map(tls).collect(),
        tcp: wire.tcp_routes.iter().map(|route| route.port).collect(),
    })
}

fn ingresses(one: &str, many: &[String]) -> Option<Ingresses> {
    match (one, many) {
        ("", []) => None,
        ("", names) => Some(Ingresses::Many(names.to_vec())),
        (name, []) => Some(Ingresses::One(name.to_owned())),
        (_, _) => None,
    }
}

fn nginx(wire: &api::NginxTrafficRouting) -> Option<Router> {
    Some(Router::Nginx(Nginx {
        annotation_prefix: given(&wire.annotation_prefix).unwrap_or_else(|| NGINX_PREFIX.to_owned()),
        ingresses: ingresses(&wire.stable_ingress, &wire.stable_ingresses)?,
        additional_annotations: wire.additional_ingress_annotations.clone(),
        canary_annotations: wire.canary_ingress_annotations.clone(),
    }))
}

fn alb(wire: &api::AlbTrafficRouting) -> Option<Router> {
    let stickiness = wire.stickiness_config.as_ref().filter(|config| config.enabled);
    Some(Router::Alb(Alb {
        ingresses: ingresses(&wire.ingress, &wire.ingresses)?,
        service_port: wire.service_port,
        root_service: given(&wire.root_service),
        annotation_prefix: given(&wire.annotation_prefix).unwrap_or_else(|| ALB_PREFIX.to_owned()),
        stickiness: stickiness.map(|config| jiff::SignedDuration::from_secs(config.duration_seconds)),
    }))
}

fn ambassador(wire: &api::AmbassadorTrafficRouting, at: &At, notes: &mut Notes) -> Option<Router> {
    if wire.mappings.is_empty() {
        let remedy = "name the Mappings that lead to the stable Service";
        notes.ours(&at.key("mappings"), Code::RouterObject, "there are no mappings", remedy);
        return None;
    }
    Some(Router::Ambassador(Ambassador { mappings: wire.mappings.clone() }))
}

fn app_mesh(wire: &api::AppMeshTrafficRouting, at: &At, notes: &mut Notes) -> Option<Router> {
    let service_at = at.key("virtualService");
    let service = wire.virtual_service.clone().unwrap_or_default();
    let name = named(&service.name, &service_at.key("name"), "VirtualService", notes)?;
    let node = |reference: &Option<api::AppMeshVirtualNodeReference>| reference.clone().unwrap_or_default().name;
    let nodes = wire.virtual_node_group.as_ref().map(|group| VirtualNodes {
        canary: node(&group.canary_virtual_node_ref),
        stable: node(&group.stable_virtual_node_ref),
    });
    Some(Router::AppMesh(AppMesh { virtual_service: name, routes: service.routes, nodes }))
}

fn traefik(wire: &api::TraefikTrafficRouting, at: &At, notes: &mut Notes) -> Option<Router> {
    let at = at.key("weightedTraefikServiceName");
    let service = named(&wire.weighted_traefik_service_name, &at, "TraefikService", notes)?;
    Some(Router::Traefik(Traefik { service }))
}

fn apisix(wire: &api::ApisixTrafficRouting, at: &At, notes: &mut Notes) -> Option<Router> {
    let at = at.key("route");
    let route = wire.route.clone().unwrap_or_default();
    let name = named(&route.name, &at.key("name"), "ApisixRoute", notes)?;
    Some(Router::Apisix(Apisix { route: name, rules: route.rules }))
}
