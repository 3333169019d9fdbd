//! Pod templates: which ReplicaSet a template belongs to, and whether two templates are the same.
//!
//! A template is recognised three ways, in this order: by what status recorded, by its hash, by comparison. The hash alone
//! would not do: it changes with the library that computes it, and a hash that changed by itself would roll out every
//! workload anew. Nor would a comparison alone: a template that somebody edited may look like any other, so that the server
//! is asked who wrote it before it decides. Never writes a template.

mod altered;
mod equal;
mod find;

pub use altered::is_altered;
pub use equal::Prepared;
pub use find::{Found, Wanted, find};

/// The next value of `status.collisionCount` after an object of another template turned out to have the name made of
/// this template's hash. Nobody reaches the end of the range; staying there is better than starting over at a count
/// whose name is known to be taken.
pub fn next_collision(count: Option<i32>) -> i32 {
    count.unwrap_or_default().saturating_add(1)
}
