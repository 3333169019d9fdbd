//! What must never happen, whatever was decided: an independent judge.
//!
//! Runs on every verdict, in production too. Shares no function with the decision, so that one mistake cannot hide in
//! both; reads only what was seen, what is wanted and what would be written. Never repairs: who breaks a rule is refused.

use std::fmt;

use super::{
    approval,
    bounds::Bounds,
    diff::{Action, Subject},
    target::{Target, Verdict},
    view::View,
};
use crate::{
    api::constants::{annotation, label},
    kubernetes::{object, value::Value},
    route,
};

/// A rule that a verdict would break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// S15: a ReplicaSet of somebody else would be written.
    NotOurs(String),
    /// S20: pods would be started beyond the size and its surge.
    TooMany {
        /// All ReplicaSets together.
        pods: i64,
        /// What is allowed.
        most: i64,
    },
    /// S21: the stable version would go while it still has users.
    StableGone(String),
    /// S24: a size that makes no sense.
    Size {
        /// The ReplicaSet.
        set: String,
        /// The size.
        size: i64,
    },
    /// S26: the active Service would lead to a version that cannot carry everything.
    NotAvailable {
        /// The Service.
        service: String,
        /// How many pods are available there.
        available: i64,
        /// How many are needed.
        needed: i64,
    },
    /// S5, S48: a field that is somebody else's would be written.
    NotOurField {
        /// The object.
        object: String,
        /// The field.
        field: String,
    },
    /// S13: it would be called healthy, and is not.
    NotHealthy(&'static str),
    /// S14: a new version would not have the highest revision.
    Revision {
        /// The one it would have.
        revision: i64,
        /// The highest there is.
        highest: i64,
    },
    /// S16: a version would be deleted that is still needed.
    StillNeeded(String),
    /// S20: pods would go that nobody can spare.
    TooFew {
        /// How many would be left.
        available: i64,
        /// How many must be.
        least: i64,
    },
    /// S17: more traffic would go to a version than its pods carry.
    Overloaded {
        /// The weight.
        weight: i64,
        /// How many pods are available.
        available: i64,
        /// How many are needed.
        needed: i64,
    },
    /// S19: pods would go while traffic goes to them.
    NotDrained {
        /// The ReplicaSet.
        set: String,
        /// What would be left.
        size: i64,
        /// What its traffic needs.
        needed: i64,
    },
    /// S23: weights that make no sense.
    Weights(String),
    /// S27: routes of steps would outlive their update.
    Leftover(String),
    /// S30: an aborted version would grow.
    Grows(String),
    /// S50: status would forget something.
    Forgotten(&'static str),
    /// S64: something that waits for approval would go on without it.
    NotApproved(String),
    /// S36: the step index would go back without a reason.
    StepBack {
        /// Where it is.
        from: i32,
        /// Where it would be.
        to: i32,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::NotOurs(set) => write!(f, "S15: {set} belongs to another controller"),
            Broken::TooMany { pods, most } => write!(f, "S20: {pods} pods are more than the {most} allowed"),
            Broken::StableGone(set) => write!(f, "S21: {set} is stable and still has users"),
            Broken::Size { set, size } => write!(f, "S24: {size} is no size for {set}"),
            Broken::NotAvailable { service, available, needed } => {
                write!(f, "S26: {service} would lead to {available} available pods where {needed} are needed")
            }
            Broken::NotOurField { object, field } => write!(f, "S5: {field} of {object} is not ours to write"),
            Broken::NotHealthy(why) => write!(f, "S13: healthy, although {why}"),
            Broken::Revision { revision, highest } => write!(f, "S14: revision {revision} would follow {highest}"),
            Broken::StillNeeded(set) => write!(f, "S16: {set} is still needed"),
            Broken::TooFew { available, least } => {
                write!(f, "S20: {available} available pods would be left where {least} are needed")
            }
            Broken::Overloaded { weight, available, needed } => {
                write!(f, "S17: weight {weight} needs {needed} pods, {available} are available")
            }
            Broken::NotDrained { set, size, needed } => {
                write!(f, "S19: {set} would have {size} pods, its traffic needs {needed}")
            }
            Broken::Weights(weights) => write!(f, "S23: {weights} are no weights"),
            Broken::Leftover(routes) => write!(f, "S27: routes would be left over: {routes}"),
            Broken::Grows(set) => write!(f, "S30: {set} would grow after an abort"),
            Broken::Forgotten(field) => write!(f, "S50: status would forget {field}"),
            Broken::NotApproved(what) => write!(f, "S64: {what} without an approval"),
            Broken::StepBack { from, to } => write!(f, "S36: step {from} would become {to}"),
        }
    }
}

