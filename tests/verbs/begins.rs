//! How the daemon begins, and what it says of a cluster that does not answer as it should.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use super::scene::Scene;

/// Longer than it takes a daemon to say something.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_daemon_begins_with_one_line() {
    let scene = Scene::open("");
    let line = scene.says(SOON).unwrap();
    let (cluster, rest) = line.split_once("; ").unwrap();
    assert!(cluster.starts_with(concat!("tidegate ", env!("CARGO_PKG_VERSION"), " on https://127.0.0.1:")), "{line}");
    assert!(cluster.ends_with(')') && cluster.contains("/ (v1."), "{line}");
    assert_eq!(rest, "namespaces: all; no leader election; sources: 0 GitSources");
    assert_eq!(scene.says(Duration::from_secs(2)), None, "and with nothing else");
}

#[test]
fn a_daemon_names_its_lease_and_its_repository_and_syncs_into_the_namespace_of_the_context() {
    let folder = tempfile::tempdir().unwrap();
    let repo = folder.path().join("shop");
    let repository = git2::Repository::init(&repo).unwrap();
    let mut tree = repository.treebuilder(None).unwrap();
    let manifest = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n";
    tree.insert("settings.yaml", repository.blob(manifest).unwrap(), 0o100_644).unwrap();
    let tree = repository.find_tree(tree.write().unwrap()).unwrap();
    let who = git2::Signature::now("Ada", "ada@example.org").unwrap();
    repository.commit(Some("HEAD"), &who, &who, "Deploy", &tree, &[]).unwrap();

    let scene = Scene::open("");
    let kubeconfig = scene.folder().join("kubeconfig");
    let text = fs::read_to_string(&kubeconfig).unwrap();
    let chosen = text.replace("    user: tidegate\n", "    user: tidegate\n    namespace: kube-system\n");
    assert_ne!(text, chosen, "{text}");
    fs::write(&kubeconfig, chosen).unwrap();
    let line = format!(
        "run --metrics-port 0 --healthz-port 0 --leader-elect --repo {} --cache {}",
        repo.display(),
        folder.path().join("cache").display()
    );
    let mut daemon = scene.command("tidegate", &line).stderr(Stdio::piped()).spawn().unwrap();
    let read = || scene.output("tidegate", &format!("diff {} -o json", repo.join("settings.yaml").display()));
    fs::write(repo.join("settings.yaml"), manifest).unwrap();
    while read().1 != Some(0) {
        assert!(daemon.try_wait().unwrap().is_none());
    }
    daemon.kill().unwrap();
    let mut said = String::new();
    daemon.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    daemon.wait().unwrap();
    let expected = "; namespaces: all; works while it holds the Lease kube-system/argo-rollouts-controller-lock; \
                    sources: 0 GitSources, and the repository shop into the namespace kube-system\n";
    assert!(said.contains(expected), "{said}");
    let (list, _) = scene.output("tidegate", &format!("diff {} -n default", repo.join("settings.yaml").display()));
    assert!(list.contains("1 to create"), "it went to default: {list}");
}

#[test]
fn without_the_definitions_a_daemon_says_once_what_to_install() {
    let scene = Scene::with("", &["--controllers", "kubelet"], &[]);
    let note = scene.says(SOON).unwrap();
    assert_eq!(
        note,
        "note: the cluster does not know Rollouts yet; `tidegate crds | kubectl apply -f -` installs the definitions"
    );
    let line = scene.says(SOON).unwrap();
    assert!(line.ends_with("; sources: the definition of GitSource is not installed"), "{line}");
    assert_eq!(scene.says(Duration::from_secs(5)), None, "and nothing for each kind and each try");
}

