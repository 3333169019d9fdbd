//! From git to the cluster with 5,000 manifests, as a table: the real daemon and the embedded cluster as processes of their
//! own, a bare repository on disk, commits that change one image. What the processes used is what the system says of them.

mod compare;
mod repository;
#[path = "../table/mod.rs"]
mod table;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use futures::StreamExt;
use kube::{
    Client, Config,
    api::{Api, ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use repository::{APPS, OBJECTS, Repository};
use table::{Process, Row, kilobytes, processor, thousands, tidegate};

/// How often an image is changed.
const PUSHES: usize = 60;
/// How long the daemon looks at a repository in which nothing happens.
const IDLE: u64 = 20;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    let mut repository = Repository::new(&folder.path().join("shop.git"));
    let _cluster = cluster(&kubeconfig);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = runtime.block_on(client(&kubeconfig));
    let begin = Instant::now();
    let daemon = daemon(&kubeconfig, repository.path(), folder.path());
    runtime.block_on(all_healthy(&client));
    let first = begin.elapsed();
    let mut rows = vec![Row {
        name: format!("first sync of {} objects, {} Rollouts healthy", thousands(OBJECTS as u64), APPS),
        measured: format!("{:.1} s", first.as_secs_f64()),
        wanted: "",
        peer: String::new(),
    }];
    let id = daemon.0.id();
    std::thread::sleep(Duration::from_secs(3));
    rows.push(idle(id));
    rows.extend(runtime.block_on(pushes(&client, &mut repository)));
    rows.extend(memory(id));
    drop(daemon);
    rows.extend(diffs(&kubeconfig, &repository, folder.path()));
    rows.extend(compare::rows(&repository));
    table::print(&rows);
}

/// An embedded cluster that is ready.
fn cluster(kubeconfig: &Path) -> Process {
    let mut command = tidegate();
    command.args(["cluster", "--crds", "--kubeconfig"]).arg(kubeconfig).stdout(Stdio::piped());
    let mut process = Process(command.spawn().expect("the cluster starts"));
    let mut line = String::new();
    let output = process.0.stdout.as_mut().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("it says that it is ready");
    assert!(kubeconfig.exists(), "{line}");
    process
}

fn daemon(kubeconfig: &Path, repository: &Path, folder: &Path) -> Process {
    let mut command = tidegate();
    command.args(["run", "--metrics-port", "0", "--healthz-port", "0", "--interval", "1s", "--kubeconfig"]);
    command.arg(kubeconfig).arg("--repo").arg(repository).arg("--cache").arg(folder.join("cache"));
    command.env("RUST_LOG", "warn");
    Process(command.spawn().expect("the daemon starts"))
}

async fn client(kubeconfig: &Path) -> Client {
    let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.expect("a context");
    Client::try_from(config).expect("a client")
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version = format!("{group}/{version}");
    ApiResource { group: group.into(), version: version.into(), kind: kind.into(), plural: plural.into(), api_version }
}

async fn all_healthy(client: &Client) {
    let kind = resource("argoproj.io", "v1alpha1", "Rollout", "rollouts");
    let rollouts: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
    loop {
        let list = rollouts.list(&ListParams::default()).await.expect("the cluster answers");
        let healthy = list.items.iter().filter(|rollout| rollout.data["status"]["phase"] == "Healthy").count();
        if healthy == APPS {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// From the moment at which the branch has moved to the ReplicaSet of the new version.
async fn pushes(client: &Client, repository: &mut Repository) -> Vec<Row> {
    let kind = resource("apps", "v1", "ReplicaSet", "replicasets");
    let sets: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
    let version = sets.list(&ListParams::default().limit(1)).await.expect("the cluster answers");
    let version = version.metadata.resource_version.expect("a version");
    let mut watch = sets.watch(&WatchParams::default(), &version).await.expect("a watch").boxed();
    let mut taken = Vec::new();
    for number in 0..PUSHES {
        let name = repository.change(number);
        let begin = Instant::now();
        loop {
            let event = watch.next().await.expect("the watch goes on").expect("an event");
            if let WatchEvent::Added(set) = event
                && set.metadata.owner_references.iter().flatten().any(|owner| owner.name == name)
            {
                break;
            }
        }
        taken.push(begin.elapsed());
        // What follows from it is over.
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    taken.sort();
    let row = |name: &str, at: usize, wanted| Row {
        name: format!("one image of {} changed: branch moved → ReplicaSet created, {name}", thousands(OBJECTS as u64)),
        measured: format!("{:.0} ms", taken[at].as_secs_f64() * 1e3),
        wanted,
        peer: String::new(),
    };
    vec![row("half of them", PUSHES / 2, "≤ 100 ms"), row("all but one in a hundred", PUSHES * 99 / 100, "")]
}

/// What it costs to look at a repository in which nothing has changed.
fn idle(id: u32) -> Row {
    let before = processor(id);
    std::thread::sleep(Duration::from_secs(IDLE));
    let each = (processor(id) - before).as_secs_f64() * 1e3 / IDLE as f64;
    Row {
        name: "a look at a repository without a new commit, processor time, everything else included".into(),
        measured: format!("{each:.1} ms"),
        wanted: "≤ 10 ms",
        peer: String::new(),
    }
}

fn memory(id: u32) -> Vec<Row> {
    let row = |name: &str, line: &str, wanted| Row {
        name: format!("memory of the daemon with {} objects, {name}", thousands(OBJECTS as u64)),
        measured: format!("{} MB", kilobytes(id, line) / 1024),
        wanted,
        peer: String::new(),
    };
    vec![row("now", "VmRSS:", "≤ 120 MB"), row("the most it had", "VmHWM:", "")]
}

/// `tidegate diff` from its start to its end, and the parts of which it cannot be faster.
fn diffs(kubeconfig: &Path, repository: &Repository, folder: &Path) -> Vec<Row> {
    let files = folder.join("files");
    repository.write(&files);
    let once = || {
        let begin = Instant::now();
        let status = tidegate().arg("diff").arg(&files).arg("--kubeconfig").arg(kubeconfig).status();
        assert_ne!(status.expect("it runs").code(), Some(2), "the comparison went wrong");
        begin.elapsed()
    };
    let best = (0..3).map(|_| once()).min().unwrap_or_default();
    let parse = repository.parse();
    vec![Row {
        name: format!("tidegate diff of {} objects, from its start to its end", thousands(OBJECTS as u64)),
        measured: format!("{:.2} s", best.as_secs_f64()),
        wanted: "≤ 3 s",
        peer: format!("reading the manifests alone: {:.2} s", parse.as_secs_f64()),
    }]
}
