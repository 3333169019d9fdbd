//! GitSources as objects: what people write, what they read, and how sources depend on each other.

use std::collections::BTreeSet;

use tidegate::{kubernetes::value::Value, sync::State, value};

use crate::scene::{Scene, map, web};

pub fn source(name: &str, path: &str) -> Value {
    value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": name},
        "spec": {"url": "https://git.example/shop.git", "path": path, "serviceAccountName": "deployer"}})
}

#[tokio::test(start_paused = true)]
async fn a_git_source_says_where_it_is_as_kstatus_reads_it() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("deploy/web.yaml", &web("web:1"))]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    scene.pass(1).await;
    let shop = scene.git_source("shop");
    let ready = &shop.list_at(&["status", "conditions"])[0];
    assert_eq!((ready.str_at(&["type"]), ready.str_at(&["status"])), (Some("Ready"), Some("True")));
    assert_eq!(shop.str_at(&["status", "rolledOut", "commit"]), Some(first.as_str()));
    assert_eq!(shop.str_at(&["status", "seen", "subject"]), Some("commit 1"));
    assert_eq!(shop.list_at(&["status", "inventory"]).len(), 3);
    assert_eq!(shop.int_at(&["status", "observedGeneration"]), Some(1));
    let second = scene.repository.commit(&[("deploy/web.yaml", &web("web:2"))]);
    scene.until(&second, State::Pending).await;
    scene.pass(5).await;
    let shop = scene.git_source("shop");
    let words: Vec<_> = shop
        .list_at(&["status", "conditions"])
        .iter()
        .map(|c| (c.str_at(&["type"]).unwrap(), c.str_at(&["status"]).unwrap()))
        .collect();
    assert_eq!(words, [("Ready", "Unknown"), ("Reconciling", "True")]);
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_waits_for_the_one_it_depends_on() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("base/web.yaml", &web("web:slow-20")), ("app/a.yaml", &map("a", "x"))]);
    let mut app = source("app", "app");
    app.set_at(&["spec", "dependsOn"], value!([{"name": "base"}]));
    scene.source(app);
    scene.pass(5).await;
    assert!(scene.get("", "configmaps", "a").is_none());
    assert_eq!(scene.last(&first).unwrap().words, "waits until the source base has rolled out");
    scene.source(source("base", "base"));
    scene.pass(10).await;
    assert!(scene.get("", "configmaps", "a").is_none(), "its pods are not ready yet");
    scene.pass(60).await;
    assert!(scene.get("", "configmaps", "a").is_some());
    scene.end().await;
}

