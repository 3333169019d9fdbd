//! What a decision about a Rollout must see, out of what is known: which objects its pass reads, and whom a change concerns.
//!
//! Shared by the daemon on a cluster and by the simulator, so that both decide on the same. Never asks the cluster.

use std::collections::BTreeSet;

use jiff::Timestamp;

pub use super::resource;

use super::{
    analysis,
    cache::{Cache, Change, place_of},
    key::{ObjectKey, Place, Resource},
    references::References,
};
use crate::{
    api::{self, ObjectMeta, Rollout},
    kubernetes::{object, value::Value},
    model::{hash, names},
    rollout::{Seen, View, services, templates, view, workload},
    route::{self, Apis, Kind, Routed},
};

/// The resources that a Rollout needs beyond those that are always watched.
pub fn needs(rollout: &Rollout, apis: &Apis, now: Timestamp) -> Vec<Resource> {
    let workload = rollout.spec.workload_ref.as_ref().map(|workload| resource::workload(&workload.kind));
    let pods = view::needs_pods(rollout, now).then(resource::pods);
    let templates = templates::are_named(rollout).then(resource::templates);
    let mut needs: Vec<Resource> = workload.into_iter().chain(pods).chain(templates).collect();
    for id in route::named(rollout) {
        let resource = resource::route(id.kind, apis);
        if !needs.contains(&resource) {
            needs.push(resource);
        }
    }
    needs
}

/// The analysis templates that a Rollout names, and those that these name, as far as they are known; and whether one of
/// the cluster's is among the names.
pub fn templates(cache: &Cache, rollout: &Rollout) -> (Vec<Value>, bool) {
    let namespace = rollout.metadata.namespace.as_str();
    templates::reach(rollout, |scope, name| match scope {
        templates::Scope::Namespace => cache.get(&resource::templates(), &Place::new(namespace, name)).cloned(),
        templates::Scope::Cluster => cache.get(&resource::cluster_templates(), &Place::new("", name)).cloned(),
    })
}

/// Everything that a decision about this Rollout may know; `None` if it is gone.
pub fn see(cache: &Cache, apis: &Apis, place: &Place, rollout: &Rollout, now: Timestamp) -> Option<Seen> {
    let object = cache.get(&resource::rollouts(), place)?.clone();
    let at = |name: &str| Place::new(&place.namespace, name);
    let workload = rollout.spec.workload_ref.as_ref();
    let workload = workload.and_then(|workload| cache.get(&resource::workload(&workload.kind), &at(&workload.name)));
    let next = next_set(rollout, workload);
    let sets = resource::sets();
    let own = cache.children(&sets, &rollout.metadata.uid).chain(cache.orphans(&sets, &place.namespace));
    let mut sets_seen: Vec<Value> = own.cloned().collect();
    let namesake = cache.get(&sets, &at(&next)).into_iter();
    for set in namesake.chain(predecessors(cache, rollout)) {
        if !sets_seen.iter().any(|seen| seen.is(set)) {
            sets_seen.push(set.clone());
        }
    }
    let service = |name: &str| cache.get(&resource::services(), &at(name));
    let pods = if view::needs_pods(rollout, now) {
        let uids = sets_seen.iter().filter_map(|set| set.str_at(&["metadata", "uid"]));
        uids.flat_map(|uid| cache.children(&resource::pods(), uid)).cloned().collect()
    } else {
        Vec::new()
    };
    let experiments = runs(cache, &resource::experiments(), &rollout.metadata);
    let is_unserved = |kind: &Kind| cache.is_unserved(&resource::route(*kind, apis));
    let kinds: BTreeSet<Kind> = route::named(rollout).into_iter().map(|id| id.kind).collect();
    Some(Seen {
        now,
        unserved: kinds.into_iter().filter(is_unserved).collect(),
        routes: routed(cache, apis, rollout, &experiments),
        apis: apis.clone(),
        sets: sets_seen,
        services: services::named(rollout).iter().filter_map(|(_, name)| service(name)).cloned().collect(),
        workload: workload.cloned(),
        pods,
        templates: templates(cache, rollout).0,
        runs: runs(cache, &resource::runs(), &rollout.metadata),
        experiments,
        rollout: object,
        ..Seen::default()
    })
}

