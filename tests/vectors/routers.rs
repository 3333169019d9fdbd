//! What routers are told: calls on a set of objects, and the objects after each.

use serde_json::{Value as Json, json};
use tidegate::{
    api::{Rollout, SetHeaderRoute, SetMirrorRoute, WeightDestination},
    kubernetes::value::Value,
    model::replica_set::ReplicaSet,
    rollout::step,
    route::{self, Apis, Id, Kind, Leaf, Move, Routes},
};

use crate::Case;

#[test]
fn vectors_router_nginx() {
    crate::judge("router-nginx", |case| answer(case, Leaf::Nginx));
}

#[test]
fn vectors_router_alb() {
    crate::judge("router-alb", |case| answer(case, Leaf::Alb));
}

#[test]
fn vectors_router_smi() {
    crate::judge("router-smi", |case| answer(case, Leaf::Smi));
}

#[test]
fn vectors_router_traefik() {
    crate::judge("router-traefik", |case| answer(case, Leaf::Traefik));
}

#[test]
fn vectors_router_istio() {
    crate::judge("router-istio", |case| answer(case, Leaf::Istio));
}

/// What was recorded if we say the same, what we say otherwise. Left out: cases in which Argo Rollouts crashed (we go on),
/// mistakes of its own that we do not share, and what asks a load balancer.
fn answer(case: &Case, leaf: Leaf) -> Option<Json> {
    // Argo Rollouts takes the `svc` of a full DNS name for the namespace.
    if case.input["rollout"].to_string().contains(".svc.cluster.local") {
        return None;
    }
    // A version that is not known is refused where it is said, before any Rollout is met.
    if case.input["settings"]["verifyTargetGroup"] == true || !case.expect["newReconcilerError"].is_null() {
        return None;
    }
    let ours = play(&case.input, leaf);
    if case.expect["steps"].as_array().unwrap().iter().any(|step| !step["panic"].is_null()) {
        return None;
    }
    let is_raced = !case.input["uncachedObjects"].is_null();
    let mut answers = std::iter::once(&case.expect).chain(&case.alternatives);
    if answers.any(|expect| is_same(&ours, expect["steps"].as_array().unwrap(), is_raced)) {
        return Some(case.expect.clone());
    }
    (!case.bug).then_some(Json::Array(ours))
}

fn play(input: &Json, leaf: Leaf) -> Vec<Json> {
    let rollout = crate::rollouts::rollout(&input["rollout"]);
    let sets = crate::rollouts::sets(&input["replicaSets"]);
    // What exists and is not known is asked for before anything is decided.
    let objects = [&input["objects"], &input["uncachedObjects"]].into_iter().filter_map(Json::as_array).flatten();
    let smi = input["settings"].get("smiAPIVersion");
    let apis = Apis { smi: smi.map(|version| serde_json::from_value(version.clone()).unwrap()).unwrap_or_default() };
    let routes = Routes::of(objects.map(|object| (id(object), Value::from(object.clone()))));
    let mut routes = routes.speaking(apis);
    input["calls"].as_array().unwrap().iter().map(|call| play_call(&rollout, leaf, &sets, &mut routes, call)).collect()
}

fn id(object: &Json) -> Id {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().into();
    let kind = match object["kind"].as_str().unwrap() {
        "Ingress" => Kind::Ingress,
        "TrafficSplit" => Kind::TrafficSplit,
        "TraefikService" => Kind::TraefikService,
        "VirtualService" => Kind::VirtualService,
        "DestinationRule" => Kind::DestinationRule,
        other => panic!("{other} is not known"),
    };
    Id { kind, namespace: text("namespace"), name: text("name") }
}

