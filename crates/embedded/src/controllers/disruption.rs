//! Keeps the status of PodDisruptionBudgets: the reading and writing around [`pdb`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Next, ask,
    ask::Round,
    hands::{BUDGETS, DEPLOYMENTS, Hands, Key, REPLICA_SETS},
    pdb::{self, Expected, go_selector},
    replicaset::replicas,
};
use crate::kubernetes::{
    object::Object,
    value::{Text, Value},
};

const COMPONENT: &str = "controllermanager";

/// Brings a budget's status up to date.
pub fn sync(hands: &mut Hands, key: &Key) -> Next {
    let Some(budget) = hands.get(&BUDGETS, key) else { return Next::Idle };
    let pods = hands.matching_pods(&key.namespace, &pdb::selector(&budget.value));
    if pods.is_empty() {
        hands.event(COMPONENT, &budget, "Normal", "NoPods", "No matching pods found");
    }
    let now = hands.now();
    let count = expected(hands, &budget.value, &pods);
    if let Ok(Expected { unmanaged: true, .. }) = &count {
        let message = format!(
            "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of the \
             PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \
             \".spec.minAvailable\" field of the PDB to an integer value.",
            go_selector(budget.value.at(&["spec", "selector"]))
        );
        hands.event(COMPONENT, &budget, "Warning", "UnmanagedPods", message);
    }
    let (status, recheck) = match &count {
        Ok(count) => pdb::status(&budget.value, count, &pods, now),
        Err(why) => {
            let message = format!("Failed to calculate the number of expected pods: {why}");
            hands.event(COMPONENT, &budget, "Warning", "CalculateExpectedPodCountFailed", message);
            (pdb::failed(&budget.value, why, now), None)
        }
    };
    if Some(&status) != budget.value.get("status") && hands.update_status(&BUDGETS, &budget, status).is_err() {
        return Next::Retry;
    }
    recheck.map_or(Next::Idle, Next::At)
}

fn expected(hands: &mut Hands, budget: &Value, pods: &[Arc<Object>]) -> Result<Expected, String> {
    let spec = |field: &str| budget.at(&["spec", field]).filter(|value| !value.is_null());
    if let Some(most) = spec("maxUnavailable") {
        let (total, unmanaged) = expected_scale(hands, pods)?;
        let unavailable = ask::scaled(most, total, Round::Up).ok_or_else(|| invalid_percent(most))?;
        return Ok(Expected { pods: total, healthy: (total - unavailable).max(0), unmanaged });
    }
    match spec("minAvailable") {
        None => Ok(Expected { pods: 0, healthy: 0, unmanaged: false }),
        Some(least) => match least.as_int() {
            Some(count) => Ok(Expected { pods: pods.len() as i64, healthy: count, unmanaged: false }),
            None => {
                let (total, unmanaged) = expected_scale(hands, pods)?;
                let healthy = ask::scaled(least, total, Round::Up).ok_or_else(|| invalid_percent(least))?;
                Ok(Expected { pods: total, healthy, unmanaged })
            }
        },
    }
}

fn invalid_percent(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    format!("invalid value for IntOrString: invalid type: strconv.Atoi: parsing \"{text}\": invalid syntax")
}

/// The sum of the scales of all controllers of these pods, and whether some pods have none.
fn expected_scale(hands: &mut Hands, pods: &[Arc<Object>]) -> Result<(i64, bool), String> {
    let mut scales: BTreeMap<Text, i64> = BTreeMap::new();
    let mut asked: BTreeSet<Text> = BTreeSet::new();
    let mut unmanaged = false;
    for pod in pods {
        let Some(owner) = ask::controller_of(&pod.value) else {
            unmanaged = true;
            continue;
        };
        let uid = owner.get("uid").and_then(Value::as_text).cloned().unwrap_or_default();
        if !asked.insert(uid) {
            continue;
        }
        match scale_of(hands, owner, &pod.namespace())? {
            Some((uid, scale)) => drop(scales.insert(uid, scale)),
            None => return Err(format!("found no controllers for pod \"{}\"", pod.name())),
        }
    }
    Ok((scales.values().sum(), unmanaged))
}

/// The uid and scale of the controller behind an owner reference: the Deployment of a ReplicaSet, else the owner itself.
fn scale_of(hands: &mut Hands, owner: &Value, namespace: &Text) -> Result<Option<(Text, i64)>, String> {
    let text = |tree: &Value, field: &str| tree.get(field).and_then(Value::as_text).cloned().unwrap_or_default();
    let key = |owner: &Value| Key { namespace: namespace.clone(), name: text(owner, "name") };
    let is = |owner: &Value, kind: &str| text(owner, "kind") == kind && text(owner, "apiVersion").starts_with("apps/");
    if is(owner, "ReplicaSet") {
        let same = |object: &Arc<Object>, owner: &Value| object.uid() == text(owner, "uid");
        let Some(set) = hands.get(&REPLICA_SETS, &key(owner)).filter(|set| same(set, owner)) else { return Ok(None) };
        let Some(above) = ask::controller_of(&set.value).filter(|above| is(above, "Deployment")) else {
            return Ok(Some((set.uid(), replicas(&set.value))));
        };
        let found = hands.get(&DEPLOYMENTS, &key(above)).filter(|deployment| same(deployment, above));
        return Ok(found.map(|deployment| (deployment.uid(), replicas(&deployment.value))));
    }
    let scale = hands.scale(&text(owner, "apiVersion"), &text(owner, "kind"), &key(owner))?;
    let Some(scale) = scale.filter(|scale| scale.str_at(&["metadata", "uid"]) == Some(&text(owner, "uid"))) else {
        return Ok(None);
    };
    Ok(Some((text(owner, "uid"), scale.int_at(&["spec", "replicas"]).unwrap_or(0))))
}
