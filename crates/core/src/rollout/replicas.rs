//! How large each version of a Rollout is to be.
//!
//! Without a router the split of pods is the split of traffic, and pods move only within what may be missing and what may
//! be too many; with one, sizes follow weights. Never decides when: it is asked in every pass and says what is right now.

use crate::{
    api::{ReplicaProgressThreshold, Rollout, TrafficWeights, WeightDestination, constants::annotation},
    model::{codec, limits, replica_set::ReplicaSet},
};

use super::step::{self, Share};

/// The versions of a Rollout.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sets<'a> {
    /// The one the specification asks for.
    pub new: Option<&'a ReplicaSet>,
    /// The one promoted last; may be the same.
    pub stable: Option<&'a ReplicaSet>,
    /// All others.
    pub others: &'a [ReplicaSet],
}

impl Sets<'_> {
    /// The stable version, if it is not the new one.
    fn other_stable(&self) -> Option<&ReplicaSet> {
        self.stable.filter(|stable| self.new.is_none_or(|new| new.name != stable.name))
    }
}

/// Sizes of the new and the stable version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Of the new version.
    pub new: i32,
    /// Of the stable version.
    pub stable: i32,
}

/// The sizes that the versions of a canary get now: it moves as Argo Rollouts would, and stays where it was to go.
pub fn next(rollout: &Rollout, sets: &Sets<'_>, weights: Option<&TrafficWeights>) -> Sizes {
    match (sets.new, sets.stable) {
        (Some(new), Some(stable)) if !is_routed(rollout) && is_there(rollout, sets) => {
            Sizes { new: new.desired, stable: stable.desired }
        }
        // Nothing was ever routed: everything goes to the stable version.
        (_, Some(_)) if is_routed(rollout) && weights.is_none() => {
            let all = WeightDestination { weight: limits::max_weight(rollout), ..WeightDestination::default() };
            canary(rollout, sets, Some(&TrafficWeights { stable: all, ..TrafficWeights::default() }))
        }
        // The stable version was lost: what was given up does not grow, but there is nothing else that could serve.
        (Some(new), None) if !rollout.status.stable_rs.is_empty() && codec::abort(&rollout.status).is_on() => {
            Sizes { new: limits::replicas(rollout).min(new.desired), stable: 0 }
        }
        _ => canary(rollout, sets, weights),
    }
}

/// The sizes of a canary, by its kind, as Argo Rollouts computes them.
pub fn canary(rollout: &Rollout, sets: &Sets<'_>, weights: Option<&TrafficWeights>) -> Sizes {
    if is_routed(rollout) { routed_canary(rollout, sets, weights) } else { basic_canary(rollout, sets) }
}

fn is_routed(rollout: &Rollout) -> bool {
    rollout.spec.strategy.canary.as_ref().is_some_and(|canary| canary.traffic_routing.is_some())
}

/// The sizes of a canary whose traffic follows its pods: as near to the weight as the limits let it come now.
///
/// First the stable version grows, then the new one, as far as surge leaves room. Old versions go before either of these
/// shrinks; then the one that is to lose pods does, as far as enough stay available.
pub fn basic_canary(rollout: &Rollout, sets: &Sets<'_>) -> Sizes {
    let bounds = Bounds::of(rollout);
    let stable = sets.other_stable();
    let goal = goal(rollout, sets);
    let mut sizes = grow(sets, stable, goal, bounds);
    if sets.others.iter().map(|set| i64::from(set.desired)).sum::<i64>() > 0 {
        return sizes.into();
    }
    let is_growing = sets.new.is_none_or(|new| goal.new >= i64::from(new.desired));
    let counted = |set: Option<&ReplicaSet>, is_drained: bool| set.map_or(0, |set| counted(set, is_drained));
    let carrying = counted(sets.new, !is_growing) + counted(sets.stable, is_growing);
    let spare = carrying - bounds.least;
    if spare <= 0 {
        return sizes.into();
    }
    match (is_growing, stable) {
        (false, _) => {
            let new = drained(sets.new, goal.new, spare, sizes.new);
            (sizes.new, sizes.stable) = within(bounds, (sets.new, new), (sets.stable, sizes.stable));
        }
        (true, Some(stable)) => {
            let left = drained(Some(stable), goal.stable, spare, sizes.stable);
            (sizes.stable, sizes.new) = within(bounds, (Some(stable), left), (sets.new, sizes.new));
        }
        (true, None) => {}
    }
    sizes.into()
}

