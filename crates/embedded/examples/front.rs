//! The front in process: a controller with kube's own client and watchers, on one thread and a clock that jumps. No sockets.
//!
//! `cargo run -p tidegate-embedded --example front`

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, pin_mut};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Client,
    api::PostParams,
    runtime::{WatchStreamExt, watcher},
};
use tidegate_embedded::{
    controllers::{self, World},
    http::{
        cluster::{Cluster, Pace},
        service::{Front, Settings},
    },
    store::{Config, Store},
};

pub(crate) fn main() {
    // Paused time: whoever sleeps for an hour, sleeps for no time at all.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(controller()).expect("every request succeeds");
}

async fn controller() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::new(Config::new(Timestamp::UNIX_EPOCH, /* seed */ 1));
    let world = World::new(controllers::Settings::default());
    let cluster = Cluster::new(store, Some(world), None, Pace::Runtime);
    tokio::spawn(cluster.clone().drive());
    let client = Client::new(Front::new(cluster, Settings::default()), "default");

    // The controller under test: a ConfigMap becomes a pod of its name.
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client);
    let (source, target) = (config_maps.clone(), pods.clone());
    tokio::spawn(async move {
        let changes = watcher(source, watcher::Config::default()).default_backoff().applied_objects();
        pin_mut!(changes);
        while let Some(config_map) = changes.next().await {
            let name = config_map.ok().and_then(|object| object.metadata.name).unwrap_or_default();
            let pod = serde_json::json!({
                "metadata": {"name": name},
                "spec": {"containers": [{"name": "main", "image": "registry.example/main:1.0"}]},
            });
            let pod = serde_json::from_value(pod).expect("a pod");
            // 409 if it is there already, such as the pod of kube-root-ca.crt after a restart.
            let _ = target.create(&PostParams::default(), &pod).await;
        }
    });

    let config_map = serde_json::from_value(serde_json::json!({"metadata": {"name": "hello"}}))?;
    config_maps.create(&PostParams::default(), &config_map).await?;
    let stream = watcher(pods, watcher::Config::default().fields("metadata.name=hello")).applied_objects();
    pin_mut!(stream);
    let ready = tokio::time::timeout(Duration::from_secs(3600), async {
        while let Some(pod) = stream.try_next().await? {
            if pod.status.and_then(|status| status.phase).as_deref() == Some("Running") {
                return Ok(true);
            }
        }
        Ok::<_, watcher::Error>(false)
    });
    assert!(ready.await??, "the pod of the ConfigMap runs");
    println!("pod hello runs");
    Ok(())
}
