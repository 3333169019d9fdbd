//! Any bytes are a file: read and linted without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = tidegate::manifest::read("fuzz.yaml", bytes);
});
