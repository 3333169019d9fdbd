//! How the Action finds its binary: a release only with the right checksum.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

const ASSET: &str = concat!("tidegate-v", env!("CARGO_PKG_VERSION"));
const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// Runs `action/install find`; what it printed, and its outputs.
fn find(folder: &Path, version: &str, reference: &str) -> (Output, String) {
    let outputs = folder.join("outputs");
    fs::write(&outputs, "").unwrap();
    let done = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("action/install"))
        .arg("find")
        .env("PLAN_VERSION", version)
        .env("ACTION_REF", reference)
        .env("GITHUB_OUTPUT", &outputs)
        .env("RUNNER_TOOL_CACHE", folder.join("tools"))
        .env("TIDEGATE_RELEASES", format!("file://{}", folder.join("releases").display()))
        .output()
        .unwrap();
    (done, fs::read_to_string(outputs).unwrap())
}

/// A release of a program that says its version.
fn release(folder: &Path) -> String {
    let release = folder.join("releases").join(VERSION);
    fs::create_dir_all(&release).unwrap();
    let program = folder.join("tidegate");
    fs::write(&program, "#!/bin/sh\necho released\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let asset = format!("{ASSET}-{}-unknown-linux-musl.tar.gz", std::env::consts::ARCH);
    let tar = |arguments: &[&str]| {
        assert!(Command::new("tar").current_dir(folder).args(arguments).status().unwrap().success())
    };
    tar(&["-czf", &release.join(&asset).display().to_string(), "tidegate"]);
    let sums = Command::new("sha256sum").arg(&asset).current_dir(&release).output().unwrap();
    fs::write(release.join("SHA256SUMS"), sums.stdout).unwrap();
    asset
}

#[test]
fn a_release_is_run_only_if_its_checksum_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let asset = release(at);
    let file = at.join("releases").join(VERSION).join(&asset);
    let good = fs::read(&file).unwrap();

    fs::write(&file, [good.as_slice(), b"x"].concat()).unwrap();
    let (done, outputs) = find(at, VERSION, "");
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(!done.status.success() && said.contains("::error::the checksum of"), "{said}");
    assert!(outputs.is_empty() && !at.join("tools").exists(), "{outputs}");

    fs::write(&file, &good).unwrap();
    // Asked for, or by the tag in `uses`; then from what the first run left.
    for (version, reference) in [(VERSION, "main"), ("", "v0"), ("", "v0")] {
        let (done, outputs) = find(at, version, reference);
        assert_eq!(String::from_utf8(done.stdout).unwrap(), "released\n");
        assert_eq!(outputs, format!("folder={}\nbuild=false\n", at.join("tools/tidegate").join(VERSION).display()));
        fs::write(&file, "gone").unwrap();
    }
}

#[test]
fn without_a_release_the_source_is_built() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let built = |version: &str, reference: &str| {
        let (done, outputs) = find(at, version, reference);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        assert!(outputs.contains("\nbuild=true\n"), "{outputs}");
        outputs
    };
    // No release at all; then a release, and a branch or a commit, which mean the source.
    let outputs = built("", "v0");
    release(at);
    assert_eq!(built("", "main"), outputs);
    assert_eq!(built("", "0123456789012345678901234567890123456789"), outputs);
    assert_eq!(built("source", "v0"), outputs);
    let refused = |version: &str, why: &str| {
        let (done, _) = find(at, version, "v0");
        let said = String::from_utf8(done.stdout).unwrap();
        assert!(!done.status.success() && said.starts_with("::error::") && said.contains(why), "{said}");
    };
    refused("v9.9.9", "there is no release v9.9.9");
    refused("latest", "version must be a release");
    refused("v1/../x", "version must be a release");
}
