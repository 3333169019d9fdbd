//! Regular expressions as Go reads them: the same language, the same refusals, run by the `regex` crate.
//!
//! The two differ in details: Go's `\d`, `\w`, `\s` and `\b` are ASCII, a `[` inside brackets is a character, `\<` is `<`.
//! A pattern is checked by Go's grammar and rewritten into the other's on the way.

use regex::{Regex, RegexBuilder};

/// How large the program of a pattern may be: to make one of this size takes a few milliseconds.
const PROGRAM_BYTES: usize = 1 << 20;

/// Compiles a pattern; a refusal reads as Go's.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let mut reader = Reader { whole: pattern, rest: pattern, out: String::with_capacity(pattern.len() + 16) };
    reader.read().map_err(|Refusal(words, part)| format!("error parsing regexp: {words}: `{part}`"))?;
    // What passes the grammar may still be too large a program.
    let built = RegexBuilder::new(&reader.out).size_limit(PROGRAM_BYTES).build();
    built.map_err(|_| format!("error parsing regexp: expression too large: `{pattern}`"))
}

struct Refusal(&'static str, String);

struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
}

const BAD_RANGE: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";
const BAD_GROUP: &str = "invalid or unsupported Perl syntax";
const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = r"\t\n\x0C\r ";
/// Deeper nesting is refused, as Go refuses it.
const DEEPEST: usize = 1000;

impl<'a> Reader<'a> {
    fn read(&mut self) -> Result<(), Refusal> {
        let mut depth = 0usize;
        // Whether there is something a repetition could apply to, and where the last repetition began.
        let mut operand = false;
        let mut last_repeat: Option<&'a str> = None;
        while let Some(c) = self.rest.chars().next() {
            let mut repeat = None;
            match c {
                '(' => {
                    depth += 1;
                    operand = false;
                    match self.rest.starts_with("(?") {
                        true => operand = self.group(&mut depth)?,
                        false => self.take("("),
                    }
                }
                ')' if depth == 0 => return Err(Refusal("unexpected )", self.whole.to_owned())),
                ')' => {
                    depth -= 1;
                    operand = true;
                    self.take(")");
                }
                '|' => {
                    operand = false;
                    self.take("|");
                }
                '*' | '+' | '?' => {
                    repeat = Some(self.rest);
                    self.repetition(1, operand, last_repeat)?;
                }
                '{' => match counts(self.rest) {
                    None => {
                        self.out.push('\\');
                        self.take("{");
                        operand = true;
                    }
                    Some((length, valid)) => {
                        if !valid {
                            return Err(Refusal("invalid repeat count", self.rest[..length].to_owned()));
                        }
                        repeat = Some(self.rest);
                        self.repetition(length, operand, last_repeat)?;
                    }
                },
                '[' => {
                    self.class()?;
                    operand = true;
                }
                '\\' => {
                    self.escape()?;
                    operand = true;
                }
                '^' | '$' | '.' => {
                    self.take(&self.rest[..1]);
                    operand = true;
                }
                c => {
                    self.literal(c);
                    self.rest = &self.rest[c.len_utf8()..];
                    operand = true;
                }
            }
            if depth > DEEPEST {
                return Err(Refusal("expression nests too deeply", self.whole.to_owned()));
            }
            last_repeat = repeat;
        }
        match depth {
            0 => Ok(()),
            _ => Err(Refusal("missing closing )", self.whole.to_owned())),
        }
    }

    /// Copies text that means the same in both.
    fn take(&mut self, text: &str) {
        self.out.push_str(text);
        self.rest = &self.rest[text.len()..];
    }

    fn literal(&mut self, c: char) {
        if c.is_ascii_punctuation() && !"<>_".contains(c) {
            self.out.push('\\');
        }
        self.out.push(c);
    }

