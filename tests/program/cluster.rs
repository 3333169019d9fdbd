//! `tidegate cluster` as its user meets it: a process, a port, a kubeconfig, a data file.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use serde_json::{Value, json};
use ureq::{
    Agent,
    tls::{Certificate, RootCerts, TlsConfig},
};

/// A running cluster; killed when it goes out of scope.
struct Cluster {
    process: Child,
    ready: Value,
    agent: Agent,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("cluster").args(arguments).env_remove("KUBECONFIG");
    // A killed cluster leaves its own kubeconfig behind: not in the user's folder.
    command.env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    command
}

impl Cluster {
    fn start(arguments: &[&str]) -> Cluster {
        let mut process = command(arguments).args(["-o", "json"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let authority = Certificate::from_pem(ready["certificateAuthority"].as_str().unwrap().as_bytes()).unwrap();
        let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[authority])).build();
        let agent = Agent::config_builder().tls_config(tls).http_status_as_error(false).build().new_agent();
        Cluster { process, ready, agent }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.ready["server"].as_str().unwrap())
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.ready["token"].as_str().unwrap())
    }

    fn get(&self, path: &str) -> Value {
        let mut response = self.agent.get(self.url(path)).header("authorization", self.bearer()).call().unwrap();
        serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.agent.post(self.url(path)).header("authorization", self.bearer());
        let mut response = request.content_type("application/json").send(body.to_string()).unwrap();
        serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap()
    }

    fn signal(&self, name: &str) {
        // The shell's own: a small machine has no program of that name.
        let sent = Command::new("sh").args(["-c", &format!("kill {name} {}", self.process.id())]).status().unwrap();
        assert!(sent.success());
    }

    fn end(mut self, signal: &str) -> Option<i32> {
        self.signal(signal);
        self.process.wait().unwrap().code()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";

fn config(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"key": name}})
}

/// Starts what must not start, and returns its exit code and words.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command(arguments).output().unwrap();
    assert!(stdout.is_empty(), "{}", String::from_utf8_lossy(&stdout));
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn every_object_comes_back_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let arguments = ["--data", data.to_str().unwrap(), "--kubeconfig", &format!("{}.kc", data.display())];
    let first = Cluster::start(&arguments);
    let definition = json!({
        "metadata": {"name": "gadgets.front.test"},
        "spec": {
            "group": "front.test", "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    });
    first.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    let gadgets = "/apis/front.test/v1/namespaces/default/gadgets";
    let gadget =
        json!({"apiVersion": "front.test/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"a": [1]}});
    first.post(gadgets, &gadget);
    for at in 0..50 {
        first.post(CONFIGS, &config(&format!("c{at}")));
    }
    let (configs, made) = (first.get(CONFIGS), first.get(gadgets));
    assert_eq!(configs["items"].as_array().unwrap().len(), 50);
    assert_eq!(first.end("-KILL"), None);

    let second = Cluster::start(&arguments);
    assert_eq!(second.get(CONFIGS)["items"], configs["items"]);
    assert_eq!(second.get(gadgets)["items"], made["items"]);
    let version = |value: &Value| value["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    let next = second.post(CONFIGS, &config("next"));
    assert!(version(&next) > version(&configs), "versions go on where they were");
    assert_eq!(second.end("-TERM"), Some(0));

    let third = Cluster::start(&arguments);
    assert_eq!(third.get(CONFIGS)["items"].as_array().unwrap().len(), 51);
}

#[test]
fn an_unfinished_write_is_removed_and_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let arguments = ["--data", data.to_str().unwrap(), "--kubeconfig", &format!("{}.kc", data.display())];
    let first = Cluster::start(&arguments);
    first.post(CONFIGS, &config("kept"));
    assert_eq!(first.end("-KILL"), None);
    let mut bytes = fs::read(&data).unwrap();
    bytes.extend_from_slice(b"12345678 {\"at\":[\"\",\"conf");
    fs::write(&data, bytes).unwrap();
    let second = Cluster::start(&arguments);
    let notices = second.ready["notices"].to_string();
    assert!(notices.contains("24 bytes of an unfinished write at the end of the data file were removed"), "{notices}");
    assert_eq!(second.get(&format!("{CONFIGS}/kept"))["data"]["key"], "kept");
}

#[test]
fn our_kinds_are_there_if_asked_for_and_stay_with_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let arguments = ["--data", data.to_str().unwrap(), "--kubeconfig", &format!("{}.kc", data.display())];
    let rollouts = "/apis/argoproj.io/v1alpha1/namespaces/default/rollouts";
    let first = Cluster::start(&arguments);
    assert!(!first.get("/apis").to_string().contains("argoproj.io"));
    assert_eq!(first.end("-TERM"), Some(0));
    let with = [&arguments[..], &["--crds"]].concat();
    for _ in 0..2 {
        let cluster = Cluster::start(&with);
        assert_eq!(cluster.get(rollouts)["kind"], "RolloutList");
        assert_eq!(cluster.get("/apis/tidegate.dev/v1alpha1/gitsources")["kind"], "GitSourceList");
        assert_eq!(cluster.end("-TERM"), Some(0));
    }
    let last = Cluster::start(&arguments);
    assert_eq!(last.get(rollouts)["kind"], "RolloutList");
}

#[test]
fn a_data_file_belongs_to_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let arguments = ["--data", data.to_str().unwrap(), "--kubeconfig", &format!("{}.kc", data.display())];
    let _first = Cluster::start(&arguments);
    let (code, words) = refused(&arguments);
    assert_eq!(code, Some(2));
    assert_eq!(
        words,
        format!(
            "error: {} is in use by another process\nhint: stop the other `tidegate cluster`, or name another file\n",
            data.canonicalize().unwrap().display()
        )
    );
}

#[test]
fn what_cannot_be_used_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes.txt");
    fs::write(&notes, "dear diary\n").unwrap();
    let path = notes.to_str().unwrap();
    let (code, words) = refused(&["--data", path]);
    assert_eq!((code, words.lines().count()), (Some(2), 2), "{words}");
    assert!(words.contains("is not a data file of this program"), "{words}");
    let (code, words) = refused(&["--kubeconfig", path]);
    assert_eq!((code, words.lines().count()), (Some(2), 2), "{words}");
    assert!(words.contains("is not a kubeconfig"), "{words}");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "dear diary\n");
    assert_eq!(refused(&["--data", "/nowhere/at/all"]).0, Some(2));
}

