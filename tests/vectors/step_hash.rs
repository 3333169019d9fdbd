//! The hash of a canary's steps, and the bytes it is made of.

use serde_json::json;
use tidegate::{
    api::{self, RolloutStrategy},
    kubernetes::value::Value,
    model::{go_json, hash},
};

#[test]
fn vectors_step_hash() {
    super::check("step-hash", |input, expect| {
        let strategy = Value::from(input["strategy"].clone());
        let mut answer = json!({"hash": hash::steps(&strategy).as_str()});
        let read = api::read::<RolloutStrategy>(&strategy).object;
        assert_eq!(hash::steps_of(&read), hash::steps(&strategy), "the wire types hold all that counts: {strategy}");
        if !expect["canonical"].is_null() {
            let steps = strategy.at(&["canary", "steps"]).filter(|steps| **steps != Value::from(Vec::new()));
            answer["canonical"] = go_json::steps().text(steps.unwrap_or(&Value::Null)).into();
        }
        Some(answer)
    });
}
