//! `tidegate run`: the engine on a cluster, in it or beside it.

use std::{fmt, future::Future, net::SocketAddr, os::unix::fs::DirBuilderExt, path::PathBuf, sync::Arc};

use anyhow::{Context, anyhow};
use jiff::SignedDuration;
use ring::rand::SecureRandom;
use tokio::{
    net::TcpListener,
    signal,
    sync::{
        mpsc::{self, Sender},
        oneshot, watch,
    },
    task::{JoinHandle, JoinSet},
};

use super::{
    access::{Connection, unanswered},
    doctor,
    planner::Planner,
    print::note,
    remedied,
};
use crate::{
    engine::{
        key::Place,
        lease::{self, Candidate, Timing},
    },
    install,
    io::{
        self,
        api::Api,
        clock::Clock,
        daemon::{self, Settings},
        git::Network,
        http::{Http, Limits, Proxy},
        lease::Gate,
        oidc::{ISSUER_LIMITS, Issuers},
        outbound::{self, Destination, Outbound},
        serve::{self, Pages},
        source::{self, Board, Given, Hint},
        watch::Scope,
        webhook::{self, Hooks, News},
    },
    kubernetes::{duration, value::Part},
    metric::{self, SecretHosts},
    model::{git_source::Reference, remote::Remote},
    rollout::Conditions,
    route::{Apis, GroupVersion, RouteScope, SmiVersion},
};

/// The arguments of `tidegate run`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Reconcile the Rollouts and GitSources of this namespace only.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Reconcile the Rollouts with this instance id only; without it, those that have none.
    #[arg(long, value_name = "ID")]
    instance_id: Option<String>,
    /// The port of /metrics; 0 turns it off.
    #[arg(long, alias = "metricsPort", alias = "metricsport", default_value_t = 8090, value_name = "PORT")]
    metrics_port: u16,
    /// The port of /healthz and /readyz; 0 turns it off.
    #[arg(long, alias = "healthzPort", default_value_t = 8080, value_name = "PORT")]
    healthz_port: u16,
    /// Which conditions Rollouts have: `kstatus` for those of Argo Rollouts and `Ready`, `Reconciling` and `Stalled`
    /// beside them, `argo` for those of Argo Rollouts alone.
    #[arg(long, default_value = "kstatus", value_name = "WHICH", value_parser = conditions)]
    conditions: Conditions,
    /// How many Rollouts to work on at once.
    #[arg(long, default_value_t = 16, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    workers: u16,
    /// Sign requests to this host (HOST or HOST:PORT) with the engine's credentials for AWS, too; by default only those
    /// to AWS's own endpoints. May be given several times.
    #[arg(long, value_name = "HOST")]
    aws_host: Vec<String>,
    /// Let Rollouts change VirtualServices of other namespaces (`name.namespace`), as Argo Rollouts does; refused
    /// otherwise.
    #[arg(long)]
    allow_cross_namespace_routes: bool,
    /// Let metrics be measured at this host although it is refused by default (the engine's own machine, link-local and
    /// metadata addresses, the API server) or by --metrics-deny: a name, an ending (`.example`), an address, a range
    /// (`10.0.0.0/8`) or `*`, each with or without `:PORT`. May be given several times.
    #[arg(long, value_name = "HOST", value_parser = destination)]
    metrics_allow: Vec<Destination>,
    /// Let no metric be measured at this host, written as for --metrics-allow, which wins over it.
    #[arg(long, value_name = "HOST", value_parser = destination)]
    metrics_deny: Vec<Destination>,
    /// Send arguments from Secrets only to hosts that the Secret names in its annotation `tidegate.dev/hosts`. Without this
    /// flag a Secret without the annotation goes wherever a metric says, as with Argo Rollouts.
    #[arg(long)]
    require_secret_hosts: bool,
    /// The ServiceAccount of Jobs of analyses in a namespace that is not their run's
    /// (ARGO_ROLLOUTS_ANALYSIS_JOB_NAMESPACE); they get no token of it.
    #[arg(long, default_value = "default", value_name = "NAME")]
    analysis_job_account: String,
    /// Let such Jobs have whatever their runs say, as Argo Rollouts does: any account, Secrets of that namespace,
    /// privileges. Otherwise they have the restricted profile of pod security and nothing of that namespace.
    #[arg(long)]
    trust_analysis_jobs: bool,
    #[command(flatten)]
    routers: Routers,
    #[command(flatten)]
    election: Election,
    /// Write every decision to a file in this folder; `tidegate replay` shows it again.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
    /// Run the program that the kubeconfig names to log in (`exec`, `auth-provider`). A file that somebody else may write
    /// must not decide what the daemon runs, so that it is refused otherwise.
    #[arg(long)]
    allow_kubeconfig_exec: bool,
    #[command(flatten)]
    source: Source,
}

