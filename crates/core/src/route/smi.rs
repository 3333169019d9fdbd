//! The Service Mesh Interface: one TrafficSplit of the Rollout's own, with a backend for each destination.
//!
//! Made if it is not there; somebody else's is left alone. What others note on it stays. Knows no routes by header or mirror.

use super::{Asked, Id, Kind, Leaf, Move, Problem, Route, Router, Routes, Row, SmiVersion, Told};
use crate::{
    api::{CanaryStrategy, Rollout, SmiTrafficRouting, WeightDestination, constants::reason},
    kubernetes::{object, value::Value},
    model::refers,
    value,
};

/// All of the traffic; a TrafficSplit's weights have no other sum here.
const TOTAL: i64 = 100;

pub const ROW: Row = Row {
    leaf: Leaf::Smi,
    name: "SMI",
    field: "smi",
    kinds: &[Kind::TrafficSplit],
    is_used: |routing| routing.smi.is_some(),
    router: |asked| Some(Box::new(Writer::of(asked)?)),
};

/// What a Rollout says about its mesh.
struct Writer<'r> {
    rollout: &'r Rollout,
    canary: &'r CanaryStrategy,
    smi: &'r SmiTrafficRouting,
}

impl Router for Writer<'_> {
    fn ids(&self) -> Vec<Id> {
        vec![self.id()]
    }

    fn write(&self, routes: &mut Routes, step: Move<'_>, told: &mut Vec<Told>) -> Result<(), Problem> {
        match step {
            Move::Weights { canary, additional } => self.weigh(routes, canary, additional, told),
            Move::Hashes { .. } | Move::Header(_) | Move::Mirror(_) | Move::Clear => Ok(()),
        }
    }

    fn read(&self, routes: &Routes) -> Option<Route> {
        let split = routes.get(&self.id())?;
        let backends = split.list_at(&["spec", "backends"]).iter();
        let backends = backends.map(|backend| (backend.str_at(&["service"]).unwrap_or_default(), weight(backend)));
        let mut backends = backends.collect::<Vec<_>>().into_iter();
        let ((_, canary), (_, stable)) = (backends.next()?, backends.next_back()?);
        let additional = backends.map(|(service, weight)| Some((service.to_owned(), weight?)));
        Some(Route {
            canary: canary?,
            stable: stable?,
            additional: additional.collect::<Option<_>>()?,
            ..Route::default()
        })
    }

    /// The TrafficSplit, if nobody controls it and this Rollout made it before it was orphaned: it splits the same Service,
    /// from the canary's to the stable one's.
    fn orphans(&self, routes: &Routes) -> Vec<Id> {
        let id = self.id();
        let Some(split) = routes.get(&id).filter(|split| object::controller(split).is_none()) else {
            return Vec::new();
        };
        let backends = split.list_at(&["spec", "backends"]);
        let leads_to = |backend: Option<&Value>, service: &str| {
            backend.is_some_and(|backend| backend.str_at(&["service"]) == Some(service))
        };
        let is_ours = split.str_at(&["spec", "service"]) == Some(self.root())
            && leads_to(backends.first(), &self.canary.canary_service)
            && leads_to(backends.last(), &self.canary.stable_service);
        if is_ours { vec![id] } else { Vec::new() }
    }
}

