//! `tidegate diff`: what applying, and syncing, would change.

use tidegate::{
    kubernetes::value::Value,
    manifest,
    sync::{
        allow::Allowance,
        set::{self, Scope},
    },
    value,
};

use super::scene::{Scene, Tree};

fn map(name: &str, text: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: '{text}'}}\n")
}

/// An object that a source has written, and its entry in the inventory.
async fn written(scene: &Scene, name: &str, notes: Value) -> Value {
    let mut object = value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name,
        "labels": {"tidegate.dev/source": "default.shop"}}, "data": {"k": "x"}});
    object.set_at(&["metadata", "annotations"], notes);
    object.set_at(&["metadata", "annotations", "tidegate.dev/path"], format!("deploy/{name}.yaml"));
    scene.create("", "v1", "configmaps", object).await;
    let live = scene.get("", "v1", "configmaps", name).await.unwrap();
    value!({"version": "v1", "kind": "ConfigMap", "namespace": "default", "name": name,
        "uid": live.str_at(&["metadata", "uid"]).unwrap()})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diff_says_what_a_source_would_delete_and_what_it_would_not() {
    let mut scene = Scene::open().await;
    let tree = Tree::new(scene.folder.path());
    tree.push(&[("deploy/a.yaml", &map("a", "x")), ("deploy/new.yaml", &map("new", "x"))], "first");
    let mut inventory = Vec::new();
    for (name, notes) in [("a", value!({})), ("gone", value!({})), ("kept", value!({"tidegate.dev/prune": "disabled"}))]
    {
        inventory.push(written(&scene, name, notes).await);
    }
    let mut namesake = inventory[1].clone();
    namesake.set_at(&["uid"], "another");
    let source = value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": "shop"},
        "spec": {"url": "https://git.example/shop.git", "path": "deploy", "serviceAccountName": "deployer"}});
    scene.create("tidegate.dev", "v1alpha1", "gitsources", source).await;
    let resource = tidegate::engine::key::Resource::new("tidegate.dev", "v1alpha1", "gitsources");
    let place = tidegate::engine::key::Place::new("default", "shop");
    let record = async |scene: &Scene, entries: &[Value]| {
        let mut patch = value!({"status": {}});
        patch.set_at(&["status", "inventory"], Value::list(entries.iter().cloned()));
        scene.api.patch(&resource, &place, "status", &patch).await.unwrap();
    };
    record(&scene, &inventory).await;
    let (plain, code) = scene.types(&["diff", "tree/deploy"]);
    assert_eq!(code, 1);
    assert!(plain.ends_with("1 to create, 0 to change, 1 as they should be\n"), "{plain}");
    assert!(!plain.contains("gone"), "without a source nobody would delete anything: {plain}");
    let (text, code) = scene.types(&["diff", "tree/deploy", "--source", "shop"]);
    assert_eq!(code, 1);
    assert!(text.contains("--- live ConfigMap default/gone\n+++ (no longer in git)\n"), "{text}");
    assert!(text.contains("ConfigMap default/kept is no longer in git and stays, as its annotation says\n"), "{text}");
    assert!(text.ends_with("1 to create, 0 to change, 1 to delete, 1 as they should be\n"), "{text}");
    let (json, _) = scene.types(&["diff", "tree/deploy", "--source", "shop", "-o", "json"]);
    let json = Value::from_json(json.as_bytes()).unwrap();
    let deleted: Vec<_> =
        json.list_at(&["objects"]).iter().filter(|object| object.str_at(&["change"]) == Some("delete")).collect();
    assert_eq!(deleted.len(), 1);
    assert_eq!((deleted[0].str_at(&["name"]), deleted[0].str_at(&["file"])), (Some("gone"), Some("deploy/gone.yaml")));
    assert_eq!(json.list_at(&["stays"]).len(), 1);
    // S58: another object of that name, and a path in which hardly anything is left.
    record(&scene, &[inventory[0].clone(), namesake, inventory[2].clone()]).await;
    let (text, _) = scene.types(&["diff", "tree/deploy", "--source", "shop"]);
    assert!(text.contains("ConfigMap default/gone is not the object that was written and stays\n"), "{text}");
    assert!(text.contains(", 0 to delete, "), "{text}");
    let limit = value!({"spec": {"pruneLimit": 0}});
    scene.api.patch(&resource, &place, "", &limit).await.unwrap();
    record(&scene, &inventory).await;
    let (text, _) = scene.types(&["diff", "tree/deploy", "--source", "shop"]);
    assert!(text.contains("nothing is deleted: 2 of 3 objects are no longer in the path"), "{text}");
    // What the source may not bring is refused as it would be.
    tree.push(&[("deploy/ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")], "second");
    let (_, code) = scene.types(&["diff", "tree/deploy", "--source", "shop"]);
    assert_eq!(code, 2);
    let (_, code) = scene.types(&["diff", "tree/deploy", "--source", "shopp"]);
    assert_eq!(code, 2);
    let said = String::from_utf8_lossy(&scene.printed.last().unwrap().1).into_owned();
    assert!(said.contains("did you mean shop?"), "{said}");
}

