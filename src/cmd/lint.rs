//! `tidegate lint`: every problem of the given manifests, with file, line and column.

use std::{
    ffi::OsString,
    fs,
    io::{IsTerminal, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, anyhow};
use clap::ValueEnum;

use super::remedied;
use crate::{
    lint::{
        Report, lint, output,
        rule::{Rule, Severity},
    },
    manifest::{self, File, MistakeKind},
};

/// The arguments of `tidegate lint`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Files, folders (searched for *.yaml, *.yml and *.json), or `-` for standard input. The current folder if none.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The same, as `kubectl argo rollouts lint` takes it.
    #[arg(short = 'f', long = "filename", value_name = "PATH")]
    filenames: Vec<PathBuf>,
    /// Read the paths as they are in this revision of the git repository around the current folder.
    #[arg(long, value_name = "REVISION")]
    git: Option<String>,
    /// How to print what was found.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Leave out a rule; can be given several times.
    #[arg(long, value_name = "RULE", value_parser = rule)]
    ignore: Vec<Rule>,
    /// The least severity that makes the exit code 1.
    #[arg(long, value_enum, default_value_t = Threshold::Warning, value_name = "SEVERITY")]
    fail_on: Threshold,
    /// Say what a rule means and end; `all` lists every rule.
    #[arg(long, value_name = "RULE")]
    explain: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs: one JSON object.
    Json,
    /// For code-scanning services: SARIF 2.1.0.
    Sarif,
    /// Annotations for a workflow on GitHub.
    Github,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Threshold {
    Error,
    Warning,
    Hint,
}

fn rule(name: &str) -> Result<Rule, String> {
    name.parse()
}

/// Runs the command: 0 if there is nothing to complain about, 1 if there is, 2 if something could not be read.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(name) = &arguments.explain {
        return explain(name);
    }
    let mut paths = arguments.paths;
    paths.extend(arguments.filenames);
    // Services that show findings beside a change know files by their paths alone.
    let named = matches!(arguments.output, Format::Text | Format::Json);
    let read = match &arguments.git {
        Some(revision) if !named => some(from_git(revision, &paths, String::new())?)?,
        revision => read(revision.as_deref(), &paths)?,
    };
    let report = lint(&read).without(&arguments.ignore);
    print(&report, arguments.output)?;
    let failing = report.findings.iter().any(|finding| match arguments.fail_on {
        Threshold::Error => finding.rule.severity() == Severity::Error,
        Threshold::Warning => finding.rule.severity() >= Severity::Warning,
        Threshold::Hint => true,
    });
    Ok(ExitCode::from(u8::from(failing)))
}

/// The manifests of these paths, on disk or in a revision.
pub fn read(revision: Option<&str>, paths: &[PathBuf]) -> anyhow::Result<Vec<File>> {
    some(match revision {
        Some(revision) => from_git(revision, paths, format!("{revision}:"))?,
        None => from_disk(paths)?,
    })
}

/// The manifests of paths in a revision, by their paths; a path that is not there holds none.
pub fn in_revision(revision: &str, paths: &[PathBuf]) -> anyhow::Result<Vec<File>> {
    let mut files = Vec::new();
    for path in paths {
        match from_git(revision, std::slice::from_ref(path), String::new()) {
            Ok(found) => files.extend(found),
            Err(error) if error.is::<NotThere>() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

/// A path that a revision does not have.
#[derive(Debug, thiserror::Error)]
#[error("reading {revision}:{path}: {cause}")]
struct NotThere {
    revision: String,
    path: String,
    cause: String,
}

fn some(files: Vec<File>) -> anyhow::Result<Vec<File>> {
    if files.is_empty() {
        return Err(remedied(
            anyhow!("there is no manifest in what was given"),
            "give files, or folders with *.yaml, *.yml or *.json",
        ));
    }
    Ok(files)
}

fn explain(name: &str) -> anyhow::Result<ExitCode> {
    let text = if name == "all" {
        Rule::all()
            .map(|rule| format!("{:<36} {:<8} {}\n", rule.name(), rule.severity().to_string(), rule.title()))
            .collect()
    } else {
        let rule: Rule =
            name.parse().map_err(|error| remedied(anyhow!("{error}"), "`--explain all` lists every rule"))?;
        rule.explain()
    };
    std::io::stdout().write_all(text.as_bytes()).context("printing")?;
    Ok(ExitCode::SUCCESS)
}

fn print(report: &Report, format: Format) -> anyhow::Result<()> {
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let text = match format {
        Format::Text => output::text(report, colour),
        Format::Json => output::json(report),
        Format::Sarif => output::sarif(report, env!("CARGO_PKG_VERSION")),
        Format::Github => output::github(report),
    };
    anstream::stdout().write_all(text.as_bytes()).context("printing")
}

/// What makes a folder a Helm chart: what is in it are templates, not manifests.
const CHART: &str = "Chart.yaml";

fn chart(folder: &str) {
    anstream::eprintln!("passing by {folder}: a Helm chart; lint what `helm template` makes of it");
}

/// Whether a name is that of a manifest.
fn is_manifest(name: &Path) -> bool {
    name.extension().is_some_and(|ending| ending == "yaml" || ending == "yml" || ending == "json")
}

/// The manifests of paths on disk; there may be none.
pub fn from_disk(paths: &[PathBuf]) -> anyhow::Result<Vec<File>> {
    let here = [PathBuf::from(".")];
    let paths = if paths.is_empty() { &here[..] } else { paths };
    let mut files = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).context("reading standard input")?;
            files.push(manifest::read("stdin", &bytes));
            continue;
        }
        let about = fs::metadata(path).with_context(|| format!("reading {}", path.display()))?;
        if about.is_dir() {
            let mut found = Vec::new();
            search(path, &mut found)?;
            for path in found {
                let file = file(&path)?;
                if is_other(&file) {
                    tracing::info!(file = %path.display(), "holds no Kubernetes object; passed by");
                } else {
                    files.push(file);
                }
            }
        } else {
            files.push(file(path)?);
        }
    }
    Ok(files)
}

