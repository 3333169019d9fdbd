//! The steps of a canary.
//!
//! Never knows which step is the current one.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{
    analysis::{Analysis, ArgumentValue, TemplateRef},
    rollout::Selector,
    strategy::Metadata,
    weight::Weight,
};
use crate::kubernetes::value::Value;

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What is done, and waited for.
    pub action: Action,
    /// What takes effect along with it, and is not waited for. Only old manifests that name two actions in one step have
    /// any; they mean something to Argo Rollouts, so they mean it here.
    pub also: Vec<Action>,
}

impl Step {
    /// Everything that takes effect with this step.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        std::iter::once(&self.action).chain(&self.also)
    }
}

/// What a step does. In the order in which Argo Rollouts looks for what to wait for.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Waits: so long, or for a person.
    Pause(Option<SignedDuration>),
    /// Sets the number of the new version's pods apart from its weight.
    SetCanaryScale(CanaryScale),
    /// Sets the new version's share of the traffic.
    SetWeight(Weight),
    /// Runs versions beside each other and compares them.
    Experiment(Box<ExperimentStep>),
    /// Measures.
    Analysis(Analysis),
    /// Sends requests with a header to the new version.
    SetHeaderRoute(Route<HeaderMatch>),
    /// Copies requests to the new version.
    SetMirrorRoute(MirrorRoute),
    /// Asks a plugin.
    Plugin(PluginStep),
}

/// How many pods the new version has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CanaryScale {
    /// So many in a hundred of the Rollout's.
    Percent(u32),
    /// So many.
    Replicas(u32),
    /// As many as its share of the traffic needs.
    MatchTrafficWeight,
}

/// A managed route as a step wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route<M> {
    /// Its name, one of the managed routes.
    pub name: String,
    /// What a request must look like: one of these. None at all removes the route.
    pub matches: Vec<M>,
}

/// A header that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderMatch {
    /// Its name.
    pub header: String,
    /// What it must hold.
    pub value: TextMatch,
}

/// A route that copies requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorRoute {
    /// Which requests.
    pub route: Route<RequestMatch>,
    /// How many of them, in a hundred.
    pub percentage: u32,
}

/// What a request must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestMatch {
    /// Its method.
    pub method: Option<TextMatch>,
    /// Its path.
    pub path: Option<TextMatch>,
    /// Its headers.
    pub headers: BTreeMap<String, TextMatch>,
}

/// What a text must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextMatch {
    /// This.
    Exact(String),
    /// Begin with this.
    Prefix(String),
    /// Match this regular expression.
    Regex(String),
}

/// A step that a plugin takes.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginStep {
    /// The plugin.
    pub name: String,
    /// What to tell it.
    pub config: Value,
}

/// An experiment as a step.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentStep {
    /// The versions.
    pub templates: Vec<ExperimentTemplate>,
    /// For how long, as it was given: an experiment with an unreadable duration is made all the same, and says so.
    pub duration: Option<String>,
    /// What is measured meanwhile.
    pub analyses: Vec<ExperimentAnalysis>,
    /// Metrics that are measured but do not count, by regular expression.
    pub dry_run: Vec<String>,
    /// What the AnalysisRuns carry.
    pub run_metadata: Metadata,
    /// How long pods stay up afterwards.
    pub scale_down_delay: Option<SignedDuration>,
}

/// A version in an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentTemplate {
    /// What to call it.
    pub name: String,
    /// Whose pod template, as it was given: `stable` or `canary`.
    pub spec_ref: String,
    /// How many pods.
    pub replicas: u32,
    /// What its pods carry.
    pub metadata: Metadata,
    /// Which pods are its own; the Rollout's selector if not said.
    pub selector: Option<Selector>,
    /// Its share of the traffic.
    pub weight: Option<u32>,
    /// A Service for it; an empty name stands for one that is made up.
    pub service: Option<String>,
}

/// A measurement in an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentAnalysis {
    /// What to call it.
    pub name: String,
    /// The template.
    pub template: TemplateRef,
    /// The values of its arguments.
    pub arguments: Vec<(String, ArgumentValue)>,
    /// The experiment ends when this has ended.
    pub required: bool,
}
