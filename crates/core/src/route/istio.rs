//! Istio: VirtualServices of the user's own carry the weights, a DestinationRule the versions behind its subsets.
//!
//! In the routes that a Rollout names, the weights of its destinations are ours, and what goes to nobody it knows is taken
//! away; routes that steps may make are ours as a whole. Everything else stays.

use super::{
    Asked, Id, Kind, Leaf, Move, Problem, Route, RouteScope, Router, Routes, Row, Services, Told, agreed, nested,
};
use crate::{
    api::{
        CanaryStrategy, IstioDestinationRule, IstioTrafficRouting, IstioVirtualService, Rollout, RolloutTrafficRouting,
        SetHeaderRoute, SetMirrorRoute, StringMatch, WeightDestination,
        constants::{annotation, label, reason},
    },
    kubernetes::{
        status::FieldError,
        value::{Map, Text, Value},
    },
    model::{
        references::{self, References},
        refers,
    },
    value,
};

/// All of the traffic; Istio's weights have no other sum here.
const TOTAL: i64 = 100;
/// The lists of routes in a VirtualService.
const LISTS: [&str; 3] = ["http", "tls", "tcp"];

pub const ROW: Row = Row {
    leaf: Leaf::Istio,
    name: "Istio",
    field: "istio",
    kinds: &[Kind::VirtualService, Kind::DestinationRule],
    is_used: |routing| routing.istio.is_some(),
    router: |asked| Some(Box::new(Writer::of(asked)?)),
};

/// What a Rollout says about its mesh.
struct Writer<'r> {
    rollout: &'r Rollout,
    canary: &'r CanaryStrategy,
    routing: &'r RolloutTrafficRouting,
    istio: &'r IstioTrafficRouting,
}

/// A destination, by what matters of it.
struct Destination<'v> {
    host: &'v str,
    subset: &'v str,
    weight: i64,
}

/// Whom a destination leads to.
enum Role {
    Canary,
    Stable,
    Experiment(i64),
    /// One that keeps its weight.
    Additional,
    /// Nobody that the Rollout knows.
    Foreign,
}

impl Router for Writer<'_> {
    fn write(&self, routes: &mut Routes, step: Move<'_>, told: &mut Vec<Told>) -> Result<(), Problem> {
        match step {
            Move::Hashes { canary, stable, additional } => self.set_hashes(routes, canary, stable, additional, told),
            Move::Weights { canary, additional } => self.each(routes, told, "", |service, object, _| {
                let after = self.weigh(object, service, canary.into(), additional)?;
                Ok(after.map(|after| (after, format!("set to desiredWeight '{canary}'"))))
            }),
            Move::Header(route) => self.each(
                routes,
                told,
                "[SetHeaderRoute] failed to get istio virtual service: ",
                |service, object, rule| {
                    let after = self
                        .header_route(object, service, route, rule)
                        .map_err(|problem| problem.within("[SetHeaderRoute] failed to reconcile header routes: "))?;
                    Ok(Some((self.ordered(after), format!("set headerRoute '{}'", route.name))))
                },
            ),
            Move::Mirror(route) => {
                self.each(routes, told, "[SetMirrorRoute] failed to get virtual service: ", |service, object, rule| {
                    let after = self.mirror_route(object, service, route, rule).map_err(|problem| {
                        problem.within("[SetMirrorRoute] failed reconcile virtual service for mirror routes: ")
                    })?;
                    Ok(Some((self.ordered(after), format!("set mirrorRoute '{}'", route.name))))
                })
            }
            Move::Clear => self.clear(routes, told),
        }
    }

    fn read(&self, routes: &Routes) -> Option<Route> {
        let services = self.services().iter();
        agreed(services.flat_map(|service| {
            let readings = routes.get(&self.id(service)).map(|object| self.readings(object, service));
            readings.unwrap_or_else(|| vec![None])
        }))
    }

    fn ids(&self) -> Vec<Id> {
        let rule = self.istio.destination_rule.as_ref().map(|rule| self.rule_id(rule));
        self.services().iter().map(|service| self.id(service)).chain(rule).collect()
    }

    fn refer(&self, routes: &Routes, found: &mut References) {
        found
            .virtual_services
            .extend(self.services().iter().filter_map(|service| routes.get(&self.id(service))).cloned());
    }

    fn missing(&self, routes: &Routes) -> Option<FieldError> {
        let ids = self.ids();
        let id = ids.iter().find(|id| id.kind == Kind::VirtualService && routes.get(id).is_none())?;
        let Id { name, namespace, .. } = id;
        let field = if self.istio.virtual_services.is_empty() { "virtualService" } else { "virtualServices" };
        let field = format!("spec.strategy.canary.trafficRouting.istio.{field}.name");
        if routes.scope == RouteScope::Namespace && *namespace != self.rollout.metadata.namespace.as_str() {
            let what = format!(
                "the VirtualService is in the namespace {namespace}, and a Rollout routes within its own; \
                 move it, or have the operator start Tidegate with `--allow-cross-namespace-routes`"
            );
            return Some(FieldError::invalid(field, format!("{name}.{namespace}"), what));
        }
        Some(FieldError::invalid(field, name.as_str(), id.kind.not_found(&routes.apis, name)))
    }
}

