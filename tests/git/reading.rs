//! What is read from a commit, and what is not.

use std::collections::HashMap;

use tidegate::{
    io::git::{Error, Files, Reached, ReadLimits, Refusal, Relation, Store, Tag},
    model::git_source::Reference,
};

use super::repository::{FILE, FOLDER, LINK, Made, SUBMODULE, listing};

fn paths(files: &Files) -> Vec<&str> {
    files.files.iter().map(|file| file.path.as_str()).collect()
}

fn read(made: &Made, commit: git2::Oid, path: &str, exclude: &[&str]) -> Result<Files, Error> {
    let exclude: Vec<String> = exclude.iter().map(|pattern| (*pattern).to_owned()).collect();
    Store::local(&made.path()).unwrap().files(&commit.to_string(), path, &exclude, &ReadLimits::default())
}

#[test]
fn the_manifests_of_a_folder_are_read_in_order() {
    let made = Made::new();
    let commit = made.push(
        "main",
        &[
            ("deploy/web.yaml", "b"),
            ("deploy/a/z.yml", "z"),
            ("deploy/a.json", "{}"),
            ("deploy/README.md", "no"),
            ("deploy/.hidden/x.yaml", "no"),
            ("deploy/docs/x.yaml", "no"),
            ("other/x.yaml", "no"),
        ],
        "one",
    );
    let found = read(&made, commit, "deploy", &["docs/**"]).unwrap();
    assert_eq!(paths(&found), ["deploy/a.json", "deploy/a/z.yml", "deploy/web.yaml"]);
    assert_eq!(found.refused, []);
    assert_eq!(found.files[2].bytes.as_deref(), Some(&b"b"[..]));
    assert_eq!(found.files[2].blob, made.blob("b").to_string());
    let everything = read(&made, commit, "", &["/deploy"]).unwrap();
    assert_eq!(paths(&everything), ["other/x.yaml"]);
    let missing = read(&made, commit, "deploy/none", &[]).unwrap_err();
    assert_eq!(missing.to_string(), format!("commit {commit} has no folder \"deploy/none\""));
}

/// SR1, SR2: links, submodules and names with a meaning are named and not followed, and nothing is written.
#[test]
fn hostile_trees_are_data() {
    let made = Made::new();
    let (blob, passwd) = (made.blob("kind: X"), made.blob("/etc/passwd"));
    let inner = made.tree(&[(FILE, b"good.yaml", blob)]);
    let tree = made.tree(&[
        (FILE, b"..", blob),
        (FILE, b".git", blob),
        (FILE, b"/etc/cron.d/x.yaml", blob),
        (FILE, b"A.yaml", blob),
        (FILE, b"a.yaml", blob),
        (FILE, b"a\\b.yaml", blob),
        (FILE, "bidi\u{202e}lmay.yaml".as_bytes(), blob),
        (FOLDER, b"..", inner),
        (FOLDER, b".GIT", inner),
        (FOLDER, b"ok", inner),
        (LINK, b"etc", passwd),
        (LINK, b"link.yaml", passwd),
        (FILE, b"n\nl.yaml", blob),
        (SUBMODULE, b"sub", blob),
        (FILE, b"\xff\xfe.yaml", blob),
    ]);
    let commit = made.commit(tree, &[], "hostile");
    let before = listing(made.folder.path());
    let found = read(&made, commit, "", &[]).unwrap();
    assert_eq!(paths(&found), ["A.yaml", "ok/good.yaml"]);
    let refused: Vec<(&str, &Refusal)> = found.refused.iter().map(|entry| (entry.path.as_str(), &entry.why)).collect();
    assert_eq!(
        refused,
        [
            ("..", &Refusal::Name),
            ("..", &Refusal::Name),
            ("/etc/cron.d/x.yaml", &Refusal::Name),
            ("a.yaml", &Refusal::Twin("A.yaml".to_owned())),
            ("a\\b.yaml", &Refusal::Name),
            ("bidi\\u{202e}lmay.yaml", &Refusal::Name),
            ("etc", &Refusal::Link),
            ("link.yaml", &Refusal::Link),
            ("n l.yaml", &Refusal::Name),
            ("sub", &Refusal::Submodule),
            ("\u{fffd}\u{fffd}.yaml", &Refusal::Name),
        ]
    );
    assert_eq!(listing(made.folder.path()), before, "reading must not write");
    // A link is not a folder either.
    let way = made.commit(made.tree(&[(LINK, b"deploy", passwd)]), &[], "link");
    assert!(matches!(read(&made, way, "deploy", &[]), Err(Error::Missing { .. })));
    assert!(matches!(read(&made, commit, "..", &[]), Ok(_) | Err(Error::Missing { .. })));
}

/// SR6: what a commit may cost to read is bounded, and the message says by what.
#[test]
fn reading_has_limits() {
    #[track_caller]
    fn check(limits: ReadLimits, expected: &str) {
        let made = Made::new();
        let files = [("a/b/c.yaml", "0123456789"), ("a/d.yaml", "0123456789"), ("e.yaml", "0123456789")];
        let commit = made.push("main", &files, "one").to_string();
        let found = Store::local(&made.path()).unwrap().files(&commit, "", &[], &limits);
        assert_eq!(found.unwrap_err().to_string(), expected);
    }
    let all = ReadLimits::default;
    check(ReadLimits { entries: 4, ..all() }, "the number of files and folders is more than the 4 allowed");
    check(ReadLimits { depth: 1, ..all() }, "the depth of a/b is more than the 1 folders allowed");
    check(ReadLimits { path_bytes: 9, ..all() }, "the length of a path is more than the 9 bytes allowed");
    check(ReadLimits { files: 2, ..all() }, "the number of manifests is more than the 2 allowed");
    check(ReadLimits { bytes: 29, ..all() }, "the size of all manifests is more than the 0 MiB allowed");
    let made = Made::new();
    let commit = made.push("main", &[("a.yaml", "0123456789")], "one").to_string();
    let small = ReadLimits { file_bytes: 9, ..all() };
    let found = Store::local(&made.path()).unwrap().files(&commit, "", &[], &small).unwrap();
    assert_eq!((found.files.len(), &found.refused[0].why), (0, &Refusal::Size(9)));
}

