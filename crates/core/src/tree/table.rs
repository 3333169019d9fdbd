//! Many objects, one line each: `list rollouts`, `list experiments` and `history`.

use jiff::{SignedDuration, Timestamp};

use super::{
    render::{columns, plain},
    step_of, strategy,
};
use crate::{
    api::{self, Experiment, Rollout, constants::annotation},
    kubernetes::{
        clock::rfc3339,
        duration,
        shown::{age, human},
        value::Value,
    },
    model::{
        health::{self, Health},
        limits, replica_set,
    },
    rollout::step,
};

/// Which columns stand before the others.
#[derive(Debug, Clone, Copy, Default)]
pub struct Before {
    /// The namespace.
    pub namespace: bool,
    /// This moment.
    pub time: Option<Timestamp>,
}

impl Before {
    fn headings(self, headings: &[&str]) -> Vec<String> {
        self.cells("NAMESPACE", |_| "TIMESTAMP".to_owned(), headings.iter().map(|heading| (*heading).to_owned()))
    }

    fn cells(
        self,
        namespace: &str,
        time: impl Fn(Timestamp) -> String,
        cells: impl IntoIterator<Item = String>,
    ) -> Vec<String> {
        let time = self.time.map(time);
        time.into_iter().chain(self.namespace.then(|| format!("{namespace:<9}"))).chain(cells).collect()
    }
}

/// The headings of `list rollouts`.
pub const ROLLOUTS: [&str; 9] =
    ["NAME", "STRATEGY", "STATUS", "STEP", "SET-WEIGHT", "READY", "DESIRED", "UP-TO-DATE", "AVAILABLE"];

/// Rollouts, with headings.
pub fn rollouts(objects: &[Value], before: Before) -> String {
    let rows = objects.iter().map(|object| rollout_cells(object, before));
    lay(std::iter::once(before.headings(&ROLLOUTS)).chain(rows))
}

/// The line of one Rollout, without headings: each cell as wide as its heading, so that lines stand below each other.
pub fn rollout(object: &Value, before: Before) -> String {
    lay([rollout_cells(object, before)])
}

fn rollout_cells(object: &Value, before: Before) -> Vec<String> {
    let rollout: Rollout = api::read(object).object;
    let status = &rollout.status;
    let health = Health::shown(&rollout, rollout.spec.workload_ref.is_some());
    let or = |text: &str, absent: &str| if text.is_empty() { absent.to_owned() } else { text.to_owned() };
    let strategy = strategy(&rollout);
    let weight = rollout.spec.strategy.canary.as_ref().map(|_| step::set_weight(&rollout).to_string());
    let cells = [
        format!("{:<10}", rollout.metadata.name),
        format!("{:<9}", or(strategy, "unknown")),
        format!("{:<12}", health.phase_word()),
        format!("{:<4}", or(&step_of(&rollout), "-")),
        format!("{:<10}", weight.unwrap_or_else(|| "-".to_owned())),
        format!("{:<5}", format!("{}/{}", status.ready_replicas, status.replicas)),
        format!("{:<7}", limits::replicas(&rollout)),
        format!("{:<10}", status.updated_replicas),
        format!("{:<9}", status.available_replicas),
    ];
    before.cells(&rollout.metadata.namespace, moment, cells)
}

