//! The commands, one file each. The only place where errors become messages and exit codes.

use std::{future::Future, io::IsTerminal, process::ExitCode};

use anstyle::{AnsiColor, Style};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use tracing::level_filters::LevelFilter;

use crate::io::source::OUTCOME;

pub mod access;
pub mod action;
pub mod build;
pub mod cluster;
pub mod comment;
pub mod completion;
pub mod crds;
pub mod create;
pub mod demo;
pub mod dev;
pub mod diff;
pub mod doctor;
pub mod get;
pub mod history;
pub mod install;
pub mod intent;
pub mod kubeconfig;
pub mod kustomize;
pub mod lint;
pub mod list;
pub mod live;
pub mod migrate;
pub mod plan;
pub mod planner;
pub mod print;
pub mod replay;
pub mod run;
mod screen;
pub mod set;
pub mod simulate;
pub mod sources;
pub mod status;
mod stop;
mod synced;
pub mod undo;

/// From a git commit to a fully rolled-out, verified version in Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, about, styles = help_styles())]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    logging: Logging,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the whole loop, with no set-up: a repository, a cluster in this process, commits that succeed and one that fails.
    Demo(demo::Arguments),
    /// Run a cluster in this process and roll out the commits of a repository of yours.
    Dev(dev::Arguments),
    /// Print what a kustomization renders.
    #[command(after_help = "Exit codes: 0 it is printed, 2 it cannot be rendered, or something could not be read.")]
    Build(build::Arguments),
    /// Show what applying manifests would change in a cluster.
    #[command(after_help = "Exit codes: 0 nothing would change, 1 something would, 2 something could not be read.")]
    Diff(diff::Arguments),
    /// Show what a commit will do: what changes, what that starts, and how it would go.
    #[command(
        after_help = "Exit codes: 0 nothing changes, 1 something does, 2 it cannot be applied or something could not be read."
    )]
    Plan(plan::Arguments),
    /// Plan as a step of a workflow: what action.yml runs.
    #[command(
        hide = true,
        after_help = "Exit codes: 0 the step passes, 1 the plan makes it fail, 2 there is no plan, or no comment although there must be."
    )]
    Action(action::Arguments),
    /// List GitSources.
    Sources(sources::Sources),
    /// Ask a GitSource to look at its repository now.
    Sync(sources::One),
    /// Suspend a GitSource: it changes nothing until it is resumed.
    Suspend(sources::One),
    /// Resume a suspended GitSource.
    Resume(sources::One),
    /// Run a Kubernetes cluster in this process: the API, controllers and kubelets, without containers.
    Cluster(cluster::Arguments),
    /// Print the CustomResourceDefinitions to install.
    Crds(crds::Arguments),
    /// Print everything to install in a cluster, to be applied by kubectl or from git.
    Manifests(install::Manifests),
    /// Install the daemon in a cluster.
    Install(install::Arguments),
    /// Check what stands in the way of the daemon: versions, definitions, rights, other controllers, clocks, sources.
    #[command(after_help = "Exit codes: 0 nothing is wrong, 1 something is, 2 the cluster does not answer.")]
    Doctor(doctor::Arguments),
    /// Take the daemon out of a cluster; Rollouts and their pods stay.
    Uninstall(install::Uninstall),
    /// Name every problem of manifests, with file, line and column.
    #[command(
        after_help = "Exit codes: 0 nothing to complain about, 1 problems, 2 something could not be read.",
        mut_args = access::hidden
    )]
    Lint(lint::Arguments),
    /// Move from Argo CD, Flux, Argo Rollouts or Deployments, and back.
    Migrate(Box<migrate::Arguments>),
    /// Run the controller, in a cluster or outside one.
    Run(Box<run::Arguments>),
    /// Make one recorded decision again, and show why.
    Replay(replay::Arguments),
    /// Show a Rollout or an Experiment with all that belongs to it.
    Get(get::Arguments),
    /// List Rollouts or Experiments.
    List(list::Arguments),
    /// Show the status of a Rollout and wait until it is rolled out.
    Status(status::Arguments),
    /// List the revisions of a Rollout.
    History(history::Arguments),
    /// Promote a Rollout past what it waits for, or to the end.
    Promote(intent::Promote),
    /// Stop Rollouts where they are.
    Pause(intent::Rollouts),
    /// Take Rollouts back to their stable versions.
    Abort(intent::Rollouts),
    /// Try an aborted Rollout or a failed Experiment again.
    Retry(intent::Retry),
    /// Go back to an earlier revision.
    Undo(undo::Arguments),
    /// Replace the pods of a Rollout.
    Restart(intent::Restart),
    /// Change the image of a Rollout.
    Set(set::Arguments),
    /// Create a Rollout, an Experiment or an AnalysisRun.
    Create(create::Arguments),
    /// End an AnalysisRun or an Experiment early.
    Terminate(intent::Terminate),
    /// Print the version.
    #[command(mut_args = access::hidden)]
    Version(print::Version),
    /// Print a script that completes commands in a shell.
    #[command(mut_args = access::hidden)]
    Completion(completion::Arguments),
    /// Play one story of the fault simulator, by its seed.
    #[command(after_help = "Exit codes: 0 all went well, 1 a rule was broken.")]
    Simulate(simulate::Arguments),
}

