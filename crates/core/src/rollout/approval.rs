//! S64: nothing that waits for approval goes on without it. Part of the judge of [`invariant`](super::invariant).
//!
//! A gate is a canary's pause without an end, or the switch of a blue-green Rollout that is not promoted by itself. What
//! approves is written in status by a person: the pause is taken away, the step is moved on, or a full promotion is asked
//! for. A return to a version that was approved before needs no second approval. Shares no function with the decision, and
//! never asks a Service whether a version is the first: that is history, and in status.

use jiff::Timestamp;

use super::{
    target::Verdict,
    view::{Set, View},
};
use crate::{
    api::{
        BlueGreenStrategy, RolloutStatus,
        constants::{annotation, label, pause},
    },
    kubernetes::value::Value,
};

/// What would go on without approval, in words; `None` if nothing would.
pub(super) fn missing(view: &View, verdict: &Verdict) -> Option<String> {
    let (old, next) = (&view.rollout.status, verdict.status.as_ref().unwrap_or(&view.rollout.status));
    if let Some(predecessor) = predecessor(view, next) {
        return Some(format!(
            "{} would become stable as a first version, although {predecessor} serves",
            next.stable_rs
        ));
    }
    // The first version has no predecessor that could serve until somebody approves.
    if old.stable_rs.is_empty() || old.promote_full || is_return(view, next) {
        return None;
    }
    match &view.rollout.spec.strategy.blue_green {
        Some(strategy) => of_blue_green(view, verdict, next, strategy),
        None => of_canary(view, next),
    }
}

/// The ReplicaSet that shows that what is wanted is no first version, where no status says which one is stable and the wanted
/// one would become it: an earlier one whose pods serve. Read from the object itself, not from what the decision made of it.
fn predecessor(view: &View, next: &RolloutStatus) -> Option<String> {
    let said = view.object.str_at(&["status", "stableRS"]).unwrap_or_default();
    let wanted = next.stable_rs.as_str();
    if !said.is_empty() || wanted.is_empty() || wanted != next.current_pod_hash {
        return None;
    }
    let text = |set: &Value, key: &str| set.str_at(&["metadata", "annotations", key]).unwrap_or_default().to_owned();
    let revision = |set: &Value| text(set, annotation::REVISION).parse::<i64>().unwrap_or(i64::MAX);
    let hash =
        |set: &Value| set.str_at(&["metadata", "labels", label::POD_TEMPLATE_HASH]).unwrap_or_default().to_owned();
    let count = |set: &Value, path: &[&str]| set.int_at(path).unwrap_or_default();
    let sets = || view.sets.iter().map(|set| &set.object);
    let own = sets().find(|set| hash(set) == wanted);
    let limit = own.filter(|set| count(set, &["spec", "replicas"]) > 0).map_or(i64::MAX, revision);
    let serves = |set: &&Value| {
        count(set, &["spec", "replicas"]) > 0
            && count(set, &["status", "availableReplicas"]) > 0
            && text(set, annotation::SCALE_DOWN_DEADLINE).is_empty()
            && set.at(&["metadata", "deletionTimestamp"]).is_none_or(Value::is_null)
    };
    let earlier = sets().filter(|set| !hash(set).is_empty() && hash(set) != wanted && revision(set) < limit);
    let name = |set: &Value| set.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
    earlier.filter(serves).map(name).next()
}

/// Whether the wanted version is the stable one, or an earlier one to which the specification allows a return without steps.
fn is_return(view: &View, next: &RolloutStatus) -> bool {
    let set = |hash: &str| view.sets.iter().find(|set| set.info.hash.as_str() == hash);
    let old = &view.rollout.status;
    let is_earlier = |new: &Set, stable: &Set| new.info.created < stable.info.created;
    let deadline = |set: &Set| -> Option<Timestamp> {
        set.object.str_at(&["metadata", "annotations", annotation::SCALE_DOWN_DEADLINE])?.parse().ok()
    };
    let (new, stable) = (set(&next.current_pod_hash), set(&old.stable_rs));
    let is_allowed = |new: &Set| {
        view.rollout.spec.rollback_window.as_ref().is_some_and(|window| window.revisions > 0)
            || view.rollout.spec.strategy.blue_green.is_some() && deadline(new).is_some_and(|end| end > view.now)
    };
    next.current_pod_hash == old.stable_rs
        || new.zip(stable).is_some_and(|(new, stable)| is_earlier(new, stable) && is_allowed(new))
}

/// Whether a pause was begun whose reason a person has taken away.
fn is_released(status: &RolloutStatus, reason: &str) -> bool {
    status.controller_pause && !status.pause_conditions.iter().any(|pause| pause.reason == reason)
}

