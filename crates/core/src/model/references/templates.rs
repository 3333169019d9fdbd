//! Analysis templates: whether they can be put together, and whether every argument gets a value.

use super::Finding;
use crate::{
    api::{self, AnalysisTemplateSpec, Argument, DryRun, IntOrString, MeasurementRetention, Metric},
    model::{
        arguments, compose,
        parse::is_metadata_field,
        problem::{Code, Notes},
        weight::int_value,
    },
};

/// The templates of one analysis of a Rollout.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    /// What the analysis is for.
    pub role: Role,
    /// The templates by name: those of the namespace first, each with all that it names.
    pub templates: Vec<(String, AnalysisTemplateSpec)>,
    /// The arguments that the Rollout gives.
    pub arguments: Vec<api::AnalysisRunArgument>,
}

/// What an analysis is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// It is measured before blue-green switches.
    PrePromotion,
    /// It is measured after blue-green has switched.
    PostPromotion,
    /// It is a step, this one.
    Step(usize),
    /// It runs beside the steps.
    #[default]
    Background,
}

impl Role {
    /// The field that names the templates.
    pub fn field(self) -> String {
        match self {
            Role::PrePromotion => "spec.strategy.blueGreen.prePromotionAnalysis.templates".to_owned(),
            Role::PostPromotion => "spec.strategy.blueGreen.postPromotionAnalysis.templates".to_owned(),
            Role::Step(index) => format!("spec.strategy.canary.steps[{index}].analysis.templates"),
            Role::Background => "spec.strategy.canary.analysis.templates".to_owned(),
        }
    }
}

/// Why templates cannot be put together.
struct Refusal {
    code: Code,
    argo: String,
}

impl From<compose::Refusal> for Refusal {
    fn from(refusal: compose::Refusal) -> Refusal {
        let code = match &refusal {
            compose::Refusal::MetricTwice(_) => Code::MetricNameTwice,
            compose::Refusal::RuleTwice(..) => Code::RuleTwice,
            compose::Refusal::ArgumentTwice { .. } => Code::ArgumentTwice,
            compose::Refusal::ArgumentOpen(_) => Code::ArgumentUnresolved,
        };
        Refusal { code, argo: refusal.to_string() }
    }
}

impl Templates {
    pub(super) fn check(&self, rollout: &api::Rollout, notes: &mut Notes) {
        let field = self.role.field();
        let names: Vec<&str> = self.templates.iter().map(|(name, _)| name.as_str()).collect();
        let value = format!("templateNames: [{}]", names.join(" "));
        let given = given_arguments(&self.arguments);
        let canary = rollout.spec.strategy.canary.as_ref();
        let steps = canary.into_iter().flat_map(|canary| &canary.steps).filter_map(|step| step.analysis.as_ref());
        let rules = steps.map(|step| (step.dry_run.as_slice(), step.measurement_retention.as_slice()));
        // Argo Rollouts tries the rules of every step on every analysis.
        let tried = std::iter::once((&[][..], &[][..])).chain(rules);
        for (dry_run, retention) in tried {
            if let Err(Refusal { code, argo }) = self.merge(&given, dry_run, retention) {
                let finding = Finding { field: &field, value: &value, code };
                return finding.note(argo.clone(), argo, remedy(code), notes);
            }
        }
        for (name, template) in &self.templates {
            match self.role {
                Role::Background => self.check_background(name, template, rollout, notes),
                Role::PrePromotion | Role::PostPromotion | Role::Step(_) => self.check_ending(name, template, notes),
            }
        }
    }

    /// Whether the templates can be made into one run.
    fn merge(&self, given: &[Argument], dry_run: &[DryRun], retention: &[MeasurementRetention]) -> Result<(), Refusal> {
        let given = compose::Given { arguments: given, dry_run, retention };
        let made = compose::flatten(self.templates.iter().map(|(_, spec)| spec));
        made.and_then(|template| compose::run(template, given)).map(drop).map_err(Refusal::from)
    }