/// What is logged if nothing else is said.
const LOG: &str = "warn,kube_client=off";

/// What is logged, and how.
#[derive(Debug, clap::Args)]
struct Logging {
    /// What to log: a level (error, warn, info, debug, trace) or directives such as `tidegate=debug`.
    #[arg(long, global = true, env = "TIDEGATE_LOG", default_value = LOG, value_name = "FILTER")]
    log: String,
    /// How to log it.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    log_format: LogFormat,
    /// What to log, as `kubectl argo rollouts` takes it: panic, fatal, error, warn, info, debug or trace.
    #[arg(long, global = true, value_name = "LEVEL", value_parser = level, hide_short_help = true)]
    loglevel: Option<LevelFilter>,
    /// Log the requests to the cluster, as kubectl takes it: from 6 on each of them.
    #[arg(short = 'v', long, global = true, value_name = "LEVEL", hide_short_help = true)]
    kloglevel: Option<u8>,
}

/// The levels of the plugin that this program stands in for.
fn level(word: &str) -> Result<LevelFilter, &'static str> {
    match word.to_lowercase().as_str() {
        "panic" | "fatal" | "error" => Ok(LevelFilter::ERROR),
        "warn" | "warning" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        _ => Err("it is one of panic, fatal, error, warn, info, debug and trace"),
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

/// What a command prints its result as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs: one JSON object.
    Json,
}

impl Cli {
    /// Reads the arguments of the process; ends it with a message if they make no sense, or ask for help.
    pub fn from_process() -> Cli {
        let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let command = Cli::command().bin_name(program());
        let read = command.try_get_matches_from(access::with_flags_behind(arguments));
        match read.and_then(|matches| Cli::from_arg_matches(&matches)) {
            Ok(cli) => cli,
            Err(error) => {
                let _ = error.print();
                // A plugin ends as the one it stands in for does.
                let code = if program() == "tidegate" { error.exit_code() } else { error.exit_code().min(1) };
                std::process::exit(code);
            }
        }
    }

