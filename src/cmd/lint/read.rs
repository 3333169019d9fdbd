//! Reads manifests: of files, of folders, of standard input, and of a revision of a repository. Never judges them.

use std::{
    ffi::OsString,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};

use crate::{
    cmd::{print::note, remedied},
    manifest::{self, File, MistakeKind},
};

/// The manifests of these paths, on disk or in a revision.
pub fn read(revision: Option<&str>, paths: &[PathBuf]) -> anyhow::Result<Vec<File>> {
    some(match revision {
        Some(revision) => manifests(in_git(revision, paths, format!("{revision}:"))?),
        None => from_disk(paths)?,
    })
}

/// A file that was read, and why.
pub struct Given {
    /// What it holds.
    pub file: File,
    /// Where it is, without the revision.
    pub path: PathBuf,
    /// Why it was read.
    pub role: Role,
}

/// Why a file was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It was named.
    Named,
    /// It was found in a folder.
    Found,
    /// It says how others belong together.
    Aside,
}

fn manifests(given: Vec<Given>) -> Vec<File> {
    given.into_iter().filter(|given| given.role != Role::Aside).map(|given| given.file).collect()
}

/// What a file is called that says which others make a whole.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Whether a file of this name says which others make a whole.
pub fn is_kustomization(path: &Path) -> bool {
    path.file_name().is_some_and(|name| KUSTOMIZATIONS.iter().any(|known| name == *known))
}

/// A file that was come across: none of those that hold something else than manifests, unless it says how others belong
/// together.
fn come_across(path: PathBuf, file: File) -> Option<Given> {
    match (is_other(&file), is_kustomization(&path)) {
        (false, _) => Some(Given { file, path, role: Role::Found }),
        (true, true) => Some(Given { file, path, role: Role::Aside }),
        (true, false) => {
            tracing::info!(file = %path.display(), "holds no Kubernetes object; passed by");
            None
        }
    }
}

/// The manifests of paths in a revision, by their paths; a path that is not there holds none.
pub fn in_revision(revision: &str, paths: &[PathBuf]) -> anyhow::Result<Vec<File>> {
    let mut files = Vec::new();
    for path in paths {
        match in_git(revision, std::slice::from_ref(path), String::new()) {
            Ok(found) => files.extend(manifests(found)),
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

/// The files, if there are any.
pub fn some(files: Vec<File>) -> anyhow::Result<Vec<File>> {
    if files.is_empty() {
        return Err(remedied(
            anyhow!("there is no manifest in what was given"),
            "give files, or folders with *.yaml, *.yml or *.json",
        ));
    }
    Ok(files)
}

/// What makes a folder a Helm chart: what is in it are templates, not manifests.
const CHART: &str = "Chart.yaml";

fn chart(folder: &str) {
    note(format_args!("passing by {folder}: a Helm chart; lint what `helm template` makes of it"));
}

/// Whether a name is that of a manifest.
fn is_manifest(name: &Path) -> bool {
    name.extension().is_some_and(|ending| ending == "yaml" || ending == "yml" || ending == "json")
}

/// The manifests of paths on disk; there may be none.
pub fn from_disk(paths: &[PathBuf]) -> anyhow::Result<Vec<File>> {
    Ok(manifests(on_disk(paths)?))
}

/// The files of paths on disk.
pub fn on_disk(paths: &[PathBuf]) -> anyhow::Result<Vec<Given>> {
    let here = [PathBuf::from(".")];
    let paths = if paths.is_empty() { &here[..] } else { paths };
    let mut files = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).context("reading standard input")?;
            let file = manifest::read("stdin", &bytes);
            files.push(Given { file, path: path.clone(), role: Role::Named });
            continue;
        }
        let about = fs::metadata(path).with_context(|| format!("reading {}", path.display()))?;
        if about.is_dir() {
            let mut found = Vec::new();
            search(path, &mut found)?;
            for path in found {
                let file = file(&path)?;
                files.extend(come_across(path, file));
            }
        } else {
            files.push(Given { file: file(path)?, path: path.clone(), role: Role::Named });
            files.extend(beside(path));
        }
    }
    Ok(files)
}

/// The file beside this one that says what it is a part of, if there is one.
fn beside(path: &Path) -> Option<Given> {
    let mut others = KUSTOMIZATIONS.iter().map(|name| path.with_file_name(name));
    let path = others.find(|other| other.is_file() && other != path)?;
    Some(Given { file: file(&path).ok()?, path, role: Role::Aside })
}

fn file(path: &Path) -> anyhow::Result<File> {
    let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(manifest::read(shown(path), &bytes))
}

/// Whether a file that was only come across holds something else than manifests: values of a chart, a workflow.
fn is_other(file: &File) -> bool {
    let mut fatal = file.mistakes.iter().filter(|mistake| mistake.kind.is_fatal());
    file.objects.is_empty() && fatal.all(|mistake| mistake.kind == MistakeKind::Shape)
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
        } else if about.is_file() && (is_manifest(&entry.path()) || is_kustomization(&entry.path())) {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Reads blobs straight from the object database: nothing is checked out, nothing is written.
///
/// Files are called by their paths in the repository, after `label`.
pub fn in_git(revision: &str, paths: &[PathBuf], label: String) -> anyhow::Result<Vec<Given>> {
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
                let file = manifest::read(shown(Path::new(&format!("{label}{name}"))), blob.content());
                files.push(Given { file, path: path.clone(), role: Role::Named });
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
    files: &mut Vec<Given>,
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
            Some(git2::ObjectType::Blob)
                if entry.filemode() != 0o120_000
                    && (is_manifest(Path::new(&name)) || is_kustomization(Path::new(&name))) =>
            {
                let blob = repository.find_blob(entry.id()).map_err(broken)?;
                let file = manifest::read(shown(Path::new(&format!("{label}{name}"))), blob.content());
                files.extend(come_across(PathBuf::from(&name), file));
            }
            _ => {}
        }
    }
    Ok(())
}
