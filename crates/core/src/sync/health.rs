//! How an object that was applied is doing, as kstatus would see it, and in a few words for the commit.
//!
//! A Rollout is done only when it is fully promoted; what has no status to speak of is done when it is there. Never asks
//! for more than the object itself; what stands behind it is added by [`Doing::with`].

use std::fmt;

use jiff::Timestamp;

use super::{
    detail::Detail,
    expressions::{Expression, Expressions},
    id::cut,
};
use crate::{
    api::{
        self, Rollout,
        constants::{self, analysis_phase, annotation, condition, reason},
    },
    kubernetes::{schema::Schema, value::Value},
    model::{
        codec,
        health::{Health, Phase, Standing},
    },
    rollout::{step, wait::Wait},
};

/// How an object is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doing {
    /// In one word.
    pub standing: Standing,
    /// In a few; empty if there is nothing to say.
    pub words: String,
    /// It was given up, for this pod template.
    pub aborted: Option<String>,
    /// How far an update is, for as long as it is under way.
    progress: Option<Progress>,
}

impl Doing {
    /// It is under way, in these words.
    pub fn waiting(words: impl Into<String>) -> Doing {
        Doing::new(Standing::InProgress, words)
    }

    fn new(standing: Standing, words: impl Into<String>) -> Doing {
        Doing { standing, words: words.into(), aborted: None, progress: None }
    }

    /// The same, with what stands behind it.
    pub fn with(&self, detail: &Detail) -> Doing {
        if let Some(missing) = detail.missing.as_ref().filter(|_| self.standing != Standing::Current) {
            let sep = if self.words.is_empty() { "" } else { "; " };
            return Doing { words: format!("{}{sep}more is not known: {missing}", self.words), ..self.clone() };
        }
        let open = detail.pods.as_ref().filter(|pods| pods.ready < pods.wanted);
        let words = match (self.standing, &self.progress, open) {
            (Standing::Current, _, _) => return self.clone(),
            (Standing::InProgress, Some(progress), _) => {
                let mut words = progress.to_string();
                if let Some(pods) = open {
                    words = format!("{}{}", progress.place(), pods.words());
                }
                if let Some(analysis) = &detail.analysis {
                    words += &format!(", {analysis}");
                }
                words
            }
            // A Job has no pods that become ready.
            (Standing::InProgress, None, Some(pods)) if self.words == RUNNING => match &pods.why {
                Some(why) => format!("{RUNNING}: {why}"),
                None => return self.clone(),
            },
            (Standing::InProgress, None, Some(pods)) => pods.words(),
            // A Job has no pods that become ready.
            (Standing::Stalled, _, Some(pods)) if self.words.starts_with(FAILED) => match &pods.why {
                Some(why) => because(&self.words, why),
                None => return self.clone(),
            },
            (Standing::Stalled, _, Some(pods)) => because(&self.words, &pods.words()),
            (_, _, None) => return self.clone(),
        };
        Doing { words, ..self.clone() }
    }

    /// The same, with what was last known to stand behind it.
    pub fn remembering(&self, why: &str) -> Doing {
        match self.standing {
            Standing::Stalled => Doing { words: recalling(&self.words, why), ..self.clone() },
            Standing::Current | Standing::InProgress => self.clone(),
        }
    }

    /// How an object is doing, where it may say itself when it is healthy or has failed.
    pub fn judged(object: &Value, expressions: &Expressions, schema: Option<&Schema>) -> Doing {
        let doing = Doing::of(object);
        let is_there = object.at(&["metadata", "deletionTimestamp"]).is_none_or(Value::is_null);
        let Expressions { healthy, failed, limit } = expressions;
        let (Some(schema), true) = (schema.filter(|_| !expressions.is_empty()), is_there) else {
            return doing;
        };
        let ask = |expression: &Expression| expression.ask(object, schema, *limit);
        if let Some(expression) = failed
            && ask(expression) == Ok(true)
        {
            return Doing::new(Standing::Stalled, format!("failed: {}", cut(&expression.text, SHOWN)));
        }
        let Some(expression) = healthy else { return doing };
        if !is_observed(object) {
            return Doing::new(Standing::InProgress, "was not looked at yet");
        }
        match ask(expression) {
            Ok(true) => Doing::new(Standing::Current, ""),
            Ok(false) => Doing::new(Standing::InProgress, format!("waits until {}", cut(&expression.text, SHOWN))),
            // Mostly it has no status yet.
            Err(why) => {
                let words = format!("waits until {} ({})", cut(&expression.text, SHOWN), cut(&why, SHOWN));
                Doing::new(Standing::InProgress, words)
            }
        }
    }

