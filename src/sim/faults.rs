//! What goes wrong: requests that fail or whose answers are lost, an engine that dies, watches that lag or break off.
//!
//! A fault is either told by the number of the engine's write, so that a test can try every one of them, or drawn from a
//! seed, so that the same seed has the same bad day. Never touches an object itself: everything goes through requests.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use crate::{
    embedded::store::request::Request,
    engine::{cache::News, key::Resource},
};

/// What happens to one write of the engine.
#[derive(Debug, Clone)]
pub enum Fault {
    /// 409, and nothing was written: somebody was faster.
    Conflict,
    /// 429, and nothing was written: come back after so long.
    Busy(SignedDuration),
    /// 500, and nothing was written.
    Error,
    /// It was written, but the answer did not arrive.
    Lost,
    /// It was written, and then the engine died; it is back after so long.
    Crash(SignedDuration),
    /// Somebody else's request came first.
    Meanwhile(Box<Request>),
}

/// Everything that goes wrong.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// By the number of the engine's write, counted from 0.
    pub writes: BTreeMap<u64, Fault>,
    /// A bad day.
    pub weather: Option<Weather>,
}

/// A bad day: each thing goes wrong with a chance.
#[derive(Debug, Clone)]
pub struct Weather {
    /// What is drawn.
    pub dice: Dice,
    /// Of a thousand writes, how many fail in some way.
    pub writes: u64,
    /// How long a delivery may take, at most.
    pub lag: SignedDuration,
    /// Of a thousand deliveries, how many break the watch off: what was under way is lost, and everything is listed anew.
    pub breaks: u64,
}

impl Faults {
    /// What happens to the write of this number.
    pub fn of_write(&mut self, number: u64) -> Option<Fault> {
        if let Some(fault) = self.writes.remove(&number) {
            return Some(fault);
        }
        let weather = self.weather.as_mut()?;
        if weather.dice.below(1000) >= weather.writes {
            return None;
        }
        Some(match weather.dice.below(6) {
            0 | 1 => Fault::Conflict,
            2 => Fault::Busy(SignedDuration::from_secs(1)),
            3 => Fault::Error,
            4 => Fault::Lost,
            _ => Fault::Crash(SignedDuration::from_millis(200)),
        })
    }

    /// How long the next delivery takes.
    fn lag(&mut self) -> SignedDuration {
        let Some(weather) = &mut self.weather else { return SignedDuration::ZERO };
        let most = u64::try_from(weather.lag.as_millis()).unwrap_or_default();
        SignedDuration::from_millis(i64::try_from(weather.dice.below(most + 1)).unwrap_or_default())
    }

    fn breaks_off(&mut self) -> bool {
        self.weather.as_mut().is_some_and(|weather| weather.dice.below(1000) < weather.breaks)
    }
}

/// What watches have yet to deliver. Each resource has a watch of its own: one may lag while another does not.
#[derive(Debug, Clone, Default)]
pub struct Streams(BTreeMap<Resource, Stream>);

#[derive(Debug, Clone, Default)]
struct Stream {
    under_way: VecDeque<(Timestamp, News)>,
    /// When everything is listed anew, if the watch broke off.
    list_at: Option<Timestamp>,
}

/// What comes next out of a watch.
#[derive(Debug, PartialEq)]
pub enum Delivery {
    /// News, in order.
    News(News),
    /// The watch broke off and is back: list everything as it is now.
    List,
}

/// How long it takes to come back after a watch broke off.
const RELIST: SignedDuration = SignedDuration::from_millis(800);

impl Streams {
    /// Something happened to an object of this resource.
    pub fn push(&mut self, resource: &Resource, news: News, now: Timestamp, faults: &mut Faults) {
        let stream = self.0.entry(resource.clone()).or_default();
        if stream.list_at.is_some() {
            return;
        }
        let later = |by: SignedDuration| now.saturating_add(by).unwrap_or(Timestamp::MAX);
        if faults.breaks_off() {
            stream.under_way.clear();
            stream.list_at = Some(later(RELIST));
            return;
        }
        // One watch never delivers out of order.
        let last = stream.under_way.back().map_or(now, |(due, _)| *due);
        stream.under_way.push_back((later(faults.lag()).max(last), news));
    }

    /// The watch begins anew then: what was under way is lost, and everything is listed.
    pub fn begin_anew(&mut self, resource: &Resource, now: Timestamp) {
        let stream = self.0.entry(resource.clone()).or_default();
        stream.under_way.clear();
        stream.list_at = Some(now);
    }

    /// Nobody follows this resource any more.
    pub fn end(&mut self, resource: &Resource) {
        self.0.remove(resource);
    }

    /// What is delivered now, if anything is.
    pub fn next(&mut self, now: Timestamp) -> Option<(Resource, Delivery)> {
        for (resource, stream) in &mut self.0 {
            if stream.list_at.is_some_and(|due| due <= now) {
                stream.list_at = None;
                return Some((resource.clone(), Delivery::List));
            }
            if stream.under_way.front().is_some_and(|(due, _)| *due <= now)
                && let Some((_, news)) = stream.under_way.pop_front()
            {
                return Some((resource.clone(), Delivery::News(news)));
            }
        }
        None
    }

    /// When something is delivered.
    pub fn wake(&self) -> Option<Timestamp> {
        let due = |stream: &Stream| stream.list_at.or(stream.under_way.front().map(|(due, _)| *due));
        self.0.values().filter_map(due).min()
    }
}

/// Chance that a seed decides (splitmix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The dice of a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).checked_rem(limit).unwrap_or_default()
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let index = self.below(u64::try_from(of.len()).unwrap_or(u64::MAX));
        of.get(usize::try_from(index).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn news(version: u64) -> News {
        News::Object(value!({"metadata": {"name": "web", "resourceVersion": version.to_string()}}))
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn a_watch_that_lags_stays_in_order() {
        let weather = Weather { dice: Dice::new(1), writes: 0, lag: SignedDuration::from_secs(1), breaks: 0 };
        let (mut faults, mut streams) = (Faults { weather: Some(weather), ..Faults::default() }, Streams::default());
        let pods = Resource::new("", "v1", "pods");
        (0..20).for_each(|version| streams.push(&pods, news(version), at(0), &mut faults));
        let mut seen = Vec::new();
        while let Some(due) = streams.wake() {
            while let Some((_, delivery)) = streams.next(due) {
                seen.push(delivery);
            }
        }
        assert_eq!(seen, (0..20).map(|version| Delivery::News(news(version))).collect::<Vec<_>>());
    }

    #[test]
    fn a_watch_that_broke_off_lists_everything_once_it_is_back() {
        let weather = Weather { dice: Dice::new(1), writes: 0, lag: SignedDuration::ZERO, breaks: 1000 };
        let (mut faults, mut streams) = (Faults { weather: Some(weather), ..Faults::default() }, Streams::default());
        let pods = Resource::new("", "v1", "pods");
        (0..5).for_each(|version| streams.push(&pods, news(version), at(0), &mut faults));
        assert_eq!((streams.next(at(799)), streams.wake()), (None, Some(at(800))));
        assert_eq!(streams.next(at(800)), Some((pods, Delivery::List)));
        assert_eq!(streams.wake(), None);
    }
}
