//! kube's own client on the embedded cluster, in process and under paused time: what a Rust controller relies on.

use std::{collections::BTreeMap, time::Duration};

use futures::{StreamExt, TryStreamExt, pin_mut};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::ReplicaSet,
        core::v1::{ConfigMap, Namespace, Pod},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Client,
    api::{
        Api, ApiResource, DeleteParams, DynamicObject, EvictParams, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams, WatchEvent, WatchParams,
    },
    core::PartialObjectMeta,
    discovery::Discovery,
    runtime::{WatchStreamExt, predicates, reflector, watcher},
};
use serde_json::json;
use tidegate::embedded::{
    http::{
        cluster::{Cluster, Pace},
        service::{Front, Settings},
    },
    store::{Config, Store},
};

/// A cluster in which nothing happens by itself.
fn cluster() -> Cluster {
    let config = Config::new("2026-11-16T08:00:00Z".parse::<Timestamp>().unwrap(), 7);
    Cluster::new(Store::new(config), None, None, Pace::Runtime)
}

fn client(cluster: &Cluster) -> Client {
    Client::new(Front::new(cluster.clone(), Settings::default()), "default")
}

fn config_map(name: &str, data: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": data}})).unwrap()
}

async fn fill(api: &Api<ConfigMap>, count: usize) {
    for at in 0..count {
        api.create(&PostParams::default(), &config_map(&format!("c{at:04}"), "x")).await.unwrap();
    }
}

/// Lets every task that can run do so.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

#[tokio::test(start_paused = true)]
async fn a_watcher_pages_through_more_objects_than_a_page_holds() {
    let cluster = cluster();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster));
    fill(&api, 1203).await;
    let stream = watcher(api.clone(), watcher::Config::default().page_size(500));
    pin_mut!(stream);
    let mut seen = Vec::new();
    loop {
        match stream.try_next().await.unwrap().unwrap() {
            watcher::Event::Init => {}
            watcher::Event::InitApply(object) => seen.push(object.metadata.name.unwrap()),
            watcher::Event::InitDone => break,
            watcher::Event::Apply(_) | watcher::Event::Delete(_) => panic!("nothing changes"),
        }
    }
    assert_eq!(seen.len(), 1203);
    assert!(seen.is_sorted());
    api.create(&PostParams::default(), &config_map("later", "x")).await.unwrap();
    let event = stream.try_next().await.unwrap().unwrap();
    assert!(matches!(event, watcher::Event::Apply(object) if object.metadata.name.as_deref() == Some("later")));
    api.delete("later", &DeleteParams::default()).await.unwrap();
    let event = stream.try_next().await.unwrap().unwrap();
    assert!(matches!(event, watcher::Event::Delete(object) if object.metadata.name.as_deref() == Some("later")));
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_begins_with_what_is_there() {
    let cluster = cluster();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster));
    fill(&api, 600).await;
    let stream = watcher(api.clone(), watcher::Config::default().streaming_lists());
    pin_mut!(stream);
    let mut seen = 0;
    loop {
        match stream.try_next().await.unwrap().unwrap() {
            watcher::Event::InitApply(_) => seen += 1,
            watcher::Event::InitDone => break,
            watcher::Event::Init => {}
            watcher::Event::Apply(_) | watcher::Event::Delete(_) => panic!("nothing changes"),
        }
    }
    assert_eq!(seen, 600);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fell_behind_is_told_and_recovers() {
    let cluster = cluster();
    let client = client(&cluster);
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    fill(&api, 3).await;
    let old = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let newer = api.create(&PostParams::default(), &config_map("newer", "x")).await.unwrap();
    cluster.with(|store| store.compact(store.version()));
    let events = api.watch(&WatchParams::default(), &old).await.unwrap();
    let first = Box::pin(events).try_next().await.unwrap().unwrap();
    assert!(matches!(first, WatchEvent::Error(status) if status.code == 410 && status.reason == "Expired"));

    let (reader, writer) = reflector::store();
    let objects = reflector(writer, watcher(api.clone(), watcher::Config::default()).default_backoff());
    let driver = tokio::spawn(objects.for_each(|_| async {}));
    reader.wait_until_ready().await.unwrap();
    assert_eq!(reader.state().len(), 4);
    // Cut the watch off, let it miss a change for good, and see it come back with the change.
    cluster.with(|store| store.compact(store.version()));
    api.delete(&newer.metadata.name.unwrap(), &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(reader.state().len(), 3);
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_reflector_follows_labels_in_and_out_of_its_view() {
    let cluster = cluster();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster));
    fill(&api, 2).await;
    let (reader, writer) = reflector::store();
    let watched = watcher(api.clone(), watcher::Config::default().labels("show=yes"));
    let driver = tokio::spawn(reflector(writer, watched).for_each(|_| async {}));
    reader.wait_until_ready().await.unwrap();
    assert_eq!(reader.state().len(), 0);
    let label = |value: &str| Patch::Merge(json!({"metadata": {"labels": {"show": value}}}));
    api.patch("c0000", &PatchParams::default(), &label("yes")).await.unwrap();
    settle().await;
    assert_eq!(reader.state().len(), 1);
    api.patch("c0000", &PatchParams::default(), &label("no")).await.unwrap();
    settle().await;
    assert_eq!(reader.state().len(), 0);
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_time_is_over_and_bookmarks_come_each_minute() {
    let cluster = cluster();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster));
    fill(&api, 1).await;
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let started = tokio::time::Instant::now();
    let params = WatchParams::default().timeout(150);
    let events: Vec<_> = api.watch(&params, &version).await.unwrap().try_collect().await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 150);
    let bookmarks = events.iter().filter(|event| matches!(event, WatchEvent::Bookmark(_))).count();
    assert_eq!((events.len(), bookmarks), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn closing_the_cluster_ends_its_watches() {
    let cluster = cluster();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster));
    let events = api.watch(&WatchParams::default(), "0").await.unwrap();
    let events = tokio::spawn(events.try_collect::<Vec<_>>());
    settle().await;
    cluster.close();
    assert_eq!(events.await.unwrap().unwrap().len(), 1, "the end of the initial events");
}

