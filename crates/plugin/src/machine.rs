//! The machine of step plugins, as Argo Rollouts has it in `status.canary.stepPluginStatuses`: which operation is due, and
//! what its answer makes of the entries.
//!
//! Pure: the caller calls the plugin and keeps the time. One quirk of Argo Rollouts is kept: a plugin that answers with phase
//! Error leaves no time to try again, so its step waits until the update is aborted or promoted.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::call::step::{Operation, StepResult};

/// An entry of `status.canary.stepPluginStatuses`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The step, from 0.
    pub index: i32,
    /// The plugin.
    pub name: String,
    /// Why it is in its phase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How it stands; none for a plugin that is disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// The end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How long to wait after the last call, in Go's notation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub backoff: String,
    /// How often it was called.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub executions: i32,
    /// What it was called for.
    pub operation: Operation,
    /// Whether it was skipped because it is disabled.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disabled: bool,
    /// What the plugin wants to find again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Json>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

fn is_false(is: &bool) -> bool {
    !is
}

/// How a step plugin stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It goes on.
    Running,
    /// It is done.
    Successful,
    /// It is done, and the update is aborted.
    Failed,
    /// It could not be called, or said so.
    Error,
}

impl Phase {
    fn parse(text: &str) -> Result<Self, MachineError> {
        match text {
            "Running" => Ok(Phase::Running),
            "Successful" => Ok(Phase::Successful),
            "Failed" => Ok(Phase::Failed),
            "Error" => Ok(Phase::Error),
            _ => Err(MachineError::UnknownPhase(text.to_owned())),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Running => "Running",
            Phase::Successful => "Successful",
            Phase::Failed => "Failed",
            Phase::Error => "Error",
        }
    }
}

/// What stops the machine for this time; nothing is noted then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// The plugin answered with a phase that does not exist.
    #[error("could not validate rpc phase: phase '{0}' is not valid")]
    UnknownPhase(String),
    /// The entry's backoff is none.
    #[error("could not parse backoff duration: time: invalid duration {0:?}")]
    Backoff(String),
}

/// A step of the canary that is a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step<'a> {
    /// The step, from 0.
    pub index: i32,
    /// The plugin.
    pub plugin: &'a str,
    /// Whether it is disabled in the ConfigMap.
    pub availability: Availability,
}

/// Whether a plugin is to be called at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// It is.
    Enabled,
    /// Its steps are skipped.
    Disabled,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Move {
    /// Nothing: it is done, or was never begun.
    Nothing,
    /// Nothing yet: the entry stays as it is.
    Wait(Entry),
    /// Note this entry; the plugin is not called.
    Note(Entry),
    /// Call the plugin with what it reported last, and hand its answer to [`answered`].
    Call {
        /// What is noted of the call so far.
        entry: Entry,
        /// What the plugin reported last.
        status: Option<Json>,
    },
}

/// Running plugins are called again after this time if they do not ask for more.
const BACKOFF: SignedDuration = SignedDuration::from_secs(30);
/// A plugin cannot ask for less than this.
const LEAST_BACKOFF: SignedDuration = SignedDuration::from_secs(10);
/// Added to the time at which a plugin is called again, so that the reconcile does not come too early.
const MARGIN: SignedDuration = SignedDuration::from_secs(5);

/// What an operation on a step comes to.
pub fn due(entries: &[Entry], step: Step<'_>, operation: Operation, now: Timestamp) -> Result<Move, MachineError> {
    match operation {
        Operation::Run => due_run(entries, step, now),
        Operation::Terminate => Ok(due_end(entries, step, operation, now, &[Phase::Running])),
        Operation::Abort => Ok(due_end(entries, step, operation, now, &[Phase::Running, Phase::Successful])),
    }
}

fn find<'a>(entries: &'a [Entry], step: Step<'_>, operation: Operation) -> Option<&'a Entry> {
    let is_it = |entry: &&Entry| (entry.index, &*entry.name, entry.operation) == (step.index, step.plugin, operation);
    entries.iter().find(is_it)
}

fn new(step: Step<'_>, operation: Operation, phase: Option<Phase>, now: Option<Timestamp>) -> Entry {
    Entry {
        index: step.index,
        name: step.plugin.to_owned(),
        message: String::new(),
        phase,
        started_at: now,
        updated_at: None,
        finished_at: None,
        backoff: String::new(),
        executions: 0,
        operation,
        disabled: false,
        status: None,
    }
}

