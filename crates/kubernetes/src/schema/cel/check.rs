//! Whether a rule makes sense: every name declared, every call with arguments it takes.

use std::{collections::HashMap, sync::Arc};

use super::{
    ast::{Expr, Fold, Issue, Literal, Node},
    types::{FUNCTIONS, Object, Overload, Type},
};
use crate::value::Text;

/// What checking a rule found out.
#[derive(Debug)]
pub(super) struct Checked<'a> {
    /// The type of each expression, by id.
    pub types: Vec<Type<'a>>,
    /// The overloads each call may turn out to be, by id.
    pub overloads: HashMap<usize, Vec<&'static str>>,
    /// Expressions that are names of types, by id.
    pub type_names: HashMap<usize, &'static str>,
    /// Whether the rule looks at the old value.
    pub uses_old: bool,
}

/// Checks a rule about a value of type `self_type`. `old_type` is that of `oldSelf`.
pub(super) fn check<'a>(
    expr: &Expr,
    count: usize,
    self_type: &Type<'a>,
    old_type: &Type<'a>,
) -> Result<Checked<'a>, Vec<Issue>> {
    let mut checker = Checker {
        types: vec![Type::Error; count],
        overloads: HashMap::new(),
        type_names: HashMap::new(),
        uses_old: false,
        scopes: vec![(Text::from("self"), self_type.clone()), (Text::from("oldSelf"), old_type.clone())],
        known: HashMap::new(),
        fresh: 0,
        issues: Vec::new(),
    };
    checker.check(expr);
    if !checker.issues.is_empty() {
        return Err(checker.issues);
    }
    let Checker { types, overloads, type_names, uses_old, known, .. } = &checker;
    let types = types.iter().map(|t| substitute(known, t, true)).collect();
    Ok(Checked { types, overloads: overloads.clone(), type_names: type_names.clone(), uses_old: *uses_old })
}

type Known<'a> = HashMap<usize, Type<'a>>;

struct Checker<'a> {
    types: Vec<Type<'a>>,
    overloads: HashMap<usize, Vec<&'static str>>,
    type_names: HashMap<usize, &'static str>,
    uses_old: bool,
    /// The variables in sight, innermost last.
    scopes: Vec<(Text, Type<'a>)>,
    /// What free types turned out to be.
    known: Known<'a>,
    fresh: usize,
    issues: Vec<Issue>,
}

/// The names of types that stand for themselves.
fn type_name(name: &str) -> Option<(&'static str, Type<'static>)> {
    let any = |name: &'static str| Arc::new(Type::Param(name));
    Some(match name.strip_prefix('.').unwrap_or(name) {
        "bool" => ("bool", Type::Bool),
        "bytes" => ("bytes", Type::Bytes),
        "double" => ("double", Type::Double),
        "google.protobuf.Duration" => ("google.protobuf.Duration", Type::Duration),
        "int" => ("int", Type::Int),
        "list" => ("list", Type::List(any("A"))),
        "map" => ("map", Type::Map(any("A"), any("B"))),
        "null_type" => ("null_type", Type::Null),
        "string" => ("string", Type::Str),
        "google.protobuf.Timestamp" => ("google.protobuf.Timestamp", Type::Timestamp),
        "type" => ("type", Type::Kind(None)),
        "uint" => ("uint", Type::Uint),
        _ => return None,
    })
}

impl<'a> Checker<'a> {
    fn issue(&mut self, at: usize, words: String) {
        self.issues.push(Issue::new(at, words));
    }

    fn set(&mut self, expr: &Expr, t: Type<'a>) {
        self.types[expr.id] = t;
    }

