//! What is wrong with a plan, or worth a look before it is merged.

use crate::lint::rule::Severity;

/// Something wrong, or worth a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// How bad it is.
    pub severity: Severity,
    /// The rule: one of `lint`, or one of the plan's own.
    pub rule: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it; empty if nothing needs to be said.
    pub remedy: String,
    /// The object, as people call it.
    pub object: String,
    /// The file; empty if it is about none.
    pub file: String,
    /// The line; 0 if it is about none.
    pub line: usize,
    /// The column; 0 if it is about none.
    pub column: usize,
}
