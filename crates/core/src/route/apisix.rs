//! Apache APISIX: rules of the user's own ApisixRoute carry the weights, and each route by header is a route of its own.
//!
//! In the rules that a Rollout names, only the weights of its backends are touched. A route by header is a copy of the whole
//! route that leads to the canary; it belongs to the Rollout, and goes with its step. Knows no mirror, and no destinations of
//! experiments.

use super::{Asked, Id, Kind, Leaf, Move, Problem, Route, Router, Routes, Row, Told, agreed, nested};
use crate::{
    api::{CanaryStrategy, HeaderRoutingMatch, Rollout, RolloutTrafficRouting, SetHeaderRoute},
    kubernetes::{object, value::Value},
    model::refers,
    value,
};

/// All of the traffic.
const TOTAL: i64 = 100;
/// Where the rules are.
const RULES: [&str; 2] = ["spec", "http"];
/// What Argo Rollouts says of anything that is not what it must be.
const ILL_TYPED: &str = "Failed type assertion for Apisix http route";

pub const ROW: Row = Row {
    leaf: Leaf::Apisix,
    name: "Apisix",
    field: "apisix",
    kinds: &[Kind::ApisixRoute],
    is_used: |routing| routing.apisix.is_some(),
    router: |asked| Some(Box::new(Writer::of(asked)?)),
};

/// What a Rollout says about its APISIX.
struct Writer<'r> {
    rollout: &'r Rollout,
    canary: &'r CanaryStrategy,
    routing: &'r RolloutTrafficRouting,
    /// The name of its route.
    route: &'r str,
    /// The names of the rules, as given.
    rules: &'r [String],
}

impl Router for Writer<'_> {
    fn ids(&self) -> Vec<Id> {
        let steps = self.canary.steps.iter().filter_map(|step| step.set_header_route.as_ref());
        let mut names: Vec<&str> = vec![self.route];
        let managed = self.routing.managed_routes.iter().map(|route| route.name.as_str());
        for name in managed.chain(steps.map(|route| route.name.as_str())) {
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        names.into_iter().map(|name| self.id(name)).collect()
    }

    fn write(&self, routes: &mut Routes, step: Move<'_>, _: &mut Vec<Told>) -> Result<(), Problem> {
        match step {
            Move::Weights { canary, additional: _ } => self.weigh(routes, canary.into()),
            Move::Header(route) => self.set_header_route(routes, route),
            Move::Clear => {
                for route in &self.routing.managed_routes {
                    let id = self.id(&route.name);
                    if routes.get(&id).is_some_and(|route| self.is_ours(route)) {
                        routes.remove(&id);
                    }
                }
                Ok(())
            }
            Move::Hashes { .. } | Move::Mirror(_) => Ok(()),
        }
    }

    fn read(&self, routes: &Routes) -> Option<Route> {
        let rules = routes.get(&self.id(self.route))?.list_at(&RULES);
        let made = self.ids().into_iter().skip(1);
        let made = made.filter(|id| routes.get(id).is_some_and(|route| self.is_ours(route)));
        let managed: std::collections::BTreeSet<String> = made.map(|id| id.name.to_string()).collect();
        agreed(self.rule_names().into_iter().map(|name| {
            let rule = &rules[position(rules, name).ok()?];
            let weight = |service: &str| {
                let backends = rule.list_at(&["backends"]).iter();
                let mut backends = backends.filter(|backend| backend.str_at(&["serviceName"]) == Some(service));
                backends.next()?.int_at(&["weight"])
            };
            let (canary, stable) = (weight(&self.canary.canary_service)?, weight(&self.canary.stable_service)?);
            Some(Route { canary, stable, managed: managed.clone(), ..Route::default() })
        }))
    }
}

