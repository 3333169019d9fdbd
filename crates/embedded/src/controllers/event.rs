//! Events as controllers record them: identical ones are counted, similar ones combined, chatter is dropped.
//!
//! The rules are client-go's. Of events that differ only in their message the tenth within ten minutes becomes
//! `(combined from similar events): …`, and an identical event only raises `count`. A source may record 25 events about
//! one object at once and then one more every five minutes. What is remembered for this is not stored: after a restart
//! counting begins anew, as it does when the real controllers restart.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use jiff::{SignedDuration, Timestamp};

use crate::kubernetes::{
    clock::rfc3339,
    object::Object,
    value::{Text, Value},
};

/// So many different messages of one reason are combined into one event …
const SIMILAR_LIMIT: usize = 10;
/// … if each came within this time of the last.
const SIMILAR_INTERVAL: SignedDuration = SignedDuration::from_secs(600);
/// How many events a source may record about one object at once …
const BURST: f64 = 25.0;
/// … and how fast it may record more.
const REFILL_PER_SECOND: f64 = 1.0 / 300.0;
/// How many keys each memory holds before it forgets the oldest.
const MEMORY: usize = 4096;

/// Who reports, and about what.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The controller: `replicaset-controller`.
    pub component: &'a str,
    /// The node of a kubelet; empty for others.
    pub host: &'a str,
    /// Which part of the object it is about: `spec.containers{web}`, or empty.
    pub field_path: &'a str,
}

/// What is to be written for an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// Nothing: too many were recorded.
    Dropped,
    /// A new event.
    New(Value),
    /// An event of this name happened again; if it is gone by now, it is created again.
    Again {
        /// The event's name.
        name: Text,
        /// The patch that counts it.
        patch: Value,
        /// The whole event, should it be gone.
        whole: Value,
    },
}

/// Remembers which events were recorded.
#[derive(Debug, Default, Clone)]
pub struct Recorder {
    similar: Recent<Similar>,
    seen: Recent<Seen>,
    budgets: Recent<Budget>,
    last_name: i128,
}

#[derive(Debug, Clone)]
struct Similar {
    messages: Vec<u64>,
    last: Timestamp,
}

#[derive(Debug, Clone)]
struct Seen {
    name: Text,
    count: i64,
    first: Timestamp,
}

#[derive(Debug, Clone)]
struct Budget {
    tokens: f64,
    at: Timestamp,
}

impl Recorder {
    /// Decides what to write for an event of this type, reason and message about an object.
    pub fn record(
        &mut self,
        source: Source,
        about: &Object,
        kind: &str,
        reason: &str,
        message: &str,
        now: Timestamp,
    ) -> Record {
        let object = hash(&(source.component, source.host, about.uid(), about.name(), kind));
        let group = hash(&(object, reason));
        let combined = self.combine(group, message, now);
        let mut event = self.event(source, about, kind, reason, message, now);
        let mut key = hash(&(group, source.field_path, message));
        if combined {
            key = group;
            event.set_at(&["message"], format!("(combined from similar events): {message}"));
            event.set_at(&["reportingComponent"], "");
            event.set_at(&["reportingInstance"], "");
        }
        let before = self.seen.get(key).cloned();
        let count = before.as_ref().map_or(1, |seen| seen.count + 1);
        let name = event.at(&["metadata", "name"]).and_then(Value::as_text).cloned().unwrap_or_default();
        let seen = match &before {
            Some(seen) => Seen { count, ..seen.clone() },
            None => Seen { name, count, first: now },
        };
        event.set_at(&["firstTimestamp"], rfc3339(seen.first));
        event.set_at(&["count"], count);
        event.set_at(&["metadata", "name"], &seen.name);
        self.seen.put(key, seen.clone());
        if !self.spend(object, now) {
            return Record::Dropped;
        }
        if count == 1 {
            return Record::New(event);
        }
        let patch = event.as_map().map(|fields| {
            let counted = |key: &Text| matches!(key.as_str(), "count" | "lastTimestamp" | "message");
            Value::Map(fields.iter().filter(|(key, _)| counted(key)).map(|(k, v)| (k.clone(), v.clone())).collect())
        });
        Record::Again { name: seen.name, patch: patch.unwrap_or_default(), whole: event }
    }

    /// Whether this message is one too many of its group.
    fn combine(&mut self, group: u64, message: &str, now: Timestamp) -> bool {
        let fresh = || Similar { messages: Vec::new(), last: now };
        let mut similar = self.similar.get(group).cloned().unwrap_or_else(fresh);
        if now.duration_since(similar.last) > SIMILAR_INTERVAL {
            similar = fresh();
        }
        let message = hash(&message);
        if !similar.messages.contains(&message) {
            similar.messages.push(message);
        }
        similar.last = now;
        let combined = similar.messages.len() >= SIMILAR_LIMIT;
        if combined {
            similar.messages.remove(0);
        }
        self.similar.put(group, similar);
        combined
    }

    /// Takes one token of an object's budget; `false` if there is none.
    fn spend(&mut self, object: u64, now: Timestamp) -> bool {
        let mut budget = self.budgets.get(object).cloned().unwrap_or(Budget { tokens: BURST, at: now });
        let refill = now.duration_since(budget.at).as_secs_f64() * REFILL_PER_SECOND;
        budget.tokens = (budget.tokens + refill).min(BURST);
        budget.at = now;
        let granted = budget.tokens >= 1.0;
        if granted {
            budget.tokens -= 1.0;
        }
        self.budgets.put(object, budget);
        granted
    }

