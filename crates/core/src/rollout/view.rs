//! Everything a decision about a Rollout may know, from one observation.
//!
//! [`Seen`] is what was read, object by object: a file of it replays the decision. [`View`] is what it means: which
//! ReplicaSet is the new version, which the stable one, what is wrong with the specification. Never knows more than what
//! was seen at one moment, and never keeps anything for the next pass.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    malformed::{self, Reading},
    runs::{self, Run},
    workload::{self, Resolved},
};
use crate::{
    api::{
        self, Rollout, RolloutCondition, Time,
        constants::{condition, label, phase, reason},
    },
    kubernetes::{
        object,
        selector::Labels,
        value::{Text, Value},
    },
    model::{
        codec, conditions, hash,
        memory::Memory,
        names,
        parse::{self, PodsFrom},
        problem::Words,
        replica_set::{self, ReplicaSet},
        strategy::AntiAffinity,
        template::{self, Wanted},
    },
    route::{self, Apis, Id, Kind, RouteScope, Routed, Routes, Verification},
};

/// What was read for one decision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Seen {
    /// When.
    pub now: Timestamp,
    /// The Rollout.
    pub rollout: Value,
    /// The ReplicaSets of its namespace that it controls, or that nobody controls and its selector matches, and the one
    /// that has the name its next ReplicaSet would get.
    pub sets: Vec<Value>,
    /// The Services it names, as far as they exist.
    pub services: Vec<Value>,
    /// The workload it refers to, if that exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<Value>,
    /// Its pods, if [`needs_pods`] said so.
    pub pods: Vec<Value>,
    /// The analysis templates it names, and those that these name, as far as they exist.
    pub templates: Vec<Value>,
    /// The objects of its routers, as far as they exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Routed>,
    /// The kinds of its routers' objects that the server does not know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<Kind>,
    /// The versions in which its routers' APIs are spoken.
    #[serde(skip_serializing_if = "Apis::are_usual")]
    pub apis: Apis,
    /// Where the objects of its routers may be.
    #[serde(skip_serializing_if = "RouteScope::is_usual")]
    pub route_scope: RouteScope,
    /// What the load balancer says about the weights in status.
    pub verification: Verification,
    /// When this engine last wrote the Rollout, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<Timestamp>,
    /// The AnalysisRuns that it controls, and those that have a name it might give.
    pub runs: Vec<Value>,
    /// The Experiments that it controls, and those that have a name it might give.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Value>,
    /// Which conditions it is to have.
    #[serde(skip_serializing_if = "Conditions::is_usual")]
    pub conditions: Conditions,
    /// The names of its ReplicaSets of which the server says that somebody altered their pods. Only those are asked about
    /// that [`View::taken_for_template`] names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub altered: Vec<Text>,
    /// How much else there is to do.
    #[serde(skip_serializing_if = "Crowd::is_usual")]
    pub crowd: Crowd,
}

/// How many others wait for a decision: the longer the backlog, the more writes of counts and events are throttled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Crowd {
    /// None, or a few.
    #[default]
    Few,
    /// So many that what can wait does.
    Many,
}

impl Crowd {
    fn is_usual(&self) -> bool {
        *self == Crowd::default()
    }
}

/// Which conditions a Rollout has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Conditions {
    /// Those of Argo Rollouts, and beside them `Ready`, `Reconciling` and `Stalled`, which kstatus reads.
    #[default]
    Kstatus,
    /// Those of Argo Rollouts.
    Argo,
}

impl Conditions {
    fn is_usual(&self) -> bool {
        *self == Conditions::default()
    }
}

