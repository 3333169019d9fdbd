//! AWS App Mesh: the routes of a VirtualRouter carry the weights, the pod selectors of two VirtualNodes the versions.
//!
//! Of the router only the weights of the two nodes' targets are touched, of the nodes only one label of their selectors.
//! Knows no routes by header or mirror, and no destinations of experiments.

use super::{Asked, Id, Kind, Leaf, Move, Problem, Route, Router, Routes, Row, Told, agreed, nested};
use crate::{
    api::{
        AppMeshTrafficRouting, AppMeshVirtualNodeReference, AppMeshVirtualService, Rollout,
        constants::{label, reason},
    },
    kubernetes::{status::FieldError, value::Value},
    model::references::References,
};

/// All of the traffic.
const TOTAL: i64 = 100;
/// The kinds of routes that split traffic, the first of which counts.
const ROUTE_TYPES: [&str; 4] = ["httpRoute", "tcpRoute", "http2Route", "grpcRoute"];
/// What stands for a version that there is none of: no two nodes may select the same pods.
const NO_CANARY: &str = "canary-hash";
const NO_STABLE: &str = "stable-hash";
/// Where a node selects its pods.
const SELECTOR: [&str; 3] = ["spec", "podSelector", "matchLabels"];

pub const ROW: Row = Row {
    leaf: Leaf::AppMesh,
    name: "AppMesh",
    field: "appMesh",
    kinds: &[Kind::MeshService, Kind::MeshRouter, Kind::MeshNode],
    is_used: |routing| routing.app_mesh.is_some(),
    router: |asked| Some(Box::new(Writer::of(asked)?)),
};

/// What a Rollout says about its mesh.
struct Writer<'r> {
    rollout: &'r Rollout,
    mesh: &'r AppMeshTrafficRouting,
}

/// The names of the two nodes.
struct Nodes<'r> {
    canary: &'r str,
    stable: &'r str,
}

impl Router for Writer<'_> {
    fn ids(&self) -> Vec<Id> {
        let service = self.mesh.virtual_service.iter().map(|service| self.service(service));
        // Which router it is only the service says.
        let routers = Id::beside(self.rollout, Kind::MeshRouter, "");
        let nodes = self.nodes().into_iter().flat_map(|nodes| [nodes.stable, nodes.canary]);
        let nodes = nodes.map(|name| Id::beside(self.rollout, Kind::MeshNode, name));
        service.chain([routers]).chain(nodes).collect()
    }

    fn write(&self, routes: &mut Routes, step: Move<'_>, told: &mut Vec<Told>) -> Result<(), Problem> {
        match step {
            Move::Hashes { canary, stable, additional: _ } => self.set_hashes(routes, canary, stable, told),
            Move::Weights { canary, additional: _ } => self.weigh(routes, canary.into(), told),
            Move::Header(_) | Move::Mirror(_) | Move::Clear => Ok(()),
        }
    }

    fn read(&self, routes: &Routes) -> Option<Route> {
        let service = self.mesh.virtual_service.as_ref()?;
        let router = routes.get(&self.router(routes.get(&self.service(service))?).ok()?)?;
        let nodes = self.nodes()?;
        let own = |route: &&Value| is_asked(service, route.str_at(&["name"]).unwrap_or_default());
        agreed(router.list_at(&["spec", "routes"]).iter().filter(own).map(|route| {
            let kind = ROUTE_TYPES.into_iter().find(|kind| route.get(kind).is_some())?;
            let targets = route.list_at(&[kind, "action", "weightedTargets"]);
            let weight = |node: &str| targets.iter().find(|target| self.leads_to(target, node))?.int_at(&["weight"]);
            Some(Route { canary: weight(nodes.canary)?, stable: weight(nodes.stable)?, ..Route::default() })
        }))
    }

    fn missing(&self, routes: &Routes) -> Option<FieldError> {
        const FIELD: &str = "spec.strategy.canary.trafficRouting.appmesh.virtualService";
        let Some(service) = &self.mesh.virtual_service else {
            return Some(FieldError::invalid(FIELD, Value::Null, "must provide virtual-service"));
        };
        let name = format!("{}.{}", service.name, self.rollout.metadata.namespace);
        let missing = |id: &Id| {
            let what = id.kind.not_found(&routes.apis, &id.name);
            routes.get(id).is_none().then(|| FieldError::invalid(FIELD, name.as_str(), what))
        };
        let id = self.service(service);
        missing(&id).or_else(|| missing(&self.router(routes.get(&id)?).ok()?))
    }

    fn refer(&self, routes: &Routes, found: &mut References) {
        let service = self.mesh.virtual_service.as_ref().and_then(|service| routes.get(&self.service(service)));
        let router = service.and_then(|service| routes.get(&self.router(service).ok()?));
        found.app_mesh.extend(router.map(|router| {
            let mut router = router.clone();
            // Items of a list do not say so themselves.
            router.set_at(&["kind"], Kind::MeshRouter.word());
            router
        }));
    }
}

