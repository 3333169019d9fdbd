//! Analyses: how a Rollout refers to them.

use super::{strategy::run_metadata, tolerated};
use crate::{
    api,
    model::{
        analysis::{Analysis, ArgumentValue, BackgroundAnalysis, Retention, Scope, TemplateRef},
        path::At,
        problem::{Code, Notes},
    },
};

/// An analysis that a Rollout starts.
pub fn reference(wire: &api::RolloutAnalysis, at: &At, notes: &mut Notes) -> Option<Analysis> {
    if wire.templates.is_empty() {
        let what = "there is no template, so nothing is measured";
        notes.ours(&at.key("templates"), Code::TemplatesMissing, what, "name a template, or remove the analysis");
    }
    Some(Analysis {
        templates: wire.templates.iter().map(|one| template_ref(&one.template_name, one.cluster_scope)).collect(),
        arguments: arguments(&wire.args, &at.key("args"), notes),
        dry_run: wire.dry_run.iter().map(|rule| rule.metric_name.clone()).collect(),
        retention: wire.measurement_retention.iter().map(retention).collect(),
        metadata: wire.analysis_run_metadata.as_ref().map(run_metadata).unwrap_or_default(),
    })
}

/// An analysis that runs beside the steps.
pub fn background(
    wire: &api::RolloutAnalysisBackground,
    canary: &api::CanaryStrategy,
    at: &At,
    notes: &mut Notes,
) -> Option<BackgroundAnalysis> {
    let step_at = at.key("startingStep");
    let starting_step = tolerated(wire.starting_step.unwrap_or(0), &step_at, notes);
    if starting_step > 0 && starting_step as usize >= canary.steps.len() {
        let what = format!("step {starting_step}, counted from 0, does not exist: there are {}", canary.steps.len());
        notes.ours(&step_at, Code::StartingStep, what, "name a step that exists; the first is 0");
    }
    let plain = api::RolloutAnalysis {
        templates: wire.templates.clone(),
        args: wire.args.clone(),
        dry_run: wire.dry_run.clone(),
        measurement_retention: wire.measurement_retention.clone(),
        analysis_run_metadata: wire.analysis_run_metadata.clone(),
    };
    Some(BackgroundAnalysis { analysis: reference(&plain, at, notes)?, starting_step })
}

/// A template by name and scope.
pub fn template_ref(name: &str, cluster_scope: Option<bool>) -> TemplateRef {
    let scope = if cluster_scope == Some(true) { Scope::Cluster } else { Scope::Namespace };
    TemplateRef { name: name.to_owned(), scope }
}

pub fn retention(wire: &api::MeasurementRetention) -> Retention {
    Retention { pattern: wire.metric_name.clone(), limit: wire.limit }
}

/// The values of arguments that a Rollout gives.
pub fn arguments(wire: &[api::AnalysisRunArgument], at: &At, notes: &mut Notes) -> Vec<(String, ArgumentValue)> {
    let one = |(index, wire): (usize, &api::AnalysisRunArgument)| {
        (wire.name.clone(), argument(wire, &at.index(index), notes))
    };
    wire.iter().enumerate().map(one).collect()
}

fn argument(wire: &api::AnalysisRunArgument, at: &At, notes: &mut Notes) -> ArgumentValue {
    let mut odd = |what: &str| {
        let remedy = "give one of value, valueFrom.podTemplateHashValue and valueFrom.fieldRef";
        notes.ours(at, Code::ArgumentSource, format!("the argument {:?} {what}", wire.name), remedy);
    };
    let literal = || ArgumentValue::Literal(wire.value.clone());
    let from = wire.value_from.clone().unwrap_or_default();
    if wire.value_from.is_some() && !wire.value.is_empty() {
        odd("has a value and a source; the source wins");
    }
    match (from.pod_template_hash_value.as_deref(), from.field_ref) {
        (Some("Stable"), _) => ArgumentValue::StableHash,
        (Some("Latest"), _) => ArgumentValue::LatestHash,
        (Some(_), _) => {
            odd("asks for the hash of neither Stable nor Latest");
            literal()
        }
        (None, Some(field)) => ArgumentValue::Field(field.field_path),
        (None, None) => {
            if wire.value_from.is_some() {
                odd("has a source that names nothing");
            }
            literal()
        }
    }
}
