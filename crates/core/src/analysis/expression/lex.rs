//! The words of an expression.

use std::ops::Range;

use super::Mistake;
use crate::kubernetes::status::go_quoted;

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Word,
    /// Its text; of a string, what it stands for.
    pub text: String,
    /// Where, in characters from the start.
    pub at: Range<usize>,
}

/// The kinds of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // named as in messages
pub enum Word {
    Identifier,
    Number,
    String,
    Operator,
    Bracket,
    Eof,
}

impl Word {
    fn name(self) -> &'static str {
        match self {
            Word::Identifier => "Identifier",
            Word::Number => "Number",
            Word::String => "String",
            Word::Operator => "Operator",
            Word::Bracket => "Bracket",
            Word::Eof => "EOF",
        }
    }
}

impl Token {
    /// Whether it is this very word.
    pub fn is(&self, kind: Word, text: &str) -> bool {
        self.kind == kind && self.text == text
    }

    /// As it is named in messages: `Operator("=")`.
    pub fn shown(&self) -> String {
        match self.text.as_str() {
            "" => self.kind.name().to_owned(),
            text => format!("{}({})", self.kind.name(), go_quoted(text)),
        }
    }
}

/// Operators that are words, not signs.
const WORDS: [&str; 10] = ["in", "or", "and", "matches", "contains", "startsWith", "endsWith", "let", "if", "else"];

/// Words that may follow `not`.
const NEGATED: [&str; 5] = ["in", "matches", "contains", "startsWith", "endsWith"];

/// Reads word after word.
pub struct Lexer<'t> {
    text: &'t str,
    /// Where the next word begins: bytes and characters.
    start: (usize, usize),
    end: (usize, usize),
    /// What follows a `not`, found along with it.
    pending: Option<Token>,
}

