//! Fifty tenants on one daemon, five of them hostile: what those cost the others. `tests/soak/run` plays it.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../git/authority.rs"]
mod authority;
#[path = "../whole/harm.rs"]
mod harm;
#[path = "../whole/scene.rs"]
#[allow(dead_code)]
mod scene;
#[path = "../git/server.rs"]
#[allow(dead_code)]
mod server;

use std::{
    collections::HashMap,
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::ExitCode,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use git2::{Repository, Signature, build::TreeUpdateBuilder};
use tidegate::{
    engine::{cache::News, key::Resource},
    io::{
        api::Api,
        source::git_sources,
        watch::{self, Scope},
    },
    kubernetes::value::Value,
    value,
};
use tokio::sync::mpsc;

use crate::{harm::WAYS, scene::Scene, server::Server};

const TENANTS: usize = 50;
const HOSTILE: usize = 5;
const SOURCES: usize = 4;
const ROLLOUTS: usize = 10;
/// One honest push after the other, this far apart.
const PACE: Duration = Duration::from_millis(500);
/// How long a push may take before it counts as never done.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the hostile ones may make of the 99th percentile.
const WORSE: f64 = 2.0;
/// Below this nothing is told from the noise of the machine.
const NOISE: Duration = Duration::from_millis(250);

/// A repository of a tenant, with a folder for each of its sources.
struct Repo {
    repository: Repository,
    count: usize,
}

impl Repo {
    fn new(folder: &std::path::Path) -> Repo {
        let mut options = git2::RepositoryInitOptions::new();
        options.bare(true).initial_head("main");
        let mut repo = Repo { repository: Repository::init_opts(folder, &options).unwrap(), count: 0 };
        (0..SOURCES).for_each(|source| drop(repo.push(source)));
        repo
    }

    /// Changes what one source brings.
    fn push(&mut self, source: usize) -> String {
        self.count += 1;
        let text =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: s{source}}}\ndata: {{k: 'v{}'}}\n", self.count);
        let git = &self.repository;
        let head = git.find_reference("refs/heads/main").ok().and_then(|head| head.target());
        let parent = head.map(|head| git.find_commit(head).unwrap());
        let base = match &parent {
            Some(parent) => parent.tree().unwrap(),
            None => git.find_tree(git.treebuilder(None).unwrap().write().unwrap()).unwrap(),
        };
        let mut tree = TreeUpdateBuilder::new();
        tree.upsert(format!("s{source}/a.yaml"), git.blob(text.as_bytes()).unwrap(), git2::FileMode::Blob);
        let tree = git.find_tree(tree.create_updated(git, &base).unwrap()).unwrap();
        let who = Signature::now("Ada", "ada@example.org").unwrap();
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        git.commit(Some("refs/heads/main"), &who, &who, "change", &tree, &parents).unwrap().to_string()
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Announces a push, as a host does.
fn announce(port: u16, namespace: &str, name: &str, url: &str, number: usize) {
    let body = format!("{{\"project\": {{\"git_http_url\": \"{url}\"}}, \"number\": {number}}}");
    let request = format!(
        "POST /hook/{namespace}/{name} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-gitlab-event: Push Hook\r\n\
         x-gitlab-token: hook\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let code = answer.split(' ').nth(1).unwrap_or_default();
    assert!(["200", "202", "204"].contains(&code), "{namespace}/{name}: {answer}");
}

async fn create(api: &Api, namespace: &str, object: Value) {
    let resource = match object.str_at(&["kind"]).unwrap() {
        "Secret" => Resource::new("", "v1", "secrets"),
        "GitSource" => git_sources(),
        "Rollout" => Resource::new("argoproj.io", "v1alpha1", "rollouts"),
        "AnalysisRun" => Resource::new("argoproj.io", "v1alpha1", "analysisruns"),
        other => panic!("what is a {other}?"),
    };
    api.create(&resource, namespace, &object).await.unwrap();
}

fn source(name: &str, url: &str, path: &str) -> Value {
    value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": name},
        "spec": {"url": url, "path": path, "serviceAccountName": "deployer", "interval": "1m",
            "secretRef": {"name": "authority"}, "webhook": {"secretRef": {"name": "hook"}}}})
}

fn rollout(name: &str) -> Value {
    value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "strategy": {"canary": {"steps": [{"setWeight": 50}]}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}}})
}

/// The world of the play.
struct Soak {
    scene: Scene,
    repos: Vec<Repo>,
    /// Serves them.
    server: Server,
    hooks: u16,
    /// When each source had applied which commit.
    applied: Arc<Mutex<HashMap<(String, String), Instant>>>,
    pushed: usize,
    memory: Vec<u64>,
}

