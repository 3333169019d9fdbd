//! `tidegate manifests`, `install` and `uninstall`: the daemon in a cluster.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow};
use clap::Args;
use tokio::time::{Instant, sleep};

use super::{
    access::{Access, Cluster, unanswered},
    crds::yaml as definition,
    print::say,
    remedied,
};
use crate::{
    engine::{
        key::{Place, Resource},
        observe::resource,
    },
    install::{Install, NAME, Part, Scope, chart, kustomize, rights::Kind},
    io::{
        api::{Force, Run},
        watch,
    },
    kubernetes::{facts, value::Value},
    value,
};

/// What to install.
#[derive(Debug, Args)]
pub struct Choices {
    /// Reconcile the Rollouts and GitSources of this namespace only; then no right outside of it is needed.
    #[arg(long, value_name = "NAME")]
    watch_namespace: Option<String>,
    /// The container image.
    #[arg(long, default_value = IMAGE, value_name = "IMAGE")]
    image: String,
    /// How many pods; one works, the others stand by.
    #[arg(long, default_value_t = 2, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=9))]
    replicas: u16,
    /// Reconcile Rollouts with this instance id only.
    #[arg(long, value_name = "ID")]
    instance_id: Option<String>,
    /// Serve webhooks of git hosts, and plans for workflows.
    #[arg(long)]
    webhooks: bool,
    /// Serve the pages of GitSources, which people reach at this URL.
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", value_parser = page_url)]
    pages: Option<String>,
    /// Let GitSources compare objects of this kind as well, such as `secrets` or `certificates.cert-manager.io`. May be given
    /// several times.
    #[arg(long = "read", value_name = "RESOURCE", value_parser = Kind::parse)]
    reads: Vec<Kind>,
    /// Another argument of `tidegate run` in the cluster, such as `--run-arg=--require-secret-hosts`. May be given several times.
    #[arg(long = "run-arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// Without the CustomResourceDefinitions, where those of Argo Rollouts are to stay.
    #[arg(long)]
    without_crds: bool,
    /// With a ServiceMonitor for the Prometheus operator.
    #[arg(long)]
    service_monitor: bool,
    /// With a PrometheusRule.
    #[arg(long)]
    alerts: bool,
    /// With a ConfigMap that holds a dashboard, as Grafana's sidecar finds it.
    #[arg(long)]
    dashboard: bool,
    /// With a NetworkPolicy that admits only what is served.
    #[arg(long)]
    network_policy: bool,
}

/// Nothing, or where people reach the pages.
fn page_url(text: &str) -> Result<String, String> {
    if text.is_empty() { Ok(String::new()) } else { super::run::base_url(text) }
}

/// The image of this version.
const IMAGE: &str = concat!("ghcr.io/tidegate/tidegate:v", env!("CARGO_PKG_VERSION"));

/// The arguments of `tidegate manifests`.
#[derive(Debug, Args)]
pub struct Manifests {
    /// The namespace of the daemon.
    #[arg(short, long, default_value = NAME, value_name = "NAME")]
    namespace: String,
    /// Without the Namespace, where something else makes it.
    #[arg(long)]
    without_namespace: bool,
    /// Write a Helm chart into this folder instead: its values are the choices.
    #[arg(long, value_name = "DIR", exclusive = true)]
    chart: Option<PathBuf>,
    /// Write kustomize bases (`cluster`, `namespace`) and components into this folder instead.
    #[arg(long, value_name = "DIR", exclusive = true)]
    kustomize: Option<PathBuf>,
    #[command(flatten)]
    choices: Choices,
}

/// The arguments of `tidegate install`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    choices: Choices,
    /// Return once the daemon is ready.
    #[arg(long)]
    wait: bool,
    /// How long to wait.
    #[arg(long, default_value = "3m", value_name = "DURATION", value_parser = crate::kubernetes::duration::parse)]
    timeout: jiff::SignedDuration,
    #[command(flatten)]
    access: Access,
}

