//! A scheduler and kubelet that are honest about being fake: pods are bound, start, become ready, end, crash and stop as
//! their specs, images and annotations say, and nothing ever runs.
//!
//! Nodes carry `fake` in their names for the runtime and the kubelet, containers have ids `fake://…`, and events about
//! failures say that they were asked for.
//!
//! # What a pod does
//! It is bound to the schedulable node with the fewest pods and runs at once. Its containers are ready 0.3 s later (and
//! up to [`jitter`](super::Settings::jitter) more, by the seed), plus what the spec implies:
//!
//! | in the spec | effect |
//! |---|---|
//! | `readinessProbe`, `startupProbe`: `initialDelaySeconds` | ready so much later |
//! | `lifecycle.postStart`: `sleep N` in its command, or its `sleep` action | ready so much later |
//! | `lifecycle.preStop`: the same | gone so much later after deletion, at most the grace period |
//! | `readinessGates` | `Ready` only while every named condition is `True` |
//! | `restartPolicy` `Never` or `OnFailure` (Jobs) | ready at once; ends after the `sleep N`s of its command with the code of the last `exit N` |
//! | command `/bad-command…` | crashes at once |
//! | init containers | have ended at once; sidecars run |
//!
//! | image | effect |
//! |---|---|
//! | tag `bad`, `bad-…`, `error`; or a name with `does-not-exist`, `nonexistent`, `invalid-image`, `argo-error` | cannot be pulled |
//! | tag `crash`, `crash-N` | crashes at once, or N seconds after each start |
//! | tag `never-ready`, `never-ready-…` | runs, never ready |
//! | tag `slow`, `slow-N` | ready 30 s, or N seconds, later |
//!
//! | annotation `embedded.tidegate.dev/…` of a pod | effect |
//! |---|---|
//! | `ready-after: 20s` | ready so long after each start, whatever the spec implies |
//! | `never-ready: "true"` | never ready; may be set and removed while the pod runs |
//! | `unready-after: 1m` | no longer ready so long after each start |
//! | `crash-after: 5s` | exits so long after each start, with `exit-code` or 1 |
//! | `exit-code: "3"` | the code of a crash, or of a Job's pod that ends |
//! | `run-for: 10s` | how long a Job's pod runs, whatever its command says |
//! | `image-pull-error: "true"` | its images cannot be pulled |
//! | `pull-time: 8s` | its images take so long to arrive |
//! | `unschedulable: "true"` | no node takes it |
//! | `stop-after: 12s` or `never` | how long it takes to stop after deletion, whatever its hooks say |
//!
//! | annotation `embedded.tidegate.dev/…` of a node | effect |
//! |---|---|
//! | `lost: "true"` | its kubelet is silent: nothing starts, becomes ready or stops there, and the [node controller](super::node) notices |
//!
//! Durations are `5`, `5s`, `300ms`, `2m`, `1h`. A crashed container is started again after 10 s, 20 s, … 300 s, unless
//! the restart policy forbids it. A change of a pod's annotations takes effect at once. What others write into a pod's
//! conditions stays until the story itself moves on, so that a test can make one pod unready by hand.
//!
//! Not played: resources, affinity beyond `nodeSelector`, preemption, volumes, liveness probes, logs.

pub mod scheduler;
pub mod status;
pub mod story;

