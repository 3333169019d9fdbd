//! From the text of a rule to a program, or to what is wrong with it.

use std::sync::Arc;

use super::{
    ast::{Expr, Issue, Literal, Node, show},
    check::{Checked, check},
    cost, format, library,
    parse::parse,
    plan::{LIMIT, Meter, Program, constant, prepare},
    types::{Part, Type},
};
use crate::schema::{Schema, regexp};

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Compiled {
    pub program: Program,
    /// Whether it looks at the old value.
    pub uses_old: bool,
    /// What it may cost at worst.
    pub cost: u64,
}

/// What an expression must give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wanted {
    Bool,
    Text,
}

/// Compiles an expression about values of a schema. `Err` is in the words of the real server.
pub(super) fn compile(
    source: &str,
    schema: &Schema,
    part: Part,
    optional_old: bool,
    wanted: Wanted,
) -> Result<Compiled, String> {
    let message = if wanted == Wanted::Text { "messageExpression " } else { "" };
    let failed = |issues: Vec<Issue>| format!("{message}compilation failed: {}", show(source, issues));
    let Some(self_type) = Type::of(schema, part == Part::Resource, "selfType") else {
        return Err("failed to convert to declType for CEL validation rules".to_owned());
    };
    let old_type = if optional_old { Type::Optional(Arc::new(self_type.clone())) } else { self_type.clone() };
    let parsed = parse(source).map_err(failed)?;
    let checked = check(&parsed.expr, parsed.count, &self_type, &old_type).map_err(failed)?;
    let mut issues = Vec::new();
    literals(&parsed.expr, &checked, false, &mut issues);
    if !issues.is_empty() {
        return Err(failed(issues));
    }
    match (wanted, &checked.types[parsed.expr.id]) {
        (Wanted::Bool, Type::Bool) | (Wanted::Text, Type::Str) => {}
        (Wanted::Bool, _) => return Err("cel expression must evaluate to a bool".to_owned()),
        (Wanted::Text, _) => return Err("messageExpression must evaluate to a string".to_owned()),
    }
    let program = prepare(&parsed.expr, &checked).map_err(|words| match wanted {
        Wanted::Bool => format!("program instantiation failed: {words}"),
        Wanted::Text => format!("messageExpression instantiation failed: {words}"),
    })?;
    let cost = cost::estimate(&parsed.expr, &checked, schema, part);
    Ok(Compiled { program, uses_old: checked.uses_old, cost })
}

/// Looks for literals that cannot be what they are used as. `mixed` if lists and maps may hold several types here.
fn literals(expr: &Expr, checked: &Checked<'_>, mixed: bool, issues: &mut Vec<Issue>) {
    match &expr.node {
        Node::Literal(_) | Node::Ident(_) => {}
        Node::Select { operand, .. } => literals(operand, checked, mixed, issues),
        Node::Call { function, target, args } => {
            call_literals(expr, function, target.as_deref(), args, checked, issues);
            let mixed = mixed || function == "format";
            target.iter().for_each(|target| literals(target, checked, mixed, issues));
            args.iter().for_each(|arg| literals(arg, checked, mixed, issues));
        }
        Node::List { items, optional } => {
            if !mixed {
                same_types(items.iter().zip(optional.iter().copied()), checked, issues);
            }
            items.iter().for_each(|item| literals(item, checked, mixed, issues));
        }
        Node::Map(entries) => {
            if !mixed {
                same_types(entries.iter().map(|entry| (&entry.key, false)), checked, issues);
                same_types(entries.iter().map(|entry| (&entry.value, entry.optional)), checked, issues);
            }
            for entry in entries {
                literals(&entry.key, checked, mixed, issues);
                literals(&entry.value, checked, mixed, issues);
            }
        }
        Node::Struct { fields, .. } => fields.iter().for_each(|(_, value, _)| literals(value, checked, mixed, issues)),
        Node::Fold(fold) => {
            for part in [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result] {
                literals(part, checked, mixed, issues);
            }
        }
    }
}

/// Names the first item whose type is not that of those before it.
fn same_types<'e>(items: impl Iterator<Item = (&'e Expr, bool)>, checked: &Checked<'_>, issues: &mut Vec<Issue>) {
    let mut first: Option<Type<'_>> = None;
    for (item, optional) in items {
        let t = match (&checked.types[item.id], optional) {
            (Type::Optional(inner), true) => (**inner).clone(),
            (t, _) => t.clone(),
        };
        match &first {
            None => first = Some(t),
            Some(first) if first.same(&t) => {}
            Some(first) => {
                issues.push(Issue::new(item.at, format!("expected type '{first}' but found '{t}'")));
                return;
            }
        }
    }
}

