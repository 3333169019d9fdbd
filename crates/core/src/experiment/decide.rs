//! One decision about an Experiment: what is wanted, what status will say, and why.
//!
//! Never says in which order objects are written: that is `diff`'s.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::{
    diff::{Action, Kind},
    phase,
    state::{self, Stage},
    view::{View, name},
};
use crate::{
    analysis::Phase,
    api::{
        ExperimentAnalysisRunStatus, ExperimentStatus, TemplateStatus, Time,
        constants::{annotation, message, reason},
    },
    kubernetes::value::{Text, Value},
    model::event::Event,
};

/// What a decision came to.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The objects as they should be after this pass; `None` leaves them as they are.
    pub target: Option<Target>,
    /// What status will say; `None` leaves it as it is.
    pub status: Option<ExperimentStatus>,
    /// The earliest moment at which time alone would change the answer.
    pub wake: Option<Timestamp>,
    /// What to announce once it is done, in this order.
    pub events: Vec<Event>,
    /// What to announce about the Rollout whose step this is.
    pub for_rollout: Vec<Event>,
}

/// Objects as they should be, by name.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its ReplicaSets.
    pub sets: BTreeMap<Text, Value>,
    /// Its Services; one that is missing here goes.
    pub services: BTreeMap<Text, Value>,
    /// Its AnalysisRuns.
    pub runs: BTreeMap<Text, Value>,
}

impl Target {
    /// The world as it was seen.
    fn of(view: &View) -> Target {
        let named = |object: &Value| (name(object), object.clone());
        Target {
            sets: view.sets.values().map(named).collect(),
            services: view.services.values().map(named).collect(),
            runs: view.runs.iter().map(|run| (run.name.clone(), run.object.clone())).collect(),
        }
    }
}

/// Decides about an Experiment.
pub fn decide(view: &View) -> Verdict {
    let mut pass = Pass::new(view);
    if view.is_leaving() {
        return Verdict { target: None, status: None, ..pass.close() };
    }
    if let Some(problem) = &view.invalid {
        phase::say_invalid(&mut pass.next, problem, pass.now);
        return Verdict { target: None, ..pass.close() };
    }
    for template in &view.experiment.spec.templates {
        pass.version(template);
    }
    for analysis in &view.experiment.spec.analyses {
        pass.analysis(analysis);
    }
    pass.assess();
    pass.close()
}

/// What is said if the server does not take what was to be created, for this reason. The rest waits for the next pass.
pub fn refused(view: &View, action: &Action, why: &str) -> Verdict {
    let mut pass = Pass::new(view);
    if let Action::Create { kind, object } = action {
        pass.refuse(*kind, object, why);
    }
    pass.assess();
    Verdict { target: None, ..pass.close() }
}

/// What has been decided so far.
pub(super) struct Pass<'v> {
    pub view: &'v View,
    pub now: Time,
    /// Whether its end has come, by what status said before.
    pub is_ending: bool,
    pub next: ExperimentStatus,
    pub target: Target,
    events: Vec<Event>,
    for_rollout: Vec<Event>,
    wake: Option<Timestamp>,
}

