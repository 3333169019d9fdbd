//! The time of an embedded cluster: a value, so that a test, a seed or a forecast can own it.

use jiff::{SignedDuration, Timestamp, tz::Offset};

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
    with_rfc3339(time, |text| text.into())
}

/// Makes something of that text, without keeping it. Digit by digit: a general formatter takes ten times as long, and each
/// status that is written has a dozen moments.
pub fn with_rfc3339<T>(time: Timestamp, make: impl FnOnce(&str) -> T) -> T {
    let civil = Offset::UTC.to_datetime(time);
    let Ok(year) = u16::try_from(civil.year()) else {
        return make(&time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    };
    let mut text = *b"0000-00-00T00:00:00Z";
    let [month, day] = [civil.month(), civil.day()].map(i8::unsigned_abs);
    let [hour, minute, second] = [civil.hour(), civil.minute(), civil.second()].map(i8::unsigned_abs);
    let (century, year) = ((year / 100) as u8, (year % 100) as u8);
    let parts = [(0, century), (2, year), (5, month), (8, day), (11, hour), (14, minute), (17, second)];
    for (at, part) in parts {
        (text[at], text[at + 1]) = (b'0' + part / 10, b'0' + part % 10);
    }
    // Digits and their separators are text.
    make(std::str::from_utf8(&text).unwrap_or_default())
}

/// `metav1.MicroTime`: RFC 3339 to the microsecond.
pub fn rfc3339_micro(time: Timestamp) -> Text {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_moment_is_written_as_a_general_formatter_writes_it(
            second in Timestamp::MIN.as_second()..=Timestamp::MAX.as_second(),
            fraction in 0..1_000_000_000,
        ) {
            let time = Timestamp::new(second, fraction).unwrap_or(Timestamp::UNIX_EPOCH);
            prop_assert_eq!(rfc3339(time).to_string(), time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
    }
}
