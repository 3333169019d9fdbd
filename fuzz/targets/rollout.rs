//! Any JSON is a Rollout: read, hashed, judged and decided about without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate::{
    kubernetes::value::Value,
    rollout::{Seen, View, check, decide, diff},
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(rollout) = Value::from_json(bytes) else { return };
    let view = View::of(&Seen { rollout, ..Seen::default() });
    let verdict = decide(&view);
    let actions = diff(&view, &verdict);
    let _ = check(&view, &verdict, &actions);
});
