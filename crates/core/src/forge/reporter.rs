//! Which commit statuses are still to be posted, and when: coalesced, throttled, retried with backoff.
//!
//! One status at a time for each commit and context: the newest wins, the same is not posted twice, progress is posted with
//! growing pauses, and the final status is never crowded out by those before it. Keeps nothing but values, so that it can be
//! written down and read back after a restart. Never waits, never talks, never fails a rollout (S61, S62, L13).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Outcome, State, Status, follows};

/// Requests for one commit and context, at most; the last few are kept for its last word.
const MOST: u32 = 50;
const KEPT_FOR_THE_END: u32 = 5;
/// Requests that fail in a row before we give up.
const PATIENCE: u32 = 12;
/// Requests in an hour and in a minute; progress has to leave room for last words. The tightest host allows 500 and 80.
const HOURLY: usize = 450;
const HOURLY_PROGRESS: usize = 300;
const A_MINUTE: usize = 60;
/// How long to wait after a refusal that a person must resolve.
const REFUSED: SignedDuration = SignedDuration::from_hours(1);

/// What commits of one repository are to be told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reporter {
    /// By commit, then by context.
    commits: BTreeMap<String, BTreeMap<String, Pair>>,
    /// When requests were made, for an hour.
    #[serde(default)]
    recent: Vec<Timestamp>,
}

/// A commit and a context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pair {
    wanted: Status,
    since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    posted: Option<Status>,
    /// When something was last asked of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Timestamp>,
    #[serde(default)]
    requests: u32,
    #[serde(default)]
    failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    #[serde(default)]
    gave_up: bool,
    /// The host's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Digests of the progress that was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    told: Vec<u32>,
    #[serde(skip)]
    under_way: bool,
}

/// A request to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The commit.
    pub sha: String,
    /// What the status is called.
    pub context: String,
    /// What it says.
    pub status: Status,
    /// The host's name for an earlier one.
    pub earlier: Option<String>,
}

/// What a host can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Progress as often as we like, within its limits.
    Told,
    /// That it has begun, and how it ended.
    Once,
}

impl Reporter {
    /// Takes note of what a commit is to be told.
    pub fn want(&mut self, sha: &str, context: &str, status: Status, now: Timestamp) {
        let contexts = self.commits.entry(sha.to_owned()).or_default();
        let Some(pair) = contexts.get_mut(context) else {
            contexts.insert(context.to_owned(), Pair::new(status, now));
            return;
        };
        if pair.wanted == status || !follows(pair.wanted.state, status.state) {
            return;
        }
        pair.wanted = status;
        pair.since = now;
    }

    /// The next request to make now, last words first. It stays under way until [`Reporter::done`].
    pub fn due(&mut self, now: Timestamp, progress: Progress) -> Option<Work> {
        self.recent.retain(|at| now.duration_since(*at) < SignedDuration::from_hours(1));
        let (room, room_for_progress) = self.room(now);
        let fits = |state: State| if state.ends() { room } else { room_for_progress };
        let ready = |pair: &Pair| fits(pair.wanted.state) && pair.ready(progress).is_some_and(|at| at <= now);
        let (sha, context) = self
            .pairs()
            .filter(|(_, _, pair)| ready(pair))
            .min_by_key(|(_, _, pair)| (!pair.wanted.state.ends(), pair.since))
            .map(|(sha, context, _)| (sha.to_owned(), context.to_owned()))?;
        self.recent.push(now);
        let pair = self.pair(&sha, &context)?;
        pair.under_way = true;
        pair.requests += 1;
        pair.asked = Some(now);
        let (status, earlier) = (pair.wanted.clone(), pair.name.clone());
        Some(Work { sha, context, status, earlier })
    }

    /// When there may be something to do next.
    pub fn wake(&self, now: Timestamp, progress: Progress) -> Option<Timestamp> {
        let (room, room_for_progress) = self.room(now);
        let next = |(_, _, pair): (&str, &str, &Pair)| {
            let at = pair.ready(progress)?;
            let fits = if pair.wanted.state.ends() { room } else { room_for_progress };
            Some(if fits { at } else { at.max(later(now, SignedDuration::from_mins(1))) })
        };
        self.pairs().filter_map(next).min()
    }

    /// Learns what became of a request.
    pub fn done(&mut self, work: &Work, outcome: Outcome, now: Timestamp) {
        let Some(pair) = self.pair(&work.sha, &work.context) else { return };
        pair.under_way = false;
        match outcome {
            Outcome::Posted(name) => {
                pair.name = name.or(pair.name.take());
                if !work.status.state.ends() {
                    pair.told.push(digest(&work.status));
                }
                pair.posted = Some(work.status.clone());
                pair.failures = 0;
                pair.not_before = None;
                pair.trouble = None;
            }
            Outcome::Retry(at, why) => {
                let backoff = backoff(pair.failures, &work.sha);
                pair.failed(why, at.unwrap_or_else(|| later(now, backoff)));
            }
            Outcome::Forbidden(why) => pair.failed(why, later(now, REFUSED)),
            Outcome::GiveUp(why) => {
                pair.trouble = Some(why);
                pair.gave_up = true;
            }
        }
    }