    /// How an object is doing.
    pub fn of(object: &Value) -> Doing {
        if object.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null()) {
            return Doing::new(Standing::InProgress, "is being deleted");
        }
        let group = object.str_at(&["apiVersion"]).unwrap_or_default().split_once('/').map_or("", |(group, _)| group);
        match (group, object.str_at(&["kind"]).unwrap_or_default()) {
            (constants::GROUP, constants::kind::ROLLOUT) => rollout(object),
            (constants::GROUP, constants::kind::ANALYSIS_RUN | constants::kind::EXPERIMENT) => measured(object),
            ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("", "ReplicationController") => {
                workload(object)
            }
            ("batch", "Job") => job(object),
            ("", "Pod") => pod(object),
            ("", "PersistentVolumeClaim") => claim(object),
            ("", "Namespace") => Doing::new(Standing::Current, ""),
            ("", "Service") => service(object),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
            ("apiregistration.k8s.io", "APIService") => named_condition(object, "Available", "is not available yet"),
            _ => generic(object),
        }
    }
}

/// How much of an expression is shown.
const SHOWN: usize = 80;

/// What a Job does that is not over.
const RUNNING: &str = "is running";

/// What begins the words about something that was given up, and about a Job.
const ABORTED: &str = "aborted: ";
const FAILED: &str = "failed: ";

/// Why something failed, with what was last known of its pods.
pub fn recalling(words: &str, why: &str) -> String {
    because(words, &format!("its new pods were not ready: {why}"))
}

/// What happened, with its cause in front: hosts cut what is long, and the cause is what helps.
fn because(words: &str, why: &str) -> String {
    let words = words.trim_end_matches('.');
    let prefix = [ABORTED, FAILED].into_iter().find(|prefix| words.starts_with(prefix)).unwrap_or_default();
    format!("{prefix}{why}; {}", &words[prefix.len()..])
}

fn rollout(object: &Value) -> Doing {
    let rollout: Rollout = api::read(object).object;
    let health = Health::shown(&rollout, rollout.spec.workload_ref.is_some());
    let status = &rollout.status;
    let standing = Standing::of(&health);
    // An update that begins in this very moment has a status that is about the one before.
    let progress = (standing == Standing::InProgress).then(|| Progress::of(&rollout, &health));
    let words = match (standing, &progress) {
        (Standing::InProgress, Some(progress)) => progress.to_string(),
        (Standing::Current | Standing::InProgress, _) => String::new(),
        (Standing::Stalled, _) => why_degraded(&rollout, &health),
    };
    // Whatever else is new about it: this template was given up, until somebody takes that back.
    let aborted = Some(status.current_pod_hash.clone()).filter(|hash| is_aborted(&rollout) && !hash.is_empty());
    Doing { standing, words, aborted, progress }
}

fn is_aborted(rollout: &Rollout) -> bool {
    codec::decode(&rollout.status).abort.is_on()
}

/// Why a Rollout is degraded: what its message says, without the name that the reader knows.
fn why_degraded(rollout: &Rollout, health: &Health) -> String {
    let message = match health {
        Health::Recorded { message, .. } if !message.is_empty() => message.clone(),
        other => other.to_string(),
    };
    if is_aborted(rollout) || message.starts_with(reason::ROLLOUT_ABORTED) {
        let why = message.strip_prefix("RolloutAborted: ").unwrap_or(&message);
        return format!("{ABORTED}{why}");
    }
    message
}

/// How far an update is: `step 3/7, 20 %, 2 of 5 pods`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Progress {
    step: Option<(i32, usize)>,
    weight: Option<i32>,
    updated: i32,
    replicas: i32,
    waits: Option<String>,
}

