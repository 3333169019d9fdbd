//! A block of lines at the end of a terminal that is drawn again and again.
//!
//! Lines are cut to the terminal's width and the block to its height, so that what was drawn is where it is looked for and
//! nothing of it ends in the scrollback. Log lines would tear the block: they are kept until it is gone.

use std::{
    collections::VecDeque,
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
};

use unicode_width::UnicodeWidthChar;

use crate::kubernetes::foreign;

/// A block on a terminal.
pub struct Screen {
    /// How many lines it has now.
    drawn: usize,
    /// The terminal's size when it was drawn.
    size: Size,
}

/// How many columns and rows a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Size {
    fn now() -> Size {
        let known = terminal_size::terminal_size_of(io::stdout());
        let (width, height) = known.map_or((80, 24), |(width, height)| (width.0, height.0));
        Size { width: usize::from(width).max(20), height: usize::from(height).max(5) }
    }
}

/// Log lines that wait for the block to end.
static LOG: Mutex<Option<VecDeque<String>>> = Mutex::new(None);
/// How many of them are kept.
const KEPT: usize = 200;

impl Screen {
    /// A block, if standard output is a terminal.
    pub fn new() -> Option<Screen> {
        if !io::stdout().is_terminal() {
            return None;
        }
        *LOG.lock().unwrap_or_else(PoisonError::into_inner) = Some(VecDeque::new());
        Some(Screen { drawn: 0, size: Size::now() })
    }

    /// Draws the block anew; `rows` is told how much room there is.
    pub fn draw(&mut self, rows: impl FnOnce(Size) -> Vec<String>) {
        let size = Size::now();
        // One row is for the cursor.
        let room = Size { height: size.height - 1, ..size };
        let mut out = String::from(NO_WRAP);
        if self.size != size && self.drawn > 0 {
            // The terminal has moved what was drawn.
            out += "\x1b[2J\x1b[H";
        } else if self.drawn > 0 {
            out += &format!("\x1b[{}A\x1b[J", self.drawn);
        }
        let rows = rows(room);
        let shown = rows.iter().take(room.height);
        self.drawn = shown.len();
        self.size = size;
        shown.for_each(|row| out += &format!("{}\n", cut(&foreign::terminal(row), size.width)));
        out += WRAP;
        anstream::print!("{out}");
        let _ = io::stdout().flush();
    }
}

/// Lets the terminal cut lines instead of breaking them, and the other way round.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

impl Drop for Screen {
    fn drop(&mut self) {
        let kept = LOG.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut stderr = io::stderr().lock();
        for line in kept.into_iter().flatten() {
            let _ = writeln!(stderr, "{line}");
        }
    }
}

/// The newest log lines that wait.
pub fn logged(most: usize) -> Vec<String> {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = log.iter().flatten();
    lines.clone().skip(lines.count().saturating_sub(most)).cloned().collect()
}

/// Where log lines go: to standard error, or to wait while there is a block.
pub struct Log;

impl Write for Log {
    /// Takes an entry: they come as a whole. What stands in it is somebody else's, and must not look like another one.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let entry = foreign::entry(&String::from_utf8_lossy(bytes));
        let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lines) = log.as_mut() else {
            io::stderr().write_all(entry.as_bytes())?;
            return Ok(bytes.len());
        };
        lines.extend(entry.lines().map(str::to_owned));
        while lines.len() > KEPT {
            lines.pop_front();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A line of at most so many columns; what colours it takes no room.
pub fn cut(line: &str, width: usize) -> String {
    let (mut out, mut used, mut rest) = (String::with_capacity(line.len()), 0, line.chars());
    while let Some(c) = rest.next() {
        if c == '\x1b' {
            out.push(c);
            for c in rest.by_ref() {
                out.push(c);
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
            continue;
        }
        let wide = c.width().unwrap_or(0);
        let is_last = rest.clone().next().is_none();
        if used + wide > width || (used + wide == width && !is_last && has_more(rest.clone())) {
            return format!("{out}…\x1b[0m");
        }
        // What moves the cursor has no place in a line.
        if !c.is_control() {
            out.push(c);
            used += wide;
        }
    }
    out
}

/// Whether anything visible follows.
fn has_more(mut rest: std::str::Chars<'_>) -> bool {
    while let Some(c) = rest.next() {
        if c != '\x1b' {
            return true;
        }
        while rest.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_no_more_columns_than_there_are() {
        #[track_caller]
        fn check(line: &str, width: usize, expected: &str) {
            assert_eq!(cut(line, width), expected);
        }
        check("abc", 3, "abc");
        check("abcd", 3, "ab…\x1b[0m");
        check("\x1b[1mabc\x1b[0m", 3, "\x1b[1mabc\x1b[0m");
        check("\x1b[1mabcd\x1b[0m", 3, "\x1b[1mab…\x1b[0m");
        check("日本語", 4, "日…\x1b[0m");
        check("a\tb\rc", 9, "abc");
        check("", 3, "");
    }
}
