//! Kustomizations of commits: found by their files' names, rendered from the object database, and not again without need.

use std::{collections::HashMap, sync::Arc};

use tidegate::{
    io::git::{Content, Store},
    kustomize::Rendered,
    model::git_source::Rendering,
};

use super::repository::{FILE, FOLDER, LINK, Made};

fn map(name: &str, text: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: {text}}}\n")
}

fn content(store: &Store, commit: git2::Oid, path: &str, exclude: &[&str]) -> Content {
    let exclude: Vec<String> = exclude.iter().map(|pattern| (*pattern).to_owned()).collect();
    store.content(&commit.to_string(), path, &exclude, &HashMap::new(), Rendering::default()).unwrap()
}

fn rendered(content: &Content) -> Vec<Arc<Rendered>> {
    content.kustomized.iter().map(|one| one.rendered.clone()).collect()
}

const OVERLAY: &str = "resources: [../../base]\nnamePrefix: ";

#[test]
fn only_what_changed_is_rendered_again() {
    let made = Made::new();
    let (one, two) = (format!("{OVERLAY}one-\n"), format!("{OVERLAY}two-\n"));
    let (base, other) = (map("a", "x"), map("b", "x"));
    let files = |two: &str, base: &str, other: &str| {
        made.push(
            "main",
            &[
                ("base/kustomization.yaml", "resources: [a.yaml]\n"),
                ("base/a.yaml", base),
                ("apps/one/kustomization.yaml", &one),
                ("apps/two/kustomization.yaml", two),
                ("other/b.yaml", other),
            ],
            "a commit",
        )
    };
    let store = Store::local(&made.path()).unwrap();
    let of = |commit| rendered(&content(&store, commit, "apps", &[]));
    let first = files(&two, &base, &other);
    let begun = of(first);
    let folders: Vec<&str> = begun.iter().map(|one| one.folder.as_str()).collect();
    assert_eq!(folders, ["apps/one", "apps/two"]);
    let same = |now: &[Arc<Rendered>], then: &[Arc<Rendered>]| -> Vec<bool> {
        now.iter().zip(then).map(|(now, then)| Arc::ptr_eq(now, then)).collect()
    };
    assert_eq!(same(&of(first), &begun), [true, true]);
    // A file elsewhere; then one overlay; then the base, which lies outside of the path.
    assert_eq!(same(&of(files(&two, &base, &map("b", "z"))), &begun), [true, true]);
    let second = of(files(&format!("{OVERLAY}zwei-\n"), &base, &other));
    assert_eq!(same(&second, &begun), [true, false]);
    let third = files(&format!("{OVERLAY}zwei-\n"), &map("a", "z"), &other);
    assert_eq!(same(&of(third), &second), [false, false]);
    let digests = |content: &Content| content.kustomized.iter().map(|one| one.digest.clone()).collect::<Vec<_>>();
    let (before, after) = (content(&store, first, "apps", &[]), content(&store, third, "apps", &[]));
    assert!(digests(&before).iter().zip(digests(&after)).all(|(before, after)| *before != after));
    // A clone of the store is another source of the same repository.
    assert_eq!(same(&rendered(&content(&store.clone(), third, "apps", &[])), &of(third)), [true, true]);
}

#[test]
fn a_file_makes_its_folder_a_kustomization_unless_it_is_excluded() {
    let made = Made::new();
    let commit = made.push(
        "main",
        &[
            ("app/Kustomization", "resources: [a.yaml]\n"),
            ("app/a.yaml", &map("a", "x")),
            ("app/old.yaml", &map("old", "x")),
            ("app/more/older.yaml", &map("older", "x")),
            ("plain/b.yaml", &map("b", "x")),
        ],
        "one",
    );
    let store = Store::local(&made.path()).unwrap();
    let all = content(&store, commit, "", &[]);
    let paths: Vec<&str> = all.files.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((paths, all.kustomized.len()), (vec!["plain/b.yaml"], 1));
    assert_eq!(all.kustomized[0].unused, ["app/more/older.yaml", "app/old.yaml"]);
    let plain = content(&store, commit, "", &["Kustomization"]);
    assert_eq!((plain.files.files.len(), plain.kustomized.len()), (4, 0));
    assert!(store.is_kustomized(&commit.to_string(), "app").unwrap());
    assert!(!store.is_kustomized(&commit.to_string(), "plain").unwrap());
}

#[test]
fn links_are_followed_in_the_repository_and_nowhere_else() {
    let made = Made::new();
    let kustomization = made.blob("resources: [a.yaml]\n");
    let folder = |target: &str| {
        let (link, map) = (made.blob(target), made.blob(map("a", "x")));
        made.tree(&[(LINK, b"a.yaml", link), (FILE, b"b.yaml", map), (FILE, b"kustomization.yaml", kustomization)])
    };
    let (inside, outside, absolute) = (folder("b.yaml"), folder("../../../etc/passwd"), folder("/etc/passwd"));
    let root =
        made.tree(&[(FOLDER, b"absolute", absolute), (FOLDER, b"inside", inside), (FOLDER, b"outside", outside)]);
    let commit = made.commit(root, &[], "links");
    let store = Store::local(&made.path()).unwrap();
    let fault = |folder: &str| {
        content(&store, commit, folder, &[]).kustomized[0].rendered.fault.as_ref().map(ToString::to_string)
    };
    assert_eq!(fault("inside"), None);
    assert!(fault("outside").unwrap().contains("leads out of the repository"));
    assert!(fault("absolute").unwrap().contains("absolute path"));
}

#[test]
fn a_path_without_end_is_not_followed() {
    let made = Made::new();
    let mut deep = made.tree(&[(FILE, b"a.yaml", made.blob(map("a", "x")))]);
    for _ in 0..2_000 {
        deep = made.tree(&[(FOLDER, b"d", deep)]);
    }
    let resource = format!("resources: [{}a.yaml]\n", "d/".repeat(2_001));
    let root = made.tree(&[(FOLDER, b"d", deep), (FILE, b"kustomization.yaml", made.blob(resource))]);
    let commit = made.commit(root, &[], "deep");
    let store = Store::local(&made.path()).unwrap();
    for _ in 0..2 {
        let content = content(&store, commit, "", &[]);
        let fault = content.kustomized[0].rendered.fault.as_ref().unwrap().to_string();
        assert!(fault.contains("its path is longer than 1024 bytes"), "{fault}");
    }
}