/// The rules that a verdict would break; none is the rule.
pub fn check(view: &View, verdict: &Verdict, actions: &[Action]) -> Vec<Broken> {
    let mut broken = Vec::new();
    // Who does nothing breaks nothing.
    if actions.is_empty() && verdict.target.is_none() && verdict.status.is_none() {
        return broken;
    }
    ownership(view, actions, &mut broken);
    sizes(view, verdict, &mut broken);
    switch(view, verdict, &mut broken);
    steps(view, verdict, &mut broken);
    fields(view, actions, &mut broken);
    deletions(view, actions, &mut broken);
    revision(view, actions, &mut broken);
    availability(view, verdict, &mut broken);
    traffic(view, verdict, &mut broken);
    status(view, verdict, &mut broken);
    broken.extend(approval::missing(view, verdict).map(Broken::NotApproved));
    broken
}

fn size(set: &Value) -> i64 {
    set.int_at(&["spec", "replicas"]).unwrap_or(1)
}

fn ownership(view: &View, actions: &[Action], broken: &mut Vec<Broken>) {
    let uid = view.rollout.metadata.uid.as_str();
    let seen = view.sets.iter().map(|set| &set.object).chain(&view.strangers);
    let seen: Vec<&Value> = seen.collect();
    for action in actions {
        let name = match action {
            Action::Patch { object: Subject::Set, name, .. } | Action::DeleteSet { name, .. } => name,
            Action::Patch { object: Subject::Pod, name, .. } | Action::Evict { pod: name } => {
                let pod = view.pods.iter().find(|pod| pod.str_at(&["metadata", "name"]) == Some(name.as_str()));
                let owner = pod.and_then(object::controller);
                let uid = |set: &Value| set.at(&["metadata", "uid"]).and_then(Value::as_text).cloned();
                if owner.is_none() || !view.sets.iter().any(|set| uid(&set.object) == owner) {
                    broken.push(Broken::NotOurs(name.to_string()));
                }
                continue;
            }
            Action::Patch { object: Subject::Run, name, .. } | Action::DeleteRun { name, .. } => {
                if !view.runs.iter().any(|run| run.name == *name && may_be_ours(&run.object, uid)) {
                    broken.push(Broken::NotOurs(name.to_string()));
                }
                continue;
            }
            Action::Patch { object: Subject::Experiment, name, .. } | Action::DeleteExperiment { name, .. } => {
                if !view.experiments.iter().any(|one| one.name == *name && may_be_ours(&one.object, uid)) {
                    broken.push(Broken::NotOurs(name.to_string()));
                }
                continue;
            }
            Action::CreateSet { .. }
            | Action::CreateRun { .. }
            | Action::CreateExperiment { .. }
            | Action::Patch { .. }
            | Action::Route { .. } => continue,
        };
        let set = seen.iter().find(|set| set.str_at(&["metadata", "name"]) == Some(name.as_str()));
        let owner = set.and_then(|set| object::controller(set));
        // One that nobody has may be adopted.
        if set.is_none() || owner.is_some_and(|owner| owner.as_str() != uid) {
            broken.push(Broken::NotOurs(name.to_string()));
        }
    }
}

/// Whether nobody else controls an object. One that nobody has may be adopted.
fn may_be_ours(object: &Value, uid: &str) -> bool {
    object::controller(object).is_none_or(|owner| owner.as_str() == uid)
}