    fn repetition(&mut self, length: usize, operand: bool, last: Option<&'a str>) -> Result<(), Refusal> {
        let before = self.rest;
        let length = length + usize::from(before[length..].starts_with('?'));
        let after = &before[length..];
        if let Some(last) = last {
            return Err(Refusal("invalid nested repetition operator", last[..last.len() - after.len()].to_owned()));
        }
        if !operand {
            let part = before[..length].to_owned();
            return Err(Refusal("missing argument to repetition operator", part));
        }
        self.take(&before[..length]);
        Ok(())
    }

    /// A group with flags or a name, after its `(`. Returns whether it is over already and leaves nothing open.
    fn group(&mut self, depth: &mut usize) -> Result<bool, Refusal> {
        let start = self.rest;
        let named = if start.starts_with("(?P<") && start.len() > 4 {
            Some(4)
        } else if start.starts_with("(?<") && start.len() > 3 {
            Some(3)
        } else {
            None
        };
        if let Some(from) = named {
            let Some(end) = start.find('>') else { return Err(Refusal("invalid named capture", start.to_owned())) };
            let name = &start[from..end];
            let valid = !name.is_empty() && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
            if !valid {
                return Err(Refusal("invalid named capture", start[..=end].to_owned()));
            }
            // The name is of no use here, and Go allows some that the other does not.
            self.out.push('(');
            self.rest = &start[end + 1..];
            return Ok(false);
        }
        let (mut negative, mut saw_flag) = (false, false);
        for (i, c) in start.char_indices().skip(2) {
            let bad = || Err(Refusal(BAD_GROUP, start[..i + c.len_utf8()].to_owned()));
            match c {
                'i' | 'm' | 's' | 'U' => saw_flag = true,
                '-' if negative => return bad(),
                '-' => (negative, saw_flag) = (true, false),
                ':' | ')' if negative && !saw_flag => return bad(),
                ':' => {
                    self.take(&start[..=i]);
                    return Ok(false);
                }
                ')' => {
                    // `(?)` sets nothing.
                    match &start[..=i] {
                        "(?)" => self.rest = &start[i + 1..],
                        flags => self.take(flags),
                    }
                    *depth -= 1;
                    return Ok(false);
                }
                _ => return bad(),
            }
        }
        Err(Refusal(BAD_GROUP, start.to_owned()))
    }

    fn escape(&mut self) -> Result<(), Refusal> {
        let start = self.rest;
        match start[1..].chars().next() {
            Some('A' | 'B' | 'z') => self.take(&start[..2]),
            Some('b') => {
                self.out.push_str(r"(?-u:\b)");
                self.rest = &start[2..];
            }
            Some('C') => return Err(Refusal(BAD_ESCAPE, start[..2].to_owned())),
            Some('Q') => {
                let (text, rest) = start[2..].split_once(r"\E").unwrap_or((&start[2..], ""));
                // A repetition applies to the last character alone.
                text.chars().for_each(|c| self.literal(c));
                self.rest = rest;
            }
            Some('p' | 'P') => {
                let (length, class) = unicode_class(start)?;
                self.out.push_str(&class);
                self.rest = &start[length..];
            }
            Some(c) if "dDsSwW".contains(c) => {
                let (set, negated) = perl_class(c);
                self.out.push_str(if negated { "[^" } else { "[" });
                self.out.push_str(set);
                self.out.push(']');
                self.rest = &start[2..];
            }
            _ => {
                let (c, length) = single_escape(start)?;
                self.code_point(c);
                self.rest = &start[length..];
            }
        }
        Ok(())
    }

    fn code_point(&mut self, code: u32) {
        self.out.push_str(&format!("\\x{{{code:X}}}"));
    }

