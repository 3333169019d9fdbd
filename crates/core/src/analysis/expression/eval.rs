//! What an expression comes to, for a value that was measured.
//!
//! Bounded: lists that an expression makes share one budget, and its depth was bounded when it was read. Never reads a
//! clock: the time is given.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use super::{
    ast::{Kind, Node},
    check, functions,
    parse::parse,
    value::{Element, Val},
};
use crate::{
    kubernetes::{schema::regexp, status::go_quoted},
    model::go_number,
};

/// How many elements an expression may make in all.
const BUDGET: usize = 1_000_000;
/// The name of all that an expression may know.
pub(super) const ENVIRONMENT: &str = "$env";
/// The functions that Argo Rollouts adds to the language.
const FUNCTIONS: [&str; 6] = ["asInt", "asFloat", "isNaN", "isInf", "isNil", "default"];

/// What an expression may know.
#[derive(Debug, Clone)]
pub struct Env {
    /// What was measured.
    pub result: Val,
    /// When.
    pub now: Timestamp,
}

impl Env {
    pub(super) fn is_function(&self, name: &str) -> bool {
        FUNCTIONS.contains(&name)
    }
}

/// What an expression comes to; or why it comes to nothing, in the words of the library as far as they are known.
pub fn evaluate(text: &str, env: &Env) -> Result<Val, String> {
    let tree = parse(text).map_err(|mistake| mistake.message)?;
    check::check(&tree, env)?;
    Machine { env, budget: BUDGET, variables: Vec::new(), scopes: Vec::new() }.node(&tree)
}

/// Whether a condition holds. What was not measured is said to be missing, whatever the expression stumbled over.
pub fn holds(condition: &str, env: &Env) -> Result<bool, String> {
    let missing = || "metric result is nil or empty: no data returned from the metric provider".to_owned();
    match evaluate(condition, env) {
        Ok(Val::Bool(holds)) => Ok(holds),
        Ok(other) => Err(format!("expected bool, but got {}", other.type_name())),
        Err(problem) => Err(problem),
    }
    .map_err(|problem| if env.result.is_no_data() { missing() } else { problem })
}

/// The scope of a predicate.
struct Scope {
    element: Val,
    accumulator: Val,
    index: i64,
}

pub(super) struct Machine<'e> {
    pub(super) env: &'e Env,
    budget: usize,
    variables: Vec<(String, Val)>,
    scopes: Vec<Scope>,
}

pub(super) type Outcome = Result<Val, String>;

