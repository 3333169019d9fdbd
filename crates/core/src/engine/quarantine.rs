//! Objects whose passes ended in a panic: set aside, so that a bug that one object meets costs nobody else anything.
//!
//! Such an object is taken up again when what people write of it changes, which may be what the bug is about, or after a wait
//! that grows with each time. Never reads a clock.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::key::Key;
use crate::{
    api::constants::{condition, reason},
    kubernetes::value::Value,
    value,
};

/// The first wait; it doubles with each panic about the same version of the object.
const FIRST: SignedDuration = SignedDuration::from_mins(5);
/// The longest wait.
const LONGEST: SignedDuration = SignedDuration::from_hours(4);

/// The objects that are set aside.
#[derive(Debug, Clone, Default)]
pub struct Quarantine(HashMap<Key, Held>);

#[derive(Debug, Clone)]
struct Held {
    /// What people wrote of it then.
    version: String,
    until: Timestamp,
    /// How often in a row.
    times: u32,
}

impl Quarantine {
    /// A pass about this version of an object ended in a panic. Answers when the object is taken up again.
    pub fn panicked(&mut self, key: &Key, version: &str, now: Timestamp) -> Timestamp {
        let before = self.0.get(key).filter(|held| held.version == version).map_or(0, |held| held.times);
        let wait = FIRST.saturating_mul(1 << before.min(10)).min(LONGEST);
        let until = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
        self.0.insert(key.clone(), Held { version: version.to_owned(), until, times: before.saturating_add(1) });
        until
    }

    /// Until when an object is left alone, if it is.
    pub fn holds(&self, key: &Key, version: &str, now: Timestamp) -> Option<Timestamp> {
        self.0.get(key).filter(|held| held.version == version && now < held.until).map(|held| held.until)
    }

    /// A pass about an object ended, or the object is gone. Whether it was set aside before.
    pub fn release(&mut self, key: &Key) -> bool {
        self.0.remove(key).is_some()
    }

    /// The objects that are set aside.
    pub fn all(&self) -> impl Iterator<Item = &Key> {
        self.0.keys()
    }
}

/// What is said of an object that is set aside. Nothing of the panic itself: that is in the log.
pub fn message(until: Timestamp) -> String {
    let until = until.strftime("%Y-%m-%dT%H:%M:%SZ");
    format!(
        "looking at it ended in a panic, which is a bug of Tidegate: the log says where, please report it; nothing is done \
         about it until its specification changes or until {until}"
    )
}

/// What is written into the status of a Rollout that is set aside: its other conditions stay.
pub fn conditions(rollout: &Value, message: &str, now: Timestamp) -> Value {
    let ours = [condition::READY, condition::RECONCILING, condition::STALLED];
    let is_theirs = |told: &&Value| told.str_at(&["type"]).is_none_or(|r#type| !ours.contains(&r#type));
    let mut conditions: Vec<Value> =
        rollout.list_at(&["status", "conditions"]).iter().filter(is_theirs).cloned().collect();
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for (r#type, status) in [(condition::READY, "False"), (condition::STALLED, "True")] {
        conditions.push(value!({"type": r#type, "status": status, "reason": reason::QUARANTINED, "message": message,
            "lastTransitionTime": now.as_str(), "lastUpdateTime": now.as_str()}));
    }
    let mut patch = Value::object();
    patch.set_at(&["status", "conditions"], Value::list(conditions));
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::key::{Machine, Place};

    #[test]
    fn sr23_an_object_is_set_aside_until_it_changes_or_ever_longer() {
        let key = Key { machine: Machine::Rollout, place: Place::new("shop", "web") };
        let other = Key { machine: Machine::Analysis, ..key.clone() };
        let at = |minutes: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
        let mut quarantine = Quarantine::default();
        assert_eq!(quarantine.holds(&key, "1", at(0)), None);
        assert_eq!(quarantine.panicked(&key, "1", at(0)), at(5));
        assert_eq!(quarantine.holds(&key, "1", at(4)), Some(at(5)));
        assert_eq!(quarantine.holds(&other, "1", at(4)), None, "the others go on");
        assert_eq!(quarantine.holds(&key, "2", at(4)), None, "it was changed");
        assert_eq!(quarantine.holds(&key, "1", at(5)), None, "it is tried again");
        assert_eq!(quarantine.panicked(&key, "1", at(5)), at(15));
        assert_eq!(quarantine.panicked(&key, "2", at(20)), at(25), "another version begins anew");
        for _ in 0..40 {
            quarantine.panicked(&key, "2", at(30));
        }
        assert_eq!(quarantine.panicked(&key, "2", at(30)), at(30 + 240));
        assert!(quarantine.release(&key) && !quarantine.release(&key));
        assert_eq!(quarantine.all().count(), 0);
        assert!(message(at(5)).ends_with("or until 1970-01-01T00:05:00Z"));
    }
}
