//! What is wrong with the metrics of an analysis, and with an Experiment.

use serde_json::{Value, json};
use tidegate::{
    api,
    model::{parse, problem::Words},
};

use super::{check, validation::read};

#[test]
fn vectors_validation_metrics() {
    check("validation-metrics", |input, _| {
        Some(match input["kind"].as_str().unwrap() {
            "metrics" => {
                let run: api::AnalysisRun = read(&json!({"spec": {"metrics": input["metrics"]}}));
                json!({"error": parse::metrics_error(&run.spec.metrics)})
            }
            "experiment" => {
                let parsed = parse::experiment(&read(&input["experiment"]));
                let condition = |words: &Words| {
                    json!({
                        "type": "InvalidSpec",
                        "status": "True",
                        "reason": "InvalidSpec",
                        "message": words.to_string(),
                    })
                };
                json!({"condition": parsed.argo.first().map_or(Value::Null, condition)})
            }
            kind => panic!("{kind}"),
        })
    });
}
