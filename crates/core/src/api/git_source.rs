//! `GitSource`: what to sync from a repository, our own and only kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IntOrString, ObjectMeta, Time, crd, is_zero};
use crate::kubernetes::value::Text;

/// Keeps the objects of a folder of a git repository in the cluster, and tells each commit how it went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GitSource {
    /// `tidegate.dev/v1alpha1`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `GitSource`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name, namespace, labels, annotations.
    #[schemars(schema_with = "crd::object_meta")]
    pub metadata: ObjectMeta,
    /// What to sync, and how.
    #[schemars(extend("x-required" = true))]
    pub spec: GitSourceSpec,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<GitSourceStatus>,
}

/// What to sync, and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GitSourceSpec {
    /// The repository: `https://host/path`, `ssh://user@host/path` or `user@host:path`. A Secret is sent to its host only if
    /// the Secret names that in its annotation `tidegate.dev/hosts`.
    #[schemars(extend("x-required" = true, "pattern" = URL, "maxLength" = 2048))]
    pub url: String,
    /// What to follow: at most one of its fields. Without any, the branch that the repository names as its default.
    #[serde(rename = "ref")]
    #[schemars(extend("x-kubernetes-validations" = at_most_one()))]
    pub reference: GitReference,
    /// The folder to read, below the repository's root and with all folders in it; the root if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-default" = "", "pattern" = PATH, "maxLength" = 1024))]
    pub path: String,
    /// Files not to read: patterns such as `docs/**` or `*.test.yaml`, relative to the path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub exclude: Vec<String>,
    /// How folders that are kustomizations are rendered: those with a `kustomization.yaml`, `kustomization.yml` or
    /// `Kustomization`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<GitKustomize>,
    /// How often to look for new commits, such as `30s` or `5m`. A webhook is faster.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-default" = "1m", "pattern" = DURATION))]
    pub interval: String,
    /// Changes nothing in the cluster until it is unset. What is running stays, also when the source is deleted
    /// meanwhile.
    #[serde(skip_serializing_if = "is_zero")]
    pub suspend: bool,
    /// The Secret to fetch with. Keys: `username` and `password`, or `bearerToken`, or `githubAppID`,
    /// `githubAppInstallationID` and `githubAppPrivateKey`; for ssh `identity` and `known_hosts`; `ca.crt` for a
    /// private authority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalReference>,
    /// Which signatures a commit must carry. Others are not applied, and say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<GitVerification>,
    /// The ServiceAccount in whose name objects are written, so that its rights are the source's rights.
    #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
    pub service_account_name: String,
    /// The namespace of objects that name none; the source's own if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub target_namespace: String,
    /// What the repository may bring. Everything else is refused by name, whatever the ServiceAccount may do.
    pub allow: GitAllowance,
    /// Whether objects that are no longer in the repository are deleted, and all of them with the source itself.
    /// Nothing is deleted while anything in the path cannot be read. Namespaces and definitions of kinds outlive the
    /// source: others may live in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = true))]
    pub prune: Option<bool>,
    /// How many of its objects, as a number or a percentage, one commit may delete. A commit that would delete more
    /// deletes none and says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "50%"))]
    pub prune_limit: Option<IntOrString>,
    /// Whether what others change in the cluster is changed back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = true))]
    pub self_heal: Option<bool>,
    /// Sources in the same namespace whose commits must be rolled out first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub depends_on: Vec<LocalReference>,
    /// Lets the repository's host say that there is a new commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<GitWebhook>,
    /// Where to tell commits how they went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<GitReport>,
    /// Lets workflows ask the daemon for the plan of their commit. None may if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<GitPlan>,
    /// What to do when a commit's rollout is aborted. `Hold`: the failed template is not applied again until a new
    /// commit. `Restore`: the other objects of that commit go back as well, to what the last commit wanted that was
    /// fully rolled out. `Revert`: as Restore, and a revert is offered on a branch of its own, `tidegate/revert-<commit>`,
    /// which on a host needs the right to push.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-default" = "Hold", "enum" = ["Hold", "Restore", "Revert"]))]
    pub on_abort: String,
    /// What to do about an object of which a field would have to change that cannot: `Fail`, or `Replace` it, which deletes it
    /// and makes it anew. The annotation `tidegate.dev/replace` of an object comes first. What holds data is never replaced.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-default" = "Fail", "enum" = ["Fail", "Replace"]))]
    pub on_immutable: String,
    /// What a new commit does while an earlier one is rolled out. `Supersede`: it takes its place. `Wait`: it waits
    /// for its end.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-default" = "Supersede", "enum" = ["Supersede", "Wait"]))]
    pub on_new_commit: String,
}

/// What to follow in a repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GitReference {
    /// A branch.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 255))]
    pub branch: String,
    /// A tag.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 255))]
    pub tag: String,
    /// The highest tag in a range of versions, such as `>=1.2.0 <2.0.0`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 255))]
    pub semver: String,
    /// One commit, by its whole hash.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = COMMIT))]
    pub commit: String,
}

