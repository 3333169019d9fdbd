//! `tidegate cluster`: the embedded cluster on a loopback port, for kubectl and anything else that speaks to Kubernetes.

use std::{
    future::Future,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anstyle::AnsiColor;
use anyhow::{Context, anyhow};
use jiff::Timestamp;

use super::{
    Output, bold, kubeconfig,
    print::{line, note},
    remedied,
    stop::Stop,
};
use crate::embedded::{
    controllers::{self, Controller, World},
    http::{
        cluster::{Cluster, Pace},
        data::{self, Data},
        server::{self, Identity},
        service::{Front, Settings},
    },
    store::{Config, Store, journal::Journal},
};
use crate::kubernetes::clock::Clock;

/// The arguments of `tidegate cluster`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The loopback port to serve on; a free one if not given.
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "PORT")]
    port: u16,
    /// The kubeconfig to add a context to; a file of its own if not given. Other contexts in it stay as they are.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The name of the context, cluster and user in the kubeconfig.
    #[arg(long, default_value = "tidegate", value_name = "NAME")]
    context: String,
    /// Keep every object in this file, and come back with them after a restart.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Decides everything random (uids, generated names, addresses), so that two runs can be alike.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Run only these controllers, by the names kube-controller-manager gives them, and the kubelet only if it is named.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = controller)]
    controllers: Option<Vec<Controller>>,
    /// Install the definitions of Rollout, AnalysisTemplate, Experiment and the other kinds that `tidegate crds` prints.
    #[arg(long)]
    crds: bool,
    /// What to print when the cluster is ready.
    #[arg(short, long, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    output: Output,
}

impl Arguments {
    /// The same, with the definitions of our kinds.
    pub fn with_definitions(self) -> Arguments {
        Arguments { crds: true, ..self }
    }
}

/// Serves until it is told to stop.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    run_with(arguments, |_| std::future::pending())
}

/// The same, with something at work beside it; if that ends, so does the cluster.
pub fn run_with<W>(arguments: Arguments, beside: impl FnOnce(Cluster) -> W) -> anyhow::Result<()>
where
    W: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    let outcome = runtime.block_on(serve(arguments, beside));
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

async fn serve<W>(arguments: Arguments, beside: impl FnOnce(Cluster) -> W) -> anyhow::Result<()>
where
    W: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let (mut store, data, notices) = open(&arguments)?;
    if arguments.crds {
        crate::sim::install::definitions(&mut store).context("cannot install the definitions")?;
    }
    let world = World::new(controllers::Settings {
        seed: arguments.seed.unwrap_or(store.version()),
        controllers: arguments.controllers.clone().unwrap_or(Controller::ALL.to_vec()),
        ..Default::default()
    });
    let listener = server::listen(arguments.port).await.map_err(port_remedy)?;
    let address = listener.local_addr().context("cannot listen")?;
    let identity = Identity::new()?;
    let token = server::token();
    let access = kubeconfig::Access {
        name: arguments.context.clone(),
        server: format!("https://{address}"),
        authority: identity.authority.clone(),
        token: token.clone(),
    };
    let own = arguments.kubeconfig.is_none();
    let path = arguments.kubeconfig.clone().unwrap_or_else(|| own_kubeconfig(address.port()));
    let path = std::path::absolute(&path).unwrap_or(path);
    let merged = kubeconfig::write(&path, &access).map_err(|error| {
        let remedy = error.remedy();
        remedied(error.into(), remedy)
    })?;

    let cluster = Cluster::new(store, Some(world), data, Pace::Wall);
    let settings = Settings { token: Some(token), address: address.to_string() };
    let front = Front::new(cluster.clone(), settings);
    let driver = tokio::spawn(cluster.clone().drive());
    let mut stop = Stop::new()?;
    let ready = Ready { access: &access, path: &path, merged: &merged, data: arguments.data.as_deref(), notices };
    ready.print(arguments.output);
    let stopping = cluster.clone();
    let mut work = tokio::spawn(beside(cluster.clone()));
    let (ended, end) = tokio::sync::oneshot::channel();
    server::serve(listener, identity, front, async move {
        let outcome = tokio::select! {
            _ = stop.asked() => Ok(()),
            outcome = &mut work => outcome.context("what runs in the cluster failed").and_then(|outcome| outcome),
        };
        work.abort();
        // What it shows comes to its end before anything else is printed.
        if !work.is_finished() {
            let _ = work.await;
        }
        let _ = ended.send(outcome);
        stopping.close();
    })
    .await;
    driver.await.context("the driver failed")?;
    end.await.unwrap_or(Ok(()))?;
    if own {
        let _ = std::fs::remove_file(&path);
    }
    if arguments.output == Output::Text {
        note("stopped");
    }
    Ok(())
}