/// The ReplicaSets of a Rollout that had this one's name before it. Only a Rollout without a version of its own looks for them:
/// it may have been orphaned and created again, and the watch of ReplicaSets may be behind.
fn predecessors<'a>(cache: &'a Cache, rollout: &'a Rollout) -> impl Iterator<Item = &'a Value> {
    let is_first = rollout.status.current_pod_hash.is_empty() && rollout.status.stable_rs.is_empty();
    let sets = is_first.then(|| cache.list(&resource::sets(), &rollout.metadata.namespace));
    sets.into_iter().flatten().filter(|set| view::is_predecessors(rollout, set))
}

/// The objects of a Rollout's routers, as far as they exist; with the Services of its Experiments where a router must know
/// their ports.
fn routed(cache: &Cache, apis: &Apis, rollout: &Rollout, experiments: &[Value]) -> Vec<Routed> {
    let mut routed = Vec::new();
    for id in route::named(rollout) {
        let resource = resource::route(id.kind, apis);
        let one = cache.get(&resource, &Place::new(&id.namespace, &id.name)).filter(|_| !id.is_every());
        let every = id.is_every().then(|| cache.list(&resource, &id.namespace));
        for object in one.into_iter().chain(every.into_iter().flatten()) {
            let found = Routed { kind: id.kind, object: object.clone() };
            if !routed.contains(&found) {
                routed.push(found);
            }
        }
    }
    if route::needs_ports(rollout) {
        let statuses = experiments.iter().flat_map(|experiment| experiment.list_at(&["status", "templateStatuses"]));
        let names = statuses.filter_map(|status| status.str_at(&["serviceName"])).collect::<BTreeSet<_>>();
        let at = |name: &str| Place::new(&rollout.metadata.namespace, name);
        let services = names.into_iter().filter_map(|name| cache.get(&resource::services(), &at(name)));
        routed.extend(services.map(|object| Routed { kind: Kind::Service, object: object.clone() }));
    }
    routed
}

/// The AnalysisRuns or Experiments that an object controls, and those that have a name it might give.
pub(super) fn runs(cache: &Cache, resource: &Resource, metadata: &ObjectMeta) -> Vec<Value> {
    let mut runs: Vec<Value> = cache.children(resource, &metadata.uid).cloned().collect();
    let beginning = format!("{}-", metadata.name);
    let named = cache.named(resource, &metadata.namespace, &beginning);
    let others: Vec<Value> = named.filter(|run| !runs.iter().any(|own| own.is(run))).cloned().collect();
    runs.extend(others);
    runs
}

/// The objects that a Rollout names; one without a name stands for all of its namespace.
pub fn referred(rollout: &Rollout, apis: &Apis) -> Vec<ObjectKey> {
    let at =
        |resource: Resource, name: &str| ObjectKey { resource, place: Place::new(&rollout.metadata.namespace, name) };
    let workload = rollout.spec.workload_ref.as_ref();
    let workload = workload.map(|workload| at(resource::workload(&workload.kind), &workload.name));
    let services = services::named(rollout).into_iter().map(|(_, name)| at(resource::services(), name));
    let routes = route::named(rollout).into_iter().flat_map(|id| {
        let place = Place::new(&id.namespace, &id.name);
        let resources = resource::routes(id.kind, apis).into_iter();
        resources.map(move |resource| ObjectKey { resource, place: place.clone() })
    });
    services.chain(workload).chain(routes).collect()
}

/// What a Rollout names and was not seen. It may exist all the same: each watch has its own pace, and the Rollout's may be
/// ahead of the Services'.
pub fn missing(rollout: &Rollout, seen: &Seen) -> Vec<ObjectKey> {
    let workload = rollout.spec.workload_ref.as_ref().map(|workload| resource::workload(&workload.kind));
    let is_seen = |key: &ObjectKey| {
        let named = |object: &Value| object.str_at(&["metadata", "name"]) == Some(key.place.name.as_str());
        let is_routed = |routed: &Routed| {
            resource::routes(routed.kind, &seen.apis).contains(&key.resource) && named(&routed.object)
        };
        if key.resource == resource::services() {
            seen.services.iter().any(named)
        } else if workload.as_ref() == Some(&key.resource) {
            seen.workload.is_some()
        } else {
            seen.routes.iter().any(is_routed)
        }
    };
    let unserved = |key: &ObjectKey| {
        let other = |kind: &Kind| {
            let is_of = resource::routes(*kind, &seen.apis).contains(&key.resource);
            is_of && (resource::route(*kind, &seen.apis) != key.resource || seen.unserved.contains(kind))
        };
        route::kinds().iter().any(other)
    };
    let referred = referred(rollout, &seen.apis).into_iter().filter(|key| !key.place.name.is_empty());
    referred.filter(|key| !is_seen(key) && !unserved(key)).collect()
}

