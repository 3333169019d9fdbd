//! The flags of `tidegate plan`: what it compares with when nothing is named, a GitSource's rules, a recorded decision.

use std::{fs, path::Path, process::Command};

use tidegate::{kubernetes::value::Value, value};

use super::scene::{Scene, Tree};

fn map(name: &str, text: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: '{text}'}}\n")
}

/// Runs `tidegate plan -o json` in a folder: the plan, what is on standard error, the exit code.
fn plan(folder: &Path, arguments: &[&str]) -> (Value, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["plan", "-o", "json"]).args(arguments).current_dir(folder).env_remove("KUBECONFIG");
    let output = command.output().unwrap();
    let plan = Value::from_json(&output.stdout).unwrap_or(Value::Null);
    (plan, String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
}

fn changed(plan: &Value) -> Vec<String> {
    let objects = plan.list_at(&["objects"]).iter();
    let changed = objects.filter(|object| object.str_at(&["change"]) != Some("unchanged"));
    changed.filter_map(|object| Some(object.str_at(&["name"])?.to_owned())).collect()
}

#[test]
fn without_a_revision_the_merge_base_is_compared_with() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = Tree::new(scratch.path());
    let folder = scratch.path().join("tree");
    tree.push(&[("a.yaml", &map("a", "1")), ("b.yaml", &map("b", "1"))], "first");
    tree.git(&["checkout", "-q", "-b", "feature"]);
    fs::write(folder.join("a.yaml"), map("a", "2")).unwrap();
    tree.git(&["commit", "-q", "-am", "on the branch"]);
    // What happened on main since is not part of the change.
    tree.git(&["checkout", "-q", "main"]);
    tree.push(&[("b.yaml", &map("b", "2"))], "meanwhile");
    tree.git(&["checkout", "-q", "feature"]);
    let (json, error, code) = plan(&folder, &[]);
    assert_eq!((code, changed(&json)), (1, vec!["a".to_owned()]), "{error}");
    assert_eq!(json.str_at(&["from", "name"]), Some("merge base with main"), "{}", json.to_json());
    // The branch that this one follows comes before that.
    tree.git(&["remote", "add", "origin", "../shop.git"]);
    tree.git(&["push", "-q", "-u", "origin", "feature"]);
    fs::write(folder.join("a.yaml"), map("a", "3")).unwrap();
    tree.git(&["commit", "-q", "-am", "not pushed"]);
    let (json, error, code) = plan(&folder, &[]);
    assert_eq!(json.str_at(&["from", "name"]), Some("merge base with origin/feature"), "{error}");
    assert_eq!((code, changed(&json)), (1, vec!["a".to_owned()]));
    // A history of its own has nothing in common with any.
    tree.git(&["checkout", "-q", "--orphan", "alone"]);
    tree.git(&["commit", "-q", "-m", "alone"]);
    let (_, error, code) = plan(&folder, &[]);
    assert_eq!(code, 2);
    assert!(error.contains("have no common commit here") && error.contains("fetch-depth: 0"), "{error}");
}

#[test]
fn without_a_branch_to_compare_with_a_revision_is_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = Tree::new(scratch.path());
    tree.push(&[("a.yaml", &map("a", "1"))], "first");
    tree.git(&["branch", "-m", "main", "trunk"]);
    let (_, error, code) = plan(&scratch.path().join("tree"), &[]);
    assert_eq!(code, 2);
    assert!(error.contains("there is no branch to compare with") && error.contains("--from REVISION"), "{error}");
}

/// A GitSource of the namespace shop that may bring ConfigMaps of the folder deploy, except drafts.
const SOURCE: &str = "apiVersion: tidegate.dev/v1alpha1
kind: GitSource
metadata: {name: shop, namespace: team}
spec:
  url: https://git.example/shop
  path: deploy
  serviceAccountName: deployer
  targetNamespace: shop
  exclude: ['drafts/**']
  allow: {kinds: [ConfigMap], namespaces: [shop]}
";

