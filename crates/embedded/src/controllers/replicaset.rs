//! ReplicaSets make pods, in upstream's order, and count them.
//!
//! The decisions ([`claim`], [`scale`], [`status`]) are functions of what was read; [`sync`] reads, asks them and writes.
//! Status counts the pods as they were before this pass created or deleted any, as upstream does: a new ReplicaSet shows
//! `replicas: 0` with its generation observed before it shows its pods.

use std::{cmp::Ordering, collections::HashMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use super::{
    Next,
    ask::{self, created_at, is_active, is_available, is_ready, ready_since},
    hands::{Hands, Key, PODS, REPLICA_SETS},
};
use crate::kubernetes::{
    clock::rfc3339,
    object::Object,
    selector::Labels,
    status::Status,
    value::{Text, Value},
};

/// The most pods one pass creates or deletes.
const BURST: usize = 500;
const COMPONENT: &str = "replicaset-controller";

/// Brings the pods of one ReplicaSet nearer to what it asks for, and its status up to date.
pub fn sync(hands: &mut Hands, key: &Key) -> Next {
    let Some(set) = hands.get(&REPLICA_SETS, key) else { return Next::Idle };
    let Ok(selector) = Labels::of(set.value.get("spec").and_then(|spec| spec.get("selector")).unwrap_or(&Value::Null))
    else {
        return Next::Idle;
    };
    let mut pods = hands.owned(&PODS, &set);
    pods.extend(hands.orphan_pods(&key.namespace));

    let mut active = Vec::new();
    for pod in pods.iter().filter(|pod| is_active(&pod.value)) {
        match claim(&set, &selector, pod) {
            Claim::Mine => active.push(pod.clone()),
            Claim::Adopt => match hands.adopt(&PODS, &set, pod, &[]) {
                Ok(()) => active.push(pod.clone()),
                Err(refused) if refused.code == 404 => {}
                Err(_) => return Next::Retry,
            },
            Claim::Release => {
                // 422 says that somebody else released it, or that it is another pod of that name now.
                if hands.release(&PODS, &set, pod, &[]).is_err_and(|refused| !matches!(refused.code, 404 | 422)) {
                    return Next::Retry;
                }
            }
            Claim::NotMine => {}
        }
    }
    let stopping = pods
        .iter()
        .filter(|pod| ask::is_stopping(&pod.value))
        .filter(|pod| ask::is_controlled_by(&pod.value, &set) && selector.matches(pod.labels()))
        .count();

    let failure = if set.is_terminating() { None } else { manage(hands, &set, &active) };
    let now = hands.now();
    let wanted = status(&set.value, &active, stopping, failure.as_deref(), now);
    if Some(&wanted) != set.value.get("status") && hands.update_status(&REPLICA_SETS, &set, wanted).is_err() {
        return Next::Retry;
    }
    match failure {
        Some(_) => Next::Retry,
        None => next_availability(&active, min_ready_seconds(&set.value), now).map_or(Next::Idle, Next::At),
    }
}

/// Creates or deletes pods; says what went wrong, if anything did.
fn manage(hands: &mut Hands, set: &Arc<Object>, active: &[Arc<Object>]) -> Option<String> {
    let related = || related_pods(hands, set);
    match scale(&set.value, active, related, hands.now()) {
        Scaling::Enough => None,
        Scaling::Create(count) => {
            let pod = pod_from_template(set);
            // Upstream tries one, then two, four … at once, and stops at the first batch with a failure. Failures here
            // are the same for every pod, so the first one tells.
            for _ in 0..count {
                match hands.create(&PODS, &set.namespace(), pod.clone()) {
                    Ok(made) => hands.event(
                        COMPONENT,
                        set,
                        "Normal",
                        "SuccessfulCreate",
                        format!("Created pod: {}", made.name()),
                    ),
                    Err(refused) if is_namespace_terminating(&refused) => {}
                    Err(refused) => {
                        hands.event(COMPONENT, set, "Warning", "FailedCreate", format!("Error creating: {refused}"));
                        return Some(refused.message);
                    }
                }
            }
            None
        }
        Scaling::Delete(doomed) => {
            let mut failure = None;
            for pod in doomed {
                match hands.delete(&PODS, &pod) {
                    Ok(()) => hands.event(
                        COMPONENT,
                        set,
                        "Normal",
                        "SuccessfulDelete",
                        format!("Deleted pod: {}", pod.name()),
                    ),
                    Err(refused) if refused.code == 404 => {}
                    Err(refused) => {
                        hands.event(COMPONENT, set, "Warning", "FailedDelete", format!("Error deleting: {refused}"));
                        failure.get_or_insert(format!("unable to delete pods: {refused}"));
                    }
                }
            }
            failure
        }
    }
}

/// Whether a creation failed only because the namespace is going away; nobody reports that.
pub fn is_namespace_terminating(refused: &Status) -> bool {
    refused.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == "NamespaceTerminating")
}

