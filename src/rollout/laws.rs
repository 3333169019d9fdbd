//! Laws of the decision, on Rollouts and ReplicaSets of any shape.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Seen, View, check, decide, diff};
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_view_has_one_verdict_and_no_view_panics(seen in seen()) {
        let view = View::of(&seen);
        let verdict = decide(&view);
        let again = decide(&View::of(&seen));
        prop_assert_eq!(serde_json::to_value(&verdict).unwrap(), serde_json::to_value(&again).unwrap());
        let actions = diff(&view, &verdict.target);
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
        for action in diff(&view, &decide(&view).target) {
            if let super::Action::Patch { patch, .. } = &action {
                prop_assert!(patch.int_at(&["spec", "replicas"]).is_none_or(|size| size >= 0), "{:?}", action);
            }
        }
    }
}