/// The name that the next ReplicaSet of a Rollout gets.
fn next_set(rollout: &Rollout, workload: Option<&Value>) -> String {
    let named = |rollout: &Rollout| {
        let hash = hash::pod_template(&rollout.spec.template, rollout.status.collision_count);
        names::replica_set(&rollout.metadata.name, &hash)
    };
    if rollout.spec.workload_ref.is_none() {
        return named(rollout);
    }
    // The template is the workload's. One that cannot be resolved makes the Rollout invalid, and no ReplicaSet follows.
    let mut resolved = rollout.clone();
    let _ = workload::resolve(&mut resolved, workload);
    named(&resolved)
}

/// A live read that confirms a view before it is acted upon, where a late watch would do harm that cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveCheck {
    /// Whether the Rollout still lives: a ReplicaSet that is adopted for one that is being deleted goes with it.
    RolloutLives(ObjectKey),
    /// Whether the ReplicaSet that has the next name is still somebody else's: a collision that is counted stays counted,
    /// and makes a second ReplicaSet of one template.
    NameTaken(ObjectKey),
    /// Whether the ReplicaSet of a Rollout that had this one's name before is still that one's. If it was orphaned, it is to be
    /// adopted: a second ReplicaSet of its template would take its place, pod by pod.
    StillOwned(ObjectKey),
    /// Whether the ReplicaSet that only its template makes the new one is as it was made (S12).
    TemplateUnaltered(ObjectKey),
}

impl LiveCheck {
    /// The next check that a view needs, if one is left that was not made.
    pub fn next(view: &View, made: &[LiveCheck]) -> Option<LiveCheck> {
        let metadata = &view.rollout.metadata;
        let at = |resource, name: &str| ObjectKey { resource, place: Place::new(&metadata.namespace, name) };
        let orphans = !view.orphans.is_empty() || !view.route_orphans.is_empty();
        let adopts = orphans && metadata.deletion_timestamp.is_none();
        let rollout = adopts.then(|| LiveCheck::RolloutLives(at(resource::rollouts(), &metadata.name)));
        let name = names::replica_set(&metadata.name, &view.hash);
        let namesake = view.name_is_taken.then(|| LiveCheck::NameTaken(at(resource::sets(), &name)));
        let doubtful = view.taken_for_template().map(|set| at(resource::sets(), &set.info.name));
        let left = view.predecessors.iter().map(|name| LiveCheck::StillOwned(at(resource::sets(), name)));
        let checks = [namesake, rollout, doubtful.map(LiveCheck::TemplateUnaltered)];
        left.chain(checks.into_iter().flatten()).find(|check| !made.contains(check))
    }

    /// The object to read.
    pub fn object(&self) -> &ObjectKey {
        match self {
            LiveCheck::RolloutLives(key)
            | LiveCheck::NameTaken(key)
            | LiveCheck::StillOwned(key)
            | LiveCheck::TemplateUnaltered(key) => key,
        }
    }

    /// What follows from the answer: `live` is the object, if there is one, and whether its pods were altered.
    pub fn absorb(&self, seen: &mut Seen, live: Option<(&Value, bool)>) -> LiveAnswer {
        let text = |object: &Value, key: &str| object.str_at(&["metadata", key]).unwrap_or_default().to_owned();
        match (self, live) {
            (LiveCheck::RolloutLives(_), Some((live, _))) => {
                let is_leaving = live.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
                let is_it = text(live, "uid") == text(&seen.rollout, "uid") && !is_leaving;
                if is_it { LiveAnswer::Confirmed } else { LiveAnswer::Stale }
            }
            (LiveCheck::RolloutLives(_) | LiveCheck::TemplateUnaltered(_), None) => LiveAnswer::Stale,
            (LiveCheck::NameTaken(key) | LiveCheck::StillOwned(key), live) => {
                seen.sets.retain(|set| text(set, "name") != key.place.name.as_str());
                seen.sets.extend(live.map(|(live, _)| live.clone()));
                LiveAnswer::Changed
            }
            (LiveCheck::TemplateUnaltered(key), Some((_, is_altered))) => {
                if !is_altered {
                    return LiveAnswer::Confirmed;
                }
                seen.altered.push(key.place.name.clone());
                LiveAnswer::Changed
            }
        }
    }
}

/// What a live read came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveAnswer {
    /// It is as the view says.
    Confirmed,
    /// It is not: the view is to be made again.
    Changed,
    /// The watches are behind; what they deliver next starts another pass.
    Stale,
}

