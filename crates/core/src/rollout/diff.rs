//! From the wanted world to the writes that make it so, in the order that keeps serving.
//!
//! The only place that knows an order of writes: what is new, then Services, then routers, then pods where they become more,
//! then pods where they become fewer, then what is deleted, then the Rollout itself. A write names only the fields that
//! differ. Never writes what is already so.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    services,
    target::{Target, Verdict},
    view::View,
};
use crate::{
    api::{
        self, RolloutStatus,
        constants::{condition, reason},
    },
    kubernetes::{
        patch,
        value::{Map, Text, Value, intern},
    },
    model::{codec, conditions},
    route::Id,
};

/// One write.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "do")]
pub enum Action {
    /// Creates a ReplicaSet.
    CreateSet {
        /// The whole of it.
        set: Value,
    },
    /// Changes an object.
    Patch {
        /// Which.
        object: Subject,
        /// Its name.
        name: Text,
        /// A merge patch, for this very object only.
        patch: Value,
    },
    /// Tells a router.
    Route {
        /// By which object.
        id: Id,
        /// What becomes of that.
        change: RouteChange,
    },
    /// Deletes a ReplicaSet.
    DeleteSet {
        /// Its name.
        name: Text,
        /// Its identity: another one of that name is left alone.
        uid: Text,
    },
    /// Creates an AnalysisRun.
    CreateRun {
        /// The whole of it.
        run: Value,
    },
    /// Deletes an AnalysisRun.
    DeleteRun {
        /// Its name.
        name: Text,
        /// Its identity: another one of that name is left alone.
        uid: Text,
    },
    /// Creates an Experiment.
    CreateExperiment {
        /// The whole of it.
        experiment: Value,
    },
    /// Deletes an Experiment.
    DeleteExperiment {
        /// Its name.
        name: Text,
        /// Its identity: another one of that name is left alone.
        uid: Text,
    },
    /// Evicts a pod; a disruption budget may say no.
    Evict {
        /// Its name.
        pod: Text,
    },
}

/// What becomes of an object of a router.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RouteChange {
    /// It is made.
    Create(Value),
    /// It is changed by a merge patch, for this very version of it only: what it says may be about others, too.
    Patch(Value),
    /// It is deleted, if it is this very version of it.
    Delete {
        /// Its identity.
        uid: Text,
        /// Its version.
        version: u64,
    },
}

/// What an action changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// The Rollout itself.
    Rollout,
    /// A ReplicaSet.
    Set,
    /// A Service.
    Service,
    /// A pod.
    Pod,
    /// The workload it refers to.
    Workload,
    /// An AnalysisRun.
    Run,
    /// An Experiment.
    Experiment,
}