impl<'r> Writer<'r> {
    fn of(Asked { rollout, canary, routing }: Asked<'r>) -> Option<Writer<'r>> {
        Some(Writer { rollout, canary, routing, istio: routing.istio.as_ref()? })
    }

    fn services(&self) -> &[IstioVirtualService] {
        match self.istio.virtual_services.as_slice() {
            [] => self.istio.virtual_service.as_slice(),
            several => several,
        }
    }

    fn id(&self, service: &IstioVirtualService) -> Id {
        let key = refers::virtual_service(&service.name);
        let id = Id::beside(self.rollout, Kind::VirtualService, &key.name);
        if key.namespace.is_empty() { id } else { Id { namespace: key.namespace.as_str().into(), ..id } }
    }

    fn rule_id(&self, rule: &IstioDestinationRule) -> Id {
        Id::beside(self.rollout, Kind::DestinationRule, &rule.name)
    }

    /// The Services of the versions; those that change places only if there are no others.
    fn hosts(&self) -> Services<'r> {
        let (stable, canary) = (self.canary.stable_service.as_str(), self.canary.canary_service.as_str());
        if stable.is_empty() && canary.is_empty() { Services::of(self.rollout) } else { Services { stable, canary } }
    }

    /// Changes each VirtualService, and tells of those that are not as they were.
    fn each(
        &self,
        routes: &mut Routes,
        told: &mut Vec<Told>,
        missing: &'static str,
        change: impl Fn(&IstioVirtualService, &Value, &Result<String, Problem>) -> Result<Option<(Value, String)>, Problem>,
    ) -> Result<(), Problem> {
        for service in self.services() {
            let id = self.id(service);
            let before = routes.must(&id).map_err(|problem| {
                told.push(not_found(&id));
                problem.within(missing)
            })?;
            let host = self.rule_host(routes);
            if let (Err(_), Some(rule), false) = (&host, &self.istio.destination_rule, missing.is_empty()) {
                told.push(not_found(&self.rule_id(rule)));
            }
            let Some((after, what)) = change(service, before, &host)? else { continue };
            if after != *before {
                let message = format!("VirtualService `{}` {what}", id.name);
                told.push(Told { warning: false, reason: reason::VIRTUAL_SERVICE_UPDATED, message });
                routes.put(id, after);
            }
        }
        Ok(())
    }

    /// The host of the DestinationRule; none without one.
    fn rule_host(&self, routes: &Routes) -> Result<String, Problem> {
        let Some(rule) = &self.istio.destination_rule else { return Ok(String::new()) };
        let object = routes.must(&self.rule_id(rule))?;
        Ok(object.str_at(&["spec", "host"]).unwrap_or_default().to_owned())
    }

    /// A VirtualService with these weights; `None` if it has them.
    fn weigh(
        &self,
        object: &Value,
        service: &IstioVirtualService,
        canary: i64,
        additional: &[WeightDestination],
    ) -> Result<Option<Value>, Problem> {
        for list in LISTS {
            if let Some(routes) = object.at(&["spec", list]).filter(|routes| routes.as_list().is_some()) {
                references::istio_routes(self.rollout, service, list, routes).map_err(Problem::Routes)?;
            }
        }
        let mut after = object.clone();
        for list in LISTS {
            let mut routes = object.list_at(&["spec", list]).to_vec();
            for at in self.chosen(service, list, &routes, Mirrors::Too) {
                let Some(route) = routes.get_mut(at) else { continue };
                let destinations = self.weighed(route.list_at(&["route"]), canary, additional);
                route.set_at(&["route"], destinations);
            }
            if !routes.is_empty() {
                after.set_at(&["spec", list], routes);
            }
        }
        Ok((after != *object).then(|| self.ordered(after)))
    }

