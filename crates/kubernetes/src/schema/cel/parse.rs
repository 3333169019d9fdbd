//! From the text of a rule to an expression, macros expanded; complaints read as those of the real server's parser.

use super::{
    ast::{Entry, Expr, Fold, Issue, Literal, Node},
    lex::{Kind, Token, tokens},
};
use crate::value::{Text, intern};

/// Deeper nesting is refused, as the real server refuses it.
const DEEPEST: usize = 250;
/// Longer rules are refused.
const LONGEST: usize = 100_000;
/// The variable a loop gathers its result in.
const ACCU: &str = "@result";
/// Words that may not be names.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// A rule, parsed.
#[derive(Debug, Clone)]
pub(super) struct Parsed {
    pub expr: Expr,
    /// How many expressions there are: ids are below it.
    pub count: usize,
}

/// Parses a rule.
pub(super) fn parse(source: &str) -> Result<Parsed, Vec<Issue>> {
    let length = source.chars().count();
    if length > LONGEST {
        let words = format!("expression code point size exceeds limit: size: {length}, limit {LONGEST}");
        return Err(vec![Issue { at: None, words }]);
    }
    let mut issues = Vec::new();
    let tokens = tokens(source, &mut issues);
    let mut parser = Parser { tokens, next: 0, issues, count: 0, depth: 0 };
    let expr = parser.rule();
    match expr {
        Ok(expr) if parser.issues.is_empty() => Ok(Parsed { expr, count: parser.count }),
        _ => Err(parser.issues),
    }
}

/// The parser gave up; the issue is noted.
struct Stop;

type Parse<T> = Result<T, Stop>;

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    issues: Vec<Issue>,
    count: usize,
    depth: usize,
}

/// How tightly operators bind, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Relation,
    Sum,
    Product,
    Operand,
}

impl Level {
    fn tighter(self) -> Level {
        match self {
            Level::Or => Level::And,
            Level::And => Level::Relation,
            Level::Relation => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product | Level::Operand => Level::Operand,
        }
    }
}

