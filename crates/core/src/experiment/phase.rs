//! What the parts of an Experiment come to: its phase, its conditions, and when to look again.
//!
//! Never looks at objects: status says how far each part is.

use jiff::{SignedDuration, Timestamp};

use super::{
    state::{self, Stage},
    versions,
};
use crate::{
    analysis::Phase,
    api::{
        Experiment, ExperimentCondition, ExperimentStatus, Time,
        constants::{condition, message, reason},
    },
    model::conditions::Truth,
};

/// What is over at a moment is over right after it.
const MOMENT: SignedDuration = SignedDuration::from_millis(1);

/// Sets phase, message, the time since when all are available, and conditions.
pub(super) fn assess(experiment: &Experiment, next: &mut ExperimentStatus, now: Timestamp) {
    match Phase::of(&next.phase) {
        Phase::Unset => Phase::Pending.as_str().clone_into(&mut next.phase),
        Phase::Pending | Phase::Running => {
            let (phase, message) = outcome(experiment, next, now);
            phase.as_str().clone_into(&mut next.phase);
            next.message = message;
        }
        Phase::Successful | Phase::Failed | Phase::Error | Phase::Inconclusive => {}
    }
    say_conditions(experiment, next, now);
}

fn outcome(experiment: &Experiment, next: &mut ExperimentStatus, now: Timestamp) -> (Phase, String) {
    let (versions, versions_message) = of_versions(experiment, next);
    let (analyses, analyses_message) = of_analyses(experiment, next);
    if versions == Phase::Running {
        next.available_at.get_or_insert(Time::from(now));
    }
    let is_up_to_analyses = if versions.is_over() {
        versions == Phase::Successful && (analyses.is_over() || state::has_required(experiment))
    } else {
        analyses.is_over() && analyses != Phase::Successful || state::required_have_succeeded(experiment, next)
    };
    if is_up_to_analyses { (analyses, analyses_message) } else { (versions, versions_message) }
}

/// The worst of the versions.
fn of_versions(experiment: &Experiment, status: &ExperimentStatus) -> (Phase, String) {
    let (mut worst, mut message) = (Stage::Successful, String::new());
    for template in &experiment.spec.templates {
        let Some(version) = state::version(status, &template.name) else {
            worst = worst.worse(Stage::Progressing);
            continue;
        };
        let stage = Stage::of(&version.status);
        if stage.is_worse_than(worst) {
            (worst, message) = (stage, version.message.clone());
        }
    }
    (worst.phase(), message)
}

/// The worst of the analyses; one that is still to come counts as under way.
fn of_analyses(experiment: &Experiment, status: &ExperimentStatus) -> (Phase, String) {
    let (mut worst, mut message) = (Phase::Successful, String::new());
    for analysis in &experiment.spec.analyses {
        let Some(known) = state::analysis(status, &analysis.name) else { continue };
        let phase = Phase::of(&known.phase);
        if phase.is_worse_than(worst) {
            (worst, message) = (phase, known.message.clone());
        }
    }
    if worst == Phase::Successful && state::required_have_succeeded(experiment, status) {
        return (worst, message::REQUIRED_ANALYSES_COMPLETED.to_owned());
    }
    (if worst == Phase::Pending { Phase::Running } else { worst }, message)
}

/// When time alone changes the answer, by what status will say.
pub(super) fn wake(experiment: &Experiment, next: &ExperimentStatus, now: Timestamp) -> Option<Timestamp> {
    let after = Experiment { status: next.clone(), ..experiment.clone() };
    if state::is_ending(&after) {
        return None;
    }
    let end = state::end(&after).filter(|end| *end >= now);
    let seconds = state::deadline_seconds(&after);
    let deadlines = after.spec.templates.iter().filter_map(|template| {
        let version = state::version(next, &template.name)?;
        let is_open = matches!(Stage::of(&version.status), Stage::Progressing | Stage::Running);
        let is_short = version.available_replicas != state::replicas(&after, template);
        versions::deadline(version, seconds).filter(|_| is_open && is_short)
    });
    let soonest = end.into_iter().chain(deadlines).min()?;
    Some(soonest.saturating_add(MOMENT).unwrap_or(Timestamp::MAX))
}

/// Says what is wrong with the specification.
pub(super) fn say_invalid(next: &mut ExperimentStatus, problem: &str, now: Time) {
    let known = next.conditions.iter().find(|known| known.r#type == condition::INVALID_SPEC);
    if known.is_some_and(|known| known.message != problem) {
        remove(next, condition::INVALID_SPEC);
    }
    set(next, new(condition::INVALID_SPEC, Truth::True, reason::INVALID_SPEC, problem.to_owned(), now));
}

fn say_conditions(experiment: &Experiment, next: &mut ExperimentStatus, now: Timestamp) {
    // It would not have come here otherwise.
    remove(next, condition::INVALID_SPEC);
    let (name, time) = (&experiment.metadata.name, Time::from(now));
    let progressing = |holds, reason, message| new(condition::PROGRESSING, holds, reason, message, time);
    if Phase::of(&next.phase) == Phase::Successful {
        let told = message::experiment_completed(name);
        set(next, progressing(Truth::False, reason::EXPERIMENT_COMPLETED, told));
    } else if state::is_progress(&experiment.status, next) {
        let told = message::experiment_progressing(name);
        let mut said = progressing(Truth::True, reason::REPLICA_SET_UPDATED, told);
        // Said again with each progress, so that its last update tells when there was some.
        let known = next.conditions.iter().find(|known| known.r#type == condition::PROGRESSING);
        if let Some(known) = known.filter(|known| known.status == said.status) {
            said.last_transition_time = known.last_transition_time;
        }
        remove(next, condition::PROGRESSING);
        next.conditions.push(said);
    } else if state::is_running(experiment, now) {
        let told = message::experiment_running(name);
        set(next, progressing(Truth::True, reason::NEW_REPLICA_SET_AVAILABLE, told));
    }
}

fn new(r#type: &str, holds: Truth, reason: &str, message: String, now: Time) -> ExperimentCondition {
    ExperimentCondition {
        r#type: r#type.to_owned(),
        status: holds.as_str().to_owned(),
        last_update_time: now,
        last_transition_time: now,
        reason: reason.to_owned(),
        message,
    }
}

/// Sets a condition, if it says anything new.
fn set(status: &mut ExperimentStatus, mut said: ExperimentCondition) {
    let known = status.conditions.iter().find(|known| known.r#type == said.r#type);
    if let Some(known) = known.filter(|known| known.status == said.status) {
        if known.reason == said.reason {
            return;
        }
        said.last_transition_time = known.last_transition_time;
    }
    remove(status, &said.r#type.clone());
    status.conditions.push(said);
}

fn remove(status: &mut ExperimentStatus, r#type: &str) {
    status.conditions.retain(|known| known.r#type != r#type);
}
