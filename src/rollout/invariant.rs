//! What must never happen, whatever was decided: an independent judge.
//!
//! Runs on every verdict, in production too. Shares no function with the decision, so that one mistake cannot hide in
//! both; reads only what was seen, what is wanted and what would be written. Never repairs: who breaks a rule is refused.

use std::fmt;

use super::{
    diff::{Action, Subject},
    target::{Target, Verdict},
    view::View,
};
use crate::{
    api::constants::label,
    kubernetes::{object, value::Value},
    model::limits,
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
        available: i32,
        /// How many are needed.
        needed: i32,
    },
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
            Broken::NotOurs(set) => write!(f, "S15: {set} belongs to somebody else"),
            Broken::TooMany { pods, most } => write!(f, "S20: {pods} pods are more than the {most} allowed"),
            Broken::StableGone(set) => write!(f, "S21: {set} is stable and still has users"),
            Broken::Size { set, size } => write!(f, "S24: {size} is no size for {set}"),
            Broken::NotAvailable { service, available, needed } => {
                write!(f, "S26: {service} would lead to {available} available pods where {needed} are needed")
            }
            Broken::StepBack { from, to } => write!(f, "S36: step {from} would become {to}"),
        }
    }
}

/// The rules that a verdict would break; none is the rule.
pub fn check(view: &View, verdict: &Verdict, actions: &[Action]) -> Vec<Broken> {
    let mut broken = Vec::new();
    ownership(view, actions, &mut broken);
    sizes(view, verdict, &mut broken);
    switch(view, verdict, &mut broken);
    steps(view, verdict, &mut broken);
    broken
}

fn size(set: &Value) -> i64 {
    set.int_at(&["spec", "replicas"]).unwrap_or(1)
}

fn ownership(view: &View, actions: &[Action], broken: &mut Vec<Broken>) {
    let uid = view.rollout.metadata.uid.as_str();
    let seen = view.sets.iter().map(|set| &set.object).chain(&view.orphans).chain(&view.strangers);
    let seen: Vec<&Value> = seen.collect();
    for action in actions {
        let name = match action {
            Action::Patch { object: Subject::Set, name, .. } | Action::DeleteSet { name, .. } => name,
            Action::CreateSet { .. } | Action::Patch { .. } | Action::Evict { .. } => continue,
        };
        let set = seen.iter().find(|set| set.str_at(&["metadata", "name"]) == Some(name.as_str()));
        let owner = set.and_then(|set| object::controller(set));
        // One that nobody has may be adopted.
        if set.is_none() || owner.is_some_and(|owner| owner.as_str() != uid) {
            broken.push(Broken::NotOurs(name.to_string()));
        }
    }
}

fn sizes(view: &View, verdict: &Verdict, broken: &mut Vec<Broken>) {
    let replicas = i64::from(limits::replicas(&view.rollout));
    let Some(Target { sets, .. }) = &verdict.target else { return };
    let changed = view.sets.iter().filter_map(|set| {
        let wanted = size(sets.get(&set.info.name)?);
        (wanted != i64::from(set.info.desired)).then_some((set, wanted))
    });
    let changed: Vec<_> = changed.collect();
    for (set, wanted) in &changed {
        if *wanted < 0 || *wanted > replicas.max(i64::from(set.info.desired)) {
            broken.push(Broken::Size { set: set.info.name.to_string(), size: *wanted });
        }
    }
    let Some(canary) = view.rollout.spec.strategy.canary.as_ref().filter(|canary| canary.traffic_routing.is_none())
    else {
        return;
    };
    let most = replicas + i64::from(limits::max_surge(&view.rollout));
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
        if is_stable && *wanted == 0 && replicas > 1 && (!all_given || status.abort) {
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
    let goes_back = view.rollout.status.abort && wanted == view.rollout.status.stable_rs;
    if wanted == before || goes_back {
        return;
    }
    let available = view.sets.iter().find(|set| set.info.hash == wanted).map_or(0, |set| set.info.available);
    let needed = limits::replicas(&view.rollout);
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
