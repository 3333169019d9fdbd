//! A message with the lines of the file it is about, and carets below what is meant: as compilers print them.
//!
//! Returns text; whether it is coloured is the caller's choice. Never looks for problems itself.

use std::{borrow::Cow, ops::Range};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::place::{Source, Span, floor};

/// How a message is introduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// `error`
    Error,
    /// `warning`
    Warning,
    /// `hint`
    Hint,
}

/// A message about a place.
#[derive(Debug, Clone)]
pub struct Note<'a> {
    /// How bad it is.
    pub weight: Weight,
    /// The name of the rule.
    pub code: &'a str,
    /// What is wrong.
    pub what: &'a str,
    /// Where.
    pub at: (&'a Source, Span),
    /// Other places that have to do with it, and how.
    pub also: Vec<(&'a Source, Span, &'a str)>,
    /// What to do; nothing if empty.
    pub remedy: &'a str,
}

/// Renders a message. With `colour` it holds escape sequences of terminals.
pub fn render(note: &Note<'_>, colour: bool) -> String {
    let level = match note.weight {
        Weight::Error => Level::ERROR,
        Weight::Warning => Level::WARNING,
        Weight::Hint => Level::INFO.with_name("hint"),
    };
    let title = level.primary_title(visible(note.what)).id(note.code);
    let mut group = Group::with_title(title);
    let (source, span) = note.at;
    let near: Vec<_> = note.also.iter().filter(|(other, _, _)| std::ptr::eq(*other, source)).collect();
    let spans = || std::iter::once(span).chain(near.iter().map(|(_, span, _)| *span));
    let first = spans().map(|span| span.start).min().unwrap_or(span.start);
    let last = spans().map(|span| span.end).max().unwrap_or(span.end);
    let (line, offset, text) = source.lines(first, last);
    let within = |span| within_lines(span, offset, text);
    let snippet = Snippet::source(masked(source, text))
        .path(visible(&source.name))
        .line_start(line)
        .annotation(AnnotationKind::Primary.span(within(span)))
        .annotations(
            near.iter().map(|(_, span, label)| AnnotationKind::Context.span(within(*span)).label(visible(label))),
        );
    group = group.element(snippet);
    for (other, span, label) in note.also.iter().filter(|(other, _, _)| !std::ptr::eq(*other, source)) {
        let (line, offset, text) = other.lines(span.start, span.end);
        let range = within_lines(*span, offset, text);
        group = group.element(
            Snippet::source(masked(other, text))
                .path(visible(&other.name))
                .line_start(line)
                .annotation(AnnotationKind::Context.span(range).label(visible(label))),
        );
    }
    if !note.remedy.is_empty() {
        group = group.element(Level::HELP.message(visible(note.remedy)));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let text = renderer.render(&[group]);
    // Lines of a file may end in blanks; those of a message do not.
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A text without what could move a terminal's cursor: names from a file may hold anything.
fn visible(text: &str) -> String {
    annotate_snippets::normalize_untrusted_str(&shown(text))
}

/// The same of lines of a file, byte by byte in their places. What is one byte long is made visible by the renderer.
fn shown(lines: &str) -> Cow<'_, str> {
    let hidden = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    if lines.contains(hidden) { Cow::Owned(lines.replace(hidden, "\u{b7}")) } else { Cow::Borrowed(lines) }
}

/// Lines of a file, byte by byte in their places, without anything secret: of a file that holds a Secret only what stands
/// before the first colon of each line, and of an address never whose password it has.
fn masked<'t>(source: &Source, lines: &'t str) -> Cow<'t, str> {
    let secret = source.text.lines().any(|line| line.contains("kind") && line.contains("Secret"));
    let addressed = lines.contains("://") && lines.contains('@');
    if !secret && !addressed {
        return shown(lines);
    }
    let stars = |text: &str| "*".repeat(text.len());
    let line = |line: &str| {
        let kept = match (secret, line.find(':'), line.find("://")) {
            (true, colon, _) => colon.map_or(0, |at| at + 1),
            (false, _, Some(at)) if line[at..].contains('@') => at + 3,
            (false, _, Some(_) | None) => return line.to_owned(),
        };
        let (before, after) = line.split_at(kept);
        let end = if secret { after.len() } else { after.rfind('@').unwrap_or(after.len()) };
        let (hidden, rest) = after.split_at(end);
        // Blanks say nothing, and show where words stand.
        let hidden: String = hidden
            .split_inclusive(' ')
            .map(|word| match word.strip_suffix(' ') {
                Some(word) => stars(word) + " ",
                None => stars(word),
            })
            .collect();
        format!("{before}{hidden}{rest}")
    };
    let masked = lines.split('\n').map(line).collect::<Vec<_>>().join("\n");
    Cow::Owned(shown(&masked).into_owned())
}

/// A span of a file as a range of some of its lines, which begin at `offset`. Carets stand between characters.
fn within_lines(span: Span, offset: usize, lines: &str) -> Range<usize> {
    let clip = |at: u32| floor(lines, (at as usize).saturating_sub(offset));
    clip(span.start)..clip(span.end).max(clip(span.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sr15_lines_of_secrets_and_passwords_of_addresses_do_not_show() {
        let secret = Source::new("a.yaml", "kind: Secret\ndata:\n  a: xyz é\n  more\n");
        assert_eq!(masked(&secret, "kind: Secret\n  a: xyz é\n  more"), "kind: ******\n  a: *** **\n  ****");
        let source = Source::new("a.yaml", "kind: GitSource\nurl: https://ada:pw@host/x\nb: https://host/x\n");
        assert_eq!(masked(&source, "url: https://ada:pw@host/x"), "url: https://******@host/x");
        assert_eq!(masked(&source, "b: https://host/x"), "b: https://host/x");
    }

    #[test]
    fn a_message_shows_its_lines() {
        let source = Source::new("a.yaml", "kind: X\nmetadata:\n  name: é\n  name: \u{65e5}\u{672c}\n\tz: 1\n");
        let note = Note {
            weight: Weight::Error,
            code: "repeated-key",
            what: "the key name is given twice",
            at: (&source, Span::new(31, 35)),
            also: vec![(&source, Span::new(20, 24), "it is given here first")],
            remedy: "keep one",
        };
        let expected = "\
error[repeated-key]: the key name is given twice
 --> a.yaml:4:3
  |
3 |   name: é
  |   ---- it is given here first
4 |   name: 日本
  |   ^^^^
  |
  = help: keep one";
        assert_eq!(render(&note, false), expected);
        assert!(render(&note, true).contains("\u{1b}["));
    }

    #[test]
    fn no_file_can_write_to_the_terminal() {
        let evil = "\u{1b}[31m\u{7}\u{8}\u{9b}x";
        let source = Source::new("x.yaml", format!("a: {evil}\n"));
        let at = (&source, Span::new(3, 5));
        let also = vec![(&source, Span::new(0, 1), evil)];
        let text = render(&Note { weight: Weight::Error, code: "c", what: evil, at, also, remedy: evil }, false);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }

    #[test]
    fn a_place_beyond_the_text_does_no_harm() {
        for text in ["", "a", "a\n", "é\r\n\r\n"] {
            let source = Source::new("x", text);
            for (start, end) in [(0, 0), (0, 1), (1, 9), (9, 9)] {
                let at = (&source, Span::new(start, end));
                let note = Note { weight: Weight::Hint, code: "c", what: "w", at, also: vec![], remedy: "" };
                assert!(render(&note, false).starts_with("hint[c]: w\n"), "{text:?} {start} {end}");
            }
        }
    }
}
