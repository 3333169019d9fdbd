//! The store as a client sees it, without a front.

use super::{
    request::{Options, PatchType},
    watch::WatchEvent,
    *,
};
use crate::{kubernetes::status::Reason, value};

fn store() -> Store {
    Store::new(Config::new(Timestamp::UNIX_EPOCH, 1))
}

fn ask(verb: Verb, resource: &str, name: &str, body: Option<Value>) -> Request {
    let (group, resource) = resource.rsplit_once('/').unwrap_or(("", resource));
    Request {
        verb,
        group: group.into(),
        version: "v1".into(),
        resource: resource.into(),
        namespace: "default".into(),
        name: name.into(),
        body,
        agent: "test".into(),
        ..Request::default()
    }
}

fn config_map(name: &str, data: serde_json::Value) -> Value {
    value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn create(store: &mut Store, name: &str) -> Arc<Object> {
    let request = ask(Verb::Create, "configmaps", "", Some(config_map(name, serde_json::json!({"a": "1"}))));
    store.apply(request).unwrap().object().unwrap().clone()
}

fn merge(store: &mut Store, name: &str, patch: Value) -> Outcome {
    store.apply(ask(Verb::Patch(PatchType::Merge), "configmaps", name, Some(patch)))
}

#[test]
fn a_new_object_gets_what_the_server_gives() {
    let mut store = store();
    let object = create(&mut store, "a");
    assert_eq!(object.namespace(), "default");
    assert_eq!(object.uid().len(), 36);
    assert_eq!(object.value.str_at(&["metadata", "creationTimestamp"]), Some("1970-01-01T00:00:00Z"));
    assert_eq!(object.version(), store.version());
    let again = store.apply(ask(Verb::Create, "configmaps", "", Some(config_map("a", serde_json::json!({})))));
    assert_eq!(again.unwrap_err().message, "configmaps \"a\" already exists");
}

#[test]
fn the_same_seed_makes_the_same_cluster() {
    let story = || {
        let mut store = store();
        create(&mut store, "a");
        merge(&mut store, "a", value!({"data": {"b": "2"}})).unwrap();
        store.everything().map(|object| object.value.to_json()).collect::<Vec<_>>()
    };
    assert_eq!(story(), story());
}

#[test]
fn a_stale_version_is_refused_and_nothing_changes() {
    let mut store = store();
    let old = create(&mut store, "a");
    merge(&mut store, "a", value!({"data": {"a": "2"}})).unwrap();
    let version = store.version();
    let refused = store.apply(ask(Verb::Update, "configmaps", "a", Some(old.value.clone()))).unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict);
    assert_eq!(store.version(), version);
}

#[test]
fn what_changes_nothing_makes_no_version() {
    let mut store = store();
    let object = create(&mut store, "a");
    let same = merge(&mut store, "a", value!({"data": {"a": "1"}})).unwrap();
    assert_eq!(same.object().unwrap().version(), object.version());
}

#[test]
fn a_dry_run_leaves_no_trace() {
    let mut store = store();
    let mut request = ask(Verb::Create, "configmaps", "", Some(config_map("a", serde_json::json!({}))));
    request.options.dry_run = true;
    let version = store.version();
    assert_eq!(store.apply(request).unwrap().code, 201);
    assert_eq!(store.version(), version);
    assert!(store.get("", "configmaps", "default", "a").is_none());
}

#[test]
fn finalizers_hold_an_object_until_the_last_one_goes() {
    let mut store = store();
    create(&mut store, "a");
    merge(&mut store, "a", value!({"metadata": {"finalizers": ["x.io/hold"]}})).unwrap();
    store.apply(ask(Verb::Delete, "configmaps", "a", None)).unwrap();
    assert!(store.get("", "configmaps", "default", "a").unwrap().is_terminating());
    let added = merge(&mut store, "a", value!({"metadata": {"finalizers": ["x.io/hold", "x.io/more"]}})).unwrap_err();
    assert!(added.message.contains("no new finalizers can be added"), "{added}");
    merge(&mut store, "a", value!({"metadata": {"finalizers": null}})).unwrap();
    assert!(store.get("", "configmaps", "default", "a").is_none());
}

#[test]
fn a_paged_list_is_a_consistent_snapshot() {
    let mut store = store();
    for name in ["a", "b", "c", "d"] {
        create(&mut store, name);
    }
    let page = |store: &mut Store, token: &str| {
        let mut request = ask(Verb::List, "configmaps", "", None);
        request.options = Options { limit: 2, continue_token: token.into(), ..Options::default() };
        let response = store.apply(request).unwrap();
        let request::Answer::List(_, list) = response.answer else { panic!("a list") };
        let names: Vec<String> = list.items.iter().map(|item| item.name().to_string()).collect();
        (names, list.continue_token, list.remaining)
    };
    let (names, token, remaining) = page(&mut store, "");
    assert_eq!((names, remaining), (vec!["a".into(), "b".into()], Some(2)));
    store.apply(ask(Verb::Delete, "configmaps", "c", None)).unwrap();
    create(&mut store, "bb");
    let (names, token, _) = page(&mut store, &token.unwrap());
    assert_eq!((names, token), (vec!["c".into(), "d".into()], None));
}