/// The pods of all ReplicaSets that have the same controller: those a node's crowdedness is judged by.
fn related_pods(hands: &Hands, set: &Object) -> Vec<Arc<Object>> {
    let Some(owner) = ask::controller_uid(&set.value) else { return Vec::new() };
    let mut seen = Vec::new();
    for sibling in hands.owned_by_uid(&REPLICA_SETS, owner) {
        seen.extend(hands.owned(&PODS, &sibling));
    }
    seen
}

/// What a ReplicaSet does about a pod it owns, or that nobody controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It is one of its replicas.
    Mine,
    /// An orphan that matches becomes one.
    Adopt,
    /// It no longer matches and is let go.
    Release,
    /// Somebody else's business.
    NotMine,
}

/// Decides whether an owner claims an object (a ReplicaSet a pod, a Deployment a ReplicaSet).
pub fn claim(owner: &Object, selector: &Labels, object: &Object) -> Claim {
    let matches = selector.matches(object.labels());
    match ask::controller_uid(&object.value) {
        Some(uid) if *uid != owner.uid() => Claim::NotMine,
        Some(_) if matches => Claim::Mine,
        Some(_) if owner.is_terminating() => Claim::NotMine,
        Some(_) => Claim::Release,
        None if !matches || owner.is_terminating() || object.is_terminating() => Claim::NotMine,
        None => Claim::Adopt,
    }
}

/// What is missing or too much.
#[derive(Debug, Clone, PartialEq)]
pub enum Scaling {
    /// Nothing.
    Enough,
    /// So many pods are missing.
    Create(usize),
    /// These go, in this order.
    Delete(Vec<Arc<Object>>),
}

/// Decides how many pods to create, or which to delete. `related` is asked only when some but not all are to go.
pub fn scale(
    set: &Value,
    active: &[Arc<Object>],
    related: impl FnOnce() -> Vec<Arc<Object>>,
    now: Timestamp,
) -> Scaling {
    let wanted = usize::try_from(replicas(set)).unwrap_or(0);
    match active.len().cmp(&wanted) {
        Ordering::Equal => Scaling::Enough,
        Ordering::Less => Scaling::Create((wanted - active.len()).min(BURST)),
        Ordering::Greater => {
            let count = (active.len() - wanted).min(BURST);
            let mut order = match count < active.len() {
                true => deletion_order(active, &related(), now),
                false => active.to_vec(),
            };
            order.truncate(count);
            Scaling::Delete(order)
        }
    }
}

/// `spec.replicas`; 1 if it is absent.
pub fn replicas(set: &Value) -> i64 {
    set.int_at(&["spec", "replicas"]).unwrap_or(1)
}

/// `spec.minReadySeconds`
pub fn min_ready_seconds(set: &Value) -> i64 {
    set.int_at(&["spec", "minReadySeconds"]).unwrap_or(0)
}

/// What decides which of two pods goes first, read once per pod.
struct Candidate {
    pod: Arc<Object>,
    assigned: bool,
    phase: u8,
    ready: bool,
    cost: i64,
    crowd: usize,
    ready_since: Option<Timestamp>,
    restarts: (i64, i64),
    created: Option<Timestamp>,
    uid: Text,
}

