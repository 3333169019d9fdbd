//! All that the engine knows between passes: what watches delivered, what must be seen before a decision, and who is next.
//!
//! Shared by the daemon on a cluster and by the simulator. Never reads a clock and never sends anything.

use std::collections::HashMap;

use jiff::Timestamp;

use super::{
    analysis,
    cache::{Cache, Change, News, place_of, version_of},
    experiment,
    fence::Fence,
    key::{Key, Machine, ObjectKey, Place, Resource},
    observe,
    queue::{Outcome, Queue},
    references::References,
    resource,
    write::Written,
};
use crate::{
    api::{self, Experiment, Rollout, constants::annotation},
    kubernetes::value::Value,
    metric::job::outcome,
    rollout::{Crowd, Seen, services},
    route::{self, Apis, Kind},
};

/// From how many others on, who wait for a decision, what can wait does.
const CROWD: usize = 32;

/// What is known, awaited and due.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The objects as the watches delivered them.
    pub cache: Cache,
    /// What the Rollouts name.
    pub references: References,
    /// The names that Experiments give.
    pub given: References,
    /// What was written and not yet seen.
    pub fence: Fence,
    /// Who is looked at next.
    pub queue: Queue,
    /// The versions of routers' APIs that the operator chose.
    pub apis: Apis,
    /// When each Rollout was last written.
    written: HashMap<Key, Timestamp>,
}

/// What follows from a delivery.
#[derive(Debug, Default, PartialEq)]
pub struct Heard {
    /// Whom it concerns; a key may be named more than once.
    pub keys: Vec<Key>,
    /// Who may look different because a watch began anew.
    pub again: Vec<Key>,
    /// The Rollouts that are gone, as they last were.
    pub gone: Vec<(Key, Value)>,
    /// The objects of any kind that are gone.
    pub removed: Vec<Place>,
}

impl State {
    /// One that knows nothing yet, where the routers' APIs are spoken in these versions.
    pub fn speaking(apis: Apis) -> State {
        State { apis, ..State::default() }
    }

