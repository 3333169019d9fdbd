//! Trees and tables as people see them, whole.

use anstream::adapter::strip_str;

use super::*;
use crate::{
    kubernetes::value::Value,
    tree::table::{self, Before},
    value,
};

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn set(name: &str, revision: i64, hash: &str, image: &str, size: i32) -> Value {
    value!({
        "kind": "ReplicaSet",
        "metadata": {
            "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"rollouts-pod-template-hash": hash},
            "annotations": {"rollout.argoproj.io/revision": revision.to_string()},
            "ownerReferences": [{"uid": "u", "controller": true}],
        },
        "spec": {"replicas": size, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
        "status": {"replicas": size, "readyReplicas": size, "availableReplicas": size},
    })
}

fn pod(name: &str, owner: &str, status: Value) -> Value {
    value!({
        "metadata": {
            "name": name, "creationTimestamp": "2026-01-01T00:58:00Z",
            "ownerReferences": [{"uid": owner, "controller": true}],
        },
        "spec": {"containers": [{"name": "web"}]},
        "status": status,
    })
}

fn running() -> Value {
    value!({"phase": "Running", "containerStatuses": [{"ready": true, "restartCount": 2, "state": {"running": {}}}]})
}

fn broken() -> Value {
    value!({"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]})
}

fn canary() -> Value {
    value!({
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u", "generation": 3,
            "creationTimestamp": "2025-12-30T00:00:00Z",
        },
        "spec": {"replicas": 4, "strategy": {"canary": {"steps": [{"setWeight": 25}, {"pause": {"duration": "10m"}}, {"analysis": {}}]}}},
        "status": {
            "observedGeneration": "3", "phase": "Paused", "message": "CanaryPauseStep",
            "currentPodHash": "new", "stableRS": "old", "currentStepIndex": 1, "controllerPause": true,
            "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": "2026-01-01T00:55:00Z"}],
            "replicas": 4, "updatedReplicas": 1, "readyReplicas": 4, "availableReplicas": 4,
        },
    })
}

fn seen() -> Seen {
    let mut failing = set("web-new", 2, "new", "web:2", 1);
    failing.set_at(&["status", "availableReplicas"], 0);
    let mut leaving = set("web-older", 0, "older", "web:0", 0);
    leaving.set_at(&["metadata", "annotations", "scale-down-deadline"], "2026-01-01T01:00:20Z");
    let run = value!({
        "metadata": {
            "name": "web-new-2-2", "uid": "run", "creationTimestamp": "2026-01-01T00:59:50Z",
            "annotations": {"rollout.argoproj.io/revision": "2"}, "ownerReferences": [{"uid": "u"}],
        },
        "status": {"phase": "Running", "metricResults": [{
            "name": "m", "phase": "Running", "successful": 3, "error": 1,
            "measurements": [{"phase": "Running", "startedAt": "2026-01-01T00:59:55Z", "metadata": {"job-name": "check"}}],
        }]},
    });
    let experiment = value!({
        "metadata": {
            "name": "web-new-2-0", "uid": "e", "creationTimestamp": "2026-01-01T00:59:40Z",
            "annotations": {"rollout.argoproj.io/revision": "2"}, "ownerReferences": [{"uid": "u"}],
        },
        "status": {"phase": "Successful"},
    });
    let mut tried = set("web-new-2-0-a", 2, "tried", "web:2", 1);
    tried.set_at(&["metadata", "ownerReferences"], value!([{"uid": "e", "controller": true}]));
    tried.set_at(&["metadata", "annotations", "experiment.argoproj.io/template-name"], "a");
    Seen {
        sets: vec![leaving, set("web-old", 1, "old", "web:1", 3), failing, tried, set("other", 7, "old", "x", 1)]
            .into_iter()
            .map(|mut set| {
                if set.str_at(&["metadata", "name"]) == Some("other") {
                    set.set_at(&["metadata", "ownerReferences"], Value::list([]));
                }
                set
            })
            .collect(),
        pods: vec![
            pod("web-old-b", "web-old", running()),
            pod("web-old-a", "web-old", running()),
            pod("web-new-a", "web-new", broken()),
            pod("stray", "nobody", running()),
        ],
        runs: vec![run],
        experiments: vec![experiment],
    }
}