/// Eight sources that began in the same second do not ask the host of their one repository in the same second for ever.
#[tokio::test(start_paused = true)]
async fn polls_of_sources_of_one_repository_are_spread() {
    let mut scene = Scene::objects();
    let names: Vec<String> = (0..8).map(|number| format!("team-{number}")).collect();
    let commit = |scene: &mut Scene, text: &str| {
        let files: Vec<_> = names.iter().map(|name| (format!("{name}/a.yaml"), map(name, text))).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        scene.repository.commit(&files)
    };
    let seen = |scene: &Scene| -> Vec<(String, String)> {
        let seen = |name: &String, key: &str| {
            scene.git_source(name).str_at(&["status", "seen", key]).unwrap_or_default().to_owned()
        };
        names.iter().map(|name| (seen(name, "commit"), seen(name, "at"))).collect()
    };
    let first = commit(&mut scene, "x");
    for name in &names {
        let mut source = source(name, name);
        source.set_at(&["spec", "interval"], "10m");
        scene.source(source);
    }
    scene.pass(5).await;
    let begun = seen(&scene);
    assert!(begun.iter().all(|of| of == &(first.clone(), begun[0].1.clone())), "all begin at once: {begun:#?}");
    let second = commit(&mut scene, "z");
    // The interval, a tenth of it, and time to apply.
    scene.pass(660 + 5).await;
    let (commits, times): (BTreeSet<String>, BTreeSet<String>) = seen(&scene).into_iter().unzip();
    assert_eq!(commits, BTreeSet::from([second]));
    assert!(times.len() >= 6, "a minute has room for each: {times:#?}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_source_changes_nothing_until_it_is_resumed() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x"))]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    scene.patch("tidegate.dev", "v1alpha1", "gitsources", "", "shop", value!({"spec": {"suspend": true}})).unwrap();
    scene.pass(5).await;
    let second = scene.repository.commit(&[("deploy/a.yaml", &map("a", "z"))]);
    scene.pass(300).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("x"));
    assert!(scene.last(&second).is_none());
    assert_eq!(scene.git_source("shop").list_at(&["status", "conditions"])[0].str_at(&["reason"]), Some("Suspended"));
    scene.patch("tidegate.dev", "v1alpha1", "gitsources", "", "shop", value!({"spec": {"suspend": null}})).unwrap();
    scene.until(&second, State::Success).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_to_sync_is_acted_upon_at_once_and_noted() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x"))]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    let second = scene.repository.commit(&[("deploy/a.yaml", &map("a", "z"))]);
    let request = value!({"metadata": {"annotations": {"tidegate.dev/sync-requested": "now"}}});
    scene.patch("tidegate.dev", "v1alpha1", "gitsources", "", "shop", request).unwrap();
    scene.until(&second, State::Success).await;
    assert!(scene.elapsed() < 10, "no interval was waited for");
    scene.pass(1).await;
    assert_eq!(scene.git_source("shop").str_at(&["status", "lastSyncRequest"]), Some("now"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn sr11_what_is_not_allowed_refuses_the_whole_commit() {
    let mut scene = Scene::objects();
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: []\n";
    let elsewhere = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: kube-system}\n";
    for (path, text, words) in [
        (
            "deploy/r.yaml",
            role,
            "deploy/r.yaml:2: Role.rbac.authorization.k8s.io grants rights, and the source does not name it; add Role.rbac.authorization.k8s.io to spec.allow.kinds",
        ),
        (
            "deploy/r.yaml",
            elsewhere,
            "deploy/r.yaml:2: the source does not allow the namespace kube-system; add it to spec.allow.namespaces",
        ),
        (
            "deploy/r.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n",
            "deploy/r.yaml:2: Namespace does not live in a namespace, and the source does not name it; add Namespace to spec.allow.kinds",
        ),
    ] {
        let commit = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x")), (path, text)]);
        if scene.told.is_empty() {
            scene.source(source("shop", "deploy"));
        }
        assert_eq!(scene.until(&commit, State::Error).await, words);
        assert!(scene.get("", "configmaps", "a").is_none(), "nothing of it is applied");
    }
    let problems = scene.git_source("shop");
    assert_eq!(problems.list_at(&["status", "problems"])[0].str_at(&["file"]), Some("deploy/r.yaml"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn two_sources_never_share_an_object() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("one/a.yaml", &map("a", "one")), ("two/a.yaml", &map("a", "two"))]);
    scene.source(source("one", "one"));
    scene.until(&first, State::Success).await;
    scene.source(source("two", "two"));
    let words = scene.until(&first, State::Failure).await;
    assert_eq!(
        words,
        "two/a.yaml:2: ConfigMap default/a belongs to the source default.one; remove it from one of the two"
    );
    scene.pass(120).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("one"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn l13_sources_go_on_where_they_were_after_a_restart() {
    let mut scene = Scene::objects();
    scene.repository.commit(&[("deploy/web.yaml", &web("web:1"))]);
    scene.source(source("shop", "deploy"));
    scene.pass(30).await;
    let second = scene.repository.commit(&[("deploy/web.yaml", &web("web:2"))]);
    scene.until(&second, State::Pending).await;
    scene.pass(3).await;
    scene.kill().await;
    scene.start();
    scene.until(&second, State::Success).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_repository_that_cannot_be_read_is_no_reason_to_stop_a_rollout() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("deploy/web.yaml", &web("web:1"))]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    let second = scene.repository.commit(&[("deploy/web.yaml", &web("web:2"))]);
    scene.until(&second, State::Pending).await;
    scene.repository.lose();
    scene.until(&second, State::Success).await;
    scene.pass(120).await;
    let message =
        scene.git_source("shop").list_at(&["status", "conditions"])[0].str_at(&["message"]).unwrap().to_owned();
    assert!(message.contains("the repository cannot be fetched"), "{message}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_for_one_namespace_asks_for_nothing_outside_of_it() {
    let mut scene = Scene::hosted();
    scene.namespace = Some("default".into());
    scene.rights.confine("default");
    let first = scene.repository.commit(&[("deploy/web.yaml", &web("web:1")), ("deploy/a.yaml", &map("a", "x"))]);
    scene.source(source("shop", "deploy"));
    scene.start();
    scene.until(&first, State::Success).await;
    let second = scene.push(&[("deploy/a.yaml", ""), ("deploy/web.yaml", &web("web:2"))]).await;
    scene.until(&second, State::Success).await;
    scene.pass(30).await;
    assert!(scene.get("", "configmaps", "a").is_none());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_no_source_has_any_more_is_no_longer_watched() {
    let mut scene = Scene::objects();
    let service =
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {app: s}, ports: [{port: 80}]}\n";
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x")), ("deploy/s.yaml", service)]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    scene.pass(3600).await;
    let (maps, services) = (scene.rights.watches("/configmaps"), scene.rights.watches("/services"));
    assert!(maps > 1 && services > 1, "watches are renewed: {maps}, {services}");
    let second = scene.push(&[("deploy/a.yaml", "")]).await;
    scene.until(&second, State::Success).await;
    scene.pass(30).await;
    assert!(scene.get("", "configmaps", "a").is_none());
    let (maps, services) = (scene.rights.watches("/configmaps"), scene.rights.watches("/services"));
    scene.pass(3600).await;
    assert_eq!(scene.rights.watches("/configmaps"), maps);
    assert!(scene.rights.watches("/services") > services);
    // It comes back with the next one that is wanted.
    let third = scene.push(&[("deploy/a.yaml", &map("a", "z"))]).await;
    scene.until(&third, State::Success).await;
    scene.patch("", "v1", "configmaps", "", "a", value!({"data": {"k": "hacked"}})).unwrap();
    scene.pass(2).await;
    assert_eq!(scene.get("", "configmaps", "a").unwrap().value.str_at(&["data", "k"]), Some("z"));
    scene.end().await;
}
