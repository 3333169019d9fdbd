//! The life of a CustomResourceDefinition: established once its names are accepted, gone only after its objects.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Store, meta,
    registry::Resource,
    request::{Request, Verb},
};
use crate::kubernetes::{
    clock::rfc3339,
    object::Object,
    schema::crd,
    value::{Text, Value},
};

/// Holds a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Store {
    /// Writes into the status of a definition what the server's own controllers do: accepted names, established or not.
    pub(super) fn establish(&mut self, resource: &Resource, definition: &Arc<Object>) {
        let others = self.objects(&resource.table, "").filter(|other| other.name() != definition.name());
        let settled = crd::settle(&definition.value, others.map(|other| &other.value), &rfc3339(self.now()));
        let Some(status) = settled else { return };
        let mut value = definition.value.clone();
        value.set_at(&["status"], status);
        let _ = self.apply(status_write(definition, value));
    }

    /// Deletes the objects of definitions that are going, and the definitions themselves once they have none.
    pub(super) fn finish_definitions(&mut self) {
        let going: Vec<Arc<Object>> = self
            .list("apiextensions.k8s.io", "customresourcedefinitions", "")
            .filter(|definition| {
                definition.is_terminating() && meta::finalizers_of(&definition.value).contains(&CLEANUP)
            })
            .cloned()
            .collect();
        for definition in going {
            let spec = definition.value.get("spec");
            let text = |path: &[&str]| spec.and_then(|spec| spec.at(path)?.as_text().cloned()).unwrap_or_default();
            let (group, plural) = (text(&["group"]), text(&["names", "plural"]));
            self.delete_instances(&group, &plural);
            if self.list(&group, &plural, "").next().is_none() {
                self.release_definition(&definition);
            }
        }
    }

    fn delete_instances(&mut self, group: &Text, plural: &Text) {
        let Some(kind) = self.registry.resource(group, plural).map(|resource| resource.storage.clone()) else { return };
        let live: Vec<Arc<Object>> =
            self.list(group, plural, "").filter(|object| !object.is_terminating()).cloned().collect();
        for object in live {
            let request = Request {
                verb: Verb::Delete,
                group: group.clone(),
                version: kind.version.clone(),
                resource: plural.clone(),
                namespace: object.namespace(),
                name: object.name(),
                ..Request::default()
            };
            let _ = self.apply(request);
        }
    }

    fn release_definition(&mut self, definition: &Arc<Object>) {
        let mut value = definition.value.clone();
        let rest: Vec<Value> = meta::finalizers_of(&value)
            .into_iter()
            .filter(|finalizer| *finalizer != CLEANUP)
            .map(Value::from)
            .collect();
        meta::put_meta(&mut value, "finalizers", (!rest.is_empty()).then(|| rest.into()));
        let mut request = status_write(definition, value);
        request.subresource = Text::new();
        let _ = self.apply(request);
    }
}

fn status_write(definition: &Object, value: Value) -> Request {
    Request {
        verb: Verb::Update,
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        resource: "customresourcedefinitions".into(),
        name: definition.name(),
        subresource: "status".into(),
        body: Some(value),
        agent: "kube-apiserver".into(),
        ..Request::default()
    }
}

/// Marks a definition whose deletion was asked for.
pub(super) fn terminate(value: &mut Value, now: Timestamp) {
    let mut finalizers: Vec<Value> = meta::finalizers_of(value).into_iter().map(Value::from).collect();
    if !finalizers.iter().any(|finalizer| *finalizer == CLEANUP) {
        finalizers.push(CLEANUP.into());
        value.set_at(&["metadata", "finalizers"], finalizers);
    }
    let mut status = value.get("status").cloned().unwrap_or_else(Value::object);
    crd::set_terminating(&mut status, &rfc3339(now));
    value.set_at(&["status"], status);
}
