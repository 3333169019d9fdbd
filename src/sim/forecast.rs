//! The forecast: the engine itself, run forward on an embedded cluster in virtual time.
//!
//! Approvals are given at once and noted, measurements succeed; where an analysis begins, a copy of the cluster shows what
//! happens if it fails. Never asks anybody and never waits: time jumps.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use jiff::{SignedDuration, Timestamp};

use super::local::Local;
use crate::{
    api::{self, Rollout, constants},
    embedded::{
        controllers::Settings,
        store::request::{Options, PatchType, Request, Verb},
    },
    engine::{
        analysis::Outlook,
        key::{Place, Resource},
        resource,
    },
    kubernetes::{
        object::{self, Object},
        value::{Text, Value},
    },
    model::{limits, replica_set::ReplicaSet},
    plan::{
        forecast::{Forecast, Return},
        kinds::plural,
        recorder::{Expects, Recorder, Scene},
    },
    rollout::{View, intent, wait::Wait},
    sync::{health, id::Id, ownership::Claims, pods::Pods, set::Desired},
    value,
};

/// When every forecast without a cluster begins: any moment does, but always the same.
pub const START: Timestamp = Timestamp::constant(1_767_225_600, 0);
/// How long the old state may take to settle.
const SETTLING: SignedDuration = SignedDuration::from_hours(24);
/// How long a forecast may become.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 14);
/// So long without any change is no wait, but the end: pods that do not come, a restart that is not allowed.
const STUCK: SignedDuration = SignedDuration::from_hours(6);
/// How long the way back may take.
const RETURN: SignedDuration = SignedDuration::from_hours(24);
/// What is said of a forecast in which time does not pass any more.
const CIRCLES: &str = "too much happens at one moment to be forecast";
/// How long after the end old pods are still watched.
const TIDYING: SignedDuration = SignedDuration::from_hours(1);

/// A cluster to run forward.
#[derive(Debug, Clone)]
pub struct Model {
    local: Local,
    /// What could not be applied, and why.
    pub refused: Vec<(Id, String)>,
}

impl Model {
    /// A cluster at a moment, in which pods take as long as their own specifications say.
    pub fn new(start: Timestamp) -> Model {
        let settings = Settings { seed: 1, jitter: SignedDuration::ZERO, ..Settings::default() };
        let mut local = Local::new(start, settings);
        local.settings().outlook = Some(Outlook::Succeeds);
        Model { local, refused: Vec::new() }
    }

    /// The same, but nothing happens in it after this moment of the clock on the wall.
    pub fn until(mut self, deadline: Option<Instant>) -> Model {
        self.local.deadline = deadline;
        self
    }

    /// Whether it stands still because nobody waits any longer.
    pub fn is_late(&self) -> bool {
        self.local.is_late()
    }

    /// The cluster itself.
    pub fn local(&mut self) -> &mut Local {
        &mut self.local
    }

    /// The time in it.
    pub fn now(&self) -> Timestamp {
        self.local.now()
    }

