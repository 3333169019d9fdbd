//! What happens, as it happens: a block that redraws itself on a terminal, one line for each event in a pipe.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};

use super::{
    bold,
    screen::{self, Screen, Size},
};
use crate::{
    api::{self, Rollout, constants::annotation},
    embedded::http::cluster::Cluster,
    io::source::Told,
    kubernetes::{object, value::Value},
    rollout::step,
    sync::{State, id::cut},
};

/// How often the block is redrawn.
pub const FRAME: Duration = Duration::from_millis(100);
/// How wide a bar is.
const BAR: usize = 20;

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

    /// The commits so far, oldest first.
    pub fn commits(&self) -> &[Line] {
        &self.commits
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
        anstream::println!("{seconds:6.1}s  {}  {style}{what:<10}{style:#}  {words}", short(commit));
        let _ = std::io::stdout().flush();
    }

    /// Draws the block anew, where that is wanted.
    pub fn draw(&mut self) {
        let Some(mut screen) = self.screen.take() else { return };
        screen.draw(|room| self.rows(room));
        self.screen = Some(screen);
    }

    /// As much as there is room for: the newest commits, then Rollouts, those that move first, then what was logged.
    fn rows(&self, room: Size) -> Vec<String> {
        let mut rows = vec![String::new()];
        let most = (room.height / 3).clamp(1, 8);
        rows.extend(self.commits.iter().skip(self.commits.len().saturating_sub(most)).map(row));
        rows.push(String::new());
        let (rollouts, sets) = self.cluster.with(|store| {
            let all = |group: &str, plural: &str| -> Vec<Value> {
                store.list(group, plural, "").map(|object| object.value.clone()).collect()
            };
            (all("argoproj.io", "rollouts"), all("apps", "replicasets"))
        });
        let logged = screen::logged(2);
        let left = room.height.saturating_sub(rows.len() + logged.len());
        rows.extend(fitting(&rollouts, &sets, left));
        rows.extend(logged.into_iter().map(|line| format!("  {line}")));
        rows
    }
}

/// As many Rollouts as fit into so many rows, those that move first, and how many more there are.
fn fitting(rollouts: &[Value], sets: &[Value], most: usize) -> Vec<String> {
    let mut order: Vec<&Value> = rollouts.iter().collect();
    order.sort_by_key(|rollout| rollout.str_at(&["status", "phase"]) == Some("Healthy"));
    let mut rows: Vec<String> = Vec::new();
    for (shown, rollout) in order.iter().enumerate() {
        let next = rollout_rows(rollout, sets);
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

fn row(line: &Line) -> String {
    let state = line.told.as_ref().map(|(state, _)| *state);
    let style = state.map_or(Style::new(), style);
    let words = line.told.as_ref().map_or("", |(_, words)| words);
    format!("  {style}{}{style:#} {}  {:<34} {}", mark(state), short(&line.commit), cut(&line.subject, 34), words)
}

/// A Rollout: a bar of its weight, and a line for each version that runs.
fn rollout_rows(object: &Value, sets: &[Value]) -> Vec<String> {
    let rollout: Rollout = api::read(object).object;
    let updating = !rollout.status.stable_rs.is_empty() && rollout.status.stable_rs != rollout.status.current_pod_hash;
    let weight = if updating { step::set_weight(&rollout).clamp(0, 100) } else { 100 };
    let full = usize::try_from(weight).unwrap_or_default() * BAR / 100;
    let bar: String = (0..BAR).map(|at| if at < full { '█' } else { '░' }).collect();
    let steps = rollout.spec.strategy.canary.as_ref().map_or(0, |canary| canary.steps.len());
    let at = rollout
        .status
        .current_step_index
        .filter(|_| updating)
        .map(|at| format!("  step {}/{steps}", at.saturating_add(1).min(i32::try_from(steps).unwrap_or(i32::MAX))));
    let phase = rollout.status.phase.as_str();
    let mut rows = vec![format!(
        "  {}/{}  {bar} {weight:>3} %{}  {phase}",
        rollout.metadata.namespace,
        rollout.metadata.name,
        at.unwrap_or_default()
    )];
    let mut own: Vec<&Value> =
        sets.iter().filter(|set| object::controller(set).as_deref() == Some(rollout.metadata.uid.as_str())).collect();
    own.retain(|set| set.int_at(&["spec", "replicas"]).unwrap_or_default() > 0);
    own.sort_by_key(|set| std::cmp::Reverse(revision(set)));
    for set in own {
        let hash = set.str_at(&["metadata", "labels", "rollouts-pod-template-hash"]).unwrap_or_default();
        let newest = hash == rollout.status.current_pod_hash;
        let role = match (&rollout.spec.strategy.blue_green, hash == rollout.status.stable_rs, newest) {
            (_, true, _) => "stable",
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

fn revision(set: &Value) -> i64 {
    let text = set.str_at(&["metadata", "annotations", annotation::REVISION]).unwrap_or_default();
    text.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn rollouts_that_do_not_fit_are_counted_and_those_that_move_come_first() {
        let rollout = |name: &str, phase: &str| value!({"metadata": {"name": name, "namespace": "shop", "uid": name}, "status": {"phase": phase}});
        let all: Vec<Value> =
            ["a", "b", "c", "d"].iter().map(|name| rollout(name, "Healthy")).chain([rollout("z", "Paused")]).collect();
        let names = |most: usize| {
            let rows = fitting(&all, &[], most);
            rows.iter().map(|row| row.split_whitespace().next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(5), ["shop/z", "shop/a", "shop/b", "shop/c", "shop/d"]);
        assert_eq!(names(3), ["shop/z", "shop/a", "and"]);
        assert_eq!(fitting(&all, &[], 3)[2], "  and 3 more");
        assert_eq!(names(0), [""; 0]);
    }

    #[test]
    fn a_rollout_is_a_bar_and_its_versions() {
        let rollout = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
            "spec": {"strategy": {"canary": {"steps": [{"setWeight": 40}, {"pause": {}}]}}},
            "status": {"stableRS": "a", "currentPodHash": "b", "currentStepIndex": 1, "phase": "Paused"}});
        let set = |hash: &str, revision: &str, wanted: i32, ready: i32| {
            value!({"metadata": {"labels": {"rollouts-pod-template-hash": hash}, "annotations": {"rollout.argoproj.io/revision": revision},
                "ownerReferences": [{"uid": "u", "controller": true}]},
                "spec": {"replicas": wanted, "template": {"spec": {"containers": [{"image": format!("web:{revision}")}]}}},
                "status": {"readyReplicas": ready}})
        };
        let rows = rollout_rows(&rollout, &[set("a", "1", 3, 3), set("b", "2", 2, 1), set("c", "0", 0, 0)]);
        assert_eq!(
            rows,
            [
                "  shop/web  ████████░░░░░░░░░░░░  40 %  step 2/2  Paused",
                "    revision 2   canary  web:2                            ■□ 1/2",
                "    revision 1   stable  web:1                            ■■■ 3/3",
            ]
        );
    }

    #[test]
    fn a_commit_is_one_row() {
        let line = Line {
            commit: "a".repeat(40),
            subject: "web 2.0".into(),
            told: Some((State::Pending, "web: 1 of 2 pods".into())),
        };
        let plain = anstream::adapter::strip_str(&row(&line)).to_string();
        assert_eq!(plain, format!("  ● aaaaaaaa  {:<34} web: 1 of 2 pods", "web 2.0"));
    }
}
