//! `tidegate migrate`: from other tools to Tidegate and back. What maps is decided in [`crate::migrate`].

use std::{process::ExitCode, time::Duration};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use tokio::time::{Instant, sleep};

use super::{print::say, remedied};
use crate::{manifest::File, migrate::Tool};

mod argo_rollouts;
mod gitops;
mod workload;

/// The arguments of `tidegate migrate`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, Subcommand)]
enum From {
    /// Swap Argo Rollouts' controller for Tidegate, and back; says what will differ first.
    #[command(
        after_help = "Exit codes: 0 it went well, 1 something in use has no equivalent or pods were made or lost, 2 it could not be done."
    )]
    ArgoRollouts(argo_rollouts::Arguments),
    /// Write GitSources for Argo CD's Applications, and name what has no equivalent.
    #[command(name = "argocd", after_help = EXIT_CODES)]
    ArgoCd(gitops::Arguments),
    /// Write GitSources for Flux's Kustomizations, and name what has no equivalent.
    #[command(after_help = EXIT_CODES)]
    Flux(gitops::Arguments),
    /// Turn Deployments into Rollouts: they take the pods, or bring their own first.
    #[command(
        after_help = "What is to be done in a cluster is said first; --yes does it. Files are printed as Rollouts."
    )]
    Deployment(workload::FromDeployment),
    /// Turn Rollouts back into Deployments.
    #[command(
        after_help = "What is to be done in a cluster is said first; --yes does it. Files are printed as Deployments."
    )]
    Rollout(workload::FromRollout),
}

const EXIT_CODES: &str = "Exit codes: 0 everything has an equivalent, 1 something has none or both tools write, 2 something could not be read.";

/// Migrates.
pub async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.from {
        From::ArgoRollouts(arguments) => argo_rollouts::run(arguments).await,
        From::ArgoCd(arguments) => gitops::run(Tool::ArgoCd, arguments).await,
        From::Flux(arguments) => gitops::run(Tool::Flux, arguments).await,
        From::Deployment(arguments) => workload::deployments(arguments).await,
        From::Rollout(arguments) => workload::rollouts(arguments).await,
    }
}

/// A file that cannot be read as a whole changes nothing.
fn broken<'f>(mut files: impl Iterator<Item = &'f File>) -> anyhow::Result<()> {
    let wrong = files.find_map(|file| {
        let mistake = file.mistakes.iter().find(|mistake| mistake.kind.is_fatal())?;
        let at = file.source.position(mistake.span.start);
        Some((format!("{}:{}:{}: {}", file.source.name, at.line, at.column, mistake.what), mistake.remedy.clone()))
    });
    wrong.map_or(Ok(()), |(what, remedy)| Err(remedied(anyhow!("{what}"), remedy)))
}

/// Looks until it is so.
async fn until<F: Future<Output = anyhow::Result<bool>>>(
    limit: Duration,
    what: &str,
    is_so: impl Fn() -> F,
    remedy: &str,
) -> anyhow::Result<()> {
    let end = Instant::now() + limit;
    while !is_so().await? {
        if Instant::now() >= end {
            return Err(remedied(anyhow!("it has not come to this in time: {what}"), remedy));
        }
        sleep(Duration::from_millis(200)).await;
    }
    say(&format!("✔ {what}\n"))
}
