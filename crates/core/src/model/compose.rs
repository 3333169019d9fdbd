//! Several analysis templates made into one run: their metrics in a row, their arguments and rules merged.
//!
//! Never looks a template up, and never fills an argument in.

use std::{collections::BTreeSet, fmt};

use super::arguments;
use crate::api::{AnalysisRunSpec, AnalysisTemplateSpec, Argument, DryRun, MeasurementRetention};

/// Why templates cannot be made into one run; as text, in the words of Argo Rollouts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Two metrics have this name.
    MetricTwice(String),
    /// Two rules of this kind name the same metrics.
    RuleTwice(Rule, String),
    /// Two templates want different values for this argument.
    ArgumentTwice {
        /// The argument.
        name: String,
        /// The one value.
        one: String,
        /// The other.
        other: String,
    },
    /// An argument gets no value; the sentence says which.
    ArgumentOpen(String),
}

/// A kind of rule about some of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// They are measured but do not count.
    DryRun,
    /// So many of their measurements are kept.
    Retention,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::MetricTwice(name) => write!(f, "two metrics have the same name '{name}'"),
            Refusal::RuleTwice(Rule::DryRun, name) => {
                write!(f, "two Dry-Run metric rules have the same name '{name}'")
            }
            Refusal::RuleTwice(Rule::Retention, name) => {
                write!(f, "two Measurement Retention metric rules have the same name '{name}'")
            }
            Refusal::ArgumentTwice { name, one, other } => {
                write!(f, "Argument `{name}` specified multiple times with different values: '{one}', '{other}'")
            }
            Refusal::ArgumentOpen(sentence) => f.write_str(sentence),
        }
    }
}

/// The templates as one: those of the namespace first, then those of the cluster.
pub fn flatten<'t>(
    templates: impl Iterator<Item = &'t AnalysisTemplateSpec> + Clone,
) -> Result<AnalysisTemplateSpec, Refusal> {
    let metrics: Vec<_> = templates.clone().flat_map(|template| template.metrics.iter().cloned()).collect();
    if let Some(name) = twice(metrics.iter().map(|metric| &metric.name)) {
        return Err(Refusal::MetricTwice(name.to_owned()));
    }
    let dry_run = merged_dry_run(templates.clone().flat_map(|template| &template.dry_run))?;
    let measurement_retention =
        merged_retention(templates.clone().flat_map(|template| &template.measurement_retention))?;
    let args = declared(templates)?;
    Ok(AnalysisTemplateSpec { metrics, args, dry_run, measurement_retention, templates: Vec::new() })
}

/// What is given from outside to a run of a template.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'g> {
    /// Values for its arguments.
    pub arguments: &'g [Argument],
    /// Metrics that are measured but do not count.
    pub dry_run: &'g [DryRun],
    /// How many measurements to keep.
    pub retention: &'g [MeasurementRetention],
}

/// The run of a template that was made of several.
pub fn run(template: AnalysisTemplateSpec, given: Given<'_>) -> Result<AnalysisRunSpec, Refusal> {
    let args = arguments::merge(given.arguments, &template.args).map_err(Refusal::ArgumentOpen)?;
    let dry_run = merged_dry_run(given.dry_run.iter().chain(&template.dry_run))?;
    let measurement_retention = merged_retention(given.retention.iter().chain(&template.measurement_retention))?;
    Ok(AnalysisRunSpec {
        metrics: template.metrics,
        args,
        dry_run,
        measurement_retention,
        ..AnalysisRunSpec::default()
    })
}

fn merged_dry_run<'r>(rules: impl Iterator<Item = &'r DryRun>) -> Result<Vec<DryRun>, Refusal> {
    let rules: Vec<DryRun> = rules.cloned().collect();
    match twice(rules.iter().map(|rule| &rule.metric_name)) {
        Some(name) => Err(Refusal::RuleTwice(Rule::DryRun, name.to_owned())),
        None => Ok(rules),
    }
}

fn merged_retention<'r>(
    rules: impl Iterator<Item = &'r MeasurementRetention>,
) -> Result<Vec<MeasurementRetention>, Refusal> {
    let rules: Vec<MeasurementRetention> = rules.cloned().collect();
    match twice(rules.iter().map(|rule| &rule.metric_name)) {
        Some(name) => Err(Refusal::RuleTwice(Rule::Retention, name.to_owned())),
        None => Ok(rules),
    }
}

/// The first that is there twice.
fn twice<'n>(names: impl Iterator<Item = &'n String>) -> Option<&'n str> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name)).map(String::as_str)
}

/// The arguments that templates declare together.
fn declared<'t>(templates: impl Iterator<Item = &'t AnalysisTemplateSpec>) -> Result<Vec<Argument>, Refusal> {
    let mut declared: Vec<Argument> = Vec::new();
    for argument in templates.flat_map(|template| &template.args) {
        match declared.iter_mut().find(|known| known.name == argument.name) {
            None => declared.push(argument.clone()),
            Some(known) => match (&known.value, &argument.value) {
                (Some(one), Some(other)) if one != other => {
                    return Err(Refusal::ArgumentTwice {
                        name: argument.name.clone(),
                        one: one.clone(),
                        other: other.clone(),
                    });
                }
                (None, _) => *known = argument.clone(),
                (Some(_), _) => {}
            },
        }
    }
    Ok(declared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, value};

    fn template(value: &crate::kubernetes::value::Value) -> AnalysisTemplateSpec {
        api::read(value).object
    }

    #[test]
    fn templates_are_joined_and_what_is_said_twice_is_named() {
        let one = template(&value!({"metrics": [{"name": "a"}], "args": [{"name": "x"}, {"name": "y", "value": "1"}]}));
        let two = template(&value!({"metrics": [{"name": "b"}], "args": [{"name": "x", "value": "2"}]}));
        let both = flatten([&one, &two].into_iter()).unwrap();
        assert_eq!(both.metrics.iter().map(|metric| metric.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(
            both.args.iter().map(|argument| argument.value.as_deref()).collect::<Vec<_>>(),
            [Some("2"), Some("1")]
        );
        assert_eq!(flatten([&one, &one].into_iter()).unwrap_err().to_string(), "two metrics have the same name 'a'");
        let other = template(&value!({"args": [{"name": "x", "value": "3"}]}));
        let words = "Argument `x` specified multiple times with different values: '2', '3'";
        assert_eq!(flatten([&two, &other].into_iter()).unwrap_err().to_string(), words);
        let open = flatten([&one].into_iter()).unwrap();
        assert_eq!(run(open, Given::default()).unwrap_err().to_string(), "args.x was not resolved");
    }
}