fn due_run(entries: &[Entry], step: Step<'_>, now: Timestamp) -> Result<Move, MachineError> {
    if step.availability == Availability::Disabled {
        return Ok(Move::Note(Entry { disabled: true, ..new(step, Operation::Run, None, None) }));
    }
    let entry = match find(entries, step, Operation::Run).filter(|entry| !entry.disabled) {
        Some(entry) => entry.clone(),
        None => new(step, Operation::Run, Some(Phase::Running), Some(now)),
    };
    if matches!(entry.phase, Some(Phase::Successful | Phase::Failed)) {
        return Ok(Move::Nothing);
    }
    if entry.executions > 0 {
        let again = again_at(&entry).ok_or_else(|| MachineError::Backoff(entry.backoff.clone()))?;
        if again > now {
            return Ok(Move::Wait(entry));
        }
    }
    let status = entry.status.clone();
    Ok(Move::Call { entry, status })
}

/// When a plugin may be called again; `None` if its backoff is no duration.
fn again_at(entry: &Entry) -> Option<Timestamp> {
    let backoff = parse_duration(&entry.backoff)?;
    // Without an update Go counts from the year 1, which is long ago.
    let updated = entry.updated_at.unwrap_or(Timestamp::MIN);
    Some(updated.saturating_add(backoff).unwrap_or(Timestamp::MAX))
}

fn due_end(entries: &[Entry], step: Step<'_>, operation: Operation, now: Timestamp, from: &[Phase]) -> Move {
    let run = find(entries, step, Operation::Run);
    let Some(run) = run.filter(|run| !run.disabled && run.phase.is_some_and(|phase| from.contains(&phase))) else {
        return Move::Nothing;
    };
    if step.availability == Availability::Disabled || find(entries, step, operation).is_some() {
        return Move::Nothing;
    }
    Move::Call { entry: new(step, operation, Some(Phase::Successful), Some(now)), status: run.status.clone() }
}

/// What a plugin's answer makes of an entry; the error is that of a call that failed or that the plugin refused.
pub fn answered(entry: Entry, outcome: Result<StepResult, String>, now: Timestamp) -> Result<Entry, MachineError> {
    match entry.operation {
        Operation::Run => answered_run(entry, outcome, now),
        Operation::Terminate | Operation::Abort => answered_end(entry, outcome, now),
    }
}

fn answered_run(entry: Entry, outcome: Result<StepResult, String>, now: Timestamp) -> Result<Entry, MachineError> {
    let mut entry = Entry {
        backoff: String::new(),
        updated_at: Some(now),
        executions: entry.executions.saturating_add(1),
        ..entry
    };
    let result = match outcome {
        Ok(result) => result,
        Err(message) => {
            return Ok(Entry { phase: Some(Phase::Error), message, backoff: go_duration(BACKOFF), ..entry });
        }
    };
    entry.message = result.message;
    if !result.phase.is_empty() {
        entry.phase = Some(Phase::parse(&result.phase)?);
    }
    match entry.phase {
        Some(Phase::Successful | Phase::Failed) => {
            entry.finished_at = Some(now);
            entry.status = result.status;
        }
        Some(Phase::Running) => {
            let asked = SignedDuration::from_nanos(result.requeue_after);
            entry.backoff = go_duration(if asked > LEAST_BACKOFF { asked } else { BACKOFF });
            entry.status = result.status;
        }
        Some(Phase::Error) | None => {}
    }
    Ok(entry)
}

fn answered_end(entry: Entry, outcome: Result<StepResult, String>, now: Timestamp) -> Result<Entry, MachineError> {
    let mut entry = Entry { finished_at: Some(now), ..entry };
    match outcome {
        Ok(result) => {
            if !result.phase.is_empty() {
                entry.phase = Some(Phase::parse(&result.phase)?);
            }
            // It must be done at once.
            if entry.phase == Some(Phase::Running) {
                entry.phase = Some(Phase::Failed);
            }
            entry.message = result.message;
        }
        Err(message) => (entry.phase, entry.message) = (Some(Phase::Error), message),
    }
    Ok(entry)
}

/// Puts an entry among the others: in the place of the one it follows, else at the end.
pub fn put(entries: &mut Vec<Entry>, entry: Entry) {
    let key = |entry: &Entry| (entry.index, entry.operation);
    match entries.iter_mut().find(|other| key(other) == key(&entry)) {
        Some(other) => *other = entry,
        None => entries.push(entry),
    }
}

/// The operations on an aborted update: every step that ran, the last one first.
pub fn to_abort(entries: &[Entry]) -> Vec<(i32, &str)> {
    let runs = entries.iter().rev().filter(|entry| entry.operation == Operation::Run);
    runs.map(|entry| (entry.index, entry.name.as_str())).collect()
}