/// How kustomizations are rendered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GitKustomize {
    /// Whether names, labels, replicas and lists of Rollouts, AnalysisTemplates and Experiments are known as those of
    /// Deployments are. If not, they are rendered as by kustomize without configuration: references to generated names dangle.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = true))]
    pub rollouts: Option<bool>,
    /// Where the files that a kustomization names may lie. `RootOnly`: in or below its folder, as kustomize has it. `Repository`:
    /// anywhere in the repository. Bases may lie anywhere in the repository either way.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-default" = "RootOnly", "enum" = ["RootOnly", "Repository"]))]
    pub load_restrictor: String,
}

/// An object in the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
    pub name: String,
}

/// Which signatures a commit must carry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GitVerification {
    /// What must be signed: the commit, the tag that led to it, or both.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-default" = "Commit", "enum" = ["Commit", "Tag", "TagAndCommit"]))]
    pub mode: String,
    /// The Secret with the keys that count: an ssh list of allowed signers as `allowed_signers`. Signatures of other
    /// kinds, OpenPGP among them, are refused.
    #[schemars(extend("x-required" = true))]
    pub secret_ref: LocalReference,
}

/// What a repository may bring.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GitAllowance {
    /// The kinds, as `Deployment.apps`, `ConfigMap` or `*.argoproj.io`. Without any: all kinds that live in a
    /// namespace, but for those that grant rights (Role, RoleBinding, ServiceAccount). Kinds that do not live in a
    /// namespace must be named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub kinds: Vec<String>,
    /// The namespaces; `*` for every one. Without any: the source's own and its target.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub namespaces: Vec<String>,
}

/// How the repository's host says that there is a new commit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GitWebhook {
    /// The Secret whose key `token` the host signs or sends with.
    #[schemars(extend("x-required" = true))]
    pub secret_ref: LocalReference,
}

/// Where to tell commits how they went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GitReport {
    /// What kind of host it is. `auto` goes by the URL; `notes` writes git notes.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-default" = "auto", "enum" = HOSTS))]
    pub host: String,
    /// Where its API is, if the repository's URL does not tell.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = "^(https://[A-Za-z0-9].*)?$", "maxLength" = 2048))]
    pub url: String,
    /// The Secret with the `token` to report with, which needs no right but to set statuses, and `ca.crt` for a
    /// private authority. The one to fetch with if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalReference>,
    /// What to call the status; `tidegate/<namespace>/<name>` if not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 255))]
    pub context: String,
    /// One status for each Rollout, beside the one for the source: its context is that of the source, a slash and the
    /// Rollout's name (with its namespace and a slash before it, unless that is the target namespace).
    #[serde(skip_serializing_if = "is_zero")]
    pub per_rollout: bool,
}

/// Which workflows may ask for the plan of their commit: those whose OpenID Connect token says all of this.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GitPlan {
    /// Who signs the tokens, such as `https://token.actions.githubusercontent.com`.
    #[schemars(extend("pattern" = "^https://[A-Za-z0-9][^@?# ]*$", "maxLength" = 2048, "x-required" = true))]
    pub issuer: String,
    /// Whom the tokens are for: the address at which the Action reaches the daemon, its input `daemon-url`.
    #[schemars(length(min = 1, max = 2048), extend("x-required" = true))]
    pub audience: String,
    /// The repository whose workflows may ask, as the issuer calls it: `shop/deploy`.
    #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
    pub repository: String,
    /// The refs whose workflows may ask, such as `refs/pull/*/merge`; a `*` stands for one part of the name.
    #[schemars(length(min = 1, max = 50), extend("x-required" = true))]
    pub refs: Vec<String>,
}

/// How far a source is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GitSourceStatus {
    /// The generation of the specification that this is about.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Ready, Reconciling and Stalled, as kstatus reads them; Reported while commits cannot be told how they went.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The newest commit that was fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<GitRevision>,
    /// The newest commit whose objects are all written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<GitRevision>,
    /// The newest commit whose objects are all healthy and fully promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolled_out: Option<GitRevision>,
    /// The content that the source follows: the commit that brought it, and newer ones that did not change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<FollowedContent>,
    /// What the source has written and may prune.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inventory: Vec<InventoryEntry>,
    /// What is not applied, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldObject>,
    /// How the hooks of the content that the source follows went.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRun>,
    /// Why pods of objects that are not done are not ready, as it was last seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub unready: Vec<UnreadyObject>,
    /// What is wrong in the newest commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub problems: Vec<SourceProblem>,
    /// The value of the annotation `tidegate.dev/sync-requested` that was acted upon last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_sync_request: String,
}

