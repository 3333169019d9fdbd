//! Laws that hold for any object, patch and manager.

use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;

use super::{
    Managers, NEVER_OWNED, Operation, Owner, Who, apply,
    fieldpath::{Path, Set},
    typed,
    types::Type,
    updated,
};
use crate::{
    kind::Kind,
    object::Object,
    schema::crd,
    value,
    value::{Map, Value, intern, parse},
};

/// The custom resource of the recordings, which has every type of list and map.
fn thing() -> Kind {
    let line = include_str!("testdata/recorded.jsonl").lines().next().unwrap();
    let mut definition = parse(line.as_bytes()).unwrap().value.get("crd").unwrap().clone();
    crd::default(&mut definition);
    crd::kinds(&definition).remove(0)
}

fn who(manager: &str, second: i64) -> Who {
    Who { manager: intern(manager), subresource: intern(""), now: Timestamp::from_second(second).unwrap() }
}

fn stored((value, managers): (Value, Managers)) -> Object {
    Object { value, managers: Arc::new(managers) }
}

fn text() -> impl Strategy<Value = Value> {
    "[ab]{0,2}".prop_map(Value::from)
}

fn texts() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[abc]", text(), 0..3).prop_map(|map| Value::Map(map.into_iter().collect()))
}

/// Items of the list with the key `name`, each name once. At least one: nobody owns an empty list.
fn items() -> impl Strategy<Value = Value> {
    let set =
        proptest::collection::btree_set("[xyz]", 1..3).prop_map(|set| Value::list(set.into_iter().map(Value::from)));
    let item = (proptest::option::of(text()), proptest::option::of(set));
    proptest::collection::btree_map("[abcd]", item, 1..4).prop_map(|map| {
        Value::list(map.into_iter().map(|(name, (value, tags))| {
            let fields = [("name", Some(name.into())), ("value", value), ("tags", tags)];
            Value::Map(fields.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
        }))
    })
}

/// Any JSON.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3i64..3).prop_map(Value::Int),
        Just(Value::Float(0.5)),
        text()
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[abc]|name|tags|f:a|map|set", inner, 0..4)
                .prop_map(|map| Value::Map(map.into_iter().collect())),
        ]
    })
}

fn spec() -> impl Strategy<Value = Map> {
    let field = prop_oneof![
        text().prop_map(|v| ("text", v)),
        items().prop_map(|v| ("map", v)),
        items().prop_map(|v| ("atomic", v)),
        texts().prop_map(|v| ("labels", v)),
        texts().prop_map(|v| ("whole", v)),
        (text(), text()).prop_map(|(a, c)| ("struct", value!({"a": (a.to_string()), "inner": {"c": (c.to_string())}}))),
        proptest::collection::btree_set("[abcd]", 1..4)
            .prop_map(|set| ("set", Value::list(set.into_iter().rev().map(Value::from)))),
        json().prop_map(|v| ("free", value!({"k": (serde_json::Value::from(&v))}))),
    ];
    proptest::collection::vec(field, 0..5).prop_map(|fields| fields.into_iter().collect())
}

fn object() -> impl Strategy<Value = Value> {
    (spec(), proptest::option::of(texts())).prop_map(|(spec, labels)| {
        let mut object = value!({"apiVersion": "record.apply.test/v1", "kind": "Thing", "metadata": {"name": "a"}});
        object.set_at(&["spec"], spec);
        labels.into_iter().for_each(|labels| object.set_at(&["metadata", "labels"], labels));
        object
    })
}