/// The Rollouts that a change of another object is about: those that name it, and those that own it.
pub fn concerned(
    cache: &Cache,
    references: &References,
    resource: &Resource,
    change: &Change,
    now: Timestamp,
) -> Vec<Place> {
    if [resource::templates(), resource::cluster_templates()].contains(resource) {
        return measured(cache, &change.place.namespace);
    }
    let Some(object) = change.after.as_ref().or(change.before.as_ref()) else { return Vec::new() };
    let subject = ObjectKey { resource: resource.clone(), place: change.place.clone() };
    // Somebody may refer to all of a namespace.
    let every = ObjectKey { resource: resource.clone(), place: Place::new(&change.place.namespace, "") };
    let mut concerned: Vec<Place> = references.to(&subject).chain(references.to(&every)).cloned().collect();
    if *resource == resource::sets() {
        concerned.extend(claimants(cache, object).iter().map(|rollout| place_of(rollout)));
    } else if *resource == resource::runs() {
        let owner = owner_in(cache, &resource::rollouts(), object);
        let is_news = analysis::is_news(change.before.as_ref(), change.after.as_ref());
        concerned.extend(owner.filter(|_| is_news).map(place_of));
    } else if *resource == resource::experiments() {
        concerned.extend(owner_in(cache, &resource::rollouts(), object).map(place_of));
    } else if *resource == resource::pods() {
        let rollouts = owner_in(cache, &resource::sets(), object).map_or_else(Vec::new, |set| claimants(cache, set));
        let needing = rollouts.iter().filter(|rollout| view::needs_pods(&api::read::<Rollout>(rollout).object, now));
        concerned.extend(needing.map(|rollout| place_of(rollout)));
    }
    concerned
}

/// The Rollouts that a ReplicaSet matters to: the one that controls it; all of its namespace while nobody does.
fn claimants<'a>(cache: &'a Cache, set: &'a Value) -> Vec<&'a Value> {
    if object::controller(set).is_some() {
        return owner_in(cache, &resource::rollouts(), set).into_iter().collect();
    }
    let namespace = set.str_at(&["metadata", "namespace"]).unwrap_or_default();
    cache.list(&resource::rollouts(), namespace).collect()
}

/// The object of this resource that controls another one.
pub(super) fn owner_in<'a>(cache: &'a Cache, resource: &Resource, object: &Value) -> Option<&'a Value> {
    let namespace = object.str_at(&["metadata", "namespace"]).unwrap_or_default();
    let owner = cache.get(resource, &Place::new(namespace, &object::controller_name(object)?))?;
    (owner.str_at(&["metadata", "uid"]) == object::controller(object).as_deref()).then_some(owner)
}