/// The versions of routers' APIs, as Argo Rollouts calls and chooses them.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Routers")]
struct Routers {
    /// The version in which TrafficSplits are written: v1alpha1, v1alpha2 or v1alpha3.
    #[arg(long, default_value = "v1alpha1", value_name = "VERSION", value_parser = smi_version)]
    traffic_split_api_version: SmiVersion,
    /// The version of Istio's VirtualServices and DestinationRules.
    #[arg(long, default_value = "v1alpha3", value_name = "VERSION")]
    istio_api_version: String,
    /// The group and version of Ambassador's Mappings.
    #[arg(long, default_value = "getambassador.io/v2", value_name = "GROUP/VERSION")]
    ambassador_api_version: String,
    /// The group of TraefikServices; traefik.containo.us before version 3 of Traefik.
    #[arg(long, default_value = "traefik.io", value_name = "GROUP")]
    traefik_api_group: String,
    /// The version of TraefikServices; what stands before a slash is passed over.
    #[arg(long, default_value = "traefik.io/v1alpha1", value_name = "VERSION")]
    traefik_api_version: String,
    /// The version of App Mesh's kinds.
    #[arg(long, default_value = "v1beta2", value_name = "VERSION")]
    appmesh_crd_version: String,
}

impl Routers {
    fn apis(&self) -> Apis {
        let traefik = GroupVersion::read(&self.traefik_api_version, "");
        Apis {
            smi: self.traffic_split_api_version,
            istio: self.istio_api_version.as_str().into(),
            traefik: GroupVersion { group: self.traefik_api_group.as_str().into(), ..traefik },
            ambassador: GroupVersion::read(&self.ambassador_api_version, "getambassador.io"),
            app_mesh: self.appmesh_crd_version.as_str().into(),
            ..Apis::default()
        }
    }
}

fn smi_version(word: &str) -> Result<SmiVersion, &'static str> {
    SmiVersion::read(word).ok_or("it is one of v1alpha1, v1alpha2 and v1alpha3")
}

fn conditions(word: &str) -> Result<Conditions, &'static str> {
    match word {
        "kstatus" => Ok(Conditions::Kstatus),
        "argo" => Ok(Conditions::Argo),
        _ => Err("it is one of kstatus and argo"),
    }
}

fn destination(text: &str) -> Result<Destination, &'static str> {
    text.parse()
}

/// A source without a GitSource.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// Sync this repository as well: a folder, or its https or ssh URL. GitSources of the cluster need no flag.
    #[arg(long, value_name = "REPO")]
    repo: Option<String>,
    /// The folder of the repository that holds the manifests.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "FOLDER", requires = "repo")]
    path: String,
    /// The branch to follow; the repository's default if not given.
    #[arg(long, value_name = "NAME", requires = "repo")]
    branch: Option<String>,
    /// How often to look for new commits.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = interval)]
    interval: SignedDuration,
    /// Where fetched repositories are kept; by default in the user's cache.
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Hear webhooks at this address; each source's path is /hook/NAMESPACE/NAME, and /plan/NAMESPACE/NAME for the plans that
    /// workflows ask for. None are heard if not given.
    #[arg(long, value_name = "ADDRESS")]
    webhooks: Option<SocketAddr>,
    /// Show how each source is doing at this address, under /sources/NAMESPACE/NAME, to whoever can reach it. Nothing is
    /// shown if not given.
    #[arg(long, value_name = "ADDRESS")]
    pages: Option<SocketAddr>,
    /// Where people reach those pages: what commits are told links there.
    #[arg(long, value_name = "URL", value_parser = base_url)]
    pages_url: Option<String>,
}

impl Source {
    fn given(&self, namespace: &str) -> anyhow::Result<Option<Given>> {
        let Some(repo) = self.repo.as_deref() else { return Ok(None) };
        // The address is not repeated: it may hold a password.
        if !std::path::Path::new(repo).is_dir()
            && let Err(why) = Remote::parse(repo)
        {
            let remedy =
                "give a folder, https://host/path or ssh://user@host/path; a GitSource names a Secret to fetch with";
            return Err(remedied(anyhow!("--repo is neither a folder nor an address: {why}"), remedy));
        }
        let reference = self.branch.clone().map_or(Reference::Default, Reference::Branch);
        Ok(Some(Given::new(namespace, &source_name(repo), repo, &self.path, reference, self.interval)))
    }
}

