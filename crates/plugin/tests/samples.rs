//! Real plugins under our host: Argo Rollouts' own samples and ours, built with Go by `tests/plugins/run`, which says in
//! `TIDEGATE_PLUGINS` where they are.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value as Json, json};
use tidegate_plugin::{
    call::{
        Kind,
        router::Verified,
        step::{Context, Operation},
    },
    client::{Bounds, MetricProvider, Plugin, StepPlugin, TrafficRouter},
    object::{Rollout, Template},
    output::{Line, Log},
    process::{self, Launch},
};

struct Host {
    plugin: Arc<Plugin>,
    lines: Arc<Mutex<Vec<Line>>>,
    folder: tempfile::TempDir,
}

fn host(kind: Kind, name: &str, args: &[&str], bounds: Bounds) -> Host {
    let bin = PathBuf::from(std::env::var_os("TIDEGATE_PLUGINS").expect("TIDEGATE_PLUGINS: run tests/plugins/run"));
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log: Log = {
        let lines = Arc::clone(&lines);
        Arc::new(move |line| lines.lock().expect("lines").push(line))
    };
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("record").display().to_string();
    let args = args.iter().map(|arg| arg.replace("RECORD", &record)).collect();
    let sockets = folder.path().join("sockets");
    process::socket_folder(&sockets).expect("a folder");
    let launch = Launch {
        name: name.into(),
        kind,
        executable: bin.join(name),
        args,
        environment: process::environment(std::env::vars_os(), |key| key == "KUBECONFIG"),
        launcher: vec![],
        socket_folder: Some(sockets),
    };
    Host { plugin: Arc::new(Plugin::new(launch, bounds, log)), lines, folder }
}

impl Host {
    /// The calls as the plugin saw them: method and arguments.
    fn calls(&self) -> Vec<(String, Json)> {
        let text = std::fs::read_to_string(self.folder.path().join("record")).unwrap_or_default();
        let call = |line: &str| {
            let line: Json = serde_json::from_str(line).expect("a line of JSON");
            (line["method"].as_str().unwrap_or_default().to_owned(), line["args"].clone())
        };
        text.lines().map(call).collect()
    }

    fn methods(&self) -> Vec<String> {
        self.calls().into_iter().map(|(method, _)| method).collect()
    }

    fn has_printed(&self, text: &str) -> bool {
        self.lines.lock().expect("lines").iter().any(|line| line.text.contains(text))
    }

    /// Stops the plugin, which removes its socket.
    async fn stop(&self) {
        self.plugin.stop().await;
        assert_eq!(files(&self.folder.path().join("sockets")), 0);
    }
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("a folder").count()
}

fn run() -> Json {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "metadata": {"name": "run", "namespace": "shop"},
        "spec": {"metrics": []}})
}

fn metric(config: Json) -> Json {
    json!({"name": "m", "provider": {"plugin": {"tidegate/sample-metric": config}}})
}