    /// The destinations of a route with these weights. Those of new experiments come last, by name.
    fn weighed(&self, destinations: &[Value], canary: i64, additional: &[WeightDestination]) -> Vec<Value> {
        let read: Vec<Destination<'_>> = destinations.iter().map(destination).collect();
        let kept = read.iter().filter(|to| self.is_additional(to.subset)).map(|to| to.weight).sum::<i64>();
        let experiments: i64 = additional.iter().map(|other| i64::from(other.weight)).sum();
        let stable = (TOTAL - canary - experiments - kept).max(0);
        let mut out = Vec::new();
        let mut new: Vec<&WeightDestination> = additional.iter().collect();
        for (to, object) in read.iter().zip(destinations) {
            if to.host.is_empty() {
                out.push(object.clone());
                continue;
            }
            let weight = match self.role(to, additional) {
                Role::Canary => canary,
                Role::Stable => stable,
                Role::Experiment(weight) => weight,
                Role::Additional => to.weight,
                Role::Foreign if to.weight == 0 => 0,
                Role::Foreign => continue,
            };
            new.retain(|other| other.service_name != to.host);
            let mut object = object.clone();
            if weight != to.weight {
                object.set_at(&["weight"], weight);
            }
            out.push(object);
        }
        new.sort_by(|a, b| a.service_name.cmp(&b.service_name));
        let made = new.iter().filter(|other| other.weight != 0);
        out.extend(
            made.map(|other| value!({"destination": {"host": other.service_name.as_str()}, "weight": other.weight})),
        );
        out
    }

    fn is_additional(&self, subset: &str) -> bool {
        let names = self.istio.destination_rule.as_ref().map(|rule| rule.additional_subset_names.as_slice());
        !subset.is_empty() && names.is_some_and(|names| names.iter().any(|name| name == subset))
    }

    fn role(&self, to: &Destination<'_>, additional: &[WeightDestination]) -> Role {
        let hosts = self.hosts();
        let rule = self.istio.destination_rule.as_ref();
        let is_subset = |name: Option<&str>| !to.subset.is_empty() && name == Some(to.subset);
        if to.host == hosts.canary || is_subset(rule.map(|rule| rule.canary_subset_name.as_str())) {
            return Role::Canary;
        }
        if to.host == hosts.stable || is_subset(rule.map(|rule| rule.stable_subset_name.as_str())) {
            return Role::Stable;
        }
        match additional.iter().find(|other| other.service_name == to.host) {
            Some(other) => Role::Experiment(other.weight.into()),
            None if self.is_additional(to.subset) => Role::Additional,
            None => Role::Foreign,
        }
    }

    /// Which routes of a list carry the weights.
    fn chosen(&self, service: &IstioVirtualService, list: &str, routes: &[Value], mirrors: Mirrors) -> Vec<usize> {
        match list {
            "http" => self.chosen_http(service, routes, mirrors),
            "tls" if service.tls_routes.is_empty() => vec![0],
            "tls" => matching(routes, &service.tls_routes, |route, wanted| {
                let hosts = sni_hosts(route);
                port(route) == Some(wanted.port)
                    && hosts.len() == wanted.sni_hosts.len()
                    && wanted.sni_hosts.iter().all(|host| hosts.contains(&host.as_str()))
            }),
            _ if service.tcp_routes.is_empty() => vec![0],
            _ => matching(routes, &service.tcp_routes, |route, wanted| port(route) == Some(wanted.port)),
        }
    }

    fn chosen_http(&self, service: &IstioVirtualService, routes: &[Value], mirrors: Mirrors) -> Vec<usize> {
        let mut names: Vec<&str> = service.routes.iter().map(String::as_str).collect();
        if mirrors == Mirrors::Too {
            let made = routes.iter().filter(|route| route.at(&["mirror"]).is_some_and(|mirror| !mirror.is_null()));
            names.extend(made.map(name).filter(|name| self.managed_place(name).is_some()));
        }
        if names.is_empty() {
            let only = (routes.len() == 1).then_some(0);
            return only.or_else(|| routes.iter().position(|route| name(route).is_empty())).into_iter().collect();
        }
        names.iter().filter_map(|wanted| routes.iter().position(|route| name(route) == *wanted)).collect()
    }

