//! The embedded cluster's figures, as a table: what was measured, what is wanted, and a floor from the same run where there
//! is one. `benches/run` also starts a real kube-apiserver, for the row of writes over HTTPS.
//!
//! Everything in process runs on one core. Each row is the best of several rounds, since what disturbs a measurement only
//! ever makes it slower.

use std::{
    alloc::System,
    sync::Arc,
    time::{Duration, Instant},
};

mod loopback;
#[path = "../table/mod.rs"]
mod table;

use cap::Cap;
use jiff::Timestamp;
use tidegate::{
    embedded::{
        controllers::{Settings, World},
        store::{
            Config, Store,
            request::{Answer, Options, PatchType, Request, Verb},
        },
    },
    kubernetes::{
        object::Object,
        value::{Text, Value},
    },
    value,
};

use table::{Row, thousands};

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

fn main() {
    let rows = vec![
        creates(),
        gets(),
        list(),
        merge_patches(),
        no_op_applies(),
        changing_applies(),
        fan_out(),
        world(),
        memory(),
        loopback::writes(),
    ];
    table::print(&rows);
}

/// How often `work` can be done in a second: the best of five rounds of `count`.
fn rate(count: usize, mut round: impl FnMut() -> Box<dyn FnMut(usize)>) -> f64 {
    let best = (0..5)
        .map(|_| {
            let mut work = round();
            let begin = Instant::now();
            (0..count).for_each(&mut work);
            begin.elapsed()
        })
        .min()
        .unwrap_or(Duration::MAX);
    count as f64 / best.as_secs_f64()
}

fn per_second(rate: f64) -> String {
    format!("{}/s", thousands(rate as u64))
}

fn store() -> Store {
    Store::new(Config::new(Timestamp::UNIX_EPOCH, 1))
}

fn request(verb: Verb, resource: &str, name: &str, body: Option<Value>) -> Request {
    let (group, resource) = resource.rsplit_once('/').unwrap_or(("", resource));
    Request {
        verb,
        group: group.into(),
        version: "v1".into(),
        resource: resource.into(),
        namespace: "default".into(),
        name: name.into(),
        body,
        agent: "bench".into(),
        ..Request::default()
    }
}

/// A ReplicaSet as a rollout engine makes it.
pub fn replica_set(name: &str) -> Value {
    value!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "labels": {"app": "web", "rollouts-pod-template-hash": "6b8f9c7d5"},
            "annotations": {"rollout.argoproj.io/desired-replicas": "5", "rollout.argoproj.io/revision": "3"},
            "ownerReferences": [{
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "controller": true,
                "uid": "7d0b8f3e-5a55-4c3b-9b1e-2d7f5f0c9a11", "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web", "rollouts-pod-template-hash": "6b8f9c7d5"}},
            "template": {
                "metadata": {"labels": {"app": "web", "rollouts-pod-template-hash": "6b8f9c7d5"}},
                "spec": {"containers": [{
                    "name": "web", "image": "registry.example/web:1.2.3",
                    "ports": [{"name": "http", "containerPort": 8080}],
                    "env": [{"name": "MODE", "value": "production"}, {"name": "REGION", "value": "eu-west-1"}],
                    "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "initialDelaySeconds": 5},
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                }]},
            },
        },
    })
}

/// A ConfigMap with a few entries.
pub fn config_map(name: &str) -> Value {
    value!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "data": {"mode": "production", "region": "eu-west-1", "count": "0"},
    })
}

fn created(count: usize, make: impl Fn(&str) -> Value, resource: &str) -> Store {
    let mut store = store();
    for i in 0..count {
        let body = make(&format!("object-{i}"));
        store.apply(request(Verb::Create, resource, "", Some(body))).expect("a valid object");
    }
    store
}

fn creates() -> Row {
    let measured = rate(5_000, || {
        let mut store = store();
        Box::new(move |i| {
            let body = replica_set(&format!("object-{i}"));
            store.apply(request(Verb::Create, "apps/replicasets", "", Some(body))).expect("a valid object");
        })
    });
    Row { name: "create a ReplicaSet".into(), measured: per_second(measured), wanted: "", peer: String::new() }
}

