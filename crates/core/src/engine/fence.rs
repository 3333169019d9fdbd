//! Never decide on less than you wrote.
//!
//! Each acknowledged write raises the fence of its object; what the watch delivers lowers it. While an object is behind its
//! fence, no pass that read it begins: the cache would show it a world that no longer is. A fence is never dropped because
//! time passed: a decision on an old world is worse than a late one. But it always has a way out. The object is seen, is
//! seen to be gone or replaced, was all of that before the fence was raised (the position of the watch tells), or its
//! resource is no longer served; and what stands longer than [`RELIST_AFTER`] makes the caller relist the resource, which
//! settles whatever a lost event left open. No resource is relisted more often than once in [`RELIST_INTERVAL`]: a tenant
//! whose objects are never seen (by labels that hide them from our watch) cannot make the API server list everyone's.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::key::{Key, ObjectKey, Place, Resource};
use crate::kubernetes::value::Text;

/// How long a fence stands before its resource is relisted.
pub const RELIST_AFTER: SignedDuration = SignedDuration::from_secs(15);
/// How long at least between two relists of a resource.
pub const RELIST_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// What was written and not yet seen.
#[derive(Debug, Clone, Default)]
pub struct Fence {
    /// By subject, so that a pass asks one question.
    ahead: HashMap<Key, BTreeMap<ObjectKey, Raised>>,
    /// Who waits for an object.
    waiting: HashMap<ObjectKey, Vec<Key>>,
    /// When each resource was last relisted because of a fence.
    relisted: BTreeMap<Resource, Timestamp>,
}

/// A fence of one object.
#[derive(Debug, Clone)]
struct Raised {
    written: Written,
    since: Timestamp,
}

/// An acknowledged write.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Written {
    /// The object has this version, or a later one.
    Version(u64),
    /// The object of this uid was deleted, or is about to go, at this version or a later one.
    Deletion(Text, u64),
}

impl Fence {
    /// A write of this subject's pass was acknowledged with this version.
    pub fn wrote(&mut self, key: &Key, object: &ObjectKey, version: u64, now: Timestamp) {
        self.raise(key, object, Written::Version(version), now);
    }

    /// A deletion was acknowledged; `version` is the newest that is known of the object.
    pub fn deleted(&mut self, key: &Key, object: &ObjectKey, uid: &str, version: u64, now: Timestamp) {
        self.raise(key, object, Written::Deletion(uid.into(), version), now);
    }

    fn raise(&mut self, key: &Key, object: &ObjectKey, written: Written, now: Timestamp) {
        let mine = self.ahead.entry(key.clone()).or_default();
        match (mine.get(object).map(|raised| &raised.written), &written) {
            (Some(Written::Version(before)), Written::Version(now)) if before >= now => return,
            _ => mine.insert(object.clone(), Raised { written, since: now }),
        };
        let waiting = self.waiting.entry(object.clone()).or_default();
        if !waiting.contains(key) {
            waiting.push(key.clone());
        }
    }

    /// The resources to relist: some subject has waited longer than [`RELIST_AFTER`] for one of their objects.
    pub fn overdue(&mut self, now: Timestamp) -> BTreeSet<Resource> {
        let late: BTreeSet<Resource> =
            self.due().filter(|(_, due)| *due <= now).map(|(resource, _)| resource.clone()).collect();
        self.relisted.extend(late.iter().map(|resource| (resource.clone(), now)));
        late
    }

    /// When [`Fence::overdue`] has something to say, if nothing is seen before.
    pub fn wake(&self) -> Option<Timestamp> {
        self.due().map(|(_, due)| due).min()
    }

    /// When each fence makes its resource be relisted.
    fn due(&self) -> impl Iterator<Item = (&Resource, Timestamp)> {
        let after = |time: Timestamp, by: SignedDuration| time.saturating_add(by).unwrap_or(Timestamp::MAX);
        self.ahead.values().flatten().map(move |(object, raised)| {
            let relisted = self.relisted.get(&object.resource);
            let next = relisted.map_or(Timestamp::MIN, |relisted| after(*relisted, RELIST_INTERVAL));
            (&object.resource, after(raised.since, RELIST_AFTER).max(next))
        })
    }

    /// The watch delivered this object at this version. Answers who no longer waits for anything.
    pub fn saw(&mut self, object: &ObjectKey, uid: &str, version: u64, terminating: bool) -> Vec<Key> {
        self.lower(object, |written| match written {
            Written::Version(wanted) => version >= *wanted,
            Written::Deletion(of, before) => of != uid || (terminating && version > *before),
        })
    }

    /// The watch said that this object is gone, at this version.
    pub fn saw_gone(&mut self, object: &ObjectKey, version: u64) -> Vec<Key> {
        self.lower(object, |written| match written {
            Written::Version(wanted) => version >= *wanted,
            Written::Deletion(_, before) => version >= *before,
        })
    }

