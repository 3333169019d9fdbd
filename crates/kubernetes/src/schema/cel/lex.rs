//! The tokens of CEL.

use std::sync::Arc;

use super::ast::{Issue, Literal};
use crate::value::Text;

/// A token and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub at: usize,
    /// As written.
    pub text: String,
    pub kind: Kind,
}

/// The kinds of tokens.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// An operator or bracket, or `in`.
    Symbol(&'static str),
    Ident,
    /// A name in backquotes, which the server does not take.
    Escaped,
    Literal(Result<Literal, &'static str>),
    End,
}

impl Token {
    pub(super) fn is(&self, symbol: &str) -> bool {
        matches!(self.kind, Kind::Symbol(s) if s == symbol)
    }

    /// As complaints show it.
    pub(super) fn shown(&self) -> &str {
        if matches!(self.kind, Kind::End) { "<EOF>" } else { &self.text }
    }
}

const SYMBOLS: [&str; 26] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%", "&", "|",
];

/// Splits a rule into tokens. What is none is noted and left out.
pub(super) fn tokens(source: &str, issues: &mut Vec<Issue>) -> Vec<Token> {
    let mut lexer = Lexer { chars: source.chars().collect(), at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks();
        let start = lexer.at;
        if lexer.at >= lexer.chars.len() {
            tokens.push(Token { at: start, text: String::new(), kind: Kind::End });
            return tokens;
        }
        let kind = lexer.token();
        let text: String = lexer.chars[start..lexer.at].iter().collect();
        match kind {
            Some(kind) => tokens.push(Token { at: start, text, kind }),
            None => issues.push(Issue::new(start, format!("Syntax error: token recognition error at: '{text}'"))),
        }
    }
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn looks_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c))
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek(0) {
                Some(' ' | '\t' | '\r' | '\n' | '\u{c}') => self.at += 1,
                Some('/') if self.peek(1) == Some('/') => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// The next token; `None` if the characters passed over are none.
    fn token(&mut self) -> Option<Kind> {
        let c = self.peek(0)?;
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        if c.is_ascii_digit() || (c == '.' && digit(self.peek(1))) {
            return Some(self.number());
        }
        let start = self.at;
        match self.string() {
            // A letter before quotes that do not close is a name.
            Some(None) if c.is_ascii_alphabetic() => self.at = start,
            Some(quoted) => return quoted,
            None => {}
        }
        if c.is_ascii_alphabetic() || c == '_' {
            while self.peek(0).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                self.at += 1;
            }
            return Some(Kind::Ident);
        }
        if c == '`' {
            let inner = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
            let mut length = 1;
            while self.peek(length).is_some_and(inner) {
                length += 1;
            }
            let closed = length > 1 && self.peek(length) == Some('`');
            self.at = (self.at + length + 1).min(self.chars.len());
            return closed.then_some(Kind::Escaped);
        }
        match SYMBOLS.iter().find(|symbol| self.looks_at(symbol)) {
            // Half an operator: the character that does not follow is taken along.
            Some(&"&" | &"|") => {
                self.at = (self.at + 2).min(self.chars.len());
                None
            }
            Some(symbol) => {
                self.at += symbol.len();
                Some(Kind::Symbol(symbol))
            }
            None => {
                let taken = if c == '=' { 2 } else { 1 };
                self.at = (self.at + taken).min(self.chars.len());
                None
            }
        }
    }

    fn number(&mut self) -> Kind {
        let start = self.at;
        let digits = |lexer: &mut Lexer| {
            while lexer.peek(0).is_some_and(|c| c.is_ascii_digit()) {
                lexer.at += 1;
            }
        };
        let hex = self.peek(0) == Some('0')
            && self.peek(1) == Some('x')
            && self.peek(2).is_some_and(|c| c.is_ascii_hexdigit());
        let mut float = false;
        if hex {
            self.at += 2;
            while self.peek(0).is_some_and(|c| c.is_ascii_hexdigit()) {
                self.at += 1;
            }
        } else {
            digits(self);
            if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
                float = true;
                self.at += 1;
                digits(self);
            }
            let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if matches!(self.peek(0), Some('e' | 'E')) && self.peek(1 + sign).is_some_and(|c| c.is_ascii_digit()) {
                float = true;
                self.at += 1 + sign;
                digits(self);
            }
        }
        let text: String = self.chars[start..self.at].iter().collect();
        let (digits, radix) = text.strip_prefix("0x").map_or((text.as_str(), 10), |digits| (digits, 16));
        if float {
            let number = text.parse::<f64>().ok().filter(|f| f.is_finite());
            return Kind::Literal(number.map(Literal::Double).ok_or("invalid double literal"));
        }
        if matches!(self.peek(0), Some('u' | 'U')) {
            self.at += 1;
            return Kind::Literal(
                u64::from_str_radix(digits, radix).map(Literal::Uint).map_err(|_| "invalid uint literal"),
            );
        }
        // The parser looks at the digits again where a sign stands before them.
        Kind::Literal(i64::from_str_radix(digits, radix).map(Literal::Int).map_err(|_| "invalid int literal"))
    }

    /// A string or bytes; `None` if none begins here, `Some(None)` if it does not end.
    fn string(&mut self) -> Option<Option<Kind>> {
        let mut ahead = 0;
        let bytes = matches!(self.peek(0), Some('b' | 'B'));
        ahead += usize::from(bytes);
        let raw = matches!(self.peek(ahead), Some('r' | 'R'));
        ahead += usize::from(raw);
        let quote = self.peek(ahead).filter(|c| matches!(c, '\'' | '"'))?;
        let long = self.peek(ahead + 1) == Some(quote) && self.peek(ahead + 2) == Some(quote);
        let start = self.at;
        self.at += ahead + if long { 3 } else { 1 };
        let from = self.at;
        loop {
            let Some(c) = self.peek(0) else {
                // An unclosed long string is an empty one and the start of another, to a lexer that takes what it can.
                if long {
                    self.at = start + ahead + 2;
                    return Some(Some(Kind::Literal(unescape("", bytes, raw))));
                }
                return Some(None);
            };
            let closes = c == quote && (!long || (self.peek(1) == Some(quote) && self.peek(2) == Some(quote)));
            if closes {
                let text: String = self.chars[from..self.at].iter().collect();
                self.at += if long { 3 } else { 1 };
                let text = text.replace("\r\n", "\n").replace('\r', "\n");
                return Some(Some(Kind::Literal(unescape(&text, bytes, raw))));
            }
            match c {
                '\n' | '\r' if !long => {
                    self.at += 1;
                    return Some(None);
                }
                '\\' if !raw => {
                    let length = self.escape();
                    match length {
                        Ok(length) => self.at += length,
                        Err(length) => {
                            self.at = (self.at + length).min(self.chars.len());
                            return Some(None);
                        }
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// The length of the escape here, or of what was looked at until it proved to be none.
    fn escape(&self) -> Result<usize, usize> {
        let digits = |count: usize, fits: fn(&char) -> bool| match (2..2 + count)
            .find(|i| !self.peek(*i).as_ref().is_some_and(fits))
        {
            None => Ok(2 + count),
            Some(i) => Err(i + 1),
        };
        match self.peek(1) {
            Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(2),
            Some('x' | 'X') => digits(2, char::is_ascii_hexdigit),
            Some('u') => digits(4, char::is_ascii_hexdigit),
            Some('U') => digits(8, char::is_ascii_hexdigit),
            Some('0'..='3') => digits(2, |c| ('0'..='7').contains(c)),
            _ => Err(2),
        }
    }
}

const BAD_ESCAPE: &str = "unable to unescape string";

/// The meaning of what stands between quotes. The escapes are well formed; what they name may not be.
fn unescape(text: &str, bytes: bool, raw: bool) -> Result<Literal, &'static str> {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let push = |out: &mut Vec<u8>, c: char| out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if raw || c != '\\' {
            push(&mut out, c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let kind = rest[1..].chars().next().ok_or(BAD_ESCAPE)?;
        let (code, length) = match kind {
            'a' => (7, 2),
            'b' => (8, 2),
            'f' => (12, 2),
            'n' => (10, 2),
            'r' => (13, 2),
            't' => (9, 2),
            'v' => (11, 2),
            '0'..='3' => (u32::from_str_radix(rest.get(1..4).ok_or(BAD_ESCAPE)?, 8).map_err(|_| BAD_ESCAPE)?, 4),
            'x' | 'X' | 'u' | 'U' => {
                let digits = match kind {
                    'u' => 4,
                    'U' => 8,
                    _ => 2,
                };
                if bytes && digits > 2 {
                    return Err(BAD_ESCAPE);
                }
                let digits = rest.get(2..2 + digits).ok_or(BAD_ESCAPE)?;
                (u32::from_str_radix(digits, 16).map_err(|_| BAD_ESCAPE)?, 2 + digits.len())
            }
            other => (other as u32, 2),
        };
        match char::from_u32(code) {
            _ if bytes && matches!(kind, 'x' | 'X' | '0'..='3') => out.push(code as u8),
            Some(c) => push(&mut out, c),
            None => return Err("invalid unicode code point"),
        }
        rest = &rest[length..];
    }
    match bytes {
        true => Ok(Literal::Bytes(Arc::from(out))),
        false => String::from_utf8(out).map(|text| Literal::Str(Text::from(text))).map_err(|_| BAD_ESCAPE),
    }
}
