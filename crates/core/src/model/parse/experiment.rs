//! Experiments.
//!
//! Argo Rollouts stops at the first problem.

use std::collections::BTreeSet;

use super::{analysis, default, pods, strategy, tolerated, tolerated_seconds};
use crate::{
    api,
    kubernetes::{builtin, duration},
    model::{
        experiment::{Analysis, Experiment, Version},
        path::{At, Path},
        problem::{Code, Notes, Parsed, Words},
        rollout::PodTemplate,
    },
};

/// An Experiment.
pub fn experiment(wire: &api::Experiment) -> Parsed<Experiment> {
    let mut notes = Notes::default();
    let at = At::ROOT.key("spec");
    let spec = &wire.spec;
    let versions = versions(wire, &at.key("templates"), &mut notes);
    let run = duration(spec, &at, &mut notes);
    let analyses = analyses(&spec.analyses, &at.key("analyses"), &mut notes);
    let deadline = spec.progress_deadline_seconds.unwrap_or(default::PROGRESS_DEADLINE_SECONDS);
    let delay = spec.scale_down_delay_seconds.unwrap_or(default::SCALE_DOWN_DELAY_SECONDS);
    let exact = versions.map(|templates| Experiment {
        templates,
        duration: run,
        progress_deadline: tolerated_seconds(deadline, &at.key("progressDeadlineSeconds"), &mut notes),
        terminate: spec.terminate,
        analyses,
        scale_down_delay: tolerated_seconds(delay, &at.key("scaleDownDelaySeconds"), &mut notes),
        dry_run: spec.dry_run.iter().map(|rule| rule.metric_name.clone()).collect(),
        retention: spec.measurement_retention.iter().map(analysis::retention).collect(),
        run_metadata: strategy::run_metadata(&spec.analysis_run_metadata),
    });
    notes.close(exact)
}

fn versions(wire: &api::Experiment, at: &At, notes: &mut Notes) -> Option<Vec<Version>> {
    if wire.spec.templates.is_empty() {
        notes.ours(at, Code::ExperimentTemplates, "there are no templates", "add a template");
    }
    let mut names = BTreeSet::new();
    let mut versions = Vec::new();
    for (index, template) in wire.spec.templates.iter().enumerate() {
        let one = One { wire, template, index };
        versions.push(one.version(names.insert(&template.name), &at.index(index), notes));
    }
    versions.into_iter().collect()
}

/// One template of an experiment.
struct One<'w> {
    wire: &'w api::Experiment,
    template: &'w api::TemplateSpec,
    index: usize,
}