    /// An analysis that somebody waits for must end.
    fn check_ending(&self, name: &str, template: &AnalysisTemplateSpec, notes: &mut Notes) {
        let field = self.role.field();
        let finding = |code| Finding { field: &field, value: name, code };
        let metrics = match resolved(template) {
            Ok(metrics) => metrics,
            Err(Refusal { code, argo }) => {
                let detail = format!("AnalysisTemplate {name}: {argo}");
                return finding(code).note(detail, format!("the template {name:?}: {argo}"), remedy(code), notes);
            }
        };
        for metric in metrics {
            let count = metric.count.as_ref();
            if count.is_none_or(|count| int_value(count) == 0) && !metric.interval.is_empty() {
                let printed = count.map_or_else(|| "<nil>".to_owned(), IntOrString::to_string);
                let metric = &metric.name;
                let detail = format!(
                    "AnalysisTemplate {name} has metric {metric} which runs indefinitely. Invalid value for count: \
                     {printed}"
                );
                let what = format!("the metric {metric:?} of the template {name:?} never ends");
                finding(Code::MetricEndless).note(detail, what, "give the metric a count", notes);
            }
        }
    }

    fn check_background(&self, name: &str, template: &AnalysisTemplateSpec, rollout: &api::Rollout, notes: &mut Notes) {
        let field = self.role.field();
        let finding = Finding { field: &field, value: name, code: Code::ArgumentUnresolved };
        let canary = rollout.spec.strategy.canary.as_ref();
        let analysis = canary.and_then(|canary| canary.analysis.as_ref());
        let given = analysis.map(|analysis| analysis.args.as_slice()).unwrap_or_default();
        for argument in
            template.args.iter().filter(|argument| argument.value.is_none() && argument.value_from.is_none())
        {
            if given.iter().any(|given| given.name == argument.name) {
                continue;
            }
            let detail = match given {
                [] => "missing analysis arguments in rollout spec".to_owned(),
                _ => argument.name.clone(),
            };
            let what = format!("the argument {:?} of the template {name:?} gets no value", argument.name);
            finding.note(detail, what, remedy(Code::ArgumentUnresolved), notes);
        }
    }
}

fn remedy(code: Code) -> &'static str {
    match code {
        Code::MetricNameTwice => "rename one of the metrics, or use one of the templates",
        Code::RuleTwice => "keep one of the rules",
        Code::ArgumentTwice => "let the templates agree on the value, and keep one of value and valueFrom",
        Code::ArgumentUnresolved => "give the argument a value under args, or a default in the template",
        Code::ArgumentUnknown => "declare the argument under the template's args, or correct its name",
        _ => "correct the template",
    }
}

/// The metrics with a word in place of every argument.
fn resolved(template: &AnalysisTemplateSpec) -> Result<Vec<Metric>, Refusal> {
    const PLACEHOLDER: &str = "dummy-value";
    let both = template.args.iter().find(|argument| argument.value.is_some() && argument.value_from.is_some());
    if let Some(argument) = both {
        let argo = format!("arg '{}' has both Value and ValueFrom fields", argument.name);
        return Err(Refusal { code: Code::ArgumentTwice, argo });
    }
    let fill = |argument: &Argument| Argument {
        value: argument.value.clone().or_else(|| Some(PLACEHOLDER.to_owned())),
        ..argument.clone()
    };
    let filled: Vec<Argument> = template.args.iter().map(fill).collect();
    let resolve = |metric| arguments::resolve_metric(metric, &filled);
    let metrics: Result<Vec<Metric>, String> = template.metrics.iter().map(resolve).collect();
    metrics.map_err(|argo| Refusal { code: Code::ArgumentUnknown, argo })
}

/// The arguments that a Rollout gives, with words in place of the hashes. One that asks for a field of metadata that does
/// not exist leaves Argo Rollouts without any.
fn given_arguments(given: &[api::AnalysisRunArgument]) -> Vec<Argument> {
    let mut arguments = Vec::new();
    for argument in given {
        let from = argument.value_from.clone().unwrap_or_default();
        let value = match (from.pod_template_hash_value.as_deref(), from.field_ref) {
            (Some("Latest"), _) => "dummy-new-hash".to_owned(),
            (Some("Stable"), _) => "dummy-stable-hash".to_owned(),
            (Some(_), _) | (None, None) => argument.value.clone(),
            (None, Some(field)) if field.field_path.starts_with("metadata") => {
                if !is_metadata_field(&field.field_path) {
                    return Vec::new();
                }
                String::new()
            }
            (None, Some(_)) => String::new(),
        };
        arguments.push(Argument { name: argument.name.clone(), value: Some(value), value_from: None });
    }
    arguments
}