    fn class(&mut self) -> Result<(), Refusal> {
        let start = self.rest;
        let mut t = &start[1..];
        self.out.push('[');
        if let Some(after) = t.strip_prefix('^') {
            self.out.push('^');
            t = after;
        }
        let mut first = true;
        while !t.starts_with(']') || first {
            first = false;
            if t.starts_with("[:")
                && let Some(end) = t[2..].find(":]")
            {
                let name = &t[..end + 4];
                const POSIX: [&str; 14] = [
                    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
                    "upper", "word", "xdigit",
                ];
                let bare = &t[2..end + 2];
                if !POSIX.contains(&bare.strip_prefix('^').unwrap_or(bare)) {
                    return Err(Refusal(BAD_RANGE, name.to_owned()));
                }
                self.out.push_str(name);
                t = &t[name.len()..];
                continue;
            }
            if t.starts_with(r"\p") || t.starts_with(r"\P") {
                let (length, class) = unicode_class(t)?;
                self.out.push_str(&class);
                t = &t[length..];
                continue;
            }
            if let Some(c) = t.strip_prefix('\\').and_then(|t| t.chars().next()).filter(|c| "dDsSwW".contains(*c)) {
                let (set, negated) = perl_class(c);
                self.out.push_str(if negated { "[^" } else { "[" });
                self.out.push_str(set);
                self.out.push(']');
                t = &t[2..];
                continue;
            }
            let range = t;
            let (low, after) = class_char(t, start)?;
            t = after;
            self.code_point(low);
            if t.len() >= 2 && t.starts_with('-') && !t[1..].starts_with(']') {
                let (high, after) = class_char(&t[1..], start)?;
                t = after;
                if high < low {
                    return Err(Refusal(BAD_RANGE, range[..range.len() - t.len()].to_owned()));
                }
                self.out.push('-');
                self.code_point(high);
            }
        }
        self.out.push(']');
        self.rest = &t[1..];
        Ok(())
    }
}

/// `{n}`, `{n,}` or `{n,m}`: how long it is, and whether the numbers make sense.
fn counts(text: &str) -> Option<(usize, bool)> {
    let end = text.find('}')?;
    let (low, high) = match text[1..end].split_once(',') {
        None => (&text[1..end], None),
        Some((low, "")) => (low, None),
        Some((low, high)) => (low, Some(high)),
    };
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // Go takes no leading zeros here.
        (digits && (text == "0" || !text.starts_with('0'))).then(|| text.parse::<u32>().unwrap_or(u32::MAX))
    };
    let low = number(low)?;
    let high = match high {
        Some(high) => number(high)?,
        None => low,
    };
    Some((end + 1, low <= 1000 && high <= 1000 && low <= high))
}

fn perl_class(c: char) -> (&'static str, bool) {
    let set = match c.to_ascii_lowercase() {
        'd' => DIGIT,
        'w' => WORD,
        _ => SPACE,
    };
    (set, c.is_ascii_uppercase())
}

/// `\pL` or `\p{Greek}`: its length, and its like in the other language.
fn unicode_class(text: &str) -> Result<(usize, String), Refusal> {
    let mut negated = text.starts_with(r"\P");
    let Some(c) = text[2..].chars().next() else { return Err(Refusal(BAD_RANGE, text.to_owned())) };
    let (length, name) = match c {
        '{' => {
            let Some(end) = text.find('}') else { return Err(Refusal(BAD_RANGE, text.to_owned())) };
            (end + 1, &text[3..end])
        }
        c => (2 + c.len_utf8(), &text[2..2 + c.len_utf8()]),
    };
    let name = match name.strip_prefix('^') {
        Some(name) => {
            negated = !negated;
            name
        }
        None => name,
    };
    let class = format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' });
    match Regex::new(&class) {
        Ok(_) if !name.contains(['=', ':']) => Ok((length, class)),
        _ => Err(Refusal(BAD_RANGE, text[..length].to_owned())),
    }
}

fn class_char<'a>(text: &'a str, class: &str) -> Result<(u32, &'a str), Refusal> {
    match text.chars().next() {
        None => Err(Refusal("missing closing ]", class.to_owned())),
        Some('\\') => single_escape(text).map(|(c, length)| (c, &text[length..])),
        Some(c) => Ok((c as u32, &text[c.len_utf8()..])),
    }
}

