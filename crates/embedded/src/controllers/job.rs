//! Jobs run pods until enough of them succeeded or too many failed, and count each exactly once.
//!
//! A pod carries the finalizer `batch.kubernetes.io/job-tracking` until it is counted: its uid is first noted in
//! `status.uncountedTerminatedPods`, then its finalizer is removed, then the counter rises. [`count`], [`ending`] and
//! [`want`] decide; [`sync`] reads and writes in upstream's order, so that the same states show.
//!
//! Not played: `backoffLimitPerIndex` and `successPolicy` of indexed Jobs.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    Next, ask,
    hands::{Hands, JOBS, Key, PODS},
    replicaset::{self, Claim, after, claim, is_namespace_terminating, pod_from_template},
};
use crate::kubernetes::{
    clock::rfc3339,
    object::Object,
    selector::Labels,
    value::{Text, Value},
};
use crate::store::request::{Options, PatchType};

const COMPONENT: &str = "job-controller";
/// The finalizer that keeps a pod until it is counted.
pub const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The wait after the first failure; it doubles with each up to the limit.
const BACK_OFF: SignedDuration = SignedDuration::from_secs(10);
const BACK_OFF_LIMIT: SignedDuration = SignedDuration::from_secs(600);
/// How many pods one pass creates, deletes or counts at most.
const BURST: usize = 500;

/// Failures in a row, by the Job's uid. After a restart they are counted from the pods that still exist.
#[derive(Debug, Default, Clone)]
pub struct Memory(HashMap<Text, Failures>);

/// Failures since the last success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Failures {
    /// How many.
    pub count: u32,
    /// When the last pod failed.
    pub last: Option<Timestamp>,
}

impl Memory {
    /// Forgets a Job that is gone.
    pub fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

/// Brings one Job forward.
pub fn sync(hands: &mut Hands, memory: &mut Memory, key: &Key) -> Next {
    let Some(job) = hands.get(&JOBS, key) else { return Next::Idle };
    let managed = job.value.str_at(&["spec", "managedBy"]).unwrap_or("kubernetes.io/job-controller");
    if is_finished(&job.value) || managed != "kubernetes.io/job-controller" {
        memory.forget(&job.uid());
        return Next::Idle;
    }
    let Some(pods) = claim_pods(hands, &job) else { return Next::Retry };
    let now = hands.now();
    let count = count(&job.value, &pods);
    let known = memory.0.get(&job.uid()).copied().unwrap_or_else(|| past_failures(&job.value, &pods));
    let failures = add_failures(known, &count);
    let mut pass = Pass::new(job.clone(), count);
    pass.start(now);
    pass.end = ending(&pass.job_value(), &pods, &pass.count, now);

    let mut retry = false;
    let mut wake = if pass.end.is_none() { deadline(&pass.status, &job.value) } else { None };
    if pass.end.is_some() {
        retry |= pass.stop_all(hands);
    } else {
        let want = match job.is_terminating() {
            true => Want::Nothing,
            false => want(&pass.job_value(), &pass.count, &failures, now),
        };
        match want {
            Want::Nothing => {}
            Want::Wait(until) => {
                // Upstream reports no active pods while it waits, whatever runs.
                pass.active = 0;
                wake = Some(wake.map_or(until, |first| first.min(until)));
            }
            Want::Remove(doomed) => retry |= pass.remove(hands, &doomed),
            Want::Create(indexes) => retry |= pass.create(hands, &indexes),
        }
        pass.settle(hands, now);
    }
    match pass.track(hands, &pods, now) {
        Ok(()) => {
            memory.0.insert(job.uid(), failures);
        }
        Err(()) => return Next::Retry,
    }
    if retry { Next::Retry } else { wake.map_or(Next::Idle, Next::At) }
}

/// Deletes a finished Job whose time to live is over.
pub fn sync_ttl(hands: &mut Hands, key: &Key) -> Next {
    let Some(job) = hands.get(&JOBS, key).filter(|job| !job.is_terminating()) else { return Next::Idle };
    let Some(due) = expires_at(&job.value) else { return Next::Idle };
    if hands.now() < due {
        return Next::At(due);
    }
    let options = Options { propagation_policy: Some("Foreground".into()), ..Options::default() };
    match hands.delete_with(&JOBS, &job, options) {
        Ok(()) => Next::Idle,
        Err(refused) if refused.code == 404 => Next::Idle,
        Err(_) => Next::Retry,
    }
}

/// Takes the tracking finalizer off a pod whose Job is gone, finished, or no longer its controller.
pub fn sync_orphan(hands: &mut Hands, key: &Key) -> Next {
    let Some(pod) = hands.get(&PODS, key).filter(|pod| is_tracked(&pod.value)) else { return Next::Idle };
    if let Some(owner) = ask::controller_of(&pod.value) {
        let text = |field| owner.get(field).and_then(Value::as_text).cloned().unwrap_or_default();
        if text("kind") != "Job" || text("apiVersion") != "batch/v1" {
            return Next::Idle;
        }
        let job = hands.get(&JOBS, &Key { namespace: key.namespace.clone(), name: text("name") });
        if job.is_some_and(|job| job.uid() == text("uid") && !is_finished(&job.value)) {
            return Next::Idle;
        }
    }
    match untrack(hands, &pod) {
        Ok(()) => Next::Idle,
        Err(()) => Next::Retry,
    }
}

fn untrack(hands: &mut Hands, pod: &Object) -> Result<(), ()> {
    let patch = map! {"metadata": map! {"$deleteFromPrimitiveList/finalizers": Value::list([TRACKING.into()])}};
    match hands.patch(PatchType::Strategic, &PODS, &Key::of(pod), "", patch) {
        Ok(_) => Ok(()),
        Err(refused) if refused.code == 404 => Ok(()),
        Err(_) => Err(()),
    }
}

/// The pods of a Job, orphans adopted and strangers released; `None` if that failed.
fn claim_pods(hands: &mut Hands, job: &Arc<Object>) -> Option<Vec<Arc<Object>>> {
    let selector = Labels::of(job.value.at(&["spec", "selector"]).unwrap_or(&Value::Null)).ok()?;
    let mut found = hands.owned(&PODS, job);
    found.extend(hands.orphan_pods(&job.namespace()));
    let mut pods = Vec::with_capacity(found.len());
    for pod in found {
        match claim(job, &selector, &pod) {
            Claim::Mine => pods.push(pod),
            Claim::Adopt => match hands.adopt(&PODS, job, &pod, &[TRACKING]) {
                Ok(()) => pods.extend(hands.get(&PODS, &Key::of(&pod))),
                Err(refused) if refused.code == 404 => {}
                Err(_) => return None,
            },
            Claim::Release => {
                let refused = hands.release(&PODS, job, &pod, &[TRACKING]).err();
                if refused.is_some_and(|refused| !matches!(refused.code, 404 | 422)) {
                    return None;
                }
            }
            Claim::NotMine => {}
        }
    }
    Some(pods)
}

fn spec_int(job: &Value, field: &str) -> Option<i64> {
    job.int_at(&["spec", field])
}

fn is_suspended(job: &Value) -> bool {
    job.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true)
}

