//! The types of an expression, found before it is evaluated: what cannot be right is refused even where it is not reached.
//!
//! Narrower than the library where that knows the signature of every function: what is not known here is let through, and
//! fails when it is evaluated. Never evaluates anything.

use super::{
    ast::{Kind, Node},
    eval::{ENVIRONMENT, Env},
    parse::is_builtin,
    value::{Element, Val},
};

/// A type, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
enum Type {
    Unknown,
    Nil,
    Bool,
    Int,
    Float,
    Text,
    List(Box<Type>),
    Map,
    Span,
    Moment,
    Named,
}

impl Type {
    fn of(value: &Val) -> Type {
        match value {
            Val::Nil => Type::Nil,
            Val::Bool(_) => Type::Bool,
            Val::Int(_) => Type::Int,
            Val::Float(_) => Type::Float,
            Val::Text(_) => Type::Text,
            Val::List(_, element) => Type::List(Box::new(match element {
                Element::Any => Type::Unknown,
                Element::Int => Type::Int,
                Element::Float => Type::Float,
                Element::Text => Type::Text,
            })),
            Val::Map(_) => Type::Map,
            Val::Span(_) => Type::Span,
            Val::Moment(_) => Type::Moment,
            Val::Named(..) => Type::Named,
        }
    }

    fn is_number(&self) -> bool {
        matches!(self, Type::Int | Type::Float)
    }

    fn is_open(&self) -> bool {
        matches!(self, Type::Unknown)
    }

    /// Whether it may be this one.
    fn may_be(&self, other: &Type) -> bool {
        self.is_open() || self == other
    }

    fn name(&self) -> String {
        match self {
            Type::Unknown => "unknown".to_owned(),
            Type::Nil => "nil".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Int => "int".to_owned(),
            Type::Float => "float64".to_owned(),
            Type::Text => "string".to_owned(),
            Type::List(of) if of.is_open() => "[]interface {}".to_owned(),
            Type::List(of) => format!("[]{}", of.name()),
            Type::Map => "map[string]interface {}".to_owned(),
            Type::Span => "time.Duration".to_owned(),
            Type::Moment => "time.Time".to_owned(),
            Type::Named => "time.Month".to_owned(),
        }
    }

    fn element(&self) -> Type {
        match self {
            Type::List(of) => (**of).clone(),
            Type::Unknown
            | Type::Nil
            | Type::Bool
            | Type::Int
            | Type::Float
            | Type::Text
            | Type::Map
            | Type::Span
            | Type::Moment
            | Type::Named => Type::Unknown,
        }
    }
}

/// Refuses an expression that cannot be right; the words are those of the library where it matters.
pub(super) fn check(node: &Node, env: &Env) -> Result<(), String> {
    Checker { env, variables: Vec::new(), scopes: Vec::new() }.node(node).map(drop)
}

struct Checker<'e> {
    env: &'e Env,
    variables: Vec<(String, Type)>,
    /// What `#` is, and whether there is an `#acc`.
    scopes: Vec<(Type, bool)>,
}

type Checked = Result<Type, String>;

