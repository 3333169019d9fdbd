//! Expressions by which an object says itself that it is healthy, or has failed.
//!
//! A repository may belong to somebody who wants to hold up everybody else: how many different expressions a commit has, how long each
//! is and what all of them may cost together is bounded. Each is compiled once.

use std::{collections::HashMap, sync::Arc};

use super::id::Sort;
use crate::kubernetes::{
    schema::{Schema, cel::Question},
    value::{Text, Value},
};

/// The longest expression, in bytes.
const LONGEST: usize = 1024;
/// How many different ones are compiled when a commit is read.
const DIFFERENT: usize = 64;
/// What all of them may cost together when everything is looked at. A comparison of two fields costs about five, a million a few
/// hundredths of a second.
const TOGETHER: u64 = 5_000_000;
/// What one may cost at most, and in any case.
const EACH: (u64, u64) = (1_000, 1_000_000);

/// An expression.
#[derive(Debug, Clone)]
pub struct Expression {
    /// As it was written.
    pub text: Text,
    question: Arc<Question>,
}

/// The expressions of an object.
#[derive(Debug, Clone, Default)]
pub struct Expressions {
    /// It is healthy when this is true.
    pub healthy: Option<Expression>,
    /// It has failed when this is true.
    pub failed: Option<Expression>,
    /// What each may cost.
    pub limit: u64,
}

impl Expression {
    /// What is true of an object.
    pub fn ask(&self, object: &Value, schema: &Schema, limit: u64) -> Result<bool, String> {
        self.question.ask_within(object, schema, limit)
    }
}

impl Expressions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.healthy.is_none() && self.failed.is_none()
    }
}

/// What each expression may cost where so many objects have some.
pub fn limit(objects: usize) -> u64 {
    let (least, most) = EACH;
    (TOGETHER / u64::try_from(objects.max(1)).unwrap_or(u64::MAX)).clamp(least, most)
}

/// Compiles expressions, each once for a kind.
#[derive(Default)]
pub struct Compiler(HashMap<About, Result<Arc<Question>, String>>);

/// A kind, as group, version and plural, and an expression about its objects.
type About = (Text, Text, Text, Text);

impl Compiler {
    /// Compiles an expression about objects of a kind, or says what is wrong with it.
    pub fn compile(&mut self, text: &Text, sort: &Sort) -> Result<Expression, String> {
        if text.len() > LONGEST {
            return Err(format!("it has {} bytes, and {LONGEST} are allowed", text.len()));
        }
        let key = (sort.group.clone(), sort.version.clone(), sort.plural.clone(), text.clone());
        if !self.0.contains_key(&key) && self.0.len() >= DIFFERENT {
            return Err(format!(
                "the commit has more than {DIFFERENT} different ones; use the same for objects of a kind"
            ));
        }
        let compiled = self.0.entry(key).or_insert_with(|| match &sort.kind {
            Some(kind) => Question::parse(text, &kind.schema).map(Arc::new),
            None => Err(format!("the definition of {} says nothing about its fields", sort.plural)),
        });
        compiled.clone().map(|question| Expression { text: text.clone(), question })
    }
}
