//! EndpointSlices: which pods stand behind a Service, and whether they take traffic.
//!
//! [`plan`] says which slices to create, update and delete; [`sync`] does it. Slices hold up to 100 endpoints; one that
//! must go is turned into one that must come, as upstream does, and a Service without pods keeps an empty one.
//!
//! Pods have IPv4 addresses only; hints and topology are not played, and no Endpoints objects are made: they are
//! deprecated.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use jiff::Timestamp;

use super::{
    Next, ask,
    hands::{ENDPOINT_SLICES, Hands, Key, NODES, SERVICES},
    replicaset::controller_reference,
};
use crate::kubernetes::{
    object::Object,
    selector::Labels,
    value::{Map, Text, Value},
};

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const SLICE_LIMIT: usize = 100;

/// What made a Service's slices change last, by its uid. After a restart everything counts as new.
#[derive(Debug, Default, Clone)]
pub struct Memory(HashMap<Text, Triggers>);

#[derive(Debug, Default, Clone)]
struct Triggers {
    service: Option<Timestamp>,
    pods: HashMap<Text, Timestamp>,
}

impl Memory {
    /// Forgets a Service that is gone.
    pub fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }

    /// The first time among what changed since the last time this was asked.
    fn trigger(&mut self, service: &Object, pods: &[Arc<Object>]) -> Option<Timestamp> {
        let old = self.0.remove(&service.uid()).unwrap_or_default();
        let created = ask::created_at(&service.value);
        let mut first = created.filter(|time| old.service.is_none_or(|known| *time > known));
        let mut new = Triggers { service: created, pods: HashMap::new() };
        for pod in pods {
            let ready =
                ask::condition(&pod.value, "Ready").and_then(|ready| ask::time(ready.get("lastTransitionTime")));
            let Some(time) = ready else { continue };
            if old.pods.get(&pod.name()).is_none_or(|known| time > *known) {
                first = Some(first.map_or(time, |first| first.min(time)));
            }
            new.pods.insert(pod.name(), time);
        }
        self.0.insert(service.uid(), new);
        first
    }
}

/// Brings the slices of one Service up to date.
pub fn sync(hands: &mut Hands, memory: &mut Memory, key: &Key) -> Next {
    let Some(service) = hands.get(&SERVICES, key) else { return Next::Idle };
    let selector = service.value.at(&["spec", "selector"]).and_then(Value::as_map);
    let Some(selector) = selector.filter(|selector| !selector.is_empty()) else { return Next::Idle };
    if service.value.str_at(&["spec", "type"]) == Some("ExternalName") {
        return Next::Idle;
    }
    let pods = hands.matching_pods(&key.namespace, &Labels::of_map(Some(selector)));
    let ours =
        |slice: &Arc<Object>| slice.labels().is_some_and(|labels| labels.get(MANAGED_BY) == Some(&MANAGER.into()));
    let existing: Vec<Arc<Object>> = hands
        .owned(&ENDPOINT_SLICES, &service)
        .into_iter()
        .filter(|slice| ours(slice) && !slice.is_terminating())
        .collect();
    let zone = |node: &str| {
        let node = hands.get(&NODES, &Key { namespace: Text::new(), name: node.into() })?;
        Some(node.labels().and_then(|labels| labels.get("topology.kubernetes.io/zone")?.as_text().cloned()))
    };
    let mut plan = plan(&service, &pods, &existing, zone);
    if plan.is_empty() {
        return Next::Idle;
    }
    let trigger = memory.trigger(&service, &pods);
    for slice in plan.create.iter_mut().chain(&mut plan.update) {
        match trigger {
            Some(time) => slice.set_at(&["metadata", "annotations", TRIGGER], time.to_string()),
            None => drop(slice.remove_at(&["metadata", "annotations", TRIGGER])),
        }
    }
    let mut failed = false;
    for slice in plan.create {
        failed |= hands
            .create(&ENDPOINT_SLICES, &key.namespace, slice)
            .is_err_and(|refused| !super::replicaset::is_namespace_terminating(&refused));
    }
    for slice in plan.update {
        failed |= hands.update(&ENDPOINT_SLICES, slice).is_err();
    }
    for slice in plan.delete {
        failed |= hands.delete(&ENDPOINT_SLICES, &slice).is_err_and(|refused| refused.code != 404);
    }
    if failed { Next::Retry } else { Next::Idle }
}

