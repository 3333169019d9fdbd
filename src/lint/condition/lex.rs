//! The words of a condition. Never knows which may follow which.

/// A word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'t> {
    /// A number.
    Number,
    /// A quoted text.
    Text,
    /// A name or a keyword.
    Name(&'t str),
    /// An operator or a bracket.
    Sign(&'t str),
}

/// Longest first, so that `<=` is not `<` and `=`.
const SIGNS: [&str; 36] = [
    "?.", "??", "?:", "**", "..", "==", "!=", "<=", ">=", "&&", "||", "::", "+", "-", "*", "/", "%", "^", "<", ">",
    "!", "?", ":", "(", ")", "[", "]", "{", "}", ",", ".", "|", "#", ";", "=", "&",
];

/// Cuts a text into words.
pub fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if let Some(comment) = comment(rest) {
            rest = rest[comment..].trim_start();
            continue;
        } else if matches!(first, '"' | '\'' | '`') {
            let length = quoted(rest, first).ok_or("a quote is opened and never closed")?;
            found.push(Token::Text);
            length
        } else if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            found.push(Token::Number);
            number(rest)
        } else if first.is_alphabetic() || first == '_' || first == '$' {
            let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
            found.push(Token::Name(&rest[..length]));
            length
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            found.push(Token::Sign(sign));
            sign.len()
        } else {
            return Err(format!("`{first}` means nothing in a condition"));
        };
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    text.starts_with("/*").then(|| text.find("*/").map_or(text.len(), |end| end + 2))
}

fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote != '`' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The length of the number that begins here: `1_000`, `0x1F`, `1.5e-3`; but `1..5` is a range.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let exponent = matches!(byte, b'+' | b'-') && matches!(bytes[at - 1], b'e' | b'E') && !text.starts_with("0x");
        let point =
            *byte == b'.' && bytes.get(at + 1) != Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        if byte.is_ascii_alphanumeric() || *byte == b'_' || exponent || point {
            at += 1;
        } else {
            break;
        }
    }
    at
}
