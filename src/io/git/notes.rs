//! Statuses as git notes, for a repository without a host: `git log --notes=tidegate` shows them.
//!
//! One note for each commit, one line for each context, the newest word of each. Touches `refs/notes/tidegate` and
//! nothing else.

use git2::{Oid, Signature, Time};
use jiff::Timestamp;

use super::{Error, Store};

/// Where the notes are.
pub const NOTES: &str = "refs/notes/tidegate";

impl Store {
    /// Writes a context's line on a commit. Writing what stands there already changes nothing.
    pub fn note(&self, commit: &str, context: &str, words: &str, now: Timestamp) -> Result<(), Error> {
        let id = Oid::from_str(commit).map_err(|error| self.failed(&error))?;
        let repository = self.repository();
        let before = repository.find_note(Some(NOTES), id).ok();
        let before = before.map(|note| String::from_utf8_lossy(note.message_bytes()).into_owned()).unwrap_or_default();
        let after = with_line(&before, context, words);
        if after == before {
            return Ok(());
        }
        let who = Signature::new("tidegate", "tidegate@localhost", &Time::new(now.as_second(), 0));
        let who = who.map_err(|error| self.failed(&error))?;
        repository.note(&who, &who, Some(NOTES), id, &after, true).map_err(|error| self.failed(&error))?;
        Ok(())
    }

    /// The note of a commit.
    pub fn notes(&self, commit: &str) -> Option<String> {
        let id = Oid::from_str(commit).ok()?;
        let repository = self.repository();
        let note = repository.find_note(Some(NOTES), id).ok()?;
        Some(String::from_utf8_lossy(note.message_bytes()).into_owned())
    }
}

/// The note with a context's line as it shall be, in its place or at the end.
fn with_line(note: &str, context: &str, words: &str) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let begin = format!("{}: ", one_line(context));
    let line = format!("{begin}{}", one_line(words));
    let mut lines: Vec<&str> = note.lines().collect();
    match lines.iter_mut().find(|line| line.starts_with(&begin)) {
        Some(old) => *old = &line,
        None => lines.push(&line),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_context_has_one_line() {
        let one = with_line("", "a", "pending");
        let two = with_line(&one, "b", "failure:\n  no");
        assert_eq!(with_line(&two, "a", "success"), "a: success\nb: failure: no\n");
    }
}
