//! Names that are part of the contract, each once: labels, annotations, condition types, reasons and messages.
//!
//! Other programs look for them (Argo CD, dashboards, alerts, scripts around `kubectl get events`), so none may change.
//! Messages that hold a name or a number are functions.

/// The group of the five kinds of Argo Rollouts.
pub const GROUP: &str = "argoproj.io";
/// Their only version.
pub const VERSION: &str = "v1alpha1";
/// Group and version as objects carry them.
pub const API_VERSION: &str = "argoproj.io/v1alpha1";
/// The group of our own kind.
pub const TIDEGATE_GROUP: &str = "tidegate.dev";
/// Its group and version.
pub const TIDEGATE_API_VERSION: &str = "tidegate.dev/v1alpha1";
/// Who writes what git says, as owners of fields are named.
pub const FIELD_MANAGER: &str = "tidegate";
/// Who writes what a person asks for with our verbs: what that is, the daemon may not take for its own.
pub const CLI_FIELD_MANAGER: &str = "tidegate-cli";
/// Who events say they come from.
pub const EVENT_COMPONENT: &str = "rollouts-controller";

/// The kinds.
pub mod kind {
    /// Keeps pods of one template running.
    pub const ROLLOUT: &str = "Rollout";
    /// What to measure, in a namespace.
    pub const ANALYSIS_TEMPLATE: &str = "AnalysisTemplate";
    /// What to measure, everywhere.
    pub const CLUSTER_ANALYSIS_TEMPLATE: &str = "ClusterAnalysisTemplate";
    /// An analysis under way.
    pub const ANALYSIS_RUN: &str = "AnalysisRun";
    /// Versions beside each other.
    pub const EXPERIMENT: &str = "Experiment";
    /// What to sync from a repository.
    pub const GIT_SOURCE: &str = "GitSource";
}

/// Labels.
pub mod label {
    /// The version a ReplicaSet, pod, Service selector, AnalysisRun or Experiment belongs to.
    pub const POD_TEMPLATE_HASH: &str = "rollouts-pod-template-hash";
    /// The GitSource that an object comes from.
    pub const SOURCE: &str = "tidegate.dev/source";
    /// Which of several controllers looks after an object.
    pub const INSTANCE_ID: &str = "argo-rollouts.argoproj.io/controller-instance-id";
    /// What a Rollout uses an AnalysisRun for.
    pub const ROLLOUT_TYPE: &str = "rollout-type";
    /// The step that an AnalysisRun belongs to.
    pub const STEP_INDEX: &str = "step-index";
    /// The AnalysisRun that a Job, and its pods, belong to.
    pub const ANALYSIS_RUN_UID: &str = "analysisrun.argoproj.io/uid";
}

/// What a Rollout uses an AnalysisRun for.
pub mod rollout_type {
    /// A step.
    pub const STEP: &str = "Step";
    /// All through the update.
    pub const BACKGROUND: &str = "Background";
    /// Before the switch.
    pub const PRE_PROMOTION: &str = "PrePromotion";
    /// After the switch.
    pub const POST_PROMOTION: &str = "PostPromotion";
}

/// Which of two Services that change places is the stable one.
pub mod ping_pong {
    /// The first.
    pub const PING: &str = "ping";
    /// The second.
    pub const PONG: &str = "pong";
}