/// What was seen, and what it means.
#[derive(Debug, Clone)]
pub struct View {
    /// When it was seen.
    pub now: Timestamp,
    /// When this engine last wrote the Rollout, if it has.
    pub written: Option<Timestamp>,
    /// Which conditions it is to have.
    pub conditions: Conditions,
    /// How much else there is to do.
    pub crowd: Crowd,
    /// The Rollout as an object.
    pub object: Value,
    /// The Rollout, with the pod template of the workload it refers to.
    pub rollout: Rollout,
    /// What people asked for and passes have begun.
    pub memory: Memory,
    /// What is wrong with its specification, in the words of its condition; `None` if it can be acted upon.
    pub invalid: Option<String>,
    /// What can be read of a template with values that no pod can have, if it is to be taken for the template.
    pub reading: Option<Reading>,
    /// The hash of its pod template.
    pub hash: Text,
    /// The hash of its steps.
    pub step_hash: Text,
    /// Its selector, as `kubectl` prints it.
    pub selector: Text,
    /// The workload that its pod template comes from.
    pub workload: Option<Resolved>,
    /// Its ReplicaSets, oldest first; those that it adopts are among them, as they are to whoever looks next.
    pub sets: Vec<Set>,
    /// Which of them is the version that the specification asks for.
    pub new: Option<usize>,
    /// Which of them was promoted last.
    pub stable: Option<usize>,
    /// Those of its ReplicaSets that nobody controls and that it adopts.
    pub orphans: Vec<Value>,
    /// Objects that its routers made, that nobody controls and that it adopts.
    pub route_orphans: Vec<Id>,
    /// ReplicaSets that it controls but that its selector does not match.
    pub strangers: Vec<Value>,
    /// Somebody else's object that has the name of the next ReplicaSet.
    pub name_is_taken: bool,
    /// The names of ReplicaSets that match its selector and belong, as far as the watch knows, to a Rollout that had its name
    /// before; looked for only before it has a version of its own.
    pub predecessors: Vec<Text>,
    /// The Services it names.
    pub services: BTreeMap<Text, Service>,
    /// Its pods, where they matter.
    pub pods: Vec<Value>,
    /// The objects of its routers.
    pub routes: Routes,
    /// What the load balancer says about the weights in status.
    pub verification: Verification,
    /// The analysis templates that were seen.
    pub templates: Vec<Value>,
    /// Its AnalysisRuns.
    pub runs: Vec<Run>,
    /// The names of AnalysisRuns that are not its own.
    pub other_runs: Vec<Text>,
    /// Its Experiments.
    pub experiments: Vec<Run>,
    /// The names of Experiments that are not its own.
    pub other_experiments: Vec<Text>,
}

/// The condition of a ReplicaSet whose pods cannot be made.
const FAILURE: &str = "ReplicaFailure";

/// A ReplicaSet.
#[derive(Debug, Clone)]
pub struct Set {
    /// The numbers and notes that matter.
    pub info: ReplicaSet,
    /// Its selector, as `kubectl` prints it.
    pub selector: Text,
    /// The whole of it.
    pub object: Value,
}

impl Set {
    fn of(object: &Value) -> Set {
        let selector = selector_text(object.at(&["spec", "selector"]));
        Set { info: ReplicaSet::of(object), selector, object: object.clone() }
    }

    /// Its revision; 0 if it has none that can be read.
    pub fn revision(&self) -> i64 {
        self.info.revision().unwrap_or_default()
    }

    /// Whether its controller has seen its newest specification.
    pub fn is_observed(&self) -> bool {
        let generation = self.object.int_at(&["metadata", "generation"]).unwrap_or_default();
        generation <= self.object.int_at(&["status", "observedGeneration"]).unwrap_or_default()
    }

    /// The ReplicaSet with the pods that can be counted on. Until its controller has seen its newest size, the pods it
    /// reports as available may be on their way out: one that shrank and grows again reports those it is about to lose (S20).
    pub fn counted(&self) -> ReplicaSet {
        let available = if self.is_observed() { self.info.available } else { 0 };
        ReplicaSet { available, ..self.info.clone() }
    }

    /// How many pods serve and stay: those that can be counted on, without those beyond its size, which are on their way out.
    pub fn staying(&self) -> i32 {
        self.counted().available.min(self.info.desired)
    }

