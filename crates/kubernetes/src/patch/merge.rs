//! JSON merge patch (RFC 7386), as the real server applies it.

use crate::value::{Map, Value};

/// The object after a merge patch. Fields that the patch sets to what they are stay shared.
pub fn apply(target: &Value, patch: &Value) -> Value {
    match (target, patch) {
        (Value::Map(target), Value::Map(patch)) => Value::Map(merged(target, patch)),
        (_, patch) => without_nulls(patch),
    }
}

fn merged(target: &Map, patch: &Map) -> Map {
    let mut out = target.clone();
    for (key, value) in patch.iter() {
        match (target.get(key), value) {
            (None, Value::Null) => {}
            (Some(_), Value::Null) => {
                out.remove(key);
            }
            (Some(Value::Map(old)), Value::Map(patch)) => {
                let new = merged(old, patch);
                if !new.is(old) {
                    out.insert(key.clone(), new);
                }
            }
            // Upstream prunes nulls from a value that is new or replaces a scalar, not from one that replaces an object.
            (Some(Value::Map(_)), value) => {
                out.insert(key.clone(), value);
            }
            (old, value) => {
                let new = without_nulls(value);
                if old != Some(&new) {
                    out.insert(key.clone(), new);
                }
            }
        }
    }
    out
}

/// A value without the null fields of its objects; the value itself if there are none. Null items of lists stay.
pub fn without_nulls(value: &Value) -> Value {
    pruned(value).unwrap_or_else(|| value.clone())
}

/// The value without null fields, if it has any.
fn pruned(value: &Value) -> Option<Value> {
    match value {
        Value::Map(map) => {
            let mut out = None;
            for (key, field) in map.iter() {
                if field.is_null() {
                    out.get_or_insert_with(|| map.clone()).remove(key);
                } else if let Some(new) = pruned(field) {
                    out.get_or_insert_with(|| map.clone()).insert(key.clone(), new);
                }
            }
            out.map(Value::Map)
        }
        Value::List(items) => {
            let mut out = None;
            for (at, item) in items.iter().enumerate() {
                if let Some(new) = pruned(item) {
                    out.get_or_insert_with(|| items.to_vec())[at] = new;
                }
            }
            out.map(Value::from)
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        patch::tests::{any_object, any_value},
        value,
    };

    #[track_caller]
    fn check(target: Value, patch: Value, expected: Value) {
        assert_eq!(apply(&target, &patch), expected, "{target} with {patch}");
    }

    #[test]
    fn the_examples_of_the_standard_hold() {
        check(value!({"a": "b"}), value!({"a": "c"}), value!({"a": "c"}));
        check(value!({"a": "b"}), value!({"b": "c"}), value!({"a": "b", "b": "c"}));
        check(value!({"a": "b"}), value!({"a": null}), value!({}));
        check(value!({"a": "b", "b": "c"}), value!({"a": null}), value!({"b": "c"}));
        check(value!({"a": ["b"]}), value!({"a": "c"}), value!({"a": "c"}));
        check(value!({"a": "c"}), value!({"a": ["b"]}), value!({"a": ["b"]}));
        check(value!({"a": {"b": "c"}}), value!({"a": {"b": "d", "c": null}}), value!({"a": {"b": "d"}}));
        check(value!({"a": [{"b": "c"}]}), value!({"a": [1]}), value!({"a": [1]}));
        check(value!(["a", "b"]), value!(["c", "d"]), value!(["c", "d"]));
        check(value!({"e": null}), value!({"a": 1}), value!({"e": null, "a": 1}));
        check(value!([1, 2]), value!({"a": "b", "c": null}), value!({"a": "b"}));
        check(value!({}), value!({"a": {"bb": {"ccc": null}}}), value!({"a": {"bb": {}}}));
    }

    #[test]
    fn nulls_inside_lists_stay_and_objects_in_new_lists_lose_theirs() {
        check(value!({}), value!({"a": [null, {"b": null, "c": 1}]}), value!({"a": [null, {"c": 1}]}));
        check(value!({"a": {"x": 1}}), value!({"a": [{"b": null}]}), value!({"a": [{"b": null}]}));
        check(value!({"a": [{"b": null}]}), value!({"a": [{"b": null}]}), value!({"a": [{}]}));
    }

    #[test]
    fn what_is_not_touched_stays_shared() {
        let old = value!({"spec": {"replicas": 1, "template": {"x": [1]}}, "status": {"a": {"b": 1}}});
        let same = apply(&old, &value!({"spec": {"replicas": 1, "none": null, "template": {"x": [1]}}}));
        assert!(same.is(&old), "a patch that changes nothing returns the object itself");
        let new = apply(&old, &value!({"spec": {"replicas": 2}}));
        assert!(new.get("status").unwrap().is(old.get("status").unwrap()));
        assert!(new.at(&["spec", "template"]).unwrap().is(old.at(&["spec", "template"]).unwrap()));
    }

    /// The patch that turns `old` into `new`, where `new` holds no nulls.
    fn diff(old: &Value, new: &Value) -> Value {
        let (Value::Map(old), Value::Map(new)) = (old, new) else { return new.clone() };
        let mut patch = Map::default();
        for key in old.keys().filter(|key| !new.contains_key(key)) {
            patch.insert(key.clone(), Value::Null);
        }
        for (key, value) in new.iter() {
            match old.get(key) {
                Some(old) if old == value => {}
                Some(old) if value.as_map().is_some() => {
                    patch.insert(key.clone(), diff(old, value));
                }
                _ => {
                    patch.insert(key.clone(), value);
                }
            }
        }
        patch.into()
    }

    proptest! {
        #[test]
        fn merging_a_difference_gives_the_other(old in any_object(), new in any_object()) {
            let new = without_nulls(&new);
            prop_assert_eq!(apply(&old, &diff(&old, &new)), new);
        }

        /// Not at the first: upstream keeps the nulls of a list that replaces an object, and prunes them when the same
        /// list replaces that list.
        #[test]
        fn merging_a_third_time_changes_no_more(target in any_value(), patch in any_value()) {
            let twice = apply(&apply(&target, &patch), &patch);
            prop_assert_eq!(apply(&twice, &patch), twice.clone());
        }
    }
}
