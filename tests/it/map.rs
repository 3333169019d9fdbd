//! The map in CONTRIBUTING.md names every module, and nothing that is not there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The folders of sources, and what their paths begin with in the map.
const ROOTS: [(&str, &str); 6] = [
    ("src", ""),
    ("crates/core/src", ""),
    ("crates/kubernetes/src", "kubernetes/"),
    ("crates/embedded/src", "embedded/"),
    ("crates/plugin/src", "plugin/"),
    ("crates/kustomize/src", "kustomize/"),
];

/// Folders of so many subjects that a row for all of them says nothing.
const BROAD: [&str; 3] = ["kubernetes/", "embedded/", "io/"];

/// What every crate has.
const FRONTS: [&str; 3] = ["lib.rs", "main.rs", "mod.rs"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files and folders of all crates, as the map writes them: folders end with a slash.
fn modules() -> BTreeSet<String> {
    fn below(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                below(&entry.path(), &format!("{name}/"), found);
                found.insert(format!("{name}/"));
            } else if name.ends_with(".rs") {
                found.insert(name);
            }
        }
    }
    let mut found = BTreeSet::new();
    for (folder, prefix) in ROOTS {
        below(&root().join(folder), prefix, &mut found);
        if !prefix.is_empty() {
            found.insert(prefix.to_owned());
        }
    }
    found
}

/// What the second column of each row names, with its line. A name without a folder is below the first folder of its row.
fn named() -> Vec<(usize, String)> {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let map = text.split("## Where things are").nth(1).unwrap().split("\n## ").next().unwrap();
    let before = text.lines().count() - text.split("## Where things are").nth(1).unwrap().lines().count();
    let modules = modules();
    let mut named = Vec::new();
    for (number, row) in map.lines().enumerate().filter(|(_, line)| line.starts_with("| ")) {
        let cell = row.trim_end_matches('|').rsplit_once(" | ").map_or("", |(_, cell)| cell);
        let mut folder = String::new();
        for word in cell.split('`').skip(1).step_by(2) {
            let is_path = word.ends_with('/') || word.ends_with(".rs");
            if !is_path || word.contains([' ', '*']) {
                continue;
            }
            let below = format!("{folder}{word}");
            let path = if modules.contains(&below) { below } else { word.to_owned() };
            if word.ends_with('/') && (folder.is_empty() || !path.starts_with(&folder)) {
                folder.clone_from(&path);
            }
            named.push((before + number, path));
        }
    }
    named
}

#[test]
fn the_map_names_what_is_there() {
    let modules = modules();
    let is_there = |path: &str| modules.contains(path) || root().join(path).exists();
    let gone: Vec<String> = named()
        .into_iter()
        .filter(|(_, path)| !is_there(path))
        .map(|(line, path)| format!("CONTRIBUTING.md:{line}: {path}"))
        .collect();
    assert!(gone.is_empty(), "the map names what is not there:\n{}", gone.join("\n"));
}

#[test]
fn the_map_names_every_module() {
    let named: Vec<String> =
        named().into_iter().map(|(_, path)| path).filter(|path| !BROAD.contains(&path.as_str())).collect();
    let is_covered =
        |module: &str| named.iter().any(|path| path == module || path.ends_with('/') && module.starts_with(path));
    let is_front = |module: &str| FRONTS.contains(&module.rsplit('/').next().unwrap());
    let modules = modules();
    let missing: Vec<&String> =
        modules.iter().filter(|module| !module.ends_with('/') && !is_covered(module) && !is_front(module)).collect();
    assert!(missing.is_empty(), "the map in CONTRIBUTING.md has no row for:\n{missing:#?}");
}
