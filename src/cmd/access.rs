//! How commands reach a cluster: kubectl's own flags, the kubeconfig, and one clear error when there is nothing there.

use std::{fmt, path::PathBuf, time::Duration};

use anyhow::{Context, anyhow};
use jiff::SignedDuration;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use super::remedied;
use crate::{
    engine::key::{Place, Resource},
    io::{
        api::{Api, Error},
        watch::{self, Scope},
    },
    kubernetes::{duration, value::Value},
    lint::similar,
};

/// Which cluster, and as whom: the flags of kubectl.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = HEADING)]
pub struct Connection {
    /// The kubeconfig that leads to the cluster; by default $KUBECONFIG, ~/.kube/config, or the cluster it runs in.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
    /// The cluster of the kubeconfig.
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    cluster: Option<String>,
    /// The user of the kubeconfig.
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    user: Option<String>,
    /// The address of the API server.
    #[arg(short, long, global = true, value_name = "URL", hide_short_help = true)]
    server: Option<http::Uri>,
    /// The bearer token.
    #[arg(long, global = true, value_name = "TOKEN", hide_short_help = true)]
    token: Option<Token>,
    /// Act as this user.
    #[arg(long = "as", global = true, value_name = "USER", hide_short_help = true)]
    as_user: Option<String>,
    /// Act as a member of this group; can be given several times.
    #[arg(long, global = true, value_name = "GROUP", hide_short_help = true)]
    as_group: Vec<String>,
    /// Act as the user of this uid.
    #[arg(long, global = true, value_name = "UID", hide_short_help = true)]
    as_uid: Option<String>,
    /// Do not check the server's certificate.
    #[arg(long, global = true, hide_short_help = true)]
    insecure_skip_tls_verify: bool,
    /// The authority that the server's certificate is from.
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    certificate_authority: Option<PathBuf>,
    /// The certificate to show.
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    client_certificate: Option<String>,
    /// The key of that certificate.
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    client_key: Option<String>,
    /// The name that the server's certificate must have.
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    tls_server_name: Option<String>,
    /// How long to wait for the answer to a request, such as 5, 1s, 2m or 3h; 0 is for ever. What is watched goes on.
    #[arg(long, global = true, value_name = "DURATION", value_parser = patience, hide_short_help = true)]
    request_timeout: Option<SignedDuration>,
    /// Do not ask for compressed answers; none are asked for.
    #[arg(long, global = true, hide_short_help = true)]
    disable_compression: bool,
    /// Where kubectl keeps what it knows of a cluster; nothing is kept.
    #[arg(long, global = true, value_name = "FOLDER", hide_short_help = true)]
    cache_dir: Option<PathBuf>,
}

/// A duration as kubectl takes it: a number alone is seconds.
fn patience(text: &str) -> Result<SignedDuration, &'static str> {
    let seconds = text.parse().map(SignedDuration::from_secs).ok();
    let duration = seconds.or_else(|| duration::parse(text).ok()).filter(|duration| !duration.is_negative());
    duration.ok_or("give a number of seconds, or a number with a unit, such as 5, 1s, 2m or 3h")
}

/// The flags of a connection that take a value, as they may stand before the command.
const VALUED: [&str; 21] = [
    "-n",
    "--namespace",
    "--kubeconfig",
    "--context",
    "--cluster",
    "--user",
    "-s",
    "--server",
    "--token",
    "--as",
    "--as-group",
    "--as-uid",
    "--certificate-authority",
    "--client-certificate",
    "--client-key",
    "--tls-server-name",
    "--request-timeout",
    "--cache-dir",
    "-v",
    "--kloglevel",
    "--loglevel",
];

/// Those that take none.
const SWITCHES: [&str; 2] = ["--insecure-skip-tls-verify", "--disable-compression"];

/// Those of one letter, whose value may follow at once.
const LETTERS: [&str; 3] = ["-n", "-s", "-v"];

