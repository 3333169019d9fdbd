//! The `tidegate` program: reads its arguments and calls the command.

use std::process::ExitCode;

use clap::Parser;
use tidegate::cmd::Cli;

fn main() -> ExitCode {
    Cli::parse().run()
}
