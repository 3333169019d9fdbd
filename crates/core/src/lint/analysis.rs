//! Analysis templates and those who use them: whether the templates are there, their arguments given, their metrics able
//! to end, and whether several of them can be merged.

use std::collections::BTreeSet;

use super::{
    Finding, Notes,
    index::{Index, Sort},
    references::look_up,
    rule::{Code, Own},
    similar, spot,
};
use crate::{
    api::constants,
    kubernetes::{schema::regexp, value::Value},
    manifest::{
        Object,
        place::{Span, Step},
    },
};

use Step::{Index as At, Key};

const TEMPLATE: Sort<'static> = Sort::new(constants::GROUP, constants::kind::ANALYSIS_TEMPLATE);
const CLUSTER_TEMPLATE: Sort<'static> = Sort::new(constants::GROUP, constants::kind::CLUSTER_ANALYSIS_TEMPLATE);
const ROLLOUT: Sort<'static> = Sort::new(constants::GROUP, constants::kind::ROLLOUT);
const EXPERIMENT: Sort<'static> = Sort::new(constants::GROUP, constants::kind::EXPERIMENT);
const RUN: Sort<'static> = Sort::new(constants::GROUP, constants::kind::ANALYSIS_RUN);

/// One use of templates: where it stands, and whether it must come to an end by itself.
struct Use<'a> {
    from: &'a Object,
    at: Vec<Step<'static>>,
    value: &'a Value,
    ends: Ends,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// With the steps of the Rollout, or with the experiment.
    WithOthers,
    /// By itself, or never.
    ByItself,
}

/// Follows every use of templates, then looks at the templates themselves.
pub fn check(index: &Index<'_>, notes: &mut Notes) {
    let mut used: BTreeSet<*const Object> = BTreeSet::new();
    for rollout in index.of(ROLLOUT) {
        for usage in uses(rollout) {
            follow(index, &usage, &mut used, notes);
        }
    }
    for experiment in index.of(EXPERIMENT) {
        for (i, analysis) in experiment.value.list_at(&["spec", "analyses"]).iter().enumerate() {
            let at = vec![Key("spec"), Key("analyses"), At(i)];
            follow(index, &Use { from: experiment, at, value: analysis, ends: Ends::WithOthers }, &mut used, notes);
        }
    }
    for sort in [TEMPLATE, CLUSTER_TEMPLATE] {
        for template in index.of(sort) {
            nested(index, template, &mut used, notes);
        }
    }
    for sort in [TEMPLATE, CLUSTER_TEMPLATE] {
        for template in index.of(sort) {
            arguments(template, notes);
            let anyone = !index.of(ROLLOUT).is_empty() || !index.of(EXPERIMENT).is_empty();
            if anyone && !used.contains(&std::ptr::from_ref(*template)) {
                let path = [Key("metadata"), Key("name")];
                notes
                    .say(template, &path, Own::TemplateUnused, "nothing among the given files uses this template")
                    .remedy = "remove it if nothing else does".into();
            }
        }
    }
    for run in index.of(RUN) {
        arguments(run, notes);
    }
}

