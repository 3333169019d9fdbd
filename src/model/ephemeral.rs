//! Metadata that pods carry only while their version has a role: canary, stable, preview, active.
//!
//! It is put into the ReplicaSet's pod template and remembered in an annotation, so that later only what was put in is
//! taken out. Never removes a label or annotation that it did not put in.

use crate::{
    kubernetes::value::{Map, Text, Value, intern},
    model::go_json,
};

/// The annotation of a ReplicaSet that remembers what was put in.
const REMEMBERED: &str = "rollout.argoproj.io/ephemeral-metadata";
/// The two maps, in the order in which they are synced.
const MAPS: [&str; 2] = ["annotations", "labels"];

/// What was put into a ReplicaSet's template before; nothing if that cannot be read.
pub fn remembered(replica_set: &Value) -> Option<Value> {
    let text = replica_set.at(&["metadata", "annotations"])?.get(REMEMBERED)?.as_str()?;
    let read = Value::from_json(text.as_bytes()).ok()?;
    let decoded = go_json::named("PodTemplateMetadata")?.decode(&read);
    (decoded.wrong.is_empty() && !read.is_null()).then_some(decoded.value)
}

/// A ReplicaSet whose pods carry `wanted` (labels and annotations, or nothing) instead of what was put in before; `None`
/// if it is so already.
///
/// Nothing is rewritten, not even the annotation, unless a label or annotation of the template changes.
pub fn sync(replica_set: &Value, wanted: Option<&Value>) -> Option<Value> {
    let metadata = replica_set.at(&["spec", "template", "metadata"]).cloned().unwrap_or_else(Value::object);
    let metadata = sync_metadata(&metadata, remembered(replica_set).as_ref(), wanted)?;
    let mut changed = replica_set.clone();
    changed.set_at(&["spec", "template", "metadata"], metadata);
    match wanted {
        Some(wanted) => {
            let text = go_json::named("PodTemplateMetadata").map(|ty| ty.text(wanted)).unwrap_or_default();
            changed.set_at(&["metadata", "annotations", REMEMBERED], text);
        }
        None => drop(changed.remove_at(&["metadata", "annotations", REMEMBERED])),
    }
    Some(changed)
}

/// A pod's, or pod template's, metadata with `wanted` instead of `before`; `None` if it is so already.
pub fn sync_metadata(metadata: &Value, before: Option<&Value>, wanted: Option<&Value>) -> Option<Value> {
    let mut out = metadata.clone();
    for name in MAPS {
        let entries = |of: Option<&Value>| of.and_then(|of| of.get(name)).and_then(Value::as_map).cloned();
        let (before, wanted) = (entries(before).unwrap_or_default(), entries(wanted).unwrap_or_default());
        let old = metadata.get(name).and_then(Value::as_map).cloned().unwrap_or_default();
        let mut new = old.clone();
        for (key, value) in wanted.iter() {
            // An absent entry reads as an empty one, so an empty one is never added.
            if text(&new, key) != value.as_str().unwrap_or_default() {
                new.insert(key.clone(), value.as_text().cloned().unwrap_or_default());
            }
        }
        for key in before.keys().filter(|key| !wanted.contains_key(key)) {
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

/// A ReplicaSet's pod template as it was before anything was put in.
pub fn without(replica_set: &Value) -> Value {
    let synced = sync(replica_set, None);
    synced.as_ref().unwrap_or(replica_set).at(&["spec", "template"]).cloned().unwrap_or_default()
}

fn text<'a>(map: &'a Map, key: &Text) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn what_was_put_in_comes_out_again() {
        let plain = value!({"metadata": {"name": "rs"}, "spec": {"template": {"metadata": {"labels": {"app": "x"}}}}});
        let canary = value!({"labels": {"role": "canary"}, "annotations": {"a<b": "c"}});
        let dressed = sync(&plain, Some(&canary)).unwrap();
        assert_eq!(dressed.str_at(&["spec", "template", "metadata", "labels", "role"]), Some("canary"));
        assert_eq!(
            dressed.str_at(&["metadata", "annotations", REMEMBERED]),
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
            set.set_at(&["metadata", "annotations", REMEMBERED], text);
            assert_eq!(remembered(&set), None, "{text}");
            assert!(sync(&set, None).is_none());
        }
    }
}
