//! From a source's reference to the objects of a commit: fetched when it is time, read when it is new.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::{Settings, Shared, account, keep::Subject, pass::State, secret::Secrets};
use crate::{
    api::{GitRevision, GitSourceStatus, Time},
    engine::key::Place,
    io::{
        git::{self, Access, FetchLimits, Fetched, Store},
        kinds,
    },
    kubernetes::{foreign, value::Text},
    kustomize, manifest,
    model::{
        git_source::{GitSource, OnAbort, Reference},
        remote::Remote,
    },
    plan::{
        changes,
        review::{self, Review},
    },
    sync::{
        self,
        allow::Allowance,
        set::{self, Desired, Part, Problem, Scope, Set},
        view,
    },
};

/// The most files of which the newest commit that changed each is looked up.
const BLAMED: usize = 200;

/// A source that is fetched.
#[derive(Clone, Copy)]
pub struct Fetching<'p> {
    /// The source.
    pub subject: &'p Subject,
    /// What it wants.
    pub spec: &'p GitSource,
    /// What was last recorded of it.
    pub status: &'p GitSourceStatus,
    /// How sources are looked after.
    pub settings: &'p Settings,
    /// What they share.
    pub shared: &'p Shared,
}

/// Looks at the repository if it is time.
pub async fn look(state: &mut State, of: Fetching<'_>, hinted: bool) {
    let Fetching { subject, spec, status, settings, .. } = of;
    // Another repository: what is known is about the one before.
    if state.store.as_ref().is_some_and(|(url, _)| *url != spec.url) {
        (state.store, state.head, state.failed, state.polled) = (None, None, None, None);
        (state.followed, state.promoted) = (None, None);
    }
    let now = settings.clock.now();
    let asked = !subject.request.is_empty() && subject.request != status.last_sync_request;
    let due = state.poll_at(subject, spec).is_none_or(|at| at <= now) || state.generation != subject.generation;
    if due || hinted || asked {
        state.polled = Some(now);
        state.polls = state.polls.wrapping_add(1);
        match resolve(state, of).await {
            Ok(fetched) => {
                state.failed = None;
                state.head = Some(fetched);
            }
            Err(error) => {
                // It may quote what the source says, which anybody may have written.
                let words = foreign::line(&error.to_string());
                // Said once, not at every poll. That a repository on this machine has no commit yet is said when it begins.
                let is_awaited = matches!(error, git::Error::Missing { .. }) && subject.folder.is_some();
                if is_awaited || state.failed.as_ref() == Some(&words) {
                    tracing::debug!(source = %subject.place, %error, "cannot fetch");
                } else {
                    tracing::warn!(source = %subject.place, %error, "cannot fetch");
                }
                state.failed = Some(words);
            }
        }
    }
}

/// What the source is to follow.
pub async fn take(state: &mut State, of: Fetching<'_>) -> view::Fetched {
    let Some(head) = state.head.clone() else {
        return match &state.failed {
            Some(why) => view::Fetched::Failed(why.clone()),
            None => view::Fetched::Nothing,
        };
    };
    match follow(state, of, &head).await {
        Ok(commit) => view::Fetched::Commit(Box::new(commit)),
        Err(why) => view::Fetched::Failed(why),
    }
}

async fn resolve(state: &mut State, of: Fetching<'_>) -> Result<Fetched, git::Error> {
    let Fetching { subject, spec, status, settings, .. } = of;
    let known = status.seen.as_ref().map(|seen| seen.commit.clone());
    if let Some(folder) = folder_of(subject, spec, settings) {
        let store = local(state, of, folder).await?;
        let reference = spec.reference.clone();
        return blocking(move || store.resolve(&reference, known.as_deref())).await;
    }
    let Some(network) = &settings.network else {
        let cause = "repositories of other machines are not read here".to_owned();
        return Err(git::Error::Unreachable { remote: spec.url.clone(), cause });
    };
    let remote = Remote::parse(&spec.url)
        .map_err(|reason| git::Error::Address { url: spec.url.clone(), reason: reason.to_owned() })?;
    let store = stored(state, of, &remote).await?;
    let access = access(subject, spec, of.shared, &remote).await?;
    let _away = of.shared.errands.leave();
    let _place = of.shared.errands.turn(&subject.place.namespace).await;
    git::fetch(&store, &remote, &spec.reference, known.as_deref(), &access, network, &FetchLimits::default()).await
}

