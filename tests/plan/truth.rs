//! The forecast is true: what the daemon then does on the embedded cluster is what was forecast, step by step.

use std::{collections::BTreeMap, time::Duration};

use git2::{Repository, Signature, Time};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tempfile::TempDir;
use tidegate::{
    api::{self, Rollout},
    embedded::{
        controllers::{self, World},
        http::{
            cluster::{Cluster, Pace},
            service::{Front, Settings},
        },
        store::{
            Config, Store,
            request::{PatchType, Request, Verb},
        },
    },
    engine::key::Place,
    io::{
        api::Api,
        clock::Clock,
        daemon,
        source::{self, Given, Hint},
    },
    kubernetes::{object, value::Value},
    manifest,
    model::{parse, replica_set::ReplicaSet},
    plan::{
        RolloutPlan, Side, Starts,
        forecast::{Forecast, Outcome},
        recorder::{Expects, Recorder, Scene},
    },
    rollout::intent,
    sim::{
        forecast::approval,
        plan::{Reading, Sides, make},
    },
    value,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::cases::{Case, all, rules};

/// How often is looked.
const FRAME: Duration = Duration::from_millis(20);

/// A repository, a cluster and the daemon between them, in virtual time.
pub struct Bed {
    cluster: Cluster,
    folder: TempDir,
    repository: Repository,
    hints: mpsc::Sender<Hint>,
    told: mpsc::Receiver<source::Told>,
    stops: Vec<oneshot::Sender<()>>,
    tasks: Vec<JoinHandle<()>>,
    _cache: TempDir,
    count: i64,
}

impl Bed {
    pub fn new(definitions: &[Value]) -> Bed {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut store = Store::new(Config::new(start, 7));
        tidegate::sim::install::definitions(&mut store).unwrap();
        for definition in definitions {
            store
                .apply(Request {
                    verb: Verb::Create,
                    group: "apiextensions.k8s.io".into(),
                    version: "v1".into(),
                    resource: "customresourcedefinitions".into(),
                    body: Some(definition.clone()),
                    ..Request::default()
                })
                .unwrap();
        }
        let namespace = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        store
            .apply(Request {
                verb: Verb::Create,
                version: "v1".into(),
                resource: "namespaces".into(),
                body: Some(namespace),
                ..Request::default()
            })
            .unwrap();
        let world = World::new(controllers::Settings {
            seed: 7,
            // The forecast assumes that pods take as long as their own specifications say.
            jitter: SignedDuration::ZERO,
            ..Default::default()
        });
        let cluster = Cluster::new(store, Some(world), None, Pace::Runtime);
        let clock = Clock::runtime(start);
        tokio::spawn(cluster.clone().drive());
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut options = git2::RepositoryInitOptions::new();
        options.bare(true).initial_head("main").external_template(false);
        let repository = Repository::init_opts(folder.path(), &options).unwrap();
        let api = || Api::new(Client::new(Front::new(cluster.clone(), Settings::default()), "default"));
        let (mut stops, mut tasks) = (Vec::new(), Vec::new());
        let mut stop = || {
            let (stop, stopped) = oneshot::channel();
            stops.push(stop);
            async move { drop(stopped.await) }
        };
        let settings = daemon::Settings { clock, ..daemon::Settings::default() };
        tasks.push(tokio::spawn(daemon::run(api(), settings, stop())));
        let wire = value!({"spec": {"url": "https://git.example/shop.git", "path": "deploy", "interval": "10m",
            "serviceAccountName": "deployer", "allow": {"kinds": ["*"], "namespaces": ["*"]}}});
        let spec = parse::git_source(&api::read(&wire).object).into_result().unwrap();
        let given =
            Given { namespace: "shop".into(), name: "shop".into(), spec, folder: Some(folder.path().to_owned()) };
        let (hints, hinted) = mpsc::channel(16);
        let (tell, told) = mpsc::channel(4096);
        let settings = source::Settings {
            given: vec![given],
            cache: cache.path().to_owned(),
            clock,
            ..source::Settings::default()
        };
        tasks.push(tokio::spawn(source::run(api(), settings, hinted, Some(tell), stop())));
        Bed { cluster, folder, repository, hints, told, stops, tasks, _cache: cache, count: 0 }
    }

    pub async fn push(&mut self, files: &[(String, String)]) {
        self.commit(files, "change").await;
    }

    /// Commits with a message, and lets the daemon know.
    pub async fn commit(&mut self, files: &[(String, String)], message: &str) -> String {
        self.count += 1;
        let repository = &self.repository;
        let mut index = git2::Index::new().unwrap();
        for (path, text) in files {
            let zero = git2::IndexTime::new(0, 0);
            let id = repository.blob(text.as_bytes()).unwrap();
            let entry = git2::IndexEntry {
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
            };
            index.add(&entry).unwrap();
        }
        let tree = repository.find_tree(index.write_tree_to(repository).unwrap()).unwrap();
        let who = Signature::new("dev", "dev@example.org", &Time::new(1_700_000_000 + self.count, 0)).unwrap();
        let parent = repository.find_reference("refs/heads/main").ok().and_then(|head| head.peel_to_commit().ok());
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        let commit = repository.commit(None, &who, &who, message, &tree, &parents).unwrap();
        repository.reference("refs/heads/main", commit, true, "").unwrap();
        assert!(self.folder.path().exists());
        self.hints.send(Hint::Source(Place::new("shop", "shop"))).await.unwrap();
        commit.to_string()
    }

    /// What a commit is told when it has succeeded.
    pub async fn succeeds(&mut self, commit: &str) -> String {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(1800);
        loop {
            let told = tokio::time::timeout_at(deadline, self.told.recv()).await.unwrap().unwrap();
            if told.report.commit == commit && told.report.state == tidegate::sync::State::Success {
                return told.report.words;
            }
        }
    }

    fn rollout(&self, name: &str) -> Option<Value> {
        self.cluster.with(|store| Some(store.get("argoproj.io", "rollouts", "shop", name)?.value.clone()))
    }

    /// The ReplicaSets of a Rollout's Experiments, and the AnalysisRuns of both.
    fn compared(&self, rollout: &Value) -> (Vec<Value>, Vec<Value>) {
        let mut runs = self.owned(rollout, "argoproj.io", "analysisruns");
        let mut sets = Vec::new();
        for experiment in self.owned(rollout, "argoproj.io", "experiments") {
            runs.extend(self.owned(&experiment, "argoproj.io", "analysisruns"));
            sets.extend(self.owned(&experiment, "apps", "replicasets"));
        }
        (sets, runs)
    }

    fn owned(&self, rollout: &Value, group: &str, plural: &str) -> Vec<Value> {
        let uid = rollout.str_at(&["metadata", "uid"]).unwrap_or_default();
        self.cluster.with(|store| {
            let all = store.list(group, plural, "shop").map(|object| object.value.clone());
            all.filter(|object| object::controller(object).as_deref() == Some(uid)).collect()
        })
    }

    /// Gives the approval that a Rollout waits for.
    fn approve(&self, name: &str) -> Option<String> {
        let object = self.rollout(name)?;
        let rollout: Rollout = api::read(&object).object;
        let sets: Vec<ReplicaSet> = self.owned(&object, "apps", "replicasets").iter().map(ReplicaSet::of).collect();
        let what = approval(&rollout, &sets)?;
        let patch = intent::promote(&rollout, intent::Promotion::Next).ok()?.status?;
        let request = Request {
            verb: Verb::Patch(PatchType::Merge),
            group: "argoproj.io".into(),
            version: "v1alpha1".into(),
            resource: "rollouts".into(),
            namespace: "shop".into(),
            name: name.into(),
            subresource: "status".into(),
            body: Some(patch),
            ..Request::default()
        };
        self.cluster.apply(request).0.unwrap();
        Some(what)
    }

    /// Waits until a Rollout is healthy, with nothing but its stable version.
    async fn settle(&self, name: &str) {
        for _ in 0..100_000 {
            tokio::time::sleep(FRAME).await;
            self.approve(name);
            let Some(rollout) = self.rollout(name) else { continue };
            let is_healthy = rollout.str_at(&["status", "phase"]) == Some("Healthy");
            if is_healthy && Recorder::is_tidy(&rollout, &self.owned(&rollout, "apps", "replicasets")) {
                return;
            }
        }
        panic!("{name} does not settle: {:?}", self.rollout(name));
    }

    /// Lets the clock come to a whole second, as forecasts begin at one.
    async fn whole_second(&self) {
        let now = self.cluster.now();
        let next = Timestamp::from_second(now.as_second() + 61).unwrap();
        tokio::time::sleep(next.duration_since(now).unsigned_abs()).await;
    }

    pub async fn end(mut self) {
        for stop in self.stops.drain(..) {
            let _ = stop.send(());
        }
        for task in self.tasks.drain(..) {
            task.await.unwrap();
        }
        self.cluster.close();
    }
}

/// What really happens to a Rollout, recorded by the recorder of the forecast.
async fn really(world: &mut Bed, plan: &RolloutPlan, new: &[(String, String)]) -> Forecast {
    let name = plan.id.name.as_str();
    let before = world.rollout(name);
    let expects = match plan.starts {
        Starts::NewRollout | Starts::Rollback { .. } => Expects::Version,
        _ => Expects::Size,
    };
    let (sets, compared, runs) = match &before {
        Some(before) => {
            let (compared, runs) = world.compared(before);
            (world.owned(before, "apps", "replicasets"), compared, runs)
        }
        None => (Vec::new(), Vec::new(), Vec::new()),
    };
    let start = world.cluster.now();
    let scene =
        before.as_ref().map(|rollout| Scene { now: start, rollout, sets: &sets, compared: &compared, runs: &runs });
    let mut recorder = Recorder::new(start, expects, scene);
    world.push(new).await;
    let longest = plan.forecast.as_ref().unwrap().ends.saturating_add(SignedDuration::from_hours(2));
    let mut seen = None;
    loop {
        tokio::time::sleep(FRAME).await;
        let now = world.cluster.now();
        let version = world.cluster.with(|store| store.version());
        if seen == Some(version) {
            assert!(now.duration_since(start) < longest, "{name} does not end: {:?}", world.rollout(name));
            continue;
        }
        seen = Some(version);
        let Some(rollout) = world.rollout(name) else { continue };
        let sets = world.owned(&rollout, "apps", "replicasets");
        let (compared, runs) = world.compared(&rollout);
        let is_applied = before.as_ref().is_none_or(|before| {
            before.at(&["metadata", "generation"]) != rollout.at(&["metadata", "generation"])
                || rollout.at(&["spec", "workloadRef"]).is_some()
        });
        if !is_applied {
            assert!(now.duration_since(start) < SignedDuration::from_secs(60), "{name} is not changed");
            continue;
        }
        recorder.look(Scene { now, rollout: &rollout, sets: &sets, compared: &compared, runs: &runs });
        if let Some(what) = world.approve(name) {
            recorder.approve(now, &what);
        }
        if recorder.is_over() && (Recorder::is_tidy(&rollout, &sets) || recorder.is_degraded()) {
            let message = rollout.str_at(&["status", "message"]).unwrap_or_default();
            return recorder.finish(now, message);
        }
        assert!(now.duration_since(start) < longest, "{name} does not end: {:?}", rollout.get("status"));
    }
}

/// What must be equal, and what nearly.
fn compare(name: &str, forecast: &Forecast, real: &Forecast, misses: &mut Vec<String>) {
    let rows = |forecast: &Forecast| -> Vec<String> {
        let row = |step: &tidegate::plan::forecast::Step| {
            let analyses: Vec<String> = step
                .analyses
                .iter()
                .map(|analysis| format!("{} {:?} {:?}", analysis.role, analysis.metrics, analysis.arguments))
                .collect();
            format!(
                "{}/{} {} weight {} traffic {} pods {}+{}={} waits for {} {analyses:?}",
                step.number,
                step.of,
                step.what,
                step.weight,
                step.traffic,
                step.stable,
                step.canary,
                step.total,
                step.waits_for.as_str()
            )
        };
        let approvals =
            forecast.approvals.iter().map(|approval| format!("approval at {} {}", approval.step, approval.what));
        let ends = format!("{} peak {} lowest {:?}", forecast.outcome.as_str(), forecast.peak.pods, forecast.lowest);
        forecast.steps.iter().map(row).chain(approvals).chain([ends]).collect()
    };
    let (expected, happened) = (rows(forecast), rows(real));
    if expected != happened {
        misses.push(format!(
            "{name}:\n  forecast\n    {}\n  happened\n    {}",
            expected.join("\n    "),
            happened.join("\n    ")
        ));
        return;
    }
    let times = forecast.steps.iter().zip(&real.steps).map(|(one, other)| (one.at, other.at));
    for (index, (one, other)) in times.chain([(forecast.ends, real.ends)]).enumerate() {
        if one.saturating_sub(other).abs() > SignedDuration::from_secs(1) {
            misses.push(format!("{name}: row {index} was forecast for {one:?} and happened at {other:?}"));
        }
    }
}

fn definition(group: &str, version: &str, plural: &str, kind: &str) -> Value {
    value!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")}, "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
                {"name": "v1alpha3", "served": true, "storage": false, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

/// A change of one image under a strategy.
fn image(name: &str, replicas: i32, strategy: &str, more: &str) -> Case {
    let web = |image: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  replicas: {replicas}\n  \
             selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
             spec: {{containers: [{{name: app, image: '{image}'}}]}}\n  strategy: {strategy}\n{more}"
        )
    };
    let file = |text: String| vec![("deploy/web.yaml".to_owned(), text)];
    Case { name: name.into(), old: file(web("web:1")), new: file(web("web:2")), past: Vec::new() }
}

/// Scenarios beyond those with stored outputs.
fn more() -> Vec<Case> {
    let job = |name: &str, script: &str| {
        format!(
            "---\napiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {{name: {name}}}\nspec:\n  args: [{{name: service}}]\n  \
             metrics:\n  - name: check\n    count: 2\n    interval: 15s\n    provider:\n      job:\n        spec:\n          backoffLimit: 0\n          \
             template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: busybox, command: [sh, -c, '{script}']}}]}}}}\n"
        )
    };
    let services = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n\
        ---\napiVersion: v1\nkind: Service\nmetadata: {name: web-preview}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n";
    let analysis = "{templates: [{templateName: check}], args: [{name: service, value: web}]}";
    vec![
        image("one pod", 1, "{canary: {steps: [{setWeight: 50}, {pause: {duration: 5}}]}}", ""),
        image(
            "three pods",
            3,
            "{canary: {steps: [{setWeight: 10}, {pause: {duration: 5}}, {setWeight: 90}, {pause: {duration: 5}}]}}",
            "",
        ),
        image(
            "ten pods",
            10,
            "{canary: {steps: [{setWeight: 5}, {pause: {duration: 7}}, {setWeight: 33}, {pause: {}}, {setWeight: 66}]}}",
            "",
        ),
        image(
            "surge zero",
            4,
            "{canary: {maxSurge: 0, maxUnavailable: 1, steps: [{setWeight: 50}, {pause: {duration: 5}}]}}",
            "",
        ),
        image(
            "surge whole",
            4,
            "{canary: {maxSurge: 100%, maxUnavailable: 0, steps: [{setWeight: 50}, {pause: {duration: 5}}]}}",
            "",
        ),
        image("no pause", 6, "{canary: {steps: [{setWeight: 20}, {setWeight: 40}, {setWeight: 80}]}}", ""),
        image(
            "backwards",
            5,
            "{canary: {steps: [{setWeight: 60}, {pause: {duration: 5}}, {setWeight: 20}, {pause: {duration: 5}}]}}",
            "",
        ),
        image(
            "pause first",
            4,
            "{canary: {steps: [{pause: {duration: 20}}, {setWeight: 50}, {pause: {duration: 5}}]}}",
            "",
        ),
        image("long pause", 4, "{canary: {steps: [{setWeight: 50}, {pause: {duration: 1h}}]}}", ""),
        image("blue-green at once", 3, "{blueGreen: {activeService: web}}", services),
        image(
            "blue-green delay",
            3,
            "{blueGreen: {activeService: web, previewService: web-preview, scaleDownDelaySeconds: 5, autoPromotionSeconds: 3}}",
            services,
        ),
        image(
            "blue-green preview size",
            4,
            "{blueGreen: {activeService: web, previewService: web-preview, previewReplicaCount: 1, autoPromotionEnabled: false}}",
            services,
        ),
        image(
            "job",
            4,
            &format!("{{canary: {{steps: [{{setWeight: 50}}, {{analysis: {analysis}}}, {{setWeight: 75}}]}}}}"),
            &job("check", "sleep 3"),
        ),
        image(
            "blue-green job",
            2,
            &format!("{{blueGreen: {{activeService: web, prePromotionAnalysis: {analysis}}}}}"),
            &(services.to_owned() + &job("check", "exit 0")),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn the_forecast_is_what_then_happens() {
    let wanted = std::env::var("TIDEGATE_TRUTH").unwrap_or_default();
    let mut misses = Vec::new();
    let mut scenarios = 0;
    let own = all().into_iter().filter(|case| case.past.is_empty() && case.name != "new-namespace");
    for case in own.chain(more()).filter(|case| case.name.contains(&wanted)) {
        let side = |files: &[(String, String)]| {
            let files = files.iter().map(|(path, text)| manifest::read(path.clone(), text.as_bytes())).collect();
            Reading::of(Side::default(), files)
        };
        let plan = make(&Sides { old: side(&case.old), new: side(&case.new) }, &rules());
        // A provider elsewhere cannot be asked in virtual time, and a stand-in of the forecast is in no cluster.
        let is_elsewhere = |text: &str| text.contains("prometheus") || case.name.ends_with("-not-given");
        let files: BTreeMap<&String, &String> = case.new.iter().map(|(path, text)| (path, text)).collect();
        if files.values().any(|text| is_elsewhere(text)) {
            continue;
        }
        for rollout in plan.rollouts.iter().filter(|rollout| rollout.forecast.is_some()) {
            let forecast = rollout.forecast.as_ref().unwrap();
            if forecast.outcome == Outcome::Unfinished {
                continue;
            }
            let mut world = Bed::new(&[
                definition("networking.istio.io", "v1", "virtualservices", "VirtualService"),
                definition("networking.istio.io", "v1", "destinationrules", "DestinationRule"),
            ]);
            if !case.old.is_empty() {
                world.push(&case.old).await;
                world.settle(&rollout.id.name).await;
                world.whole_second().await;
            }
            let real = really(&mut world, rollout, &case.new).await;
            compare(&format!("{} {}", case.name, rollout.id), forecast, &real, &mut misses);
            scenarios += 1;
            world.end().await;
        }
    }
    println!("{scenarios} scenarios, {} misses", misses.len());
    assert!(misses.is_empty(), "{}", misses.join("\n"));
    assert!(scenarios >= 25 || !wanted.is_empty(), "{scenarios} scenarios");
}
