//! What a Rollout needs to know of a ReplicaSet: sizes, age, hash, and the notes left on it.
//!
//! A [`ReplicaSet`] is a few dozen bytes made from the object once; the pod template is not kept. Never decides a size.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};

use crate::{
    api::constants::{annotation, label},
    kubernetes::{
        schema::gotime::{self, Precision},
        value::{Map, Text, Value},
    },
};

/// The sizes, the identity and the notes of a ReplicaSet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplicaSet {
    /// Its name.
    pub name: Text,
    /// The hash it carries as a label; empty if none.
    pub hash: Text,
    /// Whether it is on its way out.
    pub deleting: bool,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Its annotations.
    pub annotations: Map,
    /// How many pods it is to have: `spec.replicas`.
    pub desired: i32,
    /// How many it has.
    pub current: i32,
    /// How many of them are ready.
    pub ready: i32,
    /// How many of them are available.
    pub available: i32,
}

impl ReplicaSet {
    /// Reads what is needed of an object.
    pub fn of(object: &Value) -> ReplicaSet {
        let text = |path: &[&str]| object.at(path).and_then(Value::as_text).cloned().unwrap_or_default();
        let count = |path: &[&str]| object.int_at(path).and_then(|n| i32::try_from(n).ok());
        ReplicaSet {
            name: text(&["metadata", "name"]),
            hash: text(&["metadata", "labels", label::POD_TEMPLATE_HASH]),
            deleting: object.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null()),
            created: created(object),
            annotations: object.at(&["metadata", "annotations"]).and_then(Value::as_map).cloned().unwrap_or_default(),
            desired: count(&["spec", "replicas"]).unwrap_or(1),
            current: count(&["status", "replicas"]).unwrap_or_default(),
            ready: count(&["status", "readyReplicas"]).unwrap_or_default(),
            available: count(&["status", "availableReplicas"]).unwrap_or_default(),
        }
    }

    /// An annotation's text; empty if there is none.
    pub fn note(&self, key: &str) -> &str {
        self.annotations.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its revision, if it has one that can be read.
    pub fn revision(&self) -> Option<i64> {
        super::revision::parse(self.note(annotation::REVISION)).ok()
    }

    /// The size of the Rollout when this set was last scaled, if it is noted.
    pub fn noted_replicas(&self) -> Option<i32> {
        self.note(annotation::DESIRED_REPLICAS).parse().ok()
    }

    /// Whether the note of the Rollout's size, or a deadline that a set of no pods needs no more, is to be rewritten.
    pub fn notes_are_outdated(&self, replicas: i32) -> bool {
        self.note(annotation::DESIRED_REPLICAS) != replicas.to_string()
            || replicas == 0 && self.has_scale_down_deadline()
    }

    /// Whether it runs all of the Rollout's pods: it is to, it was told to at this size, and they are available.
    pub fn is_saturated(&self, replicas: i32) -> bool {
        self.desired == replicas && self.noted_replicas() == Some(replicas) && self.available == replicas
    }

    /// Whether it is scaled up and every pod is available.
    pub fn is_available(&self) -> bool {
        self.desired != 0 && self.available != 0 && self.desired <= self.available
    }

    /// Whether any pod is available.
    pub fn is_partially_available(&self) -> bool {
        self.available > 0
    }

    /// Whether it is to be scaled down at a moment that is noted.
    pub fn has_scale_down_deadline(&self) -> bool {
        !self.note(annotation::SCALE_DOWN_DEADLINE).is_empty()
    }

    /// When it is to be scaled down; `None` if there is no deadline, or none that can be read.
    pub fn scale_down_deadline(&self) -> Option<Timestamp> {
        gotime::read(self.note(annotation::SCALE_DOWN_DEADLINE), Precision::Second).ok()
    }

    /// How long it stays up; `None` if there is no deadline or it has passed.
    pub fn time_to_scale_down(&self, now: Timestamp) -> Result<Option<SignedDuration>, UnreadableDeadline> {
        if !self.has_scale_down_deadline() {
            return Ok(None);
        }
        let deadline = gotime::read(self.note(annotation::SCALE_DOWN_DEADLINE), Precision::Second)
            .map_err(|_| UnreadableDeadline { set: self.name.clone() })?;
        let left = deadline.duration_since(now);
        Ok(left.is_positive().then_some(left))
    }
}

/// A ReplicaSet's deadline is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unable to read scaleDownAt label on rs '{set}'")]
pub struct UnreadableDeadline {
    /// The ReplicaSet.
    pub set: Text,
}

/// The hash that an object carries as a label; empty if none.
pub fn hash(object: &Value) -> &str {
    object.str_at(&["metadata", "labels", label::POD_TEMPLATE_HASH]).unwrap_or_default()
}

/// Older first, then by name: the order in which a Rollout looks at its ReplicaSets.
pub fn by_age(a: &Value, b: &Value) -> Ordering {
    let name = |object: &Value| object.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
    created(a).cmp(&created(b)).then_with(|| name(a).cmp(&name(b)))
}

fn created(object: &Value) -> Option<Timestamp> {
    gotime::read(object.str_at(&["metadata", "creationTimestamp"])?, Precision::Second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn any_object_can_be_read() {
        for object in [Value::Null, value!({}), value!({"metadata": 5, "spec": {"replicas": "x"}, "status": []})] {
            assert_eq!(ReplicaSet::of(&object), ReplicaSet { desired: 1, ..ReplicaSet::default() });
        }
    }

    #[test]
    fn a_deadline_that_is_no_time_is_said() {
        let set = ReplicaSet::of(&value!({"metadata": {"name": "rs", "annotations": {"scale-down-deadline": "soon"}}}));
        let error = set.time_to_scale_down(Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(error.to_string(), "unable to read scaleDownAt label on rs 'rs'");
    }
}