/// The writes that turn what was seen into what is wanted; none when nothing differs.
pub fn diff(view: &View, verdict: &Verdict) -> Vec<Action> {
    let Some(target) = &verdict.target else { return Vec::new() };
    let mut actions = Vec::new();
    let seen: BTreeMap<&str, &Value> = set_objects(view).map(|set| (name(set), set)).collect();
    let created = target.sets.iter().filter(|(name, _)| !seen.contains_key(name.as_str()));
    actions.extend(created.map(|(_, set)| Action::CreateSet { set: set.clone() }));
    // Services move before pods do: decisions move them only to versions that can carry them, and pods must not go while
    // a Service still leads to them.
    let mut services: Vec<&str> = services::named(&view.rollout).iter().map(|(_, name)| *name).collect();
    if view.rollout.spec.strategy.blue_green.is_some() {
        services.reverse();
    }
    services.dedup();
    for name in services {
        if let (Some(before), Some((name, after))) = (view.services.get(name), target.services.get_key_value(name)) {
            actions.extend(change(Subject::Service, name, &before.object, after));
        }
    }
    actions.extend(target.routes.changed().iter().filter_map(|id| route(view, id, target.routes.get(id))));
    let runs: BTreeMap<&Text, &Value> = view.runs.iter().map(|run| (&run.name, &run.object)).collect();
    let begun = target.runs.iter().filter(|(name, _)| !runs.contains_key(name));
    actions.extend(begun.map(|(_, run)| Action::CreateRun { run: run.clone() }));
    for (name, before) in &runs {
        actions.extend(target.runs.get(*name).and_then(|after| change(Subject::Run, name, before, after)));
    }
    let experiments: BTreeMap<&Text, &Value> = view.experiments.iter().map(|one| (&one.name, &one.object)).collect();
    let begun = target.experiments.iter().filter(|(name, _)| !experiments.contains_key(name));
    actions.extend(begun.map(|(_, experiment)| Action::CreateExperiment { experiment: experiment.clone() }));
    for (name, before) in &experiments {
        let after = target.experiments.get(*name);
        actions.extend(after.and_then(|after| change(Subject::Experiment, name, before, after)));
    }
    actions.extend(scalings(view, target, &seen));
    let pods: BTreeMap<&str, &Value> = view.pods.iter().map(|pod| (name(pod), pod)).collect();
    for (name, before) in pods {
        let after = target.pods.get_key_value(name);
        actions.extend(after.and_then(|(name, after)| change(Subject::Pod, name, before, after)));
    }
    let workload = view.workload.as_ref().map(|workload| &workload.object);
    if let (Some(before), Some(after)) = (workload, &target.workload) {
        actions.extend(change(Subject::Workload, &Text::from(name(before)), before, after));
    }
    actions.extend(target.evictions.iter().map(|pod| Action::Evict { pod: pod.clone() }));
    let deleted = seen.iter().filter(|(name, _)| !target.sets.contains_key(**name));
    actions.extend(deleted.map(|(name, set)| Action::DeleteSet { name: (*name).into(), uid: uid(set) }));
    let forgotten = runs.iter().filter(|(name, _)| !target.runs.contains_key(**name));
    actions.extend(forgotten.map(|(name, run)| Action::DeleteRun { name: (*name).clone(), uid: uid(run) }));
    let forgotten = experiments.iter().filter(|(name, _)| !target.experiments.contains_key(**name));
    actions.extend(forgotten.map(|(name, one)| Action::DeleteExperiment { name: (*name).clone(), uid: uid(one) }));
    // Its revision follows that of its ReplicaSet: a number that was given is never given again.
    actions.extend(change(Subject::Rollout, &Text::default(), &view.object, &target.rollout));
    actions
}

fn set_objects(view: &View) -> impl Iterator<Item = &Value> {
    view.sets.iter().map(|set| &set.object).chain(&view.strangers)
}

fn name(object: &Value) -> &str {
    object.str_at(&["metadata", "name"]).unwrap_or_default()
}

/// What changes about ReplicaSets: pods become more before they become fewer, the stable version's first.
fn scalings(view: &View, target: &Target, seen: &BTreeMap<&str, &Value>) -> Vec<Action> {
    let roles = view.stable_set().into_iter().chain(view.new_set().filter(|_| view.new != view.stable));
    let order: Vec<&str> = roles.chain(view.others()).map(|set| set.info.name.as_str()).collect();
    let rest = seen.keys().copied().filter(|name| !order.contains(name));
    let pairs =
        order.iter().copied().chain(rest).filter_map(|name| Some((seen.get(name)?, target.sets.get_key_value(name)?)));
    let changed = pairs.filter(|(before, (_, after))| !before.is(after));
    let (more, fewer): (Vec<_>, Vec<_>) = changed.partition(|(before, (_, after))| is_growing(before, after));
    let all = more.into_iter().chain(fewer);
    all.filter_map(|(before, (name, after))| change(Subject::Set, name, before, after)).collect()
}

fn route(view: &View, id: &Id, after: Option<&Value>) -> Option<Action> {
    let change = match (view.routes.get(id), after) {
        (None, after) => RouteChange::Create(after?.clone()),
        (Some(before), None) => {
            let version = before.str_at(&["metadata", "resourceVersion"]).and_then(|version| version.parse().ok());
            RouteChange::Delete { uid: uid(before), version: version.unwrap_or_default() }
        }
        (Some(before), Some(after)) => {
            let mut patch = merge_patch(before, after)?;
            for key in ["uid", "resourceVersion"] {
                patch.set_at(&["metadata", key], before.at(&["metadata", key]).cloned().unwrap_or_default());
            }
            RouteChange::Patch(patch)
        }
    };
    Some(Action::Route { id: id.clone(), change })
}