impl<'r> Writer<'r> {
    fn of(Asked { rollout, routing, .. }: Asked<'r>) -> Option<Writer<'r>> {
        Some(Writer { rollout, mesh: routing.app_mesh.as_ref()? })
    }

    fn service(&self, service: &AppMeshVirtualService) -> Id {
        Id::beside(self.rollout, Kind::MeshService, &service.name)
    }

    /// The router behind a service.
    fn router(&self, service: &Value) -> Result<Id, Problem> {
        let none = || Problem::Said("Virtual-service is not associated with virtual-router".into());
        let path = ["spec", "provider", "virtualRouter", "virtualRouterRef"];
        let reference = nested::map(service, &path).ok().flatten().ok_or_else(none)?;
        let name = reference.str_at(&["name"]).ok_or_else(none)?;
        let own = service.str_at(&["metadata", "namespace"]).unwrap_or_default();
        let namespace = reference.str_at(&["namespace"]).filter(|namespace| !namespace.is_empty()).unwrap_or(own);
        Ok(Id { kind: Kind::MeshRouter, namespace: namespace.into(), name: name.into() })
    }

    fn nodes(&self) -> Option<Nodes<'r>> {
        let group = self.mesh.virtual_node_group.as_ref()?;
        let name = |node: &'r Option<AppMeshVirtualNodeReference>| node.as_ref().map(|node| node.name.as_str());
        Some(Nodes { canary: name(&group.canary_virtual_node_ref)?, stable: name(&group.stable_virtual_node_ref)? })
    }