impl Machine<'_> {
    /// Accounts for so many elements.
    pub(super) fn spend(&mut self, elements: usize) -> Result<(), String> {
        match self.budget.checked_sub(elements).filter(|left| *left > 0) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err("memory budget exceeded".to_owned()),
        }
    }

    pub(super) fn node(&mut self, node: &Node) -> Outcome {
        match &node.kind {
            Kind::Nil => Ok(Val::Nil),
            Kind::Bool(flag) => Ok(Val::Bool(*flag)),
            Kind::Int(number) => Ok(Val::Int(*number)),
            Kind::Float(number) => Ok(Val::Float(*number)),
            Kind::Text(text) => Ok(Val::text(text)),
            Kind::Name(name) => self.name(name),
            Kind::Pointer(name) => self.pointer(name),
            Kind::Unary(operator, operand) => self.unary(operator, operand),
            Kind::Binary(..) => self.binary(node),
            Kind::Chain(inner) => match self.node(inner) {
                Err(problem) if problem == NOTHING => Ok(Val::Nil),
                outcome => outcome,
            },
            Kind::Member { of, property, optional } => {
                let of = self.node(of)?;
                if *optional && matches!(of, Val::Nil) {
                    return Err(NOTHING.to_owned());
                }
                let property = self.node(property)?;
                member(&of, &property)
            }
            Kind::Slice { of, from, to } => self.slice(of, from.as_deref(), to.as_deref()),
            Kind::Call(callee, arguments) => self.call(callee, arguments),
            Kind::Builtin(name, arguments) => self.builtin(name, arguments),
            Kind::Predicate(inner) => self.node(inner),
            Kind::Conditional(condition, yes, no) => match self.node(condition)? {
                Val::Bool(true) => self.node(yes),
                Val::Bool(false) => self.node(no),
                other => Err(conversion(&other, "bool")),
            },
            Kind::Let(name, value, rest) => {
                let value = self.node(value)?;
                self.variables.push((name.clone(), value));
                let rest = self.node(rest);
                self.variables.pop();
                rest
            }
            Kind::Sequence(nodes) => nodes.iter().try_fold(Val::Nil, |_, node| self.node(node)),
            Kind::List(nodes) => {
                self.spend(nodes.len())?;
                let items: Result<Vec<Val>, String> = nodes.iter().map(|node| self.node(node)).collect();
                Ok(Val::list(items?))
            }
            Kind::Map(pairs) => {
                self.spend(pairs.len())?;
                let mut map = BTreeMap::new();
                for (key, value) in pairs {
                    let key = self.node(key)?;
                    map.insert(key.print(), self.node(value)?);
                }
                Ok(Val::Map(Arc::new(map)))
            }
        }
    }

    fn name(&self, name: &str) -> Outcome {
        if let Some((_, value)) = self.variables.iter().rev().find(|(known, _)| known == name) {
            return Ok(value.clone());
        }
        match name {
            "result" => Ok(self.env.result.clone()),
            ENVIRONMENT => Ok(Val::Map(Arc::new([("result".to_owned(), self.env.result.clone())].into()))),
            _ => Err(format!("unknown name {name}")),
        }
    }

    fn pointer(&self, name: &str) -> Outcome {
        let scope = self.scopes.last().ok_or_else(|| "there is no element here".to_owned())?;
        Ok(match name {
            "acc" => scope.accumulator.clone(),
            "index" => Val::Int(scope.index),
            _ => scope.element.clone(),
        })
    }

    fn unary(&mut self, operator: &str, operand: &Node) -> Outcome {
        match (operator, self.node(operand)?) {
            ("!" | "not", Val::Bool(flag)) => Ok(Val::Bool(!flag)),
            ("!" | "not", other) => Err(conversion(&other, "bool")),
            ("-", Val::Int(number)) => Ok(Val::Int(number.wrapping_neg())),
            ("-", Val::Float(number)) => Ok(Val::Float(-number)),
            ("-", Val::Span(span)) => Ok(Val::Span(-span)),
            ("+", value @ (Val::Int(_) | Val::Float(_))) => Ok(value),
            (operator, other) => Err(format!("invalid operation: {operator} {}", other.type_name())),
        }
    }

    /// Chains are long rather than deep: the left side is gone down without a call for each.
    fn binary(&mut self, node: &Node) -> Outcome {
        let (mut chain, mut at) = (Vec::new(), node);
        while let Kind::Binary(operator, left, right) = &at.kind {
            chain.push((*operator, right));
            at = left;
        }
        // A member of nothing is nothing to `??`, which stands at the left end if anywhere.
        let mut value = self.node(at)?;
        for (operator, right) in chain.into_iter().rev() {
            value = match (operator, value) {
                ("&&" | "and", Val::Bool(false)) => Val::Bool(false),
                ("||" | "or", Val::Bool(true)) => Val::Bool(true),
                ("&&" | "and" | "||" | "or", Val::Bool(_)) => match self.node(right)? {
                    Val::Bool(flag) => Val::Bool(flag),
                    other => return Err(conversion(&other, "bool")),
                },
                ("&&" | "and" | "||" | "or", other) => return Err(conversion(&other, "bool")),
                ("??", Val::Nil) => self.node(right)?,
                ("??", value) => value,
                (operator, left) => {
                    let right = self.node(right)?;
                    self.operate(operator, &left, &right)?
                }
            };
        }
        Ok(value)
    }

    fn operate(&mut self, operator: &str, left: &Val, right: &Val) -> Outcome {
        let mismatch = || format!("invalid operation: {} {operator} {}", left.type_name(), right.type_name());
        let order = || left.order(right).map_err(|_| mismatch());
        match operator {
            "==" => Ok(Val::Bool(left.same(right))),
            "!=" => Ok(Val::Bool(!left.same(right))),
            "<" => Ok(Val::Bool(order()?.is_some_and(std::cmp::Ordering::is_lt))),
            ">" => Ok(Val::Bool(order()?.is_some_and(std::cmp::Ordering::is_gt))),
            "<=" => Ok(Val::Bool(order()?.is_some_and(std::cmp::Ordering::is_le))),
            ">=" => Ok(Val::Bool(order()?.is_some_and(std::cmp::Ordering::is_ge))),
            "in" => is_in(left, right).map(Val::Bool),
            "matches" | "contains" | "startsWith" | "endsWith" => texts(operator, left, right),
            ".." => {
                let (Val::Int(from), Val::Int(to)) = (left, right) else { return Err(mismatch()) };
                let count = usize::try_from(to.saturating_sub(*from).saturating_add(1)).unwrap_or_default();
                self.spend(count)?;
                Ok(Val::List(Arc::new((*from..=*to).map(Val::Int).collect()), Element::Int))
            }
            "%" => match (left, right) {
                (Val::Int(_), Val::Int(0)) => Err("integer divide by zero".to_owned()),
                (Val::Int(left), Val::Int(right)) => Ok(Val::Int(left.wrapping_rem(*right))),
                (_, _) => Err(mismatch()),
            },
            "**" | "^" | "/" => {
                let number =
                    |value: &Val| value.number().ok_or_else(|| format!("invalid operation: float({})", value.print()));
                let (left, right) = (number(left)?, number(right)?);
                Ok(Val::Float(if operator == "/" { left / right } else { left.powf(right) }))
            }
            _ => arithmetic(operator, left, right).ok_or_else(mismatch),
        }
    }

    fn slice(&mut self, of: &Node, from: Option<&Node>, to: Option<&Node>) -> Outcome {
        let of = self.node(of)?;
        let length = match &of {
            Val::Text(text) => text.len(),
            Val::List(items, _) => items.len(),
            other => return Err(format!("cannot slice {}", other.print())),
        };
        let mut bound = |node: Option<&Node>, otherwise: usize| -> Result<usize, String> {
            let Some(node) = node else { return Ok(otherwise) };
            let Val::Int(at) = self.node(node)? else { return Err("slice index is no integer".to_owned()) };
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            let at = if at < 0 { at.saturating_add(length).max(0) } else { at.min(length) };
            Ok(usize::try_from(at).unwrap_or_default())
        };
        let (from, to) = (bound(from, 0)?, bound(to, length)?);
        let from = from.min(to);
        Ok(match of {
            Val::Text(text) => Val::text(String::from_utf8_lossy(&text.as_bytes()[from..to])),
            Val::List(items, element) => Val::List(Arc::new(items[from..to].to_vec()), element),
            other => other,
        })
    }

    fn call(&mut self, callee: &Node, arguments: &[Node]) -> Outcome {
        if let Kind::Member { of, property, .. } = &callee.kind
            && let Kind::Text(method) = &property.kind
        {
            let of = self.node(of)?;
            let arguments: Result<Vec<Val>, String> = arguments.iter().map(|node| self.node(node)).collect();
            return functions::method(&of, method, &arguments?);
        }
        let Kind::Name(name) = &callee.kind else { return Err("this is no function".to_owned()) };
        let nodes = arguments;
        let arguments: Result<Vec<Val>, String> = arguments.iter().map(|node| self.node(node)).collect();
        let arguments = arguments?;
        let first = arguments.first().cloned().unwrap_or(Val::Nil);
        match name.as_str() {
            "asInt" => as_int(&first),
            "asFloat" => as_float(&first),
            "isNaN" | "isInf" => {
                // A whole number that stands there is taken for one with a fraction; one that is computed is not.
                let number = match &first {
                    Val::Float(number) => *number,
                    Val::Int(number) if nodes.first().is_some_and(has_literal) => *number as f64,
                    other => return Err(conversion(other, "float64")),
                };
                Ok(Val::Bool(if name == "isNaN" { number.is_nan() } else { number.is_infinite() }))
            }
            // Both look at the whole result, whatever they are given.
            "isNil" => Ok(Val::Bool(matches!(self.env.result, Val::Nil))),
            "default" if matches!(self.env.result, Val::Nil) => Ok(arguments.get(1).cloned().unwrap_or(Val::Nil)),
            "default" => Ok(self.env.result.clone()),
            _ => Err(format!("unknown name {name}")),
        }
    }

    fn builtin(&mut self, name: &str, arguments: &[Node]) -> Outcome {
        let Some((list, predicate)) = arguments.split_first().and_then(|(list, rest)| {
            let predicate = rest.iter().find(|node| matches!(node.kind, Kind::Predicate(_)))?;
            Some((list, predicate))
        }) else {
            let values: Result<Vec<Val>, String> = arguments.iter().map(|node| self.node(node)).collect();
            return functions::call(self, name, values?);
        };
        let list = self.node(list)?;
        let Val::List(items, _) = &list else {
            return Err(format!("builtin {name} takes only array (got {})", list.type_name()));
        };
        if name == "reduce" {
            return self.reduce(items, predicate, arguments.get(2));
        }
        let mut answers = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let answer = self.ask(predicate, item.clone(), Val::Nil, index)?;
            let is_last = matches!(
                (name, &answer),
                ("all", Val::Bool(false)) | ("any" | "find" | "findIndex", Val::Bool(true)) | ("none", Val::Bool(true))
            );
            answers.push(answer);
            if is_last {
                break;
            }
        }
        let descends = match arguments.get(2) {
            Some(order) => self.node(order)?.print() == "desc",
            None => false,
        };
        if matches!(name, "map" | "filter" | "groupBy" | "sortBy") {
            self.spend(answers.len())?;
        }
        functions::predicate(name, items, answers, descends)
    }

    fn reduce(&mut self, items: &[Val], predicate: &Node, start: Option<&Node>) -> Outcome {
        let start = match start {
            Some(node) => Some(self.node(node)?),
            None => None,
        };
        let skipped = usize::from(start.is_none());
        let mut accumulator = match start.or_else(|| items.first().cloned()) {
            Some(value) => value,
            None => return Err("reduce of empty array with no initial value".to_owned()),
        };
        for (index, item) in items.iter().enumerate().skip(skipped) {
            accumulator = self.ask(predicate, item.clone(), accumulator, index)?;
        }
        Ok(accumulator)
    }

    fn ask(&mut self, predicate: &Node, element: Val, accumulator: Val, index: usize) -> Outcome {
        self.scopes.push(Scope { element, accumulator, index: i64::try_from(index).unwrap_or(i64::MAX) });
        let answer = self.node(predicate);
        self.scopes.pop();
        answer
    }
}

