//! What the tests of all three patches share.

use proptest::prelude::*;

use crate::embedded::value::Value;

/// Any small value, with keys and texts that meet often, and those that mean something to a patch.
pub fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        Just(Value::Float(1.5)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..5).prop_map(|fields| Value::Map(fields.into_iter().collect())),
        ]
    })
}

/// Any small object.
pub fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::vec((text(), any_value()), 0..5).prop_map(|fields| Value::Map(fields.into_iter().collect()))
}

fn text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "b",
        "name",
        "args",
        "items",
        "finalizers",
        "op",
        "path",
        "from",
        "value",
        "/a",
        "/a/0",
        "delete",
        "replace",
        "$patch",
        "$retainKeys",
        "$setElementOrder/items",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
    ])
}
