//! How commands end whose output nobody reads to its end, and lint under the plugin's name.

use std::{
    fs, io,
    process::{Command, Stdio},
};

use super::scene::Scene;

/// What a command says on standard error, and how it ends, when the reader of its output is gone.
fn unread(mut command: Command) -> (String, Option<i32>) {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

#[test]
fn a_reader_that_is_gone_changes_nothing_about_how_a_command_ends() {
    let scene = Scene::open("");
    let record = scene.folder().join("record");
    fs::create_dir(&record).unwrap();
    let check = |line: &str, code: i32| {
        assert_eq!(unread(scene.command("tidegate", line)), (String::new(), Some(code)), "{line}");
    };
    check("diff examples/canary.yaml", 1);
    check("diff examples/canary.yaml -o json", 1);
    scene.applies("examples/canary.yaml");
    check("diff examples/canary.yaml", 0);
    check("lint tests/lint/cases/reference-services.yaml", 1);
    check("lint tests/lint/cases/reference-services.yaml -o json", 1);
    check("lint examples/canary.yaml", 0);
    check("lint --explain all", 0);
    check("simulate --seed 1", 0);
    check("crds", 0);
    check("version", 0);
    check("completion bash", 0);
    check("list rollouts", 0);
    check("list rollouts -o yaml", 0);
    check("get rollout web", 0);
    check("get rollout web -w", 0);
    check("list rollouts -w", 0);
    check("history web", 0);
    check("sources", 0);
    check("replay Cargo.toml -h", 0);
}
