//! Text that somebody else wrote, made harmless for where it is printed.
//!
//! Names, paths and values of a pull request come from whoever opened it. In Markdown they stand in code spans and fences, in
//! which neither links, mentions, HTML nor fences of their own mean anything; in HTML they are escaped; everywhere,
//! characters that move the cursor or turn the direction of text are made visible.

pub use crate::kubernetes::foreign::{line, visible};

/// A code span of Markdown.
pub fn code(text: &str) -> String {
    let text = line(text);
    let ticks = "`".repeat(longest(&text, '`') + 1);
    // A space keeps a tick of the text apart from those around it; Markdown takes one away on each side.
    let pad = if text.starts_with('`') || text.ends_with('`') || text.trim().is_empty() { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// A code span in a cell of a table: a bar would end the cell, also in code.
pub fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// A fenced block of Markdown, with a fence that the text does not hold.
pub fn fence(language: &str, text: &str) -> String {
    let text = visible(text);
    let ticks = "`".repeat(longest(&text, '`').max(2) + 1);
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("{ticks}{language}\n{text}{end}{ticks}\n")
}

/// How long the longest run of a character is.
fn longest(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or_default()
}

/// Text for HTML, also for attributes in quotes.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Text as code in a line of HTML within Markdown, such as a summary: hosts look for mentions and numbers of issues everywhere
/// but in code. Markdown may be read there, so its signs are escaped, too.
pub fn summary(text: &str) -> String {
    let mut out = String::from("<code>");
    for c in line(text).chars() {
        match c {
            '&' | '<' | '>' | '"' | '\'' | '*' | '_' | '`' | '[' | ']' | '~' | '\\' | '|' | '@' | '#' | '!' => {
                out.push_str(&format!("&#{};", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out + "</code>"
}

/// A sentence of ours, with quotations in it, in Markdown outside of code: nothing in it means anything.
pub fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A mention or a number of an issue begins with these: an invisible joiner keeps hosts from seeing one.
            '@' | '#' => {
                out.push(c);
                out.push_str("&#8203;");
            }
            // An address would become a link.
            ':' => out.push_str("&#58;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '|' | '~' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    // `www.` makes a link, too.
    out.replace("www.", "www&#46;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_and_spans_hold_whatever_is_in_them() {
        assert_eq!(code("web"), "`web`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`` ` "), "``` `` `  ```");
        assert_eq!(code("a\n# b"), "`a # b`");
        assert_eq!(cell("a|b"), "`a\\|b`");
        assert_eq!(fence("diff", "+a\n"), "```diff\n+a\n```\n");
        assert_eq!(fence("diff", "+```\n@x\n"), "````diff\n+```\n@x\n````\n");
        assert_eq!(fence("", "`````"), "``````\n`````\n``````\n");
    }

    #[test]
    fn html_and_prose_mean_nothing() {
        assert_eq!(html("<script>\"'&"), "&lt;script&gt;&quot;&#39;&amp;");
        assert_eq!(summary("a<b>*@x#1"), "<code>a&#60;b&#62;&#42;&#64;x&#35;1</code>");
        assert_eq!(
            prose("see <b> @team #12 [x](https://e.example) `a`"),
            "see &lt;b&gt; @&#8203;team #&#8203;12 \\[x\\](https&#58;//e.example) \\`a\\`"
        );
    }
}