/// Annotations.
pub mod annotation {
    /// The revision of a Rollout, ReplicaSet, AnalysisRun or Experiment.
    pub const REVISION: &str = "rollout.argoproj.io/revision";
    /// The revisions a ReplicaSet had before.
    pub const REVISION_HISTORY: &str = "rollout.argoproj.io/revision-history";
    /// What the Rollout wanted when its ReplicaSet was last scaled.
    pub const DESIRED_REPLICAS: &str = "rollout.argoproj.io/desired-replicas";
    /// The generation of the referenced workload.
    pub const WORKLOAD_GENERATION: &str = "rollout.argoproj.io/workload-generation";
    /// What was put on the pods of a ReplicaSet for its role.
    pub const EPHEMERAL_METADATA: &str = "rollout.argoproj.io/ephemeral-metadata";
    /// When a ReplicaSet is to be scaled down.
    pub const SCALE_DOWN_DEADLINE: &str = "scale-down-deadline";
    /// The Rollout that looks after a Service or another object.
    pub const MANAGED_BY: &str = "argo-rollouts.argoproj.io/managed-by-rollouts";
    /// On a stable ReplicaSet whose idle pods give way to new ones.
    pub const GIVES_WAY: &str = "tidegate.dev/gives-way";
    /// Which notifications were sent.
    pub const NOTIFIED: &str = "notified.notifications.argoproj.io";
    /// What kubectl last applied.
    pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    /// The Experiment of a ReplicaSet.
    pub const EXPERIMENT_NAME: &str = "experiment.argoproj.io/name";
    /// The version in that Experiment.
    pub const EXPERIMENT_TEMPLATE: &str = "experiment.argoproj.io/template-name";
    /// Our own: when the attempt of an update began that an AnalysisRun belongs to.
    pub const ATTEMPT: &str = "tidegate.dev/attempt";
    /// The AnalysisRun of a Job.
    pub const ANALYSIS_RUN_NAME: &str = "analysisrun.argoproj.io/name";
    /// Its namespace.
    pub const ANALYSIS_RUN_NAMESPACE: &str = "analysisrun.argoproj.io/namespace";
    /// The metric of a Job.
    pub const ANALYSIS_RUN_METRIC: &str = "analysisrun.argoproj.io/metric-name";
    /// Which annotations of an Ingress are a Rollout's.
    pub const MANAGED_ALB_ANNOTATIONS: &str = "rollouts.argoproj.io/managed-alb-annotations";
    /// The same, as older versions wrote it.
    pub const MANAGED_ALB_ACTIONS: &str = "rollouts.argoproj.io/managed-alb-actions";
    /// Asks a GitSource to look at its repository now; any new value does.
    pub const SYNC_REQUESTED: &str = "tidegate.dev/sync-requested";
    /// The newest commit that changed an object's content.
    pub const COMMIT: &str = "tidegate.dev/commit";
    /// The file of the repository that an object stands in.
    pub const PATH: &str = "tidegate.dev/path";
    /// What an object's content was in the repository, as a digest.
    pub const DIGEST: &str = "tidegate.dev/digest";
    /// The hash of a Rollout's pod template, and the commit that brought this template.
    pub const TEMPLATE: &str = "tidegate.dev/template";
    /// `true`: the object is deleted and created again where a field of it cannot change.
    pub const REPLACE: &str = "tidegate.dev/replace";
    /// `disabled`: the object is never pruned.
    pub const PRUNE: &str = "tidegate.dev/prune";
    /// `once`: the object is created and then left alone; `ignore`: it is not even that.
    pub const APPLY: &str = "tidegate.dev/apply";
    /// A number: objects of a higher one wait until those of lower ones are healthy.
    pub const WAVE: &str = "tidegate.dev/wave";
    /// A CEL expression over the live object: it is healthy when this is true.
    pub const HEALTH: &str = "tidegate.dev/health";
    /// A CEL expression over the live object: it has failed when this is true.
    pub const HEALTH_FAILED: &str = "tidegate.dev/health-failed";
    /// `before-sync`, `after-sync` or `on-failure`: the object runs once for each commit, then.
    pub const HOOK: &str = "tidegate.dev/hook";
    /// `succeeded` and `failed`: after which endings a hook is deleted.
    pub const HOOK_DELETE: &str = "tidegate.dev/hook-delete-policy";
    /// What Argo CD calls a hook, its deletion, a wave and its other wishes.
    pub const ARGOCD_HOOK: &str = "argocd.argoproj.io/hook";
    /// See [`ARGOCD_HOOK`].
    pub const ARGOCD_HOOK_DELETE: &str = "argocd.argoproj.io/hook-delete-policy";
    /// See [`ARGOCD_HOOK`].
    pub const ARGOCD_WAVE: &str = "argocd.argoproj.io/sync-wave";
    /// See [`ARGOCD_HOOK`].
    pub const ARGOCD_OPTIONS: &str = "argocd.argoproj.io/sync-options";
    /// What Helm calls a hook, its order, its deletion and an object that stays.
    pub const HELM_HOOK: &str = "helm.sh/hook";
    /// See [`HELM_HOOK`].
    pub const HELM_WEIGHT: &str = "helm.sh/hook-weight";
    /// See [`HELM_HOOK`].
    pub const HELM_HOOK_DELETE: &str = "helm.sh/hook-delete-policy";
    /// See [`HELM_HOOK`].
    pub const HELM_POLICY: &str = "helm.sh/resource-policy";
    /// On a Secret: the hosts that it may be sent to, such as `https://git.example ssh://git.example:2222`.
    pub const HOSTS: &str = "tidegate.dev/hosts";
    /// `true`, in git or in the cluster: the object stays as it is until this is taken away.
    pub const SUSPEND: &str = "tidegate.dev/suspend";
}

