//! A kubelet for a control plane that has none: `kubelet KUBECONFIG [MILLISECONDS]` binds pods to a node of its own and
//! plays them; they are ready so long after their start, plus what their specs imply.
//!
//! What a pod does is what the embedded cluster's kubelet makes of it (`embedded/controllers/kubelet` has the tables): the
//! same functions, over a client. Writes no events, runs nothing, and ends when it is told to.
#![allow(missing_docs)]

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use http::{Method, Request, header};
use jiff::{SignedDuration, Timestamp};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tidegate::{
    embedded::controllers::{
        ask,
        kubelet::{
            self,
            status::{self, Place},
            story,
        },
    },
    engine::cache::{News, place_of, version_of},
    engine::resource,
    io::{api::Api, watch},
    kubernetes::value::Value,
    value,
};
use tokio::sync::{mpsc, watch as latest};

/// The node that pods are bound to.
const NODE: &str = "fake-0";
/// How long a pod takes to become ready if nothing is said.
const READY_DELAY: SignedDuration = SignedDuration::from_millis(300);
/// How long after a failed request the pod is looked at again.
const RETRY: SignedDuration = SignedDuration::from_millis(200);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().context("kubelet KUBECONFIG [MILLISECONDS]")?;
    let delay = arguments.next().map(|delay| delay.parse().context("not a number of milliseconds")).transpose()?;
    let ready_delay = delay.map_or(READY_DELAY, SignedDuration::from_millis);
    let kubeconfig = Kubeconfig::read_from(&file).with_context(|| format!("cannot read {file}"))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let kubelet = Arc::new(Kubelet { client: Client::try_from(config)?, ready_delay, addresses: AtomicU32::new(2) });
    kubelet.register().await.context("cannot register a node")?;
    println!("the kubelet is at work");

    let (sender, mut news) = mpsc::channel(1024);
    let scope = watch::Scope::of(&resource::pods());
    tokio::spawn(watch::follow(Api::new(kubelet.client.clone()), scope, sender));
    let mut pods: HashMap<String, latest::Sender<Value>> = HashMap::new();
    while let Some((_, news)) = news.recv().await {
        match news {
            News::List(listed, _) => {
                pods.retain(|uid, _| listed.iter().any(|pod| uid_of(pod) == *uid));
                listed.into_iter().for_each(|pod| kubelet.see(&mut pods, pod));
            }
            News::Object(pod) => kubelet.see(&mut pods, pod),
            News::Gone(pod) => drop(pods.remove(&uid_of(&pod))),
            News::Unserved => {}
        }
    }
    Ok(())
}

fn uid_of(pod: &Value) -> String {
    pod.str_at(&["metadata", "uid"]).unwrap_or_default().to_owned()
}

struct Kubelet {
    client: Client,
    ready_delay: SignedDuration,
    /// The number behind the next pod's address.
    addresses: AtomicU32,
}

/// What the kubelet remembers of a pod.
struct Life {
    started: Timestamp,
    told_to_stop: Option<Timestamp>,
    address: String,
}

