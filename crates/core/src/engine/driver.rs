//! What drives passes: which resources are followed, who has a pass next, and what follows from its end.
//!
//! Shared by the daemon on a cluster and by the simulator: they bring deliveries and the time, begin watches and carry
//! passes out. Never sends anything and never reads a clock.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use super::{
    analysis::{self, AnalysisMachine},
    cache::News,
    experiment::{self, ExperimentMachine},
    key::{Key, Machine as Kind, ObjectKey, Place, Resource},
    machine::{Begin, Known, Machine, Settings},
    observe,
    outbox::Outbox,
    pass::pass,
    quarantine::{self, Quarantine},
    queue::Outcome,
    release::{Led, ServiceMachine, Services, Subsets, SubsetsMachine},
    resource,
    rollout::RolloutMachine,
    state::State,
    world::{Announcement, World},
    write::Written,
};
use crate::{
    api::{
        self, Rollout,
        constants::{kind, message, reason},
    },
    kubernetes::value::Value,
    model::event::Event,
    route::Apis,
};

/// The engine between passes.
#[derive(Debug, Clone, Default)]
pub struct Driver {
    /// How it is set up.
    pub settings: Settings,
    /// What is known, awaited and due.
    pub state: State,
    /// What is to be announced about each object.
    outboxes: HashMap<Key, Outbox>,
    /// The resources that are followed, each by its newest watch.
    watches: BTreeMap<Resource, u64>,
    /// How many watches were begun.
    begun: u64,
    /// The objects whose passes panicked.
    quarantine: Quarantine,
}

/// A watch to begin. What it delivers carries its number, so that what an older one still has under way is not believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Of what.
    pub resource: Resource,
    /// Its number.
    pub number: u64,
}

/// What is next.
#[derive(Debug)]
pub enum Next {
    /// A pass.
    Pass(Box<Pass>),
    /// These watches begin, and something waits for what they deliver.
    Follow(Vec<Watch>),
}

/// A pass to carry out. Say how it went with [`Driver::finish`].
#[derive(Debug)]
pub struct Pass {
    /// What it is about.
    pub key: Key,
    /// What is to be announced.
    pub outbox: Outbox,
    /// What was seen.
    pub case: Case,
}

/// What was seen, by machine. A pass is boxed as a whole.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Case {
    /// Of a Rollout.
    Rollout(<RolloutMachine as Machine>::Case),
    /// Of an AnalysisRun.
    Analysis(<AnalysisMachine as Machine>::Case),
    /// Of an Experiment.
    Experiment(<ExperimentMachine as Machine>::Case),
    /// Of a Service.
    Service(<ServiceMachine as Machine>::Case),
    /// Of a DestinationRule.
    Subsets(<SubsetsMachine as Machine>::Case),
}

impl Case {
    /// Carries the pass out; `None` if this process may not go on.
    pub async fn pass(
        self,
        world: &mut impl World,
        outbox: &mut Outbox,
        written: &mut Vec<Written>,
    ) -> Option<Outcome> {
        match self {
            Case::Rollout(case) => pass::<RolloutMachine, _>(world, case, outbox, written).await,
            Case::Analysis(case) => pass::<AnalysisMachine, _>(world, case, outbox, written).await,
            Case::Experiment(case) => pass::<ExperimentMachine, _>(world, case, outbox, written).await,
            Case::Service(case) => pass::<ServiceMachine, _>(world, case, outbox, written).await,
            Case::Subsets(case) => pass::<SubsetsMachine, _>(world, case, outbox, written).await,
        }
    }
}

/// What follows from a delivery.
#[derive(Debug, Default)]
pub struct Heard {
    /// What is to be announced.
    pub announcements: Vec<Announcement>,
    /// The objects that are gone.
    pub gone: Vec<Place>,
}

impl Driver {
    /// An engine that knows nothing yet.
    pub fn new(settings: Settings) -> Driver {
        Driver { state: State::speaking(settings.apis.clone()), settings, ..Driver::default() }
    }

    /// Begins, or begins anew and forgets what it knew: another process may have written since, and only a list that is made
    /// now shows all of it.
    pub fn start(&mut self) -> Vec<Watch> {
        // Numbers go on: a watch of before is none of today's.
        let begun = self.begun;
        *self = Driver { begun, ..Driver::new(std::mem::take(&mut self.settings)) };
        resource::always().into_iter().filter_map(|resource| self.follow(resource)).collect()
    }

    /// Follows a resource; the watch to begin unless it is followed already.
    fn follow(&mut self, resource: Resource) -> Option<Watch> {
        (!self.watches.contains_key(&resource)).then(|| self.watch(resource))
    }

    fn watch(&mut self, resource: Resource) -> Watch {
        self.begun += 1;
        self.watches.insert(resource.clone(), self.begun);
        Watch { resource, number: self.begun }
    }

