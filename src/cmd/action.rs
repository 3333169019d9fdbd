//! `tidegate action`: what `action.yml` runs. A plan, its summary, annotations and outputs, and the comment.
//!
//! Text of a manifest is printed only while the runner takes no commands from the log.

mod daemon;

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use git2::Repository;
use ring::rand::{SecureRandom, SystemRandom};

use super::{
    Remedied,
    access::Access,
    comment::{self, credential, trigger, variable},
    plan,
    print::line,
};
use crate::{
    forge::comment::{Comment, CommentHost, IfMissing, NotPosted, digest, marker},
    workflow::{self, Annotation, FailOn, Level, StepReport, Trigger, command, failure_text},
};

/// The arguments of `tidegate action`: the inputs of `action.yml`. The token comes in TIDEGATE_TOKEN.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The revision to compare with; by default what the event says.
    #[arg(long, value_name = "REVISION")]
    from: Option<String>,
    /// The revision to plan; by default the commit checked out.
    #[arg(long, value_name = "REVISION")]
    to: Option<String>,
    /// What makes the step fail.
    #[arg(long, value_enum, default_value_t = FailOnName::Error)]
    fail_on: FailOnName,
    /// Whether to keep a comment on the pull request.
    #[arg(long, value_enum, default_value_t = CommentMode::Auto)]
    comment: CommentMode,
    /// Ask the daemon at this address for the plan, instead of making it here.
    #[arg(long, value_name = "URL")]
    daemon_url: Option<String>,
    #[command(flatten)]
    asked: Asked,
}

