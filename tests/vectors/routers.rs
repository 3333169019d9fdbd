//! What routers are told: calls on a set of objects, and the objects after each.

use serde_json::{Value as Json, json};
use tidegate::{
    api::{Rollout, SetHeaderRoute, SetMirrorRoute, WeightDestination},
    kubernetes::value::Value,
    model::replica_set::ReplicaSet,
    rollout::step,
    route::{self, Accepted, Apis, GroupVersion, Id, Kind, Leaf, Move, Routes, SmiVersion},
};

use super::Case;

#[test]
fn vectors_router_nginx() {
    super::judge("router-nginx", |case| answer(case, Leaf::Nginx));
}

#[test]
fn vectors_router_alb() {
    super::judge("router-alb", |case| answer(case, Leaf::Alb));
}

#[test]
fn vectors_router_smi() {
    super::judge("router-smi", |case| answer(case, Leaf::Smi));
}

#[test]
fn vectors_router_traefik() {
    super::judge("router-traefik", |case| answer(case, Leaf::Traefik));
}

#[test]
fn vectors_router_istio() {
    super::judge("router-istio", |case| answer(case, Leaf::Istio));
}

#[test]
fn vectors_router_ambassador() {
    super::judge("router-ambassador", |case| answer(case, Leaf::Ambassador));
}

#[test]
fn vectors_router_apisix() {
    super::judge("router-apisix", |case| answer(case, Leaf::Apisix));
}

#[test]
fn vectors_router_appmesh() {
    super::judge("router-appmesh", |case| answer(case, Leaf::AppMesh));
}

#[test]
fn vectors_router_gateway() {
    super::judge("router-gateway", |case| {
        // What the server answers to a write is met by the engine, which begins its pass anew.
        if !case.input["conflicts"].is_null() || !case.input["apiErrors"].is_null() {
            return None;
        }
        // Without settings there is no such router.
        case.input["rollout"].pointer("/spec/strategy/canary/trafficRouting/plugins")?;
        let ours = play(&case.input, Leaf::Gateway);
        let expect = if case.bug { &case.alternatives[case.prefer.unwrap()] } else { &case.expect };
        let steps = expect["steps"].as_array().unwrap();
        if ours.len() == steps.len()
            && ours.iter().zip(steps).all(|(ours, step)| is_same_route(ours, step, &case.error_class))
        {
            return Some(case.expect.clone());
        }
        Some(json!({"ours": ours, "wanted": expect}))
    });
}

/// What no route says anything about is verified, and a JSON decoder has its own words.
fn is_same_route(ours: &Json, step: &Json, error_class: &str) -> bool {
    let same_error = match (ours["error"].as_str(), step["error"].as_str()) {
        (Some(_), Some(_)) if error_class == "go-library" => true,
        // A route that is not there was told already; weights that it does not carry are not verified.
        (None, Some(error)) if error.starts_with("failed to verify weight") => return ours["verified"] == json!(false),
        (ours, theirs) => ours == theirs,
    };
    let listed = |objects: &Json| {
        let mut list = objects.as_array().cloned().unwrap_or_default();
        list.sort_by_key(|object| [&object["kind"], &object["metadata"]["name"]].map(Json::to_string));
        list
    };
    same_error
        && listed(&ours["objects"]) == listed(&step["objects"])
        && (ours["verified"] == json!(false)) == (step["verified"] == json!(false))
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
    let mut rollout = input["rollout"].clone();
    let sets = super::rollouts::sets(&input["replicaSets"]);
    // What exists and is not known is asked for before anything is decided.
    let objects = [&input["objects"], &input["uncachedObjects"]].into_iter().filter_map(Json::as_array).flatten();
    let settings = &input["settings"];
    let text = |key: &str, usual: &str| settings[key].as_str().unwrap_or(usual).to_owned();
    let usual = Apis::default();
    let apis = Apis {
        smi: settings["smiAPIVersion"].as_str().map_or(usual.smi, |version| SmiVersion::read(version).unwrap()),
        istio: text("istioAPIVersion", &usual.istio).as_str().into(),
        traefik: GroupVersion {
            group: text("traefikAPIGroup", &usual.traefik.group).as_str().into(),
            ..GroupVersion::read(&text("traefikAPIVersion", &usual.traefik.version), "")
        },
        ambassador: GroupVersion::read(&text("ambassadorAPIVersion", "getambassador.io/v2"), &usual.ambassador.group),
        ..usual
    };
    let routes = Routes::of(objects.map(|object| (id(object), Value::from(object.clone()))));
    let mut routes = routes.speaking(apis);
    let calls = input["calls"].as_array().unwrap().iter();
    let play = |call: &Json| {
        if let Some(status) = call.get("status") {
            rollout["status"] = status.clone();
        }
        let rollout = super::rollouts::rollout(&rollout);
        let played = play_call(&rollout, leaf, &sets, &mut routes, call);
        if settings["pruneRuleNames"] == true {
            return prune_names(&mut routes, played);
        }
        played
    };
    calls.map(play).collect()
}

