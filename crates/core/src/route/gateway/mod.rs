//! The Gateway API: rules of the user's own routes carry the weights, and steps add rules by header and by mirror.
//!
//! Takes the settings of the plugin `argoproj-labs/gatewayAPI` as they are, and does what that plugin does but for its
//! defects. Of a route only the weights in rules that lead to both versions, rules that steps have made, backends of
//! experiments and one label are touched; fields of newer versions stay, because nothing is ever written as a whole.

mod config;
mod rules;
mod verify;

use self::{
    config::{Config, Entry},
    rules::Rules,
};
use super::{Accepted, Asked, Id, Kind, Leaf, Move, Problem, Route, RouteScope, Router, Routes, Row, Services, Told};
use crate::{
    api::{Rollout, RolloutTrafficRouting, SetMirrorRoute, WeightDestination},
    kubernetes::{status::FieldError, value::Value},
    model::weight::MaxWeight,
};

/// The plugin whose settings are taken.
pub const PLUGIN: &str = "argoproj-labs/gatewayAPI";

pub const ROW: Row = Row {
    leaf: Leaf::Gateway,
    name: "GatewayAPI",
    field: "gatewayAPI",
    kinds: &[Kind::HttpRoute, Kind::GrpcRoute, Kind::TcpRoute, Kind::TlsRoute, Kind::Service],
    is_used: |routing| routing.gateway_api.is_some() || routing.plugins.contains_key(PLUGIN),
    router: |asked| Some(Box::new(Writer::of(asked)?)),
};

/// Whether a plugin of this name is not needed.
pub fn is_plugin(name: &str) -> bool {
    name == PLUGIN
}

/// What a Rollout says about its routes.
struct Writer<'r> {
    asked: Asked<'r>,
    from: Origin,
    config: Result<Config, String>,
}

/// Where the settings are: errors are told as Argo Rollouts tells those of a plugin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Field,
    Plugin,
}

fn settings(routing: &RolloutTrafficRouting) -> Option<(Origin, Result<Config, String>)> {
    match (&routing.gateway_api, routing.plugins.get(PLUGIN)) {
        (Some(_), Some(_)) => {
            let what = format!("gatewayAPI and the plugin {PLUGIN} are both given; keep one of them");
            Some((Origin::Field, Err(what)))
        }
        (Some(field), None) => Some((Origin::Field, Ok(Config::of(field)))),
        (None, Some(plugin)) => Some((Origin::Plugin, Config::read(plugin))),
        (None, None) => None,
    }
}

/// A route that is written, and what of it steps may use.
struct Managed {
    id: Id,
    headers: bool,
}

