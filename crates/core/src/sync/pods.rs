//! Why the pods of a workload's newest version are not ready, in a few words.
//!
//! Reads what kubelets, schedulers and controllers recorded. Never repeats what a container itself wrote: its last words may
//! hold secrets.

use super::id::cut;
use crate::kubernetes::value::Value;

/// The longest words of others that are repeated.
const LONGEST: usize = 160;

/// How many of the pods of the newest version are ready, and why not all of them are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pods {
    /// How many are ready.
    pub ready: usize,
    /// Of how many that are wanted.
    pub wanted: usize,
    /// Why the others are not, if that is known.
    pub why: Option<String>,
}

impl Pods {
    /// Counts pods; `failed` says why some could not be created.
    pub fn of<'p>(pods: impl Iterator<Item = &'p Value>, wanted: usize, failed: Option<String>) -> Pods {
        let pods: Vec<&Value> = pods.filter(|pod| stays(pod)).collect();
        let ready = pods.iter().filter(|pod| is_true(pod, "Ready")).count();
        let worst = worst(pods.into_iter()).map(|(_, words)| words);
        Pods { ready, wanted, why: worst.or(failed) }
    }

    /// `0 of 2 new pods ready: ImagePullBackOff: web:9 not found`
    pub fn words(&self) -> String {
        let why = self.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("{} of {} new pods ready{why}", self.ready, self.wanted)
    }
}

/// The pod that needs somebody's help most, and why it is not ready.
pub fn worst<'p>(pods: impl Iterator<Item = &'p Value>) -> Option<(&'p Value, String)> {
    let mut pods: Vec<&Value> = pods.filter(|pod| stays(pod)).collect();
    pods.sort_by_key(|pod| pod.str_at(&["metadata", "name"]).unwrap_or_default());
    let reasons = pods.into_iter().filter_map(|pod| why(pod).map(|(rank, words)| (rank, pod, words)));
    reasons.min_by_key(|(rank, _, _)| *rank).map(|(_, pod, words)| (pod, words))
}

fn stays(pod: &Value) -> bool {
    pod.at(&["metadata", "deletionTimestamp"]).is_none_or(Value::is_null)
}

/// What needs somebody's help most is said first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Image,
    Crash,
    Schedule,
    Readiness,
}

fn condition<'p>(pod: &'p Value, name: &str) -> Option<&'p Value> {
    pod.list_at(&["status", "conditions"]).iter().find(|condition| condition.str_at(&["type"]) == Some(name))
}

fn is_true(pod: &Value, name: &str) -> bool {
    condition(pod, name).is_some_and(|condition| condition.str_at(&["status"]) == Some("True"))
}

/// Why a pod is not ready, if it says so.
fn why(pod: &Value) -> Option<(Rank, String)> {
    if is_true(pod, "Ready") || pod.str_at(&["status", "phase"]) == Some("Succeeded") {
        return None;
    }
    let of = |key: &str| pod.list_at(&["status", key]).iter();
    let containers = || of("initContainerStatuses").chain(of("containerStatuses"));
    if let Some(found) = containers().find_map(|status| stuck(pod, status)) {
        return Some(found);
    }
    if pod.str_at(&["status", "phase"]) == Some("Failed") {
        let reason = pod.str_at(&["status", "reason"]).filter(|reason| !reason.is_empty());
        return Some((Rank::Crash, reason.unwrap_or("the pod failed").to_owned()));
    }
    let scheduled = condition(pod, "PodScheduled").filter(|told| told.str_at(&["status"]) == Some("False"));
    if let Some(told) = scheduled {
        let message = told.str_at(&["message"]).unwrap_or_default();
        return Some((Rank::Schedule, format!("unschedulable: {}", cut(message, LONGEST))));
    }
    let waiting = containers().find(|status| {
        status.at(&["state", "running"]).is_some() && status.get("ready").and_then(Value::as_bool) == Some(false)
    })?;
    let name = waiting.str_at(&["name"]).unwrap_or_default();
    let restarts = match waiting.int_at(&["restartCount"]).unwrap_or_default() {
        0 => String::new(),
        count => format!(", {}", restarts(count)),
    };
    let words = if has_probe(pod, name) { "its readiness probe has not succeeded" } else { "runs and is not ready" };
    Some((Rank::Readiness, format!("container {name}: {words}{restarts}")))
}

