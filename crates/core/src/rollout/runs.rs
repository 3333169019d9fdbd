//! The AnalysisRuns of a Rollout: which are wanted, what their outcome means for it, and which are no longer kept.
//!
//! Each purpose has one run at a time, named in status. Never measures, and never takes a run for a success that is not
//! one.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    history::{self, Limits, Outcome},
    pass::Pass,
    step::{self, Position},
    templates,
    view::View,
};
use crate::{
    analysis::Phase,
    api::{
        self, AnalysisRunSpec, AnalysisRunStatus, RolloutAnalysis, RolloutAnalysisRunStatus, RolloutStatus,
        constants::{API_VERSION, annotation, kind, label},
    },
    kubernetes::{
        object,
        value::{Map, Text, Value},
    },
    model::{
        arguments::{self, Versions},
        compose, health,
        memory::{Abort, PauseReason},
        names::{self, Purpose},
        references::AnalysisRole,
        refers,
        replica_set::ReplicaSet,
    },
    value,
};

/// How many finished runs are kept if nothing is said.
const KEPT: i32 = 5;

/// An AnalysisRun or an Experiment that a Rollout controls.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its name.
    pub name: Text,
    /// How far it is.
    pub phase: Phase,
    /// Why.
    pub message: Text,
    /// The whole of it.
    pub object: Value,
}

impl Run {
    fn of(object: &Value) -> Run {
        let text = |path: &[&str]| object.at(path).and_then(Value::as_text).cloned().unwrap_or_default();
        Run {
            name: text(&["metadata", "name"]),
            phase: Phase::of(&text(&["status", "phase"])),
            message: text(&["status", "message"]),
            object: object.clone(),
        }
    }

    /// The version it belongs to; `None` if it does not say.
    pub fn hash(&self) -> Option<&str> {
        self.object.str_at(&["metadata", "labels", label::POD_TEMPLATE_HASH])
    }

    /// Whether nobody controls it.
    pub fn is_orphan(&self) -> bool {
        object::controller(&self.object).is_none()
    }

    /// Whether it is on its way out.
    pub fn is_leaving(&self) -> bool {
        self.object.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null())
    }

    /// Whether it still runs, and nobody has told it to end.
    pub fn is_at_work(&self) -> bool {
        let is_ending = self.object.at(&["spec", "terminate"]).and_then(Value::as_bool) == Some(true);
        !is_ending && !self.phase.is_over()
    }
}

/// The AnalysisRuns or Experiments of a namespace, by what they are to an owner of this uid: its own, and the names that others
/// have. Those that nobody controls and that belong to one of its `versions` are its own to be: orphaned with it, they would
/// run on for nobody.
pub fn claim(seen: &[Value], uid: &str, versions: &[&str]) -> (Vec<Run>, Vec<Text>) {
    let is_own = |run: &&Value| match object::controller(run) {
        Some(controller) => controller.as_str() == uid,
        None => run
            .str_at(&["metadata", "labels", label::POD_TEMPLATE_HASH])
            .is_some_and(|hash| !hash.is_empty() && versions.contains(&hash)),
    };
    let (own, others): (Vec<&Value>, Vec<&Value>) = seen.iter().partition(is_own);
    let name = |run: &&Value| run.at(&["metadata", "name"]).and_then(Value::as_text).cloned().unwrap_or_default();
    (own.into_iter().map(Run::of).collect(), others.iter().map(name).collect())
}

/// What a run is for. Each has one place in status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    /// After the switch.
    Post,
    /// Before the switch.
    Pre,
    /// A step.
    Step,
    /// Beside the steps.
    Background,
}

impl Slot {
    /// All of them, in the order in which news of them is told.
    const ALL: [Slot; 4] = [Slot::Post, Slot::Pre, Slot::Step, Slot::Background];

    fn recorded(self, status: &RolloutStatus) -> Option<&RolloutAnalysisRunStatus> {
        match self {
            Slot::Post => status.blue_green.post_promotion_analysis_run_status.as_ref(),
            Slot::Pre => status.blue_green.pre_promotion_analysis_run_status.as_ref(),
            Slot::Step => status.canary.current_step_analysis_run_status.as_ref(),
            Slot::Background => status.canary.current_background_analysis_run_status.as_ref(),
        }
    }