fn sizes(view: &View, verdict: &Verdict, broken: &mut Vec<Broken>) {
    let Bounds { replicas, most, traffic, .. } = Bounds::of(&view.rollout);
    let Some(Target { sets, .. }) = &verdict.target else { return };
    let changed = view.sets.iter().filter_map(|set| {
        let wanted = size(sets.get(&set.info.name)?);
        (wanted != i64::from(set.info.desired)).then_some((set, wanted))
    });
    let changed: Vec<_> = changed.collect();
    // Steps may ask for more pods than the Rollout has.
    let steps = view.rollout.spec.strategy.canary.iter().flat_map(|canary| &canary.steps);
    let scales = steps.filter_map(|step| step.set_canary_scale.as_ref()).map(|scale| {
        let share = i64::from(scale.weight.unwrap_or_default()).saturating_mul(replicas);
        i64::from(scale.replicas.unwrap_or_default()).max(share / traffic.max(1) + 1)
    });
    let given = scales.max().unwrap_or_default();
    for (set, wanted) in &changed {
        // A preview may be larger than what it is a preview of.
        let preview =
            view.rollout.spec.strategy.blue_green.as_ref().and_then(|strategy| strategy.preview_replica_count);
        let largest = replicas.max(set.info.desired.into()).max(preview.unwrap_or_default().into()).max(given);
        if *wanted < 0 || *wanted > largest {
            broken.push(Broken::Size { set: set.info.name.to_string(), size: *wanted });
        }
    }
    let Some(canary) = view.rollout.spec.strategy.canary.as_ref().filter(|canary| canary.traffic_routing.is_none())
    else {
        return;
    };
    let total: i64 = view.sets.iter().map(|set| sets.get(&set.info.name).map_or(0, size)).sum();
    if changed.iter().any(|(set, wanted)| *wanted > i64::from(set.info.desired)) && total > most {
        broken.push(Broken::TooMany { pods: total, most });
    }
    // Without a router pods are traffic: the stable version goes only when the steps, or a person, give all to the new one.
    let status = &view.rollout.status;
    let at = usize::try_from(status.current_step_index.unwrap_or_default()).unwrap_or_default();
    let so_far = canary.steps.iter().take(at.saturating_add(1)).rev();
    let weight = so_far.clone().find_map(|step| step.set_weight).unwrap_or_default();
    let all_given = at >= canary.steps.len() || weight >= 100 || status.promote_full;
    for (set, wanted) in &changed {
        let is_stable = set.info.hash.as_str() == status.stable_rs && status.stable_rs != status.current_pod_hash;
        // One without an available pod has no users.
        if is_stable && set.info.available > 0 && *wanted == 0 && replicas > 1 && (!all_given || status.abort) {
            broken.push(Broken::StableGone(set.info.name.to_string()));
        }
    }
}

fn switch(view: &View, verdict: &Verdict, broken: &mut Vec<Broken>) {
    let Some(strategy) = &view.rollout.spec.strategy.blue_green else { return };
    let name = strategy.active_service.as_str();
    let path = ["spec", "selector", label::POD_TEMPLATE_HASH];
    let Some(target) = &verdict.target else { return };
    let wanted = target.services.get(name).and_then(|service| service.str_at(&path)).unwrap_or_default();
    let before = view.services.get(name).map(|service| service.hash.as_str()).unwrap_or_default();
    let status = &view.rollout.status;
    // Whatever somebody else wrote into the Service, it leads again to where a pass led it, pods or not.
    let active = &status.blue_green.active_selector;
    let is_gone = !view.sets.iter().any(|set| set.info.hash == active.as_str());
    let is_restored = wanted == active.as_str() || wanted == status.stable_rs && before.is_empty() && is_gone;
    let goes_back = is_restored || status.abort && wanted == status.stable_rs;
    if wanted == before || goes_back {
        return;
    }
    let available = view.sets.iter().find(|set| set.info.hash == wanted).map_or(0, |set| i64::from(set.info.available));
    let needed = Bounds::of(&view.rollout).replicas;
    if available < needed {
        broken.push(Broken::NotAvailable { service: name.to_owned(), available, needed });
    }
}

fn steps(view: &View, verdict: &Verdict, broken: &mut Vec<Broken>) {
    let (old, Some(next)) = (&view.rollout.status, &verdict.status) else { return };
    let same_attempt = old.current_pod_hash == next.current_pod_hash
        && old.current_step_hash == next.current_step_hash
        && !next.abort
        && !old.abort;
    if let (true, Some(from), Some(to)) = (same_attempt, old.current_step_index, next.current_step_index)
        && to < from
    {
        broken.push(Broken::StepBack { from, to });
    }
}

/// What each kind of object may be changed in; everything below such a path is ours, too.
fn own_fields(object: Subject) -> &'static [&'static str] {
    match object {
        Subject::Rollout => &["metadata.annotations", "spec.replicas"],
        Subject::Set => &[
            "metadata",
            "spec.replicas",
            "spec.minReadySeconds",
            "spec.template.metadata",
            "spec.template.spec.affinity",
        ],
        Subject::Service => &["metadata.annotations", "spec.selector.rollouts-pod-template-hash"],
        Subject::Pod => &["metadata.labels", "metadata.annotations"],
        Subject::Workload => &["spec.replicas"],
        Subject::Run | Subject::Experiment => &["spec.terminate", "metadata.ownerReferences"],
    }
}

