//! What a careful colleague would say about a Rollout that is valid: steps without effect, weights that few pods cannot
//! make, pauses that nobody ends. Never repeats what `model` refuses.

use super::{Notes, rule::Own};
use crate::{
    api::{self, constants},
    kubernetes::value::Value,
    manifest::{Object, place::Step},
    model::weight::Limit,
};

use Step::{Index, Key};

const CANARY: [Step<'static>; 3] = [Key("spec"), Key("strategy"), Key("canary")];

/// Gives advice on a Rollout.
pub fn check(object: &Object, rollout: &api::Rollout, notes: &mut Notes) {
    if rollout.spec.paused {
        let finding =
            notes.say(object, &[Key("spec"), Key("paused")], Own::PausedInManifest, "the Rollout is paused here");
        finding.remedy = "pause it in the cluster instead, or remove the line when it should go on".into();
    }
    if rollout.spec.revision_history_limit == Some(0) {
        let path = [Key("spec"), Key("revisionHistoryLimit")];
        notes.say(object, &path, Own::NoHistory, "no old revision is kept").remedy =
            "keep at least 1 to be able to undo".into();
    }
    hash_labels(object, notes);
    images(object, notes);
    if let Some(canary) = &rollout.spec.strategy.canary {
        aborts(object, canary.abort_scale_down_delay_seconds, "canary", notes);
        steps(object, rollout, canary, notes);
        managed_routes(object, canary, notes);
    }
    if let Some(blue_green) = &rollout.spec.strategy.blue_green {
        aborts(object, blue_green.abort_scale_down_delay_seconds, "blueGreen", notes);
    }
}

fn aborts(object: &Object, delay: Option<i32>, strategy: &'static str, notes: &mut Notes) {
    if delay == Some(0) {
        let path = [Key("spec"), Key("strategy"), Key(strategy), Key("abortScaleDownDelaySeconds")];
        let what = "after an abort the new pods are kept for ever, not removed at once";
        notes.say(object, &path, Own::AbortKeepsCanary, what).remedy = "use 1 to remove them at once".into();
    }
}

fn hash_labels(object: &Object, notes: &mut Notes) {
    let label = constants::label::POD_TEMPLATE_HASH;
    let places: [&[Step<'_>]; 2] = [
        &[Key("spec"), Key("selector"), Key("matchLabels"), Key(label)],
        &[Key("spec"), Key("template"), Key("metadata"), Key("labels"), Key(label)],
    ];
    for path in places {
        if object.place(path.iter().copied()).1 {
            let finding = notes.say_key(object, path, Own::HashLabel, format!("{label} is the controller's label"));
            finding.remedy = "remove it".into();
        }
    }
}

fn images(object: &Object, notes: &mut Notes) {
    for list in ["initContainers", "containers"] {
        for (index, container) in object.value.list_at(&["spec", "template", "spec", list]).iter().enumerate() {
            let Some(image) = container.get("image").and_then(Value::as_str) else { continue };
            let name = image.rsplit('/').next().unwrap_or_default();
            let fixed = image.contains('@') || name.split_once(':').is_some_and(|(_, tag)| tag != "latest");
            if !fixed && !image.is_empty() {
                let path = [Key("spec"), Key("template"), Key("spec"), Key(list), Index(index), Key("image")];
                let what = format!("{image} can be another image tomorrow");
                notes.say(object, &path, Own::ImageTag, what).remedy = "name a version or a digest".into();
            }
        }
    }
}

fn managed_routes(object: &Object, canary: &api::CanaryStrategy, notes: &mut Notes) {
    let Some(routing) = &canary.traffic_routing else { return };
    let used = |name: &str| {
        canary.steps.iter().any(|step| {
            step.set_header_route.as_ref().is_some_and(|route| route.name == name)
                || step.set_mirror_route.as_ref().is_some_and(|route| route.name == name)
        })
    };
    for (index, route) in routing.managed_routes.iter().enumerate() {
        if !used(&route.name) {
            let path =
                [&CANARY[..], &[Key("trafficRouting"), Key("managedRoutes"), Index(index), Key("name")]].concat();
            let what = format!("no step sets the route {}", route.name);
            notes.say(object, &path, Own::ManagedRouteUnused, what).remedy = "remove it, or add the step".into();
        }
    }
}

/// What one step after the other does to the weight.
fn steps(object: &Object, rollout: &api::Rollout, canary: &api::CanaryStrategy, notes: &mut Notes) {
    let routed = canary.traffic_routing.is_some();
    if canary.steps.is_empty() {
        if routed {
            let path = [&CANARY[..], &[Key("trafficRouting")]].concat();
            let what = "without steps all traffic moves at once";
            notes.say_key(object, &path, Own::RoutingWithoutSteps, what).remedy =
                "add steps with setWeight and pause".into();
        }
        return;
    }
    let max = canary.traffic_routing.as_ref().and_then(|routing| routing.max_traffic_weight).unwrap_or(100);
    let pods = (!routed).then(|| BasicCanary::of(rollout, canary));
    let mut weight: Option<i32> = None;
    let mut scaled = false;
    for (index, step) in canary.steps.iter().enumerate() {
        let path = |field: &'static str| [&CANARY[..], &[Key("steps"), Index(index), Key(field)]].concat();
        scaled |= step.set_canary_scale.is_some();
        if let Some(new) = step.set_weight.filter(|new| (0..=max).contains(new)) {
            weigh(object, &path("setWeight"), weight.replace(new), new, max, pods.as_ref(), notes);
        } else if let Some(pause) = &step.pause {
            let waits = pause.duration.is_none();
            if weight.is_none() && !scaled && step.plugin.is_none() {
                let what = "this pause comes before the first setWeight: there is no canary yet";
                notes.say_key(object, &path("pause"), Own::PauseWithoutCanary, what).remedy =
                    "begin with setWeight".into();
            } else if weight == Some(max) && waits {
                let what = "this pause waits for a person while the canary has all traffic already";
                notes.say_key(object, &path("pause"), Own::PauseAtFullWeight, what).remedy =
                    "pause at a lower weight, or give it a duration".into();
            }
        }
    }
    last_step(object, canary, max, notes);
}

/// The end of the steps: what is done anyway.
fn last_step(object: &Object, canary: &api::CanaryStrategy, max: i32, notes: &mut Notes) {
    let last = canary.steps.len() - 1;
    let only_weight =
        |step: &api::CanaryStep| step.set_weight.is_some() && step.pause.is_none() && step.analysis.is_none();
    let before = canary.steps[..last].iter().rev().find_map(|step| step.set_weight);
    if canary.steps[last].set_weight == Some(max) && only_weight(&canary.steps[last]) {
        if before == Some(max) {
            return;
        }
        let path = [&CANARY[..], &[Key("steps"), Index(last), Key("setWeight")]].concat();
        notes
            .say(object, &path, Own::LastWeightFull, "after the last step the canary gets all traffic anyway")
            .remedy = "leave the step out".into();
        return;
    }
    // Steps after the whole weight that look at nothing.
    let Some(full) = canary.steps.iter().position(|step| step.set_weight == Some(max)) else { return };
    let rest = &canary.steps[full + 1..];
    let looks = |step: &api::CanaryStep| {
        step.pause.is_some() || step.analysis.is_some() || step.experiment.is_some() || step.plugin.is_some()
    };
    if !rest.is_empty() && !rest.iter().any(looks) && rest.iter().all(|step| step.set_weight.is_none_or(|w| w == max)) {
        let path = [&CANARY[..], &[Key("steps"), Index(full + 1)]].concat();
        let what = "the canary has all traffic already, and what follows looks at nothing";
        notes.say(object, &path, Own::NothingAfterStep, what).remedy = "leave the remaining steps out".into();
    }
}

fn weigh(
    object: &Object,
    path: &[Step<'_>],
    old: Option<i32>,
    new: i32,
    max: i32,
    pods: Option<&BasicCanary>,
    notes: &mut Notes,
) {
    let before = old.unwrap_or(0);
    if new == before {
        let what = if old.is_none() {
            "the weight is 0 before the first step".to_owned()
        } else {
            format!("the weight is {new} already")
        };
        notes.say(object, path, Own::WeightNoEffect, what).remedy = "leave the step out".into();
        return;
    }
    if new < before {
        let what = format!("the weight goes back from {before} to {new}");
        notes.say(object, path, Own::WeightBackwards, what).remedy = "check the order of the steps".into();
    }
    let Some(pods) = pods.filter(|pods| pods.replicas > 0 && new > 0 && new < max) else { return };
    let (canary, total) = pods.split(new);
    let actual = f64::from(canary) * 100.0 / f64::from(total.max(1));
    if (actual - f64::from(new)).abs() >= 10.0 {
        let what = format!(
            "with {} and without traffic routing {new} % becomes {actual:.0} % ({canary} of {total} pods)",
            if pods.replicas == 1 { "1 replica".to_owned() } else { format!("{} replicas", pods.replicas) },
        );
        let finding = notes.say(object, path, Own::WeightUnreachable, what);
        finding.remedy = "use more replicas, traffic routing, or a weight that the pods can make".into();
    } else if before > 0 && before < max && pods.split(before) == (canary, total) {
        let what = format!("{before} % and {new} % are both {canary} of {total} pods");
        notes.say(object, path, Own::WeightNoEffect, what).remedy = "leave the step out, or use more replicas".into();
    }
}

/// A canary whose weight is the share of its pods.
struct BasicCanary {
    replicas: i32,
    surge: bool,
}

impl BasicCanary {
    fn of(rollout: &api::Rollout, canary: &api::CanaryStrategy) -> BasicCanary {
        let surge = match canary.max_surge.as_ref().map(Limit::of) {
            None => true,
            Some(Limit::Pods(pods)) => pods > 0,
            Some(Limit::Percent(percent)) => percent > 0,
            Some(Limit::Unreadable(_)) => false,
        };
        BasicCanary { replicas: rollout.spec.replicas.unwrap_or(1), surge }
    }

    /// How many pods of how many the canary gets for a weight: the nearest share that these pods can make, where neither
    /// side may be left without any (unless there is only one pod and no room for a second).
    ///
    /// 20 % of 3 with one pod to spare: 1 of 3 is 33 %, 1 of 4 is 25 %, so 1 of 4.
    fn split(&self, weight: i32) -> (i32, i32) {
        let mut best: Option<(f64, i32, i32)> = None;
        let zero_allowed = self.replicas == 1 && !self.surge;
        let mut consider = |canary: i32, total: i32| {
            let off = (f64::from(canary) * 100.0 / f64::from(total) - f64::from(weight)).abs();
            if best.is_none_or(|(least, _, _)| off < least) {
                best = Some((off, canary, total));
            }
        };
        for total in [Some(self.replicas), self.surge.then_some(self.replicas + 1)].into_iter().flatten() {
            let exact = f64::from(total) * f64::from(weight) / 100.0;
            let (up, down) = (exact.ceil() as i32, exact.floor() as i32);
            if up < total || zero_allowed {
                consider(up, total);
            }
            if down != 0 || zero_allowed {
                consider(down, total);
            }
        }
        best.map_or((0, self.replicas), |(_, canary, total)| (canary, total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_made_with_the_pods_there_are() {
        let rows = [
            ((10, true), 10, (1, 10)),
            ((3, true), 20, (1, 4)),
            ((3, false), 20, (1, 3)),
            ((1, true), 20, (1, 2)),
            ((1, false), 20, (0, 1)),
            ((4, true), 50, (2, 4)),
        ];
        for ((replicas, surge), weight, expected) in rows {
            assert_eq!(BasicCanary { replicas, surge }.split(weight), expected, "{replicas} {surge} {weight}");
        }
    }
}
