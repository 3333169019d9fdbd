//! Who is looked at next.
//!
//! A key is in the queue at most once, and is worked on by one worker at a time: what happens to it meanwhile brings it
//! back. Namespaces take turns, so that ten thousand rollouts of one team do not delay the single one of another. Who is only
//! looked at again, because a watch began anew, lets those go first to whom something happened. A failed
//! pass is tried again after 1 ms, then ever later up to 10 s; news about the object ends that wait and forgets the
//! failures, since they were about an older world.
//!
//! Never reads a clock: who calls says what time it is.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::key::Key;
use crate::kubernetes::value::Text;

/// The first wait after a failure; it doubles with each further one.
const FIRST: SignedDuration = SignedDuration::from_millis(1);
/// The longest wait after a failure.
const LONGEST: SignedDuration = SignedDuration::from_secs(10);

/// How many with news may go before one that is looked at again.
const PATIENCE: u32 = 8;

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Well. Time alone changes something at the given moment, if one is given.
    Settled(Option<Timestamp>),
    /// Something could not be read or written: try again soon, and not before this moment if the server named one.
    Failed(Option<Timestamp>),
}

/// The keys that wait for a pass.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    /// Those that are due, by namespace.
    lanes: BTreeMap<Text, VecDeque<Key>>,
    /// The namespaces that have any, in the order of their turns.
    turns: VecDeque<Text>,
    /// What is in a lane.
    queued: HashSet<Key>,
    /// Those that are looked at again, and to whom nothing has happened as far as anybody knows, in their order.
    again: VecDeque<Key>,
    /// Which of them still wait there.
    calm: HashSet<Key>,
    /// How often in a row somebody with news went before them.
    passed_over: u32,
    /// What is being worked on, and whether there was news meanwhile.
    running: HashMap<Key, bool>,
    /// Who comes back by itself, soonest first.
    timers: BTreeSet<(Timestamp, Key)>,
    /// When each of them does.
    due: HashMap<Key, Timestamp>,
    /// How often in a row a key's passes failed.
    failures: HashMap<Key, u32>,
}

impl Queue {
    /// There is news about this key: it is looked at as soon as it has its turn.
    pub fn add(&mut self, key: &Key) {
        self.failures.remove(key);
        self.push(key);
    }

    /// Nothing is known to have happened to this key, but something may have: it is looked at when there is time.
    pub fn add_again(&mut self, key: &Key) {
        if !self.running.contains_key(key) && !self.queued.contains(key) && self.calm.insert(key.clone()) {
            self.again.push_back(key.clone());
        } else if self.running.contains_key(key) {
            self.push(key);
        }
    }

    /// Looks at this key at that time, if nothing brings it back before.
    pub fn add_at(&mut self, key: &Key, time: Timestamp) {
        if self.due.get(key).is_some_and(|due| *due <= time) {
            return;
        }
        self.cancel(key);
        self.due.insert(key.clone(), time);
        self.timers.insert((time, key.clone()));
    }

    /// The next key to work on. Tell how it went with [`Queue::done`].
    pub fn next(&mut self, now: Timestamp) -> Option<Key> {
        while let Some((time, key)) = self.timers.first().cloned()
            && time <= now
        {
            self.cancel(&key);
            self.push(&key);
        }
        let key = self.pick()?;
        // A pass sees everything: what it was to come back for is looked at now, and it says anew when to come back.
        self.cancel(&key);
        self.running.insert(key.clone(), false);
        Some(key)
    }

    /// Who has news, namespace by namespace; then, and once in a while before, who is looked at again.
    fn pick(&mut self) -> Option<Key> {
        if self.turns.is_empty() || self.passed_over >= PATIENCE {
            self.passed_over = 0;
            while let Some(key) = self.again.pop_front() {
                // Who is no longer there has got news, and has gone.
                if self.calm.remove(&key) {
                    return Some(key);
                }
            }
        }
        let namespace = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&namespace)?;
        let key = lane.pop_front()?;
        if lane.is_empty() {
            self.lanes.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        self.queued.remove(&key);
        self.passed_over += 1;
        Some(key)
    }

