//! `tidegate status`: how a Rollout is doing, until it has arrived or failed.

use anyhow::anyhow;
use clap::{ArgAction, Args};
use jiff::{SignedDuration, Timestamp};

use super::{
    access::Access,
    intent::lasting,
    print::{say, stream},
    program, remedied,
};
use crate::{
    api::{self, Rollout},
    engine::resource,
    io::{follow::Following, watch::Scope},
    kubernetes::value::Value,
    model::health::{Health, Phase},
    rollout::wait::Wait,
};

/// The arguments of `tidegate status`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The Rollout.
    #[arg(value_name = "ROLLOUT")]
    name: String,
    /// Wait until it is healthy or has failed; `--watch=false` says how it is now.
    #[arg(short, long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", hide_possible_values = true)]
    watch: bool,
    /// How long to wait, such as 60s or 5m; 0 is for ever.
    #[arg(short, long, value_name = "DURATION", default_value = "0s")]
    timeout: String,
    #[command(flatten)]
    access: Access,
}

/// Says how it is.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let timeout = lasting(&arguments.timeout)?;
    let cluster = arguments.access.connect().await?;
    let object = cluster.object(&resource::rollouts(), &arguments.name).await?;
    if !arguments.watch {
        let health = health(&object);
        let message = if is_over(&health) { String::new() } else { format!(" - {health}") };
        say(&format!("{}{message}\n", health.phase_word()))?;
        return if health.phase() == Phase::Degraded { Err(degraded(&health)) } else { Ok(()) };
    }
    let fields = format!("metadata.name={}", arguments.name);
    let scope = Scope { fields, ..cluster.scope(&resource::rollouts(), "") };
    let place = cluster.place(&arguments.name);
    let mut following = Following::start(&cluster.api, vec![scope]);
    let mut last = object;
    let arrival = async {
        let mut said = String::new();
        loop {
            let health = health(&last);
            let message = health.to_string();
            let line = if message.is_empty() {
                health.phase_word().to_owned()
            } else {
                format!("{} - {message}", health.phase_word())
            };
            if line != said {
                stream(&format!("{line}\n"))?;
                said = line;
            }
            if is_over(&health) {
                return if health.phase() == Phase::Degraded { Err(degraded(&health)) } else { Ok(()) };
            }
            let Some(object) = following.changed().await.get(&resource::rollouts(), &place) else {
                return Err(anyhow!("rollout \"{}\" was deleted", arguments.name));
            };
            last = object.clone();
        }
    };
    let limit = timeout.try_into().ok().filter(|_| timeout > SignedDuration::ZERO);
    match limit {
        None => arrival.await,
        Some(limit) => match tokio::time::timeout(limit, arrival).await {
            Ok(outcome) => outcome,
            Err(_) => Err(exceeded(&last)),
        },
    }
}

fn health(object: &Value) -> Health {
    let rollout: Rollout = api::read(object).object;
    Health::shown(&rollout, rollout.spec.workload_ref.is_some())
}

fn is_over(health: &Health) -> bool {
    ["Healthy", "Degraded"].contains(&health.phase_word())
}

fn degraded(health: &Health) -> anyhow::Error {
    anyhow!("The rollout is in a degraded state with message: {health}")
}

fn exceeded(object: &Value) -> anyhow::Error {
    let error = anyhow!("Rollout status watch exceeded timeout");
    let rollout: Rollout = api::read(object).object;
    match Wait::of(&rollout, &[]) {
        Some(wait) => {
            let described = wait.describe(&rollout.metadata.name, program(), Timestamp::now());
            remedied(error, format!("it waits {described}"))
        }
        None => error,
    }
}