/// Experiments, with headings.
pub fn experiments(objects: &[Value], before: Before, now: Timestamp) -> String {
    let headings = before.headings(&["NAME", "STATUS", "DURATION", "REMAINING", "AGE"]);
    let rows = objects.iter().map(|object| {
        let experiment: Experiment = api::read(object).object;
        let length = duration::parse(&experiment.spec.duration).ok();
        let remaining = length.zip(experiment.status.available_at).and_then(|(length, since)| {
            let end = Timestamp::from(since).saturating_add(length).unwrap_or(Timestamp::MAX);
            let left = end.duration_since(now);
            (!health::is_over(&experiment.status.phase) && left > SignedDuration::ZERO).then_some(left)
        });
        let shown = |duration: Option<SignedDuration>| duration.map_or_else(|| "-".to_owned(), human);
        let created = object.str_at(&["metadata", "creationTimestamp"]);
        let cells = [
            format!("{:<10}", experiment.metadata.name),
            format!("{:<6}", experiment.status.phase),
            format!("{:<8}", shown(length)),
            format!("{:<9}", shown(remaining)),
            format!("{:<3}", age(created, now)),
        ];
        before.cells(&experiment.metadata.namespace, moment, cells)
    });
    lay(std::iter::once(headings).chain(rows))
}

/// The revisions of a Rollout, oldest first, with their commits and causes where they are noted.
pub fn history(object: &Value, sets: &[Value], now: Timestamp) -> String {
    let rollout: Rollout = api::read(object).object;
    let mut sets: Vec<(i64, &Value)> = super::node::owned_sets(sets, &rollout.metadata.uid);
    sets.sort_by_key(|(revision, _)| *revision);
    let note = |set: &Value, key: &str| set.str_at(&["metadata", "annotations", key]).unwrap_or_default().to_owned();
    let has = |key: &str| sets.iter().any(|(_, set)| !note(set, key).is_empty());
    let (commits, causes) = (has(annotation::COMMIT) || has(annotation::TEMPLATE), has(CHANGE_CAUSE));
    let optional = |wanted: bool, text: String| wanted.then_some(text);
    let mut rows = Vec::new();
    let headings = [Some("REVISION"), Some("REPLICASET"), Some("AGE"), Some("IMAGES")].into_iter().chain([
        commits.then_some("COMMIT"),
        causes.then_some("CHANGE-CAUSE"),
        Some("INFO"),
    ]);
    rows.push(headings.flatten().map(str::to_owned).collect::<Vec<_>>());
    for (revision, set) in &sets {
        let images: Vec<&str> = set
            .list_at(&["spec", "template", "spec", "containers"])
            .iter()
            .map(|container| container.str_at(&["image"]).unwrap_or_default())
            .collect();
        let mut info: Vec<String> =
            super::node::roles(&rollout, replica_set::hash(set)).iter().map(|role| role.as_str().to_owned()).collect();
        // An annotation that changes leaves the present revision there, too.
        let former = note(set, annotation::REVISION_HISTORY);
        let present = revision.to_string();
        let former: Vec<&str> = former.split(',').filter(|former| !former.is_empty() && *former != present).collect();
        if !former.is_empty() {
            info.push(format!("formerly {}", former.join(",")));
        }
        let or_none = |text: String| if text.is_empty() { "<none>".to_owned() } else { text };
        let cells = [
            Some(revision.to_string()),
            set.str_at(&["metadata", "name"]).map(str::to_owned),
            Some(age(set.str_at(&["metadata", "creationTimestamp"]), now)),
            Some(images.join(",")),
            optional(commits, or_none(commit(set).chars().take(12).collect())),
            optional(causes, or_none(note(set, CHANGE_CAUSE))),
            Some(info.join(",")),
        ];
        rows.push(cells.into_iter().flatten().collect());
    }
    lay(rows)
}

/// The commit that brought the pod template of a ReplicaSet; nothing if a person did.
fn commit(set: &Value) -> &str {
    let note = |key: &str| set.str_at(&["metadata", "annotations", key]).unwrap_or_default();
    match note(annotation::TEMPLATE).split_once(' ') {
        Some((hash, commit)) if hash == replica_set::hash(set) => commit,
        // The commit of the object may have brought another field of it: a wrong commit is worse than none.
        Some(_) | None => "",
    }
}

/// Where `kubectl` and people note why.
const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";

fn moment(time: Timestamp) -> String {
    format!("{:<20}", rfc3339(time).as_str())
}

fn lay(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    columns(&rows.into_iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect::<Vec<_>>())
}