/// kubectl takes its flags before the command, too (`kubectl argo rollouts -n shop get rollout web`); ours belong to the
/// commands. Arguments with such flags moved behind the command's name.
pub fn with_flags_behind(arguments: Vec<String>) -> Vec<String> {
    let mut flags = Vec::new();
    let mut rest = arguments.into_iter();
    let program: Vec<String> = rest.by_ref().take(1).collect();
    while let Some(argument) = rest.next() {
        let name = argument.split('=').next().unwrap_or_default();
        if VALUED.contains(&name) || LETTERS.iter().any(|letter| name.starts_with(letter)) {
            let separate = argument == name && VALUED.contains(&name);
            flags.push(argument);
            flags.extend(rest.by_ref().take(usize::from(separate)));
        } else if SWITCHES.contains(&name) {
            flags.push(argument);
        } else if argument.starts_with('-') {
            // A flag of the program itself, such as --log: as it was.
            return program.into_iter().chain(flags).chain([argument]).chain(rest).collect();
        } else {
            return program.into_iter().chain([argument]).chain(flags).chain(rest).collect();
        }
    }
    program.into_iter().chain(flags).collect()
}

/// A secret that no output shows.
#[derive(Clone)]
struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl From<&str> for Token {
    fn from(text: &str) -> Token {
        Token(text.to_owned())
    }
}

impl Connection {
    /// What the flags and the kubeconfig come to.
    pub async fn config(&self) -> anyhow::Result<Config> {
        let options =
            KubeConfigOptions { context: self.context.clone(), cluster: self.cluster.clone(), user: self.user.clone() };
        let read = match &self.kubeconfig {
            Some(file) => Kubeconfig::read_from(file),
            None => Kubeconfig::read(),
        };
        let chosen =
            self.kubeconfig.is_some() || self.context.is_some() || self.cluster.is_some() || self.user.is_some();
        let mut proxied = false;
        let mut config = match read {
            Ok(kubeconfig) => {
                let contexts: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
                let is_proxied = |named: &kube::config::NamedCluster| {
                    named.cluster.as_ref().is_some_and(|cluster| cluster.proxy_url.is_some())
                };
                proxied = kubeconfig.clusters.iter().any(is_proxied);
                let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
                match config {
                    // An empty file says nothing; inside a cluster there is another way.
                    Err(_) if !chosen && contexts.is_empty() => {
                        Config::incluster().map_err(|_| nowhere("the kubeconfig is empty"))?
                    }
                    config => config.map_err(|error| unusable(error, &contexts))?,
                }
            }
            Err(error) if chosen => return Err(unusable(error, &[])),
            Err(error) => Config::incluster().map_err(|_| nowhere(&why(&error)))?,
        };
        self.override_in(&mut config);
        // A proxy of the environment is for hosts outside; its address may hold a password and is not repeated.
        if config.proxy_url.take().is_some() && proxied {
            let remedy = "remove proxy-url from its cluster, and name an address that is reached without one";
            return Err(remedied(anyhow!("the kubeconfig leads through a proxy, which is not spoken to"), remedy));
        }
        Ok(config)
    }

    /// A client as the flags want it.
    pub fn api(&self, config: Config) -> anyhow::Result<Api> {
        let api = Api::new(Client::try_from(config).context("cannot talk to the cluster")?);
        let patience = self.request_timeout.and_then(|timeout| Duration::try_from(timeout).ok());
        Ok(match patience.filter(|patience| !patience.is_zero()) {
            Some(patience) => api.within(patience),
            None => api,
        })
    }

    fn override_in(&self, config: &mut Config) {
        if let Some(server) = &self.server {
            config.cluster_url = server.clone();
        }
        if let Some(file) = &self.certificate_authority {
            (config.root_cert, config.root_cert_file) = (None, Some(file.clone()));
        }
        if let Some(name) = &self.tls_server_name {
            config.tls_server_name = Some(name.clone());
        }
        config.accept_invalid_certs |= self.insecure_skip_tls_verify;
        config.disable_compression |= self.disable_compression;
        let who = &mut config.auth_info;
        if let Some(Token(token)) = &self.token {
            (who.token, who.token_file) = (Some(token.clone().into()), None);
        }
        if let Some(file) = &self.client_certificate {
            (who.client_certificate, who.client_certificate_data) = (Some(file.clone()), None);
        }
        if let Some(file) = &self.client_key {
            (who.client_key, who.client_key_data) = (Some(file.clone()), None);
        }
        if self.as_user.is_some() {
            who.impersonate = self.as_user.clone();
        }
        if self.as_uid.is_some() {
            who.impersonate_uid = self.as_uid.clone();
        }
        if !self.as_group.is_empty() {
            who.impersonate_groups = Some(self.as_group.clone());
        }
    }
}

