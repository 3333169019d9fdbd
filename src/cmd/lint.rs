//! `tidegate lint`: every problem of the given manifests, with file, line and column.

mod read;
mod sets;

use std::{io::IsTerminal, path::PathBuf, process::ExitCode};

use anyhow::anyhow;
use clap::ValueEnum;

use super::{
    ARGO_PLUGIN,
    access::Unneeded,
    print::{document, say},
    program, remedied,
};
use crate::{
    lint::{
        Report, kustomize, lint_sets, output,
        rule::{Rule, Severity},
    },
    model::git_source::Rendering,
};

pub use read::{Kustomized, Manifests, Reading, in_repository, in_revision, on_disk, read};

/// The arguments of `tidegate lint`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Files, folders (searched for *.yaml, *.yml and *.json), or `-` for standard input. The current folder if none.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The same, as `kubectl argo rollouts lint` takes it.
    #[arg(short = 'f', long = "filename", value_name = "PATH")]
    filenames: Vec<PathBuf>,
    /// Read the paths as they are in this revision of the git repository around the current folder.
    #[arg(long, value_name = "REVISION")]
    git: Option<String>,
    /// How to print what was found.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Leave out a rule; can be given several times.
    #[arg(long, value_name = "RULE", value_parser = rule)]
    ignore: Vec<Rule>,
    /// The least severity that makes the exit code 1.
    ///
    /// By default warning; under the name kubectl-argo-rollouts, what makes its lint fail.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<Threshold>,
    /// Say what a rule means and end; `all` lists every rule.
    #[arg(long, value_name = "RULE")]
    explain: Option<String>,
    #[command(flatten)]
    _unneeded: Unneeded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs: one JSON object.
    Json,
    /// For code-scanning services: SARIF 2.1.0.
    Sarif,
    /// Annotations for a workflow on GitHub.
    Github,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Threshold {
    Error,
    Warning,
    Hint,
}

fn rule(name: &str) -> Result<Rule, String> {
    name.parse()
}

/// Runs the command: 0 if there is nothing to complain about, 1 if there is, 2 if something could not be read.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(name) = &arguments.explain {
        return explain(name);
    }
    let mut paths = arguments.paths;
    paths.extend(arguments.filenames);
    // Services that show findings beside a change know files by their paths alone.
    let named = matches!(arguments.output, Format::Text | Format::Json);
    let how = Rendering::default();
    let Reading { given, kustomized } = match &arguments.git {
        Some(revision) if !named => read::in_git(revision, &paths, String::new(), how)?,
        Some(revision) => read::in_git(revision, &paths, format!("{revision}:"), how)?,
        None => read::on_disk(&paths, how)?,
    };
    let sets = sets::of(&given);
    let files = read::some(given.into_iter().map(|given| given.file).collect())?;
    let about = |one: &Kustomized| kustomize::findings(&one.rendered, &one.plain, &one.unused);
    let report = lint_sets(&files, &sets).with(kustomized.iter().flat_map(about).collect());
    let report = report.without(&arguments.ignore);
    print(&report, arguments.output)?;
    let failing = report.findings.iter().any(|finding| match arguments.fail_on {
        None if program() == ARGO_PLUGIN => finding.rule.is_of_argo(),
        Some(Threshold::Error) => finding.rule.severity() == Severity::Error,
        None | Some(Threshold::Warning) => finding.rule.severity() >= Severity::Warning,
        Some(Threshold::Hint) => true,
    });
    Ok(ExitCode::from(u8::from(failing)))
}

fn explain(name: &str) -> anyhow::Result<ExitCode> {
    let text = if name == "all" {
        Rule::all()
            .map(|rule| format!("{:<36} {:<8} {}\n", rule.name(), rule.severity().to_string(), rule.title()))
            .collect()
    } else {
        let rule: Rule =
            name.parse().map_err(|error| remedied(anyhow!("{error}"), "`--explain all` lists every rule"))?;
        rule.explain()
    };
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn print(report: &Report, format: Format) -> anyhow::Result<()> {
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let text = match format {
        Format::Text => output::text(report, colour),
        Format::Json => output::json(report),
        Format::Sarif => output::sarif(report, env!("CARGO_PKG_VERSION")),
        Format::Github => output::github(report),
    };
    match format {
        Format::Text => say(&text),
        Format::Json | Format::Sarif | Format::Github => document(&text),
    }
}
