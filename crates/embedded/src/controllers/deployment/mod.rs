//! Deployments make ReplicaSets and move replicas from the old to the new, as fast as availability allows.
//!
//! [`maths`] says how many, [`revision`] which set is the newest and what it is called, [`status`] what a Deployment
//! shows; [`sync`] reads, asks them and writes, one step per pass as upstream does. Status is computed from the sets as
//! they were before this pass scaled them.
//!
//! The hash in names and in the label `pod-template-hash` is of the real one's alphabet and length, not its value.
//! `spec.rollbackTo` of ancient API versions is ignored.

pub mod maths;
pub mod revision;
pub mod status;

use std::sync::Arc;

use self::{
    maths::{Goal, Size},
    revision::{DESIRED, MAX, REVISION},
};
use super::{
    Next, ask,
    hands::{DEPLOYMENTS, Hands, Key, PODS, REPLICA_SETS},
    replicaset::{Claim, claim, is_namespace_terminating, replicas},
};
use crate::kubernetes::{
    object::Object,
    selector::Labels,
    value::{Map, Value},
};

const COMPONENT: &str = "deployment-controller";

/// A pass that cannot go on: it is tried again.
struct Stuck;

type Step<T> = Result<T, Stuck>;

/// Moves one Deployment on by one step.
pub fn sync(hands: &mut Hands, key: &Key) -> Next {
    let Some(deployment) = hands.get(&DEPLOYMENTS, key) else { return Next::Idle };
    let selector = deployment.value.at(&["spec", "selector"]).cloned().unwrap_or_default();
    if selector.as_map().is_some_and(Map::is_empty) {
        let message = "This deployment is selecting all pods. A non-empty selector is required.";
        hands.event(COMPONENT, &deployment, "Warning", "SelectingAll", message);
        return Next::Idle;
    }
    let Ok(selector) = Labels::of(&selector) else { return Next::Idle };
    let mut pass = Pass { hands, goal: Goal::of(&deployment.value), deployment, sets: Vec::new() };
    match pass.run(&selector) {
        Ok(next) => next,
        Err(Stuck) => Next::Retry,
    }
}

/// One pass over a Deployment.
struct Pass<'a, 'b> {
    hands: &'a mut Hands<'b>,
    deployment: Arc<Object>,
    goal: Goal,
    /// Its ReplicaSets, oldest first.
    sets: Vec<Arc<Object>>,
}

/// The newest set, and the others oldest first.
type Found = (Option<Arc<Object>>, Vec<Arc<Object>>);

