//! What a Rollout's specification allows, in the judge's own arithmetic. Part of the judge of [`invariant`](super::invariant).
//!
//! Shares no function with the decision, which has its own in [`crate::model::limits`]: one mistake cannot hide in both.

use crate::api::{IntOrString, Rollout};

/// How many pods and how much traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The pods it is to have.
    pub replicas: i64,
    /// The most pods of a canary, all its versions together.
    pub most: i64,
    /// The fewest available pods of a canary.
    pub least: i64,
    /// What counts as all of the traffic.
    pub traffic: i64,
}

impl Bounds {
    pub fn of(rollout: &Rollout) -> Bounds {
        let replicas = rollout.spec.replicas.map_or(1, i64::from);
        let canary = rollout.spec.strategy.canary.as_ref();
        let routing = canary.and_then(|canary| canary.traffic_routing.as_ref());
        let traffic = routing.and_then(|routing| routing.max_traffic_weight).map_or(100, i64::from);
        // 25 % of each if nothing is said: 3 pods may have 1 more, and none missing.
        let (more, missing) = match canary {
            Some(canary) => (
                canary
                    .max_surge
                    .as_ref()
                    .map_or(Some((25 * replicas + 99).div_euclid(100)), |given| up(given, replicas)),
                canary
                    .max_unavailable
                    .as_ref()
                    .map_or(Some((25 * replicas).div_euclid(100)), |given| down(given, replicas)),
            ),
            None => (Some(0), Some(0)),
        };
        let (more, missing) = match (more, missing) {
            // Nothing could ever move.
            (Some(0), Some(0)) if canary.is_some() => (0, 1),
            (Some(more), Some(missing)) => (more, missing),
            (None, _) | (_, None) => (0, 0),
        };
        Bounds { replicas, most: replicas + more, least: (replicas - missing).max(0), traffic }
    }
}

fn up(given: &IntOrString, of: i64) -> Option<i64> {
    match given {
        IntOrString::Int(number) => Some(i64::from(*number)),
        IntOrString::String(text) => Some((percent(text)?.checked_mul(of)?.checked_add(99)?).div_euclid(100)),
    }
}

fn down(given: &IntOrString, of: i64) -> Option<i64> {
    match given {
        IntOrString::Int(number) => Some(i64::from(*number)),
        IntOrString::String(text) => Some(percent(text)?.checked_mul(of)?.div_euclid(100)),
    }
}

/// Kubernetes takes a percentage with its sign, without it, and with signs elsewhere.
fn percent(text: &str) -> Option<i64> {
    text.chars().filter(|letter| *letter != '%').collect::<String>().parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{api::CanaryStrategy, model::limits};

    fn given() -> impl Strategy<Value = Option<IntOrString>> {
        let text = prop_oneof![
            (-5..250i64).prop_map(|percent| format!("{percent}%")),
            Just("10".to_owned()),
            Just("x%".to_owned())
        ];
        prop_oneof![
            Just(None),
            (0..30i32).prop_map(|number| Some(IntOrString::Int(number))),
            text.prop_map(|text| Some(IntOrString::String(text))),
        ]
    }

    proptest! {
        /// Two ways to reckon the same: where they differ, one of them is wrong.
        #[test]
        fn the_judge_and_the_decision_agree_about_limits(replicas in 0..200i32, surge in given(), unavailable in given()) {
            let mut rollout = Rollout::default();
            rollout.spec.replicas = Some(replicas);
            rollout.spec.strategy.canary =
                Some(CanaryStrategy { max_surge: surge, max_unavailable: unavailable, ..CanaryStrategy::default() });
            let expected = (
                i64::from(replicas),
                i64::from(replicas) + i64::from(limits::max_surge(&rollout)),
                (i64::from(replicas) - i64::from(limits::max_unavailable(&rollout))).max(0),
            );
            let bounds = Bounds::of(&rollout);
            prop_assert_eq!((bounds.replicas, bounds.most, bounds.least), expected);
        }
    }
}
