//! The GitSources of a cluster: one task watches them and their objects, passes carry out what is decided.
//!
//! ```text
//! hint, poll, watch ──▶ queue ──▶ pass: fetch → read → observe → decide → act and record → commit status
//! ```
//!
//! Works beside the engine of Rollouts and shares nothing with it but the cluster. What a source reads, asks and writes is
//! read, asked and written in the name of its account. Never holds a Secret longer than a pass, never watches Secrets: those
//! that a source writes are read one by one.

pub mod account;
mod board;
mod detail;
mod fetch;
mod keep;
mod observe;
mod offer;
mod pass;
mod read;
pub mod secret;
mod tell;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    future::Future,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    task::{AbortHandle, Id as TaskId, JoinError, JoinSet},
};

pub use self::keep::OUTCOME;
use self::{
    keep::Subject,
    pass::{Done, Why},
};
use super::{
    api::Api,
    clock::Clock,
    errand::Errands,
    git::{Network, Stores},
    watch,
    webhook::Hooks,
};
use crate::{
    api::constants::{TIDEGATE_GROUP, label},
    engine::{
        cache::{Cache, News, place_of, version_of},
        fence::Fence,
        key::{Key, Machine, ObjectKey, Place, Resource},
        metrics::Metrics,
        quarantine::{self, Quarantine},
        queue::{Outcome, Queue},
        state::unknown,
        write::Written,
    },
    kubernetes::value::Value,
    model::{
        git_source::{Drift, GitSource, OnAbort, OnImmutable, OnNewCommit, Prune, Reference, Rendering},
        remote::Remote,
        weight::Limit,
    },
    sync::{Report, view::mark},
};

pub use self::{board::Board, fetch::scope, pass::State, read::sets};

/// How the sources are looked after.
#[derive(Clone, Default)]
pub struct Settings {
    /// Only GitSources of this namespace; all if not given.
    pub namespace: Option<String>,
    /// Sources that are given on the command line.
    pub given: Vec<Given>,
    /// Whether GitSources of the cluster are looked after.
    pub objects: Objects,
    /// Where fetched repositories are kept.
    pub cache: PathBuf,
    /// Repositories of which there are copies on this machine, by their URLs: those are read instead.
    pub copies: Vec<(String, PathBuf)>,
    /// How hosts are reached; without it only repositories on this machine are read.
    pub network: Option<Arc<Network>>,
    /// The doors for webhooks.
    pub hooks: Option<Hooks>,
    /// Whether references of repositories on this machine are watched.
    pub references: References,
    /// The pages of sources.
    pub board: Option<Board>,
    /// Where people reach them, without a slash at its end: what commits are told links there.
    pub pages: Option<String>,
    /// What time it is.
    pub clock: Clock,
}

impl Settings {
    /// Where people see more of a source.
    fn page(&self, place: &Place) -> Option<String> {
        Some(format!("{}/sources/{}/{}", self.pages.as_deref()?, place.namespace, place.name))
    }
}

/// Whether references of repositories on this machine are watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum References {
    /// They are looked at when it is time, or when somebody says so.
    #[default]
    Polled,
    /// They are: a commit is seen at once.
    Watched,
}

/// Whether GitSources of the cluster are looked after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Objects {
    /// They are, if the cluster has the kind.
    #[default]
    Followed,
    /// They are not.
    Ignored,
}

/// A source without an object: what a GitSource would say, and where its repository is.
#[derive(Debug, Clone)]
pub struct Given {
    /// The namespace that its objects go to, and in which it keeps its inventory.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What to sync, and how. Its URL may be a folder.
    pub spec: GitSource,
    /// The folder of the repository, if it is on this machine.
    pub folder: Option<PathBuf>,
}

impl Given {
    /// A source that brings whatever the folder of a repository holds, with the rights of whoever runs this.
    pub fn new(
        namespace: &str,
        name: &str,
        url: &str,
        path: &str,
        reference: Reference,
        interval: SignedDuration,
    ) -> Given {
        let folder = PathBuf::from(url);
        let spec = GitSource {
            url: url.to_owned(),
            reference,
            path: path.trim_matches('/').to_owned(),
            exclude: Vec::new(),
            kustomize: Rendering::default(),
            interval,
            suspend: false,
            secret: None,
            verify: None,
            service_account: String::new(),
            target_namespace: None,
            kinds: vec!["*".to_owned()],
            namespaces: vec!["*".to_owned()],
            prune: Prune::UpTo(Limit::Percent(50)),
            drift: Drift::Heal,
            depends_on: Vec::new(),
            webhook: None,
            report: None,
            plan: None,
            on_abort: OnAbort::Hold,
            on_immutable: OnImmutable::Fail,
            on_new_commit: OnNewCommit::Supersede,
        };
        let folder = folder.is_dir().then_some(folder);
        Given { namespace: namespace.to_owned(), name: name.to_owned(), spec, folder }
    }
}