    fn record(self, status: &mut RolloutStatus, run: RolloutAnalysisRunStatus) {
        let place = match self {
            Slot::Post => &mut status.blue_green.post_promotion_analysis_run_status,
            Slot::Pre => &mut status.blue_green.pre_promotion_analysis_run_status,
            Slot::Step => &mut status.canary.current_step_analysis_run_status,
            Slot::Background => &mut status.canary.current_background_analysis_run_status,
        };
        *place = Some(run);
    }

    /// What an abort says that follows from its run.
    fn blame(self) -> &'static str {
        match self {
            Slot::Post => "Blue/green post-promotion analysis phase error/failed",
            Slot::Pre => "Blue/green pre-promotion analysis phase error/failed",
            Slot::Step => "Step-based analysis phase error/failed",
            Slot::Background => "Background analysis phase error/failed",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Slot::Post => Purpose::PostPromotion.label(),
            Slot::Pre => Purpose::PrePromotion.label(),
            Slot::Step => Purpose::Step { index: 0 }.label(),
            Slot::Background => Purpose::Background.label(),
        }
    }
}

/// A run as this pass leaves it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Current {
    name: Text,
    phase: Phase,
    message: Text,
}

impl From<&Run> for Current {
    fn from(run: &Run) -> Current {
        Current { name: run.name.clone(), phase: run.phase, message: run.message.clone() }
    }
}

/// The runs that are current, by what they are for.
pub(super) type Currents = BTreeMap<Slot, Current>;

impl View {
    /// The run that status names for this, if it exists. Of one name with two purposes the first counts.
    pub(super) fn run(&self, slot: Slot) -> Option<&Run> {
        let recorded = slot.recorded(&self.rollout.status)?;
        self.runs.iter().find(|run| run.name == recorded.name.as_str())
    }

    /// Whether every run is over and kept, and status says of each what it came to.
    pub(super) fn runs_are_at_rest(&self) -> bool {
        if self.runs.is_empty() {
            return Slot::ALL.iter().all(|slot| slot.recorded(&self.rollout.status).is_none());
        }
        let is_told = |slot: &Slot| match (slot.recorded(&self.rollout.status), slot) {
            (None, _) => true,
            (Some(_), Slot::Step | Slot::Background) => false,
            (Some(told), Slot::Pre | Slot::Post) => self
                .run(*slot)
                .is_some_and(|run| told.status == run.phase.as_str() && told.message == run.message.as_str()),
        };
        self.are_over_and_kept(&self.runs) && Slot::ALL.iter().all(is_told)
    }

    /// Whether all of these are over, and none is to be deleted.
    pub(super) fn are_over_and_kept(&self, runs: &[Run]) -> bool {
        if runs.is_empty() {
            return true;
        }
        let limits = limits(self);
        let most = usize::try_from(limits.successful.min(limits.unsuccessful)).unwrap_or_default();
        let is_kept = |run: &Run| {
            let mut sets = self.sets.iter();
            run.phase.is_over()
                && !run.is_leaving()
                && run.hash().is_some_and(|hash| sets.any(|set| set.info.hash.as_str() == hash && !set.info.deleting))
        };
        runs.len() <= most && runs.iter().all(is_kept)
    }
}

fn limits(view: &View) -> Limits {
    let given = view.rollout.spec.analysis.as_ref();
    Limits {
        successful: given.and_then(|given| given.successful_run_history_limit).unwrap_or(KEPT),
        unsuccessful: given.and_then(|given| given.unsuccessful_run_history_limit).unwrap_or(KEPT),
    }
}