/// How a member of nothing travels up to the end of its chain.
const NOTHING: &str = "\0nothing";

fn conversion(value: &Val, wanted: &str) -> String {
    match value {
        Val::Nil => format!("interface conversion: interface {{}} is nil, not {wanted}"),
        other => format!("interface conversion: interface {{}} is {}, not {wanted}", other.type_name()),
    }
}

/// A member of a value.
pub(super) fn member(of: &Val, property: &Val) -> Outcome {
    match (of, property) {
        (Val::Map(map), key) => Ok(map.get(&key.print()).cloned().unwrap_or(Val::Nil)),
        (Val::List(items, _), Val::Int(_) | Val::Float(_)) => {
            let index = match property {
                Val::Int(index) => *index,
                other => other.number().unwrap_or_default() as i64,
            };
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let place = if index < 0 { index.saturating_add(length) } else { index };
            let item = usize::try_from(place).ok().and_then(|place| items.get(place));
            item.cloned().ok_or_else(|| format!("index out of range: {index} (array length is {length})"))
        }
        (of, property) => Err(format!("cannot fetch {} from {}", property.print(), of.type_name())),
    }
}

fn is_in(left: &Val, right: &Val) -> Result<bool, String> {
    match right {
        Val::List(items, _) => Ok(items.iter().any(|item| item.same(left))),
        Val::Map(map) => match left {
            Val::Text(key) => Ok(map.contains_key(key.as_ref())),
            Val::Nil => Ok(false),
            other => Err(format!("cannot use {} as type string in map key", other.type_name())),
        },
        Val::Nil => Ok(false),
        other => Err(format!("operator \"in\" not defined on {}", other.type_name())),
    }
}