    /// Tries again at once what was refused: somebody gave us another token.
    pub fn unblock(&mut self) {
        for pair in self.commits.values_mut().flat_map(BTreeMap::values_mut) {
            pair.not_before = None;
            pair.failures = 0;
            pair.gave_up &= pair.requests >= MOST;
        }
    }

    /// What does not work, by commit and context.
    pub fn troubles(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.pairs().filter_map(|(sha, context, pair)| Some((sha, context, pair.trouble.as_deref()?)))
    }

    /// The commits whose last word is not told yet.
    pub fn open(&self) -> impl Iterator<Item = (&str, &str, &Status)> {
        self.pairs().filter(|(_, _, pair)| !pair.over()).map(|(sha, context, pair)| (sha, context, &pair.wanted))
    }

    /// Forgets what was told, or given up, before a moment.
    pub fn forget(&mut self, before: Timestamp) {
        for contexts in self.commits.values_mut() {
            contexts.retain(|_, pair| pair.since >= before || !pair.over());
        }
        self.commits.retain(|_, contexts| !contexts.is_empty());
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str, &Pair)> {
        self.commits.iter().flat_map(|(sha, contexts)| {
            contexts.iter().map(move |(context, pair)| (sha.as_str(), context.as_str(), pair))
        })
    }

    fn pair(&mut self, sha: &str, context: &str) -> Option<&mut Pair> {
        self.commits.get_mut(sha)?.get_mut(context)
    }

    /// Whether the host's limits leave room for one more last word, and for progress.
    fn room(&self, now: Timestamp) -> (bool, bool) {
        let within = |span: SignedDuration| self.recent.iter().filter(|at| now.duration_since(**at) < span).count();
        let (hour, minute) = (within(SignedDuration::from_hours(1)), within(SignedDuration::from_mins(1)));
        (minute < A_MINUTE && hour < HOURLY, minute < A_MINUTE && hour < HOURLY_PROGRESS)
    }
}

impl Pair {
    fn new(wanted: Status, since: Timestamp) -> Pair {
        Pair {
            wanted,
            since,
            posted: None,
            asked: None,
            requests: 0,
            failures: 0,
            not_before: None,
            trouble: None,
            gave_up: false,
            name: None,
            told: Vec::new(),
            under_way: false,
        }
    }

    /// Whether the host knows what is wanted.
    fn settled(&self) -> bool {
        let same = |posted: &Status| posted.state == self.wanted.state && posted.description == self.wanted.description;
        self.posted.as_ref().is_some_and(same)
    }

    /// Whether nothing more will be told.
    fn over(&self) -> bool {
        self.gave_up || (self.wanted.state.ends() && self.settled())
    }

    /// When it may be told; `None` if there is nothing to tell.
    fn ready(&self, progress: Progress) -> Option<Timestamp> {
        if self.under_way || self.gave_up || self.settled() {
            return None;
        }
        let after = self.not_before.unwrap_or(self.since);
        if self.wanted.state.ends() {
            return (self.requests < MOST).then_some(after);
        }
        let said = self.told.contains(&digest(&self.wanted));
        let begun = self.posted.as_ref().is_some_and(|posted| posted.state == State::Pending);
        if said || self.requests >= MOST - KEPT_FOR_THE_END || (progress == Progress::Once && begun) {
            return None;
        }
        let pause = match self.requests {
            0..10 => SignedDuration::from_secs(10),
            10..25 => SignedDuration::from_secs(30),
            _ => SignedDuration::from_mins(2),
        };
        let rested = self.asked.map_or(after, |asked| later(asked, pause));
        Some(after.max(rested))
    }

    fn failed(&mut self, why: String, not_before: Timestamp) {
        self.failures += 1;
        self.gave_up = self.failures >= PATIENCE;
        self.trouble = Some(why);
        self.not_before = Some(not_before);
    }
}

/// How long to wait after so many failures: 10 s, doubled each time, an hour at most, and a little differently for each
/// commit.
fn backoff(failures: u32, sha: &str) -> SignedDuration {
    let seconds = 10_i64.saturating_mul(1 << failures.min(16)).min(3600);
    let spread = sha.bytes().fold(0_i64, |sum, byte| (sum * 31 + i64::from(byte)) % 1000);
    SignedDuration::from_millis(seconds * 1000 + seconds * spread / 5)
}

