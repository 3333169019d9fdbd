//! One pass about a source: fetch, observe, decide, offer a revert, act and record (which comes first, the inventory decides), post
//! commit statuses.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    Settings, Shared, Told, account, detail,
    fetch::{self, Fetching},
    keep::{self, Kept, Subject},
    observe::{self, Observed, Observing},
    offer,
    read::{self, Rights},
    tell::{Teller, Telling},
};
use crate::{
    api::{
        GitRevision, GitSourceStatus,
        constants::{annotation::COMMIT, condition, reason},
    },
    engine::{
        cache::version_of,
        key::{Machine, ObjectKey, Place, Resource},
        queue::Outcome,
        write::Written,
    },
    io::{
        api::{Api, Error, Force, Run},
        git::{self, Store},
        webhook,
    },
    kubernetes::{
        object::Object,
        value::{Text, Value},
    },
    model::{
        git_source::{GitSource, Report as ReportTo},
        remote::Remote,
        secret::Secret,
    },
    plan::review::Review,
    rollout::Event,
    sync::{
        self, Acted, Action, Broken, Life, Reason, Report, Verdict, View, Write, announcements, check,
        compare::Difference,
        decide,
        detail::Detail,
        handover::Handover,
        id::{Id, Sorts},
        prune::{self, Stale},
        refusal::{self, Explained},
        refuse,
        set::{Part, Set},
        view::{Answer, Commit, Fetched, Memo, Refusal, digest_of},
    },
    value,
};

/// A report about a whole commit that was carried out also says whether that is what was reviewed.
fn reviewed(report: &Report, review: Option<&(Text, Review)>) -> Report {
    let Some((_, review)) = review.filter(|(commit, _)| *commit == report.commit) else { return report.clone() };
    if report.rollout.is_some() || report.state != sync::State::Success {
        return report.clone();
    }
    Report { words: format!("{}; {review}", report.words), ..report.clone() }
}

/// What is remembered of a source between passes, and found again after a restart.
#[derive(Default)]
pub struct State {
    /// The repository, by its URL.
    pub(super) store: Option<(String, Store)>,
    /// When it was last looked at.
    pub(super) polled: Option<Timestamp>,
    /// How often it was, in this life of the daemon.
    pub(super) polls: u64,
    /// What its reference was at.
    pub(super) head: Option<git::Fetched>,
    /// Why it could not be looked at last time.
    pub(super) failed: Option<String>,
    /// The commit that is carried out, as it was read.
    pub(super) followed: Option<Box<Commit>>,
    /// The generation of the specification that it was read for.
    pub(super) generation: i64,
    /// What the last promoted commit wanted.
    pub(super) promoted: Option<(GitRevision, Arc<Set>)>,
    /// The kinds that are known.
    pub(super) sorts: Sorts,
    /// Those that were, in case they still are what they were.
    pub(super) former: Sorts,
    /// The status of a source without an object.
    pub(super) status: Option<GitSourceStatus>,
    /// What the server refused, and when.
    pub(super) refused: BTreeMap<Id, (Timestamp, Refusal)>,
    /// What the server's dry runs said.
    pub(super) answers: BTreeMap<Id, Answer>,
    /// What was found out about objects.
    memo: Memo,
    /// The files that were read, by path, each with its hash and size; for this generation of the specification.
    pub(super) parts: HashMap<String, ((String, usize), Part)>,
    /// How everything was when there was nothing to do.
    rest: Option<Rest>,
    /// Objects as they were decoded, each with its version and what it was seen as last.
    pub(super) objects: HashMap<Id, (u64, Value, Arc<Object>)>,
    /// Who is told of commits, for this generation of the specification.
    pub(super) teller: Option<(i64, Teller)>,
    /// What the specification said about that.
    told_as: Option<(String, Option<String>, Option<ReportTo>)>,
    /// What was last written to an object, how often in a row, and since when.
    writes: HashMap<Id, (Text, u32, Timestamp)>,
    /// The commit whose revert was offered last, or could not be at that moment, and the branch.
    pub(super) offered: Option<(Text, Timestamp, Option<String>)>,
    /// The commit that names a reviewed plan, and how it compares with that.
    pub(super) review: Option<(Text, Review)>,
    /// What stands behind objects that are not done, when it was read, and at which version of the object.
    pub(super) details: BTreeMap<Id, (Timestamp, u64, Detail)>,
    /// Whether webhooks are taken.
    door: Option<Door>,
    /// What the source's account may read.
    pub(super) rights: Rights,
    /// The events of the pass before; none before the first.
    announced: Option<Vec<Event>>,
    /// The first commit in this cluster, if the repository says how it ended in another one: it is told nothing more.
    spared: Option<String>,
    /// What commits were last told.
    told: HashMap<(Text, Option<Text>), Report>,
}