/// The arguments of `tidegate uninstall`.
#[derive(Debug, Args)]
pub struct Uninstall {
    #[command(flatten)]
    choices: Choices,
    #[command(flatten)]
    access: Access,
}

impl Choices {
    fn install(&self, namespace: &str) -> Install {
        let chosen = [
            (Part::Definitions, !self.without_crds),
            (Part::Namespace, true),
            (Part::ServiceMonitor, self.service_monitor),
            (Part::Alerts, self.alerts),
            (Part::Dashboard, self.dashboard),
            (Part::NetworkPolicy, self.network_policy),
        ];
        Install {
            namespace: namespace.to_owned(),
            scope: self.watch_namespace.clone().map_or(Scope::Cluster, Scope::Namespace),
            image: self.image.clone(),
            replicas: self.replicas,
            webhooks: self.webhooks,
            pages: self.pages.clone(),
            instance_id: self.instance_id.clone(),
            reads: self.reads.clone(),
            arguments: self.arguments.clone(),
            parts: chosen.into_iter().filter_map(|(part, wanted)| wanted.then_some(part)).collect(),
        }
    }

    /// The objects; a name that cannot be one is said before anything happens.
    fn objects(&self, namespace: &str) -> anyhow::Result<Vec<Value>> {
        for (flag, name) in [("--namespace", Some(namespace)), ("--watch-namespace", self.watch_namespace.as_deref())] {
            let Some(name) = name else { continue };
            if let Some(why) = crate::kubernetes::names::dns_label(name).first() {
                return Err(remedied(anyhow!("{flag} {name:?}: {why}"), "name a namespace, such as `tidegate`"));
            }
        }
        Ok(self.install(namespace).objects())
    }
}

/// Prints everything, to be applied, or writes it as a chart or as kustomize bases.
pub fn manifests(arguments: Manifests) -> anyhow::Result<()> {
    if let Some(folder) = &arguments.chart {
        return write(folder, chart());
    }
    if let Some(folder) = &arguments.kustomize {
        return write(folder, bases());
    }
    let mut objects = arguments.choices.objects(&arguments.namespace)?;
    objects.retain(|object| !arguments.without_namespace || object.str_at(&["kind"]) != Some("Namespace"));
    let documents: Vec<String> = objects.iter().map(yaml).collect();
    say(&documents.join("---\n"))
}

fn yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap_or_default()
}

/// The files of the Helm chart.
fn chart() -> Vec<(String, String)> {
    chart::files(env!("CARGO_PKG_VERSION"), IMAGE, definition)
}

/// The files of the kustomize bases.
fn bases() -> Vec<(String, String)> {
    kustomize::files(IMAGE, definition, yaml)
}

fn write(folder: &Path, files: Vec<(String, String)>) -> anyhow::Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("cannot make the folder {}", parent.display()))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The resource of an object that is installed.
fn resource_of(object: &Value) -> anyhow::Result<Resource> {
    let (api_version, kind) =
        (object.str_at(&["apiVersion"]).unwrap_or_default(), object.str_at(&["kind"]).unwrap_or_default());
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if let Some(known) = facts::kind(group, version, kind) {
        return Ok(Resource::new(group, version, &known.plural));
    }
    match kind {
        "ServiceMonitor" | "PrometheusRule" => Ok(Resource::new(group, version, &format!("{}s", kind.to_lowercase()))),
        _ => Err(anyhow!("no resource is known for {kind}")),
    }
}

fn place_of(object: &Value) -> Place {
    let text = |key| object.str_at(&["metadata", key]).unwrap_or_default();
    Place::new(text("namespace"), text("name"))
}

/// `deployment.apps/tidegate`, as kubectl names objects.
fn named(resource: &Resource, object: &Value) -> String {
    let group = if resource.group.is_empty() { String::new() } else { format!(".{}", resource.group) };
    let kind = object.str_at(&["kind"]).unwrap_or_default().to_lowercase();
    format!("{kind}{group}/{}", object.str_at(&["metadata", "name"]).unwrap_or_default())
}