    /// Whether its pods cannot be made.
    pub fn is_failing(&self) -> bool {
        let conditions = self.object.list_at(&["status", "conditions"]);
        conditions.iter().any(|condition| condition.str_at(&["type"]) == Some(FAILURE))
    }

    /// Why its pods cannot be made, if they cannot.
    pub fn failure(&self) -> Option<RolloutCondition> {
        let conditions = self.object.list_at(&["status", "conditions"]);
        let failure = conditions.iter().find(|condition| condition.str_at(&["type"]) == Some(FAILURE))?;
        let text = |key: &str| failure.get(key).and_then(Value::as_text).cloned().unwrap_or_default();
        let moment = Time::parse(&text("lastTransitionTime")).unwrap_or_default();
        Some(RolloutCondition {
            r#type: text("type"),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
            last_transition_time: moment,
            last_update_time: moment,
        })
    }
}

/// A Service.
#[derive(Debug, Clone)]
pub struct Service {
    /// The version that its selector names; empty if it names none.
    pub hash: Text,
    /// Whether a Rollout has taken it over.
    pub managed: bool,
    /// The whole of it.
    pub object: Value,
}

impl View {
    /// Makes sense of what was seen.
    pub fn of(seen: &Seen) -> View {
        let mut rollout: Rollout = api::read(&seen.rollout).object;
        codec::overrule(&rollout.spec, &mut rollout.status);
        let workload = workload::resolve(&mut rollout, seen.workload.as_ref());
        let from = if matches!(workload, Ok(Some(_))) { PodsFrom::Workload } else { PodsFrom::Manifest };
        let services: BTreeMap<Text, Service> = seen.services.iter().map(service).collect();
        let routes = Routes::seen(&seen.routes).speaking(seen.apis.clone()).without(&seen.unserved);
        let routes = routes.within(&rollout.metadata.namespace, seen.route_scope);
        let mut invalid = invalid(&rollout, &workload, from, &services, &seen.templates, &routes);
        let hash = hash::pod_template(&rollout.spec.template, rollout.status.collision_count);
        let step_hash = seen.rollout.at(&["spec", "strategy"]).map(hash::steps).unwrap_or_default();
        let claim = Claim::of(&rollout, &seen.sets, &hash);
        let (new, mut stable) = versions(&rollout, &hash, &claim.owned, &seen.altered);
        if let Some(index) = remembered(&rollout, &claim.owned, new, &services) {
            let hash = replica_set::hash(&claim.owned[index]).to_owned();
            if rollout.spec.strategy.blue_green.is_some() {
                rollout.status.blue_green.active_selector.clone_from(&hash);
            }
            (rollout.status.stable_rs, stable) = (hash, Some(index));
        }
        // Rare, and costly to find out: only where the template is about to matter.
        let is_open = matches!(workload, Ok(None)) && (new.is_none() || invalid.is_some());
        let mut reading = if is_open { malformed::read(&rollout) } else { None };
        if let Some(read) = &reading {
            if read.is_valid(&rollout, &services, &seen.templates, &routes) {
                invalid = None;
            } else {
                invalid = invalid.map(|first| [first].into_iter().chain(read.words()).collect::<Vec<_>>().join("; "));
                reading = None;
            }
        }
        let versions: Vec<&str> = claim.owned.iter().map(replica_set::hash).collect();
        let (runs, other_runs) = runs::claim(&seen.runs, &rollout.metadata.uid, &versions);
        let (experiments, other_experiments) = runs::claim(&seen.experiments, &rollout.metadata.uid, &versions);
        View {
            now: seen.now,
            written: seen.written,
            conditions: seen.conditions,
            crowd: seen.crowd,
            selector: selector_text(rollout.spec.selector.as_ref()),
            object: seen.rollout.clone(),
            memory: codec::decode(&rollout.status),
            invalid,
            reading,
            workload: workload.ok().flatten(),
            sets: claim.owned.iter().map(Set::of).collect(),
            new,
            stable,
            orphans: claim.orphans,
            route_orphans: route::orphans(&rollout, &routes),
            strangers: claim.strangers,
            name_is_taken: claim.name_is_taken && new.is_none(),
            predecessors: claim.predecessors,
            services,
            pods: seen.pods.clone(),
            routes,
            verification: seen.verification,
            templates: seen.templates.clone(),
            runs,
            other_runs,
            experiments,
            other_experiments,
            rollout,
            hash,
            step_hash,
        }
    }