/// What became of the door for webhooks.
#[derive(Debug, PartialEq, Eq)]
enum Door {
    /// It is as the specification of this generation wants it.
    Settled(i64),
    /// It is closed, for a reason that somebody may do something about.
    Closed(String),
}

/// What must be as it was for there to be nothing to do, as long as nothing is heard of the cluster.
#[derive(Debug, Clone, PartialEq)]
struct Rest {
    generation: i64,
    request: String,
    head: Option<git::Fetched>,
    failed: Option<String>,
    waits_for: Vec<String>,
}

impl Rest {
    fn of(state: &State, subject: &Subject) -> Rest {
        Rest {
            generation: subject.generation,
            request: subject.request.clone(),
            head: state.head.clone(),
            failed: state.failed.clone(),
            waits_for: subject.waits_for.clone(),
        }
    }
}

/// Whether the same would be decided as long as nothing new is heard: everything that matters is watched, and nothing is
/// waited for.
fn is_at_rest(state: &State, view: &View, verdict: &Verdict) -> bool {
    let Fetched::Commit(commit) = &view.fetched else { return false };
    let mut sets = [&commit.set].into_iter().chain(commit.promoted.as_ref().map(|(_, set)| set));
    let is_watched = |set: &Arc<Set>| {
        let mut all = set.objects.iter().chain(&set.hooks);
        all.all(|want| want.sort.served && !want.id.is("", "Secret"))
    };
    verdict.actions.is_empty()
        && verdict.wake.is_none()
        && verdict.offer.is_none()
        && state.refused.is_empty()
        && view.trouble.is_none()
        && view.denied.is_none()
        && view.unlisted.is_none()
        && !matches!(state.door, Some(Door::Closed(_)))
        && commit.set.problems.is_empty()
        && sets.all(is_watched)
}

impl State {
    /// When the repository is to be looked at again.
    pub(super) fn poll_at(&self, subject: &Subject, spec: &GitSource) -> Option<Timestamp> {
        self.polled.map(|polled| super::later(polled, spec.next_look(&subject.identity(), self.polls)))
    }
}

/// How often the same may be written to an object within [`RIVALRY`].
const MOST_WRITES: u32 = 8;
/// How many words are remembered so as not to be said twice; those about other commits are forgotten first.
const MOST_TOLD: usize = 256;
/// No generation of any specification.
const NEVER: i64 = -1;
/// How long writes count.
const RIVALRY: SignedDuration = SignedDuration::from_secs(60);

/// A pass that has ended.
pub struct Done {
    pub(super) state: Box<State>,
    pub(super) written: Vec<Written>,
    pub(super) outcome: Outcome,
}

/// One pass.
pub async fn pass(
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    api: Api,
    subject: Subject,
    mut state: Box<State>,
    why: Why,
) -> Done {
    let mut written = Vec::new();
    let outcome = Pass { shared: &shared, settings: &settings, api: &api, subject: &subject }
        .go(&mut state, why, &mut written)
        .await;
    let outcome = match outcome {
        Ok(wake) => Outcome::Settled(wake),
        Err(error) => {
            if error.code() == Some(409) {
                tracing::debug!(source = %subject.place, %error, "conflict; retrying on the newer version");
            } else {
                tracing::warn!(source = %subject.place, %error, "a sync failed; trying again");
            }
            let after = error.after().and_then(|after| SignedDuration::try_from(after).ok());
            Outcome::Failed(after.map(|after| super::later(settings.clock.now(), after)))
        }
    };
    Done { state, written, outcome }
}

