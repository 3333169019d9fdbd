//! Telling routers where the traffic goes: a lens on the objects of each.
//!
//! A leaf per router reads a [`Route`] off its objects and makes a [`Move`] on them. Two laws hold for every leaf: reading
//! after writing gives what was written, and every byte that is not ours stays as it is. Never asks a cluster, never decides
//! how much goes where, and says what is in the way instead of failing.

mod alb;
mod ambassador;
mod apisix;
mod app_mesh;
mod gateway;
mod ingress;
mod istio;
mod kind;
mod nested;
mod nginx;
mod objects;
mod problem;
mod smi;
mod traefik;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use self::{
    gateway::PLUGIN as GATEWAY_PLUGIN,
    istio::{abandoned, release},
    kind::{Apis, GroupVersion, Id, Kind, RouteVersion, Routed, SmiVersion},
    objects::{RouteScope, Routes},
    problem::Problem,
};
use crate::{
    api::{
        CanaryStrategy, Rollout, RolloutTrafficRouting, SetHeaderRoute, SetMirrorRoute, WeightDestination,
        constants::ping_pong::PING,
    },
    kubernetes::status::FieldError,
    model::references::References,
};

/// A router: what it is called, what it reads, and how it is told. A new one is a file with a row, and a place in [`ROUTERS`].
pub struct Row {
    /// Which.
    pub leaf: Leaf,
    /// As Argo Rollouts calls it.
    pub name: &'static str,
    /// The field of `trafficRouting` that configures it.
    pub field: &'static str,
    /// The kinds of objects that it reads or writes.
    pub kinds: &'static [Kind],
    is_used: fn(&RolloutTrafficRouting) -> bool,
    router: for<'r> fn(Asked<'r>) -> Option<Box<dyn Router + 'r>>,
}

/// The routers, in the order in which they are told.
pub static ROUTERS: [Row; 9] = [
    istio::ROW,
    nginx::ROW,
    alb::ROW,
    smi::ROW,
    ambassador::ROW,
    app_mesh::ROW,
    traefik::ROW,
    apisix::ROW,
    gateway::ROW,
];

/// A router that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaf {
    /// Istio.
    Istio,
    /// The nginx ingress controller.
    Nginx,
    /// The AWS load balancer controller.
    Alb,
    /// The Service Mesh Interface.
    Smi,
    /// Ambassador.
    Ambassador,
    /// AWS App Mesh.
    AppMesh,
    /// Traefik.
    Traefik,
    /// Apache APISIX.
    Apisix,
    /// The Gateway API.
    Gateway,
}

/// What a Rollout says to a router.
#[derive(Clone, Copy)]
struct Asked<'r> {
    rollout: &'r Rollout,
    canary: &'r CanaryStrategy,
    routing: &'r RolloutTrafficRouting,
}

/// One router of one Rollout.
trait Router {
    /// The objects that it reads and writes, whether they exist or not.
    fn ids(&self) -> Vec<Id>;

    /// Makes a move. What was changed before a problem stays changed.
    fn write(&self, routes: &mut Routes, step: Move<'_>, told: &mut Vec<Told>) -> Result<(), Problem>;

    /// Where the traffic goes; `None` if nobody told it yet, or if its objects do not agree.
    fn read(&self, routes: &Routes) -> Option<Route>;

    /// The objects that it made before the Rollout was orphaned, and that nobody controls since.
    fn orphans(&self, _: &Routes) -> Vec<Id> {
        Vec::new()
    }

    /// The first object that must exist and does not, in the words of Argo Rollouts.
    fn missing(&self, _: &Routes) -> Option<FieldError> {
        None
    }

    /// Adds the objects that Argo Rollouts judges before it starts.
    fn refer(&self, _: &Routes, _: &mut References) {}

    /// What it says itself about these weights.
    fn verify(&self, _: &Routes, _: Move<'_>) -> Accepted {
        Accepted::NotAsked
    }
}

/// What a router says itself about the weights that its objects carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It has no way to say.
    NotAsked,
    /// It has taken them over; what does not hinder that is a warning.
    Yes(Option<String>),
    /// It has not, or not yet.
    NotYet(String),
}

