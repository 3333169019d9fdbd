//! An analysis of an Experiment: its AnalysisRun, and how far that is.
//!
//! It begins once every version is available. Never measures, and never begins a run twice: one that was begun and not
//! recorded is taken up.

use super::{decide::Pass, state};
use crate::{
    analysis::Phase,
    api::{
        self, AnalysisRunSpec, AnalysisRunStatus, AnalysisTemplateRef, Argument, ExperimentAnalysisRunStatus,
        ExperimentAnalysisTemplateRef,
        constants::{API_VERSION, annotation, kind, label, message, reason},
    },
    kubernetes::value::{Text, Value},
    model::{compose, refers},
    rollout::{
        runs::{Run, is_alike},
        templates::{self, Missing},
    },
    value,
};

/// The status of an analysis that cannot begin.
pub(super) fn failed(analysis: &str, why: &str) -> ExperimentAnalysisRunStatus {
    ExperimentAnalysisRunStatus {
        name: analysis.to_owned(),
        phase: Phase::Error.as_str().to_owned(),
        message: format!("Failed to create AnalysisRun for analysis '{analysis}': {why}"),
        ..ExperimentAnalysisRunStatus::default()
    }
}

impl Pass<'_> {
    /// An analysis has its turn: its run is begun, ended, looked at.
    pub(super) fn analysis(&mut self, analysis: &ExperimentAnalysisTemplateRef) {
        let status = &self.view.experiment.status;
        let known = state::analysis(status, &analysis.name).cloned();
        let before = known.unwrap_or_else(|| ExperimentAnalysisRunStatus {
            name: analysis.name.clone(),
            ..ExperimentAnalysisRunStatus::default()
        });
        let next = if status.available_at.is_none() {
            self.verified(analysis, before)
        } else if before.analysis_run.is_empty() {
            if self.is_ending { before } else { self.begun(analysis) }
        } else if Phase::of(&before.phase).is_over() {
            before
        } else {
            self.followed(analysis, before)
        };
        self.tell_analysis(next);
    }

    /// Before its time: only its template is looked for.
    fn verified(
        &self,
        analysis: &ExperimentAnalysisTemplateRef,
        mut before: ExperimentAnalysisRunStatus,
    ) -> ExperimentAnalysisRunStatus {
        if let Some(missing) = templates::missing(&reference(analysis), &self.view.templates) {
            let kind = missing.scope.kind();
            Phase::Error.as_str().clone_into(&mut before.phase);
            before.message =
                format!("{kind} verification failed for analysis '{}': {}", analysis.name, not_found(&missing));
        }
        before
    }

    /// Its run begins: under the first name that is free, or the one that was begun and not recorded.
    fn begun(&mut self, analysis: &ExperimentAnalysisTemplateRef) -> ExperimentAnalysisRunStatus {
        let spec = match self.run_spec(analysis) {
            Ok(spec) => spec,
            Err(why) => return failed(&analysis.name, &why),
        };
        let view = self.view;
        let base = format!("{}-{}", view.experiment.metadata.name, analysis.name);
        let named = |number: u32| if number == 0 { base.clone() } else { format!("{base}.{number}") };
        let (mut number, mut last) = (0, None);
        loop {
            let name = named(number);
            let own = view.runs.iter().find(|run| run.name == name.as_str());
            if own.is_none() && !view.other_runs.iter().any(|other| *other == name.as_str()) {
                break;
            }
            last = own.or(last);
            number += 1;
        }
        let name = match last.filter(|run| self.is_unrecorded(run) && is_alike(&run.object, &spec)) {
            Some(run) => run.name.to_string(),
            None => {
                let name = named(number);
                let run = self.run_object(&name, &spec);
                self.target.runs.insert(Text::from(name.as_str()), run);
                name
            }
        };
        ExperimentAnalysisRunStatus {
            name: analysis.name.clone(),
            analysis_run: name,
            phase: Phase::Pending.as_str().to_owned(),
            message: String::new(),
        }
    }

    /// Whether a run belongs to this attempt and status does not know of it.
    fn is_unrecorded(&self, run: &Run) -> bool {
        let status = &self.view.experiment.status;
        let is_known = status.analysis_runs.iter().any(|known| run.name == known.analysis_run.as_str());
        let attempt = run.object.str_at(&["metadata", "annotations", annotation::ATTEMPT]);
        // One that Argo Rollouts began does not say so, and is taken up while it is under way, as there.
        let is_of_this = attempt.map_or(!run.phase.is_over(), |attempt| Some(attempt) == self.attempt().as_deref());
        !is_known && !run.is_leaving() && is_of_this
    }

    /// When this attempt began.
    fn attempt(&self) -> Option<String> {
        self.view.experiment.status.available_at.map(|begun| begun.to_string())
    }

    fn run_spec(&self, analysis: &ExperimentAnalysisTemplateRef) -> Result<AnalysisRunSpec, String> {
        let (view, sets) = (self.view, self.view.named());
        let spec = &view.experiment.spec;
        let fill = |argument: &Argument| {
            let value = argument.value.as_deref().map(|text| state::argument(text, &view.experiment, &sets));
            Ok(Argument { value: value.transpose()?, ..argument.clone() })
        };
        let given: Result<Vec<Argument>, String> = analysis.args.iter().map(fill).collect();
        let found = templates::follow_all("", &[reference(analysis)], &view.templates);
        let found = found.map_err(|missing| not_found(&missing))?;
        let given = given?;
        let given =
            compose::Given { arguments: &given, dry_run: &spec.dry_run, retention: &spec.measurement_retention };
        let spec = compose::flatten(found.iter().map(|(_, spec)| spec)).and_then(|spec| compose::run(spec, given));
        spec.map_err(|refusal| refusal.to_string())
    }

    fn run_object(&self, name: &str, spec: &AnalysisRunSpec) -> Value {
        let experiment = &self.view.experiment;
        let own = &experiment.spec.analysis_run_metadata;
        let mut run = value!({
            "apiVersion": API_VERSION,
            "kind": kind::ANALYSIS_RUN,
            "metadata": {
                "name": name,
                "namespace": experiment.metadata.namespace.as_str(),
                "ownerReferences": [refers::experiment_owner(experiment)],
            },
        });
        if let Some(instance) = experiment.metadata.labels.get(label::INSTANCE_ID).filter(|id| !id.is_empty()) {
            run.set_at(&["metadata", "labels", label::INSTANCE_ID], instance.as_str());
        }
        for (key, text) in &own.labels {
            run.set_at(&["metadata", "labels", key], text.as_str());
        }
        for (key, text) in &own.annotations {
            run.set_at(&["metadata", "annotations", key], text.as_str());
        }
        if let Some(attempt) = self.attempt() {
            run.set_at(&["metadata", "annotations", annotation::ATTEMPT], attempt);
        }
        run.set_at(&["spec"], api::write(spec));
        run.set_at(&["status"], api::write(&AnalysisRunStatus::default()));
        run
    }

    /// What its run says. One that is no longer needed is ended, and then still heard.
    fn followed(
        &mut self,
        analysis: &ExperimentAnalysisTemplateRef,
        mut before: ExperimentAnalysisRunStatus,
    ) -> ExperimentAnalysisRunStatus {
        let Some(run) = self.view.runs.iter().find(|run| run.name == before.analysis_run.as_str()) else {
            Phase::Error.as_str().clone_into(&mut before.phase);
            before.message = format!("analysisruns.argoproj.io \"{}\" not found", before.analysis_run);
            return before;
        };
        if self.is_ending && !run.phase.is_over() {
            if run.is_at_work() {
                let told = message::analysis_terminating(&analysis.name, &run.name);
                self.say(reason::ANALYSIS_RUN_TERMINATING, told);
                let wanted = self.target.runs.entry(run.name.clone()).or_insert_with(|| run.object.clone());
                wanted.set_at(&["spec", "terminate"], true);
            }
            return before;
        }
        // A run that nobody has looked at yet is still to come.
        if run.phase != Phase::Unset {
            run.phase.as_str().clone_into(&mut before.phase);
            before.message = run.message.to_string();
        }
        before
    }
}

fn reference(analysis: &ExperimentAnalysisTemplateRef) -> AnalysisTemplateRef {
    AnalysisTemplateRef { template_name: analysis.template_name.clone(), cluster_scope: analysis.cluster_scope }
}

fn not_found(missing: &Missing) -> String {
    format!("{}.argoproj.io \"{}\" not found", missing.scope.kind().to_lowercase(), missing.name)
}
