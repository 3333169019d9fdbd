//! Laws of the embedded cluster's store, over generated sequences of requests.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::json;
use tidegate::embedded::store::{
    Config, Store,
    request::{Options, PatchType, Request, Verb},
    watch::WatchEvent,
};
use tidegate::kubernetes::{object::Object, value::Value};

/// One thing a client may do, to one of a few objects.
#[derive(Debug, Clone)]
enum Step {
    Create(u8, u8),
    Update(u8, u8, bool),
    Patch(PatchType, u8, serde_json::Value),
    Apply(u8, u8, serde_json::Value, bool),
    Delete(u8, Option<&'static str>),
    DeleteCollection(u8),
    Anything(Verb, u8, serde_json::Value),
}

fn name(n: u8) -> String {
    format!("object-{}", n % 5)
}

fn config_map(n: u8, v: u8) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name(n), "labels": {"color": if v.is_multiple_of(2) { "red" } else { "blue" }}},
        "data": {"a": v.to_string(), format!("key-{}", v % 3): "x"},
    })
}

fn base(verb: Verb, n: u8, body: Option<serde_json::Value>) -> Request {
    Request {
        verb,
        version: "v1".into(),
        resource: "configmaps".into(),
        namespace: "default".into(),
        name: name(n).into(),
        body: body.map(Value::from),
        agent: "law".into(),
        ..Request::default()
    }
}

fn request(step: &Step) -> Request {
    match step {
        Step::Create(n, v) => Request { name: "".into(), ..base(Verb::Create, *n, Some(config_map(*n, *v))) },
        Step::Update(n, v, stale) => {
            let mut body = config_map(*n, *v);
            if *stale {
                body["metadata"]["resourceVersion"] = json!("1");
            }
            base(Verb::Update, *n, Some(body))
        }
        Step::Patch(how, n, patch) => base(Verb::Patch(*how), *n, Some(patch.clone())),
        Step::Apply(n, who, data, force) => {
            let body = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name(*n)}, "data": data,
            });
            let manager = Some(format!("manager-{}", who % 3).into());
            let options = Options { field_manager: manager, force: Some(*force), ..Options::default() };
            Request { options, ..base(Verb::Patch(PatchType::Apply), *n, Some(body)) }
        }
        Step::Delete(n, policy) => {
            let mut request = base(Verb::Delete, *n, None);
            request.options.propagation_policy = policy.map(Into::into);
            request
        }
        Step::DeleteCollection(color) => {
            let mut request = base(Verb::DeleteCollection, 0, None);
            request.name = "".into();
            request.options.label_selector = format!("color={}", if color % 2 == 0 { "red" } else { "blue" });
            request
        }
        Step::Anything(verb, n, body) => base(*verb, *n, Some(body.clone())),
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|b| json!(b)),
        any::<i64>().prop_map(|n| json!(n)),
        "[a-z$.:/~]{0,12}".prop_map(|s| json!(s)),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            prop::collection::btree_map(any_key(), inner, 0..5).prop_map(|map| json!(map)),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("apiVersion".to_owned()),
        Just("kind".to_owned()),
        Just("metadata".to_owned()),
        Just("name".to_owned()),
        Just("labels".to_owned()),
        Just("finalizers".to_owned()),
        Just("managedFields".to_owned()),
        Just("ownerReferences".to_owned()),
        Just("data".to_owned()),
        Just("$patch".to_owned()),
        Just("$setElementOrder/finalizers".to_owned()),
        "[a-z]{1,6}",
    ]
}

/// Patches that mostly make sense.
fn good_patch() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        (any::<u8>(), any::<u8>()).prop_map(|(k, v)| json!({"data": {format!("key-{}", k % 3): v.to_string()}})),
        any::<u8>().prop_map(|k| json!({"data": {format!("key-{}", k % 3): null}})),
        Just(json!({"metadata": {"labels": {"color": "red"}}})),
        Just(json!({"metadata": {"labels": {"color": "blue"}}})),
        Just(json!({"metadata": {"finalizers": ["law.test/hold"]}})),
        Just(json!({"metadata": {"finalizers": null}})),
        Just(json!({"metadata": {"annotations": {"note": "x"}}})),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let data = prop::collection::btree_map("key-[0-2]", "[xyz]", 0..3).prop_map(|map| json!(map));
    let verbs = prop_oneof![
        Just(Verb::Create),
        Just(Verb::Update),
        Just(Verb::Patch(PatchType::Json)),
        Just(Verb::Patch(PatchType::Merge)),
        Just(Verb::Patch(PatchType::Strategic)),
        Just(Verb::Patch(PatchType::Apply)),
        Just(Verb::Delete),
    ];
    prop_oneof![
        4 => (any::<u8>(), any::<u8>()).prop_map(|(n, v)| Step::Create(n, v)),
        2 => (any::<u8>(), any::<u8>(), any::<bool>()).prop_map(|(n, v, stale)| Step::Update(n, v, stale)),
        4 => (any::<u8>(), good_patch()).prop_map(|(n, patch)| Step::Patch(PatchType::Merge, n, patch)),
        2 => (any::<u8>(), good_patch()).prop_map(|(n, patch)| Step::Patch(PatchType::Strategic, n, patch)),
        4 => (any::<u8>(), any::<u8>(), data, any::<bool>()).prop_map(|(n, who, data, force)| Step::Apply(n, who, data, force)),
        2 => (any::<u8>(), prop_oneof![Just(None), Just(Some("Foreground")), Just(Some("Orphan")), Just(Some("Background"))])
            .prop_map(|(n, policy)| Step::Delete(n, policy)),
        1 => any::<u8>().prop_map(Step::DeleteCollection),
        2 => (verbs, any::<u8>(), any_json()).prop_map(|(verb, n, body)| Step::Anything(verb, n, body)),
    ]
}

