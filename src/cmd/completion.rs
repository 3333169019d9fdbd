//! `tidegate completion`: a script that completes commands and flags in a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, access::Unneeded, print::say, program};

/// The arguments of `tidegate completion`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
    #[command(flatten)]
    _unneeded: Unneeded,
}

/// Prints the script.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut script = Vec::new();
    // A plugin is completed under the name of its file; kubectl asks it by that.
    let name = program().replace(' ', "-");
    clap_complete::generate(arguments.shell, &mut Cli::command(), name, &mut script);
    say(&String::from_utf8_lossy(&script))
}
