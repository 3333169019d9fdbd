//! The gauges of Rollouts, read off the objects: the phase in the words of Argo's metrics, and the sizes.

use super::text::{Family, Kind, Labels, Page};
use crate::{
    api::{
        self, Rollout,
        constants::{condition, reason},
    },
    kubernetes::value::Value,
    model::{conditions, limits},
};

/// The words of the deprecated gauge, which has a series for each of them.
const PHASES: [&str; 6] = ["Completed", "Progressing", "Paused", "Timeout", "Error", "Abort"];

/// The gauges of these Rollouts.
pub(super) fn gauges<'a>(rollouts: impl Iterator<Item = &'a Value>, page: &mut Page) {
    let mut info = Vec::new();
    let mut phases = Vec::new();
    let mut sizes: [Vec<(Labels, f64)>; 4] = Default::default();
    for object in rollouts {
        let rollout: Rollout = api::read(object).object;
        let metadata = &rollout.metadata;
        let of = || vec![("namespace", metadata.namespace.clone()), ("name", metadata.name.clone())];
        let (strategy, router) = strategy(&rollout);
        let phase = phase(&rollout);
        let mut labels = of();
        labels.extend([
            ("strategy", strategy.to_owned()),
            ("traffic_router", router.to_owned()),
            ("phase", phase.to_owned()),
        ]);
        info.push((labels, 1.0));
        for word in PHASES {
            let mut labels = of();
            labels.extend([("strategy", strategy.to_owned()), ("phase", word.to_owned())]);
            phases.push((labels, f64::from(u8::from(word == phase))));
        }
        let status = &rollout.status;
        let unavailable = i64::from(status.replicas) - i64::from(status.available_replicas);
        let counts = [
            f64::from(status.available_replicas),
            unavailable as f64,
            f64::from(limits::replicas(&rollout)),
            f64::from(status.updated_replicas),
        ];
        for (size, count) in sizes.iter_mut().zip(counts) {
            size.push((of(), count));
        }
    }
    page.samples(Family::new("rollout_info", "Information about rollout.", Kind::Gauge), info);
    let families = [
        ("rollout_info_replicas_available", "The number of available replicas per rollout."),
        ("rollout_info_replicas_unavailable", "The number of unavailable replicas per rollout."),
        ("rollout_info_replicas_desired", "The number of desired replicas per rollout."),
        ("rollout_info_replicas_updated", "The number of updated replicas per rollout."),
    ];
    for ((name, help), samples) in families.into_iter().zip(sizes) {
        page.samples(Family::new(name, help, Kind::Gauge), samples);
    }
    let help = "Information on the state of the rollout (DEPRECATED - use rollout_info)";
    page.samples(Family::new("rollout_phase", help, Kind::Gauge), phases);
}

/// The phase as the metrics have always called it.
fn phase(rollout: &Rollout) -> &'static str {
    let conditions = &rollout.status.conditions;
    if conditions::find(conditions, condition::INVALID_SPEC).is_some() {
        return "InvalidSpec";
    }
    let progressing = conditions::find(conditions, condition::PROGRESSING);
    match progressing.map(|condition| condition.reason.as_str()).unwrap_or_default() {
        reason::NEW_REPLICA_SET_AVAILABLE => "Completed",
        reason::ROLLOUT_PAUSED => "Paused",
        reason::REPLICA_SET_CREATE_ERROR => "Error",
        reason::TIMED_OUT => "Timeout",
        reason::ROLLOUT_ABORTED => "Abort",
        _ => "Progressing",
    }
}

/// The strategy and the router; of several routers the last in this order.
fn strategy(rollout: &Rollout) -> (&'static str, &'static str) {
    let strategy = &rollout.spec.strategy;
    let Some(canary) = strategy.canary.as_ref().filter(|_| strategy.blue_green.is_none()) else {
        return (if strategy.blue_green.is_some() { "blueGreen" } else { "none" }, "");
    };
    let router = canary.traffic_routing.as_ref().and_then(|routing| {
        let routers = [
            (routing.app_mesh.is_some(), "AppMesh"),
            (routing.smi.is_some(), "SMI"),
            (routing.nginx.is_some(), "Nginx"),
            (routing.istio.is_some(), "Istio"),
            (routing.ambassador.is_some(), "Ambassador"),
            (routing.alb.is_some(), "ALB"),
        ];
        routers.into_iter().find(|(is_set, _)| *is_set).map(|(_, name)| name)
    });
    ("canary", router.unwrap_or_default())
}