use std::{collections::HashMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use self::status::{Place, Play};
use super::{
    Controller, Next, Settings, ask,
    event::Source,
    hands::{Hands, Key, NODES, PODS},
};
use crate::kubernetes::{
    clock::rfc3339,
    object::Object,
    value::{Text, Value},
};
use crate::store::request::Options;

/// What the kubelet remembers beyond what it wrote: exact times, where objects carry whole seconds. After a restart they
/// are read from the objects.
#[derive(Debug, Default, Clone)]
pub struct Memory {
    lives: HashMap<Text, Life>,
    last_ip: u32,
}

#[derive(Debug, Clone, Copy)]
struct Life {
    started: Timestamp,
    told_to_stop: Option<Timestamp>,
}

impl Memory {
    /// Learns of a pod that exists: its address is taken.
    pub fn notice(&mut self, pod: &Value) {
        if let Some(ip) = pod.str_at(&["status", "podIP"]).and_then(ip_number) {
            self.last_ip = self.last_ip.max(ip);
        }
    }

    /// Forgets a pod that is gone.
    pub fn forget(&mut self, uid: &str) {
        self.lives.remove(uid);
    }

    fn next_ip(&mut self) -> Text {
        self.last_ip = (self.last_ip + 1).clamp(2, 0x00ff_ffff);
        let n = self.last_ip;
        format!("10.{}.{}.{}", n >> 16 & 255, n >> 8 & 255, n & 255).into()
    }
}

/// The number behind an address of the form `10.x.y.z`.
fn ip_number(ip: &str) -> Option<u32> {
    let ip: std::net::Ipv4Addr = ip.parse().ok()?;
    (ip.octets()[0] == 10).then(|| u32::from(ip) & 0x00ff_ffff).filter(|n| *n < 0x00ff_0000)
}

/// Plays one pod: binds it, moves its status on, or removes it.
pub fn sync(hands: &mut Hands, memory: &mut Memory, settings: &Settings, key: &Key) -> Next {
    let Some(pod) = hands.get(&PODS, key) else { return Next::Idle };
    let node = pod.value.str_at(&["spec", "nodeName"]).unwrap_or_default();
    if node.is_empty() {
        return if pod.is_terminating() { Next::Idle } else { scheduler::sync(hands, settings, &pod) };
    }
    let node = Key { namespace: Text::new(), name: node.into() };
    let Some(node) = hands.get(&NODES, &node).filter(|node| !story::is_set(&node.value, "lost")) else {
        return Next::Idle;
    };
    let life = memory.lives.entry(pod.uid()).or_insert_with(|| recall(&pod.value, hands.now()));
    let life = *life;
    if pod.is_terminating() {
        return stop(hands, memory, &pod, &node, life);
    }
    if ask::has_ended(&pod.value) {
        return Next::Idle;
    }
    let place = Place {
        started: life.started,
        ip: match pod.value.at(&["status", "podIP"]).and_then(Value::as_text) {
            Some(ip) => ip.clone(),
            None => memory.next_ip(),
        },
        host_ip: host_ip(&node.value),
    };
    let story = story::read(&pod.value, ready_delay(settings, &pod.uid()));
    let Play { status, reports, wake } = status::play(&pod.value, &story, &place, hands.now());
    if let Some(status) = status {
        match hands.patch_status(&PODS, key, status) {
            Ok(()) => {}
            Err(refused) if refused.code == 404 => return Next::Idle,
            Err(_) => return Next::Retry,
        }
    }
    for report in reports {
        let field_path = format!("spec.containers{{{}}}", report.container);
        let source = Source { component: "kubelet", host: &node.name(), field_path: &field_path };
        hands.report(source, &pod, report.kind, report.reason, report.message);
    }
    wake.map_or(Next::Idle, Next::At)
}

/// What a pod's object says about times the kubelet does not remember.
fn recall(pod: &Value, now: Timestamp) -> Life {
    let grace = SignedDuration::from_secs(pod.int_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0));
    // Only after a restart is a pod with a start time news, and only then may it be terminating already.
    let started = ask::time(pod.at(&["status", "startTime"]));
    let deletion = ask::time(pod.at(&["metadata", "deletionTimestamp"])).filter(|_| started.is_some());
    Life { started: started.unwrap_or(now), told_to_stop: deletion.and_then(|time| time.checked_sub(grace).ok()) }
}

