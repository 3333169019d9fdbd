//! Tenants whose servers answer one byte in two seconds, and what becomes of the others meanwhile. In the time of the wall:
//! metrics are asked over sockets.

use std::time::Duration;

use tidegate::{
    embedded::store::request::{Request, Verb},
    kubernetes::value::Value,
    value,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    time::{Instant, timeout},
};

use crate::{
    hosted::source,
    scene::{Scene, web},
};

/// How many metrics and repositories are on slow servers: more than there are workers for each.
const METRICS: usize = 20;
const REPOSITORIES: usize = 9;
/// How much longer anything may take on a machine that has much to do.
const NOISE: Duration = Duration::from_secs(5);

/// A server that begins an answer and goes on with one byte in two seconds; each request that came.
async fn slow_web() -> (String, mpsc::UnboundedReceiver<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (asked, hears) = mpsc::unbounded_channel();
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

/// How long it takes from a push until its first pods wait at a step, and from an abort until the Rollout says so.
async fn push_and_abort(scene: &mut Scene, image: &str) -> (Duration, Duration) {
    let before = scene.get("argoproj.io", "rollouts", "web").map(|web| web.value.clone()).unwrap_or_default();
    let hash = |web: &Value| web.str_at(&["status", "currentPodHash"]).map(str::to_owned);
    let begun = Instant::now();
    scene.push(&[("deploy/web.yaml", &web(image))]).await;
    until(scene, |web| hash(web) != hash(&before) && web.str_at(&["status", "phase"]) == Some("Paused")).await;
    let pushed = begun.elapsed();
    let begun = Instant::now();
    let abort = value!({"status": {"abort": true}});
    scene.patch("argoproj.io", "v1alpha1", "rollouts", "status", "web", abort).unwrap();
    until(scene, |web| web.str_at(&["status", "phase"]) == Some("Degraded")).await;
    (pushed, begun.elapsed())
}

async fn until(scene: &Scene, holds: impl Fn(&Value) -> bool) {
    let mut newest = scene.cluster.newest();
    let waits = async {
        loop {
            newest.borrow_and_update();
            if scene.get("argoproj.io", "rollouts", "web").is_some_and(|web| holds(&web.value)) {
                return;
            }
            newest.changed().await.unwrap();
        }
    };
    timeout(Duration::from_secs(120), waits).await.expect("the rollout moves");
}

fn create(scene: &Scene, group: &str, version: &str, plural: &str, namespace: &str, body: Value) {
    let request = Request {
        verb: Verb::Create,
        group: group.into(),
        version: version.into(),
        resource: plural.into(),
        namespace: namespace.into(),
        body: Some(body),
        agent: "kubectl-create".into(),
        ..Request::default()
    };
    scene.cluster.apply(request).0.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sr24_slow_metrics_and_slow_hosts_of_one_namespace_delay_no_other() {
    let mut scene = Scene::hosted();
    scene.remote = true;
    scene.anywhere = true;
    let authority = scene.host().authority().to_owned();
    scene.secret("fetch", &[("username", "ada"), ("password", "good-token"), ("ca.crt", &authority)]);
    scene.repository.commit(&[("deploy/web.yaml", &web("web:1"))]);
    let mut shop = source();
    shop.set_at(&["spec", "secretRef"], value!({"name": "fetch"}));
    scene.source(shop);
    scene.start();
    until(&scene, |web| web.str_at(&["status", "phase"]) == Some("Healthy")).await;
    let (push, abort) = push_and_abort(&mut scene, "web:2").await;

    create(&scene, "", "v1", "namespaces", "", value!({"metadata": {"name": "noisy"}}));
    let (address, mut asked) = slow_web().await;
    for number in 0..METRICS {
        let provider = value!({"web": {"url": address.clone(), "timeoutSeconds": 600, "jsonPath": "{$}"}});
        let metric = value!({"name": "slow", "successCondition": "true", "provider": provider});
        let run = value!({"kind": "AnalysisRun", "apiVersion": "argoproj.io/v1alpha1",
            "metadata": {"name": format!("run-{number}")}, "spec": {"metrics": [metric]}});
        create(&scene, "argoproj.io", "v1alpha1", "analysisruns", "noisy", run);
    }
    for number in 0..REPOSITORIES {
        let mut slow = source();
        slow.set_at(&["metadata", "name"], format!("slow-{number}"));
        slow.set_at(&["spec", "url"], format!("https://git.example:9443/noisy/{number}.git"));
        create(&scene, "tidegate.dev", "v1alpha1", "gitsources", "noisy", slow);
    }
    for _ in 0..METRICS {
        timeout(Duration::from_secs(20), asked.recv()).await.expect("all metrics are asked for").unwrap();
    }
    let host = scene.host();
    let share = async {
        // The rest waits for its turn.
        while host.slow() < 8 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(20), share).await.expect("its share of repositories is fetched");

    let (beside, returned) = push_and_abort(&mut scene, "web:3").await;
    println!("push {push:?}, beside slow servers {beside:?}; abort {abort:?}, beside them {returned:?}");
    assert!(beside < push + NOISE, "a push takes {beside:?} instead of {push:?}");
    assert!(returned < abort + NOISE, "an abort takes {returned:?} instead of {abort:?}");
    scene.end().await;
}
