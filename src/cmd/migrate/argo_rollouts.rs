//! `tidegate migrate argo-rollouts`: what will differ, and the swap of one controller for the other, both ways.
//!
//! Writes only with `--yes`, and then only two things: the replicas of both Deployments, and what `tidegate install` installs.

use std::{process::ExitCode, time::Duration};

use anyhow::anyhow;
use clap::Args;
use jiff::Timestamp;
use tokio::time::sleep;

use crate::{
    cmd::{
        access::{Access, Cluster, unanswered},
        install::{self, Choices},
        print::say,
        remedied,
    },
    engine::{
        key::{Place, Resource},
        observe::resource,
    },
    install::NAME,
    io::watch,
    kubernetes::{names, value::Value},
    migrate::{
        Note, Weight,
        argo_rollouts::{self as argo, Census, Found},
        report,
    },
};

/// The arguments of `tidegate migrate argo-rollouts`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Argo Rollouts' Deployment, as NAMESPACE/NAME; by default the one labelled as Argo's manifests and chart do.
    #[arg(long, value_name = "DEPLOYMENT", value_parser = deployment)]
    controller: Option<Place>,
    /// Swap the controllers, and do not only say what will differ.
    #[arg(long)]
    yes: bool,
    /// Swap although something that is in use has no equivalent.
    #[arg(long, requires = "yes")]
    accept_differences: bool,
    /// Go back: stop Tidegate, and give Argo Rollouts its replicas back.
    #[arg(long, conflicts_with = "accept_differences")]
    rollback: bool,
    /// How long to watch, after the swap, that no pod is made or lost.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = crate::kubernetes::duration::parse)]
    watch: jiff::SignedDuration,
    /// How long to wait for each step.
    #[arg(long, default_value = "3m", value_name = "DURATION", value_parser = crate::kubernetes::duration::parse)]
    timeout: jiff::SignedDuration,
    #[command(flatten)]
    choices: Choices,
    #[command(flatten)]
    access: Access,
}

fn deployment(text: &str) -> Result<Place, &'static str> {
    let is_name = |text: &str| names::dns_subdomain(text).is_empty();
    match text.split_once('/') {
        Some((namespace, name)) if is_name(namespace) && is_name(name) => Ok(Place::new(namespace, name)),
        _ => Err("give NAMESPACE/NAME, such as argo-rollouts/argo-rollouts"),
    }
}

/// Reviews, and swaps if that is wanted.
pub async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let cluster = arguments.access.connect().await?;
    let controller = controller(&cluster, arguments.controller.as_ref()).await?;
    let place = place_of(&controller);
    let swap = Swap {
        ours: Place::new(arguments.access.namespace().unwrap_or(&place.namespace), NAME),
        theirs: place,
        limit: Duration::try_from(arguments.timeout).unwrap_or(Duration::from_secs(180)),
        watch: Duration::try_from(arguments.watch).unwrap_or_default(),
        cluster,
    };
    if arguments.rollback {
        return swap.back(arguments.yes).await;
    }
    let found = swap.found(controller).await?;
    let notes = argo::review(&found);
    say(&report::listed(&notes))?;
    let census = swap.census().await?;
    let missing = notes.iter().filter(|note| note.weight == Weight::NoEquivalent).count();
    say(&format!("{} Rollouts with {} pods; {}\n", census.rollouts.len(), census.pods(), counted(&notes)))?;
    if !arguments.yes {
        say(&swap.plan(found.ours.is_some()))?;
        return Ok(ExitCode::from(u8::from(missing > 0)));
    }
    if missing > 0 && !arguments.accept_differences {
        let remedy = "see to it first, or swap nevertheless with --accept-differences";
        return Err(remedied(
            anyhow!("{missing} things that are in use have no equivalent; nothing was changed"),
            remedy,
        ));
    }
    swap.forth(census, found.ours.is_some(), arguments.choices, arguments.access).await
}