fn fields(view: &View, actions: &[Action], broken: &mut Vec<Broken>) {
    for action in actions {
        let Action::Patch { object, name, patch } = action else { continue };
        let corrects = *object == Subject::Rollout && view.reading.is_some();
        let sized = *object == Subject::Rollout && view.rollout.spec.replicas.is_some();
        leaves(&mut Vec::new(), patch, &mut |path| {
            // The uid says which object is meant, the version of which state; a patch cannot change them.
            let is_own = matches!(path, ["metadata", "uid" | "resourceVersion"])
                || corrects && path.starts_with(&["spec", "template"])
                || own_fields(*object).iter().any(|own| is_below(path, own));
            if !is_own || sized && path == ["spec", "replicas"] {
                broken.push(Broken::NotOurField { object: format!("{object:?} {name}"), field: path.join(".") });
            }
        });
    }
}

/// Whether a path is this one, or leads on from it.
fn is_below(path: &[&str], own: &str) -> bool {
    let mut path = path.iter();
    own.split('.').all(|key| path.next() == Some(&key))
}

/// Looks at each path that a patch writes.
fn leaves<'a>(path: &mut Vec<&'a str>, patch: &'a Value, look: &mut impl FnMut(&[&str])) {
    match patch.as_map() {
        Some(map) if !map.is_empty() => {
            for (key, value) in map.iter() {
                path.push(key);
                leaves(path, value, look);
                path.pop();
            }
        }
        Some(_) | None => look(path),
    }
}

fn deletions(view: &View, actions: &[Action], broken: &mut Vec<Broken>) {
    let status = &view.rollout.status;
    for action in actions {
        let Action::DeleteSet { name, .. } = action else { continue };
        let Some(set) = view.sets.iter().find(|set| set.info.name == *name) else { continue };
        let hash = set.info.hash.as_str();
        let has_role = !hash.is_empty() && (hash == status.stable_rs || hash == status.current_pod_hash);
        let serves = !hash.is_empty() && view.services.values().any(|service| service.hash == hash);
        let has_pods = set.info.desired > 0 || set.info.current > 0;
        if has_role || serves || has_pods {
            broken.push(Broken::StillNeeded(name.to_string()));
        }
    }
}

fn revision(view: &View, actions: &[Action], broken: &mut Vec<Broken>) {
    let of = |set: &Value| -> i64 {
        let text = set.str_at(&["metadata", "annotations", annotation::REVISION]).unwrap_or_default();
        text.parse().unwrap_or_default()
    };
    let highest = view.sets.iter().map(|set| of(&set.object)).max().unwrap_or_default();
    for action in actions {
        if let Action::CreateSet { set } = action
            && of(set) <= highest
        {
            broken.push(Broken::Revision { revision: of(set), highest });
        }
    }
}

/// Without a router: no pod goes that is needed, as long as pods do what they should; nothing aborted grows.
fn availability(view: &View, verdict: &Verdict, broken: &mut Vec<Broken>) {
    let Some(canary) = &view.rollout.spec.strategy.canary else { return };
    if canary.traffic_routing.is_some() {
        return;
    }
    let Some(target) = &verdict.target else { return };
    let (mut before, mut after, mut shrinks) = (0, 0, false);
    for set in &view.sets {
        let Some(wanted) = target.sets.get(&set.info.name).map(size) else { continue };
        let (desired, available) = (i64::from(set.info.desired), i64::from(set.info.available));
        before += available.min(desired);
        // One that is to lose pods keeps the rest. Of another it is not known what is left once its controller has seen how
        // small it was meanwhile.
        let sure = if wanted < desired || has_been_seen(&set.object) { available } else { 0 };
        after += sure.min(wanted);
        // Where pods failed by themselves, which of them go is another question.
        shrinks |= wanted < desired && available >= desired;
        if wanted < desired && available < desired {
            return;
        }
        let status = &view.rollout.status;
        let is_aborted = view.memory.abort.is_on() && verdict.status.as_ref().is_some_and(|status| status.abort);
        let is_new = set.info.hash.as_str() == status.current_pod_hash && status.current_pod_hash != status.stable_rs;
        if is_aborted && is_new && wanted > desired {
            broken.push(Broken::Grows(set.info.name.to_string()));
        }
    }
    let least = Bounds::of(&view.rollout).least;
    if shrinks && before >= least && after < least {
        broken.push(Broken::TooFew { available: after, least });
    }
}

