//! The map in SECURITY.md is complete, and what it promises of the build is so.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Every file of Rust below these folders.
fn sources(folders: &[&str]) -> Vec<(PathBuf, String)> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                below(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    folders.iter().for_each(|folder| below(&root().join(folder), &mut found));
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The names of all functions.
fn functions() -> BTreeSet<String> {
    let name = |line: &str| {
        let rest = line.trim_start().split("fn ").nth(1)?;
        Some(rest.split(['(', '<']).next()?.to_owned())
    };
    sources(&["src", "crates", "tests"]).iter().flat_map(|(_, text)| text.lines().filter_map(name)).collect()
}

/// The rows of the table: number, tests, what is open.
fn rows() -> BTreeMap<u32, (BTreeSet<String>, String)> {
    let text = read("SECURITY.md");
    let row = |line: &str| {
        let (number, rest) = line.strip_prefix("| SR")?.split_once(' ')?;
        let cell = rest.trim_end_matches('|').rsplit(" | ").next()?;
        let (tests, open) = cell.split_once("open:").unwrap_or((cell, ""));
        let named = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some((number.parse().ok()?, (named, open.trim().to_owned())))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn sr27_every_requirement_names_tests_that_exist_and_every_test_its_requirement() {
    let (rows, functions) = (rows(), functions());
    assert_eq!(rows.keys().copied().collect::<Vec<u32>>(), (1..=27).collect::<Vec<u32>>());
    for (number, (tests, open)) in &rows {
        assert!(!tests.is_empty() || !open.is_empty(), "SR{number} has no test and says nothing");
        let missing: Vec<&String> = tests.iter().filter(|test| !functions.contains(*test)).collect();
        assert!(missing.is_empty(), "SR{number} names tests that do not exist: {missing:?}");
    }
    for function in &functions {
        let number = function.strip_prefix("sr").and_then(|rest| rest.split('_').next()?.parse::<u32>().ok());
        let Some(number) = number else { continue };
        let is_listed = rows.get(&number).is_some_and(|(tests, _)| tests.contains(function));
        assert!(is_listed, "{function} is not in the row of SR{number} in SECURITY.md");
    }
}

/// Nothing that a repository, a host or a tenant brings is run: there is nothing that could run it. A program that a kubeconfig
/// names is run by the client library, and only where the operator lets it.
#[test]
fn sr9_nothing_starts_a_process() {
    // The host of plugins starts what an operator names, and nothing in the engine can be told to by an object.
    // Benchmarks and tests are no part of the program.
    let is_apart = |path: &Path| {
        let inside = path.strip_prefix(root()).unwrap();
        let beside = |name| inside.components().any(|part| part.as_os_str() == name);
        inside.starts_with("crates/plugin") || ["benches", "examples", "tests"].into_iter().any(beside)
    };
    for (path, text) in sources(&["src", "crates"]).into_iter().filter(|(path, _)| !is_apart(path)) {
        for word in ["Command::new", "process::Command", "tokio::process", "libc::exec", "posix_spawn"] {
            assert!(!text.contains(word), "{} names {word}", path.display());
        }
    }
}

#[test]
fn sr25_no_crate_of_ours_may_be_unsafe_and_all_others_come_from_the_registry() {
    let whole = read("Cargo.toml");
    assert!(whole.contains("unsafe_code = \"forbid\""), "the workspace forbids it");
    let mut own = vec!["Cargo.toml".to_owned()];
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        own.push(format!("crates/{}/Cargo.toml", entry.unwrap().file_name().into_string().unwrap()));
    }
    for manifest in &own {
        let text = read(manifest);
        assert!(text.contains("[lints]\nworkspace = true"), "{manifest} does not take the lints of the workspace");
        assert!(!text.contains("git = \""), "{manifest} names a repository");
    }
    for (path, text) in sources(&["src", "crates"]) {
        assert!(!text.contains("allow(unsafe_code)"), "{}", path.display());
    }
    let lock = read("Cargo.lock");
    let elsewhere = lock.lines().filter(|line| line.starts_with("source = "));
    let elsewhere: Vec<&str> =
        elsewhere.filter(|line| !line.contains("registry+https://github.com/rust-lang/crates.io-index")).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}