    fn named_nodes(&self) -> Result<Nodes<'r>, Problem> {
        let what = "appMesh.virtualNodeGroup must name the virtual nodes of the canary and of the stable version";
        self.nodes().ok_or_else(|| Problem::Said(what.into()))
    }

    /// Whether a target is this node of the Rollout's namespace.
    fn leads_to(&self, target: &Value, node: &str) -> bool {
        let namespace = target.str_at(&["virtualNodeRef", "namespace"]).unwrap_or_default();
        let is_near = namespace.is_empty() || namespace == self.rollout.metadata.namespace;
        is_near && target.str_at(&["virtualNodeRef", "name"]).unwrap_or_default() == node
    }

    /// Lets each node select the pods of its version.
    fn set_hashes(&self, routes: &mut Routes, canary: &str, stable: &str, told: &mut Vec<Told>) -> Result<(), Problem> {
        let nodes = self.named_nodes()?;
        let stable = if stable.is_empty() { NO_STABLE } else { stable };
        let canary = if canary.is_empty() || canary == stable { NO_CANARY } else { canary };
        for (node, hash) in [(nodes.stable, stable), (nodes.canary, canary)] {
            let id = Id::beside(self.rollout, Kind::MeshNode, node);
            let Some(before) = routes.get(&id) else {
                told.push(not_found(reason::VIRTUAL_NODE_NOT_FOUND, "VirtualNode", &id));
                return Err(Problem::Said("Virtual-node is missing".into()));
            };
            nested::map(before, &SELECTOR)?;
            let mut after = before.clone();
            after.set_at(&[&SELECTOR[..], &[label::POD_TEMPLATE_HASH]].concat(), hash);
            if after != *before {
                routes.put(id, after);
            }
        }
        Ok(())
    }

    fn weigh(&self, routes: &mut Routes, weight: i64, told: &mut Vec<Told>) -> Result<(), Problem> {
        let none = || Problem::Said("appMesh.virtualService must name a virtual service".into());
        let service = self.mesh.virtual_service.as_ref().ok_or_else(none)?;
        let id = self.service(service);
        let Some(object) = routes.get(&id) else {
            told.push(not_found(reason::VIRTUAL_SERVICE_NOT_FOUND, "VirtualService", &id));
            return Err(Problem::Said("Virtual-service is missing".into()));
        };
        let router = self.router(object)?;
        let Some(before) = routes.get(&router) else {
            told.push(not_found(reason::VIRTUAL_ROUTER_NOT_FOUND, "VirtualRouter for", &id));
            return Err(Problem::Said("Virtual-router is missing".into()));
        };
        let nodes = self.named_nodes()?;
        let name = before.str_at(&["metadata", "name"]).unwrap_or_default();
        let no_routes = || Problem::Said(FieldError::invalid("spec.routes", name, "No routes found").to_string());
        let list = nested::list(before, &["spec", "routes"]).ok().flatten().ok_or_else(no_routes)?;
        let mut list = list.to_vec();
        for (at, route) in list.iter_mut().enumerate() {
            self.weigh_route(route, &format!("spec.routes[{at}]"), service, &nodes, weight)
                .map_err(|field| Problem::Said(FieldError::invalid(field, name, "not well-formed").to_string()))?;
        }
        let mut after = before.clone();
        after.set_at(&["spec", "routes"], list);
        if after != *before {
            routes.put(router, after);
        }
        Ok(())
    }

    /// Gives the targets of a route their weights. The error is the field that is not well-formed.
    fn weigh_route(
        &self,
        route: &mut Value,
        field: &str,
        service: &AppMeshVirtualService,
        nodes: &Nodes<'_>,
        weight: i64,
    ) -> Result<(), String> {
        route.as_map().ok_or_else(|| field.to_owned())?;
        let name = route.str_at(&["name"]).ok_or_else(|| format!("{field}.name"))?;
        if !is_asked(service, name) {
            return Ok(());
        }
        let mut kind = None;
        for one in ROUTE_TYPES {
            if nested::map(route, &[one]).map_err(|_| field.to_owned())?.is_some() {
                kind = Some(one);
                break;
            }
        }
        let kind = kind.ok_or_else(|| field.to_owned())?;
        let path = [kind, "action", "weightedTargets"];
        let field = format!("{field}.{kind}.action.weightedTargets");
        let targets = nested::list(route, &path).ok().flatten().ok_or_else(|| field.clone())?;
        let mut targets = targets.to_vec();
        for (at, target) in targets.iter_mut().enumerate() {
            let field = format!("{field}[{at}]");
            target.as_map().ok_or_else(|| field.clone())?;
            let node = target.get("virtualNodeRef").and_then(Value::as_map);
            node.ok_or_else(|| format!("{field}.virtualNodeRef"))?;
            let before = match target.get("weight") {
                Some(Value::Int(number)) => *number,
                Some(Value::Float(number)) => *number as i64,
                Some(_) | None => return Err(format!("{field}.weight")),
            };
            let after = if self.leads_to(target, nodes.stable) {
                TOTAL - weight
            } else if self.leads_to(target, nodes.canary) {
                weight
            } else {
                before
            };
            if after != before {
                target.set_at(&["weight"], after);
            }
        }
        route.set_at(&path, targets);
        Ok(())
    }
}

