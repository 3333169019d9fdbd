//! What a decision about a Rollout must see, out of what is known: which objects its pass reads, and whom a change concerns.
//!
//! Shared by the daemon on a cluster and by the simulator, so that both decide on the same. Never asks the cluster.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{
    cache::{Cache, Change, place_of},
    key::{ObjectKey, Place, Resource},
    measure,
    references::References,
};
use crate::{
    api::{self, ObjectMeta, Rollout},
    kubernetes::{object, value::Value},
    model::{hash, names},
    rollout::{Seen, View, services, templates, view},
    route::{self, Id, Kind, Routed},
};

/// The resources that the engine of Rollouts reads and writes.
pub mod resource {
    use super::Resource;
    use crate::{
        api::constants::{GROUP, VERSION},
        route::{Apis, Kind},
    };

    /// Rollouts.
    pub fn rollouts() -> Resource {
        Resource::new(GROUP, VERSION, "rollouts")
    }
    /// ReplicaSets.
    pub fn sets() -> Resource {
        Resource::new("apps", "v1", "replicasets")
    }
    /// Services.
    pub fn services() -> Resource {
        Resource::new("", "v1", "services")
    }
    /// Pods.
    pub fn pods() -> Resource {
        Resource::new("", "v1", "pods")
    }
    /// Deployments.
    pub fn deployments() -> Resource {
        Resource::new("apps", "v1", "deployments")
    }
    /// PodTemplates.
    pub fn pod_templates() -> Resource {
        Resource::new("", "v1", "podtemplates")
    }
    /// AnalysisTemplates.
    pub fn templates() -> Resource {
        Resource::new(GROUP, VERSION, "analysistemplates")
    }
    /// ClusterAnalysisTemplates.
    pub fn cluster_templates() -> Resource {
        Resource::new(GROUP, VERSION, "clusteranalysistemplates")
    }
    /// AnalysisRuns.
    pub fn runs() -> Resource {
        Resource::new(GROUP, VERSION, "analysisruns")
    }
    /// Experiments.
    pub fn experiments() -> Resource {
        Resource::new(GROUP, VERSION, "experiments")
    }
    /// Jobs.
    pub fn jobs() -> Resource {
        Resource::new("batch", "v1", "jobs")
    }
    /// Events.
    pub fn events() -> Resource {
        Resource::new("", "v1", "events")
    }

    /// What a router reads.
    pub fn route(kind: Kind) -> Resource {
        Resource::new(kind.group(), kind.version(&Apis::default()), kind.plural())
    }

    /// The resource of the workload that a Rollout refers to.
    pub fn workload(kind: &str) -> Resource {
        match kind {
            "Deployment" => deployments(),
            "ReplicaSet" => sets(),
            _ => pod_templates(),
        }
    }

    /// What is watched as long as the engine runs.
    pub fn always() -> [Resource; 5] {
        [rollouts(), sets(), services(), runs(), experiments()]
    }
}

/// The resources that a Rollout needs beyond those that are always watched.
pub fn needs(rollout: &Rollout, now: Timestamp) -> Vec<Resource> {
    let workload = rollout.spec.workload_ref.as_ref().map(|workload| resource::workload(&workload.kind));
    let pods = view::needs_pods(rollout, now).then(resource::pods);
    let templates = templates::are_named(rollout).then(resource::templates);
    let mut needs: Vec<Resource> = workload.into_iter().chain(pods).chain(templates).collect();
    for id in route::named(rollout) {
        let resource = resource::route(id.kind);
        if !needs.contains(&resource) {
            needs.push(resource);
        }
    }
    needs
}

/// The analysis templates that a Rollout names, and those that these name, as far as they are known; and whether one of
/// the cluster's is among the names.
pub fn templates(cache: &Cache, rollout: &Rollout) -> (Vec<Value>, bool) {
    let namespace = rollout.metadata.namespace.as_str();
    templates::reach(rollout, |scope, name| match scope {
        templates::Scope::Namespace => cache.get(&resource::templates(), &Place::new(namespace, name)).cloned(),
        templates::Scope::Cluster => cache.get(&resource::cluster_templates(), &Place::new("", name)).cloned(),
    })
}