/// The sizes that a canary without a router is on its way to.
fn goal(rollout: &Rollout, sets: &Sets<'_>) -> Split {
    let replicas = i64::from(limits::replicas(rollout));
    if sets.other_stable().is_none() {
        // There is nobody to share with: the new version gets everything.
        return Split { new: replicas, stable: 0 };
    }
    let weight = match step::share(rollout, sets.new, sets.stable) {
        Share::Weight(weight) => weight,
        Share::Replicas(_) => 0,
    };
    nearest(replicas, weight.into(), limits::max_weight(rollout).into(), limits::max_surge(rollout).into())
}

/// Whether a canary without a router has the sizes it was on its way to. Then it stays there: a pod that is on its way out
/// and still available would otherwise be asked back, at the cost of the stable version, which would then be asked to grow.
fn is_there(rollout: &Rollout, sets: &Sets<'_>) -> bool {
    let goal = goal(rollout, sets);
    let is_at = |set: Option<&ReplicaSet>, goal: i64| set.is_some_and(|set| i64::from(set.desired) == goal);
    is_at(sets.new, goal.new)
        && is_at(sets.other_stable(), goal.stable)
        && sets.others.iter().all(|set| set.desired == 0)
}

/// The sizes that end a blockade, if a canary without a router is in one: pods of an older update serve and cannot be
/// spared, and the stable version has pods that are not available, which take the room that new ones need (L6).
///
/// Its idle pods make room for as many new ones as the pods of older updates are kept for. One pod of it stays if that
/// leaves any room, because it is stable until another version is; it stays away until the older updates are gone.
pub fn blockade(rollout: &Rollout, sets: &Sets<'_>) -> Option<Sizes> {
    let (new, stable) = (sets.new?, sets.other_stable()?);
    let bounds = Bounds::of(rollout);
    let others: i64 = sets.others.iter().map(|set| i64::from(set.desired)).sum();
    let has_given_way = stable.desired == 0 && !stable.note(annotation::GIVES_WAY).is_empty();
    if is_routed(rollout) || others == 0 || idle(stable) == 0 && !has_given_way {
        return None;
    }
    let serving: i64 = [new, stable].into_iter().chain(sets.others).map(|set| counted(set, false)).sum();
    let (now, kept) = (i64::from(new.desired), i64::from(stable.desired));
    // Pods that can go, or are on their way, end it by themselves.
    if serving > bounds.least || idle(new) > 0 {
        return Some(Sizes { new: new.desired, stable: stable.desired });
    }
    let wanted = goal(rollout, sets).new.max(bounds.least - counted(stable, false));
    let excess = (others + wanted + kept - bounds.most).max(0);
    let left = kept - excess.min(idle(stable));
    let left = if left == 0 && kept > 0 && bounds.most - others - 1 > now { 1 } else { left };
    let room = (bounds.most - others - left - now).max(0);
    Some(Split { new: wanted.clamp(now, now + room), stable: left }.into())
}

/// How many of its pods serve nobody.
fn idle(set: &ReplicaSet) -> i64 {
    i64::from(set.desired) - counted(set, false)
}

