//! `tidegate demo`: the whole loop with no set-up. A scratch repository, an embedded cluster, the daemon; four commits,
//! of which one fails.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anstyle::AnsiColor;
use anyhow::{Context, anyhow};
use git2::{Oid, Repository, Signature};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::sync::{mpsc, oneshot};

use super::{
    bold,
    live::{FRAME, Line, Live, mark, style},
    print::line,
    stop::Stop,
};
use crate::{
    embedded::{
        controllers::{self, World},
        http::{
            cluster::{Cluster, Pace},
            service::{Front, Settings},
        },
        store::{Config, Store},
    },
    engine::key::Place,
    io::{
        api::Api,
        daemon,
        outbound::Outbound,
        source::{self, Given, Hint, Told},
    },
    kubernetes::clock::Clock,
    model::git_source::Reference,
    sync::State,
};

/// The arguments of `tidegate demo`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Keep the repository in this new folder, to look at it afterwards.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

/// What is rolled out.
const MANIFEST: &str = include_str!("../../examples/demo/web.yaml");
/// The image in it.
const IMAGE: &str = "registry.example/web:1.0";
/// Where it is in the repository.
const PATH: &str = "deploy/web.yaml";
/// How long one commit may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A commit of the story.
struct Act {
    subject: &'static str,
    image: &'static str,
    greeting: &'static str,
    ends: State,
}

/// The story.
const STORY: [Act; 4] = [
    Act { subject: "Deploy web 1.0", image: IMAGE, greeting: "hello", ends: State::Success },
    Act { subject: "web 2.0, as a canary", image: "registry.example/web:2.0", greeting: "hello", ends: State::Success },
    Act {
        subject: "web 3.0, which crashes",
        image: "registry.example/web:crash",
        greeting: "hello",
        ends: State::Failure,
    },
    Act { subject: "Fix the crash: web 3.1", image: "registry.example/web:3.1", greeting: "hi", ends: State::Success },
];

/// Plays the story: 0 if every commit ended as it should.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    // Before there is anything to clean up.
    let mut stop = runtime.block_on(async { Stop::new() })?;
    let scratch = Scratch::new(arguments.keep)?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = play(&scratch) => outcome.map(Ok),
            stopped = stop.asked() => Ok(Err(stopped)),
        }
    });
    // Nothing writes into the repository any more when its folder is removed.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match outcome? {
        Ok(0) => Ok(ExitCode::SUCCESS),
        Ok(surprises) => Err(anyhow!("{surprises} of {} commits did not end as they should", STORY.len())),
        Err(stopped) => Ok(stopped.code()),
    }
}

async fn play(scratch: &Scratch) -> anyhow::Result<usize> {
    let repository = scratch.repository()?;
    let cluster = cluster()?;
    let driver = tokio::spawn(cluster.clone().drive());
    let api = Api::new(Client::new(Front::new(cluster.clone(), Settings::default()), "default"));
    let (stop_engine, engine_stopped) = oneshot::channel::<()>();
    let (stop_sources, sources_stopped) = oneshot::channel::<()>();
    let (hints, hinted) = mpsc::channel(4);
    let (told, mut heard) = mpsc::channel(1024);
    let url = scratch.folder.to_string_lossy().into_owned();
    let given = Given::new("default", "demo", &url, "deploy", Reference::Default, SignedDuration::from_secs(60));
    let settings =
        source::Settings { given: vec![given], objects: source::Objects::Ignored, ..source::Settings::default() };
    // Whoever writes the metrics owns the machine.
    let own = daemon::Settings { outbound: Outbound::anywhere(), ..daemon::Settings::default() };
    let engine = tokio::spawn(daemon::run(api.clone(), own, async { drop(engine_stopped.await) }));
    let sources = tokio::spawn(source::run(api, settings, hinted, Some(told), async { drop(sources_stopped.await) }));
    let mut live = Live::new(cluster.clone());
    introduce();
    let mut surprises = 0;
    for act in &STORY {
        let commit = commit(&repository, act)?;
        live.commit(&commit, act.subject);
        hints.send(Hint::Source(Place::new("default", "demo"))).await.context("the daemon has ended")?;
        let ended = follow(&mut live, &mut heard, &commit).await?;
        surprises += usize::from(ended != Some(act.ends));
    }
    let _ = (stop_engine.send(()), stop_sources.send(()));
    let _ = tokio::join!(engine, sources);
    cluster.close();
    let _ = driver.await;
    let commits = live.end();
    conclude(&commits, scratch);
    Ok(surprises)
}

