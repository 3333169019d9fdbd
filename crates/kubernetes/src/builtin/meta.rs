//! Rules for labels, annotations and label selectors wherever they stand.

use super::field::Field;
use crate::{
    names,
    value::{Map, Value},
};

/// `map[string]string` of labels: keys and values are both blamed on the map itself.
pub(super) fn labels(at: &Field) {
    for (key, value) in at.entries() {
        names::label_key(key).into_iter().for_each(|message| at.refuse(key, message));
        names::label_value(value.text()).into_iter().for_each(|message| at.refuse(value.text(), message));
    }
}

/// All annotations of an object together may not be larger than this.
const ANNOTATIONS_LIMIT: usize = 256 << 10;

/// Keys and total size of annotations.
pub(super) fn annotations(at: &Field) {
    let mut size = 0;
    for (key, value) in at.entries() {
        let lower = key.to_lowercase();
        names::label_key(&lower).into_iter().for_each(|message| at.refuse(key, message));
        size += key.len() + value.text().len();
    }
    if size > ANNOTATIONS_LIMIT {
        at.too_long(ANNOTATIONS_LIMIT);
    }
}

/// `metav1.LabelSelector`; an absent one is fine.
pub(super) fn selector(at: &Field) {
    labels(&at.child("matchLabels"));
    for requirement in at.child("matchExpressions").items() {
        let (operator, values) = (requirement.child("operator"), requirement.child("values"));
        match operator.text() {
            "In" | "NotIn" if values.len() == 0 => {
                values.required("must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if values.len() > 0 => {
                values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => operator.refuse(other, "not a valid selector operator"),
        }
        requirement.child("key").check(names::label_key);
        values.items().for_each(|value| value.check(names::label_value));
    }
}

/// Whether a selector says nothing at all.
pub(super) fn is_empty_selector(selector: &Value) -> bool {
    selector.get("matchLabels").and_then(Value::as_map).is_none_or(Map::is_empty)
        && selector.list_at(&["matchExpressions"]).is_empty()
}

/// Whether a selector chooses these labels; `None` if it is no valid selector. An absent selector chooses nothing.
pub(super) fn selects(selector: &Value, labels: &Value) -> Option<bool> {
    if selector.is_null() {
        return Some(false);
    }
    let mut all = true;
    for (key, wanted) in selector.get("matchLabels").and_then(Value::as_map).map(Map::iter).into_iter().flatten() {
        let wanted = wanted.as_str().unwrap_or_default();
        if !names::label_key(key).is_empty() || !names::label_value(wanted).is_empty() {
            return None;
        }
        all &= labels.get(key).and_then(Value::as_str) == Some(wanted);
    }
    for requirement in selector.list_at(&["matchExpressions"]) {
        let key = requirement.str_at(&["key"]).unwrap_or_default();
        let values = requirement.list_at(&["values"]);
        let valid = |value: &Value| names::label_value(value.as_str().unwrap_or_default()).is_empty();
        if !names::label_key(key).is_empty() || !values.iter().all(valid) {
            return None;
        }
        let held = labels.get(key);
        let listed = held.is_some_and(|held| values.contains(held));
        all &= match (requirement.str_at(&["operator"]), values.is_empty()) {
            (Some("In"), false) => listed,
            (Some("NotIn"), false) => !listed,
            (Some("Exists"), true) => held.is_some(),
            (Some("DoesNotExist"), true) => held.is_none(),
            _ => return None,
        };
    }
    Some(all)
}
