//! Any text is a JSONPath, or none; what it finds in an answer ends, and is not larger than what it was found in many times over.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate::kubernetes::{jsonpath::Template, value::Value};

fuzz_target!(|text: &str| {
    let (path, body) = text.split_once('\n').unwrap_or((text, r#"{"a":[{"b":1},{"b":"x"}],"c":{"d":null}}"#));
    let Some(template) = Template::parse(path) else { return };
    if let Ok(body) = Value::from_json(body.as_bytes()) {
        let _ = template.find(&body);
    }
});
