//! `tidegate dev`: an embedded cluster and the daemon on a repository of yours. Commits made in another terminal roll out
//! at once.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use jiff::SignedDuration;
use kube::Client;
use tokio::sync::mpsc;

use super::{
    cluster,
    live::{FRAME, Live},
    print::note,
    remedied, run,
};
use crate::{
    embedded::http::{
        cluster::Cluster,
        service::{Front, Settings},
    },
    io::{
        api::Api,
        daemon, git,
        outbound::Outbound,
        source::{self, Given},
    },
    model::git_source::Reference,
};

/// The arguments of `tidegate dev`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// The repository: a folder that is one, or is in one.
    #[arg(default_value = ".", value_name = "REPO")]
    repo: PathBuf,
    /// The folder of the repository that holds the manifests.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "FOLDER")]
    path: String,
    /// The branch to follow; the one that is checked out if not given.
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    #[command(flatten)]
    cluster: cluster::Arguments,
}

/// How often the repository's references are looked at, in case that watching them misses something.
const LOOK: SignedDuration = SignedDuration::from_secs(5);

/// Works until it is told to stop.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let repository =
        git2::Repository::discover(&arguments.repo).map_err(|error| undiscovered(&arguments.repo, &error))?;
    check_branch(&repository, arguments.branch.as_deref())?;
    let folder = repository.path().to_owned();
    let reference = arguments.branch.clone().map_or(Reference::Default, Reference::Branch);
    let repo = std::path::absolute(&arguments.repo).unwrap_or(arguments.repo.clone());
    let name = run::source_name(&repo.to_string_lossy());
    let mut given = Given::new("default", &name, &folder.to_string_lossy(), &arguments.path, reference, LOOK);
    given.folder = Some(folder);
    cluster::run_with(arguments.cluster.with_definitions(), move |cluster| sync(cluster, given))
}

/// Why no repository was found, and what to do.
fn undiscovered(repo: &Path, error: &git2::Error) -> anyhow::Error {
    if error.code() == git2::ErrorCode::Owner {
        let folder = std::path::absolute(repo).unwrap_or_else(|_| repo.to_owned());
        let error = anyhow!("the repository in {} belongs to another user", repo.display());
        let remedy = format!("if you trust it: `git config --global --add safe.directory {}`", folder.display());
        return remedied(error, remedy);
    }
    if !repo.exists() {
        return remedied(anyhow!("there is no folder {}", repo.display()), "name the folder of a git repository");
    }
    let error = anyhow!("{} is in no git repository: {}", repo.display(), error.message());
    remedied(error, "name the folder of one, or run `git init` there")
}

/// Says that a branch is not there. One without a commit may get its first one later.
fn check_branch(repository: &git2::Repository, branch: Option<&str>) -> anyhow::Result<()> {
    let has_branches = repository.branches(Some(git2::BranchType::Local)).is_ok_and(|mut all| all.next().is_some());
    let is_unborn = match branch {
        None => repository.head().is_err_and(|error| error.code() == git2::ErrorCode::UnbornBranch),
        Some(_) => !has_branches,
    };
    if is_unborn {
        note("note: the repository has no commit yet; the first one is rolled out as soon as it is made");
        return Ok(());
    }
    let Some(branch) = branch else { return Ok(()) };
    if repository.find_reference(&format!("refs/heads/{branch}")).is_ok() {
        return Ok(());
    }
    let branches = repository.branches(Some(git2::BranchType::Local));
    let names =
        branches.into_iter().flatten().flatten().filter_map(|(branch, _)| branch.name().ok()?.map(str::to_owned));
    let names: Vec<String> = names.take(8).collect();
    Err(remedied(anyhow!("there is no branch {branch:?}"), format!("there are {}", names.join(", "))))
}

async fn sync(cluster: Cluster, given: Given) -> anyhow::Result<()> {
    let api = Api::new(Client::new(Front::new(cluster.clone(), Settings::default()), "default"));
    let folder = given.folder.clone().unwrap_or_default();
    let store = tokio::task::spawn_blocking(move || git::Store::local(&folder)).await??;
    let settings =
        source::Settings { given: vec![given], references: source::References::Watched, ..source::Settings::default() };
    let (_hints, hinted) = mpsc::channel(1);
    let (told, mut heard) = mpsc::channel(1024);
    // Whoever writes the metrics owns the machine.
    let own = daemon::Settings { outbound: Outbound::anywhere(), ..daemon::Settings::default() };
    let engine = daemon::run(api.clone(), own, std::future::pending());
    let sources = source::run(api, settings, hinted, Some(told), std::future::pending());
    let mut live = Live::new(cluster);
    let shown = async {
        let mut frames = tokio::time::interval(FRAME);
        loop {
            tokio::select! {
                told = heard.recv() => {
                    let Some(told) = told else { return anyhow::Ok(()) };
                    let about = store.about(&told.report.commit);
                    live.commit(&told.report.commit, about.as_ref().map_or("", |about| about.subject.as_str()));
                    live.told(&told);
                    live.draw()?;
                }
                _ = frames.tick() => live.draw()?,
            }
        }
    };
    tokio::select! {
        () = engine => {}
        () = sources => {}
        outcome = shown => outcome?,
    }
    Err(anyhow!("the daemon has ended")).context("this should not happen")
}

#[cfg(test)]
mod tests {
    use git2::{Error, ErrorClass, ErrorCode};

    use super::*;
    use crate::cmd::Remedied;

    #[test]
    fn a_repository_of_somebody_else_and_none_at_all_have_different_remedies() {
        #[track_caller]
        fn check(code: ErrorCode, message: &str, remedy: &str) {
            let error = undiscovered(Path::new("/srv/shop"), &Error::new(code, ErrorClass::Repository, "why"));
            let told = error.downcast_ref::<Remedied>().unwrap();
            assert_eq!((told.source.to_string().as_str(), told.remedy.as_str()), (message, remedy));
        }
        check(
            ErrorCode::Owner,
            "the repository in /srv/shop belongs to another user",
            "if you trust it: `git config --global --add safe.directory /srv/shop`",
        );
        check(ErrorCode::NotFound, "there is no folder /srv/shop", "name the folder of a git repository");
    }
}