#[test]
fn a_source_decides_what_is_read_where_it_goes_and_what_is_allowed() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = Tree::new(scratch.path());
    let folder = scratch.path().join("tree");
    let draft = map("draft", "1");
    tree.push(
        &[("deploy/a.yaml", &map("a", "1")), ("deploy/drafts/d.yaml", &draft), ("sources/shop.yaml", SOURCE)],
        "first",
    );
    tree.git(&["branch", "-f", "base"]);
    tree.push(&[("deploy/a.yaml", &map("a", "2")), ("deploy/drafts/d.yaml", &map("draft", "2"))], "second");
    let (json, error, code) = plan(&folder, &["--from", "base", "--source", "sources/shop.yaml"]);
    assert_eq!((code, changed(&json)), (1, vec!["a".to_owned()]), "{error}");
    let object = json.list_at(&["objects"]).iter().find(|object| object.str_at(&["name"]) == Some("a")).unwrap();
    assert_eq!(object.str_at(&["namespace"]), Some("shop"), "its target namespace");
    // By its name, among the manifests; the folder is not in its file's way then.
    let (json, error, code) = plan(&folder, &["--from", "base", "--source", "team/shop", "--path", ""]);
    assert_ne!(json, Value::Null, "{code} {error}");
    let (_, error, code) = plan(&folder, &["--from", "base", "--source", "other", "--path", ""]);
    assert_eq!(code, 2);
    assert!(error.contains("there is no GitSource other among the manifests"), "{error}");
    let (_, error, code) = plan(&folder, &["--from", "base", "--source", "deploy/a.yaml"]);
    assert_eq!(code, 2);
    assert!(error.contains("holds no GitSource"), "{error}");
    // What it may not bring refuses the commit, with the file.
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: v}\n";
    tree.push(&[("deploy/s.yaml", secret)], "third");
    let (json, _, code) = plan(&folder, &["--from", "base", "--source", "sources/shop.yaml"]);
    assert_eq!(code, 2);
    let problem = &json.list_at(&["problems"])[0];
    assert_eq!(problem.str_at(&["file"]), Some("deploy/s.yaml"), "{}", json.to_json());
}

fn web(image: &str) -> Value {
    value!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 4, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": image}]}},
            "strategy": {"canary": {"steps": [{"setWeight": 25}, {"pause": {}}, {"setWeight": 50}, {"pause": {}}]}},
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_decision_says_what_is_running_when_the_commit_comes() {
    let mut scene = Scene::open().await;
    let record = scene.path("record");
    scene.run(&["--record", record.to_str().unwrap(), "--metrics-port", "0"], &[]);
    scene.create("argoproj.io", "v1alpha1", "rollouts", web("web:1")).await;
    let phase = async |scene: &Scene, wanted: &str| {
        let seen = scene.get("argoproj.io", "v1alpha1", "rollouts", "web").await?;
        (seen.str_at(&["status", "phase"]) == Some(wanted)).then_some(())
    };
    scene.until("a first version", async || phase(&scene, "Healthy").await).await;
    let (_, code) = scene.types(&["set", "image", "web", "app=web:2"]);
    assert_eq!(code, 0);
    scene.until("a pause", async || phase(&scene, "Paused").await).await;
    scene.stop();
    let mut records: Vec<_> = fs::read_dir(&record).unwrap().map(|entry| entry.unwrap().path()).collect();
    records.sort_by_key(|file| fs::metadata(file).unwrap().modified().unwrap());
    let last = records.last().expect("decisions were recorded").to_str().unwrap().to_owned();
    for (folder, image) in [("old", "web:2"), ("new", "web:3")] {
        fs::create_dir_all(scene.path(folder)).unwrap();
        fs::write(scene.path(folder).join("web.yaml"), web(image).to_json()).unwrap();
    }
    let base = scene.folder.path().to_owned();
    let supersedes = |view: &[&str]| {
        let (json, error, code) = plan(&base, &[&["new", "--from-dir", "old"], view].concat());
        let step = json.list_at(&["rollouts"]).first().and_then(|rollout| rollout.int_at(&["supersedes", "step"]));
        if code == 2 { Err(error) } else { Ok(step) }
    };
    assert_eq!(supersedes(&[]), Ok(None), "git alone does not know what runs");
    assert_eq!(supersedes(&["--view", &last]), Ok(Some(2)));
    fs::write(scene.path("odd.json"), "{}").unwrap();
    let error = supersedes(&["--view", "odd.json"]).unwrap_err();
    assert!(error.contains("is not a recorded decision"), "{error}");
}
