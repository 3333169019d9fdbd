//! What a machine tells the loop: what it must read, what it decides, and which writes follow.
//!
//! Every method is a pure function. The loop itself is [`super::pass`].

use jiff::Timestamp;
use serde::Serialize;

use super::{
    analysis::Outlook,
    key::{self, ObjectKey, Place, Resource},
    resource,
    state::State,
    world::{Announcement, Found, Note, Read, Refusal},
    write::Write,
};
use crate::{
    kubernetes::value::Value,
    metric,
    rollout::{Conditions, Crowd},
    route::{Apis, RouteScope},
};

/// A machine: from what was seen of one object to what becomes of it.
pub trait Machine {
    /// Which.
    const KEY: key::Machine;
    /// The kind of its objects.
    const KIND: &'static str;
    /// All that was read for one decision: a file of it replays the decision.
    type Case: Serialize + Send + Sync;
    /// What it means.
    type View: Send + Sync;
    /// What was decided.
    type Verdict: Serialize + Send + Sync;
    /// One write.
    type Action: Send + Sync;

    /// Begins a pass on what is known.
    fn begin(known: &Known<'_>, place: &Place) -> Begin<Self::Case>;

    /// Makes sense of what was read so far. What is still to be read is remembered in the case.
    fn look(case: &mut Self::Case) -> Observation<Self::View>;

    /// Takes in what was read, in the order in which the last [`Machine::look`] asked for it.
    fn absorb(case: &mut Self::Case, found: Vec<Found>);

    /// Decides.
    fn decide(view: &Self::View) -> Self::Verdict;

    /// The writes that a verdict asks for, in their order, without the record.
    fn diff(view: &Self::View, verdict: &Self::Verdict) -> Vec<Self::Action>;

    /// The rules that a verdict would break.
    fn check(view: &Self::View, verdict: &Self::Verdict, actions: &[Self::Action]) -> Vec<String> {
        let _ = (view, verdict, actions);
        Vec::new()
    }

    /// The request of an action.
    fn write(view: &Self::View, action: &Self::Action) -> Write;

    /// The request that records the verdict in status, last of all; `own` is the version that this pass itself gave the object.
    fn record(view: &Self::View, verdict: &Self::Verdict, own: Option<u64>) -> Option<Write> {
        let _ = (view, verdict, own);
        None
    }

    /// What follows if the server refuses an action; `None` if the pass is to be tried again as it is.
    fn refused(
        view: &Self::View,
        verdict: &Self::Verdict,
        action: &Self::Action,
        write: &Write,
        why: &Refusal,
    ) -> Option<Refused<Self::Verdict>> {
        let _ = (view, verdict, action, write, why);
        None
    }

    /// What is announced after the fact, in its order.
    fn announce(view: &Self::View, verdict: &Self::Verdict, done: &Done<'_, Self::Action>) -> Vec<Announcement>;

    /// The earliest moment at which time alone would change the answer.
    fn wake(view: &Self::View, verdict: &Self::Verdict) -> Option<Timestamp>;

    /// Why, for logs.
    fn reasons(verdict: &Self::Verdict) -> &[String] {
        let _ = verdict;
        &[]
    }

    /// What metrics want to know of a record that was written.
    fn recorded<'n>(view: &'n Self::View, verdict: &'n Self::Verdict) -> Option<Note<'n>> {
        let _ = (view, verdict);
        None
    }

    /// The object that this is about.
    fn object(view: &Self::View) -> &Value;

    /// When it was seen.
    fn now(view: &Self::View) -> Timestamp;

    /// How much else there was to do.
    fn crowd(view: &Self::View) -> Crowd {
        let _ = view;
        Crowd::Few
    }
}

/// What is known when a pass begins.
#[derive(Debug, Clone, Copy)]
pub struct Known<'k> {
    /// What the watches delivered.
    pub state: &'k State,
    /// How the engine is set up.
    pub settings: &'k Settings,
    /// When.
    pub now: Timestamp,
}

impl Known<'_> {
    /// Those of these resources that must be followed before a decision: neither listed nor known to be unavailable.
    pub fn unlisted(&self, mut resources: Vec<Resource>) -> Vec<Resource> {
        let cache = &self.state.cache;
        let is_unavailable = |resource: &Resource| cache.is_unserved(resource) && resource::is_optional(resource);
        resources.retain(|resource| !cache.is_listed(resource) && !is_unavailable(resource));
        resources
    }
}

/// How the engine is set up.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Only objects of this namespace are watched; of all if not given.
    pub namespace: Option<String>,
    /// What the operator says about measuring.
    pub measuring: metric::Settings,
    /// Which conditions Rollouts have.
    pub conditions: Conditions,
    /// Where the objects may be that Rollouts route with.
    pub route_scope: RouteScope,
    /// The versions in which the routers' APIs are spoken.
    pub apis: Apis,
    /// How measurements end, if nobody is asked.
    pub outlook: Option<Outlook>,
}

impl Settings {
    /// Whether the watch of its resource delivers this object.
    pub fn is_in_scope(&self, object: &ObjectKey) -> bool {
        let namespace = &object.place.namespace;
        resource::is_of_cluster(&object.resource)
            || self.namespace.as_ref().is_none_or(|own| own.as_str() == namespace.as_str())
    }
}

/// How a pass begins.
#[derive(Debug)]
pub enum Begin<C> {
    /// It does not: there is nothing to decide about.
    Gone,
    /// It does not yet: these resources must be followed first. What they deliver brings it back.
    Follow(Vec<Resource>),
    /// With this.
    Case(C),
}

/// How much of what a decision needs was read.
#[derive(Debug)]
pub enum Observation<V> {
    /// This is still to be read.
    Missing(Vec<Read>),
    /// What was seen is no longer so: the watch delivers what is, and that begins another pass.
    Stale,
    /// The watches are behind, and may deliver nothing that begins another pass: it is tried again.
    Behind,
    /// All of it.
    Complete(V),
}

/// What follows from a refusal.
#[derive(Debug)]
pub struct Refused<V> {
    /// What is recorded and announced.
    pub verdict: V,
    /// How the pass goes on.
    pub then: Then,
}

/// How a pass goes on after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// With the next action.
    GoOn,
    /// It records, and has ended well.
    Settle,
    /// It records, and is tried again later.
    Fail,
}

/// What a pass has done.
#[derive(Debug)]
pub struct Done<'d, A> {
    /// The actions that were carried out, in their order.
    pub actions: &'d [&'d A],
    /// Whether the verdict was recorded, or nothing was to be.
    pub is_recorded: bool,
    /// Whether nothing was announced about this object before.
    pub is_new: bool,
}