fn of_blue_green(view: &View, verdict: &Verdict, next: &RolloutStatus, strategy: &BlueGreenStrategy) -> Option<String> {
    let (old, name) = (&view.rollout.status, strategy.active_service.as_str());
    let new = next.current_pod_hash.as_str();
    let is_approved = is_released(old, pause::BLUE_GREEN_PAUSE)
        || old.blue_green.scale_up_preview_check_point
        || is_active(view, new);
    if strategy.auto_promotion_enabled != Some(false) || is_approved || new.is_empty() {
        return None;
    }
    let wanted = verdict.target.as_ref().and_then(|target| target.services.get(name));
    let path = ["spec", "selector", label::POD_TEMPLATE_HASH];
    let leads_to = wanted.and_then(|service| service.str_at(&path));
    let led_to = view.services.get(name).and_then(|service| service.object.str_at(&path));
    // Where somebody else's hand leads it, it may stay while there is nothing to lead it back to.
    if leads_to == Some(new) && led_to != leads_to {
        return Some(format!("service {name} would lead to {new}"));
    }
    (next.stable_rs == new && old.stable_rs != new).then(|| format!("{new} would become stable"))
}

/// Whether the active Service led to this version before, and so was approved to.
fn is_active(view: &View, hash: &str) -> bool {
    view.rollout.status.blue_green.active_selector == hash
}

