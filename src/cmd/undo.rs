//! `tidegate undo`: back to the pod template of an earlier revision.

use clap::Args;

use super::{
    access::unanswered,
    intent::Common,
    print::show,
    refused,
    synced::{self, Hold},
};
use crate::{
    engine::{key::Resource, resource},
    kubernetes::{selector::Labels, value::Value},
    rollout::intent::{self, Source, Undo},
};

/// The arguments of `tidegate undo`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The Rollout.
    #[arg(value_name = "ROLLOUT")]
    name: String,
    /// The revision to go back to; 0 is the one before the newest. `history` lists them.
    #[arg(long, value_name = "REVISION", default_value_t = 0)]
    to_revision: i64,
    /// Have the GitSource that syncs it leave it as it is from now on.
    #[arg(long)]
    hold: bool,
    #[command(flatten)]
    common: Common,
}

/// Goes back.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let cluster = arguments.common.access.connect().await?;
    let rollout = cluster.object(&resource::rollouts(), &arguments.name).await?;
    let selector = Labels::of(rollout.at(&["spec", "selector"]).unwrap_or(&Value::Null));
    let sets =
        cluster.objects(&resource::sets(), &selector.map(|labels| labels.to_string()).unwrap_or_default()).await?;
    let source = Source::of(&rollout).map_err(refused)?;
    match intent::undo(&rollout, &source, &sets, arguments.to_revision).map_err(refused)? {
        Undo::Skipped => {
            let revision = arguments.to_revision;
            let text = format!("skipped rollback (current template already matches revision {revision})\n");
            show(&rollout, arguments.common.output, &text)
        }
        Undo::Patch(patch) => {
            let (resource, name) = holder(&source, &arguments.name);
            let held = if source == Source::Own { rollout } else { cluster.object(&resource, name).await? };
            synced::tell(&cluster, &resource, &held, None, Hold::of(arguments.hold)).await?;
            let patched = cluster.api.patch_json(&resource, &cluster.place(name), &patch).await;
            let object = patched.map_err(unanswered)?;
            show(&object, arguments.common.output, &format!("rollout '{}' undo\n", arguments.name))
        }
    }
}

/// The object that has the template.
pub fn holder<'a>(source: &'a Source, rollout: &'a str) -> (Resource, &'a str) {
    match source {
        Source::Own => (resource::rollouts(), rollout),
        Source::Workload { kind, name } => (resource::workload(kind), name),
    }
}
