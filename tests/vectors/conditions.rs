//! Conditions: which of them are expressions at all, and what is wrong with the others.

use serde_json::{Value, json};
use tidegate::analysis::expression;

use crate::check;

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