fn rollout(plugins: Json) -> Json {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}},
        "spec": {"replicas": 3, "strategy": {"canary": {"trafficRouting": {"plugins": plugins}, "steps": [{"setWeight": 20}]}}},
        "status": {"currentStepIndex": 1, "canary": {}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn our_metric_provider_takes_all_calls() {
    let host = host(Kind::Metric, "metric", &["--record", "RECORD"], Bounds::default());
    let provider = MetricProvider(Arc::clone(&host.plugin));
    let measured = metric(json!({
        "run": {"phase": "Running", "value": "1", "startedAt": {"at": "2024-03-01T10:00:00Z"}, "metadata": {"job": "j"}},
        "resume": {"phase": "Error", "message": "gone"},
        "metadata": {"query": "up"},
        "garbageCollect": {"error": "no room"},
    }));
    let measurement = provider.run(&run(), &measured).await.expect("a measurement");
    assert_eq!((measurement.phase.as_str(), measurement.value.as_str()), ("Running", "1"));
    assert_eq!(measurement.started_at.map(|at| at.to_string()).as_deref(), Some("2024-03-01T10:00:00Z"));
    assert_eq!(measurement.metadata, BTreeMap::from([("job".into(), "j".into())]));
    let noted = json!({"phase": "Running", "startedAt": "2024-03-01T10:00:00Z", "metadata": {"job": "j"}});
    let resumed = provider.resume(&run(), &measured, &noted).await.expect("a measurement");
    assert_eq!((resumed.phase.as_str(), resumed.message.as_str()), ("Error", "gone"));
    let terminated = provider.terminate(&run(), &measured, &noted).await.expect("a measurement");
    assert_eq!((terminated.started_at, terminated.metadata), (measurement.started_at, measurement.metadata));
    let metadata = provider.metadata(&measured).await;
    assert_eq!(metadata, Ok(BTreeMap::from([("query".into(), "up".into())])));
    let collected = provider.garbage_collect(&run(), &measured, 10).await.map_err(|error| error.to_string());
    assert_eq!(collected, Err("no room".to_owned()));
    assert_eq!(host.plugin.plugin_type().await.as_deref(), Ok("tidegate-sample-metric"));
    assert_eq!(
        host.methods(),
        ["InitPlugin", "Run", "Resume", "Terminate", "GetMetadata", "GarbageCollect"][..].to_vec()
    );
    let (_, seen) = host.calls().swap_remove(1);
    assert_eq!(seen["metric"]["provider"], measured["provider"]);
    assert_eq!(seen["analysisRun"]["metadata"]["namespace"], "shop");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_traffic_router_takes_all_calls() {
    let host = host(Kind::TrafficRouter, "router", &["--record", "RECORD"], Bounds::default());
    let router = TrafficRouter(Arc::clone(&host.plugin));
    let object = rollout(json!({"tidegate/sample-router": {"errors": {"SetMirrorRoute": "no mirrors\n"}}}));
    let rollout = Rollout { object: &object, template: Template::Own };
    let destinations = json!([{"serviceName": "s", "podTemplateHash": "h", "weight": 5}]);
    assert_eq!(router.remove_managed_routes(&rollout).await, Ok(()));
    let route = json!({"name": "r", "match": [{"headerName": "x", "headerValue": {"exact": "y"}}]});
    assert_eq!(router.set_header_route(&rollout, &route).await, Ok(()));
    let mirrored = router.set_mirror_route(&rollout, &json!({"name": "r", "percentage": 5})).await;
    assert_eq!(mirrored.map_err(|error| error.to_string()), Err("no mirrors\\u{a}".to_owned()));
    assert_eq!(router.update_hash(&rollout, "canary", "stable", &json!([])).await, Ok(()));
    assert_eq!(router.verify_weight(&rollout, 20, &destinations).await, Ok(Verified::No));
    assert_eq!(router.set_weight(&rollout, 20, &destinations).await, Ok(()));
    assert_eq!(router.verify_weight(&rollout, 20, &destinations).await, Ok(Verified::Yes));
    assert_eq!(host.plugin.plugin_type().await.as_deref(), Ok("tidegate-sample-router"));
    let (_, seen) = host.calls().into_iter().find(|(method, _)| method == "SetWeight").expect("the call");
    assert_eq!((&seen["desiredWeight"], &seen["additionalDestinations"]), (&json!(20), &destinations));
    assert_eq!(seen["rollout"]["spec"]["strategy"], object["spec"]["strategy"]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_step_plugin_takes_all_calls() {
    let host = host(Kind::Step, "step", &["--record", "RECORD"], Bounds::default());
    let step = StepPlugin(Arc::clone(&host.plugin));
    let object = rollout(Json::Null);
    let rollout = Rollout { object: &object, template: Template::Own };
    let config = json!({
        "run": [{"phase": "Running", "requeueAfter": "15s"}, {"phase": "Failed", "message": "it broke"}],
        "terminate": {"error": "cannot"},
    });
    let context = |status| Context { plugin: "tidegate/sample-step", config: Some(&config), status };
    let first = step.operate(Operation::Run, &rollout, context(None)).await.expect("a result");
    assert_eq!((first.phase.as_str(), first.requeue_after), ("Running", 15_000_000_000));
    assert_eq!(first.status, Some(json!({"count": 1})));
    let second = step.operate(Operation::Run, &rollout, context(first.status.as_ref())).await.expect("a result");
    assert_eq!((second.phase.as_str(), second.message.as_str()), ("Failed", "it broke"));
    let terminated = step.operate(Operation::Terminate, &rollout, context(None)).await;
    assert_eq!(terminated.map_err(|error| error.to_string()), Err("cannot".to_owned()));
    let aborted = step.operate(Operation::Abort, &rollout, context(second.status.as_ref())).await.expect("a result");
    assert_eq!(aborted.phase, "Successful");
    assert_eq!(host.methods(), ["InitPlugin", "Run", "Run", "Terminate", "Abort"][..].to_vec());
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_dies_in_a_call_is_started_again() {
    let host = host(Kind::Metric, "metric", &["--record", "RECORD"], Bounds::default());
    let provider = MetricProvider(Arc::clone(&host.plugin));
    let exit = provider.run(&run(), &metric(json!({"do": {"exit": 3}}))).await;
    assert_eq!(exit.map_err(|error| error.to_string()), Err("Run rpc call error: unexpected EOF".to_owned()));
    let good = metric(json!({"run": {"phase": "Successful"}}));
    assert_eq!(provider.run(&run(), &good).await.map(|measurement| measurement.phase).as_deref(), Ok("Successful"));
    assert_eq!(host.methods(), ["InitPlugin", "Run", "InitPlugin", "Run"][..].to_vec());
    let panic = provider.run(&run(), &metric(json!({"do": {"panic": "no way\u{1b}"}}))).await;
    assert_eq!(panic.map_err(|error| error.to_string()), Err("Run rpc call error: unexpected EOF".to_owned()));
    for _ in 0..500 {
        if host.has_printed("panic: no way") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(host.has_printed("panic: no way"));
    host.plugin.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_does_not_hold_up_others() {
    let host = host(Kind::Metric, "metric", &[], Bounds { call: Duration::from_secs(2), ..Bounds::default() });
    let provider = MetricProvider(Arc::clone(&host.plugin));
    // Started, so that only the calls take time.
    provider.metadata(&metric(json!({}))).await.expect("metadata");
    let (analysis_run, slow) = (run(), metric(json!({"do": {"sleep": "1h"}})));
    let quick = metric(json!({"run": {"phase": "Successful"}}));
    let (slow, quick) = tokio::join!(provider.run(&analysis_run, &slow), provider.run(&analysis_run, &quick));
    assert_eq!(slow.map_err(|error| error.to_string()), Err("Run rpc call error: no answer within 2 s".to_owned()));
    assert_eq!(quick.map(|measurement| measurement.phase).as_deref(), Ok("Successful"));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_prints_in_a_call_does_not_block_it() {
    let host = host(Kind::Metric, "metric", &[], Bounds::default());
    let provider = MetricProvider(Arc::clone(&host.plugin));
    let printing = json!({"stdout": "hello\u{1b}[2J", "stderr": "x".repeat(200), "repeat": 4000});
    let measured = metric(json!({"run": {"phase": "Successful"}, "do": printing}));
    let measurement = provider.run(&run(), &measured).await.expect("a measurement");
    assert_eq!(measurement.phase, "Successful");
    host.stop().await;
    assert!(host.has_printed("hello\\u{1b}[2J"));
    assert!(host.lines.lock().expect("lines").len() < 5000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_a_megabyte_and_a_half_arrives() {
    let host = host(Kind::TrafficRouter, "router", &["--record", "RECORD"], Bounds::default());
    let router = TrafficRouter(Arc::clone(&host.plugin));
    let mut object = rollout(json!({}));
    object["metadata"]["annotations"] = json!({"large": "y".repeat(1_500_000)});
    let rollout = Rollout { object: &object, template: Template::Own };
    assert_eq!(router.remove_managed_routes(&rollout).await, Ok(()));
    let (_, seen) = host.calls().pop().expect("a call");
    assert_eq!(seen["rollout"]["metadata"]["annotations"], object["metadata"]["annotations"]);
    host.stop().await;
}

#[track_caller]
fn check_start(args: &[&str], bounds: Bounds, wanted: &str) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let outcome = runtime.block_on(async { host(Kind::Step, "step", args, bounds).plugin.plugin_type().await });
    let wanted = format!("unable to start plugin system: {wanted}");
    assert_eq!(outcome.map_err(|error| error.to_string()), Err(wanted), "{args:?}");
}

#[test]
fn a_plugin_that_does_not_start_says_why() {
    let unable = "unable to get plugin client (step): ";
    let brief = Bounds { start: Duration::from_secs(1), ..Bounds::default() };
    check_start(&["--no-serve", "hang"], brief, &format!("{unable}timeout while waiting for plugin to start"));
    let exited = format!("{unable}plugin exited before we could connect");
    check_start(&["--no-serve", "exit"], Bounds::default(), &exited);
    let garbage = format!("{unable}Unrecognized remote plugin message: hello, I am no plugin");
    check_start(&["--no-serve", "garbage"], Bounds::default(), &garbage);
    let version = format!("{unable}incompatible API version with plugin. Plugin version: 2, Client versions: [1]");
    check_start(&["--no-serve", "proto2"], Bounds::default(), &version);
    let grpc = format!("{unable}unsupported plugin protocol \"grpc\". Supported: [netrpc]");
    check_start(&["--no-serve", "grpc"], Bounds::default(), &grpc);
    let refused = "unable to initialize plugin via rpc (step): no moon";
    check_start(&["--init-error", "no moon"], Bounds::default(), refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_metric_provider_of_argo_rollouts_runs() {
    let host = host(Kind::Metric, "metrics-plugin-sample", &[], Bounds::default());
    let provider = MetricProvider(Arc::clone(&host.plugin));
    let config = json!({"address": "http://127.0.0.1:1", "query": "up"});
    let metric = json!({"name": "m", "provider": {"plugin": {"argoproj/sample-prometheus": config}}});
    let metadata = provider.metadata(&metric).await;
    assert_eq!(metadata, Ok(BTreeMap::from([("ResolvedPrometheusQuery".into(), "up".into())])));
    let measurement = provider.run(&run(), &metric).await.expect("a measurement");
    assert_eq!(measurement.phase, "Error");
    assert!(measurement.message.contains("connection refused"), "{}", measurement.message);
    assert!(measurement.started_at.is_some() && measurement.finished_at.is_some());
    let noted = json!({"phase": "Running", "value": "7"});
    let resumed = provider.resume(&run(), &metric, &noted).await.expect("a measurement");
    assert_eq!((resumed.phase.as_str(), resumed.value.as_str()), ("Running", "7"));
    let terminated = provider.terminate(&run(), &metric, &noted).await.expect("a measurement");
    assert_eq!((terminated.phase.as_str(), terminated.value.as_str()), ("Running", "7"));
    assert_eq!(provider.garbage_collect(&run(), &metric, 10).await, Ok(()));
    assert!(host.plugin.plugin_type().await.is_ok());
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_traffic_router_of_argo_rollouts_starts_and_says_what_it_lacks() {
    let host = host(Kind::TrafficRouter, "trafficrouter-plugin-sample", &[], Bounds::default());
    let error = host.plugin.plugin_type().await.expect_err("no cluster").to_string();
    let wanted = "unable to start plugin system: unable to initialize plugin via rpc (trafficrouter-plugin-sample): ";
    assert!(error.starts_with(wanted) && error.contains("no configuration"), "{error}");
    assert!(host.has_printed("InitPlugin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_step_plugins_of_argo_rollouts_run() {
    for name in ["step-plugin-sample", "step-plugin-e2e"] {
        let host = host(Kind::Step, name, &[], Bounds::default());
        let step = StepPlugin(Arc::clone(&host.plugin));
        let object = rollout(Json::Null);
        let rollout = Rollout { object: &object, template: Template::Own };
        let context = Context { plugin: name, config: Some(&json!({})), status: None };
        for operation in [Operation::Run, Operation::Terminate, Operation::Abort] {
            let result = step.operate(operation, &rollout, context).await.expect("a result");
            assert!(!result.phase.is_empty(), "{name} {operation:?} {result:?}");
        }
        assert!(host.plugin.plugin_type().await.is_ok());
        host.stop().await;
    }
}
