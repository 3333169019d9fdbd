//! Any text is a duration, a quantity, a time or a selector, or is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate::{
    api::{IntOrString, Time},
    kubernetes::{duration, selector::Labels},
    model::parse::pause_seconds,
};

fuzz_target!(|text: &str| {
    let _ = duration::parse(text);
    let _ = Time::parse(text);
    let _ = Labels::parse(text);
    let _ = pause_seconds(&IntOrString::from(text));
});