fn texts(operator: &str, left: &Val, right: &Val) -> Outcome {
    if matches!(left, Val::Nil) || matches!(right, Val::Nil) {
        return Ok(Val::Bool(false));
    }
    let (Val::Text(left), Val::Text(right)) = (left, right) else {
        return Err(conversion(if matches!(left, Val::Text(_)) { right } else { left }, "string"));
    };
    Ok(Val::Bool(match operator {
        "contains" => left.contains(right.as_ref()),
        "startsWith" => left.starts_with(right.as_ref()),
        "endsWith" => left.ends_with(right.as_ref()),
        _ => {
            let regex = regexp::compile(right).map_err(|error| format!("error parsing regexp: {error}: `{right}`"))?;
            regex.is_match(left)
        }
    }))
}

/// `+`, `-` and `*`.
pub(super) fn arithmetic(operator: &str, left: &Val, right: &Val) -> Option<Val> {
    let whole = |a: i64, b: i64| match operator {
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        _ => a.wrapping_mul(b),
    };
    let times = |span: SignedDuration, number: &Val| {
        let seconds = span.as_secs_f64() * number.number()?;
        SignedDuration::try_from_secs_f64(seconds).ok().map(Val::Span)
    };
    match (operator, left, right) {
        (_, Val::Int(a), Val::Int(b)) => Some(Val::Int(whole(*a, *b))),
        ("+", Val::Text(a), Val::Text(b)) => Some(Val::text(format!("{a}{b}"))),
        ("+", Val::Moment(at), Val::Span(span)) | ("+", Val::Span(span), Val::Moment(at)) => {
            at.saturating_add(*span).ok().map(Val::Moment)
        }
        ("-", Val::Moment(at), Val::Span(span)) => at.saturating_sub(*span).ok().map(Val::Moment),
        ("-", Val::Moment(a), Val::Moment(b)) => Some(Val::Span(a.duration_since(*b))),
        ("+", Val::Span(a), Val::Span(b)) => a.checked_add(*b).map(Val::Span),
        ("-", Val::Span(a), Val::Span(b)) => a.checked_sub(*b).map(Val::Span),
        ("*", Val::Span(span), number) | ("*", number, Val::Span(span)) => times(*span, number),
        (operator, a, b) => {
            let (a, b) = (a.number()?, b.number()?);
            Some(Val::Float(match operator {
                "+" => a + b,
                "-" => a - b,
                _ => a * b,
            }))
        }
    }
}