#[tokio::test(start_paused = true)]
async fn server_side_apply_knows_whose_field_it_is() {
    let cluster = cluster();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster));
    let body = |data: &str| {
        Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": data}}))
    };
    let ours = PatchParams::apply("ours");
    let made = api.patch("c", &ours, &body("1")).await.unwrap();
    assert_eq!(made.data, Some(BTreeMap::from([("a".into(), "1".into())])));
    let conflict = api.patch("c", &PatchParams::apply("theirs"), &body("2")).await.unwrap_err();
    let kube::Error::Api(status) = conflict else { panic!("{conflict}") };
    assert_eq!(
        (status.code, status.message.as_str()),
        (409, "Apply failed with 1 conflict: conflict with \"ours\": .data.a")
    );
    let taken = api.patch("c", &PatchParams::apply("theirs").force(), &body("2")).await.unwrap();
    assert_eq!(taken.data, Some(BTreeMap::from([("a".into(), "2".into())])));
    let managers: Vec<_> =
        taken.metadata.managed_fields.unwrap().into_iter().filter_map(|entry| entry.manager).collect();
    assert_eq!(managers, ["theirs"]);
}

fn replica_set(replicas: i32) -> ReplicaSet {
    serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    }))
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn scale_is_a_view_of_the_object() {
    let cluster = cluster();
    let api: Api<ReplicaSet> = Api::default_namespaced(client(&cluster));
    api.create(&PostParams::default(), &replica_set(2)).await.unwrap();
    assert_eq!(api.get_scale("web").await.unwrap().spec.unwrap().replicas, Some(2));
    let patch = Patch::Merge(json!({"spec": {"replicas": 5}}));
    let scaled = api.patch_scale("web", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(5));
    let whole = api.get("web").await.unwrap();
    assert_eq!((whole.spec.unwrap().replicas, whole.metadata.generation), (Some(5), Some(2)));
}

