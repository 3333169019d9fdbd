//! The Experiments of a Rollout: the one that a step waits for, what its outcome means for the update, and which are no longer
//! kept.
//!
//! A step has one Experiment at a time, named in status. Never runs one: that is [`crate::experiment`]'s, from the
//! specification that is made here.

use super::{
    pass::Pass,
    runs::{self, Run},
    step::{self, Position},
    view::View,
};
use crate::{
    analysis::Phase,
    api::{
        self, Experiment, ExperimentAnalysisTemplateRef, ExperimentSpec, RolloutExperimentStep,
        RolloutExperimentTemplate, TemplateService, TemplateSpec, WeightDestination,
        constants::{API_VERSION, annotation, kind, label, message, reason},
    },
    kubernetes::value::{Text, Value},
    model::{
        arguments::{self, Versions},
        memory::PauseReason,
        names, refers,
    },
    value,
};

/// Whose pod template a version of an experiment has.
const CANARY: &str = "canary";
const STABLE: &str = "stable";

impl View {
    /// The Experiment that status names, if it exists.
    pub(super) fn current_experiment(&self) -> Option<&Run> {
        let name = self.rollout.status.canary.current_experiment.as_str();
        self.experiments.iter().find(|experiment| !name.is_empty() && experiment.name == name)
    }

    /// Where the Experiment of the current step gets its traffic, while it runs. A version without a Service, for its pods
    /// have no port, gets none.
    pub(super) fn experiment_destinations(&self) -> Vec<WeightDestination> {
        let running = self.current_experiment().filter(|experiment| experiment.phase == Phase::Running);
        let (Some((_, step)), Some(running)) = (step_of(self), running) else { return Vec::new() };
        let experiment: Experiment = api::read(&running.object).object;
        let weight = |name: &str| {
            let template = step.templates.iter().flatten().find(|template| template.name == name)?;
            template.weight
        };
        let statuses = experiment.status.template_statuses.into_iter();
        let destination = |version: api::TemplateStatus| {
            let weight = weight(&version.name)?;
            (!version.service_name.is_empty()).then_some(WeightDestination {
                weight,
                service_name: version.service_name,
                pod_template_hash: version.pod_template_hash,
            })
        };
        statuses.filter_map(destination).collect()
    }

    /// Whether every Experiment is over and kept, and status names none.
    pub(super) fn experiments_are_at_rest(&self) -> bool {
        self.rollout.status.canary.current_experiment.is_empty() && self.are_over_and_kept(&self.experiments)
    }
}

/// The experiment of the step at which a canary stands, and the index of that.
fn step_of(view: &View) -> Option<(i32, &RolloutExperimentStep)> {
    let Position { index, step, .. } = step::position(&view.rollout)?;
    Some((index, step?.experiment.as_ref()?))
}

impl<'v> Pass<'v> {
    /// The Experiments have their turn: begun, ended, forgotten; what the current one came to pauses or aborts the update.
    /// The error is why one cannot be begun.
    pub(super) fn experiments(&mut self) -> Result<(), String> {
        let view = self.view;
        if self.is_aborted() || view.memory.promotion.is_full() {
            for experiment in &view.experiments {
                self.end_experiment(experiment);
            }
            return Ok(());
        }
        let recorded = view.current_experiment();
        if view.memory.hold.since(&PauseReason::InconclusiveAnalysis).is_some() {
            self.keep_experiment(recorded.map(|current| current.name.clone()));
            return Ok(());
        }
        let mut current = None;
        if let Some((index, step)) = step_of(view) {
            // There is nothing to compare the first version with.
            if view.stable_set().is_none() && recorded.is_none() {
                return Ok(());
            }
            current = match recorded.filter(|recorded| !self.is_answered(recorded)) {
                Some(recorded) => {
                    self.heed_experiment(recorded);
                    Some(recorded.name.clone())
                }
                None => Some(self.begin_experiment(index, step)?),
            };
            if self.is_aborted() {
                current = None;
            }
        }
        self.tidy_experiments(current.as_ref());
        self.keep_experiment(current);
        Ok(())
    }