fn of_canary(view: &View, next: &RolloutStatus) -> Option<String> {
    let old = &view.rollout.status;
    let steps = &view.rollout.spec.strategy.canary.as_ref()?.steps;
    let is_same_attempt =
        old.current_pod_hash == next.current_pod_hash && old.current_step_hash == next.current_step_hash;
    let becomes_stable = next.stable_rs != old.stable_rs && !next.stable_rs.is_empty();
    let at =
        |status: &RolloutStatus| usize::try_from(status.current_step_index.unwrap_or_default()).unwrap_or_default();
    let (from, to) = (if is_same_attempt { at(old) } else { 0 }, if becomes_stable { steps.len() } else { at(next) });
    if !is_same_attempt && !becomes_stable {
        return None;
    }
    let is_gate = |index: &usize| {
        let pause = steps.get(*index).and_then(|step| step.pause.as_ref());
        pause.is_some_and(|pause| pause.duration.is_none())
    };
    let gate = (from..to).filter(is_gate).find(|gate| *gate != from || !is_released(old, pause::CANARY_PAUSE_STEP))?;
    Some(if becomes_stable {
        format!("{} would become stable before the pause of step {gate}", next.stable_rs)
    } else {
        format!("step {to} would follow the pause of step {gate}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rollout::{Seen, target::Target},
        value,
    };

    /// A view of version `b` beside the stable `a`.
    fn view(strategy: Value, status: Value) -> View {
        View::of(&seen(strategy, status))
    }

    fn seen(strategy: Value, status: Value) -> Seen {
        let set = |hash: &str, second: i32| {
            value!({"metadata": {"name": format!("web-{hash}"), "namespace": "shop", "uid": hash,
                    "labels": {"app": "web", label::POD_TEMPLATE_HASH: hash},
                    "creationTimestamp": format!("2026-01-01T00:00:0{second}Z"),
                    "ownerReferences": [{"uid": "ro", "controller": true}]},
                "spec": {"replicas": 2}, "status": {"replicas": 2, "availableReplicas": 2}})
        };
        let mut said = value!({"currentPodHash": "b", "stableRS": "a", "currentStepIndex": 1, "currentStepHash": "s"});
        status.as_map().unwrap().iter().for_each(|(key, value)| said.set_at(&[key], value.clone()));
        let spec = value!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "strategy": strategy});
        let rollout =
            value!({"metadata": {"name": "web", "namespace": "shop", "uid": "ro"}, "spec": spec, "status": said});
        let service = value!({"metadata": {"name": "active"}, "spec": {"selector": {"app": "web"}}});
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        Seen { now, rollout, sets: vec![set("a", 1), set("b", 2)], services: vec![service], ..Seen::default() }
    }

    fn verdict(view: &View, change: impl FnOnce(&mut RolloutStatus, &mut Target)) -> Verdict {
        let (mut status, mut target) = (view.rollout.status.clone(), Target::of(view));
        change(&mut status, &mut target);
        Verdict { status: Some(status), target: Some(target), ..Verdict::nothing() }
    }

    #[test]
    fn s64_a_canary_waits_for_approval() {
        let steps = value!([{"setWeight": 50}, {"pause": {}}, {"setWeight": 80}, {"pause": {}}]);
        let waiting = value!({"controllerPause": true, "pauseConditions": [{"reason": "CanaryPauseStep"}]});
        for (status, to, stable, expected) in [
            (waiting.clone(), 1, "a", None),
            (waiting.clone(), 2, "a", Some("step 2 would follow the pause of step 1")),
            (waiting.clone(), 1, "b", Some("b would become stable before the pause of step 1")),
            (value!({"controllerPause": true}), 2, "a", None),
            (value!({"controllerPause": true}), 4, "a", Some("step 4 would follow the pause of step 3")),
            (value!({"controllerPause": true}), 2, "b", Some("b would become stable before the pause of step 3")),
            (value!({"promoteFull": true}), 4, "b", None),
            (value!({"currentStepIndex": 4}), 4, "b", None),
            (value!({"currentPodHash": "a"}), 4, "a", None),
        ] {
            let view = view(value!({"canary": {"steps": steps.clone()}}), status.clone());
            let verdict = verdict(&view, |next, _| {
                (next.current_step_index, next.stable_rs) = (Some(to), stable.into());
            });
            assert_eq!(missing(&view, &verdict).as_deref(), expected, "{status} {to} {stable}");
        }
    }

    #[test]
    fn s64_a_first_version_has_no_predecessor_that_serves() {
        let refusal = "b would become stable as a first version, although web-a serves";
        let note = |object: &mut Value, key: &str, text: &str| object.set_at(&["metadata", "annotations", key], text);
        type Change = fn(&mut Value, &mut Value);
        let none: Change = |_, _| {};
        let cases: [(&str, Change, Option<&str>); 6] = [
            ("both serve", none, Some(refusal)),
            ("the wanted one has no pods yet", |_, new| new.set_at(&["spec", "replicas"], 0), Some(refusal)),
            ("the other one has none", |old, _| old.set_at(&["spec", "replicas"], 0), None),
            ("none of the other's are available", |old, _| old.set_at(&["status", "availableReplicas"], 0), None),
            (
                "the other one was left",
                |old, _| {
                    old.set_at(&["metadata", "annotations", annotation::SCALE_DOWN_DEADLINE], "2026-01-01T00:02:00Z")
                },
                None,
            ),
            (
                "the wanted one is the earlier one",
                |old, _| old.set_at(&["metadata", "annotations", annotation::REVISION], "3"),
                None,
            ),
        ];
        for (what, change, expected) in cases {
            let mut seen = seen(value!({"canary": {}}), value!({"stableRS": "", "currentPodHash": ""}));
            let [old, new] = seen.sets.as_mut_slice() else { panic!() };
            note(old, annotation::REVISION, "1");
            note(new, annotation::REVISION, "2");
            change(old, new);
            let view = View::of(&seen);
            let verdict = verdict(&view, |next, _| {
                (next.stable_rs, next.current_pod_hash) = ("b".into(), "b".into());
            });
            assert_eq!(missing(&view, &verdict).as_deref(), expected, "{what}");
        }
    }

    #[test]
    fn s64_a_switch_waits_for_approval_whatever_the_service_says() {
        let manual = value!({"activeService": "active", "autoPromotionEnabled": false});
        let waiting = value!({"controllerPause": true, "pauseConditions": [{"reason": "BlueGreenPause"}],
            "blueGreen": {"activeSelector": "a"}});
        let released = value!({"controllerPause": true, "blueGreen": {"activeSelector": "a"}});
        let switched = value!({"blueGreen": {"activeSelector": "b"}});
        for (strategy, status, leads_to, stable, expected) in [
            (manual.clone(), waiting.clone(), "a", "a", None),
            (manual.clone(), waiting.clone(), "b", "a", Some("service active would lead to b")),
            (manual.clone(), waiting.clone(), "", "b", Some("b would become stable")),
            (manual.clone(), value!({}), "", "b", Some("b would become stable")),
            (manual.clone(), released, "b", "a", None),
            (manual.clone(), switched, "b", "b", None),
            (manual.clone(), value!({"promoteFull": true}), "b", "b", None),
            (value!({"activeService": "active"}), value!({}), "b", "a", None),
        ] {
            let view = view(value!({"blueGreen": strategy}), status.clone());
            let verdict = verdict(&view, |next, target| {
                next.stable_rs = stable.into();
                let service = target.services.get_mut("active").unwrap();
                service.set_at(&["spec", "selector", label::POD_TEMPLATE_HASH], leads_to);
            });
            assert_eq!(missing(&view, &verdict).as_deref(), expected, "{status} {leads_to} {stable}");
        }
    }
}
