//! The Services of a Rollout: which version each should lead to, and when that may change.
//!
//! A Service is moved by the hash in its selector. Never moves one to a version without an available pod, except the
//! preview, which may show nothing for a while.

use std::collections::BTreeMap;

use super::{pass::Pass, replicas, step, templates, view::Service, view::Set};
use crate::{
    api::{
        self, Rollout,
        constants::{annotation, kind, label, message, reason},
    },
    kubernetes::{
        status::FieldError,
        value::{Text, Value},
    },
    model::{
        limits,
        memory::PauseReason,
        problem::Words,
        references::{self, References, ServiceRole},
    },
    route::{self, Routes},
};

/// The Services that a Rollout names, with what they are for, in the order in which they are looked at.
pub fn named(rollout: &Rollout) -> Vec<(ServiceRole, &str)> {
    let strategy = &rollout.spec.strategy;
    let mut named = Vec::new();
    if let Some(strategy) = &strategy.blue_green {
        named.push((ServiceRole::Active, strategy.active_service.as_str()));
        named.push((ServiceRole::Preview, strategy.preview_service.as_str()));
    } else if let Some(strategy) = &strategy.canary {
        named.push((ServiceRole::Stable, strategy.stable_service.as_str()));
        named.push((ServiceRole::Canary, strategy.canary_service.as_str()));
        if let Some(services) = &strategy.ping_pong {
            named.push((ServiceRole::Ping, services.ping_service.as_str()));
            named.push((ServiceRole::Pong, services.pong_service.as_str()));
        }
    }
    named.retain(|(_, name)| !name.is_empty());
    named
}

/// Whether a Service leads to one version of a Rollout, as only a Rollout makes it. Those of Experiments lead to a version, too,
/// and are theirs.
pub fn is_led(service: &Value) -> bool {
    let owners = service.list_at(&["metadata", "ownerReferences"]);
    let is_experiments = owners.iter().any(|owner| {
        owner.str_at(&["kind"]) == Some(kind::EXPERIMENT)
            && owner.get("controller").and_then(Value::as_bool) == Some(true)
    });
    !is_experiments && service.at(&["spec", "selector", label::POD_TEMPLATE_HASH]).is_some_and(|hash| !hash.is_null())
}

/// The Rollout that says it leads a Service; `None` if none does.
pub fn leader(service: &Value) -> Option<&str> {
    service.str_at(&["metadata", "annotations", annotation::MANAGED_BY])
}

/// The Services that a Rollout named before a change and does not name after it.
pub fn abandoned(before: Option<&Value>, after: Option<&Value>) -> Vec<Text> {
    let strategy = |rollout: Option<&Value>| rollout.and_then(|rollout| rollout.at(&["spec", "strategy"])).cloned();
    // Nearly every change is one of status.
    if before.is_none() || strategy(before) == strategy(after) {
        return Vec::new();
    }
    let names = |rollout: Option<&Value>| -> Vec<Text> {
        let rollout: Rollout = rollout.map(|rollout| api::read(rollout).object).unwrap_or_default();
        named(&rollout).iter().map(|(_, name)| Text::from(*name)).collect()
    };
    let kept = names(after);
    names(before).into_iter().filter(|name| !kept.contains(name)).collect()
}

/// The merge patch that gives a Service back to its owner when no Rollout leads it any more: pods of every version again.
///
/// `rollouts` are those of its namespace that may lead it: the [`leader`] if there is one, all otherwise.
pub fn release(service: &Value, rollouts: &[Rollout]) -> Option<Value> {
    let name = service.str_at(&["metadata", "name"])?;
    let is_leader = |rollout: &Rollout| leader(service).is_none_or(|leader| leader == rollout.metadata.name);
    let leads = |rollout: &Rollout| is_leader(rollout) && named(rollout).iter().any(|(_, led)| *led == name);
    if !is_led(service) || rollouts.iter().any(leads) {
        return None;
    }
    let mut patch = Value::object();
    // Of this very Service as it was seen: a Rollout may take it over at any moment.
    for field in ["uid", "resourceVersion"] {
        patch.set_at(&["metadata", field], service.at(&["metadata", field]).cloned().unwrap_or_default());
    }
    if leader(service).is_some() {
        patch.set_at(&["metadata", "annotations", annotation::MANAGED_BY], Value::Null);
    }
    patch.set_at(&["spec", "selector", label::POD_TEMPLATE_HASH], Value::Null);
    Some(patch)
}

/// What is wrong with the objects that a Rollout names, in the words of Argo Rollouts, which stops at a missing one.
pub(super) fn problems(
    rollout: &Rollout,
    services: &BTreeMap<Text, Service>,
    known: &[Value],
    routes: &Routes,
) -> Vec<String> {
    let mut found = References::default();
    for (role, name) in named(rollout) {
        match services.get(name) {
            Some(service) => found.services.push((role, service.object.clone())),
            None => {
                let what = format!("service \"{name}\" not found");
                return vec![Words::Field(FieldError::invalid(role.field(), name, what)).to_string()];
            }
        }
    }
    match templates::gather(rollout, known) {
        Ok(templates) => found.templates = templates,
        Err(missing) => return vec![missing],
    }
    if let Some(missing) = route::missing(rollout, routes) {
        return vec![Words::Field(missing).to_string()];
    }
    route::refer(rollout, routes, &mut found);
    references::check(rollout, &found).argo.iter().map(Words::to_string).collect()
}

