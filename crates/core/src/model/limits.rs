//! What a Rollout's limits and delays come to once defaults are filled in: pods that may be missing or too many, seconds
//! that old pods stay up.
//!
//! Never looks at ReplicaSets: a limit is a property of the specification.

use jiff::SignedDuration;

use super::int_or_string::{NotAPercentage, Round, percentage, share};
use crate::api::{IntOrString, Rollout};

/// `maxSurge` and `maxUnavailable` when not given, in percent.
const PERCENT: i64 = 25;
/// How long old pods stay up when not given, in seconds.
const DELAY: i32 = 30;

/// How many pods a Rollout is to have.
pub fn replicas(rollout: &Rollout) -> i32 {
    super::health::replicas(&rollout.spec)
}

/// What counts as all of the traffic.
pub fn max_weight(rollout: &Rollout) -> i32 {
    let routing = rollout.spec.strategy.canary.as_ref().and_then(|canary| canary.traffic_routing.as_ref());
    routing.and_then(|routing| routing.max_traffic_weight).unwrap_or(100)
}

/// How many pods there may be beyond the Rollout's size. Blue-green has no such limit.
pub fn max_surge(rollout: &Rollout) -> i32 {
    if rollout.spec.strategy.canary.is_some() { fence_posts(rollout).0 } else { 0 }
}

/// How many pods may be missing.
pub fn max_unavailable(rollout: &Rollout) -> i32 {
    let replicas = replicas(rollout);
    let unavailable = match (replicas, &rollout.spec.strategy.canary) {
        (0, _) => 0,
        (_, Some(_)) => fence_posts(rollout).1,
        (_, None) => given_share(given_unavailable(rollout), replicas, Round::Down).unwrap_or_default(),
    };
    unavailable.min(replicas)
}

/// Surge and unavailability of a canary, which depend on each other: if both come to nothing, one pod may be missing, or
/// nothing could ever move. A string that is no percentage makes both 0; validation says so.
fn fence_posts(rollout: &Rollout) -> (i32, i32) {
    let replicas = replicas(rollout);
    let surge = rollout.spec.strategy.canary.as_ref().and_then(|canary| canary.max_surge.as_ref());
    let surge = given_share(surge, replicas, Round::Up);
    let unavailable = given_share(given_unavailable(rollout), replicas, Round::Down);
    match (surge, unavailable) {
        (Ok(0), Ok(0)) => (0, 1),
        (Ok(surge), Ok(unavailable)) => (surge, unavailable),
        (Err(_), _) | (_, Err(_)) => (0, 0),
    }
}

fn given_unavailable(rollout: &Rollout) -> Option<&IntOrString> {
    let strategy = &rollout.spec.strategy;
    let blue_green = strategy.blue_green.as_ref().and_then(|blue_green| blue_green.max_unavailable.as_ref());
    let canary = strategy.canary.as_ref().and_then(|canary| canary.max_unavailable.as_ref());
    blue_green.or(canary)
}

fn given_share(given: Option<&IntOrString>, replicas: i32, round: Round) -> Result<i32, NotAPercentage> {
    given.map_or_else(|| Ok(percentage(PERCENT, replicas, round)), |given| share(given, replicas, round))
}

/// How long a version that lost its role stays up. A canary without a router shrinks it as it goes: at once.
pub fn scale_down_delay(rollout: &Rollout) -> SignedDuration {
    let strategy = &rollout.spec.strategy;
    let routed = strategy.canary.as_ref().filter(|canary| canary.traffic_routing.is_some());
    let seconds = match (routed, &strategy.blue_green) {
        (Some(canary), _) => canary.scale_down_delay_seconds.unwrap_or(DELAY),
        (None, Some(blue_green)) => blue_green.scale_down_delay_seconds.unwrap_or(DELAY),
        (None, None) => 0,
    };
    SignedDuration::from_secs(seconds.into())
}

/// What becomes of a new version's pods after an abort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortDelay {
    /// They stay up: the delay was set to 0.
    Never,
    /// They go after this time.
    After {
        /// How long.
        delay: SignedDuration,
        /// Whether the Rollout says so itself.
        explicit: bool,
    },
}

impl AbortDelay {
    /// Whether the Rollout gives a time, other than for ever.
    pub fn is_explicit(self) -> bool {
        matches!(self, AbortDelay::After { explicit: true, .. })
    }
}

/// What becomes of the new version's pods after an abort. A canary without a router shrinks them as it goes: at once.
pub fn abort_scale_down_delay(rollout: &Rollout) -> AbortDelay {
    let strategy = &rollout.spec.strategy;
    let routed = strategy.canary.as_ref().filter(|canary| canary.traffic_routing.is_some());
    let (given, default) = match (&strategy.blue_green, routed) {
        (Some(blue_green), _) => (blue_green.abort_scale_down_delay_seconds, DELAY),
        (None, Some(canary)) => (canary.abort_scale_down_delay_seconds, DELAY),
        (None, None) => (None, 0),
    };
    match given {
        Some(0) => AbortDelay::Never,
        given => AbortDelay::After {
            delay: SignedDuration::from_secs(given.unwrap_or(default).into()),
            explicit: given.is_some(),
        },
    }
}

/// Whether blue-green switches over without being asked.
pub fn auto_promotes(rollout: &Rollout) -> bool {
    let blue_green = rollout.spec.strategy.blue_green.as_ref();
    blue_green.and_then(|blue_green| blue_green.auto_promotion_enabled).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{CanaryStrategy, RolloutTrafficRouting};

    fn canary(replicas: i32, surge: Option<&str>, unavailable: Option<&str>) -> Rollout {
        let given = |text: &str| text.parse().map_or_else(|_| text.into(), IntOrString::Int);
        let mut rollout = Rollout::default();
        rollout.spec.replicas = Some(replicas);
        rollout.spec.strategy.canary = Some(CanaryStrategy {
            max_surge: surge.map(given),
            max_unavailable: unavailable.map(given),
            ..CanaryStrategy::default()
        });
        rollout
    }

    #[test]
    fn surge_is_rounded_up_and_unavailability_down() {
        let rows = [
            ((10, None, None), (3, 2)),
            ((10, Some("1"), Some("0")), (1, 0)),
            ((10, Some("0"), Some("0")), (0, 1)),
            ((3, Some("0"), Some("25%")), (0, 1)),
            ((2, Some("1"), Some("5")), (1, 2)),
            ((0, None, None), (0, 0)),
            ((10, Some("x%"), Some("1")), (0, 0)),
        ];
        for ((replicas, surge, unavailable), expected) in rows {
            let rollout = canary(replicas, surge, unavailable);
            assert_eq!(
                (max_surge(&rollout), max_unavailable(&rollout)),
                expected,
                "{replicas} {surge:?} {unavailable:?}"
            );
        }
    }

    #[test]
    fn only_a_router_keeps_old_pods_up() {
        let mut rollout = canary(1, None, None);
        assert_eq!(scale_down_delay(&rollout), SignedDuration::ZERO);
        assert!(!abort_scale_down_delay(&rollout).is_explicit());
        if let Some(canary) = &mut rollout.spec.strategy.canary {
            canary.traffic_routing = Some(RolloutTrafficRouting::default());
            canary.abort_scale_down_delay_seconds = Some(0);
        }
        assert_eq!(scale_down_delay(&rollout), SignedDuration::from_secs(30));
        assert_eq!(abort_scale_down_delay(&rollout), AbortDelay::Never);
    }
}
