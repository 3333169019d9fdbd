//! The objects that a Rollout's routers change: whether they have the routes it needs. One function per router.

use super::{
    Notes,
    index::{Index, Sort},
    name_of, plain,
    references::{look_up, look_up_in},
    rule::Code,
    spot, steps_of,
};
use crate::{
    api,
    kubernetes::value::Value,
    manifest::{Object, place::Step},
    model::{
        problem::Problem,
        references::{self, References},
    },
    route::{self, Leaf},
};

use Step::{Index as At, Key};

const INGRESS: Sort<'static> = Sort::new("networking.k8s.io", "Ingress");
const VIRTUAL_SERVICE: Sort<'static> = Sort::new("networking.istio.io", "VirtualService");
const DESTINATION_RULE: Sort<'static> = Sort::new("networking.istio.io", "DestinationRule");
const MAPPING: Sort<'static> = Sort::new("getambassador.io", "Mapping");
const TRAEFIK_SERVICE: Sort<'static> = Sort::new("traefik.io", "TraefikService");
const APISIX_ROUTE: Sort<'static> = Sort::new("apisix.apache.org", "ApisixRoute");
const MESH_SERVICE: Sort<'static> = Sort::new("appmesh.k8s.aws", "VirtualService");
const MESH_ROUTER: Sort<'static> = Sort::new("appmesh.k8s.aws", "VirtualRouter");
const MESH_NODE: Sort<'static> = Sort::new("appmesh.k8s.aws", "VirtualNode");

const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";
/// The kinds of routes of the Gateway API.
const GATEWAY_KINDS: [route::Kind; 4] =
    [route::Kind::HttpRoute, route::Kind::GrpcRoute, route::Kind::TcpRoute, route::Kind::TlsRoute];

/// Where a router stands in a Rollout.
const ROUTING: [&str; 4] = ["spec", "strategy", "canary", "trafficRouting"];

/// A Rollout, and what its routers need to know of it.
struct Routed<'a> {
    rollout: &'a Object,
    canary: &'a str,
    stable: &'a str,
}

/// Looks at the routers of a Rollout.
pub fn check(index: &Index<'_>, rollout: &Object, notes: &mut Notes) {
    let Some(routing) = rollout.value.at(&ROUTING) else { return };
    let service = |field: &str| rollout.value.str_at(&["spec", "strategy", "canary", field]).unwrap_or_default();
    let routed = Routed { rollout, canary: service("canaryService"), stable: service("stableService") };
    for row in &route::ROUTERS {
        let configured = routing.get(row.field).is_some();
        if row.leaf == Leaf::Gateway && (configured || routing.at(&["plugins", route::GATEWAY_PLUGIN]).is_some()) {
            gateway(index, &routed, configured, notes);
        }
        let Some(router) = routing.get(row.field) else { continue };
        match row.leaf {
            // Also by its plugin's settings.
            Leaf::Gateway => {}
            Leaf::Istio => istio(index, &routed, router, notes),
            Leaf::Nginx => ingresses(index, &routed, router, "nginx", ["stableIngress", "stableIngresses"], notes),
            Leaf::Alb => ingresses(index, &routed, router, "alb", ["ingress", "ingresses"], notes),
            // Its object is made.
            Leaf::Smi => {}
            Leaf::Ambassador => mappings(index, &routed, routing, notes),
            Leaf::AppMesh => app_mesh(index, &routed, routing, notes),
            Leaf::Traefik => traefik(index, &routed, routing, notes),
            Leaf::Apisix => apisix(index, &routed, routing, notes),
        }
    }
}

fn path<'a>(below: &[Step<'a>]) -> Vec<Step<'a>> {
    ROUTING.iter().map(|key| Key(key)).chain(below.iter().copied()).collect()
}

/// The names in a field that holds one, and in one that holds several.
fn names<'v>(
    router: &'v Value,
    router_key: &'static str,
    [one, several]: [&'static str; 2],
) -> Vec<(Vec<Step<'static>>, &'v str)> {
    let single = router.str_at(&[one]).map(|name| (path(&[Key(router_key), Key(one)]), name));
    let list = router.list_at(&[several]).iter().enumerate();
    let list = list.filter_map(|(i, name)| Some((path(&[Key(router_key), Key(several), At(i)]), name.as_str()?)));
    single.into_iter().chain(list).filter(|(_, name)| !name.is_empty()).collect()
}

