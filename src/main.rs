//! The `tidegate` program: reads its arguments and calls the command.

use std::process::ExitCode;

use tidegate::cmd::Cli;

fn main() -> ExitCode {
    Cli::from_process().run()
}