/// The kinds of objects that routers read or write, each once.
pub fn kinds() -> Vec<Kind> {
    let kinds: BTreeSet<Kind> = ROUTERS.iter().flat_map(|row| row.kinds).copied().collect();
    kinds.into_iter().collect()
}

/// The routers of a Rollout in the order in which they are told, or the name of the first that cannot be.
pub fn leaves(routing: &RolloutTrafficRouting) -> Result<Vec<Leaf>, &str> {
    let mut plugins = routing.plugins.keys().filter(|name| !gateway::is_plugin(name));
    match plugins.next() {
        Some(name) => Err(name),
        None => Ok(ROUTERS.iter().filter(|row| (row.is_used)(routing)).map(|row| row.leaf).collect()),
    }
}

/// The routers of a Rollout.
fn routers(rollout: &Rollout) -> impl Iterator<Item = (&'static Row, Box<dyn Router + '_>)> {
    let asked = asked(rollout);
    ROUTERS.iter().filter_map(move |row| Some((row, (row.router)(asked?)?)))
}

/// One router of a Rollout, if it has it.
fn router(leaf: Leaf, rollout: &Rollout) -> Option<Box<dyn Router + '_>> {
    let row = ROUTERS.iter().find(|row| row.leaf == leaf)?;
    (row.router)(asked(rollout)?)
}

/// The objects that a Rollout's routers read and write, whether they exist or not. One without a name stands for all of its
/// namespace.
pub fn named(rollout: &Rollout) -> Vec<Id> {
    routers(rollout).flat_map(|(_, router)| router.ids()).collect()
}

/// The objects that this Rollout's routers made before it was orphaned, and that nobody controls since.
pub fn orphans(rollout: &Rollout, routes: &Routes) -> Vec<Id> {
    routers(rollout).flat_map(|(_, router)| router.orphans(routes)).collect()
}

/// Whether a router of this Rollout needs the ports of an experiment's Services.
pub fn needs_ports(rollout: &Rollout) -> bool {
    routers(rollout).any(|(row, _)| row.kinds.contains(&Kind::Service))
}

/// Whether a router of this Rollout reads kinds that servers have in different versions.
pub fn has_moved(rollout: &Rollout) -> bool {
    let moved = [Kind::TcpRoute, Kind::TlsRoute];
    routers(rollout).any(|(row, _)| row.kinds.iter().any(|kind| moved.contains(kind)))
}

/// What is wrong with the objects that must exist: the first that is missing, in the words of Argo Rollouts.
pub fn missing(rollout: &Rollout, routes: &Routes) -> Option<FieldError> {
    // Argo Rollouts looks for Ingresses first.
    let (ingresses, others): (Vec<_>, Vec<_>) =
        routers(rollout).partition(|(row, _)| row.kinds.contains(&Kind::Ingress));
    let missing = ingresses.iter().chain(&others).find_map(|(_, router)| router.missing(routes));
    missing.or_else(|| missing_definition(rollout, routes))
}

/// A kind that the server does not know, because its definition is not installed.
fn missing_definition(rollout: &Rollout, routes: &Routes) -> Option<FieldError> {
    let (row, id) = routers(rollout).find_map(|(row, router)| {
        let id = router.ids().into_iter().find(|id| routes.unserved.contains(&id.kind))?;
        Some((row, id))
    })?;
    let (kind, apis) = (id.kind, &routes.apis);
    let what = format!(
        "the server does not know {}.{}/{}: its CustomResourceDefinition is not installed",
        kind.plural(apis),
        kind.group(apis),
        kind.version(apis)
    );
    Some(FieldError::invalid(format!("spec.strategy.canary.trafficRouting.{}", row.field), id.name.as_str(), what))
}

/// Adds the objects of a Rollout's routers that Argo Rollouts judges before it starts.
pub fn refer(rollout: &Rollout, routes: &Routes, found: &mut References) {
    routers(rollout).for_each(|(_, router)| router.refer(routes, found));
}

