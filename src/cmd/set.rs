//! `tidegate set image`: another image for containers of a Rollout, or of the workload it refers to.

use anyhow::anyhow;
use clap::{Args, Subcommand};

use super::{
    intent::Common,
    print::show,
    refused, remedied,
    synced::{self, Hold},
    undo::holder,
};
use crate::{
    engine::resource,
    rollout::intent::{self, Source},
};

/// How often to try if the containers are not where they were read.
const ATTEMPTS: usize = 5;

/// The arguments of `tidegate set`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Have the GitSource that syncs it leave it as it is from now on.
    #[arg(long, global = true)]
    hold: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Give containers another image.
    Image {
        /// The Rollout.
        #[arg(value_name = "ROLLOUT")]
        name: String,
        /// The container, init container or ephemeral container, and its image; `*=IMAGE` for all of them.
        #[arg(value_name = "CONTAINER=IMAGE", value_parser = assignment)]
        image: (String, String),
    },
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split('=').collect::<Vec<_>>()[..] {
        [container, image] if !container.is_empty() && !image.is_empty() => {
            Ok((container.to_owned(), image.to_owned()))
        }
        _ => Err("give the container's name, an equals sign and the image".to_owned()),
    }
}

/// Sets the image.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let What::Image { name, image: (container, image) } = &arguments.what;
    let cluster = arguments.common.access.connect().await?;
    let mut attempt = 1;
    loop {
        let rollout = cluster.object(&resource::rollouts(), name).await?;
        let source = Source::of(&rollout).map_err(refused)?;
        let (resource, holder) = holder(&source, name);
        let object = if source == Source::Own { rollout } else { cluster.object(&resource, holder).await? };
        let patch = intent::set_image(&object, &source, container, image).map_err(refused)?;
        if attempt == 1 {
            synced::tell(&cluster, &resource, &object, None, Hold::of(arguments.hold)).await?;
        }
        match cluster.api.patch_json(&resource, &cluster.place(holder), &patch).await {
            Ok(object) => {
                let kind = object.str_at(&["kind"]).unwrap_or_default().to_lowercase();
                return show(&object, arguments.common.output, &format!("{kind} \"{holder}\" image updated\n"));
            }
            // Somebody moved the containers, or wrote at the same moment.
            Err(error) if matches!(error.code(), Some(409 | 422)) && attempt < ATTEMPTS => attempt += 1,
            Err(error) if matches!(error.code(), Some(409 | 422)) => {
                return Err(remedied(anyhow!("{}", error.words()), "it is changed by others all the time: try again"));
            }
            Err(error) => return Err(cluster.explain(error, &resource, holder).await),
        }
    }
}
