//! Metadata that pods carry only while their version has a role: canary, stable, preview, active.
//!
//! It is put into the ReplicaSet's pod template and remembered in an annotation, so that later only what was put in is
//! taken out. Never removes a label or annotation that it did not put in.

use std::collections::BTreeMap;

use crate::{
    api::{PodTemplateMetadata, constants::annotation},
    kubernetes::value::{Map, Value, intern},
    model::go_json,
};

/// What was put into a ReplicaSet's template before; nothing if that cannot be read.
pub fn remembered(replica_set: &Value) -> Option<PodTemplateMetadata> {
    let text = replica_set.at(&["metadata", "annotations"])?.get(annotation::EPHEMERAL_METADATA)?.as_str()?;
    let read = Value::from_json(text.as_bytes()).ok()?;
    let decoded = go_json::named("PodTemplateMetadata")?.decode(&read);
    let entries = |name: &str| decoded.value.get(name).and_then(Value::as_map).map(strings).unwrap_or_default();
    let metadata = || PodTemplateMetadata { labels: entries("labels"), annotations: entries("annotations") };
    (decoded.wrong.is_empty() && !read.is_null()).then(metadata)
}

/// A ReplicaSet whose pods carry `wanted`, or nothing of the kind, instead of what was put in before; `None`
/// if it is so already.
///
/// Nothing is rewritten, not even the annotation, unless a label or annotation of the template changes.
pub fn sync(replica_set: &Value, wanted: Option<&PodTemplateMetadata>) -> Option<Value> {
    let metadata = replica_set.at(&["spec", "template", "metadata"]).cloned().unwrap_or_else(Value::object);
    let metadata = sync_metadata(&metadata, remembered(replica_set).as_ref(), wanted)?;
    let mut changed = replica_set.clone();
    changed.set_at(&["spec", "template", "metadata"], metadata);
    match wanted {
        Some(wanted) => {
            changed.set_at(&["metadata", "annotations", annotation::EPHEMERAL_METADATA], text_of(wanted));
        }
        None => drop(changed.remove_at(&["metadata", "annotations", annotation::EPHEMERAL_METADATA])),
    }
    Some(changed)
}

/// A pod's, or pod template's, metadata with `wanted` instead of `before`; `None` if it is so already.
pub fn sync_metadata(
    metadata: &Value,
    before: Option<&PodTemplateMetadata>,
    wanted: Option<&PodTemplateMetadata>,
) -> Option<Value> {
    let mut out = metadata.clone();
    let annotations = (before.map(|before| &before.annotations), wanted.map(|wanted| &wanted.annotations));
    let labels = (before.map(|before| &before.labels), wanted.map(|wanted| &wanted.labels));
    for (name, (before, wanted)) in [("annotations", annotations), ("labels", labels)] {
        let old = metadata.get(name).and_then(Value::as_map).cloned().unwrap_or_default();
        let mut new = old.clone();
        for (key, value) in wanted.into_iter().flatten() {
            // An absent entry reads as an empty one, so an empty one is never added.
            if new.get(key).and_then(Value::as_str).unwrap_or_default() != value {
                new.insert(intern(key), value.as_str());
            }
        }
        let is_wanted = |key: &String| wanted.is_some_and(|wanted| wanted.contains_key(key));
        for key in before.into_iter().flat_map(|before| before.keys()).filter(|key| !is_wanted(key)) {
            if new.contains_key(key) {
                new.remove(key);
            }
        }
        if !new.is(&old) {
            out.as_map_mut()?.insert(intern(name), new);
        }
    }
    (!out.is(metadata)).then_some(out)
}

/// What is remembered, as Go writes it.
fn text_of(metadata: &PodTemplateMetadata) -> String {
    let mut value = Value::object();
    for (name, entries) in [("labels", &metadata.labels), ("annotations", &metadata.annotations)] {
        let entries: Map = entries.iter().map(|(key, value)| (intern(key), value.as_str())).collect();
        value.set_at(&[name], entries);
    }
    go_json::named("PodTemplateMetadata").map(|ty| ty.text(&value)).unwrap_or_default()
}

fn strings(map: &Map) -> BTreeMap<String, String> {
    map.iter().map(|(key, value)| (key.to_string(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// A ReplicaSet's pod template as it was before anything was put in.
pub fn without(replica_set: &Value) -> Value {
    let synced = sync(replica_set, None);
    synced.as_ref().unwrap_or(replica_set).at(&["spec", "template"]).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn what_was_put_in_comes_out_again() {
        let plain = value!({"metadata": {"name": "rs"}, "spec": {"template": {"metadata": {"labels": {"app": "x"}}}}});
        let entry = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let canary = PodTemplateMetadata { labels: entry("role", "canary"), annotations: entry("a<b", "c") };
        let dressed = sync(&plain, Some(&canary)).unwrap();
        assert_eq!(dressed.str_at(&["spec", "template", "metadata", "labels", "role"]), Some("canary"));
        assert_eq!(
            dressed.str_at(&["metadata", "annotations", annotation::EPHEMERAL_METADATA]),
            Some(r#"{"labels":{"role":"canary"},"annotations":{"a\u003cb":"c"}}"#)
        );
        assert!(sync(&dressed, Some(&canary)).is_none());
        let bare = without(&dressed);
        assert_eq!(bare, value!({"metadata": {"annotations": {}, "labels": {"app": "x"}}}));
    }

    #[test]
    fn what_cannot_be_read_was_never_put_in() {
        for text in ["{", "5", "null", r#"{"labels":5}"#, r#"{"labels":{"a":5}}"#, ""] {
            let mut set = value!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}});
            set.set_at(&["metadata", "annotations", annotation::EPHEMERAL_METADATA], text);
            assert_eq!(remembered(&set), None, "{text}");
            assert!(sync(&set, None).is_none());
        }
    }
}
