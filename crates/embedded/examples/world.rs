//! The store and a world around it: controllers and kubelets in virtual time. A Deployment comes up, and an image that crashes keeps
//! the old pods serving.
//!
//! `cargo run -p tidegate-embedded --example world`

use jiff::{SignedDuration, Timestamp};
use tidegate_embedded::{
    controllers::{Settings, World},
    store::{
        Config, Store,
        request::{Request, Verb},
    },
};
use tidegate_kubernetes::{patch::PatchType, value, value::Value};

pub(crate) fn main() {
    let mut store = Store::new(Config::new(Timestamp::UNIX_EPOCH, /* seed */ 1));
    let mut world = World::new(Settings::default());

    let answer = store.apply(Request { verb: Verb::Create, body: Some(web()), ..deployments() });
    assert_eq!(answer.map(|response| response.code), Ok(201));
    // Everything that is due within a minute happens now, each at its time.
    world.advance(&mut store, SignedDuration::from_mins(1));
    assert_eq!(ready(&store), Some(3));

    // The tag says what happens to the pods: docs of `controllers::kubelet`.
    let containers = value!([{"name": "web", "image": "registry.example/web:crash"}]);
    let patch = value!({"spec": {"template": {"spec": {"containers": containers}}}});
    let verb = Verb::Patch(PatchType::Strategic);
    let answer = store.apply(Request { verb, name: "web".into(), body: Some(patch), ..deployments() });
    assert_eq!(answer.map(|response| response.code), Ok(200));
    world.advance(&mut store, SignedDuration::from_mins(5));
    // The rolling update does not get past its first pod.
    assert_eq!(ready(&store), Some(3));
    let waiting = store.list("", "pods", "default").filter_map(|pod| {
        let container = pod.value.list_at(&["status", "containerStatuses"]).first()?;
        container.str_at(&["state", "waiting", "reason"]).map(str::to_owned)
    });
    assert_eq!(waiting.collect::<Vec<_>>(), ["CrashLoopBackOff"]);
    println!("3 pods ready, 1 in CrashLoopBackOff");
}

fn deployments() -> Request {
    Request {
        group: "apps".into(),
        version: "v1".into(),
        resource: "deployments".into(),
        namespace: "default".into(),
        ..Request::default()
    }
}

fn web() -> Value {
    value!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web:1.0"}]},
            },
        },
    })
}

fn ready(store: &Store) -> Option<i64> {
    let web = store.get("apps", "deployments", "default", "web")?;
    web.value.at(&["status", "readyReplicas"]).and_then(Value::as_int)
}
