//! The world around the store.
pub mod pdb;