/// The places of a Rollout that use templates.
fn uses(rollout: &Object) -> Vec<Use<'_>> {
    let mut found = Vec::new();
    let mut add = |at: Vec<Step<'static>>, value: Option<&'_ Value>, ends| {
        // The value lives as long as the object it was taken from.
        if value.is_some() {
            found.push((at, ends));
        }
    };
    let strategy = |rest: &[Step<'static>]| [&[Key("spec"), Key("strategy")], rest].concat();
    let value = |path: &[&str]| rollout.value.at(path);
    add(
        strategy(&[Key("canary"), Key("analysis")]),
        value(&["spec", "strategy", "canary", "analysis"]),
        Ends::WithOthers,
    );
    for field in ["prePromotionAnalysis", "postPromotionAnalysis"] {
        add(
            strategy(&[Key("blueGreen"), Key(field)]),
            value(&["spec", "strategy", "blueGreen", field]),
            Ends::ByItself,
        );
    }
    for (i, step) in rollout.value.list_at(&["spec", "strategy", "canary", "steps"]).iter().enumerate() {
        let at = strategy(&[Key("canary"), Key("steps"), At(i)]);
        add([&at[..], &[Key("analysis")]].concat(), step.get("analysis"), Ends::ByItself);
        for (j, analysis) in step.list_at(&["experiment", "analyses"]).iter().enumerate() {
            add([&at[..], &[Key("experiment"), Key("analyses"), At(j)]].concat(), Some(analysis), Ends::WithOthers);
        }
    }
    let at = |path: &[Step<'_>]| super::path_of(path).find(&rollout.value);
    found
        .into_iter()
        .filter_map(|(path, ends)| Some(Use { from: rollout, value: at(&path)?, at: path, ends }))
        .collect()
}

/// The references to templates in a value that has a list of them, or is one itself.
fn references<'v>(at: &[Step<'static>], value: &'v Value) -> Vec<(Vec<Step<'static>>, &'v str, Sort<'static>)> {
    let one = |at: Vec<Step<'static>>, entry: &'v Value| {
        let name = entry.str_at(&["templateName"]).filter(|name| !name.is_empty())?;
        let wide = entry.get("clusterScope").and_then(Value::as_bool) == Some(true);
        Some(([&at[..], &[Key("templateName")]].concat(), name, if wide { CLUSTER_TEMPLATE } else { TEMPLATE }))
    };
    let own = one(at.to_vec(), value);
    let list = value.list_at(&["templates"]).iter().enumerate();
    let list = list.filter_map(|(i, entry)| one([at, &[Key("templates"), At(i)]].concat(), entry));
    own.into_iter().chain(list).collect()
}

fn follow(index: &Index<'_>, usage: &Use<'_>, used: &mut BTreeSet<*const Object>, notes: &mut Notes) {
    let mut templates: Vec<&Object> = Vec::new();
    let mut complete = true;
    for (path, name, sort) in references(&usage.at, usage.value) {
        match look_up(index, usage.from, &path, sort, name, notes) {
            Some(template) => complete &= gather(index, template, &mut templates),
            None => complete = false,
        }
    }
    used.extend(templates.iter().map(|template| std::ptr::from_ref(*template)));
    if complete && !templates.is_empty() {
        given_arguments(usage, &templates, notes);
        merge(usage, &templates, notes);
        let metrics: Vec<&str> = templates.iter().flat_map(|template| metric_names(template)).collect();
        rules(usage.from, &usage.at, usage.value, &metrics, notes);
        if usage.ends == Ends::ByItself {
            endless(usage, &templates, notes);
        }
    }
}

/// A template and those it names, each once. `false` if one of them was not given.
fn gather<'a>(index: &Index<'a>, template: &'a Object, templates: &mut Vec<&'a Object>) -> bool {
    if templates.iter().any(|known| std::ptr::eq(*known, template)) {
        return true;
    }
    templates.push(template);
    references(&[Key("spec")], template.value.get("spec").unwrap_or(&Value::Null)).iter().all(|(_, name, sort)| {
        match index.find(*sort, template.namespace(), name) {
            super::index::Found::Here(found) => gather(index, found, templates),
            super::index::Found::Missing(_) | super::index::Found::NotGiven => false,
        }
    })
}

fn nested(index: &Index<'_>, template: &Object, used: &mut BTreeSet<*const Object>, notes: &mut Notes) {
    for (path, name, sort) in references(&[Key("spec")], template.value.get("spec").unwrap_or(&Value::Null)) {
        let Some(found) = look_up(index, template, &path, sort, name, notes) else { continue };
        used.insert(std::ptr::from_ref(found));
        let mut below = Vec::new();
        gather(index, found, &mut below);
        if below.iter().any(|one| std::ptr::eq(*one, template)) {
            let what = format!("{} names itself, by way of {name}", super::name_of(template));
            notes.say(template, &path, Code::TemplateNested, what).remedy = "break the circle".into();
        }
    }
}

/// Rules about metrics, by the field that holds them.
const RULES: [(&str, Code, &str); 2] =
    [("dryRun", Code::DryRunUnmatched, "dry-run"), ("measurementRetention", Code::RetentionUnmatched, "retention")];

