//! A GitSource, exactly: what to sync from where, and how.
//!
//! Never talks to git.

use jiff::SignedDuration;

use super::weight::Limit;

/// A GitSource that makes sense. Defaults are filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct GitSource {
    /// The repository.
    pub url: String,
    /// What to follow.
    pub reference: Reference,
    /// The folder to read; empty for the root.
    pub path: String,
    /// Files not to read, by pattern.
    pub exclude: Vec<String>,
    /// How kustomizations are rendered.
    pub kustomize: Rendering,
    /// How often to look for new commits.
    pub interval: SignedDuration,
    /// Nothing is to change until this is unset.
    pub suspend: bool,
    /// The Secret to fetch with.
    pub secret: Option<String>,
    /// Which signatures a commit must carry.
    pub verify: Option<Verification>,
    /// The ServiceAccount in whose name objects are written.
    pub service_account: String,
    /// The namespace of objects that name none; the source's own if not said.
    pub target_namespace: Option<String>,
    /// The kinds that the repository may bring; if there is none, those of a namespace that grant no rights.
    pub kinds: Vec<String>,
    /// The namespaces that it may write to; if there is none, the source's own and its target.
    pub namespaces: Vec<String>,
    /// What becomes of objects that are no longer in the repository.
    pub prune: Prune,
    /// What becomes of what others change in the cluster.
    pub drift: Drift,
    /// Sources whose commits must be rolled out first.
    pub depends_on: Vec<String>,
    /// The Secret of the webhook.
    pub webhook: Option<String>,
    /// Where to tell commits how they went.
    pub report: Option<Report>,
    /// Which workflows may ask for a plan.
    pub plan: Option<PlanAccess>,
    /// What to do when a commit's rollout is aborted.
    pub on_abort: OnAbort,
    /// What to do about an object of which a field cannot change.
    pub on_immutable: OnImmutable,
    /// What a new commit does while an earlier one is rolled out.
    pub on_new_commit: OnNewCommit,
}

/// How kustomizations are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rendering {
    /// What is known of Rollouts.
    pub rollouts: Rollouts,
    /// Where the files of a kustomization may lie.
    pub load_restrictor: LoadRestrictor,
}

impl Default for Rendering {
    fn default() -> Rendering {
        Rendering { rollouts: Rollouts::Known, load_restrictor: LoadRestrictor::RootOnly }
    }
}

/// What is known of Rollouts, AnalysisTemplates and Experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rollouts {
    /// Their names, labels, replicas and lists, as those of Deployments are.
    Known,
    /// Nothing, as in kustomize without configuration.
    Plain,
}

/// Where the files of a kustomization may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoadRestrictor {
    /// In or below its folder, as kustomize has it.
    RootOnly,
    /// Anywhere in the repository.
    Repository,
}

impl GitSource {
    /// How long to wait before looking for new commits the next time: the interval, and up to a tenth more that differs
    /// from source to source and from time to time, so that many sources do not ask their host at once.
    pub fn next_look(&self, uid: &str, looks: u64) -> SignedDuration {
        let mix = uid.bytes().fold(looks.wrapping_mul(0x9e37_79b9_7f4a_7c15), |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let share = i32::try_from((mix >> 32) % 1000).unwrap_or(0);
        self.interval.saturating_add((self.interval / 10_000).saturating_mul(share))
    }
}

/// Which workflows may ask the daemon for the plan of their commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanAccess {
    /// Who signs their tokens: an https URL without a slash at its end.
    pub issuer: String,
    /// Whom the tokens are for.
    pub audience: String,
    /// The repository whose workflows they are, as the issuer calls it.
    pub repository: String,
    /// The refs whose workflows they are: `refs/heads/main`, `refs/pull/*/merge`.
    pub refs: Vec<String>,
}

impl PlanAccess {
    /// Whether workflows of this ref may ask. A `*` stands for one part of the name.
    pub fn allows_ref(&self, name: &str) -> bool {
        let matches = |pattern: &String| {
            let (pattern, name): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), name.split('/').collect());
            let same = |(pattern, part): (&&str, &&str)| (*pattern == "*" && !part.is_empty()) || pattern == part;
            pattern.len() == name.len() && pattern.iter().zip(&name).all(same)
        };
        self.refs.iter().any(matches)
    }
}

/// What to follow in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The branch that the repository names as its default.
    Default,
    /// A branch.
    Branch(String),
    /// A tag.
    Tag(String),
    /// The highest tag in a range of versions.
    Semver(String),
    /// One commit.
    Commit(String),
}

/// Which signatures a commit must carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// What must be signed.
    pub signed: Signed,
    /// The Secret with the keys that count.
    pub secret: String,
}

/// What must be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signed {
    /// The commit.
    Commit,
    /// The tag that led to it.
    Tag,
    /// Both.
    TagAndCommit,
}

/// What becomes of objects that are no longer in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prune {
    /// They stay.
    Never,
    /// They are deleted, unless one commit would delete more than this.
    UpTo(Limit),
}

/// What becomes of what others change in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// It is changed back.
    Heal,
    /// It stays until the next commit.
    Leave,
}

/// Where to tell commits how they went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What kind of host it is.
    pub host: Host,
    /// Where its API is, if the repository's URL does not tell.
    pub url: Option<String>,
    /// The Secret to report with; the one to fetch with if not said.
    pub secret: Option<String>,
    /// What to call the status.
    pub context: Option<String>,
    /// One status for each Rollout, beside the one for the source.
    pub per_rollout: bool,
}

/// The hosts that commits can be told on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // named as they call themselves
pub enum Host {
    /// Goes by the URL.
    Auto,
    GitHub,
    GitLab,
    Gitea,
    Bitbucket,
    BitbucketDataCenter,
    AzureDevOps,
    /// Git notes.
    Notes,
    /// Nobody is told.
    None,
}

/// What to do when a commit's rollout is aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnAbort {
    /// The failed template is not applied again until a new commit.
    Hold,
    /// The other objects of that commit go back as well.
    Restore,
    /// The same, and a revert is offered on a branch of its own.
    Revert,
}

/// What to do about an object of which a field would have to change that cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnImmutable {
    /// Say so.
    Fail,
    /// Delete it and make it anew.
    Replace,
}

/// What a new commit does while an earlier one is rolled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnNewCommit {
    /// It takes its place.
    Supersede,
    /// It waits for its end.
    Wait,
}
