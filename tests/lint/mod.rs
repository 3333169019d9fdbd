//! What `tidegate lint` prints for the manifests in `cases/`: each file, or folder of files, beside its `.txt`.
//!
//! `TIDEGATE_BLESS=1 cargo test --test it lint::` writes the outputs anew; look at the difference before keeping it.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tidegate::{
    lint::{Report, lint, output, rule::Rule},
    manifest,
};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint").join(name)
}

/// The files below a path, sorted, by their names relative to `root`.
fn files(path: &Path, root: &Path) -> Vec<manifest::File> {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        return entries.iter().flat_map(|entry| files(entry, root)).collect();
    }
    let wanted = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml" || ending == "json");
    let name = path.strip_prefix(root).unwrap().display().to_string();
    wanted.then(|| manifest::read(name, &fs::read(path).unwrap())).into_iter().collect()
}

fn report(case: &Path) -> Report {
    lint(&files(case, case.parent().unwrap()))
}

/// Compares with what is stored, or stores it.
fn check(stored: &Path, printed: &str, misses: &mut Vec<String>) {
    if env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(stored, printed).unwrap();
        return;
    }
    let expected = fs::read_to_string(stored).unwrap_or_default();
    if expected != printed {
        misses.push(format!("{}\n--- stored\n{expected}--- printed\n{printed}", stored.display()));
    }
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder("cases")).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_none_or(|ending| ending != "txt")).collect();
    cases.sort();
    cases
}

#[test]
fn every_example_of_a_router_is_accepted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/routers");
    let mut examples: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path().join("web.yaml")).collect();
    examples.sort();
    assert!(examples.len() >= 4, "{examples:?}");
    for example in examples {
        let printed = output::text(&report(&example), false);
        assert!(report(&example).findings.is_empty(), "{}\n{printed}", example.display());
    }
}

