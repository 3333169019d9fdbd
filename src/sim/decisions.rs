//! Decisions about what the simulator saw: views that are easier to reach than to write.

use jiff::{SignedDuration, Timestamp};

use super::local::Local;
use crate::{
    api::{self, constants::annotation},
    embedded::controllers::Settings,
    engine::key::Place,
    kubernetes::patch,
    rollout::{
        Seen, View, decide,
        diff::status_patch,
        rest::is_at_rest,
        view::{Conditions, Crowd},
    },
    value,
};

#[test]
fn conditions_of_argo_alone_are_a_rest_of_their_own() {
    let place = Place::new("default", "web");
    let mut local = Local::new(Timestamp::UNIX_EPOCH, Settings { seed: 1, ..Settings::default() });
    let rollout = value!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "strategy": {"canary": {}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        },
    });
    local.create("argoproj.io", "v1alpha1", "rollouts", "default", rollout).unwrap();
    local.advance(SignedDuration::from_secs(60));
    let seen = local.see(&place).unwrap();
    assert!(is_at_rest(&View::of(&seen)));
    // Whoever turns them off finds them gone with the next pass, and then nothing to do.
    let mut seen = Seen { conditions: Conditions::Argo, ..seen };
    let view = View::of(&seen);
    assert!(!is_at_rest(&view));
    let verdict = decide(&view);
    let status = verdict.status.unwrap();
    let types: Vec<&str> = status.conditions.iter().map(|condition| condition.r#type.as_str()).collect();
    assert_eq!(types, ["Completed", "Healthy", "Progressing", "Available"]);
    let patch = status_patch(&view, &status).unwrap();
    let after = patch::merge(seen.rollout.at(&["status"]).unwrap(), patch.at(&["status"]).unwrap());
    seen.rollout.set_at(&["status"], after);
    assert!(is_at_rest(&View::of(&seen)));
}

#[test]
fn counts_wait_longer_in_a_crowd() {
    let mut local = Local::new(Timestamp::UNIX_EPOCH, Settings { seed: 1, ..Settings::default() });
    let rollout = value!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "strategy": {"canary": {}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        },
    });
    local.create("argoproj.io", "v1alpha1", "rollouts", "default", rollout).unwrap();
    local.advance(SignedDuration::from_secs(60));
    let mut seen = local.see(&Place::new("default", "web")).unwrap();
    seen.rollout.set_at(&["spec", "replicas"], 5);
    seen.sets[0].set_at(&["spec", "replicas"], 5);
    seen.sets[0].set_at(&["metadata", "annotations", annotation::DESIRED_REPLICAS], "5");
    // It is no longer healthy, and then a pod comes that is not ready yet: that is said.
    for pods in [2, 3] {
        seen.sets[0].set_at(&["status", "replicas"], pods);
        let status = decide(&View::of(&seen)).status.expect("something to say");
        seen.rollout.set_at(&["status"], api::write(&status));
    }
    // Two more are only counts.
    seen.sets[0].set_at(&["status", "replicas"], 5);
    let told = |milliseconds: i64, crowd: Crowd| {
        let written = seen.now - SignedDuration::from_millis(milliseconds);
        let verdict = decide(&View::of(&Seen { written: Some(written), crowd, ..seen.clone() }));
        (verdict.status.is_some(), verdict.wake.map(|wake| wake.duration_since(written).as_millis()))
    };
    assert!(told(0, Crowd::Few).0, "every pod that is wanted is there");
    assert_eq!(told(1_000, Crowd::Many), (false, Some(2_000)));
    assert!(told(2_000, Crowd::Many).0, "and not for ever");
    seen.sets[0].set_at(&["status", "replicas"], 4);
    let told = |milliseconds: i64| {
        let written = Some(seen.now - SignedDuration::from_millis(milliseconds));
        decide(&View::of(&Seen { written, ..seen.clone() })).status.is_some()
    };
    assert!(!told(249) && told(250));
}
