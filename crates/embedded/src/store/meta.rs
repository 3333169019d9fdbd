//! Metadata: what the server sets, what it keeps, what it refuses.

use crate::kubernetes::{
    kind::Kind,
    names,
    status::FieldError,
    value::{Map, Text, Value},
};

/// The metadata of a value, as an object.
pub(super) fn of(value: &Value) -> Option<&Map> {
    value.get("metadata")?.as_map()
}

/// A non-empty string of the metadata.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a Text> {
    of(value)?.get(key)?.as_text().filter(|text| !text.is_empty())
}

/// Sets a field, or removes it; touches nothing if it is so already.
pub(super) fn put(value: &mut Value, key: &str, to: Option<Value>) {
    match (value.get(key), to) {
        (None, None) => {}
        (Some(old), Some(new)) if old.is(&new) => {}
        (_, Some(new)) => value.set_at(&[key], new),
        (Some(_), None) => _ = value.remove_at(&[key]),
    }
}

/// Sets a field of the metadata, or removes it; touches nothing if it is so already.
pub(super) fn put_meta(value: &mut Value, key: &str, to: Option<Value>) {
    let old = of(value).and_then(|metadata| metadata.get(key));
    match (old, to) {
        (None, None) => {}
        (Some(old), Some(new)) if *old == new => {}
        (_, Some(new)) => value.set_at(&["metadata", key], new),
        (Some(_), None) => _ = value.remove_at(&["metadata", key]),
    }
}

/// Takes over from the old object what an update can never change.
pub(super) fn keep(value: &mut Value, old: &Value) {
    for key in ["creationTimestamp", "generation"] {
        put_meta(value, key, of(old).and_then(|metadata| metadata.get(key)).cloned());
    }
    if text(value, "uid").is_none() {
        put_meta(value, "uid", of(old).and_then(|metadata| metadata.get("uid")).cloned());
    }
    if let Some(time) = of(old).and_then(|metadata| metadata.get("deletionTimestamp")) {
        put_meta(value, "deletionTimestamp", Some(time.clone()));
        if of(value).is_none_or(|metadata| !metadata.contains_key("deletionGracePeriodSeconds")) {
            put_meta(
                value,
                "deletionGracePeriodSeconds",
                of(old).and_then(|metadata| metadata.get("deletionGracePeriodSeconds")).cloned(),
            );
        }
    }
}

/// Takes away what a client cannot give a new object.
pub(super) fn wipe(value: &mut Value) {
    for key in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        put_meta(value, key, None);
    }
}

/// Whether objects of this kind count their generations.
pub(super) fn has_generation(kind: &Kind) -> bool {
    kind.custom().is_some()
        || matches!(
            (kind.group.as_str(), kind.kind.as_str()),
            ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
                | ("", "Pod" | "PodTemplate" | "ReplicationController")
                | ("batch", "Job" | "CronJob")
                | ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy")
                | ("policy", "PodDisruptionBudget")
                | ("discovery.k8s.io", "EndpointSlice")
                | ("scheduling.k8s.io", "PriorityClass")
                | ("apiextensions.k8s.io", "CustomResourceDefinition")
                | ("flowcontrol.apiserver.k8s.io" | "admissionregistration.k8s.io" | "resource.k8s.io", _)
        )
}

/// Whether what a generation counts differs.
pub(super) fn is_new_generation(kind: &Kind, value: &Value, old: &Value) -> bool {
    let differs = |key: &str| value.get(key) != old.get(key);
    let differs_in_meta = |key: &str| value.at(&["metadata", key]) != old.at(&["metadata", key]);
    if let Some(custom) = kind.custom() {
        return fields_but(value, old, custom.status).any(differs);
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => differs("spec") || differs_in_meta("annotations"),
        ("", "PodTemplate") => differs("template"),
        ("discovery.k8s.io", "EndpointSlice") => {
            fields_but(value, old, false).any(differs) || differs_in_meta("labels")
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            differs("webhooks")
        }
        ("scheduling.k8s.io", _) => false,
        _ => differs("spec"),
    }
}