/// The rules of an object, or of a use, must each match a metric of the run, and be given once.
fn rules(object: &Object, at: &[Step<'static>], value: &Value, metrics: &[&str], notes: &mut Notes) {
    for (field, code, word) in RULES {
        let mut seen: Vec<&str> = Vec::new();
        for (i, rule) in value.list_at(&[field]).iter().enumerate() {
            let Some(pattern) = rule.str_at(&["metricName"]) else { continue };
            let path = [at, &[Key(field), At(i), Key("metricName")]].concat();
            if seen.contains(&pattern) {
                let what = format!("there is a {word} rule for {pattern} before");
                notes.say(object, &path, Code::RuleTwice, what).remedy = "keep one of them".into();
                continue;
            }
            seen.push(pattern);
            // What is no regular expression has been said.
            let Ok(regex) = regexp::compile(pattern) else { continue };
            if !metrics.is_empty() && !metrics.iter().any(|name| regex.is_match(name)) {
                let what = format!("{pattern} matches no metric");
                let near = similar::nearest(pattern, metrics.iter().copied());
                notes.say(object, &path, code, what).remedy = near.map_or_else(
                    || format!("the metrics are: {}", metrics.join(", ")),
                    |near| format!("did you mean {near}?"),
                );
            }
        }
    }
}

fn metric_names(template: &Object) -> Vec<&str> {
    template.value.list_at(&["spec", "metrics"]).iter().filter_map(|metric| metric.str_at(&["name"])).collect()
}

/// The arguments that a template declares: number, name, and whether they have a value.
fn declared(template: &Object) -> Vec<(usize, &str, bool)> {
    let given = |argument: &Value, field: &str| argument.get(field).is_some_and(|value| !value.is_null());
    let list = template.value.list_at(&["spec", "args"]).iter().enumerate();
    list.filter_map(|(i, argument)| {
        Some((i, argument.str_at(&["name"])?, given(argument, "value") || given(argument, "valueFrom")))
    })
    .collect()
}

fn given_arguments(usage: &Use<'_>, templates: &[&Object], notes: &mut Notes) {
    let given: Vec<&str> =
        usage.value.list_at(&["args"]).iter().filter_map(|argument| argument.str_at(&["name"])).collect();
    for template in templates {
        for (i, name, has_value) in declared(template) {
            let elsewhere =
                templates.iter().flat_map(|other| declared(other)).any(|(_, other, has)| other == name && has);
            if !has_value && !elsewhere && !given.contains(&name) {
                let what = format!("the argument {name} of {} has no value", super::name_of(template));
                let path = if usage.value.get("args").is_some() {
                    [&usage.at[..], &[Key("args")]].concat()
                } else {
                    usage.at.clone()
                };
                let finding = notes.say_key(usage.from, &path, Code::ArgumentUnresolved, what);
                finding.remedy = format!("add `- name: {name}` with a value to args");
                finding.also.push((
                    spot(template, &[Key("spec"), Key("args"), At(i), Key("name")]),
                    "declared without a value".into(),
                ));
            }
        }
    }
    for (i, name) in given.iter().enumerate() {
        let known: Vec<&str> =
            templates.iter().flat_map(|template| declared(template)).map(|(_, name, _)| name).collect();
        if !known.contains(name) {
            let path = [&usage.at[..], &[Key("args"), At(i), Key("name")]].concat();
            let what = format!("no template that is used here declares the argument {name}");
            let near = similar::nearest(name, known.iter().copied());
            notes.say(usage.from, &path, Code::ArgumentUndeclared, what).remedy =
                near.map_or_else(|| "it is ignored; remove it".into(), |near| format!("did you mean {near}?"));
        }
    }
}

/// Metrics of all templates run under their names in one run, and arguments are shared.
fn merge(usage: &Use<'_>, templates: &[&Object], notes: &mut Notes) {
    let mut metrics: Vec<(&str, &Object)> = Vec::new();
    let mut values: Vec<(&str, &str, &Object)> = Vec::new();
    for template in templates {
        for metric in template.value.list_at(&["spec", "metrics"]) {
            let Some(name) = metric.str_at(&["name"]) else { continue };
            match metrics.iter().find(|(known, other)| *known == name && !std::ptr::eq(*other, *template)) {
                Some((_, other)) => {
                    let what =
                        format!("{} and {} both have a metric {name}", super::name_of(other), super::name_of(template));
                    notes.say_key(usage.from, &usage.at, Code::MetricNameTwice, what).remedy =
                        "rename one of them".into();
                }
                None => metrics.push((name, template)),
            }
        }
        for argument in template.value.list_at(&["spec", "args"]) {
            let (Some(name), Some(value)) = (argument.str_at(&["name"]), argument.str_at(&["value"])) else { continue };
            match values.iter().find(|(known, other, _)| *known == name && *other != value) {
                Some((_, other, first)) => {
                    let what = format!(
                        "the argument {name} is {other:?} in {} and {value:?} in {}",
                        super::name_of(first),
                        super::name_of(template)
                    );
                    notes.say_key(usage.from, &usage.at, Code::ArgumentTwice, what).remedy = "make them agree".into();
                }
                None => values.push((name, value, template)),
            }
        }
    }
}

fn endless(usage: &Use<'_>, templates: &[&Object], notes: &mut Notes) {
    for template in templates {
        for (i, metric) in template.value.list_at(&["spec", "metrics"]).iter().enumerate() {
            let set = |field: &str| {
                metric.get(field).is_some_and(|value| !value.is_null() && *value != "" && *value != Value::Int(0))
            };
            if set("interval") && !set("count") {
                let name = metric.str_at(&["name"]).unwrap_or_default();
                let what = format!(
                    "the metric {name} of {} is measured for ever, so this never ends",
                    super::name_of(template)
                );
                let finding = notes.say_key(usage.from, &usage.at, Code::MetricEndless, what);
                finding.remedy = "give the metric a count, or use the template in the background".into();
                let at = [Key("spec"), Key("metrics"), At(i), Key("interval")];
                finding.also.push((spot(template, &at), "an interval without a count".into()));
            }
        }
    }
}

/// Arguments of a template: each used must be declared, each declared should be used.
fn arguments(template: &Object, notes: &mut Notes) {
    let known = declared(template);
    let mut used: BTreeSet<String> = BTreeSet::new();
    for (i, metric) in template.value.list_at(&["spec", "metrics"]).iter().enumerate() {
        let mut path = vec![Key("spec"), Key("metrics"), At(i)];
        tags(metric, &mut path, &mut |path, tag| {
            let (written, tag) = (tag, tag.trim());
            let Some(name) = tag.strip_prefix("args.") else {
                let what = format!("{{{{{tag}}}}} is taken for an argument, and there is no such one");
                let finding = notes.say(template, path, Code::ArgumentUnknown, what);
                finding.remedy = "arguments are written {{args.name}}".into();
                point_at(template, path, written, finding);
                return;
            };
            if !known.iter().any(|(_, declared, _)| *declared == name) {
                let near = similar::nearest(name, known.iter().map(|(_, name, _)| *name));
                let what = format!("the argument {name} is not declared");
                let finding = notes.say(template, path, Code::ArgumentUnknown, what);
                finding.remedy = near
                    .map_or_else(|| format!("add `- name: {name}` to args"), |near| format!("did you mean {near}?"));
                point_at(template, path, written, finding);
            }
            used.insert(name.to_owned());
        });
    }
    let nests = !template.value.list_at(&["spec", "templates"]).is_empty();
    let own = if nests { Vec::new() } else { metric_names(template) };
    rules(template, &[Key("spec")], template.value.get("spec").unwrap_or(&Value::Null), &own, notes);
    for (i, name, _) in known.iter().filter(|(_, name, _)| !used.contains(*name) && !nests) {
        let path = [Key("spec"), Key("args"), At(*i), Key("name")];
        notes.say(template, &path, Own::ArgumentUnused, format!("no metric uses the argument {name}")).remedy =
            "remove it".into();
    }
}

/// Points at the braces themselves, if the text stands in the file as it is.
fn point_at(template: &Object, path: &[Step<'_>], tag: &str, finding: &mut Finding) {
    let (place, _) = template.place(path.iter().copied());
    let braces = format!("{{{{{tag}}}}}");
    if let Some(at) = template.source_of(path.iter().copied()).slice(place.value).find(&braces) {
        let start = place.value.start as usize + at;
        finding.at.span = Span::new(start, start + braces.len());
    }
}

/// Calls `see` with what stands between double braces in every text below a value.
fn tags<'v>(value: &'v Value, path: &mut Vec<Step<'v>>, see: &mut dyn FnMut(&[Step<'_>], &str)) {
    match value {
        Value::Str(text) => {
            let mut rest = text.as_str();
            while let Some((_, after)) = rest.split_once("{{") {
                let Some((tag, next)) = after.split_once("}}") else { break };
                see(path, tag);
                rest = next;
            }
        }
        Value::List(items) => {
            for (i, item) in items.iter().enumerate() {
                path.push(At(i));
                tags(item, path, see);
                path.pop();
            }
        }
        Value::Map(map) => {
            for (key, below) in map.iter() {
                path.push(Key(key));
                tags(below, path, see);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
    }
}
