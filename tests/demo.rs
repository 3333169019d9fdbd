//! `tidegate demo`, as a person in a pipe sees it.
#![allow(missing_docs, clippy::unwrap_used)]

use std::process::Command;

#[test]
fn the_demo_ends_well_and_says_how_each_commit_went() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("repository");
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate")).args(["demo", "--keep"]).arg(&kept).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let log = text.split_once("git log\n").unwrap().1;
    let states: Vec<&str> = log
        .lines()
        .filter_map(|line| line.trim().split([' ', ',']).nth(1).filter(|_| line.starts_with("     ")))
        .collect();
    assert_eq!(states, ["success", "failure", "success", "success"], "{text}");
    assert!(log.contains("held since commit"), "{log}");
    assert!(text.contains("step 4/6, 40 %, 2 of 5 pods, pauses"), "{text}");
    let repository = git2::Repository::open_bare(&kept).unwrap();
    let mut walk = repository.revwalk().unwrap();
    walk.push_ref("refs/heads/main").unwrap();
    let notes: Vec<String> = walk
        .map(|id| {
            String::from_utf8_lossy(
                repository.find_note(Some("refs/notes/tidegate"), id.unwrap()).unwrap().message_bytes(),
            )
            .into_owned()
        })
        .collect();
    let states: Vec<&str> =
        notes.iter().filter_map(|note| note.strip_prefix("tidegate/default/demo: ")?.split(',').next()).collect();
    assert_eq!(states, ["success", "failure", "success", "success"], "{notes:?}");
}
