//! Requests to servers of others, for metrics and for repositories, sent beside the passes that others wait for.
//!
//! A pass that waits for somebody else's server gives its worker back meanwhile. What is sent is bounded: so many requests
//! altogether, and a share for each namespace ([`crate::engine::errand`]). Whoever sends limits the time.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{Notify, oneshot};

use crate::{engine::errand, kubernetes::value::Text};

/// The requests of all passes.
#[derive(Clone)]
pub struct Errands(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    /// How many passes wait for other servers.
    away: AtomicUsize,
    /// Rung when one more does.
    bell: Notify,
}

struct Queue {
    errands: errand::Errands,
    /// Those that wait, by their numbers.
    doors: HashMap<u64, oneshot::Sender<()>>,
}

impl Errands {
    /// So many may be under way.
    pub fn new(limit: usize) -> Errands {
        let queue = Queue { errands: errand::Errands::new(limit), doors: HashMap::new() };
        Errands(Arc::new(Shared { queue: Mutex::new(queue), away: AtomicUsize::new(0), bell: Notify::new() }))
    }

    /// How many passes wait for other servers, and need no worker.
    pub fn away(&self) -> usize {
        self.0.away.load(Ordering::Relaxed)
    }

    /// Resolves when one more pass waits for other servers.
    pub async fn left(&self) {
        self.0.bell.notified().await;
    }

    /// A pass waits for other servers until what is returned is dropped.
    pub fn leave(&self) -> Away<'_> {
        self.0.away.fetch_add(1, Ordering::Relaxed);
        self.0.bell.notify_one();
        Away(&self.0)
    }

    /// Waits until a request of this namespace may be sent; it is under way until what is returned is dropped.
    pub async fn turn<'e>(&'e self, namespace: &'e Text) -> Place<'e> {
        let (sender, turn) = oneshot::channel();
        let ticket = {
            let mut queue = self.queue();
            let ticket = queue.errands.ask(namespace);
            queue.doors.insert(ticket, sender);
            queue.open();
            ticket
        };
        // Whoever no longer wants it gives its place back, too.
        let place = Place { errands: self, namespace, ticket };
        // The sender is only dropped once the ticket is given back.
        drop(turn.await);
        place
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Lets those go on whose turn it is.
    fn open(&mut self) {
        while let Some(ticket) = self.errands.begin() {
            if let Some(door) = self.doors.remove(&ticket) {
                let _ = door.send(());
            }
        }
    }
}

/// A place among the requests.
pub struct Place<'e> {
    errands: &'e Errands,
    namespace: &'e Text,
    ticket: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut queue = self.errands.queue();
        queue.doors.remove(&self.ticket);
        queue.errands.end(self.namespace, self.ticket);
        queue.open();
    }
}

/// A pass waits for other servers.
pub struct Away<'e>(&'e Shared);

impl Drop for Away<'_> {
    fn drop(&mut self) {
        self.0.away.fetch_sub(1, Ordering::Relaxed);
    }
}