    /// Whether the Experiment of the current step went well.
    pub(super) fn experiment_went_well(&self) -> bool {
        self.view.current_experiment().is_some_and(|current| current.phase == Phase::Successful)
    }

    /// Status names this one.
    fn keep_experiment(&mut self, name: Option<Text>) {
        self.next.canary.current_experiment = name.map(|name| name.to_string()).unwrap_or_default();
    }

    /// Whether a person has answered an inconclusive outcome: another Experiment is to find out.
    fn is_answered(&self, experiment: &Run) -> bool {
        experiment.phase == Phase::Inconclusive
            && self.view.memory.hold.is_released(&PauseReason::InconclusiveExperiment)
    }

    /// What an outcome means for the update.
    fn heed_experiment(&mut self, experiment: &Run) {
        match experiment.phase {
            // Its pause may last already.
            Phase::Inconclusive => {
                if self.view.memory.hold.since(&PauseReason::InconclusiveExperiment).is_none() {
                    self.pause(PauseReason::InconclusiveExperiment);
                }
            }
            Phase::Error | Phase::Failed => {
                let text = &experiment.message;
                let why = if text.is_empty() { String::new() } else { format!(": {text}") };
                self.abort(format!("Experiment analysis phase is error/failed{why}"));
            }
            Phase::Unset | Phase::Pending | Phase::Running | Phase::Successful => {}
        }
    }

    /// Tells an Experiment to end, if it is at work.
    fn end_experiment(&mut self, experiment: &Run) {
        if experiment.is_at_work() && !experiment.is_leaving() {
            self.because(format!("{} is no longer wanted", experiment.name));
            let seen = || experiment.object.clone();
            let wanted = self.target.experiments.entry(experiment.name.clone()).or_insert_with(seen);
            wanted.set_at(&["spec", "terminate"], true);
        }
    }

    /// Experiments of other steps end; those beyond the limits, or of versions that are gone, go.
    fn tidy_experiments(&mut self, current: Option<&Text>) {
        let view = self.view;
        let others: Vec<&Run> = view.experiments.iter().filter(|other| Some(&other.name) != current).collect();
        for other in &others {
            self.end_experiment(other);
        }
        for name in runs::outdated(view, &others) {
            self.target.experiments.remove(&name);
        }
    }

    /// Begins an Experiment: under the first name that is free, or takes up one that was begun and not recorded.
    fn begin_experiment(&mut self, index: i32, step: &RolloutExperimentStep) -> Result<Text, String> {
        let view = self.view;
        let rollout = &view.rollout;
        let spec = self.experiment_spec(step)?;
        let revision = self.revision();
        let hash = view.new_set().map_or(&view.hash, |new| &new.info.hash);
        let named = |attempt: u32| {
            Text::from(names::experiment(&rollout.metadata.name, hash, revision, index, attempt).as_str())
        };
        let (mut number, mut last) = (0, None);
        loop {
            let name = named(number);
            let own = view.experiments.iter().find(|other| other.name == name);
            if own.is_none() && !view.other_experiments.contains(&name) {
                break;
            }
            last = own.or(last);
            number += 1;
        }
        let is_unrecorded = |other: &&Run| {
            rollout.status.canary.current_experiment != other.name.as_str() && self.is_of_this_attempt(other)
        };
        // It was begun and the answer was lost, or the engine died before it was recorded: be it over, it is the one.
        if let Some(other) = last.filter(|other| is_unrecorded(other) && is_alike(&other.object, &spec)) {
            self.because(format!("{} was begun already", other.name));
            return Ok(other.name.clone());
        }
        let name = named(number);
        let object = self.experiment_object(&name, hash, &spec);
        self.target.experiments.insert(name.clone(), object);
        self.say(reason::EXPERIMENT_CREATED, message::experiment_created(&name));
        Ok(name)
    }

