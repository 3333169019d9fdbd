//! The commands, one file each. The only place where errors become messages and exit codes.

use std::{io::IsTerminal, process::ExitCode};

use anstyle::{AnsiColor, Style};
use clap::{Parser, Subcommand, ValueEnum};

pub mod cluster;
pub mod crds;
pub mod kubeconfig;
pub mod lint;
pub mod replay;
pub mod run;

/// From a git commit to a fully rolled-out, verified version in Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, about, styles = help_styles())]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    logging: Logging,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a Kubernetes cluster in this process: the API, controllers and kubelets, without containers.
    Cluster(cluster::Arguments),
    /// Print the CustomResourceDefinitions to install.
    Crds(crds::Arguments),
    /// Name every problem of manifests, with file, line and column.
    #[command(after_help = "Exit codes: 0 nothing to complain about, 1 problems, 2 something could not be read.")]
    Lint(lint::Arguments),
    /// Look after the Rollouts of a cluster, in it or beside it.
    Run(run::Arguments),
    /// Make one recorded decision again, and show why.
    Replay(replay::Arguments),
}

/// What is logged, and how.
#[derive(Debug, clap::Args)]
struct Logging {
    /// What to log: a level (error, warn, info, debug, trace) or directives such as `tidegate=debug`.
    #[arg(long, global = true, env = "TIDEGATE_LOG", default_value = "warn", value_name = "FILTER")]
    log: String,
    /// How to log it.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

/// What a command prints its result as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs: one JSON object.
    Json,
}

impl Cli {
    /// Runs the command. Errors that the user can do something about end with exit code 2.
    pub fn run(self) -> ExitCode {
        if let Err(error) = self.logging.start() {
            return fail(&error);
        }
        let outcome = match self.command {
            Command::Cluster(arguments) => cluster::run(arguments).map(|()| ExitCode::SUCCESS),
            Command::Crds(arguments) => crds::run(arguments).map(|()| ExitCode::SUCCESS),
            Command::Lint(arguments) => lint::run(arguments),
            Command::Run(arguments) => run::run(arguments).map(|()| ExitCode::SUCCESS),
            Command::Replay(arguments) => replay::run(arguments).map(|()| ExitCode::SUCCESS),
        };
        match outcome {
            Ok(code) => code,
            Err(error) => fail(&error),
        }
    }
}

impl Logging {
    fn start(&self) -> anyhow::Result<()> {
        use tracing_subscriber::{EnvFilter, fmt, prelude::*};
        let filter = EnvFilter::try_new(&self.log).map_err(|error| {
            remedied(error.into(), "give a level such as `info`, or directives such as `tidegate=debug`")
        })?;
        let registry = tracing_subscriber::registry().with(filter);
        let colour =
            std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        match self.log_format {
            LogFormat::Text => registry.with(fmt::layer().with_writer(std::io::stderr).with_ansi(colour)).init(),
            LogFormat::Json => registry.with(fmt::layer().json().with_writer(std::io::stderr)).init(),
        }
        Ok(())
    }
}

/// An error with what the user can do about it.
#[derive(Debug, thiserror::Error)]
#[error("{source:#}")]
struct Remedied {
    source: anyhow::Error,
    remedy: String,
}

/// Attaches what the user can do about an error.
pub fn remedied(error: anyhow::Error, remedy: impl Into<String>) -> anyhow::Error {
    Remedied { source: error, remedy: remedy.into() }.into()
}

/// Says what went wrong and what to do, on standard error.
fn fail(error: &anyhow::Error) -> ExitCode {
    let (red, green) = (bold(AnsiColor::Red), bold(AnsiColor::Green));
    let (message, remedy) = match error.downcast_ref::<Remedied>() {
        Some(remedied) => (format!("{:#}", remedied.source), Some(&remedied.remedy)),
        None => (format!("{error:#}"), None),
    };
    anstream::eprintln!("{red}error{red:#}: {message}");
    if let Some(remedy) = remedy {
        anstream::eprintln!("{green}hint{green:#}: {remedy}");
    }
    ExitCode::from(2)
}

/// Bold text of a colour.
pub fn bold(colour: AnsiColor) -> Style {
    colour.on_default().bold()
}

fn help_styles() -> clap::builder::Styles {
    clap::builder::Styles::styled()
        .header(bold(AnsiColor::Green))
        .usage(bold(AnsiColor::Green))
        .literal(bold(AnsiColor::Cyan))
        .placeholder(AnsiColor::Cyan.on_default())
}