/// The digest of content that a source follows, as the daemon records it.
fn digest(files: &[(&str, &str)]) -> String {
    let files: Vec<_> = files.iter().map(|(path, text)| manifest::read(*path, text.as_bytes())).collect();
    let allowance = Allowance { kinds: vec!["*".into()], namespaces: vec!["*".into()] };
    let sorts = set::built_in(&set::kinds(&files));
    set::read(&files, &Scope { namespace: "default".into(), allowance }, &sorts).digest().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diff_lists_the_hooks_that_a_sync_would_run() {
    let mut scene = Scene::open().await;
    let tree = Tree::new(scene.folder.path());
    let job = |name: &str, hook: &str, image: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, annotations: {{tidegate.dev/hook: {hook}}}}}\nspec:\n  \
             template:\n    spec: {{restartPolicy: Never, containers: [{{name: main, image: '{image}'}}]}}\n"
        )
    };
    let (migrate, smoke) = (job("migrate", "before-sync", "tool:1"), job("smoke", "after-sync", "tool:1"));
    let files = [("deploy/a.yaml", map("a", "x")), ("deploy/b.yaml", smoke), ("deploy/c.yaml", migrate)];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    tree.push(&files, "first");
    written(&scene, "a", value!({})).await;
    let source = value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": "shop"},
        "spec": {"url": "https://git.example/shop.git", "path": "deploy", "serviceAccountName": "deployer"}});
    scene.create("tidegate.dev", "v1alpha1", "gitsources", source).await;
    let (text, code) = scene.types(&["diff", "tree/deploy", "--source", "shop"]);
    assert_eq!(code, 1);
    let listed = "\nHooks that run\n  before-sync Job default/migrate (tree/deploy/c.yaml:2): before anything is applied\n  \
                  after-sync Job default/smoke (tree/deploy/b.yaml:2): when everything is healthy\n\n\
                  2 to create, 0 to change, 0 to delete, 1 as they should be\n";
    assert!(text.contains("--- (absent)\n+++ tree/deploy/c.yaml:2\n") && text.ends_with(listed), "{text}");
    // The source follows this very content: its hooks have run, and are gone, for all that is known.
    let resource = tidegate::engine::key::Resource::new("tidegate.dev", "v1alpha1", "gitsources");
    let place = tidegate::engine::key::Place::new("default", "shop");
    let mut status = value!({"status": {"content": {"commit": "1", "newest": "1"}}});
    status.set_at(&["status", "content", "digest"], digest(&files));
    scene.api.patch(&resource, &place, "status", &status).await.unwrap();
    let (text, code) = scene.types(&["diff", "tree/deploy", "--source", "shop"]);
    assert_eq!((text.as_str(), code), ("0 to create, 0 to change, 0 to delete, 1 as they should be\n", 0));
    // Another version of one hook: a commit that brings it runs both.
    let live = value!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "migrate", "annotations": {"tidegate.dev/hook": "before-sync"}}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "tool:1"}]}}}});
    scene.create("batch", "v1", "jobs", live).await;
    tree.push(&[("deploy/c.yaml", &job("migrate", "before-sync", "tool:2"))], "second");
    let (json, code) = scene.types(&["diff", "tree/deploy", "--source", "shop", "-o", "json"]);
    let json = Value::from_json(json.as_bytes()).unwrap();
    let of = |list: &str, key: &str| -> Vec<String> {
        let cell = |object: &Value| {
            [object.str_at(&["name"]), object.str_at(&[key])].map(|it| it.unwrap().to_owned()).join(" ")
        };
        json.list_at(&[list]).iter().map(cell).collect()
    };
    assert_eq!(code, 1);
    assert_eq!(of("objects", "change"), ["a nothing", "migrate change", "smoke create"]);
    assert_eq!(of("hooks", "phase"), ["migrate before-sync", "smoke after-sync"]);
    // Without a source, those of a folder in which something differs.
    let (text, code) = scene.types(&["diff", "tree/deploy/a.yaml", "tree/deploy/b.yaml"]);
    assert_eq!((text.as_str(), code), ("0 to create, 0 to change, 1 as they should be\n", 0));
    let (text, code) = scene.types(&["diff", "tree/deploy"]);
    assert!(code == 1 && text.contains("Hooks that run\n  before-sync Job default/migrate"), "{text}");
}
