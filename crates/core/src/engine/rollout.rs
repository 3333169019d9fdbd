//! The machine of Rollouts: templates to ReplicaSets and traffic.
//!
//! What it decides is [`crate::rollout`]'s; here it is only joined to the loop.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    cache::place_of,
    key::{self, ObjectKey, Place},
    machine::{Begin, Done, Known, Machine, Observation, Refused, Then},
    observe::{self, LiveAnswer, LiveCheck},
    resource,
    world::{Announcement, Found, Note, Read, Refusal},
    write::Write,
};
use crate::{
    api::constants::{kind, message, reason},
    kubernetes::value::Value,
    model::event::Event,
    rollout::{
        Action, Crowd, Seen, Verdict, View, check, decide, deliberate, diff, diff::Subject, refused, rest::is_at_rest,
    },
    route::{self, Kind, Routed},
};

/// The machine of Rollouts.
#[derive(Debug)]
pub struct RolloutMachine;

/// All that was read for one decision about a Rollout.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    /// What was seen.
    pub seen: Seen,
    /// What the Rollout names and was not seen. Each watch has its own pace: it may exist all the same, and the server is
    /// asked before a Rollout is called invalid for it.
    #[serde(skip)]
    missing: Vec<Unseen>,
    /// The live reads that were made.
    #[serde(skip)]
    made: Vec<LiveCheck>,
    /// The one that is being made.
    #[serde(skip)]
    checks: Option<LiveCheck>,
    #[serde(skip)]
    trust: Trust,
}

/// An object that was not seen.
#[derive(Debug, Clone)]
struct Unseen {
    key: ObjectKey,
    /// The kind of router that reads it, if no watch will ever deliver it.
    unwatched: Option<Kind>,
}

/// How far the watches can be believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Trust {
    #[default]
    Whole,
    Stale,
    Behind,
}

impl Machine for RolloutMachine {
    const KEY: key::Machine = key::Machine::Rollout;
    const KIND: &'static str = kind::ROLLOUT;
    type Case = Case;
    type View = View;
    type Verdict = Verdict;
    type Action = Action;

    fn begin(known: &Known<'_>, place: &Place) -> Begin<Case> {
        let Some(rollout) = known.state.rollout(place) else { return Begin::Gone };
        let apis = known.state.apis_for(&rollout);
        let mut needs = observe::needs(&rollout, &apis, known.now);
        if observe::templates(&known.state.cache, &rollout).1 {
            needs.push(resource::cluster_templates());
        }
        let unlisted = known.unlisted(needs);
        if !unlisted.is_empty() {
            return Begin::Follow(unlisted);
        }
        let (conditions, route_scope) = (known.settings.conditions, known.settings.route_scope);
        let Some(seen) = known.state.see(place, &rollout, known.now) else { return Begin::Gone };
        let seen = Seen { conditions, route_scope, ..seen };
        let unwatched = |key: &ObjectKey| {
            let mut named = route::named(&rollout).into_iter().map(|id| id.kind);
            named.find(|kind| !known.settings.is_in_scope(key) && resource::route(*kind, &apis) == key.resource)
        };
        let missing = observe::missing(&rollout, &seen).into_iter();
        let missing = missing.map(|key| Unseen { unwatched: unwatched(&key), key }).collect();
        Begin::Case(Case { seen, missing, made: Vec::new(), checks: None, trust: Trust::Whole })
    }

    fn look(case: &mut Case) -> Observation<View> {
        match case.trust {
            Trust::Whole => {}
            Trust::Stale => return Observation::Stale,
            Trust::Behind => return Observation::Behind,
        }
        if !case.missing.is_empty() {
            return Observation::Missing(case.missing.iter().map(|unseen| Read::Object(unseen.key.clone())).collect());
        }
        let view = View::of(&case.seen);
        case.checks = LiveCheck::next(&view, &case.made);
        match &case.checks {
            Some(check) => Observation::Missing(vec![Read::Object(check.object().clone())]),
            None => Observation::Complete(view),
        }
    }