    /// The ReplicaSet of the version that the specification asks for.
    pub fn new_set(&self) -> Option<&Set> {
        self.sets.get(self.new?)
    }

    /// The ReplicaSet of the version that was promoted last.
    pub fn stable_set(&self) -> Option<&Set> {
        self.sets.get(self.stable?)
    }

    /// The new ReplicaSet, if it is that only because its template says so: it does not carry the hash. Whether the template
    /// is as it was made is to be asked before this is believed (S12): who edits an old ReplicaSet until it looks like what
    /// the specification asks for next would otherwise have called old pods the new version. Nothing to ask is what status
    /// has already called healthy at this specification, so that a Rollout at rest costs no question.
    pub fn taken_for_template(&self) -> Option<&Set> {
        self.new_set().filter(|new| new.info.hash != self.hash && !self.is_settled(&new.info.hash))
    }

    /// Whether status says of this version that all is as the specification, as it is now, wants it. The phase alone
    /// does not tell: it stays as it is when the server does not take a new ReplicaSet, and only the condition changes.
    fn is_settled(&self, hash: &str) -> bool {
        let status = &self.rollout.status;
        let workload = self.workload.as_ref().map(|workload| workload.generation.to_string()).unwrap_or_default();
        let progressing = conditions::find(&status.conditions, condition::PROGRESSING);
        status.phase == phase::HEALTHY
            && progressing.is_some_and(|progressing| progressing.reason == reason::NEW_REPLICA_SET_AVAILABLE)
            && status.current_pod_hash == hash
            && status.stable_rs == hash
            && status.observed_generation == self.rollout.metadata.generation.to_string()
            && status.workload_observed_generation == workload
    }

    /// Whether status was lost, and which version is stable is known from the ReplicaSets only.
    pub fn has_remembered_stable(&self) -> bool {
        let said = self.object.str_at(&["status", "stableRS"]).unwrap_or_default();
        said.is_empty() && !self.rollout.status.stable_rs.is_empty()
    }

    /// Whether a version was promoted whose ReplicaSet is gone: somebody deleted it. What is wanted now is no first
    /// version, and what it has to wait for, it waits for.
    pub fn has_lost_stable(&self) -> bool {
        self.stable.is_none() && !self.rollout.status.stable_rs.is_empty()
    }

    /// The stable ReplicaSet, if it is not the new one.
    pub fn other_stable(&self) -> Option<&Set> {
        if self.stable == self.new { None } else { self.stable_set() }
    }

    /// The ReplicaSets that are neither.
    pub fn others(&self) -> impl Iterator<Item = &Set> {
        let role = move |index: usize| Some(index) == self.new || Some(index) == self.stable;
        self.sets.iter().enumerate().filter(move |(index, _)| !role(*index)).map(|(_, set)| set)
    }

    /// Whether status is about another template than the specification.
    pub fn is_other_template(&self) -> bool {
        let current = &self.rollout.status.current_pod_hash;
        let hash = self.new_set().map_or(&self.hash, |new| &new.info.hash);
        !current.is_empty() && current != hash.as_str()
    }

    /// The ReplicaSet of a hash.
    pub fn set_of(&self, hash: &str) -> Option<&Set> {
        self.sets.iter().find(|set| !hash.is_empty() && set.info.hash.as_str() == hash)
    }
}