    fn of(&self, expr: &Expr) -> Type<'a> {
        self.types[expr.id].clone()
    }

    fn check(&mut self, expr: &Expr) {
        match &expr.node {
            Node::Literal(literal) => {
                let t = match literal {
                    Literal::Null => Type::Null,
                    Literal::Bool(_) => Type::Bool,
                    Literal::Int(_) => Type::Int,
                    Literal::Uint(_) => Type::Uint,
                    Literal::Double(_) => Type::Double,
                    Literal::Str(_) => Type::Str,
                    Literal::Bytes(_) => Type::Bytes,
                };
                self.set(expr, t);
            }
            Node::Ident(name) => {
                if !self.name(expr, name) {
                    self.set(expr, Type::Error);
                    self.undeclared(expr.at, name);
                }
            }
            Node::Select { operand, field, test } => {
                let qualified = if *test { None } else { expr.qualified_name() };
                if qualified.is_some_and(|name| self.name(expr, &name)) {
                    return;
                }
                let t = self.field(expr, operand, field, false);
                let t = if *test { Type::Bool } else { substitute(&self.known, &t, false) };
                self.set(expr, t);
            }
            Node::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Node::List { items, optional } => self.list(expr, items, optional),
            Node::Map(entries) => {
                let (mut keys, mut values) = (None, None);
                for entry in entries {
                    self.check(&entry.key);
                    keys = Some(self.join(keys, self.of(&entry.key)));
                    self.check(&entry.value);
                    let value = self.unwrapped(&entry.value, entry.optional);
                    values = Some(self.join(values, value));
                }
                let keys = keys.unwrap_or_else(|| self.var());
                let values = values.unwrap_or_else(|| self.var());
                self.set(expr, Type::Map(Arc::new(keys), Arc::new(values)));
            }
            Node::Struct { name, fields } => {
                for (_, value, _) in fields {
                    self.check(value);
                }
                self.set(expr, Type::Error);
                match self.variable(name) {
                    Some(t) => {
                        self.issue(expr.at, format!("'{t}' is not a type"));
                        for (_, _, colon) in fields {
                            self.issue(*colon, format!("unexpected failed resolution of '{name}'"));
                        }
                    }
                    None => self.undeclared(expr.at, name),
                }
            }
            Node::Fold(fold) => self.fold(expr, fold),
        }
    }

    fn undeclared(&mut self, at: usize, name: &str) {
        self.issue(at, format!("undeclared reference to '{name}' (in container '')"));
    }

    fn variable(&self, name: &str) -> Option<Type<'a>> {
        let name = name.strip_prefix('.').unwrap_or(name);
        self.scopes.iter().rev().find(|(known, _)| known == name).map(|(_, t)| t.clone())
    }

    /// Types an expression that is a variable or the name of a type.
    fn name(&mut self, expr: &Expr, name: &str) -> bool {
        if let Some(t) = self.variable(name) {
            self.uses_old |= name.trim_start_matches('.') == "oldSelf" && !self.is_shadowed("oldSelf");
            self.set(expr, t);
            return true;
        }
        let Some((name, t)) = type_name(name) else { return false };
        let t = self.instance(&t, &mut HashMap::new());
        self.type_names.insert(expr.id, name);
        self.set(expr, Type::Kind(Some(Arc::new(t))));
        true
    }

    fn is_shadowed(&self, name: &str) -> bool {
        self.scopes.iter().filter(|(known, _)| known == name).count() > 1
    }

    fn field(&mut self, expr: &Expr, operand: &Expr, field: &str, optional: bool) -> Type<'a> {
        self.check(operand);
        let operand = substitute(&self.known, &self.of(operand), false);
        let (target, was_optional) = match &operand {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let result = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => self.object_field(expr, object, field),
            Type::Var(_) => {
                self.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            // The libraries' types have no fields.
            Type::Named(name) if !name.starts_with("net.") => {
                self.issue(expr.at, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            other => {
                self.issue(expr.at, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if was_optional || optional { Type::Optional(Arc::new(result)) } else { result }
    }

    fn object_field(&mut self, expr: &Expr, object: &Object<'a>, field: &str) -> Type<'a> {
        object.field(field).unwrap_or_else(|| {
            self.issue(expr.at, format!("undefined field '{field}'"));
            Type::Error
        })
    }

    fn list(&mut self, expr: &Expr, items: &[Expr], optional: &[bool]) {
        let mut joined = None;
        for (i, item) in items.iter().enumerate() {
            self.check(item);
            let t = self.unwrapped(item, optional.get(i).copied().unwrap_or(false));
            joined = Some(self.join(joined, t));
        }
        let item = joined.unwrap_or_else(|| self.var());
        self.set(expr, Type::List(Arc::new(item)));
    }

    /// The type of an item or value that is there only if the optional behind it has one.
    fn unwrapped(&mut self, expr: &Expr, optional: bool) -> Type<'a> {
        match (self.of(expr), optional) {
            (Type::Optional(inner), true) => (*inner).clone(),
            (t, true) if !t.is_dyn() => {
                self.issue(expr.at, format!("expected type 'optional_type({t})' but found '{t}'"));
                t
            }
            (t, _) => t,
        }
    }

    fn join(&mut self, before: Option<Type<'a>>, t: Type<'a>) -> Type<'a> {
        let Some(before) = before else { return t };
        // Whether a literal may mix types is asked when all types are known.
        if self.assignable(&before, &t) { most_general(before, t) } else { Type::Dyn }
    }

    fn var(&mut self) -> Type<'a> {
        self.fresh += 1;
        Type::Var(self.fresh - 1)
    }

    fn call(&mut self, expr: &Expr, function: &Text, target: Option<&Expr>, args: &[Expr]) {
        if function == "_?._" {
            let field = match args {
                [_, Expr { node: Node::Literal(Literal::Str(field)), .. }] => field.clone(),
                _ => Text::new(),
            };
            let t = self.field(expr, &args[0], &field, true);
            let t = substitute(&self.known, &t, false);
            self.overloads.insert(expr.id, vec!["select_optional_field"]);
            self.set(expr, t);
            return;
        }
        for arg in args {
            self.check(arg);
        }
        let Some(target) = target else {
            match FUNCTIONS.get(function.strip_prefix('.').unwrap_or(function)) {
                Some(overloads) => self.resolve(expr, function, overloads, None, args),
                None => {
                    self.undeclared(expr.at, function);
                    self.set(expr, Type::Error);
                }
            }
            return;
        };
        // `a.b.c()` may be the function `a.b.c`.
        if let Some(prefix) = target.qualified_name() {
            let name = format!("{prefix}.{function}");
            if let Some(overloads) = FUNCTIONS.get(name.as_str()) {
                self.resolve(expr, &name, overloads, None, args);
                return;
            }
        }
        self.check(target);
        match FUNCTIONS.get(function.as_str()) {
            Some(overloads) => self.resolve(expr, function, overloads, Some(target), args),
            None => {
                self.set(expr, Type::Error);
                self.undeclared(expr.at, function);
            }
        }
    }

    fn resolve(
        &mut self,
        expr: &Expr,
        name: &str,
        overloads: &'static [Overload],
        target: Option<&Expr>,
        args: &[Expr],
    ) {
        let given: Vec<Type<'a>> = target.into_iter().chain(args).map(|arg| self.of(arg)).collect();
        if matches!(name, "_&&_" | "_||_") {
            let mut wrong = false;
            for (arg, t) in args.iter().zip(&given) {
                if !self.assignable(t, &Type::Bool) {
                    self.issue(arg.at, format!("expected type 'bool' but found '{t}'"));
                    wrong = true;
                }
            }
            self.set(expr, if wrong { Type::Error } else { Type::Bool });
            return;
        }
        let mut result: Option<Type<'a>> = None;
        let mut found = Vec::new();
        for overload in overloads.iter().filter(|overload| overload.method == target.is_some()) {
            let mut params = HashMap::new();
            let wanted: Vec<Type<'a>> = overload.args.iter().map(|arg| self.instance(arg, &mut params)).collect();
            let returns = self.instance(&overload.result, &mut params);
            if !self.assignable_all(&given, &wanted) {
                continue;
            }
            found.push(overload.id);
            let returns = substitute(&self.known, &returns, false);
            result = Some(match result {
                None => returns,
                Some(before) if !before.is_dyn() && !returns.same(&before) => Type::Dyn,
                Some(before) => before,
            });
        }
        let Some(result) = result else {
            let shown: Vec<String> = given.iter().map(|t| substitute(&self.known, t, true).to_string()).collect();
            let signature = match (target, shown.split_first()) {
                (Some(_), Some((first, rest))) => format!("{first}.({})", rest.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            self.issue(expr.at, format!("found no matching overload for '{name}' applied to '{signature}'"));
            self.set(expr, Type::Error);
            return;
        };
        self.overloads.insert(expr.id, found);
        self.set(expr, result);
    }

    /// A type of a signature with fresh types for its parameters.
    fn instance(&mut self, t: &Type<'static>, params: &mut HashMap<&'static str, usize>) -> Type<'a> {
        match t {
            Type::Param(name) => {
                let fresh = &mut self.fresh;
                Type::Var(*params.entry(name).or_insert_with(|| {
                    *fresh += 1;
                    *fresh - 1
                }))
            }
            Type::List(item) => Type::List(Arc::new(self.instance(item, params))),
            Type::Optional(item) => Type::Optional(Arc::new(self.instance(item, params))),
            Type::Map(key, value) => {
                Type::Map(Arc::new(self.instance(key, params)), Arc::new(self.instance(value, params)))
            }
            Type::Kind(Some(inner)) => Type::Kind(Some(Arc::new(self.instance(inner, params)))),
            other => other.clone(),
        }
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) {
        self.check(&fold.range);
        self.check(&fold.init);
        let range = substitute(&self.known, &self.of(&fold.range), false);
        let accu = self.of(&fold.init);
        let depth = self.scopes.len();
        self.scopes.push((fold.accu.clone(), accu.clone()));
        let (first, second) = match &range {
            Type::List(item) if fold.var2.is_some() => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Error),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let words = "cannot be range of a comprehension (must be list, map, or dynamic)";
                self.issue(fold.range.at, format!("expression of type '{other}' {words}"));
                (Type::Error, Type::Error)
            }
        };
        self.scopes.push((fold.var.clone(), first));
        if let Some(var2) = &fold.var2 {
            self.scopes.push((var2.clone(), second));
        }
        self.check(&fold.condition);
        self.assert_type(&fold.condition, &Type::Bool);
        self.check(&fold.step);
        self.assert_type(&fold.step, &accu);
        self.scopes.truncate(depth + 1);
        self.check(&fold.result);
        self.scopes.truncate(depth);
        let t = substitute(&self.known, &self.of(&fold.result), false);
        self.set(expr, t);
    }

    fn assert_type(&mut self, expr: &Expr, wanted: &Type<'a>) {
        let t = self.of(expr);
        if !self.assignable(wanted, &t) {
            self.issue(expr.at, format!("expected type '{wanted}' but found '{t}'"));
        }
    }

    fn assignable(&mut self, a: &Type<'a>, b: &Type<'a>) -> bool {
        let mut known = self.known.clone();
        let fits = assignable(&mut known, a, b);
        if fits {
            self.known = known;
        }
        fits
    }

    fn assignable_all(&mut self, given: &[Type<'a>], wanted: &[Type<'a>]) -> bool {
        let mut known = self.known.clone();
        let fits = given.len() == wanted.len() && given.iter().zip(wanted).all(|(a, b)| assignable(&mut known, a, b));
        if fits {
            self.known = known;
        }
        fits
    }
}

fn assignable<'a>(known: &mut Known<'a>, a: &Type<'a>, b: &Type<'a>) -> bool {
    if let Type::Var(var) = b {
        match settle(known, a, *var, b) {
            (true, _) => return true,
            (false, true) => return false,
            (false, false) => {}
        }
    }
    if let Type::Var(var) = a {
        return settle(known, b, *var, a).0;
    }
    let nullable = |t: &Type<'_>| {
        matches!(
            t,
            Type::Optional(_) | Type::Named(_) | Type::Object(_) | Type::Duration | Type::Timestamp | Type::Null
        )
    };
    match (a, b) {
        (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) => true,
        (Type::Null, other) | (other, Type::Null) => nullable(other),
        (Type::Kind(_), Type::Kind(_)) => true,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => assignable(known, a, b),
        (Type::Map(a, b), Type::Map(c, d)) => assignable(known, a, c) && assignable(known, b, d),
        _ => a.same(b),
    }
}

