//! Laws of the decision, on Rollouts and ReplicaSets of any shape.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Seen, View, check, decide, deliberate, diff, rest::is_at_rest};
use crate::kubernetes::value::Value as Tree;

fn tree(value: &Value) -> Tree {
    Tree::from_json(value.to_string().as_bytes()).unwrap()
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

const HASHES: &[&str] = &["", "aaa", "bbb", "ccc"];

fn step() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-5i32..150).prop_map(|weight| json!({"setWeight": weight})),
        Just(json!({"pause": {}})),
        (-1i32..100).prop_map(|seconds| json!({"pause": {"duration": seconds}})),
        Just(json!({})),
        Just(json!({"analysis": {}})),
    ]
}

fn strategy() -> impl Strategy<Value = Value> {
    let limit = prop_oneof![Just(json!(null)), (0i32..4).prop_map(|n| json!(n)), Just(json!("50%")), Just(json!("x"))];
    let canary = (proptest::collection::vec(step(), 0..5), limit.clone(), limit).prop_map(
        |(steps, surge, missing)| json!({"canary": {"steps": steps, "maxSurge": surge, "maxUnavailable": missing}}),
    );
    let blue_green =
        (any::<Option<bool>>(), 0i32..3, proptest::option::of(0i32..4)).prop_map(|(auto, after, preview)| {
            json!({"blueGreen": {"activeService": "active", "previewService": "preview", "autoPromotionEnabled": auto,
            "autoPromotionSeconds": after, "previewReplicaCount": preview}})
        });
    prop_oneof![canary, blue_green]
}

fn status() -> impl Strategy<Value = Value> {
    let pauses = prop_oneof![
        Just(json!(null)),
        word(&["CanaryPauseStep", "BlueGreenPause", "InconclusiveAnalysisRun", "x"])
            .prop_map(|reason| json!([{"reason": reason, "startTime": "2026-01-01T00:00:00Z"}])),
    ];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (word(HASHES), word(HASHES), flags, pauses, proptest::option::of(-2i32..7), word(HASHES)).prop_map(
        |(current, stable, (abort, full, controller), pauses, index, active)| {
            json!({"currentPodHash": current, "stableRS": stable, "abort": abort, "promoteFull": full,
                "controllerPause": controller, "pauseConditions": pauses, "currentStepIndex": index,
                "blueGreen": {"activeSelector": active}})
        },
    )
}

fn set() -> impl Strategy<Value = Value> {
    (word(&HASHES[1..]), -1i32..6, 0i32..6, 0i32..6, 1u32..9, any::<bool>()).prop_map(
        |(hash, desired, current, available, revision, delayed)| {
            let mut annotations = json!({"rollout.argoproj.io/revision": revision.to_string(),
                "rollout.argoproj.io/desired-replicas": desired.to_string()});
            if delayed {
                annotations["scale-down-deadline"] = json!("2026-01-01T00:00:10Z");
            }
            json!({"metadata": {"name": format!("web-{hash}"), "namespace": "default", "uid": hash,
                    "labels": {"app": "web", "rollouts-pod-template-hash": hash}, "annotations": annotations,
                    "creationTimestamp": format!("2026-01-01T00:00:0{revision}Z"),
                    "ownerReferences": [{"uid": "ro", "controller": true}]},
                "spec": {"replicas": desired, "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": format!("app:{hash}")}]}}},
                "status": {"replicas": current, "readyReplicas": available, "availableReplicas": available}})
        },
    )
}

