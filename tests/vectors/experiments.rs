//! Experiments: stages of versions, what status says about the whole, and arguments of analyses.

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use tidegate::{
    analysis::Phase,
    api::{self, Experiment, ExperimentStatus},
    experiment::{
        Stage,
        state::{self, Named},
    },
    kubernetes::value::Value,
};

use super::check;

fn read<T: serde::de::DeserializeOwned + Default>(json: &Json) -> T {
    api::read(&Value::from(json.clone())).object
}

fn text<'j>(json: &'j Json, key: &str) -> &'j str {
    json[key].as_str().unwrap_or_default()
}

fn sets(input: &Json) -> Vec<Named> {
    let sets = input["replicaSets"].as_object().into_iter().flatten();
    let named = |(template, set): (&String, &Json)| Named {
        template: template.clone(),
        set: text(set, "name").to_owned(),
        hash: text(set, "hash").to_owned(),
    };
    sets.map(named).collect()
}

#[test]
fn vectors_experiments() {
    check("experiments", |input, _| {
        let experiment: Experiment = read(&input["experiment"]);
        Some(match text(input, "kind") {
            "worst" => {
                let (left, right) = (Stage::of(text(input, "left")), Stage::of(text(input, "right")));
                json!({"leftCompleted": left.is_over(), "worst": left.worse(right).as_str()})
            }
            "state" => {
                let now: Timestamp = text(input, "now").parse().unwrap();
                let next: ExperimentStatus = read(&input["newStatus"]);
                let sizes = experiment.spec.templates.iter();
                let sizes = sizes.map(|version| (version.name.clone(), state::replicas(&experiment, version)));
                json!({
                    "finished": Phase::of(&experiment.status.phase).is_over(),
                    "hasRequiredAnalysis": state::has_required(&experiment),
                    "passedDuration": state::is_past(&experiment, now),
                    "progressing": state::is_progress(&experiment.status, &next),
                    "remainingSeconds": state::end(&experiment).map_or(0, |end| end.duration_since(now).as_secs()),
                    "replicas": sizes.collect::<std::collections::BTreeMap<_, _>>(),
                    "requiredAnalysisSuccessful": state::required_have_succeeded(&experiment, &experiment.status),
                    "running": state::is_running(&experiment, now),
                    "terminating": state::is_ending(&experiment),
                })
            }
            "arg-value" => match state::argument(text(input, "text"), &experiment, &sets(input)) {
                Ok(text) => json!({"error": null, "text": text}),
                Err(error) => json!({"error": error}),
            },
            kind => panic!("{kind}"),
        })
    });
}
