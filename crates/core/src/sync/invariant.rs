//! An independent judge: what must never happen, whatever was decided. Shares no helper with the decision.

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::{
    decide::{Action, Verdict, Write},
    policy::Apply,
    prune::Stale,
    report::State,
    view::{Fetched, Life, View},
};
use crate::{
    kubernetes::{object::Object, value::Value},
    model::git_source::{OnImmutable, Prune},
};

/// A rule that a verdict would break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub rule: &'static str,
    /// How.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// The rules that a verdict would break.
pub fn check(view: &View, verdict: &Verdict) -> Vec<Broken> {
    let mut broken = Vec::new();
    let mut no = |rule: &'static str, what: String| broken.push(Broken { rule, what });
    let writes: Vec<&Write> = verdict
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Apply(write) => Some(write.as_ref()),
            Action::Prune(_) | Action::Replace(_) | Action::HandOver(_) | Action::EndHook(_) => None,
        })
        .collect();
    provenance(&writes, &mut no);
    pruning(view, verdict, &mut no);
    replacing(view, verdict, &mut no);
    succession(view, verdict, &mut no);
    hooks(view, verdict, &mut no);
    order(view, verdict, &mut no);
    honesty(view, verdict, &mut no);
    peace(view, &writes, &mut no);
    broken
}

/// S57: every applied object carries the commit it came from, outside its pod template.
fn provenance(writes: &[&Write], no: &mut dyn FnMut(&'static str, String)) {
    for write in writes {
        let commit = write.patch.str_at(&["metadata", "annotations", "tidegate.dev/commit"]).unwrap_or_default();
        if !matches!(commit.len(), 40 | 64) || !commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            no("S57", format!("{} would not name its commit", write.id));
        }
        let template = write.patch.at(&["spec", "template", "metadata"]).map(Value::to_json).unwrap_or_default();
        if template.contains("tidegate.dev/commit") {
            let (file, line) = &write.place;
            let remedy = "remove tidegate.dev/commit from its spec.template.metadata";
            no("S57", format!("{file}:{line}: {} would name its commit in its pod template; {remedy}", write.id));
        }
    }
}

