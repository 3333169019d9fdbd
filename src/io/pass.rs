//! One pass about a Rollout on a cluster: act, record, announce, in this order.
//!
//! What was seen and decided is handed in; here it is only carried out. Every acknowledged write is told, so that the next
//! pass waits until it is seen. An error ends the pass: the next one starts from what is.

use jiff::Timestamp;

use super::api::{Api, Error};
use crate::{
    api::{
        self, Rollout,
        constants::{self, EVENT_COMPONENT},
    },
    engine::{
        cache::{place_of, version_of},
        key::{ObjectKey, Place, Resource},
    },
    kubernetes::{
        clock::rfc3339,
        names,
        value::{Text, Value},
    },
    rollout::{Action, Event, Verdict, View, diff, diff::Subject, services},
    value,
};

/// What a pass wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// This object has this version now.
    Version(ObjectKey, u64),
    /// This object, of this uid, which had this version, is on its way out.
    Deleted(ObjectKey, Text, u64),
}

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
}

/// Carries a verdict out. What was written is added to `written` as it is acknowledged, also if a later write fails.
pub async fn carry_out(
    api: &Api,
    view: &View,
    verdict: &Verdict,
    actions: &[Action],
    written: &mut Vec<Written>,
) -> Result<(), Error> {
    let place = Place::new(&view.rollout.metadata.namespace, &view.rollout.metadata.name);
    let mut newest = None;
    for action in actions {
        let done = act(api, view, &place, action).await?;
        if let Some(Written::Version(key, version)) = &done
            && key.resource == resource::rollouts()
        {
            newest = Some(*version);
        }
        written.extend(done);
    }
    let Some(mut patch) = verdict.status.as_ref().and_then(|status| diff::status_patch(view, status)) else {
        return Ok(());
    };
    if let Some(version) = newest {
        // This pass has changed the Rollout itself; nobody else has since, or the patch is refused.
        patch.set_at(&["metadata", "resourceVersion"], version.to_string());
    }
    let key = ObjectKey { resource: resource::rollouts(), place };
    let object = api.patch(&key.resource, &key.place, "status", &patch).await?;
    written.push(Written::Version(key, version_of(&object)));
    if let Some(status) = &verdict.status {
        api.metrics().with(|metrics| metrics.recorded(&view.rollout.status, status, view.now));
    }
    Ok(())
}

async fn act(api: &Api, view: &View, place: &Place, action: &Action) -> Result<Option<Written>, Error> {
    let at = |resource: Resource, name: &Text| ObjectKey {
        resource,
        place: Place { namespace: place.namespace.clone(), name: name.clone() },
    };
    match action {
        Action::CreateSet { set } => {
            let created = api.create(&resource::sets(), &place.namespace, set).await?;
            let name = created.at(&["metadata", "name"]).and_then(Value::as_text).cloned().unwrap_or_default();
            Ok(Some(Written::Version(at(resource::sets(), &name), version_of(&created))))
        }
        Action::Patch { object, name, patch } => {
            let key = match object {
                Subject::Rollout => ObjectKey { resource: resource::rollouts(), place: place.clone() },
                Subject::Set => at(resource::sets(), name),
                Subject::Service => at(resource::services(), name),
                Subject::Pod => at(resource::pods(), name),
                Subject::Workload => {
                    let kind = view.rollout.spec.workload_ref.as_ref().map(|workload| workload.kind.as_str());
                    at(resource::workload(kind.unwrap_or_default()), name)
                }
            };
            let patched = api.patch(&key.resource, &key.place, "", patch).await?;
            Ok(Some(Written::Version(key, version_of(&patched))))
        }
        Action::DeleteSet { name, uid } => {
            let options = value!({"preconditions": {"uid": uid}, "propagationPolicy": "Background"});
            let key = at(resource::sets(), name);
            match api.delete(&key.resource, &key.place, &options).await {
                Ok(_) => {
                    let set = view.sets.iter().find(|set| set.info.name == *name);
                    let version = set.map_or(0, |set| version_of(&set.object));
                    Ok(Some(Written::Deleted(key, uid.clone(), version)))
                }
                // Gone already.
                Err(error) if error.code() == Some(404) => Ok(None),
                Err(error) => Err(error),
            }
        }
        Action::Evict { pod } => {
            let eviction = value!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
            match api.evict(&at(resource::pods(), pod).place, &eviction).await {
                Ok(_) => Ok(None),
                // A disruption budget says no, or it has gone by itself; either is looked at again.
                Err(error) if matches!(error.code(), Some(429 | 404)) => Ok(None),
                Err(error) => Err(error),
            }
        }
    }
}

/// Gives a Service back to its owner if no Rollout of the cluster leads it; one of another instance may.
pub async fn release(api: &Api, service: &Value, written: &mut Vec<Written>) -> Result<(), Error> {
    let place = place_of(service);
    let all = resource::rollouts().path(Some(&place.namespace));
    let rollouts = match services::leader(service) {
        // Nobody can be called so.
        Some(name) if !names::dns_subdomain(name).is_empty() => Vec::new(),
        Some(name) => match api.get(&format!("{all}/{name}")).await {
            Ok(rollout) => vec![rollout],
            Err(error) if error.code() == Some(404) => Vec::new(),
            Err(error) => return Err(error),
        },
        None => api.get(&all).await?.list_at(&["items"]).to_vec(),
    };
    let rollouts: Vec<Rollout> = rollouts.iter().map(|rollout| api::read(rollout).object).collect();
    let Some(patch) = services::release(service, &rollouts) else { return Ok(()) };
    let key = ObjectKey { resource: resource::services(), place };
    match api.patch(&key.resource, &key.place, "", &patch).await {
        Ok(released) => {
            tracing::info!(service = %key.place, "given back to its owner: no rollout leads it any more");
            written.push(Written::Version(key, version_of(&released)));
            Ok(())
        }
        Err(error) if error.code() == Some(404) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Announces something about a Rollout as an event. Events are for people: one that cannot be written is only logged.
pub async fn announce(api: &Api, rollout: &Value, event: &Event, now: Timestamp, number: usize) {
    let text = |key: &str| rollout.str_at(&["metadata", key]).unwrap_or_default();
    let (name, namespace, time) = (text("name"), text("namespace"), rfc3339(now));
    let body = value!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("{name}.{:x}.{number}", now.as_nanosecond()), "namespace": namespace},
        "involvedObject": {
            "apiVersion": constants::API_VERSION,
            "kind": constants::kind::ROLLOUT,
            "name": name,
            "namespace": namespace,
            "uid": text("uid"),
            "resourceVersion": text("resourceVersion"),
        },
        "type": if event.warning { "Warning" } else { "Normal" },
        "reason": event.reason,
        "message": event.message.as_str(),
        "source": {"component": EVENT_COMPONENT},
        "reportingComponent": EVENT_COMPONENT,
        "firstTimestamp": time.as_str(),
        "lastTimestamp": time.as_str(),
        "count": 1,
    });
    let r#type = if event.warning { "Warning" } else { "Normal" };
    api.metrics().with(|metrics| metrics.announced(Place::new(namespace, name), r#type, event.reason));
    if let Err(error) = api.create(&resource::events(), namespace, &body).await {
        tracing::warn!(%error, reason = event.reason, "an event was not written");
    }
}
