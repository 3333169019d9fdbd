//! `tidegate dev`: an embedded cluster and the daemon on a repository of yours. Commits made in another terminal roll out
//! at once.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use jiff::SignedDuration;
use kube::Client;
use tokio::sync::mpsc;

use super::{
    cluster,
    live::{FRAME, Live},
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
    let folder = git2::Repository::discover(&arguments.repo).map(|repository| repository.path().to_owned());
    let folder = folder.map_err(|error| {
        let error = anyhow!("{} is in no git repository: {}", arguments.repo.display(), error.message());
        remedied(error, "name the folder of one, or run `git init` there")
    })?;
    let reference = arguments.branch.clone().map_or(Reference::Default, Reference::Branch);
    let repo = std::path::absolute(&arguments.repo).unwrap_or(arguments.repo.clone());
    let name = run::source_name(&repo.to_string_lossy());
    let mut given = Given::new("default", &name, &folder.to_string_lossy(), &arguments.path, reference, LOOK);
    given.folder = Some(folder);
    cluster::run_with(arguments.cluster.with_definitions(), move |cluster| sync(cluster, given))
}

async fn sync(cluster: Cluster, given: Given) -> anyhow::Result<()> {
    let api = Api::new(Client::new(Front::new(cluster.clone(), Settings::default()), "default"));
    let folder = given.folder.clone().unwrap_or_default();
    let store = tokio::task::spawn_blocking(move || git::Store::local(&folder)).await??;
    let settings =
        source::Settings { given: vec![given], references: source::References::Watched, ..source::Settings::default() };
    let (_hints, hinted) = mpsc::channel(1);
    let (told, mut heard) = mpsc::channel(1024);
    let engine = daemon::run(api.clone(), daemon::Settings::default(), std::future::pending());
    let sources = source::run(api, settings, hinted, Some(told), std::future::pending());
    let mut live = Live::new(cluster);
    let shown = async {
        let mut frames = tokio::time::interval(FRAME);
        loop {
            tokio::select! {
                told = heard.recv() => {
                    let Some(told) = told else { return };
                    let about = store.about(&told.report.commit);
                    live.commit(&told.report.commit, about.as_ref().map_or("", |about| about.subject.as_str()));
                    live.told(&told);
                    live.draw();
                }
                _ = frames.tick() => live.draw(),
            }
        }
    };
    tokio::select! {
        () = engine => {}
        () = sources => {}
        () = shown => {}
    }
    Err(anyhow!("the daemon has ended")).context("this should not happen")
}
