//! Moving pods: how many each ReplicaSet has, when old ones go, what they carry.
//!
//! Growing comes before shrinking, and each pass scales in one direction at most: what is decided next is decided on what
//! the scaling came to. Never scales a ReplicaSet that is not the Rollout's.

use jiff::{SignedDuration, Timestamp};

use super::{
    pass::{Pass, end},
    replicas::{self, Sets, Sizes},
    runs::{Run, Slot},
    view::{self, Set},
};
use crate::{
    analysis::Phase,
    api::{
        PodTemplateMetadata,
        constants::{annotation, condition, message, reason},
    },
    kubernetes::{
        clock::rfc3339,
        object,
        value::{Text, Value},
    },
    model::{
        conditions, ephemeral,
        limits::{self, AbortDelay},
        memory::PauseReason,
        refers,
        replica_set::ReplicaSet,
        revision,
    },
    value,
};

/// How long nothing moves before idle pods of a stable version are no longer waited for, at most.
const STALL: SignedDuration = SignedDuration::from_secs(10);

/// Whether something was scaled, so that the rest waits for what it comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scaled {
    Yes,
    No,
}

impl Pass<'_> {
    pub(super) fn replicas(&self) -> i32 {
        limits::replicas(&self.view.rollout)
    }

    /// The version that the active Service was last seen to lead to.
    pub(super) fn active_info(&self) -> Option<&ReplicaSet> {
        let hash = &self.view.rollout.status.blue_green.active_selector;
        self.view.set_of(hash).map(|set| &set.info)
    }

    fn wanted(&mut self, set: &Set) -> &mut Value {
        self.target.sets.entry(set.info.name.clone()).or_insert_with(|| set.object.clone())
    }

    /// Gives a ReplicaSet this size, and notes the Rollout's on it.
    pub(super) fn scale(&mut self, set: &Set, size: i32) -> Scaled {
        let replicas = self.replicas();
        let info = &set.info;
        // The new version may be the stable one, and have been scaled as that.
        let before = self.wanted(set).int_at(&["spec", "replicas"]).and_then(|size| i32::try_from(size).ok());
        let before = before.unwrap_or(info.desired);
        if before == size && !info.notes_are_outdated(replicas) {
            return Scaled::No;
        }
        let keeps_deadline = self.delays_scale_down();
        let wanted = self.wanted(set);
        wanted.set_at(&["spec", "replicas"], size);
        wanted.set_at(&["metadata", "annotations", annotation::DESIRED_REPLICAS], replicas.to_string());
        if size == 0 && !keeps_deadline {
            wanted.remove_at(&["metadata", "annotations", annotation::SCALE_DOWN_DEADLINE]);
        }
        if before == size {
            return Scaled::No;
        }
        let direction = if before < size { "up" } else { "down" };
        let told = message::scaled(direction, &info.name, set.revision(), before, size);
        self.say(reason::SCALING_REPLICA_SET, told);
        Scaled::Yes
    }

    fn set_deadline(&mut self, set: &Set, deadline: Timestamp) {
        self.wanted(set).set_at(&["metadata", "annotations", annotation::SCALE_DOWN_DEADLINE], rfc3339(deadline));
        self.wake_at(deadline);
    }

    /// A version with a role again has no deadline.
    fn remove_deadlines(&mut self) {
        let view = self.view;
        let new = view.new_set().filter(|_| !self.delays_scale_down());
        for set in new.into_iter().chain(view.other_stable()) {
            if set.info.has_scale_down_deadline() {
                self.wanted(set).remove_at(&["metadata", "annotations", annotation::SCALE_DOWN_DEADLINE]);
            }
        }
    }

    /// Whether the new version stays up for a while after an abort.
    fn delays_scale_down(&self) -> bool {
        let rollout = &self.view.rollout;
        let canary = rollout.spec.strategy.canary.as_ref();
        let delay = limits::abort_scale_down_delay(rollout);
        self.is_aborted()
            && self.view.stable.is_some()
            // The stable version wanted again, and no pass has said so yet: it is nobody's to take down.
            && self.view.stable != self.view.new
            && canary.is_none_or(|canary| canary.traffic_routing.is_some())
            && delay != AbortDelay::Never
            && (delay.is_explicit() || !canary.is_some_and(|canary| canary.dynamic_stable_scale))
    }

    /// The ReplicaSets of a canary: stable, then new, then the others; as soon as one was scaled, the rest waits.
    pub(super) fn canary_sets(&mut self) -> Scaled {
        if self.is_halted() {
            self.because("pods stay as they are while paused");
            return Scaled::No;
        }
        self.remove_deadlines();
        let view = self.view;
        // Behind a router sizes follow weights, and weights wait for pods that stay.
        let is_routed =
            view.rollout.spec.strategy.canary.as_ref().is_some_and(|canary| canary.traffic_routing.is_some());
        let count = |set: &Set| if is_routed { set.info.clone() } else { set.counted() };
        let (new, stable) = (view.new_set().map(count), view.stable_set().map(count));
        let others: Vec<ReplicaSet> = view.others().map(count).collect();
        let sets = Sets { new: new.as_ref(), stable: stable.as_ref(), others: &others };
        let blockade = self.with_sets(|sets| replicas::blockade(&view.rollout, sets));
        match blockade.filter(|_| !self.is_aborted()) {
            Some(blockade) if self.is_stalled() => return self.end_blockade(blockade, &sets),
            Some(_) => {}
            None => self.give_way_no_more(),
        }
        // Pods of the stable version follow the traffic that is in effect, not the one that is being set.
        let stable_size = replicas::next(&view.rollout, &sets, view.rollout.status.canary.weights.as_ref()).stable;
        if let Some(stable) = view.other_stable()
            && self.scale(stable, stable_size) == Scaled::Yes
        {
            return Scaled::Yes;
        }
        let new_size = replicas::next(&view.rollout, &sets, self.next.canary.weights.as_ref()).new;
        if self.new_set(self.held_by_traffic(new_size)) == Scaled::Yes {
            return Scaled::Yes;
        }
        self.old_canary_sets(&sets)
    }

    /// Whether a blockade has lasted so long that the stable version is not waited for any more.
    fn is_stalled(&mut self) -> bool {
        let view = self.view;
        if view.other_stable().is_some_and(|stable| !stable.info.note(annotation::GIVES_WAY).is_empty()) {
            return true;
        }
        let progressing = conditions::find(&view.rollout.status.conditions, condition::PROGRESSING);
        let since = progressing.map_or(view.now, |progressing| progressing.last_update_time.into());
        // Before it is given up for want of progress, if it would be.
        let deadline =
            view.rollout.spec.progress_deadline_seconds.filter(|_| view.rollout.spec.progress_deadline_abort);
        let stall = deadline.map_or(STALL, |seconds| STALL.min(SignedDuration::from_secs(i64::from(seconds) / 2)));
        let patience = stall.saturating_add(SignedDuration::from_secs(view.rollout.spec.min_ready_seconds.into()));
        self.wake_at(end(since, patience));
        end(since, patience) <= view.now && view.sets.iter().all(Set::is_observed)
    }

    /// Idle pods of the stable version give way to new ones. That is noted on it: what moves now is progress, and it would
    /// grow again at the cost of the pods that take its place.
    fn end_blockade(&mut self, blockade: Sizes, sets: &Sets<'_>) -> Scaled {
        let view = self.view;
        self.because("idle pods of the stable version give way to new ones");
        let mut scaled = Scaled::No;
        if let Some(stable) = view.other_stable() {
            self.wanted(stable).set_at(&["metadata", "annotations", annotation::GIVES_WAY], "true");
            scaled = self.scale(stable, blockade.stable);
        }
        // Both at once: what one gives up is the other's.
        if view.new_set().is_some_and(|new| self.scale(new, blockade.new) == Scaled::Yes) {
            scaled = Scaled::Yes;
        }
        if scaled == Scaled::Yes { scaled } else { self.old_canary_sets(sets) }
    }

    /// The blockade is over.
    fn give_way_no_more(&mut self) {
        for set in self.view.sets.iter().filter(|set| !set.info.note(annotation::GIVES_WAY).is_empty()) {
            self.wanted(set).remove_at(&["metadata", "annotations", annotation::GIVES_WAY]);
        }
    }

    /// The ReplicaSets of blue-green: stable, new, the others, and the history.
    pub(super) fn blue_green_sets(&mut self) {
        self.remove_deadlines();
        let view = self.view;
        if let Some(stable) = view.stable_set() {
            let size = self.replicas();
            self.scale(stable, size);
        }
        if let Some(new) = view.new_set() {
            let size = replicas::blue_green_new(&view.rollout, &new.info, self.active_info());
            self.new_set(size);
        }
        self.old_blue_green_sets();
        self.trim_history();
    }

    /// The new version: of this size, unless it stays up for a while after an abort.
    fn new_set(&mut self, size: i32) -> Scaled {
        let view = self.view;
        let Some(new) = view.new_set() else { return Scaled::No };
        let size = match self.delays_scale_down().then(|| self.after_abort(new)) {
            None | Some(Hold::Unreadable) => size,
            Some(Hold::Over) => 0,
            Some(Hold::Stay) => {
                self.scale(new, new.info.desired);
                return Scaled::No;
            }
        };
        let scaled = self.scale(new, size);
        self.scale_workload(new, size);
        scaled
    }

    /// What holds the new version up after an abort: its deadline, which is set once the stable version can carry
    /// everything.
    fn after_abort(&mut self, new: &Set) -> Hold {
        let view = self.view;
        if new.info.has_scale_down_deadline() {
            return match new.info.time_to_scale_down(view.now) {
                Ok(Some(left)) => {
                    self.wake_at(view.now.saturating_add(left).unwrap_or(Timestamp::MAX));
                    Hold::Stay
                }
                Ok(None) => Hold::Over,
                Err(_) => Hold::Unreadable,
            };
        }
        let AbortDelay::After { delay, .. } = limits::abort_scale_down_delay(&view.rollout) else {
            return Hold::Unreadable;
        };
        if view.stable_set().is_some_and(|stable| stable.staying() >= self.replicas()) {
            self.set_deadline(new, view.now.saturating_add(delay).unwrap_or(Timestamp::MAX));
        }
        Hold::Stay
    }

    /// Old versions of a canary.
    fn old_canary_sets(&mut self, sets: &Sets<'_>) -> Scaled {
        let view = self.view;
        if view.rollout.spec.strategy.canary.as_ref().is_some_and(|canary| canary.traffic_routing.is_some()) {
            return self.routed_others();
        }
        // Pods that are on their way out are still counted until their ReplicaSet says otherwise; nobody can count on them.
        let staying = |set: &ReplicaSet| ReplicaSet { available: set.available.min(set.desired), ..set.clone() };
        let (new, stable) = (sets.new.map(staying), sets.stable.map(staying));
        let others: Vec<ReplicaSet> = sets.others.iter().map(staying).collect();
        let sets = Sets { new: new.as_ref(), stable: stable.as_ref(), others: &others };
        let mut scaled = Scaled::No;
        for (set, size) in view.others().zip(replicas::basic_others(&view.rollout, &sets)) {
            // What one has lost is not known before its controller has seen its size.
            if set.info.desired > 0 && set.is_observed() && self.scale(set, size) == Scaled::Yes {
                scaled = Scaled::Yes;
            }
        }
        scaled
    }

    /// Old versions of blue-green: each stays for its delay, as far as the limit lets it.
    fn old_blue_green_sets(&mut self) {
        let view = self.view;
        let Some(strategy) = &view.rollout.spec.strategy.blue_green else { return };
        if view.memory.hold.since(&PauseReason::InconclusiveAnalysis).is_some() {
            return;
        }
        let after = view.run(Slot::Post);
        if strategy.post_promotion_analysis.is_some()
            && strategy.scale_down_delay_seconds.is_none()
            && !self.skips(Slot::Post, after.is_some())
            && after.is_none_or(|run| run.phase != Phase::Successful)
        {
            return self.because("old pods stay until the analysis after the switch has succeeded");
        }
        let mut old: Vec<&Set> = view.others().filter(|set| set.info.desired > 0).collect();
        old.sort_by_key(|set| std::cmp::Reverse(set.revision()));
        let mut delayed = 0;
        for set in old {
            if self.is_referenced(set) {
                self.because(format!("{} stays: it is still referred to", set.info.name));
                continue;
            }
            let size = self.size_in_delay(set, self.replicas(), &mut delayed);
            if size != set.info.desired {
                self.scale(set, size);
            }
        }
    }

    /// The size of an old version: what it has until its deadline is set, `size` until it is over, then none. `delayed`
    /// counts those that wait.
    pub(super) fn size_in_delay(&mut self, set: &Set, size: i32, delayed: &mut i32) -> i32 {
        let view = self.view;
        let strategy = &view.rollout.spec.strategy;
        let limit = match (&strategy.blue_green, &strategy.canary) {
            (Some(strategy), _) => strategy.scale_down_delay_revision_limit,
            (None, Some(strategy)) => strategy.scale_down_delay_revision_limit,
            (None, None) => None,
        };
        let limit = limit.unwrap_or(i32::MAX);
        if set.info.has_scale_down_deadline() {
            *delayed += 1;
            return match set.info.time_to_scale_down(view.now) {
                Ok(Some(left)) if *delayed <= limit => {
                    self.wake_at(view.now.saturating_add(left).unwrap_or(Timestamp::MAX));
                    size
                }
                Ok(_) | Err(_) => 0,
            };
        }
        let delay = limits::scale_down_delay(&view.rollout);
        // Argo Rollouts leaves old pods up for ever when the delay is 0; the documentation promises "at once".
        if *delayed >= limit || !delay.is_positive() {
            return 0;
        }
        *delayed += 1;
        self.set_deadline(set, view.now.saturating_add(delay).unwrap_or(Timestamp::MAX));
        set.info.desired
    }

    /// Whether status or a Service still leads to this version. Of two Services that change places, the one without a role
    /// leads to the last version until it gets one, with nothing going through it.
    pub(super) fn is_referenced(&self, set: &Set) -> bool {
        let status = &self.view.rollout.status;
        let weights = status.canary.weights.as_ref();
        let recorded = [
            Some(&status.stable_rs),
            Some(&status.current_pod_hash),
            Some(&status.blue_green.active_selector),
            Some(&status.blue_green.preview_selector),
            weights.map(|weights| &weights.canary.pod_template_hash),
            weights.map(|weights| &weights.stable.pod_template_hash),
        ];
        let both = self.view.rollout.spec.strategy.canary.as_ref().and_then(|canary| canary.ping_pong.as_ref());
        let is_one_of_both = |name: &Text| {
            both.is_some_and(|both| [both.ping_service.as_str(), &both.pong_service].contains(&name.as_str()))
        };
        let hash = set.info.hash.as_str();
        !hash.is_empty()
            && (recorded.into_iter().flatten().any(|recorded| recorded == hash)
                || self.view.services.iter().any(|(name, service)| service.hash == hash && !is_one_of_both(name)))
    }

    /// Deletes the oldest ReplicaSets beyond the limit, if they have no pods.
    pub(super) fn trim_history(&mut self) {
        let view = self.view;
        let limit = view.rollout.spec.revision_history_limit.unwrap_or(10);
        let alive: Vec<&Set> = view.others().filter(|set| !set.info.deleting).collect();
        let surplus = alive.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        let is_empty = |set: &&&Set| set.info.current == 0 && set.info.desired == 0 && set.is_observed();
        let serves = |set: &Set| view.services.values().any(|service| service.hash == set.info.hash);
        for set in alive.iter().take(surplus).filter(is_empty).filter(|set| !serves(set)) {
            self.target.sets.remove(&set.info.name);
            self.because(format!("{} is beyond the history limit of {limit}", set.info.name));
        }
    }

    /// The ReplicaSet of the version that the specification asks for, which does not exist yet.
    pub(super) fn create_set(&mut self) {
        let view = self.view;
        let rollout = &view.rollout;
        let name = crate::model::names::replica_set(&rollout.metadata.name, &view.hash);
        let revision = (revision::highest(view.sets.iter().map(revision_text)) + 1).to_string();
        let mut notes = revision::Annotations::new();
        revision::update(&mut notes, &rollout.metadata.annotations, &revision, Some(self.replicas()));
        let template = view::template_of_new_set(rollout, &view.hash);
        let mut selector = rollout.spec.selector.clone().unwrap_or_else(Value::object);
        let label = crate::api::constants::label::POD_TEMPLATE_HASH;
        selector.set_at(&["matchLabels", label], view.hash.as_str());
        let mut set = value!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name.as_str(),
                "namespace": rollout.metadata.namespace.as_str(),
                "ownerReferences": [refers::owner(rollout)],
            },
            "spec": {"replicas": 0},
        });
        if let Some(labels) = template.at(&["metadata", "labels"]) {
            set.set_at(&["metadata", "labels"], labels.clone());
        }
        for (key, text) in &notes {
            set.set_at(&["metadata", "annotations", key], text.as_str());
        }
        if rollout.spec.min_ready_seconds != 0 {
            set.set_at(&["spec", "minReadySeconds"], rollout.spec.min_ready_seconds);
        }
        set.set_at(&["spec", "selector"], selector);
        set.set_at(&["spec", "template"], template);
        let role = if view.stable.is_some() { Role::New } else { Role::Stable };
        let set = ephemeral::sync(&set, self.metadata_of(role)).unwrap_or(set);
        self.target.sets.insert(Text::from(name.as_str()), set);
        self.set_revision(&revision);
        let number = revision.parse().unwrap_or_default();
        self.say(reason::NEW_REPLICA_SET, message::created_replica_set(&name, number));
    }

    /// Notes the revision on the Rollout.
    fn set_revision(&mut self, revision: &str) {
        let path = ["metadata", "annotations", annotation::REVISION];
        if self.target.rollout.str_at(&path) != Some(revision) {
            self.target.rollout.set_at(&path, revision);
            self.say(reason::ROLLOUT_UPDATED, message::rollout_updated(revision));
        }
    }

    /// Brings the new ReplicaSet's notes, and the Rollout's revision, up to date.
    pub(super) fn sync_revision(&mut self) {
        let view = self.view;
        let Some(new) = view.new_set() else { return };
        let older = view.sets.iter().filter(|set| set.info.name != new.info.name);
        let wanted = (revision::highest(older.map(revision_text)) + 1).to_string();
        let mut notes = annotations(new);
        let rollout = &view.rollout;
        let changed = revision::update(&mut notes, &rollout.metadata.annotations, &wanted, None);
        let min_ready = i64::from(rollout.spec.min_ready_seconds);
        let ready_differs = new.object.int_at(&["spec", "minReadySeconds"]).unwrap_or_default() != min_ready;
        if changed == revision::Update::Changed || ready_differs || view::affinity_is_outdated(view, new) {
            let affinity = view::wanted_affinity(rollout, &new.info.hash);
            let set = self.wanted(new);
            for (key, text) in notes.iter().filter(|(key, text)| new.info.note(key) != text.as_str()) {
                set.set_at(&["metadata", "annotations", key], text.as_str());
            }
            if ready_differs {
                set.set_at(&["spec", "minReadySeconds"], min_ready);
            }
            set.remove_at(&["spec", "template", "spec", "affinity"]);
            if let Some(affinity) = affinity {
                set.set_at(&["spec", "template", "spec", "affinity"], affinity);
            }
        }
        if let Some(number) = notes.get(annotation::REVISION) {
            self.set_revision(&number.clone());
        }
    }

    /// Labels and annotations that come and go with a role: on ReplicaSets, and on the pods that run.
    pub(super) fn sync_metadata(&mut self) {
        let view = self.view;
        if !view::dresses(&view.rollout) {
            return;
        }
        let is_promoted = view.rollout.status.stable_rs.is_empty()
            || view.new_set().is_some_and(|new| new.info.hash.as_str() == view.rollout.status.stable_rs);
        for (index, set) in view.sets.iter().enumerate() {
            let role = match (Some(index) == view.new, Some(index) == view.stable) {
                (true, _) if is_promoted => Role::Stable,
                (true, _) => Role::New,
                (false, true) => Role::Stable,
                (false, false) => Role::None,
            };
            let before = ephemeral::remembered(&set.object);
            let wanted = self.metadata_of(role).cloned();
            let current = self.target.sets.get(&set.info.name).cloned().unwrap_or_else(|| set.object.clone());
            if let Some(changed) = ephemeral::sync(&current, wanted.as_ref()) {
                self.target.sets.insert(set.info.name.clone(), changed);
            }
            if set.info.desired > 0 {
                self.dress_pods(set, before.as_ref(), wanted.as_ref());
            }
        }
    }

    fn dress_pods(&mut self, set: &Set, before: Option<&PodTemplateMetadata>, wanted: Option<&PodTemplateMetadata>) {
        let uid = set.object.str_at(&["metadata", "uid"]).unwrap_or_default();
        for pod in self.target.pods.values_mut() {
            if object::controller(pod).as_deref() != Some(uid) {
                continue;
            }
            let metadata = pod.get("metadata").cloned().unwrap_or_default();
            if let Some(metadata) = ephemeral::sync_metadata(&metadata, before, wanted) {
                pod.set_at(&["metadata"], metadata);
            }
        }
    }

    fn metadata_of(&self, role: Role) -> Option<&PodTemplateMetadata> {
        let strategy = &self.view.rollout.spec.strategy;
        let (new, stable) = match (&strategy.canary, &strategy.blue_green) {
            (Some(canary), _) => (canary.canary_metadata.as_ref(), canary.stable_metadata.as_ref()),
            (None, Some(strategy)) => (strategy.preview_metadata.as_ref(), strategy.active_metadata.as_ref()),
            (None, None) => (None, None),
        };
        match role {
            Role::New => new,
            Role::Stable => stable,
            Role::None => None,
        }
    }

    /// Adopts ReplicaSets that nobody controls and its selector matches, with what else was orphaned with them, and lets go of
    /// those it does not.
    pub(super) fn claim(&mut self) {
        self.note_workload();
        let view = self.view;
        let name =
            |object: &Value| object.at(&["metadata", "name"]).and_then(Value::as_text).cloned().unwrap_or_default();
        for orphan in &view.orphans {
            refers::adopt(self.target.sets.entry(name(orphan)).or_insert_with(|| orphan.clone()), &view.rollout);
        }
        for id in &view.route_orphans {
            if let Some(mut object) = self.target.routes.get(id).cloned() {
                refers::adopt(&mut object, &view.rollout);
                self.target.routes.put(id.clone(), object);
            }
        }
        let orphaned = |run: &&Run| run.is_orphan() && !run.is_leaving();
        for run in view.runs.iter().filter(orphaned) {
            self.target.runs.entry(run.name.clone()).and_modify(|run| refers::adopt(run, &view.rollout));
        }
        for experiment in view.experiments.iter().filter(orphaned) {
            self.target.experiments.entry(experiment.name.clone()).and_modify(|one| refers::adopt(one, &view.rollout));
        }
        for stranger in &view.strangers {
            let mut released = stranger.clone();
            let is_ours = |owner: &&Value| owner.str_at(&["uid"]) == Some(view.rollout.metadata.uid.as_str());
            let owners = stranger.list_at(&["metadata", "ownerReferences"]).iter().filter(|owner| !is_ours(owner));
            released.set_at(&["metadata", "ownerReferences"], Value::list(owners.cloned()));
            self.target.sets.insert(name(stranger), released);
        }
    }

    /// Notes on the Rollout which generation of the workload it has seen, so that clients can tell.
    fn note_workload(&mut self) {
        let path = ["metadata", "annotations", annotation::WORKLOAD_GENERATION];
        match &self.view.workload {
            Some(workload) => {
                let generation = workload.generation.to_string();
                if self.target.rollout.str_at(&path) != Some(&generation) {
                    self.target.rollout.set_at(&path, generation);
                }
            }
            None if self.view.rollout.spec.workload_ref.is_none() => drop(self.target.rollout.remove_at(&path)),
            None => {}
        }
    }

    /// Takes the pods of the referenced workload down as the Rollout's come up.
    fn scale_workload(&mut self, new: &Set, size: i32) {
        let rollout = &self.view.rollout;
        let status = &rollout.status;
        let progressively =
            rollout.spec.workload_ref.as_ref().is_some_and(|workload| workload.scale_down == "progressively");
        if new.revision() != 1 || !progressively {
            return;
        }
        if status.phase == crate::api::constants::phase::HEALTHY {
            self.workload_to(0);
        } else if status.ready_replicas > 0 || new.info.desired > size {
            self.workload_to(self.replicas() - status.ready_replicas);
        }
    }

    /// Gives the referenced Deployment this size.
    pub(super) fn workload_to(&mut self, size: i32) {
        let size = i64::from(size.max(0));
        let Some(workload) = &mut self.target.workload else { return };
        // Not the object's own word: items of a list do not say what kind they are.
        let reference = self.view.rollout.spec.workload_ref.as_ref();
        let is_deployment = reference.is_some_and(|reference| reference.kind == "Deployment");
        if is_deployment && workload.int_at(&["spec", "replicas"]) != Some(size) {
            workload.set_at(&["spec", "replicas"], size);
        }
    }
}

