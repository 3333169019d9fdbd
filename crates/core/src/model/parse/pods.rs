//! Which pods a Rollout is about: its selector and its template, or the workload that has them.
//!
//! The template is given its defaults and judged by the rules of Kubernetes, as the API server would judge the
//! ReplicaSet. Never keeps the defaults: hashes are made from what was written.

use crate::{
    api,
    kubernetes::{
        builtin, facts,
        schema::typed,
        selector::Labels,
        status::{FieldError, Rule},
        value::Value,
    },
    model::{
        path::{At, Path, Segment},
        problem::{Code, Notes, Words},
        rollout::{PodTemplate, Pods, ScaleDown, Selector, WorkloadKind, WorkloadRef},
    },
    value,
};

/// Where the template of the Rollout at hand comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodsFrom {
    /// It is as the manifest has it.
    Manifest,
    /// The workload that `workloadRef` names has been looked up, and its template and selector filled in.
    Workload,
}

pub fn parse(wire: &api::RolloutSpec, from: PodsFrom, at: &At, notes: &mut Notes) -> Option<Pods> {
    let (selector_at, template_at) = (at.key("selector"), at.key("template"));
    if wire.workload_ref.is_none() {
        check_selector(wire.selector.as_ref(), &selector_at, notes);
    }
    if wire.workload_ref.is_some() && from == PodsFrom::Manifest && !is_empty_template(&wire.template) {
        notes.argo(
            &template_at,
            Code::TemplateWithWorkloadRef,
            template_at.internal("template must be empty for workload reference rollout"),
            "the pod template is given here and by workloadRef",
            "remove spec.template, or remove spec.workloadRef",
        );
    }
    if wire.workload_ref.is_none() || from == PodsFrom::Workload {
        check_template(wire, notes);
    } else {
        check_unresolved_selector(wire, &selector_at, notes);
    }
    let template = || {
        let selector = selector(wire.selector.as_ref()?)?;
        Some(PodTemplate { selector, template: wire.template.clone() })
    };
    match &wire.workload_ref {
        None => template().map(Pods::Own),
        Some(reference) => {
            let reference = workload(reference, &at.key("workloadRef"), notes)?;
            match from {
                PodsFrom::Manifest => Some(Pods::Elsewhere(reference)),
                PodsFrom::Workload => {
                    let template = template();
                    if template.is_none() && !notes.has_errors() {
                        let what = "the workload's selector says nothing and would choose every pod";
                        notes.ours(&selector_at, Code::SelectorEmpty, what, "give the workload a selector");
                    }
                    Some(Pods::Found(reference, template?))
                }
            }
        }
    }
}

/// Argo Rollouts takes a template without labels and annotations for none, whatever its containers are.
pub fn is_empty_template(template: &Value) -> bool {
    let none = |field| template.at(&["metadata", field]).and_then(Value::as_map).is_none_or(|map| map.is_empty());
    none("labels") && none("annotations")
}

/// The selector, if it is valid and says something.
pub fn selector(given: &Value) -> Option<Selector> {
    let labels = Labels::of(given).ok()?;
    let says_something = !labels.is_empty() && given.as_map().is_some();
    says_something.then(|| Selector { given: given.clone(), labels })
}

fn check_selector(given: Option<&Value>, at: &At, notes: &mut Notes) {
    let Some(given) = given else {
        let words = at.required("Rollout has missing field '.spec.selector'");
        let remedy = "add spec.selector.matchLabels with labels of the template";
        return notes.argo(at, Code::SelectorMissing, words, "there is no selector", remedy);
    };
    let object = value!({"spec": {"selector": serde_json::Value::from(given)}});
    for error in builtin::judge_selector(&object) {
        let (what, remedy) = describe(&error);
        notes.argo_at(Path::of_field(&error.field), Code::SelectorInvalid, Words::Field(error), what, remedy);
    }
    let empty = |field| {
        given.get(field).is_none_or(|part| {
            part.as_map().is_none_or(|map| map.is_empty()) && part.as_list().is_none_or(<[Value]>::is_empty)
        })
    };
    if empty("matchLabels") && empty("matchExpressions") {
        let words = at.invalid(Value::object(), "empty selector is invalid for deployment");
        let remedy = "add matchLabels with labels of the template";
        notes.argo(at, Code::SelectorEmpty, words, "the selector is empty and would choose every pod", remedy);
    }
}

/// A selector beside a workloadRef is read but not judged.
fn check_unresolved_selector(wire: &api::RolloutSpec, at: &At, notes: &mut Notes) {
    let Some(given) = &wire.selector else { return };
    if Labels::of(given).is_err() {
        let object = replica_set(Some(given), &Value::Null, notes);
        let invalid = builtin::judge_template(&object).into_iter().find(|error| error.field == "spec.selector");
        if let Some(error) = invalid {
            let remedy = "correct it, or leave it out: the workload's selector is used";
            notes.argo(at, Code::SelectorInvalid, Words::Field(error), "it is no valid label selector", remedy);
        }
    }
}

fn check_template(wire: &api::RolloutSpec, notes: &mut Notes) {
    let object = replica_set(wire.selector.as_ref(), &wire.template, notes);
    for error in builtin::judge_template(&object) {
        let code = match error.field.as_str() {
            "spec.selector" => Code::SelectorInvalid,
            "spec.template.metadata.labels" => Code::SelectorMismatch,
            _ => Code::PodTemplate,
        };
        let (what, remedy) = match code {
            Code::SelectorMismatch => mismatch(wire),
            _ => describe(&error),
        };
        notes.argo_at(template_path(&error.field), code, Words::Field(error), what, remedy);
    }
}

