//! The nginx ingress controller: beside each stable Ingress one for the canary, whose annotations carry the weight.
//!
//! The stable Ingress is only read. What others wrote on the canary's Ingress stays, but for its labels and rules, which
//! follow the stable one. Knows no routes by header or mirror.

use super::{Asked, Id, Kind, Leaf, Move, Problem, Route, Router, Routes, Row, Told, agreed, ingress};
use crate::{
    api::{CanaryStrategy, NginxTrafficRouting, Rollout, RolloutTrafficRouting, constants},
    kubernetes::{object, status::FieldError, value::Value},
    model::{references::References, refers},
    value,
};

/// What annotations of the controller begin with, if nothing else is said.
const PREFIX: &str = "nginx.ingress.kubernetes.io";
/// The annotation by which Ingresses were assigned to a controller before they had a field for it.
const CLASS: &str = "kubernetes.io/ingress.class";

pub const ROW: Row = Row {
    leaf: Leaf::Nginx,
    name: "Nginx",
    field: "nginx",
    kinds: &[Kind::Ingress],
    is_used: |routing| routing.nginx.is_some(),
    router: |asked| Some(Box::new(Writer::of(asked)?)),
};

/// What a Rollout says about its nginx.
struct Writer<'r> {
    rollout: &'r Rollout,
    canary: &'r CanaryStrategy,
    routing: &'r RolloutTrafficRouting,
    nginx: &'r NginxTrafficRouting,
}

impl Router for Writer<'_> {
    fn ids(&self) -> Vec<Id> {
        let single = Some(&self.nginx.stable_ingress).filter(|name| !name.is_empty());
        let stable = single.into_iter().chain(&self.nginx.stable_ingresses);
        stable.flat_map(|name| [Id::beside(self.rollout, Kind::Ingress, name), self.canary_of(name)]).collect()
    }

    fn write(&self, routes: &mut Routes, step: Move<'_>, told: &mut Vec<Told>) -> Result<(), Problem> {
        match step {
            Move::Weights { canary, additional: _ } => {
                self.stable_ingresses().iter().try_for_each(|name| self.weigh(routes, name, canary, told))
            }
            Move::Hashes { .. } | Move::Header(_) | Move::Mirror(_) | Move::Clear => Ok(()),
        }
    }

    fn read(&self, routes: &Routes) -> Option<Route> {
        agreed(self.stable_ingresses().iter().map(|stable| {
            let ingress = routes.get(&self.canary_of(stable))?;
            let number = |key: &str| self.annotation(ingress, key)?.parse::<i64>().ok();
            let canary = number("canary-weight")?;
            let total = number("canary-weight-total").unwrap_or(100);
            Some(Route { canary, stable: total - canary, ..Route::default() })
        }))
    }

    /// The canary's Ingresses that nobody controls: they were orphaned with the Rollout, which was then created again.
    /// Nobody else makes an Ingress of this name for a canary.
    fn orphans(&self, routes: &Routes) -> Vec<Id> {
        let is_orphan = |ingress: &Value| {
            object::controller(ingress).is_none() && self.annotation(ingress, "canary") == Some("true")
        };
        let canaries = self.stable_ingresses().iter().map(|stable| self.canary_of(stable));
        canaries.filter(|id| routes.get(id).is_some_and(is_orphan)).collect()
    }

    fn refer(&self, routes: &Routes, found: &mut References) {
        ingress::refer(&self.ids(), routes, found);
    }

    fn missing(&self, routes: &Routes) -> Option<FieldError> {
        // Argo Rollouts looks at the Ingresses of one of the two.
        let fields = ["nginx.stableIngress", "nginx.StableIngresses"];
        let nginx = self.nginx;
        let is_asked = self.routing.alb.is_none();
        is_asked
            .then(|| ingress::missing(self.rollout, routes, fields, &nginx.stable_ingress, &nginx.stable_ingresses))?
    }
}