/// The names of those that are beyond the limits, or of versions that are gone.
pub(super) fn outdated(view: &View, others: &[&Run]) -> Vec<Text> {
    let past = others.iter().map(|run| history::Run {
        hash: run.hash(),
        created: run.object.str_at(&["metadata", "creationTimestamp"]).and_then(|text| text.parse::<Timestamp>().ok()),
        outcome: Outcome::of(run.phase.as_str()),
    });
    let past: Vec<history::Run<'_>> = past.collect();
    let sets: Vec<ReplicaSet> = view.sets.iter().map(|set| set.info.clone()).collect();
    let outdated = history::outdated(&past, &sets, limits(view)).into_iter().filter_map(|index| others.get(index));
    outdated.filter(|run| !run.is_leaving()).map(|run| run.name.clone()).collect()
}

impl<'v> Pass<'v> {
    /// The runs have their turn: begun, ended, forgotten; what they came to pauses or aborts the update. The error is why
    /// a run cannot be begun.
    pub(super) fn analysis_runs(&mut self) -> Result<(), String> {
        let view = self.view;
        let status = &view.rollout.status;
        let is_needless = health::is_fully_promoted(status)
            || self.is_aborted()
            || view.memory.promotion.is_full()
            || self.is_fast_rollback()
            || status.stable_rs.is_empty();
        let mut currents = Currents::new();
        if is_needless {
            for slot in Slot::ALL {
                self.end_run(view.run(slot));
            }
            // Blue-green goes on showing what its runs came to.
            let kept = [Slot::Pre, Slot::Post].into_iter().filter_map(|slot| Some((slot, view.run(slot)?)));
            currents.extend(kept.map(|(slot, run)| (slot, Current::from(run))));
        } else if view.rollout.spec.strategy.blue_green.is_some() {
            for slot in [Slot::Pre, Slot::Post] {
                if let Some(run) = self.promotion_run(slot)? {
                    self.heed(slot, &run);
                    currents.insert(slot, run);
                }
            }
        } else {
            if let Some(run) = self.step_run()? {
                currents.insert(Slot::Step, run);
            }
            if let Some(run) = self.background_run()? {
                currents.insert(Slot::Background, run);
            }
        }
        self.tell_runs(&currents);
        self.tidy_runs(&currents);
        self.currents = currents;
        Ok(())
    }

    /// Status and events say how far the current runs are.
    fn tell_runs(&mut self, currents: &Currents) {
        for (slot, run) in currents {
            let told = RolloutAnalysisRunStatus {
                name: run.name.to_string(),
                status: run.phase.as_str().to_owned(),
                message: run.message.to_string(),
            };
            slot.record(&mut self.next, told);
            let before = slot.recorded(&self.view.rollout.status);
            let is_news =
                before.is_none_or(|before| run.name == before.name.as_str() && before.status != run.phase.as_str());
            if run.phase == Phase::Unset || !is_news {
                continue;
            }
            let previous = before.map_or("NoPreviousStatus", |before| before.status.as_str());
            let message = format!(
                "{} Analysis Run '{}' Status New: '{}' Previous: '{previous}'",
                slot.word(),
                run.name,
                run.phase
            );
            if run.phase.is_bad() {
                self.warn(run.phase.run_reason(), message);
            } else {
                self.say(run.phase.run_reason(), message);
            }
        }
    }

    /// Runs that are nobody's end; those beyond the limits, or of versions that are gone, go.
    fn tidy_runs(&mut self, currents: &Currents) {
        let view = self.view;
        let is_current = |run: &&Run| {
            let is_named = |slot: &Slot| view.run(*slot).is_some_and(|named| named.name == run.name);
            Slot::ALL.iter().any(is_named) || currents.values().any(|current| current.name == run.name)
        };
        let others: Vec<&Run> = view.runs.iter().filter(|run| !is_current(run)).collect();
        for run in &others {
            self.end_run(Some(run));
        }
        for name in outdated(view, &others) {
            self.target.runs.remove(&name);
        }
    }

    /// Tells a run to end, if it is at work.
    fn end_run(&mut self, run: Option<&Run>) {
        if let Some(run) = run.filter(|run| run.is_at_work() && !run.is_leaving()) {
            self.because(format!("{} is no longer wanted", run.name));
            let wanted = self.target.runs.entry(run.name.clone()).or_insert_with(|| run.object.clone());
            wanted.set_at(&["spec", "terminate"], true);
        }
    }

