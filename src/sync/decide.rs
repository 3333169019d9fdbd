//! The decision: what is written, what is recorded, what commits are told.
//!
//! One function per situation, each from top to bottom. What a pass writes is seen by the next one: a commit counts as
//! applied only when nothing is left to write, and as rolled out only when everything it wants is seen to be so.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{
    compare::{Conflict, Difference},
    health::Doing,
    hold,
    id::{Id, cut},
    prune::{self, Stale},
    reason::{Reason, short},
    set::{self, Apply, Problem, Set},
    view::{Commit, Fetched, Pair, View},
};
use crate::{
    api::{GitRevision, GitSourceStatus, HeldObject, InventoryEntry, SourceProblem, Time, constants::condition},
    kubernetes::value::{Text, Value},
    model::{
        git_source::{Drift, GitSource, OnAbort, OnNewCommit},
        health::Standing,
    },
};

/// What is decided.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// What is written, in this order.
    pub actions: Vec<Action>,
    /// What is recorded, before anything is written: an inventory that names too much is harmless, one that names too
    /// little loses track of an object.
    pub status: GitSourceStatus,
    /// What commits are told.
    pub reports: Vec<Report>,
    /// When time alone changes the answer.
    pub wake: Option<Timestamp>,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// A write.
#[derive(Debug, Clone)]
pub enum Action {
    /// Applies an object.
    Apply(Box<Write>),
    /// Deletes an object.
    Prune(Stale),
}

/// An object to apply.
#[derive(Debug, Clone)]
pub struct Write {
    /// What.
    pub id: Id,
    /// Where it stands, for what a server says about it.
    pub place: (Text, usize),
    /// What is applied.
    pub patch: Value,
    /// The version it must still have; `None` if it is new.
    pub version: Option<u64>,
    /// Whether fields are taken from those who own them.
    pub force: bool,
}

/// What a commit is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The commit.
    pub commit: Text,
    /// In one word.
    pub state: State,
    /// In a sentence.
    pub words: String,
}

/// How a commit went, or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It is on its way.
    Pending,
    /// It is fully rolled out.
    Success,
    /// It was given up, or does not get on.
    Failure,
    /// It could not even be tried.
    Error,
    /// A newer commit took its place before it was over.
    Superseded,
}

impl State {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Success => "success",
            State::Failure => "failure",
            State::Error => "error",
            State::Superseded => "superseded",
        }
    }
}

