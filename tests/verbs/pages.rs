//! The pages of the daemon: numbers under the names that dashboards know, and whether it is alive and ready.

use std::process::Command;

use jiff::Timestamp;
use kube::Client;
use tidegate::{
    embedded::{
        controllers::{self, World},
        http::{
            cluster::{Cluster, Pace},
            service::{Front, Settings},
        },
        store::{Config, Store},
    },
    engine::key::Resource,
    io::{
        api::Api,
        daemon,
        serve::{self, Pages},
    },
};
use tokio::sync::{mpsc, oneshot};

/// A page, and the code it came with.
async fn page(port: u16, path: &str) -> (u16, String) {
    let url = format!("http://127.0.0.1:{port}{path}");
    let asked = tokio::task::spawn_blocking(move || {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let mut response = agent.get(url).call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    });
    asked.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_daemon_tells_its_numbers_and_whether_it_is_ready() {
    let mut store = Store::new(Config::new(Timestamp::now(), 1));
    tidegate::sim::install::definitions(&mut store).unwrap();
    let world = World::new(controllers::Settings { seed: 1, ..Default::default() });
    let cluster = Cluster::new(store, Some(world), None, Pace::Wall);
    tokio::spawn(cluster.clone().drive());
    let api = Api::new(Client::new(Front::new(cluster.clone(), Settings::default()), "default"));
    let (sender, questions) = mpsc::channel(16);
    let mut ports = Vec::new();
    for pages in [Pages::Metrics, Pages::Health] {
        let listener = serve::listen(0).await.unwrap();
        ports.push(listener.local_addr().unwrap().port());
        tokio::spawn(serve::serve(listener, pages, sender.clone()));
    }
    let (metrics, health) = (ports[0], ports[1]);
    let (stop, stopped) = oneshot::channel();
    let stopped = async move { drop(stopped.await) };
    let daemon = tokio::spawn(daemon::answer(api.clone(), daemon::Settings::default(), questions, stopped));

    let read = tidegate::manifest::read("", include_bytes!("../../examples/canary.yaml"));
    let rollouts = Resource::new("argoproj.io", "v1alpha1", "rollouts");
    let mut newest = cluster.newest();
    api.create(&rollouts, "default", &read.objects[0].value).await.unwrap();
    let is_healthy = || {
        let rollout = cluster.with(|store| store.get("argoproj.io", "rollouts", "default", "web").cloned()).unwrap();
        rollout.value.str_at(&["status", "phase"]) == Some("Healthy")
    };
    while !is_healthy() {
        newest.changed().await.unwrap();
    }
    assert_eq!(page(health, "/healthz").await, (200, "ok".to_owned()));
    assert_eq!(page(health, "/readyz").await, (200, "ok".to_owned()));
    assert_eq!(page(health, "/metrics").await.0, 404);
    let (code, text) = page(metrics, "/metrics").await;
    assert_eq!(code, 200);
    for line in [
        "rollout_info_replicas_desired{namespace=\"default\",name=\"web\"} 4",
        "rollout_events_total{namespace=\"default\",name=\"web\",type=\"Normal\",reason=\"RolloutAddedToInformer\"} 1",
        "rollout_events_total{namespace=\"default\",name=\"web\",type=\"Normal\",reason=\"NewReplicaSetCreated\"} 1",
        "rollout_reconcile_count{namespace=\"default\",name=\"web\"}",
        "controller_clientset_k8s_request_total{kind=\"replicasets\",namespace=\"default\",name=\"N/A\",verb=\"Create\",status_code=\"201\"} 1",
        "tidegate_cache_objects{kind=\"replicasets\"} 1",
        "tidegate_writes_total{kind=\"replicasets\",verb=\"create\"} 1",
        "tidegate_decision_seconds_count{machine=\"rollout\"}",
        "process_resident_memory_bytes ",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
    stop.send(()).unwrap();
    daemon.await.unwrap();
    assert_eq!(page(health, "/healthz").await.0, 503, "a daemon that does not answer is not healthy");
    cluster.close();
}

#[test]
fn a_port_in_use_is_named_with_the_remedy() {
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for flag in ["--metrics-port", "--healthz-port"] {
        let other = if flag == "--metrics-port" { "--healthz-port" } else { "--metrics-port" };
        let mut run = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        let output = run.args(["run", flag, &port, other, "0"]).output().unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}");
        let (error, hint) = words.trim_end().split_once('\n').unwrap();
        assert!(error.starts_with(&format!("error: cannot listen on port {port}: ")), "{error}");
        assert_eq!(hint, format!("hint: give another port with `{flag} PORT`, or `{flag} 0` to do without"));
    }
}
