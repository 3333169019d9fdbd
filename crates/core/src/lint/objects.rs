//! One object alone: its version, its name, its fields, and what `model` says about it.

use std::sync::Arc;

use super::{
    Finding, Notes, advice, condition,
    rule::{Code, Own},
    schema, steps_of,
};
use crate::{
    api::{self, constants},
    kubernetes::{builtin, facts, kind::Kind, names, value::Value},
    manifest::{Object, place::Step},
    model::{
        names::StepText,
        parse::{self, PodsFrom},
        problem::Problem,
    },
    rollout::step,
    route,
    sync::policy,
};

use Step::Key;

/// Looks at an object: at how it wants to be synced, and at all of it if it is one of ours, or of a kind that every cluster has.
pub fn check(object: &Object, notes: &mut Notes) {
    synced(object, notes);
    if object.group() != constants::GROUP && object.group() != constants::TIDEGATE_GROUP {
        if let Some(kind) = builtin_kind(object) {
            built_in(object, kind, notes);
        }
        return;
    }
    let Some(kind) = schema::kinds().iter().find(|kind| *kind.kind == *object.kind() && *kind.group == *object.group())
    else {
        return;
    };
    if !kind.has_api_version(object.api_version()) {
        let what = format!("there is no version {} of {}", object.api_version(), object.kind());
        notes.say(object, &[Key("apiVersion")], Own::UnknownVersion, what).remedy =
            format!("write {}", kind.api_version());
        return;
    }
    let since = notes.findings.len();
    name(object, names::dns_subdomain, notes);
    metadata(object, notes);
    schema::check(object, kind, notes);
    match object.kind() {
        constants::kind::ROLLOUT => rollout(object, since, notes),
        constants::kind::ANALYSIS_TEMPLATE => {
            let template = api::read::<api::AnalysisTemplate>(&object.value).object;
            metrics(object, parse::template(&template).problems, since, notes);
        }
        constants::kind::CLUSTER_ANALYSIS_TEMPLATE => {
            let template = api::read::<api::ClusterAnalysisTemplate>(&object.value).object;
            metrics(object, parse::cluster_template(&template).problems, since, notes);
        }
        constants::kind::ANALYSIS_RUN => {
            let run = api::read::<api::AnalysisRun>(&object.value).object;
            metrics(object, parse::run(&run).problems, since, notes);
        }
        constants::kind::EXPERIMENT => {
            let experiment = api::read::<api::Experiment>(&object.value).object;
            problems(object, &parse::experiment(&experiment).problems, since, notes);
        }
        // All that can be wrong with a GitSource alone is in its schema.
        _ => {}
    }
}

/// What the annotations of an object say about how it is synced.
fn synced(object: &Object, notes: &mut Notes) {
    let at = |key| [Key("metadata"), Key("annotations"), Key(key)];
    match policy::policy(&object.value) {
        Err((key, what)) => {
            let (what, remedy) = what.split_once("; ").unwrap_or((&what, ""));
            notes.say(object, &at(key), Own::AnnotationValue, what).remedy = remedy.into();
        }
        Ok(policy) => {
            for asked in &policy.ignored {
                let key = asked.split(": ").next().unwrap_or_default();
                let what = format!("{asked:?} is not done");
                notes.say_key(object, &at(key), Own::AnnotationIgnored, what).remedy =
                    "see the annotations of an object in the documentation for what is".into();
            }
        }
    }
}

/// Looks at what a patch changes: fields that do not exist do nothing there, either.
pub fn check_patch(patch: &Object, notes: &mut Notes) {
    let is_it = |kind: &&Kind| *kind.kind == *patch.kind() && kind.has_api_version(patch.api_version());
    let kind = schema::kinds().iter().find(is_it).or_else(|| builtin_kind(patch).map(AsRef::as_ref));
    if let Some(kind) = kind {
        schema::check_patch(patch, kind, notes);
    }
}

fn builtin_kind(object: &Object) -> Option<&'static Arc<Kind>> {
    let version = object.api_version().rsplit('/').next().unwrap_or_default();
    facts::kind(object.group(), version, object.kind())
}

/// A kind that every cluster has: its name, its fields, and what a server says about them.
fn built_in(object: &Object, kind: &Kind, notes: &mut Notes) {
    name(object, |name| builtin::validate_name(kind, name), notes);
    schema::check_built_in(object, kind, notes);
}

