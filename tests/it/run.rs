//! The daemon on the embedded cluster, over its real client and a real socket: the examples roll out.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{Either, Full};
use jiff::Timestamp;
use kube::{Client, client::Body};
use tidegate::{
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
    io::{api::Api, daemon, outbound::Outbound},
    kubernetes::{object::Object, value::Value},
    value,
};
use tokio::sync::oneshot;
use tower::Service;

/// A cluster with our definitions, and the daemon at work in it.
struct Scene {
    cluster: Cluster,
    stop: Option<oneshot::Sender<()>>,
    daemon: tokio::task::JoinHandle<()>,
}

impl Scene {
    fn new() -> Scene {
        Scene::refusing("nothing")
    }

    /// One whose server lets nobody create objects of this resource.
    fn refusing(plural: &'static str) -> Scene {
        Scene::with(plural, settings())
    }

    fn with(plural: &'static str, settings: daemon::Settings) -> Scene {
        let mut store = Store::new(Config::new(Timestamp::now(), 1));
        tidegate::sim::install::definitions(&mut store).unwrap();
        let world = World::new(controllers::Settings { seed: 1, ..Default::default() });
        let cluster = Cluster::new(store, Some(world), None, Pace::Wall);
        tokio::spawn(cluster.clone().drive());
        let front = Front::new(cluster.clone(), Settings::default());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let mut front = front.clone();
            async move {
                // A bug that only one Rollout meets, in the task of its pass.
                assert!(!request.uri().path().ends_with("/rollouts/boom"), "a bug");
                if request.method() == http::Method::POST && request.uri().path().ends_with(plural) {
                    let status = value!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                        "reason": "Forbidden", "message": "exceeded quota"});
                    let body = Either::Right(Full::new(Bytes::from(status.to_json())));
                    return Ok(http::Response::builder().status(403).body(body).unwrap());
                }
                front.call(request).await.map(|answer| answer.map(Either::Left))
            }
        });
        let api = Api::new(Client::new(service, "default"));
        let (stop, stopped) = oneshot::channel();
        let stopped = async move { drop(stopped.await) };
        let daemon = tokio::spawn(daemon::run(api, settings, stopped));
        Scene { cluster, stop: Some(stop), daemon }
    }

    fn ask(&self, verb: Verb, group: &str, version: &str, plural: &str, name: &str, body: Value) {
        let request = Request {
            verb,
            group: group.into(),
            version: version.into(),
            resource: plural.into(),
            namespace: "default".into(),
            name: name.into(),
            body: Some(body),
            agent: "test".into(),
            ..Request::default()
        };
        self.cluster.apply(request).0.unwrap();
    }

    /// Creates the objects of an example.
    fn create(&self, example: &str) {
        let file = format!("{}/examples/{example}", env!("CARGO_MANIFEST_DIR"));
        let read = tidegate::manifest::read(&file, &std::fs::read(&file).unwrap());
        for document in read.objects {
            let body = document.value.clone();
            let (group, version, plural) = match body.str_at(&["kind"]).unwrap() {
                "Rollout" => ("argoproj.io", "v1alpha1", "rollouts"),
                "AnalysisTemplate" => ("argoproj.io", "v1alpha1", "analysistemplates"),
                "Service" => ("", "v1", "services"),
                other => panic!("no resource for {other}"),
            };
            self.ask(Verb::Create, group, version, plural, "", body);
        }
    }

    fn rollout(&self, name: &str) -> Arc<Object> {
        self.cluster.with(|store| store.get("argoproj.io", "rollouts", "default", name).cloned()).unwrap()
    }

    /// Waits until the Rollout is in this phase, for the generation that was asked for.
    async fn phase(&self, name: &str, phase: &str) -> Value {
        let mut newest = self.cluster.newest();
        let reached = async {
            loop {
                newest.borrow_and_update();
                let rollout = self.rollout(name).value.clone();
                let generation = rollout.int_at(&["metadata", "generation"]).unwrap().to_string();
                if rollout.str_at(&["status", "phase"]) == Some(phase)
                    && rollout.str_at(&["status", "observedGeneration"]) == Some(&generation)
                {
                    return rollout;
                }
                newest.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), reached).await.unwrap_or_else(|_| {
            panic!("{name} is not {phase}: {}", self.rollout(name).value.get("status").unwrap().to_json())
        })
    }

    /// Waits until this holds.
    async fn until(&self, holds: impl Fn(&Store) -> bool) {
        let mut newest = self.cluster.newest();
        let reached = async {
            loop {
                newest.borrow_and_update();
                if self.cluster.with(|store| holds(store)) {
                    return;
                }
                newest.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), reached).await.expect("it comes to hold");
    }

    /// Waits until an AnalysisRun is in this phase.
    async fn run_phase(&self, name: &str, phase: &str) -> Value {
        let mut newest = self.cluster.newest();
        let get = || self.cluster.with(|store| store.get("argoproj.io", "analysisruns", "default", name).cloned());
        let reached = async {
            loop {
                newest.borrow_and_update();
                let run = get().map(|run| run.value.clone()).unwrap_or_default();
                if run.str_at(&["status", "phase"]) == Some(phase) {
                    return run;
                }
                newest.changed().await.unwrap();
            }
        };
        let late = || panic!("{name} is not {phase}: {}", get().map(|run| run.value.to_json()).unwrap_or_default());
        tokio::time::timeout(Duration::from_secs(60), reached).await.unwrap_or_else(|_| late())
    }

    /// Waits until an event of this reason was written; answers what those of this reason say.
    async fn told(&self, reason: &str) -> Vec<String> {
        let mut newest = self.cluster.newest();
        let of_reason = |store: &mut Store| -> Vec<String> {
            let events = store.list("", "events", "default").map(|event| event.value.clone());
            let events = events.filter(|event| event.str_at(&["reason"]) == Some(reason));
            events.filter_map(|event| event.str_at(&["message"]).map(str::to_owned)).collect()
        };
        let reached = async {
            loop {
                newest.borrow_and_update();
                let told = self.cluster.with(of_reason);
                if !told.is_empty() {
                    return told;
                }
                newest.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), reached).await.unwrap_or_else(|_| panic!("no event {reason}"))
    }

    fn set_image(&self, name: &str, image: &str) {
        self.ask(Verb::Patch(PatchType::Json), "argoproj.io", "v1alpha1", "rollouts", name, to_image(image));
    }

    async fn end(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(20), self.daemon).await.unwrap().unwrap();
        self.cluster.close();
    }
}

