//! The lines of the tree, each read off its object: ReplicaSets, pods, AnalysisRuns, Jobs, Experiments.

use std::{cmp::Reverse, collections::BTreeMap};

use jiff::Timestamp;

use super::{Icon, Image, Info, Kind, Node, Role, Seen, Status, Tag};
use crate::{
    api::{
        self, AnalysisRun, Rollout,
        constants::{analysis_phase, annotation},
    },
    kubernetes::{
        shown::{PodState, holds},
        value::Value,
    },
    model::replica_set::{self, ReplicaSet},
};

/// The notes of a Job's measurement that name it, and its namespace is not shown.
const JOB_NAME: &str = "job-name";

/// A ReplicaSet's line, and what else the tree needs of it.
pub(super) struct Set<'a> {
    pub object: &'a Value,
    pub revision: i64,
    pub hash: String,
    pub node: Node,
    images: Vec<String>,
    roles: Vec<Role>,
    template: String,
    is_up: bool,
}

/// An Experiment's line, and what else the tree needs of it.
pub(super) struct Experiment<'a> {
    pub revision: i64,
    pub node: Node,
    pub sets: Vec<Set<'a>>,
}

/// The line of a revision.
pub(super) fn revision(revision: i64, children: Vec<Node>) -> Node {
    let name = format!("revision:{revision}");
    Node { kind: Kind::Revision, name, status: None, created: None, info: Vec::new(), children }
}

/// When an object was created.
pub(super) fn created(object: &Value) -> Option<Timestamp> {
    object.str_at(&["metadata", "creationTimestamp"])?.parse().ok()
}

fn name_of(object: &Value) -> String {
    object.str_at(&["metadata", "name"]).unwrap_or_default().to_owned()
}

fn note<'a>(object: &'a Value, key: &str) -> &'a str {
    object.str_at(&["metadata", "annotations", key]).unwrap_or_default()
}

/// The revision of an object; 0 if it has none.
fn revision_of(object: &Value) -> i64 {
    note(object, annotation::REVISION).parse().unwrap_or_default()
}

/// Whether one of the object's owners has this uid.
fn is_owned(object: &Value, uid: &str) -> bool {
    let owners = object.list_at(&["metadata", "ownerReferences"]);
    !uid.is_empty() && owners.iter().any(|owner| owner.str_at(&["uid"]) == Some(uid))
}

/// The ReplicaSets of an owner, newest revision first.
pub(super) fn sets<'a>(seen: &'a Seen, owner: &str, rollout: Option<&Rollout>) -> Vec<Set<'a>> {
    let owned = seen.sets.iter().filter(|set| is_owned(set, owner));
    let mut sets: Vec<Set<'a>> = owned.map(|object| set(object, seen, rollout)).collect();
    sets.sort_by(|a, b| (Reverse(a.revision), &a.node.name).cmp(&(Reverse(b.revision), &b.node.name)));
    sets
}

fn set<'a>(object: &'a Value, seen: &Seen, rollout: Option<&Rollout>) -> Set<'a> {
    let hash = replica_set::hash(object);
    let roles = rollout.map(|rollout| roles(rollout, hash)).unwrap_or_default();
    let read = ReplicaSet::of(object);
    let mut info: Vec<Info> = roles.iter().copied().map(Info::Role).collect();
    if read.has_scale_down_deadline() {
        info.push(Info::Delay(read.scale_down_deadline()));
    }
    let uid = object.str_at(&["metadata", "uid"]).unwrap_or_default();
    let mut pods: Vec<&Value> = seen.pods.iter().filter(|pod| is_owned(pod, uid)).collect();
    pods.sort_by_cached_key(|pod| (created(pod), name_of(pod)));
    let containers = object.list_at(&["spec", "template", "spec", "containers"]);
    Set {
        object,
        revision: revision_of(object),
        hash: hash.to_owned(),
        images: containers.iter().map(|c| c.str_at(&["image"]).unwrap_or_default().to_owned()).collect(),
        roles,
        template: note(object, annotation::EXPERIMENT_TEMPLATE).to_owned(),
        is_up: read.current > 0,
        node: Node {
            kind: Kind::ReplicaSet,
            name: read.name.to_string(),
            status: Some(set_status(object, &read)),
            created: created(object),
            info,
            children: pods.into_iter().map(pod).collect(),
        },
    }
}

