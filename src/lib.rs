//! Tidegate.
pub mod embedded;
