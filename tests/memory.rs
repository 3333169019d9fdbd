//! What the daemon's cache costs: a Rollout with three ReplicaSets, as a server sends them, in at most 15 KB; and that
//! nothing is left of those that are gone.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{alloc::System, sync::Mutex};

use cap::Cap;
use jiff::{SignedDuration, Timestamp};
use tidegate::{
    embedded::{
        controllers::Settings,
        store::request::{PatchType, Request, Verb},
    },
    engine::{
        cache::{Cache, News},
        key::{Key, Resource},
        metrics::{Ending, Metrics},
        queue::Outcome,
        state::State,
        write::Written,
    },
    kubernetes::value::Value,
    sim::local::Local,
    value,
};

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// One test measures at a time.
static ALONE: Mutex<()> = Mutex::new(());

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
    let _alone = ALONE.lock().unwrap();
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

/// The objects of one Rollout among many: names and identities of its own.
fn numbered(objects: &[(Resource, Value)], number: usize) -> Vec<(Resource, Value)> {
    let uid = |text: &str| format!("{number:08x}{}", text.get(8..).unwrap_or_default());
    let rename = |(resource, object): &(Resource, Value)| {
        let mut object = object.clone();
        for path in [&["metadata", "name"][..], &["metadata", "generateName"]] {
            let name = object.str_at(path).map(|name| name.replacen("web", &format!("web{number}"), 1));
            name.into_iter().for_each(|name| object.set_at(path, name));
        }
        let own = uid(object.str_at(&["metadata", "uid"]).unwrap());
        object.set_at(&["metadata", "uid"], own);
        if let Some(owner) = object.list_at(&["metadata", "ownerReferences"]).first() {
            let mut owner = owner.clone();
            owner.set_at(&["uid"], uid(owner.str_at(&["uid"]).unwrap()));
            object.set_at(&["metadata", "ownerReferences"], Value::list([owner]));
        }
        (resource.clone(), object)
    };
    objects.iter().map(rename).collect()
}

#[test]
fn s54_nothing_is_left_of_ten_thousand_that_came_and_went() {
    let _alone = ALONE.lock().unwrap();
    let read = |(resource, text): (Resource, String)| (resource, Value::from_json(text.as_bytes()).unwrap());
    let objects: Vec<(Resource, Value)> = objects().into_iter().map(read).collect();
    let (mut state, mut metrics) = (State::default(), Metrics::default());
    let mut live = std::collections::VecDeque::new();
    let mut cycle = |number: usize| {
        let now = Timestamp::from_second(i64::try_from(number).unwrap() * 60).unwrap();
        let hear = |state: &mut State, metrics: &mut Metrics, resource: &Resource, news: News| {
            let heard = state.hear(resource, news, now);
            heard.removed.iter().for_each(|place| metrics.forget(&resource.plural, place, now));
            heard.keys.iter().chain(&heard.again).for_each(|key| state.queue.add(key));
        };
        let own = numbered(&objects, number);
        for (resource, object) in &own {
            hear(&mut state, &mut metrics, resource, News::Object(object.clone()));
        }
        live.push_back(own);
        // Always fifty of them.
        for (resource, object) in if live.len() > 50 { live.pop_front().unwrap() } else { Vec::new() } {
            hear(&mut state, &mut metrics, &resource, News::Gone(object));
        }
        while let Some(key) = state.next(now, |_| {}) {
            metrics.passed(&key, 0.001, Ending::Settled);
            metrics.announced(key.place.clone(), "Normal", "RolloutCompleted");
            let outcome = if number.is_multiple_of(7) { Outcome::Failed(None) } else { Outcome::Settled(None) };
            let written = written(&state, &key);
            state.finish(&key, written, outcome, now, |_| true);
        }
    };
    (0..1_000).for_each(&mut cycle);
    let early = MEMORY.allocated();
    (1_000..10_000).for_each(&mut cycle);
    let late = MEMORY.allocated();
    println!("{early} bytes after 1,000 that came and went, {late} after 10,000");
    assert!(late * 10 <= early * 11, "{early} bytes became {late}");
}

/// A write of the Rollout that was seen at once.
fn written(state: &State, key: &Key) -> Vec<Written> {
    let resource = Resource::new("argoproj.io", "v1alpha1", "rollouts");
    let version = state.cache.get(&resource, &key.place).map(tidegate::engine::cache::version_of);
    let object = tidegate::engine::key::ObjectKey { resource, place: key.place.clone() };
    version.map(|version| Written::Version(object, version)).into_iter().collect()
}
