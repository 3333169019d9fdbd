//! The `tidegate` program: reads its arguments and calls the command.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use tidegate::cmd::Cli;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    Cli::from_process().run()
}
