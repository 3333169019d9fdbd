//! The strategy of a Rollout: exactly one, with all that belongs to it.

use super::{analysis, default, given, step, tolerated, tolerated_seconds, traffic};
use crate::{
    api::{self, IntOrString},
    kubernetes::names,
    model::{
        path::At,
        problem::{Code, Notes},
        strategy::{
            AfterAbort, AntiAffinity, BlueGreen, Canary, Metadata, PingPong, Promotion, Services, Strategy, Threshold,
        },
        traffic::{OldPods, Traffic},
        weight::{Limit, int_value},
    },
};

/// Argo Rollouts' words for Services that must differ.
fn same_service(roles: &str) -> String {
    format!("This rollout uses the same service for the {roles} services, but two different services are required.")
}

pub fn parse(wire: &api::RolloutSpec, at: &At, notes: &mut Notes) -> Option<Strategy> {
    // Argo Rollouts names a field that does not exist.
    let named = at.key("strategy");
    match (&wire.strategy.blue_green, &wire.strategy.canary) {
        (None, None) => {
            let missing = "Rollout has missing field '.spec.strategy.canary or .spec.strategy.blueGreen'";
            let remedy = "add strategy.canary (`canary: {}` is a plain rolling update) or strategy.blueGreen";
            notes.argo(at, Code::StrategyMissing, named.required(missing), "there is no strategy", remedy);
            None
        }
        (Some(_), Some(_)) => {
            let words = named.invalid("blueGreen: true canary: true", "Multiple Strategies can not be listed");
            let remedy = "remove one of strategy.canary and strategy.blueGreen";
            notes.argo(at, Code::StrategyAmbiguous, words, "there are two strategies", remedy);
            None
        }
        (Some(strategy), None) => {
            let strategy = blue_green(strategy, wire, &at.silent("blueGreen"), notes);
            strategy.map(Box::new).map(Strategy::BlueGreen)
        }
        (None, Some(strategy)) => {
            let strategy = canary(strategy, wire, &at.silent("canary"), notes);
            strategy.map(Box::new).map(Strategy::Canary)
        }
    }
}

fn blue_green(wire: &api::BlueGreenStrategy, spec: &api::RolloutSpec, at: &At, notes: &mut Notes) -> Option<BlueGreen> {
    let active_at = at.key("activeService");
    if wire.active_service == wire.preview_service {
        let words = active_at.invalid(wire.active_service.as_str(), same_service("active and preview"));
        let what = match wire.active_service.as_str() {
            "" => "there is no active Service".to_owned(),
            name => format!("{name:?} is the active and the preview Service"),
        };
        notes.argo(&active_at, Code::SameService, words, what, "name two different Services");
    } else if wire.active_service.is_empty() {
        let what = "there is no active Service to switch";
        notes.ours(&active_at, Code::ActiveServiceMissing, what, "name the Service that users reach");
    }
    let limit_at = at.key("scaleDownDelayRevisionLimit");
    let history = spec.revision_history_limit.unwrap_or(default::REVISION_HISTORY_LIMIT);
    if let Some(limit) = wire.scale_down_delay_revision_limit.filter(|limit| *limit > history) {
        let detail = "This rollout's revision history limit can not be smaller than the rollout's scale down limit";
        notes.argo(
            &limit_at,
            Code::ScaleDownRevisionLimit,
            limit_at.invalid(limit, detail),
            format!("{limit} old revisions would stay up, but only {history} are kept"),
            format!("lower it to {history} or raise spec.revisionHistoryLimit"),
        );
    }
    let anti_affinity = anti_affinity(wire.anti_affinity.as_ref(), &at.key("antiAffinity"), notes);
    let scale_down = wire.scale_down_delay_seconds.unwrap_or(default::SCALE_DOWN_DELAY_SECONDS);
    let analysis = |wire: &Option<api::RolloutAnalysis>, field: &str, notes: &mut Notes| {
        wire.as_ref().and_then(|wire| analysis::reference(wire, &at.key(field), notes))
    };
    Some(BlueGreen {
        active: wire.active_service.clone(),
        preview: given(&wire.preview_service),
        preview_replicas: wire.preview_replica_count.map(|n| tolerated(n, &at.key("previewReplicaCount"), notes)),
        promotion: promotion(wire, at, notes),
        max_unavailable: limit(wire.max_unavailable.as_ref(), &at.key("maxUnavailable"), notes),
        scale_down_delay: tolerated_seconds(scale_down, &at.key("scaleDownDelaySeconds"), notes),
        scale_down_revision_limit: wire.scale_down_delay_revision_limit.map(|n| tolerated(n, &limit_at, notes)),
        pre_promotion: analysis(&wire.pre_promotion_analysis, "prePromotionAnalysis", notes),
        post_promotion: analysis(&wire.post_promotion_analysis, "postPromotionAnalysis", notes),
        anti_affinity,
        preview_metadata: wire.preview_metadata.as_ref().map(metadata),
        active_metadata: wire.active_metadata.as_ref().map(metadata),
        after_abort: after_abort(wire.abort_scale_down_delay_seconds, at, notes),
    })
}