/// Why there is a pass.
#[derive(Debug, Clone, Copy)]
pub struct Why {
    /// Somebody said that the repository has changed.
    pub(super) hinted: bool,
    /// Something was heard of the cluster.
    pub(super) heard: bool,
}

struct Pass<'p> {
    shared: &'p Shared,
    settings: &'p Settings,
    api: &'p Api,
    subject: &'p Subject,
}

impl Pass<'_> {
    async fn go(&self, state: &mut State, why: Why, written: &mut Vec<Written>) -> Result<Option<Timestamp>, Error> {
        let subject = self.subject;
        let status = self.status(state).await?;
        let spec = subject.spec.as_ref().ok().filter(|spec| !spec.suspend && !subject.is_leaving);
        let (settings, shared) = (self.settings, self.shared);
        let fetching = spec.map(|spec| Fetching { subject, spec, status: &status, settings, shared });
        if let Some(fetching) = fetching {
            fetch::look(state, fetching, why.hinted).await;
        }
        let now_at = Rest::of(state, subject);
        if !why.heard && spec.is_some() && state.rest.as_ref() == Some(&now_at) {
            return Ok(self.poll(state));
        }
        state.rest = None;
        let fetched = match fetching {
            Some(fetching) => fetch::take(state, fetching).await,
            None => Fetched::Nothing,
        };
        let Some(mut view) = self.view(state, status, fetched).await? else { return Ok(None) };
        let mut verdict = match self.decide(&view) {
            Ok(verdict) => verdict,
            Err(broken) => return self.refuse(state, &view, &broken, written).await,
        };
        if let Some(guard) = verdict.guard {
            // Everything else when that is seen.
            written.extend(keep::guard(self.api, subject, guard).await?);
            return Ok(None);
        }
        // What the inventory does not name yet is named before it is written. Nothing else waits for words.
        let is_named = verdict.status.inventory == view.status.inventory;
        let mut done = Acted::default();
        let mut acted = Ok(());
        if is_named {
            acted = self.act(state, &view, &verdict, written, &mut done).await;
        }
        if let (Some(offer), Some(spec)) = (&verdict.offer, spec) {
            // Never before the verdict that wants it was checked. What the commit is told includes where its revert is.
            let fetching = Fetching { subject, spec, status: &view.status, settings, shared };
            view.offered = offer::offer(state, fetching, offer).await;
            if view.offered.is_some() {
                verdict = match self.decide(&view) {
                    Ok(verdict) => verdict,
                    Err(broken) => return self.refuse(state, &view, &broken, written).await,
                };
            }
        }
        let published = self.publish(state, &view, &mut verdict, written).await;
        if !is_named && published.is_ok() {
            acted = self.act(state, &view, &verdict, written, &mut done).await;
        }
        // Whatever came of the rest: what was done is said.
        self.announce(state, &view, &verdict, &done).await;
        published.and(acted)?;
        if written.is_empty() && is_at_rest(state, &view, &verdict) {
            state.rest = Some(now_at);
        }
        Ok([verdict.wake, self.poll(state)].into_iter().flatten().min())
    }

    /// What is decided; a verdict that would break rules is never handed out.
    fn decide(&self, view: &View) -> Result<Verdict, Vec<Broken>> {
        let verdict = decide(view);
        let broken = check(view, &verdict);
        let reasons: Vec<String> = verdict.reasons.iter().map(ToString::to_string).collect();
        let (actions, reasons) = (verdict.actions.len(), reasons.join("; "));
        tracing::info!(source = %self.subject.place, actions, reasons, "decided");
        if broken.is_empty() { Ok(verdict) } else { Err(broken) }
    }

    /// Says in status, to the commit, as an event and as a number that what was decided would break rules.
    async fn refuse(
        &self,
        state: &mut State,
        view: &View,
        broken: &[Broken],
        written: &mut Vec<Written>,
    ) -> Result<Option<Timestamp>, Error> {
        let mut verdict = refuse(view, broken);
        let reasons: Vec<String> = verdict.reasons.iter().map(ToString::to_string).collect();
        tracing::error!(source = %self.subject.place, reasons = reasons.join("; "), "would break a rule");
        self.api.metrics().with(|metrics| metrics.refused(Machine::Sync));
        self.publish(state, view, &mut verdict, written).await?;
        // Said once: the next pass finds it in status.
        let message = |status: &GitSourceStatus| {
            let stalled = status.conditions.iter().find(|told| told.r#type == condition::STALLED);
            stalled.map(|told| told.message.clone())
        };
        if let Some(new) = message(&verdict.status).filter(|new| message(&view.status).as_ref() != Some(new)) {
            let event = Event { warning: true, reason: reason::RECONCILIATION_ERROR, message: new };
            keep::announce(self.api, self.subject, event, view.now).await;
        }
        Ok(self.poll(state))
    }

    /// Tells commits what was decided, shows it on the page of the source and records it.
    async fn publish(
        &self,
        state: &mut State,
        view: &View,
        verdict: &mut Verdict,
        written: &mut Vec<Written>,
    ) -> Result<(), Error> {
        let subject = self.subject;
        self.meet_teller(state).await;
        self.open_door(state).await;
        if view.status.seen.is_none() {
            state.spared = self.spared(state, verdict);
        }
        self.tell(state, verdict).await;
        if let (Some(board), Ok(spec)) = (&self.settings.board, &subject.spec) {
            board.show(&subject.place, spec, &verdict.status);
        }
        self.api.metrics().with(|metrics| metrics.synced(&subject.place, &view.status, &verdict.status));
        // Overtaken commits were told: their last trace may be recorded away.
        written.extend(keep::record(self.api, subject, &view.status, &verdict.status).await?);
        if matches!(subject.kept, Kept::ConfigMap) {
            state.status = Some(verdict.status.clone());
        }
        Ok(())
    }

    /// Says as events what is new since the pass before. What was so before this daemon began is no news.
    async fn announce(&self, state: &mut State, view: &View, verdict: &Verdict, acted: &Acted) {
        let events = announcements(view, verdict, acted);
        let is_first = state.announced.is_none() && verdict.actions.is_empty() && verdict.status == view.status;
        let before = state.announced.replace(events.clone()).unwrap_or_default();
        for event in events.into_iter().filter(|event| !is_first && !before.contains(event)) {
            keep::announce(self.api, self.subject, event, view.now).await;
        }
    }

    fn poll(&self, state: &State) -> Option<Timestamp> {
        let spec = self.subject.spec.as_ref().ok().filter(|spec| !spec.suspend)?;
        if self.subject.is_leaving {
            // Its repository is not looked at any more: what holds it back is, at the same pace.
            return Some(super::later(self.settings.clock.now(), spec.interval));
        }
        state.poll_at(self.subject, spec)
    }

    async fn status(&self, state: &mut State) -> Result<GitSourceStatus, Error> {
        match &self.subject.kept {
            Kept::Object(status, _) => Ok(GitSourceStatus::clone(status)),
            Kept::ConfigMap => match &state.status {
                Some(status) => Ok(status.clone()),
                None => {
                    let status = keep::load(self.api, &self.subject.place).await?;
                    state.status = Some(status.clone());
                    Ok(status)
                }
            },
        }
    }

    /// Whether the source stays.
    async fn life(&self) -> Result<Life, Error> {
        let guarded = self.subject.is_guarded();
        match (&self.subject.kept, self.subject.is_leaving) {
            (Kept::ConfigMap, _) => Ok(Life::Given),
            (Kept::Object(..), false) => Ok(Life::Stays { guarded }),
            (Kept::Object(..), true) => {
                let namespace = Place::new("", &self.subject.place.namespace);
                let found = self.api.object(&Resource::new("", "v1", "namespaces"), &namespace).await;
                let with_namespace = match found {
                    Ok(found) => found.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null()),
                    // Whoever may not read namespaces waits for rights in them.
                    Err(error) if matches!(error.code(), Some(403 | 404)) => false,
                    Err(error) => return Err(error),
                };
                Ok(Life::Leaves { guarded, with_namespace })
            }
        }
    }

    /// Everything that a decision may know; `None` if something is not known yet and will bring us back.
    async fn view(&self, state: &mut State, status: GitSourceStatus, fetched: Fetched) -> Result<Option<View>, Error> {
        let subject = self.subject;
        let now = self.settings.clock.now();
        let interval = subject.spec.as_ref().map(|spec| spec.interval).unwrap_or_default();
        state.refused.retain(|_, (at, _)| now.duration_since(*at) < interval);
        let offered = match &fetched {
            Fetched::Commit(commit) => offer::offered(state, &commit.revision.commit),
            Fetched::Nothing | Fetched::Failed(_) => None,
        };
        let mut view = View {
            now,
            namespace: subject.place.namespace.clone(),
            name: subject.place.name.clone(),
            generation: subject.generation,
            life: self.life().await?,
            spec: subject.spec.clone(),
            status,
            request: subject.request.clone(),
            fetched,
            live: HashMap::new(),
            sets: Vec::new(),
            waits_for: subject.waits_for.clone(),
            refused: state.refused.iter().map(|(id, (_, refusal))| (id.clone(), refusal.clone())).collect(),
            answers: BTreeMap::new(),
            details: BTreeMap::new(),
            offered,
            denied: None,
            unlisted: None,
            memo: state.memo.clone(),
            trouble: state.teller.as_ref().and_then(|(_, teller)| teller.trouble()),
        };
        let commit = match view.fetched.clone() {
            Fetched::Commit(commit) => Some(commit),
            // Without a specification nothing of it is deleted, and there is nobody in whose name to look.
            Fetched::Nothing if subject.is_leaving && subject.spec.is_ok() => None,
            Fetched::Nothing | Fetched::Failed(_) => return Ok(Some(view)),
        };
        let promoted = commit.as_ref().and_then(|commit| commit.promoted.as_ref());
        let followed = commit.as_ref().map(|commit| (&commit.revision, &*commit.set));
        let wanted: Vec<(&GitRevision, &Set)> =
            followed.into_iter().chain(promoted.map(|(revision, set)| (revision, &**set))).collect();
        let sets: Vec<&Set> = wanted.iter().map(|(_, set)| *set).collect();
        let reader = account::acting(self.api, subject);
        let observing = Observing { source: &subject.place, reader: &reader, now };
        match observe::observe(self.shared, observing, state, &view.status, &sets).await? {
            Observed::Later => return Ok(None),
            Observed::Live(live) => view.live = live,
            Observed::Denied(missing) => {
                view.denied = Some(missing);
                return Ok(Some(view));
            }
        }
        view.answers = state.answers.clone();
        for (revision, set) in &wanted {
            if observe::ask(&reader, state, &view, set, revision).await? {
                view.answers = state.answers.clone();
            }
        }
        if let Some(commit) = &commit {
            view.details = detail::read(&reader, state, &view, &commit.set).await;
        }
        let namespaces: BTreeSet<Text> = sets.iter().flat_map(|set| prune::namespaces(&view, set)).collect();
        if !namespaces.is_empty() {
            match read::sets(&reader, &namespaces).await? {
                Ok(sets) => view.sets = sets,
                Err(missing) => view.unlisted = Some(missing),
            }
        }
        Ok(Some(view))
    }

    /// Finds out who is told, once for each specification.
    async fn meet_teller(&self, state: &mut State) {
        let (subject, shared) = (self.subject, self.shared);
        let (Ok(spec), Some((_, store))) = (&subject.spec, &state.store) else { return };
        if state.teller.as_ref().is_some_and(|(generation, _)| *generation == subject.generation) {
            return;
        }
        let told_as = Some((spec.url.clone(), spec.secret.clone(), spec.report.clone()));
        let kept = state.teller.take().filter(|_| state.told_as == told_as);
        let telling = Telling {
            place: subject.place.clone(),
            uid: subject.uid.clone(),
            spec: spec.clone(),
            store: store.clone(),
            remote: Remote::parse(&spec.url).ok().filter(|_| subject.folder.is_none()),
            network: self.settings.network.clone(),
            secrets: fetch::secrets(shared, subject),
            api: self.api.clone(),
            clock: self.settings.clock,
        };
        // One that knows what it said goes on; a new one would have to read it first.
        let teller = match kept {
            Some((_, teller)) => Ok(teller),
            None => Teller::of(telling).await,
        };
        match teller {
            Ok(teller) => (state.teller, state.told_as) = (Some((subject.generation, teller)), told_as),
            // Looked at again in the next pass: somebody may have done something about it.
            Err(why) => (state.teller, state.told_as) = (Some((NEVER, Teller::Nobody(Some(why)))), None),
        }
    }

    /// Opens the door for webhooks, once for each specification; tried again in each pass until its Secret can be read.
    async fn open_door(&self, state: &mut State) {
        let subject = self.subject;
        let (Some(hooks), Ok(spec)) = (&self.settings.hooks, &subject.spec) else { return };
        if state.door == Some(Door::Settled(subject.generation)) {
            return;
        }
        let door =
            webhook::Source { namespace: subject.place.namespace.to_string(), name: subject.place.name.to_string() };
        let settled = Some(Door::Settled(subject.generation));
        let Some(name) = &spec.webhook else {
            state.door = settled;
            return hooks.close(&door);
        };
        match fetch::secrets(self.shared, subject).read(&subject.place.namespace, name).await {
            Ok(data) => {
                let token = data.get("token").map(|bytes| String::from_utf8_lossy(bytes).trim_end().to_owned());
                hooks.open(door, Secret::new(token.unwrap_or_default()));
                state.door = settled;
            }
            Err(why) => {
                hooks.close(&door);
                let message = format!("webhooks are not taken: {why}");
                let closed = Some(Door::Closed(message.clone()));
                if state.door != closed {
                    let event = Event { warning: true, reason: "WebhooksClosed", message };
                    keep::announce(self.api, subject, event, self.settings.clock.now()).await;
                    state.door = closed;
                }
            }
        }
    }

    /// The first commit of a cluster that is new to the source, if the repository says how it ended elsewhere.
    fn spared(&self, state: &State, verdict: &Verdict) -> Option<String> {
        let (commit, spec) = (&verdict.status.seen.as_ref()?.commit, self.subject.spec.as_ref().ok()?);
        let (_, teller) = state.teller.as_ref()?;
        teller.has_ended(&self.subject.place, spec, commit).then(|| commit.clone())
    }

    /// Tells commits what is new to them. Whoever cannot be told never holds anything up.
    async fn tell(&self, state: &mut State, verdict: &Verdict) {
        let reports: Vec<Report> =
            verdict.reports.iter().map(|report| reviewed(report, state.review.as_ref())).collect();
        for report in &reports {
            let about = (report.commit.clone(), report.rollout.clone());
            let last = state.told.get(&about);
            // What ended was not overtaken.
            let ended = last.is_some_and(|last| last.state.ends() && report.state == sync::State::Superseded);
            if ended || last == Some(report) {
                continue;
            }
            if state.told.len() > MOST_TOLD {
                state.told.retain(|(commit, _), _| verdict.reports.iter().any(|report| report.commit == *commit));
            }
            state.told.insert(about, report.clone());
            tracing::info!(
                source = %self.subject.place, commit = %report.commit, rollout = report.rollout.as_deref(),
                state = report.state.name(), description = report.words, "commit status updated"
            );
            if let (Some((_, teller)), Ok(spec)) = (&state.teller, &self.subject.spec) {
                let (place, page) = (&self.subject.place, self.settings.page(&self.subject.place));
                if state.spared.as_deref() != Some(&*report.commit) {
                    teller.tell(place, spec, report, page.as_deref(), self.settings.clock).await;
                }
            }
            if let Some(told) = &self.shared.told {
                let _ = told.send(Told { source: self.subject.place.clone(), report: report.clone() }).await;
            }
        }
    }

    async fn act(
        &self,
        state: &mut State,
        view: &View,
        verdict: &Verdict,
        written: &mut Vec<Written>,
        acted: &mut Acted,
    ) -> Result<(), Error> {
        let api = account::acting(self.api, self.subject);
        for action in &verdict.actions {
            let done = match action {
                Action::Apply(write) => {
                    let reasons = &verdict.reasons;
                    self.apply(&api, state, view, write, reasons, written).await?.then_some(&write.id)
                }
                Action::Prune(stale) | Action::Replace(stale) | Action::EndHook(stale) => {
                    self.prune(&api, state, view, stale, written).await?.then_some(&stale.id)
                }
                Action::HandOver(handover) => {
                    self.hand_over(&api, state, handover, written).await?.then_some(&handover.service)
                }
            };
            acted.done.extend(done.cloned());
        }
        Ok(())
    }

    /// Gives a Service to another Rollout; whether the server took that.
    async fn hand_over(
        &self,
        api: &Api,
        state: &mut State,
        handover: &Handover,
        written: &mut Vec<Written>,
    ) -> Result<bool, Error> {
        let id = &handover.service;
        let place = Place { namespace: id.namespace.clone(), name: id.name.clone() };
        let key = ObjectKey { resource: Resource::new("", "v1", "services"), place };
        match api.patch(&key.resource, &key.place, "", &handover.patch()).await {
            Ok(object) => {
                written.push(Written::Version(key, version_of(&object)));
                Ok(true)
            }
            Err(error) if error.is_refusal() => {
                let refusal = Refusal::handover(explained(id, &error).message);
                state.refused.insert(id.clone(), (self.settings.clock.now(), refusal));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn apply(
        &self,
        api: &Api,
        state: &mut State,
        view: &View,
        write: &Write,
        reasons: &[Reason],
        written: &mut Vec<Written>,
    ) -> Result<bool, Error> {
        let Some(key) = self.key(state, view, &write.id, version_in(write)) else { return Ok(false) };
        let mut patch = write.patch.clone();
        if let Some(version) = write.version {
            // Whoever wrote since then was not seen by this decision.
            patch.set_at(&["metadata", "resourceVersion"], version.to_string());
        }
        let force = if write.force { Force::Taken } else { Force::Left };
        match api.apply(&key.resource, &key.place, &patch, force, Run::Wet).await {
            Ok(object) => {
                state.refused.remove(&write.id);
                let (digest, version) = (digest_of(&write.patch), version_of(&object));
                if write.version == Some(version) {
                    // Nothing changed, whatever was expected: it is not asked for again.
                    let answer = Answer { digest, version, difference: Difference::Same };
                    state.answers.insert(write.id.clone(), answer);
                } else {
                    self.count(state, &write.id, digest, view.live.get(&write.id), reasons);
                }
                written.push(Written::Version(key, version));
                if write.id.is("apiextensions.k8s.io", "CustomResourceDefinition") {
                    // Its kind may be served now: the commit is read again.
                    let former = super::super::kinds::forget(&mut state.sorts);
                    state.former.extend(former);
                    state.followed = None;
                }
                Ok(true)
            }
            Err(error) if error.is_refusal() => {
                let Explained { message, field, immutable } = explained(&write.id, &error);
                let line = match (&field, &view.fetched) {
                    (Some(field), Fetched::Commit(commit)) => {
                        let commit =
                            write.patch.str_at(&["metadata", "annotations", COMMIT]).unwrap_or(&commit.revision.commit);
                        fetch::line(state, self.subject, commit, &write.place.0, &write.id, field).await
                    }
                    _ => None,
                };
                let version = Some(write.version.unwrap_or_default());
                let digest = digest_of(&write.patch);
                let refusal = Refusal { digest, version, message, immutable, line };
                state.refused.insert(write.id.clone(), (self.settings.clock.now(), refusal));
                // The others are not to suffer; the next look tells.
                written.push(Written::Version(key, 0));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Counts how often the same was written: whoever takes it back each time is named instead of fought.
    fn count(&self, state: &mut State, id: &Id, digest: Text, live: Option<&Arc<Object>>, reasons: &[Reason]) {
        let now = self.settings.clock.now();
        let entry = state.writes.entry(id.clone()).or_insert_with(|| (digest.clone(), 0, now));
        if entry.0 != digest || now.duration_since(entry.2) > RIVALRY {
            *entry = (digest.clone(), 0, now);
        }
        entry.1 += 1;
        if entry.1 >= MOST_WRITES {
            let fields = reasons.iter().find_map(|reason| match reason {
                Reason::Heals(of, fields) | Reason::Changes(of, fields) if of == id => Some(fields.as_slice()),
                _ => None,
            });
            let who = live.and_then(|live| sync::ownership::last_writer(live, fields.unwrap_or_default()));
            let who = who.map_or_else(|| "another client".to_owned(), |who| who.to_string());
            let message = format!(
                "{who} changes it back each time: it was written {MOST_WRITES} times within {RIVALRY:#}; \
                 stop that, or leave the field out of git"
            );
            state
                .refused
                .insert(id.clone(), (now, Refusal { digest, version: None, message, immutable: false, line: None }));
        }
    }

    async fn prune(
        &self,
        api: &Api,
        state: &mut State,
        view: &View,
        stale: &Stale,
        written: &mut Vec<Written>,
    ) -> Result<bool, Error> {
        let Some(key) = self.key(state, view, &stale.id, stale.version.clone()) else { return Ok(false) };
        let version = view.live.get(&stale.id).map_or(0, |live| live.version());
        let policy = prune::propagation(&stale.id, view);
        let options = value!({"preconditions": {"uid": stale.uid.as_str()}, "propagationPolicy": policy});
        match api.delete(&key.resource, &key.place, &options).await {
            Ok(_) => {
                written.push(Written::Deleted(key, stale.uid.clone(), version));
                // It may have stood in the way of what was refused.
                state.refused.clear();
                Ok(true)
            }
            Err(error) if error.code() == Some(404) => Ok(true),
            Err(error) if error.is_refusal() => {
                let refusal = Refusal::deletion(explained(&stale.id, &error).message);
                state.refused.insert(stale.id.clone(), (self.settings.clock.now(), refusal));
                written.push(Written::Version(key, 0));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn key(&self, state: &State, view: &View, id: &Id, version: Text) -> Option<ObjectKey> {
        let mut sets: Vec<&Set> = Vec::new();
        if let Fetched::Commit(commit) = &view.fetched {
            sets.push(&commit.set);
            sets.extend(commit.promoted.as_ref().map(|(_, set)| &**set));
        }
        let resource = observe::resource_of(state, &sets, id, &version)?;
        Some(ObjectKey { resource, place: Place { namespace: id.namespace.clone(), name: id.name.clone() } })
    }
}

fn version_in(write: &Write) -> Text {
    let api_version = write.patch.str_at(&["apiVersion"]).unwrap_or_default();
    api_version.rsplit('/').next().unwrap_or_default().into()
}

/// What the server said, for people.
fn explained(id: &Id, error: &Error) -> Explained {
    let causes = match error {
        Error::Refused { causes, .. } => causes.as_slice(),
        Error::NotLeading { .. } | Error::BadName(_) | Error::Unreachable { .. } => &[],
    };
    let code = error.code().unwrap_or_default();
    refusal::explain(id, refusal::Answer { code, message: error.words(), causes })
}