/// What a repository's source is called: the last part of its address, as far as it can be a name.
pub fn source_name(repo: &str) -> String {
    let last =
        repo.trim_end_matches('/').rsplit('/').next().unwrap_or_default().trim_end_matches(".git").to_lowercase();
    let name: String = last.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "repository".to_owned() } else { name.chars().take(40).collect() }
}

fn interval(text: &str) -> Result<SignedDuration, String> {
    match duration::parse(text) {
        Ok(interval) if interval.is_positive() => Ok(interval),
        Ok(_) => Err("it must be above zero".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// An address that others can follow: no user, no query, no slash at its end.
pub(super) fn base_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let rest = rest.ok_or("it must begin with https:// or http://")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]".contains(c);
    if rest.is_empty() || rest.starts_with('/') || !rest.chars().all(plain) {
        return Err("it must be an address such as https://tidegate.example, without a user or a query".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Which of several works.
#[derive(Debug, clap::Args)]
struct Election {
    /// Work only while holding a Lease, so that several can be started and one of them works. By default when it runs in
    /// a cluster. The Lease is that of Argo Rollouts: the two never work at the same time.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    leader_elect: Option<bool>,
    /// The namespace of the Lease; by default the one it runs in, or that of the kubeconfig's context.
    #[arg(long, value_name = "NAME")]
    leader_election_namespace: Option<String>,
    /// How long a holder is believed in without news.
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = duration::parse)]
    leader_election_lease_duration: SignedDuration,
    /// How long a holder may work without a renewal.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration::parse)]
    leader_election_renew_deadline: SignedDuration,
    /// How often to try.
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = duration::parse)]
    leader_election_retry_period: SignedDuration,
}

impl Election {
    /// The candidate, if there is an election.
    fn candidate(&self, is_inside: bool) -> anyhow::Result<Option<Candidate>> {
        if !self.leader_elect.unwrap_or(is_inside) {
            return Ok(None);
        }
        let timing = Timing {
            lease: self.leader_election_lease_duration,
            renewal: self.leader_election_renew_deadline,
            retry: self.leader_election_retry_period,
        };
        if !(timing.retry.is_positive() && timing.retry < timing.renewal && timing.renewal < timing.lease) {
            let wanted = "the retry period must be shorter than the renew deadline, and that than the lease duration";
            return Err(remedied(anyhow!("{wanted}"), "leave the three flags away, or give such as 2s, 10s and 15s"));
        }
        let mut chance = [0; 16];
        let drawn = ring::rand::SystemRandom::new().fill(&mut chance);
        drawn.map_err(|_| anyhow!("the system has no random numbers"))?;
        let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
        let unique: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Some(Candidate::new(&format!("{}_{unique}", host.trim()), timing)))
    }
}

/// The time from standing for the Lease until the process is told to stop, or another one leads.
struct Term {
    over: watch::Receiver<bool>,
    end: oneshot::Sender<()>,
    ending: JoinHandle<bool>,
}

impl Term {
    fn begin(api: Api, place: Place, candidate: Candidate) -> (Term, Gate) {
        let (leads, gate) = io::lease::gate();
        let (end, ended) = oneshot::channel::<()>();
        let (tell, over) = watch::channel(false);
        let mut standing = tokio::spawn(io::lease::stand(api, place, candidate, leads, async { drop(ended.await) }));
        let ending = tokio::spawn(async move {
            let is_lost = tokio::select! {
                () = stopped() => false,
                _ = &mut standing => true,
            };
            tell.send_replace(true);
            if !is_lost {
                // Until it was given back.
                let _ = standing.await;
            }
            is_lost
        });
        (Term { over, end, ending }, gate)
    }

    fn is_over(&self) -> impl Future<Output = ()> + use<> {
        let mut over = self.over.clone();
        async move { drop(over.wait_for(|over| *over).await) }
    }

    /// Gives the Lease back, now that everything that was under way has ended.
    async fn end(self) -> anyhow::Result<()> {
        drop(self.end);
        match self.ending.await {
            Ok(false) => Ok(()),
            Ok(true) | Err(_) => Err(remedied(anyhow!("another daemon leads"), "start this one again to stand by")),
        }
    }
}

