//! How a Rollout gets from one version to the next.
//!
//! Never holds a combination that contradicts itself.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{
    analysis::{Analysis, BackgroundAnalysis},
    step::Step,
    traffic::Traffic,
    weight::Limit,
};

/// One of the two.
#[derive(Debug, Clone, PartialEq)]
pub enum Strategy {
    /// A growing share of the new version.
    Canary(Box<Canary>),
    /// The new version beside the old one, then a switch.
    BlueGreen(Box<BlueGreen>),
}

/// A growing share of the new version.
#[derive(Debug, Clone, PartialEq)]
pub struct Canary {
    /// Who the pods are reached by.
    pub services: Services,
    /// What to do one after the other.
    pub steps: Vec<Step>,
    /// What splits the traffic. Without it the number of pods does.
    pub traffic: Option<Traffic>,
    /// How many pods there may be beyond the wanted.
    pub max_surge: Limit,
    /// How many of the wanted pods may be missing.
    pub max_unavailable: Limit,
    /// What is measured all along.
    pub analysis: Option<BackgroundAnalysis>,
    /// Whether old and new pods share nodes.
    pub anti_affinity: Option<AntiAffinity>,
    /// What pods of the new version carry until it is stable.
    pub canary_metadata: Option<Metadata>,
    /// What pods of the stable version carry.
    pub stable_metadata: Option<Metadata>,
    /// How many old ReplicaSets may keep running before they are scaled down.
    pub scale_down_revision_limit: Option<u32>,
    /// The fewest pods of a ReplicaSet that has any.
    pub min_pods_per_replica_set: Option<u32>,
    /// When a step counts as reached.
    pub progress_threshold: Threshold,
}

/// The Services of a canary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Services {
    /// Selects the new version.
    pub canary: Option<String>,
    /// Selects the stable version.
    pub stable: Option<String>,
    /// Two Services that swap these roles.
    pub ping_pong: Option<PingPong>,
}

/// Two Services that swap the roles of canary and stable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PingPong {
    /// The one.
    pub ping: String,
    /// The other.
    pub pong: String,
}

/// The new version beside the old one, then a switch.
#[derive(Debug, Clone, PartialEq)]
pub struct BlueGreen {
    /// The Service that users reach.
    pub active: String,
    /// The Service that selects the new version before the switch.
    pub preview: Option<String>,
    /// How many pods the new version has before the switch; all of them if not said.
    pub preview_replicas: Option<u32>,
    /// When to switch.
    pub promotion: Promotion,
    /// How many pods a restart may take down at once.
    pub max_unavailable: Limit,
    /// How long the old version stays up after the switch.
    pub scale_down_delay: SignedDuration,
    /// How many old ReplicaSets may keep running in that time.
    pub scale_down_revision_limit: Option<u32>,
    /// What is measured before the switch.
    pub pre_promotion: Option<Analysis>,
    /// What is measured after the switch.
    pub post_promotion: Option<Analysis>,
    /// Whether old and new pods share nodes.
    pub anti_affinity: Option<AntiAffinity>,
    /// What pods of the new version carry until the switch.
    pub preview_metadata: Option<Metadata>,
    /// What pods of the active version carry.
    pub active_metadata: Option<Metadata>,
    /// What becomes of the new version after an abort.
    pub after_abort: AfterAbort,
}

/// When blue-green switches to the new version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promotion {
    /// As soon as it is available and measured.
    Automatic,
    /// So long after it became available.
    After(SignedDuration),
    /// When a person says so.
    Manual,
}

/// What becomes of the new version's pods after an abort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterAbort {
    /// Nothing was said: they go after [`AfterAbort::DEFAULT`], or at once where the stable version is scaled with the
    /// traffic.
    Unsaid,
    /// They go after this time.
    ScaleDownAfter(SignedDuration),
    /// They stay.
    Keep,
}

impl AfterAbort {
    /// How long they stay if nothing is said.
    pub const DEFAULT: SignedDuration = SignedDuration::from_secs(30);
}

/// Whether old and new pods share nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AntiAffinity {
    /// Rather not, with this weight among other preferences: 1 to 100.
    Preferred(u8),
    /// Never.
    Required,
}

/// Labels and annotations that come and go with a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
}

/// How many of the new version's wanted pods must be available for a step to count as reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// So many in a hundred.
    Percent(u32),
    /// So many.
    Pods(u32),
}

impl Threshold {
    /// All of them.
    pub const ALL: Threshold = Threshold::Percent(100);
}
