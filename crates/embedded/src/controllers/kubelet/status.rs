//! The status the fake kubelet writes: a pod's story at one moment, in the real kubelet's words.
//!
//! Pure: what to write is computed from the pod and the time, and is `None` where the pod shows it already.

use jiff::{SignedDuration, Timestamp};

use super::story::{Course, Fate, Moment, State, Story};
use crate::controllers::{ask, replicaset::set_int};
use crate::kubernetes::{
    clock::rfc3339,
    status::go_quoted,
    value::{Text, Value},
};

/// The reason of a pod's condition `Ready` while its node is silent. The kubelet takes it back once it is there again.
pub const NODE_NOT_READY: &str = "NodeNotReady";

/// A pod's place in the world.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// When its node took it over.
    pub started: Timestamp,
    /// Its address.
    pub ip: Text,
    /// Its node's address.
    pub host_ip: Text,
}

/// What the kubelet makes of a pod at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Play {
    /// The status to patch in; `None` if the pod shows it already.
    pub status: Option<Value>,
    /// What is worth an event.
    pub reports: Vec<Report>,
    /// When the story goes on.
    pub wake: Option<Timestamp>,
}

/// What is worth an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The container it is about.
    pub container: String,
    /// `Normal` or `Warning`.
    pub kind: &'static str,
    /// The reason.
    pub reason: &'static str,
    /// The sentence.
    pub message: String,
}

/// Where a pod's story stands at `now`.
pub fn play(pod: &Value, story: &Story, place: &Place, now: Timestamp) -> Play {
    let begin = add(place.started, story.pull);
    if now < begin {
        return Play { status: pulling(pod, story, place, now), reports: Vec::new(), wake: Some(begin) };
    }
    let time = now.duration_since(begin);
    let moments: Vec<Moment> = story.containers.iter().map(|course| course.at(time)).collect();
    let wake = moments.iter().filter_map(|moment| moment.until).min().map(|until| add(begin, until));

    let old = pod.list_at(&["status", "containerStatuses"]);
    let shown = |course: &Course| old.iter().find(|status| status.str_at(&["name"]) == Some(&course.name));
    let changed = old.len() != story.containers.len()
        || story
            .containers
            .iter()
            .zip(&moments)
            .any(|(course, moment)| !shown(course).is_some_and(|s| shows(s, moment)));
    let phase = phase_of(&moments);
    let unready = unready(&story.containers, &moments);
    let conditions = conditions(pod, phase, &unready, now);
    let gated = !pod.list_at(&["spec", "readinessGates"]).is_empty();
    let lost = ask::condition(pod, "Ready").and_then(|ready| ready.str_at(&["reason"])) == Some(NODE_NOT_READY);
    if !changed && ask::phase(pod) == phase && !((gated || lost) && differ(pod, &conditions)) {
        return Play { status: None, reports: Vec::new(), wake };
    }
    let mut reports = Vec::new();
    let mut statuses = Vec::new();
    for (index, (course, moment)) in story.containers.iter().zip(&moments).enumerate() {
        let container = &pod.list_at(&["spec", "containers"])[index];
        let before = shown(course);
        if !before.is_some_and(|status| shows(status, moment)) {
            reports.extend(report(pod, course, container, before, moment));
        }
        statuses.push(container_status(pod, container, before, moment, begin));
    }
    let mut status = base(pod, place, phase, conditions);
    status.set_at(&["containerStatuses"], statuses);
    if let Some(inits) = init_statuses(pod, begin) {
        status.set_at(&["initContainerStatuses"], inits);
    }
    Play { status: Some(status), reports, wake }
}

/// The status of a pod whose containers were stopped while somebody's finalizer keeps the pod.
pub fn stopped(pod: &Value, now: Timestamp) -> Option<Value> {
    if ask::has_ended(pod) {
        return None;
    }
    let time = rfc3339(now);
    let mut statuses = pod.list_at(&["status", "containerStatuses"]).to_vec();
    for status in &mut statuses {
        let started = status.str_at(&["state", "running", "startedAt"]).unwrap_or(&time).to_owned();
        // What a shell that is told to terminate answers.
        let state = crate::value!({"terminated": {
            "exitCode": 143, "reason": "Error", "startedAt": started, "finishedAt": time.as_str()}});
        status.set_at(&["state"], state);
        status.set_at(&["ready"], false);
        status.set_at(&["started"], false);
    }
    let mut status = crate::value!({"phase": "Failed"});
    status.set_at(&["conditions"], conditions(pod, "Failed", &[], now));
    status.set_at(&["containerStatuses"], statuses);
    Some(status)
}

