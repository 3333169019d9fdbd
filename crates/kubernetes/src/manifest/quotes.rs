//! Quoted texts whose further lines stand too far left: kubectl takes them, YAML 1.2 and the parser below do not.
//!
//! Go's own writers once made such files, so many definitions in the wild look like that:
//!
//! ```yaml
//! schema:
//!   description: 'a text that goes on
//!   in the column of its key'
//! ```
//!
//! Blanks are put before those lines, which changes nothing in the text they fold into; places are then led back. Finding
//! the lines is a guess; who uses it must see that each of them lies in a quoted text. Never changes anything else.

use super::place::Span;

/// Blanks to put before lines of a text.
#[derive(Debug, Default)]
pub(super) struct Indents(Vec<Indent>);

#[derive(Debug)]
struct Indent {
    /// Where the line begins in the original.
    original: usize,
    /// Where the blanks begin in the changed text.
    changed: usize,
    blanks: usize,
}

impl Indents {
    /// The lines of `text` that go on with a quoted text too far left.
    pub(super) fn of(text: &str) -> Indents {
        let mut found = Indents::default();
        let mut scan = Scan::Plain;
        let (mut at, mut added) = (0, 0);
        for line in text.split_inclusive('\n') {
            let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
            let blank = line.trim().is_empty();
            if let Scan::Block(parent) = scan
                && !blank
                && indent <= parent
            {
                scan = Scan::Plain;
            }
            scan = match scan {
                Scan::Quoted(quote, needed) => {
                    if indent < needed && !blank {
                        found.0.push(Indent { original: at, changed: at + added, blanks: needed });
                        added += needed;
                    }
                    if closes(line, quote).is_some() { Scan::Plain } else { scan }
                }
                Scan::Plain if !line.trim_start().starts_with('#') => opens(line, indent),
                Scan::Plain | Scan::Block(_) => scan,
            };
            at += line.len();
        }
        found
    }

    /// Whether there is nothing to change.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with the blanks.
    pub(super) fn apply(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + self.0.iter().map(|indent| indent.blanks).sum::<usize>());
        let mut from = 0;
        for indent in &self.0 {
            out.push_str(&text[from..indent.original]);
            out.extend(std::iter::repeat_n(' ', indent.blanks));
            from = indent.original;
        }
        out.push_str(&text[from..]);
        out
    }

    /// Whether all blanks lie in one of these stretches of the changed text, which are in order.
    pub(super) fn lie_in(&self, quoted: &[Span]) -> bool {
        self.0.iter().all(|indent| {
            let next = quoted.partition_point(|span| span.end as usize <= indent.changed);
            quoted.get(next).is_some_and(|span| (span.start as usize) < indent.changed)
        })
    }

    /// Where a place of the changed text is in the original.
    pub(super) fn original(&self, span: Span) -> Span {
        Span::new(self.offset(span.start), self.offset(span.end))
    }

    fn offset(&self, changed: u32) -> usize {
        let changed = changed as usize;
        match self.0[..self.0.partition_point(|indent| indent.changed <= changed)].last() {
            None => changed,
            Some(last) => last.original + changed.saturating_sub(last.changed + last.blanks),
        }
    }
}

/// What a line stands in.
#[derive(Clone, Copy)]
enum Scan {
    Plain,
    /// A text in this quote, whose lines need so much indentation.
    Quoted(char, usize),
    /// A block scalar below a key of this indentation.
    Block(usize),
}

/// What is open at the end of a line that began with nothing open.
fn opens(line: &str, indent: usize) -> Scan {
    let content = line[indent..].trim_end();
    // `- - key: 'value`: every dash is one more level.
    let dashes = content.len() - content.trim_start_matches(['-', ' ']).len();
    let column = indent + if content.starts_with("- ") { dashes } else { 0 };
    let content = &line[column.min(line.len())..].trim_end();
    let value = match content.find(": ") {
        Some(colon) if !content.starts_with(['\'', '"']) => content[colon + 2..].trim_start(),
        _ => content,
    };
    let mut characters = value.chars();
    match characters.next() {
        Some(quote @ ('\'' | '"')) if closes(characters.as_str(), quote).is_none() => Scan::Quoted(quote, column + 1),
        Some('|' | '>') if characters.all(|c| matches!(c, '+' | '-' | '0'..='9')) => Scan::Block(indent),
        _ => Scan::Plain,
    }
}

/// Where a quoted text ends in a line, if it does.
fn closes(line: &str, quote: char) -> Option<usize> {
    let mut characters = line.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' if quote == '"' => _ = characters.next(),
            '\'' if quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == '\'') => _ = characters.next(),
            c if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_quoted_texts_are_moved_and_places_are_led_back() {
        let text = "a:\n  b: 'one\n  two\n\n   three'\n  c: |\n    d: 'x\n  e: \"p\\\"\nq\"\n- f: 'it''s'\n";
        let indents = Indents::of(text);
        let expected = "a:\n  b: 'one\n     two\n\n   three'\n  c: |\n    d: 'x\n  e: \"p\\\"\n   q\"\n- f: 'it''s'\n";
        let changed = indents.apply(text);
        assert_eq!(changed, expected);
        for word in ["one", "two", "three", "c:", "q\"", "it''s"] {
            let (now, before) = (changed.find(word).unwrap(), text.find(word).unwrap());
            assert_eq!(indents.original(Span::new(now, now + 2)), Span::new(before, before + 2), "{word}");
        }
    }
}