fn is_indexed(job: &Value) -> bool {
    job.str_at(&["spec", "completionMode"]) == Some("Indexed")
}

/// Whether a Job is `Complete` or `Failed`.
pub fn is_finished(job: &Value) -> bool {
    ask::is_true(job, "Complete") || ask::is_true(job, "Failed")
}

fn is_tracked(pod: &Value) -> bool {
    pod.list_at(&["metadata", "finalizers"]).iter().any(|finalizer| *finalizer == TRACKING)
}

/// Whether only failed pods are replaced, and not those on their way out.
fn waits_for_failure(job: &Value) -> bool {
    job.str_at(&["spec", "podReplacementPolicy"]) == Some("Failed") || job.at(&["spec", "podFailurePolicy"]).is_some()
}

fn has_failed(job: &Value, pod: &Value) -> bool {
    match ask::phase(pod) {
        "Failed" => true,
        "Succeeded" => false,
        _ => ask::is_terminating(pod) && !waits_for_failure(job),
    }
}

/// The completion index of a pod of an indexed Job.
fn index_of(pod: &Value) -> Option<i64> {
    ask::annotation(pod, INDEX)?.parse().ok().filter(|index| *index >= 0)
}

/// Whether a pod counts for this Job: those of an indexed Job need an index within range.
fn is_valid(job: &Value, pod: &Value) -> bool {
    !is_indexed(job) || index_of(pod).is_some_and(|index| index < spec_int(job, "completions").unwrap_or(0))
}

/// What a Job's pods come to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Count {
    /// Those that run or wait to.
    pub active: Vec<Arc<Object>>,
    /// How many of them are ready.
    pub ready: i64,
    /// How many are on their way out.
    pub terminating: i64,
    /// Every success, counted in status or not.
    pub succeeded: i64,
    /// Every failure that matters, counted in status or not.
    pub failed: i64,
    /// Successes nobody noted yet.
    pub new_succeeded: Vec<Arc<Object>>,
    /// Failures nobody noted yet.
    pub new_failed: Vec<Arc<Object>>,
    /// The completed indexes of an indexed Job.
    pub indexes: Vec<i64>,
}

