//! `tidegate simulate`: one story of the fault simulator, by its seed.

use std::process::ExitCode;

use super::print::say;
use crate::sim::seed;

/// The arguments of `tidegate simulate`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which story: the same seed tells the same one, bit for bit.
    #[arg(long, value_name = "N")]
    seed: u64,
    /// Run so many seeds, beginning with this one; only what went wrong is shown.
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u64,
}

/// Runs the seeds. Fails if a rule was broken.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut failed = 0;
    for seed in arguments.seed..arguments.seed.saturating_add(arguments.count) {
        let run = seed::run(seed);
        if arguments.count == 1 || !run.complaints.is_empty() {
            let complaints: String =
                run.complaints.iter().map(|complaint| format!("seed {seed}: {complaint}\n")).collect();
            say(&format!("{}{complaints}", run.trace))?;
        }
        failed += u64::from(!run.complaints.is_empty());
    }
    if arguments.count > 1 {
        say(&format!("{} seeds, {failed} went wrong\n", arguments.count))?;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