/// A server of which the first so many answers are those of a cluster; then it says something else, or nothing.
fn server(answers: usize, then: Option<&'static str>) -> String {
    static VERSION: &str = r#"{"gitVersion": "v1.35.0"}"#;
    static GROUP: &str = r#"{"resources": [{"name": "rollouts"}]}"#;
    static LIST: &str = r#"{"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}"#;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let served = AtomicUsize::new(0);
        let answer = |mut stream: TcpStream| -> Option<()> {
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                (stream.read(&mut byte).ok()? > 0).then_some(())?;
                asked.extend(byte);
            }
            let asked = String::from_utf8_lossy(&asked).into_owned();
            let body = match asked.split(' ').nth(1)? {
                "/version" => VERSION,
                "/apis/argoproj.io/v1alpha1" => GROUP,
                // A stream that ends at once.
                path if path.contains("watch=true") => "",
                _ => LIST,
            };
            let (status, body) = match (served.fetch_add(1, Ordering::Relaxed) < answers, then) {
                (true, _) => ("200 OK", body),
                (false, Some(status)) => {
                    (status, r#"{"kind": "Status", "status": "Failure", "message": "Unauthorized", "code": 401}"#)
                }
                // Held open, without an answer.
                (false, None) => {
                    std::mem::forget(stream);
                    return None;
                }
            };
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
            .ok()
        };
        for stream in listener.incoming().flatten() {
            let _ = answer(stream);
        }
    });
    address
}

fn output(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(line.split(' '))
        .env("KUBECONFIG", "/dev/null")
        .env_remove("TIDEGATE_LOG")
        .output()
        .unwrap()
}

#[track_caller]
fn check(line: &str, code: i32, said: &str) {
    let output = output(line);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), text.as_str()), (Some(code), said), "{line}");
}

/// A kubeconfig that leads to this server.
fn kubeconfig(folder: &std::path::Path, server: &str) -> String {
    let file = folder.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\n"
    );
    fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn a_daemon_does_not_begin_on_a_cluster_that_does_not_answer_or_does_not_know_it() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = kubeconfig(folder.path(), &server(0, Some("401 Unauthorized")));
    let run = |kubeconfig: &str| format!("run --metrics-port 0 --healthz-port 0 --kubeconfig {kubeconfig}");
    check(
        &run(&unknown),
        2,
        "error: GET /version: Unauthorized (401)\nhint: the cluster does not know you: log in, or give --token\n",
    );
    let nowhere = kubeconfig(folder.path(), "http://127.0.0.1:1");
    check(
        &run(&nowhere),
        2,
        "error: cannot reach the cluster: Connection refused (os error 111)\n\
         hint: see that the cluster is up, and that the kubeconfig and its context lead to it\n",
    );
}

#[test]
fn credentials_that_expire_are_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let file = kubeconfig(folder.path(), &server(12, Some("401 Unauthorized")));
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["run", "--metrics-port", "0", "--healthz-port", "0", "--kubeconfig", &file])
        .env_remove("TIDEGATE_LOG")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_secs(6));
    daemon.kill().unwrap();
    let mut said = String::new();
    daemon.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    daemon.wait().unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        lines[1].ends_with(
            "the cluster does not accept the credentials (401); trying again: renew the token or the certificate"
        ),
        "{said}"
    );
}

#[test]
fn a_request_takes_no_longer_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let file = kubeconfig(folder.path(), &server(0, None));
    for timeout in ["1", "1s", "1000ms"] {
        check(
            &format!("get rollout web --kubeconfig {file} --request-timeout {timeout}"),
            1,
            "error: cannot reach the cluster: no answer within 1s\n\
             hint: see that the cluster is up, and that the kubeconfig and its context lead to it\n",
        );
    }
}

#[test]
fn the_plugins_flag_for_requests_shows_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = kubeconfig(folder.path(), &server(usize::MAX, None));
    let said = |flags: &str| {
        let output = output(&format!("list rollouts --kubeconfig {file}{flags}"));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(said(""), "No resources found.\n");
    let shown = said(" -v 6");
    assert!(shown.contains("/apis/argoproj.io/v1alpha1/namespaces/default/rollouts"), "{shown}");
    assert!(!shown.contains("Bearer"), "{shown}");
}