/// Whether a ReplicaSet belongs to an object that had a Rollout's name before it.
pub fn is_predecessors(rollout: &Rollout, set: &Value) -> bool {
    object::controller(set).is_some_and(|uid| uid.as_str() != rollout.metadata.uid.as_str())
        && object::controller_name(set).is_some_and(|name| name.as_str() == rollout.metadata.name.as_str())
}

/// The ReplicaSets of a namespace, by what they are to a Rollout.
#[derive(Default)]
struct Claim {
    owned: Vec<Value>,
    orphans: Vec<Value>,
    strangers: Vec<Value>,
    name_is_taken: bool,
    predecessors: Vec<Text>,
}

impl Claim {
    fn of(rollout: &Rollout, sets: &[Value], hash: &str) -> Claim {
        let selector = rollout.spec.selector.as_ref().and_then(|selector| Labels::of(selector).ok());
        let matches = |set: &Value| {
            let labels = set.at(&["metadata", "labels"]).and_then(Value::as_map);
            selector.as_ref().is_some_and(|selector| selector.matches(labels))
        };
        let name = names::replica_set(&rollout.metadata.name, hash);
        let mut claim = Claim::default();
        for set in sets {
            let owner = object::controller(set);
            let ours = owner.as_deref() == Some(rollout.metadata.uid.as_str());
            let deleting = set.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
            match (ours, owner, matches(set)) {
                // Without a selector nobody can tell; what it has stays its own.
                (true, _, fits) if fits || selector.is_none() => claim.owned.push(set.clone()),
                (true, _, _) if !deleting => claim.strangers.push(set.clone()),
                (true, _, _) => {}
                (false, None, true) if !deleting => {
                    claim.orphans.push(set.clone());
                    claim.owned.push(set.clone());
                }
                (false, _, fits) => {
                    let taken = set.at(&["metadata", "name"]).and_then(Value::as_text);
                    claim.name_is_taken |= taken.map(Text::as_str) == Some(name.as_str());
                    if fits && is_predecessors(rollout, set) {
                        claim.predecessors.extend(taken.cloned());
                    }
                }
            }
        }
        claim.owned.sort_by(replica_set::by_age);
        // A set of ours with that name that is not the one: another template with the same hash.
        claim.name_is_taken |= claim.owned.iter().any(|set| set.str_at(&["metadata", "name"]) == Some(&name));
        claim
    }
}

/// Which of the ReplicaSets is new, and which is stable.
fn versions(rollout: &Rollout, hash: &str, sets: &[Value], altered: &[Text]) -> (Option<usize>, Option<usize>) {
    let status = &rollout.status;
    let recorded = [status.current_pod_hash.as_str(), status.stable_rs.as_str()];
    let anti_affinity = AntiAffinity::of(&rollout.spec.strategy);
    let wanted = Wanted { template: &rollout.spec.template, hash, recorded: &recorded, anti_affinity, altered };
    let new = template::find(&wanted, sets).map(template::Found::index);
    let carries = |index: &usize| replica_set::hash(&sets[*index]) == status.stable_rs;
    let stable =
        if status.stable_rs.is_empty() { None } else { new.filter(carries).or_else(|| (0..sets.len()).find(carries)) };
    (new, stable)
}