#[test]
fn a_canary_shows_versions_pods_analysis_and_what_it_waits_for() {
    let text = rollout(&RolloutTree::of(&canary(), &seen()), "tidegate", now());
    let expected = "\
Name:            web
Namespace:       shop
Status:          ॥ Paused
Message:         CanaryPauseStep
Waits:           at step 2/3 for 5m; `tidegate promote web` goes on at once (web-new-a: ImagePullBackOff)
Strategy:        Canary
  Step:          1/3
  SetWeight:     25
  ActualWeight:  0
Images:          web:1 (stable)
                 web:2 (canary, Σ:a)
Replicas:
  Desired:       4
  Current:       4
  Updated:       1
  Ready:         4
  Available:     4

NAME                      KIND         STATUS              AGE   INFO
⟳ web                     Rollout      ॥ Paused            2d1h
├──# revision:2
│  ├──⧉ web-new           ReplicaSet   ◌ Progressing       60m   canary
│  │  └──□ web-new-a      Pod          ⚠ ImagePullBackOff  2m    ready:0/1
│  ├──Σ web-new-2-0       Experiment   ✔ Successful        20s
│  │  └──⧉ web-new-2-0-a  ReplicaSet   ✔ Healthy           60m
│  └──α web-new-2-2       AnalysisRun  ◌ Running           10s   ✔ 3,⚠ 1
│     └──⊞ check          Job          ◌ Running           5s
├──# revision:1
│  └──⧉ web-old           ReplicaSet   ✔ Healthy           60m   stable
│     ├──□ web-old-a      Pod          ✔ Running           2m    ready:1/1,restarts:2
│     └──□ web-old-b      Pod          ✔ Running           2m    ready:1/1,restarts:2
└──# revision:0
   └──⧉ web-older         ReplicaSet   • ScaledDown        60m   delay:20s
";
    assert_eq!(strip_str(&text).to_string(), expected);
    assert!(text.contains("\u{1b}[33mweb-new\u{1b}[0m"), "a canary is yellow: {text:?}");
}

#[test]
fn blue_green_shows_which_version_serves() {
    let object = value!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"replicas": 1, "strategy": {"blueGreen": {"autoPromotionEnabled": false}}},
        "status": {
            "phase": "Paused", "message": "BlueGreenPause", "currentPodHash": "new", "stableRS": "old",
            "pauseConditions": [{"reason": "BlueGreenPause", "startTime": "2026-01-01T00:55:00Z"}],
            "blueGreen": {"activeSelector": "old", "previewSelector": "new"},
            "replicas": 2, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        },
    });
    let sets = vec![set("web-new", 2, "new", "web:2", 1), set("web-old", 1, "old", "web:1", 1)];
    let tree = RolloutTree::of(&object, &Seen { sets, ..Seen::default() });
    let text = strip_str(&rollout(&tree, "kubectl argo rollouts", now())).to_string();
    assert_eq!(
        text,
        "\
Name:            web
Namespace:       shop
Status:          ॥ Paused
Message:         BlueGreenPause
Waits:           with the switch for `kubectl argo rollouts promote web`, 5m so far
Strategy:        BlueGreen
Images:          web:1 (active, stable)
                 web:2 (preview)
Replicas:
  Desired:       1
  Current:       2
  Updated:       1
  Ready:         1
  Available:     1

NAME             KIND        STATUS     AGE  INFO
⟳ web            Rollout     ॥ Paused   60m
├──# revision:2
│  └──⧉ web-new  ReplicaSet  ✔ Healthy  60m  preview
└──# revision:1
   └──⧉ web-old  ReplicaSet  ✔ Healthy  60m  stable,active
"
    );
}

#[test]
fn an_experiment_shows_its_versions() {
    let seen = seen();
    let tree = ExperimentTree::of(&seen.experiments[0], &seen);
    assert_eq!(
        strip_str(&experiment(&tree, now())).to_string(),
        "\
Name:            web-new-2-0
Namespace:
Status:          ✔ Successful
Images:          web:2 (Σ:a)

NAME                KIND        STATUS        AGE  INFO
Σ web-new-2-0       Experiment  ✔ Successful  20s
└──⧉ web-new-2-0-a  ReplicaSet  ✔ Healthy     60m
"
    );
    let mut later = seen.clone();
    later.sets[3].set_at(&["status", "availableReplicas"], 0);
    let told = experiment_changes(&tree, &ExperimentTree::of(&seen.experiments[0], &later), now());
    assert_eq!(told, ["ReplicaSet web-new-2-0-a ◌ Progressing"]);
}

