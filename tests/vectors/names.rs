//! Durations, names, labels, and steps as text.

use serde_json::{Map, Value as Json, json};
use tidegate::{
    api::{CanaryStep, IntOrString},
    kubernetes::duration,
    model::{
        hash,
        names::{self, Purpose, StepText},
        parse::pause_seconds,
    },
};

#[test]
fn vectors_names() {
    super::check("names", |input, _| {
        Some(match input["kind"].as_str().unwrap() {
            "parse-duration" => parse(input["text"].as_str().unwrap()),
            "print-duration" => {
                let nanos = input["nanoseconds"].as_i64().unwrap();
                json!({"printed": duration::print(jiff::SignedDuration::from_nanos(nanos))})
            }
            "pause-seconds" => {
                let duration: Option<IntOrString> = serde_json::from_value(input["duration"].clone()).unwrap();
                json!({"seconds": duration.as_ref().map_or(0, pause_seconds)})
            }
            "step-string" => {
                let step: CanaryStep = serde_json::from_value(input["step"].clone()).unwrap();
                json!({"text": StepText(&step).to_string()})
            }
            "analysis-labels" => labels(input),
            _ => experiment_set(input),
        })
    });
}

fn parse(text: &str) -> Json {
    match duration::parse(text) {
        Ok(read) => {
            let nanos = read.as_nanos() as i64;
            let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
            let seconds = if seconds.fract() == 0.0 { json!(seconds as i64) } else { json!(seconds) };
            json!({"error": null, "nanoseconds": nanos, "printed": duration::print(read), "seconds": seconds})
        }
        Err(error) => json!({"error": error.to_string()}),
    }
}

fn labels(input: &Json) -> Json {
    let (hash, instance) = (input["podHash"].as_str().unwrap(), input["instanceID"].as_str().unwrap());
    let index = input["stepIndex"].as_i64().unwrap() as i32;
    let of = |purpose: Purpose| {
        let labels = purpose.labels(hash, instance).into_iter();
        labels.map(|(key, value)| (key.to_owned(), value.into())).collect::<Map<String, Json>>()
    };
    json!({
        "background": of(Purpose::Background),
        "step": of(Purpose::Step { index }),
        "prePromotion": of(Purpose::PrePromotion),
        "postPromotion": of(Purpose::PostPromotion),
    })
}

/// A name that the controller itself never uses: it leaves the hash out.
fn experiment_set(input: &Json) -> Json {
    let (experiment, template) = (&input["experiment"], &input["template"]);
    let name = template["name"].as_str().unwrap();
    let statuses = experiment["status"]["templateStatuses"].as_array().into_iter().flatten();
    let collisions =
        statuses.filter(|status| status["name"] == name).find_map(|status| status["collisionCount"].as_i64());
    let hash = hash::pod_template(&template["template"].clone().into(), collisions.map(|count| count as i32));
    let set = names::experiment_replica_set(experiment["metadata"]["name"].as_str().unwrap(), name);
    json!({"name": format!("{set}-{hash}")})
}
