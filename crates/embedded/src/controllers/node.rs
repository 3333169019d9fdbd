//! Nodes that are lost, come back or are deleted, and what becomes of their pods.
//!
//! A node is lost while it carries the annotation `embedded.tidegate.dev/lost: "true"`: its kubelet is silent. After 50 s
//! its condition `Ready` is `Unknown`, it is tainted `node.kubernetes.io/unreachable`, and its pods are not ready; when
//! their toleration ends (300 s unless they say otherwise) they are deleted, and stay `Terminating` until the node comes
//! back or goes. Pods of a node that is deleted are removed 40 s later. Any taint with the effect `NoExecute` evicts.
//!
//! There are no heartbeats and no leases; how long a node has been silent is forgotten on a restart, as upstream forgets it.

use std::{collections::HashMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use super::{
    Next, ask,
    hands::{Agent, Hands, Key, NODES, PODS},
    kubelet::{self, scheduler::tolerates, story},
};
use crate::kubernetes::{
    clock::rfc3339,
    object::Object,
    value::{Text, Value},
};
use crate::store::request::{Options, PatchType};

const COMPONENT: &str = "node-controller";
/// How long a node may be silent.
const GRACE: SignedDuration = SignedDuration::from_secs(50);
/// How long pods of a deleted node stay.
const QUARANTINE: SignedDuration = SignedDuration::from_secs(40);
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The server puts this one on every new node.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Since when nodes are silent or gone.
#[derive(Debug, Default, Clone)]
pub struct Memory(HashMap<Text, Timestamp>);

impl Memory {
    fn since(&mut self, node: &Text, now: Timestamp) -> Timestamp {
        *self.0.entry(node.clone()).or_insert(now)
    }
}

/// Looks at one node.
pub fn sync(hands: &mut Hands, memory: &mut Memory, key: &Key) -> Next {
    let now = hands.now();
    let Some(node) = hands.get(&NODES, key) else {
        return bury(hands, memory, key, now);
    };
    if story::is_set(&node.value, "lost") {
        let due = memory.since(&key.name, now).saturating_add(GRACE).unwrap_or(Timestamp::MAX);
        if now < due {
            return Next::At(due);
        }
        if lose(hands, &node, now).is_none() {
            return Next::Retry;
        }
    } else {
        memory.0.remove(&key.name);
        if find(hands, &node, now).is_none() {
            return Next::Retry;
        }
    }
    match hands.get(&NODES, key) {
        Some(node) => evict(hands, &node, now),
        None => Next::Idle,
    }
}

/// Shows that a node is silent. `None` if a write failed.
fn lose(hands: &mut Hands, node: &Arc<Object>, now: Timestamp) -> Option<()> {
    let known = ask::condition(&node.value, "Ready").and_then(|ready| ready.str_at(&["status"])) != Some("Unknown");
    if known {
        let mut conditions = node.value.list_at(&["status", "conditions"]).to_vec();
        let time = rfc3339(now);
        for condition in &mut conditions {
            condition.set_at(&["status"], "Unknown");
            condition.set_at(&["reason"], "NodeStatusUnknown");
            condition.set_at(&["message"], "Kubelet stopped posting node status.");
            condition.set_at(&["lastTransitionTime"], &time);
        }
        let status = map! {"conditions": conditions};
        hands.patch_status(&NODES, &Key::of(node), status).ok()?;
        let name = node.name();
        let message = format!("Node {name} status is now: NodeNotReady");
        hands.event(COMPONENT, node, "Normal", "NodeNotReady", message);
        for pod in pods_on(hands, &name).iter().filter(|pod| ask::is_ready(&pod.value)) {
            let condition = map! {
                "type": "Ready", "status": "False", "reason": kubelet::status::NODE_NOT_READY,
                "lastTransitionTime": &time,
            };
            let status = map! {"conditions": Value::list([condition])};
            hands.patch_status(&PODS, &Key::of(pod), status).ok()?;
            hands.event(COMPONENT, pod, "Warning", "NodeNotReady", "Node is not ready");
        }
    }
    set_taints(hands, node, true, now)
}

/// Shows that a node's kubelet posts its status. `None` if a write failed.
fn find(hands: &mut Hands, node: &Arc<Object>, now: Timestamp) -> Option<()> {
    let ready = ask::condition(&node.value, "Ready").and_then(|ready| ready.str_at(&["status"]));
    if matches!(ready, None | Some("Unknown")) {
        let agent = std::mem::replace(&mut hands.agent, Agent::Kubelet);
        let outcome = hands.patch_status(&NODES, &Key::of(node), kubelet::node_status(&node.value, now));
        hands.agent = agent;
        outcome.ok()?;
    }
    set_taints(hands, node, false, now)
}

/// Puts the taints of a silent node on it, or takes them off.
fn set_taints(hands: &mut Hands, node: &Object, silent: bool, now: Timestamp) -> Option<()> {
    let old = node.value.list_at(&["spec", "taints"]);
    let ours = |key: &str| old.iter().filter(|taint| taint.str_at(&["key"]) == Some(key)).count();
    if (ours(UNREACHABLE), ours(NOT_READY)) == (if silent { 2 } else { 0 }, 0) {
        return Some(());
    }
    let is_ours = |taint: &Value| matches!(taint.str_at(&["key"]), Some(UNREACHABLE | NOT_READY));
    let mut taints: Vec<Value> = old.iter().filter(|taint| !is_ours(taint)).cloned().collect();
    if silent {
        for effect in ["NoSchedule", "NoExecute"] {
            taints.push(map! {"key": UNREACHABLE, "effect": effect, "timeAdded": rfc3339(now)});
        }
    }
    let taints = if taints.is_empty() { Value::Null } else { taints.into() };
    let patch = map! {"spec": map! {"taints": taints}};
    hands.patch(PatchType::Strategic, &NODES, &Key::of(node), "", patch).ok().map(drop)
}

fn pods_on(hands: &Hands, node: &str) -> Vec<Arc<Object>> {
    hands.index.on_node(node).filter_map(|key| hands.get(&PODS, key)).collect()
}

/// Deletes the pods that do not tolerate a node's taints any longer.
fn evict(hands: &mut Hands, node: &Object, now: Timestamp) -> Next {
    let taints: Vec<Value> = node
        .value
        .list_at(&["spec", "taints"])
        .iter()
        .filter(|taint| taint.str_at(&["effect"]) == Some("NoExecute"))
        .cloned()
        .collect();
    if taints.is_empty() {
        return Next::Idle;
    }
    let mut wake: Option<Timestamp> = None;
    for pod in pods_on(hands, &node.name()).iter().filter(|pod| !pod.is_terminating()) {
        let Some(due) = evicted_at(&pod.value, &taints, now) else { continue };
        if now < due {
            wake = Some(wake.map_or(due, |first| first.min(due)));
            continue;
        }
        let message = format!("Marking for deletion Pod {}/{}", pod.namespace(), pod.name());
        hands.event("taint-eviction-controller", pod, "Normal", "TaintManagerEviction", message);
        disrupt(hands, pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", now);
        if hands.delete(&PODS, pod).is_err_and(|refused| refused.code != 404) {
            return Next::Retry;
        }
    }
    wake.map_or(Next::Idle, Next::At)
}

/// When a pod must leave a node with these taints; `None` if it may stay.
pub fn evicted_at(pod: &Value, taints: &[Value], now: Timestamp) -> Option<Timestamp> {
    let tolerations = pod.list_at(&["spec", "tolerations"]);
    let mut first: Option<Timestamp> = None;
    for taint in taints {
        let Some(toleration) = tolerations.iter().find(|toleration| tolerates(toleration, taint)) else {
            return Some(now);
        };
        let Some(seconds) = toleration.int_at(&["tolerationSeconds"]) else { continue };
        let since = ask::time(taint.get("timeAdded")).unwrap_or(now);
        let due = since.saturating_add(SignedDuration::from_secs(seconds.max(0))).unwrap_or(Timestamp::MAX);
        first = Some(first.map_or(due, |first| first.min(due)));
    }
    first
}

/// Says on a pod why it goes.
fn disrupt(hands: &mut Hands, pod: &Object, reason: &str, message: &str, now: Timestamp) {
    let condition = map! {
        "type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": rfc3339(now),
    };
    let _ = hands.patch_status(&PODS, &Key::of(pod), map! {"conditions": Value::list([condition])});
}

/// Removes the pods of a node that is gone.
fn bury(hands: &mut Hands, memory: &mut Memory, key: &Key, now: Timestamp) -> Next {
    let pods = pods_on(hands, &key.name);
    if pods.is_empty() {
        memory.0.remove(&key.name);
        return Next::Idle;
    }
    let due = memory.since(&key.name, now).saturating_add(QUARANTINE).unwrap_or(Timestamp::MAX);
    if now < due {
        return Next::At(due);
    }
    for pod in pods {
        if !ask::has_ended(&pod.value) {
            let message = "PodGC: node no longer exists";
            disrupt(hands, &pod, "DeletionByPodGC", message, now);
            let _ = hands.patch_status(&PODS, &Key::of(&pod), map! {"phase": "Failed"});
        }
        let options = Options { grace_period_seconds: Some(0), ..Options::default() };
        if hands.delete_with(&PODS, &pod, options).is_err_and(|refused| refused.code != 404) {
            return Next::Retry;
        }
    }
    Next::Idle
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn a_pod_leaves_when_its_shortest_toleration_ends() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let taint = value!({"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:09:00Z"});
        let other = value!({"key": "o", "effect": "NoExecute", "timeAdded": "2026-01-01T00:09:30Z"});
        let pod = |tolerations: Value| {
            let mut pod = value!({"spec": {}});
            pod.set_at(&["spec", "tolerations"], tolerations);
            pod
        };
        let leaves = |pod: Value, taints: &[&Value]| {
            let taints: Vec<Value> = taints.iter().map(|taint| (*taint).clone()).collect();
            evicted_at(&pod, &taints, now).map(|time| time.to_string())
        };
        let timed = value!([{"key": "k", "operator": "Exists", "tolerationSeconds": 300}, {"key": "o", "operator": "Exists", "tolerationSeconds": 60}]);
        let always = value!([{"operator": "Exists"}]);
        assert_eq!(leaves(pod(value!([])), &[&taint]), Some("2026-01-01T00:10:00Z".into()));
        assert_eq!(leaves(pod(timed.clone()), &[&taint]), Some("2026-01-01T00:14:00Z".into()));
        assert_eq!(leaves(pod(timed), &[&taint, &other]), Some("2026-01-01T00:10:30Z".into()));
        assert_eq!(leaves(pod(always), &[&taint, &other]), None);
    }
}
