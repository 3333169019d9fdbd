//! `tidegate migrate deployment` and `tidegate migrate rollout`: a Deployment as a Rollout and back, in files or in a cluster.
//!
//! In a cluster every step looks first at what is there, so that a migration that was interrupted goes on when the command is
//! run again. What is to be done is said first; without `--yes` nothing is written.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use crate::{
    cmd::{
        access::{Access, Cluster, unanswered},
        lint,
        print::{document, note, say},
        remedied,
    },
    engine::{key::Resource, observe::resource},
    io::source::git_sources,
    kubernetes::{
        selector::Labels,
        value::{Map, Value},
    },
    manifest::{self, Object},
    migrate::{
        Migration, Note, Origin, Subject, Weight,
        deployment::{self, MEMORY, PARKED, Pods, ScaleDown},
        report,
    },
    model::git_source::Rendering,
    sync::by_hand,
    value,
};

/// The arguments of `tidegate migrate deployment`.
#[derive(Debug, Args)]
pub struct FromDeployment {
    /// The Deployment in the cluster, or files that hold Deployments.
    #[arg(value_name = "NAME|FILE", required = true)]
    what: Vec<String>,
    /// Refer to the Deployment for the pod template, and bring own pods, instead of taking those of the Deployment.
    #[arg(long)]
    workload_ref: bool,
    /// With --workload-ref: when the Deployment loses its pods.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "onsuccess")]
    scale_down: When,
    /// The instance id of the Rollout.
    #[arg(long, value_name = "ID")]
    instance_id: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// The arguments of `tidegate migrate rollout`.
#[derive(Debug, Args)]
pub struct FromRollout {
    /// The Rollout in the cluster, or files that hold Rollouts.
    #[arg(value_name = "NAME|FILE", required = true)]
    what: Vec<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
struct Common {
    /// In a cluster: do it, and do not only say what would be done.
    #[arg(long)]
    yes: bool,
    /// How long to wait for each step.
    #[arg(long, default_value = "5m", value_name = "DURATION", value_parser = crate::kubernetes::duration::parse)]
    timeout: jiff::SignedDuration,
    #[command(flatten)]
    access: Access,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum When {
    /// When a person scales it down.
    Never,
    /// When the Rollout has all of its own.
    #[value(name = "onsuccess")]
    OnSuccess,
    /// As the Rollout's become ready.
    Progressively,
}

/// Migrates Deployments.
pub async fn deployments(arguments: FromDeployment) -> anyhow::Result<ExitCode> {
    let scale_down = match arguments.scale_down {
        When::Never => ScaleDown::Never,
        When::OnSuccess => ScaleDown::OnSuccess,
        When::Progressively => ScaleDown::Progressively,
    };
    let pods = if arguments.workload_ref { Pods::Referred(scale_down) } else { Pods::Taken };
    if is_files(&arguments.what) {
        return in_files(&arguments.what, "Deployment", |subject, notes| {
            Some(deployment::rollout(subject, pods, notes))
        });
    }
    let work = Work::begin(&arguments.common, arguments.instance_id.as_deref()).await?;
    for name in &arguments.what {
        match pods {
            Pods::Taken => work.take_deployment(name).await?,
            Pods::Referred(_) => work.refer_to_deployment(name, pods).await?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Migrates Rollouts back.
pub async fn rollouts(arguments: FromRollout) -> anyhow::Result<ExitCode> {
    if is_files(&arguments.what) {
        return in_files(&arguments.what, "Rollout", |subject, notes| {
            let made = deployment::deployment(subject, notes);
            if made.is_none() {
                let what = "it has its pods from a Deployment, which goes on; give that its replicas back";
                notes.push(subject.said(Weight::ToDo, what, "remove the Rollout when the Deployment has its pods"));
            }
            made
        });
    }
    let work = Work::begin(&arguments.common, None).await?;
    for name in &arguments.what {
        work.give_rollout_up(name).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether files are meant: what can be a name is one.
fn is_files(what: &[String]) -> bool {
    what.iter()
        .any(|one| one == "-" || one.contains('/') || [".yaml", ".yml", ".json"].iter().any(|end| one.ends_with(end)))
}

/// Prints what the objects of files become.
fn in_files(
    what: &[String],
    kind: &str,
    make: impl Fn(&Subject<'_>, &mut Vec<Note>) -> Option<Value>,
) -> anyhow::Result<ExitCode> {
    let paths: Vec<PathBuf> = what.iter().map(PathBuf::from).collect();
    let files = lint::read(None, &paths, Rendering::default())?;
    super::broken(files.iter())?;
    let mut migration = Migration::default();
    for object in files.iter().flat_map(|file| &file.objects).filter(|object| object.kind() == kind) {
        migration.read += 1;
        migration.sources.extend(make(&Subject::of(object, Origin::File), &mut migration.notes));
    }
    if migration.read == 0 {
        return Err(remedied(
            anyhow!("there is no {kind} in what was given"),
            format!("give the file that holds one, or the name of a {kind} in the cluster"),
        ));
    }
    let yaml = |object: &Value| serde_saphyr::to_string(object).unwrap_or_default();
    document(&migration.sources.iter().map(yaml).collect::<Vec<_>>().join("---\n"))?;
    note(report::listed(&migration.notes).trim_end());
    Ok(ExitCode::from(u8::from(migration.count(Weight::NoEquivalent) > 0)))
}

/// What is done in a cluster.
struct Work {
    cluster: Cluster,
    instance: Option<String>,
    yes: bool,
    limit: Duration,
}

/// The steps of one migration, as they are said beforehand.
struct Plan {
    title: String,
    steps: Vec<String>,
}

impl Work {
    async fn begin(common: &Common, instance: Option<&str>) -> anyhow::Result<Work> {
        let cluster = common.access.connect().await?;
        let limit = Duration::try_from(common.timeout).unwrap_or(Duration::from_secs(300));
        Ok(Work { cluster, instance: instance.map(str::to_owned), yes: common.yes, limit })
    }

    /// Says what is to be done; whether it is done.
    fn says(&self, plan: &Plan) -> anyhow::Result<bool> {
        let steps = plan.steps.iter().enumerate().map(|(at, step)| format!("  {}. {step}\n", at + 1));
        let end = if self.yes { "" } else { "nothing was written; --yes does it\n" };
        say(&format!("{}\n{}{end}", plan.title, steps.collect::<String>()))?;
        Ok(self.yes)
    }

    /// A Rollout takes the pods of a Deployment.
    async fn take_deployment(&self, name: &str) -> anyhow::Result<()> {
        let begun = self.found(&resource::rollouts(), name).await?;
        let (rollout, memory) = match begun {
            Some(rollout) if deployment::is_begun(&rollout) => {
                let memory = Memory::of(&rollout);
                (rollout, memory)
            }
            Some(_) => {
                let remedy = "delete it, if it has no pods, or give it another name";
                return Err(remedied(anyhow!("there is a Rollout {name} already"), remedy));
            }
            None => {
                let object = self.cluster.object(&resource::deployments(), name).await?;
                settled("Deployment", name, deployment::deployment_is_settled(&object))?;
                self.kept(&object).await?;
                let subject = Live::new(&object, "apps/v1", "Deployment")?;
                let mut notes = Vec::new();
                let made = deployment::rollout(&subject.subject(), Pods::Taken, &mut notes);
                note_all(&notes);
                let memory = Memory {
                    sets: self.sets_of(&object).await?,
                    replicas: object.int_at(&["spec", "replicas"]).unwrap_or(1),
                };
                (made, memory)
            }
        };
        let hash = deployment::rollout_hash(&rollout);
        let scalers = self.autoscalers("Deployment", name).await?;
        let mut steps = vec![
            format!("create the Rollout {name} with the instance id {PARKED}, so that no controller acts on it yet"),
            format!("label its {} pods with the hash {hash}", memory.replicas),
            format!("delete the Deployment {name} and its ReplicaSets without their pods"),
            format!("create the ReplicaSet {name}-{hash} with {} replicas, which adopts the pods", memory.replicas),
            format!("let the controller have the Rollout {name}: it adopts the ReplicaSet"),
        ];
        steps
            .extend(scalers.iter().map(|scaler| format!("let the HorizontalPodAutoscaler {scaler} scale the Rollout")));
        let title = format!(
            "the Rollout {name} takes the {} pods of the Deployment {name}; none is made or ended",
            memory.replicas
        );
        if !self.says(&Plan { title, steps })? {
            return Ok(());
        }
        let rollout = match deployment::is_begun(&rollout) {
            true => rollout,
            false => {
                self.create(&resource::rollouts(), memory.on(rollout, Some(deployment::park(Some(PARKED))))).await?
            }
        };
        self.label_pods("Rollout", &rollout, &memory, &hash).await?;
        self.orphan(&resource::deployments(), name).await?;
        self.hand_over("Rollout", &rollout, &memory, &hash).await?;
        let mut patch = deployment::park(self.instance.as_deref());
        patch.set_at(&["metadata", "annotations", MEMORY], Value::Null);
        self.patch(&resource::rollouts(), name, &patch).await?;
        self.rescale(&scalers, "Rollout").await?;
        say(&format!(
            "Rollout {name} has the pods; with a controller at work `tidegate status {name}` says when it is healthy\n"
        ))
    }

    /// A Rollout brings its own pods, and the Deployment is scaled down.
    async fn refer_to_deployment(&self, name: &str, pods: Pods) -> anyhow::Result<()> {
        let object = self.cluster.object(&resource::deployments(), name).await?;
        settled("Deployment", name, deployment::deployment_is_settled(&object))?;
        if self.found(&resource::rollouts(), name).await?.is_some() {
            return Err(remedied(anyhow!("there is a Rollout {name} already"), "`tidegate get rollout` shows it"));
        }
        let subject = Live::new(&object, "apps/v1", "Deployment")?;
        let mut notes = Vec::new();
        let mut made = deployment::rollout(&subject.subject(), pods, &mut notes);
        note_all(&notes);
        if let Some(id) = &self.instance {
            made.set_at(&["metadata", "labels", crate::api::constants::label::INSTANCE_ID], id.as_str());
        }
        let replicas = object.int_at(&["spec", "replicas"]).unwrap_or(1);
        let scalers = self.autoscalers("Deployment", name).await?;
        let down = match pods {
            Pods::Referred(ScaleDown::Never) => {
                format!("the Deployment {name} keeps its pods: scale it to 0 when you want")
            }
            Pods::Referred(ScaleDown::OnSuccess) => {
                format!("the Deployment {name} is scaled to 0 when the Rollout has all of its pods")
            }
            Pods::Referred(ScaleDown::Progressively) | Pods::Taken => {
                format!("the Deployment {name} loses its pods one by one, as those of the Rollout become ready")
            }
        };
        let mut steps = vec![
            format!(
                "create the Rollout {name}, which refers to the Deployment {name}: its controller makes {replicas} pods"
            ),
            down,
        ];
        steps
            .extend(scalers.iter().map(|scaler| format!("let the HorizontalPodAutoscaler {scaler} scale the Rollout")));
        let title =
            format!("the Rollout {name} brings {replicas} pods of its own, before the Deployment {name} loses its");
        if !self.says(&Plan { title, steps })? {
            return Ok(());
        }
        self.create(&resource::rollouts(), made).await?;
        self.until(&format!("the Rollout {name} is healthy"), || async {
            Ok(self
                .found(&resource::rollouts(), name)
                .await?
                .is_some_and(|rollout| deployment::rollout_is_settled(&rollout).is_ok()))
        })
        .await?;
        self.rescale(&scalers, "Rollout").await?;
        say(&format!("Rollout {name} is healthy\n"))
    }

    /// A Deployment takes the pods of a Rollout, or gets its own back.
    async fn give_rollout_up(&self, name: &str) -> anyhow::Result<()> {
        let begun = self.found(&resource::deployments(), name).await?.filter(deployment::is_begun);
        let rollout = self.found(&resource::rollouts(), name).await?;
        if let (None, Some(rollout)) = (&begun, &rollout)
            && !is_parked(rollout)
        {
            settled("Rollout", name, deployment::rollout_is_settled(rollout))?;
            self.kept(rollout).await?;
        }
        match (rollout, begun) {
            (Some(rollout), _) if rollout.at(&["spec", "workloadRef"]).is_some() => {
                self.return_to_deployment(name, &rollout).await
            }
            (rollout, begun @ Some(_)) => self.take_rollout(name, rollout, begun).await,
            (Some(rollout), None) => self.take_rollout(name, Some(rollout), None).await,
            (None, None) => self.cluster.object(&resource::rollouts(), name).await.map(|_| ()),
        }
    }

    async fn take_rollout(&self, name: &str, rollout: Option<Value>, begun: Option<Value>) -> anyhow::Result<()> {
        let (made, memory, services) = match (&begun, &rollout) {
            (Some(begun), _) => (begun.clone(), Memory::of(begun), Memory::services(begun)),
            (None, Some(rollout)) => {
                if self.found(&resource::deployments(), name).await?.is_some() {
                    return Err(remedied(
                        anyhow!("there is a Deployment {name} already"),
                        "delete it, if it has no pods",
                    ));
                }
                let subject = Live::new(rollout, "argoproj.io/v1alpha1", "Rollout")?;
                let mut notes = Vec::new();
                let made = deployment::deployment(&subject.subject(), &mut notes).unwrap_or_default();
                note_all(&notes);
                let replicas = rollout.int_at(&["spec", "replicas"]).unwrap_or(1);
                let memory = Memory { sets: self.sets_of(rollout).await?, replicas };
                (made, memory, deployment::led_services(rollout).into_iter().collect())
            }
            (None, None) => return Ok(()),
        };
        // Any word will do; the Rollout's hash is known to be a label and a name.
        let hash = deployment::rollout_hash(&made);
        let scalers = self.autoscalers("Rollout", name).await?;
        let mut steps = vec![
            format!("create the Deployment {name}, paused, so that it makes no pods"),
            format!("give the Rollout {name} the instance id {PARKED}, so that no controller acts on it any more"),
            format!("label its {} pods with {}={hash}", memory.replicas, deployment::DEPLOYMENT_HASH),
        ];
        steps.extend(
            services.iter().map(|service| format!("let the Service {service} select the pods of every version")),
        );
        steps.extend([
            format!("delete the Rollout {name} and its ReplicaSets without their pods"),
            format!("create the ReplicaSet {name}-{hash} with {} replicas, which adopts the pods", memory.replicas),
            format!("resume the Deployment {name}: it adopts the ReplicaSet"),
        ]);
        steps.extend(
            scalers.iter().map(|scaler| format!("let the HorizontalPodAutoscaler {scaler} scale the Deployment")),
        );
        let title = format!(
            "the Deployment {name} takes the {} pods of the Rollout {name}; none is made or ended",
            memory.replicas
        );
        if !self.says(&Plan { title, steps })? {
            return Ok(());
        }
        let paused = value!({"spec": {"paused": true}});
        let made = match begun {
            Some(begun) => begun,
            None => {
                let mut made = memory.on(made, Some(paused));
                made.set_at(&["metadata", "annotations", Memory::SERVICES], services.join(","));
                self.create(&resource::deployments(), made).await?
            }
        };
        if rollout.is_some() {
            self.patch(&resource::rollouts(), name, &deployment::park(Some(PARKED))).await?;
            self.label_pods("Deployment", &made, &memory, &hash).await?;
            self.unlead(&services).await?;
            self.orphan(&resource::rollouts(), name).await?;
        }
        self.hand_over("Deployment", &made, &memory, &hash).await?;
        let resume =
            value!({"spec": {"paused": null}, "metadata": {"annotations": {(MEMORY): null, (Memory::SERVICES): null}}});
        self.patch(&resource::deployments(), name, &resume).await?;
        self.deployment_has(name, memory.replicas).await?;
        self.rescale(&scalers, "Deployment").await?;
        say(&format!("Deployment {name} has the pods\n"))
    }

    /// The Deployment that a Rollout refers to gets its pods back, before the Rollout loses its.
    async fn return_to_deployment(&self, name: &str, rollout: &Value) -> anyhow::Result<()> {
        let target = rollout.str_at(&["spec", "workloadRef", "name"]).unwrap_or_default().to_owned();
        if rollout.str_at(&["spec", "workloadRef", "kind"]) != Some("Deployment") {
            return Err(remedied(
                anyhow!("the Rollout {name} has its template from another kind than a Deployment"),
                "give it a template of its own first",
            ));
        }
        let held = self.cluster.object(&resource::deployments(), &target).await?;
        let replicas =
            rollout.int_at(&["spec", "replicas"]).unwrap_or(1).max(held.int_at(&["spec", "replicas"]).unwrap_or(0));
        let services: Vec<String> = deployment::led_services(rollout).into_iter().collect();
        let scalers = self.autoscalers("Rollout", name).await?;
        let mut steps = vec![
            format!("give the Rollout {name} the instance id {PARKED}, so that no controller acts on it any more"),
            format!("scale the Deployment {target} to {replicas}, and wait until all are available"),
        ];
        steps.extend(
            services.iter().map(|service| format!("let the Service {service} select the pods of every version")),
        );
        steps.push(format!("delete the Rollout {name} with its pods"));
        steps.extend(
            scalers.iter().map(|scaler| format!("let the HorizontalPodAutoscaler {scaler} scale the Deployment")),
        );
        let title =
            format!("the Deployment {target} gets {replicas} pods of its own, before the Rollout {name} loses its");
        if !self.says(&Plan { title, steps })? {
            return Ok(());
        }
        self.patch(&resource::rollouts(), name, &deployment::park(Some(PARKED))).await?;
        self.patch(&resource::deployments(), &target, &value!({"spec": {"replicas": replicas}})).await?;
        self.deployment_has(&target, replicas).await?;
        self.unlead(&services).await?;
        let options = value!({"propagationPolicy": "Background"});
        self.cluster
            .api
            .delete(&resource::rollouts(), &self.cluster.place(name), &options)
            .await
            .map_err(unanswered)?;
        self.rescale(&scalers, "Deployment").await?;
        say(&format!("Deployment {target} has {replicas} pods\n"))
    }

    /// The pods' new ReplicaSet, once the old ones are gone and the pods belong to nobody.
    async fn hand_over(&self, kind: &str, owner: &Value, memory: &Memory, hash: &str) -> anyhow::Result<()> {
        let key = deployment::hash_label(kind);
        for set in &memory.sets {
            self.orphan(&resource::sets(), set).await?;
        }
        // One that was replaced meanwhile is among them.
        self.label_pods(kind, owner, memory, hash).await?;
        let set = deployment::replica_set(owner, key, hash, memory.replicas);
        let name = set.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
        if self.found(&resource::sets(), &name).await?.is_none() {
            self.create(&resource::sets(), set).await?;
        }
        self.until(&format!("the ReplicaSet {name} has its pods"), || async {
            let set = self.found(&resource::sets(), &name).await?;
            Ok(set.is_some_and(|set| {
                let count = |key: &str| set.int_at(&["status", key]).unwrap_or(0);
                count("observedGeneration") > 0
                    && count("replicas") == memory.replicas
                    && count("availableReplicas") == memory.replicas
            }))
        })
        .await
    }

    /// Labels the pods that a workload is about to get: those of the ReplicaSets that give them up, and nobody else's.
    async fn label_pods(&self, kind: &str, owner: &Value, memory: &Memory, hash: &str) -> anyhow::Result<()> {
        let key = deployment::hash_label(kind);
        let selector = Labels::of(owner.at(&["spec", "selector"]).unwrap_or(&Value::Null));
        let selector = selector.map(|labels| labels.to_string()).unwrap_or_default();
        for pod in self.cluster.objects(&resource::pods(), &selector).await? {
            let name = pod.str_at(&["metadata", "name"]).unwrap_or_default();
            let is_ending = pod.at(&["metadata", "deletionTimestamp"]).is_some();
            if is_ending || !memory.has(&pod) || pod.str_at(&["metadata", "labels", key]) == Some(hash) {
                continue;
            }
            let mut patch = Value::object();
            patch.set_at(&["metadata", "labels", key], hash);
            self.patch(&resource::pods(), name, &patch).await?;
        }
        Ok(())
    }

    /// Deletes an object without what belongs to it, and waits until it is gone.
    async fn orphan(&self, resource: &Resource, name: &str) -> anyhow::Result<()> {
        match self
            .cluster
            .api
            .delete(resource, &self.cluster.place(name), &value!({"propagationPolicy": "Orphan"}))
            .await
        {
            Ok(_) => {}
            Err(error) if error.code() == Some(404) => return Ok(()),
            Err(error) => return Err(unanswered(error)),
        }
        self.until(&format!("{} {name} is deleted", resource.plural), || async {
            Ok(self.found(resource, name).await?.is_none())
        })
        .await
    }

    async fn unlead(&self, services: &[String]) -> anyhow::Result<()> {
        for service in services {
            if self.found(&resource::services(), service).await?.is_some() {
                self.patch(&resource::services(), service, &deployment::unled()).await?;
            }
        }
        Ok(())
    }

    async fn deployment_has(&self, name: &str, replicas: i64) -> anyhow::Result<()> {
        self.until(&format!("the Deployment {name} has {replicas} available pods"), || async {
            let found = self.found(&resource::deployments(), name).await?;
            Ok(found.is_some_and(|found| deployment::deployment_is_settled(&found).is_ok()))
        })
        .await
    }

    async fn rescale(&self, scalers: &[String], kind: &str) -> anyhow::Result<()> {
        for scaler in scalers {
            self.patch(&autoscalers(), scaler, &deployment::rescaled(kind)).await?;
        }
        Ok(())
    }

    async fn autoscalers(&self, kind: &str, name: &str) -> anyhow::Result<Vec<String>> {
        let all = self.cluster.objects(&autoscalers(), "").await?;
        let named = all.iter().filter(|scaler| deployment::scales(scaler, kind, name));
        Ok(named.filter_map(|scaler| scaler.str_at(&["metadata", "name"])).map(str::to_owned).collect())
    }

    /// The ReplicaSets that an object controls.
    async fn sets_of(&self, owner: &Value) -> anyhow::Result<Vec<String>> {
        let uid = owner.str_at(&["metadata", "uid"]).unwrap_or_default();
        let is_of = |set: &&Value| {
            set.list_at(&["metadata", "ownerReferences"]).iter().any(|one| one.str_at(&["uid"]) == Some(uid))
        };
        let sets = self.cluster.objects(&resource::sets(), "").await?;
        let of: Vec<&Value> = sets.iter().filter(is_of).collect();
        // A blue-green Rollout keeps its old version for a while: its pods must not be taken for the new one's.
        if of.iter().filter(|set| set.int_at(&["status", "replicas"]).unwrap_or(0) > 0).count() > 1 {
            let what = anyhow!("more than one version of it has pods");
            return Err(remedied(what, "wait until the old one is scaled down, and run the command again"));
        }
        Ok(of.iter().filter_map(|set| set.str_at(&["metadata", "name"])).map(str::to_owned).collect())
    }

    /// What another tool keeps would be undone; a GitSource must be suspended meanwhile.
    async fn kept(&self, object: &Value) -> anyhow::Result<()> {
        let Some(keeper) = deployment::keeper(object) else { return Ok(()) };
        if let Some((namespace, name)) = by_hand::source_of(object) {
            let place = crate::engine::key::Place::new(namespace, name);
            let source = self.cluster.api.object(&git_sources(), &place).await.ok();
            if source.is_some_and(|source| source.at(&["spec", "suspend"]) == Some(&Value::Bool(true))) {
                return Ok(());
            }
            let remedy = format!(
                "`tidegate -n {namespace} suspend {name}`, migrate, commit the same change of the file, then resume it"
            );
            return Err(remedied(anyhow!("{keeper} keeps it, and would create it again"), remedy));
        }
        note(format_args!("{keeper} keeps it: stop that first, and commit the same change, or it creates it again"));
        Ok(())
    }

    async fn found(&self, resource: &Resource, name: &str) -> anyhow::Result<Option<Value>> {
        match self.cluster.api.object(resource, &self.cluster.place(name)).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(unanswered(error)),
        }
    }

    async fn create(&self, resource: &Resource, object: Value) -> anyhow::Result<Value> {
        self.cluster.api.create(resource, &self.cluster.namespace, &object).await.map_err(unanswered)
    }

    async fn patch(&self, resource: &Resource, name: &str, patch: &Value) -> anyhow::Result<()> {
        self.cluster.api.patch(resource, &self.cluster.place(name), "", patch).await.map(drop).map_err(unanswered)
    }

    async fn until<F: Future<Output = anyhow::Result<bool>>>(
        &self,
        what: &str,
        is_so: impl Fn() -> F,
    ) -> anyhow::Result<()> {
        super::until(self.limit, what, is_so, "see why, and run the command again: it goes on where it is").await
    }
}

fn autoscalers() -> Resource {
    Resource::new("autoscaling", "v2", "horizontalpodautoscalers")
}

fn is_parked(rollout: &Value) -> bool {
    rollout.str_at(&["metadata", "labels", crate::api::constants::label::INSTANCE_ID]) == Some(PARKED)
}

fn settled(kind: &str, name: &str, is_settled: Result<(), String>) -> anyhow::Result<()> {
    is_settled.map_err(|why| {
        remedied(
            anyhow!("the {kind} {name} cannot be migrated now: {why}"),
            "wait until nothing moves, and run the command again",
        )
    })
}

fn note_all(notes: &[Note]) {
    if !notes.is_empty() {
        note(report::listed(notes).trim_end());
    }
}

/// An object of a cluster as one that was read: fields of it can be named.
struct Live {
    object: Object,
}

impl Live {
    fn new(value: &Value, api_version: &str, kind: &str) -> anyhow::Result<Live> {
        let mut value = value.clone();
        value.set_at(&["apiVersion"], api_version);
        value.set_at(&["kind"], kind);
        let file = manifest::read("the cluster", value.to_json().as_bytes());
        let object = file.objects.into_iter().next().ok_or_else(|| anyhow!("the {kind} cannot be read"))?;
        Ok(Live { object })
    }

    fn subject(&self) -> Subject<'_> {
        Subject::of(&self.object, Origin::Cluster)
    }
}

/// What a migration that was interrupted must know: the object is gone by then.
struct Memory {
    /// The ReplicaSets that give their pods up.
    sets: Vec<String>,
    /// How many pods there are.
    replicas: i64,
}

impl Memory {
    const SERVICES: &str = "tidegate.dev/migration-services";

    fn of(object: &Value) -> Memory {
        let text = object.str_at(&["metadata", "annotations", MEMORY]).unwrap_or_default();
        let (replicas, sets) = text.split_once(':').unwrap_or(("0", ""));
        let sets = sets.split(',').filter(|set| !set.is_empty()).map(str::to_owned).collect();
        Memory { sets, replicas: replicas.parse().unwrap_or(0) }
    }

    /// Whether a pod belongs to one of the ReplicaSets, or belonged to it and now to nobody.
    fn has(&self, pod: &Value) -> bool {
        let controller = pod
            .list_at(&["metadata", "ownerReferences"])
            .iter()
            .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
        match controller {
            Some(owner) => self.sets.iter().any(|set| owner.str_at(&["name"]) == Some(set)),
            None => {
                let made_as = pod.str_at(&["metadata", "generateName"]).unwrap_or_default();
                self.sets.iter().any(|set| made_as.strip_suffix('-') == Some(set))
            }
        }
    }

    fn services(object: &Value) -> Vec<String> {
        let text = object.str_at(&["metadata", "annotations", Memory::SERVICES]).unwrap_or_default();
        text.split(',').filter(|service| !service.is_empty()).map(str::to_owned).collect()
    }

    /// The object with it, and with what a patch adds.
    fn on(&self, mut object: Value, more: Option<Value>) -> Value {
        object.set_at(&["metadata", "annotations", MEMORY], format!("{}:{}", self.replicas, self.sets.join(",")));
        if let Some(more) = more {
            merge(&mut object, &more);
        }
        object
    }
}

fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_map().into_iter().flat_map(Map::iter) {
        match into.get(key) {
            Some(Value::Map(_)) if value.as_map().is_some() => {
                let mut below = into.get(key).cloned().unwrap_or_default();
                merge(&mut below, value);
                into.set_at(&[key], below);
            }
            _ => into.set_at(&[key], value),
        }
    }
}
