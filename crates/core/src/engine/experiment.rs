//! The machine of Experiments: what a pass needs out of what is known, and which writes follow.
//!
//! What it decides is [`crate::experiment`]'s. Never sends anything.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    analysis,
    cache::{Cache, Change, place_of, version_of},
    key::{self, Key, ObjectKey, Place, Resource},
    machine::{Begin, Done, Known, Machine, Observation, Refused, Then},
    observe::{self, owner_in},
    references::References,
    resource,
    world::{Announcement, Found, Read, Refusal},
    write::{Verb, Write},
};
use crate::{
    analysis::Phase,
    api::{self, AnalysisTemplateRef, Experiment, ExperimentStatus, constants::kind},
    experiment::{self, Action, Kind, Seen, Verdict, View},
    kubernetes::value::{Text, Value},
    model::names,
    rollout::templates::{self, Scope},
    value,
};

/// The machine of Experiments.
#[derive(Debug)]
pub struct ExperimentMachine;

/// All that was read for one decision about an Experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    /// What was seen.
    pub seen: Seen,
    /// The Rollout whose step it is, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Value>,
    /// What it names and was not seen: it may exist all the same.
    #[serde(skip)]
    missing: Vec<ObjectKey>,
    /// Whether the server has something that no watch has delivered yet.
    #[serde(skip)]
    is_behind: bool,
}

/// What was seen, and about which Rollout is announced, too.
#[derive(Debug)]
pub struct Scene {
    view: View,
    rollout: Option<Value>,
}

impl Machine for ExperimentMachine {
    const KEY: key::Machine = key::Machine::Experiment;
    const KIND: &'static str = kind::EXPERIMENT;
    type Case = Case;
    type View = Scene;
    type Verdict = Verdict;
    type Action = Action;

    fn begin(known: &Known<'_>, place: &Place) -> Begin<Case> {
        let cache = &known.state.cache;
        let Some(object) = cache.get(&resource::experiments(), place) else { return Begin::Gone };
        let of_cluster = templates(cache, object).2.then(resource::cluster_templates);
        let unlisted = known.unlisted(needs(object).into_iter().chain(of_cluster).collect());
        if !unlisted.is_empty() {
            return Begin::Follow(unlisted);
        }
        let rollout = rollout(cache, object).cloned();
        let Some((seen, missing)) = see(cache, place, known.now) else { return Begin::Gone };
        Begin::Case(Case { seen, rollout, missing, is_behind: false })
    }

    fn look(case: &mut Case) -> Observation<Scene> {
        if case.is_behind {
            return Observation::Behind;
        }
        if !case.missing.is_empty() {
            return Observation::Missing(case.missing.iter().cloned().map(Read::Object).collect());
        }
        Observation::Complete(Scene { view: View::of(&case.seen), rollout: case.rollout.clone() })
    }

    fn absorb(case: &mut Case, found: Vec<Found>) {
        case.missing.clear();
        case.is_behind = found.iter().any(|found| matches!(found, Found::Object(_)));
    }

    fn decide(scene: &Scene) -> Verdict {
        experiment::decide(&scene.view)
    }

    fn diff(scene: &Scene, verdict: &Verdict) -> Vec<Action> {
        experiment::diff(&scene.view, verdict)
    }

    fn check(scene: &Scene, verdict: &Verdict, actions: &[Action]) -> Vec<String> {
        experiment::invariant::check(&scene.view, verdict, actions)
    }

    fn write(scene: &Scene, action: &Action) -> Write {
        write(&scene.view, action)
    }

    fn record(scene: &Scene, verdict: &Verdict, _: Option<u64>) -> Option<Write> {
        verdict.status.as_ref().and_then(|status| record(&scene.view, status))
    }

    fn refused(scene: &Scene, _: &Verdict, action: &Action, write: &Write, why: &Refusal) -> Option<Refused<Verdict>> {
        let is_final = write.is_refused(why.code);
        is_final
            .then(|| Refused { verdict: experiment::refused(&scene.view, action, &why.message), then: Then::Settle })
    }

    fn announce(scene: &Scene, verdict: &Verdict, done: &Done<'_, Action>) -> Vec<Announcement> {
        // All of it follows from status: what is not recorded is said by the next pass.
        if !done.is_recorded {
            return Vec::new();
        }
        let own = verdict.events.iter();
        let own = own.map(|event| (kind::EXPERIMENT, &scene.view.object, event));
        let rollout =
            scene.rollout.iter().flat_map(|rollout| verdict.for_rollout.iter().map(move |event| (rollout, event)));
        let rollout = rollout.map(|(rollout, event)| (kind::ROLLOUT, rollout, event));
        own.chain(rollout)
            .map(|(kind, object, event)| Announcement { kind, object: object.clone(), event: event.clone() })
            .collect()
    }

    fn wake(_: &Scene, verdict: &Verdict) -> Option<Timestamp> {
        verdict.wake
    }

    fn object(scene: &Scene) -> &Value {
        &scene.view.object
    }

    fn now(scene: &Scene) -> Timestamp {
        scene.view.now
    }
}

