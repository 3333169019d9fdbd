//! A Rollout that was renamed: its Services are handed over to its successor before it is pruned.
//!
//! A Rollout refuses a Service that another one manages, and the other one is pruned only when everything new is healthy:
//! without this both would wait for ever. The selector of the Service stays as it is, so the pods of the old Rollout serve
//! until the new one has pods of its own. Never touches a Service whose manager git still has.

use std::sync::Arc;

use super::{
    health::Doing,
    id::Id,
    policy::Apply,
    prune::Stale,
    reason::Reason,
    view::{Pair, View},
};
use crate::{
    api::{
        self, Rollout,
        constants::{self, annotation, message},
    },
    kubernetes::value::{Text, Value},
    rollout::services,
};

/// A Service that gets another Rollout to manage it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    /// The Service.
    pub service: Id,
    /// The version it must still have, if it was seen.
    pub version: Option<u64>,
    /// The Rollout that is no longer in git.
    pub from: Text,
    /// The Rollout that git has in its place.
    pub to: Text,
}

impl Handover {
    /// What is done, for people.
    pub fn reason(&self) -> Reason {
        Reason::HandsOver { service: self.service.clone(), from: self.from.clone(), to: self.to.clone() }
    }

    /// The merge patch that does it.
    pub fn patch(&self) -> Value {
        let mut patch = Value::object();
        if let Some(version) = self.version {
            patch.set_at(&["metadata", "resourceVersion"], version.to_string());
        }
        patch.set_at(&["metadata", "annotations", annotation::MANAGED_BY], &self.to);
        patch
    }
}

fn is_rollout(id: &Id) -> bool {
    id.is(constants::GROUP, constants::kind::ROLLOUT)
}

fn names(rollout: &Value) -> Vec<Text> {
    let rollout: Rollout = api::read(rollout).object;
    services::named(&rollout).into_iter().map(|(_, name)| name.into()).collect()
}

/// What is handed over now: the Services of Rollouts that are to be pruned, to the Rollout of the same namespace that names
/// them and is there.
pub fn due(view: &View, prunes: &[Stale], pairs: &[Pair<'_>]) -> Vec<Handover> {
    let mut due: Vec<Handover> = Vec::new();
    for stale in prunes.iter().filter(|stale| is_rollout(&stale.id)) {
        let Some(old) = view.live.get(&stale.id) else { continue };
        let led = names(&old.value);
        let successors = pairs.iter().filter(|pair| {
            let id = &pair.desired.id;
            is_rollout(id)
                && id.namespace == stale.id.namespace
                && pair.ours.is_some()
                && pair.desired.policy.apply != Apply::Never
        });
        for pair in successors {
            let to = &pair.desired.id.name;
            for name in names(&pair.desired.object).into_iter().filter(|name| led.contains(name)) {
                let service = Id::new("", "Service", &stale.id.namespace, &name);
                let known = view.live.get(&service);
                let is_managed = match known {
                    Some(live) => live.annotation(annotation::MANAGED_BY) == Some(&stale.id.name),
                    // It is nobody's of this source: the successor says so.
                    None => refuses(pair, &name),
                };
                let is_new = due.iter().all(|handover| handover.service != service);
                if is_managed && is_new {
                    let version = known.map(|live| live.version());
                    due.push(Handover { service, version, from: stale.id.name.clone(), to: to.clone() });
                }
            }
        }
    }
    due
}

/// Whether a live Rollout says that another one manages this Service.
fn refuses(pair: &Pair<'_>, service: &str) -> bool {
    let words = message::service_managed_elsewhere(service);
    let conditions = pair.live.map(|live| live.value.list_at(&["status", "conditions"])).unwrap_or_default();
    conditions.iter().any(|told| {
        told.str_at(&["status"]) == Some("True") && told.str_at(&["message"]).is_some_and(|told| told.contains(&words))
    })
}

/// A Rollout has not failed because it was not looked at since it got its Services.
pub fn settle(view: &View, due: &[Handover], pairs: &mut [Pair<'_>]) {
    for pair in pairs.iter_mut().filter(|pair| is_rollout(&pair.desired.id) && pair.live.is_some()) {
        let id = &pair.desired.id;
        let waits = names(&pair.desired.object).into_iter().find(|name| {
            let service = Id::new("", "Service", &id.namespace, name);
            let is_its = || view.live.get(&service)?.annotation(annotation::MANAGED_BY).map(|by| *by == id.name);
            let is_handed = due.iter().any(|handover| handover.service == service && handover.to == id.name);
            refuses(pair, name) && (is_handed || is_its() == Some(true))
        });
        if let Some(service) = waits {
            pair.doing = Some(Arc::new(Doing::waiting(format!("takes the Service {service} over"))));
        }
    }
}