fn controller(name: &str) -> Result<Controller, String> {
    Controller::named(name).ok_or_else(|| {
        let known = Controller::ALL.map(Controller::name);
        format!("there is no controller of this name; there are {}", known.join(", "))
    })
}

/// The store, new or as the data file says, and what there is to say about the file.
fn open(arguments: &Arguments) -> anyhow::Result<(Store, Option<Data>, Vec<String>)> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = arguments.seed.unwrap_or(since.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32));
    let config = Config { clock: Clock::Wall(Timestamp::now()), ..Config::new(Timestamp::now(), seed) };
    let Some(path) = &arguments.data else { return Ok((Store::new(config), None, Vec::new())) };
    let (data, journal) = Data::open(path).map_err(|error: data::Error| {
        let remedy = error.remedy();
        remedied(error.into(), remedy)
    })?;
    let mut notices = Vec::new();
    if journal.torn > 0 {
        notices.push(format!("{} bytes of an unfinished write at the end of the data file were removed", journal.torn));
    }
    if journal.records == 0 {
        return Ok((Store::new(config), Some(data), notices));
    }
    notices.push(format!("{} objects restored", journal.objects.len()));
    let config = Config { seed: config.seed.wrapping_add(journal.version), ..config };
    Ok((restore(config, journal)?, Some(data), notices))
}

/// Puts every object back, definitions of custom resources first.
fn restore(config: Config, journal: Journal) -> anyhow::Result<Store> {
    let mut store = Store::empty(config);
    let (definitions, rest): (Vec<_>, Vec<_>) =
        journal.objects.into_iter().partition(|(place, _)| place.1 == "customresourcedefinitions");
    for (place, object) in definitions.into_iter().chain(rest) {
        let object = std::sync::Arc::unwrap_or_clone(object);
        if let Err(why) = store.restore(object) {
            let (_, plural, namespace, name) = place;
            return Err(remedied(
                anyhow!("cannot restore {plural} {namespace}/{name}: {why}"),
                "use the version of tidegate that wrote the file, or name another file; it was left as it is",
            ));
        }
    }
    store.resume(journal.version);
    Ok(store)
}

fn port_remedy(error: server::Error) -> anyhow::Error {
    let remedy = match &error {
        server::Error::Listen(_, cause) if cause.kind() == std::io::ErrorKind::AddrInUse => {
            "another program uses this port: choose another `--port`, or leave it out to take a free one"
        }
        server::Error::Listen(_, cause) if cause.kind() == std::io::ErrorKind::PermissionDenied => {
            "ports below 1024 need privileges: choose another `--port`, or leave it out to take a free one"
        }
        _ => return error.into(),
    };
    remedied(error.into(), remedy)
}

/// A kubeconfig of this cluster only, gone when it ends.
fn own_kubeconfig(port: u16) -> PathBuf {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    folder.unwrap_or_else(std::env::temp_dir).join(format!("tidegate-{port}.kubeconfig"))
}

/// What the user needs to know once the cluster is ready.
struct Ready<'a> {
    access: &'a kubeconfig::Access,
    path: &'a Path,
    merged: &'a kubeconfig::Merged,
    data: Option<&'a Path>,
    notices: Vec<String>,
}

impl Ready<'_> {
    fn print(&self, output: Output) {
        let Ready { access, path, .. } = self;
        match output {
            Output::Json => {
                let json = serde_json::json!({
                    "server": access.server,
                    "kubeconfig": path,
                    "context": access.name,
                    "token": access.token,
                    "certificateAuthority": access.authority,
                    "data": self.data,
                    "notices": self.notices,
                });
                line(json);
            }
            Output::Text => self.print_text(),
        }
    }

    fn print_text(&self) {
        let Ready { access, path, merged, .. } = self;
        let (green, cyan) = (bold(AnsiColor::Green), bold(AnsiColor::Cyan));
        line(format_args!("{green}cluster ready{green:#} at {}", access.server));
        for notice in &self.notices {
            line(notice);
        }
        if let Some(data) = self.data {
            line(format_args!("objects are kept in {}", data.display()));
        }
        line(format_args!("\n  {cyan}export KUBECONFIG={}{cyan:#}", shell_quoted(&path.to_string_lossy())));
        match merged.current == access.name {
            true => line(format_args!("  {cyan}kubectl get namespaces{cyan:#}")),
            false => {
                let context = shell_quoted(&access.name);
                line(format_args!("  {cyan}kubectl --context {context} get namespaces{cyan:#}"));
                line(format_args!("\nthe current context stays {}", merged.current));
            }
        }
        line(format_args!("\npress Ctrl-C to stop"));
    }
}

/// Text that a shell takes as one word.
fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.into() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
