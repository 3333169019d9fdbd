//! What is wrong with a Rollout, in the words and in the order of Argo Rollouts.

use serde_json::{Value, json};
use tidegate::{
    api,
    kubernetes::status::FieldError,
    model::{
        parse::{self, PodsFrom},
        problem::{Code, Parsed, Words},
    },
};

use super::check;

pub fn read<T: serde::de::DeserializeOwned + Default>(object: &Value) -> T {
    api::read(&object.clone().into()).object
}

/// A field error as the vectors show it.
pub fn shown(error: &FieldError) -> Value {
    let mut out = json!({
        "field": error.field,
        "type": error.reason(),
        "typeText": error.kind(),
        "detail": error.explanation(),
        "message": error.to_string(),
    });
    if let Some(value) = error.bad_value() {
        out["badValue"] = serde_json::from_str(&value).unwrap();
    }
    out
}

pub fn field(words: &Words) -> &FieldError {
    match words {
        Words::Field(error) => error,
        Words::Plain(text) => panic!("{text}"),
    }
}

/// What is said when a router's objects are looked up.
fn router_error<T>(parsed: &Parsed<T>, router: &str) -> Value {
    let of_router = |words: &&Words| field(words).field.ends_with(router);
    let codes = [Code::RouterIngress, Code::RouterVirtualService];
    let problems = parsed.problems.iter().filter(|problem| codes.contains(&problem.code));
    let words = problems.filter_map(|problem| problem.argo.as_ref()).map(|argo| &argo.words).find(of_router);
    words.map_or(Value::Null, |words| words.to_string().into())
}

#[test]
fn vectors_validation() {
    check("validation", |input, _| {
        let from = match input["templateResolvedFromRef"].as_bool() {
            Some(true) => PodsFrom::Workload,
            _ => PodsFrom::Manifest,
        };
        let parsed = parse::rollout(&read(&input["rollout"]), from);
        // Said only when the objects are looked up, and so not part of this list.
        let later = |error: &&FieldError| !error.field.starts_with("spec.strategy.canary.");
        let errors: Vec<Value> = parsed.argo.iter().map(field).filter(later).map(shown).collect();
        Some(json!({
            "errors": errors,
            "nginxConfigError": router_error(&parsed, "nginx"),
            "albConfigError": router_error(&parsed, "alb"),
            "virtualServiceConfigError": router_error(&parsed, "istio"),
        }))
    });
}