impl<'r> Writer<'r> {
    fn of(Asked { rollout, canary, routing }: Asked<'r>) -> Option<Writer<'r>> {
        let route = routing.apisix.as_ref()?.route.as_ref();
        let (route, rules) = route.map_or(("", &[][..]), |route| (route.name.as_str(), route.rules.as_slice()));
        Some(Writer { rollout, canary, routing, route, rules })
    }

    fn id(&self, name: &str) -> Id {
        Id::beside(self.rollout, Kind::ApisixRoute, name)
    }

    /// The rules that carry the weights: the one that is called like the route, if none is named.
    fn rule_names(&self) -> Vec<&str> {
        match self.rules {
            [] => vec![self.route],
            several => several.iter().map(String::as_str).collect(),
        }
    }

    fn is_ours(&self, route: &Value) -> bool {
        object::controller(route).as_deref() == Some(self.rollout.metadata.uid.as_str())
    }

    fn weigh(&self, routes: &mut Routes, weight: i64) -> Result<(), Problem> {
        let id = self.id(self.route);
        let before = routes.must(&id)?;
        let after = self.with_rules(before, |rule| {
            let mut backends = backends(rule)?;
            set_weight(&mut backends, &self.canary.canary_service, weight)?;
            set_weight(&mut backends, &self.canary.stable_service, TOTAL - weight)?;
            rule.set_at(&["backends"], backends);
            Ok(())
        })?;
        if after != *before {
            routes.put(id, after);
        }
        Ok(())
    }

    /// A route with each of the named rules changed.
    fn with_rules(&self, route: &Value, change: impl Fn(&mut Value) -> Result<(), Problem>) -> Result<Value, Problem> {
        let missing = || said("spec.http was not found in Apisix Route manifest");
        let mut rules = nested::list(route, &RULES)?.ok_or_else(missing)?.to_vec();
        for name in self.rule_names() {
            let at = position(&rules, name)?;
            change(&mut rules[at])?;
        }
        let mut after = route.clone();
        after.set_at(&RULES, rules);
        Ok(after)
    }

    /// Makes, changes or removes a route by header.
    fn set_header_route(&self, routes: &mut Routes, route: &SetHeaderRoute) -> Result<(), Problem> {
        let main = routes.must(&self.id(self.route))?;
        let id = self.id(&route.name);
        let before = routes.get(&id);
        if before.is_some_and(|before| !self.is_ours(before)) {
            return Err(Problem::Said(format!("duplicate ApisixRoute [{}] already exists", route.name)));
        }
        if route.r#match.is_empty() {
            routes.remove(&id);
            return Ok(());
        }
        let is_new = before.is_none();
        let source = before.cloned().unwrap_or_else(|| self.copied(main, &route.name));
        let after = self.with_rules(&source, |rule| {
            let mut backends = backends(rule)?;
            set_weight(&mut backends, &self.canary.canary_service, TOTAL)?;
            let mut left = Vec::new();
            for backend in backends {
                if backend.as_map().is_none() {
                    return Err(said(&format!("{ILL_TYPED} backend")));
                }
                if service(&backend)? != self.canary.stable_service {
                    left.push(backend);
                }
            }
            rule.set_at(&["backends"], left);
            if is_new {
                let priority = nested::int(rule, &["priority"])?.unwrap_or_default();
                rule.set_at(&["priority"], priority.wrapping_add(1));
            }
            if rule.at(&["match"]).is_some_and(|part| part.as_map().is_none()) {
                return Err(said("value cannot be set because .match is not a map[string]interface{}"));
            }
            rule.set_at(&["match", "exprs"], Value::list(route.r#match.iter().flat_map(expressions)));
            Ok(())
        })?;
        if before != Some(&after) {
            routes.put(id, after);
        }
        Ok(())
    }

    /// A route of another name that belongs to the Rollout.
    fn copied(&self, main: &Value, name: &str) -> Value {
        let mut made = main.clone();
        for key in ["resourceVersion", "generation", "uid", "creationTimestamp"] {
            made.remove_at(&["metadata", key]);
        }
        made.set_at(&["metadata", "name"], name);
        made.set_at(&["metadata", "ownerReferences"], Value::list([refers::owner(self.rollout)]));
        made
    }
}

fn said(what: &str) -> Problem {
    Problem::Said(what.to_owned())
}

/// Where the rule of this name is. One that cannot be read before it is a problem.
fn position(rules: &[Value], wanted: &str) -> Result<usize, Problem> {
    for (at, rule) in rules.iter().enumerate() {
        let rule = rule.as_map().ok_or_else(|| said(ILL_TYPED))?;
        let name = rule.get("name").ok_or_else(|| said("Apisix http route rule name field not found"))?;
        if name.as_str().ok_or_else(|| said(&format!("{ILL_TYPED} rule name")))? == wanted {
            return Ok(at);
        }
    }
    Err(said(&format!("Apisix http route rule {wanted} not found")))
}

fn backends(rule: &Value) -> Result<Vec<Value>, Problem> {
    let backends = rule.get("backends").ok_or_else(|| said("Apisix http route backends not found"))?;
    backends.as_list().map(<[Value]>::to_vec).ok_or_else(|| said(&format!("{ILL_TYPED} backends")))
}

/// The Service of a backend.
fn service(backend: &Value) -> Result<&str, Problem> {
    nested::text(backend, &["serviceName"])?.ok_or_else(|| said("serviceName field was not found in backend"))
}

/// Gives the first backend of a Service this weight.
fn set_weight(backends: &mut [Value], wanted: &str, weight: i64) -> Result<(), Problem> {
    for backend in backends {
        if backend.as_map().is_none() {
            return Err(said(&format!("{ILL_TYPED} backends")));
        }
        if service(backend)? == wanted {
            backend.set_at(&["weight"], weight);
            return Ok(());
        }
    }
    Err(said(&format!("apisix route {wanted} backend was not found")))
}

/// What a request must be like: one expression for each form in which the value is given.
fn expressions(header: &HeaderRoutingMatch) -> Vec<Value> {
    let Some(text) = &header.header_value else { return Vec::new() };
    let prefix = format!("^{}.*", text.prefix);
    let forms = [
        ("Equal", &text.exact, &text.exact),
        ("RegexMatch", &text.regex, &text.regex),
        ("RegexMatch", &text.prefix, &prefix),
    ];
    let given = forms.into_iter().filter(|(_, given, _)| !given.is_empty());
    let subject = value!({"scope": "Header", "name": header.header_name.as_str()});
    given.map(|(op, _, value)| value!({"subject": subject.clone(), "op": op, "value": value.as_str()})).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        api,
        route::{read, write},
    };

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
            theirs in "[a-z]{1,6}", port in 1..99i64,
        ) {
            let rollout: Rollout = api::read(&value!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"},
                "spec": {"strategy": {"canary": {"stableService": "stable", "canaryService": "canary",
                    "trafficRouting": {"managedRoutes": [{"name": "h"}], "apisix": {"route": {"name": "r", "rules": ["a", "b"]}}}}}}})).object;
            let object = |weight: Option<i32>| {
                let backend = |service: &str, share: Option<i64>| {
                    let mut backend = value!({"serviceName": service, "servicePort": port, "note": theirs.as_str()});
                    if let Some(share) = share {
                        backend.set_at(&["weight"], share);
                    }
                    backend
                };
                let rule = |name: &str, weight: Option<i32>| value!({"name": name, "match": {"paths": ["/*"]}, "backends": [
                    backend("other", Some(7)), backend("stable", weight.map(|weight| 100 - i64::from(weight))),
                    backend("canary", weight.map(i64::from))]});
                value!({"metadata": {"name": "r", "namespace": "shop", "labels": {"x": theirs.as_str()}},
                    "spec": {"http": [rule("a", weight), rule("c", None), rule("b", weight)]}})
            };
            let id = Id { kind: Kind::ApisixRoute, namespace: "shop".into(), name: "r".into() };
            let mut routes = Routes::of([(id.clone(), object(None))]);
            let (mut weight, mut made) = (None, false);
            for step in steps {
                let mut header = SetHeaderRoute { name: "h".into(), ..SetHeaderRoute::default() };
                let step = match step {
                    Step::Weight(canary) => {
                        weight = Some(canary);
                        Move::Weights { canary, additional: &[] }
                    }
                    Step::Header(on) => {
                        made = on;
                        if on {
                            let text = Some(api::StringMatch { exact: "yes".into(), ..api::StringMatch::default() });
                            header.r#match = vec![HeaderRoutingMatch { header_name: "x".into(), header_value: text }];
                        }
                        Move::Header(&header)
                    }
                    Step::Clear => {
                        made = false;
                        Move::Clear
                    }
                };
                prop_assert_eq!(write(Leaf::Apisix, &rollout, &mut routes, step, &mut Vec::new()), Ok(()));
                let managed = made.then(|| "h".to_owned()).into_iter().collect();
                let expected = weight.map(|weight| {
                    Route { canary: weight.into(), stable: (100 - weight).into(), managed, ..Route::default() }
                });
                prop_assert_eq!(read(Leaf::Apisix, &rollout, &routes), expected);
                prop_assert_eq!(routes.get(&id), Some(&object(weight)));
                let before = routes.clone();
                prop_assert_eq!(write(Leaf::Apisix, &rollout, &mut routes, step, &mut Vec::new()), Ok(()));
                prop_assert_eq!(&routes, &before);
            }
        }
    }
}
