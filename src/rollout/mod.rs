//! Deciding about a Rollout: from what was seen to what is wanted.
//!
//! Pure: never reads, writes, asks the time or fails. What is here so far are the parts that only compute: where a canary
//! stands, how large each version is to be, what may be tidied up.

pub mod history;
pub mod replicas;
pub mod restart;
pub mod step;