/// Tells a router. What was changed before a problem stays changed.
pub fn write(
    leaf: Leaf,
    rollout: &Rollout,
    routes: &mut Routes,
    step: Move<'_>,
    told: &mut Vec<Told>,
) -> Result<(), Problem> {
    router(leaf, rollout).map_or(Ok(()), |router| router.write(routes, step, told))
}

/// Where a router sends the traffic; `None` if nobody told it yet, or if its objects do not agree.
pub fn read(leaf: Leaf, rollout: &Rollout, routes: &Routes) -> Option<Route> {
    router(leaf, rollout)?.read(routes)
}

/// What a router says itself about the weights that its objects carry.
pub fn verify(leaf: Leaf, rollout: &Rollout, routes: &Routes, weights: Move<'_>) -> Accepted {
    router(leaf, rollout).map_or(Accepted::NotAsked, |router| router.verify(routes, weights))
}

/// What the load balancer says about the weights that status records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verification {
    /// Nobody asks.
    #[default]
    NotAsked,
    /// It does as it was told.
    Agrees,
    /// It does not, or not yet.
    Differs,
}

/// Something to tell a router.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Move<'m> {
    /// Which versions stand behind the destinations.
    Hashes {
        /// Behind the canary's.
        canary: &'m str,
        /// Behind the stable one's.
        stable: &'m str,
        /// Behind those of an experiment.
        additional: &'m [WeightDestination],
    },
    /// How much goes where; the stable destination gets the rest.
    Weights {
        /// To the canary.
        canary: i32,
        /// To an experiment's destinations.
        additional: &'m [WeightDestination],
    },
    /// Requests with a header that go to the canary; without a match, no longer.
    Header(&'m SetHeaderRoute),
    /// Requests that are copied to the canary; without a match, no longer.
    Mirror(&'m SetMirrorRoute),
    /// No routes of steps any more.
    Clear,
}

/// Where a router sends the traffic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// How much to the canary.
    pub canary: i64,
    /// How much to the stable version.
    pub stable: i64,
    /// How much to an experiment's Services.
    pub additional: Vec<(String, i64)>,
    /// The routes that steps have made.
    pub managed: BTreeSet<String>,
}

/// What was told to a router, as an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Whether it is bad news.
    pub warning: bool,
    /// Its reason, one of the constants.
    pub reason: &'static str,
    /// The sentence.
    pub message: String,
}

fn asked(rollout: &Rollout) -> Option<Asked<'_>> {
    let canary = rollout.spec.strategy.canary.as_ref()?;
    Some(Asked { rollout, canary, routing: canary.traffic_routing.as_ref()? })
}

/// The Services of a canary: the two that change places if there are such, those named after their roles otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Services<'r> {
    /// Of the stable version.
    pub stable: &'r str,
    /// Of the new version.
    pub canary: &'r str,
}

