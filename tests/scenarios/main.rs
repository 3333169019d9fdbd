//! Scenarios: stories on the embedded cluster in virtual time, each with what happened, state by state, in `traces/`.
//!
//! `TIDEGATE_BLESS=1` writes the traces anew, `TIDEGATE_SCENARIOS=a,b` plays only some. Every wait must end in time, every
//! expectation must hold, no rule may be broken, and at its end a story must be at rest: looked at again, nothing is
//! written and nothing is said. The same holds for stories that seeds tell; `TIDEGATE_SEEDS=2000` runs so many.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    collections::HashSet,
    env, fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use jiff::{SignedDuration, Timestamp};
use tidegate::{
    embedded::controllers::Settings,
    engine::observe::{self, resource},
    kubernetes::value::Value,
    sim::{
        faults::Fault,
        likeness,
        local::Local,
        seed,
        story::{Player, Rests, Story},
        trace::Trace,
    },
};

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios"))
}

/// The scenarios that are to be played.
fn scenarios() -> Vec<Story> {
    let only = env::var("TIDEGATE_SCENARIOS").ok();
    let is_wanted = |story: &Story| only.as_ref().is_none_or(|only| only.split(',').any(|name| name == story.name));
    all().into_iter().filter(is_wanted).collect()
}

/// All scenarios, in the order of their files.
fn all() -> Vec<Story> {
    let mut files: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    // Stories share much of what they say.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { enforce_alias_anchor_ratio: false }
    };
    let read = |file: &std::path::PathBuf| -> Vec<Value> {
        let text = fs::read_to_string(file).unwrap();
        serde_saphyr::from_str_with_options(&text, options.clone())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    files.iter().flat_map(read).filter_map(|entry| Story::of(&entry)).collect()
}

/// A cluster in which pods become ready together.
fn player() -> Player {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let settings = Settings { seed: 1, jitter: SignedDuration::ZERO, ..Settings::default() };
    Player::new(Local::new(start, settings))
}

/// What is wrong with a play.
fn complaints(player: &mut Player, results: &[String]) -> Vec<String> {
    let failed = results
        .iter()
        .enumerate()
        .filter(|(_, result)| ["timeout", "not so", "cannot"].contains(&result.as_str()) || result.starts_with("no "));
    let mut complaints: Vec<String> = failed.map(|(number, result)| format!("act {number}: {result}")).collect();
    complaints.extend(player.local.refused.iter().map(|(place, broken)| format!("refused {place}: {broken}")));
    complaints.extend(player.local.checker.broken());
    let before = (player.local.store().version(), player.local.events.len());
    for _ in 0..3 {
        player.local.resync();
        player.local.settle();
    }
    if player.local.is_running() && before != (player.local.store().version(), player.local.events.len()) {
        complaints.push("S6: at rest, but looked at again something is written or said".into());
    }
    complaints
}

