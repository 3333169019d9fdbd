//! The simulator and the daemon are the same engine: stories without faults are played on both, and what each asks the
//! server to change is compared, object by object. The daemon runs over its real client on the embedded cluster, in process
//! and in the runtime's time, which is paused and jumps.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use http_body_util::BodyExt;
use kube::{Client, client::Body};
use serde_json::Value as Json;
use tidegate::{
    embedded::{
        controllers::{Settings, World},
        http::{
            cluster::{Cluster, Pace},
            service::{self, Front},
        },
        store::{Config, Store},
    },
    io::{api::Api, clock::Clock, daemon},
    sim::story::Story,
};
use tower::Service;

use super::{SignedDuration, Timestamp, all, is_faulty, player};

/// Requests by the object that they change.
type Requests = BTreeMap<String, Vec<String>>;

/// Whether only the engine and people act in a story: no faults, and no server of metrics.
fn is_plain(story: &Story) -> bool {
    !is_faulty(story) && story.web.is_null() && story.acts.iter().all(|act| act.get("web").is_none())
}

#[test]
fn the_daemon_asks_for_what_the_simulator_asks_for() {
    let (mut played, mut wrong) = (0, Vec::new());
    // Every eighth is a sample of all features; a play takes as long as its passes.
    for story in all().into_iter().filter(is_plain).step_by(8) {
        let (expected, found) = (of_simulator(&story), of_daemon(&story));
        played += 1;
        if let Some(difference) = difference(&expected, &found) {
            wrong.push(format!("{}: {difference}", story.name));
        }
    }
    println!("{played} stories");
    assert!(played >= 20, "{played} stories");
    assert!(wrong.is_empty(), "{} of {played} went otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

fn difference(expected: &Requests, found: &Requests) -> Option<String> {
    let objects: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let none = Vec::new();
    objects.into_iter().find_map(|object| {
        let (expected, found) = (expected.get(object).unwrap_or(&none), found.get(object).unwrap_or(&none));
        let at = expected.iter().map(Some).chain([None]).zip(found.iter().map(Some).chain([None]));
        let at = at.enumerate().find(|(_, (expected, found))| expected != found);
        (expected != found).then(|| format!("{object}: {at:?}"))
    })
}

fn of_simulator(story: &Story) -> Requests {
    let mut player = player();
    player.local.requests = Some(Vec::new());
    player.play(story);
    let mut requests = Requests::new();
    for request in player.local.requests.take().unwrap() {
        let mut words = request.splitn(4, ' ');
        let mut word = || words.next().unwrap();
        let (verb, resource, place, body) = (word(), word(), word(), word());
        let plural = resource.split('.').next().unwrap();
        let mut place = place.split('/');
        let (name, subresource) = (place.nth(1).unwrap_or_default(), place.next().unwrap_or_default());
        note(&mut requests, verb, plural, name, subresource, serde_json::from_str(body).unwrap());
    }
    requests
}

/// What people ask in a story, and when; the last moment is its end.
fn script(story: &Story) -> (Timestamp, Vec<(Timestamp, tidegate::embedded::store::request::Request)>, Timestamp) {
    let mut player = player();
    let start = player.local.now();
    player.local.asked = Some(Vec::new());
    player.play(story);
    (start, player.local.asked.take().unwrap(), player.local.now())
}

fn of_daemon(story: &Story) -> Requests {
    let (start, script, end) = script(story);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut store = Store::new(Config::new(start, 1));
        tidegate::sim::install::definitions(&mut store).unwrap();
        let world = World::new(Settings { seed: 1, jitter: SignedDuration::ZERO, ..Settings::default() });
        let cluster = Cluster::new(store, Some(world), None, Pace::Runtime);
        let clock = Clock::runtime(start);
        let driven = tokio::spawn(cluster.clone().drive());
        let sent = Arc::new(Mutex::new(Requests::new()));
        let front = Front::new(cluster.clone(), service::Settings::default());
        let log = sent.clone();
        let server = tower::service_fn(move |request: http::Request<Body>| {
            let (mut front, log) = (front.clone(), log.clone());
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect().await.unwrap().to_bytes();
                let verb = match head.method.as_str() {
                    "POST" => Some("create"),
                    "PATCH" => Some("patch"),
                    "DELETE" => Some("delete"),
                    _ => None,
                };
                let parts: Vec<&str> = head.uri.path().split('/').collect();
                let at = parts.iter().position(|part| *part == "namespaces").map_or(0, |at| at + 2);
                let part = |number: usize| parts.get(at + number).copied().unwrap_or_default();
                if let Some(verb) = verb.filter(|_| part(0) != "events") {
                    let verb = if part(2) == "eviction" { "evict" } else { verb };
                    let body = serde_json::from_slice(&bytes).unwrap();
                    note(&mut log.lock().unwrap(), verb, part(0), part(1), part(2), body);
                }
                front.call(http::Request::from_parts(head, Body::from(bytes.to_vec()))).await
            }
        });
        let api = Api::new(Client::new(server, "default"));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let settings = daemon::Settings { clock, ..daemon::Settings::default() };
        let daemon = tokio::spawn(daemon::run(api, settings, async { drop(stopped.await) }));
        let began = tokio::time::Instant::now();
        let at = |time: Timestamp| began + Duration::try_from(time.duration_since(start)).unwrap_or_default();
        for (time, request) in script {
            tokio::time::sleep_until(at(time)).await;
            // What was refused there is refused here.
            let _ = cluster.apply(request);
        }
        tokio::time::sleep_until(at(end)).await;
        drop(stop);
        daemon.await.unwrap();
        cluster.close();
        driven.await.unwrap();
        std::mem::take(&mut *sent.lock().unwrap())
    })
}

