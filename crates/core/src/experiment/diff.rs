//! From what is wanted of an Experiment to the writes that make it so, in their order.

use serde::Serialize;

use super::{
    decide::Verdict,
    view::{View, name},
};
use crate::{
    kubernetes::value::{Text, Value},
    rollout::diff::merge_patch,
};

/// One write.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    /// Creates an object.
    Create {
        /// What it is.
        kind: Kind,
        /// The whole of it.
        object: Value,
    },
    /// Changes one by a merge patch.
    Patch {
        /// What it is.
        kind: Kind,
        /// Its name.
        name: Text,
        /// What changes.
        patch: Value,
    },
    /// Deletes one.
    Delete {
        /// What it is.
        kind: Kind,
        /// Its name.
        name: Text,
        /// Which of that name.
        uid: Text,
    },
}

/// What belongs to an Experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// A ReplicaSet.
    Set,
    /// A Service.
    Service,
    /// An AnalysisRun.
    Run,
}

/// The writes that turn what was seen into what is wanted; none when nothing differs. Services come before the pods they
/// lead to, and go when there are none left.
pub fn diff(view: &View, verdict: &Verdict) -> Vec<Action> {
    let Some(target) = &verdict.target else { return Vec::new() };
    let runs = view.runs.iter().map(|run| &run.object);
    let seen = [
        (Kind::Set, view.sets.values().collect::<Vec<_>>(), &target.sets),
        (Kind::Service, view.services.values().collect(), &target.services),
        (Kind::Run, runs.collect(), &target.runs),
    ];
    let (mut made, mut changed, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, seen, wanted) in seen {
        let created = wanted.iter().filter(|(wanted, _)| !seen.iter().any(|seen| name(seen) == **wanted));
        made.extend(created.map(|(_, object)| Action::Create { kind, object: object.clone() }));
        for before in seen {
            let name = name(before);
            match wanted.get(&name) {
                Some(after) => changed.extend(change(kind, &name, before, after)),
                None => gone.push(Action::Delete { kind, name, uid: uid(before) }),
            }
        }
    }
    made.into_iter().chain(changed).chain(gone).collect()
}

fn change(kind: Kind, name: &Text, before: &Value, after: &Value) -> Option<Action> {
    let mut patch = merge_patch(before, after)?;
    // Another object of the same name is not the one that was decided about.
    patch.set_at(&["metadata", "uid"], uid(before));
    Some(Action::Patch { kind, name: name.clone(), patch })
}

fn uid(object: &Value) -> Text {
    object.at(&["metadata", "uid"]).and_then(Value::as_text).cloned().unwrap_or_default()
}