fn is_growing(before: &Value, after: &Value) -> bool {
    let size = |set: &Value| set.int_at(&["spec", "replicas"]).unwrap_or(1);
    size(after) > size(before)
}

fn uid(object: &Value) -> Text {
    object.at(&["metadata", "uid"]).and_then(Value::as_text).cloned().unwrap_or_default()
}

fn change(object: Subject, name: &Text, before: &Value, after: &Value) -> Option<Action> {
    let mut patch = merge_patch(before, after)?;
    // Another object of the same name is not the one that was decided about.
    patch.set_at(&["metadata", "uid"], uid(before));
    // What this pass says in status afterwards, it says on the version that this makes: nobody may have come in between.
    if let (Subject::Rollout, Some(version)) = (object, before.at(&["metadata", "resourceVersion"])) {
        patch.set_at(&["metadata", "resourceVersion"], version.clone());
    }
    Some(Action::Patch { object, name: name.clone(), patch })
}

/// The merge patch (RFC 7386) that turns one value into another; `None` if they are the same.
pub fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    if before.is(after) {
        return None;
    }
    let (Some(old), Some(new)) = (before.as_map(), after.as_map()) else {
        return (before != after).then(|| after.clone());
    };
    let change = |old: Option<&Value>, new: Option<&Value>| match (old, new) {
        (Some(old), Some(new)) => merge_patch(old, new),
        (_, new) => Some(new.cloned().unwrap_or_default()),
    };
    let changes = old.beside(new).filter_map(|(key, old, new)| Some((key.clone(), change(old, new)?)));
    some(changes.collect())
}

/// An object of these fields, unless there are none.
fn some(fields: Vec<(Text, Value)>) -> Option<Value> {
    (!fields.is_empty()).then(|| Value::Map(Map::sorted(fields)))
}

/// The patch that makes status say this, if it does not already: conditional on the version that was seen, because people
/// write their wishes into status.
pub fn status_patch(view: &View, status: &RolloutStatus) -> Option<Value> {
    let before = view.object.get("status").cloned().unwrap_or_else(Value::object);
    let known = &view.rollout.status;
    let change = if only_says_why_it_stops(status) {
        only_changes(&before, known, status)
    } else {
        restatement(&before, known, status)
    };
    // What was overruled is not among what we knew.
    let is_paused = before.get("controllerPause").and_then(Value::as_bool) == Some(true);
    let overruled = [
        ("promoteFull", before.get("promoteFull").is_some() && !codec::promotion(status).is_full()),
        ("controllerPause", is_paused && !codec::hold(status).is_begun_here()),
    ];
    let change = overruled.into_iter().filter(|(_, is_overruled)| *is_overruled).fold(change, |change, (key, _)| {
        let mut change = change.unwrap_or_else(Value::object);
        change.set_at(&[key], Value::Null);
        Some(change)
    })?;
    let named = ["resourceVersion", "uid"].map(|key| Some((intern(key), view.object.at(&["metadata", key])?.clone())));
    let metadata = Map::sorted(named.into_iter().flatten().collect());
    Some(Value::Map(Map::sorted(vec![(intern("metadata"), metadata.into()), (intern("status"), change)])))
}

/// Whether status says nothing but why nothing can be done: the specification is invalid, or the ReplicaSet of its template
/// cannot be created. One that was created is told in full, whatever was wrong before.
fn only_says_why_it_stops(status: &RolloutStatus) -> bool {
    let is_invalid = conditions::find(&status.conditions, condition::INVALID_SPEC).is_some();
    let progressing = conditions::find(&status.conditions, condition::PROGRESSING);
    match progressing.map(|progressing| progressing.reason.as_str()) {
        Some(reason::REPLICA_SET_CREATE_ERROR) => true,
        Some(reason::NEW_REPLICA_SET) => false,
        Some(_) | None => is_invalid,
    }
}