/// S58: never prune on doubt, and only what is ours.
fn pruning(view: &View, verdict: &Verdict, no: &mut dyn FnMut(&'static str, String)) {
    let prunes = verdict.actions.iter().filter_map(|action| match action {
        Action::Prune(stale) => Some(stale),
        Action::Apply(_) | Action::Replace(_) | Action::HandOver(_) | Action::EndHook(_) => None,
    });
    if matches!(view.life, Life::Leaves { .. }) {
        return farewell(view, prunes, no);
    }
    let Fetched::Commit(commit) = &view.fetched else {
        prunes.for_each(|stale| no("S58", format!("{} would be deleted without a commit", stale.id)));
        return;
    };
    for stale in prunes {
        let sets = [Some(&commit.set), commit.promoted.as_ref().map(|(_, set)| set)];
        // Where the last promoted set is put back, that is what is wanted.
        let restored = verdict.reasons.iter().any(|reason| matches!(reason, super::Reason::Restores { .. }));
        let wanted = sets[usize::from(restored)].or(sets[0]);
        let Some(wanted) = wanted else { continue };
        if !commit.set.problems.is_empty() || !wanted.problems.is_empty() || wanted.objects.is_empty() {
            no("S58", format!("{} would be deleted while not everything is read", stale.id));
        }
        if wanted.objects.iter().any(|desired| desired.id == stale.id) {
            no("S58", format!("{} would be deleted though git has it", stale.id));
        }
        let makes_way =
            verdict.reasons.iter().any(|reason| matches!(reason, super::Reason::PrunesFirst(id, _) if *id == stale.id));
        let rollouts = wanted.objects.iter().filter(|desired| desired.id.kind == "Rollout");
        let unhealthy = rollouts.filter(|desired| desired.policy.apply != Apply::Never).find(|desired| {
            let phase = |live: &Arc<Object>| live.value.str_at(&["status", "phase"]) == Some("Healthy");
            !view.live.get(&desired.id).is_some_and(phase)
        });
        if let Some(unhealthy) = unhealthy.filter(|_| !makes_way) {
            no("S58", format!("{} would be deleted before {} is healthy", stale.id, unhealthy.id));
        }
        identity(view, stale, no);
    }
}

/// S58: only what git wants to have anew is deleted for that, and never what holds data.
fn replacing(view: &View, verdict: &Verdict, no: &mut dyn FnMut(&'static str, String)) {
    for action in &verdict.actions {
        let Action::Replace(stale) = action else { continue };
        let wanted = match &view.fetched {
            Fetched::Commit(commit) => commit.set.objects.iter().find(|desired| desired.id == stale.id),
            Fetched::Nothing | Fetched::Failed(_) => None,
        };
        let asked = wanted.is_some_and(|wanted| {
            let note = wanted.object.str_at(&["metadata", "annotations", "tidegate.dev/replace"]);
            let source = view.spec.as_ref().is_ok_and(|spec| spec.on_immutable == OnImmutable::Replace);
            note.map_or(source, |note| note == "true")
        });
        let data = ["PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition"];
        if !asked || data.contains(&stale.id.kind.as_str()) {
            no("S58", format!("{} would be deleted to be created again, without a request for it", stale.id));
        }
        identity(view, stale, no);
    }
}

/// S58: a Service changes its Rollout only from one of this source that git no longer has to one that it has.
fn succession(view: &View, verdict: &Verdict, no: &mut dyn FnMut(&'static str, String)) {
    for action in &verdict.actions {
        let Action::HandOver(handover) = action else { continue };
        let Fetched::Commit(commit) = &view.fetched else { continue };
        let restored = verdict.reasons.iter().any(|reason| matches!(reason, super::Reason::Restores { .. }));
        let promoted = commit.promoted.as_ref().filter(|_| restored);
        let wanted = promoted.map_or(&commit.set, |(_, set)| set);
        let is = |kind: &str, namespace: &str, name: &str, other: &str| {
            (kind, namespace, name) == ("Rollout", &*handover.service.namespace, other)
        };
        let has =
            |name: &str| wanted.objects.iter().any(|want| is(&want.id.kind, &want.id.namespace, &want.id.name, name));
        let mut listed = view.status.inventory.iter();
        let was_ours = listed.any(|entry| is(&entry.kind, &entry.namespace, &entry.name, &handover.from));
        if has(&handover.from) || !has(&handover.to) || !was_ours {
            no("S58", format!("{} would be taken from a Rollout that may keep it", handover.service));
        }
    }
}

/// S58: what is deleted as a hook is one, and this source's.
fn hooks(view: &View, verdict: &Verdict, no: &mut dyn FnMut(&'static str, String)) {
    for action in &verdict.actions {
        let Action::EndHook(stale) = action else { continue };
        let is_hook = match &view.fetched {
            Fetched::Commit(commit) => commit.set.hooks.iter().any(|desired| desired.id == stale.id),
            Fetched::Nothing | Fetched::Failed(_) => false,
        };
        if !is_hook {
            no("S58", format!("{} would be deleted as a hook, which it is not", stale.id));
        }
        identity(view, stale, no);
    }
}

/// S58: what is deleted is in the inventory, by uid, and there.
fn identity(view: &View, stale: &Stale, no: &mut dyn FnMut(&'static str, String)) {
    let listed = view.status.inventory.iter().any(|entry| {
        (entry.kind.as_str(), entry.namespace.as_str(), entry.name.as_str(), entry.uid.as_str())
            == (stale.id.kind.as_str(), stale.id.namespace.as_str(), stale.id.name.as_str(), stale.uid.as_str())
    });
    if !listed || stale.uid.is_empty() {
        no("S58", format!("{} would be deleted though it is not in the inventory", stale.id));
    }
    let is_it = view.live.get(&stale.id).is_some_and(|live| live.uid() == stale.uid);
    if !is_it {
        no("S58", format!("another {} would be deleted than the one that is there", stale.id));
    }
}

/// S58 for a source that is deleted: only where it prunes and is not suspended, and never what holds others' objects.
fn farewell<'v>(view: &View, prunes: impl Iterator<Item = &'v Stale>, no: &mut dyn FnMut(&'static str, String)) {
    let may = view.spec.as_ref().is_ok_and(|spec| !spec.suspend && spec.prune != Prune::Never);
    for stale in prunes {
        if !may {
            no("S58", format!("{} would be deleted with a source that does not delete", stale.id));
        }
        if ["Namespace", "CustomResourceDefinition"].contains(&stale.id.kind.as_str()) {
            no("S58", format!("{} would be deleted with all that others have in it", stale.id));
        }
        identity(view, stale, no);
    }
}

/// S59: what is recorded as applied or rolled out is the commit that was fetched.
fn order(view: &View, verdict: &Verdict, no: &mut dyn FnMut(&'static str, String)) {
    let fetched = match &view.fetched {
        Fetched::Commit(commit) => Some(commit.revision.commit.as_str()),
        Fetched::Nothing | Fetched::Failed(_) => None,
    };
    let pairs =
        [(&verdict.status.applied, &view.status.applied), (&verdict.status.rolled_out, &view.status.rolled_out)];
    for (new, old) in pairs {
        let (new, old) = (new.as_ref().map(|r| r.commit.as_str()), old.as_ref().map(|r| r.commit.as_str()));
        if new != old && new != fetched {
            no("S59", format!("commit {} would be recorded though it was not fetched", new.unwrap_or("none")));
        }
    }
}

/// S60: success means that everything of this very commit is there and done.
fn honesty(view: &View, verdict: &Verdict, no: &mut dyn FnMut(&'static str, String)) {
    let successes = verdict.reports.iter().filter(|report| report.state == State::Success);
    for report in successes {
        let Fetched::Commit(commit) = &view.fetched else {
            no("S60", format!("commit {} would succeed without having been fetched", report.commit));
            continue;
        };
        // Older commits succeed with it if their objects are the same.
        let same = || {
            let content = verdict.status.content.as_ref().filter(|content| content.digest == commit.set.digest());
            content.is_some_and(|content| content.following.iter().any(|id| *id == *report.commit))
        };
        if commit.revision.commit != report.commit.as_str() && !same() {
            no("S60", format!("commit {} would succeed while another is carried out", report.commit));
        }
        // One Rollout may be done before the others are.
        let about = |name: &str, namespace: &str| match report.rollout.as_deref() {
            None => true,
            Some(of) => of == name || of == format!("{namespace}/{name}"),
        };
        let left = verdict.actions.iter().any(|action| match action {
            Action::Apply(write) => {
                report.rollout.is_none() || write.id.kind == "Rollout" && about(&write.id.name, &write.id.namespace)
            }
            Action::Replace(_) | Action::HandOver(_) => report.rollout.is_none(),
            Action::EndHook(_) => false,
            // What is no longer used only now is no work of a commit that has succeeded before.
            Action::Prune(_) => {
                let done = view.status.rolled_out.as_ref().is_some_and(|done| done.commit == commit.revision.commit);
                report.rollout.is_none() && !done
            }
        });
        if left || verdict.status.held.iter().any(|held| about(&held.name, &held.namespace)) {
            no("S60", format!("commit {} would succeed with work left", report.commit));
        }
        let rollouts = commit.set.objects.iter().filter(|desired| desired.id.kind == "Rollout");
        for desired in rollouts.filter(|desired| about(&desired.id.name, &desired.id.namespace)) {
            let Some(live) = view.live.get(&desired.id) else { continue };
            let text = |path: &[&str]| live.value.str_at(path).unwrap_or_default();
            let observed = text(&["status", "observedGeneration"]).parse().unwrap_or(i64::MAX);
            let promoted = text(&["status", "stableRS"]) == text(&["status", "currentPodHash"]);
            if !promoted || observed < live.value.int_at(&["metadata", "generation"]).unwrap_or_default() {
                no("S60", format!("commit {} would succeed before {} is promoted", report.commit, desired.id));
            }
        }
    }
}

/// S63: a write never moves what an autoscaler or a Rollout has set.
fn peace(view: &View, writes: &[&Write], no: &mut dyn FnMut(&'static str, String)) {
    const HASH: &str = "rollouts-pod-template-hash";
    let scaled: BTreeSet<(String, String)> = view
        .live
        .values()
        .filter(|live| live.value.str_at(&["kind"]) == Some("HorizontalPodAutoscaler"))
        .filter_map(|live| {
            let target = live.value.at(&["spec", "scaleTargetRef"])?;
            let name = format!("{}/{}", live.namespace(), target.str_at(&["name"])?);
            Some((target.str_at(&["kind"])?.to_owned(), name))
        })
        .collect();
    for write in writes {
        let Some(live) = view.live.get(&write.id) else { continue };
        let key = (write.id.kind.to_string(), format!("{}/{}", write.id.namespace, write.id.name));
        let (wanted, there) = (write.patch.at(&["spec", "replicas"]), live.value.at(&["spec", "replicas"]));
        if scaled.contains(&key) && wanted.is_some() && wanted != there {
            no("S63", format!("{} would be scaled though an autoscaler does that", write.id));
        }
        let managed = live.annotation("argo-rollouts.argoproj.io/managed-by-rollouts").is_some();
        let (wanted, there) = (write.patch.at(&["spec", "selector"]), live.value.at(&["spec", "selector", HASH]));
        if write.id.kind == "Service"
            && managed
            && wanted.is_some()
            && there.is_some()
            && wanted.and_then(|s| s.get(HASH)) != there
        {
            no("S63", format!("{} would lose the version that its Rollout leads it to", write.id));
        }
    }
}
