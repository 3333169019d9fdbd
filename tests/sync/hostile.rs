//! Hostile repositories: the commit is told what is wrong with it, and nothing changes in the cluster.

use std::path::Path;

use git2::{ObjectType, Oid, Signature, Time};
use tidegate::{sync::State, value};

use crate::{
    keys,
    objects::source,
    scene::{Scene, map},
};

const FILE: u32 = 0o100_644;
const FOLDER: u32 = 0o40_000;
const LINK: u32 = 0o120_000;
const SUBMODULE: u32 = 0o160_000;

/// A scene with two ConfigMaps that came with a good commit.
async fn begun() -> Scene {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x")), ("deploy/b.yaml", &map("b", "x"))]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    scene.pass(5).await;
    scene
}

/// A tree as it is given, however odd.
fn tree(scene: &Scene, entries: &[(u32, &[u8], Oid)]) -> Oid {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend(format!("{mode:o} ").as_bytes());
        bytes.extend(*name);
        bytes.push(0);
        bytes.extend(id.as_bytes());
    }
    scene.repository.git().odb().unwrap().write(ObjectType::Tree, &bytes).unwrap()
}

fn blob(scene: &Scene, text: &str) -> Oid {
    scene.repository.git().blob(text.as_bytes()).unwrap()
}

/// A commit whose folder `deploy` holds these entries, at the head of the branch.
fn commit(scene: &Scene, entries: &[(u32, &[u8], Oid)]) -> String {
    let deploy = tree(scene, entries);
    let root = tree(scene, &[(FOLDER, b"deploy", deploy)]);
    let git = scene.repository.git();
    let who = Signature::new("eve", "eve@example.org", &Time::new(1_800_000_000, 0)).unwrap();
    let parent = git.find_commit(scene.repository.head().unwrap()).unwrap();
    let root = git.find_tree(root).unwrap();
    scene.repository.point(git.commit(None, &who, &who, "hostile", &root, &[&parent]).unwrap())
}

/// The commit is told an error that contains these words, its source says so, and nothing else is written.
async fn refused(scene: &mut Scene, commit: &str, words: &str) {
    let version = scene.cluster.with(|store| store.version());
    scene.hint().await;
    let told = scene.until(commit, State::Error).await;
    assert!(told.contains(words), "{words:?} is not in {told:?}");
    scene.pass(130).await;
    let written: Vec<String> =
        scene.written_since(version).into_iter().filter(|name| name != "gitsources shop").collect();
    assert_eq!(written, [] as [&str; 0]);
    let shop = scene.git_source("shop");
    let ready = &shop.list_at(&["status", "conditions"])[0];
    assert_eq!((ready.str_at(&["status"]), ready.str_at(&["reason"])), (Some("False"), Some("Unreadable")));
    let problems = shop.list_at(&["status", "problems"]);
    let said: Vec<_> = problems.iter().map(|problem| problem.to_json()).collect();
    assert!(!said.is_empty());
    for name in ["a", "b"] {
        let object = scene.get("", "configmaps", name).unwrap();
        assert_eq!(object.value.str_at(&["data", "k"]), Some("x"), "{name}");
    }
}

