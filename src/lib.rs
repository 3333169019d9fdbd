//! Tidegate.
pub mod cmd;
pub mod embedded;
