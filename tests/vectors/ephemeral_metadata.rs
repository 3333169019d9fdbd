//! Metadata that pods carry only for a while.

use serde_json::{Value as Json, json};
use tidegate::{api::PodTemplateMetadata, kubernetes::value::Value, model::ephemeral};

fn map(value: &Value, path: &[&str]) -> Json {
    value.at(path).map_or(json!({}), Json::from)
}

#[test]
fn vectors_ephemeral_metadata() {
    super::check("ephemeral-metadata", |input, expect| {
        let set = Value::from(input["replicaSet"].clone());
        let wanted: Option<PodTemplateMetadata> = serde_json::from_value(input["podMetadata"].clone()).unwrap();
        let synced = ephemeral::sync(&set, wanted.as_ref());
        let after = synced.as_ref().unwrap_or(&set);
        let mut answer = json!({
            "modified": synced.is_some(),
            "annotations": map(after, &["metadata", "annotations"]),
            "templateAnnotations": map(after, &["spec", "template", "metadata", "annotations"]),
            "templateLabels": map(after, &["spec", "template", "metadata", "labels"]),
            "existing": ephemeral::remembered(&set),
        });
        // Absent and empty are the same here.
        for key in ["annotations", "templateAnnotations", "templateLabels"] {
            if expect[key].is_null() && answer[key] == json!({}) {
                answer[key] = Json::Null;
            }
        }
        Some(answer)
    });
}