impl Checker<'_> {
    fn node(&mut self, node: &Node) -> Checked {
        match &node.kind {
            Kind::Nil => Ok(Type::Nil),
            Kind::Bool(_) => Ok(Type::Bool),
            Kind::Int(_) => Ok(Type::Int),
            Kind::Float(_) => Ok(Type::Float),
            Kind::Text(_) => Ok(Type::Text),
            Kind::Name(name) => self.name(name),
            Kind::Pointer(name) => self.pointer(name),
            Kind::Unary(operator, operand) => self.unary(operator, operand),
            Kind::Binary(..) => self.binary(node),
            Kind::Chain(inner) => self.node(inner),
            Kind::Member { of, property, .. } => self.member(of, property),
            Kind::Slice { of, from, to } => {
                let kind = self.node(of)?;
                for bound in [from, to].into_iter().flatten() {
                    let bound = self.node(bound)?;
                    if !bound.may_be(&Type::Int) {
                        return Err(format!("non-integer slice index {}", bound.name()));
                    }
                }
                match &kind {
                    Type::Unknown | Type::Text | Type::List(_) => Ok(kind),
                    other => Err(format!("cannot slice {}", other.name())),
                }
            }
            Kind::Call(callee, arguments) => self.call(callee, arguments),
            Kind::Builtin(name, arguments) => self.builtin(name, arguments),
            Kind::Predicate(inner) => self.node(inner),
            Kind::Conditional(condition, yes, no) => {
                let kind = self.node(condition)?;
                if !kind.may_be(&Type::Bool) {
                    return Err(format!("non-bool expression (type {}) used as condition", kind.name()));
                }
                let (yes, no) = (self.node(yes)?, self.node(no)?);
                Ok(if yes == no { yes } else { Type::Unknown })
            }
            Kind::Let(name, value, rest) => {
                if name == "result" || self.env.is_function(name) {
                    return Err(format!("cannot redeclare {name}"));
                }
                if is_builtin(name) {
                    return Err(format!("cannot redeclare builtin {name}"));
                }
                if self.variables.iter().any(|(known, _)| known == name) {
                    return Err(format!("cannot redeclare variable {name}"));
                }
                let kind = self.node(value)?;
                self.variables.push((name.clone(), kind));
                let rest = self.node(rest);
                self.variables.pop();
                rest
            }
            Kind::Sequence(nodes) => nodes.iter().try_fold(Type::Nil, |_, node| self.node(node)),
            Kind::List(nodes) => {
                let mut kinds = Vec::new();
                for node in nodes {
                    kinds.push(self.node(node)?);
                }
                let first = kinds.first().cloned().filter(|first| kinds.iter().all(|kind| kind == first));
                Ok(Type::List(Box::new(first.unwrap_or(Type::Unknown))))
            }
            Kind::Map(pairs) => {
                for (key, value) in pairs {
                    self.node(key)?;
                    self.node(value)?;
                }
                Ok(Type::Map)
            }
        }
    }

    fn name(&self, name: &str) -> Checked {
        if let Some((_, kind)) = self.variables.iter().rev().find(|(known, _)| known == name) {
            return Ok(kind.clone());
        }
        match name {
            "result" => Ok(Type::of(&self.env.result)),
            ENVIRONMENT => Ok(Type::Unknown),
            _ if self.env.is_function(name) => Ok(Type::Unknown),
            _ => Err(format!("unknown name {name}")),
        }
    }

    fn pointer(&self, name: &str) -> Checked {
        let Some((element, has_accumulator)) = self.scopes.last() else {
            return Err("cannot use pointer accessor outside predicate".to_owned());
        };
        match name {
            "" => Ok(element.clone()),
            "acc" if *has_accumulator => Ok(Type::Unknown),
            "index" if *has_accumulator => Ok(Type::Int),
            _ => Err(format!("unknown pointer #{name}")),
        }
    }

    fn unary(&mut self, operator: &str, operand: &Node) -> Checked {
        let kind = self.node(operand)?;
        let fits = match operator {
            "!" | "not" => kind.may_be(&Type::Bool),
            _ => kind.is_open() || kind.is_number(),
        };
        if !fits {
            return Err(format!("invalid operation: {operator} (mismatched type {})", kind.name()));
        }
        Ok(if matches!(operator, "!" | "not") { Type::Bool } else { kind })
    }

    /// Chains are long rather than deep: the left side is gone down without a call for each.
    fn binary(&mut self, node: &Node) -> Checked {
        let (mut chain, mut at) = (Vec::new(), node);
        while let Kind::Binary(operator, left, right) = &at.kind {
            chain.push((*operator, right));
            at = left;
        }
        let mut left = self.node(at)?;
        for (operator, right) in chain.into_iter().rev() {
            let right = self.node(right)?;
            left = operation(operator, &left, &right).ok_or_else(|| {
                format!("invalid operation: {operator} (mismatched types {} and {})", left.name(), right.name())
            })?;
        }
        Ok(left)
    }

    fn member(&mut self, of: &Node, property: &Node) -> Checked {
        let kind = self.node(of)?;
        let key = self.node(property)?;
        let field = if let Kind::Text(name) = &property.kind { Some(name.as_str()) } else { None };
        match &kind {
            Type::Unknown => Ok(Type::Unknown),
            Type::Map if key.may_be(&Type::Text) => Ok(Type::Unknown),
            Type::Map => Err(format!("cannot use {} to get an element from {}", key.name(), kind.name())),
            Type::List(of) if key.may_be(&Type::Int) => Ok((**of).clone()),
            Type::List(_) => Err(format!("array elements can only be selected using an integer (got {})", key.name())),
            Type::Moment | Type::Span | Type::Named if field.is_some() => Ok(Type::Unknown),
            other => Err(match field {
                Some(field) => format!("type {} has no field {field}", other.name()),
                None => format!("type {}[{}] is undefined", other.name(), key.name()),
            }),
        }
    }

    fn call(&mut self, callee: &Node, arguments: &[Node]) -> Checked {
        let mut kinds = Vec::new();
        for argument in arguments {
            kinds.push(self.node(argument)?);
        }
        let Kind::Name(name) = &callee.kind else { return self.node(callee).map(|_| Type::Unknown) };
        let wanted = match name.as_str() {
            "isNaN" | "isInf" | "asInt" | "asFloat" | "isNil" => 1,
            "default" => 2,
            _ if self.name(name).is_ok() => return Err(format!("{name} is not callable")),
            _ => return Err(format!("unknown name {name}")),
        };
        if kinds.len() != wanted {
            let words = if kinds.len() < wanted { "not enough" } else { "too many" };
            return Err(format!("{words} arguments to call {name}"));
        }
        match (name.as_str(), kinds.first()) {
            ("isNaN" | "isInf", Some(kind)) if !kind.is_open() && !kind.is_number() => {
                Err(format!("cannot use {} as argument (type float64) to call {name} ", kind.name()))
            }
            ("isNaN" | "isInf" | "isNil", _) => Ok(Type::Bool),
            ("asInt", _) => Ok(Type::Int),
            ("asFloat", _) => Ok(Type::Float),
            (_, _) => Ok(Type::Unknown),
        }
    }

    fn builtin(&mut self, name: &str, arguments: &[Node]) -> Checked {
        let has_predicate = arguments.iter().any(|argument| matches!(argument.kind, Kind::Predicate(_)));
        let mut kinds = Vec::new();
        for argument in arguments {
            if let Kind::Predicate(inner) = &argument.kind {
                let element = kinds.first().map_or(Type::Unknown, Type::element);
                self.scopes.push((element, name == "reduce"));
                let kind = self.node(inner);
                self.scopes.pop();
                kinds.push(kind?);
            } else {
                kinds.push(self.node(argument)?);
            }
        }
        let first = kinds.first().cloned().unwrap_or(Type::Unknown);
        let needs_list = has_predicate || matches!(name, "sum" | "count");
        if needs_list && !matches!(first, Type::Unknown | Type::List(_)) {
            return Err(format!("builtin {name} takes only array (got {})", first.name()));
        }
        let asks = ["all", "none", "any", "one", "filter", "find", "findIndex", "findLast", "findLastIndex", "count"];
        if has_predicate
            && asks.contains(&name)
            && let Some(answer) = kinds.get(1).filter(|answer| !answer.may_be(&Type::Bool))
        {
            return Err(format!("predicate should return boolean (got {})", answer.name()));
        }
        Ok(match name {
            "all" | "none" | "any" | "one" | "hasPrefix" | "hasSuffix" => Type::Bool,
            "len" | "count" | "findIndex" | "findLastIndex" | "indexOf" | "lastIndexOf" | "int" => Type::Int,
            "float" | "ceil" | "floor" | "round" => Type::Float,
            "string" | "type" | "trim" | "trimPrefix" | "trimSuffix" | "upper" | "lower" | "replace" | "repeat"
            | "join" | "toJSON" | "toBase64" | "fromBase64" => Type::Text,
            "split" | "splitAfter" => Type::List(Box::new(Type::Text)),
            "map" => Type::List(Box::new(kinds.get(1).cloned().unwrap_or(Type::Unknown))),
            "filter" | "reverse" => first,
            "concat" | "flatten" | "keys" | "values" | "toPairs" | "sort" | "sortBy" | "uniq" => {
                Type::List(Box::new(Type::Unknown))
            }
            "abs" if first.is_number() => first,
            // Said to be what stands first, though it is what comes out.
            "max" | "min" if kinds.iter().all(Type::is_number) => first,
            "mean" | "median" if !kinds.is_empty() && kinds.iter().all(Type::is_number) => Type::Float,
            "sum" => match kinds.get(1) {
                Some(of_predicate) => of_predicate.clone(),
                None => first.element(),
            },
            "now" | "date" => Type::Moment,
            "duration" => Type::Span,
            _ => Type::Unknown,
        })
    }
}