impl<'r> Writer<'r> {
    fn of(Asked { rollout, canary, routing }: Asked<'r>) -> Option<Writer<'r>> {
        Some(Writer { rollout, canary, smi: routing.smi.as_ref()? })
    }

    fn id(&self) -> Id {
        let given = self.smi.traffic_split_name.as_str();
        let name = if given.is_empty() { self.rollout.metadata.name.as_str() } else { given };
        Id::beside(self.rollout, Kind::TrafficSplit, name)
    }

    fn weigh(
        &self,
        routes: &mut Routes,
        canary: i32,
        additional: &[WeightDestination],
        told: &mut Vec<Told>,
    ) -> Result<(), Problem> {
        let version = routes.apis.smi;
        let backend = |service: &str, weight: i64| {
            let weight: Value = match version {
                SmiVersion::V1Alpha1 => weight.to_string().into(),
                SmiVersion::V1Alpha2 | SmiVersion::V1Alpha3 => weight.into(),
            };
            value!({"service": service, "weight": weight})
        };
        let mut backends = vec![backend(&self.canary.canary_service, canary.into())];
        backends.extend(additional.iter().map(|other| backend(&other.service_name, other.weight.into())));
        let rest = TOTAL - i64::from(canary) - additional.iter().map(|other| i64::from(other.weight)).sum::<i64>();
        backends.push(backend(&self.canary.stable_service, rest));
        let (root, id) = (self.root(), self.id());
        let Some(before) = routes.get(&id) else {
            let message = format!("TrafficSplit `{}` created", id.name);
            told.push(Told { warning: false, reason: reason::TRAFFIC_SPLIT_CREATED, message });
            let made = value!({
                "apiVersion": format!("{}/{}", Kind::TrafficSplit.group(&routes.apis), version.as_str()),
                "kind": Kind::TrafficSplit.word(),
                "metadata": {
                    "name": id.name.as_str(),
                    "namespace": id.namespace.as_str(),
                    "ownerReferences": [refers::owner(self.rollout)],
                },
                "spec": {"service": root, "backends": Value::list(backends)},
            });
            routes.put(id, made);
            return Ok(());
        };
        if object::controller(before).as_deref() != Some(self.rollout.metadata.uid.as_str()) {
            return Err(Problem::SplitNotOurs(id.name.to_string()));
        }
        let mut after = before.clone();
        after.set_at(&["spec", "service"], root);
        after.set_at(&["spec", "backends"], Value::list(backends));
        if after != *before {
            routes.put(id, after);
        }
        Ok(())
    }

    /// The Service that is split.
    fn root(&self) -> &str {
        let root = Some(self.smi.root_service.as_str()).filter(|root| !root.is_empty());
        root.unwrap_or(&self.canary.stable_service)
    }
}

/// A backend's weight, as a number or as a quantity.
fn weight(backend: &Value) -> Option<i64> {
    let weight = backend.at(&["weight"])?;
    weight.as_int().or_else(|| weight.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        api,
        route::{Apis, Leaf, read, write},
    };

    proptest! {
        /// The two laws.
        #[test]
        fn what_was_written_is_read_and_nothing_else_changes(
            version in prop_oneof![Just(SmiVersion::V1Alpha1), Just(SmiVersion::V1Alpha2), Just(SmiVersion::V1Alpha3)],
            weights in prop::collection::vec((0..=100i32, prop::collection::vec(0..9i32, 0..3)), 1..5),
            theirs in "[a-z]{1,6}",
        ) {
            let rollout: Rollout = api::read(&value!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"},
                "spec": {"strategy": {"canary": {"stableService": "stable", "canaryService": "canary",
                    "trafficRouting": {"smi": {}}}}}})).object;
            let mut routes = Routes::of([]).speaking(Apis { smi: version, ..Apis::default() });
            let id = Id { kind: Kind::TrafficSplit, namespace: "shop".into(), name: "web".into() };
            for (number, (canary, more)) in weights.into_iter().enumerate() {
                let more: Vec<WeightDestination> = more.into_iter().enumerate().map(|(number, weight)| {
                    WeightDestination { weight, service_name: format!("e{number}"), ..WeightDestination::default() }
                }).collect();
                let (step, mut told) = (Move::Weights { canary, additional: &more }, Vec::new());
                prop_assert_eq!(write(Leaf::Smi, &rollout, &mut routes, step, &mut told), Ok(()));
                let stable = 100 - i64::from(canary) - more.iter().map(|other| i64::from(other.weight)).sum::<i64>();
                let additional = more.iter().map(|other| (other.service_name.clone(), other.weight.into())).collect();
                let expected = Route { canary: canary.into(), stable, additional, ..Route::default() };
                prop_assert_eq!(read(Leaf::Smi, &rollout, &routes), Some(expected));
                let mut split = routes.get(&id).cloned().unwrap();
                let noted = split.str_at(&["metadata", "annotations", "x"]);
                prop_assert_eq!(noted, (number > 0).then_some(theirs.as_str()));
                split.set_at(&["metadata", "annotations", "x"], theirs.as_str());
                split.set_at(&["spec", "matches"], value!([{"kind": "HTTPRouteGroup"}]));
                routes.put(id.clone(), split.clone());
                prop_assert_eq!(write(Leaf::Smi, &rollout, &mut routes, step, &mut told), Ok(()));
                prop_assert_eq!(routes.get(&id), Some(&split));
            }
        }
    }
}