/// The pods in the order in which they are deleted: those that are least use first.
///
/// Unassigned, then pending, then not ready, then cheap by `controller.kubernetes.io/pod-deletion-cost`, then on a node
/// with many siblings, then ready for a short time, then restarted often, then young. Times are compared by the power of
/// two of their age and pods of one power by uid, so that equivalent pods go in a pseudo-random order.
pub fn deletion_order(active: &[Arc<Object>], related: &[Arc<Object>], now: Timestamp) -> Vec<Arc<Object>> {
    let mut crowds: HashMap<&str, usize> = HashMap::new();
    for pod in related.iter().filter(|pod| is_active(&pod.value)) {
        *crowds.entry(pod.value.str_at(&["spec", "nodeName"]).unwrap_or_default()).or_default() += 1;
    }
    let candidates = active.iter().map(|pod| {
        let value = &pod.value;
        let node = value.str_at(&["spec", "nodeName"]).unwrap_or_default();
        Candidate {
            pod: pod.clone(),
            assigned: !node.is_empty(),
            phase: match ask::phase(value) {
                "Pending" => 0,
                "Unknown" => 1,
                "Running" => 2,
                _ => 0,
            },
            ready: is_ready(value),
            cost: deletion_cost(value),
            crowd: crowds.get(node).copied().unwrap_or(0),
            ready_since: ready_since(value),
            restarts: ask::restarts(value),
            created: created_at(value),
            uid: pod.uid(),
        }
    });
    let ordered = merge_sort(candidates.collect(), &|a, b| goes_before(a, b, now));
    ordered.into_iter().map(|candidate| candidate.pod).collect()
}

/// `controller.kubernetes.io/pod-deletion-cost`: a 32-bit integer that begins with neither `+` nor a needless `0`;
/// anything else is 0.
fn deletion_cost(pod: &Value) -> i64 {
    let Some(text) = ask::annotation(pod, "controller.kubernetes.io/pod-deletion-cost") else { return 0 };
    let plain = text == "0" || text.starts_with(|c: char| c == '-' || ('1'..='9').contains(&c));
    text.parse::<i32>().ok().filter(|_| plain).unwrap_or(0).into()
}

fn goes_before(a: &Candidate, b: &Candidate, now: Timestamp) -> bool {
    if a.assigned != b.assigned {
        return !a.assigned;
    }
    if a.phase != b.phase {
        return a.phase < b.phase;
    }
    if a.ready != b.ready {
        return !a.ready;
    }
    if a.cost != b.cost {
        return a.cost < b.cost;
    }
    if a.crowd != b.crowd {
        return a.crowd > b.crowd;
    }
    if a.ready && a.ready_since != b.ready_since {
        return younger(a.ready_since, b.ready_since, a, b, now);
    }
    if a.restarts.0 != b.restarts.0 {
        return a.restarts.0 > b.restarts.0;
    }
    if a.restarts.1 != b.restarts.1 {
        return a.restarts.1 > b.restarts.1;
    }
    if a.created != b.created {
        return younger(a.created, b.created, a, b, now);
    }
    false
}

/// Whether the first of two different times is younger by a power of two; a missing time is the youngest.
fn younger(first: Option<Timestamp>, second: Option<Timestamp>, a: &Candidate, b: &Candidate, now: Timestamp) -> bool {
    let (Some(first), Some(second)) = (first, second) else { return first.is_none() };
    match age_rank(first, now).cmp(&age_rank(second, now)) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => a.uid < b.uid,
    }
}

/// The power of two of an age in nanoseconds; -1 for none.
fn age_rank(time: Timestamp, now: Timestamp) -> i32 {
    let age = now.duration_since(time).as_nanos();
    if age > 0 { age.ilog2() as i32 } else { -1 }
}

/// Sorts by an order that need not be consistent: upstream's is not (equal times look at restarts, near ones at uids),
/// and the standard library may panic on such.
fn merge_sort<T>(mut items: Vec<T>, before: &impl Fn(&T, &T) -> bool) -> Vec<T> {
    if items.len() < 2 {
        return items;
    }
    let right = merge_sort(items.split_off(items.len() / 2), before);
    let left = merge_sort(items, before);
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if before(b, a) { right.next() } else { left.next() };
        out.extend(next);
    }
    out.extend(left);
    out.extend(right);
    out
}

