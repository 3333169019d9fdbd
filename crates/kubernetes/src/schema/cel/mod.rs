//! CEL rules of custom resources (`x-kubernetes-validations`): compiled when the CRD is read, run when an object is
//! written.
//!
//! A CEL of our own: the type checks, costs and complaints are the real server's, data is looked at in place, and every
//! run has a budget, so that no rule can hold the server up.

mod ast;
mod check;
mod compile;
mod cost;
mod format;
mod lex;
mod library;
mod opaque;
mod parse;
mod plan;
#[cfg(test)]
mod recorded;
mod scope;
mod types;
mod value;

use std::sync::Arc;

use compile::{Compiled, Wanted, compile};
pub(super) use scope::{Scope, Total};
use types::Part;
use value::{Fault, Val};

use super::{
    Schema, Shape, Topology,
    path::Path,
    validate::{Judgement, below, correlated, unchanged},
};
use crate::{
    status::{FieldError, Rule as Problem},
    value::{Text, Value},
};

/// What all rules on one object may cost together.
const BUDGET: u64 = 10_000_000;
/// The longest message an expression may make.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// One rule.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    /// The expression.
    pub rule: Text,
    /// What to say when it is false.
    pub message: Text,
    /// An expression for what to say.
    pub message_expression: Text,
    /// `FieldValueInvalid` and the like.
    pub reason: Option<Text>,
    /// The field to blame, relative to the rule's place, as problems name it.
    pub field: Text,
    /// Evaluated even where there is no old value.
    pub optional_old: bool,
    pub(super) ready: Option<Arc<Ready>>,
}

/// A rule made ready to run.
#[derive(Debug)]
pub(super) struct Ready {
    rule: Result<Compiled, String>,
    message: Option<Compiled>,
}

impl Rule {
    /// Compiles the rule for values of a schema; `resource` if they are whole objects.
    pub fn compile(&mut self, schema: &Schema, resource: bool) {
        let part = if resource { Part::Resource } else { Part::Plain };
        let rule = compile(&self.rule, schema, part, self.optional_old, Wanted::Bool);
        let message = match self.message_expression.as_str() {
            "" => None,
            source => compile(source, schema, part, self.optional_old, Wanted::Text).ok(),
        };
        self.ready = Some(Arc::new(Ready { rule, message }));
    }

    fn text(&self) -> &str {
        if self.message.is_empty() { self.rule.trim() } else { self.message.trim() }
    }
}

/// A question about whole objects of a kind, answered with yes or no: `self.status.phase == 'Ready'`.
#[derive(Debug)]
pub struct Question(Compiled);

impl Question {
    /// Compiles an expression, or says what is wrong with it. What the schema does not name cannot be asked about.
    pub fn parse(expression: &str, schema: &Schema) -> Result<Question, String> {
        compile(expression, schema, Part::Resource, false, Wanted::Bool).map(Question)
    }

    /// What is true of an object; an error if the expression looks at something that is not there, or costs more than this.
    pub fn ask_within(&self, object: &Value, schema: &Schema, limit: u64) -> Result<bool, String> {
        let value = Val::of(object, schema, Part::Resource).map_err(|fault| fault.to_string())?;
        match self.0.program.run_within(&value, None, limit).0 {
            Ok(Val::Bool(answer)) => Ok(answer),
            Ok(_) => Err("it is neither true nor false".to_owned()),
            Err(fault) => Err(fault.to_string()),
        }
    }
}

/// What the rules of a schema say about a value; `resource` if it is a whole object.
pub(super) fn validate(schema: &Schema, new: &Value, old: Option<&Value>, resource: bool) -> Judgement {
    let mut walk = Walk { judgement: Judgement::default(), budget: BUDGET };
    let part = if resource { Part::Resource } else { value::part_of(schema) };
    let kin = Kin { here: old.map(|old| (schema, new, old)), above: None };
    // The walk ends early when the budget does; what was found until then counts.
    let _ = walk.node(schema, part, new, old, kin, &Path::ROOT);
    walk.judgement
}