impl Router for Writer<'_> {
    fn ids(&self) -> Vec<Id> {
        let Ok(config) = &self.config else { return Vec::new() };
        let named = config.entries.iter().filter(|entry| !entry.name.is_empty());
        let named = named.map(|entry| self.id(config, entry.kind, &entry.name));
        // Which routes a selector finds is known once they are seen.
        let every = config.selectors.iter().map(|(kind, _)| self.id(config, *kind, ""));
        named.chain(every).collect()
    }

    fn write(&self, routes: &mut Routes, step: Move<'_>, _: &mut Vec<Told>) -> Result<(), Problem> {
        let (what, done) = match step {
            Move::Hashes { .. } => return Ok(()),
            Move::Weights { canary, additional } => ("set weight", self.weigh(routes, canary.into(), additional)),
            Move::Header(route) => {
                let done = self.each(routes, Which::WithHeaders, |rules| rules.set_header_route(route));
                ("set header route", done.map(drop))
            }
            Move::Mirror(route) => ("set mirror route", self.mirror(routes, route)),
            Move::Clear => {
                let done = self.each(routes, Which::Http, |rules| {
                    rules.clear();
                    Ok(())
                });
                ("remove managed routes", done.map(drop))
            }
        };
        done.map_err(|problem| match self.from {
            Origin::Plugin => problem.within(format!("failed to {what} via plugin: ")),
            Origin::Field => problem,
        })
    }

    fn read(&self, routes: &Routes) -> Option<Route> {
        let managed = self.managed(routes).ok()?;
        let mut readings = managed.iter().map(|one| self.rules(one, routes.get(&one.id)?.clone()).read());
        let mut first = readings.next()??;
        for other in readings {
            let other = other?;
            if (first.canary, first.stable) != (other.canary, other.stable) {
                return None;
            }
            first.managed.extend(other.managed);
        }
        Some(first)
    }

    fn missing(&self, routes: &Routes) -> Option<FieldError> {
        let field = match self.from {
            Origin::Field => "spec.strategy.canary.trafficRouting.gatewayAPI".to_owned(),
            Origin::Plugin => format!("spec.strategy.canary.trafficRouting.plugins[{PLUGIN}]"),
        };
        let config = match &self.config {
            Ok(config) => config,
            Err(what) => return Some(FieldError::invalid(field, Value::Null, what.as_str())),
        };
        let namespace = self.namespace(config);
        (routes.scope == RouteScope::Namespace && namespace != self.asked.rollout.metadata.namespace).then(|| {
            let what = "the routes are in another namespace, and a Rollout routes within its own; move them, or have \
                        the operator start Tidegate with `--allow-cross-namespace-routes`";
            FieldError::invalid(format!("{field}.namespace"), namespace, what)
        })
    }

    fn verify(&self, routes: &Routes, weights: Move<'_>) -> Accepted {
        let Move::Weights { canary, additional } = weights else { return Accepted::NotAsked };
        if !self.config.as_ref().is_ok_and(|config| config.verifies) {
            return Accepted::NotAsked;
        }
        let Ok(managed) = self.managed(routes) else {
            return Accepted::NotYet("a route that is to carry the weights does not exist".into());
        };
        let (mut all, mut warning) = (Accepted::NotAsked, None);
        for one in managed {
            let object = match routes.must(&one.id) {
                Ok(object) => object,
                Err(missing) => return Accepted::NotYet(missing.to_string()),
            };
            let mut rules = self.rules(&one, object.clone());
            let shares = self.shares(canary.into(), additional);
            if rules.weigh(&shares, routes).is_err() || rules.list() != object.list_at(&["spec", "rules"]) {
                let what = format!("{} {} does not carry the weights", one.id.kind.word(), one.id.name);
                return Accepted::NotYet(what);
            }
            match verify::accepted(one.id.kind, object) {
                Accepted::NotAsked => {}
                Accepted::Yes(what) => {
                    warning = warning.or(what);
                    all = Accepted::Yes(None);
                }
                Accepted::NotYet(what) => return Accepted::NotYet(what),
            }
        }
        match all {
            Accepted::Yes(_) => Accepted::Yes(warning),
            Accepted::NotAsked | Accepted::NotYet(_) => all,
        }
    }
}

/// Which routes a move is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Those that have headers and whose settings say that steps may add routes by header.
    WithHeaders,
    /// Those of HTTP and gRPC.
    Http,
}

/// How much goes where.
struct Shares<'s> {
    canary: i64,
    max: i64,
    additional: &'s [WeightDestination],
}

impl<'r> Writer<'r> {
    fn of(asked: Asked<'r>) -> Option<Writer<'r>> {
        let (from, config) = settings(asked.routing)?;
        Some(Writer { asked, from, config })
    }

    fn namespace<'w>(&'w self, config: &'w Config) -> &'w str {
        if config.namespace.is_empty() { &self.asked.rollout.metadata.namespace } else { &config.namespace }
    }

    fn id(&self, config: &Config, kind: Kind, name: &str) -> Id {
        Id { kind, namespace: self.namespace(config).into(), name: name.into() }
    }

    fn config(&self) -> Result<&Config, Problem> {
        self.config.as_ref().map_err(|what| Problem::Said(what.clone()))
    }

    /// The routes, in the order in which they are written; one that is named twice is there once.
    fn managed(&self, routes: &Routes) -> Result<Vec<Managed>, Problem> {
        let config = self.config()?;
        let mut all: Vec<Managed> = Vec::new();
        let mut add = |id: Id, headers: bool| match all.iter_mut().find(|known| known.id == id) {
            Some(known) => known.headers |= headers,
            None => all.push(Managed { id, headers }),
        };
        for kind in config::KINDS {
            for Entry { name, headers, .. } in config.entries.iter().filter(|entry| entry.kind == kind) {
                add(self.id(config, kind, name), *headers);
            }
            for (_, selector) in config.selectors.iter().filter(|(of, _)| *of == kind) {
                let selector = selector.as_ref().map_err(|what| Problem::Said(what.clone()))?;
                for (id, object) in routes.iter() {
                    let labels = object.at(&["metadata", "labels"]).and_then(Value::as_map);
                    if id.kind == kind && id.namespace == self.namespace(config) && selector.matches(labels) {
                        add(id.clone(), false);
                    }
                }
            }
        }
        Ok(all)
    }

    fn rules(&self, managed: &Managed, object: Value) -> Rules<'r> {
        let Services { stable, canary } = Services::of(self.asked.rollout);
        Rules { asked: self.asked, kind: managed.id.kind, stable, canary, object }
    }