/// What may begin an expression, as complaints list it: with what else may stand there.
fn starts(more: &[&str]) -> String {
    let all = ["'['", "']'", "'{'", "'}'", "'('", "')'", "'.'", "','", "'-'", "'!'", "'?'"];
    let plain = ["'['", "'{'", "'('", "'.'", "'-'", "'!'"];
    let symbols = all.iter().filter(|symbol| plain.contains(symbol) || more.contains(symbol));
    let rest = ["'true'", "'false'", "'null'", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER"];
    let list: Vec<&str> = symbols.chain(&rest).copied().collect();
    format!("{{{}}}", list.join(", "))
}

impl Parser {
    fn rule(&mut self) -> Parse<Expr> {
        let expr = self.expr(&[])?;
        if !matches!(self.peek().kind, Kind::End) {
            let last = matches!(self.ahead(1).kind, Kind::End);
            let words = if last { "extraneous input" } else { "mismatched input" };
            self.complain(&format!("{words} '{}' expecting <EOF>", self.peek().shown()));
            return Err(Stop);
        }
        Ok(expr)
    }

    fn peek(&self) -> &Token {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> &Token {
        &self.tokens[(self.next + by).min(self.tokens.len() - 1)]
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, symbol: &str) -> Option<usize> {
        self.peek().is(symbol).then(|| self.take().at)
    }

    fn complain(&mut self, words: &str) {
        self.issues.push(Issue::new(self.peek().at, format!("Syntax error: {words}")));
    }

    fn issue(&mut self, at: usize, words: impl Into<String>) {
        self.issues.push(Issue::new(at, words));
    }

    fn expr_at(&mut self, at: usize, node: Node) -> Expr {
        self.count += 1;
        Expr { id: self.count - 1, at, node }
    }

    /// Takes a symbol that must come, mending what is one token off.
    fn expect(&mut self, symbol: &'static str) -> Parse<usize> {
        if let Some(at) = self.takes(symbol) {
            return Ok(at);
        }
        if self.ahead(1).is(symbol) {
            self.complain(&format!("extraneous input '{}' expecting '{symbol}'", self.peek().shown()));
            self.take();
            return Ok(self.take().at);
        }
        let follows = match symbol {
            ":" => self.begins(self.peek()),
            _ => {
                let token = self.peek();
                matches!(token.kind, Kind::End)
                    || matches!(token.kind, Kind::Symbol(s) if !["!", "{", "("].contains(&s))
                    || token.text == "in"
            }
        };
        let shown = self.peek().shown().to_owned();
        if follows {
            self.complain(&format!("missing '{symbol}' at '{shown}'"));
            return Ok(self.peek().at);
        }
        self.complain(&format!("mismatched input '{shown}' expecting '{symbol}'"));
        Err(Stop)
    }

    /// Whether an expression can begin with this token.
    fn begins(&self, token: &Token) -> bool {
        match &token.kind {
            Kind::Symbol(symbol) => ["[", "{", "(", ".", "-", "!"].contains(symbol),
            Kind::Ident => token.text != "in",
            Kind::Literal(_) => true,
            Kind::Escaped | Kind::End => false,
        }
    }

    fn expr(&mut self, more: &[&str]) -> Parse<Expr> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let words = format!("expression recursion limit exceeded: {DEEPEST}");
            self.issues = vec![Issue { at: None, words }];
            return Err(Stop);
        }
        let mut expr = self.binary(Level::Or, more)?;
        if let Some(at) = self.takes("?") {
            let yes = self.binary(Level::Or, &[])?;
            self.expect(":")?;
            let no = self.expr(&[])?;
            expr = self.call(at, "_?_:_", vec![expr, yes, no]);
        }
        self.depth -= 1;
        Ok(expr)
    }

    /// Operands joined by operators of this level or one that binds tighter. One function for all levels, since every
    /// bracket nests through it and the stack is not endless.
    fn binary(&mut self, level: Level, more: &[&str]) -> Parse<Expr> {
        let mut left = self.member(more)?;
        let mut height = 0;
        // The call this loop made last: brackets before it would make it another's.
        let mut chain = None;
        while let Some((own, function)) = self.operator().filter(|(own, _)| *own >= level) {
            let at = self.take().at;
            let right = self.binary(own.tighter(), &[])?;
            left = match left.node {
                // A chain of `&&` or `||` is one call with all terms, so that a long chain is not a deep one.
                Node::Call { function: ref chained, target: None, ref mut args }
                    if own <= Level::And && chained == function && chain == Some(left.id) =>
                {
                    args.push(right);
                    left.at = at;
                    left
                }
                _ => {
                    self.climb(&mut height)?;
                    let joined = self.call(at, function, vec![left, right]);
                    chain = Some(joined.id);
                    joined
                }
            };
        }
        Ok(left)
    }

    /// The operator that comes next.
    fn operator(&self) -> Option<(Level, &'static str)> {
        let token = self.peek();
        Some(match &token.kind {
            Kind::Symbol("||") => (Level::Or, "_||_"),
            Kind::Symbol("&&") => (Level::And, "_&&_"),
            Kind::Symbol("<") => (Level::Relation, "_<_"),
            Kind::Symbol("<=") => (Level::Relation, "_<=_"),
            Kind::Symbol(">") => (Level::Relation, "_>_"),
            Kind::Symbol(">=") => (Level::Relation, "_>=_"),
            Kind::Symbol("==") => (Level::Relation, "_==_"),
            Kind::Symbol("!=") => (Level::Relation, "_!=_"),
            Kind::Ident if token.text == "in" => (Level::Relation, "@in"),
            Kind::Symbol("+") => (Level::Sum, "_+_"),
            Kind::Symbol("-") => (Level::Sum, "_-_"),
            Kind::Symbol("*") => (Level::Product, "_*_"),
            Kind::Symbol("/") => (Level::Product, "_/_"),
            Kind::Symbol("%") => (Level::Product, "_%_"),
            _ => return None,
        })
    }

    /// Counts one more level of an expression that grows to the left.
    fn climb(&mut self, height: &mut usize) -> Parse<()> {
        *height += 1;
        if *height + self.depth > DEEPEST {
            self.issues = vec![Issue { at: None, words: "max recursion depth exceeded".to_owned() }];
            return Err(Stop);
        }
        Ok(())
    }

    /// The signs before an operand: where they stand, and the function if they do not cancel out.
    fn signs(&mut self) -> Option<(usize, Option<&'static str>)> {
        let (symbol, function) = match self.peek().kind {
            Kind::Symbol("!") => ("!", "!_"),
            Kind::Symbol("-") => ("-", "-_"),
            _ => return None,
        };
        // One minus before a number belongs to the number.
        if symbol == "-"
            && let Kind::Literal(literal) = &self.ahead(1).kind
            && matches!(
                literal,
                Ok(Literal::Int(_) | Literal::Double(_)) | Err("invalid int literal" | "invalid double literal")
            )
        {
            return None;
        }
        let at = self.peek().at;
        let mut times = 0;
        while self.peek().is(symbol) {
            self.take();
            times += 1;
        }
        Some((at, (times % 2 == 1).then_some(function)))
    }

    /// An operand with its signs, fields, calls and indices.
    fn member(&mut self, more: &[&str]) -> Parse<Expr> {
        let signs = self.signs();
        let mut operand = self.primary(if signs.is_some() { &[] } else { more })?;
        let mut height = 0;
        loop {
            if let Some(at) = self.takes(".") {
                operand = self.select(operand, at)?;
            } else if let Some(at) = self.takes("[") {
                let optional = self.takes("?").is_some();
                let index = self.expr(if optional { &[] } else { &["'?'"] })?;
                self.expect("]")?;
                operand = self.call(at, if optional { "_[?_]" } else { "_[_]" }, vec![operand, index]);
            } else {
                return Ok(match signs {
                    Some((at, Some(function))) => self.call(at, function, vec![operand]),
                    _ => operand,
                });
            }
            self.climb(&mut height)?;
        }
    }

    fn select(&mut self, operand: Expr, at: usize) -> Parse<Expr> {
        if self.takes("?").is_some() {
            if !matches!(self.peek().kind, Kind::Ident) {
                let place = self.peek().at;
                let shown = self.peek().shown().to_owned();
                self.complain(&format!("mismatched input '{shown}' expecting {{IDENTIFIER, ESC_IDENTIFIER}}"));
                self.issue(place, "unsupported ident kind");
                return Err(Stop);
            }
            let field = self.take();
            let literal = self.expr_at(field.at, Node::Literal(Literal::Str(intern(&field.text))));
            return Ok(self.call(at, "_?._", vec![operand, literal]));
        }
        let token = self.peek().clone();
        match &token.kind {
            Kind::Escaped => {
                self.issue(token.at, "unsupported syntax: '`'");
                Err(Stop)
            }
            Kind::Ident if matches!(token.text.as_str(), "true" | "false" | "null") => {
                self.complain(&format!("mismatched input '{}' expecting IDENTIFIER", token.text));
                Err(Stop)
            }
            Kind::Ident if token.text != "in" => {
                self.take();
                match self.takes("(") {
                    None => {
                        let node = Node::Select { operand: Box::new(operand), field: intern(&token.text), test: false };
                        Ok(self.expr_at(at, node))
                    }
                    Some(open) => {
                        let args = self.arguments()?;
                        self.method(open, &token.text, operand, args)
                    }
                }
            }
            _ => {
                self.complain(&format!("no viable alternative at input '.{}'", token.text));
                Err(Stop)
            }
        }
    }

    fn arguments(&mut self) -> Parse<Vec<Expr>> {
        let mut args = Vec::new();
        if self.takes(")").is_some() {
            return Ok(args);
        }
        args.push(self.expr(&["')'"])?);
        while self.takes(",").is_some() {
            args.push(self.expr(&[])?);
        }
        self.expect(")")?;
        Ok(args)
    }

    fn primary(&mut self, more: &[&str]) -> Parse<Expr> {
        if !self.begins(self.peek()) {
            let shown = self.peek().shown().to_owned();
            // One token too many is passed over, if what follows makes sense.
            if self.begins(self.ahead(1)) && !matches!(self.peek().kind, Kind::End) {
                self.complain(&format!("extraneous input '{shown}' expecting {}", starts(more)));
                self.take();
            } else {
                self.complain(&format!("mismatched input '{shown}' expecting {}", starts(more)));
                return Err(Stop);
            }
        }
        let token = self.take();
        match token.kind {
            Kind::Literal(literal) => Ok(self.literal(token.at, literal)),
            Kind::Symbol("-") => Ok(self.negative(token.at)),
            Kind::Symbol("(") => {
                let expr = self.expr(&[])?;
                self.expect(")")?;
                Ok(expr)
            }
            Kind::Symbol("[") => self.list(token.at),
            Kind::Symbol("{") => self.map(token.at),
            Kind::Symbol(_) => {
                // A leading dot: the name is looked up at the top.
                if !matches!(self.peek().kind, Kind::Ident) {
                    self.complain(&format!("no viable alternative at input '.{}'", self.peek().text));
                    return Err(Stop);
                }
                let name = self.take();
                self.name(name.at, &name.text, ".")
            }
            Kind::Ident | Kind::Escaped | Kind::End => self.name(token.at, &token.text, ""),
        }
    }

    fn literal(&mut self, at: usize, literal: Result<Literal, &'static str>) -> Expr {
        let literal = literal.unwrap_or_else(|words| {
            self.issue(at, words);
            Literal::Null
        });
        self.expr_at(at, Node::Literal(literal))
    }

    /// A number with its sign, which has been taken.
    fn negative(&mut self, at: usize) -> Expr {
        let token = self.take();
        let literal = match token.kind {
            Kind::Literal(Ok(Literal::Int(n))) => Ok(Literal::Int(-n)),
            Kind::Literal(Ok(Literal::Double(f))) => Ok(Literal::Double(-f)),
            // The least integer has no positive to be the negative of.
            _ if token.text == "9223372036854775808" || token.text == "0x8000000000000000" => {
                Ok(Literal::Int(i64::MIN))
            }
            Kind::Literal(Err(words)) => Err(words),
            _ => Err("invalid int literal"),
        };
        self.literal(at, literal)
    }

    fn name(&mut self, at: usize, name: &str, dot: &str) -> Parse<Expr> {
        match name {
            "true" | "false" => return Ok(self.expr_at(at, Node::Literal(Literal::Bool(name == "true")))),
            "null" => return Ok(self.expr_at(at, Node::Literal(Literal::Null))),
            _ => {}
        }
        if let Some(expr) = self.structure(name, dot)? {
            return Ok(expr);
        }
        if RESERVED.contains(&name) {
            self.issue(at, format!("reserved identifier: {name}"));
        }
        let full = format!("{dot}{name}");
        match self.takes("(") {
            None => Ok(self.expr_at(at, Node::Ident(intern(&full)))),
            Some(open) => {
                let args = self.arguments()?;
                self.function(open, &full, args)
            }
        }
    }

    /// `a.b.C{field: value}`, if it is that.
    fn structure(&mut self, name: &str, dot: &str) -> Parse<Option<Expr>> {
        let mut ahead = 0;
        let mut full = format!("{dot}{name}");
        while self.ahead(ahead).is(".") && matches!(self.ahead(ahead + 1).kind, Kind::Ident) {
            full = format!("{full}.{}", self.ahead(ahead + 1).text);
            ahead += 2;
        }
        if !self.ahead(ahead).is("{") {
            return Ok(None);
        }
        self.next += ahead;
        let at = self.take().at;
        let mut fields = Vec::new();
        while !self.peek().is("}") {
            if fields.is_empty() && self.takes(",").is_some() {
                break;
            }
            self.takes("?");
            if !matches!(self.peek().kind, Kind::Ident) {
                let shown = self.peek().shown().to_owned();
                let expected = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}";
                self.complain(&format!("mismatched input '{shown}' expecting {expected}"));
                return Err(Stop);
            }
            let field = self.take();
            let colon = self.expect(":")?;
            let value = self.expr(&[])?;
            fields.push((intern(&field.text), value, colon));
            if self.takes(",").is_none() {
                break;
            }
        }
        self.close("}")?;
        Ok(Some(self.expr_at(at, Node::Struct { name: intern(&full), fields })))
    }

    /// The bracket that ends a list of things.
    fn close(&mut self, symbol: &'static str) -> Parse<()> {
        if self.takes(symbol).is_some() {
            return Ok(());
        }
        let shown = self.peek().shown().to_owned();
        let after_comma = self.next > 0 && self.tokens[self.next - 1].is(",");
        let expected = if after_comma { format!("'{symbol}'") } else { format!("{{'{symbol}', ','}}") };
        if !after_comma && self.ahead(1).is(symbol) {
            self.complain(&format!("extraneous input '{shown}' expecting {expected}"));
        } else {
            self.complain(&format!("mismatched input '{shown}' expecting {expected}"));
        }
        Err(Stop)
    }

    fn list(&mut self, at: usize) -> Parse<Expr> {
        let (mut items, mut optional) = (Vec::new(), Vec::new());
        while !self.peek().is("]") {
            if self.peek().is(",") {
                if items.is_empty() {
                    self.take();
                }
                break;
            }
            optional.push(self.takes("?").is_some());
            items.push(self.expr(if items.is_empty() { &["']'", "','", "'?'"] } else { &["'?'"] })?);
            if self.takes(",").is_none() {
                break;
            }
        }
        self.close("]")?;
        Ok(self.expr_at(at, Node::List { items, optional }))
    }

    fn map(&mut self, at: usize) -> Parse<Expr> {
        let mut entries = Vec::new();
        while !self.peek().is("}") {
            if self.peek().is(",") {
                if entries.is_empty() {
                    self.take();
                }
                break;
            }
            let optional = self.takes("?").is_some();
            let key = self.expr(if entries.is_empty() { &["'}'", "','", "'?'"] } else { &["'?'"] })?;
            self.expect(":")?;
            let value = self.expr(&[])?;
            entries.push(Entry { key, value, optional });
            if self.takes(",").is_none() {
                break;
            }
        }
        self.close("}")?;
        Ok(self.expr_at(at, Node::Map(entries)))
    }

    fn call(&mut self, at: usize, function: &str, args: Vec<Expr>) -> Expr {
        self.expr_at(at, Node::Call { function: intern(function), target: None, args })
    }

    fn call_method(&mut self, at: usize, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        self.expr_at(at, Node::Call { function: intern(function), target: Some(Box::new(target)), args })
    }
}

