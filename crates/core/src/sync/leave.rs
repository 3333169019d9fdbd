//! A GitSource that is deleted: what it wrote goes with it, where it prunes and nothing speaks against that.
//!
//! Never deletes what is not in the inventory under its uid, and never what others may live in or by: Namespaces and
//! definitions of kinds stay. Routes go first, configuration last, each when what came before is gone.

use super::{
    decide::{Action, DENIED, Guard, Verdict, is_over, told},
    id::Id,
    policy,
    prune::Stale,
    reason::Reason,
    report,
    rights::MissingRights,
    stage::Stage,
    view::{Life, View},
};
use crate::{
    api::InventoryEntry,
    kubernetes::object::Object,
    model::{
        git_source::{GitSource, Prune},
        health::Standing,
    },
};

/// What is done about a source that is being deleted.
pub fn leave(view: &View) -> Verdict {
    let mut verdict = Verdict { status: view.status.clone(), ..Verdict::default() };
    let (guarded, with_namespace) = match view.life {
        Life::Leaves { guarded, with_namespace } => (guarded, with_namespace),
        Life::Given | Life::Stays { .. } => return verdict,
    };
    // Others may keep it for longer; our part is done.
    if !guarded {
        return verdict;
    }
    last_word(view, &mut verdict);
    let Ok(spec) = &view.spec else {
        verdict.guard = Some(Guard::Take);
        return verdict;
    };
    let left = match keeps(spec) {
        Some(reason) => {
            verdict.reasons.push(reason);
            Vec::new()
        }
        None => match &view.denied {
            Some(missing) => return denied(view, with_namespace, missing, verdict),
            None => going(view, with_namespace, &mut verdict.reasons),
        },
    };
    // What is left is deleted stage by stage, the last one first.
    let Some(stage) = left.iter().map(|(stage, _, _)| *stage).max() else {
        verdict.guard = Some(Guard::Take);
        return verdict;
    };
    let mut failures = Vec::new();
    for (_, entry, live) in left.iter().filter(|(of, _, _)| *of == stage) {
        let id = Id::of_entry(entry);
        if let Some(why) = view.refused_deletion(&id) {
            let reason = Reason::Refused(id, why.to_owned());
            failures.push(reason.to_string());
            verdict.reasons.push(reason);
        } else if !live.is_terminating() {
            verdict.reasons.push(Reason::Prunes(id.clone()));
            verdict.actions.push(Action::Prune(Stale { id, version: entry.version.as_str().into(), uid: live.uid() }));
        }
    }
    // A namespace that goes takes everything in it along, rights to delete elsewhere included.
    if with_namespace && !failures.is_empty() && verdict.actions.is_empty() {
        verdict.guard = Some(Guard::Take);
        return verdict;
    }
    match failures.first() {
        Some(first) => told(view, &mut verdict.status, Standing::Stalled, "DeletionRefused", first),
        None => {
            let words = format!("{} of its objects are still to be deleted", left.len());
            told(view, &mut verdict.status, Standing::InProgress, "Deleting", &words);
        }
    }
    verdict
}

/// What cannot be seen is not deleted, and is not forgotten either.
fn denied(view: &View, with_namespace: bool, missing: &MissingRights, mut verdict: Verdict) -> Verdict {
    // Rights go with their namespace, as what is in it does.
    if with_namespace {
        verdict.guard = Some(Guard::Take);
        return verdict;
    }
    let reason = Reason::MayNotRead(missing.clone());
    told(view, &mut verdict.status, Standing::Stalled, DENIED, &reason.to_string());
    verdict.reasons.push(reason);
    verdict
}

/// Why nothing is deleted with a source, if nothing is.
fn keeps(spec: &GitSource) -> Option<Reason> {
    if spec.suspend {
        return Some(Reason::LetsGo("the source is suspended"));
    }
    match spec.prune {
        Prune::Never => Some(Reason::LetsGo("the source does not prune")),
        Prune::UpTo(_) => None,
    }
}

/// What goes, and is not gone.
fn going<'v>(
    view: &'v View,
    with_namespace: bool,
    reasons: &mut Vec<Reason>,
) -> Vec<(Stage, &'v InventoryEntry, &'v Object)> {
    let mut going = Vec::new();
    for entry in &view.status.inventory {
        let id = Id::of_entry(entry);
        let Some(live) = view.live.get(&id) else { continue };
        let stage = Stage::of(&id.group, &id.kind);
        if entry.uid.is_empty() || live.uid() != entry.uid.as_str() || !view.is_ours(&live.value) {
            reasons.push(Reason::NotOurs(id));
        } else if policy::is_kept(&live.value) {
            reasons.push(Reason::KeptByPolicy(id));
        } else if policy::is_suspended(&live.value) {
            reasons.push(Reason::ObjectSuspended(id));
        } else if stage == Stage::Foundation {
            reasons.push(Reason::HoldsOthers(id));
        } else if !(with_namespace && id.namespace == view.namespace) {
            going.push((stage, entry, &**live));
        }
    }
    going
}

/// A commit that was under way ends here.
fn last_word(view: &View, verdict: &mut Verdict) {
    let seen = view.status.seen.as_ref().filter(|seen| !is_over(&view.status, &seen.commit));
    if let Some(seen) = seen {
        verdict.reports = report::overtaken(view, &seen.commit, "the source was deleted");
    }
}