fn add(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn base(pod: &Value, place: &Place, phase: &str, conditions: Vec<Value>) -> Value {
    let list = |ip: &Text| Value::list([map! {"ip": ip}]);
    let mut status = map! {
        "hostIP": &place.host_ip, "hostIPs": list(&place.host_ip), "phase": phase, "podIP": &place.ip,
        "podIPs": list(&place.ip),
    };
    if pod.at(&["status", "startTime"]).is_none() {
        status.set_at(&["startTime"], rfc3339(place.started));
    }
    set_int(&mut status, "observedGeneration", generation(pod));
    status.set_at(&["conditions"], conditions);
    status
}

fn generation(pod: &Value) -> i64 {
    pod.int_at(&["metadata", "generation"]).unwrap_or(0)
}

/// The status of a pod whose images are on their way.
fn pulling(pod: &Value, story: &Story, place: &Place, now: Timestamp) -> Option<Value> {
    if !pod.list_at(&["status", "containerStatuses"]).is_empty() {
        return None;
    }
    let names: Vec<&str> = story.containers.iter().map(|course| course.name.as_str()).collect();
    let mut status = base(pod, place, "Pending", conditions(pod, "Pending", &names, now));
    let statuses = pod.list_at(&["spec", "containers"]).iter().map(|container| {
        crate::value!({
            "name": container.str_at(&["name"]).unwrap_or_default(), "imageID": "", "ready": false, "started": false,
            "image": container.str_at(&["image"]).unwrap_or_default(), "restartCount": 0, "lastState": {},
            "state": {"waiting": {"reason": "ContainerCreating"}},
        })
    });
    status.set_at(&["containerStatuses"], Value::list(statuses));
    Some(status)
}

fn phase_of(moments: &[Moment]) -> &'static str {
    let code = |moment: &Moment| match moment.state {
        State::Ended { code, .. } => Some(code),
        State::NoImage | State::Running(_) | State::BackOff { .. } => None,
    };
    if moments.iter().any(|moment| moment.state == State::NoImage) {
        return "Pending";
    }
    match moments.iter().map(code).collect::<Option<Vec<i64>>>() {
        Some(codes) if codes.iter().all(|code| *code == 0) => "Succeeded",
        Some(_) => "Failed",
        None => "Running",
    }
}

fn unready<'a>(courses: &'a [Course], moments: &[Moment]) -> Vec<&'a str> {
    courses.iter().zip(moments).filter(|(_, moment)| !moment.ready).map(|(course, _)| course.name.as_str()).collect()
}

/// Whether a container's status shows this moment already.
fn shows(status: &Value, moment: &Moment) -> bool {
    let state = match moment.state {
        State::NoImage => status.str_at(&["state", "waiting", "reason"]) == Some("ImagePullBackOff"),
        State::BackOff { .. } => status.str_at(&["state", "waiting", "reason"]) == Some("CrashLoopBackOff"),
        State::Running(_) => status.at(&["state", "running"]).is_some(),
        State::Ended { code, .. } => status.int_at(&["state", "terminated", "exitCode"]) == Some(code),
    };
    state
        && status.get("ready").and_then(Value::as_bool) == Some(moment.ready)
        && status.int_at(&["restartCount"]).unwrap_or(0) == moment.restarts
}

fn container_status(
    pod: &Value,
    container: &Value,
    before: Option<&Value>,
    moment: &Moment,
    begin: Timestamp,
) -> Value {
    let name = container.str_at(&["name"]).unwrap_or_default();
    let image = container.str_at(&["image"]).unwrap_or_default();
    let time = |at: SignedDuration| rfc3339(add(begin, at));
    let id = format!("fake://{}/{name}/{}", pod.str_at(&["metadata", "uid"]).unwrap_or_default(), moment.restarts);
    let terminated = |from, to, code: i64| {
        map! {"terminated": map! {
            "containerID": id.as_str(), "exitCode": code, "finishedAt": time(to),
            "reason": if code == 0 { "Completed" } else { "Error" }, "startedAt": time(from),
        }}
    };
    let mut last = before.and_then(|status| status.get("lastState")).cloned().unwrap_or_else(Value::object);
    let state = match moment.state {
        State::NoImage => crate::value!({"waiting": {
            "reason": "ImagePullBackOff", "message": format!("Back-off pulling image {}: ErrImagePull: {image}: not found", go_quoted(image))}}),
        State::Running(from) => map! {"running": map! {"startedAt": time(from)}},
        State::BackOff { from, to, code, wait } => {
            last = terminated(from, to, code);
            let message =
                format!("back-off {} restarting failed container={name} pod={}", go_seconds(wait), full_name(pod));
            crate::value!({"waiting": {"reason": "CrashLoopBackOff", "message": message}})
        }
        State::Ended { from, to, code } => terminated(from, to, code),
    };
    let running = matches!(moment.state, State::Running(_));
    let mut status = map! {
        "image": image, "imageID": if moment.state == State::NoImage { "" } else { image }, "name": name,
        "ready": moment.ready, "restartCount": moment.restarts, "started": running,
    };
    if moment.state != State::NoImage {
        status.set_at(&["containerID"], id.as_str());
    }
    status.set_at(&["state"], state);
    status.set_at(&["lastState"], last);
    status
}

