//! A Rollout or an Experiment with all that belongs to it, as a tree for people.
//!
//! The tree is a value that says what is; [`render`] makes text of it, [`changes`] tells two of them apart, [`table`] puts
//! many into lines. What is shown, and in which order, is that of `kubectl argo rollouts get`; beside it stands what the
//! Rollout waits for. Never reads a cluster and never asks the time: ages and ends are moments until they are printed.

mod changes;
mod node;
mod render;
pub mod table;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    api::{self, Rollout, constants::label},
    kubernetes::{object::controller, value::Value},
    model::{health::Health, limits, replica_set::ReplicaSet},
    rollout::{step, wait::Wait},
    sync::{detail, pods},
};
pub use changes::{changes, experiment_changes};
pub use render::{experiment, rollout};

/// The selector that all ReplicaSets and pods of Rollouts and Experiments match.
pub const VERSIONED: &str = label::POD_TEMPLATE_HASH;

/// The objects of a namespace that may belong to a Rollout or an Experiment.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// ReplicaSets.
    pub sets: Vec<Value>,
    /// Pods.
    pub pods: Vec<Value>,
    /// AnalysisRuns.
    pub runs: Vec<Value>,
    /// Experiments.
    pub experiments: Vec<Value>,
}

/// How something is doing, in one letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Icon {
    /// ◷
    Waiting,
    /// ◌
    Progressing,
    /// ⚠
    Warning,
    /// ?
    Unknown,
    /// ✔
    Ok,
    /// ✖
    Bad,
    /// ॥
    Paused,
    /// •
    Neutral,
    /// A blank, for a word of which nobody has heard.
    None,
}

impl Icon {
    /// Its letter.
    pub fn as_str(self) -> &'static str {
        match self {
            Icon::Waiting => "◷",
            Icon::Progressing => "◌",
            Icon::Warning => "⚠",
            Icon::Unknown => "?",
            Icon::Ok => "✔",
            Icon::Bad => "✖",
            Icon::Paused => "॥",
            Icon::Neutral => "•",
            Icon::None => " ",
        }
    }

    /// That of a Rollout's phase.
    fn of_phase(word: &str) -> Icon {
        match word {
            "Progressing" => Icon::Progressing,
            "Paused" => Icon::Paused,
            "Healthy" => Icon::Ok,
            "Degraded" => Icon::Bad,
            _ => Icon::None,
        }
    }
}

/// How something is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// In one letter.
    pub icon: Icon,
    /// In one word.
    pub word: String,
}

/// The part that a version plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Of blue-green: it serves.
    Active,
    /// It is new.
    Canary,
    /// The first of two Services leads to it.
    Ping,
    /// The second does.
    Pong,
    /// Of blue-green: it can be looked at.
    Preview,
    /// It was promoted last.
    Stable,
}

impl Role {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Active => "active",
            Role::Canary => "canary",
            Role::Ping => "ping",
            Role::Pong => "pong",
            Role::Preview => "preview",
            Role::Stable => "stable",
        }
    }
}

/// What a line of the tree is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A Rollout.
    Rollout,
    /// A revision, which is no object.
    Revision,
    /// A ReplicaSet.
    ReplicaSet,
    /// A pod.
    Pod,
    /// An AnalysisRun.
    AnalysisRun,
    /// A Job of an AnalysisRun.
    Job,
    /// An Experiment.
    Experiment,
}

/// Something worth knowing about a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Info {
    /// Its part.
    Role(Role),
    /// When it is scaled down; `None` if the note cannot be read.
    Delay(Option<Timestamp>),
    /// How many of its containers are ready.
    Ready(usize, usize),
    /// How often its containers were started again.
    Restarts(i64),
    /// How many measurements came to this.
    Measurements(Icon, i32),
}

/// A line of the tree, and what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is about.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// How it is doing; a revision is not doing anything.
    pub status: Option<Status>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// What else is worth knowing.
    pub info: Vec<Info>,
    /// What belongs to it.
    pub children: Vec<Node>,
}

/// An image that runs, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The image.
    pub image: String,
    /// The parts that versions with it play, or the names of templates of Experiments.
    pub tags: Vec<Tag>,
}

/// Whose an image is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// A version's, of this part.
    Role(Role),
    /// An Experiment's, of this template.
    Template(String),
}

/// The weight of a canary, and where in its steps it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// `1/4`; empty without steps.
    pub step: String,
    /// What the steps ask for.
    pub set_weight: i32,
    /// What the canary has.
    pub actual_weight: i32,
}

/// A Rollout and all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutTree {
    /// Its namespace.
    pub namespace: String,
    /// Why it is doing as it is.
    pub message: String,
    /// What it waits for.
    pub wait: Option<Wait>,
    /// A pod of the new version that is not ready, or its ReplicaSet that cannot create one, and why.
    pub trouble: Option<(String, String)>,
    /// What its running analysis has measured last, and what it wants.
    pub measured: Option<String>,
    /// `Canary`, `BlueGreen`, or nothing.
    pub strategy: &'static str,
    /// Of a canary.
    pub progress: Option<Progress>,
    /// What runs.
    pub images: Vec<Image>,
    /// Its sizes: desired, current, updated, ready, available.
    pub replicas: [i32; 5],
    /// The tree.
    pub root: Node,
}

/// An Experiment and all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentTree {
    /// Its namespace.
    pub namespace: String,
    /// Why it is doing as it is.
    pub message: String,
    /// What runs.
    pub images: Vec<Image>,
    /// The tree.
    pub root: Node,
}