/// Keeps a GitSource that prunes until its objects are gone.
pub const FINALIZER: &str = "tidegate.dev/prune";

/// Phases of a Rollout.
pub mod phase {
    /// All is as wanted.
    pub const HEALTHY: &str = "Healthy";
    /// Something went wrong.
    pub const DEGRADED: &str = "Degraded";
    /// It is on its way.
    pub const PROGRESSING: &str = "Progressing";
    /// It waits.
    pub const PAUSED: &str = "Paused";
}

/// Phases of an AnalysisRun, a measurement or an Experiment.
pub mod analysis_phase {
    /// Not begun.
    pub const PENDING: &str = "Pending";
    /// Under way.
    pub const RUNNING: &str = "Running";
    /// As hoped.
    pub const SUCCESSFUL: &str = "Successful";
    /// Not as hoped.
    pub const FAILED: &str = "Failed";
    /// It could not be done.
    pub const ERROR: &str = "Error";
    /// Neither success nor failure.
    pub const INCONCLUSIVE: &str = "Inconclusive";
}

/// Reasons to wait.
pub mod pause {
    /// A pause step.
    pub const CANARY_PAUSE_STEP: &str = "CanaryPauseStep";
    /// Before the switch.
    pub const BLUE_GREEN_PAUSE: &str = "BlueGreenPause";
    /// An analysis that was inconclusive.
    pub const INCONCLUSIVE_ANALYSIS: &str = "InconclusiveAnalysisRun";
    /// An experiment that was inconclusive.
    pub const INCONCLUSIVE_EXPERIMENT: &str = "InconclusiveExperiment";
}

/// How an attempt ended, in `status.duration`.
pub mod completion {
    /// Step by step.
    pub const PROMOTED: &str = "Promoted";
    /// By a person who skipped the rest.
    pub const FAST_PROMOTED: &str = "FastPromoted";
    /// It was undone.
    pub const ABORTED: &str = "Aborted";
    /// A newer version came.
    pub const SUPERSEDED: &str = "Superseded";
    /// Back to the stable version.
    pub const ROLLED_BACK: &str = "RolledBack";
    /// Back to a version of the rollback window.
    pub const FAST_ROLLED_BACK: &str = "FastRolledBack";
}