/// The fields of either object that are no metadata, and no status if that is apart.
fn fields_but<'a>(value: &'a Value, old: &'a Value, status_apart: bool) -> impl Iterator<Item = &'a str> {
    let keys = [value, old].into_iter().filter_map(Value::as_map).flat_map(Map::keys);
    keys.map(Text::as_str)
        .filter(move |key| !(matches!(*key, "apiVersion" | "kind" | "metadata") || status_apart && *key == "status"))
}

/// Raises the generation by one, where there is one.
pub(super) fn raise_generation(value: &mut Value) {
    if let Some(generation) = value.int_at(&["metadata", "generation"]).filter(|n| *n > 0) {
        value.set_at(&["metadata", "generation"], generation + 1);
    }
}

/// What is wrong with the metadata of a new object.
pub(super) fn validate_create(kind: &Kind, value: &Value, name_rule: &dyn Fn(&str) -> Vec<String>) -> Vec<FieldError> {
    let mut problems = Vec::new();
    if let Some(base) = text(value, "generateName") {
        for message in name_rule(&names::mask_trailing_dash(base)) {
            problems.push(FieldError::invalid("metadata.generateName", base, message));
        }
    }
    match text(value, "name") {
        None => problems.push(FieldError::required("metadata.name", "name or generateName is required")),
        Some(name) => {
            for message in name_rule(name) {
                problems.push(FieldError::invalid("metadata.name", name, message));
            }
        }
    }
    match (kind.namespaced, text(value, "namespace")) {
        (true, None) => problems.push(FieldError::required("metadata.namespace", "")),
        (true, Some(namespace)) => {
            for message in names::dns_label(namespace) {
                problems.push(FieldError::invalid("metadata.namespace", namespace, message));
            }
        }
        (false, Some(_)) => problems.push(FieldError::forbidden("metadata.namespace", "not allowed on this type")),
        (false, None) => {}
    }
    problems.extend(common(value, None));
    finalizers(value, &mut problems);
    known_finalizers(kind, value, &mut problems);
    problems
}

