//! Istio: VirtualServices of the user's own carry the weights, a DestinationRule the versions behind its subsets.
//!
//! In the routes that a Rollout names, the weights of its destinations are ours, and what goes to nobody it knows is taken
//! away; routes that steps may make are ours as a whole. Everything else stays.

use super::{Id, Kind, Move, Problem, Route, Routes, Services, Told, agreed, nested};
use crate::{
    api::{
        CanaryStrategy, IstioDestinationRule, IstioTrafficRouting, IstioVirtualService, Rollout, RolloutTrafficRouting,
        SetHeaderRoute, SetMirrorRoute, StringMatch, WeightDestination,
        constants::{annotation, label, reason},
    },
    kubernetes::value::Value,
    model::{references, refers},
    value,
};

/// All of the traffic; Istio's weights have no other sum here.
const TOTAL: i64 = 100;
/// The lists of routes in a VirtualService.
const LISTS: [&str; 3] = ["http", "tls", "tcp"];

/// What a Rollout says about its mesh.
pub struct Writer<'r> {
    pub rollout: &'r Rollout,
    pub canary: &'r CanaryStrategy,
    pub routing: &'r RolloutTrafficRouting,
    pub istio: &'r IstioTrafficRouting,
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

impl<'r> Writer<'r> {
    pub fn write(&self, routes: &mut Routes, step: Move<'_>, told: &mut Vec<Told>) -> Result<(), Problem> {
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

    pub fn read(&self, routes: &Routes) -> Option<Route> {
        let services = self.services().iter();
        agreed(services.flat_map(|service| {
            let readings = routes.get(&self.id(service)).map(|object| self.readings(object, service));
            readings.unwrap_or_else(|| vec![None])
        }))
    }

    /// The objects that are read and written.
    pub fn ids(&self) -> Vec<Id> {
        let rule = self.istio.destination_rule.as_ref().map(|rule| self.rule_id(rule));
        self.services().iter().map(|service| self.id(service)).chain(rule).collect()
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
            let Some(before) = routes.get(&id) else {
                told.push(not_found(&id));
                return Err(Problem::Missing(Kind::VirtualService, id.name.to_string()).within(missing));
            };
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
        let missing = || Problem::Missing(Kind::DestinationRule, rule.name.clone());
        let object = routes.get(&self.rule_id(rule)).ok_or_else(missing)?;
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
        let Some(before) = routes.get(&id) else {
            told.push(not_found(&id));
            return Err(Problem::Missing(Kind::DestinationRule, rule.name.clone()));
        };
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

/// Whether managed routes with a mirror carry the weights, too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mirrors {
    Too,
    Not,
}

fn not_found(id: &Id) -> Told {
    let (reason, word) = match id.kind {
        Kind::DestinationRule => (reason::DESTINATION_RULE_NOT_FOUND, "DestinationRule"),
        Kind::VirtualService | Kind::Ingress | Kind::TrafficSplit | Kind::TraefikService => {
            (reason::VIRTUAL_SERVICE_NOT_FOUND, "VirtualService")
        }
    };
    Told { warning: true, reason, message: format!("{word} `{}` not found", id.name) }
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