/// Where a source is.
#[derive(Debug)]
pub enum Situation<'v> {
    /// Its specification makes no sense.
    Invalid(String),
    /// It is told to change nothing.
    Suspended(&'v GitSource),
    /// Nothing was fetched, ever or this time.
    Unfetched(Option<&'v str>),
    /// The commit cannot be read, or may not bring what it brings.
    Broken(&'v Commit),
    /// Another source comes first.
    DependsOn(&'v str, &'v Commit),
    /// The commit's version was given up, and the last promoted set is put back.
    Restoring(&'v GitSource, &'v Commit, &'v (GitRevision, Set)),
    /// The commit is carried out.
    Following(&'v GitSource, &'v Commit),
}

impl<'v> Situation<'v> {
    /// The situation that a view shows.
    pub fn of(view: &'v View) -> Situation<'v> {
        let spec = match &view.spec {
            Ok(spec) => spec,
            Err(problems) => {
                let words: Vec<String> = problems
                    .iter()
                    .map(|problem| format!("{}: {}; {}", problem.path, problem.what, problem.remedy))
                    .collect();
                return Situation::Invalid(words.join(", "));
            }
        };
        if spec.suspend {
            return Situation::Suspended(spec);
        }
        let commit = match &view.fetched {
            Fetched::Nothing => return Situation::Unfetched(None),
            Fetched::Failed(why) => return Situation::Unfetched(Some(why)),
            Fetched::Commit(commit) => commit,
        };
        if !commit.set.problems.is_empty() {
            return Situation::Broken(commit);
        }
        if let Some(first) = view.waits_for.first() {
            return Situation::DependsOn(first, commit);
        }
        match &commit.promoted {
            Some(promoted) if spec.on_abort == OnAbort::Restore && !held(view, commit).is_empty() => {
                Situation::Restoring(spec, commit, promoted)
            }
            Some(_) | None => Situation::Following(spec, commit),
        }
    }
}

/// Decides.
pub fn decide(view: &View) -> Verdict {
    let mut verdict = match Situation::of(view) {
        Situation::Invalid(why) => invalid(view, &why),
        Situation::Suspended(spec) => suspended(view, spec),
        Situation::Unfetched(why) => unfetched(view, why),
        Situation::Broken(commit) => broken(view, commit),
        Situation::DependsOn(name, commit) => depends(view, name, commit),
        Situation::Restoring(spec, commit, promoted) => restore(view, spec, commit, promoted),
        Situation::Following(spec, commit) => follow(view, spec, commit),
    };
    verdict.status.observed_generation = view.generation;
    if let Fetched::Commit(_) = &view.fetched {
        verdict.status.last_sync_request = view.request.clone();
    }
    verdict
}

/// The commit to carry out where the reference is at `head`: an earlier one that is not over, if new ones have to wait.
pub fn commit_to_follow<'a>(spec: &GitSource, status: &'a GitSourceStatus, head: &'a str) -> &'a str {
    match (spec.on_new_commit, &status.seen) {
        (OnNewCommit::Wait, Some(seen)) if !is_over(status, &seen.commit) => &seen.commit,
        (OnNewCommit::Wait | OnNewCommit::Supersede, _) => head,
    }
}

/// Whether the last word about a commit was said.
pub fn is_over(status: &GitSourceStatus, commit: &str) -> bool {
    let rolled_out = status.rolled_out.as_ref().is_some_and(|revision| revision.commit == commit);
    let seen = status.seen.as_ref().is_some_and(|revision| revision.commit == commit);
    let stalled = status.conditions.iter().any(|told| told.r#type == condition::STALLED && told.status == "True");
    rolled_out || (seen && stalled)
}

fn told(view: &View, status: &mut GitSourceStatus, standing: Standing, reason: &str, message: &str) {
    let now = Time::from(view.now);
    status.conditions = standing.conditions(reason, &cut(message, 1024), view.generation, now, &view.status.conditions);
}

fn invalid(view: &View, why: &str) -> Verdict {
    let mut status = view.status.clone();
    told(view, &mut status, Standing::Stalled, "Invalid", why);
    Verdict { status, ..Verdict::default() }
}

fn suspended(view: &View, _: &GitSource) -> Verdict {
    let mut status = view.status.clone();
    let reason = Reason::Suspended;
    // Whoever waits for it waits for a person; it has not failed.
    told(view, &mut status, Standing::InProgress, "Suspended", &reason.to_string());
    Verdict { status, reasons: vec![reason], ..Verdict::default() }
}

fn unfetched(view: &View, why: Option<&str>) -> Verdict {
    let mut status = view.status.clone();
    match why {
        // What is known stays true; that it could not be renewed is said, and tried again.
        Some(why) => told(view, &mut status, Standing::InProgress, "FetchFailed", why),
        None if status.conditions.is_empty() => {
            told(view, &mut status, Standing::InProgress, "Fetching", "the repository was not fetched yet")
        }
        None => {}
    }
    Verdict { status, ..Verdict::default() }
}

/// Takes a commit up: the one before, if it was not over, gives way.
fn take_up(view: &View, commit: &Commit, verdict: &mut Verdict) {
    verdict.status = view.status.clone();
    verdict.status.problems = Vec::new();
    let before = view.status.seen.as_ref().filter(|seen| seen.commit != commit.revision.commit);
    if let Some(before) = before {
        if !is_over(&view.status, &before.commit) {
            let words = format!("by commit {}", short(&commit.revision.commit));
            verdict.reports.push(Report { commit: before.commit.as_str().into(), state: State::Superseded, words });
        }
        if commit.moved_back {
            let (from, to) = (before.commit.as_str().into(), commit.revision.commit.as_str().into());
            verdict.reasons.push(Reason::MovedBack { from, to });
        }
    }
    let is_new = view.status.seen.as_ref().is_none_or(|seen| seen.commit != commit.revision.commit);
    if is_new {
        verdict.status.seen = Some(at(view, &commit.revision));
    }
    if let Some(waiting) = &commit.waiting {
        let reason = Reason::WaitsForCommit(commit.revision.commit.as_str().into());
        let words = reason.to_string();
        verdict.reports.push(Report { commit: waiting.commit.as_str().into(), state: State::Pending, words });
        verdict.reasons.push(reason);
    }
}

fn at(view: &View, revision: &GitRevision) -> GitRevision {
    GitRevision { at: Some(Time::from(view.now)), ..revision.clone() }
}

fn broken(view: &View, commit: &Commit) -> Verdict {
    let mut verdict = Verdict::default();
    take_up(view, commit, &mut verdict);
    let problems = &commit.set.problems;
    verdict.status.problems = problems.iter().take(50).map(wire).collect();
    let words = match problems.as_slice() {
        [one] => one.to_string(),
        [first, more @ ..] => format!("{first} (and {} more)", more.len()),
        [] => String::new(),
    };
    told(view, &mut verdict.status, Standing::Stalled, "Unreadable", &words);
    verdict.reports.push(Report { commit: commit.revision.commit.as_str().into(), state: State::Error, words });
    if !prune::stale(view, &commit.set).is_empty() {
        verdict.reasons.push(Reason::NoPruning(super::reason::Doubt::Unread));
    }
    verdict
}

fn wire(problem: &Problem) -> SourceProblem {
    SourceProblem {
        file: problem.file.to_string(),
        line: i32::try_from(problem.line).unwrap_or(i32::MAX),
        message: cut(&problem.message, 1024),
    }
}

fn depends(view: &View, name: &str, commit: &Commit) -> Verdict {
    let mut verdict = Verdict::default();
    take_up(view, commit, &mut verdict);
    let reason = Reason::WaitsForSource(name.to_owned());
    told(view, &mut verdict.status, Standing::InProgress, "DependencyNotReady", &reason.to_string());
    let commit = commit.revision.commit.as_str().into();
    verdict.reports.push(Report { commit, state: State::Pending, words: reason.to_string() });
    verdict.reasons.push(reason);
    verdict
}

fn held(view: &View, commit: &Commit) -> Vec<HeldObject> {
    let pairs = view.pairs(&commit.set, &commit.revision);
    hold::held(view, pairs.iter().map(|pair| (pair.desired, pair.blamed.clone())))
}

/// The last promoted set is put back, and the commit that was given up is told so.
fn restore(view: &View, spec: &GitSource, commit: &Commit, (revision, set): &(GitRevision, Set)) -> Verdict {
    let mut verdict = Verdict::default();
    take_up(view, commit, &mut verdict);
    verdict.status.held = held(view, commit);
    let pairs = view.pairs(set, revision);
    let mut plan = Plan::default();
    verdict.reasons.push(Reason::Restores { commit: revision.commit.as_str().into() });
    plan.objects(view, spec, &pairs, &[]);
    if plan.is_settled() {
        plan.prune(view, spec, set, commit);
    }
    verdict.status.inventory = inventory(view, &pairs, &plan);
    let first = verdict.status.held.first().map(|held| format!("{}: {}", held.name, held.reason)).unwrap_or_default();
    let words = format!("{first}; back at commit {}", short(&revision.commit));
    told(view, &mut verdict.status, Standing::Stalled, "Restored", &words);
    verdict.reports.push(Report { commit: commit.revision.commit.as_str().into(), state: State::Failure, words });
    plan.into_verdict(verdict)
}

/// A commit is carried out.
fn follow(view: &View, spec: &GitSource, commit: &Commit) -> Verdict {
    let mut verdict = Verdict::default();
    take_up(view, commit, &mut verdict);
    let pairs = view.pairs(&commit.set, &commit.revision);
    verdict.status.held = hold::held(view, pairs.iter().map(|pair| (pair.desired, pair.blamed.clone())));
    let mut plan = Plan::default();
    plan.objects(view, spec, &pairs, &verdict.status.held);
    if plan.is_settled() {
        if view.status.applied.as_ref().is_none_or(|applied| applied.commit != commit.revision.commit) {
            verdict.status.applied = Some(at(view, &commit.revision));
        }
        plan.prune(view, spec, &commit.set, commit);
    }
    verdict.status.inventory = inventory(view, &pairs, &plan);
    let outcome = outcome(&pairs, &plan);
    let message = match &commit.stale {
        Some(why) => format!("{}; the repository cannot be fetched: {why}", outcome.words),
        None => outcome.words.clone(),
    };
    told(view, &mut verdict.status, outcome.standing, outcome.reason, &message);
    let state = match outcome.standing {
        Standing::Current => {
            if view.status.rolled_out.as_ref().is_none_or(|done| done.commit != commit.revision.commit) {
                verdict.status.rolled_out = Some(at(view, &commit.revision));
            }
            State::Success
        }
        Standing::InProgress => State::Pending,
        Standing::Stalled => State::Failure,
    };
    verdict.status.problems = plan.problems.iter().take(50).map(wire).collect();
    verdict.reports.push(Report { commit: commit.revision.commit.as_str().into(), state, words: outcome.words });
    plan.into_verdict(verdict)
}

/// What is to be done about the objects of a set.
#[derive(Default)]
struct Plan {
    writes: Vec<Write>,
    prunes: Vec<Stale>,
    reasons: Vec<Reason>,
    /// What people must do something about.
    failures: Vec<String>,
    problems: Vec<Problem>,
    /// Objects that come later: after a wave, a definition, an answer of the server.
    later: usize,
    /// Whom we wait for.
    waits: Option<String>,
}

impl Plan {
    /// Whether everything is as it should be, or cannot be made so.
    fn is_settled(&self) -> bool {
        self.writes.is_empty() && self.later == 0 && self.failures.is_empty()
    }

    fn into_verdict(self, mut verdict: Verdict) -> Verdict {
        verdict.actions = self.writes.into_iter().map(|write| Action::Apply(Box::new(write))).collect();
        verdict.actions.extend(self.prunes.into_iter().map(Action::Prune));
        verdict.reasons.extend(self.reasons);
        verdict
    }

    /// Goes through the objects in their order; a wave begins when the ones before are done.
    fn objects(&mut self, view: &View, spec: &GitSource, pairs: &[Pair<'_>], held: &[HeldObject]) {
        let mut wave = pairs.first().map(|pair| pair.desired.policy.wave);
        let mut open: Option<(Id, String)> = None;
        for (index, pair) in pairs.iter().enumerate() {
            if wave != Some(pair.desired.policy.wave) {
                if let Some((of, words)) = open.take() {
                    let reason = Reason::WaitsForWave { wave: pair.desired.policy.wave, of, words };
                    self.waits = Some(reason.to_string());
                    self.reasons.push(reason);
                    self.later += pairs.len() - index;
                    return;
                }
                wave = Some(pair.desired.policy.wave);
            }
            let before = (self.writes.len(), self.later, self.failures.len());
            self.object(view, spec, pair, held);
            let untouched = before == (self.writes.len(), self.later, self.failures.len());
            if open.is_none() {
                open = match pair.live.map(|live| Doing::of(&live.value)) {
                    _ if !untouched => Some((pair.desired.id.clone(), "is not applied yet".to_owned())),
                    Some(doing) if doing.standing != Standing::Current => Some((pair.desired.id.clone(), doing.words)),
                    Some(_) | None => None,
                };
            }
        }
    }

    fn object(&mut self, view: &View, spec: &GitSource, pair: &Pair<'_>, held: &[HeldObject]) {
        let (desired, id) = (pair.desired, &pair.desired.id);
        if desired.policy.apply == Apply::Never {
            return self.reasons.push(Reason::Ignored(id.clone()));
        }
        if desired.policy.suspended || pair.live.is_some_and(|live| set::is_suspended(&live.value)) {
            return self.reasons.push(Reason::ObjectSuspended(id.clone()));
        }
        if !desired.sort.served {
            self.later += 1;
            return self.reasons.push(Reason::WaitsForDefinition(id.clone()));
        }
        if let Some(refused) = refusal(view, pair) {
            self.fail(pair, Reason::Refused(id.clone(), refused.to_owned()));
            return;
        }
        let Some(live) = pair.live else {
            self.reasons.push(Reason::Creates(id.clone()));
            return self.write(pair, None, false);
        };
        if live.is_terminating() {
            self.later += 1;
            return;
        }
        let ours = view.is_ours(&live.value);
        let other = live.value.str_at(&["metadata", "labels", crate::api::constants::label::SOURCE]);
        if let Some(other) = other.filter(|_| !ours) {
            return self.fail(pair, Reason::OtherSource(id.clone(), other.to_owned()));
        }
        if desired.policy.apply == Apply::Once && ours {
            return self.reasons.push(Reason::AppliedOnce(id.clone()));
        }
        if let Some(held) = held.iter().find(|held| hold::is_about(held, id)) {
            let (commit, why) = (held.commit.as_str().into(), held.reason.clone());
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
        let problem = Problem { file: pair.desired.file.clone(), line: pair.desired.line, message: reason.to_string() };
        self.failures.push(problem.to_string());
        self.problems.push(problem);
        self.reasons.push(reason);
    }

    fn prune(&mut self, view: &View, spec: &GitSource, set: &Set, commit: &Commit) {
        let (prunes, reasons) = prune::decide(view, spec, set, commit.stale.is_some());
        self.prunes = prunes;
        self.reasons.extend(reasons);
    }
}

/// What the server said about this very content on this very object.
fn refusal<'v>(view: &'v View, pair: &Pair<'_>) -> Option<&'v str> {
    let version = pair.live.map_or(0, |live| live.version());
    let refused = view.refused.get(&pair.desired.id)?;
    (refused.version.is_none_or(|of| of == version) && refused.digest == super::view::digest_of(&pair.patch))
        .then_some(&refused.message)
}

/// What the source has written or is about to, and what it has not let go of.
fn inventory(view: &View, pairs: &[Pair<'_>], plan: &Plan) -> Vec<InventoryEntry> {
    let writing: BTreeSet<&Id> = plan.writes.iter().map(|write| &write.id).collect();
    let mut entries: Vec<InventoryEntry> = Vec::new();
    let mut named: BTreeSet<Id> = BTreeSet::new();
    for pair in pairs {
        let id = &pair.desired.id;
        let ours = pair.live.filter(|live| view.is_ours(&live.value));
        if ours.is_none() && !writing.contains(id) {
            continue;
        }
        named.insert(id.clone());
        entries.push(InventoryEntry {
            group: id.group.to_string(),
            version: pair.desired.sort.version.to_string(),
            kind: id.kind.to_string(),
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
            uid: ours.map(|live| live.uid().to_string()).unwrap_or_default(),
        });
    }
    for old in &view.status.inventory {
        let id = Id::of_entry(old);
        if !named.contains(&id) && view.live.get(&id).is_some_and(|live| view.is_ours(&live.value)) {
            let uid = view.live.get(&id).map(|live| live.uid().to_string()).unwrap_or_default();
            // An entry that was made before its object was seen learns its uid here; one that has a uid keeps it.
            let uid = if old.uid.is_empty() { uid } else { old.uid.clone() };
            entries.push(InventoryEntry { uid, ..old.clone() });
        }
    }
    entries
}

struct Outcome {
    standing: Standing,
    reason: &'static str,
    words: String,
}

/// The fold of how everything is doing: failure before waiting before success.
fn outcome(pairs: &[Pair<'_>], plan: &Plan) -> Outcome {
    if let Some(first) = plan.failures.first() {
        let more = plan.failures.len() - 1;
        let words = if more > 0 { format!("{first} (and {more} more)") } else { first.clone() };
        return Outcome { standing: Standing::Stalled, reason: "ApplyFailed", words };
    }
    let doing = pairs.iter().filter(|pair| pair.desired.policy.apply != Apply::Never);
    let doing: Vec<(&Id, Option<Doing>)> =
        doing.map(|pair| (&pair.desired.id, pair.live.map(|live| Doing::of(&live.value)))).collect();
    let stalled = doing.iter().find_map(|(id, doing)| {
        doing
            .as_ref()
            .filter(|doing| doing.standing == Standing::Stalled)
            .map(|doing| format!("{}: {}", id.name, doing.words))
    });
    let held = plan.reasons.iter().find_map(|reason| match reason {
        Reason::Held { .. } => Some(reason.to_string()),
        _ => None,
    });
    if plan.writes.is_empty()
        && let Some(words) = held.or(stalled)
    {
        return Outcome { standing: Standing::Stalled, reason: "RolloutFailed", words };
    }
    if !plan.writes.is_empty() {
        let words = format!("applying {} of {} objects", plan.writes.len(), pairs.len());
        return Outcome { standing: Standing::InProgress, reason: "Applying", words };
    }
    if let Some(words) = &plan.waits {
        return Outcome { standing: Standing::InProgress, reason: "Waiting", words: words.clone() };
    }
    let moving: Vec<String> = doing
        .iter()
        .filter_map(|(id, doing)| match doing {
            Some(doing) if doing.standing == Standing::Current => None,
            Some(doing) => Some(format!("{}: {}", id.name, doing.words)),
            None => Some(format!("{} is not there yet", id.name)),
        })
        .collect();
    if let Some(first) = moving.first() {
        let words = match moving.len() {
            1 => first.clone(),
            count => format!("{first} (and {} more)", count - 1),
        };
        return Outcome { standing: Standing::InProgress, reason: "RollingOut", words };
    }
    if plan.later > 0 {
        let words = format!("{} of {} objects are still to come", plan.later, pairs.len());
        return Outcome { standing: Standing::InProgress, reason: "Applying", words };
    }
    let words = match pairs.len() {
        0 => "there is no object in the path".to_owned(),
        1 => "rolled out: 1 object".to_owned(),
        count => format!("rolled out: {count} objects"),
    };
    Outcome { standing: Standing::Current, reason: "RolledOut", words }
}