/// The same for a file's text.
async fn refused_text(text: &str, words: &str) {
    let mut scene = begun().await;
    let hostile = scene.repository.commit(&[("deploy/c.yaml", text), ("deploy/a.yaml", &map("a", "new"))]);
    refused(&mut scene, &hostile, words).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr1_names_that_lead_elsewhere_are_refused_and_nothing_is_written_anywhere() {
    for name in
        [b"..".as_slice(), b"/etc/cron.d/x.yaml", b"a\\b.yaml", b"n\nl.yaml", "bidi\u{202e}lmay.yaml".as_bytes()]
    {
        let mut scene = begun().await;
        let evil = blob(&scene, &map("evil", "x"));
        let hostile = commit(&scene, &[(FILE, name, evil), (FILE, b"z.yaml", blob(&scene, &map("a", "new")))]);
        refused(&mut scene, &hostile, "name").await;
        scene.end().await;
    }
    assert!(!Path::new("/etc/cron.d/x.yaml").exists());
}

#[tokio::test(start_paused = true)]
async fn sr2_links_and_submodules_are_refused_and_not_followed() {
    let mut scene = begun().await;
    let passwd = blob(&scene, "/etc/passwd");
    let hostile = commit(&scene, &[(LINK, b"link.yaml", passwd), (FILE, b"z.yaml", blob(&scene, &map("a", "new")))]);
    refused(&mut scene, &hostile, "link").await;
    scene.end().await;
    let mut scene = begun().await;
    let other = scene.repository.head().unwrap();
    let hostile = commit(&scene, &[(SUBMODULE, b"sub", other), (FILE, b"z.yaml", blob(&scene, &map("a", "new")))]);
    refused(&mut scene, &hostile, "submodule").await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr3_addresses_that_are_none_are_refused_before_anybody_is_asked() {
    let scene = Scene::objects();
    for url in [
        "file:///etc/passwd",
        "ext::sh -c touch% /tmp/x",
        "git://git.example/shop.git",
        "http://git.example/shop.git",
        "https://ada:password@git.example/shop.git",
        "ssh://-oProxyCommand=x/shop.git",
        "ssh://git@-host/shop.git",
        "https://git.example/shop.git\n",
        "https://git.example/../shop.git?x=1",
        "git.example:shop.git",
        "-oProxyCommand=x@git.example:shop.git",
        "git@git.example:../shop.git?x=1",
        "/srv/git/shop.git",
    ] {
        let mut shop = source("shop", "deploy");
        shop.set_at(&["spec", "url"], url);
        let refused = scene.create("tidegate.dev", "v1alpha1", "gitsources", shop).unwrap_err();
        assert!(refused.message.contains("spec.url"), "{url}: {}", refused.message);
    }
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr6_what_a_commit_may_cost_is_bounded() {
    // Ten folders of ten, ten deep.
    let mut scene = begun().await;
    let mut bomb = tree(&scene, &[(FILE, b"x.yaml", blob(&scene, "x"))]);
    let names: Vec<String> = (0..10).map(|number| format!("d{number}")).collect();
    for _ in 0..10 {
        let entries: Vec<_> = names.iter().map(|name| (FOLDER, name.as_bytes(), bomb)).collect();
        bomb = tree(&scene, &entries);
    }
    let hostile = commit(&scene, &[(FOLDER, b"bomb", bomb)]);
    refused(&mut scene, &hostile, "allowed").await;
    scene.end().await;
    // A single file that is too long.
    refused_text(&format!("# {}\n", "x".repeat(9 << 20)), "allowed").await;
}

#[tokio::test(start_paused = true)]
async fn sr7_an_object_that_is_not_what_its_hash_says_is_not_believed() {
    let mut scene = begun().await;
    let evil = scene.repository.commit(&[("deploy/a.yaml", &map("a", "evil"))]);
    let good = blob(&scene, &map("a", "evil")).to_string();
    let file = scene.repository.path().join("objects").join(&good[..2]).join(&good[2..]);
    let other = blob(&scene, &map("a", "worse")).to_string();
    let bytes = std::fs::read(scene.repository.path().join("objects").join(&other[..2]).join(&other[2..])).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, bytes).unwrap();
    let version = scene.cluster.with(|store| store.version());
    scene.hint().await;
    scene.pass(130).await;
    let written: Vec<String> =
        scene.written_since(version).into_iter().filter(|name| name != "gitsources shop").collect();
    assert_eq!(written, [] as [&str; 0]);
    let told = scene.last(&evil).map(|report| report.state);
    assert!(told.is_none_or(|state| state == State::Error), "{told:?}");
    let shop = scene.git_source("shop");
    let message = shop.list_at(&["status", "conditions"])[0].str_at(&["message"]).unwrap().to_owned();
    assert!(message.contains("hash"), "{message}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr8_what_reading_a_file_may_cost_is_bounded_and_odd_yaml_is_refused() {
    let mut bomb = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let of = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", [of.as_str(); 10].join(","));
    }
    refused_text(&bomb, "deploy/c.yaml").await;
    refused_text(&format!("a: {}{}\n", "[".repeat(5000), "]".repeat(5000)), "deploy/c.yaml").await;
    refused_text(&format!("a: {}{}\n", "[".repeat(64), "]".repeat(64)), "deploy/c.yaml").await;
    refused_text(&map("c", &"x".repeat(2 << 20)), "the document is larger than 2 MiB").await;
    let many: String = (0..10_001).map(|number| map(&format!("c{number}"), "x")).collect();
    refused_text(&many, "the commit brings more than 10000 objects").await;
    refused_text("apiVersion: v1\nkind: ConfigMap\nkind: Secret\nmetadata: {name: c}\n", "deploy/c.yaml:3").await;
    refused_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '../../c'}\n", "deploy/c.yaml").await;
}

/// Commits a ConfigMap, signed by somebody or by nobody.
fn push(scene: &Scene, text: &str, by: Option<&str>) -> String {
    let repository = scene.repository.git();
    let parent = repository.find_commit(scene.repository.head().unwrap()).unwrap();
    let mut tree = git2::build::TreeUpdateBuilder::new();
    tree.upsert("deploy/a.yaml", blob(scene, &map("a", text)), git2::FileMode::Blob);
    let tree = tree.create_updated(repository, &parent.tree().unwrap()).unwrap();
    let key = by.map(|name| keys::key(name, name));
    keys::commit(repository, "main", tree, text, key.as_ref()).to_string()
}

#[tokio::test(start_paused = true)]
async fn sr7_only_commits_of_allowed_signers_are_applied() {
    let mut scene = Scene::objects();
    let before = scene.repository.commit(&[("deploy/a.yaml", &map("a", "unsigned"))]);
    let mut shop = source("shop", "deploy");
    shop.set_at(&["spec", "verify"], value!({"secretRef": {"name": "signers"}}));
    scene.source(shop);
    let words = scene.until(&before, State::Error).await;
    assert!(words.contains("there is no Secret signers"), "whoever cannot be checked is not let in: {words}");
    scene.secret(
        "signers",
        &[("allowed_signers", &format!("ada@example.org {}", keys::public(&keys::key("ada", "ada"))))],
    );
    scene.pass(130).await;
    let words = scene.last(&before).unwrap().words;
    assert!(words.contains("not signed"), "{words}");
    let stranger = push(&scene, "eve", Some("eve"));
    let words = scene.until(&stranger, State::Error).await;
    assert!(words.contains("sign"), "{words}");
    assert!(scene.get("", "configmaps", "a").is_none(), "nothing of it was applied");
    let good = push(&scene, "good", Some("ada"));
    scene.until(&good, State::Success).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("good"));
    let unsigned = push(&scene, "unsigned again", None);
    scene.until(&unsigned, State::Error).await;
    scene.pass(130).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("good"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr7_a_commit_that_was_refused_is_not_applied_when_another_one_waits() {
    let mut scene = Scene::objects();
    scene.secret(
        "signers",
        &[("allowed_signers", &format!("ada@example.org {}", keys::public(&keys::key("ada", "ada"))))],
    );
    scene.repository.commit(&[("deploy/a.yaml", &map("a", "before"))]);
    let good = push(&scene, "good", Some("ada"));
    let mut shop = source("shop", "deploy");
    shop.set_at(&["spec", "verify"], value!({"secretRef": {"name": "signers"}}));
    shop.set_at(&["spec", "onNewCommit"], "Wait");
    scene.source(shop);
    scene.until(&good, State::Success).await;
    let first = push(&scene, "first unsigned", None);
    scene.until(&first, State::Error).await;
    let suspend = |scene: &Scene, flag: bool| {
        let patch = value!({"spec": {"suspend": flag}});
        scene.patch("tidegate.dev", "v1alpha1", "gitsources", "", "shop", patch)
    };
    drop(suspend(&scene, true));
    scene.pass(130).await;
    let second = push(&scene, "second unsigned", None);
    drop(suspend(&scene, false));
    scene.until(&second, State::Error).await;
    scene.pass(130).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("good"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr16_secrets_are_read_by_name_alone() {
    let mut scene = Scene::objects();
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n";
    let first = scene.repository.commit(&[("deploy/s.yaml", secret), ("deploy/a.yaml", &map("a", "x"))]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    let second = scene.repository.commit(&[("deploy/s.yaml", &secret.replace("a: b", "a: c"))]);
    scene.until(&second, State::Success).await;
    let (read, greedy) = scene.rights.secrets();
    assert_eq!(greedy, [""; 0]);
    assert!(read > 0, "it was read");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr12_objects_are_written_in_the_name_of_the_sources_account_and_with_its_rights() {
    let mut scene = Scene::objects();
    scene.rights.deny("PATCH", "services");
    let service =
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {app: s}, ports: [{port: 80}]}\n";
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x")), ("deploy/s.yaml", service)]);
    scene.source(source("shop", "deploy"));
    let words = scene.until(&first, State::Failure).await;
    assert!(words.starts_with("deploy/s.yaml:2: Service default/s: services is forbidden: "), "{words}");
    assert!(words.contains("system:serviceaccount:default:deployer"), "{words}");
    assert!(words.ends_with("give the source's ServiceAccount the right to do that"), "{words}");
    assert!(scene.get("", "configmaps", "a").is_some(), "the others do not suffer");
    assert_eq!(scene.rights.users(), ["system:serviceaccount:default:deployer"]);
    scene.rights.allow_all();
    scene.until(&first, State::Success).await;
    scene.end().await;
}

const SERVICE: &str =
    "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {app: s}, ports: [{port: 80}]}\n";

#[tokio::test(start_paused = true)]
async fn sr12_a_source_reads_in_the_name_of_its_account_and_nothing_in_the_daemons() {
    let mut scene = Scene::objects();
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n";
    let many: String = (0..20).map(|number| map(&format!("m{number}"), "x")).collect();
    let few = map("few", "x");
    let files =
        [("deploy/s.yaml", SERVICE), ("deploy/z.yaml", secret), ("deploy/m.yaml", &many), ("deploy/few.yaml", &few)];
    let first = scene.repository.commit(&[&files[..], &[("deploy/web.yaml", &crate::scene::web("web:1"))]].concat());
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    // Something to compare, something to prune, and pods to look behind.
    let second = scene.repository.commit(&[("deploy/few.yaml", ""), ("deploy/web.yaml", &crate::scene::web("web:2"))]);
    scene.until(&second, State::Success).await;
    // Of the cluster it asks what there are for kinds, and of itself what it keeps.
    let own: Vec<String> = scene.rights.read_as_daemon();
    let is_known = |path: &&String| {
        path.starts_with("gitsources") || path.starts_with("customresourcedefinitions") || *path == "namespaces/default"
    };
    assert_eq!(own.iter().filter(|path| !is_known(path)).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(scene.rights.users(), ["system:serviceaccount:default:deployer"]);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr12_what_one_source_has_is_not_shown_to_another_whose_account_may_not_read_it() {
    let mut scene = Scene::objects();
    let spied = SERVICE.replace("port: 80", "port: 81");
    let first =
        scene.repository.commit(&[("deploy/s.yaml", SERVICE), ("spy/s.yaml", &spied), ("spy/m.yaml", &map("m", "x"))]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    scene.rights.deny_to("spy", "GET", "services");
    let mut spy = source("spy", "spy");
    spy.set_at(&["spec", "serviceAccountName"], "spy");
    scene.source(spy.clone());
    let words = scene.until(&first, State::Failure).await;
    assert_eq!(
        words,
        "the ServiceAccount default/spy may not get services in default; bind it to a Role there with \
         {apiGroups: [\"\"], resources: [services], verbs: [get]}"
    );
    let told = scene.git_source("spy").at(&["status"]).unwrap().to_json();
    assert!(told.contains("ReadDenied") && !told.contains("default/shop") && !told.contains("spec.ports"), "{told}");
    assert!(scene.get("", "configmaps", "m").is_none(), "nothing is written by half");
    // With the right it is told whose the Service is.
    scene.rights.allow_all();
    scene.pass(130).await;
    let told = scene.git_source("spy").at(&["status"]).unwrap().to_json();
    assert!(told.contains("shop") && !told.contains("ReadDenied"), "{told}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr12_a_right_that_is_taken_away_ends_what_is_shown() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("deploy/s.yaml", SERVICE)]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    scene.rights.deny("GET", "services");
    // What was found out about rights is believed for five minutes.
    scene.pass(301).await;
    scene.patch("", "v1", "services", "", "s", value!({"metadata": {"labels": {"who": "CANARY"}}})).unwrap();
    let second = scene.repository.commit(&[("deploy/s.yaml", &SERVICE.replace("80", "81"))]);
    let words = scene.until(&second, State::Failure).await;
    assert!(
        words.starts_with("the ServiceAccount default/deployer may not get services in default; bind it"),
        "{words}"
    );
    // A source that goes does not forget what it may not see.
    scene.delete("tidegate.dev", "v1alpha1", "gitsources", "shop");
    scene.pass(130).await;
    let leaving = scene.git_source("shop").to_json();
    assert!(leaving.contains("ReadDenied") && !leaving.contains("CANARY"), "{leaving}");
    scene.rights.allow_all();
    scene.pass(130).await;
    assert!(scene.get("tidegate.dev", "gitsources", "shop").is_none() && scene.get("", "services", "s").is_none());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr12_nothing_is_pruned_that_may_still_be_needed_by_what_may_not_be_listed() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x")), ("deploy/b.yaml", &map("b", "x"))]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    scene.rights.deny("GET", "replicasets");
    let second = scene.repository.commit(&[("deploy/b.yaml", "")]);
    let words = scene.until(&second, State::Failure).await;
    assert!(words.contains("may not list replicasets.apps in default"), "{words}");
    assert!(scene.get("", "configmaps", "b").is_some());
    scene.rights.allow_all();
    scene.until(&second, State::Success).await;
    scene.pass(5).await;
    assert!(scene.get("", "configmaps", "b").is_none());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr24_many_new_objects_are_looked_for_by_list_and_not_one_by_one() {
    let mut scene = Scene::objects();
    let many: String = (0..700).map(|number| map(&format!("m{number}"), "x")).collect();
    let first = scene.repository.commit(&[("deploy/many.yaml", &many)]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    let reads = scene.rights.reads("configmaps");
    assert!((1..20).contains(&reads), "{reads} requests");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr24_an_account_that_may_not_list_reads_each_object_by_its_name() {
    let mut scene = Scene::objects();
    scene.rights.deny_lists();
    let many: String = (0..40).map(|number| map(&format!("m{number}"), "x")).collect();
    let first = scene.repository.commit(&[("deploy/many.yaml", &many)]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    assert!(scene.rights.reads("configmaps") > 40);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr23_a_source_whose_pass_panics_is_set_aside_and_the_others_go_on() {
    let mut scene = Scene::objects();
    scene.rights.break_for("bad", true);
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x")), ("bad/b.yaml", &map("b", "x"))]);
    let mut bad = source("bad", "bad");
    bad.set_at(&["spec", "serviceAccountName"], "bad");
    scene.source(bad);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    assert!(scene.get("", "configmaps", "a").is_some());
    let stalled = |scene: &Scene| {
        let bad = scene.git_source("bad");
        let told = bad.list_at(&["status", "conditions"]).iter().find(|told| told.str_at(&["type"]) == Some("Stalled"));
        told.map(|told| (told.str_at(&["reason"]).unwrap().to_owned(), told.str_at(&["message"]).unwrap().to_owned()))
    };
    let (reason, message) = stalled(&scene).unwrap();
    assert_eq!(reason, "Quarantined");
    assert!(message.contains("or until 2026-01-01T00:05"), "{message}");
    let events = scene.list("", "events");
    assert_eq!(events.iter().filter(|event| event.str_at(&["reason"]) == Some("Quarantined")).count(), 1);
    // Neither polls nor news of its repository bring it back before its time.
    scene.pass(240).await;
    assert_eq!(scene.metric("tidegate_panics_total{machine=\"sync\"}"), 1.0);
    assert_eq!(scene.metric("tidegate_quarantined{machine=\"sync\"}"), 1.0);
    // It is tried again, and later each time.
    scene.pass(120).await;
    assert_eq!(scene.metric("tidegate_panics_total{machine=\"sync\"}"), 2.0);
    scene.pass(420).await;
    assert_eq!(scene.metric("tidegate_panics_total{machine=\"sync\"}"), 2.0);
    // What people write of it takes it up again at once.
    scene.rights.break_for("bad", false);
    scene.patch("tidegate.dev", "v1alpha1", "gitsources", "", "bad", value!({"spec": {"interval": "2m"}})).unwrap();
    scene.pass(10).await;
    assert!(scene.get("", "configmaps", "b").is_some());
    assert_eq!((stalled(&scene), scene.metric("tidegate_quarantined{machine=\"sync\"}")), (None, 0.0));
    scene.end().await;
}