/// The ReplicaSets among these that an owner has, with their revisions.
pub(super) fn owned_sets<'a>(sets: &'a [Value], owner: &str) -> Vec<(i64, &'a Value)> {
    sets.iter().filter(|set| is_owned(set, owner)).map(|set| (revision_of(set), set)).collect()
}

/// The parts that the version of this hash plays, as they are shown.
pub(super) fn roles(rollout: &Rollout, hash: &str) -> Vec<Role> {
    let (strategy, status) = (&rollout.spec.strategy, &rollout.status);
    let (is_stable, is_current) = (status.stable_rs == hash, status.current_pod_hash == hash);
    let mut roles: Vec<Role> = is_stable.then_some(Role::Stable).into_iter().collect();
    if let Some(canary) = &strategy.canary {
        if is_current && !is_stable {
            roles.push(Role::Canary);
        }
        if canary.ping_pong.is_some() && (is_stable || is_current) {
            let stable_is_ping = status.canary.stable_ping_pong == "ping";
            roles.push(if is_stable == stable_is_ping { Role::Ping } else { Role::Pong });
        }
    } else if strategy.blue_green.is_none() {
        roles.clear();
    }
    if strategy.blue_green.is_some() {
        if status.blue_green.active_selector == hash {
            roles.push(Role::Active);
        } else if status.blue_green.preview_selector == hash {
            roles.push(Role::Preview);
        }
    }
    roles
}

fn set_status(object: &Value, read: &ReplicaSet) -> Status {
    let number = |path: &[&str]| object.int_at(path).unwrap_or_default();
    let is_seen = number(&["metadata", "generation"]) <= number(&["status", "observedGeneration"]);
    let (icon, word) = if !is_seen {
        (Icon::Progressing, "Progressing")
    } else if holds(object.list_at(&["status", "conditions"]), "ReplicaFailure") {
        (Icon::Bad, "ReplicaFailure")
    } else if read.available < read.desired {
        (Icon::Progressing, "Progressing")
    } else if read.desired == 0 {
        (Icon::Neutral, "ScaledDown")
    } else {
        (Icon::Ok, "Healthy")
    };
    Status { icon, word: word.to_owned() }
}

fn pod(object: &Value) -> Node {
    let state = PodState::of(object);
    let mut info = vec![Info::Ready(state.ready, state.total)];
    if state.restarts.count > 0 {
        info.push(Info::Restarts(state.restarts.count));
    }
    Node {
        kind: Kind::Pod,
        name: name_of(object),
        status: Some(Status { icon: pod_icon(&state.reason), word: state.reason }),
        created: created(object),
        info,
        children: Vec::new(),
    }
}

fn pod_icon(word: &str) -> Icon {
    if word.starts_with("Init:") {
        return Icon::Progressing;
    }
    if word.starts_with("Signal:") || word.starts_with("ExitCode:") {
        return Icon::Bad;
    }
    if word.ends_with("Error") || word.starts_with("Err") {
        return Icon::Warning;
    }
    match word {
        "Pending" | "Terminating" | "ContainerCreating" => Icon::Progressing,
        "Running" | "Completed" => Icon::Ok,
        "Failed" | "InvalidImageName" | "CrashLoopBackOff" => Icon::Bad,
        "ImagePullBackOff" | "RegistryUnavailable" => Icon::Warning,
        "Unknown" => Icon::Unknown,
        _ => Icon::None,
    }
}

/// The AnalysisRuns of an owner, newest revision first, then oldest first, with their revisions.
pub(super) fn runs(seen: &Seen, owner: &str) -> Vec<(i64, Node)> {
    let mut owned: Vec<&Value> = seen.runs.iter().filter(|run| is_owned(run, owner)).collect();
    owned.sort_by_cached_key(|run| (Reverse(revision_of(run)), created(run), Reverse(name_of(run))));
    owned.into_iter().map(|run| (revision_of(run), self::run(run))).collect()
}