    /// What a run's outcome means for the update.
    fn heed(&mut self, slot: Slot, run: &Current) {
        match run.phase {
            Phase::Inconclusive => self.pause(PauseReason::InconclusiveAnalysis),
            Phase::Error | Phase::Failed => {
                let why = if run.message.is_empty() { String::new() } else { format!(": {}", run.message) };
                self.abort(format!("{}{why}", slot.blame()));
            }
            Phase::Unset | Phase::Pending | Phase::Running | Phase::Successful => {}
        }
    }

    /// Whether a run is to begin: there is none, or the last one is answered: after a pause for what was inconclusive
    /// that a person ended, or after an abort that a person took back.
    fn needs_run(&self, current: Option<&Run>) -> bool {
        let Some(current) = current else { return true };
        let hold = &self.view.memory.hold;
        let waits = [PauseReason::CanaryStep, PauseReason::BlueGreen].iter().any(|reason| hold.since(reason).is_some());
        if hold.is_begun_here() && !waits {
            return current.phase == Phase::Inconclusive;
        }
        matches!(self.view.memory.abort, Abort::Since(_) | Abort::Retry(_))
    }

    fn is_inconclusive(&self) -> bool {
        self.view.memory.hold.since(&PauseReason::InconclusiveAnalysis).is_some()
    }

    fn step_run(&mut self) -> Result<Option<Current>, String> {
        let view = self.view;
        let current = view.run(Slot::Step);
        if view.memory.hold.first().is_some() {
            return Ok(current.map(Current::from));
        }
        let place = step::position(&view.rollout)
            .and_then(|Position { index, step, .. }| Some((index, step?.analysis.as_ref()?)))
            .filter(|(_, analysis)| !analysis.templates.is_empty());
        let is_of = |run: &Run, index: i32| {
            run.object.str_at(&["metadata", "labels", label::STEP_INDEX]) == Some(index.to_string().as_str())
        };
        let place = place.filter(|(index, _)| current.is_none_or(|run| is_of(run, *index)));
        let Some((index, analysis)) = place else {
            self.end_run(current);
            return Ok(None);
        };
        if self.needs_run(current) {
            return self
                .begin_run(
                    Purpose::Step { index },
                    AnalysisRole::Step(usize::try_from(index).unwrap_or_default()),
                    analysis,
                )
                .map(Some);
        }
        let current = current.map(Current::from);
        if let Some(run) = &current {
            self.heed(Slot::Step, run);
        }
        Ok(current)
    }

    fn background_run(&mut self) -> Result<Option<Current>, String> {
        let view = self.view;
        let current = view.run(Slot::Background);
        let analysis = view.rollout.spec.strategy.canary.as_ref().and_then(|canary| canary.analysis.as_ref());
        let Some(analysis) = analysis.filter(|analysis| !analysis.templates.is_empty()) else {
            self.end_run(current);
            return Ok(None);
        };
        if view.rollout.status.current_pod_hash.is_empty() || step::is_before_background_analysis(&view.rollout) {
            return Ok(None);
        }
        if self.is_inconclusive() {
            return Ok(current.map(Current::from));
        }
        if self.needs_run(current) {
            let analysis = RolloutAnalysis {
                templates: analysis.templates.clone(),
                args: analysis.args.clone(),
                dry_run: analysis.dry_run.clone(),
                measurement_retention: analysis.measurement_retention.clone(),
                analysis_run_metadata: analysis.analysis_run_metadata.clone(),
            };
            return self.begin_run(Purpose::Background, AnalysisRole::Background, &analysis).map(Some);
        }
        let current = current.map(Current::from);
        if let Some(run) = &current {
            self.heed(Slot::Background, run);
        }
        Ok(current)
    }

