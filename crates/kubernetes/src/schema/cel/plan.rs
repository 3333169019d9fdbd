//! A checked rule made ready to run, and its run: names resolved, functions found, patterns compiled, cost counted.

use std::{collections::BTreeMap, sync::Arc};

use regex::Regex;

use super::{
    ast::{Expr, Literal, Node},
    check::Checked,
    library::{self, Function},
    value::{Fault, Outcome, Val, fault, list},
};
use crate::{
    schema::regexp,
    value::{Text, intern},
};

/// A rule that can run.
#[derive(Debug, Clone)]
pub(super) struct Program {
    plan: Plan,
}

/// What one run may cost, in the units of the real server: about one per step.
pub(super) const LIMIT: u64 = 1_000_000;

#[derive(Debug, Clone)]
enum Plan {
    Const(Val<'static>),
    SelfValue,
    OldSelf,
    /// A variable of a loop, by its place among them.
    Slot(usize),
    Field {
        operand: Box<Plan>,
        name: Text,
        how: How,
    },
    Index {
        operand: Box<Plan>,
        index: Box<Plan>,
        optional: bool,
    },
    And(Vec<Plan>),
    Or(Vec<Plan>),
    If(Box<[Plan; 3]>),
    NotStrictlyFalse(Box<Plan>),
    Call {
        function: Function,
        name: Text,
        args: Vec<Plan>,
    },
    /// `a.or(b)` and `a.orValue(b)`: the other is asked only if there is nothing in the first.
    OrElse {
        args: Box<[Plan; 2]>,
        unwrapped: bool,
    },
    /// `matches`, `find` or `findAll` with a pattern that is known.
    Search {
        what: Search,
        regex: Regex,
        args: Vec<Plan>,
    },
    List(Vec<(Plan, bool)>),
    Map(Vec<(Plan, Plan, bool)>),
    Fold(Box<Fold>),
}

/// What to do with a field.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Take,
    Test,
    Optional,
}

#[derive(Debug, Clone, Copy)]
enum Search {
    Matches,
    Find,
    FindAll,
}

#[derive(Debug, Clone)]
struct Fold {
    range: Plan,
    two: bool,
    init: Plan,
    condition: Plan,
    step: Step,
    result: Plan,
}

#[derive(Debug, Clone)]
enum Step {
    Any(Plan),
    /// Adds an item to the list gathered so far, if the filter holds: without copying the list.
    Append {
        filter: Option<Plan>,
        item: Plan,
    },
}

/// Makes a rule ready. `Err` says what is wrong with a constant in it.
pub(super) fn prepare(expr: &Expr, checked: &Checked<'_>) -> Result<Program, String> {
    let mut planner = Planner { checked, scopes: Vec::new() };
    planner.plan(expr).map(|plan| Program { plan }).map_err(|fault| fault.to_string())
}

struct Planner<'c, 'a> {
    checked: &'c Checked<'a>,
    scopes: Vec<Text>,
}

impl Planner<'_, '_> {
    fn plan(&mut self, expr: &Expr) -> Result<Plan, Fault> {
        if let Some(name) = self.checked.type_names.get(&expr.id) {
            return Ok(Plan::Const(Val::Type(name)));
        }
        Ok(match &expr.node {
            Node::Literal(literal) => Plan::Const(constant(literal)),
            Node::Ident(name) => self.variable(name),
            Node::Select { operand, field, test } => {
                // A name with dots that was found to be a variable: there are none but the two.
                let how = if *test { How::Test } else { How::Take };
                Plan::Field { operand: Box::new(self.plan(operand)?), name: field.clone(), how }
            }
            Node::Call { function, target, args } => self.call(function, target.as_deref(), args)?,
            Node::List { items, optional } => {
                let mut plans = Vec::with_capacity(items.len());
                for (i, item) in items.iter().enumerate() {
                    plans.push((self.plan(item)?, optional.get(i).copied().unwrap_or(false)));
                }
                let constants: Option<Vec<Val<'static>>> = plans
                    .iter()
                    .map(|plan| match plan {
                        (Plan::Const(value), false) => Some(value.clone()),
                        _ => None,
                    })
                    .collect();
                match constants {
                    Some(values) => Plan::Const(list(values)),
                    None => Plan::List(plans),
                }
            }
            Node::Map(entries) => {
                let mut plans = Vec::with_capacity(entries.len());
                for entry in entries {
                    plans.push((self.plan(&entry.key)?, self.plan(&entry.value)?, entry.optional));
                }
                Plan::Map(plans)
            }
            Node::Struct { .. } => return Err(Fault::Overload),
            Node::Fold(fold) => {
                let range = self.plan(&fold.range)?;
                let init = self.plan(&fold.init)?;
                let depth = self.scopes.len();
                self.scopes.push(fold.accu.clone());
                self.scopes.push(fold.var.clone());
                self.scopes.extend(fold.var2.clone());
                let condition = self.plan(&fold.condition)?;
                let step = self.step(&fold.step, &fold.accu)?;
                self.scopes.truncate(depth + 1);
                let result = self.plan(&fold.result)?;
                self.scopes.truncate(depth);
                Plan::Fold(Box::new(Fold { range, two: fold.var2.is_some(), init, condition, step, result }))
            }
        })
    }

