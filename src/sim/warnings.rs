//! What is wrong with a plan, or worth a look: all of `lint` on the changed objects, what a server would refuse, and what only
//! a forecast shows.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Instant,
};

use super::{
    forecast::{Model, START},
    plan::{Sets, Sides},
    starts,
};
use crate::{
    api::{self, Rollout, constants},
    kubernetes::{selector::Labels, value::Value},
    lint::{self, Spot, rule::Severity},
    manifest::{Object, place::Step},
    model::limits,
    plan::{Change, Plan, RolloutPlan, Starts, Warning, What, forecast::Outcome},
    sync::{id::Id, set::Desired},
};

/// So many changed objects are tried on a server of our own.
const TRIED: usize = 2000;

/// Everything there is to say, the worst first.
pub fn all(sides: &Sides, sets: &Sets, plan: &Plan, deadline: Option<Instant>) -> Vec<Warning> {
    let mut warnings = linted(sides, plan);
    let new: HashMap<&Id, &Desired> = sets.new.with_hooks().map(|desired| (&desired.id, desired)).collect();
    if plan.problems.is_empty() {
        warnings.extend(refused(plan, &new, deadline));
    }
    for rollout in &plan.rollouts {
        let Some(desired) = new.get(&rollout.id) else { continue };
        warnings.extend(of_rollout(rollout, desired, &new));
    }
    warnings.extend(plan.objects.iter().filter_map(lost));
    // What was so before is no part of the change.
    warnings.extend(sides.new.notes.iter().filter(|note| !sides.old.notes.contains(note)).cloned());
    sort(&mut warnings);
    warnings
}

/// What metrics gave to think about when they were asked; the worst first, with what was known.
pub fn asked(plan: &mut Plan) {
    let mut found = Vec::new();
    for rollout in &plan.rollouts {
        let of = (&rollout.id, rollout.file.as_str(), rollout.line);
        let steps = rollout.forecast.iter().flat_map(|forecast| &forecast.steps);
        for query in steps.flat_map(|step| &step.analyses).flat_map(|analysis| &analysis.queries) {
            let (metric, value) = (&query.metric, &query.value);
            let is_empty = ["", "[]", "NaN", "[NaN]", "null"].contains(&value.as_str());
            found.push(match query.phase.as_str() {
                "" => {
                    warning(Severity::Hint, "metric-not-asked", of, format!("metric {metric}: {}", query.message), "")
                }
                "Error" => warning(
                    Severity::Warning,
                    "metric-error",
                    of,
                    format!("metric {metric} cannot be measured today: {}", query.message),
                    "correct the query, or see that its provider answers",
                ),
                _ if is_empty => warning(
                    Severity::Warning,
                    "metric-without-data",
                    of,
                    format!("metric {metric} has no data today"),
                    "correct the query, or give a condition for the absence of data",
                ),
                "Failed" => warning(
                    Severity::Warning,
                    "metric-fails-today",
                    of,
                    format!("metric {metric} fails today already: {value}"),
                    "see that the condition fits what is usual",
                ),
                _ => continue,
            });
        }
    }
    plan.warnings.extend(found);
    sort(&mut plan.warnings);
}

fn sort(warnings: &mut Vec<Warning>) {
    warnings.sort_by(|one, other| {
        let key = |warning: &Warning| (std::cmp::Reverse(warning.severity), warning.file.clone(), warning.line);
        key(one).cmp(&key(other)).then_with(|| one.rule.cmp(&other.rule)).then_with(|| one.message.cmp(&other.message))
    });
    warnings.dedup();
}

/// What `lint` says about the changed objects, and about others because of them.
fn linted(sides: &Sides, plan: &Plan) -> Vec<Warning> {
    let changed: HashSet<(&str, usize)> = plan
        .objects
        .iter()
        .filter(|change| is_there(change))
        .map(|change| (change.file.as_str(), change.line))
        .collect();
    let broken: BTreeSet<&str> = plan.problems.iter().map(|problem| problem.file.as_str()).collect();
    if changed.is_empty() && broken.is_empty() {
        return Vec::new();
    }
    let line = |object: &Object| object.position([Step::Key("kind")]).line;
    // The lines of each changed object, by file: from its first one to that of the next object.
    let mut spans: HashMap<&str, Vec<(u32, u32)>> = HashMap::new();
    for object in sides.new.files.iter().flat_map(|file| &file.objects) {
        if changed.contains(&(object.source.name.as_str(), line(object))) {
            for (source, extent) in object.extents() {
                spans.entry(source.name.as_str()).or_default().push((extent.start, extent.end));
            }
        }
    }
    let concerns = |spot: &Spot| {
        let name = spot.source.name.as_str();
        let spans = spans.get(name).map(Vec::as_slice).unwrap_or_default();
        broken.contains(name) || spans.iter().any(|(start, end)| *start <= spot.span.start && spot.span.start <= *end)
    };
    let report = lint::lint(&sides.new.files);
    let findings = report.findings.into_iter();
    let findings =
        findings.filter(|finding| concerns(&finding.at) || finding.also.iter().any(|(spot, _)| concerns(spot)));
    findings
        .map(|finding| {
            let at = finding.at.source.position(finding.at.span.start);
            Warning {
                severity: finding.rule.severity(),
                rule: finding.rule.name().to_owned(),
                message: finding.what,
                remedy: finding.remedy,
                object: finding.object,
                file: finding.at.source.name.clone(),
                line: at.line,
                column: at.column,
            }
        })
        .collect()
}

