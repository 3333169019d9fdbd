//! The world around the store.

/// A JSON object built in place: `map! {"phase": phase, "items": list}`. The keys are static.
macro_rules! map {
    ($($key:literal : $value:expr),* $(,)?) => {
        $crate::embedded::value::Value::Map(
            [$((::arcstr::literal!($key), $crate::embedded::value::Value::from($value))),*].into_iter().collect(),
        )
    };
}
pub(crate) use map;

pub mod ask;
pub mod event;
pub mod kubelet;
pub mod pdb;
