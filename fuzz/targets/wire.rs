//! Any bytes are what a git host says: its greeting, its list of references, its answer with a pack.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    tidegate::io::git::fuzzing::wire(bytes);
});
