//! The time of an embedded cluster: a value, so that a test, a seed or a forecast can own it.

use jiff::{SignedDuration, Timestamp};

use super::value::Text;

/// Where "now" comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The last time the front told; it tells before each request and step.
    Wall(Timestamp),
    /// Moves only when somebody advances it.
    Virtual(Timestamp),
}

impl Clock {
    /// The time.
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::Wall(now) | Clock::Virtual(now) => *now,
        }
    }

    /// Tells a wall clock the time. A clock never runs backwards; a virtual one does not listen.
    pub fn tell(&mut self, time: Timestamp) {
        if let Clock::Wall(now) = self {
            *now = time.max(*now);
        }
    }

    /// Moves the clock forward by hand.
    pub fn advance(&mut self, by: SignedDuration) {
        match self {
            Clock::Wall(now) | Clock::Virtual(now) => *now = now.saturating_add(by).unwrap_or(Timestamp::MAX),
        }
    }
}

/// `metav1.Time`: RFC 3339 to the second.
pub fn rfc3339(time: Timestamp) -> Text {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

/// `metav1.MicroTime`: RFC 3339 to the microsecond.
pub fn rfc3339_micro(time: Timestamp) -> Text {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into()
}