fn promotion(wire: &api::BlueGreenStrategy, at: &At, notes: &mut Notes) -> Promotion {
    let seconds_at = at.key("autoPromotionSeconds");
    match (wire.auto_promotion_enabled.unwrap_or(true), wire.auto_promotion_seconds) {
        (true, seconds) if seconds > 0 => Promotion::After(super::seconds(seconds)),
        (true, seconds) => {
            tolerated(seconds, &seconds_at, notes);
            Promotion::Automatic
        }
        (false, seconds) => {
            if seconds != 0 {
                let what = format!("{seconds} has no effect, because autoPromotionEnabled is false");
                let remedy = "remove it, or remove autoPromotionEnabled: false";
                notes.ours(&seconds_at, Code::AutoPromotionSeconds, what, remedy);
            }
            Promotion::Manual
        }
    }
}

/// What becomes of the new version's pods after an abort; zero means that they stay.
pub fn after_abort(seconds: Option<i32>, at: &At, notes: &mut Notes) -> AfterAbort {
    match seconds {
        None => AfterAbort::Unsaid,
        Some(0) => AfterAbort::Keep,
        Some(seconds) => {
            AfterAbort::ScaleDownAfter(tolerated_seconds(seconds, &at.key("abortScaleDownDelaySeconds"), notes))
        }
    }
}

fn canary(wire: &api::CanaryStrategy, _: &api::RolloutSpec, at: &At, notes: &mut Notes) -> Option<Canary> {
    let (max_surge, max_unavailable) = limits(wire, at, notes);
    let services = services(wire, at, notes);
    let traffic = match &wire.traffic_routing {
        None => {
            without_traffic(wire, at, notes);
            Some(None)
        }
        Some(routing) => with_traffic(wire, routing, at, notes).map(Some),
    };
    let steps = step::steps(wire, &at.key("steps"), notes);
    let anti_affinity = anti_affinity(wire.anti_affinity.as_ref(), &at.key("antiAffinity"), notes);
    if let Some(routing) = &wire.traffic_routing {
        traffic::check_objects(routing, &at.key("trafficRouting"), notes);
    }
    let analysis =
        wire.analysis.as_ref().and_then(|analysis| analysis::background(analysis, wire, &at.key("analysis"), notes));
    let revision_limit = wire.scale_down_delay_revision_limit;
    let min_pods = wire.min_pods_per_replica_set;
    Some(Canary {
        services,
        steps: steps?,
        traffic: traffic?,
        max_surge,
        max_unavailable,
        analysis,
        anti_affinity,
        canary_metadata: wire.canary_metadata.as_ref().map(metadata),
        stable_metadata: wire.stable_metadata.as_ref().map(metadata),
        scale_down_revision_limit: revision_limit.map(|n| tolerated(n, &at.key("scaleDownDelayRevisionLimit"), notes)),
        min_pods_per_replica_set: min_pods.map(|n| tolerated(n, &at.key("minPodsPerReplicaSet"), notes)),
        progress_threshold: threshold(wire.replica_progress_threshold.as_ref(), at, notes),
    })
}

