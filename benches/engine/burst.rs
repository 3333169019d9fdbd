//! A thousand Rollouts of two pods, all images changed at once. The embedded cluster is in this process, where requests are
//! counted; the daemon is a process of its own, so that what it used is what the system says of it.
//!
//! Fewer writes and events are wanted than the order of Argo Rollouts has room for, and that order is kept, because people
//! and tools watch the states in between. Its floor: the ReplicaSet is made without pods, then four changes of size; the
//! revision is noted on the Rollout; and status says four things one after the other: made, begun, promoted, healthy. Six
//! events: updated, created, not completed, scaled up, scaled down, completed.

use std::{
    collections::BTreeMap,
    future::Future,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use tidegate::{
    cmd::kubeconfig,
    embedded::{
        controllers::{self, World},
        http::{
            cluster::{Cluster, Pace},
            server::{self, Identity},
            service::{Front, Settings},
        },
        store::{
            Config, Store,
            request::{self, PatchType, Verb},
        },
    },
    kubernetes::{clock::Clock, value::Value},
    value,
};
use tower::Service;

use crate::{
    rollout,
    table::{Process, Row, kilobytes, processor, thousands, tidegate},
};

const COUNT: usize = 1_000;

/// How often each kind of request was made: `POST events`, `PATCH rollouts/status` …
type Counts = Arc<Mutex<BTreeMap<String, u64>>>;

/// The cluster's front, with a counter of what the daemon asks for.
#[derive(Clone)]
struct Counted<S> {
    inner: S,
    counts: Counts,
}

impl<S, B> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if request.method() != Method::GET {
            let path: Vec<&str> = request.uri().path().split('/').collect();
            let after = path.iter().position(|part| *part == "namespaces").map_or(0, |at| at + 2);
            let (resource, subresource) = (path.get(after).unwrap_or(&""), path.get(after + 2));
            let what = subresource.map_or_else(|| (*resource).to_owned(), |sub| format!("{resource}/{sub}"));
            let mut counts = self.counts.lock().expect("no counter panics");
            *counts.entry(format!("{} {what}", request.method())).or_default() += 1;
        }
        Box::pin(self.inner.call(request))
    }
}

fn ask(cluster: &Cluster, verb: Verb, name: &str, body: Value) {
    let request = request::Request {
        verb,
        group: "argoproj.io".into(),
        version: "v1alpha1".into(),
        resource: "rollouts".into(),
        namespace: "default".into(),
        name: name.into(),
        body: Some(body),
        agent: "bench".into(),
        ..request::Request::default()
    };
    cluster.apply(request).0.expect("a valid Rollout");
}

/// Waits until every Rollout is healthy at its newest generation.
async fn all_healthy(cluster: &Cluster) {
    let mut newest = cluster.newest();
    loop {
        newest.borrow_and_update();
        let is_healthy = |rollout: &Value| {
            let generation = rollout.int_at(&["metadata", "generation"]).unwrap_or_default();
            let observed = rollout.str_at(&["status", "observedGeneration"]).and_then(|text| text.parse().ok());
            rollout.str_at(&["status", "phase"]) == Some("Healthy") && observed == Some(generation)
        };
        let healthy = cluster.with(|store| {
            store.list("argoproj.io", "rollouts", "default").filter(|rollout| is_healthy(&rollout.value)).count()
        });
        if healthy == COUNT {
            return;
        }
        newest.changed().await.expect("the cluster lives");
        // Looking at a thousand Rollouts after each of many thousand writes would be what is measured.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The rows of the table.
pub fn rows() -> Vec<Row> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(burst())
}

/// A cluster that serves and counts, and writes down how to reach it.
async fn cluster(path: &Path, counts: &Counts) -> Cluster {
    let now = Timestamp::now();
    let mut store = Store::new(Config { clock: Clock::Wall(now), ..Config::new(now, 1) });
    tidegate::sim::install::definitions(&mut store).expect("our own definitions");
    // Pods are ready at once: what is measured is the engine.
    let (ready_delay, jitter) = (SignedDuration::ZERO, SignedDuration::ZERO);
    let settings = controllers::Settings { seed: 1, ready_delay, jitter, ..Default::default() };
    let cluster = Cluster::new(store, Some(World::new(settings)), None, Pace::Wall);
    tokio::spawn(cluster.clone().drive());
    let listener = server::listen(0).await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (identity, token) = (Identity::new().expect("a certificate"), server::token());
    let access = kubeconfig::Access {
        name: "burst".into(),
        server: format!("https://{address}"),
        authority: identity.authority.clone(),
        token: token.clone(),
    };
    kubeconfig::write(path, &access).expect("a kubeconfig");
    let settings = Settings { token: Some(token), address };
    let front = Counted { inner: Front::new(cluster.clone(), settings), counts: counts.clone() };
    tokio::spawn(server::serve(listener, identity, front, std::future::pending()));
    cluster
}

fn daemon(path: &Path) -> Process {
    let mut command = tidegate();
    command.args(["run", "--metrics-port", "0", "--healthz-port", "0", "--kubeconfig"]).arg(path);
    command.env("RUST_LOG", "warn");
    Process(command.spawn().expect("the daemon starts"))
}

async fn burst() -> Vec<Row> {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, counts) = (folder.path().join("kubeconfig"), Counts::default());
    let cluster = cluster(&path, &counts).await;
    let daemon = daemon(&path);
    for number in 0..COUNT {
        ask(&cluster, Verb::Create, "", rollout(&format!("web-{number:04}")));
    }
    all_healthy(&cluster).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    counts.lock().expect("no counter panics").clear();
    let id = daemon.0.id();
    let cpu = processor(id);
    let begin = Instant::now();
    let image = value!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "web:2"}]);
    for number in 0..COUNT {
        ask(&cluster, Verb::Patch(PatchType::Json), &format!("web-{number:04}"), image.clone());
    }
    all_healthy(&cluster).await;
    let elapsed = begin.elapsed();
    let (after, peak) = (processor(id), kilobytes(id, "VmHWM:"));
    drop(daemon);
    let counts = counts.lock().expect("no counter panics").clone();
    for (what, count) in &counts {
        println!("{:>8.2} per Rollout  {what}", *count as f64 / COUNT as f64);
    }
    println!();
    let of = |events: bool| {
        let chosen = counts.iter().filter(|(what, _)| what.ends_with(" events") == events);
        chosen.map(|(_, count)| count).sum::<u64>() as f64 / COUNT as f64
    };
    let row = |name: &str, measured: String, wanted: &'static str, peer: &str| Row {
        name: format!("{} Rollouts × 2 pods, {name}", thousands(COUNT as u64)),
        measured,
        wanted,
        peer: peer.into(),
    };
    vec![
        row("time", format!("{:.2} s", elapsed.as_secs_f64()), "", "Argo Rollouts: 85 s for 400"),
        row("writes each", format!("{:.2}", of(false)), "≤ 7", "Argo Rollouts: 13.8; its order of states needs 10"),
        row("events each", format!("{:.2}", of(true)), "≤ 3", "Argo Rollouts: 3 to 8; its reasons are 6"),
        row(
            "processor time of the controller each",
            format!("{:.2} ms", (after - cpu).as_secs_f64() * 1e3 / COUNT as f64),
            "≤ 5 ms",
            "Argo Rollouts: 51 ms",
        ),
        row("most memory of the controller", format!("{} MB", peak / 1024), "", "Argo Rollouts: 73 MB when empty"),
    ]
}