impl Progress {
    fn of(rollout: &Rollout, health: &Health) -> Progress {
        let status = &rollout.status;
        let steps = rollout.spec.strategy.canary.as_ref().map_or(0, |canary| canary.steps.len());
        let updating = !status.stable_rs.is_empty() && status.stable_rs != status.current_pod_hash;
        let at = step::position(rollout).filter(|_| updating);
        let step = at.map(|at| (at.index.saturating_add(1).min(i32::try_from(steps).unwrap_or(i32::MAX)), steps));
        let waits = match health.phase() {
            Phase::Paused => Some(pauses(rollout)),
            Phase::Healthy | Phase::Progressing | Phase::Degraded => None,
        };
        Progress {
            weight: step.map(|_| step::set_weight(rollout)),
            step,
            updated: status.updated_replicas,
            replicas: rollout.spec.replicas.unwrap_or(1),
            waits,
        }
    }
}

/// What a paused Rollout waits for, and until when.
fn pauses(rollout: &Rollout) -> String {
    const PERSON: &str = "waits for a person";
    match Wait::of(rollout, &[]) {
        Some(Wait::Pause { since, until: Some(until), .. }) => format!("pauses until {}", clock(since, until)),
        Some(Wait::Switch { since, until: Some(until) }) => format!("is promoted by itself at {}", clock(since, until)),
        Some(Wait::Pause { until: None, .. }) => PERSON.to_owned(),
        Some(Wait::Switch { until: None, .. }) => format!("{PERSON} to promote it"),
        Some(Wait::Judgement { what }) => format!("{PERSON}: the {what} was inconclusive"),
        Some(Wait::Resume { .. }) => format!("{PERSON}: paused by hand"),
        _ => PERSON.to_owned(),
    }
}

/// When something ends that began then: with the day if that is another one.
fn clock(since: Timestamp, until: Timestamp) -> String {
    let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
    let format = if day(since) == day(until) { "%H:%M:%S UTC" } else { "%Y-%m-%d %H:%M:%S UTC" };
    until.strftime(format).to_string()
}

impl Progress {
    /// Where it is: `step 3/7, 20 %, `; empty if it has no steps.
    fn place(&self) -> String {
        let step = self.step.map(|(step, of)| format!("step {step}/{of}, ")).unwrap_or_default();
        let weight = self.weight.map(|weight| format!("{weight} %, ")).unwrap_or_default();
        step + &weight
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} of {} pods", self.place(), self.updated, self.replicas)?;
        match &self.waits {
            Some(waits) => write!(f, ", {waits}"),
            None => Ok(()),
        }
    }
}

/// Whether the controller has seen the newest specification.
fn is_observed(object: &Value) -> bool {
    let observed = object.int_at(&["status", "observedGeneration"]);
    observed.is_none_or(|observed| observed >= object.int_at(&["metadata", "generation"]).unwrap_or_default())
}

fn condition<'o>(object: &'o Value, name: &str) -> Option<&'o Value> {
    object.list_at(&["status", "conditions"]).iter().find(|condition| condition.str_at(&["type"]) == Some(name))
}

fn holds(object: &Value, name: &str) -> bool {
    condition(object, name).is_some_and(|condition| condition.str_at(&["status"]) == Some("True"))
}

fn message(condition: Option<&Value>) -> String {
    condition.and_then(|condition| condition.str_at(&["message"])).unwrap_or_default().to_owned()
}

fn named_condition(object: &Value, name: &str, otherwise: &str) -> Doing {
    if holds(object, name) {
        return Doing::new(Standing::Current, "");
    }
    let why = message(condition(object, name));
    let why = if why.is_empty() { why } else { format!(": {why}") };
    Doing::new(Standing::InProgress, format!("{otherwise}{why}"))
}

/// A definition whose names are taken is never established.
fn definition(object: &Value) -> Doing {
    let refused = condition(object, "NamesAccepted").filter(|told| told.str_at(&["status"]) == Some("False"));
    match refused {
        Some(_) => Doing::new(Standing::Stalled, message(refused)),
        None => named_condition(object, "Established", "is not established yet"),
    }
}

/// A load balancer is not waited for: many clusters have none, and everything after it would wait for ever.
/// `tidegate.dev/health` says so where its address matters.
fn service(object: &Value) -> Doing {
    let address = object.str_at(&["spec", "clusterIP"]).unwrap_or_default();
    match object.str_at(&["spec", "type"]) {
        Some("LoadBalancer") if address.is_empty() => Doing::new(Standing::InProgress, "has no address yet"),
        _ => Doing::new(Standing::Current, ""),
    }
}

