//! Any text is a condition, or is refused at a place.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = tidegate::analysis::expression::parse(text);
});
