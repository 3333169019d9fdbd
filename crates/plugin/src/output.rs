//! What a plugin prints, as lines for our log: cut, made printable, counted, each with a level.
//!
//! Never trusts a line: it may try to look like one of ours, to move a terminal's cursor, or to fill a disk.

use std::sync::Arc;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Less than debug.
    Trace,
    /// For its author.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
}

/// A line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The plugin that printed it.
    pub plugin: Arc<str>,
    /// How much it matters.
    pub level: Level,
    /// The line without control characters.
    pub text: String,
}

/// Where lines go.
pub type Log = Arc<dyn Fn(Line) + Send + Sync>;

/// Bytes of a line that are kept.
const LINE_LIMIT: usize = 4096;
/// Lines per second that are kept, and how many at once.
const LINES: (f64, f64) = (100.0, 1000.0);

/// Cuts one output of a plugin into lines.
#[derive(Debug)]
pub struct Lines {
    partial: Vec<u8>,
    is_cut: bool,
    /// After a panic all lines are errors.
    is_panicking: bool,
    pace: Pace,
    dropped: u64,
}

impl Default for Lines {
    fn default() -> Self {
        Lines { partial: Vec::new(), is_cut: false, is_panicking: false, pace: Pace::new(LINES.0, LINES.1), dropped: 0 }
    }
}

impl Lines {
    /// Adds what was printed; `now` in seconds from any start. Returns the lines that are complete.
    pub fn push(&mut self, bytes: &[u8], now: f64) -> Vec<(Level, String)> {
        let mut out = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, is_end) = match piece.strip_suffix(b"\n") {
                Some(line) => (line, true),
                None => (piece, false),
            };
            let room = LINE_LIMIT - self.partial.len().min(LINE_LIMIT);
            self.is_cut |= piece.len() > room;
            self.partial.extend(piece.iter().take(room));
            if is_end {
                self.line(now, &mut out);
            }
        }
        out
    }

    /// The rest, when nothing more will come.
    pub fn end(&mut self, now: f64) -> Vec<(Level, String)> {
        let mut out = Vec::new();
        self.line(now, &mut out);
        self.dropped_lines(&mut out);
        out
    }

    fn line(&mut self, now: f64, out: &mut Vec<(Level, String)>) {
        let line = std::mem::take(&mut self.partial);
        let is_cut = std::mem::take(&mut self.is_cut);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        if self.pace.take(1.0, now) < 1.0 {
            self.dropped += 1;
            return;
        }
        self.dropped_lines(out);
        let (level, text) = self.level(line);
        out.push((level, if is_cut { format!("{text}… (cut)") } else { text }));
    }

    fn dropped_lines(&mut self, out: &mut Vec<(Level, String)>) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            out.push((Level::Warn, format!("{dropped} lines of output dropped: more than {} per second", LINES.0)));
        }
    }

    /// go-plugin and hclog print JSON; others put the level in brackets; Go itself prints panics.
    fn level(&mut self, line: &str) -> (Level, String) {
        if let Ok(serde_json::Value::Object(json)) = serde_json::from_str(line)
            && let Some(message) = json.get("@message").and_then(|message| message.as_str())
        {
            let level = match json.get("@level").and_then(|level| level.as_str()) {
                Some("trace") => Level::Trace,
                Some("info") => Level::Info,
                Some("warn") => Level::Warn,
                Some("error") => Level::Error,
                _ => Level::Debug,
            };
            let rest = json.iter().filter(|(key, _)| !key.starts_with('@'));
            let rest: String = rest.map(|(key, value)| format!(" {key}={value}")).collect();
            return (level, printable(&format!("{message}{rest}")));
        }
        self.is_panicking |= line.starts_with("panic: ") || line.starts_with("fatal error: ");
        let marks = [
            ("[TRACE]", Level::Trace),
            ("[DEBUG]", Level::Debug),
            ("[INFO]", Level::Info),
            ("[WARN]", Level::Warn),
            ("[ERROR]", Level::Error),
        ];
        let marked = marks.iter().find_map(|(mark, level)| Some((*level, line.strip_prefix(mark)?.trim_start())));
        let (level, text) = marked.unwrap_or((Level::Debug, line));
        (if self.is_panicking { Level::Error } else { level }, printable(text))
    }
}

