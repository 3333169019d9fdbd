//! What an Experiment's status says about it: whether it is over, is to end, how many pods each version is to have.
//!
//! Questions about one object and a moment. Never decides anything.

use std::{collections::BTreeMap, fmt};

use jiff::{SignedDuration, Timestamp};

use crate::{
    analysis::Phase,
    api::{Experiment, ExperimentAnalysisRunStatus, ExperimentStatus, TemplateSpec, TemplateStatus},
    kubernetes::duration,
    model::arguments,
};

/// How long a version may take to get on if nothing is said, in seconds.
const PROGRESS_DEADLINE: i32 = 600;
/// How long pods stay up afterwards if nothing is said, in seconds.
const SCALE_DOWN_DELAY: i32 = 30;

/// How far a version is, from best to worst.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Nobody has looked at it.
    #[default]
    Unset,
    /// It was available for as long as it should.
    Successful,
    /// All its pods are available.
    Running,
    /// Pods are missing.
    Progressing,
    /// It could not be made.
    Error,
    /// Its pods did not become available in time.
    Failed,
}

impl Stage {
    /// The stage of a word.
    pub fn of(word: &str) -> Stage {
        match word {
            "Successful" => Stage::Successful,
            "Running" => Stage::Running,
            "Progressing" => Stage::Progressing,
            "Error" => Stage::Error,
            "Failed" => Stage::Failed,
            _ => Stage::Unset,
        }
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Unset => "",
            Stage::Successful => "Successful",
            Stage::Running => "Running",
            Stage::Progressing => "Progressing",
            Stage::Error => "Error",
            Stage::Failed => "Failed",
        }
    }

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        match self {
            Stage::Unset | Stage::Running | Stage::Progressing => false,
            Stage::Successful | Stage::Error | Stage::Failed => true,
        }
    }

    /// Whether it could not be made, or not in time.
    pub fn is_bad(self) -> bool {
        match self {
            Stage::Unset | Stage::Successful | Stage::Running | Stage::Progressing => false,
            Stage::Error | Stage::Failed => true,
        }
    }

    /// Whether this is worse than another.
    pub fn is_worse_than(self, other: Stage) -> bool {
        // What nobody looked at is as good as what went well.
        self.max(Stage::Successful) > other.max(Stage::Successful)
    }

    /// The worse of two; the first of two that are alike.
    pub fn worse(self, other: Stage) -> Stage {
        if other.is_worse_than(self) { other } else { self }
    }

    /// What it makes of an Experiment.
    pub fn phase(self) -> Phase {
        match self {
            Stage::Unset | Stage::Running => Phase::Running,
            Stage::Successful => Phase::Successful,
            Stage::Progressing => Phase::Pending,
            Stage::Error => Phase::Error,
            Stage::Failed => Phase::Failed,
        }
    }

    /// The reason of the event that tells that a version is there.
    pub fn reason(self) -> &'static str {
        match self {
            Stage::Unset => "Template",
            Stage::Successful => "TemplateSuccessful",
            Stage::Running => "TemplateRunning",
            Stage::Progressing => "TemplateProgressing",
            Stage::Error => "TemplateError",
            Stage::Failed => "TemplateFailed",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What status says of a version.
pub fn version<'s>(status: &'s ExperimentStatus, name: &str) -> Option<&'s TemplateStatus> {
    status.template_statuses.iter().find(|version| version.name == name)
}

/// What status says of an analysis.
pub fn analysis<'s>(status: &'s ExperimentStatus, name: &str) -> Option<&'s ExperimentAnalysisRunStatus> {
    status.analysis_runs.iter().find(|analysis| analysis.name == name)
}

/// Whether it is over.
pub fn is_over(experiment: &Experiment) -> bool {
    Phase::of(&experiment.status.phase).is_over()
}

/// Whether its end has come: somebody said so, it is over, something went wrong, or what was to be found out is known.
pub fn is_ending(experiment: &Experiment) -> bool {
    let status = &experiment.status;
    let is_lost = |phase: Phase| matches!(phase, Phase::Failed | Phase::Error | Phase::Inconclusive);
    experiment.spec.terminate
        || is_over(experiment)
        || status.template_statuses.iter().any(|version| Stage::of(&version.status).is_bad())
        || status.analysis_runs.iter().any(|analysis| is_lost(Phase::of(&analysis.phase)))
        || required_have_succeeded(experiment, status)
}

/// Whether it waits for analyses.
pub fn has_required(experiment: &Experiment) -> bool {
    experiment.spec.analyses.iter().any(|analysis| analysis.required_for_completion)
}

/// Whether there are analyses that it waits for, and this status says that all of them went well.
pub fn required_have_succeeded(experiment: &Experiment, status: &ExperimentStatus) -> bool {
    let is_well =
        |name: &str| analysis(status, name).is_some_and(|analysis| Phase::of(&analysis.phase) == Phase::Successful);
    let mut required = experiment.spec.analyses.iter().filter(|analysis| analysis.required_for_completion);
    has_required(experiment) && required.all(|analysis| is_well(&analysis.name))
}