impl Soak {
    async fn open() -> Soak {
        let mut scene = Scene::open().await;
        let root = scene.path("repositories");
        fs::create_dir_all(&root).unwrap();
        let repos = (0..TENANTS).map(|tenant| Repo::new(&root.join(format!("t{tenant}.git")))).collect();
        let server = Server::start(move |parts, body| {
            let tenant = parts.uri.path().trim_start_matches('/').split('/').next().unwrap_or_default().to_owned();
            server::git(&root.join(tenant), parts, body)
        })
        .await;
        let hooks = free_port();
        let webhooks = format!("127.0.0.1:{hooks}");
        let arguments = ["--metrics-port", "0", "--metrics-allow", "127.0.0.1", "--webhooks", &webhooks];
        scene.run(&arguments, &[("TIDEGATE_LOG", "warn")]);
        let mut namespaces = Vec::new();
        for tenant in 0..TENANTS {
            let namespace = format!("t{tenant}");
            let body = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace.as_str()}});
            let request = http::Request::post("/api/v1/namespaces").header("content-type", "application/json");
            let request = request.body(body.to_json().into_bytes()).unwrap();
            scene.api.client().request_text(request).await.unwrap();
            for (name, key, text) in [("authority", "ca.crt", server.authority.as_str()), ("hook", "token", "hook")] {
                let mut secret = value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
                secret.set_at(&["stringData", key], text);
                create(&scene.api, &namespace, secret).await;
            }
            namespaces.push(namespace);
        }
        for (tenant, namespace) in namespaces.iter().enumerate().skip(HOSTILE) {
            for number in 0..SOURCES {
                let (name, path) = (format!("s{number}"), format!("s{number}"));
                create(&scene.api, namespace, source(&name, &server.url(&format!("t{tenant}.git")), &path)).await;
            }
            for number in 0..ROLLOUTS {
                create(&scene.api, namespace, rollout(&format!("r{number}"))).await;
            }
        }
        let applied = Arc::new(Mutex::new(HashMap::new()));
        tokio::spawn(observe(scene.api.clone(), applied.clone()));
        Soak { scene, repos, server, hooks, applied, pushed: 0, memory: Vec::new() }
    }

    /// Waits until this source of a tenant has applied a commit; how long that took.
    async fn lasts(&self, name: &str, commit: &str, begun: Instant) -> Duration {
        let of = (name.to_owned(), commit.to_owned());
        loop {
            if let Some(at) = self.applied.lock().unwrap().get(&of) {
                return at.duration_since(begun);
            }
            if begun.elapsed() > PATIENCE {
                eprintln!("{name}: {commit} was not applied within {PATIENCE:?}");
                return PATIENCE;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Pushes of honest tenants, one after the other, for so long; how long each took, sorted.
    async fn play(&mut self, what: &str, time: Duration) -> Vec<Duration> {
        let (start, mut took, mut shown) = (Instant::now(), Vec::new(), 0);
        while start.elapsed() < time {
            let next = Instant::now() + PACE;
            let tenant = HOSTILE + self.pushed % (TENANTS - HOSTILE);
            let source = (self.pushed / (TENANTS - HOSTILE)) % SOURCES;
            self.pushed += 1;
            let commit = self.repos[tenant].push(source);
            let begun = Instant::now();
            let url = self.server.url(&format!("t{tenant}.git"));
            announce(self.hooks, &format!("t{tenant}"), &format!("s{source}"), &url, self.pushed);
            took.push(self.lasts(&format!("t{tenant}/s{source}"), &commit, begun).await);
            self.memory.push(self.scene.resident_kib());
            if start.elapsed().as_secs() / 60 > shown {
                shown = start.elapsed().as_secs() / 60;
                println!(
                    "{what}, minute {shown}: {} pushes, {} MiB resident",
                    took.len(),
                    self.scene.resident_kib() >> 10
                );
            }
            tokio::time::sleep_until(next.into()).await;
        }
        took.sort();
        took
    }

    /// Everything that the hostile tenants do.
    async fn attack(&self) {
        let (git, authority) = harm::git_hosts().await;
        let metrics = harm::metric_host().await;
        let api = &self.scene.api;
        for tenant in 0..HOSTILE {
            let namespace = format!("t{tenant}");
            let mut secret = value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "evil"}});
            secret.set_at(&["stringData", "ca.crt"], authority.as_str());
            create(api, &namespace, secret).await;
            for number in 0..SOURCES {
                let way = WAYS[(tenant + number) % WAYS.len()];
                let url = format!("https://127.0.0.1:{git}/{way}/{namespace}-{number}.git");
                let mut evil = source(&format!("s{number}"), &url, "");
                evil.set_at(&["spec", "secretRef", "name"], "evil");
                evil.set_at(&["spec", "interval"], "1s");
                create(api, &namespace, evil).await;
            }
            for number in 0..ROLLOUTS {
                let name = format!("r{number}");
                let mut evil = rollout(&name);
                if number == 0 {
                    let steal = value!({"virtualService": {"name": format!("vs.t{}", TENANTS - 1)}});
                    evil.set_at(&["spec", "strategy", "canary", "trafficRouting", "istio"], steal);
                    evil.set_at(&["spec", "strategy", "canary", "canaryService"], "c");
                    evil.set_at(&["spec", "strategy", "canary", "stableService"], "s");
                }
                create(api, &namespace, evil).await;
            }
            // Slow ones, large ones, and one whose status claims the Job of somebody else.
            for number in 0..40 {
                let path = if number % 2 == 0 { "slow" } else { "" };
                let web = value!({"url": format!("http://127.0.0.1:{metrics}/{path}"), "jsonPath": "{$}", "timeoutSeconds": 3600});
                let mut run = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
                    "metadata": {"name": format!("run-{number}")},
                    "spec": {"metrics": [{"name": "m", "interval": "1s", "successCondition": "len(result) > 0"}]}});
                let mut metric = run.list_at(&["spec", "metrics"])[0].clone();
                metric.set_at(&["provider", "web"], web);
                run.set_at(&["spec", "metrics"], Value::list([metric]));
                if number == 0 {
                    let claimed = value!({"phase": "Running", "metricResults": [{"name": "m", "phase": "Running", "measurements": [
                        {"phase": "Running", "startedAt": "2026-01-01T00:00:00Z",
                            "metadata": {"job-name": "payroll", "job-namespace": "t49"}}]}]});
                    run.set_at(&["status"], claimed);
                }
                create(api, &namespace, run).await;
            }
        }
    }
}

