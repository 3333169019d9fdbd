//! A block of lines at the end of a terminal that is drawn again and again.
//!
//! Lines are cut to the terminal's width and the block to its height, so that nothing of it ends in the scrollback. Log lines would tear the block: they are kept until it is gone.

use std::{
    collections::VecDeque,
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
};

use unicode_width::UnicodeWidthChar;

use super::print::{draw, note};
use crate::kubernetes::foreign;

/// A block on the terminal that standard output is.
pub struct Screen {
    block: Block,
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

    /// What a block may take: one row is for the cursor below it.
    fn room(self) -> Size {
        Size { height: self.height - 1, ..self }
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
        Some(Screen { block: Block::default() })
    }

    /// Draws the block anew; `rows` is told how much room there is. [`Closed`](super::print::Closed) once the terminal is
    /// gone.
    pub fn draw(&mut self, rows: impl FnOnce(Size) -> Vec<String>) -> anyhow::Result<()> {
        let size = Size::now();
        let rows = rows(size.room()).iter().map(|row| foreign::terminal(row)).collect();
        draw(&self.block.draw(rows, size))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = draw(&self.block.end());
        let kept = LOG.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.into_iter().flatten().for_each(note);
    }
}

/// What to write to a terminal so that rows stand where those of before stood.
///
/// Between two drawings the cursor is at the first row. A terminal that changes its width may break or join the rows below
/// it, and one that changes its height may drop some of them; the cursor it moves with the row it is in. So whatever became of
/// the block, it is all that stands from the cursor down, and nothing above is touched.
#[derive(Debug, Default)]
pub struct Block {
    rows: Vec<String>,
    size: Option<Size>,
}

impl Block {
    /// Draws these rows, as many as there is room for; nothing if they stand there already.
    pub fn draw(&mut self, rows: Vec<String>, size: Size) -> String {
        let rows: Vec<String> = rows.iter().take(size.room().height).map(|row| cut(row, size.width)).collect();
        if self.size == Some(size) && self.rows == rows {
            return String::new();
        }
        (self.rows, self.size) = (rows, Some(size));
        let up = match self.rows.len() {
            0 => String::new(),
            rows => format!("\x1b[{rows}A"),
        };
        format!("{}{up}", self.text())
    }

    /// Leaves the block as it is, with the cursor below.
    pub fn end(&mut self) -> String {
        let out = if self.size.is_some() { self.text() } else { String::new() };
        *self = Block::default();
        out
    }

    /// The rows from where the cursor is, which then is below them, and nothing else below.
    fn text(&self) -> String {
        let rows: String = self.rows.iter().map(|row| format!("{ERASE_LINE}{row}\r\n")).collect();
        format!("{NO_WRAP}\r{rows}{ERASE_BELOW}{WRAP}")
    }
}

/// Lets the terminal cut lines instead of breaking them, and the other way round: it may know other widths than we do.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
const ERASE_LINE: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

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
