//! The machines of Services and of DestinationRules: those that no Rollout leads any more go back to what their owners wrote.

use std::{fmt::Debug, marker::PhantomData};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    cache::place_of,
    key::{self, ObjectKey, Place, Resource},
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
    kubernetes::{
        names,
        patch::merge,
        value::{Text, Value},
    },
    rollout::services,
    route::{self, Apis},
};

/// The machine of Services.
pub type ServiceMachine = ReleaseMachine<Services>;
/// The machine of DestinationRules.
pub type SubsetsMachine = ReleaseMachine<Subsets>;

/// The machine of one kind of object that Rollouts lead.
#[derive(Debug)]
pub struct ReleaseMachine<L>(PhantomData<L>);

/// A kind of object that Rollouts lead.
pub trait Led: Debug {
    /// The machine of its objects.
    const KEY: key::Machine;
    /// Its name.
    const KIND: &'static str;

    /// The resource of its objects.
    fn resource(apis: &Apis) -> Resource;

    /// The merge patch that gives an object back, if none of these Rollouts leads it.
    fn release(object: &Value, rollouts: &[Rollout]) -> Option<Value>;
}

/// Services, whose selectors name versions.
#[derive(Debug)]
pub struct Services;

/// DestinationRules, whose subsets name versions.
#[derive(Debug)]
pub struct Subsets;

impl Led for Services {
    const KEY: key::Machine = key::Machine::Service;
    const KIND: &'static str = "Service";

    fn resource(_: &Apis) -> Resource {
        resource::services()
    }

    fn release(object: &Value, rollouts: &[Rollout]) -> Option<Value> {
        services::release(object, rollouts)
    }
}

impl Led for Subsets {
    const KEY: key::Machine = key::Machine::Subsets;
    const KIND: &'static str = "DestinationRule";

    fn resource(apis: &Apis) -> Resource {
        resource::route(route::Kind::DestinationRule, apis)
    }

    fn release(object: &Value, rollouts: &[Rollout]) -> Option<Value> {
        route::release(object, rollouts)
    }
}

/// All that was read for one decision about an object that a Rollout led.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    /// When.
    pub now: Timestamp,
    /// The versions in which the routers' APIs are spoken.
    #[serde(default)]
    pub apis: Apis,
    /// The object.
    pub object: Value,
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
    key: ObjectKey,
    object: Value,
    rollouts: Vec<Rollout>,
}

/// What was decided.
#[derive(Debug, Serialize)]
pub struct Verdict {
    /// The merge patch that gives the object back, if no Rollout leads it.
    pub patch: Option<Value>,
    /// Why.
    pub reasons: Vec<String>,
}

impl<L: Led> Machine for ReleaseMachine<L> {
    const KEY: key::Machine = L::KEY;
    const KIND: &'static str = L::KIND;
    type Case = Case;
    type View = View;
    type Verdict = Verdict;
    /// The one write: a merge patch.
    type Action = Value;

    fn begin(known: &Known<'_>, place: &Place) -> Begin<Case> {
        let cache = &known.state.cache;
        let key = ObjectKey { resource: L::resource(&known.settings.apis), place: place.clone() };
        let Some(object) = cache.get(&key.resource, place).cloned() else { return Begin::Gone };
        let leaders = known.state.references.to(&key);
        let leaders = leaders.filter_map(|place| cache.get(&resource::rollouts(), place));
        let leaders: Vec<Rollout> = leaders.map(|rollout| api::read(rollout).object).collect();
        // Nearly every change of such an object is one that its Rollout made.
        if L::release(&object, &leaders).is_none() {
            return Begin::Gone;
        }
        let apis = known.settings.apis.clone();
        Begin::Case(Case { now: known.now, apis, object, rollouts: None, is_refused: false })
    }

