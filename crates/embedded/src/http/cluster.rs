//! The cluster behind the front: its store, the world around it, and the file it is kept in, under one lock.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::{sync::watch, time::Instant};

use super::data::Data;
use crate::kubernetes::status::Status;
use crate::{
    controllers::World,
    discovery::Catalog,
    store::{
        Store,
        request::{Outcome, Request},
        watch::{Watch, WatchEvent},
    },
};

/// Where the time of a served cluster comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The system's clock.
    Wall,
    /// The runtime's clock, starting at the store's time: it can be paused, and then jumps to the next timer.
    Runtime,
}

/// A cluster that several tasks use at once.
#[derive(Clone)]
pub struct Cluster(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    pace: Pace,
    started: (Instant, Timestamp),
    newest: watch::Sender<u64>,
    closing: watch::Sender<bool>,
}

struct State {
    store: Store,
    world: Option<World>,
    data: Option<Data>,
    saved: u64,
    catalog: (u64, Arc<Catalog>),
}

/// How many things controllers look at before requests get their turn.
const BATCH: usize = 64;
/// How long a cluster waits that has nothing to do.
const IDLE: Duration = Duration::from_secs(3600);
/// How often the data file is forced to the disk.
const SYNC: Duration = Duration::from_secs(1);

impl Cluster {
    /// Makes a cluster of this store. Without a world nothing happens in it by itself, without data nothing is kept.
    /// Needs a tokio runtime from here on.
    pub fn new(store: Store, world: Option<World>, data: Option<Data>, pace: Pace) -> Cluster {
        let version = store.version();
        let started = (Instant::now(), store.now());
        let saved = if data.is_some() { store.forgotten() } else { version };
        let state = State { store, world, data, saved, catalog: (u64::MAX, Arc::default()) };
        Cluster(Arc::new(Shared {
            state: Mutex::new(state),
            pace,
            started,
            newest: watch::Sender::new(version),
            closing: watch::Sender::new(false),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A request that panicked was answered as a failure; the store has no half-made changes to hide.
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match self.0.pace {
            Pace::Wall => Timestamp::now(),
            Pace::Runtime => {
                let (instant, start) = self.0.started;
                let passed = SignedDuration::try_from(instant.elapsed()).unwrap_or(SignedDuration::MAX);
                start.saturating_add(passed).unwrap_or(Timestamp::MAX)
            }
        };
        let behind = now.duration_since(state.store.now());
        if behind.is_positive() {
            state.store.advance(behind);
        }
        state
    }

    /// Saves what was changed and tells who waits for it.
    fn settle(&self, state: &mut State) -> Result<(), Status> {
        let version = state.store.version();
        if version == state.saved {
            return Ok(());
        }
        let outcome = state.save();
        state.saved = version;
        self.0.newest.send_replace(version);
        outcome
    }

    /// Does something with the store, at the present time. What it changes is saved and told to watches.
    pub fn with<T>(&self, act: impl FnOnce(&mut Store) -> T) -> T {
        let mut state = self.lock();
        let result = act(&mut state.store);
        if let Err(status) = self.settle(&mut state) {
            tracing::error!(%status, "a change was not saved");
        }
        result
    }

    /// Does what a request asks.
    pub fn apply(&self, request: Request) -> (Outcome, Timestamp) {
        let mut state = self.lock();
        let applied = catch_unwind(AssertUnwindSafe(|| state.store.apply(request)));
        let outcome = applied.unwrap_or_else(|_| Err(Status::internal("the request made the server panic")));
        let outcome = match self.settle(&mut state) {
            Ok(()) => outcome,
            Err(unsaved) => Err(unsaved),
        };
        (outcome, state.store.now())
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.lock().store.now()
    }

    /// Begins a watch.
    pub fn watch(&self, request: &Request) -> Result<Watch, Status> {
        self.lock().store.watch(request)
    }

    /// What a watch has not told yet, and the time.
    pub fn poll(&self, watch: &mut Watch) -> (Vec<WatchEvent>, Timestamp) {
        let state = self.lock();
        (state.store.poll(watch), state.store.now())
    }

    /// How far a watch has come, if it asked to be told.
    pub fn bookmark(&self, watch: &Watch) -> Option<WatchEvent> {
        self.lock().store.bookmark(watch)
    }

    /// What is served.
    pub fn catalog(&self) -> Arc<Catalog> {
        let mut state = self.lock();
        let generation = state.store.registry().generation();
        if state.catalog.0 != generation {
            let kinds: Vec<_> = state.store.registry().kinds().cloned().collect();
            state.catalog = (generation, Arc::new(Catalog::of(&kinds)));
        }
        state.catalog.1.clone()
    }

    /// Follows the newest version.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.0.newest.subscribe()
    }

    /// Turns true when the cluster ends.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.0.closing.subscribe()
    }

    /// Ends every watch and the driver.
    pub fn close(&self) {
        self.0.closing.send_replace(true);
    }

    /// Lets time and controllers do their work until the cluster is closed.
    pub async fn drive(self) {
        let mut newest = self.newest();
        let mut closing = self.closing();
        let mut sync = tokio::time::interval(SYNC);
        loop {
            newest.borrow_and_update();
            let Some(wait) = self.step() else {
                // More to do at once; requests get their turn in between.
                tokio::task::yield_now().await;
                continue;
            };
            tokio::select! {
                () = closed(&mut closing) => break,
                changed = newest.changed() => if changed.is_err() { break },
                () = tokio::time::sleep(wait) => {}
                _ = sync.tick() => self.sync().await,
            }
        }
        let mut state = self.lock();
        if let Some(Err(error)) = state.data.as_mut().map(Data::sync) {
            tracing::error!(%error, "the last changes may not be saved");
        }
    }

    /// Lets the world do some of what is due; `None` if there is more, else how long there will be nothing to do.
    fn step(&self) -> Option<Duration> {
        let mut state = self.lock();
        let State { store, world: Some(world), .. } = &mut *state else { return Some(IDLE) };
        let busy = catch_unwind(AssertUnwindSafe(|| (0..BATCH).all(|_| world.step(store))));
        let busy = busy.unwrap_or_else(|_| {
            tracing::error!("a controller panicked");
            false
        });
        let (wake, now) = (world.next_wake(), store.now());
        if let Err(status) = self.settle(&mut state) {
            tracing::error!(%status, "a change was not saved");
        }
        let wait = wake.map_or(SignedDuration::MAX, |wake| wake.duration_since(now));
        (!busy)
            .then(|| wait.max(SignedDuration::from_millis(1)).try_into().map_or(IDLE, |wait: Duration| wait.min(IDLE)))
    }

    async fn sync(&self) {
        let unsynced = self.lock().data.as_mut().and_then(Data::unsynced);
        let Some(file) = unsynced else { return };
        // Not under the lock: a slow disk must not stop requests.
        match tokio::task::spawn_blocking(move || file.sync_data()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "cannot force the data file to the disk"),
            Err(error) => tracing::error!(%error, "cannot force the data file to the disk"),
        }
    }
}

/// Resolves when the cluster is closed.
pub async fn closed(closing: &mut watch::Receiver<bool>) {
    // An error means that the cluster is gone altogether.
    let _ = closing.wait_for(|closing| *closing).await;
}

impl State {
    /// Appends the changes since the last save to the data file.
    fn save(&mut self) -> Result<(), Status> {
        let Some(data) = &mut self.data else { return Ok(()) };
        let changes = self.store.changes_since(self.saved).map(|change| {
            let (group, plural) = change.table.clone();
            let place = (group, plural, change.object.namespace(), change.object.name());
            (place, change.version, (!change.deleted).then_some(&*change.object))
        });
        let saved = data.append(changes);
        let saved = saved.and_then(|()| if data.is_bloated() { rewrite(data, &self.store) } else { Ok(()) });
        saved.map_err(|error| Status::internal(format!("the change is not saved: {error}")))
    }
}

fn rewrite(data: &mut Data, store: &Store) -> Result<(), super::data::Error> {
    let everything = store.registry().resources().flat_map(|resource| {
        let (group, plural) = &resource.table;
        store
            .list(group, plural, "")
            .map(move |object| ((group.clone(), plural.clone(), object.namespace(), object.name()), &**object))
    });
    data.rewrite(store.version(), everything)
}
