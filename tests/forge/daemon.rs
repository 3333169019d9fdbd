//! The whole way on a real host: pushed with git, heard by webhook, fetched over https, rolled out by the daemon, told in
//! Gitea.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
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

/// A canary that reads the ConfigMap `settings`.
fn web(name: &str, image: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: {name}}}\nspec:\n  replicas: 2\n  progressDeadlineSeconds: 12\n  \
         progressDeadlineAbort: true\n  selector: {{matchLabels: {{app: web}}}}\n  strategy:\n    canary:\n      \
         steps: [{{setWeight: 50}}, {{pause: {{duration: 2s}}}}]\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
         spec: {{containers: [{{name: main, image: '{image}', envFrom: [{{configMapRef: {{name: settings, optional: true}}}}]}}]}}\n"
    )
}

const CONTEXT: &str = "tidegate/default/web";

/// A repository on the host, and a GitSource that follows it.
struct Stage {
    gitea: Gitea,
    daemon: Daemon,
    /// The tokens of the person who pushes: for everything, to report with, to fetch with.
    tokens: [String; 3],
    tree: tempfile::TempDir,
    /// Where the person pushes to.
    pushed: String,
}

impl Stage {
    /// A first commit with these files, and everything that makes the daemon hear of more. Nothing but the webhook says that there
    /// is something new.
    async fn open(files: &[(&str, &str)]) -> (Stage, String) {
        let gitea = Gitea::start().await;
        let tokens = gitea.user("ada", &[("all", "all"), ("write", "write:repository"), ("read", "read:repository")]);
        let tokens: [String; 3] = tokens.try_into().unwrap();
        let [all, writer, reader] = &tokens;
        let repository = value!({"name": "web", "default_branch": "main", "private": true});
        gitea.api(Method::POST, "/user/repos", all, Some(&repository)).await;
        let door = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let daemon = Daemon::start(door).await;
        let hook = format!("http://127.0.0.1:{door}/hook/default/web");
        let config = value!({"url": hook, "content_type": "json", "secret": "hook-secret"});
        let hook = value!({"type": "gitea", "config": config, "events": ["push"], "active": true});
        gitea.api(Method::POST, "/repos/ada/web/hooks", all, Some(&hook)).await;
        let (authority, hosts) = (gitea.issued.authority.clone(), gitea.web());
        daemon.secret(&hosts, "fetch", &[("username", "ada"), ("password", reader), ("ca.crt", &authority)]).await;
        daemon.secret(&hosts, "report", &[("token", writer), ("ca.crt", &authority)]).await;
        daemon.secret(&hosts, "hook", &[("token", "hook-secret")]).await;
        let url = format!("{}/ada/web.git", gitea.web());
        let tree = tempfile::tempdir().unwrap();
        gitea.git(tree.path(), &["init", "-q", "-b", "main"]);
        let pushed = url.replace("https://", &format!("https://ada:{all}@"));
        let source = value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": "web"},
            "spec": {"url": url, "path": "deploy", "interval": "1h", "serviceAccountName": "deployer",
                "secretRef": {"name": "fetch"}, "webhook": {"secretRef": {"name": "hook"}},
                "report": {"host": "gitea", "secretRef": {"name": "report"}}}});
        let stage = Stage { gitea, daemon, tokens, tree, pushed };
        let first = stage.push("first", files);
        stage.daemon.create("tidegate.dev", "v1alpha1", "gitsources", source).await;
        (stage, first)
    }

    /// Commits these files, an empty text removes one, and pushes them.
    fn push(&self, message: &str, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            let file = self.tree.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            if text.is_empty() { fs::remove_file(file).unwrap() } else { fs::write(file, text).unwrap() }
        }
        let git = |arguments: &[&str]| self.gitea.git(self.tree.path(), arguments);
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", message]);
        git(&["push", "-q", &self.pushed, "main"]);
        git(&["rev-parse", "HEAD"])
    }

    fn image(&self, image: &str) -> String {
        self.push(image, &[("deploy/web.yaml", &web("web", image))])
    }

    /// What the host shows of a commit once that is as wanted.
    async fn shows(&self, sha: &str, what: &str, wanted: impl Fn(&str, &str) -> bool) -> (String, String) {
        let begun = Instant::now();
        loop {
            let all = told(&self.gitea, &self.tokens[0], sha).await;
            let found = all.iter().find(|(context, state, words)| context == CONTEXT && wanted(state, words));
            if let Some((_, state, description)) = found {
                return (state.clone(), description.clone());
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{what} never came: {all:?}\n{}", self.daemon.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What the host shows of a commit once it is in one of these states.
    async fn ended(&self, sha: &str, states: &[&str]) -> (String, String) {
        self.shows(sha, &states.join(" or "), |state, _| states.contains(&state)).await
    }

    /// The objects at a path of the API.
    async fn list(&self, path: &str) -> Vec<Value> {
        self.daemon.api.get(path).await.unwrap().list_at(&["items"]).to_vec()
    }

    /// Everything that the host was told of a commit.
    async fn history(&self, sha: &str) -> Vec<String> {
        let path = format!("/repos/ada/web/commits/{sha}/statuses?limit=50");
        let answer = self.gitea.api(Method::GET, &path, &self.tokens[0], None).await;
        let line = |status: &Value| {
            let text = |key: &str| status.str_at(&[key]).unwrap_or_default().to_owned();
            format!("{}: {}", text("status"), text("description"))
        };
        answer.as_list().unwrap_or_default().iter().map(line).collect()
    }
}

fn shown(state: &str, words: impl Into<String>) -> (String, String) {
    (state.to_owned(), words.into())
}

/// A ConfigMap.
fn map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: x}}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn from_push_to_commit_status_through_the_daemon() {
    let (stage, first) = Stage::open(&[("deploy/web.yaml", &web("web", "web:1"))]).await;
    let success = shown("success", "rolled out: 1 object");
    assert_eq!(stage.ended(&first, &["success"]).await, success);

    // A version that never becomes ready: the deadline passes, the Rollout is aborted, the commit has failed.
    let bad = stage.image("web:never-ready");
    let (_, words) = stage.ended(&bad, &["failure"]).await;
    assert!(words.contains("web: held since commit ") && words.contains(": aborted: "), "{words}");

    // One that is overtaken, and the one that overtakes it.
    let slow = stage.image("web:slow-8");
    stage.ended(&slow, &["pending"]).await;
    let last = stage.image("web:3");
    assert_eq!(
        stage.ended(&slow, &["warning"]).await,
        shown("warning", format!("superseded by commit {}", &last[..8]))
    );
    assert_eq!(stage.ended(&last, &["success"]).await, success);
    assert_eq!(stage.ended(&bad, &["failure", "warning"]).await.0, "failure", "its last word stays");

    // Every status leads to the page of the source, and nothing that is secret was said.
    let [all, writer, reader] = &stage.tokens;
    let path = format!("/repos/ada/web/commits/{last}/status");
    let answer = stage.gitea.api(Method::GET, &path, all, None).await;
    let target = answer.list_at(&["statuses"])[0].str_at(&["target_url"]).unwrap().to_owned();
    assert_eq!(target, "https://tidegate.example/sources/default/web");
    for secret in [all, writer, reader, "hook-secret"] {
        assert!(!stage.daemon.log().contains(secret));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_shows_the_right_commit_the_reason_what_stays_and_no_outage() {
    let files = [
        ("deploy/web.yaml", web("web", "web:1")),
        ("deploy/settings.yaml", map("settings")),
        ("deploy/a.yaml", map("a")),
        ("deploy/b.yaml", map("b")),
        ("deploy/c.yaml", map("c")),
    ];
    let (stage, first) = Stage::open(&files.each_ref().map(|(path, text)| (*path, text.as_str()))).await;
    assert_eq!(stage.ended(&first, &["success"]).await, shown("success", "rolled out: 5 objects"));

    // The right commit: the guilty one keeps its outcome, and the one that changes a text names it.
    let guilty = stage.image("web:bad");
    let innocent = stage.push("README only", &[("README.md", "hello")]);
    // The right reason, while it is waited for and when it is given up.
    let reason = "0 of 1 new pods ready: ImagePullBackOff: web:bad not found";
    let (_, failed) = stage.ended(&guilty, &["failure"]).await;
    let history = stage.history(&guilty).await;
    let waited = format!("pending: web: step 1/2, 50 %, {reason}");
    assert!(history.contains(&waited), "{history:#?}");
    assert!(failed.starts_with(&format!("web: held since commit {}: aborted: ", &guilty[..8])), "{failed}");
    assert!(failed.contains("ImagePullBackOff: web:bad not found"), "{failed}");
    let same = format!("no change under deploy; same as {}: web: held since commit {}", &guilty[..8], &guilty[..8]);
    let (_, words) = stage.shows(&innocent, "failure", |state, _| state == "failure").await;
    assert!(words.starts_with(&same), "{words}");
    let fix = stage.image("web:2");
    assert_eq!(stage.ended(&fix, &["success"]).await, shown("success", "rolled out: 5 objects"));
    assert_eq!(stage.ended(&guilty, &["failure", "warning", "success"]).await.0, "failure", "its last word stays");

    // Nothing silent: what is not deleted is a failure, what stays in use is said, both as events, too.
    let much = stage.push(
        "remove too much",
        &[("deploy/a.yaml", ""), ("deploy/b.yaml", ""), ("deploy/c.yaml", ""), ("deploy/settings.yaml", "")],
    );
    let words = "nothing is deleted: 4 of 5 objects are no longer in the path, and one commit may delete 3; raise spec.pruneLimit";
    assert_eq!(stage.ended(&much, &["failure"]).await, shown("failure", words));
    let some = [("deploy/a.yaml", map("a")), ("deploy/b.yaml", map("b"))];
    let some = stage.push("remove less", &some.each_ref().map(|(path, text)| (*path, text.as_str())));
    let (_, words) = stage.ended(&some, &["success"]).await;
    let kept = "rolled out: 3 objects; ConfigMap default/settings is no longer in git and stays while ";
    assert!(words.starts_with(kept) && words.ends_with(" refers to it"), "{words}");
    let events = stage.list("/api/v1/namespaces/default/events").await;
    let about = |event: &&Value| event.str_at(&["involvedObject", "kind"]) == Some("GitSource");
    let reasons: Vec<&str> = events.iter().filter(about).filter_map(|event| event.str_at(&["reason"])).collect();
    for reason in ["Applied", "RolledOut", "Held", "PruneRefused", "Kept", "Pruned"] {
        assert!(reasons.contains(&reason), "{reason} of {reasons:?}");
    }

    // No outage by rename: at every look as many pods are ready as before, and the old Rollout goes in the end.
    // Progress is reported at most every ten seconds, so its pods take longer than that.
    let renamed = stage.push("rename", &[("deploy/web.yaml", &web("shop", "web:slow-15"))]);
    let begun = Instant::now();
    loop {
        let pods = stage.list("/api/v1/namespaces/default/pods").await;
        let ready = |pod: &&Value| {
            let conditions = pod.list_at(&["status", "conditions"]).iter();
            let mut ready = conditions.filter(|told| told.str_at(&["type"]) == Some("Ready"));
            ready.any(|told| told.str_at(&["status"]) == Some("True"))
        };
        let count = pods.iter().filter(ready).count();
        assert!(count >= 2, "{count} of {} pods are ready\n{}", pods.len(), stage.daemon.log());
        let told = told(&stage.gitea, &stage.tokens[0], &renamed).await;
        if told.iter().any(|(_, state, _)| state == "success") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{told:?}\n{}", stage.daemon.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let history = stage.history(&renamed).await;
    let waited = |line: &String| line.starts_with("pending: shop: 0 of 2 new pods ready");
    assert!(history.iter().any(waited), "{history:#?}");
    let rollouts = stage.list("/apis/argoproj.io/v1alpha1/namespaces/default/rollouts").await;
    let names: Vec<_> = rollouts.iter().filter_map(|rollout| rollout.str_at(&["metadata", "name"])).collect();
    assert_eq!(names, ["shop"], "success comes after the deletion");
}