/// The patch of a part of an object that makes it say all of what is wanted, even what is empty; `None` if it does. What
/// was known of it and is no longer wanted goes; fields that are not ours stay as they are.
fn restatement<T: Serialize>(before: &Value, known: &T, wanted: &T) -> Option<Value> {
    let wanted = api::write_like(wanted, before);
    let (Some(old), Some(new)) = (before.as_map(), wanted.as_map()) else {
        return merge_patch(before, &patch::merge(before, &wanted));
    };
    // Where everything that is there is wanted nothing can go, whatever was known.
    let may_go: Vec<&Text> = uncovered(old, new).collect();
    let known = if may_go.is_empty() {
        Value::Null
    } else {
        api::write_fields(known, &|key| may_go.iter().any(|name| name.as_str() == key))
    };
    some(restated(old, known.as_map(), new))
}

fn restated(before: &Map, known: Option<&Map>, wanted: &Map) -> Vec<(Text, Value)> {
    let known = |key: &Text| known.and_then(|known| known.get(key));
    let change = |key: &Text, old: Option<&Value>, new: Option<&Value>| match (old, new) {
        (Some(_), None) => known(key).map(|_| Value::Null),
        (Some(_), Some(Value::Null)) => Some(Value::Null),
        (None, None | Some(Value::Null)) => None,
        (Some(Value::Map(old)), Some(Value::Map(new))) => some(restated(old, known(key).and_then(Value::as_map), new)),
        (old, Some(new)) => Some(patch::without_nulls(new)).filter(|new| old != Some(new)),
    };
    before.beside(wanted).filter_map(|(key, old, new)| Some((key.clone(), change(key, old, new)?))).collect()
}

/// The fields of an object that another one does not have, or not with everything in them.
fn uncovered<'a>(map: &'a Map, by: &'a Map) -> impl Iterator<Item = &'a Text> {
    map.beside(by).filter(|(_, value, by)| value.is_some_and(|value| !is_covered(value, *by))).map(|(key, ..)| key)
}

fn is_covered(value: &Value, by: Option<&Value>) -> bool {
    match (value, by) {
        (_, None) => false,
        (Value::Map(map), Some(Value::Map(by))) => map.is(by) || uncovered(map, by).next().is_none(),
        (Value::Map(_), Some(_)) => false,
        (_, Some(_)) => true,
    }
}

