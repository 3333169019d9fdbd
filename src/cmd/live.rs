//! What happens, as it happens: a block that redraws itself on a terminal, one line for each event in a pipe.

use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use jiff::{SignedDuration, Timestamp};
use unicode_width::UnicodeWidthStr;

use super::{
    bold,
    print::line,
    screen::{self, Screen, Size},
};
use crate::{
    api::{self, Rollout, constants::annotation},
    embedded::http::cluster::Cluster,
    io::source::Told,
    kubernetes::{object, shown::human, value::Value},
    rollout::{step, wait::Wait},
    sync::State,
};

/// How often the block is redrawn.
pub const FRAME: Duration = Duration::from_millis(100);
/// How wide the column of subjects is at most.
const SUBJECT: usize = 34;
/// How wide a bar is.
const BAR: usize = 20;
/// How many rows the description of one commit takes at most where it does not fit beside its subject.
const FOLDED: usize = 5;

/// What is shown.
pub struct Live {
    cluster: Cluster,
    begun: Instant,
    commits: Vec<Line>,
    /// The block, where there is a terminal to redraw it on.
    screen: Option<Screen>,
}

/// A commit and how it goes.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its hash.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
    /// What it was told last.
    pub told: Option<(State, String)>,
}

impl Live {
    /// Shows what happens in this cluster.
    pub fn new(cluster: Cluster) -> Live {
        Live { cluster, begun: Instant::now(), commits: Vec::new(), screen: Screen::new() }
    }

    /// Leaves what is shown as it is; the commits, oldest first.
    pub fn end(self) -> Vec<Line> {
        self.commits
    }

    /// A commit was made.
    pub fn commit(&mut self, commit: &str, subject: &str) {
        if self.commits.iter().any(|line| line.commit == commit) {
            return;
        }
        self.commits.push(Line { commit: commit.to_owned(), subject: subject.to_owned(), told: None });
        if self.screen.is_none() {
            self.log(commit, Style::new(), "commit", subject);
        }
    }

    /// A commit was told something.
    pub fn told(&mut self, told: &Told) {
        let report = &told.report;
        if report.rollout.is_some() {
            return;
        }
        self.commit(&report.commit, "");
        if let Some(line) = self.commits.iter_mut().find(|line| line.commit == report.commit.as_str()) {
            line.told = Some((report.state, report.words.clone()));
        }
        if self.screen.is_none() {
            self.log(&report.commit, style(report.state), report.state.name(), &report.words);
        }
    }

    fn log(&self, commit: &str, style: Style, what: &str, words: &str) {
        let seconds = self.begun.elapsed().as_secs_f64();
        line(format_args!("{seconds:6.1}s  {}  {style}{what:<10}{style:#}  {words}", short(commit)));
    }

    /// Draws the block anew, where that is wanted.
    pub fn draw(&mut self) -> anyhow::Result<()> {
        let Some(screen) = &mut self.screen else { return Ok(()) };
        let seen = self.cluster.with(|store| {
            let all = |group: &str, plural: &str| -> Vec<Value> {
                store.list(group, plural, "").map(|object| object.value.clone()).collect()
            };
            Seen {
                rollouts: all("argoproj.io", "rollouts"),
                sets: all("apps", "replicasets"),
                now: store.now(),
                logged: screen::logged(2),
            }
        });
        screen.draw(|room| rows(&self.commits, &seen, room))
    }
}

/// What is in the cluster, and what was logged.
struct Seen {
    rollouts: Vec<Value>,
    sets: Vec<Value>,
    now: Timestamp,
    logged: Vec<String>,
}

/// As much as there is room for: the newest commits, then Rollouts, those that move first, then what was logged.
fn rows(commits: &[Line], seen: &Seen, room: Size) -> Vec<String> {
    let mut rows = vec![String::new()];
    let most = (room.height / 3).clamp(1, 8);
    let newest = &commits[commits.len().saturating_sub(most)..];
    // What became of a commit is worth more than the end of its subject.
    let longest = newest.iter().map(|line| line.subject.width()).max().unwrap_or_default();
    let subject = longest.min(SUBJECT).min(room.width / 3);
    let half = (room.height / 2).saturating_sub(newest.len());
    rows.extend(commit_rows(newest, subject, room.width, half));
    rows.push(String::new());
    let left = room.height.saturating_sub(rows.len() + seen.logged.len());
    rows.extend(fitting(seen, left));
    rows.extend(seen.logged.iter().map(|line| format!("  {}", brief(line))));
    rows
}