fn container<'p>(pod: &'p Value, name: &str) -> Option<&'p Value> {
    let of = |key: &str| pod.list_at(&["spec", key]).iter();
    of("containers").chain(of("initContainers")).find(|container| container.str_at(&["name"]) == Some(name))
}

fn has_probe(pod: &Value, name: &str) -> bool {
    container(pod, name).is_some_and(|container| container.at(&["readinessProbe"]).is_some())
}

fn restarts(count: i64) -> String {
    if count == 1 { "1 restart".to_owned() } else { format!("{count} restarts") }
}

/// Why a container does not run.
fn stuck(pod: &Value, status: &Value) -> Option<(Rank, String)> {
    let name = status.str_at(&["name"]).unwrap_or_default();
    let count = status.int_at(&["restartCount"]).unwrap_or_default();
    if let Some(waiting) = status.at(&["state", "waiting"]) {
        let reason = waiting.str_at(&["reason"]).unwrap_or_default();
        let message = waiting.str_at(&["message"]).unwrap_or_default();
        return match reason {
            "" | "ContainerCreating" | "PodInitializing" => None,
            "CrashLoopBackOff" => {
                let ended = status.at(&["lastState", "terminated"]).map(exit).unwrap_or_default();
                let ended = if ended.is_empty() { ended } else { format!("{ended}, ") };
                Some((Rank::Crash, format!("CrashLoopBackOff: {ended}{}", restarts(count))))
            }
            "ImagePullBackOff" | "ErrImagePull" | "ErrImageNeverPull" | "InvalidImageName" => {
                let image = container(pod, name).and_then(|container| container.str_at(&["image"])).unwrap_or(name);
                let words = if image.is_empty() {
                    reason.to_owned()
                } else {
                    format!("{reason}: {}", unpulled(image, message))
                };
                Some((Rank::Image, words))
            }
            // A missing ConfigMap or key, a command that is not there.
            _ => Some((Rank::Image, format!("{reason}: {}", cut(message, LONGEST)))),
        };
    }
    let ended = status.at(&["state", "terminated"])?;
    let failed = ended.int_at(&["exitCode"]).unwrap_or_default() != 0;
    failed.then(|| (Rank::Crash, format!("container {name}: {}", exit(ended))))
}

/// How a container ended: `exit code 137, OOMKilled`.
fn exit(ended: &Value) -> String {
    let code = ended.int_at(&["exitCode"]).map(|code| format!("exit code {code}"));
    let reason = ended.str_at(&["reason"]).filter(|reason| !["", "Error", "Completed"].contains(reason));
    code.into_iter().chain(reason.map(str::to_owned)).collect::<Vec<_>>().join(", ")
}

/// Why an image was not pulled, from what the kubelet says.
fn unpulled(image: &str, message: &str) -> String {
    let lower = message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["not found", "does not exist", "manifest unknown"]) {
        format!("{image} not found")
    } else if has(&["unauthorized", "denied", "authorization failed", "forbidden"]) {
        format!("{image}: access denied")
    } else if has(&["no such host", "timeout", "connection refused", "too many requests"]) {
        format!("{image}: the registry does not answer")
    } else {
        format!("{image} cannot be pulled")
    }
}

