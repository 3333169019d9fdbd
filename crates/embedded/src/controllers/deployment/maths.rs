//! How many replicas each ReplicaSet of a Deployment gets: the arithmetic of rolling updates and proportional scaling.
//!
//! Counts in, counts out; nothing here knows the store.

use crate::controllers::ask::{self, Round};
use crate::kubernetes::value::Value;

/// What a Deployment asks for, read once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// How many replicas.
    pub replicas: i64,
    /// How many more there may be during an update.
    pub max_surge: i64,
    /// How many fewer may be available during an update.
    pub max_unavailable: i64,
    /// Whether it updates step by step.
    pub rolling: bool,
}

/// The counts of one ReplicaSet that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// `spec.replicas`
    pub wanted: i64,
    /// `status.availableReplicas`
    pub available: i64,
    /// The annotation `max-replicas`: how many the Deployment could have at most when this was last scaled.
    pub max_before: Option<i64>,
}

impl Goal {
    /// Reads a Deployment.
    pub fn of(deployment: &Value) -> Goal {
        let replicas = deployment.int_at(&["spec", "replicas"]).unwrap_or(1);
        let rolling = deployment.str_at(&["spec", "strategy", "type"]) == Some("RollingUpdate");
        if !rolling {
            return Goal { replicas, max_surge: 0, max_unavailable: 0, rolling };
        }
        let fence = |field, round| {
            let value = deployment.at(&["spec", "strategy", "rollingUpdate", field]).unwrap_or(&Value::Int(0));
            ask::scaled(value, replicas, round).unwrap_or(0)
        };
        let (max_surge, mut max_unavailable) = (fence("maxSurge", Round::Up), fence("maxUnavailable", Round::Down));
        if max_surge == 0 && max_unavailable == 0 {
            // Both may round to nothing, and then no update could ever move.
            max_unavailable = 1;
        }
        let max_unavailable = if replicas == 0 { 0 } else { max_unavailable.min(replicas) };
        Goal { replicas, max_surge, max_unavailable, rolling }
    }

    /// How many replicas may exist at once.
    pub fn most(&self) -> i64 {
        self.replicas + self.max_surge
    }

    fn least_available(&self) -> i64 {
        self.replicas - self.max_unavailable
    }

    /// How many replicas the new ReplicaSet gets, where `total` is the sum of all, it included.
    pub fn new_replicas(&self, new: i64, total: i64) -> i64 {
        if !self.rolling {
            return self.replicas;
        }
        if total >= self.most() {
            return new;
        }
        new + (self.most() - total).min(self.replicas - new)
    }

    /// The sizes of the old ReplicaSets (oldest first) after as much was taken from them as availability allows.
    pub fn shrink_old(&self, old: &[Size], new: Size) -> Vec<i64> {
        let mut sizes: Vec<i64> = old.iter().map(|size| size.wanted).collect();
        let total: i64 = sizes.iter().sum::<i64>() + new.wanted;
        let spare = total - self.least_available() - (new.wanted - new.available);
        if sizes.iter().all(|size| *size == 0) || spare <= 0 {
            return sizes;
        }
        // Those that are not available go first: they help nobody, and would only block the update.
        let mut left = spare;
        for (size, set) in sizes.iter_mut().zip(old) {
            let useless = (*size - set.available).clamp(0, left);
            *size -= useless;
            left -= useless;
        }
        let available: i64 = old.iter().map(|set| set.available).sum::<i64>() + new.available;
        let mut left = (available - self.least_available()).max(0);
        for size in &mut sizes {
            let taken = (*size).min(left);
            *size -= taken;
            left -= taken;
        }
        sizes
    }

    /// The sizes of several ReplicaSets after a scaling in the middle of an update: each keeps its share, the first one
    /// gets what rounding leaves. They come largest first.
    pub fn proportional(&self, sets: &[Size], status_replicas: i64) -> Vec<i64> {
        let total: i64 = sets.iter().map(|set| set.wanted).sum();
        let allowed = if self.replicas > 0 { self.most() } else { 0 };
        let to_add = allowed - total;
        let mut added = 0;
        let mut sizes = Vec::with_capacity(sets.len());
        for set in sets {
            let share = self.share(set, status_replicas, to_add, added);
            added += share;
            sizes.push(set.wanted + share);
        }
        if let Some(first) = sizes.first_mut().filter(|_| to_add != 0) {
            *first = (*first + to_add - added).max(0);
        }
        sizes
    }

