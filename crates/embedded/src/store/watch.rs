//! Following changes: a cursor that the caller owns and the store fills.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;

use super::{
    Store,
    history::Change,
    read::{Wanted, check_list_options, parse_version},
    registry::TableId,
    request::Request,
    write::present,
};
use crate::kubernetes::{
    kind::Kind,
    object::Object,
    status::Status,
    value::{Text, Value},
};

/// What a watch is told whose next change is no longer kept.
const TOO_OLD: &str = "The resourceVersion for the provided watch is too old.";

/// A watch: which changes are wanted, and how far it has come.
#[derive(Debug)]
pub struct Watch {
    kind: Arc<Kind>,
    table: TableId,
    namespace: Text,
    wanted: Wanted,
    cursor: u64,
    pending: VecDeque<WatchEvent>,
    bookmarks: bool,
    ended: bool,
}

/// What a watch tells.
#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// An object came into view.
    Added(Payload),
    /// An object in view changed.
    Modified(Payload),
    /// An object is gone, or out of view; this is its last state.
    Deleted(Payload),
    /// Nothing before this version will be told any more.
    Bookmark(Value),
    /// The watch cannot go on.
    Error(Status),
}

/// The object of an event.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The object at the version of the watch's kind.
    pub object: Arc<Object>,
    change: Option<Arc<Change>>,
}

impl Payload {
    /// The object as JSON: rendered once for all watchers where the change itself can be shown.
    pub fn json(&self) -> Bytes {
        match &self.change {
            Some(change) => change.json().clone(),
            None => serde_json::to_vec(&*self.object).unwrap_or_default().into(),
        }
    }
}

impl WatchEvent {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub fn name(&self) -> &'static str {
        match self {
            WatchEvent::Added(_) => "ADDED",
            WatchEvent::Modified(_) => "MODIFIED",
            WatchEvent::Deleted(_) => "DELETED",
            WatchEvent::Bookmark(_) => "BOOKMARK",
            WatchEvent::Error(_) => "ERROR",
        }
    }

    /// The object it is about, if it is about one.
    pub fn object(&self) -> Option<&Arc<Object>> {
        match self {
            WatchEvent::Added(payload) | WatchEvent::Modified(payload) | WatchEvent::Deleted(payload) => {
                Some(&payload.object)
            }
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
        }
    }
}

impl Store {
    /// Begins a watch of what `request` would list. Nothing is missed between a list's version and the watch from it.
    pub fn watch(&self, request: &Request) -> Result<Watch, Status> {
        let (resource, kind) = self.serving(request)?;
        let options = &request.options;
        check_list_options(options, true)?;
        let wanted = Wanted::parse(&kind, request)?;
        let mut watch = Watch {
            kind,
            table: resource.table.clone(),
            namespace: request.namespace.clone(),
            wanted,
            cursor: self.version,
            pending: VecDeque::new(),
            bookmarks: options.bookmarks,
            ended: false,
        };
        let from = match options.resource_version.as_deref() {
            None => 0,
            Some(text) => parse_version(text).map_err(Status::internal_bare)?,
        };
        if options.send_initial_events == Some(true) || from == 0 && options.send_initial_events.is_none() {
            let now =
                self.objects(&watch.table, &watch.namespace).filter(|object| watch.wanted.matches(&watch.kind, object));
            let initial: Vec<WatchEvent> = now
                .map(|object| WatchEvent::Added(Payload { object: present(&watch.kind, object), change: None }))
                .collect();
            watch.pending.extend(initial);
            if options.send_initial_events == Some(true) && options.bookmarks {
                watch.pending.push_back(WatchEvent::Bookmark(watch.bookmark_at(self.version, true)));
            }
        } else if from == 0 {
            watch.cursor = self.version;
        } else if from < self.history.floor() {
            watch.pending.push_back(WatchEvent::Error(Status::expired(TOO_OLD)));
            watch.ended = true;
        } else {
            // A version that does not exist yet is waited for.
            watch.cursor = from;
        }
        Ok(watch)
    }

    /// What happened since the last call, in order. Empty means: nothing yet.
    pub fn poll(&self, watch: &mut Watch) -> Vec<WatchEvent> {
        let mut events: Vec<WatchEvent> = watch.pending.drain(..).collect();
        if watch.ended || watch.cursor >= self.version {
            return events;
        }
        if watch.cursor < self.history.floor() {
            events.push(WatchEvent::Error(Status::expired(TOO_OLD)));
            watch.ended = true;
            return events;
        }
        events.extend(self.history.since(watch.cursor).filter_map(|change| watch.see(change)));
        watch.cursor = self.version;
        events
    }

    /// Tells a watch that asked for bookmarks how far it has come.
    pub fn bookmark(&self, watch: &Watch) -> Option<WatchEvent> {
        (watch.bookmarks && !watch.ended).then(|| WatchEvent::Bookmark(watch.bookmark_at(watch.cursor, false)))
    }
}

impl Watch {
    /// The kind it watches.
    pub fn kind(&self) -> &Arc<Kind> {
        &self.kind
    }

    /// Whether it has told its last event.
    pub fn is_over(&self) -> bool {
        self.ended && self.pending.is_empty()
    }

    /// What this watch makes of a change: objects enter and leave its view as they begin and cease to match.
    fn see(&self, change: &Arc<Change>) -> Option<WatchEvent> {
        if change.table != self.table || !(self.namespace.is_empty() || change.object.namespace() == self.namespace) {
            return None;
        }
        let was = change.old.as_ref().is_some_and(|old| self.wanted.matches(&self.kind, old));
        let is = !change.deleted && self.wanted.matches(&self.kind, &change.object);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some(WatchEvent::Added(self.payload(change))),
            (true, true) => Some(WatchEvent::Modified(self.payload(change))),
            (true, false) if change.deleted => Some(WatchEvent::Deleted(self.payload(change))),
            (true, false) => {
                // Out of view: the last state that matched, at the version of the change.
                let mut last = (**change.old.as_ref()?).clone();
                last.value.set_at(&["metadata", "resourceVersion"], change.version.to_string());
                let object = present(&self.kind, &Arc::new(last));
                Some(WatchEvent::Deleted(Payload { object, change: None }))
            }
        }
    }

    fn payload(&self, change: &Arc<Change>) -> Payload {
        let object = present(&self.kind, &change.object);
        let change = Arc::ptr_eq(&object, &change.object).then(|| change.clone());
        Payload { object, change }
    }

    fn bookmark_at(&self, version: u64, initial_end: bool) -> Value {
        let mut value = crate::value!({
            "kind": self.kind.kind.as_str(), "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": version.to_string()},
        });
        if initial_end {
            value.set_at(&["metadata", "annotations"], crate::value!({"k8s.io/initial-events-end": "true"}));
        }
        value
    }
}