/// The macros. Everything they make stands where the call's bracket stands.
impl Parser {
    fn function(&mut self, at: usize, name: &str, mut args: Vec<Expr>) -> Parse<Expr> {
        if name != "has" || args.len() != 1 {
            return Ok(self.call(at, name, args));
        }
        let arg = args.remove(0);
        match arg.node {
            Node::Select { operand, field, test: false } => {
                Ok(self.expr_at(at, Node::Select { operand, field, test: true }))
            }
            _ => {
                self.issue(arg.at, "invalid argument to has() macro");
                Err(Stop)
            }
        }
    }

    fn method(&mut self, at: usize, name: &str, target: Expr, mut args: Vec<Expr>) -> Parse<Expr> {
        match (name, args.len()) {
            ("all" | "exists" | "exists_one", 2) => {
                let var = self.variable(&args[0], "argument must be a simple name")?;
                let predicate = args.remove(1);
                Ok(self.quantifier(at, name, target, (var, None), predicate))
            }
            ("all" | "exists" | "exists_one" | "existsOne", 3) => {
                let vars = self.two_variables(&args)?;
                let predicate = args.remove(2);
                Ok(self.quantifier(at, name, target, vars, predicate))
            }
            ("map", 2 | 3) => {
                let var = self.variable(&args[0], "argument is not an identifier")?;
                let item = args.remove(args.len() - 1);
                let filter = (args.len() == 2).then(|| args.remove(1));
                Ok(self.gather(at, target, (var, None), filter, item))
            }
            ("filter", 2) => {
                let var = self.variable(&args[0], "argument is not an identifier")?;
                let filter = args.remove(1);
                let item = args.remove(0);
                Ok(self.gather(at, target, (var, None), Some(filter), item))
            }
            ("transformList", 3 | 4) => {
                let vars = self.two_variables(&args)?;
                let item = args.remove(args.len() - 1);
                let filter = (args.len() == 3).then(|| args.remove(2));
                Ok(self.gather(at, target, vars, filter, item))
            }
            ("transformMap" | "transformMapEntry", 3 | 4) => {
                let vars = self.two_variables(&args)?;
                let item = args.remove(args.len() - 1);
                let filter = (args.len() == 3).then(|| args.remove(2));
                let accu = self.accu(at);
                let step = match name {
                    "transformMap" => {
                        let key = self.expr_at(at, Node::Ident(vars.0.clone()));
                        self.call(at, "cel.@mapInsert", vec![accu, key, item])
                    }
                    _ => self.call(at, "cel.@mapInsert", vec![accu, item]),
                };
                let init = self.expr_at(at, Node::Map(Vec::new()));
                Ok(self.filtered(at, target, vars, init, filter, step))
            }
            ("optMap" | "optFlatMap", 2) => self.optional_map(at, name, target, args),
            ("sortBy", 2) => self.sort_by(at, target, args),
            _ => Ok(self.call_method(at, name, target, args)),
        }
    }

