//! What the real server does to objects of built-in kinds beyond decoding them: defaults, preparation, validation.
//!
//! One file per family of kinds. A write goes through [`default()`], then [`prepare_create`] or [`prepare_update`], then
//! [`validate_create`] or [`validate_update`]; all are pure functions of the object (and of the object before), and
//! whatever else a preparation may look at is in its [`Context`]. Metadata is validated by the store; custom resources
//! never come here. Who owns which field is settled between defaults and preparation: what a preparation fills in has
//! no manager.

pub mod addresses;
mod admission;
mod autoscaling;
mod cluster;
mod config;
mod cron;
pub mod default;
mod diff;
mod event;
mod field;
mod gostruct;
mod job;
mod meta;
mod net;
mod networking;
pub mod pod;
mod policy;
mod rbac;
#[cfg(test)]
mod recorded;
mod resource;
mod service;
mod storage;
mod warnings;
mod workload;

use jiff::Timestamp;

pub use addresses::Addresses;
pub use default::{default, default_since};
pub use warnings::warnings;

use super::{
    kind::Kind,
    names,
    status::{FieldError, Status},
    value::{Text, Value},
};
use field::{Field, Judge, judge, judge_as};

/// What preparing an object may need to know beside the object.
pub struct Context<'a> {
    /// The time of the request.
    pub now: Timestamp,
    /// The uid the store gives (or gave) the object.
    pub uid: Text,
    /// `status`, `scale`, …; empty for a write to the object itself.
    pub subresource: &'a str,
    /// A number that is different for each write: what is random on the real server follows from it here.
    pub seed: u64,
    /// What the Services of the cluster hold.
    pub addresses: &'a Addresses,
    /// All objects of a cluster-scoped resource, by group and plural: the classes that admission looks up.
    pub look: &'a dyn Fn(&str, &str) -> Vec<Value>,
}

/// Makes an object that a client wants to create what the server stores: status reset, fields the server owns filled in.
/// `value` is decoded, defaulted and has its final name. An error is what admission or an allocator says no to.
pub fn prepare_create(kind: &Kind, value: &mut Value, context: &mut Context<'_>) -> Result<(), Status> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => return pod::prepare_create(value, context),
        ("", "Service") => return service::prepare_create(value, context),
        ("", "Secret") => config::prepare_secret(value, None),
        ("", "ServiceAccount") => config::prepare_service_account(value),
        ("", "Namespace") => cluster::prepare_namespace(value),
        ("", "Node") => cluster::prepare_node(value),
        ("", "PersistentVolume" | "PersistentVolumeClaim") => storage::prepare_create(&kind.kind, value, context),
        ("batch", "Job") => job::prepare_create(value, context),
        (group, name) => {
            if let Some(status) = empty_status(kind) {
                value.set_at(&["status"], status);
            }
            match (group, name) {
                ("apps", "DaemonSet") => workload::prepare_daemon_set(value),
                ("networking.k8s.io", "Ingress") => admission::default_ingress_class(value, context),
                ("scheduling.k8s.io", "PriorityClass") => admission::only_default(value, context)?,
                _ => {}
            }
        }
    }
    drop_unserved(kind, value);
    Ok(())
}

/// Takes away fields that the real server knows but does not serve, their features being off.
fn drop_unserved(kind: &Kind, value: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", name) => {
            pod::drop_unserved(value, &["spec", "template", "spec"]);
            if name == "StatefulSet" {
                value.remove_at(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
            }
        }
        ("batch", "Job") | ("", "ReplicationController") => {
            pod::drop_unserved(value, &["spec", "template", "spec"]);
        }
        ("batch", "CronJob") => pod::drop_unserved(value, &["spec", "jobTemplate", "spec", "template", "spec"]),
        ("", "PodTemplate") => pod::drop_unserved(value, &["template", "spec"]),
        ("coordination.k8s.io", "Lease") => {
            value.remove_at(&["spec", "strategy"]);
            value.remove_at(&["spec", "preferredHolder"]);
        }
        _ => {}
    }
}

/// The status of a new object as Go prints an empty one: counters that are not left out when zero.
fn empty_status(kind: &Kind) -> Option<Value> {
    let counters: &[&str] = match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "ReplicaSet") | ("", "ReplicationController") => &["replicas"],
        ("apps", "StatefulSet") => &["replicas", "availableReplicas"],
        ("apps", "DaemonSet") => {
            &["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"]
        }
        ("policy", "PodDisruptionBudget") => {
            &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"]
        }
        ("autoscaling", "HorizontalPodAutoscaler") if kind.version == "v1" => &["currentReplicas", "desiredReplicas"],
        ("autoscaling", "HorizontalPodAutoscaler") => {
            return Some(crate::value!({"desiredReplicas": 0, "currentMetrics": null}));
        }
        ("networking.k8s.io", "Ingress") => return Some(crate::value!({"loadBalancer": {}})),
        ("storage.k8s.io", "VolumeAttachment") => return Some(crate::value!({"attached": false})),
        _ if kind.subresource("status").is_some() => &[],
        _ => return None,
    };
    Some(Value::Map(counters.iter().map(|name| (*name, 0)).collect()))
}