/// What is to be done about a Service's slices.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// New slices.
    pub create: Vec<Value>,
    /// Slices as they should be.
    pub update: Vec<Value>,
    /// Slices that go.
    pub delete: Vec<Arc<Object>>,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.create.is_empty() && self.update.is_empty() && self.delete.is_empty()
    }
}

/// Decides what is to be done. `zone` is asked for a node's zone: `None` if there is no such node.
pub fn plan(
    service: &Object,
    pods: &[Arc<Object>],
    existing: &[Arc<Object>],
    zone: impl Fn(&str) -> Option<Option<Text>>,
) -> Plan {
    let publish_all = service.value.at(&["spec", "publishNotReadyAddresses"]).and_then(Value::as_bool) == Some(true);
    // By ports, since pods may resolve a named port differently.
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| has_address(&pod.value)) {
        let node = pod.value.str_at(&["spec", "nodeName"]).unwrap_or_default();
        let ports = ports(&service.value, &pod.value);
        let group = groups.entry(ports.to_json()).or_insert_with(|| Group { ports, wanted: Vec::new() });
        let found = zone(node);
        if found.is_some() || publish_all {
            group.wanted.push(endpoint(&service.value, pod, publish_all, found.flatten()));
        }
    }
    let mut plan = Plan::default();
    for (ports, group) in &mut groups {
        let of_group: Vec<&Arc<Object>> = existing
            .iter()
            .filter(|slice| slice.value.get("ports").is_some_and(|given| given.to_json() == *ports))
            .collect();
        fill(service, group, &of_group, &mut plan);
    }
    let stale = |slice: &&Arc<Object>| {
        !groups.contains_key(
            &slice.value.get("ports").filter(|ports| !ports.is_null()).map(Value::to_json).unwrap_or_default(),
        )
    };
    plan.delete.extend(existing.iter().filter(stale).cloned());
    if plan.delete.len() == existing.len() && plan.create.is_empty() {
        let empty = new_slice(service, Value::Null);
        match plan.delete.as_slice() {
            [one] if is_placeholder(&one.value, &empty) => plan.delete.clear(),
            _ => plan.create.push(empty),
        }
    }
    recycle(&mut plan);
    plan
}

struct Group {
    ports: Value,
    wanted: Vec<Value>,
}

/// Distributes the endpoints of one group over its slices: each stays where it is, new ones fill what changes anyway.
fn fill(service: &Object, group: &mut Group, existing: &[&Arc<Object>], plan: &mut Plan) {
    let mut changed: Vec<Value> = Vec::new();
    let mut unchanged: Vec<&Arc<Object>> = Vec::new();
    for slice in existing {
        let old = slice.value.list_at(&["endpoints"]);
        let mut kept = Vec::new();
        for endpoint in old {
            if let Some(at) = group.wanted.iter().position(|wanted| same_target(wanted, endpoint)) {
                kept.push(group.wanted.remove(at));
            }
        }
        let labels = slice_labels(service);
        let relabelled = slice.labels() != labels.as_map();
        if kept == old && !relabelled {
            unchanged.push(slice);
        } else if kept.is_empty() && !old.is_empty() {
            plan.delete.push((*slice).clone());
        } else {
            let mut new = slice.value.clone();
            new.set_at(&["endpoints"], kept);
            new.set_at(&["metadata", "labels"], labels);
            changed.push(new);
        }
    }
    changed.sort_by_key(|slice| std::cmp::Reverse(slice.list_at(&["endpoints"]).len()));
    for slice in &mut changed {
        take(slice, &mut group.wanted);
    }
    while !group.wanted.is_empty() {
        let count = group.wanted.len();
        let fits = |slice: &&Arc<Object>| slice.value.list_at(&["endpoints"]).len() + count <= SLICE_LIMIT;
        let fullest = unchanged
            .iter()
            .enumerate()
            .filter(|(_, slice)| count < SLICE_LIMIT && fits(slice))
            .max_by_key(|(_, slice)| slice.value.list_at(&["endpoints"]).len())
            .map(|(at, _)| at);
        match fullest {
            Some(at) => {
                let mut slice = unchanged.remove(at).value.clone();
                take(&mut slice, &mut group.wanted);
                changed.push(slice);
            }
            None => {
                let mut slice = new_slice(service, group.ports.clone());
                take(&mut slice, &mut group.wanted);
                plan.create.push(slice);
            }
        }
    }
    plan.update.extend(changed);
}