/// Condition types.
pub mod condition {
    /// The specification is wrong.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// Enough pods are available.
    pub const AVAILABLE: &str = "Available";
    /// It moves.
    pub const PROGRESSING: &str = "Progressing";
    /// A pod could not be made or deleted.
    pub const REPLICA_FAILURE: &str = "ReplicaFailure";
    /// It waits.
    pub const PAUSED: &str = "Paused";
    /// The newest version is stable.
    pub const COMPLETED: &str = "Completed";
    /// All is as wanted.
    pub const HEALTHY: &str = "Healthy";
    /// An Experiment runs.
    pub const RUNNING: &str = "Running";
    /// All is as wanted, in the words of kstatus.
    pub const READY: &str = "Ready";
    /// It is on its way, in the words of kstatus.
    pub const RECONCILING: &str = "Reconciling";
    /// It will not get there by itself, in the words of kstatus.
    pub const STALLED: &str = "Stalled";
    /// False while the commits of a GitSource cannot be told how they went.
    pub const REPORTED: &str = "Reported";
    /// Our own, of a GitSource: somebody changed what git says, and it was put right.
    pub const DRIFT_HEALED: &str = "DriftHealed";
    /// Our own, of a GitSource: an object that was there already is the source's now.
    pub const TAKEN_OVER: &str = "TakenOver";
}

/// Reasons of conditions and events.
pub mod reason {
    /// The specification is wrong.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// About availability, whether it is there or not.
    pub const AVAILABLE: &str = "AvailableReason";
    /// A ReplicaSet moves.
    pub const REPLICA_SET_UPDATED: &str = "ReplicaSetUpdated";
    /// A ReplicaSet could not be created.
    pub const REPLICA_SET_CREATE_ERROR: &str = "ReplicaSetCreateError";
    /// A ReplicaSet was created.
    pub const NEW_REPLICA_SET: &str = "NewReplicaSetCreated";
    /// A ReplicaSet was there already.
    pub const FOUND_NEW_REPLICA_SET: &str = "FoundNewReplicaSet";
    /// The Rollout has a new revision.
    pub const ROLLOUT_UPDATED: &str = "RolloutUpdated";
    /// The newest version is stable.
    pub const ROLLOUT_COMPLETED: &str = "RolloutCompleted";
    /// A newer version is on its way.
    pub const ROLLOUT_NOT_COMPLETED: &str = "RolloutNotCompleted";
    /// About health, whether it is there or not.
    pub const ROLLOUT_HEALTHY: &str = "RolloutHealthy";
    /// The update was aborted.
    pub const ROLLOUT_ABORTED: &str = "RolloutAborted";
    /// The update is tried again.
    pub const ROLLOUT_RETRY: &str = "RolloutRetry";
    /// It waits.
    pub const ROLLOUT_PAUSED: &str = "RolloutPaused";
    /// It goes on.
    pub const ROLLOUT_RESUMED: &str = "RolloutResumed";
    /// Too few pods are available.
    pub const REPLICA_SET_NOT_AVAILABLE: &str = "ReplicaSetNotAvailable";
    /// A step is done.
    pub const STEP_COMPLETED: &str = "RolloutStepCompleted";
    /// Steps are not needed.
    pub const SKIP_STEPS: &str = "SkipSteps";
    /// Traffic was moved.
    pub const TRAFFIC_WEIGHT_UPDATED: &str = "TrafficWeightUpdated";
    /// Traffic could not be moved.
    pub const TRAFFIC_ROUTING_ERROR: &str = "TrafficRoutingError";
    /// A Service leads to another version.
    pub const SWITCH_SERVICE: &str = "SwitchService";
    /// The new version is there.
    pub const NEW_REPLICA_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
    /// An experiment was begun.
    pub const EXPERIMENT_CREATED: &str = "ExperimentCreated";
    /// An experiment is over.
    pub const EXPERIMENT_COMPLETED: &str = "ExperimentCompleted";
    /// A pass ended in a panic, and the object is left alone for a while.
    pub const QUARANTINED: &str = "Quarantined";
    /// A pass failed.
    pub const RECONCILIATION_ERROR: &str = "ReconciliationError";
    /// It does not get on.
    pub const TIMED_OUT: &str = "ProgressDeadlineExceeded";
    /// The Rollout is gone.
    pub const ROLLOUT_DELETED: &str = "RolloutDeleted";
    /// A ReplicaSet was scaled.
    pub const SCALING_REPLICA_SET: &str = "ScalingReplicaSet";
    /// The weights could not be checked.
    pub const WEIGHT_VERIFY_ERROR: &str = "WeightVerifyError";
    /// Our own: the template holds a value that no pod can have.
    pub const MALFORMED_TEMPLATE: &str = "MalformedTemplate";
    /// The Rollout was first seen.
    pub const ADDED_TO_INFORMER: &str = "RolloutAddedToInformer";
    /// An analysis is ended early.
    pub const ANALYSIS_RUN_TERMINATING: &str = "AnalysisRunTerminating";
    /// Istio was told; with a blank, as it has always been.
    pub const VIRTUAL_SERVICE_UPDATED: &str = "Updated VirtualService";
    /// There is no such VirtualService.
    pub const VIRTUAL_SERVICE_NOT_FOUND: &str = "VirtualServiceNotFound";
    /// Istio was told.
    pub const DESTINATION_RULE_UPDATED: &str = "UpdatedDestinationRule";
    /// There is no such DestinationRule.
    pub const DESTINATION_RULE_NOT_FOUND: &str = "DestinationRuleNotFound";
    /// There is no such VirtualRouter.
    pub const VIRTUAL_ROUTER_NOT_FOUND: &str = "VirtualRouterNotFound";
    /// There is no such VirtualNode.
    pub const VIRTUAL_NODE_NOT_FOUND: &str = "VirtualNodeNotFound";
    /// nginx gets an Ingress for the canary.
    pub const CREATING_CANARY_INGRESS: &str = "CreatingCanaryIngress";
    /// nginx is told.
    pub const PATCHING_CANARY_INGRESS: &str = "PatchingCanaryIngress";
    /// The AWS controller is told.
    pub const PATCHING_ALB_INGRESS: &str = "PatchingALBIngress";
    /// There is a TrafficSplit now.
    pub const TRAFFIC_SPLIT_CREATED: &str = "TrafficSplitCreated";
    /// There is no such Mapping.
    pub const AMBASSADOR_MAPPING_NOT_FOUND: &str = "AmbassadorMappingNotFound";
    /// A Mapping is not as it should be.
    pub const AMBASSADOR_MAPPING_CONFIG_ERROR: &str = "AmbassadorMappingConfigError";
    /// Ambassador was told.
    pub const CANARY_MAPPING_WEIGHT_UPDATE: &str = "CanaryMappingWeightUpdate";