    /// What the Experiment of a step is to run.
    fn experiment_spec(&self, step: &RolloutExperimentStep) -> Result<ExperimentSpec, String> {
        let view = self.view;
        let (Some(new), Some(stable)) = (view.new_set(), view.stable_set()) else {
            return Err("there is no ReplicaSet to compare".to_owned());
        };
        let template = |given: &RolloutExperimentTemplate| match given.spec_ref.as_str() {
            CANARY => Ok(version(given, &new.object)),
            STABLE => Ok(version(given, &stable.object)),
            _ => Err("Invalid template step SpecRef: must be canary or stable".to_owned()),
        };
        let versions = Versions { stable: &stable.info.hash, latest: &new.info.hash };
        let mut analyses = Vec::new();
        for analysis in &step.analyses {
            let args = match arguments::given(&analysis.args, versions, &view.rollout) {
                (given, None) => given.unwrap_or_default(),
                (_, Some(problem)) => return Err(problem),
            };
            analyses.push(ExperimentAnalysisTemplateRef {
                name: analysis.name.clone(),
                template_name: analysis.template_name.clone(),
                cluster_scope: analysis.cluster_scope,
                args,
                required_for_completion: analysis.required_for_completion,
            });
        }
        Ok(ExperimentSpec {
            templates: step.templates.iter().flatten().map(template).collect::<Result<_, _>>()?,
            duration: step.duration.clone(),
            progress_deadline_seconds: view.rollout.spec.progress_deadline_seconds,
            analyses,
            scale_down_delay_seconds: step.scale_down_delay_seconds,
            dry_run: step.dry_run.clone(),
            analysis_run_metadata: step.analysis_run_metadata.clone(),
            ..ExperimentSpec::default()
        })
    }

    fn experiment_object(&self, name: &str, hash: &str, spec: &ExperimentSpec) -> Value {
        let rollout = &self.view.rollout;
        let mut object = value!({
            "apiVersion": API_VERSION,
            "kind": kind::EXPERIMENT,
            "metadata": {
                "name": name,
                "namespace": rollout.metadata.namespace.as_str(),
                "ownerReferences": [refers::owner(rollout)],
            },
        });
        for (key, text) in &rollout.metadata.labels {
            object.set_at(&["metadata", "labels", key], text.as_str());
        }
        object.set_at(&["metadata", "labels", label::POD_TEMPLATE_HASH], hash);
        object.set_at(&["metadata", "annotations", annotation::REVISION], self.revision().to_string());
        if let Some(attempt) = self.attempt() {
            object.set_at(&["metadata", "annotations", annotation::ATTEMPT], attempt);
        }
        object.set_at(&["spec"], api::write(spec));
        object
    }
}

/// One version of an Experiment, made from the pods of a ReplicaSet.
fn version(given: &RolloutExperimentTemplate, set: &Value) -> TemplateSpec {
    let mut template = set.at(&["spec", "template"]).cloned().unwrap_or_else(Value::object);
    let own = || set.at(&["spec", "selector"]).cloned().unwrap_or_else(Value::object);
    let mut selector = given.selector.clone().unwrap_or_else(own);
    for (key, text) in &given.metadata.labels {
        template.set_at(&["metadata", "labels", key], text.as_str());
        selector.set_at(&["matchLabels", key], text.as_str());
    }
    for (key, text) in &given.metadata.annotations {
        template.set_at(&["metadata", "annotations", key], text.as_str());
    }
    // Traffic reaches a version by its Service.
    let service = given.service.clone().or_else(|| given.weight.map(|_| TemplateService::default()));
    let seconds = set.int_at(&["spec", "minReadySeconds"]).unwrap_or_default();
    TemplateSpec {
        name: given.name.clone(),
        replicas: given.replicas,
        min_ready_seconds: i32::try_from(seconds).unwrap_or_default(),
        selector: Some(selector),
        template,
        service,
    }
}

/// Whether an Experiment runs what is to be run.
fn is_alike(experiment: &Value, wanted: &ExperimentSpec) -> bool {
    let spec: ExperimentSpec = experiment.get("spec").map(|spec| api::read(spec).object).unwrap_or_default();
    ExperimentSpec { terminate: false, ..spec } == *wanted
}