/// Moves endpoints into a slice until it is full.
fn take(slice: &mut Value, wanted: &mut Vec<Value>) {
    let mut endpoints = slice.list_at(&["endpoints"]).to_vec();
    let room = SLICE_LIMIT.saturating_sub(endpoints.len()).min(wanted.len());
    if room > 0 {
        endpoints.extend(wanted.drain(..room));
        slice.set_at(&["endpoints"], endpoints);
    }
}

/// Turns a slice that goes and one that comes into one that changes.
fn recycle(plan: &mut Plan) {
    while !plan.delete.is_empty()
        && let Some(new) = plan.create.pop()
    {
        let old = plan.delete.remove(0);
        let mut changed = old.value.clone();
        for field in ["endpoints", "ports"] {
            changed.set_at(&[field], new.get(field).cloned().unwrap_or_default());
        }
        if let Some(labels) = new.at(&["metadata", "labels"]) {
            changed.set_at(&["metadata", "labels"], labels);
        }
        plan.update.push(changed);
    }
}

fn is_placeholder(slice: &Value, empty: &Value) -> bool {
    slice.list_at(&["endpoints"]).is_empty()
        && slice.list_at(&["ports"]).is_empty()
        && slice.at(&["metadata", "labels"]) == empty.at(&["metadata", "labels"])
}

/// Whether two endpoints are the same pod at the same address.
fn same_target(a: &Value, b: &Value) -> bool {
    a.get("addresses") == b.get("addresses") && a.at(&["targetRef", "uid"]) == b.at(&["targetRef", "uid"])
}

fn has_address(pod: &Value) -> bool {
    !ask::has_ended(pod) && pod.str_at(&["status", "podIP"]).is_some_and(|ip| !ip.is_empty())
}

fn endpoint(service: &Value, pod: &Object, publish_all: bool, zone: Option<Text>) -> Value {
    let (serving, terminating) = (ask::is_ready(&pod.value), pod.is_terminating());
    let addresses = pod.value.list_at(&["status", "podIPs"]).iter().filter_map(|ip| ip.get("ip")).cloned();
    let mut endpoint = map! {
        "addresses": Value::list(addresses),
        "conditions": map! {
            "ready": publish_all || (serving && !terminating), "serving": serving, "terminating": terminating,
        },
        "targetRef": map! {"kind": "Pod", "namespace": pod.namespace(), "name": pod.name(), "uid": pod.uid()},
    };
    if let Some(node) = pod.value.at(&["spec", "nodeName"]) {
        endpoint.set_at(&["nodeName"], node);
    }
    if let Some(zone) = zone {
        endpoint.set_at(&["zone"], zone);
    }
    let host = pod.value.str_at(&["spec", "hostname"]).filter(|host| !host.is_empty());
    let named = pod.value.str_at(&["spec", "subdomain"]) == service.str_at(&["metadata", "name"]);
    if let Some(host) = host.filter(|_| named) {
        endpoint.set_at(&["hostname"], host);
    }
    endpoint
}

