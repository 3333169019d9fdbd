//! Where a canary stands in its steps, and what of them is in force there.
//!
//! Never moves: an index past the end means that all steps are done, and one that a person wrote is taken as it is.

use crate::{
    api::{CanaryStep, Rollout, SetCanaryScale},
    model::{
        codec,
        limits::{self, AbortDelay},
        replica_set::ReplicaSet,
    },
};

/// A place in a canary's steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position<'a> {
    /// The index as recorded; 0 if nothing is.
    pub index: i32,
    /// The step there; `None` when all are done.
    pub step: Option<&'a CanaryStep>,
    /// The steps up to and including it; all when all are done.
    pub so_far: &'a [CanaryStep],
}

/// Where a canary stands; `None` if it has no steps.
pub fn position(rollout: &Rollout) -> Option<Position<'_>> {
    let steps = rollout.spec.strategy.canary.as_ref().map(|canary| canary.steps.as_slice()).unwrap_or_default();
    if steps.is_empty() {
        return None;
    }
    let index = rollout.status.current_step_index.unwrap_or_default();
    // Nobody but a person writes a negative index; the first step is the nearest.
    let place = usize::try_from(index).unwrap_or_default();
    let step = steps.get(place);
    Some(Position { index, step, so_far: &steps[..steps.len().min(place.saturating_add(1))] })
}

/// Whether this version of the engine can take a step.
pub fn is_supported(step: &CanaryStep) -> bool {
    step.plugin.is_none()
}

/// Where a new update begins.
pub fn first_index(rollout: &Rollout) -> Option<i32> {
    position(rollout).map(|_| 0)
}

/// Whether the analysis beside the steps is not to begin yet.
pub fn is_before_background_analysis(rollout: &Rollout) -> bool {
    let analysis = rollout.spec.strategy.canary.as_ref().and_then(|canary| canary.analysis.as_ref());
    let start = analysis.and_then(|analysis| analysis.starting_step);
    matches!((start, position(rollout)), (Some(start), Some(position)) if position.index < start)
}

/// The weight that the steps so far have set: none before the first that sets one, all when they are done, none after an
/// abort.
pub fn set_weight(rollout: &Rollout) -> i32 {
    if codec::abort(&rollout.status).is_on() {
        return 0;
    }
    match position(rollout) {
        Some(Position { step: Some(_), so_far, .. }) => {
            so_far.iter().rev().find_map(|step| step.set_weight).unwrap_or_default()
        }
        Some(Position { step: None, .. }) | None => limits::max_weight(rollout),
    }
}

/// The size that steps have given the canary apart from its weight, if one is in force: the last one so far, unless that
/// follows the weight. Only with a router. After an abort only when the canary is to stay up.
pub fn canary_scale(rollout: &Rollout) -> Option<&SetCanaryScale> {
    rollout.spec.strategy.canary.as_ref()?.traffic_routing.as_ref()?;
    if codec::abort(&rollout.status).is_on() && limits::abort_scale_down_delay(rollout) != AbortDelay::Never {
        return None;
    }
    let Position { step: Some(_), so_far, .. } = position(rollout)? else { return None };
    let last = so_far.iter().rev().find_map(|step| step.set_canary_scale.as_ref())?;
    (!last.match_traffic_weight).then_some(last)
}

/// What the size of a canary follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// A number of pods.
    Replicas(i32),
    /// A weight.
    Weight(i32),
}

/// What the size of the canary follows now. Without ReplicaSets an abort cannot go back step by step.
pub fn share(rollout: &Rollout, new: Option<&ReplicaSet>, stable: Option<&ReplicaSet>) -> Share {
    let status = &rollout.status;
    if codec::promotion(status).is_full() || status.stable_rs.is_empty() || status.current_pod_hash == status.stable_rs
    {
        return Share::Weight(limits::max_weight(rollout));
    }
    match canary_scale(rollout).map(|scale| (scale.replicas, scale.weight)) {
        Some((Some(replicas), _)) => Share::Replicas(replicas),
        Some((None, Some(weight))) => Share::Weight(weight),
        Some((None, None)) | None => Share::Weight(desired_weight(rollout, new, stable)),
    }
}