    fn variable(&mut self, expr: &Expr, words: &str) -> Parse<Text> {
        match &expr.node {
            Node::Ident(name) if name == ACCU || name == "__result__" => {
                self.issue(expr.at, "iteration variable overwrites accumulator variable");
                Err(Stop)
            }
            Node::Ident(name) => Ok(name.clone()),
            _ => {
                self.issue(expr.at, words);
                Err(Stop)
            }
        }
    }

    fn two_variables(&mut self, args: &[Expr]) -> Parse<(Text, Option<Text>)> {
        let words = "argument must be a simple name";
        let (first, second) = (self.variable(&args[0], words)?, self.variable(&args[1], words)?);
        if first == second {
            self.issue(args[1].at, format!("duplicate variable name: {first}"));
            return Err(Stop);
        }
        Ok((first, Some(second)))
    }

    fn accu(&mut self, at: usize) -> Expr {
        self.expr_at(at, Node::Ident(intern(ACCU)))
    }

    fn constant(&mut self, at: usize, literal: Literal) -> Expr {
        self.expr_at(at, Node::Literal(literal))
    }

    fn fold(
        &mut self,
        at: usize,
        range: Expr,
        (var, var2): (Text, Option<Text>),
        [init, condition, step, result]: [Expr; 4],
    ) -> Expr {
        let accu = intern(ACCU);
        self.expr_at(at, Node::Fold(Box::new(Fold { range, var, var2, accu, init, condition, step, result })))
    }

