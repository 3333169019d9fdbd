//! The AWS load balancer controller: annotations of an Ingress carry the weights, and each route by header is an action,
//! its conditions and a path.
//!
//! Of an Ingress only our own annotations and the paths of managed routes are touched; which annotations are ours is noted
//! on it, Rollout by Rollout. Knows no mirror. Whether the load balancer does as it is told is asked elsewhere.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Asked, Id, Kind, Leaf, Move, Problem, Route, Router, Routes, Row, Services, Told, agreed, ingress};
use crate::{
    api::{
        AlbTrafficRouting, CanaryStrategy, HeaderRoutingMatch, Rollout, RolloutTrafficRouting, SetHeaderRoute,
        WeightDestination,
        constants::{annotation, reason},
    },
    kubernetes::{status::FieldError, value::Value},
    model::{path::go_json, references::References},
};

/// What annotations of the controller begin with, if nothing else is said.
const PREFIX: &str = "alb.ingress.kubernetes.io";
/// All of the traffic; the controller's weights have no other sum here.
const TOTAL: i64 = 100;

/// What an annotation says about an action, in the controller's words and order.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Action {
    r#type: String,
    forward_config: Forward,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Forward {
    #[serde(default)]
    target_groups: Vec<TargetGroup>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_group_stickiness_config: Option<Stickiness>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TargetGroup {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    service_name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    service_port: String,
    #[serde(default)]
    weight: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Stickiness {
    enabled: bool,
    duration_seconds: i64,
}

/// One of the conditions of a route by header, which must all hold.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    field: &'static str,
    http_header_config: Header,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    http_header_name: String,
    values: Vec<String>,
}

/// Which annotations of an Ingress are whose, by Rollout.
type Managed = BTreeMap<String, Vec<String>>;

pub const ROW: Row = Row {
    leaf: Leaf::Alb,
    name: "ALB",
    field: "alb",
    kinds: &[Kind::Ingress],
    is_used: |routing| routing.alb.is_some(),
    router: |asked| Some(Box::new(Writer::of(asked)?)),
};

/// What a Rollout says about its load balancer.
struct Writer<'r> {
    rollout: &'r Rollout,
    canary: &'r CanaryStrategy,
    routing: &'r RolloutTrafficRouting,
    alb: &'r AlbTrafficRouting,
}

impl Router for Writer<'_> {
    fn ids(&self) -> Vec<Id> {
        let single = Some(&self.alb.ingress).filter(|name| !name.is_empty());
        let names = single.into_iter().chain(&self.alb.ingresses);
        names.map(|name| Id::beside(self.rollout, Kind::Ingress, name)).collect()
    }

    fn write(&self, routes: &mut Routes, step: Move<'_>, told: &mut Vec<Told>) -> Result<(), Problem> {
        match step {
            Move::Weights { canary, additional } => self.each(routes, told, |ingress, name| {
                self.weigh(ingress, name, canary, additional)?;
                Ok(format!("Updating Ingress `{name}` to desiredWeight '{canary}'"))
            }),
            Move::Header(route) => self.each(routes, told, |ingress, name| {
                self.set_header_route(ingress, name, route)?;
                Ok(format!("Updating Ingress `{name}` to headerRoute '{}'", route.name))
            }),
            Move::Clear if !self.routing.managed_routes.is_empty() => self.each(routes, told, |ingress, name| {
                self.clear(ingress, name)?;
                Ok(format!("Updating Ingress `{name}` removing managed routes"))
            }),
            Move::Clear | Move::Hashes { .. } | Move::Mirror(_) => Ok(()),
        }
    }

    fn read(&self, routes: &Routes) -> Option<Route> {
        agreed(self.ingresses().iter().map(|name| {
            let ingress = routes.get(&Id::beside(self.rollout, Kind::Ingress, name))?;
            let text = ingress.str_at(&["metadata", "annotations", &self.key("actions", self.root())])?;
            let action: Action = serde_json::from_str(text).ok()?;
            let mut groups = action.forward_config.target_groups.into_iter();
            let canary = groups.next()?.weight;
            let stable = groups.next_back()?.weight;
            let additional = groups.map(|group| (group.service_name, group.weight)).collect();
            let is_made = |route: &&str| {
                ingress.at(&["metadata", "annotations", &self.key("actions", route)]).is_some()
                    && ingress::leads_to(ingress, route)
            };
            let managed = self.managed_routes().filter(is_made).map(str::to_owned).collect();
            Some(Route { canary, stable, additional, managed })
        }))
    }

    fn refer(&self, routes: &Routes, found: &mut References) {
        ingress::refer(&self.ids(), routes, found);
    }

    fn missing(&self, routes: &Routes) -> Option<FieldError> {
        let fields = ["alb.ingress", "alb.ingresses"];
        ingress::missing(self.rollout, routes, fields, &self.alb.ingress, &self.alb.ingresses)
    }
}