    /// The resources that are followed.
    pub fn followed(&self) -> impl Iterator<Item = &Resource> {
        self.watches.keys()
    }

    /// Whether what is always followed has been listed.
    pub fn is_ready(&self) -> bool {
        resource::always().iter().all(|resource| self.state.cache.is_listed(resource))
    }

    /// Takes in what a watch delivered; whom it concerns is due at that time. Nothing, if the watch is not the newest one of
    /// its resource.
    pub fn hear(&mut self, watch: &Watch, news: News, now: Timestamp, due: Timestamp) -> Heard {
        let resource = &watch.resource;
        if self.watches.get(resource) != Some(&watch.number) {
            return Heard::default();
        }
        let heard = self.state.hear(resource, news, now);
        for key in &heard.keys {
            if due <= now { self.state.queue.add(key) } else { self.state.queue.add_at(key, due) }
        }
        heard.again.iter().for_each(|key| self.state.queue.add_again(key));
        // Another machine's object of this name may live.
        for place in &heard.removed {
            for machine in [Kind::Analysis, Kind::Experiment, Kind::Service, Kind::Subsets] {
                if machine.resource(&self.settings.apis).as_ref() == Some(resource) {
                    let key = Key { machine, place: place.clone() };
                    self.outboxes.remove(&key);
                    self.quarantine.release(&key);
                }
            }
        }
        let gone = heard.gone.into_iter().map(|(key, rollout)| {
            self.outboxes.remove(&key);
            self.quarantine.release(&key);
            let message = message::rollout_deleted(&key.place.name, &key.place.namespace);
            let event = Event { warning: false, reason: reason::ROLLOUT_DELETED, message };
            Announcement { kind: kind::ROLLOUT, object: rollout, event }
        });
        Heard { announcements: gone.collect(), gone: heard.removed }
    }

    /// What is next, if anything is due. A pass that would decide on less than was written does not begin: it is told as
    /// `fenced`.
    pub fn next(&mut self, now: Timestamp, fenced: impl Fn(&Key)) -> Option<Next> {
        loop {
            let key = self.state.next(now, &fenced)?;
            if let Some(until) = self.quarantine.holds(&key, &self.version(&key), now) {
                self.state.queue.done(&key, Outcome::Settled(Some(until)), now);
                continue;
            }
            let known = Known { state: &self.state, settings: &self.settings, now };
            let begin = match key.machine {
                Kind::Rollout => RolloutMachine::begin(&known, &key.place).map(Case::Rollout),
                Kind::Analysis => AnalysisMachine::begin(&known, &key.place).map(Case::Analysis),
                Kind::Experiment => ExperimentMachine::begin(&known, &key.place).map(Case::Experiment),
                Kind::Service => ServiceMachine::begin(&known, &key.place).map(Case::Service),
                Kind::Subsets => SubsetsMachine::begin(&known, &key.place).map(Case::Subsets),
                Kind::Sync => Begin::Gone,
            };
            match begin {
                Begin::Case(case) => {
                    let outbox = self.outboxes.get(&key).cloned().unwrap_or_default();
                    return Some(Next::Pass(Box::new(Pass { key, outbox, case })));
                }
                Begin::Gone => self.state.queue.done(&key, Outcome::Settled(None), now),
                Begin::Follow(resources) => {
                    self.state.queue.done(&key, Outcome::Settled(None), now);
                    let watches: Vec<Watch> =
                        resources.into_iter().filter_map(|resource| self.follow(resource)).collect();
                    if !watches.is_empty() {
                        return Some(Next::Follow(watches));
                    }
                }
            }
        }
    }

    /// A pass has ended: what it wrote must be seen before the next one, as far as a watch delivers it.
    pub fn finish(&mut self, key: &Key, written: Vec<Written>, outcome: Outcome, outbox: Outbox, now: Timestamp) {
        self.quarantine.release(key);
        self.end(key, written, outcome, outbox, now);
    }

    /// A pass ended in a panic: its object is set aside. Answers what is announced about that, if the object is still there.
    pub fn panicked(&mut self, key: &Key, outbox: Outbox, now: Timestamp) -> Option<Announcement> {
        let until = self.quarantine.panicked(key, &self.version(key), now);
        self.end(key, Vec::new(), Outcome::Settled(Some(until)), outbox, now);
        let event = Event { warning: true, reason: reason::QUARANTINED, message: quarantine::message(until) };
        Some(Announcement { kind: key.machine.kind()?, object: self.object(key)?.clone(), event })
    }

    /// Which version of an object is the newest one.
    fn version(&self, key: &Key) -> String {
        let object = self.object(key);
        let text = |name: &str| object.and_then(|object| object.str_at(&["metadata", name])).unwrap_or_default();
        let generation = object.and_then(|object| object.int_at(&["metadata", "generation"])).unwrap_or_default();
        format!("{} {generation}", text("uid"))
    }