fn to_image(image: &str) -> Value {
    value!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}])
}

/// S12: the server is asked who wrote a ReplicaSet that only looks like what is asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_set_that_somebody_edited_is_not_the_new_version() {
    let (scene, image) = (Scene::new(), "registry.example/web:2.0");
    scene.create("canary.yaml");
    let first = scene.phase("web", "Healthy").await;
    let set = format!("web-{}", first.str_at(&["status", "stableRS"]).unwrap());
    scene.ask(Verb::Patch(PatchType::Json), "apps", "v1", "replicasets", &set, to_image(image));
    scene.set_image("web", image);
    let paused = scene.phase("web", "Paused").await;
    assert_ne!(paused.at(&["status", "currentPodHash"]), first.at(&["status", "currentPodHash"]));
    assert_eq!(paused.at(&["status", "stableRS"]), first.at(&["status", "stableRS"]));
    // What is the default anyway makes no new version.
    let protocol = value!([{"op": "add", "path": "/spec/template/spec/containers/0/ports/0/protocol", "value": "TCP"}]);
    scene.ask(Verb::Patch(PatchType::Json), "argoproj.io", "v1alpha1", "rollouts", "web", protocol);
    let still = scene.phase("web", "Paused").await;
    assert_eq!(still.at(&["status", "currentPodHash"]), paused.at(&["status", "currentPodHash"]));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_that_needs_what_is_not_there_says_so_in_its_status_and_in_an_event() {
    let scene = Scene::new();
    scene.create("../tests/verbs/unsupported.yaml");
    let rollout = scene.phase("web", "Degraded").await;
    let needs = "The Rollout \"web\" is invalid: traffic routing with example/unheard-of is not part of this version of Tidegate";
    assert_eq!(rollout.str_at(&["status", "message"]), Some(format!("InvalidSpec: {needs}").as_str()));
    let told = |kind: &str| {
        let conditions = rollout.list_at(&["status", "conditions"]).iter();
        let mut told = conditions.filter(|told| told.str_at(&["type"]) == Some(kind));
        told.next().and_then(|told| Some((told.str_at(&["status"])?.to_owned(), told.str_at(&["message"])?.to_owned())))
    };
    assert_eq!(told("InvalidSpec"), Some(("True".to_owned(), needs.to_owned())));
    assert_eq!(told("Stalled"), Some(("True".to_owned(), format!("InvalidSpec: {needs}"))));
    assert_eq!(scene.told("InvalidSpec").await, [needs]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_canary_example_pauses_and_is_promoted() {
    let scene = Scene::new();
    scene.create("canary.yaml");
    let first = scene.phase("web", "Healthy").await;
    scene.set_image("web", "registry.example/web:2.0");
    let paused = scene.phase("web", "Paused").await;
    assert_eq!(paused.int_at(&["status", "updatedReplicas"]), Some(2));
    assert_eq!(paused.at(&["status", "stableRS"]), first.at(&["status", "stableRS"]));
    let patch = value!({"status": {"pauseConditions": null}});
    let request = Request {
        verb: Verb::Patch(PatchType::Merge),
        group: "argoproj.io".into(),
        version: "v1alpha1".into(),
        resource: "rollouts".into(),
        namespace: "default".into(),
        name: "web".into(),
        subresource: "status".into(),
        body: Some(patch),
        ..Request::default()
    };
    scene.cluster.apply(request).0.unwrap();
    let second = scene.phase("web", "Healthy").await;
    assert_eq!(second.at(&["status", "stableRS"]), second.at(&["status", "currentPodHash"]));
    assert_ne!(second.at(&["status", "stableRS"]), first.at(&["status", "stableRS"]));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_blue_green_example_waits_for_a_person() {
    let scene = Scene::new();
    scene.create("blue-green.yaml");
    let first = scene.phase("shop", "Healthy").await;
    scene.set_image("shop", "registry.example/shop:2.0");
    let paused = scene.phase("shop", "Paused").await;
    let selector = |rollout: &Value, name: &str| rollout.str_at(&["status", "blueGreen", name]).map(str::to_owned);
    assert_eq!(selector(&paused, "activeSelector"), selector(&first, "activeSelector"));
    assert_ne!(selector(&paused, "previewSelector"), selector(&first, "previewSelector"));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_analysis_example_goes_on_after_its_test_and_back_without() {
    let scene = Scene::new();
    scene.create("analysis.yaml");
    let first = scene.phase("checked", "Healthy").await;
    scene.set_image("checked", "registry.example/web:2.0");
    let second = scene.phase("checked", "Healthy").await;
    assert_ne!(second.at(&["status", "stableRS"]), first.at(&["status", "stableRS"]));
    let fails = value!([{
        "op": "replace",
        "path": "/spec/metrics/0/provider/job/spec/template/spec/containers/0/args/0",
        "value": "exit 3",
    }, {"op": "replace", "path": "/spec/metrics/0/provider/job/spec/backoffLimit", "value": 0}]);
    scene.ask(Verb::Patch(PatchType::Json), "argoproj.io", "v1alpha1", "analysistemplates", "smoke", fails);
    scene.set_image("checked", "registry.example/web:3.0");
    let aborted = scene.phase("checked", "Degraded").await;
    assert_eq!(aborted.at(&["status", "stableRS"]), second.at(&["status", "stableRS"]));
    let message = aborted.str_at(&["status", "message"]).unwrap();
    assert!(message.contains("Step-based analysis phase error/failed: Metric \"smoke\" assessed Failed"), "{message}");
    let runs = |store: &Store| -> Vec<String> {
        let runs = store.list("argoproj.io", "analysisruns", "default");
        runs.map(|run| run.value.str_at(&["status", "phase"]).unwrap_or_default().to_owned()).collect()
    };
    let mut phases = scene.cluster.with(|store| runs(store));
    phases.sort();
    assert_eq!(phases, ["Failed", "Successful"]);
    scene.end().await;
}

/// What `--record` keeps is all that a decision needs, whatever machine it is of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_recorded_decision_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let settings = daemon::Settings { record: Some(folder.path().to_owned()), ..settings() };
    let scene = Scene::with("nothing", settings);
    scene.create("analysis.yaml");
    scene.phase("checked", "Healthy").await;
    scene.set_image("checked", "registry.example/web:2.0");
    scene.phase("checked", "Healthy").await;
    let (address, _asked) = web("1").await;
    let metric = value!({"name": "m", "successCondition": "result == 1", "interval": "1s", "count": 2,
        "provider": {"web": {"url": address}}});
    let run = value!({"kind": "AnalysisRun", "apiVersion": "argoproj.io/v1alpha1", "metadata": {"name": "alone"},
        "spec": {"metrics": [metric]}});
    scene.ask(Verb::Create, "argoproj.io", "v1alpha1", "analysisruns", "", run);
    scene.run_phase("alone", "Successful").await;
    let container = value!({"name": "c", "image": "registry.example/web:1.0"});
    let template = value!({"metadata": {"labels": {"app": "e"}}, "spec": {"containers": [container]}});
    let version = value!({"name": "a", "selector": {"matchLabels": {"app": "e"}}, "template": template, "service": {}});
    let experiment = value!({"kind": "Experiment", "apiVersion": "argoproj.io/v1alpha1", "metadata": {"name": "e"},
        "spec": {"duration": "1s", "templates": [version]}});
    scene.ask(Verb::Create, "argoproj.io", "v1alpha1", "experiments", "", experiment);
    let over = |store: &Store| {
        let experiment = store.get("argoproj.io", "experiments", "default", "e").unwrap();
        experiment.value.str_at(&["status", "phase"]) == Some("Successful")
    };
    scene.until(over).await;
    // Its Services go back to their owner.
    scene.create("blue-green.yaml");
    scene.phase("shop", "Healthy").await;
    scene.ask(Verb::Delete, "argoproj.io", "v1alpha1", "rollouts", "shop", Value::object());
    let released = |store: &Store| {
        let mut services = store.list("", "services", "default");
        services.all(|service| service.value.at(&["spec", "selector", "rollouts-pod-template-hash"]).is_none())
    };
    scene.until(released).await;
    scene.end().await;
    let mut machines = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let record = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let replay =
            tidegate::engine::replay::replay(&record).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        assert!(replay.is_same && replay.broken.is_empty(), "{}: {replay:#?}", path.display());
        *machines.entry(replay.machine).or_insert(0) += 1;
    }
    println!("{machines:?}");
    assert_eq!(machines.keys().copied().collect::<Vec<_>>(), ["analysis", "experiment", "rollout", "service"]);
}

/// The hosts of the tests are on this machine.
fn settings() -> daemon::Settings {
    daemon::Settings { outbound: Outbound::anywhere(), ..daemon::Settings::default() }
}

/// Answers every request with one byte in two seconds, and tells of each that has come.
async fn slow_web() -> (String, tokio::sync::mpsc::UnboundedReceiver<()>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (asked, hears) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let asked = asked.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let _ = asked.send(());
                let mut answer = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await;
                while answer.is_ok() {
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    answer = stream.write_all(b"1").await;
                }
            });
        }
    });
    (address, hears)
}