impl<'v> Pass<'v> {
    fn new(view: &'v View) -> Pass<'v> {
        Pass {
            view,
            now: Time::from(view.now),
            is_ending: state::is_ending(&view.experiment),
            next: view.experiment.status.clone(),
            target: Target::of(view),
            events: Vec::new(),
            for_rollout: Vec::new(),
            wake: None,
        }
    }

    /// Something to announce.
    pub(super) fn say(&mut self, reason: &'static str, message: impl Into<String>) {
        self.events.push(Event { warning: false, reason, message: message.into() });
    }

    /// Time alone changes the answer then, if not before.
    pub(super) fn wake_at(&mut self, time: Timestamp) {
        if time > self.view.now {
            self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
        }
    }

    /// Status and events say how far a version is.
    pub(super) fn tell_version(&mut self, next: TemplateStatus) {
        let before = state::version(&self.view.experiment.status, &next.name);
        let from = before.map(|before| Stage::of(&before.status)).unwrap_or_default();
        let to = Stage::of(&next.status);
        if from != to {
            let message = with(message::template_moved(&next.name, from.as_str(), to.as_str()), &next.message);
            self.events.push(Event { warning: to.is_bad(), reason: to.reason(), message });
        }
        let known = self.next.template_statuses.iter_mut().find(|known| known.name == next.name);
        match known {
            Some(known) => *known = next,
            None => self.next.template_statuses.push(next),
        }
    }

    /// Status and events say how far an analysis is; the Rollout whose step this is hears it, too.
    pub(super) fn tell_analysis(&mut self, next: ExperimentAnalysisRunStatus) {
        let before = state::analysis(&self.view.experiment.status, &next.name);
        let from = before.map(|before| Phase::of(&before.phase)).unwrap_or_default();
        let to = Phase::of(&next.phase);
        if from != to && to != Phase::Unset {
            let message = with(message::analysis_moved(&next.name, from.as_str(), to.as_str()), &next.message);
            let is_lost = to.is_bad() || to == Phase::Inconclusive;
            // To a Rollout Argo Rollouts tells all of it as bad news.
            self.for_rollout.push(Event { warning: true, reason: to.run_reason(), message: message.clone() });
            self.events.push(Event { warning: is_lost, reason: to.run_reason(), message });
        }
        let known = self.next.analysis_runs.iter_mut().find(|known| known.name == next.name);
        match known {
            Some(known) => *known = next,
            None => self.next.analysis_runs.push(next),
        }
    }

    /// The server does not take this object.
    fn refuse(&mut self, kind: Kind, object: &Value, why: &str) {
        let set = name(object);
        let status = &self.view.experiment.status;
        let note = |key: &str| object.str_at(&["metadata", "annotations", key]).unwrap_or_default().to_owned();
        let version = note(annotation::EXPERIMENT_TEMPLATE);
        let known = state::version(status, &version).cloned();
        let mut next = known.unwrap_or_else(|| TemplateStatus { name: version.clone(), ..TemplateStatus::default() });
        Stage::Error.as_str().clone_into(&mut next.status);
        match kind {
            Kind::Set => {
                self.say(reason::REPLICA_SET_CREATE_ERROR, message::replica_set_create_error(&set, why));
                next.message = format!("Failed to create ReplicaSet for template '{version}': {why}");
                self.tell_version(next);
            }
            Kind::Service => {
                let why = format!("cannot create service: {why}");
                next.message = format!("Failed to create Service {set} for template '{version}': {why}");
                self.tell_version(next);
            }
            Kind::Run => {
                let begun = self.view.experiment.spec.analyses.iter();
                let base = |analysis: &str| format!("{}-{analysis}", self.view.experiment.metadata.name);
                let mut begun = begun.map(|analysis| &analysis.name);
                let is_it = |analysis: &&String| {
                    let rest = set.strip_prefix(base(analysis).as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                if let Some(analysis) = begun.find(is_it) {
                    self.tell_analysis(super::analyses::failed(analysis, why));
                }
            }
        }
    }

    /// The Experiment's phase and conditions follow from its parts.
    fn assess(&mut self) {
        let view = self.view;
        phase::assess(&view.experiment, &mut self.next, view.now);
        let (from, to) = (Phase::of(&view.experiment.status.phase), Phase::of(&self.next.phase));
        if from != to {
            let warning = to.is_bad() || to == Phase::Inconclusive;
            let message = message::experiment_moved(from.as_str(), to.as_str());
            self.events.push(Event { warning, reason: to.experiment_reason(), message });
        }
        if let Some(wake) = phase::wake(&view.experiment, &self.next, view.now) {
            self.wake_at(wake);
        }
    }

    fn close(self) -> Verdict {
        Verdict {
            target: Some(self.target),
            status: Some(self.next),
            wake: self.wake,
            events: self.events,
            for_rollout: self.for_rollout,
        }
    }
}

/// A sentence and what adds to it.
fn with(sentence: String, more: &str) -> String {
    if more.is_empty() { sentence } else { format!("{sentence}: {more}") }
}