    fn variable(&self, name: &Text) -> Plan {
        let name = name.strip_prefix('.').unwrap_or(name);
        match self.scopes.iter().rposition(|known| known == name) {
            Some(slot) => Plan::Slot(slot),
            None if name == "oldSelf" => Plan::OldSelf,
            None => Plan::SelfValue,
        }
    }

    fn step(&mut self, step: &Expr, accu: &str) -> Result<Step, Fault> {
        let call = |expr: &Expr, name: &str| match &expr.node {
            Node::Call { function, target: None, args } if function == name => Some(args.clone()),
            _ => None,
        };
        let is_accu = |expr: &Expr| matches!(&expr.node, Node::Ident(name) if name == accu);
        let (filter, add) = match call(step, "_?_:_") {
            Some(parts) if parts.len() == 3 && is_accu(&parts[2]) => (Some(parts[0].clone()), parts[1].clone()),
            _ => (None, step.clone()),
        };
        if let Some(parts) = call(&add, "_+_")
            && let [first, Expr { node: Node::List { items, .. }, .. }] = parts.as_slice()
            && is_accu(first)
            && let [item] = items.as_slice()
        {
            let filter = filter.map(|filter| self.plan(&filter)).transpose()?;
            return Ok(Step::Append { filter, item: self.plan(item)? });
        }
        Ok(Step::Any(self.plan(step)?))
    }

    fn call(&mut self, function: &str, target: Option<&Expr>, args: &[Expr]) -> Result<Plan, Fault> {
        // A function whose name has dots was written like a method.
        let full = target
            .and_then(Expr::qualified_name)
            .map(|prefix| format!("{prefix}.{function}"))
            .filter(|name| super::types::FUNCTIONS.contains_key(name.as_str()));
        let (name, target) = match &full {
            Some(name) => (name.as_str(), None),
            None => (function.strip_prefix('.').unwrap_or(function), target),
        };
        if name == "_?._" {
            let name = match &args[1].node {
                Node::Literal(Literal::Str(name)) => name.clone(),
                _ => Text::new(),
            };
            return Ok(Plan::Field { operand: Box::new(self.plan(&args[0])?), name, how: How::Optional });
        }
        let mut plans = Vec::with_capacity(args.len() + 1);
        for arg in target.into_iter().chain(args) {
            plans.push(self.plan(arg)?);
        }
        Ok(match name {
            "_&&_" => Plan::And(plans),
            "_||_" => Plan::Or(plans),
            "_?_:_" => match <[Plan; 3]>::try_from(plans) {
                Ok(parts) => Plan::If(Box::new(parts)),
                Err(_) => return Err(Fault::Overload),
            },
            "@not_strictly_false" => Plan::NotStrictlyFalse(Box::new(plans.remove(0))),
            "_[_]" | "_[?_]" => {
                let index = Box::new(plans.remove(1));
                Plan::Index { operand: Box::new(plans.remove(0)), index, optional: name == "_[?_]" }
            }
            _ => return self.function(name, target.is_some(), plans),
        })
    }