fn limits(wire: &api::CanaryStrategy, at: &At, notes: &mut Notes) -> (Limit, Limit) {
    let (surge_at, unavailable_at) = (at.key("maxSurge"), at.key("maxUnavailable"));
    let is_zero = |given: &Option<IntOrString>| given.as_ref().is_some_and(|given| argo_number(given) == 0);
    if let (Some(surge), true, true) = (&wire.max_surge, is_zero(&wire.max_surge), is_zero(&wire.max_unavailable)) {
        notes.argo(
            &surge_at,
            Code::SurgeAndUnavailableZero,
            surge_at.invalid_struct(surge, "MaxSurge and MaxUnavailable both can not be zero"),
            "neither may a pod be added nor one removed",
            "let one of maxSurge and maxUnavailable be above zero",
        );
    }
    let surge = limit(wire.max_surge.as_ref(), &surge_at, notes);
    (surge, limit(wire.max_unavailable.as_ref(), &unavailable_at, notes))
}

/// The number that Argo Rollouts' validation sees in a limit. Unlike its arithmetic it reads a text without a percent
/// sign as a plain number; only whether it is zero matters here.
fn argo_number(given: &IntOrString) -> i64 {
    match given {
        IntOrString::String(text) if names::percent(text).is_empty() => {
            text.trim_end_matches('%').parse().unwrap_or(i64::MAX)
        }
        given => int_value(given),
    }
}

fn limit(given: Option<&IntOrString>, at: &At, notes: &mut Notes) -> Limit {
    let Some(given) = given else { return Limit::DEFAULT };
    let limit = Limit::of(given);
    match (&limit, given) {
        (Limit::Unreadable(text), _) => {
            let what = format!("{text:?} is neither a number nor a percentage, and counts as 0");
            notes.ours(at, Code::LimitUnreadable, what, "write a number such as 1 or a percentage such as 25%");
        }
        (Limit::Percent(percent), IntOrString::String(text)) if !text.ends_with('%') => {
            let what = format!("{text:?} means {percent} %, not {percent} pods");
            let remedy = format!("write \"{percent}%\", or {percent} without quotes for that many pods");
            notes.ours(at, Code::PercentWithoutSign, what, remedy);
        }
        (Limit::Pods(_) | Limit::Percent(_), _) => {}
    }
    if let Limit::Pods(number @ ..0) | Limit::Percent(number @ ..0) = limit {
        notes.ours(at, Code::NumberOutOfRange, format!("{number} is below zero"), "use zero or a number above it");
    }
    limit
}

fn services(wire: &api::CanaryStrategy, at: &At, notes: &mut Notes) -> Services {
    let (canary_at, stable_at) = (at.key("canaryService"), at.key("stableService"));
    let (canary, stable) = (&wire.canary_service, &wire.stable_service);
    if !canary.is_empty() && canary == stable {
        let words = stable_at.invalid(stable.as_str(), same_service("stable and canary"));
        let what = format!("{stable:?} is the stable and the canary Service");
        notes.argo(&stable_at, Code::SameService, words, what, "name two different Services");
    }
    let ping_pong = wire.ping_pong.as_ref().map(|services| ping_pong(services, wire, at, notes));
    if needs_services(wire) {
        let detail = "Canary service and Stable service must to be set to use Traffic Routing";
        for (name, at, role) in [(stable, &stable_at, "stable"), (canary, &canary_at, "canary")] {
            if name.is_empty() {
                let what = format!("the router needs a {role} Service");
                let remedy = format!("name the Service that selects the {role} pods");
                notes.argo(at, Code::ServicesMissing, at.invalid("", detail), what, remedy);
            }
        }
    }
    Services { canary: given(canary), stable: given(stable), ping_pong }
}