/// What an update may be compared with, to see whether a broken rule is broken by what did not change.
#[derive(Clone, Copy)]
struct Kin<'c> {
    here: Option<(&'c Schema, &'c Value, &'c Value)>,
    /// The nearest place above that could be compared.
    above: Option<(&'c Schema, &'c Value, &'c Value)>,
}

impl<'c> Kin<'c> {
    fn is_unchanged(&self) -> bool {
        self.here.or(self.above).is_some_and(|(schema, new, old)| unchanged(schema, new, old))
    }

    fn key(self, key: &str) -> Kin<'c> {
        let Some((schema, new, old)) = self.here else { return self };
        if self.above.is_none() && matches!(key, "apiVersion" | "kind") {
            return Kin { here: None, above: None };
        }
        let child = schema.child(key).map(Arc::as_ref);
        let here = match (child, new.get(key), old.get(key)) {
            (Some(schema), Some(new), Some(old)) => Some((schema, new, old)),
            _ => None,
        };
        Kin { here, above: self.here }
    }

    fn index(self, index: usize) -> Kin<'c> {
        let Some((schema, new, old)) = self.here else { return self };
        let here = match &schema.shape {
            Shape::List { items, topology: Topology::Map(keys), .. } => {
                let item = new.as_list().and_then(|items| items.get(index));
                let before = item.and_then(|item| correlated(keys, item, old.as_list().unwrap_or_default()));
                item.zip(before).map(|(item, before)| (items.as_ref(), item, before))
            }
            _ => None,
        };
        Kin { here, above: self.here }
    }
}

/// The budget is spent.
struct Spent;

struct Walk {
    judgement: Judgement,
    budget: u64,
}