fn play_call(rollout: &Rollout, leaf: Leaf, sets: &[ReplicaSet], routes: &mut Routes, call: &Json) -> Json {
    let additional: Vec<WeightDestination> = part(call, "additional").unwrap_or_default();
    let (header, mirror): (Option<SetHeaderRoute>, Option<SetMirrorRoute>) =
        (part(call, "setHeaderRoute"), part(call, "setMirrorRoute"));
    let text = |key: &str| call[key].as_str().unwrap_or_default();
    let before = routes.clone();
    let step = match text("op") {
        "UpdateHash" => {
            Some(Move::Hashes { canary: text("canaryHash"), stable: text("stableHash"), additional: &additional })
        }
        "SetWeight" => Some(Move::Weights { canary: call["weight"].as_i64().unwrap() as i32, additional: &additional }),
        "SetHeaderRoute" => header.as_ref().map(Move::Header),
        "SetMirrorRoute" => mirror.as_ref().map(Move::Mirror),
        "RemoveManagedRoutes" => Some(Move::Clear),
        "VerifyWeight" => None,
        other => panic!("{other} is not known"),
    };
    let mut told = Vec::new();
    let waits = match step {
        Some(Move::Hashes { canary, stable, .. }) => step::subsets_wait_for(rollout, sets, canary, stable),
        _ => None,
    };
    if let Some(set) = waits {
        let error = format!("delaying destination rule switch: ReplicaSet {} not fully available", set.name);
        return json!({"error": error, "objects": [], "events": []});
    }
    let done = step.map_or(Ok(()), |step| route::write(leaf, rollout, routes, step, &mut told));
    let changed = routes.iter().filter(|(id, object)| before.get(id) != Some(object));
    let events = told.iter().map(|told| json!({"type": if told.warning { "Warning" } else { "Normal" }, "reason": told.reason, "message": told.message}));
    json!({
        "error": done.err().map(|problem| problem.to_string()),
        "objects": changed.map(|(_, object)| Json::from(object)).collect::<Vec<_>>(),
        "events": events.collect::<Vec<_>>(),
    })
}

fn part<T: serde::de::DeserializeOwned>(call: &Json, key: &str) -> Option<T> {
    call.get(key).filter(|part| !part.is_null()).map(|part| serde_json::from_value(part.clone()).unwrap())
}

fn is_same(ours: &[Json], argo: &[Json], is_raced: bool) -> bool {
    let list = |value: &Json| {
        let mut list = value.as_array().cloned().unwrap_or_default();
        list.sort_by_key(|object| object["metadata"]["name"].to_string());
        list
    };
    ours.iter().zip(argo).all(|(ours, argo)| {
        let same_error = match (ours["error"].as_str(), argo["error"].as_str()) {
            // Another parser, other words.
            (Some(_), Some(argo)) if argo.starts_with("invalid character") || argo.contains("json: ") => true,
            (ours, argo) => ours == argo,
        };
        // Argo Rollouts writes some objects, and says so, also if they stay as they were.
        let same_events = is_raced || same_events(&ours["events"], &argo["events"], &list(&argo["objects"]));
        same_error && same_events && list(&ours["objects"]) == list(&argo["objects"])
    })
}

/// Memory addresses were cut out of what was recorded.
fn same_events(ours: &Json, argo: &Json, changed: &[Json]) -> bool {
    let list = |events: &Json| events.as_array().cloned().unwrap_or_default();
    let (ours, mut argo) = (list(ours), list(argo));
    let of_writes = ["Updated VirtualService", "UpdatedDestinationRule"];
    argo.retain(|event| {
        let told = event["message"].as_str().unwrap_or_default();
        let is_named = |object: &Json| told.contains(object["metadata"]["name"].as_str().unwrap_or_default());
        !of_writes.contains(&event["reason"].as_str().unwrap_or_default()) || changed.iter().any(is_named)
    });
    let text = |event: &Json| event["message"].as_str().unwrap_or_default().to_owned();
    ours.len() == argo.len()
        && ours.iter().zip(&argo).all(|(ours, argo)| match text(argo).split_once('…') {
            Some((start, _)) => ours["reason"] == argo["reason"] && text(ours).starts_with(start),
            None => ours == argo,
        })
}
