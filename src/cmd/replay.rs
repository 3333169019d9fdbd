//! `tidegate replay`: one recorded decision, made again.

use std::{fmt::Write, fs, path::PathBuf};

use anyhow::Context;

use super::print::say;
use crate::{
    engine::replay::{self, Replay},
    rollout::{Seen, Situation, View, check, decide, diff},
};

/// The arguments of `tidegate replay`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A file that `tidegate run --record` wrote.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Decides again and shows what and why.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let file = arguments.file.display();
    let text = fs::read_to_string(&arguments.file).with_context(|| format!("cannot read {file}"))?;
    let mut record: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{file} is not a recorded decision: it is not JSON"))?;
    let unknown = || format!("{file} is not a recorded decision: `tidegate run --record DIR` writes them");
    // Records of Rollouts did not say so once.
    if record["machine"].as_str().is_some_and(|machine| machine != "rollout") {
        let replay = replay::replay(&record).map_err(anyhow::Error::msg).with_context(unknown)?;
        return show(&replay);
    }
    let seen: Seen = serde_json::from_value(record["seen"].take()).with_context(unknown)?;
    let view = View::of(&seen);
    let verdict = decide(&view);
    let actions = diff(&view, &verdict);
    let metadata = &view.rollout.metadata;
    let mut out = String::new();
    writeln!(out, "rollout    {}/{} at {}", metadata.namespace, metadata.name, seen.now)?;
    writeln!(out, "situation  {:?}", Situation::of(&view))?;
    for reason in &verdict.reasons {
        writeln!(out, "because    {reason}")?;
    }
    for action in &actions {
        writeln!(out, "do         {}", serde_json::to_string(action)?)?;
    }
    if let Some(patch) = verdict.status.as_ref().and_then(|status| diff::status_patch(&view, status)) {
        writeln!(out, "status     {}", patch.to_json())?;
    }
    for event in &verdict.events {
        writeln!(out, "tell       {}: {}", event.reason, event.message)?;
    }
    if let Some(wake) = verdict.wake {
        writeln!(out, "wake       {wake}")?;
    }
    for broken in check(&view, &verdict, &actions) {
        writeln!(out, "refused    {broken}")?;
    }
    let same = serde_json::to_value(&verdict)? == record["verdict"];
    writeln!(out, "recorded   {}", if same { "the same verdict" } else { "another verdict" })?;
    say(&out)
}

/// Shows a decision of which there is no more to say than what follows from it.
fn show(replay: &Replay) -> anyhow::Result<()> {
    let Replay { machine, place, now, .. } = replay;
    let mut out = format!("{machine:<10} {place} at {now}\n");
    let lines = [("because", &replay.reasons), ("do", &replay.writes), ("tell", &replay.events)];
    for (what, lines) in lines {
        for line in lines {
            writeln!(out, "{what:<10} {line}")?;
        }
    }
    if let Some(wake) = replay.wake {
        writeln!(out, "wake       {wake}")?;
    }
    for broken in &replay.broken {
        writeln!(out, "refused    {broken}")?;
    }
    writeln!(out, "recorded   {}", if replay.is_same { "the same verdict" } else { "another verdict" })?;
    say(&out)
}