/// The pod of a ReplicaSet that needs help most, or the ReplicaSet if it cannot create one, and why.
fn trouble(set: &Value, all: &[Value]) -> Option<(String, String)> {
    let uid = set.str_at(&["metadata", "uid"])?;
    let own = all.iter().filter(|pod| controller(pod).as_deref() == Some(uid));
    let name = |of: &Value| of.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
    let failed = || Some((name(set), detail::failure(set)?));
    pods::worst(own).map(|(pod, why)| (name(pod), why)).or_else(failed)
}

impl RolloutTree {
    /// The tree of a Rollout.
    pub fn of(object: &Value, seen: &Seen) -> RolloutTree {
        let rollout: Rollout = api::read(object).object;
        let health = Health::shown(&rollout, rollout.spec.workload_ref.is_some());
        let uid = rollout.metadata.uid.as_str();
        let sets = node::sets(seen, uid, Some(&rollout));
        let infos: Vec<ReplicaSet> = sets.iter().map(|set| ReplicaSet::of(set.object)).collect();
        let experiments = node::experiments(seen, uid);
        let images = node::images(&sets, experiments.iter().flat_map(|experiment| &experiment.sets));
        let status = &rollout.status;
        let newest = sets.iter().filter(|set| set.hash == status.current_pod_hash);
        let trouble = newest.map(|set| set.object).find_map(|set| trouble(set, &seen.pods));
        let owners: Vec<&str> = seen
            .experiments
            .iter()
            .filter(|experiment| controller(experiment).as_deref() == Some(uid))
            .filter_map(|experiment| experiment.str_at(&["metadata", "uid"]))
            .chain([uid])
            .collect();
        let is_its = |run: &&Value| controller(run).is_some_and(|owner| owners.contains(&&*owner));
        let measured = seen.runs.iter().filter(is_its).find_map(detail::measured);
        let mut revisions: BTreeMap<i64, Vec<Node>> = BTreeMap::new();
        let sets = sets.into_iter().map(|set| (set.revision, set.node));
        let experiments = experiments.into_iter().map(|experiment| (experiment.revision, experiment.node));
        for (revision, node) in sets.chain(experiments).chain(node::runs(seen, uid)) {
            revisions.entry(revision).or_default().push(node);
        }
        let word = health.phase_word().to_owned();
        let root = Node {
            kind: Kind::Rollout,
            name: rollout.metadata.name.clone(),
            status: Some(Status { icon: Icon::of_phase(&word), word }),
            created: node::created(object),
            info: Vec::new(),
            children: revisions
                .into_iter()
                .rev()
                .map(|(revision, children)| node::revision(revision, children))
                .collect(),
        };
        let strategy = strategy(&rollout);
        RolloutTree {
            namespace: rollout.metadata.namespace.clone(),
            message: health.to_string(),
            wait: Wait::of(&rollout, &infos),
            trouble,
            measured,
            strategy,
            progress: (strategy == CANARY).then(|| progress(&rollout, &infos)),
            images,
            replicas: [
                limits::replicas(&rollout),
                status.replicas,
                status.updated_replicas,
                status.ready_replicas,
                status.available_replicas,
            ],
            root,
        }
    }
}

const CANARY: &str = "Canary";

/// The strategy's word; empty if there is none.
fn strategy(rollout: &Rollout) -> &'static str {
    match (&rollout.spec.strategy.canary, &rollout.spec.strategy.blue_green) {
        (Some(_), _) => CANARY,
        (None, Some(_)) => "BlueGreen",
        (None, None) => "",
    }
}

/// `1/4`; empty without steps, or before the first update has begun.
fn step_of(rollout: &Rollout) -> String {
    let steps = rollout.spec.strategy.canary.as_ref().map_or(0, |canary| canary.steps.len());
    match rollout.status.current_step_index {
        Some(index) if steps > 0 => format!("{index}/{steps}"),
        Some(_) | None => String::new(),
    }
}

fn progress(rollout: &Rollout, sets: &[ReplicaSet]) -> Progress {
    let (status, max) = (&rollout.status, limits::max_weight(rollout));
    let set_weight = step::set_weight(rollout);
    let is_at_a_step = step::position(rollout).is_some_and(|position| position.step.is_some());
    let routed = rollout.spec.strategy.canary.as_ref().is_some_and(|canary| canary.traffic_routing.is_some());
    let is_canary = |set: &&ReplicaSet| set.hash != status.stable_rs && set.hash == status.current_pod_hash;
    let actual_weight = match (is_at_a_step, status.available_replicas > 0) {
        (false, _) => max,
        (true, false) => 0,
        (true, true) if routed => status.canary.weights.as_ref().map_or(set_weight, |weights| weights.canary.weight),
        (true, true) => sets.iter().find(is_canary).map_or(0, |set| {
            let share = i64::from(set.available) * i64::from(max) / i64::from(status.available_replicas);
            i32::try_from(share).unwrap_or(i32::MAX)
        }),
    };
    Progress { step: step_of(rollout), set_weight, actual_weight }
}

impl ExperimentTree {
    /// The tree of an Experiment.
    pub fn of(object: &Value, seen: &Seen) -> ExperimentTree {
        let text = |path: &[&str]| object.str_at(path).unwrap_or_default().to_owned();
        let experiment = node::experiment(object, seen);
        ExperimentTree {
            namespace: text(&["metadata", "namespace"]),
            message: text(&["status", "message"]),
            images: node::images(&[], &experiment.sets),
            root: experiment.node,
        }
    }
}

#[cfg(test)]
mod tests;
