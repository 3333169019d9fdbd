//! `tidegate run`: the engine on a cluster, in it or beside it.

use std::path::PathBuf;

use anyhow::Context;
use kube::Client;
use tokio::{signal, sync::mpsc, task::JoinSet};

use super::{access::Connection, remedied};
use crate::io::{
    api::Api,
    daemon::{self, Settings},
    serve::{self, Pages},
};

/// The arguments of `tidegate run`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Look after the Rollouts of this namespace only.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Look after the Rollouts with this instance id only; without it, after those that have none.
    #[arg(long, value_name = "ID")]
    instance_id: Option<String>,
    /// The port of /metrics; 0 turns it off.
    #[arg(long, alias = "metricsPort", alias = "metricsport", default_value_t = 8090, value_name = "PORT")]
    metrics_port: u16,
    /// The port of /healthz and /readyz; 0 turns it off.
    #[arg(long, alias = "healthzPort", default_value_t = 8080, value_name = "PORT")]
    healthz_port: u16,
    /// How many Rollouts to work on at once.
    #[arg(long, default_value_t = 16, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    workers: u16,
    /// Write every decision to a file in this folder; `tidegate replay` shows it again.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
}

/// Works until it is told to stop.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(serve(arguments))
}

async fn serve(arguments: Arguments) -> anyhow::Result<()> {
    if let Some(folder) = &arguments.record {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let (sender, questions) = mpsc::channel(16);
    let mut pages = JoinSet::new();
    for (port, of, flag) in [
        (arguments.metrics_port, Pages::Metrics, "--metrics-port"),
        (arguments.healthz_port, Pages::Health, "--healthz-port"),
    ] {
        if port > 0 {
            let listener = serve::listen(port).await.map_err(|error| {
                remedied(error.into(), format!("give another port with `{flag} PORT`, or `{flag} 0` to do without"))
            })?;
            pages.spawn(serve::serve(listener, of, sender.clone()));
        }
    }
    let config = arguments.connection.config().await?;
    let address = config.cluster_url.to_string();
    let client = Client::try_from(config).context("cannot talk to the cluster")?;
    let version = client.apiserver_version().await.with_context(|| format!("no answer from {address}"))?;
    tracing::info!(server = %address, version = version.git_version, "the engine is at work");
    let settings = Settings {
        namespace: arguments.namespace,
        instance: arguments.instance_id,
        workers: usize::from(arguments.workers),
        record: arguments.record,
    };
    daemon::answer(Api::new(client), settings, questions, stopped()).await;
    tracing::info!("stopped");
    Ok(())
}

/// Resolves when the process is told to end.
async fn stopped() {
    let interrupted = signal::ctrl_c();
    let Ok(mut terminated) = signal::unix::signal(signal::unix::SignalKind::terminate()) else {
        let _ = interrupted.await;
        return;
    };
    tokio::select! {
        _ = interrupted => {}
        _ = terminated.recv() => {}
    }
}
