//! `tidegate list rollouts|experiments`: one line for each.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::{
    access::{Access, Cluster, unanswered},
    intent::experiments,
    print::{Format, Watch, note, show_all, stream},
};
use crate::{
    engine::{cache::place_of, resource},
    io::{
        follow::Following,
        watch::{self, Scope},
    },
    kubernetes::value::Value,
    tree::table::{self, Before},
};

/// The arguments of `tidegate list`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    access: Access,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List Rollouts.
    #[command(visible_alias = "ro", alias = "rollout")]
    Rollouts {
        /// Only the one of this name.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        listed: Listed,
        #[command(flatten)]
        watch: Watch,
        /// Print when each line was printed.
        #[arg(long)]
        timestamps: bool,
    },
    /// List Experiments.
    #[command(visible_alias = "exp", alias = "experiment")]
    Experiments {
        #[command(flatten)]
        listed: Listed,
    },
}

#[derive(Debug, Args)]
struct Listed {
    /// Of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Print the objects instead.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

/// Lists them.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let cluster = arguments.access.connect().await?;
    let (listed, resource) = match &arguments.what {
        What::Rollouts { listed, .. } => (listed, resource::rollouts()),
        What::Experiments { listed } => (listed, experiments()),
    };
    let mut scope = cluster.scope(&resource, "");
    if listed.all_namespaces {
        scope.namespace = None;
    }
    if let What::Rollouts { name: Some(name), .. } = &arguments.what {
        scope.fields = format!("metadata.name={name}");
    }
    let (objects, _) = match watch::list(&cluster.api, &scope).await {
        Ok(listed) => listed,
        Err(error) if error.code() == Some(404) => return Err(cluster.explain(error, &resource, "").await),
        Err(error) => return Err(unanswered(error)),
    };
    if let Some(format) = listed.output {
        return show_all(&objects, format);
    }
    let watched = matches!(arguments.what, What::Rollouts { watch: Watch { watch: true }, .. });
    if objects.is_empty() && !watched {
        note("No resources found.");
        return Ok(());
    }
    let before = |now: Timestamp| Before {
        namespace: listed.all_namespaces,
        time: matches!(arguments.what, What::Rollouts { timestamps: true, .. }).then_some(now),
    };
    let now = Timestamp::now();
    stream(&match arguments.what {
        What::Rollouts { .. } => table::rollouts(&objects, before(now)),
        What::Experiments { .. } => table::experiments(&objects, before(now), now),
    })?;
    if watched { follow(&cluster, scope, &objects, before).await } else { Ok(()) }
}

/// Prints a line for each change that shows.
async fn follow(
    cluster: &Cluster,
    scope: Scope,
    printed: &[Value],
    before: impl Fn(Timestamp) -> Before,
) -> anyhow::Result<()> {
    let line = |object: &Value| table::rollout(object, Before { time: None, ..before(Timestamp::UNIX_EPOCH) });
    let mut known: BTreeMap<_, _> = printed.iter().map(|object| (place_of(object), line(object))).collect();
    let resource = scope.resource.clone();
    let mut following = Following::start(&cluster.api, vec![scope]);
    loop {
        let mut lines = String::new();
        for object in following.changed().await.all(&resource) {
            if known.insert(place_of(object), line(object)).as_ref() != Some(&line(object)) {
                lines.push_str(&table::rollout(object, before(Timestamp::now())));
            }
        }
        stream(&lines)?;
    }
}