#[test]
fn only_what_changed_is_told() {
    let before = RolloutTree::of(&canary(), &seen());
    assert_eq!(changes(&before, &before, "tidegate", now()), Vec::<String>::new());
    let mut moved = canary();
    moved.set_at(&["status", "currentStepIndex"], 2);
    moved.set_at(&["status", "pauseConditions"], Value::list([]));
    moved.set_at(&["status", "controllerPause"], false);
    moved.set_at(&["status", "phase"], "Progressing");
    moved.set_at(&["status", "message"], "more replicas need to be updated");
    let mut later = seen();
    later.pods[2] = pod("web-new-a", "web-new", running());
    later.pods.remove(0);
    later.sets[2].set_at(&["status", "availableReplicas"], 1);
    let after = RolloutTree::of(&moved, &later);
    assert_eq!(
        changes(&before, &after, "tidegate", now()),
        [
            "Rollout web ◌ Progressing more replicas need to be updated, step 2/3, weight 25: waits at step 3/3: analysis; `tidegate promote web` skips it",
            "ReplicaSet web-new ✔ Healthy canary",
            "Pod web-new-a ✔ Running ready:1/1,restarts:2",
            "Pod web-old-b is gone",
        ]
    );
}

#[test]
fn lists_have_the_columns_of_the_plugin() {
    let blue_green = value!({
        "metadata": {"name": "a-rather-long-name", "namespace": "b"},
        "spec": {"strategy": {"blueGreen": {}}}, "status": {"phase": "Healthy"},
    });
    let strange = value!({"metadata": {"name": "x", "namespace": "b"}, "status": {"phase": "Odd"}});
    let text = table::rollouts(&[canary(), blue_green, strange], Before { namespace: true, time: Some(now()) });
    let expected = "\
TIMESTAMP             NAMESPACE  NAME                STRATEGY   STATUS        STEP  SET-WEIGHT  READY  DESIRED  UP-TO-DATE  AVAILABLE
2026-01-01T01:00:00Z  shop       web                 Canary     Paused        1/3   25          4/4    4        1           4
2026-01-01T01:00:00Z  b          a-rather-long-name  BlueGreen  Healthy       -     -           0/0    1        0           0
2026-01-01T01:00:00Z  b          x                   unknown    Odd           -     -           0/0    1        0           0
";
    assert_eq!(text, expected);
    let experiment = value!({
        "metadata": {"name": "try", "namespace": "b", "creationTimestamp": "2026-01-01T00:59:00Z"},
        "spec": {"duration": "5m"}, "status": {"phase": "Running", "availableAt": "2026-01-01T00:59:30Z"},
    });
    assert_eq!(
        table::experiments(&[experiment], Before::default(), now()),
        "NAME        STATUS   DURATION  REMAINING  AGE\ntry         Running  5m        4m30s      60s\n"
    );
}

#[test]
fn history_names_commits_and_causes_where_they_are_known() {
    let mut sets = vec![set("web-new", 3, "new", "web:2", 1), set("web-old", 2, "old", "web:1", 3)];
    let plain = table::history(&canary(), &sets, now());
    assert_eq!(
        plain,
        "\
REVISION  REPLICASET  AGE  IMAGES  INFO
2         web-old     60m  web:1   stable
3         web-new     60m  web:2   canary
"
    );
    let note = |set: &mut Value, key: &str, text: &str| set.set_at(&["metadata", "annotations", key], text);
    note(&mut sets[0], "tidegate.dev/template", "new 0123456789abcdef0123456789abcdef01234567");
    note(&mut sets[0], "tidegate.dev/commit", "ffffffffffffffffffffffffffffffffffffffff");
    // The commit that brought something else of the object is not the one that brought its template.
    note(&mut sets[1], "tidegate.dev/commit", "ffffffffffffffffffffffffffffffffffffffff");
    note(&mut sets[0], "rollout.argoproj.io/revision-history", "1");
    note(&mut sets[1], "kubernetes.io/change-cause", "a fix");
    assert_eq!(
        table::history(&canary(), &sets, now()),
        "\
REVISION  REPLICASET  AGE  IMAGES  COMMIT        CHANGE-CAUSE  INFO
2         web-old     60m  web:1   <none>        a fix         stable
3         web-new     60m  web:2   0123456789ab  <none>        canary,formerly 1
"
    );
}

#[test]
fn no_object_is_too_strange_to_be_shown() {
    for object in
        [Value::Null, value!([]), value!({"status": 5}), value!({"metadata": {"name": 5}, "spec": {"strategy": []}})]
    {
        let seen = Seen {
            sets: vec![object.clone()],
            pods: vec![object.clone()],
            runs: vec![object.clone()],
            experiments: vec![object.clone()],
        };
        assert!(rollout(&RolloutTree::of(&object, &seen), "tidegate", now()).starts_with("Name:"));
        assert!(experiment(&ExperimentTree::of(&object, &seen), now()).starts_with("Name:"));
        assert!(table::rollouts(std::slice::from_ref(&object), Before::default()).lines().count() == 2);
    }
}
