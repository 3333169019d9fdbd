//! `allOf`, `anyOf`, `oneOf` and `not`: rules without a shape, and upstream's choice of which failure to show.

use super::{
    path::Path,
    rules::{Clause, Rules},
    validate::{Walk, is_integral},
};
use crate::{
    status::{FieldError, go_quoted},
    value::Value,
};

/// What trying a clause came to.
struct Trial {
    problems: Vec<FieldError>,
    /// How many checks upstream made on the way: of several failures it shows the one that got furthest.
    checks: usize,
}

/// Checks the alternatives of `rules` and adds what is wrong to the walk.
pub(super) fn check(walk: &mut Walk<'_>, rules: &Rules, value: &Value, path: &Path<'_>) {
    checks(walk, rules, value, path);
}

/// As [`check`]; the number of checks made counts for the clause this is part of.
fn checks(walk: &mut Walk<'_>, rules: &Rules, value: &Value, path: &Path<'_>) -> usize {
    let name = || go_quoted(&path.dotted());
    let base = walk.base;
    let mut count = 0;
    if !rules.any_of.is_empty() {
        let mut best: Option<Trial> = None;
        let mut passed = None;
        for clause in &rules.any_of {
            let trial = attempt(clause, value, path, base);
            if trial.problems.is_empty() {
                passed = Some(trial);
                break;
            }
            if best.as_ref().is_none_or(|best| trial.checks > best.checks) {
                best = Some(trial);
            }
        }
        match (passed, best) {
            (Some(trial), _) => count += trial.checks,
            (None, best) => {
                walk.composite(format!("{} must validate at least one schema (anyOf)", name()));
                count += merge(walk, best);
            }
        }
    }
    if !rules.one_of.is_empty() {
        let mut best: Option<Trial> = None;
        let mut passed: Vec<Trial> = Vec::new();
        for clause in &rules.one_of {
            let trial = attempt(clause, value, path, base);
            if trial.problems.is_empty() {
                passed.push(trial);
                best = None;
            } else if passed.is_empty() && best.as_ref().is_none_or(|best| trial.checks > best.checks) {
                best = Some(trial);
            }
        }
        match passed.as_slice() {
            [one] => count += one.checks,
            several => {
                let found = match several.len() {
                    0 => "Found none valid".to_owned(),
                    n => format!("Found {n} valid alternatives"),
                };
                walk.composite(format!("{} must validate one and only one schema (oneOf). {found}", name()));
                count += merge(walk, best);
            }
        }
    }
    if !rules.all_of.is_empty() {
        let mut passed = 0;
        for clause in &rules.all_of {
            let trial = attempt(clause, value, path, base);
            passed += usize::from(trial.problems.is_empty());
            count += merge(walk, Some(trial));
        }
        if passed < rules.all_of.len() {
            let none = if passed == 0 { ". None validated" } else { "" };
            walk.composite(format!("{} must validate all the schemas (allOf){none}", name()));
        }
    }
    if let Some(clause) = &rules.not
        && attempt(clause, value, path, base).problems.is_empty()
    {
        walk.composite(format!("{} must not validate the schema (not)", name()));
    }
    count + 1
}

fn merge(walk: &mut Walk<'_>, trial: Option<Trial>) -> usize {
    let Some(trial) = trial else { return 0 };
    walk.problems.extend(trial.problems);
    trial.checks
}

fn attempt(clause: &Clause, value: &Value, path: &Path<'_>, base: Option<&str>) -> Trial {
    let mut walk = Walk { problems: Vec::new(), base };
    let checks = clause_checks(&mut walk, clause, value, path);
    Trial { problems: walk.problems, checks }
}

/// Checks a value against a clause and counts as upstream counts.
fn clause_checks(walk: &mut Walk<'_>, clause: &Clause, value: &Value, path: &Path<'_>) -> usize {
    let mut count = 0;
    if let Some(kind) = &clause.kind {
        let fits = match value {
            Value::Float(f) => (kind == "integer" && is_integral(*f)) || kind == "number",
            Value::Int(_) => kind == "integer" || kind == "number",
            other => kind == other.type_name(),
        };
        if !fits {
            walk.wrong_type(path, kind, value.type_name());
            count += usize::from(!value.is_null());
        } else {
            count += 2;
        }
    }
    if value.is_null() {
        walk.allowed(&clause.allowed, value, path);
        return count;
    }
    // The alternatives count even where there are none.
    count += match clause.rules.has_clauses() {
        true => 1 + checks(walk, &clause.rules, value, path),
        false => 2,
    };
    walk.scalar(&clause.rules, value, path);
    match value {
        Value::Int(_) | Value::Float(_) => count += 2,
        Value::Str(_) => count += 1 + usize::from(clause.rules.format.is_some()),
        Value::List(items) => {
            if let Some(clause) = &clause.items {
                for (i, item) in items.iter().enumerate() {
                    count += clause_checks(walk, clause, item, &path.index(i));
                }
            }
            walk.items(&clause.rules, items, path);
            count += 2;
        }
        Value::Null | Value::Bool(_) | Value::Map(_) => {}
    }
    walk.allowed(&clause.allowed, value, path);
    count += 1;
    if let Value::Map(map) = value {
        walk.size(&clause.rules, map, path);
        for (key, clause) in &clause.properties {
            if let Some(value) = map.get(key) {
                count += clause_checks(walk, clause, value, &path.field(key));
            }
        }
        walk.required(&clause.rules, map, path);
        count += 1;
    }
    count + 1
}