/// SR6: ten folders of ten, ten deep, are ten thousand million entries in a few kilobytes.
#[test]
fn a_tree_bomb_ends_at_the_limit() {
    let made = Made::new();
    let mut tree = made.tree(&[(FILE, b"x.yaml", made.blob("x"))]);
    let names: Vec<String> = (0..10).map(|number| format!("d{number}")).collect();
    for _ in 0..10 {
        let entries: Vec<_> = names.iter().map(|name| (FOLDER, name.as_bytes(), tree)).collect();
        tree = made.tree(&entries);
    }
    let commit = made.commit(tree, &[], "bomb");
    let error = read(&made, commit, "", &[]).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
}

#[test]
fn references_lead_to_commits() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1")], "one");
    let two = made.push("main", &[("a.yaml", "2")], "two");
    let side = made.push("side", &[("a.yaml", "3")], "three");
    made.point("refs/tags/v1.0.0", one);
    let who = git2::Signature::now("Ada", "ada@example.org").unwrap();
    let object = made.repository.find_object(two, None).unwrap();
    let annotated = made.repository.tag("v1.4.0", &object, &who, "release", true).unwrap();
    let store = Store::local(&made.path()).unwrap();
    let follow = |reference: Reference| store.resolve(&reference, Some(&one.to_string()));
    let check = |reference: Reference, commit: git2::Oid, reached: Reached, relation: Relation| {
        let found = follow(reference).unwrap();
        assert_eq!((found.commit, found.reached, found.relation), (commit.to_string(), reached, Some(relation)));
    };
    check(Reference::Default, two, Reached::Branch("main".into()), Relation::Ahead);
    check(Reference::Branch("side".into()), side, Reached::Branch("side".into()), Relation::Diverged);
    check(Reference::Tag("v1.0.0".into()), one, Reached::Tag("v1.0.0".into()), Relation::Same);
    check(Reference::Semver(">=1.0 <2".into()), two, Reached::Tag("v1.4.0".into()), Relation::Ahead);
    check(Reference::Commit(side.to_string()), side, Reached::Hash, Relation::Diverged);
    let tag = follow(Reference::Tag("v1.4.0".into())).unwrap().tag;
    assert_eq!(tag, Some(Tag { name: "v1.4.0".into(), object: Some(annotated.to_string()) }));
    let message = |reference| follow(reference).unwrap_err().to_string();
    let place = store.folder().display();
    assert_eq!(message(Reference::Branch("x".into())), format!("{place} has no branch x"));
    assert_eq!(message(Reference::Tag("x".into())), format!("{place} has no tag x"));
    assert_eq!(message(Reference::Semver(">3".into())), format!("{place} has no tag in the range >3"));
    let unknown = "0123456789012345678901234567890123456789";
    assert_eq!(message(Reference::Commit(unknown.into())), format!("{place} has no commit {unknown}"));
    // Moved back: S59 needs to know.
    made.point("refs/heads/main", one);
    let back = store.resolve(&Reference::Default, Some(&two.to_string())).unwrap();
    assert_eq!((back.relation, back.rewritten()), (Some(Relation::Behind), true));
}

#[test]
fn an_empty_repository_says_so() {
    let made = Made::new();
    let store = Store::local(&made.path()).unwrap();
    let error = store.resolve(&Reference::Default, None).unwrap_err().to_string();
    assert_eq!(error, format!("{} has no commit on its branch main yet", store.folder().display()));
}

#[test]
fn the_commit_that_changed_a_file_is_found() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1"), ("b.yaml", "1")], "one");
    let two = made.push("main", &[("a.yaml", "2"), ("b.yaml", "1")], "two");
    let three = made.push("main", &[("a.yaml", "2"), ("b.yaml", "1"), ("c.yaml", "1")], "three");
    // A side branch that changes b, and the merge that brings it.
    let side = made.commit(made.files(&[("a.yaml", "2"), ("b.yaml", "2")]), &[two], "side");
    let merged = made.files(&[("a.yaml", "2"), ("b.yaml", "2"), ("c.yaml", "1")]);
    let merge = made.commit(merged, &[three, side], "merge");
    // Set back to an older content: it is this commit that did it.
    let back = made.commit(made.files(&[("a.yaml", "1"), ("b.yaml", "2"), ("c.yaml", "1")]), &[merge], "back");
    let store = Store::local(&made.path()).unwrap();
    let check = |at: git2::Oid, expected: &[(&str, git2::Oid)]| {
        let paths: Vec<String> = expected.iter().map(|(path, _)| (*path).to_owned()).collect();
        let wanted: HashMap<String, String> =
            expected.iter().map(|(path, id)| ((*path).to_owned(), id.to_string())).collect();
        assert_eq!(store.changed_by(&at.to_string(), &paths).unwrap(), wanted);
    };
    check(two, &[("a.yaml", two), ("b.yaml", one)]);
    check(merge, &[("a.yaml", two), ("b.yaml", side), ("c.yaml", three)]);
    check(back, &[("a.yaml", back), ("b.yaml", side)]);
    let about = store.about(&two.to_string()).unwrap();
    assert_eq!((about.author.as_str(), about.subject.as_str(), about.time.as_second()), ("Ada", "two", 1_700_000_000));
}
