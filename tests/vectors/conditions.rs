//! Conditions: which of them are expressions at all, and what is wrong with the others.

use jiff::Timestamp;
use serde_json::{Value, json};
use tidegate::{
    analysis::{Judgement, expression, expression::Val, judge},
    api::Metric,
    kubernetes::value::Value as Tree,
};

use super::check;

/// What the library says of a text that is no expression, whatever the values.
fn is_syntax(error: &str) -> bool {
    let beginnings = [
        "unexpected token",
        "expected name",
        "literal not terminated",
        "invalid char escape",
        "unrecognized character",
        "bad number syntax",
        "Operator (",
        "a map key must be",
        "wrap predicate",
        "expected at least",
        "unclosed comment",
        "compilation failed: expression exceeds",
        "invalid integer literal",
        "invalid float literal",
        "invalid hex literal",
        "invalid binary literal",
        "invalid octal literal",
    ];
    beginnings.iter().any(|beginning| error.starts_with(beginning))
}

fn theirs(error: &Value) -> Value {
    error.as_str().filter(|error| is_syntax(error)).map_or(Value::Null, Into::into)
}

#[test]
fn vectors_conditions_that_parse() {
    check("conditions", |input, expect| {
        let mistake = |condition: &str| {
            let text = input[condition].as_str()?;
            expression::parse(text).err().map(|mistake| mistake.message)
        };
        let ours = json!([mistake("successCondition"), mistake("failureCondition")]);
        let same = ours == json!([theirs(&expect["successError"]), theirs(&expect["failureError"])]);
        Some(if same { expect.clone() } else { ours })
    });
}

/// A number of a recording; what JSON has no number for is a word.
fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some("NaN") => f64::NAN,
        Some("Inf") => f64::INFINITY,
        Some("-Inf") => f64::NEG_INFINITY,
        Some(other) => panic!("{other}"),
        None => value.as_f64().unwrap(),
    }
}

fn measured(input: &Value) -> Val {
    let result = &input["result"];
    match input["resultType"].as_str().unwrap() {
        "json" => Val::of_json(&Tree::from(result.clone())),
        "float" => Val::Float(number(result)),
        "floats" => Val::floats(&result.as_array().unwrap().iter().map(number).collect::<Vec<_>>()),
        "optional-float" if result.is_null() => Val::Nil,
        "optional-float" => Val::Float(number(result)),
        "string" => Val::text(result.as_str().unwrap()),
        kind => panic!("{kind}"),
    }
}

#[test]
fn vectors_conditions_that_hold() {
    check("conditions", |input, expect| {
        let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
        let metric = Metric {
            success_condition: text("successCondition"),
            failure_condition: text("failureCondition"),
            ..Metric::default()
        };
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let Judgement { phase, message } = judge(&metric, &measured(input), now);
        // What the library says of an expression that fails is its own; that it fails, and which condition, is ours.
        let expected = expect["error"].as_str().unwrap_or_default();
        let beginning = |message: &str| message.split("Condition \"").next().unwrap_or_default().to_owned();
        let is_missing = |message: &str| message.ends_with("no data returned from the metric provider");
        let same = phase.as_str() == expect["phase"]
            && beginning(&message) == beginning(expected)
            && is_missing(&message) == is_missing(expected);
        Some(if same { expect.clone() } else { json!({"phase": phase.as_str(), "error": message}) })
    });
}