/// What to plan, whichever revisions.
#[derive(Debug, Clone, clap::Args)]
pub struct Asked {
    /// The folder of the repository that holds the manifests.
    #[arg(long, value_name = "DIR")]
    pub path: Option<String>,
    /// Plan as this GitSource would: a file that holds one, or the name of one among the manifests.
    #[arg(long, value_name = "NAME|FILE")]
    pub source: Option<String>,
    /// Compare with the cluster as well, read-only.
    #[arg(long)]
    pub live: bool,
    /// Which cluster, if `live`.
    #[command(flatten)]
    pub access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOnName {
    /// Never because of what the plan says.
    Never,
    /// If the change cannot be applied, or a rule says error.
    Error,
    /// On warnings, too.
    Warning,
    /// On any change, too.
    Changes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CommentMode {
    /// On pull requests; the summary is enough where the token may not.
    Auto,
    /// On pull requests; the step fails if that fails.
    Always,
    /// Not at all.
    Never,
}

/// Runs the step.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    line("::group::Plan");
    let quiet = Quiet::begin()?;
    let made = make(&arguments);
    match &made {
        Ok(report) => super::print::say(&report.text)?,
        Err(_) => line("there is no plan"),
    }
    drop(quiet);
    line("::endgroup::");

    let about = [arguments.asked.source.as_deref(), arguments.asked.path.as_deref()].map(Option::unwrap_or_default);
    let marker = marker(&about);
    let (text, comment) = match &made {
        Ok(report) => {
            report.annotations.iter().for_each(line);
            let file = plan_file(&about);
            fs::write(&file, report.json()).with_context(|| format!("writing {}", file.display()))?;
            append("GITHUB_OUTPUT", &report.outputs(&file.display().to_string()))?;
            let if_missing = if report.is_worth_a_comment() { IfMissing::Create } else { IfMissing::Skip };
            (report.summary.clone(), Comment { marker, text: report.comment.clone(), if_missing })
        }
        Err(error) => {
            let message = message(error);
            line(Annotation::plain(Level::Error, message.clone()));
            append("GITHUB_OUTPUT", "exit-code=2\n")?;
            let text = failure_text(&message, &variable("GITHUB_SHA").unwrap_or_default());
            (text.clone(), Comment { marker, text, if_missing: IfMissing::Create })
        }
    };
    append("GITHUB_STEP_SUMMARY", &text)?;
    let commented = publish(arguments.comment, &comment)?;
    let failed = match &made {
        Ok(report) => report.fails(fail_on(arguments.fail_on)),
        Err(_) => return Ok(ExitCode::from(2)),
    };
    Ok(ExitCode::from(match (commented, failed) {
        (Commented::Missing, _) => 2,
        (Commented::Fine, true) => 1,
        (Commented::Fine, false) => 0,
    }))
}

fn fail_on(name: FailOnName) -> FailOn {
    match name {
        FailOnName::Never => FailOn::Never,
        FailOnName::Error => FailOn::Error,
        FailOnName::Warning => FailOn::Warning,
        FailOnName::Changes => FailOn::Changes,
    }
}

/// An error with its remedy, in a line.
pub(super) fn message(error: &anyhow::Error) -> String {
    match error.downcast_ref::<Remedied>() {
        Some(remedied) => format!("{:#}; {}", remedied.source, remedied.remedy),
        None => format!("{error:#}"),
    }
}

fn make(arguments: &Arguments) -> anyhow::Result<StepReport> {
    let trigger = trigger()?;
    let to = arguments.to.clone().unwrap_or_else(|| match &trigger {
        // The commit checked out is not the pull request's.
        Trigger::PullRequest { head, on_target: true, .. } if !head.is_empty() => head.clone(),
        Trigger::PullRequest { .. } | Trigger::Push { .. } | Trigger::Other => "HEAD".to_owned(),
    });
    let from = match &arguments.from {
        Some(from) => Some(from.clone()),
        None => base(&trigger, &to)?,
    };
    match &arguments.daemon_url {
        Some(url) => daemon::ask(url, &arguments.asked, from.as_deref(), &to),
        None => {
            plan::make(&plan::Arguments::revisions(from, to, arguments.asked.clone())).map(|plan| StepReport::of(&plan))
        }
    }
}

/// What to compare with: what the pull request changes, or what was pushed.
fn base(trigger: &Trigger, to: &str) -> anyhow::Result<Option<String>> {
    let here = std::env::current_dir().context("finding the current folder")?;
    let Ok(repository) = Repository::discover(here) else { return Ok(None) };
    let Ok(commit) = repository.revparse_single(to).and_then(|object| object.peel_to_commit()) else { return Ok(None) };
    match trigger {
        Trigger::PullRequest { head, base, .. } => {
            // Hosts check out the merge of the pull request into its target: its first parent is the target as it is now.
            let merged = commit.parent_count() == 2 && commit.parent_id(1).is_ok_and(|id| id.to_string() == *head);
            if merged {
                return Ok(commit.parent(0).ok().map(|target| short(&target)));
            }
            let Ok(base) = git2::Oid::from_str(base) else { return Ok(None) };
            match repository.merge_base(base, commit.id()) {
                Ok(found) => Ok(repository.find_commit(found).ok().map(|found| short(&found))),
                Err(error) => Err(super::remedied(
                    anyhow!("the commits of this pull request are not all here: {}", error.message()),
                    "check out with `fetch-depth: 0`, or give `from`",
                )),
            }
        }
        // A commit that was pushed over is not here.
        Trigger::Push { before } => {
            let before = git2::Oid::from_str(before).and_then(|id| repository.find_commit(id));
            Ok(before.ok().map(|before| short(&before)))
        }
        Trigger::Other => Ok(None),
    }
}

/// A commit as people read it: eight digits, or as many as it takes to find it.
fn short(commit: &git2::Commit<'_>) -> String {
    let id = commit.id().to_string();
    let unique = commit.as_object().short_id().ok().map_or(id.len(), |short| short.len());
    id.get(..unique.max(8)).unwrap_or(&id).to_owned()
}

/// Where the plan's JSON goes.
fn plan_file(about: &[&str]) -> PathBuf {
    let folder = variable("RUNNER_TEMP").map_or_else(std::env::temp_dir, PathBuf::from);
    folder.join(format!("tidegate-plan-{}.json", digest(about)))
}

/// Appends to a file of the runner that a variable names; some runners have not all of them.
fn append(variable_name: &str, text: &str) -> anyhow::Result<()> {
    let Some(file) = variable(variable_name) else { return Ok(()) };
    let append = |file: &Path| OpenOptions::new().append(true).create(true).open(file)?.write_all(text.as_bytes());
    append(Path::new(&file)).with_context(|| format!("writing {file}, which {variable_name} names"))
}

enum Commented {
    Fine,
    Missing,
}

fn publish(mode: CommentMode, comment: &Comment) -> anyhow::Result<Commented> {
    if mode == CommentMode::Never {
        return Ok(Commented::Fine);
    }
    let trigger = trigger()?;
    let Trigger::PullRequest { number, fork, .. } = trigger else { return Ok(Commented::Fine) };
    let api = variable("GITHUB_API_URL").unwrap_or_default();
    let host = CommentHost::of_workflow(&api);
    let sent = match (comment::of_workflow(host), variable("TIDEGATE_TOKEN")) {
        (Ok(Some(on)), Some(token)) => comment::send(&on, &credential(token), comment)?,
        (Ok(_), None) => Err(NotPosted::Forbidden("the workflow has no token".to_owned())),
        (Ok(None), Some(_)) => Err(NotPosted::Failed("the runner does not say where the host's API is".to_owned())),
        (Err(error), _) => Err(NotPosted::Failed(format!("{error:#}"))),
    };
    let reason = match sent {
        Ok(posted) => {
            line(comment::done(posted, number));
            return Ok(Commented::Fine);
        }
        Err(NotPosted::Forbidden(reason)) if fork => {
            format!("{reason}; workflows of forks have a token that may only read")
        }
        Err(NotPosted::Forbidden(reason)) => {
            format!("{reason}; the job needs `permissions: pull-requests: write`")
        }
        Err(NotPosted::Failed(reason)) => reason,
    };
    let level = match (mode, fork) {
        (CommentMode::Always, _) => Level::Error,
        (_, true) => Level::Notice,
        (_, false) => Level::Warning,
    };
    line(Annotation::plain(level, format!("no comment on the pull request: {reason}")));
    append("GITHUB_STEP_SUMMARY", &format!("\n<sub>No comment: {}</sub>\n", crate::plan::escape::prose(&reason)))?;
    Ok(if mode == CommentMode::Always { Commented::Missing } else { Commented::Fine })
}

/// While it lives, the runner takes no commands from what is printed. A manifest cannot end it: it cannot know the token.
struct Quiet {
    token: String,
}

impl Quiet {
    fn begin() -> anyhow::Result<Quiet> {
        let mut bytes = [0_u8; 16];
        SystemRandom::new().fill(&mut bytes).map_err(|_| anyhow!("this machine has no randomness"))?;
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        line(workflow::command::stop(&token));
        Ok(Quiet { token })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // On a line of its own, whatever was printed last.
        line(format_args!("\n{}", command::resume(&self.token)));
    }
}