    fn event(
        &mut self,
        source: Source,
        about: &Object,
        kind: &str,
        reason: &str,
        message: &str,
        now: Timestamp,
    ) -> Value {
        let text = |path: &[&str]| about.value.at(path).cloned().unwrap_or_else(|| "".into());
        let time = rfc3339(now);
        let namespace = match about.namespace() {
            none if none.is_empty() => "default".into(),
            namespace => namespace,
        };
        let mut event = map! {
            "apiVersion": "v1", "count": 1, "eventTime": Value::Null, "firstTimestamp": &time,
            "involvedObject": map! {
                "apiVersion": text(&["apiVersion"]), "kind": text(&["kind"]), "name": about.name(),
                "resourceVersion": text(&["metadata", "resourceVersion"]), "uid": about.uid(),
            },
            "kind": "Event", "lastTimestamp": &time, "message": message,
            "metadata": map! {"name": self.name(about, now), "namespace": namespace},
            "reason": reason, "reportingComponent": source.component, "reportingInstance": source.host,
            "source": map! {"component": source.component}, "type": kind,
        };
        if !about.namespace().is_empty() {
            event.set_at(&["involvedObject", "namespace"], about.namespace());
        }
        if !source.host.is_empty() {
            event.set_at(&["source", "host"], source.host);
        }
        if !source.field_path.is_empty() {
            event.set_at(&["involvedObject", "fieldPath"], source.field_path);
        }
        event
    }

    /// `web.18e8779a68099418`: the time in nanoseconds, moved on where virtual time stands still.
    fn name(&mut self, about: &Object, now: Timestamp) -> String {
        self.last_name = now.as_nanosecond().max(self.last_name + 1);
        format!("{}.{:x}", about.name(), self.last_name)
    }
}

fn hash(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// A bounded memory: what was not used for [`MEMORY`] other keys is forgotten.
#[derive(Debug, Clone)]
struct Recent<T> {
    young: HashMap<u64, T>,
    old: HashMap<u64, T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<T> Recent<T> {
    fn get(&self, key: u64) -> Option<&T> {
        self.young.get(&key).or_else(|| self.old.get(&key))
    }

    fn put(&mut self, key: u64, value: T) {
        if self.young.len() >= MEMORY {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    const RS: Source<'_> = Source { component: "replicaset-controller", host: "", field_path: "" };

    fn web() -> Object {
        let value = value!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7"},
        });
        Object { value, managers: Default::default() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn an_event_reads_as_the_real_recorder_writes_it() {
        let event = Recorder::default().record(RS, &web(), "Normal", "SuccessfulCreate", "Created pod: web-1", at(0));
        let expected = value!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": "web.18fae27693b40000", "namespace": "shop"},
            "involvedObject": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "namespace": "shop",
                "uid": "u1", "resourceVersion": "7"},
            "type": "Normal", "reason": "SuccessfulCreate", "message": "Created pod: web-1",
            "source": {"component": "replicaset-controller"}, "count": 1, "eventTime": null,
            "firstTimestamp": "2027-01-15T08:00:00Z", "lastTimestamp": "2027-01-15T08:00:00Z",
            "reportingComponent": "replicaset-controller", "reportingInstance": "",
        });
        assert_eq!(event, Record::New(expected));
    }

    #[test]
    fn the_same_event_again_only_counts() {
        let mut recorder = Recorder::default();
        recorder.record(RS, &web(), "Warning", "FailedCreate", "no", at(0));
        let Record::Again { name, patch, .. } = recorder.record(RS, &web(), "Warning", "FailedCreate", "no", at(5))
        else {
            panic!("must be counted")
        };
        assert_eq!(name, "web.18fae27693b40000");
        assert_eq!(patch, value!({"count": 2, "lastTimestamp": "2027-01-15T08:00:05Z", "message": "no"}));
    }

    #[test]
    fn the_tenth_similar_event_is_combined_and_the_26th_dropped() {
        let mut recorder = Recorder::default();
        let messages: Vec<String> = (1..=27)
            .map(|n| match recorder.record(RS, &web(), "Normal", "Created", &format!("pod {n}"), at(0)) {
                Record::Dropped => "dropped".to_owned(),
                Record::New(event) => event.str_at(&["message"]).unwrap().to_owned(),
                Record::Again { patch, .. } => {
                    format!("{} {}", patch.get("count").unwrap(), patch.get("message").unwrap())
                }
            })
            .collect();
        assert_eq!(messages[8], "pod 9");
        assert_eq!(messages[9], "(combined from similar events): pod 10");
        assert_eq!(messages[10], "2 \"(combined from similar events): pod 11\"");
        assert_eq!(messages[24], "16 \"(combined from similar events): pod 25\"");
        assert_eq!(messages[25..], ["dropped", "dropped"]);
        // Five minutes later there is room for one more.
        let later = |recorder: &mut Recorder| recorder.record(RS, &web(), "Normal", "Created", "pod", at(301));
        assert!(matches!(later(&mut recorder), Record::Again { .. }));
        assert_eq!(later(&mut recorder), Record::Dropped);
    }

    #[test]
    fn names_differ_even_when_time_stands_still() {
        let mut recorder = Recorder::default();
        let mut name = |message| match recorder.record(RS, &web(), "Normal", "Created", message, at(0)) {
            Record::New(event) => event.str_at(&["metadata", "name"]).unwrap().to_owned(),
            _ => panic!("must be new"),
        };
        assert_ne!(name("a"), name("b"));
    }
}