/// The same patch, of what has changed only.
fn only_changes<T: Serialize>(before: &Value, known: &T, wanted: &T) -> Option<Value> {
    let change = merge_patch(&api::write_like(known, before), &api::write_like(wanted, before))?;
    merge_patch(before, &patch::merge(before, &change))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::value;

    /// A status as people, tools and other versions may have left it.
    fn wreck() -> impl Strategy<Value = Value> {
        let fields = [
            value!({"replicas": 2}),
            value!({"replicas": "2", "abort": false}),
            value!({"abort": true, "promoteFull": true}),
            value!({"phase": "Healthy", "message": "m"}),
            value!({"phase": null, "x": {"y": null}}),
            value!({"canary": {"x": 1, "stablePingPong": "ping"}}),
            value!({"canary": {"weights": {"canary": {"weight": 5}, "stable": {"weight": 95, "x": 1}}}}),
            value!({"canary": 5, "blueGreen": {"activeSelector": "a"}}),
            value!({"canary": {"stepPluginStatuses": [{"index": 1, "status": {"a": null, "b": {}}}]}}),
            value!({"conditions": [{"type": "A", "lastUpdateTime": "0001-01-01T00:00:00Z"}, {"type": "B", "x": null}]}),
            value!({"conditions": {"type": "A"}, "pauseConditions": [{"reason": "r"}]}),
            value!({"duration": {"finishedAt": "0001-01-01T00:00:00Z", "completionStatus": "Promoted"}}),
            value!({"duration": {"rolloutStartedAt": "2026-01-01T00:00:00Z", "x": {}}, "alb": {}}),
        ];
        vec(select(fields.to_vec()), 0..5).prop_map(|parts| {
            parts.iter().fold(Value::object(), |status, part| {
                let mut fields = status.as_map().cloned().unwrap_or_default();
                for (key, value) in part.as_map().into_iter().flat_map(Map::iter) {
                    fields.insert(key, value);
                }
                fields.into()
            })
        })
    }

    proptest! {
        #[test]
        fn what_is_wanted_is_said_on_top_of_what_has_changed(before in wreck(), next in wreck()) {
            let read = |status: &Value| api::read::<RolloutStatus>(status).object;
            let (known, wanted) = (read(&before), read(&next));
            let change = merge_patch(&api::write(&known), &api::write(&wanted)).unwrap_or_else(Value::object);
            let after = patch::merge(&patch::merge(&before, &change), &api::write(&wanted));
            prop_assert_eq!(restatement(&before, &known, &wanted), merge_patch(&before, &after));
        }
    }

    #[test]
    fn a_patch_names_only_what_differs() {
        let before = value!({"a": 1, "b": {"c": [1, 2], "d": "x"}, "e": {}});
        for (after, patch) in [
            (before.clone(), None),
            (value!({"a": 1, "b": {"c": [1, 2]}, "e": {}}), Some(value!({"b": {"d": null}}))),
            (value!({"a": 2, "b": {"c": [1], "d": "x"}, "e": {}}), Some(value!({"a": 2, "b": {"c": [1]}}))),
            (value!({"a": 1, "b": 5, "e": {"f": {}}}), Some(value!({"b": 5, "e": {"f": {}}}))),
        ] {
            assert_eq!(merge_patch(&before, &after), patch);
        }
    }

    #[test]
    fn what_stops_a_rollout_is_all_that_its_status_says() {
        let condition = |kind: &str, reason: &str| value!({"type": kind, "status": "True", "reason": reason});
        let invalid = condition(condition::INVALID_SPEC, reason::INVALID_SPEC);
        let progressing = |reason: &str| condition(condition::PROGRESSING, reason);
        for (conditions, is_whole) in [
            (value!([invalid]), false),
            (value!([progressing(reason::REPLICA_SET_CREATE_ERROR)]), false),
            (value!([invalid, progressing(reason::REPLICA_SET_UPDATED)]), false),
            (value!([invalid, progressing(reason::NEW_REPLICA_SET)]), true),
            (value!([progressing(reason::FOUND_NEW_REPLICA_SET)]), true),
        ] {
            let rollout = value!({"metadata": {"name": "web", "uid": "u", "resourceVersion": "7"}});
            let view = View::of(&crate::rollout::Seen { rollout, ..Default::default() });
            let next = api::read::<RolloutStatus>(&value!({"conditions": conditions.clone()})).object;
            let patch = status_patch(&view, &next).unwrap();
            let parts = ["blueGreen", "canary"].map(|part| patch.at(&["status", part]).is_some());
            assert_eq!(parts, [is_whole; 2], "{conditions}");
        }
    }

    #[test]
    fn a_status_patch_leaves_what_is_not_ours_and_says_nothing_twice() {
        let status = value!({"replicas": 2, "abort": true, "x": {"y": 1}, "canary": {"x": 2}});
        let rollout = value!({"metadata": {"name": "web", "uid": "u", "resourceVersion": "7"}, "status": status});
        let view = View::of(&crate::rollout::Seen { rollout, ..Default::default() });
        let mut next = view.rollout.status.clone();
        (next.abort, next.replicas) = (false, 3);
        let patch = status_patch(&view, &next).unwrap();
        assert_eq!(patch.at(&["metadata"]), Some(&value!({"uid": "u", "resourceVersion": "7"})));
        let after = patch::merge(view.object.at(&["status"]).unwrap(), patch.at(&["status"]).unwrap());
        let text = |path: &[&str]| after.at(path).map(ToString::to_string);
        assert_eq!((text(&["x", "y"]), text(&["canary", "x"])), (Some("1".into()), Some("2".into())));
        assert_eq!((text(&["replicas"]), text(&["abort"])), (Some("3".into()), None));
        let rollout = value!({"metadata": {"name": "web"}, "status": after});
        let view = View::of(&crate::rollout::Seen { rollout, ..Default::default() });
        assert_eq!(status_patch(&view, &next), None);
    }
}