fn counted(notes: &[Note]) -> String {
    let of = |weight| notes.iter().filter(|note| note.weight == weight).count();
    format!(
        "{} × {}, {} × {}, {} × {}",
        of(Weight::NoEquivalent),
        report::word(Weight::NoEquivalent),
        of(Weight::ToDo),
        report::word(Weight::ToDo),
        of(Weight::Differs),
        report::word(Weight::Differs)
    )
}

fn place_of(object: &Value) -> Place {
    let text = |key| object.str_at(&["metadata", key]).unwrap_or_default();
    Place::new(text("namespace"), text("name"))
}

/// Argo's Deployment: the one that is named, or the only one that is labelled as such.
async fn controller(cluster: &Cluster, named: Option<&Place>) -> anyhow::Result<Value> {
    if let Some(place) = named {
        return cluster.api.object(&resource::deployments(), place).await.map_err(unanswered);
    }
    let scope = watch::Scope { selector: argo::SELECTOR.to_owned(), ..watch::Scope::of(&resource::deployments()) };
    let (labelled, _) = watch::list(&cluster.api, &scope).await.map_err(unanswered)?;
    // The chart labels its dashboard in the same way.
    let mut labelled: Vec<Value> = labelled
        .into_iter()
        .filter(|one| !one.str_at(&["metadata", "name"]).is_some_and(|name| name.ends_with("-dashboard")))
        .collect();
    match (labelled.pop(), labelled.is_empty()) {
        (Some(mut only), true) => {
            only.set_at(&["kind"], "Deployment");
            Ok(only)
        }
        (None, _) => Err(remedied(
            anyhow!("no Deployment with the label {} is there", argo::SELECTOR),
            "name Argo Rollouts' Deployment with --controller NAMESPACE/NAME",
        )),
        (Some(_), false) => Err(remedied(
            anyhow!("several Deployments have the label {}", argo::SELECTOR),
            "name the one to replace with --controller NAMESPACE/NAME",
        )),
    }
}

struct Swap {
    cluster: Cluster,
    theirs: Place,
    ours: Place,
    limit: Duration,
    watch: Duration,
}

impl Swap {
    fn plan(&self, is_installed: bool) -> String {
        let start = match is_installed {
            true => format!("scale {}/{} up", self.ours.namespace, self.ours.name),
            false => format!("`tidegate install --namespace {} --without-crds`", self.ours.namespace),
        };
        format!(
            "To swap, --yes will\n  1. scale {}/{} to 0, and wait until its pods are gone\n  2. wait until its Lease is free\n  \
             3. {start}, and wait until it is ready\n  4. watch for {}s that no pod is made or lost\nBack: --rollback --yes\n",
            self.theirs.namespace,
            self.theirs.name,
            self.watch.as_secs(),
        )
    }

