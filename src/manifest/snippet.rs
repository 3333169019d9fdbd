//! A message with the lines of the file it is about, and carets below what is meant: as compilers print them.
//!
//! Returns text; whether it is coloured is the caller's choice. Never looks for problems itself.

use std::ops::Range;

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
    let title = level.primary_title(note.what).id(note.code);
    let mut group = Group::with_title(title);
    let (source, span) = note.at;
    let near: Vec<_> = note.also.iter().filter(|(other, _, _)| std::ptr::eq(*other, source)).collect();
    let spans = || std::iter::once(span).chain(near.iter().map(|(_, span, _)| *span));
    let first = spans().map(|span| span.start).min().unwrap_or(span.start);
    let last = spans().map(|span| span.end).max().unwrap_or(span.end);
    let (line, offset, text) = source.lines(first, last);
    let within = |span| within_lines(span, offset, text);
    let snippet = Snippet::source(text)
        .path(source.name.as_str())
        .line_start(line)
        .annotation(AnnotationKind::Primary.span(within(span)))
        .annotations(near.iter().map(|(_, span, label)| AnnotationKind::Context.span(within(*span)).label(*label)));
    group = group.element(snippet);
    for (other, span, label) in note.also.iter().filter(|(other, _, _)| !std::ptr::eq(*other, source)) {
        let (line, offset, text) = other.lines(span.start, span.end);
        let range = within_lines(*span, offset, text);
        group = group.element(
            Snippet::source(text)
                .path(other.name.as_str())
                .line_start(line)
                .annotation(AnnotationKind::Context.span(range).label(*label)),
        );
    }
    if !note.remedy.is_empty() {
        group = group.element(Level::HELP.message(note.remedy));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let text = renderer.render(&[group]);
    // Lines of a file may end in blanks; those of a message do not.
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
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
