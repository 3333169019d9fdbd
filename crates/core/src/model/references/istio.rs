//! VirtualServices of Istio: whether the routes that a Rollout manages lead to its versions.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::Finding;
use crate::{
    api,
    kubernetes::value::Value,
    model::{
        problem::{Code, Notes},
        refers,
    },
};

/// A route as far as it matters. Anything of another type makes the routes unreadable.
#[derive(Deserialize)]
struct Route {
    name: Option<String>,
    r#match: Option<Vec<Option<Match>>>,
    route: Option<Vec<Option<Target>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Match {
    port: Option<i64>,
    sni_hosts: Option<Vec<Option<String>>>,
}

#[derive(Deserialize)]
struct Target {
    destination: Option<Destination>,
    #[serde(rename = "weight")]
    _weight: Option<i64>,
}

#[derive(Deserialize)]
struct Destination {
    host: Option<String>,
    subset: Option<String>,
    #[serde(rename = "port")]
    _port: Option<Port>,
}

#[derive(Deserialize)]
struct Port {
    #[serde(rename = "number")]
    _number: Option<u32>,
}

pub fn check(rollout: &api::Rollout, object: &Value, notes: &mut Notes) {
    let canary = rollout.spec.strategy.canary.as_ref();
    let istio = canary.and_then(|canary| canary.traffic_routing.as_ref()).and_then(|routing| routing.istio.as_ref());
    let (Some(canary), Some(istio)) = (canary, istio) else {
        let field = "spec.strategy.canary.trafficRouting.istio";
        let finding = Finding { field, value: &rollout.metadata.name, code: Code::IstioMissing };
        let detail = "Rollout object is not configured with Istio traffic routing";
        return finding.note(detail, "the Rollout does not use Istio", "add trafficRouting.istio", notes);
    };
    let (field, services) = match istio.virtual_services.as_slice() {
        [] => ("virtualService", istio.virtual_service.as_slice()),
        several => ("virtualServices", several),
    };
    let name = super::name(object);
    let Some(service) = services.iter().find(|service| refers::virtual_service(&service.name).name == name) else {
        return;
    };
    let checker = Checker {
        rollout,
        canary,
        istio,
        service,
        field: &format!("spec.strategy.canary.trafficRouting.istio.{field}.name"),
        name,
    };
    checker.object(object, notes);
}

/// What is wrong with the routes of one list (`http`, `tls`, `tcp`) of a VirtualService, if something is.
pub fn check_routes(
    rollout: &api::Rollout,
    service: &api::IstioVirtualService,
    list: &str,
    routes: &Value,
) -> Result<(), String> {
    let canary = rollout.spec.strategy.canary.as_ref();
    let istio = canary.and_then(|canary| canary.traffic_routing.as_ref()).and_then(|routing| routing.istio.as_ref());
    let (Some(canary), Some(istio)) = (canary, istio) else { return Ok(()) };
    let checker = Checker { rollout, canary, istio, service, field: "", name: "" };
    let read: Vec<Option<Route>> = serde_json::from_value(routes.into()).map_err(|error| error.to_string())?;
    let none = || Route { name: None, r#match: None, route: None };
    let routes: Vec<Route> = read.into_iter().map(|route| route.unwrap_or_else(none)).collect();
    match list {
        "http" => checker.http(&routes),
        "tls" => checker.tls(&routes),
        _ => checker.tcp(&routes),
    }
}

struct Checker<'c> {
    rollout: &'c api::Rollout,
    canary: &'c api::CanaryStrategy,
    istio: &'c api::IstioTrafficRouting,
    service: &'c api::IstioVirtualService,
    field: &'c str,
    name: &'c str,
}

impl Checker<'_> {
    fn object(&self, object: &Value, notes: &mut Notes) {
        let list = |kind: &str| object.at(&["spec", kind]).filter(|list| list.as_list().is_some());
        if ["http", "tls", "tcp"].into_iter().all(|kind| list(kind).is_none()) {
            let detail = "Unable to get any of the HTTP, TCP or TLS routes for the Istio VirtualService";
            self.note(detail, "it has no routes at all", "add spec.http, spec.tls or spec.tcp", notes);
        }
        for (kind, upper) in [("http", "HTTP"), ("tls", "TLS"), ("tcp", "TCP")] {
            let Some(list) = list(kind) else { continue };
            let Ok(routes) = serde_json::from_value::<Vec<Option<Route>>>(list.into()) else {
                let detail = format!("Unable to get {upper} routes for Istio VirtualService");
                self.note(
                    &detail,
                    &format!("its {upper} routes cannot be read"),
                    "correct the types of its fields",
                    notes,
                );
                continue;
            };
            let none = || Route { name: None, r#match: None, route: None };
            let routes: Vec<Route> = routes.into_iter().map(|route| route.unwrap_or_else(none)).collect();
            let checked = match kind {
                "http" => self.http(&routes),
                "tls" => self.tls(&routes),
                _ => self.tcp(&routes),
            };
            if let Err(error) = checked {
                let detail = format!("Istio VirtualService has invalid {upper} routes. Error: {error}");
                let remedy = "let each managed route lead to the stable and to the canary";
                self.note(&detail, &error, remedy, notes);
            }
        }
    }

    fn note(&self, detail: &str, what: &str, remedy: &str, notes: &mut Notes) {
        let finding = Finding { field: self.field, value: self.name, code: Code::VirtualServiceRoutes };
        finding.note(detail, format!("the VirtualService {:?}: {what}", self.name), remedy, notes);
    }

    fn http(&self, routes: &[Route]) -> Result<(), String> {
        let wanted = &self.service.routes;
        let mut chosen: Vec<&Route> = Vec::new();
        if wanted.is_empty() {
            match routes {
                [one] => chosen.push(one),
                several => chosen.extend(several.iter().find(|route| route.name().is_empty())),
            }
        }
        for name in wanted {
            let found = routes.iter().find(|route| route.name() == name);
            chosen.push(
                found.ok_or_else(|| format!("HTTP Route '{name}' is not found in the defined Virtual Service."))?,
            );
        }
        chosen.into_iter().try_for_each(|route| self.destinations(route))?;
        let managed: &[api::ManagedRoute] =
            self.canary.traffic_routing.as_ref().map_or(&[], |routing| &routing.managed_routes);
        let others = routes.iter().filter(|route| !managed.iter().any(|managed| managed.name == route.name()));
        if wanted.is_empty() && others.count() > 1 {
            return Err(
                "spec.http[] should be set in VirtualService and it must have exactly one route when omitting \
                        spec.strategy.canary.trafficRouting.istio.virtualService.routes"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn tls(&self, routes: &[Route]) -> Result<(), String> {
        let wanted = &self.service.tls_routes;
        let matches = |route: &Route, wanted: &api::TlsRoute| {
            let hosts: BTreeSet<&str> = route.hosts().collect();
            let listed: BTreeSet<&str> = wanted.sni_hosts.iter().map(String::as_str).collect();
            let same = wanted.sni_hosts.len() == hosts.len() && hosts.is_subset(&listed);
            route.port() == Some(wanted.port) && same
        };
        self.by_match(routes, wanted, matches, ["TLS", "tls", "tlsRoutes"])
    }

    fn tcp(&self, routes: &[Route]) -> Result<(), String> {
        let matches = |route: &Route, wanted: &api::TcpRoute| route.port() == Some(wanted.port);
        self.by_match(routes, &self.service.tcp_routes, matches, ["TCP", "tcp", "tcpRoutes"])
    }

    /// Routes without names, chosen by what they match.
    fn by_match<W>(
        &self,
        routes: &[Route],
        wanted: &[W],
        matches: impl Fn(&Route, &W) -> bool,
        [upper, list, field]: [&str; 3],
    ) -> Result<(), String> {
        let mut chosen: Vec<&Route> = Vec::new();
        if wanted.is_empty() {
            // Argo Rollouts falls over an empty list here.
            chosen.push(routes.first().ok_or_else(|| format!("spec.{list}[] is empty"))?);
        }
        for wanted in wanted {
            let before = chosen.len();
            chosen.extend(routes.iter().filter(|route| matches(route, wanted)));
            if chosen.len() == before {
                return Err(format!("No matching {upper} routes found in the defined Virtual Service."));
            }
        }
        chosen.into_iter().try_for_each(|route| self.destinations(route))?;
        if wanted.is_empty() && routes.len() > 1 {
            return Err(format!(
                "spec.{list}[] should be set in VirtualService and it must have exactly one route when omitting \
                 spec.strategy.canary.trafficRouting.istio.virtualService.{field}"
            ));
        }
        Ok(())
    }

    fn destinations(&self, route: &Route) -> Result<(), String> {
        let targets: Vec<&Destination> =
            route.route.iter().flatten().flatten().filter_map(|target| target.destination.as_ref()).collect();
        if let Some(rule) = &self.istio.destination_rule {
            let leads_to = |subset: &str| {
                !subset.is_empty() && targets.iter().any(|target| target.subset.as_deref() == Some(subset))
            };
            for (role, subset) in [("Canary", &rule.canary_subset_name), ("Stable", &rule.stable_subset_name)] {
                if !leads_to(subset) {
                    return Err(format!("{role} DestinationRule subset '{subset}' not found in route"));
                }
            }
            return Ok(());
        }
        let (stable, canary) = self.services();
        let leads_to = |service: &str| !service.is_empty() && targets.iter().any(|target| target.service() == service);
        for (role, service) in [("Canary", canary), ("Stable", stable)] {
            if !leads_to(service) {
                return Err(format!("{role} Service '{service}' not found in route"));
            }
        }
        Ok(())
    }

    /// The stable and the canary Service; those of ping-pong if there are no others.
    fn services(&self) -> (&str, &str) {
        let (stable, canary) = (&self.canary.stable_service, &self.canary.canary_service);
        match &self.canary.ping_pong {
            Some(services) if stable.is_empty() && canary.is_empty() => {
                let (ping, pong) = (&services.ping_service, &services.pong_service);
                match self.rollout.status.canary.stable_ping_pong.as_str() {
                    "ping" => (ping, pong),
                    _ => (pong, ping),
                }
            }
            _ => (stable, canary),
        }
    }
}

impl Route {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    fn matches(&self) -> impl Iterator<Item = &Match> {
        self.r#match.iter().flatten().flatten()
    }

    /// The one port that the route matches, 0 if it matches any; `None` if there are several.
    fn port(&self) -> Option<i64> {
        let ports: BTreeSet<i64> = self.matches().map(|one| one.port.unwrap_or(0)).collect();
        (ports.len() <= 1).then(|| ports.first().copied().unwrap_or(0))
    }

    fn hosts(&self) -> impl Iterator<Item = &str> {
        self.matches().flat_map(|one| one.sni_hosts.iter().flatten()).map(|host| host.as_deref().unwrap_or_default())
    }
}

impl Destination {
    /// The Service of a host: what stands before the first dot.
    fn service(&self) -> &str {
        let host = self.host.as_deref().unwrap_or_default();
        host.split_once('.').map_or(host, |(service, _)| service)
    }
}