    fn managed_place(&self, name: &str) -> Option<usize> {
        self.routing.managed_routes.iter().position(|route| route.name == name)
    }

    /// The first of the managed routes has precedence, all of them over other routes.
    fn ordered(&self, mut object: Value) -> Value {
        let mut routes = object.list_at(&["spec", "http"]).to_vec();
        routes.sort_by_key(|route| self.managed_place(name(route)).unwrap_or(usize::MAX));
        if !routes.is_empty() {
            object.set_at(&["spec", "http"], routes);
        }
        object
    }

    /// Where a route made by a step leads: the canary, by host and subset.
    fn target(&self, host: &Result<String, Problem>) -> Result<Value, Problem> {
        let host = host.clone()?;
        let host = if host.is_empty() { self.hosts().canary.to_owned() } else { host };
        let mut target = value!({"host": host});
        if let Some(rule) = self.istio.destination_rule.as_ref().filter(|rule| !rule.canary_subset_name.is_empty()) {
            target.set_at(&["subset"], rule.canary_subset_name.as_str());
        }
        Ok(target)
    }

    fn header_route(
        &self,
        object: &Value,
        service: &IstioVirtualService,
        route: &SetHeaderRoute,
        host: &Result<String, Problem>,
    ) -> Result<Value, Problem> {
        let mut target = self.target(host)?;
        let what = if route.r#match.is_empty() { "route" } else { "http route" };
        let mut after = without(object, &route.name).map_err(|problem| {
            problem
                .within(format!("[reconcileVirtualServiceHeaderRoutes] failed to remove {what} from virtual service: "))
        })?;
        if route.r#match.is_empty() {
            return Ok(after);
        }
        let mut routes = after.list_at(&["spec", "http"]).to_vec();
        let weighed = self.chosen_http(service, &routes, Mirrors::Not).first().and_then(|at| routes.get(*at)).cloned();
        let first = weighed.as_ref().and_then(|route| route.list_at(&["route"]).first());
        let port = first.and_then(|first| first.int_at(&["destination", "port", "number"]));
        if let Some(port) = port.filter(|port| *port > 0) {
            target.set_at(&["port", "number"], port);
        }
        let matches = route.r#match.iter().map(|header| {
            let text = header.header_value.as_ref().map(matched).unwrap_or_else(Value::object);
            let mut headers = Value::object();
            headers.set_at(&["headers", &header.header_name], text);
            headers
        });
        let to = value!({"destination": target, "weight": TOTAL});
        routes.push(value!({"name": route.name.as_str(), "match": Value::list(matches), "route": [to]}));
        after.set_at(&["spec", "http"], routes);
        Ok(after)
    }

    fn mirror_route(
        &self,
        object: &Value,
        service: &IstioVirtualService,
        route: &SetMirrorRoute,
        host: &Result<String, Problem>,
    ) -> Result<Value, Problem> {
        const HERE: &str = "[reconcileVirtualServiceMirrorRoutes] ";
        let target = self.target(host);
        let mut target =
            target.map_err(|problem| problem.within(format!("{HERE}failed to get destination rule host: ")))?;
        let what = if route.r#match.is_empty() { "route" } else { "http route" };
        let mut after = without(object, &route.name)
            .map_err(|problem| problem.within(format!("{HERE}failed to remove {what} from virtual service: ")))?;
        if route.r#match.is_empty() {
            return Ok(after);
        }
        let mut routes = after.list_at(&["spec", "http"]).to_vec();
        let lost = service.routes.iter().find(|wanted| !routes.iter().any(|route| name(route) == **wanted));
        if let Some(lost) = lost {
            return Err(Problem::Routes(format!("HTTP Route '{lost}' is not found in the defined Virtual Service."))
                .within(format!(
                    "{HERE}failed to create mirror route: [createMirrorRoute] failed to get virtual service http route \
                     for keeping non-mirror weights set: [getVirtualServiceSetWeightRoute] failed to get routes that \
                     need to be patch when set weight is called: "
                )));
        }
        let weighed = self.chosen_http(service, &routes, Mirrors::Not).first().and_then(|at| routes.get(*at)).cloned();
        let destinations: Vec<Value> =
            weighed.iter().flat_map(|route| route.list_at(&["route"])).map(plain_destination).collect();
        let first = destinations.first().and_then(|first| first.at(&["destination", "port"]));
        if let Some(port) = first.filter(|port| !port.is_null()) {
            target.set_at(&["port"], port.clone());
        }
        let matches = route.r#match.iter().map(|request| {
            let mut out = Value::object();
            for (key, text) in [("method", &request.method), ("uri", &request.path)] {
                if let Some(text) = text {
                    out.set_at(&[key], matched(text));
                }
            }
            for (header, text) in &request.headers {
                out.set_at(&["headers", header], matched(text));
            }
            out
        });
        let made = value!({
            "name": route.name.as_str(),
            "match": Value::list(matches),
            "route": Value::list(destinations),
            "mirror": target,
            "mirrorPercentage": {"value": route.percentage.unwrap_or(100)},
        });
        routes.insert(0, made);
        after.set_at(&["spec", "http"], routes);
        Ok(after)
    }

    /// Takes away what steps and managed routes have made. Where there is nothing, nothing is missing.
    fn clear(&self, routes: &mut Routes, told: &mut Vec<Told>) -> Result<(), Problem> {
        let headers =
            self.canary.steps.iter().filter_map(|step| step.set_header_route.as_ref()).map(|route| &route.name);
        let mirrors =
            self.canary.steps.iter().filter_map(|step| step.set_mirror_route.as_ref()).map(|route| &route.name);
        let made: Vec<&String> =
            headers.chain(mirrors).chain(self.routing.managed_routes.iter().map(|route| &route.name)).collect();
        for service in self.services() {
            let id = self.id(service);
            let Some(before) = routes.get(&id) else {
                told.push(not_found(&id));
                continue;
            };
            let list = nested::list(before, &["spec", "http"]).map_err(|problem| {
                problem.within("[RemoveManagedRoutes] failed to get http routes from virtual service: ")
            })?;
            let Some(list) = list else { return Ok(()) };
            let left: Vec<Value> =
                list.iter().filter(|route| !made.iter().any(|made| *made == name(route))).cloned().collect();
            if left.len() == list.len() {
                continue;
            }
            let mut after = before.clone();
            after.set_at(&["spec", "http"], left);
            let message = format!("VirtualService `{}` removed all managed routes.", id.name);
            told.push(Told { warning: false, reason: reason::VIRTUAL_SERVICE_UPDATED, message });
            routes.put(id, after);
        }
        Ok(())
    }

    /// Notes the versions behind the subsets. Subsets of nobody that the Rollout knows go.
    fn set_hashes(
        &self,
        routes: &mut Routes,
        canary: &str,
        stable: &str,
        additional: &[WeightDestination],
        told: &mut Vec<Told>,
    ) -> Result<(), Problem> {
        let Some(rule) = &self.istio.destination_rule else { return Ok(()) };
        let id = self.rule_id(rule);
        let before = routes.must(&id).inspect_err(|_| told.push(not_found(&id)))?;
        let mut after = before.clone();
        after.set_at(&["metadata", "annotations", annotation::MANAGED_BY], self.rollout.metadata.name.as_str());
        let mut new: Vec<&WeightDestination> = additional.iter().collect();
        let mut subsets = Vec::new();
        for subset in before.list_at(&["spec", "subsets"]) {
            let called = name(subset);
            let hash = if called == rule.canary_subset_name {
                canary
            } else if called == rule.stable_subset_name {
                stable
            } else if let Some(other) = additional.iter().find(|other| other.service_name == called) {
                new.retain(|new| new.service_name != called);
                &other.pod_template_hash
            } else {
                continue;
            };
            let mut subset = subset.clone();
            let path = ["labels", label::POD_TEMPLATE_HASH];
            if hash.is_empty() {
                subset.remove_at(&path);
            } else {
                subset.set_at(&path, hash);
            }
            subsets.push(subset);
        }
        subsets.extend(new.iter().map(|other| {
            let labels = value!({label::POD_TEMPLATE_HASH: other.pod_template_hash.as_str()});
            value!({"name": other.service_name.as_str(), "labels": labels})
        }));
        after.set_at(&["spec", "subsets"], subsets);
        if after != *before {
            let (a, b) = (&rule.canary_subset_name, &rule.stable_subset_name);
            let message = format!("DestinationRule {} subset updated ({a}: {canary}, {b}: {stable})", rule.name);
            told.push(Told { warning: false, reason: reason::DESTINATION_RULE_UPDATED, message });
            routes.put(id, after);
        }
        Ok(())
    }

    /// What each of the routes that carry the weights says.
    fn readings(&self, object: &Value, service: &IstioVirtualService) -> Vec<Option<Route>> {
        let http = object.list_at(&["spec", "http"]).iter().map(name);
        let managed: std::collections::BTreeSet<String> =
            http.filter(|name| self.managed_place(name).is_some()).map(str::to_owned).collect();
        let mut readings = Vec::new();
        for list in LISTS {
            let routes = object.list_at(&["spec", list]);
            for route in self.chosen(service, list, routes, Mirrors::Not).into_iter().filter_map(|at| routes.get(at)) {
                let (mut canary, mut stable, mut additional) = (None, None, Vec::new());
                for to in route.list_at(&["route"]).iter().map(destination) {
                    match self.role(&to, &[]) {
                        Role::Canary => canary = Some(to.weight),
                        Role::Stable => stable = Some(to.weight),
                        Role::Experiment(_) | Role::Additional | Role::Foreign => {
                            additional.push((to.host.to_owned(), to.weight));
                        }
                    }
                }
                let managed = managed.clone();
                let reading = canary.zip(stable);
                readings.push(reading.map(|(canary, stable)| Route { canary, stable, additional, managed }));
            }
        }
        readings
    }
}

