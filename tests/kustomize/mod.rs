//! `tidegate build`: what it prints, from disk and from a revision, and how it says what is wrong.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

const FILES: [(&str, &str); 6] = [
    ("shop/base/kustomization.yaml", "resources:\n- web.yaml\n"),
    (
        "shop/base/web.yaml",
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata:\n  name: web\nspec:\n  template:\n    spec:\n      containers:\n      \
         - name: main\n        image: web:1\n        envFrom:\n        - configMapRef:\n            name: conf\n",
    ),
    (
        "shop/prod/kustomization.yaml",
        "resources: [../base]\nnamePrefix: prod-\nconfigMapGenerator:\n- name: conf\n  files: [settings.txt]\n",
    ),
    ("shop/prod/settings.txt", "a=1\n"),
    ("shop/prod/old.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old}\n"),
    ("shop/shared.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\n"),
];

fn write(root: &Path, path: &str, text: &str) {
    fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
    fs::write(root.join(path), text).unwrap();
}

fn shop() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    FILES.iter().for_each(|(path, text)| write(place.path(), path, text));
    place
}

fn commit(root: &Path) {
    let repository = git2::Repository::init(root).unwrap();
    let mut index = repository.index().unwrap();
    index.add_all(["."], git2::IndexAddOption::DEFAULT, None).unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let who = git2::Signature::now("t", "t@example.com").unwrap();
    repository.commit(Some("HEAD"), &who, &who, "c", &tree, &[]).unwrap();
}

fn tidegate(current: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_tidegate");
    Command::new(program).args(arguments).current_dir(current).env_remove("TIDEGATE_LOG").output().unwrap()
}

#[track_caller]
fn build(current: &Path, arguments: &[&str]) -> (String, String) {
    let output = tidegate(current, &[&["build"], arguments].concat());
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {err}");
    (out, err)
}

#[track_caller]
fn fails(current: &Path, arguments: &[&str], said: &str) {
    let output = tidegate(current, &[&["build"], arguments].concat());
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stdout).unwrap().as_str()),
        (Some(2), ""),
        "{arguments:?}: {err}"
    );
    assert!(err.contains(said), "{arguments:?}: {said:?} is not in {err}");
}

#[test]
fn what_a_kustomization_renders_is_printed_from_disk_and_from_a_revision() {
    let place = shop();
    let root = place.path();
    let (disk, said) = build(root, &["shop/prod"]);
    assert!(disk.contains("name: prod-web\n") && disk.contains("  settings.txt: |\n    a=1\n"), "{disk}");
    let hashed = disk.lines().find_map(|line| line.strip_prefix("  name: prod-conf-")).unwrap().to_owned();
    assert!(disk.contains(&format!("            name: prod-conf-{hashed}\n")), "the Rollout follows the name: {disk}");
    assert!(said.contains("note: no kustomization uses shop/prod/old.yaml, so it is left out"), "{said}");
    // The file may be named, and the folder may be the current one.
    assert_eq!(build(root, &["shop/prod/kustomization.yaml"]).0, disk);
    assert_eq!(build(&root.join("shop/prod"), &[]).0, disk);
    commit(root);
    write(root, "shop/base/web.yaml", "broken: [");
    assert_eq!(build(root, &["--git", "HEAD", "shop/prod"]), (disk.clone(), said));
    assert_eq!(build(&root.join("shop/base"), &["--git", "HEAD", "../prod"]).0, disk);
    fails(root, &["shop/prod"], "error: shop/base/web.yaml:");
    // As kustomize without configuration: the reference dangles.
    let (plain, _) = build(root, &["--git", "HEAD", "--plain", "shop/prod"]);
    assert!(plain.contains("            name: conf\n"), "{plain}");
    let (json, _) = build(root, &["--git", "HEAD", "-o", "json", "shop/prod"]);
    let list: serde_json::Value = serde_json::from_str(&json).unwrap();
    let kinds: Vec<_> = list["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!((list["kind"].as_str(), kinds), (Some("List"), vec!["ConfigMap", "Rollout"]));
}

#[test]
fn what_is_wrong_is_said_with_file_line_and_remedy() {
    let place = shop();
    let root = place.path();
    fails(
        root,
        &["shop"],
        "error: shop has no kustomization.yaml, kustomization.yml or Kustomization\nhint: name the folder",
    );
    fails(root, &["gone"], "error: reading gone");
    write(root, "shop/prod/kustomization.yaml", "resources:\n- ../base\nimage:\n- name: web\n");
    fails(
        root,
        &["shop/prod"],
        "error: shop/prod/kustomization.yaml:3:1: unknown field \"image\"\nhint: did you mean images?",
    );
    write(root, "shop/prod/kustomization.yaml", "resources: [../shared.yaml]\n");
    fails(root, &["shop/prod"], "shop/shared.yaml is not in or below");
    assert!(build(root, &["--load-restrictor", "LoadRestrictionsNone", "shop/prod"]).0.contains("name: shared"));
    // In a repository nothing outside of it is read.
    write(root, "shop/prod/kustomization.yaml", "resources: [../../outside]\n");
    write(root, "outside/kustomization.yaml", "configMapGenerator: [{name: a}]\n");
    assert!(build(root, &["shop/prod"]).0.contains("name: a-"));
    commit(&root.join("shop"));
    fails(root, &["shop/prod"], "leads out of the repository");
    fails(&root.join("shop"), &["--git", "HEAD", "prod"], "leads out of the repository");
    fails(&root.join("shop"), &["--git", "nope", "prod"], "nope is no revision");
}

#[test]
fn the_example_is_rendered_without_a_warning() {
    let (text, said) = build(Path::new(env!("CARGO_MANIFEST_DIR")), &["examples/kustomize/prod"]);
    assert_eq!(said, "");
    for line in ["        image: registry.example/web:1.0.0\n", "  replicas: 4\n", "            memory: 128Mi\n"] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let name = text.lines().find_map(|line| line.strip_prefix("  name: settings-")).unwrap();
    assert!(text.contains(&format!("            name: settings-{name}\n")), "{text}");
}
