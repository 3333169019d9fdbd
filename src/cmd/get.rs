//! `tidegate get rollout|experiment`: the tree of an object, once or as it changes.

use std::{io::IsTerminal, time::Duration};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::{
    access::{Access, Cluster},
    intent::{analysis_runs, experiments},
    print::{Format, Watch, say, show},
    program, remedied,
};
use crate::{
    api::constants::kind,
    engine::{cache::Cache, key::Resource, resource},
    io::{follow::Following, watch::Scope},
    kubernetes::value::Value,
    tree::{self, ExperimentTree, RolloutTree, Seen},
};

/// How often the picture is drawn anew while nothing changes: ages and what is left of a wait go on.
const TICK: Duration = Duration::from_secs(1);
/// How long changes are gathered before the picture is drawn anew.
const CALM: Duration = Duration::from_millis(50);

/// The arguments of `tidegate get`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    access: Access,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show a Rollout and all that belongs to it.
    #[command(visible_alias = "ro", alias = "rollouts")]
    Rollout(Shown),
    /// Show an Experiment and all that belongs to it.
    #[command(visible_alias = "exp", alias = "experiments")]
    Experiment(Shown),
}

#[derive(Debug, Args)]
struct Shown {
    /// Its name.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    watch: Watch,
    /// End after so many seconds; 0 is never.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    timeout_seconds: u64,
    /// Do not colour the output.
    #[arg(long)]
    no_color: bool,
    /// Print the object instead.
    #[arg(short, long, value_enum, value_name = "FORMAT", conflicts_with = "watch")]
    output: Option<Format>,
}

/// Shows it.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let cluster = arguments.access.connect().await?;
    let (subject, shown) = match &arguments.what {
        What::Rollout(shown) => (Subject::Rollout, shown),
        What::Experiment(shown) => (Subject::Experiment, shown),
    };
    let object = cluster.object(&subject.resource(), &shown.name).await?;
    if let Some(format) = shown.output {
        return show(&object, Some(format), "");
    }
    if shown.watch.watch {
        return watch(&cluster, subject, shown).await;
    }
    let seen = Seen {
        sets: cluster.objects(&resource::sets(), tree::VERSIONED).await?,
        pods: cluster.objects(&resource::pods(), tree::VERSIONED).await?,
        runs: cluster.objects(&analysis_runs(), "").await?,
        experiments: cluster.objects(&experiments(), "").await?,
    };
    draw(&subject.tree(&object, &seen).text(Timestamp::now()), shown.no_color)
}

/// What is shown.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Rollout,
    Experiment,
}

/// The picture of it.
enum Picture {
    Rollout(Box<RolloutTree>),
    Experiment(Box<ExperimentTree>),
}

impl Subject {
    fn resource(self) -> Resource {
        match self {
            Subject::Rollout => resource::rollouts(),
            Subject::Experiment => experiments(),
        }
    }

    fn tree(self, object: &Value, seen: &Seen) -> Picture {
        match self {
            Subject::Rollout => Picture::Rollout(Box::new(RolloutTree::of(object, seen))),
            Subject::Experiment => Picture::Experiment(Box::new(ExperimentTree::of(object, seen))),
        }
    }
}

impl Picture {
    fn text(&self, now: Timestamp) -> String {
        match self {
            Picture::Rollout(tree) => tree::rollout(tree, program(), now),
            Picture::Experiment(tree) => tree::experiment(tree, now),
        }
    }

