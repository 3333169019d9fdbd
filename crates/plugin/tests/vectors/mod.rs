//! The bytes that Argo Rollouts and its plugins exchange, as recorded from its own client, both ways.

mod calls;
mod gob;
mod machine;
mod sessions;

use serde_json::Value as Json;

/// The lines of a file of vectors, from `TIDEGATE_VECTORS` if it is set.
fn lines(name: &str) -> Vec<Json> {
    read(name).lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn read(name: &str) -> String {
    let folder = std::env::var_os("TIDEGATE_VECTORS").map(|folder| std::path::Path::new(&folder).join("plugins"));
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let path = folder.map(|folder| folder.join(name)).filter(|path| path.exists()).unwrap_or_else(|| own.join(name));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text<'a>(json: &'a Json, key: &str) -> &'a str {
    json[key].as_str().unwrap_or_default()
}
