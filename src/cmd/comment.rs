//! `tidegate plan --comment HOST`: keeps the plan in a comment on the pull request, from any CI system.

use anyhow::{Context, anyhow};
use clap::ValueEnum;

use super::{remedied, run};
use crate::{
    forge::{
        Credential,
        comment::{Comment, CommentHost, IfMissing, NotPosted, Posted, PullRequest, marker},
    },
    io::{
        comment::post,
        http::{Http, Limits},
    },
    model::secret::Secret,
    plan::Plan,
    workflow::{Trigger, comment_text},
};

/// Where the plan is commented.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct CommentFlags {
    /// Keep the plan in a comment on the pull request as well, found by the variables of the CI system or --pull-request.
    #[arg(long, value_enum, value_name = "HOST")]
    comment: Option<HostName>,
    /// The address of the pull request's page.
    #[arg(long, value_name = "URL", requires = "comment")]
    pull_request: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
enum HostName {
    /// GitHub and GitHub Enterprise Server, with GITHUB_TOKEN.
    GitHub,
    /// Gitea and Forgejo, with GITEA_TOKEN or GITHUB_TOKEN.
    Gitea,
    /// GitLab, with GITLAB_TOKEN.
    GitLab,
}

/// Can write a comment; made before the plan, so that what is missing is said at once.
pub struct Publisher {
    on: PullRequest,
    credential: Credential,
    marker: String,
}

impl Publisher {
    /// Finds the pull request and the token. `about` names the comment among those of one pull request.
    pub fn new(flags: &CommentFlags, about: &[&str]) -> anyhow::Result<Option<Publisher>> {
        let Some(host) = flags.comment else { return Ok(None) };
        let (host, tokens): (_, &[&str]) = match host {
            HostName::GitHub => (CommentHost::GitHub, &["GITHUB_TOKEN"]),
            HostName::Gitea => (CommentHost::Gitea, &["GITEA_TOKEN", "GITHUB_TOKEN"]),
            HostName::GitLab => (CommentHost::GitLab, &["GITLAB_TOKEN"]),
        };
        let remedy = "give --pull-request URL";
        let on = match (&flags.pull_request, host) {
            (Some(page), _) => PullRequest::parse(host, page).map_err(|why| anyhow!(why))?,
            (None, CommentHost::GitHub | CommentHost::Gitea) => {
                of_workflow(host)?.ok_or_else(|| remedied(anyhow!("this is no workflow of a pull request"), remedy))?
            }
            (None, CommentHost::GitLab) => {
                let set = |name: &str| variable(name).ok_or_else(|| remedied(anyhow!("{name} is not set"), remedy));
                let number = set("CI_MERGE_REQUEST_IID")?;
                let number =
                    number.parse().map_err(|_| remedied(anyhow!("CI_MERGE_REQUEST_IID is no number"), remedy))?;
                PullRequest::of(host, &set("CI_API_V4_URL")?, &set("CI_PROJECT_ID")?, number)
                    .map_err(|why| anyhow!(why))?
            }
        };
        let token = tokens.iter().find_map(|name| variable(name)).ok_or_else(|| {
            remedied(anyhow!("{} is not set", tokens[0]), "set it to a token that may write comments")
        })?;
        Ok(Some(Publisher { on, credential: credential(token), marker: marker(about) }))
    }

    /// Creates or updates the comment, and says so on standard error.
    pub fn publish(&self, plan: &Plan) -> anyhow::Result<()> {
        let comment = of_plan(plan, self.marker.clone());
        let posted = send(&self.on, &self.credential, &comment)?
            .map_err(|not| remedied(anyhow!("no comment: {}", not.reason()), "the plan itself was made"))?;
        super::print::note(done(posted, self.on.number));
        Ok(())
    }
}

/// The comment of a plan. A pull request that changes nothing is not worth a new one.
pub fn of_plan(plan: &Plan, marker: String) -> Comment {
    let worth_it = plan.has_changes() || !plan.problems.is_empty();
    let if_missing = if worth_it { IfMissing::Create } else { IfMissing::Skip };
    let text = comment_text(plan, &plan.to.commit, marker.len() + 1);
    Comment { marker, text, if_missing }
}

/// What became of a comment, in a line.
pub fn done(posted: Posted, number: u64) -> String {
    match posted {
        Posted::Created => format!("comment created on pull request {number}"),
        Posted::Updated => format!("comment updated on pull request {number}"),
        Posted::Unchanged => format!("comment on pull request {number} is up to date"),
        Posted::Skipped => format!("nothing changes; no comment on pull request {number}"),
    }
}

/// The pull request that this workflow runs for, if it does for one.
pub fn of_workflow(host: CommentHost) -> anyhow::Result<Option<PullRequest>> {
    let Trigger::PullRequest { number, .. } = trigger()? else { return Ok(None) };
    let (Some(api), Some(repository)) = (variable("GITHUB_API_URL"), variable("GITHUB_REPOSITORY")) else {
        return Ok(None);
    };
    PullRequest::of(host, &api, &repository, number).map(Some).map_err(|why| anyhow!(why))
}

/// What this workflow runs for.
pub fn trigger() -> anyhow::Result<Trigger> {
    let Some(file) = variable("GITHUB_EVENT_PATH") else { return Ok(Trigger::Other) };
    let payload = std::fs::read_to_string(&file).with_context(|| format!("reading the event {file}"))?;
    Ok(Trigger::read(&variable("GITHUB_EVENT_NAME").unwrap_or_default(), &payload))
}

/// What to show to the host.
pub fn credential(token: String) -> Credential {
    Credential { username: None, token: Secret::new(token.trim()) }
}

/// Sends the comment: the outer error is ours, the inner one the host's.
pub fn send(on: &PullRequest, credential: &Credential, comment: &Comment) -> anyhow::Result<Result<Posted, NotPosted>> {
    // Comments of others are read, too, many at once.
    let limits = Limits { bytes: 64 << 20, ..Limits::default() };
    let http = Http::new(run::proxy()?, limits).context("cannot prepare TLS")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    Ok(runtime.block_on(post(&http, on, credential, comment)))
}

/// A variable of the environment that is not empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