/// The type of an operation; `None` if there is none for such operands.
fn operation(operator: &str, left: &Type, right: &Type) -> Option<Type> {
    let open = left.is_open() || right.is_open();
    let both = |kind: &Type| left.may_be(kind) && right.may_be(kind);
    let numbers = (left.is_number() || left.is_open()) && (right.is_number() || right.is_open());
    // One side may be anything, but the other must be of some use.
    let ordered = |kind: &Type| {
        matches!(kind, Type::Unknown | Type::Int | Type::Float | Type::Text | Type::Span | Type::Moment | Type::Named)
    };
    match operator {
        "==" | "!=" => {
            let alike = match (left, right) {
                (Type::List(_), Type::List(_)) => true,
                (left, right) => left == right,
            };
            (open || alike || numbers || *left == Type::Nil || *right == Type::Nil).then_some(Type::Bool)
        }
        "&&" | "||" | "and" | "or" => both(&Type::Bool).then_some(Type::Bool),
        "<" | ">" | "<=" | ">=" => {
            let fits = numbers || both(&Type::Text) || both(&Type::Span) || both(&Type::Moment);
            (fits && ordered(left) && ordered(right)).then_some(Type::Bool)
        }
        "in" if *left == Type::Nil => Some(Type::Bool),
        "in" => match right {
            Type::List(of) if open || of.is_open() || **of == *left || of.is_number() && left.is_number() => {
                Some(Type::Bool)
            }
            Type::Map if left.may_be(&Type::Text) => Some(Type::Bool),
            Type::Unknown | Type::Nil => Some(Type::Bool),
            _ => None,
        },
        "matches" | "contains" | "startsWith" | "endsWith" => both(&Type::Text).then_some(Type::Bool),
        ".." => both(&Type::Int).then(|| Type::List(Box::new(Type::Int))),
        "+" | "-" => match (left, right) {
            (Type::Unknown, _) | (_, Type::Unknown) if ordered(left) && ordered(right) => Some(Type::Unknown),
            (Type::Int, Type::Int) => Some(Type::Int),
            (left, right) if left.is_number() && right.is_number() => Some(Type::Float),
            (Type::Text, Type::Text) if operator == "+" => Some(Type::Text),
            (Type::Moment, Type::Moment) if operator == "-" => Some(Type::Span),
            (Type::Moment, Type::Span) | (Type::Span, Type::Moment) => Some(Type::Moment),
            (Type::Span, Type::Span) => Some(Type::Span),
            (_, _) => None,
        },
        "*" | "/" | "**" | "^" => match (left, right) {
            (Type::Int, Type::Int) if operator == "*" => Some(Type::Int),
            (Type::Span, right) if operator == "*" && right.is_number() => Some(Type::Span),
            (left, Type::Span) if operator == "*" && left.is_number() => Some(Type::Span),
            (_, _) if numbers => Some(if open && operator == "*" { Type::Unknown } else { Type::Float }),
            (_, _) => None,
        },
        "%" => both(&Type::Int).then_some(Type::Int),
        "??" => Some(if left == right { left.clone() } else { Type::Unknown }),
        _ => Some(Type::Unknown),
    }
}
