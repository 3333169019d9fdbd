//! The decision: what is applied and pruned, what is recorded, which commit statuses are posted.
//!
//! One function per situation, each from top to bottom. What a pass writes is seen by the next one: a commit counts as
//! applied only when nothing is left to write, and as rolled out only when everything it wants is seen to be so.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    detail,
    handover::Handover,
    hold,
    hook::{Gate, Hooks, Turn},
    id::{Id, cut},
    invariant::Broken,
    leave,
    plan::{Plan, inventory, outcome},
    policy::Phase,
    prune::{self, Stale},
    reason::{Reason, short},
    report::{self, Report, State},
    rights::MissingRights,
    set::{Problem, Set},
    view::{Commit, Fetched, Life, Pair, View},
};
use crate::{
    api::{
        Condition, FollowedContent, GitRevision, GitSourceStatus, HeldObject, SourceProblem, Time, UnreadyObject,
        constants::condition,
    },
    kubernetes::value::{Text, Value},
    model::{
        git_source::{GitSource, OnAbort, OnNewCommit, Prune},
        health::Standing,
    },
};

/// What is decided.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// What is written, in this order.
    pub actions: Vec<Action>,
    /// What is recorded. Before the writes if the inventory gains an object, because one that names too much is harmless and one
    /// that names too little loses track of an object; after them otherwise.
    pub status: GitSourceStatus,
    /// The commit statuses to post.
    pub reports: Vec<Report>,
    /// When time alone changes the answer.
    pub wake: Option<Timestamp>,
    /// Why.
    pub reasons: Vec<Reason>,
    /// What is to be offered to be taken back in git; nothing once it is. Where that is becomes part of the next view.
    pub offer: Option<Offer>,
    /// What becomes of the source's finalizer. What is decided beside it waits until that is seen.
    pub guard: Option<Guard>,
}

/// A commit that a person may want to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The commit.
    pub from: Text,
    /// The one whose content was put back in the cluster.
    pub to: Text,
    /// Why.
    pub why: String,
    /// Since when.
    pub at: Timestamp,
}

/// What becomes of the finalizer by which a GitSource outlives its deletion until its objects are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// It is put on, before anything is written that it is for.
    Put,
    /// It is taken off.
    Take,
}

/// A write.
#[derive(Debug, Clone)]
pub enum Action {
    /// Applies an object.
    Apply(Box<Write>),
    /// Deletes an object that git no longer has.
    Prune(Stale),
    /// Deletes an object that is created again.
    Replace(Stale),
    /// Gives a Service to another Rollout.
    HandOver(Handover),
    /// Deletes a hook that has ended.
    EndHook(Stale),
}