/// Whether the routers shift traffic between two Services that must be named.
fn needs_services(wire: &api::CanaryStrategy) -> bool {
    let Some(routing) = &wire.traffic_routing else { return false };
    let by_host = routing.istio.as_ref().is_some_and(|istio| istio.destination_rule.is_none());
    (routing.alb.is_some() || by_host) && wire.ping_pong.is_none()
        || routing.smi.is_some()
        || routing.apisix.is_some()
        || routing.ambassador.is_some()
        || routing.nginx.is_some()
        || routing.app_mesh.is_some()
        || routing.traefik.is_some()
}

fn ping_pong(services: &api::PingPongSpec, wire: &api::CanaryStrategy, at: &At, notes: &mut Notes) -> PingPong {
    let (routing_at, ping_pong_at) = (at.key("trafficRouting"), at.key("pingPong"));
    let alb_at = routing_at.key("alb");
    let routing = wire.traffic_routing.as_ref();
    if routing.is_some_and(|r| r.alb.is_none() && r.istio.is_none() && !r.has_plugin()) {
        let detail = "Ping-pong feature works with the ALB, Istio, and plugin-based traffic routers only";
        let words = alb_at.invalid(crate::kubernetes::value::Value::Null, detail);
        let remedy = "use canaryService and stableService instead of pingPong";
        notes.argo(&ping_pong_at, Code::PingPongRouter, words, "this router cannot do ping-pong", remedy);
    }
    let (ping_at, pong_at) = (ping_pong_at.key("pingService"), ping_pong_at.key("pongService"));
    let (ping, pong) = (&services.ping_service, &services.pong_service);
    for (name, at) in [(ping, &ping_at), (pong, &pong_at)] {
        if name.is_empty() {
            let words = at.invalid("", "Ping service and Pong service must to be set to use Ping-Pong feature");
            notes.argo(at, Code::PingPongServices, words, "there is no such Service", "name a Service");
        }
    }
    if ping == pong {
        let words = ping_at.invalid(ping.as_str(), same_service("ping and pong"));
        let what = match ping.as_str() {
            "" => "neither Service is named".to_owned(),
            name => format!("{name:?} is the ping and the pong Service"),
        };
        notes.argo(&ping_at, Code::SameService, words, what, "name two different Services");
    }
    if let Some(alb) = routing.and_then(|routing| routing.alb.as_ref())
        && alb.root_service.is_empty()
    {
        let root_at = alb_at.key("rootService");
        let detail = "Root service field is required for the configuration with ALB and ping-pong feature enabled";
        let remedy = "name the Service that the Ingress has as its backend";
        notes.argo(
            &root_at,
            Code::PingPongRootService,
            root_at.invalid("", detail),
            "there is no root Service",
            remedy,
        );
    }
    PingPong { ping: ping.clone(), pong: pong.clone() }
}

fn without_traffic(wire: &api::CanaryStrategy, at: &At, notes: &mut Notes) {
    if let Some(seconds) = wire.scale_down_delay_seconds {
        let at = at.key("scaleDownDelaySeconds");
        let words = at.invalid(seconds, "Canary scaleDownDelaySeconds can only be used with traffic routing");
        let what = "there is no traffic routing, so old pods are not kept";
        notes.argo(&at, Code::ScaleDownDelayWithoutRouting, words, what, "remove it, or add trafficRouting");
    }
    if wire.dynamic_stable_scale {
        let at = at.key("dynamicStableScale");
        let words = at.invalid(true, "Canary dynamicStableScale can only be used with traffic routing");
        let what = "there is no traffic routing for the stable pods to follow";
        notes.argo(&at, Code::DynamicStableScaleWithoutRouting, words, what, "remove it, or add trafficRouting");
    }
}

