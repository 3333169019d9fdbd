//! Where traffic goes: how much of it the new version gets, and what its routers are told.
//!
//! One move in a pass, and only as far as pods carry it: the new version's for what it gets, the stable one's for what it
//! keeps. Old pods go when nothing leads to them any more. Never writes to a router: that is `route`'s, on the wanted world.

use std::{borrow::Cow, ops::ControlFlow};

use jiff::{SignedDuration, Timestamp};

use super::{
    pass::{Pass, end},
    replicas::{self, Sets},
    sets::Scaled,
    step::{self, Position},
    view::{Set, View},
};
use crate::{
    api::{
        CanaryStrategy, RolloutStatus, RolloutTrafficRouting, TrafficWeights, WeightDestination,
        constants::{
            condition, message,
            ping_pong::{PING, PONG},
            reason,
        },
    },
    kubernetes::value::Text,
    model::{
        conditions,
        health::{is_fully_promoted, wants_verified_weight},
        limits,
        replica_set::ReplicaSet,
    },
    route::{self, Accepted, Leaf, Move, Problem, Services, Verification},
};

/// How long a route's gateways have to accept its weights, from when there was progress last.
const ACCEPTED_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// How long until a load balancer is asked again.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// What traffic is to be like after this pass.
struct Aim {
    /// What the new version gets.
    weight: i32,
    /// The version behind the canary's destination.
    canary: Text,
    /// What the Experiment of the current step gets.
    additional: Vec<WeightDestination>,
    /// Whether routes of steps go.
    clears: Clears,
}

/// Whether routes that steps have made go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clears {
    /// They stay, and the current step may make one.
    Nothing,
    /// They go, and the current step may make one: there is a new version, without a pod as yet.
    BeforeStep,
    /// They go.
    Everything,
}

/// What a router was told.
enum Telling {
    Done,
    /// The stable version cannot carry what it would get.
    Waits,
}