    /// Takes in what a watch delivered: the fence is lowered, what is gone is forgotten. Queue whom it concerns.
    pub fn hear(&mut self, resource: &Resource, news: News, now: Timestamp) -> Heard {
        let list = match &news {
            News::List(_, version) => Some(*version),
            News::Object(_) | News::Gone(_) | News::Unserved => None,
        };
        let is_unserved = news == News::Unserved;
        let unknown = unknown(&self.cache, resource, &news);
        let changes = self.cache.take(resource, news);
        let mut heard = Heard::default();
        heard.keys.extend(unknown.into_iter().flat_map(|(key, version)| self.fence.saw_gone(&key, version)));
        for change in &changes {
            let key = ObjectKey { resource: resource.clone(), place: change.place.clone() };
            heard.keys.extend(match &change.after {
                Some(object) => {
                    let uid = object.str_at(&["metadata", "uid"]).unwrap_or_default();
                    let leaving = object.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
                    self.fence.saw(&key, uid, change.version, leaving)
                }
                None => self.fence.saw_gone(&key, change.version),
            });
        }
        if let Some(version) = list {
            let cache = &self.cache;
            heard.keys.extend(self.fence.saw_list(resource, version, |place| cache.get(resource, place).is_some()));
        }
        // What the server no longer serves is never seen again.
        if is_unserved {
            heard.keys.extend(self.fence.saw_list(resource, u64::MAX, |_| false));
        }
        // Everything may look different now.
        if list.is_some() || is_unserved {
            heard.again.extend(self.cache.all(&resource::rollouts()).map(|rollout| subject(&place_of(rollout))));
            let open = self.cache.all(&resource::runs()).filter(|run| !analysis::is_over(run));
            heard.again.extend(open.map(|run| analysis::subject(&place_of(run))));
            let experiments = self.cache.all(&resource::experiments());
            heard.again.extend(experiments.map(|experiment| experiment::subject(&place_of(experiment))));
        }
        heard.removed =
            changes.iter().filter(|change| change.after.is_none()).map(|change| change.place.clone()).collect();
        for change in changes {
            heard.keys.extend(self.measured(resource, &change));
            if list.is_none() || change.before.is_some() || *resource == resource::experiments() {
                heard.keys.extend(self.compared(resource, &change));
            }
            if *resource != resource::rollouts() {
                if *resource == resource::services() && change.after.as_ref().is_some_and(services::is_led) {
                    heard.keys.push(Key { machine: Machine::Service, place: change.place.clone() });
                }
                let is_rule = resource.plural == Kind::DestinationRule.plural(&self.apis);
                if is_rule && change.after.as_ref().is_some_and(|rule| services::leader(rule).is_some()) {
                    heard.keys.push(Key { machine: Machine::Subsets, place: change.place.clone() });
                }
                // Those of a first list are looked at again anyway.
                if list.is_none() || change.before.is_some() {
                    let concerned = observe::concerned(&self.cache, &self.references, resource, &change, now);
                    heard.keys.extend(concerned.iter().map(subject));
                }
                continue;
            }
            if let Some(name) = route::abandoned(change.before.as_ref(), change.after.as_ref()) {
                let place = Place { namespace: change.place.namespace.clone(), name };
                heard.keys.push(Key { machine: Machine::Subsets, place });
            }
            for name in services::abandoned(change.before.as_ref(), change.after.as_ref()) {
                let place = Place { namespace: change.place.namespace.clone(), name };
                heard.keys.push(Key { machine: Machine::Service, place });
            }
            if !is_specified_as_before(&change) {
                let rollout: Option<Rollout> = change.after.as_ref().map(|rollout| api::read(rollout).object);
                let referred = rollout.map_or_else(Vec::new, |rollout| observe::referred(&rollout, &self.apis));
                self.references.set(&change.place, referred);
            }
            let key = subject(&change.place);
            match (change.after, change.before) {
                (Some(_), None) if list.is_some() => {}
                (Some(_), _) => heard.keys.push(key),
                (None, before) => {
                    // Not what it waits for: one of its name that comes next must see what this one wrote.
                    self.queue.forget(&key);
                    self.written.remove(&key);
                    heard.gone.extend(before.map(|before| (key, before)));
                }
            }
        }
        heard
    }

    /// The AnalysisRun that a change is about: it changed itself, or one of its Jobs is over.
    fn measured(&mut self, resource: &Resource, change: &Change) -> Option<Key> {
        if *resource == resource::runs() {
            let key = analysis::subject(&change.place);
            if change.after.is_none() {
                self.queue.forget(&key);
            }
            return change.after.as_ref().map(|_| key);
        }
        if *resource != resource::jobs() {
            return None;
        }
        let job = change.after.as_ref().or(change.before.as_ref())?;
        let is_over = change.after.as_ref().is_none_or(|job| outcome(job).is_some());
        let note = |key: &str| job.str_at(&["metadata", "annotations", key]);
        let place = Place::new(note(annotation::ANALYSIS_RUN_NAMESPACE)?, note(annotation::ANALYSIS_RUN_NAME)?);
        is_over.then(|| analysis::subject(&place))
    }

    /// The Experiments that a change is about: it changed itself, or something that it owns or names did.
    fn compared(&mut self, resource: &Resource, change: &Change) -> Vec<Key> {
        if *resource != resource::experiments() {
            let concerned = experiment::concerned(&self.cache, &self.given, resource, change);
            return concerned.iter().map(experiment::subject).collect();
        }
        let key = experiment::subject(&change.place);
        if !is_specified_as_before(change) {
            let experiment: Option<Experiment> = change.after.as_ref().map(|experiment| api::read(experiment).object);
            let referred = experiment.map_or_else(Vec::new, |experiment| experiment::referred(&experiment));
            self.given.set(&change.place, referred);
        }
        if change.after.is_some() {
            return vec![key];
        }
        self.queue.forget(&key);
        Vec::new()
    }