    fn function(&mut self, name: &str, method: bool, plans: Vec<Plan>) -> Result<Plan, Fault> {
        let search = match name {
            "matches" => Some(Search::Matches),
            "find" => Some(Search::Find),
            "findAll" => Some(Search::FindAll),
            _ => None,
        };
        if let (Some(what), Some(Plan::Const(Val::Str(pattern)))) = (search, plans.get(1)) {
            let regex = regexp::compile(pattern).map_err(Fault::Words)?;
            return Ok(Plan::Search { what, regex, args: plans });
        }
        let name: Text = intern(name);
        if method && matches!(name.as_str(), "or" | "orValue") {
            let args = <[Plan; 2]>::try_from(plans).map_err(|_| Fault::Overload)?;
            return Ok(Plan::OrElse { unwrapped: name == "orValue", args: Box::new(args) });
        }
        // Nothing is in an empty list, whatever it is.
        if let ("@in", Some(Plan::Const(Val::List(items)))) = (name.as_str(), plans.get(1))
            && items.is_empty()
        {
            return Ok(Plan::Const(Val::Bool(false)));
        }
        let Some(function) = library::function(&name, method) else { return Err(Fault::Overload) };
        // A conversion of a constant is made now, as upstream makes it; it may fail now.
        let conversion = matches!(
            name.as_str(),
            "bool" | "bytes" | "double" | "duration" | "int" | "string" | "timestamp" | "uint" | "type" | "dyn"
        );
        if let ([Plan::Const(value)], true) = (plans.as_slice(), conversion) {
            let args = std::slice::from_ref(value);
            let value = function(&mut Meter { spent: 0, limit: LIMIT }, args);
            return value.map(Plan::Const).map_err(|fault| explained(fault, &name, args));
        }
        Ok(Plan::Call { function, name, args: plans })
    }
}

/// A literal as a value.
pub(super) fn constant(literal: &Literal) -> Val<'static> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(b) => Val::Bool(*b),
        Literal::Int(n) => Val::Int(*n),
        Literal::Uint(n) => Val::Uint(*n),
        Literal::Double(f) => Val::Double(*f),
        Literal::Str(text) => Val::Str(text.clone()),
        Literal::Bytes(bytes) => Val::Bytes(bytes.clone()),
    }
}

/// Counts what a run costs.
#[derive(Debug)]
pub(super) struct Meter {
    pub spent: u64,
    pub limit: u64,
}

impl Meter {
    pub(super) fn spend(&mut self, cost: u64) -> Result<(), Fault> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit { Err(Fault::Limit) } else { Ok(()) }
    }

    /// What going over this many characters, bytes or the like costs.
    pub(super) fn traverse(&mut self, size: usize) -> Result<(), Fault> {
        self.spend((size as u64).div_ceil(10))
    }
}

impl Program {
    /// Runs the rule. The cost is returned with the outcome.
    pub(super) fn run<'a>(&self, value: &Val<'a>, old: Option<&Val<'a>>) -> (Outcome<'a>, u64) {
        self.run_within(value, old, LIMIT)
    }

    /// The same for at most so much.
    pub(super) fn run_within<'a>(&self, value: &Val<'a>, old: Option<&Val<'a>>, limit: u64) -> (Outcome<'a>, u64) {
        let meter = Meter { spent: 0, limit: limit.min(LIMIT) };
        let mut run = Run { value, old, slots: Vec::new(), meter };
        let outcome = run.eval(&self.plan);
        (outcome, run.meter.spent)
    }
}

struct Run<'r, 'a> {
    value: &'r Val<'a>,
    old: Option<&'r Val<'a>>,
    slots: Vec<Outcome<'a>>,
    meter: Meter,
}

