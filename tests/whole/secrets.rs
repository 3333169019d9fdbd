//! SR15: a secret in every place where one can be, and not a byte of it in anything that is written.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use tidegate::{engine::key::Resource, value};

use super::scene::{Scene, Tree};

/// What all secrets of the story end with.
const CANARY: &str = "Kq7zCanary9xW";

fn canary(place: &str) -> String {
    format!("{place}-{CANARY}")
}

/// How it can look: as it is, in base64 wherever it begins, in hexadecimal.
fn looks() -> Vec<String> {
    let mut looks = vec![CANARY.to_owned(), CANARY.bytes().map(|byte| format!("{byte:02x}")).collect()];
    for shift in 0..3 {
        let text = STANDARD.encode(format!("{}{CANARY}", "x".repeat(shift)));
        // The first and last letters depend on what stands around.
        let first = if shift == 0 { 0 } else { 4 };
        looks.push(text.trim_end_matches('=')[first..text.trim_end_matches('=').len() - 1].to_owned());
    }
    looks
}

/// Nothing of it may be in here.
#[track_caller]
fn clean(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for look in looks() {
        if let Some(at) = text.find(&look) {
            let (from, to) =
                (text.floor_char_boundary(at.saturating_sub(300)), text.ceil_char_boundary((at + 100).min(text.len())));
            panic!("{what} shows a secret: …{}…", &text[from..to]);
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// One request over plain HTTP, and all that comes back.
fn ask(port: u16, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

fn page(port: u16, path: &str) -> Vec<u8> {
    ask(port, &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
}

fn web(image: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  replicas: 1\n  progressDeadlineSeconds: 3\n  \
         progressDeadlineAbort: true\n  selector: {{matchLabels: {{app: web}}}}\n  strategy: {{canary: {{steps: [{{setWeight: 50}}]}}}}\n  \
         template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      containers:\n      - name: main\n        image: '{image}'\n        \
         env: [{{name: P, valueFrom: {{secretKeyRef: {{name: db, key: password}}}}}}]\n"
    )
}

fn secret(name: &str, text: &str) -> String {
    let encoded = STANDARD.encode(text);
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, annotations: {{kubectl.kubernetes.io/last-applied-configuration: '{text}'}}}}\n\
         stringData: {{password: '{text}'}}\ndata: {{other: {encoded}}}\n"
    )
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Creates the sources of the story, each with a secret of its own kind, and every one of them fails.
async fn sources(scene: &Scene, closed: u16) {
    let keys = [
        ("basic", vec![("username", "ada".to_owned()), ("password", canary("basic"))]),
        ("bearer", vec![("bearerToken", canary("bearer"))]),
        ("ssh", vec![("identity", canary("ssh")), ("known_hosts", format!("host {}", canary("hosts")))]),
        (
            "app",
            vec![
                ("githubAppID", "1".to_owned()),
                ("githubAppInstallationID", "2".to_owned()),
                ("githubAppPrivateKey", canary("app")),
            ],
        ),
        ("authority", vec![("ca.crt", canary("authority"))]),
        ("signers", vec![("allowed_signers", canary("signers"))]),
        ("hook", vec![("token", canary("hook"))]),
        ("report", vec![("token", canary("report"))]),
    ];
    for (name, data) in keys {
        let mut body = value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        body.set_at(&["metadata", "annotations", "tidegate.dev/hosts"], format!("127.0.0.1:{closed}"));
        for (key, text) in data {
            body.set_at(&["stringData", key], text);
        }
        scene.create("", "v1", "secrets", body).await;
        let scheme = if name == "ssh" { "ssh://git@" } else { "https://" };
        let url = format!("{scheme}127.0.0.1:{closed}/team/shop.git");
        let mut source = value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": name},
            "spec": {"url": url, "serviceAccountName": "deployer", "interval": "1s",
                "webhook": {"secretRef": {"name": "hook"}},
                "report": {"host": "gitea", "secretRef": {"name": "report"}}}});
        if name == "signers" {
            source.set_at(&["spec", "verify"], value!({"secretRef": {"name": "signers"}}));
        } else {
            source.set_at(&["spec", "secretRef"], value!({"name": name}));
        }
        scene.create("tidegate.dev", "v1alpha1", "gitsources", source).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sr15_no_output_shows_a_byte_of_a_secret() {
    let mut scene = Scene::open().await;
    let tree = Tree::new(scene.folder.path());
    let (pages, hooks, metrics, closed) = (free_port(), free_port(), free_port(), free_port());
    sources(&scene, closed).await;
    tree.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/db.yaml", &secret("db", &canary("git")))], "first");
    let record = scene.path("record");
    scene.run(
        &[
            "--metrics-port",
            &metrics.to_string(),
            "--repo",
            "shop.git",
            "--path",
            "deploy",
            "--interval",
            "1s",
            "--record",
            record.to_str().unwrap(),
            "--pages",
            &format!("127.0.0.1:{pages}"),
            "--pages-url",
            "https://tidegate.example",
            "--webhooks",
            &format!("127.0.0.1:{hooks}"),
        ],
        &[
            ("HTTPS_PROXY", &format!("http://ada:{}@127.0.0.1:{closed}", canary("proxy"))),
            ("SOME_VARIABLE", &canary("environment")),
        ],
    );
    let told = async |scene: &Scene, commit: &str, words: &str| {
        let (path, commit) = (scene.path("shop.git"), commit.to_owned());
        scene
            .until(&format!("{words:?} on {commit}"), async || {
                let store = tidegate::io::git::Store::local(&path).unwrap();
                store.notes(&commit).filter(|note| note.contains(words))
            })
            .await
    };
    let first = tree.git(&["rev-parse", "HEAD"]);
    let mut notes = vec![told(&scene, &first, ": success").await];
    // A version that fails, a Secret that cannot be read, and one that the server refuses.
    let bad = tree.push(&[("deploy/web.yaml", &web("web:crash"))], "second");
    notes.push(told(&scene, &bad, ": failure").await);
    let unreadable = [
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: x}}\nstringData: {{a: '{0}', a: '{0}'}}\n",
            canary("twice")
        ),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: x}}\nstringData: {{a: \"{}\n", canary("open")),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: x}}\nstringData:\n  a: ['{}']\n", canary("list")),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: x}}\ndata: {{a: '!{}'}}\n", canary("encoding")),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: x}}\nstringData:\n\ta: {}\n", canary("tab")),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: x}}\nstringDatta: {{a: {}}}\n", canary("unknown")),
    ];
    for (number, text) in unreadable.iter().enumerate() {
        let commit = tree.push(&[("deploy/x.yaml", text)], &format!("unreadable {number}"));
        let ended = scene
            .until(&format!("a word for {text}"), async || {
                let store = tidegate::io::git::Store::local(&scene.path("shop.git")).unwrap();
                store.notes(&commit).filter(|note| !note.contains(": pending"))
            })
            .await;
        notes.push(ended);
        for arguments in [
            vec!["lint", "tree/deploy"],
            vec!["lint", "tree/deploy", "-o", "json"],
            vec!["lint", "tree/deploy", "-o", "sarif"],
            vec!["lint", "tree/deploy", "-o", "github"],
            vec!["diff", "tree/deploy"],
            vec!["diff", "tree/deploy", "-o", "json"],
            vec!["plan", "tree/deploy", "--live"],
            vec!["plan", "tree/deploy", "--live", "-o", "markdown"],
            vec!["plan", "tree/deploy", "--live", "-o", "json"],
            vec!["plan", "tree/deploy", "--live", "-o", "html"],
        ] {
            scene.types(&arguments);
        }
    }
    for url in ["http://ada:{}@host/x", "ssh://ada:{}@host/x", "https://ada:{}@host/x", "https://{}@"] {
        let source = "apiVersion: tidegate.dev/v1alpha1\nkind: GitSource\nmetadata: {name: s}\nspec:\n  serviceAccountName: d\n  url: ";
        fs::write(scene.path("source.yaml"), format!("{source}'{}'\n", url.replace("{}", &canary("address")))).unwrap();
        for output in ["text", "json", "sarif", "github"] {
            let (_, code) = scene.types(&["lint", "source.yaml", "-o", output]);
            assert_eq!(code, 1, "{url}");
        }
    }
    tree.push(&[("deploy/x.yaml", ""), ("deploy/db.yaml", &secret("db", &canary("changed")))], "last");
    let _ = fs::remove_file(scene.path("tree/deploy/x.yaml"));
    let view = files(&record).into_iter().find(|file| file.to_string_lossy().contains("_web_")).unwrap();
    let view = view.to_str().unwrap().to_owned();
    let pull_request = format!("https://ada:{}@127.0.0.1:{closed}/team/shop/pulls/1", canary("pull"));
    for arguments in [
        vec!["diff", "tree/deploy"],
        vec!["diff", "tree/deploy", "-o", "json"],
        vec!["plan", "tree/deploy", "--live"],
        vec!["plan", "tree/deploy", "--live", "-o", "json"],
        vec!["plan", "tree/deploy", "--live", "--query"],
        vec!["plan", "tree/deploy", "--query", "-o", "json"],
        vec!["plan", "tree/deploy", "--view", &view],
        vec!["plan", "tree/deploy", "--view", &view, "-o", "html"],
        vec!["plan", "tree/deploy", "--comment", "gitea", "--pull-request", &pull_request],
        vec!["action", "--path", "deploy", "--comment", "never"],
        vec!["sources"],
        vec!["sources", "-o", "json"],
        vec!["sources", "-o", "yaml"],
        vec!["get", "rollout", "web"],
        vec!["history", "web"],
        vec!["sync", "basic"],
        vec!["list", "rollouts"],
        vec!["--token", &canary("flag"), "--server", &format!("https://127.0.0.1:{closed}"), "list", "rollouts"],
        vec!["run", "--repo", &format!("https://ada:{}@127.0.0.1:{closed}/x.git", canary("url"))],
    ] {
        // The last one would run for ever if it were taken.
        scene.types(&arguments);
    }
    let mut answers = vec![page(pages, "/"), page(metrics, "/metrics")];
    let listed = scene.api.get("/apis/tidegate.dev/v1alpha1/gitsources").await.unwrap();
    for source in listed.list_at(&["items"]) {
        let name = source.str_at(&["metadata", "name"]).unwrap();
        answers.push(page(pages, &format!("/sources/default/{name}")));
        let body = format!(r#"{{"secret":"{}"}}"#, canary("body"));
        answers.push(ask(
            hooks,
            &format!(
                "POST /hook/default/{name} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-gitlab-token: {}\r\ncontent-length: {}\r\n\r\n{body}",
                canary("guess"),
                body.len()
            ),
        ));
    }
    assert!(answers.iter().all(|answer| !answer.is_empty()));
    scene.stop();

    for (number, answer) in answers.iter().enumerate() {
        clean(&format!("answer {number}"), answer);
    }
    notes.iter().for_each(|note| clean("a note", note.as_bytes()));
    for (typed, printed) in &scene.printed {
        // What was typed is known to who typed it.
        clean(&format!("`tidegate {typed}`"), printed);
    }
    let recorded = files(&record);
    assert!(!recorded.is_empty());
    // SR16: nobody else on the machine reads them.
    for file in recorded.iter().chain([&record]) {
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(file).unwrap().permissions());
        assert_eq!(mode & 0o077, 0, "{}", file.display());
    }
    for file in recorded.iter().chain(&[scene.path("daemon.out"), scene.path("daemon.err")]) {
        clean(&file.display().to_string(), &fs::read(file).unwrap());
    }
    assert!(scene.log().contains("TRACE"), "everything was said");
    let kinds = [
        ("", "v1", "configmaps"),
        ("", "v1", "events"),
        ("", "v1", "pods"),
        ("apps", "v1", "replicasets"),
        ("argoproj.io", "v1alpha1", "rollouts"),
        ("coordination.k8s.io", "v1", "leases"),
        ("tidegate.dev", "v1alpha1", "gitsources"),
    ];
    for (group, version, plural) in kinds {
        let list = scene.api.get(&Resource::new(group, version, plural).path(None).unwrap()).await.unwrap();
        clean(plural, list.to_json().as_bytes());
    }
    let stored = scene.get("", "v1", "secrets", "db").await.unwrap().to_json();
    assert!(
        stored.contains(&STANDARD.encode(canary("changed"))) || stored.contains(&STANDARD.encode(canary("git"))),
        "it was there all the time"
    );
}
