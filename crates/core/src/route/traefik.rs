//! Traefik: a TraefikService of the user's own, whose weighted services carry the weights.
//!
//! Only the weights of the stable and the canary's entry are touched. Knows no routes by header or mirror, and no
//! destinations of experiments.

use super::{Asked, Id, Kind, Leaf, Move, Problem, Route, Router, Routes, Row, Told, nested};
use crate::{
    api::{CanaryStrategy, Rollout, TraefikTrafficRouting},
    kubernetes::value::Value,
};

/// All of the traffic.
const TOTAL: i64 = 100;
/// Where the services are.
const SERVICES: [&str; 3] = ["spec", "weighted", "services"];

pub const ROW: Row = Row {
    leaf: Leaf::Traefik,
    name: "Traefik",
    field: "traefik",
    kinds: &[Kind::TraefikService],
    is_used: |routing| routing.traefik.is_some(),
    router: |asked| Some(Box::new(Writer::of(asked)?)),
};

/// What a Rollout says about its Traefik.
struct Writer<'r> {
    rollout: &'r Rollout,
    canary: &'r CanaryStrategy,
    traefik: &'r TraefikTrafficRouting,
}

impl Router for Writer<'_> {
    fn ids(&self) -> Vec<Id> {
        vec![self.id()]
    }

    fn write(&self, routes: &mut Routes, step: Move<'_>, _: &mut Vec<Told>) -> Result<(), Problem> {
        match step {
            Move::Weights { canary, additional: _ } => self.weigh(routes, canary.into()),
            Move::Hashes { .. } | Move::Header(_) | Move::Mirror(_) | Move::Clear => Ok(()),
        }
    }

    fn read(&self, routes: &Routes) -> Option<Route> {
        let services = routes.get(&self.id())?.list_at(&SERVICES);
        let weight = |name: &str| services.get(find(services, name).ok()??)?.int_at(&["weight"]);
        let (canary, stable) = (weight(&self.canary.canary_service)?, weight(&self.canary.stable_service)?);
        Some(Route { canary, stable, ..Route::default() })
    }
}

impl<'r> Writer<'r> {
    fn of(Asked { rollout, canary, routing }: Asked<'r>) -> Option<Writer<'r>> {
        Some(Writer { rollout, canary, traefik: routing.traefik.as_ref()? })
    }

    fn id(&self) -> Id {
        Id::beside(self.rollout, Kind::TraefikService, &self.traefik.weighted_traefik_service_name)
    }

    fn weigh(&self, routes: &mut Routes, weight: i64) -> Result<(), Problem> {
        let id = self.id();
        let before = routes.must(&id)?;
        let mut services = nested::list(before, &SERVICES)?.ok_or(Problem::NoWeightedServices)?.to_vec();
        for (role, name, weight) in
            [("canary", &self.canary.canary_service, weight), ("stable", &self.canary.stable_service, TOTAL - weight)]
        {
            let entry = find(&services, name)?.and_then(|at| services.get_mut(at));
            entry.ok_or(Problem::NoTraefikService(role))?.set_at(&["weight"], weight);
        }
        let mut after = before.clone();
        after.set_at(&SERVICES, services);
        if after != *before {
            routes.put(id, after);
        }
        Ok(())
    }
}

/// Where the first entry of this name is. One that cannot be read before it is a problem.
fn find(services: &[Value], name: &str) -> Result<Option<usize>, Problem> {
    for (at, service) in services.iter().enumerate() {
        if service.as_map().is_none() {
            return Err(Problem::NoService);
        }
        if nested::text(service, &["name"])?.ok_or(Problem::NamelessService)? == name {
            return Ok(Some(at));
        }
    }
    Ok(None)
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

    proptest! {
        /// The two laws.
        #[test]
        fn what_was_written_is_read_and_nothing_else_changes(
            weights in prop::collection::vec(0..=100i32, 1..5), theirs in "[a-z]{1,6}", port in 1..99i64, first in any::<bool>(),
        ) {
            let rollout: Rollout = api::read(&value!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"},
                "spec": {"strategy": {"canary": {"stableService": "stable", "canaryService": "canary",
                    "trafficRouting": {"traefik": {"weightedTraefikServiceName": "t"}}}}}})).object;
            let mut names = ["other", "stable", "canary"];
            names.rotate_left(usize::from(first));
            let services = |weight: Option<i32>| Value::list(names.iter().map(|name| {
                let mut service = value!({"name": *name, "port": port, "note": theirs.as_str()});
                match (*name, weight) {
                    ("other", _) => service.set_at(&["weight"], 7),
                    ("canary", Some(weight)) => service.set_at(&["weight"], weight),
                    ("stable", Some(weight)) => service.set_at(&["weight"], 100 - weight),
                    (_, _) => {}
                }
                service
            }));
            let object = |weight: Option<i32>| value!({"metadata": {"name": "t", "namespace": "shop", "labels": {"x": theirs.as_str()}},
                "spec": {"weighted": {"services": services(weight), "sticky": {"cookie": {}}}}});
            let id = Id { kind: Kind::TraefikService, namespace: "shop".into(), name: "t".into() };
            let mut routes = Routes::of([(id.clone(), object(None))]);
            prop_assert_eq!(read(Leaf::Traefik, &rollout, &routes), None);
            for weight in weights {
                let step = Move::Weights { canary: weight, additional: &[] };
                prop_assert_eq!(write(Leaf::Traefik, &rollout, &mut routes, step, &mut Vec::new()), Ok(()));
                let expected = Route { canary: weight.into(), stable: (100 - weight).into(), ..Route::default() };
                prop_assert_eq!(read(Leaf::Traefik, &rollout, &routes), Some(expected));
                prop_assert_eq!(routes.get(&id), Some(&object(Some(weight))));
            }
        }
    }
}