/// Whether a whole number stands in a sum, a difference or a product: where a fraction is wanted it becomes one.
fn has_literal(node: &Node) -> bool {
    match &node.kind {
        Kind::Int(_) => true,
        Kind::Unary(_, operand) => has_literal(operand),
        Kind::Binary(operator, left, right) => {
            ["+", "-", "*"].contains(operator) && (has_literal(left) || has_literal(right))
        }
        _ => false,
    }
}

fn as_int(value: &Val) -> Outcome {
    match value {
        Val::Int(number) => Ok(Val::Int(*number)),
        Val::Float(number) => Ok(Val::Int(functions::whole(*number))),
        Val::Text(text) => {
            let problem = |why| format!("strconv.ParseInt: parsing {}: {why}", go_quoted(text));
            go_number::int(text).map(Val::Int).map_err(problem)
        }
        other => Err(format!("asInt() not supported on {} {}", other.type_name(), other.print())),
    }
}

fn as_float(value: &Val) -> Outcome {
    match value {
        Val::Int(number) => Ok(Val::Float(*number as f64)),
        Val::Float(number) => Ok(Val::Float(*number)),
        Val::Text(text) => {
            let problem = |why| format!("strconv.ParseFloat: parsing {}: {why}", go_quoted(text));
            go_number::float(text).map(Val::Float).map_err(problem)
        }
        other => Err(format!("asFloat() not supported on {} {}", other.type_name(), other.print())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(result: Val) -> Env {
        Env { result, now: "2026-01-02T03:04:05Z".parse().unwrap() }
    }

    #[track_caller]
    fn check(condition: &str, result: Val, expected: Result<bool, &str>) {
        assert_eq!(holds(condition, &at(result)), expected.map_err(str::to_owned), "{condition}");
    }

    #[test]
    fn conditions_are_about_what_was_measured() {
        let map = || Val::of_json(&crate::value!({"ok": true, "rate": 0.9, "list": [1, 2, 3]}));
        for condition in [
            "result.ok && result.rate >= 0.90",
            "len(result.list) == 3 and result.list[-1] == 3",
            "all(result.list, # > 0) && none(result.list, # > 3)",
            "sum(result.list) == 6 ? true : false",
            "result.missing?.deeper == nil",
            "(result.missing ?? 5) == 5",
            "let n = len(result.list); n in 1..3",
            "result.list | filter(# > 1) | len() == 2",
            "now() - duration(\"1h\") < now()",
            "\"a\" + \"b\" matches \"^ab$\"",
        ] {
            check(condition, map(), Ok(true));
        }
        check("result[0] > 0.5", Val::floats(&[0.6]), Ok(true));
        check("isNaN(result)", Val::Float(f64::NAN), Ok(true));
        check("default(result, 0) == 0", Val::Nil, Ok(true));
    }

    #[test]
    fn what_cannot_be_right_is_refused_even_where_it_is_not_reached() {
        check("true || nobody > 1", Val::Float(1.0), Err("unknown name nobody"));
        let words = "invalid operation: % (mismatched types float64 and int)";
        check("true || result % 2 == 0", Val::Float(1.0), Err(words));
        check("result", Val::Float(1.0), Err("expected bool, but got float64"));
        let missing = "metric result is nil or empty: no data returned from the metric provider";
        check("result[0] > 1", Val::floats(&[]), Err(missing));
        check("len(1..1000000) > 0", Val::Float(1.0), Err("memory budget exceeded"));
    }

    #[test]
    fn long_chains_are_no_deep_ones() {
        let condition = vec!["result > 0"; 2000].join(" && ");
        check(&condition, Val::Float(1.0), Ok(true));
    }

    proptest! {
        #[test]
        fn no_expression_panics(text in "[a-z0-9 .,()\\[\\]{}#?:+*/<>=!&|\"'-]{0,40}") {
            for result in [Val::Nil, Val::Float(1.5), Val::floats(&[1.0]), Val::text("x")] {
                let _ = holds(&text, &at(result));
            }
        }

        #[test]
        fn no_function_panics(
            list in "(\\[1, 2, \"a\"\\]|result|\"x\"|nil|1.5|\\{\"a\": 1\\}|now\\(\\))",
            number in -3_i64..70,
        ) {
            let names = "len type abs ceil floor round int float string trim trimPrefix trimSuffix upper lower split \
                splitAfter replace repeat join indexOf lastIndexOf hasPrefix hasSuffix max min mean median toJSON fromJSON \
                toBase64 fromBase64 now duration date timezone first last get take keys values toPairs fromPairs reverse \
                uniq concat flatten sort sum count bitand bitor bitxor bitnand bitnot bitshl bitshr bitushr";
            for name in names.split_whitespace() {
                for rest in ["".to_owned(), format!(", {number}"), format!(", {list}"), ", \"\"".to_owned()] {
                    let _ = evaluate(&format!("{name}({list}{rest})"), &at(Val::floats(&[1.0, f64::NAN])));
                }
            }
        }
    }
}
