//! Conformance: one corpus of operations, played on the embedded cluster and on a real kube-apiserver, must be answered
//! alike.
//!
//! `cargo test` plays the corpus on the embedded cluster in process and compares with answers recorded from the real
//! server. `tests/conformance/run` starts both servers, compares them live over HTTP and checks that the recordings are
//! still true. The corpus is in `corpus/` (the format: `corpus.rs`), the recordings in `answers/`, and what is allowed to
//! differ, with the reason, in `known.yaml`.
#![allow(clippy::type_complexity)]

mod compare;
pub mod corpus;
mod normal;
mod play;
mod server;

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use serde_json::Value;

use compare::{Miss, compare};
use corpus::{Story, World, stories};
use server::{Http, InProcess, Server};

#[test]
fn answers_are_those_of_the_real_server() {
    match env::var("TIDEGATE_CONFORMANCE").as_deref() {
        Err(_) => replay(),
        Ok("record") => record(&Side::new("REAL")),
        Ok("live") => live(&Side::new("REAL"), &Side::new("OURS")),
        Ok(other) => panic!("TIDEGATE_CONFORMANCE={other}: neither record nor live"),
    }
}

/// One of the two that are compared: a server for quiet stories and one for busy ones, given by `TIDEGATE_<name>` and
/// `TIDEGATE_<name>_BUSY` as `url token`, and the address of its etcd if it has one.
struct Side {
    quiet: Http,
    busy: Http,
}

impl Side {
    fn new(name: &str) -> Side {
        Side { quiet: remote(&format!("TIDEGATE_{name}")), busy: remote(&format!("TIDEGATE_{name}_BUSY")) }
    }

    fn server(&self, story: &Story) -> &Http {
        match story.world {
            World::Quiet => &self.quiet,
            World::Busy => &self.busy,
        }
    }
}

fn remote(variable: &str) -> Http {
    let value = env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set"));
    match *value.split(' ').collect::<Vec<_>>() {
        [url, token] => Http::new(url, token, None),
        [url, token, etcd] => Http::new(url, token, Some(etcd)),
        _ => panic!("{variable} is not `url token [etcd]`"),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// The stories to play: all, or those whose name contains `TIDEGATE_STORIES`.
fn wanted() -> Vec<Story> {
    let only = env::var("TIDEGATE_STORIES").unwrap_or_default();
    let stories: Vec<_> = stories(&folder())
        .into_iter()
        .filter(|story| only.is_empty() || only.split(',').any(|part| story.name.contains(part)))
        .collect();
    assert!(!stories.is_empty(), "no story is called {only}");
    stories
}

fn played(story: &Story, server: &dyn Server) -> Vec<Value> {
    normal::normalise(&story.text, story.world, &play::play(story, server))
}

fn recording(story: &Story) -> PathBuf {
    folder().join("answers").join(format!("{}.json", story.name))
}

fn recorded(story: &Story) -> Vec<Value> {
    let path = recording(story);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}; record it", path.display()));
    let answers: Vec<Value> = serde_json::from_str(&text).unwrap();
    let titles: Vec<&str> = answers.iter().filter_map(|answer| answer["do"].as_str()).collect();
    let steps: Vec<String> = story.steps.iter().map(corpus::Step::title).collect();
    assert!(titles == steps, "{} was recorded for other steps; record it again", path.display());
    answers
}

/// Plays the stories several at a time: most of a live run is waiting.
fn each(stories: &[Story], work: impl Fn(&Story) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(story) = stories.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(story);
                }
            });
        }
    });
}

fn record(real: &Side) {
    let (last, first): (Vec<_>, Vec<_>) = wanted().into_iter().partition(Story::forgets);
    let play = |story: &Story| {
        let answers = played(story, real.server(story));
        let lines: Vec<String> = answers.iter().map(line).collect();
        let text = format!("[\n{}\n]\n", lines.join(",\n"));
        fs::write(recording(story), text).unwrap();
        println!("{:<40} {:>4} operations recorded", story.name, answers.len());
    };
    each(&first, play);
    last.iter().for_each(play);
}

/// One answer on one line, what was asked first: a change of one answer is a change of one line.
fn line(answer: &Value) -> String {
    let field = |key: &str| answer.get(key).map(|value| format!("\"{key}\": {value}"));
    let fields: Vec<String> =
        ["do", "code", "type", "warnings", "body", "text", "events"].into_iter().filter_map(field).collect();
    format!("{{{}}}", fields.join(", "))
}