/// The key of the Experiment at a place.
pub fn subject(place: &Place) -> Key {
    Key { machine: key::Machine::Experiment, place: place.clone() }
}

/// Whether an Experiment still has analyses to begin or to follow.
fn is_measured(experiment: &Value) -> bool {
    let is_over = Phase::of(experiment.str_at(&["status", "phase"]).unwrap_or_default()).is_over();
    !is_over && !experiment.list_at(&["spec", "analyses"]).is_empty()
}

/// What an Experiment needs to be watched beyond what always is: templates, while it has analyses.
pub fn needs(experiment: &Value) -> Option<Resource> {
    is_measured(experiment).then(resource::templates)
}

/// The analysis templates that an Experiment names, and those that these name, as far as they are known; what is named
/// and not known; and whether one of the cluster's is among the names.
pub fn templates(cache: &Cache, experiment: &Value) -> (Vec<Value>, Vec<ObjectKey>, bool) {
    if !is_measured(experiment) {
        return (Vec::new(), Vec::new(), false);
    }
    let place = place_of(experiment);
    let experiment: Experiment = api::read(experiment).object;
    let named = experiment.spec.analyses.iter().map(|analysis| AnalysisTemplateRef {
        template_name: analysis.template_name.clone(),
        cluster_scope: analysis.cluster_scope,
    });
    let missing = std::cell::RefCell::new(Vec::new());
    let (found, of_cluster) = templates::reach_from(named.collect(), |scope, name| {
        let key = match scope {
            Scope::Namespace => {
                ObjectKey { resource: resource::templates(), place: Place::new(&place.namespace, name) }
            }
            Scope::Cluster => ObjectKey { resource: resource::cluster_templates(), place: Place::new("", name) },
        };
        let found = cache.get(&key.resource, &key.place).cloned();
        if found.is_none() {
            missing.borrow_mut().push(key);
        }
        found
    });
    (found, missing.into_inner(), of_cluster)
}

/// Everything that a decision about this Experiment may know, and what it names and was not seen; `None` if it is gone.
pub fn see(cache: &Cache, place: &Place, now: Timestamp) -> Option<(Seen, Vec<ObjectKey>)> {
    let object = cache.get(&resource::experiments(), place)?.clone();
    let experiment: Experiment = api::read(&object).object;
    let uid = experiment.metadata.uid.as_str();
    let referred = referred(&experiment);
    let with_named = |kind: &Resource| {
        let mut seen: Vec<Value> = cache.children(kind, uid).cloned().collect();
        let named = referred.iter().filter(|key| key.resource == *kind);
        let named = named.filter_map(|key| cache.get(kind, &key.place));
        let others: Vec<Value> = named.filter(|object| !seen.iter().any(|own| own.is(object))).cloned().collect();
        seen.extend(others);
        seen
    };
    let runs = observe::runs(cache, &resource::runs(), &experiment.metadata);
    let (templates, mut missing, _) = templates(cache, &object);
    let is_seen = |name: &str| runs.iter().any(|run| run.str_at(&["metadata", "name"]) == Some(name));
    let begun = experiment.status.analysis_runs.iter().map(|analysis| analysis.analysis_run.as_str());
    missing.extend(
        begun
            .filter(|name| !name.is_empty() && !is_seen(name))
            .map(|name| ObjectKey { resource: resource::runs(), place: Place::new(&place.namespace, name) }),
    );
    let seen = Seen {
        now,
        sets: with_named(&resource::sets()),
        services: with_named(&resource::services()),
        runs,
        templates,
        experiment: object,
    };
    Some((seen, missing))
}

/// The objects that have the names which an Experiment gives.
pub fn referred(experiment: &Experiment) -> Vec<ObjectKey> {
    let metadata = &experiment.metadata;
    let at = |resource: Resource, name: &str| ObjectKey { resource, place: Place::new(&metadata.namespace, name) };
    let mut referred = Vec::new();
    for template in &experiment.spec.templates {
        let set = names::experiment_replica_set(&metadata.name, &template.name);
        if let Some(service) = &template.service {
            let name = if service.name.is_empty() { &set } else { &service.name };
            referred.push(at(resource::services(), name));
        }
        referred.push(at(resource::sets(), &set));
    }
    referred
}

/// The Experiments that a change of another object is about: those that own it, give its name, or measure by it.
pub fn concerned(cache: &Cache, references: &References, resource: &Resource, change: &Change) -> Vec<Place> {
    let all = || cache.all(&resource::experiments());
    // Most clusters have none.
    if all().next().is_none() {
        return Vec::new();
    }
    if [resource::templates(), resource::cluster_templates()].contains(resource) {
        let namespace = &change.place.namespace;
        let is_there = |place: &Place| namespace.is_empty() || place.namespace == *namespace;
        return all().filter(|experiment| is_measured(experiment)).map(place_of).filter(is_there).collect();
    }
    let Some(object) = change.after.as_ref().or(change.before.as_ref()) else { return Vec::new() };
    let is_run = *resource == resource::runs();
    if is_run && !analysis::is_news(change.before.as_ref(), change.after.as_ref()) {
        return Vec::new();
    }
    let owned = [resource::sets(), resource::services(), resource::runs()].contains(resource);
    let owner = owner_in(cache, &resource::experiments(), object).filter(|_| owned).map(place_of);
    let subject = ObjectKey { resource: resource.clone(), place: change.place.clone() };
    owner.into_iter().chain(references.to(&subject).cloned()).collect()
}