impl Kubelet {
    async fn register(&self) -> anyhow::Result<()> {
        let mut node = value!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}},
        });
        match self.send(Method::POST, "/api/v1/nodes", "application/json", &node).await {
            Ok(_) => {}
            Err(kube::Error::Api(refused)) if refused.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
        node = value!({"status": kubelet::node_status(&node, Timestamp::now())});
        self.send(Method::PATCH, &format!("/api/v1/nodes/{NODE}/status"), STRATEGIC, &node).await?;
        Ok(())
    }

    /// Tells a pod's task what the pod looks like now; a new pod gets one.
    fn see(self: &Arc<Kubelet>, pods: &mut HashMap<String, latest::Sender<Value>>, pod: Value) {
        match pods.get(&uid_of(&pod)) {
            // Who has ended no longer listens.
            Some(task) => drop(task.send(pod)),
            None => {
                let (sender, receiver) = latest::channel(pod.clone());
                pods.insert(uid_of(&pod), sender);
                tokio::spawn(Arc::clone(self).play(receiver));
            }
        }
    }

    /// Plays one pod until it is gone.
    async fn play(self: Arc<Kubelet>, mut seen: latest::Receiver<Value>) {
        let mut pod = seen.borrow_and_update().clone();
        let mut life = self.recall(&pod);
        loop {
            let wake = match self.turn(&mut pod, &mut life).await {
                Ok(wake) => wake,
                Err(kube::Error::Api(refused)) if refused.code == 404 => None,
                // Somebody was faster; what they did arrives.
                Err(kube::Error::Api(refused)) if refused.code == 409 => None,
                Err(error) => {
                    eprintln!("{}: {error}", place_of(&pod));
                    Some(Timestamp::now() + RETRY)
                }
            };
            let wait = wake.map_or(Duration::MAX, |wake| {
                wake.duration_since(Timestamp::now()).try_into().unwrap_or(Duration::ZERO)
            });
            tokio::select! {
                changed = seen.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(wait) => {}
            }
            let newest = seen.borrow_and_update().clone();
            // What we wrote ourselves may not have arrived yet.
            if version_of(&newest) > version_of(&pod) {
                pod = newest;
            }
        }
    }

    /// Does what is due for a pod; answers when something is due again. The pod is then as it was last seen or written.
    async fn turn(&self, pod: &mut Value, life: &mut Life) -> Result<Option<Timestamp>, kube::Error> {
        let story = story::read(pod, self.ready_delay);
        let now = Timestamp::now();
        if ask::is_terminating(pod) {
            return self.stop(pod, life, story.stop, now).await;
        }
        if ask::has_ended(pod) || !story.schedulable {
            return Ok(None);
        }
        if pod.str_at(&["spec", "nodeName"]).unwrap_or_default().is_empty() {
            let name = pod.str_at(&["metadata", "name"]).unwrap_or_default();
            let binding = value!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
            });
            self.send(Method::POST, &format!("{}/binding", path(pod)?), "application/json", &binding).await?;
            pod.set_at(&["spec", "nodeName"], NODE);
        }
        let place = Place { started: life.started, ip: life.address.as_str().into(), host_ip: "10.255.0.1".into() };
        let play = status::play(pod, &story, &place, now);
        if let Some(status) = play.status {
            *pod = self.patch_status(pod, status).await?;
        }
        Ok(play.wake)
    }

    /// Stops a pod that is being deleted, and removes it once it stopped.
    async fn stop(
        &self,
        pod: &mut Value,
        life: &mut Life,
        takes: Option<SignedDuration>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, kube::Error> {
        let grace = pod.int_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
        // Without grace it is gone already, but for somebody's finalizer.
        let Some(takes) = takes.filter(|_| grace > 0) else { return Ok(None) };
        let due = *life.told_to_stop.get_or_insert(now) + takes.min(SignedDuration::from_secs(grace));
        if now < due {
            return Ok(Some(due));
        }
        if !pod.list_at(&["metadata", "finalizers"]).is_empty()
            && let Some(status) = status::stopped(pod, now)
        {
            *pod = self.patch_status(pod, status).await?;
        }
        let options = value!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": {"uid": uid_of(pod)},
        });
        self.send(Method::DELETE, &path(pod)?, "application/json", &options).await?;
        Ok(None)
    }

    /// What a pod's object says about its life so far.
    fn recall(&self, pod: &Value) -> Life {
        let address = pod.str_at(&["status", "podIP"]).map(str::to_owned).unwrap_or_else(|| {
            let [_, a, b, c] = self.addresses.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            format!("10.{a}.{b}.{c}")
        });
        let started = ask::time(pod.at(&["status", "startTime"])).unwrap_or_else(Timestamp::now);
        Life { started, told_to_stop: None, address }
    }

    async fn patch_status(&self, pod: &Value, status: Value) -> Result<Value, kube::Error> {
        // Of this very pod, not of another that has its name now.
        let patch = value!({"metadata": {"uid": uid_of(pod)}, "status": status});
        self.send(Method::PATCH, &format!("{}/status", path(pod)?), STRATEGIC, &patch).await
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: &Value) -> Result<Value, kube::Error> {
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, kind);
        let request = request.body(body.to_json().into_bytes()).map_err(kube::Error::HttpError)?;
        let text = self.client.request_text(request).await?;
        Value::from_json(text.as_bytes()).map_err(kube::Error::SerdeError)
    }
}

const STRATEGIC: &str = "application/strategic-merge-patch+json";

fn path(pod: &Value) -> Result<String, kube::Error> {
    resource::pods().object_path(&place_of(pod)).map_err(|error| kube::Error::Service(Box::new(error)))
}