/// What a commit is told, and by which source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The source.
    pub source: Place,
    /// What.
    pub report: Report,
}

/// Asks for a look at once, by anybody who heard of a new commit. Only ever a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// At one source.
    Source(Place),
    /// At every source of a repository.
    Repository(String),
}

/// How many passes may run at once.
const WORKERS: usize = 8;
/// How many hosts of repositories may be talked to at once.
const MOST_FETCHES: usize = 16;
/// How many passes there may be, those among them that wait for such hosts.
const MOST_PASSES: usize = 1024;
/// How many deliveries may wait.
const BACKLOG: usize = 1024;
/// How long nothing happens before the loop looks around anyway.
const IDLE: Duration = Duration::from_secs(60);
/// How often fences are looked at that stand too long.
const OVERDUE_CHECK: Duration = Duration::from_secs(5);
/// How long passes under way may take to end when the daemon is told to.
const FAREWELL: Duration = Duration::from_secs(10);

/// Works until it is told to stop. What commits are told goes to `told`, too.
pub async fn run(
    api: Api,
    settings: Settings,
    hints: Receiver<Hint>,
    told: Option<Sender<Told>>,
    stop: impl Future<Output = ()>,
) {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    let (bell, rung) = mpsc::channel(BACKLOG);
    let shared = Arc::new(Shared {
        api: api.clone(),
        sender,
        bell,
        seen: Mutex::default(),
        errands: Errands::new(MOST_FETCHES),
        stores: Stores::new(settings.cache.clone()),
        told,
        namespace: settings.namespace.clone(),
    });
    let mut sources = Sources {
        api,
        clock: settings.clock,
        settings: Arc::new(settings),
        shared,
        queue: Queue::default(),
        fence: Fence::default(),
        states: HashMap::new(),
        hinted: HashSet::new(),
        heard: HashSet::new(),
        passes: JoinSet::new(),
        under_way: HashMap::new(),
        quarantine: Quarantine::default(),
    };
    sources.begin().await;
    sources.work(receiver, hints, rung, stop).await;
}

/// The resource of our own kind.
pub fn git_sources() -> Resource {
    Resource::new(TIDEGATE_GROUP, "v1alpha1", "gitsources")
}

/// What the task and its passes share.
struct Shared {
    api: Api,
    sender: Sender<(Resource, News)>,
    /// Rung when a reference of a repository on this machine may have moved.
    bell: Sender<Hint>,
    /// The requests to hosts of repositories.
    errands: Errands,
    /// One store for each repository, however many sources follow it.
    stores: Stores,
    seen: Mutex<Seen>,
    told: Option<Sender<Told>>,
    /// The only namespace that is followed, if there is one.
    namespace: Option<String>,
}

#[derive(Default)]
struct Seen {
    cache: Cache,
    watches: HashMap<Resource, Watch>,
    /// What each source follows. What none does any more is let go of.
    needed: HashMap<Place, BTreeSet<Resource>>,
}

/// A watch that is under way.
struct Watch {
    task: AbortHandle,
    selector: String,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what is in a namespace can be followed.
    fn reaches(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }

    /// Notes what a source follows now.
    fn needs(&self, source: &Place, resources: BTreeSet<Resource>) {
        self.seen().needed.insert(source.clone(), resources);
    }

    /// Ends the watches that no source needs any more. Answers which: nothing of these is seen any more.
    fn let_go(&self) -> Vec<Resource> {
        let mut ended = Vec::new();
        let mut seen = self.seen();
        let Seen { cache, watches, needed } = &mut *seen;
        let idle = |resource: &Resource| {
            *resource != git_sources() && !needed.values().any(|resources| resources.contains(resource))
        };
        watches.retain(|resource, watch| {
            if !idle(resource) {
                return true;
            }
            tracing::debug!(%resource, "ending an unused watch");
            watch.task.abort();
            cache.drop(resource);
            ended.push(resource.clone());
            false
        });
        ended
    }