/// `web-1_shop(0d2c…)`: a pod as the kubelet's messages name it.
fn full_name(pod: &Value) -> String {
    let meta = |field| pod.str_at(&["metadata", field]).unwrap_or_default();
    format!("{}_{}({})", meta("name"), meta("namespace"), meta("uid"))
}

/// `10s`, `1m20s`, `5m0s`: as Go prints whole seconds.
fn go_seconds(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}

/// Init containers have ended before anything else starts; sidecars among them run.
fn init_statuses(pod: &Value, begin: Timestamp) -> Option<Vec<Value>> {
    let inits = pod.list_at(&["spec", "initContainers"]);
    if inits.is_empty() || !pod.list_at(&["status", "initContainerStatuses"]).is_empty() {
        return None;
    }
    let time = rfc3339(begin);
    let statuses = inits.iter().map(|container| {
        let sidecar = container.str_at(&["restartPolicy"]) == Some("Always");
        let image = container.str_at(&["image"]).unwrap_or_default();
        let mut status = crate::value!({
            "name": container.str_at(&["name"]).unwrap_or_default(), "image": image, "imageID": image, "ready": true,
            "restartCount": 0, "started": sidecar, "lastState": {},
        });
        status.set_at(
            &["state"],
            match sidecar {
                true => crate::value!({"running": {"startedAt": time.as_str()}}),
                false => crate::value!({"terminated": {"exitCode": 0, "reason": "Completed",
                    "startedAt": time.as_str(), "finishedAt": time.as_str()}}),
            },
        );
        status
    });
    Some(statuses.collect())
}

/// The kubelet's conditions: each keeps its time of transition while its status stays.
fn conditions(pod: &Value, phase: &str, unready: &[&str], now: Timestamp) -> Vec<Value> {
    let containers = match phase {
        "Succeeded" => Verdict::no("PodCompleted", String::new()),
        "Failed" => Verdict::no("PodFailed", String::new()),
        _ if unready.is_empty() => Verdict::YES,
        _ => Verdict::no("ContainersNotReady", format!("containers with unready status: [{}]", unready.join(" "))),
    };
    let gates = open_gates(pod);
    let ready = match (containers.holds, gates.is_empty()) {
        (false, _) => containers.clone(),
        (true, true) => Verdict::YES,
        (true, false) => Verdict::no("ReadinessGatesNotReady", gates.join(", ")),
    };
    let running = match phase {
        "Succeeded" | "Failed" => Verdict::no("", String::new()),
        _ => Verdict::YES,
    };
    let initialized = match phase {
        "Succeeded" => Verdict { holds: true, reason: "PodCompleted", message: String::new() },
        _ => Verdict::YES,
    };
    [
        ("PodReadyToStartContainers", running),
        ("Initialized", initialized),
        ("Ready", ready),
        ("ContainersReady", containers),
        ("PodScheduled", Verdict::YES),
    ]
    .into_iter()
    .map(|(kind, verdict)| verdict.condition(pod, kind, now))
    .collect()
}

#[derive(Debug, Clone)]
struct Verdict {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Verdict {
    const YES: Verdict = Verdict { holds: true, reason: "", message: String::new() };

    fn no(reason: &'static str, message: String) -> Verdict {
        Verdict { holds: false, reason, message }
    }

