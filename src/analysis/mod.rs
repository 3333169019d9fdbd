//! Deciding how an analysis goes on: measurements in, phases out.
//!
//! Never measures: what a provider answered is given.

pub mod by_hand;
pub mod expression;