fn replay() {
    let stories = wanted();
    let lines = Mutex::new(Vec::new());
    each(&stories, |story| {
        let (expected, got) = (recorded(story), played(story, &InProcess::new(story.world)));
        lines.lock().unwrap().push((story.name.clone(), got.len(), compare(&story.name, &expected, &got)));
    });
    let mut lines = lines.into_inner().unwrap();
    lines.sort_by(|a, b| a.0.cmp(&b.0));
    let report = Report::new(lines);
    report.print();
    assert!(report.passed(), "the embedded cluster answers differently from a real kube-apiserver, see above");
}

fn live(real: &Side, ours: &Side) {
    let (last, first): (Vec<_>, Vec<_>) = wanted().into_iter().partition(Story::forgets);
    let began = Instant::now();
    let lines = Mutex::new(Vec::new());
    each(&first, |story| {
        let (real, ours) = thread::scope(|scope| {
            let real = scope.spawn(|| played(story, real.server(story)));
            let ours = scope.spawn(|| played(story, ours.server(story)));
            (real.join().unwrap(), ours.join().unwrap())
        });
        let drift = compare(&story.name, &recorded(story), &real);
        lines.lock().unwrap().push((story.name.clone(), real.len(), compare(&story.name, &real, &ours), drift));
    });
    let mut lines = lines.into_inner().unwrap();
    lines.sort_by(|a, b| a.0.cmp(&b.0));
    let mut drifts: Vec<String> = lines.iter().flat_map(|line| &line.3).map(Miss::to_string).collect();
    let report = Report::new(lines.into_iter().map(|(name, count, misses, _)| (name, count, misses)).collect());
    report.print();
    for story in &last {
        let misses = compare(&story.name, &recorded(story), &played(story, real.server(story)));
        println!("{} plays on ours only in process: {} operations as recorded", story.name, story.steps.len());
        drifts.extend(misses.iter().map(Miss::to_string));
    }
    println!("played live on both servers in {} s", began.elapsed().as_secs());
    if !drifts.is_empty() {
        println!(
            "\nThe real server no longer answers as recorded (TIDEGATE_CONFORMANCE=record):\n{}",
            drifts.join("\n")
        );
    }
    assert!(drifts.is_empty() && report.passed(), "see above");
}

/// What a run came to.
struct Report {
    /// Story, operations, misses that are not known.
    stories: Vec<(String, usize, Vec<Miss>)>,
    operations: usize,
    /// Operations that differ only as known.
    known: usize,
    stale: Vec<String>,
}

impl Report {
    fn new(mut stories: Vec<(String, usize, Vec<Miss>)>) -> Report {
        let known = compare::known(&folder().join("known.yaml"));
        let mut accepted = BTreeSet::new();
        for (name, _, misses) in &mut stories {
            misses.retain(|miss| {
                // All entries are asked, so that two that cover one place both count as seen.
                let covered = known.iter().filter(|known| known.covers(miss)).count() > 0;
                if covered {
                    accepted.insert((name.clone(), miss.step));
                }
                !covered
            });
        }
        for (name, _, misses) in &stories {
            misses.iter().for_each(|miss| {
                accepted.remove(&(name.clone(), miss.step));
            });
        }
        let all = env::var("TIDEGATE_STORIES").is_err();
        let stale = known.iter().filter(|_| all).filter_map(compare::Known::stale).collect();
        let operations = stories.iter().map(|story| story.1).sum();
        Report { stories, operations, known: accepted.len(), stale }
    }

    fn missed(&self) -> usize {
        let steps = |misses: &[Miss]| misses.iter().map(|miss| miss.step).collect::<BTreeSet<_>>().len();
        self.stories.iter().map(|story| steps(&story.2)).sum()
    }

    fn passed(&self) -> bool {
        self.missed() == 0 && self.stale.is_empty()
    }

    fn print(&self) {
        for (name, operations, misses) in &self.stories {
            let steps: BTreeSet<usize> = misses.iter().map(|miss| miss.step).collect();
            let verdict = if steps.is_empty() { "alike".into() } else { format!("{} differ", steps.len()) };
            println!("{name:<40} {operations:>4} operations  {verdict}");
        }
        for miss in self.stories.iter().flat_map(|story| &story.2) {
            println!("\n{miss}");
        }
        self.stale.iter().for_each(|stale| println!("\n{stale}"));
        let (all, known, missed) = (self.operations, self.known, self.missed());
        println!(
            "\n{all} operations compared: {} equal, {known} known differences, {missed} misses",
            all - known - missed
        );
    }
}
