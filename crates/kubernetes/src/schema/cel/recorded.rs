//! What the CEL of the real server made of rules, compared with ours. `testdata/cel/main.go` asks it.

use super::{
    Rule,
    compile::{Wanted, compile},
    cost,
    types::Part,
};
use crate::{
    schema::{crd, rules::Rules},
    value::Value,
};

const FILES: &[(&str, &str)] = &[
    ("expressions", include_str!("../testdata/cel/expressions.json")),
    // Made up by a generator of expressions.
    ("generated", include_str!("../testdata/cel/generated.json")),
];

/// What became of a case, in the words of the recorder.
fn outcome(data: &Value, case: &Value) -> Value {
    let json = case.get("schema").or(data.get("schema")).expect("a schema");
    let resource = data.get("root") == Some(&Value::Bool(true));
    let mut schema = crd::schema_at(json);
    let part = if resource { Part::Resource } else { Part::Plain };
    let text = |key: &str| case.str_at(&[key]).unwrap_or_default();
    let optional = case.get("optionalOldSelf") == Some(&Value::Bool(true));
    let mut result = Value::object();
    if !text("rule").trim().is_empty() {
        let rule = match compile(text("rule"), &schema, part, optional, Wanted::Bool) {
            Err(words) => return crate::value!({"error": words}),
            Ok(rule) => rule,
        };
        if !text("messageExpression").is_empty() {
            match compile(text("messageExpression"), &schema, part, optional, Wanted::Text) {
                Err(words) => return crate::value!({"messageError": words}),
                Ok(message) => result.set_at(&["messageCost"], shown(message.cost)),
            }
        }
        result.set_at(&["cost"], shown(rule.cost));
        result.set_at(&["cardinality"], shown(cost::cardinality(&schema, part)));
        let mut rule = crd::read_rule(case, json);
        rule.compile(&schema, resource);
        schema.rules.get_or_insert_with(Box::<Rules>::default).cel = vec![rule];
    } else {
        result.set_at(&["cost"], "0");
        result.set_at(&["cardinality"], "0");
    }
    schema.rules.get_or_insert_default().below.cel = true;
    let own = |key: &str| case.get(key).or(data.get(key)).cloned().unwrap_or_default();
    let (new, old) = (own("self"), own("old"));
    let judgement = super::validate(&schema, &new, Some(&old).filter(|old| !old.is_null()), resource);
    // The recorder asks without the means to see what did not change, so that nothing is a mere warning.
    let texts = judgement.problems.iter().map(|problem| problem.to_string()).chain(judgement.warnings);
    result.set_at(&["problems"], Value::list(texts.map(Value::from)));
    result
}

fn shown(cost: u64) -> String {
    cost.to_string()
}

#[test]
fn rules_fare_as_on_the_real_server() {
    let (mut cases, mut misses) = (0, Vec::new());
    for (file, text) in FILES {
        let data = Value::from_json(text.as_bytes()).expect("recorded by main.go");
        for case in data.list_at(&["cases"]) {
            cases += 1;
            let ours = outcome(&data, case);
            for key in ["error", "messageError", "cost", "messageCost", "cardinality", "problems"] {
                let theirs = match case.get(key) {
                    Some(Value::Int(n)) => Value::from(n.to_string()),
                    // Beyond what a signed number holds there is only the largest of all.
                    Some(Value::Float(_)) => Value::from(u64::MAX.to_string()),
                    other => other.cloned().unwrap_or_default(),
                };
                let ours = ours.get(key).cloned().unwrap_or_default();
                if theirs != ours {
                    let rule = case.get("rule").unwrap();
                    misses.push(format!("{file} {rule} {key}\n   server {theirs}\n     ours {ours}"));
                }
            }
        }
    }
    assert!(misses.is_empty(), "{} misses in {cases} cases\n{}", misses.len(), misses.join("\n"));
}

#[test]
fn a_rule_that_would_run_for_ever_is_stopped() {
    let json = crate::value!({"type": "array", "items": {"type": "integer"}});
    let source = "self.all(a, self.all(b, self.all(c, self.all(d, self.all(e, a + b + c + d + e >= 0)))))";
    let mut schema = crd::schema_at(&json);
    let mut rule = Rule { rule: source.into(), ..Rule::default() };
    rule.compile(&schema, false);
    let rules = schema.rules.get_or_insert_default();
    rules.cel = vec![rule];
    rules.below.cel = true;
    let value = Value::list((0..1000).map(Value::Int));
    let problems = super::validate(&schema, &value, None, false).problems;
    let words = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call \
                 cost exceeds limit for rule: ";
    assert_eq!(problems[0].to_string(), format!("<nil>: Invalid value: \"array\": {words}{source}"));
}

#[test]
fn a_rule_as_deep_as_it_may_be_is_taken_and_a_deeper_one_refused() {
    let schema = crd::schema_at(&crate::value!({"type": "integer"}));
    let nested = |depth: usize| format!("{}self > 1{}", "(".repeat(depth), ")".repeat(depth));
    let judged = |source: &str| compile(source, &schema, Part::Plain, false, Wanted::Bool).map(|_| ());
    let words = "compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
    assert_eq!((judged(&nested(200)), judged(&nested(400))), (Ok(()), Err(words.to_owned())));
    // Whatever nests: the answer matters less than that there is one.
    for (open, inner, close) in
        [("[", "1", "]"), ("dyn(", "1", ")"), ("{1: ", "1", "}"), ("[1].map(x, ", "1", ")"), ("-(", "1", ")")]
    {
        let _ = judged(&format!("{}{inner}{} == 1", open.repeat(240), close.repeat(240)));
    }
    let sum = format!("{} == 300", vec!["1"; 300].join(" + "));
    assert_eq!(judged(&sum), Err("compilation failed: ERROR: <input>:-1:0: max recursion depth exceeded".to_owned()));
}

proptest::proptest! {
    #[test]
    fn any_text_may_be_sent_as_a_rule(source in "[a-z0-9 .,()\\[\\]{}'\"?:!&|<>=+*/%\\\\-]{0,60}|\\PC{0,30}") {
        let schema = crd::schema_at(&crate::value!({"type": "object", "properties": {"a": {"type": "integer"}}}));
        let mut rule = Rule { rule: source.as_str().into(), ..Rule::default() };
        rule.compile(&schema, false);
    }
}