/// Which ReplicaSet was stable before status was lost, as when a Rollout is orphaned and created again; `None` if no other
/// than the wanted one serves. What is asked for now is no first version then, and has its steps and gates before it.
///
/// Of the versions with pods the one with the lowest revision: each later attempt has a higher one, approved or not. Pods
/// with a deadline were left already. A Service that this Rollout has taken over tells where it stood in an update, but never
/// that the wanted version is the stable one: who edits it approves nothing.
fn remembered(
    rollout: &Rollout,
    sets: &[Value],
    new: Option<usize>,
    services: &BTreeMap<Text, Service>,
) -> Option<usize> {
    if !rollout.status.stable_rs.is_empty() {
        return None;
    }
    let strategy = &rollout.spec.strategy;
    let active = strategy.blue_green.as_ref().map(|strategy| strategy.active_service.as_str());
    let stable = strategy.canary.as_ref().map(|canary| canary.stable_service.as_str());
    let is_ours = |service: &&Service| super::services::leader(&service.object) == Some(rollout.metadata.name.as_str());
    let led = active.or(stable).and_then(|name| services.get(name)).filter(is_ours).map(|service| &service.hash);
    let sets: Vec<ReplicaSet> = sets.iter().map(ReplicaSet::of).collect();
    let may_be = |index: &usize| !sets[*index].hash.is_empty() && !sets[*index].deleting;
    let known = (0..sets.len()).filter(may_be);
    if let Some(index) = known.clone().find(|index| Some(*index) != new && led == Some(&sets[*index].hash)) {
        return Some(index);
    }
    let rank = |index: &usize| {
        let set = &sets[*index];
        (set.has_scale_down_deadline(), set.revision().unwrap_or(i64::MAX), set.created)
    };
    let has_pods = |index: &usize| sets[*index].desired > 0;
    let serving: Vec<usize> = known.filter(has_pods).collect();
    let earliest = serving.iter().copied().min_by_key(rank);
    earliest.filter(|_| serving.iter().any(|index| Some(*index) != new))
}

fn service(object: &Value) -> (Text, Service) {
    let name = object.at(&["metadata", "name"]).and_then(Value::as_text).cloned().unwrap_or_default();
    let hash = object.at(&["spec", "selector", label::POD_TEMPLATE_HASH]).and_then(Value::as_text).cloned();
    let managed = object.at(&["metadata", "annotations", api::constants::annotation::MANAGED_BY]).is_some();
    (name, Service { hash: hash.unwrap_or_default(), managed, object: object.clone() })
}

/// What is wrong, in the words of the condition: as Argo Rollouts says it, then what else there is.
pub(super) fn invalid(
    rollout: &Rollout,
    workload: &Result<Option<Resolved>, String>,
    from: PodsFrom,
    services: &BTreeMap<Text, Service>,
    templates: &[Value],
    routes: &Routes,
) -> Option<String> {
    if let Err(problem) = workload {
        return Some(problem.clone());
    }
    let parsed = parse::rollout(rollout, from);
    let mut words: Vec<String> = parsed.argo.iter().map(Words::to_string).collect();
    if words.is_empty() {
        words = super::services::problems(rollout, services, templates, routes);
    }
    words.dedup();
    (!words.is_empty()).then(|| words.join("; "))
}

/// A selector as `kubectl` prints it.
fn selector_text(selector: Option<&Value>) -> Text {
    match selector.map(Labels::of) {
        Some(Err(_)) => "<error>".into(),
        Some(Ok(labels)) if !labels.is_empty() => labels.to_string().into(),
        Some(Ok(_)) | None => "<none>".into(),
    }
}

/// Whether a decision about this Rollout needs to see its pods: while it restarts them, or dresses them.
pub fn needs_pods(rollout: &Rollout, now: Timestamp) -> bool {
    super::restart::is_due(rollout, now) || dresses(rollout)
}

/// Whether pods carry something that comes and goes with their role.
pub(super) fn dresses(rollout: &Rollout) -> bool {
    let strategy = &rollout.spec.strategy;
    let canary = strategy.canary.as_ref();
    let blue_green = strategy.blue_green.as_ref();
    canary.is_some_and(|canary| canary.canary_metadata.is_some() || canary.stable_metadata.is_some())
        || blue_green.is_some_and(|strategy| strategy.preview_metadata.is_some() || strategy.active_metadata.is_some())
}

