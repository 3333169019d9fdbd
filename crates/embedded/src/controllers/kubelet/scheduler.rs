//! Chooses a node for a pod: of those that would take it, the one with the fewest pods.

use std::{collections::BTreeMap, sync::Arc};

use super::story;
use crate::controllers::{
    Next, Settings, ask,
    event::Source,
    hands::{Agent, Hands, Key, NODES, PODS},
};
use crate::kubernetes::{
    clock::rfc3339,
    object::Object,
    value::{Text, Value},
};

const SOURCE: Source<'_> = Source { component: "default-scheduler", host: "", field_path: "" };

/// Binds a pod to a node, or says why no node takes it. Changes of nodes bring the pod back here.
pub fn sync(hands: &mut Hands, settings: &Settings, pod: &Arc<Object>) -> Next {
    let spec = |field: &str| pod.value.at(&["spec", field]);
    let ours = spec("schedulerName").is_none_or(|name| *name == "default-scheduler");
    if !ours || !pod.value.list_at(&["spec", "schedulingGates"]).is_empty() {
        return Next::Idle;
    }
    let agent = std::mem::replace(&mut hands.agent, Agent::Scheduler);
    let candidates = hands.list(&NODES, "").map(|node| (node.clone(), hands.index.count_on_node(&node.name())));
    let next = match choose(&pod.value, candidates.collect(), |node| settings.hash(&format!("{}{node}", pod.uid()))) {
        Ok(node) => bind(hands, pod, &node),
        Err(why) => refuse(hands, pod, &why),
    };
    hands.agent = agent;
    next
}

fn bind(hands: &mut Hands, pod: &Arc<Object>, node: &str) -> Next {
    let (name, namespace) = (pod.name(), pod.namespace());
    let body = map! {
        "apiVersion": "v1", "kind": "Binding",
        "metadata": map! {"name": &name, "namespace": &namespace, "uid": pod.uid()},
        "target": map! {"apiVersion": "v1", "kind": "Node", "name": node},
    };
    match hands.post(&PODS, &Key::of(pod), "binding", body) {
        Ok(()) => {
            let message = format!("Successfully assigned {namespace}/{name} to {node}");
            hands.report(SOURCE, pod, "Normal", "Scheduled", message);
            Next::Idle
        }
        Err(refused) if matches!(refused.code, 404 | 409) => Next::Idle,
        Err(_) => Next::Retry,
    }
}

fn refuse(hands: &mut Hands, pod: &Arc<Object>, why: &str) -> Next {
    let old = ask::condition(&pod.value, "PodScheduled");
    if old.and_then(|old| old.str_at(&["message"])) == Some(why) {
        return Next::Idle;
    }
    let since = old
        .filter(|old| old.str_at(&["status"]) == Some("False"))
        .and_then(|old| old.str_at(&["lastTransitionTime"]))
        .map_or_else(|| rfc3339(hands.now()), Text::from);
    let status = crate::value!({"conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why, "lastProbeTime": null,
        "lastTransitionTime": since.as_str(),
    }]});
    if hands.patch_status(&PODS, &Key::of(pod), status).is_err() {
        return Next::Retry;
    }
    hands.report(SOURCE, pod, "Warning", "FailedScheduling", why);
    Next::Idle
}

/// The node a pod goes to, or why there is none. `nodes` come with the number of their pods; `draw` breaks ties.
pub fn choose(pod: &Value, nodes: Vec<(Arc<Object>, usize)>, draw: impl Fn(&str) -> u64) -> Result<Text, String> {
    let total = nodes.len();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let mut best: Option<((usize, u64), Text)> = None;
    for (node, pods) in nodes {
        match refusal(pod, &node.value) {
            Some(reason) => *reasons.entry(reason).or_default() += 1,
            None => {
                let name = node.name();
                let rank = (pods, draw(&name));
                if best.as_ref().is_none_or(|(least, _)| rank < *least) {
                    best = Some((rank, name));
                }
            }
        }
    }
    if let Some((_, name)) = best {
        return Ok(name);
    }
    if total == 0 {
        return Err("no nodes available to schedule pods".to_owned());
    }
    let list: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    Err(format!(
        "0/{total} nodes are available: {}. no new claims to deallocate, preemption: 0/{total} nodes are available: \
         {total} Preemption is not helpful for scheduling.",
        list.join(", ")
    ))
}

