//! Status ⇄ memory: the one place that knows in which fields of status Argo's protocols hide.
//!
//! Laws, which the tests hold it to: what is encoded is decoded again as it was, whatever stood in status before; a field
//! that is not ours is left as it is, wherever it stands; encoding what status already says gives the very same value, so
//! that nothing is written. Never decides anything.

mod decode;
mod encode;
#[cfg(test)]
mod laws;

pub use decode::decode;
pub use encode::{encode, status_of};