    fn absorb(case: &mut Case, found: Vec<Found>) {
        let mut found = found.into_iter();
        for (unseen, found) in std::mem::take(&mut case.missing).into_iter().zip(found.by_ref()) {
            let Found::Object(live) = found else { continue };
            match unseen.unwatched {
                Some(kind) => case.seen.routes.push(Routed { kind, object: live.object }),
                None => case.trust = Trust::Behind,
            }
        }
        let (Some(check), Some(found)) = (case.checks.take(), found.next()) else { return };
        let live = match &found {
            Found::Object(live) => Some((&live.object, live.is_altered)),
            Found::Missing(_) => None,
            Found::Refused(_) | Found::List(_) | Found::Token(_) | Found::Answer(_) => {
                case.trust = Trust::Behind;
                return;
            }
        };
        match check.absorb(&mut case.seen, live) {
            LiveAnswer::Confirmed | LiveAnswer::Changed => {}
            LiveAnswer::Stale => case.trust = Trust::Stale,
        }
        case.made.push(check);
    }

    fn decide(view: &View) -> Verdict {
        debug_assert!(
            !is_at_rest(view) || deliberate(view).is_quiet(view),
            "{} is not at rest: {:?}",
            place_of(&view.object),
            deliberate(view)
        );
        decide(view)
    }

    fn diff(view: &View, verdict: &Verdict) -> Vec<Action> {
        diff(view, verdict)
    }

    fn check(view: &View, verdict: &Verdict, actions: &[Action]) -> Vec<String> {
        check(view, verdict, actions).iter().map(ToString::to_string).collect()
    }

    fn write(view: &View, action: &Action) -> Write {
        Write::of(view, action)
    }

    fn record(view: &View, verdict: &Verdict, own: Option<u64>) -> Option<Write> {
        Write::status(view, verdict, own)
    }

    fn refused(view: &View, _: &Verdict, action: &Action, write: &Write, why: &Refusal) -> Option<Refused<Verdict>> {
        let verdict = write.is_refused(why.code).then(|| refused(view, action, &why.message)).flatten()?;
        Some(Refused { verdict, then: Then::Fail })
    }

    fn announce(view: &View, verdict: &Verdict, done: &Done<'_, Action>) -> Vec<Announcement> {
        let metadata = &view.rollout.metadata;
        let message = message::added_to_informer(&metadata.namespace, &metadata.name);
        let met = Event { warning: false, reason: reason::ADDED_TO_INFORMER, message };
        let events = verdict.events.iter();
        let events = events.filter(|event| done.is_recorded || is_about(event, done.actions)).cloned();
        let announcement = |event| Announcement { kind: kind::ROLLOUT, object: view.object.clone(), event };
        done.is_new.then_some(met).into_iter().chain(events).map(announcement).collect()
    }

    fn wake(_: &View, verdict: &Verdict) -> Option<Timestamp> {
        verdict.wake
    }

    fn reasons(verdict: &Verdict) -> &[String] {
        &verdict.reasons
    }

    fn recorded<'n>(view: &'n View, verdict: &'n Verdict) -> Option<Note<'n>> {
        let after = verdict.status.as_ref()?;
        Some(Note::Recorded { before: &view.rollout.status, after, now: view.now })
    }

    fn object(view: &View) -> &Value {
        &view.object
    }

    fn now(view: &View) -> Timestamp {
        view.now
    }

    fn crowd(view: &View) -> Crowd {
        view.crowd
    }
}

/// Whether an event says that one of these actions was carried out. The next pass finds it done, and would not say so.
fn is_about(event: &Event, actions: &[&Action]) -> bool {
    let names = |name: &str| event.message.split([' ', '\'', '"']).any(|word| word == name);
    actions.iter().any(|action| match action {
        Action::CreateSet { set } => event.reason == reason::NEW_REPLICA_SET && names(&place_of(set).name),
        Action::Patch { object: Subject::Set, name, .. } => event.reason == reason::SCALING_REPLICA_SET && names(name),
        Action::Patch { object: Subject::Service, name, .. } => event.reason == reason::SWITCH_SERVICE && names(name),
        Action::CreateExperiment { experiment } => {
            event.reason == reason::EXPERIMENT_CREATED && names(&place_of(experiment).name)
        }
        Action::Patch { .. }
        | Action::Route { .. }
        | Action::DeleteSet { .. }
        | Action::CreateRun { .. }
        | Action::DeleteRun { .. }
        | Action::DeleteExperiment { .. }
        | Action::Evict { .. } => false,
    })
}