/// The sizes of the other versions of a canary without a router, in their order: what is left of them serves traffic, so
/// they go as fast as enough pods stay available, the latest revision first.
///
/// Pods that are not available go at once: they serve nobody, and waiting for them could last for ever.
pub fn basic_others(rollout: &Rollout, sets: &Sets<'_>) -> Vec<i32> {
    let available = |set: &ReplicaSet| i64::from(set.available);
    let total: i64 = [sets.new, sets.other_stable()].into_iter().flatten().chain(sets.others).map(available).sum();
    let least = i64::from(limits::replicas(rollout)) - i64::from(limits::max_unavailable(rollout));
    let mut spare = (total - least).max(0);
    let mut sizes: Vec<i32> = sets.others.iter().map(|set| set.desired.min(set.available)).collect();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse((sets.others[*index].revision(), sets.others[*index].created)));
    for index in order {
        let removed = i64::from(sizes[index]).min(spare).max(0);
        spare -= removed;
        sizes[index] -= removed as i32;
    }
    sizes
}

/// How many pods there may be at most, and how many must be available at least.
#[derive(Clone, Copy)]
struct Bounds {
    most: i64,
    least: i64,
}

impl Bounds {
    fn of(rollout: &Rollout) -> Bounds {
        let replicas = i64::from(limits::replicas(rollout));
        let surge = i64::from(limits::max_surge(rollout));
        Bounds { most: replicas + surge, least: replicas - i64::from(limits::max_unavailable(rollout)) }
    }
}

/// Sizes while they are computed: hostile specifications must not overflow.
#[derive(Clone, Copy)]
struct Split {
    new: i64,
    stable: i64,
}

impl From<Split> for Sizes {
    fn from(split: Split) -> Sizes {
        let size = |size: i64| size.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        Sizes { new: size(split.new), stable: size(split.stable) }
    }
}

/// The numbers of pods whose ratio comes nearest to a weight, where one more pod than asked for may help if there is surge.
///
/// A weight between none and all never gets no pod at all, unless there is but one pod and no room for a second. Examples
/// of weight 10 %: 10 pods are split 1 and 9; 5 pods with surge 1 and 5; one pod without surge 0 and 1.
fn nearest(replicas: i64, weight: i64, max: i64, surge: i64) -> Split {
    if replicas == 0 {
        return Split { new: 0, stable: 0 };
    }
    let exact = (replicas * weight) as f64 / max as f64;
    let (up, down) = (exact.ceil() as i64, exact.floor() as i64);
    let zero_allowed = weight == max || weight == 0 || (replicas == 1 && surge == 0);
    // Halfway between two numbers the larger is taken. Floating point decides what is halfway, as it does in Argo Rollouts.
    let halfway = |total: i64| (total as f64 * (weight as f64 / max as f64)).fract().abs() == 0.5;
    let with_down = |total: i64| !halfway(total) && (down != 0 || zero_allowed);
    let candidates = [
        (up < replicas || zero_allowed).then_some((up, replicas)),
        with_down(replicas).then_some((down, replicas)),
        (surge > 0).then_some((up, replicas + 1)),
        (surge > 0 && with_down(replicas + 1)).then_some((down, replicas + 1)),
    ];
    let distance = |(new, total): (i64, i64)| ((new * max) as f64 / total as f64 - weight as f64).abs();
    let best =
        candidates.into_iter().flatten().reduce(|best, next| if distance(next) < distance(best) { next } else { best });
    let (new, total) = best.unwrap_or((0, replicas));
    Split { new, stable: total - new }
}

/// The sizes after growing as far as there is room, the stable version first.
fn grow(sets: &Sets<'_>, stable: Option<&ReplicaSet>, goal: Split, bounds: Bounds) -> Split {
    let desired = |set: Option<&ReplicaSet>| set.map_or(0, |set| i64::from(set.desired));
    let others: i64 = sets.others.iter().map(|set| i64::from(set.desired)).sum();
    let mut room = bounds.most - others - desired(sets.new) - desired(stable);
    let mut grown = |set: Option<&ReplicaSet>, goal: i64| {
        let now = desired(set);
        let added = if set.is_some() { (goal - now).min(room).max(0) } else { 0 };
        room -= added;
        now + added
    };
    Split { stable: grown(stable, goal.stable), new: grown(sets.new, goal.new) }
}