/// A server that does not know the names of rules.
fn prune_names(routes: &mut Routes, mut played: Json) -> Json {
    let mut prune = |object: &mut Json| {
        for rule in object["spec"]["rules"].as_array_mut().into_iter().flatten() {
            rule.as_object_mut().unwrap().remove("name");
        }
        routes.put(id(object), Value::from(object.clone()));
    };
    played["objects"].as_array_mut().into_iter().flatten().for_each(&mut prune);
    played
}

fn id(object: &Json) -> Id {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().into();
    let group = object["apiVersion"].as_str().unwrap().split_once('/').map_or("", |(group, _)| group);
    let kind = match (group, object["kind"].as_str().unwrap()) {
        ("appmesh.k8s.aws", "VirtualService") => Kind::MeshService,
        (_, "AmbassadorMapping") => Kind::Mapping,
        (_, kind) => route::kinds().into_iter().find(|known| known.word() == kind).unwrap(),
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
    let weight = call["weight"].as_i64().unwrap_or_default() as i32;
    let weights = Move::Weights { canary: weight, additional: &additional };
    let verified = match (text("op"), route::verify(leaf, rollout, routes, weights)) {
        ("VerifyWeight", Accepted::Yes(_)) => json!(true),
        ("VerifyWeight", Accepted::NotYet(_)) => json!(false),
        _ => Json::Null,
    };
    let gone = before.iter().filter(|(id, _)| routes.get(id).is_none());
    let gone = gone.map(|(id, _)| json!(format!("{}/{}/{}", id.kind.word(), id.namespace, id.name)));
    let changed = routes.iter().filter(|(id, object)| before.get(id) != Some(object));
    let events = told.iter().map(|told| json!({"type": if told.warning { "Warning" } else { "Normal" }, "reason": told.reason, "message": told.message}));
    json!({
        "error": done.err().map(|problem| problem.to_string()),
        "objects": changed.map(|(_, object)| Json::from(object)).collect::<Vec<_>>(),
        "deleted": gone.collect::<Vec<_>>(),
        "verified": verified,
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
        let same_ends = list(&ours["deleted"]) == list(&argo["deleted"]);
        same_error && same_ends && same_events && list(&ours["objects"]) == list(&argo["objects"])
    })
}

/// Memory addresses were cut out of what was recorded.
fn same_events(ours: &Json, argo: &Json, changed: &[Json]) -> bool {
    let list = |events: &Json| events.as_array().cloned().unwrap_or_default();
    let (mut ours, mut argo) = (list(ours), list(argo));
    let of_writes = ["Updated VirtualService", "UpdatedDestinationRule"];
    // Ambassador's is told by Argo Rollouts at every call, by us if something is done.
    let is_told_anyway = |event: &Json| event["reason"] == "CanaryMappingWeightUpdate";
    if !ours.iter().any(is_told_anyway) && changed.is_empty() {
        argo.retain(|event| !is_told_anyway(event));
    }
    argo.retain(|event| {
        let told = event["message"].as_str().unwrap_or_default();
        let is_named = |object: &Json| told.contains(object["metadata"]["name"].as_str().unwrap_or_default());
        !of_writes.contains(&event["reason"].as_str().unwrap_or_default()) || changed.iter().any(is_named)
    });
    let text = |event: &Json| event["message"].as_str().unwrap_or_default().to_owned();
    // Those of Ambassador's Mappings come in any order, and were sorted.
    if argo.iter().any(is_told_anyway) {
        ours.sort_by_key(text);
        argo.sort_by_key(text);
    }
    ours.len() == argo.len()
        && ours.iter().zip(&argo).all(|(ours, argo)| match text(argo).split_once('…') {
            Some((start, _)) => ours["reason"] == argo["reason"] && text(ours).starts_with(start),
            None => ours == argo,
        })
}