impl One<'_> {
    /// The version; `new` says that its name has not been seen before.
    fn version(&self, new: bool, at: &At, notes: &mut Notes) -> Option<Version> {
        let template = self.template;
        self.check_selector(&at.key("selector"), notes);
        self.check_deadline(&at.key("minReadySeconds"), notes);
        self.check_name(new, &at.key("name"), notes);
        self.check_pods(notes);
        let selector = template.selector.as_ref().and_then(pods::selector);
        Some(Version {
            name: template.name.clone(),
            replicas: tolerated(template.replicas.unwrap_or(1), &at.key("replicas"), notes),
            min_ready: tolerated_seconds(template.min_ready_seconds, &at.key("minReadySeconds"), notes),
            pods: PodTemplate { selector: selector?, template: template.template.clone() },
            service: template.service.as_ref().map(|service| service.name.clone()),
        })
    }

    fn check_selector(&self, at: &At, notes: &mut Notes) {
        let index = self.index;
        let remedy = "add a selector with labels of the template";
        let Some(selector) = &self.template.selector else {
            let words = format!("Rollout has missing field '.Spec.Templates[{index}].Selector'");
            return refuse(at, Code::ExperimentSelector, words, "there is no selector", remedy, notes);
        };
        if selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none() {
            let words =
                format!("This experiment is selecting all pods at index {index}. A non-empty selector is required.");
            return refuse(at, Code::ExperimentSelector, words, "the selector is empty", remedy, notes);
        }
        if pods::selector(selector).is_none() {
            let what = "it is no valid label selector, or says nothing";
            notes.ours(at, Code::SelectorInvalid, what, "choose labels of the template");
        }
    }

    fn check_deadline(&self, at: &At, notes: &mut Notes) {
        let deadline = self.wire.spec.progress_deadline_seconds.unwrap_or(default::PROGRESS_DEADLINE_SECONDS);
        let ready = self.template.min_ready_seconds;
        if ready > deadline {
            let words = format!(
                "MinReadySeconds cannot be longer than ProgressDeadlineSeconds. Check template index {}",
                self.index
            );
            let what = format!("a pod must be ready for {ready} s, but has failed after {deadline} s");
            let remedy = "lower it, or raise spec.progressDeadlineSeconds";
            refuse(at, Code::ExperimentDeadline, words, &what, remedy, notes);
        }
    }

    fn check_name(&self, new: bool, at: &At, notes: &mut Notes) {
        let (experiment, name) = (&self.wire.metadata.name, &self.template.name);
        let remedy = "give each template a name of its own";
        if name.is_empty() {
            let words = format!("Experiment {experiment} has empty template name at index {}", self.index);
            refuse(at, Code::ExperimentTemplateName, words, "there is no name", remedy, notes);
        } else if !new {
            let words = format!("Experiment {experiment} has repeated template name '{name}' in templates");
            let what = format!("{name:?} is the name of a template before");
            refuse(at, Code::ExperimentTemplateName, words, &what, remedy, notes);
        }
    }

    /// Argo Rollouts does not look at the pods; the API server will.
    fn check_pods(&self, notes: &mut Notes) {
        let mut aside = Notes::default();
        let object = pods::replica_set(self.template.selector.as_ref(), &self.template.template, &mut aside);
        for error in builtin::judge_template(&object) {
            let below = pods::template_path(&error.field);
            let mut path = Path::of_field(&format!("spec.templates[{}]", self.index));
            path.0.extend(below.0.into_iter().skip(1));
            let (what, remedy) = pods::describe(&error);
            notes.ours_at(path, Code::ExperimentPods, what, remedy);
        }
    }
}

/// Notes what Argo Rollouts reports, after which it stops.
fn refuse(at: &At, code: Code, words: String, what: &str, remedy: &str, notes: &mut Notes) {
    notes.argo(at, code, Words::Plain(words), what, remedy);
    notes.argo_stops();
}

fn duration(wire: &api::ExperimentSpec, at: &At, notes: &mut Notes) -> Option<jiff::SignedDuration> {
    if wire.duration.is_empty() {
        if !wire.analyses.iter().any(|analysis| analysis.required_for_completion) {
            let what = "there is neither a duration nor an analysis that is required for completion";
            notes.ours(&at.key("duration"), Code::ExperimentEndless, what, "add a duration such as 1h");
        }
        return None;
    }
    match duration::parse(&wire.duration) {
        Ok(duration) => Some(duration),
        Err(error) => {
            let remedy = "write a text such as 90s, 15m or 1h30m";
            notes.ours(&at.key("duration"), Code::ExperimentDuration, error, remedy);
            None
        }
    }
}

fn analyses(wire: &[api::ExperimentAnalysisTemplateRef], at: &At, notes: &mut Notes) -> Vec<Analysis> {
    let mut names = BTreeSet::new();
    let mut analyses = Vec::new();
    for (index, one) in wire.iter().enumerate() {
        if !names.insert(&one.name) {
            let item = at.index(index);
            let what = format!("{:?} is the name of an analysis before", one.name);
            notes.ours(&item.key("name"), Code::AnalysisNameTwice, what, "give each analysis a name of its own");
        }
        analyses.push(Analysis {
            name: one.name.clone(),
            template: analysis::template_ref(&one.template_name, one.cluster_scope),
            arguments: one.args.clone(),
            required: one.required_for_completion,
        });
    }
    analyses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_of_the_pods_is_found_at_its_place() {
        let wire: api::Experiment = api::read(&crate::value!({"spec": {"duration": "1h", "templates": [{
            "name": "a",
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a"}]}},
        }]}}))
        .object;
        let parsed = experiment(&wire);
        let places: Vec<String> = parsed.problems.iter().map(|problem| problem.path.to_string()).collect();
        assert_eq!(places, ["spec.templates[0].template.spec.containers[0].image"]);
        assert!(parsed.exact.is_some());
    }
}
