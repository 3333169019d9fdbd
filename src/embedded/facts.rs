//! The built-in kinds.

use std::sync::{Arc, LazyLock};

use super::{
    kind::{Kind, Origin, Subresource},
    schema::{Schema, Shape, Struct},
    value::Text,
};

static KINDS: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(|| {
    [
        ("", "v1", "Namespace", "namespaces", false, "status finalize"),
        ("", "v1", "Pod", "pods", true, "status eviction binding"),
        ("", "v1", "Node", "nodes", false, "status"),
        ("", "v1", "ConfigMap", "configmaps", true, ""),
        ("", "v1", "Secret", "secrets", true, ""),
        ("", "v1", "Service", "services", true, "status"),
        ("", "v1", "Endpoints", "endpoints", true, ""),
        ("", "v1", "Event", "events", true, ""),
        ("apps", "v1", "ReplicaSet", "replicasets", true, "status scale"),
        ("apps", "v1", "Deployment", "deployments", true, "status scale"),
        ("batch", "v1", "Job", "jobs", true, "status"),
        ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true, ""),
        ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true, "status"),
        ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true, "status"),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false, "status"),
    ]
    .iter()
    .map(|(group, version, kind, plural, namespaced, subs)| {
        let text = |s: &str| Text::from(s);
        let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
        Arc::new(Kind {
            group: text(group),
            version: text(version),
            kind: text(kind),
            list_kind: format!("{kind}List").into(),
            plural: text(plural),
            singular: kind.to_lowercase().into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: *namespaced,
            verbs: verbs.iter().map(|verb| text(verb)).collect(),
            subresources: subs
                .split_whitespace()
                .map(|name| Subresource {
                    name: text(name),
                    group: text(group),
                    version: text(version),
                    kind: text(kind),
                    verbs: Vec::new(),
                })
                .collect(),
            columns: Vec::new(),
            schema: Arc::new(Schema::of(Shape::Struct(Struct { open: true, ..Struct::default() }))),
            origin: Origin::BuiltIn,
        })
    })
    .collect()
});

/// All built-in kinds.
pub fn kinds() -> &'static [Arc<Kind>] {
    &KINDS
}