    fn condition(self, pod: &Value, kind: &str, now: Timestamp) -> Value {
        let status = if self.holds { "True" } else { "False" };
        let old = ask::condition(pod, kind).filter(|old| old.str_at(&["status"]) == Some(status));
        let since = old.and_then(|old| old.str_at(&["lastTransitionTime"])).map_or_else(|| rfc3339(now), Text::from);
        // A patch merges conditions by type, so that what no longer holds must be taken away by name.
        let text = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        map! {
            "lastProbeTime": Value::Null, "lastTransitionTime": since, "message": text(&self.message),
            "observedGeneration": generation(pod), "reason": text(self.reason), "status": status, "type": kind,
        }
    }
}

/// Why each readiness gate that is not met is not.
fn open_gates(pod: &Value) -> Vec<String> {
    let gates = pod.list_at(&["spec", "readinessGates"]).iter().filter_map(|gate| gate.str_at(&["conditionType"]));
    gates
        .filter_map(|gate| match ask::condition(pod, gate).map(|c| c.str_at(&["status"]).unwrap_or_default()) {
            Some("True") => None,
            Some(status) => Some(format!("the status of pod readiness gate \"{gate}\" is not \"True\", but {status}")),
            None => Some(format!("corresponding condition of pod readiness gate \"{gate}\" does not exist.")),
        })
        .collect()
}

/// Whether the pod shows another status for any of these conditions.
fn differ(pod: &Value, conditions: &[Value]) -> bool {
    conditions.iter().any(|wanted| {
        let kind = wanted.str_at(&["type"]).unwrap_or_default();
        ask::condition(pod, kind).and_then(|shown| shown.get("status")) != wanted.get("status")
    })
}

fn report(pod: &Value, course: &Course, container: &Value, before: Option<&Value>, moment: &Moment) -> Vec<Report> {
    let say = |kind, reason, message: String| Report { container: course.name.clone(), kind, reason, message };
    let image = go_quoted(container.str_at(&["image"]).unwrap_or_default());
    let was_running = before.is_some_and(|status| status.at(&["state", "running"]).is_some());
    let was_ready = before.is_some_and(|status| status.get("ready").and_then(Value::as_bool) == Some(true));
    match moment.state {
        State::NoImage => vec![
            say("Normal", "Pulling", format!("Pulling image {image}")),
            say(
                "Warning",
                "Failed",
                format!("Failed to pull image {image}: this kubelet is fake, and was told to fail"),
            ),
            say("Warning", "Failed", "Error: ErrImagePull".to_owned()),
            say("Normal", "BackOff", format!("Back-off pulling image {image}")),
            say("Warning", "Failed", "Error: ImagePullBackOff".to_owned()),
        ],
        State::Running(_) if !was_running => vec![
            say("Normal", "Pulled", format!("Container image {image} already present on machine")),
            say("Normal", "Created", "Container created".to_owned()),
            say("Normal", "Started", "Container started".to_owned()),
        ],
        State::Running(_) if was_ready && !moment.ready => {
            vec![say(
                "Warning",
                "Unhealthy",
                "Readiness probe failed: this kubelet is fake, and was told so".to_owned(),
            )]
        }
        State::BackOff { .. } => {
            let message = format!("Back-off restarting failed container {} in pod {}", course.name, full_name(pod));
            vec![say("Warning", "BackOff", message)]
        }
        State::Running(_) | State::Ended { .. } => Vec::new(),
    }
}

/// Whether a container has anything to stop.
pub fn runs(course: &Course) -> bool {
    course.fate != Fate::NoImage
}

#[cfg(test)]
mod tests {
    use super::{super::story, *};
    use crate::value;

    fn pod() -> Value {
        value!({
            "metadata": {"name": "web-1", "namespace": "shop", "uid": "u", "generation": 1},
            "spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "app:v1"}]},
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        })
    }

    fn at(millis: i64) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        add(start, SignedDuration::from_millis(millis))
    }

    fn played(pod: &Value, millis: i64) -> Play {
        let story = story::read(pod, SignedDuration::from_millis(300));
        play(pod, &story, &Place { started: at(0), ip: "10.0.0.2".into(), host_ip: "10.255.0.1".into() }, at(millis))
    }

    /// The pod after the status was written, as a strategic merge would.
    fn after(pod: &Value, status: &Value) -> Value {
        let mut new = pod.clone();
        let mut conditions = pod.list_at(&["status", "conditions"]).to_vec();
        for wanted in status.list_at(&["conditions"]) {
            let kind = wanted.str_at(&["type"]);
            conditions.retain(|condition| condition.str_at(&["type"]) != kind);
            conditions.push(wanted.clone());
        }
        for (field, value) in status.as_map().unwrap().iter() {
            new.set_at(&["status", field], value);
        }
        new.set_at(&["status", "conditions"], conditions);
        new
    }

