//! The schemas of parts that the types hold as free JSON.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::json;

use super::builtin::MARK;

/// Metadata of the object itself: the API server knows what it looks like.
pub fn object_meta(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object"})
}

/// A pod template.
pub fn pod_template(_: &mut SchemaGenerator) -> Schema {
    builtin("io.k8s.api.core.v1.PodTemplateSpec")
}

/// What a Job does.
pub fn job_spec(_: &mut SchemaGenerator) -> Schema {
    builtin("io.k8s.api.batch.v1.JobSpec")
}

/// Labels and annotations of an object that is yet to be made.
pub fn template_metadata(_: &mut SchemaGenerator) -> Schema {
    builtin("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
}

/// A label selector.
pub fn selector(_: &mut SchemaGenerator) -> Schema {
    builtin("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector")
}

/// A label selector that cannot be changed.
pub fn immutable_selector(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = selector(generator);
    let rule = json!([{"message": ".spec.selector is immutable", "rule": "self == oldSelf"}]);
    schema.insert("x-kubernetes-validations".to_owned(), rule);
    schema
}

/// Any object.
pub fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A type of Kubernetes.
fn builtin(name: &str) -> Schema {
    json_schema!({MARK: name})
}