/// Makes an object that a client wants to write over `old` what the server stores: status kept on a write to the object,
/// everything else kept on a write to `/status` (see [`Context::subresource`]).
pub fn prepare_update(kind: &Kind, value: &mut Value, old: &Value, context: &mut Context<'_>) -> Result<(), Status> {
    match (kind.group.as_str(), kind.kind.as_str(), context.subresource) {
        ("", "Pod", _) => pod::prepare_update(value, old, context),
        ("", "Service", _) => return service::prepare_update(value, old, context),
        (group, name, "status") => {
            keep(value, old, &["spec"]);
            match (group, name) {
                ("apps", "Deployment") => keep(value, old, &["metadata", "labels"]),
                ("", "PersistentVolume") => storage::prepare_volume_status(value, old, context),
                _ => {}
            }
        }
        (group, name, subresource) => {
            if kind.subresource("status").is_some() {
                keep(value, old, &["status"]);
            }
            match (group, name) {
                ("", "Namespace") => {
                    if subresource.is_empty() {
                        keep(value, old, &["spec", "finalizers"]);
                    }
                    cluster::label_namespace(value);
                }
                ("", "Secret") => config::prepare_secret(value, Some(old)),
                ("", "ServiceAccount") => config::prepare_service_account(value),
                ("", "PersistentVolumeClaim") => storage::prepare_claim_update(value),
                ("apps", "DaemonSet") => workload::prepare_daemon_set_update(value, old),
                ("scheduling.k8s.io", "PriorityClass") => admission::only_default(value, context)?,
                _ => {}
            }
            if !value.get("spec").zip(old.get("spec")).is_some_and(|(new, old)| new.is(old)) {
                drop_unserved(kind, value);
            }
        }
    }
    Ok(())
}

/// Sets a field to what it is in `old`, or removes it if it is not there. Copies nothing if it is the same already.
fn keep(value: &mut Value, old: &Value, path: &[&str]) {
    match (value.at(path), old.at(path)) {
        (Some(new), Some(old)) if new.is(old) => {}
        (_, Some(old)) => value.set_at(path, old),
        (Some(_), None) => _ = value.remove_at(path),
        (None, None) => {}
    }
}

/// What a controller that links Kubernetes' libraries says of the selector of a ReplicaSet.
pub fn judge_selector(replica_set: &Value) -> Vec<FieldError> {
    judge_as(Judge::Library, replica_set, |object| meta::selector(&object.child("spec").child("selector")))
}

/// What a controller that links Kubernetes' libraries says of the template of a ReplicaSet, and of its selector with
/// regard to it.
pub fn judge_template(replica_set: &Value) -> Vec<FieldError> {
    judge_as(Judge::Library, replica_set, |object| workload::new_template(&object.child("spec")))
}

/// The rules a new object breaks, in upstream's order; the store puts those of its metadata before them.
pub fn validate_create(kind: &Kind, value: &Value) -> Vec<FieldError> {
    judge(value, |object| match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod::validate_create(object),
        ("batch", "Job") => job::validate_create(object),
        _ => validate(kind, object, None),
    })
}

/// The rules that the change from `old` breaks. `subresource` is empty for a write to the object itself. Parts of the
/// object that are the very same as before (see [`Value::is`]) were judged when they were written.
pub fn validate_update(kind: &Kind, subresource: &str, value: &Value, old: &Value) -> Vec<FieldError> {
    judge(value, |object| match (kind.group.as_str(), kind.kind.as_str(), subresource) {
        (group, name, "status") => validate_status(group, name, object, old),
        ("", "Pod", _) => pod::validate_update(object, old, subresource),
        ("batch", "Job", _) => job::validate_update(object, old),
        ("", "Namespace", "finalize") => cluster::validate_finalize(object),
        _ => validate(kind, object, Some(old)),
    })
}

