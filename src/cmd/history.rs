//! `tidegate history`: the revisions of a Rollout, with their images and commits.

use anyhow::anyhow;
use clap::Args;
use jiff::Timestamp;

use super::{
    access::Access,
    print::{Format, say, show, show_all},
    remedied,
};
use crate::{api::constants::annotation, engine::resource, kubernetes::object, tree, tree::table};

/// The arguments of `tidegate history`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The Rollout.
    #[arg(value_name = "ROLLOUT")]
    name: String,
    /// Show this revision in full.
    #[arg(long, value_name = "REVISION")]
    revision: Option<i64>,
    /// Print the ReplicaSets instead.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    access: Access,
}

/// Shows it.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let cluster = arguments.access.connect().await?;
    let rollout = cluster.object(&resource::rollouts(), &arguments.name).await?;
    let mut sets = cluster.objects(&resource::sets(), tree::VERSIONED).await?;
    let uid = rollout.str_at(&["metadata", "uid"]);
    sets.retain(|set| object::controller(set).as_deref() == uid);
    if let Some(revision) = arguments.revision {
        let wanted = revision.to_string();
        let is_it = |set: &&_| annotation_of(set) == wanted;
        let Some(set) = sets.iter().find(is_it) else {
            let known: Vec<&str> = sets.iter().map(annotation_of).filter(|text| !text.is_empty()).collect();
            let error = anyhow!("unable to find specified revision {revision} in history");
            return Err(remedied(error, format!("there are {}", known.join(", "))));
        };
        return show(set, Some(arguments.output.unwrap_or(Format::Yaml)), "");
    }
    match arguments.output {
        Some(format) => show_all(&sets, format),
        None => say(&table::history(&rollout, &sets, Timestamp::now())),
    }
}

fn annotation_of(set: &crate::kubernetes::value::Value) -> &str {
    set.str_at(&["metadata", "annotations", annotation::REVISION]).unwrap_or_default()
}