    /// Of an AnalysisRun that has got on: `AnalysisRunFailed`.
    pub fn analysis_run(phase: &str) -> String {
        format!("AnalysisRun{phase}")
    }
    /// Of a metric that is decided: `MetricFailed`.
    pub fn metric(phase: &str) -> String {
        format!("Metric{phase}")
    }
    /// Of a version of an Experiment that has got on: `TemplateRunning`.
    pub fn template(status: &str) -> String {
        format!("Template{status}")
    }
    /// Of an Experiment that has got on: `ExperimentSuccessful`.
    pub fn experiment(phase: &str) -> String {
        format!("Experiment{phase}")
    }
}

/// Messages of conditions and events.
pub mod message {
    /// Of an invalid specification.
    pub fn invalid_spec(rollout: &str, problem: &str) -> String {
        format!("The Rollout {} is invalid: {problem}", quoted(rollout))
    }

    /// Of a Rollout with `spec.paused`.
    pub const PAUSED_BY_HAND: &str = "manually paused";

    /// Of a Rollout with enough pods.
    pub const AVAILABLE: &str = "Rollout has minimum availability";

    /// Of a Rollout with too few.
    pub const NOT_AVAILABLE: &str = "Rollout does not have minimum availability";

    /// Of a healthy Rollout.
    pub const HEALTHY: &str = "Rollout is healthy";

