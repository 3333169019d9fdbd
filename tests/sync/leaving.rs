//! GitSources that are deleted.

use tidegate::{
    embedded::store::request::{Request, Verb},
    kubernetes::value::Value,
    sync::State,
    value,
};

use crate::{
    objects::source,
    scene::{Scene, map, web},
};

fn finalizers(source: &Value) -> Vec<String> {
    let names = source.list_at(&["metadata", "finalizers"]).iter();
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn s58_a_deleted_source_takes_its_own_objects_along_and_no_others() {
    let mut scene = Scene::objects();
    let kept = map("kept", "x").replace("{name: kept}", "{name: kept, annotations: {tidegate.dev/prune: disabled}}");
    let files = [
        ("deploy/web.yaml", web("web:1")),
        ("deploy/a.yaml", map("a", "x")),
        ("deploy/b.yaml", map("b", "x")),
        ("deploy/kept.yaml", kept),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let first = scene.repository.commit(&files);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    assert_eq!(finalizers(&scene.git_source("shop")), ["tidegate.dev/prune"]);
    // Somebody else's object under a name of ours, and one that was never ours.
    scene.patch("tidegate.dev", "v1alpha1", "gitsources", "", "shop", value!({"spec": {"suspend": true}})).unwrap();
    scene.pass(2).await;
    scene.delete("", "v1", "configmaps", "b");
    scene
        .create(
            "",
            "v1",
            "configmaps",
            value!({"metadata": {"name": "b", "labels": {"tidegate.dev/source": "default.shop"}}}),
        )
        .unwrap();
    scene.create("", "v1", "configmaps", value!({"metadata": {"name": "stranger"}})).unwrap();
    scene.patch("tidegate.dev", "v1alpha1", "gitsources", "", "shop", value!({"spec": {"suspend": null}})).unwrap();
    scene.delete("tidegate.dev", "v1alpha1", "gitsources", "shop");
    scene.pass(60).await;
    assert!(scene.get("tidegate.dev", "gitsources", "shop").is_none(), "{}", scene.git_source("shop").to_json());
    assert!(scene.get("argoproj.io", "rollouts", "web").is_none());
    assert!(scene.get("", "services", "web").is_none() && scene.get("", "configmaps", "a").is_none());
    for name in ["b", "kept", "stranger"] {
        assert!(scene.get("", "configmaps", name).is_some(), "{name}");
    }
    assert_eq!(scene.list("", "pods").len(), 0, "what belonged to the Rollout went with it");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn s58_a_deleted_source_that_does_not_prune_or_is_suspended_leaves_everything() {
    for change in [value!({"spec": {"prune": false}}), value!({"spec": {"suspend": true}})] {
        let mut scene = Scene::objects();
        let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x")), ("deploy/b.yaml", &map("b", "x"))]);
        scene.source(source("shop", "deploy"));
        scene.until(&first, State::Success).await;
        scene.patch("tidegate.dev", "v1alpha1", "gitsources", "", "shop", change).unwrap();
        scene.pass(2).await;
        scene.delete("tidegate.dev", "v1alpha1", "gitsources", "shop");
        scene.pass(60).await;
        assert!(scene.get("tidegate.dev", "gitsources", "shop").is_none());
        assert!(scene.get("", "configmaps", "a").is_some() && scene.get("", "configmaps", "b").is_some());
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_was_under_way_is_told_that_its_source_is_gone() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("deploy/web.yaml", &web("web:1"))]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    let second = scene.repository.commit(&[("deploy/web.yaml", &web("web:2"))]);
    scene.until(&second, State::Pending).await;
    scene.pass(3).await;
    scene.delete("tidegate.dev", "v1alpha1", "gitsources", "shop");
    assert_eq!(scene.until(&second, State::Superseded).await, "the source was deleted");
    scene.pass(30).await;
    assert!(scene.get("tidegate.dev", "gitsources", "shop").is_none());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_deleted_keeps_its_source_which_says_why() {
    let mut scene = Scene::objects();
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x")), ("deploy/b.yaml", &map("b", "x"))]);
    scene.source(source("shop", "deploy"));
    scene.until(&first, State::Success).await;
    scene.rights.deny("DELETE", "configmaps");
    // First a file that goes, then the whole source.
    let second = scene.repository.commit(&[("deploy/b.yaml", "")]);
    let words = scene.until(&second, State::Failure).await;
    assert!(
        words.contains("ConfigMap default/b: ") && words.contains("give the source's ServiceAccount the right"),
        "{words}"
    );
    scene.delete("tidegate.dev", "v1alpha1", "gitsources", "shop");
    scene.pass(60).await;
    let told = scene.git_source("shop").list_at(&["status", "conditions"])[0].clone();
    assert_eq!(told.str_at(&["reason"]), Some("DeletionRefused"));
    scene.rights.allow_all();
    scene.pass(180).await;
    assert!(scene.get("tidegate.dev", "gitsources", "shop").is_none());
    assert!(scene.get("", "configmaps", "a").is_none() && scene.get("", "configmaps", "b").is_none());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_ones_own_is_pruned_by_a_daemon_that_never_saw_it_in_git() {
    let mut scene = Scene::objects();
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.org}\nspec:\n  \
                      group: example.org\n  scope: Namespaced\n  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}\n  versions:\n  - name: v1\n    \
                      served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n";
    let widget = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 3}\n";
    let first = scene.repository.commit(&[
        ("deploy/w.yaml", widget),
        ("deploy/a.yaml", &map("a", "x")),
        ("deploy/d.yaml", definition),
    ]);
    let mut shop = source("shop", "deploy");
    shop.set_at(&["spec", "allow"], value!({"kinds": ["*"], "namespaces": ["*"]}));
    scene.source(shop);
    scene.until(&first, State::Success).await;
    assert!(scene.get("example.org", "widgets", "w").is_some());
    scene.kill().await;
    let second = scene.repository.commit(&[("deploy/w.yaml", "")]);
    scene.start();
    scene.until(&second, State::Success).await;
    scene.pass(10).await;
    assert!(scene.get("example.org", "widgets", "w").is_none());
    scene.delete("tidegate.dev", "v1alpha1", "gitsources", "shop");
    scene.pass(60).await;
    assert!(scene.get("tidegate.dev", "gitsources", "shop").is_none());
    assert!(
        scene.get("apiextensions.k8s.io", "customresourcedefinitions", "widgets.example.org").is_some(),
        "others may use it"
    );
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_deleted_is_not_held_up_by_its_sources() {
    let mut scene = Scene::objects();
    let team = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n";
    let elsewhere = map("away", "x").replace("{name: away}", "{name: away, namespace: default}");
    let first = scene.repository.commit(&[("deploy/a.yaml", &map("a", "x")), ("deploy/b.yaml", &elsewhere)]);
    let request =
        |verb: Verb, group: &str, version: &str, plural: &str, namespace: &str, name: &str, body: Option<Value>| {
            Request {
                verb,
                group: group.into(),
                version: version.into(),
                resource: plural.into(),
                namespace: namespace.into(),
                name: name.into(),
                body,
                agent: "kubectl".into(),
                ..Request::default()
            }
        };
    let team = tidegate::manifest::read("team.yaml", team.as_bytes()).objects[0].value.clone();
    scene.cluster.apply(request(Verb::Create, "", "v1", "namespaces", "", "", Some(team))).0.unwrap();
    let mut shop = source("shop", "deploy");
    shop.set_at(&["spec", "allow"], value!({"namespaces": ["team", "default"]}));
    let create = request(Verb::Create, "tidegate.dev", "v1alpha1", "gitsources", "team", "", Some(shop));
    scene.cluster.apply(create).0.unwrap();
    scene.until(&first, State::Success).await;
    // The account goes with the namespace, and its rights to delete elsewhere with it.
    scene.rights.deny("DELETE", "configmaps");
    scene.cluster.apply(request(Verb::Delete, "", "v1", "namespaces", "", "team", None)).0.unwrap();
    scene.pass(120).await;
    assert!(scene.get("", "namespaces", "team").is_none(), "it is gone, with its source");
    assert!(scene.get("", "configmaps", "away").is_some(), "what may not be deleted stays");
    scene.end().await;
}
