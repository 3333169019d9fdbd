//! Everything a decision about an Experiment may know, from one observation.
//!
//! [`Seen`] is what was read, object by object; [`View`] is what it means. Never knows more than what was seen at one
//! moment.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::state::Named;
use crate::{
    api::{self, Experiment, constants::annotation},
    kubernetes::{
        object,
        value::{Text, Value},
    },
    model::{parse, replica_set},
    rollout::runs::{self, Run},
};

/// What was read for one decision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Seen {
    /// When.
    pub now: Timestamp,
    /// The Experiment.
    pub experiment: Value,
    /// The ReplicaSets that it controls, and those that have a name it gives.
    pub sets: Vec<Value>,
    /// The Services that it controls, and those that have a name it gives.
    pub services: Vec<Value>,
    /// The AnalysisRuns that it controls, and those that have a name it might give.
    pub runs: Vec<Value>,
    /// The analysis templates it names, and those that these name, as far as they exist.
    pub templates: Vec<Value>,
}

/// What was seen, and what it means.
#[derive(Debug, Clone)]
pub struct View {
    /// When it was seen.
    pub now: Timestamp,
    /// The Experiment as an object.
    pub object: Value,
    /// The Experiment.
    pub experiment: Experiment,
    /// What is wrong with its specification, in the words of its condition; `None` if it can be acted upon.
    pub invalid: Option<String>,
    /// Its ReplicaSets, by the version they are for.
    pub sets: BTreeMap<String, Value>,
    /// The names of ReplicaSets that are not its own.
    pub other_sets: Vec<Text>,
    /// Its Services, by the version they are for.
    pub services: BTreeMap<String, Value>,
    /// The names of Services that are not its own.
    pub other_services: Vec<Text>,
    /// Its AnalysisRuns.
    pub runs: Vec<Run>,
    /// The names of AnalysisRuns that are not its own.
    pub other_runs: Vec<Text>,
    /// The analysis templates that are known.
    pub templates: Vec<Value>,
}

impl View {
    /// Makes sense of what was seen.
    pub fn of(seen: &Seen) -> View {
        let experiment: Experiment = api::read(&seen.experiment).object;
        let (sets, other_sets) = claim(&seen.sets, &experiment);
        let (services, other_services) = claim(&seen.services, &experiment);
        let (runs, other_runs) = runs::claim(&seen.runs, &experiment.metadata.uid, &[]);
        View {
            now: seen.now,
            object: seen.experiment.clone(),
            invalid: invalid(&experiment),
            sets,
            other_sets,
            services,
            other_services,
            runs,
            other_runs,
            templates: seen.templates.clone(),
            experiment,
        }
    }

    /// Whether it is on its way out.
    pub fn is_leaving(&self) -> bool {
        self.object.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null())
    }

    /// Its ReplicaSets, as far as arguments may ask for them.
    pub(super) fn named(&self) -> Vec<Named> {
        let named = |(template, set): (&String, &Value)| Named {
            template: template.clone(),
            set: name(set).to_string(),
            hash: replica_set::hash(set).to_owned(),
        };
        self.sets.iter().map(named).collect()
    }
}

/// The objects that an Experiment controls for its versions, and the names of the others.
fn claim(seen: &[Value], experiment: &Experiment) -> (BTreeMap<String, Value>, Vec<Text>) {
    let (mut own, mut others) = (BTreeMap::new(), Vec::new());
    for object in seen {
        match version_of(object, experiment) {
            Some(version) if !own.contains_key(version) => drop(own.insert(version.to_owned(), object.clone())),
            Some(_) | None => others.push(name(object)),
        }
    }
    (own, others)
}

/// The version of an Experiment that an object belongs to.
fn version_of<'o>(object: &'o Value, experiment: &Experiment) -> Option<&'o str> {
    let note = |key: &str| object.str_at(&["metadata", "annotations", key]);
    let is_controlled = object::controller(object).as_deref() == Some(experiment.metadata.uid.as_str());
    let version = note(annotation::EXPERIMENT_TEMPLATE)?;
    let is_known = experiment.spec.templates.iter().any(|template| template.name == version);
    let is_its = is_controlled && note(annotation::EXPERIMENT_NAME) == Some(experiment.metadata.name.as_str());
    (is_its && is_known).then_some(version)
}

pub(super) fn name(object: &Value) -> Text {
    object.at(&["metadata", "name"]).and_then(Value::as_text).cloned().unwrap_or_default()
}

/// Everything that Argo Rollouts would say about a specification, one after the other.
fn invalid(experiment: &Experiment) -> Option<String> {
    let problems = parse::experiment(experiment).problems;
    let words = problems.iter().filter_map(|problem| Some(problem.argo.as_ref()?.words.to_string()));
    Some(words.collect::<Vec<String>>().join("; ")).filter(|words| !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn only_what_it_controls_and_names_is_its_own() {
        let experiment = value!({"metadata": {"name": "e", "uid": "u"}, "spec": {"templates": [{"name": "a"}]}});
        let set = |name: &str, uid: &str, version: &str| {
            value!({"metadata": {"name": name,
                "annotations": {"experiment.argoproj.io/name": "e", "experiment.argoproj.io/template-name": version},
                "ownerReferences": [{"uid": uid, "controller": true}]}})
        };
        let sets = vec![set("e-a", "u", "a"), set("e-b", "u", "b"), set("other", "v", "a")];
        let view = View::of(&Seen { experiment, sets, ..Seen::default() });
        assert_eq!(view.sets.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(view.other_sets, [Text::from("e-b"), Text::from("other")]);
        assert!(view.invalid.is_some(), "there is no selector");
    }
}