/// Everything that a decision about this Rollout may know; `None` if it is gone.
pub fn see(cache: &Cache, place: &Place, rollout: &Rollout, now: Timestamp) -> Option<Seen> {
    let object = cache.get(&resource::rollouts(), place)?.clone();
    let at = |name: &str| Place::new(&place.namespace, name);
    let workload = rollout.spec.workload_ref.as_ref();
    let workload = workload.and_then(|workload| cache.get(&resource::workload(&workload.kind), &at(&workload.name)));
    let hash = hash::pod_template(&rollout.spec.template, rollout.status.collision_count);
    let next = names::replica_set(&rollout.metadata.name, &hash);
    let sets = resource::sets();
    let own = cache.children(&sets, &rollout.metadata.uid).chain(cache.orphans(&sets, &place.namespace));
    let mut sets_seen: Vec<Value> = own.cloned().collect();
    let namesake = cache.get(&sets, &at(&next));
    sets_seen.extend(namesake.filter(|set| !sets_seen.iter().any(|own| own.is(set))).cloned());
    let service = |name: &str| cache.get(&resource::services(), &at(name));
    let pods = if view::needs_pods(rollout, now) {
        let uids = sets_seen.iter().filter_map(|set| set.str_at(&["metadata", "uid"]));
        uids.flat_map(|uid| cache.children(&resource::pods(), uid)).cloned().collect()
    } else {
        Vec::new()
    };
    let routed = |id: Id| {
        let object = cache.get(&resource::route(id.kind), &Place::new(&id.namespace, &id.name))?;
        Some(Routed { kind: id.kind, object: object.clone() })
    };
    let is_unserved = |kind: &Kind| cache.is_unserved(&resource::route(*kind));
    let kinds: BTreeSet<Kind> = route::named(rollout).into_iter().map(|id| id.kind).collect();
    Some(Seen {
        now,
        unserved: kinds.into_iter().filter(is_unserved).collect(),
        routes: route::named(rollout).into_iter().filter_map(routed).collect(),
        sets: sets_seen,
        services: services::named(rollout).iter().filter_map(|(_, name)| service(name)).cloned().collect(),
        workload: workload.cloned(),
        pods,
        templates: templates(cache, rollout).0,
        runs: runs(cache, &rollout.metadata),
        rollout: object,
        ..Seen::default()
    })
}

/// The AnalysisRuns that a Rollout or an Experiment controls, and those that have a name it might give.
pub(super) fn runs(cache: &Cache, metadata: &ObjectMeta) -> Vec<Value> {
    let resource = resource::runs();
    let mut runs: Vec<Value> = cache.children(&resource, &metadata.uid).cloned().collect();
    let beginning = format!("{}-", metadata.name);
    let named = cache.named(&resource, &metadata.namespace, &beginning);
    let others: Vec<Value> = named.filter(|run| !runs.iter().any(|own| own.is(run))).cloned().collect();
    runs.extend(others);
    runs
}

/// The objects that a Rollout names.
pub fn referred(rollout: &Rollout) -> Vec<ObjectKey> {
    let at =
        |resource: Resource, name: &str| ObjectKey { resource, place: Place::new(&rollout.metadata.namespace, name) };
    let workload = rollout.spec.workload_ref.as_ref();
    let workload = workload.map(|workload| at(resource::workload(&workload.kind), &workload.name));
    let services = services::named(rollout).into_iter().map(|(_, name)| at(resource::services(), name));
    let routes = route::named(rollout).into_iter();
    let routes =
        routes.map(|id| ObjectKey { resource: resource::route(id.kind), place: Place::new(&id.namespace, &id.name) });
    services.chain(workload).chain(routes).collect()
}

/// What a Rollout names and was not seen. It may exist all the same: each watch has its own pace, and the Rollout's may be
/// ahead of the Services'.
pub fn missing(rollout: &Rollout, seen: &Seen) -> Vec<ObjectKey> {
    let workload = rollout.spec.workload_ref.as_ref().map(|workload| resource::workload(&workload.kind));
    let is_seen = |key: &ObjectKey| {
        let named = |object: &Value| object.str_at(&["metadata", "name"]) == Some(key.place.name.as_str());
        let is_routed = |routed: &Routed| resource::route(routed.kind) == key.resource && named(&routed.object);
        if key.resource == resource::services() {
            seen.services.iter().any(named)
        } else if workload.as_ref() == Some(&key.resource) {
            seen.workload.is_some()
        } else {
            seen.routes.iter().any(is_routed)
        }
    };
    referred(rollout).into_iter().filter(|key| !is_seen(key)).collect()
}