/// When its time is over: once all versions were available for its duration. A duration that cannot be read never is.
pub fn end(experiment: &Experiment) -> Option<Timestamp> {
    let length = Some(&experiment.spec.duration).filter(|text| !text.is_empty())?;
    let begun: Timestamp = experiment.status.available_at?.into();
    let length = duration::parse(length).ok()?;
    Some(begun.saturating_add(length).unwrap_or(Timestamp::MAX))
}

/// Whether its time is over.
pub fn is_past(experiment: &Experiment, now: Timestamp) -> bool {
    end(experiment).is_some_and(|end| now > end)
}

/// Whether all versions are available, and its time is not over.
pub fn is_running(experiment: &Experiment, now: Timestamp) -> bool {
    experiment.status.available_at.is_some() && !is_past(experiment, now)
}

/// How many pods a version is to have now.
pub fn replicas(experiment: &Experiment, template: &TemplateSpec) -> i32 {
    let known = version(&experiment.status, &template.name);
    let is_done = known.is_some_and(|version| Stage::of(&version.status).is_over());
    if is_done || is_ending(experiment) { 0 } else { size(template) }
}

/// How many pods a version has while it runs.
pub fn size(template: &TemplateSpec) -> i32 {
    template.replicas.unwrap_or(1)
}

/// Whether a status tells of more pods, or of fewer, than the one before.
pub fn is_progress(before: &ExperimentStatus, after: &ExperimentStatus) -> bool {
    let by_name = |status: &ExperimentStatus| -> BTreeMap<String, [i32; 4]> {
        let counts = |version: &TemplateStatus| {
            [version.replicas, version.updated_replicas, version.ready_replicas, version.available_replicas]
        };
        status.template_statuses.iter().map(|version| (version.name.clone(), counts(version))).collect()
    };
    let (before, after) = (by_name(before), by_name(after));
    let mut both = before.iter().filter_map(|(name, before)| Some((before, after.get(name)?)));
    before.len() < after.len() || both.any(|(before, after)| before != after)
}

/// How long a version may take to get on, in seconds.
pub fn deadline_seconds(experiment: &Experiment) -> i32 {
    experiment.spec.progress_deadline_seconds.unwrap_or(PROGRESS_DEADLINE)
}

/// How long pods stay up afterwards.
pub fn scale_down_delay(experiment: &Experiment) -> SignedDuration {
    SignedDuration::from_secs(experiment.spec.scale_down_delay_seconds.unwrap_or(SCALE_DOWN_DELAY).into())
}

/// A version's ReplicaSet, as far as arguments may ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The version.
    pub template: String,
    /// The name of its ReplicaSet.
    pub set: String,
    /// The hash that this carries.
    pub hash: String,
}

/// The value of an analysis' argument, with what it asks of the Experiment filled in. The error is Argo Rollouts'.
pub fn argument(text: &str, experiment: &Experiment, sets: &[Named]) -> Result<String, String> {
    let parts = arguments::split(text)?;
    let mut known = BTreeMap::new();
    if let Some(begun) = experiment.status.available_at {
        known.insert("experiment.availableAt".to_owned(), begun.to_string());
        if !experiment.spec.duration.is_empty() {
            let length = duration::parse(&experiment.spec.duration)?;
            let end = Timestamp::from(begun).saturating_add(length).unwrap_or(Timestamp::MAX);
            known.insert("experiment.finishedAt".to_owned(), crate::api::Time::from(end).to_string());
        }
    }
    let is_version = |set: &&Named| experiment.spec.templates.iter().any(|template| template.name == set.template);
    for Named { template, set, hash } in sets.iter().filter(is_version) {
        known.insert(format!("templates.{template}.podTemplateHash"), hash.clone());
        known.insert(format!("templates.{template}.replicaset.name"), set.clone());
    }
    arguments::fill(parts, |tag| known.get(tag).map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, api::constants::reason, value};

    #[test]
    fn words_and_reasons_are_those_of_the_constants() {
        use Stage::{Error, Failed, Progressing, Running, Successful, Unset};
        for stage in [Unset, Successful, Running, Progressing, Error, Failed] {
            assert_eq!(Stage::of(stage.as_str()), stage);
            assert_eq!(stage.reason(), reason::template(stage.as_str()));
        }
        assert_eq!(Stage::of("Odd"), Unset);
    }

    #[test]
    fn its_time_is_over_right_after_its_end() {
        let experiment: Experiment = api::read(&value!({
            "spec": {"duration": "10s"}, "status": {"availableAt": "2026-01-01T00:00:00Z"}}))
        .object;
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(end(&experiment), Some(at("2026-01-01T00:00:10Z")));
        assert!(!is_past(&experiment, at("2026-01-01T00:00:10Z")));
        assert!(is_past(&experiment, at("2026-01-01T00:00:10.001Z")));
    }
}