/// The DestinationRule that a Rollout named before a change and does not name after it.
pub fn abandoned(before: Option<&Value>, after: Option<&Value>) -> Option<Text> {
    let path = ["spec", "strategy", "canary", "trafficRouting", "istio", "destinationRule", "name"];
    let name =
        |rollout: Option<&Value>| rollout.and_then(|rollout| rollout.at(&path)).and_then(Value::as_text).cloned();
    name(before).filter(|before| name(after).as_ref() != Some(before))
}

/// The merge patch that gives a DestinationRule back to its owner when the Rollout that it names has gone or names another
/// one: its subsets are of no version any more.
///
/// `rollouts` are those of its namespace, or at least the one that it names.
pub fn release(rule: &Value, rollouts: &[Rollout]) -> Option<Value> {
    let name = rule.str_at(&["metadata", "name"])?;
    let leader = rule.str_at(&["metadata", "annotations", annotation::MANAGED_BY])?;
    let names_it = |rollout: &Rollout| refers::destination_rule(rollout).is_some_and(|key| key.name == name);
    if rollouts.iter().any(|rollout| rollout.metadata.name == leader && names_it(rollout)) {
        return None;
    }
    let mut patch = Value::object();
    // Of this very object as it was seen: a Rollout may take it over at any moment.
    for field in ["uid", "resourceVersion"] {
        patch.set_at(&["metadata", field], rule.at(&["metadata", field]).cloned().unwrap_or_default());
    }
    patch.set_at(&["metadata", "annotations", annotation::MANAGED_BY], Value::Null);
    let mut subsets = rule.list_at(&["spec", "subsets"]).to_vec();
    for subset in &mut subsets {
        subset.remove_at(&["labels", label::POD_TEMPLATE_HASH]);
        if subset.get("labels").and_then(Value::as_map).is_some_and(Map::is_empty) {
            subset.remove_at(&["labels"]);
        }
    }
    if !subsets.is_empty() {
        patch.set_at(&["spec", "subsets"], subsets);
    }
    Some(patch)
}