impl<'r> Writer<'r> {
    fn of(Asked { rollout, canary, routing }: Asked<'r>) -> Option<Writer<'r>> {
        Some(Writer { rollout, canary, routing, alb: routing.alb.as_ref()? })
    }

    /// Changes each Ingress, and tells of those that are not as they were.
    fn each(
        &self,
        routes: &mut Routes,
        told: &mut Vec<Told>,
        change: impl Fn(&mut Value, &str) -> Result<String, Problem>,
    ) -> Result<(), Problem> {
        for name in self.ingresses() {
            let id = Id::beside(self.rollout, Kind::Ingress, name);
            let before = routes.must(&id)?;
            let mut after = before.clone();
            let message = change(&mut after, name)?;
            if after != *before {
                told.push(Told { warning: false, reason: reason::PATCHING_ALB_INGRESS, message });
                routes.put(id, after);
            }
        }
        Ok(())
    }

    fn ingresses(&self) -> &[String] {
        match self.alb.ingresses.as_slice() {
            [] => std::slice::from_ref(&self.alb.ingress),
            several => several,
        }
    }

    /// The Service that the Ingress names.
    fn root(&self) -> &str {
        if self.alb.root_service.is_empty() { &self.canary.stable_service } else { &self.alb.root_service }
    }

    fn managed_routes(&self) -> impl Iterator<Item = &str> {
        self.routing.managed_routes.iter().map(|route| route.name.as_str())
    }

    /// The annotation of an action or of its conditions.
    fn key(&self, part: &str, name: &str) -> String {
        let prefix = if self.alb.annotation_prefix.is_empty() { PREFIX } else { &self.alb.annotation_prefix };
        format!("{prefix}/{part}.{name}")
    }

    fn weigh(
        &self,
        ingress: &mut Value,
        name: &str,
        weight: i32,
        additional: &[WeightDestination],
    ) -> Result<(), Problem> {
        let root = self.root();
        if !ingress::leads_to(ingress, root) {
            return Err(Problem::NoRule(root.to_owned()));
        }
        let services = Services::of(self.rollout);
        let (mut groups, mut rest) = (vec![self.group(services.canary, weight.into())], TOTAL - i64::from(weight));
        for destination in additional {
            groups.push(self.group(&destination.service_name, destination.weight.into()));
            rest -= i64::from(destination.weight);
        }
        groups.push(self.group(services.stable, rest));
        let (key, action) = (self.key("actions", root), self.action(groups)?);
        self.note(ingress, name, |own| add(own, &key))?;
        ingress.set_at(&["metadata", "annotations", &key], action);
        Ok(())
    }

    fn set_header_route(&self, ingress: &mut Value, name: &str, route: &SetHeaderRoute) -> Result<(), Problem> {
        let keys = [self.key("actions", &route.name), self.key("conditions", &route.name)];
        if route.r#match.is_empty() {
            self.remove_routes(ingress, name, &keys, &[&route.name])?;
        } else {
            let action = self.action(vec![self.group(Services::of(self.rollout).canary, TOTAL)])?;
            let texts = [action, go_json(&conditions(&route.r#match))];
            self.note(ingress, name, |own| keys.iter().for_each(|key| add(own, key)))?;
            for (key, text) in keys.iter().zip(texts) {
                ingress.set_at(&["metadata", "annotations", key], text);
            }
            if !ingress::leads_to(ingress, &route.name) {
                let path = ingress::by_annotation(&route.name);
                ingress::change_paths(ingress, |paths| {
                    if !paths.is_empty() {
                        paths.insert(0, path.clone());
                    }
                });
            }
        }
        // The first of the managed routes has precedence, all of them over other paths.
        let place = |path: &Value| self.managed_routes().position(|route| route == ingress::service(path));
        ingress::change_paths(ingress, |paths| paths.sort_by_key(|path| place(path).unwrap_or(usize::MAX)));
        Ok(())
    }

    fn clear(&self, ingress: &mut Value, name: &str) -> Result<(), Problem> {
        let routes: Vec<&str> = self.managed_routes().collect();
        let keys = routes.iter().flat_map(|route| [self.key("actions", route), self.key("conditions", route)]);
        self.remove_routes(ingress, name, &keys.collect::<Vec<_>>(), &routes)
    }

    fn remove_routes(&self, ingress: &mut Value, name: &str, keys: &[String], routes: &[&str]) -> Result<(), Problem> {
        self.note(ingress, name, |own| own.retain(|key| !keys.contains(key)))?;
        for key in keys {
            ingress.remove_at(&["metadata", "annotations", key]);
        }
        ingress::change_paths(ingress, |paths| {
            for route in routes {
                if let Some(at) = paths.iter().position(|path| ingress::service(path) == *route) {
                    paths.remove(at);
                }
            }
        });
        Ok(())
    }

    /// Changes the note of which annotations are ours.
    fn note(&self, ingress: &mut Value, name: &str, change: impl FnOnce(&mut Vec<String>)) -> Result<(), Problem> {
        let path = ["metadata", "annotations", annotation::MANAGED_ALB_ANNOTATIONS];
        let text = ingress.str_at(&path).unwrap_or_default();
        let unreadable =
            |error: serde_json::Error| Problem::Unreadable { ingress: name.to_owned(), why: error.to_string() };
        let mut managed: Managed =
            if text.is_empty() { Managed::new() } else { serde_json::from_str(text).map_err(unreadable)? };
        change(managed.entry(self.rollout.metadata.name.clone()).or_default());
        ingress.set_at(&path, go_json(&managed));
        Ok(())
    }

    fn group(&self, service: &str, weight: i64) -> TargetGroup {
        TargetGroup { service_name: service.to_owned(), service_port: self.alb.service_port.to_string(), weight }
    }

    /// An action, as Go prints it.
    fn action(&self, target_groups: Vec<TargetGroup>) -> Result<String, Problem> {
        let sticky = self.alb.stickiness_config.as_ref().filter(|config| config.enabled);
        if sticky.is_some_and(|config| !(1..=604_800).contains(&config.duration_seconds)) {
            return Err(Problem::Stickiness);
        }
        let sticky = sticky.map(|config| Stickiness { enabled: true, duration_seconds: config.duration_seconds });
        let forward_config = Forward { target_groups, target_group_stickiness_config: sticky };
        Ok(go_json(&Action { r#type: "forward".into(), forward_config }))
    }
}

fn add(keys: &mut Vec<String>, key: &str) {
    if !keys.iter().any(|known| known == key) {
        keys.push(key.to_owned());
    }
}

/// One condition for each header; a header that is named twice may have either value. Only whole values can be matched.
fn conditions(matches: &[HeaderRoutingMatch]) -> Vec<Condition> {
    let mut conditions: Vec<Condition> = Vec::new();
    for header in matches {
        let value = header.header_value.as_ref().map(|value| value.exact.clone()).unwrap_or_default();
        let known = conditions.iter_mut().find(|known| known.http_header_config.http_header_name == header.header_name);
        match known {
            Some(known) => known.http_header_config.values.push(value),
            None => {
                let http_header_config = Header { http_header_name: header.header_name.clone(), values: vec![value] };
                conditions.push(Condition { field: "http-header", http_header_config });
            }
        }
    }
    conditions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        api,
        route::{Leaf, read, write},
        value,
    };

    fn rollout(names: &[String], managed: &[&str]) -> Rollout {
        let names = Value::list(names.iter().map(|name| name.as_str().into()));
        let managed = Value::list(managed.iter().map(|name| value!({"name": *name})));
        api::read(
            &value!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": {"strategy": {"canary": {
            "stableService": "stable", "canaryService": "canary",
            "trafficRouting": {"managedRoutes": managed, "alb": {"ingresses": names, "servicePort": 80}}}}}}),
        )
        .object
    }

