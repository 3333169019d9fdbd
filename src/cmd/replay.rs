//! `tidegate replay`: one recorded decision, made again.

use std::{fs, path::PathBuf};

use anyhow::Context;

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
    let mut record: serde_json::Value = serde_json::from_str(&text).with_context(|| format!("{file} is not JSON"))?;
    let unknown = || format!("{file} is not a recorded decision: `tidegate run --record DIR` writes them");
    if let Some("analysis" | "experiment" | "service") = record["machine"].as_str() {
        let replay = replay::replay(&record).map_err(|error| anyhow::anyhow!(error)).with_context(unknown)?;
        return show(&replay);
    }
    let seen: Seen = serde_json::from_value(record["seen"].take()).with_context(unknown)?;
    let view = View::of(&seen);
    let verdict = decide(&view);
    let actions = diff(&view, &verdict);
    let metadata = &view.rollout.metadata;
    anstream::println!("rollout    {}/{} at {}", metadata.namespace, metadata.name, seen.now);
    anstream::println!("situation  {:?}", Situation::of(&view));
    verdict.reasons.iter().for_each(|reason| anstream::println!("because    {reason}"));
    for action in &actions {
        anstream::println!("do         {}", serde_json::to_string(action)?);
    }
    if let Some(patch) = verdict.status.as_ref().and_then(|status| diff::status_patch(&view, status)) {
        anstream::println!("status     {}", patch.to_json());
    }
    verdict.events.iter().for_each(|event| anstream::println!("tell       {}: {}", event.reason, event.message));
    if let Some(wake) = verdict.wake {
        anstream::println!("wake       {wake}");
    }
    check(&view, &verdict, &actions).iter().for_each(|broken| anstream::println!("refused    {broken}"));
    let same = serde_json::to_value(&verdict)? == record["verdict"];
    anstream::println!("recorded   {}", if same { "the same verdict" } else { "another verdict" });
    Ok(())
}

/// Shows a decision of which there is no more to say than what follows from it.
fn show(replay: &Replay) -> anyhow::Result<()> {
    let Replay { machine, place, now, .. } = replay;
    anstream::println!("{machine:<10} {place} at {now}");
    let lines = [("because", &replay.reasons), ("do", &replay.writes), ("tell", &replay.events)];
    for (what, lines) in lines {
        lines.iter().for_each(|line| anstream::println!("{what:<10} {line}"));
    }
    if let Some(wake) = replay.wake {
        anstream::println!("wake       {wake}");
    }
    replay.broken.iter().for_each(|broken| anstream::println!("refused    {broken}"));
    anstream::println!("recorded   {}", if replay.is_same { "the same verdict" } else { "another verdict" });
    Ok(())
}
