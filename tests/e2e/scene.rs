//! A namespace of a cluster in which the engine is at work, and what a test does and sees in it.

use std::time::Duration;

use jiff::Timestamp;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tidegate::{
    embedded::{
        controllers::{self, World},
        http::{
            cluster::{Cluster, Pace},
            service::{self, Front},
        },
        store::{self, Store},
    },
    engine::{
        cache::News,
        key::{Place, Resource},
        resource,
    },
    io::{
        api::{Api, Force, Run},
        daemon,
        watch::{self, Scope},
    },
    kubernetes::value::Value,
    value,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A namespace of a cluster.
pub struct Scene {
    api: Api,
    namespace: String,
    own: Option<Own>,
}

/// A cluster of the scene's own.
struct Own {
    cluster: Cluster,
    stop: oneshot::Sender<()>,
    daemon: tokio::task::JoinHandle<()>,
}

/// What happens to some resources; nobody watches them for it any more once it is gone.
pub struct Follower {
    news: mpsc::Receiver<(Resource, News)>,
    _watches: JoinSet<()>,
}

impl Follower {
    pub async fn next(&mut self) -> Option<(Resource, News)> {
        self.news.recv().await
    }
}

impl Scene {
    /// A new namespace, on the cluster that is given or on one of its own.
    pub async fn open(name: &str) -> Scene {
        match std::env::var("TIDEGATE_E2E_KUBECONFIG") {
            Ok(file) => Scene::at(&file, name).await,
            Err(_) => {
                let (api, own) = embedded();
                Scene::within(api, own, name).await
            }
        }
    }

    /// A new namespace on the cluster that a kubeconfig names.
    pub async fn at(kubeconfig: &str, name: &str) -> Scene {
        Scene::within(given(kubeconfig).await, None, name).await
    }

    async fn within(api: Api, own: Option<Own>, name: &str) -> Scene {
        let namespaces = Resource::new("", "v1", "namespaces");
        let namespace = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let path = namespaces.path(None).unwrap();
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(namespace.to_json().into_bytes()).unwrap();
        api.client().request_text(request).await.unwrap();
        Scene { api, namespace: name.to_owned(), own }
    }

    /// Ends a cluster of its own; the daemon must end, too.
    pub async fn close(self) {
        let Some(own) = self.own else { return };
        own.stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, own.daemon).await.unwrap().unwrap();
        own.cluster.close();
    }

    pub fn api(&self) -> Api {
        self.api.clone()
    }

    /// Whether this cluster asks who may do what.
    pub fn has_rights(&self) -> bool {
        self.own.is_none()
    }

    /// An object as it is.
    pub async fn selected(&self, of: &Resource, name: &str) -> Value {
        self.api.object(of, &Place::new(&self.namespace, name)).await.unwrap()
    }

    /// Applies an object, server-side, as a person with kubectl does.
    pub async fn apply(&self, object: &Value) {
        let resource = match object.str_at(&["kind"]).unwrap() {
            "Rollout" => resource::rollouts(),
            "Service" => resource::services(),
            "AnalysisTemplate" => resource::templates(),
            other => panic!("what is a {other}?"),
        };
        let place = Place::new(&self.namespace, object.str_at(&["metadata", "name"]).unwrap());
        self.api.apply(&resource, &place, object, Force::Taken, Run::Wet).await.unwrap();
    }

    pub async fn create(&self, resource: &Resource, object: Value) {
        self.api.create(resource, &self.namespace, &object).await.unwrap();
    }

    /// Changes an object by a merge patch.
    pub async fn change(&self, resource: &Resource, name: &str, patch: Value) {
        self.api.patch(resource, &Place::new(&self.namespace, name), "", &patch).await.unwrap();
    }

    pub async fn delete(&self, resource: &Resource, name: &str) {
        self.api.delete(resource, &Place::new(&self.namespace, name), &value!({})).await.unwrap();
    }

    /// Changes a Rollout's status, as people's commands do.
    pub async fn set_status(&self, name: &str, status: Value) {
        let place = Place::new(&self.namespace, name);
        self.api.patch(&resource::rollouts(), &place, "status", &value!({"status": status})).await.unwrap();
    }

    /// Goes on after a pause, as `promote` does.
    pub async fn promote(&self, name: &str) {
        self.set_status(name, value!({"pauseConditions": null})).await;
    }

    /// Gives a Rollout the image of another version.
    pub async fn set_version(&self, name: &str, version: &str) {
        self.change(&resource::rollouts(), name, value!({"spec": {"template": crate::template(name, version)}})).await;
    }

    /// Waits until a Rollout is in this phase, for the generation that was asked for.
    pub async fn phase(&self, name: &str, phase: &str) -> Value {
        self.until(&resource::rollouts(), name, phase, |rollout| {
            let generation = rollout.int_at(&["metadata", "generation"]).unwrap().to_string();
            rollout.str_at(&["status", "observedGeneration"]) == Some(&generation)
                && rollout.str_at(&["status", "phase"]) == Some(phase)
        })
        .await
    }

    /// Waits until the version of this hash wants so many pods.
    pub async fn size(&self, name: &str, hash: &str, replicas: i64) {
        let set = format!("{name}-{hash}");
        let wants = |set: &Value| set.int_at(&["spec", "replicas"]) == Some(replicas);
        self.until(&resource::sets(), &set, &format!("wants {replicas}"), wants).await;
    }

    /// The hash of each version of a Rollout and how many pods it wants, in the order of revisions.
    pub async fn sizes(&self, name: &str) -> Vec<(String, i64)> {
        let sets = self.api.get(&resource::sets().path(Some(&self.namespace)).unwrap()).await.unwrap();
        let mut sizes = Vec::new();
        for set in sets.list_at(&["items"]) {
            let hash = set.str_at(&["metadata", "labels", "rollouts-pod-template-hash"]).unwrap().to_owned();
            assert_eq!(set.str_at(&["metadata", "name"]), Some(format!("{name}-{hash}").as_str()));
            let revision: i64 =
                set.str_at(&["metadata", "annotations", "rollout.argoproj.io/revision"]).unwrap().parse().unwrap();
            sizes.push((revision, hash, set.int_at(&["spec", "replicas"]).unwrap()));
        }
        sizes.sort();
        sizes.into_iter().map(|(_, hash, replicas)| (hash, replicas)).collect()
    }

    /// The hash of the version that a Service selects.
    pub async fn selects(&self, service: &str) -> String {
        let path = format!("{}/{service}", resource::services().path(Some(&self.namespace)).unwrap());
        let service = self.api.get(&path).await.unwrap();
        service.str_at(&["spec", "selector", "rollouts-pod-template-hash"]).unwrap_or_default().to_owned()
    }

    /// Everything that happens to these resources from now on, beginning with what there is.
    pub fn follow(&self, resources: &[Resource]) -> Follower {
        let (sender, news) = mpsc::channel(4096);
        let mut watches = JoinSet::new();
        for resource in resources {
            let scope = Scope { namespace: Some(self.namespace.clone()), ..Scope::of(resource) };
            watches.spawn(watch::follow(self.api.clone(), scope, sender.clone()));
        }
        Follower { news, _watches: watches }
    }

    /// Waits until an object is no longer there.
    pub async fn gone(&self, of: &Resource, name: &str) {
        let mut follower = self.follow(std::slice::from_ref(of));
        let named = |object: &Value| object.str_at(&["metadata", "name"]) == Some(name);
        let reached = async {
            while let Some((_, news)) = follower.next().await {
                match news {
                    News::List(objects, _) if !objects.iter().any(named) => return true,
                    News::Gone(object) if named(&object) => return true,
                    News::List(..) | News::Object(_) | News::Gone(_) | News::Unserved => {}
                }
            }
            false
        };
        let reached = tokio::time::timeout(PATIENCE, reached).await.unwrap_or(false);
        assert!(reached, "{of} {}/{name} never went", self.namespace);
    }

    /// Waits until an object is as wanted, and answers with it.
    pub async fn until(&self, of: &Resource, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut follower = self.follow(std::slice::from_ref(of));
        let mut last = Value::Null;
        let reached = async {
            while let Some((_, news)) = follower.next().await {
                let objects = match news {
                    News::List(objects, _) => objects,
                    News::Object(object) => vec![object],
                    News::Gone(_) | News::Unserved => continue,
                };
                for object in objects.into_iter().filter(|object| object.str_at(&["metadata", "name"]) == Some(name)) {
                    last = object;
                    if wanted(&last) {
                        return true;
                    }
                }
            }
            false
        };
        let reached = tokio::time::timeout(PATIENCE, reached).await.unwrap_or(false);
        assert!(reached, "{of} {}/{name}: never {what}; last {}", self.namespace, last.to_json());
        last
    }
}

async fn given(file: &str) -> Api {
    let kubeconfig = Kubeconfig::read_from(file).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Api::new(Client::try_from(config).unwrap())
}

fn embedded() -> (Api, Option<Own>) {
    let mut store = Store::new(store::Config::new(Timestamp::now(), 1));
    tidegate::sim::install::definitions(&mut store).unwrap();
    let world = World::new(controllers::Settings { seed: 1, ..Default::default() });
    let cluster = Cluster::new(store, Some(world), None, Pace::Wall);
    tokio::spawn(cluster.clone().drive());
    let front = Front::new(cluster.clone(), service::Settings::default());
    let api = Api::new(Client::new(front, "default"));
    let (stop, stopped) = oneshot::channel();
    let stopped = async move { drop(stopped.await) };
    let daemon = tokio::spawn(daemon::run(api.clone(), daemon::Settings::default(), stopped));
    (api, Some(Own { cluster, stop, daemon }))
}