    fn ingress(name: &str, theirs: &[String]) -> (Id, Value) {
        let mut object = value!({"metadata": {"name": name, "namespace": "shop"}, "spec": {"rules": [{"host": "a"}, {"http": {"paths": [
            {"path": "/x", "backend": {"service": {"name": "other", "port": {"number": 80}}}},
            {"path": "/", "backend": {"service": {"name": "stable", "port": {"name": "use-annotation"}}}},
        ]}}]}});
        for key in theirs {
            object.set_at(&["metadata", "annotations", key], format!("their {key}"));
        }
        (Id { kind: Kind::Ingress, namespace: "shop".into(), name: name.into() }, object)
    }

    /// What is left of an Ingress without what is ours.
    fn without_ours(object: &Value) -> Value {
        let mut object = object.clone();
        let annotations = object.at(&["metadata", "annotations"]).and_then(Value::as_map).cloned().unwrap_or_default();
        for (key, _) in annotations.iter().filter(|(key, _)| key.starts_with(PREFIX) || key.contains("managed-alb")) {
            object.remove_at(&["metadata", "annotations", key]);
        }
        object.set_at(&["metadata", "annotations", "x"], "so that there are some");
        ingress::change_paths(&mut object, |paths| paths.retain(|path| !ingress::service(path).starts_with('h')));
        object
    }

