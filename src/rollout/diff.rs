//! From the wanted world to the writes that make it so, in the order that keeps serving.
//!
//! The only place that knows an order of writes: what is new, then Services, then routers, then pods where they become more,
//! then pods where they become fewer, then what is deleted, then the Rollout itself. A write names only the fields that
//! differ. Never writes what is already so.

use serde::Serialize;

use super::{
    services,
    target::{Target, Verdict},
    view::View,
};
use crate::{
    api::constants::condition,
    kubernetes::{
        patch,
        value::{Map, Text, Value, intern},
    },
    model::{codec, conditions},
    route::Id,
    value,
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
}

/// The writes that turn what was seen into what is wanted; none when nothing differs.
pub fn diff(view: &View, verdict: &Verdict) -> Vec<Action> {
    let Some(target) = &verdict.target else { return Vec::new() };
    let seen = Target::of(view);
    let mut actions = Vec::new();
    let created = target.sets.iter().filter(|(name, _)| !seen.sets.contains_key(*name));
    actions.extend(created.map(|(_, set)| Action::CreateSet { set: set.clone() }));
    // Services move before pods do: decisions move them only to versions that can carry them, and pods must not go while
    // a Service still leads to them.
    let mut services: Vec<&str> = services::named(&view.rollout).iter().map(|(_, name)| *name).collect();
    if view.rollout.spec.strategy.blue_green.is_some() {
        services.reverse();
    }
    services.dedup();
    for name in services {
        if let (Some(before), Some(after)) = (seen.services.get(name), target.services.get(name)) {
            actions.extend(change(Subject::Service, &name.into(), before, after));
        }
    }
    actions.extend(target.routes.changed().iter().filter_map(|id| route(view, id, target.routes.get(id)?)));
    let begun = target.runs.iter().filter(|(name, _)| !seen.runs.contains_key(*name));
    actions.extend(begun.map(|(_, run)| Action::CreateRun { run: run.clone() }));
    for (name, before) in &seen.runs {
        actions.extend(target.runs.get(name).and_then(|after| change(Subject::Run, name, before, after)));
    }
    let order = view.stable_set().into_iter().chain(view.new_set().filter(|_| view.new != view.stable));
    let order: Vec<&Text> = order.chain(view.others()).map(|set| &set.info.name).collect();
    let rest = seen.sets.keys().filter(|name| !order.contains(name));
    let order: Vec<&Text> = order.iter().copied().chain(rest).collect();
    for grows in [true, false] {
        let pairs = order.iter().filter_map(|name| Some((*name, seen.sets.get(*name)?, target.sets.get(*name)?)));
        let pairs = pairs.filter(|(_, before, after)| is_growing(before, after) == grows);
        actions.extend(pairs.filter_map(|(name, before, after)| change(Subject::Set, name, before, after)));
    }
    for (name, before) in &seen.pods {
        actions.extend(target.pods.get(name).and_then(|after| change(Subject::Pod, name, before, after)));
    }
    if let (Some(before), Some(after)) = (&seen.workload, &target.workload) {
        let name = before.at(&["metadata", "name"]).and_then(Value::as_text).cloned().unwrap_or_default();
        actions.extend(change(Subject::Workload, &name, before, after));
    }
    actions.extend(target.evictions.iter().map(|pod| Action::Evict { pod: pod.clone() }));
    let deleted = seen.sets.iter().filter(|(name, _)| !target.sets.contains_key(*name));
    actions.extend(deleted.map(|(name, set)| Action::DeleteSet { name: name.clone(), uid: uid(set) }));
    let forgotten = seen.runs.iter().filter(|(name, _)| !target.runs.contains_key(*name));
    actions.extend(forgotten.map(|(name, run)| Action::DeleteRun { name: name.clone(), uid: uid(run) }));
    // Its revision follows that of its ReplicaSet: a number that was given is never given again.
    actions.extend(change(Subject::Rollout, &Text::default(), &seen.rollout, &target.rollout));
    actions
}

fn route(view: &View, id: &Id, after: &Value) -> Option<Action> {
    let change = match view.routes.get(id) {
        None => RouteChange::Create(after.clone()),
        Some(before) => {
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
    if before.is(after) || before == after {
        return None;
    }
    let (Some(old), Some(new)) = (before.as_map(), after.as_map()) else { return Some(after.clone()) };
    let mut patch = Map::default();
    for (key, _) in old.iter().filter(|(key, _)| !new.contains_key(key)) {
        patch.insert(intern(key), Value::Null);
    }
    for (key, value) in new.iter() {
        let change = match old.get(key) {
            Some(before) => merge_patch(before, value),
            None => Some(value.clone()),
        };
        if let Some(change) = change {
            patch.insert(intern(key), change);
        }
    }
    (!patch.is_empty()).then(|| Value::Map(patch))
}

/// The patch that makes status say this, if it does not already: conditional on the version that was seen, because people
/// write their wishes into status.
pub fn status_patch(view: &View, status: &crate::api::RolloutStatus) -> Option<Value> {
    let before = view.object.get("status").cloned().unwrap_or_else(Value::object);
    let (known, wanted) = (crate::api::write(&view.rollout.status), crate::api::write(status));
    // Fields that are not ours stay as they are: what we knew and no longer want goes, what we want is there.
    let change = merge_patch(&known, &wanted).unwrap_or_else(Value::object);
    let after = patch::merge(&before, &change);
    // An update says everything once, even what is empty; a specification that cannot be acted upon only says so.
    let is_invalid = conditions::find(&status.conditions, condition::INVALID_SPEC).is_some();
    let mut after = if is_invalid { after } else { patch::merge(&after, &wanted) };
    if !codec::promotion(status).is_full() {
        // A wish that a later one overruled is not among what we knew.
        after.remove_at(&["promoteFull"]);
    }
    let change = merge_patch(&before, &after)?;
    let mut patch = value!({"metadata": {}});
    for key in ["uid", "resourceVersion"] {
        if let Some(text) = view.object.at(&["metadata", key]) {
            patch.set_at(&["metadata", key], text.clone());
        }
    }
    patch.set_at(&["status"], change);
    Some(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

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