/// The status a ReplicaSet should show: the old one with new counts, generation and `ReplicaFailure`.
pub fn status(set: &Value, active: &[Arc<Object>], stopping: usize, failure: Option<&str>, now: Timestamp) -> Value {
    let template = set.at(&["spec", "template"]).and_then(ask::labels);
    let min_ready_seconds = min_ready_seconds(set);
    let count = |holds: &dyn Fn(&Object) -> bool| active.iter().filter(|pod| holds(pod)).count();
    let mut status = set.get("status").cloned().unwrap_or_else(Value::object);
    for (field, count) in [
        ("fullyLabeledReplicas", count(&|pod| ask::has_labels(pod.labels(), template))),
        ("readyReplicas", count(&|pod| is_ready(&pod.value))),
        ("availableReplicas", count(&|pod| is_available(&pod.value, min_ready_seconds, now))),
    ] {
        // These are `omitempty`: none is not shown.
        match count {
            0 => drop(status.remove_at(&[field])),
            count => set_int(&mut status, field, count as i64),
        }
    }
    set_int(&mut status, "replicas", active.len() as i64);
    set_int(&mut status, "terminatingReplicas", stopping as i64);
    set_int(&mut status, "observedGeneration", set.int_at(&["metadata", "generation"]).unwrap_or(0));

    let shown = ask::condition(set, "ReplicaFailure").is_some();
    match failure {
        Some(why) if !shown => {
            let too_few = (active.len() as i64) < replicas(set);
            let mut conditions = status.list_at(&["conditions"]).to_vec();
            conditions.push(crate::value!({
                "type": "ReplicaFailure", "status": "True", "lastTransitionTime": rfc3339(now).as_str(),
                "reason": if too_few { "FailedCreate" } else { "FailedDelete" }, "message": why,
            }));
            status.set_at(&["conditions"], conditions);
        }
        None if shown => {
            let mut conditions = status.list_at(&["conditions"]).to_vec();
            conditions.retain(|condition| condition.str_at(&["type"]) != Some("ReplicaFailure"));
            match conditions.is_empty() {
                true => drop(status.remove_at(&["conditions"])),
                false => status.set_at(&["conditions"], conditions),
            }
        }
        Some(_) | None => {}
    }
    status
}

/// Sets an integer field, copying nothing if it holds it already.
pub fn set_int(tree: &mut Value, field: &str, n: i64) {
    if tree.int_at(&[field]) != Some(n) {
        tree.set_at(&[field], n);
    }
}

/// When the next ready pod becomes available.
pub fn next_availability(active: &[Arc<Object>], min_ready_seconds: i64, now: Timestamp) -> Option<Timestamp> {
    active.iter().filter_map(|pod| ask::available_at(&pod.value, min_ready_seconds)).filter(|at| *at > now).min()
}

/// A pod made from the `spec.template` of a ReplicaSet or Job, controlled by it.
pub fn pod_from_template(owner: &Object) -> Value {
    let template = owner.value.at(&["spec", "template"]).cloned().unwrap_or_default();
    let mut metadata = Value::object();
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(given) = template.at(&["metadata", field]) {
            metadata.set_at(&[field], given);
        }
    }
    metadata.set_at(&["generateName"], pod_name_prefix(&owner.name()));
    metadata.set_at(&["ownerReferences"], Value::list([controller_reference(owner)]));
    let mut pod = Value::object();
    pod.set_at(&["apiVersion"], "v1");
    pod.set_at(&["kind"], "Pod");
    pod.set_at(&["metadata"], metadata);
    pod.set_at(&["spec"], template.get("spec").cloned().unwrap_or_default());
    pod
}

/// `web-`, or without the dash where that would be too long for a name.
fn pod_name_prefix(owner: &str) -> String {
    if owner.len() < 253 { format!("{owner}-") } else { owner.to_owned() }
}

/// The owner reference of what an object controls.
pub fn controller_reference(owner: &Object) -> Value {
    let text = |field| owner.value.get(field).cloned().unwrap_or_default();
    map! {
        "apiVersion": text("apiVersion"), "blockOwnerDeletion": true, "controller": true, "kind": text("kind"),
        "name": owner.name(), "uid": owner.uid(),
    }
}