/// A Service's ports as one pod resolves them; a named port the pod does not have is left out.
fn ports(service: &Value, pod: &Value) -> Value {
    let resolve = |port: &Value| {
        let target = port.get("targetPort").filter(|target| !target.is_null());
        match target.map(|target| (target, target.as_int())) {
            None => port.int_at(&["port"]),
            Some((_, Some(number))) => Some(number),
            Some((target, None)) => named_port(pod, target.as_str()?, port.str_at(&["protocol"]).unwrap_or("TCP")),
        }
    };
    let ports = service.list_at(&["spec", "ports"]).iter().filter_map(|port| {
        let mut resolved = map! {
            "name": port.str_at(&["name"]).unwrap_or_default(), "port": resolve(port)?,
            "protocol": port.str_at(&["protocol"]).unwrap_or("TCP"),
        };
        if let Some(protocol) = port.get("appProtocol") {
            resolved.set_at(&["appProtocol"], protocol);
        }
        Some(resolved)
    });
    Value::list(ports)
}

fn named_port(pod: &Value, name: &str, protocol: &str) -> Option<i64> {
    let sidecar = |container: &&Value| container.str_at(&["restartPolicy"]) == Some("Always");
    let containers = pod.list_at(&["spec", "containers"]).iter();
    let sidecars = pod.list_at(&["spec", "initContainers"]).iter().filter(sidecar);
    let mut ports = containers.chain(sidecars).flat_map(|container| container.list_at(&["ports"]));
    let found = ports
        .find(|port| port.str_at(&["name"]) == Some(name) && port.str_at(&["protocol"]).unwrap_or("TCP") == protocol);
    found?.int_at(&["containerPort"])
}

fn new_slice(service: &Object, ports: Value) -> Value {
    let name = service.name();
    map! {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": map! {
            "generateName": format!("{name}-"), "namespace": service.namespace(), "labels": slice_labels(service),
            "ownerReferences": Value::list([controller_reference(service)]),
        },
        "addressType": "IPv4", "endpoints": Value::list([]), "ports": ports,
    }
}

/// The Service's labels, and those that say whose slice it is.
fn slice_labels(service: &Object) -> Value {
    let mut labels = service.labels().cloned().unwrap_or_default();
    labels.retain(|key, _| ![SERVICE_NAME, MANAGED_BY, HEADLESS].contains(&key.as_str()));
    if matches!(service.value.str_at(&["spec", "clusterIP"]), None | Some("" | "None")) {
        labels.insert(HEADLESS, "");
    }
    labels.insert(SERVICE_NAME, service.name());
    labels.insert(MANAGED_BY, MANAGER);
    Value::Map(labels)
}