/// More measurements than there are workers wait for servers that answer ever so slowly. Another namespace is served as if
/// they were not there, and a run that is terminated waits for its server no longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sr24_slow_metrics_of_one_namespace_hold_up_nobody_else() {
    let scene = Scene::new();
    scene.create("canary.yaml");
    scene.phase("web", "Healthy").await;
    scene.set_image("web", "registry.example/web:2.0");
    scene.phase("web", "Paused").await;
    let (address, mut asked) = slow_web().await;
    let request = |verb, plural: &str, namespace: &str, name: &str, body: Value| Request {
        verb,
        group: if plural == "namespaces" { "" } else { "argoproj.io" }.into(),
        version: if plural == "namespaces" { "v1" } else { "v1alpha1" }.into(),
        resource: plural.into(),
        namespace: namespace.into(),
        name: name.into(),
        body: Some(body),
        agent: "test".into(),
        ..Request::default()
    };
    let noisy = value!({"metadata": {"name": "noisy"}});
    scene.cluster.apply(request(Verb::Create, "namespaces", "", "", noisy)).0.unwrap();
    for number in 0..20 {
        let provider = value!({"web": {"url": address.clone(), "timeoutSeconds": 600, "jsonPath": "{$}"}});
        let metric = value!({"name": "slow", "successCondition": "true", "provider": provider});
        let run = value!({"kind": "AnalysisRun", "apiVersion": "argoproj.io/v1alpha1",
            "metadata": {"name": format!("run-{number}")}, "spec": {"metrics": [metric]}});
        scene.cluster.apply(request(Verb::Create, "analysisruns", "noisy", "", run)).0.unwrap();
    }
    for _ in 0..20 {
        let heard = tokio::time::timeout(Duration::from_secs(20), asked.recv()).await;
        heard.expect("all of them are sent").unwrap();
    }
    let begun = std::time::Instant::now();
    let abort = value!({"status": {"abort": true}});
    let abort = request(Verb::Patch(PatchType::Merge), "rollouts", "default", "web", abort);
    scene.cluster.apply(Request { subresource: "status".into(), ..abort }).0.unwrap();
    scene.phase("web", "Degraded").await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "the abort took {took:?}");
    let terminate = value!({"spec": {"terminate": true}});
    let terminate = request(Verb::Patch(PatchType::Merge), "analysisruns", "noisy", "run-7", terminate);
    scene.cluster.apply(terminate).0.unwrap();
    let mut newest = scene.cluster.newest();
    let ended = async {
        loop {
            newest.borrow_and_update();
            let run = scene.cluster.with(|store| store.get("argoproj.io", "analysisruns", "noisy", "run-7").cloned());
            let phase = run.and_then(|run| run.value.str_at(&["status", "phase"]).map(str::to_owned));
            if phase.is_some_and(|phase| phase == "Successful") {
                return;
            }
            newest.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("it ends though its server is slow");
    scene.end().await;
}

/// What belongs to no namespace is found all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_of_one_namespace_finds_templates_of_the_cluster() {
    let settings = daemon::Settings { namespace: Some("default".to_owned()), ..settings() };
    let scene = Scene::with("nothing", settings);
    let (address, _asked) = web("1").await;
    let template = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ClusterAnalysisTemplate", "metadata": {"name": "smoke"},
        "spec": {"metrics": [{"name": "m", "successCondition": "result == 1", "provider": {"web": {"url": address}}}]}});
    let request = Request {
        verb: Verb::Create,
        group: "argoproj.io".into(),
        version: "v1alpha1".into(),
        resource: "clusteranalysistemplates".into(),
        body: Some(template),
        ..Request::default()
    };
    scene.cluster.apply(request).0.unwrap();
    scene.create("canary.yaml");
    scene.phase("web", "Healthy").await;
    let templates = value!([{"templateName": "smoke", "clusterScope": true}]);
    let patch = value!([
        {"op": "replace", "path": "/spec/strategy", "value": {"canary": {"steps": [{"analysis": {"templates": templates}}]}}},
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example/web:2.0"},
    ]);
    scene.ask(Verb::Patch(PatchType::Json), "argoproj.io", "v1alpha1", "rollouts", "web", patch);
    let healthy = scene.phase("web", "Healthy").await;
    assert_eq!(healthy.at(&["status", "stableRS"]), healthy.at(&["status", "currentPodHash"]));
    scene.end().await;
}

