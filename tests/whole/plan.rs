//! `tidegate plan`, from its command line: two revisions, folders, a cluster.

use std::process::Command;

use tidegate::kubernetes::value::Value;

use super::scene::{Scene, Tree};

fn map(name: &str, text: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: '{text}'}}\n")
}

fn web(image: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: web}}}}\n  \
         template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: app, image: '{image}'}}]}}\n  \
         strategy: {{canary: {{steps: [{{setWeight: 50}}, {{pause: {{}}}}]}}}}\n"
    )
}

/// Runs `tidegate plan` in a folder.
fn plan(folder: &std::path::Path, arguments: &[&str]) -> (String, String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("plan")
        .args(arguments)
        .current_dir(folder)
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

#[test]
fn two_revisions_are_compared_without_a_cluster() {
    let scratch = tempfile::tempdir().unwrap();
    let tree = Tree::new(scratch.path());
    let folder = scratch.path().join("tree");
    tree.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/a.yaml", &map("a", "x"))], "first");
    tree.git(&["branch", "-f", "base"]);
    tree.push(&[("deploy/web.yaml", &web("web:2"))], "second");
    let (text, _, code) = plan(&folder, &["--from", "base", "--path", "deploy", "-o", "json"]);
    assert_eq!(code, 1, "{text}");
    let json = Value::from_json(text.as_bytes()).unwrap();
    assert_eq!(json.int_at(&["version"]), Some(1));
    assert_eq!(json.int_at(&["counts", "change"]), Some(1));
    assert_eq!(json.int_at(&["counts", "unchanged"]), Some(1));
    assert_eq!(json.str_at(&["hash"]).map(str::len), Some(64));
    assert_eq!(json.list_at(&["rollouts"])[0].str_at(&["starts"]), Some("new-rollout"));
    let (again, _, _) = plan(&folder, &["--from", "base", "--path", "deploy", "-o", "json"]);
    assert_eq!(text, again, "the same commits, the same bytes");
    assert_eq!(plan(&folder, &["--from", "base", "--exit-zero"]).2, 0);
    assert_eq!(plan(&folder, &["--from", "HEAD"]).2, 0, "no change");
    let (_, error, code) = plan(&folder, &["--from", "nothing-like-it"]);
    assert_eq!(code, 2);
    assert!(error.contains("nothing-like-it is no revision") && error.contains("hint"), "{error}");
    let (_, error, code) = plan(&folder, &["--from", "base", "--path", "elsewhere"]);
    assert_eq!(code, 2, "{error}");
    // What is on disk and not committed, against HEAD; and into a file, with a picture beside it.
    std::fs::write(folder.join("deploy/a.yaml"), map("a", "y")).unwrap();
    let (text, error, code) = plan(&folder, &["deploy"]);
    assert_eq!(code, 1, "{text}{error}");
    assert!(text.contains("change ConfigMap default/a"), "{text}");
    assert_eq!(plan(&folder, &["deploy", "--from-dir", "deploy"]).2, 0);
    let out = ["--from", "base", "-o", "markdown", "--out", "plan.md", "--assets", "pictures"];
    assert_eq!(plan(&folder, &out).2, 1);
    let markdown = std::fs::read_to_string(folder.join("plan.md")).unwrap();
    assert!(markdown.contains("![pods and weight over time](<pictures/default.web.svg>)"), "{markdown}");
    assert!(std::fs::read_to_string(folder.join("pictures/default.web.svg")).unwrap().starts_with("<svg"));
    std::fs::write(folder.join("deploy/a.yaml"), "kind: [\n").unwrap();
    let (text, _, code) = plan(&folder, &["deploy"]);
    assert_eq!(code, 2);
    assert!(text.contains("Nothing would be applied\n  deploy/a.yaml:1"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_shows_what_is_not_part_of_the_change_and_changes_nothing() {
    let mut scene = Scene::open().await;
    let tree = Tree::new(scene.folder.path());
    tree.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/a.yaml", &map("a", "x"))], "first");
    tree.git(&["branch", "-f", "base"]);
    tree.push(&[("deploy/web.yaml", &web("web:2")), ("deploy/b.yaml", &map("b", "x"))], "second");
    let yaml = |text: &str| tidegate::manifest::read("a.yaml", text.as_bytes()).objects[0].value.clone();
    scene.create("", "v1", "configmaps", yaml(&map("a", "drifted"))).await;
    let before = scene.get("", "v1", "configmaps", "a").await.unwrap();
    let here = scene.folder.path().join("tree");
    let (new, old) = (here.join("deploy"), scene.folder.path().join("old"));
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join("web.yaml"), web("web:1")).unwrap();
    std::fs::write(old.join("a.yaml"), map("a", "x")).unwrap();
    let arguments = ["plan", new.to_str().unwrap(), "--from-dir", old.to_str().unwrap(), "--live", "-o", "json"];
    let (text, code) = scene.types(&arguments);
    assert_eq!(code, 1, "{text}");
    let json = Value::from_json(text.as_bytes()).unwrap();
    let objects = json.list_at(&["live", "objects"]);
    let of = |name: &str| objects.iter().find(|object| object.str_at(&["name"]) == Some(name)).unwrap();
    assert!(of("a").str_at(&["drift"]).unwrap().contains("+  k: drifted"), "{text}");
    assert_eq!(of("a").str_at(&["change"]), Some(""), "the change does not touch it");
    assert!(of("b").str_at(&["change"]).unwrap().contains("+  k: x"), "{text}");
    assert_eq!(scene.get("", "v1", "configmaps", "a").await.unwrap(), before);
    assert!(scene.get("", "v1", "configmaps", "b").await.is_none(), "a dry run creates nothing");
}
