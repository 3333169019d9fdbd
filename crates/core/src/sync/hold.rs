//! Versions that were given up: not applied again, not looped, until a new commit or a person says so.

use super::{
    detail,
    health::{self, Doing},
    id::Id,
    set::Desired,
    view::View,
};
use crate::{
    api::{self, HeldObject, Rollout, Time, constants},
    kubernetes::{
        decode,
        value::{Text, Value},
    },
    model::hash,
};

/// The hash that a Rollout's pod template has; `None` if it has no template of its own.
pub fn template_hash(wanted: &Value, live: Option<&Value>) -> Option<Text> {
    let rollout: Rollout = api::read(wanted).object;
    if rollout.spec.workload_ref.is_some() || rollout.spec.template.is_null() {
        return None;
    }
    let collisions = live.and_then(|live| live.int_at(&["status", "collisionCount"]));
    Some(hash::pod_template(&rollout.spec.template, collisions.and_then(|count| i32::try_from(count).ok())))
}

/// An object as the server would have it: the hash of a template is that of its defaults, too.
fn as_live(desired: &Desired) -> Value {
    let mut object = desired.object.clone();
    if let Some(kind) = &desired.sort.kind {
        decode::default(kind, &mut object, None);
    }
    object
}

/// The hash that the pod template of a Rollout will have in the cluster.
pub fn wanted_hash(desired: &Desired, live: Option<&Value>) -> Option<Text> {
    template_hash(&as_live(desired), live)
}

/// What is held: what was, as long as git wants the same template and nobody retried, and what is given up now.
pub fn held<'d>(view: &View, objects: impl Iterator<Item = (&'d Desired, Text)>) -> Vec<HeldObject> {
    let retried = !view.request.is_empty() && view.request != view.status.last_sync_request;
    let rollouts = objects.filter(|(desired, _)| desired.id.is(constants::GROUP, constants::kind::ROLLOUT));
    let hold = |(desired, blamed): (&Desired, Text)| {
        let live = view.live.get(&desired.id).map(|live| &live.value);
        // Most are neither: what follows is dear.
        let was_held = view.status.held.iter().any(|held| is_about(held, &desired.id));
        if !was_held && !live.is_some_and(may_be_aborted) {
            return None;
        }
        let wanted = wanted_hash(desired, live)?;
        let old =
            view.status.held.iter().find(|held| is_about(held, &desired.id) && held.template_hash == wanted.as_str());
        let doing = live.map(Doing::of);
        let aborted = doing.as_ref().and_then(|doing| doing.aborted.as_deref()) == Some(wanted.as_str());
        if aborted {
            // Somebody who asks for a sync of what is still given up does not retry it: the Rollout must be told to.
            let why = doing.map(|doing| doing.words).unwrap_or_default();
            let why = match detail::remembered(&view.status, &desired.id, &wanted) {
                Some(pods) => health::recalling(&why, pods),
                None => why,
            };
            return Some(old.cloned().unwrap_or_else(|| new(view, &desired.id, &blamed, &wanted, why)));
        }
        // Retried in the cluster: the same template is on its way again.
        let again = live.and_then(|live| template_hash(live, Some(live))).is_some_and(|hash| hash == wanted);
        old.filter(|_| !again && !retried).cloned()
    };
    rollouts.filter_map(hold).collect()
}

/// Whether a Rollout's status says anything about an abort.
fn may_be_aborted(rollout: &Value) -> bool {
    ["abort", "abortedAt"].iter().any(|key| rollout.at(&["status", key]).is_some())
}

fn new(view: &View, id: &Id, commit: &str, hash: &str, why: String) -> HeldObject {
    HeldObject {
        group: id.group.to_string(),
        kind: id.kind.to_string(),
        namespace: id.namespace.to_string(),
        name: id.name.to_string(),
        commit: commit.to_owned(),
        template_hash: hash.to_owned(),
        reason: why,
        since: Some(Time::from(view.now)),
    }
}

/// Whether a hold is about an object.
pub fn is_about(held: &HeldObject, id: &Id) -> bool {
    *id == Id::new(&held.group, &held.kind, &held.namespace, &held.name)
}
