//! The decision about a Rollout, from top to bottom.
//!
//! A pass does one thing at a time and then lets the world answer: it makes the ReplicaSet, or says that a pause began, or
//! scales, or moves on. The order is that of Argo Rollouts, because people and tools watch the states in between.

use super::{
    canary::is_new_attempt,
    diff::Action,
    pass::Pass,
    rest::is_at_rest,
    step,
    target::Verdict,
    view::{Conditions, Set, View},
};
use crate::{
    api::{
        RolloutStatus, Time,
        constants::{condition, kind, message, reason},
    },
    kubernetes::value::Value,
    model::{
        conditions::{self, Truth},
        health::{self, Health, Standing},
        limits,
        memory::Abort,
        names::StepText,
        template,
    },
    route,
};

/// What a Rollout is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Situation {
    /// It is on its way out, and its ReplicaSets go with it.
    Leaving,
    /// Its template cannot be read as a whole.
    Malformed,
    /// Its specification cannot be acted upon.
    Invalid(String),
    /// The name of its next ReplicaSet is taken by another template's.
    NameTaken,
    /// There is no ReplicaSet of its template.
    NewTemplate,
    /// It does not say how many pods; an autoscaler needs a number there.
    Unsized,
    /// It asks for what this version of the engine cannot do.
    Unsupported(String),
    /// A pause began or ended, or an abort ended, and no condition says so yet.
    Unsaid,
    /// The ReplicaSet of its template was there before status knew of it: it was adopted, or status was lost.
    FoundTemplate,
    /// Its size changed.
    Scaling,
    /// Nothing stands in the way of its strategy.
    Moving,
}

impl Situation {
    /// What the Rollout is in: the first that applies.
    pub fn of(view: &View) -> Situation {
        let rollout = &view.rollout;
        if rollout.metadata.deletion_timestamp.is_some() {
            return Situation::Leaving;
        }
        if view.reading.is_some() {
            return Situation::Malformed;
        }
        if let Some(problem) = &view.invalid {
            return Situation::Invalid(problem.clone());
        }
        if view.new.is_none() {
            return if view.name_is_taken { Situation::NameTaken } else { Situation::NewTemplate };
        }
        if rollout.spec.replicas.is_none() {
            return Situation::Unsized;
        }
        if let Some(what) = unsupported(view) {
            return Situation::Unsupported(what);
        }
        if !unsaid(view).is_empty() {
            return Situation::Unsaid;
        }
        if conditions::find(&rollout.status.conditions, condition::PROGRESSING).is_none() {
            return Situation::FoundTemplate;
        }
        let is_outdated = |set: &Set| {
            set.info.desired > 0 && set.info.noted_replicas().is_some_and(|noted| noted != limits::replicas(rollout))
        };
        let is_scaling = view.new_set().is_some_and(is_outdated) || view.stable_set().is_some_and(is_outdated);
        if is_scaling { Situation::Scaling } else { Situation::Moving }
    }
}

/// Decides what should be, from what was seen.
pub fn decide(view: &View) -> Verdict {
    if is_at_rest(view) { Verdict::nothing() } else { deliberate(view) }
}

/// The long way, which every Rollout may take.
pub fn deliberate(view: &View) -> Verdict {
    let mut pass = Pass::new(view);
    let situation = Situation::of(view);
    if !matches!(situation, Situation::Leaving) {
        pass.claim();
    }
    match situation {
        Situation::Leaving => {
            pass.because("the rollout is being deleted");
            pass.close(None)
        }
        Situation::Malformed => pass.take_reading(),
        Situation::Invalid(problem) => pass.invalid(&problem),
        Situation::NameTaken => {
            let mut status = view.rollout.status.clone();
            status.collision_count = Some(template::next_collision(status.collision_count));
            pass.because("another template has this hash; the next one counts the collision in");
            pass.close(Some(status))
        }
        Situation::NewTemplate => pass.new_template(),
        Situation::Unsized => {
            pass.target.rollout.set_at(&["spec", "replicas"], limits::replicas(&view.rollout));
            pass.close(None)
        }
        Situation::Unsupported(what) => pass.unsupported(&what),
        Situation::Unsaid => pass.say_pauses(),
        Situation::FoundTemplate => pass.found_template(),
        Situation::Scaling => pass.scale_only(),
        Situation::Moving => pass.advance(),
    }
}

/// What follows when the server refuses to create an object: status and an event say so, and nothing else changes. `None`
/// for an action that creates neither a ReplicaSet, an AnalysisRun nor an Experiment.
pub fn refused(view: &View, action: &Action, why: &str) -> Option<Verdict> {
    match action {
        Action::CreateSet { .. } => Some(refused_set(view, why)),
        Action::CreateRun { run } => Some(refused_run(view, kind::ANALYSIS_RUN, run, why)),
        Action::CreateExperiment { experiment } => Some(refused_run(view, kind::EXPERIMENT, experiment, why)),
        Action::Patch { .. }
        | Action::DeleteSet { .. }
        | Action::DeleteRun { .. }
        | Action::DeleteExperiment { .. }
        | Action::Route { .. }
        | Action::Evict { .. } => None,
    }
}