/// A commit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GitRevision {
    /// Its hash.
    #[schemars(extend("x-required" = true))]
    pub commit: String,
    /// What led to it: a branch, a tag.
    #[serde(rename = "ref", skip_serializing_if = "String::is_empty")]
    pub reference: String,
    /// The first line of its message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// When this was found, or done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// The content of a commit, and the commits that share it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct FollowedContent {
    /// A digest of every object that the commit wants.
    #[schemars(extend("x-required" = true))]
    pub digest: String,
    /// The commit that brought this content: the first one with it.
    #[schemars(extend("x-required" = true))]
    pub commit: String,
    /// The newest commit with this content.
    #[schemars(extend("x-required" = true))]
    pub newest: String,
    /// Commits older than the newest one whose commit statuses still follow this content, because it was not rolled out yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub following: Vec<String>,
}

/// An object that a source has written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InventoryEntry {
    /// Its group.
    #[serde(skip_serializing_if = "Text::is_empty")]
    #[schemars(with = "String")]
    pub group: Text,
    /// Its version.
    #[schemars(with = "String", extend("x-required" = true))]
    pub version: Text,
    /// Its kind.
    #[schemars(with = "String", extend("x-required" = true))]
    pub kind: Text,
    /// Its namespace.
    #[serde(skip_serializing_if = "Text::is_empty")]
    #[schemars(with = "String")]
    pub namespace: Text,
    /// Its name.
    #[schemars(with = "String", extend("x-required" = true))]
    pub name: Text,
    /// Its identity, so that a namesake is never pruned.
    #[serde(skip_serializing_if = "Text::is_empty")]
    #[schemars(with = "String")]
    pub uid: Text,
}

/// An object that is not applied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct HeldObject {
    /// Its group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its kind.
    #[schemars(extend("x-required" = true))]
    pub kind: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// The commit that brought it.
    #[schemars(extend("x-required" = true))]
    pub commit: String,
    /// The pod template that failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub template_hash: String,
    /// Why.
    #[schemars(extend("x-required" = true))]
    pub reason: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// A hook that was run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct HookRun {
    /// Its group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its kind.
    #[schemars(extend("x-required" = true))]
    pub kind: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// When it runs: `before-sync`, `sync`, `after-sync` or `on-failure`.
    #[schemars(extend("x-required" = true))]
    pub phase: String,
    /// The commit that it ran for.
    #[schemars(extend("x-required" = true))]
    pub commit: String,
    /// Running, Succeeded or Failed.
    #[schemars(extend("x-required" = true))]
    pub state: String,
    /// Why it failed, or what it waits for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// An object whose pods are not ready.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct UnreadyObject {
    /// Its group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its kind.
    #[schemars(extend("x-required" = true))]
    pub kind: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// The version of its pods.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Why they are not ready.
    #[schemars(extend("x-required" = true))]
    pub reason: String,
}

/// Something wrong in a commit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SourceProblem {
    /// The file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The line.
    #[serde(skip_serializing_if = "is_zero")]
    pub line: i32,
    /// What is wrong, and what to do.
    #[schemars(extend("x-required" = true))]
    pub message: String,
}

/// Something that holds or does not, as every Kubernetes object says it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// What.
    #[schemars(extend("x-required" = true))]
    pub r#type: String,
    /// True, False or Unknown.
    #[schemars(extend("x-required" = true, "enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// The generation of the specification that this is about.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// When it began to hold, or ceased to.
    #[schemars(extend("x-required" = true))]
    pub last_transition_time: Time,
    /// Why, in one word.
    #[schemars(extend("x-required" = true))]
    pub reason: String,
    /// Why, in a sentence.
    #[schemars(extend("x-required" = true))]
    pub message: String,
}

/// What reports can go to.
const HOSTS: [&str; 9] =
    ["auto", "github", "gitlab", "gitea", "bitbucket", "bitbucket-data-center", "azure-devops", "notes", "none"];

/// The rule that a reference names one thing.
fn at_most_one() -> serde_json::Value {
    let given = ["branch", "tag", "semver", "commit"].map(|field| format!("has(self.{field})")).join(", ");
    serde_json::json!([{
        "rule": format!("[{given}].filter(x, x).size() <= 1"),
        "message": "name one of branch, tag, semver and commit",
    }])
}

/// What a repository may be called: no user names with odd characters, no options, no other protocols.
const URL: &str = r"^((https://|ssh://([A-Za-z0-9][A-Za-z0-9._-]*@)?)[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?/|[A-Za-z0-9][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:/?)[A-Za-z0-9~_.][A-Za-z0-9~_.+-]*(/[A-Za-z0-9~_.][A-Za-z0-9~_.+-]*)*/?$";

/// A folder below the root: no part of it is empty, `.` or `..`.
const PATH: &str = r"^(([^/.]|\.[^/.]|\.\.[^/])[^/]*(/([^/.]|\.[^/.]|\.\.[^/])[^/]*)*)?$";

/// A whole hash, or nothing.
const COMMIT: &str = r"^([0-9a-f]{40}|[0-9a-f]{64})?$";

/// A Go duration.
const DURATION: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$";