fn is_there(change: &Change) -> bool {
    matches!(change.what, What::Create | What::Change)
}

fn warning(severity: Severity, rule: &str, of: (&Id, &str, usize), message: String, remedy: &str) -> Warning {
    let (id, file, line) = of;
    Warning {
        severity,
        rule: rule.to_owned(),
        message,
        remedy: remedy.to_owned(),
        object: id.to_string(),
        file: file.to_owned(),
        line,
        column: 0,
    }
}

/// What a server would refuse: the changed objects are tried on one of our own, which knows the built-in kinds.
fn refused(plan: &Plan, new: &HashMap<&Id, &Desired>, deadline: Option<Instant>) -> Vec<Warning> {
    let changed = plan.objects.iter().filter(|change| is_there(change)).take(TRIED);
    let tried: Vec<&Desired> = changed.filter_map(|change| new.get(&change.id).copied()).collect();
    if tried.is_empty() {
        return Vec::new();
    }
    let mut model = Model::new(START).until(deadline);
    // What is only defined by the same commit is not served when it is tried.
    let known = tried.iter().copied().filter(|desired| desired.sort.served);
    model.define(known.clone());
    model.apply(known);
    let said: HashSet<&Id> = plan.rollouts.iter().filter(|of| of.starts == Starts::Invalid).map(|of| &of.id).collect();
    let refused = std::mem::take(&mut model.refused);
    let refused = refused.iter().filter(|(id, _)| !said.contains(id));
    refused
        .filter_map(|(id, why)| {
            let desired = new.get(id)?;
            let remedy = "correct the manifest; `tidegate lint` may say more";
            // What a server says about a Secret may quote it.
            let why = if id.is("", "Secret") { "it is no valid Secret" } else { why };
            let of = (id, desired.file.as_str(), desired.line);
            Some(warning(Severity::Error, "refused", of, format!("a server refuses it: {why}"), remedy))
        })
        .collect()
}

/// What a Rollout's forecast and its neighbours give to think about.
fn of_rollout(plan: &RolloutPlan, desired: &Desired, new: &HashMap<&Id, &Desired>) -> Vec<Warning> {
    let of = (&plan.id, plan.file.as_str(), plan.line);
    let rollout: Rollout = api::read(&desired.object).object;
    let mut found = Vec::new();
    if plan.starts == Starts::Invalid {
        let remedy = "correct the specification";
        found.push(warning(Severity::Error, "invalid", of, plan.reason.clone(), remedy));
    }
    if let Some(forecast) = &plan.forecast {
        match forecast.outcome {
            Outcome::Healthy => {}
            Outcome::Degraded => found.push(warning(
                Severity::Error,
                "forecast-degraded",
                of,
                format!("the forecast ends degraded: {}", forecast.message),
                "see the steps of the forecast",
            )),
            Outcome::Unfinished => found.push(warning(
                Severity::Warning,
                "forecast-unfinished",
                of,
                format!("the forecast does not end: {}", forecast.message),
                "see the steps of the forecast",
            )),
        }
        for approval in &forecast.approvals {
            found.push(warning(
                Severity::Hint,
                "pause-without-end",
                of,
                format!("waits until a person promotes it: {}", approval.what),
                "",
            ));
        }
        if forecast.lowest.0 == 0 && forecast.lowest.1 > 0 && plan.starts != Starts::FirstDeployment {
            found.push(warning(
                Severity::Warning,
                "no-available-pods",
                of,
                "for a while no pod is available".to_owned(),
                "give it more replicas, or a maxUnavailable of 0",
            ));
        }
        let unknown =
            forecast.steps.iter().flat_map(|step| &step.analyses).any(|analysis| analysis.metrics == ["unknown"]);
        if unknown {
            found.push(warning(
                Severity::Warning,
                "analysis-not-given",
                of,
                "an analysis uses a template that is not among the manifests: how long it runs is not known".to_owned(),
                "add the template to the folder, or plan with --live",
            ));
        }
    }
    let template = starts::pod_template(&rollout, desired, new);
    found.extend(deadline(&rollout, template, of));
    found.extend(budgets(&rollout, template, new, of));
    found
}