    /// Begins to follow a resource, if nobody does. Answers whether all of it is known.
    fn follow(&self, resource: &Resource, selector: &str) -> bool {
        let mut seen = self.seen();
        if !seen.watches.contains_key(resource) {
            let task = self.watch(resource, selector);
            seen.watches.insert(resource.clone(), Watch { task, selector: selector.to_owned() });
        }
        seen.cache.is_listed(resource)
    }

    /// Begins a watch anew: with a list.
    fn follow_anew(&self, resource: &Resource) {
        if let Some(watch) = self.seen().watches.get_mut(resource) {
            watch.task.abort();
            watch.task = self.watch(resource, &watch.selector);
        }
    }

    fn watch(&self, resource: &Resource, selector: &str) -> AbortHandle {
        let scope = watch::Scope {
            namespace: self.namespace.clone(),
            selector: selector.to_owned(),
            ..watch::Scope::of(resource)
        };
        tokio::spawn(watch::follow(self.api.clone(), scope, self.sender.clone())).abort_handle()
    }
}

struct Sources {
    api: Api,
    clock: Clock,
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    queue: Queue,
    fence: Fence,
    states: HashMap<Place, Box<State>>,
    /// Sources that are to be fetched whatever their interval says.
    hinted: HashSet<Place>,
    /// Sources of which something was heard.
    heard: HashSet<Place>,
    passes: JoinSet<Done>,
    /// What each pass is about, and which version of it.
    under_way: HashMap<TaskId, (Key, Box<Subject>)>,
    quarantine: Quarantine,
}

fn key(place: &Place) -> Key {
    Key { machine: Machine::Sync, place: place.clone() }
}

impl Sources {
    async fn begin(&mut self) {
        self.shared.seen().cache = Cache::with_owners();
        for given in &self.settings.given {
            self.queue.add(&key(&Place::new(&given.namespace, &given.name)));
        }
        if self.settings.objects == Objects::Ignored {
            return;
        }
        match self.api.get("/apis/tidegate.dev/v1alpha1").await {
            Ok(_) => {
                self.shared.follow(&git_sources(), "");
            }
            Err(error) => {
                tracing::info!(%error, "this cluster has no GitSources; `tidegate crds` prints their definition")
            }
        }
    }

