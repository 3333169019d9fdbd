//! Analyses: how a Rollout refers to them, their templates, their runs.

use std::collections::BTreeSet;

use super::{metric, strategy::run_metadata, tolerated, tolerated_seconds};
use crate::{
    api,
    model::{
        analysis::{
            Analysis, ArgumentValue, BackgroundAnalysis, Parameter, ParameterDefault, Retention, Run, Scope, Template,
            TemplateRef, TimeToLive,
        },
        arguments, go_json,
        path::At,
        problem::{Code, Notes, Parsed, Words},
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

/// An AnalysisTemplate.
pub fn template(wire: &api::AnalysisTemplate) -> Parsed<Template> {
    template_spec(&wire.spec)
}

/// A ClusterAnalysisTemplate.
pub fn cluster_template(wire: &api::ClusterAnalysisTemplate) -> Parsed<Template> {
    template_spec(&wire.spec)
}

fn template_spec(wire: &api::AnalysisTemplateSpec) -> Parsed<Template> {
    let mut notes = Notes::default();
    let at = At::ROOT.key("spec");
    let parameters = parameters(&wire.args, &at.key("args"), &mut notes);
    // A template may consist of others alone.
    let has_metrics = !wire.metrics.is_empty() || wire.templates.is_empty();
    let sound = !has_metrics || metric::check(&wire.metrics, &at.key("metrics"), &mut notes).is_some();
    tags(&wire.metrics, &wire.args, &at.key("metrics"), &mut notes);
    metric::check_patterns(wire.dry_run.iter().map(|rule| &rule.metric_name), &at.key("dryRun"), &mut notes);
    let retention_at = at.key("measurementRetention");
    metric::check_patterns(wire.measurement_retention.iter().map(|rule| &rule.metric_name), &retention_at, &mut notes);
    let exact = sound.then(|| Template {
        parameters,
        metrics: wire.metrics.clone(),
        dry_run: wire.dry_run.iter().map(|rule| rule.metric_name.clone()).collect(),
        retention: wire.measurement_retention.iter().map(retention).collect(),
        templates: wire.templates.iter().map(|one| template_ref(&one.template_name, one.cluster_scope)).collect(),
    });
    notes.close(exact)
}

fn parameters(wire: &[api::Argument], at: &At, notes: &mut Notes) -> Vec<Parameter> {
    let mut names = BTreeSet::new();
    let mut parameters = Vec::new();
    for (index, argument) in wire.iter().enumerate() {
        let at = at.index(index);
        if !names.insert(&argument.name) {
            let what = format!("{:?} is declared before", argument.name);
            notes.ours(&at.key("name"), Code::ArgumentDeclaredTwice, what, "declare each argument once");
        }
        parameters.push(Parameter { name: argument.name.clone(), default: parameter_default(argument, &at, notes) });
    }
    parameters
}

fn parameter_default(wire: &api::Argument, at: &At, notes: &mut Notes) -> ParameterDefault {
    if wire.value.is_some() && wire.value_from.is_some() {
        let words = Words::Plain(format!("arg '{}' has both Value and ValueFrom fields", wire.name));
        let what = format!("{:?} has a value and a source", wire.name);
        notes.argo(at, Code::ArgumentTwice, words, what, "keep one of value and valueFrom");
    }
    let from = wire.value_from.clone().unwrap_or_default();
    match (&wire.value, from.secret_key_ref, from.field_ref) {
        (Some(value), _, _) => ParameterDefault::Literal(value.clone()),
        (None, Some(secret), _) => ParameterDefault::Secret { name: secret.name, key: secret.key },
        (None, None, Some(field)) => {
            let what = "a template cannot take an argument from a field; only what uses the template can";
            let remedy = "remove valueFrom.fieldRef, and give it where the template is used";
            notes.ours(&at.key("valueFrom"), Code::ArgumentSource, what, remedy);
            ParameterDefault::Field(field.field_path)
        }
        (None, None, None) => ParameterDefault::None,
    }
}

/// Every argument that a metric uses must be declared: whatever else stands between braces cannot be filled in.
fn tags(metrics: &[api::Metric], declared: &[api::Argument], at: &At, notes: &mut Notes) {
    // Argo Rollouts finds out when the template is used.
    notes.argo_stops();
    for (index, metric) in metrics.iter().enumerate() {
        let at = at.index(index);
        let written = go_json::metric().text(&api::write(metric));
        let Ok(parts) = arguments::split(&written) else {
            let what = "braces are opened and not closed";
            notes.ours(&at, Code::ArgumentUnknown, what, "close them: {{args.name}}");
            continue;
        };
        let known = |tag: &str| {
            let name = tag.trim().strip_prefix("args.");
            name.is_some_and(|name| declared.iter().any(|argument| argument.name == name))
        };
        let mut named = BTreeSet::new();
        for part in parts {
            if let arguments::Part::Tag(tag) = part
                && !known(tag)
                && named.insert(tag)
            {
                let words = Words::Plain(format!("failed to resolve {{{{{tag}}}}}"));
                let what = format!("{{{{{tag}}}}} names no declared argument");
                notes.argo(&at, Code::ArgumentUnknown, words, what, "declare it under spec.args, or correct its name");
            }
        }
    }
}

/// What stands for a Secret's value while a run is checked.
const SECRET: &str = "temp-for-secret";

/// An AnalysisRun. Its arguments are filled into its metrics; those from Secrets with a word that stands for them.
pub fn run(wire: &api::AnalysisRun) -> Parsed<Run> {
    let mut notes = Notes::default();
    let at = At::ROOT.key("spec");
    let spec = &wire.spec;
    let filled = filled_arguments(&spec.args);
    let metrics_at = at.key("metrics");
    let mut metrics = Vec::new();
    for (index, metric) in spec.metrics.iter().enumerate() {
        match arguments::resolve_metric(metric, &filled) {
            Ok(metric) => metrics.push(metric),
            Err(error) => {
                let words = Words::Plain(error.clone());
                let remedy = "give every argument a value, and correct the names between braces";
                notes.argo(&metrics_at.index(index), Code::ArgumentUnresolved, words, error, remedy);
                notes.argo_stops();
                metrics.push(metric.clone());
            }
        }
    }
    let all = metric::Metrics { metrics: &metrics, dry_run: &spec.dry_run, retention: &spec.measurement_retention };
    let metrics = all.exact(&at, &mut notes);
    let ttl = time_to_live(spec.ttl_strategy.as_ref(), &at.key("ttlStrategy"), &mut notes);
    let exact = metrics.map(|metrics| Run { metrics, terminate: spec.terminate, time_to_live: ttl });
    notes.close(exact)
}

fn filled_arguments(wire: &[api::Argument]) -> Vec<api::Argument> {
    let from_secret =
        |argument: &api::Argument| argument.value_from.as_ref().is_some_and(|from| from.secret_key_ref.is_some());
    let fill = |argument: &api::Argument| match from_secret(argument) {
        true => api::Argument { value: Some(SECRET.to_owned()), ..argument.clone() },
        false => argument.clone(),
    };
    wire.iter().map(fill).collect()
}

fn time_to_live(wire: Option<&api::TtlStrategy>, at: &At, notes: &mut Notes) -> TimeToLive {
    let Some(wire) = wire else { return TimeToLive::default() };
    let mut after =
        |seconds: Option<i32>, field: &str| seconds.map(|seconds| tolerated_seconds(seconds, &at.key(field), notes));
    TimeToLive {
        after_completion: after(wire.seconds_after_completion, "secondsAfterCompletion"),
        after_failure: after(wire.seconds_after_failure, "secondsAfterFailure"),
        after_success: after(wire.seconds_after_success, "secondsAfterSuccess"),
    }
}