impl Walk {
    fn node(
        &mut self,
        schema: &Schema,
        part: Part,
        new: &Value,
        old: Option<&Value>,
        kin: Kin<'_>,
        path: &Path<'_>,
    ) -> Result<(), Spent> {
        if new.is_null() || !below(schema).cel {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        let rules = schema.rules.as_deref().map(|rules| rules.cel.as_slice()).unwrap_or_default();
        if !rules.is_empty() {
            self.rules(rules, schema, part, new, old, kin, path)?;
        }
        match (new, &schema.shape) {
            (Value::Map(map), Shape::Struct(fields)) => {
                for (key, value) in map.iter() {
                    let Some(field) = fields.field(key) else { continue };
                    let before = old.and_then(|old| old.get(key));
                    let part = value::part_of(&field.schema);
                    self.node(&field.schema, part, value, before, kin.key(key), &path.field(key))?;
                }
            }
            (Value::Map(map), Shape::Map { values, .. }) => {
                for (key, value) in map.iter() {
                    let before = old.and_then(|old| old.get(key));
                    self.node(values, value::part_of(values), value, before, kin.key(key), &path.key(key))?;
                }
            }
            (Value::List(list), Shape::List { items, topology, .. }) => {
                for (i, item) in list.iter().enumerate() {
                    let before = match (topology, old.and_then(Value::as_list)) {
                        (Topology::Map(keys), Some(old)) => correlated(keys, item, old),
                        _ => None,
                    };
                    self.node(items, value::part_of(items), item, before, kin.index(i), &path.index(i))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)] // the parts of one place; a struct would be taken apart at once
    fn rules(
        &mut self,
        rules: &[Rule],
        schema: &Schema,
        part: Part,
        new: &Value,
        old: Option<&Value>,
        kin: Kin<'_>,
        path: &Path<'_>,
    ) -> Result<(), Spent> {
        let refuse = |walk: &mut Walk, words: String| {
            walk.judgement.problems.push(FieldError::invalid(path.to_string(), kind_of(schema), words));
        };
        const NO_BUDGET: &str =
            "validation failed due to running out of cost budget, no further validation rules will be run";
        if self.budget == 0 {
            refuse(self, NO_BUDGET.to_owned());
            return Err(Spent);
        }
        let value = match Val::of(new, schema, part) {
            Ok(value) => value,
            Err(fault) => {
                // Every rule that looks at the value fails so.
                for rule in rules {
                    refuse(self, format!("{fault} evaluating rule: {}", rule.text()));
                }
                return Ok(());
            }
        };
        let before = old.and_then(|old| Val::of(old, schema, part).ok());
        // A message sees the old value, never as an optional, if some rule here asks for it.
        let asks = |rule: &Rule| matches!(rule.ready.as_deref(), Some(Ready { rule: Ok(rule), .. }) if rule.uses_old);
        let told = before.as_ref().filter(|_| rules.iter().any(asks));
        for rule in rules {
            let Some(ready) = rule.ready.as_deref() else { continue };
            let compiled = match &ready.rule {
                Ok(compiled) => compiled,
                Err(words) => {
                    refuse(self, format!("rule compile error: {words}"));
                    continue;
                }
            };
            if compiled.uses_old && before.is_none() && !rule.optional_old {
                continue;
            }
            let optional = rule.optional_old.then(|| Val::Optional(before.clone().map(Arc::new)));
            let old = optional.as_ref().or(before.as_ref());
            let (outcome, cost) = compiled.program.run(&value, old);
            if cost > self.budget && outcome != Err(Fault::Limit) {
                refuse(self, NO_BUDGET.to_owned());
                return Err(Spent);
            }
            self.budget = self.budget.saturating_sub(cost);
            match outcome {
                Ok(Val::Bool(true)) => continue,
                Ok(_) => {}
                Err(Fault::Limit) => {
                    refuse(
                        self,
                        format!(
                            "'{}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                            Fault::Limit,
                            rule.text()
                        ),
                    );
                    return Err(Spent);
                }
                Err(fault) => {
                    let fault = fault.to_string();
                    let words = match fault.starts_with("no such overload") {
                        true => format!(
                            "'{fault}': call arguments did not match a supported operator, function or macro signature \
                             for rule: {}",
                            rule.text()
                        ),
                        false => format!("{fault} evaluating rule: {}", rule.text()),
                    };
                    refuse(self, words);
                    continue;
                }
            }
            let detail = self.message(rule, ready, &value, told);
            let problem = broken(rule, schema, new, path, detail);
            if !compiled.uses_old && kin.is_unchanged() {
                self.judgement.warnings.push(problem.to_string());
            } else {
                self.judgement.problems.push(problem);
            }
        }
        Ok(())
    }

    /// What to say of a broken rule.
    fn message<'a>(&mut self, rule: &Rule, ready: &Ready, value: &Val<'a>, old: Option<&Val<'a>>) -> String {
        if let Some(message) = &ready.message {
            let (outcome, cost) = message.program.run(value, old);
            self.budget = self.budget.saturating_sub(cost);
            if let Ok(Val::Str(text)) = outcome {
                let text = text.trim();
                if !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n') {
                    return text.to_owned();
                }
            }
        }
        match rule.message.is_empty() {
            true => format!("failed rule: {}", rule.rule.trim()),
            false => rule.message.trim().to_owned(),
        }
    }
}

/// The type a schema gives, as complaints name it.
fn kind_of(schema: &Schema) -> &'static str {
    match &schema.shape {
        Shape::Any | Shape::IntOrString => "",
        Shape::Bool => "boolean",
        Shape::Int32 | Shape::Int64 => "integer",
        Shape::Number => "number",
        Shape::Struct(_) | Shape::Map { .. } => "object",
        Shape::List { .. } => "array",
        _ => "string",
    }
}

fn broken(rule: &Rule, schema: &Schema, value: &Value, path: &Path<'_>, detail: String) -> FieldError {
    let field = match (path.is_root(), rule.field.as_str()) {
        (_, "") => path.to_string(),
        (true, field) => field.to_owned(),
        (false, field) if field.starts_with('[') => format!("{path}{field}"),
        (false, field) => format!("{path}.{field}"),
    };
    let whole = matches!(kind_of(schema), "object" | "array");
    let problem = match (rule.reason.as_deref().unwrap_or_default(), whole) {
        ("FieldValueForbidden", _) => Problem::Forbidden,
        ("FieldValueRequired", _) => Problem::Required,
        ("FieldValueDuplicate", true) => Problem::DuplicateWhole,
        ("FieldValueDuplicate", false) => Problem::Duplicate(value.clone()),
        (_, true) => Problem::InvalidWhole,
        (_, false) => Problem::Invalid(value.clone()),
    };
    let detail = match problem {
        Problem::Duplicate(_) | Problem::DuplicateWhole => String::new(),
        _ => detail,
    };
    FieldError { field, rule: problem, detail }
}
