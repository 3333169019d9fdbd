//! The schemas of parts that the types hold as free JSON.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Metadata of the object itself: the API server knows what it looks like.
pub(super) fn object_meta(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object"})
}

/// A pod template.
pub(super) fn pod_template(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-tidegate-type": "io.k8s.api.core.v1.PodTemplateSpec"})
}

/// What a Job does.
pub(super) fn job_spec(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-tidegate-type": "io.k8s.api.batch.v1.JobSpec"})
}

/// Labels and annotations of an object that is yet to be made.
pub(super) fn template_metadata(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-tidegate-type": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"})
}

/// A label selector.
pub(super) fn selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-tidegate-type": "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"})
}

/// A label selector that cannot be changed.
pub(super) fn immutable_selector(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = selector(generator);
    let rule = serde_json::json!([{"message": ".spec.selector is immutable", "rule": "self == oldSelf"}]);
    schema.insert("x-kubernetes-validations".to_owned(), rule);
    schema
}

/// Any object.
pub(super) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