    /// Installs a definition for each kind that is not known, so that objects of it can be kept: any content does.
    pub fn define<'d>(&mut self, objects: impl Iterator<Item = &'d Desired>) {
        let mut versions: BTreeMap<(Text, Text), (bool, BTreeSet<Text>)> = BTreeMap::new();
        for desired in objects.filter(|desired| desired.sort.kind.is_none()) {
            let sort = &desired.sort;
            let entry = versions.entry((sort.group.clone(), desired.id.kind.clone())).or_default();
            entry.0 = sort.namespaced;
            entry.1.insert(sort.version.clone());
        }
        for ((group, kind), (namespaced, mut served)) in versions {
            // A router reads its objects in a version of its own.
            let read = crate::route::kinds()
                .into_iter()
                .map(|kind| resource::route(kind, &crate::route::Apis::default()))
                .find(|resource| resource.group == group && resource.plural == plural(&kind));
            let first = served.iter().next().cloned().unwrap_or_default();
            served.extend(read.map(|resource| resource.version));
            let version = |name: &Text| {
                value!({"name": name.as_str(), "served": true, "storage": *name == first, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
            };
            let names = value!({"plural": plural(&kind), "singular": kind.to_lowercase(), "kind": kind.as_str(), "listKind": format!("{kind}List")});
            let definition = value!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{}.{group}", plural(&kind))},
                "spec": {"group": group.as_str(), "names": names, "scope": if namespaced { "Namespaced" } else { "Cluster" },
                    "versions": Value::list(served.iter().map(version))}});
            let _ = self.local.create("apiextensions.k8s.io", "v1", "customresourcedefinitions", "", definition);
        }
    }

    /// Puts an object back as it was in another cluster, with its status and its uid.
    pub fn restore(&mut self, value: Value) {
        if let Ok(object) = crate::embedded::store::journal::object(value) {
            let _ = self.local.store.restore(object);
        }
    }

    /// Lets the engine look at everything that was put back.
    pub fn begin(&mut self) {
        let version = self.local.store.version();
        self.local.store.resume(version);
        self.local.kill();
        self.local.start();
    }

    /// Applies objects as the daemon does: in their order, leaving alone what is somebody else's.
    pub fn apply<'d>(&mut self, objects: impl Iterator<Item = &'d Desired> + Clone) {
        let live = |model: &Model, desired: &Desired| model.get_id(desired);
        let there: Vec<Value> =
            objects.clone().filter_map(|desired| live(self, desired)).map(|object| object.value.clone()).collect();
        let claims = Claims::of(objects.clone().map(|desired| &desired.object).chain(&there));
        for desired in objects {
            self.namespace(&desired.id.namespace);
            let live = live(self, desired);
            let body = claims.settle(&desired.id, &desired.object, live.as_deref());
            let sort = &desired.sort;
            let request = Request {
                verb: Verb::Patch(PatchType::Apply),
                name: desired.id.name.clone(),
                body: Some(body),
                options: Options {
                    field_manager: Some(constants::FIELD_MANAGER.into()),
                    force: Some(true),
                    ..Options::default()
                },
                ..asked(&sort.group, &sort.version, &sort.plural, &desired.id.namespace)
            };
            if let Err(status) = self.local.ask(request) {
                self.refused.push((desired.id.clone(), status.message));
            }
        }
    }

    /// Deletes an object, if it is there.
    pub fn delete(&mut self, desired: &Desired) {
        let sort = &desired.sort;
        let request = asked(&sort.group, &sort.version, &sort.plural, &desired.id.namespace);
        let _ = self.local.ask(Request { verb: Verb::Delete, name: desired.id.name.clone(), ..request });
    }

    fn namespace(&mut self, name: &str) {
        if !name.is_empty() && self.local.store().get("", "namespaces", "", name).is_none() {
            let body = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let _ = self.local.create("", "v1", "namespaces", "", body);
        }
    }

    fn get_id(&self, desired: &Desired) -> Option<std::sync::Arc<Object>> {
        let (sort, id) = (&desired.sort, &desired.id);
        self.local.store().get(&sort.group, &sort.plural, &id.namespace, &id.name).cloned()
    }

    /// A Rollout as it is.
    pub fn rollout(&self, place: &Place) -> Option<Value> {
        let resource = resource::rollouts();
        let found = self.local.store().get(&resource.group, &resource.plural, &place.namespace, &place.name);
        found.map(|object| object.value.clone())
    }

    /// What a decision about a Rollout would know now.
    pub fn view(&mut self, place: &Place) -> Option<View> {
        // Watches deliver before anything is decided.
        self.local.take_in();
        self.local.see(place).map(|seen| View::of(&seen))
    }

    /// Lets everything settle until a Rollout is healthy and tidy; `false` if it does not get there.
    pub fn settle(&mut self, place: &Place) -> bool {
        let end = later(self.now(), SETTLING);
        loop {
            self.local.settle();
            let Some(rollout) = self.rollout(place) else { return false };
            let sets = self.sets(&rollout);
            let is_healthy = rollout.str_at(&["status", "phase"]) == Some(constants::phase::HEALTHY);
            if is_healthy && Recorder::is_tidy(&rollout, &sets) && is_observed(&rollout) {
                // What is created in one second cannot be told apart by age.
                self.local.advance(SignedDuration::from_secs(60));
                let whole = self.now().as_second() + 1;
                let rest = Timestamp::from_second(whole).map(|then| then.duration_since(self.now()));
                self.local.advance(rest.unwrap_or_default());
                return true;
            }
            if self.approve(place).is_none() && !self.jump(end) {
                return false;
            }
        }
    }

    /// Moves the clock to the next moment at which something is due; `false` if that is after `end`.
    fn jump(&mut self, end: Timestamp) -> bool {
        let Some(wake) = self.local.next_wake().filter(|wake| *wake <= end) else { return false };
        self.local.wait(wake.duration_since(self.now()));
        true
    }

    /// Gives the approval that a Rollout waits for, if it waits for one: what for.
    fn approve(&mut self, place: &Place) -> Option<String> {
        let object = self.rollout(place)?;
        let rollout: Rollout = api::read(&object).object;
        let sets: Vec<ReplicaSet> = self.sets(&object).iter().map(ReplicaSet::of).collect();
        let what = approval(&rollout, &sets)?;
        let writes = intent::promote(&rollout, intent::Promotion::Next).ok()?;
        let patch = writes.status?;
        let resource = resource::rollouts();
        let request = Request {
            verb: Verb::Patch(PatchType::Merge),
            name: place.name.clone(),
            subresource: "status".into(),
            body: Some(patch),
            ..asked(&resource.group, &resource.version, &resource.plural, &place.namespace)
        };
        self.local.ask(request).ok().map(|_| what)
    }

    /// What of a kind a Rollout controls.
    fn owned(&self, rollout: &Value, of: &Resource) -> Vec<Value> {
        let uid = rollout.str_at(&["metadata", "uid"]).unwrap_or_default();
        let namespace = rollout.str_at(&["metadata", "namespace"]).unwrap_or_default();
        let objects = self.local.store().list(&of.group, &of.plural, namespace);
        let own = objects.filter(|object| object::controller(&object.value).as_deref() == Some(uid));
        own.map(|object| object.value.clone()).collect()
    }

    fn sets(&self, rollout: &Value) -> Vec<Value> {
        self.owned(rollout, &resource::sets())
    }

    /// The AnalysisRuns of a Rollout, and those of its Experiments.
    fn runs(&self, rollout: &Value) -> Vec<Value> {
        let mut runs = self.owned(rollout, &resource::runs());
        for experiment in self.owned(rollout, &resource::experiments()) {
            runs.extend(self.owned(&experiment, &resource::runs()));
        }
        runs
    }

    /// The ReplicaSets of a Rollout's Experiments.
    fn compared(&self, rollout: &Value) -> Vec<Value> {
        let experiments = self.owned(rollout, &resource::experiments());
        experiments.iter().flat_map(|experiment| self.sets(experiment)).collect()
    }

    /// Begins to record a Rollout, as it is before the change.
    pub fn recorder(&self, place: &Place, expects: Expects) -> Recorder {
        match self.rollout(place) {
            Some(rollout) => {
                let (sets, runs, compared) = (self.sets(&rollout), self.runs(&rollout), self.compared(&rollout));
                let scene = Scene { now: self.now(), rollout: &rollout, sets: &sets, compared: &compared, runs: &runs };
                Recorder::new(self.now(), expects, Some(scene))
            }
            None => Recorder::new(self.now(), expects, None),
        }
    }

    /// Runs until the Rollout is where it is to go, and old pods are gone.
    pub fn run(self, place: &Place, recorder: Recorder) -> Forecast {
        self.drive(place, recorder, LONGEST, SignedDuration::ZERO)
    }

    /// Runs for so long, also if the Rollout is where it is to go before: somebody else may move it.
    pub fn run_for(self, place: &Place, recorder: Recorder, time: SignedDuration) -> Forecast {
        self.drive(place, recorder, time, time)
    }

    fn drive(
        mut self,
        place: &Place,
        mut recorder: Recorder,
        longest: SignedDuration,
        shortest: SignedDuration,
    ) -> Forecast {
        let begun = self.now();
        let mut end = later(begun, longest);
        let (mut version, mut is_over) = (None, false);
        let mut unready = None;
        let mut last = (recorder.progress(), self.now());
        loop {
            self.local.settle();
            let Some(rollout) = self.rollout(place) else { break };
            if version != Some(self.local.store().version()) {
                version = Some(self.local.store().version());
                let (sets, runs, compared) = (self.sets(&rollout), self.runs(&rollout), self.compared(&rollout));
                unready = self.unready(&rollout, &sets).or(unready);
                let scene = Scene { now: self.now(), rollout: &rollout, sets: &sets, compared: &compared, runs: &runs };
                for run in recorder.look(scene) {
                    if let Some(back) = self.clone().fail(place, &run) {
                        recorder.fails(&run, back);
                    }
                }
                if recorder.is_over() && self.now().duration_since(begun) >= shortest {
                    if !is_over {
                        (is_over, end) = (true, later(self.now(), TIDYING));
                    }
                    if recorder.is_degraded() || Recorder::is_tidy(&rollout, &sets) {
                        break;
                    }
                }
            }
            if let Some(what) = self.approve(place) {
                recorder.approve(self.now(), &what);
                continue;
            }
            if last.0 != recorder.progress() || self.waits_for_time(&rollout) {
                last = (recorder.progress(), self.now());
            } else if self.now().duration_since(last.1) > STUCK {
                break;
            }
            if !self.jump(end) {
                break;
            }
        }
        let said = self.rollout(place).and_then(|rollout| Some(rollout.str_at(&["status", "message"])?.to_owned()));
        let message = if self.local.is_circling() { Some(CIRCLES.to_owned()) } else { said };
        let message = message.unwrap_or_default();
        match unready.filter(|_| recorder.is_degraded()) {
            // What an abort took away is said all the same.
            Some(why) => recorder.finish(self.now(), &health::recalling(&message, &why)),
            None => recorder.finish(self.now(), &message),
        }
    }

    /// Why pods of the newest version are not ready, if one says so.
    fn unready(&self, rollout: &Value, sets: &[Value]) -> Option<String> {
        let hash = rollout.str_at(&["status", "currentPodHash"])?;
        let newest = sets
            .iter()
            .find(|set| set.str_at(&["metadata", "labels", constants::label::POD_TEMPLATE_HASH]) == Some(hash))?;
        let pods = self.owned(newest, &Resource::new("", "v1", "pods"));
        Pods::of(pods.iter(), 0, None).why
    }

    /// Whether a Rollout goes on by itself when time has passed.
    fn waits_for_time(&self, object: &Value) -> bool {
        let rollout: Rollout = api::read(object).object;
        let sets: Vec<ReplicaSet> = self.sets(object).iter().map(ReplicaSet::of).collect();
        match Wait::of(&rollout, &sets) {
            Some(Wait::Pause { .. } | Wait::Switch { .. } | Wait::Step { .. } | Wait::Analysis) => true,
            Some(
                Wait::Controller
                | Wait::Specification
                | Wait::Retry
                | Wait::Overdue
                | Wait::Resume { .. }
                | Wait::Judgement { .. }
                | Wait::Restart { .. }
                | Wait::Pods { .. }
                | Wait::OldPods { .. },
            )
            | None => false,
        }
    }

    /// What happens if all measurements of an AnalysisRun fail: the way back. `None` if it changes nothing.
    fn fail(mut self, place: &Place, run: &str) -> Option<Return> {
        self.local.settings().outlook = Some(Outlook::Fails(run.to_owned()));
        let (mut end, mut failed) = (later(self.now(), LONGEST), None);
        loop {
            self.local.settle();
            let object = self.rollout(place)?;
            let rollout: Rollout = api::read(&object).object;
            let status = &rollout.status;
            let sets: Vec<ReplicaSet> = self.sets(&object).iter().map(ReplicaSet::of).collect();
            let is_aborted = crate::model::codec::abort(status).is_on();
            if is_aborted && failed.is_none() {
                failed = Some(self.now());
                end = later(self.now(), RETURN);
            }
            let stable = sets.iter().find(|set| set.hash.as_str() == status.stable_rs);
            if let (Some(failed), Some(stable)) = (failed, stable) {
                let weight = status.canary.weights.as_ref().map_or(0, |weights| weights.canary.weight);
                let is_active = status.blue_green.active_selector.is_empty()
                    || status.blue_green.active_selector == status.stable_rs;
                let is_whole = stable.available >= limits::replicas(&rollout);
                let others = sets.iter().filter(|set| set.hash.as_str() != status.stable_rs);
                // Without a router traffic goes wherever there are pods.
                let is_routed = status.canary.weights.is_some() || rollout.spec.strategy.blue_green.is_some();
                let is_alone = is_routed || others.map(|set| set.available).sum::<i32>() == 0;
                if is_whole && weight == 0 && is_active && is_alone {
                    let revision = stable.revision().unwrap_or_default();
                    let (to, lasts) = (format!("revision {revision}"), self.now().duration_since(failed));
                    return Some(Return { to, lasts, message: status.message.clone() });
                }
            }
            if failed.is_none() && status.phase == constants::phase::HEALTHY {
                return None;
            }
            if self.approve(place).is_none() && !self.jump(end) {
                return None;
            }
        }
    }
}