/// Whether the controller of a ReplicaSet has told the outcome of its newest specification.
fn has_been_seen(set: &Value) -> bool {
    let number = |path: &[&str]| set.int_at(path).unwrap_or_default();
    number(&["status", "observedGeneration"]) >= number(&["metadata", "generation"])
}

/// With routers: traffic follows pods up, pods follow traffic down, and what steps have made goes with them.
fn traffic(view: &View, verdict: &Verdict, broken: &mut Vec<Broken>) {
    let (Some(canary), Some(target)) = (&view.rollout.spec.strategy.canary, &verdict.target) else { return };
    let Some(routing) = &canary.traffic_routing else { return };
    let (status, next) = (&view.rollout.status, verdict.status.as_ref());
    let is_given =
        canary.replica_progress_threshold.is_some() || canary.steps.iter().any(|step| step.set_canary_scale.is_some());
    let recorded = status.canary.weights.as_ref().map_or(0, |weights| i64::from(weights.canary.weight));
    let replicas = Bounds::of(&view.rollout).replicas;
    for leaf in route::leaves(routing).unwrap_or_default() {
        let Some(after) = route::read(leaf, &view.rollout, &target.routes) else { continue };
        let before = route::read(leaf, &view.rollout, &view.routes);
        let others = after.additional.iter().map(|(_, weight)| *weight);
        let weights: Vec<i64> = [after.canary, after.stable].into_iter().chain(others).collect();
        let total: i64 = weights.iter().sum();
        if total <= 0 || weights.iter().any(|weight| *weight < 0) {
            broken.push(Broken::Weights(format!("{weights:?}")));
            continue;
        }
        let needed = |weight: i64| (replicas.saturating_mul(weight) + total - 1).div_euclid(total);
        let new = view.sets.iter().find(|set| set.info.hash.as_str() == status.current_pod_hash);
        let available = new.map_or(0, |set| i64::from(set.info.available));
        let is_raised = after.canary > before.as_ref().map_or(0, |before| before.canary).max(recorded);
        let sure = if new.is_some_and(|set| has_been_seen(&set.object)) { available } else { 0 };
        if is_raised && (available == 0 || !is_given && sure < needed(after.canary)) {
            broken.push(Broken::Overloaded { weight: after.canary, available: sure, needed: needed(after.canary) });
        }
        let stable = view.sets.iter().find(|set| set.info.hash.as_str() == status.stable_rs);
        let is_given_back = before.as_ref().is_some_and(|before| after.stable > before.stable);
        if let Some(stable) = stable.filter(|_| is_given_back && !is_given) {
            // Those beyond its size are on their way out.
            let (all, size) = (i64::from(stable.info.available), size(&stable.object));
            let available = if has_been_seen(&stable.object) { all.min(size) } else { 0 };
            let needed = replicas.saturating_mul(after.stable).div_euclid(total);
            if available < needed {
                broken.push(Broken::Overloaded { weight: after.stable, available, needed });
            }
        }
        let leads = |name: &str| {
            let service = target.services.get(name)?;
            service.str_at(&["spec", "selector", label::POD_TEMPLATE_HASH]).map(str::to_owned)
        };
        for (name, weight) in [(&canary.stable_service, after.stable), (&canary.canary_service, after.canary)] {
            let Some(hash) = leads(name) else { continue };
            let Some(set) = view.sets.iter().find(|set| set.info.hash == hash) else { continue };
            let size = target.sets.get(&set.info.name).map_or(0, size);
            if size < i64::from(set.info.desired) && size < needed(weight) && !is_given {
                let set = set.info.name.to_string();
                broken.push(Broken::NotDrained { set, size, needed: needed(weight) });
            }
        }
        // A pass that does not touch routers leaves them to the next one.
        let is_over =
            status.stable_rs == status.current_pod_hash || status.abort && next.is_some_and(|next| next.abort);
        if is_over && next.is_some() && !target.routes.changed().is_empty() && !after.managed.is_empty() {
            broken.push(Broken::Leftover(after.managed.into_iter().collect::<Vec<_>>().join(", ")));
        }
    }
}