/// Resolves when this process leads.
async fn opened(mut gate: Gate) {
    while !gate.is_open() {
        gate.changed().await;
    }
}

/// Works until it is told to stop.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(serve(arguments))
}

async fn serve(arguments: Arguments) -> anyhow::Result<()> {
    if let Some(folder) = &arguments.record {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
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
    without_programs(&config, arguments.allow_kubeconfig_exec)?;
    let address = config.cluster_url.to_string();
    let is_inside = arguments.connection.kubeconfig.is_none() && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let candidate = arguments.election.candidate(is_inside)?;
    let own = arguments.election.leader_election_namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let context = config.default_namespace.clone();
    let api = arguments.connection.api(config)?;
    let version = api.get("/version").await.map_err(unanswered)?;
    let version = version.str_at(&["gitVersion"]).unwrap_or_default();
    tracing::info!(server = %address, version, "the engine is at work");
    if !has_definitions(&api).await? {
        note(
            "note: the cluster does not know Rollouts yet; `tidegate crds | kubectl apply -f -` installs the definitions",
        );
        api.outages().definitions_are_said();
    }
    let mut measuring = metric::Settings::of(&own, |name| std::env::var(name).ok());
    let outbound = Outbound {
        allow: arguments
            .metrics_allow
            .into_iter()
            // What the operator names elsewhere may be reached as well.
            .chain(outbound::named(measuring.prometheus.as_deref()))
            .chain(arguments.aws_host.iter().filter_map(|host| host.parse().ok()))
            .collect(),
        deny: arguments.metrics_deny,
        api_server: api_server(&address).await,
        anywhere: false,
    };
    measuring.aws.hosts = arguments.aws_host;
    measuring.jobs.account = Some(arguments.analysis_job_account);
    measuring.jobs.is_trusted = arguments.trust_analysis_jobs;
    if arguments.require_secret_hosts {
        measuring.secret_hosts = SecretHosts::Required;
    }
    let settings = Settings {
        namespace: arguments.namespace,
        instance: arguments.instance_id,
        workers: usize::from(arguments.workers),
        record: arguments.record,
        measuring,
        conditions: arguments.conditions,
        route_scope: match arguments.allow_cross_namespace_routes {
            true => RouteScope::Cluster,
            false => RouteScope::Namespace,
        },
        apis: arguments.routers.apis(),
        outbound,
        clock: Clock::Wall,
    };
    let sources = source::Settings {
        namespace: settings.namespace.clone(),
        given: arguments.source.given(settings.namespace.as_deref().unwrap_or(&context))?.into_iter().collect(),
        ..source::Settings::default()
    };
    let lease_name = lease::name(settings.instance.as_deref(), settings.namespace.as_deref(), &own);
    let begins = Begins {
        cluster: format!("{address} ({version})"),
        namespace: settings.namespace.as_deref(),
        lease: candidate.is_some().then(|| format!("{own}/{lease_name}")),
        sources: count_sources(&api, settings.namespace.as_deref()).await,
        given: sources.given.first(),
    };
    note(begins);
    if candidate.is_some() {
        let (api, own) = (api.clone(), own.clone());
        let scope = settings.namespace.clone().map_or(install::Scope::Cluster, install::Scope::Namespace);
        tokio::spawn(async move { doctor::warn_of_missing_rights(&api, scope, &own).await });
    }
    let (hints, hinted) = tokio::sync::mpsc::channel(256);
    let planner = Planner::new(
        api.clone(),
        address.clone(),
        sources.namespace.clone(),
        network()?,
        Issuers::new(Http::new(proxy()?, ISSUER_LIMITS).context("cannot prepare TLS")?),
        arguments.source.cache.clone().unwrap_or_else(cache).join("plans"),
    );
    let sources = source::Settings {
        cache: arguments.source.cache.clone().unwrap_or_else(cache),
        network: Some(network()?),
        hooks: hooks(arguments.source.webhooks, hints, planner).await?,
        board: board(arguments.source.pages).await?,
        pages: arguments.source.pages_url.clone(),
        references: source::References::Watched,
        ..sources
    };
    match candidate {
        None => {
            tokio::join!(
                daemon::answer(api.clone(), settings, questions, stopped()),
                source::run(api, sources, hinted, None, stopped()),
            );
        }
        Some(candidate) => {
            let (term, gate) = Term::begin(api.clone(), Place::new(&own, &lease_name), candidate);
            let api = api.behind(gate.clone());
            tokio::join!(daemon::answer(api.clone(), settings, questions, term.is_over()), async {
                tokio::select! {
                    () = opened(gate) => source::run(api, sources, hinted, None, term.is_over()).await,
                    () = term.is_over() => {}
                }
            },);
            term.end().await?;
        }
    }
    tracing::info!("stopped");
    Ok(())
}

/// What a daemon says when it begins.
struct Begins<'b> {
    cluster: String,
    namespace: Option<&'b str>,
    /// The Lease that it works under, if there is an election.
    lease: Option<String>,
    /// How many GitSources there are now, or why that is not known.
    sources: Result<usize, &'static str>,
    given: Option<&'b Given>,
}