fn run(object: &Value) -> Node {
    let status = api::read::<AnalysisRun>(object).object.status;
    let sum = |count: fn(&api::MetricResult) -> i32| status.metric_results.iter().map(count).sum::<i32>();
    let counts = [
        (Icon::Ok, sum(|result| result.successful)),
        (Icon::Bad, sum(|result| result.failed)),
        (Icon::Unknown, sum(|result| result.inconclusive)),
        (Icon::Warning, sum(|result| result.error)),
    ];
    let measurements = status.metric_results.iter().flat_map(|result| &result.measurements);
    let jobs = measurements.filter_map(|measurement| {
        Some(Node {
            kind: Kind::Job,
            name: measurement.metadata.get(JOB_NAME)?.clone(),
            status: Some(analysis_status(&measurement.phase)),
            created: measurement.started_at.map(Timestamp::from),
            info: Vec::new(),
            children: Vec::new(),
        })
    });
    Node {
        kind: Kind::AnalysisRun,
        name: name_of(object),
        status: Some(analysis_status(&status.phase)),
        created: created(object),
        info: counts.into_iter().filter(|(_, count)| *count > 0).map(|(icon, n)| Info::Measurements(icon, n)).collect(),
        children: jobs.collect(),
    }
}

fn analysis_status(phase: &str) -> Status {
    let icon = match phase {
        analysis_phase::SUCCESSFUL => Icon::Ok,
        analysis_phase::INCONCLUSIVE => Icon::Unknown,
        analysis_phase::FAILED => Icon::Bad,
        analysis_phase::ERROR => Icon::Warning,
        analysis_phase::RUNNING => Icon::Progressing,
        analysis_phase::PENDING => Icon::Waiting,
        _ => Icon::None,
    };
    Status { icon, word: phase.to_owned() }
}

/// The Experiments of a Rollout, newest revision first.
pub(super) fn experiments<'a>(seen: &'a Seen, owner: &str) -> Vec<Experiment<'a>> {
    let mut owned: Vec<&Value> = seen.experiments.iter().filter(|experiment| is_owned(experiment, owner)).collect();
    owned.sort_by_cached_key(|experiment| (Reverse(revision_of(experiment)), created(experiment)));
    owned.into_iter().map(|object| experiment(object, seen)).collect()
}

/// An Experiment.
pub(super) fn experiment<'a>(object: &Value, seen: &'a Seen) -> Experiment<'a> {
    let uid = object.str_at(&["metadata", "uid"]).unwrap_or_default();
    let sets = sets(seen, uid, None);
    let children = sets.iter().map(|set| set.node.clone()).chain(runs(seen, uid).into_iter().map(|(_, run)| run));
    Experiment {
        revision: revision_of(object),
        node: Node {
            kind: Kind::Experiment,
            name: name_of(object),
            status: Some(analysis_status(object.str_at(&["status", "phase"]).unwrap_or_default())),
            created: created(object),
            info: Vec::new(),
            children: children.collect(),
        },
        sets,
    }
}

/// The images that run, sorted, and whose they are.
pub(super) fn images<'a>(sets: &'a [Set<'_>], tried: impl IntoIterator<Item = &'a Set<'a>>) -> Vec<Image> {
    let mut images: BTreeMap<&str, Vec<Tag>> = BTreeMap::new();
    for set in sets.iter().filter(|set| set.is_up) {
        for image in &set.images {
            images.entry(image).or_default().extend(set.roles.iter().copied().map(Tag::Role));
        }
    }
    for set in tried.into_iter().filter(|set| set.is_up) {
        for image in &set.images {
            let template = (!set.template.is_empty()).then(|| Tag::Template(set.template.clone()));
            images.entry(image).or_default().extend(template);
        }
    }
    let image = |(image, mut tags): (&str, Vec<Tag>)| {
        tags.sort();
        tags.dedup();
        Image { image: image.to_owned(), tags }
    };
    images.into_iter().map(image).collect()
}