/// There is no cluster to talk to.
fn nowhere(why: &str) -> anyhow::Error {
    let remedy = "give --kubeconfig FILE, or set KUBECONFIG; `tidegate cluster` starts a cluster to try things on";
    remedied(anyhow!("no cluster is known: {why}"), remedy)
}

/// The kubeconfig does not lead anywhere.
fn unusable(error: KubeconfigError, contexts: &[String]) -> anyhow::Error {
    let remedy = match contexts {
        [] => "name a kubeconfig with --kubeconfig FILE, or in KUBECONFIG".to_owned(),
        contexts => format!("its contexts are {}", contexts.join(", ")),
    };
    remedied(anyhow!("cannot use the kubeconfig: {}", why(&error)), remedy)
}

fn why(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(cause, path) => format!("cannot read {}: {cause}", path.display()),
        KubeconfigError::LoadContext(name) => format!("there is no context {name}"),
        KubeconfigError::CurrentContextNotSet => "no context is chosen".to_owned(),
        other => other.to_string(),
    }
}

/// A cluster and a namespace of it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Access {
    /// The namespace; by default that of the context.
    #[arg(short, long, global = true, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// A cluster that can be asked, and the namespace that is meant.
pub struct Cluster {
    /// The client.
    pub api: Api,
    /// The namespace.
    pub namespace: String,
}

impl Access {
    /// The namespace, if one is given.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// What the cluster is called: the context, or that of the kubeconfig.
    pub fn cluster_name(&self) -> String {
        let current = || match &self.connection.kubeconfig {
            Some(file) => Kubeconfig::read_from(file).ok()?.current_context,
            None => Kubeconfig::read().ok()?.current_context,
        };
        self.connection.context.clone().or_else(current).unwrap_or_default()
    }

    /// Connects.
    pub async fn connect(&self) -> anyhow::Result<Cluster> {
        let config = self.connection.config().await?;
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        Ok(Cluster { api: self.connection.api(config)?.by_hand(), namespace })
    }
}

/// The flags of kubectl on a command that reaches no cluster: taken as `kubectl argo rollouts` takes them, without effect.
#[derive(Debug, clap::Args)]
pub struct Unneeded {
    #[command(flatten)]
    _access: Access,
}

/// An argument as it is, but not in the help if it is one of the flags of kubectl: for commands that do not need them.
pub fn hidden(argument: clap::Arg) -> clap::Arg {
    let is_kubectls = argument.get_help_heading() == Some(HEADING) || argument.get_id() == "namespace";
    argument.hide(is_kubectls)
}

/// Under what the help lists them.
const HEADING: &str = "Cluster";

impl Cluster {
    /// The place of an object in the namespace.
    pub fn place(&self, name: &str) -> Place {
        Place::new(&self.namespace, name)
    }

    /// The objects of a kind in the namespace that the selector matches.
    pub fn scope(&self, resource: &Resource, selector: &str) -> Scope {
        let namespace = self.within().map(str::to_owned);
        Scope { namespace, selector: selector.to_owned(), ..Scope::of(resource) }
    }

    /// The namespace of what is asked for; none for what belongs to none.
    fn within(&self) -> Option<&str> {
        (!self.namespace.is_empty()).then_some(&self.namespace)
    }

    /// One object; an error that names those with similar names if there is none.
    pub async fn object(&self, resource: &Resource, name: &str) -> anyhow::Result<Value> {
        match self.api.object(resource, &self.place(name)).await {
            Ok(object) => Ok(object),
            Err(error) => Err(self.explain(error, resource, name).await),
        }
    }

    /// All objects of a kind in the namespace that the selector matches; none if there is no such kind.
    pub async fn objects(&self, resource: &Resource, selector: &str) -> anyhow::Result<Vec<Value>> {
        match watch::list(&self.api, &self.scope(resource, selector)).await {
            Ok((objects, _)) => Ok(objects),
            Err(error) if error.code() == Some(404) => Ok(Vec::new()),
            Err(error) => Err(unanswered(error)),
        }
    }