proptest! {
    #[test]
    fn applying_again_changes_nothing(kind in Just(thing()), live in object(), patch in object()) {
        let live = Object { managers: Arc::new(updated(&kind, None, &live, &who("m", 1))), value: live };
        let once = stored(apply(&kind, Some(&live), &patch, &who("a", 2), true).unwrap());
        let twice = apply(&kind, Some(&once), &patch, &who("a", 3), false).unwrap();
        prop_assert!(twice.0.is(&once.value), "{} then {}", once.value, twice.0);
        prop_assert_eq!(&twice.1, &*once.managers);
    }

    #[test]
    fn applying_what_is_there_needs_no_force(kind in Just(thing()), live in object()) {
        let live = Object { managers: Arc::new(updated(&kind, None, &live, &who("m", 1))), value: live };
        let (value, managers) = apply(&kind, Some(&live), &live.value, &who("a", 2), false).unwrap();
        prop_assert!(value.is(&live.value));
        let others: Vec<Owner> = managers.owners().iter().filter(|o| o.manager == "m").cloned().collect();
        prop_assert_eq!(&others, live.managers.owners());
    }

    #[test]
    fn who_forces_owns_just_what_it_applied(kind in Just(thing()), live in object(), patch in object()) {
        let live = Object { managers: Arc::new(updated(&kind, None, &live, &who("m", 1))), value: live };
        let (value, managers) = apply(&kind, Some(&live), &patch, &who("a", 2), true).unwrap();
        let wanted = typed::fields(Type::custom(&kind.schema), &patch).difference(&NEVER_OWNED);
        let mine = managers.owners().iter().find(|owner| owner.operation == Operation::Apply);
        prop_assert_eq!(mine.map_or(Set::default(), |owner| owner.fields.clone()), wanted.clone());
        let there = typed::with_named_fields(Some(Type::custom(&kind.schema)), &typed::fields(Type::custom(&kind.schema), &value));
        let mut lost = Vec::new();
        wanted.each(&mut |path| if !there.has(path) { lost.push(path.to_vec()) });
        prop_assert_eq!(lost, Vec::<Path>::new());
    }

    #[test]
    fn giving_everything_up_leaves_what_others_own(kind in Just(thing()), mine in object(), theirs in object()) {
        let nothing = value!({"apiVersion": "record.apply.test/v1", "kind": "Thing", "metadata": {"name": "a"}});
        let first = stored(apply(&kind, None, &mine, &who("a", 1), false).unwrap());
        let alone = apply(&kind, Some(&first), &nothing, &who("a", 2), false).unwrap();
        prop_assert_eq!(alone.0.get("spec").unwrap_or(&Value::Null), &Value::Null);
        prop_assert!(alone.1.is_empty());
        // What a second applier took over by force stays when the first goes.
        let second = stored(apply(&kind, Some(&first), &theirs, &who("b", 2), true).unwrap());
        let left = apply(&kind, Some(&second), &nothing, &who("a", 3), false).unwrap();
        let (ty, mut lost) = (Type::custom(&kind.schema), Vec::new());
        let there = typed::with_named_fields(Some(ty), &typed::fields(ty, &left.0));
        typed::fields(ty, &theirs).each(&mut |path| if !there.has(path) { lost.push(path.to_vec()) });
        prop_assert_eq!(lost, Vec::<Path>::new());
        prop_assert!(left.1.owners().iter().all(|owner| owner.manager == "b"));
    }

    #[test]
    fn writing_the_same_object_changes_no_owner(kind in Just(thing()), live in object(), patch in object()) {
        let live = Object { managers: Arc::new(updated(&kind, None, &live, &who("m", 1))), value: live };
        let live = stored(apply(&kind, Some(&live), &patch, &who("a", 2), true).unwrap());
        let copy = Value::from_json(live.value.to_json().as_bytes()).unwrap();
        prop_assert_eq!(updated(&kind, Some(&live), &copy, &who("n", 3)), (*live.managers).clone());
    }

    #[test]
    fn an_update_takes_just_what_it_changes(kind in Just(thing()), old in object(), new in object()) {
        let old = Object { managers: Arc::new(updated(&kind, None, &old, &who("m", 1))), value: old };
        let ty = Type::custom(&kind.schema);
        let changes = typed::compare(ty, &old.value, &new);
        let touched = changes.modified.union(&changes.added).difference(&NEVER_OWNED);
        let after = updated(&kind, Some(&old), &new, &who("n", 2));
        let of = |name: &str| after.owners().iter().find(|o| o.manager == name).map(|o| o.fields.clone()).unwrap_or_default();
        if old.managers.is_empty() {
            prop_assert!(after.is_empty(), "untracked objects stay so");
        } else {
            prop_assert_eq!(of("n"), touched.clone());
            prop_assert_eq!(of("m"), old.managers.owners()[0].fields.difference(&touched).difference(&changes.removed));
        }
    }

    #[test]
    fn nothing_makes_it_panic(kind in Just(thing()), live in json(), patch in json(), wire in json(), force in any::<bool>()) {
        let head = |value: &Value| {
            let mut object = value!({"apiVersion": "record.apply.test/v1", "kind": "Thing", "metadata": {"name": "a"}});
            object.set_at(&["spec"], value);
            object
        };
        let entry = value!([{"manager": "m", "operation": "Apply", "apiVersion": "record.apply.test/v1",
            "fieldsType": "FieldsV1", "fieldsV1": (serde_json::Value::from(&wire))}]);
        let managers = Arc::new(Managers::parse(&entry).unwrap_or_default());
        let live = Object { value: head(&live), managers };
        let mut sent = head(&patch);
        let _ = apply(&kind, Some(&live), &sent, &who("m", 1), force);
        let _ = apply(&kind, Some(&live), &patch, &who("kubectl", 1), force);
        sent.set_at(&["metadata", "managedFields"], entry);
        let _ = updated(&kind, Some(&live), &sent, &who("m", 1));
    }
}
