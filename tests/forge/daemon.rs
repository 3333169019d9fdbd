//! The whole way on a real host: pushed with git, heard by webhook, fetched over https, rolled out by the daemon, told in
//! Gitea.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use http::Method;
use tidegate::{engine::key::Resource, io::api::Api, kubernetes::value::Value, value};

use crate::{gitea::Gitea, told};

/// The program, on a cluster of its own.
struct Daemon {
    folder: tempfile::TempDir,
    processes: Vec<Child>,
    api: Api,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            drop(process.kill());
            drop(process.wait());
        }
    }
}

impl Daemon {
    async fn start(webhooks: u16) -> Daemon {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let program = |name: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
            command.current_dir(folder.path()).arg(name).env("KUBECONFIG", &kubeconfig);
            command.env("XDG_CACHE_HOME", folder.path().join("cache")).env("TIDEGATE_LOG", "info");
            command
        };
        let mut cluster = program("cluster");
        cluster.args(["--crds", "-o", "json", "--kubeconfig"]).arg(&kubeconfig).stdout(Stdio::piped());
        let mut cluster = cluster.stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(cluster.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let config = kube::config::Kubeconfig::read_from(&kubeconfig).unwrap();
        let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
        let api = Api::new(kube::Client::try_from(config).unwrap());
        let mut run = program("run");
        run.args(["--metrics-port", "0", "--healthz-port", "0", "--pages-url", "https://tidegate.example"]);
        run.arg("--webhooks").arg(format!("127.0.0.1:{webhooks}"));
        let run = run.stderr(File::create(folder.path().join("log")).unwrap()).spawn().unwrap();
        Daemon { processes: vec![cluster, run], api, folder }
    }

    async fn create(&self, group: &str, version: &str, plural: &str, body: Value) {
        self.api.create(&Resource::new(group, version, plural), "default", &body).await.unwrap();
    }

    async fn secret(&self, hosts: &str, name: &str, data: &[(&str, &str)]) {
        let mut body = value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        body.set_at(&["metadata", "annotations", "tidegate.dev/hosts"], hosts);
        for (key, text) in data {
            body.set_at(&["stringData", key], *text);
        }
        self.create("", "v1", "secrets", body).await;
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

fn web(image: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  replicas: 2\n  progressDeadlineSeconds: 5\n  \
         progressDeadlineAbort: true\n  selector: {{matchLabels: {{app: web}}}}\n  strategy:\n    canary:\n      \
         steps: [{{setWeight: 50}}, {{pause: {{duration: 2s}}}}]\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
         spec: {{containers: [{{name: main, image: '{image}'}}]}}\n"
    )
}

const CONTEXT: &str = "tidegate/default/web";

/// The state of a commit once the host shows one of these.
async fn ended(gitea: &Gitea, daemon: &Daemon, token: &str, sha: &str, words: &[&str]) -> (String, String) {
    let begun = Instant::now();
    loop {
        let all = told(gitea, token, sha).await;
        let found = all.iter().find(|(context, state, _)| context == CONTEXT && words.contains(&state.as_str()));
        if let Some((_, state, description)) = found {
            return (state.clone(), description.clone());
        }
        assert!(begun.elapsed() < Duration::from_secs(90), "{words:?} never came: {all:?}\n{}", daemon.log());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn commit(gitea: &Gitea, tree: &Path, url: &str, image: &str) -> String {
    let git = |arguments: &[&str]| gitea.git(tree, arguments);
    fs::create_dir_all(tree.join("deploy")).unwrap();
    fs::write(tree.join("deploy/web.yaml"), web(image)).unwrap();
    git(&["add", "."]);
    git(&["commit", "-q", "-m", image]);
    git(&["push", "-q", url, "main"]);
    git(&["rev-parse", "HEAD"])
}

#[tokio::test(flavor = "multi_thread")]
async fn from_push_to_commit_status_through_the_daemon() {
    let gitea = Gitea::start().await;
    let all = gitea.user("ada", &[("all", "all"), ("write", "write:repository"), ("read", "read:repository")]);
    let [all, writer, reader] = all.try_into().unwrap();
    let repository = value!({"name": "web", "default_branch": "main", "private": true});
    gitea.api(Method::POST, "/user/repos", &all, Some(&repository)).await;
    let door = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let daemon = Daemon::start(door).await;
    let hook = format!("http://127.0.0.1:{door}/hook/default/web");
    let config = value!({"url": hook, "content_type": "json", "secret": "hook-secret"});
    let hook = value!({"type": "gitea", "config": config, "events": ["push"], "active": true});
    gitea.api(Method::POST, "/repos/ada/web/hooks", &all, Some(&hook)).await;

    let (authority, hosts) = (gitea.issued.authority.clone(), gitea.web());
    daemon.secret(&hosts, "fetch", &[("username", "ada"), ("password", &reader), ("ca.crt", &authority)]).await;
    daemon.secret(&hosts, "report", &[("token", &writer), ("ca.crt", &authority)]).await;
    daemon.secret(&hosts, "hook", &[("token", "hook-secret")]).await;
    let url = format!("{}/ada/web.git", gitea.web());
    let tree = tempfile::tempdir().unwrap();
    gitea.git(tree.path(), &["init", "-q", "-b", "main"]);
    let pushed = url.replace("https://", &format!("https://ada:{all}@"));
    let first = commit(&gitea, tree.path(), &pushed, "web:1");
    // Nothing but the webhook says that there is something new.
    let source = value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": "web"},
        "spec": {"url": url, "path": "deploy", "interval": "1h", "serviceAccountName": "deployer",
            "secretRef": {"name": "fetch"}, "webhook": {"secretRef": {"name": "hook"}},
            "report": {"host": "gitea", "secretRef": {"name": "report"}}}});
    daemon.create("tidegate.dev", "v1alpha1", "gitsources", source).await;
    let success = ("success".to_owned(), "rolled out: 1 object".to_owned());
    assert_eq!(ended(&gitea, &daemon, &all, &first, &["success"]).await, success);

    // A version that never becomes ready: the deadline passes, the Rollout is aborted, the commit has failed.
    let bad = commit(&gitea, tree.path(), &pushed, "web:never-ready");
    let (_, words) = ended(&gitea, &daemon, &all, &bad, &["failure"]).await;
    assert!(words.contains("web: held since commit ") && words.contains(": aborted: "), "{words}");

    // One that is overtaken, and the one that overtakes it.
    let slow = commit(&gitea, tree.path(), &pushed, "web:slow-3");
    ended(&gitea, &daemon, &all, &slow, &["pending"]).await;
    let last = commit(&gitea, tree.path(), &pushed, "web:3");
    let overtaken = ("warning".to_owned(), format!("by commit {}", &last[..8]));
    assert_eq!(ended(&gitea, &daemon, &all, &slow, &["warning"]).await, overtaken);
    assert_eq!(ended(&gitea, &daemon, &all, &last, &["success"]).await, success);
    assert_eq!(ended(&gitea, &daemon, &all, &bad, &["failure", "warning"]).await.0, "failure", "its last word stays");

    // Every status leads to the page of the source, and nothing that is secret was said.
    let answer = gitea.api(Method::GET, &format!("/repos/ada/web/commits/{last}/status"), &all, None).await;
    let target = answer.list_at(&["statuses"])[0].str_at(&["target_url"]).unwrap().to_owned();
    assert_eq!(target, "https://tidegate.example/sources/default/web");
    for secret in [&all, &writer, &reader, "hook-secret"] {
        assert!(!daemon.log().contains(secret));
    }
}
