//! Whether the words of a condition make an expression: a descent by precedence that keeps only the names it meets.

use super::lex::{Token, tokens};

/// How deep an expression may nest.
const DEPTH: u32 = 200;

/// What an expression names.
#[derive(Debug, Default)]
pub struct Seen {
    /// Names that are neither fields nor defined by the expression itself.
    pub names: Vec<String>,
    /// Calls of functions that ignore their first argument, with one that is not the whole result.
    pub ignoring: Vec<&'static str>,
}

/// Parses a condition.
pub fn parse(text: &str) -> Result<Seen, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, seen: Seen::default(), defined: Vec::new() };
    parser.sequence()?;
    match parser.peek() {
        None => Ok(parser.seen),
        Some(Token::Sign(sign @ (")" | "]" | "}"))) => Err(format!("`{sign}` closes nothing")),
        Some(Token::Sign("=")) => Err("`=` compares nothing; write `==`".into()),
        Some(token) => Err(format!("{} is not expected here; is an operator missing?", shown(token))),
    }
}

fn shown(token: Token<'_>) -> String {
    match token {
        Token::Number => "a number".into(),
        Token::Text => "a text".into(),
        Token::Name(word) | Token::Sign(word) => format!("`{word}`"),
    }
}

struct Parser<'t> {
    tokens: &'t [Token<'t>],
    at: usize,
    depth: u32,
    seen: Seen,
    /// Names that `let` has made.
    defined: Vec<&'t str>,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).copied()
    }

    fn take(&mut self, sign: &str) -> bool {
        let there = self.peek() == Some(Token::Sign(sign));
        self.at += usize::from(there);
        there
    }

    fn take_word(&mut self, word: &str) -> bool {
        let there = self.peek() == Some(Token::Name(word));
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.take(sign) {
            return Ok(());
        }
        match self.peek() {
            None => Err(format!("`{sign}` is missing at the end")),
            Some(token) => Err(format!("`{sign}` is missing before {}", shown(token))),
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.depth >= DEPTH {
            return Err("it nests too deep".into());
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// `let x = 1; x > 0`
    fn sequence(&mut self) -> Result<(), String> {
        loop {
            if self.take_word("let") {
                let Some(Token::Name(name)) = self.peek() else { return Err("`let` needs a name".into()) };
                self.at += 1;
                self.expect("=")?;
                self.expression()?;
                self.defined.push(name);
                self.expect(";")?;
                continue;
            }
            self.expression()?;
            if !self.take(";") || self.peek().is_none() {
                return Ok(());
            }
        }
    }

    /// A whole expression, with `? :` and pipes, which bind least.
    fn expression(&mut self) -> Result<(), String> {
        self.deeper(|parser| {
            parser.binary(0)?;
            loop {
                if parser.take("?:") {
                    parser.expression()?;
                } else if parser.take("?") {
                    parser.expression()?;
                    parser.expect(":")?;
                    parser.expression()?;
                } else if parser.take("|") {
                    let Some(Token::Name(name)) = parser.peek() else {
                        return Err("a function must follow `|`".into());
                    };
                    parser.at += 1;
                    parser.name(name);
                    parser.suffixes()?;
                    // What a pipe brings may be compared further.
                    parser.binary_rest(0)?;
                } else {
                    return Ok(());
                }
            }
        })
    }

    fn binary(&mut self, least: u8) -> Result<(), String> {
        self.deeper(|parser| {
            parser.unary()?;
            parser.binary_rest(least)
        })
    }

    fn binary_rest(&mut self, least: u8) -> Result<(), String> {
        while let Some((strength, words)) = self.operator() {
            if strength < least {
                return Ok(());
            }
            self.at += words;
            // `**` and `^` bind to the right.
            self.binary(if strength == 100 { strength } else { strength + 1 })?;
        }
        Ok(())
    }

    /// How strongly the operator that comes next binds, and how many words it has.
    fn operator(&self) -> Option<(u8, usize)> {
        Some(match self.peek()? {
            Token::Sign("||") | Token::Name("or") => (10, 1),
            Token::Sign("&&") | Token::Name("and") => (15, 1),
            Token::Sign("==" | "!=" | "<" | ">" | "<=" | ">=") => (20, 1),
            Token::Name("in" | "matches" | "contains" | "startsWith" | "endsWith") => (20, 1),
            Token::Name("not") => match self.tokens.get(self.at + 1) {
                Some(Token::Name("in" | "matches" | "contains" | "startsWith" | "endsWith")) => (20, 2),
                _ => return None,
            },
            Token::Sign("..") => (25, 1),
            Token::Sign("+" | "-") => (30, 1),
            Token::Sign("*" | "/" | "%") => (60, 1),
            Token::Sign("**" | "^") => (100, 1),
            Token::Sign("??") => (200, 1),
            Token::Number | Token::Text | Token::Name(_) | Token::Sign(_) => return None,
        })
    }

    fn unary(&mut self) -> Result<(), String> {
        match self.peek() {
            Some(Token::Sign("-" | "+" | "!")) | Some(Token::Name("not")) => {
                self.at += 1;
                self.deeper(Parser::unary)
            }
            _ => {
                self.primary()?;
                self.suffixes()
            }
        }
    }

    fn primary(&mut self) -> Result<(), String> {
        let Some(token) = self.peek() else { return Err("a value is missing at the end".into()) };
        self.at += 1;
        match token {
            Token::Number | Token::Text | Token::Name("true" | "false" | "nil") => Ok(()),
            Token::Name("if") => self.conditional(),
            Token::Name(name) => {
                self.name(name);
                Ok(())
            }
            Token::Sign("(") => {
                self.deeper(Parser::sequence)?;
                self.expect(")")
            }
            Token::Sign("[") => self.list("]"),
            Token::Sign("{") => self.map(),
            Token::Sign("#") => {
                // `#`, `#acc`, `#index`: what a function goes over.
                if matches!(self.peek(), Some(Token::Name("acc" | "index"))) {
                    self.at += 1;
                }
                Ok(())
            }
            // `.name` is a field of what a function goes over.
            Token::Sign(".") => self.field(),
            Token::Sign("::") => self.field(),
            Token::Sign("=") => Err("`=` compares nothing; write `==`".into()),
            Token::Sign(sign @ (")" | "]" | "}")) => Err(format!("a value is missing before `{sign}`")),
            Token::Sign(sign) => Err(format!("a value is missing before `{sign}`")),
        }
    }

    fn name(&mut self, name: &str) {
        let ignores = match name {
            "isNil" => Some("isNil"),
            "default" => Some("default"),
            _ => None,
        };
        let whole = [Token::Sign("("), Token::Name("result")];
        let after = self.tokens.get(self.at + 2);
        let is_call = self.peek() == Some(Token::Sign("("));
        let on_result =
            self.tokens.get(self.at..self.at + 2) == Some(&whole[..]) && matches!(after, Some(Token::Sign("," | ")")));
        if let Some(function) = ignores.filter(|_| is_call && !on_result) {
            self.seen.ignoring.push(function);
        }
        if !name.starts_with('$') && !self.defined.contains(&name) {
            self.seen.names.push(name.to_owned());
        }
    }

    /// `if a { b } else { c }`
    fn conditional(&mut self) -> Result<(), String> {
        self.expression()?;
        self.block()?;
        if !self.take_word("else") {
            return Err("`if` needs an `else`".into());
        }
        if self.take_word("if") { self.deeper(Parser::conditional) } else { self.block() }
    }

    fn block(&mut self) -> Result<(), String> {
        self.expect("{")?;
        self.deeper(Parser::sequence)?;
        self.expect("}")
    }

    fn field(&mut self) -> Result<(), String> {
        match self.peek() {
            Some(Token::Name(_)) => {
                self.at += 1;
                Ok(())
            }
            Some(token) => Err(format!("a field's name is missing before {}", shown(token))),
            None => Err("a field's name is missing at the end".into()),
        }
    }

    fn suffixes(&mut self) -> Result<(), String> {
        loop {
            if self.take("?.") {
                if self.take("[") { self.subscript()? } else { self.field()? }
            } else if self.take(".") {
                self.field()?;
            } else if self.take("[") {
                self.subscript()?;
            } else if self.take("(") {
                self.arguments()?;
            } else {
                return Ok(());
            }
        }
    }

    fn subscript(&mut self) -> Result<(), String> {
        if !self.take(":") {
            self.expression()?;
            if !self.take(":") {
                return self.expect("]");
            }
        }
        if self.peek() != Some(Token::Sign("]")) {
            self.expression()?;
        }
        self.expect("]")
    }

    /// Arguments, of which one may be a block over the items: `all(result, {# > 1})`.
    fn arguments(&mut self) -> Result<(), String> {
        if self.take(")") {
            return Ok(());
        }
        loop {
            if self.peek() == Some(Token::Sign("{")) && !self.opens_map() {
                self.block()?;
                self.suffixes()?;
                self.binary_rest(0)?;
            } else {
                self.expression()?;
            }
            if !self.take(",") {
                return self.expect(")");
            }
        }
    }

    /// Whether the brace that comes next opens a map rather than a block.
    fn opens_map(&self) -> bool {
        let key = matches!(self.tokens.get(self.at + 1), Some(Token::Name(_) | Token::Text | Token::Number));
        self.tokens.get(self.at + 1) == Some(&Token::Sign("}"))
            || (key && self.tokens.get(self.at + 2) == Some(&Token::Sign(":")))
    }

    fn list(&mut self, end: &str) -> Result<(), String> {
        while !self.take(end) {
            self.expression()?;
            if !self.take(",") {
                return self.expect(end);
            }
        }
        Ok(())
    }

    fn map(&mut self) -> Result<(), String> {
        while !self.take("}") {
            match self.peek() {
                Some(Token::Name(_) | Token::Text | Token::Number) => self.at += 1,
                Some(Token::Sign("(")) => {
                    self.at += 1;
                    self.expression()?;
                    self.expect(")")?;
                }
                _ => return Err("a key is missing in a map".into()),
            }
            self.expect(":")?;
            self.expression()?;
            if !self.take(",") {
                return self.expect("}");
            }
        }
        Ok(())
    }
}