    #[derive(Debug, Clone)]
    enum Step {
        Weights(i32, Vec<i32>),
        Header(usize, bool),
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..=100i32, prop::collection::vec(0..10i32, 0..3)).prop_map(|(weight, more)| Step::Weights(weight, more)),
            (0..2usize, any::<bool>()).prop_map(|(route, on)| Step::Header(route, on)),
            Just(Step::Clear),
        ];
        prop::collection::vec(step, 1..8)
    }

    proptest! {
        /// The two laws.
        #[test]
        fn what_was_written_is_read_and_nothing_else_changes(
            names in prop::collection::btree_set("[a-z]{1,8}", 1..4),
            theirs in prop::collection::vec("[a-z.]{1,9}", 0..3),
            steps in steps(),
        ) {
            let (names, managed) = (names.into_iter().collect::<Vec<_>>(), ["h1", "h2"]);
            let rollout = rollout(&names, &managed);
            let mut routes = Routes::of(names.iter().map(|name| ingress(name, &theirs)));
            let before: Vec<Value> = routes.iter().map(|(_, object)| without_ours(object)).collect();
            let mut expected: Option<Route> = None;
            let mut made = std::collections::BTreeSet::new();
            for step in steps {
                let (mut told, mut more, mut header) = (Vec::new(), Vec::new(), SetHeaderRoute::default());
                let step = match step {
                    Step::Weights(canary, additional) => {
                        for (number, weight) in additional.into_iter().enumerate() {
                            let service_name = format!("e{number}");
                            more.push(WeightDestination { weight, service_name, ..WeightDestination::default() });
                        }
                        let rest: i64 = more.iter().map(|other| i64::from(other.weight)).sum();
                        let additional = more.iter().map(|other| (other.service_name.clone(), other.weight.into()));
                        let stable = 100 - i64::from(canary) - rest;
                        expected = Some(Route { canary: canary.into(), stable, additional: additional.collect(), ..Route::default() });
                        Move::Weights { canary, additional: &more }
                    }
                    Step::Header(route, on) => {
                        header.name = managed[route].into();
                        if on {
                            header.r#match = vec![HeaderRoutingMatch { header_name: "a".into(), header_value: None }];
                            made.insert(header.name.clone());
                        } else {
                            made.remove(&header.name);
                        }
                        Move::Header(&header)
                    }
                    Step::Clear => {
                        made.clear();
                        Move::Clear
                    }
                };
                prop_assert_eq!(write(Leaf::Alb, &rollout, &mut routes, step, &mut told), Ok(()));
                let expected = expected.clone().map(|route| Route { managed: made.clone(), ..route });
                prop_assert_eq!(read(Leaf::Alb, &rollout, &routes), expected);
                let mut again = Vec::new();
                prop_assert_eq!(write(Leaf::Alb, &rollout, &mut routes, step, &mut again), Ok(()));
                prop_assert_eq!(again, []);
                let after: Vec<Value> = routes.iter().map(|(_, object)| without_ours(object)).collect();
                prop_assert_eq!(&after, &before);
            }
        }
    }

    #[test]
    fn every_ingress_is_told_also_behind_one_that_needs_nothing() {
        let names = ["a".to_owned(), "b".to_owned()];
        let rollout = rollout(&names, &[]);
        let (mut routes, mut told) = (Routes::of([ingress("a", &[]), ingress("b", &[])]), Vec::new());
        let step = Move::Weights { canary: 10, additional: &[] };
        write(Leaf::Alb, &rollout, &mut routes, step, &mut told).unwrap();
        let (id, bare) = ingress("b", &[]);
        routes.put(id, bare);
        assert_eq!(read(Leaf::Alb, &rollout, &routes), None);
        told.clear();
        write(Leaf::Alb, &rollout, &mut routes, step, &mut told).unwrap();
        assert_eq!(
            told.iter().map(|told| told.message.as_str()).collect::<Vec<_>>(),
            ["Updating Ingress `b` to desiredWeight '10'"]
        );
    }
}
