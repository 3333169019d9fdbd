//! A fake scheduler and kubelet.

pub mod story;