#[test]
fn scenarios_go_as_stored() {
    let (mut played, mut wrong, mut requests) = (0, Vec::new(), Vec::new());
    let blesses = env::var_os("TIDEGATE_BLESS").is_some();
    for story in scenarios() {
        let mut player = player();
        player.trace = Some(Trace::default());
        player.local.requests = Some(Vec::new());
        let results = player.play(&story);
        requests.push(summary(&story, &player.local.requests.take().unwrap()));
        let text = player.trace.take().unwrap().text();
        let text = format!("# {}: {}\n{text}", story.name, story.title);
        let mut complaints = complaints(&mut player, &results);
        let file = folder().join(format!("traces/{}.txt", story.name));
        if blesses {
            fs::write(&file, &text).unwrap();
        }
        let stored = fs::read_to_string(&file).unwrap_or_default();
        if let Some((line, (ours, theirs))) = text
            .lines()
            .chain([""])
            .zip(stored.lines().chain([""]))
            .enumerate()
            .find(|(_, (ours, theirs))| ours != theirs)
        {
            complaints.push(format!("trace, line {}:\n    stored {theirs}\n    now    {ours}", line + 1));
        }
        played += 1;
        if !complaints.is_empty() {
            wrong.push(format!("{}:\n  {}", story.name, complaints.join("\n  ")));
        }
    }
    if env::var_os("TIDEGATE_SCENARIOS").is_none() {
        let traces = fs::read_dir(folder().join("traces")).unwrap().map(|entry| entry.unwrap().path());
        let names: HashSet<String> = scenarios().into_iter().map(|story| story.name).collect();
        let is_nobodys = |file: &std::path::PathBuf| !names.contains(file.file_stem().unwrap().to_str().unwrap());
        wrong.extend(traces.filter(is_nobodys).map(|file| format!("{}: no story has this trace", file.display())));
    }
    wrong.extend(compare_requests(&requests, blesses));
    println!("{played} scenarios");
    assert!(wrong.is_empty(), "{} of {played} scenarios went otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

/// One line about everything that the engine asked the server to change in a story: traces show what came of it, this
/// shows that not even the order of two writes is another one. Versions are left out: they count what others wrote, too.
/// `TIDEGATE_REQUESTS=1` prints what was asked.
fn summary(story: &Story, requests: &[String]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for request in requests {
        let request = without_versions(request);
        if env::var_os("TIDEGATE_REQUESTS").is_some() {
            println!("{} {request}", story.name);
        }
        hash = request.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
    format!("{} {} {hash:016x}", story.name, requests.len())
}

fn without_versions(request: &str) -> String {
    let mut parts = request.split("\"resourceVersion\":\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "\"resourceVersion\":" + part.split_once('"').map_or("", |(_, rest)| rest))
}

/// What is not as it is stored in `requests.txt`.
fn compare_requests(requests: &[String], blesses: bool) -> Vec<String> {
    let file = folder().join("requests.txt");
    let is_whole = env::var_os("TIDEGATE_SCENARIOS").is_none();
    if blesses && is_whole {
        fs::write(&file, requests.join("\n") + "\n").unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    let stored: Vec<&str> = stored.lines().collect();
    let differs = |line: &&String| !stored.contains(&line.as_str());
    let differs = requests.iter().filter(differs).map(|line| format!("requests.txt: now {line}"));
    let gone = stored.len().saturating_sub(requests.len());
    differs.chain((is_whole && gone > 0).then(|| format!("requests.txt: {gone} lines of no story"))).collect()
}

/// Whether a story brings faults of its own.
fn is_faulty(story: &Story) -> bool {
    let own = ["fail", "meanwhile", "weather", "controller"];
    story.acts.iter().any(|act| own.iter().any(|fault| act.get(fault).is_some()))
}

#[test]
fn l4_s3_whatever_happens_to_one_write_ends_the_same() {
    let stories: Vec<Story> = scenarios().into_iter().filter(|story| !is_faulty(story)).collect();
    let (next, runs, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(story) = stories.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (count, complaints) = exhaust(story);
                    runs.fetch_add(count, Ordering::Relaxed);
                    wrong.lock().unwrap().extend(complaints);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    println!("{} scenarios, {} runs with one fault each", stories.len(), runs.into_inner());
    assert!(wrong.is_empty(), "{} runs ended otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

/// Plays a story with each fault at each of its writes, until nothing is due and all looks as it did when nothing was due
/// in the play without faults: from there on an engine that was started anew goes on as after a crash there, which is tried,
/// too. With `TIDEGATE_FULL=1` each play goes on to its end all the same.
fn exhaust(story: &Story) -> (usize, Vec<String>) {
    let whole = env::var_os("TIDEGATE_FULL").is_some();
    let mut player = player();
    player.set_up(story);
    player.rests = Rests::Noted(Vec::new());
    let mut acts = story.acts.clone();
    acts.push(Value::from(serde_json::json!({"quiet": {"for": 2.5, "timeout": 20}})));
    let mut before = vec![fork(&player)];
    for act in &acts {
        player.act(act);
        before.push(fork(&player));
    }
    let Rests::Noted(states) = &player.rests else { panic!() };
    let known = Arc::new(states.iter().copied().collect::<HashSet<u64>>());
    let end = likeness::of(player.local.store());
    let (mut runs, mut wrong) = (0, Vec::new());
    for (number, pair) in before.windows(2).enumerate() {
        for write in pair[0].local.writes()..pair[1].local.writes() {
            let faults = [Fault::Crash(SignedDuration::from_millis(1)), Fault::Lost, Fault::Conflict];
            // A conflict is the least of them: it is tried where that costs little.
            let tried = if whole || player.local.writes() <= 40 { 3 } else { 2 };
            for fault in faults.into_iter().take(tried) {
                let name = format!("{}: {fault:?} at write {write}", story.name);
                let mut run = fork(&pair[0]);
                run.rests = if whole { Rests::Ignored } else { Rests::Sought(known.clone()) };
                run.local.faults.writes.insert(write, fault);
                runs += 1;
                for act in &acts[number..] {
                    run.act(act);
                    if matches!(run.rests, Rests::Met) {
                        break;
                    }
                }
                let refused = run.local.refused.iter().map(|(_, broken)| broken.to_string());
                wrong.extend(refused.chain(run.local.checker.broken()).map(|broken| format!("{name}: {broken}")));
                let now = likeness::of(run.local.store());
                if !matches!(run.rests, Rests::Met) && now != end {
                    let differs = now.iter().zip(&end).find(|(now, then)| now != then);
                    wrong.push(match differs {
                        Some((now, then)) => format!("{name}:\n  now  {now}\n  then {then}"),
                        None => format!("{name}: {} objects instead of {}", now.len(), end.len()),
                    });
                }
            }
        }
    }
    (runs, wrong)
}

/// A copy that remembers only what matters from here on.
fn fork(player: &Player) -> Player {
    let mut player = player.clone();
    player.seen.clear();
    player
}

#[test]
fn s8_what_the_server_refuses_is_tried_ever_less_often() {
    let story = all().into_iter().find(|story| story.name == "l8-refused-run").unwrap();
    let mut player = player();
    player.set_up(&story);
    let until_refused = story.acts.iter().position(|act| act.get("sleep").is_some()).unwrap();
    let results: Vec<String> = story.acts[..until_refused].iter().map(|act| player.act(act)).collect();
    assert!(results.iter().all(|result| result == "ok"), "{results:?}");
    let mut tries = [0; 2];
    for tries in &mut tries {
        let before = player.local.writes();
        player.local.advance(SignedDuration::from_mins(1));
        *tries = player.local.writes() - before;
    }
    // First after a millisecond, then twice as late each time, then each ten seconds.
    assert!(tries[0] > tries[1] && (5..=7).contains(&tries[1]), "{tries:?}");
}

/// What the engine follows must not grow with what others keep in the cluster.
#[test]
fn s56_secrets_are_never_followed() {
    let rollout = tidegate::api::Rollout::default();
    let followed = resource::always().into_iter().chain(observe::needs(
        &rollout,
        &tidegate::route::Apis::default(),
        Timestamp::UNIX_EPOCH,
    ));
    assert!(followed.into_iter().all(|resource| !["secrets", "configmaps"].contains(&resource.plural.as_str())));
}

/// Seeds that once found something.
const FOUND: [u64; 2] = [
    // The steps of a rollback within its window are skipped.
    894, // A route of a step was announced as removed and set by every pass.
    1082,
];

#[test]
fn seeds_that_once_found_something_find_nothing() {
    for seed in FOUND {
        assert_eq!(seed::run(seed).complaints, Vec::<String>::new(), "`tidegate simulate --seed {seed}` shows it");
    }
}

#[test]
fn seeds_come_to_rest_and_break_no_rule() {
    let count = env::var("TIDEGATE_SEEDS").map_or(200, |count| count.parse().unwrap());
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed) as u64;
                    if seed >= count {
                        break;
                    }
                    let complaints = seed::run(seed).complaints;
                    let told = complaints.iter().map(|complaint| format!("seed {seed}: {complaint}"));
                    wrong.lock().unwrap().extend(told);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    println!("{count} seeds");
    assert!(wrong.is_empty(), "`tidegate simulate --seed N` shows each:\n{}", wrong.join("\n"));
}