impl fmt::Display for Begins<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tidegate {} on {}; namespaces: ", env!("CARGO_PKG_VERSION"), self.cluster)?;
        f.write_str(self.namespace.unwrap_or("all"))?;
        match &self.lease {
            Some(lease) => write!(f, "; works while it holds the Lease {lease}")?,
            None => f.write_str("; no leader election")?,
        }
        match self.sources {
            Ok(1) => f.write_str("; sources: 1 GitSource")?,
            Ok(count) => write!(f, "; sources: {count} GitSources")?,
            Err(why) => write!(f, "; sources: {why}")?,
        }
        match self.given {
            Some(given) => write!(f, ", and the repository {} into the namespace {}", given.name, given.namespace),
            None => Ok(()),
        }
    }
}

/// How many GitSources there are. That they cannot be counted stops nothing: the watches say why, and go on trying.
async fn count_sources(api: &Api, namespace: Option<&str>) -> Result<usize, &'static str> {
    let namespace = namespace.map(str::to_owned);
    let scope = Scope { namespace, part: Part::Metadata, ..Scope::of(&source::git_sources()) };
    match io::watch::list(api, &scope).await {
        Ok((sources, _)) => Ok(sources.len()),
        Err(error) if error.code() == Some(404) => Err("the definition of GitSource is not installed"),
        Err(error) if error.code() == Some(403) => Err("may not list GitSources"),
        Err(_) => Err("GitSources could not be listed"),
    }
}

/// Whether the cluster knows the kinds of Argo Rollouts.
async fn has_definitions(api: &Api) -> anyhow::Result<bool> {
    match api.get("/apis/argoproj.io/v1alpha1").await {
        Ok(group) => {
            let mut resources = group.list_at(&["resources"]).iter();
            Ok(resources.any(|resource| resource.str_at(&["name"]) == Some("rollouts")))
        }
        Err(error) if error.code() == Some(404) => Ok(false),
        // Whoever may not ask finds out by itself.
        Err(error) if error.code() == Some(403) => Ok(true),
        Err(error) => Err(unanswered(error)),
    }
}

/// How hosts of repositories are reached: through the proxy that the environment names, if it does.
fn network() -> anyhow::Result<Arc<Network>> {
    let proxy = proxy()?;
    let http = Http::new(proxy.clone(), Limits::default()).context("cannot prepare TLS")?;
    Ok(Arc::new(Network::new(http, proxy)))
}

/// The proxy that the environment names.
pub(super) fn proxy() -> anyhow::Result<Option<Proxy>> {
    let variable = |name: &str| std::env::var(name).or_else(|_| std::env::var(name.to_lowercase())).ok();
    let except = variable("NO_PROXY").unwrap_or_default();
    let proxy = variable("HTTPS_PROXY").filter(|url| !url.is_empty());
    proxy.map(|url| Proxy::parse(&url, &except)).transpose().context("cannot use HTTPS_PROXY")
}

/// Where fetched repositories are kept if nothing is said.
fn cache() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    home.unwrap_or_else(std::env::temp_dir).join("tidegate").join("git")
}

/// Refuses a kubeconfig that has a program run, unless the operator lets it.
fn without_programs(config: &kube::Config, allowed: bool) -> anyhow::Result<()> {
    let named = match (&config.auth_info.exec, &config.auth_info.auth_provider) {
        (Some(exec), _) => format!("exec ({})", exec.command.as_deref().unwrap_or_default()),
        (None, Some(provider)) => format!("auth-provider ({})", provider.name),
        (None, None) => return Ok(()),
    };
    if allowed {
        return Ok(());
    }
    let remedy =
        "give --allow-kubeconfig-exec if you trust whoever can write the file, or give --token or a client certificate";
    Err(remedied(anyhow!("the kubeconfig has a program run to log in: {named}"), remedy))
}