/// What is wrong with the change of an object's metadata: what may not change, which upstream finds twice for built-in
/// kinds, and what is malformed, which it finds in so many `rounds`.
pub(super) fn validate_update(value: &Value, old: &Value, rounds: usize) -> Vec<FieldError> {
    let (new_meta, old_meta) = (value.get("metadata"), old.get("metadata"));
    if let (Some(new), Some(old)) = (new_meta, old_meta)
        && new.is(old)
    {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if of(old).is_some_and(|metadata| metadata.contains_key("deletionTimestamp")) {
        no_new_finalizers(value, old, &mut problems);
    }
    let immutable =
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for key in immutable {
        let (new, old) = (value.at(&["metadata", key]), old.at(&["metadata", key]));
        if new != old {
            let shown = new.cloned().unwrap_or(match old {
                Some(Value::Str(_)) => "".into(),
                _ => Value::Null,
            });
            problems.push(FieldError::invalid(format!("metadata.{key}"), shown, "field is immutable"));
        }
    }
    let repeat = |problems: Vec<FieldError>, rounds: usize| std::iter::repeat_n(problems, rounds).flatten();
    let malformed = common(value, Some(old));
    repeat(problems, rounds.min(2)).chain(repeat(malformed, rounds)).collect()
}

/// What every write checks; of a change only the parts that changed.
fn common(value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let changed = |key: &str| {
        let new = value.at(&["metadata", key])?;
        let same = old.and_then(|old| old.at(&["metadata", key])).is_some_and(|old| old.is(new));
        (!same).then_some(new)
    };
    if let Some(labels) = changed("labels").and_then(Value::as_map) {
        for (key, label) in labels.iter() {
            for message in names::label_key(key) {
                problems.push(FieldError::invalid("metadata.labels", key, message));
            }
            for message in names::label_value(label.as_str().unwrap_or_default()) {
                problems.push(FieldError::invalid("metadata.labels", label, message));
            }
        }
    }
    if let Some(annotations) = changed("annotations").and_then(Value::as_map) {
        validate_annotations(annotations, &mut problems);
    }
    if let Some(owners) = changed("ownerReferences") {
        owner_references(owners, &mut problems);
    }
    problems
}

/// All annotations of an object together may not be larger.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

fn validate_annotations(annotations: &Map, problems: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in annotations.iter() {
        for message in names::label_key(&key.to_lowercase()) {
            problems.push(FieldError::invalid("metadata.annotations", key, message));
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > ANNOTATIONS_LIMIT {
        problems.push(FieldError::too_long("metadata.annotations", ANNOTATIONS_LIMIT));
    }
}

/// The fields of an owner reference in the order of Go's struct.
const OWNER_FIELDS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

/// An object with its fields in this order.
fn in_order(value: &Value, fields: &[&str]) -> String {
    let shown = fields.iter().filter_map(|field| Some(format!("{field:?}:{}", value.get(field)?.to_json())));
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

fn owner_references(owners: &Value, problems: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    for owner in owners.as_list().unwrap_or_default() {
        let get = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
        // More than one slash is no group and version at all.
        let version = get("apiVersion").split_once('/').map_or(get("apiVersion"), |(_, version)| version);
        if version.is_empty() || version.contains('/') {
            problems.push(FieldError::invalid(
                format!("{FIELD}.apiVersion"),
                get("apiVersion"),
                "version must not be empty",
            ));
        }
        for key in ["kind", "name", "uid"] {
            if get(key).is_empty() {
                problems.push(FieldError::invalid(format!("{FIELD}.{key}"), "", "must not be empty"));
            }
        }
        if get("apiVersion") == "v1" && get("kind") == "Event" {
            problems.push(FieldError::invalid(FIELD, owner, "/v1, Kind=Event is disallowed from being an owner"));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = format!("{}/{}", get("kind"), get("name"));
            if let Some(first) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                let printed: Vec<String> =
                    owners.as_list().unwrap_or_default().iter().map(|owner| in_order(owner, &OWNER_FIELDS)).collect();
                let printed = format!("[{}]", printed.join(","));
                problems.push(FieldError::invalid(FIELD, owners, detail).printed(printed));
            } else {
                controller = Some(this);
            }
        }
    }
}

/// The finalizers of an object.
pub(super) fn finalizers_of(value: &Value) -> Vec<&str> {
    value.list_at(&["metadata", "finalizers"]).iter().filter_map(Value::as_str).collect()
}

/// Finalizers of built-in kinds are fully qualified, or one of three that everybody knows.
fn known_finalizers(kind: &Kind, value: &Value, problems: &mut Vec<FieldError>) {
    if kind.custom().is_some() {
        return;
    }
    for (i, finalizer) in finalizers_of(value).into_iter().enumerate() {
        let standard = ["kubernetes", "orphan", "foregroundDeletion"].contains(&finalizer);
        if !standard && !finalizer.contains('/') && names::label_key(finalizer).is_empty() {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            problems.push(FieldError::invalid(format!("metadata.finalizers[{i}]"), finalizer, detail));
        }
    }
}

fn finalizers(value: &Value, problems: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.finalizers";
    let all = finalizers_of(value);
    for finalizer in &all {
        for message in names::label_key(finalizer) {
            problems.push(FieldError::invalid(FIELD, *finalizer, message));
        }
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let list = value.at(&["metadata", "finalizers"]).cloned().unwrap_or_default();
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        problems.push(FieldError::invalid(FIELD, list, detail));
    }
}

fn no_new_finalizers(value: &Value, old: &Value, problems: &mut Vec<FieldError>) {
    let before = finalizers_of(old);
    let mut extra: Vec<&str> = finalizers_of(value).into_iter().filter(|f| !before.contains(f)).collect();
    if extra.is_empty() {
        return;
    }
    extra.sort_unstable();
    extra.dedup();
    let quoted: Vec<String> = extra.iter().map(|finalizer| format!("{finalizer:?}")).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        quoted.join(", ")
    );
    problems.push(FieldError::forbidden("metadata.finalizers", detail));
}
