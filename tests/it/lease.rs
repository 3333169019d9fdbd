//! Two daemons and one Lease, on the embedded cluster, with a clock that jumps.

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tidegate::{
    embedded::{
        http::{
            cluster::{Cluster, Pace},
            service::{Front, Settings},
        },
        store::{Config, Store},
    },
    engine::{
        key::{Place, Resource},
        lease::{Candidate, Timing},
    },
    io::{
        api::{Api, Error},
        lease::{Gate, gate, stand},
    },
    value,
};
use tokio::{sync::oneshot, task::JoinHandle, time::Instant};

/// A daemon that stands for the Lease.
struct Daemon {
    api: Api,
    gate: Gate,
    end: oneshot::Sender<()>,
    standing: JoinHandle<()>,
}

fn cluster() -> Cluster {
    Cluster::new(Store::new(Config::new(Timestamp::now(), 1)), None, None, Pace::Wall)
}

fn daemon(cluster: &Cluster, name: &str) -> Daemon {
    let api = Api::new(Client::new(Front::new(cluster.clone(), Settings::default()), "default"));
    let (leads, gate) = gate();
    let (end, ended) = oneshot::channel();
    let place = Place::new("default", "lock");
    let candidate = Candidate::new(name, Timing::default());
    let standing = tokio::spawn(stand(api.clone(), place, candidate, leads, async { drop(ended.await) }));
    Daemon { api: api.behind(gate.clone()), gate, end, standing }
}

/// Waits until it leads, and tells how long that took.
async fn leads(daemon: &mut Daemon) -> Duration {
    let begin = Instant::now();
    while !daemon.gate.is_open() {
        tokio::time::timeout(Duration::from_secs(60), daemon.gate.changed()).await.expect("it leads at last");
    }
    begin.elapsed()
}

#[tokio::test(start_paused = true)]
async fn l11_after_a_crash_the_other_leads_within_the_lease_and_two_seconds() {
    let cluster = cluster();
    let mut one = daemon(&cluster, "one");
    leads(&mut one).await;
    let mut two = daemon(&cluster, "two");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(one.gate.is_open() && !two.gate.is_open(), "who renews stays");
    one.standing.abort();
    let took = leads(&mut two).await;
    assert!(took <= Duration::from_secs(17), "{took:?}");
    assert!(!one.gate.is_open(), "the other one could not write any more before that");
}

#[tokio::test(start_paused = true)]
async fn l11_who_stops_gives_the_lease_back() {
    let cluster = cluster();
    let mut one = daemon(&cluster, "one");
    leads(&mut one).await;
    let mut two = daemon(&cluster, "two");
    tokio::time::sleep(Duration::from_secs(5)).await;
    drop(one.end);
    one.standing.await.unwrap();
    let took = leads(&mut two).await;
    assert!(took <= Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn s51_nothing_is_sent_after_the_renewal_was_due() {
    let cluster = cluster();
    let mut one = daemon(&cluster, "one");
    leads(&mut one).await;
    let maps = Resource::new("", "v1", "configmaps");
    let map = |name: &str| value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    one.api.create(&maps, "default", &map("in-time")).await.unwrap();
    one.standing.abort();
    tokio::time::sleep(Duration::from_secs(11)).await;
    let late = one.api.create(&maps, "default", &map("late")).await;
    assert!(matches!(late, Err(Error::NotLeading { .. })), "{late:?}");
    assert_eq!(cluster.with(|store| store.list("", "configmaps", "default").count()), 1);
    one.api.object(&maps, &Place::new("default", "in-time")).await.expect("reading is not writing");
}