#[tokio::test(start_paused = true)]
async fn status_is_written_apart_from_the_rest() {
    let cluster = cluster();
    let api: Api<ReplicaSet> = Api::default_namespaced(client(&cluster));
    api.create(&PostParams::default(), &replica_set(2)).await.unwrap();
    let patch = Patch::Merge(json!({"status": {"replicas": 2}, "spec": {"replicas": 9}}));
    let written = api.patch_status("web", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!((written.spec.unwrap().replicas, written.status.unwrap().replicas), (Some(2), 2));
    assert_eq!(written.metadata.generation, Some(1));
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_goes() {
    let cluster = cluster();
    let api: Api<Pod> = Api::default_namespaced(client(&cluster));
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
    api.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    api.evict("p", &EvictParams::default()).await.unwrap();
    let left = api.get_opt("p").await.unwrap();
    assert!(left.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()));
    let missing = api.evict("q", &EvictParams::default()).await.unwrap_err();
    assert!(matches!(missing, kube::Error::Api(status) if status.is_not_found()));
}

#[tokio::test(start_paused = true)]
async fn a_stale_write_is_a_conflict() {
    let cluster = cluster();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster));
    let first = api.create(&PostParams::default(), &config_map("c", "1")).await.unwrap();
    api.replace("c", &PostParams::default(), &first).await.unwrap();
    let mut second = first.clone();
    second.data = Some(BTreeMap::from([("a".into(), "2".into())]));
    api.replace("c", &PostParams::default(), &second).await.unwrap();
    second.data = None;
    let stale = api.replace("c", &PostParams::default(), &second).await.unwrap_err();
    assert!(matches!(stale, kube::Error::Api(status) if status.is_conflict()));
}

#[tokio::test(start_paused = true)]
async fn metadata_can_be_watched_without_the_rest() {
    let cluster = cluster();
    let client = client(&cluster);
    let whole: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let partial: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
    fill(&whole, 2).await;
    assert_eq!(partial.list(&ListParams::default()).await.unwrap().items.len(), 2);
    let changes = watcher(partial, watcher::Config::default())
        .touched_objects()
        .predicate_filter(predicates::resource_version, Default::default());
    pin_mut!(changes);
    assert_eq!(changes.try_next().await.unwrap().unwrap().metadata.name.as_deref(), Some("c0000"));
    assert_eq!(changes.try_next().await.unwrap().unwrap().metadata.name.as_deref(), Some("c0001"));
    whole.patch("c0001", &PatchParams::default(), &Patch::Merge(json!({"data": {"b": "c"}}))).await.unwrap();
    assert_eq!(changes.try_next().await.unwrap().unwrap().metadata.name.as_deref(), Some("c0001"));
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_discovered_once_they_are_defined() {
    let cluster = cluster();
    let client = client(&cluster);
    let definition = json!({
        "metadata": {"name": "gadgets.front.test"},
        "spec": {
            "group": "front.test", "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    });
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &serde_json::from_value(definition).unwrap()).await.unwrap();
    settle().await;
    let kind = GroupVersionKind::gvk("front.test", "v1", "Gadget");
    let discovery = Discovery::new(client.clone()).run_aggregated().await.unwrap();
    let (resource, _) = discovery.resolve_gvk(&kind).unwrap();
    assert_eq!(resource, ApiResource::from_gvk_with_plural(&kind, "gadgets"));
    let api: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let gadget = DynamicObject::new("g", &resource).data(json!({"spec": {"wrong": true}}));
    let made = api.create(&PostParams::default(), &gadget).await.unwrap();
    assert_eq!(made.data["spec"], json!({"size": 3}));
}

#[tokio::test(start_paused = true)]
async fn one_seed_makes_one_cluster() {
    let story = || async {
        let cluster = cluster();
        let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster));
        fill(&api, 5).await;
        tokio::time::sleep(Duration::from_secs(90)).await;
        fill(&Api::namespaced(client(&cluster), "kube-system"), 2).await;
        let namespaces: Api<Namespace> = Api::all(client(&cluster));
        let all = namespaces.list(&ListParams::default()).await.unwrap();
        let maps = Api::<ConfigMap>::all(client(&cluster)).list(&ListParams::default()).await.unwrap();
        serde_json::to_string(&(all, maps)).unwrap()
    };
    let (first, second) = (story().await, story().await);
    assert_eq!(first, second);
    assert!(first.contains("2026-11-16T08:01:30Z"), "time passes as the runtime's does");
}
