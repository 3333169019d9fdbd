//! From words to a tree, by precedence climbing.

use std::ops::Range;

use super::{
    Mistake,
    ast::{Kind, Node},
    lex::{Lexer, Token, Word, is_name},
};
use crate::kubernetes::status::go_quoted;

/// How many nodes an expression may have, as in the library.
const NODES: usize = 10_000;
/// How deep an expression may be nested. The library has no such limit but its stack; nobody writes this by hand. A level
/// costs up to 20 KB of stack in a build without optimisation, and a thread may have 2 MB.
const NESTING: usize = 64;
/// How deep a part may be that is written once and used twice, as `b` in `a < b < c`.
const TWICE: u32 = 200;

/// Whether the language has a function of this name.
pub(super) fn is_builtin(name: &str) -> bool {
    FUNCTIONS.contains(&name) || PREDICATES.iter().any(|(known, _)| *known == name)
}

/// Reads an expression.
pub fn parse(text: &str) -> Result<Node, Mistake> {
    let mut lexer = Lexer::new(text);
    let current = lexer.read()?;
    let mut parser = Parser { lexer, current, stashed: None, predicates: 0, nodes: 0, nesting: 0 };
    let node = parser.sequence()?;
    match parser.current.kind {
        Word::Eof => Ok(node),
        Word::Identifier | Word::Number | Word::String | Word::Operator | Word::Bracket => Err(parser.unexpected()),
    }
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    current: Token,
    stashed: Option<Token>,
    /// How many predicates we are in: only there is `#` something.
    predicates: usize,
    nodes: usize,
    nesting: usize,
}

type Parsed = Result<Node, Mistake>;

/// An operator between operands: its text, how tightly it binds, and whether it binds to the right.
const BINARY: [(&str, u32, bool); 25] = [
    ("|", 0, false),
    ("or", 10, false),
    ("||", 10, false),
    ("and", 15, false),
    ("&&", 15, false),
    ("==", 20, false),
    ("!=", 20, false),
    ("<", 20, false),
    (">", 20, false),
    (">=", 20, false),
    ("<=", 20, false),
    ("in", 20, false),
    ("matches", 20, false),
    ("contains", 20, false),
    ("startsWith", 20, false),
    ("endsWith", 20, false),
    ("..", 25, false),
    ("+", 30, false),
    ("-", 30, false),
    ("*", 60, false),
    ("/", 60, false),
    ("%", 60, false),
    ("**", 100, true),
    ("^", 100, true),
    ("??", 500, false),
];

const UNARY: [(&str, u32); 4] = [("not", 50), ("!", 50), ("-", 90), ("+", 90)];

const COMPARISONS: [&str; 4] = ["<", ">", ">=", "<="];

const NEGATED: [&str; 5] = ["contains", "matches", "startsWith", "endsWith", "in"];

/// An argument of a function that takes a predicate.
#[derive(Clone, Copy, PartialEq)]
enum Argument {
    Value,
    Predicate,
    OptionalValue,
    OptionalPredicate,
}

/// Functions that take a predicate.
const PREDICATES: [(&str, &[Argument]); 15] = {
    use Argument::{OptionalPredicate, OptionalValue, Predicate, Value};
    [
        ("all", &[Value, Predicate]),
        ("none", &[Value, Predicate]),
        ("any", &[Value, Predicate]),
        ("one", &[Value, Predicate]),
        ("filter", &[Value, Predicate]),
        ("map", &[Value, Predicate]),
        ("count", &[Value, OptionalPredicate]),
        ("sum", &[Value, OptionalPredicate]),
        ("find", &[Value, Predicate]),
        ("findIndex", &[Value, Predicate]),
        ("findLast", &[Value, Predicate]),
        ("findLastIndex", &[Value, Predicate]),
        ("groupBy", &[Value, Predicate]),
        ("sortBy", &[Value, Predicate, OptionalValue]),
        ("reduce", &[Value, Predicate, OptionalValue]),
    ]
};