/// The operation on an update that is promoted past its steps: the last one that still runs and was not terminated.
pub fn to_terminate(entries: &[Entry]) -> Option<(i32, &str)> {
    for entry in entries.iter().rev() {
        match (entry.operation, entry.phase) {
            (Operation::Terminate, Some(Phase::Successful)) => return None,
            (Operation::Run, Some(Phase::Running)) => return Some((entry.index, &entry.name)),
            (Operation::Run | Operation::Terminate | Operation::Abort, _) => {}
        }
    }
    None
}

/// Whether the step is complete, as far as its plugin is concerned.
pub fn is_complete(entries: &[Entry], index: i32) -> bool {
    let of = |operation| entries.iter().find(move |entry| entry.index == index && entry.operation == operation);
    let Some(run) = of(Operation::Run) else { return false };
    match run.phase {
        Some(Phase::Successful | Phase::Failed) => true,
        Some(Phase::Running) => of(Operation::Terminate).is_some() || of(Operation::Abort).is_some(),
        Some(Phase::Error) | None => run.disabled,
    }
}

/// Whether the entries are those of an update that was aborted and begins again: they are dropped.
pub fn is_stale(entries: &[Entry], current: i32, first: Option<Step<'_>>) -> bool {
    current == 0 && !entries.is_empty() && first.is_none_or(|step| is_complete(entries, step.index))
}

/// When to look again after Run; `None` if it is done.
pub fn look_again_at(entry: &Entry) -> Option<Timestamp> {
    match (entry.operation, entry.phase) {
        (Operation::Run, Some(Phase::Running | Phase::Error)) => {
            again_at(entry).map(|again| again.saturating_add(MARGIN).unwrap_or(Timestamp::MAX))
        }
        (Operation::Run | Operation::Terminate | Operation::Abort, _) => None,
    }
}

/// The message with which a failed step aborts the update.
pub fn abort_message(entry: &Entry) -> Option<String> {
    let is_failed = (entry.operation, entry.phase) == (Operation::Run, Some(Phase::Failed));
    let step = i64::from(entry.index) + 1;
    is_failed.then(|| format!("Step Plugin {step} ({}) failed: {}", entry.name, entry.message))
}

/// What a change of an entry is worth: an event of reason `StepPluginTransition`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// Its text.
    pub message: String,
    /// Whether it is a warning.
    pub is_warning: bool,
}

/// The event of a change, if it is one.
pub fn transition(before: Option<&Entry>, after: &Entry) -> Option<Transition> {
    let phase = after.phase.filter(|_| !after.disabled)?;
    let is_new = before.is_none_or(|before| before.phase != Some(phase));
    if !is_new || (after.operation, phase) == (Operation::Run, Phase::Successful) {
        return None;
    }
    let (name, step, phase_name) = (&after.name, i64::from(after.index) + 1, phase.name());
    let what = match after.operation {
        Operation::Run => format!("transitioned to {phase_name}"),
        Operation::Abort => format!("aborted ({phase_name})"),
        Operation::Terminate => format!("terminated ({phase_name})"),
    };
    let is_warning = matches!(phase, Phase::Error | Phase::Failed);
    Some(Transition { message: format!("Step plugin {name} (step {step}) {what}"), is_warning })
}