fn cluster() -> anyhow::Result<Cluster> {
    let config = Config { clock: Clock::Wall(Timestamp::now()), ..Config::new(Timestamp::now(), 1) };
    let mut store = Store::new(config);
    crate::sim::install::definitions(&mut store)
        .map_err(|status| anyhow!("cannot install the definitions: {status}"))?;
    let world = World::new(controllers::Settings { seed: 1, ..Default::default() });
    Ok(Cluster::new(store, Some(world), None, Pace::Wall))
}

/// Shows what happens until a commit has its last word.
async fn follow(live: &mut Live, heard: &mut mpsc::Receiver<Told>, commit: &str) -> anyhow::Result<Option<State>> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut frames = tokio::time::interval(FRAME);
    loop {
        tokio::select! {
            told = heard.recv() => {
                let Some(told) = told else { return Ok(None) };
                live.told(&told);
                live.draw()?;
                if told.report.commit == commit && told.report.state != State::Pending {
                    return Ok(Some(told.report.state));
                }
            }
            _ = frames.tick() => live.draw()?,
            () = tokio::time::sleep_until(deadline) => return Ok(None),
        }
    }
}

fn introduce() {
    let cyan = bold(AnsiColor::Cyan);
    line(format_args!("{cyan}tidegate demo{cyan:#}: a repository, a cluster in this process, and four commits"));
}

/// The log of the repository, with what each commit was told.
fn conclude(commits: &[Line], scratch: &Scratch) {
    let cyan = bold(AnsiColor::Cyan);
    line(format_args!("\n{cyan}git log{cyan:#}"));
    for one in commits.iter().rev() {
        let (state, words) = one.told.clone().map_or((None, String::new()), |(state, words)| (Some(state), words));
        let style = state.map_or(anstyle::Style::new(), style);
        let name = state.map_or("nothing", State::name);
        line(format_args!("  {} {}", &one.commit[..one.commit.len().min(8)], one.subject));
        line(format_args!("           {style}{} {name}{style:#}, {words}", mark(state)));
    }
    if scratch.kept {
        let folder = scratch.folder.display();
        line(format_args!("\nthe repository is in {folder}; git -C {folder} log --notes=tidegate main"));
    }
}

/// The repository's folder, gone afterwards unless it is to be kept.
struct Scratch {
    folder: PathBuf,
    kept: bool,
}

impl Scratch {
    fn new(keep: Option<PathBuf>) -> anyhow::Result<Scratch> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let own = || std::env::temp_dir().join(format!("tidegate-demo-{}-{since}", std::process::id()));
        let kept = keep.is_some();
        let folder = keep.unwrap_or_else(own);
        if folder.exists() {
            return Err(super::remedied(
                anyhow!("{} exists", folder.display()),
                "name a folder that does not exist yet",
            ));
        }
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Scratch { folder, kept })
    }

    fn repository(&self) -> anyhow::Result<Repository> {
        let mut options = git2::RepositoryInitOptions::new();
        options.bare(true).initial_head("main").external_template(false);
        Repository::init_opts(&self.folder, &options).context("cannot make a repository")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.kept {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Commits the manifests as an act wants them.
fn commit(repository: &Repository, act: &Act) -> anyhow::Result<String> {
    let text = MANIFEST.replace(IMAGE, act.image).replace("greeting: hello", &format!("greeting: {}", act.greeting));
    let commit = write(repository, &text, act.subject).context("cannot commit")?;
    Ok(commit.to_string())
}

fn write(repository: &Repository, text: &str, subject: &str) -> Result<Oid, git2::Error> {
    let blob = repository.blob(text.as_bytes())?;
    let path = Path::new(PATH);
    let name = path.file_name().unwrap_or_default();
    let mut folder = repository.treebuilder(None)?;
    folder.insert(name, blob, 0o100_644)?;
    let mut root = repository.treebuilder(None)?;
    root.insert(path.parent().unwrap_or(path), folder.write()?, 0o040_000)?;
    let tree = repository.find_tree(root.write()?)?;
    let who = Signature::now("Tidegate demo", "demo@tidegate.dev")?;
    let parent = repository.find_reference("refs/heads/main").ok().and_then(|head| head.peel_to_commit().ok());
    let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
    repository.commit(Some("refs/heads/main"), &who, &who, subject, &tree, &parents)
}