/// The other functions of the language.
const FUNCTIONS: &[&str] = &[
    "len",
    "type",
    "abs",
    "ceil",
    "floor",
    "round",
    "int",
    "float",
    "string",
    "trim",
    "trimPrefix",
    "trimSuffix",
    "upper",
    "lower",
    "split",
    "splitAfter",
    "replace",
    "repeat",
    "join",
    "indexOf",
    "lastIndexOf",
    "hasPrefix",
    "hasSuffix",
    "max",
    "min",
    "mean",
    "median",
    "toJSON",
    "fromJSON",
    "toBase64",
    "fromBase64",
    "now",
    "duration",
    "date",
    "timezone",
    "first",
    "last",
    "get",
    "take",
    "keys",
    "values",
    "toPairs",
    "fromPairs",
    "reverse",
    "uniq",
    "concat",
    "flatten",
    "sort",
    "bitand",
    "bitor",
    "bitxor",
    "bitnand",
    "bitshl",
    "bitshr",
    "bitushr",
    "bitnot",
];

impl Parser<'_> {
    fn next(&mut self) -> Result<(), Mistake> {
        self.current = match self.stashed.take() {
            Some(token) => token,
            None => self.lexer.read()?,
        };
        Ok(())
    }

    /// Takes the current word and goes on to the next.
    fn take(&mut self) -> Result<Token, Mistake> {
        let token = self.current.clone();
        self.next()?;
        Ok(token)
    }

    fn is(&self, kind: Word, text: &str) -> bool {
        self.current.is(kind, text)
    }

    fn expect(&mut self, kind: Word, text: &'static str) -> Result<(), Mistake> {
        if self.is(kind, text) { self.next() } else { Err(self.unexpected_for(Some(text))) }
    }

    fn expect_identifier(&mut self) -> Result<Token, Mistake> {
        if self.current.kind == Word::Identifier { self.take() } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> Mistake {
        self.unexpected_for(None)
    }

    fn unexpected_for(&self, wanted: Option<&'static str>) -> Mistake {
        let message = format!("unexpected token {}", self.current.shown());
        Mistake { unexpected: Some((self.current.clone(), wanted)), ..self.mistake(message) }
    }

    fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake { message: message.into(), at: self.current.at.clone(), unexpected: None }
    }

    fn node(&mut self, kind: Kind, at: Range<usize>) -> Parsed {
        self.nodes += 1;
        if self.nodes > NODES {
            return Err(self.mistake("compilation failed: expression exceeds maximum allowed nodes"));
        }
        Ok(Node::new(kind, at))
    }

    /// A second copy of a part.
    fn copy(&self, node: &Node) -> Parsed {
        if node.depth > TWICE { Err(self.mistake("the expression is nested too deeply")) } else { Ok(node.clone()) }
    }

    fn sequence(&mut self) -> Parsed {
        let first = self.expression(0)?;
        let at = first.at.clone();
        let mut nodes = vec![first];
        while self.is(Word::Operator, ";") {
            self.next()?;
            if self.current.kind == Word::Eof {
                break;
            }
            nodes.push(self.expression(0)?);
        }
        match (nodes.len(), nodes.pop()) {
            (1, Some(only)) => Ok(only),
            (_, last) => {
                nodes.extend(last);
                self.node(Kind::Sequence(nodes), at)
            }
        }
    }

    fn expression(&mut self, precedence: u32) -> Parsed {
        self.nesting += 1;
        if self.nesting > NESTING {
            return Err(self.mistake("the expression is nested too deeply"));
        }
        let node = self.expression_here(precedence);
        self.nesting -= 1;
        node
    }

    fn expression_here(&mut self, precedence: u32) -> Parsed {
        if precedence == 0 && self.is(Word::Operator, "let") {
            return self.variable();
        }
        if precedence == 0 && self.is(Word::Operator, "if") {
            return self.condition();
        }
        let mut left = self.primary()?;
        let mut previous = "";
        while self.current.kind == Word::Operator {
            let mut operator = self.current.clone();
            let negate = operator.text == "not";
            if negate {
                self.next()?;
                if !NEGATED.contains(&self.current.text.as_str()) {
                    return Err(self.unexpected());
                }
                if binary(&self.current.text).is_none_or(|(_, binds, _)| binds < precedence) {
                    self.stashed = Some(std::mem::replace(&mut self.current, operator));
                    break;
                }
                operator = self.current.clone();
            }
            let Some((name, binds, to_the_right)) = binary(&operator.text).filter(|(_, binds, _)| *binds >= precedence)
            else {
                break;
            };
            self.next()?;
            left = self.operation(left, &operator, (name, binds, to_the_right), previous)?;
            if negate {
                left = self.node(Kind::Unary("not", Box::new(left)), operator.at.clone())?;
            }
            previous = name;
        }
        if precedence == 0 { self.ternary(left) } else { Ok(left) }
    }

    /// What follows an operator between operands, once the operator has been read.
    fn operation(&mut self, left: Node, operator: &Token, of: (&'static str, u32, bool), previous: &str) -> Parsed {
        let (name, binds, to_the_right) = of;
        if name == "|" {
            let function = self.expect_identifier()?;
            return self.call(&function, vec![left]);
        }
        if previous == "??" && name != "??" {
            let message =
                format!("Operator ({name}) and coalesce expressions (??) cannot be mixed. Wrap either by parentheses.");
            return Err(Mistake { message, at: operator.at.clone(), unexpected: None });
        }
        if COMPARISONS.contains(&name) {
            return self.comparison(left, name, operator.at.clone(), binds);
        }
        let right = self.expression(if to_the_right { binds } else { binds + 1 })?;
        self.node(Kind::Binary(name, Box::new(left), Box::new(right)), operator.at.clone())
    }

    /// `a < b <= c` is `a < b && b <= c`.
    fn comparison(&mut self, left: Node, name: &'static str, at: Range<usize>, binds: u32) -> Parsed {
        let (mut left, mut name, mut at) = (left, name, at);
        let mut all: Option<Node> = None;
        loop {
            let right = self.expression(binds + 1)?;
            let next = binary(&self.current.text).filter(|(name, _, _)| COMPARISONS.contains(name));
            let next = next.filter(|_| self.current.kind == Word::Operator);
            let again = next.map(|(next, _, _)| Ok((self.copy(&right)?, next))).transpose()?;
            let one = self.node(Kind::Binary(name, Box::new(left), Box::new(right)), at.clone())?;
            let joined = match all {
                None => one,
                Some(before) => self.node(Kind::Binary("&&", Box::new(before), Box::new(one)), at)?,
            };
            let Some((right, next)) = again else { return Ok(joined) };
            (left, name, at) = (right, next, self.current.at.clone());
            all = Some(joined);
            self.next()?;
        }
    }

    fn variable(&mut self) -> Parsed {
        self.next()?;
        let name = self.expect_identifier()?;
        self.expect(Word::Operator, "=")?;
        let value = self.expression(0)?;
        self.expect(Word::Operator, ";")?;
        let then = self.sequence()?;
        self.node(Kind::Let(name.text, Box::new(value), Box::new(then)), name.at)
    }

    fn condition(&mut self) -> Parsed {
        let at = self.current.at.clone();
        self.next()?;
        let condition = self.expression(0)?;
        let then = self.block()?;
        self.expect(Word::Operator, "else")?;
        let otherwise = match self.is(Word::Operator, "if") {
            true => self.expression(0)?,
            false => self.block()?,
        };
        Ok(Node::new(Kind::Conditional(Box::new(condition), Box::new(then), Box::new(otherwise)), at))
    }

    fn block(&mut self) -> Parsed {
        self.expect(Word::Bracket, "{")?;
        let node = self.sequence()?;
        self.expect(Word::Bracket, "}")?;
        Ok(node)
    }

    fn ternary(&mut self, condition: Node) -> Parsed {
        let mut node = condition;
        while self.is(Word::Operator, "?") {
            self.next()?;
            let (then, otherwise) = if self.is(Word::Operator, ":") {
                self.next()?;
                (self.copy(&node)?, self.expression(0)?)
            } else {
                let then = self.expression(0)?;
                self.expect(Word::Operator, ":")?;
                (then, self.expression(0)?)
            };
            let at = self.current.at.clone();
            node = self.node(Kind::Conditional(Box::new(node), Box::new(then), Box::new(otherwise)), at)?;
        }
        Ok(node)
    }

    fn primary(&mut self) -> Parsed {
        let token = self.current.clone();
        if token.kind == Word::Operator
            && let Some((name, binds)) = UNARY.into_iter().find(|(name, _)| *name == token.text)
        {
            self.next()?;
            let operand = self.expression(binds)?;
            let node = self.node(Kind::Unary(name, Box::new(operand)), token.at)?;
            return self.postfix(node);
        }
        if token.is(Word::Bracket, "(") {
            self.next()?;
            let node = self.sequence()?;
            self.expect(Word::Bracket, ")")?;
            return self.postfix(node);
        }
        if self.predicates > 0 && (token.is(Word::Operator, "#") || token.is(Word::Operator, ".")) {
            let mut name = String::new();
            if token.text == "#" {
                self.next()?;
                if self.current.kind == Word::Identifier {
                    name = self.take()?.text;
                }
            }
            let node = self.node(Kind::Pointer(name), token.at)?;
            return self.postfix(node);
        }
        if token.is(Word::Operator, "::") {
            self.next()?;
            let function = self.expect_identifier()?;
            let node = self.call(&function, Vec::new())?;
            return self.postfix(node);
        }
        self.secondary(&token)
    }

    fn secondary(&mut self, token: &Token) -> Parsed {
        let at = token.at.clone();
        let node = match token.kind {
            Word::Identifier => {
                self.next()?;
                let constant = match token.text.as_str() {
                    "true" => Some(Kind::Bool(true)),
                    "false" => Some(Kind::Bool(false)),
                    "nil" => Some(Kind::Nil),
                    _ => None,
                };
                match constant {
                    // Nothing can follow these directly.
                    Some(constant) => return self.node(constant, at),
                    None if self.is(Word::Bracket, "(") => self.call(token, Vec::new())?,
                    None => self.node(Kind::Name(token.text.clone()), at)?,
                }
            }
            Word::Number => {
                self.next()?;
                let kind = number(&token.text).map_err(|message| self.mistake(message))?;
                return self.node(kind, at);
            }
            Word::String => {
                self.next()?;
                self.node(Kind::Text(token.text.clone()), at)?
            }
            Word::Bracket if token.text == "[" => self.list()?,
            Word::Bracket if token.text == "{" => self.map()?,
            Word::Operator | Word::Bracket | Word::Eof => return Err(self.unexpected()),
        };
        self.postfix(node)
    }

    /// A call of `function`, whose name has been read; `arguments` are those that a pipe gives it.
    fn call(&mut self, function: &Token, arguments: Vec<Node>) -> Parsed {
        let at = function.at.clone();
        if let Some((name, shape)) = PREDICATES.into_iter().find(|(name, _)| *name == function.text) {
            let arguments = self.predicate_arguments(shape, arguments)?;
            return self.node(Kind::Builtin(name, arguments), at);
        }
        if let Some(name) = FUNCTIONS.iter().find(|name| **name == function.text) {
            let arguments = self.arguments(arguments)?;
            return self.node(Kind::Builtin(name, arguments), at);
        }
        let callee = self.node(Kind::Name(function.text.clone()), at.clone())?;
        let arguments = self.arguments(arguments)?;
        self.node(Kind::Call(Box::new(callee), arguments), at)
    }

    fn predicate_arguments(&mut self, shape: &[Argument], mut arguments: Vec<Node>) -> Result<Vec<Node>, Mistake> {
        self.expect(Word::Bracket, "(")?;
        let shape = &shape[arguments.len().min(shape.len())..];
        for (index, argument) in shape.iter().enumerate() {
            let optional = matches!(argument, Argument::OptionalValue | Argument::OptionalPredicate);
            if self.is(Word::Bracket, ")") {
                if optional {
                    break;
                }
                return Err(self.mistake(format!("expected at least {} arguments", shape.len())));
            }
            if index > 0 {
                self.expect(Word::Operator, ",")?;
            }
            arguments.push(match argument {
                Argument::Value | Argument::OptionalValue => self.expression(0)?,
                Argument::Predicate | Argument::OptionalPredicate => self.predicate()?,
            });
        }
        if self.is(Word::Operator, ",") {
            self.next()?;
        }
        self.expect(Word::Bracket, ")")?;
        Ok(arguments)
    }

    fn predicate(&mut self) -> Parsed {
        let at = self.current.at.clone();
        let braced = self.is(Word::Bracket, "{");
        self.predicates += 1;
        let node = match braced {
            true => self.block()?,
            false => self.expression(0)?,
        };
        self.predicates -= 1;
        if !braced && self.is(Word::Operator, ";") {
            return Err(self.mistake("wrap predicate with brackets { and }"));
        }
        self.node(Kind::Predicate(Box::new(node)), at)
    }

    fn arguments(&mut self, mut arguments: Vec<Node>) -> Result<Vec<Node>, Mistake> {
        let given = arguments.len();
        self.expect(Word::Bracket, "(")?;
        while !self.is(Word::Bracket, ")") {
            if arguments.len() > given {
                self.expect(Word::Operator, ",")?;
            }
            if self.is(Word::Bracket, ")") {
                break;
            }
            arguments.push(self.expression(0)?);
        }
        self.expect(Word::Bracket, ")")?;
        Ok(arguments)
    }

    fn list(&mut self) -> Parsed {
        let at = self.take()?.at;
        let mut nodes = Vec::new();
        while !self.is(Word::Bracket, "]") {
            if !nodes.is_empty() {
                self.expect(Word::Operator, ",")?;
                if self.is(Word::Bracket, "]") {
                    break;
                }
            }
            nodes.push(self.expression(0)?);
        }
        self.expect(Word::Bracket, "]")?;
        self.node(Kind::List(nodes), at)
    }

    fn map(&mut self) -> Parsed {
        let at = self.take()?.at;
        let mut pairs = Vec::new();
        while !self.is(Word::Bracket, "}") {
            if !pairs.is_empty() {
                self.expect(Word::Operator, ",")?;
                if self.is(Word::Bracket, "}") {
                    break;
                }
                if self.is(Word::Operator, ",") {
                    return Err(self.unexpected());
                }
            }
            let key = self.key()?;
            self.expect(Word::Operator, ":")?;
            let value = self.expression(0)?;
            // Counted as a node of its own.
            self.nodes += 1;
            pairs.push((key, value));
        }
        self.expect(Word::Bracket, "}")?;
        self.node(Kind::Map(pairs), at)
    }

    fn key(&mut self) -> Parsed {
        match self.current.kind {
            Word::Number | Word::String | Word::Identifier => {
                let token = self.take()?;
                self.node(Kind::Text(token.text), token.at)
            }
            Word::Bracket if self.current.text == "(" => self.expression(0),
            Word::Bracket | Word::Operator | Word::Eof => Err(self.mistake(format!(
                "a map key must be a quoted string, a number, a identifier, or an expression enclosed in parentheses \
                 (unexpected token {})",
                self.current.shown()
            ))),
        }
    }

    /// Members, indices, slices and method calls behind a value.
    fn postfix(&mut self, node: Node) -> Parsed {
        let mut node = node;
        loop {
            let token = self.current.clone();
            let sign = matches!(token.kind, Word::Operator | Word::Bracket);
            match token.text.as_str() {
                "." if sign => {
                    self.next()?;
                    node = self.member(node, false)?;
                }
                "?." if sign => {
                    self.next()?;
                    node = match self.is(Word::Bracket, "[") {
                        true => self.index(node, true)?,
                        false => self.member(node, true)?,
                    };
                }
                "[" if sign => node = self.index(node, false)?,
                _ => return Ok(node),
            }
        }
    }

    fn member(&mut self, of: Node, optional: bool) -> Parsed {
        let name = self.take()?;
        let usable = name.kind == Word::Identifier || name.kind == Word::Operator && is_name(&name.text);
        if !usable {
            return Err(self.mistake("expected name"));
        }
        let at = name.at.clone();
        let property = self.node(Kind::Text(name.text), at.clone())?;
        let mut of = of;
        let (of, in_chain) = match std::mem::replace(&mut of.kind, Kind::Nil) {
            Kind::Chain(inner) => (inner, true),
            kind => {
                of.kind = kind;
                (Box::new(of), false)
            }
        };
        let mut node = self.node(Kind::Member { of, property: Box::new(property), optional }, at.clone())?;
        if self.is(Word::Bracket, "(") {
            let arguments = self.arguments(Vec::new())?;
            node = self.node(Kind::Call(Box::new(node), arguments), at.clone())?;
        }
        match in_chain || optional {
            true => self.node(Kind::Chain(Box::new(node)), at),
            false => Ok(node),
        }
    }

    fn index(&mut self, of: Node, optional: bool) -> Parsed {
        let at = self.take()?.at;
        let of = Box::new(of);
        let from = match self.is(Word::Operator, ":") {
            true => None,
            false => Some(Box::new(self.expression(0)?)),
        };
        let node = match (self.is(Word::Operator, ":"), from) {
            (true, from) => {
                self.next()?;
                let to = match self.is(Word::Bracket, "]") {
                    true => None,
                    false => Some(Box::new(self.expression(0)?)),
                };
                self.node(Kind::Slice { of, from, to }, at)?
            }
            (false, Some(property)) => {
                let node = self.node(Kind::Member { of, property, optional }, at.clone())?;
                if optional { self.node(Kind::Chain(Box::new(node)), at)? } else { node }
            }
            (false, None) => return Err(self.unexpected()),
        };
        self.expect(Word::Bracket, "]")?;
        Ok(node)
    }
}