/// Whether a Rollout means this route: all of them, if it names none.
fn is_asked(service: &AppMeshVirtualService, route: &str) -> bool {
    service.routes.is_empty() || service.routes.iter().any(|name| name == route)
}

fn not_found(reason: &'static str, word: &str, id: &Id) -> Told {
    let message = format!("{word} `{}` not found in namespace `{}`", id.name, id.namespace);
    Told { warning: true, reason, message }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        api,
        route::{read, write},
        value,
    };

    proptest! {
        /// The two laws.
        #[test]
        fn what_was_written_is_read_and_nothing_else_changes(
            weights in prop::collection::vec(0..=100i32, 1..5), kind in prop::sample::select(&ROUTE_TYPES[..]),
            theirs in "[a-z]{1,6}", hash in "[a-z]{1,6}",
        ) {
            let rollout: Rollout = api::read(&value!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"},
                "spec": {"strategy": {"canary": {"stableService": "stable", "canaryService": "canary", "trafficRouting": {"appMesh": {
                    "virtualService": {"name": "vs", "routes": ["a", "b"]},
                    "virtualNodeGroup": {"canaryVirtualNodeRef": {"name": "c"}, "stableVirtualNodeRef": {"name": "s"}}}}}}}})).object;
            let id = |kind: Kind, name: &str| Id { kind, namespace: "shop".into(), name: name.into() };
            let metadata = |name: &str| value!({"name": name, "namespace": "shop", "labels": {"x": theirs.as_str()}});
            let service = value!({"metadata": metadata("vs"), "spec": {"provider": {"virtualRouter": {"virtualRouterRef": {"name": "vr"}}}}});
            let router = |weight: i32| {
                let target = |node: &str, weight: i32| value!({"virtualNodeRef": {"name": node}, "weight": weight, "note": theirs.as_str()});
                let route = |name: &str, weight: i32| {
                    let mut route = value!({"name": name, "priority": 1});
                    let targets = Value::list([target("c", weight), target("other", 3), target("s", 100 - weight)]);
                    route.set_at(&[kind, "action", "weightedTargets"], targets);
                    route
                };
                value!({"metadata": metadata("vr"), "spec": {"routes": [route("a", weight), route("c", 1), route("b", weight)]}})
            };
            let node = |name: &str, hash: Option<&str>| {
                let mut node = value!({"metadata": metadata(name), "spec": {"podSelector": {"matchLabels": {"app": theirs.as_str()}}}});
                if let Some(hash) = hash {
                    node.set_at(&[&SELECTOR[..], &[label::POD_TEMPLATE_HASH]].concat(), hash);
                }
                node
            };
            let mut routes = Routes::of([
                (id(Kind::MeshService, "vs"), service.clone()), (id(Kind::MeshRouter, "vr"), router(50)),
                (id(Kind::MeshNode, "c"), node("c", None)), (id(Kind::MeshNode, "s"), node("s", None)),
            ]);
            let hashes = Move::Hashes { canary: &hash, stable: &hash, additional: &[] };
            prop_assert_eq!(write(Leaf::AppMesh, &rollout, &mut routes, hashes, &mut Vec::new()), Ok(()));
            for weight in weights {
                let step = Move::Weights { canary: weight, additional: &[] };
                prop_assert_eq!(write(Leaf::AppMesh, &rollout, &mut routes, step, &mut Vec::new()), Ok(()));
                let expected = Route { canary: weight.into(), stable: (100 - weight).into(), ..Route::default() };
                prop_assert_eq!(read(Leaf::AppMesh, &rollout, &routes), Some(expected));
                prop_assert_eq!(routes.get(&id(Kind::MeshRouter, "vr")), Some(&router(weight)));
            }
            prop_assert_eq!(routes.get(&id(Kind::MeshService, "vs")), Some(&service));
            prop_assert_eq!(routes.get(&id(Kind::MeshNode, "c")), Some(&node("c", Some(NO_CANARY))));
            prop_assert_eq!(routes.get(&id(Kind::MeshNode, "s")), Some(&node("s", Some(&hash))));
        }
    }
}