impl<'t> Lexer<'t> {
    /// A lexer at the start of this text.
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, start: (0, 0), end: (0, 0), pending: None }
    }

    /// The next word; at the end [`Word::Eof`], again and again.
    pub fn read(&mut self) -> Result<Token, Mistake> {
        if let Some(token) = self.pending.take() {
            return Ok(token);
        }
        loop {
            self.start = self.end;
            let Some(c) = self.bump() else {
                let at = self.end.1.saturating_sub(1)..self.end.1;
                return Ok(Token { kind: Word::Eof, text: String::new(), at });
            };
            match c {
                c if c.is_whitespace() => {}
                '/' if self.accept("/") => while self.bump().is_some_and(|c| c != '\n') {},
                '/' if self.accept("*") => self.comment()?,
                c => return self.word(c),
            }
        }
    }

    fn word(&mut self, c: char) -> Result<Token, Mistake> {
        match c {
            '\'' | '"' => self.string(c),
            '`' => self.raw_string(),
            '0'..='9' => self.number(true),
            '.' if self.peek().is_some_and(|c| c.is_ascii_digit()) => self.number(false),
            '.' => Ok(self.operator(".")),
            '?' => Ok(self.operator(".?")),
            '|' => Ok(self.operator("|")),
            ':' => Ok(self.operator(":")),
            '&' | '!' | '=' | '*' | '<' | '>' => Ok(self.operator("&=*")),
            ',' | ';' | '%' | '+' | '-' | '^' | '/' => Ok(self.operator("")),
            '(' | '[' | '{' | ')' | ']' | '}' => Ok(self.emit(Word::Bracket)),
            '#' => Ok(self.pointer()),
            c if is_letter(c) => Ok(self.identifier()),
            c => Err(self.mistake(format!("unrecognized character: U+{:04X} {}", c as u32, shown_char(c)))),
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.end.0..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.end = (self.end.0 + c.len_utf8(), self.end.1 + 1);
        Some(c)
    }

    /// Takes the next character if it is one of these.
    fn accept(&mut self, valid: &str) -> bool {
        let found = self.peek().is_some_and(|c| valid.contains(c));
        if found {
            self.bump();
        }
        found
    }

    fn so_far(&self) -> &'t str {
        &self.text[self.start.0..self.end.0]
    }

    fn emit(&mut self, kind: Word) -> Token {
        let text = self.so_far().to_owned();
        self.emit_as(kind, text)
    }

    fn emit_as(&mut self, kind: Word, text: String) -> Token {
        let at = self.start.1..self.end.1;
        self.start = self.end;
        Token { kind, text, at }
    }

    fn operator(&mut self, second: &str) -> Token {
        self.accept(second);
        self.emit(Word::Operator)
    }

    fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake { message: message.into(), at: self.end.1.saturating_sub(1)..self.end.1, unexpected: None }
    }

    fn not_terminated(&self) -> Mistake {
        Mistake { at: self.end.1..self.end.1 + 1, ..self.mistake("literal not terminated") }
    }

    fn comment(&mut self) -> Result<(), Mistake> {
        loop {
            match self.bump() {
                None => return Err(self.mistake("unclosed comment")),
                Some('*') if self.accept("/") => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// `#`, and the name behind it.
    fn pointer(&mut self) -> Token {
        self.accept("#");
        let token = self.emit(Word::Operator);
        while self.peek().is_some_and(is_letter_or_digit) {
            self.bump();
        }
        if !self.so_far().is_empty() {
            self.pending = Some(self.emit(Word::Identifier));
        }
        token
    }

    fn identifier(&mut self) -> Token {
        while self.peek().is_some_and(is_letter_or_digit) {
            self.bump();
        }
        match self.so_far() {
            "not" => self.not(),
            word if WORDS.contains(&word) => self.emit(Word::Operator),
            _ => self.emit(Word::Identifier),
        }
    }

    /// `not`, and the operator behind it if it is one that can be negated.
    fn not(&mut self) -> Token {
        let token = self.emit(Word::Operator);
        while self.accept(" ") {}
        self.start = self.end;
        let before = self.end;
        while self.peek().is_some_and(is_letter_or_digit) {
            self.bump();
        }
        match NEGATED.contains(&self.so_far()) {
            true => self.pending = Some(self.emit(Word::Operator)),
            false => self.end = before,
        }
        token
    }

    /// A number whose first digit, or whose point, has been read.
    fn number(&mut self, at_digit: bool) -> Result<Token, Mistake> {
        let mut digits = "0123456789_";
        if at_digit {
            if self.so_far() == "0" {
                if self.accept("xX") {
                    digits = "0123456789abcdefABCDEF_";
                } else if self.accept("oO") {
                    digits = "01234567_";
                } else if self.accept("bB") {
                    digits = "01_";
                }
            }
            while self.accept(digits) {}
            let before = self.end;
            if self.accept(".") {
                if self.peek() == Some('.') {
                    // A range: 1..2
                    self.end = before;
                    return Ok(self.emit(Word::Number));
                }
                while self.accept(digits) {}
            }
        } else {
            while self.accept(digits) {}
        }
        if self.accept("eE") {
            self.accept("+-");
            while self.accept(digits) {}
        }
        if self.peek().is_some_and(is_letter_or_digit) {
            self.bump();
            let message = format!("bad number syntax: {}", go_quoted(self.so_far()));
            return Err(self.mistake(message));
        }
        Ok(self.emit(Word::Number))
    }

    fn string(&mut self, quote: char) -> Result<Token, Mistake> {
        let mut text = String::new();
        loop {
            match self.bump() {
                None => return Err(self.not_terminated()),
                Some('\n') => return Err(self.mistake("literal not terminated")),
                Some(c) if c == quote => return Ok(self.emit_as(Word::String, text)),
                Some('\\') => text.extend(self.escape(quote)?),
                // Line ends become one character.
                Some('\r') => text.push('\n'),
                Some(c) => text.push(c),
            }
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self, quote: char) -> Result<Option<char>, Mistake> {
        let invalid = |this: &Self| Err(this.mistake("invalid char escape"));
        let c = match self.bump() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\\') => '\\',
            Some(c) if c == quote => quote,
            Some(c @ '0'..='7') => {
                let first = c.to_digit(8).unwrap_or(0);
                return self.digits(8, 2, first);
            }
            Some('x') => return self.digits(16, 2, 0),
            Some('u') if self.accept("{") => return self.braced(),
            Some('u') => return self.digits(16, 4, 0),
            Some('U') => return self.digits(16, 8, 0),
            Some(_) | None => return invalid(self),
        };
        Ok(Some(c))
    }

    fn digits(&mut self, base: u32, count: usize, first: u32) -> Result<Option<char>, Mistake> {
        let mut code = first;
        for _ in 0..count {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(base)) else {
                self.bump();
                return Err(self.mistake("invalid char escape"));
            };
            self.bump();
            code = code.wrapping_mul(base).wrapping_add(digit);
        }
        match char::from_u32(code) {
            Some(c) => Ok(Some(c)),
            None if code <= 0x0010_FFFF => Ok(Some(char::REPLACEMENT_CHARACTER)),
            None => Err(self.mistake("unable to unescape string")),
        }
    }

    fn braced(&mut self) -> Result<Option<char>, Mistake> {
        let mut code = 0u32;
        for count in 0..=6 {
            match self.peek() {
                Some('}') if count > 0 => {
                    self.bump();
                    return Ok(Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)));
                }
                Some(c) if count < 6 && c.is_ascii_hexdigit() => {
                    self.bump();
                    code = code * 16 + c.to_digit(16).unwrap_or(0);
                }
                Some(_) | None => break,
            }
        }
        Err(self.mistake("invalid char escape"))
    }

    fn raw_string(&mut self) -> Result<Token, Mistake> {
        let mut text = String::new();
        loop {
            match self.bump() {
                None => return Err(self.not_terminated()),
                Some('`') if self.accept("`") => text.push('`'),
                Some('`') => return Ok(self.emit_as(Word::String, text)),
                Some(c) => text.push(c),
            }
        }
    }
}

fn is_letter(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphabetic()
}

fn is_letter_or_digit(c: char) -> bool {
    is_letter(c) || c.is_numeric()
}

/// Whether a word could be a name: operators that are words can.
pub fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(is_letter) && characters.all(is_letter_or_digit)
}

/// Go's `%#U` shows a printable character in quotes.
fn shown_char(c: char) -> String {
    if c.is_control() { String::new() } else { format!("'{c}'") }
}