/// Why pods could not be created, from what a controller says: `exceeded quota: small, …` without what the reader knows.
pub fn uncreated(message: &str) -> String {
    let short = message.split_once(" is forbidden: ").map_or(message, |(_, why)| why);
    cut(short, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn pod(spec: Value, status: Value) -> Value {
        value!({"metadata": {"name": "web-1"}, "spec": serde_json::Value::from(&spec), "status": serde_json::Value::from(&status)})
    }

    fn spec() -> Value {
        value!({"containers": [{"name": "web", "image": "web:9", "readinessProbe": {}}, {"name": "log", "image": "log:1"}]})
    }

    #[track_caller]
    fn check(status: Value, words: &str) {
        let pod = pod(spec(), status);
        assert_eq!(Pods::of([&pod].into_iter(), 2, None).words(), words);
    }

    fn waiting(reason: &str, message: &str) -> Value {
        value!({"phase": "Pending", "containerStatuses": [{"name": "web", "restartCount": 4,
            "state": {"waiting": {"reason": reason, "message": message}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "password=hunter2"}}}]})
    }

    #[test]
    fn a_pod_says_why_it_is_not_ready() {
        check(value!({"conditions": [{"type": "Ready", "status": "True"}]}), "1 of 2 new pods ready");
        check(waiting("ContainerCreating", ""), "0 of 2 new pods ready");
        let missing = "Back-off pulling image \"web:9\": ErrImagePull: docker.io/library/web:9: not found";
        check(waiting("ImagePullBackOff", missing), "0 of 2 new pods ready: ImagePullBackOff: web:9 not found");
        check(
            waiting("ErrImagePull", "pull access denied"),
            "0 of 2 new pods ready: ErrImagePull: web:9: access denied",
        );
        check(
            waiting("ErrImagePull", "dial tcp: i/o timeout"),
            "0 of 2 new pods ready: ErrImagePull: web:9: the registry does not answer",
        );
        check(waiting("ErrImagePull", "?"), "0 of 2 new pods ready: ErrImagePull: web:9 cannot be pulled");
        check(
            waiting("CrashLoopBackOff", "back-off 40s"),
            "0 of 2 new pods ready: CrashLoopBackOff: exit code 137, OOMKilled, 4 restarts",
        );
        check(
            waiting("CreateContainerConfigError", "configmap \"settings\" not found"),
            "0 of 2 new pods ready: CreateContainerConfigError: configmap \"settings\" not found",
        );
        check(
            value!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu."}]}),
            "0 of 2 new pods ready: unschedulable: 0/3 nodes are available: 3 Insufficient cpu.",
        );
        let running = |name: &str| value!({"phase": "Running", "containerStatuses": [{"name": name, "ready": false, "restartCount": 1, "state": {"running": {}}}]});
        check(running("web"), "0 of 2 new pods ready: container web: its readiness probe has not succeeded, 1 restart");
        check(running("log"), "0 of 2 new pods ready: container log: runs and is not ready, 1 restart");
        let ended = value!({"phase": "Failed", "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]});
        check(ended, "0 of 2 new pods ready: container init: exit code 3");
        check(value!({"phase": "Failed", "reason": "Evicted"}), "0 of 2 new pods ready: Evicted");
    }

    #[test]
    fn the_worst_pod_speaks_and_those_that_go_are_silent() {
        let bad = pod(spec(), waiting("ImagePullBackOff", "not found"));
        let mut crash = pod(spec(), waiting("CrashLoopBackOff", ""));
        crash.set_at(&["metadata", "name"], "web-0");
        let both = Pods::of([&crash, &bad].into_iter(), 2, None);
        assert_eq!(both.why.as_deref(), Some("ImagePullBackOff: web:9 not found"));
        let mut going = bad.clone();
        going.set_at(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z");
        let left = Pods::of([&going].into_iter(), 1, Some("exceeded quota: small".into()));
        assert_eq!(left.words(), "0 of 1 new pods ready: exceeded quota: small");
        assert_eq!(
            uncreated(
                "pods \"web-1\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4"
            ),
            "exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4"
        );
    }
}