    /// Runs the command. Errors that the user can do something about end with exit code 2.
    pub fn run(self) -> ExitCode {
        // These show how each commit goes.
        let shows_commits = matches!(self.command, Command::Demo(_) | Command::Dev(_));
        if let Err(error) = self.logging.start(shows_commits) {
            return fail(&error);
        }
        let outcome = match self.command {
            Command::Demo(arguments) => demo::run(arguments),
            Command::Dev(arguments) => dev::run(arguments).map(|()| ExitCode::SUCCESS),
            Command::Build(arguments) => build::run(&arguments).map(|()| ExitCode::SUCCESS),
            Command::Diff(arguments) => diff::run(arguments),
            Command::Plan(arguments) => plan::run(arguments),
            Command::Action(arguments) => action::run(arguments),
            Command::Sources(arguments) => return verb(sources::list(arguments)),
            Command::Sync(arguments) => return verb(sources::sync(arguments)),
            Command::Suspend(arguments) => return verb(sources::suspend(arguments)),
            Command::Resume(arguments) => return verb(sources::resume(arguments)),
            Command::Cluster(arguments) => cluster::run(arguments).map(|()| ExitCode::SUCCESS),
            Command::Crds(arguments) => crds::run(arguments).map(|()| ExitCode::SUCCESS),
            Command::Manifests(arguments) => install::manifests(arguments).map(|()| ExitCode::SUCCESS),
            Command::Install(arguments) => return verb(install::install(arguments)),
            Command::Doctor(arguments) => block_on(doctor::run(arguments)),
            Command::Uninstall(arguments) => return verb(install::uninstall(arguments)),
            // Its verbs know one exit code for whatever goes wrong.
            Command::Lint(arguments) if program() == ARGO_PLUGIN => match lint::run(arguments) {
                Err(error) => {
                    fail(&error);
                    Ok(ExitCode::FAILURE)
                }
                outcome => outcome,
            },
            Command::Lint(arguments) => lint::run(arguments),
            Command::Migrate(arguments) => block_on(migrate::run(*arguments)),
            Command::Run(arguments) => run::run(*arguments).map(|()| ExitCode::SUCCESS),
            Command::Replay(arguments) => replay::run(arguments).map(|()| ExitCode::SUCCESS),
            Command::Completion(arguments) => completion::run(arguments).map(|()| ExitCode::SUCCESS),
            Command::Get(arguments) => return verb(get::run(arguments)),
            Command::List(arguments) => return verb(list::run(arguments)),
            Command::Status(arguments) => return verb(status::run(arguments)),
            Command::History(arguments) => return verb(history::run(arguments)),
            Command::Promote(arguments) => return verb(intent::promote(arguments)),
            Command::Pause(arguments) => return verb(intent::pause(arguments)),
            Command::Abort(arguments) => return verb(intent::abort(arguments)),
            Command::Retry(arguments) => return verb(intent::retry(arguments)),
            Command::Undo(arguments) => return verb(undo::run(arguments)),
            Command::Restart(arguments) => return verb(intent::restart(arguments)),
            Command::Set(arguments) => return verb(set::run(arguments)),
            Command::Create(arguments) => return verb(create::run(arguments)),
            Command::Version(arguments) => print::version(arguments.short).map(|()| ExitCode::SUCCESS),
            Command::Terminate(arguments) => return verb(intent::terminate(arguments)),
            Command::Simulate(arguments) => simulate::run(arguments),
        };
        match outcome {
            Ok(code) => code,
            Err(error) if error.is::<print::Closed>() => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        }
    }
}

/// Runs a command that talks to a cluster.
fn block_on(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Runs a verb of `kubectl argo rollouts`. As there, whatever goes wrong is exit code 1.
fn verb(work: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(work));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<print::Closed>() => ExitCode::SUCCESS,
        Err(error) => {
            fail(&error);
            ExitCode::from(1)
        }
    }
}

/// The plugin that this program stands in for, under its name.
const ARGO_PLUGIN: &str = "kubectl argo rollouts";

/// What the person typed to get here: the program is a kubectl plugin, too, under either name.
pub fn program() -> &'static str {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&called).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match name.as_str() {
        "kubectl-argo-rollouts" => ARGO_PLUGIN,
        "kubectl-tidegate" => "kubectl tidegate",
        _ => "tidegate",
    }
}