    /// Of any other.
    pub const NOT_HEALTHY: &str = "Rollout is not healthy";

    /// Of the condition Completed, whatever its status.
    pub const COMPLETED: &str = "RolloutCompleted";

    /// Of a retry.
    pub const RETRY: &str = "Retrying Rollout after abort";

    /// Of a pause, whatever the condition's status.
    pub const PAUSED: &str = "Rollout is paused";

    /// Of its end.
    pub const RESUMED: &str = "Rollout is resumed";

    /// Of a Rollout on its way.
    pub fn rollout_progressing(rollout: &str) -> String {
        format!("Rollout {} is progressing.", quoted(rollout))
    }

    /// Of a ReplicaSet on its way.
    pub fn replica_set_progressing(set: &str) -> String {
        format!("ReplicaSet {} is progressing.", quoted(set))
    }

    /// Of a ReplicaSet that could not be created.
    pub fn replica_set_create_error(set: &str, error: &str) -> String {
        format!("Failed to create new replica set {}: {error}", quoted(set))
    }

    /// Of a new ReplicaSet, in a condition.
    pub fn new_replica_set(set: &str) -> String {
        format!("Created new replica set {}", quoted(set))
    }

    /// Of a ReplicaSet that was there already, in a condition.
    pub fn found_replica_set(set: &str) -> String {
        format!("Found new replica set {}", quoted(set))
    }

    /// Of a value in a pod template that no pod can have.
    pub fn malformed_template(path: &str, expected: &str, found: &str, ends: bool) -> String {
        let rest = if ends { " with all that follows" } else { "" };
        format!("spec.template.{path}: expected {expected}, found {found}; left out{rest}")
    }

    /// Of a new ReplicaSet, in an event.
    pub fn created_replica_set(set: &str, revision: i64) -> String {
        format!("Created ReplicaSet {set} (revision {revision})")
    }

    /// Of a new revision.
    pub fn rollout_updated(revision: &str) -> String {
        format!("Rollout updated to revision {revision}")
    }

    /// Of a promotion.
    pub fn rollout_completed(revision: i64, hash: &str, why: &str) -> String {
        format!("Rollout completed update to revision {revision} ({hash}): {why}")
    }

    /// Of an update that begins.
    pub fn rollout_not_completed(revision: i64, hash: &str) -> String {
        format!("Rollout not completed, started update to revision {revision} ({hash})")
    }

    /// Of an abort.
    pub fn rollout_aborted(revision: i64) -> String {
        format!("Rollout aborted update to revision {revision}")
    }

    /// Of a step that is done, counted from 1.
    pub fn step_completed(step: usize, of: usize, what: &str) -> String {
        format!("Rollout step {step}/{of} completed ({what})")
    }

    /// Of traffic that was moved.
    pub fn traffic_weight_updated(change: &str) -> String {
        format!("Traffic weight updated {change}")
    }

    /// Of a pass that failed.
    pub fn reconciliation_error(error: &str) -> String {
        format!("Reconciliation failed with error: {error}")
    }

    /// Of a Rollout that does not get on.
    pub fn rollout_timed_out(rollout: &str) -> String {
        format!("Rollout {} has timed out progressing.", quoted(rollout))
    }

    /// Of a ReplicaSet that does not get on.
    pub fn replica_set_timed_out(set: &str) -> String {
        format!("ReplicaSet {} has timed out progressing.", quoted(set))
    }

    /// Of a ReplicaSet that is there.
    pub fn replica_set_completed(set: &str) -> String {
        format!("ReplicaSet {} has successfully progressed.", quoted(set))
    }

    /// Of a Rollout that is met for the first time.
    pub fn added_to_informer(namespace: &str, name: &str) -> String {
        format!("Rollout resource added to informer: {namespace}/{name}")
    }