fn workload(object: &Value) -> Doing {
    if object.int_at(&["status", "observedGeneration"]).is_none() || !is_observed(object) {
        return Doing::new(Standing::InProgress, "was not looked at yet");
    }
    let progressing = condition(object, "Progressing");
    if progressing.is_some_and(|condition| condition.str_at(&["reason"]) == Some("ProgressDeadlineExceeded")) {
        return Doing::new(Standing::Stalled, message(progressing));
    }
    let count = |key: &str| object.int_at(&["status", key]).unwrap_or_default();
    let daemon_set = object.str_at(&["kind"]) == Some("DaemonSet");
    let (wanted, updated) = if daemon_set {
        (count("desiredNumberScheduled"), count("updatedNumberScheduled"))
    } else {
        (object.int_at(&["spec", "replicas"]).unwrap_or(1), count("updatedReplicas"))
    };
    // These have one version of pods only.
    let is_set = matches!(object.str_at(&["kind"]), Some("ReplicaSet" | "ReplicationController"));
    let updated = if is_set { count("replicas") } else { updated };
    let available = if daemon_set { count("numberAvailable") } else { count("availableReplicas") };
    let ready = available.min(updated);
    let needed = wanted_updated(object, wanted);
    // With a partition, or where people delete pods, those of the old version stay.
    let old = !daemon_set && needed == wanted && count("replicas") > updated;
    if updated >= needed && available >= wanted && !old {
        return Doing::new(Standing::Current, "");
    }
    if needed < wanted {
        let words = format!("{updated} of {needed} pods updated, {available} of {wanted} available");
        return Doing::new(Standing::InProgress, words);
    }
    // A Deployment that a Rollout refers to may be held by it.
    if object.at(&["metadata", "annotations", annotation::REVISION]).is_some() && wanted == 0 {
        return Doing::new(Standing::Current, "");
    }
    Doing::new(Standing::InProgress, format!("{ready} of {wanted} pods"))
}

/// An AnalysisRun or an Experiment: it is done when it has ended well.
fn measured(object: &Value) -> Doing {
    let message = object.str_at(&["status", "message"]).unwrap_or_default();
    match object.str_at(&["status", "phase"]).unwrap_or_default() {
        analysis_phase::SUCCESSFUL => Doing::new(Standing::Current, ""),
        phase @ (analysis_phase::FAILED | analysis_phase::ERROR | analysis_phase::INCONCLUSIVE) => {
            let why = if message.is_empty() { String::new() } else { format!(": {message}") };
            Doing::new(Standing::Stalled, format!("{}{why}", phase.to_lowercase()))
        }
        _ => Doing::new(Standing::InProgress, RUNNING),
    }
}

/// How many pods of a workload are to have its newest version: those that a person or a later change of the partition
/// brings are not waited for.
fn wanted_updated(object: &Value, replicas: i64) -> i64 {
    let text = |path: &[&str]| object.str_at(path);
    match object.str_at(&["kind"]) {
        Some("StatefulSet" | "DaemonSet") if text(&["spec", "updateStrategy", "type"]) == Some("OnDelete") => 0,
        Some("StatefulSet") => {
            let partition = object.int_at(&["spec", "updateStrategy", "rollingUpdate", "partition"]);
            (replicas - partition.unwrap_or_default()).max(0)
        }
        _ => replicas,
    }
}

fn job(object: &Value) -> Doing {
    if holds(object, "Failed") {
        return Doing::new(Standing::Stalled, format!("{FAILED}{}", message(condition(object, "Failed"))));
    }
    let suspended = object.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
    if holds(object, "Complete") || suspended {
        return Doing::new(Standing::Current, "");
    }
    Doing::new(Standing::InProgress, RUNNING)
}

fn pod(object: &Value) -> Doing {
    match object.str_at(&["status", "phase"]) {
        Some("Succeeded") => Doing::new(Standing::Current, ""),
        Some("Failed") => Doing::new(Standing::Stalled, "failed"),
        Some("Running") if holds(object, "Ready") => Doing::new(Standing::Current, ""),
        _ => Doing::new(Standing::InProgress, "is not ready yet"),
    }
}

fn claim(object: &Value) -> Doing {
    match object.str_at(&["status", "phase"]) {
        Some("Bound") => Doing::new(Standing::Current, ""),
        Some("Lost") => Doing::new(Standing::Stalled, "lost its volume"),
        // It may wait for its first pod, which may be in a later stage.
        _ => Doing::new(Standing::Current, ""),
    }
}