/// Installs the daemon beside Argo Rollouts, whose definitions stay.
pub async fn beside(choices: Choices, access: Access, namespace: &str) -> anyhow::Result<()> {
    let choices = Choices { without_crds: true, ..choices };
    let objects = choices.objects(namespace)?;
    apply(&access.connect().await?, &objects).await
}

/// Applies everything.
pub async fn install(arguments: Arguments) -> anyhow::Result<()> {
    let namespace = arguments.access.namespace().unwrap_or(NAME);
    let objects = arguments.choices.objects(namespace)?;
    let cluster = arguments.access.connect().await?;
    apply(&cluster, &objects).await?;
    if arguments.wait {
        let limit = Duration::try_from(arguments.timeout).context("--timeout must be above zero")?;
        ready(&cluster, namespace, limit).await?;
    }
    Ok(())
}

async fn apply(cluster: &Cluster, objects: &[Value]) -> anyhow::Result<()> {
    for object in objects {
        let (resource, place) = (resource_of(object)?, place_of(object));
        let before = match cluster.api.object(&resource, &place).await {
            Ok(found) => Some(found),
            Err(error) if error.code() == Some(404) => None,
            Err(error) => return Err(unanswered(error)),
        };
        // A namespace that is there belongs to somebody else, who chose its pod profile.
        if before.is_some() && object.str_at(&["kind"]) == Some("Namespace") {
            say(&format!("{} is there\n", named(&resource, object)))?;
            continue;
        }
        let applied = cluster.api.apply(&resource, &place, object, Force::Taken, Run::Wet).await;
        let applied = applied.map_err(|error| match error.code() {
            Some(404) => remedied(
                anyhow!("the cluster does not know {}", object.str_at(&["kind"]).unwrap_or_default()),
                "install its operator first, or leave its flag away",
            ),
            _ => unanswered(error),
        })?;
        let version = |object: &Value| object.str_at(&["metadata", "resourceVersion"]).map(str::to_owned);
        let done = match before {
            None => "created",
            Some(before) if version(&before) == version(&applied) => "unchanged",
            Some(_) => "configured",
        };
        say(&format!("{} {done}\n", named(&resource, object)))?;
    }
    Ok(())
}