    fn promotion_run(&mut self, slot: Slot) -> Result<Option<Current>, String> {
        let view = self.view;
        let current = view.run(slot);
        let (purpose, role) = match slot {
            Slot::Post => (Purpose::PostPromotion, AnalysisRole::PostPromotion),
            Slot::Pre | Slot::Step | Slot::Background => (Purpose::PrePromotion, AnalysisRole::PrePromotion),
        };
        let analysis = view.rollout.spec.strategy.blue_green.as_ref().and_then(|strategy| match slot {
            Slot::Post => strategy.post_promotion_analysis.as_ref(),
            Slot::Pre | Slot::Step | Slot::Background => strategy.pre_promotion_analysis.as_ref(),
        });
        let Some(analysis) = analysis.filter(|analysis| !analysis.templates.is_empty()) else {
            self.end_run(current);
            return Ok(None);
        };
        if self.skips(slot, current.is_some()) {
            self.end_run(current);
            return Ok(current.map(Current::from));
        }
        if !self.is_inconclusive() && self.needs_run(current) {
            return self.begin_run(purpose, role, analysis).map(Some);
        }
        Ok(current.map(Current::from))
    }

    /// Whether it is not the time for this run: the switch is past, or not yet made, or pods are missing. One that has
    /// begun is not ended by pods that come and go.
    pub(super) fn skips(&self, slot: Slot, has_begun: bool) -> bool {
        let view = self.view;
        let (status, Some(new)) = (&view.rollout.status, view.new_set()) else { return true };
        let (hash, active) = (new.info.hash.as_str(), status.blue_green.active_selector.as_str());
        let is_past = status.stable_rs == hash || hash.is_empty();
        let is_time = match slot {
            Slot::Post => active == hash,
            Slot::Pre | Slot::Step | Slot::Background => !active.is_empty() && active != hash,
        };
        if is_past || !is_time {
            return true;
        }
        let preview =
            view.rollout.spec.strategy.blue_green.as_ref().and_then(|strategy| strategy.preview_replica_count);
        let is_ready = match (slot, preview) {
            (Slot::Pre, Some(size)) => new.info.desired == size && new.info.available == size,
            (Slot::Pre | Slot::Post | Slot::Step | Slot::Background, _) => new.info.is_saturated(self.replicas()),
        };
        !has_begun && !is_ready
    }

    /// Whether nothing is to be measured before the switch, or it went well.
    pub(super) fn is_pre_promotion_done(&self) -> bool {
        let strategy = self.view.rollout.spec.strategy.blue_green.as_ref();
        strategy.is_none_or(|strategy| strategy.pre_promotion_analysis.is_none())
            || self.view.run(Slot::Pre).is_some_and(|run| run.phase == Phase::Successful)
    }

    /// Whether this run went well.
    pub(super) fn went_well(&self, slot: Slot) -> bool {
        self.currents.get(&slot).is_some_and(|run| run.phase == Phase::Successful)
    }

    /// Begins a run: under the first name that is free, or takes up one that was begun and not recorded.
    fn begin_run(
        &mut self,
        purpose: Purpose,
        role: AnalysisRole,
        analysis: &RolloutAnalysis,
    ) -> Result<Current, String> {
        let view = self.view;
        let rollout = &view.rollout;
        let Some(new) = view.new_set() else { return Err("there is no ReplicaSet to analyse".to_owned()) };
        let stable = view.stable_set().map(|stable| stable.info.hash.as_str()).unwrap_or_default();
        let versions = Versions { stable, latest: &new.info.hash };
        let given = match arguments::given(&analysis.args, versions, rollout) {
            (Some(given), None) => given,
            (_, Some(problem)) => return Err(problem),
            (None, None) => Vec::new(),
        };
        let found = templates::follow_all(&role.field(), &analysis.templates, &view.templates)?;
        let given = compose::Given {
            arguments: &given,
            dry_run: &analysis.dry_run,
            retention: &analysis.measurement_retention,
        };
        let spec =
            compose::flatten(found.iter().map(|(_, spec)| spec)).and_then(|template| compose::run(template, given));
        let spec = spec.map_err(|refusal| refusal.to_string())?;
        let revision = self.revision();
        let named = |attempt: u32| {
            let name = names::analysis_run(&rollout.metadata.name, &new.info.hash, revision, purpose, attempt);
            Text::from(name.as_str())
        };
        let (mut number, mut last) = (0, None);
        loop {
            let name = named(number);
            let own = view.runs.iter().find(|run| run.name == name);
            if own.is_none() && !view.other_runs.contains(&name) {
                break;
            }
            last = own.or(last);
            number += 1;
        }
        // It was begun and the answer was lost, or the engine died before it was recorded: be it over, it is the one.
        let taken_up = last.filter(|run| self.is_unrecorded(run) && is_alike(&run.object, &spec));
        if let Some(run) = taken_up {
            self.because(format!("{} was begun already", run.name));
            return Ok(Current::from(run));
        }
        let name = named(number);
        let run = self.run_object(&name, purpose, analysis, &spec, &new.info.hash);
        self.because(format!("{name} begins"));
        self.target.runs.insert(name.clone(), run);
        Ok(Current { name, phase: Phase::Unset, message: Text::default() })
    }

