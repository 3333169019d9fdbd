//! What OpenSSH's own programs do: recorded (`tests/ssh/recorded`), or live for those who name them in the environment, as
//! `tests/ssh/run` does. The tests are the same; without the programs nothing is left out.

use std::{ffi::OsString, fs, path::Path, process::Command};

use super::fetching::CANARY;

/// The `sshd` to fetch through and push to; a server inside this process if none is named.
pub fn sshd() -> Option<OsString> {
    std::env::var_os("TIDEGATE_SSHD")
}

/// The `ssh-keygen` to make keys and signatures with; recorded ones are read if none is named.
pub fn keygen() -> Option<OsString> {
    std::env::var_os("TIDEGATE_SSH_KEYGEN")
}

/// Keys that were recorded: the type of each, and its password.
const KEYS: [(&str, &str, &str); 4] =
    [("ed25519", "ed25519", ""), ("ecdsa", "ecdsa", ""), ("rsa", "rsa", ""), ("locked", "ed25519", CANARY)];

/// Puts a key that `ssh-keygen` made to a path, and its public half beside it. A secret of ours is in its comment.
pub fn key(name: &str, path: &Path) {
    let (_, kind, password) = KEYS.into_iter().find(|(known, _, _)| *known == name).unwrap();
    if let Some(program) = keygen() {
        let mut command = Command::new(program);
        command.args(["-q", "-t", kind, "-C", CANARY, "-N", password, "-f"]).arg(path);
        assert!(command.status().unwrap().success());
    } else {
        fs::write(path, recorded(name)).unwrap();
        fs::write(path.with_extension("pub"), recorded(&format!("{name}.pub"))).unwrap();
    }
}

/// A file that was recorded.
pub fn recorded(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ssh/recorded").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
