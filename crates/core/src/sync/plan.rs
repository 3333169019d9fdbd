//! What is to be done about the objects of a set, one by one, and how they are doing together.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{
    compare::{Conflict, Difference},
    decide::{Action, Verdict, Write},
    handover::{self, Handover},
    hold,
    hook::{Gate, Turn},
    id::Id,
    policy::{self, Apply},
    prune::{self, Stale},
    reason::{self, Doubt, Reason},
    set::{Problem, Set},
    view::{Commit, Pair, Refusal, View},
};
use crate::{
    api::{HeldObject, InventoryEntry},
    model::{
        git_source::{Drift, GitSource},
        health::Standing,
    },
};

/// What is to be done about the objects of a set.
#[derive(Default)]
pub struct Plan {
    /// What is written.
    pub writes: Vec<Write>,
    /// What is deleted.
    pub prunes: Vec<Stale>,
    /// What is deleted to be created again.
    pub replaces: Vec<Stale>,
    /// The Services that get another Rollout.
    pub handovers: Vec<Handover>,
    /// Why.
    pub reasons: Vec<Reason>,
    /// What people must do something about.
    pub failures: Vec<String>,
    /// What is not deleted though it is to be, and why: somebody must do something about it.
    pub unpruned: Vec<String>,
    /// What is no longer in git and stays, and why.
    pub kept: Vec<String>,
    /// What people must do something about, with its place.
    pub problems: Vec<Problem>,
    /// Why it cannot be done, by object: what was refused, and what was given up.
    pub failed: BTreeMap<Id, String>,
    /// What is not as it should be yet.
    pub open: BTreeSet<Id>,
    /// Objects that come later: after a wave, a definition, an answer of the server.
    pub later: usize,
    /// Whom we wait for.
    pub waits: Option<String>,
}

impl Plan {
    /// Whether everything is as it should be.
    pub fn is_settled(&self) -> bool {
        self.writes.is_empty() && self.later == 0 && self.failures.is_empty()
    }

    /// Adds itself to a verdict.
    pub fn into_verdict(self, mut verdict: Verdict) -> Verdict {
        let hooks = std::mem::take(&mut verdict.actions);
        verdict.actions = self.writes.into_iter().map(|write| Action::Apply(Box::new(write))).collect();
        verdict.actions.extend(hooks);
        verdict.actions.extend(self.replaces.into_iter().map(Action::Replace));
        verdict.actions.extend(self.handovers.into_iter().map(Action::HandOver));
        verdict.actions.extend(self.prunes.into_iter().map(Action::Prune));
        verdict.reasons.extend(self.reasons);
        verdict
    }