    /// Whether the cluster has this kind at all.
    pub async fn knows(&self, resource: &Resource) -> anyhow::Result<bool> {
        match self.api.get(&format!("{}?limit=1", resource.path(self.within())?)).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some(404) => Ok(false),
            Err(error) => Err(unanswered(error)),
        }
    }

    /// An error about an object, with what to do about it.
    pub async fn explain(&self, error: Error, resource: &Resource, name: &str) -> anyhow::Error {
        if error.code() != Some(404) {
            return unanswered(error);
        }
        let Ok((all, _)) = watch::list(&self.api, &self.scope(resource, "")).await else {
            return unserved(resource);
        };
        let names: Vec<&str> = all.iter().filter_map(|object| object.str_at(&["metadata", "name"])).collect();
        // In the words of an API server: scripts look for them.
        let error = anyhow!("{resource} \"{name}\" not found");
        let place =
            if self.namespace.is_empty() { "the cluster".into() } else { format!("namespace {}", self.namespace) };
        let remedy = match (similar::nearest(name, names.iter().copied()), &names[..]) {
            (Some(near), _) => format!("did you mean {near}?"),
            (None, []) if self.namespace.is_empty() => format!("there are no {}", resource.plural),
            (None, []) => format!("{place} has no {}: give another with -n", resource.plural),
            (None, [only]) => format!("{place} has only {only}"),
            (None, names @ [.., last]) if names.len() <= 8 => {
                format!("{place} has {} and {last}", names[..names.len() - 1].join(", "))
            }
            (None, names) => {
                format!("{place} has {} others; `kubectl get {}` lists them", names.len(), resource.plural)
            }
        };
        remedied(error, remedy)
    }
}

/// The cluster lacks the definition of a kind.
pub fn unserved(resource: &Resource) -> anyhow::Error {
    let remedy = "install the definitions: `tidegate crds | kubectl apply -f -`";
    remedied(anyhow!("the cluster does not know {resource}"), remedy)
}

/// An error of the server or the way to it.
pub fn unanswered(error: Error) -> anyhow::Error {
    match &error {
        Error::Refused { code: 401, .. } => {
            remedied(error.into(), "the cluster does not know you: log in, or give --token")
        }
        Error::Refused { .. } => anyhow!("{}", error.words()),
        Error::NotLeading { .. } | Error::BadName(_) | Error::Unreachable { .. } => remedied(
            anyhow!("cannot reach the cluster: {}", error.words()),
            "see that the cluster is up, and that the kubeconfig and its context lead to it",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectls_flags_may_stand_before_the_command() {
        #[track_caller]
        fn check(given: &str, expected: &str) {
            let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(with_flags_behind(words(given)), words(expected));
        }
        check("p -n shop get rollout web", "p get -n shop rollout web");
        check("p -nshop --context=a --as me get rollout web -w", "p get -nshop --context=a --as me rollout web -w");
        check("p get rollout web -n shop", "p get rollout web -n shop");
        check(
            "p --loglevel debug -v6 --disable-compression list ro",
            "p list --loglevel debug -v6 --disable-compression ro",
        );
        check("p --log debug -n shop run", "p --log debug -n shop run");
        check("p --help", "p --help");
        check("p -n", "p -n");
        check("p", "p");
    }

    #[test]
    fn a_patience_is_a_number_of_seconds_or_has_a_unit() {
        #[track_caller]
        fn check(text: &str, expected: Option<i64>) {
            assert_eq!(patience(text).ok(), expected.map(SignedDuration::from_millis), "{text}");
        }
        check("0", Some(0));
        check("5", Some(5000));
        check("1m30s", Some(90_000));
        check("100ms", Some(100));
        check("-1s", None);
        check("-1", None);
        check("soon", None);
    }

    #[test]
    fn a_token_is_never_shown() {
        let connection = Connection { token: Some(Token("s3cret".into())), ..Connection::default() };
        assert!(!format!("{connection:?}").contains("s3cret"));
    }
}