fn file(path: &Path) -> anyhow::Result<File> {
    let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(manifest::read(shown(path), &bytes))
}

/// Whether a file that was only come across holds something else than manifests: values of a chart, a workflow.
fn is_other(file: &File) -> bool {
    file.objects.is_empty() && file.mistakes.iter().all(|mistake| mistake.kind == MistakeKind::Shape)
}

/// A path without what every path of this run begins with.
fn shown(path: &Path) -> String {
    let path = path.strip_prefix(".").unwrap_or(path);
    path.display().to_string().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The manifests below a folder, sorted. Hidden folders and Helm charts are passed by, and links are not followed.
fn search(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if folder.join(CHART).exists() {
        chart(&folder.display().to_string());
        return Ok(());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut entries =
        entries.collect::<Result<Vec<_>, _>>().with_context(|| format!("reading {}", folder.display()))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let about = entry.file_type().with_context(|| format!("reading {}", entry.path().display()))?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if about.is_dir() && !hidden {
            search(&entry.path(), found)?;
        } else if about.is_file() && is_manifest(&entry.path()) {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Reads blobs straight from the object database: nothing is checked out, nothing is written.
///
/// Files are called by their paths in the repository, after `label`.
fn from_git(revision: &str, paths: &[PathBuf], label: String) -> anyhow::Result<Vec<File>> {
    let here = std::env::current_dir().context("finding the current folder")?;
    let repository = git2::Repository::discover(&here).map_err(|error| {
        remedied(
            anyhow!("{} is in no git repository: {}", here.display(), error.message()),
            "run it inside the repository, or leave out --git",
        )
    })?;
    let tree = repository.revparse_single(revision).and_then(|object| object.peel_to_tree()).map_err(|error| {
        remedied(
            anyhow!("{revision} is no revision of this repository: {}", error.message()),
            "give a branch, a tag or a commit",
        )
    })?;
    // Paths are relative to the current folder, as everywhere.
    let prefix =
        repository.workdir().and_then(|root| here.strip_prefix(root.canonicalize().ok()?).ok().map(Path::to_owned));
    let prefix = prefix.unwrap_or_default();
    let whole = [PathBuf::new()];
    let paths = if paths.is_empty() { &whole[..] } else { paths };
    let mut files = Vec::new();
    for path in paths {
        let path =
            plain(&prefix.join(path)).ok_or_else(|| anyhow!("{} leads out of the repository", path.display()))?;
        let missing = |error: git2::Error| anyhow!("reading {revision}:{}: {}", path.display(), error.message());
        if path.as_os_str().is_empty() {
            blobs(&repository, &tree, &label, "", &mut files)?;
            continue;
        }
        let entry = tree.get_path(&path).map_err(|error| NotThere {
            revision: revision.to_owned(),
            path: path.display().to_string(),
            cause: error.message().to_owned(),
        })?;
        let name = path.to_string_lossy().into_owned();
        match entry.to_object(&repository).map_err(missing)?.into_tree() {
            Ok(below) => blobs(&repository, &below, &label, &format!("{name}/"), &mut files)?,
            Err(object) => {
                let blob = object.peel_to_blob().map_err(missing)?;
                files.push(manifest::read(shown(Path::new(&format!("{label}{name}"))), blob.content()));
            }
        }
    }
    Ok(files)
}

/// A path without `.` and `..`, if it stays inside.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut parts: Vec<OsString> = Vec::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => drop(parts.pop()?),
            std::path::Component::Normal(name) => parts.push(name.to_owned()),
            std::path::Component::RootDir | std::path::Component::Prefix(_) => return None,
        }
    }
    Some(parts.iter().collect())
}

/// The manifests of a tree, in its order.
fn blobs(
    repository: &git2::Repository,
    tree: &git2::Tree<'_>,
    label: &str,
    prefix: &str,
    files: &mut Vec<File>,
) -> anyhow::Result<()> {
    if tree.get_name(CHART).is_some() {
        chart(&format!("{label}{prefix}"));
        return Ok(());
    }
    for entry in tree {
        let name = format!("{prefix}{}", String::from_utf8_lossy(entry.name_bytes()));
        let broken = |error: git2::Error| anyhow!("reading {label}{name}: {}", error.message());
        let hidden = entry.name_bytes().starts_with(b".");
        match entry.kind() {
            Some(git2::ObjectType::Tree) if !hidden => {
                let below = repository.find_tree(entry.id()).map_err(broken)?;
                blobs(repository, &below, label, &format!("{name}/"), files)?;
            }
            // A link's blob is a path, not a manifest.
            Some(git2::ObjectType::Blob) if entry.filemode() != 0o120_000 && is_manifest(Path::new(&name)) => {
                let blob = repository.find_blob(entry.id()).map_err(broken)?;
                let file = manifest::read(shown(Path::new(&format!("{label}{name}"))), blob.content());
                if !is_other(&file) {
                    files.push(file);
                }
            }
            _ => {}
        }
    }
    Ok(())
}
