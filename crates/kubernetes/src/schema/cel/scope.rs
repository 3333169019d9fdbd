//! Whether the rules of a CRD compile, and what they may cost together.

use std::cell::RefCell;

use super::{
    compile::{Wanted, compile},
    cost,
    types::{Part, Type},
    value::part_of,
};
use crate::{
    schema::crd,
    status::{FieldError, Rule},
    value::Value,
};

/// The most one rule may cost, by estimate.
const RULE_LIMIT: u64 = 10_000_000;
/// The most all rules of a schema may cost, by estimate.
const TOTAL_LIMIT: u64 = 100_000_000;

/// A place in a CRD's schema where rules may stand.
pub(in crate::schema) struct Scope<'a> {
    json: &'a Value,
    root: bool,
    /// How many values there can be here at most, as far as the schemas above say; `None` if they do not.
    many: Option<u64>,
}

/// What the rules of a schema cost.
#[derive(Default)]
pub(in crate::schema) struct Total {
    sum: u64,
    /// The most expensive rules and where they stand.
    most: Vec<(u64, String)>,
}

impl Total {
    fn add(&mut self, path: String, cost: u64) {
        self.sum = self.sum.saturating_add(cost);
        if cost >= TOTAL_LIMIT / 100 {
            self.most.push((cost, path));
            self.most.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.most.truncate(4);
        }
    }

    /// What to say if all rules together cost too much.
    pub(crate) fn problems(&self, path: &str) -> Vec<FieldError> {
        if self.sum <= TOTAL_LIMIT {
            return Vec::new();
        }
        let words = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut problems: Vec<FieldError> =
            self.most.iter().map(|(_, rule)| FieldError::forbidden(rule.clone(), words)).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        problems.push(FieldError::forbidden(path, exceeds(what, self.sum, TOTAL_LIMIT)));
        problems
    }
}

fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        f if f > 100.0 => "more than 100x".to_owned(),
        f if f < 1.5 => format!("{f:.6}x"),
        f => format!("{f:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

impl<'a> Scope<'a> {
    /// The whole object.
    pub(crate) fn root(json: &'a Value) -> Scope<'a> {
        Scope { json, root: true, many: Some(1) }
    }

    /// A schema inside this one.
    pub(crate) fn inside(&self, json: &'a Value) -> Scope<'a> {
        let limit = |key: &str| self.json.int_at(&[key]).map(|n| u64::try_from(n).unwrap_or(0));
        let times = match self.json.str_at(&["type"]) {
            Some("object") if self.json.get("additionalProperties").is_some() => limit("maxProperties"),
            Some("array") => limit("maxItems"),
            _ => Some(1),
        };
        let many = self.many.zip(times).map(|(many, times)| many.saturating_mul(times));
        Scope { json, root: false, many }
    }

    /// What is wrong with the rules that stand here. `uncorrelated` is the list above that hides which item was which.
    pub(crate) fn compile(&self, path: &str, uncorrelated: Option<&str>, total: &RefCell<Total>) -> Vec<FieldError> {
        let schema = crd::schema_at(self.json);
        let part = if self.root { Part::Resource } else { part_of(&schema) };
        if Type::of(&schema, self.root, "").is_none() {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable \
                          to convert structural schema to CEL declarations";
            return vec![FieldError { field: path.to_owned(), rule: Rule::Internal, detail: detail.to_owned() }];
        }
        let mut problems = Vec::new();
        for (i, rule) in self.json.list_at(&["x-kubernetes-validations"]).iter().enumerate() {
            let at = |key: &str| format!("{path}[{i}].{key}");
            let text = |key: &str| rule.str_at(&[key]).unwrap_or_default();
            let optional = rule.get("optionalOldSelf").and_then(Value::as_bool);
            let invalid = |key: &str, words: String| {
                FieldError::invalid(at(key), Value::Null, words).printed(crd::printed_rule(rule))
            };
            let compiled = match compile(text("rule"), &schema, part, optional == Some(true), Wanted::Bool) {
                Ok(compiled) => compiled,
                Err(words) => {
                    total.borrow_mut().add(at("rule"), 0);
                    problems.push(invalid("rule", words));
                    continue;
                }
            };
            let many = self.many.unwrap_or_else(|| cost::cardinality(&schema, part));
            let cost = compiled.cost.saturating_mul(many);
            if cost > RULE_LIMIT {
                problems.push(FieldError::forbidden(at("rule"), exceeds("estimated rule cost", cost, RULE_LIMIT)));
            }
            total.borrow_mut().add(at("rule"), cost);
            if !text("messageExpression").is_empty() {
                match compile(text("messageExpression"), &schema, part, optional == Some(true), Wanted::Text) {
                    Err(words) => problems.push(invalid("messageExpression", words)),
                    Ok(message) => {
                        if message.cost > RULE_LIMIT {
                            let words = exceeds("estimated messageExpression cost", message.cost, RULE_LIMIT);
                            problems.push(FieldError::forbidden(at("messageExpression"), words));
                        }
                        total.borrow_mut().add(at("messageExpression"), message.cost);
                    }
                }
            }
            match (compiled.uses_old, uncorrelated, optional) {
                (true, Some(list), _) => {
                    let words =
                        format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
                    problems.push(FieldError::invalid(at("rule"), text("rule"), words));
                }
                (false, _, Some(optional)) => {
                    let words = "may not be set if oldSelf is not used in rule";
                    problems.push(FieldError::invalid(at("optionalOldSelf"), optional, words));
                }
                _ => {}
            }
        }
        problems
    }
}
