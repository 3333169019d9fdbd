//! What the schema of a custom resource demands beyond shape: ranges, lengths, patterns, alternatives, CEL.
//!
//! Plain data, read from a CRD once; [`validate`](super::validate) and [`cel`](super::cel) ask it. Never changes a value.

use regex::Regex;

use super::{cel, formats::Format};
use crate::value::{Text, Value};

/// Further rules of a custom resource's schema.
#[derive(Debug, Default, Clone)]
pub struct Rules {
    /// No type was given: a value of any type will do.
    pub untyped: bool,
    /// What text must look like.
    pub format: Option<Format>,
    /// The least number allowed.
    pub minimum: Option<Bound>,
    /// The greatest number allowed.
    pub maximum: Option<Bound>,
    /// Numbers must be a multiple of it.
    pub multiple_of: Option<f64>,
    /// The fewest characters of a text.
    pub min_length: Option<i64>,
    /// The most characters of a text.
    pub max_length: Option<i64>,
    /// What a text must match.
    pub pattern: Option<Pattern>,
    /// The fewest items of a list.
    pub min_items: Option<i64>,
    /// The most items of a list.
    pub max_items: Option<i64>,
    /// No two items of a list may be equal.
    pub unique_items: bool,
    /// The fewest fields of an object.
    pub min_properties: Option<i64>,
    /// The most fields of an object.
    pub max_properties: Option<i64>,
    /// Fields that must be given, in the schema's order.
    pub required: Vec<Text>,
    /// No field may be given that is not named (`additionalProperties: false`).
    pub closed: bool,
    /// Of a list: unknown fields of its items are kept (`x-kubernetes-preserve-unknown-fields` beside `items`).
    pub keep: bool,
    /// All of these must hold.
    pub all_of: Vec<Clause>,
    /// One of these must hold.
    pub any_of: Vec<Clause>,
    /// Exactly one of these must hold.
    pub one_of: Vec<Clause>,
    /// This must not hold.
    pub not: Option<Box<Clause>>,
    /// `x-kubernetes-validations`
    pub cel: Vec<cel::Rule>,
    /// What must be looked for further down.
    pub below: Below,
}

/// What a type or the types inside it contain, so that a walk can pass by what has nothing for it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Below {
    /// CEL rules.
    pub cel: bool,
    /// Embedded resources.
    pub embedded: bool,
    /// Lists of type `set` or `map`.
    pub sets: bool,
    /// Values in which unknown fields are kept.
    pub open: bool,
    /// Rules on whole objects at or above a place where unknown fields are kept: an unchanged value may still be refused
    /// there, since upstream cannot tell that it is unchanged.
    pub unsettled: bool,
}

impl Below {
    /// Both.
    pub fn and(self, other: Below) -> Below {
        Below {
            cel: self.cel || other.cel,
            embedded: self.embedded || other.embedded,
            sets: self.sets || other.sets,
            open: self.open || other.open,
            unsettled: self.unsettled || other.unsettled,
        }
    }
}

/// An end of a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// The end itself.
    pub value: f64,
    /// The end is not part of the range.
    pub exclusive: bool,
}

/// A regular expression, compiled.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// As written.
    pub text: Text,
    /// Compiled; `None` if it cannot be, in which case nothing matches.
    pub regex: Option<Regex>,
}

/// A schema inside `allOf`, `anyOf`, `oneOf` or `not`: it restricts values and gives them no shape.
#[derive(Debug, Default, Clone)]
pub struct Clause {
    /// The type demanded; only `integer` and `string` occur, in the spelling-out of int-or-string.
    pub kind: Option<Text>,
    /// The only values allowed, if any are listed.
    pub allowed: Vec<Value>,
    /// The other rules.
    pub rules: Rules,
    /// The rules of fields, sorted by name.
    pub properties: Vec<(Text, Clause)>,
    /// The rules of items.
    pub items: Option<Box<Clause>>,
}

impl Rules {
    /// Whether anything is demanded of an object or list as a whole, beyond its type.
    pub fn demands_of_whole(&self) -> bool {
        !self.required.is_empty()
            || self.closed
            || self.min_properties.is_some()
            || self.max_properties.is_some()
            || self.min_items.is_some()
            || self.max_items.is_some()
            || self.unique_items
            || self.has_clauses()
    }

    /// Whether there are `allOf`, `anyOf`, `oneOf` or `not`.
    pub fn has_clauses(&self) -> bool {
        !self.all_of.is_empty() || !self.any_of.is_empty() || !self.one_of.is_empty() || self.not.is_some()
    }
}