/// Where a repository is, if it is on this machine.
pub fn folder_of(subject: &Subject, spec: &GitSource, settings: &Settings) -> Option<std::path::PathBuf> {
    let copy = settings.copies.iter().find(|(url, _)| *url == spec.url).map(|(_, folder)| folder.clone());
    subject.folder.clone().or(copy)
}

/// What to show to the host of a repository.
pub async fn access(
    subject: &Subject,
    spec: &GitSource,
    shared: &Shared,
    remote: &Remote,
) -> Result<Access, git::Error> {
    secrets(shared, subject).access(&subject.place.namespace, spec, remote).await
}

/// Secrets as a source may read them.
pub fn secrets(shared: &Shared, subject: &Subject) -> Secrets {
    Secrets::new(account::acting(&shared.api, subject))
}

/// A repository on this machine.
async fn local(state: &mut State, of: Fetching<'_>, folder: std::path::PathBuf) -> Result<Store, git::Error> {
    let Fetching { subject, spec, settings, shared, .. } = of;
    if let Some((url, store)) = &state.store
        && *url == spec.url
    {
        return Ok(store.clone());
    }
    let store = blocking(move || Store::local(&folder)).await?;
    state.store = Some((spec.url.clone(), store.clone()));
    if settings.references == super::References::Watched {
        let watch = git::Watch::new(&store)?;
        let (bell, place) = (shared.bell.clone(), subject.place.clone());
        tokio::spawn(async move {
            loop {
                watch.changed().await;
                if bell.send(super::Hint::Source(place.clone())).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(store)
}

/// Our copy of a repository elsewhere, shared by every source of it.
async fn stored(state: &mut State, of: Fetching<'_>, remote: &Remote) -> Result<Store, git::Error> {
    let Fetching { spec, shared, .. } = of;
    let store = shared.stores.open(remote).await?;
    state.store = Some((spec.url.clone(), store.clone()));
    Ok(store)
}

/// What is wrong with the signatures that a commit must carry; nothing if there is nothing.
async fn unsigned(store: &Store, of: Fetching<'_>, commit: &str, head: &Fetched) -> Option<String> {
    let Fetching { subject, spec, shared, .. } = of;
    let verify = spec.verify.as_ref()?;
    let policy = async {
        let data = secrets(shared, subject).read(&subject.place.namespace, &verify.secret).await?;
        git::Policy::from_secret(verify.signed, &data).map_err(|error| error.to_string())
    };
    // Whoever cannot be checked is not let in.
    let policy = match policy.await {
        Ok(policy) => policy,
        Err(why) => return Some(why),
    };
    let (store, head, commit) = (store.clone(), head.clone(), commit.to_owned());
    let verify = move || match commit == head.commit {
        true => store.verify(&head, &policy),
        false => store.verify_earlier(&commit, &policy),
    };
    blocking(verify).await.err().map(|error| error.to_string())
}

/// Does something that waits for the disk.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, git::Error> + Send + 'static,
) -> Result<T, git::Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(git::Error::Store { path: Default::default(), cause: error.to_string() }),
    }
}

/// The commit that is carried out, with what it wants.
async fn follow(state: &mut State, of: Fetching<'_>, head: &Fetched) -> Result<view::Commit, String> {
    let Fetching { subject, spec, status, settings, .. } = of;
    let now = settings.clock.now();
    let commit = sync::commit_to_follow(spec, status, &head.commit).to_owned();
    let is_same = state.generation == subject.generation
        && state.followed.as_ref().is_some_and(|followed| followed.revision.commit == commit);
    if !is_same || state.followed.as_ref().is_some_and(|followed| !followed.set.problems.is_empty()) {
        let former = kinds::forget(&mut state.sorts);
        state.former.extend(former);
        let before = planned(state, of, &commit, head, now).await;
        let alike = alike(state, of, &commit, head, now).await;
        let (revision, set) = load(state, of, &commit, head, now).await?;
        state.review = before.and_then(|(messages, before)| {
            let hash = changes(&before, &set, &scope(&subject.place, spec).namespace).hash;
            Some((commit.as_str().into(), Review::of(messages.iter().map(String::as_str), &hash)?))
        });
        if let Some((commit, review)) = &state.review {
            tracing::info!(source = %subject.place, %commit, %review, "commit names a reviewed plan");
        }
        if state.generation != subject.generation {
            // Read by other rules: another path, or signatures that did not matter then.
            state.promoted = None;
        }
        state.generation = subject.generation;
        state.followed = Some(Box::new(view::Commit {
            revision,
            set: Arc::new(set),
            waiting: None,
            moved_back: head.rewritten(),
            promoted: None,
            lost: None,
            stale: None,
            alike,
        }));
    }
    let promoted = status.rolled_out.as_ref().filter(|done| spec.on_abort != OnAbort::Hold && done.commit != commit);
    let mut lost = None;
    let promoted = match promoted {
        Some(done) if state.promoted.as_ref().is_none_or(|(revision, _)| revision.commit != done.commit) => {
            let commit = done.commit.clone();
            let read = match bring(state, of, &commit).await {
                Ok(()) => load(state, of, &commit, head, now).await,
                Err(error) => Err(error.to_string()),
            };
            // What cannot be read any more cannot be put back.
            match read {
                Ok((_, set)) if !set.problems.is_empty() => lost = set.problems.first().map(ToString::to_string),
                Ok((revision, set)) => state.promoted = Some((revision, Arc::new(set))),
                Err(why) => lost = Some(why),
            }
            state.promoted.clone().filter(|_| lost.is_none())
        }
        Some(_) => state.promoted.clone(),
        None => None,
    };
    let Some(followed) = &state.followed else { return Err("nothing is followed".to_owned()) };
    let mut commit = view::Commit::clone(followed);
    commit.promoted = promoted;
    commit.lost = lost;
    commit.stale = state.failed.clone();
    let waits = head.commit != commit.revision.commit;
    commit.waiting = waits.then(|| GitRevision { commit: head.commit.clone(), ..GitRevision::default() });
    Ok(commit)
}

/// If a commit names the plan that was reviewed: the messages that may, and what the commit was made on wanted. Nothing is
/// said where that cannot be read: it says nothing about the commit.
async fn planned(
    state: &mut State,
    of: Fetching<'_>,
    commit: &str,
    head: &Fetched,
    now: Timestamp,
) -> Option<(Vec<String>, Set)> {
    let (_, store) = state.store.clone()?;
    let hash = commit.to_owned();
    let read = blocking(move || Ok((store.messages(&hash)?, store.first_parent(&hash)?))).await;
    let (messages, parent) = read.ok()?;
    messages.iter().find_map(|message| review::reviewed(message))?;
    let before = match parent {
        Some(parent) => load_unverified(state, of, &parent, head, now).await.ok()?.1,
        None => Set::default(),
    };
    Some((messages, before))
}

/// The most commits before a new one that are compared with it.
const MOST_ALIKE: usize = 20;

/// The commits that came together with a new one, stand just before it and want the same; oldest first. A commit that
/// changes no object shows how the one goes that did.
async fn alike(state: &mut State, of: Fetching<'_>, commit: &str, head: &Fetched, now: Timestamp) -> Vec<String> {
    let Some(seen) = of.status.seen.as_ref().map(|seen| seen.commit.clone()) else { return Vec::new() };
    let Some((_, store)) = state.store.clone().filter(|_| seen != commit) else { return Vec::new() };
    let (hash, path) = (commit.to_owned(), of.spec.path.clone());
    let read = blocking(move || {
        let mut between = Vec::new();
        let mut at = hash.clone();
        // What a kustomization reads may lie outside of the folder.
        let path = if store.is_kustomized(&hash, &path)? { String::new() } else { path };
        while between.len() < MOST_ALIKE {
            match store.first_parent(&at)?.filter(|parent| store.has(parent)) {
                // What was followed before is no part of what came with the new commit.
                Some(parent) if parent == seen => return Ok((between, store.folder_hash(&hash, &path)?)),
                Some(parent) => {
                    between.push((parent.clone(), store.folder_hash(&parent, &path)?));
                    at = parent;
                }
                None => break,
            }
        }
        Ok((Vec::new(), None))
    });
    let Ok((between, folder)) = read.await else { return Vec::new() };
    let mut alike = Vec::new();
    let mut wanted = None;
    for (parent, same) in between {
        if same.is_none() || same != folder {
            // Other files may still hold the same objects.
            if wanted.is_none() {
                let Ok((_, set)) = load_unverified(state, of, commit, head, now).await else { break };
                wanted = Some(set);
            }
            let Ok((_, before)) = load_unverified(state, of, &parent, head, now).await else { break };
            let is_same =
                |set: &Set| set.problems.is_empty() && before.problems.is_empty() && set.digest() == before.digest();
            if !wanted.as_ref().is_some_and(is_same) {
                break;
            }
        }
        alike.insert(0, parent);
    }
    alike
}

/// Gets an earlier commit again, if our copy of the repository does not have it: it may be a new one.
async fn bring(state: &mut State, of: Fetching<'_>, commit: &str) -> Result<(), git::Error> {
    let Fetching { subject, spec, settings, .. } = of;
    let Some((_, store)) = state.store.clone() else { return Ok(()) };
    let (Some(network), Ok(remote)) = (&settings.network, Remote::parse(&spec.url)) else { return Ok(()) };
    if store.has(commit) || folder_of(subject, spec, settings).is_some() {
        return Ok(());
    }
    let access = access(subject, spec, of.shared, &remote).await?;
    let reference = Reference::Commit(commit.to_owned());
    let _away = of.shared.errands.leave();
    let _place = of.shared.errands.turn(&subject.place.namespace).await;
    git::fetch(&store, &remote, &reference, None, &access, network, &FetchLimits::default()).await.map(drop)
}

/// Reads a commit.
async fn load(
    state: &mut State,
    of: Fetching<'_>,
    commit: &str,
    head: &Fetched,
    now: Timestamp,
) -> Result<(GitRevision, Set), String> {
    // Every commit that may be applied, whatever the reference is at: what a status says about an earlier one is no proof.
    let Some((_, store)) = state.store.clone() else { return Err("the repository is not open".to_owned()) };
    let refused = unsigned(&store, of, commit, head).await;
    let (revision, set) = load_unverified(state, of, commit, head, now).await?;
    Ok(match refused {
        None => (revision, set),
        Some(message) => {
            let problem = Problem { file: Text::new(), line: 0, message };
            (revision, Set::unreadable(problem))
        }
    })
}

/// Reads a commit that is only compared with: nothing of it may be applied.
async fn load_unverified(
    state: &mut State,
    of: Fetching<'_>,
    commit: &str,
    head: &Fetched,
    now: Timestamp,
) -> Result<(GitRevision, Set), String> {
    let Fetching { subject, spec, .. } = of;
    let Some((_, store)) = state.store.clone() else { return Err("the repository is not open".to_owned()) };
    if state.generation != subject.generation {
        state.parts.clear();
    }
    let known = state.parts.iter().map(|(path, (of, _))| (path.clone(), of.clone())).collect();
    let (about, content) = read(&store, spec, commit, known).await?;
    let revision = GitRevision {
        commit: commit.to_owned(),
        reference: head.reached.to_string(),
        subject: about.subject,
        at: Some(Time::from(now)),
    };
    let content = match content {
        Ok(content) => content,
        // The commit is there; what is asked of it is not. That is the commit's own problem.
        Err(error) => {
            let problem = Problem { file: Text::new(), line: 0, message: error.to_string() };
            return Ok((revision, Set::unreadable(problem)));
        }
    };
    let mut set = match parse(state, of, &content).await? {
        Some(set) => set,
        None => {
            state.parts.clear();
            let (_, whole) = read(&store, spec, commit, HashMap::new()).await?;
            let whole = whole.map_err(|error| error.to_string())?;
            parse(state, of, &whole).await?.unwrap_or_default()
        }
    };
    for one in &content.kustomized {
        let rendered = &one.rendered;
        set.problems.extend(rendered.fault.iter().map(kustomize::Located::problem));
        for warning in &rendered.warnings {
            tracing::info!(source = %subject.place, %warning, "kustomization rendered with a warning");
        }
        if !one.unused.is_empty() {
            let (kustomization, unused) = (&rendered.file.source.name, one.unused.join(", "));
            tracing::info!(source = %subject.place, kustomization, unused, "manifests beside a kustomization are not used by it");
        }
    }
    // What is not read may have been meant for the cluster, so nothing of the commit is done.
    for refused in &content.files.refused {
        let message = format!("the entry {}", refused.why);
        set.problems.push(Problem { file: refused.path.as_str().into(), line: 0, message });
    }
    set.problems.sort();
    blame(state, &mut set, &store, commit).await;
    Ok((revision, set))
}

/// What a source reads of a commit, without the bytes of those files that are known by path and hash. What is asked of the commit may not
/// be there.
async fn read(
    store: &Store,
    spec: &GitSource,
    commit: &str,
    known: HashMap<String, (String, usize)>,
) -> Result<(git::About, Result<git::Content, git::Error>), String> {
    let (hash, path, exclude, how) = (commit.to_owned(), spec.path.clone(), spec.exclude.clone(), spec.kustomize);
    let store = store.clone();
    let read = blocking(move || {
        let about = store.about(&hash)?;
        Ok((about, store.content(&hash, &path, &exclude, &known, how)))
    });
    read.await.map_err(|error| error.to_string())
}

/// The line of a field of an object, in a file of a commit; nothing if that cannot be told.
pub async fn line(
    state: &mut State,
    subject: &Subject,
    commit: &str,
    path: &str,
    id: &sync::id::Id,
    field: &str,
) -> Option<usize> {
    let (Some((_, store)), Ok(spec)) = (&state.store, &subject.spec) else { return None };
    let others = state.parts.iter().filter(|(of, _)| *of != path);
    let known = others.map(|(path, (of, _))| (path.clone(), of.clone())).collect();
    let (_, content) = read(store, spec, commit, known).await.ok()?;
    let git::Content { files, kustomized } = content.ok()?;
    let is_it = |object: &&manifest::Object| {
        (object.group(), object.kind(), object.name()) == (id.group.as_str(), id.kind.as_str(), id.name.as_str())
    };
    let line = |object: &manifest::Object| {
        let steps = sync::refusal::steps(field);
        // The caller names the file that the object was first written in.
        let source = object.source_of(steps.iter().copied());
        (source.name == path).then(|| source.position(object.key_span(steps.iter().copied()).start).line)
    };
    if let Some(file) = files.files.into_iter().find(|file| file.path == path) {
        let file = manifest::read(file.path, &file.bytes?);
        return file.objects.iter().find(is_it).and_then(line);
    }
    let objects = kustomized.iter().flat_map(|one| &one.rendered.file.objects);
    objects.filter(|object| object.source.name == path).find(is_it).and_then(line)
}

/// Makes a set of files; those that are as they were are not read again. `None` if what is remembered of them does not do:
/// a kind has changed, or the commit begins to define kinds.
async fn parse(state: &mut State, of: Fetching<'_>, content: &git::Content) -> Result<Option<Set>, String> {
    let Fetching { subject, spec, shared, .. } = of;
    let pieces = pieces(state, content);
    let parsed: Vec<manifest::File> = pieces.iter().filter_map(|piece| piece.file.clone()).collect();
    let is_whole = parsed.len() == pieces.len();
    if !is_whole && parsed.iter().flat_map(|file| &file.objects).any(set::is_definition) {
        return Ok(None);
    }
    let kept = pieces.iter().filter(|piece| piece.file.is_none()).filter_map(|piece| state.parts.get(&piece.path));
    let mut kinds = set::kinds(&parsed);
    kinds.extend(kept.flat_map(|(_, part)| part.kinds()));
    kinds.sort();
    kinds.dedup();
    kinds::learn(&shared.api, &kinds, &mut state.sorts, &state.former).await.map_err(|error| error.to_string())?;
    let mut new = set::parts(&parsed, &scope(&subject.place, spec), &state.sorts).into_iter();
    let mut parts = Vec::with_capacity(pieces.len());
    for piece in &pieces {
        let part = match &piece.file {
            Some(_) => new.next(),
            None => state.parts.get(&piece.path).and_then(|(_, part)| part.renewed(&state.sorts)),
        };
        let Some(part) = part else { return Ok(None) };
        parts.push(part);
    }
    // Whoever defines kinds, or has problems, is read as a whole each time.
    state.parts = if parts.iter().all(Part::is_plain) {
        let known = pieces.into_iter().zip(&parts);
        known.map(|(piece, part)| (piece.path, (piece.known, part.clone()))).collect()
    } else {
        HashMap::new()
    };
    Ok(Some(set::assemble(parts)))
}

/// A file, or what a kustomization rendered.
struct Piece {
    path: String,
    /// The hash and size of what it holds: equal hashes, equal content.
    known: (String, usize),
    /// Nothing if its content is known.
    file: Option<manifest::File>,
}

fn pieces(state: &State, content: &git::Content) -> Vec<Piece> {
    let read = |file: &git::File| {
        let mut read = manifest::read(file.path.clone(), file.bytes.as_ref()?);
        // Files of other tools lie about in every repository: what holds no object at all is none of ours.
        if is_other(&read) {
            read.mistakes.clear();
        }
        Some(read)
    };
    let files = content.files.files.iter().map(|file| Piece {
        path: file.path.clone(),
        known: (file.blob.clone(), file.size),
        file: read(file),
    });
    let rendered = content.kustomized.iter().map(|one| {
        let (path, known) = (one.path(), (one.digest.clone(), 0));
        let is_known = state.parts.get(&path).is_some_and(|(former, _)| *former == known);
        Piece { path, known, file: (!is_known).then(|| one.rendered.file.clone()) }
    });
    files.chain(rendered).collect()
}

fn is_other(file: &manifest::File) -> bool {
    let shape = |mistake: &manifest::Mistake| mistake.kind == manifest::MistakeKind::Shape;
    file.objects.is_empty() && !file.mistakes.is_empty() && file.mistakes.iter().all(shape)
}

/// Notes the newest commit that changed the file of each object whose content is new.
async fn blame(state: &State, set: &mut Set, store: &Store, commit: &str) {
    let known: HashSet<(&sync::id::Id, &Text)> = state
        .followed
        .iter()
        .flat_map(|followed| followed.set.objects.iter().map(|desired| (&desired.id, &desired.digest)))
        .collect();
    let files = |desired: &Desired| -> Vec<String> {
        // An overlay has a say in what its object is.
        let patched = desired.patched.iter().map(|(file, _)| file.to_string());
        std::iter::once(desired.file.to_string()).chain(patched).collect()
    };
    let new = set.objects.iter().filter(|desired| !known.contains(&(&desired.id, &desired.digest)));
    let paths: BTreeSet<String> = new.flat_map(files).collect();
    if paths.is_empty() || paths.len() > BLAMED {
        return;
    }
    let (store, commit, paths) = (store.clone(), commit.to_owned(), paths.into_iter().collect::<Vec<_>>());
    // Nobody to blame is no reason not to apply: the commit itself takes it.
    let read = blocking(move || {
        let found = store.changed_by(&commit, &paths)?;
        let commits: HashSet<String> = found.values().cloned().collect();
        let ages = if commits.len() > 1 { store.ages(&commit, &commits)? } else { HashMap::new() };
        Ok((found, ages))
    });
    let Ok((found, ages)) = read.await else { return };
    for desired in &mut set.objects {
        let commits: Option<Vec<&String>> = files(desired).iter().map(|file| found.get(file)).collect();
        let age = |commit: &&String| ages.get(*commit).copied().unwrap_or(usize::MAX);
        let newest = commits.and_then(|commits| commits.into_iter().min_by_key(age));
        desired.blamed = newest.map(|commit| commit.as_str().into());
    }
}

/// Where the objects of a source go.
pub fn scope(source: &Place, spec: &GitSource) -> Scope {
    let own = source.namespace.to_string();
    let target = spec.target_namespace.clone().unwrap_or_else(|| own.clone());
    let namespaces = match spec.namespaces.as_slice() {
        [] => vec![own, target.clone()],
        named => named.to_vec(),
    };
    Scope { namespace: target.into(), allowance: Allowance { kinds: spec.kinds.clone(), namespaces } }
}
