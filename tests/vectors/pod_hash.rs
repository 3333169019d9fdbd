//! The hash of a pod template, and the bytes it is made of.

use serde_json::{Value, json};
use tidegate::model::{go_json, hash};

#[test]
fn vectors_pod_hash() {
    super::check("pod-hash", |input, expect| {
        let template = input["template"].clone().into();
        let collisions = input["collisionCount"].as_i64().map(|count| count as i32);
        let mut answer = json!({"hash": hash::pod_template(&template, collisions).as_str()});
        if !expect["canonical"].is_null() {
            answer["canonical"] = go_json::pod_template().text(&template).into();
        }
        if !go_json::pod_template().decode(&template).wrong.is_empty() {
            answer["lenient"] = Value::Bool(true);
        }
        Some(answer)
    });
}