    /// A pass has ended.
    pub fn done(&mut self, key: &Key, outcome: Outcome, now: Timestamp) {
        let news = self.running.remove(key).unwrap_or(false);
        match outcome {
            Outcome::Settled(wake) => {
                self.failures.remove(key);
                if let Some(time) = wake {
                    self.add_at(key, time);
                }
                if news {
                    self.push(key);
                }
            }
            Outcome::Failed(after) => {
                let failures = self.failures.entry(key.clone()).or_default();
                let wait = FIRST.saturating_mul(1 << (*failures).min(14)).min(LONGEST);
                *failures = failures.saturating_add(1);
                let time = now.saturating_add(wait).unwrap_or(Timestamp::MAX).max(after.unwrap_or(Timestamp::MIN));
                self.add_at(key, time);
                // The failed pass may have been about the older world.
                if news && after.is_none() {
                    self.add(key);
                }
            }
        }
    }

    /// The object is gone: nothing is remembered of it. A pass that is under way ends by itself.
    pub fn forget(&mut self, key: &Key) {
        self.cancel(key);
        self.failures.remove(key);
        self.calm.remove(key);
    }

    /// When [`Queue::next`] has something, if nothing is added before: at once, or when the first timer is due.
    pub fn wake(&self, now: Timestamp) -> Option<Timestamp> {
        if self.turns.is_empty() && self.calm.is_empty() {
            self.timers.first().map(|(time, _)| *time)
        } else {
            Some(now)
        }
    }

    /// How many keys are due, and how many are being worked on.
    pub fn depth(&self) -> (usize, usize) {
        (self.queued.len() + self.calm.len(), self.running.len())
    }

    fn push(&mut self, key: &Key) {
        if let Some(news) = self.running.get_mut(key) {
            *news = true;
            return;
        }
        if !self.queued.insert(key.clone()) {
            return;
        }
        self.calm.remove(key);
        let namespace = &key.place.namespace;
        let lane = self.lanes.entry(namespace.clone()).or_default();
        if lane.is_empty() {
            self.turns.push_back(namespace.clone());
        }
        lane.push_back(key.clone());
    }