/// A verb that was given something else than the kind of what it is about.
fn kindless(verb: &str, words: &[String], kinds: &[&str]) -> anyhow::Error {
    let first = words.first().map(String::as_str).unwrap_or_default();
    if words.get(1).is_none_or(|word| word.starts_with('-')) && !kinds.contains(&first) {
        let error = anyhow::anyhow!("`{verb} {first}` does not say of what kind {first} is");
        let ways: Vec<String> = kinds.iter().map(|kind| format!("`{} {verb} {kind} {first}`", program())).collect();
        return remedied(error, ways.join(" or "));
    }
    let error = anyhow::anyhow!("`{verb}` knows no kind {first:?}");
    match crate::lint::similar::nearest(first, kinds.iter().copied()) {
        Some(near) => remedied(error, format!("did you mean {near}?")),
        None => remedied(error, format!("there are {}", kinds.join(" and "))),
    }
}

/// An intent that was refused, as an error.
fn refused(refusal: crate::rollout::intent::Refusal) -> anyhow::Error {
    let remedy = refusal.remedy();
    remedied(anyhow::anyhow!("{refusal}"), remedy)
}

impl Logging {
    /// What is logged, as directives: the plugin's flags speak of less than `--log` does, and are added to it.
    fn directives(&self, shows_commits: bool) -> String {
        let shown = if shows_commits && self.log == LOG { format!(",{OUTCOME}=error") } else { String::new() };
        let own = self.loglevel.map(|level| format!(",tidegate={level}"));
        let client = self.kloglevel.map(|level| match level {
            0 => ",kube_client=off",
            1..=5 => ",kube_client=info",
            6 | 7 => ",kube_client=debug",
            8.. => ",kube_client=trace",
        });
        format!("{}{shown}{}{}", self.log, own.unwrap_or_default(), client.unwrap_or_default())
    }

    fn start(&self, shows_commits: bool) -> anyhow::Result<()> {
        use tracing_subscriber::{EnvFilter, fmt, prelude::*};
        let filter = EnvFilter::try_new(self.directives(shows_commits)).map_err(|error| {
            remedied(error.into(), "give a level such as `info`, or directives such as `tidegate=debug`")
        })?;
        let registry = tracing_subscriber::registry().with(filter);
        let colour =
            std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        match self.log_format {
            LogFormat::Text => registry.with(fmt::layer().with_writer(|| screen::Log).with_ansi(colour)).init(),
            // Flat, so that a field has the same name wherever logs are searched: docs/operate.md.
            LogFormat::Json => {
                print::LOGS_ARE_JSON.store(true, std::sync::atomic::Ordering::Relaxed);
                registry.with(fmt::layer().json().flatten_event(true).with_writer(|| screen::Log)).init();
            }
        }
        Ok(())
    }
}

/// An error with what the user can do about it.
#[derive(Debug, thiserror::Error)]
#[error("{source:#}")]
struct Remedied {
    source: anyhow::Error,
    remedy: String,
}

/// Attaches what the user can do about an error.
pub fn remedied(error: anyhow::Error, remedy: impl Into<String>) -> anyhow::Error {
    Remedied { source: error, remedy: remedy.into() }.into()
}

/// Says what went wrong and what to do, on standard error.
fn fail(error: &anyhow::Error) -> ExitCode {
    let (red, green) = (bold(AnsiColor::Red), bold(AnsiColor::Green));
    let (message, remedy) = match error.downcast_ref::<Remedied>() {
        Some(remedied) => (format!("{:#}", remedied.source), Some(&remedied.remedy)),
        None => (format!("{error:#}"), None),
    };
    print::note(format_args!("{red}error{red:#}: {message}"));
    if let Some(remedy) = remedy {
        print::note(format_args!("{green}hint{green:#}: {remedy}"));
    }
    ExitCode::from(2)
}