fn call_literals(
    expr: &Expr,
    function: &str,
    target: Option<&Expr>,
    args: &[Expr],
    checked: &Checked<'_>,
    issues: &mut Vec<Issue>,
) {
    let text = |arg: Option<&Expr>| match arg.map(|arg| &arg.node) {
        Some(Node::Literal(Literal::Str(text))) => Some(text.clone()),
        _ => None,
    };
    let (arg, valid) = match (function, target.is_some()) {
        ("duration" | "timestamp", false) => (args.first(), args.first().is_none_or(|arg| converts(function, arg))),
        ("matches", method) => {
            let pattern = if method { args.first() } else { args.get(1) };
            (pattern, text(pattern).is_none_or(|text| regexp::compile(&text).is_ok()))
        }
        _ => (None, true),
    };
    if let Some(arg) = arg.filter(|_| !valid) {
        issues.push(Issue::new(arg.at, format!("invalid {function} argument")));
    }
    if let ("format", Some(template), [Expr { node: Node::List { items, .. }, .. }]) = (function, text(target), args) {
        format_literal(expr, &template, items, checked, issues);
    }
}

/// Whether a literal can be converted so; what is no literal is asked when the rule runs.
fn converts(function: &str, arg: &Expr) -> bool {
    let Node::Literal(literal) = &arg.node else { return true };
    let mut meter = Meter { spent: 0, limit: LIMIT };
    library::function(function, false).is_none_or(|function| function(&mut meter, &[constant(literal)]).is_ok())
}

/// Whether a template and the list it is filled with fit, as far as their types tell.
fn format_literal(expr: &Expr, template: &str, items: &[Expr], checked: &Checked<'_>, issues: &mut Vec<Issue>) {
    let mut at = expr.at;
    let outcome = format::walk(template, items.len(), &mut |part| {
        let format::Part::Clause(clause, i) = part else { return Ok(()) };
        match misfit_in(clause, &items[i], checked) {
            None => Ok(()),
            Some((place, given)) => {
                at = place;
                Err(format!("error during formatting: {}", format::misfit(clause, &given)))
            }
        }
    });
    match outcome {
        Err(words) => issues.push(Issue::new(at, words)),
        Ok(used) if items.len() > used => {
            let words = format!("too many arguments supplied to string.format (expected {used}, got {})", items.len());
            issues.push(Issue::new(expr.at, words));
        }
        Ok(_) => {}
    }
}

/// Where something stands that cannot go into a clause, and the name of its type. A text takes lists and maps of what it
/// takes itself.
fn misfit_in(clause: format::Clause, expr: &Expr, checked: &Checked<'_>) -> Option<(usize, String)> {
    let inside: Vec<&Expr> = match (clause, &expr.node) {
        (format::Clause::Text, Node::List { items, .. }) => items.iter().collect(),
        (format::Clause::Text, Node::Map(entries)) => {
            entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect()
        }
        _ => Vec::new(),
    };
    let deeper = inside.into_iter().find_map(|part| misfit_in(clause, part, checked));
    deeper.or_else(|| misfit(clause, &checked.types[expr.id]).map(|given| (expr.at, given)))
}

/// The name of a type that cannot go into a clause.
fn misfit(clause: format::Clause, t: &Type<'_>) -> Option<String> {
    let fits = match (clause, t) {
        (_, Type::Dyn) => true,
        (format::Clause::Text, Type::Object(_) | Type::Named(_) | Type::Optional(_)) => false,
        (format::Clause::Text, _) => true,
        (format::Clause::Decimal | format::Clause::Octal, Type::Int | Type::Uint) => true,
        (format::Clause::Fixed(_) | format::Clause::Scientific(_), Type::Double | Type::Str) => true,
        (format::Clause::Binary, Type::Int | Type::Uint | Type::Bool) => true,
        (format::Clause::Hex { .. }, Type::Int | Type::Uint | Type::Str | Type::Bytes) => true,
        _ => false,
    };
    (!fits).then(|| match t {
        Type::List(_) => "list".to_owned(),
        Type::Map(..) => "map".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Null => "null_type".to_owned(),
        other => other.to_string(),
    })
}