/// Counts a Job's pods.
pub fn count(job: &Value, pods: &[Arc<Object>]) -> Count {
    let uncounted = |field| job.list_at(&["status", "uncountedTerminatedPods", field]);
    let noted = |field, pod: &Object| uncounted(field).iter().any(|uid| uid.as_text() == Some(&pod.uid()));
    let new = |field, holds: &dyn Fn(&Value) -> bool| -> Vec<Arc<Object>> {
        let fresh = |pod: &&Arc<Object>| {
            is_tracked(&pod.value) && !noted(field, pod) && is_valid(job, &pod.value) && holds(&pod.value)
        };
        pods.iter().filter(fresh).cloned().collect()
    };
    let active: Vec<_> = pods.iter().filter(|pod| ask::is_active(&pod.value)).cloned().collect();
    let new_succeeded = new("succeeded", &|pod| ask::phase(pod) == "Succeeded");
    let new_failed = new("failed", &|pod| has_failed(job, pod));
    let blamed = new_failed.iter().filter(|pod| failure_rule(job, &pod.value) != Rule::Ignore).count();
    let status = |field| job.int_at(&["status", field]).unwrap_or(0);
    let mut count = Count {
        ready: active.iter().filter(|pod| ask::is_ready(&pod.value)).count() as i64,
        terminating: pods.iter().filter(|pod| ask::is_stopping(&pod.value)).count() as i64,
        succeeded: status("succeeded") + new_succeeded.len() as i64 + uncounted("succeeded").len() as i64,
        failed: status("failed") + blamed as i64 + uncounted("failed").len() as i64,
        indexes: Vec::new(),
        active,
        new_succeeded,
        new_failed,
    };
    if is_indexed(job) {
        let mut indexes = parse_indexes(job.str_at(&["status", "completedIndexes"]).unwrap_or_default());
        indexes.extend(count.new_succeeded.iter().filter_map(|pod| index_of(&pod.value)));
        indexes.retain(|index| *index < spec_int(job, "completions").unwrap_or(0));
        indexes.sort_unstable();
        indexes.dedup();
        count.succeeded = indexes.len() as i64;
        count.indexes = indexes;
    }
    count
}

/// `1,3-5`: the completed indexes of a status.
fn parse_indexes(text: &str) -> Vec<i64> {
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            all.extend(first..=last.min(first.saturating_add(100_000)));
        }
    }
    all
}

/// The completed indexes as a status shows them: runs of three or more with a dash, as upstream prints them.
fn print_indexes(indexes: &[i64]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = indexes;
    while let Some(first) = rest.first() {
        let run = rest.iter().enumerate().take_while(|(at, index)| **index == first + *at as i64).count();
        match run {
            1 => parts.push(first.to_string()),
            2 => parts.extend([first.to_string(), (first + 1).to_string()]),
            _ => parts.push(format!("{first}-{}", first + run as i64 - 1)),
        }
        rest = &rest[run..];
    }
    parts.join(",")
}

/// What the pod failure policy says about a failed pod.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// It counts.
    Count,
    /// It does not count.
    Ignore,
    /// The Job fails at once, with this message.
    Fail(String),
}

/// Finds the first rule of `spec.podFailurePolicy` that matches.
pub fn failure_rule(job: &Value, pod: &Value) -> Rule {
    let meta = |field| pod.str_at(&["metadata", field]).unwrap_or_default();
    for (index, rule) in job.list_at(&["spec", "podFailurePolicy", "rules"]).iter().enumerate() {
        let action = rule.str_at(&["action"]).unwrap_or_default();
        let why = if let Some(codes) = rule.get("onExitCodes") {
            matching_exit(codes, pod).map(|(name, code)| {
                format!(
                    "Container {name} for pod {}/{} failed with exit code {code} matching {action} rule at index {index}",
                    meta("namespace"),
                    meta("name")
                )
            })
        } else {
            let patterns = rule.list_at(&["onPodConditions"]);
            let matches = |condition: &&Value| {
                patterns
                    .iter()
                    .any(|p| p.get("type") == condition.get("type") && p.get("status") == condition.get("status"))
            };
            pod.list_at(&["status", "conditions"]).iter().find(matches).map(|condition| {
                let kind = condition.str_at(&["type"]).unwrap_or_default();
                format!(
                    "Pod {}/{} has condition {kind} matching {action} rule at index {index}",
                    meta("namespace"),
                    meta("name")
                )
            })
        };
        match (why, action) {
            (Some(_), "Ignore") => return Rule::Ignore,
            (Some(why), "FailJob") => return Rule::Fail(why),
            (Some(_), "Count" | "FailIndex") => return Rule::Count,
            _ => {}
        }
    }
    Rule::Count
}

fn matching_exit(codes: &Value, pod: &Value) -> Option<(String, i64)> {
    let statuses = ["containerStatuses", "initContainerStatuses"].map(|list| pod.list_at(&["status", list]));
    statuses.into_iter().flatten().find_map(|status| {
        let name = status.str_at(&["name"])?;
        let code = status.int_at(&["state", "terminated", "exitCode"]).filter(|code| *code != 0)?;
        let named = codes.str_at(&["containerName"]).is_none_or(|wanted| wanted == name);
        let listed = codes.list_at(&["values"]).iter().any(|value| value.as_int() == Some(code));
        let holds = match codes.str_at(&["operator"]) {
            Some("In") => listed,
            Some("NotIn") => !listed,
            _ => false,
        };
        (named && holds).then(|| (name.to_owned(), code))
    })
}