/// A deadline that passes while pods only do what their probes tell them.
fn deadline(rollout: &Rollout, template: Option<&Value>, of: (&Id, &str, usize)) -> Option<Warning> {
    let deadline = i64::from(rollout.spec.progress_deadline_seconds.unwrap_or(600));
    let containers = template.map(|template| template.list_at(&["spec", "containers"])).unwrap_or_default().iter();
    let delay = |container: &Value| {
        let seconds = |probe: &str| container.int_at(&[probe, "initialDelaySeconds"]).unwrap_or_default();
        seconds("startupProbe") + seconds("readinessProbe")
    };
    let slowest = containers.map(delay).max().unwrap_or_default();
    let waits = slowest.max(i64::from(rollout.spec.min_ready_seconds));
    (waits >= deadline && waits > 0).then(|| {
        warning(
            Severity::Warning,
            "deadline-too-short",
            of,
            format!("progressDeadlineSeconds is {deadline}, and pods take at least {waits} s by their own probes"),
            "raise progressDeadlineSeconds, or shorten initialDelaySeconds",
        )
    })
}

/// Budgets that let no pod go: a restart and the drain of a node wait for ever.
fn budgets(
    rollout: &Rollout,
    template: Option<&Value>,
    new: &HashMap<&Id, &Desired>,
    of: (&Id, &str, usize),
) -> Vec<Warning> {
    let labels = template.and_then(|template| template.at(&["metadata", "labels"])?.as_map());
    let wanted = limits::replicas(rollout);
    let beside = new.iter().filter(|(id, _)| id.is("policy", "PodDisruptionBudget") && id.namespace == of.0.namespace);
    let mut blocking: Vec<&Id> = beside
        .filter(|(_, budget)| {
            let spec = |key: &str| budget.object.at(&["spec", key]);
            let selects =
                spec("selector").and_then(|selector| Labels::of(selector).ok()).is_some_and(|s| s.matches(labels));
            let amount = |value: &Value, up: bool| share(value, wanted, up);
            let blocks = match (spec("maxUnavailable"), spec("minAvailable")) {
                (Some(most), _) => amount(most, true) == Some(0),
                (None, Some(least)) => amount(least, true).is_some_and(|least| least >= wanted),
                (None, None) => false,
            };
            selects && blocks
        })
        .map(|(id, _)| *id)
        .collect();
    blocking.sort();
    let restarts = rollout.spec.restart_at.is_some();
    let severity = if restarts { Severity::Warning } else { Severity::Hint };
    blocking
        .into_iter()
        .map(|id| {
            warning(
                severity,
                "budget-blocks-restart",
                of,
                format!("{id} lets no pod be evicted: a restart and the drain of a node wait for ever"),
                "allow one pod to be unavailable, or run one more than minAvailable",
            )
        })
        .collect()
}

/// A number, or a share of so many.
fn share(value: &Value, of: i32, up: bool) -> Option<i32> {
    if let Some(count) = value.as_int() {
        return i32::try_from(count).ok();
    }
    let percent: i32 = value.as_str()?.strip_suffix('%')?.parse().ok()?;
    let product = of.checked_mul(percent)?;
    Some(if up { product.div_euclid(100) + i32::from(product.rem_euclid(100) > 0) } else { product / 100 })
}

/// What takes more with it than itself.
fn lost(change: &Change) -> Option<Warning> {
    if change.what != What::Delete {
        return None;
    }
    let what = match (change.id.group.as_str(), change.id.kind.as_str()) {
        ("", "Namespace") => "everything in it is deleted with it",
        ("apiextensions.k8s.io", "CustomResourceDefinition") => "all objects of its kind are deleted with it",
        ("", "PersistentVolumeClaim") => "its data may be lost",
        (constants::GROUP, constants::kind::ROLLOUT) => "its pods are deleted with it",
        _ => return None,
    };
    let of = (&change.id, change.file.as_str(), change.line);
    let remedy = "annotate it with tidegate.dev/prune: disabled to keep it";
    Some(warning(Severity::Warning, "prune-takes-more", of, format!("it is deleted, and {what}"), remedy))
}