fn ingresses(
    index: &Index<'_>,
    routed: &Routed<'_>,
    router: &Value,
    key: &'static str,
    fields: [&'static str; 2],
    notes: &mut Notes,
) {
    let root = router.str_at(&["rootService"]).filter(|name| !name.is_empty());
    let wanted = root.unwrap_or(routed.stable);
    for (path, name) in names(router, key, fields) {
        let Some(ingress) = look_up(index, routed.rollout, &path, INGRESS, name, notes) else { continue };
        let references = References { ingresses: vec![ingress.value.clone()], ..References::default() };
        if !wanted.is_empty() && !complaints(routed, &references).is_empty() {
            let what = format!("the Ingress {name} has no path that leads to the Service {wanted}");
            let finding = notes.say(routed.rollout, &path, Code::IngressBackend, what);
            finding.remedy = format!("add a rule with the backend {wanted} to the Ingress");
            finding.also.push((spot(ingress, &[Key("spec"), Key("rules")]), "the rules that there are".into()));
        }
    }
}

fn istio(index: &Index<'_>, routed: &Routed<'_>, istio: &Value, notes: &mut Notes) {
    let single = istio.get("virtualService").map(|service| (path(&[Key("istio"), Key("virtualService")]), service));
    let several = istio.list_at(&["virtualServices"]).iter().enumerate();
    let several = several.map(|(i, service)| (path(&[Key("istio"), Key("virtualServices"), At(i)]), service));
    let subsets = istio.get("destinationRule").map(|rule| {
        let subset = |field: &str| rule.str_at(&[field]).unwrap_or_default();
        (subset("canarySubsetName"), subset("stableSubsetName"))
    });
    for (path, service) in single.into_iter().chain(several) {
        let Some(given) = service.str_at(&["name"]).filter(|name| !name.is_empty()) else { continue };
        let (name, namespace) = given.split_once('.').unwrap_or((given, routed.rollout.namespace()));
        let namespace = namespace.split('.').next().unwrap_or_default();
        let name_path = [&path[..], &[Key("name")]].concat();
        let Some(found) = look_up_in(index, routed.rollout, &name_path, VIRTUAL_SERVICE, namespace, name, notes) else {
            continue;
        };
        // `model` decides whether something is amiss; what can be pointed at is named more exactly.
        let references = References { virtual_services: vec![found.value.clone()], ..References::default() };
        let before = notes.findings.len();
        if !complaints(routed, &references).is_empty() {
            virtual_service(routed, &path, service, found, subsets, notes);
            if notes.findings.len() == before {
                judge(routed, &references, found, notes);
            }
        }
    }
    let Some(rule) = istio.get("destinationRule") else { return };
    let at = path(&[Key("istio"), Key("destinationRule")]);
    let Some(name) = rule.str_at(&["name"]).filter(|name| !name.is_empty()) else { return };
    let Some(found) =
        look_up(index, routed.rollout, &[&at[..], &[Key("name")]].concat(), DESTINATION_RULE, name, notes)
    else {
        return;
    };
    for field in ["canarySubsetName", "stableSubsetName"] {
        let Some(subset) = rule.str_at(&[field]).filter(|name| !name.is_empty()) else { continue };
        if !found.value.list_at(&["spec", "subsets"]).iter().any(|known| known.str_at(&["name"]) == Some(subset)) {
            let what = format!("the DestinationRule {name} has no subset {subset}");
            let finding =
                notes.say(routed.rollout, &[&at[..], &[Key(field)]].concat(), Code::VirtualServiceRoutes, what);
            finding.remedy = "add the subset, with the labels that all pods have".into();
            finding.also.push((spot(found, &[Key("spec"), Key("subsets")]), "the subsets that there are".into()));
        }
    }
}

/// The routes that a Rollout names must be there, and lead to both versions.
fn virtual_service(
    routed: &Routed<'_>,
    path: &[Step<'_>],
    asked: &Value,
    found: &Object,
    subsets: Option<(&str, &str)>,
    notes: &mut Notes,
) {
    let routes = found.value.list_at(&["spec", "http"]);
    let wanted: Vec<(usize, &str)> =
        asked.list_at(&["routes"]).iter().enumerate().filter_map(|(i, name)| Some((i, name.as_str()?))).collect();
    for (i, name) in &wanted {
        let at = [path, &[Key("routes"), At(*i)]].concat();
        let Some((number, route)) = routes.iter().enumerate().find(|(_, route)| route.str_at(&["name"]) == Some(*name))
        else {
            let known: Vec<&str> = routes.iter().filter_map(|route| route.str_at(&["name"])).collect();
            let what = format!("the VirtualService {} has no HTTP route named {name}", found.name());
            let finding = notes.say(routed.rollout, &at, Code::VirtualServiceRoutes, what);
            finding.remedy = match super::similar::nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None if known.is_empty() => "name the route in the VirtualService".into(),
                None => format!("there are: {}", known.join(", ")),
            };
            finding.also.push((spot(found, &[Key("spec"), Key("http")]), "the routes that there are".into()));
            continue;
        };
        leads_to_both(routed, &at, found, number, route, subsets, notes);
    }
    let managed =
        routed.rollout.value.at(&ROUTING).map(|routing| routing.list_at(&["managedRoutes"])).unwrap_or_default();
    let own = |route: &&Value| {
        !managed.iter().any(|known| known.get("name").is_some() && known.get("name") == route.get("name"))
    };
    let tls_or_tcp = ["tlsRoutes", "tcpRoutes"].iter().any(|field| !asked.list_at(&[field]).is_empty());
    if wanted.is_empty() && !tls_or_tcp {
        let mut others = routes.iter().enumerate().filter(|(_, route)| own(route));
        match (others.next(), others.next()) {
            (Some(_), Some(_)) => {
                let what =
                    format!("the VirtualService {} has several HTTP routes, and none is named here", found.name());
                let finding =
                    notes.say(routed.rollout, &[path, &[Key("name")]].concat(), Code::VirtualServiceRoutes, what);
                finding.remedy = "list the routes under `routes`".into();
                finding.also.push((spot(found, &[Key("spec"), Key("http")]), "the routes that there are".into()));
            }
            (Some((number, route)), None) => {
                leads_to_both(routed, &[path, &[Key("name")]].concat(), found, number, route, subsets, notes);
            }
            (None, _) => {}
        }
    }
}

fn leads_to_both(
    routed: &Routed<'_>,
    at: &[Step<'_>],
    found: &Object,
    number: usize,
    route: &Value,
    subsets: Option<(&str, &str)>,
    notes: &mut Notes,
) {
    let destinations = || route.list_at(&["route"]).iter().filter_map(|entry| entry.get("destination"));
    let host = |wanted: &str| {
        // A host may be written with its namespace: `web.shop.svc.cluster.local`.
        destinations().any(|to| to.str_at(&["host"]).is_some_and(|host| host.split('.').next() == Some(wanted)))
    };
    let subset = |wanted: &str| destinations().any(|to| to.str_at(&["subset"]) == Some(wanted));
    let (canary, stable, word) = match subsets {
        Some((canary, stable)) => (canary, stable, "subset"),
        None => (routed.canary, routed.stable, "host"),
    };
    for wanted in [canary, stable].into_iter().filter(|name| !name.is_empty()) {
        let leads = if subsets.is_some() { subset(wanted) } else { host(wanted) };
        if !leads {
            let what = format!("the route of the VirtualService {} does not lead to the {word} {wanted}", found.name());
            let finding = notes.say(routed.rollout, at, Code::VirtualServiceRoutes, what);
            finding.remedy = format!("add a destination with the {word} {wanted} to the route");
            let route = [Key("spec"), Key("http"), At(number), Key("route")];
            finding.also.push((spot(found, &route), "the destinations that there are".into()));
        }
    }
}

fn mappings(index: &Index<'_>, routed: &Routed<'_>, routing: &Value, notes: &mut Notes) {
    for (i, name) in routing.list_at(&["ambassador", "mappings"]).iter().enumerate() {
        let Some(name) = name.as_str() else { continue };
        let at = path(&[Key("ambassador"), Key("mappings"), At(i)]);
        let Some(mapping) = look_up(index, routed.rollout, &at, MAPPING, name, notes) else { continue };
        if let Some(weight) = mapping.value.at(&["spec", "weight"]).filter(|weight| !weight.is_null()) {
            let what = format!("the base Mapping {name} has the weight {weight}");
            let finding = notes.say(mapping, &[Key("spec"), Key("weight")], Code::AmbassadorWeight, what);
            finding.remedy = "remove it: the weight is given to a second Mapping".into();
            finding.also.push((spot(routed.rollout, &at), format!("used by {}", name_of(routed.rollout))));
        }
    }
}

/// An object that must list both Services.
fn lists_both(routed: &Routed<'_>, at: &[Step<'_>], found: &Object, listed: &[&str], notes: &mut Notes) {
    for wanted in [routed.canary, routed.stable].into_iter().filter(|name| !name.is_empty()) {
        if !listed.contains(&wanted) {
            let what = format!("the {} {} does not lead to the Service {wanted}", found.kind(), found.name());
            notes.say(routed.rollout, at, Code::RouterObject, what).remedy = format!("add {wanted} to it");
        }
    }
}

fn traefik(index: &Index<'_>, routed: &Routed<'_>, routing: &Value, notes: &mut Notes) {
    let Some(name) = routing.str_at(&["traefik", "weightedTraefikServiceName"]).filter(|name| !name.is_empty()) else {
        return;
    };
    let at = path(&[Key("traefik"), Key("weightedTraefikServiceName")]);
    let Some(found) = look_up(index, routed.rollout, &at, TRAEFIK_SERVICE, name, notes) else { return };
    let listed: Vec<&str> =
        found.value.list_at(&["spec", "weighted", "services"]).iter().filter_map(|to| to.str_at(&["name"])).collect();
    lists_both(routed, &at, found, &listed, notes);
}

fn apisix(index: &Index<'_>, routed: &Routed<'_>, routing: &Value, notes: &mut Notes) {
    let Some(route) = routing.at(&["apisix", "route"]) else { return };
    let Some(name) = route.str_at(&["name"]).filter(|name| !name.is_empty()) else { return };
    let at = path(&[Key("apisix"), Key("route"), Key("name")]);
    let Some(found) = look_up(index, routed.rollout, &at, APISIX_ROUTE, name, notes) else { return };
    let rules = found.value.list_at(&["spec", "http"]);
    let asked: Vec<&Value> = route.list_at(&["rules"]).iter().collect();
    for (i, wanted) in asked.iter().enumerate() {
        let at = path(&[Key("apisix"), Key("route"), Key("rules"), At(i)]);
        if !rules.iter().any(|rule| rule.get("name") == Some(wanted)) {
            let what = format!("the ApisixRoute {name} has no rule named {}", plain(wanted));
            notes.say(routed.rollout, &at, Code::RouterObject, what).remedy =
                "name one of its rules under spec.http".into();
        }
    }
    for rule in
        rules.iter().filter(|rule| asked.is_empty() || asked.iter().any(|wanted| rule.get("name") == Some(wanted)))
    {
        let listed: Vec<&str> =
            rule.list_at(&["backends"]).iter().filter_map(|to| to.str_at(&["serviceName"])).collect();
        lists_both(routed, &at, found, &listed, notes);
    }
}

/// The routes of the Gateway API must have rules that lead to both versions, and room for those of steps.
fn gateway(index: &Index<'_>, routed: &Routed<'_>, configured: bool, notes: &mut Notes) {
    const MOST_RULES: usize = 16;
    let at = if configured { path(&[Key("gatewayAPI")]) } else { path(&[Key("plugins"), Key(route::GATEWAY_PLUGIN)]) };
    let mut rollout: api::Rollout = api::read(&routed.rollout.value).object;
    rollout.metadata.namespace = routed.rollout.namespace().to_owned();
    let steps = rollout.spec.strategy.canary.iter().flat_map(|canary| &canary.steps);
    let makes_rules = steps.filter(|step| step.set_header_route.is_some()).count();
    let ids = route::named(&rollout).into_iter().filter(|id| GATEWAY_KINDS.contains(&id.kind));
    let ids: Vec<route::Id> = ids.collect();
    let can_have_headers = |id: &route::Id| matches!(id.kind, route::Kind::HttpRoute | route::Kind::GrpcRoute);
    if makes_rules > 0 && !ids.is_empty() && !ids.iter().any(can_have_headers) {
        let what = "a step sets a route by header, and only HTTPRoutes and GRPCRoutes can have one";
        notes.say(routed.rollout, &at, Code::RouterObject, what).remedy = "name an HTTPRoute or a GRPCRoute".into();
    }
    let managed = routed.rollout.value.at(&ROUTING).map(|routing| routing.list_at(&["managedRoutes"]));
    for (i, managed) in managed.unwrap_or_default().iter().enumerate() {
        let Some(name) = managed.str_at(&["name"]) else { continue };
        if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b)) {
            let what =
                format!("{name} cannot be the name of a rule, which has lower-case letters, digits, `-` and `.`");
            let at = path(&[Key("managedRoutes"), At(i), Key("name")]);
            notes.say(routed.rollout, &at, Code::RouterObject, what).remedy = "choose another name".into();
        }
    }
    for id in ids.iter().filter(|id| !id.is_every()) {
        let sort = Sort::new(GATEWAY_GROUP, id.kind.word());
        let Some(found) = look_up_in(index, routed.rollout, &at, sort, &id.namespace, &id.name, notes) else {
            continue;
        };
        let rules = found.value.list_at(&["spec", "rules"]);
        let leads_to = |rule: &&Value, service: &str| {
            rule.list_at(&["backendRefs"]).iter().any(|backend| backend.str_at(&["name"]) == Some(service))
        };
        let services = [routed.canary, routed.stable];
        if services.iter().any(|service| service.is_empty()) {
            continue;
        }
        let weighted = rules.iter().filter(|rule| services.iter().all(|service| leads_to(rule, service))).count();
        if weighted == 0 {
            let what = format!(
                "no rule of the {} {} leads to both {} and {}",
                found.kind(),
                found.name(),
                routed.stable,
                routed.canary
            );
            let finding = notes.say(routed.rollout, &at, Code::RouterObject, what);
            finding.remedy = "give a rule both Services as backends".into();
            finding.also.push((spot(found, &[Key("spec"), Key("rules")]), "the rules that there are".into()));
        } else if rules.len() + weighted * makes_rules > MOST_RULES {
            let what = format!(
                "with the rules of its steps the {} {} would have {} rules, and a route can have {MOST_RULES}",
                found.kind(),
                found.name(),
                rules.len() + weighted * makes_rules
            );
            notes.say(routed.rollout, &at, Code::RouterObject, what).remedy = "split the route".into();
        }
    }
}