/// Notes a request without what differs from run to run: identities, versions, times. Of a status only what people follow
/// counts: how often its numbers are written depends on how many pods a pass sees at once.
fn note(requests: &mut Requests, verb: &str, plural: &str, name: &str, subresource: &str, mut body: Json) {
    let name = body.pointer("/metadata/name").and_then(Json::as_str).unwrap_or(name).to_owned();
    if let Some(status) = body.get_mut("status").and_then(Json::as_object_mut) {
        let followed = ["phase", "currentStepIndex", "stableRS", "currentPodHash", "abort", "promoteFull"];
        status.retain(|key, _| followed.contains(&key.as_str()));
        if status.is_empty() {
            return;
        }
    }
    if let Some(metadata) = body.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.remove("uid");
        metadata.remove("resourceVersion");
    }
    level(&mut body);
    let text = format!("{verb} {subresource} {body}");
    let of_object = requests.entry(format!("{plural} {name}")).or_default();
    if of_object.last() != Some(&text) {
        of_object.push(text);
    }
}

/// Takes out what is accidental.
fn level(json: &mut Json) {
    match json {
        Json::Object(map) => map.values_mut().for_each(level),
        Json::Array(items) => items.iter_mut().for_each(level),
        Json::String(text) => {
            if text.parse::<Timestamp>().is_ok() {
                "time".clone_into(text);
            } else if text.len() == 36 && text.bytes().filter(|byte| *byte == b'-').count() == 4 {
                "uid".clone_into(text);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

#[test]
fn what_is_accidental_is_taken_out() {
    let mut requests = Requests::new();
    let body = serde_json::json!({"metadata": {"uid": "u", "annotations": {"at": "2026-01-01T00:00:00Z"}}, "spec": {"replicas": 1}});
    note(&mut requests, "patch", "replicasets", "web-1", "", body);
    let text = requests["replicasets web-1"].join(";");
    assert_eq!(text, r#"patch  {"metadata":{"annotations":{"at":"time"}},"spec":{"replicas":1}}"#);
}