fn later(now: Timestamp, wait: SignedDuration) -> Timestamp {
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}

fn digest(status: &Status) -> u32 {
    let text = format!("{}\n{}", status.state.name(), status.description);
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().take(4).fold(0, |sum, byte| (sum << 8) | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn status(state: State, description: &str) -> Status {
        Status { state, description: description.to_owned(), target: None }
    }

    fn pending(description: &str) -> Status {
        status(State::Pending, description)
    }

    const TOLD: Progress = Progress::Told;

    /// Performs all that is due until a moment, as its wakes say, and lists what was said.
    fn play(reporter: &mut Reporter, from: i64, to: i64, mut host: impl FnMut(&Work) -> Outcome) -> Vec<String> {
        let mut said = Vec::new();
        let mut now = at(from);
        while now < at(to) {
            while let Some(work) = reporter.due(now, TOLD) {
                let outcome = host(&work);
                said.push(format!("{} {} {}", work.sha, work.status.state.name(), work.status.description));
                reporter.done(&work, outcome, now);
            }
            let Some(wake) = reporter.wake(now, TOLD) else { break };
            assert!(wake > now, "a wake that has passed would spin");
            now = wake;
        }
        said
    }

    #[test]
    fn the_newest_wins_and_nothing_is_said_twice() {
        let mut reporter = Reporter::default();
        reporter.want("a", "c", pending("1"), at(0));
        reporter.want("a", "c", pending("2"), at(0));
        let posted = |_: &Work| Outcome::Posted(None);
        assert_eq!(play(&mut reporter, 0, 5, posted), ["a pending 2"]);
        reporter.want("a", "c", pending("3"), at(5));
        reporter.want("a", "c", pending("4"), at(6));
        assert_eq!(play(&mut reporter, 5, 9, posted), [] as [&str; 0], "progress has pauses");
        assert_eq!(reporter.wake(at(9), TOLD), Some(at(10)));
        assert_eq!(play(&mut reporter, 9, 30, posted), ["a pending 4"]);
        reporter.want("a", "c", pending("2"), at(30));
        assert_eq!(play(&mut reporter, 30, 99, posted), [] as [&str; 0], "it was said before");
        reporter.want("a", "c", status(State::Success, "done"), at(100));
        assert_eq!(play(&mut reporter, 100, 101, posted), ["a success done"], "the last word does not wait");
        reporter.want("a", "c", status(State::Success, "done"), at(101));
        assert_eq!(play(&mut reporter, 101, 200, posted), [] as [&str; 0]);
        assert_eq!(reporter.wake(at(200), TOLD), None);
        assert_eq!(reporter.open().count(), 0);
    }

    /// S60: what was rolled out is not taken back, and what failed was not overtaken.
    #[test]
    fn a_commit_that_ended_is_not_superseded() {
        #[track_caller]
        fn check(before: State, after: State, expected: State) {
            let mut reporter = Reporter::default();
            reporter.want("a", "c", status(before, "1"), at(0));
            reporter.want("a", "c", status(after, "2"), at(1));
            assert_eq!(reporter.due(at(2), TOLD).unwrap().status.state, expected);
        }
        check(State::Success, State::Superseded, State::Success);
        check(State::Success, State::Pending, State::Success);
        check(State::Failure, State::Superseded, State::Failure);
        check(State::Failure, State::Pending, State::Pending);
        check(State::Pending, State::Superseded, State::Superseded);
        check(State::Superseded, State::Pending, State::Pending);
    }

    /// S61: at most 50 requests for each commit and context, and the last word is among them.
    #[test]
    fn progress_does_not_crowd_out_the_end() {
        let mut reporter = Reporter::default();
        let mut said = 0;
        for step in 0..500 {
            reporter.want("a", "c", pending(&step.to_string()), at(step * 200));
            said += play(&mut reporter, step * 200, step * 200 + 200, |_| Outcome::Posted(None)).len();
        }
        assert_eq!(said, 45);
        reporter.want("a", "c", status(State::Success, ""), at(200_000));
        assert_eq!(play(&mut reporter, 200_000, 200_001, |_| Outcome::Posted(None)), ["a success "]);
    }

    /// S62: a host that is down is asked ever more seldom, and given up in the end.
    #[test]
    fn a_host_that_is_down_is_given_up() {
        let mut reporter = Reporter::default();
        reporter.want("a", "c", status(State::Success, ""), at(0));
        let down = |_: &Work| Outcome::Retry(None, "down".to_owned());
        let said = play(&mut reporter, 0, 40_000, down);
        assert_eq!(said.len(), PATIENCE as usize);
        assert_eq!(reporter.troubles().collect::<Vec<_>>(), [("a", "c", "down")]);
        reporter.unblock();
        assert_eq!(play(&mut reporter, 40_000, 40_001, |_| Outcome::Posted(None)), ["a success "]);
        assert_eq!(reporter.troubles().count(), 0);
    }

    #[test]
    fn a_moment_that_the_host_names_is_kept() {
        let mut reporter = Reporter::default();
        reporter.want("a", "c", status(State::Success, ""), at(0));
        let limited = |_: &Work| Outcome::Retry(Some(at(77)), "limit".to_owned());
        assert_eq!(play(&mut reporter, 0, 1, limited).len(), 1);
        assert_eq!(reporter.wake(at(1), TOLD), Some(at(77)));
        assert_eq!(play(&mut reporter, 1, 77, |_| Outcome::Posted(None)), [] as [&str; 0]);
        assert_eq!(play(&mut reporter, 77, 78, |_| Outcome::Posted(None)).len(), 1);
    }

    #[test]
    fn a_refusal_for_good_is_not_repeated() {
        let mut reporter = Reporter::default();
        reporter.want("a", "c", pending("1"), at(0));
        assert_eq!(play(&mut reporter, 0, 100, |_| Outcome::GiveUp("422".to_owned())).len(), 1);
        reporter.want("a", "c", status(State::Success, ""), at(100));
        assert_eq!(play(&mut reporter, 100, 9_000, |_| Outcome::Posted(None)), [] as [&str; 0]);
        reporter.want("b", "c", status(State::Success, ""), at(100));
        let said = play(&mut reporter, 9_000, 40_000, |_| Outcome::Forbidden("401".to_owned()));
        assert_eq!(said.len(), 9, "once an hour");
    }

    /// The hosts' limits: progress leaves room for last words.
    #[test]
    fn the_limits_of_a_host_are_kept() {
        let mut reporter = Reporter::default();
        for number in 0..1000 {
            reporter.want(&format!("p{number:03}"), "c", pending(""), at(0));
        }
        let posted = |_: &Work| Outcome::Posted(None);
        assert_eq!(play(&mut reporter, 0, 1, posted).len(), A_MINUTE);
        assert_eq!(play(&mut reporter, 1, 3000, posted).len(), HOURLY_PROGRESS - A_MINUTE);
        for number in 0..1000 {
            reporter.want(&format!("s{number:03}"), "c", status(State::Success, ""), at(3000));
        }
        let said = play(&mut reporter, 3000, 3500, posted);
        assert_eq!(said.len(), HOURLY - HOURLY_PROGRESS);
        assert!(said.iter().all(|words| words.contains("success")));
        assert!(reporter.wake(at(3500), TOLD).is_some());
    }

    #[test]
    fn a_host_that_cannot_refresh_hears_the_beginning_and_the_end() {
        let mut reporter = Reporter::default();
        reporter.want("a", "c", pending("1"), at(0));
        let work = reporter.due(at(0), Progress::Once).unwrap();
        reporter.done(&work, Outcome::Posted(None), at(0));
        reporter.want("a", "c", pending("2"), at(50));
        assert_eq!(reporter.due(at(99), Progress::Once), None);
        assert_eq!(reporter.wake(at(99), Progress::Once), None);
        reporter.want("a", "c", status(State::Failure, "3"), at(100));
        assert_eq!(reporter.due(at(100), Progress::Once).unwrap().status.description, "3");
    }

    #[test]
    fn one_request_at_a_time_for_each_pair_and_names_are_kept() {
        let mut reporter = Reporter::default();
        reporter.want("a", "c", pending("1"), at(0));
        let work = reporter.due(at(0), TOLD).unwrap();
        reporter.want("a", "c", status(State::Success, ""), at(1));
        assert_eq!(reporter.due(at(1), TOLD), None);
        reporter.done(&work, Outcome::Posted(Some("42".into())), at(2));
        assert_eq!(reporter.due(at(2), TOLD).unwrap().earlier.as_deref(), Some("42"));
    }

    /// L13: what was under way when the process ended is told after the restart.
    #[test]
    fn a_restart_loses_nothing() {
        let mut reporter = Reporter::default();
        reporter.want("a", "c", pending("1"), at(0));
        play(&mut reporter, 0, 1, |_| Outcome::Posted(Some("42".into())));
        reporter.want("a", "c", status(State::Failure, "no"), at(2));
        reporter.want("b", "c", status(State::Success, "yes"), at(3));
        let under_way = reporter.due(at(4), TOLD).unwrap();
        assert_eq!(under_way.sha, "a");
        let written = serde_json::to_string(&reporter).unwrap();
        let mut read: Reporter = serde_json::from_str(&written).unwrap();
        let said = play(&mut read, 5, 9, |_| Outcome::Posted(None));
        assert_eq!(said, ["a failure no", "b success yes"]);
        read.forget(at(10));
        assert_eq!(read.commits.len(), 0);
    }
}
