//! What kustomize v5.8.2 answers to every case of `tests/kustomize/cases`, and of the folder in `TIDEGATE_KUSTOMIZE`.

#![allow(clippy::unwrap_used)]

mod common;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use common::Memory;
use serde_json::Value;
use tidegate_kustomize::{Options, Order, Restrict, render};

/// Cases in which we differ on purpose; `docs/differences.md` says why.
const DIFFERENT: [(&str, &str); 1] = [("rpl-json-in-string", "holds YAML with comments")];

#[test]
fn every_case_of_the_corpus_comes_out_as_kustomize_has_it() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kustomize/cases");
    let mut folders = vec![own];
    folders.extend(env::var_os("TIDEGATE_KUSTOMIZE").map(PathBuf::from));
    let mut failures = Vec::new();
    let mut count = 0;
    for folder in folders {
        let mut cases: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        cases.sort();
        for case in cases.iter().filter(|case| case.join("case.json").exists()) {
            count += 1;
            if let Err(why) = check(case) {
                failures.push(format!("{}: {why}", case.file_name().unwrap().to_string_lossy()));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {count} cases differ:\n{}", failures.len(), failures.join("\n"));
}

fn check(directory: &Path) -> Result<(), String> {
    let case: Value = serde_json::from_slice(&fs::read(directory.join("case.json")).unwrap()).unwrap();
    let mut tree = Memory::read(&directory.join("in"));
    for (path, target) in case["symlinks"].as_object().into_iter().flatten() {
        tree.links.insert(path.clone(), target.as_str().unwrap().to_owned());
    }
    let flags: Vec<&str> = case["flags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let options = Options {
        restrict: if flags.contains(&"LoadRestrictionsNone") { Restrict::Repository } else { Restrict::Root },
        order: if flags.contains(&"--reorder") { Order::Gathered } else { Order::Legacy },
        ..Options::default()
    };
    let target = case["target"].as_str().unwrap();
    let target = if target == "." { "" } else { target };
    let outcome = render(&tree, target, &options);
    let name = directory.file_name().unwrap().to_string_lossy();
    if let Some((_, message)) = DIFFERENT.iter().find(|(case, _)| *case == name) {
        return match outcome {
            Ok(_) => Err("is rendered, but listed as refused".to_owned()),
            Err(failed) if failed.problem.message.contains(message) => Ok(()),
            Err(failed) => Err(format!("is refused otherwise: {}", failed.problem)),
        };
    }
    match (case["outcome"].as_str().unwrap(), outcome) {
        ("ok", Ok(rendered)) => {
            let expected = fs::read_to_string(directory.join("expected.yaml")).unwrap();
            let ours = rendered.to_yaml();
            if ours == expected { Ok(()) } else { Err(difference(&expected, &ours)) }
        }
        ("ok", Err(failed)) => Err(format!("is refused: {}", failed.problem)),
        (_, Ok(_)) => Err(format!(
            "is rendered, but refused by kustomize: {}",
            fs::read_to_string(directory.join("expected.error")).unwrap_or_default()
        )),
        (_, Err(failed)) => blamed(&case["blame"], &failed.problem),
    }
}

/// A refusal must point at the right line.
fn blamed(blame: &Value, problem: &tidegate_kustomize::Problem) -> Result<(), String> {
    let Some(file) = blame["file"].as_str() else { return Ok(()) };
    let line = blame["line"].as_u64().unwrap_or_default();
    let place = problem.place.as_ref().map(|place| (place.file.to_string(), u64::from(place.line)));
    if place == Some((file.to_owned(), line)) {
        Ok(())
    } else {
        Err(format!("should point at {file}:{line}: {problem}"))
    }
}

/// The first lines that differ.
fn difference(expected: &str, ours: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), ours.lines().collect());
    let at = a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
    let from = at.saturating_sub(3);
    let show = |lines: &[&str]| {
        lines.iter().skip(from).take(8).map(|line| format!("      {line}")).collect::<Vec<_>>().join("\n")
    };
    format!("differs at line {}\n    kustomize:\n{}\n    ours:\n{}", at + 1, show(&a), show(&b))
}

#[test]
fn every_decision_is_about_a_case() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kustomize/cases");
    let mut stances: BTreeMap<String, usize> = BTreeMap::new();
    for entry in fs::read_dir(&cases).unwrap() {
        let case: Value = serde_json::from_slice(&fs::read(entry.unwrap().path().join("case.json")).unwrap()).unwrap();
        *stances.entry(case["stance"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let document = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/differences.md")).unwrap();
    for entry in fs::read_dir(&cases).unwrap() {
        let path = entry.unwrap().path();
        let case: Value = serde_json::from_slice(&fs::read(path.join("case.json")).unwrap()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if case["stance"] != "same" {
            assert!(document.contains(&format!("`{name}`")), "{name} is {} but not decided", case["stance"]);
        }
    }
}