/// What keeps a new version up after an abort.
enum Hold {
    /// It stays.
    Stay,
    /// Its time is over.
    Over,
    /// Nobody can tell; it is as large as its share.
    Unreadable,
}

/// What a ReplicaSet is to the metadata of its pods.
#[derive(Clone, Copy)]
enum Role {
    New,
    Stable,
    None,
}

fn revision_text(set: &Set) -> &str {
    set.info.note(annotation::REVISION)
}

fn annotations(set: &Set) -> revision::Annotations {
    let entries = set.info.annotations.iter();
    entries.map(|(key, text)| (key.to_string(), text.as_str().unwrap_or_default().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::hash,
        rollout::{Seen, View, decide},
    };

    /// A canary of three pods, none of which may be missing, right after its abort: two pods of each version are reported as
    /// available. The stable ReplicaSet is at generation 3. Answers also the name of the canary's ReplicaSet.
    fn aborted(observed: i64) -> (View, String) {
        let template = |image: &str| value!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}});
        let (old, new) = (hash::pod_template(&template("app:1"), None), hash::pod_template(&template("app:2"), None));
        let set = |hash: &str, image: &str, revision: &str, observed: i64| {
            let mut template = template(image);
            template.set_at(&["metadata", "labels", "rollouts-pod-template-hash"], hash);
            value!({"metadata": {"name": format!("web-{hash}"), "namespace": "shop", "uid": hash, "generation": 3,
                    "labels": {"app": "web", "rollouts-pod-template-hash": hash},
                    "annotations": {annotation::REVISION: revision, annotation::DESIRED_REPLICAS: "3"},
                    "ownerReferences": [{"uid": "ro", "controller": true}]},
                "spec": {"replicas": 2, "template": template},
                "status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "observedGeneration": observed}})
        };
        let conditions = value!([{"type": "Progressing", "status": "False", "reason": "RolloutAborted"}]);
        let mut rollout = value!({"metadata": {"name": "web", "namespace": "shop", "uid": "ro", "generation": 2},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template("app:2"),
                "strategy": {"canary": {"maxUnavailable": 0, "maxSurge": 1, "steps": [{"setWeight": 67}, {"pause": {}}]}}},
            "status": {"currentPodHash": new.as_str(), "stableRS": old.as_str(), "currentStepIndex": 0,
                "selector": "app=web", "abort": true, "abortedAt": "2026-01-01T00:00:30Z", "conditions": conditions}});
        let seen = |rollout: &Value| Seen {
            now: "2026-01-01T00:01:00Z".parse().unwrap(),
            rollout: rollout.clone(),
            sets: vec![set(&old, "app:1", "1", observed), set(&new, "app:2", "2", 3)],
            ..Seen::default()
        };
        let steps = View::of(&seen(&rollout)).step_hash.to_string();
        rollout.set_at(&["status", "currentStepHash"], steps);
        (View::of(&seen(&rollout)), format!("web-{new}"))
    }

    #[test]
    fn s20_pods_are_counted_on_once_their_controller_has_seen_the_newest_size() {
        for (observed, expected) in [(3, 1), (2, 2)] {
            let (view, canary) = aborted(observed);
            let verdict = decide(&view);
            let size = verdict.target.unwrap().sets[canary.as_str()].int_at(&["spec", "replicas"]);
            assert_eq!(size, Some(expected), "observed {observed}: {:?}", verdict.reasons);
        }
    }
}