/// Stops a pod that is being deleted, and removes it once it stopped.
fn stop(hands: &mut Hands, memory: &mut Memory, pod: &Arc<Object>, node: &Object, life: Life) -> Next {
    let grace = pod.value.int_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    if grace == 0 {
        return Next::Idle; // removed already, but for somebody's finalizer
    }
    let now = hands.now();
    let told = life.told_to_stop.unwrap_or(now);
    let story = story::read(&pod.value, SignedDuration::ZERO);
    if life.told_to_stop.is_none() {
        memory.lives.insert(pod.uid(), Life { told_to_stop: Some(now), ..life });
        for course in story.containers.iter().filter(|course| status::runs(course) && !ask::has_ended(&pod.value)) {
            let field_path = format!("spec.containers{{{}}}", course.name);
            let source = Source { component: "kubelet", host: &node.name(), field_path: &field_path };
            hands.report(source, pod, "Normal", "Killing", format!("Stopping container {}", course.name));
        }
    }
    let Some(stop) = story.stop else { return Next::Idle };
    let due = told.saturating_add(stop.min(SignedDuration::from_secs(grace))).unwrap_or(Timestamp::MAX);
    if now < due {
        return Next::At(due);
    }
    if !pod.value.list_at(&["metadata", "finalizers"]).is_empty()
        && let Some(status) = status::stopped(&pod.value, now)
    {
        let _ = hands.patch_status(&PODS, &Key::of(pod), status);
    }
    let options = Options { grace_period_seconds: Some(0), ..Options::default() };
    match hands.delete_with(&PODS, pod, options) {
        Ok(()) => Next::Idle,
        Err(refused) if matches!(refused.code, 404 | 409) => Next::Idle,
        Err(_) => Next::Retry,
    }
}

/// The delay of every pod, and a little more by the seed, so that pods do not all become ready in one instant.
fn ready_delay(settings: &Settings, uid: &str) -> SignedDuration {
    let span = settings.jitter.as_millis().clamp(0, i128::from(i64::MAX)) as u64;
    let extra = if span == 0 { 0 } else { settings.hash(uid) % (span + 1) };
    settings.ready_delay.saturating_add(SignedDuration::from_millis(extra as i64))
}

/// Registers the nodes of the settings, if the cluster has none; returns those that are new.
pub fn register(hands: &mut Hands, settings: &Settings) -> Vec<Key> {
    if !settings.controllers.contains(&Controller::Kubelet) || hands.list(&NODES, "").next().is_some() {
        return Vec::new();
    }
    let mut new = Vec::new();
    for name in &settings.nodes {
        let node = map! {
            "apiVersion": "v1", "kind": "Node",
            "metadata": map! {
                "name": name,
                "labels": map! {
                    "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                },
            },
        };
        new.extend(hands.create(&NODES, &Text::new(), node).ok().map(|node| Key::of(&node)));
    }
    new
}

/// The status of a node that is there for pods to be bound to.
pub fn node_status(node: &Value, now: Timestamp) -> Value {
    let capacity = || map! {"cpu": "10000", "memory": "100Ti", "pods": "100000"};
    let time = rfc3339(now);
    let name = node.str_at(&["metadata", "name"]).unwrap_or_default();
    let mut status = map! {
        "addresses": Value::list([
            map! {"type": "InternalIP", "address": host_ip(node)},
            map! {"type": "Hostname", "address": name},
        ]),
        "conditions": Value::list([map! {
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "this kubelet is fake",
            "lastHeartbeatTime": &time, "lastTransitionTime": &time,
        }]),
        "nodeInfo": map! {
            "kubeletVersion": "v1.35.4-fake", "kubeProxyVersion": "", "containerRuntimeVersion": "fake://0",
            "osImage": "none: nothing runs here", "kernelVersion": "none", "operatingSystem": "linux",
            "architecture": "amd64", "machineID": "", "systemUUID": "", "bootID": "",
        },
    };
    for field in ["capacity", "allocatable"] {
        if node.at(&["status", field]).is_none() {
            status.set_at(&[field], capacity());
        }
    }
    status
}

/// A node's address: the one it shows, else one that only its name decides.
fn host_ip(node: &Value) -> Text {
    let addresses = node.list_at(&["status", "addresses"]);
    let internal = addresses.iter().find(|address| address.str_at(&["type"]) == Some("InternalIP"));
    if let Some(shown) = internal.and_then(|address| address.at(&["address"])?.as_text()) {
        return shown.clone();
    }
    let name = node.str_at(&["metadata", "name"]).unwrap_or_default();
    // `fake-0` is 10.255.0.1, its neighbours follow.
    let number = name.rsplit('-').next().and_then(|digits| digits.parse::<u16>().ok());
    let number = number.unwrap_or_else(|| name.bytes().fold(0, |sum, byte| sum * 31 + u16::from(byte) % 31) | 0x8000);
    let [high, low] = number.wrapping_add(1).to_be_bytes();
    format!("10.255.{high}.{low}").into()
}