#[test]
fn a_port_in_use_is_named_with_the_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, words) = refused(&["--port", &port]);
    assert_eq!(code, Some(2));
    let (error, hint) = words.trim_end().split_once('\n').unwrap();
    assert!(error.starts_with(&format!("error: cannot listen on 127.0.0.1:{port}: ")), "{error}");
    assert_eq!(
        hint,
        "hint: another program uses this port: choose another `--port`, or leave it out to take a free one"
    );
}

#[test]
fn stopping_ends_watches_and_cleans_up() {
    let cluster = Cluster::start(&[]);
    let kubeconfig = cluster.ready["kubeconfig"].as_str().unwrap().to_owned();
    assert!(fs::read_to_string(&kubeconfig).unwrap().contains(cluster.ready["server"].as_str().unwrap()));
    let watch = cluster.url(&format!("{CONFIGS}?watch=1"));
    let response = cluster.agent.get(watch).header("authorization", cluster.bearer()).call().unwrap();
    let mut events = response.into_body().into_reader();
    cluster.post(CONFIGS, &config("seen"));
    let mut first = [0; 15];
    events.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"{\"type\":\"ADDED\"");
    assert_eq!(cluster.end("-INT"), Some(0));
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("}\n"), "the stream ended between two events");
    assert!(!Path::new(&kubeconfig).exists(), "its own kubeconfig is gone");
}

#[test]
fn only_the_token_opens_the_door() {
    let cluster = Cluster::start(&[]);
    let without = cluster.agent.get(cluster.url(CONFIGS)).call().unwrap();
    assert_eq!(without.status().as_u16(), 401);
    let wrong = cluster.agent.get(cluster.url(CONFIGS)).header("authorization", "Bearer nope").call().unwrap();
    assert_eq!(wrong.status().as_u16(), 401);
    let health = cluster.agent.get(cluster.url("/readyz")).call().unwrap();
    assert_eq!(health.status().as_u16(), 200);
}