    fn quantifier(&mut self, at: usize, name: &str, range: Expr, vars: (Text, Option<Text>), predicate: Expr) -> Expr {
        let accu = self.accu(at);
        let parts = match name {
            "all" => {
                let init = self.constant(at, Literal::Bool(true));
                let condition = self.call(at, "@not_strictly_false", vec![accu]);
                let accu = self.accu(at);
                let step = self.call(at, "_&&_", vec![accu, predicate]);
                [init, condition, step, self.accu(at)]
            }
            "exists" => {
                let init = self.constant(at, Literal::Bool(false));
                let not = self.call(at, "!_", vec![accu]);
                let condition = self.call(at, "@not_strictly_false", vec![not]);
                let accu = self.accu(at);
                let step = self.call(at, "_||_", vec![accu, predicate]);
                [init, condition, step, self.accu(at)]
            }
            _ => {
                let init = self.constant(at, Literal::Int(0));
                let condition = self.constant(at, Literal::Bool(true));
                let one = self.constant(at, Literal::Int(1));
                let more = self.call(at, "_+_", vec![accu, one]);
                let same = self.accu(at);
                let step = self.call(at, "_?_:_", vec![predicate, more, same]);
                let (accu, one) = (self.accu(at), self.constant(at, Literal::Int(1)));
                [init, condition, step, self.call(at, "_==_", vec![accu, one])]
            }
        };
        self.fold(at, range, vars, parts)
    }