/// Whether managed routes with a mirror carry the weights, too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mirrors {
    Too,
    Not,
}

fn not_found(id: &Id) -> Told {
    let is_rule = id.kind == Kind::DestinationRule;
    let reason = if is_rule { reason::DESTINATION_RULE_NOT_FOUND } else { reason::VIRTUAL_SERVICE_NOT_FOUND };
    Told { warning: true, reason, message: format!("{} `{}` not found", id.kind.word(), id.name) }
}

/// The name of a route or a subset; empty if it has none.
fn name(route: &Value) -> &str {
    route.str_at(&["name"]).unwrap_or_default()
}

/// A destination: hosts count up to their first dot.
fn destination(object: &Value) -> Destination<'_> {
    let host = object.str_at(&["destination", "host"]).unwrap_or_default();
    let host = host.split_once('.').map_or(host, |(first, _)| first);
    let subset = object.str_at(&["destination", "subset"]).unwrap_or_default();
    Destination { host, subset, weight: object.int_at(&["weight"]).unwrap_or_default() }
}

/// A destination without what Argo Rollouts does not know; a weight of 0 is not said.
fn plain_destination(object: &Value) -> Value {
    let mut out = value!({"destination": {}});
    for key in ["host", "subset"] {
        if let Some(text) = object.str_at(&["destination", key]).filter(|text| !text.is_empty()) {
            out.set_at(&["destination", key], text);
        }
    }
    if let Some(port) = object.at(&["destination", "port"]).filter(|port| !port.is_null()) {
        let number = port.int_at(&["number"]).filter(|number| *number != 0);
        out.set_at(&["destination", "port"], number.map_or_else(Value::object, |number| value!({"number": number})));
    }
    if let Some(weight) = object.int_at(&["weight"]).filter(|weight| *weight != 0) {
        out.set_at(&["weight"], weight);
    }
    out
}