    /// Whether a run belongs to this attempt of the update and status does not know of it.
    fn is_unrecorded(&self, run: &Run) -> bool {
        let view = self.view;
        let is_known = Slot::ALL.iter().any(|slot| view.run(*slot).is_some_and(|known| known.name == run.name));
        !is_known && self.is_of_this_attempt(run)
    }

    /// Whether a run or an Experiment was begun in this attempt of the update.
    pub(super) fn is_of_this_attempt(&self, run: &Run) -> bool {
        let attempt = run.object.str_at(&["metadata", "annotations", annotation::ATTEMPT]);
        // One that Argo Rollouts began does not say so, and is taken up while it is under way, as there.
        let is_of_this = attempt.map_or(!run.phase.is_over(), |attempt| Some(attempt) == self.attempt().as_deref());
        !run.is_leaving() && is_of_this
    }

    /// When this attempt of the update began.
    pub(super) fn attempt(&self) -> Option<String> {
        let duration = self.view.rollout.status.duration.as_ref()?;
        duration.rollout_started_at.map(|begun| begun.to_string())
    }

    fn run_object(
        &self,
        name: &str,
        purpose: Purpose,
        analysis: &RolloutAnalysis,
        spec: &AnalysisRunSpec,
        hash: &str,
    ) -> Value {
        let rollout = &self.view.rollout;
        let instance = rollout.metadata.labels.get(label::INSTANCE_ID).map(String::as_str).unwrap_or_default();
        let own = analysis.analysis_run_metadata.clone().unwrap_or_default();
        let selected = rollout.spec.selector.as_ref().and_then(|selector| selector.get("matchLabels")?.as_map());
        let mut run = value!({
            "apiVersion": API_VERSION,
            "kind": kind::ANALYSIS_RUN,
            "metadata": {
                "name": name,
                "namespace": rollout.metadata.namespace.as_str(),
                "ownerReferences": [refers::owner(rollout)],
            },
        });
        for (key, text) in purpose.labels(hash, instance) {
            run.set_at(&["metadata", "labels", key], text);
        }
        for (key, text) in &own.labels {
            run.set_at(&["metadata", "labels", key], text.as_str());
        }
        for (key, text) in selected.into_iter().flat_map(Map::iter) {
            run.set_at(&["metadata", "labels", key], text.clone());
        }
        run.set_at(&["metadata", "annotations", annotation::REVISION], self.revision().to_string());
        if let Some(attempt) = self.attempt() {
            run.set_at(&["metadata", "annotations", annotation::ATTEMPT], attempt);
        }
        for (key, text) in &own.annotations {
            run.set_at(&["metadata", "annotations", key], text.as_str());
        }
        run.set_at(&["spec"], api::write(spec));
        run.set_at(&["status"], api::write(&AnalysisRunStatus::default()));
        run
    }
}

/// Whether a run measures what is to be measured.
pub fn is_alike(run: &Value, wanted: &AnalysisRunSpec) -> bool {
    let spec: AnalysisRunSpec = run.get("spec").map(|spec| api::read(spec).object).unwrap_or_default();
    spec.metrics == wanted.metrics
        && spec.dry_run == wanted.dry_run
        && spec.measurement_retention == wanted.measurement_retention
        && spec.args == wanted.args
}
