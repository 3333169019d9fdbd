//! A terminal as a picture: lines appear one after another, scroll, and the last screen stays. Scales anywhere and needs no script,
//! so that git hosts show it; who prefers no motion sees the last screen.

use std::fmt::Write;

const COLUMNS: usize = 112;
const ROWS: usize = 26;
const LINE: usize = 19;
const LETTER: f32 = 8.4;
const MARGIN: usize = 18;
const TITLE: usize = 34;
/// How long each line takes.
const SECONDS: f32 = 0.3;

/// The picture of a program's output.
pub(crate) fn svg(output: &str) -> String {
    let lines: Vec<String> =
        std::iter::once("$ tidegate demo".to_owned()).chain(output.lines().map(shortened)).collect();
    let width = (COLUMNS as f32 * LETTER) as usize + 2 * MARGIN;
    let height = TITLE + ROWS * LINE + MARGIN;
    let all = lines.len() as f32 * SECONDS;
    let mut scroll = String::new();
    for (number, _) in lines.iter().enumerate().skip(ROWS) {
        let percent = 100.0 * number as f32 * SECONDS / all;
        let _ = write!(scroll, "{percent:.2}%{{transform:translateY(-{}px)}}", (number + 1 - ROWS) * LINE);
    }
    let end = lines.len().saturating_sub(ROWS) * LINE;
    let mut out = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="tidegate demo: four commits and their statuses">
<!-- Made by `cargo xtask picture` from a run of tidegate demo. -->
<style>
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#c9d1d9;white-space:pre}}
.good{{fill:#3fb950}}.bad{{fill:#f85149}}.strong{{font-weight:700;fill:#f0f6fc}}.title{{fill:#8b949e;text-anchor:middle}}
.lines{{transform:translateY(-{end}px)}}
@media (prefers-reduced-motion:no-preference){{
.lines{{animation:scroll {all:.1}s step-end both}}
.lines text{{animation:appear 1ms step-end both}}
@keyframes scroll{{0%{{transform:translateY(0)}}{scroll}100%{{transform:translateY(-{end}px)}}}}
@keyframes appear{{0%{{opacity:0}}100%{{opacity:1}}}}
}}
</style>
<clipPath id="screen"><rect x="0" y="{TITLE}" width="{width}" height="{screen}"/></clipPath>
<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>
<text class="title" x="{middle}" y="22">tidegate demo</text>
<g clip-path="url(#screen)"><g class="lines">
"##,
        screen = ROWS * LINE + MARGIN / 2,
        middle = width / 2,
    );
    for (number, line) in lines.iter().enumerate() {
        let y = TITLE + (number + 1) * LINE - 4;
        let delay = number as f32 * SECONDS;
        let class = class(line).map(|class| format!(r#" class="{class}""#)).unwrap_or_default();
        let text = line.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(out, r#"<text{class} x="{MARGIN}" y="{y}" style="animation-delay:{delay:.1}s">{text}</text>"#);
    }
    out.push_str("</g></g>\n</svg>\n");
    out
}

/// What stands out: how a commit went, commits, and what is not indented.
fn class(line: &str) -> Option<&'static str> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    match (first, words.nth(1)) {
        ("✔", _) | (_, Some("success")) => Some("good"),
        ("✖", _) | (_, Some("failure")) => Some("bad"),
        (_, Some("commit")) => Some("strong"),
        _ => (!line.starts_with(' ')).then_some("strong"),
    }
}

/// At most a screen's width of a line.
fn shortened(line: &str) -> String {
    if line.chars().count() <= COLUMNS {
        return line.to_owned();
    }
    line.chars().take(COLUMNS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_on_the_picture_and_none_is_wider() {
        let long = "x".repeat(300);
        let picture = svg(&format!("first & <second>\n     ✔ success\n{long}\n"));
        assert_eq!(picture.matches("<text").count(), 5, "the title, the command and three lines");
        assert!(picture.contains("first &amp; &lt;second>"), "{picture}");
        assert!(picture.contains(r#"class="good""#), "{picture}");
        assert!(!picture.contains(&"x".repeat(COLUMNS)), "{picture}");
    }
}