fn matched(text: &StringMatch) -> Value {
    let mut out = Value::object();
    for (key, text) in [("exact", &text.exact), ("prefix", &text.prefix), ("regex", &text.regex)] {
        if !text.is_empty() {
            out.set_at(&[key], text.as_str());
        }
    }
    out
}

/// A VirtualService without the routes of this name.
fn without(object: &Value, route: &str) -> Result<Value, Problem> {
    let routes = nested::list(object, &["spec", "http"])
        .map_err(|problem| problem.within("[removeRoute] failed to get http routes from virtual service: "))?;
    let routes = routes.ok_or(Problem::NoHttp)?;
    if routes.iter().any(|route| route.as_map().is_none()) {
        return Err(Problem::NoRoute);
    }
    let mut after = object.clone();
    let left: Vec<Value> = routes.iter().filter(|known| name(known) != route).cloned().collect();
    if left.len() != routes.len() {
        after.set_at(&["spec", "http"], left);
    }
    Ok(after)
}

/// The only port that a route matches, 0 if it says none; `None` if there are several.
fn port(route: &Value) -> Option<i64> {
    let mut ports = route.list_at(&["match"]).iter().map(|rule| rule.int_at(&["port"]).unwrap_or_default());
    let first = ports.next().unwrap_or_default();
    ports.all(|port| port == first).then_some(first)
}