/// Text without characters that do something: control characters, and those that change the direction or the line.
pub fn printable(text: &str) -> String {
    let acts = |char: char| {
        char.is_control() && char != '\t'
            || matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let mut out = String::new();
    for char in text.chars() {
        match char {
            '\t' => out.push(' '),
            char if acts(char) => out.extend(char.escape_unicode()),
            char => out.push(char),
        }
    }
    out
}

/// How much of something is allowed by now: so much per second, and at most so much at once.
#[derive(Debug, Clone)]
pub struct Pace {
    per_second: f64,
    most: f64,
    left: f64,
    at: f64,
}

impl Pace {
    /// A pace that begins with all it may have at once.
    pub fn new(per_second: f64, most: f64) -> Self {
        Pace { per_second, most, left: most, at: 0.0 }
    }

    /// What is left at a time, in seconds from any start.
    pub fn left(&mut self, now: f64) -> f64 {
        let passed = (now - self.at).max(0.0);
        self.left = (self.left + passed * self.per_second).min(self.most);
        self.at = self.at.max(now);
        self.left
    }

    /// Takes so much, if there is, else nothing; says what was taken.
    pub fn take(&mut self, amount: f64, now: f64) -> f64 {
        if self.left(now) < amount {
            return 0.0;
        }
        self.left -= amount;
        amount
    }

    /// Takes so much, even if there is less: the next must wait for it.
    pub fn charge(&mut self, amount: f64, now: f64) {
        self.left(now);
        self.left -= amount;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(printed: &[u8], wanted: &[(Level, &str)]) {
        for piece in [1, 3, 4096] {
            let mut lines = Lines::default();
            let mut out: Vec<_> = printed.chunks(piece).flat_map(|bytes| lines.push(bytes, 0.0)).collect();
            out.extend(lines.end(0.0));
            let wanted: Vec<_> = wanted.iter().map(|(level, text)| (*level, (*text).to_owned())).collect();
            assert_eq!(out, wanted);
        }
    }

    #[test]
    fn lines_have_the_level_that_they_name() {
        check(
            br#"{"@level":"warn","@message":"plugin configured","@timestamp":"2024","count":1}"#,
            &[(Level::Warn, "plugin configured count=1")],
        );
        check(b"[ERROR] it broke\r\n\n[INFO] fine", &[(Level::Error, "it broke"), (Level::Info, "fine")]);
        check(b"{\"@level\":1}\n", &[(Level::Debug, "{\"@level\":1}")]);
        check(
            b"hello\npanic: no\n\ngoroutine 1\n",
            &[(Level::Debug, "hello"), (Level::Error, "panic: no"), (Level::Error, "goroutine 1")],
        );
    }

    #[test]
    fn what_acts_on_a_terminal_is_written_out() {
        check(b"\x1b[31mred\x07\ttab\xff", &[(Level::Debug, "\\u{1b}[31mred\\u{7} tab\u{fffd}")]);
        check("a\u{202e}b\u{2028}c".as_bytes(), &[(Level::Debug, "a\\u{202e}b\\u{2028}c")]);
        check(
            br#"{"@level":"info","@message":"a\nlevel=error b\u001b[0m"}"#,
            &[(Level::Info, "a\\u{a}level=error b\\u{1b}[0m")],
        );
    }

    #[test]
    fn long_lines_are_cut_and_too_many_are_counted() {
        let long = "x".repeat(3 * LINE_LIMIT);
        check(long.as_bytes(), &[(Level::Debug, &format!("{}… (cut)", "x".repeat(LINE_LIMIT)))]);
        let mut lines = Lines::default();
        assert_eq!(lines.push("a\n".repeat(5000).as_bytes(), 0.0).len(), 1000);
        assert_eq!(
            lines.push(b"b\n", 1.0),
            [
                (Level::Warn, "4000 lines of output dropped: more than 100 per second".to_owned()),
                (Level::Debug, "b".to_owned())
            ]
        );
    }
}