#[test]
fn every_case_prints_what_is_stored() {
    let mut misses = Vec::new();
    for case in cases() {
        check(&case.with_extension("txt"), &output::text(&report(&case), false), &mut misses);
    }
    println!("{} cases, {} misses", cases().len(), misses.len());
    assert!(cases().len() >= 60);
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
fn the_other_formats_print_what_is_stored() {
    let mut misses = Vec::new();
    for case in ["text-repeated-key.yaml", "reference-services.yaml", "files-apart", "clean-canary.yaml"] {
        let report = report(&folder("cases").join(case));
        let stem = Path::new(case).file_stem().unwrap().to_str().unwrap();
        let stored = |format: &str| folder("formats").join(format!("{stem}.{format}"));
        check(&stored("json"), &output::json(&report), &mut misses);
        check(&stored("sarif"), &output::sarif(&report, "0.0.0"), &mut misses);
        check(&stored("github"), &output::github(&report), &mut misses);
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

/// Which rules no case breaks. What is listed here needs a reason.
#[test]
fn every_rule_is_broken_by_some_case() {
    let mut broken: BTreeSet<Rule> =
        cases().iter().flat_map(|case| report(case).findings).map(|finding| finding.rule).collect();
    let trees: String =
        TREES.iter().map(|tree| fs::read_to_string(folder("trees").join(format!("{tree}.txt"))).unwrap()).collect();
    broken.extend(Rule::all().filter(|rule| trees.contains(&format!("[{}]", rule.name()))));
    let unbroken: Vec<&str> = Rule::all().filter(|rule| !broken.contains(rule)).map(Rule::name).collect();
    assert_eq!(unbroken, UNBROKEN, "rules that no case breaks");
}

/// Rules of the model that a look at files never names: it says `reference-missing` instead, or the schema says it first.
const UNBROKEN: [&str; 6] =
    ["source-url", "source-reference", "source-value", "service-not-found", "template-not-found", "istio-missing"];

fn tidegate(arguments: &[&str], current: &Path, input: &str) -> Output {
    use std::{io::Write, process::Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .current_dir(current)
        .env_remove("TIDEGATE_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn the_command_reads_files_folders_and_standard_input_and_says_how_it_went() {
    let cases = folder("cases");
    #[track_caller]
    fn run(arguments: &[&str], input: &str, code: i32, said: &str) {
        let output = tidegate(&[&["lint"], arguments].concat(), &folder("cases"), input);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(said), "{arguments:?}: {text}");
        assert!(!text.contains('\u{1b}'), "colour without a terminal");
    }
    let clean = fs::read_to_string(cases.join("clean-canary.yaml")).unwrap();
    run(&["clean-canary.yaml"], "", 0, "1 object in 1 file: nothing to complain about");
    run(&["-"], &clean, 0, "nothing to complain about");
    run(&["-"], &clean.replace("replicas: 10", "replicas: -1"), 1, "stdin:6:");
    run(&["-f", "text-repeated-key.yaml"], "", 1, "text-repeated-key.yaml:8:3");
    run(&["--filename", "clean-istio.yaml"], "", 0, "4 objects in 1 file");
    run(&["clean-istio.yaml", "-f", "clean-canary.yaml"], "", 1, "Rollout web is given twice");
    run(&["files-apart"], "", 1, "files-apart/services.yaml:");
    run(
        &["files-apart", "--ignore", "service-selector", "--fail-on", "error", "--ignore", "ingress-backend"],
        "",
        0,
        "3 files",
    );
    run(&["advice-images.yaml"], "", 0, "hint[image-tag]");
    run(&["advice-images.yaml", "--fail-on", "hint"], "", 1, "hint[image-tag]");
    run(&["gone.yaml"], "", 2, "reading gone.yaml");
    run(&["files-apart/README.md", "-o", "json"], "", 1, "\"rule\": \"not-an-object\"");
    run(&["--explain", "same-service"], "", 0, "two roles share one Service");
    run(&["--explain", "same-services"], "", 2, "did you mean `same-service`?");
    run(&["--explain", "all"], "", 0, "weight-unreachable");
    run(&["--ignore", "nonsense", "clean-canary.yaml"], "", 2, "there is no rule");
}

/// Whole trees, as a person gives them.
const TREES: [&str; 3] = ["kustomize", "apart", "overlay"];

#[test]
fn a_tree_is_a_set_for_each_kustomization_and_each_folder() {
    let mut misses = Vec::new();
    for tree in TREES {
        let output = tidegate(&["lint"], &folder("trees").join(tree), "");
        let text = format!(
            "{}{}(exit code {})\n",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            output.status.code().unwrap()
        );
        check(&folder("trees").join(format!("{tree}.txt")), &text, &mut misses);
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
    // The same in a revision, and for a patch that is named.
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    let repository = git2::Repository::init(root).unwrap();
    for file in [
        "base/kustomization.yaml",
        "base/web.yaml",
        "base/service.yaml",
        "test/kustomization.yaml",
        "test/replicas.yaml",
    ] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::copy(folder("trees/kustomize").join(file), root.join(file)).unwrap();
    }
    let mut index = repository.index().unwrap();
    index.add_all(["."], git2::IndexAddOption::DEFAULT, None).unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let who = git2::Signature::now("t", "t@example.com").unwrap();
    repository.commit(Some("HEAD"), &who, &who, "c", &tree, &[]).unwrap();
    for arguments in
        [&["lint", "--git", "HEAD"][..], &["lint", "--git", "HEAD", "-o", "github"], &["lint", "test/replicas.yaml"]]
    {
        let output = tidegate(arguments, root, "");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn the_examples_are_clean() {
    let output = tidegate(&["lint", "examples"], Path::new(env!("CARGO_MANIFEST_DIR")), "");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(!text.contains("warning[") && !text.contains("error["), "{text}");
}

/// Its own test data: what it calls valid ends with 0 under its name, the rest with 1.
#[test]
fn as_the_plugin_it_ends_as_argo_rollouts_does() {
    let place = tempfile::tempdir().unwrap();
    let plugin = place.path().join("kubectl-argo-rollouts");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tidegate"), &plugin).unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(&plugin).arg("lint").args(arguments).current_dir(folder("argo")).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let mut misses = Vec::new();
    for entry in fs::read_dir(folder("argo")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let code = if name.starts_with("invalid") { 1 } else { 0 };
        let (ended, text) = run(&["-f", &name]);
        if name != "SOURCE" && ended != Some(code) {
            misses.push(format!("{name}: {ended:?} instead of {code}\n{text}"));
        }
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
    assert_eq!(run(&["-f", "gone.yaml"]).0, Some(1));
    assert_eq!(run(&["-f", "valid-nginx-basic-canary.yml", "--fail-on", "warning"]).0, Some(1));
}

#[test]
fn a_revision_is_read_without_a_checkout() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    let repository = git2::Repository::init(root).unwrap();
    let commit = |text: &str| {
        fs::create_dir_all(root.join("deploy/.hidden")).unwrap();
        fs::write(root.join("deploy/web.yaml"), text).unwrap();
        fs::write(root.join("deploy/.hidden/x.yaml"), "a: [").unwrap();
        fs::write(root.join("note.txt"), "a: [").unwrap();
        let mut index = repository.index().unwrap();
        index.add_all(["."], git2::IndexAddOption::DEFAULT, None).unwrap();
        let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
        let who = git2::Signature::now("t", "t@example.com").unwrap();
        let parents: Vec<git2::Commit<'_>> =
            repository.head().ok().and_then(|head| head.peel_to_commit().ok()).into_iter().collect();
        repository.commit(Some("HEAD"), &who, &who, "c", &tree, &parents.iter().collect::<Vec<_>>()).unwrap();
    };
    let clean = fs::read_to_string(folder("cases/clean-canary.yaml")).unwrap();
    commit(&clean.replace("replicas: 10", "replicas: -1"));
    commit(&clean);
    // What lies on disk does not count.
    fs::write(root.join("deploy/web.yaml"), "broken: [").unwrap();
    #[track_caller]
    fn run(root: &Path, arguments: &[&str], code: i32, said: &str) {
        let output = tidegate(&[&["lint", "--git"], arguments].concat(), root, "");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(said), "{arguments:?}: {text}");
    }
    run(root, &["HEAD"], 0, "1 object in 1 file: nothing");
    run(root, &["HEAD~1"], 1, "HEAD~1:deploy/web.yaml:6:");
    run(root, &["HEAD~1", "deploy"], 1, "HEAD~1:deploy/web.yaml:6:");
    run(root, &["HEAD", "deploy/web.yaml"], 0, "nothing");
    run(&root.join("deploy"), &["HEAD~1", "web.yaml"], 1, "HEAD~1:deploy/web.yaml:6:");
    run(root, &["HEAD~1", "-o", "github"], 1, "::error file=deploy/web.yaml,line=6,");
    run(root, &["nowhere"], 2, "no revision");
    run(root, &["HEAD", "gone"], 2, "HEAD:gone");
    run(root, &["HEAD", "../x"], 2, "leads out");
}