    /// What to add below the picture that was drawn before.
    fn changes(&self, before: &Picture, now: Timestamp) -> String {
        let lines = match (before, self) {
            (Picture::Rollout(before), Picture::Rollout(after)) => tree::changes(before, after, program(), now),
            (Picture::Experiment(before), Picture::Experiment(after)) => tree::experiment_changes(before, after, now),
            (Picture::Rollout(_), Picture::Experiment(_)) | (Picture::Experiment(_), Picture::Rollout(_)) => Vec::new(),
        };
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

fn draw(text: &str, no_color: bool) -> anyhow::Result<()> {
    if no_color { say(&anstream::adapter::strip_str(text).to_string()) } else { say(text) }
}

/// Shows a Rollout or an Experiment that was just created, as it changes.
pub async fn follow(cluster: &Cluster, object: &Value, no_color: bool) -> anyhow::Result<()> {
    let text = |path: &[&str]| object.str_at(path).unwrap_or_default().to_owned();
    let subject = match text(&["kind"]).as_str() {
        kind::ROLLOUT => Subject::Rollout,
        kind::EXPERIMENT => Subject::Experiment,
        _ => return Err(anyhow!("Can only watch resources of type Rollout or Experiment")),
    };
    let cluster = Cluster { api: cluster.api.clone(), namespace: text(&["metadata", "namespace"]) };
    let (name, watch) = (text(&["metadata", "name"]), Watch { watch: true });
    self::watch(&cluster, subject, &Shown { name, watch, timeout_seconds: 0, no_color, output: None }).await
}

/// Draws it anew with every change: over itself on a terminal, as lines that say what changed elsewhere.
async fn watch(cluster: &Cluster, subject: Subject, shown: &Shown) -> anyhow::Result<()> {
    let live = std::io::stdout().is_terminal();
    let mut following = Following::start(&cluster.api, scopes(cluster, subject, &shown.name).await?);
    let end = (shown.timeout_seconds > 0).then(|| Instant::now() + Duration::from_secs(shown.timeout_seconds));
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut drawn: Option<Picture> = None;
    loop {
        tokio::select! {
            _ = following.changed() => {}
            _ = tick.tick(), if live && drawn.is_some() => {}
            () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => return Ok(()),
        }
        if live {
            // A burst of changes is one picture.
            let _ = tokio::time::timeout(CALM, async {
                loop {
                    following.changed().await;
                }
            })
            .await;
        }
        let cache = following.cache();
        let Some(object) = cache.get(&subject.resource(), &cluster.place(&shown.name)) else {
            return Err(remedied(anyhow!("{} is gone", shown.name), "somebody deleted it"));
        };
        let picture = subject.tree(object, &seen(cache));
        let now = Timestamp::now();
        match &drawn {
            _ if live => say(&over(&picture.text(now), shown.no_color, drawn.is_none()))?,
            None => draw(&picture.text(now), shown.no_color)?,
            Some(before) => say(&picture.changes(before, now))?,
        }
        drawn = Some(picture);
    }
}

/// The picture over the one before: from the top, each line to its end, and nothing below.
fn over(text: &str, no_color: bool, first: bool) -> String {
    let text = if no_color { anstream::adapter::strip_str(text).to_string() } else { text.to_owned() };
    let start = if first { "\x1b[H\x1b[2J" } else { "\x1b[H" };
    let lines: String = text.lines().map(|line| format!("{line}\x1b[K\n")).collect();
    format!("{start}{lines}\x1b[J")
}

/// What to follow: the object itself, and the kinds that may belong to it, as far as the cluster knows them.
async fn scopes(cluster: &Cluster, subject: Subject, name: &str) -> anyhow::Result<Vec<Scope>> {
    let own = Scope { fields: format!("metadata.name={name}"), ..cluster.scope(&subject.resource(), "") };
    let mut scopes = vec![own];
    let versioned = [resource::sets(), resource::pods()].map(|kind| (kind, tree::VERSIONED));
    for (kind, selector) in versioned.into_iter().chain([(analysis_runs(), ""), (experiments(), "")]) {
        if kind != subject.resource() && cluster.knows(&kind).await? {
            scopes.push(cluster.scope(&kind, selector));
        }
    }
    Ok(scopes)
}

fn seen(cache: &Cache) -> Seen {
    let all = |resource: Resource| cache.all(&resource).cloned().collect();
    Seen {
        sets: all(resource::sets()),
        pods: all(resource::pods()),
        runs: all(analysis_runs()),
        experiments: all(experiments()),
    }
}