fn seen() -> impl Strategy<Value = Seen> {
    let sets = proptest::collection::btree_map(word(&HASHES[1..]), set(), 0..4);
    (strategy(), status(), sets, 0i32..6, any::<bool>(), word(&HASHES[1..])).prop_map(
        |(strategy, status, sets, replicas, paused, image)| {
            let rollout = json!({"metadata": {"name": "web", "namespace": "default", "uid": "ro", "generation": 2},
                "spec": {"replicas": replicas, "paused": paused, "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": format!("app:{image}")}]}},
                    "strategy": strategy},
                "status": status});
            let service = |name: &str| json!({"metadata": {"name": name}, "spec": {"selector": {"app": "web"}}});
            Seen {
                now: "2026-01-01T00:00:05Z".parse::<Timestamp>().unwrap(),
                rollout: tree(&rollout),
                sets: sets.values().map(tree).collect(),
                services: vec![tree(&service("active")), tree(&service("preview"))],
                ..Seen::default()
            }
        },
    )
}

/// A Rollout at rest, canary or blue-green, with what belongs to it.
fn resting(blue_green: bool) -> Value {
    let strategy = if blue_green {
        json!({"blueGreen": {"activeService": "active", "previewService": "preview", "autoPromotionEnabled": false}})
    } else {
        json!({"canary": {"stableService": "active", "canaryService": "preview",
            "steps": [{"setWeight": 50}, {"pause": {}}]}})
    };
    let condition = |kind: &str, reason: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let mut rollout = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "ro", "generation": 2,
            "annotations": {"rollout.argoproj.io/revision": "3", "team": "x"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "strategy": strategy,
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "app:aaa"}]}}},
        "status": {"currentPodHash": "aaa", "stableRS": "aaa", "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2,
            "availableReplicas": 2, "HPAReplicas": 2, "observedGeneration": "2", "phase": "Healthy", "canary": {},
            "conditions": [condition("Available", "AvailableReason"), condition("Progressing", "NewReplicaSetAvailable"),
                condition("Healthy", "RolloutHealthy"), condition("Completed", "RolloutCompleted"), condition("Ready", "Healthy")],
            "blueGreen": if blue_green { json!({"activeSelector": "aaa", "previewSelector": "aaa"}) } else { json!({}) },
            "selector": if blue_green { "app=web,rollouts-pod-template-hash=aaa" } else { "app=web" }}});
    if !blue_green {
        let steps = View::of(&Seen { rollout: tree(&rollout), ..Seen::default() }).step_hash;
        rollout["status"]["currentStepHash"] = json!(steps.as_str());
        rollout["status"]["currentStepIndex"] = json!(2);
    }
    let set = |hash: &str, size: i32, revision: &str| {
        json!({"metadata": {"name": format!("web-{hash}"), "namespace": "default", "uid": hash,
                "labels": {"app": "web", "rollouts-pod-template-hash": hash},
                "annotations": {"rollout.argoproj.io/revision": revision, "team": "x",
                    "rollout.argoproj.io/desired-replicas": "2"},
                "creationTimestamp": format!("2026-01-01T00:00:0{revision}Z"),
                "ownerReferences": [{"uid": "ro", "controller": true}]},
            "spec": {"replicas": size,
                "selector": {"matchLabels": {"app": "web", "rollouts-pod-template-hash": hash}},
                "template": {"metadata": {"labels": {"app": "web", "rollouts-pod-template-hash": hash}},
                    "spec": {"containers": [{"name": "c", "image": format!("app:{hash}")}]}}},
            "status": {"replicas": size, "readyReplicas": size, "availableReplicas": size}})
    };
    let service = |name: &str| {
        json!({"metadata": {"name": name, "annotations": {"argo-rollouts.argoproj.io/managed-by-rollouts": "web"}},
            "spec": {"selector": {"app": "web", "rollouts-pod-template-hash": "aaa"}}})
    };
    let hash = View::of(&Seen { rollout: tree(&rollout), ..Seen::default() }).hash;
    let seen = json!({"now": "2026-01-01T01:00:00Z", "rollout": rollout, "sets": [set("aaa", 2, "3"), set("bbb", 0, "2")],
        "services": [service("active"), service("preview")], "pods": []});
    // A set is known by the hash of its template; `aaa` stood for it.
    let text = seen.to_string().replace("\"aaa\"", &format!("\"{hash}\"")).replace("=aaa\"", &format!("={hash}\""));
    serde_json::from_str(&text).unwrap()
}