/// What `model` says about metrics, and what their conditions say. Arguments are looked at where they stand, later.
fn metrics(object: &Object, mut found: Vec<Problem>, since: usize, notes: &mut Notes) {
    found.retain(|problem| problem.code != Code::ArgumentUnknown);
    problems(object, &found, since, notes);
    condition::check(object, notes);
}

fn rollout(object: &Object, since: usize, notes: &mut Notes) {
    let read = api::read::<api::Rollout>(&object.value);
    let parsed = parse::rollout(&read.object, PodsFrom::Manifest);
    not_supported(object, &read.object, notes);
    problems(object, &parsed.problems, since, notes);
    // A value of the wrong type is read as absent: advice would be about what was not written.
    if read.malformed.is_empty() {
        advice::check(object, &read.object, notes);
    }
}

/// Names what the engine cannot do.
fn not_supported(object: &Object, rollout: &api::Rollout, notes: &mut Notes) {
    let Some(canary) = &rollout.spec.strategy.canary else { return };
    let path = [Key("spec"), Key("strategy"), Key("canary")];
    if let Some(router) = canary.traffic_routing.as_ref().and_then(|routing| route::leaves(routing).err()) {
        let what = format!("traffic routing with {router} is not part of this version");
        notes.say_key(object, &[&path[..], &[Key("trafficRouting")]].concat(), Own::NotSupported, what).remedy =
            "use another router, or leave this Rollout to Argo Rollouts".into();
    }
    for (at, step) in canary.steps.iter().enumerate().filter(|(_, step)| !step::is_supported(step)) {
        let what = format!("this step ({}) is not part of this version", StepText(step));
        notes.say(object, &[&path[..], &[Key("steps"), Step::Index(at)]].concat(), Own::NotSupported, what).remedy =
            "remove it, or leave this Rollout to Argo Rollouts".into();
    }
}

/// Takes over what `model` found, unless (among what was noted `since`) the schema has said it about the same value.
fn problems(object: &Object, problems: &[Problem], since: usize, notes: &mut Notes) {
    for problem in problems {
        let steps = steps_of(&problem.path);
        let field = problem.path.to_string();
        let said = |finding: &Finding| match problem.code {
            // The schema named the value itself.
            Code::Malformed => finding.rule == Code::Malformed.into() && finding.field.starts_with(&field),
            // A step whose only field is misspelt.
            Code::StepEmpty => finding.rule == Own::UnknownField.into() && finding.field.starts_with(&field),
            _ => finding.rule == Code::Malformed.into() && finding.field == field,
        };
        let known = notes.findings[since..].iter().any(said);
        if !known {
            notes.say(object, &steps, problem.code, problem.what.clone()).remedy = problem.remedy.clone();
        }
    }
}

fn name(object: &Object, problems: impl Fn(&str) -> Vec<String>, notes: &mut Notes) {
    let generated = object.value.str_at(&["metadata", "generateName"]).is_some_and(|prefix| !prefix.is_empty());
    match object.value.at(&["metadata", "name"]) {
        None | Some(Value::Null) if generated => {}
        None | Some(Value::Null) => {
            notes.say(object, &[Key("metadata"), Key("name")], Own::NameMissing, "the object has no name").remedy =
                "add metadata.name".into();
        }
        Some(Value::Str(name)) => {
            if let Some(problem) = problems(name).first() {
                let what = format!("the name cannot be used: {problem}");
                let finding = notes.say(object, &[Key("metadata"), Key("name")], Own::NameInvalid, what);
                finding.remedy = "use lower-case letters, digits and dashes".into();
            }
        }
        // The schema says that it is no text.
        Some(_) => {}
    }
}

fn metadata(object: &Object, notes: &mut Notes) {
    if object.value.get("status").is_some_and(|status| !status.is_null() && *status != Value::object()) {
        let finding = notes.say_key(object, &[Key("status")], Own::StatusGiven, "the manifest holds a status");
        finding.remedy = "remove it: the controller writes it".into();
    }
    for field in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"] {
        if object.value.at(&["metadata", field]).is_some_and(|value| !value.is_null()) {
            let what = format!("{field} is the server's to fill in");
            notes.say_key(object, &[Key("metadata"), Key(field)], Own::ServerFields, what).remedy = "remove it".into();
        }
    }
}
