//! Requests for metrics, sent beside the passes that others wait for.
//!
//! A pass that waits for somebody else's server gives its worker back meanwhile. What is sent is bounded: so many requests
//! altogether, a share for each namespace ([`crate::engine::errand`]), and a time that no manifest can raise ([`Web`]).

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use tokio::sync::{Notify, oneshot};

use super::web::Web;
use crate::{
    engine::errand,
    kubernetes::value::Text,
    metric::{Request, Response},
};

/// The requests of all passes.
#[derive(Clone, Default)]
pub struct Errands(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// How many passes wait for other servers.
    away: AtomicUsize,
    /// Rung when one more does.
    bell: Notify,
}

#[derive(Default)]
struct Queue {
    errands: errand::Errands,
    /// Those that wait, by their numbers.
    doors: HashMap<u64, oneshot::Sender<()>>,
}

impl Errands {
    /// How many passes wait for other servers, and need no worker.
    pub fn away(&self) -> usize {
        self.0.away.load(Ordering::Relaxed)
    }

    /// Resolves when one more pass waits for other servers.
    pub async fn left(&self) {
        self.0.bell.notified().await;
    }

    /// The pass that this flag belongs to waits for other servers until what is returned is dropped.
    pub fn leave(&self, is_away: &Arc<AtomicBool>) -> Away {
        is_away.store(true, Ordering::Relaxed);
        self.0.away.fetch_add(1, Ordering::Relaxed);
        self.0.bell.notify_one();
        Away { shared: self.0.clone(), is_away: is_away.clone() }
    }

    /// Sends a request when it is its turn.
    pub async fn send(&self, web: &Web, namespace: &Text, request: &Request) -> Result<Response, String> {
        let (sender, turn) = oneshot::channel();
        let ticket = {
            let mut queue = self.queue();
            let ticket = queue.errands.ask(namespace);
            queue.doors.insert(ticket, sender);
            queue.open();
            ticket
        };
        // Whoever no longer wants it gives its place back, too.
        let _place = Place { errands: self, namespace, ticket };
        // The sender is only dropped once the ticket is given back.
        drop(turn.await);
        web.fetch(request).await.map_err(|error| error.to_string())
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
struct Place<'e> {
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
pub struct Away {
    shared: Arc<Shared>,
    is_away: Arc<AtomicBool>,
}

impl Drop for Away {
    fn drop(&mut self) {
        self.is_away.store(false, Ordering::Relaxed);
        self.shared.away.fetch_sub(1, Ordering::Relaxed);
    }
}