/// The time `seconds` after `time`.
pub fn after(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn object(value: Value) -> Arc<Object> {
        Arc::new(Object { value, managers: Default::default() })
    }

    fn now() -> Timestamp {
        "2026-01-01T01:00:00Z".parse().unwrap()
    }

    /// A running, ready pod on node `n`, with changes.
    fn pod(name: &str, changes: &[(&[&str], Value)]) -> Arc<Object> {
        let mut pod = value!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"}},
            "spec": {"nodeName": "n"},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        });
        for (path, value) in changes {
            pod.set_at(path, value);
        }
        object(pod)
    }

    fn ready(status: &str, since: &str) -> Value {
        value!([{"type": "Ready", "status": status, "lastTransitionTime": since}])
    }

    #[test]
    fn the_least_useful_pod_goes_first() {
        let cost = |cost: &str| value!({"controller.kubernetes.io/pod-deletion-cost": cost});
        let conditions: &[&str] = &["status", "conditions"];
        // In each row the first goes before the second, whatever their names.
        let rows = [
            (pod("b", &[(&["spec", "nodeName"], "".into())]), pod("a", &[(&["status", "phase"], "Pending".into())])),
            (
                pod("b", &[(&["status", "phase"], "Pending".into())]),
                pod("a", &[(&["status", "phase"], "Unknown".into())]),
            ),
            (pod("b", &[(conditions, ready("False", "2026-01-01T00:00:00Z"))]), pod("a", &[])),
            (pod("b", &[(&["metadata", "annotations"], cost("-5"))]), pod("a", &[])),
            (pod("b", &[]), pod("a", &[(&["metadata", "annotations"], cost("10"))])),
            (pod("b", &[(conditions, ready("True", "2026-01-01T00:59:00Z"))]), pod("a", &[])),
            (pod("b", &[(&["status", "containerStatuses"], value!([{"restartCount": 3}]))]), pod("a", &[])),
            (pod("b", &[(&["metadata", "creationTimestamp"], "2026-01-01T00:59:00Z".into())]), pod("a", &[])),
            // 50 and 60 minutes are the same power of two: the uid decides.
            (pod("a", &[]), pod("b", &[(conditions, ready("True", "2026-01-01T00:10:00Z"))])),
        ];
        for (first, second) in rows {
            for pair in [[first.clone(), second.clone()], [second.clone(), first.clone()]] {
                assert_eq!(deletion_order(&pair, &[], now())[0].value, first.value);
            }
        }
    }

    #[test]
    fn a_cost_that_is_no_plain_number_counts_nothing() {
        for (text, cost) in
            [("5", 5), ("-5", -5), ("0", 0), ("+5", 0), ("05", 0), ("-05", -5), ("x", 0), ("99999999999", 0)]
        {
            let annotations = value!({"controller.kubernetes.io/pod-deletion-cost": text});
            assert_eq!(deletion_cost(&pod("a", &[(&["metadata", "annotations"], annotations)]).value), cost, "{text}");
        }
    }

    #[test]
    fn pods_on_crowded_nodes_go_first() {
        let on = |name: &str, node: &str| pod(name, &[(&["spec", "nodeName"], node.into())]);
        let pods = [on("a", "m"), on("b", "n"), on("c", "n")];
        let order = deletion_order(&pods, &pods, now());
        assert_eq!(order[2].name(), "a");
    }

    #[test]
    fn the_order_is_defined_for_any_mix() {
        // Upstream's order is not transitive; whatever comes of it, nothing panics and nothing is lost.
        let minute = |n: usize| format!("2026-01-01T00:{:02}:00Z", n * 7 % 60);
        let pods: Vec<_> = (0..200)
            .map(|n| {
                let restarts = value!([{"restartCount": n * 13 % 5}]);
                let conditions = ready("True", &minute(n % 9));
                pod(
                    &format!("p{}", n * 37 % 200),
                    &[(&["status", "conditions"], conditions), (&["status", "containerStatuses"], restarts)],
                )
            })
            .collect();
        let mut names: Vec<_> = deletion_order(&pods, &[], now()).iter().map(|pod| pod.name()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 200);
    }

    fn set(replicas: i64, status: Value) -> Value {
        let mut set = value!({"metadata": {"uid": "u", "generation": 3}, "spec": {
            "minReadySeconds": 10, "template": {"metadata": {"labels": {"app": "web", "x": "y"}}}}});
        set.set_at(&["spec", "replicas"], replicas);
        set.set_at(&["status"], status);
        set
    }

    #[test]
    fn what_is_missing_is_made_and_what_is_too_much_goes() {
        let pods = [pod("a", &[]), pod("b", &[(&["status", "phase"], "Pending".into())])];
        let none = Vec::new;
        assert_eq!(scale(&set(2, value!({})), &pods, none, now()), Scaling::Enough);
        assert_eq!(scale(&set(5, value!({})), &pods, none, now()), Scaling::Create(3));
        assert_eq!(scale(&set(5000, value!({})), &pods, none, now()), Scaling::Create(500));
        assert_eq!(scale(&set(1, value!({})), &pods, none, now()), Scaling::Delete(vec![pods[1].clone()]));
        assert_eq!(scale(&set(0, value!({})), &pods, none, now()), Scaling::Delete(pods.to_vec()));
    }

    #[test]
    fn status_counts_labelled_ready_and_available_pods() {
        let labels: &[&str] = &["metadata", "labels"];
        let full = value!({"app": "web", "x": "y", "more": "z"});
        let pods = [
            pod("a", &[(labels, full)]),
            pod("b", &[(&["status", "conditions"], ready("True", "2026-01-01T00:59:55Z"))]),
            pod("c", &[(&["status", "conditions"], ready("False", "2026-01-01T00:00:00Z"))]),
        ];
        assert_eq!(
            status(&set(3, value!({"availableReplicas": 9})), &pods, 2, None, now()),
            value!({"replicas": 3, "fullyLabeledReplicas": 1, "readyReplicas": 2, "availableReplicas": 1,
                "terminatingReplicas": 2, "observedGeneration": 3})
        );
        assert_eq!(next_availability(&pods, 10, now()).map(|at| at.to_string()), Some("2026-01-01T01:00:05Z".into()));
    }

    #[test]
    fn a_failure_is_shown_until_it_is_over() {
        let failed = status(&set(3, value!({})), &[], 0, Some("no quota"), now());
        assert_eq!(
            failed.get("conditions"),
            Some(
                &value!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no quota",
                "lastTransitionTime": "2026-01-01T01:00:00Z"}])
            )
        );
        let same = status(&set(3, failed.clone()), &[], 0, Some("still no quota"), now());
        assert_eq!(same.get("conditions"), failed.get("conditions"));
        assert_eq!(status(&set(3, failed), &[], 0, None, now()).get("conditions"), None);
    }

    #[test]
    fn an_owner_claims_what_matches_and_is_free() {
        let selector = Labels::of(&value!({"matchLabels": {"app": "web"}})).unwrap();
        let owner = |terminating: bool| {
            let mut owner = value!({"metadata": {"uid": "u"}});
            if terminating {
                owner.set_at(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z");
            }
            object(owner)
        };
        let owned = |uid: &str| value!([{"uid": uid, "controller": true}]);
        let references: &[&str] = &["metadata", "ownerReferences"];
        let other: (&[&str], Value) = (&["metadata", "labels"], value!({"app": "other"}));
        let leaving: (&[&str], Value) = (&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into());
        for (terminating, pod, expected) in [
            (false, pod("a", &[(references, owned("u"))]), Claim::Mine),
            (false, pod("a", &[(references, owned("u")), other.clone()]), Claim::Release),
            (true, pod("a", &[(references, owned("u")), other.clone()]), Claim::NotMine),
            (false, pod("a", &[(references, owned("v"))]), Claim::NotMine),
            (false, pod("a", &[]), Claim::Adopt),
            (true, pod("a", &[]), Claim::NotMine),
            (false, pod("a", &[leaving]), Claim::NotMine),
            (false, pod("a", &[other]), Claim::NotMine),
        ] {
            assert_eq!(claim(&owner(terminating), &selector, &pod), expected, "{}", pod.value);
        }
    }
}
