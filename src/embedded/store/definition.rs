//! The life of a CustomResourceDefinition: established once its names are accepted, gone only after its objects.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Store, meta,
    registry::Resource,
    request::{Request, Verb},
};
use crate::embedded::{
    clock::rfc3339,
    object::Object,
    value::{Text, Value},
};

/// Holds a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Store {
    /// Writes into the status of a definition what the server's own controllers do: accepted names, established or not.
    pub(super) fn establish(&mut self, resource: &Resource, definition: &Arc<Object>) {
        let others = self.objects(&resource.table, "").filter(|other| other.name() != definition.name());
        let status = status(&definition.value, others, self.now());
        if definition.value.get("status") == Some(&status) {
            return;
        }
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
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will be initiated soon";
    set_condition(&mut status, "Terminating", true, "InstanceDeletionPending", message, now);
    value.set_at(&["status"], status);
}

/// The status of a stored definition.
fn status<'a>(definition: &Value, others: impl Iterator<Item = &'a Arc<Object>>, now: Timestamp) -> Value {
    let mut status = definition.get("status").cloned().unwrap_or_else(Value::object);
    let names = definition.at(&["spec", "names"]).cloned().unwrap_or_default();
    let group = definition.str_at(&["spec", "group"]);
    let taken: Vec<Value> = others
        .filter(|other| other.value.str_at(&["spec", "group"]) == group)
        .filter_map(|other| other.value.at(&["status", "acceptedNames"]).cloned())
        .collect();
    let accepted = status.get("acceptedNames").cloned().unwrap_or_else(Value::object);
    let mut new = accepted.clone();
    let mut conflict = None;
    for (key, reason) in [
        ("plural", "PluralConflict"),
        ("singular", "SingularConflict"),
        ("kind", "KindConflict"),
        ("listKind", "ListKindConflict"),
    ] {
        let Some(name) = names.get(key).filter(|name| name.as_str().is_some_and(|name| !name.is_empty())) else {
            continue;
        };
        if is_taken(key, name, &taken) {
            let name = name.as_str().unwrap_or_default();
            conflict.get_or_insert((reason, format!("{name:?} is already in use")));
        } else {
            new.set_at(&[key], name);
        }
    }
    let short: Vec<&Value> =
        names.list_at(&["shortNames"]).iter().filter(|name| is_taken("singular", name, &taken)).collect();
    if let Some(name) = short.first() {
        let name = name.as_str().unwrap_or_default();
        conflict.get_or_insert(("ShortNamesConflict", format!("{name:?} is already in use")));
    } else {
        meta::put(&mut new, "shortNames", names.get("shortNames").cloned());
    }
    meta::put(&mut new, "categories", names.get("categories").cloned());
    status.set_at(&["acceptedNames"], new);
    match conflict {
        Some((reason, message)) => {
            set_condition(&mut status, "NamesAccepted", false, reason, &message, now);
            if !is_true(&status, "Established") {
                let message = "not all names are accepted";
                set_condition(&mut status, "Established", false, "NotAccepted", message, now);
            }
        }
        None => {
            set_condition(&mut status, "NamesAccepted", true, "NoConflicts", "no conflicts found", now);
            if !is_true(&status, "Established") {
                let message = "the initial names have been accepted";
                set_condition(&mut status, "Established", true, "InitialNamesAccepted", message, now);
            }
        }
    }
    status
}

/// Plurals, singulars and short names share one space; kinds and list kinds another.
fn is_taken(key: &str, name: &Value, taken: &[Value]) -> bool {
    let space: &[&str] =
        if matches!(key, "kind" | "listKind") { &["kind", "listKind"] } else { &["plural", "singular"] };
    taken.iter().any(|names| {
        space.iter().any(|key| names.get(key) == Some(name))
            || (space[0] == "plural" && names.list_at(&["shortNames"]).contains(name))
    })
}

fn is_true(status: &Value, kind: &str) -> bool {
    let conditions = status.list_at(&["conditions"]);
    conditions.iter().any(|c| c.str_at(&["type"]) == Some(kind) && c.str_at(&["status"]) == Some("True"))
}

fn set_condition(status: &mut Value, kind: &str, is: bool, reason: &str, message: &str, now: Timestamp) {
    let text = if is { "True" } else { "False" };
    let mut conditions = status.list_at(&["conditions"]).to_vec();
    let old = conditions.iter().position(|condition| condition.str_at(&["type"]) == Some(kind));
    let since = old.filter(|i| conditions[*i].str_at(&["status"]) == Some(text));
    let since = since.and_then(|i| conditions[i].str_at(&["lastTransitionTime"]).map(str::to_owned));
    let new = crate::value!({
        "type": kind, "status": text, "reason": reason, "message": message,
        "lastTransitionTime": since.unwrap_or_else(|| rfc3339(now).to_string()),
    });
    match old {
        Some(i) => conditions[i] = new,
        None => conditions.push(new),
    }
    status.set_at(&["conditions"], conditions);
}

/// Whether a definition's objects may be served: its names were accepted once.
pub(super) fn is_established(definition: &Value) -> bool {
    definition.get("status").is_some_and(|status| is_true(status, "Established"))
}