/// How many pods of a version count towards those that must be available. Pods beyond its size are on their way out; of the
/// version that is being drained all count, available or not, or pods that never became available would stop the drain.
fn counted(set: &ReplicaSet, is_drained: bool) -> i64 {
    if is_drained { set.desired.into() } else { set.desired.min(set.available).into() }
}

/// The size of a version that loses pods: no fewer than its goal, and no more of them than can be spared.
fn drained(set: Option<&ReplicaSet>, goal: i64, spare: i64, otherwise: i64) -> i64 {
    let set = set.filter(|set| i64::from(set.desired) > goal);
    set.map_or(otherwise, |set| goal.max(i64::from(set.desired) - spare))
}

/// Brings the sizes of the drained version and its counterpart below the most there may be: the counterpart gives up what
/// is too many, takes back what availability needs, and the drained version gives up the rest.
fn within(bounds: Bounds, drained: (Option<&ReplicaSet>, i64), other: (Option<&ReplicaSet>, i64)) -> (i64, i64) {
    let ((drained, mut size), (other, other_size)) = (drained, other);
    let Some(other) = other else { return (size, other_size) };
    let excess = |a: i64, b: i64| (a + b - bounds.most).max(0);
    let reduced = other_size - excess(size, other_size);
    let available = drained.map_or(0, |set| size.min(set.available.into())) + reduced.min(other.available.into());
    let given_up = (i64::from(other.available) - reduced).max(0);
    let needed = (bounds.least - available).max(0);
    let settled = reduced + given_up.min(needed);
    size -= excess(size, settled);
    (size, settled)
}

/// The sizes of a canary behind a router. The stable version stays whole unless it is to shrink with its traffic; then it
/// keeps what its traffic needs now, and what it will need.
pub fn routed_canary(rollout: &Rollout, sets: &Sets<'_>, weights: Option<&TrafficWeights>) -> Sizes {
    let (replicas, max) = (limits::replicas(rollout), limits::max_weight(rollout));
    let canary = rollout.spec.strategy.canary.as_ref();
    let size = |weight: i32| for_weight(replicas, weight, max);
    let at_least = |size: i64| with_minimum(rollout, size);
    let (new, weight) = match step::share(rollout, sets.new, sets.stable) {
        Share::Replicas(count) => (i64::from(count), 0),
        Share::Weight(weight) => (at_least(size(weight)), weight),
    };
    if !canary.is_some_and(|canary| canary.dynamic_stable_scale) {
        return Split { new, stable: replicas.into() }.into();
    }
    let rest = size(max.saturating_sub(weight));
    let (new, stable) = match weights {
        None => (new, rest),
        // Traffic must have left a version before its pods go.
        Some(weights) if codec::abort(&rollout.status).is_on() => {
            (new.max(size(weights.canary.weight)), rest.max(size(weights.stable.weight)))
        }
        Some(weights) => (new, rest.max(size(weights.stable.weight))),
    };
    Split { new: at_least(new), stable: at_least(stable) }.into()
}

/// How many of `replicas` pods a weight needs. Rounded up: 20 % of 3 replicas must be 1, or traffic would go nowhere.
pub fn for_weight(replicas: i32, weight: i32, max: i32) -> i64 {
    (f64::from(weight) * f64::from(replicas) / f64::from(max)).ceil() as i64
}

/// The least size of a version with traffic, which cannot be more than the Rollout's; no pods stay none.
fn with_minimum(rollout: &Rollout, size: i64) -> i64 {
    let canary = rollout.spec.strategy.canary.as_ref().filter(|canary| canary.traffic_routing.is_some());
    match canary.and_then(|canary| canary.min_pods_per_replica_set) {
        Some(minimum) if size != 0 => size.max(minimum.min(limits::replicas(rollout)).into()),
        Some(_) | None => size,
    }
}