fn gets() -> Row {
    let measured = rate(100_000, || {
        let mut store = created(1_000, replica_set, "apps/replicasets");
        let names: Vec<String> = (0..1_000).map(|i| format!("object-{i}")).collect();
        Box::new(move |i| {
            let found = store.apply(request(Verb::Get, "apps/replicasets", &names[i % 1_000], None));
            std::hint::black_box(found.expect("it is there"));
        })
    });
    Row { name: "get".into(), measured: per_second(measured), wanted: "", peer: String::new() }
}

/// 10,000 objects of the size of a Rollout, as the bytes of a list.
fn list() -> Row {
    let mut store = created(10_000, replica_set, "apps/replicasets");
    let mut best = Duration::MAX;
    let mut size = 0;
    for _ in 0..5 {
        let begin = Instant::now();
        let response = store.apply(request(Verb::List, "apps/replicasets", "", None)).expect("a list");
        let Answer::List(_, list) = response.answer else { unreachable!("a list") };
        size = serde_json::to_vec(&list.items).expect("JSON").len();
        best = best.min(begin.elapsed());
    }
    let items: Vec<Arc<Object>> = store.list("apps", "replicasets", "default").cloned().collect();
    let json: Vec<serde_json::Value> = items.iter().map(|item| serde_json::to_value(&**item).expect("JSON")).collect();
    let begin = Instant::now();
    std::hint::black_box(serde_json::to_vec(&json).expect("JSON"));
    Row {
        name: format!("list 10,000 objects ({} MB) as JSON", size / 1_000_000),
        measured: format!("{} ms", best.as_millis()),
        wanted: "≤ 150 ms",
        peer: format!("serde_json::Value, the same bytes: {} ms", begin.elapsed().as_millis()),
    }
}

fn merge_patches() -> Row {
    let measured = rate(50_000, || {
        let mut store = created(1_000, config_map, "configmaps");
        let names: Vec<Text> = (0..1_000).map(|i| format!("object-{i}").into()).collect();
        Box::new(move |i| {
            let patch = value!({"data": {"count": i.to_string()}});
            let name = names[i % 1_000].as_str();
            store.apply(request(Verb::Patch(PatchType::Merge), "configmaps", name, Some(patch))).expect("a patch");
        })
    });
    Row {
        name: "small merge patch".into(), measured: per_second(measured), wanted: "≥ 50,000/s", peer: String::new()
    }
}

fn apply_request(name: &str, replicas: usize) -> Request {
    let mut body = replica_set(name);
    body.set_at(&["spec", "replicas"], replicas);
    let options = Options { field_manager: Some("bench".into()), force: Some(true), ..Options::default() };
    Request { options, ..request(Verb::Patch(PatchType::Apply), "apps/replicasets", name, Some(body)) }
}

fn applies(name: &str, replicas: impl Fn(usize) -> usize + Copy + 'static) -> Row {
    let measured = rate(20_000, || {
        let mut store = store();
        for i in 0..1_000 {
            store.apply(apply_request(&format!("object-{i}"), 0)).expect("an apply");
        }
        let bodies: Vec<Request> = (0..1_000).map(|i| apply_request(&format!("object-{i}"), 0)).collect();
        Box::new(move |i| {
            let mut request = bodies[i % 1_000].clone();
            if let Some(body) = &mut request.body {
                body.set_at(&["spec", "replicas"], replicas(i));
            }
            store.apply(request).expect("an apply");
        })
    });
    Row { name: name.into(), measured: per_second(measured), wanted: "≥ 10,000/s", peer: String::new() }
}

fn no_op_applies() -> Row {
    applies("server-side apply that changes nothing", |_| 0)
}

fn changing_applies() -> Row {
    applies("server-side apply that changes a field", |i| 1 + i / 1_000)
}

