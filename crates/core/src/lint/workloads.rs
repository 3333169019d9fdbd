//! Rollouts beside other workloads and autoscalers: who selects whose pods, who scales what.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Notes,
    index::{Found, Index, Sort},
    name_of,
    references::look_up,
    rule::Own,
    spot,
};
use crate::{
    api::constants,
    kubernetes::{
        selector::{Labels, Operator},
        value::{Map, Value},
    },
    manifest::{Object, place::Step},
};

use Step::Key;

const ROLLOUT: Sort<'static> = Sort::new(constants::GROUP, constants::kind::ROLLOUT);
const AUTOSCALER: Sort<'static> = Sort::new("autoscaling", "HorizontalPodAutoscaler");
/// What else makes pods from a selector.
const OTHERS: [Sort<'static>; 4] = [
    Sort::new("apps", "Deployment"),
    Sort::new("apps", "ReplicaSet"),
    Sort::new("apps", "StatefulSet"),
    Sort::new("apps", "DaemonSet"),
];

/// Looks at workloads and autoscalers together.
pub fn check(index: &Index<'_>, notes: &mut Notes) {
    overlaps(index, notes);
    for rollout in index.of(ROLLOUT) {
        workload(index, rollout, notes);
    }
    for autoscaler in index.of(AUTOSCALER) {
        scaled(index, autoscaler, notes);
    }
}

/// A workload and what it selects.
struct Selecting<'a> {
    object: &'a Object,
    selector: Labels,
    labels: Option<&'a Map>,
}

/// Names selectors that catch the pods of somebody else. A selector is tried only on those who carry one of its labels.
fn overlaps(index: &Index<'_>, notes: &mut Notes) {
    let workloads = || std::iter::once(ROLLOUT).chain(OTHERS).flat_map(|sort| index.of(sort)).copied();
    let all: Vec<Selecting<'_>> = workloads()
        .filter_map(|object| {
            let selector = object.value.at(&["spec", "selector"]).filter(|selector| selector.as_map().is_some())?;
            let selector = Labels::of(selector).ok().filter(|selector| !selector.is_empty())?;
            let labels = object.value.at(&["spec", "template", "metadata", "labels"]).and_then(Value::as_map);
            Some(Selecting { object, selector, labels })
        })
        .collect();
    let mut carriers: BTreeMap<(&str, &str, &str), Vec<usize>> = BTreeMap::new();
    for (at, one) in all.iter().enumerate() {
        for (key, value) in one.labels.into_iter().flat_map(Map::iter) {
            let label = (one.object.namespace(), key.as_str(), value.as_str().unwrap_or_default());
            carriers.entry(label).or_default().push(at);
        }
    }
    let mut said = BTreeSet::new();
    for (at, one) in all.iter().enumerate() {
        let label = one.selector.requirements().iter().find_map(|requirement| match &requirement.values[..] {
            [value] if requirement.operator == Operator::Equals => {
                Some((one.object.namespace(), requirement.key.as_str(), value.as_str()))
            }
            _ => None,
        });
        let Some(near) = label.and_then(|label| carriers.get(&label)) else { continue };
        for other in near.iter().filter(|other| **other != at) {
            let other_one = &all[*other];
            let ours = [one, other_one].iter().any(|one| one.object.kind() == constants::kind::ROLLOUT);
            let same = (one.object.kind(), one.object.name()) == (other_one.object.kind(), other_one.object.name());
            let pair = (at.min(*other), at.max(*other));
            if ours && !same && one.selector.matches(other_one.labels) && said.insert(pair) {
                overlap(one.object, other_one.object, notes);
            }
        }
    }
}

fn overlap(who: &Object, whose: &Object, notes: &mut Notes) {
    let what = format!("the selector of {} also selects the pods of {}", name_of(who), name_of(whose));
    let finding = notes.say_key(who, &[Key("spec"), Key("selector")], Own::SelectorOverlap, what);
    finding.remedy = "give each a label of its own in selector and template".into();
    let labels = [Key("spec"), Key("template"), Key("metadata"), Key("labels")];
    finding.also.push((spot(whose, &labels), "these labels".into()));
}

