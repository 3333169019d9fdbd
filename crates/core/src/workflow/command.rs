//! Workflow commands: the lines by which a step talks to its runner.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::plan::escape::line;

/// How bad an annotation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Level {
    Error,
    Warning,
    Notice,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Notice => "notice",
        }
    }
}

/// A message at a line of a file. Its `Display` is the command; whatever its texts hold, it is one command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// How bad it is.
    pub level: Level,
    /// Empty if it is about no file.
    pub file: String,
    /// 0 if it is about no line.
    pub line: usize,
    /// 0 if it is about no column.
    pub column: usize,
    /// What it says.
    pub message: String,
}

impl Annotation {
    /// A message about no file.
    pub fn plain(level: Level, message: impl Into<String>) -> Annotation {
        Annotation { level, file: String::new(), line: 0, column: 0, message: message.into() }
    }
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut properties = Vec::new();
        if !self.file.is_empty() {
            properties.push(format!("file={}", property(&self.file)));
            if self.line > 0 {
                properties.push(format!("line={}", self.line));
            }
            if self.column > 0 {
                properties.push(format!("col={}", self.column));
            }
        }
        let space = if properties.is_empty() { "" } else { " " };
        write!(f, "::{}{space}{}::{}", self.level.name(), properties.join(","), data(&self.message))
    }
}

/// Text as the message of a command. Some runners look for the last `::` of a line, so there is only ours.
fn data(text: &str) -> String {
    let mut text = line(text).replace('%', "%25");
    while text.contains("::") {
        text = text.replace("::", ": :");
    }
    text
}

/// Text as the value of a property.
fn property(text: &str) -> String {
    line(text).replace('%', "%25").replace(':', "%3A").replace(',', "%2C")
}

/// The command after which a runner takes no command from the log until it sees the token.
pub fn stop(token: &str) -> String {
    format!("::stop-commands::{token}")
}

/// The command that ends it.
pub fn resume(token: &str) -> String {
    format!("::{token}::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_is_one_command_whatever_it_quotes() {
        #[track_caller]
        fn check(file: &str, line: usize, column: usize, message: &str, expected: &str) {
            let annotation =
                Annotation { level: Level::Error, file: file.into(), line, column, message: message.into() };
            assert_eq!(annotation.to_string(), expected);
        }
        check("deploy/web.yaml", 14, 9, "bad", "::error file=deploy/web.yaml,line=14,col=9::bad");
        check("deploy/web.yaml", 0, 0, "bad", "::error file=deploy/web.yaml::bad");
        check("", 14, 9, "bad", "::error::bad");
        check("a,line=1::x", 2, 0, "bad", "::error file=a%2Cline=1%3A%3Ax,line=2::bad");
        check("", 0, 0, "100 %0A::x", "::error::100 %250A: :x");
        check("", 0, 0, "a\n::set-output name=x::y", "::error::a : :set-output name=x: :y");
        check("", 0, 0, "a\r\n::::warning:::b", "::error::a\\u{d} : : : :warning: : :b");
        let notice = Annotation::plain(Level::Notice, "hello");
        assert_eq!(notice.to_string(), "::notice::hello");
    }
}