impl Pass<'_> {
    /// Leads the Service to the version, and takes it over if nobody has.
    fn switch(&mut self, name: &str, hash: &str) {
        let view = self.view;
        let Some(service) = view.services.get(name) else { return };
        if service.managed && service.hash == hash {
            return;
        }
        let Some(wanted) = self.target.services.get_mut(name) else { return };
        wanted.set_at(&["spec", "selector", label::POD_TEMPLATE_HASH], hash);
        if !service.managed {
            wanted.set_at(&["metadata", "annotations", annotation::MANAGED_BY], view.rollout.metadata.name.as_str());
        }
        self.say(reason::SWITCH_SERVICE, message::switched_service(name, &service.hash, hash));
    }

    /// Leads a Service to a version, whatever pods that has.
    pub(super) fn repoint(&mut self, name: &str, hash: &str) {
        if self.view.services.get(name).is_some_and(|service| service.hash != hash) {
            self.switch(name, hash);
        }
    }

    /// Leads a canary's Service to a version once that can carry it: all of it when the Service is new to us and may have
    /// users already, at least one pod otherwise.
    pub(super) fn ensure(&mut self, name: &str, set: Option<&Set>) {
        let view = self.view;
        let (Some(set), Some(service)) = (set, view.services.get(name)) else { return };
        if service.hash == set.info.hash {
            return;
        }
        // Where no pods are wanted none is waited for: the version before would keep its pods for the Service, and the
        // Service its version for the pods. One that leads to no version may still have other pods to lead to.
        let leads = service.managed && !service.hash.is_empty();
        if leads && self.replicas() == 0 && set.info.desired == 0 {
            return self.switch(name, &set.info.hash);
        }
        if !service.managed && !set.info.is_available() {
            return self.because(format!("service {name} waits until all of {} is available", set.info.name));
        }
        if !set.info.is_partially_available() {
            return self.because(format!("service {name} waits until a pod of {} is available", set.info.name));
        }
        self.switch(name, &set.info.hash);
    }

    /// The Services of a canary.
    pub(super) fn canary_services(&mut self) {
        let view = self.view;
        let Some(strategy) = &view.rollout.spec.strategy.canary else { return };
        self.ensure(&strategy.stable_service, view.stable_set());
        let canary = match &strategy.traffic_routing {
            None if self.is_aborted() => view.stable_set(),
            // It goes back with the traffic.
            Some(_) if self.is_aborted() => None,
            Some(_) | None => view.new_set(),
        };
        let returning = view.stable_set().and_then(|stable| step::returning_from(&view.rollout, &stable.info));
        let waits = canary.is_some_and(|set| !self.may_repoint(set));
        if returning.is_some() || waits {
            return self.because(format!("service {} waits: traffic goes through it", strategy.canary_service));
        }
        self.ensure(&strategy.canary_service, canary);
    }

    /// The preview Service of blue-green: always the version that the specification asks for.
    pub(super) fn preview_service(&mut self) {
        let view = self.view;
        let preview = view.rollout.spec.strategy.blue_green.as_ref().map(|strategy| strategy.preview_service.as_str());
        let (Some(preview), Some(new)) = (preview, view.new_set()) else { return };
        if !preview.is_empty() && !self.is_halted() {
            self.switch(preview, &new.info.hash);
        }
    }

    /// The active Service of blue-green: to the new version once it can carry everything and nothing holds it back, back
    /// to the stable one after an abort.
    pub(super) fn active_service(&mut self) {
        let view = self.view;
        let Some(strategy) = &view.rollout.spec.strategy.blue_green else { return };
        let (Some(new), Some(active)) = (view.new_set(), view.services.get(strategy.active_service.as_str())) else {
            return;
        };
        if self.is_halted() {
            return;
        }
        let is_ready = replicas::is_blue_green_ready(&view.rollout, &new.info, self.active_info())
            && new.is_observed()
            && new.info.is_saturated(limits::replicas(&view.rollout));
        let (status, before) = (&view.rollout.status, self.recorded_active(active));
        if !is_ready {
            self.because(format!("the active service waits until all of {} is available", new.info.name));
            // A first version is waited for; any other is led back to at once.
            let is_known = before == status.blue_green.active_selector || before != new.info.hash;
            if is_known {
                self.lead_to_known(&strategy.active_service, &before);
            }
            return;
        }
        let may_switch =
            self.is_fast_tracked(active) || self.is_blue_green_pause_over() && self.is_pre_promotion_done();
        let hash = if view.memory.abort.is_on() {
            Text::from(status.stable_rs.as_str())
        } else if may_switch {
            new.info.hash.clone()
        } else {
            before
        };
        self.lead_to_known(&strategy.active_service, &hash);
    }

    /// Leads the active Service to a version, if there is one to lead to, and records it.
    fn lead_to_known(&mut self, name: &str, hash: &str) {
        if !hash.is_empty() {
            self.switch(name, hash);
            hash.clone_into(&mut self.next.blue_green.active_selector);
        }
    }

    /// The version that the active Service is to lead to until something is decided: the one that a pass last led it to, if
    /// that is still there. What somebody else wrote into the Service approves nothing.
    fn recorded_active(&self, active: &Service) -> Text {
        let status = &self.view.rollout.status;
        if let Some(active) = self.view.set_of(&status.blue_green.active_selector) {
            return active.info.hash.clone();
        }
        if status.blue_green.active_selector.is_empty() && !active.hash.is_empty() {
            return active.hash.clone();
        }
        let stable = self.view.stable_set().filter(|stable| !self.is_first_switch() && stable.info.available > 0);
        stable.map(|stable| stable.info.hash.clone()).unwrap_or_default()
    }

    /// Whether the active Service never led to a version, and nothing else is recorded as stable that a person would have to
    /// approve the replacement of. By history, not by what the Service says today: whoever creates it again approves nothing.
    pub(super) fn is_first_switch(&self) -> bool {
        let (status, strategy) = (&self.view.rollout.status, &self.view.rollout.spec.strategy);
        let is_manual = strategy.blue_green.as_ref().is_some_and(|own| own.auto_promotion_enabled == Some(false));
        let is_other = self.view.new_set().is_some_and(|new| new.info.hash.as_str() != status.stable_rs);
        status.stable_rs.is_empty() || status.blue_green.active_selector.is_empty() && !(is_manual && is_other)
    }

    /// Whether there is nothing to pause for: a fast rollback, a full promotion, or a Service that leads there already.
    pub(super) fn is_fast_tracked(&self, active: &Service) -> bool {
        self.is_fast_rollback()
            || self.view.memory.promotion.is_full()
            || self.is_first_switch() && active.hash.is_empty()
            || self.leads_to_new(active)
    }

    /// Whether a pass has led the active Service to the new version before, or it led there before any did.
    fn leads_to_new(&self, active: &Service) -> bool {
        let Some(new) = self.view.new_set() else { return false };
        let recorded = self.view.rollout.status.blue_green.active_selector.as_str();
        recorded == new.info.hash.as_str() || self.is_first_switch() && active.hash == new.info.hash
    }

    /// Whether every movement of pods and Services stands still: a person said so, or an analysis did not know.
    pub(super) fn is_halted(&self) -> bool {
        let view = self.view;
        view.rollout.spec.paused || view.memory.hold.since(&PauseReason::InconclusiveAnalysis).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn a_rollout_abandons_services_by_its_strategy_and_by_going() {
        let rollout = |stable: &str| value!({"spec": {"strategy": {"canary": {"stableService": stable, "canaryService": "b"}}}, "status": {}});
        for (before, after, abandoned_) in [
            (None, Some(rollout("a")), vec![]),
            (Some(rollout("a")), Some(rollout("a")), vec![]),
            (Some(rollout("a")), Some(rollout("b")), vec!["a"]),
            (Some(rollout("a")), Some(value!({"spec": {"strategy": {"canary": {}}}})), vec!["a", "b"]),
            (Some(rollout("a")), None, vec!["a", "b"]),
        ] {
            assert_eq!(abandoned(before.as_ref(), after.as_ref()), abandoned_, "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_service_is_given_back_once_no_rollout_leads_it() {
        let service = |leader: Option<&str>, hash: Option<&str>| {
            let mut service = value!({"metadata": {"name": "web", "uid": "u", "resourceVersion": "7"}, "spec": {"selector": {"app": "web"}}});
            if let Some(leader) = leader {
                service.set_at(&["metadata", "annotations", annotation::MANAGED_BY], leader);
            }
            if let Some(hash) = hash {
                service.set_at(&["spec", "selector", label::POD_TEMPLATE_HASH], hash);
            }
            service
        };
        let rollout = |name: &str, service: &str| -> Rollout {
            api::read(
                &value!({"metadata": {"name": name}, "spec": {"strategy": {"canary": {"stableService": service}}}}),
            )
            .object
        };
        let managed = value!({"metadata": {"uid": "u", "resourceVersion": "7", "annotations": {annotation::MANAGED_BY: null}}, "spec": {"selector": {label::POD_TEMPLATE_HASH: null}}});
        let old = value!({"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"selector": {label::POD_TEMPLATE_HASH: null}}});
        for (service, rollouts, patch) in [
            (service(Some("a"), Some("1")), vec![rollout("a", "web")], None),
            (service(Some("a"), Some("1")), vec![rollout("a", "other")], Some(&managed)),
            (service(Some("a"), Some("1")), vec![rollout("b", "web")], Some(&managed)),
            (service(Some("a"), Some("1")), vec![], Some(&managed)),
            (service(None, Some("1")), vec![rollout("b", "web")], None),
            (service(None, Some("1")), vec![rollout("b", "other")], Some(&old)),
            (service(Some("a"), None), vec![], None),
            (service(None, None), vec![], None),
        ] {
            assert_eq!(release(&service, &rollouts).as_ref(), patch, "{service}");
        }
    }
}