impl Action {
    /// Whether both do the same to the same object.
    fn is(&self, other: &Action) -> bool {
        match (self, other) {
            (Action::EndHook(one), Action::EndHook(other)) => one == other,
            (Action::Apply(one), Action::Apply(other)) => one.id == other.id,
            (Action::Prune(one), Action::Prune(other)) | (Action::Replace(one), Action::Replace(other)) => one == other,
            (Action::HandOver(one), Action::HandOver(other)) => one == other,
            (_, _) => false,
        }
    }
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

/// Where a source is.
#[derive(Debug)]
pub enum Situation<'v> {
    /// It is being deleted, and waits for us.
    Leaving,
    /// Its specification makes no sense.
    Invalid(String),
    /// It is told to change nothing.
    Suspended(&'v GitSource),
    /// Nothing was fetched, ever or this time.
    Unfetched(Option<&'v str>),
    /// The commit cannot be read, or may not bring what it brings.
    Broken(&'v Commit),
    /// The account of the source may not read what it writes.
    Denied(&'v MissingRights, &'v Commit),
    /// Another source comes first.
    DependsOn(&'v str, &'v Commit),
    /// The commit's version was given up, and the last promoted set is put back.
    Restoring(&'v GitSource, &'v Commit, &'v (GitRevision, Arc<Set>)),
    /// The same, but that set cannot be read.
    Lost(&'v Commit, &'v str),
    /// The commit is carried out.
    Following(&'v GitSource, &'v Commit),
}

impl<'v> Situation<'v> {
    /// The situation that a view shows.
    pub fn of(view: &'v View) -> Situation<'v> {
        match view.life {
            Life::Leaves { .. } => return Situation::Leaving,
            Life::Given | Life::Stays { .. } => {}
        }
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
        if let Some(missing) = &view.denied {
            return Situation::Denied(missing, commit);
        }
        let restores = spec.on_abort != OnAbort::Hold && !held(view, commit).is_empty();
        match (&commit.promoted, &commit.lost) {
            (Some(promoted), _) if restores => Situation::Restoring(spec, commit, promoted),
            (None, Some(why)) if restores => Situation::Lost(commit, why),
            (Some(_) | None, Some(_) | None) => Situation::Following(spec, commit),
        }
    }
}

/// Decides.
pub fn decide(view: &View) -> Verdict {
    let situation = Situation::of(view);
    if let Some(guard) = guard(view, &situation) {
        return Verdict { status: view.status.clone(), guard: Some(guard), ..Verdict::default() };
    }
    let mut verdict = match situation {
        Situation::Leaving => return leave::leave(view),
        Situation::Invalid(why) => invalid(view, &why),
        Situation::Suspended(spec) => suspended(view, spec),
        Situation::Unfetched(why) => unfetched(view, why),
        Situation::Broken(commit) => broken(view, commit),
        Situation::Denied(missing, commit) => denied(view, missing, commit),
        Situation::DependsOn(name, commit) => depends(view, name, commit),
        Situation::Restoring(spec, commit, promoted) => restore(view, spec, commit, promoted),
        Situation::Lost(commit, why) => lost(view, commit, why),
        Situation::Following(spec, commit) => follow(view, spec, commit),
    };
    let noted = noted(view, &verdict);
    observe(view, &mut verdict.status);
    verdict.status.conditions.retain(|told| noted.iter().all(|noted| noted.r#type != told.r#type));
    verdict.status.conditions.extend(noted);
    verdict
}

/// What was changed in the cluster besides what the commit brought, as conditions: for as long as the commit is the newest.
fn noted(view: &View, verdict: &Verdict) -> Vec<Condition> {
    let same =
        verdict.status.seen.as_ref().map(|seen| &seen.commit) == view.status.seen.as_ref().map(|seen| &seen.commit);
    type Is = fn(&Reason) -> bool;
    let kinds: [(&str, Is); 2] = [
        (condition::DRIFT_HEALED, |reason| matches!(reason, Reason::Heals(_, fields) if !fields.is_empty())),
        (condition::TAKEN_OVER, |reason| matches!(reason, Reason::Adopts(_))),
    ];
    let note = |(name, is_it): (&str, Is)| {
        let now: Vec<String> = verdict.reasons.iter().filter(|told| is_it(told)).map(ToString::to_string).collect();
        let old = view.status.conditions.iter().find(|told| told.r#type == name).filter(|_| same);
        match super::plan::first_of(&now) {
            None => old.cloned(),
            Some(words) => Some(Condition {
                r#type: name.to_owned(),
                status: "True".to_owned(),
                observed_generation: view.generation,
                last_transition_time: Time::from(view.now),
                reason: name.to_owned(),
                message: cut(&words, 1024),
            }),
        }
    };
    kinds.into_iter().filter_map(note).collect()
}

/// What is recorded in place of a verdict that would break rules: which ones. Nothing is written, and everything that was
/// known stays known.
pub fn refuse(view: &View, broken: &[Broken]) -> Verdict {
    let mut verdict = Verdict { status: view.status.clone(), ..Verdict::default() };
    let Some(first) = broken.first() else { return verdict };
    let reason = Reason::BreaksRules(broken.to_vec());
    let words = reason.to_string();
    if let Fetched::Commit(commit) = &view.fetched {
        take_up(view, commit, &mut verdict);
        report(view, commit, &mut verdict, State::Error, &words);
    }
    verdict.reasons.push(reason);
    told(view, &mut verdict.status, Standing::Stalled, &format!("RefusedByRule{}", first.rule), &words);
    observe(view, &mut verdict.status);
    verdict
}

/// Notes which specification and which request a status is about, and what is wrong besides.
fn observe(view: &View, status: &mut GitSourceStatus) {
    status.observed_generation = view.generation;
    if let Fetched::Commit(_) = &view.fetched {
        status.last_sync_request = view.request.clone();
    }
    let reported = reported(view);
    status.conditions.retain(|told| reported.as_ref().is_none_or(|new| new.r#type != told.r#type));
    status.conditions.extend(reported);
}

/// What becomes of the finalizer of a source that stays: it is there if and only if the source prunes.
fn guard(view: &View, situation: &Situation<'_>) -> Option<Guard> {
    let (Life::Stays { guarded }, Ok(spec)) = (view.life, &view.spec) else { return None };
    let writes = matches!(situation, Situation::Following(..) | Situation::Restoring(..));
    match (&spec.prune, guarded) {
        (Prune::UpTo(_), false) if writes => Some(Guard::Put),
        (Prune::Never, true) => Some(Guard::Take),
        (Prune::UpTo(_) | Prune::Never, _) => None,
    }
}

/// The condition that commit statuses cannot be posted, if that is so. It holds nothing up.
fn reported(view: &View) -> Option<Condition> {
    let message = cut(view.trouble.as_deref()?, 1024);
    let old = view.status.conditions.iter().find(|told| told.r#type == condition::REPORTED);
    let since = old.map_or(Time::from(view.now), |told| told.last_transition_time);
    Some(Condition {
        r#type: condition::REPORTED.to_owned(),
        status: "False".to_owned(),
        observed_generation: view.generation,
        last_transition_time: since,
        reason: "HostRefuses".to_owned(),
        message,
    })
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

/// The reason of the condition of a source whose account may not read what it needs to.
pub const DENIED: &str = "ReadDenied";

/// Says how a source stands.
pub fn told(view: &View, status: &mut GitSourceStatus, standing: Standing, reason: &str, message: &str) {
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

/// The most commits beside the newest one whose statuses follow one content.
const MOST_FOLLOWING: usize = 20;

/// Takes a commit up: the ones before give way if they were not over and this one changes something.
fn take_up(view: &View, commit: &Commit, verdict: &mut Verdict) {
    verdict.status = view.status.clone();
    verdict.status.problems = Vec::new();
    let before = view.status.seen.as_ref().filter(|seen| seen.commit != commit.revision.commit);
    let same = commit.set.problems.is_empty() && join(view, commit, verdict);
    if let Some(before) = before {
        if !same && !is_over(&view.status, &before.commit) {
            let words = superseded_by(commit);
            let following = view.status.content.iter().flat_map(|content| &content.following);
            for overtaken in following.chain([&before.commit]) {
                verdict.reports.extend(report::overtaken(view, overtaken, &words));
            }
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
        verdict.reports.push(Report::new(&waiting.commit, State::Pending, words));
        verdict.reasons.push(reason);
    }
}

fn superseded_by(commit: &Commit) -> String {
    format!("by commit {}", short(&commit.revision.commit))
}

/// Notes which content a commit wants; whether that is what the source follows already. A commit that changes no object does
/// not supersede the one that did: both show how that one goes.
fn join(view: &View, commit: &Commit, verdict: &mut Verdict) -> bool {
    let id = &commit.revision.commit;
    let digest = commit.set.digest().to_owned();
    let Some(content) = verdict.status.content.as_mut().filter(|content| content.digest == digest) else {
        // Commits that came together with it and want the same: the oldest of them brought the content.
        let following = commit.alike.clone();
        let (commit, newest) = (following.first().unwrap_or(id).clone(), id.clone());
        verdict.status.content = Some(FollowedContent { digest, commit, newest, following });
        return false;
    };
    if content.newest == *id {
        return true;
    }
    let rolled_out = view.status.rolled_out.as_ref().is_some_and(|done| done.commit == content.newest);
    // After a commit that could not be read, the older ones had their last word.
    let interrupted = view.status.seen.as_ref().is_some_and(|seen| seen.commit != content.newest);
    if rolled_out || interrupted {
        content.following.clear();
    } else {
        content.following.push(content.newest.clone());
    }
    for alike in &commit.alike {
        if *alike != content.commit && !content.following.contains(alike) {
            content.following.push(alike.clone());
        }
    }
    content.following.retain(|following| following != id);
    content.newest = id.clone();
    while content.following.len() > MOST_FOLLOWING {
        // Not the one that brought the content.
        let dropped = content.following.remove(usize::from(content.following[0] == content.commit));
        verdict.reports.extend(report::overtaken(view, &dropped, &superseded_by(commit)));
    }
    true
}

/// Reports how the content of a commit goes, on every commit that follows it.
fn report(view: &View, commit: &Commit, verdict: &mut Verdict, state: State, words: &str) {
    let Some(content) = verdict.status.content.clone() else { return };
    let unchanged = match &view.spec {
        Ok(spec) if !spec.path.is_empty() => format!("no change under {}", spec.path),
        Ok(_) | Err(_) => "no change".to_owned(),
    };
    for id in content.following.iter().chain([&commit.revision.commit]) {
        let words = if *id == content.commit {
            words.to_owned()
        } else {
            format!("{unchanged}; same as {}: {words}", short(&content.commit))
        };
        verdict.reports.push(Report::new(id, state, words));
    }
}

/// The commits that show how the content of one goes: those that want the same, and the newest.
fn followed(status: &GitSourceStatus, commit: &Commit) -> Vec<String> {
    let following = status.content.iter().flat_map(|content| content.following.clone());
    following.chain([commit.revision.commit.clone()]).collect()
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
    verdict.reports.push(Report::new(&commit.revision.commit, State::Error, words));
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
    report(view, commit, &mut verdict, State::Pending, &reason.to_string());
    verdict.reasons.push(reason);
    verdict
}

/// What cannot be seen cannot be compared, adopted or deleted: nothing is done until somebody gives the right.
fn denied(view: &View, missing: &MissingRights, commit: &Commit) -> Verdict {
    let mut verdict = Verdict::default();
    take_up(view, commit, &mut verdict);
    let reason = Reason::MayNotRead(missing.clone());
    let words = reason.to_string();
    told(view, &mut verdict.status, Standing::Stalled, DENIED, &words);
    report(view, commit, &mut verdict, State::Failure, &words);
    verdict.reasons.push(reason);
    verdict
}

fn held(view: &View, commit: &Commit) -> Vec<HeldObject> {
    let pairs = view.pairs(&commit.set, &commit.revision);
    hold::held(view, pairs.iter().map(|pair| (pair.desired, pair.blamed.clone())))
}

/// The last promoted set is put back, and the commit that was given up is told so.
fn restore(view: &View, spec: &GitSource, commit: &Commit, (revision, set): &(GitRevision, Arc<Set>)) -> Verdict {
    let mut verdict = Verdict::default();
    take_up(view, commit, &mut verdict);
    verdict.status.held = held(view, commit);
    let mut pairs = view.pairs(set, revision);
    let mut plan = Plan::default();
    verdict.reasons.push(Reason::Restores { commit: revision.commit.as_str().into() });
    plan.objects(view, spec, &pairs, &[]);
    plan.prune(view, spec, set, commit, &mut pairs);
    verdict.status.inventory = inventory(view, &pairs, &plan);
    let hooks = Hooks::of(view, &commit.set, &bringer(&verdict.status, commit));
    let turn = hooks.turn(Phase::OnFailure);
    hooked(&mut verdict, &hooks, turn);
    let first = verdict.status.held.first();
    let why = first.map(|held| format!("{}: {}", held.name, held.reason)).unwrap_or_default();
    let since = first.map(|held| short(&held.commit)).unwrap_or_default();
    // What hosts must not cut off comes first.
    let mut words = format!("held since commit {since}, back at commit {}", short(&revision.commit));
    if spec.on_abort == OnAbort::Revert {
        let at = first.and_then(|held| held.since).map_or(view.now, Timestamp::from);
        let (from, to) = (commit.revision.commit.as_str().into(), revision.commit.as_str().into());
        match &view.offered {
            Some(branch) => words += &format!(", a revert is on the branch {branch}"),
            None => verdict.offer = Some(Offer { from, to, why: why.clone(), at }),
        }
    }
    words += &format!(": {why}");
    told(view, &mut verdict.status, Standing::Stalled, "Restored", &words);
    report(view, commit, &mut verdict, State::Failure, &words);
    for id in followed(&verdict.status, commit) {
        let held = &verdict.status.held;
        verdict.reports.extend(report::given_back(view, spec, commit, &id, held, &revision.commit));
    }
    plan.into_verdict(verdict)
}

/// What is in the cluster may be the last promoted set, which cannot be read: the failed one is not put in its place.
fn lost(view: &View, commit: &Commit, why: &str) -> Verdict {
    let mut verdict = Verdict::default();
    take_up(view, commit, &mut verdict);
    verdict.status.held = held(view, commit);
    let first = verdict.status.held.first();
    let since = first.map(|held| short(&held.commit)).unwrap_or_default();
    let failed = first.map(|held| format!("{}: {}", held.name, held.reason)).unwrap_or_default();
    let back = view.status.rolled_out.as_ref().map(|done| done.commit.as_str()).unwrap_or_default();
    let back = short(back);
    let words = format!("held since commit {since}, commit {back} cannot be put back: {why}; {failed}");
    told(view, &mut verdict.status, Standing::Stalled, "Lost", &words);
    report(view, commit, &mut verdict, State::Failure, &words);
    verdict
}

/// What is remembered of pods that are not ready, as long as their objects are not done.
fn unready(view: &View, pairs: &[Pair<'_>]) -> Vec<UnreadyObject> {
    let of = |pair: &Pair<'_>| {
        let (id, live) = (&pair.desired.id, pair.live?);
        let doing = pair.doing.as_ref()?;
        if doing.standing == Standing::Current || !detail::is_known(id) {
            return None;
        }
        let version = detail::version(&live.value);
        if version.is_empty() {
            return None;
        }
        let seen = view.details.get(id).filter(|detail| detail.version == version);
        let now = seen.and_then(|detail| detail.pods.as_ref()?.why.clone());
        let why = now.or_else(|| detail::remembered(&view.status, id, &version).map(str::to_owned))?;
        Some(detail::unready(id, &version, &why))
    };
    pairs.iter().filter_map(of).take(detail::MOST).collect()
}

/// The commit that brought the content of another one: its hooks are run for that.
fn bringer(status: &GitSourceStatus, commit: &Commit) -> String {
    status.content.as_ref().map_or(&commit.revision.commit, |content| &content.commit).clone()
}

/// Notes what is done about hooks.
fn hooked(verdict: &mut Verdict, hooks: &Hooks<'_>, turn: Turn) {
    verdict.actions.extend(turn.actions);
    verdict.reasons.extend(turn.reasons);
    verdict.status.hooks = hooks.records();
    let cleanups =
        hooks.cleanups().into_iter().filter(|cleanup| !verdict.actions.iter().any(|action| action.is(cleanup)));
    let cleanups: Vec<Action> = cleanups.collect();
    verdict.actions.extend(cleanups);
    let known: Vec<Id> = verdict.status.inventory.iter().map(Id::of_entry).collect();
    for entry in hooks.inventory(&verdict.actions) {
        match known.iter().position(|id| *id == Id::of_entry(&entry)) {
            Some(index) => verdict.status.inventory[index] = entry,
            None => verdict.status.inventory.push(entry),
        }
    }
}

/// Nothing of a commit is written before its first hooks have succeeded.
fn gated(view: &View, commit: &Commit, mut verdict: Verdict, hooks: &Hooks<'_>, turn: Turn) -> Verdict {
    let (standing, reason, state, words) = match &turn.gate {
        Gate::Open => return verdict,
        Gate::Waits(words) => (Standing::InProgress, "HookRunning", State::Pending, words.clone()),
        Gate::Failed(problem) => {
            verdict.status.problems = vec![wire(problem)];
            let words = format!("{problem}; nothing of the commit was applied");
            (Standing::Stalled, "HookFailed", State::Failure, words)
        }
    };
    hooked(&mut verdict, hooks, turn);
    if standing == Standing::Stalled {
        let failure = hooks.turn(Phase::OnFailure);
        hooked(&mut verdict, hooks, failure);
    }
    if hooks.is_running() {
        verdict.wake = view.now.checked_add(detail::lasts(detail::age(&verdict.status, view.now))).ok();
    }
    told(view, &mut verdict.status, standing, reason, &words);
    report(view, commit, &mut verdict, state, &words);
    verdict
}

/// A commit is carried out.
fn follow(view: &View, spec: &GitSource, commit: &Commit) -> Verdict {
    let mut verdict = Verdict::default();
    take_up(view, commit, &mut verdict);
    let mut pairs = view.pairs(&commit.set, &commit.revision);
    verdict.status.held = hold::held(view, pairs.iter().map(|pair| (pair.desired, pair.blamed.clone())));
    let hooks = Hooks::of(view, &commit.set, &bringer(&verdict.status, commit));
    let before = hooks.turn(Phase::BeforeSync);
    if before.gate != Gate::Open {
        return gated(view, commit, verdict, &hooks, before);
    }
    let mut plan = Plan::default();
    plan.objects(view, spec, &pairs, &verdict.status.held);
    let applied = view.status.applied.as_ref().is_some_and(|applied| applied.commit == commit.revision.commit);
    if plan.is_settled() && !applied {
        verdict.status.applied = Some(at(view, &commit.revision));
    }
    plan.prune(view, spec, &commit.set, commit, &mut pairs);
    verdict.status.inventory = inventory(view, &pairs, &plan);
    let done = view.status.rolled_out.as_ref().is_some_and(|done| done.commit == commit.revision.commit);
    let outcome = outcome(&pairs, &plan, done);
    let during = if plan.is_settled() { hooks.turn(Phase::Sync) } else { Turn::open() };
    let outcome = outcome.after(&during, "HookRunning");
    hooked(&mut verdict, &hooks, during);
    let after = if outcome.standing == Standing::Current { hooks.turn(Phase::AfterSync) } else { Turn::open() };
    let outcome = outcome.after(&after, "HookRunning");
    hooked(&mut verdict, &hooks, after);
    if outcome.standing == Standing::Stalled {
        let failure = hooks.turn(Phase::OnFailure);
        hooked(&mut verdict, &hooks, failure);
    }
    verdict.status.unready = unready(view, &pairs);
    // Pods are not watched: what they say is read again from time to time.
    let is_open = |pair: &Pair<'_>| {
        pair.doing.as_ref().is_some_and(|doing| doing.standing == Standing::InProgress)
            && detail::is_known(&pair.desired.id)
    };
    if pairs.iter().any(is_open) || hooks.is_running() {
        verdict.wake = view.now.checked_add(detail::lasts(detail::age(&verdict.status, view.now))).ok();
    }
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
    let mut problems: Vec<SourceProblem> = plan.problems.iter().take(50).map(wire).collect();
    problems.extend(outcome.problem.as_ref().map(wire));
    verdict.status.problems = problems;
    // Said with the commit that brings it.
    if !applied {
        let asks = commit.set.objects.iter().chain(&commit.set.hooks).filter(|want| !want.policy.ignored.is_empty());
        verdict.reasons.extend(asks.map(|want| Reason::NotHonoured(want.id.clone(), want.policy.ignored.clone())));
    }
    report(view, commit, &mut verdict, state, &outcome.words);
    for id in followed(&verdict.status, commit) {
        verdict.reports.extend(report::rollouts(view, spec, &id, &pairs, &plan));
    }
    plan.into_verdict(verdict)
}
