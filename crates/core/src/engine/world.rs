//! The world as a pass meets it: what it can read, what it can write, and who hears of it.
//!
//! Carried by `io` over an API server and by `sim` over the embedded store in virtual time. Says nothing about when: a pass
//! asks, and a fault is an answer.

use std::future::Future;

use jiff::Timestamp;
use serde::Serialize;

use super::{
    key::{Machine, ObjectKey, Resource},
    write::{Write, Written},
};
use crate::{
    api::RolloutStatus,
    kubernetes::value::Value,
    metric::{Request, Response},
    model::{event::Event, secret::Secret},
};

/// What carries out what passes ask for. Methods may be called one at a time only.
pub trait World: Send {
    /// Reads all of these, at the same time where that saves any; one answer each, in the same order.
    fn read(&mut self, reads: &[Read]) -> impl Future<Output = Result<Vec<Found>, Trouble>> + Send;

    /// Writes; answers what must be seen before the next decision, if anything.
    fn write(&mut self, write: &Write) -> impl Future<Output = Result<Option<Written>, Trouble>> + Send;

    /// Announces these in their order. What cannot be announced is lost: events are for people.
    fn announce(&mut self, announcements: Vec<Announcement>) -> impl Future<Output = ()> + Send;

    /// Keeps what was seen and decided, so that it can be replayed.
    fn record<C: Serialize + Sync, V: Serialize + Sync>(
        &mut self,
        machine: Machine,
        case: &C,
        verdict: &V,
    ) -> impl Future<Output = ()> + Send {
        let _ = (machine, case, verdict);
        async {}
    }

    /// Whether [`World::record`] keeps anything.
    fn records(&self) -> bool {
        false
    }

    /// Hears how the pass goes on, for logs and metrics.
    fn note(&mut self, note: Note<'_>) {
        let _ = note;
    }
}

/// Something to read.
#[derive(Debug, Clone, PartialEq)]
pub enum Read {
    /// An object, as the server has it now.
    Object(ObjectKey),
    /// The objects of a namespace; only those with this label, if one is given.
    List(Resource, String, Option<(&'static str, String)>),
    /// A file of this machine with a token.
    Token(String),
    /// The answer to a request for a metric.
    Send(Box<Request>),
}

/// What was read.
#[derive(Debug, Clone)]
pub enum Found {
    /// The object.
    Object(Live),
    /// There is no such object, in the words of the server.
    Missing(String),
    /// The server does not let this process read it, in its words.
    Refused(String),
    /// The objects.
    List(Vec<Value>),
    /// The token; or why there is none.
    Token(Result<Secret, String>),
    /// The answer; or why there is none.
    Answer(Result<Response, String>),
}

/// An object as the server has it.
#[derive(Debug, Clone)]
pub struct Live {
    /// The object.
    pub object: Value,
    /// Whether a field manager other than its maker changed its pod template.
    pub is_altered: bool,
}

/// Why something was not read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The server refused.
    Refused(Refusal),
    /// The server was not reached, or its answer was not: nobody knows what became of a write.
    Unreachable(String),
    /// This process may not go on: another one leads, or a test ended it here.
    Over,
}

/// A refusal of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP code.
    pub code: u16,
    /// The words of the server.
    pub message: String,
    /// When the server wants to be asked again.
    pub after: Option<Timestamp>,
}

/// An event about an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Announcement {
    /// The kind of the object.
    pub kind: &'static str,
    /// The object.
    pub object: Value,
    /// The event.
    pub event: Event,
}

/// How a pass goes on.
#[derive(Debug)]
pub enum Note<'n> {
    /// Everything was read; the decision begins.
    Deciding,
    /// It was decided.
    Decided {
        /// How many writes follow.
        actions: usize,
        /// Why.
        reasons: &'n [String],
        /// When to look again.
        wake: Option<Timestamp>,
    },
    /// The verdict breaks these rules, and nothing is written.
    Broken(&'n [String]),
    /// Something could not be read or written: the pass ended here.
    Failed(&'n Trouble),
    /// The status of a Rollout was written.
    Recorded {
        /// The status as it was.
        before: &'n RolloutStatus,
        /// The status as it is.
        after: &'n RolloutStatus,
        /// When.
        now: Timestamp,
    },
}
