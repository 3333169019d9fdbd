//! The words Go's JSON decoder refuses bad JSON with.
//!
//! Only ever run on bodies that failed to parse: it finds the first offending byte and says about it what
//! `encoding/json` says, because clients and their users compare these messages.

/// What Go says about JSON that does not parse; `None` if Go would find nothing wrong with its syntax.
pub fn syntax_error(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner { bytes, at: 0 };
    match scanner.document() {
        Ok(()) => None,
        Err(Fault::End) => Some("unexpected end of JSON input".into()),
        Err(Fault::Depth) => Some("exceeded max depth".into()),
        Err(Fault::Byte(byte, place)) => Some(format!("invalid character {} {place}", quoted(byte))),
    }
}

/// Go nests no deeper than this.
const DEPTH: usize = 10_000;

enum Fault {
    End,
    Depth,
    Byte(u8, &'static str),
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// What the scanner is inside of.
enum Inside {
    Object,
    Array,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, Fault> {
        let byte = self.peek().ok_or(Fault::End)?;
        self.at += 1;
        Ok(byte)
    }

    fn next_visible(&mut self) -> Result<u8, Fault> {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.next()
    }

    /// One value and nothing after it. Nesting is kept on the heap: a hostile body must not overflow the stack.
    fn document(&mut self) -> Result<(), Fault> {
        let mut inside: Vec<Inside> = Vec::new();
        'value: loop {
            match self.next_visible()? {
                b'{' => {
                    self.enter(&mut inside, Inside::Object)?;
                    match self.next_visible()? {
                        b'}' => drop(inside.pop()),
                        byte => {
                            self.key(byte)?;
                            continue 'value;
                        }
                    }
                }
                b'[' => {
                    self.enter(&mut inside, Inside::Array)?;
                    match self.next_visible()? {
                        b']' => drop(inside.pop()),
                        _ => {
                            self.at -= 1;
                            continue 'value;
                        }
                    }
                }
                byte => self.scalar(byte)?,
            }
            // A value has ended: close what it ends, or go on to the next one.
            loop {
                let Some(innermost) = inside.last() else { return self.trailer() };
                match (innermost, self.next_visible()?) {
                    (Inside::Object, b',') => {
                        let byte = self.next_visible()?;
                        self.key(byte)?;
                        continue 'value;
                    }
                    (Inside::Array, b',') => continue 'value,
                    (Inside::Object, b'}') | (Inside::Array, b']') => drop(inside.pop()),
                    (Inside::Object, byte) => return Err(Fault::Byte(byte, "after object key:value pair")),
                    (Inside::Array, byte) => return Err(Fault::Byte(byte, "after array element")),
                }
            }
        }
    }

    fn enter(&self, inside: &mut Vec<Inside>, what: Inside) -> Result<(), Fault> {
        inside.push(what);
        if inside.len() > DEPTH { Err(Fault::Depth) } else { Ok(()) }
    }

    fn trailer(&mut self) -> Result<(), Fault> {
        match self.next_visible() {
            Ok(byte) => Err(Fault::Byte(byte, "after top-level value")),
            Err(_) => Ok(()),
        }
    }

    fn key(&mut self, byte: u8) -> Result<(), Fault> {
        if byte != b'"' {
            return Err(Fault::Byte(byte, "looking for beginning of object key string"));
        }
        self.string()?;
        match self.next_visible()? {
            b':' => Ok(()),
            byte => Err(Fault::Byte(byte, "after object key")),
        }
    }

    fn scalar(&mut self, byte: u8) -> Result<(), Fault> {
        match byte {
            b'"' => self.string(),
            b'-' => match self.next()? {
                b'0' => self.fraction(),
                b'1'..=b'9' => self.number(),
                byte => Err(Fault::Byte(byte, "in numeric literal")),
            },
            b'0' => self.fraction(),
            b'1'..=b'9' => self.number(),
            b't' => self.literal(&[
                (b'r', "in literal true (expecting 'r')"),
                (b'u', "in literal true (expecting 'u')"),
                (b'e', "in literal true (expecting 'e')"),
            ]),
            b'f' => self.literal(&[
                (b'a', "in literal false (expecting 'a')"),
                (b'l', "in literal false (expecting 'l')"),
                (b's', "in literal false (expecting 's')"),
                (b'e', "in literal false (expecting 'e')"),
            ]),
            b'n' => self.literal(&[
                (b'u', "in literal null (expecting 'u')"),
                (b'l', "in literal null (expecting 'l')"),
                (b'l', "in literal null (expecting 'l')"),
            ]),
            byte => Err(Fault::Byte(byte, "looking for beginning of value")),
        }
    }

    fn literal(&mut self, rest: &[(u8, &'static str)]) -> Result<(), Fault> {
        for (expected, place) in rest {
            let byte = self.next()?;
            if byte != *expected {
                return Err(Fault::Byte(byte, place));
            }
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        self.digits();
        self.fraction()
    }

    fn fraction(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'.') {
            self.at += 1;
            match self.next()? {
                byte if byte.is_ascii_digit() => self.digits(),
                byte => return Err(Fault::Byte(byte, "after decimal point in numeric literal")),
            }
        }
        if self.peek().is_some_and(|byte| matches!(byte, b'e' | b'E')) {
            self.at += 1;
            let mut byte = self.next()?;
            if matches!(byte, b'+' | b'-') {
                byte = self.next()?;
            }
            if !byte.is_ascii_digit() {
                return Err(Fault::Byte(byte, "in exponent of numeric literal"));
            }
            self.digits();
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next()?;
                            if !byte.is_ascii_hexdigit() {
                                return Err(Fault::Byte(byte, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    byte => return Err(Fault::Byte(byte, "in string escape code")),
                },
                byte @ 0..0x20 => return Err(Fault::Byte(byte, "in string literal")),
                _ => {}
            }
        }
    }
}

/// A byte between single quotes, as Go quotes it.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".into(),
        b'"' => "'\"'".into(),
        b'\\' => "'\\\\'".into(),
        b'\n' => "'\\n'".into(),
        b'\r' => "'\\r'".into(),
        b'\t' => "'\\t'".into(),
        0x07 => "'\\a'".into(),
        0x08 => "'\\b'".into(),
        0x0b => "'\\v'".into(),
        0x0c => "'\\f'".into(),
        0x20..0x7f => format!("'{}'", char::from(byte)),
        0..0x20 | 0x7f..0xa1 | 0xad => format!("'\\u{:04x}'", byte).replace("\\u00", "\\x"),
        byte => format!("'{}'", char::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_json_is_refused_in_gos_words() {
        let rows = [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("{\"a\"", "unexpected end of JSON input"),
            ("\"abc", "unexpected end of JSON input"),
            ("hello", "invalid character 'h' looking for beginning of value"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("[01]", "invalid character '1' after array element"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1e+x", "invalid character 'x' in exponent of numeric literal"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("nulL", "invalid character 'L' in literal null (expecting 'l')"),
            ("\"\\q\"", "invalid character 'q' in string escape code"),
            ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("\u{1}", "invalid character '\\x01' looking for beginning of value"),
            ("'", "invalid character '\\'' looking for beginning of value"),
        ];
        for (json, words) in rows {
            assert_eq!(syntax_error(json.as_bytes()).as_deref(), Some(words), "{json}");
        }
        assert_eq!(syntax_error(&b"[".repeat(10_001)).as_deref(), Some("exceeded max depth"));
    }

    #[test]
    fn good_json_is_not_refused() {
        for json in ["{}", " [1,-0.5e+3,\"\\u00e9\\n\",{\"a\":[null,true,false]}] ", "0", "[[],{}]"] {
            assert_eq!(syntax_error(json.as_bytes()), None, "{json}");
        }
    }
}