    /// Of a Rollout that is gone.
    pub fn rollout_deleted(name: &str, namespace: &str) -> String {
        // The name comes first, as in every event of the kind that was ever written.
        format!("Rollout {name}/{namespace} is deleted.")
    }

    /// Of a ReplicaSet that was scaled; the direction is `up` or `down`.
    pub fn scaled(direction: &str, set: &str, revision: i64, from: i32, to: i32) -> String {
        format!("Scaled {direction} ReplicaSet {set} (revision {revision}) from {from} to {to}")
    }

    /// Two of [`scaled`] in one, if the second goes on where the first ended, in its direction.
    pub fn scaled_on(first: &str, second: &str) -> Option<String> {
        let (what, sizes) = first.rsplit_once(" from ")?;
        let (same, more) = second.rsplit_once(" from ")?;
        let ((from, middle), (begin, to)) = (sizes.split_once(" to ")?, more.split_once(" to ")?);
        (what == same && middle == begin).then(|| format!("{what} from {from} to {to}"))
    }

    /// Of a Service that is another Rollout's.
    pub fn service_managed_elsewhere(service: &str) -> String {
        format!("Service {} is managed by another Rollout", quoted(service))
    }

    /// Of a Service that leads to another version.
    pub fn switched_service(service: &str, from: &str, to: &str) -> String {
        format!("Switched selector for service '{service}' from '{from}' to '{to}'")
    }

    /// Of an Experiment on its way.
    pub fn experiment_progressing(experiment: &str) -> String {
        format!("Experiment {} is progressing.", quoted(experiment))
    }

    /// Of an Experiment that runs.
    pub fn experiment_running(experiment: &str) -> String {
        format!("Experiment {} is running.", quoted(experiment))
    }

    /// Of an Experiment that is over.
    pub fn experiment_completed(experiment: &str) -> String {
        format!("Experiment {} has successfully ran and completed.", quoted(experiment))
    }

    /// Of an experiment that begins.
    pub fn experiment_created(experiment: &str) -> String {
        format!("Created Experiment '{experiment}'")
    }

    /// Of an Experiment that has got on.
    pub fn experiment_moved(from: &str, to: &str) -> String {
        format!("Experiment transitioned from {from} -> {to}")
    }

    /// Of an analysis that is ended early.
    pub fn analysis_terminating(analysis: &str, run: &str) -> String {
        format!("Terminating {analysis} ({run})")
    }

    /// Of a version of an Experiment that has got on.
    pub fn template_moved(template: &str, from: &str, to: &str) -> String {
        format!("Template '{template}' transitioned from {from} -> {to}")
    }

    /// Of a version of an Experiment that did not get on in time.
    pub fn template_deadline(template: &str, seconds: i32) -> String {
        format!("Template '{template}' exceeded its progressDeadlineSeconds ({seconds})")
    }

    /// Our own: of an object that has a name which an Experiment needs.
    pub fn taken_in_experiment(kind: &str, name: &str, template: &str) -> String {
        format!("{kind} {name} already exists and is not owned by experiment template {template}")
    }

    /// Of an analysis of an Experiment that has got on.
    pub fn analysis_moved(analysis: &str, from: &str, to: &str) -> String {
        format!("AnalysisRun '{analysis}' transitioned from {from} -> {to}")
    }

    /// Of a ReplicaSet of an Experiment that was scaled.
    pub fn scaled_in_experiment(direction: &str, set: &str, from: i32, to: i32) -> String {
        format!("Scaled {direction} ReplicaSet {set} from {from} to {to}")
    }

    /// Of an experiment that ends because its analyses have.
    pub const REQUIRED_ANALYSES_COMPLETED: &str = "Required AnalysisRuns completed";

    /// A name in quotes, as Go's `%q` writes it; names of objects need no escapes.
    fn quoted(name: &str) -> String {
        format!("{name:?}")
    }
}