/// The pod template of a new ReplicaSet: the Rollout's with the hash, and kept off the stable version's nodes.
pub(super) fn template_of_new_set(rollout: &Rollout, hash: &str) -> Value {
    let mut template = rollout.spec.template.clone();
    template.set_at(&["metadata", "labels", label::POD_TEMPLATE_HASH], hash);
    if let Some(affinity) = wanted_affinity(rollout, hash) {
        template.set_at(&["spec", "affinity"], affinity);
    }
    template
}

/// The affinity of the new version's pods.
pub(super) fn wanted_affinity(rollout: &Rollout, hash: &str) -> Option<Value> {
    let affinity = rollout.spec.template.at(&["spec", "affinity"]);
    match AntiAffinity::of(&rollout.spec.strategy) {
        Some(rule) => rule.inject(affinity, &rollout.metadata.namespace, &rollout.status.stable_rs, hash),
        None => affinity.cloned(),
    }
}

/// Whether the term that keeps the new version's pods off the stable one's nodes is not as it should be.
pub(super) fn affinity_is_outdated(view: &View, set: &Set) -> bool {
    let affinity = set.object.at(&["spec", "template", "spec", "affinity"]);
    let rule = AntiAffinity::of(&view.rollout.spec.strategy);
    let status = &view.rollout.status;
    rule.is_some_and(|rule| rule.is_outdated(affinity, &status.stable_rs, &set.info.hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    /// A Rollout whose new version is the set `web-then`, for its template alone.
    fn seen(status: Value) -> Seen {
        let pods = |labels: Value| value!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}});
        let labels = value!({"app": "web", label::POD_TEMPLATE_HASH: "then"});
        let owners = value!([{"kind": "Rollout", "name": "web", "uid": "ro", "controller": true}]);
        let metadata = value!({"name": "web-then", "namespace": "shop", "labels": labels, "ownerReferences": owners});
        let live = template::Prepared::of(&pods(labels.clone()));
        let mut set = value!({"metadata": metadata, "spec": {"replicas": 1}});
        set.set_at(&["spec", "template"], live.value());
        let spec = value!({"selector": {"matchLabels": {"app": "web"}}, "template": pods(value!({"app": "web"}))});
        let metadata = value!({"name": "web", "namespace": "shop", "uid": "ro", "generation": 2});
        let rollout = value!({"metadata": metadata, "spec": spec, "status": status});
        Seen { rollout, sets: vec![set], ..Seen::default() }
    }

    fn settled(changes: &[(&str, Value)]) -> Value {
        let progressing = value!([{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]);
        let mut status = value!({"phase": "Healthy", "currentPodHash": "then", "stableRS": "then", "observedGeneration": "2", "conditions": progressing});
        changes.iter().for_each(|(key, value)| status.set_at(&[key], value.clone()));
        status
    }

    #[test]
    fn s12_a_template_is_doubted_until_status_has_settled_it() {
        let refused = value!([{"type": "Progressing", "status": "False", "reason": "ReplicaSetCreateError"}]);
        for (status, is_doubted) in [
            (settled(&[]), false),
            (value!({}), true),
            (settled(&[("observedGeneration", "1".into())]), true),
            (settled(&[("phase", "Degraded".into())]), true),
            (settled(&[("stableRS", "before".into())]), true),
            (settled(&[("workloadObservedGeneration", "1".into())]), true),
            (settled(&[("conditions", refused)]), true),
        ] {
            let view = View::of(&seen(status.clone()));
            let name = view.new_set().map(|set| set.info.name.as_str());
            assert_eq!(name, Some("web-then"), "{status}");
            assert_eq!(view.taken_for_template().is_some(), is_doubted, "{status}");
        }
    }

    #[test]
    fn s12_a_set_that_was_altered_is_not_the_new_one() {
        let view = View::of(&Seen { altered: vec!["web-then".into()], ..seen(settled(&[])) });
        assert!(view.new_set().is_none() && view.taken_for_template().is_none());
        assert_eq!(view.stable_set().map(|set| set.info.name.as_str()), Some("web-then"));
    }
}