/// Answers every request with this, as often as it is asked, and tells what it was asked.
async fn web(body: &'static str) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (asked, hears) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            asked.send(String::from_utf8_lossy(&head).into_owned()).unwrap();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, hears)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sr19_a_run_asks_the_web_with_a_secret_that_does_not_show_where_the_secret_may_go() {
    let scene = Scene::new();
    let (address, mut asked) = web("{\"rate\": 0.93}").await;
    let secret = value!({"metadata": {"name": "token"}, "stringData": {"key": "canary-secret"}});
    scene.ask(Verb::Create, "", "v1", "secrets", "", secret);
    let header = value!([{"key": "Authorization", "value": "Bearer {{args.token}}"}]);
    let metric = |name: &str, condition: &str| {
        value!({
            "name": name,
            "successCondition": condition,
            "consecutiveErrorLimit": 0,
            "provider": {"web": {"url": format!("{address}/{name}"), "jsonPath": "{$.rate}", "headers": header.clone()}},
        })
    };
    let run = |name: &str, metric: Value| {
        let from = value!({"secretKeyRef": {"name": "token", "key": "key"}});
        let spec = value!({"args": [{"name": "token", "valueFrom": from}], "metrics": [metric]});
        value!({"kind": "AnalysisRun", "apiVersion": "argoproj.io/v1alpha1", "metadata": {"name": name}, "spec": spec})
    };
    let create = |body: Value| scene.ask(Verb::Create, "argoproj.io", "v1alpha1", "analysisruns", "", body);
    create(run("good", metric("good", "result > 0.9")));
    let good = scene.run_phase("good", "Successful").await;
    let measured = &good.list_at(&["status", "metricResults"])[0].list_at(&["measurements"])[0];
    assert_eq!(measured.str_at(&["value"]), Some("0.93"));
    let head = asked.recv().await.unwrap().to_lowercase();
    assert!(head.starts_with("get /good http/1.1") && head.contains("authorization: bearer canary-secret"), "{head}");
    // SR19: a Secret that names hosts goes to no other one.
    let named = value!({"metadata": {"name": "token", "annotations": {"tidegate.dev/hosts": "prometheus.example"}}});
    scene.ask(Verb::Patch(PatchType::Merge), "", "v1", "secrets", "token", named);
    create(run("elsewhere", metric("elsewhere", "result > 0.9")));
    let refused = scene.run_phase("elsewhere", "Error").await;
    let measured = &refused.list_at(&["status", "metricResults"])[0].list_at(&["measurements"])[0];
    let message = measured.str_at(&["message"]).unwrap();
    assert!(
        message.contains(&format!("the Secret token may be sent to prometheus.example, not to {address}")),
        "{message}"
    );
    assert!(asked.try_recv().is_err(), "nothing was sent");
    let named = value!({"metadata": {"annotations": {"tidegate.dev/hosts": address.trim_start_matches("http://")}}});
    scene.ask(Verb::Patch(PatchType::Merge), "", "v1", "secrets", "token", named);
    create(run("bad", metric("bad", "result > 1 / len(\"{{args.token}}\" + nothing)")));
    let bad = scene.run_phase("bad", "Error").await;
    assert!(!bad.get("status").unwrap().to_json().contains("canary-secret"), "{bad}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datadog_and_graphite_are_asked_and_keys_do_not_show() {
    let scene = Scene::new();
    let create = |name: &str, metric: Value| {
        let body = value!({"kind": "AnalysisRun", "apiVersion": "argoproj.io/v1alpha1", "metadata": {"name": name},
            "spec": {"metrics": [metric]}});
        scene.ask(Verb::Create, "argoproj.io", "v1alpha1", "analysisruns", "", body);
    };
    let (address, mut asked) = web("{\"series\": [{\"pointlist\": [[1, 0.25]]}], \"echo\": \"canary-one\"}").await;
    let keys = value!({"address": address, "api-key": "canary-one", "app-key": "canary-two"});
    scene.ask(Verb::Create, "", "v1", "secrets", "", value!({"metadata": {"name": "dd"}, "stringData": keys}));
    let datadog = value!({"apiVersion": "v1", "interval": "5m", "query": "avg:x{*}",
        "secretRef": {"name": "dd", "namespaced": true}});
    create("datadog", value!({"name": "m", "successCondition": "result < 1", "provider": {"datadog": datadog}}));
    let run = scene.run_phase("datadog", "Successful").await;
    let measured = &run.list_at(&["status", "metricResults"])[0].list_at(&["measurements"])[0];
    assert_eq!(measured.str_at(&["value"]), Some("0.25"));
    let head = asked.recv().await.unwrap().to_lowercase();
    assert!(head.starts_with("get /api/v1/query?") && head.contains("dd-api-key: canary-one"), "{head}");
    assert!(!run.to_json().contains("canary-"), "{run}");
    let (address, _asked) = web("[{\"datapoints\": [[4, 1], [null, 2]]}]").await;
    let graphite = value!({"address": address, "query": "target=a.b"});
    create("graphite", value!({"name": "m", "failureCondition": "result[0] > 3", "provider": {"graphite": graphite}}));
    let run = scene.run_phase("graphite", "Failed").await;
    let measured = &run.list_at(&["status", "metricResults"])[0].list_at(&["measurements"])[0];
    assert_eq!(measured.str_at(&["value"]), Some("[4.000000]"));
    scene.end().await;
}

/// L8: what is not there is named, and taken up once it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_without_a_definition_is_named_until_it_has_one() {
    let scene = Scene::new();
    for name in ["stable", "canary"] {
        let service =
            value!({"metadata": {"name": name}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
        scene.ask(Verb::Create, "", "v1", "services", "", service);
    }
    let pods =
        value!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}});
    let canary = value!({"stableService": "stable", "canaryService": "canary", "trafficRouting": {"smi": {}},
        "steps": [{"setWeight": 20}, {"pause": {}}]});
    let rollout = value!({"kind": "Rollout", "apiVersion": "argoproj.io/v1alpha1", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": pods,
            "strategy": {"canary": canary}}});
    scene.ask(Verb::Create, "argoproj.io", "v1alpha1", "rollouts", "", rollout);
    let waits = scene.phase("web", "Degraded").await;
    let said = "The Rollout \"web\" is invalid: spec.strategy.canary.trafficRouting.smi: Invalid value: \"web\": the \
                server does not know trafficsplits.split.smi-spec.io/v1alpha1: its CustomResourceDefinition is not installed";
    let condition =
        waits.list_at(&["status", "conditions"]).iter().find(|it| it.str_at(&["type"]) == Some("InvalidSpec"));
    assert_eq!(condition.and_then(|condition| condition.str_at(&["message"])), Some(said));
    let schema = value!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let names = value!({"plural": "trafficsplits", "singular": "trafficsplit", "kind": "TrafficSplit"});
    let version = value!({"name": "v1alpha1", "served": true, "storage": true, "schema": schema});
    let definition = value!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "trafficsplits.split.smi-spec.io"},
        "spec": {"group": "split.smi-spec.io", "scope": "Namespaced", "names": names, "versions": [version]}});
    let request = Request {
        verb: Verb::Create,
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        resource: "customresourcedefinitions".into(),
        body: Some(definition),
        agent: "test".into(),
        ..Request::default()
    };
    scene.cluster.apply(request).0.unwrap();
    let healthy = scene.phase("web", "Healthy").await;
    assert!(!healthy.to_json().contains("InvalidSpec"), "{healthy}");
    let split = scene.cluster.with(|store| store.get("split.smi-spec.io", "trafficsplits", "default", "web").cloned());
    assert!(split.is_some());
    scene.end().await;
}

