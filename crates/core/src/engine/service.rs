//! The machine of Services: those that no Rollout leads any more go back to what their owners wrote.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    cache::place_of,
    key::{self, ObjectKey, Place},
    machine::{Begin, Done, Known, Machine, Observation, Refused, Then},
    resource,
    world::{Announcement, Found, Read, Refusal},
    write::{Verb, Write},
};
use crate::{
    api::{
        self, Rollout,
        constants::{annotation, label},
    },
    kubernetes::{names, value::Value},
    rollout::services,
};

/// The machine of Services.
#[derive(Debug)]
pub struct ServiceMachine;

/// All that was read for one decision about a Service.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    /// When.
    pub now: Timestamp,
    /// The Service.
    pub service: Value,
    /// The Rollouts that may lead it, as the server has them: one of another instance is in no watch. `None` before they
    /// were read.
    pub rollouts: Option<Vec<Value>>,
    /// Whether they could not be read.
    #[serde(skip)]
    is_refused: bool,
}

/// What was seen, and what it means.
#[derive(Debug)]
pub struct View {
    now: Timestamp,
    service: Value,
    rollouts: Vec<Rollout>,
}

/// What was decided.
#[derive(Debug, Serialize)]
pub struct Verdict {
    /// The merge patch that gives the Service back, if no Rollout leads it.
    pub patch: Option<Value>,
    /// Why.
    pub reasons: Vec<String>,
}

impl Machine for ServiceMachine {
    const KEY: key::Machine = key::Machine::Service;
    const KIND: &'static str = "Service";
    type Case = Case;
    type View = View;
    type Verdict = Verdict;
    /// The one write: a merge patch.
    type Action = Value;

    fn begin(known: &Known<'_>, place: &Place) -> Begin<Case> {
        let cache = &known.state.cache;
        let key = ObjectKey { resource: resource::services(), place: place.clone() };
        let Some(service) = cache.get(&key.resource, place).cloned() else { return Begin::Gone };
        let leaders = known.state.references.to(&key);
        let leaders = leaders.filter_map(|place| cache.get(&resource::rollouts(), place));
        let leaders: Vec<Rollout> = leaders.map(|rollout| api::read(rollout).object).collect();
        // Nearly every change of a Service is one that its Rollout made.
        if services::release(&service, &leaders).is_none() {
            return Begin::Gone;
        }
        Begin::Case(Case { now: known.now, service, rollouts: None, is_refused: false })
    }

    fn look(case: &mut Case) -> Observation<View> {
        if case.is_refused {
            return Observation::Behind;
        }
        let namespace = place_of(&case.service).namespace;
        let Some(rollouts) = &case.rollouts else {
            let read = match services::leader(&case.service) {
                // No Rollout can have this name.
                Some(name) if !names::dns_subdomain(name).is_empty() => {
                    case.rollouts = Some(Vec::new());
                    return Self::look(case);
                }
                Some(name) => {
                    let place = Place::new(&namespace, name);
                    Read::Object(ObjectKey { resource: resource::rollouts(), place })
                }
                None => Read::List(resource::rollouts(), namespace.to_string(), None),
            };
            return Observation::Missing(vec![read]);
        };
        let rollouts = rollouts.iter().map(|rollout| api::read(rollout).object).collect();
        Observation::Complete(View { now: case.now, service: case.service.clone(), rollouts })
    }

    fn absorb(case: &mut Case, found: Vec<Found>) {
        for found in found {
            case.rollouts = match found {
                Found::Object(live) => Some(vec![live.object]),
                Found::Missing(_) => Some(Vec::new()),
                Found::List(rollouts) => Some(rollouts),
                Found::Refused(_) | Found::Token(_) | Found::Answer(_) => {
                    case.is_refused = true;
                    None
                }
            };
        }
    }

    fn decide(view: &View) -> Verdict {
        let patch = services::release(&view.service, &view.rollouts);
        let why = "given back to its owner: no rollout leads it any more";
        Verdict { reasons: patch.iter().map(|_| why.to_owned()).collect(), patch }
    }

    fn diff(_: &View, verdict: &Verdict) -> Vec<Value> {
        verdict.patch.iter().cloned().collect()
    }

    fn check(_: &View, _: &Verdict, patches: &[Value]) -> Vec<String> {
        // What it may take out is two keys, and nothing else is its to write.
        let keys = |patch: &Value, path: &[&str]| -> Vec<String> {
            let map = patch.at(path).and_then(Value::as_map);
            map.into_iter().flat_map(|map| map.iter()).map(|(key, _)| key.to_string()).collect()
        };
        let foreign = patches.iter().filter(|patch| {
            let spec = keys(patch, &["spec", "selector"]) == [label::POD_TEMPLATE_HASH];
            let notes = keys(patch, &["metadata", "annotations"]);
            let only =
                |path: &[&str], allowed: &[&str]| keys(patch, path).iter().all(|key| allowed.contains(&key.as_str()));
            !(spec
                && notes.iter().all(|key| key == annotation::MANAGED_BY)
                && only(&[], &["metadata", "spec"])
                && only(&["spec"], &["selector"])
                && only(&["metadata"], &["uid", "resourceVersion", "annotations"]))
        });
        foreign
            .map(|patch| format!("S5: {} is more than a Service that is given back may lose", patch.to_json()))
            .collect()
    }

    fn write(view: &View, patch: &Value) -> Write {
        let object = ObjectKey { resource: resource::services(), place: place_of(&view.service) };
        Write { object, subresource: "", verb: Verb::Patch, body: patch.clone() }
    }

    fn refused(_: &View, _: &Verdict, _: &Value, _: &Write, why: &Refusal) -> Option<Refused<Verdict>> {
        // It is gone, and belongs to nobody.
        let nothing = Verdict { patch: None, reasons: Vec::new() };
        (why.code == 404).then_some(Refused { verdict: nothing, then: Then::Settle })
    }

    fn announce(_: &View, _: &Verdict, _: &Done<'_, Value>) -> Vec<Announcement> {
        Vec::new()
    }

    fn wake(_: &View, _: &Verdict) -> Option<Timestamp> {
        None
    }

    fn reasons(verdict: &Verdict) -> &[String] {
        &verdict.reasons
    }

    fn object(view: &View) -> &Value {
        &view.service
    }

    fn now(view: &View) -> Timestamp {
        view.now
    }
}
