//! Any text is a kubeconfig, or is refused: reading one runs nothing and does not panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = kube::config::Kubeconfig::from_yaml(text);
});
