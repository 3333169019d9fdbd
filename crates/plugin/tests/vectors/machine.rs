//! The layer of step plugins in Argo's controller: an entry before, the plugin's answer, the entry after.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value as Json, json};
use tidegate_plugin::{
    call::step::{Operation, StepResult},
    machine::{Availability, Entry, Move, Step, answered, due},
};

use super::{lines, text};

/// What the sample plugin answers: the n-th of its results, and a count as its status.
fn answer(config: &Json, operation: Operation, status: Option<&Json>) -> Result<StepResult, String> {
    let count = status.map_or(0, |status| status["count"].as_u64().unwrap_or_default());
    let key = operation.name().to_lowercase();
    let results = match &config[&key] {
        Json::Array(results) => results.clone(),
        Json::Null => vec![json!({"phase": "Successful"})],
        result => vec![result.clone()],
    };
    let place = if operation == Operation::Run { usize::try_from(count).unwrap_or_default() } else { usize::MAX };
    let result = results.get(place).or(results.last()).expect("a result");
    if let Some(error) = result["error"].as_str() {
        return Err(error.to_owned());
    }
    let count = if operation == Operation::Run { count + 1 } else { count };
    Ok(StepResult {
        phase: text(result, "phase").to_owned(),
        message: text(result, "message").to_owned(),
        requeue_after: nanos(text(result, "requeueAfter")),
        status: match result.get("status") {
            None => Some(json!({ "count": count })),
            Some(Json::Null) => None,
            Some(status) => Some(status.clone()),
        },
    })
}

fn nanos(text: &str) -> i64 {
    let duration = if text.is_empty() { SignedDuration::ZERO } else { text.parse().expect("a duration") };
    i64::try_from(duration.as_nanos()).expect("a duration of Go")
}

#[test]
fn entries_are_those_of_argo_rollouts() {
    let mut seen = 0;
    for line in lines("step-engine.jsonl") {
        if line.get("resolve_error").is_some() {
            continue;
        }
        seen += 1;
        let operation = match text(&line, "operation") {
            "Run" => Operation::Run,
            "Terminate" => Operation::Terminate,
            "Abort" => Operation::Abort,
            other => panic!("{other}"),
        };
        let plugin = text(&line, "plugin");
        let availability = if plugin == "tidegate/off" { Availability::Disabled } else { Availability::Enabled };
        let entries: Vec<Entry> = serde_json::from_value(line["statuses_before"].clone()).expect("entries");
        let now: Timestamp = text(&line, "now").parse().expect("a time");
        let index = i32::try_from(line["index"].as_i64().expect("an index")).expect("an index");
        let step = Step { index, plugin, availability };
        let (outcome, is_called) = match due(&entries, step, operation, now) {
            Ok(Move::Nothing) => (Ok(None), false),
            Ok(Move::Wait(entry) | Move::Note(entry)) => (Ok(Some(entry)), false),
            Ok(Move::Call { entry, status }) => {
                let outcome = answer(&line["config"], operation, status.as_ref());
                (answered(entry, outcome, now).map(Some), true)
            }
            Err(error) => (Err(error), false),
        };
        let found = json!({
            "status": outcome.as_ref().map_or(Json::Null, |entry| json!(entry)),
            "error": outcome.err().map(|error| error.to_string()),
            "plugin_called": is_called,
        });
        let wanted = json!({
            "status": line["status"], "error": line["error"], "plugin_called": line["plugin_called"],
        });
        assert_eq!(found, wanted, "{} {}", text(&line, "operation"), text(&line, "name"));
    }
    assert!(seen > 40, "{seen}");
}