/// An AnalysisRun or an Experiment that cannot be created stops the update, as Argo Rollouts does. Argo says so only in its log; here it is
/// told like an argument that leads nowhere.
fn refused_run(view: &View, kind: &str, run: &Value, why: &str) -> Verdict {
    let name = run.str_at(&["metadata", "name"]).unwrap_or_default();
    let problem = format!("{kind} '{name}' cannot be created: {why}");
    let mut pass = Pass::new(view);
    let text = message::invalid_spec(&view.rollout.metadata.name, &problem);
    let said = conditions::find(&view.rollout.status.conditions, condition::INVALID_SPEC);
    if said.is_none_or(|said| said.message != text.as_str()) {
        pass.warn(reason::RECONCILIATION_ERROR, message::reconciliation_error(&problem));
    }
    pass.invalid(&problem)
}

/// The ReplicaSet of a new template cannot be created.
fn refused_set(view: &View, why: &str) -> Verdict {
    let mut pass = Pass::new(view);
    let name = crate::model::names::replica_set(&view.rollout.metadata.name, &view.hash);
    let told = message::replica_set_create_error(&name, why);
    let mut status = view.rollout.status.clone();
    let reason = reason::REPLICA_SET_CREATE_ERROR;
    let kind = condition::PROGRESSING;
    let said = conditions::say(&mut status.conditions, kind, Truth::False, reason, told.as_str(), pass.now());
    if said == conditions::Set::Changed {
        pass.warn(reason, told);
    }
    status.observed_generation = view.rollout.metadata.generation.to_string();
    // No attempt has begun that could have a duration.
    pass.conclude(&mut status);
    pass.close(Some(status))
}

impl Pass<'_> {
    /// Keeps serving, changes nothing, names every problem.
    pub(super) fn invalid(mut self, problem: &str) -> Verdict {
        let rollout = &self.view.rollout;
        let text = message::invalid_spec(&rollout.metadata.name, problem);
        let mut status = rollout.status.clone();
        if conditions::find(&status.conditions, condition::INVALID_SPEC).is_some_and(|old| old.message != text.as_str())
        {
            conditions::remove(&mut status.conditions, condition::INVALID_SPEC);
        }
        let (kind, reason) = (condition::INVALID_SPEC, reason::INVALID_SPEC);
        conditions::say(&mut status.conditions, kind, Truth::True, reason, text, self.now());
        self.because(format!("the specification is invalid: {problem}"));
        self.observe(&mut status);
        self.close(Some(status))
    }

    /// What this version cannot do is said where people look: in a condition, in the phase, and once as an event.
    fn unsupported(mut self, what: &str) -> Verdict {
        let rollout = &self.view.rollout;
        let text = message::invalid_spec(&rollout.metadata.name, what);
        let said = conditions::find(&rollout.status.conditions, condition::INVALID_SPEC);
        if said.is_none_or(|said| said.message != text.as_str()) {
            self.warn(reason::INVALID_SPEC, text);
        }
        self.invalid(what)
    }

    /// A template that has no ReplicaSet gets one, without pods.
    fn new_template(mut self) -> Verdict {
        let view = self.view;
        self.create_set();
        let name = crate::model::names::replica_set(&view.rollout.metadata.name, &view.hash);
        let mut status = view.rollout.status.clone();
        let (kind, told) = (condition::PROGRESSING, message::new_replica_set(&name));
        conditions::say(&mut status.conditions, kind, Truth::True, reason::NEW_REPLICA_SET, told, self.now());
        self.close(Some(status))
    }

    /// A template whose ReplicaSet is there keeps it.
    fn found_template(mut self) -> Verdict {
        let view = self.view;
        // A new revision would make this version the latest: which one is stable is recorded first.
        if !view.has_remembered_stable() {
            self.sync_revision();
        }
        let mut status = view.rollout.status.clone();
        let name = view.new_set().map(|new| new.info.name.as_str()).unwrap_or_default();
        let (kind, told) = (condition::PROGRESSING, message::found_replica_set(name));
        conditions::say(&mut status.conditions, kind, Truth::True, reason::FOUND_NEW_REPLICA_SET, told, self.now());
        self.close(Some(status))
    }

    /// Conditions say what people did, before anything follows from it.
    fn say_pauses(self) -> Verdict {
        let view = self.view;
        let generation = view.rollout.metadata.generation.to_string();
        let mut status = view.rollout.status.clone();
        for (kind, holds, reason, message) in unsaid(view) {
            conditions::say(&mut status.conditions, kind, holds, reason, message, self.now());
        }
        let is_observed = status.observed_generation == generation;
        // Argo Rollouts has observed the generation here, too: otherwise a Rollout that is paused while it is healthy would
        // be called unavailable by the next pass. What status says of another template is not about this generation.
        if !is_new_attempt(view) {
            status.observed_generation = generation;
        }
        self.conclude(&mut status);
        if is_observed {
            status.duration = self.duration(&status);
        }
        self.close(Some(status))
    }

    /// Sizes follow the Rollout's before anything else does.
    fn scale_only(mut self) -> Verdict {
        let view = self.view;
        self.sync_revision();
        let mut status = view.rollout.status.clone();
        let total = |count: fn(&Set) -> i32| view.sets.iter().map(count).sum();
        let active = if view.rollout.spec.strategy.blue_green.is_some() {
            self.blue_green_sets();
            view.set_of(&status.blue_green.active_selector)
        } else {
            self.canary_sets();
            None
        };
        status.hpa_replicas = active.map_or_else(|| total(|set| set.info.current), |set| set.info.current);
        status.available_replicas = active.map_or_else(|| total(|set| set.info.available), |set| set.info.available);
        self.persist_sizes(status)
    }

    /// The strategy has its turn.
    fn advance(mut self) -> Verdict {
        self.sync_revision();
        let status = &self.view.rollout.status;
        if health::is_fully_promoted(status) && self.view.memory.abort.is_on() {
            self.because("an abort of what is fully promoted means nothing");
            self.memory.abort = Abort::No;
        }
        if self.view.rollout.spec.strategy.blue_green.is_some() { self.blue_green() } else { self.canary() }
    }

    /// Status is about this generation, and its phase and duration follow from the rest of it.
    fn observe(&self, status: &mut RolloutStatus) {
        let rollout = &self.view.rollout;
        status.observed_generation = rollout.metadata.generation.to_string();
        self.conclude(status);
        status.duration = self.duration(status);
    }

    /// How the Rollout is doing follows from the rest of its status: in the words of Argo Rollouts, and in those of kstatus.
    pub(super) fn conclude(&self, status: &mut RolloutStatus) {
        let health = Health::of(&self.view.rollout.spec, &self.judged(status));
        (status.phase, status.message) = (health.phase_word().to_owned(), health.to_string());
        match self.view.conditions {
            Conditions::Kstatus => Standing::say(&health, &mut status.conditions, self.now()),
            Conditions::Argo => Standing::unsay(&mut status.conditions),
        }
    }

    /// The time, as status notes it.
    pub(super) fn now(&self) -> Time {
        Time::from(self.view.now)
    }
}

