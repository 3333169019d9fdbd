//! What happened: the last so many changes, in order, for watches, lists of an older version, and controllers.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;

use super::registry::TableId;
use crate::kubernetes::{kind::Kind, object::Object};

/// One committed change. Every change has a version of its own, one higher than the last.
#[derive(Debug)]
pub struct Change {
    /// The version it made.
    pub version: u64,
    /// Where the object is kept.
    pub table: TableId,
    /// The kind it is stored as.
    pub kind: Arc<Kind>,
    /// The object before, unless it was created.
    pub old: Option<Arc<Object>>,
    /// The object after; of a deletion, its last state at the version of the deletion.
    pub object: Arc<Object>,
    /// Whether it is gone now.
    pub deleted: bool,
    json: OnceLock<Bytes>,
}

impl Change {
    /// The object after, unless it was deleted.
    pub fn after(&self) -> Option<&Arc<Object>> {
        (!self.deleted).then_some(&self.object)
    }

    /// The object as JSON, rendered once however many watchers want it.
    pub fn json(&self) -> &Bytes {
        self.json.get_or_init(|| serde_json::to_vec(&*self.object).unwrap_or_default().into())
    }
}

/// The last changes. Versions are consecutive, so that a change is found by subtraction.
#[derive(Debug, Clone)]
pub struct History {
    changes: VecDeque<Arc<Change>>,
    window: usize,
    /// The newest version that is no longer kept: changes after it are.
    floor: u64,
}

impl History {
    /// A history that keeps this many changes, beginning after `floor`.
    pub fn new(window: usize, floor: u64) -> History {
        History { changes: VecDeque::new(), window, floor }
    }

    /// How many changes are kept.
    pub fn window(&self) -> usize {
        self.window
    }

    /// The oldest version a watch may start from.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Adds the next change.
    pub fn push(
        &mut self,
        version: u64,
        table: TableId,
        kind: Arc<Kind>,
        old: Option<Arc<Object>>,
        object: Arc<Object>,
        deleted: bool,
    ) {
        self.changes.push_back(Arc::new(Change { version, table, kind, old, object, deleted, json: OnceLock::new() }));
        while self.changes.len() > self.window {
            self.drop_oldest();
        }
    }

    /// Forgets every change up to and including `version`.
    pub fn compact(&mut self, version: u64) {
        while self.changes.front().is_some_and(|change| change.version <= version) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(change) = self.changes.pop_front() {
            self.floor = change.version;
        }
    }

    /// The changes after `version`, oldest first. Those that are no longer kept are missing: ask [`History::floor`].
    pub fn since(&self, version: u64) -> impl DoubleEndedIterator<Item = &Arc<Change>> {
        let skip = version.saturating_sub(self.floor).min(self.changes.len() as u64) as usize;
        self.changes.range(skip..)
    }
}
