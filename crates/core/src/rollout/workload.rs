//! The workload whose pod template a Rollout uses instead of its own.
//!
//! Never changes the workload's template; its size is what [`super::decide()`] may move.

use crate::{
    api::{Rollout, constants::annotation},
    kubernetes::value::Value,
    model::parse,
};

/// A workload that was found.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// Its generation.
    pub generation: i64,
    /// The whole of it.
    pub object: Value,
}

/// Fills in the template and selector of the workload that the Rollout refers to, if it does. The error is what its
/// condition says, in the words of Argo Rollouts.
pub fn resolve(rollout: &mut Rollout, workload: Option<&Value>) -> Result<Option<Resolved>, String> {
    let Some(reference) = rollout.spec.workload_ref.clone() else {
        rollout.metadata.annotations.remove(annotation::WORKLOAD_GENERATION);
        return Ok(None);
    };
    if !parse::is_empty_template(&rollout.spec.template) {
        return Err("template must be empty for workload reference rollout".into());
    }
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    let (template, selector, plural): (&[&str], Option<&[&str]>, &str) = match (group, reference.kind.as_str()) {
        ("apps", "Deployment") => (&["spec", "template"], Some(&["spec", "selector"]), "deployments"),
        ("apps", "ReplicaSet") => (&["spec", "template"], Some(&["spec", "selector"]), "replicasets"),
        ("", "PodTemplate") => (&["template"], None, "podtemplates"),
        (group, kind) => return Err(format!("workload of type {group}/{kind} is not supported")),
    };
    let Some(object) = workload else {
        let resource = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        // Argo Rollouts looks objects up by their whole key, and says so.
        return Err(format!("{resource} \"{}/{}\" not found", rollout.metadata.namespace, reference.name));
    };
    if let Some(template) = object.at(template) {
        rollout.spec.template = template.clone();
    }
    if rollout.spec.selector.is_none() {
        rollout.spec.selector = selector.and_then(|path| object.at(path)).cloned();
    }
    let generation = object.int_at(&["metadata", "generation"]).unwrap_or_default();
    rollout.metadata.annotations.insert(annotation::WORKLOAD_GENERATION.into(), generation.to_string());
    Ok(Some(Resolved { generation, object: object.clone() }))
}