/// Something about it that is not as it should be: a place, and what stands there instead.
fn disturbance() -> impl Strategy<Value = (String, Value)> {
    let words: Vec<Value> = vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(3),
        json!(""),
        json!("0"),
        json!("1"),
        json!("2"),
        json!("02"),
        json!("9"),
        json!("aaa"),
        json!("bbb"),
        json!("x"),
        json!({}),
        json!([]),
        json!("False"),
        json!("2026-01-01T00:59:00Z"),
        json!("2026-01-02T00:00:00Z"),
        json!({"team": "y"}),
        json!([{"type": "ReplicaFailure", "status": "True"}]),
        json!([{"uid": "ro", "controller": true}]),
        json!([{"reason": "CanaryPauseStep", "startTime": "2026-01-01T00:00:00Z"}]),
        json!({"rolloutStartedAt": "2026-01-01T00:00:00Z"}),
        json!({"rolloutStartedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:09Z"}),
    ];
    const PLACES: &[&str] = &[
        "rollout/metadata/generation",
        "rollout/metadata/annotations",
        "rollout/metadata/annotations/team",
        "rollout/metadata/annotations/rollout.argoproj.io~1revision",
        "rollout/metadata/deletionTimestamp",
        "rollout/metadata/annotations/rollout.argoproj.io~1workload-generation",
        "rollout/spec/replicas",
        "rollout/spec/paused",
        "rollout/spec/restartAt",
        "rollout/spec/minReadySeconds",
        "rollout/spec/revisionHistoryLimit",
        "rollout/spec/strategy/canary/steps",
        "rollout/spec/rollbackWindow",
        "rollout/spec/strategy/canary/canaryMetadata",
        "rollout/spec/strategy/canary/antiAffinity",
        "rollout/spec/strategy/canary/stableService",
        "rollout/spec/strategy/blueGreen/previewReplicaCount",
        "rollout/spec/strategy/blueGreen/previewService",
        "rollout/spec/strategy/blueGreen/autoPromotionSeconds",
        "rollout/spec/strategy/blueGreen/postPromotionAnalysis",
        "rollout/spec/template/spec/containers/0/image",
        "rollout/status",
        "rollout/status/abort",
        "rollout/status/abortedAt",
        "rollout/status/pauseConditions",
        "rollout/status/controllerPause",
        "rollout/status/promoteFull",
        "rollout/status/restartedAt",
        "rollout/status/currentPodHash",
        "rollout/status/stableRS",
        "rollout/status/replicas",
        "rollout/status/updatedReplicas",
        "rollout/status/readyReplicas",
        "rollout/status/availableReplicas",
        "rollout/status/HPAReplicas",
        "rollout/status/selector",
        "rollout/status/observedGeneration",
        "rollout/status/workloadObservedGeneration",
        "rollout/status/phase",
        "rollout/status/message",
        "rollout/status/currentStepIndex",
        "rollout/status/currentStepHash",
        "rollout/status/collisionCount",
        "rollout/status/duration",
        "rollout/status/canary",
        "rollout/status/canary/stablePingPong",
        "rollout/status/blueGreen",
        "rollout/status/blueGreen/activeSelector",
        "rollout/status/blueGreen/previewSelector",
        "rollout/status/blueGreen/scaleUpPreviewCheckPoint",
        "rollout/status/conditions",
        "rollout/status/conditions/0/status",
        "rollout/status/conditions/1/reason",
        "rollout/status/conditions/2/type",
        "rollout/status/conditions/3/status",
        "sets/0/metadata/labels",
        "sets/0/metadata/ownerReferences",
        "sets/0/metadata/deletionTimestamp",
        "sets/0/metadata/annotations",
        "sets/0/metadata/annotations/scale-down-deadline",
        "sets/0/metadata/annotations/rollout.argoproj.io~1desired-replicas",
        "sets/0/metadata/annotations/rollout.argoproj.io~1revision",
        "sets/0/spec/replicas",
        "sets/0/spec/minReadySeconds",
        "sets/0/spec/selector",
        "sets/0/status",
        "sets/0/status/replicas",
        "sets/0/status/readyReplicas",
        "sets/0/status/availableReplicas",
        "sets/0/status/conditions",
        "sets/1/metadata/ownerReferences",
        "sets/1/metadata/annotations/scale-down-deadline",
        "sets/1/metadata/annotations/rollout.argoproj.io~1revision",
        "sets/1/spec/replicas",
        "sets/1/status/replicas",
        "sets/1/status/availableReplicas",
        "sets/1/status/conditions",
        "services/0/spec/selector",
        "services/1/spec/selector",
        "services/1/metadata/annotations",
        "services/0/metadata/annotations",
    ];
    (word(PLACES), proptest::sample::select(words)).prop_map(|(place, value)| (format!("/{place}"), value))
}