/// Commits, oldest first. What is said of one that is open or has failed since the last success goes below its subject where it
/// does not fit beside it, as long as there is spare room: its reason is mostly at the end.
fn commit_rows(commits: &[Line], subject: usize, width: usize, mut spare: usize) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut is_past = false;
    for line in commits.iter().rev() {
        is_past |= line.told.as_ref().is_some_and(|(state, _)| *state == State::Success);
        let whole = row(line, subject);
        let fits = anstream::adapter::strip_str(&whole).to_string().width() <= width;
        let folded = match &line.told {
            Some((_, words)) if !is_past && !fits => fold(words, width.saturating_sub(7), FOLDED),
            Some(_) | None => Vec::new(),
        };
        let used = folded.len();
        if used == 0 || used > spare {
            blocks.push(vec![whole]);
            continue;
        }
        spare -= used;
        let bare = Line { told: line.told.as_ref().map(|(state, _)| (*state, String::new())), ..line.clone() };
        let head = row(&bare, width.saturating_sub(14)).trim_end().to_owned();
        blocks.push([head].into_iter().chain(folded.into_iter().map(|part| format!("      {part}"))).collect());
    }
    blocks.into_iter().rev().flatten().collect()
}

/// A text in so many lines of so many columns at most, broken between words.
fn fold(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_last = lines.len() == most;
        match lines.last_mut() {
            Some(last) if last.width() + 1 + word.width() <= width => *last += &format!(" {word}"),
            Some(last) if is_last => {
                *last += " …";
                return lines;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A log line without its time and module, which would leave no room for what it says.
fn brief(line: &str) -> String {
    let mut words = line.split_whitespace();
    let is_entry = words.next().is_some_and(|time| time.parse::<Timestamp>().is_ok());
    match (words.next().filter(|_| is_entry), line.split_once(": ")) {
        (Some(level), Some((_, message))) => format!("{level} {message}"),
        _ => line.to_owned(),
    }
}

/// As many Rollouts as fit into so many rows, those that move first, and how many more there are.
fn fitting(seen: &Seen, most: usize) -> Vec<String> {
    let mut order: Vec<&Value> = seen.rollouts.iter().collect();
    order.sort_by_key(|rollout| rollout.str_at(&["status", "phase"]) == Some("Healthy"));
    let mut rows: Vec<String> = Vec::new();
    for (shown, rollout) in order.iter().enumerate() {
        let next = rollout_rows(rollout, seen);
        let is_last = shown + 1 == order.len();
        if rows.len() + next.len() + usize::from(!is_last) > most {
            let more = order.len() - shown;
            rows.extend((most > rows.len()).then(|| format!("  and {more} more")));
            return rows;
        }
        rows.extend(next);
    }
    rows
}

fn short(commit: &str) -> &str {
    commit.get(..8).unwrap_or(commit)
}

/// The colour of a state.
pub fn style(state: State) -> Style {
    match state {
        State::Pending => bold(AnsiColor::Yellow),
        State::Success => bold(AnsiColor::Green),
        State::Failure | State::Error => bold(AnsiColor::Red),
        State::Superseded => Style::new().dimmed(),
    }
}

/// A mark for a state.
pub fn mark(state: Option<State>) -> char {
    match state {
        None => '·',
        Some(State::Pending) => '●',
        Some(State::Success) => '✔',
        Some(State::Failure | State::Error) => '✖',
        Some(State::Superseded) => '↷',
    }
}

/// A commit, with so many columns for its subject.
fn row(line: &Line, subject: usize) -> String {
    let state = line.told.as_ref().map(|(state, _)| *state);
    let style = state.map_or(Style::new(), style);
    let words = match &line.told {
        Some((State::Superseded, words)) => format!("superseded {words}"),
        Some((_, words)) => words.clone(),
        None => String::new(),
    };
    let about = screen::cut(&line.subject, subject);
    let gap = " ".repeat(subject.saturating_sub(anstream::adapter::strip_str(&about).to_string().width()));
    format!("  {style}{}{style:#} {}  {about}{gap}  {words}", mark(state), short(&line.commit))
}

/// A Rollout: a bar of its weight, and a line for each version that runs.
fn rollout_rows(object: &Value, seen: &Seen) -> Vec<String> {
    let rollout: Rollout = api::read(object).object;
    let updating = !rollout.status.stable_rs.is_empty() && rollout.status.stable_rs != rollout.status.current_pod_hash;
    let is_active = |hash: &str| rollout.status.blue_green.active_selector == hash;
    let weight = match (updating, &rollout.spec.strategy.blue_green) {
        (false, _) => 100,
        // All at once, with the switch of the active Service.
        (true, Some(_)) => 100 * i32::from(is_active(&rollout.status.current_pod_hash)),
        (true, None) => step::set_weight(&rollout).clamp(0, 100),
    };
    let full = usize::try_from(weight).unwrap_or_default() * BAR / 100;
    let bar: String = (0..BAR).map(|at| if at < full { '█' } else { '░' }).collect();
    let steps = rollout.spec.strategy.canary.as_ref().map_or(0, |canary| canary.steps.len());
    let at = rollout
        .status
        .current_step_index
        .filter(|_| updating)
        .map(|at| format!("  step {}/{steps}", at.saturating_add(1).min(i32::try_from(steps).unwrap_or(i32::MAX))));
    let phase = format!("{}{}", rollout.status.phase, left(&rollout, seen.now));
    let mut rows = vec![format!(
        "  {}/{}  {bar} {weight:>3} %{}  {phase}",
        rollout.metadata.namespace,
        rollout.metadata.name,
        at.unwrap_or_default()
    )];
    let mut own: Vec<&Value> = seen
        .sets
        .iter()
        .filter(|set| object::controller(set).as_deref() == Some(rollout.metadata.uid.as_str()))
        .collect();
    own.retain(|set| set.int_at(&["spec", "replicas"]).unwrap_or_default() > 0);
    own.sort_by_key(|set| std::cmp::Reverse(revision(set)));
    for set in own {
        let hash = set.str_at(&["metadata", "labels", "rollouts-pod-template-hash"]).unwrap_or_default();
        let newest = hash == rollout.status.current_pod_hash;
        let role = match (&rollout.spec.strategy.blue_green, hash == rollout.status.stable_rs, newest) {
            (_, true, _) => "stable",
            (Some(_), false, true) if is_active(hash) => "active",
            (Some(_), false, true) => "preview",
            (None, false, true) => "canary",
            (_, false, false) => "old",
        };
        let image = set.list_at(&["spec", "template", "spec", "containers"]).first();
        let image = image.and_then(|container| container.str_at(&["image"])).unwrap_or_default();
        let count = |path: &[&str]| set.int_at(path).unwrap_or_default();
        let (ready, wanted) = (count(&["status", "readyReplicas"]), count(&["spec", "replicas"]));
        let pods: String = (0..wanted).map(|at| if at < ready { '■' } else { '□' }).collect();
        rows.push(format!("    revision {:<3} {role:<7} {image:<32} {pods} {ready}/{wanted}", revision(set)));
    }
    rows
}

/// How long a pause is to last, or that a person ends it.
fn left(rollout: &Rollout, now: Timestamp) -> String {
    let left = |until: Timestamp| human(until.duration_since(now).max(SignedDuration::ZERO));
    match Wait::of(rollout, &[]) {
        Some(Wait::Pause { until: Some(until), .. }) => format!(", {} left", left(until)),
        Some(Wait::Switch { until: Some(until), .. }) => format!(", switches in {}", left(until)),
        Some(Wait::Pause { until: None, .. } | Wait::Switch { until: None, .. } | Wait::Judgement { .. }) => {
            ", waiting for approval".to_owned()
        }
        _ => String::new(),
    }
}

fn revision(set: &Value) -> i64 {
    let text = set.str_at(&["metadata", "annotations", annotation::REVISION]).unwrap_or_default();
    text.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests;