/// The operator of this text.
fn binary(text: &str) -> Option<(&'static str, u32, bool)> {
    BINARY.into_iter().find(|(name, _, _)| *name == text)
}

/// The number that a word stands for; the error is the library's.
fn number(text: &str) -> Result<Kind, String> {
    let digits = text.replace('_', "");
    let lower = digits.to_lowercase();
    let based = |kind: &str, digits: &str, base: u32| {
        i64::from_str_radix(digits, base).map(Kind::Int).map_err(|error| {
            let why = match error.kind() {
                std::num::IntErrorKind::PosOverflow => "value out of range",
                _ => "invalid syntax",
            };
            format!("invalid {kind} literal: strconv.ParseInt: parsing {}: {why}", go_quoted(&text.replace('_', "")))
        })
    };
    if let Some(hex) = lower.strip_prefix("0x") {
        based("hex", hex, 16)
    } else if lower.contains(['.', 'e']) {
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Kind::Float(number)),
            Ok(_) => Err(format!(
                "invalid float literal: strconv.ParseFloat: parsing {}: value out of range",
                go_quoted(&digits)
            )),
            Err(_) => Err(format!(
                "invalid float literal: strconv.ParseFloat: parsing {}: invalid syntax",
                go_quoted(&digits)
            )),
        }
    } else if let Some(bits) = lower.strip_prefix("0b") {
        based("binary", bits, 2)
    } else if let Some(octal) = lower.strip_prefix("0o") {
        based("octal", octal, 8)
    } else {
        based("integer", &lower, 10)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The tree in brackets.
    fn shown(node: &Node) -> String {
        let list = |nodes: &[Node]| nodes.iter().map(shown).collect::<Vec<_>>().join(" ");
        match &node.kind {
            Kind::Nil => "nil".into(),
            Kind::Bool(value) => value.to_string(),
            Kind::Int(value) => value.to_string(),
            Kind::Float(value) => format!("{value:?}"),
            Kind::Text(value) => format!("{value:?}"),
            Kind::Name(name) => name.clone(),
            Kind::Pointer(name) => format!("#{name}"),
            Kind::Unary(name, one) => format!("({name} {})", shown(one)),
            Kind::Binary(name, one, two) => format!("({name} {} {})", shown(one), shown(two)),
            Kind::Chain(one) => format!("(chain {})", shown(one)),
            Kind::Member { of, property, optional } => {
                format!("({} {} {})", if *optional { "?." } else { "." }, shown(of), shown(property))
            }
            Kind::Slice { of, from, to } => {
                let bound = |bound: &Option<Box<Node>>| bound.as_ref().map_or("_".into(), |bound| shown(bound));
                format!("(slice {} {} {})", shown(of), bound(from), bound(to))
            }
            Kind::Call(callee, arguments) => format!("(call {} {})", shown(callee), list(arguments)),
            Kind::Builtin(name, arguments) => format!("({name} {})", list(arguments)),
            Kind::Predicate(one) => format!("{{{}}}", shown(one)),
            Kind::Conditional(one, two, three) => format!("(if {} {} {})", shown(one), shown(two), shown(three)),
            Kind::Let(name, value, then) => format!("(let {name} {} {})", shown(value), shown(then)),
            Kind::Sequence(nodes) => format!("(; {})", list(nodes)),
            Kind::List(nodes) => format!("[{}]", list(nodes)),
            Kind::Map(pairs) => {
                let pairs = pairs.iter().map(|(key, value)| format!("{}:{}", shown(key), shown(value)));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(" "))
            }
        }
    }

    #[test]
    fn expressions_bind_as_in_the_library() {
        for (text, tree) in [
            ("result >= 0.95", "(>= result 0.95)"),
            ("1 + 2 * 3 ** 2 ^ 2", "(+ 1 (* 2 (** 3 (^ 2 2))))"),
            ("1 - 2 - 3", "(- (- 1 2) 3)"),
            ("not a and b || c", "(|| (and (not a) b) c)"),
            ("0 < x <= 5", "(&& (< 0 x) (<= x 5))"),
            ("a not in [1, 2,]", "(not (in a [1 2]))"),
            ("not (x contains 'y')", "(not (contains x \"y\"))"),
            ("all(result, # > 1 and .ok)", "(all result {(and (> # 1) (. # \"ok\"))})"),
            ("reduce(1..3, #acc + #, 0)", "(reduce (.. 1 3) {(+ #acc #)} 0)"),
            ("result | filter({.v}) | len()", "(len (filter result {(. # \"v\")}))"),
            ("a?.b.c ?? 0", "(?? (chain (. (?. a \"b\") \"c\")) 0)"),
            ("a?.[0]", "(chain (?. a 0))"),
            ("a[1:][:2][0]", "(. (slice (slice a 1 _) _ 2) 0)"),
            ("a ? b : c ? d : e", "(if a b (if c d e))"),
            ("a ?: b", "(if a a b)"),
            ("if a { b } else if c { d } else { e }", "(if a b (if c d e))"),
            ("let x = 1; x + 1", "(let x 1 (+ x 1))"),
            ("{a: 1, 'b': 2, (c): 3}", "{\"a\":1 \"b\":2 c:3}"),
            ("asInt(result.x) == 0x1F // why", "(== (call asInt (. result \"x\")) 31)"),
            ("`a``b` == \"\\u00e9\\n\"", "(== \"a`b\" \"é\\n\")"),
            ("x.not.matches", "(. (. x \"not\") \"matches\")"),
            ("-1 .. 1_000", "(.. (- 1) 1000)"),
            ("a;", "a"),
        ] {
            assert_eq!(parse(text).map(|node| shown(&node)), Ok(tree.to_owned()), "{text}");
        }
    }

    #[test]
    fn mistakes_have_a_place_and_the_words_of_the_library() {
        for (text, message, at) in [
            ("", "unexpected token EOF", 0..0),
            ("result >", "unexpected token EOF", 7..8),
            ("bad syntax here", "unexpected token Identifier(\"syntax\")", 4..10),
            ("result > 5)", "unexpected token Bracket(\")\")", 10..11),
            ("let x = 1", "unexpected token EOF", 8..9),
            ("x = 2", "unexpected token Operator(\"=\")", 2..3),
            ("'abc", "literal not terminated", 4..5),
            ("1 @ 2", "unrecognized character: U+0040 '@'", 2..3),
            ("12ab", "bad number syntax: \"12a\"", 2..3),
            (
                "a ?? b == c",
                "Operator (==) and coalesce expressions (??) cannot be mixed. Wrap either by parentheses.",
                7..9,
            ),
            ("# > 1", "unexpected token Operator(\"#\")", 0..1),
            ("a.1", "unexpected token Number(\".1\")", 1..3),
            ("all(x)", "expected at least 2 arguments", 5..6),
        ] {
            let found = parse(text).expect_err(text);
            assert_eq!((found.message.as_str(), found.at), (message, at), "{text}");
        }
    }

    #[test]
    fn no_expression_runs_away() {
        for text in [
            "(".repeat(100_000),
            "-".repeat(100_000),
            "[".repeat(100_000),
            "[a[b".repeat(100_000),
            "{a:[b".repeat(100_000),
            "all(a,{".repeat(100_000),
            "if a {".repeat(100_000),
            "let a = (".repeat(100_000),
            "a.".repeat(100_000),
            "1+".repeat(100_000) + "1",
            "a?b:".repeat(100_000) + "c",
            "not ".repeat(100_000),
            "1<".repeat(100_000) + "1",
            "a|len()".to_owned() + &"|len()".repeat(100_000),
        ] {
            assert!(parse(&text).is_err());
        }
    }

    proptest! {
        #[test]
        fn every_text_is_answered(text in "[a-z0-9 .,;:?|&!=*<>()\\[\\]{}#'\"`/%+^\\-]{0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn even_the_odd_ones(text: String) {
            let _ = parse(&text);
        }
    }
}