    fn object(&self, key: &Key) -> Option<&Value> {
        self.state.cache.get(&key.machine.resource(&self.settings.apis)?, &key.place)
    }

    fn end(&mut self, key: &Key, written: Vec<Written>, outcome: Outcome, outbox: Outbox, now: Timestamp) {
        if outbox == Outbox::default() {
            self.outboxes.remove(key);
        } else if self.is_there(key) {
            self.outboxes.insert(key.clone(), outbox);
        }
        let (watches, settings) = (&self.watches, &self.settings);
        let is_watched = |object: &ObjectKey| watches.contains_key(&object.resource) && settings.is_in_scope(object);
        self.state.finish(key, written, outcome, now, is_watched);
    }

    /// Whether the object of a key is known: what is gone is not announced about any more.
    fn is_there(&self, key: &Key) -> bool {
        let resource = key.machine.resource(&self.settings.apis);
        resource.is_some_and(|resource| self.state.cache.get(&resource, &key.place).is_some())
    }

    /// What is still to be announced, when the engine stops.
    pub fn drain(&mut self) -> Vec<Announcement> {
        self.outboxes.values_mut().flat_map(Outbox::take).collect()
    }

    /// Stops following what no object needs; answers what that is.
    pub fn unfollow(&mut self, now: Timestamp) -> Vec<Resource> {
        let cache = &self.state.cache;
        let mut needed: Vec<Resource> = resource::always().to_vec();
        let rollouts = cache.all(&resource::rollouts()).map(|rollout| api::read::<Rollout>(rollout).object);
        needed.extend(rollouts.flat_map(|rollout| observe::needs(&rollout, &self.state.apis_for(&rollout), now)));
        needed.extend(cache.all(&resource::runs()).filter_map(analysis::needs));
        needed.extend(cache.all(&resource::experiments()).filter_map(experiment::needs));
        // Any template may name one of the cluster's.
        if needed.contains(&resource::templates()) {
            needed.push(resource::cluster_templates());
        }
        let idle: Vec<Resource> = self.followed().filter(|resource| !needed.contains(resource)).cloned().collect();
        for resource in &idle {
            self.watches.remove(resource);
            self.state.unwatch(resource).iter().for_each(|key| self.state.queue.add(key));
        }
        idle
    }

    /// The watches that begin anew because a fence has waited too long for one of their objects: an event was lost, or never
    /// to come.
    pub fn overdue(&mut self, now: Timestamp) -> Vec<Watch> {
        let overdue = self.state.fence.overdue(now).into_iter();
        let followed: Vec<Resource> = overdue.filter(|resource| self.watches.contains_key(resource)).collect();
        followed.into_iter().map(|resource| self.watch(resource)).collect()
    }
}

impl Kind {
    /// The kind of the objects that a machine decides about, where something can be announced about them.
    fn kind(self) -> Option<&'static str> {
        match self {
            Kind::Rollout => Some(kind::ROLLOUT),
            Kind::Analysis => Some(kind::ANALYSIS_RUN),
            Kind::Experiment => Some(kind::EXPERIMENT),
            Kind::Service => Some("Service"),
            Kind::Subsets | Kind::Sync => None,
        }
    }

    /// The resource of the objects that a machine decides about, as far as this engine follows them.
    fn resource(self, apis: &Apis) -> Option<Resource> {
        match self {
            Kind::Rollout => Some(resource::rollouts()),
            Kind::Analysis => Some(resource::runs()),
            Kind::Experiment => Some(resource::experiments()),
            Kind::Service => Some(Services::resource(apis)),
            Kind::Subsets => Some(Subsets::resource(apis)),
            Kind::Sync => None,
        }
    }
}

impl<C> Begin<C> {
    fn map<D>(self, into: impl FnOnce(C) -> D) -> Begin<D> {
        match self {
            Begin::Gone => Begin::Gone,
            Begin::Follow(resources) => Begin::Follow(resources),
            Begin::Case(case) => Begin::Case(into(case)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn driver(namespace: Option<&str>) -> (Driver, Vec<Watch>) {
        let mut driver = Driver::new(Settings { namespace: namespace.map(str::to_owned), ..Settings::default() });
        let watches = driver.start();
        (driver, watches)
    }

    fn object(name: &str, version: u64, spec: Value) -> Value {
        value!({"metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": version.to_string()}, "spec": spec})
    }

    fn of<'w>(watches: &'w [Watch], resource: &Resource) -> &'w Watch {
        watches.iter().find(|watch| watch.resource == *resource).expect("it is followed")
    }