    /// Nobody watches this resource any more: nothing is known of it, and nobody waits to see it. Queue who did.
    pub fn unwatch(&mut self, resource: &Resource) -> Vec<Key> {
        self.cache.drop(resource);
        self.fence.saw_list(resource, u64::MAX, |_| false)
    }

    /// The versions in which the APIs of a Rollout's routers are spoken: those that the operator chose, and, where a kind
    /// has moved, the newest that the server has.
    pub fn apis_for(&self, rollout: &Rollout) -> Apis {
        if route::has_moved(rollout) { resource::served(&self.apis, &self.cache) } else { self.apis.clone() }
    }

    /// The Rollout of this name, if there is one.
    pub fn rollout(&self, place: &Place) -> Option<Rollout> {
        self.cache.get(&resource::rollouts(), place).map(|rollout| api::read(rollout).object)
    }

    /// Everything that a decision about this Rollout may know; `None` if it is gone.
    pub fn see(&self, place: &Place, rollout: &Rollout, now: Timestamp) -> Option<Seen> {
        let written = self.written.get(&subject(place)).copied();
        let crowd = if self.queue.depth().0 > CROWD { Crowd::Many } else { Crowd::Few };
        let apis = self.apis_for(rollout);
        observe::see(&self.cache, &apis, place, rollout, now).map(|seen| Seen { written, crowd, ..seen })
    }

    /// Who has a pass now. Never one who would decide on less than was written: it is told as `fenced`, and what is seen
    /// brings it back.
    pub fn next(&mut self, now: Timestamp, fenced: impl Fn(&Key)) -> Option<Key> {
        loop {
            let key = self.queue.next(now)?;
            if self.fence.behind(&key).is_none() {
                return Some(key);
            }
            fenced(&key);
            self.queue.done(&key, Outcome::Settled(None), now);
        }
    }

    /// A pass has ended: what it wrote must be seen before the next one, as far as it is watched.
    pub fn finish(
        &mut self,
        key: &Key,
        written: Vec<Written>,
        outcome: Outcome,
        now: Timestamp,
        is_watched: impl Fn(&ObjectKey) -> bool,
    ) {
        for write in written {
            if write.rollout_version().is_some() {
                self.written.insert(key.clone(), now);
            }
            match write {
                Written::Version(object, version) => {
                    // Asked of the watch, not of the object: that may have been seen, and be gone again, or be another
                    // one of its name, before the pass that wrote it has ended.
                    if self.cache.position(&object.resource) < version && is_watched(&object) {
                        self.fence.wrote(key, &object, version, now);
                    }
                }
                Written::Deleted(object, uid, version) => {
                    let seen = self.cache.get(&object.resource, &object.place);
                    let is_there = seen.is_some_and(|seen| seen.str_at(&["metadata", "uid"]) == Some(&uid));
                    if is_there && seen.map_or(0, version_of) <= version {
                        self.fence.deleted(key, &object, &uid, version, now);
                    }
                }
            }
        }
        self.queue.done(key, outcome, now);
    }
}

/// The object whose end this is, if it was not known: it came and went while a watch was away, and may be waited for.
pub fn unknown(cache: &Cache, resource: &Resource, news: &News) -> Option<(ObjectKey, u64)> {
    let News::Gone(object) = news else { return None };
    let place = place_of(object);
    let is_unknown = cache.get(resource, &place).is_none();
    is_unknown.then(|| (ObjectKey { resource: resource.clone(), place }, version_of(object)))
}

/// Whether only something else than the specification has changed, as far as that can be told at a glance.
fn is_specified_as_before(change: &Change) -> bool {
    let spec = |object: &Option<Value>| object.as_ref().and_then(|object| object.get("spec")).cloned();
    spec(&change.before).zip(spec(&change.after)).is_some_and(|(before, after)| before.is(&after))
}