fn mismatch(wire: &api::RolloutSpec) -> (String, String) {
    let labels = wire.template.at(&["metadata", "labels"]).map_or_else(|| "{}".to_owned(), Value::to_json);
    let selector = wire.selector.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_json);
    let what = format!("the template's labels {labels} are not chosen by the selector {selector}");
    (what, "give the template the labels that the selector asks for".to_owned())
}

/// The ReplicaSet that a Rollout would make, as Argo Rollouts has it before it judges: defaults filled in, and without
/// what its conversion loses.
pub fn replica_set(selector: Option<&Value>, template: &Value, notes: &mut Notes) -> Value {
    let mut object = Value::object();
    if let Some(selector) = selector {
        object.set_at(&["spec", "selector"], selector);
    }
    object.set_at(&["spec", "template"], template);
    let Some(kind) = facts::kind("apps", "v1", "ReplicaSet") else { return object };
    match typed::decode(kind, &kind.schema, &object) {
        Ok(decoded) => object = decoded.value,
        Err(message) => {
            let at = At::ROOT.key("spec");
            let remedy = "write the type that Kubernetes expects there";
            notes.ours(&at.key("template"), Code::Malformed, message, remedy);
        }
    }
    builtin::default(kind, &mut object);
    // These five live elsewhere in the types that the rules are written for, so Argo Rollouts judges without them.
    for field in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"] {
        object.remove_at(&["spec", "template", "spec", field]);
    }
    // Whether privileged containers are allowed is the cluster's business.
    for list in ["containers", "initContainers"] {
        let path = ["spec", "template", "spec", list];
        let mut containers = object.list_at(&path).to_vec();
        for container in &mut containers {
            if container.at(&["securityContext", "privileged"]).and_then(Value::as_bool) == Some(true) {
                container.remove_at(&["securityContext", "privileged"]);
            }
        }
        if !containers.is_empty() {
            object.set_at(&path, containers);
        }
    }
    object
}

/// The place in the manifest of a problem with a template. Kubernetes leaves `metadata` out of two of its paths.
pub fn template_path(field: &str) -> Path {
    let mut path = Path::of_field(field);
    let of_metadata =
        matches!(path.segments().get(2), Some(Segment::Key(key)) if key == "labels" || key == "annotations");
    if of_metadata {
        path.0.insert(2, Segment::Key("metadata".into()));
    }
    path
}

/// A problem that Kubernetes found, and what to do about it.
pub fn describe(error: &FieldError) -> (String, String) {
    let value = error.bad_value().unwrap_or_default();
    let detail = error.explanation();
    let rule = match &error.rule {
        Rule::Printed(rule, _) => rule.as_ref(),
        rule => rule,
    };
    let (what, remedy) = match rule {
        Rule::Required if detail.is_empty() => ("it is missing".to_owned(), "add it".to_owned()),
        Rule::Required => (format!("it is missing: {detail}"), "add it".to_owned()),
        Rule::Invalid(_) | Rule::TypeInvalid(_) | Rule::InvalidWhole | Rule::Printed(..) => {
            (format!("{value}: {detail}").trim_start_matches(": ").to_owned(), "change it to a valid value".to_owned())
        }
        Rule::NotSupported(..) => (format!("{value} is not supported"), format!("use one of the {detail}")),
        Rule::Duplicate(_) | Rule::DuplicateWhole => {
            (format!("{value} is there twice").trim_start().to_owned(), "rename or remove one of them".to_owned())
        }
        Rule::Forbidden => (format!("it may not be set: {detail}"), "remove it".to_owned()),
        Rule::TooLong(_) | Rule::TooMany(..) => (format!("it is too long: {detail}"), "shorten it".to_owned()),
        Rule::NotFound(_) => (format!("{value} does not exist"), "name one that does, or add it".to_owned()),
        Rule::Internal => (detail, "change it to a valid value".to_owned()),
    };
    (what, remedy)
}

fn workload(wire: &api::ObjectRef, at: &At, notes: &mut Notes) -> Option<WorkloadRef> {
    let group = wire.api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = match (group, wire.kind.as_str()) {
        ("apps", "Deployment") => WorkloadKind::Deployment,
        ("apps", "ReplicaSet") => WorkloadKind::ReplicaSet,
        ("", "PodTemplate") => WorkloadKind::PodTemplate,
        (group, kind) => {
            let what = format!("workload of type {group}/{kind} is not supported");
            let remedy = "name a Deployment or ReplicaSet of apps/v1, or a PodTemplate of v1";
            notes.ours(&at.key("kind"), Code::WorkloadKind, what, remedy);
            return None;
        }
    };
    if wire.name.is_empty() {
        notes.ours(&at.key("name"), Code::WorkloadKind, "workloadRef has no name", "name the workload");
        return None;
    }
    let scale_down = match wire.scale_down.as_str() {
        "" | "never" => ScaleDown::Never,
        "onsuccess" => ScaleDown::OnSuccess,
        "progressively" => ScaleDown::Progressively,
        other => {
            let what = format!("{other:?} is unknown and means never");
            let remedy = "use never, onsuccess or progressively";
            notes.ours(&at.key("scaleDown"), Code::WorkloadScaleDown, what, remedy);
            ScaleDown::Never
        }
    };
    Some(WorkloadRef { api_version: wire.api_version.clone(), kind, name: wire.name.clone(), scale_down })
}