    /// What the next pass is about; watches that it wants are begun and list nothing.
    fn next(driver: &mut Driver) -> Option<Pass> {
        loop {
            match driver.next(NOW, |_| {})? {
                Next::Pass(pass) => return Some(*pass),
                Next::Follow(watches) => {
                    for watch in watches {
                        driver.hear(&watch, News::List(Vec::new(), 1), NOW, NOW);
                    }
                }
            }
        }
    }

    fn job_run() -> Value {
        object("run", 1, value!({"metrics": [{"name": "m", "provider": {"job": {"spec": {}}}}]}))
    }

    #[test]
    fn what_a_watch_that_was_ended_still_delivers_is_not_believed() {
        let (mut driver, watches) = driver(None);
        let old = of(&watches, &resource::rollouts());
        driver.hear(old, News::List(Vec::new(), 5), NOW, NOW);
        driver.state.fence.wrote(
            &Key { machine: Kind::Rollout, place: Place::new("shop", "web") },
            &ObjectKey { resource: resource::rollouts(), place: Place::new("shop", "web") },
            7,
            NOW,
        );
        let later = NOW.saturating_add(super::super::fence::RELIST_AFTER).expect("a time");
        let anew = driver.overdue(later);
        assert_eq!(anew.iter().map(|watch| &watch.resource).collect::<Vec<_>>(), [&resource::rollouts()]);
        // The old watch had this under way: a list from before the write.
        driver.hear(old, News::Gone(object("web", 6, Value::Null)), later, later);
        driver.hear(old, News::List(vec![object("old", 4, value!({}))], 4), later, later);
        assert_eq!(driver.state.cache.all(&resource::rollouts()).count(), 0);
        driver.hear(&anew[0], News::List(vec![object("web", 8, value!({}))], 8), later, later);
        assert_eq!(driver.state.cache.all(&resource::rollouts()).count(), 1);
    }

    #[test]
    fn sr23_an_object_whose_pass_panicked_has_none_until_it_changes() {
        let (mut driver, watches) = driver(None);
        let runs = of(&watches, &resource::runs());
        let web = value!({"metrics": [{"name": "m", "provider": {"web": {"url": "http://x"}}}]});
        let run = |generation: i64| {
            let mut run = object("run", generation.unsigned_abs(), web.clone());
            run.set_at(&["metadata", "generation"], generation);
            run
        };
        driver.hear(runs, News::List(vec![run(1)], 1), NOW, NOW);
        let pass = next(&mut driver).expect("a pass about the run");
        let announced = driver.panicked(&pass.key, pass.outbox, NOW).expect("an event");
        assert_eq!((announced.kind, announced.event.reason), ("AnalysisRun", "Quarantined"));
        driver.hear(runs, News::Object(run(1)), NOW, NOW);
        assert!(next(&mut driver).is_none(), "it is left alone");
        driver.hear(runs, News::Object(run(2)), NOW, NOW);
        let pass = next(&mut driver).expect("it was changed");
        driver.finish(&pass.key, Vec::new(), Outcome::Settled(None), pass.outbox, NOW);
        assert_eq!(driver.quarantine.all().count(), 0);
    }

    #[test]
    fn nobody_waits_to_see_what_no_watch_delivers() {
        for (scope, waits) in [(None, 1), (Some("shop"), 0)] {
            let (mut driver, watches) = driver(scope);
            driver.hear(of(&watches, &resource::runs()), News::List(vec![job_run()], 1), NOW, NOW);
            let pass = next(&mut driver).expect("a pass about the run");
            let job = ObjectKey { resource: resource::jobs(), place: Place::new("jobs", "run.m.1") };
            let written = vec![Written::Version(job, 9)];
            driver.finish(&pass.key, written, Outcome::Settled(None), pass.outbox, NOW);
            assert_eq!(driver.state.fence.count(), waits, "{scope:?}");
        }
    }

    #[test]
    fn what_is_needed_is_followed_until_no_object_needs_it() {
        let (mut driver, watches) = driver(None);
        let runs = of(&watches, &resource::runs());
        driver.hear(runs, News::List(vec![job_run()], 1), NOW, NOW);
        let followed = match driver.next(NOW, |_| {}) {
            Some(Next::Follow(watches)) => watches,
            other => panic!("{other:?}"),
        };
        assert_eq!(followed.iter().map(|watch| &watch.resource).collect::<Vec<_>>(), [&resource::jobs()]);
        assert!(driver.next(NOW, |_| {}).is_none(), "nothing is decided before the Jobs are listed");
        driver.hear(&followed[0], News::List(Vec::new(), 2), NOW, NOW);
        assert!(matches!(driver.next(NOW, |_| {}), Some(Next::Pass(_))));
        assert!(driver.unfollow(NOW).is_empty());
        driver.hear(runs, News::Gone(job_run()), NOW, NOW);
        assert_eq!(driver.unfollow(NOW), [resource::jobs()]);
    }
}