/// SR13: whoever may write an AnalysisRun writes its status, and a status is no proof of whose a Job is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sr13_a_run_that_names_anothers_job_leaves_it_alone() {
    let scene = Scene::new();
    let create = |namespace: &str, group: &str, version: &str, plural: &str, body: Value| {
        let request = Request {
            verb: Verb::Create,
            group: group.into(),
            version: version.into(),
            resource: plural.into(),
            namespace: namespace.into(),
            body: Some(body),
            agent: "test".into(),
            ..Request::default()
        };
        scene.cluster.apply(request).0.unwrap();
    };
    create(
        "",
        "",
        "v1",
        "namespaces",
        value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "victim"}}),
    );
    let pod = value!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox", "command": ["sleep", "900"]}]});
    let payroll = value!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "payroll"},
        "spec": {"suspend": true, "template": {"spec": pod.clone()}}});
    create("victim", "batch", "v1", "jobs", payroll.clone());
    create("default", "batch", "v1", "jobs", payroll);
    for (number, namespace) in ["victim", "default", "victim/jobs?a="].into_iter().enumerate() {
        let measurement = value!({"phase": "Running", "startedAt": "2026-01-01T00:00:00Z",
            "metadata": {"job-name": "payroll", "job-namespace": namespace}});
        let name = format!("evil{number}");
        let run = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "metadata": {"name": name.as_str()},
            "spec": {"terminate": true, "metrics": [{"name": "m", "provider": {"job": {"spec": {"template": {"spec": pod.clone()}}}}}]},
            "status": {"phase": "Running", "metricResults": [{"name": "m", "phase": "Running", "measurements": [measurement]}]}});
        create("default", "argoproj.io", "v1alpha1", "analysisruns", run);
        let ended = scene.run_phase(&name, "Successful").await;
        let measured = &ended.list_at(&["status", "metricResults"])[0].list_at(&["measurements"])[0];
        let message = measured.str_at(&["message"]).unwrap();
        assert!(message.contains("is left alone"), "{namespace}: {message}");
    }
    for namespace in ["victim", "default"] {
        let job = scene.cluster.with(|store| store.get("batch", "jobs", namespace, "payroll").cloned());
        assert!(job.is_some_and(|job| job.value.at(&["metadata", "deletionTimestamp"]).is_none()), "{namespace}");
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_experiment_of_its_own_ends_with_its_analysis() {
    let scene = Scene::new();
    let job = value!({"spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "c", "image": "busybox", "command": ["sh", "-c", "exit 0"]}]}}}});
    let template = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": {"name": "t"},
        "spec": {"metrics": [{"name": "m", "provider": {"job": job}}]}});
    scene.ask(Verb::Create, "argoproj.io", "v1alpha1", "analysistemplates", "", template);
    let experiment = value!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Experiment",
        "metadata": {"name": "e"},
        "spec": {
            "scaleDownDelaySeconds": 0,
            "templates": [{"name": "a", "replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": {
                "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "app:v1"}]}}}],
            "analyses": [{"name": "x", "templateName": "t", "requiredForCompletion": true}],
        },
    });
    scene.ask(Verb::Create, "argoproj.io", "v1alpha1", "experiments", "", experiment);
    scene.run_phase("e-x", "Successful").await;
    let mut newest = scene.cluster.newest();
    let get = |group: &str, plural: &str, name: &str| {
        let found = scene.cluster.with(|store| store.get(group, plural, "default", name).cloned());
        found.map(|found| found.value.clone()).unwrap_or_default()
    };
    let is_over = async {
        loop {
            newest.borrow_and_update();
            let (experiment, set) = (get("argoproj.io", "experiments", "e"), get("apps", "replicasets", "e-a"));
            let is_empty = set.int_at(&["spec", "replicas"]) == Some(0);
            if experiment.str_at(&["status", "phase"]) == Some("Successful") && is_empty {
                return experiment;
            }
            newest.changed().await.unwrap();
        }
    };
    let experiment = tokio::time::timeout(Duration::from_secs(60), is_over).await.unwrap();
    assert_eq!(experiment.str_at(&["status", "message"]), Some("Required AnalysisRuns completed"));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_rollout_tells_why_its_replica_set_was_not_created() {
    let scene = Scene::refusing("/replicasets");
    scene.create("canary.yaml");
    let told = scene.told("ReplicaSetCreateError").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("Failed to create new replica set \"web-"), "{told:?}");
    assert!(told[0].ends_with("exceeded quota"), "{told:?}");
    let status = scene.rollout("web").value.get("status").cloned().unwrap();
    assert!(status.get("conditions").is_some() && status.get("blueGreen").is_none(), "{status}");
    assert_eq!(scene.told("RolloutAddedToInformer").await.len(), 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_the_server_refuses_is_named_on_the_rollout_until_it_can_be_created() {
    let scene = Scene::new();
    let job = value!({"spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "c", "image": "busybox", "command": ["sh", "-c", "exit 0"]}]}}}});
    let template = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": {"name": "t"},
        "spec": {"metrics": [{"name": "m", "provider": {"job": job}}]}});
    scene.ask(Verb::Create, "argoproj.io", "v1alpha1", "analysistemplates", "", template);
    let steps = |team: &str| {
        let metadata = value!({"labels": {"team": team}});
        value!([{"analysis": {"templates": [{"templateName": "t"}], "analysisRunMetadata": metadata}}])
    };
    let rollout = value!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"canary": {"steps": steps("not a label!")}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web:1.0"}]}},
        },
    });
    scene.ask(Verb::Create, "argoproj.io", "v1alpha1", "rollouts", "", rollout);
    scene.phase("web", "Healthy").await;
    scene.set_image("web", "registry.example/web:2.0");
    let refused = scene.phase("web", "Degraded").await;
    let said = refused.str_at(&["status", "message"]).unwrap().to_owned();
    assert!(said.starts_with("InvalidSpec: The Rollout \"web\" is invalid: AnalysisRun 'web-"), "{said}");
    assert!(said.contains("metadata.labels: Invalid value: \"not a label!\""), "{said}");
    let told = scene.told("ReconciliationError").await;
    assert!(told[0].contains("cannot be created"), "{told:?}");
    // A correction is taken up, and the reason was told once, however often it was tried.
    let patch = value!({"spec": {"strategy": {"canary": {"steps": steps("shop")}}}});
    scene.ask(Verb::Patch(PatchType::Merge), "argoproj.io", "v1alpha1", "rollouts", "web", patch);
    let healthy = scene.phase("web", "Healthy").await;
    assert!(!healthy.to_json().contains("InvalidSpec"), "{healthy}");
    assert_eq!(scene.told("ReconciliationError").await.len(), 1);
    scene.end().await;
}

/// SR23: what is said of a Rollout that is left alone, and that nobody else notices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sr23_a_rollout_whose_pass_panics_is_set_aside_and_the_others_go_on() {
    let scene = Scene::new();
    let boom = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "boom"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "boom"}}, "strategy": {"canary": {}},
            "template": {"metadata": {"labels": {"app": "boom"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}}});
    scene.ask(Verb::Create, "argoproj.io", "v1alpha1", "rollouts", "", boom);
    let told = scene.told("Quarantined").await;
    assert!(told[0].starts_with("looking at it ended in a panic, which is a bug of Tidegate"), "{told:?}");
    let conditions = scene.rollout("boom").value.list_at(&["status", "conditions"]).to_vec();
    let stalled = conditions.iter().find(|told| told.str_at(&["type"]) == Some("Stalled")).unwrap();
    assert_eq!((stalled.str_at(&["status"]), stalled.str_at(&["reason"])), (Some("True"), Some("Quarantined")));
    scene.create("canary.yaml");
    scene.phase("web", "Healthy").await;
    assert_eq!(scene.told("Quarantined").await.len(), 1);
    scene.end().await;
}
