//! The hash of a canary's steps, and the bytes it is made of.

use serde_json::json;
use tidegate::{
    kubernetes::value::Value,
    model::{go_json, hash},
};

#[test]
fn vectors_step_hash() {
    crate::check("step-hash", |input, expect| {
        let strategy = Value::from(input["strategy"].clone());
        let mut answer = json!({"hash": hash::steps(&strategy).as_str()});
        if !expect["canonical"].is_null() {
            let steps = strategy.at(&["canary", "steps"]).filter(|steps| **steps != Value::from(Vec::new()));
            answer["canonical"] = go_json::steps().text(steps.unwrap_or(&Value::Null)).into();
        }
        Some(answer)
    });
}
