//! What is wrong with an object, as values: where, which rule, what to do, and what Argo Rollouts says about the same.
//!
//! Never decides what happens next: a controller keeps serving, a lint prints.

use std::fmt;

pub use super::code::{Code, Severity};
use super::path::{At, Path};
use crate::kubernetes::status::FieldError;

/// One thing that is wrong, or odd.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Where. May lead to a value that is absent.
    pub path: Path,
    /// Which rule.
    pub code: Code,
    /// What is wrong, in words about this object.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
    /// What Argo Rollouts says about the same; `None` if it does not notice.
    pub argo: Option<Argo>,
}

/// The words of Argo Rollouts for a problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Argo {
    /// The words.
    pub words: Words,
    /// Whether it gets this far: where it stops at an earlier problem, it would say this only after that one is mended.
    pub reached: bool,
}

/// How Argo Rollouts words a problem.
#[derive(Debug, Clone, PartialEq)]
pub enum Words {
    /// A Kubernetes field error.
    Field(FieldError),
    /// A plain sentence.
    Plain(String),
}

impl Problem {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}; {})", self.path, self.what, self.code, self.remedy)
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Words::Field(error) => error.fmt(f),
            Words::Plain(text) => f.write_str(text),
        }
    }
}

/// What parsing an object came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed<T> {
    /// The exact object; there exactly when no problem is an error.
    pub exact: Option<T>,
    /// Every problem, each once, in the order of Argo Rollouts' own checks.
    pub problems: Vec<Problem>,
    /// What Argo Rollouts itself would list, in its order and as often as it says it. It shows people the first.
    pub argo: Vec<Words>,
}

impl<T> Parsed<T> {
    /// The exact object, or every problem that stands in its way (and the lesser ones beside them).
    pub fn into_result(self) -> Result<T, Vec<Problem>> {
        self.exact.ok_or(self.problems)
    }

    /// The same outcome for what `change` makes of the exact object.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Parsed<U> {
        Parsed { exact: self.exact.map(change), problems: self.problems, argo: self.argo }
    }
}

/// Where a parser notes what it finds.
#[derive(Debug, Default)]
pub struct Notes {
    problems: Vec<Problem>,
    argo: Vec<Words>,
    /// Argo Rollouts has stopped looking.
    stopped: bool,
}

impl Notes {
    /// Notes a problem that Argo Rollouts does not notice.
    pub fn ours(&mut self, at: &At, code: Code, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Problem { path: at.path(), code, what: what.into(), remedy: remedy.into(), argo: None });
    }

    /// The same at a path that is made already.
    pub fn ours_at(&mut self, path: Path, code: Code, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Problem { path, code, what: what.into(), remedy: remedy.into(), argo: None });
    }

    /// Notes a problem that Argo Rollouts reports in these words.
    pub fn argo(&mut self, at: &At, code: Code, words: Words, what: impl Into<String>, remedy: impl Into<String>) {
        self.argo_at(at.path(), code, words, what, remedy);
    }

    /// The same at a path that is made already.
    pub fn argo_at(
        &mut self,
        path: Path,
        code: Code,
        words: Words,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let reached = !self.stopped;
        if reached {
            self.argo.push(words.clone());
        }
        self.add(Problem { path, code, what: what.into(), remedy: remedy.into(), argo: Some(Argo { words, reached }) });
    }

    /// From here on Argo Rollouts reports nothing: it has left.
    pub fn argo_stops(&mut self) {
        self.stopped = true;
    }

    /// Argo Rollouts is back.
    pub fn argo_resumes(&mut self) {
        self.stopped = false;
    }

    /// Whether anything that Argo Rollouts reports has been noted.
    pub fn argo_reported(&self) -> bool {
        !self.argo.is_empty()
    }

    fn add(&mut self, problem: Problem) {
        // Argo Rollouts repeats itself at once or not at all; looking further back would make thousands of problems slow.
        if !self.problems.iter().rev().take(4).any(|known| *known == problem) {
            self.problems.push(problem);
        }
    }

    /// Whether an error has been noted.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity() == Severity::Error)
    }

    /// How many problems have been noted.
    pub fn len(&self) -> usize {
        self.problems.len()
    }

    /// Whether nothing has been noted.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// The outcome, if `exact` is what was made of the object. It is dropped if an error was noted.
    pub fn close<T>(self, exact: Option<T>) -> Parsed<T> {
        let exact = if self.has_errors() { None } else { exact };
        Parsed { exact, problems: self.problems, argo: self.argo }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Words {
        Words::Plain(text.into())
    }

    #[test]
    fn a_problem_is_listed_once_however_often_argo_says_it() {
        let mut notes = Notes::default();
        for _ in 0..2 {
            notes.argo(&At::ROOT, Code::StepEmpty, words("empty"), "it is empty", "fill it");
        }
        notes.argo_stops();
        notes.argo(&At::ROOT, Code::StrategyMissing, words("missing"), "it is missing", "add it");
        let parsed = notes.close(Some(()));
        assert_eq!(parsed.argo, [words("empty"), words("empty")]);
        let reached: Vec<bool> = parsed.problems.iter().map(|p| p.argo.as_ref().unwrap().reached).collect();
        assert_eq!((reached, parsed.exact), (vec![true, false], None));
    }

    #[test]
    fn warnings_do_not_stand_in_the_way() {
        let mut notes = Notes::default();
        notes.ours(&At::ROOT, Code::StepWithTwoActions, "two", "split it");
        assert_eq!(notes.close(Some(1)).into_result(), Ok(1));
    }
}