/// What kstatus makes of any object: its generation and its conditions.
fn generic(object: &Value) -> Doing {
    if !is_observed(object) {
        return Doing::new(Standing::InProgress, "was not looked at yet");
    }
    if holds(object, condition::STALLED) {
        return Doing::new(Standing::Stalled, message(condition(object, condition::STALLED)));
    }
    if holds(object, condition::RECONCILING) {
        return Doing::new(Standing::InProgress, message(condition(object, condition::RECONCILING)));
    }
    let ready = condition(object, condition::READY);
    match ready.and_then(|ready| ready.str_at(&["status"])) {
        Some("True") | None => Doing::new(Standing::Current, ""),
        Some(_) => Doing::new(Standing::InProgress, message(ready)),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::pods::Pods, *};
    use crate::value;

    #[track_caller]
    fn check(object: Value, standing: Standing, words: &str) -> Doing {
        let doing = Doing::of(&object);
        assert_eq!((doing.standing, doing.words.as_str()), (standing, words), "{}", object.to_json());
        doing
    }

    fn canary(status: Value) -> Value {
        value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web", "generation": 3},
            "spec": {"replicas": 5, "strategy": {"canary": {"steps": [
                {"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {"duration": "10s"}}]}}},
            "status": serde_json::Value::from(&status)})
    }

    #[test]
    fn a_rollout_tells_how_far_it_is() {
        let mut status = value!({"observedGeneration": "3", "phase": "Progressing", "stableRS": "a", "currentPodHash": "b",
            "currentStepIndex": 0, "updatedReplicas": 1});
        check(canary(status.clone()), Standing::InProgress, "step 1/4, 20 %, 1 of 5 pods");
        status.set_at(&["phase"], "Paused");
        status.set_at(&["currentStepIndex"], 1);
        check(canary(status.clone()), Standing::InProgress, "step 2/4, 20 %, 1 of 5 pods, waits for a person");
        status.set_at(&["currentStepIndex"], 3);
        status.set_at(&["updatedReplicas"], 3);
        status.set_at(&["controllerPause"], true);
        status
            .set_at(&["pauseConditions"], value!([{"reason": "CanaryPauseStep", "startTime": "2026-01-01T23:59:45Z"}]));
        let words = "step 4/4, 60 %, 3 of 5 pods, pauses until 23:59:55 UTC";
        check(canary(status.clone()), Standing::InProgress, words);
        status.set_at(&["stableRS"], "b");
        status.set_at(&["phase"], "Healthy");
        check(canary(status.clone()), Standing::Current, "");
        status.set_at(&["observedGeneration"], "2");
        check(canary(status), Standing::InProgress, "3 of 5 pods");
    }

    #[test]
    fn a_blue_green_pause_says_who_ends_it_and_when() {
        let of = |strategy: Value| {
            value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web", "generation": 1},
                "spec": {"replicas": 2, "strategy": {"blueGreen": serde_json::Value::from(&strategy)}},
                "status": {"observedGeneration": "1", "phase": "Paused", "stableRS": "a", "currentPodHash": "b", "updatedReplicas": 2,
                    "controllerPause": true, "pauseConditions": [{"reason": "BlueGreenPause", "startTime": "2026-01-01T23:59:45Z"}]}})
        };
        let words = "2 of 2 pods, is promoted by itself at 2026-01-02 00:00:15 UTC";
        check(of(value!({"activeService": "a", "autoPromotionSeconds": 30})), Standing::InProgress, words);
        let words = "2 of 2 pods, waits for a person to promote it";
        check(of(value!({"activeService": "a", "autoPromotionEnabled": false})), Standing::InProgress, words);
    }

    #[test]
    fn what_stands_behind_an_object_is_said_with_it() {
        let pods = Pods { ready: 0, wanted: 2, why: Some("ImagePullBackOff: web:9 not found".into()) };
        let mut detail = Detail { pods: Some(pods), ..Detail::default() };
        let status = value!({"observedGeneration": "3", "phase": "Progressing", "stableRS": "a", "currentPodHash": "b",
            "currentStepIndex": 0, "updatedReplicas": 2});
        let with = |object: &Value, detail: &Detail| Doing::of(object).with(detail).words;
        let unready = "step 1/4, 20 %, 0 of 2 new pods ready: ImagePullBackOff: web:9 not found";
        assert_eq!(with(&canary(status.clone()), &detail), unready);
        let failed = value!({"observedGeneration": "3", "phase": "Degraded", "message": "has timed out progressing",
            "stableRS": "a", "currentPodHash": "b"});
        let words = "0 of 2 new pods ready: ImagePullBackOff: web:9 not found; has timed out progressing";
        assert_eq!(with(&canary(failed.clone()), &detail), words);
        let job = value!({"apiVersion": "batch/v1", "kind": "Job"});
        assert_eq!(with(&job, &detail), "is running: ImagePullBackOff: web:9 not found");
        let deployment = value!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 1}, "spec": {"replicas": 2},
            "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2}});
        assert_eq!(with(&deployment, &detail), "0 of 2 new pods ready: ImagePullBackOff: web:9 not found");
        detail.pods = Some(Pods { ready: 2, wanted: 2, why: None });
        detail.analysis = Some("analysis rate: 0.97, wants result >= 0.95".into());
        let words = "step 1/4, 20 %, 2 of 5 pods, analysis rate: 0.97, wants result >= 0.95";
        assert_eq!(with(&canary(status), &detail), words);
        let words = "its new pods were not ready: x; has timed out progressing";
        assert_eq!(Doing::of(&canary(failed)).remembering("x").words, words);
        assert_eq!(recalling("has timed out progressing.", "x"), words);
        assert_eq!(recalling("aborted: it timed out", "x"), "aborted: its new pods were not ready: x; it timed out");
        let ended = value!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": [
            {"type": "Failed", "status": "True", "message": "Job has reached the specified backoff limit"}]}});
        let pods = Pods { ready: 0, wanted: 1, why: Some("container main: exit code 3".into()) };
        let detail = Detail { pods: Some(pods), ..Detail::default() };
        let words = "failed: container main: exit code 3; Job has reached the specified backoff limit";
        assert_eq!(with(&ended, &detail), words);
    }

    #[test]
    fn an_abort_names_the_template_that_was_given_up() {
        let status = value!({"observedGeneration": "3", "phase": "Degraded", "abort": true, "stableRS": "a", "currentPodHash": "b",
            "message": "RolloutAborted: Rollout aborted update to revision 2"});
        let doing = check(canary(status), Standing::Stalled, "aborted: Rollout aborted update to revision 2");
        assert_eq!(doing.aborted.as_deref(), Some("b"));
    }

    #[test]
    fn pods_that_are_left_to_people_are_not_waited_for() {
        let set = |kind: &str, strategy: Value, status: Value| {
            value!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"generation": 1},
                "spec": {"replicas": 4, "updateStrategy": serde_json::Value::from(&strategy)},
                "status": serde_json::Value::from(&status)})
        };
        let status = |updated: i64, available: i64| {
            value!({"observedGeneration": 1, "replicas": 4, "updatedReplicas": updated, "availableReplicas": available,
                "desiredNumberScheduled": 4, "updatedNumberScheduled": updated, "numberAvailable": available})
        };
        let partition = || value!({"type": "RollingUpdate", "rollingUpdate": {"partition": 3}});
        let on_delete = || value!({"type": "OnDelete"});
        check(set("StatefulSet", partition(), status(1, 4)), Standing::Current, "");
        let words = "0 of 1 pods updated, 4 of 4 available";
        check(set("StatefulSet", partition(), status(0, 4)), Standing::InProgress, words);
        let words = "1 of 1 pods updated, 3 of 4 available";
        check(set("StatefulSet", partition(), status(1, 3)), Standing::InProgress, words);
        check(set("StatefulSet", on_delete(), status(0, 4)), Standing::Current, "");
        check(set("DaemonSet", on_delete(), status(0, 4)), Standing::Current, "");
        check(set("StatefulSet", value!({}), status(1, 4)), Standing::InProgress, "1 of 4 pods");
        check(set("DaemonSet", value!({}), status(4, 4)), Standing::Current, "");
    }

    #[test]
    fn a_measurement_is_done_when_it_ended_well() {
        let run = |kind: &str, phase: &str| value!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "status": {"phase": phase, "message": "too slow"}});
        for kind in ["AnalysisRun", "Experiment"] {
            check(run(kind, "Running"), Standing::InProgress, "is running");
            check(run(kind, "Successful"), Standing::Current, "");
            for phase in ["Failed", "Error", "Inconclusive"] {
                check(run(kind, phase), Standing::Stalled, &format!("{}: too slow", phase.to_lowercase()));
            }
        }
    }

    #[test]
    fn other_kinds_are_read_as_kstatus_reads_them() {
        let deployment = |status: Value| {
            value!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 2},
                "status": serde_json::Value::from(&status)})
        };
        check(deployment(value!({})), Standing::InProgress, "was not looked at yet");
        let moving = value!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 1});
        check(deployment(moving), Standing::InProgress, "1 of 2 pods");
        let done = value!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
        check(deployment(done), Standing::Current, "");
        let job = |condition: &str| value!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": [{"type": condition, "status": "True", "message": "m"}]}});
        check(job("Complete"), Standing::Current, "");
        check(job("Failed"), Standing::Stalled, "failed: m");
        check(job("Other"), Standing::InProgress, "is running");
        check(value!({"apiVersion": "v1", "kind": "ConfigMap"}), Standing::Current, "");
        let widget = |r#type: &str, status: &str| value!({"apiVersion": "example.org/v1", "kind": "Widget", "status": {"conditions": [{"type": r#type, "status": status, "message": "m"}]}});
        check(widget("Ready", "True"), Standing::Current, "");
        check(widget("Ready", "False"), Standing::InProgress, "m");
        check(widget("Stalled", "True"), Standing::Stalled, "m");
    }

    #[test]
    fn every_built_in_kind_is_healthy_as_kstatus_has_it() {
        let of = |api: &str, kind: &str, spec: Value, status: Value| value!({"apiVersion": api, "kind": kind, "metadata": {"generation": 2}, "spec": spec, "status": status});
        let none = || value!({});
        let told =
            |name: &str, status: &str| value!({"conditions": [{"type": name, "status": status, "message": "m"}]});
        let services = [
            (value!({"type": "ClusterIP"}), Standing::Current, ""),
            (value!({"type": "ExternalName"}), Standing::Current, ""),
            (value!({"type": "LoadBalancer"}), Standing::InProgress, "has no address yet"),
            (value!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}), Standing::Current, ""),
        ];
        for (spec, standing, words) in services {
            check(of("v1", "Service", spec, none()), standing, words);
        }
        let budget = |observed: i64| value!({"observedGeneration": observed, "currentHealthy": 0, "desiredHealthy": 2});
        check(of("policy/v1", "PodDisruptionBudget", none(), budget(1)), Standing::InProgress, "was not looked at yet");
        check(of("policy/v1", "PodDisruptionBudget", none(), budget(2)), Standing::Current, "");
        let definition = |status: Value| of("apiextensions.k8s.io/v1", "CustomResourceDefinition", none(), status);
        check(definition(none()), Standing::InProgress, "is not established yet");
        check(definition(told("Established", "False")), Standing::InProgress, "is not established yet: m");
        check(definition(told("Established", "True")), Standing::Current, "");
        check(definition(told("NamesAccepted", "False")), Standing::Stalled, "m");
        let service = |status: &str| of("apiregistration.k8s.io/v1", "APIService", none(), told("Available", status));
        check(service("False"), Standing::InProgress, "is not available yet: m");
        check(service("True"), Standing::Current, "");
        let controller = |ready: i64| {
            let status = value!({"observedGeneration": 2, "replicas": 2, "availableReplicas": ready});
            of("v1", "ReplicationController", value!({"replicas": 2}), status)
        };
        check(controller(1), Standing::InProgress, "1 of 2 pods");
        check(controller(2), Standing::Current, "");
        for kind in ["Namespace", "ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim", "LimitRange"] {
            check(of("v1", kind, none(), none()), Standing::Current, "");
        }
        for (api, kind) in [
            ("batch/v1", "CronJob"),
            ("autoscaling/v2", "HorizontalPodAutoscaler"),
            ("networking.k8s.io/v1", "Ingress"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
            ("rbac.authorization.k8s.io/v1", "Role"),
            ("storage.k8s.io/v1", "StorageClass"),
        ] {
            check(of(api, kind, none(), none()), Standing::Current, "");
        }
        let mut leaving = of("v1", "ConfigMap", none(), none());
        leaving.set_at(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z");
        check(leaving, Standing::InProgress, "is being deleted");
    }
}
