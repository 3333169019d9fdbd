//! What the daemon's cache costs: a Rollout with three ReplicaSets, as a server sends them, in at most 15 KB.
#![allow(missing_docs, clippy::unwrap_used)]

use std::alloc::System;

use cap::Cap;
use jiff::{SignedDuration, Timestamp};
use tidegate::{
    embedded::{
        controllers::Settings,
        store::request::{PatchType, Request, Verb},
    },
    engine::{
        cache::{Cache, News},
        key::Resource,
    },
    kubernetes::value::Value,
    sim::local::Local,
    value,
};

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

const ROLLOUTS: usize = 200;
const LIMIT: usize = 15 * 1024;

/// A Rollout that was updated twice, and its three ReplicaSets, as the API server sends them.
fn objects() -> Vec<(Resource, String)> {
    let mut local = Local::new(Timestamp::UNIX_EPOCH, Settings::default());
    let rollouts = |verb, name: &str, body| Request {
        verb,
        group: "argoproj.io".into(),
        version: "v1alpha1".into(),
        resource: "rollouts".into(),
        namespace: "default".into(),
        name: name.into(),
        agent: "kubectl".into(),
        body: Some(body),
        ..Request::default()
    };
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/canary.yaml");
    let read = tidegate::manifest::read("canary.yaml", &std::fs::read(file).unwrap());
    let mut body = read.objects[0].value.clone();
    // As people apply it, with what kubectl notes and what pods usually have.
    let container = value!({
        "name": "web", "image": "registry.example/web:1.0", "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": "LEVEL", "value": "info"}, {"name": "REGION", "value": "north"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
    });
    body.set_at(&["spec", "template", "spec", "containers"], Value::list([container]));
    let applied = body.to_json();
    body.set_at(&["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"], applied);
    local.ask(rollouts(Verb::Create, "", body)).unwrap();
    local.advance(SignedDuration::from_secs(300));
    for image in ["registry.example/web:2.0", "registry.example/web:3.0"] {
        let patch = value!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]);
        local.ask(rollouts(Verb::Patch(PatchType::Json), "web", patch)).unwrap();
        local.advance(SignedDuration::from_secs(300));
    }
    let all = |group: &'static str, version: &str, plural: &str| {
        let resource = Resource::new(group, version, plural);
        let objects = local.store().list(group, plural, "default");
        objects.map(|object| (resource.clone(), object.with_managed_fields().to_json())).collect::<Vec<_>>()
    };
    [all("argoproj.io", "v1alpha1", "rollouts"), all("apps", "v1", "replicasets")].concat()
}

#[test]
fn a_rollout_with_three_replica_sets_is_small() {
    let objects = objects();
    assert_eq!(objects.len(), 4, "a Rollout and three ReplicaSets");
    let mut cache = Cache::default();
    let mut take = |number: usize| {
        for (resource, text) in &objects {
            let mut object = Value::from_json(text.as_bytes()).unwrap();
            let name = object.str_at(&["metadata", "name"]).unwrap().replacen("web", &format!("web{number}"), 1);
            object.set_at(&["metadata", "name"], name);
            drop(cache.take(resource, News::Object(object)));
        }
    };
    // The first one brings the words that all of them share.
    take(0);
    let before = MEMORY.allocated();
    (1..=ROLLOUTS).for_each(&mut take);
    let each = (MEMORY.allocated() - before) / ROLLOUTS;
    let sent: usize = objects.iter().map(|(_, text)| text.len()).sum();
    println!("{each} bytes in the cache for {sent} bytes of JSON");
    assert!(each <= LIMIT, "{each} bytes, more than {LIMIT}");
}