impl<'r> Services<'r> {
    /// Those of a Rollout.
    pub fn of(rollout: &'r Rollout) -> Services<'r> {
        let Some(canary) = &rollout.spec.strategy.canary else { return Services { stable: "", canary: "" } };
        let Some(both) = &canary.ping_pong else {
            return Services { stable: &canary.stable_service, canary: &canary.canary_service };
        };
        // Until the first promotion the stable one is pong.
        if rollout.status.canary.stable_ping_pong == PING {
            Services { stable: &both.ping_service, canary: &both.pong_service }
        } else {
            Services { stable: &both.pong_service, canary: &both.ping_service }
        }
    }
}

/// The first of the readings, if all are the same.
fn agreed(readings: impl IntoIterator<Item = Option<Route>>) -> Option<Route> {
    let mut readings = readings.into_iter();
    let first = readings.next()??;
    readings.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::value::Value;

    #[test]
    fn routers_are_told_in_one_order_and_one_that_cannot_be_is_named() {
        let mut routing = RolloutTrafficRouting { alb: Some(Default::default()), ..Default::default() };
        assert_eq!(leaves(&routing), Ok(vec![Leaf::Alb]));
        routing.nginx = Some(Default::default());
        assert_eq!(leaves(&routing), Ok(vec![Leaf::Nginx, Leaf::Alb]));
        routing.plugins.insert("org/x".into(), Value::Null);
        assert_eq!(leaves(&routing), Err("org/x"));
        routing.plugins = [("Argoproj-labs/gatewayAPI".into(), Value::Null)].into();
        assert_eq!(leaves(&routing), Err("Argoproj-labs/gatewayAPI"));
        routing.plugins = [("argoproj-labs/gatewayAPI".into(), Value::Null)].into();
        assert_eq!(leaves(&routing), Ok(vec![Leaf::Nginx, Leaf::Alb, Leaf::Gateway]));
    }

    #[test]
    fn every_router_has_its_row() {
        let leaves: Vec<Leaf> = ROUTERS.iter().map(|row| row.leaf).collect();
        for leaf in &leaves {
            // A leaf that is added here must be added to the table.
            match leaf {
                Leaf::Istio | Leaf::Nginx | Leaf::Alb | Leaf::Smi | Leaf::Ambassador => {}
                Leaf::AppMesh | Leaf::Traefik | Leaf::Apisix | Leaf::Gateway => {}
            }
            assert_eq!(leaves.iter().filter(|other| *other == leaf).count(), 1, "{leaf:?}");
        }
        assert_eq!(leaves.len(), 9);
    }

    #[test]
    fn sr13_a_virtual_service_of_another_namespace_is_out_of_reach() {
        let service = |name: &str| crate::value!({"virtualService": {"name": name}});
        let rollout = |name: &str| -> Rollout {
            let routing = crate::value!({"istio": service(name)});
            let canary = crate::value!({"stableService": "s", "canaryService": "c", "trafficRouting": routing});
            let metadata = crate::value!({"name": "web", "namespace": "attacker"});
            crate::api::read(&crate::value!({"metadata": metadata, "spec": {"strategy": {"canary": canary}}})).object
        };
        let there = |namespace: &str| Id { kind: Kind::VirtualService, namespace: namespace.into(), name: "vs".into() };
        let to = |host: &str, weight: i64| crate::value!({"destination": {"host": host}, "weight": weight});
        let object = crate::value!({"spec": {"http": [{"route": [to("s", 100), to("c", 0)]}]}});
        for (name, namespace, scope, is_refused) in [
            ("vs.victim", "victim", RouteScope::Namespace, true),
            ("vs.victim", "victim", RouteScope::Cluster, false),
            ("vs.attacker", "attacker", RouteScope::Namespace, false),
            ("vs", "attacker", RouteScope::Namespace, false),
        ] {
            let rollout = rollout(name);
            let mut routes = Routes::of([(there(namespace), object.clone())]).within("attacker", scope);
            let refused = missing(&rollout, &routes).map(|error| error.to_string());
            assert_eq!(refused.is_some(), is_refused, "{name} {scope:?}: {refused:?}");
            let says_how = |text: &String| text.contains("start Tidegate with `--allow-cross-namespace-routes`");
            assert!(refused.iter().all(says_how), "{refused:?}");
            let step = Move::Weights { canary: 50, additional: &[] };
            let done = write(Leaf::Istio, &rollout, &mut routes, step, &mut Vec::new());
            assert_eq!(done.is_err(), is_refused, "{name} {scope:?}");
        }
    }

    #[test]
    fn services_change_places() {
        let mut rollout: Rollout = crate::api::read(&crate::value!({"spec": {"strategy": {"canary": {
            "stableService": "s", "canaryService": "c"}}}}))
        .object;
        assert_eq!(Services::of(&rollout), Services { stable: "s", canary: "c" });
        if let Some(canary) = &mut rollout.spec.strategy.canary {
            canary.ping_pong = Some(crate::api::PingPongSpec { ping_service: "a".into(), pong_service: "b".into() });
        }
        assert_eq!(Services::of(&rollout), Services { stable: "b", canary: "a" });
        rollout.status.canary.stable_ping_pong = "ping".into();
        assert_eq!(Services::of(&rollout), Services { stable: "a", canary: "b" });
    }
}