/// Bold text of a colour.
pub fn bold(colour: AnsiColor) -> Style {
    colour.on_default().bold()
}

fn help_styles() -> clap::builder::Styles {
    clap::builder::Styles::styled()
        .header(bold(AnsiColor::Green))
        .usage(bold(AnsiColor::Green))
        .literal(bold(AnsiColor::Cyan))
        .placeholder(AnsiColor::Cyan.on_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_can_be_asked_for() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_levels_of_the_plugin_are_added_to_what_is_logged() {
        #[track_caller]
        fn check(arguments: &[&str], expected: &str) {
            let cli = Cli::try_parse_from([&["tidegate", "version"], arguments].concat()).unwrap();
            assert_eq!(cli.logging.directives(false), expected);
        }
        check(&["--log", "info"], "info");
        check(&["--log", "info", "--loglevel", "Warning"], "info,tidegate=warn");
        check(&["--log", "info", "-v6"], "info,kube_client=debug");
        check(&["--log", "info", "--loglevel=debug", "-v", "9"], "info,tidegate=debug,kube_client=trace");
        assert!(Cli::try_parse_from(["tidegate", "version", "--loglevel", "loud"]).is_err());
    }

    /// Every verb of the plugin with every flag that it has there, of `docs/generated/kubectl-argo-rollouts` of Argo Rollouts
    /// 1.10.1: flags of its own, and those of kubectl.
    #[test]
    fn every_flag_of_the_plugin_is_taken() {
        let inherited = "--as=me --as-group=a --as-group=b --as-uid=1 --cache-dir=/x --certificate-authority=ca --client-certificate=c \
            --client-key=k --cluster=c --context=c --disable-compression --insecure-skip-tls-verify -v=1 --kubeconfig=/k \
            --loglevel=info -n=shop --request-timeout=5s -s=https://h --tls-server-name=n --token=t --user=u";
        let long = "--kloglevel=1 --namespace=shop --request-timeout=0 --server=https://h";
        for verb in [
            "abort web",
            "abort web api",
            "completion bash",
            "create -f a.yaml --filename b.yaml --no-color -w",
            "create analysisrun --from rate --argument a=b -a c=d --generate-name g --global --instance-id i --name n",
            "create analysisrun --from-file rate.yaml",
            "get experiment e --no-color --watch",
            "get exp e -w",
            "get rollout web --no-color --timeout-seconds 3 --watch",
            "get ro web -w",
            "lint -f web.yaml",
            "lint --filename web.yaml",
            "list experiments -A",
            "list exp --all-namespaces",
            "list rollouts -A --all-namespaces --name web --timestamps --watch",
            "list ro -w",
            "pause web api",
            "promote web --full",
            "promote web -c",
            "promote web -a",
            "promote web --skip-current-step",
            "promote web --skip-all-steps",
            "restart web -i 10s",
            "restart web --in 10s",
            "retry rollout web api",
            "retry ro web",
            "retry experiment e",
            "retry exp e",
            "set image web app=image",
            "status web --timeout 60s --watch",
            "status web -t 60s -w",
            "terminate analysisrun a b",
            "terminate ar a",
            "terminate experiment e",
            "terminate exp e",
            "undo web --to-revision 3",
            "version --short",
        ] {
            let verb = verb.replace("-A --all-namespaces", "-A");
            for flags in [inherited, long] {
                let (verb, flags): (Vec<&str>, Vec<&str>) =
                    (verb.split(' ').collect(), flags.split_whitespace().collect());
                for order in [[&verb[..], &flags[..]].concat(), [&flags[..], &verb[..]].concat()] {
                    let words = ["tidegate"].iter().chain(&order).map(|word| (*word).to_owned()).collect();
                    let read = Cli::try_parse_from(access::with_flags_behind(words));
                    assert!(read.is_ok(), "{}: {}", order.join(" "), read.unwrap_err());
                }
            }
        }
    }
}