    fn gather(&mut self, at: usize, range: Expr, vars: (Text, Option<Text>), filter: Option<Expr>, item: Expr) -> Expr {
        let accu = self.accu(at);
        let one = self.expr_at(at, Node::List { items: vec![item], optional: vec![false] });
        let step = self.call(at, "_+_", vec![accu, one]);
        let init = self.expr_at(at, Node::List { items: Vec::new(), optional: Vec::new() });
        self.filtered(at, range, vars, init, filter, step)
    }

    fn filtered(
        &mut self,
        at: usize,
        range: Expr,
        vars: (Text, Option<Text>),
        init: Expr,
        filter: Option<Expr>,
        step: Expr,
    ) -> Expr {
        let condition = self.constant(at, Literal::Bool(true));
        let step = match filter {
            None => step,
            Some(filter) => {
                let same = self.accu(at);
                self.call(at, "_?_:_", vec![filter, step, same])
            }
        };
        let result = self.accu(at);
        self.fold(at, range, vars, [init, condition, step, result])
    }

    /// `value` bound to a name while `result` is asked: a loop over nothing.
    fn bind(&mut self, at: usize, name: Text, value: Expr, result: Expr) -> Expr {
        let range = self.expr_at(at, Node::List { items: Vec::new(), optional: Vec::new() });
        let condition = self.constant(at, Literal::Bool(false));
        let step = self.expr_at(at, Node::Ident(name.clone()));
        let fold = Fold { range, var: intern("#unused"), var2: None, accu: name, init: value, condition, step, result };
        self.expr_at(at, Node::Fold(Box::new(fold)))
    }