impl Pass<'_, '_> {
    fn run(&mut self, selector: &Labels) -> Step<Next> {
        self.claim_sets(selector)?;
        if self.deployment.is_terminating() {
            let found = self.find(false)?;
            return self.write_counts(&found);
        }
        if let Some(condition) = status::pause_condition(&self.deployment.value, self.hands.now()) {
            let mut conditions = self.deployment.value.list_at(&["status", "conditions"]).to_vec();
            status::set(&mut conditions, condition);
            self.set_status("conditions", conditions.into())?;
        }
        let paused = self.deployment.value.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true);
        if paused || self.was_scaled()? {
            let found = self.find(false)?;
            self.scale_all(&found)?;
            if paused {
                self.clean_up(&found.1)?;
            }
            return self.write_counts(&found);
        }
        if self.goal.rolling { self.roll() } else { self.recreate() }
    }

    fn claim_sets(&mut self, selector: &Labels) -> Step<()> {
        let namespace = self.deployment.namespace();
        let mut found = self.hands.owned(&REPLICA_SETS, &self.deployment);
        let orphans = self.hands.list(&REPLICA_SETS, &namespace);
        found.extend(orphans.filter(|set| ask::controller_of(&set.value).is_none()).cloned());
        for set in found {
            match claim(&self.deployment, selector, &set) {
                Claim::Mine => self.sets.push(set),
                Claim::Adopt => {
                    let adopted = self.hands.adopt(&REPLICA_SETS, &self.deployment, &set, &[]);
                    match adopted {
                        Ok(()) => self.sets.extend(self.hands.get(&REPLICA_SETS, &Key::of(&set))),
                        Err(refused) if refused.code == 404 => {}
                        Err(_) => return Err(Stuck),
                    }
                }
                Claim::Release => {
                    let refused = self.hands.release(&REPLICA_SETS, &self.deployment, &set, &[]).err();
                    if refused.is_some_and(|refused| !matches!(refused.code, 404 | 422)) {
                        return Err(Stuck);
                    }
                }
                Claim::NotMine => {}
            }
        }
        revision::by_age(&mut self.sets);
        Ok(())
    }

    /// Finds the newest set and the old ones, keeps the newest's revision, and makes it if it is missing and wanted.
    fn find(&mut self, create: bool) -> Step<Found> {
        let newest = revision::newest(&self.deployment.value, &self.sets).cloned();
        let is_newest = |set: &Arc<Object>| newest.as_ref().is_some_and(|newest| newest.uid() == set.uid());
        let old: Vec<Arc<Object>> = self.sets.iter().filter(|set| !is_newest(set)).cloned().collect();
        let next = old.iter().map(|set| revision::revision(&set.value)).max().unwrap_or(0) + 1;
        match newest {
            Some(newest) => Ok((Some(self.keep_newest(newest, next)?), old)),
            None if create => Ok((Some(self.create_newest(&old, next)?), old)),
            None => Ok((None, old)),
        }
    }

    fn keep_newest(&mut self, newest: Arc<Object>, next: i64) -> Step<Arc<Object>> {
        let mut wanted = newest.value.clone();
        revision::annotate(&self.deployment.value, &mut wanted, next);
        let seconds = |object: &Value| object.int_at(&["spec", "minReadySeconds"]).unwrap_or(0);
        if seconds(&wanted) != seconds(&self.deployment.value) {
            wanted.set_at(&["spec", "minReadySeconds"], seconds(&self.deployment.value));
        }
        if wanted != newest.value {
            return self.update_set(wanted);
        }
        let shown = ask::annotation(&newest.value, REVISION).unwrap_or_default().to_owned();
        let mut condition = None;
        if status::progress_deadline(&self.deployment.value).is_some()
            && ask::condition(&self.deployment.value, "Progressing").is_none()
        {
            let message = format!("Found new replica set \"{}\"", newest.name());
            let now = self.hands.now();
            condition = Some(status::condition("Progressing", "True", "FoundNewReplicaSet", &message, now));
        }
        self.note_revision(&shown, condition)?;
        Ok(newest)
    }

    /// Shows a revision and a condition on the Deployment, where they differ.
    fn note_revision(&mut self, revision: &str, condition: Option<Value>) -> Step<()> {
        let mut wanted = self.deployment.value.clone();
        if ask::annotation(&wanted, REVISION) != Some(revision) {
            wanted.set_at(&["metadata", "annotations", REVISION], revision);
        } else if condition.is_none() {
            return Ok(());
        }
        if let Some(condition) = condition {
            let mut conditions = wanted.list_at(&["status", "conditions"]).to_vec();
            status::set(&mut conditions, condition);
            wanted.set_at(&["status", "conditions"], conditions);
        }
        self.put(wanted)
    }

    /// Writes the Deployment through its status subresource, which keeps its spec and labels.
    fn put(&mut self, wanted: Value) -> Step<()> {
        let written = self.hands.update_through_status(&DEPLOYMENTS, wanted);
        self.deployment = written.map_err(|_| Stuck)?;
        Ok(())
    }

    fn set_status(&mut self, field: &str, value: Value) -> Step<()> {
        let mut wanted = self.deployment.value.clone();
        wanted.set_at(&["status", field], value);
        self.put(wanted)
    }

    fn create_newest(&mut self, old: &[Arc<Object>], next: i64) -> Step<Arc<Object>> {
        let mut set = revision::new_set(&self.deployment, next);
        let total: i64 = old.iter().map(|set| replicas(&set.value)).sum();
        let count = self.goal.new_replicas(0, total);
        set.set_at(&["spec", "replicas"], count);
        let name = set.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
        let now = self.hands.now();
        let created = match self.hands.create(&REPLICA_SETS, &self.deployment.namespace(), set) {
            Ok(created) => created,
            Err(refused) if refused.code == 409 => {
                // The name is taken by somebody else's set: the hash collided, and is counted on.
                let count = self.deployment.value.int_at(&["status", "collisionCount"]).unwrap_or(0);
                self.set_status("collisionCount", (count + 1).into())?;
                return Err(Stuck);
            }
            Err(refused) if is_namespace_terminating(&refused) => return Err(Stuck),
            Err(refused) => {
                let message = format!("Failed to create new replica set \"{name}\": {refused}");
                if status::progress_deadline(&self.deployment.value).is_some() {
                    let mut conditions = self.deployment.value.list_at(&["status", "conditions"]).to_vec();
                    let condition = status::condition("Progressing", "False", "ReplicaSetCreateError", &message, now);
                    status::set(&mut conditions, condition);
                    self.set_status("conditions", conditions.into())?;
                }
                self.hands.event(COMPONENT, &self.deployment, "Warning", "ReplicaSetCreateError", message);
                return Err(Stuck);
            }
        };
        if count > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {count}");
            self.hands.event(COMPONENT, &self.deployment, "Normal", "ScalingReplicaSet", message);
        }
        let message = format!("Created new replica set \"{name}\"");
        let condition = status::condition("Progressing", "True", "NewReplicaSetCreated", &message, now);
        let condition = status::progress_deadline(&self.deployment.value).map(|_| condition);
        self.note_revision(&next.to_string(), condition)?;
        Ok(created)
    }

    /// Whether somebody scaled the Deployment since its sets were last scaled.
    fn was_scaled(&mut self) -> Step<bool> {
        let (newest, old) = self.find(false)?;
        let mut active = old.iter().chain(newest.as_ref()).filter(|set| replicas(&set.value) > 0);
        Ok(active.any(|set| {
            revision::count_annotation(&set.value, DESIRED).is_some_and(|desired| desired != self.goal.replicas)
        }))
    }

    /// Scales the only active set to the full count, or all of them in proportion.
    fn scale_all(&mut self, (newest, old): &Found) -> Step<()> {
        let mut active: Vec<Arc<Object>> =
            old.iter().rev().chain(newest).filter(|set| replicas(&set.value) > 0).cloned().collect();
        let only = match active.as_slice() {
            [] => newest.as_ref().or(old.last()),
            [one] => Some(one),
            _ => None,
        };
        if let Some(only) = only.cloned() {
            return self.scale(&only, self.goal.replicas).map(drop);
        }
        if active.is_empty() {
            return Ok(());
        }
        if newest.as_ref().is_some_and(|newest| self.is_saturated(newest)) {
            for set in active.iter().filter(|set| newest.as_ref().is_none_or(|newest| newest.uid() != set.uid())) {
                self.scale(set, 0)?;
            }
            return Ok(());
        }
        if !self.goal.rolling {
            return Ok(());
        }
        let total: i64 = active.iter().map(|set| replicas(&set.value)).sum();
        let allowed = if self.goal.replicas > 0 { self.goal.most() } else { 0 };
        revision::by_age(&mut active);
        if allowed > total {
            active.reverse();
        }
        active.sort_by_key(|set| std::cmp::Reverse(replicas(&set.value)));
        let sizes: Vec<Size> = active.iter().map(|set| size(set)).collect();
        let before = self.deployment.value.int_at(&["status", "replicas"]).unwrap_or(0);
        for (set, count) in active.iter().zip(self.goal.proportional(&sizes, before)) {
            self.resize(set, count)?;
        }
        Ok(())
    }

    fn is_saturated(&self, set: &Object) -> bool {
        let wanted = self.goal.replicas;
        let desired: Option<i64> = ask::annotation(&set.value, DESIRED).and_then(|text| text.parse().ok());
        replicas(&set.value) == wanted && desired == Some(wanted) && size(set).available == wanted
    }

    fn roll(&mut self) -> Step<Next> {
        let found = self.find(true)?;
        let (Some(newest), old) = (&found.0, &found.1) else { return Ok(Next::Idle) };
        if self.grow(newest, old)? || self.shrink(newest, old)? {
            return self.write_rollout(&found);
        }
        if status::is_complete(&self.deployment.value, self.deployment.value.get("status").unwrap_or(&Value::Null)) {
            self.clean_up(&found.1)?;
        }
        self.write_rollout(&found)
    }

    fn grow(&mut self, newest: &Arc<Object>, old: &[Arc<Object>]) -> Step<bool> {
        let size = replicas(&newest.value);
        if size == self.goal.replicas {
            return Ok(false);
        }
        if size > self.goal.replicas {
            return self.scale(newest, self.goal.replicas);
        }
        let total: i64 = old.iter().map(|set| replicas(&set.value)).sum::<i64>() + size;
        self.scale(newest, self.goal.new_replicas(size, total))
    }

    fn shrink(&mut self, newest: &Arc<Object>, old: &[Arc<Object>]) -> Step<bool> {
        let active: Vec<&Arc<Object>> = old.iter().filter(|set| replicas(&set.value) > 0).collect();
        let sizes: Vec<Size> = active.iter().map(|set| size(set)).collect();
        let mut shrunk = false;
        for (set, count) in active.iter().zip(self.goal.shrink_old(&sizes, size(newest))) {
            shrunk |= self.scale(set, count)?;
        }
        Ok(shrunk)
    }

    fn recreate(&mut self) -> Step<Next> {
        let mut found = self.find(false)?;
        let mut shrunk = false;
        for set in found.1.iter().filter(|set| replicas(&set.value) > 0) {
            shrunk |= self.scale(set, 0)?;
        }
        if shrunk || self.old_pods_run(&found) {
            return self.write_rollout(&found);
        }
        if found.0.is_none() {
            found = self.find(true)?;
        }
        if let Some(newest) = &found.0 {
            self.scale(newest, self.goal.replicas)?;
        }
        if status::is_complete(&self.deployment.value, self.deployment.value.get("status").unwrap_or(&Value::Null)) {
            self.clean_up(&found.1)?;
        }
        self.write_rollout(&found)
    }

    /// Whether pods of another template still run, or a set thinks so.
    fn old_pods_run(&self, (newest, old): &Found) -> bool {
        let is_newest = |set: &Object| newest.as_ref().is_some_and(|newest| newest.uid() == set.uid());
        old.iter().any(|set| set.value.int_at(&["status", "replicas"]).unwrap_or(0) > 0)
            || self
                .sets
                .iter()
                .filter(|set| !is_newest(set))
                .any(|set| self.hands.owned(&PODS, set).iter().any(|pod| !ask::has_ended(&pod.value)))
    }

    /// Scales a set, unless it has that size.
    fn scale(&mut self, set: &Arc<Object>, count: i64) -> Step<bool> {
        if replicas(&set.value) == count { Ok(false) } else { self.resize(set, count) }
    }

    /// Scales a set and notes what for; says whether its size changed.
    fn resize(&mut self, set: &Arc<Object>, count: i64) -> Step<bool> {
        let before = replicas(&set.value);
        let mut wanted = set.value.clone();
        if before != count {
            wanted.set_at(&["spec", "replicas"], count);
        }
        revision::annotate_size(&mut wanted, &self.goal);
        if wanted == set.value {
            return Ok(false);
        }
        self.update_set(wanted)?;
        if before == count {
            return Ok(false);
        }
        let way = if before < count { "up" } else { "down" };
        let message = format!("Scaled {way} replica set {} from {before} to {count}", set.name());
        self.hands.event(COMPONENT, &self.deployment, "Normal", "ScalingReplicaSet", message);
        Ok(true)
    }

    fn update_set(&mut self, wanted: Value) -> Step<Arc<Object>> {
        let updated = self.hands.update(&REPLICA_SETS, wanted).map_err(|_| Stuck)?;
        // Later looks at the sets of this pass must see the version that was written, not its new size.
        for set in &mut self.sets {
            if set.uid() == updated.uid() {
                *set = updated.clone();
            }
        }
        Ok(updated)
    }

    /// Deletes the oldest sets beyond the history that is kept.
    fn clean_up(&mut self, old: &[Arc<Object>]) -> Step<()> {
        let Some(limit) = status::history_limit(&self.deployment.value) else { return Ok(()) };
        let mut old: Vec<&Arc<Object>> = old.iter().filter(|set| !set.is_terminating()).collect();
        let surplus = old.len().saturating_sub(limit);
        old.sort_by_key(|set| (revision::revision(&set.value), ask::created_at(&set.value), set.name()));
        for set in old.into_iter().take(surplus) {
            let count = |path: &[&str]| set.value.int_at(path).unwrap_or(0);
            let observed = count(&["status", "observedGeneration"]) >= count(&["metadata", "generation"]);
            if count(&["status", "replicas"]) != 0 || replicas(&set.value) != 0 || !observed {
                continue;
            }
            match self.hands.delete(&REPLICA_SETS, set) {
                Ok(()) => {}
                Err(refused) if refused.code == 404 => {}
                Err(_) => return Err(Stuck),
            }
        }
        Ok(())
    }

    fn write_counts(&mut self, found: &Found) -> Step<Next> {
        let wanted = status::counted(&self.deployment.value, &all(found), found.0.as_deref(), self.hands.now());
        self.write(wanted)
    }

    fn write_rollout(&mut self, found: &Found) -> Step<Next> {
        let now = self.hands.now();
        let wanted = status::rollout(&self.deployment.value, &all(found), found.0.as_deref(), now);
        self.write(wanted)?;
        Ok(status::next_check(&self.deployment.value, now).map_or(Next::Idle, Next::At))
    }

    fn write(&mut self, wanted: Value) -> Step<Next> {
        if Some(&wanted) != self.deployment.value.get("status") {
            let mut new = self.deployment.value.clone();
            new.set_at(&["status"], wanted);
            self.put(new)?;
        }
        Ok(Next::Idle)
    }
}

fn all((newest, old): &Found) -> Vec<Arc<Object>> {
    old.iter().chain(newest).cloned().collect()
}

fn size(set: &Object) -> Size {
    Size {
        wanted: replicas(&set.value),
        available: set.value.int_at(&["status", "availableReplicas"]).unwrap_or(0),
        max_before: revision::count_annotation(&set.value, MAX),
    }
}
