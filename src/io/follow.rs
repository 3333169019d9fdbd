//! Follows all that belongs to one object, and tells of each change: for people who watch.
//!
//! One cache of a few kinds of one namespace, filled by the same watches as the daemon's. Never writes.

use tokio::{
    sync::mpsc::{self, Receiver},
    task::JoinSet,
};

use super::{
    api::Api,
    watch::{self, Scope},
};
use crate::engine::{
    cache::{Cache, News},
    key::Resource,
};

/// How many deliveries may wait.
const BACKLOG: usize = 256;

/// What is known of the followed kinds.
pub struct Following {
    cache: Cache,
    receiver: Receiver<(Resource, News)>,
    scopes: Vec<Scope>,
    // The watches end with it.
    _watches: JoinSet<()>,
}

impl Following {
    /// Begins to follow.
    pub fn start(api: &Api, scopes: Vec<Scope>) -> Following {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        let mut watches = JoinSet::new();
        for scope in &scopes {
            watches.spawn(watch::follow(api.clone(), scope.clone(), sender.clone()));
        }
        Following { cache: Cache::default(), receiver, scopes, _watches: watches }
    }

    /// Waits until something has changed and takes in all that has arrived; before everything has been listed once, until
    /// it has.
    pub async fn changed(&mut self) -> &Cache {
        loop {
            // The watches never end by themselves, so there is always somebody who sends.
            let Some((resource, news)) = self.receiver.recv().await else { return std::future::pending().await };
            self.cache.take(&resource, news);
            while let Ok((resource, news)) = self.receiver.try_recv() {
                self.cache.take(&resource, news);
            }
            if self.scopes.iter().all(|scope| self.cache.is_listed(&scope.resource)) {
                return &self.cache;
            }
        }
    }

    /// What is known now.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }
}