/// Kinds whose rules are the same for new and for changed objects, but for what may not change.
fn validate(kind: &Kind, object: &Field, old: Option<&Value>) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", name) => validate_core(name, object, old),
        ("apps", "ControllerRevision") => cluster::validate_controller_revision(object, old),
        ("apps", name) => workload::validate(name, object, old),
        ("batch", "CronJob") => job::validate_cron(object, old),
        ("networking.k8s.io", "Ingress") => networking::validate_ingress(object, old),
        ("networking.k8s.io", "IngressClass") => networking::validate_ingress_class(object, old),
        ("networking.k8s.io", "NetworkPolicy") => networking::validate_network_policy(object, old),
        ("discovery.k8s.io", "EndpointSlice") => networking::validate_endpoint_slice(object, old),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::validate(object, old),
        ("policy", "PodDisruptionBudget") => policy::validate(object, old),
        ("rbac.authorization.k8s.io", name @ ("Role" | "ClusterRole")) => rbac::validate_role(name, object),
        ("rbac.authorization.k8s.io", name) => rbac::validate_binding(name, object, old),
        ("events.k8s.io", "Event") => event::validate("events.k8s.io", object, old),
        ("coordination.k8s.io", "Lease") => cluster::validate_lease(object),
        ("scheduling.k8s.io", "PriorityClass") => cluster::validate_priority_class(object, old),
        ("node.k8s.io", "RuntimeClass") => cluster::validate_runtime_class(object, old),
        ("storage.k8s.io", "StorageClass") => storage::validate_class(object, old),
        _ => {}
    }
}

fn validate_core(name: &str, object: &Field, old: Option<&Value>) {
    match name {
        "ConfigMap" => config::validate_config_map(object, old),
        "Secret" => config::validate_secret(object, old),
        "Service" => service::validate(object, old),
        "Namespace" => cluster::validate_namespace(object),
        "Node" => cluster::validate_node(object, old),
        "Endpoints" => networking::validate_endpoints(object, old),
        "Event" => event::validate("", object, old),
        "LimitRange" => cluster::validate_limit_range(object),
        "ResourceQuota" => cluster::validate_quota(object, old),
        "PodTemplate" => {
            let template = object.child("template");
            if old.and_then(|old| old.get("template")).is_none_or(|old| !old.is(template.value)) {
                pod::template(&template);
            }
        }
        "ReplicationController" => workload::validate(name, object, old),
        "PersistentVolumeClaim" => match old {
            None => storage::claim_spec(&object.child("spec")),
            Some(old) => storage::validate_claim_update(object, old),
        },
        "PersistentVolume" => storage::validate_volume(object, old),
        _ => {}
    }
}

fn validate_status(group: &str, name: &str, object: &Field, old: &Value) {
    match (group, name) {
        ("", "Pod") => pod::validate_status(object, old),
        ("", "Service") => service::validate_status(object, old),
        ("", "Namespace") => cluster::validate_namespace_status(object),
        ("", "Node") => cluster::validate_node_update(object, old),
        ("", "ResourceQuota") => cluster::validate_quota_status(object),
        ("apps", _) | ("", "ReplicationController") => workload::validate_status(name, object, old),
        ("batch", "Job") => job::validate_status(object, old),
        ("networking.k8s.io", "Ingress") => {
            let status = object.child("status");
            let balancer = status.child("loadBalancer");
            service::ingress_points(&balancer.child("ingress"), old, |_| ());
        }
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::validate_status(object),
        ("policy", "PodDisruptionBudget") => policy::validate_status(object),
        _ => {}
    }
}

/// What is wrong with this name for an object of this kind, in upstream's words. Of a `generateName`, pass what
/// [`names::mask_trailing_dash`] makes of it.
pub fn validate_name(kind: &Kind, name: &str) -> Vec<String> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => names::dns1035_label(name),
        ("", "Namespace") | ("apps", "StatefulSet") => names::dns_label(name),
        ("", "Event")
        | ("policy", "PodDisruptionBudget")
        | ("rbac.authorization.k8s.io", _)
        | ("certificates.k8s.io", "CertificateSigningRequest") => names::path_segment(name),
        _ => names::dns_subdomain(name),
    }
}

/// How often upstream judges the metadata of an update, and therefore repeats each cause it finds there. (Measured;
/// a new object's metadata is judged once.)
pub fn metadata_rounds(kind: &Kind, subresource: &str) -> usize {
    match (kind.group.as_str(), kind.kind.as_str(), subresource) {
        ("", "Event", _) | ("policy", "PodDisruptionBudget", _) | ("batch", "CronJob", "status") => 2,
        (_, _, "status") => 3,
        ("apps", "ControllerRevision", _) => 5,
        (
            "",
            "ConfigMap"
            | "Secret"
            | "ServiceAccount"
            | "Endpoints"
            | "Namespace"
            | "Node"
            | "Pod"
            | "PersistentVolume"
            | "PersistentVolumeClaim",
            _,
        )
        | ("batch", "Job", _)
        | ("networking.k8s.io" | "rbac.authorization.k8s.io" | "storage.k8s.io", ..) => 4,
        _ => 3,
    }
}

/// Whether a finalizer is one of Kubernetes' own or has a domain, as those of built-in kinds must.
pub fn names_finalizer(name: &str) -> bool {
    name.contains('/') || ["kubernetes", "orphan", "foregroundDeletion"].contains(&name)
}