/// The weight the canary is to have.
///
/// After an abort with a stable version that shrank as it lost traffic, traffic goes back only as fast as the stable
/// version grows: to the last weight of the steps that needs fewer pods than the canary still has to carry.
pub fn desired_weight(rollout: &Rollout, new: Option<&ReplicaSet>, stable: Option<&ReplicaSet>) -> i32 {
    let canary = rollout.spec.strategy.canary.as_ref();
    let (true, Some(canary), Some(new), Some(stable)) =
        (codec::abort(&rollout.status).is_on(), canary.filter(|canary| canary.dynamic_stable_scale), new, stable)
    else {
        return set_weight(rollout);
    };
    let (replicas, max) = (limits::replicas(rollout), limits::max_weight(rollout));
    let missing = i64::from(replicas) - i64::from(stable.available);
    // A canary that is told to stay up for a while must not hold the weight up: the weight waits for the stable version
    // alone, or each would wait for the other.
    let carried =
        if limits::abort_scale_down_delay(rollout).is_explicit() { missing } else { missing.max(new.available.into()) };
    let weights = canary.steps.iter().rev().filter_map(|step| step.set_weight);
    let mut below = weights.filter(|weight| super::replicas::for_weight(replicas, *weight, max) < carried);
    below.next().unwrap_or_default()
}

/// The version whose traffic is being taken back, if a Rollout with a shrinking stable version returned to it in the
/// middle of an update: `stable` is wanted again but not yet large enough.
pub fn returning_from<'a>(rollout: &'a Rollout, stable: &ReplicaSet) -> Option<&'a str> {
    let canary = rollout.spec.strategy.canary.as_ref()?;
    let is_promoted = rollout.status.stable_rs == rollout.status.current_pod_hash;
    let weights = rollout.status.canary.weights.as_ref()?;
    let from = weights.canary.pod_template_hash.as_str();
    let applies = is_promoted
        && canary.traffic_routing.is_some()
        && canary.dynamic_stable_scale
        && from != stable.hash.as_str()
        && stable.available < limits::replicas(rollout);
    applies.then_some(from)
}

/// Whether only the stable version matters to where traffic may go: after an abort, or while returning to it.
pub fn is_going_back(rollout: &Rollout, sets: &[ReplicaSet]) -> bool {
    let stable = sets.iter().find(|set| set.hash.as_str() == rollout.status.stable_rs);
    codec::abort(&rollout.status).is_on() || stable.is_some_and(|stable| returning_from(rollout, stable).is_some())
}

/// The version that subsets wait for: without Services, which wait by themselves, a subset leads to a version only once that
/// is whole. A canary that is being left is not waited for.
pub fn subsets_wait_for<'a>(
    rollout: &Rollout,
    sets: &'a [ReplicaSet],
    canary: &str,
    stable: &str,
) -> Option<&'a ReplicaSet> {
    let strategy = rollout.spec.strategy.canary.as_ref()?;
    if !strategy.canary_service.is_empty() || !strategy.stable_service.is_empty() {
        return None;
    }
    let is_left = is_going_back(rollout, sets);
    sets.iter().find(|set| {
        let has_role = !set.hash.is_empty() && (set.hash == stable || set.hash == canary);
        set.desired > 0 && has_role && !(is_left && set.hash == canary) && !set.is_available()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{CanaryStrategy, RolloutTrafficRouting};

    /// A canary of these steps: a weight, or a size behind a `#`, or a pause.
    fn at(steps: &[&str], index: i32) -> Rollout {
        let step = |text: &&str| match text.strip_prefix('#') {
            Some(replicas) => CanaryStep {
                set_canary_scale: Some(SetCanaryScale {
                    replicas: replicas.parse().ok(),
                    match_traffic_weight: replicas == "match",
                    ..SetCanaryScale::default()
                }),
                ..CanaryStep::default()
            },
            None => CanaryStep { set_weight: text.parse().ok(), ..CanaryStep::default() },
        };
        let mut rollout = Rollout::default();
        rollout.spec.strategy.canary = Some(CanaryStrategy {
            steps: steps.iter().map(step).collect(),
            traffic_routing: Some(RolloutTrafficRouting::default()),
            ..CanaryStrategy::default()
        });
        rollout.status.current_step_index = Some(index);
        (rollout.status.stable_rs, rollout.status.current_pod_hash) = ("old".into(), "new".into());
        rollout
    }

    #[test]
    fn the_last_weight_so_far_is_in_force() {
        let steps = ["pause", "10", "pause", "40"];
        for (index, expected) in [(0, 0), (1, 10), (2, 10), (3, 40), (4, 100), (99, 100), (-7, 0)] {
            assert_eq!(set_weight(&at(&steps, index)), expected, "at {index}");
        }
        assert_eq!(set_weight(&at(&[], 0)), 100);
        let mut aborted = at(&steps, 3);
        aborted.status.abort = true;
        assert_eq!(set_weight(&aborted), 0);
    }

    #[test]
    fn a_size_is_in_force_until_it_follows_the_weight_again() {
        let steps = ["#3", "10", "#match", "20"];
        for (index, expected) in [
            (0, Share::Replicas(3)),
            (1, Share::Replicas(3)),
            (2, Share::Weight(10)),
            (3, Share::Weight(20)),
            (4, Share::Weight(100)),
        ] {
            assert_eq!(share(&at(&steps, index), None, None), expected, "at {index}");
        }
    }
}