fn disturbed(blue_green: bool, disturbances: Vec<(String, Value)>) -> Seen {
    let mut seen = resting(blue_green);
    for (place, value) in disturbances {
        let (parent, key) = place.rsplit_once('/').unwrap();
        let key = key.replace("~1", "/");
        match seen.pointer_mut(parent) {
            Some(Value::Object(fields)) => drop(fields.insert(key, value)),
            Some(Value::Array(items)) => items.iter_mut().take(1).for_each(|item| *item = value.clone()),
            _ => {}
        }
    }
    serde_json::from_value(seen).unwrap()
}

#[test]
fn a_rollout_at_rest_is_recognised() {
    for blue_green in [false, true] {
        let view = View::of(&disturbed(blue_green, Vec::new()));
        assert!(deliberate(&view).is_quiet(&view), "{:?}", deliberate(&view));
        assert!(is_at_rest(&view), "blue-green: {blue_green}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn at_rest_the_long_way_finds_nothing_to_do(
        blue_green in any::<bool>(), disturbances in proptest::collection::vec(disturbance(), 1..4),
    ) {
        let seen = disturbed(blue_green, disturbances);
        // What the definition of the kind does not admit is not seen.
        prop_assume!(crate::api::read::<crate::api::Rollout>(&seen.rollout).malformed.is_empty());
        let view = View::of(&seen);
        let verdict = deliberate(&view);
        prop_assert!(!is_at_rest(&view) || verdict.is_quiet(&view), "{:?}", verdict);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_view_has_one_verdict_and_no_view_panics(seen in seen()) {
        let view = View::of(&seen);
        let verdict = decide(&view);
        let again = decide(&View::of(&seen));
        prop_assert_eq!(serde_json::to_value(&verdict).unwrap(), serde_json::to_value(&again).unwrap());
        prop_assert!(verdict.wake.is_none_or(|wake| wake > view.now), "time alone changes nothing now");
        let actions = diff(&view, &verdict);
        check(&view, &verdict, &actions);
    }

    #[test]
    fn l4_a_decision_survives_its_record(seen in seen()) {
        let text = serde_json::to_string(&seen).unwrap();
        let back: Seen = serde_json::from_str(&text).unwrap();
        let (one, two) = (decide(&View::of(&seen)), decide(&View::of(&back)));
        prop_assert_eq!(serde_json::to_value(&one).unwrap(), serde_json::to_value(&two).unwrap());
    }

    #[test]
    fn no_size_is_below_zero(seen in seen()) {
        let view = View::of(&seen);
        for action in diff(&view, &decide(&view)) {
            if let super::Action::Patch { patch, .. } = &action {
                prop_assert!(patch.int_at(&["spec", "replicas"]).is_none_or(|size| size >= 0), "{:?}", action);
            }
        }
    }
}
