//! The cluster behind the front: its store, what plays the world around it, and the file it is kept in, under one lock.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::{sync::watch, time::Instant};

use super::data::Data;
use crate::embedded::{
    controllers,
    discovery::Catalog,
    status::Status,
    store::{
        Store,
        request::{Outcome, Request},
        watch::{Watch, WatchEvent},
    },
};

/// What plays the rest of the world: controllers, kubelets.
pub trait Around: Send {
    /// Does what is due at the store's time.
    fn step(&mut self, store: &mut Store);

    /// When something will be due if nothing is written before.
    fn next_wake(&self, store: &Store) -> Option<Timestamp>;
}

/// A world in which nothing happens by itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Still;

impl Around for Still {
    fn step(&mut self, _: &mut Store) {}

    fn next_wake(&self, _: &Store) -> Option<Timestamp> {
        None
    }
}

/// How many things controllers look at before requests get their turn.
const BATCH: usize = 256;

impl Around for controllers::World {
    fn step(&mut self, store: &mut Store) {
        let mut left = BATCH;
        while left > 0 && controllers::World::step(self, store) {
            left -= 1;
        }
    }

    fn next_wake(&self, store: &Store) -> Option<Timestamp> {
        if self.has_work(store) { Some(store.now()) } else { controllers::World::next_wake(self) }
    }
}

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
pub struct World(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    pace: Pace,
    started: (Instant, Timestamp),
    newest: watch::Sender<u64>,
    closing: watch::Sender<bool>,
}

struct State {
    store: Store,
    around: Box<dyn Around>,
    data: Option<Data>,
    saved: u64,
    catalog: (u64, Arc<Catalog>),
}

/// How often the data file is forced to the disk.
const SYNC: Duration = Duration::from_secs(1);

impl World {
    /// A world around this store. Needs a tokio runtime from here on.
    pub fn new(store: Store, around: Box<dyn Around>, data: Option<Data>, pace: Pace) -> World {
        let version = store.version();
        let started = (Instant::now(), store.now());
        let saved = if data.is_some() { store.forgotten() } else { version };
        let state = State { store, around, data, saved, catalog: (u64::MAX, Arc::default()) };
        World(Arc::new(Shared {
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

    /// Turns true when the world ends.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.0.closing.subscribe()
    }

    /// Ends every watch and the driver.
    pub fn close(&self) {
        self.0.closing.send_replace(true);
    }

    /// Lets time and controllers do their work until the world is closed.
    pub async fn drive(self) {
        let mut newest = self.newest();
        let mut closing = self.closing();
        let mut sync = tokio::time::interval(SYNC);
        loop {
            newest.borrow_and_update();
            let wait = self.step();
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

    /// Lets the world do what is due, and says how long it will have nothing to do.
    fn step(&self) -> Duration {
        let mut state = self.lock();
        let State { store, around, .. } = &mut *state;
        if catch_unwind(AssertUnwindSafe(|| around.step(store))).is_err() {
            tracing::error!("a controller panicked");
        }
        if let Err(status) = self.settle(&mut state) {
            tracing::error!(%status, "a change was not saved");
        }
        let now = state.store.now();
        let wake = state.around.next_wake(&state.store);
        let wait = wake.map(|wake| wake.duration_since(now).max(SignedDuration::from_millis(1)));
        wait.and_then(|wait| wait.try_into().ok()).unwrap_or(Duration::from_secs(3600))
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

/// Resolves when the world is closed.
pub async fn closed(closing: &mut watch::Receiver<bool>) {
    // An error means that the world is gone altogether.
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