/// Why a node does not take a pod.
fn refusal(pod: &Value, node: &Value) -> Option<&'static str> {
    if story::is_set(pod, "unschedulable") {
        return Some("node(s) didn't match Pod's node affinity/selector");
    }
    if node.at(&["spec", "unschedulable"]).and_then(Value::as_bool) == Some(true) {
        return Some("node(s) were unschedulable");
    }
    let selector = pod.at(&["spec", "nodeSelector"]).and_then(Value::as_map);
    if !ask::has_labels(ask::labels(node), selector) {
        return Some("node(s) didn't match Pod's node affinity/selector");
    }
    let tolerations = pod.list_at(&["spec", "tolerations"]);
    let repels = |taint: &&Value| {
        matches!(taint.str_at(&["effect"]), Some("NoSchedule" | "NoExecute"))
            && !tolerations.iter().any(|toleration| tolerates(toleration, taint))
    };
    node.list_at(&["spec", "taints"]).iter().find(repels).map(|_| "node(s) had untolerated taint(s)")
}

/// Whether a toleration covers a taint.
pub fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let text = |tree: &Value, field: &str| tree.str_at(&[field]).unwrap_or_default().to_owned();
    let effect = text(toleration, "effect");
    let key = text(toleration, "key");
    let exists = text(toleration, "operator") == "Exists";
    (effect.is_empty() || effect == text(taint, "effect"))
        && (key.is_empty() && exists || key == text(taint, "key"))
        && (exists || text(toleration, "value") == text(taint, "value"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn node(name: &str, spec: Value) -> Arc<Object> {
        let mut value = value!({"metadata": {"name": name, "labels": {"zone": "a"}}});
        value.set_at(&["spec"], spec);
        Arc::new(Object { value, managers: Default::default() })
    }

    #[track_caller]
    fn check(pod: Value, nodes: Vec<(Arc<Object>, usize)>, chosen: Result<&str, &str>) {
        let name = choose(&pod, nodes, |name| name.len() as u64);
        assert_eq!(name.as_deref().map_err(|why| why.split(". no new").next().unwrap_or_default()), chosen);
    }

    #[test]
    fn the_emptiest_node_that_takes_a_pod_gets_it() {
        let free = |name| node(name, value!({}));
        let cordoned = node("c", value!({"unschedulable": true}));
        let tainted = node("t", value!({"taints": [{"key": "k", "effect": "NoExecute"}]}));
        check(value!({}), vec![(free("a"), 3), (free("b"), 2)], Ok("b"));
        check(value!({}), vec![(free("long"), 2), (free("b"), 2)], Ok("b"));
        check(value!({}), vec![(cordoned.clone(), 0), (free("b"), 9)], Ok("b"));
        check(value!({}), vec![], Err("no nodes available to schedule pods"));
        check(
            value!({}),
            vec![(cordoned.clone(), 0), (tainted.clone(), 0)],
            Err("0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable"),
        );
        check(value!({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}), vec![(tainted, 0)], Ok("t"));
        check(value!({"spec": {"nodeSelector": {"zone": "a"}}}), vec![(free("b"), 9)], Ok("b"));
        check(
            value!({"spec": {"nodeSelector": {"zone": "b"}}}),
            vec![(free("b"), 9)],
            Err("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"),
        );
        let told = value!({"metadata": {"annotations": {"embedded.tidegate.dev/unschedulable": "true"}}});
        check(
            told,
            vec![(free("b"), 0)],
            Err("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"),
        );
    }

    #[test]
    fn tolerations_cover_taints_as_upstream_matches_them() {
        let taint = value!({"key": "k", "value": "v", "effect": "NoExecute"});
        for (toleration, covers) in [
            (value!({"operator": "Exists"}), true),
            (value!({"key": "k", "operator": "Exists"}), true),
            (value!({"key": "k", "operator": "Equal", "value": "v"}), true),
            (value!({"key": "k", "value": "v"}), true),
            (value!({"key": "k", "value": "w"}), false),
            (value!({"key": "k", "operator": "Exists", "effect": "NoSchedule"}), false),
            (value!({}), false),
        ] {
            assert_eq!(tolerates(&toleration, &taint), covers, "{toleration}");
        }
    }
}
