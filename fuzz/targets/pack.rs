//! Any bytes are a pack, or are refused within the budget, before anything is unpacked.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    tidegate::io::git::fuzzing::pack(bytes);
});
