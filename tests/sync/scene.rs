//! A bare repository, an embedded cluster, and the whole daemon between them, in virtual time.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use git2::{Repository, Signature, Time};
use jiff::Timestamp;
use kube::Client;
use tempfile::TempDir;
use tidegate::{
    api,
    embedded::{
        controllers::{self, World},
        http::{
            cluster::{Cluster, Pace},
            service::{Front, Settings},
        },
        store::{
            Config, Store,
            request::{Outcome, PatchType, Request, Verb},
        },
    },
    engine::{
        key::Place,
        metrics::{Gauges, Objects},
    },
    io::{
        api::Api,
        clock::Clock,
        daemon,
        outbound::Outbound,
        source::{self, Board, Given, Hint, Told},
        webhook::Hooks,
    },
    kubernetes::{object::Object, value::Value},
    model::{git_source::GitSource, parse},
    sync::{Report, State},
    value,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::{
    host::Host,
    line::{Line, Whose},
    rights::Rights,
};

/// When every story begins.
const START: &str = "2026-01-01T00:00:00Z";

pub struct Scene {
    pub cluster: Cluster,
    pub repository: Repo,
    pub spec: GitSource,
    /// What commits were told, oldest first.
    pub told: Vec<Report>,
    hints: Option<mpsc::Sender<Hint>>,
    heard: Option<mpsc::Receiver<Told>>,
    stops: Vec<oneshot::Sender<()>>,
    tasks: Vec<JoinHandle<()>>,
    clock: Clock,
    start: Timestamp,
    given: bool,
    /// The host of the repository, if it has one.
    pub host: Option<Host>,
    /// Whether the repository is read through its host.
    pub remote: bool,
    cache: TempDir,
    /// What asks through this is let in or not.
    pub rights: Rights,
    /// Between the daemon and the cluster, in this life of it.
    pub line: Line,
    pub board: Board,
    /// The only namespace that the daemon looks after.
    pub namespace: Option<String>,
    pub hooks: Option<Hooks>,
    /// Whether metrics may be asked for on this machine.
    pub anywhere: bool,
    /// How the sources reach the cluster, in this life of the daemon.
    sources: Option<Api>,
}

/// A bare repository on disk.
pub struct Repo {
    folder: TempDir,
    repository: Repository,
    files: BTreeMap<String, String>,
    count: i64,
}

impl Repo {
    fn new() -> Repo {
        let folder = tempfile::tempdir().unwrap();
        let mut options = git2::RepositoryInitOptions::new();
        options.bare(true).initial_head("main").external_template(false);
        let repository = Repository::init_opts(folder.path(), &options).unwrap();
        Repo { folder, repository, files: BTreeMap::new(), count: 0 }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Commits these changes on the branch; an empty text removes a file.
    pub fn commit(&mut self, changes: &[(&str, &str)]) -> String {
        for (path, text) in changes {
            match *text {
                "" => drop(self.files.remove(*path)),
                text => drop(self.files.insert((*path).to_owned(), text.to_owned())),
            }
        }
        let head = self.repository.find_reference("refs/heads/main").ok().and_then(|head| head.target());
        let commit = self.make(head);
        self.repository.reference("refs/heads/main", commit, true, "").unwrap();
        commit.to_string()
    }

    /// Moves the branch, as a force-push does.
    pub fn reset(&mut self, commit: &str) {
        let id = git2::Oid::from_str(commit).unwrap();
        self.repository.reference("refs/heads/main", id, true, "").unwrap();
    }

    /// The repository is gone.
    pub fn lose(&self) {
        std::fs::remove_file(self.folder.path().join("HEAD")).unwrap();
        std::fs::remove_dir_all(self.folder.path().join("refs")).unwrap();
    }

    /// The note of a commit.
    pub fn note(&self, commit: &str) -> Option<String> {
        let id = git2::Oid::from_str(commit).unwrap();
        let note = self.repository.find_note(Some("refs/notes/tidegate"), id).ok()?;
        Some(String::from_utf8_lossy(note.message_bytes()).into_owned())
    }

    pub fn git(&self) -> &Repository {
        &self.repository
    }

    /// Puts the branch on a commit that is made by hand.
    pub fn point(&self, commit: git2::Oid) -> String {
        self.repository.reference("refs/heads/main", commit, true, "").unwrap();
        commit.to_string()
    }

    /// The commit that the branch is at.
    pub fn head(&self) -> Option<git2::Oid> {
        self.repository.find_reference("refs/heads/main").ok().and_then(|head| head.target())
    }

    fn make(&mut self, parent: Option<git2::Oid>) -> git2::Oid {
        self.count += 1;
        let repository = &self.repository;
        let mut index = git2::Index::new().unwrap();
        for (path, text) in &self.files {
            let id = repository.blob(text.as_bytes()).unwrap();
            let zero = git2::IndexTime::new(0, 0);
            index
                .add(&git2::IndexEntry {
                    ctime: zero,
                    mtime: zero,
                    dev: 0,
                    ino: 0,
                    mode: 0o100_644,
                    uid: 0,
                    gid: 0,
                    file_size: 0,
                    id,
                    flags: 0,
                    flags_extended: 0,
                    path: path.clone().into_bytes(),
                })
                .unwrap();
        }
        let tree = repository.find_tree(index.write_tree_to(repository).unwrap()).unwrap();
        let who = Signature::new("dev", "dev@example.org", &Time::new(1_700_000_000 + self.count, 0)).unwrap();
        let parent = parent.map(|parent| repository.find_commit(parent).unwrap());
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        repository.commit(None, &who, &who, &format!("commit {}", self.count), &tree, &parents).unwrap()
    }
}

/// What a source says if nothing else is said.
pub fn spec() -> GitSource {
    let wire = value!({"spec": {"url": "https://git.example/shop.git", "path": "deploy", "interval": "1m",
        "serviceAccountName": "deployer", "allow": {"kinds": ["*"], "namespaces": ["*"]}}});
    parse::git_source(&api::read(&wire).object).into_result().unwrap()
}

impl Scene {
    /// A scene in which the daemon is at work.
    pub fn new() -> Scene {
        Scene::with(spec())
    }

    /// The same with a source of one's own.
    pub fn with(spec: GitSource) -> Scene {
        Scene::make(spec, true)
    }

    /// A scene without a source: GitSources are created in it.
    pub fn objects() -> Scene {
        Scene::make(spec(), false)
    }

    fn make(spec: GitSource, given: bool) -> Scene {
        Scene::build(spec, given, true)
    }

    fn build(spec: GitSource, given: bool, start_now: bool) -> Scene {
        // TIDEGATE_LOG=info shows every decision.
        let filter = tracing_subscriber::EnvFilter::from_env("TIDEGATE_LOG");
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
        let start: Timestamp = START.parse().unwrap();
        let mut store = Store::new(Config::new(start, 7));
        tidegate::sim::install::definitions(&mut store).unwrap();
        let world = World::new(controllers::Settings { seed: 7, ..Default::default() });
        let cluster = Cluster::new(store, Some(world), None, Pace::Runtime);
        let clock = Clock::runtime(start);
        tokio::spawn(cluster.clone().drive());
        let mut scene = Scene {
            cluster,
            repository: Repo::new(),
            spec,
            told: Vec::new(),
            hints: None,
            heard: None,
            stops: Vec::new(),
            tasks: Vec::new(),
            clock,
            start,
            given,
            host: None,
            remote: false,
            cache: tempfile::tempdir().unwrap(),
            rights: Rights::default(),
            line: Line::default(),
            board: Board::default(),
            namespace: None,
            hooks: None,
            anywhere: false,
            sources: None,
        };
        if start_now {
            scene.start();
        }
        scene
    }

    /// The same repository with a new cluster.
    pub async fn elsewhere(mut self) -> Scene {
        self.kill().await;
        self.cluster.close();
        let mut scene = Scene::build(self.spec.clone(), self.given, false);
        scene.repository = self.repository;
        scene.start();
        scene
    }

    /// A scene whose repository is on a host that hears statuses; the daemon has to be started.
    pub fn hosted() -> Scene {
        let mut scene = Scene::build(spec(), false, false);
        scene.host = Some(Host::new(scene.repository.path()));
        scene.secret("token", &[("token", "good-token")]);
        scene
    }

    pub fn host(&self) -> Host {
        self.host.clone().unwrap()
    }

    /// Somebody creates a Secret for the host of the repository, or writes it anew.
    pub fn secret(&self, name: &str, data: &[(&str, &str)]) {
        self.secret_for("git.example", name, data);
    }

    /// Somebody creates a Secret for some hosts, or writes it anew.
    pub fn secret_for(&self, hosts: &str, name: &str, data: &[(&str, &str)]) {
        let mut body = value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        body.set_at(&["metadata", "annotations", "tidegate.dev/hosts"], hosts);
        for (key, text) in data {
            body.set_at(&["stringData", key], *text);
        }
        if self.get("", "secrets", name).is_some() {
            self.patch("", "v1", "secrets", "", name, body).unwrap();
        } else {
            self.create("", "v1", "secrets", body).unwrap();
        }
    }

    fn api(&self, whose: Whose) -> Api {
        let front = Front::new(self.cluster.clone(), Settings::default());
        Api::new(Client::new(self.line.to(self.rights.clone().over(front, whose), whose), "default"))
    }

    /// Starts the daemon: the engine and the sources.
    pub fn start(&mut self) {
        self.line = Line::default();
        let mut stop = || {
            let (stop, stopped) = oneshot::channel();
            self.stops.push(stop);
            async move { drop(stopped.await) }
        };
        let (engine, sources) = (stop(), stop());
        let settings = daemon::Settings {
            clock: self.clock,
            namespace: self.namespace.clone(),
            outbound: if self.anywhere { Outbound::anywhere() } else { Outbound::default() },
            ..daemon::Settings::default()
        };
        self.tasks.push(tokio::spawn(daemon::run(self.api(Whose::Engine), settings, engine)));
        let (hints, hinted) = mpsc::channel(16);
        let (told, heard) = mpsc::channel(1024);
        let given = Given {
            namespace: "default".into(),
            name: "shop".into(),
            spec: self.spec.clone(),
            folder: Some(self.repository.path().to_owned()),
        };
        let copies = ["https://git.example/shop.git", "https://git.example/team/shop.git"];
        let copies = copies.map(|url| (url.to_owned(), self.repository.path().to_owned())).to_vec();
        let settings = source::Settings {
            given: if self.given { vec![given] } else { Vec::new() },
            copies: if self.remote { Vec::new() } else { copies },
            network: self.host.as_ref().map(|host| Arc::new(host.network())),
            namespace: self.namespace.clone(),
            hooks: self.hooks.clone(),
            board: Some(self.board.clone()),
            pages: Some("https://tidegate.example".into()),
            cache: self.cache.path().to_owned(),
            clock: self.clock,
            ..source::Settings::default()
        };
        let api = self.api(Whose::Sources);
        self.sources = Some(api.clone());
        self.tasks.push(tokio::spawn(source::run(api, settings, hinted, Some(told), sources)));
        (self.hints, self.heard) = (Some(hints), Some(heard));
    }

    /// Stops the daemon; all it knew is lost.
    pub async fn kill(&mut self) {
        for stop in self.stops.drain(..) {
            let _ = stop.send(());
        }
        for task in self.tasks.drain(..) {
            task.await.unwrap();
        }
        self.listen();
    }

    /// The daemon dies in the middle of whatever it does.
    pub async fn crash(&mut self) {
        self.line.die();
        for task in self.tasks.drain(..) {
            task.abort();
            assert!(task.await.is_err_and(|error| error.is_cancelled()));
        }
        // Only now: whoever waits for these would take it for the wish to stop.
        self.stops.clear();
        self.listen();
    }

    /// The machine that it ran on is gone, with all copies of repositories.
    pub fn lose_cache(&mut self) {
        self.cache = tempfile::tempdir().unwrap();
    }

    /// Commits, and lets the daemon know as a webhook would.
    pub async fn push(&mut self, changes: &[(&str, &str)]) -> String {
        let commit = self.repository.commit(changes);
        self.hint().await;
        commit
    }

    pub async fn hint(&mut self) {
        let hints = self.hints.as_ref().unwrap();
        hints.send(Hint::Source(Place::new("default", "shop"))).await.unwrap();
    }

    fn listen(&mut self) {
        while let Ok(told) = self.heard.as_mut().unwrap().try_recv() {
            self.told.push(told.report);
        }
    }

    /// Lets time pass.
    pub async fn pass(&mut self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.listen();
    }

    /// Waits until a commit is told this, and answers with which words.
    #[track_caller]
    pub fn until<'s>(&'s mut self, commit: &'s str, state: State) -> impl Future<Output = String> + 's {
        let place = std::panic::Location::caller();
        async move {
            self.listen();
            let deadline = tokio::time::Instant::now() + Duration::from_secs(1800);
            loop {
                let last = self.told.iter().rev().find(|report| report.commit == commit && report.rollout.is_none());
                if let Some(report) = last.filter(|report| report.state == state) {
                    return report.words.clone();
                }
                let next = tokio::time::timeout_at(deadline, self.heard.as_mut().unwrap().recv()).await;
                match next {
                    Ok(Some(told)) => self.told.push(told.report),
                    _ => panic!("{place}: {} was not told to {commit}: {:#?}", state.name(), self.told),
                }
            }
        }
    }

    /// What a commit was told last.
    pub fn last(&mut self, commit: &str) -> Option<Report> {
        self.listen();
        self.told.iter().rev().find(|report| report.commit == commit && report.rollout.is_none()).cloned()
    }

    /// How long it has taken so far, in seconds.
    pub fn elapsed(&self) -> i64 {
        self.cluster.now().duration_since(self.start).as_secs()
    }

    /// A sender of hints, for whoever hears of commits.
    pub fn hints(&self) -> mpsc::Sender<Hint> {
        self.hints.clone().unwrap()
    }

    pub fn get(&self, group: &str, plural: &str, name: &str) -> Option<Arc<Object>> {
        let namespace = if plural == "namespaces" || plural == "customresourcedefinitions" { "" } else { "default" };
        self.cluster.with(|store| store.get(group, plural, namespace, name).cloned())
    }

    pub fn rollout(&self, name: &str) -> Value {
        self.get("argoproj.io", "rollouts", name).unwrap().value.clone()
    }

    pub fn list(&self, group: &str, plural: &str) -> Vec<Value> {
        self.cluster.with(|store| store.list(group, plural, "default").map(|object| object.value.clone()).collect())
    }

    /// Somebody else patches an object.
    pub fn patch(&self, group: &str, version: &str, plural: &str, sub: &str, name: &str, patch: Value) -> Outcome {
        let request = Request {
            verb: Verb::Patch(PatchType::Merge),
            group: group.into(),
            version: version.into(),
            resource: plural.into(),
            subresource: sub.into(),
            namespace: "default".into(),
            name: name.into(),
            body: Some(patch),
            agent: "kubectl-edit".into(),
            ..Request::default()
        };
        self.cluster.apply(request).0
    }

    /// Somebody else creates an object.
    pub fn create(&self, group: &str, version: &str, plural: &str, body: Value) -> Outcome {
        let request = Request {
            verb: Verb::Create,
            group: group.into(),
            version: version.into(),
            resource: plural.into(),
            namespace: "default".into(),
            body: Some(body),
            agent: "kubectl-create".into(),
            ..Request::default()
        };
        self.cluster.apply(request).0
    }

    /// Somebody creates a GitSource.
    pub fn source(&self, body: Value) {
        self.create("tidegate.dev", "v1alpha1", "gitsources", body).unwrap();
    }

    pub fn git_source(&self, name: &str) -> Value {
        self.get("tidegate.dev", "gitsources", name).unwrap().value.clone()
    }

    /// Somebody else deletes an object.
    pub fn delete(&self, group: &str, version: &str, plural: &str, name: &str) {
        let request = Request {
            verb: Verb::Delete,
            group: group.into(),
            version: version.into(),
            resource: plural.into(),
            namespace: "default".into(),
            name: name.into(),
            ..Request::default()
        };
        self.cluster.apply(request).0.unwrap();
    }

    /// What was changed since a version, but for what a cluster does by itself.
    pub fn written_since(&self, version: u64) -> Vec<String> {
        self.cluster.with(|store| {
            let own = ["leases", "events", "nodes"];
            let changes = store.changes_since(version);
            let changes = changes.into_iter().filter(|change| !own.contains(&change.kind.plural.as_str()));
            changes.map(|change| format!("{} {}", change.kind.plural, change.object.name())).collect()
        })
    }

    /// The number at the end of this line of /metrics.
    pub fn metric(&self, line: &str) -> f64 {
        let metrics = self.sources.as_ref().unwrap().metrics();
        let page = metrics.with(|metrics| metrics.page(&Objects::default(), &Gauges::default(), self.cluster.now()));
        let found = page.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("{line} is not in\n{page}"))
    }

    /// What the source has recorded.
    pub fn status(&self) -> api::GitSourceStatus {
        let map = self.get("", "configmaps", "tidegate.shop").unwrap();
        let text = map.value.str_at(&["data", "status"]).unwrap().to_owned();
        api::read(&Value::from_json(text.as_bytes()).unwrap()).object
    }

    pub async fn end(mut self) {
        self.kill().await;
        self.cluster.close();
    }
}

/// A ConfigMap.
pub fn map(name: &str, text: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: '{text}'}}\n---\n")
}

/// A canary with two Services and four steps, that gives up after 30 seconds without progress.
pub fn web(image: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {{name: web}}
spec:
  replicas: 4
  progressDeadlineSeconds: 30
  progressDeadlineAbort: true
  selector: {{matchLabels: {{app: web}}}}
  strategy:
    canary:
      stableService: web
      canaryService: web-canary
      steps: [{{setWeight: 25}}, {{pause: {{duration: 10s}}}}, {{setWeight: 50}}, {{pause: {{duration: 10s}}}}]
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: main, image: '{image}', ports: [{{containerPort: 80}}]}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: web}}
spec: {{selector: {{app: web}}, ports: [{{port: 80}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: web-canary}}
spec: {{selector: {{app: web}}, ports: [{{port: 80}}]}}
---
"
    )
}
