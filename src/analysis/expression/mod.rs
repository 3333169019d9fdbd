//! The language of `successCondition` and `failureCondition`: expr 1.17.7, in which Argo Rollouts evaluates them.
//!
//! A text becomes [tokens](lex), tokens a [tree](ast); mistakes are found with their place and worded as that library
//! words them. Bounded: no text, however long or deep, makes it run away. Never evaluates anything here.

pub mod ast;
pub mod lex;
mod parse;

use std::{fmt, ops::Range};

pub use ast::{Kind, Node};
pub use parse::parse;

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// In words.
    pub message: String,
    /// Where, in characters from the start.
    pub at: Range<usize>,
    /// The word that should not be there, and the one that should: for those who say it in words of their own.
    pub unexpected: Option<(lex::Token, Option<&'static str>)>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