/// The Rollout whose step an Experiment is, if it is known.
pub fn rollout<'c>(cache: &'c Cache, experiment: &Value) -> Option<&'c Value> {
    let owners = experiment.list_at(&["metadata", "ownerReferences"]);
    let owner = owners.iter().find(|owner| owner.str_at(&["kind"]) == Some(kind::ROLLOUT))?;
    let place = Place::new(&place_of(experiment).namespace, owner.str_at(&["name"])?);
    cache.get(&resource::rollouts(), &place).filter(|rollout| rollout.at(&["metadata", "uid"]) == owner.get("uid"))
}

/// The request of an action.
pub fn write(view: &View, action: &Action) -> Write {
    let namespace = &view.experiment.metadata.namespace;
    let at = |kind: Kind, name: &str| {
        let resource = match kind {
            Kind::Set => resource::sets(),
            Kind::Service => resource::services(),
            Kind::Run => resource::runs(),
        };
        ObjectKey { resource, place: Place::new(namespace, name) }
    };
    match action {
        Action::Create { kind, object } => {
            Write { object: at(*kind, ""), subresource: "", verb: Verb::Create, body: object.clone() }
        }
        Action::Patch { kind, name, patch } => {
            Write { object: at(*kind, name), subresource: "", verb: Verb::Patch, body: patch.clone() }
        }
        Action::Delete { kind, name, uid } => {
            let body = value!({"preconditions": {"uid": uid.clone()}, "propagationPolicy": "Background"});
            let verb = Verb::Delete(uid.clone(), version(view, name));
            Write { object: at(*kind, name), subresource: "", verb, body }
        }
    }
}

/// The version at which a Service of an Experiment was seen; only Services are deleted.
fn version(view: &View, name: &Text) -> u64 {
    let is_it = |service: &&Value| service.str_at(&["metadata", "name"]) == Some(name.as_str());
    view.services.values().find(is_it).map_or(0, version_of)
}

/// The request that makes status say this, if it does not: on the version that was seen.
pub fn record(view: &View, status: &ExperimentStatus) -> Option<Write> {
    let key = ObjectKey { resource: resource::experiments(), place: place_of(&view.object) };
    let (before, after) = (api::write(&view.experiment.status), api::write(status));
    Write::restated(key, &view.object, &before, &after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cache::News;

    #[test]
    fn what_is_named_and_not_known_is_missing() {
        let experiment = value!({
            "metadata": {"name": "e", "namespace": "shop", "uid": "u", "resourceVersion": "1"},
            "spec": {"templates": [{"name": "a", "service": {}}], "analyses": [
                {"name": "x", "templateName": "t"}, {"name": "y", "templateName": "c", "clusterScope": true}]},
            "status": {"analysisRuns": [{"name": "x", "analysisRun": "e-x", "phase": "Pending"}]},
        });
        let mut cache = Cache::default();
        cache.take(&resource::experiments(), News::Object(experiment));
        let (_, missing) = see(&cache, &Place::new("shop", "e"), Timestamp::UNIX_EPOCH).unwrap();
        let mut missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        missing.sort();
        let expected = [
            "analysisruns.argoproj.io shop/e-x",
            "analysistemplates.argoproj.io shop/t",
            "clusteranalysistemplates.argoproj.io c",
        ];
        assert_eq!(missing, expected);
    }

    #[test]
    fn a_change_of_what_it_owns_or_names_concerns_it() {
        let experiment = value!({
            "metadata": {"name": "e", "namespace": "shop", "uid": "u", "resourceVersion": "1"},
            "spec": {"templates": [{"name": "a"}]},
        });
        let (mut cache, mut references) = (Cache::default(), References::default());
        let e = Place::new("shop", "e");
        references.set(&e, referred(&api::read(&experiment).object));
        cache.take(&resource::experiments(), News::Object(experiment));
        let change = |name: &str, uid: &str| Change {
            place: Place::new("shop", name),
            before: None,
            after: Some(value!({"metadata": {"name": name, "namespace": "shop",
                "ownerReferences": [{"kind": "Experiment", "name": "e", "uid": uid, "controller": true}]}})),
            version: 2,
        };
        let asked =
            |resource: Resource, name: &str, uid: &str| concerned(&cache, &references, &resource, &change(name, uid));
        let its = vec![e];
        assert_eq!(asked(resource::sets(), "other", "u"), its);
        assert_eq!(asked(resource::sets(), "e-a", "another"), its);
        assert_eq!(asked(resource::runs(), "e-x", "u"), its);
        assert_eq!(asked(resource::sets(), "other", "another"), []);
    }
}
