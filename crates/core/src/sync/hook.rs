//! Hooks: objects that run once for each commit, before or after its sync or when it fails.
//!
//! A hook belongs to the commit that brought the content; a commit that changes no object runs none. How each one went is
//! recorded in the status of the source, because hooks may be deleted when they end. Never deletes a hook of an earlier
//! commit while its pods run.

use super::{
    decide::{Action, Write},
    health::Doing,
    id::Id,
    plan,
    policy::{Ending, Hook, Phase},
    prune::Stale,
    reason::{Reason, short},
    set::{Desired, Problem, Set},
    view::{View, digest_of},
};
use crate::{
    api::{
        HookRun, InventoryEntry,
        constants::{annotation, label},
    },
    kubernetes::{
        object::Object,
        value::{Text, Value},
    },
    model::health::Standing,
};

/// The hooks of a commit, and how far each is.
pub struct Hooks<'v> {
    commit: String,
    runs: Vec<Run<'v>>,
}

struct Run<'v> {
    desired: &'v Desired,
    hook: &'v Hook,
    patch: Value,
    live: Option<&'v Object>,
    progress: Progress,
}

/// How far a hook is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Progress {
    /// It was not begun.
    Due,
    /// Its kind is not served yet, or one of an earlier commit is on its way out.
    Waits(String),
    /// One of an earlier commit is deleted first.
    Clears,
    /// It runs.
    Runs(String),
    Succeeded,
    Failed(String),
}

/// What becomes of what comes after a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// It goes on.
    Open,
    /// It waits.
    Waits(String),
    /// It does not happen.
    Failed(Problem),
}

/// What is done about the hooks of a phase.
pub struct Turn {
    /// What is written and deleted.
    pub actions: Vec<Action>,
    /// Why.
    pub reasons: Vec<Reason>,
    /// What becomes of what comes after them.
    pub gate: Gate,
}

impl Turn {
    /// Nothing to do.
    pub fn open() -> Turn {
        Turn { actions: Vec::new(), reasons: Vec::new(), gate: Gate::Open }
    }
}

