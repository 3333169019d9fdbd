//! kubectl's annotation of its client-side apply, which its server-side apply takes over from and keeps current.

use super::{
    Conflicts,
    fieldpath::{Set, write_json},
    typed,
    types::Type,
    validate::{Duplicates, validate},
};
use crate::value::{Map, Value};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The most that all annotations of an object may take.
const MOST_BYTES: usize = 256 << 10;

/// The fields the annotation sets to what they are still set to: kubectl's own, whoever is written down for them.
pub(super) fn owned(ty: Type<'_>, api_version: &str, live: &Value) -> Option<Set> {
    let text = live.str_at(&["metadata", "annotations", ANNOTATION]).filter(|text| !text.is_empty())?;
    let last = Value::from_json(text.as_bytes()).ok()?;
    if last.str_at(&["apiVersion"]) != Some(api_version)
        || validate(ty, live, None, Duplicates::Refused).is_err()
        || validate(ty, &last, None, Duplicates::Refused).is_err()
    {
        return None;
    }
    let changes = typed::compare(ty, &last, live);
    Some(typed::fields(ty, &last).difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
}

/// The conflicts over other fields than these.
pub(super) fn without(conflicts: Conflicts, owned: &Set) -> Conflicts {
    let left = conflicts.into_iter().map(|(owner, fields)| (owner, fields.difference(owned)));
    left.filter(|(_, fields)| !fields.is_empty()).collect()
}

/// Writes the applied configuration into the annotation, if the object has it.
pub(super) fn refresh(object: &mut Value, patch: &Value) {
    if object.str_at(&["metadata", "annotations", ANNOTATION]).is_none_or(str::is_empty) {
        return;
    }
    let mut applied = patch.clone();
    applied.remove_at(&["metadata", "annotations", ANNOTATION]);
    let mut text = String::new();
    if write_json(&applied, &mut text).is_err() {
        return;
    }
    text.push('\n');
    if object.str_at(&["metadata", "annotations", ANNOTATION]) == Some(&text) {
        return;
    }
    object.set_at(&["metadata", "annotations", ANNOTATION], text);
    let size = |annotations: &Map| -> usize {
        annotations.iter().map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum()
    };
    let annotations = object.at(&["metadata", "annotations"]).and_then(Value::as_map);
    if annotations.is_some_and(|annotations| size(annotations) > MOST_BYTES) {
        object.remove_at(&["metadata", "annotations", ANNOTATION]);
    }
}