fn sni_hosts(route: &Value) -> Vec<&str> {
    let rules = route.list_at(&["match"]).iter();
    let mut hosts: Vec<&str> = rules.flat_map(|rule| rule.list_at(&["sniHosts"])).filter_map(Value::as_str).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

fn matching<W>(routes: &[Value], wanted: &[W], matches: impl Fn(&Value, &W) -> bool) -> Vec<usize> {
    let all = |wanted: &W| {
        routes.iter().enumerate().filter(|(_, route)| matches(route, wanted)).map(|(at, _)| at).collect::<Vec<_>>()
    };
    wanted.iter().flat_map(all).collect()
}

#[cfg(test)]
mod release_tests {
    use super::*;

    #[test]
    fn a_destination_rule_is_given_back_once_its_rollout_names_it_no_more() {
        let rule = |leader: Option<&str>| {
            let labels = value!({"app": "web", label::POD_TEMPLATE_HASH: "abc"});
            let mut rule = value!({"metadata": {"name": "rule", "uid": "u", "resourceVersion": "7"},
                "spec": {"host": "web", "subsets": [{"name": "stable", "labels": labels},
                    {"name": "canary", "labels": {label::POD_TEMPLATE_HASH: "def"}}]}});
            if let Some(leader) = leader {
                rule.set_at(&["metadata", "annotations", annotation::MANAGED_BY], leader);
            }
            rule
        };
        let object = |rule: &str| {
            value!({"metadata": {"name": "web"}, "spec": {"strategy": {"canary": {"trafficRouting": {"istio": {
                "destinationRule": {"name": rule, "canarySubsetName": "canary", "stableSubsetName": "stable"}}}}}}})
        };
        let rollout = |rule: &str| -> Rollout { crate::api::read(&object(rule)).object };
        let patch = value!({"metadata": {"uid": "u", "resourceVersion": "7", "annotations": {annotation::MANAGED_BY: null}},
            "spec": {"subsets": [{"name": "stable", "labels": {"app": "web"}}, {"name": "canary"}]}});
        for (leader, rollouts, expected) in [
            (Some("web"), vec![rollout("rule")], None),
            (Some("web"), vec![rollout("other")], Some(&patch)),
            (Some("web"), vec![], Some(&patch)),
            (None, vec![], None),
        ] {
            assert_eq!(release(&rule(leader), &rollouts).as_ref(), expected, "{leader:?}");
        }
        for (before, after, expected) in [
            (None, Some(object("a")), None),
            (Some(object("a")), Some(object("a")), None),
            (Some(object("a")), Some(object("b")), Some("a")),
            (Some(object("a")), None, Some("a")),
        ] {
            assert_eq!(abandoned(before.as_ref(), after.as_ref()).as_deref(), expected, "{before:?} {after:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        api,
        route::{Leaf, read, write},
    };

    fn rollout() -> Rollout {
        api::read(
            &value!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": {"strategy": {"canary": {
            "stableService": "stable", "canaryService": "canary",
            "trafficRouting": {"managedRoutes": [{"name": "h"}, {"name": "m"}],
                "istio": {"virtualService": {"name": "vs", "routes": ["main"]}}}}}}}),
        )
        .object
    }

    /// A VirtualService with a route of ours, and one of somebody else's.
    fn object(canary: i32) -> Value {
        let to =
            |host: &str, weight: i32| value!({"destination": {"host": host, "port": {"number": 80}}, "weight": weight});
        value!({"metadata": {"name": "vs", "namespace": "shop", "labels": {"theirs": "x"}}, "spec": {"hosts": ["web"], "http": [
            {"name": "other", "retries": {"attempts": 3}, "route": [to("elsewhere", 100)]},
            {"name": "main", "timeout": "3s", "route": [to("stable.shop.svc", 100 - canary), to("canary", canary)]},
        ]}})
    }

    #[derive(Debug, Clone)]
    enum Step {
        Weight(i32),
        Header(bool),
        Clear,
    }

    proptest! {
        /// The two laws.
        #[test]
        fn what_was_written_is_read_and_nothing_else_changes(
            steps in prop::collection::vec(prop_oneof![
                (0..=100i32).prop_map(Step::Weight), any::<bool>().prop_map(Step::Header), Just(Step::Clear),
            ], 1..8),
        ) {
            let rollout = rollout();
            let id = Id { kind: Kind::VirtualService, namespace: "shop".into(), name: "vs".into() };
            let mut routes = Routes::of([(id.clone(), object(0))]);
            let (mut weight, mut made) = (0, std::collections::BTreeSet::new());
            for step in steps {
                let mut header = SetHeaderRoute { name: "h".into(), r#match: Vec::new() };
                let step = match step {
                    Step::Weight(canary) => {
                        weight = canary;
                        Move::Weights { canary, additional: &[] }
                    }
                    Step::Header(true) => {
                        made.insert("h".to_owned());
                        header.r#match.push(api::HeaderRoutingMatch { header_name: "a".into(), header_value: None });
                        Move::Header(&header)
                    }
                    Step::Header(false) => {
                        made.clear();
                        Move::Header(&header)
                    }
                    Step::Clear => {
                        made.clear();
                        Move::Clear
                    }
                };
                let (mut told, mut again) = (Vec::new(), Vec::new());
                prop_assert_eq!(write(Leaf::Istio, &rollout, &mut routes, step, &mut told), Ok(()));
                let stable = i64::from(100 - weight);
                let expected = Route { canary: weight.into(), stable, managed: made.clone(), ..Route::default() };
                prop_assert_eq!(read(Leaf::Istio, &rollout, &routes), Some(expected));
                prop_assert_eq!(write(Leaf::Istio, &rollout, &mut routes, step, &mut again), Ok(()));
                prop_assert_eq!(again, []);
                let mut left = routes.get(&id).cloned().unwrap();
                let http = left.list_at(&["spec", "http"]).iter().filter(|route| name(route) != "h").cloned().collect::<Vec<_>>();
                left.set_at(&["spec", "http"], http);
                prop_assert_eq!(left, object(weight));
            }
        }
    }
}