/// Notes what sources have applied, as soon as their status says so.
async fn observe(api: Api, applied: Arc<Mutex<HashMap<(String, String), Instant>>>) {
    let (sender, mut news) = mpsc::channel(1024);
    tokio::spawn(watch::follow(api, Scope::of(&git_sources()), sender));
    while let Some((_, news)) = news.recv().await {
        let sources = match news {
            News::List(sources, _) => sources,
            News::Object(source) => vec![source],
            News::Gone(_) | News::Unserved => continue,
        };
        for source in sources {
            let text = |path: &[&str]| source.str_at(path).unwrap_or_default().to_owned();
            let name = format!("{}/{}", text(&["metadata", "namespace"]), text(&["metadata", "name"]));
            let commit = text(&["status", "applied", "commit"]);
            applied.lock().unwrap().entry((name, commit)).or_insert_with(Instant::now);
        }
    }
}

/// The duration below which this many of a hundred are.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn mean(values: &[u64]) -> u64 {
    values.iter().sum::<u64>() / values.len().max(1) as u64
}

#[tokio::main]
async fn main() -> ExitCode {
    let minutes: f64 = std::env::var("TIDEGATE_SOAK_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(10.0);
    let time = Duration::from_secs_f64(minutes * 60.0);
    let mut soak = Soak::open().await;
    // Until everything is applied once.
    for tenant in HOSTILE..TENANTS {
        let head = soak.repos[tenant].repository.refname_to_id("refs/heads/main").unwrap().to_string();
        for source in 0..SOURCES {
            soak.lasts(&format!("t{tenant}/s{source}"), &head, Instant::now()).await;
        }
    }
    let quiet = soak.play("without", time).await;
    let before = soak.memory.len();
    soak.attack().await;
    let attacked = soak.play("with hostile tenants", time).await;
    for (what, took) in [("without", &quiet), ("with hostile tenants", &attacked)] {
        let at = |percent| percentile(took, percent);
        println!("{what}: {} pushes, p50 {:?}, p90 {:?}, p99 {:?}", took.len(), at(50), at(90), at(99));
    }
    // The first third of the attack fills caches.
    let memory = &soak.memory[before..];
    let third = memory.len() / 3;
    let (early, late) = (mean(&memory[third..third * 2]), mean(&memory[third * 2..]));
    println!(
        "memory: {} MiB before, {} MiB then {} MiB under attack",
        mean(&soak.memory[..before]) >> 10,
        early >> 10,
        late >> 10
    );
    let allowed = percentile(&quiet, 99).max(NOISE).mul_f64(WORSE);
    let (is_slower, grows) = (percentile(&attacked, 99) > allowed, late > early + early / 10 + (8 << 10));
    if is_slower {
        println!("FAILED: an honest push takes more than {WORSE} times as long at the 99th percentile");
    }
    if grows {
        println!("FAILED: memory grows");
    }
    if is_slower || grows { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
