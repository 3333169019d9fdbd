//! A watch on the wire: one JSON line per event, until the client, the time or the server ends it.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::Frame;
use tokio::{sync::watch, time::Instant};

use super::{
    accept::View,
    cluster::{Cluster, closed},
    render::{self, Include},
};
use crate::kubernetes::object::Object;
use crate::store::watch::{Watch, WatchEvent};

/// How often a client that wants bookmarks gets one.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// How long a watch lasts that does not say how long it wants to: this, and up to as much again.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// The body of a watch's answer.
pub struct Stream {
    next: Option<Next>,
}

type Next = Pin<Box<dyn Future<Output = Option<(Feed, Bytes)>> + Send>>;

impl Stream {
    /// Begins to follow. `seconds` is the client's `timeoutSeconds`; `chance` spreads the ends of watches that give none.
    pub fn new(cluster: Cluster, watch: Watch, shown: Shown, seconds: Option<u64>, chance: f64) -> Stream {
        let lasts = match seconds {
            Some(seconds) if seconds > 0 => Duration::from_secs(seconds.min(1 << 32)),
            _ => PATIENCE.mul_f64(1.0 + chance.clamp(0.0, 1.0)),
        };
        let now = Instant::now();
        let feed = Feed {
            newest: cluster.newest(),
            closing: cluster.closing(),
            cluster,
            watch,
            shown,
            end: now + lasts,
            bookmark: now + BOOKMARKS,
            over: false,
        };
        Stream { next: Some(Box::pin(feed.next())) }
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        match next.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                self.next = None;
                Poll::Ready(None)
            }
            Poll::Ready(Some((feed, bytes))) => {
                self.next = Some(Box::pin(feed.next()));
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
        }
    }
}

/// How the objects of a watch are shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// Whole, as tables, or metadata only.
    pub view: View,
    /// What a table carries.
    pub include: Include,
    /// Whether the next table has headings.
    pub headings: bool,
}

struct Feed {
    cluster: Cluster,
    watch: Watch,
    newest: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
    shown: Shown,
    end: Instant,
    bookmark: Instant,
    over: bool,
}

impl Feed {
    /// The next lines, as soon as there are any.
    async fn next(mut self) -> Option<(Feed, Bytes)> {
        loop {
            if self.over || *self.closing.borrow() {
                return None;
            }
            // Noted before looking, so that what happens in between is looked for again.
            self.newest.borrow_and_update();
            let lines = self.look();
            if !lines.is_empty() {
                return Some((self, lines.into()));
            }
            if self.over {
                return None;
            }
            let bookmark = tokio::select! {
                biased;
                () = closed(&mut self.closing) => return None,
                changed = self.newest.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return None,
                },
                () = tokio::time::sleep_until(self.end) => {
                    self.over = true;
                    self.cluster.bookmark(&self.watch)
                }
                () = tokio::time::sleep_until(self.bookmark) => {
                    self.bookmark += BOOKMARKS;
                    self.cluster.bookmark(&self.watch)
                }
            };
            if let Some(event) = bookmark {
                let mut lines = Vec::new();
                let now = self.cluster.now();
                self.write(&event, &mut lines, now);
                return Some((self, lines.into()));
            }
        }
    }

    fn look(&mut self) -> Vec<u8> {
        let (events, now) = self.cluster.poll(&mut self.watch);
        let mut lines = Vec::new();
        for event in &events {
            self.write(event, &mut lines, now);
        }
        self.over |= self.watch.is_over();
        lines
    }

    fn write(&mut self, event: &WatchEvent, lines: &mut Vec<u8>, now: jiff::Timestamp) {
        lines.extend_from_slice(b"{\"type\":\"");
        lines.extend_from_slice(event.name().as_bytes());
        lines.extend_from_slice(b"\",\"object\":");
        match (event, self.shown.view) {
            (WatchEvent::Error(status), _) => lines.extend_from_slice(status.to_value().to_json().as_bytes()),
            (WatchEvent::Bookmark(value), View::Whole | View::MetadataList(_)) => {
                lines.extend_from_slice(value.to_json().as_bytes());
            }
            (WatchEvent::Bookmark(value), View::Table(_) | View::Metadata(_)) => {
                let object = Arc::new(Object { value: value.clone(), managers: Arc::default() });
                lines.extend_from_slice(&self.shown(&object, now));
            }
            (
                WatchEvent::Added(payload) | WatchEvent::Modified(payload) | WatchEvent::Deleted(payload),
                View::Whole | View::MetadataList(_),
            ) => lines.extend_from_slice(&payload.json()),
            (
                WatchEvent::Added(payload) | WatchEvent::Modified(payload) | WatchEvent::Deleted(payload),
                View::Table(_) | View::Metadata(_),
            ) => lines.extend_from_slice(&self.shown(&payload.object, now)),
        }
        lines.extend_from_slice(b"}\n");
    }

    fn shown(&mut self, object: &Arc<Object>, now: jiff::Timestamp) -> Vec<u8> {
        let Shown { view, include, headings } = self.shown;
        self.shown.headings = false;
        render::event_object(self.watch.kind(), object, view, include, headings, now)
    }
}
