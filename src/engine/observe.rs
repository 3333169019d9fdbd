//! What a decision about a Rollout must see, out of what is known: which objects its pass reads, and whom a change concerns.
//!
//! Shared by the daemon on a cluster and by the simulator, so that both decide on the same. Never asks the cluster.

use jiff::Timestamp;

use super::{
    cache::{Cache, Change, place_of},
    key::{Place, Resource},
};
use crate::{
    api::{self, Rollout},
    kubernetes::{object, value::Value},
    model::{hash, names},
    rollout::{Seen, services, templates, view},
};

/// The resources that the engine of Rollouts reads and writes.
pub mod resource {
    use super::Resource;
    use crate::api::constants::{GROUP, VERSION};

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
    /// Events.
    pub fn events() -> Resource {
        Resource::new("", "v1", "events")
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
    pub fn always() -> [Resource; 3] {
        [rollouts(), sets(), services()]
    }
}

/// The resources that a Rollout needs beyond those that are always watched.
pub fn needs(rollout: &Rollout, now: Timestamp) -> Vec<Resource> {
    let workload = rollout.spec.workload_ref.as_ref().map(|workload| resource::workload(&workload.kind));
    let pods = view::needs_pods(rollout, now).then(resource::pods);
    let templates = templates::are_named(rollout).then(resource::templates);
    workload.into_iter().chain(pods).chain(templates).collect()
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

/// Everything that a decision about a Rollout may know; `None` if there is none of that name.
pub fn see(cache: &Cache, place: &Place, now: Timestamp) -> Option<Seen> {
    let object = cache.get(&resource::rollouts(), place)?.clone();
    let rollout: Rollout = api::read(&object).object;
    let at = |name: &str| Place::new(&place.namespace, name);
    let workload = rollout.spec.workload_ref.as_ref();
    let workload = workload.and_then(|workload| cache.get(&resource::workload(&workload.kind), &at(&workload.name)));
    let hash = hash::pod_template(&rollout.spec.template, rollout.status.collision_count);
    let next = names::replica_set(&rollout.metadata.name, &hash);
    let matters = |set: &&Value| {
        let owner = object::controller(set);
        let named = set.str_at(&["metadata", "name"]) == Some(&next);
        owner.as_deref() == Some(rollout.metadata.uid.as_str()) || owner.is_none() || named
    };
    let service = |name: &str| cache.get(&resource::services(), &at(name));
    let pods = if view::needs_pods(&rollout, now) {
        cache.list(&resource::pods(), &place.namespace).cloned().collect()
    } else {
        Vec::new()
    };
    Some(Seen {
        now,
        sets: cache.list(&resource::sets(), &place.namespace).filter(matters).cloned().collect(),
        services: services::named(&rollout).iter().filter_map(|(_, name)| service(name)).cloned().collect(),
        workload: workload.cloned(),
        pods,
        templates: templates(cache, &rollout).0,
        rollout: object,
    })
}

/// The Rollouts that a change of another object is about.
pub fn concerned(cache: &Cache, resource: &Resource, change: &Change, now: Timestamp) -> Vec<Place> {
    if [resource::templates(), resource::cluster_templates()].contains(resource) {
        return measured(cache, &change.place.namespace);
    }
    let Some(object) = change.after.as_ref().or(change.before.as_ref()) else { return Vec::new() };
    let (name, namespace) = (change.place.name.as_str(), change.place.namespace.as_str());
    let owner = object::controller(object);
    let refers = |rollout: &Value| rollout.str_at(&["spec", "workloadRef", "name"]) == Some(name);
    cache
        .list(&resource::rollouts(), namespace)
        .filter(|rollout| match resource.plural.as_str() {
            "services" => services::named(&api::read::<Rollout>(rollout).object).iter().any(|(_, of)| *of == name),
            "pods" => view::needs_pods(&api::read::<Rollout>(rollout).object, now),
            "replicasets" => {
                let uid = rollout.str_at(&["metadata", "uid"]);
                owner.as_deref() == uid || owner.is_none() || refers(rollout)
            }
            _ => refers(rollout),
        })
        .map(place_of)
        .collect()
}

/// The Rollouts that name analysis templates: those of a namespace, or all if it is empty.
fn measured(cache: &Cache, namespace: &str) -> Vec<Place> {
    let is_there = |place: &Place| namespace.is_empty() || place.namespace == namespace;
    let names = |rollout: &&Value| templates::are_named(&api::read::<Rollout>(rollout).object);
    cache.all(&resource::rollouts()).filter(names).map(place_of).filter(is_there).collect()
}
