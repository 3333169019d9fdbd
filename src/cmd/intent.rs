//! `tidegate promote`, `pause`, `abort`, `retry`, `restart` and `terminate`: what people ask of a Rollout, an Experiment or
//! an AnalysisRun. What is written is decided in [`crate::rollout::intent`].

use anyhow::anyhow;
use clap::{ArgAction, Args, Subcommand};
use jiff::{SignedDuration, Timestamp};

use super::{
    access::{Access, Cluster},
    kindless,
    print::{Format, show},
    refused, remedied,
    synced::{self, Hold},
};
use crate::{
    api::{self, Rollout, Time, constants},
    engine::{key::Resource, resource},
    io::api::Error,
    kubernetes::{duration, value::Value},
    rollout::intent::{self, Promoted, Promotion, Writes},
};

/// The cluster, and how to print what became of the object.
#[derive(Debug, Args)]
pub struct Common {
    /// The cluster.
    #[command(flatten)]
    pub access: Access,
    /// Print the object instead of a sentence.
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT")]
    pub output: Option<Format>,
}

/// The arguments of `tidegate promote`.
#[derive(Debug, Args)]
pub struct Promote {
    /// The Rollout.
    #[arg(value_name = "ROLLOUT")]
    name: String,
    /// Promote to the end, past steps, pauses and analysis.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_possible_values = true, hide_default_value = true)]
    full: bool,
    /// Skip the current step of a canary. [deprecated: promote without the flag does]
    #[arg(short = 'c', long, conflicts_with = "skip_all_steps")]
    skip_current_step: bool,
    /// Skip the steps that are left. [deprecated: use --full]
    #[arg(short = 'a', long)]
    skip_all_steps: bool,
    #[command(flatten)]
    common: Common,
}

/// Promotes.
pub async fn promote(arguments: Promote) -> anyhow::Result<()> {
    let cluster = arguments.common.access.connect().await?;
    let object = cluster.object(&resource::rollouts(), &arguments.name).await?;
    let how = match (arguments.skip_current_step, arguments.skip_all_steps, arguments.full) {
        (true, _, _) => Promotion::SkipStep,
        (_, true, _) => Promotion::SkipAllSteps,
        (_, _, true) => Promotion::Full,
        (false, false, false) => Promotion::Next,
    };
    let rollout = api::read::<Rollout>(&object).object;
    let writes = intent::promote(&rollout, how).map_err(refused)?;
    let object = write(&cluster, &resource::rollouts(), &arguments.name, &writes).await?;
    let done = match Promoted::of(&rollout, how) {
        Promoted::Onward => "promoted",
        Promoted::Fully => "fully promoted",
        Promoted::OnlyResumed => {
            "resumed: it was paused by hand, and starts its own pause again; promote again to end that"
        }
    };
    show(&object, arguments.common.output, &format!("rollout '{}' {done}\n", arguments.name))
}

