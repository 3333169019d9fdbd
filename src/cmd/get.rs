//! `tidegate get rollout|experiment`: the tree of an object, once or as it changes.

use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use unicode_width::UnicodeWidthStr;

use super::{
    access::{Access, Cluster},
    intent::{analysis_runs, experiments},
    kindless,
    print::{Format, Watch, show, stream},
    program, remedied,
    screen::{Screen, Size},
    stop::Stop,
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
    /// A name without its kind.
    #[command(external_subcommand)]
    Unknown(Vec<String>),
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
    let (subject, shown) = match &arguments.what {
        What::Rollout(shown) => (Subject::Rollout, shown),
        What::Experiment(shown) => (Subject::Experiment, shown),
        What::Unknown(words) => return Err(kindless("get", words, &["rollout", "experiment"])),
    };
    let cluster = arguments.access.connect().await?;
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
    if no_color { stream(&anstream::adapter::strip_str(text).to_string()) } else { stream(text) }
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
    let mut screen = Screen::new();
    let mut following = Following::start(&cluster.api, scopes(cluster, subject, &shown.name).await?);
    let end = (shown.timeout_seconds > 0).then(|| Instant::now() + Duration::from_secs(shown.timeout_seconds));
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut drawn: Option<Picture> = None;
    let mut stop = Stop::new()?;
    loop {
        tokio::select! {
            _ = following.changed() => {}
            // What was drawn stays, and the prompt comes below it.
            _ = stop.asked() => return Ok(()),
            _ = tick.tick(), if screen.is_some() && drawn.is_some() => {}
            () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => return Ok(()),
        }
        if screen.is_some() {
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
        match (&mut screen, &drawn) {
            (Some(screen), _) => screen.draw(|room| from_the_top(&picture.text(now), shown.no_color, room))?,
            (None, None) => draw(&picture.text(now), shown.no_color)?,
            (None, Some(before)) => stream(&picture.changes(before, now))?,
        }
        drawn = Some(picture);
    }
}

/// The rows of a picture that there is room for, from the top, and how many more there are.
fn from_the_top(text: &str, no_color: bool, room: Size) -> Vec<String> {
    let plain = no_color.then(|| anstream::adapter::strip_str(text).to_string());
    let text = plain.as_deref().unwrap_or(text);
    // What it waits for must be read to its end; of the tree, what is cut is said in another row.
    let above = text.lines().take_while(|row| !row.is_empty());
    let mut rows: Vec<String> = above.clone().flat_map(|row| wrapped(row, room.width)).collect();
    rows.extend(text.lines().skip(above.count()).map(str::to_owned));
    if rows.len() > room.height {
        let shown = room.height.saturating_sub(1);
        let more = rows.len() - shown;
        rows.truncate(shown);
        rows.push(format!("and {more} more lines"));
    }
    rows
}

/// A row `Waits:           at step 2/2 …` in as many rows as it takes, each word of the value below its beginning. One with
/// colour is left as it is: it is short.
fn wrapped(row: &str, width: usize) -> Vec<String> {
    let label =
        row.find(':').map_or(0, |colon| row[colon..].find(|c| c != ':' && c != ' ').unwrap_or_default() + colon);
    if row.width() <= width || row.contains('\x1b') || label == 0 || label * 2 > width {
        return vec![row.to_owned()];
    }
    let (mut rows, mut line) = (Vec::new(), row[..label].to_owned());
    let mut is_first = true;
    for word in row[label..].split(' ') {
        if !is_first && line.width() + 1 + word.width() > width {
            rows.push(std::mem::replace(&mut line, " ".repeat(label)));
            is_first = true;
        }
        line += if is_first { "" } else { " " };
        line += word;
        is_first = false;
    }
    rows.push(line);
    rows
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_wider_than_the_screen_goes_on_in_the_next_row() {
        #[track_caller]
        fn check(row: &str, width: usize, expected: &[&str]) {
            assert_eq!(wrapped(row, width), expected);
        }
        check("Waits:    for pods", 20, &["Waits:    for pods"]);
        check(
            "Waits:    for `promote web`, 3s so far",
            24,
            &["Waits:    for `promote", "          web`, 3s so", "          far"],
        );
        check("Message:  registry.example/web:9 not", 20, &["Message:  registry.example/web:9", "          not"]);
        check("Status:   \x1b[31mDegraded\x1b[0m", 10, &["Status:   \x1b[31mDegraded\x1b[0m"]);
        check("no label, but too long", 10, &["no label, but too long"]);
        let text = "Message:  one two three\n\nNAME: of a long tree\n";
        let rows = from_the_top(text, true, Size { width: 20, height: 9 });
        assert_eq!(rows, ["Message:  one two", "          three", "", "NAME: of a long tree"]);
    }

    #[test]
    fn a_picture_taller_than_the_screen_is_shown_from_the_top() {
        let text: String = (1..=9).map(|row| format!("\x1b[1mrow {row}\x1b[0m\n")).collect();
        let rows = |height: usize| from_the_top(&text, true, Size { width: 80, height });
        assert_eq!(rows(4), ["row 1", "row 2", "row 3", "and 6 more lines"]);
        assert_eq!(rows(9).last().unwrap(), "row 9");
        assert_eq!(from_the_top(&text, false, Size { width: 80, height: 9 })[0], "\x1b[1mrow 1\x1b[0m");
    }
}
