//! `tidegate sources`, `sync`, `suspend`, `resume`: the GitSources of a namespace, and what people ask of them.

use clap::Args;
use jiff::Timestamp;

use super::{
    access::{Access, unanswered},
    print::{Format, say, show_all},
};
use crate::{
    api::{
        self, GitRevision, GitSource,
        constants::{annotation, condition},
    },
    io::{source::git_sources, watch},
    kubernetes::{clock::rfc3339, foreign, value::Value},
    sync::{id::cut, reason::short},
    value,
};

/// The arguments of `tidegate sources`.
#[derive(Debug, Args)]
pub struct Sources {
    /// Of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Print the objects instead.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    access: Access,
}

/// A GitSource.
#[derive(Debug, Args)]
pub struct One {
    /// The GitSource.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    access: Access,
}

/// Lists them.
pub async fn list(arguments: Sources) -> anyhow::Result<()> {
    let cluster = arguments.access.connect().await?;
    let mut scope = cluster.scope(&git_sources(), "");
    if arguments.all_namespaces {
        scope.namespace = None;
    }
    let (sources, _) = match watch::list(&cluster.api, &scope).await {
        Ok(listed) => listed,
        Err(error) if error.code() == Some(404) => return Err(cluster.explain(error, &git_sources(), "").await),
        Err(error) => return Err(unanswered(error)),
    };
    match arguments.output {
        Some(format) => show_all(&sources, format),
        None => say(&table(&sources, arguments.all_namespaces)),
    }
}

/// Asks one to look at its repository now.
pub async fn sync(arguments: One) -> anyhow::Result<()> {
    let now = rfc3339(Timestamp::now());
    let mut patch = value!({"metadata": {"annotations": {}}});
    patch.set_at(&["metadata", "annotations", annotation::SYNC_REQUESTED], now);
    ask(&arguments, &patch, "is asked to sync").await
}

/// Lets one change nothing for now.
pub async fn suspend(arguments: One) -> anyhow::Result<()> {
    ask(&arguments, &value!({"spec": {"suspend": true}}), "is suspended").await
}

/// Lets it go on.
pub async fn resume(arguments: One) -> anyhow::Result<()> {
    ask(&arguments, &value!({"spec": {"suspend": null}}), "goes on").await
}

async fn ask(arguments: &One, patch: &Value, done: &str) -> anyhow::Result<()> {
    let cluster = arguments.access.connect().await?;
    // Says what there is if there is none of that name.
    cluster.object(&git_sources(), &arguments.name).await?;
    let place = cluster.place(&arguments.name);
    cluster.api.patch(&git_sources(), &place, "", patch).await.map_err(unanswered)?;
    say(&format!("source {} {done}\n", arguments.name))
}

/// One line for each source, with its namespace if those of all are shown.
fn table(sources: &[Value], all: bool) -> String {
    if sources.is_empty() {
        let place = if all { "the cluster" } else { "this namespace" };
        return format!("there is no GitSource in {place}\n");
    }
    let mut rows = vec![["NAME", "READY", "SEEN", "ROLLED OUT", "HELD", "MESSAGE"].map(str::to_owned)];
    for object in sources {
        let source: GitSource = api::read(object).object;
        let status = source.status.unwrap_or_default();
        let ready = status.conditions.iter().find(|told| told.r#type == condition::READY);
        let commit = |revision: &Option<GitRevision>| {
            revision.as_ref().map_or_else(|| "-".to_owned(), |revision| short(&revision.commit).to_owned())
        };
        rows.push([
            match all {
                true => format!("{}/{}", source.metadata.namespace, source.metadata.name),
                false => source.metadata.name.clone(),
            },
            ready.map_or("Unknown", |told| told.status.as_str()).to_owned(),
            commit(&status.seen),
            commit(&status.rolled_out),
            status.held.len().to_string(),
            cut(&foreign::line(ready.map_or("", |told| told.message.as_str())), 100),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..5).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  "));
        format!("{}{}\n", cells.collect::<String>(), row[5])
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sr15_what_a_host_says_does_not_leave_its_line() {
        let source = value!({"metadata": {"name": "shop"}, "status": {
            "conditions": [{"type": "Ready", "status": "False", "message": "it says: \u{1b}[31mred\nshop  True"}]}});
        let shown = table(&[source], false);
        assert_eq!(shown.lines().count(), 2);
        assert!(shown.ends_with("it says: \\u{1b}[31mred shop  True\n"), "{shown}");
    }

    #[test]
    fn a_source_is_one_line() {
        let source = value!({"metadata": {"name": "shop"}, "status": {
            "seen": {"commit": "a".repeat(40)}, "rolledOut": {"commit": "b".repeat(40)},
            "conditions": [{"type": "Ready", "status": "Unknown", "message": "web: step 1/4, 20 %, 1 of 5 pods"}]}});
        let expected = "NAME  READY    SEEN      ROLLED OUT  HELD  MESSAGE\n\
                        shop  Unknown  aaaaaaaa  bbbbbbbb    0     web: step 1/4, 20 %, 1 of 5 pods\n";
        assert_eq!(table(&[source], false), expected);
    }
}
