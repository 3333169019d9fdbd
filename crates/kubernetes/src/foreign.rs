//! Text that somebody else wrote, on its way to a log, a terminal, a page or a status.
//!
//! Names, messages and values come from repositories, hosts and objects of whoever wants to be misread: a line break forges a
//! line of a log, an escape moves the cursor, a mark turns the direction of what stands beside it. One function says which
//! characters those are, and makes them visible.

/// Text without control characters and without characters that reorder or hide text; lines and tabs stay.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c => push(&mut out, c),
        }
    }
    out
}

/// The same on one line.
pub fn line(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

/// Text of ours, with text of others in it, for a terminal: colours stay, nothing else that a terminal acts upon.
pub fn terminal(text: &str) -> String {
    filtered(text, |c| matches!(c, '\n' | '\t'))
}

/// An entry of a log, whose lines would be taken for other entries: one line, with its colours.
pub fn entry(text: &str) -> String {
    let (text, end) = text.strip_suffix('\n').map_or((text, ""), |text| (text, "\n"));
    filtered(text, |c| c == '\t').replace("\\u{a}", "\\n") + end
}

/// Whether a character does something else than being read.
pub fn is_treacherous(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

fn push(out: &mut String, c: char) {
    if is_treacherous(c) { out.push_str(&format!("\\u{{{:x}}}", u32::from(c))) } else { out.push(c) }
}

fn filtered(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(end) = colour(rest) {
            let (kept, after) = rest.split_at(end);
            out.push_str(kept);
            rest = after;
            continue;
        }
        // What shows a character before it as a picture is part of our own marks.
        if stays(c) || c == '\u{fe0f}' {
            out.push(c)
        } else {
            push(&mut out, c)
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// How long the sequence is that a text begins with, if that sets a colour or a style. One that conceals text is none.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    let (numbers, rest) = parameters.split_at(end);
    let conceals = numbers.split(';').any(|number| number.trim_start_matches('0') == "8");
    (rest.starts_with('m') && numbers.len() <= 20 && !conceals).then_some("\u{1b}[".len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_the_cursor_or_turns_text_around() {
        assert_eq!(visible("a\u{1b}[31mb\rc\u{202e}d\u{200b}\t\n"), "a\\u{1b}[31mb\\u{d}c\\u{202e}d\\u{200b}\t\n");
        assert_eq!(line("a\nb"), "a b");
    }

    #[test]
    fn sr15_a_terminal_gets_colours_and_text_alone() {
        for (text, shown) in [
            ("\u{1b}[1m\u{1b}[31mred\u{1b}[0m\n\tx", "\u{1b}[1m\u{1b}[31mred\u{1b}[0m\n\tx"),
            ("\u{1b}[38;5;9mred\u{1b}[m", "\u{1b}[38;5;9mred\u{1b}[m"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("\u{1b}[8mhidden", "\\u{1b}[8mhidden"),
            ("\u{1b}[0;08mhidden", "\\u{1b}[0;08mhidden"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{1b}]8;;https://evil\u{1b}\\link", "\\u{1b}]8;;https://evil\\u{1b}\\link"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("over\rwritten", "over\\u{d}written"),
            ("a\u{202e}b ⚠️ é", "a\\u{202e}b ⚠️ é"),
            ("\u{1b}[", "\\u{1b}["),
            ("\u{1b}", "\\u{1b}"),
        ] {
            assert_eq!(terminal(text), shown);
        }
    }

    #[test]
    fn sr15_an_entry_of_a_log_is_one_line() {
        let forged = "\u{1b}[32mINFO\u{1b}[0m branch=x\n2026-01-01T00:00:00Z  INFO forged\u{1b}[1A\n";
        assert_eq!(entry(forged), "\u{1b}[32mINFO\u{1b}[0m branch=x\\n2026-01-01T00:00:00Z  INFO forged\\u{1b}[1A\n");
    }
}