/// The same cases in every run; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` try others.
fn laws() -> ProptestConfig {
    let given = ProptestConfig::default();
    let rng_seed = if std::env::var_os("PROPTEST_RNG_SEED").is_some() { given.rng_seed } else { RngSeed::Fixed(7) };
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { given.cases } else { 200 };
    ProptestConfig { rng_seed, cases, failure_persistence: None, ..given }
}

fn fresh() -> Store {
    Store::new(Config::new(Timestamp::UNIX_EPOCH, 7))
}

/// What is stored, as JSON by name.
fn contents(store: &Store) -> BTreeMap<String, String> {
    store.everything().map(|object| (key(object), serde_json::to_string(&**object).unwrap())).collect()
}

fn key(object: &Arc<Object>) -> String {
    let kind = object.value.str_at(&["kind"]).unwrap_or_default();
    format!("{kind}/{}/{}", object.namespace(), object.name())
}

fn follow(selector: &str, store: &Store) -> Request {
    let mut list = base(Verb::List, 0, None);
    list.name = "".into();
    list.options.label_selector = selector.into();
    list.options.resource_version = Some(store.version().to_string());
    list
}

proptest! {
    #![proptest_config(laws())]

    /// A list, and the events of a watch from its version, make the next list: whatever selects, whatever happens.
    #[test]
    fn a_watch_is_a_list_and_its_changes(steps in prop::collection::vec(step(), 1..40), selector in prop_oneof![Just(""), Just("color=red"), Just("color!=red")]) {
        let mut store = fresh();
        let mut watch = store.watch(&follow(selector, &store)).unwrap();
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for step in &steps {
            let _ = store.apply(request(step));
            for event in store.poll(&mut watch) {
                let object = event.object().expect("no error within the window");
                let json = serde_json::to_string(&**object).unwrap();
                match event {
                    WatchEvent::Added(_) => prop_assert!(seen.insert(key(object), json).is_none(), "added twice"),
                    WatchEvent::Modified(_) => prop_assert!(seen.insert(key(object), json).is_some(), "modified unseen"),
                    WatchEvent::Deleted(_) => prop_assert!(seen.remove(&key(object)).is_some(), "deleted unseen"),
                    WatchEvent::Bookmark(_) | WatchEvent::Error(_) => prop_assert!(false, "an object"),
                }
            }
            let mut list = follow(selector, &store);
            list.options.resource_version = None;
            let listed = store.apply(list).unwrap();
            let now: BTreeMap<String, String> =
                listed.items().iter().map(|object| (key(object), serde_json::to_string(&**object).unwrap())).collect();
            prop_assert_eq!(&seen, &now);
        }
    }

    /// A refused request changes nothing, and every refusal is a 4xx or one of the real server's 500s with words.
    #[test]
    fn a_refusal_leaves_everything_as_it_was(steps in prop::collection::vec(step(), 1..40)) {
        let mut store = fresh();
        for step in &steps {
            let (before, version) = (contents(&store), store.version());
            if let Err(status) = store.apply(request(step)) {
                prop_assert!((400..=504).contains(&status.code) && !status.message.is_empty(), "{:?}", status);
                prop_assert_eq!(store.version(), version);
                prop_assert_eq!(contents(&store), before);
            }
        }
    }

    /// The same seed and requests make the same cluster, byte for byte.
    #[test]
    fn the_same_story_makes_the_same_cluster(steps in prop::collection::vec(step(), 1..30)) {
        let play = || {
            let mut store = fresh();
            for step in &steps {
                let _ = store.apply(request(step));
            }
            contents(&store)
        };
        prop_assert_eq!(play(), play());
    }

    /// A dry run answers like the real thing and leaves no trace.
    #[test]
    fn a_dry_run_tells_the_truth(steps in prop::collection::vec(step(), 1..30)) {
        let mut store = fresh();
        for step in &steps {
            let mut dry = request(step);
            dry.options.dry_run = true;
            let before = contents(&store);
            let told = store.apply(dry).map(|response| response.code).map_err(|status| status.code);
            prop_assert_eq!(contents(&store), before);
            let done = store.apply(request(step)).map(|response| response.code).map_err(|status| status.code);
            prop_assert_eq!(told, done);
        }
    }

    /// Saving and restoring every object makes a cluster that answers alike.
    #[test]
    fn a_restored_cluster_is_the_same(steps in prop::collection::vec(step(), 1..30)) {
        let mut store = fresh();
        for step in &steps {
            let _ = store.apply(request(step));
        }
        let mut again = Store::empty(Config::new(Timestamp::UNIX_EPOCH, 7));
        for object in store.everything() {
            again.restore((**object).clone()).map_err(TestCaseError::fail)?;
        }
        again.resume(store.version());
        prop_assert_eq!(contents(&again), contents(&store));
        prop_assert_eq!(again.version(), store.version());
    }
}
