//! Where the time of the daemon comes from: the system, or a runtime whose clock a test can stop.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A clock.
#[derive(Debug, Clone, Copy, Default)]
pub enum Clock {
    /// The system's.
    #[default]
    Wall,
    /// The runtime's, which was at this time at that instant.
    Runtime(Instant, Timestamp),
}

impl Clock {
    /// The runtime's clock, which is at this time now.
    pub fn runtime(now: Timestamp) -> Clock {
        Clock::Runtime(Instant::now(), now)
    }

    /// The time.
    pub fn now(self) -> Timestamp {
        match self {
            Clock::Wall => Timestamp::now(),
            Clock::Runtime(instant, start) => {
                let passed = SignedDuration::try_from(instant.elapsed()).unwrap_or(SignedDuration::MAX);
                start.saturating_add(passed).unwrap_or(Timestamp::MAX)
            }
        }
    }
}