/// The workload that a Rollout takes its template from.
fn workload(index: &Index<'_>, rollout: &Object, notes: &mut Notes) {
    let Some(reference) = rollout.value.at(&["spec", "workloadRef"]) else { return };
    let field = |name: &str| reference.str_at(&[name]).unwrap_or_default();
    let group = field("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let sort = Sort::new(group, field("kind"));
    let supported = matches!((group, field("kind")), ("apps", "Deployment" | "ReplicaSet") | ("", "PodTemplate"));
    if !supported || field("name").is_empty() {
        return;
    }
    let path = [Key("spec"), Key("workloadRef"), Key("name")];
    let Some(found) = look_up(index, rollout, &path, sort, field("name"), notes) else { return };
    let template = if sort.kind == "PodTemplate" { vec!["template"] } else { vec!["spec", "template"] };
    let labels =
        found.value.at(&template).and_then(|template| template.at(&["metadata", "labels"])).and_then(Value::as_map);
    if let Some(selector) = rollout.value.at(&["spec", "selector"]).filter(|selector| !selector.is_null())
        && Labels::of(selector).is_ok_and(|selector| !selector.matches(labels))
    {
        let what = format!("the selector does not fit the labels of {}", name_of(found));
        let finding = notes.say_key(rollout, &[Key("spec"), Key("selector")], Own::WorkloadReference, what);
        finding.remedy = "leave the selector out: it is taken from the workload".into();
        let at: Vec<Step<'_>> = template.iter().map(|key| Key(key)).chain([Key("metadata"), Key("labels")]).collect();
        finding.also.push((spot(found, &at), "its labels".into()));
    }
    let replicas = found.value.at(&["spec", "replicas"]).map_or(Some(1), Value::as_int);
    let scales_down = matches!(field("scaleDown"), "onsuccess" | "progressively");
    if sort.kind == "Deployment" && replicas.is_some_and(|replicas| replicas > 0) && !scales_down {
        let what = format!("{} keeps its own pods beside those of the Rollout", name_of(found));
        let finding = notes.say(rollout, &path, Own::WorkloadStillScaled, what);
        finding.remedy = "set its replicas to 0, or scaleDown to onsuccess or progressively".into();
        finding.also.push((spot(found, &[Key("spec"), Key("replicas")]), "scaled here".into()));
    }
}

/// What an autoscaler names, and whether it gets in the way.
fn scaled(index: &Index<'_>, autoscaler: &Object, notes: &mut Notes) {
    let target = [Key("spec"), Key("scaleTargetRef")];
    let field = |name: &str| autoscaler.value.str_at(&["spec", "scaleTargetRef", name]).unwrap_or_default();
    let (kind, name, version) = (field("kind"), field("name"), field("apiVersion"));
    let rollouts = index.of(ROLLOUT).iter().filter(|rollout| rollout.namespace() == autoscaler.namespace());
    let path = |key: &'static str| [&target[..], &[Key(key)]].concat();
    if kind == constants::kind::ROLLOUT {
        if version != constants::API_VERSION {
            let what = format!("a Rollout is of {}, not of {version:?}", constants::API_VERSION);
            notes.say(autoscaler, &path("apiVersion"), Own::AutoscalerTarget, what).remedy =
                format!("write {}", constants::API_VERSION);
        }
        if let Some(rollout) = look_up(index, autoscaler, &path("name"), ROLLOUT, name, notes) {
            replicas(autoscaler, rollout, notes);
        }
        return;
    }
    for rollout in rollouts {
        let workload = rollout.value.str_at(&["spec", "workloadRef", "name"]) == Some(name)
            && rollout.value.str_at(&["spec", "workloadRef", "kind"]) == Some(kind);
        let replaced = rollout.name() == name
            && kind == "Deployment"
            && !matches!(index.find(Sort::new("apps", "Deployment"), autoscaler.namespace(), name), Found::Here(_));
        if workload || replaced {
            let what = format!("this scales the {kind} {name}, but the pods are those of {}", name_of(rollout));
            let finding = notes.say(autoscaler, &path("kind"), Own::AutoscalerTarget, what);
            finding.remedy =
                format!("name kind Rollout, apiVersion {}, name {}", constants::API_VERSION, rollout.name());
            finding.also.push((spot(rollout, &[Key("metadata"), Key("name")]), "the Rollout".into()));
        }
    }
}

fn replicas(autoscaler: &Object, rollout: &Object, notes: &mut Notes) {
    let least = autoscaler.value.int_at(&["spec", "minReplicas"]).unwrap_or(1);
    let Some(most) = autoscaler.value.int_at(&["spec", "maxReplicas"]) else { return };
    if least > most {
        let what = format!("minReplicas {least} is above maxReplicas {most}");
        notes.say(autoscaler, &[Key("spec"), Key("minReplicas")], Own::AutoscalerRange, what).remedy =
            "swap them".into();
        return;
    }
    let Some(given) = rollout.value.int_at(&["spec", "replicas"]) else { return };
    let path = [Key("spec"), Key("replicas")];
    let target = [Key("spec"), Key("scaleTargetRef"), Key("name")];
    if given == 0 {
        // An autoscaler leaves what is scaled to zero alone.
        return;
    }
    let finding = if (least..=most).contains(&given) {
        let what = format!("{} sets the replicas as well", name_of(autoscaler));
        notes.say(rollout, &path, Own::AutoscaledReplicas, what)
    } else {
        let what = format!("{given} replicas are outside of the {least} to {most} of {}", name_of(autoscaler));
        notes.say(rollout, &path, Own::AutoscalerRange, what)
    };
    finding.remedy = "leave spec.replicas out".into();
    finding.also.push((spot(autoscaler, &target), "this autoscaler".into()));
}