/// Resolves when all pods of the daemon are ready, and says how many are.
async fn ready(cluster: &Cluster, namespace: &str, limit: Duration) -> anyhow::Result<()> {
    let (place, until) = (Place::new(namespace, NAME), Instant::now() + limit);
    let mut said = String::new();
    loop {
        let deployment = cluster.api.object(&resource::deployments(), &place).await.map_err(unanswered)?;
        let count = |path: &[&str]| deployment.int_at(path).unwrap_or(0);
        let (wanted, updated, available) = (
            count(&["spec", "replicas"]),
            count(&["status", "updatedReplicas"]),
            count(&["status", "availableReplicas"]),
        );
        let is_observed = count(&["status", "observedGeneration"]) >= count(&["metadata", "generation"]);
        if is_observed && updated >= wanted && available >= wanted && count(&["status", "replicas"]) == wanted {
            return say(&format!("ready: {available} of {wanted} pods\n"));
        }
        let now = format!("waiting: {} of {wanted} pods are ready\n", available.min(updated));
        if now != said {
            say(&now)?;
            said = now;
        }
        if Instant::now() >= until {
            let why = waiting(cluster, namespace).await.unwrap_or_else(|| "no pod says why".to_owned());
            let remedy = format!("look at them with `kubectl -n {namespace} describe pods`");
            return Err(remedied(anyhow!("not ready after {}s: {why}", limit.as_secs()), remedy));
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// Why the first container that waits does.
async fn waiting(cluster: &Cluster, namespace: &str) -> Option<String> {
    let selector = format!("app.kubernetes.io/name={NAME}");
    let scope = watch::Scope { namespace: Some(namespace.into()), ..cluster.scope(&resource::pods(), &selector) };
    let (pods, _) = watch::list(&cluster.api, &scope).await.ok()?;
    pods.iter().find_map(|pod| {
        let container = pod.list_at(&["status", "containerStatuses"]).first()?;
        let waits = container.at(&["state", "waiting"])?;
        let text = |key| waits.str_at(&[key]).unwrap_or_default();
        Some(format!(
            "{}: {} {}",
            pod.str_at(&["metadata", "name"]).unwrap_or_default(),
            text("reason"),
            text("message")
        ))
    })
}

/// Takes the daemon away; what it rolled out stays.
pub async fn uninstall(arguments: Uninstall) -> anyhow::Result<()> {
    let namespace = arguments.access.namespace().unwrap_or(NAME);
    let objects = arguments.choices.objects(namespace)?;
    let cluster = arguments.access.connect().await?;
    for object in objects.iter().rev() {
        // With its definition every Rollout would go, and with the namespace the GitSources and Secrets in it.
        if matches!(object.str_at(&["kind"]), Some("CustomResourceDefinition" | "Namespace")) {
            continue;
        }
        let (resource, place) = (resource_of(object)?, place_of(object));
        let options = value!({"propagationPolicy": "Background"});
        let done = match cluster.api.delete(&resource, &place, &options).await {
            Ok(_) => "deleted",
            Err(error) if error.code() == Some(404) => "not found",
            Err(error) => return Err(unanswered(error)),
        };
        say(&format!("{} {done}\n", named(&resource, object)))?;
    }
    say(&format!(
        "Rollouts, their pods, the definitions and the namespace {} stay. Without a controller nothing changes them.\n",
        namespace
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares a folder of the tree with what the program writes.
    #[track_caller]
    fn check_folder(name: &str, files: Vec<(String, String)>) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let remedy = "run `cargo xtask charts`";
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap_or_else(|_| panic!("there is no {name}: {remedy}")) {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let inside = path.strip_prefix(&root).unwrap().to_str().unwrap();
                assert!(files.iter().any(|(known, _)| known == inside), "{name}/{inside} is not written any more");
            }
        }
        for (file, text) in files {
            let stored = fs::read_to_string(root.join(&file)).unwrap_or_default();
            assert!(stored == text, "{name}/{file} is not current: {remedy}");
        }
    }

    #[test]
    fn the_chart_and_the_bases_in_the_tree_are_current() {
        check_folder("charts/tidegate", chart());
        check_folder("kustomize", bases());
    }

    #[test]
    fn every_object_has_a_resource_and_kubectls_name() {
        let mut install = Install::new("tidegate", "tidegate:1");
        install.parts.extend([Part::ServiceMonitor, Part::Alerts, Part::NetworkPolicy]);
        let names: Vec<String> = install.objects()[6..]
            .iter()
            .map(|object| {
                let resource = resource_of(object).unwrap();
                format!("{} {}", named(&resource, object), resource.plural)
            })
            .collect();
        assert_eq!(
            names,
            [
                "namespace/tidegate namespaces",
                "serviceaccount/tidegate serviceaccounts",
                "clusterrole.rbac.authorization.k8s.io/tidegate clusterroles",
                "clusterrolebinding.rbac.authorization.k8s.io/tidegate clusterrolebindings",
                "role.rbac.authorization.k8s.io/tidegate roles",
                "rolebinding.rbac.authorization.k8s.io/tidegate rolebindings",
                "deployment.apps/tidegate deployments",
                "poddisruptionbudget.policy/tidegate poddisruptionbudgets",
                "service/tidegate-metrics services",
                "networkpolicy.networking.k8s.io/tidegate networkpolicies",
                "servicemonitor.monitoring.coreos.com/tidegate servicemonitors",
                "prometheusrule.monitoring.coreos.com/tidegate prometheusrules",
            ]
        );
    }
}
