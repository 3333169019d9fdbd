//! The language of `successCondition` and `failureCondition`: expr 1.17.7, in which Argo Rollouts evaluates them.
//!
//! A text becomes [tokens](lex), tokens a [tree](ast); mistakes are found with their place and worded as that library
//! words them. Then it is checked for what cannot be right whatever is measured, and evaluated. Bounded: no text, however
//! long or deep, makes it run away. Never reads a clock or anything else outside of it.

pub mod ast;
mod check;
mod eval;
mod functions;
pub mod lex;
mod parse;
mod value;

use std::{fmt, ops::Range};

pub use ast::{Kind, Node};
pub use eval::{Env, evaluate, holds};
pub use parse::parse;
pub use value::{Element, Val};

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