/// What conditions should say about pauses and the abort, and do not.
fn unsaid(view: &View) -> Vec<(&'static str, Truth, &'static str, &'static str)> {
    let rollout = &view.rollout;
    let status = &rollout.status;
    let progressing = conditions::find(&status.conditions, condition::PROGRESSING);
    let has_reason = |reason: &str| progressing.is_some_and(|condition| condition.reason == reason);
    let is_paused = view.memory.hold.first().is_some() || rollout.spec.paused;
    let is_aborted = has_reason(reason::ROLLOUT_ABORTED);
    let mut unsaid = Vec::new();
    if is_paused != has_reason(reason::ROLLOUT_PAUSED) && !is_aborted && !conditions::is_completed(status) {
        let (reason, message) = if is_paused {
            (reason::ROLLOUT_PAUSED, message::PAUSED)
        } else {
            (reason::ROLLOUT_RESUMED, message::RESUMED)
        };
        unsaid.push((condition::PROGRESSING, Truth::Unknown, reason, message));
    }
    if !view.memory.abort.is_on() && is_aborted {
        unsaid.push((condition::PROGRESSING, Truth::Unknown, reason::ROLLOUT_RETRY, message::RETRY));
    }
    let paused = conditions::find(&status.conditions, condition::PAUSED);
    let is_said = paused.is_some_and(|condition| condition.status == Truth::True.as_str());
    if is_paused != is_said && !is_aborted {
        unsaid.push((condition::PAUSED, Truth::from(is_paused), reason::ROLLOUT_PAUSED, message::PAUSED));
    }
    unsaid
}

/// What this version of the engine cannot do. It keeps the world as it is rather than doing half of it.
fn unsupported(view: &View) -> Option<String> {
    let canary = view.rollout.spec.strategy.canary.as_ref()?;
    let router = canary.traffic_routing.as_ref().and_then(|routing| route::leaves(routing).err());
    if let Some(router) = router {
        return Some(format!("traffic routing with {router} is not part of this version of Tidegate"));
    }
    if canary.traffic_routing.is_none() && canary.ping_pong.is_some() {
        return Some("ping-pong services need traffic routing".to_owned());
    }
    // A first version, an abort and a full promotion take no steps.
    let (status, memory) = (&view.rollout.status, &view.memory);
    let is_updating = !status.stable_rs.is_empty() && status.stable_rs != view.hash.as_str();
    if !is_updating || memory.abort.is_on() || memory.promotion.is_full() {
        return None;
    }
    // What lies behind is done, by whichever controller.
    let ahead = step::position(&view.rollout).map(|position| usize::try_from(position.index).unwrap_or_default())?;
    let mut steps = canary.steps.iter().enumerate().skip(ahead);
    let (at, step) = steps.find(|(_, step)| !step::is_supported(step))?;
    Some(format!("step {} ({}) is not part of this version of Tidegate", at + 1, StepText(step)))
}