    #[test]
    fn a_pod_runs_then_is_ready_then_rests() {
        let first = played(&pod(), 0);
        assert_eq!(first.wake, Some(at(300)));
        let status = first.status.unwrap();
        let condition = |kind: &str, status: &str, reason: Option<&str>, message: Option<&str>| {
            value!({"type": kind, "status": status, "reason": reason, "message": message, "lastProbeTime": null,
                "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1})
        };
        let why = Some("containers with unready status: [c]");
        let mut expected = value!({
            "phase": "Running", "podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.2"}], "hostIP": "10.255.0.1",
            "hostIPs": [{"ip": "10.255.0.1"}], "startTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
            "containerStatuses": [{"name": "c", "image": "app:v1", "imageID": "app:v1", "containerID": "fake://u/c/0",
                "ready": false, "started": true, "restartCount": 0, "lastState": {},
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
        });
        expected.set_at(
            &["conditions"],
            Value::list([
                condition("PodReadyToStartContainers", "True", None, None),
                condition("Initialized", "True", None, None),
                condition("Ready", "False", Some("ContainersNotReady"), why),
                condition("ContainersReady", "False", Some("ContainersNotReady"), why),
                condition("PodScheduled", "True", None, None),
            ]),
        );
        assert_eq!(status, expected);
        assert_eq!(
            first.reports.iter().map(|report| report.reason).collect::<Vec<_>>(),
            ["Pulled", "Created", "Started"]
        );

        let running = after(&pod(), &status);
        assert_eq!(played(&running, 299), Play { status: None, reports: Vec::new(), wake: Some(at(300)) });
        let second = played(&running, 300).status.unwrap();
        let ready = after(&running, &second);
        assert!(ask::is_ready(&ready));
        assert_eq!(played(&ready, 1_000_000), Play { status: None, reports: Vec::new(), wake: None });
    }

    #[test]
    fn a_gate_holds_readiness_back_until_it_opens() {
        let mut pod = pod();
        pod.set_at(&["spec", "readinessGates"], value!([{"conditionType": "lb"}]));
        let waiting = after(&pod, &played(&pod, 500).status.unwrap());
        let ready = ask::condition(&waiting, "Ready").unwrap();
        assert_eq!(ready.str_at(&["reason"]), Some("ReadinessGatesNotReady"));
        assert_eq!(
            ready.str_at(&["message"]),
            Some("corresponding condition of pod readiness gate \"lb\" does not exist.")
        );
        assert!(ask::is_true(&waiting, "ContainersReady"));
        let mut open = waiting.clone();
        let mut conditions = open.list_at(&["status", "conditions"]).to_vec();
        conditions.push(value!({"type": "lb", "status": "True"}));
        open.set_at(&["status", "conditions"], conditions);
        assert!(ask::is_ready(&after(&open, &played(&open, 600).status.unwrap())));
    }

    #[test]
    fn a_finished_pod_says_how_it_ended() {
        for (command, phase, reason) in [("exit 0", "Succeeded", "Completed"), ("exit 3", "Failed", "Error")] {
            let mut job = pod();
            job.set_at(&["spec", "restartPolicy"], "Never");
            job.set_at(
                &["spec", "containers"],
                value!([{"name": "c", "image": "a", "command": ["sh", "-c", command]}]),
            );
            let status = played(&job, 300).status.unwrap();
            let state = status.list_at(&["containerStatuses"])[0].at(&["state", "terminated"]).unwrap().clone();
            assert_eq!((status.str_at(&["phase"]), state.str_at(&["reason"])), (Some(phase), Some(reason)));
        }
    }

    #[test]
    fn images_take_their_time() {
        let mut slow = pod();
        slow.set_at(&["metadata", "annotations"], value!({"embedded.tidegate.dev/pull-time": "5s"}));
        let first = played(&slow, 0);
        assert_eq!(first.wake, Some(at(5000)));
        let status = first.status.unwrap();
        let waiting =
            status.list_at(&["containerStatuses"])[0].str_at(&["state", "waiting", "reason"]).map(str::to_owned);
        assert_eq!((status.str_at(&["phase"]), waiting.as_deref()), (Some("Pending"), Some("ContainerCreating")));
        let pulling = after(&slow, &status);
        assert_eq!(played(&pulling, 5000).status.unwrap().str_at(&["phase"]), Some("Running"));
    }
}