/// Whether a canary's versions have the sizes they are to have, as far as the next step waits for it.
pub fn is_canary_at_size(rollout: &Rollout, sets: &Sets<'_>, weights: Option<&TrafficWeights>) -> bool {
    let Some(strategy) = &rollout.spec.strategy.canary else { return false };
    let sizes = canary(rollout, sets, weights);
    let routed = is_routed(rollout);
    let stable_is_created =
        sets.stable.is_some_and(|stable| stable.desired == sizes.stable && stable.current == sizes.stable);
    is_ready(strategy.replica_progress_threshold.as_ref(), sets.new, sizes.new)
        // A stable version that shrinks is not waited for.
        && (stable_is_created || routed && strategy.dynamic_stable_scale)
        // Without a router old pods serve traffic.
        && (routed || sets.others.iter().map(|set| i64::from(set.available)).sum::<i64>() == 0)
}

/// Whether enough of a version is available for the next step: all of it, or what the threshold asks for.
pub fn is_ready(threshold: Option<&ReplicaProgressThreshold>, set: Option<&ReplicaSet>, size: i32) -> bool {
    let Some(set) = set else { return false };
    match threshold.filter(|threshold| threshold.value >= 0) {
        None => set.desired == size && set.available == size,
        Some(threshold) if threshold.r#type == "Percent" => {
            let percent = f64::from(set.available) / f64::from(size) * 100.0;
            let wanted = f64::from(threshold.value);
            // 29 of 100 pods are 28.999999999999996 %.
            size == 0 || percent >= wanted || (percent - wanted).abs() <= 1e-10
        }
        Some(threshold) => set.available >= threshold.value,
    }
}

/// The size of a new version in blue-green: that of the preview until the switch is authorised, then all.
pub fn blue_green_new(rollout: &Rollout, new: &ReplicaSet, active: Option<&ReplicaSet>) -> i32 {
    let all = limits::replicas(rollout);
    let preview = rollout.spec.strategy.blue_green.as_ref().and_then(|blue_green| blue_green.preview_replica_count);
    let status = &rollout.status;
    let is_switched = active.is_none_or(|active| active.name == new.name);
    let is_paused = rollout.spec.paused || codec::hold(status).first().is_some();
    let is_authorised = !is_paused && status.blue_green.scale_up_preview_check_point;
    match preview {
        Some(_) if is_switched || codec::promotion(status).is_full() => all,
        Some(preview) if new.hash.as_str() != status.current_pod_hash => preview,
        Some(_) if is_authorised => all,
        Some(preview) => preview,
        None => all,
    }
}