    fn optional_map(&mut self, at: usize, name: &str, target: Expr, mut args: Vec<Expr>) -> Parse<Expr> {
        let Node::Ident(var) = &args[0].node else {
            self.issue(args[0].at, format!("{name}() variable name must be a simple identifier"));
            return Err(Stop);
        };
        let (var, result) = (var.clone(), args.remove(1));
        let value = self.call_method(at, "value", target.clone(), Vec::new());
        let bound = self.bind(at, var, value, result);
        let some = match name {
            "optMap" => self.call(at, "optional.of", vec![bound]),
            _ => bound,
        };
        let has = self.call_method(at, "hasValue", target, Vec::new());
        let none = self.call(at, "optional.none", Vec::new());
        Ok(self.call(at, "_?_:_", vec![has, some, none]))
    }

    fn sort_by(&mut self, at: usize, target: Expr, args: Vec<Expr>) -> Parse<Expr> {
        if matches!(target.node, Node::Literal(_) | Node::Map(_) | Node::Struct { .. }) {
            let words = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            self.issue(target.at, words);
            return Err(Stop);
        }
        let name = intern("@__sortBy_input__");
        let input = self.expr_at(at, Node::Ident(name.clone()));
        let mut args = args;
        let var = self.variable(&args[0], "argument is not an identifier")?;
        let key = args.remove(1);
        let keys = self.gather(at, input.clone(), (var, None), None, key);
        let sorted = self.call_method(at, "@sortByAssociatedKeys", input, vec![keys]);
        Ok(self.bind(at, name, target, sorted))
    }
}