/// The VirtualRouter behind the VirtualService is judged by the rules of `model`.
fn app_mesh(index: &Index<'_>, routed: &Routed<'_>, routing: &Value, notes: &mut Notes) {
    let Some(mesh) = routing.get("appMesh") else { return };
    for node in ["canaryVirtualNodeRef", "stableVirtualNodeRef"] {
        if let Some(name) = mesh.str_at(&["virtualNodeGroup", node, "name"]).filter(|name| !name.is_empty()) {
            let at = path(&[Key("appMesh"), Key("virtualNodeGroup"), Key(node), Key("name")]);
            look_up(index, routed.rollout, &at, MESH_NODE, name, notes);
        }
    }
    let Some(name) = mesh.str_at(&["virtualService", "name"]).filter(|name| !name.is_empty()) else { return };
    let at = path(&[Key("appMesh"), Key("virtualService"), Key("name")]);
    let Some(service) = look_up(index, routed.rollout, &at, MESH_SERVICE, name, notes) else { return };
    let router = ["spec", "provider", "virtualRouter", "virtualRouterRef", "name"];
    let Some(name) = service.value.str_at(&router) else {
        let what = format!("the VirtualService {name} has no VirtualRouter");
        let finding = notes.say(routed.rollout, &at, Code::AppMeshRoutes, what);
        finding.remedy = "give it a provider with a virtualRouter".into();
        finding.also.push((spot(service, &[Key("spec"), Key("provider")]), "its provider".into()));
        return;
    };
    let steps: Vec<Step<'_>> = router.iter().map(|key| Key(key)).collect();
    let Some(router) = look_up(index, service, &steps, MESH_ROUTER, name, notes) else { return };
    let references = References { app_mesh: vec![router.value.clone()], ..References::default() };
    judge(routed, &references, router, notes);
}

/// What `model` says about objects that a Rollout names.
fn complaints(routed: &Routed<'_>, references: &References) -> Vec<Problem> {
    let rollout = api::read::<api::Rollout>(&routed.rollout.value).object;
    references::check(&rollout, references).problems
}

/// Lets `model` judge an object that a Rollout names, and shows both.
fn judge(routed: &Routed<'_>, references: &References, found: &Object, notes: &mut Notes) {
    for problem in complaints(routed, references) {
        let finding = notes.say(routed.rollout, &steps_of(&problem.path), problem.code, problem.what);
        finding.remedy = problem.remedy;
        let name = [Key("metadata"), Key("name")];
        finding.also.push((spot(found, &name), format!("the {} that is meant", found.kind())));
    }
}
