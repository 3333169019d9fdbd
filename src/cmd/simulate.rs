//! `tidegate simulate`: one story of the fault simulator, by its seed.

use std::{
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use super::print::say;
use crate::sim::seed;

/// The arguments of `tidegate simulate`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which story: the same seed tells the same one, bit for bit.
    #[arg(long, value_name = "N")]
    seed: u64,
    /// Run so many seeds, beginning with this one, on all processors; of those that went wrong, a shortened story is shown.
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u64,
}

/// Runs the seeds. Fails if a rule was broken.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { seed, count } = arguments;
    if count == 1 {
        let run = seed::run(seed);
        say(&told(seed, &run))?;
        return Ok(if run.complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let failed = failed(seed, count);
    for seed in &failed {
        say(&told(*seed, &seed::shrunk(*seed)))?;
    }
    say(&format!("{count} seeds, {} went wrong\n", failed.len()))?;
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The seeds among so many that break a rule, run on all processors.
fn failed(first: u64, count: u64) -> Vec<u64> {
    let (next, failed) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let seed = first.saturating_add(number);
                    if !seed::run(seed).complaints.is_empty() {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(seed);
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_unstable();
    failed
}

fn told(seed: u64, run: &seed::Run) -> String {
    let complaints: String = run.complaints.iter().map(|complaint| format!("seed {seed}: {complaint}\n")).collect();
    format!("{}{complaints}", run.trace)
}
