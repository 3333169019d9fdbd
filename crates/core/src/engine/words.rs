//! What is still to be said about a Rollout, when there is so much to do that some of it waits.
//!
//! Pods come and go in small steps, and each step is an event. While many Rollouts wait for a decision, the steps of one
//! ReplicaSet in one direction are told as one, together with the next event that matters. Never loses a step and never
//! changes the order of anything else.

use jiff::{SignedDuration, Timestamp};

use crate::{
    api::constants::{message, reason},
    model::event::Event,
    rollout::Crowd,
};

/// How long steps may wait for something that matters.
const PATIENCE: SignedDuration = SignedDuration::from_secs(2);

/// What is still to be said about one Rollout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    events: Vec<Event>,
    /// When the first of them happened.
    since: Option<Timestamp>,
}

impl Words {
    /// Adds what a pass has to say.
    pub fn add(&mut self, events: impl IntoIterator<Item = Event>, now: Timestamp) {
        for event in events {
            self.since.get_or_insert(now);
            let steps = self.events.iter_mut().filter(|before| is_step(before) && is_step(&event));
            let joined =
                steps.filter_map(|before| Some((message::scaled_on(&before.message, &event.message)?, before)));
            match joined.last() {
                Some((told, before)) => before.message = told,
                None => self.events.push(event),
            }
        }
    }

    /// Until when all of it waits, if it does.
    pub fn wait(&self, crowd: Crowd, now: Timestamp) -> Option<Timestamp> {
        let latest = self.since?.saturating_add(PATIENCE).unwrap_or(Timestamp::MAX);
        (crowd == Crowd::Many && latest > now && self.events.iter().all(is_step)).then_some(latest)
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// What is to be said, in its order; nothing is left.
    pub fn take(&mut self) -> Vec<Event> {
        self.since = None;
        std::mem::take(&mut self.events)
    }
}

fn is_step(event: &Event) -> bool {
    event.reason == reason::SCALING_REPLICA_SET
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn scaled(direction: &str, set: &str, from: i32, to: i32) -> Event {
        let message = message::scaled(direction, set, 2, from, to);
        Event { warning: false, reason: reason::SCALING_REPLICA_SET, message }
    }

    fn completed() -> Event {
        Event { warning: false, reason: reason::ROLLOUT_COMPLETED, message: "done".into() }
    }

    fn told(mut words: Words) -> Vec<String> {
        words.take().into_iter().map(|event| event.message).collect()
    }

    #[test]
    fn steps_of_one_set_in_one_direction_become_one() {
        let mut words = Words::default();
        let steps = [("up", "new", 0, 1), ("down", "old", 3, 2), ("up", "new", 1, 3), ("down", "old", 2, 0)];
        for (direction, set, from, to) in steps {
            words.add([scaled(direction, set, from, to)], NOW);
        }
        words.add([completed()], NOW);
        let up = "Scaled up ReplicaSet new (revision 2) from 0 to 3";
        let down = "Scaled down ReplicaSet old (revision 2) from 3 to 0";
        assert_eq!(told(words), [up, down, "done"]);
    }

    #[test]
    fn what_turned_back_or_left_a_gap_is_told_apart() {
        let mut words = Words::default();
        words.add([scaled("up", "new", 0, 2), scaled("down", "new", 2, 0), scaled("up", "new", 0, 1)], NOW);
        words.add([scaled("up", "new", 3, 4), completed(), completed(), scaled("up", "new", 1, 3)], NOW);
        let told = told(words);
        assert_eq!(told.len(), 6, "what matters is never joined: {told:?}");
        assert_eq!(told[2], "Scaled up ReplicaSet new (revision 2) from 0 to 3");
    }

    #[test]
    fn steps_wait_in_a_crowd_and_not_for_ever() {
        let mut words = Words::default();
        assert_eq!(words.wait(Crowd::Many, NOW), None, "nothing waits for nothing");
        words.add([scaled("up", "new", 0, 1)], NOW);
        assert_eq!(words.wait(Crowd::Few, NOW), None);
        assert_eq!(words.wait(Crowd::Many, NOW), Some(NOW + PATIENCE));
        words.add([scaled("up", "new", 1, 2)], NOW + SignedDuration::from_secs(1));
        assert_eq!(words.wait(Crowd::Many, NOW + SignedDuration::from_secs(1)), Some(NOW + PATIENCE));
        assert_eq!(words.wait(Crowd::Many, NOW + PATIENCE), None);
        words.add([completed()], NOW);
        assert_eq!(words.wait(Crowd::Many, NOW), None, "something matters");
        assert_eq!(words.take().len(), 2);
        assert_eq!(words, Words::default());
    }
}