/// 100 watchers are handed each change, shared; what it costs to write it to their connections is not in it.
fn fan_out() -> Row {
    let measured = rate(2_000, || {
        let mut store = created(100, config_map, "configmaps");
        let mut list = request(Verb::List, "configmaps", "", None);
        list.options.resource_version = Some(store.version().to_string());
        let mut watches: Vec<_> = (0..100).map(|_| store.watch(&list).expect("a watch")).collect();
        Box::new(move |i| {
            let patch = value!({"data": {"count": i.to_string()}});
            let name = format!("object-{}", i % 100);
            store.apply(request(Verb::Patch(PatchType::Merge), "configmaps", &name, Some(patch))).expect("a patch");
            for watch in &mut watches {
                for event in store.poll(watch) {
                    std::hint::black_box(event.name());
                }
            }
        })
    });
    Row {
        name: "change told to 100 watchers".into(),
        measured: format!("{} events/s", thousands((measured * 100.0) as u64)),
        wanted: "",
        peer: String::new(),
    }
}

/// A world of 1,000 ReplicaSets with three pods each: from nothing to every pod ready, in virtual time.
fn world() -> Row {
    let container = serde_json::json!({"name": "c", "image": "app:v1", "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File", "terminationMessagePath": "/dev/termination-log"});
    let spec = serde_json::json!({"containers": [container], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler", "securityContext": {}});
    let mut best = (0, Duration::MAX);
    for _ in 0..3 {
        let mut store = Store::new(Config::new(Timestamp::UNIX_EPOCH, 1));
        for n in 0..1000 {
            let name = format!("web-{n}");
            let set = value!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
                "spec": {"replicas": 3, "selector": {"matchLabels": {"app": name}},
                    "template": {"metadata": {"labels": {"app": name}}, "spec": spec}}});
            let request = Request {
                verb: Verb::Create,
                group: "apps".into(),
                version: "v1".into(),
                resource: "replicasets".into(),
                namespace: "default".into(),
                body: Some(set),
                ..Request::default()
            };
            store.apply(request).expect("a ReplicaSet");
        }
        let mut world = World::new(Settings { seed: 1, ..Settings::default() });
        let mut steps = 0;
        let begin = Instant::now();
        loop {
            while world.step(&mut store) {
                steps += 1;
            }
            match world.next_wake() {
                Some(time) if time < Timestamp::UNIX_EPOCH + Duration::from_secs(60) => {
                    store.advance(time.duration_since(store.now()));
                }
                _ => break,
            }
        }
        let taken = begin.elapsed();
        let ready = store.list("apps", "replicasets", "default");
        assert!(ready.map(|set| set.value.int_at(&["status", "readyReplicas"])).all(|ready| ready == Some(3)));
        if taken < best.1 {
            best = (steps, taken);
        }
    }
    let (steps, taken) = best;
    Row {
        name: "steps of a world with 1,000 ReplicaSets".into(),
        measured: per_second(steps as f64 / taken.as_secs_f64()),
        wanted: "",
        peer: format!("3,000 pods ready in {} ms", thousands(taken.as_millis() as u64)),
    }
}

fn memory() -> Row {
    const COUNT: usize = 10_000;
    let before = MEMORY.allocated();
    let mut store = Store::new(Config { window: 1, ..Config::new(Timestamp::UNIX_EPOCH, 1) });
    for i in 0..COUNT {
        let body = replica_set(&format!("object-{i}")).to_json();
        let body = Value::from_json(body.as_bytes()).expect("JSON");
        store.apply(request(Verb::Create, "apps/replicasets", "", Some(body))).expect("a valid object");
        // A status write gives the second manager that every live ReplicaSet has.
        let status = value!({"status": {"replicas": 0, "observedGeneration": 1}});
        let name = format!("object-{i}");
        let mut write = request(Verb::Patch(PatchType::Merge), "apps/replicasets", &name, Some(status));
        write.subresource = "status".into();
        write.agent = "kube-controller-manager".into();
        store.apply(write).expect("a status");
    }
    let each = (MEMORY.allocated() - before) / COUNT;
    let json = serde_json::to_vec(&**store.get("apps", "replicasets", "default", "object-7").expect("it is there"));
    Row {
        name: "memory of a stored ReplicaSet".into(),
        measured: format!("{:.1} KB", each as f64 / 1e3),
        wanted: "≤ 12 KB",
        peer: format!("its JSON: {:.1} KB", json.map_or(0, |json| json.len()) as f64 / 1e3),
    }
}