impl<'v> Pass<'v> {
    /// Tells the routers where traffic goes. A break ends the pass: one of them cannot be told, or does not do as it was.
    pub(super) fn traffic(&mut self) -> ControlFlow<()> {
        let view = self.view;
        let leaves = routing(view).map(|(_, routing)| route::leaves(routing).unwrap_or_default()).unwrap_or_default();
        if leaves.is_empty() {
            self.next.canary.weights = None;
            return ControlFlow::Continue(());
        }
        let aim = self.aim();
        self.lead_back(&aim);
        for leaf in leaves {
            match self.tell(leaf, &aim) {
                Ok(Telling::Done) => self.verify(leaf, &aim)?,
                Ok(Telling::Waits) => break,
                Err(problem) => {
                    let told = problem.to_string();
                    self.because(format!("traffic cannot be moved: {told}"));
                    self.warn(reason::TRAFFIC_ROUTING_ERROR, told);
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// How much the new version is to get.
    fn aim(&self) -> Aim {
        let view = self.view;
        let new = view.new_set();
        let canary = new.map(|new| new.info.hash.clone()).unwrap_or_default();
        let dynamic = routing(view).is_some_and(|(canary, _)| canary.dynamic_stable_scale);
        if let Some(from) = view.stable_set().and_then(|stable| step::returning_from(&view.rollout, &stable.info)) {
            return Aim {
                weight: self.weight_back(),
                canary: from.into(),
                additional: Vec::new(),
                clears: Clears::Nothing,
            };
        }
        if is_fully_promoted(&view.rollout.status) {
            return Aim { weight: 0, canary, additional: Vec::new(), clears: Clears::Everything };
        }
        if self.is_aborted() {
            return Aim { weight: self.weight_back(), canary, additional: Vec::new(), clears: Clears::Everything };
        }
        let Some(new) = new.filter(|new| new.info.available > 0) else {
            let additional = view.experiment_destinations();
            return Aim { weight: 0, canary, additional, clears: Clears::BeforeStep };
        };
        let recorded = self.recorded();
        if view.memory.promotion.is_full() {
            let carried = share(self.max_weight(), new.info.available, self.replicas());
            let weight = match recorded {
                // Pods that are on their way out may be among them: enough to stay, not to be given more.
                Some(weights) if dynamic && !new.is_observed() => carried.min(weights.canary.weight),
                _ if dynamic => carried,
                Some(weights) if self.may_repoint(new) => weights.canary.weight,
                Some(_) | None => 0,
            };
            return Aim { weight, canary, additional: Vec::new(), clears: Clears::Everything };
        }
        // Nothing may go to another version than it went to before that one has nothing.
        let weight = if self.may_repoint(new) { self.weight_of_steps(new) } else { 0 };
        Aim { weight, canary, additional: view.experiment_destinations(), clears: Clears::Nothing }
    }

    /// The weight of the steps: of the current one once its pods are there, of those before it until then.
    fn weight_of_steps(&self, new: &Set) -> i32 {
        let rollout = &self.view.rollout;
        let Some(Position { index, step, so_far }) = step::position(rollout) else { return 0 };
        if new.is_observed() && self.with_sets(|sets| replicas::is_canary_at_size(rollout, sets, None)) {
            return if step.is_some() { step::set_weight(rollout) } else { self.max_weight() };
        }
        let done = &so_far[..so_far.len().min(usize::try_from(index).unwrap_or_default())];
        let before = done.iter().rev().find_map(|step| step.set_weight).unwrap_or_default();
        // A step that lowers the weight waits for no pods: they go when the traffic has.
        let before = if step.is_some() { before.min(step::set_weight(rollout)) } else { before };
        let recorded = self.recorded().map(|weights| &weights.canary);
        let now = recorded.filter(|canary| new.info.hash == canary.pod_template_hash).map_or(0, |canary| canary.weight);
        // Steps may have been skipped, by hand or by going back: they have weights whose pods were never there.
        let needed = replicas::for_weight(self.replicas(), before, self.max_weight());
        let is_given = step::canary_scale(rollout).is_some()
            || routing(self.view).is_some_and(|(canary, _)| canary.replica_progress_threshold.is_some());
        if before > now && i64::from(new.staying()) < needed && !is_given { now } else { before }
    }

    /// What the new version keeps while traffic goes back to the stable one: nothing, or, if that shrank, as much as the
    /// stable one cannot carry yet. Never more than it has.
    fn weight_back(&self) -> i32 {
        let view = self.view;
        let dynamic = routing(view).is_some_and(|(canary, _)| canary.dynamic_stable_scale);
        let (true, Some(new), Some(stable), Some(recorded)) =
            (dynamic, view.new_set(), view.stable_set(), self.recorded())
        else {
            return 0;
        };
        let (replicas, max, now) = (self.replicas(), self.max_weight(), recorded.canary.weight);
        if replicas == 0 {
            return 0;
        }
        let stable = ReplicaSet { available: stable.staying(), ..stable.info.clone() };
        let carried = share(max, stable.available, replicas);
        let desired = step::desired_weight(&view.rollout, Some(&new.info), Some(&stable));
        if desired <= 0 {
            max.saturating_sub(carried).max(0).min(now)
        } else if carried < max.saturating_sub(desired) {
            now
        } else {
            desired.min(now)
        }
    }

    /// After an abort the canary's Service leads to the stable version, once nothing goes through it, or at once if the
    /// stable version is whole.
    fn lead_back(&mut self, aim: &Aim) {
        let view = self.view;
        let Some((canary, _)) = routing(view) else { return };
        let may_lead = aim.weight == 0 || !canary.dynamic_stable_scale;
        if is_fully_promoted(&view.rollout.status) || !self.is_aborted() || !may_lead {
            return;
        }
        if let Some(stable) = view.stable_set() {
            self.repoint(&canary.canary_service, &stable.info.hash);
        }
    }

    /// Tells one router.
    fn tell(&mut self, leaf: Leaf, aim: &Aim) -> Result<Telling, Problem> {
        let view = self.view;
        let (before, told) = (self.target.routes.clone(), self.announced());
        if aim.clears != Clears::Nothing {
            self.send(leaf, Move::Clear)?;
        }
        if !self.stable_carries(self.max_weight().saturating_sub(aim.weight)) {
            self.because("traffic stays as it is until the stable version can carry its share");
            return Ok(Telling::Waits);
        }
        let step = step::position(&view.rollout).and_then(|position| position.step);
        // The first version goes through no steps; they are only there because its index is.
        if let Some(step) = step.filter(|_| aim.clears != Clears::Everything && self.revision() > 1) {
            if let Some(route) = &step.set_header_route {
                self.send(leaf, Move::Header(route))?;
            }
            if let Some(route) = &step.set_mirror_route {
                self.send(leaf, Move::Mirror(route))?;
            }
            // Without an available pod the route of a step is taken away and set again in every pass: nothing happened.
            if self.target.routes.has_same_objects(&before) {
                self.take_back(told);
            }
        }
        let weights = Move::Weights { canary: aim.weight, additional: &aim.additional };
        let is_empty = view.new_set().is_none_or(|new| new.info.available == 0);
        let is_left = |canary: &WeightDestination| {
            canary.weight > 0 && (is_empty || canary.weight > aim.weight && aim.canary != canary.pod_template_hash)
        };
        if self.recorded().is_some_and(|weights| is_left(&weights.canary)) {
            // Or the destination would lead to another version with the weight of the one before.
            self.send(leaf, weights)?;
        }
        let stable = match view.stable_set() {
            Some(stable) => stable.info.hash.clone(),
            None => view.rollout.status.stable_rs.as_str().into(),
        };
        let sets: Vec<ReplicaSet> = view.sets.iter().map(|set| set.info.clone()).collect();
        let waits = step::subsets_wait_for(&view.rollout, &sets, &aim.canary, &stable);
        if let Some(set) = waits.filter(|_| leaf == Leaf::Istio) {
            self.because(format!("subsets wait until all of {} is available", set.name));
            return Ok(Telling::Waits);
        }
        self.send(leaf, Move::Hashes { canary: &aim.canary, stable: &stable, additional: &aim.additional })?;
        self.send(leaf, weights)?;
        self.record_weights(aim, &stable);
        Ok(Telling::Done)
    }

    fn send(&mut self, leaf: Leaf, step: Move<'_>) -> Result<(), Problem> {
        let mut told = Vec::new();
        let done = route::write(leaf, &self.view.rollout, &mut self.target.routes, step, &mut told);
        for told in told {
            if told.warning {
                self.warn(told.reason, told.message);
            } else {
                self.say(told.reason, told.message);
            }
        }
        done
    }

    /// Whether the stable version has the pods for this share.
    fn stable_carries(&self, weight: i32) -> bool {
        let Some((canary, _)) = routing(self.view) else { return false };
        // What is lost carries nothing, whatever goes there: more for the new version can only be better, unless it was given up.
        let Some(stable) = self.view.stable_set() else { return self.view.has_lost_stable() && !self.is_aborted() };
        let needed = share(weight, self.replicas(), self.max_weight());
        let stable = ReplicaSet { available: stable.staying(), ..stable.info.clone() };
        stable.available >= needed
            || replicas::is_ready(canary.replica_progress_threshold.as_ref(), Some(&stable), needed)
    }

    /// Status says where traffic goes.
    fn record_weights(&mut self, aim: &Aim, stable: &str) {
        let Some((canary, _)) = routing(self.view) else { return };
        let destination = |weight: i32, service: &str, hash: &str| WeightDestination {
            weight,
            service_name: service.to_owned(),
            pod_template_hash: hash.to_owned(),
        };
        let additional = aim.additional.iter().fold(0_i32, |sum, other| sum.saturating_add(other.weight));
        let rest = self.max_weight().saturating_sub(aim.weight).saturating_sub(additional);
        let weights = TrafficWeights {
            canary: destination(aim.weight, &canary.canary_service, &aim.canary),
            stable: destination(rest, &canary.stable_service, stable),
            additional: aim.additional.clone(),
            verified: None,
        };
        let recorded = self.recorded();
        let plain = |weights: &TrafficWeights| TrafficWeights { verified: None, ..weights.clone() };
        if recorded.map(plain).as_ref() == Some(&weights) {
            return;
        }
        let told = message::traffic_weight_updated(&change(recorded, &weights));
        self.say(reason::TRAFFIC_WEIGHT_UPDATED, told);
        self.next.canary.weights = Some(weights);
    }

    /// Takes in what the load balancer says of the weights. What was told in this pass it was not asked about yet.
    fn verify(&mut self, leaf: Leaf, aim: &Aim) -> ControlFlow<()> {
        let view = self.view;
        let recorded = self.recorded().map(|weights| (&weights.canary, &weights.stable));
        let is_as_asked =
            self.next.canary.weights.as_ref().map(|weights| (&weights.canary, &weights.stable)) == recorded;
        let verified = match (leaf, view.verification) {
            (Leaf::Gateway, _) => self.accepted(aim),
            (Leaf::Alb, Verification::NotAsked) => {
                (self.next.alb, self.next.albs) = (None, Vec::new());
                None
            }
            (Leaf::Alb, Verification::Agrees) => Some(is_as_asked),
            (Leaf::Alb, Verification::Differs) => {
                self.because(format!("the load balancer does not send {} to the new version yet", aim.weight));
                Some(false)
            }
            (
                Leaf::Istio | Leaf::Nginx | Leaf::Smi | Leaf::Ambassador | Leaf::AppMesh | Leaf::Traefik | Leaf::Apisix,
                _,
            ) => return ControlFlow::Continue(()),
        };
        if let Some(weights) = &mut self.next.canary.weights {
            weights.verified = verified;
        }
        if verified == Some(false) {
            self.wake_at(end(view.now, ASK_AGAIN));
            if aim.weight == self.max_weight() && is_as_asked {
                // At the very end old pods would go next.
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether the routes say that their gateways have taken over the weights, as far as they say anything. What was written
    /// in this pass nobody can have seen; and a gateway that never says anything does not stop an update for ever.
    fn accepted(&mut self, aim: &Aim) -> Option<bool> {
        let view = self.view;
        if !wants_verified_weight(&view.rollout, aim.weight) {
            return None;
        }
        let weights = Move::Weights { canary: aim.weight, additional: &aim.additional };
        let before = self.recorded().and_then(|weights| weights.verified);
        match route::verify(Leaf::Gateway, &view.rollout, &view.routes, weights) {
            Accepted::NotAsked => None,
            Accepted::Yes(None) => Some(true),
            Accepted::Yes(Some(what)) => {
                if before != Some(true) {
                    self.warn(reason::WEIGHT_VERIFY_ERROR, what);
                }
                Some(true)
            }
            Accepted::NotYet(what) => {
                let progressing = conditions::find(&view.rollout.status.conditions, condition::PROGRESSING);
                let since: Option<Timestamp> = progressing.map(|progressing| progressing.last_update_time.into());
                if since.is_some_and(|since| end(since, ACCEPTED_WITHIN) > view.now) {
                    self.because(format!("waits until the routes are accepted: {what}"));
                    return Some(false);
                }
                if before == Some(false) {
                    self.warn(reason::WEIGHT_VERIFY_ERROR, format!("goes on although {what}"));
                }
                None
            }
        }
    }

    /// What status says of where traffic goes.
    fn recorded(&self) -> Option<&'v TrafficWeights> {
        self.view.rollout.status.canary.weights.as_ref()
    }

    fn max_weight(&self) -> i32 {
        limits::max_weight(&self.view.rollout)
    }

    pub(super) fn with_sets<T>(&self, ask: impl FnOnce(&Sets<'_>) -> T) -> T {
        let view = self.view;
        let others: Vec<ReplicaSet> = view.others().map(|set| set.info.clone()).collect();
        let info = |set: Option<&'v Set>| set.map(|set| &set.info);
        ask(&Sets { new: info(view.new_set()), stable: info(view.stable_set()), others: &others })
    }

    /// Whether the canary's destination may lead to this version: nothing goes there, it leads there already, or the
    /// version has the pods for all that does.
    pub(super) fn may_repoint(&self, set: &Set) -> bool {
        let Some(canary) = self.recorded().map(|weights| &weights.canary) else { return true };
        let needed = replicas::for_weight(self.replicas(), canary.weight, self.max_weight());
        canary.weight == 0 || set.info.hash == canary.pod_template_hash || i64::from(set.staying()) >= needed
    }

    /// The Services that change places: until it is promoted, the canary's leads to the new version, pods or not. The stable
    /// one's leads to the stable version since it was the canary's; somebody may have created it again since.
    pub(super) fn ping_pong_services(&mut self) {
        let view = self.view;
        if view.rollout.spec.strategy.canary.as_ref().is_none_or(|canary| canary.ping_pong.is_none()) {
            return;
        }
        let services = Services::of(&view.rollout);
        self.ensure(services.stable, view.stable_set());
        let Some(new) = view.new_set().filter(|_| !is_fully_promoted(&view.rollout.status)) else { return };
        if self.may_repoint(new) {
            self.repoint(services.canary, &new.info.hash);
        }
    }

    /// Which of the two Services is the stable one after a promotion: the other.
    pub(super) fn next_ping_pong(&self) -> Option<&'static str> {
        self.view.rollout.spec.strategy.canary.as_ref()?.ping_pong.as_ref()?;
        let is_ping = self.view.rollout.status.canary.stable_ping_pong == PING;
        Some(if is_ping { PONG } else { PING })
    }

    /// A size of the new version that its traffic allows: while that is on its way down, pods stay for what is left of it.
    pub(super) fn held_by_traffic(&self, size: i32) -> i32 {
        let view = self.view;
        let (Some(new), Some((canary, _))) = (view.new_set(), routing(view)) else { return size };
        if view.new == view.stable || view.has_lost_stable() && !self.is_aborted() {
            // Also while status is still about another one.
            return self.replicas();
        }
        let weights = self.next.canary.weights.as_ref().map(|weights| &weights.canary);
        let Some(weight) = weights.filter(|canary| new.info.hash == canary.pod_template_hash) else { return size };
        if canary.replica_progress_threshold.is_some() || step::canary_scale(&view.rollout).is_some() {
            return size;
        }
        let needed = replicas::for_weight(self.replicas(), weight.weight, self.max_weight());
        let needed = i32::try_from(needed).unwrap_or(i32::MAX).min(new.info.desired);
        size.max(needed)
    }

    /// Old versions behind a router: nothing goes to them, so they go once nothing refers to them. The one that was stable
    /// last stays for its delay.
    pub(super) fn routed_others(&mut self) -> Scaled {
        let view = self.view;
        let dynamic = routing(view).is_some_and(|(canary, _)| canary.dynamic_stable_scale);
        let available: i64 = view.sets.iter().map(|set| i64::from(set.counted().available)).sum();
        let mut spare = available - i64::from(self.replicas()) + i64::from(limits::max_unavailable(&view.rollout));
        let mut old: Vec<&Set> = view.others().filter(|set| set.info.desired > 0).collect();
        old.sort_by_key(|set| std::cmp::Reverse(set.revision()));
        let (mut scaled, mut delayed) = (Scaled::No, 0);
        for set in old {
            if self.is_referenced(set) {
                self.because(format!("{} stays: it is still referred to", set.info.name));
                continue;
            }
            // Pods that are not available serve nobody, and waiting for them could last for ever.
            let mut size = set.info.desired.min(set.info.available);
            if spare > 0 {
                let was_stable = is_fully_promoted(&view.rollout.status) || set.info.has_scale_down_deadline();
                let kept = if was_stable && !dynamic { self.size_in_delay(set, size, &mut delayed) } else { 0 };
                size = size.min(kept);
                spare -= i64::from(set.info.desired - size);
            }
            if self.scale(set, size) == Scaled::Yes {
                scaled = Scaled::Yes;
            }
        }
        scaled
    }
}

impl Pass<'_> {
    /// Status as health is judged by it. Old pods that a router keeps traffic from, and those of a version that is being
    /// left, make up for none that the promoted version lacks.
    pub(super) fn judged<'s>(&self, status: &'s RolloutStatus) -> Cow<'s, RolloutStatus> {
        let available = self.view.new_set().map_or(0, |new| new.info.available);
        let lacks = available < self.replicas() && status.available_replicas > available;
        if routing(self.view).is_some() && is_fully_promoted(status) && lacks {
            return Cow::Owned(RolloutStatus { available_replicas: available, ..status.clone() });
        }
        Cow::Borrowed(status)
    }
}

/// How a Rollout's traffic is routed, if it is.
fn routing(view: &View) -> Option<(&CanaryStrategy, &RolloutTrafficRouting)> {
    let canary = view.rollout.spec.strategy.canary.as_ref()?;
    Some((canary, canary.traffic_routing.as_ref()?))
}

/// `whole · part / of`, rounded down; nothing of nothing.
fn share(whole: i32, part: i32, of: i32) -> i32 {
    let share = (i64::from(whole) * i64::from(part)).checked_div(of.into()).unwrap_or_default();
    share.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// What changed, in the words of the event.
fn change(before: Option<&TrafficWeights>, after: &TrafficWeights) -> String {
    let Some(before) = before else { return format!("to {}", after.canary.weight) };
    let mut changes = Vec::new();
    if before.canary.weight != after.canary.weight {
        changes.push(format!("from {} to {}", before.canary.weight, after.canary.weight));
    }
    if before.additional != after.additional {
        let shown = after
            .additional
            .iter()
            .map(|other| format!("{{{} {} {}}}", other.weight, other.service_name, other.pod_template_hash));
        changes.push(format!("additional: [{}]", shown.collect::<Vec<_>>().join(" ")));
    }
    changes.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kubernetes::value::Value, model::hash, rollout::Seen, value};

    /// A canary of four at the first of its steps, 25 and 75 with a pause after each, behind a load balancer: pods available
    /// of the stable and of the new version, the recorded weight, and what else is so.
    fn view(stable: i64, new: i64, weight: Option<i64>, canary: &Value, status: &Value) -> View {
        let set = |hash: &str, revision: &str, size: i64| {
            value!({"metadata": {"name": format!("web-{hash}"), "namespace": "shop", "uid": hash,
                    "labels": {"app": "web", "rollouts-pod-template-hash": hash},
                    "annotations": {"rollout.argoproj.io/revision": revision},
                    "creationTimestamp": format!("2026-01-01T00:00:0{revision}Z"),
                    "ownerReferences": [{"uid": "ro", "controller": true}]},
                "spec": {"replicas": size, "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": format!("app:{hash}")}]}}},
                "status": {"replicas": size, "readyReplicas": size, "availableReplicas": size}})
        };
        let mut rollout = value!({"metadata": {"name": "web", "namespace": "shop", "uid": "ro", "generation": 2},
            "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "app:b"}]}},
                "strategy": {"canary": {"stableService": "stable", "canaryService": "canary",
                    "trafficRouting": {"alb": {"ingress": "ing", "servicePort": 80}},
                    "steps": [{"setWeight": 25}, {"pause": {}}, {"setWeight": 75}, {"pause": {}}]}}},
            "status": {"stableRS": "a", "currentStepIndex": 1}});
        let own = hash::pod_template(rollout.at(&["spec", "template"]).unwrap(), None);
        rollout.set_at(&["status", "currentPodHash"], own.clone());
        if let Some(weight) = weight {
            let canary = value!({"weight": weight, "podTemplateHash": own.as_str()});
            let recorded = value!({"canary": canary, "stable": {"weight": 100 - weight}});
            rollout.set_at(&["status", "canary", "weights"], recorded);
        }
        for (path, fields) in [(&["spec", "strategy", "canary"][..], canary), (&["status"], status)] {
            for (key, value) in fields.as_map().unwrap().iter() {
                rollout.set_at(&[path, &[key.as_str()]].concat(), value.clone());
            }
        }
        let sets = vec![set("a", "1", stable), set(&own, "2", new)];
        View::of(&Seen { rollout, sets, now: "2026-01-01T00:01:00Z".parse().unwrap(), ..Seen::default() })
    }

    #[test]
    fn traffic_follows_the_pods_that_are_there() {
        let (plain, dynamic) = (value!({}), value!({"dynamicStableScale": true}));
        let at = |index: i64| value!({"currentStepIndex": index});
        let aborted = value!({"abort": true, "currentStepIndex": 0});
        let full = value!({"promoteFull": true});
        for (stable, new, recorded, canary, status, expected) in [
            (4, 1, Some(25), &plain, &at(1), 25),
            // The next step's pods are not there, and then they are.
            (4, 1, Some(25), &plain, &at(2), 25),
            (4, 3, Some(25), &plain, &at(2), 75),
            // Skipped by hand: no pods, some, enough.
            (4, 0, Some(0), &plain, &at(3), 0),
            (4, 1, Some(0), &plain, &at(3), 0),
            (4, 3, Some(0), &plain, &at(3), 75),
            (4, 4, Some(75), &plain, &at(4), 100),
            // Down again: the weight first.
            (4, 3, Some(75), &value!({"steps": [{"setWeight": 75}, {"setWeight": 10}]}), &at(1), 10),
            (4, 1, Some(25), &plain, &aborted, 0),
            // A stable version that shrank gets back what it carries.
            (1, 3, Some(75), &dynamic, &aborted, 75),
            (3, 3, Some(75), &dynamic, &aborted, 25),
            (4, 1, Some(25), &dynamic, &aborted, 0),
            (1, 3, None, &dynamic, &aborted, 0),
            (4, 1, Some(25), &plain, &full, 25),
            (3, 2, Some(25), &dynamic, &full, 50),
        ] {
            let view = view(stable, new, recorded, canary, status);
            let weight = Pass::new(&view).aim().weight;
            assert_eq!(weight, expected, "{stable} and {new} pods, {recorded:?}, {canary} {status}");
        }
        let mut promoted = view(4, 4, Some(75), &plain, &at(4));
        promoted.rollout.status.stable_rs = promoted.rollout.status.current_pod_hash.clone();
        promoted.stable = promoted.new;
        assert_eq!(Pass::new(&promoted).aim().weight, 0);
    }

    #[test]
    fn another_version_gets_nothing_before_the_last_one_has_nothing() {
        let weights = |weight: i64| value!({"canary": {"weights": {"canary": {"weight": weight, "podTemplateHash": "c"}, "stable": {"weight": 100 - weight}}}});
        for (new, weight, may, expected) in [(1, 75, false, 0), (3, 75, true, 25), (1, 25, true, 25), (1, 0, true, 25)]
        {
            let view = view(4, new, None, &value!({}), &weights(weight));
            let pass = Pass::new(&view);
            assert_eq!(pass.may_repoint(view.new_set().unwrap()), may, "{new} pods, {weight}");
            assert_eq!(pass.aim().weight, expected, "{new} pods, {weight}");
        }
    }

    #[test]
    fn a_change_of_weights_is_told_in_the_words_of_argo_rollouts() {
        let weights = |weight: i32| TrafficWeights {
            canary: WeightDestination { weight, ..WeightDestination::default() },
            ..TrafficWeights::default()
        };
        let with = |weight: i32| TrafficWeights {
            additional: vec![WeightDestination { weight: 5, service_name: "e".into(), pod_template_hash: "h".into() }],
            ..weights(weight)
        };
        for (before, after, expected) in [
            (None, weights(10), "to 10"),
            (Some(weights(10)), weights(20), "from 10 to 20"),
            (Some(weights(10)), weights(10), ""),
            (Some(weights(10)), with(20), "from 10 to 20, additional: [{5 e h}]"),
            (Some(with(10)), weights(10), "additional: []"),
        ] {
            assert_eq!(change(before.as_ref(), &after), expected);
        }
    }
}