/// The addresses at which the API server is known to be: of metrics it is out of reach.
async fn api_server(url: &str) -> Vec<SocketAddr> {
    let variable = |name: &str| std::env::var(name).ok();
    let inside = || Some((variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?.parse().ok()?));
    let uri: Option<http::Uri> = url.parse().ok();
    let given = uri.and_then(|uri| {
        let usual = if uri.scheme_str() == Some("http") { 80 } else { 443 };
        Some((uri.host()?.trim_matches(['[', ']']).to_owned(), uri.port_u16().unwrap_or(usual)))
    });
    let mut found = Vec::new();
    for (host, port) in inside().into_iter().chain(given) {
        found.extend(tokio::net::lookup_host((host, port)).await.into_iter().flatten());
    }
    found
}

/// Opens the doors for webhooks and for workflows that ask for plans: what is heard becomes a hint.
async fn hooks(address: Option<SocketAddr>, hints: Sender<Hint>, planner: Planner) -> anyhow::Result<Option<Hooks>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen at {address}"))?;
    let (news, mut heard) = tokio::sync::mpsc::channel::<News>(256);
    let hooks = Hooks::with_plans(webhook::Limits::default(), news, Some(planner.answers()));
    tokio::spawn(hooks.clone().serve(listener, std::future::pending()));
    tokio::spawn(async move {
        while let Some(news) = heard.recv().await {
            let place = Place::new(&news.source.namespace, &news.source.name);
            if hints.send(Hint::Source(place)).await.is_err() {
                return;
            }
        }
    });
    Ok(Some(hooks))
}

/// Shows the pages of sources.
async fn board(address: Option<SocketAddr>) -> anyhow::Result<Option<Board>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen at {address}"))?;
    let board = Board::default();
    tokio::spawn(board.clone().serve(listener));
    Ok(Some(board))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commits_link_to_holds_no_password() {
        assert_eq!(base_url("https://t.example/x/").unwrap(), "https://t.example/x");
        for wrong in ["t.example", "https://", "https:///x", "https://ada:pw@t.example", "https://t.example?token=x"] {
            assert!(base_url(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn sr10_a_kubeconfig_runs_nothing_unless_the_operator_lets_it() {
        let check = async |user: &str, allowed: bool, expected: Option<&str>| {
            let text = format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
                 clusters: [{{name: k, cluster: {{server: 'https://127.0.0.1:1'}}}}]\nusers: [{{name: u, user: {user}}}]\n"
            );
            let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
            let said = without_programs(&config, allowed).err().map(|error| error.to_string());
            assert_eq!(said.as_deref(), expected, "{user}");
        };
        let exec = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/evil, interactiveMode: Never}}";
        check(exec, false, Some("the kubeconfig has a program run to log in: exec (/bin/evil)")).await;
        let provider = "{auth-provider: {name: gcp, config: {cmd-path: /bin/evil}}}";
        check(provider, false, Some("the kubeconfig has a program run to log in: auth-provider (gcp)")).await;
        check(exec, true, None).await;
        check("{token: x}", false, None).await;
    }

    #[test]
    fn a_daemon_says_what_it_begins_with() {
        let given = Given::new("shop", "web", "/srv/web", "", Reference::Default, SignedDuration::from_secs(1));
        let begins = |namespace, lease: Option<&str>, sources, given| {
            let cluster = "https://c (v1.35.0)".to_owned();
            Begins { cluster, namespace, lease: lease.map(str::to_owned), sources, given }.to_string()
        };
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            begins(None, None, Ok(2), None),
            format!(
                "tidegate {version} on https://c (v1.35.0); namespaces: all; no leader election; sources: 2 GitSources"
            )
        );
        assert_eq!(
            begins(Some("shop"), Some("ops/lock"), Err("may not list GitSources"), Some(&given)),
            format!(
                "tidegate {version} on https://c (v1.35.0); namespaces: shop; works while it holds the Lease ops/lock; \
                 sources: may not list GitSources, and the repository web into the namespace shop"
            )
        );
    }

    #[test]
    fn a_source_is_called_after_its_repository() {
        for (repo, name) in
            [("https://git.example/team/Shop.git", "shop"), ("/srv/repos/my app/", "my-app"), (".", "repository")]
        {
            assert_eq!(source_name(repo), name);
        }
    }
}