    /// A list of this resource as it was at this version did not have the objects that are not `present`: whatever was
    /// written to them up to then is over.
    pub fn saw_list(&mut self, resource: &Resource, version: u64, present: impl Fn(&Place) -> bool) -> Vec<Key> {
        let absent: Vec<ObjectKey> = self
            .waiting
            .keys()
            .filter(|object| object.resource == *resource && !present(&object.place))
            .cloned()
            .collect();
        absent.iter().flat_map(|object| self.saw_gone(object, version)).collect()
    }

    fn lower(&mut self, object: &ObjectKey, seen: impl Fn(&Written) -> bool) -> Vec<Key> {
        let Some(waiting) = self.waiting.get_mut(object) else { return Vec::new() };
        let mut free = Vec::new();
        waiting.retain(|key| {
            let Some(mine) = self.ahead.get_mut(key) else { return false };
            if mine.get(object).is_some_and(|raised| !seen(&raised.written)) {
                return true;
            }
            mine.remove(object);
            if mine.is_empty() {
                self.ahead.remove(key);
                free.push(key.clone());
            }
            false
        });
        if waiting.is_empty() {
            self.waiting.remove(object);
        }
        free
    }

    /// What this subject must see before its next pass; `None` if it has seen all it wrote.
    pub fn behind(&self, key: &Key) -> Option<&ObjectKey> {
        self.ahead.get(key)?.keys().next()
    }

    /// How many subjects wait.
    pub fn count(&self) -> usize {
        self.ahead.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::key::Machine;

    fn key(name: &str) -> Key {
        Key { machine: Machine::Rollout, place: Place::new("shop", name) }
    }

    fn set(name: &str) -> ObjectKey {
        ObjectKey { resource: Resource::new("apps", "v1", "replicasets"), place: Place::new("shop", name) }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn what_stands_too_long_has_its_resource_relisted() {
        let (mut fence, web) = (Fence::default(), key("web"));
        let sets = set("").resource;
        assert_eq!(fence.wake(), None);
        fence.wrote(&web, &set("web-1"), 7, at(0));
        fence.wrote(&web, &set("web-2"), 8, at(5));
        assert_eq!(fence.wake(), Some(at(15)));
        assert!(fence.overdue(at(14)).is_empty());
        assert_eq!(fence.overdue(at(15)), BTreeSet::from([sets.clone()]));
        assert_eq!(fence.wake(), Some(at(75)), "the list settles all that was written before it");
        fence.saw_list(&sets, 9, |_| false);
        assert_eq!((fence.wake(), fence.count()), (None, 0));
    }

    #[test]
    fn objects_that_are_never_seen_do_not_make_lists_frequent() {
        let (mut fence, hidden, mut lists) = (Fence::default(), key("hidden"), 0);
        for second in 0..600 {
            fence.wrote(&hidden, &set(&format!("run-{second}")), 7, at(second));
            lists += fence.overdue(at(second)).len();
        }
        assert_eq!(lists, 10);
    }

    #[test]
    fn s1_a_subject_waits_until_it_sees_what_it_wrote() {
        let mut fence = Fence::default();
        let (web, api) = (key("web"), key("api"));
        fence.wrote(&web, &set("web-1"), 7, at(0));
        fence.wrote(&web, &set("web-1"), 5, at(0));
        fence.wrote(&web, &set("web-2"), 9, at(0));
        assert_eq!(fence.behind(&web), Some(&set("web-1")));
        assert_eq!(fence.behind(&api), None);
        assert_eq!(fence.saw(&set("web-1"), "u", 6, false), []);
        assert_eq!(fence.saw(&set("web-1"), "u", 7, false), []);
        assert_eq!(fence.behind(&web), Some(&set("web-2")));
        assert_eq!(fence.saw(&set("web-2"), "u", 12, false), vec![web.clone()]);
        assert_eq!(fence.behind(&web), None);
    }

    #[test]
    fn a_deletion_is_seen_as_absence_termination_or_a_successor() {
        for seen in ["gone", "terminating", "successor"] {
            let mut fence = Fence::default();
            let web = key("web");
            fence.deleted(&web, &set("web-1"), "old", 7, at(0));
            assert_eq!(fence.saw(&set("web-1"), "old", 7, false), [], "the object as it was");
            let free = match seen {
                "gone" => fence.saw_gone(&set("web-1"), 8),
                "terminating" => fence.saw(&set("web-1"), "old", 8, true),
                _ => fence.saw(&set("web-1"), "new", 9, false),
            };
            assert_eq!(free, [web]);
        }
    }

    #[test]
    fn l2_a_list_settles_what_a_lost_event_left_open() {
        let mut fence = Fence::default();
        let (web, api) = (key("web"), key("api"));
        fence.wrote(&web, &set("web-1"), 7, at(0));
        fence.wrote(&api, &set("api-1"), 20, at(0));
        let sets = Resource::new("apps", "v1", "replicasets");
        assert_eq!(fence.saw_list(&sets, 10, |_| false), vec![web.clone()]);
        assert_eq!(fence.behind(&api), Some(&set("api-1")), "written after that list");
        fence.saw_list(&sets, 20, |_| false);
        assert!(fence.ahead.is_empty() && fence.waiting.is_empty());
    }
}