fn status(view: &View, verdict: &Verdict, broken: &mut Vec<Broken>) {
    let (old, Some(next)) = (&view.rollout.status, &verdict.status) else { return };
    for (field, was, is) in [
        ("stableRS", &old.stable_rs, &next.stable_rs),
        ("currentPodHash", &old.current_pod_hash, &next.current_pod_hash),
        ("selector", &old.selector, &next.selector),
    ] {
        if !was.is_empty() && is.is_empty() {
            broken.push(Broken::Forgotten(field));
        }
    }
    let is_observed = next.observed_generation == view.rollout.metadata.generation.to_string();
    // A pass that changes something else repeats what was said.
    if next.phase != "Healthy" || old.phase == next.phase || !is_observed {
        return;
    }
    let stable = view.sets.iter().find(|set| set.info.hash.as_str() == next.stable_rs);
    let available = stable.map_or(0, |set| i64::from(set.info.available));
    if next.stable_rs != next.current_pod_hash {
        broken.push(Broken::NotHealthy("another version is wanted than is stable"));
    } else if available < Bounds::of(&view.rollout).replicas {
        broken.push(Broken::NotHealthy("pods of the stable version are missing"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rollout::{Seen, decide, diff},
        value,
    };

    /// A canary of four pods at its first pause: three stable, one new, all available.
    fn seen(status: Value) -> Seen {
        let set = |hash: &str, revision: &str, size: i64| {
            value!({"metadata": {"name": format!("web-{hash}"), "namespace": "shop", "uid": hash,
                    "labels": {"app": "web", "rollouts-pod-template-hash": hash},
                    "annotations": {"rollout.argoproj.io/revision": revision, "rollout.argoproj.io/desired-replicas": "4"},
                    "creationTimestamp": format!("2026-01-01T00:00:0{revision}Z"),
                    "ownerReferences": [{"uid": "ro", "controller": true}]},
                "spec": {"replicas": size, "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": format!("app:{hash}")}]}}},
                "status": {"replicas": size, "readyReplicas": size, "availableReplicas": size}})
        };
        let mut rollout = value!({"metadata": {"name": "web", "namespace": "shop", "uid": "ro", "generation": 2},
            "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "app:b"}]}},
                "strategy": {"canary": {"maxUnavailable": 0, "maxSurge": 1, "steps": [{"setWeight": 25}, {"pause": {}}]}}},
            "status": {"currentPodHash": "b", "stableRS": "a", "currentStepIndex": 1, "selector": "app=web"}});
        for (key, value) in status.as_map().unwrap().iter() {
            rollout.set_at(&["status", key.as_str()], value.clone());
        }
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        Seen { now, rollout, sets: vec![set("a", "1", 3), set("b", "2", 1)], ..Seen::default() }
    }

    /// The rules that are broken when the verdict is changed like this.
    #[track_caller]
    fn check_with(status: Value, change: impl Fn(&mut Verdict), expected: &[&str]) {
        check_seen(&seen(status), change, expected);
    }

    #[track_caller]
    fn check_seen(seen: &Seen, change: impl Fn(&mut Verdict), expected: &[&str]) {
        let view = View::of(seen);
        let mut verdict = decide(&view);
        let first = check(&view, &verdict, &diff(&view, &verdict));
        assert_eq!(first, [], "what was decided is allowed");
        change(&mut verdict);
        let broken = check(&view, &verdict, &diff(&view, &verdict));
        assert_eq!(broken.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    /// The wanted world; what was seen if it is left as it is.
    fn wanted(verdict: &mut Verdict) -> &mut Target {
        let view = View::of(&seen(value!({})));
        verdict.target.get_or_insert_with(|| Target::of(&view))
    }

    fn resize(verdict: &mut Verdict, set: &str, size: i64) {
        wanted(verdict).sets.get_mut(set).unwrap().set_at(&["spec", "replicas"], size);
    }

    #[test]
    fn what_was_decided_is_allowed() {
        check_with(value!({}), |_| {}, &[]);
    }

    #[test]
    fn s5_s48_fields_of_others_are_refused() {
        let image = ["spec", "template", "spec", "priority"];
        check_with(
            value!({}),
            |verdict| wanted(verdict).sets.get_mut("web-a").unwrap().set_at(&image, 1),
            &["S5: spec.template.spec.priority of Set web-a is not ours to write"],
        );
        check_with(
            value!({}),
            |verdict| wanted(verdict).rollout.set_at(&["spec", "replicas"], 9),
            &["S5: spec.replicas of Rollout  is not ours to write"],
        );
    }

    #[test]
    fn s13_healthy_is_true() {
        let healthy = |verdict: &mut Verdict| {
            let status = verdict.status.as_mut().unwrap();
            (status.phase, status.observed_generation) = ("Healthy".into(), "2".into());
        };
        check_with(value!({}), healthy, &["S13: healthy, although another version is wanted than is stable"]);
    }

    #[test]
    fn s14_revisions_rise() {
        let create = |verdict: &mut Verdict| {
            let mut set = wanted(verdict).sets["web-a"].clone();
            set.set_at(&["metadata", "name"], "web-c");
            wanted(verdict).sets.insert("web-c".into(), set);
        };
        check_with(value!({}), create, &["S14: revision 1 would follow 2"]);
    }

    #[test]
    fn s16_s21_what_is_needed_stays() {
        let delete = |verdict: &mut Verdict| drop(wanted(verdict).sets.remove("web-a"));
        check_with(value!({}), delete, &["S16: web-a is still needed"]);
    }

    #[test]
    fn s20_s24_sizes_keep_within_what_is_promised() {
        check_with(
            value!({}),
            |verdict| resize(verdict, "web-a", 2),
            &["S20: 3 available pods would be left where 4 are needed"],
        );
        check_with(
            value!({}),
            |verdict| resize(verdict, "web-a", 5),
            &["S24: 5 is no size for web-a", "S20: 6 pods are more than the 5 allowed"],
        );
    }

    /// As if a ReplicaSet had been written to since its controller told of it.
    fn unseen(mut seen: Seen, set: usize) -> Seen {
        seen.sets[set].set_at(&["metadata", "generation"], 3);
        seen.sets[set].set_at(&["status", "observedGeneration"], 2);
        seen
    }

    #[test]
    fn s20_pods_that_may_be_on_their_way_out_are_not_counted_on() {
        let aborted = value!({"abort": true, "abortedAt": "2026-01-01T00:00:30Z", "currentStepIndex": 0});
        let mut seen = seen(aborted);
        for (set, field, count) in [(0, "replicas", 4), (0, "readyReplicas", 4), (0, "availableReplicas", 4)] {
            seen.sets[set].set_at(&["status", field], count);
        }
        seen.sets[0].set_at(&["spec", "replicas"], 4);
        let give_up = |verdict: &mut Verdict| resize(verdict, "web-b", 0);
        check_seen(&seen, give_up, &[]);
        check_seen(&unseen(seen, 0), give_up, &["S20: 0 available pods would be left where 4 are needed"]);
    }

    /// The same behind a load balancer: four pods stable, one new, a quarter of the traffic.
    fn routed(status: Value) -> Seen {
        let mut seen = seen(status);
        seen.rollout.set_at(
            &["spec", "strategy", "canary"],
            value!({"stableService": "stable", "canaryService": "canary", "steps": [{"setWeight": 25}, {"pause": {}}],
                "trafficRouting": {"managedRoutes": [{"name": "h"}], "alb": {"ingress": "ing", "servicePort": 80}}}),
        );
        let step_hash = View::of(&seen).step_hash.to_string();
        let weight = |weight: i64, service: &str, hash: &str| value!({"weight": weight, "serviceName": service, "podTemplateHash": hash});
        for (path, value) in [
            (&["status", "currentStepHash"][..], step_hash.into()),
            (&["status", "canary", "weights", "canary"], weight(25, "canary", "b")),
            (&["status", "canary", "weights", "stable"], weight(75, "stable", "a")),
        ] {
            seen.rollout.set_at(path, value);
        }
        for field in ["replicas", "readyReplicas", "availableReplicas"] {
            seen.sets[0].set_at(&["status", field], 4);
        }
        seen.sets[0].set_at(&["spec", "replicas"], 4);
        seen.services = [("stable", "a"), ("canary", "b")]
            .map(|(name, hash)| {
                value!({"metadata": {"name": name, "annotations": {annotation::MANAGED_BY: "web"}},
                    "spec": {"selector": {"app": "web", label::POD_TEMPLATE_HASH: hash}}})
            })
            .into();
        let path = value!({"backend": {"service": {"name": "stable", "port": {"name": "use-annotation"}}}});
        let object = value!({"metadata": {"name": "ing", "namespace": "shop"}, "spec": {"rules": [{"http": {"paths": [path]}}]}});
        seen.routes = vec![route::Routed { kind: route::Kind::Ingress, object }];
        let view = View::of(&seen);
        let mut routes = view.routes.clone();
        let step = route::Move::Weights { canary: 25, additional: &[] };
        route::write(route::Leaf::Alb, &view.rollout, &mut routes, step, &mut Vec::new()).unwrap();
        seen.routes[0].object = routes.iter().next().unwrap().1.clone();
        seen
    }

    /// Tells the router something else than was decided.
    fn tell(verdict: &mut Verdict, seen: &Seen, step: route::Move<'_>) {
        let view = View::of(seen);
        let target = verdict.target.get_or_insert_with(|| Target::of(&view));
        route::write(route::Leaf::Alb, &view.rollout, &mut target.routes, step, &mut Vec::new()).unwrap();
    }

    #[test]
    fn s17_s23_traffic_goes_to_pods_and_adds_up() {
        let seen = routed(value!({}));
        for (weight, expected) in [
            (0, None),
            (75, Some("S17: weight 75 needs 3 pods, 1 are available")),
            (130, Some("S23: [130, -30] are no weights")),
        ] {
            let step = route::Move::Weights { canary: weight, additional: &[] };
            check_seen(&seen, |verdict| tell(verdict, &seen, step), expected.as_slice());
        }
    }

    #[test]
    fn s17_traffic_goes_back_to_pods_that_can_be_counted_on() {
        let seen = routed(value!({}));
        let back = |seen: &Seen| {
            let seen = seen.clone();
            move |verdict: &mut Verdict| tell(verdict, &seen, route::Move::Weights { canary: 0, additional: &[] })
        };
        check_seen(&seen, back(&seen), &[]);
        let seen = unseen(seen, 0);
        check_seen(&seen, back(&seen), &["S17: weight 100 needs 4 pods, 0 are available"]);
    }

    #[test]
    fn s19_pods_stay_while_traffic_goes_to_them() {
        let seen = routed(value!({}));
        let shrink = |set: &'static str, size: i64| {
            let seen = seen.clone();
            move |verdict: &mut Verdict| {
                let target = verdict.target.get_or_insert_with(|| Target::of(&View::of(&seen)));
                target.sets.get_mut(set).unwrap().set_at(&["spec", "replicas"], size);
            }
        };
        check_seen(&seen, shrink("web-a", 3), &[]);
        check_seen(&seen, shrink("web-a", 2), &["S19: web-a would have 2 pods, its traffic needs 3"]);
        check_seen(&seen, shrink("web-b", 0), &["S19: web-b would have 0 pods, its traffic needs 1"]);
    }

    #[test]
    fn s27_routes_of_steps_end_with_their_update() {
        let aborted = value!({"abort": true, "abortedAt": "2026-01-01T00:00:30Z", "currentStepIndex": 0});
        let seen = routed(aborted);
        let matches = vec![crate::api::HeaderRoutingMatch { header_name: "a".into(), header_value: None }];
        let header = crate::api::SetHeaderRoute { name: "h".into(), r#match: matches };
        let left = |verdict: &mut Verdict| tell(verdict, &seen, route::Move::Header(&header));
        check_seen(&seen, left, &["S27: routes would be left over: h"]);
    }

    #[test]
    fn s30_nothing_aborted_grows() {
        let aborted = value!({"abort": true, "abortedAt": "2026-01-01T00:00:30Z", "currentStepIndex": 0});
        let grow = |verdict: &mut Verdict| {
            resize(verdict, "web-a", 3);
            resize(verdict, "web-b", 2);
        };
        check_with(aborted, grow, &["S30: web-b would grow after an abort"]);
    }

    #[test]
    fn s36_s50_status_goes_on() {
        let forget = |verdict: &mut Verdict| verdict.status.as_mut().unwrap().stable_rs.clear();
        check_with(value!({}), forget, &["S50: status would forget stableRS"]);
        let back = |verdict: &mut Verdict| verdict.status.as_mut().unwrap().current_step_index = Some(0);
        let same = value!({"currentStepHash": View::of(&seen(value!({}))).step_hash.as_str()});
        check_with(same, back, &["S36: step 1 would become 0"]);
    }
}