fn with_traffic(
    wire: &api::CanaryStrategy,
    routing: &api::RolloutTrafficRouting,
    at: &At,
    notes: &mut Notes,
) -> Option<Traffic> {
    let routing_at = at.key("trafficRouting");
    if wire.scale_down_delay_seconds.is_some() && wire.dynamic_stable_scale {
        let at = at.key("dynamicStableScale");
        let words = at.invalid(true, "Canary dynamicStableScale cannot be used with scaleDownDelaySeconds");
        let what = "stable pods go with the traffic, so there is nothing to delay";
        let remedy = "remove scaleDownDelaySeconds or dynamicStableScale";
        notes.argo(&at, Code::DynamicStableScaleWithDelay, words, what, remedy);
    }
    let delay = wire.scale_down_delay_seconds.unwrap_or(default::SCALE_DOWN_DELAY_SECONDS);
    let max_weight = traffic::max_weight(routing, &routing_at, notes);
    let old_pods = match wire.dynamic_stable_scale {
        true => OldPods::FollowTraffic,
        false => OldPods::StayFor(tolerated_seconds(delay, &at.key("scaleDownDelaySeconds"), notes)),
    };
    Some(Traffic {
        routers: traffic::routers(routing, &routing_at, notes)?,
        managed_routes: traffic::managed_routes(routing, &routing_at, notes),
        max_weight: max_weight?,
        old_pods,
        after_abort: after_abort(wire.abort_scale_down_delay_seconds, at, notes),
    })
}

fn anti_affinity(wire: Option<&api::AntiAffinity>, at: &At, notes: &mut Notes) -> Option<AntiAffinity> {
    let wire = wire?;
    let preferred = &wire.preferred_during_scheduling_ignored_during_execution;
    let required = &wire.required_during_scheduling_ignored_during_execution;
    if preferred.is_some() == required.is_some() {
        let value = format!(
            "antiAffinity.PreferredDuringSchedulingIgnoredDuringExecution: {} \
             antiAffinity.RequiredDuringSchedulingIgnoredDuringExecution: {}",
            preferred.is_some(),
            required.is_some()
        );
        let words = at.invalid(value, "AntiAffinity must have exactly one strategy listed");
        let what = if required.is_some() { "both kinds are given" } else { "no kind is given" };
        let remedy = "keep one of preferredDuringSchedulingIgnoredDuringExecution and \
                      requiredDuringSchedulingIgnoredDuringExecution";
        notes.argo(at, Code::AntiAffinityAmbiguous, words, what, remedy);
    }
    let Some(preferred) = preferred else { return Some(AntiAffinity::Required) };
    let preferred_at = at.silent("preferredDuringSchedulingIgnoredDuringExecution");
    match u8::try_from(preferred.weight) {
        Ok(weight @ 1..=100) => Some(AntiAffinity::Preferred(weight)),
        Ok(_) | Err(_) => {
            let at = preferred_at.key("weight");
            let words = at.invalid(preferred.weight, "AntiAffinity weight must be between 1-100");
            let what = format!("{} is not within 1 to 100", preferred.weight);
            notes.argo(&at, Code::AntiAffinityWeight, words, what, "use a weight from 1 to 100");
            None
        }
    }
}

fn threshold(wire: Option<&api::ReplicaProgressThreshold>, at: &At, notes: &mut Notes) -> Threshold {
    let Some(wire) = wire else { return Threshold::ALL };
    let at = at.key("replicaProgressThreshold");
    let odd = |notes: &mut Notes, field, what: String| {
        let remedy = "use type Percent with 0 to 100, or type Pods with a number of pods";
        notes.ours(&at.key(field), Code::ReplicaProgressThreshold, what, remedy);
    };
    let Ok(value) = u32::try_from(wire.value) else {
        odd(notes, "value", format!("{} is below zero; every pod is waited for", wire.value));
        return Threshold::ALL;
    };
    match wire.r#type.as_str() {
        "Percent" => {
            if value > 100 {
                odd(notes, "value", format!("{value} is above 100"));
            }
            Threshold::Percent(value)
        }
        "Pods" => Threshold::Pods(value),
        other => {
            odd(notes, "type", format!("{other:?} is neither Percent nor Pods; every pod is waited for"));
            Threshold::ALL
        }
    }
}

/// Labels and annotations.
pub fn metadata(wire: &api::PodTemplateMetadata) -> Metadata {
    Metadata { labels: wire.labels.clone(), annotations: wire.annotations.clone() }
}

/// Labels and annotations of a run.
pub fn run_metadata(wire: &api::AnalysisRunMetadata) -> Metadata {
    Metadata { labels: wire.labels.clone(), annotations: wire.annotations.clone() }
}