/// A backslash and what stands for one character: the character and the length.
fn single_escape(text: &str) -> Result<(u32, usize), Refusal> {
    let Some(c) = text[1..].chars().next() else {
        return Err(Refusal("trailing backslash at end of expression", String::new()));
    };
    let after = &text[1 + c.len_utf8()..];
    let octal = |text: &str| text.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
    let refused = |length: usize| Err(Refusal(BAD_ESCAPE, text[..length].to_owned()));
    match c {
        'a' => Ok((7, 2)),
        'f' => Ok((12, 2)),
        'n' => Ok((10, 2)),
        'r' => Ok((13, 2)),
        't' => Ok((9, 2)),
        'v' => Ok((11, 2)),
        '1'..='7' if octal(after) == 0 => refused(2),
        '0'..='7' => {
            let digits = 1 + octal(after);
            Ok((u32::from_str_radix(&text[1..1 + digits], 8).unwrap_or(0), 1 + digits))
        }
        'x' => match after.strip_prefix('{') {
            Some(inner) => {
                let end = inner.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(inner.len());
                match u32::from_str_radix(&inner[..end], 16) {
                    Ok(code) if inner[end..].starts_with('}') && char::from_u32(code).is_some() => {
                        Ok((code, 3 + end + 1))
                    }
                    _ => refused((3 + end + inner[end..].chars().next().map_or(0, char::len_utf8)).min(text.len())),
                }
            }
            None => match after.get(..2).and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
                Some(code) => Ok((code, 4)),
                None => refused(2 + after.chars().take(2).map(char::len_utf8).sum::<usize>()),
            },
        },
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Ok((c as u32, 2)),
        c => refused(1 + c.len_utf8()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_as_gos() {
        // Recorded from Go's regexp package.
        let rows = [
            ("(", "missing closing ): `(`"),
            ("a)", "unexpected ): `a)`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("(*)", "missing argument to repetition operator: `*`"),
            ("a|*", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a*+b", "invalid nested repetition operator: `*+`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("^(?!x)", "invalid or unsupported Perl syntax: `(?!`"),
            ("(?=x)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?<=x)", "invalid named capture: `(?<=x)`"),
            ("[a", "missing closing ]: `[a`"),
            ("[]", "missing closing ]: `[]`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\Z", r"invalid escape sequence: `\Z`"),
            (r"\xg", r"invalid escape sequence: `\xg`"),
            (r"a\", "trailing backslash at end of expression: ``"),
        ];
        for (pattern, words) in rows {
            assert_eq!(compile(pattern).unwrap_err(), format!("error parsing regexp: {words}"), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_matches_what_it_matches_in_go() {
        let rows = [
            (r"^\d+$", "٣", false),
            (r"^\w+$", "é", false),
            (r"^\w+$", "a_1", true),
            (r"^[\w-]+$", "a-b", true),
            (r"^[^\W]+$", "é", false),
            (r"^[[]$", "[", true),
            (r"^[a&&b]+$", "&a", true),
            (r"^[]a]+$", "]a", true),
            (r"^\<a\>$", "<a>", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^x{$", "x{", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^(?i)abc$", "ABC", true),
            (r"^(?P<x>a)(?<x>b)$", "ab", true),
            (r"^\pL+$", "é", true),
            (r"^\x41\x{42}\103$", "ABC", true),
            (r"é b\b", "é b", true),
            (r"^a.b$", "a\nb", false),
            (r"a$", "a\n", false),
            (r"^#-~ $", "#-~ ", true),
        ];
        for (pattern, text, expected) in rows {
            assert_eq!(compile(pattern).unwrap().is_match(text), expected, "{pattern} on {text:?}");
        }
    }
}