impl<'a> Run<'_, 'a> {
    fn eval(&mut self, plan: &Plan) -> Outcome<'a> {
        match plan {
            Plan::Const(value) => Ok(value.clone()),
            Plan::SelfValue => {
                self.meter.spend(1)?;
                Ok(self.value.clone())
            }
            Plan::OldSelf => {
                self.meter.spend(1)?;
                self.old.cloned().map_or_else(|| fault("no such attribute(s): oldSelf"), Ok)
            }
            Plan::Slot(slot) => {
                self.meter.spend(1)?;
                self.slots.get(*slot).cloned().unwrap_or(Err(Fault::Overload))
            }
            Plan::Field { operand, name, how } => self.field(operand, name, *how),
            Plan::Index { operand, index, optional } => self.index(operand, index, *optional),
            Plan::And(terms) => self.logic(terms, false),
            Plan::Or(terms) => self.logic(terms, true),
            Plan::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if self.eval(condition)?.truth()? { self.eval(yes) } else { self.eval(no) }
            }
            Plan::NotStrictlyFalse(inner) => {
                let outcome = self.eval(inner);
                if outcome == Err(Fault::Limit) {
                    return outcome;
                }
                Ok(Val::Bool(!matches!(outcome, Ok(Val::Bool(false)))))
            }
            Plan::Call { function, name, args } => {
                let args = self.args(name, args)?;
                self.meter.spend(1)?;
                function(&mut self.meter, &args).map_err(|fault| explained(fault, name, &args))
            }
            Plan::OrElse { args, unwrapped } => {
                let [first, other] = args.as_ref();
                match self.eval(first)? {
                    Val::Optional(Some(value)) if *unwrapped => Ok((*value).clone()),
                    Val::Optional(Some(value)) => Ok(Val::Optional(Some(value))),
                    Val::Optional(None) => self.eval(other),
                    // What is no optional counts as one that has a value.
                    value => Ok(value),
                }
            }
            Plan::Search { what, regex, args } => self.search(*what, regex, args),
            Plan::List(items) => {
                self.meter.spend(10)?;
                let mut values = Vec::with_capacity(items.len());
                for (item, optional) in items {
                    match (self.eval(item)?, optional) {
                        (Val::Optional(inner), true) => values.extend(inner.map(|value| (*value).clone())),
                        (value, false) => values.push(value),
                        (other, true) => return not_optional(&other),
                    }
                }
                Ok(list(values))
            }
            Plan::Map(entries) => {
                self.meter.spend(30)?;
                let mut map = BTreeMap::new();
                for (key, value, optional) in entries {
                    let key = self.eval(key)?.into_key()?;
                    match (self.eval(value)?, optional) {
                        (Val::Optional(inner), true) => {
                            if let Some(value) = inner {
                                map.insert(key, (*value).clone());
                            }
                        }
                        (value, false) => drop(map.insert(key, value)),
                        (other, true) => return not_optional(&other),
                    }
                }
                Ok(Val::Map(Arc::new(map)))
            }
            Plan::Fold(fold) => self.fold(fold),
        }
    }

    fn args(&mut self, name: &str, args: &[Plan]) -> Result<Vec<Val<'a>>, Fault> {
        let values = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>();
        // Upstream wants to know how long the list is before it asks whether there is one.
        if matches!(name, "sort" | "distinct" | "@sortByAssociatedKeys")
            && values.is_err()
            && values != Err(Fault::Limit)
        {
            return fault("internal error: interface conversion: *types.Err is not traits.Lister: missing method Add");
        }
        values
    }

    /// `&&` if `stop` is false, `||` if it is true: a term that decides outweighs faults before it.
    fn logic(&mut self, terms: &[Plan], stop: bool) -> Outcome<'a> {
        let mut first = None;
        for term in terms {
            match self.eval(term) {
                Ok(Val::Bool(b)) if b == stop => return Ok(Val::Bool(stop)),
                Ok(Val::Bool(_)) => {}
                Err(Fault::Limit) => return Err(Fault::Limit),
                Err(fault) => drop(first.get_or_insert(fault)),
                Ok(_) => drop(first.get_or_insert(Fault::Overload)),
            }
        }
        first.map_or(Ok(Val::Bool(!stop)), Err)
    }

    fn field(&mut self, operand: &Plan, name: &Text, how: How) -> Outcome<'a> {
        let operand = self.eval(operand)?;
        if how != How::Test {
            self.meter.spend(1)?;
        }
        let (operand, optional) = match operand {
            Val::Optional(None) => {
                return Ok(if how == How::Test { Val::Bool(false) } else { Val::Optional(None) });
            }
            Val::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, how == How::Optional),
        };
        let found = match &operand {
            Val::Map(_) | Val::Object(..) => operand.find(&Val::Str(name.clone()))?,
            Val::List(_) | Val::Items(..) if how != How::Test => {
                return fault("unsupported index type 'string' in list");
            }
            _ => None,
        };
        match (how, found) {
            (How::Test, found) => Ok(Val::Bool(found.is_some())),
            (_, found) if optional => Ok(Val::Optional(found.map(Arc::new))),
            (_, Some(value)) => Ok(value),
            (_, None) => fault(format!("no such key: {name}")),
        }
    }

    fn index(&mut self, operand: &Plan, index: &Plan, optional: bool) -> Outcome<'a> {
        let operand = self.eval(operand)?;
        let index = self.eval(index)?;
        self.meter.spend(1)?;
        let (operand, optional) = match operand {
            Val::Optional(None) => return Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, optional),
        };
        let found = match &operand {
            Val::List(_) | Val::Items(..) => {
                let place = match (&index, &operand) {
                    (Val::Int(n), _) => Some(*n),
                    // A list the rule made takes any whole number.
                    (Val::Uint(n), Val::List(_)) => i64::try_from(*n).ok(),
                    (Val::Double(f), _) if f.fract() == 0.0 => Some(*f as i64),
                    (Val::Double(f), _) => return fault(format!("unsupported index value {f} in list")),
                    (Val::Uint(n), _) => return fault(format!("unsupported index: {n}")),
                    (other, _) => return fault(format!("unsupported index type '{}' in list", other.type_name())),
                };
                let place = place.and_then(|n| usize::try_from(n).ok());
                place.and_then(|n| operand.item(n)).transpose()?
            }
            Val::Map(_) | Val::Object(..) => operand.find(&index)?,
            _ => None,
        };
        match found {
            found if optional => Ok(Val::Optional(found.map(Arc::new))),
            Some(value) => Ok(value),
            None => match &operand {
                Val::List(_) | Val::Items(..) => fault(format!("index out of bounds: {}", library::shown(&index))),
                _ => fault(format!("no such key: {}", library::shown(&index))),
            },
        }
    }

    fn search(&mut self, what: Search, regex: &Regex, args: &[Plan]) -> Outcome<'a> {
        let args = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
        self.meter.spend(1)?;
        match what {
            Search::Matches => library::matches(&mut self.meter, &args, regex),
            Search::Find => library::find(&mut self.meter, &args, regex),
            Search::FindAll => library::find_all(&mut self.meter, &args, regex),
        }
    }

    fn fold(&mut self, fold: &Fold) -> Outcome<'a> {
        let range = self.eval(&fold.range)?;
        let init = self.eval(&fold.init);
        if init == Err(Fault::Limit) {
            return init;
        }
        let base = self.slots.len();
        self.slots.push(init);
        let outcome = self.iterate(fold, &range, base).and_then(|()| {
            self.slots.truncate(base + 1);
            self.eval(&fold.result)
        });
        self.slots.truncate(base);
        outcome
    }

    fn iterate(&mut self, fold: &Fold, range: &Val<'a>, base: usize) -> Result<(), Fault> {
        let keys = match range {
            Val::List(_) | Val::Items(..) => None,
            Val::Map(_) | Val::Object(..) => Some(range.key_list()?),
            other => {
                let name = match other {
                    Val::Int(_) => "types.Int",
                    Val::Str(_) => "types.String",
                    Val::Bool(_) => "types.Bool",
                    Val::Double(_) => "types.Double",
                    _ => other.type_name(),
                };
                return match fold.two {
                    true => fault(format!("unsupported comprehension range type: {name}")),
                    false => fault(format!("got '{name}', expected iterable type")),
                };
            }
        };
        let count = keys.as_ref().map_or_else(|| range.len().unwrap_or(0), Vec::len);
        for i in 0..count {
            self.slots.truncate(base + 1);
            let item = |i: usize| range.item(i).unwrap_or(Err(Fault::Overload));
            match (&keys, fold.two) {
                (None, false) => self.slots.push(item(i)),
                (None, true) => self.slots.extend([Ok(Val::Int(i as i64)), item(i)]),
                (Some(keys), false) => self.slots.push(Ok(keys[i].clone())),
                (Some(keys), true) => {
                    let value = range.find(&keys[i]).and_then(|found| found.ok_or(Fault::Overload));
                    self.slots.extend([Ok(keys[i].clone()), value]);
                }
            }
            if !matches!(self.eval(&fold.condition)?, Val::Bool(true)) {
                break;
            }
            let next = match &fold.step {
                Step::Any(step) => self.eval(step),
                Step::Append { filter, item } => self.append(filter.as_ref(), item, base),
            };
            if next == Err(Fault::Limit) {
                return Err(Fault::Limit);
            }
            let failed = next.is_err() && matches!(fold.step, Step::Append { .. });
            self.slots[base] = next;
            if failed {
                // Nothing makes a list of a fault again.
                break;
            }
        }
        Ok(())
    }

    fn append(&mut self, filter: Option<&Plan>, item: &Plan, base: usize) -> Outcome<'a> {
        if let Some(filter) = filter
            && !self.eval(filter)?.truth()?
        {
            return std::mem::replace(&mut self.slots[base], Err(Fault::Overload));
        }
        let item = self.eval(item)?;
        self.meter.spend(2)?;
        match std::mem::replace(&mut self.slots[base], Err(Fault::Overload))? {
            Val::List(mut items) => {
                Arc::make_mut(&mut items).push(item);
                Ok(Val::List(items))
            }
            _ => Err(Fault::Overload),
        }
    }
}

/// A fault of arguments with what upstream says of them.
fn explained(fault: Fault, name: &str, args: &[Val<'_>]) -> Fault {
    match fault {
        Fault::Overload => library::refused(name, args),
        Fault::Limit | Fault::Words(_) => fault,
    }
}

fn not_optional<'a>(value: &Val<'a>) -> Outcome<'a> {
    fault(format!("cannot initialize optional list element from non-optional value {}", library::shown(value)))
}

impl PartialEq for Val<'_> {
    /// For tests of faults only; values are compared by [`Val::equal`].
    fn eq(&self, _: &Self) -> bool {
        false
    }
}