/// The Rollouts that name analysis templates: those of a namespace, or all if it is empty.
fn measured(cache: &Cache, namespace: &str) -> Vec<Place> {
    let is_there = |place: &Place| namespace.is_empty() || place.namespace == namespace;
    let names = |rollout: &&Value| templates::are_named(&api::read::<Rollout>(rollout).object);
    cache.all(&resource::rollouts()).filter(names).map(place_of).filter(is_there).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::constants::label, value};

    #[test]
    fn what_is_named_and_not_seen_is_missing() {
        let rollout = value!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {
            "workloadRef": {"kind": "Deployment", "name": "old"},
            "strategy": {"canary": {"stableService": "a", "canaryService": "b"}}}});
        let service = |name: &str| value!({"metadata": {"name": name}});
        let missing = |services: Vec<Value>, workload: Option<Value>| -> Vec<String> {
            let seen = Seen { rollout: rollout.clone(), services, workload, ..Seen::default() };
            missing(&api::read(&rollout).object, &seen)
                .iter()
                .map(|key| format!("{} {}", key.resource, key.place.name))
                .collect()
        };
        assert_eq!(missing(vec![], None), ["services a", "services b", "deployments.apps old"]);
        assert_eq!(missing(vec![service("b")], Some(value!({}))), ["services a"]);
        assert!(missing(vec![service("a"), service("b")], Some(value!({}))).is_empty());
    }

    /// A Rollout beside a ReplicaSet that has no controller, or that of another owner.
    fn seen(owner: Option<&str>) -> Seen {
        let pods =
            value!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}});
        let spec = value!({"selector": {"matchLabels": {"app": "web"}}, "template": pods});
        let rollout = value!({"metadata": {"namespace": "shop", "name": "web", "uid": "ro"}, "spec": spec});
        let name = next_set(&api::read(&rollout).object, None);
        let owners = owner.map(|uid| value!([{"kind": "X", "name": "x", "uid": uid, "controller": true}]));
        let labels = value!({"app": "web", label::POD_TEMPLATE_HASH: name.trim_start_matches("web-")});
        let mut set = value!({"metadata": {"namespace": "shop", "name": name, "labels": labels}});
        if let Some(owners) = owners {
            set.set_at(&["metadata", "ownerReferences"], owners);
        }
        Seen { rollout, sets: vec![set], ..Seen::default() }
    }

    #[test]
    fn what_cannot_be_undone_is_confirmed_first() {
        let leaving = value!({"metadata": {"uid": "ro", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let other = value!({"metadata": {"uid": "another"}});
        let same = value!({"metadata": {"uid": "ro"}});
        for (live, expected) in [
            (Some(&same), LiveAnswer::Confirmed),
            (Some(&leaving), LiveAnswer::Stale),
            (Some(&other), LiveAnswer::Stale),
            (None, LiveAnswer::Stale),
        ] {
            let mut seen = seen(None);
            let check = LiveCheck::next(&View::of(&seen), &[]).unwrap();
            assert!(matches!(check, LiveCheck::RolloutLives(_)), "{check:?}");
            assert_eq!(check.absorb(&mut seen, live.map(|live| (live, false))), expected, "{live:?}");
        }
    }

    #[test]
    fn a_collision_is_counted_only_if_the_name_is_taken_now() {
        let mut taken = seen(Some("another"));
        let view = View::of(&taken);
        assert!(view.name_is_taken);
        let check = LiveCheck::next(&view, &[]).unwrap();
        // It was orphaned meanwhile.
        let mut live = taken.sets[0].clone();
        live.remove_at(&["metadata", "ownerReferences"]);
        assert_eq!(check.absorb(&mut taken, Some((&live, false))), LiveAnswer::Changed);
        let view = View::of(&taken);
        assert!(!view.name_is_taken && view.orphans.len() == 1);
        assert!(matches!(LiveCheck::next(&view, std::slice::from_ref(&check)), Some(LiveCheck::RolloutLives(_))));
        // It is gone meanwhile.
        assert_eq!(check.absorb(&mut taken, None), LiveAnswer::Changed);
        assert_eq!(LiveCheck::next(&View::of(&taken), &[]), None);
    }

    #[test]
    fn a_replica_set_of_another_name_is_adopted_though_the_watch_still_calls_it_the_predecessors() {
        let mut late = seen(Some("old"));
        // A collision was counted in when it was made, so that its name is not the next one's.
        late.sets[0].set_at(&["metadata", "name"], value!("web-collided"));
        late.sets[0].set_at(
            &["metadata", "ownerReferences"],
            value!([{"kind": "Rollout", "name": "web", "uid": "old", "controller": true}]),
        );
        let view = View::of(&late);
        assert!(!view.name_is_taken && view.orphans.is_empty());
        let check = LiveCheck::next(&view, &[]).unwrap();
        assert!(matches!(&check, LiveCheck::StillOwned(key) if key.place.name == "web-collided"), "{check:?}");
        // It is deleted in the background: it stays the other one's until it is gone.
        let mut deleted = late.clone();
        assert_eq!(check.absorb(&mut deleted, Some((&late.sets[0], false))), LiveAnswer::Changed);
        assert_eq!(LiveCheck::next(&View::of(&deleted), std::slice::from_ref(&check)), None);
        // It was orphaned.
        let mut live = late.sets[0].clone();
        live.remove_at(&["metadata", "ownerReferences"]);
        assert_eq!(check.absorb(&mut late, Some((&live, false))), LiveAnswer::Changed);
        let view = View::of(&late);
        assert_eq!(view.orphans.len(), 1);
        assert!(view.new_set().is_some(), "it has the template that is wanted");
    }

    #[test]
    fn the_next_name_is_that_of_the_workloads_template() {
        let template =
            value!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}});
        let own = value!({"metadata": {"name": "web"}, "spec": {"template": template.clone()}});
        let referring = value!({"metadata": {"name": "web"}, "spec": {"workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "old"}}});
        let workload = value!({"metadata": {"name": "old"}, "spec": {"template": template}});
        let next = |rollout: &Value, workload| next_set(&api::read(rollout).object, workload);
        assert_eq!(next(&referring, Some(&workload)), next(&own, None));
    }
}