impl<'v> Hooks<'v> {
    /// The hooks of a set, for the commit that brought its content.
    pub fn of(view: &'v View, set: &'v Set, commit: &str) -> Hooks<'v> {
        let retried = !view.request.is_empty() && view.request != view.status.last_sync_request;
        let run = |desired: &'v Desired| {
            let hook = desired.policy.hook.as_ref()?;
            let live = view.live.get(&desired.id).map(|live| &**live);
            let patch = patch(desired, &view.mark(), commit);
            let progress = progress(view, desired, &patch, live, commit, retried);
            Some(Run { desired, hook, patch, live, progress })
        };
        Hooks { commit: commit.to_owned(), runs: set.hooks.iter().filter_map(run).collect() }
    }

    /// What is done about the hooks of a phase: wave by wave, those of one wave together.
    pub fn turn(&self, phase: Phase) -> Turn {
        let mut turn = Turn::open();
        let runs: Vec<&Run<'_>> = self.runs.iter().filter(|run| run.hook.phase == phase).collect();
        let open = runs.iter().find(|run| run.progress != Progress::Succeeded);
        let Some(wave) = open.map(|run| run.desired.policy.wave) else { return turn };
        let mut waits = Vec::new();
        for run in runs.iter().filter(|run| run.desired.policy.wave == wave) {
            let id = &run.desired.id;
            let words = match &run.progress {
                Progress::Succeeded => continue,
                Progress::Failed(why) => {
                    let message = format!("{} hook {id} failed: {why}", phase.name());
                    let problem =
                        Problem { file: run.desired.file.clone(), line: run.desired.line, message: message.clone() };
                    turn.reasons.push(Reason::HookFailed(id.clone(), message));
                    // One problem is enough: what else there is comes when that is solved.
                    if !matches!(turn.gate, Gate::Failed(_)) {
                        turn.gate = Gate::Failed(problem);
                    }
                    continue;
                }
                Progress::Due => {
                    turn.reasons.push(Reason::RunsHook(id.clone(), phase));
                    turn.actions.push(Action::Apply(Box::new(Write {
                        id: id.clone(),
                        place: (run.desired.file.clone(), run.desired.line),
                        patch: run.patch.clone(),
                        version: None,
                        force: true,
                    })));
                    "begins".to_owned()
                }
                Progress::Clears => {
                    turn.actions.extend(run.stale().map(Action::EndHook));
                    "begins when the one of an earlier commit is deleted".to_owned()
                }
                Progress::Waits(words) | Progress::Runs(words) => words.clone(),
            };
            waits.push(format!("{} hook {id} {words}", phase.name()));
        }
        if let (Gate::Open, Some(words)) = (&turn.gate, plan::first_of(&waits)) {
            turn.gate = Gate::Waits(words);
        }
        turn
    }

    /// The hooks that are deleted because of how they ended.
    pub fn cleanups(&self) -> Vec<Action> {
        let ends = |run: &&Run<'_>| {
            let ending = match run.progress {
                Progress::Succeeded => Ending::Succeeded,
                Progress::Failed(_) => Ending::Failed,
                Progress::Due | Progress::Waits(_) | Progress::Clears | Progress::Runs(_) => return false,
            };
            run.hook.delete_on.contains(&ending) && run.is_of(&self.commit)
        };
        self.runs.iter().filter(ends).filter_map(Run::stale).map(Action::EndHook).collect()
    }

    /// How each hook that was begun goes, for the status of the source.
    pub fn records(&self) -> Vec<HookRun> {
        let record = |run: &Run<'_>| {
            let (state, message) = match &run.progress {
                Progress::Due | Progress::Waits(_) | Progress::Clears => return None,
                Progress::Runs(words) => (RUNNING, words.clone()),
                Progress::Succeeded => (SUCCEEDED, String::new()),
                Progress::Failed(why) => (FAILED, why.clone()),
            };
            let Id { group, kind, namespace, name } = run.desired.id.clone();
            Some(HookRun {
                group: group.to_string(),
                kind: kind.to_string(),
                namespace: namespace.to_string(),
                name: name.to_string(),
                phase: run.hook.phase.name().to_owned(),
                commit: self.commit.clone(),
                state: state.to_owned(),
                message,
            })
        };
        self.runs.iter().filter_map(record).collect()
    }

    /// The hooks that the inventory has: those that are there, and those that are about to be.
    pub fn inventory(&self, actions: &[Action]) -> Vec<InventoryEntry> {
        let is_written =
            |id: &Id| actions.iter().any(|action| matches!(action, Action::Apply(write) if write.id == *id));
        let entry = |run: &Run<'_>| {
            let Id { group, kind, namespace, name } = run.desired.id.clone();
            let uid = run.live.filter(|live| is_ours(live, &run.patch)).map(Object::uid);
            let version = run.desired.sort.version.clone();
            let uid = uid.or_else(|| is_written(&run.desired.id).then(Text::new))?;
            Some(InventoryEntry { group, version, kind, namespace, name, uid })
        };
        self.runs.iter().filter_map(entry).collect()
    }

    /// Whether a hook is under way: what its pods say is not watched.
    pub fn is_running(&self) -> bool {
        self.runs.iter().any(|run| matches!(run.progress, Progress::Runs(_)))
    }
}

impl Run<'_> {
    fn is_of(&self, commit: &str) -> bool {
        self.live.is_some_and(|live| live.annotation(annotation::COMMIT) == Some(commit))
    }

    fn stale(&self) -> Option<Stale> {
        let live = self.live.filter(|live| is_ours(live, &self.patch) && !live.is_terminating())?;
        Some(Stale { id: self.desired.id.clone(), version: self.desired.sort.version.clone(), uid: live.uid() })
    }
}

/// The states of a hook, as the status of a source has them.
const RUNNING: &str = "Running";
const SUCCEEDED: &str = "Succeeded";
const FAILED: &str = "Failed";

fn is_ours(live: &Object, patch: &Value) -> bool {
    let path = ["metadata", "labels", label::SOURCE];
    live.value.str_at(&path) == patch.str_at(&path)
}