/// How a Job ends.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// Well or badly.
    pub success: bool,
    /// The reason of its conditions.
    pub reason: String,
    /// The message of its conditions.
    pub message: String,
    /// Whether its interim condition (`SuccessCriteriaMet`, `FailureTarget`) is shown already.
    pub announced: bool,
}

impl End {
    fn failure(reason: &str, message: impl Into<String>) -> End {
        End { success: false, reason: reason.into(), message: message.into(), announced: false }
    }

    fn announced(condition: &Value, success: bool) -> End {
        let text = |field| condition.str_at(&[field]).unwrap_or_default().to_owned();
        End { success, reason: text("reason"), message: text("message"), announced: true }
    }
}

/// Whether a Job must end now, for a reason other than enough successes.
pub fn ending(job: &Value, pods: &[Arc<Object>], count: &Count, now: Timestamp) -> Option<End> {
    let announced = |kind| ask::condition(job, kind).filter(|condition| condition.str_at(&["status"]) == Some("True"));
    if let Some(condition) = announced("SuccessCriteriaMet") {
        return Some(End::announced(condition, true));
    }
    if let Some(condition) = announced("FailureTarget") {
        return Some(End::announced(condition, false));
    }
    for pod in pods.iter().filter(|pod| has_failed(job, &pod.value)) {
        if let Rule::Fail(why) = failure_rule(job, &pod.value) {
            return Some(End::failure("PodFailurePolicy", why));
        }
    }
    let limit = spec_int(job, "backoffLimit").unwrap_or(6);
    if count.failed > limit || restarted_too_often(job, pods, limit) {
        return Some(End::failure("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    let due = deadline(job.get("status").unwrap_or(&Value::Null), job);
    due.filter(|due| *due <= now)
        .map(|_| End::failure("DeadlineExceeded", "Job was active longer than specified deadline"))
}

/// Whether containers that restart in place used up the backoff limit.
fn restarted_too_often(job: &Value, pods: &[Arc<Object>], limit: i64) -> bool {
    if job.str_at(&["spec", "template", "spec", "restartPolicy"]) != Some("OnFailure") {
        return false;
    }
    let alive = pods.iter().filter(|pod| matches!(ask::phase(&pod.value), "Running" | "Pending"));
    let restarts: i64 = alive
        .flat_map(|pod| {
            let lists = ["initContainerStatuses", "containerStatuses"].map(|list| pod.value.list_at(&["status", list]));
            lists.into_iter().flatten().map(|status| status.int_at(&["restartCount"]).unwrap_or(0)).collect::<Vec<_>>()
        })
        .sum();
    if limit == 0 { restarts > 0 } else { restarts >= limit }
}

/// When `activeDeadlineSeconds` are over.
fn deadline(status: &Value, job: &Value) -> Option<Timestamp> {
    if is_suspended(job) {
        return None;
    }
    let seconds = spec_int(job, "activeDeadlineSeconds")?;
    Some(after(ask::time(status.get("startTime"))?, seconds))
}

/// When `ttlSecondsAfterFinished` are over.
pub fn expires_at(job: &Value) -> Option<Timestamp> {
    let ttl = spec_int(job, "ttlSecondsAfterFinished")?;
    let conditions = ["Complete", "Failed"].map(|kind| ask::condition(job, kind));
    let done = conditions.into_iter().flatten().find(|condition| condition.str_at(&["status"]) == Some("True"))?;
    Some(after(ask::time(done.get("lastTransitionTime"))?, ttl))
}

/// What is to be done about a running Job's pods.
#[derive(Debug, Clone, PartialEq)]
pub enum Want {
    /// Nothing.
    Nothing,
    /// Pods are missing, but only after this time.
    Wait(Timestamp),
    /// These go.
    Remove(Vec<Arc<Object>>),
    /// So many are missing; of an indexed Job with these indexes.
    Create(Vec<Option<i64>>),
}

/// Decides what is missing or too much.
pub fn want(job: &Value, count: &Count, failures: &Failures, now: Timestamp) -> Want {
    let active = count.active.len() as i64;
    if is_suspended(job) {
        return if active > 0 { Want::Remove(count.active.clone()) } else { Want::Nothing };
    }
    let parallelism = spec_int(job, "parallelism").unwrap_or(1);
    let wanted = match spec_int(job, "completions") {
        None if count.succeeded > 0 => active,
        None => parallelism,
        Some(completions) => (completions - count.succeeded).clamp(0, parallelism.max(0)),
    };
    let doomed = surplus(job, &count.active, usize::try_from(active - wanted).unwrap_or(0), now);
    if !doomed.is_empty() {
        return Want::Remove(doomed);
    }
    let leaving = if waits_for_failure(job) { count.terminating } else { 0 };
    let missing = usize::try_from(wanted - leaving - active).unwrap_or(0).min(BURST);
    if missing == 0 {
        return Want::Nothing;
    }
    if let Some(until) = failures.wait_until().filter(|until| *until > now) {
        return Want::Wait(until);
    }
    if !is_indexed(job) {
        return Want::Create(vec![None; missing]);
    }
    let busy: HashSet<i64> = count.active.iter().filter_map(|pod| index_of(&pod.value)).collect();
    let free = |index: &i64| !busy.contains(index) && count.indexes.binary_search(index).is_err();
    Want::Create((0..spec_int(job, "completions").unwrap_or(0)).filter(free).take(missing).map(Some).collect())
}

/// The pods that go: of an indexed Job first those whose index is invalid or taken, then the least useful.
fn surplus(job: &Value, active: &[Arc<Object>], at_least: usize, now: Timestamp) -> Vec<Arc<Object>> {
    let mut seen = HashSet::new();
    let (mut doomed, mut left) = (Vec::new(), Vec::new());
    for pod in active {
        let needless = is_indexed(job) && !(is_valid(job, &pod.value) && seen.insert(index_of(&pod.value)));
        if needless { doomed.push(pod.clone()) } else { left.push(pod.clone()) }
    }
    if doomed.len() < at_least {
        doomed.extend(replicaset::deletion_order(&left, &[], now).into_iter().take(at_least - doomed.len()));
    }
    doomed.truncate(BURST);
    doomed
}

impl Failures {
    /// When the next pod may be created.
    fn wait_until(&self) -> Option<Timestamp> {
        let doublings = self.count.checked_sub(1)?.min(6);
        let wait = BACK_OFF.saturating_mul(1 << doublings).min(BACK_OFF_LIMIT);
        self.last?.checked_add(wait).ok()
    }
}

/// The failures after a pass that found new pods finished.
pub fn add_failures(mut known: Failures, count: &Count) -> Failures {
    let mut failed: Vec<Timestamp> = count.new_failed.iter().map(|pod| finished_at(&pod.value)).collect();
    failed.sort_unstable();
    let last_success = count.new_succeeded.iter().map(|pod| finished_at(&pod.value)).max();
    if let Some(success) = last_success {
        known = Failures::default();
        failed.retain(|time| *time > success);
    }
    if let Some(last) = failed.last() {
        known = Failures { count: known.count + failed.len() as u32, last: Some(*last) };
    }
    known
}

/// The failures that pods tell of which were counted before.
fn past_failures(job: &Value, pods: &[Arc<Object>]) -> Failures {
    let counted = |holds: &dyn Fn(&Value) -> bool| -> Vec<Arc<Object>> {
        pods.iter().filter(|pod| !is_tracked(&pod.value) && holds(&pod.value)).cloned().collect()
    };
    let past = Count {
        new_succeeded: counted(&|pod| ask::phase(pod) == "Succeeded"),
        new_failed: counted(&|pod| has_failed(job, pod)),
        ..Count::default()
    };
    add_failures(Failures::default(), &past)
}

/// When a pod finished: by its containers, else by its readiness, its deletion, its creation.
fn finished_at(pod: &Value) -> Timestamp {
    let statuses = pod.list_at(&["status", "containerStatuses"]);
    let ends: Option<Vec<Timestamp>> =
        statuses.iter().map(|status| ask::time(status.at(&["state", "terminated", "finishedAt"]))).collect();
    let unready = || {
        let ready = ask::condition(pod, "Ready").filter(|ready| ready.str_at(&["status"]) == Some("False"))?;
        ask::time(ready.get("lastTransitionTime"))
    };
    let deleted = || {
        let grace = pod.int_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
        ask::time(pod.at(&["metadata", "deletionTimestamp"])).map(|time| after(time, -grace))
    };
    let ended = ends.and_then(|ends| ends.into_iter().max());
    ended.or_else(unready).or_else(deleted).or_else(|| ask::created_at(pod)).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// One pass over a Job: its status as it grows.
struct Pass {
    job: Arc<Object>,
    count: Count,
    status: Value,
    active: i64,
    end: Option<End>,
    changed: bool,
}

impl Pass {
    fn new(job: Arc<Object>, count: Count) -> Pass {
        let mut status = job.value.get("status").cloned().unwrap_or_else(Value::object);
        if status.get("uncountedTerminatedPods").is_none() {
            status.set_at(&["uncountedTerminatedPods"], Value::object());
        }
        let active = count.active.len() as i64;
        Pass { job, count, status, active, end: None, changed: false }
    }

    /// The Job with the status of this pass.
    fn job_value(&self) -> Value {
        let mut job = self.job.value.clone();
        job.set_at(&["status"], &self.status);
        job
    }

    fn start(&mut self, now: Timestamp) {
        if self.status.get("startTime").is_none() && !is_suspended(&self.job.value) {
            self.status.set_at(&["startTime"], rfc3339(now));
        }
    }

    /// Deletes every active pod of a Job that ends; says whether some are left.
    fn stop_all(&mut self, hands: &mut Hands) -> bool {
        let active = std::mem::take(&mut self.count.active);
        let left = self.delete(hands, &active);
        if left {
            self.end = None;
        }
        left
    }

    /// Uncounted pods go without a trace: their finalizer first, then they.
    fn remove(&mut self, hands: &mut Hands, doomed: &[Arc<Object>]) -> bool {
        let freed = doomed.iter().filter(|pod| !is_tracked(&pod.value) || untrack(hands, pod).is_ok());
        let freed: Vec<_> = freed.cloned().collect();
        let failed = freed.len() < doomed.len();
        self.delete(hands, &freed) || failed
    }

    fn delete(&mut self, hands: &mut Hands, pods: &[Arc<Object>]) -> bool {
        let mut failed = false;
        for pod in pods {
            match hands.delete(&PODS, pod) {
                Ok(()) => {
                    let message = format!("Deleted pod: {}", pod.name());
                    hands.event(COMPONENT, &self.job, "Normal", "SuccessfulDelete", message);
                }
                Err(refused) if refused.code == 404 => {}
                Err(refused) => {
                    let message = format!("Error deleting: {refused}");
                    hands.event(COMPONENT, &self.job, "Warning", "FailedDelete", message);
                    failed = true;
                    continue;
                }
            }
            self.active -= 1;
            self.count.terminating += 1;
            self.count.ready -= i64::from(ask::is_ready(&pod.value));
        }
        failed
    }

    fn create(&mut self, hands: &mut Hands, indexes: &[Option<i64>]) -> bool {
        let mut base = pod_from_template(&self.job);
        let mut finalizers = base.list_at(&["metadata", "finalizers"]).to_vec();
        finalizers.push(TRACKING.into());
        base.set_at(&["metadata", "finalizers"], finalizers);
        for index in indexes {
            let pod = match index {
                Some(index) => indexed_pod(&base, &self.job.name(), *index),
                None => base.clone(),
            };
            match hands.create(&PODS, &self.job.namespace(), pod) {
                Ok(made) => {
                    let message = format!("Created pod: {}", made.name());
                    hands.event(COMPONENT, &self.job, "Normal", "SuccessfulCreate", message);
                }
                Err(refused) if is_namespace_terminating(&refused) => {}
                Err(refused) => {
                    let message = format!("Error creating: {refused}");
                    hands.event(COMPONENT, &self.job, "Warning", "FailedCreate", message);
                    return true;
                }
            }
            self.active += 1;
        }
        false
    }

    /// Decides whether the Job is complete, else shows whether it is suspended.
    fn settle(&mut self, hands: &mut Hands, now: Timestamp) {
        let enough = match spec_int(&self.job.value, "completions") {
            None => self.count.succeeded > 0,
            Some(completions) => self.count.succeeded >= completions,
        };
        if enough && self.active == 0 {
            let message = "Reached expected number of succeeded pods";
            let (reason, message) = ("CompletionsReached".to_owned(), message.to_owned());
            self.end = Some(End { success: true, reason, message, announced: false });
            return;
        }
        if self.job.is_terminating() {
            return;
        }
        let (status, reason, message, event) = match is_suspended(&self.job.value) {
            true => ("True", "JobSuspended", "Job suspended", "Suspended"),
            false => ("False", "JobResumed", "Job resumed", "Resumed"),
        };
        if self.ensure("Suspended", status, reason, message, now) {
            self.changed = true;
            hands.event(COMPONENT, &self.job, "Normal", event, message);
            if status == "False" {
                self.status.set_at(&["startTime"], rfc3339(now));
            }
        }
    }

    /// Sets a condition; one that is false is never added, only changed to. Says whether anything changed.
    fn ensure(&mut self, kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> bool {
        let mut conditions = self.status.list_at(&["conditions"]).to_vec();
        let shown = conditions.iter().position(|condition| condition.str_at(&["type"]) == Some(kind));
        let same = |condition: &Value| {
            condition.str_at(&["status"]) == Some(status)
                && condition.str_at(&["reason"]).unwrap_or_default() == reason
                && condition.str_at(&["message"]).unwrap_or_default() == message
        };
        match shown {
            Some(at) if same(&conditions[at]) => return false,
            Some(at) => conditions[at] = condition(kind, status, reason, message, now),
            None if status == "False" => return false,
            None => conditions.push(condition(kind, status, reason, message, now)),
        }
        self.status.set_at(&["conditions"], conditions);
        true
    }

    /// Notes finished pods, removes their finalizers, counts them, and ends the Job if it is over.
    fn track(&mut self, hands: &mut Hands, pods: &[Arc<Object>], now: Timestamp) -> Result<(), ()> {
        for (field, count) in
            [("active", self.active), ("ready", self.count.ready), ("terminating", self.count.terminating)]
        {
            if self.status.int_at(&[field]).unwrap_or(if field == "active" { 0 } else { -1 }) != count {
                self.changed = true;
                set_count(&mut self.status, field, count);
            }
        }
        let tracked: HashSet<Text> = pods.iter().filter(|pod| is_tracked(&pod.value)).map(|pod| pod.uid()).collect();
        self.changed |= self.tally(&tracked);
        let freed = self.note(pods);
        if is_indexed(&self.job.value) {
            let text = print_indexes(&self.count.indexes);
            self.changed |= self.status.str_at(&["completedIndexes"]).unwrap_or_default() != text;
            set_count(&mut self.status, "succeeded", self.count.indexes.len() as i64);
            if !text.is_empty() {
                self.status.set_at(&["completedIndexes"], text);
            }
        }
        if let Some(end) = self.end.clone().filter(|end| !end.announced) {
            let kind = if end.success { "SuccessCriteriaMet" } else { "FailureTarget" };
            let mut conditions = self.status.list_at(&["conditions"]).to_vec();
            conditions.push(condition(kind, "True", &end.reason, &end.message, now));
            self.status.set_at(&["conditions"], conditions);
            self.changed = true;
        }
        self.flush(hands)?;
        let mut left = tracked;
        let mut failed = false;
        for pod in &freed {
            match untrack(hands, pod) {
                Ok(()) => drop(left.remove(&pod.uid())),
                Err(()) => failed = true,
            }
        }
        self.changed |= self.tally(&left);
        if failed {
            self.flush(hands)?;
            return Err(());
        }
        let over = self.finish(now);
        self.flush(hands)?;
        if let Some(end) = over {
            let (kind, reason, message) = match end.success {
                true => ("Normal", "Completed", "Job completed"),
                false => ("Warning", end.reason.as_str(), end.message.as_str()),
            };
            hands.event(COMPONENT, &self.job, kind, reason, message);
        }
        Ok(())
    }

    /// Counts the noted pods that no longer carry the finalizer. Says whether anything changed.
    fn tally(&mut self, tracked: &HashSet<Text>) -> bool {
        let mut changed = false;
        for field in ["succeeded", "failed"] {
            let noted = self.status.list_at(&["uncountedTerminatedPods", field]);
            let left: Vec<Value> =
                noted.iter().filter(|uid| uid.as_text().is_some_and(|uid| tracked.contains(uid))).cloned().collect();
            let counted = noted.len() - left.len();
            if counted == 0 {
                continue;
            }
            changed = true;
            let total = self.status.int_at(&[field]).unwrap_or(0) + counted as i64;
            set_count(&mut self.status, field, total);
            match left.is_empty() {
                true => drop(self.status.remove_at(&["uncountedTerminatedPods", field])),
                false => self.status.set_at(&["uncountedTerminatedPods", field], left),
            }
        }
        changed
    }

    /// Notes the uids of finished pods; returns the pods whose finalizer may go.
    fn note(&mut self, pods: &[Arc<Object>]) -> Vec<Arc<Object>> {
        let job = self.job.value.clone();
        let failing = self.end.as_ref().is_some_and(|end| !end.success);
        let mut freed = Vec::new();
        for pod in pods.iter().filter(|pod| is_tracked(&pod.value)) {
            let succeeded = ask::phase(&pod.value) == "Succeeded";
            let failed = has_failed(&job, &pod.value);
            if !(self.job.is_terminating() || self.end.is_some() || succeeded || failed) {
                continue;
            }
            freed.push(pod.clone());
            let uid = pod.uid();
            let noted = |status: &Value, field| {
                status.list_at(&["uncountedTerminatedPods", field]).iter().any(|known| known.as_text() == Some(&uid))
            };
            let field = if succeeded && !noted(&self.status, "failed") {
                // The completion index is enough to count a pod of an indexed Job once.
                if is_indexed(&job) { None } else { Some("succeeded") }
            } else if (failed || failing) && is_valid(&job, &pod.value) {
                (failure_rule(&job, &pod.value) != Rule::Ignore).then_some("failed")
            } else {
                None
            };
            if let Some(field) = field.filter(|field| !noted(&self.status, field)) {
                let mut list = self.status.list_at(&["uncountedTerminatedPods", field]).to_vec();
                list.push(uid.clone().into());
                self.status.set_at(&["uncountedTerminatedPods", field], list);
                self.changed = true;
            }
            if freed.len() >= BURST {
                break;
            }
        }
        freed
    }

    /// Adds the final condition once every pod is counted and gone.
    fn finish(&mut self, now: Timestamp) -> Option<End> {
        let end = self.end.clone()?;
        let uncounted = self.status.at(&["uncountedTerminatedPods"]).and_then(Value::as_map);
        if uncounted.is_some_and(|uncounted| !uncounted.is_empty()) || self.count.terminating > 0 {
            return None;
        }
        let kind = if end.success { "Complete" } else { "Failed" };
        self.ensure(kind, "True", &end.reason, &end.message, now);
        if end.success {
            self.status.set_at(&["completionTime"], rfc3339(now));
        }
        self.changed = true;
        Some(end)
    }

    fn flush(&mut self, hands: &mut Hands) -> Result<(), ()> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        self.job = hands.update_status(&JOBS, &self.job, self.status.clone()).map_err(drop)?;
        Ok(())
    }
}

/// Sets a counter; `ready` and `terminating` show a zero, the others do not.
fn set_count(status: &mut Value, field: &str, count: i64) {
    if count == 0 && !matches!(field, "ready" | "terminating") {
        status.remove_at(&[field]);
    } else {
        status.set_at(&[field], count);
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let time = rfc3339(now);
    map! {
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastProbeTime": &time, "lastTransitionTime": &time,
    }
}

/// A pod of an indexed Job knows its index by annotation, label, environment and host name.
fn indexed_pod(base: &Value, job: &str, index: i64) -> Value {
    let mut pod = base.clone();
    let text = index.to_string();
    pod.set_at(&["metadata", "annotations", INDEX], text.as_str());
    pod.set_at(&["metadata", "labels", INDEX], text.as_str());
    pod.set_at(&["metadata", "generateName"], format!("{job}-{index}-"));
    pod.set_at(&["spec", "hostname"], format!("{job}-{index}"));
    let path = map! {"apiVersion": "v1", "fieldPath": format!("metadata.labels['{INDEX}']")};
    let variable = map! {"name": "JOB_COMPLETION_INDEX", "valueFrom": map! {"fieldRef": path}};
    for list in ["initContainers", "containers"] {
        let mut containers = pod.list_at(&["spec", list]).to_vec();
        for container in &mut containers {
            let mut env = container.list_at(&["env"]).to_vec();
            if !env.iter().any(|given| given.str_at(&["name"]) == Some("JOB_COMPLETION_INDEX")) {
                env.push(variable.clone());
                container.set_at(&["env"], env);
            }
        }
        if !containers.is_empty() {
            pod.set_at(&["spec", list], containers);
        }
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn pod(name: &str, phase: &str, finished: &str) -> Arc<Object> {
        let value = value!({
            "metadata": {"name": name, "namespace": "shop", "uid": name, "finalizers": [TRACKING]},
            "status": {"phase": phase, "containerStatuses": [
                {"name": "c", "state": {"terminated": {"exitCode": 3, "finishedAt": finished}}}]},
        });
        Arc::new(Object { value, managers: Default::default() })
    }

    #[test]
    fn indexes_read_and_print_as_upstream_shows_them() {
        for (text, indexes) in
            [("", vec![]), ("0", vec![0]), ("0,1", vec![0, 1]), ("0-2,5,7,8", vec![0, 1, 2, 5, 7, 8])]
        {
            assert_eq!(parse_indexes(text), indexes);
            assert_eq!(print_indexes(&indexes), text);
        }
    }

    #[test]
    fn a_failure_policy_decides_by_its_first_rule_that_matches() {
        let failed = pod("p", "Failed", "2026-01-01T00:00:00Z");
        let job = |operator: &str, values: Value, action: &str| {
            let mut codes = value!({"operator": operator});
            codes.set_at(&["values"], values);
            let mut rule = value!({"action": action});
            rule.set_at(&["onExitCodes"], codes);
            let mut job = value!({"spec": {}});
            job.set_at(&["spec", "podFailurePolicy", "rules"], Value::list([rule]));
            job
        };
        let message = "Container c for pod shop/p failed with exit code 3 matching FailJob rule at index 0";
        for (job, expected) in [
            (value!({"spec": {}}), Rule::Count),
            (job("In", value!([3]), "FailJob"), Rule::Fail(message.to_owned())),
            (job("In", value!([3]), "Ignore"), Rule::Ignore),
            (job("NotIn", value!([3]), "FailJob"), Rule::Count),
            (job("In", value!([4]), "Ignore"), Rule::Count),
        ] {
            assert_eq!(failure_rule(&job, &failed.value), expected, "{job}");
        }
    }

    #[test]
    fn waits_double_with_each_failure_and_a_success_ends_them() {
        let failed = |second: i64| pod("f", "Failed", &format!("2026-01-01T00:00:{second:02}Z"));
        let wait = |count: u32| {
            let last = Timestamp::UNIX_EPOCH;
            Failures { count, last: Some(last) }.wait_until().unwrap().as_second()
        };
        assert_eq!([1, 2, 3, 6, 7, 50].map(wait), [10, 20, 40, 320, 600, 600]);
        let fresh = Count { new_failed: vec![failed(5), failed(9)], ..Count::default() };
        let known = add_failures(Failures::default(), &fresh);
        assert_eq!((known.count, known.last.map(|last| last.to_string())), (2, Some("2026-01-01T00:00:09Z".into())));
        let success = Count {
            new_succeeded: vec![pod("s", "Succeeded", "2026-01-01T00:00:07Z")],
            new_failed: vec![failed(5), failed(9)],
            ..Count::default()
        };
        assert_eq!(add_failures(known, &success).count, 1);
    }
}