/// A duration as Go writes it: `1m30s`, `10.001s`, `1h0m0s`.
fn go_duration(duration: SignedDuration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".into();
    }
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let fraction = |nanos: u128, unit: u128| {
        let digits = unit.ilog10() as usize;
        let text = format!("{}.{:0digits$}", nanos / unit, nanos % unit);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match nanos {
        0..1_000 => format!("{sign}{nanos}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", fraction(nanos, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", fraction(nanos, 1_000_000)),
        _ => {
            let seconds = fraction(nanos % 60_000_000_000, 1_000_000_000);
            let minutes = nanos / 60_000_000_000;
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// Reads a duration of Go: numbers with units, at least one; a lone zero needs none.
fn parse_duration(text: &str) -> Option<SignedDuration> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1_i128, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut nanos = 0_i128;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at_checked(end)?;
        let end = tail.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(end)?;
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() > 19 || (whole.is_empty() && part.is_empty()) || part.contains('.') {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        nanos = nanos.checked_add(whole.checked_mul(unit)?)?;
        let digits = part.get(..part.len().min(18))?;
        if let Ok(part) = digits.parse::<i128>() {
            nanos = nanos.checked_add(part.checked_mul(unit)? / 10_i128.pow(digits.len() as u32))?;
        }
        rest = tail;
    }
    i64::try_from(nanos * sign).ok().map(SignedDuration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_duration(text: &str, nanos: Option<i64>) {
        assert_eq!(parse_duration(text), nanos.map(SignedDuration::from_nanos), "{text}");
    }

    #[test]
    fn durations_are_those_of_go() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (-2_000_000, "-2ms"),
            (10_001_000_000, "10.001s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (i64::MAX, "2562047h47m16.854775807s"),
        ] {
            assert_eq!(go_duration(SignedDuration::from_nanos(nanos)), text);
            check_duration(text, Some(nanos));
        }
        check_duration("+1.5h", Some(5_400_000_000_000));
        check_duration(".5s", Some(500_000_000));
        check_duration("0", Some(0));
        for text in ["", "1", "s", "-", ".s", "1.2.3s", "1 s", "3000000h", "99999999999999999999s", "1d"] {
            check_duration(text, None);
        }
    }

    fn entry(index: i32, operation: Operation, phase: Option<Phase>) -> Entry {
        let step = Step { index, plugin: "a/b", availability: Availability::Enabled };
        new(step, operation, phase, None)
    }

    #[test]
    fn what_is_aborted_and_terminated_depends_on_what_ran() {
        use Operation::{Abort, Run, Terminate};
        let ran = [entry(0, Run, Some(Phase::Successful)), entry(2, Run, Some(Phase::Running))];
        assert_eq!(to_abort(&ran), [(2, "a/b"), (0, "a/b")]);
        assert_eq!(to_terminate(&ran), Some((2, "a/b")));
        let ended = [ran[1].clone(), entry(2, Terminate, Some(Phase::Successful))];
        assert_eq!(to_terminate(&ended), None);
        let failed = [ran[1].clone(), entry(2, Terminate, Some(Phase::Failed))];
        assert_eq!(to_terminate(&failed), Some((2, "a/b")));
        assert!(is_complete(&ran, 0) && !is_complete(&ran, 2) && is_complete(&ended, 2) && !is_complete(&ran, 1));
        assert!(is_complete(&[ran[1].clone(), entry(2, Abort, Some(Phase::Error))], 2));
        assert!(!is_complete(&[entry(0, Run, Some(Phase::Error))], 0));
        assert!(is_complete(&[Entry { disabled: true, ..entry(0, Run, None) }], 0));
    }

    #[test]
    fn entries_of_an_update_that_begins_again_are_dropped() {
        let step = |index| Step { index, plugin: "a/b", availability: Availability::Enabled };
        let done = [entry(0, Operation::Run, Some(Phase::Successful))];
        let running = [entry(0, Operation::Run, Some(Phase::Running))];
        assert!(is_stale(&done, 0, Some(step(0))) && is_stale(&done, 0, None));
        assert!(!is_stale(&running, 0, Some(step(0))) && !is_stale(&done, 1, None) && !is_stale(&[], 0, None));
    }

    #[test]
    fn a_change_of_phase_is_an_event() {
        let event = |before: Option<&Entry>, after: &Entry| {
            transition(before, after).map(|event| (event.message, event.is_warning))
        };
        let running = entry(1, Operation::Run, Some(Phase::Running));
        let failed = entry(1, Operation::Run, Some(Phase::Failed));
        let text = |what: &str, is_warning| Some((format!("Step plugin a/b (step 2) {what}"), is_warning));
        assert_eq!(event(None, &running), text("transitioned to Running", false));
        assert_eq!(event(Some(&running), &running), None);
        assert_eq!(event(Some(&running), &failed), text("transitioned to Failed", true));
        assert_eq!(event(Some(&running), &entry(1, Operation::Run, Some(Phase::Successful))), None);
        assert_eq!(
            event(None, &entry(1, Operation::Abort, Some(Phase::Successful))),
            text("aborted (Successful)", false)
        );
        assert_eq!(event(None, &entry(1, Operation::Terminate, Some(Phase::Error))), text("terminated (Error)", true));
        assert_eq!(event(None, &Entry { disabled: true, ..running.clone() }), None);
        let message = "Step Plugin 2 (a/b) failed: it broke";
        assert_eq!(abort_message(&Entry { message: "it broke".into(), ..failed }).as_deref(), Some(message));
        assert_eq!(abort_message(&running), None);
    }

    #[test]
    fn the_next_look_is_a_little_after_the_backoff() {
        let at = |entry: &Entry| look_again_at(entry).map(|at| at.to_string());
        let running = Entry {
            updated_at: Some(Timestamp::UNIX_EPOCH),
            backoff: "30s".into(),
            ..entry(0, Operation::Run, Some(Phase::Running))
        };
        assert_eq!(at(&running).as_deref(), Some("1970-01-01T00:00:35Z"));
        assert_eq!(at(&Entry { phase: Some(Phase::Error), backoff: String::new(), ..running.clone() }), None);
        assert_eq!(at(&Entry { phase: Some(Phase::Successful), ..running }), None);
    }
}