    /// Goes through the objects in their order; a wave begins when the ones before are done.
    pub fn objects(&mut self, view: &View, spec: &GitSource, pairs: &[Pair<'_>], held: &[HeldObject]) {
        let mut wave = pairs.first().map(|pair| pair.desired.policy.wave);
        // Nobody waits for the last one.
        let last = pairs.last().map(|pair| pair.desired.policy.wave);
        let mut open: Option<(Id, String)> = None;
        for (index, pair) in pairs.iter().enumerate() {
            if wave != Some(pair.desired.policy.wave) {
                if let Some((of, words)) = open.take() {
                    let reason = Reason::WaitsForWave { wave: pair.desired.policy.wave, of, words };
                    self.waits = Some(reason.to_string());
                    self.reasons.push(reason);
                    self.later += pairs.len() - index;
                    self.open.extend(pairs[index..].iter().map(|pair| pair.desired.id.clone()));
                    return;
                }
                wave = Some(pair.desired.policy.wave);
            }
            let before = (self.writes.len(), self.later, self.failures.len());
            self.object(view, spec, pair, held);
            let untouched = before == (self.writes.len(), self.later, self.failures.len());
            if !untouched {
                self.open.insert(pair.desired.id.clone());
            }
            if open.is_none() && wave != last {
                open = match &pair.doing {
                    _ if !untouched => Some((pair.desired.id.clone(), "is not applied yet".to_owned())),
                    Some(doing) if doing.standing != Standing::Current => {
                        Some((pair.desired.id.clone(), doing.words.clone()))
                    }
                    Some(_) | None => None,
                };
            }
        }
    }

    fn object(&mut self, view: &View, spec: &GitSource, pair: &Pair<'_>, held: &[HeldObject]) {
        let (desired, id) = (pair.desired, &pair.desired.id);
        if pair.rests && held.is_empty() && !view.refused.contains_key(id) {
            return;
        }
        if desired.policy.apply == Apply::Never {
            return self.reasons.push(Reason::Ignored(id.clone()));
        }
        if desired.policy.suspended || pair.live.is_some_and(|live| policy::is_suspended(&live.value)) {
            return self.reasons.push(Reason::ObjectSuspended(id.clone()));
        }
        if !desired.sort.served {
            self.later += 1;
            return self.reasons.push(Reason::WaitsForDefinition(id.clone()));
        }
        if let Some(refused) = refusal(view, pair) {
            return match prune::replaces(spec, pair).filter(|_| refused.immutable) {
                Some(stale) => {
                    self.replaces.push(stale);
                    self.later += 1;
                    self.reasons.push(Reason::Replaces(id.clone()));
                }
                None => self.fail_at(pair, refused.line, Reason::Refused(id.clone(), refused.message.clone())),
            };
        }
        let Some(live) = pair.live else {
            self.reasons.push(Reason::Creates(id.clone()));
            return self.write(pair, None, false);
        };
        if live.is_terminating() {
            self.later += 1;
            return;
        }
        let ours = pair.ours.is_some();
        let other = live.value.str_at(&["metadata", "labels", crate::api::constants::label::SOURCE]);
        if let Some(other) = other.filter(|_| !ours) {
            return self.fail(pair, Reason::OtherSource(id.clone(), other.to_owned()));
        }
        if desired.policy.apply == Apply::Once && ours {
            return self.reasons.push(Reason::AppliedOnce(id.clone()));
        }
        if let Some(held) = held.iter().find(|held| hold::is_about(held, id)) {
            let (commit, why) = (held.commit.as_str().into(), held.reason.clone());
            self.failed.insert(id.clone(), reason::held(&id.name, &held.commit, &held.reason));
            return self.reasons.push(Reason::Held { id: id.clone(), commit, why });
        }
        self.change(spec, pair, ours);
    }

    /// An object that is there and may have to change.
    fn change(&mut self, spec: &GitSource, pair: &Pair<'_>, ours: bool) {
        let id = &pair.desired.id;
        let version = pair.live.map(|live| live.version());
        // Git says what it said when this was last applied: what differs, others changed.
        let noted = pair.live.and_then(|live| live.annotation(crate::api::constants::annotation::DIGEST));
        let drift = ours && noted == Some(&pair.desired.digest);
        let why = |fields: Vec<String>| match (ours, drift) {
            (false, _) => Reason::Adopts(id.clone()),
            (true, true) => Reason::Heals(id.clone(), fields),
            (true, false) => Reason::Changes(id.clone(), fields),
        };
        match pair.difference.clone().unwrap_or(Difference::Unknown) {
            Difference::Same => {}
            // Only who owns what would change: worth a write when it is new, and no reason for one ever after.
            Difference::Fields(fields) if drift && fields.is_empty() => {}
            Difference::Fields(fields) if drift && spec.drift == Drift::Leave => {
                self.reasons.push(Reason::DriftLeft(id.clone(), fields));
            }
            Difference::Fields(fields) => {
                self.reasons.push(why(fields));
                self.write(pair, version, false);
            }
            Difference::Conflict(conflicts) => self.conflict(spec, pair, drift, &conflicts, why),
            Difference::Unknown => {
                self.later += 1;
            }
            Difference::Malformed(message) => self.fail(pair, Reason::Refused(id.clone(), message)),
        }
    }

    fn conflict(
        &mut self,
        spec: &GitSource,
        pair: &Pair<'_>,
        drift: bool,
        conflicts: &[Conflict],
        why: impl Fn(Vec<String>) -> Reason,
    ) {
        let id = &pair.desired.id;
        // Another tool that applies would take the field back, for ever. People with kubectl are no tool.
        let rival = conflicts.iter().find(|conflict| conflict.applies && !conflict.manager.starts_with("kubectl"));
        if let Some(Conflict { manager, field, .. }) = rival {
            let (manager, field) = (manager.clone(), field.clone());
            return self.fail(pair, Reason::Conflict { id: id.clone(), manager, field });
        }
        let fields: Vec<String> = conflicts.iter().map(|conflict| conflict.field.clone()).collect();
        if drift && spec.drift == Drift::Leave {
            return self.reasons.push(Reason::DriftLeft(id.clone(), fields));
        }
        self.reasons.push(why(fields));
        self.write(pair, pair.live.map(|live| live.version()), true);
    }

    fn write(&mut self, pair: &Pair<'_>, version: Option<u64>, force: bool) {
        self.writes.push(Write {
            id: pair.desired.id.clone(),
            place: (pair.desired.file.clone(), pair.desired.line),
            patch: pair.patch.clone(),
            version,
            force,
        });
    }

    fn fail(&mut self, pair: &Pair<'_>, reason: Reason) {
        self.fail_at(pair, None, reason);
    }

    fn fail_at(&mut self, pair: &Pair<'_>, line: Option<usize>, reason: Reason) {
        let line = line.unwrap_or(pair.desired.line);
        let problem = Problem { file: pair.desired.file.clone(), line, message: reason.to_string() };
        self.failures.push(problem.to_string());
        self.failed.insert(pair.desired.id.clone(), problem.to_string());
        self.problems.push(problem);
        self.reasons.push(reason);
    }

    /// What is no longer in git goes when everything that git has is healthy, where nothing speaks against that. What stands
    /// in the way of something goes before it.
    pub fn prune(&mut self, view: &View, spec: &GitSource, set: &Set, commit: &Commit, pairs: &mut [Pair<'_>]) {
        let (prunes, reasons) = prune::decide(view, spec, set, commit.stale.is_some());
        self.hand_over(view, &prunes, pairs);
        if !self.is_settled() {
            return self.make_way(view, prunes);
        }
        for reason in &reasons {
            match reason {
                // What cannot be deleted is somebody's to solve, as what cannot be written.
                Reason::Refused(..) | Reason::NoPruning(Doubt::TooMany { .. } | Doubt::Empty | Doubt::Unlisted(_)) => {
                    self.unpruned.push(reason.to_string());
                }
                Reason::StillReferenced(..) | Reason::KeptByPolicy(_) | Reason::NotOurs(_) | Reason::NoPruning(_) => {
                    self.kept.push(reason.to_string())
                }
                _ => {}
            }
        }
        let ill = |pair: &&Pair<'_>| {
            let healthy = pair.doing.as_ref().is_some_and(|doing| doing.standing == Standing::Current);
            pair.desired.policy.apply != Apply::Never && (!healthy || self.failed.contains_key(&pair.desired.id))
        };
        let Some(ill) = pairs.iter().find(ill).filter(|_| !prunes.is_empty()) else {
            self.prunes = prunes;
            return self.reasons.extend(reasons);
        };
        self.reasons.extend(reasons.into_iter().filter(|reason| !matches!(reason, Reason::Prunes(_))));
        self.reasons.push(Reason::PrunesLater { count: prunes.len(), of: ill.desired.id.clone() });
    }

    /// Gives the Services of a Rollout that is to go to the one that git has in its place.
    fn hand_over(&mut self, view: &View, prunes: &[Stale], pairs: &mut [Pair<'_>]) {
        let mut due = handover::due(view, prunes, pairs);
        for handover in due.extract_if(.., |handover| view.refused_handover(&handover.service).is_some()) {
            let why = view.refused_handover(&handover.service).unwrap_or_default().to_owned();
            let successor = pairs.iter().find(|pair| {
                pair.desired.id.name == handover.to && pair.desired.id.namespace == handover.service.namespace
            });
            if let Some(pair) = successor {
                self.fail(pair, Reason::Refused(handover.service.clone(), why));
            }
        }
        handover::settle(view, &due, pairs);
        self.later += due.len();
        self.reasons.extend(due.iter().map(Handover::reason));
        self.handovers = due;
    }

    /// Deletes what the server names as the reason why it refuses something new.
    fn make_way(&mut self, view: &View, prunes: Vec<Stale>) {
        for stale in prunes {
            let refused = self.failed.keys().find(|id| {
                let refusal = view.refused.get(*id);
                refusal.is_some_and(|refusal| prune::blocks(view, &stale, id, &refusal.message))
            });
            let Some(of) = refused.cloned() else { continue };
            self.reasons.push(Reason::PrunesFirst(stale.id.clone(), of.clone()));
            self.prunes.push(stale);
            // It is tried again as soon as that is gone.
            if let Some(failure) = self.failed.remove(&of) {
                self.failures.retain(|other| *other != failure);
                self.problems.retain(|problem| problem.to_string() != failure);
                self.later += 1;
            }
        }
    }
}

/// What the server said about this very content on this very object.
fn refusal<'v>(view: &'v View, pair: &Pair<'_>) -> Option<&'v Refusal> {
    let version = pair.live.map_or(0, |live| live.version());
    let refused = view.refused.get(&pair.desired.id)?;
    (refused.version.is_none_or(|of| of == version) && refused.digest == super::view::digest_of(&pair.patch))
        .then_some(refused)
}

/// What the source has written or is about to, and what it has not let go of.
pub fn inventory(view: &View, pairs: &[Pair<'_>], plan: &Plan) -> Vec<InventoryEntry> {
    let writing: BTreeSet<&Id> = plan.writes.iter().map(|write| &write.id).collect();
    let mut entries: Vec<InventoryEntry> = Vec::with_capacity(pairs.len());
    let mut named: HashSet<&Id> = HashSet::with_capacity(pairs.len());
    for pair in pairs {
        let id = &pair.desired.id;
        if pair.ours.is_none() && !writing.contains(id) {
            continue;
        }
        named.insert(id);
        let Id { group, kind, namespace, name } = id.clone();
        let uid = pair.ours.clone().unwrap_or_default();
        let version = pair.desired.sort.version.clone();
        entries.push(InventoryEntry { group, version, kind, namespace, name, uid });
    }
    for old in &view.status.inventory {
        let id = Id::of_entry(old);
        if !named.contains(&id) && view.live.get(&id).is_some_and(|live| view.is_ours(&live.value)) {
            let uid = view.live.get(&id).map(|live| live.uid()).unwrap_or_default();
            // An entry that was made before its object was seen learns its uid here; one that has a uid keeps it.
            let uid = if old.uid.is_empty() { uid } else { old.uid.clone() };
            entries.push(InventoryEntry { uid, ..old.clone() });
        }
    }
    entries
}

/// How everything is doing.
pub struct Outcome {
    /// As kstatus would say it.
    pub standing: Standing,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub words: String,
    /// What people must do something about, besides what the plan has.
    pub problem: Option<Problem>,
}

impl Outcome {
    /// The same, with hooks that come after it.
    pub fn after(self, turn: &Turn, running: &'static str) -> Outcome {
        match (&turn.gate, self.standing) {
            (Gate::Open, _) | (_, Standing::Stalled) => self,
            (Gate::Waits(_), Standing::InProgress) => self,
            (Gate::Waits(words), Standing::Current) => {
                Outcome { standing: Standing::InProgress, reason: running, words: words.clone(), problem: None }
            }
            (Gate::Failed(problem), Standing::Current | Standing::InProgress) => Outcome {
                standing: Standing::Stalled,
                reason: "HookFailed",
                words: problem.to_string(),
                problem: Some(problem.clone()),
            },
        }
    }
}

/// Some words, and how many more there are.
pub fn first_of(words: &[String]) -> Option<String> {
    match words {
        [] => None,
        [one] => Some(one.clone()),
        [first, more @ ..] => Some(format!("{first} (and {} more)", more.len())),
    }
}

/// The fold of how everything is doing: failure before waiting before success. `done` is whether this very commit has
/// succeeded before.
pub fn outcome(pairs: &[Pair<'_>], plan: &Plan, done: bool) -> Outcome {
    let stalled = |reason, words| Outcome { standing: Standing::Stalled, reason, words, problem: None };
    let moves = |reason, words| Outcome { standing: Standing::InProgress, reason, words, problem: None };
    if let Some(words) = first_of(&plan.failures) {
        return stalled("ApplyFailed", words);
    }
    let wanted = || pairs.iter().filter(|pair| pair.desired.policy.apply != Apply::Never);
    if !plan.writes.is_empty() {
        return moves("Applying", format!("applying {} of {} objects", plan.writes.len(), pairs.len()));
    }
    let failing = wanted().filter_map(|pair| match (plan.failed.get(&pair.desired.id), &pair.doing) {
        (Some(held), _) => Some(format!("{}: {held}", pair.desired.id.name)),
        (None, Some(doing)) if doing.standing == Standing::Stalled => {
            Some(format!("{}: {}", pair.desired.id.name, doing.words))
        }
        (None, Some(_) | None) => None,
    });
    if let Some(words) = first_of(&failing.collect::<Vec<_>>()) {
        return stalled("RolloutFailed", words);
    }
    if let Some(words) = &plan.waits {
        return moves("Waiting", words.clone());
    }
    let moving = wanted().filter_map(|pair| match &pair.doing {
        Some(doing) if doing.standing == Standing::Current => None,
        Some(doing) => Some(format!("{}: {}", pair.desired.id.name, doing.words)),
        None => Some(format!("{} is not there yet", pair.desired.id.name)),
    });
    if let Some(words) = first_of(&moving.collect::<Vec<_>>()) {
        return moves("RollingOut", words);
    }
    if plan.later > 0 {
        return moves("Applying", format!("{} of {} objects are still to come", plan.later, pairs.len()));
    }
    if let Some(words) = first_of(&plan.unpruned) {
        return stalled("PruneRefused", words);
    }
    // What is found to be unused only later does not take a success back.
    if !plan.prunes.is_empty() && !done {
        let objects =
            if plan.prunes.len() == 1 { "1 object".to_owned() } else { format!("{} objects", plan.prunes.len()) };
        return moves("Pruning", format!("deleting {objects} no longer in git"));
    }
    let mut words = match pairs.len() {
        0 => "there is no object in the path".to_owned(),
        1 => "rolled out: 1 object".to_owned(),
        count => format!("rolled out: {count} objects"),
    };
    let left = plan
        .reasons
        .iter()
        .filter(|reason| matches!(reason, Reason::DriftLeft(..) | Reason::ObjectSuspended(_)))
        .map(ToString::to_string);
    let left: Vec<String> = left.chain(plan.kept.iter().cloned()).collect();
    if let Some(kept) = first_of(&left) {
        words += &format!("; {kept}");
    }
    Outcome { standing: Standing::Current, reason: "RolledOut", words, problem: None }
}