/// What a Rollout waits to be allowed, if anything.
pub fn approval(rollout: &Rollout, sets: &[ReplicaSet]) -> Option<String> {
    match Wait::of(rollout, sets)? {
        Wait::Pause { step, steps, until: None, .. } => Some(format!("pause without end at step {step}/{steps}")),
        Wait::Switch { until: None, .. } => Some("switch to the new version".to_owned()),
        Wait::Judgement { what } => Some(format!("the {what} was inconclusive")),
        Wait::Controller
        | Wait::Specification
        | Wait::Retry
        | Wait::Overdue
        | Wait::Resume { .. }
        | Wait::Pause { .. }
        | Wait::Switch { .. }
        | Wait::Restart { .. }
        | Wait::Pods { .. }
        | Wait::Step { .. }
        | Wait::Analysis
        | Wait::OldPods { .. } => None,
    }
}

fn is_observed(rollout: &Value) -> bool {
    let rollout: Rollout = api::read(rollout).object;
    crate::model::health::is_generation_observed(&rollout)
}

fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn asked(group: &str, version: &str, plural: &str, namespace: &str) -> Request {
    Request {
        group: group.into(),
        version: version.into(),
        resource: plural.into(),
        namespace: namespace.into(),
        agent: constants::FIELD_MANAGER.into(),
        ..Request::default()
    }
}