    async fn work(
        &mut self,
        mut news: Receiver<(Resource, News)>,
        mut hints: Receiver<Hint>,
        mut rung: Receiver<Hint>,
        stop: impl Future<Output = ()>,
    ) {
        tokio::pin!(stop);
        let shared = self.shared.clone();
        let mut hinting = true;
        let mut overdue = tokio::time::interval(OVERDUE_CHECK);
        loop {
            self.start_passes();
            let now = self.clock.now();
            let wait = match self.queue.wake(now) {
                Some(wake) if wake <= now => IDLE,
                Some(wake) => wake.duration_since(now).try_into().unwrap_or(IDLE),
                None => IDLE,
            };
            tokio::select! {
                () = &mut stop => break,
                Some((resource, news)) = news.recv() => self.hear(&resource, news),
                Some(hint) = rung.recv() => self.take(&hint),
                () = shared.errands.left() => {}
                hint = hints.recv(), if hinting => match hint {
                    Some(hint) => self.take(&hint),
                    None => hinting = false,
                },
                Some(done) = self.passes.join_next_with_id(), if !self.passes.is_empty() => self.finish(done),
                _ = overdue.tick() => {
                    self.list_overdue();
                    self.tidy_stores().await;
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.shared.seen().watches.values().for_each(|watch| watch.task.abort());
        let farewell = async { while self.passes.join_next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
            tracing::warn!("syncs were still under way and are abandoned; the next start continues from what is");
        }
    }

    fn take(&mut self, hint: &Hint) {
        let places: Vec<Place> = match hint {
            Hint::Source(place) => vec![place.clone()],
            Hint::Repository(url) => {
                let given = self.settings.given.iter().filter(|given| given.spec.url == *url);
                let given = given.map(|given| Place::new(&given.namespace, &given.name));
                let seen = self.shared.seen();
                let named = |source: &&Value| source.str_at(&["spec", "url"]) == Some(url);
                given.chain(seen.cache.all(&git_sources()).filter(named).map(place_of)).collect()
            }
        };
        for place in places {
            self.queue.add(&key(&place));
            self.hinted.insert(place);
        }
    }

    /// Lists a resource anew if a fence has waited too long for one of its objects: an event was lost, or never to come.
    fn list_overdue(&mut self) {
        for resource in self.fence.overdue(self.clock.now()) {
            tracing::warn!(%resource, "a write was not seen in time; listing again");
            self.shared.follow_anew(&resource);
        }
    }

    /// Gives up the stores of repositories that no source names any more.
    async fn tidy_stores(&self) {
        if self.settings.objects == Objects::Followed && !self.shared.seen().cache.is_listed(&git_sources()) {
            return;
        }
        let named: HashSet<String> = {
            let seen = self.shared.seen();
            let objects = seen.cache.all(&git_sources()).filter_map(|source| source.str_at(&["spec", "url"]));
            let urls = objects.chain(self.settings.given.iter().map(|given| given.spec.url.as_str()));
            urls.filter_map(|url| Some(Remote::parse(url).ok()?.to_string())).collect()
        };
        self.shared.stores.remove_all_but(|url, _| named.contains(url)).await;
    }

    /// Takes in what a watch delivered: the fence is lowered, and who is concerned is queued.
    fn hear(&mut self, resource: &Resource, news: News) {
        let list = match &news {
            News::List(_, version) => Some(*version),
            News::Object(_) | News::Gone(_) | News::Unserved => None,
        };
        let shared = self.shared.clone();
        let mut seen = shared.seen();
        // The last words of a watch that was ended are nobody's.
        if !seen.watches.contains_key(resource) {
            return;
        }
        let is_unserved = news == News::Unserved;
        let unknown = unknown(&seen.cache, resource, &news);
        let changes = seen.cache.take(resource, news);
        let mut free = if is_unserved { self.fence.saw_list(resource, u64::MAX, |_| false) } else { Vec::new() };
        free.extend(unknown.into_iter().flat_map(|(object, version)| self.fence.saw_gone(&object, version)));
        for change in &changes {
            let object = ObjectKey { resource: resource.clone(), place: change.place.clone() };
            free.extend(match &change.after {
                Some(after) => {
                    let uid = after.str_at(&["metadata", "uid"]).unwrap_or_default();
                    let leaving = after.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
                    self.fence.saw(&object, uid, change.version, leaving)
                }
                None => self.fence.saw_gone(&object, change.version),
            });
        }
        if let Some(version) = list {
            let cache = &seen.cache;
            free.extend(self.fence.saw_list(resource, version, |place| cache.get(resource, place).is_some()));
            self.all(&seen.cache).iter().for_each(|place| self.look(place));
        }
        if *resource == git_sources() {
            for change in &changes {
                match &change.after {
                    Some(_) => self.look(&change.place),
                    None => {
                        self.queue.forget(&key(&change.place));
                        self.quarantine.release(&key(&change.place));
                        let now = self.settings.clock.now();
                        let forget = |metrics: &mut Metrics| metrics.forget(&resource.plural, &change.place, now);
                        shared.api.metrics().with(forget);
                        self.states.remove(&change.place);
                        self.settings.board.iter().for_each(|board| board.clear(&change.place));
                        seen.needed.remove(&change.place);
                    }
                }
                // Whoever depends on it may go on.
                self.all(&seen.cache).iter().for_each(|place| self.look(place));
            }
        } else {
            let marks: HashMap<_, _> =
                self.all(&seen.cache).into_iter().map(|place| (mark(&place.namespace, &place.name), place)).collect();
            for change in &changes {
                let object = change.after.as_ref().or(change.before.as_ref());
                let of = object.and_then(|object| object.str_at(&["metadata", "labels", label::SOURCE]));
                if let Some(place) = of.and_then(|of| marks.get(of)) {
                    self.look(place);
                }
            }
        }
        for key in free {
            self.look(&key.place);
        }
    }

    /// Something was heard of a source, or of what it wrote.
    fn look(&mut self, place: &Place) {
        self.heard.insert(place.clone());
        self.queue.add(&key(place));
    }

    /// Every source there is.
    fn all(&self, cache: &Cache) -> Vec<Place> {
        let given = self.settings.given.iter().map(|given| Place::new(&given.namespace, &given.name));
        given.chain(cache.all(&git_sources()).map(place_of)).collect()
    }

    fn start_passes(&mut self) {
        while self.passes.len() < (WORKERS + self.shared.errands.away()).min(MOST_PASSES) {
            let now = self.clock.now();
            let Some(key) = self.queue.next(now) else { return };
            // Never decide on less than was written; what is seen brings the key back.
            if self.fence.behind(&key).is_some() {
                self.queue.done(&key, Outcome::Settled(None), now);
                continue;
            }
            let Some(subject) = self.subject(&key.place) else {
                self.queue.done(&key, Outcome::Settled(None), now);
                continue;
            };
            if let Some(until) = self.quarantine.holds(&key, &subject.version(), now) {
                self.queue.done(&key, Outcome::Settled(Some(until)), now);
                continue;
            }
            let state = self.states.remove(&key.place).unwrap_or_default();
            let why = Why { hinted: self.hinted.remove(&key.place), heard: self.heard.remove(&key.place) };
            let (shared, settings, api) = (self.shared.clone(), self.settings.clone(), self.api.clone());
            let about = (key, Box::new(subject.clone()));
            let handle = self.passes.spawn(pass::pass(shared, settings, api, subject, state, why));
            self.under_way.insert(handle.id(), about);
        }
    }

    fn subject(&self, place: &Place) -> Option<Subject> {
        let given = |given: &&Given| *place == Place::new(&given.namespace, &given.name);
        if let Some(given) = self.settings.given.iter().find(given) {
            return Some(Subject::given(given));
        }
        let seen = self.shared.seen();
        let object = seen.cache.get(&git_sources(), place)?;
        let others = seen.cache.list(&git_sources(), &place.namespace);
        Some(Subject::object(object, others))
    }

    fn finish(&mut self, done: Result<(TaskId, Done), JoinError>) {
        let now = self.clock.now();
        let (id, done) = match done {
            Ok((id, done)) => (id, Some(done)),
            Err(error) => (error.id(), None),
        };
        let Some((key, subject)) = self.under_way.remove(&id) else { return };
        let Some(Done { state, written, outcome }) = done else {
            return self.set_aside(&key, *subject, now);
        };
        if self.quarantine.release(&key) {
            self.api.metrics().with(|metrics| metrics.released(&key));
        }
        self.states.insert(key.place.clone(), state);
        let acted = !written.is_empty();
        {
            let seen = self.shared.clone();
            let seen = seen.seen();
            for write in written {
                match write {
                    Written::Version(object, version) => {
                        let followed =
                            seen.watches.contains_key(&object.resource) && self.shared.reaches(&object.place.namespace);
                        if seen.cache.position(&object.resource) < version && followed {
                            self.fence.wrote(&key, &object, version, now);
                        }
                    }
                    Written::Deleted(object, uid, version) => {
                        let known = seen.cache.get(&object.resource, &object.place);
                        let is_there = known.is_some_and(|known| known.str_at(&["metadata", "uid"]) == Some(&uid));
                        if is_there && known.map_or(0, version_of) <= version {
                            self.fence.deleted(&key, &object, &uid, version, now);
                        }
                    }
                }
            }
        }
        for resource in self.shared.let_go() {
            for key in self.fence.saw_list(&resource, u64::MAX, |_| false) {
                self.look(&key.place);
            }
        }
        let settled = matches!(outcome, Outcome::Settled(_));
        self.queue.done(&key, outcome, now);
        // What was written is looked at again, as soon as it is seen.
        if acted && settled {
            self.look(&key.place);
        }
    }
}

impl Sources {
    /// A pass ended in a panic: its source is left alone for a while, and says so.
    fn set_aside(&mut self, key: &Key, subject: Subject, now: Timestamp) {
        let until = self.quarantine.panicked(key, &subject.version(), now);
        let message = quarantine::message(until);
        tracing::error!(source = %key.place, message, "source set aside");
        self.api.metrics().with(|metrics| metrics.panicked(key));
        self.queue.done(key, Outcome::Settled(Some(until)), now);
        let api = self.api.clone();
        tokio::spawn(async move { keep::set_aside(&api, &subject, message, now).await });
    }
}

/// A moment after another.
fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}