/// The ReplicaSet about which the server is to be asked who wrote it, before its template is believed.
pub fn doubtful(view: &View) -> Option<ObjectKey> {
    let name = &view.taken_for_template()?.info.name;
    let place = Place::new(&view.rollout.metadata.namespace, name);
    Some(ObjectKey { resource: resource::sets(), place })
}

/// The Rollouts that a change of another object is about: those that name it, and those that own it.
pub fn concerned(
    cache: &Cache,
    references: &References,
    resource: &Resource,
    change: &Change,
    now: Timestamp,
) -> Vec<Place> {
    if [resource::templates(), resource::cluster_templates()].contains(resource) {
        return measured(cache, &change.place.namespace);
    }
    let Some(object) = change.after.as_ref().or(change.before.as_ref()) else { return Vec::new() };
    let subject = ObjectKey { resource: resource.clone(), place: change.place.clone() };
    let mut concerned: Vec<Place> = references.to(&subject).cloned().collect();
    if *resource == resource::sets() {
        concerned.extend(claimants(cache, object).iter().map(|rollout| place_of(rollout)));
    } else if *resource == resource::runs() {
        let owner = owner_in(cache, &resource::rollouts(), object);
        let is_news = measure::is_news(change.before.as_ref(), change.after.as_ref());
        concerned.extend(owner.filter(|_| is_news).map(place_of));
    } else if *resource == resource::pods() {
        let rollouts = owner_in(cache, &resource::sets(), object).map_or_else(Vec::new, |set| claimants(cache, set));
        let needing = rollouts.iter().filter(|rollout| view::needs_pods(&api::read::<Rollout>(rollout).object, now));
        concerned.extend(needing.map(|rollout| place_of(rollout)));
    }
    concerned
}

/// The Rollouts that a ReplicaSet matters to: the one that controls it; all of its namespace while nobody does.
fn claimants<'a>(cache: &'a Cache, set: &'a Value) -> Vec<&'a Value> {
    if object::controller(set).is_some() {
        return owner_in(cache, &resource::rollouts(), set).into_iter().collect();
    }
    let namespace = set.str_at(&["metadata", "namespace"]).unwrap_or_default();
    cache.list(&resource::rollouts(), namespace).collect()
}

/// The object of this resource that controls another one.
pub(super) fn owner_in<'a>(cache: &'a Cache, resource: &Resource, object: &Value) -> Option<&'a Value> {
    let namespace = object.str_at(&["metadata", "namespace"]).unwrap_or_default();
    let owner = cache.get(resource, &Place::new(namespace, &object::controller_name(object)?))?;
    (owner.str_at(&["metadata", "uid"]) == object::controller(object).as_deref()).then_some(owner)
}

/// The Rollouts that name analysis templates: those of a namespace, or all if it is empty.
fn measured(cache: &Cache, namespace: &str) -> Vec<Place> {
    let is_there = |place: &Place| namespace.is_empty() || place.namespace == namespace;
    let names = |rollout: &&Value| templates::are_named(&api::read::<Rollout>(rollout).object);
    cache.all(&resource::rollouts()).filter(names).map(place_of).filter(is_there).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn what_is_named_and_not_seen_is_missing() {
        let rollout = value!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {
            "workloadRef": {"kind": "Deployment", "name": "old"},
            "strategy": {"canary": {"stableService": "a", "canaryService": "b"}}}});
        let service = |name: &str| value!({"metadata": {"name": name}});
        let missing = |services: Vec<Value>, workload: Option<Value>| -> Vec<String> {
            let seen = Seen { rollout: rollout.clone(), services, workload, ..Seen::default() };
            missing(&api::read(&rollout).object, &seen)
                .iter()
                .map(|key| format!("{} {}", key.resource, key.place.name))
                .collect()
        };
        assert_eq!(missing(vec![], None), ["services a", "services b", "deployments.apps old"]);
        assert_eq!(missing(vec![service("b")], Some(value!({}))), ["services a"]);
        assert!(missing(vec![service("a"), service("b")], Some(value!({}))).is_empty());
    }
}