    fn look(case: &mut Case) -> Observation<View> {
        if case.is_refused {
            return Observation::Behind;
        }
        let key = ObjectKey { resource: L::resource(&case.apis), place: place_of(&case.object) };
        let Some(rollouts) = &case.rollouts else {
            let read = match services::leader(&case.object) {
                // No Rollout can have this name.
                Some(name) if !names::dns_subdomain(name).is_empty() => {
                    case.rollouts = Some(Vec::new());
                    return Self::look(case);
                }
                Some(name) => {
                    let place = Place::new(&key.place.namespace, name);
                    Read::Object(ObjectKey { resource: resource::rollouts(), place })
                }
                None => Read::List(resource::rollouts(), key.place.namespace.to_string(), None),
            };
            return Observation::Missing(vec![read]);
        };
        let rollouts = rollouts.iter().map(|rollout| api::read(rollout).object).collect();
        Observation::Complete(View { now: case.now, key, object: case.object.clone(), rollouts })
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
        let patch = L::release(&view.object, &view.rollouts);
        let why = "given back to its owner: no rollout leads it any more";
        Verdict { reasons: patch.iter().map(|_| why.to_owned()).collect(), patch }
    }

    fn diff(_: &View, verdict: &Verdict) -> Vec<Value> {
        verdict.patch.iter().cloned().collect()
    }

    fn check(view: &View, _: &Verdict, patches: &[Value]) -> Vec<String> {
        let changed = |patch: &&Value| rest(&merge::apply(&view.object, patch)) != rest(&view.object);
        let words =
            |patch: &Value| format!("S5: {} takes more from {} than hashes and a note", patch.to_json(), L::KIND);
        patches.iter().filter(changed).map(words).collect()
    }

    fn write(view: &View, patch: &Value) -> Write {
        Write { object: view.key.clone(), subresource: "", verb: Verb::Patch, body: patch.clone() }
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
        &view.object
    }

    fn now(view: &View) -> Timestamp {
        view.now
    }
}

/// What of an object is its owner's: all but the hashes of versions and the note who leads it.
fn rest(object: &Value) -> Value {
    let mut rest = object.clone();
    rest.remove_at(&["metadata", "annotations", annotation::MANAGED_BY]);
    without_hashes(&mut rest);
    rest
}

/// Takes out the hashes, and maps that held nothing else.
fn without_hashes(value: &mut Value) {
    if let Some(map) = value.as_map_mut() {
        map.retain(|key, _| key.as_str() != label::POD_TEMPLATE_HASH);
        let keys: Vec<Text> = map.iter().map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| without_hashes(map.entry(key)));
        map.retain(|_, value| value.as_map().is_none_or(|map| !map.is_empty()));
    } else if let Some(list) = value.as_list_mut() {
        list.iter_mut().for_each(without_hashes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    /// The rules that a patch of a DestinationRule would break.
    fn broken(patch: Value) -> Vec<String> {
        let subset = value!({"name": "v1", "labels": {"app": "a", "rollouts-pod-template-hash": "h"}});
        let spec =
            value!({"host": "web", "subsets": [subset, {"name": "v2", "labels": {"rollouts-pod-template-hash": "i"}}]});
        let object = value!({"metadata": {"name": "d", "namespace": "shop"}, "spec": spec});
        let key = ObjectKey { resource: resource::services(), place: place_of(&object) };
        let view = View { now: Timestamp::UNIX_EPOCH, key, object, rollouts: Vec::new() };
        let verdict = Verdict { patch: None, reasons: Vec::new() };
        SubsetsMachine::check(&view, &verdict, &[patch])
    }

    #[test]
    fn s5_an_object_that_is_given_back_loses_hashes_and_the_note_alone() {
        let subsets = value!([{"name": "v1", "labels": {"app": "a"}}, {"name": "v2"}]);
        assert_eq!(broken(value!({"spec": {"subsets": subsets}})), Vec::<String>::new());
        let lost = broken(value!({"spec": {"subsets": [{"name": "v1", "labels": {"app": "a"}}]}}));
        assert!(lost[0].starts_with("S5: ") && lost[0].contains("DestinationRule"), "{lost:?}");
        assert_eq!(broken(value!({"spec": {"host": "other"}})).len(), 1);
        assert_eq!(broken(value!({"metadata": {"labels": {"x": "y"}}})).len(), 1);
    }
}