/// Whether a change of a pod may change the slices of a Service with this selector.
pub fn concerns(selector: &Map, old: Option<&Object>, new: Option<&Object>) -> bool {
    if selector.is_empty() {
        return false;
    }
    let selected = |pod: Option<&Object>| pod.is_some_and(|pod| ask::has_labels(pod.labels(), Some(selector)));
    if selected(old) != selected(new) {
        return true;
    }
    let facts = |pod: &Object| {
        let value = &pod.value;
        let text = |path: &[&str]| value.at(path).cloned();
        let ports = (text(&["status", "podIPs"]), text(&["spec", "nodeName"]));
        (ask::is_ready(value), pod.is_terminating(), has_address(value), ports)
    };
    selected(new) && old.map(facts) != new.map(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn object(value: Value) -> Arc<Object> {
        Arc::new(Object { value, managers: Default::default() })
    }

    fn service() -> Arc<Object> {
        object(value!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop", "uid": "s", "labels": {"team": "a"}},
            "spec": {"clusterIP": "10.96.0.1", "selector": {"app": "web"}, "ports": [
                {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"},
                {"name": "adm", "port": 81, "targetPort": "admin", "protocol": "TCP"}]},
        }))
    }

    fn pod(name: &str, ip: &str, ready: &str) -> Arc<Object> {
        object(value!({
            "metadata": {"name": name, "namespace": "shop", "uid": format!("u-{name}")},
            "spec": {"nodeName": "n", "containers": []},
            "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                "conditions": [{"type": "Ready", "status": ready}]},
        }))
    }

    fn plan_for(pods: &[Arc<Object>], existing: &[Arc<Object>]) -> Plan {
        plan(&service(), pods, existing, |_| Some(None))
    }

    /// A planned slice as stored.
    fn stored(mut slice: Value, name: &str) -> Arc<Object> {
        slice.set_at(&["metadata", "name"], name);
        object(slice)
    }

    #[test]
    fn a_slice_reads_as_the_real_controller_writes_it() {
        let plan = plan_for(&[pod("a", "10.0.0.1", "True"), pod("b", "10.0.0.2", "False")], &[]);
        let endpoint = |name: &str, ip: &str, ready: bool| {
            value!({"addresses": [ip], "nodeName": "n",
                "conditions": {"ready": ready, "serving": ready, "terminating": false},
                "targetRef": {"kind": "Pod", "name": name, "namespace": "shop", "uid": format!("u-{name}")}})
        };
        let mut expected = value!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"generateName": "web-", "namespace": "shop",
                "labels": {"team": "a", "kubernetes.io/service-name": "web",
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "s",
                    "controller": true, "blockOwnerDeletion": true}]},
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        });
        let endpoints = [endpoint("a", "10.0.0.1", true), endpoint("b", "10.0.0.2", false)];
        expected.set_at(&["endpoints"], Value::list(endpoints));
        assert_eq!(plan, Plan { create: vec![expected], ..Plan::default() });
    }

    #[test]
    fn nothing_is_written_when_nothing_changed() {
        let pods = [pod("a", "10.0.0.1", "True")];
        let slice = stored(plan_for(&pods, &[]).create.remove(0), "web-1");
        assert_eq!(plan_for(&pods, &[slice]), Plan::default());
        let empty = stored(plan_for(&[], &[]).create.remove(0), "web-1");
        assert_eq!(plan_for(&[], &[empty]), Plan::default());
    }

    #[test]
    fn a_slice_is_reused_rather_than_replaced() {
        let empty = stored(plan_for(&[], &[]).create.remove(0), "web-1");
        let filled = plan_for(&[pod("a", "10.0.0.1", "True")], &[empty]);
        assert_eq!((filled.create.len(), filled.update.len(), filled.delete.len()), (0, 1, 0));
        assert_eq!(filled.update[0].str_at(&["metadata", "name"]), Some("web-1"));
        assert_eq!(filled.update[0].list_at(&["endpoints"]).len(), 1);
        let full = stored(filled.update[0].clone(), "web-1");
        let emptied = plan_for(&[], &[full]);
        assert_eq!((emptied.create.len(), emptied.update.len(), emptied.delete.len()), (0, 1, 0));
        assert_eq!(emptied.update[0].list_at(&["endpoints"]).len(), 0);
        assert_eq!(emptied.update[0].get("ports"), Some(&Value::Null));
    }

    #[test]
    fn a_slice_holds_a_hundred_endpoints() {
        let pods: Vec<_> =
            (0..250).map(|n| pod(&format!("p{n:03}"), &format!("10.0.{}.{}", n / 250, n % 250), "True")).collect();
        let sizes =
            |plan: &Plan| plan.create.iter().map(|slice| slice.list_at(&["endpoints"]).len()).collect::<Vec<_>>();
        assert_eq!(sizes(&plan_for(&pods, &[])), [100, 100, 50]);
    }

    #[test]
    fn a_terminating_pod_serves_but_is_not_ready() {
        let mut leaving = (*pod("a", "10.0.0.1", "True")).clone();
        leaving.value.set_at(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z");
        let plan = plan_for(&[Arc::new(leaving)], &[]);
        assert_eq!(
            plan.create[0].list_at(&["endpoints"])[0].get("conditions"),
            Some(&value!({"ready": false, "serving": true, "terminating": true}))
        );
    }
}