/// Whether a free type may be `t`: whether it fits, and whether it was known before.
fn settle<'a>(known: &mut Known<'a>, t: &Type<'a>, var: usize, free: &Type<'a>) -> (bool, bool) {
    if t.same(free) {
        return (true, true);
    }
    if let Some(before) = known.get(&var).cloned() {
        if t.same(&before) {
            return (true, true);
        }
        if assignable(known, t, &before) {
            let general = most_general(t.clone(), before);
            if !mentions(known, var, &general) {
                known.insert(var, general);
            }
            return (true, true);
        }
        return (false, true);
    }
    if !mentions(known, var, t) {
        known.insert(var, t.clone());
        return (true, false);
    }
    (false, false)
}

/// Whether a type contains a free type, however deep.
fn mentions(known: &Known<'_>, var: usize, t: &Type<'_>) -> bool {
    match t {
        Type::Var(other) if *other == var => true,
        Type::Var(other) => known.get(other).is_some_and(|t| mentions(known, var, t)),
        other => other.parameters().into_iter().any(|t| mentions(known, var, t)),
    }
}

fn most_general<'a>(a: Type<'a>, b: Type<'a>) -> Type<'a> {
    if less_specific(&a, &b) { a } else { b }
}

fn less_specific(a: &Type<'_>, b: &Type<'_>) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Var(_), _) => true,
        (_, Type::Dyn | Type::Var(_)) => false,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => less_specific(a, b),
        (Type::Map(a, b), Type::Map(c, d)) => less_specific(a, c) && less_specific(b, d),
        (Type::Kind(_), Type::Kind(_)) => true,
        _ => a.same(b),
    }
}

/// A type with what is known of its free parts put in; what is unknown becomes dynamic if `settled`.
fn substitute<'a>(known: &Known<'a>, t: &Type<'a>, settled: bool) -> Type<'a> {
    let inner = |t: &Arc<Type<'a>>| Arc::new(substitute(known, t, settled));
    match t {
        Type::Var(var) => match known.get(var) {
            Some(t) => substitute(known, t, settled),
            None if settled => Type::Dyn,
            None => t.clone(),
        },
        Type::List(item) => Type::List(inner(item)),
        Type::Optional(item) => Type::Optional(inner(item)),
        Type::Map(key, value) => Type::Map(inner(key), inner(value)),
        Type::Kind(Some(t)) => Type::Kind(Some(inner(t))),
        other => other.clone(),
    }
}