    fn share(&self, set: &Size, status_replicas: i64, to_add: i64, added: i64) -> i64 {
        if set.wanted == 0 || to_add == 0 || to_add == added {
            return 0;
        }
        let fraction = if self.replicas == 0 {
            -set.wanted
        } else {
            match set.max_before.filter(|before| *before != 0).unwrap_or(status_replicas) {
                0 => 0,
                before => round((set.wanted * self.most()) as f64 / before as f64) - set.wanted,
            }
        };
        let allowed = to_add - added;
        if to_add > 0 { fraction.min(allowed) } else { fraction.max(allowed) }
    }
}

/// Half away from zero.
fn round(x: f64) -> i64 {
    if x < 0.0 { (x - 0.5) as i64 } else { (x + 0.5) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn goal(replicas: i64, max_surge: i64, max_unavailable: i64) -> Goal {
        Goal { replicas, max_surge, max_unavailable, rolling: true }
    }

    fn size(wanted: i64, available: i64) -> Size {
        Size { wanted, available, max_before: None }
    }

    #[test]
    fn fences_are_rounded_apart_and_never_both_zero() {
        for (replicas, surge, unavailable, expected) in [
            (4, value!("25%"), value!("25%"), (1, 1)),
            (10, value!("25%"), value!("25%"), (3, 2)),
            (1, value!("25%"), value!("25%"), (1, 0)),
            (3, value!(0), value!("25%"), (0, 1)),
            (2, value!(1), value!(5), (1, 2)),
            (0, value!("25%"), value!(1), (0, 0)),
        ] {
            let mut deployment = value!({"spec": {"replicas": replicas, "strategy": {"type": "RollingUpdate"}}});
            deployment.set_at(&["spec", "strategy", "rollingUpdate", "maxSurge"], surge);
            deployment.set_at(&["spec", "strategy", "rollingUpdate", "maxUnavailable"], unavailable);
            let goal = Goal::of(&deployment);
            assert_eq!((goal.max_surge, goal.max_unavailable), expected, "{deployment}");
        }
    }

    #[test]
    fn the_new_set_grows_as_far_as_the_surge_allows() {
        assert_eq!(goal(10, 3, 2).new_replicas(0, 10), 3);
        assert_eq!(goal(10, 3, 2).new_replicas(3, 11), 5);
        assert_eq!(goal(10, 3, 2).new_replicas(5, 13), 5);
        assert_eq!(goal(10, 3, 2).new_replicas(9, 10), 10);
    }

    #[test]
    fn old_sets_shrink_no_further_than_availability_allows() {
        for (goal, old, new, expected) in [
            // Upstream's example: crash-looping new pods do not cost old ones …
            (goal(10, 3, 2), vec![size(8, 7)], size(5, 0), vec![8]),
            // … and after a rollback the crash-looping ones go.
            (goal(10, 3, 2), vec![size(5, 0)], size(8, 7), vec![1]),
            (goal(10, 3, 2), vec![size(10, 10)], size(3, 0), vec![8]),
            (goal(4, 1, 0), vec![size(4, 4)], size(1, 1), vec![3]),
            (goal(4, 1, 0), vec![size(4, 4)], size(1, 0), vec![4]),
            (goal(4, 1, 1), vec![size(2, 0), size(3, 3)], size(0, 0), vec![0, 3]),
            (goal(3, 1, 1), vec![size(0, 0)], size(3, 3), vec![0]),
        ] {
            assert_eq!(goal.shrink_old(&old, new), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn scaling_in_the_middle_of_an_update_keeps_proportions() {
        let set = |wanted, before| Size { wanted, available: 0, max_before: Some(before) };
        for (goal, sets, expected) in [
            // 10 → 20 with a surge of 0: half of the new ones each.
            (goal(20, 0, 0), vec![set(5, 10), set(5, 10)], vec![10, 10]),
            (goal(12, 2, 0), vec![set(8, 12), set(4, 12)], vec![9, 5]),
            (goal(5, 0, 1), vec![set(8, 10), set(2, 10)], vec![4, 1]),
            (goal(0, 0, 0), vec![set(8, 10), set(2, 10)], vec![0, 0]),
        ] {
            assert_eq!(goal.proportional(&sets, 10), expected, "{sets:?}");
        }
    }
}