/// What is applied: what git says, with its marks.
fn patch(desired: &Desired, mark: &str, commit: &str) -> Value {
    let mut patch = desired.object.clone();
    patch.set_at(&["metadata", "labels", label::SOURCE], mark);
    patch.set_at(&["metadata", "annotations", annotation::COMMIT], commit);
    patch.set_at(&["metadata", "annotations", annotation::PATH], &desired.file);
    patch.set_at(&["metadata", "annotations", annotation::DIGEST], &desired.digest);
    patch
}

fn progress(
    view: &View,
    desired: &Desired,
    patch: &Value,
    live: Option<&Object>,
    commit: &str,
    retried: bool,
) -> Progress {
    let id = &desired.id;
    let is_it =
        |run: &&HookRun| *id == Id::new(&run.group, &run.kind, &run.namespace, &run.name) && run.commit == commit;
    let record = view.status.hooks.iter().find(is_it);
    match record.map(|run| (run.state.as_str(), &run.message)) {
        Some((SUCCEEDED, _)) => return Progress::Succeeded,
        Some((FAILED, why)) if !retried => return Progress::Failed(why.clone()),
        _ => {}
    }
    let Some(live) = live else {
        if !desired.sort.served {
            return Progress::Waits("waits until its kind is served".to_owned());
        }
        let refused = view.refused.get(id).filter(|refused| refused.digest == digest_of(patch));
        return match (refused, record) {
            (Some(refused), _) => Progress::Failed(refused.message.clone()),
            (None, Some(_)) if !retried => Progress::Failed("it was deleted before it ended".to_owned()),
            (None, Some(_) | None) => Progress::Due,
        };
    };
    if !is_ours(live, patch) {
        let why = "there is one of this name that the source did not make; give the hook another name";
        return Progress::Failed(why.to_owned());
    }
    if live.is_terminating() {
        return Progress::Waits("begins when the one before is gone".to_owned());
    }
    let ended = ended(view, id, live);
    if live.annotation(annotation::COMMIT) == Some(commit) {
        return match ended {
            Progress::Failed(_) if retried => Progress::Clears,
            other => other,
        };
    }
    // What an earlier commit has begun and what has pods at work, a migration perhaps, is not cut off.
    let works = live.value.int_at(&["status", "ready"]).unwrap_or_default() > 0
        || live.value.str_at(&["status", "phase"]) == Some("Running");
    match ended {
        Progress::Runs(_) if works => {
            let of = live.annotation(annotation::COMMIT).unwrap_or_default();
            Progress::Waits(format!("waits for the one of commit {} to end", short(of)))
        }
        _ => Progress::Clears,
    }
}

/// How far a hook that is there is.
fn ended(view: &View, id: &Id, live: &Object) -> Progress {
    let phase = live.value.str_at(&["status", "phase"]).unwrap_or_default();
    let message = || live.value.str_at(&["status", "message"]).unwrap_or_default().to_owned();
    // These are done when they have ended, and not when they are healthy.
    let is_run = id.is("", "Pod") || id.is("argoproj.io", "Workflow");
    let doing = Doing::of(&live.value);
    let standing = match (is_run, phase) {
        (true, "Succeeded") => Standing::Current,
        (true, "Failed" | "Error") => Standing::Stalled,
        (true, _) => Standing::InProgress,
        (false, _) => doing.standing,
    };
    let pods = view.details.get(id).and_then(|detail| detail.pods.as_ref()?.why.clone());
    let with = |words: String| match &pods {
        Some(why) if words.is_empty() => why.clone(),
        Some(why) => format!("{}: {why}", words.trim_end_matches('.')),
        None => words,
    };
    match standing {
        Standing::Current => Progress::Succeeded,
        Standing::InProgress => Progress::Runs(with("is running".to_owned())),
        Standing::Stalled => {
            let words = if is_run { message() } else { doing.words };
            let words = words.strip_prefix("failed: ").unwrap_or(&words).to_owned();
            let words = with(words);
            Progress::Failed(if words.is_empty() { "it failed".to_owned() } else { words })
        }
    }
}