/// Whether a new version in blue-green is as large and available as it is to be before the switch.
pub fn is_blue_green_ready(rollout: &Rollout, new: &ReplicaSet, active: Option<&ReplicaSet>) -> bool {
    let size = blue_green_new(rollout, new, active);
    new.desired == size && new.available == size
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::{CanaryStep, CanaryStrategy, IntOrString};

    #[test]
    fn l6_idle_pods_of_a_bad_stable_version_make_room() {
        let mut rollout = Rollout::default();
        rollout.spec.replicas = Some(4);
        let steps = vec![CanaryStep { set_weight: Some(20), ..CanaryStep::default() }];
        rollout.spec.strategy.canary = Some(CanaryStrategy { steps, ..CanaryStrategy::default() });
        (rollout.status.stable_rs, rollout.status.current_pod_hash) = ("bad".into(), "new".into());
        rollout.status.current_step_index = Some(0);
        let set = |name: &str, (desired, available): (i32, i32)| ReplicaSet {
            name: name.into(),
            hash: name.into(),
            desired,
            available,
            ..ReplicaSet::default()
        };
        let sizes = |new, stable| Sizes { new, stable };
        // 5 pods at most, 3 available at least. Bad, others, new: desired and available.
        for (stable, other, new, expected) in [
            ((3, 0), (2, 2), (0, 0), Some(sizes(2, 1))),
            // It goes on from where the first move led.
            ((1, 0), (1, 1), (2, 2), Some(sizes(3, 1))),
            // Something is under way, or can go.
            ((3, 0), (2, 2), (1, 0), Some(sizes(1, 3))),
            ((1, 0), (2, 2), (2, 2), Some(sizes(2, 1))),
            // The stable version is well, or there is no older update.
            ((3, 3), (2, 2), (0, 0), None),
            ((3, 0), (0, 0), (0, 0), None),
        ] {
            let (stable, others, new) = (set("bad", stable), [set("other", other)], set("new", new));
            let sets = Sets { new: Some(&new), stable: Some(&stable), others: &others };
            assert_eq!(blockade(&rollout, &sets), expected, "{stable:?} {others:?} {new:?}");
        }
    }

    #[test]
    fn the_split_comes_as_near_to_the_weight_as_pods_can() {
        let rows = [
            ((10, 10, 1), (1, 9)),
            ((10, 30, 3), (3, 7)),
            ((5, 10, 1), (1, 5)),
            ((1, 10, 0), (0, 1)),
            ((1, 5, 1), (1, 1)),
            ((10, 0, 1), (0, 10)),
            ((10, 100, 1), (10, 0)),
            ((0, 50, 1), (0, 0)),
        ];
        for ((replicas, weight, surge), expected) in rows {
            let split = nearest(replicas, weight, 100, surge);
            assert_eq!((split.new, split.stable), expected, "{replicas} pods, {weight} %, surge {surge}");
        }
    }

    #[test]
    fn s7_who_is_there_stays_there() {
        let mut rollout = Rollout::default();
        rollout.spec.replicas = Some(3);
        let [surge, unavailable] = [0, 1].map(|number| Some(IntOrString::Int(number)));
        let canary = CanaryStrategy { max_surge: surge, max_unavailable: unavailable, ..CanaryStrategy::default() };
        let steps = vec![CanaryStep { set_weight: Some(0), ..CanaryStep::default() }];
        rollout.spec.strategy.canary = Some(CanaryStrategy { steps, ..canary });
        rollout.status.current_step_index = Some(0);
        (rollout.status.stable_rs, rollout.status.current_pod_hash) = ("a".into(), "b".into());
        let set = |name: &str, desired, available| ReplicaSet {
            name: name.into(),
            desired,
            available,
            ..ReplicaSet::default()
        };
        // The last pod of the new version is on its way out and available, and one of the stable version is restarting.
        let (new, stable) = (set("new", 0, 1), set("stable", 3, 1));
        let sets = Sets { new: Some(&new), stable: Some(&stable), others: &[] };
        assert_eq!(canary_sizes(&rollout, &sets), (1, 2), "would be asked back, one after the other, and never come");
        let next = next(&rollout, &sets, None);
        assert_eq!((next.new, next.stable), (0, 3));
    }

    fn canary_sizes(rollout: &Rollout, sets: &Sets<'_>) -> (i32, i32) {
        let sizes = canary(rollout, sets, None);
        (sizes.new, sizes.stable)
    }

    #[test]
    fn old_versions_go_as_fast_as_availability_lets_them() {
        let old = |revision: &str, desired, available| {
            let mut set = set(revision, desired, available);
            set.annotations.insert("rollout.argoproj.io/revision", revision);
            set
        };
        let others = [old("2", 4, 4), old("4", 3, 3), old("3", 5, 2)];
        let rollout = rollout(10, 20, 1, 1);
        let (new, stable) = (set("new", 2, 0), set("old", 2, 2));
        let sizes = |available| {
            let new = ReplicaSet { available, ..new.clone() };
            basic_others(&rollout, &Sets { new: Some(&new), stable: Some(&stable), others: &others })
        };
        // 9 must be available. 11 are: 2 can go, of the latest revision.
        assert_eq!(sizes(0), [4, 1, 2]);
        assert_eq!(sizes(2), [4, 0, 1]);
        // What is not available goes whatever the others do.
        assert_eq!(basic_others(&rollout, &Sets { others: &others, ..Sets::default() }), [4, 3, 2]);
    }

    fn rollout(replicas: i32, weight: i32, surge: i32, unavailable: i32) -> Rollout {
        let mut rollout = Rollout::default();
        rollout.spec.replicas = Some(replicas);
        rollout.spec.strategy.canary = Some(CanaryStrategy {
            steps: vec![CanaryStep { set_weight: Some(weight), ..CanaryStep::default() }],
            max_surge: Some(IntOrString::Int(surge)),
            max_unavailable: Some(IntOrString::Int(unavailable)),
            ..CanaryStrategy::default()
        });
        rollout.status.stable_rs = "old".into();
        rollout.status.current_pod_hash = "new".into();
        rollout
    }

    fn set(name: &str, desired: i32, available: i32) -> ReplicaSet {
        ReplicaSet {
            name: name.into(),
            hash: name.into(),
            desired,
            current: desired,
            available,
            ..ReplicaSet::default()
        }
    }

    proptest! {
        /// Whatever is found, the next sizes respect the surge, unless it was exceeded before.
        #[test]
        fn growth_stays_within_the_surge(
            replicas in 0..50i32, weight in 0..=100i32, surge in 0..10i32, unavailable in 0..10i32,
            new in 0..60i32, stable in 0..60i32, ready in 0..60i32,
        ) {
            let rollout = rollout(replicas, weight, surge, unavailable);
            let (new, stable) = (set("new", new, ready.min(new)), set("old", stable, stable));
            let sizes = basic_canary(&rollout, &Sets { new: Some(&new), stable: Some(&stable), others: &[] });
            let before = new.desired + stable.desired;
            prop_assert!(sizes.new + sizes.stable <= before.max(replicas + limits::max_surge(&rollout)));
        }

        #[test]
        fn old_versions_leave_enough_available(
            replicas in 0..30i32, unavailable in 0..9i32, new in 0..9i32, stable in 0..30i32,
            others in prop::collection::vec((0..20i32, 0..25i32), 0..4),
        ) {
            let rollout = rollout(replicas, 20, 1, unavailable);
            let (new, stable) = (set("new", new, new), set("old", stable, stable));
            let others: Vec<_> = others.into_iter().map(|(desired, available)| set("x", desired, available)).collect();
            let sizes = basic_others(&rollout, &Sets { new: Some(&new), stable: Some(&stable), others: &others });
            let least = replicas - limits::max_unavailable(&rollout);
            let before = new.available + stable.available + others.iter().map(|set| set.available.min(set.desired)).sum::<i32>();
            let after = new.available + stable.available + sizes.iter().sum::<i32>();
            let surplus: i32 = others.iter().map(|set| (set.available - set.desired).max(0)).sum();
            prop_assert!(after + surplus >= least.min(before));
            prop_assert!(sizes.iter().zip(&others).all(|(size, set)| (0..=set.desired).contains(size)));
        }

        #[test]
        fn no_specification_makes_it_panic(
            replicas in any::<i32>(), weight in any::<i32>(), surge in any::<i32>(), max in any::<i32>(),
            new in any::<i32>(), stable in any::<i32>(), available in any::<i32>(),
        ) {
            let mut rollout = rollout(replicas, weight, surge, surge);
            let (new, stable) = (set("new", new, available), set("old", stable, available));
            let sets = Sets { new: Some(&new), stable: Some(&stable), others: &[] };
            let _ = (basic_canary(&rollout, &sets), is_canary_at_size(&rollout, &sets, None));
            let old = [stable.clone()];
            let _ = basic_others(&rollout, &Sets { others: &old, ..sets });
            if let Some(canary) = &mut rollout.spec.strategy.canary {
                let routing = canary.traffic_routing.get_or_insert_default();
                routing.max_traffic_weight = Some(max);
                canary.dynamic_stable_scale = true;
                canary.min_pods_per_replica_set = Some(weight);
            }
            rollout.status.abort = true;
            let weights = TrafficWeights::default();
            let _ = (routed_canary(&rollout, &sets, Some(&weights)), is_canary_at_size(&rollout, &sets, Some(&weights)));
        }
    }
}