/// The arguments of `tidegate pause` and `tidegate abort`.
#[derive(Debug, Args)]
pub struct Rollouts {
    /// The Rollouts.
    #[arg(value_name = "ROLLOUT", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// Pauses.
pub async fn pause(arguments: Rollouts) -> anyhow::Result<()> {
    each(&arguments.common, &resource::rollouts(), &arguments.names, &intent::pause(), "rollout '{}' paused").await
}

/// Aborts.
pub async fn abort(arguments: Rollouts) -> anyhow::Result<()> {
    each(&arguments.common, &resource::rollouts(), &arguments.names, &intent::abort(), "rollout '{}' aborted").await
}

/// The arguments of `tidegate retry`.
#[derive(Debug, Args)]
pub struct Retry {
    #[command(subcommand)]
    what: Retried,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum Retried {
    /// Try an aborted update again.
    #[command(visible_alias = "ro", alias = "rollouts")]
    Rollout {
        /// The Rollouts.
        #[arg(value_name = "ROLLOUT", required = true)]
        names: Vec<String>,
    },
    /// Begin an Experiment anew.
    #[command(visible_alias = "exp", alias = "experiments")]
    Experiment {
        /// The Experiments.
        #[arg(value_name = "EXPERIMENT", required = true)]
        names: Vec<String>,
    },
    /// A name without its kind.
    #[command(external_subcommand)]
    Unknown(Vec<String>),
}

/// Tries again.
pub async fn retry(arguments: Retry) -> anyhow::Result<()> {
    let (resource, names, writes, done) = match &arguments.what {
        Retried::Rollout { names } => (resource::rollouts(), names, intent::retry(), "rollout '{}' retried"),
        Retried::Experiment { names } => (experiments(), names, intent::retry_experiment(), "experiment '{}' retried"),
        Retried::Unknown(words) => return Err(kindless("retry", words, &["rollout", "experiment"])),
    };
    each(&arguments.common, &resource, names, &writes, done).await
}

/// The arguments of `tidegate terminate`.
#[derive(Debug, Args)]
pub struct Terminate {
    #[command(subcommand)]
    what: Terminated,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum Terminated {
    /// End an AnalysisRun early.
    #[command(name = "analysisrun", visible_alias = "ar", alias = "analysisruns")]
    AnalysisRun {
        /// The AnalysisRuns.
        #[arg(value_name = "ANALYSISRUN", required = true)]
        names: Vec<String>,
    },
    /// End an Experiment early.
    #[command(visible_alias = "exp", alias = "experiments")]
    Experiment {
        /// The Experiments.
        #[arg(value_name = "EXPERIMENT", required = true)]
        names: Vec<String>,
    },
    /// A name without its kind.
    #[command(external_subcommand)]
    Unknown(Vec<String>),
}

/// Ends early.
pub async fn terminate(arguments: Terminate) -> anyhow::Result<()> {
    let (resource, names, done) = match &arguments.what {
        Terminated::AnalysisRun { names } => (analysis_runs(), names, "analysisRun '{}' terminated"),
        Terminated::Experiment { names } => (experiments(), names, "experiment '{}' terminated"),
        Terminated::Unknown(words) => return Err(kindless("terminate", words, &["analysisrun", "experiment"])),
    };
    each(&arguments.common, &resource, names, &intent::terminate(), done).await
}

/// The arguments of `tidegate restart`.
#[derive(Debug, Args)]
pub struct Restart {
    /// The Rollout.
    #[arg(value_name = "ROLLOUT")]
    name: String,
    /// In how long, such as 30s, 5m, 1h; at once if not given.
    #[arg(short = 'i', long = "in", value_name = "DURATION")]
    after: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Asks for new pods.
pub async fn restart(arguments: Restart) -> anyhow::Result<()> {
    let after = arguments.after.as_deref().map(lasting).transpose()?.unwrap_or_default();
    let at = Timestamp::now().saturating_add(after).unwrap_or(Timestamp::MAX);
    let cluster = arguments.common.access.connect().await?;
    let writes = intent::restart(Time::from(at));
    let object = write(&cluster, &resource::rollouts(), &arguments.name, &writes).await?;
    let after = arguments.after.as_deref().unwrap_or("0s");
    show(&object, arguments.common.output, &format!("rollout '{}' restarts in {after}\n", arguments.name))
}

/// A duration as people write it for Go.
pub fn lasting(text: &str) -> anyhow::Result<SignedDuration> {
    duration::parse(text)
        .map_err(|error| remedied(anyhow!("{error}"), "give a number with a unit, such as 30s, 5m or 1h30m"))
}

/// Experiments.
pub fn experiments() -> Resource {
    Resource::new(constants::GROUP, constants::VERSION, "experiments")
}

/// AnalysisRuns.
pub fn analysis_runs() -> Resource {
    Resource::new(constants::GROUP, constants::VERSION, "analysisruns")
}

/// Writes the same to each of the named objects; the first that fails ends it.
async fn each(
    common: &Common,
    resource: &Resource,
    names: &[String],
    writes: &Writes,
    done: &str,
) -> anyhow::Result<()> {
    let cluster = common.access.connect().await?;
    for name in names {
        let object = write(&cluster, resource, name, writes).await?;
        show(&object, common.output, &format!("{}\n", done.replace("{}", name)))?;
    }
    Ok(())
}

/// Writes an intent: to status first, be it a subresource or not, then to the object. What a GitSource takes back of that is
/// said.
async fn write(cluster: &Cluster, resource: &Resource, name: &str, writes: &Writes) -> anyhow::Result<Value> {
    if let Some(patch) = &writes.object
        && let Ok(object) = cluster.api.object(resource, &cluster.place(name)).await
    {
        synced::tell(cluster, resource, &object, Some(patch), Hold::No).await?;
    }
    match write_parts(cluster, resource, name, writes).await {
        Ok(object) => Ok(object),
        Err(error) => Err(cluster.explain(error, resource, name).await),
    }
}

async fn write_parts(cluster: &Cluster, resource: &Resource, name: &str, writes: &Writes) -> Result<Value, Error> {
    let (api, place) = (&cluster.api, cluster.place(name));
    let mut written = None;
    if let Some(patch) = &writes.status {
        written = match api.patch(resource, &place, "status", patch).await {
            // Either there is no such object, or status is no subresource: the object itself tells.
            Err(error) if error.code() == Some(404) => Some(api.patch(resource, &place, "", patch).await?),
            outcome => Some(outcome?),
        };
    }
    if let Some(patch) = &writes.object {
        written = Some(api.patch(resource, &place, "", patch).await?);
    }
    match written {
        Some(object) => Ok(object),
        None => api.object(resource, &place).await,
    }
}
