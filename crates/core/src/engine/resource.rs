//! The resources that the engine reads and writes.

use super::{cache::Cache, key::Resource};
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
pub fn route(kind: Kind, apis: &Apis) -> Resource {
    Resource::new(kind.group(apis), kind.version(apis), kind.plural(apis))
}

/// What a router reads, in every version in which a server may have it.
pub fn routes(kind: Kind, apis: &Apis) -> Vec<Resource> {
    let versions = kind.versions(apis).into_iter();
    versions.map(|version| Resource::new(kind.group(apis), version, kind.plural(apis))).collect()
}

/// The versions in which the routers' APIs are spoken with this server.
pub fn served(apis: &Apis, cache: &Cache) -> Apis {
    apis.served(|kind, version| {
        !cache.is_unserved(&Resource::new(kind.group(apis), version.as_str(), kind.plural(apis)))
    })
}

/// The resource of the workload that a Rollout refers to.
pub fn workload(kind: &str) -> Resource {
    match kind {
        "Deployment" => deployments(),
        "ReplicaSet" => sets(),
        _ => pod_templates(),
    }
}

/// Whether objects of this resource belong to no namespace.
pub fn is_of_cluster(resource: &Resource) -> bool {
    *resource == cluster_templates()
}

/// Whether a decision goes on without these objects if the server does not know them or does not show them: what is named
/// among them is missing, and the object that names it says so.
pub fn is_optional(resource: &Resource) -> bool {
    !always().contains(resource) && !["", "apps", "batch"].contains(&resource.group.as_str())
}

/// What is watched as long as the engine runs.
pub fn always() -> [Resource; 5] {
    [rollouts(), sets(), services(), runs(), experiments()]
}