    fn cancel(&mut self, key: &Key) {
        if let Some(time) = self.due.remove(key) {
            self.timers.remove(&(time, key.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::key::{Machine, Place};

    fn key(namespace: &str, name: &str) -> Key {
        Key { machine: Machine::Rollout, place: Place::new(namespace, name) }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    /// Everything that is due at this time, each settled at once.
    fn drain(queue: &mut Queue, now: Timestamp) -> Vec<String> {
        let mut order = Vec::new();
        while let Some(key) = queue.next(now) {
            order.push(key.place.to_string());
            queue.done(&key, Outcome::Settled(None), now);
        }
        order
    }

    #[test]
    fn namespaces_take_turns() {
        let mut queue = Queue::default();
        for (namespace, name) in [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("c", "1"), ("b", "2"), ("a", "2")] {
            queue.add(&key(namespace, name));
        }
        assert_eq!(drain(&mut queue, at(0)), ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]);
        assert_eq!(queue.wake(at(0)), None);
    }

    #[test]
    fn l12_news_go_before_ten_thousand_that_are_looked_at_again() {
        let mut queue = Queue::default();
        let all: Vec<Key> = (0..10_000).map(|number| key("a", &number.to_string())).collect();
        all.iter().for_each(|key| queue.add_again(key));
        queue.add(&key("a", "9999"));
        queue.add_again(&key("a", "9999"));
        assert_eq!(queue.depth(), (10_000, 0));
        let order = drain(&mut queue, at(0));
        assert_eq!(order[..2], ["a/9999", "a/0"]);
        assert_eq!(order.len(), 10_000, "each once");
        assert_eq!(queue.wake(at(0)), None);
    }

    #[test]
    fn who_is_looked_at_again_is_not_forgotten() {
        let mut queue = Queue::default();
        queue.add_again(&key("a", "calm"));
        (0..20).for_each(|number| queue.add(&key("a", &number.to_string())));
        assert_eq!(drain(&mut queue, at(0)).iter().position(|key| key == "a/calm"), Some(8));
        // Gone, or there is news: it is not looked at twice.
        queue.add_again(&key("a", "calm"));
        queue.forget(&key("a", "calm"));
        assert_eq!(drain(&mut queue, at(0)), Vec::<String>::new());
        queue.add_again(&key("a", "calm"));
        queue.add(&key("a", "calm"));
        assert_eq!(drain(&mut queue, at(0)), ["a/calm"]);
    }

    #[test]
    fn news_during_a_pass_bring_the_key_back_once() {
        let mut queue = Queue::default();
        let web = key("a", "web");
        queue.add(&web);
        assert_eq!(queue.next(at(0)), Some(web.clone()));
        queue.add(&web);
        queue.add(&web);
        assert_eq!(queue.next(at(0)), None, "one worker at a time");
        queue.done(&web, Outcome::Settled(None), at(1));
        assert_eq!(drain(&mut queue, at(1)), ["a/web"]);
    }

    #[test]
    fn a_timer_fires_once_and_the_soonest_counts() {
        let mut queue = Queue::default();
        let web = key("a", "web");
        queue.add_at(&web, at(50));
        queue.add_at(&web, at(80));
        queue.add_at(&web, at(20));
        assert_eq!(queue.wake(at(0)), Some(at(20)));
        assert_eq!(drain(&mut queue, at(19)), Vec::<String>::new());
        assert_eq!(drain(&mut queue, at(20)), ["a/web"]);
        assert_eq!(queue.wake(at(20)), None);
    }

    #[test]
    fn a_pass_replaces_the_wake_of_the_one_before() {
        let mut queue = Queue::default();
        let web = key("a", "web");
        queue.add(&web);
        queue.next(at(0));
        queue.done(&web, Outcome::Settled(Some(at(100))), at(0));
        queue.add(&web);
        queue.next(at(10));
        queue.done(&web, Outcome::Settled(Some(at(500))), at(10));
        assert_eq!(queue.wake(at(10)), Some(at(500)));
    }

    #[test]
    fn s8_failures_wait_ever_longer_up_to_ten_seconds_and_news_end_the_wait() {
        let mut queue = Queue::default();
        let web = key("a", "web");
        queue.add(&web);
        let (mut now, mut waits) = (at(0), Vec::new());
        for _ in 0..16 {
            assert_eq!(queue.next(now), Some(web.clone()));
            queue.done(&web, Outcome::Failed(None), now);
            let wake = queue.wake(now).unwrap();
            waits.push(wake.duration_since(now).as_millis());
            now = wake;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 10_000, 10_000]);
        queue.add(&web);
        assert_eq!(queue.next(now), Some(web.clone()));
        queue.done(&web, Outcome::Failed(None), now);
        assert_eq!(queue.wake(now), Some(now + SignedDuration::from_millis(1)));
    }

    #[test]
    fn a_server_that_asks_for_patience_gets_it() {
        let mut queue = Queue::default();
        let web = key("a", "web");
        queue.add(&web);
        queue.next(at(0));
        queue.add(&web);
        queue.done(&web, Outcome::Failed(Some(at(3_000))), at(0));
        assert_eq!(queue.wake(at(0)), Some(at(3_000)));
    }

    #[test]
    fn nothing_is_remembered_of_what_is_gone() {
        let mut queue = Queue::default();
        let web = key("a", "web");
        queue.add(&web);
        queue.next(at(0));
        queue.done(&web, Outcome::Failed(None), at(0));
        queue.forget(&web);
        assert_eq!(queue.wake(at(0)), None);
        assert_eq!(queue.depth(), (0, 0));
        assert!(queue.failures.is_empty() && queue.due.is_empty() && queue.lanes.is_empty());
    }
}