    async fn object(&self, resource: &Resource, place: &Place) -> anyhow::Result<Option<Value>> {
        match self.cluster.api.object(resource, place).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(unanswered(error)),
        }
    }

    async fn list(&self, resource: &Resource, kind: &str) -> anyhow::Result<Vec<Value>> {
        let mut objects = match watch::list(&self.cluster.api, &watch::Scope::of(resource)).await {
            Ok((objects, _)) => objects,
            Err(error) if error.code() == Some(404) => Vec::new(),
            Err(error) => return Err(unanswered(error)),
        };
        for object in &mut objects {
            object.set_at(&["kind"], kind);
            let version = if resource.group.is_empty() {
                resource.version.to_string()
            } else {
                format!("{}/{}", resource.group, resource.version)
            };
            object.set_at(&["apiVersion"], version);
        }
        Ok(objects)
    }

    async fn found(&self, controller: Value) -> anyhow::Result<Found> {
        let maps = Resource::new("", "v1", "configmaps");
        let mut found = Found { controller, ..Found::default() };
        found.controller.set_at(&["kind"], "Deployment");
        for name in [argo::CONFIG, argo::NOTIFICATIONS] {
            if let Some(mut map) = self.object(&maps, &Place::new(&self.theirs.namespace, name)).await? {
                map.set_at(&["kind"], "ConfigMap");
                found.config_maps.insert(name.to_owned(), map);
            }
        }
        for (resource, kind) in [
            (resource::rollouts(), "Rollout"),
            (resource::templates(), "AnalysisTemplate"),
            (resource::cluster_templates(), "ClusterAnalysisTemplate"),
            (resource::experiments(), "Experiment"),
        ] {
            found.objects.extend(self.list(&resource, kind).await?);
        }
        let ours = self.object(&resource::deployments(), &self.ours).await?;
        found.ours = ours
            .map(|ours| argo::arguments(&ours).into_iter().map(|(flag, value)| format!("--{flag}={value}")).collect());
        Ok(found)
    }

    async fn census(&self) -> anyhow::Result<Census> {
        let rollouts = self.list(&resource::rollouts(), "Rollout").await?;
        let sets = self.list(&resource::sets(), "ReplicaSet").await?;
        let pods = self.list(&resource::pods(), "Pod").await?;
        Ok(Census::of(&rollouts, &sets, &pods))
    }

    /// From Argo Rollouts to Tidegate.
    async fn forth(
        &self,
        before: Census,
        is_installed: bool,
        choices: Choices,
        access: Access,
    ) -> anyhow::Result<ExitCode> {
        self.stop(&self.theirs).await?;
        self.lease_is_free(&self.theirs.namespace).await?;
        if is_installed {
            self.start(&self.ours, 2).await?;
        } else {
            install::beside(choices, access, &self.ours.namespace).await?;
            self.ready(&self.ours).await?;
        }
        self.watched(&before).await
    }

    /// From Tidegate to Argo Rollouts.
    async fn back(&self, is_done: bool) -> anyhow::Result<ExitCode> {
        let theirs = self.object(&resource::deployments(), &self.theirs).await?.unwrap_or_default();
        let (_, replicas) = argo::scaled_up(&theirs, 1);
        if !is_done {
            say(&format!(
                "To go back, --yes will\n  1. scale {}/{} to 0, and wait until its pods are gone\n  2. wait until its Lease is free\n  \
                 3. scale {}/{} to {replicas}, and wait until it is ready\n  4. watch for {}s that no pod is made or lost\n",
                self.ours.namespace,
                self.ours.name,
                self.theirs.namespace,
                self.theirs.name,
                self.watch.as_secs(),
            ))?;
            return Ok(ExitCode::SUCCESS);
        }
        let before = self.census().await?;
        if self.object(&resource::deployments(), &self.ours).await?.is_some() {
            self.stop(&self.ours).await?;
        }
        self.lease_is_free(&self.ours.namespace).await?;
        self.start(&self.theirs, 1).await?;
        self.watched(&before).await
    }

    /// Scales a controller down, and waits until none of its pods is left.
    async fn stop(&self, place: &Place) -> anyhow::Result<()> {
        let Some(deployment) = self.object(&resource::deployments(), place).await? else {
            return Err(remedied(
                anyhow!("there is no Deployment {}/{}", place.namespace, place.name),
                "name it with --controller NAMESPACE/NAME",
            ));
        };
        let patch = argo::scaled_down(&deployment);
        self.cluster.api.patch(&resource::deployments(), place, "", &patch).await.map_err(unanswered)?;
        self.until(&format!("{}/{} is stopped", place.namespace, place.name), || async {
            let now = self.object(&resource::deployments(), place).await?.unwrap_or_default();
            let is_seen = now.int_at(&["status", "observedGeneration"]) >= now.int_at(&["metadata", "generation"]);
            // A pod that is ending still works: it counts until it is gone.
            Ok(is_seen && now.int_at(&["status", "replicas"]).unwrap_or(0) == 0 && self.pods_of(&now).await? == 0)
        })
        .await
    }

    async fn pods_of(&self, deployment: &Value) -> anyhow::Result<usize> {
        let selector =
            crate::kubernetes::selector::Labels::of(deployment.at(&["spec", "selector"]).unwrap_or(&Value::Null));
        let scope = watch::Scope {
            namespace: deployment.str_at(&["metadata", "namespace"]).map(str::to_owned),
            selector: selector.map(|labels| labels.to_string()).unwrap_or_default(),
            ..watch::Scope::of(&resource::pods())
        };
        Ok(watch::list(&self.cluster.api, &scope).await.map_err(unanswered)?.0.len())
    }

    async fn lease_is_free(&self, namespace: &str) -> anyhow::Result<()> {
        let leases = Resource::new("coordination.k8s.io", "v1", "leases");
        let place = Place::new(namespace, argo::LEASE);
        self.until(&format!("the Lease {namespace}/{} is free", argo::LEASE), || async {
            let lease = self.object(&leases, &place).await?;
            Ok(argo::lease_holds(lease.as_ref(), Timestamp::now()).is_none())
        })
        .await
    }

    async fn start(&self, place: &Place, default: i64) -> anyhow::Result<()> {
        let deployment = self.object(&resource::deployments(), place).await?.unwrap_or_default();
        if deployment.int_at(&["spec", "replicas"]).unwrap_or(0) == 0 {
            let (patch, _) = argo::scaled_up(&deployment, default);
            self.cluster.api.patch(&resource::deployments(), place, "", &patch).await.map_err(unanswered)?;
        }
        self.ready(place).await
    }

    async fn ready(&self, place: &Place) -> anyhow::Result<()> {
        self.until(&format!("{}/{} is ready", place.namespace, place.name), || async {
            let now = self.object(&resource::deployments(), place).await?.unwrap_or_default();
            let count = |path: &[&str]| now.int_at(path).unwrap_or(0);
            let is_seen = count(&["status", "observedGeneration"]) >= count(&["metadata", "generation"]);
            Ok(is_seen
                && count(&["spec", "replicas"]) > 0
                && count(&["status", "availableReplicas"]) >= count(&["spec", "replicas"]))
        })
        .await
    }

    /// Watches for a while; says which pods were made and lost since before the swap.
    async fn watched(&self, before: &Census) -> anyhow::Result<ExitCode> {
        sleep(self.watch).await;
        let after = self.census().await?;
        let moved = after.since(before);
        let mut is_wrong = false;
        for one in &moved {
            let phases = if one.phases.0 == one.phases.1 {
                one.phases.0.clone()
            } else {
                format!("{} → {}", one.phases.0, one.phases.1)
            };
            let why = if one.was_moving { "; it was on its way before, and goes on" } else { "" };
            is_wrong |= !one.was_moving && one.made + one.lost > 0;
            say(&format!("{}: {phases}, {} pods made, {} lost{why}\n", one.rollout, one.made, one.lost))?;
        }
        let (made, lost) = moved.iter().fold((0, 0), |(made, lost), one| (made + one.made, lost + one.lost));
        say(&format!("{} Rollouts with {} pods: {made} made, {lost} lost\n", after.rollouts.len(), after.pods()))?;
        if is_wrong {
            say(
                "pods of Rollouts that were at rest were made or lost; `tidegate migrate argo-rollouts --rollback --yes` goes back\n",
            )?;
        }
        Ok(ExitCode::from(u8::from(is_wrong)))
    }

    async fn until<F: Future<Output = anyhow::Result<bool>>>(
        &self,
        what: &str,
        is_so: impl Fn() -> F,
    ) -> anyhow::Result<()> {
        super::until(self.limit, what, is_so, "see why, then run the command again, or go back with --rollback --yes")
            .await
    }
}