/// The key of the Rollout at a place.
pub fn subject(place: &Place) -> Key {
    Key { machine: Machine::Rollout, place: place.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::fence::RELIST_AFTER, value};

    fn set(uid: &str, version: u64) -> Value {
        value!({"metadata": {"namespace": "shop", "name": "web-1", "uid": uid, "resourceVersion": version.to_string()}})
    }

    /// What watches may deliver while a pass is under way that writes a ReplicaSet at version 10: whatever it is, the next
    /// pass must come to begin.
    #[test]
    fn a_fence_has_a_way_out_in_every_order() {
        let object = ObjectKey { resource: resource::sets(), place: Place::new("shop", "web-1") };
        let gone = |uid: &str, version: u64| News::Gone(set(uid, version));
        let there = |uid: &str, version: u64| News::Object(set(uid, version));
        let orders: [(&str, Vec<News>, Vec<News>); 8] = [
            ("seen before", vec![there("a", 10)], vec![]),
            ("seen after", vec![], vec![there("a", 10)]),
            ("seen and gone before", vec![there("a", 10), gone("a", 12)], vec![]),
            ("gone before, without having been seen", vec![gone("a", 12)], vec![]),
            ("recreated before", vec![there("a", 10), gone("a", 12), there("b", 13)], vec![]),
            ("seen before, gone after", vec![there("a", 10)], vec![gone("a", 12)]),
            ("gone after", vec![], vec![gone("a", 12)]),
            ("no longer served", vec![], vec![News::Unserved]),
        ];
        for (order, before, after) in orders {
            let (mut state, now, web) = (State::default(), Timestamp::UNIX_EPOCH, subject(&Place::new("shop", "web")));
            state.hear(&object.resource, News::List(vec![], 5), now);
            state.queue.add(&web);
            assert_eq!(state.next(now, |_| {}), Some(web.clone()));
            before.into_iter().for_each(|news| drop(state.hear(&object.resource, news, now)));
            let written = vec![Written::Version(object.clone(), 10)];
            state.finish(&web, written, Outcome::Settled(None), now, |_| true);
            for news in after {
                state.hear(&object.resource, news, now);
            }
            assert_eq!(state.fence.count(), 0, "{order}");
        }
    }

    #[test]
    fn what_never_comes_is_asked_for() {
        let object = ObjectKey { resource: resource::sets(), place: Place::new("shop", "web-1") };
        let (mut state, now, web) = (State::default(), Timestamp::UNIX_EPOCH, subject(&Place::new("shop", "web")));
        state.hear(&object.resource, News::List(vec![], 5), now);
        state.finish(&web, vec![Written::Version(object.clone(), 10)], Outcome::Settled(None), now, |_| true);
        let late = now.saturating_add(RELIST_AFTER).unwrap();
        assert_eq!(state.fence.overdue(late), std::collections::BTreeSet::from([object.resource.clone()]));
        let heard = state.hear(&object.resource, News::List(vec![], 11), late);
        assert_eq!((heard.keys, state.fence.count()), (vec![web], 0));
    }

    #[test]
    fn who_waits_to_see_what_nobody_watches_any_more_goes_on() {
        let (mut state, now, web) = (State::default(), Timestamp::UNIX_EPOCH, subject(&Place::new("shop", "web")));
        let pod = ObjectKey { resource: resource::pods(), place: Place::new("shop", "web-1") };
        let object = value!({"metadata": {"namespace": "shop", "name": "web-1", "uid": "u", "resourceVersion": "5"}});
        state.hear(&pod.resource, News::List(vec![object], 5), now);
        state.queue.add(&web);
        assert_eq!(state.next(now, |_| {}), Some(web.clone()));
        let evicted = vec![Written::Deleted(pod.clone(), "u".into(), 5)];
        state.finish(&web, evicted, Outcome::Settled(None), now, |_| true);
        state.queue.add(&web);
        assert_eq!(state.next(now, |_| {}), None, "the eviction must show first");
        assert_eq!(state.unwatch(&pod.resource), [web]);
    }
}
