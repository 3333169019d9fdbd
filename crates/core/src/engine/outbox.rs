//! The events about one object that are still to be announced, and what must not be announced twice.
//!
//! Pods come and go in small steps, and each step is an event. While many Rollouts wait for a decision, the steps of one
//! ReplicaSet in one direction are coalesced and go out together with the next event that matters. Never loses a step and
//! never changes the order of anything else.

use jiff::{SignedDuration, Timestamp};

use super::world::Announcement;
use crate::{
    api::constants::{message, reason},
    kubernetes::value::Text,
    rollout::Crowd,
};

/// How long steps may wait for something that matters.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_secs(2);

/// What is still to be announced about one object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outbox {
    events: Vec<Announcement>,
    /// When the first of them happened.
    since: Option<Timestamp>,
    /// The identity of the object whose passes announce here.
    met: Option<Text>,
    /// The rules that its last verdict would have broken, as they were announced.
    refused: Option<String>,
}

impl Outbox {
    /// Whether this object has no pass behind it. Another one of its name is another object.
    pub fn meet(&mut self, uid: Option<&Text>) -> bool {
        let is_new = self.met.as_ref() != uid;
        if is_new {
            self.met = uid.cloned();
        }
        is_new
    }

    /// Whether a refused verdict is news.
    pub fn is_refused(&mut self, message: &str) -> bool {
        let is_news = self.refused.as_deref() != Some(message);
        if is_news {
            self.refused = Some(message.to_owned());
        }
        is_news
    }

    /// The verdict breaks no rule.
    pub fn is_allowed(&mut self) {
        self.refused = None;
    }

    /// Adds what a pass announces.
    pub fn add(&mut self, announcements: Vec<Announcement>, now: Timestamp) {
        for announcement in announcements {
            self.since.get_or_insert(now);
            let event = &announcement.event;
            let steps = self.events.iter_mut().filter(|before| is_step(before) && is_step(&announcement));
            let joined =
                steps.filter_map(|before| Some((message::scaled_on(&before.event.message, &event.message)?, before)));
            match joined.last() {
                Some((message, before)) => before.event.message = message,
                None => self.events.push(announcement),
            }
        }
    }

    /// Until when all of it waits, if it does.
    pub fn wait(&self, crowd: Crowd, now: Timestamp) -> Option<Timestamp> {
        let latest = self.since?.saturating_add(LONGEST_WAIT).unwrap_or(Timestamp::MAX);
        (crowd == Crowd::Many && latest > now && self.events.iter().all(is_step)).then_some(latest)
    }

    /// Whether there is nothing to announce.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// What is to be announced, in its order; nothing is left.
    pub fn take(&mut self) -> Vec<Announcement> {
        self.since = None;
        std::mem::take(&mut self.events)
    }
}

fn is_step(announcement: &Announcement) -> bool {
    announcement.event.reason == reason::SCALING_REPLICA_SET
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::constants::kind, kubernetes::value::Value, model::event::Event};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn announcement(reason: &'static str, message: String) -> Announcement {
        let event = Event { warning: false, reason, message };
        Announcement { kind: kind::ROLLOUT, object: Value::Null, event }
    }

    fn scaled(direction: &str, set: &str, from: i32, to: i32) -> Announcement {
        announcement(reason::SCALING_REPLICA_SET, message::scaled(direction, set, 2, from, to))
    }

    fn completed() -> Announcement {
        announcement(reason::ROLLOUT_COMPLETED, "done".into())
    }

    fn announced(mut outbox: Outbox) -> Vec<String> {
        outbox.take().into_iter().map(|announcement| announcement.event.message).collect()
    }

    #[test]
    fn steps_of_one_set_in_one_direction_become_one() {
        let mut outbox = Outbox::default();
        let steps = [("up", "new", 0, 1), ("down", "old", 3, 2), ("up", "new", 1, 3), ("down", "old", 2, 0)];
        for (direction, set, from, to) in steps {
            outbox.add(vec![scaled(direction, set, from, to)], NOW);
        }
        outbox.add(vec![completed()], NOW);
        let up = "Scaled up ReplicaSet new (revision 2) from 0 to 3";
        let down = "Scaled down ReplicaSet old (revision 2) from 3 to 0";
        assert_eq!(announced(outbox), [up, down, "done"]);
    }

    #[test]
    fn what_turned_back_or_left_a_gap_is_not_joined() {
        let mut outbox = Outbox::default();
        outbox.add(vec![scaled("up", "new", 0, 2), scaled("down", "new", 2, 0), scaled("up", "new", 0, 1)], NOW);
        outbox.add(vec![scaled("up", "new", 3, 4), completed(), completed(), scaled("up", "new", 1, 3)], NOW);
        let announced = announced(outbox);
        assert_eq!(announced.len(), 6, "what matters is never joined: {announced:?}");
        assert_eq!(announced[2], "Scaled up ReplicaSet new (revision 2) from 0 to 3");
    }

    #[test]
    fn steps_wait_in_a_crowd_and_not_for_ever() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.wait(Crowd::Many, NOW), None, "nothing waits for nothing");
        outbox.add(vec![scaled("up", "new", 0, 1)], NOW);
        assert_eq!(outbox.wait(Crowd::Few, NOW), None);
        assert_eq!(outbox.wait(Crowd::Many, NOW), Some(NOW + LONGEST_WAIT));
        outbox.add(vec![scaled("up", "new", 1, 2)], NOW + SignedDuration::from_secs(1));
        assert_eq!(outbox.wait(Crowd::Many, NOW + SignedDuration::from_secs(1)), Some(NOW + LONGEST_WAIT));
        assert_eq!(outbox.wait(Crowd::Many, NOW + LONGEST_WAIT), None);
        outbox.add(vec![completed()], NOW);
        assert_eq!(outbox.wait(Crowd::Many, NOW), None, "something matters");
        assert_eq!(outbox.take().len(), 2);
        assert_eq!(outbox, Outbox::default());
    }

    #[test]
    fn a_new_object_of_the_same_name_is_met_anew_and_a_refusal_is_news_once() {
        let mut outbox = Outbox::default();
        let (one, other) = (Text::from("1"), Text::from("2"));
        assert_eq!([&one, &one, &other].map(|uid| outbox.meet(Some(uid))), [true, false, true]);
        assert_eq!(["a", "a", "b"].map(|message| outbox.is_refused(message)), [true, false, true]);
        outbox.is_allowed();
        assert!(outbox.is_refused("b"));
    }
}