impl<'r> Writer<'r> {
    fn of(Asked { rollout, canary, routing }: Asked<'r>) -> Option<Writer<'r>> {
        Some(Writer { rollout, canary, routing, nginx: routing.nginx.as_ref()? })
    }

    fn stable_ingresses(&self) -> &[String] {
        match self.nginx.stable_ingresses.as_slice() {
            [] => std::slice::from_ref(&self.nginx.stable_ingress),
            several => several,
        }
    }

    fn canary_of(&self, stable: &str) -> Id {
        let name = refers::canary_ingress(&self.rollout.metadata.name, stable);
        Id::beside(self.rollout, Kind::Ingress, &name)
    }

    fn prefix(&self) -> &str {
        if self.nginx.annotation_prefix.is_empty() { PREFIX } else { &self.nginx.annotation_prefix }
    }

    fn annotation<'v>(&self, ingress: &'v Value, key: &str) -> Option<&'v str> {
        ingress.str_at(&["metadata", "annotations", &format!("{}/{key}", self.prefix())])
    }

    /// Gives the canary's Ingress beside a stable one this weight.
    fn weigh(&self, routes: &mut Routes, stable: &str, weight: i32, told: &mut Vec<Told>) -> Result<(), Problem> {
        let missing = || Problem::MissingStable(stable.to_owned());
        let source = routes.get(&Id::beside(self.rollout, Kind::Ingress, stable)).ok_or_else(missing)?;
        let spec = self.spec(source, stable)?;
        let id = self.canary_of(stable);
        let name = id.name.clone();
        let Some(before) = routes.get(&id) else {
            let message = format!("Creating canary ingress `{name}` with weight `{weight}`");
            told.push(Told { warning: false, reason: constants::reason::CREATING_CANARY_INGRESS, message });
            let mut made = value!({
                "apiVersion": "networking.k8s.io/v1",
                "kind": Kind::Ingress.word(),
                "metadata": {
                    "name": name.as_str(),
                    "namespace": self.rollout.metadata.namespace.as_str(),
                    "ownerReferences": [refers::owner(self.rollout)],
                },
            });
            self.annotate(&mut made, source, weight);
            made.set_at(&["spec"], spec);
            routes.put(id, made);
            return Ok(());
        };
        if object::controller(before).as_deref() != Some(self.rollout.metadata.uid.as_str()) {
            return Err(Problem::NotOurs(name.to_string()));
        }
        let mut after = before.clone();
        self.annotate(&mut after, source, weight);
        after.remove_at(&["metadata", "labels"]);
        after.set_at(&["spec"], spec);
        if after != *before {
            let message = format!("Updating Ingress `{name}` to desiredWeight '{weight}'");
            told.push(Told { warning: false, reason: constants::reason::PATCHING_CANARY_INGRESS, message });
            routes.put(id, after);
        }
        Ok(())
    }

    /// What the canary's Ingress asks for: the rules of the stable one that lead to the stable Service, led to the canary's.
    fn spec(&self, source: &Value, name: &str) -> Result<Value, Problem> {
        let (stable, canary) = (self.canary.stable_service.as_str(), self.canary.canary_service.as_str());
        let leads = |rule: &Value| rule.list_at(&["http", "paths"]).iter().any(|path| ingress::service(path) == stable);
        let rules = source.list_at(&["spec", "rules"]).iter().filter(|rule| !stable.is_empty() && leads(rule));
        let mut out = value!({"spec": {"rules": Value::list(rules.cloned())}});
        if out.list_at(&["spec", "rules"]).is_empty() {
            return Err(Problem::NoBackend { ingress: name.to_owned(), service: stable.to_owned() });
        }
        ingress::change_paths(&mut out, |paths| {
            for path in paths.iter_mut().filter(|path| ingress::service(path) == stable) {
                path.set_at(&["backend", "service", "name"], canary);
            }
        });
        for field in ["tls", "ingressClassName"] {
            if let Some(value) = source.at(&["spec", field]).filter(|value| !value.is_null()) {
                out.set_at(&["spec", field], value.clone());
            }
        }
        Ok(out.remove_at(&["spec"]).unwrap_or_default())
    }

    /// Writes what the controller and the Rollout's author want on the canary's Ingress; what else is there stays.
    fn annotate(&self, ingress: &mut Value, source: &Value, weight: i32) {
        let prefix = self.prefix();
        let mut set = |key: &str, text: &str| ingress.set_at(&["metadata", "annotations", key], text);
        if let Some(class) = source.str_at(&["metadata", "annotations", CLASS]) {
            set(CLASS, class);
        }
        for (key, text) in &self.nginx.additional_ingress_annotations {
            if key.starts_with(prefix) {
                set(key, text);
            } else {
                set(&format!("{prefix}/{key}"), text);
            }
        }
        self.nginx.canary_ingress_annotations.iter().for_each(|(key, text)| set(key, text));
        set(&format!("{prefix}/canary"), "true");
        set(&format!("{prefix}/canary-weight"), &weight.to_string());
        if let Some(total) = self.routing.max_traffic_weight {
            set(&format!("{prefix}/canary-weight-total"), &total.to_string());
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

    fn rollout(names: &[String], max: Option<i32>) -> Rollout {
        let mut rollout = value!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": {"strategy": {"canary": {
            "stableService": "stable", "canaryService": "canary",
            "trafficRouting": {"nginx": {"stableIngresses": Value::list(names.iter().map(|name| name.as_str().into()))}}}}}});
        if let Some(max) = max {
            rollout.set_at(&["spec", "strategy", "canary", "trafficRouting", "maxTrafficWeight"], max);
        }
        api::read(&rollout).object
    }

    fn ingress(name: &str, rest: Value) -> (Id, Value) {
        let mut object = value!({"metadata": {"name": name, "namespace": "shop", "annotations": {"theirs": "1"}}});
        object.set_at(&["spec"], rest);
        object.set_at(
            &["spec", "rules"],
            value!([{"http": {"paths": [
                {"path": "/", "backend": {"service": {"name": "stable", "port": {"number": 80}}}},
                {"path": "/x", "backend": {"service": {"name": "other", "port": {"number": 80}}}},
            ]}}]),
        );
        (Id { kind: Kind::Ingress, namespace: "shop".into(), name: name.into() }, object)
    }

    proptest! {
        /// The two laws.
        #[test]
        fn what_was_written_is_read_and_nothing_else_changes(
            names in prop::collection::btree_set("[a-z]{1,8}", 1..4),
            weights in prop::collection::vec(0..=1000i32, 1..5),
            max in prop::option::of(Just(1000)),
            theirs in "[a-z]{1,6}",
        ) {
            let names: Vec<String> = names.into_iter().collect();
            let rollout = rollout(&names, max);
            let mut routes = Routes::of(names.iter().map(|name| ingress(name, value!({"tls": [{"secretName": "t"}]}))));
            let stable: Vec<Value> = routes.iter().map(|(_, object)| object.clone()).collect();
            let total = max.unwrap_or(100);
            for (number, weight) in weights.into_iter().enumerate() {
                let step = Move::Weights { canary: weight, additional: &[] };
                let mut told = Vec::new();
                prop_assert_eq!(write(Leaf::Nginx, &rollout, &mut routes, step, &mut told), Ok(()));
                let expected = Route { canary: weight.into(), stable: (total - weight).into(), ..Route::default() };
                prop_assert_eq!(read(Leaf::Nginx, &rollout, &routes), Some(expected));
                // Somebody writes on each canary Ingress; it is still there after the next move.
                for name in &names {
                    let id = Id { kind: Kind::Ingress, namespace: "shop".into(), name: format!("web-{name}-canary").into() };
                    let mut object = routes.get(&id).cloned().unwrap();
                    let kept = object.str_at(&["metadata", "annotations", "x"]);
                    prop_assert_eq!(kept, (number > 0).then_some(theirs.as_str()));
                    object.set_at(&["metadata", "annotations", "x"], theirs.as_str());
                    object.set_at(&["metadata", "finalizers"], value!(["theirs"]));
                    routes.put(id, object);
                }
                let mut again = Vec::new();
                prop_assert_eq!(write(Leaf::Nginx, &rollout, &mut routes, step, &mut again), Ok(()));
                prop_assert_eq!(again, []);
            }
            for (name, before) in names.iter().zip(&stable) {
                prop_assert_eq!(routes.get(&ingress(name, value!({})).0), Some(before));
            }
        }
    }

    #[test]
    fn a_path_without_a_service_is_nobodys() {
        let names = ["main".to_owned()];
        let (id, mut object) = ingress("main", value!({}));
        object.set_at(
            &["spec", "rules"],
            value!([{"host": "a"}, {"http": {"paths": [{"backend": {"resource": {"name": "stable"}}}]}}]),
        );
        let mut routes = Routes::of([(id, object)]);
        let step = Move::Weights { canary: 5, additional: &[] };
        let problem = write(Leaf::Nginx, &rollout(&names, None), &mut routes, step, &mut Vec::new());
        assert_eq!(problem, Err(Problem::NoBackend { ingress: "main".into(), service: "stable".into() }));
    }
}