#[test]
fn a_page_that_is_too_old_is_gone_and_says_how_to_go_on() {
    let mut store = store();
    for name in ["a", "b", "c"] {
        create(&mut store, name);
    }
    let mut request = ask(Verb::List, "configmaps", "", None);
    request.options.limit = 1;
    let request::Answer::List(_, list) = store.apply(request.clone()).unwrap().answer else { panic!("a list") };
    create(&mut store, "d");
    store.compact(store.version());
    request.options.continue_token = list.continue_token.unwrap();
    let gone = store.apply(request.clone()).unwrap_err();
    assert_eq!(gone.code, 410);
    request.options.continue_token = gone.continue_token.unwrap();
    let rest = store.apply(request).unwrap();
    assert_eq!(rest.items()[0].name(), "b");
}

#[test]
fn a_watch_tells_what_a_list_missed() {
    let mut store = store();
    create(&mut store, "a");
    let mut request = ask(Verb::List, "configmaps", "", None);
    request.options.resource_version = Some(store.version().to_string());
    let mut watch = store.watch(&request).unwrap();
    assert!(store.poll(&mut watch).is_empty());
    merge(&mut store, "a", value!({"data": {"a": "2"}})).unwrap();
    create(&mut store, "b");
    store.apply(ask(Verb::Delete, "configmaps", "a", None)).unwrap();
    let told: Vec<(&str, String)> =
        store.poll(&mut watch).iter().map(|event| (event.name(), event.object().unwrap().name().to_string())).collect();
    assert_eq!(told, [("MODIFIED", "a".into()), ("ADDED", "b".into()), ("DELETED", "a".into())]);
}

#[test]
fn objects_enter_and_leave_a_selecting_watch() {
    let mut store = store();
    create(&mut store, "a");
    let mut request = ask(Verb::List, "configmaps", "", None);
    request.options.label_selector = "on=yes".into();
    request.options.resource_version = Some(store.version().to_string());
    let mut watch = store.watch(&request).unwrap();
    merge(&mut store, "a", value!({"metadata": {"labels": {"on": "yes"}}})).unwrap();
    merge(&mut store, "a", value!({"data": {"a": "2"}})).unwrap();
    merge(&mut store, "a", value!({"metadata": {"labels": {"on": "no"}}})).unwrap();
    let events = store.poll(&mut watch);
    assert_eq!(events.iter().map(WatchEvent::name).collect::<Vec<_>>(), ["ADDED", "MODIFIED", "DELETED"]);
    let last = events[2].object().unwrap();
    assert_eq!(last.value.str_at(&["metadata", "labels", "on"]), Some("yes"));
    assert_eq!(last.version(), store.version());
}

#[test]
fn a_watch_from_before_the_window_is_gone() {
    let mut store = store();
    create(&mut store, "a");
    store.compact(store.version());
    let mut request = ask(Verb::List, "configmaps", "", None);
    request.options.resource_version = Some("1".into());
    let mut watch = store.watch(&request).unwrap();
    let events = store.poll(&mut watch);
    assert!(matches!(&events[..], [WatchEvent::Error(status)] if status.code == 410), "{events:?}");
}

#[test]
fn a_streaming_list_ends_with_a_bookmark() {
    let mut store = store();
    create(&mut store, "a");
    let mut request = ask(Verb::List, "configmaps", "", None);
    request.options.send_initial_events = Some(true);
    request.options.resource_version_match = Some("NotOlderThan".into());
    request.options.bookmarks = true;
    let mut watch = store.watch(&request).unwrap();
    let events = store.poll(&mut watch);
    assert_eq!(events.iter().map(WatchEvent::name).collect::<Vec<_>>(), ["ADDED", "BOOKMARK"]);
    let WatchEvent::Bookmark(bookmark) = &events[1] else { panic!("a bookmark") };
    assert_eq!(bookmark.str_at(&["metadata", "annotations", "k8s.io/initial-events-end"]), Some("true"));
}

#[test]
fn nothing_is_created_in_a_namespace_that_is_not_there() {
    let mut store = store();
    let mut request = ask(Verb::Create, "configmaps", "", Some(config_map("a", serde_json::json!({}))));
    request.namespace = "nowhere".into();
    assert_eq!(store.apply(request).unwrap_err().message, "namespaces \"nowhere\" not found");
}