    /// Changes the rules of each route; one that stays as it is is not written.
    fn each(
        &self,
        routes: &mut Routes,
        which: Which,
        change: impl Fn(&mut Rules<'_>) -> Result<(), Problem>,
    ) -> Result<usize, Problem> {
        let mut count = 0;
        for managed in self.managed(routes)? {
            let is_http = matches!(managed.id.kind, Kind::HttpRoute | Kind::GrpcRoute);
            if !is_http || which == Which::WithHeaders && !managed.headers {
                continue;
            }
            count += 1;
            self.change(routes, &managed, &change)?;
        }
        Ok(count)
    }

    fn change(
        &self,
        routes: &mut Routes,
        managed: &Managed,
        change: impl FnOnce(&mut Rules<'_>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let before = self.route(routes, managed)?;
        let mut rules = self.rules(managed, before.clone());
        let done = change(&mut rules);
        if rules.object != *before {
            let after = rules.object;
            routes.put(managed.id.clone(), after);
        }
        done
    }

    fn route<'o>(&self, routes: &'o Routes, managed: &Managed) -> Result<&'o Value, Problem> {
        if managed.id.name.is_empty() {
            return Err(Problem::Said("resource name may not be empty".into()));
        }
        routes.must(&managed.id)
    }

    fn shares<'s>(&self, canary: i64, additional: &'s [WeightDestination]) -> Shares<'s> {
        let max = self.asked.routing.max_traffic_weight.and_then(MaxWeight::new).unwrap_or(MaxWeight::PERCENT);
        Shares { canary, max: i64::from(max.parts()), additional }
    }

    fn weigh(&self, routes: &mut Routes, weight: i64, additional: &[WeightDestination]) -> Result<(), Problem> {
        let config = self.config()?;
        let managed = self.managed(routes)?;
        if managed.is_empty() {
            let what = "No routes configured. At least one of 'httpRoutes', 'grpcRoutes', 'tcpRoutes', 'tlsRoutes', \
                        'httpRoute', 'grpcRoute', 'tcpRoute' or 'tlsRoute' must be set";
            return Err(Problem::Said(what.into()));
        }
        let shares = self.shares(weight, additional);
        for one in &managed {
            // The Services of experiments are looked up among the objects that were seen.
            let seen = routes.clone();
            self.change(routes, one, |rules| {
                rules.weigh(&shares, &seen)?;
                rules.label(config.label.as_ref(), weight);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Copies requests to the canary. A step that covers no rule of any route would silently do nothing.
    fn mirror(&self, routes: &mut Routes, route: &SetMirrorRoute) -> Result<(), Problem> {
        let made = std::cell::Cell::new(0);
        let count = self.each(routes, Which::Http, |rules| {
            made.set(made.get() + rules.set_mirror_route(route)?);
            Ok(())
        })?;
        if count > 0 && made.get() == 0 && !route.r#match.is_empty() {
            let what = format!("the match of setMirrorRoute {} covers no rule that leads to both versions", route.name);
            return Err(Problem::Said(what));
        }
        Ok(())
    }
}

/// The Rollout's namespace, in which the Services of its experiments are.
fn home(rollout: &Rollout) -> &str {
    &rollout.metadata.namespace
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        api::{self, HeaderRoutingMatch, RouteMatch, SetHeaderRoute, StringMatch},
        route::{read, write},
        value,
    };

    #[derive(Debug, Clone)]
    enum Step {
        Weight(i32),
        Header(bool),
        Mirror(bool),
        Clear,
    }

    fn exact(text: &str) -> StringMatch {
        StringMatch { exact: text.into(), ..StringMatch::default() }
    }

    fn rollout(mut routing: Value) -> Rollout {
        routing.set_at(&["managedRoutes"], value!([{"name": "h"}, {"name": "m"}]));
        api::read(
            &value!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": {"strategy": {"canary": {
            "stableService": "stable", "canaryService": "canary", "trafficRouting": routing}}}}),
        )
        .object
    }

    /// A route with two rules that lead to both versions, and three of the user's own.
    fn route(weight: Option<i32>, theirs: &str, label: bool) -> Value {
        let to = |name: &str, weight: Option<i32>| {
            let mut to = value!({"name": name, "port": 80, "note": theirs});
            if let Some(weight) = weight {
                to.set_at(&["weight"], weight);
            }
            to
        };
        let stable = weight.map(|weight| 100 - weight);
        let rule = |path: &str, backends: Vec<Value>| {
            value!({"matches": [{"path": {"type": "PathPrefix", "value": path}}],
            "timeouts": {"request": theirs}, "backendRefs": Value::list(backends)})
        };
        let mut route = value!({"metadata": {"name": "r", "namespace": "shop"}, "spec": {"parentRefs": [{"name": "gw"}], "rules": [
            rule("/a", vec![to("stable", stable), to("canary", weight), to("other", Some(3))]),
            rule("/preview", vec![to("canary", None)]),
            rule("/old", vec![to("stable", Some(1))]),
            rule("/b", vec![to("canary", weight), to("stable", stable), to("other", Some(3))]),
            rule("/docs", vec![to("docs", None)])]}});
        if label {
            let value = "in-progress";
            route.set_at(&["metadata", "labels", "rollouts.argoproj.io/gatewayapi-canary"], value);
        }
        route
    }

    proptest! {
        /// The two laws.
        #[test]
        fn what_was_written_is_read_and_nothing_else_changes(
            steps in prop::collection::vec(prop_oneof![
                (0..=100i32).prop_map(Step::Weight), any::<bool>().prop_map(Step::Header),
                any::<bool>().prop_map(Step::Mirror), Just(Step::Clear),
            ], 1..8),
            theirs in "[a-z]{1,6}", is_plugin in any::<bool>(),
        ) {
            let settings = value!({"httpRoute": "r"});
            let routing = if is_plugin { value!({"plugins": {PLUGIN: settings}}) } else { value!({"gatewayAPI": settings}) };
            let rollout = rollout(routing);
            let id = Id { kind: Kind::HttpRoute, namespace: "shop".into(), name: "r".into() };
            let mut routes = Routes::of([(id.clone(), route(None, &theirs, false))]);
            let (mut weight, mut made) = (None, std::collections::BTreeSet::new());
            for step in steps {
                let mut header = SetHeaderRoute { name: "h".into(), ..SetHeaderRoute::default() };
                let mut mirror = SetMirrorRoute { name: "m".into(), percentage: Some(30), ..SetMirrorRoute::default() };
                let mut note = |name: &str, on: bool| {
                    if on { made.insert(name.to_owned()) } else { made.remove(name) }
                };
                let step = match step {
                    Step::Weight(canary) => {
                        weight = Some(canary);
                        Move::Weights { canary, additional: &[] }
                    }
                    Step::Header(on) => {
                        note("h", on);
                        if on {
                            let wanted = HeaderRoutingMatch { header_name: "x".into(), header_value: Some(exact("1")) };
                            header.r#match = vec![wanted];
                        }
                        Move::Header(&header)
                    }
                    Step::Mirror(on) => {
                        note("m", on);
                        if on {
                            mirror.r#match = vec![RouteMatch { method: Some(exact("GET")), ..RouteMatch::default() }];
                        }
                        Move::Mirror(&mirror)
                    }
                    Step::Clear => {
                        made.clear();
                        Move::Clear
                    }
                };
                prop_assert_eq!(write(Leaf::Gateway, &rollout, &mut routes, step, &mut Vec::new()), Ok(()));
                let expected = weight.map(|weight| Route {
                    canary: weight.into(),
                    stable: (100 - weight).into(),
                    additional: vec![("other".into(), 3)],
                    managed: made.clone(),
                });
                prop_assert_eq!(read(Leaf::Gateway, &rollout, &routes), expected);
                let mut left = routes.get(&id).cloned().unwrap();
                let is_users = |rule: &&Value| rule.get("name").is_none();
                let rules = Value::list(left.list_at(&["spec", "rules"]).iter().filter(is_users).cloned());
                left.set_at(&["spec", "rules"], rules);
                let label = weight.is_some_and(|weight| weight != 0);
                prop_assert_eq!(left, route(weight, &theirs, label));
                let before = routes.clone();
                prop_assert_eq!(write(Leaf::Gateway, &rollout, &mut routes, step, &mut Vec::new()), Ok(()));
                prop_assert_eq!(&routes, &before);
            }
        }
    }

    #[test]
    fn what_a_server_fills_in_is_no_difference() {
        let rollout = rollout(value!({"gatewayAPI": {"httpRoute": "r"}}));
        let id = Id { kind: Kind::HttpRoute, namespace: "shop".into(), name: "r".into() };
        let mut routes = Routes::of([(id.clone(), route(Some(10), "x", true))]);
        let wanted = HeaderRoutingMatch { header_name: "x".into(), header_value: Some(exact("1")) };
        let header = SetHeaderRoute { name: "h".into(), r#match: vec![wanted] };
        write(Leaf::Gateway, &rollout, &mut routes, Move::Header(&header), &mut Vec::new()).unwrap();
        // As a server stores it that knows no names of rules.
        let mut stored = routes.get(&id).cloned().unwrap();
        let mut rules = stored.list_at(&["spec", "rules"]).to_vec();
        assert_eq!(rules.len(), 7);
        for rule in &mut rules {
            rule.remove_at(&["name"]);
            let mut backends = rule.list_at(&["backendRefs"]).to_vec();
            for backend in &mut backends {
                for (key, usual) in [("group", Value::from("")), ("kind", "Service".into()), ("weight", 1.into())] {
                    if backend.get(key).is_none() {
                        backend.set_at(&[key], usual);
                    }
                }
            }
            rule.set_at(&["backendRefs"], backends);
        }
        stored.set_at(&["spec", "rules"], rules);
        let mut steps = rollout.clone();
        if let Some(canary) = &mut steps.spec.strategy.canary {
            canary.steps =
                vec![api::CanaryStep { set_header_route: Some(header.clone()), ..api::CanaryStep::default() }];
        }
        routes = Routes::of([(id.clone(), stored.clone())]);
        write(Leaf::Gateway, &steps, &mut routes, Move::Header(&header), &mut Vec::new()).unwrap();
        assert_eq!(routes.get(&id), Some(&stored));
        write(Leaf::Gateway, &steps, &mut routes, Move::Clear, &mut Vec::new()).unwrap();
        assert_eq!(routes.get(&id).unwrap().list_at(&["spec", "rules"]).len(), 5);
    }

    #[test]
    fn a_share_that_a_server_cannot_mirror_is_refused_for_good() {
        let rollout = rollout(value!({"gatewayAPI": {"httpRoute": "r"}}));
        let id = Id { kind: Kind::HttpRoute, namespace: "shop".into(), name: "r".into() };
        let mut routes = Routes::of([(id.clone(), route(Some(10), "x", true))]);
        let asked = RouteMatch { method: Some(exact("GET")), ..RouteMatch::default() };
        let mirror = SetMirrorRoute { name: "m".into(), percentage: Some(5), r#match: vec![asked] };
        let tell = |routes: &mut Routes| {
            write(Leaf::Gateway, &rollout, routes, Move::Mirror(&mirror), &mut Vec::new()).is_ok()
        };
        assert!(tell(&mut routes));
        let mut stored = routes.get(&id).cloned().unwrap();
        let mut rules = stored.list_at(&["spec", "rules"]).to_vec();
        for rule in &mut rules {
            let mut filters = rule.list_at(&["filters"]).to_vec();
            filters.iter_mut().for_each(|filter| drop(filter.remove_at(&["requestMirror", "percent"])));
            if !filters.is_empty() {
                rule.set_at(&["filters"], filters);
            }
        }
        stored.set_at(&["spec", "rules"], rules);
        routes.put(id.clone(), stored);
        for _ in 0..2 {
            assert!(!tell(&mut routes));
            assert_eq!(routes.get(&id).unwrap().list_at(&["spec", "rules"]).len(), 5);
        }
    }
}
